// SPDX-License-Identifier: Apache-2.0
// Probes a table batch by batch. Of a join that has spilled, the rows of a batch are first divided: those whose
// partition is in the table are probed, the others are written, and joined after the scan of unmatched build rows.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/join/part_prober.h"
#include "runtime/join/tables/unchained_table.h"
#include "runtime/rows/job_observer.h"
#include "runtime/rows/output_batch.h"

namespace quern {
namespace {

size_t NumOutputColumns(const JoinDescriptor& descriptor) {
  const bool has_mark = descriptor.spec().kind == JoinKind::kMark;
  return size_t{descriptor.get()->num_probe} + descriptor.rows()->num_output_fields + (has_mark ? 1 : 0);
}

// Counts a thread while it is within a call.
class Running {
 public:
  explicit Running(std::atomic<int32_t>* num_running) : num_running_(num_running) { ++*num_running_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { --*num_running_; }

 private:
  std::atomic<int32_t>* const num_running_;
};

}  // namespace

JoinProber::JoinProber(std::shared_ptr<const HashJoin> join, void* host_context)
    : join_(std::move(join)),
      host_context_(host_context),
      args_(),
      scratch_(TakeProbeScratch()),
      counters_(join_->counters_) {}

JoinProber::~JoinProber() {
  if (is_reading_) join_->spilled_->EndReading();
}

absl::Status JoinProber::SetInput(BatchView batch) {
  QUERN_RETURN_IF_ERROR(join_->CheckBuilt("probe"));
  const QuernJoinDescriptor& descriptor = *join_->descriptor_->get();
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, descriptor.rows.num_keys, descriptor.num_probe + descriptor.num_residual));
  if (descriptor.asks_host && join_->host_residual_.keep_pairs == nullptr)
    return InvalidArgument("residual without a function: host; accepted: a function of the host, by the C ABI");
  if (join_->observer() != nullptr) join_->observer()->SeeProbe(batch);
  const uint64_t num_rows = batch.num_rows;
  if (join_->has_spilled()) QUERN_RETURN_IF_ERROR(KeepResident(&batch));
  Begin(std::move(batch));
  rows_seen_ += num_rows;
  return absl::OkStatus();
}

absl::Status JoinProber::SetPartInput(BatchView batch, const PartInput& input) {
  part_input_ = input;
  batch.first_row_id = 0;
  return SetInput(std::move(batch));
}

// Leaves those rows of a batch that are to be probed now, and writes the others.
absl::Status JoinProber::KeepResident(BatchView* batch) {
  SpilledJoin& spilled = *join_->spilled_;
  QUERN_RETURN_IF_ERROR(spilled.CheckProbing());
  in_use_ = join_->UseTable();
  const bool is_written = has_pieces_ && next_input_++ < num_written_inputs_;
  return WithoutBadAlloc([&]() -> absl::Status {
    if (batch->first_row_id == kCountedRowIds) batch->first_row_id = rows_seen_;
    numbers_.resize(batch->num_rows);
    QUERN_RETURN_IF_ERROR(spilled.FindParts(*batch, scratch_.get(), numbers_.data()));
    resident_rows_.clear();
    spilled_rows_.clear();
    uint32_t num_ids = 0;
    for (uint64_t i = 0; i < batch->num_rows; ++i) {
      const uint32_t row = batch->selection == nullptr ? static_cast<uint32_t>(i) : batch->selection[i];
      if (numbers_[i] == kNoPart) {
        resident_rows_.push_back(row);
        continue;
      }
      numbers_[spilled_rows_.size()] = numbers_[i];
      spilled_rows_.push_back(row);
      num_ids = std::max(num_ids, row + 1);
    }
    if (spilled_rows_.empty()) return absl::OkStatus();
    if (!is_written && spilled.probe_columns().has_row_ids()) {
      row_ids_.resize(num_ids);
      for (uint32_t i = 0; i < num_ids; ++i) row_ids_[i] = batch->first_row_id + i;
    }
    if (!is_written) {
      BatchView columns = spilled.probe_columns().ToWrite(*batch, row_ids_.data());
      columns.selection = spilled_rows_.data();
      columns.num_rows = spilled_rows_.size();
      QUERN_RETURN_IF_ERROR(spilled.WriteProbe(columns, numbers_.data()));
      if (has_pieces_) num_written_inputs_ = next_input_;
    }
    batch->selection = resident_rows_.data();
    batch->num_rows = resident_rows_.size();
    return absl::OkStatus();
  });
}

