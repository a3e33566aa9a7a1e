// SPDX-License-Identifier: Apache-2.0
// A kernel that is found on disk or in memory initialises no part of LLVM's code generation, not even its list of
// targets. Only a process that has never compiled can show this, hence each test runs this program again.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "codegen/compiler.h"
#include "llvm/MC/TargetRegistry.h"

namespace quern {
namespace {

constexpr const char* kSpecs[] = {"join.inner keys=i64,utf8(utf8mb4_bin) build=f64 probe=i64",
                                  "aggregate keys=i64 aggs=sum(i64)", "sort keys=i64:out,utf8:out",
                                  "filter utf8 like '%a_c%' and i64 < 5"};

bool HasTargets() { return llvm::TargetRegistry::targets().begin() != llvm::TargetRegistry::targets().end(); }

// Compiles all specs and expects this outcome for each.
void ExpectAll(CacheOutcome outcome) {
  CompileOptions options;
  options.engine = Engine::kJit;
  for (const char* spec : kSpecs) {
    const auto compiled = CompileText(spec, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ(static_cast<int>(compiled->cache), static_cast<int>(outcome)) << spec;
    EXPECT_EQ(compiled->kernel->from_disk, outcome != CacheOutcome::kMiss) << spec;
    EXPECT_GT(compiled->kernel->code_bytes, 0u);
  }
}

TEST(DiskHit, DISABLED_FirstProcess) {
  EXPECT_FALSE(HasTargets());
  ExpectAll(CacheOutcome::kMiss);
  EXPECT_TRUE(HasTargets());
}

TEST(DiskHit, DISABLED_SecondProcess) {
  ExpectAll(CacheOutcome::kDisk);
  ExpectAll(CacheOutcome::kMemory);
  EXPECT_FALSE(HasTargets());
}

int StatusOf(const std::string& test, const std::string& folder) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("QUERN_CACHE", "rw", 1);
    setenv("QUERN_CACHE_DIR", folder.c_str(), 1);
    for (const char* other : {"QUERN_DUMP", "QUERN_OVERRIDE", "QUERN_JIT_PROFILE"}) unsetenv(other);
    const std::string filter = "--gtest_filter=DiskHit.DISABLED_" + test;
    execl("/proc/self/exe", "codegen_tests", filter.c_str(), "--gtest_also_run_disabled_tests", "--gtest_brief=1",
          nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(DiskHit, StartsNoCodeGeneration) {
  std::string folder = (std::filesystem::temp_directory_path() / "quern_disk_hit.XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(StatusOf("FirstProcess", folder + "/cache"), 0);
  EXPECT_EQ(StatusOf("SecondProcess", folder + "/cache"), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quern
