// SPDX-License-Identifier: Apache-2.0
// Turns an aggregation's spec into the descriptor that kernels are specialised for: it says where the keys, states and
// bits of a group lie in its tuple.
#ifndef QUERN_RUNTIME_AGGREGATE_AGGREGATE_DESCRIPTOR_H_
#define QUERN_RUNTIME_AGGREGATE_AGGREGATE_DESCRIPTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"
#include "runtime/rows/row_layout.h"
#include "runtime/spec/aggregation_spec.h"

namespace quern {

// Which entry points a kernel of this descriptor has (aggregate_entry_points.def).
struct NeededAggregateEntryPoints {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) bool field;
#include "runtime/abi/aggregate_entry_points.def"
};
NeededAggregateEntryPoints EntryPointsOf(const QuernAggregateDescriptor& descriptor);

// A descriptor and the fields that it points to.
class AggregateDescriptor {
 public:
  // inline_key_bytes: how much of a string key the tuple itself holds; 12 to 60, 4 more than a multiple of 8.
  // *Errors*: NotFound for a host's function that is not registered.
  static absl::StatusOr<std::shared_ptr<AggregateDescriptor>> Make(const AggregationSpec& spec,
                                                                   uint32_t inline_key_bytes = kInlineStringBytes);
  AggregateDescriptor(const AggregateDescriptor&) = delete;
  AggregateDescriptor& operator=(const AggregateDescriptor&) = delete;

  const QuernAggregateDescriptor* get() const { return &descriptor_; }
  const QuernRowLayout* group() const { return &descriptor_.group; }
  QuernAggregateDescriptor* mutable_tuning() { return &descriptor_; }
  const AggregationSpec& spec() const { return spec_; }
  // By aggregate; null where the kernel's loop updates the aggregate.
  const OutOfLineAggregate* called(size_t aggregate) const { return out_of_line_[aggregate].get(); }
  bool has_out_of_line() const { return has_out_of_line_; }
  // The first of the batch's columns that belong to an aggregate.
  uint32_t first_column(size_t aggregate) const { return first_columns_[aggregate]; }
  // PAD SPACE keys: offset in the tuple of a u32, the number of spaces that were cut off the group's first key; 0 for
  // other keys.
  uint32_t spaces_offset(size_t key) const { return spaces_offsets_[key]; }

  // The tuple as a table of offset, bytes, field and type, as `quern dump layout` prints it.
  std::string Print() const;

 private:
  explicit AggregateDescriptor(const AggregationSpec& spec);
  absl::Status AddAccumulators();
  void AddAccumulator(const AggregateSpec& aggregate, uint32_t first_column);
  void PlaceTuple(uint32_t inline_key_bytes);
  std::vector<KeySpec> KernelKeys() const;
  void PlaceKeys(uint32_t inline_key_bytes, TuplePlacer* placer);
  void PlaceBits(TuplePlacer* placer);

  AggregationSpec spec_;
  std::vector<QuernAccumulator> accumulators_;
  std::vector<std::unique_ptr<OutOfLineAggregate>> out_of_line_;
  std::vector<uint32_t> first_columns_;
  std::vector<uint32_t> spaces_offsets_;
  bool has_out_of_line_ = false;
  QuernAggregateDescriptor descriptor_;
  RowLayout group_;
};

// The type of a key as kernels see it: a dictionary key is the number of its value (u32).
KeySpec KernelKey(const KeySpec& key);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_AGGREGATE_DESCRIPTOR_H_
