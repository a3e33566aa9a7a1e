// SPDX-License-Identifier: Apache-2.0
// The work of an aggregation around its tables. Each thread aggregates into thread-local groups (local_groups.h);
// finalising merges them (group_merger.h); readers share the merged groups and write result columns or saved states:
//
//     Append   -> LocalGroups -+
//     Appender -> LocalGroups -+->  GroupMerger -> tables  <- GroupReader, GroupReader, ..
//     Appender -> LocalGroups -+
//
// For 20 M rows of 10 groups and two threads, there are two tables of 10 groups, and one is added to the other. For 10
// M groups, each thread fills its own table up to a million groups, then 64 partitions, each of which one thread
// merges.
#include "runtime/aggregate/hash_aggregate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/aggregate/group_keys.h"
#include "runtime/aggregate/group_merger.h"
#include "runtime/aggregate/group_states.h"
#include "runtime/aggregate/key_dictionaries.h"
#include "runtime/aggregate/local_groups.h"
#include "runtime/aggregate/values_in_files.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/job_observer.h"
#include "runtime/rows/key_partitions.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {
namespace {

constexpr uint64_t kMorselPositions = 65536;
constexpr uint32_t kScanRows = 1024;

// Of rows of groups that were written: keys, and states as payload.
void DivideColumns(size_t num_keys, BatchView* rows) {
  rows->payload.assign(rows->keys.begin() + static_cast<ptrdiff_t>(num_keys), rows->keys.end());
  rows->keys.resize(num_keys);
}

}  // namespace

std::vector<ColumnType> AggregateStateTypes(const AggregationSpec& spec) {
  std::vector<ColumnType> types = AggregateOutputTypes(spec);
  for (size_t i = spec.keys.size(); i < types.size(); ++i) {
    types[i] = ColumnType();
    types[i].id = TypeId::kBinary;
  }
  return types;
}

HashAggregate::HashAggregate(std::shared_ptr<const AggregateDescriptor> descriptor, AggregateEntrySource entry_points,
                             std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget,
                             const AggregateOptions& options, const SinkTexts& texts)
    : Sink(texts, entry_points.NewCounters(), std::move(budget)),
      descriptor_(std::move(descriptor)),
      entry_points_(std::move(entry_points)),
      code_(std::move(code)),
      options_(options),
      dictionaries_(std::make_shared<DictionarySeries>(descriptor_->spec(), budget_)) {}

HashAggregate::~HashAggregate() {
  EndJob([this](JobSummary* job) {
    job->keys = stats_.num_groups;
    job->table_bytes = stats_.table_bytes;
    job->ns = counters().ns;
    job->layout = stats_.layout;
  });
}

// ---- appending ----------------------------------------------------------------------------------------------------

// Under a limit, no table is made for more groups than would leave memory short; results need some, too. The groups of
// a partition have been counted, and its share of the limit was chosen for them.
uint64_t HashAggregate::ExpectedWithinLimit() const {
  const uint64_t limit = budget_ == nullptr ? 0 : budget_->limit_bytes();
  if (limit == 0 || part_.level != 0) return options_.expected_groups;
  const uint64_t bytes = (descriptor_->group()->tuple_bytes + 2 * sizeof(uint64_t)) * 100 / options_.load_percent;
  return std::min(options_.expected_groups, limit / thresholds::kShortMemoryShare / bytes);
}

GroupContext HashAggregate::Context() const {
  GroupContext context = {descriptor_, entry_points_, budget_, options_, 0, counters_};
  context.options.expected_groups = ExpectedWithinLimit();
  return context;
}

