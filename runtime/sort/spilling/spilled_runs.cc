// SPDX-License-Identifier: Apache-2.0
// A run has all keys as columns, `out` or not, so that it can be merged: a key that is only in the words of its rows is
// decoded from them, and equal rows of a stable sort are told apart by their row ids. For `sort keys=f64,utf8:out
// payload=i64 stable`, runs and merges are
//
//     run             f64  utf8  u64 (row id)  i64
//     to longer runs  sort keys=f64:out,utf8:out,u64:out payload=i64
//     to the result   sort keys=f64,utf8:out,u64 payload=i64
#include "runtime/sort/spilling/spilled_runs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/sort/sort_columns.h"
#include "runtime/sort/sorted_rows.h"
#include "runtime/sort/spilling/spilling_rows.h"

namespace quern {
namespace {

constexpr uint64_t kLeastOutRows = 16, kMostOutRows = 2048;
constexpr uint64_t kOutShare = 24;   // of what is set aside, for each run that is written
constexpr uint64_t kLongBlocks = 4;  // so many times as large as others

ColumnType RowIdType() {
  ColumnType type;
  type.id = TypeId::kU64;
  return type;
}

ColumnType StoredType(const ColumnType& type) {
  ColumnType stored = SpilledType(type);
  if (stored.id == TypeId::kRowId) stored.id = TypeId::kU64;
  return stored;
}

std::vector<ColumnType> RunTypes(const SortSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(StoredType(key.type));
  if (spec.stable) types.push_back(RowIdType());
  for (const ColumnType& type : spec.payload) types.push_back(StoredType(type));
  return types;
}

// The spec of a merge of runs, to the result or to a longer run.
SortSpec MergeSpec(SortSpec spec, bool to_result) {
  for (KeySpec& key : spec.keys) {
    key.type = StoredType(key.type);
    key.out = key.out || !to_result;
  }
  if (spec.stable) {
    KeySpec row_id = {};
    row_id.type = RowIdType();
    row_id.out = !to_result;
    spec.keys.push_back(row_id);
    spec.stable = false;
  }
  for (ColumnType& type : spec.payload) type = StoredType(type);
  return spec;
}

}  // namespace

SpilledRuns::SpilledRuns(SortContext context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
                         const StopFlag* stop_flag, uint64_t level)
    : context_(std::move(context)),
      run_context_(context_),
      generic_(generic),
      spill_(std::move(spill)),
      stop_flag_(stop_flag),
      level_(level),
      types_(RunTypes(context_.descriptor->spec())),
      longer_runs_(std::make_shared<SortDescriptor>(MergeSpec(context_.descriptor->spec(), false))),
      result_(std::make_shared<SortDescriptor>(MergeSpec(context_.descriptor->spec(), true))),
      leads_(longer_runs_, generic_),
      work_([this] { return NextPhase(); }) {
  run_context_.descriptor = context_.descriptor->WithAllColumns();
}

SpilledRuns::~SpilledRuns() = default;

bool SpilledRuns::has_runs() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !runs_.empty();
}

// What is set aside is enough for some runs that are written at once, and for one of long strings.
class SpilledRuns::WritersTurn {
 public:
  explicit WritersTurn(SpilledRuns* runs) : runs_(runs) {
    runs_->writers_.acquire();
    runs_->writing_.lock_shared();
  }
  WritersTurn(const WritersTurn&) = delete;
  WritersTurn& operator=(const WritersTurn&) = delete;
  ~WritersTurn() {
    if (is_alone_) runs_->writing_.unlock();
    else runs_->writing_.unlock_shared();
    runs_->writers_.release();
  }

  // Waits until no other run is written, and keeps it so; false where that is so already.
  bool BeAlone() {
    if (is_alone_) return false;
    runs_->writing_.unlock_shared();
    runs_->writing_.lock();
    is_alone_ = true;
    return true;
  }

 private:
  SpilledRuns* const runs_;
  bool is_alone_ = false;
};

// Writes the sorted rows from `first` on to `out`, until that is full or has strings of so many bytes. Bytes of strings
// are in no budget while they lie where the caller has them: only here it is seen how many they are. Returns the number
// of rows.
absl::StatusOr<uint64_t> SpilledRuns::Fill(SortedRows* sorted, uint64_t first, uint64_t end, uint64_t most_bytes,
                                           SortColumnWriter* columns, SortedRows::BlockBuffers* buffers,
                                           OutputBatch* out) {
  uint64_t next = first;
  for (uint64_t some = kLeastOutRows;;) {
    const uint64_t room = std::min({some, end - next, out->capacity() - out->num_rows()});
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(room, sorted->block_rows()));
    QUERN_ASSIGN_OR_RETURN(const uint32_t written, columns->Append(sorted->Read(next, n, buffers), out));
    next += written;
    const uint64_t bytes = StringBytes(*out);
    if (written < n || out->num_rows() == out->capacity() || bytes >= most_bytes || next == end) return next - first;
    some = RowsThatFit(*out, most_bytes, kMostOutRows);
    if (bytes == 0) some = kMostOutRows;
  }
}

