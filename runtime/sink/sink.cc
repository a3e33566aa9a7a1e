// SPDX-License-Identifier: Apache-2.0
// The states of a sink, and what moves it on:
//
//     open ── first Work or Finalise ─> finalising ── all tasks done ─> finalised: the readers run
//       │                                   │
//       └── an append fails within a batch  └── a task fails ─> lost: every call fails
//
// An append that is refused memory is no such failure: its local state has taken the first rows of the batch, whole,
// and goes on where the rest is appended to it:
//
//     Append(1000 rows)    ResourceExhausted, 384 rows taken       the host frees memory
//     Append(616 rows)     the rest; until then Finish fails
//
// Where the operator can undo its work (AbandonFinalise), the last thread that leaves failed work opens the sink again,
// so that a host can free memory and try again.
#include "runtime/sink/sink.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

absl::Status HandedOver(const std::string& call, const char* accepted) {
  return absl::FailedPreconditionError(call + ": the rows were handed over; accepted: " + accepted);
}

// How many ids a batch takes whose rows are counted: those up to its last row, selected or not.
uint64_t NumRowIds(const BatchView& batch) {
  return batch.first_row_id != kCountedRowIds ? batch.num_rows : RowSpan(batch.selection, batch.num_rows);
}

}  // namespace

absl::Status Sink::CheckOpen(const char* call) const {
  const auto rejected = [&](const std::string& when, const char* why) {
    return call + when + ": " + why + "; accepted: " + texts_.accepted;
  };
  if (lost_rows_) {
    std::string text = rejected(finalising_ ? " after a failed finalise" : " after a failed append", texts_.missing);
    const absl::Status loss = FirstLoss(absl::OkStatus());
    if (!loss.ok()) text += "; it failed with: " + std::string(loss.message());
    return absl::FailedPreconditionError(text);
  }
  if (finalising_) return absl::FailedPreconditionError(rejected(" after finalise", texts_.complete));
  return absl::OkStatus();
}

// The error first: whoever sees that rows are lost finds it.
void Sink::Lose(const absl::Status& error) {
  const std::lock_guard<std::mutex> lock(loss_mutex_);
  if (first_loss_.ok()) first_loss_ = error;
  lost_rows_ = true;
}

absl::Status Sink::FirstLoss(const absl::Status& status) const {
  const std::lock_guard<std::mutex> lock(loss_mutex_);
  return first_loss_.ok() ? status : first_loss_;
}

// ---- adding rows ----------------------------------------------------------------------------------------------------

// The row id of row 0 where ids are counted.
uint64_t Sink::CountRowIds(const LocalState& local, bool is_rest, uint64_t num_ids) {
  if (is_rest && local.rest_->first_row_id != kCountedRowIds) return local.rest_->first_row_id;
  return next_row_id_.fetch_add(num_ids, std::memory_order_relaxed);
}

absl::Status Sink::AppendTo(LocalState* local, const BatchView& batch, RowKind kind, uint64_t* taken_rows) {
  if (taken_rows != nullptr) *taken_rows = 0;
  QUERN_RETURN_IF_ERROR(CheckOpen("append"));
  if (stop_flag_ != nullptr) QUERN_RETURN_IF_ERROR(stop_flag_->Check());
  QUERN_RETURN_IF_ERROR(CheckInput(batch, kind));
  if (spill_ != nullptr) QUERN_RETURN_IF_ERROR(spill_->SetMemoryAside());
  const bool has_rest = __builtin_expect(static_cast<int>(local->rest_.has_value()), 0) != 0;
  const bool is_rest = has_rest && local->rest_->num_rows == batch.num_rows && local->rest_->kind == kind;
  if (has_rest && !is_rest) QUERN_RETURN_IF_ERROR(CheckWhole(*local, "append"));
  if (observer_ != nullptr && kind == RowKind::kInput && !is_rest) ShowTo(observer_.get(), batch);
  begun_ = true;
  const CallTimer timer(local->counters());
  const uint64_t counted = CountRowIds(*local, is_rest, NumRowIds(batch));
  const uint64_t first_row_id = batch.first_row_id == kCountedRowIds ? counted : batch.first_row_id;
  local->taken_rows_ = 0;
  local->is_within_block_ = false;
  absl::Status status;
  try {
    status = local->Append(batch, kind, first_row_id);
  } catch (const std::bad_alloc&) {
    status = OutOfMemory();
  } catch (...) {  // a host's function
    Lose(StatusOfException());
    throw;
  }
  if (!status.ok()) status = EndRefused(local, batch, kind, counted, std::move(status));
  else if (has_rest) local->rest_.reset(), local->needs_rest_ = false;
  if (taken_rows != nullptr) *taken_rows = status.ok() ? batch.num_rows : local->taken_rows_;
  return status;
}

