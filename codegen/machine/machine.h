// SPDX-License-Identifier: Apache-2.0
// The machine that a kernel is made for: architecture, CPU and features for LLVM, cache sizes for the plan.
#ifndef QUERN_CODEGEN_MACHINE_MACHINE_H_
#define QUERN_CODEGEN_MACHINE_MACHINE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quern {

struct Machine {
  std::string arch;      // "x86-64", "aarch64"
  std::string cpu;       // LLVM's name: "znver4", "x86-64-v3", "neoverse-n1"
  std::string features;  // LLVM's "+a,-b" list, sorted; empty: those of the CPU
  uint64_t l2_bytes = 1 << 20;
  uint64_t l3_bytes = 32 << 20;
  bool is_host = false;  // its code can run here

  bool operator==(const Machine&) const = default;
};

// This machine: CPU and features from CPUID, caches from sysfs (the defaults above where sysfs has none). Detected once
// per process.
// *Errors*: FailedPrecondition on a CPU below x86-64-v2.
absl::StatusOr<Machine> HostMachine();

// "native", a CPU name of the host's architecture ("znver4", "x86-64-v2"), or "aarch64:CPU". Caches of a named machine
// are the defaults above, so that plans for it are the same wherever they are made. *Errors*: InvalidArgument; the
// message names the CPU and what is accepted.
absl::StatusOr<Machine> MachineByName(std::string_view name);

// Whether vectors of states of several kinds pay, which takes masks and 64-bit maxima (AVX-512).
bool HasVectorMasks(const Machine& machine);
// How many rows ahead the columns of an aggregation without keys are prefetched; 0: not at all, where the processor
// reads them ahead by itself as fast as memory allows. Without a profile, which has what was measured (input_choice.h).
// default_rows: of other machines.
uint32_t InputRowsWithoutKeys(const Machine& machine, uint32_t default_rows);

// The target triple in LLVM's form: "x86_64-unknown-linux-gnu".
std::string TargetTriple(const Machine& machine);

// One line: "machine x86-64 cpu=znver4 l2_bytes=... l3_bytes=... features=...". Machines that differ in more than
// is_host have different lines, since the line is part of the kernel key.
std::string PrintMachine(const Machine& machine);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_MACHINE_H_
