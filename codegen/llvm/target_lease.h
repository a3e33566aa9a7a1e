// SPDX-License-Identifier: Apache-2.0
// Target machines of the host, kept between compilations.
#ifndef QUERN_CODEGEN_LLVM_TARGET_LEASE_H_
#define QUERN_CODEGEN_LLVM_TARGET_LEASE_H_

#include <exception>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "codegen/machine/machine.h"
#include "llvm/Target/TargetMachine.h"

namespace quern {

// Lends the host's target machine for one compilation. Creating one takes a tenth of a compilation, because LLVM parses
// a hundred CPU features. Idle ones are therefore kept, as many as threads have compiled at the same time; a target
// machine never serves two threads at once. *Threads*: Take by any; a lease belongs to one.
class TargetLease {
 public:
  static absl::StatusOr<TargetLease> Take(const Machine& host);
  TargetLease(TargetLease&&) = default;
  TargetLease& operator=(TargetLease&&) = delete;
  ~TargetLease();
  llvm::TargetMachine* get() const { return target_.get(); }

 private:
  explicit TargetLease(std::unique_ptr<llvm::TargetMachine> target) : target_(std::move(target)) {}

  std::unique_ptr<llvm::TargetMachine> target_;
  int begun_ = std::uncaught_exceptions();
};

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_TARGET_LEASE_H_
