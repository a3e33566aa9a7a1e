// SPDX-License-Identifier: Apache-2.0
// A field of a string holds its length, and the string itself where that is short; else four bytes of it and an
// address. For keys=utf8 build=utf8 and the row ("a key of 20 letters.", "short"):
//
//     tuple    | 20 | a ke | address ──> "a key of 20 letters."  | 5 | short |
//     copied   a key of 20 letters.
#include "runtime/join/tuple_strings.h"

#include <cstring>
#include <string>

#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint32_t kAddressOffset = offsetof(StringRef, bytes);

}  // namespace

TupleStrings::TupleStrings(const QuernRowLayout& layout) {
  for (uint32_t k = 0; k < layout.num_keys && layout.packed_bytes == 0; ++k) Add(layout.keys[k]);
  for (uint32_t f = 0; f < layout.num_fields; ++f) Add(layout.fields[f]);
}

void TupleStrings::Add(const QuernField& field) {
  if (!blocks::IsVariableStorage(field.storage)) return;
  fields_.push_back({field.tuple_offset, blocks::InlineBytes(field.width_bytes), field.null_offset, field.null_mask});
}

template <class F>
void TupleStrings::ForEach(const uint8_t* tuple, F&& f) const {
  for (const Field& field : fields_) {
    if ((tuple[field.null_offset] & field.null_mask) != 0) continue;
    const auto length = blocks::Load<uint32_t>(tuple + field.offset);
    if (length > field.inline_bytes) f(field, length);
  }
}

uint64_t TupleStrings::BytesOf(const uint8_t* tuple) const {
  uint64_t bytes = 0;
  ForEach(tuple, [&](const Field&, uint32_t length) { bytes += length; });
  return bytes;
}

uint8_t* TupleStrings::CopyTo(const uint8_t* tuple, uint8_t* to) const {
  ForEach(tuple, [&](const Field& field, uint32_t length) {
    std::memcpy(to, blocks::Load<const uint8_t*>(tuple + field.offset + kAddressOffset), length);
    to += length;
  });
  return to;
}

absl::Status TupleStrings::PointTo(const uint8_t* bytes, uint64_t num_bytes, uint8_t* tuple) const {
  if (const uint64_t expected = BytesOf(tuple); expected != num_bytes) {
    return absl::DataLossError("spilled rows: a tuple is not what was written: " + std::to_string(num_bytes) +
                               " bytes of strings; accepted: " + std::to_string(expected));
  }
  ForEach(tuple, [&](const Field& field, uint32_t length) {
    blocks::Store(tuple + field.offset + kAddressOffset, bytes);
    bytes += length;
  });
  return absl::OkStatus();
}

}  // namespace quern