std::unique_ptr<LocalState> HashAggregate::NewLocalState() {
  ++num_local_states_;
  auto groups = std::make_unique<LocalGroups>(Context(), dictionaries_, &num_local_states_);
  if (spill_ == nullptr || !SpilledGroups::CanWrite(*descriptor_, *spill_, part_)) return groups;
  {
    const std::lock_guard<std::mutex> lock(spilled_mutex_);
    if (spilled_ == nullptr) {
      spilled_ = std::make_shared<SpilledGroups>(descriptor_, spill_, part_,
                                                 io_budget_ == nullptr ? spill_->io_budget() : io_budget_);
      if (whole_ != nullptr) spilled_->holders()->Add(whole_);
    }
  }
  groups->SpillTo(spilled_);
  return groups;
}

absl::Status HashAggregate::CheckInput(const BatchView& batch, RowKind kind) const {
  const AggregationSpec& spec = descriptor_->spec();
  if (kind == RowKind::kTuples) return CheckBatch(batch, 1, 0);
  const size_t num_columns = kind == RowKind::kStates ? spec.aggregates.size() : descriptor_->get()->num_columns;
  return CheckBatch(batch, spec.keys.size(), num_columns, "aggregate columns");
}

LocalGroups* HashAggregate::own_groups() const { return static_cast<LocalGroups*>(own_local_state()); }

uint64_t HashAggregate::num_groups_so_far() const {
  const bool has_table = own_groups() != nullptr && own_groups()->table() != nullptr;
  return has_table ? own_groups()->table()->num_groups() : 0;
}

uint64_t HashAggregate::table_bytes() const { return own_groups() == nullptr ? 0 : own_groups()->table()->bytes(); }

void HashAggregate::SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) {
  options_.prefetch.Set(loop, setting);
  if (own_groups() != nullptr) own_groups()->SetPrefetch(loop, setting);
}

// ---- finalising ---------------------------------------------------------------------------------------------------

struct HashAggregate::Result {
  std::vector<std::unique_ptr<GroupTable>> tables;
  std::vector<uint64_t> first_positions;  // of each table, and one past the last
  std::shared_ptr<const KeyDictionaries> dictionaries;
};

absl::StatusOr<SharedWork*> HashAggregate::BeginFinalise() {
  if (local_states()->empty()) local_states()->push_back(NewLocalState());
  std::vector<LocalGroups*> locals;
  for (const auto& local : *local_states()) locals.push_back(static_cast<LocalGroups*>(local.get()));
  for (LocalGroups* local : locals) local->FreeReserve();
  // Of one group without keys, what has no parts must fit at last: merging it is tried here.
  const bool is_one = descriptor_->spec().keys.empty();
  const bool spills = spilled_ != nullptr && (spilled_->is_used() || (!is_one && !FitsMerged()));
  merger_ = std::make_unique<GroupMerger>(Context(), std::move(locals), spilled_.get(), spills);
  return merger_->work();
}

// Whether memory suffices for groups of all threads and for the tables into which they are merged.
bool HashAggregate::FitsMerged() const {
  const auto& locals = *const_cast<HashAggregate*>(this)->local_states();
  if (locals.size() == 1 && !static_cast<LocalGroups*>(locals.front().get())->is_partitioned()) return true;
  uint64_t bytes = 0;
  for (const auto& local : locals) bytes += static_cast<LocalGroups*>(local.get())->group_bytes();
  // Keys and states may lie outside of the groups, and are copied with them: then the job has taken more than these.
  // Half as much again, as tables and chunks of strings grow in steps (a guess).
  const uint64_t used = budget_->used_bytes(), aside = std::min(used, spill_->io_bytes());
  return spill_->HasRoom(std::max(2 * bytes, (used - aside) * 3 / 2));
}

