// SPDX-License-Identifier: Apache-2.0
// Rows are appended in pieces. A piece that is refused memory is made smaller. Where even few rows find none, those
// that are here leave: they become a run, which sorting them takes memory for, or are divided, and the next ones with
// them. Memory for that is kept in reserve as they come.
#include "runtime/sort/spilling/spilling_rows.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

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
constexpr uint32_t kMostTries = 16;             // without rows that leave
constexpr uint64_t kLeastPieceWithRows = 2048;  // below which rows become a run sooner than less is appended

// Rows of which some have left, and others not, cannot leave again: not even where memory is found later.
absl::Status Lost(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? MemoryLost(status) : status;
}

}  // namespace

SpillingRows::SpillingRows(std::shared_ptr<SpilledSort> sort)
    : LocalState(sort->context().counters),
      sort_(std::move(sort)),
      payload_(sort_->context().descriptor->spec().payload),
      memory_(sort_->context().budget),
      rows_(NoRows()),
      piece_rows_(kMostPieceRows) {
  for (const KeySpec& key : sort_->context().descriptor->spec().keys) keys_.push_back(key.type);
  sort_->Register(this);
}

std::unique_ptr<LocalRows> SpillingRows::NoRows() const {
  SortContext context = sort_->context();
  context.budget = memory_.budget();
  return std::make_unique<LocalRows>(std::move(context));
}

// ---- what is in reserve ---------------------------------------------------------------------------------------------

bool SpillingRows::divides() const { return sort_->partitions() != nullptr && sort_->partitions()->is_chosen(); }

uint64_t SpillingRows::BytesToSort(uint64_t num_rows) const {
  const SortDescriptor& descriptor = *sort_->context().descriptor;
  const uint64_t tuple_bytes = descriptor.may_drop_tuples() ? descriptor.get()->rows.tuple_bytes : 0;
  const uint64_t entry_bytes = kEntryBytesPerWord * std::min(descriptor.get()->num_words + 1, kMostEntryWords);
  return num_rows * (kSortBytesPerRow + entry_bytes + tuple_bytes) + kSortBytes;
}

uint64_t SpillingRows::BytesInReserve(uint64_t num_rows) const {
  return divides() ? sort_->partitions()->BytesToBegin(num_rows) : BytesToSort(num_rows);
}

absl::Status SpillingRows::ReserveAtLeast(uint64_t bytes) {
  const uint64_t reserved = memory_.reserved_bytes();
  if (bytes <= reserved) return absl::OkStatus();
  return memory_.GrowBy((bytes - reserved + kReserveStep - 1) / kReserveStep * kReserveStep);
}

bool SpillingRows::ReserveToSort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ReserveAtLeast(BytesToSort(rows_->num_rows())).ok();
}

void SpillingRows::GiveReserveBack() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.GiveBack();
}

void SpillingRows::ShrinkReserve() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.GiveBack();
  if (blocks_ == nullptr && rows_->num_rows() != 0)
    ReserveAtLeast(BytesInReserve(rows_->num_rows())).IgnoreError();  // it has just been here
}

// ---- leaving --------------------------------------------------------------------------------------------------------

uint64_t SpillingRows::num_rows() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return blocks_ == nullptr ? rows_->num_rows() : 0;
}

void SpillingRows::AddSample(uint64_t step, std::vector<RowLead>* sample) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (blocks_ == nullptr) sort_->partitions()->AddSample(*rows_, step, sample);
}

// Moves all rows to blocks, chunk by chunk. The memory of chunks is that of the next blocks.
absl::Status SpillingRows::DivideAll() {
  RangePartitions* const partitions = sort_->partitions();
  sort_->BeginDividing();
  memory_.Open();
  if (sort_->context().descriptor->has_tuples()) QUERN_RETURN_IF_ERROR(rows_->RestoreTuples());
  blocks_ = partitions->NewBlocks(memory_.budget());
  QUERN_RETURN_IF_ERROR(Lost(WithoutBadAlloc([&] {
    for (size_t c = 0; c < rows_->chunks().size(); ++c) {
      rows_->FreeBefore(c);
      QUERN_RETURN_IF_ERROR(partitions->Divide(rows_->chunks()[c], rows_->incomplete(), blocks_.get()));
    }
    return absl::OkStatus();
  })));
  rows_ = NoRows();
  memory_.GiveBack();
  return absl::OkStatus();
}

absl::StatusOr<bool> SpillingRows::LetGo(bool frees_blocks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool has_rows = rows_->num_rows() != 0;
  if (!divides()) {
    if (has_rows) {
      memory_.Open();
      QUERN_RETURN_IF_ERROR(sort_->runs()->Write(rows_.get(), memory_.budget()));
      rows_ = NoRows();
    }
    memory_.GiveBack();
    return has_rows;
  }
  const bool begins = blocks_ == nullptr && has_rows && sort_->partitions()->has_splitters();
  if (begins) {
    QUERN_RETURN_IF_ERROR(DivideAll());
    if (!frees_blocks) return true;
  }
  if (blocks_ == nullptr || blocks_->bytes() == 0) return begins;
  QUERN_RETURN_IF_ERROR(Lost(WithoutBadAlloc([&] { return blocks_->Free(BytesToFree(blocks_->bytes())); })));
  return true;
}

absl::StatusOr<bool> SpillingRows::MakeRoom(bool frees_blocks) {
  if (sort_->Choose()) return true;
  QUERN_ASSIGN_OR_RETURN(const bool has_room, LetGo(frees_blocks));
  if (has_room) return true;
  return sort_->LetOthersGo(this);
}

