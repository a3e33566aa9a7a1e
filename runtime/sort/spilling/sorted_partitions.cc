// SPDX-License-Identifier: Apache-2.0
// A partition is read into chunks, the blocks that stayed in memory and those that were written, and sorted as rows are
// that never left. Its first row's position is known, as all rows of the partitions before it have been counted.
//
// One that is larger than the free memory, where many rows share a key or where later rows were not like those of the
// sample, is sorted in runs, as a sort of its own (spilled_runs.h).
#include "runtime/sort/spilling/sorted_partitions.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/sort/sort_columns.h"
#include "runtime/sort/sorted_rows.h"
#include "runtime/sort/spilling/range_merge.h"
#include "runtime/sort/spilling/spilled_runs.h"
#include "runtime/spill/budget_with_reserve.h"

namespace quern {
namespace {

// What sorting takes: samples and buckets; and, for each row of which prefixes may collide, pairs in arrays that
// double.
constexpr uint64_t kSortBytes = 64 << 10, kCollisionBytesPerRow = 24;
constexpr uint64_t kFewestRunRows = 1024;

absl::Status OtherRows() { return absl::InternalError("sort that spills: a range has other rows than were counted"); }

// Reads tuples one block after the other, and frees those that it has read.
class TupleSource {
 public:
  explicit TupleSource(PartitionedTuples::Taken taken) : taken_(std::move(taken)) {}

  // The next tuples; none: the end.
  absl::StatusOr<uint64_t> Next(const uint8_t** tuples) {
    while (next_ < taken_.kept.spans.size()) {
      if (next_ != 0) taken_.kept.memory[next_ - 1].Free();
      const TupleSpan& span = taken_.kept.spans[next_++];
      *tuples = span.tuples;
      if (span.num_tuples != 0) return span.num_tuples;
    }
    taken_.kept.Clear();
    next_ = 0;
    if (taken_.written == nullptr) return 0;
    QUERN_ASSIGN_OR_RETURN(const bool has_rows, taken_.written->Next(&batch_));
    if (!has_rows) return 0;
    *tuples = static_cast<const uint8_t*>(batch_.keys[0].values);
    return batch_.num_rows;
  }

 private:
  PartitionedTuples::Taken taken_;
  size_t next_ = 0;
  BatchView batch_;
};

// Chunks of rows, with what is known of them.
class Chunks {
 public:
  Chunks(const RowTuples& layout, const SortContext& context)
      : layout_(layout), context_(context), bits_(context.descriptor->get()->num_words) {}

  uint64_t num_rows() const { return num_rows_; }

  // Adds up to `most` tuples of the source. stop_flag: may be null. *Errors*: ResourceExhausted; Cancelled; those of
  // RowReader.
  absl::Status Fill(uint64_t most, const StopFlag* stop_flag, TupleSource* source) {
    while (num_rows_ < most) {
      if (num_left_ == 0) {
        if (stop_flag != nullptr) QUERN_RETURN_IF_ERROR(stop_flag->Check());
        QUERN_ASSIGN_OR_RETURN(num_left_, source->Next(&left_));
        if (num_left_ == 0) return absl::OkStatus();
      }
      if (chunks_.empty() || chunks_.back().num_rows == chunks_.back().capacity) QUERN_RETURN_IF_ERROR(Add(most));
      SortChunk& chunk = chunks_.back();
      const uint64_t room = std::min<uint64_t>(chunk.capacity - chunk.num_rows, most - num_rows_);
      const auto n = static_cast<uint32_t>(std::min(num_left_, room));
      layout_.Unpack(left_, n, &chunk, bits_.data());
      left_ += uint64_t{n} * layout_.bytes();
      num_left_ -= n;
      num_rows_ += n;
    }
    return absl::OkStatus();
  }

  // Forgets the rows, but not those of a block that were left over.
  void Clear() {
    chunks_.clear();
    memory_.clear();
    bits_.assign(bits_.size(), WordBits64());
    num_rows_ = 0;
  }

