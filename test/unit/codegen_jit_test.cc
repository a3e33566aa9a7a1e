// SPDX-License-Identifier: Apache-2.0
// Loaded code: never writable and executable at once, gone when its last user is gone, and able to call nothing outside the allow-list.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "codegen/compiler.h"
#include "runtime/runtime_calls.h"

namespace quern {
namespace {

// The permissions of the mapping that holds an address ("r-xp"); empty where nothing is mapped.
std::string PermissionsAt(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    char dash = 0;
    std::string permissions;
    std::istringstream fields(line);
    fields >> std::hex >> begin >> dash >> end >> permissions;
    const uint64_t at = reinterpret_cast<uint64_t>(address);
    if (begin <= at && at < end) return permissions;
  }
  return "";
}

bool AnyMappingIsWritableAndExecutable() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(" rwx") != std::string::npos) return true;
  return false;
}

CompileOptions Uncached() {
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  return options;
}

TEST(Jit, CodeIsNeverWritableAndExecutable) {
  const auto compiled = CompileText("join.inner keys=i64,utf8 build=f64", Uncached());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(PermissionsAt(reinterpret_cast<const void*>(compiled->kernel->join.compare)), "r-xp");
  EXPECT_FALSE(AnyMappingIsWritableAndExecutable());
}

TEST(Jit, CodeGoesWithItsLastUser) {
  const void* address = nullptr;
  {
    const auto compiled = CompileText("join.inner keys=i32", Uncached());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    address = reinterpret_cast<const void*>(compiled->kernel->join.pack);
    EXPECT_EQ(PermissionsAt(address), "r-xp");
  }
  EXPECT_NE(PermissionsAt(address), "r-xp");
}

TEST(Jit, AJoinKeepsItsCode) {
  std::shared_ptr<HashJoin> join;
  const void* address = nullptr;
  {
    const auto compiled = CompileText("join.inner keys=i16", Uncached());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    address = reinterpret_cast<const void*>(compiled->kernel->join.pack);
    join = MakeHashJoin(compiled->kernel, std::make_shared<MemoryBudget>());
  }
  EXPECT_EQ(PermissionsAt(address), "r-xp");
}

TEST(Jit, EveryAllowedCallHasANameOfItsKind) {
  for (const RuntimeCall& call : AllRuntimeCalls()) {
    const std::string name = call.name;
    EXPECT_TRUE(name.rfind("quern_rt_", 0) == 0 || name == "memcpy" || name == "memmove" || name == "memset" || name == "memcmp" ||
                name == "bcmp")
        << name;
    EXPECT_NE(call.address, nullptr);
  }
}

}  // namespace
}  // namespace quern
