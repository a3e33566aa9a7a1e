// SPDX-License-Identifier: Apache-2.0
// A run has all keys as columns, `out` or not, so that it can be merged: a key that is only in the words of its rows is
// decoded from them, and equal rows of a stable sort are told apart by their row ids. For `sort keys=f64,utf8:out
// payload=i64 stable`, runs and merges are
//
//     run             f64  utf8  u64 (row id)  i64
//     to longer runs  sort keys=f64:out,utf8:out,u64:out payload=i64
//     to the result   sort keys=f64,utf8:out,u64 payload=i64
//
// A thread that is refused memory and has no rows itself makes runs of what the other threads have.
#include "runtime/sort/spilled_runs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/sort/sort_columns.h"
#include "runtime/sort/sorted_rows.h"

namespace quern {
namespace {

// What sorting takes beside the rows: pointers, and pairs of equal prefixes in arrays that double, for each row;
// entries and scratch, for each of their words; samples and buckets.
constexpr uint64_t kSortBytesPerRow = 32, kEntryBytesPerWord = 16;
constexpr uint32_t kMostEntryWords = 5;  // row position and prefix
constexpr uint64_t kSortBytes = 64 << 10;
constexpr uint64_t kReserveStep = 64 << 10;
constexpr uint64_t kMostPieceRows = 131072;
constexpr uint64_t kLeastPieceRows = 32;
constexpr uint64_t kLeastPieceWithRows = 2048;  // below which rows become a run sooner than less is appended
constexpr uint64_t kLeastOutRows = 16, kMostOutRows = 2048;
constexpr uint64_t kOutShare = 8;  // of what is set aside
constexpr int kMostTries = 16;

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

// ---- merging --------------------------------------------------------------------------------------------------------

struct SpilledRuns::Merge {
  Merge(const std::shared_ptr<const SortDescriptor>& descriptor, const SortEntrySource& generic,
        const std::shared_ptr<SpillContext>& spill, const std::vector<ColumnType>& types, std::vector<SpilledRows> runs)
      : num_keys(descriptor->spec().keys.size()),
        merger(descriptor, generic, nullptr, spill->io_budget(),
               static_cast<uint32_t>(std::max<size_t>(runs.size(), 1))) {
    merger.SetWindowBytes(spill->block_bytes() * spill->max_readers() / 2);
    if (runs.empty()) runs.emplace_back();
    for (SpilledRows& run : runs) readers.push_back(std::make_unique<RowReader>(spill, types, std::move(run)));
  }

  // Fills `out` with rows; false behind the last ones.
  absl::StatusOr<bool> Next(OutputBatch* out) {
    for (;;) {
      QUERN_ASSIGN_OR_RETURN(const MergeState state, merger.Next(out));
      if (state == MergeState::kDone) return false;
      if (state == MergeState::kNeedsInput) QUERN_RETURN_IF_ERROR(Feed(merger.needed_run()));
      if (out->num_rows() != 0) return true;
    }
  }

  absl::Status Feed(uint32_t run) {
    BatchView batch;
    QUERN_ASSIGN_OR_RETURN(const bool has_rows, readers[run]->Next(&batch));
    if (!has_rows) return merger.End(run);
    batch.payload.assign(batch.keys.begin() + static_cast<ptrdiff_t>(num_keys), batch.keys.end());
    batch.keys.resize(num_keys);
    return merger.Input(run, batch);
  }

