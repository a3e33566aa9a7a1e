// SPDX-License-Identifier: Apache-2.0
// Partitions are written as radix partitioning writes them: each has a buffer of one block, and goes to the store when
// that is full. A batch that several threads append to the same partitions goes to those first that no other thread
// holds:
//
//     thread 0    partitions 0, 1, 2 ..           thread 1    partition 0 is held: 1, 2, .., then 0
//
// Reading asks for blocks before they are needed, as many as the context's depth:
//
//     in use   asked for
//     block 4  block 5, block 6        Next: waits for block 5 if it has not come, and asks for block 7
#include "runtime/spill/spilled_rows.h"

#include <algorithm>
#include <condition_variable>
#include <string>
#include <utility>

#include "runtime/base/output_buffer.h"
#include "runtime/base/status.h"
#include "runtime/rows/copy_rows.h"
#include "runtime/spill/block_codec.h"
#include "runtime/spill/block_format.h"
#include "runtime/spill/io_threads.h"

namespace quern {
namespace {

constexpr uint64_t kMaxBlockRows = 65536;
// Of a string, where nothing is known of it.
constexpr uint64_t kGuessedStringBytes = 16;
// Rows of strings that are copied before the size of a block is looked at.
constexpr uint64_t kMostStepRows = 64;

std::vector<ColumnType> SpilledTypes(std::vector<ColumnType> types) {
  for (ColumnType& type : types) type = SpilledType(type);
  return types;
}

bool HasVariable(const std::vector<ColumnType>& types) {
  return std::any_of(types.begin(), types.end(),
                     [](const ColumnType& type) { return IsVariable(RowOf(type.id).storage); });
}

uint64_t BlockRows(const std::vector<ColumnType>& types, uint64_t block_bytes) {
  const uint64_t row_bytes = std::max<uint64_t>(RowBytesOf(types), 1);
  return std::clamp(block_bytes / row_bytes, kMinBlockRows, kMaxBlockRows) / 8 * 8;
}

// Copies rows into a block until it is full. rows: its buffers, which were reset. Returns how many it has copied.
absl::StatusOr<uint64_t> CopySome(const BatchView& batch, const std::vector<ColumnType>& types, uint64_t first_row,
                                  uint64_t block_bytes, bool has_strings, OutputBatch* rows) {
  if (!has_strings) return CopyRows(batch, types, first_row, rows);
  uint64_t copied = 0;
  while (first_row + copied < batch.num_rows && rows->num_rows() < rows->capacity() &&
         StringBytes(*rows) < block_bytes) {
    BatchView step = batch;
    step.num_rows = std::min(batch.num_rows, first_row + copied + RowsThatFit(*rows, block_bytes, kMostStepRows));
    QUERN_ASSIGN_OR_RETURN(const uint64_t n, CopyRows(step, types, first_row + copied, rows));
    if (n == 0) break;
    copied += n;
  }
  return copied;
}

}  // namespace

uint64_t RowBytesOf(const std::vector<ColumnType>& types) {
  uint64_t bytes = 0;
  for (const ColumnType& type : types) {
    const Storage storage = RowOf(type.id).storage;
    if (storage == kFixed) bytes += type.width_bytes;
    else if (IsVariable(storage)) bytes += 8 + kGuessedStringBytes;
    else bytes += StorageFieldBytes(storage);
  }
  return bytes;
}

ColumnType SpilledType(const ColumnType& type) {
  ColumnType spilled = type;
  spilled.is_dictionary = false;
  spilled.index = TypeId::kI32;
  return spilled;
}

uint64_t StringBytes(const OutputBatch& rows) {
  uint64_t bytes = 0;
  for (size_t c = 0; c < rows.num_columns(); ++c) bytes += rows.column(c).num_bytes;
  return bytes;
}

uint64_t RowsThatFit(const OutputBatch& rows, uint64_t most_bytes, uint64_t most_rows) {
  const uint64_t num_rows = rows.num_rows(), bytes = StringBytes(rows);
  if (num_rows == 0 || bytes >= most_bytes) return 1;
  const uint64_t fit = (most_bytes - bytes) / (bytes / num_rows + 1);
  return std::clamp<uint64_t>(fit, 1, std::min(num_rows, std::max<uint64_t>(most_rows, 1)));
}

// ---- sequences ------------------------------------------------------------------------------------------------------

SpilledRows& SpilledRows::operator=(SpilledRows&& other) noexcept {
  if (this == &other) return *this;
  Free();
  context_ = std::move(other.context_);
  blocks_ = std::exchange(other.blocks_, {});
  num_rows_ = std::exchange(other.num_rows_, 0);
  num_bytes_ = std::exchange(other.num_bytes_, 0);
  return *this;
}

void SpilledRows::Add(const std::shared_ptr<SpillContext>& context, const SpilledBlock& block) {
  context_ = context;
  blocks_.push_back(block);
  num_rows_ += block.num_rows;
  num_bytes_ += block.num_bytes;
}

void SpilledRows::Take(SpilledRows&& other) {
  if (other.context_ != nullptr) context_ = std::move(other.context_);
  blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
  num_rows_ += std::exchange(other.num_rows_, 0);
  num_bytes_ += std::exchange(other.num_bytes_, 0);
  other.blocks_.clear();
}

SpilledRows SpilledRows::SplitOff(size_t num_blocks) {
  SpilledRows rest;
  for (size_t b = num_blocks; b < blocks_.size(); ++b) {
    rest.Add(context_, blocks_[b]);
    num_rows_ -= blocks_[b].num_rows;
    num_bytes_ -= blocks_[b].num_bytes;
  }
  blocks_.resize(std::min(num_blocks, blocks_.size()));
  return rest;
}

void SpilledRows::Free() {
  if (context_ == nullptr) return;
  for (const SpilledBlock& block : blocks_) context_->store()->Free(block.stored);
  blocks_.clear();
  num_rows_ = num_bytes_ = 0;
  context_.reset();
}

SharedRows::SharedRows(SpilledRows rows, const std::vector<uint64_t>& bounds)
    : rows_(std::move(rows)), readers_left_(rows_.blocks().size()) {
  uint64_t row = 0;
  for (size_t b = 0; b < readers_left_.size(); ++b) {
    const uint64_t end = row + rows_.blocks()[b].num_rows;
    // Of the parts that begin or end within the block, each reads it.
    const auto first = std::upper_bound(bounds.begin(), bounds.end(), row);
    uint32_t readers = 1;
    for (auto bound = first; bound != bounds.end() && *bound < end; ++bound)
      readers += bound == first || *bound != *(bound - 1) ? 1 : 0;
    readers_left_[b] = readers;
    row = end;
  }
}

SharedRows::~SharedRows() {
  std::vector<SpilledBlock> left;
  for (size_t b = 0; b < readers_left_.size(); ++b)
    if (readers_left_[b] != 0) left.push_back(rows_.blocks_[b]);
  rows_.blocks_ = std::move(left);
}

void SharedRows::EndRead(size_t block) {
  if (readers_left_[block].fetch_sub(1, std::memory_order_acq_rel) == 1)
    rows_.context_->store()->Free(rows_.blocks_[block].stored);
}

// ---- one sequence ---------------------------------------------------------------------------------------------------

std::shared_ptr<BlockBuffers> RowWriter::BuffersOf(const SpillContext& context, const std::vector<ColumnType>& types,
                                                   std::shared_ptr<MemoryBudget> budget) {
  return std::make_shared<BlockBuffers>(SpilledTypes(types), BlockRows(types, context.block_bytes()),
                                        budget == nullptr ? context.io_budget() : std::move(budget));
}

RowWriter::RowWriter(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types)
    : RowWriter(context, types, BuffersOf(*context, types)) {}

RowWriter::RowWriter(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
                     std::shared_ptr<BlockBuffers> buffers)
    : context_(std::move(context)),
      types_(std::move(types)),
      buffers_(std::move(buffers)),
      block_rows_(BlockRows(types_, context_->block_bytes())),
      behind_(context_.get()) {}

// Blocks that are being written belong to `written_`, which gives their space back.
RowWriter::~RowWriter() { Drain(/*waits=*/true).IgnoreError(); }

absl::Status RowWriter::Append(const BatchView& batch) {
  const bool has_strings = HasVariable(types_);
  for (uint64_t next = 0; next < batch.num_rows;) {
    if (rows_ == nullptr) {
      QUERN_ASSIGN_OR_RETURN(rows_, buffers_->Take());
    }
    QUERN_ASSIGN_OR_RETURN(const uint64_t n,
                           CopySome(batch, types_, next, context_->block_bytes(), has_strings, rows_.get()));
    next += n;
    // A block that strings have filled leaves at once: one in each partition, of long strings, would take much memory.
    const bool is_full = has_strings && StringBytes(*rows_) >= context_->block_bytes();
    if (next < batch.num_rows || is_full) QUERN_RETURN_IF_ERROR(Flush());
  }
  num_rows_ += batch.num_rows;
  return absl::OkStatus();
}

absl::Status RowWriter::Append(const OutputBatch& rows) {
  const bool is_block = 2 * rows.num_rows() >= block_rows_ || StringBytes(rows) >= context_->block_bytes() / 2;
  const uint64_t most_bytes = 4 * context_->block_bytes();
  const BlockPieces block(rows);
  if (!is_block || block.num_bytes() > most_bytes) return Append(ViewOf(rows));
  QUERN_RETURN_IF_ERROR(Flush());
  behind_.WriteNow(buffers_.get(), rows);
  num_rows_ += rows.num_rows();
  return Drain(/*waits=*/false);
}

absl::Status RowWriter::Flush(bool is_last) {
  if (rows_ == nullptr || rows_->num_rows() == 0) return Drain(/*waits=*/false);
  if (!behind_.WriteLater(buffers_, is_last, &rows_)) {
    behind_.WriteNow(buffers_.get(), *rows_);
    if (HasOutgrown(*rows_, context_->block_bytes())) rows_.reset();
    else QUERN_RETURN_IF_ERROR(rows_->Reset());
  }
  return Drain(/*waits=*/false);
}

absl::Status RowWriter::Drain(bool waits) {
  return behind_.Drain(waits, [this](const SpilledBlock& block) { written_.Add(context_, block); });
}

absl::StatusOr<SpilledRows> RowWriter::Finish() {
  QUERN_RETURN_IF_ERROR(End());
  QUERN_RETURN_IF_ERROR(Drain(/*waits=*/true));
  return std::move(written_);
}

// ---- partitions -----------------------------------------------------------------------------------------------------

struct PartitionedWriter::Partition {
  Partition(const std::shared_ptr<SpillContext>& context, const std::vector<ColumnType>& types,
            const std::shared_ptr<BlockBuffers>& buffers)
      : writer(context, types, buffers) {}
  std::mutex mutex;
  RowWriter writer;
};

PartitionedWriter::PartitionedWriter(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
                                     uint32_t num_partitions, std::shared_ptr<MemoryBudget> budget)
    : context_(std::move(context)) {
  const std::shared_ptr<BlockBuffers> buffers = RowWriter::BuffersOf(*context_, types, std::move(budget));
  partitions_.reserve(num_partitions);
  for (uint32_t p = 0; p < num_partitions; ++p)
    partitions_.push_back(std::make_unique<Partition>(context_, types, buffers));
}

PartitionedWriter::~PartitionedWriter() = default;

absl::Status PartitionedWriter::Append(const BatchView& batch, const uint32_t* partitions) {
  // Rows by partition, as a counting sort lays them out: those of partition p begin at begin[p].
  const size_t num_partitions = partitions_.size();
  std::vector<uint64_t> begin(num_partitions + 1);
  for (uint64_t i = 0; i < batch.num_rows; ++i) ++begin[partitions[i] + 1];
  for (size_t p = 0; p < num_partitions; ++p) begin[p + 1] += begin[p];
  std::vector<uint32_t> rows(batch.num_rows);
  std::vector<uint64_t> next(begin.begin(), begin.end() - 1);
  for (uint64_t i = 0; i < batch.num_rows; ++i)
    rows[next[partitions[i]]++] = batch.selection == nullptr ? static_cast<uint32_t>(i) : batch.selection[i];
  BatchView part = batch;
  const auto append = [&](size_t p) {
    part.selection = rows.data() + begin[p];
    part.num_rows = begin[p + 1] - begin[p];
    return partitions_[p]->writer.Append(part);
  };
  std::vector<size_t> held;
  for (size_t p = 0; p < num_partitions; ++p) {
    if (begin[p] == begin[p + 1]) continue;
    const std::unique_lock<std::mutex> lock(partitions_[p]->mutex, std::try_to_lock);
    if (lock.owns_lock()) QUERN_RETURN_IF_ERROR(append(p));
    else held.push_back(p);
  }
  for (const size_t p : held) {
    const std::lock_guard<std::mutex> lock(partitions_[p]->mutex);
    QUERN_RETURN_IF_ERROR(append(p));
  }
  return absl::OkStatus();
}

// Nobody waits for the device: a partition is held for the list of its blocks alone.
absl::Status PartitionedWriter::Write(uint32_t partition, const BlockPieces& block, uint64_t num_rows) {
  Partition& of = *partitions_[partition];
  QUERN_ASSIGN_OR_RETURN(const SpilledBlock written, WriteBlock(context_.get(), of.writer.buffers(), block, num_rows));
  const std::lock_guard<std::mutex> lock(of.mutex);
  of.writer.Add(written);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SpilledRows>> PartitionedWriter::Finish() {
  std::vector<SpilledRows> rows;
  rows.reserve(partitions_.size());
  for (const auto& partition : partitions_) QUERN_RETURN_IF_ERROR(partition->writer.End());
  for (const auto& partition : partitions_) {
    QUERN_ASSIGN_OR_RETURN(SpilledRows written, partition->writer.Finish());
    rows.push_back(std::move(written));
  }
  partitions_.clear();
  return rows;
}

// ---- reading --------------------------------------------------------------------------------------------------------

// A block that was asked for. The ring or the thread that reads it and the reader each hold it; the reader outlives the
// reading.
struct RowReader::Pending {
  SpillContext* context = nullptr;
  SpilledBlock block;
  OutputBuffer rows;
  OutputBuffer compressed;  // the bytes of the store, where those of the rows are others
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  absl::Status status;
  std::vector<const uint8_t*> string_bytes;  // to which columns of views point
  bool is_of_ring = false;
  RingRead ring_read;

  // Nobody catches what a thread that reads throws.
  uint8_t* stored_bytes() const { return block.is_compressed() ? compressed.data() : rows.data(); }

  void Read() {
    Check(WithoutBadAlloc([this] { return context->store()->Read(block.stored, stored_bytes()); }));
  }

  // read: of the bytes, whose checksum is looked at.
  void Check(absl::Status read) {
    if (read.ok() && ChecksumOf(stored_bytes(), block.stored.bytes) != block.checksum) {
      read = WithoutBadAlloc([this] {
        return absl::DataLossError("spilled rows: a block is not what was written: its checksum differs over " +
                                   std::to_string(block.stored.bytes) + " bytes; accepted: a device that keeps data");
      });
    }
    if (read.ok() && block.is_compressed()) {
      read = WithoutBadAlloc(
          [this] { return DecompressBlock(compressed.data(), block.stored.bytes, rows.data(), block.num_bytes); });
      compressed.Free();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    status = std::move(read);
    is_done = true;
    changed.notify_all();
  }

  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex);
    if (!is_done) context->CountLate();
    changed.wait(lock, [this] { return is_done; });
    return status;
  }
};

RowReader::RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types, SpilledRows rows,
                     After after, std::shared_ptr<MemoryBudget> budget)
    : RowReader(std::move(context), std::move(types), std::make_shared<SpilledRows>(std::move(rows)), after, nullptr,
                std::move(budget)) {}

