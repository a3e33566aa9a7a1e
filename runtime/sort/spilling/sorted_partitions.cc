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

namespace quern {
namespace {

// What sorting takes: samples and buckets; and, for each row of which prefixes may collide, pairs in arrays that
// double.
constexpr uint64_t kSortBytes = 64 << 10, kCollisionBytesPerRow = 24;
constexpr uint64_t kFewestRunRows = 1024;

// Reads tuples one block after the other, and frees those that it has read.
class TupleSource {
 public:
  explicit TupleSource(PartitionedTuples::Taken taken) : taken_(std::move(taken)) {}

  // The next tuples; none: the end.
  absl::StatusOr<uint64_t> Next(const uint8_t** tuples) {
    while (taken_.kept != nullptr && next_ < taken_.kept->spans.size()) {
      if (next_ != 0) taken_.kept->memory[next_ - 1].Free();
      const TupleSpan& span = taken_.kept->spans[next_++];
      *tuples = span.tuples;
      if (span.num_tuples != 0) return span.num_tuples;
    }
    taken_.kept.reset();
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

// A partition, which is read and sorted with the first rows that are asked for.
class SortedPartitions::Partition final : public RangeReader {
 public:
  Partition(SortedPartitions* of, uint32_t number, uint64_t num_rows)
      : of_(of),
        number_(number),
        rows_left_(num_rows),
        memory_(of->context_.budget),
        writer_(of->context_.descriptor, of->generic_) {}
  // What a merge of runs has needed is given back.
  ~Partition() override {
    const bool had_runs = runs_ != nullptr;
    held_ = {};
    runs_.reset();
    if (had_runs) of_->spill_->SetLessAside();
  }

  // Takes memory to sort all rows; false where there is none, so that they are sorted in runs.
  bool Reserve(uint64_t bytes) { return is_reserved_ = memory_.GrowBy(bytes).ok(); }

  absl::Status Read(OutputBatch* out) override {
    if (of_->stop_flag_ != nullptr) QUERN_RETURN_IF_ERROR(of_->stop_flag_->Check());
    if (!std::exchange(is_loaded_, true)) QUERN_RETURN_IF_ERROR(WithoutBadAlloc([this] { return Load(); }));
    if (runs_ != nullptr) {
      uint64_t ignored;
      QUERN_RETURN_IF_ERROR(runs_->ranges()->Next(&held_, out, &ignored).status());
      out->set_num_rows(std::min(out->num_rows(), rows_left_));  // of a limit
    } else {
      QUERN_RETURN_IF_ERROR(ReadSorted(out));
    }
    rows_left_ -= out->num_rows();
    return absl::OkStatus();
  }

 private:
  absl::Status Load() {
    PartitionedTuples::Taken taken = of_->tuples_->Take(number_);
    return is_reserved_ ? Sort(std::move(taken)) : SortInRuns(std::move(taken));
  }

  absl::Status Sort(PartitionedTuples::Taken taken) {
    memory_.Open();
    const SortContext context = WithBudget(of_->context_, memory_.budget());
    const uint64_t num_rows = taken.num_tuples;
    TupleSource source(std::move(taken));
    chunks_ = std::make_unique<Chunks>(of_->layout_, context);
    QUERN_RETURN_IF_ERROR(chunks_->Fill(num_rows, of_->stop_flag_, &source));
    rows_ = std::make_unique<SortedRows>(context, chunks_->Input(of_->incomplete_), /*needs_rows=*/false);
    rows_->work()->set_stop_flag(of_->stop_flag_);
    QUERN_RETURN_IF_ERROR(rows_->work()->RunTasks());
    memory_.GiveBack();
    return absl::OkStatus();
  }

  // As many rows at a time as memory allows.
  absl::Status SortInRuns(PartitionedTuples::Taken taken) {
    uint64_t run_rows = rows_left_;
    while (!memory_.GrowBy(of_->BytesToSort(run_rows)).ok()) {
      if (run_rows < kFewestRunRows)
        return absl::ResourceExhaustedError("sort that spills: no memory for some rows; accepted: a larger limit");
      run_rows /= 2;
    }
    memory_.Open();
    const SortContext context = WithBudget(of_->context_, memory_.budget());
    runs_ = std::make_unique<SpilledRuns>(of_->context_, of_->generic_, of_->spill_, of_->stop_flag_, /*level=*/2);
    TupleSource source(std::move(taken));
    for (Chunks chunks(of_->layout_, context);; chunks.Clear()) {
      QUERN_RETURN_IF_ERROR(chunks.Fill(run_rows, of_->stop_flag_, &source));
      if (chunks.num_rows() == 0) break;
      QUERN_RETURN_IF_ERROR(runs_->Write(chunks.Input(of_->incomplete_), of_->layout_.chunk_bytes(), context.budget));
    }
    memory_.GiveBack();
    SharedWork* const merging = runs_->BeginMerge({});
    merging->set_stop_flag(of_->stop_flag_);
    return merging->RunTasks();
  }

  absl::Status ReadSorted(OutputBatch* out) {
    const uint64_t most = std::min({rows_left_, out->capacity(), rows_->num_rows() - next_row_});
    while (out->num_rows() < most) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(most - out->num_rows(), rows_->block_rows()));
      QUERN_ASSIGN_OR_RETURN(const uint32_t written, writer_.Append(rows_->Read(next_row_, n, &buffers_), out));
      next_row_ += written;
      if (written < n) break;
    }
    return absl::OkStatus();
  }

