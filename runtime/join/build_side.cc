// SPDX-License-Identifier: Apache-2.0
// Appends rows in a kernel's batches of 1024: filter, pack or hash, store. While there are few tuples, they go directly
// to the place where they stay until the table is built. Once there are many, they are first stored in a buffer for one
// batch, in cache, and then radix-partitioned by their hashes (tuple_store.h). Packed keys that look dense are not
// partitioned: a table over a plain range needs no hash, and is built in one sequential pass.
//
// A batch that is refused memory has its first rows in the store: each step of up to 1024 rows is stored as a whole or,
// where a span for its last rows is refused, not at all.
//
// "Looks dense" is decided after 128 Ki rows: keys 0 .. 10 M have a range of 10 M, or 76 a row, which 20 M further rows
// may fill. Random keys of 64 bits have 1.4e14 a row. The limit is 8192.
#include "runtime/join/build_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/selected_rows.h"

namespace quern {
namespace {

constexpr uint64_t kFlatRows = thresholds::kPartitionedBuildRows;
constexpr uint64_t kDenseRangePerRow = thresholds::kDenseLookingRangePerRow;
constexpr uint64_t kStagedBytes = uint64_t{256}
                                  << 10;  // wide tuples: fewer rows at a time, so that they are partitioned from cache

// A table takes the tuples where a limit has no room for both. Groups are worth it where the limit has room for a large
// page of each which is not full.
uint32_t NumGroups(const MemoryBudget* budget) {
  const bool has_room = budget != nullptr && budget->limit_bytes() >= thresholds::kPartGroupsLimit;
  return has_room ? thresholds::kPartGroups : 1;
}

TupleFormat StoredFormat(const QuernRowLayout& rows, const JoinOptions& options, const MemoryBudget* budget) {
  TupleFormat format = FormatOf(rows);
  format.prefetch_bytes = rows.prefetches ? options.distances.partition_bytes : 0;
  format.part_groups = NumGroups(budget);
  return format;
}

template <class Word>
void StorePackedKeys(const uint64_t* words, uint32_t n, uint32_t tuple_bytes, uint8_t* tuples) {
  for (uint32_t i = 0; i < n; ++i) blocks::Store(tuples + uint64_t{i} * tuple_bytes, static_cast<Word>(words[i]));
}

}  // namespace

// The rows of one batch that can match, packed or hashed.
struct BuildSide::Step {
  const QuernJoinEntryPoints& kernel;
  const BatchView& batch;
  uint64_t first_row_id;
  BatchRows rows;
  const uint8_t* tuples = nullptr;  // of the rows, which were read; null: rows of the batch
};

BuildSide::BuildSide(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
                     std::shared_ptr<CounterSet> counters, const JoinOptions& options,
                     const std::shared_ptr<MemoryBudget>& budget)
    : LocalState(std::move(counters)),
      descriptor_(std::move(descriptor)),
      entry_points_(std::move(entry_points)),
      options_(options),
      store_(StoredFormat(*descriptor_->rows(), options, budget.get()), budget, options.huge_pages),
      null_store_(StoredFormat(*descriptor_->rows(), options, budget.get()), budget, options.huge_pages),
      sign_bit_(descriptor_->rows()->packed_sign_bit) {
  const QuernJoinDescriptor& s = *descriptor_->get();
  step_rows_ = static_cast<uint32_t>(std::clamp<uint64_t>(kStagedBytes / s.rows.tuple_bytes, 1, s.batch_rows));
}

// A join of ten rows should not touch the memory of a whole batch.
void BuildSide::GrowScratch(uint64_t num_rows) {
  const size_t n = std::min<uint64_t>(step_rows_, num_rows);
  if (n <= rows_.size()) return;
  dropped_.resize(n);
  words_.resize(n);
  hashes_.resize(n);
  rows_.resize(n);  // last: it says how large all are
}

void BuildSide::DropTuples() {
  store_.Clear();
  for (std::vector<uint32_t>* scratch : {&rows_, &dropped_}) std::vector<uint32_t>().swap(*scratch);
  for (std::vector<uint64_t>* scratch : {&words_, &hashes_}) std::vector<uint64_t>().swap(*scratch);
  std::vector<uint8_t>().swap(staged_);
}

absl::Status BuildSide::Append(const BatchView& batch, RowKind /*kind*/, uint64_t first_row_id) {
  const std::unique_lock<std::mutex> at_work =
      spilled_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock<std::mutex>(at_work_);
  if (batch.owner) owners_.push_back(batch.owner);
  owns_strings_ &= batch.owns_strings;
  const absl::Status status = WithoutBadAlloc([&] { return AppendSteps(batch, first_row_id); });
  if (!status.ok() && taken_rows_ == 0 && batch.owner) owners_.pop_back();
  return status;
}

QUERN_INLINE absl::Status BuildSide::AppendSteps(const BatchView& batch, uint64_t first_row_id) {
  GrowScratch(batch.num_rows);
  while (taken_rows_ < batch.num_rows) {
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(step_rows_, batch.num_rows - taken_rows_));
    const absl::Status added = AppendStep(batch, first_row_id, taken_rows_, n);
    if (__builtin_expect(static_cast<int>(!added.ok() || asked_.load(std::memory_order_relaxed)), 0)) {
      QUERN_RETURN_IF_ERROR(MakeRoom(added));
      if (batch.owner && owners_.empty()) owners_.push_back(batch.owner);
    }
  }
  return absl::OkStatus();
}

