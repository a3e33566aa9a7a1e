// SPDX-License-Identifier: Apache-2.0
// Loaded code is never writable and executable at once, is freed with its last user, and can call nothing outside the
// allow-list.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "codegen/compiler.h"
#include "codegen/llvm/jit.h"
#include "codegen/operators.h"
#include "runtime/blocks/runtime_calls.h"
#include "test/unit/codegen/llvm/kernel_object.h"
#include "test/unit/runtime/base/process_memory.h"

namespace quern {
namespace {

using test::PermissionsAt;

CompileOptions Uncached() {
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  return options;
}

TEST(Jit, CodeIsNeverWritableAndExecutable) {
  const auto compiled = CompileText("join.inner keys=i64,utf8 build=f64", Uncached());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(PermissionsAt(reinterpret_cast<const void*>(compiled->kernel->As<JoinSpec>().entry_points.compare)),
            "r-xp");
  EXPECT_FALSE(test::AnyMappingIsWritableAndExecutable());
}

TEST(Jit, CodeGoesWithItsLastUser) {
  const void* address = nullptr;
  {
    const auto compiled = CompileText("join.inner keys=i32", Uncached());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    address = reinterpret_cast<const void*>(compiled->kernel->As<JoinSpec>().entry_points.pack);
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
    address = reinterpret_cast<const void*>(compiled->kernel->As<JoinSpec>().entry_points.pack);
    join = MakeHashJoin(compiled->kernel, std::make_shared<MemoryBudget>());
  }
  EXPECT_EQ(PermissionsAt(address), "r-xp");
}

TEST(Jit, EveryAllowedCallHasANameOfItsKind) {
  for (const RuntimeCall& call : AllRuntimeCalls()) {
    const std::string name = call.name;
    EXPECT_TRUE(name.rfind("quern_rt_", 0) == 0 || name == "memcpy" || name == "memmove" || name == "memset" ||
                name == "memcmp" || name == "bcmp")
        << name;
    EXPECT_NE(call.address, nullptr);
  }
}

// Objects that no compilation makes, but that a damaged file might contain.
std::string MessageOf(const std::string& object, const std::vector<std::string>& symbols) {
  return std::string(LoadObject(object, symbols, "join.inner keys=i64").status().message());
}

TEST(Jit, AnObjectIsLoadedAsOftenAsOneLikes) {
  const test::KernelObject object = test::MakeKernelObject("join.inner keys=i64");
  const auto first = LoadObject(object.bytes, object.symbols, "first"),
             second = LoadObject(object.bytes, object.symbols, "second");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(first->addresses.size(), object.symbols.size());
  EXPECT_NE(first->addresses[0], second->addresses[0]);
  EXPECT_GT(first->code_bytes, 0u);
  EXPECT_EQ(first->page_bytes % 4096, 0u);
  EXPECT_GE(first->page_bytes, first->code_bytes);
  EXPECT_EQ(PermissionsAt(first->addresses[0]), "r-xp");
}

TEST(Jit, WhatIsNoKernelsObjectIsAnError) {
  const test::KernelObject object = test::MakeKernelObject("join.inner keys=i64");
  EXPECT_EQ(MessageOf("hello", object.symbols),
            "cannot load code: Unsupported file format; accepted: a kernel's object");
  EXPECT_EQ(MessageOf("", object.symbols), "cannot load code: Unsupported file format; accepted: a kernel's object");
  EXPECT_EQ(MessageOf(object.bytes, {"quern_join_probe"}),
            "cannot load code: it has no quern_join_probe; accepted: a kernel's object");
  for (size_t length = 0; length < object.bytes.size(); ++length)
    EXPECT_FALSE(LoadObject(object.bytes.substr(0, length), object.symbols, "").ok()) << length;
}

TEST(Jit, CodeThatCallsAnythingElseIsNotLoaded) {
  test::KernelObject object = test::MakeKernelObject("join.inner keys=i64");
  const size_t at = object.bytes.find("quern_rt_");
  ASSERT_NE(at, std::string::npos);
  const std::string renamed = std::string(object.bytes.c_str() + at).replace(0, 5, "other");
  object.bytes.replace(at, renamed.size(), renamed);
  EXPECT_EQ(MessageOf(object.bytes, object.symbols),
            "cannot load code: it calls what it may not: " + renamed + "; accepted: a kernel's object");
}

TEST(Jit, AnotherArchitecturesCodeIsNotLoaded) {
  test::KernelObject object = test::MakeKernelObject("join.inner keys=i64");
  constexpr size_t kMachine = 18;  // of an ELF header
  constexpr char kAarch64 = '\xb7', kX86 = '\x3e';
  object.bytes[kMachine] = object.bytes[kMachine] == kX86 ? kAarch64 : kX86;
  EXPECT_EQ(MessageOf(object.bytes, object.symbols).rfind("cannot load code: ", 0), 0u);
}

}  // namespace
}  // namespace quern
