// SPDX-License-Identifier: Apache-2.0
// Where the keys and fields of a tuple lie, whichever operator keeps it: the rows of a join's build side, the groups of
// an aggregation, the rows of a sort. row_layout.cc shows an example.
#ifndef QUERN_RUNTIME_ROWS_ROW_LAYOUT_H_
#define QUERN_RUNTIME_ROWS_ROW_LAYOUT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/spec.h"

namespace quern {

constexpr uint32_t kDefaultBatchRows = 1024;

bool IsUnsigned(TypeId id);
uint32_t RoundUp(uint32_t n, uint32_t multiple);

// A column's field, not yet placed.
QuernField MakeField(const ColumnType& type, Storage storage);
uint32_t FieldBytes(const QuernField& field);

// Bits of the word into which keys pack; 0 where they do not fit one word.
uint32_t WordBits(std::span<const KeySpec> keys);

// Places the parts of a tuple, one after the other.
struct TuplePlacer {
  uint32_t end = 0;
  uint32_t alignment = 1;
  uint32_t num_null_bits = 0;
  uint32_t num_flag_bytes = 0;

  void PlacePackedKey(uint32_t bytes) { end = alignment = bytes; }
  // Places the widest fields first, so that natural alignment costs padding only between parts; fields of equal width
  // keep the given order.
  void Place(std::vector<QuernField>* fields);
  // Places a null bit in the bytes that begin at `end`; `end` must not move afterwards.
  void PlaceNullBit(QuernField* field);
  // Places a byte behind all null bits, none of which may follow; returns its offset. It is zeroed as they are.
  uint32_t PlaceFlag() { return end + num_null_bit_bytes() + num_flag_bytes++; }
  uint32_t num_null_bit_bytes() const { return (num_null_bits + 7) / 8; }
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

// Makes a row layout and owns the fields that it points to. An operator calls what its tuples have, in this order, and
// may place parts of its own in between, which no QuernRowLayout knows of:
//
//     TuplePlacer placer;
//     rows.PlaceKeys(spec.keys, kInlineStringBytes, &placer);
//     rows.PlaceFields(fields, num_output_fields, &placer);
//     rows.PlaceNullBits(/*of_unequal_nulls=*/false, &placer);
//     rows.Finish(placer);
class RowLayout {
 public:
  // `layout` is all zero, lies beside this object and lives as long.
  explicit RowLayout(QuernRowLayout* layout) : layout_(*layout) {}
  RowLayout(const RowLayout&) = delete;
  RowLayout& operator=(const RowLayout&) = delete;

  // The keys, as one word where they fit. inline_key_bytes: how many bytes of a string the tuple itself holds; 12 to
  // 60, 4 more than a multiple of 8.
  void PlaceKeys(const std::vector<KeySpec>& keys, uint32_t inline_key_bytes, TuplePlacer* placer);
  // The other fields; the first `num_output` are columns of a result.
  void PlaceFields(std::vector<QuernField> fields, uint32_t num_output, TuplePlacer* placer);
  // A bit for each nullable field, and for each nullable key that is not packed. A key whose nulls equal nothing has
  // one only if `of_unequal_nulls`: if such rows are stored, too.
  void PlaceNullBits(bool of_unequal_nulls, TuplePlacer* placer);
  // The tuple ends here, with its null bits and flags. Tuning has its defaults.
  void Finish(const TuplePlacer& placer);

  const std::vector<QuernField>& keys() const { return keys_; }
  const std::vector<QuernField>& fields() const { return fields_; }

  // Adds the lines of the keys, of these types, and names their null bits.
  void AddKeyLines(const std::vector<KeySpec>& keys, std::vector<LayoutLine>* lines, LayoutLine* null_bits) const;

 private:
  QuernRowLayout& layout_;
  std::vector<QuernField> keys_, fields_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ROW_LAYOUT_H_
