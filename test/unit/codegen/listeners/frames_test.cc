// SPDX-License-Identifier: Apache-2.0
// A profiler that stops a thread anywhere in a kernel finds the kernel's caller by frame pointers alone. In this test
// the processor stops after every instruction, and a signal handler walks the frames as a profiler does.
#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "codegen/compiler.h"
#include "test/unit/runtime/join/number_join.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUERN_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUERN_HAS_SANITIZER 1
#endif
#endif

#if defined(__x86_64__) && !defined(QUERN_HAS_SANITIZER)

namespace quern::test {
namespace {

// What the handler reads and counts; it may do nothing else.
struct Steps {
  uint64_t code_begin = 0, code_end = 0;
  uint64_t outer_frame = 0;  // of the function in which stepping began
  uint64_t in_kernel = 0, reached = 0, own_frame = 0;
  uint64_t return_address = 0;  // of the kernel's function that is running
  std::vector<uint64_t> functions;
};
Steps* steps = nullptr;

bool ReachesOuterFrame(uint64_t frame) {
  for (int depth = 0; depth < 64; ++depth) {
    if (frame == steps->outer_frame) return true;
    if (frame == 0 || frame % 8 != 0 || frame > steps->outer_frame) return false;  // frames grow towards the caller
    frame = *reinterpret_cast<const uint64_t*>(frame);
  }
  return false;
}

void OnStep(int, siginfo_t*, void* context) {
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<uint64_t>(registers[REG_RIP]), frame = static_cast<uint64_t>(registers[REG_RBP]);
  if (at < steps->code_begin || at >= steps->code_end) return;
  const bool enters = std::find(steps->functions.begin(), steps->functions.end(), at) != steps->functions.end();
  if (enters) steps->return_address = *reinterpret_cast<const uint64_t*>(registers[REG_RSP]);
  ++steps->in_kernel;
  if (!ReachesOuterFrame(frame)) return;
  ++steps->reached;
  if (!enters && reinterpret_cast<const uint64_t*>(frame)[1] == steps->return_address) ++steps->own_frame;
}

// The trap flag: a signal after each instruction. Written below the red zone, which may be in use.
inline void SetTrapFlag() {
  asm volatile("leaq -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                   : "cc", "memory");
}
inline void ClearTrapFlag() {
  asm volatile("leaq -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                   : "cc", "memory");
}

QuernJoinEntryPoints watched_join;

// Calls an entry point of the kernel and traps after each instruction.
template <auto kField>
struct Stepped;
template <class Result, class... Parameters, Result (*QuernJoinEntryPoints::*kField)(Parameters...)>
struct Stepped<kField> {
  static Result Call(Parameters... parameters) {
    SetTrapFlag();
    if constexpr (std::is_void_v<Result>) {
      (watched_join.*kField)(parameters...);
      ClearTrapFlag();
    } else {
      const Result result = (watched_join.*kField)(parameters...);
      ClearTrapFlag();
      return result;
    }
  }
};

// The same entry points, watched in this way.
QuernJoinEntryPoints Watch(const Kernel& kernel) {
  watched_join = kernel.As<JoinSpec>().entry_points;
  QuernJoinEntryPoints stepped = {};
#define QUERN_JOIN_ENTRY(field, result, parameters)                             \
  if (watched_join.field != nullptr) {                                          \
    steps->functions.push_back(reinterpret_cast<uint64_t>(watched_join.field)); \
    stepped.field = Stepped<&QuernJoinEntryPoints::field>::Call;                \
  }
#include "runtime/abi/join_entry_points.def"
  steps->code_begin = *std::min_element(steps->functions.begin(), steps->functions.end());
  steps->code_end = steps->code_begin + kernel.code_bytes;
  return stepped;
}

__attribute__((noinline)) Pairs BuildAndProbe(const std::shared_ptr<HashJoin>& join, const BatchView& build,
                                              const BatchView& probe) {
  steps->outer_frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  struct sigaction action = {}, before = {};
  action.sa_sigaction = OnStep;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  const bool built = join->Append(build).ok() && join->Finalise().ok();
  Pairs pairs = Probe(join, probe, 64);
  sigaction(SIGTRAP, &before, nullptr);
  EXPECT_TRUE(built);
  return pairs;
}

TEST(Frames, EveryInstructionOfAKernelHasAWayToItsCaller) {
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  options.overrides = {{"layout", "unchained"}};
  const auto compiled = CompileText("join.inner keys=i64 build=i64 probe=i64", options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Steps watched;
  steps = &watched;
  const QuernJoinEntryPoints stepped = Watch(*compiled->kernel);
  const std::vector<int64_t> build = {1, 2, 3, 3, 5, 8, 13}, probe = {3, 4, 13, 1, 21, 3};
  const std::vector<int64_t> build_rows = RowNumbers(build.size()), probe_rows = RowNumbers(probe.size());
  const auto join =
      std::make_shared<HashJoin>(compiled->kernel->As<JoinSpec>().descriptor, stepped, compiled->kernel,
                                 std::make_shared<MemoryBudget>(), MakeJoinOptions(compiled->kernel->plan));
  const Pairs pairs = BuildAndProbe(join, Batch(build, build_rows), Batch(probe, probe_rows));
  EXPECT_EQ(pairs, NestedLoops(build, probe));
  EXPECT_GT(watched.in_kernel, 200u);
  EXPECT_EQ(watched.reached, watched.in_kernel);
  // All except the few instructions before the frame is made and after it is removed: there a profiler misses one
  // caller, no more.
  EXPECT_GT(watched.own_frame, watched.in_kernel * 8 / 10) << watched.own_frame << " of " << watched.in_kernel;
}

}  // namespace
}  // namespace quern::test

#endif
