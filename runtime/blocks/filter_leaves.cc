// SPDX-License-Identifier: Apache-2.0
// The rows that blocks of filters leave to the runtime, from compiled and generic kernels alike: up to 63 rows at a
// batch's end, rows of a selection, strings that need a collation's weights, long IN lists, patterns with `_`,
// dictionaries. Those rows that are left in the mask are tested one by one.
//
// Dictionary columns: a value is tested for the first row that has it, and the result is kept for the call
// (FilterMemo). In a piece of 1024 rows over 7 values, the 7 values are tested at once; after that each row costs an
// index and a byte. For a dictionary with many more values than the batch has rows no results are kept: its rows are
// tested like selected rows.
#include "runtime/blocks/filter_leaves.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "runtime/base/refused_calls.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/filter_set.h"
#include "runtime/blocks/filter_strings.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/collation/collation.h"
#include "runtime/collation/like_pattern.h"

namespace quern {
namespace {

namespace b = blocks;

// Dictionaries with more values than this many times the batch's rows are not remembered.
constexpr uint64_t kMaxMemoRows = thresholds::kMemoRowsPerRow;

bool IsWeighed(const QuernFilterLeaf& leaf) { return (leaf.rule & kWeighsEquality) != 0; }

b::Bytes TextOf(const QuernFilterLeaf& leaf) { return {leaf.constants + leaf.text_offset, leaf.text_length}; }

bool EqualRow(const QuernFilterLeaf& leaf, b::Bytes s) {
  if (IsWeighed(leaf) && (leaf.rule & kFoldsAscii) == 0) return EqualStrings(s, TextOf(leaf), leaf.rule);
  const b::Bytes trimmed = (leaf.rule & kTrimsSpaces) != 0 ? b::TrimSpaces(s) : s;
  // For strings of U+0020 to U+007E equality with the key is decisive; for others the weights decide.
  if (trimmed.length == leaf.length && b::EqualConstant(trimmed.data, {leaf.constants, leaf.length})) return true;
  if (!IsWeighed(leaf) || b::IsPrintable(s.data, s.data + s.length)) return false;
  return EqualStrings(s, TextOf(leaf), leaf.rule);
}

bool MatchesRow(const QuernFilterLeaf& leaf, b::Bytes s) {
  const auto* pattern = static_cast<const LikePattern*>(leaf.object);
  if (leaf.kind == kPatternLeaf) return pattern->Matches(s);
  if ((leaf.rule & kFoldsAscii) != 0 && !b::IsPrintable(s.data, s.data + s.length)) return pattern->Matches(s);
  return b::MatchesParts(s, leaf.constants, leaf.num_parts, leaf.min_length, leaf.is_whole);
}

bool StringRow(const QuernFilterLeaf& leaf, b::Bytes s) {
  switch (leaf.kind) {
    case kEqualLeaf: return EqualRow(leaf, s);
    case kOrderLeaf: return b::OrderHolds(s, leaf.low[0], leaf.constants, leaf.text_length, leaf.rule, leaf.comparison);
    case kPartsLeaf:
    case kPatternLeaf: return MatchesRow(leaf, s);
    case kSetLeaf: return static_cast<const FilterSet*>(leaf.object)->Has(s);
    case kNullLeaf:
    case kRangeLeaf:
    case kColumnsLeaf: break;
  }
  __builtin_unreachable();
}

template <Storage kStorage>
b::Bytes ReadString(const QuernColumn* column, uint32_t row, uint32_t width) {
  if constexpr (kStorage == kFixed) return b::FixedReader::Read(column, row, width);
  else return b::ReaderOf<kStorage>::Read(column, row);
}

// The bits of a number; for floats, in their order.
template <Storage kStorage>
bool NumberRow(const QuernFilterLeaf& leaf, typename b::ReaderOf<kStorage>::Value v) {
  using T = typename b::ReaderOf<kStorage>::Value;
  if (leaf.kind == kSetLeaf) return static_cast<const FilterSet*>(leaf.object)->Has(b::uint128_t{v});
  if constexpr (kStorage == k128) return b::InWideRange(v, leaf.low[0], leaf.low[1], leaf.span[0], leaf.span[1]);
  const auto ordered = static_cast<T>(b::Ordered<kStorage>(v));
  return static_cast<T>(ordered - static_cast<T>(leaf.low[0])) <= static_cast<T>(leaf.span[0]);
}

template <Storage kStorage>
void TestNumbers(const LeafRows& r) {
  b::TestRows(r.mask, r.n, r.leaf.negated, [&](uint32_t i) {
    return NumberRow<kStorage>(r.leaf, b::ReaderOf<kStorage>::Read(r.column, r.RowAt(i)));
  });
}

template <Storage kStorage>
void TestStrings(const LeafRows& r) {
  const bool negated = r.leaf.kind != kOrderLeaf && r.leaf.negated;
  b::TestRows(r.mask, r.n, negated, [&](uint32_t i) {
    return StringRow(r.leaf, ReadString<kStorage>(r.column, r.RowAt(i), r.leaf.width_bytes));
  });
}

// The first 8 bytes of both decide nearly always, and are read without a branch on their lengths.
bool StringsHold(const QuernFilterLeaf& leaf, b::Bytes x, b::Bytes y) {
  const CollationRule rule = leaf.rule;
  const bool is_equality = leaf.comparison >= 4;  // kNotEqual, kEqual
  if (is_equality && IsWeighed(leaf)) return EqualStrings(x, y, rule) == (leaf.comparison == 5);
  if (!is_equality && (rule & kWeighsOrder) != 0)
    return b::Holds(quern::CompareStrings(x, y, rule), 0, leaf.comparison);
  if (is_equality || (rule & kPadsSpaces) == 0) {
    x = b::Trimmed(x, rule);
    y = b::Trimmed(y, rule);
  }
  const uint64_t x_lead = b::LeadWord(x, rule), y_lead = b::LeadWord(y, rule);
  if (!is_equality)
    return b::Holds(x_lead != y_lead ? b::SignOf(x_lead, y_lead) : quern::CompareStrings(x, y, rule), 0,
                    leaf.comparison);
  const bool may_be_equal = (static_cast<int>(x.length == y.length) & static_cast<int>(x_lead == y_lead)) != 0;
  return (may_be_equal && b::EqualBytes(x.data, y.data, x.length)) == (leaf.comparison == 5);
}

template <class T>
bool NumbersHold(const QuernFilterLeaf& leaf, T x, T y) {
  if constexpr (sizeof(T) <= 8 && !std::is_signed_v<T>) {
    using S = typename b::SignedOf<T>::Type;
    if (leaf.is_signed) return b::Holds(static_cast<S>(x), static_cast<S>(y), leaf.comparison);
  }
  return b::Holds(x, y, leaf.comparison);
}

// The rows' values in their own column; the other column may be a dictionary.
struct ColumnRows {
  const QuernColumn* column;
  Storage index_storage;

