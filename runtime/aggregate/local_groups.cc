// SPDX-License-Identifier: Apache-2.0
// One thread's share of an aggregation. A batch is cut into blocks of batch_rows rows; for each block, the groups are
// found and then all accumulators updated, by the loop that fits the block:
//
//     update_runs     rows of one group are neighbours, four or more on average: sorted input, no keys at all,
//                     or few groups, whose rows can be reordered (group_runs.h)
//     update_valid    no argument is null
//     update          any other
//
// When several threads aggregate 20 M rows into 10 M groups, tables of their own gain nothing: each would hold nearly
// all groups, and merging them would repeat the work. So when that many groups are expected (local_groups) and few rows
// have shared a group so far, the table's groups are radix-partitioned by hash, and so is each later row, as a group of
// one row: writes are sequential, and one thread merges a partition in its cache.
#include "runtime/aggregate/local_groups.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/aggregate/group_keys.h"
#include "runtime/aggregate/group_states.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch_lines.h"
#include "runtime/rows/selected_rows.h"

namespace quern {
namespace {

constexpr uint32_t kMergeRows = 256;  // twice this many tuples stay in an L1 cache from one aggregate to the next
constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kGroupsToAdapt = thresholds::kGroupsToExpectBy;

struct Iota {
  uint32_t rows[kMaxBatchRows];
  Iota() {
    for (uint32_t i = 0; i < kMaxBatchRows; ++i) rows[i] = i;
  }
};

const uint32_t* FirstRows() {
  static const Iota iota;
  return iota.rows;
}

// Find prefetches a tuple's first line, which holds its key; states may lie in further lines. Of tuples of 24 bytes
// every fourth lies in two lines, and of 40 bytes every second.
void PrefetchStates(const GroupTable& table, uint64_t tuple_bytes, uint8_t* const* tuples, uint32_t n) {
  if (kLineBytes % tuple_bytes == 0 || (tuple_bytes < kLineBytes && table.prefetches_both_lines())) return;
  WithPrefetch(table.prefetch(), [&]<class Prefetch>() {
    if constexpr (Prefetch::kPrefetches) {
      for (uint32_t i = 0; i < n; ++i) {
        for (uint64_t at = kLineBytes; at < tuple_bytes; at += kLineBytes) Prefetch::For(tuples[i] + at);
        Prefetch::For(tuples[i] + tuple_bytes - 1);
      }
    }
  });
}

// Drops the rows before `begin`, where a run ends.
void DropRows(uint32_t begin, GroupRuns* runs) {
  uint32_t kept = 0;
  for (uint32_t r = 0; r < runs->n; ++r) {
    if (runs->ends[r] <= begin) continue;
    runs->tuples[kept] = runs->tuples[r];
    runs->ends[kept++] = runs->ends[r] - begin;
  }
  runs->n = kept;
}

std::string_view SavedAt(const QuernColumn* column, uint32_t row) {
  const blocks::Bytes bytes = blocks::ReadBytes<kVar32>(column, row, 0, 0);
  return {reinterpret_cast<const char*>(bytes.data), bytes.length};
}

}  // namespace

struct LocalGroups::Batch {
  const BatchView& view;
  const QuernColumn* keys;
  uint64_t first_row_id;
  bool is_valid;  // no argument is null
};

// Under a limit, partitions that have hardly any groups yet take a small share of it for each thread.
TupleFormat LocalGroups::FormatOf(const GroupContext& context) {
  const QuernRowLayout& group = *context.descriptor->group();
  TupleFormat format = {group.tuple_bytes, group.packed_bytes, group.zero_hashes,
                        group.prefetches ? context.options.distances.partition_bytes : 0};
  const uint64_t share =
      (context.budget == nullptr ? 0 : context.budget->limit_bytes()) / thresholds::kSpansShareOfLimit;
  if (share != 0) format.span_bytes = std::min(format.span_bytes, share >> context.options.partition_bits);
  return format;
}

LocalGroups::LocalGroups(const GroupContext& context, std::shared_ptr<DictionarySeries> series,
                         const std::atomic<uint32_t>* num_local_states)
    : LocalState(context.counters),
      context_(context),
      series_(std::move(series)),
      dictionaries_(series_->current()),
      num_local_states_(num_local_states),
      table_(MakeGroupTable(context, context.options.expected_groups)),
      splitter_(context.descriptor->get()->states_bytes, context.options.adapts),
      lane_gate_(Gate::kLaneTotals, context.options.adapts),
      format_(FormatOf(context)),
      parts_(format_, context.budget, context.options.huge_pages),
      compact_at_(context.options.compact_tuples),
      key_bytes_(context),
      memory_(std::in_place, context.budget, context.options.host),
      codes_(context.descriptor->spec().keys.size()),
      overflowed_(context.descriptor->spec().aggregates.size()),
      is_expecting_(context.options.expected_groups != 0) {
  if (const MapDescriptor* map = context_.descriptor->computed(); map != nullptr)
    computed_ = std::make_unique<ComputedColumns>(map, context_.options.generic_maps, context_.budget);
}

// ---- appending ----------------------------------------------------------------------------------------------------

// A batch's keys: dictionaries are replaced by numbers of their values, which Encode writes before rows are added.
LocalGroups::Keys LocalGroups::KeysOf(const BatchView& batch, bool is_plain) {
  Keys keys = {batch.keys, is_plain, {}, dictionaries_->has_any() ? taken_rows_ : batch.num_rows};
  if (!dictionaries_->has_any()) return keys;
  keys.numbers.resize(codes_.size());
  const uint64_t num_rows = RowSpan(batch.selection, batch.num_rows);
  for (size_t k = 0; k < codes_.size(); ++k) {
    if (!dictionaries_->has(k)) continue;
    codes_[k].resize(num_rows);
    keys.columns[k].values = codes_[k].data();
    keys.columns[k].dictionary = nullptr;
  }
  return keys;
}

// Numbers the values of the next rows: of all where groups stay in memory, else of so few that full dictionaries can be
// left before others are begun, and of half as many where these find no memory. A block that has begun is among them.
absl::Status LocalGroups::EncodeNext(const BatchView& batch, Keys* keys) {
  uint64_t n = batch.num_rows - taken_rows_;
  if (spilled_ != nullptr) n = std::min<uint64_t>(n, kEncodedRows);
  const uint64_t least = std::max<uint64_t>(begun_.num_rows, 1);
  bool is_refused = std::exchange(leaves_dictionaries_, false);
  while (true) {
    QUERN_RETURN_IF_ERROR(LeaveFullDictionaries(is_refused, keys));
    const absl::Status encoded = Encode(batch, static_cast<uint32_t>(n), keys);
    if (encoded.ok()) break;
    if (spilled_ != nullptr && absl::IsResourceExhausted(encoded) && n > least) {
      n = std::max(least, n / 2);
      continue;
    }
    QUERN_RETURN_IF_ERROR(MakeRoom(encoded));
    leaves_dictionaries_ = false;  // they are left now
    is_refused = true;
  }
  keys->encoded_rows = taken_rows_ + n;
  return absl::OkStatus();
}

absl::Status LocalGroups::Encode(const BatchView& batch, uint32_t n, Keys* keys) {
  const bool is_selected = batch.selection != nullptr;
  const KeyRows rows = {nullptr, is_selected ? 0 : taken_rows_, is_selected ? batch.selection + taken_rows_ : nullptr,
                        n};
  for (size_t k = 0; k < codes_.size(); ++k) {
    if (!dictionaries_->has(k)) continue;
    QUERN_RETURN_IF_ERROR(
        dictionaries_->Encode(k, &batch.keys[k], keys->is_plain, rows, &keys->numbers[k], codes_[k].data()));
  }
  return absl::OkStatus();
}

namespace {

bool HasNoNulls(const QuernAggregateDescriptor& descriptor, const BatchView& batch) {
  for (uint32_t k = 0; k < descriptor.num_accumulators; ++k) {
    const QuernAccumulator& a = descriptor.accumulators[k];
    for (uint32_t i = 0; i < a.num_arguments; ++i)
      if (a.arguments[i].nullable && !a.arguments[i].is_computed &&
          batch.payload[a.arguments[i].column].validity != nullptr)
        return false;
  }
  return true;
}

}  // namespace

uint32_t LocalGroups::BlockRows() const {
  const PrefetchSetting prefetch = table_->prefetch();
  if (prefetch.batch_rows != 0) return prefetch.batch_rows;
  const uint32_t batch_rows = context_.descriptor->get()->batch_rows;
  return table_->bytes() <= context_.options.caches.l2_bytes ? std::min(batch_rows, context_.options.l2_batch_rows)
                                                             : batch_rows;
}

void LocalGroups::SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) {
  context_.options.prefetch.Set(loop, setting);  // for later tables
  table_->SetPrefetch(loop, setting);
}

