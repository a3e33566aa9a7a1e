// SPDX-License-Identifier: Apache-2.0
// Packed-key tables, each of whose buffers has exactly the promised size and ends at a red zone. Keys are a base plus
// offsets, so that one list of offsets is tried wherever a range can lie: from 0, up to the largest word, across the
// signed zero, at both ends of the signed numbers:
//
//     offsets 0 1 5, words of 4 bytes     base 0: 0 1 5     base -3: fffffffd fffffffe 2
//                                         base 2^31: -2147483648 -2147483647 -2147483643
#include "runtime/join/tables/packed_key_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/join/tables/unchained_table.h"
#include "test/templates/guarded_buffer.h"

namespace quern::test {
namespace {

namespace b = quern::blocks;

constexpr uint32_t kNoRow = UINT32_MAX;  // of tuples without room for a row number

// Every hint, each number of stages, rings within a batch and beyond it, whole batches, batches of any size.
constexpr PrefetchSetting kSettings[] = {{0},
                                         {16},
                                         {1, 1, 1, 2, PrefetchHint::kT1},
                                         {3, 5, 7, 1, PrefetchHint::kNta},
                                         {kMaxPrefetchDistance, 0, 1000, 3, PrefetchHint::kWrite},
                                         {kWholeBatch},
                                         {kWholeBatch, 64, 300, 1, PrefetchHint::kT2}};

using Matches = std::vector<std::pair<uint32_t, uint32_t>>;  // number of the probe, row of the build side

uint64_t MaskOf(uint32_t packed_bytes) { return packed_bytes == 4 ? UINT32_MAX : UINT64_MAX; }

std::vector<uint64_t> WordsAt(uint64_t base, const std::vector<uint64_t>& offsets, uint32_t packed_bytes) {
  std::vector<uint64_t> words;
  for (const uint64_t offset : offsets) words.push_back((base + offset) & MaskOf(packed_bytes));
  return words;
}

std::vector<uint64_t> RandomOffsets(size_t n, uint64_t range, uint64_t seed, bool unique) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> offsets = {0, range - 1};
  while (offsets.size() < n) offsets.push_back(random() % range);
  if (unique) {
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  }
  std::shuffle(offsets.begin(), offsets.end(), random);
  return offsets;
}

// The bases at which a range of that many words can lie.
std::vector<uint64_t> BasesFor(uint64_t range, uint32_t packed_bytes) {
  const uint64_t mask = MaskOf(packed_bytes), smallest = (mask >> 1) + 1;
  return {0, 1, mask - range / 2, smallest, smallest - range, mask - range + 1};
}

// The buffers of one table, and its tuples before they are placed: a word, followed by the row's number where there is
// room.
struct TableOf {
  TupleFormat format;
  Guard guard;
  JoinTable table;
  TupleSpan span;
  GuardedBuffer flat, tuples{0, Guard::kBehind}, bitmap{0, Guard::kBehind}, numbers{0, Guard::kBehind};

  TableOf(const std::vector<uint64_t>& words, uint64_t base, uint64_t range, const TupleFormat& f, Guard g)
      : format(f), guard(g), flat(words.size() * f.tuple_bytes, g) {
    span = {flat.data(), nullptr, words.size(), words.size()};
    for (uint32_t row = 0; row < words.size(); ++row) {
      uint8_t* const tuple = flat.data() + uint64_t{row} * f.tuple_bytes;
      std::memcpy(tuple, &words[row], f.packed_bytes);
      if (HasRows()) b::Store(tuple + f.packed_bytes, row);
    }
    table.tuple_bytes = table.slot_bytes = f.tuple_bytes;
    table.packed_bytes = f.packed_bytes;
    table.zero_hashes = f.zero_hashes;
    table.num_tuples = words.size();
    // A range that wraps around the largest word is one of signed keys.
    const uint64_t mask = MaskOf(f.packed_bytes);
    table.sign_bit = base > mask - range + 1 ? (mask >> 1) + 1 : 0;
    table.base = base ^ table.sign_bit;
    table.range = range;
    table.sentinel = (base - 1) & mask;
  }