  uint32_t At(uint32_t row) const {
    return index_storage == kNoStorage ? row : TranslateRow(index_storage, column, row);
  }
  const QuernColumn* Values() const { return index_storage == kNoStorage ? column : column->dictionary; }
};

template <Storage kStorage>
void TestColumnRows(const LeafRows& r) {
  const ColumnRows x = {r.column, r.leaf.index_storage}, y = {r.other, r.leaf.other_index_storage};
  const QuernColumn *a = x.Values(), *c = y.Values();
  b::TestRows(r.mask, r.n, false, [&](uint32_t i) {
    const uint32_t row = r.RowAt(i), left = x.At(row), right = y.At(row);
    if constexpr (kStorage == kFixed || b::IsVariableStorage(kStorage)) {
      return StringsHold(r.leaf, ReadString<kStorage>(a, left, r.leaf.width_bytes),
                         ReadString<kStorage>(c, right, r.leaf.width_bytes));
    } else {
      using Reader = b::ReaderOf<kStorage>;
      return NumbersHold(r.leaf, b::Ordered<kStorage>(Reader::Read(a, left)),
                         b::Ordered<kStorage>(Reader::Read(c, right)));
    }
  });
}

// Tests values that lie in the column itself, row by row, for all leaves but null and columns.
void TestValues(const LeafRows& r) {
  DispatchStorage(r.leaf.storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (kStorage == kFixed || b::IsVariableStorage(kStorage)) TestStrings<kStorage>(r);
    else TestNumbers<kStorage>(r);
  });
}

// ---- dictionaries ----

// Translates the rows of a piece that are left to rows of the dictionary: at[i] for each set bit.
uint64_t Translate(const LeafRows& r, uint32_t* at) {
  uint64_t most = 0;
  b::TestRows(r.mask, r.n, false, [&](uint32_t i) {
    at[i] = TranslateRow(r.leaf.index_storage, r.column, r.RowAt(i));
    most = std::max<uint64_t>(most, at[i]);
    return true;
  });
  return most;
}

// Tests values that no earlier row had, all at once.
void AskNewValues(const LeafRows& r, const uint32_t* at, std::vector<uint8_t>* truths) {
  uint32_t values[kMaxBatchRows];
  uint32_t num_values = 0;
  b::TestRows(r.mask, r.n, false, [&](uint32_t i) {
    uint8_t& truth = (*truths)[at[i]];
    if (truth == FilterMemo::kUnknown) {
      truth = FilterMemo::kPrefetched;
      values[num_values++] = at[i];
    }
    return true;
  });
  if (num_values == 0) return;
  uint64_t mask[kMaskWords];
  std::fill_n(mask, (num_values + 63) / 64, ~uint64_t{0});
  if (num_values % 64 != 0) mask[num_values / 64] = (uint64_t{1} << num_values % 64) - 1;
  TestValues({r.leaf, r.column->dictionary, nullptr, 0, values, num_values, mask, r.prefetches, 0});
  for (uint32_t v = 0; v < num_values; ++v) {
    (*truths)[values[v]] = (mask[v / 64] >> v % 64 & 1) != 0 ? FilterMemo::kTrue : FilterMemo::kFalse;
  }
}

// The results of a leaf, with room for row `most` of the dictionary. Null where there is no memory for them: generated
// code calls this, and nothing may be thrown through it.
std::vector<uint8_t>* TruthsOf(FilterMemo* memo, uint32_t leaf, uint64_t most) {
  try {
    if (memo->truths.size() <= leaf) memo->truths.resize(leaf + 1);
    std::vector<uint8_t>& truths = memo->truths[leaf];
    if (truths.size() <= most) truths.resize(std::max<size_t>(most + 1, truths.size() * 2));
    return &truths;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void TestDictionary(const QuernFilterArgs* args, uint32_t leaf, const LeafRows& r) {
  uint32_t at[kMaxBatchRows];
  const uint64_t most = Translate(r, at);
  auto* memo = static_cast<FilterMemo*>(args->memo);
  const bool is_remembered = memo != nullptr && most <= kMaxMemoRows * std::max<uint64_t>(args->num_rows, 64);
  std::vector<uint8_t>* const truths = is_remembered ? TruthsOf(memo, leaf, most) : nullptr;
  if (truths == nullptr) {
    return TestValues({r.leaf, r.column->dictionary, nullptr, 0, at, r.n, r.mask, r.prefetches, 0});
  }
  AskNewValues(r, at, truths);
  b::TestRows(r.mask, r.n, false, [&](uint32_t i) { return (*truths)[at[i]] == FilterMemo::kTrue; });
}

}  // namespace

LeafRows RowsOf(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n, uint64_t* mask) {
  const QuernFilterLeaf& l = args->descriptor->leaves[leaf];
  const uint32_t* rows = args->selection != nullptr ? args->selection + first : nullptr;
  return {l,    &args->columns[l.column],     &args->columns[l.other_column],         first, rows, n,
          mask, args->descriptor->prefetches, blocks::FilterRowsAhead(args, first, n)};
}

void TestLeafRows(const QuernFilterArgs* args, uint32_t leaf, const LeafRows& r) {
  if (r.leaf.kind == kNullLeaf) return b::TestValid(r.column, r.first, r.rows, r.n, r.mask, !r.leaf.negated);
  if (r.leaf.kind == kColumnsLeaf) {
    return DispatchStorage(r.leaf.storage, [&](auto tag) { TestColumnRows<decltype(tag)::value>(r); });
  }
  if (r.leaf.index_storage != kNoStorage) return TestDictionary(args, leaf, r);
  TestValues(r);
}

}  // namespace quern

using namespace quern;  // NOLINT: the calls below are C symbols that use the code above

extern "C" {

void quern_rt_filter_leaf(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n, uint64_t* mask) {
  OrNoted(0, [&] {
    TestLeafRows(args, leaf, RowsOf(args, leaf, first, n, mask));
    return 0;
  });
}

bool quern_rt_filter_parts(const uint8_t* p, const uint8_t* end, const uint8_t* constants, uint32_t first,
                           uint32_t num_parts) {
  for (uint32_t k = first; k < num_parts; ++k) {
    const b::Part part = b::PartOf(constants, k + 2);
    p = b::FindPart(p, end, part);
    if (p == nullptr) return false;
    p += part.constant.length;
  }
  return true;
}

int32_t quern_rt_filter_compare(const uint8_t* a, uint32_t a_length, const uint8_t* b, uint32_t b_length,
                                CollationRule rule) {
  return OrNoted(0, [&] { return CompareStrings({a, a_length}, {b, b_length}, rule); });
}

}  // extern "C"
