// SPDX-License-Identifier: Apache-2.0
// A kernel stores a long string as its length, 4 bytes and an address in the batch (StringRef, kernel_abi.h). A join
// keeps the batches; an aggregation of a billion rows into a thousand groups must not, so it copies the bytes of new
// groups.
#include "runtime/aggregate/tables/stored_keys.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

constexpr uint64_t kSmallestPiece = 1024, kLargestPiece = uint64_t{256} << 10;

template <Storage kStorage>
void CountSpaces(const QuernColumn& key, const uint32_t* rows, uint32_t n, uint32_t tuple_bytes, uint8_t* field) {
  for (uint32_t i = 0; i < n; ++i) {
    if (!blocks::IsValid(&key, rows[i])) continue;
    const blocks::Bytes whole = blocks::ReadBytes<kStorage>(&key, rows[i], 0, 0);
    blocks::Store(field + uint64_t{i} * tuple_bytes, whole.length - blocks::TrimSpaces(whole).length);
  }
}

uint64_t HashInputOf(const QuernField& key, const uint8_t* field, const blocks::HashSecret& secret) {
  if (blocks::IsVariableStorage(key.storage)) {
    const blocks::Bytes s = blocks::BytesOf(field, key.width_bytes);
    if ((key.rule & kWeighsEquality) != 0) return blocks::HashCollated(s, key.rule, secret);
    return blocks::HashBytes(s.data, s.length, secret);
  }
  const uint32_t bytes = key.storage == kFixed ? key.width_bytes : StorageFieldBytes(key.storage);
  return blocks::HashBytes(field, bytes, secret);
}

}  // namespace

void HashStoredKeys(const QuernRowLayout& group, uint8_t* const* tuples, uint32_t n, const blocks::HashSecret& secret,
                    uint64_t* hashes) {
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t hash = 0;
    for (uint32_t k = 0; k < group.num_keys; ++k) {
      const QuernField& key = group.keys[k];
      const bool is_null = (tuples[i][key.null_offset] & key.null_mask) != 0;
      const uint64_t input = is_null ? blocks::kNullInput : HashInputOf(key, tuples[i] + key.tuple_offset, secret);
      hash = blocks::Combine(hash, input, secret);
    }
    hashes[i] = hash;
  }
}

void StoreKeys(const GroupContext& context, const QuernColumn* keys, const uint32_t* rows, uint32_t n,
               uint8_t* tuples) {
  const QuernRowLayout& group = *context.descriptor->group();
  context.entry_points.Now().store(&group, keys, 0, rows, n, tuples);
  for (size_t k = 0; k < group.num_keys; ++k) {
    const uint32_t offset = context.descriptor->spaces_offset(k);
    if (offset == 0) continue;
    DispatchStorage(group.keys[k].storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      if constexpr (blocks::IsVariableStorage(kStorage))
        CountSpaces<kStorage>(keys[k], rows, n, group.tuple_bytes, tuples + offset);
    });
  }
}

KeyBytes::KeyBytes(const GroupContext& context)
    : descriptor_(context.descriptor), arena_(context.budget, context.options.huge_pages, Contents::kAnything) {}

absl::StatusOr<uint8_t*> KeyBytes::Take(uint32_t bytes) {
  if (bytes > left_bytes_) {
    const uint64_t piece = std::max<uint64_t>(bytes, std::clamp(arena_.bytes(), kSmallestPiece, kLargestPiece));
    QUERN_ASSIGN_OR_RETURN(end_, arena_.Allocate(piece));
    left_bytes_ = piece;
  }
  left_bytes_ -= bytes;
  end_ += bytes;
  return end_ - bytes;
}

absl::Status KeyBytes::Keep(uint8_t* tuples, uint32_t n) {
  const QuernRowLayout& group = *descriptor_->group();
  if (group.packed_bytes != 0) return absl::OkStatus();
  for (uint32_t k = 0; k < group.num_keys; ++k) {
    const QuernField& key = group.keys[k];
    if (!blocks::IsVariableStorage(key.storage)) continue;
    for (uint32_t i = 0; i < n; ++i) {
      uint8_t* tuple = tuples + uint64_t{i} * group.tuple_bytes;
      if ((tuple[key.null_offset] & key.null_mask) != 0) continue;
      const blocks::Bytes bytes = blocks::BytesOf(tuple + key.tuple_offset, key.width_bytes);
      if (bytes.length <= blocks::InlineBytes(key.width_bytes)) continue;
      QUERN_ASSIGN_OR_RETURN(uint8_t* copy, Take(bytes.length));
      std::memcpy(copy, bytes.data, bytes.length);
      blocks::Store(tuple + key.tuple_offset + 8, copy);
    }
  }
  return absl::OkStatus();
}

}  // namespace quern