  const size_t num_keys;
  std::vector<std::unique_ptr<RowReader>> readers;
  RunMerger merger;  // destroyed first: it holds readers' blocks
};

SpilledRuns::SpilledRuns(SortContext context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
                         const StopFlag* stop_flag)
    : context_(std::move(context)),
      run_context_(context_),
      generic_(generic),
      spill_(std::move(spill)),
      stop_flag_(stop_flag),
      types_(RunTypes(context_.descriptor->spec())),
      work_([this] { return NextPhase(); }) {
  const SortSpec& spec = context_.descriptor->spec();
  run_context_.descriptor = context_.descriptor->WithAllColumns();
  longer_runs_ = std::make_shared<SortDescriptor>(MergeSpec(spec, false));
  result_ = std::make_shared<SortDescriptor>(MergeSpec(spec, true));
}

SpilledRuns::~SpilledRuns() = default;

bool SpilledRuns::has_runs() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !runs_.empty();
}

absl::Status SpilledRuns::Write(LocalRows* rows, const std::shared_ptr<MemoryBudget>& budget) {
  QUERN_RETURN_IF_ERROR(rows->RepairWords());
  if (rows->NeedsTuples()) QUERN_RETURN_IF_ERROR(rows->RestoreTuples());
  SortInput input;
  rows->AddTo(&input);
  const uint64_t row_bytes = budget->used_bytes() / std::max<uint64_t>(rows->num_rows(), 1);
  SortContext context = run_context_;
  context.budget = budget;
  SortedRows sorted(context, std::move(input), /*needs_rows=*/false);
  QUERN_RETURN_IF_ERROR(sorted.work()->RunTasks());
  const uint64_t limit = context_.descriptor->spec().limit;
  const uint64_t num_rows = limit == 0 ? sorted.num_rows() : std::min(limit, sorted.num_rows());
  const std::lock_guard<std::mutex> writing(write_mutex_);  // what is set aside is for one run at a time
  RowWriter writer(spill_, types_);
  OutputBatch out(types_, OutRows(row_bytes), spill_->io_budget());
  SortColumnWriter columns(run_context_.descriptor, generic_);
  SortedRows::BlockBuffers buffers;
  QUERN_RETURN_IF_ERROR(out.Reset());
  const uint64_t most_bytes = spill_->io_bytes() / kOutShare;
  for (uint64_t next = 0, some = kLeastOutRows; next < num_rows;) {
    const uint64_t room = std::min({some, num_rows - next, out.capacity() - out.num_rows()});
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(room, sorted.block_rows()));
    QUERN_ASSIGN_OR_RETURN(const uint32_t written, columns.Append(sorted.Read(next, n, &buffers), &out));
    next += written;
    // Bytes of strings are in no budget while they lie where the caller has them: only here it is seen how many they
    // are.
    const uint64_t bytes = StringBytes(out);
    some =
        std::clamp<uint64_t>(most_bytes * out.num_rows() / std::max<uint64_t>(bytes, 1), kLeastOutRows, kMostOutRows);
    if (written == n && out.num_rows() < out.capacity() && bytes < most_bytes && next < num_rows) continue;
    QUERN_RETURN_IF_ERROR(CheckStop());
    QUERN_RETURN_IF_ERROR(writer.Append(out));
    QUERN_RETURN_IF_ERROR(out.Reset());
  }
  QUERN_ASSIGN_OR_RETURN(SpilledRows written, writer.Finish());
  spill_->CountLevel(1);
  const std::lock_guard<std::mutex> lock(mutex_);
  runs_.push_back({std::move(written), 1});
  return absl::OkStatus();
}

// So many rows of a batch that rows of such a size take little of the memory set aside.
uint64_t SpilledRuns::OutRows(uint64_t row_bytes) const {
  const uint64_t bytes = spill_->io_bytes() / kOutShare;
  return std::clamp<uint64_t>(bytes / std::max<uint64_t>(row_bytes, 1), kLeastOutRows, kMostOutRows);
}

// Some of the memory set aside is for windows and what is written.
uint32_t SpilledRuns::most_runs() const { return std::max(2u, spill_->max_readers() / 3 * 2); }

SharedWork* SpilledRuns::BeginMerge(std::vector<SpillingRows*> locals) {
  last_locals_ = std::move(locals);
  return &work_;
}

// First the rows that are still in memory; then one merge after the other, as each takes the memory set aside.
absl::StatusOr<std::optional<SharedWork::Phase>> SpilledRuns::NextPhase() {
  if (!std::exchange(wrote_locals_, true)) {
    return SharedWork::Phase{last_locals_.size(),
                             [this](uint64_t task) { return last_locals_[task]->Spill().status(); }};
  }
  if (runs_.size() > most_runs()) return SharedWork::Phase{1, [this](uint64_t) { return MergeSome(); }};
  for (const Run& run : runs_) num_rows_ += run.rows.num_rows();
  const uint64_t limit = context_.descriptor->spec().limit;
  if (limit != 0) num_rows_ = std::min(num_rows_, limit);
  std::vector<SpilledRows> runs;
  for (Run& run : runs_) runs.push_back(std::move(run.rows));
  merge_ = std::make_unique<Merge>(result_, generic_, spill_, types_, std::move(runs));
  return std::nullopt;
}

