// SPDX-License-Identifier: Apache-2.0
// A key column of 10 million strings often has 20,000 different ones. Sorted by their ranks, which take 15 bits, 10 million rows are one
// word each, whatever the strings' lengths; 20,000 strings are sorted once. ("Order-preserving dictionary"; here it is made while rows
// arrive.)
//
//     rows       "rail" "ship" "air" "rail"
//     codes        0      1      2     0         in the order of arrival
//     ranks      1 of 3   2      0     1         when all strings are known
//
// Codes are of strings as they are, so that each keeps its own bytes; ranks are by the collation: of utf8mb4_general_ci, "Rail" has the
// rank of "rail". However dear a collation's order keys are, they are made once for each of these strings.
//
// Strings are looked up in an open addressing table by their first 16 bytes, which lie in the slot, and their length; longer ones go on to
// a copy of their bytes.
#include "runtime/string_codes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/collation.h"
#include "runtime/encode.h"
#include "runtime/entry_sort.h"
#include "runtime/status.h"

namespace quern {
namespace {

constexpr uint64_t kFirstSlots = 1024;

blocks::ShortWords ReadFront(blocks::Bytes string) { return blocks::ReadShort(string.data, std::min(string.length, blocks::kShortBytes)); }

uint64_t Hash(const blocks::ShortWords& front, blocks::Bytes string) {
  const uint64_t a = blocks::FoldedMultiply(front.words[0] ^ blocks::kMultiplier1, front.words[1] ^ blocks::kMultiplier2 ^ string.length);
  const uint64_t b = blocks::FoldedMultiply(front.words[2] ^ blocks::kCombine, front.words[3] ^ blocks::kMultiplier1);
  if (string.length <= blocks::kShortBytes) return a + b;
  return a + b + blocks::HashBytes(string.data + blocks::kShortBytes, string.length - blocks::kShortBytes);
}

}  // namespace

bool StringCodes::IsString(const Slot& slot, const blocks::ShortWords& words, blocks::Bytes string) {
  uint64_t difference = slot.length ^ string.length;
  for (uint32_t w = 0; w < 4; ++w) difference |= slot.front.words[w] ^ words.words[w];
  if (difference != 0) return false;
  return string.length <= blocks::kShortBytes || blocks::EqualBytes(slot.bytes, string.data, string.length);
}

absl::Status StringCodes::Grow() {
  const uint64_t num_slots = slots_.bytes() == 0 ? kFirstSlots : slots_.bytes() / sizeof(Slot) * 2;
  QUERN_ASSIGN_OR_RETURN(HugeBuffer grown, HugeBuffer::Allocate(budget_, num_slots * sizeof(Slot), true));
  const auto* const old = reinterpret_cast<const Slot*>(slots_.data());
  auto* const slots = reinterpret_cast<Slot*>(grown.data());
  const uint64_t num_old = slots_.bytes() / sizeof(Slot);
  mask_ = num_slots - 1;
  for (uint64_t i = 0; i < num_old; ++i) {
    if (old[i].code_plus_one == 0) continue;
    uint64_t at = Hash(old[i].front, {old[i].bytes, old[i].length}) & mask_;
    while (slots[at].code_plus_one != 0) at = (at + 1) & mask_;
    slots[at] = old[i];
  }
  slots_ = std::move(grown);
  return absl::OkStatus();
}

absl::Status StringCodes::AddNew(const blocks::ShortWords& words, blocks::Bytes string, Slot* slot) {
  QUERN_ASSIGN_OR_RETURN(uint8_t* copy, bytes_.Allocate(std::max(string.length, 1u)));
  if (string.length != 0) std::memcpy(copy, string.data, string.length);
  strings_.push_back({copy, string.length});
  *slot = {words, copy, string.length, size()};
  return absl::OkStatus();
}

// Slots are asked for when their block's hashes are known, and looked at when the last of them is: they are in the L2 cache or beyond.
absl::StatusOr<bool> StringCodes::Add(const blocks::Bytes* strings, uint32_t n, uint32_t* codes, const uint8_t** copies) {
  constexpr uint32_t kBlock = 128;
  blocks::ShortWords words[kBlock];
  uint64_t hashes[kBlock];
  for (uint32_t begin = 0; begin < n; begin += kBlock) {
    const uint32_t size_of_block = std::min(kBlock, n - begin);
    while ((uint64_t{size()} + size_of_block) * 2 >= slots_.bytes() / sizeof(Slot)) QUERN_RETURN_IF_ERROR(Grow());
    auto* const slots = reinterpret_cast<Slot*>(slots_.data());
    for (uint32_t i = 0; i < size_of_block; ++i) {
      words[i] = ReadFront(strings[begin + i]);
      hashes[i] = Hash(words[i], strings[begin + i]) & mask_;
      __builtin_prefetch(&slots[hashes[i]]);
    }
    for (uint32_t i = 0; i < size_of_block; ++i) {
      const blocks::Bytes string = strings[begin + i];
      uint64_t at = hashes[i];
      while (slots[at].code_plus_one != 0 && !IsString(slots[at], words[i], string)) at = (at + 1) & mask_;
      if (slots[at].code_plus_one == 0) {
        if (size() == kMostStrings) return false;
        QUERN_RETURN_IF_ERROR(AddNew(words[i], string, &slots[at]));
      }
      codes[begin + i] = slots[at].code_plus_one - 1;
      copies[begin + i] = slots[at].bytes;
    }
  }
  return true;
}

namespace {

// Strings of several numberings, in order.
class StringOrder {
 public:
  StringOrder(const std::vector<const StringCodes*>& codes, CollationRule rule, const std::shared_ptr<MemoryBudget>& budget)
      : codes_(codes), rule_(rule), budget_(budget), keys_(budget, false) {}