  bool HasRows() const { return format.tuple_bytes >= format.packed_bytes + 4; }
  uint32_t RowOf(uint64_t tuple) const {
    return HasRows() ? b::Load<uint32_t>(table.tuples + tuple + format.packed_bytes) : kNoRow;
  }

  Inserted MakeBitmap(Duplicates duplicates, const PrefetchSetting& setting) {
    bitmap = GuardedBuffer((table.range + 63) / 64 * 8, guard);
    table.layout = Layout::kBitmap;
    table.bitmap = bitmap.as<uint64_t>();
    table.probe = table.build = setting;
    return FillBitmap(table, format, span, duplicates, bitmap.as<uint64_t>());
  }
  Inserted MakeDense(const PrefetchSetting& setting) {
    const Inserted inserted = MakeBitmap(Duplicates::kStop, setting);
    tuples = GuardedBuffer(table.range * format.tuple_bytes, guard);
    table.layout = Layout::kDense;
    table.tuples = tuples.data();
    if (inserted == Inserted::kAll) PlaceDense(table, format, span);
    return inserted;
  }
  void MakeRuns(const PrefetchSetting& setting, bool places_tuples, RunsOf of = RunsOf::kThread) {
    numbers = GuardedBuffer((table.range + 1) * sizeof(uint32_t), guard);
    tuples = GuardedBuffer(places_tuples ? span.num_tuples * format.tuple_bytes : 0, guard);
    uint32_t* const runs = numbers.as<uint32_t>() + 1;
    table.layout = Layout::kCsr;
    table.runs = runs;
    table.tuples = tuples.data();
    table.probe = table.build = setting;
    CountRuns(table, format, span, of, runs);
    SumRuns(table.range, runs);
    PlaceRuns(table, format, span, of, runs, places_tuples ? tuples.data() : nullptr);
  }
  Inserted MakeOpen(Layout layout, Duplicates duplicates, uint64_t num_slots, uint64_t region,
                    const PrefetchSetting& setting, uint64_t* num_inserted) {
    table.layout = layout;
    table.slot_bytes = layout == Layout::kCounting ? 2 * format.packed_bytes : std::bit_ceil(format.tuple_bytes);
    table.line_mask = 64 / table.slot_bytes - 1;
    tuples = GuardedBuffer(num_slots * table.slot_bytes, guard);
    table.tuples = tuples.data();
    table.num_slots = num_slots;
    table.region_mask = region - 1;
    table.probe = table.build = setting;
    return InsertOpen(table, format, span, duplicates, &table.max_walk, num_inserted);
  }
  void MakeUnchained(uint32_t bits, const PrefetchSetting& setting) {
    numbers = GuardedBuffer(((uint64_t{1} << bits) + 1) * sizeof(uint64_t), guard);
    tuples = GuardedBuffer(span.num_tuples * format.tuple_bytes, guard);
    const UnchainedBuild build = {
        format, numbers.as<uint64_t>() + 1, 64 - bits, 0, uint64_t{1} << bits, 0, setting, tuples.data()};
    CountTuples(build, span);
    SumSlots(build);
    ScatterTuples(build, span);
    table.layout = Layout::kUnchained;
    table.tuples = tuples.data();
    table.directory = build.directory;
    table.shift = build.shift;
    table.probe = table.build = setting;
  }