absl::Status BuildSide::AppendStep(const BatchView& batch, uint64_t first_row_id, uint64_t next, uint32_t n) {
  const QuernRowLayout* layout = descriptor_->rows();
  const RefusedCalls refused;
  const QuernJoinEntryPoints& kernel = entry_points_.ForBatch(n, &counters_);
  if (batch.selection != nullptr) {
    const SelectedRows sparse(options_.distances.sparse_rows, batch.selection + next, n);
    sparse.Prefetch(layout->keys, layout->num_keys, batch.keys.data());
    sparse.Prefetch(layout->fields, layout->num_fields, batch.payload.data());
  }
  const Step step = {kernel, batch, first_row_id,
                     SelectRows(kernel, layout, batch.keys.data(), batch.selection, next, n, rows_.data())};
  if (layout->packed_bytes != 0) {
    kernel.pack(layout, batch.keys.data(), step.rows.first, step.rows.rows, step.rows.n, words_.data());
  } else {
    kernel.hash(layout, batch.keys.data(), step.rows.first, step.rows.rows, step.rows.n, hashes_.data());
    QUERN_RETURN_IF_ERROR(refused.status());
  }
  if (step.rows.n == n || RowOf(descriptor_->spec().kind).build_row != RowsOut::kUnmatched) {
    QUERN_RETURN_IF_ERROR(StoreRows(step, n));
  } else {
    const uint32_t num_dropped = DroppedRows(batch.selection, next, n, step.rows, dropped_.data());
    QUERN_RETURN_IF_ERROR(StoreNullRows(step, dropped_.data(), num_dropped));
    const absl::Status status = StoreRows(step, n);
    if (!status.ok()) return null_store_.ForgetFlat(num_dropped), status;
  }
  return PartitionIfMany();
}

absl::Status BuildSide::PartitionIfMany() {
  if (store_.is_partitioned() || num_flat_ < kFlatRows || options_.partition_bits == 0 || LooksDense())
    return absl::OkStatus();
  return store_.Partition(options_.partition_bits);
}

