// SPDX-License-Identifier: Apache-2.0
// Every value is a monotonic function of its row's *point*, a number in [0, 2^64). So one function makes the points of
// every order, whatever the keys:
//
//     point      0x0000..     0x4000..     0x8000..     0xc000..        sorted: row i of n has the point i * 2^64 / n
//     i64        -2^63        -2^62        0            2^62
//     f64        -1e6         -5e5         0            5e5
//     category   0            25           50           75
//     word       the first    the 5,000th  the 10,000th the 15,000th    of the sorted vocabulary
//
// The values of p_name are random in every order.
#include "bench/sort/sort_workload.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "bench/common/random_bits.h"
#include "runtime/blocks/blocks.h"
#include "runtime/collation/collation.h"

namespace quern::bench {
namespace {

constexpr uint64_t kNumWords = 20'000;
constexpr uint64_t kSign = uint64_t{1} << 63;

// The words that make up p_name: TPC-H, 4.2.3.
constexpr std::string_view kColours[] = {
    "almond",   "antique", "aquamarine", "azure",     "beige",      "bisque",    "black",     "blanched", "blue",
    "blush",    "brown",   "burlywood",  "burnished", "chartreuse", "chiffon",   "chocolate", "coral",    "cornflower",
    "cornsilk", "cream",   "cyan",       "dark",      "deep",       "dim",       "dodger",    "drab",     "firebrick",
    "floral",   "forest",  "frosted",    "gainsboro", "ghost",      "goldenrod", "green",     "grey",     "honeydew",
    "hot",      "indian",  "ivory",      "khaki",     "lace",       "lavender",  "lawn",      "lemon",    "light",
    "lime",     "linen",   "magenta",    "maroon",    "medium",     "metallic",  "midnight",  "mint",     "misty",
    "moccasin", "navajo",  "navy",       "olive",     "orange",     "orchid",    "pale",      "papaya",   "peach",
    "peru",     "pink",    "plum",       "powder",    "puff",       "purple",    "red",       "rose",     "rosy",
    "royal",    "saddle",  "salmon",     "sandy",     "seashell",   "sienna",    "sky",       "slate",    "smoke",
    "snow",     "spring",  "steel",      "tan",       "thistle",    "tomato",    "turquoise", "violet",   "wheat",
    "white",    "yellow",
};

// floor(point * n / 2^64), a number below n.
uint64_t Pick(uint64_t point, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(point) * n) >> 64);
}

std::vector<std::string> MakeVocabulary() {
  std::set<std::string> words;
  for (uint64_t i = 0; words.size() < kNumWords; ++i) {
    uint64_t bits = RandomBits(i + 1);
    std::string word(4 + bits % 9, ' ');
    for (char& letter : word) {
      bits = RandomBits(bits);
      letter = static_cast<char>('a' + bits % 26);
    }
    words.insert(std::move(word));
  }
  return {words.begin(), words.end()};
}

const std::vector<std::string>& Vocabulary() {
  static const std::vector<std::string> words = MakeVocabulary();
  return words;
}

// 8 characters encode 48 bits of the point, the others are random.
std::string Text16(uint64_t point) {
  static constexpr char kCharacters[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";  // in order
  const uint64_t random = RandomBits(point);
  std::string text(16, ' ');
  for (uint32_t i = 0; i < 8; ++i) {
    text[i] = kCharacters[(point >> (58 - 6 * i)) & 63];
    text[8 + i] = kCharacters[(random >> (6 * i)) & 63];
  }
  return text;
}

// Five distinct colours.
std::string PartName(uint64_t row) {
  constexpr uint64_t kColoursInAll = std::size(kColours);
  uint64_t bits = RandomBits(row + 1), chosen[5];
  std::string name;
  for (size_t i = 0; i < 5; ++i) {
    do {
      bits = RandomBits(bits + 1);
      chosen[i] = bits % kColoursInAll;
    } while (std::find(chosen, chosen + i, chosen[i]) != chosen + i);
    name += (i == 0 ? "" : " ") + std::string(kColours[chosen[i]]);
  }
  return name;
}

std::string TextOf(SortKey kind, uint64_t row, uint64_t point) {
  if (kind == SortKey::kText16) return Text16(point);
  if (kind == SortKey::kPartName) return PartName(row);
  if (kind == SortKey::kManufacturer) return "Manufacturer#" + std::to_string(1 + Pick(point, 5));
  return Vocabulary()[Pick(point, kNumWords)];
}

uint64_t RandomPoint(uint64_t row, size_t key) { return RandomBits(row + RandomBits(key + 1)); }

uint64_t SortedPoint(uint64_t row, uint64_t num_rows) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(row) << 64) / num_rows);
}

