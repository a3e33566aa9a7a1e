// SPDX-License-Identifier: Apache-2.0
// The phases of a hash join around the kernel's loops. Rows are first stored as tuples (build_side.h), because their
// number, their range and the uniqueness of their keys are not known yet. Finalise then chooses the table and builds it
// (table_builder.h). Probers and scans of unmatched build rows run the stages over it (join_loop.h).
//
//     Append   -> BuildSide -+
//     Appender -> BuildSide -+->  TableBuilder -> JoinTable  <- JoinProber, JoinProber, ..
//     Appender -> BuildSide -+
//
// 10 M rows with one i64 key, counted: 80 MB of tuples while building, then a table of 200 MB (open, 40 % taken).
#include "runtime/join/hash_join.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/join/build_side.h"
#include "runtime/join/unchained_table.h"
#include "runtime/rows/job_observer.h"
#include "runtime/rows/output_batch.h"

namespace quern {
namespace {

constexpr SinkTexts kJoinTexts = {"rows", "the table is built", "a batch is missing from the table", "a new join"};

size_t NumOutputColumns(const JoinDescriptor& descriptor) {
  const bool has_mark = descriptor.spec().kind == JoinKind::kMark;
  return size_t{descriptor.get()->num_probe} + descriptor.rows()->num_output_fields + (has_mark ? 1 : 0);
}

}  // namespace

HashJoin::HashJoin(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
                   std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, const JoinOptions& options)
    : Sink(kJoinTexts, entry_points.NewCounters(), std::move(budget)),
      descriptor_(std::move(descriptor)),
      entry_points_(std::move(entry_points)),
      code_(std::move(code)),
      options_(options) {}

HashJoin::~HashJoin() {
  EndJob([this](JobSummary* job) {
    const Counters counted = counters();
    job->table_bytes = stats_.directory_bytes + stats_.tuple_bytes;
    job->num_hits = counted.tag_hits;
    job->ns = counted.ns;
    job->layout = stats_.layout;
  });
}

// ---- building ----------------------------------------------------------------------------------------------------

std::unique_ptr<LocalState> HashJoin::NewLocalState() {
  return std::make_unique<BuildSide>(descriptor_, entry_points_, counters_, options_, budget_);
}

absl::Status HashJoin::CheckInput(const BatchView& batch, RowKind /*kind*/) const {
  const QuernJoinDescriptor& descriptor = *descriptor_->get();
  return CheckBatch(batch, descriptor.rows.num_keys, descriptor.rows.num_output_fields + descriptor.num_residual);
}

absl::StatusOr<SharedWork*> HashJoin::BeginFinalise() {
  if (local_states()->empty()) local_states()->push_back(NewLocalState());
  std::vector<TupleStore*> stores;
  PackedKeyRange range;
  for (const auto& local : *local_states()) {
    auto* const side = static_cast<BuildSide*>(local.get());
    stores.push_back(side->store());
    range.Add(side->range());
  }
  range_ = range;
  builder_ = std::make_unique<TableBuilder>(*descriptor_->get(), RowOf(descriptor_->spec().kind), options_, budget_,
                                            std::move(stores), range);
  return builder_->work();
}

// Tuples stay where they are until the table is complete.
bool HashJoin::AbandonFinalise() {
  builder_ = nullptr;
  return true;
}

// Takes over the finished table and the counts of its rows.
void HashJoin::EndFinalise() {
  table_ = builder_->table;
  memory_ = std::move(builder_->memory);
  for (const auto& local : *local_states()) {
    auto* const side = static_cast<BuildSide*>(local.get());
    stats_.build_rows += side->num_rows();
    num_null_rows_ += side->num_null_keys();
    null_rows_.insert(null_rows_.end(), side->null_rows().begin(), side->null_rows().end());
    side->DropTuples();
  }
  stats_.table_rows = table_.num_tuples;
  stats_.directory_bytes = memory_.directory_bytes();
  stats_.tuple_bytes = table_.layout == Layout::kOpen || table_.layout == Layout::kCounting
                           ? table_.num_slots * table_.slot_bytes
                       : memory_.tuples.bytes() == 0 ? 0
                                                     : table_.null_tuple;
  const uint32_t batch_rows = table_.probe.batch_rows != 0 ? table_.probe.batch_rows : descriptor_->get()->batch_rows;
  stats_.prefetch_distance = table_.probe.distance == kWholeBatch ? batch_rows : table_.probe.distance;
  const uint64_t probed_bytes = memory_.directory_bytes() + memory_.tuples.bytes();
  stats_.prefetch_class = descriptor_->rows()->prefetches ? options_.caches.NameFor(probed_bytes) : "off";
  stats_.layout = LayoutText(table_.layout);
  build_is_empty_ = stats_.build_rows == 0;
  build_has_null_key_ = num_null_rows_ > 0;
}

void HashJoin::SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) {
  options_.prefetch.Set(loop, setting);
  if (!is_finalised() || !descriptor_->rows()->prefetches || loop != ProbeLoopOf(table_.layout)) return;
  table_.probe = setting;
  stats_.prefetch_distance = setting.distance;
}