void HashAggregate::EndFinalise() {
  if (merger_->has_spilled()) {
    for (const auto& local : *local_states()) stats_.input_rows += static_cast<LocalGroups*>(local.get())->num_rows();
    local_states()->clear();
    dictionaries_->Drop();
    stats_.num_groups = spilled_->num_groups();
    stats_.layout = "spilled";
    return;
  }
  // Results have the room; after those of a part, other parts are read.
  if (spill_ != nullptr && part_.level == 0) spill_->EndSettingAside();
  result_ = std::make_unique<Result>();
  result_->tables = merger_->TakeTables();
  result_->dictionaries = dictionaries_->current();
  uint64_t position = 0;
  CounterBlock counters(counters_);
  for (const auto& table : result_->tables) {
    counters.Add(Counter::kGrowths, table->TakeTally().growths);
    result_->first_positions.push_back(position);
    position += table->num_positions();
    stats_.num_groups += table->num_groups();
    stats_.table_bytes += table->bytes();
    stats_.num_growths += table->num_growths();
    const PrefetchSetting prefetch = table->prefetch();
    const uint32_t batch_rows = prefetch.batch_rows != 0 ? prefetch.batch_rows : descriptor_->get()->batch_rows;
    stats_.prefetch_distance = prefetch.distance == kWholeBatch ? batch_rows : prefetch.distance;
    stats_.prefetch_class = descriptor_->group()->prefetches ? options_.caches.NameFor(table->bytes()) : "off";
    stats_.layout = table->layout();
  }
  result_->first_positions.push_back(position);
  for (const auto& local : *local_states()) {
    auto* const groups = static_cast<LocalGroups*>(local.get());
    stats_.input_rows += groups->num_rows();
    groups->DropParts();
  }
}

// ---- partitions that were spilled -----------------------------------------------------------------------------------

// What a reader may take for a partition, until it is destroyed.
class HashAggregate::PartShare {
 public:
  // io: memory of reading and writing, in reserve; null: the aggregation has that of its own partition.
  PartShare(HashAggregate* of, const ReaderShare& key, uint64_t bytes, uint64_t counted_bytes,
            std::unique_ptr<BudgetWithReserve> io)
      : of_(of), key_(key), bytes_(bytes), counted_bytes_(counted_bytes), io_(std::move(io)) {
    of_->shared_bytes_ += counted_bytes_;
    ++of_->num_shares_[key_];
  }
  PartShare(const PartShare&) = delete;
  PartShare& operator=(const PartShare&) = delete;
  ~PartShare() {
    const std::lock_guard<std::mutex> lock(of_->mutex_);
    of_->shared_bytes_ -= counted_bytes_;
    --of_->num_shares_[key_];
  }
  uint64_t bytes() const { return bytes_; }  // 0: no limit
  const std::shared_ptr<MemoryBudget>& io_budget() const { return io_ == nullptr ? of_->io_budget_ : io_->budget(); }

 private:
  HashAggregate* const of_;
  const ReaderShare key_;
  const uint64_t bytes_, counted_bytes_;
  const std::unique_ptr<BudgetWithReserve> io_;
};

// Readers may each have a partition at a time, so that it gets a share of the memory, and one share is left for a
// reader that comes later: with two readers, a third. Shares that were taken when there were fewer readers are larger,
// so that it gets no more than a half of what is left. Beside it, what reading rows and writing them once more takes is
// reserved at once: it cannot be refused when rows of the partition have left its table. Null: too little is left, and
// another reader, which has a partition, will take those that are left.
absl::StatusOr<std::unique_ptr<HashAggregate::PartShare>> HashAggregate::NextShare(const ReaderShare& key) {
  constexpr uint64_t kLeastBytes = 1 << 20;
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t limit = budget_->limit_bytes();
  // A part of a part has the limit of the whole: its parent's memory is free by then, but for what readers hold.
  if (part_.level != 0)
    return std::make_unique<PartShare>(this, key, limit == 0 ? 0 : std::max(limit, kLeastBytes), 0, nullptr);
  const bool has_others = num_shares_[key] != 0;
  const uint64_t writer = spilled_->WriterBytes();
  auto io = std::make_unique<BudgetWithReserve>(spill_->io_budget());
  const auto reserves = [&] {
    io->Open();
    return io->GrowBy(writer).ok() || !has_others;
  };
  if (limit == 0) return reserves() ? std::make_unique<PartShare>(this, key, 0, 0, std::move(io)) : nullptr;
  const uint64_t all = limit - std::min(limit, spill_->io_bytes());
  uint64_t left = all - std::min(all, shared_bytes_ + spilled_->kept_bytes());
  const uint64_t least = spilled_->LeastBytes(), wanted = 2 * std::max(spilled_->table_bytes(), least);
  if (left < wanted && spilled_->kept_bytes() != 0) {
    QUERN_RETURN_IF_ERROR(spilled_->FreeKept(wanted - left));
    left = all - std::min(all, shared_bytes_ + spilled_->kept_bytes());
  }
  uint64_t bytes = std::min(all / (num_readers_ + 1), left / 2);
  if (bytes < least && has_others) return nullptr;
  if (!has_others) bytes = std::max(bytes, kLeastBytes);
  if (!spill_->HasRoom(writer)) QUERN_RETURN_IF_ERROR(spilled_->FreeKept(writer));
  if (!reserves()) return nullptr;
  return std::make_unique<PartShare>(this, key, bytes, bytes + writer, std::move(io));
}

