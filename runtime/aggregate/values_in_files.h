// SPDX-License-Identifier: Apache-2.0
// A group of more values than memory has room for. They lie in the rows of its partition, as parts of states
// (OutOfLineAggregate::SavePart), and are read as often as an aggregate needs them:
//
//     rows of the partition    key 7, sum 12, values 3 1 5 ..    key 7, no sum, values 9 2 ..    ..
//     merged into a group      key 7, sum 12, no values          its other states
//     read, several times      3 1 5 .. 9 2 ..                   the median
#ifndef QUERN_RUNTIME_AGGREGATE_VALUES_IN_FILES_H_
#define QUERN_RUNTIME_AGGREGATE_VALUES_IN_FILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// The states of one aggregate, a binary column of rows that can be rewound.
class StatesOfRows final : public SavedParts {
 public:
  StatesOfRows(RowReader* rows, size_t column) : rows_(rows), column_(column) {}

  absl::Status ForEach(const std::function<absl::Status(std::string_view)>& f) override;

 private:
  RowReader* const rows_;
  const size_t column_;
};

// A binary column that has a state of no values in each row.
class NoValues {
 public:
  NoValues(const AggregateDescriptor& descriptor, size_t aggregate);

  // Valid until the next call.
  QuernColumn Column(uint64_t num_rows);

 private:
  std::string saved_, bytes_;
  std::vector<int32_t> offsets_ = {0};
};

// Writes the only value of a column of fixed width to n rows; returns n.
uint32_t CopyResult(const OutputBatch& of_group, size_t column, uint32_t n, QuernOutColumn* out, uint64_t out_row);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_VALUES_IN_FILES_H_
