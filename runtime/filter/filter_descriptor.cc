// SPDX-License-Identifier: Apache-2.0
// A condition becomes leaves and mask operations. For i64 >= 5 and (utf8:nullable = 'a' or not (date32 between 1 and
// 9)):
//
//     operation  mask  effect
//             0     0  i64 >= 5                                  low 5, span 9223372036854775802
//             1     0  split into 1                              mask 1 = mask 0, mask 0 = nothing
//             2     2  copy of 1
//             3     2  columns[1] has a value
//             4     2  utf8:nullable = 'a'
//             5     0  keep 2, 1 without them                    mask 0 |= mask 2, mask 1 &= ~mask 2
//             6     1  date32 not between 1 and 9
//             7     0  merge 1                                   mask 0 |= mask 1
//
// `not` is first moved down to the leaves, which exchanges `and` and `or` on the way. Every leaf rejects nulls, even a
// negated one: unknown is not true, and not unknown is not true either, so that moving it down is exact. (The exception
// is `is null`.)
//
// A leaf is tested by one block. Comparisons of numbers are ranges, and so are BETWEEN and each value of a short IN;
// adjacent integers are merged: in (1, 2, 3, 7) is 1 to 3 or 7. Comparisons with values outside of a type's range are
// removed: u8 < 0 is never true, and u8 >= 0 always is where there is a value. String constants are stored in the form
// with which rows are compared: trimmed, and, if case is ignored, as the equality key (collation.h) with lower-case
// letters and a mask of 0x20 for each.
//
// The operands of an `and`, or of an `or`, are tested by their cost: numbers, then what the runtime looks up, strings,
// and patterns. Among operands of one cost the order is the caller's. Where numbers reject all rows of
// a word, its strings are not read: the filter of TPC-H 12, which names its string first, took 13.6 ms, and takes 8.9.
#include "runtime/filter/filter_descriptor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

#include "runtime/blocks/filter_strings.h"
#include "runtime/collation/collation.h"
#include "runtime/rows/row_layout.h"

namespace quern {
namespace {

using blocks::uint128_t;

constexpr uint32_t kDefaultFilterRows = 1024;
constexpr int kMostCost = 3;  // of a leaf
constexpr __int128 kOne = 1;

blocks::Bytes BytesOf(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), static_cast<uint32_t>(s.size())};
}

bool IsFloat(Storage storage) { return storage == kF32 || storage == kF64; }
bool IsString(Storage storage) { return IsVariable(storage) || storage == kFixed; }
Storage KeyStorageOf(const ColumnType& type) { return RowOf(type.id).key_storage; }

struct Bounds {
  __int128 low, high;
};

uint32_t BitsOf(Storage storage) {
  return storage == kBit ? 1 : storage == k128 ? 128 : 8 * StorageFieldBytes(storage);
}

// The bounds of the type's numbers as ranges use them: floats as signed integers of the same order.
Bounds BoundsOf(const ColumnType& type) {
  const Storage storage = KeyStorageOf(type);
  const uint32_t bits = BitsOf(storage);
  if (storage == kBit) return {0, 1};
  if (storage == k128)
    return {static_cast<__int128>(static_cast<uint128_t>(kOne) << 127),
            ~static_cast<__int128>(static_cast<uint128_t>(kOne) << 127)};
  if (IsUnsigned(type.id)) return {0, (kOne << bits) - 1};
  return {-(kOne << (bits - 1)), (kOne << (bits - 1)) - 1};
}

__int128 OrderedNumber(const ColumnType& type, const Literal& value) {
  switch (KeyStorageOf(type)) {
    case kF32: {
      using Reader = blocks::ReaderOf<kF32>;
      return blocks::Ordered<kF32>(Reader::Normalise(std::bit_cast<uint32_t>(static_cast<float>(value.real))));
    }
    case kF64: return blocks::Ordered<kF64>(blocks::ReaderOf<kF64>::Normalise(std::bit_cast<uint64_t>(value.real)));
    default: return value.number;
  }
}