absl::Status JoinProber::SetUnmatched() {
  QUERN_RETURN_IF_ERROR(join_->CheckBuilt("probe"));
  if (join_->has_spilled()) QUERN_RETURN_IF_ERROR(join_->spilled_->BeginParts());
  if (unmatched_ == Unmatched::kHasMore) return absl::OkStatus();
  if (unmatched_ == Unmatched::kFailed) {
    return absl::FailedPreconditionError("unmatched rows after a failure: rows are lost; accepted: a new join");
  }
  // Columns that are never read: a build row that is output on its own has row kNullRow on the probe side.
  static constexpr QuernColumn kNoColumn = {};
  QuernColumn column = {};
  column.dictionary = &kNoColumn;
  BatchView no_rows;
  no_rows.payload.assign(join_->descriptor_->get()->num_probe, column);
  Begin(std::move(no_rows));
  const bool is_scanned = RowOf(join_->descriptor_->spec().kind).flags_matched_rows();
  has_parts_ = join_->has_spilled();
  parts_.reset();
  has_left_ = false;
  in_use_.reset();
  unmatched_ = Unmatched::kHasMore;
  if (!is_scanned) return absl::OkStatus();
  scans_unmatched_ = true;
  unmatched_scan_.next_morsel = &join_->next_morsel_;
  unmatched_scan_.null_rows = &join_->null_rows_;
  return absl::OkStatus();
}

// A row that is rejected by a tag, a key range or a bitmap touches one line, and causes no mispredicted branch that
// would wait for the line. The processor then overlaps many such rows by itself, and prefetching only adds cost (65,536
// build rows, no hits: 2.3 ns a row without, 3.3 with; 262,144 build rows and one hit in ten: 2.1 and 3.4). A row that
// passes leads to a tuple, by a branch. For tables in memory, prefetching is worthless only where so few rows pass that
// hardly any branch is mispredicted while a line is loading. Slots hold the keys, so their lines are needed in any
// case.
void JoinProber::AdaptPrefetch() {
  const Layout layout = join_->table_.layout;
  const bool has_keys = layout == Layout::kOpen || layout == Layout::kCounting;
  if (has_keys) return;
  if (!prefetch_gate_.has_value()) {
    const uint64_t table_bytes = join_->stats_.directory_bytes + join_->stats_.tuple_bytes;
    const bool is_cached = table_bytes <= join_->options_.caches.l3_bytes;
    prefetch_gate_.emplace(is_cached ? Gate::kProbePrefetch : Gate::kProbePrefetchDram, join_->options_.adapts);
  }
  const uint64_t rows = rows_seen_ - num_filtered_;  // that were looked up
  if (rows - adapt_rows_ < prefetch_gate_->rule().window) return;
  const bool was_quiet = is_quiet();
  const uint64_t hits = counters_.Now(Counter::kTagHits);
  prefetch_gate_->Count(rows - adapt_rows_, hits - adapt_hits_);
  adapt_hits_ = hits;
  adapt_rows_ = rows;
  if (!is_quiet() || was_quiet) return;
  unprefetched_table_ = join_->table_;
  if (unprefetched_table_.probe.distance != 0) join_->prefetch_adapted_.store(true, std::memory_order_relaxed);
  unprefetched_table_.probe.distance = 0;
  unprefetched_table_.probe.group_rows = kMaxBatchRows;
}

void JoinProber::BeginPiece(bool is_again) {
  has_pieces_ = true;
  next_input_ = 0;
  if (short_keys_ != nullptr) short_keys_->BeginPiece(is_again);
  if (is_again) {
    rows_seen_ = rows_before_piece_;
    num_filtered_ = num_filtered_before_piece_;
    key_filter_gate_ = key_filter_before_piece_;
    return;
  }
  num_written_inputs_ = 0;
  AdaptPrefetch();
  key_filter_before_piece_ = key_filter_gate_;
  rows_before_piece_ = rows_seen_;
  num_filtered_before_piece_ = num_filtered_;
}

void JoinProber::Begin(BatchView batch) {
  if (!has_pieces_) AdaptPrefetch();
  input_ = std::move(batch);
  unmatched_ = Unmatched::kNotBegun;
  scans_unmatched_ = false;
  unmatched_scan_ = {};
  scratch_->batch_rows = scratch_->batch_next = 0;
  scratch_->num_candidates = 0;
  scratch_->num_matches = scratch_->match_next = 0;
  scratch_->num_dropped = 0;
  scratch_->batch_is_open = false;
  num_new_candidates_ = 0;
  const JoinTable& table = join_->table_;
  args_ = {};
  args_.descriptor = join_->descriptor_->get();
  args_.keys = input_.keys.data();
  args_.payload = input_.payload.data();
  args_.selection = input_.selection;
  args_.num_rows = input_.num_rows;
  args_.first_row_id = input_.first_row_id == kCountedRowIds ? rows_seen_ : input_.first_row_id;
  args_.output.layout = join_->descriptor_->rows();
  args_.tuples = table.tuples;
  args_.output.tuples = table.tuples;
  args_.directory = table.directory;
  args_.tags = DirectoryTags();
  args_.shift = table.shift;
  args_.scratch = scratch_.get();
}