  // Valid as long as the chunks.
  SortInput Input(uint32_t incomplete) const {
    SortInput input;
    for (const SortChunk& chunk : chunks_) input.chunks.push_back(&chunk);
    input.locals.resize(chunks_.size());
    input.bits = bits_;
    input.incomplete = incomplete;
    input.rows_in_order = false;
    input.num_local_states = 1;
    input.needs_tuples = context_.descriptor->has_tuples();
    return input;
  }

 private:
  absl::Status Add(uint64_t most) {
    if (chunks_.empty()) chunks_.reserve((most + kChunkRows - 1) / kChunkRows);  // whose addresses are taken
    const auto capacity = static_cast<uint32_t>(std::min<uint64_t>(most - num_rows_, kChunkRows));
    QUERN_ASSIGN_OR_RETURN(HugeBuffer memory, HugeBuffer::Allocate(context_.budget, capacity * layout_.chunk_bytes(),
                                                                   context_.options.huge_pages, Contents::kAnything));
    PopulatePages(memory.data(), memory.bytes());
    chunks_.push_back(layout_.ChunkIn(memory.data(), capacity));
    memory_.push_back(std::move(memory));
    return absl::OkStatus();
  }

  const RowTuples& layout_;
  const SortContext context_;
  std::vector<SortChunk> chunks_;
  std::vector<HugeBuffer> memory_;
  std::vector<WordBits64> bits_;
  uint64_t num_rows_ = 0;
  const uint8_t* left_ = nullptr;
  uint64_t num_left_ = 0;
};

SortContext WithBudget(SortContext context, std::shared_ptr<MemoryBudget> budget) {
  context.budget = std::move(budget);
  return context;
}

}  // namespace

class SortedPartitions::Partition {
 public:
  Partition(uint32_t number, uint64_t position, uint64_t end, const SortContext& context,
            const QuernSortEntryPoints& generic)
      : number(number), position(position), end(end), memory(context.budget), writer(context.descriptor, generic) {}

  const uint32_t number;
  uint64_t position;   // in the result, of the next row
  const uint64_t end;  // where the next partition begins, or the result ends
  BudgetWithReserve memory;
  bool is_reserved = false;
  bool is_loaded = false;
  std::unique_ptr<Chunks> chunks;
  std::unique_ptr<SortedRows> rows;   // null: it is sorted in runs
  std::unique_ptr<SpilledRuns> runs;  // null: it is sorted in memory
  MergedRanges::Range range;          // of runs
  uint64_t next_row = 0;              // of rows
  SortColumnWriter writer;
  SortedRows::BlockBuffers buffers;

  // Fills `out` with the next rows.
  absl::Status Read(OutputBatch* out) {
    const uint64_t num_left = end - position;
    if (runs != nullptr) {
      uint64_t ignored;
      QUERN_RETURN_IF_ERROR(runs->ranges()->Next(&range, out, &ignored).status());
      out->set_num_rows(std::min(out->num_rows(), num_left));  // of a limit
      return absl::OkStatus();
    }
    while (out->num_rows() < std::min(num_left, out->capacity())) {
      const uint64_t room = std::min(num_left, out->capacity()) - out->num_rows();
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(room, rows->block_rows()));
      QUERN_ASSIGN_OR_RETURN(const uint32_t written, writer.Append(rows->Read(next_row, n, &buffers), out));
      next_row += written;
      if (written < n) break;
    }
    return absl::OkStatus();
  }
};

SortedPartitions::Reader::Reader() = default;
SortedPartitions::Reader::Reader(Reader&&) noexcept = default;
SortedPartitions::Reader& SortedPartitions::Reader::operator=(Reader&&) noexcept = default;
SortedPartitions::Reader::~Reader() = default;

