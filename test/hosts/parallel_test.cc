// SPDX-License-Identifier: Apache-2.0
// Threads of the host's own and of the library: whoever builds, probes and scans a join, the rows are those of one
// thread.
//
// Results of 300,000 rows are compared by their number and by a sum over rows that does not see their order.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

constexpr uint64_t kNumRows = 300000;
constexpr uint64_t kBatchRows = 10000;
constexpr uint32_t kThreads = 4;
const quern_column kRowIds = {};

// A bag of rows with two numbers each, of which either may be null.
struct Totals {
  uint64_t num_rows = 0;
  uint64_t sum = 0;

  bool operator==(const Totals&) const = default;
  void Add(const quern_result& result) {
    num_rows += result.num_rows;
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      uint64_t hash = 0;
      for (size_t i = 0; i < result.num_columns; ++i) {
        const quern_column& column = result.columns[i];
        const bool valid = column.validity == nullptr || BitAt(column.validity, row);
        hash = (hash + (valid ? ElementAt<uint64_t>(column.values, row) + 2 : 1)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
      }
      sum += hash;
    }
  }
  void Add(const Totals& other) {
    num_rows += other.num_rows;
    sum += other.sum;
  }
};

std::ostream& operator<<(std::ostream& out, const Totals& totals) {
  return out << totals.num_rows << " rows, sum " << totals.sum;
}

// One side: kNumRows rows in batches of kBatchRows. Key number i is (i * step) mod modulus.
class BigTable {
 public:
  BigTable(uint64_t step, uint64_t modulus, bool strings) : strings_(strings) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < kNumRows; ++i) {
      numbers_.push_back(static_cast<int64_t>(i * step % modulus));
      if (strings) texts.push_back("a key of more than twelve bytes: " + std::to_string(numbers_.back()));
    }
    words_ = StringVector<int32_t>(texts);
    columns_.resize(kNumRows / kBatchRows);
    for (size_t i = 0; i < columns_.size(); ++i) AddBatch(i);
    whole_key_ = strings_ ? words_.column() : ColumnOf(numbers_);
    whole_ = {&whole_key_, &kRowIds, nullptr, kNumRows, 0, 0};
  }
  BigTable(const BigTable&) = delete;
  BigTable& operator=(const BigTable&) = delete;

  const std::vector<quern_batch>& batches() const { return batches_; }
  const quern_batch& whole() const { return whole_; }

 private:
  void AddBatch(size_t i) {
    quern_column& key = columns_[i];
    if (strings_) {
      key = words_.column();
      key.offsets = words_.offsets.data() + i * kBatchRows;
    } else {
      key.values = numbers_.data() + i * kBatchRows;
    }
    batches_.push_back({&key, &kRowIds, nullptr, kBatchRows, i * kBatchRows, 0});
  }

  bool strings_;
  std::vector<int64_t> numbers_;
  StringVector<int32_t> words_{{}};
  std::vector<quern_column> columns_;
  std::vector<quern_batch> batches_;
  quern_column whole_key_;
  quern_batch whole_;
};

