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

#include "runtime/aggregate/group_states.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

constexpr uint32_t kScanRows = 1024;
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

// Find prefetches a tuple's first line, which holds its key; states may lie in further lines.
void PrefetchStates(const PrefetchSetting& setting, uint64_t tuple_bytes, uint8_t* const* tuples, uint32_t n) {
  if (tuple_bytes <= kLineBytes) return;
  WithPrefetch(setting, [&]<class Prefetch>() {
    if constexpr (Prefetch::kPrefetches) {
      for (uint32_t i = 0; i < n; ++i) {
        for (uint64_t at = kLineBytes; at < tuple_bytes; at += kLineBytes) Prefetch::For(tuples[i] + at);
        Prefetch::For(tuples[i] + tuple_bytes - 1);
      }
    }
  });
}

TupleFormat FormatOf(const GroupContext& context) {
  const QuernRowLayout& group = *context.descriptor->group();
  return {group.tuple_bytes, group.packed_bytes, group.zero_hashes,
          group.prefetches ? context.options.distances.partition_bytes : 0};
}

}  // namespace

struct LocalGroups::Batch {
  const BatchView& view;
  const QuernColumn* keys;
  uint64_t first_row_id;
  bool is_valid;  // no argument is null
};

LocalGroups::LocalGroups(const GroupContext& context, std::shared_ptr<KeyDictionaries> dictionaries,
                         const std::atomic<uint32_t>* num_local_states)
    : LocalState(context.counters),
      context_(context),
      dictionaries_(std::move(dictionaries)),
      num_local_states_(num_local_states),
      table_(MakeGroupTable(context, context.options.expected_groups)),
      splitter_(context.descriptor->get()->states_bytes, context.options.adapts),
      parts_(FormatOf(context), context.budget, context.options.huge_pages),
      compact_at_(context.options.compact_tuples),
      key_bytes_(context),
      memory_(context.budget, context.options.host),
      codes_(context.descriptor->spec().keys.size()),
      overflowed_(context.descriptor->spec().aggregates.size()) {}

// ---- appending ----------------------------------------------------------------------------------------------------

absl::Status LocalGroups::EncodeKeys(const BatchView& batch, bool is_plain, std::vector<QuernColumn>* keys) {
  keys->assign(batch.keys.begin(), batch.keys.end());
  if (!dictionaries_->has_any()) return absl::OkStatus();
  uint64_t num_rows = batch.num_rows;
  if (batch.selection != nullptr)
    num_rows = uint64_t{*std::max_element(batch.selection, batch.selection + num_rows)} + 1;
  for (size_t k = 0; k < codes_.size(); ++k) {
    if (!dictionaries_->has(k)) continue;
    codes_[k].resize(num_rows);
    const KeyRows rows = {nullptr, 0, batch.selection, static_cast<uint32_t>(batch.num_rows)};
    QUERN_RETURN_IF_ERROR(dictionaries_->Encode(k, &batch.keys[k], is_plain, rows, codes_[k].data()));
    (*keys)[k].values = codes_[k].data();
    (*keys)[k].dictionary = nullptr;
  }
  return absl::OkStatus();
}

