// SPDX-License-Identifier: Apache-2.0
// What a thread does with its groups where memory is refused. Groups of a fixed size move to blocks by partition, of
// which those that find no room are written (tuple_blocks.h); where groups hardly repeat, so do rows, as groups of one
// row each. Other groups are all written (spilled_groups.h). Then the thread begins again without any.
#include <algorithm>
#include <utility>

#include "runtime/aggregate/group_keys.h"
#include "runtime/aggregate/local_groups.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/string_bytes.h"

namespace quern {
namespace {

constexpr ColumnType kSavedType = {.id = TypeId::kBinary};  // of saved states

}  // namespace

void LocalGroups::SpillTo(std::shared_ptr<SpilledGroups> spilled) {
  spilled_ = std::move(spilled);
  constexpr uint64_t kShare = 32, kMostShare = 8, kLeast = 256 << 10, kMost = 2 << 20;
  constexpr uint64_t kDictionaryShare = 8, kMostWithoutLimit = 8 << 20;
  const uint64_t limit = context_.budget->limit_bytes();
  most_dictionary_bytes_ = limit == 0 ? kMostWithoutLimit : limit / kDictionaryShare;
  reserve_bytes_ = limit == 0 ? kMost : std::min(std::clamp(limit / kShare, kLeast, kMost), limit / kMostShare);
  // Blocks are kept when this state has ended, and so count in the job's own budget.
  if (context_.descriptor->has_whole_tuples() && context_.budget->has_limit())
    blocks_ = spilled_->NewBlocks(format_.prefetch_bytes, context_.budget);
  reserve_.emplace(context_.budget);
  context_.budget = reserve_->budget();
  begun_tuples_.resize(kMaxBatchRows);
  BeginAgain(context_.options.expected_groups);
  HoldReserve();
  spilled_->holders()->Add(this);
}

LocalGroups::~LocalGroups() {
  if (spilled_ != nullptr) spilled_->holders()->Remove(this);
}

absl::Status LocalGroups::SpillOrAsk(bool* is_at_work) {
  const std::unique_lock<std::mutex> lock(at_work_, std::try_to_lock);
  *is_at_work = !lock.owns_lock();
  if (*is_at_work) asked_.store(true, std::memory_order_relaxed);
  if (*is_at_work || table_ == nullptr || begun_.num_rows != 0) return absl::OkStatus();
  FreeReserve();
  if (has_memory()) QUERN_RETURN_IF_ERROR(LetGo());
  // Between two batches no row has numbers.
  if (spilled_->is_used() && dictionaries_->has_any() && !has_groups()) dictionaries_ = series_->After(dictionaries_);
  return absl::OkStatus();
}

// Once groups have been written, all are, and nothing but groups in memory refers to a value's number. Dictionaries
// that take little are kept, since the same values are likely to come again.
absl::Status LocalGroups::LeaveFullDictionaries(bool is_refused, Keys* keys) {
  if (spilled_ == nullptr || begun_.num_rows != 0 || dictionaries_->bytes() == 0) return absl::OkStatus();
  if (is_refused) spilled_->BeginWriting();
  else if (!spilled_->is_used() || dictionaries_->bytes() <= most_dictionary_bytes_) return absl::OkStatus();
  if (has_groups()) QUERN_RETURN_IF_ERROR(SpillAndHold());
  dictionaries_ = series_->After(dictionaries_);
  for (KeyDictionaries::Numbers& numbers : keys->numbers) numbers.clear();
  return absl::OkStatus();
}

absl::Status LocalGroups::FreeMemory(const absl::Status& refused) {
  if (spilled_ == nullptr || !absl::IsResourceExhausted(refused)) return refused;
  const std::lock_guard<std::mutex> at_work(at_work_);
  if (table_ != nullptr && begun_.num_rows == 0 && has_memory()) return LetGoAndHold();
  if (++num_refusals_ > thresholds::kStarvedTries) return refused;
  QUERN_ASSIGN_OR_RETURN(const bool may_have_room, spilled_->holders()->SpillOthers(this));
  return may_have_room ? absl::OkStatus() : refused;
}

absl::Status LocalGroups::SpillIfAsked() {
  if (begun_.num_rows != 0) return absl::OkStatus();
  asked_.store(false, std::memory_order_relaxed);
  return has_memory() ? LetGo() : absl::OkStatus();
}

uint64_t LocalGroups::group_bytes() const {
  const uint64_t table_bytes = table_ == nullptr ? 0 : table_->bytes();
  return table_bytes + (blocks_ == nullptr ? 0 : blocks_->bytes()) +
         parts_.num_tuples() * context_.descriptor->group()->tuple_bytes;
}

// ---- parts ----------------------------------------------------------------------------------------------------------

bool LocalGroups::is_partitioned() const { return uses_blocks_ || parts_.is_partitioned(); }

uint64_t LocalGroups::num_tuples_of(uint64_t part) const {
  if (uses_blocks_) return blocks_->num_tuples_of(part);
  uint64_t n = 0;
  for (const TupleSpan& span : parts_.parts()[part]) n += span.num_tuples;
  return n;
}

TupleList* LocalGroups::mutable_part(uint64_t part) {
  return uses_blocks_ ? blocks_->mutable_spans(part) : parts_.mutable_part(part);
}

void LocalGroups::FreePart(uint64_t part) {
  if (uses_blocks_) blocks_->FreePart(part);
}

void LocalGroups::DropParts() {
  parts_.Clear();
  old_parts_.clear();
  blocks_.reset();
}

// ---- making room ----------------------------------------------------------------------------------------------------

// As many of the next n rows as the reserve has room for: a group for each, its key, and a value for each of its
// states, in pieces of a power of two, with the piece that it replaces. At least one, whatever it takes.
uint32_t LocalGroups::RowsWithinReserve(const BatchView& batch, RowKind kind, const QuernColumn* keys,
                                        uint32_t n) const {
  constexpr uint64_t kTimesTuple = 4, kTimesString = 4;
  if (spilled_ == nullptr) return n;
  const AggregationSpec& spec = context_.descriptor->spec();
  const auto bytes_of = [&](uint32_t rows) {
    const uint64_t first = batch.selection == nullptr ? taken_rows_ : 0;
    const uint32_t* const selection = batch.selection == nullptr ? nullptr : batch.selection + taken_rows_;
    uint64_t strings = 0;
    const auto add = [&](const ColumnType& type, const QuernColumn& column) {
      strings += StringBytesOf(type, column, first, selection, rows);
    };
    for (size_t k = 0; k < spec.keys.size(); ++k)
      if (!dictionaries_->has(k)) add(spec.keys[k].type, keys[k]);
    for (size_t a = 0; a < spec.aggregates.size(); ++a) {
      if (context_.descriptor->called(a) == nullptr) continue;
      if (kind == RowKind::kStates) add(kSavedType, batch.payload[a]);
      for (size_t i = 0; kind == RowKind::kInput && i < spec.aggregates[a].arguments.size(); ++i)
        if (const auto& places = context_.descriptor->columns(a); !places.is_computed)  // strings never are
          add(spec.aggregates[a].arguments[i], batch.payload[places.arguments[i]]);
    }
    return kTimesTuple * rows * context_.descriptor->group()->tuple_bytes + kTimesString * strings;
  };
  while (n > 1 && bytes_of(n) > reserve_bytes_) n /= 2;
  return n;
}

// None where that is refused.
void LocalGroups::HoldReserve() {
  if (reserve_->reserved_bytes() == 0) (void)reserve_->GrowBy(reserve_bytes_);
}

void LocalGroups::FreeReserve() {
  if (reserve_.has_value()) reserve_->GiveBack();
  is_reserve_open_ = false;
}

absl::Status LocalGroups::LetGoAndHold() {
  FreeReserve();
  QUERN_RETURN_IF_ERROR(LetGo());
  HoldReserve();
  return absl::OkStatus();
}

// Frees some of the memory: that of blocks first, unless the table has taken enough rows to show that each of them is
// a group of its own.
absl::Status LocalGroups::LetGo() {
  const uint64_t bytes = blocks_ == nullptr ? 0 : blocks_->bytes();
  if (bytes == 0 || (table_->bytes() > BytesToFree(bytes) && RowsAreGroups())) return Spill();
  return Lost(WithoutBadAlloc([&] { return blocks_->Free(BytesToFree(bytes)); }));
}

// After a refusal: returns OK where it may be tried again. A block that has begun is completed first, with the reserve,
// since its groups cannot leave before all their states have its rows. Groups that the block has only made leave with
// states of no rows, which change nothing.
absl::Status LocalGroups::MakeRoom(const absl::Status& refused) {
  if (spilled_ == nullptr || !absl::IsResourceExhausted(refused) || table_->is_broken() || memory_->is_broken())
    return refused;
  if (++num_refusals_ > thresholds::kStarvedTries) return refused;
  // Tuples of a block that only lack their place in the partitions leave with the groups.
  block_is_spilled_ = deals_ && begun_.num_rows != 0 && begun_.aggregate == overflowed_.size();
  if (block_is_spilled_) return SpillAndHold();
  if (begun_.num_rows == 0 && has_memory()) return LetGoAndHold();
  if (!std::exchange(is_reserve_open_, true)) {
    reserve_->Open();
    return absl::OkStatus();
  }
  if (begun_.num_rows != 0 && !deals_ && begun_ != written_within_) return SpillWithinBlock();
  if (begun_.num_rows == 0 && std::exchange(is_expecting_, false)) {  // more groups than there is memory for
    table_ = MakeGroupTable(context_, 0);
    return absl::OkStatus();
  }
  if (begun_.num_rows == 0 && dictionaries_->bytes() != 0 && !std::exchange(has_left_dictionaries_, true)) {
    leaves_dictionaries_ = true;
    return absl::OkStatus();
  }
  // Other threads have all the memory.
  QUERN_ASSIGN_OR_RETURN(const bool may_have_room, spilled_->holders()->SpillOthers(this));
  return may_have_room ? absl::OkStatus() : refused;
}

// The values of a state may need more than the reserve: an array doubles. So the groups leave with what they have of
// the block. Its other rows find their groups again, in an empty table.
absl::Status LocalGroups::SpillWithinBlock() {
  const Begun begun = begun_;
  QUERN_RETURN_IF_ERROR(SpillAndHold());
  begun_ = written_within_ = begun;
  lacks_begun_tuples_ = true;
  return absl::OkStatus();
}

absl::Status LocalGroups::SpillAndHold() {
  FreeReserve();
  QUERN_RETURN_IF_ERROR(Spill());
  HoldReserve();
  return absl::OkStatus();
}

absl::Status LocalGroups::Spill() {
  if (table_ == nullptr) return absl::OkStatus();
  CountTable();
  if (blocks_ != nullptr) {
    const uint64_t num_rows = num_rows_ - num_rows_before_;
    if (num_rows != 0) expected_groups_ = std::max(expected_groups_, ExpectedGroups(num_rows, table_->num_groups()));
    if (RowsAreGroups()) DoWithoutTable(num_rows);
    QUERN_RETURN_IF_ERROR(MoveToBlocks());
  } else {
    QUERN_RETURN_IF_ERROR(WithSpiller([this](GroupSpiller* spiller) { return WriteAll(spiller); }));
  }
  BeginAgain(0);
  return absl::OkStatus();
}

// Whether nearly each row that came since the last time was a group of its own.
bool LocalGroups::RowsAreGroups() const {
  const uint64_t num_rows = num_rows_ - num_rows_before_, num_groups = table_->num_groups();
  return num_rows >= kMaxBatchRows &&
         static_cast<double>(num_groups) >= thresholds::kGroupsToWriteRows * static_cast<double>(num_rows);
}

// Where rows are groups of their own, looking for groups gains nothing: that many times the rows go to the blocks.
// Later rows may have fewer groups, so that a table is tried again. (Skipping partial aggregation as DataFusion does
// it.)
void LocalGroups::DoWithoutTable(uint64_t num_rows) {
  rows_without_table_ = thresholds::kTimesToWriteRows * num_rows;
  deals_ = false;
}

// Whether so much memory is in use that groups may have to be written, and so are to lie in blocks. What an account of
// the host has left is unknown.
bool LocalGroups::IsShortOfMemory() const {
  if (blocks_ == nullptr) return false;
  const MemoryBudget& budget = *spilled_->spill()->budget();
  return budget.limit_bytes() != 0 && budget.used_bytes() > budget.limit_bytes() / thresholds::kShortMemoryShare;
}

absl::Status LocalGroups::AddToBlocks(const Batch& batch, const KeyRows& rows) {
  uint8_t* tuples[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows];
  QUERN_RETURN_IF_ERROR(MakeDealt(batch, rows, tuples, hashes));
  QUERN_RETURN_IF_ERROR(Update(batch, rows, tuples));
  rows_without_table_ -= std::min<uint64_t>(rows_without_table_, rows.n);
  num_dealt_ += rows.n;
  return Lost(blocks_->Add(tuples, hashes, rows.n));
}

// Calls f(tuples, n) for all tuples of parts_, until it fails.
template <class F>
absl::Status LocalGroups::ForEachPartitioned(const F& f) {
  uint8_t* tuples[kScanRows];
  const uint32_t tuple_bytes = context_.descriptor->group()->tuple_bytes;
  for (const TupleList& part : parts_.parts()) {
    for (const TupleSpan& span : part) {
      for (uint64_t first = 0; first < span.num_tuples; first += kScanRows) {
        const auto n = static_cast<uint32_t>(std::min<uint64_t>(kScanRows, span.num_tuples - first));
        for (uint32_t i = 0; i < n; ++i) tuples[i] = span.tuples + (first + i) * tuple_bytes;
        QUERN_RETURN_IF_ERROR(f(tuples, n));
      }
    }
  }
  return absl::OkStatus();
}

// The same for the tuples of a block that was refused its place in parts_.
template <class F>
absl::Status LocalGroups::ForEachOfRefusedBlock(const F& f) {
  uint8_t* tuples[kScanRows];
  const uint32_t tuple_bytes = context_.descriptor->group()->tuple_bytes;
  for (uint32_t done = 0, n = 0; block_is_spilled_ && done < begun_.num_rows; done += n) {
    n = std::min(kScanRows, begun_.num_rows - done);
    for (uint32_t i = 0; i < n; ++i) tuples[i] = dealt_tuples_.data() + uint64_t{done + i} * tuple_bytes;
    QUERN_RETURN_IF_ERROR(f(tuples, n));
  }
  return absl::OkStatus();
}

absl::Status LocalGroups::AddToBlocks(uint8_t* const* tuples, uint32_t n) {
  uint64_t hashes[kScanRows];
  HashKeys(*context_.descriptor, *dictionaries_, tuples, n, hashes);
  return blocks_->Add(tuples, hashes, n);
}

// Adds all groups to the blocks, and begins a table without any.
absl::Status LocalGroups::MoveToBlocks() {
  uses_blocks_ = true;
  const absl::Status moved = WithoutBadAlloc([&]() -> absl::Status {
    QUERN_RETURN_IF_ERROR(
        ForEachPartitioned([this](uint8_t* const* tuples, uint32_t n) { return AddToBlocks(tuples, n); }));
    uint8_t* tuples[kScanRows];
    const uint64_t num_positions = table_->num_positions();
    for (uint64_t begin = num_merged_; begin < num_positions; begin += kScanRows) {
      const uint32_t n = table_->Scan(begin, std::min<uint64_t>(begin + kScanRows, num_positions), tuples);
      QUERN_RETURN_IF_ERROR(AddToBlocks(tuples, n));
      num_dealt_ += n;
    }
    return ForEachOfRefusedBlock([this](uint8_t* const* tuples, uint32_t n) { return AddToBlocks(tuples, n); });
  });
  if (!moved.ok()) return Lost(moved);
  parts_ = TupleStore(format_, context_.budget, context_.options.huge_pages);
  old_parts_.clear();
  table_.reset();
  table_ = MakeGroupTable(context_, 0);
  num_merged_ = 0;
  return absl::OkStatus();
}

// Merges groups of one row each, partition by partition (Compact).
absl::Status LocalGroups::CompactBlocks() {
  num_dealt_ = 0;
  for (uint64_t p = 0; p < blocks_->num_parts(); ++p) {
    QUERN_RETURN_IF_ERROR(MergePart(context_, blocks_->mutable_spans(p), table_.get(), &*memory_));
    blocks_->FreePart(p);
    QUERN_RETURN_IF_ERROR(MoveToBlocks());
  }
  compact_at_ = std::max(context_.options.compact_tuples, 2 * num_dealt_);
  return absl::OkStatus();
}

// Groups of which some were written, and others not, cannot be written again.
absl::Status LocalGroups::Lost(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? MemoryLost(status) : status;
}

absl::Status LocalGroups::SpillMerged(GroupTable* table) {
  return WithSpiller([&](GroupSpiller* spiller) { return WriteTable(table, 0, spiller); });
}

template <class Write>
absl::Status LocalGroups::WithSpiller(const Write& write) {
  std::unique_ptr<GroupSpiller> spiller = spilled_->TakeSpiller();
  absl::Status written = WithoutBadAlloc([&]() -> absl::Status {
    QUERN_RETURN_IF_ERROR(write(spiller.get()));
    return spiller->Flush(spilled_.get());
  });
  spilled_->GiveSpiller(std::move(spiller));
  return Lost(written);
}

absl::Status LocalGroups::WriteTable(GroupTable* table, uint64_t first_position, GroupSpiller* spiller) {
  uint8_t* tuples[kScanRows];
  const uint64_t num_positions = table->num_positions();
  for (uint64_t begin = first_position; begin < num_positions; begin += kScanRows) {
    const uint32_t n = table->Scan(begin, std::min<uint64_t>(begin + kScanRows, num_positions), tuples);
    QUERN_RETURN_IF_ERROR(spiller->Write(*dictionaries_, tuples, n, spilled_.get()));
  }
  return absl::OkStatus();
}

absl::Status LocalGroups::WriteAll(GroupSpiller* spiller) {
  if (table_ != nullptr) QUERN_RETURN_IF_ERROR(WriteTable(table_.get(), num_merged_, spiller));
  QUERN_RETURN_IF_ERROR(ForEachPartitioned([&](uint8_t* const* of_parts, uint32_t n) {
    return spiller->Write(*dictionaries_, of_parts, n, spilled_.get());
  }));
  return ForEachOfRefusedBlock([&](uint8_t* const* of_block, uint32_t n) {
    return spiller->Write(*dictionaries_, of_block, n, spilled_.get());
  });
}

// Without groups.
void LocalGroups::BeginAgain(uint64_t expected_groups) {
  table_.reset();  // before the next one takes memory
  begun_ = {};
  parts_ = TupleStore(format_, context_.budget, context_.options.huge_pages);
  emptied_.clear();
  old_parts_.clear();
  old_key_bytes_.clear();
  key_bytes_ = KeyBytes(context_);
  memory_.emplace(context_.budget, context_.options.host);
  is_expecting_ = expected_groups != 0;
  deals_ = false;
  num_dealt_ = num_merged_ = 0;
  num_rows_before_ = num_rows_;
  if (blocks_ == nullptr) expected_groups_ = 0;
  compact_at_ = context_.options.compact_tuples;
  table_ = MakeGroupTable(context_, expected_groups);
}

}  // namespace quern