quern::Join NewJoin(const std::string& spec, uint64_t memory_limit = 0) {
  auto kernel = quern::Kernel::Compile(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  auto join = quern::Join::Create(*kernel, memory_limit);
  EXPECT_TRUE(join.ok()) << join.status().text();
  return *std::move(join);
}

void AddAll(quern::Prober* prober, Totals* totals) {
  for (bool more = true; more;) {
    auto rows = prober->Next();
    ASSERT_TRUE(rows.ok()) << rows.status().text();
    totals->Add(rows->result);
    more = rows->more;
  }
}

Totals ByOneThread(const std::string& spec, const BigTable& build, const BigTable& probe) {
  quern::Join join = NewJoin(spec);
  EXPECT_EQ(join.Append(build.whole()).text(), "");
  EXPECT_EQ(join.Finalise().text(), "");
  auto prober = quern::Prober::Create(join);
  Totals totals;
  EXPECT_EQ(prober->Input(probe.whole()).text(), "");
  AddAll(&*prober, &totals);
  EXPECT_EQ(prober->InputUnmatched().text(), "");
  AddAll(&*prober, &totals);
  return totals;
}

// As a host's worker would: no thread waits for another one but between the phases.
Totals ByThreads(const std::string& spec, const BigTable& build, const BigTable& probe, quern::StringBytes bytes) {
  quern::Join join = NewJoin(spec);
  std::barrier phase(kThreads);
  std::atomic<size_t> next_build{0}, next_probe{0};
  std::mutex mutex;
  Totals all;
  const auto work = [&] {
    auto appender = quern::Appender::Create(join);
    for (size_t i = next_build++; i < build.batches().size(); i = next_build++) {
      EXPECT_EQ(appender->Append(build.batches()[i], bytes).text(), "");
    }
    EXPECT_EQ(appender->Finish().text(), "");
    phase.arrive_and_wait();
    EXPECT_EQ(join.FinaliseShared().text(), "");
    auto prober = quern::Prober::Create(join, 1000);
    Totals totals;
    for (size_t i = next_probe++; i < probe.batches().size(); i = next_probe++) {
      EXPECT_EQ(prober->Input(probe.batches()[i]).text(), "");
      AddAll(&*prober, &totals);
    }
    phase.arrive_and_wait();
    EXPECT_EQ(prober->InputUnmatched().text(), "");
    AddAll(&*prober, &totals);
    const std::lock_guard<std::mutex> lock(mutex);
    all.Add(totals);
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return all;
}

Totals ByRun(const std::string& spec, std::span<const quern_batch> build, std::span<const quern_batch> probe,
             const quern::RunOptions& options) {
  quern::Join join = NewJoin(spec);
  std::mutex mutex;
  Totals totals;
  auto num_rows = join.Run(build, probe, options, [&](const quern_result& result) {
    Totals some;
    some.Add(result);
    const std::lock_guard<std::mutex> lock(mutex);
    totals.Add(some);
    return true;
  });
  EXPECT_TRUE(num_rows.ok()) << num_rows.status().text();
  if (num_rows.ok()) {
    EXPECT_EQ(*num_rows, totals.num_rows);
  }
  return totals;
}

// Keys of the two sides; half of the probe keys have no match, and half of the build keys.
struct Keys {
  const char* name;
  const char* type;
  uint64_t build_step, build_modulus, probe_step, probe_modulus;
};

std::ostream& operator<<(std::ostream& out, const Keys& keys) { return out << keys.name; }

class Parallel : public testing::TestWithParam<Keys> {
 protected:
  static std::string Spec(const std::string& kind) {
    const bool no_build = kind == "semi" || kind == "anti" || kind == "mark",
               no_probe = kind == "right_semi" || kind == "right_anti";
    return "join." + kind + " keys=" + GetParam().type + (no_build ? "" : " build=rowid") +
           (no_probe ? "" : " probe=rowid");
  }
  static bool HasStrings() { return std::string(GetParam().type) == "utf8"; }

  const BigTable build{GetParam().build_step, GetParam().build_modulus, HasStrings()};
  const BigTable probe{GetParam().probe_step, GetParam().probe_modulus, HasStrings()};
};

TEST_P(Parallel, ThreadsOfTheHostGiveTheRowsOfOne) {
  for (const char* kind : {"inner", "full", "right_semi", "right_anti", "semi"}) {
    SCOPED_TRACE(Spec(kind));
    const Totals expected = ByOneThread(Spec(kind), build, probe);
    EXPECT_GT(expected.num_rows, 10000u);
    EXPECT_EQ(ByThreads(Spec(kind), build, probe, quern::StringBytes::kStay), expected);
  }
}

// What one thread answers, counted by hand: unique keys meet once on half of each side; of three equal build rows, a
// quarter meets six probe rows each, which are half of the probe side.
TEST_P(Parallel, APartOfEachSideComesOutAlone) {
  const bool unique = GetParam().build_modulus > kNumRows;
  const uint64_t num_pairs = unique ? kNumRows / 2 : kNumRows / 2 * 3;
  const uint64_t probe_alone = kNumRows / 2, build_alone = unique ? kNumRows / 2 : kNumRows / 4 * 3;
  EXPECT_EQ(ByOneThread(Spec("inner"), build, probe).num_rows, num_pairs);
  EXPECT_EQ(ByOneThread(Spec("anti"), build, probe).num_rows, probe_alone);
  EXPECT_EQ(ByOneThread(Spec("right_anti"), build, probe).num_rows, build_alone);
  EXPECT_EQ(ByOneThread(Spec("full"), build, probe).num_rows, num_pairs + probe_alone + build_alone);
}

TEST_P(Parallel, ThreadsThatCopyBytesGiveTheRowsOfOne) {
  EXPECT_EQ(ByThreads(Spec("full"), build, probe, quern::StringBytes::kCopied),
            ByOneThread(Spec("full"), build, probe));
}

TEST_P(Parallel, ARunGivesTheRowsOfOneThread) {
  for (const char* kind : {"inner", "left", "full", "right_anti", "anti"}) {
    SCOPED_TRACE(Spec(kind));
    const Totals expected = ByOneThread(Spec(kind), build, probe);
    EXPECT_EQ(ByRun(Spec(kind), build.batches(), probe.batches(), {kThreads, 1000}), expected);
    EXPECT_EQ(ByRun(Spec(kind), {&build.whole(), 1}, {&probe.whole(), 1}, {kThreads, 0}), expected)
        << "cut into morsels";
    EXPECT_EQ(ByRun(Spec(kind), build.batches(), {&probe.whole(), 1}, {1, 0}), expected);
    EXPECT_EQ(*NewJoin(Spec(kind)).Run(build.batches(), probe.batches()), expected.num_rows);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Keys, Parallel,
    testing::Values(Keys{"Unique", "i64", 2, 1u << 31, 1, 1u << 31},
                    Keys{"SparseUnique", "i64", 0x1000003d, UINT64_MAX, 0x1000003d * 2, UINT64_MAX},
                    Keys{"Duplicates", "i64", 1, 100000, 4, 200000}, Keys{"Strings", "utf8", 1, 100000, 4, 200000}),
    [](const auto& keys) { return keys.param.name; });

// Every storage of a column, 150,000 rows, with bit offsets, nulls and a selection.
struct WideTable {
  static constexpr uint64_t kRows = 150000;

  WideTable() {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < kRows; ++i) {
      key.push_back(static_cast<int64_t>(i));
      small.push_back(static_cast<int32_t>(i * 7));
      index.push_back(static_cast<uint8_t>(i % 5));
      texts.push_back(i % 3 == 0 ? "short" : "a longer text, number " + std::to_string(i));
      has_value.push_back(i % 7 != 0);
      flag.push_back(i % 11 < 4);
      if (i % 2 == 0) even.push_back(static_cast<uint32_t>(kRows - 2 - i));
    }
    words = std::make_unique<StringVector<int32_t>>(texts);
    large_words = std::make_unique<StringVector<int64_t>>(texts);
    views = std::make_unique<ViewVector>(texts);
    validity = Bitmap(has_value, 3);
    flags = Bitmap(flag, 5);
    dictionary_values = dictionary.column();
  }
  Table table(bool selected) const {
    quern_column flag_column = ColumnOf(flags);
    flag_column.bit_offset = 5;
    return {{ColumnOf(key)},
            {WithValidity(ColumnOf(small), validity, 3), flag_column, WithValidity(words->column(), validity, 3),
             large_words->column(), views->column(),
             WithValidity(DictionaryColumn(ColumnOf(index), dictionary_values), validity, 3), kRowIds},
            kRows,
            selected ? even : std::vector<uint32_t>(),
            1000};
  }
  static constexpr const char* kTypes =
      "i32:nullable,bool,utf8:nullable,large_utf8,utf8_view,dictionary(u8,utf8):nullable,rowid";

  std::vector<int64_t> key;
  std::vector<int32_t> small;
  std::vector<uint8_t> index, validity, flags;
  std::vector<bool> has_value, flag;
  std::vector<uint32_t> even;
  StringVector<int32_t> dictionary{{"zero", "one", "two", "three", "a fourth, which is longer"}};
  quern_column dictionary_values;
  std::unique_ptr<StringVector<int32_t>> words;
  std::unique_ptr<StringVector<int64_t>> large_words;
  std::unique_ptr<ViewVector> views;
};

TEST(JoinRun, CutsColumnsOfEveryStorage) {
  const WideTable wide;
  const std::string types = WideTable::kTypes;
  const std::string spec = "join.inner keys=i64 build=" + types + " probe=" + types;
  for (const bool selected : {false, true}) {
    const Table table = wide.table(selected);
    const quern_batch batch = table.batch();
    Lines lines;
    std::mutex mutex;
    auto num_rows = NewJoin(spec).Run({&batch, 1}, {&batch, 1}, {2, 5000}, [&](const quern_result& result) {
      const std::lock_guard<std::mutex> lock(mutex);
      AddLines(result, "ibsSvsribsSvsr", &lines);
      return true;
    });
    ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
    std::sort(lines.begin(), lines.end());
    const Variant whole = {quern::Engine::kGeneric, quern::StringBytes::kStay, 0, ""};
    EXPECT_TRUE(lines == RunJoin(spec.c_str(), whole, table, table, "ibsSvsribsSvsr"))
        << "rows of " << lines.size() << " differ";
    EXPECT_EQ(lines.size(), selected ? WideTable::kRows / 2 : WideTable::kRows);
  }
}

TEST(JoinRun, StopsWhenTheHostWantsNoMore) {
  const BigTable table(1, 100000, false);
  std::atomic<uint32_t> calls{0};
  quern::Join join = NewJoin("join.full keys=i64 build=rowid probe=rowid");
  auto num_rows = join.Run(table.batches(), table.batches(), {kThreads, 100}, [&](const quern_result&) {
    ++calls;
    return false;
  });
  ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
  EXPECT_GE(calls, 1u);
  EXPECT_LE(calls, kThreads);
  EXPECT_EQ(*num_rows, calls * 100);
  EXPECT_TRUE(quern::Prober::Create(join).ok()) << "the table is there";
}

TEST(JoinRun, TakesWhatWasAppendedBefore) {
  const BigTable table(1, 1u << 31, false);
  quern::Join join = NewJoin("join.right keys=i64 build=rowid probe=rowid");
  ASSERT_TRUE(join.Append(table.batches()[0]).ok());
  auto num_rows = join.Run({&table.batches()[1], 1}, {&table.whole(), 1}, {2, 0});
  ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
  EXPECT_EQ(*num_rows, 2 * kBatchRows);
}

TEST(JoinRun, OfNothing) {
  auto num_rows = NewJoin("join.full keys=i64 build=rowid probe=rowid").Run({}, {});
  ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
  EXPECT_EQ(*num_rows, 0u);
}

TEST(JoinRun, LetsNoExceptionOut) {
  const BigTable table(1, 100000, false);
  quern::Join join = NewJoin("join.inner keys=i64 build=rowid probe=rowid");
  auto num_rows = join.Run(table.batches(), table.batches(), {kThreads, 0},
                           [](const quern_result&) -> bool { throw std::runtime_error("thrown by the host"); });
  ASSERT_FALSE(num_rows.ok());
  EXPECT_EQ(num_rows.status().code(), QUERN_INTERNAL);
  EXPECT_EQ(num_rows.status().text(), "thrown by the host");
}

TEST(JoinRun, BeyondTheMemoryLimit) {
  const BigTable table(1, 100000, false);
  for (const uint64_t limit :
       {uint64_t{100} << 10, uint64_t{4} << 20, uint64_t{12} << 20}) {  // while appending, finalising, probing
    quern::Join join = NewJoin("join.full keys=i64 build=rowid probe=rowid", limit);
    auto num_rows = join.Run(table.batches(), table.batches(), {kThreads, 1 << 20});
    ASSERT_FALSE(num_rows.ok()) << limit;
    EXPECT_EQ(num_rows.status().code(), QUERN_RESOURCE_EXHAUSTED) << num_rows.status().text();
  }
}

TEST(JoinRun, RefusesWhatItCannotDo) {
  const BigTable table(1, 100000, false);
  const quern_batch* const batch = &table.batches()[0];
  const quern_batch* const no_batch = nullptr;
  const auto error_of = [](quern_status code, quern_join* join, const quern_batch* build, const quern_batch* probe,
                           uint32_t threads, uint64_t batch_rows) {
    uint64_t num_rows = 77;
    quern_error error = {};
    EXPECT_EQ(quern_join_run(join, build, 1, probe, 1, threads, batch_rows, nullptr, nullptr, &num_rows, &error), code);
    EXPECT_EQ(num_rows, 0u);
    return std::string(error.text);
  };
  quern::Join join = NewJoin("join.inner keys=i64 build=rowid probe=rowid");
  quern_join* const handle = join.handle();
  const quern_status invalid = QUERN_INVALID_ARGUMENT;
  EXPECT_EQ(error_of(invalid, nullptr, batch, batch, 1, 0), "null argument: join; accepted: a pointer");
  EXPECT_EQ(error_of(invalid, handle, no_batch, batch, 1, 0), "null argument: build; accepted: a pointer");
  EXPECT_EQ(error_of(invalid, handle, batch, no_batch, 1, 0), "null argument: probe; accepted: a pointer");
  EXPECT_EQ(error_of(invalid, handle, batch, batch, 1025, 0), "threads out of range: 1025; accepted: 0 to 1024");
  EXPECT_EQ(error_of(invalid, handle, batch, batch, 1, uint64_t{1} << 31),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
  quern_batch large = *batch;
  large.num_rows = UINT32_MAX;
  EXPECT_EQ(error_of(invalid, handle, batch, &large, 1, 0),
            "batch too large: 4294967295 rows; accepted: below 4294967295");
  quern_batch keyless = *batch;
  keyless.keys = nullptr;
  EXPECT_EQ(error_of(invalid, handle, &keyless, batch, 1, 0), "batch without columns: build key; accepted: 1 columns");
  EXPECT_EQ(error_of(QUERN_FAILED_PRECONDITION, handle, batch, batch, 1, 0),
            "run after a failed append: a batch is missing from the table; accepted: a new join");
  quern::Join finalised = NewJoin("join.inner keys=i64 build=rowid probe=rowid");
  ASSERT_TRUE(finalised.Finalise().ok());
  EXPECT_EQ(error_of(QUERN_FAILED_PRECONDITION, finalised.handle(), batch, batch, 1, 0),
            "run after finalise: the table is built; accepted: a new join");
}

TEST(Appenders, ThatGoWithoutFinishTakeTheirRowsWithThem) {
  const BigTable table(1, 1u << 31, false);
  quern::Join join = NewJoin("join.inner keys=i64 build=rowid probe=rowid");
  {
    auto kept = quern::Appender::Create(join), gone = quern::Appender::Create(join);
    ASSERT_TRUE(kept->Append(table.batches()[0]).ok());
    ASSERT_TRUE(gone->Append(table.batches()[1]).ok());
    ASSERT_TRUE(kept->Finish().ok());
  }
  ASSERT_TRUE(join.FinaliseShared().ok());
  EXPECT_EQ(join.Stats().build_rows, kBatchRows);
  EXPECT_EQ(join.Stats().table_rows, kBatchRows);
}

TEST(Appenders, OutliveTheirJoin) {
  const BigTable table(1, 1u << 31, false);
  auto join = std::make_unique<quern::Join>(NewJoin("join.inner keys=i64 build=rowid probe=rowid"));
  auto appender = quern::Appender::Create(*join);
  join.reset();
  EXPECT_EQ(appender->Append(table.batches()[0]).text(), "");
  EXPECT_EQ(appender->Finish().text(), "");
}

TEST(Appenders, LearnOfAFailureOfAnother) {
  const BigTable table(1, 1u << 31, false);
  quern::Join join = NewJoin("join.inner keys=i64 build=rowid probe=rowid", 1000000);
  auto first = quern::Appender::Create(join), second = quern::Appender::Create(join);
  EXPECT_EQ(first->Append(table.whole()).code(), QUERN_RESOURCE_EXHAUSTED);
  const std::string text = " after a failed append: a batch is missing from the table; accepted: a new join";
  EXPECT_EQ(second->Append(table.batches()[0]).text(), "append" + text);
  EXPECT_EQ(second->Finish().text(), "finish" + text);
  EXPECT_EQ(join.FinaliseShared().text(), "finalise" + text);
  EXPECT_EQ(join.FinaliseShared().code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(quern::Appender::Create(join).status().text(), "appender" + text);
}

TEST(Appenders, MoveArrowArraysIn) {
  const TestSchema schema({{"id", "l"}, {"name", "u"}});
  const int32_t id[] = {0}, name[] = {1};
  std::vector<TestArrayPtr> batches;
  for (int64_t i = 0; i < kThreads; ++i) {
    batches.push_back(
        StructArray(2, FixedArray<int64_t>({i, i + 10}), Utf8Array({"a name of some length", std::to_string(i)})));
  }
  {
    quern::Join join = NewJoin("join.right keys=i64 build=utf8 probe=utf8");
    ASSERT_EQ(join.BindArrow({&schema.schema, id, name}, {&schema.schema, id, name}).text(), "");
    std::vector<std::thread> threads;
    for (TestArrayPtr& batch : batches) {
      threads.emplace_back([&] {
        auto appender = quern::Appender::Create(join);
        EXPECT_EQ(appender->AppendArrow(&batch->array).text(), "");
        EXPECT_EQ(appender->Finish().text(), "");
        EXPECT_EQ(batch->times_released, 0) << "the table points to its strings";
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(join.Layout(), "");
    ASSERT_EQ(join.FinaliseShared().text(), "");
    EXPECT_NE(join.Layout(), "");
    auto prober = quern::Prober::Create(join);
    ASSERT_EQ(prober->InputUnmatched().text(), "");
    EXPECT_EQ(ScanUnmatched(&*prober, "ss").size(), 2 * kThreads);
  }
  for (const TestArrayPtr& batch : batches) EXPECT_EQ(batch->times_released, 1);
}

TEST(Appenders, BeyondTheMemoryLimitReleaseTheirArrays) {
  const TestSchema schema(std::vector<TestField>{{"id", "l"}});
  const int32_t id[] = {0}, rowid[] = {-1};
  const auto batch = StructArray(kNumRows, FixedArray<int64_t>(std::vector<int64_t>(kNumRows, 1)));
  quern::Join join = NewJoin("join.right keys=i64 build=rowid probe=rowid", 1000000);
  ASSERT_EQ(join.BindArrow({&schema.schema, id, rowid}, {&schema.schema, id, rowid}).text(), "");
  auto appender = quern::Appender::Create(join);
  EXPECT_EQ(appender->AppendArrow(&batch->array).code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(batch->times_released, 1);
}

TEST(FinaliseShared, BeyondTheMemoryLimitIsTheSameForAll) {
  const BigTable table(0x1000003d, UINT64_MAX, false);
  const char* const spec = "join.inner keys=i64 build=rowid probe=rowid";
  quern::Join unlimited = NewJoin(spec);
  ASSERT_EQ(unlimited.Append(table.whole()).text(), "");
  const uint64_t appended_bytes = unlimited.Stats().peak_bytes;
  ASSERT_EQ(unlimited.FinaliseShared().text(), "");
  const uint64_t finalised_bytes = unlimited.Stats().peak_bytes;
  ASSERT_GT(finalised_bytes, appended_bytes);
  quern::Join join = NewJoin(spec, (appended_bytes + finalised_bytes) / 2);
  ASSERT_EQ(join.Append(table.whole()).text(), "");
  std::atomic<uint32_t> exhausted{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] { exhausted += join.FinaliseShared().code() == QUERN_RESOURCE_EXHAUSTED; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(exhausted, kThreads);
  EXPECT_EQ(quern::Prober::Create(join).status().code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(join.Layout(), "");
}

}  // namespace
}  // namespace quern_test