// The bits of a number as those of a key, for sets.
uint128_t KeyBits(const ColumnType& type, const Literal& value) {
  switch (KeyStorageOf(type)) {
    case kF32: return blocks::ReaderOf<kF32>::Normalise(std::bit_cast<uint32_t>(static_cast<float>(value.real)));
    case kF64: return blocks::ReaderOf<kF64>::Normalise(std::bit_cast<uint64_t>(value.real));
    case k128: return static_cast<uint128_t>(value.number);
    default:
      return static_cast<uint128_t>(value.number) & ((static_cast<uint128_t>(kOne) << BitsOf(KeyStorageOf(type))) - 1);
  }
}

Comparison Negated(Comparison op) {
  switch (op) {
    case Comparison::kLess: return Comparison::kGreaterEqual;
    case Comparison::kLessEqual: return Comparison::kGreater;
    case Comparison::kGreater: return Comparison::kLessEqual;
    case Comparison::kGreaterEqual: return Comparison::kLess;
    case Comparison::kNotEqual: return Comparison::kEqual;
    case Comparison::kEqual: return Comparison::kNotEqual;
  }
  __builtin_unreachable();
}

// Appends a string with lower-case letters and a mask of 0x20 for each; `exactly` leaves letters unchanged.
void AppendMasked(const std::string& text, bool exactly, std::string* constants) {
  std::string masks(text.size(), '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    const auto small = static_cast<char>(text[i] | 0x20);
    const bool is_letter = !exactly && small >= 'a' && small <= 'z' && static_cast<uint8_t>(text[i]) < 0x80;
    constants->push_back(is_letter ? small : text[i]);
    if (is_letter) masks[i] = 0x20;
  }
  *constants += masks;
}

bool IsPrintable(const std::string& text) {
  const auto* p = BytesOf(text).data;
  return blocks::IsPrintable(p, p + text.size());
}

// How common a byte is in text, by the usual order of English letters; the exact numbers do not matter.
uint32_t CommonnessOf(char c) {
  constexpr std::string_view kCommonFirst = " etaoinsrhldcumfpgwyb0123456789.,-vkxjqz";
  const size_t at = kCommonFirst.find(c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c);
  return at == std::string_view::npos ? 0 : static_cast<uint32_t>(kCommonFirst.size() - at);
}

// Chooses the part's two rarest bytes; among equally rare ones, those that are far apart.
void ChooseProbes(const std::string& part, QuernLikePart* header) {
  for (uint32_t i = 1; i < part.size(); ++i)
    if (CommonnessOf(part[i]) < CommonnessOf(part[header->first])) header->first = i;
  if (part.size() < 2) return;
  header->second = header->first == 0 ? 1 : 0;
  for (uint32_t i = 0; i < part.size(); ++i)
    if (i != header->first && CommonnessOf(part[i]) <= CommonnessOf(part[header->second])) header->second = i;
}

// Whether `_` matches a byte: it does for binaries, unless their collation has characters; for text it matches a
// character.
bool IsBytewise(const ColumnType& type) {
  const bool is_text = type.id == TypeId::kUtf8 || type.id == TypeId::kLargeUtf8 || type.id == TypeId::kUtf8View;
  return !is_text && (type.collation == kCollationBinary || type.collation == kCollationTidbBinary);
}

CollationRule RuleFor(const ColumnType& type) {
  return IsVariable(RowOf(type.id).storage) ? RuleOf(type.collation) : 0;
}

std::string Quoted(const std::string& bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<uint8_t>(c);
    if (c >= 0x20 && c <= 0x7e) text += c;
    else text += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
  }
  return text + "'";
}

const char* KindText(FilterLeafKind kind) {
  switch (kind) {
    case kNullLeaf: return "null";
    case kRangeLeaf: return "range";
    case kColumnsLeaf: return "columns";
    case kEqualLeaf: return "equal";
    case kOrderLeaf: return "order";
    case kPartsLeaf: return "parts";
    case kPatternLeaf: return "pattern";
    case kSetLeaf: return "set";
  }
  __builtin_unreachable();
}