absl::Status LocalGroups::Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) {
  if (batch.num_rows == 0) return absl::OkStatus();
  const std::unique_lock<std::mutex> at_work =
      spilled_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock<std::mutex>(at_work_);
  const RefusedCalls refused;
  const uint64_t groups_before = table_->num_groups();
  absl::Status status = WithoutBadAlloc([&] { return AppendRest(batch, kind, first_row_id); });
  if (const absl::Status call = refused.status(); !call.ok()) {  // values without meaning are in states
    is_broken_ = true;
    return call;
  }
  if (!status.ok()) {
    is_within_block_ = begun_.num_rows != 0 || table_->num_groups() != groups_before;
    is_broken_ = table_->is_broken() || memory_->is_broken();
  }
  return status;
}

absl::Status LocalGroups::AppendRest(const BatchView& batch, RowKind kind, uint64_t first_row_id) {
  switch (kind) {
    case RowKind::kInput: return AppendInput(batch, first_row_id);
    case RowKind::kStates: return AppendStates(batch);
    case RowKind::kTuples: return AppendTuples(batch);
  }
  return absl::OkStatus();
}

// The columns of rows that lie far apart; the update prefetches those of rows that lie close.
void LocalGroups::PrefetchSparse(const BatchView& batch, const uint32_t* selection, uint32_t n) const {
  const SelectedRows sparse(context_.options.distances.sparse_rows, selection, n);
  if (!sparse.is_sparse()) return;
  const AggregateDescriptor& descriptor = *context_.descriptor;
  for (size_t k = 0; k < batch.keys.size(); ++k) sparse.Prefetch(batch.keys[k], descriptor.key_row_bytes()[k]);
  for (size_t c = 0; c < batch.payload.size(); ++c) sparse.Prefetch(batch.payload[c], descriptor.input_row_bytes()[c]);
}