namespace {

bool HasNoNulls(const QuernAggregateDescriptor& descriptor, const BatchView& batch) {
  for (uint32_t k = 0; k < descriptor.num_accumulators; ++k) {
    const QuernAccumulator& a = descriptor.accumulators[k];
    for (uint32_t i = 0; i < a.num_arguments; ++i)
      if (a.arguments[i].nullable && batch.payload[a.arguments[i].column].validity != nullptr) return false;
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
  return kind == RowKind::kStates ? AppendStates(batch) : AppendInput(batch, first_row_id);
}

absl::Status LocalGroups::AppendInput(const BatchView& batch, uint64_t first_row_id) {
  std::vector<QuernColumn> keys;
  QUERN_RETURN_IF_ERROR(EncodeKeys(batch, false, &keys));
  const Batch rows = {batch, keys.data(), first_row_id, HasNoNulls(*context_.descriptor->get(), batch)};
  const RefusedCalls refused;
  uint32_t n = 0;
  for (uint64_t done = 0; done < batch.num_rows; done += n) {
    n = static_cast<uint32_t>(std::min<uint64_t>(BlockRows(), batch.num_rows - done));
    const uint32_t* selection = batch.selection == nullptr ? nullptr : batch.selection + done;
    context_.entry_points.ForBatch(n, &counters_);
    QUERN_RETURN_IF_ERROR(AppendRows(rows, {keys.data(), selection == nullptr ? done : 0, selection, n}));
    num_rows_ += n;
  }
  CountTable();
  QUERN_RETURN_IF_ERROR(refused.status());
  return CheckPays();
}

void LocalGroups::CountTable() {
  const TableTally tally = table_->TakeTally();
  counters_.Add(Counter::kTagHits, tally.hits);
  counters_.Add(Counter::kChainSteps, tally.steps + memory_.TakeSteps());
  counters_.Add(Counter::kGrowths, tally.growths);
}

absl::Status LocalGroups::AppendStates(const BatchView& batch) {
  std::vector<QuernColumn> keys;
  QUERN_RETURN_IF_ERROR(EncodeKeys(batch, true, &keys));
  const Batch rows = {batch, keys.data(), 0, false};
  const RefusedCalls refused;
  const uint32_t block = context_.descriptor->get()->batch_rows;
  uint8_t* tuples[kMaxBatchRows];
  for (uint64_t done = 0; done < batch.num_rows; done += block) {
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(block, batch.num_rows - done));
    const uint32_t* selection = batch.selection == nullptr ? nullptr : batch.selection + done;
    const KeyRows key_rows = {keys.data(), selection == nullptr ? done : 0, selection, n};
    context_.entry_points.ForBatch(n, &counters_);
    QUERN_RETURN_IF_ERROR(table_->Find(key_rows, tuples));
    QUERN_RETURN_IF_ERROR(MergeSaved(rows, key_rows, tuples));
    num_rows_ += n;
  }
  CountTable();
  return refused.status();
}

absl::Status LocalGroups::MergeSaved(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
  for (size_t a = 0; a < context_.descriptor->spec().aggregates.size(); ++a) {
    const QuernColumn* column = &batch.view.payload[a];
    for (uint32_t i = 0; i < rows.n; ++i) {
      const uint32_t row = blocks::RowAt(rows.rows, rows.first, i);
      const blocks::Bytes bytes =
          blocks::IsValid(column, row) ? blocks::ReadBytes<kVar32>(column, row, 0, 0) : blocks::Bytes{nullptr, 0};
      const std::string_view saved(reinterpret_cast<const char*>(bytes.data), bytes.length);
      QUERN_RETURN_IF_ERROR(MergeSavedState(*context_.descriptor, a, saved, tuples[i], &memory_));
    }
  }
  return absl::OkStatus();
}

absl::Status LocalGroups::AppendRows(const Batch& batch, const KeyRows& rows) {
  if (deals_) return PartitionRows(batch, rows);
  uint8_t* tuples[kMaxBatchRows];
  QUERN_RETURN_IF_ERROR(table_->Find(rows, tuples));
  PrefetchStates(table_->prefetch(), context_.descriptor->group()->tuple_bytes, tuples, rows.n);
  return Update(batch, rows, tuples);
}

absl::Status LocalGroups::Update(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
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
    const bool has_runs = !splitter_.knows_groups() && FindRuns(tuples, rows.n, &runs);
    const bool is_split = !has_runs && splitter_.Split(rows, tuples, &runs);
    if (is_split) {
      args.first = 0;
      args.rows = args.selection = runs.rows;
    }
    if (has_runs || is_split) {
      args.tuples = runs.tuples;
      args.run_ends = runs.ends;
      args.n = runs.n;
      kernel.update_runs(&args);
    } else if (batch.is_valid && kernel.update_valid != nullptr) {
      kernel.update_valid(&args);
    } else {
      kernel.update(&args);
    }
  }
  for (size_t a = 0; a < overflowed_.size(); ++a)
    if (overflowed_[a] != 0) return SumOutOfRange(context_.descriptor->spec().aggregates[a]);
  return context_.descriptor->has_out_of_line() ? UpdateOutOfLine(batch, rows, tuples) : absl::OkStatus();
}