// Aggregates the next partition that no reader has taken; null: there is none. One that is larger than its share of the
// memory is divided again, until it has a single group; of that one, values that do not fit stay in the files.
absl::StatusOr<std::shared_ptr<HashAggregate>> HashAggregate::NextPart(const ReaderShare& key, GroupColumns columns,
                                                                       std::unique_ptr<PartShare>* share) {
  QUERN_ASSIGN_OR_RETURN(*share, NextShare(key));
  if (*share == nullptr) return nullptr;
  SpilledGroups::Taken taken = spilled_->Take(key.first, key.second, (*share)->io_budget());
  if (taken.kept == nullptr && taken.rows == nullptr) return nullptr;
  if (columns != GroupColumns::kResults || !descriptor_->has_parts()) return PartOf(taken, **share);
  const uint64_t bytes = (*share)->bytes();
  if (bytes == 0 || taken.rows->rows().num_bytes() < bytes / thresholds::kPartsToMerge) {
    absl::StatusOr<std::shared_ptr<HashAggregate>> part = PartOf(taken, **share);
    if (!absl::IsResourceExhausted(part.status())) return part;
    taken.rows->Rewind();
  }
  QUERN_ASSIGN_OR_RETURN(std::shared_ptr<HashAggregate> part, PartOfOneGroup(taken, **share));
  if (part != nullptr) return part;
  taken.rows->Rewind();
  return PartOf(taken, **share);
}

std::shared_ptr<HashAggregate> HashAggregate::NewPart(const SpilledGroups::Taken& taken, const PartShare& share) {
  AggregateOptions options = options_;
  options.expected_groups = taken.expected_groups;
  auto part = std::make_shared<HashAggregate>(descriptor_, entry_points_, code_, BudgetWithin(budget_, share.bytes()),
                                              options, texts());
  part->SetPart(taken.part, spilled_.get(), share.io_budget());
  StopTogether(part.get());
  return part;
}

absl::StatusOr<std::shared_ptr<HashAggregate>> HashAggregate::PartOf(const SpilledGroups::Taken& taken,
                                                                     const PartShare& share) {
  std::shared_ptr<HashAggregate> part = NewPart(taken, share);
  part->SetSpill(spill_);
  if (taken.kept != nullptr) {
    if (taken.rows != nullptr) QUERN_RETURN_IF_ERROR(taken.rows->Begin());
    QUERN_RETURN_IF_ERROR(AppendKept(taken, part.get()));
  }
  const size_t num_keys = descriptor_->spec().keys.size();
  while (taken.rows != nullptr) {
    BatchView rows;
    QUERN_ASSIGN_OR_RETURN(const bool more, taken.rows->Next(&rows));
    if (!more) break;
    if (descriptor_->has_whole_tuples()) {
      QUERN_RETURN_IF_ERROR(part->Append(rows, RowKind::kTuples));
      continue;
    }
    DivideColumns(num_keys, &rows);
    QUERN_RETURN_IF_ERROR(part->Append(rows, RowKind::kStates));
  }
  QUERN_RETURN_IF_ERROR(part->Finalise());
  return part;
}