RowReader::RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
                     std::shared_ptr<SpilledRows> shared, std::shared_ptr<MemoryBudget> budget)
    : RowReader(std::move(context), std::move(types), std::move(shared), After::kKeep, nullptr, std::move(budget)) {}

RowReader::RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
                     std::shared_ptr<SpilledRows> rows, const RowPart& part, std::shared_ptr<MemoryBudget> budget)
    : RowReader(std::move(context), std::move(types), std::move(rows), After::kKeep, nullptr, std::move(budget)) {
  SetPart(part);
}

RowReader::RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
                     const std::shared_ptr<SharedRows>& shared, const RowPart& part,
                     std::shared_ptr<MemoryBudget> budget)
    : RowReader(std::move(context), std::move(types), std::shared_ptr<SpilledRows>(shared, &shared->rows_),
                After::kKeep, shared, std::move(budget)) {
  SetPart(part);
}

RowReader::RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
                     std::shared_ptr<SpilledRows> rows, After after, std::shared_ptr<SharedRows> shared,
                     std::shared_ptr<MemoryBudget> budget)
    : context_(std::move(context)),
      types_(SpilledTypes(std::move(types))),
      rows_(std::move(rows)),
      after_(after),
      shared_(std::move(shared)),
      budget_(budget == nullptr ? context_->io_budget() : std::move(budget)) {}

