// SPDX-License-Identifier: Apache-2.0
// Where the fields of a tuple lie. Joins and aggregations lay out their tuples by the same rules (join_descriptor.cc
// shows an example).
#ifndef QUERN_RUNTIME_ROWS_TUPLE_LAYOUT_H_
#define QUERN_RUNTIME_ROWS_TUPLE_LAYOUT_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/spec.h"

namespace quern {

constexpr uint32_t kDefaultBatchRows = 1024;
constexpr uint32_t kDefaultGroupRows = 64;

bool IsUnsigned(TypeId id);
uint32_t RoundUp(uint32_t n, uint32_t multiple);

// A column's field, not yet placed.
QuernField MakeField(const ColumnType& type, Storage storage);
// The field of a key; inline_key_bytes: how many bytes of a string the tuple itself holds.
QuernField MakeKey(const KeySpec& key, uint32_t inline_key_bytes);
uint32_t FieldBytes(const QuernField& field);

// Bits of the word into which keys pack; 0 where they do not fit one word.
uint32_t WordBits(std::span<const KeySpec> keys);
// Assigns each key its bits of the word; returns the sign bit of a single signed key, else 0.
uint64_t PackKeys(const std::vector<KeySpec>& specs, std::vector<QuernField>* keys);
// "keys[0] from bit 0, keys[1] from bit 32 (null: bit 48)"
std::string WordText(const std::vector<QuernField>& keys);

// Lays out tuples field by field.
struct TupleLayout {
  uint32_t end = 0;
  uint32_t alignment = 1;
  uint32_t num_null_bits = 0;

  void PlacePackedKey(uint32_t bytes) { end = alignment = bytes; }
  // Places the widest fields first, so that natural alignment costs padding only between parts; fields of equal width
  // keep the given order.
  void Place(std::initializer_list<std::vector<QuernField>*> parts);
  // Places a null bit in the bytes that begin at `end`; `end` must not move afterwards.
  void PlaceNullBit(QuernField* field);
};

// One line of a printed layout.
struct LayoutLine {
  uint32_t offset;
  uint32_t bytes;
  std::string field;
  std::string type;
  std::string storage;
};
std::string Numbered(std::string_view name, size_t i);
LayoutLine MakeLine(const QuernField& field, const ColumnType& type, std::string name);
void AddNullBit(const QuernField& field, const std::string& name, LayoutLine* null_bits);
std::string PrintTable(const std::vector<LayoutLine>& lines);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_TUPLE_LAYOUT_H_