absl::Status LocalGroups::AppendInput(const BatchView& batch, uint64_t first_row_id) {
  Keys keys = KeysOf(batch, false);
  const QuernColumn* const columns = keys.columns.data();
  const Batch rows = {batch, columns, first_row_id, HasNoNulls(*context_.descriptor->get(), batch)};
  while (taken_rows_ < batch.num_rows) {
    if (asked_.load(std::memory_order_relaxed)) QUERN_RETURN_IF_ERROR(SpillIfAsked());
    if (taken_rows_ == keys.encoded_rows || leaves_dictionaries_) QUERN_RETURN_IF_ERROR(EncodeNext(batch, &keys));
    const uint64_t done = taken_rows_;
    auto n = static_cast<uint32_t>(std::min<uint64_t>(BlockRows(), keys.encoded_rows - done));
    n = begun_.num_rows != 0 ? begun_.num_rows : RowsWithinReserve(batch, RowKind::kInput, columns, n);
    const uint32_t* selection = batch.selection == nullptr ? nullptr : batch.selection + done;
    context_.entry_points.ForBatch(n, &counters_);
    PrefetchSparse(batch, selection, n);
    const absl::Status added = AppendRows(rows, {columns, selection == nullptr ? done : 0, selection, n});
    if (!added.ok()) {
      QUERN_RETURN_IF_ERROR(MakeRoom(added));
      if (!std::exchange(block_is_spilled_, false)) continue;
    }
    QUERN_RETURN_IF_ERROR(EndBlock(n));
  }
  CountTable();
  const absl::Status checked = CheckPays();
  return checked.ok() ? checked : MakeRoom(checked);
}

// Of n rows that were added, or written.
absl::Status LocalGroups::EndBlock(uint32_t n) {
  num_rows_ += n;
  taken_rows_ += n;
  num_refusals_ = 0;
  has_left_dictionaries_ = false;
  written_within_ = {};
  return is_short() ? LetGoAndHold() : absl::OkStatus();
}

void LocalGroups::CountTable() {
  const TableTally tally = table_->TakeTally();
  counters_.Add(Counter::kTagHits, tally.hits);
  counters_.Add(Counter::kChainSteps, tally.steps + memory_->TakeSteps());
  counters_.Add(Counter::kGrowths, tally.growths);
}

