// SPDX-License-Identifier: Apache-2.0
// The stages of a join in the generic kernel over columns in memory: their order, memory limits at each of them,
// outputs of any size, selections.
#include "runtime/join/hash_join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using test::Batch;
using test::NestedLoops;
using test::Pairs;
using test::Probe;
using test::RowNumbers;
using test::SomeKeys;

constexpr const char* kNumbers = "join.inner keys=i64 build=i64 probe=i64";

struct Tuning {
  uint32_t batch_rows = 1024, group_rows = 64;
  bool prefetches = true, zero_hashes = false;
};

std::shared_ptr<HashJoin> Join(const std::string& spec, std::shared_ptr<MemoryBudget> budget = nullptr,
                               const Tuning& tuning = {}, const JoinOptions& options = {}) {
  auto descriptor = std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(spec));
  descriptor->mutable_tuning()->batch_rows = tuning.batch_rows;
  descriptor->mutable_tuning()->group_rows = tuning.group_rows;
  descriptor->mutable_tuning()->rows.prefetches = tuning.prefetches;
  descriptor->mutable_tuning()->rows.zero_hashes = tuning.zero_hashes;
  return std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, std::move(budget), options);
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// A string column with its own bytes.
struct Strings {
  std::string bytes;
  std::vector<int32_t> offsets = {0};

  explicit Strings(const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      bytes += value;
      offsets.push_back(static_cast<int32_t>(bytes.size()));
    }
  }
  QuernColumn column() const {
    QuernColumn column = {};
    column.values = bytes.data();
    column.offsets = offsets.data();
    return column;
  }
};

BatchView KeysOf(const Strings& strings) {
  BatchView batch;
  batch.keys.push_back(strings.column());
  batch.num_rows = strings.offsets.size() - 1;
  return batch;
}

// ---- order of the calls ----