void RowReader::SetPart(const RowPart& part) {
  const std::vector<SpilledBlock>& blocks = rows_->blocks();
  uint64_t row = 0;
  size_t first_block = 0;
  for (; first_block < blocks.size() && row + blocks[first_block].num_rows <= part.begin; ++first_block)
    row += blocks[first_block].num_rows;
  skipped_rows_ = part.begin - row;
  rows_left_ = part.end - part.begin;
  end_block_ = next_block_ = first_block;
  for (; end_block_ < blocks.size() && rows_left_ != 0 && row < part.end; ++end_block_)
    row += blocks[end_block_].num_rows;
}

// What was asked for is read to its end, since the space it is read from goes away.
RowReader::~RowReader() {
  for (const auto& pending : ahead_) Wait(pending.get()).IgnoreError();
  context_->GiveBack(std::move(ring_));
  if (after_ != After::kFree) return;
  rows_->blocks_.erase(rows_->blocks_.begin(), rows_->blocks_.begin() + static_cast<int64_t>(num_freed_));
}

absl::StatusOr<std::shared_ptr<RowReader::Pending>> RowReader::Request(const SpilledBlock& block) {
  auto pending = std::make_shared<Pending>();
  pending->context = context_.get();
  pending->block = block;
  QUERN_RETURN_IF_ERROR(pending->rows.Allocate(budget_, block.num_bytes));
  if (block.is_compressed()) QUERN_RETURN_IF_ERROR(pending->compressed.Allocate(budget_, block.stored.bytes));
  return pending;
}

