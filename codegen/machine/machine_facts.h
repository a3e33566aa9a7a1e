// SPDX-License-Identifier: Apache-2.0
// Measurements of this machine's caches and memory, since virtual machines report caches that they do not have.
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

// Identifies a machine: the one that a profile was measured on, or this one, to decide whether the profile fits. As
// text, one line of "name=value" words.
struct MachineSignature {
  std::string cpu_name;                 // "AMD EPYC 9R45": as the system reports it; "": not reported
  std::string cpu;                      // LLVM's name
  std::string microcode;                // "0xb10101f"; "": unknown
  std::string hypervisor;               // "kvm"; "": none detected
  uint32_t cores = 0;                   // logical cores that this process may use
  uint64_t l2_bytes = 0, l3_bytes = 0;  // as reported
  std::string huge_pages;               // "always", "madvise", "never": /sys/kernel/mm/transparent_hugepage/enabled

  bool operator==(const MachineSignature&) const = default;
};
MachineSignature HostSignature();
std::string PrintSignature(const MachineSignature& signature);
absl::StatusOr<MachineSignature> ParseSignature(std::string_view text);
// The differences, for people: "cpu znver4 here, znver5 in the profile; l3_bytes .."; "" if all that matters to tuning
// is the same. Microcode changes with updates and cores with every taskset; neither changes the best distances.
std::string SignatureDifference(const MachineSignature& here, const MachineSignature& there);

// Accesses to random cache lines of a table of one size.
struct MemoryFact {
  uint64_t bytes = 0;
  bool huge_pages = false;   // requested and granted
  double latency_ns = 0;     // of a load whose result is the next load's address
  double read_ns = 0;        // a line, with the best number of outstanding misses: the floor F
  uint32_t read_misses = 0;  // that number
  double write_ns = 0;       // a line that is also written
  uint32_t write_misses = 0;
};

struct MachineFacts {
  MachineSignature signature;
  std::string features;            // that the CPU has, by LLVM's names: "avx2 bmi2 ..."; not kept in profiles
  std::vector<MemoryFact> memory;  // by size, with and without huge pages
  uint64_t l1_bytes = 0, l2_bytes = 0,
           l3_bytes = 0;  // effective sizes: where latency begins to rise; 0: no rise was found
  double sequential_read_gb_s = 0, sequential_write_gb_s = 0, sequential_copy_gb_s = 0;
  // Fills of memory, GB/s: zeros over zeros compared with ones over ones and others. Alternating: lines of zeros and of
  // ones in turn, each over its like; its control: lines of ones and of twos. *Source*: "Hardware Store Elimination"
  // (Downs, 2020).
  double zero_fill_gb_s = 0, one_fill_gb_s = 0, alternating_fill_gb_s = 0, alternating_control_gb_s = 0,
         ones_over_zeros_gb_s = 0;
  bool zero_stores_are_cheaper = false;  // beyond the noise
  double seconds = 0;                    // that the measurements took
  bool is_cut = false;                   // lack of time or memory left out larger tables; not kept in profiles
};

struct MachineFactsOptions {
  double seconds = 3;                                // approximate limit
  uint64_t max_bytes = 0;                            // largest table; 0: 2 GiB, or half of the free memory
  std::function<void(const std::string&)> progress;  // called with the current measurement; may be empty
  const std::atomic<bool>* stop = nullptr;           // set: ends with Cancelled before the next table
};

// *Cost*: options.seconds. *Threads*: one at a time; nothing else should run. *Errors*: ResourceExhausted without
// memory; Cancelled.
absl::StatusOr<MachineFacts> MeasureMachine(const MachineFactsOptions& options = {});

// Bytes that this process may still allocate: the system's available memory, or what remains below the limits of its
// control groups.
uint64_t FreeMemoryBytes();
// Sets l1_bytes, l2_bytes and l3_bytes from the latencies of `memory`.
void FindCaches(MachineFacts* facts);

// For people, and one JSON object.
std::string PrintFacts(const MachineFacts& facts);
std::string FactsJson(const MachineFacts& facts);
// Lines of a profile: "fact NAME ...". ParseFacts(FactLines(f)) gives back what FactLines prints.
std::vector<std::string> FactLines(const MachineFacts& facts);
absl::Status ParseFactLine(std::string_view line, MachineFacts* facts);

// The model that estimates of prefetch distances are made from.
MemoryModel ModelOf(const MachineFacts& facts, const Machine& machine);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_MACHINE_FACTS_H_
