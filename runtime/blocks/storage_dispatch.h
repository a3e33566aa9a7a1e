// SPDX-License-Identifier: Apache-2.0
// Selects code for a field's storage: a switch over instantiations. Called once per batch and column.
#ifndef QUERN_RUNTIME_BLOCKS_STORAGE_DISPATCH_H_
#define QUERN_RUNTIME_BLOCKS_STORAGE_DISPATCH_H_

#include "runtime/blocks/blocks.h"

namespace quern {

template <Storage kStorage>
struct StorageTag {
  static constexpr Storage value = kStorage;
};

// Calls f(StorageTag<storage>{}) for the storage of a key or of a value; rowid is neither.
template <class F>
inline auto DispatchStorage(Storage storage, F&& f) {
  switch (storage) {
    case kBit: return f(StorageTag<kBit>{});
    case k8: return f(StorageTag<k8>{});
    case k16: return f(StorageTag<k16>{});
    case k32: return f(StorageTag<k32>{});
    case k64: return f(StorageTag<k64>{});
    case k128: return f(StorageTag<k128>{});
    case kF32: return f(StorageTag<kF32>{});
    case kF64: return f(StorageTag<kF64>{});
    case kFixed: return f(StorageTag<kFixed>{});
    case kVar32: return f(StorageTag<kVar32>{});
    case kVar64: return f(StorageTag<kVar64>{});
    case kView: return f(StorageTag<kView>{});
    case kRowId:
    case kNoStorage: break;
  }
  __builtin_unreachable();
}

// The value's row in its dictionary, for an index of any storage; and the same for many rows, with nulls as kNullRow.
inline uint32_t TranslateRow(Storage index, const QuernColumn* column, uint32_t row) {
  if (index == k8) return blocks::DictionaryRow<uint8_t>(column, row);
  if (index == k16) return blocks::DictionaryRow<uint16_t>(column, row);
  if (index == k32) return blocks::DictionaryRow<uint32_t>(column, row);
  return blocks::DictionaryRow<uint64_t>(column, row);
}

inline void TranslateRows(Storage index, const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                          uint32_t* out) {
  if (index == k8) return blocks::DictionaryRows<uint8_t>(column, first, rows, n, out);
  if (index == k16) return blocks::DictionaryRows<uint16_t>(column, first, rows, n, out);
  if (index == k32) return blocks::DictionaryRows<uint32_t>(column, first, rows, n, out);
  blocks::DictionaryRows<uint64_t>(column, first, rows, n, out);
}

}  // namespace quern

#endif  // QUERN_RUNTIME_BLOCKS_STORAGE_DISPATCH_H_