absl::Status SpilledRuns::Write(LocalRows* rows, const std::shared_ptr<MemoryBudget>& budget) {
  QUERN_RETURN_IF_ERROR(rows->RepairWords());
  if (rows->NeedsTuples()) QUERN_RETURN_IF_ERROR(rows->RestoreTuples());
  SortInput input;
  rows->AddTo(&input);
  return Write(std::move(input), budget->used_bytes() / std::max<uint64_t>(rows->num_rows(), 1), budget);
}

absl::Status SpilledRuns::Write(SortInput input, uint64_t row_bytes, const std::shared_ptr<MemoryBudget>& budget) {
  SortContext context = run_context_;
  context.budget = budget;
  SortedRows sorted(context, std::move(input), /*needs_rows=*/false);
  QUERN_RETURN_IF_ERROR(sorted.work()->RunTasks());
  const uint64_t limit = context_.descriptor->spec().limit;
  const uint64_t num_rows = limit == 0 ? sorted.num_rows() : std::min(limit, sorted.num_rows());
  WritersTurn turn(this);
  RunWriter writer(spill_, types_, &leads_);
  OutputBatch out(types_, OutRows(row_bytes), spill_->io_budget());
  SortColumnWriter columns(run_context_.descriptor, generic_);
  SortedRows::BlockBuffers buffers;
  const uint64_t most_bytes = spill_->io_bytes() / kOutShare;
  for (uint64_t next = 0; next < num_rows;) {
    QUERN_RETURN_IF_ERROR(CheckStop());
    QUERN_RETURN_IF_ERROR(out.Reset());
    absl::StatusOr<uint64_t> filled = Fill(&sorted, next, num_rows, most_bytes, &columns, &buffers, &out);
    if (absl::IsResourceExhausted(filled.status()) && turn.BeAlone()) continue;
    QUERN_RETURN_IF_ERROR(filled.status());
    if (StringBytes(out) > most_bytes) turn.BeAlone();  // a block of long strings is copied once more
    QUERN_RETURN_IF_ERROR(writer.Append(out));
    next += *filled;
  }
  QUERN_ASSIGN_OR_RETURN(SortedRun run, writer.Finish(level_));
  spill_->CountLevel(level_);
  const std::lock_guard<std::mutex> lock(mutex_);
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

// So many rows of a batch that rows of such a size take little of the memory set aside.
uint64_t SpilledRuns::OutRows(uint64_t row_bytes) const {
  const uint64_t bytes = spill_->io_bytes() / kOutShare;
  return std::clamp<uint64_t>(bytes / std::max<uint64_t>(row_bytes, 1), kLeastOutRows, kMostOutRows);
}

// ---- merging --------------------------------------------------------------------------------------------------------

// How many runs the memory that is always set aside is enough for: some of it is for windows and what is written.
// Blocks of long strings are larger than others, so that there is no such number.
uint32_t SpilledRuns::most_runs() const {
  const auto has_long_blocks = [this](const SortedRun& run) {
    return run.most_block_bytes() > kLongBlocks * spill_->block_bytes();
  };
  if (std::any_of(runs_.begin(), runs_.end(), has_long_blocks)) return 2;
  return std::max(2u, spill_->max_readers() / 3 * 2);
}

SharedWork* SpilledRuns::BeginMerge(std::vector<SpillingRows*> locals) {
  last_locals_ = std::move(locals);
  return &work_;
}

// First the rows that are still in memory; then one merge after the other, as each takes the memory set aside; then the
// ranges of the last one.
absl::StatusOr<std::optional<SharedWork::Phase>> SpilledRuns::NextPhase() {
  if (!std::exchange(wrote_locals_, true)) {
    return SharedWork::Phase{last_locals_.size(), [this](uint64_t task) { return last_locals_[task]->EndRuns(); }};
  }
  // Once there was memory, it is set aside.
  if (!has_divided_ && !SetMemoryAsideFor(runs_.size()))
    return SharedWork::Phase{1, [this](uint64_t) { return MergeSome(); }};
  if (!std::exchange(has_divided_, true)) {
    dividing_leads_ = DividingLeads(runs_, leads_, NumRanges());
    bounds_.resize(runs_.size());
    return SharedWork::Phase{runs_.size(), [this](uint64_t run) -> absl::Status {
                               QUERN_ASSIGN_OR_RETURN(
                                   bounds_[run], FirstRowsFrom(dividing_leads_, leads_, &runs_[run], types_, spill_));
                               return absl::OkStatus();
                             }};
  }
  const uint64_t limit = context_.descriptor->spec().limit;
  ranges_ =
      std::make_unique<MergedRanges>(result_, generic_, spill_, types_, std::move(runs_), std::move(bounds_), limit);
  return std::nullopt;
}

// Sets memory aside for reading so many runs at once; false where there is too little. All rows are written by now, so
// that more may be there than was set aside before.
bool SpilledRuns::SetMemoryAsideFor(size_t num_runs) {
  if (num_runs <= most_runs()) return true;
  std::vector<uint64_t> most_block_bytes;
  for (const SortedRun& run : runs_) most_block_bytes.push_back(run.most_block_bytes());
  std::sort(most_block_bytes.rbegin(), most_block_bytes.rend());
  most_block_bytes.resize(num_runs);
  const uint64_t bytes = MergeBytes(*spill_, *longer_runs_, most_block_bytes);
  // As much is left for results and for a second reader.
  return spill_->HasRoom(2 * bytes) && spill_->SetMoreAside(bytes + spill_->io_bytes() / kOutShare).ok();
}

// Merges the shortest runs to one. The first merge takes so few that all later ones take as many as they can.
absl::Status SpilledRuns::MergeSome() {
  std::sort(runs_.begin(), runs_.end(),
            [](const SortedRun& a, const SortedRun& b) { return a.rows.num_rows() > b.rows.num_rows(); });
  const size_t fewest = most_runs();
  size_t most = std::max(runs_.size() - 1, fewest);
  while (most > fewest && !SetMemoryAsideFor(most)) most = std::max(most / 2, fewest);
  const size_t rest = (runs_.size() - 1) % (most - 1);
  const size_t num = rest == 0 ? most : rest + 1;
  RangeMerge merge(longer_runs_, generic_, spill_, types_, num);
  uint64_t level = 0, num_rows = 0, num_bytes = 0;
  for (size_t i = runs_.size() - num; i < runs_.size(); ++i) {
    level = std::max(level, runs_[i].level);
    num_rows += runs_[i].rows.num_rows();
    num_bytes += runs_[i].rows.num_bytes();
    merge.Add(std::move(runs_[i].rows));
  }
  runs_.resize(runs_.size() - num);
  RunWriter writer(spill_, types_, &leads_);
  QUERN_RETURN_IF_ERROR(WriteMerged(num_bytes / std::max<uint64_t>(num_rows, 1), &merge, &writer));
  QUERN_ASSIGN_OR_RETURN(SortedRun run, writer.Finish(level + 1));
  spill_->CountLevel(level + 1);
  const std::lock_guard<std::mutex> lock(mutex_);
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

absl::Status SpilledRuns::WriteMerged(uint64_t row_bytes, RangeMerge* merge, RunWriter* writer) const {
  OutputBatch out(types_, OutRows(row_bytes), spill_->io_budget());
  do {
    QUERN_RETURN_IF_ERROR(CheckStop());
    QUERN_RETURN_IF_ERROR(merge->Read(&out));
    QUERN_RETURN_IF_ERROR(writer->Append(out));
  } while (out.num_rows() != 0);
  return absl::OkStatus();
}

// Some for each thread that has appended rows, so that they end at about the same time, and each small enough that
// readers whose rows must be put in order need not keep much. But a block at the end of a range is read for each of the
// ranges on both sides, so that a range has some blocks of each run.
uint64_t SpilledRuns::NumRanges() const {
  if (last_locals_.size() < 2 || runs_.empty()) return 1;
  uint64_t num_blocks = 0, num_bytes = 0;
  for (const SortedRun& run : runs_) {
    num_blocks += run.rows.blocks().size();
    num_bytes += run.rows.num_bytes();
  }
  const uint64_t most = num_blocks / (thresholds::kLeastBlocksOfRange * runs_.size());
  const uint64_t wanted = std::max(thresholds::kRangesOfThread * last_locals_.size(), num_bytes / spill_->io_bytes());
  return std::max<uint64_t>(std::min(wanted, most), 1);
}

// ---- local states ---------------------------------------------------------------------------------------------------

}  // namespace quern
