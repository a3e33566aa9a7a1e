// SPDX-License-Identifier: Apache-2.0
// The C ABI's life: kernels and their texts, results in several batches, threads, handles destroyed in odd orders.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <thread>

#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "join.inner keys=i64 build=f64 probe=rowid";
const quern_column kRowIds = {};

// Tests of this program count compilations: none may find a kernel of an earlier run.
[[maybe_unused]] const int kOff = setenv("QUERN_CACHE", "off", 0);

quern_kernel* CompileOrDie(const char* spec, quern_engine engine = QUERN_ENGINE_JIT, const char* params = nullptr) {
  quern_error error = {};
  quern_kernel* kernel = nullptr;
  EXPECT_EQ(quern_compile(spec, engine, params, &kernel, &error), QUERN_OK) << error.text;
  return kernel;
}

TEST(Library, HasTheHeadersVersion) {
  EXPECT_EQ(quern_abi_version(), static_cast<uint32_t>(QUERN_ABI_VERSION));
  EXPECT_TRUE(std::regex_match(quern_version(), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << quern_version();
}

TEST(KernelText, SaysWhatTheKernelIs) {
  quern_cache_clear();
  quern_kernel* kernel =
      CompileOrDie("join.inner probe=rowid  build=f64 keys=i64", QUERN_ENGINE_JIT, "batch_size=512 prefetch=off");
  EXPECT_STREQ(quern_kernel_text(kernel, "spec"), kSpec);
  EXPECT_EQ(std::string(quern_kernel_text(kernel, "plan")).rfind("plan join.inner keys=i64 build=f64 probe=rowid\n", 0),
            0u);
  EXPECT_NE(std::string(quern_kernel_text(kernel, "plan")).find("batch_size = 512"), std::string::npos);
  EXPECT_NE(std::string(quern_kernel_text(kernel, "layout")).find("f64"), std::string::npos);
  EXPECT_STREQ(quern_kernel_text(kernel, "engine"), "jit");
  EXPECT_STREQ(quern_kernel_text(kernel, "cache"), "miss");
  EXPECT_GT(std::strtod(quern_kernel_text(kernel, "compile_ms"), nullptr), 0);
  EXPECT_GT(std::strtol(quern_kernel_text(kernel, "code_bytes"), nullptr, 10), 0);
  EXPECT_STREQ(quern_kernel_text(kernel, "warning"), "");
  EXPECT_EQ(quern_kernel_text(kernel, "plans"), nullptr);
  EXPECT_EQ(quern_kernel_text(kernel, nullptr), nullptr);
  EXPECT_EQ(quern_kernel_text(nullptr, "plan"), nullptr);
  EXPECT_EQ(quern_kernel_text(kernel, "plan"), quern_kernel_text(kernel, "plan")) << "the text stays where it is";
  quern_kernel_destroy(kernel);
}

TEST(KernelText, TellsOfTheCache) {
  quern_cache_clear();
  quern_kernel* first = CompileOrDie(kSpec);
  quern_kernel* again = CompileOrDie(kSpec);
  quern_kernel* generic = CompileOrDie(kSpec, QUERN_ENGINE_GENERIC);
  EXPECT_STREQ(quern_kernel_text(first, "cache"), "miss");
  EXPECT_STREQ(quern_kernel_text(again, "cache"), "memory");
  EXPECT_STREQ(quern_kernel_text(generic, "cache"), "off");
  EXPECT_STREQ(quern_kernel_text(generic, "engine"), "generic");
  EXPECT_STREQ(quern_kernel_text(generic, "code_bytes"), "0");
  quern_cache_clear();
  quern_kernel* anew = CompileOrDie(kSpec);
  EXPECT_STREQ(quern_kernel_text(anew, "cache"), "miss");
  for (quern_kernel* kernel : {first, again, generic, anew}) quern_kernel_destroy(kernel);
}

TEST(Cache, KeepsNothingBeyondItsLimit) {
  quern_cache_set_limit(1);
  quern_kernel* first = CompileOrDie(kSpec);
  quern_kernel* again = CompileOrDie("join.inner keys=i32 build=f64");
  quern_kernel* third = CompileOrDie(kSpec);
  EXPECT_STREQ(quern_kernel_text(third, "cache"), "miss");
  for (quern_kernel* kernel : {first, again, third}) quern_kernel_destroy(kernel);
  quern_cache_set_limit(uint64_t{64} << 20);
}

// 100 build rows with keys 0..9, each ten times; probe keys 0..9: 100 result rows.
struct TenByTen {
  TenByTen() {
    for (int64_t i = 0; i < 100; ++i) {
      key.push_back(i % 10);
      price.push_back(static_cast<double>(i));
    }
  }
  Table build() const { return {{ColumnOf(key)}, {ColumnOf(price)}, 100}; }
  Table probe() const { return {{ColumnOf(key)}, {kRowIds}, 10}; }

  std::vector<int64_t> key;
  std::vector<double> price;
};

TEST(Results, ComeInBatchesOfAnySize) {
  const TenByTen tables;
  const Lines all = RunJoin(kSpec, {}, tables.build(), tables.probe(), "rd");
  EXPECT_EQ(all.size(), 100u);
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    for (const uint64_t batch_rows : {1, 7, 10, 99, 100, 101}) {
      EXPECT_EQ(RunJoin(kSpec, {engine, quern::StringBytes::kStay, batch_rows, "batch_size=8"}, tables.build(),
                        tables.probe(), "rd"),
                all);
    }
  }
}

TEST(Results, WithoutPayloadOnlyCount) {
  const TenByTen tables;
  auto kernel = quern::Kernel::Compile("join.inner keys=i64");
  auto join = quern::Join::Create(*kernel);
  ASSERT_TRUE(join->Append(tables.build().batch()).ok());
  ASSERT_TRUE(join->Finalise().ok());
  auto prober = quern::Prober::Create(*join, 1);
  ASSERT_TRUE(prober->Input(tables.probe().batch()).ok());
  auto rows = prober->Next();
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->result.num_rows, 100u);
  EXPECT_EQ(rows->result.num_columns, 0u);
  EXPECT_EQ(rows->result.columns, nullptr);
  EXPECT_FALSE(rows->more);
}

