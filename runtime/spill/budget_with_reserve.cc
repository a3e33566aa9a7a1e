// SPDX-License-Identifier: Apache-2.0
// A sort keeps in reserve what sorting its rows will take:
//
//     GrowBy(1 MiB)*     rows are appended: the reserve grows with them
//     Open()             they are sorted: what that takes comes from the reserve first
//     GiveBack()         they are written
#include "runtime/spill/budget_with_reserve.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace quern {

bool BudgetWithReserve::Reserve::TakeBytes(uint64_t wanted) {
  const std::lock_guard<std::mutex> lock(mutex);
  const uint64_t taken = is_open ? std::min(bytes, wanted) : 0;
  if (taken != wanted && !from->Reserve(wanted - taken).ok()) return false;
  bytes -= taken;
  return true;
}

void BudgetWithReserve::Reserve::ReturnBytes(uint64_t returned) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (is_open) bytes += returned;
  else from->Release(returned);
}

BudgetWithReserve::BudgetWithReserve(std::shared_ptr<MemoryBudget> from, uint64_t limit_bytes)
    : reserve_(std::make_shared<Reserve>()) {
  reserve_->from = std::move(from);
  const MemoryAccount account = {[](void* of, uint64_t bytes) { return static_cast<Reserve*>(of)->TakeBytes(bytes); },
                                 [](void* of, uint64_t bytes) { static_cast<Reserve*>(of)->ReturnBytes(bytes); },
                                 reserve_.get(), reserve_->from.get()};
  budget_ = {new MemoryBudget(limit_bytes, account),
             [reserve = reserve_](const MemoryBudget* budget) { delete budget; }};
}

uint64_t BudgetWithReserve::reserved_bytes() const {
  const std::lock_guard<std::mutex> lock(reserve_->mutex);
  return reserve_->bytes;
}

absl::Status BudgetWithReserve::GrowBy(uint64_t bytes) {
  QUERN_RETURN_IF_ERROR(reserve_->from->Reserve(bytes));
  const std::lock_guard<std::mutex> lock(reserve_->mutex);
  reserve_->bytes += bytes;
  return absl::OkStatus();
}

void BudgetWithReserve::Open() {
  const std::lock_guard<std::mutex> lock(reserve_->mutex);
  reserve_->is_open = true;
}

void BudgetWithReserve::GiveBack() {
  const std::lock_guard<std::mutex> lock(reserve_->mutex);
  reserve_->is_open = false;
  if (reserve_->bytes != 0) reserve_->from->Release(std::exchange(reserve_->bytes, 0));
}

}  // namespace quern
