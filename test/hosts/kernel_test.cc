// SPDX-License-Identifier: Apache-2.0
// Kernels by the C ABI: what their texts say, when they are compiled and when found, and every refusal with its full
// text. (When compiling happens: compile_test.cc.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "join.inner keys=i64 build=f64 probe=rowid";

// Tests of this program count compilations: none may find a kernel of an earlier run.
[[maybe_unused]] const int kOff = setenv("QUERN_CACHE", "off", 0);

TEST(Library, HasTheHeadersVersion) {
  EXPECT_EQ(quern_abi_version(), static_cast<uint32_t>(QUERN_ABI_VERSION));
  EXPECT_TRUE(std::regex_match(quern_version(), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << quern_version();
}

// ---- texts ----

TEST(KernelText, SaysWhatTheKernelIs) {
  quern_cache_clear();
  const quern::Kernel kernel =
      KernelOf("join.inner probe=rowid  build=f64 keys=i64", Engine::kJit, "batch_size=512 prefetch=off");
  EXPECT_EQ(kernel.Text("spec"), kSpec);
  EXPECT_EQ(kernel.Text("plan").find("plan join.inner keys=i64 build=f64 probe=rowid\n"), 0u);
  EXPECT_NE(kernel.Text("plan").find("batch_size = 512"), std::string_view::npos);
  EXPECT_NE(kernel.Text("layout").find("f64"), std::string_view::npos);
  EXPECT_EQ(kernel.Text("engine"), "jit");
  EXPECT_EQ(kernel.Text("cache"), "miss");
  EXPECT_GT(std::strtod(kernel.Text("compile_ms").data(), nullptr), 0);
  EXPECT_GT(std::strtol(kernel.Text("code_bytes").data(), nullptr, 10), 0);
  EXPECT_EQ(kernel.Text("warning"), "");
  EXPECT_EQ(kernel.Text("no such text"), "");
  EXPECT_EQ(quern_kernel_text(kernel.handle(), "plans"), nullptr);
  EXPECT_EQ(quern_kernel_text(kernel.handle(), nullptr), nullptr);
  EXPECT_EQ(quern_kernel_text(nullptr, "plan"), nullptr);
  EXPECT_EQ(kernel.Text("plan").data(), kernel.Text("plan").data()) << "the text stays where it is";
}

TEST(KernelText, OfEveryOperatorIsCanonical) {
  const auto expect = [](const char* spec, const std::string& canonical, const char* in_layout) {
    const quern::Kernel kernel = KernelOf(spec, Engine::kGeneric);
    EXPECT_EQ(kernel.Text("spec"), canonical);
    EXPECT_EQ(kernel.Text("plan").find("plan " + canonical), 0u);
    EXPECT_NE(kernel.Text("layout").find(in_layout), std::string_view::npos) << kernel.Text("layout");
    EXPECT_EQ(kernel.Text("engine"), "generic");
    EXPECT_EQ(kernel.Text("code_bytes"), "0");
  };
  expect("aggregate  aggs=count_star keys=i64", "aggregate keys=i64 aggs=count_star", "count_star");
  expect("sort  payload=rowid keys=i64:asc:nulls_last", "sort keys=i64 payload=rowid", "i64");
  expect("filter  i64 == 2", "filter i64 = 2", "leaf");
}

// ---- the process's cache ----

TEST(KernelCache, FindsKernelsThatAreThere) {
  quern_cache_clear();
  const quern::Kernel first = KernelOf(kSpec), again = KernelOf(kSpec), generic = KernelOf(kSpec, Engine::kGeneric);
  EXPECT_EQ(first.Text("cache"), "miss");
  EXPECT_EQ(again.Text("cache"), "memory");
  EXPECT_EQ(generic.Text("cache"), "off");
  quern_cache_clear();
  EXPECT_EQ(KernelOf(kSpec).Text("cache"), "miss");
}

TEST(KernelCache, KeepsNothingBeyondItsLimit) {
  quern_cache_set_limit(1);
  const quern::Kernel first = KernelOf(kSpec), other = KernelOf("join.inner keys=i32 build=f64"),
                      third = KernelOf(kSpec);
  EXPECT_EQ(third.Text("cache"), "miss");
  quern_cache_set_limit(uint64_t{64} << 20);
}

TEST(KernelCache, CompilesOnceForThreadsThatAskAtOnce) {
  quern_cache_clear();
  std::atomic<int> misses{0};
  OnThreads(4, [&] { misses += KernelOf("join.inner keys=u16,u32 build=u8").Text("cache") == "miss"; });
  EXPECT_EQ(misses, 1);
}

// ---- refusals ----

std::string CompileError(const char* spec, const char* params = nullptr, quern_engine engine = QUERN_ENGINE_AUTO) {
  quern_kernel* kernel = reinterpret_cast<quern_kernel*>(8);
  std::string text = ErrorOf(QUERN_INVALID_ARGUMENT, quern_compile, spec, engine, params, &kernel);
  EXPECT_EQ(kernel, nullptr);
  return text;
}

TEST(CompileErrors, SpecsAndParameters) {
  EXPECT_EQ(CompileError("join.inner keys=i64", "batch_size"),
            "bad parameter: batch_size; accepted: name=value, separated by spaces");
  EXPECT_EQ(CompileError("join.inner keys=i64", "test.hash=mix64 =7"),
            "bad parameter: =7; accepted: name=value, separated by spaces");
  EXPECT_EQ(CompileError("join.inner keys=i64", " test.hash= "),
            "bad parameter: test.hash=; accepted: name=value, separated by spaces");
  EXPECT_EQ(CompileError("join.inner keys=i64", "test.hash=crc"),
            "bad value of plan parameter test.hash: crc; accepted: mix64, zero");
  EXPECT_EQ(CompileError("join.inner keys=i64", "\tbatch_size=7\n batch_size=4097"),
            "bad value of plan parameter batch_size: 4097; accepted: 1 to 4096 rows");
  EXPECT_TRUE(std::regex_match(
      CompileError("join.inner keys=i64", "batch=7"),
      std::regex("unknown plan parameter: batch; accepted: layout, .*inline_key_bytes, batch_size, .*")));
  EXPECT_EQ(CompileError("filter bool", "test.hash=zero"),
            "unknown plan parameter: test.hash; accepted: batch_size, prefetch, prefetch_input_rows, "
            "passes, codegen_level");
  EXPECT_TRUE(std::regex_match(CompileError("join.inner keys=i65"),
                               std::regex("unknown column type: i65; .*accepted: bool, i8, .*")));
  EXPECT_EQ(CompileError("filter i64 = 'a'"),
            "constant of i64: 'a'; accepted: an integer from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(quern::Kernel::Compile(kSpec, Engine::kAuto, "batch_size=0").status().text(),
            "bad value of plan parameter batch_size: 0; accepted: 1 to 4096 rows");
}

TEST(CompileErrors, Arguments) {
  EXPECT_EQ(CompileError(nullptr), "null argument: spec; accepted: a pointer");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_compile, "join.inner keys=i64", QUERN_ENGINE_AUTO,
                    static_cast<const char*>(nullptr), static_cast<quern_kernel**>(nullptr)),
            "null argument: kernel; accepted: a pointer");
  EXPECT_EQ(CompileError("join.inner keys=i64", "", static_cast<quern_engine>(3)),
            "unknown engine: 3; accepted: QUERN_ENGINE_AUTO (0), QUERN_ENGINE_JIT (1), QUERN_ENGINE_GENERIC (2)");
  quern_kernel_destroy(nullptr);
}

TEST(CompileErrors, LongTextsAreCutBetweenCharacters) {
  std::string params = "a";
  for (int i = 0; i < 2000; ++i) params += "\xc3\xa9";  // 2 bytes each
  const std::string text = CompileError("join.inner keys=i64", params.c_str());
  EXPECT_EQ(text, ("bad parameter: " + params).substr(0, 1018));
  EXPECT_EQ(CompileError("join.inner keys=i64", "x\ry"), "bad parameter: x; accepted: name=value, separated by spaces");
}

// ---- the wrapper ----

TEST(CppWrapper, MovesItsHandles) {
  quern::Join join = New<quern::Join>(kSpec);
  const quern_job* const handle = join.handle();
  const quern::Join moved = std::move(join);
  EXPECT_EQ(moved.handle(), handle);
  static_assert(!std::is_copy_constructible_v<quern::Kernel> && !std::is_copy_constructible_v<quern::Job> &&
                !std::is_copy_constructible_v<quern::Input> && !std::is_copy_constructible_v<quern::Output>);
}

}  // namespace
}  // namespace quern_test
