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

namespace quern {
namespace {

constexpr uint64_t kFlatRows = thresholds::kPartitionedBuildRows;
constexpr uint64_t kDenseRangePerRow = thresholds::kDenseLookingRangePerRow;
constexpr uint64_t kStagedBytes = uint64_t{256}
                                  << 10;  // wide tuples: fewer rows at a time, so that they are partitioned from cache

TupleFormat FormatOf(const QuernRowLayout& rows, const JoinOptions& options) {
  return {rows.tuple_bytes, rows.packed_bytes, rows.zero_hashes,
          rows.prefetches ? options.distances.partition_bytes : 0};
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
};

BuildSide::BuildSide(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
                     std::shared_ptr<CounterSet> counters, const JoinOptions& options,
                     const std::shared_ptr<MemoryBudget>& budget)
    : LocalState(std::move(counters)),
      descriptor_(std::move(descriptor)),
      entry_points_(std::move(entry_points)),
      options_(options),
      store_(FormatOf(*descriptor_->rows(), options), budget, options.huge_pages),
      null_store_(FormatOf(*descriptor_->rows(), options), budget, options.huge_pages),
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
  if (batch.owner) owners_.push_back(batch.owner);
  const absl::Status status = WithoutBadAlloc([&] { return AppendSteps(batch, first_row_id); });
  if (!status.ok() && taken_rows_ == 0 && batch.owner) owners_.pop_back();
  return status;
}

QUERN_INLINE absl::Status BuildSide::AppendSteps(const BatchView& batch, uint64_t first_row_id) {
  GrowScratch(batch.num_rows);
  while (taken_rows_ < batch.num_rows) {
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(step_rows_, batch.num_rows - taken_rows_));
    QUERN_RETURN_IF_ERROR(AppendStep(batch, first_row_id, taken_rows_, n));
  }
  return absl::OkStatus();
}

absl::Status BuildSide::AppendStep(const BatchView& batch, uint64_t first_row_id, uint64_t next, uint32_t n) {
  const QuernRowLayout* layout = descriptor_->rows();
  const RefusedCalls refused;
  const QuernJoinEntryPoints& kernel = entry_points_.ForBatch(n, &counters_);
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

}  // namespace quern
