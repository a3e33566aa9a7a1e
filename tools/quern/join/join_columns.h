// SPDX-License-Identifier: Apache-2.0
// From the names on the command line to the columns, types and spec of one join.
#ifndef QUERN_TOOLS_JOIN_JOIN_COLUMNS_H_
#define QUERN_TOOLS_JOIN_JOIN_COLUMNS_H_

#include <arrow/type_fwd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/join_text.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

enum JoinSide : uint8_t { kProbe, kBuild };  // indexes arrays of two
constexpr const char* kSideWords[2] = {"PROBE", "BUILD"};
constexpr const char* kSidePrefixes[2] = {"probe.", "build."};

struct KeyColumns {
  std::array<KeyText, 2> sides;  // by JoinSide; resolved
  Collation collation;
  bool null_equal;
};

struct ResidualColumns {
  std::array<KeyText, 2> sides;  // by JoinSide; resolved
  Comparison op;
};

struct ResultColumn {
  JoinSide side;            // of the mark: PROBE's, whose columns it follows in the kernel's output
  std::string name;         // in its file
  std::string result_name;  // with its side's prefix where both sides' columns of that name are selected
  bool is_mark = false;     // of a mark join; it is in no file
};

// The request for a join, with names resolved.
struct JoinColumns {
  JoinKind kind = JoinKind::kInner;
  std::vector<KeyColumns> keys;
  std::vector<ResidualColumns> residual;
  std::vector<ResultColumn> result;  // in the requested order
};

// The values of --type, --on, --residual, --null-equal and --select.
struct JoinRequest {
  JoinKind kind = JoinKind::kInner;
  std::vector<JoinTermText> keys;
  std::vector<JoinTermText> residual;
  std::vector<NameText> null_equal;
  std::optional<std::vector<NameText>> select;  // nullopt: all columns of the sides that come out
};

// Finds the columns. With `count` the result has none. *Errors*: unknown, ambiguous and repeated names, and
// columns of a side that does not come out of a join of that kind.
absl::StatusOr<JoinColumns> ResolveColumns(const JoinRequest& request, const TableInput& probe, const TableInput& build,
                                           bool count);

// The columns of one side that must be read, each once.
std::vector<std::string> ColumnsToRead(const JoinColumns& columns, JoinSide side);

struct PreparedJoin {
  JoinSpec spec;
  KernelInput inputs[2];                         // by JoinSide; payload: then the columns of the residual predicate
  std::shared_ptr<arrow::Schema> kernel_schema;  // of what the kernel writes (JoinOutputTypes), dictionaries decoded
  std::vector<int> order;                        // kernel's column of each result column; empty: rows are counted
  std::vector<std::string> result_names;
};

// Finds the types, casts keys to their common types, and writes the spec. A column is nullable in the spec if nulls
// were read. *Cost*: one pass over each key column whose type changes, and over the bitmaps. *Errors*: types that
// cannot be joined or carried, and keys or a residual that a join of this kind does not accept.
absl::StatusOr<PreparedJoin> PrepareJoin(const JoinColumns& columns, const std::shared_ptr<arrow::Table>& probe,
                                         const std::shared_ptr<arrow::Table>& build);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_JOIN_JOIN_COLUMNS_H_
