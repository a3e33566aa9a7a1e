// SPDX-License-Identifier: Apache-2.0
// Of 64 partitions, 14 are in the table. The rows of a batch of 1,000 probe rows go
//
//     about 220     to the probe at once, and so do rows with null keys, which match nothing
//     about 780     to their partitions
//
// and at the end, 50 times: a partition of the build side is read, and its table probed with the same partition of the
// probe side (part_prober.h).
#include "runtime/join/spilled_join.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/probe_scratch.h"
#include "runtime/rows/output_batch.h"

namespace quern {

SpilledJoin::SpilledJoin(JoinContext context, const QuernJoinEntryPoints& generic, std::shared_ptr<SpilledBuild> build,
                         std::vector<std::shared_ptr<SpilledRows>> build_parts, SpilledRows null_rows)
    : context_(std::move(context)),
      build_(std::move(build)),
      kind_(RowOf(context_.descriptor->spec().kind)),
      format_(FormatOf(*context_.descriptor->rows())),
      probe_columns_(context_.descriptor->spec()),
      part_descriptor_(context_.descriptor),
      part_entry_points_(context_.entry_points),
      build_parts_(std::move(build_parts)),
      null_rows_(std::move(null_rows)) {
  const JoinSpec& spec = context_.descriptor->spec();
  if (!ChangesWhenSpilled(spec)) return;
  part_descriptor_ = context_.descriptor->WithSpec(SpilledJoinSpec(spec));
  part_entry_points_ = generic;
}

// ---- probing --------------------------------------------------------------------------------------------------------

absl::Status SpilledJoin::FindParts(const BatchView& batch, QuernProbeScratch* scratch, uint32_t* numbers) const {
  QUERN_RETURN_IF_ERROR(
      PartsOfRows(*context_.descriptor->get(), context_.entry_points, batch, build_->parts(), 0, scratch, numbers));
  for (uint64_t i = 0; i < batch.num_rows; ++i)
    if (numbers[i] != kNoPart && build_parts_[numbers[i]] == nullptr) numbers[i] = kNoPart;
  return absl::OkStatus();
}

absl::Status SpilledJoin::WriteProbe(const BatchView& columns, const uint32_t* numbers) {
  std::shared_ptr<PartitionedWriter> writer;
  {
    const std::lock_guard<std::mutex> lock(write_mutex_);
    QUERN_RETURN_IF_ERROR(CheckProbing());
    if (writer_ == nullptr)
      writer_ = std::make_shared<PartitionedWriter>(spill(), probe_columns_.types(), build_->parts().num_parts());
    writer = writer_;
  }
  const absl::Status status = WithoutBadAlloc([&] { return writer->Append(columns, numbers); });
  if (status.ok()) return status;
  return Break(absl::IsResourceExhausted(status) ? MemoryLost(status) : status);
}

absl::Status SpilledJoin::CheckProbing() const {
  QUERN_RETURN_IF_ERROR(CheckWhole());
  if (!has_begun_parts_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "probe after the unmatched rows were asked for: the rows of a join that has spilled; accepted: all probing "
      "first");
}

absl::Status SpilledJoin::Break(const absl::Status& error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (first_error_.ok()) first_error_ = error;
  is_broken_ = true;
  return first_error_;
}

absl::Status SpilledJoin::CheckWhole() const {
  if (!is_broken_) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  return first_error_;
}

// ---- parts ----------------------------------------------------------------------------------------------------------

// Adds a part that may have results.
void SpilledJoin::AddPart(JoinPart part) {
  const bool rows_alone = kind_.probe_row == RowsOut::kAlways || kind_.probe_row == RowsOut::kUnmatched;
  const bool has_probe = !part.probe.empty() && (!part.build.empty() || rows_alone);
  const bool has_build = !part.build.empty() && kind_.build_row == RowsOut::kUnmatched;
  if (has_probe || has_build) parts_.push_front(std::move(part));
}

absl::Status SpilledJoin::BeginParts() {
  const std::lock_guard<std::mutex> lock(write_mutex_);
  if (!has_begun_parts_.exchange(true) && !is_broken_) {
    const absl::Status status = WithoutBadAlloc([this] { return EndWriting(); });
    if (!status.ok()) return Break(status);
  }
  return CheckWhole();
}

absl::Status SpilledJoin::EndWriting() {
  std::vector<SpilledRows> probe(build_parts_.size());
  if (writer_ != nullptr) {
    QUERN_ASSIGN_OR_RETURN(probe, writer_->Finish());
    writer_.reset();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t p = 0; p < build_parts_.size(); ++p)
    if (build_parts_[p] != nullptr) AddPart({0, false, false, std::move(*build_parts_[p]), std::move(probe[p])});
  if (!null_rows_.empty()) AddPart({0, false, true, std::move(null_rows_), {}});
  return absl::OkStatus();
}

std::optional<JoinPart> SpilledJoin::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (parts_.empty()) {
    --num_reading_;
    return std::nullopt;
  }
  std::optional<JoinPart> part(std::move(parts_.front()));
  parts_.pop_front();
  return part;
}

