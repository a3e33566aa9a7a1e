// SPDX-License-Identifier: Apache-2.0
// Columns for tests of filters, and the plainest evaluation of a condition: three-valued, row by row.
#ifndef QUERN_TEST_UNIT_RUNTIME_FILTER_FILTER_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_FILTER_FILTER_ROWS_H_

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/collation/collation.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/spec.h"
#include "test/templates/guarded_buffer.h"

namespace quern::test {

// A value, in the member for its column's type.
struct FilterCell {
  bool is_null = false;
  __int128 number = 0;
  double real = 0;
  std::string text = {};
};

// A column whose buffers have exactly the lengths that the ABI promises and end at inaccessible pages.
struct FilterColumn {
  ColumnType type;
  std::vector<FilterCell> cells;
  std::vector<GuardedBuffer> buffers;
  std::vector<const uint8_t*> data;
  std::unique_ptr<FilterColumn> dictionary;
  QuernColumn column = {};

  template <class T>
  const void* Keep(const std::vector<T>& values, Guard guard) {
    buffers.push_back(GuardedBuffer::Of(values, guard));
    return buffers.back().data();
  }
};

inline blocks::Bytes BytesOfText(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), static_cast<uint32_t>(s.size())};
}

template <class T>
const void* KeepNumbers(const std::vector<FilterCell>& cells, Guard guard, FilterColumn* column) {
  std::vector<T> values;
  for (const FilterCell& cell : cells) {
    if constexpr (std::is_floating_point_v<T>) values.push_back(static_cast<T>(cell.is_null ? 42 : cell.real));
    else values.push_back(static_cast<T>(cell.is_null ? 42 : cell.number));
  }
  return column->Keep(values, guard);
}

template <class Offset>
void KeepVar(const std::vector<FilterCell>& cells, Guard guard, FilterColumn* column) {
  std::vector<Offset> offsets = {0};
  std::vector<char> bytes;
  for (const FilterCell& cell : cells) {
    if (!cell.is_null) bytes.insert(bytes.end(), cell.text.begin(), cell.text.end());
    offsets.push_back(static_cast<Offset>(bytes.size()));
  }
  column->column.values = column->Keep(bytes, guard);
  column->column.offsets = column->Keep(offsets, guard);
}

inline void KeepViews(const std::vector<FilterCell>& cells, Guard guard, FilterColumn* column) {
  std::vector<char> bytes;
  std::vector<uint8_t> views(cells.size() * 16, 0xee);
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string& text = cells[i].text;
    uint8_t* view = views.data() + i * 16;
    if (cells[i].is_null) continue;
    const auto length = static_cast<uint32_t>(text.size());
    std::memset(view, 0, 16);
    std::memcpy(view, &length, 4);
    std::memcpy(view + 4, text.data(), std::min<size_t>(length, length <= 12 ? 12 : 4));
    if (length <= 12) continue;
    const auto offset = static_cast<uint32_t>(bytes.size());
    std::memcpy(view + 12, &offset, 4);
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  column->column.values = column->Keep(views, guard);
  column->data.push_back(static_cast<const uint8_t*>(column->Keep(bytes, guard)));
  column->column.buffers = column->data.data();
}

inline void KeepBits(const std::vector<FilterCell>& cells, Guard guard, FilterColumn* column) {
  std::vector<uint8_t> bits((cells.size() + column->column.bit_offset + 7) / 8);
  for (size_t i = 0; i < cells.size(); ++i)
    blocks::SetBitTo(bits.data(), i + column->column.bit_offset, cells[i].number != 0);
  column->column.values = column->Keep(bits, guard);
}

