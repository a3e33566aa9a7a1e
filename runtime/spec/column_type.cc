// SPDX-License-Identifier: Apache-2.0
// The .def tables as arrays. A type is one row: `utf8` is stored as var32 and has Arrow's format `u`. `f64` lies in a
// column as 64 plain bits, but a key is read as `f64`, so that -0 equals +0. Rows are in the order of their enum, which
// makes RowOf an index.
//
// A type's text consists of its row and its parameters, from the inside out: {id = kUtf8, collation =
// kCollationUtf8mb4Bin, is_dictionary, index = kI32} prints as `dictionary(i32,utf8(utf8mb4_bin))`. The `binary`
// collation is the default and is not printed.
#include "runtime/spec/column_type.h"

#include <cstddef>
#include <iterator>

namespace quern {
namespace {

constexpr TypeRow kTypes[] = {
#define QUERN_COLUMN_TYPE(Id, text, storage, width_bytes, key_storage, arrow) \
  {TypeId::Id, text, storage, width_bytes, key_storage, arrow},
#include "runtime/spec/column_types.def"
};

struct StorageRow {
  Storage id;
  std::string_view text;
  uint32_t field_bytes;
};

constexpr StorageRow kStorages[] = {
#define QUERN_STORAGE(Id, text, field_bytes) {Id, text, field_bytes},
#include "runtime/abi/storages.def"
};

template <class Row, size_t kSize>
constexpr bool IsInOrder(const Row (&rows)[kSize]) {
  for (size_t i = 0; i < kSize; ++i)
    if (static_cast<size_t>(rows[i].id) != i) return false;
  return true;
}
static_assert(IsInOrder(kTypes) && IsInOrder(kStorages));

}  // namespace

std::span<const TypeRow> AllTypes() { return kTypes; }
const TypeRow& RowOf(TypeId id) { return kTypes[static_cast<size_t>(id)]; }

std::string_view StorageText(Storage storage) {
  return storage < std::size(kStorages) ? kStorages[storage].text : "none";
}
uint32_t StorageFieldBytes(Storage storage) {
  return storage < std::size(kStorages) ? kStorages[storage].field_bytes : 0;
}

bool IsVariable(Storage storage) { return storage == kVar32 || storage == kVar64 || storage == kView; }

std::string PrintType(const ColumnType& type) {
  std::string text(RowOf(type.id).text);
  if (type.id == TypeId::kFixedBinary) text += "(" + std::to_string(type.width_bytes) + ")";
  if (type.collation != kCollationBinary) text += "(" + std::string(RowOf(type.collation).text) + ")";
  if (!type.is_dictionary) return text;
  return "dictionary(" + std::string(RowOf(type.index).text) + "," + text + ")";
}

}  // namespace quern