std::string WideText(uint64_t low, uint64_t high) {
  constexpr char kHex[] = "0123456789abcdef";
  if (high == 0) return std::to_string(low);
  std::string text = "0x";
  for (const uint64_t half : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) text += kHex[half >> shift & 15];
  return text;
}

// The constants of a block, in readable form.
std::string ConstantsText(const QuernFilterLeaf& leaf) {
  const auto text_at = [&](uint32_t offset, uint32_t length) {
    return Quoted(std::string(reinterpret_cast<const char*>(leaf.constants) + offset, length));
  };
  if (leaf.kind == kRangeLeaf) {
    return "low " + WideText(leaf.low[0], leaf.low[1]) + ", span " + WideText(leaf.span[0], leaf.span[1]) +
           (leaf.negated ? ", negated" : "");
  }
  if (leaf.kind == kEqualLeaf) {
    const std::string key = leaf.length == kNoLength ? "a key beyond ASCII" : text_at(0, leaf.length);
    return "key " + key + ((leaf.rule & kFoldsAscii) != 0 ? ", case ignored" : "") +
           ((leaf.rule & kTrimsSpaces) != 0 ? ", spaces trimmed" : "") + (leaf.negated ? ", negated" : "");
  }
  if (leaf.kind == kOrderLeaf) return "text " + text_at(leaf.text_offset, leaf.text_length);
  if (leaf.kind != kPartsLeaf) return leaf.negated ? "negated" : "";
  std::string text;
  for (uint32_t k = 0; k < leaf.num_parts + 2; ++k) {
    const blocks::Constant c = blocks::PartOf(leaf.constants, k).constant;
    if (c.length == 0) continue;
    const char* role = leaf.is_whole ? "whole " : k == 0 ? "prefix " : k == 1 ? "suffix " : "contains ";
    text += (text.empty() ? "" : ", ") + std::string(role) +
            Quoted(std::string(reinterpret_cast<const char*>(c.bytes), c.length));
  }
  return text + ((leaf.rule & kFoldsAscii) != 0 ? ", case ignored" : "") + (leaf.negated ? ", negated" : "");
}

}  // namespace

struct FilterDescriptor::Node {
  enum Kind : uint8_t { kLeaf, kAnd, kOr, kAll, kNone };
  Kind kind;
  uint32_t leaf = 0;
  std::vector<Node> children = {};
};

FilterDescriptor::FilterDescriptor(const FilterSpec& spec) : spec_(spec), descriptor_() {
  Node root = MakeNode(spec_.where, false);
  SortByCost(&root);
  descriptor_.num_masks = 1;
  EmitNode(root, 0);
  descriptor_.num_steps = static_cast<uint32_t>(steps_.size());
  descriptor_.num_leaves = static_cast<uint32_t>(leaves_.size());
  descriptor_.num_columns = static_cast<uint32_t>(columns_.size());
  descriptor_.steps = steps_.data();
  descriptor_.leaves = leaves_.data();
  set_batch_rows(kDefaultFilterRows);
  set_prefetches(true);
}

uint32_t FilterDescriptor::AddColumn(const ColumnType& type) {
  columns_.push_back(type);
  return static_cast<uint32_t>(columns_.size()) - 1;
}

FilterDescriptor::Node FilterDescriptor::MakeNode(const Predicate& condition, bool negated) {
  if (condition.kind == PredicateKind::kNot) return MakeNode(condition.children[0], !negated);
  if (condition.kind != PredicateKind::kAnd && condition.kind != PredicateKind::kOr)
    return MakeLeafNode(condition, negated);
  const bool is_and = (condition.kind == PredicateKind::kAnd) != negated;
  const Node::Kind neutral = is_and ? Node::kAll : Node::kNone, deciding = is_and ? Node::kNone : Node::kAll;
  Node node = {is_and ? Node::kAnd : Node::kOr};
  bool is_decided = false;
  for (const Predicate& child : condition.children) {
    Node made = MakeNode(child, negated);
    if (made.kind == deciding) is_decided = true;
    else if (made.kind != neutral) node.children.push_back(std::move(made));
  }
  if (is_decided) return {deciding};
  if (node.children.empty()) return {neutral};
  if (node.children.size() == 1) return Node(node.children[0]);
  return node;
}