absl::Status RowReader::ReadAhead() {
  if (has_ring_ && ring_ == nullptr) {
    ring_ = context_->TakeRing();
    has_ring_ = ring_ != nullptr;
  }
  const bool reads_ahead = ring_ != nullptr || context_->io_threads() != nullptr;
  const size_t depth = reads_ahead ? context_->read_depth() : 1;
  const size_t end = std::min(end_block_, rows_->blocks().size());
  while (ahead_.size() < depth && next_block_ < end) {
    absl::StatusOr<std::shared_ptr<Pending>> pending = Request(rows_->blocks()[next_block_]);
    // Where memory is short, one block at a time.
    if (!pending.ok() && !ahead_.empty() && absl::IsResourceExhausted(pending.status())) break;
    QUERN_RETURN_IF_ERROR(pending.status());
    ahead_.push_back(*pending);
    ++next_block_;
    Ask(*pending);
  }
  return absl::OkStatus();
}

void RowReader::Ask(const std::shared_ptr<Pending>& pending) {
  pending->is_of_ring = ring_ != nullptr && context_->store()->AskRing(ring_.get(), pending->block.stored,
                                                                       pending->stored_bytes(), &pending->ring_read);
  if (pending->is_of_ring) return;
  IoThreads* const threads = context_->io_threads();
  if (threads == nullptr) pending->Read();
  else threads->Ask([pending] { pending->Read(); });
}