  // Looks probe rows up, batch by batch; runs are split into pairs, one for each of their tuples.
  Matches LookUp(const std::vector<uint64_t>& probes, uint32_t batch_rows, uint64_t* counted = nullptr) const {
    const GuardedBuffer scratch(sizeof(QuernProbeScratch), guard);
    QuernProbeScratch* const s = scratch.as<QuernProbeScratch>();
    Matches matches;
    LookUpTally tally;
    for (size_t first = 0; first < probes.size(); first += batch_rows) {
      s->batch_rows = static_cast<uint32_t>(std::min<size_t>(batch_rows, probes.size() - first));
      std::copy_n(probes.begin() + static_cast<ptrdiff_t>(first), s->batch_rows, s->words);
      s->num_matches = s->num_candidates = 0;
      if (counted != nullptr) *counted += CountPackedKeys(table, KeyWords::Packed(s->words), s, &tally);
      LookUpPackedKeys(table, KeyWords::Packed(s->words), s, &tally);
      for (uint32_t m = 0; m < s->num_matches; ++m) {
        const uint32_t row = table.layout == Layout::kBitmap ? kNoRow : RowOf(s->match_tuples[m]);
        matches.emplace_back(first + s->match_index[m], row);
      }
      for (uint32_t c = 0; c < s->num_candidates; ++c) {
        const QuernCandidate& run = s->candidates[c];
        for (uint64_t at = run.begin; at != run.end; at += format.tuple_bytes) {
          matches.emplace_back(first + run.index, table.layout == Layout::kCounting ? kNoRow : RowOf(at));
        }
      }
    }
    std::sort(matches.begin(), matches.end());
    return matches;
  }
};

Matches Expected(const std::vector<uint64_t>& build, const std::vector<uint64_t>& probes, bool has_rows) {
  Matches matches;
  for (uint32_t p = 0; p < probes.size(); ++p)
    for (uint32_t row = 0; row < build.size(); ++row)
      if (build[row] == probes[p]) matches.emplace_back(p, has_rows ? row : kNoRow);
  return matches;
}

// The keys, their neighbours, the ends of the type, and the sentinel of an open table.
std::vector<uint64_t> ProbesFor(const std::vector<uint64_t>& words, uint64_t base, uint32_t packed_bytes) {
  const uint64_t mask = MaskOf(packed_bytes);
  std::vector<uint64_t> probes = {0, 1, mask, mask >> 1, (mask >> 1) + 1, (base - 1) & mask, base, (base - 1) & mask};
  for (const uint64_t word : words) {
    probes.push_back(word);
    probes.push_back((word + 1) & mask);
    probes.push_back((word - 1) & mask);
  }
  return probes;
}

struct Data {
  std::vector<uint64_t> offsets;
  uint64_t range;
};
const std::vector<Data>& UniqueData() {
  static const std::vector<Data> data = {{{0}, 1}, {{0, 1, 5, 6, 3}, 7}, {RandomOffsets(700, 2000, 1, true), 2000}};
  return data;
}

// Calls f(words, probes, table) for data in every place, with words of 4 and 8 bytes and tuples of one to five words.
template <class F>
void ForEachTable(const std::vector<Data>& all, F&& f) {
  uint32_t turn = 0;
  for (const Data& data : all) {
    for (const uint32_t packed_bytes : {4, 8}) {
      for (const uint64_t base : BasesFor(data.range, packed_bytes)) {
        const std::vector<uint64_t> words = WordsAt(base, data.offsets, packed_bytes),
                                    probes = ProbesFor(words, base, packed_bytes);
        for (const uint32_t tuple_words : {1, 2, 3, 5}) {
          SCOPED_TRACE(std::to_string(words.size()) + " words of " + std::to_string(packed_bytes) + " bytes from " +
                       std::to_string(base) + ", tuples of " + std::to_string(tuple_words) + " words");
          const Guard guard = turn++ % 2 == 0 ? Guard::kBehind : Guard::kInFront;
          TableOf table(words, base, data.range, {tuple_words * packed_bytes, packed_bytes, false}, guard);
          f(words, probes, &table);
        }
      }
    }
  }
}

// ---- ranges
// ---------------------------------------------------------------------------------------------------------------------

TEST(PackedKeyRange, IsInTheKeysOrder) {
  PackedKeyRange range;
  EXPECT_TRUE(range.is_empty());
  const uint64_t sign = uint64_t{1} << 31;
  const std::vector<uint64_t> words = {3, 0xfffffffb, 7, 0x7fffffff};  // 3, -5, 7, the largest
  range.Add(words.data(), 3, sign);
  EXPECT_FALSE(range.is_empty());
  EXPECT_EQ(range.min ^ sign, 0xfffffffbu);
  EXPECT_EQ(range.max ^ sign, 7u);
  EXPECT_EQ(range.max - range.min, 12u);
  PackedKeyRange other, none;
  other.Add(words.data() + 3, 1, sign);
  range.Add(other);
  range.Add(none);
  EXPECT_EQ(range.max ^ sign, 0x7fffffffu);
  PackedKeyRange plain;
  plain.Add(words.data(), 2, 0);
  EXPECT_EQ(plain.min, 3u);
  EXPECT_EQ(plain.max, 0xfffffffbu);
}

// ---- dense
// ---------------------------------------------------------------------------------------------------------------------

TEST(PackedKeyTable, ABitmapKnowsItsKeysAndNoOthers) {
  ForEachTable(UniqueData(), [](const auto& words, const auto& probes, TableOf* table) {
    EXPECT_EQ(table->MakeBitmap(Duplicates::kStop, {16}), Inserted::kAll);
    uint64_t counted = 0;
    EXPECT_EQ(table->LookUp(probes, 64, &counted), Expected(words, probes, false));
    EXPECT_EQ(counted, Expected(words, probes, false).size());
  });
}

TEST(PackedKeyTable, ABitmapStopsAtADuplicateOrDropsIt) {
  std::vector<uint64_t> offsets = RandomOffsets(1000, 5000, 2, true);
  for (const size_t at : {size_t{1}, size_t{300}, offsets.size()}) {
    std::vector<uint64_t> twice = offsets;
    twice.insert(twice.begin() + static_cast<ptrdiff_t>(at), twice[0]);
    ForEachTable({{twice, 5000}}, [](const auto& words, const auto& probes, TableOf* table) {
      EXPECT_EQ(table->MakeBitmap(Duplicates::kStop, {0}), Inserted::kDuplicate);
      EXPECT_EQ(table->MakeBitmap(Duplicates::kDrop, {0}), Inserted::kAll);
      Matches expected = Expected(words, probes, false);
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      EXPECT_EQ(table->LookUp(probes, 1024), expected);
    });
  }
}

TEST(PackedKeyTable, DenseTuplesLieAtTheirKeysPlaces) {
  ForEachTable(UniqueData(), [](const auto& words, const auto& probes, TableOf* table) {
    for (const PrefetchSetting& setting : kSettings) {
      EXPECT_EQ(table->MakeDense(setting), Inserted::kAll);
      EXPECT_EQ(table->LookUp(probes, 256), Expected(words, probes, table->HasRows()));
    }
    uint64_t found = 0;
    for (uint64_t i = 0; i < NumPositions(table->table); ++i) found += HasTuple(table->table, i);
    EXPECT_EQ(found, words.size());
  });
}

TEST(PackedKeyTable, RunsHoldAllTuplesOfAKey) {
  std::vector<Data> data = UniqueData();
  data.push_back({RandomOffsets(900, 100, 3, false), 100});
  data.push_back({{4, 4, 4, 4}, 9});
  ForEachTable(data, [](const auto& words, const auto& probes, TableOf* table) {
    const Matches expected = Expected(words, probes, table->HasRows());
    for (const PrefetchSetting& setting : kSettings) {
      for (const RunsOf of : {RunsOf::kThread, RunsOf::kThreads}) {
        table->MakeRuns(setting, true, of);
        uint64_t counted = 0;
        EXPECT_EQ(table->LookUp(probes, 256, &counted), expected);
        EXPECT_EQ(counted, expected.size());
      }
    }
    EXPECT_EQ(NumPositions(table->table), words.size());
  });
}

// A bitmap of 16 MB, which is prefetched; 3000 keys all over it, more than a block and a batch.
TEST(PackedKeyTable, ABigBitmapIsTheSameWhateverIsAskedFor) {
  constexpr uint64_t kRange = uint64_t{1} << 27;
  const std::vector<uint64_t> words = WordsAt(5, RandomOffsets(3000, kRange, 9, true), 8);
  std::vector<uint64_t> probes = words;
  for (uint64_t i = 0; i < 1000; ++i) probes.push_back(i * 300007);
  std::vector<uint64_t> sorted = words;
  std::sort(sorted.begin(), sorted.end());
  const auto is_key = [&](uint64_t word) { return std::binary_search(sorted.begin(), sorted.end(), word); };
  const auto hits = static_cast<size_t>(std::count_if(probes.begin(), probes.end(), is_key));
  TableOf table(words, 5, kRange, {8, 8, false}, Guard::kBehind);
  for (const PrefetchSetting& setting : kSettings) {
    EXPECT_EQ(table.MakeBitmap(Duplicates::kStop, setting), Inserted::kAll);
    uint64_t counted = 0;
    EXPECT_EQ(table.LookUp(probes, 1024, &counted).size(), hits);
    EXPECT_EQ(counted, hits);
  }
}

TEST(PackedKeyTable, RunsWithoutTuplesCount) {
  ForEachTable({{RandomOffsets(900, 100, 4, false), 100}}, [](const auto& words, const auto& probes, TableOf* table) {
    table->MakeRuns({0}, false);
    table->table.tuples = nullptr;  // every access would have to go through this
    const GuardedBuffer scratch(sizeof(QuernProbeScratch), Guard::kBehind);
    QuernProbeScratch* const s = scratch.template as<QuernProbeScratch>();
    s->batch_rows = static_cast<uint32_t>(probes.size());
    std::copy(probes.begin(), probes.end(), s->words);
    LookUpTally tally;
    EXPECT_EQ(CountPackedKeys(table->table, KeyWords::Packed(s->words), s, &tally),
              Expected(words, probes, false).size());
  });
}

// ---- open
// ---------------------------------------------------------------------------------------------------------------------

TEST(PackedKeyTable, AnOpenTableKnowsItsKeysAndNoOthers) {
  ForEachTable(UniqueData(), [](const auto& words, const auto& probes, TableOf* table) {
    const Matches expected = Expected(words, probes, table->HasRows());
    for (const PrefetchSetting& setting : kSettings) {
      uint64_t num_inserted = 0, counted = 0;
      EXPECT_EQ(table->MakeOpen(Layout::kOpen, Duplicates::kStop, 2048, 256, setting, &num_inserted), Inserted::kAll);
      EXPECT_EQ(num_inserted, words.size());
      EXPECT_EQ(table->LookUp(probes, 1000, &counted), expected);
      EXPECT_EQ(counted, expected.size());
    }
    uint64_t found = 0;
    for (uint64_t i = 0; i < NumPositions(table->table); ++i) found += HasTuple(table->table, i);
    EXPECT_EQ(found, words.size());
  });
}

TEST(PackedKeyTable, AnyNumberOfRegionsAndAnyBatchWillDo) {
  const std::vector<uint64_t> offsets = RandomOffsets(500, 1 << 20, 5, true);
  for (const uint32_t batch_rows : {1, 7, 4096}) {
    for (const uint64_t regions : {1, 3, 5}) {
      const std::vector<uint64_t> words = WordsAt(77, offsets, 8), probes = ProbesFor(words, 77, 8);
      TableOf table(words, 77, 1 << 20, {16, 8, false}, Guard::kBehind);
      uint64_t num_inserted = 0;
      ASSERT_EQ(table.MakeOpen(Layout::kOpen, Duplicates::kStop, regions * 1024, 1024, {4}, &num_inserted),
                Inserted::kAll);
      EXPECT_EQ(table.LookUp(probes, batch_rows), Expected(words, probes, true));
    }
  }
}

TEST(PackedKeyTable, DuplicatesStopOrAreDroppedOrCounted) {
  std::vector<Data> data = {{RandomOffsets(700, 200, 6, false), 200}, {{3, 3}, 7}};
  ForEachTable(data, [](const auto& words, const auto& probes, TableOf* table) {
    uint64_t num_inserted = 0;
    EXPECT_EQ(table->MakeOpen(Layout::kOpen, Duplicates::kStop, 1024, 256, {0}, &num_inserted), Inserted::kDuplicate);
    std::vector<uint64_t> distinct = words;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    table->table.max_walk = 0;
    num_inserted = 0;
    EXPECT_EQ(table->MakeOpen(Layout::kOpen, Duplicates::kDrop, 1024, 256, {16}, &num_inserted), Inserted::kAll);
    EXPECT_EQ(num_inserted, distinct.size());
    EXPECT_EQ(table->LookUp(probes, 512).size(), Expected(distinct, probes, false).size());
    table->table.max_walk = 0;
    num_inserted = 0;
    uint64_t counted = 0;
    EXPECT_EQ(table->MakeOpen(Layout::kCounting, Duplicates::kCount, 1024, 256, {16}, &num_inserted), Inserted::kAll);
    EXPECT_EQ(num_inserted, distinct.size());
    EXPECT_EQ(table->LookUp(probes, 512, &counted), Expected(words, probes, false));
    EXPECT_EQ(counted, Expected(words, probes, false).size());
  });
}

// All walks begin at slot 0 of a region of 8: every slot is taken, so no walk stops at an empty one.
TEST(PackedKeyTable, AFullRegionIsWalkedRoundOnceAndNoFurther) {
  const std::vector<uint64_t> words = WordsAt(10, {0, 1, 2, 3, 4, 5, 6, 7}, 8), probes = ProbesFor(words, 10, 8);
  TableOf table(words, 10, 8, {16, 8, true}, Guard::kInFront);
  uint64_t num_inserted = 0;
  ASSERT_EQ(table.MakeOpen(Layout::kOpen, Duplicates::kStop, 16, 8, {0}, &num_inserted), Inserted::kAll);
  EXPECT_EQ(table.table.max_walk, 7u);
  EXPECT_EQ(table.LookUp(probes, 100), Expected(words, probes, true));
  TableOf nine(WordsAt(10, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 8), 10, 9, {16, 8, true}, Guard::kInFront);
  EXPECT_EQ(nine.MakeOpen(Layout::kOpen, Duplicates::kStop, 16, 8, {0}, &num_inserted), Inserted::kTooFar);
}

// A walk goes round the slots of its cache line, here 4, and from its last line to the first one of its region, of 16:
// 31 28 29 30, 19 16.
TEST(PackedKeyTable, WalksGoRoundLinesAndThenTheirRegion) {
  constexpr uint64_t kSlots = 64, kRegion = 16;
  std::vector<uint64_t> words;
  for (uint64_t word = 1; words.size() < 6; ++word) {
    const uint64_t hash = b::Mix(word, b::quern_hash_secret);
    const uint64_t slot = static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * kSlots) >> 64);
    if (slot == 2 * kRegion - 1) words.push_back(word);
  }
  TableOf table(words, 1, 1 << 20, {16, 8, false}, Guard::kBehind);
  uint64_t num_inserted = 0;
  ASSERT_EQ(table.MakeOpen(Layout::kOpen, Duplicates::kStop, kSlots, kRegion, {0}, &num_inserted), Inserted::kAll);
  EXPECT_EQ(table.table.max_walk, 5u);
  std::vector<uint64_t> taken;
  for (uint64_t slot = 0; slot < kSlots; ++slot)
    if (HasTuple(table.table, slot)) taken.push_back(slot);
  EXPECT_EQ(taken, (std::vector<uint64_t>{16, 19, 28, 29, 30, 31}));
  const std::vector<uint64_t> probes = ProbesFor(words, 1, 8);
  EXPECT_EQ(table.LookUp(probes, 4), Expected(words, probes, true));
}