FilterDescriptor::Node FilterDescriptor::MakeLeafNode(const Predicate& condition, bool negated) {
  if (condition.kind == PredicateKind::kCompareColumns) return CompareColumns(condition, negated);
  const uint32_t column = AddColumn(condition.column);
  switch (condition.kind) {
    case PredicateKind::kCompare: {
      const Comparison op = negated ? Negated(condition.op) : condition.op;
      return Compare(condition.column, column, op, condition.values[0]);
    }
    case PredicateKind::kBetween: return Between(condition, column, negated != condition.negated);
    case PredicateKind::kIn: return In(condition, column, negated != condition.negated);
    case PredicateKind::kLike: return Like(condition, column, negated != condition.negated);
    case PredicateKind::kIsNull: return IsNull(condition, column, negated != condition.negated);
    case PredicateKind::kAnd:
    case PredicateKind::kOr:
    case PredicateKind::kNot:
    case PredicateKind::kCompareColumns: break;
  }
  __builtin_unreachable();
}

QuernFilterLeaf FilterDescriptor::NewLeaf(FilterLeafKind kind, const ColumnType& type, uint32_t column) const {
  QuernFilterLeaf leaf = {};
  leaf.kind = kind;
  leaf.storage = KeyStorageOf(type);
  leaf.index_storage = type.is_dictionary ? RowOf(type.index).storage : kNoStorage;
  leaf.other_index_storage = kNoStorage;
  leaf.is_signed = IsFloat(leaf.storage) || !IsUnsigned(type.id);
  leaf.rule = RuleFor(type);
  leaf.column = leaf.other_column = column;
  leaf.width_bytes = type.width_bytes;
  return leaf;
}

FilterDescriptor::Node FilterDescriptor::AddLeaf(QuernFilterLeaf leaf, std::string constants, std::string text) {
  constants_.push_back(std::make_unique<std::string>(std::move(constants)));
  leaf.constants = reinterpret_cast<const uint8_t*>(constants_.back()->data());
  leaf.constants_bytes = static_cast<uint32_t>(constants_.back()->size());
  leaves_.push_back(leaf);
  texts_.push_back(std::move(text));
  return {Node::kLeaf, static_cast<uint32_t>(leaves_.size()) - 1};
}

FilterDescriptor::Node FilterDescriptor::IsNull(const Predicate& condition, uint32_t column, bool negated) {
  if (!condition.column.nullable) return {negated ? Node::kAll : Node::kNone};
  QuernFilterLeaf leaf = NewLeaf(kNullLeaf, condition.column, column);
  leaf.negated = negated;
  return AddLeaf(leaf, "", PrintType(condition.column) + (negated ? " is not null" : " is null"));
}

FilterDescriptor::Node FilterDescriptor::Range(const ColumnType& type, uint32_t column, __int128 low, __int128 high,
                                               bool negated) {
  const Bounds bounds = BoundsOf(type);
  low = std::max(low, bounds.low);
  high = std::min(high, bounds.high);
  const bool is_empty = low > high, is_all = low == bounds.low && high == bounds.high;
  if (is_empty || is_all) {
    if (is_empty != negated) return {Node::kNone};
    Predicate not_null = {};
    not_null.column = type;
    return IsNull(not_null, column, true);
  }
  QuernFilterLeaf leaf = NewLeaf(kRangeLeaf, type, column);
  const auto first = static_cast<uint128_t>(low), span = static_cast<uint128_t>(high) - first;
  leaf.low[0] = static_cast<uint64_t>(first);
  leaf.low[1] = leaf.storage == k128 ? static_cast<uint64_t>(first >> 64) : 0;
  leaf.span[0] = static_cast<uint64_t>(span);
  leaf.span[1] = leaf.storage == k128 ? static_cast<uint64_t>(span >> 64) : 0;
  leaf.negated = negated;
  const uint32_t bits = BitsOf(leaf.storage);
  if (bits < 64) leaf.low[0] &= (uint64_t{1} << bits) - 1;
  return AddLeaf(leaf, "", PrintType(type));
}

