// SPDX-License-Identifier: Apache-2.0
// A range is found by binary search, four rows side by side: each step adds the result of a comparison instead of
// taking a branch, and rows do not wait for each other (128 ranges: 4 ns a row, one by one 8).
#include "runtime/sort/spilling/splitters.h"

#include <algorithm>
#include <array>

#include "runtime/base/thresholds.h"

namespace quern {

LeadWords::LeadWords(const QuernSortDescriptor& descriptor) {
  uint32_t tails = 0;
  for (uint32_t p = 0; p < descriptor.num_parts; ++p)
    if (descriptor.parts[p].kind == kBytesPart) tails |= 1u << descriptor.parts[p].key;
  for (const KeyComparison& step : StepsOf(descriptor, tails)) {
    if (step.is_tail() || num_words_ == 2) break;
    words_[num_words_] = step.word;
    masks_[num_words_++] = step.mask;
  }
}

Splitters::Splitters(std::vector<RowLead> sample, uint32_t num_parts, bool has_second)
    : num_parts_(num_parts), has_second_(has_second) {
  std::sort(sample.begin(), sample.end());
  std::vector<RowLead> splitters;
  for (uint32_t p = 1; p < num_parts; ++p) {
    const RowLead lead = sample[sample.size() * p / num_parts];
    if (lead != (splitters.empty() ? sample.front() : splitters.back())) splitters.push_back(lead);
  }
  num_distinct_ = static_cast<uint32_t>(splitters.size()) + 1;
  splitters.resize(num_parts - 1, {UINT64_MAX, UINT64_MAX});  // the last ones, of ranges without rows
  for (const RowLead& lead : splitters) {
    if (has_second) of_two_.push_back(static_cast<unsigned __int128>(lead.first) << 64 | lead.second);
    else of_one_.push_back(lead.first);
  }
}

namespace {

template <class Key>
Key KeyOf(const RowLead& lead) {
  if constexpr (sizeof(Key) > sizeof(uint64_t)) return Key{lead.first} << 64 | lead.second;
  else return lead.first;
}

// Numbers the ranges of kLanes leads. half: of the number of ranges.
template <uint32_t kLanes, class Key>
void FindSideBySide(const Key* splitters, uint64_t half, const RowLead* leads, uint64_t* parts) {
  Key keys[kLanes];
  uint64_t below[kLanes] = {};  // so many splitters are not above the lead
  for (uint32_t k = 0; k < kLanes; ++k) keys[k] = KeyOf<Key>(leads[k]);
  for (uint64_t step = half; step != 0; step /= 2) {
    for (uint32_t k = 0; k < kLanes; ++k) {
      uint64_t all_or_none = uint64_t{0} - static_cast<uint64_t>(splitters[below[k] + step - 1] <= keys[k]);
      asm("" : "+r"(all_or_none));  // or else compilers make a branch of it
      below[k] += step & all_or_none;
    }
  }
  for (uint32_t k = 0; k < kLanes; ++k) parts[k] = below[k];
}

template <class Key>
void Find(const std::vector<Key>& splitters, const RowLead* leads, uint32_t n, uint64_t* parts) {
  constexpr uint32_t kLanes = 4;
  const uint64_t half = (splitters.size() + 1) / 2;
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) FindSideBySide<kLanes>(splitters.data(), half, leads + i, parts + i);
  for (; i < n; ++i) FindSideBySide<1>(splitters.data(), half, leads + i, parts + i);
}

}  // namespace

void Splitters::PartsOf(const RowLead* leads, uint32_t n, uint64_t* parts) const {
  if (has_second_) Find(of_two_, leads, n, parts);
  else Find(of_one_, leads, n, parts);
}

bool Splitters::IsClustered(const std::vector<RowLead>& sample) const {
  constexpr uint64_t kSlices = 8, kGroups = 16;
  const uint64_t groups = std::min<uint64_t>(kGroups, num_parts_);
  if (sample.size() < kSlices * thresholds::kClusteredSampleRows) return false;
  std::array<std::array<uint64_t, kGroups>, kSlices> counts = {};
  std::array<uint64_t, kGroups> all = {};
  for (uint64_t i = 0; i < sample.size(); ++i) {
    uint64_t part;
    PartsOf(&sample[i], 1, &part);
    const uint64_t group = part * groups / num_parts_;
    ++counts[i * kSlices / sample.size()][group];
    ++all[group];
  }
  const uint64_t few = sample.size() / kSlices / groups;
  return std::any_of(counts.begin(), counts.end(), [&](const auto& slice) {
    for (uint64_t g = 0; g < groups; ++g)
      if (slice[g] > thresholds::kClusteredTimes * std::max(all[g] / kSlices, few)) return true;
    return false;
  });
}

}  // namespace quern
