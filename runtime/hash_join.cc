// SPDX-License-Identifier: Apache-2.0
// The steps of a hash join around the kernel's loops.
//
// Tuples are first written in order of arrival, into chunks whose size doubles (64 Ki rows to 1 Mi rows), since nobody knows how many will
// come. Finalise knows: it takes a directory of more than two slots a tuple and moves every tuple to its slot (unchained_table.cc). 10 M
// tuples of 8 bytes: 80 MB of chunks and 80 MB of hashes while building, then 80 MB of tuples and a directory of 2^25 entries = 268 MB.
//
// Why not insert at once, as open addressing does? Tuples of one slot lie side by side here, so that duplicates and skew cost sequential
// reads; and nothing has to be moved when the table grows.
#include "runtime/hash_join.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "runtime/join_loop.h"
#include "runtime/output_batch.h"
#include "runtime/status.h"
#include "runtime/unchained_table.h"

namespace quern {
namespace {

constexpr uint64_t kFirstChunkRows = uint64_t{1} << 16;
constexpr uint64_t kSmallChunkRows = 1024, kSmallChunkBytes = uint64_t{64} << 10;  // whichever is less, where few rows come
constexpr uint64_t kLastChunkRows = uint64_t{1} << 20;
constexpr uint64_t kLargestChunkBytes = uint64_t{64} << 20;  // wide tuples: no chunk takes a budget for rows that may not come
constexpr uint32_t kMinDirectoryBits = 4;

// Slots for n tuples: the power of two above 2 n, so that 0.25 to 0.5 of them are taken. Twice as many cost nothing at 10 M probe rows of
// 1,000, 100,000 and 10 M build rows (7.0, 7.7, 29 ns against 8.8, 11, 33 at half of them): fewer slots have two tuples.
uint32_t DirectoryBits(uint64_t n) {
  uint32_t bits = static_cast<uint32_t>(std::bit_width(n * 2));
  return std::max(bits, kMinDirectoryBits);
}

absl::Status StatusOf(int32_t code) {
  if (code == kQuernOutOfMemory)
    return absl::ResourceExhaustedError("memory limit exceeded: result strings; accepted: a higher memory limit");
  if (code == kQuernValueTooLarge) {
    return absl::ResourceExhaustedError("value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
  }
  return Internal("kernel failed: code " + std::to_string(code) + "; accepted: 0 or 1");
}

absl::Status CheckNumRows(uint64_t num_rows) {
  if (num_rows < kNullRow) return absl::OkStatus();
  return InvalidArgument("batch too large: " + std::to_string(num_rows) + " rows; accepted: below 4294967295");
}

// A kernel reads as many columns as its spec has, whatever the batch holds.
absl::Status CheckColumns(const BatchView& batch, uint32_t num_keys, uint32_t num_payload) {
  if (batch.num_rows == 0 || (batch.keys.size() >= num_keys && batch.payload.size() >= num_payload)) return absl::OkStatus();
  return InvalidArgument("batch without the spec's columns: " + std::to_string(batch.keys.size()) + " keys, " +
                         std::to_string(batch.payload.size()) + " payload columns; accepted: " + std::to_string(num_keys) + " and " +
                         std::to_string(num_payload));
}

absl::Status CheckOutput(const OutputBatch& out, const QuernJoinShape& shape) {
  const size_t num_columns = size_t{shape.num_probe} + shape.num_build;
  if (out.num_columns() != num_columns) {
    return InvalidArgument("output batch of other columns: " + std::to_string(out.num_columns()) +
                           "; accepted: " + std::to_string(num_columns));
  }
  if (num_columns == 0 || out.capacity() != 0) return absl::OkStatus();
  return InvalidArgument("output batch too small: 0 rows; accepted: 1 to 2147483647");
}

}  // namespace

uint32_t PrefetchClasses::DistanceFor(uint64_t table_bytes) const {
  if (table_bytes <= l2_bytes) return l2_distance;
  return table_bytes <= l3_bytes ? l3_distance : dram_distance;
}

struct HashJoin::Chunk {
  HugeBuffer tuples;
  HugeBuffer hashes;
  uint64_t num_tuples = 0;
  uint64_t capacity = 0;
};

HashJoin::HashJoin(std::shared_ptr<const JoinShape> shape, QuernJoinEntryPoints entry_points, std::shared_ptr<const void> code,
                   std::shared_ptr<MemoryBudget> budget, const JoinOptions& options)
    : shape_(std::move(shape)), entry_points_(entry_points), code_(std::move(code)), budget_(std::move(budget)), options_(options) {}

HashJoin::~HashJoin() = default;

absl::Status HashJoin::NewChunk(uint64_t rows) {
  const uint64_t tuple_bytes = shape_->get()->tuple_bytes;
  uint64_t capacity = chunks_.empty() ? kFirstChunkRows : std::min(chunks_.back()->capacity * 2, kLastChunkRows);
  if (chunks_.empty() && rows < capacity) capacity = std::max(rows, std::min(kSmallChunkRows, kSmallChunkBytes / tuple_bytes));
  capacity = std::min(capacity, std::max<uint64_t>(kLargestChunkBytes / tuple_bytes, 1));
  auto chunk = std::make_unique<Chunk>();
  QUERN_ASSIGN_OR_RETURN(chunk->tuples, HugeBuffer::Allocate(budget_, capacity * tuple_bytes, options_.huge_pages));
  // Finalise prefetches by hashes that lie ahead of the last one.
  const uint64_t hash_bytes = (capacity + 2 * kMaxPrefetchDistance) * sizeof(uint64_t);
  QUERN_ASSIGN_OR_RETURN(chunk->hashes, HugeBuffer::Allocate(budget_, hash_bytes, options_.huge_pages));
  chunk->capacity = capacity;
  chunks_.push_back(std::move(chunk));
  return absl::OkStatus();
}

absl::Status HashJoin::Append(const BatchView& batch) {
  if (finalised_) return absl::FailedPreconditionError("append after finalise: the table is built; accepted: a new join");
  QUERN_RETURN_IF_ERROR(CheckNumRows(batch.num_rows));
  QUERN_RETURN_IF_ERROR(CheckColumns(batch, shape_->get()->num_keys, shape_->get()->num_build));
  const size_t num_chunks = chunks_.size();
  const uint64_t num_tuples = chunks_.empty() ? 0 : chunks_.back()->num_tuples;
  if (batch.owner) owners_.push_back(batch.owner);
  if (absl::Status status = AppendToChunks(batch); !status.ok()) {
    // Tuples may point into the batch, whose owner goes: none of them stays.
    chunks_.resize(num_chunks);
    if (num_chunks > 0) chunks_.back()->num_tuples = num_tuples;
    if (batch.owner) owners_.pop_back();
    return status;
  }
  stats_.build_rows += batch.num_rows;
  return absl::OkStatus();
}

absl::Status HashJoin::AppendToChunks(const BatchView& batch) {
  uint32_t rows[kMaxBatchRows];
  QuernJoinAppendArgs args = {};
  args.shape = shape_->get();
  args.keys = batch.keys.data();
  args.payload = batch.payload.data();
  args.selection = batch.selection;
  args.num_rows = batch.num_rows;
  args.first_row_id = batch.first_row_id == kCountedRowIds ? stats_.build_rows : batch.first_row_id;
  args.rows = rows;
  while (args.next_row < args.num_rows) {
    if (chunks_.empty() || chunks_.back()->num_tuples == chunks_.back()->capacity) {
      QUERN_RETURN_IF_ERROR(NewChunk(args.num_rows - args.next_row));
    }
    Chunk& chunk = *chunks_.back();
    args.tuples = chunk.tuples.data();
    args.hashes = reinterpret_cast<uint64_t*>(chunk.hashes.data());
    args.num_tuples = chunk.num_tuples;
    args.capacity = chunk.capacity;
    const int32_t code = AppendRows(entry_points_, &args);
    chunk.num_tuples = args.num_tuples;
    if (code < 0) return StatusOf(code);
  }
  return absl::OkStatus();
}

absl::Status HashJoin::Finalise() {
  if (finalised_) return absl::FailedPreconditionError("finalise called twice: the table is built; accepted: once");
  uint64_t num_tuples = 0;
  for (const auto& chunk : chunks_) num_tuples += chunk->num_tuples;
  const uint32_t bits = DirectoryBits(num_tuples);
  const uint64_t slots = uint64_t{1} << bits;
  const uint64_t tuple_bytes = num_tuples * shape_->get()->tuple_bytes;
  QUERN_ASSIGN_OR_RETURN(HugeBuffer directory, HugeBuffer::Allocate(budget_, (slots + 1) * sizeof(uint64_t), options_.huge_pages));
  QUERN_ASSIGN_OR_RETURN(tuples_, HugeBuffer::Allocate(budget_, std::max<uint64_t>(tuple_bytes, 64), options_.huge_pages));
  directory_ = std::move(directory);
  shift_ = 64 - bits;
  stats_.table_rows = num_tuples;
  stats_.tuple_bytes = tuple_bytes;
  stats_.directory_bytes = (slots + 1) * sizeof(uint64_t);
  const uint32_t distance = options_.prefetch.DistanceFor(stats_.directory_bytes + tuple_bytes);
  stats_.prefetch_distance = shape_->get()->prefetches ? distance : 0;

  UnchainedBuild build;
  build.tuple_bytes = shape_->get()->tuple_bytes;
  build.directory = reinterpret_cast<uint64_t*>(directory_.data()) + 1;
  build.directory_bits = bits;
  build.prefetch_distance = stats_.prefetch_distance;
  build.target = tuples_.data();
  const auto aim_at = [&build](const Chunk& chunk) {
    build.tuples = chunk.tuples.data();
    build.hashes = reinterpret_cast<const uint64_t*>(chunk.hashes.data());
    build.num_tuples = chunk.num_tuples;
  };
  for (const auto& chunk : chunks_) {
    aim_at(*chunk);
    CountTuples(build);
  }
  SumSlots(build);
  for (auto& chunk : chunks_) {
    aim_at(*chunk);
    ScatterTuples(build);
    chunk.reset();
  }
  chunks_.clear();
  finalised_ = true;
  return absl::OkStatus();
}

JoinProber::JoinProber(std::shared_ptr<const HashJoin> join)
    : join_(std::move(join)), args_(), scratch_(std::make_unique<QuernProbeScratch>()) {}

JoinProber::~JoinProber() = default;

absl::Status JoinProber::SetInput(BatchView batch) {
  if (!join_->finalised_) return absl::FailedPreconditionError("probe before finalise: the table is not built; accepted: finalise first");
  QUERN_RETURN_IF_ERROR(CheckNumRows(batch.num_rows));
  QUERN_RETURN_IF_ERROR(CheckColumns(batch, join_->shape_->get()->num_keys, join_->shape_->get()->num_probe));
  input_ = std::move(batch);
  scratch_->batch_rows = scratch_->batch_next = 0;
  scratch_->num_candidates = 0;
  scratch_->num_matches = scratch_->match_next = 0;
  args_ = {};
  args_.shape = join_->shape_->get();
  args_.keys = input_.keys.data();
  args_.payload = input_.payload.data();
  args_.selection = input_.selection;
  args_.num_rows = input_.num_rows;
  args_.first_row_id = input_.first_row_id == kCountedRowIds ? rows_seen_ : input_.first_row_id;
  args_.tuples = join_->tuples_.data();
  args_.directory = reinterpret_cast<const uint64_t*>(join_->directory_.data()) + 1;
  args_.tags = DirectoryTags();
  args_.shift = join_->shift_;
  args_.prefetch_distance = join_->stats_.prefetch_distance;
  args_.scratch = scratch_.get();
  rows_seen_ += input_.num_rows;
  return absl::OkStatus();
}

absl::StatusOr<bool> JoinProber::Next(OutputBatch* out) {
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, *join_->shape_->get()));
  QUERN_RETURN_IF_ERROR(out->Reset());
  args_.out_probe = out->columns();
  args_.out_build = out->columns() + join_->shape_->get()->num_probe;
  args_.out_rows = 0;
  args_.out_capacity = out->num_columns() == 0 ? UINT64_MAX : out->capacity();
  if (args_.shape == nullptr) return false;
  const int32_t code = ProbeRows(join_->entry_points_, &args_);
  if (code < 0) return StatusOf(code);
  out->set_num_rows(args_.out_rows);
  return code == kQuernFull;
}

}  // namespace quern