// Stores those of n rows that can match, and counts all n.
QUERN_INLINE absl::Status BuildSide::StoreRows(const Step& step, uint32_t n) {
  QUERN_RETURN_IF_ERROR(store_.is_partitioned() ? StoreParts(step) : StoreFlat(step));
  if (descriptor_->rows()->packed_bytes != 0) range_.Add(words_.data(), step.rows.n, sign_bit_);
  num_null_keys_ += n - step.rows.n;
  num_rows_ += n;
  num_stored_ += n;
  taken_rows_ += n;
  return absl::OkStatus();
}

bool BuildSide::LooksDense() const {
  if (descriptor_->rows()->packed_bytes == 0) return false;
  if (options_.layout == LayoutChoice::kUnchained || options_.layout == LayoutChoice::kOpen) return false;
  return (range_.max - range_.min) / kDenseRangePerRow < num_flat_ || options_.layout == LayoutChoice::kDense;
}

// Writes the tuples of `rows` to `tuples`.
void BuildSide::Write(const Step& step, const BatchRows& rows, const uint64_t* words, uint8_t* tuples) const {
  const QuernRowLayout* layout = descriptor_->rows();
  if (step.tuples != nullptr) {
    std::memcpy(tuples, step.tuples + rows.first * layout->tuple_bytes, size_t{rows.n} * layout->tuple_bytes);
    return;
  }
  if (step.kernel.store != nullptr) {
    step.kernel.store(layout, step.batch.keys.data(), step.batch.payload.data(), rows.first, rows.rows, rows.n,
                      step.first_row_id, tuples);
  }
  if (words == nullptr || layout->packed_bytes == 0) return;
  if (layout->packed_bytes == 4) StorePackedKeys<uint32_t>(words, rows.n, layout->tuple_bytes, tuples);
  else StorePackedKeys<uint64_t>(words, rows.n, layout->tuple_bytes, tuples);
}

absl::Status BuildSide::StoreFlat(const Step& step) {
  for (uint32_t done = 0; done < step.rows.n;) {
    const absl::StatusOr<TupleSpan*> found = store_.FlatSpan(step.batch.num_rows);
    if (!found.ok()) return store_.ForgetFlat(done), found.status();
    TupleSpan* const span = *found;
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(step.rows.n - done, span->capacity - span->num_tuples));
    const BatchRows rows = {step.rows.rows ? step.rows.rows + done : nullptr, step.rows.first + done, n};
    Write(step, rows, words_.data() + done, span->tuples + span->num_tuples * descriptor_->rows()->tuple_bytes);
    if (span->hashes != nullptr)
      std::memcpy(span->hashes + span->num_tuples, hashes_.data() + done, n * sizeof(uint64_t));
    span->num_tuples += n;
    done += n;
  }
  num_flat_ += step.rows.n;
  return absl::OkStatus();
}

absl::Status BuildSide::StoreParts(const Step& step) {
  const QuernRowLayout& layout = *descriptor_->rows();
  if (staged_.empty()) {
    QUERN_RETURN_IF_ERROR(WithoutBadAlloc([&] {
      staged_.resize(size_t{step_rows_} * layout.tuple_bytes);
      return absl::OkStatus();
    }));
  }
  Write(step, step.rows, words_.data(), staged_.data());
  if (layout.packed_bytes != 0) HashPackedKeys(words_.data(), step.rows.n, layout.zero_hashes, hashes_.data());
  return store_.Partition(staged_.data(), hashes_.data(), step.rows.n);
}

absl::Status BuildSide::StoreNullRows(const Step& step, const uint32_t* rows, uint32_t n) {
  for (uint32_t done = 0; done < n;) {
    const absl::StatusOr<TupleSpan*> found = null_store_.FlatSpan(n);
    if (!found.ok()) return null_store_.ForgetFlat(done), found.status();
    TupleSpan* const span = *found;
    const uint32_t fit = static_cast<uint32_t>(std::min<uint64_t>(n - done, span->capacity - span->num_tuples));
    Write(step, {rows + done, 0, fit}, nullptr, span->tuples + span->num_tuples * descriptor_->rows()->tuple_bytes);
    span->num_tuples += fit;
    done += fit;
  }
  return absl::OkStatus();
}

