// SPDX-License-Identifier: Apache-2.0
// A part whose build rows fit memory is joined as any join: a table of them, probed with the part's probe rows, then
// the scan of unmatched build rows. One that does not fit is divided. Where that cannot help, because a few keys have
// most rows, its build rows are joined in *chunks* that fit, each with all probe rows (block nested loop join: Kim, A
// New Way to Compute the Product and Join of Relations, SIGMOD 1980):
//
//     chunk 0: build rows 0 .. 99,999        probe rows 0 .. 999,999     matches come out; bit r of `found` is set
//     chunk 1: build rows 100,000 .. 199,999 probe rows 0 .. 999,999     the last chunk: rows without a bit come out
//
// A thread that finds no memory, because others have parts in it, waits while one of them is at work. Where none is, it
// leaves its part to them: they may be outputs that the same thread of the host reads by turns.
#include "runtime/join/part_prober.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/hash_join.h"

namespace quern {

PartProber::PartProber(std::shared_ptr<const HashJoin> join, void* host_context)
    : join_(std::move(join)),
      host_context_(host_context),
      memory_(join_->budget_),
      null_tuples_(*join_->descriptor_->rows(), spilled().build().strings()) {}

PartProber::~PartProber() {
  if (is_reading_) spilled().EndReading();
}

SpilledJoin& PartProber::spilled() const { return *join_->spilled_; }

absl::StatusOr<bool> PartProber::Next(OutputBatch* out) {
  for (;;) {
    if (join_->stop_flag() != nullptr) QUERN_RETURN_IF_ERROR(join_->stop_flag()->Check());
    switch (stage_) {
      case Stage::kPart: {
        QUERN_ASSIGN_OR_RETURN(const bool has_part, BeginPart());
        if (has_part) break;
        if (const absl::Status reset = out->Reset(); !absl::IsResourceExhausted(reset)) QUERN_RETURN_IF_ERROR(reset);
        out->set_num_rows(0);  // which takes no memory
        return false;
      }
      case Stage::kProbe: QUERN_RETURN_IF_ERROR(NextBatch()); break;
      case Stage::kNullRows: QUERN_RETURN_IF_ERROR(NextNullRows()); break;
      case Stage::kMatches:
      case Stage::kUnmatched:
      case Stage::kNullRowsOut: {
        QUERN_RETURN_IF_ERROR(spilled().ResetResults(out));
        QUERN_ASSIGN_OR_RETURN(const bool more, prober_->Next(out));
        if (!more) QUERN_RETURN_IF_ERROR(EndInput());
        if (out->num_rows() != 0) return true;
        break;
      }
    }
  }
}

// What the prober had is out.
absl::Status PartProber::EndInput() {
  if (stage_ == Stage::kUnmatched) return EndChunk();
  stage_ = stage_ == Stage::kMatches ? Stage::kProbe : Stage::kNullRows;
  return absl::OkStatus();
}

// ---- parts ----------------------------------------------------------------------------------------------------------

// Takes a part and makes a table of its first chunk; false: there is none, or others will take it.
absl::StatusOr<bool> PartProber::BeginPart() {
  while (is_reading_) {
    QUERN_RETURN_IF_ERROR(spilled().CheckWhole());
    std::optional<JoinPart> taken = spilled().Take();
    if (!taken.has_value()) {
      is_reading_ = false;
      break;
    }
    part_ = std::move(*taken);
    if (part_.are_null_rows) {
      rows_ = std::make_unique<RowReader>(spilled().spill(), spilled().build().types(), std::move(part_.build));
      stage_ = Stage::kNullRows;
      return true;
    }
    QUERN_ASSIGN_OR_RETURN(const Fit fit, FitPart());
    if (fit != Fit::kInMemory) continue;
    QUERN_RETURN_IF_ERROR(BuildTable());
    const RowReader::After after = is_chunked_ ? RowReader::After::kKeep : RowReader::After::kFree;
    rows_ = std::make_unique<RowReader>(spilled().spill(), spilled().probe_columns().read_types(),
                                        std::move(part_.probe), after);
    return true;
  }
  QUERN_RETURN_IF_ERROR(spilled().CheckWhole());  // the other threads may have failed
  return false;
}

// Reserves memory for all build rows of the part; else divides it, leaves it to others, or reserves memory for a chunk.
absl::StatusOr<PartProber::Fit> PartProber::FitPart() {
  for (;;) {
    const uint64_t bytes = BytesOf(part_.build, part_.build.blocks().size());
    if (TakeMemory(bytes)) {
      TakeChunk(part_.build.blocks().size());
      return Fit::kInMemory;
    }
    const bool can_divide = !part_.is_skewed && part_.level + 1 < spilled().build().parts().num_levels() &&
                            part_.build.num_rows() > thresholds::kUndividedRows;
    const uint64_t limit = join_->budget_->limit_bytes();
    const bool is_large = limit != 0 && bytes > limit / thresholds::kLargePartitionShare;
    if (can_divide && (is_large || !spilled().HasOthers())) {
      QUERN_RETURN_IF_ERROR(spilled().Divide(std::move(part_)));
      EndPart();
      return Fit::kDivided;
    }
    QUERN_ASSIGN_OR_RETURN(const bool has_waited, spilled().WaitForOthers());
    if (has_waited) continue;
    if (spilled().GiveBack(&part_)) {
      is_reading_ = false;
      return Fit::kLeft;
    }
    if (can_divide) continue;  // the others have just ended
    QUERN_RETURN_IF_ERROR(BeginCarrying());
    QUERN_RETURN_IF_ERROR(ChooseChunk());
    return Fit::kInMemory;
  }
}

void PartProber::EndPart() {
  prober_.reset();
  table_.reset();
  rows_.reset();
  found_.Free();
  is_chunked_ = false;
  memory_.GiveBack();
  part_ = {};
  stage_ = Stage::kPart;
}

// ---- chunks ---------------------------------------------------------------------------------------------------------

// What the first blocks take as a table, while it is built.
uint64_t PartProber::BytesOf(const SpilledRows& rows, size_t num_blocks) const {
  uint64_t num_rows = 0, string_bytes = 0;
  const bool has_strings = spilled().build().strings().any();
  for (size_t b = 0; b < num_blocks; ++b) {
    num_rows += rows.blocks()[b].num_rows;
    string_bytes += has_strings ? rows.blocks()[b].num_bytes : 0;
  }
  return BuildBytesOf(*join_->descriptor_, num_rows, string_bytes) + thresholds::kPartitionSpareBytes;
}

// Whether so many bytes may be taken and leave some for the result batches of all threads, whose strings grow.
bool PartProber::HasRoomForResults(uint64_t bytes) const {
  const SpillContext& spill = *spilled().spill();
  const uint64_t limit = join_->budget_->limit_bytes();
  const uint64_t room = spill.io_bytes() / thresholds::kResultsShareOfAside * spilled().num_reading();
  return spill.HasRoom(bytes + (limit == 0 ? room : std::min(room, limit / thresholds::kResultsShareOfLimit)));
}

// One thread at a time, so that two do not take what is left for the results of all.
bool PartProber::TakeMemory(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(spilled().fit_mutex());
  return HasRoomForResults(bytes) && memory_.GrowBy(bytes).ok();
}

void PartProber::TakeChunk(size_t num_blocks) {
  SpilledRows rest = part_.build.SplitOff(num_blocks);
  chunk_ = std::make_shared<SpilledRows>(std::move(part_.build));
  part_.build = std::move(rest);
}

// There will be several chunks: which probe rows have a match is carried from one to the next.
absl::Status PartProber::BeginCarrying() {
  if (std::exchange(is_chunked_, true)) return absl::OkStatus();
  if (RowOf(join_->descriptor_->spec().kind).probe_row == RowsOut::kNever) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(found_, HugeBuffer::Allocate(memory_.budget(), part_.probe.num_rows() / 8 + 8, false));
  return absl::OkStatus();
}

// Reserves memory for as many blocks as it suffices for, at least one; a part without build rows takes none beforehand.
// *Errors*: ResourceExhausted.
absl::Status PartProber::ChooseChunk() {
  for (size_t num_blocks = part_.build.blocks().size();; num_blocks /= 2) {
    const uint64_t bytes = num_blocks == 0 ? 0 : BytesOf(part_.build, num_blocks), reserved = memory_.reserved_bytes();
    absl::Status status;
    if (bytes > reserved && !TakeMemory(bytes - reserved)) {
      if (num_blocks > 1) continue;
      status = memory_.GrowBy(bytes - reserved);
    }
    if (!status.ok()) return status;
    TakeChunk(num_blocks);
    return absl::OkStatus();
  }
}

// Makes a table of the chunk, or of a part of it where that takes more than was foreseen.
absl::Status PartProber::BuildTable() {
  memory_.Open();
  for (;;) {
    table_ = join_->NewPart(memory_.budget());
    absl::Status status = table_->BuildPart(*join_, chunk_);
    if (status.ok()) break;
    table_.reset();
    if (!absl::IsResourceExhausted(status) || chunk_->blocks().size() <= 1) return status;
    SpilledRows rest = chunk_->SplitOff(chunk_->blocks().size() / 2);
    rest.Take(std::move(part_.build));
    part_.build = std::move(rest);
    QUERN_RETURN_IF_ERROR(BeginCarrying());
  }
  chunk_.reset();
  prober_ = std::make_unique<JoinProber>(table_, host_context_);
  first_row_ = 0;
  stage_ = Stage::kProbe;
  return absl::OkStatus();
}

absl::Status PartProber::NextBatch() {
  BatchView read;
  QUERN_ASSIGN_OR_RETURN(const bool has_rows, rows_->Next(&read));
  if (has_rows) {
    PartInput input;
    input.row_ids = spilled().probe_columns().RowIdsOf(read);
    input.found = found_.data();
    input.first_row = first_row_;
    input.is_last = part_.build.empty();
    first_row_ += read.num_rows;
    stage_ = Stage::kMatches;
    return prober_->SetPartInput(spilled().probe_columns().FromRead(read), input);
  }
  if (!RowOf(join_->descriptor_->spec().kind).flags_matched_rows()) return EndChunk();
  stage_ = Stage::kUnmatched;
  return prober_->SetUnmatched();
}

// The memory of a chunk is kept for the next one.
absl::Status PartProber::EndChunk() {
  prober_.reset();
  table_.reset();
  if (part_.build.empty()) {
    EndPart();
    return absl::OkStatus();
  }
  rows_->Rewind();
  QUERN_RETURN_IF_ERROR(ChooseChunk());
  return BuildTable();
}

// ---- rows with null keys --------------------------------------------------------------------------------------------

absl::Status PartProber::NextNullRows() {
  QUERN_ASSIGN_OR_RETURN(const bool has_rows, rows_->Next(&null_rows_));
  if (!has_rows) {
    null_rows_ = {};
    EndPart();
    return absl::OkStatus();
  }
  QUERN_RETURN_IF_ERROR(null_tuples_.Set(null_rows_));
  table_ = join_->NewPart(spilled().spill()->io_budget());  // others may have all the rest of the memory
  QUERN_RETURN_IF_ERROR(table_->BuildNullRows(*join_, null_tuples_));
  prober_ = std::make_unique<JoinProber>(table_, host_context_);
  stage_ = Stage::kNullRowsOut;
  return prober_->SetUnmatched();
}

}  // namespace quern