FilterDescriptor::Node FilterDescriptor::Compare(const ColumnType& type, uint32_t column, Comparison op,
                                                 const Literal& value) {
  if (IsString(KeyStorageOf(type))) return CompareStrings(type, column, op, value.bytes);
  const Bounds bounds = BoundsOf(type);
  const __int128 number = OrderedNumber(type, value);
  switch (op) {
    case Comparison::kEqual: return Range(type, column, number, number, false);
    case Comparison::kNotEqual: return Range(type, column, number, number, true);
    // Written as the negation of the opposite range, so that no number below the least is needed.
    case Comparison::kLess: return Range(type, column, number, bounds.high, true);
    case Comparison::kLessEqual: return Range(type, column, bounds.low, number, false);
    case Comparison::kGreater: return Range(type, column, bounds.low, number, true);
    case Comparison::kGreaterEqual: return Range(type, column, number, bounds.high, false);
  }
  __builtin_unreachable();
}

void FilterDescriptor::SetEqual(const ColumnType& type, const std::string& text, QuernFilterLeaf* leaf,
                                std::string* constants) const {
  std::string key = text;
  if ((leaf->rule & kWeighsEquality) != 0) {
    key.clear();
    AppendEqualityKey(BytesOf(text), leaf->rule, &key);
  } else if ((leaf->rule & kTrimsSpaces) != 0) {
    key.resize(blocks::TrimSpaces(BytesOf(text)).length);
  }
  const bool folds = (leaf->rule & kFoldsAscii) != 0, weighs = (leaf->rule & kWeighsEquality) != 0;
  leaf->length = kNoLength;
  const bool may_fit = type.id != TypeId::kFixedBinary || key.size() == type.width_bytes;
  // A key that ends in a space, behind which characters without a weight stood, has no printable row: it would be
  // trimmed.
  const bool is_trimmed = (leaf->rule & kTrimsSpaces) == 0 || key.empty() || key.back() != ' ';
  if (may_fit && (!weighs || (folds && is_trimmed && IsPrintable(key)))) {
    leaf->length = static_cast<uint32_t>(key.size());
    AppendMasked(key, !folds, constants);
    uint8_t view[32] = {};
    std::copy_n(reinterpret_cast<const uint8_t*>(&leaf->length), 4, view);
    std::copy_n(constants->begin(), std::min<size_t>(key.size(), kInlineStringBytes), view + 4);
    std::copy_n(constants->begin() + static_cast<ptrdiff_t>(key.size()),
                std::min<size_t>(key.size(), kInlineStringBytes), view + 20);
    const bool is_inline = key.size() <= kInlineStringBytes;
    leaf->low[0] = blocks::Load<uint64_t>(view);
    leaf->low[1] = is_inline ? blocks::Load<uint64_t>(view + 8) : 0;
    leaf->span[0] = blocks::Load<uint64_t>(view + 16);
    leaf->span[1] = is_inline ? blocks::Load<uint64_t>(view + 24) : 0;
  }
  leaf->text_offset = static_cast<uint32_t>(constants->size());
  leaf->text_length = static_cast<uint32_t>(text.size());
  *constants += text;
}