// Merges the shortest runs to one. The first merge takes so few that all later ones take as many as they can.
absl::Status SpilledRuns::MergeSome() {
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.rows.num_rows() > b.rows.num_rows(); });
  const size_t most = most_runs();
  const size_t rest = (runs_.size() - 1) % (most - 1);
  const size_t num = rest == 0 ? most : rest + 1;
  std::vector<SpilledRows> runs;
  uint64_t level = 0, num_rows = 0, num_bytes = 0;
  for (size_t i = runs_.size() - num; i < runs_.size(); ++i) {
    level = std::max(level, runs_[i].level);
    num_rows += runs_[i].rows.num_rows();
    num_bytes += runs_[i].rows.num_bytes();
    runs.push_back(std::move(runs_[i].rows));
  }
  runs_.resize(runs_.size() - num);
  Merge merge(longer_runs_, generic_, spill_, types_, std::move(runs));
  RowWriter writer(spill_, types_);
  QUERN_RETURN_IF_ERROR(WriteMerged(num_bytes / std::max<uint64_t>(num_rows, 1), &merge, &writer));
  QUERN_ASSIGN_OR_RETURN(SpilledRows written, writer.Finish());
  spill_->CountLevel(level + 1);
  const std::lock_guard<std::mutex> lock(mutex_);
  runs_.push_back({std::move(written), level + 1});
  return absl::OkStatus();
}

absl::Status SpilledRuns::WriteMerged(uint64_t row_bytes, Merge* merge, RowWriter* writer) const {
  OutputBatch out(types_, OutRows(row_bytes), spill_->io_budget());
  for (bool more = true; more;) {
    QUERN_RETURN_IF_ERROR(CheckStop());
    QUERN_ASSIGN_OR_RETURN(more, merge->Next(&out));
    QUERN_RETURN_IF_ERROR(writer->Append(out));
  }
  return absl::OkStatus();
}

// ---- reading --------------------------------------------------------------------------------------------------------

uint64_t SpilledRuns::num_rows() const { return num_rows_; }

absl::StatusOr<bool> SpilledRuns::Next(OutputBatch* out, uint64_t* position) {
  const std::lock_guard<std::mutex> lock(read_mutex_);
  QUERN_RETURN_IF_ERROR(read_status_);
  *position = position_;
  if (position_ == num_rows_) return false;
  if (out->num_columns() == 0) {
    out->set_num_rows(num_rows_ - position_);
    position_ = num_rows_;
    merge_.reset();
    return false;
  }
  const absl::StatusOr<bool> next = merge_->Next(out);
  if (!next.ok()) {
    merge_.reset();
    read_status_ = next.status();
    return read_status_;
  }
  position_ += out->num_rows();
  if (position_ == num_rows_) merge_.reset();
  return position_ < num_rows_;
}

// ---- local states ---------------------------------------------------------------------------------------------------

void SpilledRuns::Register(SpillingRows* rows) {
  const std::lock_guard<std::mutex> lock(locals_mutex_);
  locals_.push_back(rows);
}

void SpilledRuns::Deregister(SpillingRows* rows) {
  const std::lock_guard<std::mutex> lock(locals_mutex_);
  locals_.erase(std::remove(locals_.begin(), locals_.end(), rows), locals_.end());
}

absl::StatusOr<bool> SpilledRuns::WriteOthers(const SpillingRows* except) {
  const std::lock_guard<std::mutex> lock(locals_mutex_);
  bool any = false;
  for (SpillingRows* const rows : locals_) {
    if (rows == except) continue;
    QUERN_ASSIGN_OR_RETURN(const bool had_rows, rows->Spill());
    any |= had_rows;
  }
  return any;
}

SpillingRows::SpillingRows(std::shared_ptr<SpilledRuns> runs)
    : LocalState(runs->context().counters),
      runs_(std::move(runs)),
      payload_(runs_->context().descriptor->spec().payload),
      memory_(runs_->context().budget),
      rows_(NoRows()),
      piece_rows_(kMostPieceRows) {
  for (const KeySpec& key : runs_->context().descriptor->spec().keys) keys_.push_back(key.type);
  runs_->Register(this);
}

std::unique_ptr<LocalRows> SpillingRows::NoRows() const {
  SortContext context = runs_->context();
  context.budget = memory_.budget();
  return std::make_unique<LocalRows>(std::move(context));
}