uint64_t PointOf(const SortWorkloadSpec& spec, uint64_t row, size_t key) {
  switch (spec.order) {
    case RowOrder::kRandom: return RandomPoint(row, key);
    case RowOrder::kSorted:
    case RowOrder::kTenPairs: return SortedPoint(row, spec.num_rows);
    case RowOrder::kReversed: return SortedPoint(spec.num_rows - 1 - row, spec.num_rows);
    case RowOrder::kOnePercentMoved:
      return RandomBits(row) % 100 == 0 ? RandomPoint(row, key) : SortedPoint(row, spec.num_rows);
    case RowOrder::kOneValue: return kSign + 12345;
    case RowOrder::kThousandValues: return Pick(RandomPoint(row, key), 1000) * (UINT64_MAX / 1000);
  }
  return 0;
}

std::vector<uint64_t> MakePoints(const SortWorkloadSpec& spec, size_t key) {
  std::vector<uint64_t> points(spec.num_rows);
  for (uint64_t row = 0; row < spec.num_rows; ++row) points[row] = PointOf(spec, row, key);
  if (spec.order != RowOrder::kTenPairs) return points;
  for (uint64_t pair = 1; pair <= 10; ++pair)
    std::swap(points[Pick(RandomBits(pair), spec.num_rows)], points[Pick(RandomBits(~pair), spec.num_rows)]);
  return points;
}

template <class T>
void Put(std::vector<uint8_t>* values, uint64_t row, T value) {
  std::memcpy(values->data() + row * sizeof(T), &value, sizeof(T));
}

template <class T>
T Get(const SortValue& column, uint64_t row) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(column.values) + row * sizeof(T), sizeof(T));
  return value;
}

std::string_view GetText(const SortValue& column, uint64_t row) {
  const auto* offsets = static_cast<const int32_t*>(column.offsets);
  return {reinterpret_cast<const char*>(column.bytes) + offsets[row],
          static_cast<size_t>(offsets[row + 1] - offsets[row])};
}

blocks::Bytes GetBytes(const SortValue& column, uint64_t row) {
  const std::string_view text = GetText(column, row);
  return {reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())};
}

template <class T>
int Compare(const T& a, const T& b) {
  return a < b ? -1 : static_cast<int>(b < a);
}

std::string TypeOf(SortKey key) {
  switch (key) {
    case SortKey::kI64:
    case SortKey::kFewI64: return "i64";
    case SortKey::kFewU64: return "u64";
    case SortKey::kI32:
    case SortKey::kCategory: return "i32";
    case SortKey::kF64: return "f64";
    case SortKey::kText16:
    case SortKey::kWord:
    case SortKey::kManufacturer:
    case SortKey::kPartName: return "utf8";
  }
  return "";
}

}  // namespace

bool IsText(SortKey key) { return TypeOf(key) == "utf8"; }

size_t BytesOf(SortKey key) { return key == SortKey::kI32 || key == SortKey::kCategory ? 4 : 8; }

std::string KeyList(const std::vector<SortKey>& keys, const std::string& collation) {
  std::string list;
  for (const SortKey key : keys) {
    list += (list.empty() ? "" : ",") + TypeOf(key);
    if (IsText(key) && !collation.empty()) list += "(" + collation + ")";
    list += ":out";
  }
  return list;
}

SortWorkload::SortWorkload(const SortWorkloadSpec& spec) : spec_(spec), keys_(spec.keys.size()) {
  for (size_t k = 0; k < keys_.size(); ++k) MakeKey(spec.keys[k], MakePoints(spec, k), &keys_[k]);
}