// ---- what a table tells ------------------------------------------------------------------------------------------

absl::StatusOr<KeySummary> HashJoin::Summarise(uint32_t key) const {
  QUERN_RETURN_IF_ERROR(CheckBuilt("key summary"));
  QUERN_ASSIGN_OR_RETURN(KeySummary summary, SummariseKey(table_, *descriptor_->rows(), range_, key, stop_flag()));
  summary.num_build_rows = stats_.build_rows;
  summary.num_null_rows = num_null_rows_;
  return summary;
}

absl::StatusOr<uint64_t> HashJoin::FindMembers(const BatchView& batch, const MemberAnswer& answer) const {
  QUERN_RETURN_IF_ERROR(CheckBuilt("look-up"));
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, descriptor_->rows()->num_keys, 0));
  return quern::FindMembers(table_, *descriptor_->get(), entry_points_, stop_flag(), batch, answer);
}

absl::Status HashJoin::CheckBuilt(const char* call) const {
  if (is_finalised()) return absl::OkStatus();
  return absl::FailedPreconditionError(std::string(call) +
                                       " before finalise: the table is not built; accepted: finalise first");
}

// ---- probing ----------------------------------------------------------------------------------------------------

JoinProber::JoinProber(std::shared_ptr<const HashJoin> join, void* host_context)
    : join_(std::move(join)),
      host_context_(host_context),
      args_(),
      scratch_(TakeProbeScratch()),
      counters_(join_->counters_) {}

JoinProber::~JoinProber() = default;

absl::Status JoinProber::SetInput(BatchView batch) {
  QUERN_RETURN_IF_ERROR(join_->CheckBuilt("probe"));
  const QuernJoinDescriptor& descriptor = *join_->descriptor_->get();
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, descriptor.rows.num_keys, descriptor.num_probe + descriptor.num_residual));
  if (descriptor.asks_host && join_->host_residual_.keep_pairs == nullptr)
    return InvalidArgument("residual without a function: host; accepted: a function of the host, by the C ABI");
  if (join_->observer() != nullptr) join_->observer()->SeeProbe(batch);
  Begin(std::move(batch));
  rows_seen_ += input_.num_rows;
  return absl::OkStatus();
}

absl::Status JoinProber::SetUnmatched() {
  QUERN_RETURN_IF_ERROR(join_->CheckBuilt("probe"));
  // Columns that are never read: a build row that is output on its own has row kNullRow on the probe side.
  static constexpr QuernColumn kNoColumn = {};
  QuernColumn column = {};
  column.dictionary = &kNoColumn;
  BatchView no_rows;
  no_rows.payload.assign(join_->descriptor_->get()->num_probe, column);
  Begin(std::move(no_rows));
  if (!RowOf(join_->descriptor_->spec().kind).flags_matched_rows()) return absl::OkStatus();
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
  if (rows_seen_ - adapt_rows_ < prefetch_gate_->rule().window) return;
  const bool was_quiet = is_quiet();
  const uint64_t hits = counters_.Now(Counter::kTagHits);
  prefetch_gate_->Count(rows_seen_ - adapt_rows_, hits - adapt_hits_);
  adapt_hits_ = hits;
  adapt_rows_ = rows_seen_;
  if (!is_quiet() || was_quiet) return;
  unprefetched_table_ = join_->table_;
  if (unprefetched_table_.probe.distance != 0) join_->prefetch_adapted_.store(true, std::memory_order_relaxed);
  unprefetched_table_.probe.distance = 0;
  unprefetched_table_.probe.group_rows = kMaxBatchRows;
}

