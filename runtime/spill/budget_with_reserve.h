// SPDX-License-Identifier: Apache-2.0
// Memory that is reserved before it is needed, so that work which has begun is not refused.
#ifndef QUERN_RUNTIME_SPILL_BUDGET_WITH_RESERVE_H_
#define QUERN_RUNTIME_SPILL_BUDGET_WITH_RESERVE_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "runtime/base/memory.h"

namespace quern {

// A budget within another one, with bytes in reserve that nobody else can take. *Threads*: one at a time;
// its budget any number.
class BudgetWithReserve {
 public:
  // limit_bytes: of its budget; 0: none of its own.
  explicit BudgetWithReserve(std::shared_ptr<MemoryBudget> from, uint64_t limit_bytes = 0);
  ~BudgetWithReserve() { GiveBack(); }

  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }
  uint64_t reserved_bytes() const;
  absl::Status GrowBy(uint64_t bytes);
  // From now on the budget's bytes come from the reserve first, until GiveBack.
  void Open();
  void GiveBack();

 private:
  struct Reserve {
    std::shared_ptr<MemoryBudget> from;
    std::mutex mutex;  // guards what follows
    uint64_t bytes = 0;
    bool is_open = false;
    bool TakeBytes(uint64_t wanted);
    void ReturnBytes(uint64_t returned);
  };
  const std::shared_ptr<Reserve> reserve_;
  std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_BUDGET_WITH_RESERVE_H_