// After a refusal: makes room; whether to try again. Rows of others may have left between the refusal and the look at
// them, so that it is worth another try although there were none.
absl::StatusOr<bool> SpillingRows::MayTryAgain(bool frees_blocks) {
  if (++num_refusals_ > thresholds::kStarvedTries) return false;
  QUERN_ASSIGN_OR_RETURN(const bool has_room, MakeRoom(frees_blocks));
  if (has_room) num_tries_ = 0;
  return has_room || ++num_tries_ < kMostTries;
}

absl::Status SpillingRows::FreeMemory(const absl::Status& refused) {
  if (!absl::IsResourceExhausted(refused)) return refused;
  QUERN_ASSIGN_OR_RETURN(const bool tries, MayTryAgain(/*frees_blocks=*/true));
  return tries ? absl::OkStatus() : refused;
}

absl::Status SpillingRows::EndDividing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (blocks_ == nullptr && rows_->num_rows() != 0) QUERN_RETURN_IF_ERROR(DivideAll());
  rows_ = NoRows();
  memory_.GiveBack();
  if (blocks_ == nullptr) return absl::OkStatus();
  const absl::Status kept = WithoutBadAlloc([&] { return sort_->partitions()->Keep(blocks_.get()); });
  blocks_.reset();
  return Lost(kept);
}

// ---- appending ------------------------------------------------------------------------------------------------------

// Adds the first rows of a batch, up to n of them; returns how many were.
absl::StatusOr<uint64_t> SpillingRows::AddPiece(const BatchView& batch, uint64_t first_row_id, uint64_t n,
                                                bool* is_refused) {
  *is_refused = blocks_ == nullptr && !ReserveAtLeast(BytesInReserve(rows_->num_rows() + n)).ok();
  if (*is_refused) return 0;
  uint64_t taken = 0;
  const absl::Status status =
      rows_->Add(n == batch.num_rows ? batch : SliceOf(batch, keys_, payload_, 0, n), first_row_id, &taken);
  *is_refused = absl::IsResourceExhausted(status);
  if (!status.ok() && !*is_refused) return status;
  num_input_rows_ += taken;
  return taken;
}

// Gives rows that had none their fields, as tuples that leave have.
absl::Status SpillingRows::RestoreFields() {
  if (!sort_->context().descriptor->has_tuples()) return absl::OkStatus();
  for (;;) {
    const absl::Status status = rows_->RestoreTuples();
    if (!absl::IsResourceExhausted(status) || blocks_->bytes() == 0) return status;
    QUERN_RETURN_IF_ERROR(blocks_->Free(BytesToFree(blocks_->bytes())));
  }
}

// Adds rows of a batch and divides them at once. Returns how many: none where there is no memory for them.
absl::StatusOr<uint64_t> SpillingRows::DivideSome(const BatchView& batch, uint64_t first_row_id) {
  RangePartitions* const partitions = sort_->partitions();
  bool is_refused = false;
  QUERN_ASSIGN_OR_RETURN(
      const uint64_t taken,
      AddPiece(batch, first_row_id, std::min<uint64_t>(batch.num_rows, partitions->step_rows()), &is_refused));
  if (taken == 0) return 0;
  is_broken_ = true;  // until all of them are in blocks
  QUERN_RETURN_IF_ERROR(RestoreFields());
  for (const SortChunk& chunk : rows_->chunks())
    QUERN_RETURN_IF_ERROR(partitions->Divide(chunk, rows_->incomplete(), blocks_.get()));
  is_broken_ = false;
  rows_->Clear();
  return taken;
}

// Adds rows of a batch. Returns how many were added: none where rows must leave before.
absl::StatusOr<uint64_t> SpillingRows::AppendSome(const BatchView& batch, uint64_t first_row_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (blocks_ == nullptr && sort_->divides() && rows_->num_rows() != 0) {
    // Another thread has begun: with it, not when it has ended.
    const absl::Status divided = DivideAll();
    is_broken_ = !divided.ok();
    QUERN_RETURN_IF_ERROR(divided);
  }
  if (blocks_ != nullptr) return DivideSome(batch, first_row_id);
  for (;;) {
    const uint64_t n = std::min(batch.num_rows, piece_rows_);
    bool is_refused = false;
    QUERN_ASSIGN_OR_RETURN(const uint64_t taken, AddPiece(batch, first_row_id, n, &is_refused));
    if (!is_refused || taken != 0) return taken;
    const bool has_rows = rows_->num_rows() != 0;
    if (!has_rows) memory_.GiveBack();  // fewer rows need less
    if (n <= (has_rows ? kLeastPieceWithRows : kLeastPieceRows)) return 0;
    piece_rows_ = n / 4;
  }
}

absl::Status SpillingRows::Append(const BatchView& batch, RowKind /*kind*/, uint64_t first_row_id) {
  QUERN_RETURN_IF_ERROR(sort_->spill()->SetMemoryAside());
  while (taken_rows_ < batch.num_rows) {
    const uint64_t done = taken_rows_;
    if (done != 0 && sort_->stop_flag() != nullptr) QUERN_RETURN_IF_ERROR(sort_->stop_flag()->Check());
    const BatchView rest = done == 0 ? batch : SliceOf(batch, keys_, payload_, done, batch.num_rows - done);
    QUERN_ASSIGN_OR_RETURN(const uint64_t taken,
                           AppendSome(rest, batch.selection == nullptr ? first_row_id + done : first_row_id));
    taken_rows_ += taken;
    if (taken != 0) {
      num_refusals_ = num_tries_ = 0;
      continue;
    }
    const absl::StatusOr<bool> tries = MayTryAgain(/*frees_blocks=*/false);
    is_broken_ = !tries.ok();
    QUERN_RETURN_IF_ERROR(tries.status());
    if (!*tries)
      return absl::ResourceExhaustedError("sort that spills: no memory for some rows; accepted: a larger limit");
  }
  return absl::OkStatus();
}

}  // namespace quern