// After an append that has failed. counted: the row id of row 0 where ids are counted. Where nothing of the batch is
// here, the ids are given back, unless another appender has counted on: the next batch may be another one. Where all
// rows are, what was refused (a table's next form) is tried again with any batch.
absl::Status Sink::EndRefused(LocalState* local, const BatchView& batch, RowKind kind, uint64_t counted,
                              absl::Status status) {
  if (!absl::IsResourceExhausted(status) || local->is_broken_) {
    Lose(status);
    return status;
  }
  const uint64_t taken = local->taken_rows_;
  if (taken == batch.num_rows) {
    local->rest_.reset();
    local->needs_rest_ = false;
    return status;
  }
  local->rest_ = {batch.selection == nullptr ? counted + taken : counted, batch.num_rows - taken, kind};
  local->needs_rest_ |= taken != 0 || local->is_within_block_;
  uint64_t next = counted + NumRowIds(batch);
  if (!local->needs_rest_ && next_row_id_.compare_exchange_strong(next, counted, std::memory_order_relaxed))
    local->rest_->first_row_id = kCountedRowIds;
  return status;
}

// *Errors*: FailedPrecondition where the rest of a refused batch is missing; `call` is the name in the text.
absl::Status Sink::CheckWhole(const LocalState& local, const char* call) const {
  if (!local.needs_rest_) return absl::OkStatus();
  return absl::FailedPreconditionError(std::string(call) + " after a refused append: a part of its batch is in the " +
                                       texts_.rows + "; accepted: the rest of the batch");
}

absl::Status Sink::Append(const BatchView& batch, RowKind kind, uint64_t* taken_rows) {
  if (taken_rows != nullptr) *taken_rows = 0;
  QUERN_RETURN_IF_ERROR(CheckOpen("append"));
  if (own_local_state_ == nullptr) own_local_state_ = NewLocalState();
  return AppendTo(own_local_state_.get(), batch, kind, taken_rows);
}

absl::Status Sink::FreeMemory(const absl::Status& refused) {
  QUERN_RETURN_IF_ERROR(CheckOpen("append"));
  if (own_local_state_ == nullptr) return refused;
  const absl::Status status = own_local_state_->FreeMemory(refused);
  if (!status.ok() && !absl::IsResourceExhausted(status)) Lose(status);
  return status;
}

absl::Status Sink::Combine(std::unique_ptr<LocalState> local) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(CheckOpen("append"));
  local_states_.push_back(std::move(local));
  return absl::OkStatus();
}

Appender::Appender(std::shared_ptr<Sink> sink) : sink_(std::move(sink)), local_(sink_->NewLocalState()) {
  sink_->begun_ = true;
}
Appender::~Appender() = default;

absl::Status Appender::CheckOpen(const char* call) const {
  QUERN_RETURN_IF_ERROR(sink_->CheckOpen(call));
  return local_ == nullptr ? HandedOver(std::string(call) + " after finish", "a new appender") : absl::OkStatus();
}