// Keeps in reserve what sorting so many rows takes.
absl::Status SpillingRows::ReserveFor(uint64_t num_rows) {
  const SortDescriptor& descriptor = *runs_->context().descriptor;
  const uint64_t tuple_bytes = descriptor.may_drop_tuples() ? descriptor.get()->rows.tuple_bytes : 0;
  const uint64_t entry_bytes = kEntryBytesPerWord * std::min(descriptor.get()->num_words + 1, kMostEntryWords);
  const uint64_t needed = num_rows * (kSortBytesPerRow + entry_bytes + tuple_bytes) + kSortBytes;
  const uint64_t reserved = memory_.reserved_bytes();
  if (needed <= reserved) return absl::OkStatus();
  return memory_.GrowBy((needed - reserved + kReserveStep - 1) / kReserveStep * kReserveStep);
}

absl::StatusOr<bool> SpillingRows::SpillLocked() {
  const bool has_rows = rows_->num_rows() != 0;
  if (has_rows) {
    memory_.Open();
    QUERN_RETURN_IF_ERROR(runs_->Write(rows_.get(), memory_.budget()));
    rows_ = NoRows();
  }
  memory_.GiveBack();
  return has_rows;
}

absl::StatusOr<bool> SpillingRows::Spill() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return SpillLocked();
}

// Adds the first rows of a batch, up to n of them; returns how many were.
absl::StatusOr<uint64_t> SpillingRows::AddPiece(const BatchView& batch, uint64_t first_row_id, uint64_t n,
                                                bool* is_refused) {
  *is_refused = !ReserveFor(rows_->num_rows() + n).ok();
  if (*is_refused) return 0;
  uint64_t taken = 0;
  const absl::Status status =
      rows_->Add(n == batch.num_rows ? batch : SliceOf(batch, keys_, payload_, 0, n), first_row_id, &taken);
  *is_refused = absl::IsResourceExhausted(status);
  if (!status.ok() && !*is_refused) return status;
  num_input_rows_ += taken;
  return taken;
}

// Adds rows of a batch, and makes a run of those that are here where memory is refused. Returns how many were added:
// none where others have the memory.
absl::StatusOr<uint64_t> SpillingRows::AppendSome(const BatchView& batch, uint64_t first_row_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (;;) {
    const uint64_t n = std::min(batch.num_rows, piece_rows_);
    bool is_refused = false;
    QUERN_ASSIGN_OR_RETURN(const uint64_t taken, AddPiece(batch, first_row_id, n, &is_refused));
    if (!is_refused) return taken;
    const bool has_rows = rows_->num_rows() != 0;
    if (!has_rows) memory_.GiveBack();  // fewer rows need less
    if (n > (has_rows ? kLeastPieceWithRows : kLeastPieceRows)) {
      piece_rows_ = n / 4;
    } else if (has_rows) {
      const absl::StatusOr<bool> spilled = SpillLocked();
      is_broken_ = !spilled.ok();
      QUERN_RETURN_IF_ERROR(spilled.status());
    } else {
      return taken;
    }
    if (taken != 0) return taken;
  }
}

absl::Status SpillingRows::FreeMemory(const absl::Status& refused) {
  if (!absl::IsResourceExhausted(refused)) return refused;
  QUERN_ASSIGN_OR_RETURN(bool has_written, Spill());
  if (!has_written) {
    QUERN_ASSIGN_OR_RETURN(has_written, runs_->WriteOthers(this));
  }
  return has_written ? absl::OkStatus() : refused;
}

absl::Status SpillingRows::Append(const BatchView& batch, RowKind /*kind*/, uint64_t first_row_id) {
  QUERN_RETURN_IF_ERROR(runs_->spill()->SetMemoryAside());
  for (int tries = 0; taken_rows_ < batch.num_rows;) {
    const uint64_t done = taken_rows_;
    if (done != 0 && runs_->stop_flag() != nullptr) QUERN_RETURN_IF_ERROR(runs_->stop_flag()->Check());
    const BatchView rest = done == 0 ? batch : SliceOf(batch, keys_, payload_, done, batch.num_rows - done);
    QUERN_ASSIGN_OR_RETURN(const uint64_t taken,
                           AppendSome(rest, batch.selection == nullptr ? first_row_id + done : first_row_id));
    taken_rows_ += taken;
    if (taken != 0) {
      tries = 0;
      continue;
    }
    const absl::StatusOr<bool> spilled = runs_->WriteOthers(this);
    is_broken_ = !spilled.ok();
    QUERN_RETURN_IF_ERROR(spilled.status());
    if (!*spilled && ++tries == kMostTries)
      return absl::ResourceExhaustedError("sort that spills: no memory for some rows; accepted: a larger limit");
  }
  return absl::OkStatus();
}

}  // namespace quern
