// SPDX-License-Identifier: Apache-2.0
// From a join's spec to the descriptor that kernels are specialised for: where each field lies in a tuple.
#ifndef QUERN_RUNTIME_JOIN_JOIN_DESCRIPTOR_H_
#define QUERN_RUNTIME_JOIN_JOIN_DESCRIPTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/spec.h"

namespace quern {

// Bits of the word that a spec's keys pack into; 0 where they do not fit one.
uint32_t WordBits(const KernelSpec& spec);

// Which entry points a kernel of this descriptor has (join_entry_points.def).
struct NeededEntryPoints {
#define QUERN_JOIN_ENTRY(field, result, parameters) bool field;
#include "runtime/abi/join_entry_points.def"
};
NeededEntryPoints EntryPointsOf(const QuernJoinDescriptor& descriptor);

// A descriptor with the fields that it points to.
class JoinDescriptor {
 public:
  // Lays out the tuple: keys (as one word where they fit one) first, then build payload, in each part the widest first,
  // null bits last. inline_key_bytes: of a key of variable length that a tuple holds itself; 12 to 60, 4 more than a
  // multiple of 8.
  explicit JoinDescriptor(const KernelSpec& spec, uint32_t inline_key_bytes = kInlineStringBytes);
  JoinDescriptor(const JoinDescriptor&) = delete;
  JoinDescriptor& operator=(const JoinDescriptor&) = delete;

  const QuernJoinDescriptor* get() const { return &descriptor_; }
  QuernJoinDescriptor* mutable_tuning() { return &descriptor_; }
  const KernelSpec& spec() const { return spec_; }

  // The tuple as a table: offset, bytes, field, type. What `quern dump layout` prints.
  std::string Print() const;

 private:
  KernelSpec spec_;
  std::vector<QuernField> keys_, build_, probe_, build_residual_, probe_residual_;
  QuernJoinDescriptor descriptor_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_DESCRIPTOR_H_