// ---- spilling -------------------------------------------------------------------------------------------------------

BuildSide::~BuildSide() {
  if (spilled_ != nullptr) spilled_->holders()->Remove(this);
}

void BuildSide::SpillTo(std::shared_ptr<SpilledBuild> spilled) {
  spilled_ = std::move(spilled);
  spilled_->holders()->Add(this);
}

// After a refusal, or when another thread has asked: returns OK where rows may be appended.
absl::Status BuildSide::MakeRoom(const absl::Status& refused) {
  if (spilled_ == nullptr || (!refused.ok() && !absl::IsResourceExhausted(refused))) return refused;
  asked_.store(false, std::memory_order_relaxed);
  if (has_rows()) {
    num_starved_ = 0;
    return Spill();
  }
  if (refused.ok()) return refused;
  if (++num_starved_ > thresholds::kStarvedTries) return refused;
  QUERN_ASSIGN_OR_RETURN(const bool may_have_room, spilled_->holders()->SpillOthers(this));
  return may_have_room ? absl::OkStatus() : refused;
}

absl::Status BuildSide::FreeMemory(const absl::Status& refused) {
  if (spilled_ == nullptr) return refused;
  const std::lock_guard<std::mutex> at_work(at_work_);
  return MakeRoom(refused);
}

absl::Status BuildSide::SpillOrAsk(bool* is_at_work) {
  const std::unique_lock<std::mutex> lock(at_work_, std::try_to_lock);
  *is_at_work = !lock.owns_lock();
  if (*is_at_work) asked_.store(true, std::memory_order_relaxed);
  return *is_at_work || !has_rows() ? absl::OkStatus() : Spill();
}

// Rows of which some were written, and others not, cannot be written again.
absl::Status BuildSide::Spill() {
  const absl::Status written = WithoutBadAlloc([&] { return WriteAll(); });
  if (absl::IsResourceExhausted(written)) return MemoryLost(written);
  QUERN_RETURN_IF_ERROR(written);
  store_.Clear();
  null_store_.Clear();
  owners_.clear();
  num_flat_ = num_stored_ = 0;
  return absl::OkStatus();
}

absl::Status BuildSide::WriteAll() {
  for (const TupleSpan& span : store_.flat()) QUERN_RETURN_IF_ERROR(spilled_->Write(span));
  for (const TupleList& part : store_.parts())
    for (const TupleSpan& span : part) QUERN_RETURN_IF_ERROR(spilled_->Write(span));
  for (const TupleSpan& span : null_store_.flat()) QUERN_RETURN_IF_ERROR(spilled_->WriteNullRows(span));
  return absl::OkStatus();
}

absl::Status BuildSide::AppendTuples(const ReadTuples& read, std::shared_ptr<const void> owner) {
  const QuernRowLayout& layout = *descriptor_->rows();
  return WithoutBadAlloc([&]() -> absl::Status {
    if (TupleStrings(layout).any()) owners_.push_back(std::move(owner));
    GrowScratch(read.num_tuples());
    BatchView rows;
    rows.num_rows = read.num_tuples();
    for (uint64_t next = 0; next < read.num_tuples();) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(step_rows_, read.num_tuples() - next));
      const uint8_t* const tuples = read.tuples() + next * layout.tuple_bytes;
      if (layout.packed_bytes != 0) LoadPackedKeys(tuples, n, FormatOf(layout), words_.data());
      else std::memcpy(hashes_.data(), read.hashes() + next, n * sizeof(uint64_t));
      const Step step = {entry_points_.Now(), rows, 0, {nullptr, 0, n}, tuples};
      QUERN_RETURN_IF_ERROR(StoreRows(step, n));
      QUERN_RETURN_IF_ERROR(PartitionIfMany());
      next += n;
    }
    return absl::OkStatus();
  });
}

}  // namespace quern
