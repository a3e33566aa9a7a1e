// SPDX-License-Identifier: Apache-2.0
// Pages for code: who gets which, which operations are permitted when, how many mappings they need, and what happens
// when there are no more.
#include "codegen/llvm/code_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/unit/runtime/base/process_memory.h"
#include "test/unit/runtime/base/sanitized.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::Mapping;
using test::Mappings;
using test::PermissionsAt;

const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

// mov eax, number; ret - in the host's architecture.
std::string CodeThatAnswers(uint8_t number) {
#if defined(__x86_64__)
  return {'\xb8', static_cast<char>(number), 0, 0, 0, '\xc3'};
#else
  const uint32_t words[] = {0x52800000u | static_cast<uint32_t>(number) << 5, 0xd65f03c0u};
  return std::string(reinterpret_cast<const char*>(words), sizeof(words));
#endif
}

int Call(const CodePages& pages) { return reinterpret_cast<int (*)()>(pages.address())(); }

CodePages Committed(CodeMemory* memory, uint64_t bytes, uint8_t number) {
  absl::StatusOr<CodePages> pages = memory->Reserve(bytes);
  EXPECT_TRUE(pages.ok()) << pages.status();
  if (!pages.ok()) return {};
  EXPECT_EQ(pages->Commit(CodeThatAnswers(number)), absl::OkStatus());
  return *std::move(pages);
}

// The number of lines of /proc/self/maps within the slabs of these pages, which are all that `memory` has.
uint64_t MappingsOf(const std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
  uint64_t count = 0;
  for (const Mapping& mapping : Mappings())
    for (const auto& [begin, end] : ranges)
      if (mapping.begin < end && begin < mapping.end) ++count;
  return count;
}

TEST(CodeMemory, PagesAreClosedThenExecutableThenClosedAgain) {
  CodeMemory memory;
  absl::StatusOr<CodePages> pages = memory.Reserve(kPage + 1);
  ASSERT_TRUE(pages.ok());
  EXPECT_EQ(pages->bytes(), 2 * kPage);
  EXPECT_EQ(pages->address() % kPage, 0u);
  const uint64_t address = pages->address();
  EXPECT_EQ(PermissionsAt(address), "---p");
  ASSERT_EQ(pages->Commit(CodeThatAnswers(42)), absl::OkStatus());
  EXPECT_EQ(PermissionsAt(address), "r-xp");
  EXPECT_EQ(PermissionsAt(address + kPage), "r-xp");
  EXPECT_EQ(PermissionsAt(address + 2 * kPage), "---p");
  EXPECT_EQ(Call(*pages), 42);
  pages->Free();
  EXPECT_EQ(PermissionsAt(address), "---p");
}

TEST(CodeMemory, FreedPagesAreTheNextOnesToBeTaken) {
  CodeMemory memory;
  const CodePages a = Committed(&memory, 1, 1);
  CodePages b = Committed(&memory, 2 * kPage, 2);
  const CodePages c = Committed(&memory, 1, 3);
  const uint64_t hole = b.address();
  b.Free();
  const CodePages too_long = Committed(&memory, 3 * kPage, 4);
  EXPECT_GT(too_long.address(), c.address());
  const CodePages fits = Committed(&memory, kPage, 5);
  EXPECT_EQ(fits.address(), hole);
  for (const auto& [pages, number] : {std::pair{&a, 1}, {&c, 3}, {&too_long, 4}, {&fits, 5}})
    EXPECT_EQ(Call(*pages), number);
}

TEST(CodeMemory, MovedPagesAreFreedOnce) {
  CodeMemory memory;
  CodePages first = Committed(&memory, 1, 1);
  CodePages second = std::move(first);
  CodePages& same = second;
  second = std::move(same);
  EXPECT_EQ(Call(second), 1);
  second = Committed(&memory, 1, 2);
  EXPECT_EQ(memory.Stats().kernels, 1u);
  EXPECT_EQ(Call(second), 2);
}