FilterDescriptor::Node FilterDescriptor::CompareStrings(const ColumnType& type, uint32_t column, Comparison op,
                                                        const std::string& text) {
  Predicate leaf_text = {};
  leaf_text.kind = PredicateKind::kCompare;
  leaf_text.column = type;
  leaf_text.op = op;
  leaf_text.values.resize(1);
  leaf_text.values[0].bytes = text;
  std::string constants;
  const bool is_equality = op == Comparison::kEqual || op == Comparison::kNotEqual;
  QuernFilterLeaf leaf = NewLeaf(is_equality ? kEqualLeaf : kOrderLeaf, type, column);
  leaf.comparison = static_cast<uint8_t>(op);
  if (is_equality) {
    leaf.negated = op == Comparison::kNotEqual;
    SetEqual(type, text, &leaf, &constants);
  } else {
    const bool trims = (leaf.rule & kTrimsSpaces) != 0 && (leaf.rule & kPadsSpaces) == 0;
    blocks::Bytes bytes = BytesOf(text);
    if (trims) bytes = blocks::TrimSpaces(bytes);
    leaf.low[0] = blocks::LeadWord(bytes, leaf.rule);
    leaf.text_length = bytes.length;
    constants = text;
  }
  return AddLeaf(leaf, std::move(constants), PrintCondition(leaf_text));
}

FilterDescriptor::Node FilterDescriptor::Between(const Predicate& condition, uint32_t column, bool negated) {
  const Literal &low = condition.values[0], &high = condition.values[1];
  const ColumnType& type = condition.column;
  if (!IsString(KeyStorageOf(type)))
    return Range(type, column, OrderedNumber(type, low), OrderedNumber(type, high), negated);
  Node node = {negated ? Node::kOr : Node::kAnd};
  node.children.push_back(
      CompareStrings(type, column, negated ? Comparison::kLess : Comparison::kGreaterEqual, low.bytes));
  node.children.push_back(
      CompareStrings(type, column, negated ? Comparison::kGreater : Comparison::kLessEqual, high.bytes));
  return node;
}

FilterDescriptor::Node FilterDescriptor::In(const Predicate& condition, uint32_t column, bool negated) {
  const ColumnType& type = condition.column;
  const bool is_string = IsString(KeyStorageOf(type));
  std::vector<Bounds> ranges;
  if (!is_string) {
    std::vector<__int128> numbers;
    for (const Literal& value : condition.values) numbers.push_back(OrderedNumber(type, value));
    std::sort(numbers.begin(), numbers.end());
    for (const __int128 number : numbers) {
      const bool goes_on = !ranges.empty() && (number == ranges.back().high ||
                                               (!IsFloat(KeyStorageOf(type)) && number - 1 == ranges.back().high));
      if (goes_on) ranges.back().high = number;
      else ranges.push_back({number, number});
    }
  }
  Node node = {negated ? Node::kAnd : Node::kOr};
  if (is_string && condition.values.size() <= kMaxUnrolledValues) {
    const Comparison op = negated ? Comparison::kNotEqual : Comparison::kEqual;
    for (const Literal& value : condition.values)
      node.children.push_back(CompareStrings(type, column, op, value.bytes));
  } else if (!is_string && ranges.size() <= kMaxUnrolledValues) {
    for (const Bounds& range : ranges) node.children.push_back(Range(type, column, range.low, range.high, negated));
  } else {
    QuernFilterLeaf leaf = NewLeaf(kSetLeaf, type, column);
    std::vector<uint128_t> numbers;
    std::vector<std::string> strings;
    for (const Literal& value : condition.values) {
      if (is_string) strings.push_back(value.bytes);
      else numbers.push_back(KeyBits(type, value));
    }
    sets_.push_back(is_string ? std::make_unique<FilterSet>(std::move(strings), leaf.rule)
                              : std::make_unique<FilterSet>(std::move(numbers)));
    leaf.object = sets_.back().get();
    leaf.negated = negated;
    return AddLeaf(leaf, "", PrintType(type) + " in " + std::to_string(condition.values.size()) + " values");
  }
  if (node.children.size() == 1) return Node(node.children[0]);
  return node;
}