absl::Status LocalGroups::UpdateOutOfLine(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples) {
  const std::vector<AggregateSpec>& aggregates = context_.descriptor->spec().aggregates;
  uint32_t taking[kMaxBatchRows];
  uint8_t* states[kMaxBatchRows];
  for (size_t a = 0; a < aggregates.size(); ++a) {
    const OutOfLineAggregate* called = context_.descriptor->called(a);
    if (called == nullptr) continue;
    const QuernAccumulator& accumulator = context_.descriptor->get()->accumulators[a];
    const QuernColumn* columns = batch.view.payload.data() + context_.descriptor->first_column(a);
    const QuernColumn* filter = aggregates[a].filtered ? &batch.view.payload[accumulator.filter_column] : nullptr;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows.n; ++i) {
      const uint32_t row = blocks::RowAt(rows.rows, rows.first, i);
      bool takes = filter == nullptr || (blocks::IsValid(filter, row) && blocks::BitReader::Read(filter, row) != 0);
      for (size_t k = 0; k < aggregates[a].arguments.size(); ++k) takes = takes && blocks::IsValid(&columns[k], row);
      taking[n] = row;
      states[n] = tuples[i] + accumulator.state_offset;
      n += takes;
    }
    QUERN_RETURN_IF_ERROR(called->Update(
        {columns, taking, batch.first_row_id, states, n, context_.options.distances.state_rows}, &memory_));
  }
  return absl::OkStatus();
}

// ---- partitioning -------------------------------------------------------------------------------------------------

absl::Status LocalGroups::CheckPays() {
  if (context_.descriptor->group()->num_keys == 0) return absl::OkStatus();
  if (deals_ || num_local_states_->load(std::memory_order_relaxed) < 2 || context_.options.partition_bits == 0) {
    return deals_ && num_dealt_ > compact_at_ ? Compact() : absl::OkStatus();
  }
  const uint64_t local_groups = context_.options.local_groups, enough = std::min(local_groups, kGroupsToAdapt);
  if (table_->bytes() < enough * context_.descriptor->group()->tuple_bytes) return absl::OkStatus();
  const uint64_t groups = table_->num_groups();
  if (groups < enough || num_rows_ >= 2 * groups || ExpectedGroups(num_rows_, groups) < local_groups)
    return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(PartitionRows());
  deals_ = true;
  return absl::OkStatus();
}

absl::Status LocalGroups::PartitionRows() {
  if (!deals_ && num_rows_ != 0) expected_groups_ = ExpectedGroups(num_rows_, table_->num_groups());
  if (!parts_.is_partitioned()) QUERN_RETURN_IF_ERROR(parts_.Partition(context_.options.partition_bits));
  CountTable();
  uint8_t* tuples[kScanRows];
  uint64_t hashes[kScanRows];
  const uint64_t num_positions = table_->num_positions();
  for (uint64_t begin = 0; begin < num_positions; begin += kScanRows) {
    const uint32_t n = table_->Scan(begin, std::min<uint64_t>(begin + kScanRows, num_positions), tuples);
    if (n == 0) continue;
    table_->HashesOf(begin, tuples, n, hashes);
    QUERN_RETURN_IF_ERROR(parts_.Partition(tuples, hashes, n));
    num_dealt_ += n;
  }
  emptied_.push_back(std::move(table_));
  emptied_.back()->Release();
  table_ = MakeGroupTable(context_, 0);
  return absl::OkStatus();
}