SortedPartitions::SortedPartitions(const SortContext& context, const QuernSortEntryPoints& generic,
                                   std::shared_ptr<SpillContext> spill, const RowTuples& layout,
                                   std::unique_ptr<PartitionedTuples> tuples, uint32_t incomplete,
                                   const StopFlag* stop_flag)
    : context_(context),
      generic_(generic),
      spill_(std::move(spill)),
      layout_(layout),
      tuples_(std::move(tuples)),
      incomplete_(incomplete),
      stop_flag_(stop_flag),
      first_rows_(1) {
  const uint64_t limit = context_.descriptor->spec().limit;
  for (uint32_t p = 0; p < tuples_->num_parts(); ++p) {
    const uint64_t n = tuples_->num_tuples_of(p);
    if (limit != 0 && num_rows_ >= limit) tuples_->Take(p);  // rows that nobody will read
    else num_rows_ += n;
    if (limit != 0) num_rows_ = std::min(num_rows_, limit);
    first_rows_.push_back(num_rows_);
  }
}

SortedPartitions::~SortedPartitions() = default;

// At most: rows in chunks; prefixes, and as many in scratch memory; pairs of those that collide.
uint64_t SortedPartitions::BytesToSort(uint64_t num_rows) const {
  const uint64_t num_words = context_.descriptor->get()->num_words;
  const uint64_t entry_bytes = 8 * std::min<uint64_t>(num_words + 1, kMaxEntryWords);
  const bool may_collide = context_.descriptor->spec().stable || num_words > context_.options.prefix_words;
  const uint64_t row_bytes = layout_.chunk_bytes() + 2 * entry_bytes + (may_collide ? kCollisionBytesPerRow : 0);
  return num_rows * row_bytes + kSortBytes;
}

uint64_t SortedPartitions::BytesToFreeFor(uint64_t num_readers) const {
  const uint64_t kept = tuples_->kept_bytes(), limit = context_.budget->limit_bytes();
  const uint64_t most_kept = limit == 0 ? 0 : spill_->most_kept_bytes();
  if (kept > most_kept) return kept - most_kept;
  uint64_t most_rows = 0;
  for (uint32_t p = 0; p < tuples_->num_parts(); ++p) most_rows = std::max(most_rows, tuples_->num_tuples_of(p));
  const uint64_t wanted = num_readers * BytesToSort(most_rows) + spill_->io_bytes();
  const uint64_t free = limit - std::min(limit, context_.budget->used_bytes());
  return wanted - std::min(wanted, free);
}

// ---- sorting --------------------------------------------------------------------------------------------------------

// A partition for the reader, with memory for it; false: there is none, or no memory while others have theirs.
absl::StatusOr<bool> SortedPartitions::Take(Reader* reader) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(status_);
  if (!given_back_.empty()) {
    *reader = std::move(given_back_.back());
    given_back_.pop_back();
    ++num_active_;
    return true;
  }
  while (next_ < tuples_->num_parts() && first_rows_[next_] == first_rows_[next_ + 1]) ++next_;
  if (next_ == tuples_->num_parts()) return false;
  auto partition = std::make_unique<Partition>(next_, first_rows_[next_], first_rows_[next_ + 1], context_, generic_);
  const uint64_t bytes = BytesToSort(tuples_->num_tuples_of(next_));
  if (num_active_ != 0) {
    if (!spill_->HasRoom(bytes + spill_->io_bytes()) || !partition->memory.GrowBy(bytes).ok()) return false;
    partition->is_reserved = true;
  } else {
    partition->is_reserved = partition->memory.GrowBy(bytes).ok();
    while (!partition->is_reserved && tuples_->kept_bytes() != 0) {
      QUERN_RETURN_IF_ERROR(tuples_->FreeKept(BytesToFree(std::max(bytes, tuples_->kept_bytes()))));
      partition->is_reserved = partition->memory.GrowBy(bytes).ok();
    }
  }
  reader->partition = std::move(partition);
  ++next_;
  ++num_active_;
  return true;
}

absl::Status SortedPartitions::Load(Partition* partition) {
  partition->is_loaded = true;
  return WithoutBadAlloc([&] {
    PartitionedTuples::Taken taken = tuples_->Take(partition->number);
    return partition->is_reserved ? Sort(partition, std::move(taken)) : SortInRuns(partition, std::move(taken));
  });
}

