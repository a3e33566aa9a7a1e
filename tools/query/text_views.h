// SPDX-License-Identifier: Apache-2.0
// Texts of joins' tables as views. Where rows stay in place, a join writes its build columns beside them, which texts
// with offsets do not allow: they follow one another. So texts with offsets become views when they are put into a
// join's table, and have offsets again where they are columns of the result:
//
//     scan       "ASIA" "EUROPE"   offsets 0 4 10   bytes ASIAEUROPE
//     join       views 4 ASIA, 6 EUROPE, beside rows; as keys of groups; ..
//     result     offsets and bytes
#ifndef QUERN_TOOLS_QUERY_TEXT_VIEWS_H_
#define QUERN_TOOLS_QUERY_TEXT_VIEWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/base/memory.h"
#include "runtime/base/output_buffer.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"
#include "tools/query/query_plan.h"

namespace quern::query {

// Whether texts of the column have 32-bit offsets, so that they may pass as views.
bool MayBeViews(const QueryColumn& column);
// Makes the type that of views; the format stays that of the table and of the result.
void PassAsViews(QueryColumn* column);
// Whether the column passes as views of texts that have offsets.
bool PassesAsViews(const QueryColumn& column);
// The type of the column in its table.
ColumnType StoredType(const QueryColumn& column);

// Views of one column of a batch. *Ownership*: the bytes stay the batch's.
class TextViews {
 public:
  // Replaces a column with offsets by one of views, valid until the next call. selection: which rows, the others have
  // no views; null: the first num_rows. *Cost*: 1 to 2 ns a row. *Errors*: ResourceExhausted.
  absl::Status Make(const uint32_t* selection, uint64_t num_rows, const std::shared_ptr<MemoryBudget>& budget,
                    QuernColumn* column);

 private:
  OutputBuffer views_;
  const uint8_t* bytes_ = nullptr;
};

// Gives those children of a result batch that are views, and pass as such, offsets. *Errors*: ResourceExhausted, also
// where the texts of a batch have more than 2 GiB; the batch is then as it was.
absl::Status MakeOffsets(const std::vector<QueryColumn>& columns, const std::shared_ptr<MemoryBudget>& budget,
                         ArrowArray* batch);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_TEXT_VIEWS_H_