// A partition of one group, most of whose values stay in the files; null: it has several groups, most likely.
absl::StatusOr<std::shared_ptr<HashAggregate>> HashAggregate::PartOfOneGroup(const SpilledGroups::Taken& taken,
                                                                             const PartShare& share) {
  const AggregationSpec& spec = descriptor_->spec();
  const size_t num_keys = spec.keys.size();
  std::shared_ptr<HashAggregate> part = NewPart(taken, share);
  std::map<size_t, NoValues> no_values;
  for (size_t a = 0; a < spec.aggregates.size(); ++a)
    if (descriptor_->has_parts(a)) no_values.emplace(a, NoValues(*descriptor_, a));
  while (true) {
    BatchView rows;
    QUERN_ASSIGN_OR_RETURN(const bool more, taken.rows->Next(&rows));
    if (!more) break;
    DivideColumns(num_keys, &rows);
    for (auto& [a, column] : no_values) rows.payload[a] = column.Column(rows.num_rows);
    QUERN_RETURN_IF_ERROR(part->Append(rows, RowKind::kStates));
    if (part->num_groups_so_far() > 1) return nullptr;
  }
  QUERN_RETURN_IF_ERROR(part->Finalise());
  const std::vector<ColumnType> types = AggregateOutputTypes(spec);
  part->results_of_parts_ = std::make_unique<OutputBatch>(types, 1, part->budget_);
  QUERN_RETURN_IF_ERROR(part->results_of_parts_->Reset());
  for (const auto& [a, column] : no_values) {
    StatesOfRows states(taken.rows.get(), num_keys + a);
    QuernOutColumn* const out = &part->results_of_parts_->columns()[num_keys + a];
    QUERN_RETURN_IF_ERROR(descriptor_->called(a)->FinaliseParts(&states, part->budget_, out, 0));
  }
  return part;
}

// Adds blocks that were kept, and frees each of them, unless other readers have them, too.
absl::Status HashAggregate::AppendKept(const SpilledGroups::Taken& taken, HashAggregate* part) {
  PartBlocks& kept = *taken.kept;
  for (size_t b = kept.memory.size(); b-- > 0;) {
    QuernColumn tuples = {};
    tuples.values = kept.spans[b].tuples;
    BatchView rows;
    rows.keys = {tuples};
    rows.num_rows = kept.spans[b].num_tuples;
    QUERN_RETURN_IF_ERROR(part->Append(rows, RowKind::kTuples));
    if (taken.is_shared) continue;
    kept.spans.pop_back();
    kept.memory.pop_back();
  }
  return absl::OkStatus();
}

// ---- reading ------------------------------------------------------------------------------------------------------

struct GroupReader::State : OnOwnLines {
  // Of groups that come out any number of times.
  struct Copies {
    uint64_t left[kScanRows];      // of each group that was found, still to come out
    uint8_t* repeated[kScanRows];  // the next groups, each as often as it comes out
  };
  explicit State(std::shared_ptr<CounterSet> set) : counters(std::move(set)) {}

  CounterBlock counters;
  GroupColumns columns;
  uint32_t partition;
  uint32_t num_partitions;
  uint64_t next = 0;  // position within the morsel
  uint64_t end = 0;
  size_t table = 0;
  uint8_t* groups[kScanRows];  // that were found
  uint32_t first_group = 0;    // groups not yet given out: num_groups of them, from here on
  uint32_t num_groups = 0;
  CopiesOf copies_of = nullptr;
  std::unique_ptr<Copies> copies;                   // only with copies_of
  std::vector<QuernOutColumn> before;               // WriteFitting: the columns as they were before
  std::unique_ptr<HashAggregate::PartShare> share;  // of the memory, for:
  std::unique_ptr<GroupReader> part;                // of the partition that is read, where groups were spilled
};

