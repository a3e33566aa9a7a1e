// SPDX-License-Identifier: Apache-2.0
// Decides when compiling pays: the time of a compilation, the cost of a row on either kernel, and the resulting number
// of rows.
#ifndef QUERN_CODEGEN_TIER_TIER_POLICY_H_
#define QUERN_CODEGEN_TIER_TIER_POLICY_H_

#include <atomic>
#include <cstdint>

#include "runtime/spec/spec.h"

namespace quern {

// Estimates for a spec before it has been compiled or run. Wrong estimates cost time; results stay correct.
struct KernelCosts {
  double compile_ms = 0;  // on an idle CPU, in a process that has compiled before
  double generic_ns = 0;  // of a row, on the generic kernel
  double gain_ns = 0;     // of a row: generic time minus compiled time; may be 0

  bool operator==(const KernelCosts&) const = default;
};

// From the columns of the spec. *Cost*: below 1 us.
KernelCosts EstimateCosts(const KernelSpec& spec);

constexpr uint64_t kNever = UINT64_MAX;

// Corrections of the estimates by this process and its machine. *Threads*: any.
class TierPolicy {
 public:
  static TierPolicy& OfProcess();
  // `num_cpus`: CPUs that the process may use.
  explicit TierPolicy(unsigned num_cpus) : num_cpus_(num_cpus) {}

  // Rows after which compiling starts if the number of rows to come is unknown; kNever: not at all.
  uint64_t RowsBeforeCompiling(const KernelCosts& costs) const;
  // Rows after which it is worth checking whether another thread or an earlier process has compiled the kernel.
  uint64_t RowsBeforeLooking(const KernelCosts& costs) const;
  // Whether to start now, with this many rows to come: whether the compiled kernel will be ready for enough of them.
  bool Pays(const KernelCosts& costs, uint64_t rows_to_come, bool is_on_disk) const;

  // Records that a compilation with an estimate of compile_ms took `measured_ms`.
  void Learn(const KernelCosts& costs, double measured_ms);
  double CompileMs(const KernelCosts& costs) const;

 private:
  uint64_t RowsThatPay(const KernelCosts& costs, double ms) const;
  const unsigned num_cpus_;
  std::atomic<uint32_t> num_compiled_{0};
  std::atomic<double> correction_{1.0};  // measured time / estimated time
};

}  // namespace quern

#endif  // QUERN_CODEGEN_TIER_TIER_POLICY_H_