absl::Status LocalGroups::AppendStates(const BatchView& batch) {
  Keys keys = KeysOf(batch, true);
  const QuernColumn* const columns = keys.columns.data();
  const Batch rows = {batch, columns, 0, false};
  const uint32_t block = context_.descriptor->get()->batch_rows;
  uint8_t* tuples[kMaxBatchRows];
  while (taken_rows_ < batch.num_rows) {
    if (asked_.load(std::memory_order_relaxed)) QUERN_RETURN_IF_ERROR(SpillIfAsked());
    if (taken_rows_ == keys.encoded_rows || leaves_dictionaries_) QUERN_RETURN_IF_ERROR(EncodeNext(batch, &keys));
    const uint64_t done = taken_rows_;
    auto n = static_cast<uint32_t>(std::min<uint64_t>(block, keys.encoded_rows - done));
    n = begun_.num_rows != 0 ? begun_.num_rows : RowsWithinReserve(batch, RowKind::kStates, columns, n);
    const uint32_t* selection = batch.selection == nullptr ? nullptr : batch.selection + done;
    const KeyRows key_rows = {columns, selection == nullptr ? done : 0, selection, n};
    context_.entry_points.ForBatch(n, &counters_);
    absl::Status added = FindTuples(key_rows, tuples);
    if (added.ok()) added = MergeSaved(rows, key_rows, tuples);
    if (!added.ok()) {
      KeepBegun(tuples);
      QUERN_RETURN_IF_ERROR(MakeRoom(added));
      continue;
    }
    QUERN_RETURN_IF_ERROR(EndBlock(n));
  }
  CountTable();
  return absl::OkStatus();
}

// States of whole tuples need no memory: once the groups of a block have been found, it is added.
absl::Status LocalGroups::AppendTuples(const BatchView& batch) {
  const uint32_t tuple_bytes = context_.descriptor->group()->tuple_bytes;
  auto* const first = const_cast<uint8_t*>(static_cast<const uint8_t*>(batch.keys[0].values));
  uint8_t *from[kMergeRows], *into[kMergeRows];
  while (taken_rows_ < batch.num_rows) {
    if (asked_.load(std::memory_order_relaxed)) QUERN_RETURN_IF_ERROR(SpillIfAsked());
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kMergeRows, batch.num_rows - taken_rows_));
    for (uint32_t i = 0; i < n; ++i) from[i] = first + (taken_rows_ + i) * tuple_bytes;
    const absl::Status found = table_->FindTuples({from, nullptr, n}, into);
    if (!found.ok()) {
      QUERN_RETURN_IF_ERROR(MakeRoom(found));
      continue;
    }
    QUERN_RETURN_IF_ERROR(MergeStates(*context_.descriptor, into, from, n, &*memory_));
    QUERN_RETURN_IF_ERROR(EndBlock(n));
  }
  CountTable();
  return absl::OkStatus();
}

absl::Status LocalGroups::MergeSaved(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
  begun_.num_rows = rows.n;
  for (size_t& a = begun_.aggregate; a < context_.descriptor->spec().aggregates.size(); ++a, begun_.num_added = 0) {
    const QuernColumn* column = &batch.view.payload[a];
    if (context_.descriptor->called(a) == nullptr) {
      QUERN_RETURN_IF_ERROR(MergeFixed(column, rows, a, tuples));
      continue;
    }
    for (uint32_t& i = begun_.num_added; i < rows.n; ++i) {
      const uint32_t row = blocks::RowAt(rows.rows, rows.first, i);
      const std::string_view saved = blocks::IsValid(column, row) ? SavedAt(column, row) : std::string_view();
      QUERN_RETURN_IF_ERROR(MergeSavedState(*context_.descriptor, a, saved, tuples[i], &*memory_));
    }
  }
  begun_ = {};
  return absl::OkStatus();
}

// States that need no memory.
absl::Status LocalGroups::MergeFixed(const QuernColumn* column, const KeyRows& rows, size_t aggregate,
                                     uint8_t* const* tuples) {
  std::string_view saved[kMergeRows];
  for (uint32_t done = 0, n = 0; done < rows.n; done += n) {
    n = std::min(kMergeRows, rows.n - done);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t row = blocks::RowAt(rows.rows, rows.first, done + i);
      saved[i] = blocks::IsValid(column, row) ? SavedAt(column, row) : std::string_view();
    }
    QUERN_RETURN_IF_ERROR(MergeSavedStates(*context_.descriptor, aggregate, saved, tuples + done, n, &saved_tuples_));
  }
  return absl::OkStatus();
}

absl::Status LocalGroups::AppendRows(const Batch& batch, const KeyRows& rows) {
  if (rows_without_table_ != 0 || (deals_ && uses_blocks_)) return AddToBlocks(batch, rows);
  if (deals_) return PartitionRows(batch, rows);
  uint8_t* found[kMaxBatchRows];
  uint8_t* const* tuples = table_->only_group();
  if (tuples == nullptr) {
    QUERN_RETURN_IF_ERROR(FindTuples(rows, found));
    PrefetchStates(*table_, context_.descriptor->group()->tuple_bytes, found, rows.n);
    tuples = found;
  }
  absl::Status updated = Update(batch, rows, tuples);
  if (!updated.ok()) KeepBegun(tuples);
  return updated;
}

