// SPDX-License-Identifier: Apache-2.0
// The generic sort kernel: the template ir-templates/sort.cc, compiled natively, with holes that interpret the
// descriptor. Tuples use the join's holes (generic_join.cc). Encoding processes one part after the other, and
// dispatches once per batch and part:
//
//     keys=i32:nullable,utf8       null part of keys[0]    EncodeNulls
//                                  value part of keys[0]   switch (storage) EncodeColumn<k32>
//                                  bytes of keys[1]        switch (storage) EncodeBytes<kVar32>, all parts in one call
//
// This costs little compared to the loops. Comparing two tuples dispatches once per key; a compiled kernel saves that.
#include "ir-templates/generic/generic_sort.h"

#include "ir-templates/holes.h"
#include "runtime/blocks/encode.h"
#include "runtime/blocks/storage_dispatch.h"

extern "C" {
#define QUERN_SORT_ENTRY(field, result, parameters) result quern_sort_##field parameters;
#include "runtime/abi/sort_entry_points.def"
}

namespace quern {
namespace {

namespace b = blocks;

// The rows of one batch.
struct BatchRows {
  uint64_t first;
  const uint32_t* rows;
  uint32_t n;
};

// Encodes those parts of a batch that lie in words below num_words.
class BatchEncoder {
 public:
  BatchEncoder(const QuernSortDescriptor* descriptor, const QuernColumn* keys, const BatchRows& batch,
               uint64_t* const* words, uint32_t num_words, uint32_t* incomplete)
      : descriptor_(descriptor),
        keys_(keys),
        batch_(batch),
        words_(words),
        num_words_(num_words),
        incomplete_(incomplete) {}

  void EncodeAll() {
    for (uint32_t k = 0; k < descriptor_->num_keys; ++k) {
      const QuernSortKey& key = descriptor_->keys[k];
      if (descriptor_->parts[key.first_part].word >= num_words_) return;
      EncodeKey(k, key);
    }
  }

 private:
  void EncodeKey(uint32_t k, const QuernSortKey& key) {
    const QuernColumn* column = &keys_[k];
    const uint32_t* rows = batch_.rows;
    if (key.index_storage != kNoStorage) {
      TranslateRows(key.index_storage, column, batch_.first, rows, batch_.n, translated_);
      column = column->dictionary;
      rows = translated_;
    }
    for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
      const QuernSortPart& part = descriptor_->parts[p];
      if (part.word >= num_words_) return;
      if (part.kind == kNullPart) {
        b::EncodeNulls(&keys_[k], batch_.first, batch_.rows, batch_.n, words_[part.word], !part.begins_word, part.shift,
                       !key.nulls_first);
      } else if (part.kind == kBytesPart) {
        return EncodeBytes(k, key, column, rows);  // all parts at once
      } else {
        EncodeNumber(key, part, column, rows);
      }
    }
  }

  void EncodeNumber(const QuernSortKey& key, const QuernSortPart& part, const QuernColumn* column,
                    const uint32_t* rows) {
    const auto encode = [&](auto encode_column) {
      encode_column(column, batch_.first, rows, batch_.n, words_[part.word], !part.begins_word, key.nullable,
                    part.shift, SortFlip(&key, &part));
    };
    DispatchStorage(key.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      if constexpr (kStorage == k128) {
        if (part.kind == kHighPart) encode(b::EncodeColumn<k128, kHighPart>);
        else encode(b::EncodeColumn<k128, kValuePart>);
      } else if constexpr (b::HasLanes(kStorage) || kStorage == kBit) {
        encode(b::EncodeColumn<kStorage, kValuePart>);
      }
    });
  }

  void EncodeBytes(uint32_t k, const QuernSortKey& key, const QuernColumn* column, const uint32_t* rows) {
    DispatchStorage(key.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      if constexpr (b::IsVariableStorage(kStorage) || kStorage == kFixed) {
        b::EncodeBytes<kStorage>(descriptor_, k, column, batch_.first, rows, batch_.n, words_, num_words_, incomplete_);
      }
    });
  }

  const QuernSortDescriptor* descriptor_;
  const QuernColumn* keys_;
  BatchRows batch_;
  uint64_t* const* words_;
  uint32_t num_words_;
  uint32_t* incomplete_;
  uint32_t translated_[kMaxBatchRows];
};

bool IsNull(const QuernField& field, const uint8_t* tuple) { return (tuple[field.null_offset] & field.null_mask) != 0; }

int32_t CompareKey(const QuernSortKey& key, const QuernField& field, const uint8_t* left, const uint8_t* right) {
  if (field.null_mask != 0) {
    const bool left_is_null = IsNull(field, left), right_is_null = IsNull(field, right);
    if (left_is_null && right_is_null) return 0;
    if (left_is_null || right_is_null) return left_is_null == key.nulls_first ? -1 : 1;
  }
  const uint8_t* x = (key.descending ? right : left) + field.tuple_offset;
  const uint8_t* y = (key.descending ? left : right) + field.tuple_offset;
  return DispatchStorage(key.storage, [&](auto tag) {
    return b::OrderField<decltype(tag)::value>(x, y, key.is_signed, key.rule, key.width_bytes);
  });
}

}  // namespace

QuernSortEntryPoints GenericSortKernel() {
  return {
#define QUERN_SORT_ENTRY(field, result, parameters) quern_sort_##field,
#include "runtime/abi/sort_entry_points.def"
  };
}

}  // namespace quern

using namespace quern;  // NOLINT: the holes below are C symbols that use the code above

extern "C" {

void quern_hole_encode_rows(const QuernSortDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                            const uint32_t* rows, uint32_t n, uint64_t* const* words, uint32_t* incomplete) {
  BatchEncoder(descriptor, keys, {first, rows, n}, words, descriptor->num_words, incomplete).EncodeAll();
}

void quern_hole_encode_leading_rows(const QuernSortDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                                    const uint32_t* rows, uint32_t n, uint64_t* lead) {
  uint32_t incomplete = 0;
  uint64_t* const words[] = {lead};
  BatchEncoder(descriptor, keys, {first, rows, n}, words, 1, &incomplete).EncodeAll();
}

int32_t quern_hole_compare_tuples(const QuernSortDescriptor* descriptor, const uint8_t* a, const uint8_t* b) {
  for (uint32_t k = 0; k < descriptor->num_keys; ++k) {
    const QuernSortKey& key = descriptor->keys[k];
    if (key.field == kNoField) continue;
    const int32_t order = CompareKey(key, *SortFieldOf(descriptor, &key), a, b);
    if (order != 0) return order;
  }
  return 0;
}

}  // extern "C"