absl::Status RowReader::Wait(Pending* pending) {
  if (!pending->is_of_ring) return pending->Wait();
  if (!ring_->IsDone(pending->ring_read)) context_->CountLate();
  ring_->Wait(pending->ring_read);
  pending->is_of_ring = false;
  pending->Check(context_->store()->EndRead(pending->block.stored, pending->stored_bytes(), pending->ring_read));
  return pending->status;
}

absl::StatusOr<bool> RowReader::Next(BatchView* batch) {
  *batch = {};
  QUERN_RETURN_IF_ERROR(ReadAhead());
  if (ahead_.empty()) return false;
  const std::shared_ptr<Pending> read = ahead_.front();
  QUERN_RETURN_IF_ERROR(Wait(read.get()));
  if (shared_ != nullptr) shared_->EndRead(next_block_ - ahead_.size());
  ahead_.pop_front();
  context_->CountRead(read->block.stored.bytes);
  if (after_ == After::kFree) {
    context_->store()->Free(read->block.stored);
    ++num_freed_;
  }
  QUERN_RETURN_IF_ERROR(Decode(read, batch));
  if (end_block_ != SIZE_MAX) CutToPart(batch);
  // Where memory is short, the next block is asked for when this one has been freed.
  const absl::Status ahead = ReadAhead();
  if (!absl::IsResourceExhausted(ahead)) QUERN_RETURN_IF_ERROR(ahead);
  return true;
}

absl::Status RowReader::Decode(const std::shared_ptr<Pending>& read, BatchView* batch) const {
  batch->first_row_id = 0;
  batch->owner = read;
  return ReadBlock(read->rows.data(), read->block.num_bytes, types_, &batch->keys, &read->string_bytes,
                   &batch->num_rows);
}

// Leaves out rows of the first and the last block that other parts have.
void RowReader::CutToPart(BatchView* batch) {
  const uint64_t first = std::exchange(skipped_rows_, 0);
  const uint64_t n = std::min(batch->num_rows - first, rows_left_);
  if (n != batch->num_rows) *batch = SliceOf(*batch, types_, {}, first, n);
  rows_left_ -= n;
}

void RowReader::Rewind() {
  for (const auto& pending : ahead_) Wait(pending.get()).IgnoreError();
  ahead_.clear();
  next_block_ = 0;
}

}  // namespace quern