// Of a block that was refused when it had begun the groups are known, and are not looked for again: that takes memory
// for as many groups as it has rows.
absl::Status LocalGroups::FindTuples(const KeyRows& rows, uint8_t** tuples) {
  if (begun_.num_rows == 0 || begun_tuples_.empty() || lacks_begun_tuples_) {
    QUERN_RETURN_IF_ERROR(table_->Find(rows, tuples));
    lacks_begun_tuples_ = false;
    return absl::OkStatus();
  }
  std::copy_n(begun_tuples_.data(), rows.n, tuples);
  return absl::OkStatus();
}

void LocalGroups::KeepBegun(uint8_t* const* tuples) {
  if (begun_.num_rows != 0 && !begun_tuples_.empty()) std::copy_n(tuples, begun_.num_rows, begun_tuples_.data());
}

// What an earlier call has added of a block that was refused is not added again.
absl::Status LocalGroups::Update(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
  if (begun_.num_rows == 0) QUERN_RETURN_IF_ERROR(UpdateFixed(batch, rows, tuples));
  return context_.descriptor->has_out_of_line() ? UpdateOutOfLine(batch, rows, tuples) : absl::OkStatus();
}

absl::Status LocalGroups::UpdateFixed(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
  // Memory is refused here, before a row is added, or not at all.
  if (computed_ != nullptr) QUERN_RETURN_IF_ERROR(computed_->Reserve());
  QuernUpdateArgs args = {};
  args.descriptor = context_.descriptor->get();
  args.keys = batch.keys;
  args.columns = batch.view.payload.data();
  args.first = rows.first;
  args.rows = rows.rows != nullptr ? rows.rows : FirstRows();
  args.selection = rows.rows;
  args.prefetch_first = args.first;
  args.prefetch_rows = args.rows;
  args.first_row_id = batch.first_row_id;
  args.tuples = tuples;
  args.n = args.num_rows = rows.n;
  args.prefetches_keys = table_->has_prefetched_keys() ? 0 : 1;
  args.overflowed = overflowed_.data();
  const QuernAggregateEntryPoints& kernel = context_.entry_points.Now();
  if (kernel.update != nullptr) {
    GroupRuns runs;
    const bool has_one_group = table_->only_group() != nullptr;
    if (has_one_group) SetRun(tuples[0], rows.n, &runs);
    const bool has_runs = has_one_group || (!splitter_.knows_groups() && FindRuns(tuples, rows.n, &runs));
    const uint32_t done = UpdateLanes(batch, rows, tuples, has_runs, runs);
    if (done == rows.n) return absl::OkStatus();
    const bool is_split = !has_runs && !splitter_.TakeRefusal() && splitter_.Split(rows, tuples, &runs);
    if (is_split) {
      args.first = 0;
      args.rows = args.selection = runs.rows;
    }
    if (computed_ != nullptr) {
      QUERN_RETURN_IF_ERROR(ComputeArguments(batch, args.first, args.selection, rows.n));
      args.computed = computed_->columns();
      args.first_computed = done;
    }
    const bool is_valid = batch.is_valid && (computed_ == nullptr || !computed_->has_nulls());
    if (has_runs || is_split) {
      DropRows(done, &runs);
      args.rows += done;
      args.prefetch_rows += done;
      args.tuples = runs.tuples;
      args.run_ends = runs.ends;
      args.n = runs.n;
      kernel.update_runs(&args);
    } else if (is_valid && kernel.update_valid != nullptr) {
      kernel.update_valid(&args);
    } else {
      kernel.update(&args);
    }
  }
  for (size_t a = 0; a < overflowed_.size(); ++a)
    if (overflowed_[a] != 0) return SumOutOfRange(context_.descriptor->spec().aggregates[a]);
  return absl::OkStatus();
}

absl::Status LocalGroups::ComputeArguments(const Batch& batch, uint64_t first, const uint32_t* selection, uint32_t n) {
  return computed_->Compute(context_.entry_points.Now(), batch.view.payload.data(), first, selection, n,
                            batch.first_row_id);
}