GroupReader::GroupReader(std::shared_ptr<HashAggregate> aggregate, GroupColumns columns, uint32_t partition,
                         uint32_t num_partitions)
    : aggregate_(std::move(aggregate)), state_(std::make_unique<State>(aggregate_->counters_)) {
  state_->columns = columns;
  state_->partition = partition;
  state_->num_partitions = std::max(num_partitions, 1u);
  ++aggregate_->num_readers_;
}

GroupReader::~GroupReader() { --aggregate_->num_readers_; }

void GroupReader::SetCopies(CopiesOf copies_of) {
  state_->copies_of = copies_of;
  state_->copies = copies_of == nullptr ? nullptr : std::make_unique_for_overwrite<State::Copies>();
}

// Keeps those of n groups that come out at all; returns their number.
uint32_t GroupReader::CountCopies(uint32_t n, uint8_t** groups) const {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t copies = state_->copies_of(*aggregate_->descriptor_, groups[i]);
    groups[kept] = groups[i];
    state_->copies->left[kept] = copies;
    kept += copies != 0;
  }
  return kept;
}

// Lists the next rows, up to `most`; returns their number.
uint32_t GroupReader::Repeat(uint64_t most) {
  State& s = *state_;
  uint32_t n = 0;
  most = std::min<uint64_t>(most, kScanRows);
  for (uint32_t g = s.first_group; g < s.first_group + s.num_groups && n < most; ++g) {
    const auto copies = static_cast<uint32_t>(std::min(s.copies->left[g], most - n));
    std::fill_n(s.copies->repeated + n, copies, s.groups[g]);
    n += copies;
  }
  return n;
}

// Drops the first rows of those that Repeat would list.
void GroupReader::Consume(uint32_t num_rows) {
  State& s = *state_;
  while (num_rows != 0) {
    const auto copies = static_cast<uint32_t>(std::min<uint64_t>(s.copies->left[s.first_group], num_rows));
    s.copies->left[s.first_group] -= copies;
    num_rows -= copies;
    if (s.copies->left[s.first_group] != 0) return;
    ++s.first_group;
    --s.num_groups;
  }
}

// Takes the next morsel of positions from those that readers of one partition share. Returns whether there was one.
bool GroupReader::NextMorsel() {
  const HashAggregate::Result& result = *aggregate_->result_;
  State& s = *state_;
  const uint64_t num_positions = result.first_positions.back();
  const uint64_t begin = aggregate_->TakePositions(s.partition, s.num_partitions, kMorselPositions);
  if (begin >= num_positions) return false;
  s.next = begin;
  s.end = std::min(begin + kMorselPositions, num_positions);
  const auto after = std::upper_bound(result.first_positions.begin(), result.first_positions.end(), s.next);
  s.table = static_cast<size_t>(after - result.first_positions.begin()) - 1;
  return true;
}

// Finds the groups of the next positions, once all earlier ones are given out; returns whether there were positions
// left.
bool GroupReader::FindGroups() {
  State& s = *state_;
  if (s.next == s.end && !NextMorsel()) return false;
  const HashAggregate::Result& result = *aggregate_->result_;
  while (s.next >= result.first_positions[s.table + 1]) ++s.table;
  GroupTable* const table = result.tables[s.table].get();
  const uint64_t first = result.first_positions[s.table], begin = s.next - first;
  const uint64_t end = std::min({begin + kScanRows, s.end - first, result.first_positions[s.table + 1] - first});
  const uint32_t n = table->Scan(begin, end, s.groups);
  s.next = first + end;
  s.first_group = 0;
  s.num_groups = s.num_partitions == 1 || n == 0 ? n : KeepPartition(n, s.groups);
  if (s.copies_of != nullptr) s.num_groups = CountCopies(s.num_groups, s.groups);
  return true;
}

