// SPDX-License-Identifier: Apache-2.0
// What this machine's memory does, measured: virtual machines report caches that they do not have.
#ifndef QUERN_CODEGEN_MACHINE_MACHINE_FACTS_H_
#define QUERN_CODEGEN_MACHINE_MACHINE_FACTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/prefetch_choice.h"

namespace quern {

// Which machine it is: what a profile was measured on, and whether it fits this one. One line of text: "name=value"
// words.
struct MachineSignature {
  std::string cpu_name;                 // "AMD EPYC 9R45": as the system says it; "" where it does not
  std::string cpu;                      // LLVM's name
  std::string microcode;                // "0xb10101f"; "" unknown
  std::string hypervisor;               // "kvm"; "" none seen
  uint32_t cores = 0;                   // logical ones that this process may use
  uint64_t l2_bytes = 0, l3_bytes = 0;  // as reported
  std::string huge_pages;               // "always", "madvise", "never": /sys/kernel/mm/transparent_hugepage/enabled

  bool operator==(const MachineSignature&) const = default;
};
MachineSignature HostSignature();
std::string PrintSignature(const MachineSignature& signature);
absl::StatusOr<MachineSignature> ParseSignature(std::string_view text);
// What differs, for people: "cpu znver4 here, znver5 in the profile; l3_bytes .."; "" where all that matters to tuning
// is the same: microcode comes with every update and cores with every taskset, and neither moves the distances.
std::string SignatureDifference(const MachineSignature& here, const MachineSignature& there);

// Random lines of one size of memory.
struct MemoryFact {
  uint64_t bytes = 0;
  bool huge_pages = false;   // asked for, and given
  double latency_ns = 0;     // of a load that the next one waits for
  double read_ns = 0;        // a line, at the best number of misses under way: the floor F
  uint32_t read_misses = 0;  // that number
  double write_ns = 0;       // the same of lines that are written
  uint32_t write_misses = 0;
};

struct MachineFacts {
  MachineSignature signature;
  std::string features;  // of the CPU, as LLVM names those that are there: "avx2 bmi2 ..."; not kept in profiles
  std::vector<MemoryFact> memory;  // by size, with and without huge pages
  uint64_t l1_bytes = 0, l2_bytes = 0,
           l3_bytes = 0;  // effective: where latency begins to rise; 0: no such step was seen
  double sequential_read_gb_s = 0, sequential_write_gb_s = 0, sequential_copy_gb_s = 0;
  // Stores of zeros over zeros beside stores of ones over ones and others, GB/s; "Hardware Store Elimination" (Downs,
  // 2020). Alternating: a line of zeros, a line of ones, each over its like; its control: a line of ones, a line of
  // twos.
  double zero_fill_gb_s = 0, one_fill_gb_s = 0, alternating_fill_gb_s = 0, alternating_control_gb_s = 0,
         ones_over_zeros_gb_s = 0;
  bool zero_stores_are_cheaper = false;  // beyond the noise
  double seconds = 0;                    // that measuring took
  bool is_cut = false;                   // larger tables were left out for want of time or memory; not kept in profiles
};

struct MachineFactsOptions {
  double seconds = 3;                                // at most, about
  uint64_t max_bytes = 0;                            // largest table; 0: 2 GiB or half of the memory that is free
  std::function<void(const std::string&)> progress;  // what is measured now; may be empty
  const std::atomic<bool>* stop = nullptr;           // set: ends with Cancelled before the next table
};

// *Cost*: options.seconds. *Threads*: one at a time; nothing else should run. *Errors*: ResourceExhausted where no
// memory can be had; Cancelled.
absl::StatusOr<MachineFacts> MeasureMachine(const MachineFactsOptions& options = {});

// Bytes that this process may still take: what the system has available, or what its control groups leave of their
// limits.
uint64_t FreeMemoryBytes();
// Sets l1_bytes, l2_bytes and l3_bytes from the latencies of `memory`.
void FindCaches(MachineFacts* facts);

// For people, and one JSON object.
std::string PrintFacts(const MachineFacts& facts);
std::string FactsJson(const MachineFacts& facts);
// Lines of a profile: "fact NAME ...". ParseFacts(FactLines(f)) gives back what FactLines prints.
std::vector<std::string> FactLines(const MachineFacts& facts);
absl::Status ParseFactLine(std::string_view line, MachineFacts* facts);

// What estimates of prefetch distances go by.
MemoryModel ModelOf(const MachineFacts& facts, const Machine& machine);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_MACHINE_FACTS_H_
