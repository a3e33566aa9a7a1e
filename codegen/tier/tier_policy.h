// SPDX-License-Identifier: Apache-2.0
// When compiling pays: what a compilation takes, what a row costs on either kernel, and the number of rows that
// follows.
#ifndef QUERN_CODEGEN_TIER_TIER_POLICY_H_
#define QUERN_CODEGEN_TIER_TIER_POLICY_H_

#include <atomic>
#include <cstdint>

#include "runtime/spec/spec.h"

namespace quern {

// What is known of a spec before it was ever compiled or run. Nothing is wrong where it is wrong, but slower.
struct KernelCosts {
  double compile_ms = 0;  // on an idle CPU, in a process that has compiled before
  double generic_ns = 0;  // of a row, on the generic kernel
  double gain_ns = 0;     // of a row: the generic kernel's time less the compiled one's; may be 0

  bool operator==(const KernelCosts&) const = default;
};

// By the columns of the spec. *Cost*: below 1 us.
KernelCosts EstimateCosts(const KernelSpec& spec);

constexpr uint64_t kNever = UINT64_MAX;

// What this process and its machine add to the estimates. *Threads*: any.
class TierPolicy {
 public:
  static TierPolicy& OfProcess();
  // *Units*: CPUs that the process may use.
  explicit TierPolicy(unsigned num_cpus) : num_cpus_(num_cpus) {}

  // Rows after which compiling is begun, for a kernel of which nobody said how many are to come; kNever: not at all.
  uint64_t RowsBeforeCompiling(const KernelCosts& costs) const;
  // Rows after which it is worth a look whether somebody else, or an earlier process, has compiled it.
  uint64_t RowsBeforeLooking(const KernelCosts& costs) const;
  // Whether to begin now, with so many rows to come: whether the compiled kernel will be there for enough of them.
  bool Pays(const KernelCosts& costs, uint64_t rows_to_come, bool is_on_disk) const;

  // A compilation for which compile_ms was expected took so long.
  void Learn(const KernelCosts& costs, double measured_ms);
  double CompileMs(const KernelCosts& costs) const;

 private:
  uint64_t RowsThatPay(const KernelCosts& costs, double ms) const;
  const unsigned num_cpus_;
  std::atomic<uint32_t> num_compiled_{0};
  std::atomic<double> correction_{1.0};  // measured by expected
};

}  // namespace quern

#endif  // QUERN_CODEGEN_TIER_TIER_POLICY_H_