// A walk of 97 steps is permitted, one of 98 is not: with all hashes 0 a table of 300 keys is rejected, whatever its
// size.
TEST(PackedKeyTable, TooLongAWalkIsRefused) {
  for (const uint32_t n : {97, 98, 300}) {
    std::vector<uint64_t> offsets(n);
    for (uint32_t i = 0; i < n; ++i) offsets[i] = i;
    TableOf table(WordsAt(5, offsets, 4), 5, n, {4, 4, true}, Guard::kBehind);
    uint64_t num_inserted = 0;
    const Inserted inserted = table.MakeOpen(Layout::kOpen, Duplicates::kStop, 4096, 1024, {0}, &num_inserted);
    EXPECT_EQ(inserted, n == 97 ? Inserted::kAll : Inserted::kTooFar) << n;
  }
}

// ---- unchained
// ---------------------------------------------------------------------------------------------------------------------

// Compares by groups, with room for three matches at a time; `stops` ends each row at its first match.
Matches CompareAll(const TableOf& of, const std::vector<uint64_t>& probes, uint32_t group_rows, bool stops) {
  const GuardedBuffer scratch(sizeof(QuernProbeScratch), of.guard);
  QuernProbeScratch* const s = scratch.as<QuernProbeScratch>();
  QuernJoinDescriptor descriptor = {};
  descriptor.stops_at_first = stops;
  Matches matches;
  s->batch_rows = static_cast<uint32_t>(probes.size());
  std::copy(probes.begin(), probes.end(), s->words);
  HashPackedKeys(s->words, s->batch_rows, of.format.zero_hashes, s->hashes);
  for (uint32_t begin = 0; begin < s->batch_rows; begin += group_rows) {
    s->num_candidates = TestPackedKeys(of.table, *s, begin, std::min(begin + group_rows, s->batch_rows), s->candidates);
    while (s->num_candidates > 0) {
      s->num_matches = 0;
      ComparePackedKeys(of.table, descriptor, 3, s);
      EXPECT_LE(s->num_matches, 3u);
      for (uint32_t m = 0; m < s->num_matches; ++m)
        matches.emplace_back(s->match_index[m], of.RowOf(s->match_tuples[m]));
    }
  }
  std::sort(matches.begin(), matches.end());
  return matches;
}

TEST(PackedKeyTable, AnUnchainedTableHasEveryMatch) {
  std::vector<Data> data = UniqueData();
  data.push_back({RandomOffsets(300, 60, 7, false), 60});
  ForEachTable(data, [](const auto& words, const auto& probes, TableOf* table) {
    const Matches expected = Expected(words, probes, table->HasRows());
    for (const PrefetchSetting& setting : kSettings) {
      table->MakeUnchained(words.size() > 300 ? 11 : 4, setting);
      EXPECT_EQ(CompareAll(*table, probes, 64, false), expected);
      Matches first = CompareAll(*table, probes, 7, true);
      EXPECT_TRUE(std::adjacent_find(first.begin(), first.end(), [](auto& a, auto& c) { return a.first == c.first; }) ==
                  first.end());
      for (const auto& match : first) EXPECT_TRUE(std::binary_search(expected.begin(), expected.end(), match));
      std::vector<uint32_t> rows;
      for (const auto& match : expected) rows.push_back(match.first);
      EXPECT_EQ(first.size(), static_cast<size_t>(std::unique(rows.begin(), rows.end()) - rows.begin()));
    }
  });
}

}  // namespace
}  // namespace quern::test
