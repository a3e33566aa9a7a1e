// SPDX-License-Identifier: Apache-2.0
// Column types and storages as enums with their tables (column_types.def, storages.def).
#ifndef QUERN_RUNTIME_SPEC_COLUMN_TYPE_H_
#define QUERN_RUNTIME_SPEC_COLUMN_TYPE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/abi/kernel_abi.h"
#include "runtime/collation/collation_id.h"

namespace quern {

enum class TypeId : uint8_t {
#define QUERN_COLUMN_TYPE(Id, text, storage, width_bytes, key_storage, arrow) Id,
#include "runtime/spec/column_types.def"
};

// One row of column_types.def.
struct TypeRow {
  TypeId id;
  std::string_view text;
  Storage storage;
  uint32_t width_bytes;
  Storage key_storage;
  std::string_view arrow;
};

std::span<const TypeRow> AllTypes();
const TypeRow& RowOf(TypeId id);

inline bool IsInteger(TypeId id) { return id >= TypeId::kI8 && id <= TypeId::kU64; }
inline bool IsSigned(TypeId id) { return id >= TypeId::kI8 && id <= TypeId::kI64; }  // of integers
inline bool IsFloat(TypeId id) { return id == TypeId::kF32 || id == TypeId::kF64; }
inline bool IsDecimal(TypeId id) { return id >= TypeId::kDecimal32 && id <= TypeId::kDecimal128; }
// The most digits that values of a decimal type have.
inline uint8_t MaxDigitsOf(TypeId id) { return id == TypeId::kDecimal32 ? 9 : id == TypeId::kDecimal64 ? 18 : 38; }

// The name of a storage ("64", "var32") and the bytes of its field in a tuple (0: a parameter of the type).
std::string_view StorageText(Storage storage);
uint32_t StorageFieldBytes(Storage storage);

// True for the storages of strings and binaries of any length, the only ones that take a collation.
bool IsVariable(Storage storage);

// The type of one column: everything that a kernel needs to read it.
struct ColumnType {
  TypeId id = TypeId::kI64;     // of the values
  bool is_dictionary = false;   // values are reached through indices
  TypeId index = TypeId::kI32;  // dictionary: i8 .. u64
  uint32_t width_bytes = 0;     // fixed_binary(n): n
  Collation collation = kCollationBinary;
  bool nullable = false;

  bool operator==(const ColumnType&) const = default;
};

// "utf8(utf8mb4_bin)", "dictionary(i32,utf8)", "fixed_binary(16)": a type without its ':' flags.
std::string PrintType(const ColumnType& type);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_COLUMN_TYPE_H_