// Adds up long runs, or few groups, eight rows at a time. Returns the number of rows that are done, the first ones.
uint32_t LocalGroups::UpdateLanes(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples, bool has_runs,
                                  const GroupRuns& runs) {
  const QuernAggregateEntryPoints& kernel = context_.entry_points.Now();
  if (kernel.update_lanes == nullptr || !lane_gate_.TakeTurn()) return 0;
  if (has_runs && rows.n < runs.n * thresholds::kLaneRunRows) return 0;
  if (segments_ == nullptr) segments_ = std::make_unique<LaneSegments>();
  // Where the alternative is to write computed columns, a second pass over the rows costs less.
  const uint32_t most = computed_ != nullptr ? kMaxLaneGroups : context_.descriptor->get()->lane_groups;
  if (!(has_runs ? segments_->SetRuns(rows, runs) : segments_->SetGroups(rows, tuples, most, &splitter_))) return 0;
  QuernLaneArgs args = segments_->args();
  args.descriptor = context_.descriptor->get();
  args.columns = batch.view.payload.data();
  const uint32_t done = kernel.update_lanes(&args);
  lane_gate_.Count(args.num_segments, done);
  if (done == args.num_segments) return rows.n;
  return has_runs && done != 0 ? runs.ends[done - 1] : 0;
}

absl::Status LocalGroups::UpdateOutOfLine(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
  const std::vector<AggregateSpec>& aggregates = context_.descriptor->spec().aggregates;
  uint32_t taking[kMaxBatchRows];
  uint8_t* states[kMaxBatchRows];
  std::vector<QuernColumn> columns;
  // Once more where this block was computed in another order, or for a call that was refused.
  if (computed_ != nullptr) QUERN_RETURN_IF_ERROR(ComputeArguments(batch, rows.first, rows.rows, rows.n));
  begun_.num_rows = rows.n;
  for (size_t& a = begun_.aggregate; a < aggregates.size(); ++a, begun_.num_added = 0) {
    const OutOfLineAggregate* called = context_.descriptor->called(a);
    if (called == nullptr) continue;
    const QuernAccumulator& accumulator = context_.descriptor->get()->accumulators[a];
    const AggregateDescriptor::Columns& places = context_.descriptor->columns(a);
    const auto column_at = [&](bool is_computed, uint32_t column) {
      return (is_computed ? computed_->columns() : batch.view.payload.data()) + column;
    };
    columns.clear();
    for (const uint32_t column : places.arguments) columns.push_back(*column_at(places.is_computed, column));
    const QuernColumn* filter = aggregates[a].filtered ? column_at(places.is_filter_computed, places.filter) : nullptr;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows.n; ++i) {
      const uint32_t of_batch = blocks::RowAt(rows.rows, rows.first, i);
      const uint32_t row = places.is_computed ? i : of_batch, filtered = places.is_filter_computed ? i : of_batch;
      bool takes =
          filter == nullptr || (blocks::IsValid(filter, filtered) && blocks::BitReader::Read(filter, filtered) != 0);
      for (const QuernColumn& column : columns) takes = takes && blocks::IsValid(&column, row);
      taking[n] = row;
      states[n] = tuples[i] + accumulator.state_offset;
      n += takes;
    }
    const uint32_t added = begun_.num_added;
    QUERN_RETURN_IF_ERROR(called->Update({columns.data(), taking + added, batch.first_row_id, states + added, n - added,
                                          context_.options.distances.state_rows, &begun_.num_added},
                                         &*memory_));
  }
  begun_ = {};
  return absl::OkStatus();
}

// ---- partitioning -------------------------------------------------------------------------------------------------

absl::Status LocalGroups::CheckPays() {
  if (context_.descriptor->group()->num_keys == 0) return absl::OkStatus();
  if (deals_ || num_local_states_->load(std::memory_order_relaxed) < 2 || context_.options.partition_bits == 0) {
    if (deals_ && uses_blocks_ && blocks_->has_written()) DoWithoutTable(num_rows_);
    if (deals_ && !uses_blocks_ && IsShortOfMemory()) return MoveToBlocks();
    return deals_ && num_dealt_ > compact_at_ ? Compact() : absl::OkStatus();
  }
  const uint64_t local_groups = context_.options.local_groups, enough = std::min(local_groups, kGroupsToAdapt);
  if (table_->bytes() < enough * context_.descriptor->group()->tuple_bytes) return absl::OkStatus();
  const uint64_t groups = table_->num_groups();
  if (groups < enough || num_rows_ >= 2 * groups || ExpectedGroups(num_rows_, groups) < local_groups)
    return absl::OkStatus();
  if (IsShortOfMemory()) UseBlocks();
  QUERN_RETURN_IF_ERROR(PartitionRows());
  deals_ = true;
  return absl::OkStatus();
}

