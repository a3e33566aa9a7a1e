// SPDX-License-Identifier: Apache-2.0
// Expressions of --select in commands whose operator is no map: a map over the operator's result.
//
//     quern sort --by price --select 'name, price * qty as total'    sort: name, price, qty    map: name, price * qty
#ifndef QUERN_TOOLS_MAP_COMPUTED_SELECT_H_
#define QUERN_TOOLS_MAP_COMPUTED_SELECT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "runtime/base/memory.h"
#include "tools/frontend/select_text.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/run/run_options.h"

namespace quern::cli {

class ComputedSelect {
 public:
  // *Errors*: those of ParseSelect.
  static absl::StatusOr<ComputedSelect> Parse(const std::string& text);

  // The columns that the operator must give, each once, in the order in which they are mentioned; nullopt: all. given:
  // names of columns that it gives in any case.
  std::optional<std::vector<std::string>> Mentioned(const std::vector<std::string>& given = {}) const;
  // "map --select a, price * qty as total", for --explain.
  std::string Print() const { return "map --select " + text_; }
  // The result with the columns of the list; as it is where rows were counted. *Cost*: a column that is selected alone
  // is not copied. *Errors*: those of the map; a row without a result.
  absl::StatusOr<OperatorResult> Apply(OperatorResult result, const RunOptions& options,
                                       const std::shared_ptr<MemoryBudget>& budget, Progress* progress) const;

 private:
  std::string text_;
  std::vector<SelectText> select_;
};

// Whether a list of --select has more than columns, which a command reads itself.
bool IsComputed(const std::string& text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_MAP_COMPUTED_SELECT_H_
