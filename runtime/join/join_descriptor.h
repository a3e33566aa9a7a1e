// SPDX-License-Identifier: Apache-2.0
// Turns a join's spec into the descriptor for which kernels are specialised: where each field lies in a tuple.
#ifndef QUERN_RUNTIME_JOIN_JOIN_DESCRIPTOR_H_
#define QUERN_RUNTIME_JOIN_JOIN_DESCRIPTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/join_abi.h"
#include "runtime/rows/row_layout.h"
#include "runtime/spec/join_spec.h"

namespace quern {

// Which entry points a kernel of this descriptor has (join_entry_points.def).
struct NeededEntryPoints {
#define QUERN_JOIN_ENTRY(field, result, parameters) bool field;
#include "runtime/abi/join_entry_points.def"
};
NeededEntryPoints EntryPointsOf(const QuernJoinDescriptor& descriptor);

// A descriptor, together with the fields that it points to.
class JoinDescriptor {
 public:
  // Lays out the tuple: first the keys (as one word where they fit), then the build payload, each with its widest
  // fields first, and the null bits last. inline_key_bytes: how many bytes of a variable-length key the tuple itself
  // holds; 12 to 68, 4 more than a multiple of 8.
  explicit JoinDescriptor(const JoinSpec& spec, uint32_t inline_key_bytes = kInlineStringBytes);
  JoinDescriptor(const JoinDescriptor&) = delete;
  JoinDescriptor& operator=(const JoinDescriptor&) = delete;

  const QuernJoinDescriptor* get() const { return &descriptor_; }
  // The rows of the build side.
  const QuernRowLayout* rows() const { return &descriptor_.rows; }
  QuernJoinDescriptor* mutable_tuning() { return &descriptor_; }
  const JoinSpec& spec() const { return spec_; }
  uint32_t inline_key_bytes() const { return inline_key_bytes_; }
  // The same, tuning included, of another spec with the same tuples.
  std::shared_ptr<const JoinDescriptor> WithSpec(const JoinSpec& spec) const;

  // The tuple as a table of offset, bytes, field and type, as `quern dump layout` prints it.
  std::string Print() const;

 private:
  void PlaceFields(TuplePlacer* placer);

  JoinSpec spec_;
  const uint32_t inline_key_bytes_;
  std::vector<QuernField> probe_;
  QuernJoinDescriptor descriptor_;
  RowLayout rows_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_DESCRIPTOR_H_