absl::Status LocalGroups::PartitionRows() {
  if (!deals_ && num_rows_ != 0) expected_groups_ = ExpectedGroups(num_rows_, table_->num_groups());
  if (uses_blocks_) return MoveToBlocks();
  if (!parts_.is_partitioned()) QUERN_RETURN_IF_ERROR(parts_.Partition(context_.options.partition_bits));
  CountTable();
  ReserveOne(&emptied_);
  std::unique_ptr<GroupTable> next = MakeGroupTable(context_, 0);
  uint8_t* tuples[kScanRows];
  uint64_t hashes[kScanRows];
  const uint64_t num_positions = table_->num_positions();
  const auto scan = [&](uint64_t begin) {
    const uint32_t n = table_->Scan(begin, std::min<uint64_t>(begin + kScanRows, num_positions), tuples);
    if (n != 0) table_->HashesOf(begin, tuples, n, hashes);
    return n;
  };
  uint64_t num_groups = 0;
  for (uint64_t begin = 0; begin < num_positions; begin += kScanRows) {
    const uint32_t n = scan(begin);
    absl::Status status = parts_.Partition(tuples, hashes, n);
    if (!status.ok()) {
      for (uint64_t dealt = 0; dealt < begin; dealt += kScanRows) parts_.Forget(hashes, scan(dealt));
      return status;
    }
    num_groups += n;
  }
  num_dealt_ += num_groups;
  emptied_.push_back(std::move(table_));
  emptied_.back()->Release();
  table_ = std::move(next);
  return absl::OkStatus();
}

// A block that was refused here when its tuples had been updated still has them.
absl::Status LocalGroups::PartitionRows(const Batch& batch, const KeyRows& rows) {
  uint8_t* tuples[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows];
  QUERN_RETURN_IF_ERROR(MakeDealt(batch, rows, tuples, hashes));
  QUERN_RETURN_IF_ERROR(Update(batch, rows, tuples));
  absl::Status status = parts_.Partition(dealt_tuples_.data(), hashes, rows.n);
  if (!status.ok()) {
    begun_ = {rows.n, context_.descriptor->spec().aggregates.size(), 0};
    return status;
  }
  begun_ = {};
  num_dealt_ += rows.n;
  return absl::OkStatus();
}

// Makes a tuple with the keys of each row.
absl::Status LocalGroups::MakeDealt(const Batch& batch, const KeyRows& rows, uint8_t** tuples, uint64_t* hashes) {
  const QuernRowLayout& group = *context_.descriptor->group();
  const uint64_t bytes = uint64_t{rows.n} * group.tuple_bytes;
  if (dealt_tuples_.bytes() < bytes) {
    dealt_tuples_.Free();
    const uint64_t most_rows = std::max(context_.descriptor->get()->batch_rows, rows.n);
    QUERN_ASSIGN_OR_RETURN(dealt_tuples_, HugeBuffer::Allocate(context_.budget, most_rows * group.tuple_bytes, false));
  }
  uint8_t* const partitioned = dealt_tuples_.data();
  for (uint32_t i = 0; i < rows.n; ++i) tuples[i] = partitioned + uint64_t{i} * group.tuple_bytes;
  if (begun_.num_rows != 0) return HashDealt(rows, tuples, hashes);
  std::memset(partitioned, 0, bytes);
  QUERN_RETURN_IF_ERROR(HashDealt(rows, tuples, hashes));
  if (group.packed_bytes != 0) return absl::OkStatus();
  uint32_t batch_rows[kMaxBatchRows];
  for (uint32_t i = 0; i < rows.n; ++i) batch_rows[i] = blocks::RowAt(rows.rows, rows.first, i);
  StoreKeys(context_, batch.keys, batch_rows, rows.n, partitioned);
  return key_bytes_.Keep(partitioned, rows.n);
}

// Hashes the rows' keys, as the partitions of their groups are numbered; writes them to the tuples where they are
// packed.
absl::Status LocalGroups::HashDealt(const KeyRows& rows, uint8_t* const* tuples, uint64_t* hashes) const {
  const QuernRowLayout& group = *context_.descriptor->group();
  if (group.packed_bytes != 0) {
    context_.entry_points.Now().pack(&group, rows.keys, rows.first, rows.rows, rows.n, hashes);
    for (uint32_t i = 0; i < rows.n; ++i) std::memcpy(tuples[i], &hashes[i], group.packed_bytes);
    if (!uses_blocks_) HashPackedKeys(hashes, rows.n, group.zero_hashes, hashes);
    else HashKeys(*context_.descriptor, *dictionaries_, tuples, rows.n, hashes);
    return absl::OkStatus();
  }
  const RefusedCalls refused;
  context_.entry_points.Now().hash(&group, rows.keys, rows.first, rows.rows, rows.n, hashes);
  return refused.status();
}