void SpilledJoin::BeginReading() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++num_reading_;
}

void SpilledJoin::EndReading() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_reading_;
}

uint32_t SpilledJoin::num_reading() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return num_reading_;
}

bool SpilledJoin::GiveBack(JoinPart* part) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_reading_ <= 1) return false;
  parts_.push_front(std::move(*part));
  --num_reading_;
  return true;
}

absl::StatusOr<bool> SpilledJoin::WaitForOthers() {
  constexpr uint32_t kMostWaits = thresholds::kIdleWaits;  // of a millisecond each
  if (!HasOthers()) return false;
  --num_running_;
  absl::StatusOr<bool> has_waited = false;
  for (uint32_t waits = 0; waits < kMostWaits && has_waited.ok() && !*has_waited; ++waits) {
    if (context_.stop_flag != nullptr && context_.stop_flag->is_set()) has_waited = context_.stop_flag->Check();
    else if (num_running_ > 0) has_waited = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ++num_running_;
  return has_waited;
}

absl::Status SpilledJoin::ResetResults(OutputBatch* out) {
  for (;;) {
    absl::Status status = out->Reset();
    if (!absl::IsResourceExhausted(status)) return status;
    QUERN_ASSIGN_OR_RETURN(const bool has_waited, WaitForOthers());
    if (!has_waited) return status;
  }
}

bool SpilledJoin::Leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_reading_ <= 1) return false;
  --num_reading_;
  return true;
}

// ---- dividing -------------------------------------------------------------------------------------------------------

absl::StatusOr<std::vector<SpilledRows>> SpilledJoin::DivideBuild(JoinPart* part, uint32_t level) const {
  const HashParts& parts = build_->parts();
  PartitionedWriter writer(spill(), build_->types(), parts.num_parts());
  RowReader reader(spill(), build_->types(), std::move(part->build));
  std::vector<uint32_t> numbers;
  for (;;) {
    if (context_.stop_flag != nullptr) QUERN_RETURN_IF_ERROR(context_.stop_flag->Check());
    BatchView batch;
    QUERN_ASSIGN_OR_RETURN(const bool more, reader.Next(&batch));
    if (!more) return writer.Finish();
    numbers.resize(batch.num_rows);
    const auto* const hashes = format_.packed_bytes == 0 ? static_cast<const uint64_t*>(batch.keys[1].values) : nullptr;
    PartsOfTuples(format_, static_cast<const uint8_t*>(batch.keys[0].values), hashes, batch.num_rows, parts, level,
                  numbers.data());
    QUERN_RETURN_IF_ERROR(writer.Append(batch, numbers.data()));
  }
}

absl::StatusOr<std::vector<SpilledRows>> SpilledJoin::DivideProbe(JoinPart* part, uint32_t level) const {
  const HashParts& parts = build_->parts();
  PartitionedWriter writer(spill(), probe_columns_.read_types(), parts.num_parts());
  RowReader reader(spill(), probe_columns_.read_types(), std::move(part->probe));
  const ProbeScratch scratch = TakeProbeScratch();
  std::vector<uint32_t> numbers;
  for (;;) {
    if (context_.stop_flag != nullptr) QUERN_RETURN_IF_ERROR(context_.stop_flag->Check());
    BatchView batch;
    QUERN_ASSIGN_OR_RETURN(const bool more, reader.Next(&batch));
    if (!more) return writer.Finish();
    numbers.resize(batch.num_rows);
    QUERN_RETURN_IF_ERROR(
        PartsOfRows(*part_descriptor_->get(), part_entry_points_, batch, parts, level, scratch.get(), numbers.data()));
    QUERN_RETURN_IF_ERROR(writer.Append(batch, numbers.data()));
  }
}

absl::Status SpilledJoin::Divide(JoinPart part) {
  const std::lock_guard<std::mutex> dividing(divide_mutex_);
  const uint32_t level = part.level + 1;
  const auto num_rows = static_cast<double>(part.build.num_rows());
  spill()->CountLevel(level + 1);
  QUERN_ASSIGN_OR_RETURN(std::vector<SpilledRows> build, DivideBuild(&part, level));
  QUERN_ASSIGN_OR_RETURN(std::vector<SpilledRows> probe, DivideProbe(&part, level));
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t p = 0; p < build.size(); ++p) {
    // One that has most of the rows has keys that cannot be told apart.
    const bool is_skewed = level + 1 >= build_->parts().num_levels() ||
                           static_cast<double>(build[p].num_rows()) > thresholds::kSkewedShare * num_rows;
    AddPart({level, is_skewed, false, std::move(build[p]), std::move(probe[p])});
  }
  return absl::OkStatus();
}

}  // namespace quern