TEST(Results, AfterTheLastAreEmpty) {
  const TenByTen tables;
  auto kernel = quern::Kernel::Compile(kSpec);
  auto join = quern::Join::Create(*kernel);
  ASSERT_TRUE(join->Append(tables.build().batch()).ok());
  ASSERT_TRUE(join->Finalise().ok());
  auto prober = quern::Prober::Create(*join);
  for (int input = 0; input < 2; ++input) {
    ASSERT_TRUE(prober->Input(tables.probe().batch()).ok());
    EXPECT_EQ(ScanUnmatched(&*prober, "rd").size(), 100u);
    auto rows = prober->Next();
    ASSERT_TRUE(rows.ok());
    EXPECT_EQ(rows->result.num_rows, 0u);
    EXPECT_EQ(rows->result.num_columns, 2u);
    EXPECT_FALSE(rows->more);
  }
}

TEST(Results, OfAnAbandonedInputDoNotComeBack) {
  const TenByTen tables;
  auto kernel = quern::Kernel::Compile(kSpec);
  auto join = quern::Join::Create(*kernel);
  ASSERT_TRUE(join->Append(tables.build().batch()).ok());
  ASSERT_TRUE(join->Finalise().ok());
  auto prober = quern::Prober::Create(*join, 3);
  ASSERT_TRUE(prober->Input(tables.probe().batch()).ok());
  ASSERT_TRUE(prober->Next().ok());
  Table other = tables.probe();
  other.selection = {4};
  ASSERT_TRUE(prober->Input(other.batch()).ok());
  const Lines lines = ScanUnmatched(&*prober, "rd", 3);
  EXPECT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.front(), "4|14");
}

TEST(Build, TakesManyBatchesAndCounts) {
  const TenByTen tables;
  auto kernel = quern::Kernel::Compile("join.inner keys=i64:nullable build=f64 probe=rowid", quern::Engine::kAuto,
                                       "layout=unchained");
  auto join = quern::Join::Create(*kernel);
  const std::vector<uint8_t> valid = Bitmap(std::vector<bool>(100, true)), none = Bitmap(std::vector<bool>(100, false));
  Table build = tables.build();
  for (const auto* bitmap : {&valid, &none, &valid}) {
    build.keys[0].validity = bitmap->data();
    ASSERT_TRUE(join->Append(build.batch()).ok());
  }
  ASSERT_TRUE(join->Finalise().ok());
  const quern_join_stats stats = join->Stats();
  EXPECT_EQ(stats.build_rows, 300u);
  EXPECT_EQ(stats.table_rows, 200u);
  EXPECT_EQ(stats.tuple_bytes, 200u * 16);
  EXPECT_GE(stats.directory_bytes, 200u * 8);
  EXPECT_GE(stats.peak_bytes, stats.tuple_bytes + stats.directory_bytes);
}

TEST(Build, TellsTheLayoutOfTheTable) {
  const TenByTen tables;
  auto kernel = quern::Kernel::Compile(kSpec, quern::Engine::kAuto, "layout=unchained");
  ASSERT_TRUE(kernel.ok()) << kernel.status().text();
  auto join = quern::Join::Create(*kernel);
  ASSERT_TRUE(join->Append(tables.build().batch()).ok());
  EXPECT_STREQ(quern_join_layout(join->handle()), "");
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_STREQ(quern_join_layout(join->handle()), "unchained");
  EXPECT_EQ(quern_join_layout(nullptr), nullptr);
}