FilterDescriptor::Node FilterDescriptor::CompareColumns(const Predicate& condition, bool negated) {
  QuernFilterLeaf leaf = NewLeaf(kColumnsLeaf, condition.column, AddColumn(condition.column));
  leaf.other_column = AddColumn(condition.other);
  leaf.other_index_storage = condition.other.is_dictionary ? RowOf(condition.other.index).storage : kNoStorage;
  Predicate text = condition;
  text.op = negated ? Negated(condition.op) : condition.op;
  leaf.comparison = static_cast<uint8_t>(text.op);
  return AddLeaf(leaf, "", PrintCondition(text));
}

FilterDescriptor::Node FilterDescriptor::Like(const Predicate& condition, uint32_t column, bool negated) {
  const ColumnType& type = condition.column;
  const CollationRule rule = RuleFor(type);
  patterns_.push_back(std::make_unique<LikePattern>(condition.values[0].bytes, condition.escape, rule,
                                                    IsBytewise(type) ? LikeUnit::kByte : LikeUnit::kCodePoint));
  const LikePattern& pattern = *patterns_.back();
  Predicate text = condition;
  text.negated = negated;
  QuernFilterLeaf leaf = NewLeaf(pattern.is_parts() ? kPartsLeaf : kPatternLeaf, type, column);
  leaf.object = &pattern;
  leaf.negated = negated;
  std::string constants;
  if (pattern.is_parts() && pattern.parts().size() == 1 && !pattern.folds()) {
    leaf.kind = kEqualLeaf;
    leaf.rule = 0;
    SetEqual(type, pattern.parts()[0], &leaf, &constants);
  } else if (pattern.is_parts()) {
    const std::vector<std::string>& parts = pattern.parts();
    leaf.is_whole = parts.size() == 1;
    std::vector<std::string> ordered = {parts.front(), leaf.is_whole ? "" : parts.back()};
    for (size_t i = 1; i + 1 < parts.size(); ++i) ordered.push_back(parts[i]);
    leaf.num_parts = static_cast<uint32_t>(ordered.size()) - 2;
    leaf.rule = pattern.folds() ? kFoldsAscii : 0;
    constants.resize(ordered.size() * sizeof(QuernLikePart));
    for (size_t k = 0; k < ordered.size(); ++k) {
      QuernLikePart header = {static_cast<uint32_t>(constants.size()), static_cast<uint32_t>(ordered[k].size()), 0, 0};
      ChooseProbes(ordered[k], &header);
      blocks::Store(constants.data() + k * sizeof(header), header);
      AppendMasked(ordered[k], !pattern.folds(), &constants);
      leaf.min_length += header.length;
    }
    if (leaf.min_length == 0 && !leaf.is_whole) {
      Predicate not_null = {};
      not_null.column = type;
      return negated ? Node{Node::kNone} : IsNull(not_null, column, true);
    }
  }
  return AddLeaf(leaf, std::move(constants), PrintCondition(text));
}

// ---- mask operations ----

// Of a leaf: vectors of numbers 0, sets and dictionaries 1, strings 2, patterns 3; of others, that of the dearest.
int FilterDescriptor::CostOf(const Node& node) const {
  int cost = 0;
  for (const Node& child : node.children) cost = std::max(cost, CostOf(child));
  if (node.kind != Node::kLeaf || leaves_[node.leaf].kind == kNullLeaf) return cost;
  const QuernFilterLeaf& leaf = leaves_[node.leaf];
  if (leaf.kind == kPartsLeaf || leaf.kind == kPatternLeaf) return kMostCost;
  if (leaf.index_storage != kNoStorage) return 1;
  if (IsString(leaf.storage)) return 2;
  return leaf.kind == kSetLeaf ? 1 : 0;
}

void FilterDescriptor::SortByCost(Node* node) const {
  std::vector<Node> sorted;
  for (Node& child : node->children) SortByCost(&child);
  for (int cost = 0; cost <= kMostCost; ++cost)
    std::copy_if(node->children.begin(), node->children.end(), std::back_inserter(sorted),
                 [&](const Node& child) { return CostOf(child) == cost; });
  node->children = std::move(sorted);
}

void FilterDescriptor::AddUpdate(QuernMaskOperation step) { steps_.push_back(step); }

