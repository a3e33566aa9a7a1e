// SPDX-License-Identifier: Apache-2.0
// All stages from spec to kernel: which callers share a kernel, what is the same in every run, and what is rejected.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/inspect/dump.h"
#include "codegen/llvm/template_library.h"
#include "ir-templates/generic/generic_join.h"

namespace quern {
namespace {

constexpr const char* kSpec = "join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,utf8 probe=i32";

CompileOptions With(Engine engine, bool use_cache = true) {
  CompileOptions options;
  options.engine = engine;
  options.use_cache = use_cache;
  return options;
}

std::string_view EmbeddedTemplate(const std::string& name, const std::string& arch) {
  std::string unused;
  return *FindTemplate(name, arch, "", &unused);
}

// A folder of templates for one test.
class TemplateDir {
 public:
  explicit TemplateDir(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / (name + "." + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemplateDir() { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / (name + "." + HostMachine()->arch + ".bc"), std::ios::binary) << bytes;
  }
  CompileOptions Options(Engine engine) const {
    CompileOptions options = With(engine);
    options.template_dir = path_.string();
    return options;
  }

 private:
  std::filesystem::path path_;
};

std::string Error(const absl::StatusOr<CompiledKernel>& compiled) { return std::string(compiled.status().message()); }

// ---- sharing ----

TEST(Compile, FieldsInAnotherOrderShareOneKernel) {
  ClearKernelCache();
  const auto first = CompileText("join.inner keys=i64 build=f64 probe=i32", With(Engine::kJit));
  const auto second = CompileText("join.inner  probe=i32 build=f64 keys=i64", With(Engine::kAuto));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->cache, CacheOutcome::kMiss);
  EXPECT_EQ(second->cache, CacheOutcome::kMemory);
  EXPECT_EQ(first->kernel, second->kernel);
  EXPECT_EQ(Compile(*ParseSpec("join.inner keys=i64 probe=i32 build=f64"))->kernel, first->kernel);
}

TEST(Compile, ParametersMakeAnotherKernelAndTheirOrderDoesNot) {
  CompileOptions options = With(Engine::kJit);
  const auto plain = CompileText("join.inner keys=i64", options);
  options.overrides = {{"batch_size", "7"}, {"test.hash", "zero"}};
  const auto tuned = CompileText("join.inner keys=i64", options);
  options.overrides = {{"test.hash", "zero"}, {"batch_size", "1"}, {"batch_size", "7"}};
  const auto again = CompileText("join.inner keys=i64", options);
  ASSERT_TRUE(plain.ok() && tuned.ok() && again.ok());
  EXPECT_NE(plain->kernel, tuned->kernel);
  EXPECT_EQ(tuned->kernel, again->kernel);
  EXPECT_EQ(tuned->kernel->plan.batch_size, 7u);
}

// A text may contain line breaks; it must not be found under the name of another text with parameters, nor vice versa.
TEST(Compile, NoTextIsTakenForAnotherWithParameters) {
  CompileOptions plain = With(Engine::kJit), tuned = With(Engine::kJit);
  ASSERT_TRUE(CompileText("join.inner keys=i64\nbuild=f64", plain).ok());
  tuned.overrides = {{"build", "f64"}};
  EXPECT_EQ(CompileText("join.inner keys=i64", tuned).status().code(), absl::StatusCode::kInvalidArgument);
  tuned.overrides = {{"batch_size", "7"}};
  ASSERT_TRUE(CompileText("join.inner keys=i64", tuned).ok());
  for (const std::string text : {"join.inner keys=i64\nbatch_size=7", "join.inner keys=i64 10 batch_size 1 7"}) {
    EXPECT_EQ(CompileText(text, plain).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(CompileText(std::string("join.inner keys=i64\0batch_size=7", 32), plain).ok());
}

TEST(Compile, WithoutTheCacheEachKernelIsItsOwn) {
  const KernelCacheStats before = GetKernelCacheStats();
  const auto first = CompileText(kSpec, With(Engine::kJit, false)),
             second = CompileText(kSpec, With(Engine::kJit, false));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->cache, CacheOutcome::kOff);
  EXPECT_NE(first->kernel, second->kernel);
  EXPECT_EQ(first->kernel->code_bytes, second->kernel->code_bytes);
  EXPECT_GT(first->kernel->code_bytes, 0u);
  EXPECT_EQ(GetKernelCacheStats().misses, before.misses);
  EXPECT_EQ(GetKernelCacheStats().hits, before.hits);
}

TEST(Compile, TheGenericEngineNeverCompiles) {
  const KernelCacheStats before = GetKernelCacheStats();
  const auto compiled = CompileText("join.inner keys=u16,u16", With(Engine::kGeneric));
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->kernel->engine, Engine::kGeneric);
  EXPECT_EQ(compiled->kernel->As<JoinSpec>().entry_points.compare, GenericJoinKernel().compare);
  EXPECT_EQ(compiled->kernel->code, nullptr);
  EXPECT_EQ(compiled->kernel->code_bytes, 0u);
  EXPECT_EQ(compiled->cache, CacheOutcome::kOff);
  EXPECT_EQ(compiled->warning, "");
  EXPECT_EQ(GetKernelCacheStats().misses, before.misses);
}

// ---- the same code in every run ----

TEST(Compile, EveryStageOfTheSameSpecIsTheSame) {
  for (const char* name : {"x86-64-v3", "aarch64:neoverse-n1"}) {
    const Machine machine = *MachineByName(name);
    for (const char* stage : {"spec", "plan", "layout", "template", "ir", "opt", "asm", "obj", "remarks"}) {
      const auto first = Dump(stage, *ParseSpec(kSpec), machine, {}),
                 second = Dump(stage, *ParseSpec(kSpec), machine, {});
      ASSERT_TRUE(first.ok()) << stage << " " << first.status();
      EXPECT_EQ(*first, *second) << stage;
      EXPECT_FALSE(first->empty()) << stage;
    }
  }
}

TEST(Compile, UnknownStagesAreRefused) {
  for (const char* stage : {"", "object", "spec, plan", "plan,", ",", " ", "spec,plan"}) {
    const auto dump = Dump(stage, *ParseSpec("join.inner keys=i64"), *HostMachine(), {});
    const std::string shown = *stage ? stage : "\"\"";
    EXPECT_EQ(std::string(dump.status().message()),
              "unknown stage: " + shown +
                  "; accepted: spec, plan, layout, template, ir, opt, asm, annotated_asm, obj, remarks");
  }
}

// ---- rejections ----

TEST(Compile, ACallersMistakeIsNoReasonToFallBack) {
  CompileOptions options;
  options.overrides = {{"batch_size", "0"}};
  EXPECT_EQ(CompileText("join.inner keys=i64", options).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Compile(KernelSpec{}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Compile(KernelSpec{}, With(Engine::kGeneric)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Compile, WithoutTemplatesJitFailsAndAutoFallsBack) {
  CompileOptions options = With(Engine::kJit);
  options.template_dir = "/nowhere";
  const std::string text = "cannot read template: /nowhere/join." + HostMachine()->arch +
                           ".bc; accepted: a folder with NAME.ARCH.bc for every template";
  EXPECT_EQ(Error(CompileText(kSpec, options)), text);
  options.engine = Engine::kAuto;
  const auto compiled = CompileText(kSpec, options);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->kernel->engine, Engine::kGeneric);
  EXPECT_EQ(compiled->warning, "not compiled, running the generic kernel: " + text);
}

TEST(Compile, ACopyOfTheTemplatesMakesTheSameKernel) {
  const std::string arch = HostMachine()->arch;
  const TemplateDir directory("quern-templates");
  for (const char* name : {"join", "blocks"}) directory.Write(name, EmbeddedTemplate(name, arch));
  const auto compiled = CompileText(kSpec, directory.Options(Engine::kJit));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->cache, CacheOutcome::kOff);
  EXPECT_EQ(compiled->kernel->code_bytes, CompileText(kSpec, With(Engine::kJit))->kernel->code_bytes);
}

TEST(Compile, BrokenTemplatesAreRefused) {
  const std::string arch = HostMachine()->arch;
  const std::string_view join = EmbeddedTemplate("join", arch), blocks = EmbeddedTemplate("blocks", arch);
  const TemplateDir directory("quern-broken-templates");
  const auto error = [&](std::string_view join_bytes, std::string_view block_bytes) {
    directory.Write("join", join_bytes);
    directory.Write("blocks", block_bytes);
    const auto compiled = CompileText(kSpec, directory.Options(Engine::kJit));
    EXPECT_EQ(compiled.status().code(), absl::StatusCode::kInternal);
    return Error(compiled);
  };
  EXPECT_EQ(error("", blocks).rfind("bad template: join: ", 0), 0u);
  EXPECT_EQ(error(join.substr(0, join.size() / 2), blocks).rfind("bad template: join: ", 0), 0u);
  EXPECT_EQ(error(join, "no bitcode at all").rfind("bad template: blocks: ", 0), 0u);
  EXPECT_EQ(error(join, join).rfind("template and emitters disagree: no such block: quern_block_", 0), 0u);
  EXPECT_EQ(error(blocks, blocks).rfind("unused body: quern_block_", 0), 0u);
}

// The widest permitted specs; the length of a spec's text is limited too.
TEST(Compile, SixteenKeysAreTheMost) {
  std::string keys = "i64";
  for (int i = 1; i < 16; ++i)
    keys += i % 2 == 0 ? ",i64:nullable:nullequal" : ",dictionary(i8,utf8(ascii_bin)):nullable";
  EXPECT_TRUE(CompileText("join.inner keys=" + keys, With(Engine::kJit)).ok());
  EXPECT_EQ(Error(CompileText("join.inner keys=" + keys + ",i64")),
            "number of keys out of range: 17; accepted: 1 to 16");
}

}  // namespace
}  // namespace quern