absl::Status SortedPartitions::Sort(Partition* partition, PartitionedTuples::Taken taken) {
  partition->memory.Open();
  const SortContext context = WithBudget(context_, partition->memory.budget());
  const uint64_t num_rows = taken.kept.num_tuples() + (taken.written == nullptr ? 0 : taken.written->rows().num_rows());
  TupleSource source(std::move(taken));
  partition->chunks = std::make_unique<Chunks>(layout_, context);
  QUERN_RETURN_IF_ERROR(partition->chunks->Fill(num_rows, stop_flag_, &source));
  if (partition->chunks->num_rows() != num_rows) return OtherRows();
  partition->rows = std::make_unique<SortedRows>(context, partition->chunks->Input(incomplete_), /*needs_rows=*/false);
  partition->rows->work()->set_stop_flag(stop_flag_);
  QUERN_RETURN_IF_ERROR(partition->rows->work()->RunTasks());
  partition->memory.GiveBack();
  return absl::OkStatus();
}

// As many rows at a time as memory allows.
absl::Status SortedPartitions::SortInRuns(Partition* partition, PartitionedTuples::Taken taken) {
  uint64_t run_rows = partition->end - partition->position;
  while (!partition->memory.GrowBy(BytesToSort(run_rows)).ok()) {
    if (run_rows < kFewestRunRows)
      return absl::ResourceExhaustedError("sort that spills: no memory for some rows; accepted: a larger limit");
    run_rows /= 2;
  }
  partition->memory.Open();
  const SortContext context = WithBudget(context_, partition->memory.budget());
  partition->runs = std::make_unique<SpilledRuns>(context_, generic_, spill_, stop_flag_, /*level=*/2);
  TupleSource source(std::move(taken));
  for (Chunks chunks(layout_, context);; chunks.Clear()) {
    QUERN_RETURN_IF_ERROR(chunks.Fill(run_rows, stop_flag_, &source));
    if (chunks.num_rows() == 0) break;
    QUERN_RETURN_IF_ERROR(partition->runs->Write(chunks.Input(incomplete_), layout_.chunk_bytes(), context.budget));
  }
  partition->memory.GiveBack();
  SharedWork* const merging = partition->runs->BeginMerge({});
  merging->set_stop_flag(stop_flag_);
  return merging->RunTasks();
}

// ---- reading --------------------------------------------------------------------------------------------------------

void SortedPartitions::End(Reader* reader, const absl::Status& status) {
  const bool had_runs = reader->partition->runs != nullptr;
  *reader = {};
  if (had_runs) spill_->SetLessAside();  // which their merge has needed
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_active_;
  if (status_.ok()) status_ = status;
}

void SortedPartitions::GiveBack(Reader reader) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_active_;
  given_back_.push_back(std::move(reader));
}

absl::StatusOr<bool> SortedPartitions::Next(Reader* reader, OutputBatch* out, uint64_t* position) {
  if (out->num_columns() == 0) return Count(out, position);
  if (reader->partition == nullptr) {
    *position = num_rows_;
    QUERN_ASSIGN_OR_RETURN(const bool has_partition, Take(reader));
    if (!has_partition) return false;
  }
  Partition* const partition = reader->partition.get();
  *position = partition->position;
  absl::Status status = stop_flag_ == nullptr ? absl::OkStatus() : stop_flag_->Check();
  if (status.ok() && !partition->is_loaded) status = Load(partition);
  if (status.ok()) status = partition->Read(out);
  if (status.ok() && out->num_rows() == 0) status = OtherRows();
  if (!status.ok()) {
    End(reader, status);
    return status;
  }
  partition->position += out->num_rows();
  if (partition->position < partition->end) return true;
  End(reader, absl::OkStatus());
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_ < tuples_->num_parts() || !given_back_.empty();
}

// All rows that no reader has taken, without reading them.
absl::StatusOr<bool> SortedPartitions::Count(OutputBatch* out, uint64_t* position) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(status_);
  *position = first_rows_[next_];
  out->set_num_rows(num_rows_ - *position);
  next_ = tuples_->num_parts();
  return false;
}

}  // namespace quern
