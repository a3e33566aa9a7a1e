// SPDX-License-Identifier: Apache-2.0
// Column types, storages and collations as enums with their tables (column_types.def, storages.def, collations.def).
#ifndef QUERN_RUNTIME_COLUMN_TYPE_H_
#define QUERN_RUNTIME_COLUMN_TYPE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/kernel_abi.h"

namespace quern {

enum class TypeId : uint8_t {
#define QUERN_COLUMN_TYPE(Id, text, storage, width_bytes, key_storage, arrow) Id,
#include "runtime/column_types.def"
};

// A row of collations.def, or from kFirstIcuCollation on a collation of ICU, whose number is made of its name, so that it is the same in
// every process.
enum Collation : uint32_t {
#define QUERN_COLLATION(Id, text, pad, equality, order) Id,
#include "runtime/collations.def"
  kFirstIcuCollation = 1u << 26,
};

enum class PadRule : uint8_t { kNoPad, kPads, kTrims };
// What characters weigh (collation_weights.h). kUca900Tidb: as TiDB has them, which differ in 880 code points from MySQL's.
enum class Weights : uint8_t { kBytes, kAsciiUpper, kLatin1, kGeneral, kUca400, kUca520, kUca900, kUca900Tidb, kIcu };

// One row of column_types.def.
struct TypeRow {
  TypeId id;
  std::string_view text;
  Storage storage;
  uint32_t width_bytes;
  Storage key_storage;
  std::string_view arrow;
};

// One row of collations.def.
struct CollationRow {
  Collation id;
  std::string_view text;
  PadRule pad;
  Weights equality;
  Weights order;
};

std::span<const TypeRow> AllTypes();
std::span<const CollationRow> AllCollations();
const TypeRow& RowOf(TypeId id);
const CollationRow& RowOf(Collation id);
// How kernels read its strings.
CollationRule RuleOf(Collation id);

// The name of a storage ("64", "var32") and the bytes of its field in a tuple (0: a parameter of the type).
std::string_view StorageText(Storage storage);
uint32_t StorageFieldBytes(Storage storage);

// True for the storages of strings and binaries of any length, the only ones that take a collation.
bool IsVariable(Storage storage);

// The type of one column: what a kernel has to know to read it.
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

#endif  // QUERN_RUNTIME_COLUMN_TYPE_H_