TEST(CodeMemory, NeighboursAreOneMapping) {
  CodeMemory memory(64 * kPage);
  std::vector<CodePages> kernels;
  for (uint8_t i = 0; i < 40; ++i) kernels.push_back(Committed(&memory, kPage, i));
  const uint64_t slab = kernels[0].address();
  const std::vector<std::pair<uint64_t, uint64_t>> range = {{slab, slab + 64 * kPage}};
  EXPECT_EQ(MappingsOf(range), 2u);
  EXPECT_EQ(memory.Stats().mappings, 2u);
  for (size_t i = 1; i < 40; i += 2) kernels[i].Free();
  EXPECT_EQ(MappingsOf(range), 40u);  // each of the 20 live ones, and the free pages above it
  EXPECT_EQ(memory.Stats().mappings, 40u);
  for (size_t i = 1; i < 40; i += 2) kernels[i] = Committed(&memory, kPage, static_cast<uint8_t>(i));
  EXPECT_EQ(MappingsOf(range), 2u);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(Call(kernels[i]), static_cast<int>(i));
  EXPECT_EQ(memory.Stats().used_bytes, 40 * kPage);
  EXPECT_EQ(memory.Stats().reserved_bytes, 64 * kPage);
}

TEST(CodeMemory, FreedPagesTakeNoMemory) {
  CodeMemory memory(256 * kPage);
  const CodePages stays = Committed(&memory, 1, 7);
  const std::string code(255 * kPage, '\x90');
  for (int round = 0; round < 3; ++round) {
    absl::StatusOr<CodePages> pages = memory.Reserve(code.size());
    ASSERT_TRUE(pages.ok());
    ASSERT_EQ(pages->Commit(code), absl::OkStatus());
    unsigned char resident = 0;
    auto* last = reinterpret_cast<void*>(pages->address() + 254 * kPage);
    ASSERT_EQ(mincore(last, kPage, &resident), 0);
    EXPECT_EQ(resident & 1, 1);
    pages->Free();
    ASSERT_EQ(mincore(last, kPage, &resident), 0);
    EXPECT_EQ(resident & 1, 0);
  }
  EXPECT_EQ(Call(stays), 7);
}

TEST(CodeMemory, SlabsThatRunEmptyAreGivenBackAllButOne) {
  CodeMemory memory(4 * kPage);
  std::vector<CodePages> kernels;
  for (uint8_t i = 0; i < 40; ++i) kernels.push_back(Committed(&memory, kPage, i));
  EXPECT_EQ(memory.Stats().reserved_bytes, 40 * kPage);
  kernels.clear();
  EXPECT_EQ(memory.Stats().reserved_bytes, 4 * kPage);
  EXPECT_EQ(memory.Stats().kernels, 0u);
  EXPECT_EQ(memory.Stats().used_bytes, 0u);
}

TEST(CodeMemory, AKernelThatIsLongerThanASlabGetsOneOfItsOwn) {
  CodeMemory memory(4 * kPage);
  const CodePages small = Committed(&memory, 1, 1);
  CodePages large = Committed(&memory, 9 * kPage, 2);
  EXPECT_EQ(Call(large), 2);
  EXPECT_EQ(memory.Stats().reserved_bytes, 13 * kPage);
  large.Free();
  EXPECT_EQ(memory.Stats().reserved_bytes, 4 * kPage);
  EXPECT_EQ(Call(small), 1);
}

// Kernels of 1 to 9 pages come and go: what was written stays, no two overlap, and free pages are found again. Two
// thirds of a slab always fit one slab, whatever the history.
TEST(CodeMemory, RandomKernelsComeAndGo) {
  std::mt19937_64 random = test::PrintedRandom();
  CodeMemory memory(512 * kPage);
  std::vector<std::pair<CodePages, uint8_t>> kernels;
  uint64_t used = 0;
  for (int step = 0; step < 3000; ++step) {
    const uint64_t pages = 1 + random() % 9;
    while (used + pages > 340) {
      std::swap(kernels[random() % kernels.size()], kernels.back());
      used -= kernels.back().first.bytes() / kPage;
      kernels.pop_back();
    }
    const auto number = static_cast<uint8_t>(random());
    kernels.emplace_back(Committed(&memory, pages * kPage, number), number);
    used += pages;
    const auto& [code, answer] = kernels[random() % kernels.size()];
    ASSERT_EQ(Call(code), answer);
  }
  std::set<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [code, answer] : kernels) {
    EXPECT_EQ(Call(code), answer);
    ranges.emplace(code.address(), code.address() + code.bytes());
  }
  uint64_t end = 0;
  for (const auto& [begin, next] : ranges) {
    EXPECT_GE(begin, end);
    end = next;
  }
  EXPECT_EQ(memory.Stats().used_bytes, used * kPage);
  EXPECT_LE(memory.Stats().reserved_bytes, 2 * 512 * kPage);
}