absl::Status LocalGroups::PartitionRows(const Batch& batch, const KeyRows& rows) {
  const QuernRowLayout& group = *context_.descriptor->group();
  const uint64_t bytes = uint64_t{rows.n} * group.tuple_bytes;
  if (dealt_tuples_.bytes() < bytes) {
    dealt_tuples_.Free();
    const uint64_t most_rows = std::max(context_.descriptor->get()->batch_rows, rows.n);
    QUERN_ASSIGN_OR_RETURN(dealt_tuples_, HugeBuffer::Allocate(context_.budget, most_rows * group.tuple_bytes, false));
  }
  uint8_t* const partitioned = dealt_tuples_.data();
  std::memset(partitioned, 0, bytes);
  uint8_t* tuples[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows];
  for (uint32_t i = 0; i < rows.n; ++i) tuples[i] = partitioned + uint64_t{i} * group.tuple_bytes;
  if (group.packed_bytes != 0) {
    context_.entry_points.Now().pack(&group, rows.keys, rows.first, rows.rows, rows.n, hashes);
    for (uint32_t i = 0; i < rows.n; ++i) std::memcpy(tuples[i], &hashes[i], group.packed_bytes);
    HashPackedKeys(hashes, rows.n, group.zero_hashes, hashes);
  } else {
    uint32_t batch_rows[kMaxBatchRows];
    for (uint32_t i = 0; i < rows.n; ++i) batch_rows[i] = blocks::RowAt(rows.rows, rows.first, i);
    context_.entry_points.Now().hash(&group, rows.keys, rows.first, rows.rows, rows.n, hashes);
    StoreKeys(context_, rows.keys, batch_rows, rows.n, partitioned);
    QUERN_RETURN_IF_ERROR(key_bytes_.Keep(partitioned, rows.n));
  }
  QUERN_RETURN_IF_ERROR(Update(batch, rows, tuples));
  num_dealt_ += rows.n;
  return parts_.Partition(partitioned, hashes, rows.n);
}

absl::Status MergePart(const GroupContext& context, const TupleList& part, GroupTable* table,
                       AccumulatorMemory* memory) {
  const QuernRowLayout& group = *context.descriptor->group();
  const uint32_t batch_rows = std::min(context.descriptor->get()->batch_rows, kMergeRows);
  uint8_t *from[kMaxBatchRows], *into[kMaxBatchRows];
  for (const TupleSpan& span : part) {
    for (uint64_t first = 0; first < span.num_tuples; first += batch_rows) {
      const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(batch_rows, span.num_tuples - first));
      for (uint32_t i = 0; i < n; ++i) from[i] = span.tuples + (first + i) * group.tuple_bytes;
      QUERN_RETURN_IF_ERROR(table->FindTuples({from, span.hashes == nullptr ? nullptr : span.hashes + first, n}, into));
      QUERN_RETURN_IF_ERROR(MergeStates(*context.descriptor, into, from, n, memory));
    }
  }
  return absl::OkStatus();
}

// Merges rows that were partitioned one by one, so that the number of groups bounds memory, not the number of rows.
// Runs each time the number of tuples has doubled since the last time.
absl::Status LocalGroups::Compact() {
  TupleStore compacted(FormatOf(context_), context_.budget, context_.options.huge_pages);
  QUERN_RETURN_IF_ERROR(compacted.Partition(context_.options.partition_bits));
  std::swap(parts_, compacted);
  num_dealt_ = 0;
  // Tables copy the strings of their groups, so the previous owners' memory is no longer needed.
  const std::vector<std::unique_ptr<GroupTable>> emptied = std::move(emptied_);
  const KeyBytes key_bytes = std::exchange(key_bytes_, KeyBytes(context_));
  emptied_.clear();
  for (const TupleList& part : compacted.parts()) {
    QUERN_RETURN_IF_ERROR(MergePart(context_, part, table_.get(), &memory_));
    QUERN_RETURN_IF_ERROR(PartitionRows());
  }
  compact_at_ = std::max(context_.options.compact_tuples, 2 * num_dealt_);
  return absl::OkStatus();
}

}  // namespace quern