TEST(Probers, OfSeveralThreadsShareOneJoin) {
  const TenByTen tables;
  const Lines all = RunJoin(kSpec, {}, tables.build(), tables.probe(), "rd");
  auto kernel = quern::Kernel::Compile(kSpec, quern::Engine::kAuto, "batch_size=4");
  auto join = quern::Join::Create(*kernel);
  ASSERT_TRUE(join->Append(tables.build().batch()).ok());
  ASSERT_TRUE(join->Finalise().ok());
  Lines lines[2];
  const auto probe = [&](Lines* out) {
    auto prober = quern::Prober::Create(*join, 5);
    for (int round = 0; round < 50; ++round) {
      if (prober->Input(tables.probe().batch()).ok()) *out = ScanUnmatched(&*prober, "rd", 5);
    }
  };
  std::thread first(probe, &lines[0]), second(probe, &lines[1]);
  first.join();
  second.join();
  EXPECT_EQ(lines[0], all);
  EXPECT_EQ(lines[1], all);
}

TEST(Kernels, AreCompiledOnceForThreadsThatAskAtOnce) {
  quern_cache_clear();
  quern_kernel* kernels[4] = {};
  std::vector<std::thread> threads;
  for (quern_kernel*& kernel : kernels)
    threads.emplace_back([&kernel] { kernel = CompileOrDie("join.inner keys=u16,u32 build=u8"); });
  for (std::thread& thread : threads) thread.join();
  int misses = 0;
  for (quern_kernel* kernel : kernels) misses += quern_kernel_text(kernel, "cache") == std::string("miss");
  EXPECT_EQ(misses, 1);
  for (quern_kernel* kernel : kernels) quern_kernel_destroy(kernel);
}

TEST(Handles, MayGoInAnyOrder) {
  const TenByTen tables;
  quern_kernel* kernel = CompileOrDie(kSpec, QUERN_ENGINE_JIT, "batch_size=3");
  quern_join* join = nullptr;
  ASSERT_EQ(quern_join_create(kernel, 0, &join, nullptr), QUERN_OK);
  quern_kernel_destroy(kernel);
  quern_cache_clear();  // now only the join keeps the code
  const Table build = tables.build(), probe = tables.probe();
  const quern_batch build_batch = build.batch(), probe_batch = probe.batch();
  ASSERT_EQ(quern_join_append(join, &build_batch, false, nullptr), QUERN_OK);
  ASSERT_EQ(quern_join_finalise(join, nullptr), QUERN_OK);
  quern_prober *first = nullptr, *second = nullptr;
  ASSERT_EQ(quern_prober_create(join, 7, &first, nullptr), QUERN_OK);
  ASSERT_EQ(quern_prober_create(join, 7, &second, nullptr), QUERN_OK);
  quern_join_destroy(join);
  quern_prober_destroy(first);
  ASSERT_EQ(quern_prober_input(second, &probe_batch, nullptr), QUERN_OK);
  Lines lines;
  for (bool more = true; more;) {
    quern_result result;
    ASSERT_EQ(quern_prober_next(second, &result, &more, nullptr), QUERN_OK);
    AddLines(result, "rd", &lines);
  }
  EXPECT_EQ(lines.size(), 100u);
  quern_prober_destroy(second);
}

TEST(Handles, ThatAreNullAreNothing) {
  quern_kernel_destroy(nullptr);
  quern_join_destroy(nullptr);
  quern_appender_destroy(nullptr);
  quern_prober_destroy(nullptr);
  quern_join_stats stats;
  std::memset(&stats, 0xff, sizeof(stats));
  quern_join_get_stats(nullptr, &stats);
  EXPECT_EQ(stats.build_rows, 0u);
  quern_join_get_stats(nullptr, nullptr);
}

TEST(CppWrapper, MovesItsHandles) {
  auto kernel = quern::Kernel::Compile(kSpec);
  ASSERT_TRUE(kernel.ok());
  quern::Kernel moved = *std::move(kernel);
  EXPECT_EQ(moved.Text("spec"), kSpec);
  EXPECT_EQ(moved.Text("no such text"), "");
  auto failed = quern::Kernel::Compile(kSpec, quern::Engine::kAuto, "batch_size=0");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(failed.status().text(), "bad value of plan parameter batch_size: 0; accepted: 1 to 4096 rows");
  static_assert(!std::is_copy_constructible_v<quern::Kernel> && !std::is_copy_constructible_v<quern::Join> &&
                !std::is_copy_constructible_v<quern::Appender> && !std::is_copy_constructible_v<quern::Prober>);
}

}  // namespace
}  // namespace quern_test
