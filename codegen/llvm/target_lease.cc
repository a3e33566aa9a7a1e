// SPDX-License-Identifier: Apache-2.0
// The idle target machines are one list of the process, under a mutex that a fork waits for.
#include "codegen/llvm/target_lease.h"

#include <mutex>
#include <vector>

#include "codegen/machine/target_machine.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constinit ForkSafeMutex idle_mutex;  // for Idle and NumMade

std::vector<std::unique_ptr<llvm::TargetMachine>>& Idle() {
  const NoFork no_fork;  // the first call makes them
  static auto* idle = new std::vector<std::unique_ptr<llvm::TargetMachine>>;
  return *idle;
}

size_t& NumMade() {
  static size_t num_made = 0;
  return num_made;
}

}  // namespace

absl::StatusOr<TargetLease> TargetLease::Take(const Machine& host) {
  {
    std::lock_guard<ForkSafeMutex> lock(idle_mutex);
    if (!Idle().empty()) {
      TargetLease lease(std::move(Idle().back()));
      Idle().pop_back();
      return lease;
    }
  }
  QUERN_ASSIGN_OR_RETURN(auto target, MakeTargetMachine(host));
  {
    std::lock_guard<ForkSafeMutex> lock(idle_mutex);
    Idle().reserve(++NumMade());  // room for all: giving one back must not allocate
  }
  return TargetLease(std::move(target));
}

TargetLease::~TargetLease() {
  if (target_ == nullptr) return;
  if (std::uncaught_exceptions() > begun_) {  // as LeftOnException
    static_cast<void>(target_.release());
    return;
  }
  std::lock_guard<ForkSafeMutex> lock(idle_mutex);
  Idle().push_back(std::move(target_));
}

}  // namespace quern