// While threads write and run, another thread checks that no page of the process is ever writable and executable.
TEST(CodeMemory, ThreadsShareItAndNothingIsEverWritableAndExecutable) {
  CodeMemory memory;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<CodePages> kernels(16);
      for (uint32_t i = 0; i < 2000; ++i) {
        const auto number = static_cast<uint8_t>(t * 50 + i % 50);
        kernels[i % 16] = Committed(&memory, 1 + (i % 3) * kPage, number);
        ASSERT_EQ(Call(kernels[i % 16]), number);
      }
    });
  }
  std::thread watch([&] {
    while (!stop.load()) EXPECT_FALSE(test::AnyMappingIsWritableAndExecutable());
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  watch.join();
  EXPECT_EQ(memory.Stats().kernels, 0u);
}

TEST(CodeMemory, BeyondItsLimitItSaysSoAndGoesOn) {
  CodeMemory memory(4 * kPage, 8 * kPage);
  const absl::Status out = absl::ResourceExhaustedError("out of code memory: " + std::to_string(5 * kPage) +
                                                        " bytes; accepted: what the system has free");
  CodePages a = Committed(&memory, 4 * kPage, 1);
  EXPECT_EQ(memory.Reserve(5 * kPage).status(), out);
  const CodePages b = Committed(&memory, 3 * kPage, 2);
  EXPECT_FALSE(memory.Reserve(2 * kPage).ok());
  a.Free();
  EXPECT_EQ(memory.Reserve(UINT64_MAX - 5).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(memory.Reserve(2 * kPage).ok());
  EXPECT_EQ(Call(b), 2);
}

TEST(CodeMemory, CodeThatIsLongerThanItsPagesIsRefused) {
  CodeMemory memory;
  absl::StatusOr<CodePages> pages = memory.Reserve(kPage);
  ASSERT_TRUE(pages.ok());
  EXPECT_FALSE(pages->Commit(std::string(kPage + 1, '\0')).ok());
  EXPECT_EQ(pages->Commit(CodeThatAnswers(3)), absl::OkStatus());
  EXPECT_EQ(Call(*pages), 3);
}

// The exit status of a child process that runs `body`.
template <class Body>
int ExitStatusOf(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(CodeMemory, AProcessWithoutAddressesLeftGetsAnError) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the addresses";
  EXPECT_EQ(ExitStatusOf([] {
              CodeMemory memory;
              const rlimit none = {1, 1};
              if (setrlimit(RLIMIT_AS, &none) != 0) return 2;
              return memory.Reserve(1).status().code() == absl::StatusCode::kResourceExhausted ? 0 : 1;
            }),
            0);
}

TEST(CodeMemory, ASystemThatForbidsNewCodeIsAnError) {
  constexpr int kSetMdwe = 65;  // PR_SET_MDWE of Linux 6.3, which the headers lack
  const int status = ExitStatusOf([] {
    CodeMemory memory;
    if (prctl(kSetMdwe, 1UL, 0UL, 0UL, 0UL) != 0) return 77;
    absl::StatusOr<CodePages> pages = memory.Reserve(1);
    if (!pages.ok()) return 1;
    const absl::Status committed = pages->Commit(CodeThatAnswers(1));
    const auto expected = absl::FailedPreconditionError(
        "cannot make memory executable: Permission denied; accepted: a process that may (SELinux: execmem, systemd: "
        "MemoryDenyWriteExecute=no)");
    if (committed != expected) std::fprintf(stderr, "%s\n", committed.ToString().c_str());
    if (committed != expected) return 2;
    const uint64_t address = pages->address();
    pages->Free();
    return test::PermissionsAt(address) == "---p" ? 0 : 3;
  });
  if (status == 77) GTEST_SKIP() << "this kernel cannot forbid it";
  EXPECT_EQ(status, 0);
}

TEST(CodeMemory, AForkedChildRunsAndFreesItsCopy) {
  CodeMemory memory;
  const CodePages kept = Committed(&memory, 1, 9);
  std::optional<CodePages> freed = Committed(&memory, 1, 8);
  EXPECT_EQ(ExitStatusOf([&] {
              freed.reset();
              const CodePages more = Committed(&memory, kPage, 7);
              return Call(kept) * 10 + Call(more);
            }),
            97);
  EXPECT_EQ(Call(*freed), 8);
}

}  // namespace
}  // namespace quern
