// SPDX-License-Identifier: Apache-2.0
// Profiles by the C ABI: which one kernels go by, what is refused, and tuning from a host's own process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "hosts/cpp/quern.hpp"

namespace {

// The profile that a tuning of no cell gives: this machine's signature, and no entries.
std::string NoEntries() {
  quern_tune_options options = {};
  options.struct_size = sizeof(options);
  options.budget_seconds = 0.1;
  options.on_progress = [](void*, double, const char*) { return false; };
  quern_profile* profile = nullptr;
  quern_error error = {};
  EXPECT_EQ(quern_tune(&options, &profile, &error), QUERN_OK) << error.text;
  const std::string text = profile == nullptr ? "" : quern_profile_text(profile);
  quern_profile_destroy(profile);
  return text;
}

// Of this machine: 200 KiB of slots are probed 48 rows ahead.
std::string OneEntry() {
  std::string text = NoEntries();
  const size_t end = text.rfind("end 0\n");
  EXPECT_NE(end, std::string::npos) << text;
  text.resize(end);
  return text +
         "entry probe_open packed 2^18 pipeline=1 threads=1 setting=48 ns=3 default_ns=4 off_ns=6 noise=0.01\nend 1\n";
}

// What a plan says of probing slots.
std::string Schedule() {
  const auto kernel = quern::Kernel::Compile("join.inner keys=i64", quern::Engine::kGeneric);
  EXPECT_TRUE(kernel.ok());
  const std::string plan(kernel->Text("plan"));
  const size_t line = plan.find("prefetch_probe_open");
  return plan.substr(line, plan.find('\n', line) - line);
}

bool IsTuned() {
  return Schedule().find("48@") != std::string::npos && Schedule().find("profile: 1 size exact") != std::string::npos;
}

struct Answer {
  quern_status status;
  std::string text;
};
Answer SetProfile(const char* path) {
  quern_error error = {};
  const quern_status status = quern_set_profile(path, &error);
  return {status, error.text};
}
Answer SetText(const std::string& text) {
  quern_error error = {};
  const quern_status status = quern_set_profile_text(text.data(), text.size(), &error);
  return {status, error.text};
}

class Profiles : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(SetProfile("off").status, QUERN_OK); }
  void TearDown() override { quern_set_profile("off", nullptr); }

  std::string Written(const std::string& text) const {
    const std::string path = testing::TempDir() + "quern-" + std::to_string(getpid()) + ".profile";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(Profiles, AreSetAndTakenAway) {
  EXPECT_NE(Schedule().find("; estimate"), std::string::npos) << Schedule();
  ASSERT_EQ(SetText(OneEntry()).text, "");
  EXPECT_TRUE(IsTuned()) << Schedule();
  ASSERT_EQ(SetProfile("off").text, "");
  EXPECT_FALSE(IsTuned()) << Schedule();
  EXPECT_TRUE(quern::SetProfileText(OneEntry()).ok());
  EXPECT_TRUE(IsTuned()) << Schedule();
  EXPECT_TRUE(quern::SetProfile("off").ok());
  EXPECT_FALSE(IsTuned()) << Schedule();
  const std::string path = Written(OneEntry());
  ASSERT_EQ(SetProfile(path.c_str()).text, "");
  EXPECT_TRUE(IsTuned()) << Schedule();
  // As the process finds it by itself.
  ASSERT_EQ(SetProfile("off").text, "");
  ASSERT_EQ(setenv("QUERN_PROFILE", path.c_str(), 1), 0);
  ASSERT_EQ(SetProfile(nullptr).text, "");
  EXPECT_TRUE(IsTuned()) << Schedule();
  ASSERT_EQ(setenv("QUERN_PROFILE", "off", 1), 0);
  ASSERT_EQ(SetProfile(nullptr).text, "");
  EXPECT_FALSE(IsTuned()) << Schedule();
  std::remove(path.c_str());
}

TEST_F(Profiles, ThatAreWrongChangeNothing) {
  ASSERT_EQ(SetText(OneEntry()).text, "");
  const std::string cut = OneEntry().substr(0, 20);
  EXPECT_EQ(SetText(cut).status, QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(SetText(cut).text.substr(0, 7), "text:2:") << SetText(cut).text;
  const Answer missing = SetProfile("/nowhere/at.profile");
  EXPECT_EQ(missing.status, QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(missing.text, "no profile: /nowhere/at.profile; accepted: a file that quern tune has written");
  EXPECT_EQ(SetProfile("/").status, QUERN_FAILED_PRECONDITION);
  const Answer foreign = SetText(
      "quern-profile 1\nmachine cpu_name=\"Golden CPU 9000\" cpu=znver4 microcode=0x1 hypervisor=\"\" "
      "l2_bytes=1048576 l3_bytes=33554432 huge_pages=madvise cores=8\nend 0\n");
  EXPECT_EQ(foreign.status, QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(foreign.text.find("profile of another machine: text ("), 0u) << foreign.text;
  EXPECT_EQ(quern_set_profile_text(nullptr, 0, nullptr), QUERN_INVALID_ARGUMENT);
  EXPECT_TRUE(IsTuned()) << Schedule();
}

// Facts and one small table of the loops that a spec has.
TEST(TuneByAbi, MeasuresSayingHowFarItIs) {
  const char* const spec = "join.inner keys=i64";
  struct Heard {
    int calls = 0;
    double share = 0;
  } heard;
  quern_tune_options options = {};
  options.struct_size = sizeof(options);
  options.specs = &spec;
  options.num_specs = 1;
  options.budget_seconds = 0.4;
  options.threads = 1;
  options.max_bytes = 1 << 15;
  options.context = &heard;
  options.on_progress = [](void* context, double share, const char* doing) {
    auto* const to = static_cast<Heard*>(context);
    EXPECT_GE(share, to->share);
    EXPECT_NE(std::string(doing), "");
    to->share = share;
    ++to->calls;
    return true;
  };
  quern_profile* profile = nullptr;
  quern_error error = {};
  ASSERT_EQ(quern_tune(&options, &profile, &error), QUERN_OK) << error.text;
  EXPECT_GT(heard.calls, 0);
  EXPECT_LE(heard.share, 1);
  const std::string text = quern_profile_text(profile);
  EXPECT_NE(text.find("fact memory bytes=32768"), std::string::npos) << text;
  EXPECT_EQ(SetText(text).text, "");
  EXPECT_EQ(quern_set_profile("off", nullptr), QUERN_OK);
  // What it begins with stays.
  const std::string start = OneEntry();
  options.start = start.c_str();
  options.on_progress = [](void*, double, const char*) { return false; };
  quern_profile_destroy(profile);
  ASSERT_EQ(quern_tune(&options, &profile, &error), QUERN_OK) << error.text;
  EXPECT_NE(std::string(quern_profile_text(profile)).find("setting=48"), std::string::npos);
  quern_profile_destroy(profile);
}

TEST(TuneByAbi, RefusesWhatIsWrong) {
  const auto error_of = [](quern_tune_options options, size_t struct_size = sizeof(quern_tune_options)) {
    options.struct_size = struct_size;
    quern_profile* profile = nullptr;
    quern_error error = {};
    EXPECT_EQ(quern_tune(&options, &profile, &error), QUERN_INVALID_ARGUMENT);
    EXPECT_EQ(profile, nullptr);
    return std::string(error.text);
  };
  quern_tune_options wrong = {};
  EXPECT_EQ(error_of(wrong, 8),
            "struct_size too small: 8; accepted: " + std::to_string(sizeof(quern_tune_options)) + " or more");
  wrong.budget_seconds = 0.05;
  EXPECT_EQ(error_of(wrong), "budget_seconds out of range: 0.050000; accepted: 0.1 to 86400, or 0");
  wrong = {};
  wrong.threads = 1025;
  EXPECT_EQ(error_of(wrong), "threads out of range: 1025; accepted: 0 to 1024");
  wrong = {};
  wrong.max_bytes = 5;
  EXPECT_EQ(error_of(wrong), "max_bytes out of range: 5; accepted: 32768 to 2147483648, or 0");
  wrong = {};
  wrong.num_specs = 1;
  EXPECT_EQ(error_of(wrong), "null argument: specs; accepted: a pointer");
  const char* const filter = "filter i64 > 3";
  wrong.specs = &filter;
  wrong.budget_seconds = 0.1;
  wrong.max_bytes = 1 << 15;
  EXPECT_EQ(error_of(wrong),
            "spec to tune: filter i64 > 3; accepted: joins, aggregations and sorts, which touch tables at random, "
            "and pipelines");
  wrong = {};
  wrong.start = "x";
  EXPECT_EQ(error_of(wrong).substr(0, 8), "start:1:");
  EXPECT_EQ(quern_tune(nullptr, nullptr, nullptr), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(quern_profile_text(nullptr), nullptr);
  quern_profile_destroy(nullptr);
}

// Of two at a time the second is refused.
TEST(TuneByAbi, RunsAlone) {
  quern_tune_options options = {};
  options.struct_size = sizeof(options);
  options.budget_seconds = 0.1;
  options.max_bytes = 1 << 15;
  std::string text;
  options.context = &text;
  options.on_progress = [](void* context, double, const char*) {
    quern_profile* profile = nullptr;
    quern_error error = {};
    EXPECT_EQ(quern_tune(nullptr, &profile, &error), QUERN_FAILED_PRECONDITION);
    *static_cast<std::string*>(context) = error.text;
    return false;
  };
  quern_profile* profile = nullptr;
  EXPECT_EQ(quern_tune(&options, &profile, nullptr), QUERN_OK);
  quern_profile_destroy(profile);
  EXPECT_EQ(text, "tuning beside another one: two would measure each other; accepted: one at a time in a process");
}

}  // namespace
