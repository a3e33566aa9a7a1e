// SPDX-License-Identifier: Apache-2.0
// The probe that makes groups in a directory: every row finds its entry by linear probing, whether by vectors or entry
// by entry.
#include "runtime/aggregate/tables/directory_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

constexpr uint64_t kTupleBytes = 24, kFirstTuple = 1 << 20;  // addresses that are never read

struct Directory {
  HugeBuffer buffer;
  std::vector<uint64_t> made_hashes;
  std::unique_ptr<DirectoryRows> batch = std::make_unique<DirectoryRows>();
  std::vector<uint8_t*> tuples;
  uint64_t num_made = 0;

  // Rows that look for their groups in `num_entries` entries.
  Directory(uint64_t num_entries, const std::vector<uint64_t>& hashes)
      : buffer(*HugeBuffer::Allocate(nullptr, num_entries * 8, false)),
        made_hashes(hashes.size()),
        tuples(hashes.size()) {
    batch->n = static_cast<uint32_t>(hashes.size());
    for (uint32_t i = 0; i < batch->n; ++i) {
      batch->rows[i] = i;
      batch->hashes[i] = hashes[i];
      batch->slots[i] = (hashes[i] >> kTagBits) % num_entries;
    }
  }

  std::vector<uint64_t> Entries() const {
    const auto* entries = reinterpret_cast<const uint64_t*>(buffer.data());
    return {entries, entries + buffer.bytes() / 8};
  }

  // One probe. A candidate matches if the rest of its hash agrees; otherwise it continues.
  template <class Step>
  void Take(Step step, const PrefetchSetting& setting) {
    const DirectoryEntries directory = {reinterpret_cast<uint64_t*>(buffer.data()), buffer.bytes() / 8};
    auto* const tuples_at = reinterpret_cast<uint8_t*>(kFirstTuple + num_made * kTupleBytes);
    step(directory, {tuples_at, made_hashes.data() + num_made, kTupleBytes}, setting, batch.get(), tuples.data());
    num_made += batch->num_made;
    for (uint32_t c = 0; c < batch->num_candidates; ++c) {
      const uint32_t i = batch->candidates[c];
      if (HashAt(tuples[i]) != batch->hashes[i]) batch->rows[batch->n++] = i;
    }
  }
  uint64_t HashAt(const uint8_t* tuple) const {
    return made_hashes[(reinterpret_cast<uint64_t>(tuple) - kFirstTuple) / kTupleBytes];
  }
};

// Compares what a probe leaves for the next one.
void ExpectSame(const Directory& a, const Directory& b) {
  ASSERT_EQ(a.batch->n, b.batch->n);
  ASSERT_EQ(a.batch->num_made, b.batch->num_made);
  ASSERT_EQ(a.batch->num_candidates, b.batch->num_candidates);
  EXPECT_TRUE(std::equal(a.batch->made, a.batch->made + a.batch->num_made, b.batch->made));
  EXPECT_TRUE(std::equal(a.batch->candidates, a.batch->candidates + a.batch->num_candidates, b.batch->candidates));
  for (uint32_t r = 0; r < a.batch->n; ++r) {
    ASSERT_EQ(a.batch->rows[r], b.batch->rows[r]);
    EXPECT_EQ(a.batch->slots[a.batch->rows[r]], b.batch->slots[b.batch->rows[r]]);
  }
  EXPECT_EQ(a.Entries(), b.Entries());
  EXPECT_EQ(a.tuples, b.tuples);
  EXPECT_EQ(std::vector(a.made_hashes.begin(), a.made_hashes.begin() + static_cast<ptrdiff_t>(a.num_made)),
            std::vector(b.made_hashes.begin(), b.made_hashes.begin() + static_cast<ptrdiff_t>(b.num_made)));
}

// An entry lies where its hash belongs, or after entries that are all taken.
void ExpectProbing(const Directory& directory) {
  const std::vector<uint64_t> entries = directory.Entries();
  for (uint64_t slot = 0; slot < entries.size(); ++slot) {
    if (entries[slot] == 0) continue;
    const uint64_t hash = directory.HashAt(reinterpret_cast<uint8_t*>(entries[slot] >> kTagBits));
    EXPECT_EQ(entries[slot] & kTagMask, hash & kTagMask);
    for (uint64_t before = (hash >> kTagBits) % entries.size(); before != slot; before = (before + 1) % entries.size())
      ASSERT_NE(entries[before], 0u);
  }
}

// Hashes with few tags, so that there are candidates of other keys, and with few slots, so that cache lines are full.
std::vector<uint64_t> Hashes(uint32_t n, uint64_t num_tags, uint64_t num_slots) {
  auto random = test::PrintedRandom();
  std::vector<uint64_t> hashes(n);
  for (uint64_t& hash : hashes) hash = (random() % num_slots) << kTagBits | random() % num_tags | random() % 2 << 60;
  return hashes;
}

TEST(DirectoryProbe, VectorsAndEntriesDoTheSame) {
  const struct {
    uint32_t n;
    uint64_t num_entries, num_tags, num_slots;
  } kCases[] = {{1, 64, 1, 1},         {60, 64, 1 << 16, 1 << 20},  {50, 64, 1, 1},
                {1000, 1024, 3, 1024}, {4000, 8192, 1 << 16, 8192}, {900, 1024, 2, 5}};
  for (const auto& c : kCases) {
    const std::vector<uint64_t> hashes = Hashes(c.n, c.num_tags, c.num_slots);
    Directory by_vectors(c.num_entries, hashes), by_entries(c.num_entries, hashes);
    PrefetchSetting setting;
    while (by_vectors.batch->n > 0) {
      by_vectors.Take(ProbeLines, setting);
      by_entries.Take(ProbeLinesByEntry, setting);
      setting.distance = setting.distance == 0 ? 3 : kWholeBatch;
      ExpectSame(by_vectors, by_entries);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(by_vectors.num_made, std::set<uint64_t>(hashes.begin(), hashes.end()).size());
    for (uint32_t i = 0; i < c.n; ++i) EXPECT_EQ(by_vectors.HashAt(by_vectors.tuples[i]), hashes[i]);
    ExpectProbing(by_vectors);
  }
}

}  // namespace
}  // namespace quern
