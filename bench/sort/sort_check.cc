// SPDX-License-Identifier: Apache-2.0
// Rows are in order if no row precedes the one before it, across batches too. They are the input's rows if there are as
// many, and if the hashes of each key have the same sum:
//
//     input   b a c        h(b) + h(a) + h(c)
//     result  a b c        in order, the same sum
//             a b b        in order, another sum
//             b a c        row 1 precedes row 0
//
// Values that move to other rows within their column keep its sum; where keys are random, the order is wrong then.
#include "bench/sort/sort_check.h"

#include <cstring>
#include <string>

#include "runtime/base/status.h"

namespace quern::bench {
namespace {

int CompareKeys(const std::vector<SortValue>& a, uint64_t row_a, const std::vector<SortValue>& b, uint64_t row_b) {
  for (size_t k = 0; k < a.size(); ++k) {
    const int order = CompareRows(a[k], row_a, b[k], row_b);
    if (order != 0) return order;
  }
  return 0;
}

}  // namespace

SortCheck::SortCheck(const SortSpec& spec, const SortWorkload& workload)
    : spec_(spec), workload_(workload), sums_(workload.spec().keys.size()) {}

CollationRule SortCheck::Rule(size_t key) const { return RuleOf(spec_.keys[key].type.collation); }

void SortCheck::KeepLast(const std::vector<SortValue>& columns, uint64_t row) {
  last_.resize(columns.size());
  for (size_t k = 0; k < columns.size(); ++k) {
    LastRow& last = last_[k];
    if (IsText(columns[k].key)) {
      const auto* offsets = static_cast<const int32_t*>(columns[k].offsets) + row;
      last.bytes.assign(columns[k].bytes + offsets[0], columns[k].bytes + offsets[1]);
      last.offsets[0] = 0;
      last.offsets[1] = offsets[1] - offsets[0];
    } else {
      const size_t width = BytesOf(columns[k].key);
      const auto* values = static_cast<const uint8_t*>(columns[k].values);
      last.bytes.assign(values + row * width, values + (row + 1) * width);
    }
  }
}

std::vector<SortValue> SortCheck::LastColumns() const {
  std::vector<SortValue> columns;
  for (size_t k = 0; k < last_.size(); ++k)
    columns.push_back(
        {workload_.spec().keys[k], last_[k].bytes.data(), last_[k].offsets, last_[k].bytes.data(), Rule(k)});
  return columns;
}

absl::Status SortCheck::Add(const OutputBatch& batch) {
  if (batch.num_rows() == 0) return absl::OkStatus();
  std::vector<SortValue> columns;
  for (size_t k = 0; k < sums_.size(); ++k)
    columns.push_back(ValueOf(workload_.spec().keys[k], batch.column(k), Rule(k)));
  const std::vector<SortValue> last = LastColumns();
  for (uint64_t row = 0; row < batch.num_rows(); ++row) {
    const int order = row > 0        ? CompareKeys(columns, row - 1, columns, row)
                      : last.empty() ? 0
                                     : CompareKeys(last, 0, columns, 0);
    if (order > 0)
      return Internal("result row precedes the one before it: " + std::to_string(num_rows_ + row) + " of " +
                      PrintSpec(spec_) + "; accepted: rows in order");
    for (size_t k = 0; k < sums_.size(); ++k) sums_[k] += HashRow(columns[k], row);
  }
  KeepLast(columns, batch.num_rows() - 1);
  num_rows_ += batch.num_rows();
  return absl::OkStatus();
}

absl::Status SortCheck::Finish() const {
  if (spec_.limit != 0 || sums_ == workload_.Checksums()) return absl::OkStatus();
  return Internal("result of " + PrintSpec(spec_) + " has other values than the input");
}

}  // namespace quern::bench
