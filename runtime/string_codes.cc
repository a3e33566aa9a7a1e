// SPDX-License-Identifier: Apache-2.0
// A key column of 10 million strings often has 20,000 different ones. Sorted by their ranks, which take 15 bits, 10 million rows are one
// word each, whatever the strings' lengths; 20,000 strings are sorted once. ("Order-preserving dictionary"; here it is made while rows
// arrive.)
//
//     rows       "rail" "ship" "air" "rail"
//     codes        0      1      2     0         in the order of arrival
//     ranks      1 of 3   2      0     1         when all strings are known
//
// Strings are looked up in an open addressing table by their first 16 bytes, which lie in the slot, and their length; longer ones go on to
// a copy of their bytes.
#include "runtime/string_codes.h"

#include <algorithm>
#include <cstring>

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

bool IsLess(blocks::Bytes a, blocks::Bytes b) {
  const uint32_t shorter = std::min(a.length, b.length);
  const int order = shorter == 0 ? 0 : std::memcmp(a.data, b.data, shorter);
  return order != 0 ? order < 0 : a.length < b.length;
}

bool IsEqual(blocks::Bytes a, blocks::Bytes b) {
  return a.length == b.length && (a.length == 0 || std::memcmp(a.data, b.data, a.length) == 0);
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

// The places of all strings in order: by their first eight bytes as numbers, then, where these are equal, by comparing.
absl::StatusOr<uint32_t> RankStrings(const std::vector<const StringCodes*>& codes, const std::shared_ptr<MemoryBudget>& budget,
                                     std::vector<std::vector<uint32_t>>* ranks) {
  struct Place {
    uint64_t front;
    uint32_t numbering;
    uint32_t code;
  };
  static_assert(sizeof(Place) == 16);
  std::vector<Place> places;
  ranks->assign(codes.size(), {});
  for (uint32_t i = 0; i < codes.size(); ++i) {
    (*ranks)[i].resize(codes[i]->size());
    for (uint32_t code = 0; code < codes[i]->size(); ++code) {
      const blocks::Bytes string = codes[i]->strings()[code];
      places.push_back({__builtin_bswap64(blocks::ReadTail(string.data, string.length)), i, code});
    }
  }
  EntrySorter sorter(2, budget);
  QUERN_RETURN_IF_ERROR(sorter.Sort(reinterpret_cast<uint64_t*>(places.data()), places.size()));
  const auto string_of = [&](const Place& place) { return codes[place.numbering]->strings()[place.code]; };
  const auto is_less = [&](const Place& a, const Place& b) { return IsLess(string_of(a), string_of(b)); };
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    for (end = begin + 1; end < places.size() && places[end].front == places[begin].front;) ++end;
    std::sort(places.begin() + static_cast<ptrdiff_t>(begin), places.begin() + static_cast<ptrdiff_t>(end), is_less);
  }
  uint32_t rank = 0;
  for (size_t p = 0; p < places.size(); ++p) {
    if (p > 0 && !IsEqual(string_of(places[p]), string_of(places[p - 1]))) ++rank;
    (*ranks)[places[p].numbering][places[p].code] = rank;
  }
  return places.empty() ? 0 : rank + 1;
}

}  // namespace quern