// Keeps those of n groups that belong to our partition; returns their number.
uint32_t GroupReader::KeepPartition(uint32_t n, uint8_t** groups) const {
  uint64_t hashes[kScanRows];  // those of tables differ from process to process
  HashKeys(*aggregate_->descriptor_, *aggregate_->result_->dictionaries, groups, n, hashes);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i) {
    groups[kept] = groups[i];
    kept += PartitionOf(hashes[i], state_->num_partitions) == state_->partition;
  }
  return kept;
}

// Writes groups to all columns, from row out_row on; returns how many fit all of them.
absl::StatusOr<uint32_t> GroupReader::WriteGroups(uint8_t* const* tuples, uint32_t n, OutputBatch* out,
                                                  uint64_t out_row) {
  const AggregateDescriptor& descriptor = *aggregate_->descriptor_;
  const size_t num_keys = descriptor.spec().keys.size();
  uint32_t fit = n;
  for (size_t c = 0; c < out->num_columns() && fit > 0; ++c) {
    QuernOutColumn* column = &out->columns()[c];
    absl::StatusOr<uint32_t> written = 0;
    if (c < num_keys)
      written = WriteKey(descriptor, *aggregate_->result_->dictionaries, c, tuples, fit, column, out_row);
    else if (state_->columns == GroupColumns::kStates)
      written = WriteStates(descriptor, c - num_keys, tuples, fit, column, out_row);
    else if (aggregate_->results_of_parts_ != nullptr && descriptor.has_parts(c - num_keys))
      written = CopyResult(*aggregate_->results_of_parts_, c, fit, column, out_row);
    else written = WriteResults(descriptor, c - num_keys, tuples, fit, column, out_row, aggregate_->options_.host);
    QUERN_RETURN_IF_ERROR(written.status());
    fit = std::min(fit, *written);
  }
  return fit;
}

// Like WriteGroups, but leaves no trace of groups that do not fit: where a string column reaches the limit of its
// offsets, or finds no memory, the columns before it have received more groups, so all columns are written again with
// as many as fit.
absl::StatusOr<uint32_t> GroupReader::WriteFitting(uint8_t* const* tuples, uint32_t n, OutputBatch* out,
                                                   uint64_t out_row) {
  state_->before.assign(out->columns(), out->columns() + out->num_columns());
  const auto restore = [&] {
    for (size_t c = 0; c < out->num_columns(); ++c) {
      out->columns()[c].num_bytes = state_->before[c].num_bytes;
      out->columns()[c].null_count = state_->before[c].null_count;
    }
  };
  absl::StatusOr<uint32_t> fit = WriteGroups(tuples, n, out, out_row);
  // Where memory is refused for the strings of all of them, fewer groups may have some: the batch ends with these.
  for (uint32_t some = n; absl::IsResourceExhausted(fit.status()) && some > 1;) {
    some /= 2;
    restore();
    fit = WriteGroups(tuples, some, out, out_row);
  }
  if (absl::IsResourceExhausted(fit.status()) && out_row != 0) fit = 0;
  if (!fit.ok() || *fit == n) return fit;
  restore();
  return *fit == 0 ? 0 : WriteGroups(tuples, *fit, out, out_row);
}

// How many groups may be added to a batch with `written` ones. Of a partition that was spilled, long strings end a
// batch, as memory is short.
uint64_t GroupReader::RowsWithoutGrowth(uint64_t written, OutputBatch* out) const {
  constexpr uint64_t kShare = 4;  // of the memory that is set aside
  if (aggregate_->part_.level == 0 || aggregate_->spill_ == nullptr) return kScanRows;
  out->set_num_rows(written);
  const uint64_t most_bytes = aggregate_->spill_->io_bytes() / kShare;
  return StringBytes(*out) >= most_bytes ? 0 : RowsThatFit(*out, most_bytes, kScanRows);
}

