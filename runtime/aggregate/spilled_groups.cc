// SPDX-License-Identifier: Apache-2.0
// Each thread writes its groups when its memory ends, and begins again; a group may so be written several times. Groups
// that are whole tuples are written only as far as they do not fit (tuple_blocks.h), others all together:
//
//     thread 0    | groups 0 .. 999 | refused: written | groups 0 .. 850 | ..
//     thread 1    | groups 0 .. 990 | refused: written | ..
//     partitions  [0: 63 rows] [1: 58 rows] ..         later each on its own: states of equal keys are merged
//
// The partitions are ranges of the public hash. Those of a partition divided again are ranges of its range, so that a
// number of level 2 leads to that of level 1: 64 partitions each, partition 130 of 4096 is a part of partition 2.
#include "runtime/aggregate/spilled_groups.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/aggregate/group_keys.h"
#include "runtime/aggregate/group_states.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/aggregate/tables/packed_key_groups.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/key_partitions.h"
#include "runtime/spill/partitioned_tuples.h"

namespace quern {
namespace {

constexpr uint64_t kFewestRows = 256, kMostRows = 8192;  // that are divided at a time
constexpr uint64_t kGuessedColumnBytes = 24;
// Of the same memory, for tuples without a block: of those that leave first, and of a partition that is divided again.
constexpr uint64_t kLooseShare = 4, kLoosePartShare = 16;
constexpr uint64_t kWriterShare = 2;  // where groups are written as columns
// Shares of the memory that is set aside, for the rows of one thread: of all columns, as they are guessed, and of
// strings and states, whose buffers may be twice as large.
constexpr uint64_t kIoShare = 8, kStringShare = 16;
// Of these, what a single state may have, and what a part of one has at least.
constexpr uint64_t kStateShare = 4, kLeastStateBytes = 4096;
constexpr uint32_t kStepRows = 256;
constexpr uint64_t kMostParts = uint64_t{1} << 31;

uint64_t PartsOf(const SpillContext& spill, uint32_t level) {
  uint64_t parts = 1;
  for (uint32_t i = 0; i < level; ++i) parts *= spill.num_partitions();
  return parts;
}

// As many as are divided at a time.
uint64_t RowsAtATime(const AggregateDescriptor& descriptor, const SpillContext& spill) {
  const AggregationSpec& spec = descriptor.spec();
  const uint64_t row_bytes = descriptor.has_whole_tuples()
                                 ? descriptor.group()->tuple_bytes
                                 : (spec.keys.size() + spec.aggregates.size()) * kGuessedColumnBytes;
  return std::clamp(spill.io_bytes() / kIoShare / row_bytes, kFewestRows, kMostRows);
}

uint64_t LooseBytes(const AggregateDescriptor& descriptor, const SpillContext& spill, uint32_t level) {
  const uint64_t bytes = spill.io_bytes() / (level == 0 ? kLooseShare : kLoosePartShare);
  return std::max(bytes, LooseTuples::LeastBytes(descriptor.group()->tuple_bytes));
}

absl::Status TooLong() {
  return absl::ResourceExhaustedError(
      "keys or states to be spilled: more than 2147483647 bytes in 256 of them; accepted: large_utf8, large_binary, "
      "or fewer values a group");
}

}  // namespace

std::vector<ColumnType> SpilledGroupTypes(const AggregateDescriptor& descriptor) {
  if (!descriptor.has_whole_tuples()) return AggregateStateTypes(descriptor.spec());
  return {TupleType(descriptor.group()->tuple_bytes)};
}

// ---- writing --------------------------------------------------------------------------------------------------------

GroupSpiller::GroupSpiller(std::shared_ptr<const AggregateDescriptor> descriptor,
                           const std::shared_ptr<SpillContext>& spill, std::shared_ptr<MemoryBudget> budget)
    : descriptor_(std::move(descriptor)),
      spill_(spill),
      budget_(std::move(budget)),
      most_bytes_(spill->io_bytes() / kStringShare),
      most_state_bytes_(std::max(most_bytes_ / kStateShare, kLeastStateBytes)) {}

absl::Status GroupSpiller::Open() {
  if (rows_ == nullptr) {
    const std::vector<ColumnType> types = SpilledGroupTypes(*descriptor_);
    rows_ = std::make_unique<OutputBatch>(types, RowsAtATime(*descriptor_, *spill_), budget_);
    partitions_.reserve(rows_->capacity());
  }
  QUERN_RETURN_IF_ERROR(rows_->Reset());
  is_open_ = true;
  return absl::OkStatus();
}

absl::Status GroupSpiller::Write(const KeyDictionaries& dictionaries, uint8_t* const* tuples, uint32_t n,
                                 SpilledGroups* into) {
  dictionaries_ = &dictionaries;
  for (uint32_t done = 0; done < n;) {
    if (IsLarge(tuples[done])) {
      QUERN_RETURN_IF_ERROR(WriteInParts(tuples[done++], into));
      continue;
    }
    if (!is_open_) QUERN_RETURN_IF_ERROR(Open());
    const uint64_t room = std::min<uint64_t>(rows_->capacity() - rows_->num_rows(), n - done);
    const auto most = static_cast<uint32_t>(std::min(room, RowsThatFit(*rows_, most_bytes_, kStepRows)));
    uint32_t some = 1;
    while (some < most && !IsLarge(tuples[done + some])) ++some;
    QUERN_RETURN_IF_ERROR(WriteSome(tuples + done, some, into));
    done += some;
    QUERN_RETURN_IF_ERROR(FlushIfFull(into));
  }
  return absl::OkStatus();
}

absl::Status GroupSpiller::FlushIfFull(SpilledGroups* into) {
  const bool is_full = rows_->num_rows() == rows_->capacity() || StringBytes(*rows_) >= most_bytes_;
  return is_full ? Flush(into) : absl::OkStatus();
}

bool GroupSpiller::IsLarge(const uint8_t* tuple) const {
  if (!descriptor_->has_parts()) return false;
  for (size_t a = 0; a < descriptor_->spec().aggregates.size(); ++a) {
    const uint8_t* const state = tuple + descriptor_->get()->accumulators[a].state_offset;
    if (descriptor_->has_parts(a) && descriptor_->called(a)->SavedBytes(state) > most_state_bytes_) return true;
  }
  return false;
}

// Rows of the same group, until all values have been written; the states of the second and later ones have no others.
absl::Status GroupSpiller::WriteInParts(uint8_t* tuple, SpilledGroups* into) {
  std::vector<uint64_t> next(descriptor_->spec().aggregates.size(), 0);
  std::vector<uint64_t> copy((descriptor_->group()->tuple_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  auto* const others = reinterpret_cast<uint8_t*>(copy.data());
  std::memcpy(others, tuple, descriptor_->group()->tuple_bytes);
  ClearStates(*descriptor_, others);
  bool is_first = true, has_more = true;
  while (has_more) {
    if (!is_open_) QUERN_RETURN_IF_ERROR(Open());
    QUERN_ASSIGN_OR_RETURN(has_more, WritePart(tuple, is_first ? tuple : others, next.data()));
    AddRows(&tuple, 1, *into);
    is_first = false;
    QUERN_RETURN_IF_ERROR(FlushIfFull(into));
  }
  return absl::OkStatus();
}

// others: has the states that have no parts.
absl::StatusOr<bool> GroupSpiller::WritePart(uint8_t* tuple, uint8_t* others, uint64_t* next) {
  const size_t num_keys = descriptor_->spec().keys.size();
  const uint64_t at = rows_->num_rows();
  bool has_more = false;
  for (size_t c = 0; c < rows_->num_columns(); ++c) {
    QuernOutColumn* const column = &rows_->columns()[c];
    if (c >= num_keys && descriptor_->has_parts(c - num_keys)) {
      uint64_t* const of_state = &next[c - num_keys];
      QUERN_RETURN_IF_ERROR(
          WritePartOfState(*descriptor_, c - num_keys, tuple, most_state_bytes_, of_state, column, at));
      has_more |= *of_state != UINT64_MAX;
      continue;
    }
    QUERN_ASSIGN_OR_RETURN(const uint32_t fit, c < num_keys
                                                   ? WriteKey(*descriptor_, *dictionaries_, c, &tuple, 1, column, at)
                                                   : WriteStates(*descriptor_, c - num_keys, &others, 1, column, at));
    if (fit != 1) return TooLong();
  }
  return has_more;
}

absl::Status GroupSpiller::WriteColumns(uint8_t* const* tuples, uint32_t n, uint64_t at) {
  const size_t num_keys = descriptor_->spec().keys.size();
  for (size_t c = 0; c < rows_->num_columns(); ++c) {
    QuernOutColumn* const column = &rows_->columns()[c];
    QUERN_ASSIGN_OR_RETURN(const uint32_t fit, c < num_keys
                                                   ? WriteKey(*descriptor_, *dictionaries_, c, tuples, n, column, at)
                                                   : WriteStates(*descriptor_, c - num_keys, tuples, n, column, at));
    if (fit != n) return TooLong();
  }
  return absl::OkStatus();
}

absl::Status GroupSpiller::WriteSome(uint8_t* const* tuples, uint32_t n, SpilledGroups* into) {
  const uint64_t at = rows_->num_rows();
  if (descriptor_->has_whole_tuples()) {
    const uint32_t tuple_bytes = descriptor_->group()->tuple_bytes;
    uint8_t* const to = static_cast<uint8_t*>(rows_->columns()[0].values) + at * tuple_bytes;
    for (uint32_t i = 0; i < n; ++i) std::memcpy(to + uint64_t{i} * tuple_bytes, tuples[i], tuple_bytes);
  } else {
    QUERN_RETURN_IF_ERROR(WriteColumns(tuples, n, at));
  }
  AddRows(tuples, n, *into);
  return absl::OkStatus();
}

// That have been written.
void GroupSpiller::AddRows(uint8_t* const* tuples, uint32_t n, const SpilledGroups& into) {
  uint64_t hashes[kStepRows];
  HashKeys(*descriptor_, *dictionaries_, tuples, n, hashes);
  for (uint32_t i = 0; i < n; ++i) partitions_.push_back(into.PartOf(hashes[i]));
  rows_->set_num_rows(rows_->num_rows() + n);
}

absl::Status GroupSpiller::Flush(SpilledGroups* into) {
  if (!std::exchange(is_open_, false)) return absl::OkStatus();
  const absl::Status written = into->Append(ViewOf(*rows_), partitions_.data());
  partitions_.clear();
  if (HasOutgrown(*rows_, most_bytes_)) rows_.reset();
  return written;
}

SpilledGroups::SpilledGroups(std::shared_ptr<const AggregateDescriptor> descriptor, std::shared_ptr<SpillContext> spill,
                             const GroupPart& of, std::shared_ptr<MemoryBudget> budget)
    : descriptor_(std::move(descriptor)),
      spill_(std::move(spill)),
      budget_(std::move(budget)),
      types_(SpilledGroupTypes(*descriptor_)),
      of_(of),
      no_dictionaries_(descriptor_->spec(), nullptr),
      num_parts_(PartsOf(*spill_, of.level + 1)),
      kept_(spill_->num_partitions()),
      loose_(
          descriptor_->group()->tuple_bytes, spill_->num_partitions(), LooseBytes(*descriptor_, *spill_, of.level),
          budget_,
          [this](uint8_t* const* tuples, uint32_t n, uint64_t* parts) {
            HashKeys(*descriptor_, no_dictionaries_, tuples, n, parts);
            for (uint32_t i = 0; i < n; ++i) parts[i] = PartOf(parts[i]);
          },
          [this](uint32_t part, const BlockPieces& block, uint64_t n) { return WritePart(part, block, n); }) {}

uint64_t SpilledGroups::WriterBytes() const {
  const uint64_t written = descriptor_->has_whole_tuples() ? LooseBytes(*descriptor_, *spill_, of_.level + 1)
                                                           : spill_->io_bytes() / kWriterShare;
  return written + spill_->reader_bytes();
}

bool SpilledGroups::CanWrite(const AggregateDescriptor& descriptor, const SpillContext& spill, const GroupPart& of) {
  if (descriptor.spec().keys.empty()) return descriptor.has_parts() && of.level == 0;
  return PartsOf(spill, of.level + 1) <= kMostParts;
}

uint32_t SpilledGroups::PartOf(uint64_t hash) const {
  return PartitionOf(hash, static_cast<uint32_t>(num_parts_)) % spill_->num_partitions();
}

void SpilledGroups::BeginWriting() {
  if (is_used()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (writer_ != nullptr) return;
  writer_ = std::make_unique<PartitionedWriter>(spill_, types_, spill_->num_partitions(), budget_);
  spill_->CountLevel(of_.level + 1);
  is_used_.store(true, std::memory_order_release);
}

absl::Status SpilledGroups::Append(const BatchView& rows, const uint32_t* parts) {
  BeginWriting();
  num_groups_ += rows.num_rows;
  return writer_->Append(rows, parts);
}

absl::Status SpilledGroups::WritePart(uint32_t part, const BlockPieces& block, uint64_t num_tuples) {
  BeginWriting();
  num_groups_ += num_tuples;
  return writer_->Write(part, block, num_tuples);
}

absl::Status SpilledGroups::WriteTuples(uint8_t* const* tuples, uint32_t n) {
  BeginWriting();  // they are kept at first
  return loose_.Add(tuples, n);
}

bool SpilledGroups::CallBehind(const std::function<void()>& write) { return quern::CallBehind(spill_.get(), write); }

std::unique_ptr<TupleBlocks> SpilledGroups::NewBlocks(uint64_t prefetch_bytes, std::shared_ptr<MemoryBudget> budget) {
  const auto bits = static_cast<uint32_t>(std::countr_zero(spill_->num_partitions()));
  return std::make_unique<TupleBlocks>(descriptor_->group()->tuple_bytes, spill_->num_partitions(),
                                       64 - bits * (of_.level + 1), spill_->block_bytes(), prefetch_bytes,
                                       std::move(budget), this);
}

// Rows of strings and states may take as much as there is set aside for two.
uint32_t SpilledGroups::MostSpillers() const {
  constexpr uint64_t kShare = 4, kLeast = 2, kMost = 64;
  if (!descriptor_->has_whole_tuples()) return kLeast;
  const uint64_t bytes = RowsAtATime(*descriptor_, *spill_) * descriptor_->group()->tuple_bytes;
  return static_cast<uint32_t>(std::clamp(spill_->io_bytes() / kShare / bytes, kLeast, kMost));
}

std::unique_ptr<GroupSpiller> SpilledGroups::TakeSpiller() {
  std::unique_lock<std::mutex> lock(mutex_);
  spiller_given_.wait(lock, [this] { return !spillers_.empty() || num_spillers_ < MostSpillers(); });
  if (spillers_.empty()) {
    ++num_spillers_;
    return std::make_unique<GroupSpiller>(descriptor_, spill_, budget_);
  }
  std::unique_ptr<GroupSpiller> spiller = std::move(spillers_.back());
  spillers_.pop_back();
  return spiller;
}

void SpilledGroups::GiveSpiller(std::unique_ptr<GroupSpiller> spiller) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spillers_.push_back(std::move(spiller));
  spiller_given_.notify_one();
}

// A reader needs a table, and memory to write rows once more (HashAggregate::NextShare). Where the limit is unknown,
// nothing is kept.
absl::Status SpilledGroups::Finish(uint64_t num_readers, const AggregateOptions& options, const MemoryBudget& budget) {
  QUERN_RETURN_IF_ERROR(loose_.Finish());
  for (const auto& spiller : spillers_) QUERN_RETURN_IF_ERROR(spiller->Flush(this));
  spillers_.clear();
  parts_.resize(spill_->num_partitions());
  if (writer_ != nullptr) {
    QUERN_ASSIGN_OR_RETURN(std::vector<SpilledRows> parts, writer_->Finish());
    for (size_t p = 0; p < parts.size(); ++p)
      parts_[p] = parts[p].empty() ? nullptr : std::make_shared<SpilledRows>(std::move(parts[p]));
    writer_.reset();
  }
  if (!descriptor_->has_whole_tuples()) return absl::OkStatus();
  uint64_t most_groups = 0;
  for (size_t p = 0; p < parts_.size(); ++p) most_groups = std::max(most_groups, ExpectedGroupsOf(NumTuplesOf(p)));
  const uint32_t tuple_bytes = descriptor_->group()->tuple_bytes;
  table_bytes_ = uint64_t{tuple_bytes} << OpenGroupBits(most_groups, tuple_bytes, options);
  buffers_ = RowWriter::BuffersOf(*spill_, types_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (budget.limit_bytes() == 0) return FreeKeptLocked(kept_bytes());
  const uint64_t kept = kept_bytes(), most = spill_->most_kept_bytes();
  if (kept > most) QUERN_RETURN_IF_ERROR(FreeKeptLocked(kept - most));
  const uint64_t free = budget.limit_bytes() - std::min(budget.limit_bytes(), budget.used_bytes());
  const uint64_t wanted = (num_readers + 1) * table_bytes_ + num_readers * WriterBytes();
  return free >= wanted ? absl::OkStatus() : FreeKeptLocked(wanted - free);
}

absl::Status SpilledGroups::Keep(std::unique_ptr<TupleBlocks> blocks, uint64_t expected_groups) {
  const std::lock_guard<std::mutex> lock(mutex_);
  expected_groups_ = std::max(expected_groups_, expected_groups);
  QUERN_ASSIGN_OR_RETURN(const uint64_t num_tuples, kept_.Keep(blocks.get()));
  num_groups_ += num_tuples;
  return absl::OkStatus();
}

absl::Status SpilledGroups::FreeKept(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FreeKeptLocked(bytes);
}

absl::Status SpilledGroups::SpillOrAsk(bool* is_at_work) {
  *is_at_work = false;
  return FreeKept(BytesToFree(kept_bytes()));
}

absl::Status SpilledGroups::FreeKeptLocked(uint64_t bytes) {
  uint64_t freed = 0;
  for (size_t p = parts_.size(); p-- > 0 && freed < bytes;) {
    const auto write = [&](const BlockPieces& block, uint64_t num_tuples) -> absl::Status {
      if (!is_used_.exchange(true)) spill_->CountLevel(of_.level + 1);
      QUERN_ASSIGN_OR_RETURN(const SpilledBlock written, WriteBlock(spill_.get(), buffers_.get(), block, num_tuples));
      if (parts_[p] == nullptr) parts_[p] = std::make_shared<SpilledRows>();
      parts_[p]->Add(spill_, written);
      return absl::OkStatus();
    };
    QUERN_ASSIGN_OR_RETURN(const uint64_t some,
                           kept_.Free(static_cast<uint32_t>(p), bytes - freed, spill_->block_bytes(),
                                      descriptor_->group()->tuple_bytes, write));
    freed += some;
  }
  return absl::OkStatus();
}

uint64_t SpilledGroups::NumTuplesOf(size_t part) const {
  return (parts_[part] == nullptr ? 0 : parts_[part]->num_rows()) + kept_.num_tuples_of(static_cast<uint32_t>(part));
}

uint64_t SpilledGroups::ExpectedGroupsOf(uint64_t num_tuples) const {
  if (expected_groups_ == 0) return num_tuples;
  return std::min(num_tuples, expected_groups_ / num_parts_ + 1);
}

// ---- reading --------------------------------------------------------------------------------------------------------

// Readers of all groups take a partition for good. Others may share one: the groups of a partition of theirs lie in
// those that its range of hashes meets.
SpilledGroups::Taken SpilledGroups::Take(uint32_t partition, uint32_t num_partitions,
                                         const std::shared_ptr<MemoryBudget>& budget) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint32_t& next = next_[{partition, num_partitions}];
  while (next < parts_.size()) {
    const uint32_t number = next++;
    const uint64_t part = uint64_t{of_.part} * spill_->num_partitions() + number;
    // The ranges [part, part + 1) / num_parts_ and [partition, partition + 1) / num_partitions, and the rounding of
    // PartitionOf.
    const unsigned __int128 begin = static_cast<unsigned __int128>(part) * num_partitions, end = begin + num_partitions;
    const unsigned __int128 our_begin = static_cast<unsigned __int128>(partition) * num_parts_,
                            our_end = our_begin + num_parts_;
    if (end + 1 < our_begin || begin > our_end + 1 || NumTuplesOf(number) == 0) continue;
    Taken taken;
    taken.part = {of_.level + 1, static_cast<uint32_t>(part)};
    taken.is_shared = num_partitions != 1;
    if (descriptor_->has_whole_tuples()) taken.expected_groups = ExpectedGroupsOf(NumTuplesOf(number));
    taken.kept = taken.is_shared ? kept_.Share(number) : kept_.Take(number);
    std::shared_ptr<SpilledRows> rows = parts_[number];
    if (!taken.is_shared) {
      parts_[number].reset();
      const auto after = descriptor_->has_parts() ? RowReader::After::kKeep : RowReader::After::kFree;
      if (rows != nullptr) taken.rows = std::make_unique<RowReader>(spill_, types_, std::move(*rows), after, budget);
    } else if (rows != nullptr) {
      taken.rows = std::make_unique<RowReader>(spill_, types_, std::move(rows), budget);
    }
    return taken;
  }
  return {};
}

}  // namespace quern