  // By their first eight bytes as numbers, then, where these are equal, by comparing.
  absl::Status Sort() {
    for (uint32_t i = 0; i < codes_.size(); ++i) QUERN_RETURN_IF_ERROR(AddNumbering(i));
    EntrySorter sorter(2, budget_);
    QUERN_RETURN_IF_ERROR(sorter.Sort(reinterpret_cast<uint64_t*>(places_.data()), places_.size()));
    for (size_t begin = 0, end = 0; begin < places_.size(); begin = end) {
      for (end = begin + 1; end < places_.size() && places_[end].front == places_[begin].front;) ++end;
      std::sort(places_.begin() + static_cast<ptrdiff_t>(begin), places_.begin() + static_cast<ptrdiff_t>(end),
                [this](const Place& a, const Place& b) { return Compare(a, b) < 0; });
    }
    return absl::OkStatus();
  }

  // After that.
  uint32_t GiveRanks(std::vector<std::vector<uint32_t>>* ranks) const {
    uint32_t rank = 0;
    for (size_t p = 0; p < places_.size(); ++p) {
      if (p > 0 && (places_[p].front != places_[p - 1].front || Compare(places_[p - 1], places_[p]) != 0)) ++rank;
      (*ranks)[places_[p].numbering][places_[p].code] = rank;
    }
    return places_.empty() ? 0 : rank + 1;
  }

 private:
  struct Place {
    uint64_t front;
    uint32_t numbering;
    uint32_t code;
  };
  static_assert(sizeof(Place) == 16);

  absl::Status AddNumbering(uint32_t numbering) {
    const std::vector<blocks::Bytes>& strings = codes_[numbering]->strings();
    std::vector<uint64_t> high(strings.size()), low(strings.size());
    blocks::OrderPrefixes(strings.data(), static_cast<uint32_t>(strings.size()), rule_, high.data(), low.data());
    for (uint32_t code = 0; code < strings.size(); ++code) places_.push_back({high[code], numbering, code});
    return weighs() ? AddKeys(strings) : absl::OkStatus();
  }

  // Order keys are made once a string: sorting compares each of them some times.
  absl::Status AddKeys(const std::vector<blocks::Bytes>& strings) {
    std::vector<blocks::Bytes>& keys = keys_of_.emplace_back();
    std::string key;
    for (const blocks::Bytes& string : strings) {
      key.clear();
      AppendOrderKey(string, rule_, &key);
      QUERN_ASSIGN_OR_RETURN(uint8_t* copy, keys_.Allocate(std::max<size_t>(key.size(), 1)));
      std::copy(key.begin(), key.end(), copy);
      keys.push_back({copy, static_cast<uint32_t>(key.size())});
    }
    return absl::OkStatus();
  }

  bool weighs() const { return (rule_ & kWeighsOrder) != 0; }
  int Compare(const Place& a, const Place& b) const {
    if (!weighs()) return blocks::OrderBytes(codes_[a.numbering]->strings()[a.code], codes_[b.numbering]->strings()[b.code], 0, rule_);
    return CompareOrderKeys(keys_of_[a.numbering][a.code], keys_of_[b.numbering][b.code]);
  }
  int CompareOrderKeys(blocks::Bytes a, blocks::Bytes b) const {
    const uint32_t shorter = std::min(a.length, b.length);
    const int order = std::memcmp(a.data, b.data, shorter);
    if (order != 0 || a.length == b.length) return order;
    const uint8_t pad = (rule_ & kPadsSpaces) != 0 ? PadByte(rule_) : 0;
    const blocks::Bytes longer = a.length > b.length ? a : b;
    const int if_longer_is_greater = a.length > b.length ? 1 : -1;
    for (uint32_t i = shorter; i < longer.length; ++i)
      if (longer.data[i] != pad) return longer.data[i] > pad ? if_longer_is_greater : -if_longer_is_greater;
    return 0;
  }

  const std::vector<const StringCodes*>& codes_;
  const CollationRule rule_;
  const std::shared_ptr<MemoryBudget>& budget_;
  Arena keys_;
  std::vector<std::vector<blocks::Bytes>> keys_of_;  // by numbering and code
  std::vector<Place> places_;
};

}  // namespace

absl::StatusOr<uint32_t> RankStrings(const std::vector<const StringCodes*>& codes, CollationRule rule,
                                     const std::shared_ptr<MemoryBudget>& budget, std::vector<std::vector<uint32_t>>* ranks) {
  ranks->assign(codes.size(), {});
  for (uint32_t i = 0; i < codes.size(); ++i) (*ranks)[i].resize(codes[i]->size());
  StringOrder order(codes, rule, budget);
  QUERN_RETURN_IF_ERROR(order.Sort());
  return order.GiveRanks(ranks);
}

}  // namespace quern
