// SPDX-License-Identifier: Apache-2.0
// Rows stay as they came until memory ends. A sample of them then says which keys divide them evenly, and from there on
// each row is copied to a block of its range, those that are here first. Blocks of the last ranges are written where
// memory ends again, so that the first ranges stay in memory as a whole:
//
//     sample        10 12 13 17 25 28 31 39 44        splitters 17, 31
//     range 0       below 17     in memory            sorted when it is read, then range 1, ..
//     range 1       below 31     in memory, and one block written
//     range 2       from 31 on   one block in memory, the others written
#include "runtime/sort/spilling/range_partitions.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint64_t kStepBytes = uint64_t{256} << 10;  // of rows that are divided at a time, at most
constexpr uint64_t kStepShare = 8;                    // of the memory that is set aside, likewise
constexpr uint32_t kFewestStepRows = 256, kMostStepRows = 16384;

}  // namespace

std::unique_ptr<RangePartitions> RangePartitions::Make(const SortContext& context, const QuernSortEntryPoints& generic,
                                                       std::shared_ptr<SpillContext> spill, const StopFlag* stop_flag) {
  if (!context.options.divides_ranges || !RowTuples::AreFixed(*context.descriptor)) return nullptr;
  std::unique_ptr<RangePartitions> made(new RangePartitions(context, generic, std::move(spill), stop_flag));
  return made->leads_.has_first() ? std::move(made) : nullptr;
}

RangePartitions::RangePartitions(const SortContext& context, const QuernSortEntryPoints& generic,
                                 std::shared_ptr<SpillContext> spill, const StopFlag* stop_flag)
    : context_(context),
      generic_(generic),
      spill_(std::move(spill)),
      stop_flag_(stop_flag),
      leads_(*context_.descriptor->get()),
      layout_(*context_.descriptor, context_.uses_row_ids()) {
  const auto parts_of = [this](uint8_t* const* tuples, uint32_t n, uint64_t* parts) {
    RowLead leads[kMaxBatchRows];
    for (uint32_t i = 0; i < n; ++i) leads[i] = leads_.Of([&](uint32_t w) { return RowTuples::WordOf(tuples[i], w); });
    splitters_->PartsOf(leads, n, parts);
  };
  tuples_ = std::make_unique<PartitionedTuples>(spill_, layout_.bytes(), num_parts(), /*level=*/1, parts_of);
}

// As many however small the memory is: a range must be sorted beside others that are kept. Fewer where a test divides
// rows by less than 16.
uint32_t RangePartitions::num_parts() const {
  const uint32_t parts = 2 * spill_->num_partitions();
  return parts < thresholds::kSortRanges / 2 ? parts : thresholds::kSortRanges;
}

// ---- choice ---------------------------------------------------------------------------------------------------------

uint64_t RangePartitions::sample_rows() { return thresholds::kSplitterSampleRows; }

void RangePartitions::AddSample(const LocalRows& rows, uint64_t step, std::vector<RowLead>* sample) const {
  uint64_t from = 0, random = 0;  // a row's number, and the row of this step
  for (const SortChunk& chunk : rows.chunks()) {
    const uint64_t end = from + chunk.num_rows;
    for (uint64_t row = from + (step - from % step) % step; row < end; row += step) {
      random =
          random * 6364136223846793005 + 1442695040888963407;  // Knuth's generator: rows at even steps may be alike
      const uint64_t i = std::min(row + (random >> 33) % step, end - 1) - from;
      sample->push_back(leads_.Of([&](uint32_t w) { return chunk.words[uint64_t{w} * chunk.capacity + i]; }));
    }
    from = end;
  }
}

void RangePartitions::Choose(const Sample& sample) {
  std::vector<RowLead> all;
  for (const std::vector<RowLead>& of_thread : sample) all.insert(all.end(), of_thread.begin(), of_thread.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_undecided() || all.empty()) return;
  const Splitters splitters(std::move(all), num_parts(), leads_.has_second());
  const bool are_few = splitters.num_distinct() * thresholds::kDistinctRangesShare < num_parts();
  const bool are_clustered = std::any_of(sample.begin(), sample.end(), [&](const std::vector<RowLead>& of_thread) {
    return splitters.IsClustered(of_thread);
  });
  choice_.store(are_few || are_clustered ? Choice::kMerges : Choice::kDivides, std::memory_order_release);
}

void RangePartitions::Split(const Sample& sample) {
  std::vector<RowLead> all;
  for (const std::vector<RowLead>& of_thread : sample) all.insert(all.end(), of_thread.begin(), of_thread.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_splitters() || all.empty()) return;
  splitters_.emplace(std::move(all), num_parts(), leads_.has_second());
  has_splitters_.store(true, std::memory_order_release);
}

// ---- dividing -------------------------------------------------------------------------------------------------------

uint32_t RangePartitions::step_rows() const {
  const uint64_t bytes = std::min(kStepBytes, spill_->io_bytes() / kStepShare);
  return static_cast<uint32_t>(std::clamp<uint64_t>(bytes / layout_.bytes(), kFewestStepRows, kMostStepRows));
}

// A block of each range; the rows of a step; and, for all rows, prefixes, as without them the rows could not be sorted
// in memory either, and fields, where they had none so far.
uint64_t RangePartitions::BytesToBegin(uint64_t num_rows) const {
  const SortDescriptor& descriptor = *context_.descriptor;
  const uint64_t prefix_bytes = 8 * std::min(descriptor.get()->num_words + 1, kMaxEntryWords);
  const uint64_t field_bytes = descriptor.may_drop_tuples() ? descriptor.get()->rows.tuple_bytes : 0;
  return tuples_->least_bytes() + step_rows() * layout_.chunk_bytes() + num_rows * (prefix_bytes + field_bytes);
}

std::unique_ptr<TupleBlocks> RangePartitions::NewBlocks(std::shared_ptr<MemoryBudget> budget) {
  return tuples_->NewBlocks(std::move(budget));
}

absl::Status RangePartitions::Divide(const SortChunk& chunk, uint32_t incomplete, TupleBlocks* blocks) {
  constexpr uint32_t kRows = 256;  // whose tuples stay in the L1 cache
  if ((incomplete & ~incomplete_.load(std::memory_order_relaxed)) != 0) incomplete_ |= incomplete;
  std::vector<uint8_t> tuples(uint64_t{kRows} * layout_.bytes());
  uint8_t* addresses[kRows];
  RowLead leads[kRows];
  uint64_t parts[kRows];
  for (uint32_t i = 0; i < kRows; ++i) addresses[i] = tuples.data() + uint64_t{i} * layout_.bytes();
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += kRows) {
    const uint32_t n = std::min(kRows, chunk.num_rows - begin);
    for (uint32_t i = 0; i < n; ++i)
      leads[i] = leads_.Of([&](uint32_t w) { return chunk.words[uint64_t{w} * chunk.capacity + begin + i]; });
    splitters_->PartsOf(leads, n, parts);
    layout_.Pack(chunk, begin, n, tuples.data());
    QUERN_RETURN_IF_ERROR(blocks->Add(addresses, parts, n));
  }
  return absl::OkStatus();
}

absl::Status RangePartitions::Finish() {
  QUERN_RETURN_IF_ERROR(tuples_->Finish());
  sorted_ = std::make_unique<SortedPartitions>(context_, generic_, spill_, layout_, std::move(tuples_), incomplete_,
                                               stop_flag_);
  return absl::OkStatus();
}

}  // namespace quern