void JoinProber::BeginPiece(bool is_again) {
  has_pieces_ = true;
  if (is_again) {
    rows_seen_ = rows_before_piece_;
    key_filter_gate_ = key_filter_before_piece_;
    return;
  }
  AdaptPrefetch();
  key_filter_before_piece_ = key_filter_gate_;
  rows_before_piece_ = rows_seen_;
}

void JoinProber::Begin(BatchView batch) {
  if (!has_pieces_) AdaptPrefetch();
  input_ = std::move(batch);
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
  if (drops_rows && probe.table->has_key_filter()) {
    if (!key_filter_gate_.has_value()) key_filter_gate_.emplace(Gate::kKeyFilter, join_->options_.adapts);
    probe.key_filter = &*key_filter_gate_;
  }
  probe.num_new_candidates = &num_new_candidates_;
  probe.stop_flag = join_->stop_flag();
  probe.host = &join_->host_residual_;
  probe.host_context = host_context_;
  return probe;
}

absl::StatusOr<bool> JoinProber::Next(OutputBatch* out) {
  const CallTimer timer(&counters_);
  const JoinDescriptor& descriptor = *join_->descriptor_;
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, NumOutputColumns(descriptor), NoColumns::kRefused));
  QUERN_RETURN_IF_ERROR(out->Reset());
  const bool has_mark = descriptor.spec().kind == JoinKind::kMark;
  JoinProbe probe = MakeProbe();
  probe.counts = out->num_columns() == 0;
  args_.out_probe = out->columns();
  args_.output.columns = out->columns() + descriptor.get()->num_probe + (has_mark ? 1 : 0);
  if (has_mark) probe.out_mark = out->columns() + descriptor.get()->num_probe;
  args_.output.num_rows = 0;
  args_.output.capacity = probe.counts ? UINT64_MAX : out->capacity();
  if (args_.descriptor == nullptr) return false;
  const RefusedCalls refused;
  const int32_t code = scans_unmatched_ ? ScanUnmatchedRows(probe, &unmatched_scan_, &args_) : ProbeRows(probe, &args_);
  QUERN_RETURN_IF_ERROR(refused.status());
  if (code < 0) return StatusOfCode(code);
  if (probe.stop_flag != nullptr) QUERN_RETURN_IF_ERROR(probe.stop_flag->Check());
  out->set_num_rows(args_.output.num_rows);
  if (join_->observer() != nullptr) join_->observer()->SeeMatches(args_.output.num_rows);
  return code == kQuernFull;
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
    QUERN_ASSIGN_OR_RETURN(num_rows, quern::FindMembers(join_->table_, *join_->descriptor_->get(), join_->entry_points_,
                                                        join_->stop_flag(), input_, answer, &counters_));
    counters_.Add(Counter::kTagHits, num_rows);
    if (is_anti) {
      num_rows = 0;
      for (uint64_t i = 0; i < input_.num_rows; ++i) {
        rows[num_rows] = input_.selection != nullptr ? input_.selection[i] : static_cast<uint32_t>(i);
        num_rows += (members_[i / 8] >> (i % 8) & 1) == 0;
      }
    }
  } else {
    JoinProbe probe = MakeProbe();
    probe.out_rows = rows;
    args_.output.num_rows = 0;
    args_.output.capacity = UINT64_MAX;
    const RefusedCalls refused;
    const int32_t code = ProbeRows(probe, &args_);
    QUERN_RETURN_IF_ERROR(refused.status());
    if (code < 0) return StatusOfCode(code);
    if (probe.stop_flag != nullptr) QUERN_RETURN_IF_ERROR(probe.stop_flag->Check());
    num_rows = args_.output.num_rows;
  }
  if (join_->observer() != nullptr) join_->observer()->SeeMatches(num_rows);
  return num_rows;
}

}  // namespace quern