TEST(HashJoin, StepsOutOfOrderAreRefused) {
  const auto keys = RowNumbers(3);
  auto join = Join(kNumbers);
  JoinProber early(join);
  EXPECT_EQ(Text(early.SetInput(Batch(keys, keys))),
            "probe before finalise: the table is not built; accepted: finalise first");
  ASSERT_TRUE(join->Append(Batch(keys, keys)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(Text(join->Append(Batch(keys, keys))), "append after finalise: the table is built; accepted: a new join");
  EXPECT_EQ(Probe(join, Batch(keys, keys), 10), NestedLoops(keys, keys));
}

TEST(HashJoin, AProberWithoutInputHasNoRows) {
  auto join = Join(kNumbers);
  ASSERT_TRUE(join->Finalise().ok());
  OutputBatch out({ColumnType{}, ColumnType{}}, 8, nullptr);
  JoinProber prober(join);
  const auto more = prober.Next(&out);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
  EXPECT_EQ(out.num_rows(), 0u);
}

TEST(HashJoin, EmptySidesGiveNoRows) {
  const std::vector<int64_t> none, some = {1, 2};
  for (const auto* build : {&none, &some}) {
    auto join = Join(kNumbers);
    ASSERT_TRUE(join->Append(Batch(*build, *build)).ok());
    ASSERT_TRUE(join->Append(BatchView()).ok());
    ASSERT_TRUE(join->Finalise().ok());
    EXPECT_EQ(Probe(join, Batch(none, none), 4), Pairs());
    EXPECT_EQ(Probe(join, Batch(some, some), 4).size(), build->size());
  }
}

// ---- what callers of the C++ interface can get wrong ----

TEST(HashJoin, BatchesOfOtherColumnsAreRefused) {
  const auto keys = RowNumbers(3);
  auto join = Join(kNumbers);
  BatchView batch = Batch(keys, keys);
  batch.payload.clear();
  EXPECT_EQ(Text(join->Append(batch)),
            "batch without the spec's columns: 1 keys, 0 payload columns; accepted: 1 and 1");
  batch.num_rows = kNullRow;
  EXPECT_EQ(Text(join->Append(batch)), "batch too large: 4294967295 rows; accepted: below 4294967295");
  ASSERT_TRUE(join->Finalise().ok());
  JoinProber prober(join);
  batch.num_rows = 3;
  EXPECT_EQ(Text(prober.SetInput(batch)),
            "batch without the spec's columns: 1 keys, 0 payload columns; accepted: 1 and 1");
  OutputBatch none({}, 8, nullptr), no_rows({ColumnType{}, ColumnType{}}, 0, nullptr);
  EXPECT_EQ(Text(prober.Next(&none).status()), "output batch of other columns: 0; accepted: 2");
  EXPECT_EQ(Text(prober.Next(&no_rows).status()), "output batch too small: 0 rows; accepted: 1 to 2147483647");
}

// ---- memory limits ----

TEST(HashJoin, ABatchThatDoesNotFitIsTakenInPart) {
  const auto few = RowNumbers(1000), many = RowNumbers(400000);
  auto budget = std::make_shared<MemoryBudget>(uint64_t{3} << 20);
  auto join = Join(kNumbers, budget);
  ASSERT_TRUE(join->Append(Batch(few, few)).ok());
  auto owner = std::make_shared<int>(0);
  BatchView batch = Batch(many, many);
  batch.owner = owner;
  auto appender = std::make_unique<Appender>(join);
  uint64_t taken = 0;
  const absl::Status status = appender->Append(batch, RowKind::kInput, &taken);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(Text(status).find("memory limit exceeded: "), std::string::npos) << status;
  EXPECT_NE(Text(status).find("; limit 3145728"), std::string::npos) << status;
  batch.owner = nullptr;
  EXPECT_GT(taken, 0u);
  EXPECT_EQ(taken % 1024, 0u) << "whole steps";
  EXPECT_EQ(owner.use_count(), 2) << "of rows that were taken";
  EXPECT_EQ(Text(appender->Finish()),
            "finish after a refused append: a part of its batch is in the rows; accepted: the rest of the batch");
  appender.reset();
  EXPECT_EQ(owner.use_count(), 1);
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().build_rows, 1000u);
  join.reset();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

// Tuples point to the strings of their batch. Those of a batch whose appender is gone are freed here, so that a
// sanitizer would detect a read.
TEST(HashJoin, StringsOfARefusedBatchAreNotRead) {
  auto budget = std::make_shared<MemoryBudget>(uint64_t{4} << 20);
  auto join = Join("join.inner keys=utf8", budget);
  const Strings kept({"kept and longer than twelve bytes"});
  ASSERT_TRUE(join->Append(KeysOf(kept)).ok());
  {
    const Strings refused(std::vector<std::string>(300000, "refused and longer than twelve bytes"));
    Appender appender(join);
    EXPECT_EQ(appender.Append(KeysOf(refused)).code(), absl::StatusCode::kResourceExhausted);
  }
  ASSERT_TRUE(join->Append(KeysOf(kept)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().build_rows, 2u);
  join.reset();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(HashJoin, AFinaliseThatDoesNotFitCanBeRepeated) {
  const auto keys = RowNumbers(1000);
  auto budget = std::make_shared<MemoryBudget>(uint64_t{1} << 20);
  auto join = Join(kNumbers, budget);
  ASSERT_TRUE(join->Append(Batch(keys, keys)).ok());
  const uint64_t used = budget->used_bytes();
  // First room for nothing, then room for the bitmap (128 bytes) but not for the dense tuples (16000).
  for (const uint64_t room : {100, 10000}) {
    const uint64_t others = budget->limit_bytes() - used - room;
    ASSERT_TRUE(budget->Reserve(others).ok());
    EXPECT_EQ(join->Finalise().code(), absl::StatusCode::kResourceExhausted);
    budget->Release(others);
    EXPECT_EQ(budget->used_bytes(), used);
  }
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(Probe(join, Batch(keys, keys), 64), NestedLoops(keys, keys));
  join.reset();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(HashJoin, ResultsThatDoNotFitAreAnErrorAndTheNextInputWorks) {
  auto join = Join("join.inner keys=i64 probe=utf8");
  ASSERT_TRUE(join->Append(Batch({1, 2}, {})).ok());
  ASSERT_TRUE(join->Finalise().ok());
  auto budget = std::make_shared<MemoryBudget>(4096);
  std::vector<ColumnType> types = join->descriptor().spec().probe;
  OutputBatch out(types, 16, budget), huge(types, 1 << 20, budget);
  JoinProber prober(join);
  const std::vector<int64_t> keys = {1};
  for (const bool is_long : {true, false}) {
    const Strings text({is_long ? std::string(5000, 'x') : "short"});
    BatchView batch = Batch(keys, {});
    batch.payload = {text.column()};
    ASSERT_TRUE(prober.SetInput(batch).ok());
    if (is_long) {
      EXPECT_EQ(Text(prober.Next(&out).status()),
                "memory limit exceeded: result strings; accepted: a higher memory limit");
      EXPECT_EQ(prober.Next(&huge).status().code(), absl::StatusCode::kResourceExhausted);
      continue;
    }
    ASSERT_TRUE(prober.Next(&out).ok());
    ASSERT_EQ(out.num_rows(), 1u);
    EXPECT_EQ(std::memcmp(out.column(0).bytes, "short", 5), 0);
  }
}

// One tuple of 64 KiB must not allocate room for 1024 of them.
TEST(HashJoin, WideTuplesTakeTheRoomThatTheyNeed) {
  auto budget = std::make_shared<MemoryBudget>(uint64_t{1} << 20);
  auto join = Join("join.inner keys=fixed_binary(65536)", budget);
  const std::string value(3 * 65536, 'x');
  BatchView batch;
  batch.keys.push_back({nullptr, value.data(), nullptr, nullptr, nullptr, 0});
  batch.num_rows = 1;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(join->Append(batch).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().table_rows, 3u);
}

// The bit for null lies above a key's sign: a dense range from -1 to 74 must not see it.
TEST(HashJoin, ADenseRangeOfSignedKeysWhoseNullsAreEqual) {
  auto join = Join("join.inner keys=i8:nullable:nullequal");
  const int8_t build[] = {-1, 74}, probe[] = {74, -1, 0, -2, 75};
  BatchView batch;
  batch.keys.push_back({nullptr, build, nullptr, nullptr, nullptr, 0});
  batch.num_rows = 2;
  ASSERT_TRUE(join->Append(batch).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_STREQ(join->stats().layout, "bitmap");
  batch.keys[0].values = probe;
  batch.num_rows = 5;
  JoinProber prober(join);
  OutputBatch out({}, 1, nullptr);
  ASSERT_TRUE(prober.SetInput(batch).ok());
  ASSERT_TRUE(prober.Next(&out).ok());
  EXPECT_EQ(out.num_rows(), 2u);
}

// ---- outputs, batches and tuning of any size ----

TEST(HashJoin, OutputsOfAnySizeGiveTheSameRows) {
  const auto build = SomeKeys(300, 40, 1), probe = SomeKeys(500, 50, 2);
  const auto build_rows = RowNumbers(300), probe_rows = RowNumbers(500);
  const Pairs expected = NestedLoops(build, probe);
  auto join = Join(kNumbers);
  ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  for (const uint64_t capacity : {1, 2, 7, 1023, 1024, 1025, 100000}) {
    EXPECT_EQ(Probe(join, Batch(probe, probe_rows), capacity), expected) << capacity;
  }
}

TEST(HashJoin, TuningChangesNoRow) {
  const auto build = SomeKeys(700, 300, 3), probe = SomeKeys(5000, 400, 4);
  const auto build_rows = RowNumbers(700), probe_rows = RowNumbers(5000);
  const Pairs expected = NestedLoops(build, probe);
  JoinOptions far;
  for (PrefetchSchedule& schedule : far.prefetch.Change()) schedule.entries[0].setting.distance = kMaxPrefetchDistance;
  for (const Tuning& tuning :
       {Tuning{1, 1}, Tuning{7, 4096}, Tuning{4096, 1}, Tuning{4096, 4096}, Tuning{1024, 64, false}}) {
    auto join = Join(kNumbers, nullptr, tuning, far);
    ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
    ASSERT_TRUE(join->Finalise().ok());
    EXPECT_EQ(join->stats().prefetch_distance, tuning.prefetches ? kMaxPrefetchDistance : 0);
    EXPECT_EQ(Probe(join, Batch(probe, probe_rows), 999), expected) << tuning.batch_rows << " " << tuning.group_rows;
  }
}

// Rings and whole batches, every number of stages and every hint, groups and batches of any size.
std::vector<PrefetchSetting> SomeSettings() {
  std::vector<PrefetchSetting> settings;
  for (const uint16_t distance :
       {uint16_t{0}, uint16_t{1}, uint16_t{100}, uint16_t{kMaxPrefetchDistance}, kWholeBatch}) {
    for (const uint8_t stages : {1, 2, 3}) {
      const auto n = static_cast<uint16_t>(settings.size());
      const uint16_t group_rows = n % 3 == 0 ? 0 : static_cast<uint16_t>(n * 7),
                     batch_rows = n % 2 == 0 ? 0 : static_cast<uint16_t>(n * 50);
      settings.push_back({distance, group_rows, batch_rows, stages, static_cast<PrefetchHint>(n % 5)});
    }
  }
  return settings;
}

// Keys for every layout: dense, CSR, open, unchained with packed keys and with two words.
struct Descriptors {
  const char* spec;
  LayoutChoice layout;
  uint64_t distinct;  // 0: unique
  const char* expected_layout;
};
constexpr Descriptors kDescriptors[] = {
    {kNumbers, LayoutChoice::kAuto, 0, "dense"},
    {kNumbers, LayoutChoice::kAuto, 300, "csr"},
    {kNumbers, LayoutChoice::kOpen, 0, "open"},
    {kNumbers, LayoutChoice::kUnchained, 300, "unchained"},
    {"join.inner keys=i64,i64 build=i64 probe=i64", LayoutChoice::kAuto, 300, "unchained"}};

TEST(HashJoin, NoSettingChangesARow) {
  const auto build_rows = RowNumbers(1500), probe_rows = RowNumbers(5000);
  for (const Descriptors& descriptor : kDescriptors) {
    const auto build = descriptor.distinct == 0 ? build_rows : SomeKeys(1500, descriptor.distinct, 3),
               probe = SomeKeys(5000, 1700, 4);
    const size_t num_keys = ParseSpecOf<JoinSpec>(descriptor.spec)->keys.size();
    const auto batch_of = [&](const std::vector<int64_t>& keys, const std::vector<int64_t>& rows) {
      BatchView batch = Batch(keys, rows);
      batch.keys.resize(num_keys, batch.keys[0]);
      return batch;
    };
    const Pairs expected = NestedLoops(build, probe);
    for (const PrefetchSetting& setting : SomeSettings()) {
      JoinOptions options;
      options.layout = descriptor.layout;
      for (PrefetchSchedule& schedule : options.prefetch.Change()) schedule.entries[0].setting = setting;
      auto join = Join(descriptor.spec, nullptr, {}, options);
      ASSERT_TRUE(join->Append(batch_of(build, build_rows)).ok());
      ASSERT_TRUE(join->Finalise().ok());
      EXPECT_STREQ(join->stats().layout, descriptor.expected_layout);
      EXPECT_EQ(Probe(join, batch_of(probe, probe_rows), 999), expected) << PrintSetting(setting, PrefetchHint::kT0);
    }
  }
}

// 40 bytes each, which lie outside of the tuples: the third stage prefetches them.
TEST(HashJoin, NoSettingChangesHowManyLongKeysAreFound) {
  std::vector<std::string> values;
  for (int i = 0; i < 1200; ++i)
    values.push_back("a key of which a tuple holds no more than " + std::to_string(i % 400));
  const Strings build(values), probe(std::vector<std::string>(values.begin() + 100, values.begin() + 600));
  for (const PrefetchSetting& setting : SomeSettings()) {
    JoinOptions options;
    options.prefetch.Set(PrefetchLoop::kBuildUnchained, setting);
    options.prefetch.Set(PrefetchLoop::kProbeUnchained, setting);
    auto join = Join("join.inner keys=utf8", nullptr, {}, options);
    ASSERT_TRUE(join->Append(KeysOf(build)).ok());
    ASSERT_TRUE(join->Finalise().ok());
    OutputBatch out({}, 0, nullptr);
    JoinProber prober(join);
    ASSERT_TRUE(prober.SetInput(KeysOf(probe)).ok());
    const auto more = prober.Next(&out);
    ASSERT_TRUE(more.ok());
    EXPECT_FALSE(*more);
    EXPECT_EQ(out.num_rows(), 1500u) << PrintSetting(setting, PrefetchHint::kT0);
  }
}

TEST(HashJoin, ASettingMayChangeBetweenBatches) {
  const auto build_rows = RowNumbers(1500), probe_rows = RowNumbers(5000);
  for (const Descriptors& descriptor : kDescriptors) {
    if (ParseSpecOf<JoinSpec>(descriptor.spec)->keys.size() > 1) continue;
    const auto build = descriptor.distinct == 0 ? build_rows : SomeKeys(1500, descriptor.distinct, 3),
               probe = SomeKeys(5000, 1700, 4);
    const Pairs expected = NestedLoops(build, probe);
    JoinOptions options;
    options.layout = descriptor.layout;
    auto join = Join(descriptor.spec, nullptr, {}, options);
    join->SetPrefetch(PrefetchLoop::kBuildOpen, {kWholeBatch});
    ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
    ASSERT_TRUE(join->Finalise().ok());
    JoinProber prober(join);
    ASSERT_TRUE(prober.SetInput(Batch(probe, probe_rows)).ok());
    std::vector<ColumnType> types = {join->descriptor().spec().probe[0], join->descriptor().spec().build[0]};
    OutputBatch out(types, 700, nullptr);
    const std::vector<PrefetchSetting> settings = SomeSettings();
    Pairs found;
    size_t turn = 0;
    for (bool more = true; more;) {
      for (const PrefetchLoop loop :
           {PrefetchLoop::kProbeDense, PrefetchLoop::kProbeOpen, PrefetchLoop::kProbeUnchained}) {
        join->SetPrefetch(loop, settings[turn % settings.size()]);
      }
      EXPECT_EQ(join->stats().prefetch_distance, settings[turn++ % settings.size()].distance);
      const auto next = prober.Next(&out);
      ASSERT_TRUE(next.ok());
      test::AddRows(out, &found);
      more = *next;
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << descriptor.expected_layout;
  }
}

// Where hits are rare, a prober stops prefetching after some input, and starts again when they are frequent: inputs
// without a hit, with all hits, and without.
TEST(HashJoin, HowManyHitChangesNoRow) {
  for (const PrefetchSetting& setting : SomeSettings()) {
    JoinOptions options;
    options.layout = LayoutChoice::kUnchained;
    for (PrefetchSchedule& schedule : options.prefetch.Change()) schedule.entries[0].setting = setting;
    const auto build = RowNumbers(1500), numbers = RowNumbers(4500);
    auto join = Join(kNumbers, nullptr, {}, options);
    ASSERT_TRUE(join->Append(Batch(build, build)).ok());
    ASSERT_TRUE(join->Finalise().ok());
    EXPECT_STREQ(join->stats().layout, "unchained");
    JoinProber prober(join);
    OutputBatch out({join->descriptor().spec().probe[0], join->descriptor().spec().build[0]}, 700, nullptr);
    for (const int64_t first : {100'000, 0, 0, 200'000, 300'000, 700, 700, 0}) {
      std::vector<int64_t> probe(4500);
      Pairs expected, found;
      for (size_t i = 0; i < probe.size(); ++i) {
        probe[i] = first + static_cast<int64_t>(i % 1500);
        if (probe[i] < 1500) expected.emplace_back(i, probe[i]);
      }
      ASSERT_TRUE(prober.SetInput(Batch(probe, numbers)).ok());
      for (bool more = true; more;) {
        const auto next = prober.Next(&out);
        ASSERT_TRUE(next.ok());
        test::AddRows(out, &found);
        more = *next;
      }
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, expected) << first;
    }
  }
}

// A plan without prefetching prefetches nothing, whatever the setting.
TEST(HashJoin, WithoutPrefetchingNoSettingCounts) {
  const auto keys = RowNumbers(100);
  Tuning off;
  off.prefetches = false;
  auto join = Join(kNumbers, nullptr, off);
  ASSERT_TRUE(join->Append(Batch(keys, keys)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  join->SetPrefetch(PrefetchLoop::kProbeDense, {64});
  EXPECT_EQ(join->stats().prefetch_distance, 0u);
  EXPECT_EQ(Probe(join, Batch(keys, keys), 64), NestedLoops(keys, keys));
}

TEST(HashJoin, OneSlotForAllHashesGivesTheSameRows) {
  const auto build = SomeKeys(100, 60, 5), probe = SomeKeys(200, 80, 6);
  const auto build_rows = RowNumbers(100), probe_rows = RowNumbers(200);
  auto join = Join(kNumbers, nullptr, Tuning{1024, 64, true, true});
  ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(Probe(join, Batch(probe, probe_rows), 33), NestedLoops(build, probe));
}

TEST(HashJoin, ChunksOfManyBatchesMakeOneTable) {
  const auto build = SomeKeys(150000, 1 << 30, 7), rows = RowNumbers(150000);
  auto join = Join(kNumbers);
  for (size_t begin = 0; begin < build.size();) {
    const size_t n = std::min<size_t>(build.size() - begin, begin % 3 == 0 ? 1 : 17001);
    BatchView batch;
    batch.keys.push_back({nullptr, build.data() + begin, nullptr, nullptr, nullptr, 0});
    batch.payload.push_back({nullptr, rows.data() + begin, nullptr, nullptr, nullptr, 0});
    batch.num_rows = n;
    ASSERT_TRUE(join->Append(batch).ok());
    begin += n;
  }
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().table_rows, 150000u);
  const Pairs found = Probe(join, Batch(build, rows), 4096);
  for (size_t i = 0, row = 0; row < build.size(); ++row) {
    bool meets_itself = false;
    for (; i < found.size() && found[i].first == static_cast<int64_t>(row); ++i) {
      EXPECT_EQ(build[static_cast<size_t>(found[i].second)], build[row]);
      meets_itself |= found[i].second == static_cast<int64_t>(row);
    }
    ASSERT_TRUE(meets_itself) << row;
  }
}

TEST(HashJoin, AnOutputBatchWorksOnAfterItsRowsWereExported) {
  const auto keys = RowNumbers(10);
  auto join = Join(kNumbers);
  ASSERT_TRUE(join->Append(Batch(keys, keys)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  OutputBatch out({ColumnType{}, ColumnType{}}, 4, nullptr);
  JoinProber prober(join);
  ASSERT_TRUE(prober.SetInput(Batch(keys, keys)).ok());
  int64_t rows = 0;
  for (bool more = true; more;) {
    const auto next = prober.Next(&out);
    ASSERT_TRUE(next.ok());
    more = *next;
    ArrowArray array;
    out.ExportArrow(&array);
    const auto* probe = static_cast<const int64_t*>(array.children[0]->buffers[1]);
    const auto* build = static_cast<const int64_t*>(array.children[1]->buffers[1]);
    for (int64_t i = 0; i < array.length; ++i) EXPECT_EQ(probe[i], build[i]);
    rows += array.length;
    array.release(&array);
  }
  EXPECT_EQ(rows, 10);
}

// ---- selections, nulls and row ids ----

TEST(HashJoin, SelectionsPickRowsOnBothSides) {
  const std::vector<int64_t> keys = {10, 11, 12, 13, 14, 15}, rows = RowNumbers(6);
  const std::vector<uint32_t> build_rows = {5, 1, 1, 3}, probe_rows = {3, 0, 5};
  auto join = Join(kNumbers);
  BatchView build = Batch(keys, rows), probe = Batch(keys, rows);
  build.selection = build_rows.data();
  build.num_rows = build_rows.size();
  probe.selection = probe_rows.data();
  probe.num_rows = probe_rows.size();
  ASSERT_TRUE(join->Append(build).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(Probe(join, probe, 1), (Pairs{{3, 3}, {5, 5}}));
  EXPECT_EQ(Probe(join, Batch(keys, rows), 1), (Pairs{{1, 1}, {1, 1}, {3, 3}, {5, 5}}));
}

// Key 11 is null on both sides, key 13 only on the build side.
TEST(HashJoin, SelectedNullKeysMatchNothingOrEachOther) {
  const std::vector<int64_t> keys = {10, 11, 12, 13}, rows = RowNumbers(4);
  const uint8_t build_validity = 0b0101, probe_validity = 0b1101;
  const std::vector<uint32_t> selected = {3, 1, 0};
  for (const bool null_equal : {false, true}) {
    const std::string flags = null_equal ? ":nullable:nullequal" : ":nullable";
    auto join = Join("join.inner keys=i64" + flags + " build=i64 probe=i64");
    BatchView build = Batch(keys, rows, &build_validity), probe = Batch(keys, rows, &probe_validity);
    for (BatchView* batch : {&build, &probe}) {
      batch->selection = selected.data();
      batch->num_rows = selected.size();
    }
    ASSERT_TRUE(join->Append(build).ok());
    ASSERT_TRUE(join->Finalise().ok());
    EXPECT_EQ(join->stats().table_rows, null_equal ? 3u : 1u);
    EXPECT_EQ(Probe(join, probe, 2), null_equal ? (Pairs{{0, 0}, {1, 1}, {1, 3}}) : (Pairs{{0, 0}}));
  }
}

TEST(HashJoin, RowIdsCountFromTheBatchesFirstRow) {
  const std::vector<int64_t> keys = {1, 2, 3};
  const std::vector<uint32_t> last = {2};
  auto join = Join("join.inner keys=i64 build=rowid probe=rowid");
  BatchView batch = Batch(keys, keys);
  ASSERT_TRUE(join->Append(batch).ok());  // 0 to 2
  batch.first_row_id = 100;
  batch.selection = last.data();
  batch.num_rows = 1;
  ASSERT_TRUE(join->Append(batch).ok());  // 102
  ASSERT_TRUE(join->Finalise().ok());
  BatchView probe = Batch(keys, keys);
  probe.first_row_id = uint64_t{1} << 40;
  const int64_t first = int64_t{1} << 40;
  EXPECT_EQ(Probe(join, probe, 2), (Pairs{{first, 0}, {first + 1, 1}, {first + 2, 2}, {first + 2, 102}}));
}

TEST(HashJoin, WithoutPayloadItCountsInOneCall) {
  const std::vector<int64_t> ones(3000, 1);
  auto join = Join("join.inner keys=i64");
  ASSERT_TRUE(join->Append(Batch(ones, {})).ok());
  ASSERT_TRUE(join->Finalise().ok());
  JoinProber prober(join);
  ASSERT_TRUE(prober.SetInput(Batch(ones, {})).ok());
  OutputBatch count({}, 1, nullptr);
  const auto more = prober.Next(&count);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
  EXPECT_EQ(count.num_rows(), 9000000u);
}

// Indices 0 1 2 1 into {"a", "b", -}; row 2 is null, and its index must not be followed.
TEST(HashJoin, NullsOfADictionaryColumnComeOutAsNulls) {
  const Strings words({"a", "b"});
  const QuernColumn dictionary = words.column();
  const std::vector<int32_t> codes = {0, 1, 1 << 30, 1};
  const uint8_t validity = 0b1011;
  QuernColumn column = {};
  column.values = codes.data();
  column.validity = &validity;
  column.dictionary = &dictionary;
  for (const char* flags : {":nullable", ":nullable:nullequal"}) {
    const std::string type = "dictionary(i32,utf8)";
    auto join = Join("join.inner keys=" + type + flags + " build=" + type + ":nullable probe=" + type + ":nullable");
    BatchView batch;
    batch.keys = batch.payload = {column};
    batch.num_rows = 4;
    ASSERT_TRUE(join->Append(batch).ok());
    ASSERT_TRUE(join->Finalise().ok());
    JoinProber prober(join);
    ASSERT_TRUE(prober.SetInput(batch).ok());
    std::vector<ColumnType> types = join->descriptor().spec().probe;
    types.push_back(join->descriptor().spec().build[0]);
    OutputBatch out(types, 16, nullptr);
    ASSERT_TRUE(prober.Next(&out).ok());
    const bool null_equal = std::string(flags) != ":nullable";
    EXPECT_EQ(out.num_rows(), null_equal ? 6u : 5u);
    for (const size_t side : {0, 1}) {
      EXPECT_EQ(out.column(side).null_count, null_equal ? 1u : 0u);
      EXPECT_EQ(out.column(side).num_bytes, 5u);
    }
  }
}

}  // namespace
}  // namespace quern
