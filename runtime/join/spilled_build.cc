// SPDX-License-Identifier: Apache-2.0
// Tuples lie in memory as a column of fixed width, and their hashes as another one, so that blocks are written from
// where they are. Only strings are collected: a tuple of `join.inner keys=utf8 build=utf8` may point to two of them,
// which become one value of a column of bytes. When tuples are read, their addresses are set anew.
#include "runtime/join/spilled_build.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint64_t kStepRows = thresholds::kDividedRows;

}  // namespace

TupleFormat FormatOf(const QuernRowLayout& layout) {
  return {layout.tuple_bytes, layout.packed_bytes, layout.zero_hashes};
}

SpilledBuild::SpilledBuild(std::shared_ptr<const JoinDescriptor> descriptor, std::shared_ptr<SpillContext> spill)
    : descriptor_(std::move(descriptor)),
      spill_(std::move(spill)),
      format_(FormatOf(*descriptor_->rows())),
      strings_(*descriptor_->rows()),
      types_(TupleColumns(*descriptor_->rows())),
      parts_(*spill_, std::max(RowBytesOf(types_), RowBytesOf(ProbeColumns(descriptor_->spec()).types()))) {}

PartitionedWriter* SpilledBuild::Writer() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (writer_ == nullptr) {
    writer_ = std::make_unique<PartitionedWriter>(spill_, types_, parts_.num_parts() + 1);
    spill_->CountLevel(1);
    is_used_.store(true, std::memory_order_release);
  }
  return writer_.get();
}

// Collects the strings of the first ones of n tuples; returns how many they are.
absl::StatusOr<uint64_t> SpilledBuild::AddStrings(const uint8_t* tuples, uint64_t n, OutputBuffer* bytes,
                                                  std::vector<int64_t>* offsets) const {
  offsets->assign(1, 0);
  const uint64_t most_bytes = spill_->io_bytes() / thresholds::kDividedStringsShare;
  uint64_t num_bytes = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t of_tuple = strings_.BytesOf(tuples + i * format_.tuple_bytes);
    if (i != 0 && num_bytes + of_tuple > most_bytes) break;
    num_bytes += of_tuple;
    offsets->push_back(static_cast<int64_t>(num_bytes));
  }
  if (bytes->capacity_bytes() < num_bytes) QUERN_RETURN_IF_ERROR(bytes->Allocate(spill_->io_budget(), num_bytes));
  const uint64_t taken = offsets->size() - 1;
  uint8_t* to = bytes->data();
  for (uint64_t i = 0; i < taken; ++i) to = strings_.CopyTo(tuples + i * format_.tuple_bytes, to);
  return taken;
}

absl::Status SpilledBuild::WriteSpan(const TupleSpan& span, bool are_null_rows) {
  if (span.num_tuples == 0) return absl::OkStatus();
  static constexpr uint64_t kNoHashes[kStepRows] = {};
  PartitionedWriter* const writer = Writer();
  OutputBuffer strings;
  std::vector<int64_t> offsets;
  std::vector<uint32_t> numbers(std::min(kStepRows, span.num_tuples), parts_.num_parts());
  for (uint64_t first = 0; first < span.num_tuples;) {
    uint64_t n = std::min(kStepRows, span.num_tuples - first);
    const uint8_t* const tuples = span.tuples + first * format_.tuple_bytes;
    BatchView batch;
    batch.keys.resize(types_.size());
    batch.keys[0].values = tuples;
    const uint64_t* hashes = nullptr;
    if (format_.packed_bytes == 0) {
      hashes = are_null_rows ? kNoHashes : span.hashes + first;
      batch.keys[1].values = hashes;
    }
    if (strings_.any()) {
      QUERN_ASSIGN_OR_RETURN(n, AddStrings(tuples, n, &strings, &offsets));
      batch.keys.back().values = strings.data();
      batch.keys.back().offsets = offsets.data();
    }
    batch.num_rows = n;
    if (!are_null_rows) PartsOfTuples(format_, tuples, hashes, n, parts_, 0, numbers.data());
    QUERN_RETURN_IF_ERROR(writer->Append(batch, numbers.data()));
    first += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SpilledRows>> SpilledBuild::Finish() {
  if (writer_ == nullptr) return std::vector<SpilledRows>(parts_.num_parts() + 1);
  QUERN_ASSIGN_OR_RETURN(std::vector<SpilledRows> rows, writer_->Finish());
  writer_.reset();
  return rows;
}

// ---- reading --------------------------------------------------------------------------------------------------------

absl::Status ReadTuples::Set(const BatchView& batch) {
  num_tuples_ = batch.num_rows;
  tuples_ = static_cast<const uint8_t*>(batch.keys[0].values);
  hashes_ = format_.packed_bytes == 0 ? static_cast<const uint64_t*>(batch.keys[1].values) : nullptr;
  if (!strings_.any()) return absl::OkStatus();
  const uint64_t tuple_bytes = format_.tuple_bytes;
  pointed_.assign(tuples_, tuples_ + num_tuples_ * tuple_bytes);
  const auto* const offsets = static_cast<const int64_t*>(batch.keys.back().offsets);
  const auto* const bytes = static_cast<const uint8_t*>(batch.keys.back().values);
  for (uint64_t i = 0; i < num_tuples_; ++i) {
    QUERN_RETURN_IF_ERROR(strings_.PointTo(bytes + offsets[i], static_cast<uint64_t>(offsets[i + 1] - offsets[i]),
                                           pointed_.data() + i * tuple_bytes));
  }
  tuples_ = pointed_.data();
  return absl::OkStatus();
}

}  // namespace quern
