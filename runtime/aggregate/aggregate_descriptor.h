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
#include "runtime/map/map_descriptor.h"
#include "runtime/rows/row_layout.h"
#include "runtime/spec/aggregation_spec.h"

namespace quern {

// Which entry points a kernel of this descriptor has (aggregate_entry_points.def).
struct NeededAggregateEntryPoints {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) bool field;
#include "runtime/abi/aggregate_entry_points.def"
};
NeededAggregateEntryPoints EntryPointsOf(const QuernAggregateDescriptor& descriptor);
// Whether runs of rows may be added up eight rows at a time: lanes can do all accumulators.
bool CanAddLanes(const QuernAggregateDescriptor& descriptor);

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
  // Whether states of one of them can be saved in parts, and whether those of this one can.
  bool has_parts() const { return has_parts_; }
  bool has_parts(size_t aggregate) const { return called(aggregate) != nullptr && called(aggregate)->has_parts(); }
  // Whether the bytes of a tuple are the whole group, wherever they are copied to: its key is packed and has no number
  // of a dictionary's value, and no state lies out of line.
  bool has_whole_tuples() const {
    return descriptor_.group.packed_bytes != 0 && !has_out_of_line_ && !has_dictionaries_;
  }
  // The columns of an aggregate's arguments, and of its filter.
  struct Columns {
    bool is_computed = false;  // results of computed(); else of the batch
    std::vector<uint32_t> arguments;
    bool is_filter_computed = false;
    uint32_t filter = 0;
  };
  const Columns& columns(size_t aggregate) const { return columns_[aggregate]; }
  // The map that computes arguments from the batch's columns; null where there is none.
  const MapDescriptor* computed() const { return computed_.get(); }
  // PAD SPACE keys: offset in the tuple of a u32, the number of spaces that were cut off the group's first key; 0 for
  // other keys.
  uint32_t spaces_offset(size_t key) const { return spaces_offsets_[key]; }

  // Bytes from row to row in the columns of a batch (ColumnRowBytes), of the keys and of the others.
  const std::vector<uint32_t>& key_row_bytes() const { return key_row_bytes_; }
  const std::vector<uint32_t>& input_row_bytes() const { return input_row_bytes_; }

  // The tuple as a table of offset, bytes, field and type, as `quern dump layout` prints it.
  std::string Print() const;

 private:
  explicit AggregateDescriptor(const AggregationSpec& spec);
  absl::Status AddAccumulators();
  void PlaceColumns();
  void AddAccumulator(const AggregateSpec& aggregate, const Columns& columns);
  void PlaceTuple(uint32_t inline_key_bytes);
  std::vector<KeySpec> KernelKeys() const;
  void PlaceKeys(uint32_t inline_key_bytes, TuplePlacer* placer);
  void PlaceBits(TuplePlacer* placer);

  AggregationSpec spec_;
  std::vector<QuernAccumulator> accumulators_;
  std::vector<std::unique_ptr<OutOfLineAggregate>> out_of_line_;
  std::vector<Columns> columns_;
  std::unique_ptr<const MapDescriptor> computed_;
  std::vector<uint32_t> spaces_offsets_;
  std::vector<uint32_t> key_row_bytes_, input_row_bytes_;
  bool has_out_of_line_ = false;
  bool has_dictionaries_ = false;  // keys that are numbers of values
  bool has_parts_ = false;
  QuernAggregateDescriptor descriptor_;
  RowLayout group_;
};

// The type of a key as kernels see it: a dictionary key is the number of its value (u32).
KeySpec KernelKey(const KeySpec& key);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_AGGREGATE_DESCRIPTOR_H_