void SortWorkload::MakeKey(SortKey kind, const std::vector<uint64_t>& points, Key* key) const {
  if (IsText(kind)) {
    key->offsets.push_back(0);
    for (uint64_t row = 0; row < points.size(); ++row) {
      const std::string text = TextOf(kind, row, points[row]);
      key->values.insert(key->values.end(), text.begin(), text.end());
      key->offsets.push_back(static_cast<int32_t>(key->values.size()));
    }
    return;
  }
  key->values.resize(points.size() * BytesOf(kind));
  for (uint64_t row = 0; row < points.size(); ++row) {
    const uint64_t point = points[row];
    if (kind == SortKey::kI32) Put(&key->values, row, static_cast<uint32_t>((point ^ kSign) >> 32));
    else if (kind == SortKey::kCategory) Put(&key->values, row, static_cast<int32_t>(Pick(point, 100)));
    else if (kind == SortKey::kF64) Put(&key->values, row, (static_cast<double>(point) * 0x1p-63 - 1) * 1e6);
    else if (kind == SortKey::kFewU64) Put(&key->values, row, Pick(point, 1000) * (UINT64_MAX / 1000));
    else if (kind == SortKey::kFewI64) Put(&key->values, row, (Pick(point, 10) * (UINT64_MAX / 10)) ^ kSign);
    else Put(&key->values, row, point ^ kSign);
  }
}

BatchView SortWorkload::View(uint64_t first, uint64_t rows, size_t num_rowids) const {
  BatchView batch;
  for (size_t k = 0; k < keys_.size(); ++k) {
    QuernColumn column = {};
    const bool is_text = IsText(spec_.keys[k]);
    column.values = keys_[k].values.data() + (is_text ? 0 : first * BytesOf(spec_.keys[k]));
    if (is_text) column.offsets = keys_[k].offsets.data() + first;
    batch.keys.push_back(column);
  }
  batch.payload.assign(num_rowids, QuernColumn{});
  batch.num_rows = rows;
  batch.first_row_id = first;
  return batch;
}

const int64_t* SortWorkload::Integers(size_t key) const {
  return reinterpret_cast<const int64_t*>(keys_[key].values.data());
}

std::vector<uint64_t> SortWorkload::Checksums() const {
  std::vector<uint64_t> sums(keys_.size());
  for (size_t k = 0; k < keys_.size(); ++k) {
    const SortValue column = {spec_.keys[k], keys_[k].values.data(), keys_[k].offsets.data(), keys_[k].values.data()};
    for (uint64_t row = 0; row < spec_.num_rows; ++row) sums[k] += HashRow(column, row);
  }
  return sums;
}

SortValue ValueOf(SortKey key, const QuernOutColumn& column, CollationRule rule) {
  return {key, column.values, column.offsets, column.bytes, rule};
}

int CompareRows(const SortValue& a, uint64_t row_a, const SortValue& b, uint64_t row_b) {
  if (IsText(a.key) && a.rule == 0) return GetText(a, row_a).compare(GetText(b, row_b));
  if (IsText(a.key)) return CompareStrings(GetBytes(a, row_a), GetBytes(b, row_b), a.rule);
  if (a.key == SortKey::kF64) return Compare(Get<double>(a, row_a), Get<double>(b, row_b));
  if (a.key == SortKey::kFewU64) return Compare(Get<uint64_t>(a, row_a), Get<uint64_t>(b, row_b));
  if (BytesOf(a.key) == 4) return Compare(Get<int32_t>(a, row_a), Get<int32_t>(b, row_b));
  return Compare(Get<int64_t>(a, row_a), Get<int64_t>(b, row_b));
}

uint64_t HashRow(const SortValue& column, uint64_t row) {
  if (!IsText(column.key))
    return blocks::Mix(BytesOf(column.key) == 4 ? Get<uint32_t>(column, row) : Get<uint64_t>(column, row),
                       blocks::kPublicHash);
  uint64_t hash = 1;
  for (const char c : GetText(column, row)) hash = blocks::Mix(hash + static_cast<uint8_t>(c), blocks::kPublicHash);
  return hash;
}

}  // namespace quern::bench
