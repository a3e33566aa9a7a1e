// SPDX-License-Identifier: Apache-2.0
// Rows are appended in pieces. A piece that is refused memory is made smaller. Where even few rows find none, those
// that are here become a run. What sorting them takes is kept in reserve as they come.
#include "runtime/sort/spilling_rows.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

// What sorting takes beside the rows: pointers, and pairs of equal prefixes in arrays that double, for each row;
// entries and scratch, for each of their words; samples and buckets.
constexpr uint64_t kSortBytesPerRow = 32, kEntryBytesPerWord = 16;
constexpr uint32_t kMostEntryWords = 5;  // row position and prefix
constexpr uint64_t kSortBytes = 64 << 10;
constexpr uint64_t kReserveStep = 64 << 10;
constexpr uint64_t kMostPieceRows = 131072;
constexpr uint64_t kLeastPieceRows = 32;
constexpr uint64_t kLeastPieceWithRows = 2048;  // below which rows become a run sooner than less is appended
constexpr int kMostTries = 16;

}  // namespace

SpillingRows::SpillingRows(std::shared_ptr<SpilledRuns> runs)
    : LocalState(runs->context().counters),
      runs_(std::move(runs)),
      payload_(runs_->context().descriptor->spec().payload),
      memory_(runs_->context().budget),
      rows_(NoRows()),
      piece_rows_(kMostPieceRows) {
  for (const KeySpec& key : runs_->context().descriptor->spec().keys) keys_.push_back(key.type);
  runs_->Register(this);
}

std::unique_ptr<LocalRows> SpillingRows::NoRows() const {
  SortContext context = runs_->context();
  context.budget = memory_.budget();
  return std::make_unique<LocalRows>(std::move(context));
}

// Keeps in reserve what sorting so many rows takes.
absl::Status SpillingRows::ReserveFor(uint64_t num_rows) {
  const SortDescriptor& descriptor = *runs_->context().descriptor;
  const uint64_t tuple_bytes = descriptor.may_drop_tuples() ? descriptor.get()->rows.tuple_bytes : 0;
  const uint64_t entry_bytes = kEntryBytesPerWord * std::min(descriptor.get()->num_words + 1, kMostEntryWords);
  const uint64_t needed = num_rows * (kSortBytesPerRow + entry_bytes + tuple_bytes) + kSortBytes;
  const uint64_t reserved = memory_.reserved_bytes();
  if (needed <= reserved) return absl::OkStatus();
  return memory_.GrowBy((needed - reserved + kReserveStep - 1) / kReserveStep * kReserveStep);
}

absl::StatusOr<bool> SpillingRows::SpillLocked() {
  const bool has_rows = rows_->num_rows() != 0;
  if (has_rows) {
    memory_.Open();
    QUERN_RETURN_IF_ERROR(runs_->Write(rows_.get(), memory_.budget()));
    rows_ = NoRows();
  }
  memory_.GiveBack();
  return has_rows;
}

absl::StatusOr<bool> SpillingRows::Spill() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return SpillLocked();
}

// Adds the first rows of a batch, up to n of them; returns how many were.
absl::StatusOr<uint64_t> SpillingRows::AddPiece(const BatchView& batch, uint64_t first_row_id, uint64_t n,
                                                bool* is_refused) {
  *is_refused = !ReserveFor(rows_->num_rows() + n).ok();
  if (*is_refused) return 0;
  uint64_t taken = 0;
  const absl::Status status =
      rows_->Add(n == batch.num_rows ? batch : SliceOf(batch, keys_, payload_, 0, n), first_row_id, &taken);
  *is_refused = absl::IsResourceExhausted(status);
  if (!status.ok() && !*is_refused) return status;
  num_input_rows_ += taken;
  return taken;
}

// Adds rows of a batch, and makes a run of those that are here where memory is refused. Returns how many were added:
// none where others have the memory.
absl::StatusOr<uint64_t> SpillingRows::AppendSome(const BatchView& batch, uint64_t first_row_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (;;) {
    const uint64_t n = std::min(batch.num_rows, piece_rows_);
    bool is_refused = false;
    QUERN_ASSIGN_OR_RETURN(const uint64_t taken, AddPiece(batch, first_row_id, n, &is_refused));
    if (!is_refused) return taken;
    const bool has_rows = rows_->num_rows() != 0;
    if (!has_rows) memory_.GiveBack();  // fewer rows need less
    if (n > (has_rows ? kLeastPieceWithRows : kLeastPieceRows)) {
      piece_rows_ = n / 4;
    } else if (has_rows) {
      const absl::StatusOr<bool> spilled = SpillLocked();
      is_broken_ = !spilled.ok();
      QUERN_RETURN_IF_ERROR(spilled.status());
    } else {
      return taken;
    }
    if (taken != 0) return taken;
  }
}

absl::Status SpillingRows::FreeMemory(const absl::Status& refused) {
  if (!absl::IsResourceExhausted(refused)) return refused;
  QUERN_ASSIGN_OR_RETURN(bool has_written, Spill());
  if (!has_written) {
    QUERN_ASSIGN_OR_RETURN(has_written, runs_->WriteOthers(this));
  }
  return has_written ? absl::OkStatus() : refused;
}

absl::Status SpillingRows::Append(const BatchView& batch, RowKind /*kind*/, uint64_t first_row_id) {
  QUERN_RETURN_IF_ERROR(runs_->spill()->SetMemoryAside());
  for (int tries = 0; taken_rows_ < batch.num_rows;) {
    const uint64_t done = taken_rows_;
    if (done != 0 && runs_->stop_flag() != nullptr) QUERN_RETURN_IF_ERROR(runs_->stop_flag()->Check());
    const BatchView rest = done == 0 ? batch : SliceOf(batch, keys_, payload_, done, batch.num_rows - done);
    QUERN_ASSIGN_OR_RETURN(const uint64_t taken,
                           AppendSome(rest, batch.selection == nullptr ? first_row_id + done : first_row_id));
    taken_rows_ += taken;
    if (taken != 0) {
      tries = 0;
      continue;
    }
    const absl::StatusOr<bool> spilled = runs_->WriteOthers(this);
    is_broken_ = !spilled.ok();
    QUERN_RETURN_IF_ERROR(spilled.status());
    if (!*spilled && ++tries == kMostTries)
      return absl::ResourceExhaustedError("sort that spills: no memory for some rows; accepted: a larger limit");
  }
  return absl::OkStatus();
}

}  // namespace quern