JoinProbe JoinProber::MakeProbe() {
  const JoinKindRow& kind = RowOf(join_->descriptor_->spec().kind);
  JoinProbe probe;
  probe.entry_points = &join_->entry_points_;
  probe.kind = &kind;
  probe.table = is_quiet() ? &unprefetched_table_ : &join_->table_;
  probe.build_is_empty = join_->build_is_empty_;
  probe.build_has_null_key = join_->build_has_null_key_;
  probe.counters = &counters_;
  const bool drops_rows = kind.probe_row == RowsOut::kNever || kind.probe_row == RowsOut::kMatched;
  if (drops_rows && probe.table->has_key_filter() && part_input_.found == nullptr) {
    if (!key_filter_gate_.has_value()) key_filter_gate_.emplace(Gate::kKeyFilter, join_->options_.adapts);
    probe.key_filter = &*key_filter_gate_;
    probe.num_filtered = &num_filtered_;
  }
  if (short_keys_ == nullptr && part_input_.found == nullptr &&
      ShortKeyCache::Serves(*join_->descriptor_->get(), join_->table_)) {
    short_keys_ = std::make_unique<ShortKeyCache>(*join_->descriptor_->get(), join_->table_, join_->budget_,
                                                  join_->options_.adapts);
  }
  probe.short_keys = short_keys_.get();
  probe.num_new_candidates = &num_new_candidates_;
  probe.stop_flag = join_->stop_flag();
  probe.host = &join_->host_residual_;
  probe.host_context = host_context_;
  probe.part = part_input_;
  probe.input_rows = join_->options_.distances.input_rows;
  probe.sparse_rows = join_->options_.distances.sparse_rows;
  return probe;
}

absl::StatusOr<bool> JoinProber::Next(OutputBatch* out, uint64_t most_rows) {
  const CallTimer timer(&counters_);
  most_rows_ = most_rows;
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, NumOutputColumns(*join_->descriptor_), NoColumns::kRefused));
  absl::StatusOr<bool> more = has_parts_ ? NextOfParts(out) : NextOfTable(out);
  if (more.ok() && *more) return more;
  if (!has_parts_) in_use_.reset();
  if (unmatched_ == Unmatched::kHasMore) unmatched_ = more.ok() ? Unmatched::kNotBegun : Unmatched::kFailed;
  return more;
}

// Unmatched rows of a join that has spilled. Where a thread fails, rows are missing from those of all.
absl::StatusOr<bool> JoinProber::NextOfParts(OutputBatch* out) {
  try {
    absl::StatusOr<bool> more = NextOfTableAndParts(out);
    if (!more.ok()) return join_->spilled_->Break(more.status());
    return more;
  } catch (...) {  // memory is refused, or a host's function
    join_->spilled_->Break(StatusOfException()).IgnoreError();
    throw;
  }
}

// A thread that finds no memory for its first results, as others have parts in it, leaves all to them.
absl::StatusOr<bool> JoinProber::NextOfTableAndParts(OutputBatch* out) {
  SpilledJoin& spilled = *join_->spilled_;
  const Running running(spilled.num_running());
  if (parts_ != nullptr) return parts_->Next(out);
  if (!is_reading_ && !has_left_) {
    spilled.BeginReading();
    is_reading_ = true;
    has_left_ = absl::IsResourceExhausted(out->Reset()) && spilled.Leave();
    is_reading_ = !has_left_;
    if (is_reading_) in_use_ = join_->UseTable();
    scans_unmatched_ &= in_use_ != nullptr;  // else others have scanned all of it
  }
  if (has_left_) {
    out->set_num_rows(0);
    return false;
  }
  QUERN_RETURN_IF_ERROR(spilled.ResetResults(out));
  QUERN_ASSIGN_OR_RETURN(const bool more, NextOfTable(out));
  if (more) return true;
  in_use_.reset();
  join_->FreeTable();
  parts_ = std::make_unique<PartProber>(join_, host_context_);
  is_reading_ = false;
  return out->num_rows() != 0 ? absl::StatusOr<bool>(true) : parts_->Next(out);
}

// The columns in their order: probe payload, mark, build payload.
void JoinProber::SetOutput(OutputBatch* out, uint64_t most_rows) {
  const JoinDescriptor& descriptor = *join_->descriptor_;
  args_.out_probe = out->columns();
  args_.output.columns =
      out->columns() + descriptor.get()->num_probe + (descriptor.spec().kind == JoinKind::kMark ? 1 : 0);
  args_.output.num_rows = 0;
  args_.output.capacity = std::min(out->capacity(), most_rows);
}