absl::Status Appender::Append(const BatchView& batch, RowKind kind, uint64_t* taken_rows) {
  if (taken_rows != nullptr) *taken_rows = 0;
  if (local_ == nullptr) return HandedOver("append after finish", "a new appender");
  return sink_->AppendTo(local_.get(), batch, kind, taken_rows);
}

absl::Status Appender::FreeMemory(const absl::Status& refused) {
  QUERN_RETURN_IF_ERROR(CheckOpen("append"));
  const absl::Status status = local_->FreeMemory(refused);
  if (!status.ok() && !absl::IsResourceExhausted(status)) sink_->Lose(status);
  return status;
}

bool Appender::needs_rest() const { return local_ != nullptr && local_->needs_rest_; }

absl::Status Appender::Finish() {
  if (local_ == nullptr) return HandedOver("finish called twice", "once");
  QUERN_RETURN_IF_ERROR(sink_->CheckWhole(*local_, "finish"));
  return sink_->Combine(std::move(local_));
}

// ---- finalising -----------------------------------------------------------------------------------------------------

// After a failure, with the mutex held: the last thread that leaves the work opens the sink again where no row was
// lost.
void Sink::OpenAgain() {
  if (!lost_rows_ || ended_ || num_working_ != 0 || !AbandonFinalise()) return;
  work_ = nullptr;
  const std::lock_guard<std::mutex> lock(loss_mutex_);
  finalising_ = lost_rows_ = false;
  first_loss_ = absl::OkStatus();
}

// Called with the mutex held, before a thread works. The first call begins.
absl::StatusOr<SharedWork*> Sink::Begin() {
  if (work_ == nullptr) {
    QUERN_RETURN_IF_ERROR(CheckOpen("finalise"));
    if (own_local_state_ != nullptr) QUERN_RETURN_IF_ERROR(CheckWhole(*own_local_state_, "finalise"));
    const absl::Status status = WithoutBadAlloc([&]() -> absl::Status {
      begun_ = true;
      if (own_local_state_ != nullptr) local_states_.push_back(std::move(own_local_state_));
      finalising_ = true;
      QUERN_ASSIGN_OR_RETURN(work_, BeginFinalise());
      work_->set_stop_flag(stop_flag_.get());
      return absl::OkStatus();
    });
    if (!status.ok()) Lose(status);
    OpenAgain();
    QUERN_RETURN_IF_ERROR(status);
  }
  ++num_working_;
  return work_;
}

// After a thread's part of the work, all of which has ended with `status`.
absl::Status Sink::End(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_working_;
  if (finalised_) return absl::OkStatus();
  if (ended_) return CheckOpen("finalise");  // what the work has made is half taken over
  if (status.ok()) {
    ended_ = true;
    status = WithoutBadAlloc([this] {
      EndFinalise();
      return absl::OkStatus();
    });
  }
  if (status.ok()) finalised_ = true;
  else Lose(status);
  OpenAgain();
  return status;
}

absl::StatusOr<WorkState> Sink::Work() {
  if (finalised_) return WorkState::kDone;
  SharedWork* work = nullptr;
  {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return WorkState::kBusy;
    QUERN_ASSIGN_OR_RETURN(work, Begin());
  }
  CounterBlock counters(counters_);
  const CallTimer timer(&counters);
  const absl::StatusOr<WorkState> state = work->Step();
  if (state.ok() && *state != WorkState::kDone) {
    if (--num_working_ == 0 && lost_rows_) {
      const std::lock_guard<std::mutex> lock(mutex_);
      OpenAgain();
    }
    return state;
  }
  QUERN_RETURN_IF_ERROR(End(state.status()));
  return WorkState::kDone;
}

absl::Status Sink::Finalise() {
  if (finalised_) return absl::OkStatus();
  CounterBlock counters(counters_);
  const CallTimer timer(&counters);
  SharedWork* work = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    QUERN_ASSIGN_OR_RETURN(work, Begin());
  }
  return End(work->RunTasks());
}

}  // namespace quern