void FilterDescriptor::EmitLeaf(uint32_t leaf, uint32_t mask) {
  const QuernFilterLeaf& l = leaves_[leaf];
  if (l.kind != kNullLeaf) {
    if (columns_[l.column].nullable)
      AddUpdate({.kind = kTestValid, .leaf = 0, .column = l.column, .to = mask, .from = 0, .todo = 0});
    if (l.kind == kColumnsLeaf && columns_[l.other_column].nullable) {
      AddUpdate({.kind = kTestValid, .leaf = 0, .column = l.other_column, .to = mask, .from = 0, .todo = 0});
    }
  }
  AddUpdate({.kind = kTestLeaf, .leaf = leaf, .column = l.column, .to = mask, .from = 0, .todo = 0});
}

void FilterDescriptor::EmitOr(const Node& node, uint32_t mask) {
  const uint32_t todo = mask + 1, one = mask + 2;
  descriptor_.num_masks = std::max(descriptor_.num_masks, one + 1);
  AddUpdate({.kind = kSplitMask, .leaf = 0, .column = 0, .to = mask, .from = todo, .todo = 0});
  for (size_t i = 0; i + 1 < node.children.size(); ++i) {
    AddUpdate({.kind = kCopyMask, .leaf = 0, .column = 0, .to = one, .from = todo, .todo = 0});
    EmitNode(node.children[i], one);
    AddUpdate({.kind = kKeepMask, .leaf = 0, .column = 0, .to = mask, .from = one, .todo = todo});
  }
  EmitNode(node.children.back(), todo);
  AddUpdate({.kind = kMergeMask, .leaf = 0, .column = 0, .to = mask, .from = todo, .todo = 0});
}

void FilterDescriptor::EmitNode(const Node& node, uint32_t mask) {
  switch (node.kind) {
    case Node::kLeaf: return EmitLeaf(node.leaf, mask);
    case Node::kAnd:
      for (const Node& child : node.children) EmitNode(child, mask);
      return;
    case Node::kOr: return EmitOr(node, mask);
    case Node::kAll: return;
    case Node::kNone: return AddUpdate({.kind = kClearMask, .leaf = 0, .column = 0, .to = mask, .from = 0, .todo = 0});
  }
}

std::string FilterDescriptor::StepText(const QuernMaskOperation& step) const {
  switch (step.kind) {
    case kTestValid: return Numbered("columns", step.column) + " has a value";
    case kTestLeaf: return "leaf " + std::to_string(step.leaf);
    case kClearMask: return "nothing";
    case kSplitMask: return "split into " + std::to_string(step.from);
    case kCopyMask: return "copy of " + std::to_string(step.from);
    case kKeepMask: return "keep " + std::to_string(step.from) + ", " + std::to_string(step.todo) + " without them";
    case kMergeMask: return "merge " + std::to_string(step.from);
  }
  __builtin_unreachable();
}

std::string FilterDescriptor::Print() const {
  const auto right = [](uint64_t number, size_t width) {
    const std::string text = std::to_string(number);
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  const auto left = [](const std::string& text, size_t width) {
    return text + std::string(width - std::min(width, text.size()), ' ');
  };
  std::string text = "step  mask  does\n";
  for (size_t s = 0; s < steps_.size(); ++s)
    text += right(s, 4) + "  " + right(steps_[s].to, 4) + "  " + StepText(steps_[s]) + "\n";
  text += "num_masks " + std::to_string(descriptor_.num_masks) + "\n\nleaf  kind     column       storage  test\n";
  for (size_t l = 0; l < leaves_.size(); ++l) {
    const QuernFilterLeaf& leaf = leaves_[l];
    const std::string constants = ConstantsText(leaf);
    text += right(l, 4) + "  " + left(KindText(leaf.kind), 7) + "  " + left(Numbered("columns", leaf.column), 11) +
            "  " + left(std::string(StorageText(leaf.storage)), 7) + "  " + texts_[l] +
            (constants.empty() ? "" : "; " + constants) + "\n";
  }
  return text;
}

}  // namespace quern