inline void KeepFixed(const std::vector<FilterCell>& cells, Guard guard, FilterColumn* column) {
  std::vector<char> bytes;
  for (const FilterCell& cell : cells) {
    std::string text = cell.text;
    text.resize(column->type.width_bytes, cell.is_null ? 'x' : '\0');
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  column->column.values = column->Keep(bytes, guard);
}

// `cells` as a column of the type; a dictionary holds each distinct value once, and null rows have the index 77.
inline std::unique_ptr<FilterColumn> MakeFilterColumn(const ColumnType& type, std::vector<FilterCell> cells,
                                                      Guard guard) {
  auto made = std::make_unique<FilterColumn>();
  FilterColumn* column = made.get();
  column->type = type;
  column->cells = std::move(cells);
  column->column.bit_offset = type.nullable ? 5 : 0;
  const std::vector<FilterCell>& c = column->cells;
  if (type.nullable) {
    std::vector<uint8_t> bits((c.size() + 5 + 7) / 8);
    for (size_t i = 0; i < c.size(); ++i) blocks::SetBitTo(bits.data(), i + 5, !c[i].is_null);
    column->column.validity = static_cast<const uint8_t*>(column->Keep(bits, guard));
  }
  if (type.is_dictionary) {
    ColumnType values = type;
    values.is_dictionary = values.nullable = false;
    std::vector<FilterCell> distinct, indices;
    for (const FilterCell& cell : c) {
      size_t at = 0;
      while (at < distinct.size() &&
             !(distinct[at].number == cell.number && distinct[at].text == cell.text &&
               std::bit_cast<uint64_t>(distinct[at].real) == std::bit_cast<uint64_t>(cell.real))) {
        ++at;
      }
      if (!cell.is_null && at == distinct.size()) distinct.push_back(cell);
      FilterCell index;
      index.number = cell.is_null ? 77 : static_cast<__int128>(at);
      indices.push_back(index);
    }
    column->dictionary = MakeFilterColumn(values, distinct, guard);
    column->column.dictionary = &column->dictionary->column;
    column->column.values = RowOf(type.index).storage == k8    ? KeepNumbers<uint8_t>(indices, guard, column)
                            : RowOf(type.index).storage == k16 ? KeepNumbers<uint16_t>(indices, guard, column)
                            : RowOf(type.index).storage == k32 ? KeepNumbers<uint32_t>(indices, guard, column)
                                                               : KeepNumbers<uint64_t>(indices, guard, column);
    return made;
  }
  switch (RowOf(type.id).key_storage) {
    case kBit: KeepBits(c, guard, column); break;
    case k8: column->column.values = KeepNumbers<uint8_t>(c, guard, column); break;
    case k16: column->column.values = KeepNumbers<uint16_t>(c, guard, column); break;
    case k32: column->column.values = KeepNumbers<uint32_t>(c, guard, column); break;
    case k64: column->column.values = KeepNumbers<uint64_t>(c, guard, column); break;
    case k128: column->column.values = KeepNumbers<__int128>(c, guard, column); break;
    case kF32: column->column.values = KeepNumbers<float>(c, guard, column); break;
    case kF64: column->column.values = KeepNumbers<double>(c, guard, column); break;
    case kFixed: KeepFixed(c, guard, column); break;
    case kVar32: KeepVar<int32_t>(c, guard, column); break;
    case kVar64: KeepVar<int64_t>(c, guard, column); break;
    case kView: KeepViews(c, guard, column); break;
    case kRowId:
    case kNoStorage: break;
  }
  return made;
}

// ---- evaluation of a condition --------------------------------------------------------------------------------

enum class Truth : uint8_t { kFalse, kTrue, kUnknown };

inline Truth Not(Truth t) { return t == Truth::kUnknown ? t : t == Truth::kTrue ? Truth::kFalse : Truth::kTrue; }
inline Truth TruthOf(bool b) { return b ? Truth::kTrue : Truth::kFalse; }

// A string as code points; by_byte, and where bytes form no character, as bytes (from 0x200000 on).
inline std::vector<char32_t> UnitsOf(const std::string& s, bool by_byte) {
  std::vector<char32_t> units;
  for (size_t i = 0; i < s.size();) {
    const auto lead = static_cast<uint8_t>(s[i]);
    const size_t n = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    bool is_whole = !by_byte && lead >= 0xc2 && lead <= 0xf4 && i + n <= s.size();
    char32_t value = n == 2 ? lead & 31u : n == 3 ? lead & 15u : lead & 7u;
    for (size_t k = 1; is_whole && k < n; ++k) {
      is_whole = (static_cast<uint8_t>(s[i + k]) & 0xc0) == 0x80;
      value = value << 6 | (static_cast<uint8_t>(s[i + k]) & 63u);
    }
    is_whole = is_whole && !(n == 3 && (value < 0x800 || (value >= 0xd800 && value < 0xe000))) &&
               !(n == 4 && (value < 0x10000 || value > 0x10ffff));
    units.push_back(lead < 0x80 ? lead : is_whole ? value : 0x200000u + lead);
    i += is_whole ? n : 1;
  }
  return units;
}

// LIKE by recursion; kAny and kMany stand for '_' and '%'.
constexpr char32_t kAny = 0x300000, kMany = 0x300001;
inline bool IsLike(const char32_t* p, const char32_t* p_end, const char32_t* s, const char32_t* s_end,
                   CollationRule rule) {
  if (p == p_end) return s == s_end;
  if (*p == kMany) return IsLike(p + 1, p_end, s, s_end, rule) || (s != s_end && IsLike(p, p_end, s + 1, s_end, rule));
  if (s == s_end) return false;
  const bool weighs = (rule & kWeighsEquality) != 0 && *p < 0x200000 && *s < 0x200000;
  if (*p != kAny && *p != *s && !(weighs && MatchesCharacter(*p, *s, rule))) return false;
  return IsLike(p + 1, p_end, s + 1, s_end, rule);
}

inline bool IsLike(const std::string& pattern, const std::string& text, char32_t escape, const ColumnType& type) {
  const bool is_string = type.id == TypeId::kUtf8 || type.id == TypeId::kLargeUtf8 || type.id == TypeId::kUtf8View;
  const bool by_byte = !is_string && (type.collation == kCollationBinary || type.collation == kCollationTidbBinary);
  std::vector<char32_t> units;
  const std::vector<char32_t> raw = UnitsOf(pattern, by_byte && escape < 0x80), s = UnitsOf(text, by_byte);
  for (size_t i = 0; i < raw.size(); ++i) {
    if (escape != 0 && raw[i] == escape && i + 1 < raw.size()) units.push_back(raw[++i]);
    else units.push_back(raw[i] == '%' && escape != '%' ? kMany : raw[i] == '_' && escape != '_' ? kAny : raw[i]);
  }
  return IsLike(units.data(), units.data() + units.size(), s.data(), s.data() + s.size(), RuleOf(type.collation));
}

inline int OrderOf(const ColumnType& type, const FilterCell& a, const FilterCell& b) {
  if (type.id == TypeId::kF32 || type.id == TypeId::kF64) {
    if (std::isnan(a.real) || std::isnan(b.real))
      return static_cast<int>(std::isnan(a.real)) - static_cast<int>(std::isnan(b.real));
    return static_cast<int>(a.real > b.real) - static_cast<int>(a.real < b.real);
  }
  const Storage storage = RowOf(type.id).storage;
  const CollationRule rule = IsVariable(storage) ? RuleOf(type.collation) : 0;
  if (IsVariable(storage) || storage == kFixed)
    return quern::CompareStrings(BytesOfText(a.text), BytesOfText(b.text), rule);
  return static_cast<int>(a.number > b.number) - static_cast<int>(a.number < b.number);
}

inline FilterCell CellOf(const Literal& literal) { return {false, literal.number, literal.real, literal.bytes}; }

inline Truth LeafTruth(const Predicate& p, const FilterCell& a, const FilterCell& other) {
  if (p.kind == PredicateKind::kIsNull) return TruthOf(a.is_null != p.negated);
  if (a.is_null || (p.kind == PredicateKind::kCompareColumns && other.is_null)) return Truth::kUnknown;
  const auto order = [&](size_t i) { return OrderOf(p.column, a, CellOf(p.values[i])); };
  bool holds = false;
  switch (p.kind) {
    case PredicateKind::kCompare: return TruthOf(blocks::Holds(order(0), 0, static_cast<uint8_t>(p.op)));
    case PredicateKind::kCompareColumns:
      return TruthOf(blocks::Holds(OrderOf(p.column, a, other), 0, static_cast<uint8_t>(p.op)));
    case PredicateKind::kBetween: holds = order(0) >= 0 && order(1) <= 0; break;
    case PredicateKind::kIn:
      for (size_t i = 0; i < p.values.size(); ++i) holds |= order(i) == 0;
      break;
    case PredicateKind::kLike: holds = IsLike(p.values[0].bytes, a.text, p.escape, p.column); break;
    case PredicateKind::kAnd:
    case PredicateKind::kOr:
    case PredicateKind::kNot:
    case PredicateKind::kIsNull: break;
  }
  return TruthOf(holds != p.negated);
}

// The condition's columns are columns[*next], ..
inline Truth Evaluate(const Predicate& p, const std::vector<std::unique_ptr<FilterColumn>>& columns, size_t row,
                      size_t* next) {
  if (p.kind == PredicateKind::kNot) return Not(Evaluate(p.children[0], columns, row, next));
  if (p.kind == PredicateKind::kAnd || p.kind == PredicateKind::kOr) {
    const Truth deciding = p.kind == PredicateKind::kAnd ? Truth::kFalse : Truth::kTrue;
    Truth truth = Not(deciding);
    for (const Predicate& child : p.children) {
      const Truth t = Evaluate(child, columns, row, next);
      if (t == deciding || (t == Truth::kUnknown && truth != deciding)) truth = t;
    }
    return truth;
  }
  const FilterCell& a = columns[(*next)++]->cells[row];
  return LeafTruth(p, a, p.kind == PredicateKind::kCompareColumns ? columns[(*next)++]->cells[row] : a);
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_FILTER_FILTER_ROWS_H_
