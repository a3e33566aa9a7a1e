// SPDX-License-Identifier: Apache-2.0
// The bytes of strings that lie outside their tuples, which point to them.
#ifndef QUERN_RUNTIME_JOIN_TUPLE_STRINGS_H_
#define QUERN_RUNTIME_JOIN_TUPLE_STRINGS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"

namespace quern {

// *Threads*: any.
class TupleStrings {
 public:
  // layout: lives as long.
  explicit TupleStrings(const QuernRowLayout& layout);

  // Whether tuples of this layout may point to strings.
  bool any() const { return !fields_.empty(); }
  // The bytes to which a tuple points.
  uint64_t BytesOf(const uint8_t* tuple) const;
  // Copies these bytes, one string behind the other, and returns their end.
  uint8_t* CopyTo(const uint8_t* tuple, uint8_t* to) const;
  // Lets a tuple point to its strings among `num_bytes` bytes that CopyTo has written. *Errors*: DataLoss where its
  // strings have another length together; the tuple is then not to be used.
  absl::Status PointTo(const uint8_t* bytes, uint64_t num_bytes, uint8_t* tuple) const;

 private:
  struct Field {
    uint32_t offset;
    uint32_t inline_bytes;  // that the field holds itself
    uint32_t null_offset;
    uint8_t null_mask;  // 0: never null
  };
  void Add(const QuernField& field);
  // Calls f(field, length) for each string outside the tuple.
  template <class F>
  void ForEach(const uint8_t* tuple, F&& f) const;

  std::vector<Field> fields_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TUPLE_STRINGS_H_