  SortedPartitions* const of_;
  const uint32_t number_;
  uint64_t rows_left_;  // up to the limit
  BudgetWithReserve memory_;
  bool is_reserved_ = false, is_loaded_ = false;
  std::unique_ptr<Chunks> chunks_;
  std::unique_ptr<SortedRows> rows_;   // null: it is sorted in runs
  std::unique_ptr<SpilledRuns> runs_;  // null: it is sorted in memory
  RangesInTurn::Held held_;            // of runs
  uint64_t next_row_ = 0;              // of rows
  SortColumnWriter writer_;
  SortedRows::BlockBuffers buffers_;
};

namespace {

// Where the partitions begin in the result. Those behind a limit have no rows.
std::vector<uint64_t> FirstRows(const PartitionedTuples& tuples, uint64_t limit) {
  std::vector<uint64_t> first_rows = {0};
  for (uint32_t p = 0; p < tuples.num_parts(); ++p) {
    const uint64_t end = first_rows.back() + tuples.num_tuples_of(p);
    first_rows.push_back(limit == 0 ? end : std::min(end, limit));
  }
  return first_rows;
}

}  // namespace

SortedPartitions::SortedPartitions(const SortContext& context, const QuernSortEntryPoints& generic,
                                   std::shared_ptr<SpillContext> spill, const RowTuples& layout,
                                   std::unique_ptr<PartitionedTuples> tuples, uint32_t incomplete,
                                   const StopFlag* stop_flag)
    : RangesInTurn(FirstRows(*tuples, context.descriptor->spec().limit)),
      context_(context),
      generic_(generic),
      spill_(std::move(spill)),
      layout_(layout),
      tuples_(std::move(tuples)),
      incomplete_(incomplete),
      stop_flag_(stop_flag),
      held_(context_.budget) {
  for (uint32_t p = 0; p < tuples_->num_parts(); ++p) {
    if (rows_of(p) == 0) tuples_->Take(p);  // rows that nobody will read
    most_rows_ = std::max(most_rows_, tuples_->num_tuples_of(p));
  }
}

SortedPartitions::~SortedPartitions() = default;

// ---- memory ---------------------------------------------------------------------------------------------------------

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
  const uint64_t wanted = num_readers * BytesToSort(most_rows_) + spill_->io_bytes();
  const uint64_t free = limit - std::min(limit, context_.budget->used_bytes());
  return wanted - std::min(wanted, free);
}

void SortedPartitions::HoldMemory() { held_.GrowBy(BytesToSort(most_rows_)).IgnoreError(); }

void SortedPartitions::HasReadAllBegun() {
  if (has_ranges_left()) HoldMemory();
}

absl::StatusOr<std::unique_ptr<RangeReader>> SortedPartitions::Begin(uint64_t range, bool is_first) {
  const auto number = static_cast<uint32_t>(range);
  const uint64_t bytes = BytesToSort(tuples_->num_tuples_of(number));
  auto partition = std::make_unique<Partition>(this, number, rows_of(range));
  if (!is_first) {
    if (!spill_->HasRoom(bytes + spill_->io_bytes()) || !partition->Reserve(bytes)) return nullptr;
    return partition;
  }
  held_.GiveBack();
  while (!partition->Reserve(bytes) && tuples_->kept_bytes() != 0)
    QUERN_RETURN_IF_ERROR(tuples_->FreeKept(BytesToFree(std::max(bytes, tuples_->kept_bytes()))));
  return partition;
}

}  // namespace quern