namespace {

// num_merged: receives the number of tuples that were added, the first ones.
absl::Status MergeTuples(const GroupContext& context, const TupleList& part, GroupTable* table,
                         AccumulatorMemory* memory, uint64_t* num_merged) {
  const QuernRowLayout& group = *context.descriptor->group();
  const uint32_t batch_rows = std::min(context.descriptor->get()->batch_rows, kMergeRows);
  uint8_t *from[kMaxBatchRows], *into[kMaxBatchRows];
  for (const TupleSpan& span : part) {
    for (uint64_t first = 0; first < span.num_tuples; first += batch_rows) {
      const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(batch_rows, span.num_tuples - first));
      for (uint32_t i = 0; i < n; ++i) from[i] = span.tuples + (first + i) * group.tuple_bytes;
      QUERN_RETURN_IF_ERROR(table->FindTuples({from, span.hashes == nullptr ? nullptr : span.hashes + first, n}, into));
      QUERN_RETURN_IF_ERROR(MergeStates(*context.descriptor, into, from, n, memory));
      *num_merged += n;
    }
  }
  return absl::OkStatus();
}

void DropFirst(uint64_t num_dropped, uint32_t tuple_bytes, TupleList* part) {
  for (TupleSpan& span : *part) {
    const uint64_t n = std::min(num_dropped, span.num_tuples);
    span.tuples += n * tuple_bytes;
    if (span.hashes != nullptr) span.hashes += n;
    span.num_tuples -= n;
    span.capacity -= n;
    num_dropped -= n;
  }
}

}  // namespace

absl::Status MergePart(const GroupContext& context, TupleList* part, GroupTable* table, AccumulatorMemory* memory) {
  uint64_t num_merged = 0;
  absl::Status status = WithoutBadAlloc([&] { return MergeTuples(context, *part, table, memory, &num_merged); });
  if (status.ok()) part->clear();
  else DropFirst(num_merged, context.descriptor->group()->tuple_bytes, part);
  return status;
}

// Merges rows that were partitioned one by one, so that the number of groups bounds memory, not the number of rows.
// Runs each time the number of tuples has doubled since the last time. Where memory is refused, some partitions have
// been merged and the others are as they were, and the next time merges all again.
absl::Status LocalGroups::Compact() {
  if (uses_blocks_) return CompactBlocks();
  TupleStore old(format_, context_.budget, context_.options.huge_pages);
  QUERN_RETURN_IF_ERROR(old.Partition(context_.options.partition_bits));
  ReserveOne(&old_parts_);
  ReserveOne(&old_key_bytes_);
  // Tables copy the strings of their groups, so that the previous owners' memory is no longer needed at the end.
  const size_t num_emptied = emptied_.size(), num_old = old_parts_.size();
  const uint64_t num_dealt = std::exchange(num_dealt_, 0);
  std::swap(parts_, old);
  old_key_bytes_.push_back(std::exchange(key_bytes_, KeyBytes(context_)));
  for (uint64_t p = 0; p < old.parts().size(); ++p) {
    const absl::Status status = WithoutBadAlloc([&] { return CompactPart(old.mutable_part(p)); });
    if (status.ok()) continue;
    parts_.SwapParts(p, &old);
    old_parts_.push_back(std::move(old));
    num_dealt_ = num_dealt;
    return status;
  }
  emptied_.erase(emptied_.begin(), emptied_.begin() + static_cast<ptrdiff_t>(num_emptied));
  old_key_bytes_.clear();
  old_parts_.erase(old_parts_.begin(), old_parts_.begin() + static_cast<ptrdiff_t>(num_old));
  compact_at_ = std::max(context_.options.compact_tuples, 2 * num_dealt_);
  return absl::OkStatus();
}

// Merges one partition and deals its groups. *Errors*: ResourceExhausted, after which `part` has the tuples that were
// not merged, and the table the groups of the others.
absl::Status LocalGroups::CompactPart(TupleList* part) {
  QUERN_RETURN_IF_ERROR(MergePart(context_, part, table_.get(), &*memory_));
  return PartitionRows();
}

}  // namespace quern