absl::StatusOr<bool> JoinProber::Run(const JoinProbe& probe) {
  const RefusedCalls refused;
  const int32_t code = scans_unmatched_ ? ScanUnmatchedRows(probe, &unmatched_scan_, &args_) : ProbeRows(probe, &args_);
  QUERN_RETURN_IF_ERROR(refused.status());
  if (code < 0) return StatusOfCode(code);
  if (probe.stop_flag != nullptr) QUERN_RETURN_IF_ERROR(probe.stop_flag->Check());
  if (join_->observer() != nullptr) join_->observer()->SeeMatches(args_.output.num_rows);
  return code == kQuernFull;
}

absl::StatusOr<bool> JoinProber::NextOfTable(OutputBatch* out) {
  QUERN_RETURN_IF_ERROR(out->Reset());
  SetOutput(out, most_rows_);
  JoinProbe probe = MakeProbe();
  probe.counts = out->num_columns() == 0;
  if (join_->descriptor_->spec().kind == JoinKind::kMark) probe.out_mark = args_.output.columns - 1;
  if (probe.counts) args_.output.capacity = UINT64_MAX;
  if (args_.descriptor == nullptr) return false;
  QUERN_ASSIGN_OR_RETURN(const bool more, Run(probe));
  out->set_num_rows(args_.output.num_rows);
  return more;
}

// Whether a row comes out for its key alone, and the table knows exactly which keys it has.
bool JoinProber::IsMembership() const {
  const QuernJoinDescriptor& descriptor = *join_->descriptor_->get();
  const JoinKind kind = join_->descriptor_->spec().kind;
  const JoinTable& table = join_->table_;
  return (kind == JoinKind::kSemi || kind == JoinKind::kAnti) && descriptor.num_residual == 0 &&
         !descriptor.asks_host && table.packed_bytes != 0 &&
         (table.layout != Layout::kUnchained || table.has_key_filter());
}

absl::StatusOr<uint64_t> JoinProber::Select(uint32_t* rows) {
  const CallTimer timer(&counters_);
  uint64_t num_rows = 0;
  if (IsMembership()) {
    const bool is_anti = join_->descriptor_->spec().kind == JoinKind::kAnti;
    if (is_anti) members_.resize((input_.num_rows + 7) / 8);
    const MemberAnswer answer = {.rows = is_anti ? nullptr : rows, .bitmap = is_anti ? members_.data() : nullptr};
    QUERN_ASSIGN_OR_RETURN(
        num_rows, quern::FindMembers(join_->table_, *join_->descriptor_->get(), join_->entry_points_,
                                     join_->stop_flag(), input_, answer, join_->options_.distances, &counters_));
    counters_.Add(Counter::kTagHits, num_rows);
    if (is_anti) {
      num_rows = 0;
      for (uint64_t i = 0; i < input_.num_rows; ++i) {
        rows[num_rows] = input_.selection != nullptr ? input_.selection[i] : static_cast<uint32_t>(i);
        num_rows += (members_[i / 8] >> (i % 8) & 1) == 0;
      }
    }
    if (join_->observer() != nullptr) join_->observer()->SeeMatches(num_rows);
  } else {
    JoinProbe probe = MakeProbe();
    probe.out_rows = rows;
    args_.output.num_rows = 0;
    args_.output.capacity = UINT64_MAX;
    QUERN_RETURN_IF_ERROR(Run(probe).status());
    num_rows = args_.output.num_rows;
  }
  in_use_.reset();
  return num_rows;
}

absl::StatusOr<bool> JoinProber::NextPairs(uint64_t capacity, uint32_t* rows, uint64_t* tuples, uint64_t* num_pairs) {
  const CallTimer timer(&counters_);
  JoinProbe probe = MakeProbe();
  probe.out_rows = rows;
  probe.out_tuples = tuples;
  args_.output.num_rows = 0;
  args_.output.capacity = capacity;
  QUERN_ASSIGN_OR_RETURN(const bool more, Run(probe));
  *num_pairs = args_.output.num_rows;
  return more;
}

absl::StatusOr<uint64_t> JoinProber::CopyPairs(const uint32_t* rows, const uint64_t* tuples, uint64_t num_pairs,
                                               OutputBatch* out) {
  const CallTimer timer(&counters_);
  QUERN_RETURN_IF_ERROR(out->Reset());
  SetOutput(out, num_pairs);
  const RefusedCalls refused;
  const int64_t copied = quern::CopyPairs(MakeProbe(), rows, tuples, std::min(num_pairs, out->capacity()), &args_);
  QUERN_RETURN_IF_ERROR(refused.status());
  if (copied < 0) return StatusOfCode(static_cast<int32_t>(copied));
  out->set_num_rows(static_cast<uint64_t>(copied));
  return static_cast<uint64_t>(copied);
}

}  // namespace quern