// Groups are written as they are found, while their tuples are in the cache. Returns whether there are more groups than
// the batch holds.
absl::StatusOr<bool> GroupReader::WriteBatch(OutputBatch* out) {
  State& s = *state_;
  uint64_t written = 0;
  bool more = true;
  while (written < out->capacity()) {
    if (s.num_groups == 0) {
      more = FindGroups();
      if (!more) break;
      continue;
    }
    const uint64_t room = std::min(out->capacity() - written, RowsWithoutGrowth(written, out));
    if (room == 0) break;
    const bool once = s.copies_of == nullptr;
    const uint32_t n = once ? static_cast<uint32_t>(std::min<uint64_t>(s.num_groups, room)) : Repeat(room);
    uint8_t* const* const rows = once ? s.groups + s.first_group : s.copies->repeated;
    QUERN_ASSIGN_OR_RETURN(const uint32_t fit, WriteFitting(rows, n, out, written));
    written += fit;
    if (once) {
      s.first_group += fit;
      s.num_groups -= fit;
    } else {
      Consume(fit);
    }
    if (fit == n) continue;
    if (written == 0) {
      return absl::ResourceExhaustedError(
          "value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
    }
    break;
  }
  out->set_num_rows(written);
  return more || s.num_groups > 0;
}

absl::StatusOr<bool> GroupReader::NextSpilled(OutputBatch* out) {
  State& s = *state_;
  uint64_t counted = 0;
  while (true) {
    if (s.part == nullptr) {
      s.share.reset();
      QUERN_ASSIGN_OR_RETURN(const std::shared_ptr<HashAggregate> part,
                             aggregate_->NextPart({s.partition, s.num_partitions}, s.columns, &s.share));
      if (part == nullptr) {
        s.share.reset();
        QUERN_RETURN_IF_ERROR(out->Reset());
        out->set_num_rows(counted);
        return false;
      }
      s.part = std::make_unique<GroupReader>(part, s.columns, s.partition, s.num_partitions);
      s.part->SetCopies(s.copies_of);
    }
    QUERN_ASSIGN_OR_RETURN(const bool more, s.part->Next(out));
    if (!more) s.part.reset();
    if (out->num_columns() == 0) counted += out->num_rows();
    else if (out->num_rows() != 0) return true;
  }
}

absl::StatusOr<bool> GroupReader::Next(OutputBatch* out) {
  const CallTimer timer(&state_->counters);
  if (!aggregate_->is_finalised()) {
    return absl::FailedPreconditionError("groups before finalise: they are not complete; accepted: finalise first");
  }
  const AggregationSpec& spec = aggregate_->descriptor_->spec();
  const size_t num_aggregates = state_->columns == GroupColumns::kKeys ? 0 : spec.aggregates.size();
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, spec.keys.size() + num_aggregates));
  QUERN_RETURN_IF_ERROR(out->Reset());
  if (aggregate_->merger_->has_spilled()) return NextSpilled(out);
  if (out->num_columns() != 0) return WriteBatch(out);
  uint64_t counted = 0;
  for (bool more = true; more; more = FindGroups()) {
    const State& s = *state_;
    const uint64_t* const left = s.copies == nullptr ? nullptr : s.copies->left + s.first_group;
    counted += left == nullptr ? s.num_groups : std::accumulate(left, left + s.num_groups, uint64_t{0});
    state_->num_groups = 0;
  }
  out->set_num_rows(counted);
  return false;
}

uint64_t HashAggregate::TakePositions(uint32_t partition, uint32_t num_partitions, uint64_t n) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t& next = next_positions_[{partition, num_partitions}];
  const uint64_t taken = next;
  next += n;
  return taken;
}

}  // namespace quern
