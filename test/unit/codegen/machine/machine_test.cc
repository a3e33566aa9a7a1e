// SPDX-License-Identifier: Apache-2.0
// Machines: this one, others by name, and their text.
#include "codegen/machine/machine.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace quern {
namespace {

std::string Error(const absl::StatusOr<Machine>& machine) { return std::string(machine.status().message()); }

constexpr const char* kAccepted =
    "; accepted: native, an x86-64 CPU from x86-64-v2 up (x86-64-v3, znver4, ..), aarch64:CPU (aarch64:neoverse-n1, "
    "..)";

// First in this file, before anything has used LLVM's targets: threads request those of both architectures at once.
TEST(Machine, AnyThreadMayAskFirst) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] { EXPECT_TRUE(MachineByName(i % 2 == 0 ? "x86-64-v3" : "aarch64:neoverse-n1").ok()); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Machine, TheHostIsTheSameAtEveryCall) {
  const auto host = HostMachine();
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_TRUE(host->is_host);
  EXPECT_FALSE(host->cpu.empty());
  EXPECT_FALSE(host->features.empty());
  EXPECT_GE(host->l2_bytes, uint64_t{64} << 10);
  EXPECT_GE(host->l3_bytes, host->l2_bytes);
  EXPECT_EQ(*HostMachine(), *host);
  EXPECT_EQ(*MachineByName("native"), *host);
}

TEST(Machine, ANamedOneDependsOnNothingOfTheHost) {
  const auto machine = MachineByName("znver4");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(PrintMachine(*machine), "machine x86-64 cpu=znver4 l2_bytes=1048576 l3_bytes=33554432 features=");
  EXPECT_FALSE(machine->is_host);
  EXPECT_EQ(MachineByName("x86-64:znver4")->cpu, "znver4");
  EXPECT_EQ(MachineByName("aarch64:neoverse-n1")->arch, "aarch64");
}

TEST(Machine, UnknownAndTooOldOnesAreRefused) {
  for (const char* name : {"znver99", "", "aarch64:", "aarch64:znver4", "arm:neoverse-n1", "neoverse-n1"}) {
    EXPECT_EQ(Error(MachineByName(name)), "unknown machine: " + (*name ? std::string(name) : "\"\"") + kAccepted);
  }
  for (const char* name : {"x86-64", "i386", "core2"}) {
    EXPECT_EQ(Error(MachineByName(name)), "CPU below x86-64-v2: " + std::string(name) + kAccepted);
  }
}

TEST(Machine, TextsOfDifferentMachinesDiffer) {
  const Machine machine = *MachineByName("znver4");
  Machine others[] = {machine, machine, machine, machine, machine};
  others[0].arch = "aarch64";
  others[1].cpu = "znver5";
  others[2].l2_bytes *= 2;
  others[3].l3_bytes *= 2;
  others[4].features = "+avx512f";
  for (const Machine& other : others) EXPECT_NE(PrintMachine(other), PrintMachine(machine));
}

}  // namespace
}  // namespace quern
