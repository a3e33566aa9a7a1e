// SPDX-License-Identifier: Apache-2.0
// Decides which of the packed-key tables holds the groups, and when that changes:
//
//     first batch's range small   --> dense  --- a word outside, range still small ---> dense, wider
//                                       |---- a word outside, all come in order ------> sorted
//                                       |---- a word outside, range large ------------> open
//     first batch in order        --> sorted --- a word smaller than the largest -----> open
//     else                        --> open   --- full, groups will fill a quarter of their range -> dense
//                                       |---- full ---------------------------------------------> open, larger
//
// "Small" grows with the rows seen, from 1,024 cells to 65,536, because a thousand rows must not pay for clearing a
// megabyte. A full table doubles, or grows by up to 8 times where the rows so far suggest so many groups.
#include "runtime/aggregate/tables/packed_key_groups.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/cpu.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/tuple_store.h"

namespace quern {
namespace {

constexpr uint64_t kFewestCells = thresholds::kFewestDenseCells;
constexpr uint64_t kMostCells = thresholds::kMostDenseCells;
constexpr uint64_t kMostKnownCells = thresholds::kMostKnownDenseCells;
constexpr uint64_t kMostForcedCells = thresholds::kMostForcedDenseCells;
constexpr uint64_t kCellsPerGroup = thresholds::kDenseCellsPerGroup;
// An array that moves grows by at least a quarter, or gives way to an open table. Otherwise, keys that arrive in order
// and fill just the share of their range that justifies an array would move all groups with every batch.
constexpr uint64_t kLeastSlackShare = 4;
constexpr uint64_t WithLeastSlack(uint64_t cells) { return cells + cells / kLeastSlackShare; }
constexpr uint64_t kFewestGroupsToChange = thresholds::kDenseAgainGroups;
constexpr uint32_t kFewestInOrder = thresholds::kSortedStartRows;
constexpr uint64_t kMostGrowth = thresholds::kMostTableGrowth;
constexpr uint32_t kMoveRows = 1024;
constexpr uint32_t kSampleRows = 64, kRowsPerRun = 2;  // a block has runs where its first rows change this rarely

uint32_t SlotBitsFor(uint64_t groups, uint32_t load_percent) {
  const uint64_t slots = std::max<uint64_t>(groups * 100 / load_percent + 1, 16);
  return static_cast<uint32_t>(std::bit_width(slots - 1));
}

uint64_t WordOf(const QuernRowLayout& group, const uint8_t* tuple) {
  return group.packed_bytes == 4 ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple);
}

void WordsOf(const QuernRowLayout& group, uint8_t* const* tuples, uint32_t n, uint64_t* words) {
  for (uint32_t i = 0; i < n; ++i) words[i] = WordOf(group, tuples[i]);
}

uint32_t ScanTable(SortedGroups* table, uint64_t begin, uint64_t end, uint64_t, uint8_t** tuples) {
  return table->Scan(begin, end, tuples);
}
template <class Table>
uint32_t ScanTable(Table* table, uint64_t begin, uint64_t end, uint64_t ahead_bytes, uint8_t** tuples) {
  return table->Scan(begin, end, ahead_bytes, tuples);
}

// Calls f(tuples, words, n) for all groups of a table that has Scan.
template <class Table, class F>
void ForEachGroup(const GroupContext& context, Table* table, uint64_t num_positions, F&& f) {
  const QuernRowLayout& group = *context.descriptor->group();
  uint8_t* tuples[kMoveRows];
  uint64_t words[kMoveRows];
  for (uint64_t begin = 0; begin < num_positions; begin += kMoveRows) {
    const uint64_t end = std::min(begin + kMoveRows, num_positions);
    const uint32_t n = ScanTable(table, begin, end, context.options.distances.scan_bytes, tuples);
    WordsOf(group, tuples, n, words);
    f(tuples, words, n);
  }
}

void CopyTuples(const QuernRowLayout& group, uint8_t* const* from, uint32_t n, uint8_t* const* to) {
  for (uint32_t i = 0; i < n; ++i) std::memcpy(to[i], from[i], group.tuple_bytes);
}

// Adds room at the end where a range has grown, so that keys that arrive in order do not move the array with every
// batch: 1/share of the range.
PackedKeyRanges WithSlack(const PackedKeyRanges& before, const PackedKeyRanges& now, uint64_t share) {
  PackedKeyRanges wider = now;
  for (size_t k = 0; k < now.digits.size(); ++k) {
    PackedKeyDigit& digit = wider.digits[k];
    if (digit.is_empty()) continue;
    const uint64_t slack = (digit.max - digit.min) / share;
    if (now.digits[k].max > before.digits[k].max) digit.max += std::min(slack, digit.mask - digit.max);
    if (now.digits[k].min < before.digits[k].min) digit.min -= std::min(slack, digit.min);
  }
  return wider;
}

}  // namespace

PackedKeyGroups::PackedKeyGroups(const GroupContext& context, uint64_t expected_groups)
    : context_(context), expected_groups_(expected_groups), few_(context.options.adapts) {}

uint64_t PackedKeyGroups::MaxCells() const {
  if (context_.options.layout == GroupLayout::kDense) return kMostForcedCells;
  return std::clamp(16 * rows_seen_, kFewestCells, kMostCells);
}

// The number of groups to make room for, given the present number.
uint64_t PackedKeyGroups::Expected(uint64_t groups) const {
  return std::min(ExpectedGroups(rows_seen_, groups), kMostGrowth * groups);
}

// Tables that stay in the L2 cache are filled half as far as others: there, a second probe costs more than space.
uint32_t OpenGroupBits(uint64_t groups, uint32_t tuple_bytes, const AggregateOptions& options) {
  const uint32_t roomy = SlotBitsFor(groups, options.load_percent / 2);
  const uint64_t roomy_bytes = uint64_t{tuple_bytes} << roomy;
  return roomy_bytes <= options.caches.l2_bytes ? roomy : SlotBitsFor(groups, options.load_percent);
}

uint32_t PackedKeyGroups::BitsFor(uint64_t groups) const {
  return OpenGroupBits(groups, context_.descriptor->group()->tuple_bytes, context_.options);
}

absl::Status PackedKeyGroups::Begin(const uint64_t* words, uint32_t n) {
  const QuernRowLayout& group = *context_.descriptor->group();
  PackedKeyRanges ranges(group);
  const std::vector<KeyRange>& known = context_.options.ranges;
  bool all_known = !ranges.digits.empty();
  for (size_t k = 0; k < ranges.digits.size(); ++k) {
    const bool is_known =
        k < known.size() && known[k].known && group.keys[k].storage != kF32 && group.keys[k].storage != kF64;
    all_known &= is_known;
    const PackedKeyDigit& digit = ranges.digits[k];
    if (is_known && known[k].min <= known[k].max) {
      ranges.Add(k, (static_cast<uint64_t>(known[k].min) & digit.mask) ^ digit.sign_bit,
                 (static_cast<uint64_t>(known[k].max) & digit.mask) ^ digit.sign_bit);
    }
  }
  ranges.Add(words, n);
  sorted_.Begin(group, context_.options.huge_pages, context_.budget);
  const GroupLayout layout = context_.options.layout;
  const uint64_t max_cells = all_known ? std::max(MaxCells(), kMostKnownCells) : MaxCells();
  if (layout != GroupLayout::kOpen && ranges.num_cells() <= max_cells) {
    const absl::Status begun = dense_.Begin(group, ranges, context_.options.huge_pages, context_.budget);
    if (begun.ok()) table_ = Table::kDense;
    if (!absl::IsResourceExhausted(begun)) return begun;  // other tables take as much as there are groups
  }
  if (layout == GroupLayout::kAuto && n >= kFewestInOrder && sorted_.IsInOrder(words, n)) {
    table_ = Table::kSorted;
    return absl::OkStatus();
  }
  const uint64_t groups = std::max<uint64_t>(expected_groups_, n);
  QUERN_RETURN_IF_ERROR(
      open_.Begin(group, BitsFor(groups), context_.common_bits, context_.options.huge_pages, context_.budget));
  table_ = Table::kOpen;
  return absl::OkStatus();
}

absl::Status PackedKeyGroups::BecomeOpen(uint64_t groups) {
  const QuernRowLayout& group = *context_.descriptor->group();
  OpenGroups open;
  const uint64_t wanted = std::max(groups + num_groups(), expected_groups_);
  QUERN_RETURN_IF_ERROR(
      open.Begin(group, BitsFor(wanted), context_.common_bits, context_.options.huge_pages, context_.budget));
  absl::Status status;
  const auto move = [&](uint8_t* const* from, const uint64_t* words, uint32_t n) {
    if (status.ok()) status = MoveGroups(from, words, n, &open);
  };
  if (table_ == Table::kDense) ForEachGroup(context_, &dense_, dense_.num_cells(), move);
  else ForEachGroup(context_, &sorted_, sorted_.num_groups(), move);
  QUERN_RETURN_IF_ERROR(status);
  if (table_ == Table::kDense) dense_.Free();
  else sorted_.Free();
  open_ = std::move(open);
  table_ = Table::kOpen;
  ++num_growths_;
  return absl::OkStatus();
}

// Copies groups to an open table, which has room.
absl::Status PackedKeyGroups::MoveGroups(uint8_t* const* from, const uint64_t* words, uint32_t n,
                                         OpenGroups* to) const {
  uint8_t* found[kMoveRows];
  const PrefetchSetting setting = SettingOf(PrefetchLoop::kUpdateOpen, to->bytes());
  if (to->Find(words, n, setting, found).too_far) {
    QUERN_RETURN_IF_ERROR(to->Rehash(context_.options.huge_pages, context_.budget));
    to->Find(words, n, setting, found);
  }
  CopyTuples(*context_.descriptor->group(), from, n, found);
  return absl::OkStatus();
}

// Whether the last word lies behind a dense table of one key; only in this case is the order checked before any group
// of the batch is made.
bool PackedKeyGroups::EndsBehind(const uint64_t* words, uint32_t n) const {
  const std::vector<PackedKeyDigit>& digits = dense_.ranges().digits;
  return digits.size() == 1 && digits[0].null_bit == 64 &&
         ((words[n - 1] & digits[0].mask) ^ digits[0].sign_bit) > digits[0].max;
}

// Whether these words follow all present ones and are in order, as the words of a dense table may be.
bool PackedKeyGroups::GoesOnInOrder(const uint64_t* words, uint32_t n) {
  const QuernRowLayout& group = *context_.descriptor->group();
  if (context_.options.layout != GroupLayout::kAuto || n < kFewestInOrder || !EndsBehind(words, n) ||
      !sorted_.IsInOrder(words, n))
    return false;
  bool are_before = true;
  ForEachGroup(context_, &dense_, dense_.num_cells(), [&](uint8_t* const*, const uint64_t* held, uint32_t num_held) {
    for (uint32_t i = 0; i < num_held; ++i)
      are_before &= (held[i] ^ group.packed_sign_bit) <= (words[0] ^ group.packed_sign_bit);
  });
  return are_before;
}

absl::Status PackedKeyGroups::BecomeSorted() {
  const QuernRowLayout& group = *context_.descriptor->group();
  absl::Status status;
  sorted_.Begin(group, context_.options.huge_pages, context_.budget);  // there may have been one before, already freed
  ForEachGroup(context_, &dense_, dense_.num_cells(), [&](uint8_t* const* from, const uint64_t* words, uint32_t n) {
    if (status.ok()) status = sorted_.Copy(from, words, n);
  });
  if (!status.ok()) {
    sorted_.Free();
    return status;
  }
  dense_.Free();
  table_ = Table::kSorted;
  ++num_growths_;
  return absl::OkStatus();
}

absl::Status PackedKeyGroups::BecomeDense(const PackedKeyRanges& ranges) {
  const QuernRowLayout& group = *context_.descriptor->group();
  DenseGroups dense;
  QUERN_RETURN_IF_ERROR(dense.Begin(group, ranges, context_.options.huge_pages, context_.budget));
  const PrefetchSetting setting = SettingOf(PrefetchLoop::kUpdateDense, dense.bytes());
  const auto move = [&](uint8_t* const* from, const uint64_t* words, uint32_t n) {
    uint8_t* to[kMoveRows];
    dense.Find(words, n, setting, to);
    CopyTuples(group, from, n, to);
  };
  if (table_ == Table::kDense) ForEachGroup(context_, &dense_, dense_.num_cells(), move);
  else ForEachGroup(context_, &open_, open_.num_positions(), move);
  open_.Free();
  dense_ = std::move(dense);
  table_ = Table::kDense;
  ++num_growths_;
  return absl::OkStatus();
}

absl::Status PackedKeyGroups::WidenDense(const uint64_t* words, uint32_t n) {
  PackedKeyRanges ranges = dense_.ranges();
  ranges.Add(words, n);
  const uint64_t max_cells = std::max(MaxCells(), Expected(dense_.num_groups()) * kCellsPerGroup);
  if (ranges.num_cells() > MaxCells() && GoesOnInOrder(words, n)) return BecomeSorted();
  // An array that is asked for may have any number of cells a row, and gives way where they find no memory. Others are
  // refused memory as all tables are, and the caller makes room.
  const bool is_forced = context_.options.layout == GroupLayout::kDense;
  const auto gives_way = [is_forced](const absl::Status& status) {
    return is_forced && absl::IsResourceExhausted(status);
  };
  for (const uint64_t share : {uint64_t{1}, kLeastSlackShare}) {
    const PackedKeyRanges wider = WithSlack(dense_.ranges(), ranges, share);
    if (wider.num_cells() > max_cells) continue;
    const absl::Status widened = BecomeDense(wider);
    if (!gives_way(widened)) return widened;
  }
  if (ranges.num_cells() <= max_cells && (is_forced || ranges.num_cells() >= WithLeastSlack(dense_.num_cells()))) {
    const absl::Status widened = BecomeDense(ranges);
    if (!gives_way(widened)) return widened;
  }
  return GoesOnInOrder(words, n) ? BecomeSorted() : BecomeOpen(n);
}

absl::Status PackedKeyGroups::GrowOpen(const uint64_t* words, uint32_t n) {
  const QuernRowLayout& group = *context_.descriptor->group();
  const uint64_t groups = open_.num_groups();
  const uint32_t bits = BitsFor(groups + n), now = static_cast<uint32_t>(std::bit_width(open_.num_slots() - 1));
  if (bits <= now) return absl::OkStatus();
  const uint64_t expected = Expected(groups);
  if (context_.options.layout == GroupLayout::kAuto && groups >= kFewestGroupsToChange) {
    const auto pays = [&](const PackedKeyRanges& ranges) {
      return WithLeastSlack(ranges.num_cells()) <= expected * kCellsPerGroup;
    };
    PackedKeyRanges ranges(group);
    ranges.Add(words,
               n);  // or the array would be given up again at once; mostly they alone are too far from one another
    if (pays(ranges)) {
      ForEachGroup(context_, &open_, open_.num_positions(),
                   [&](uint8_t* const*, const uint64_t* held, uint32_t num_held) { ranges.Add(held, num_held); });
      if (pays(ranges)) return BecomeDense(ranges);
    }
  }
  ++num_growths_;
  // Room for groups that are only expected is given up where memory is refused.
  for (uint32_t wanted = std::max(bits, BitsFor(expected));; --wanted) {
    const absl::Status grown = open_.Grow(wanted - now, context_.options.huge_pages, context_.budget);
    if (wanted == bits || !absl::IsResourceExhausted(grown)) return grown;
  }
}

absl::Status PackedKeyGroups::FindPackedKeys(const uint64_t* words, uint32_t n, uint8_t** tuples,
                                             uint32_t packed_keys_ahead) {
  if (n == 0) return absl::OkStatus();
  if (table_ == Table::kNone) QUERN_RETURN_IF_ERROR(Begin(words, n));
  if (table_ == Table::kSorted) {
    if (sorted_.IsInOrder(words, n)) {
      tally()->hits += n;
      return sorted_.Find(words, n, tuples);
    }
    QUERN_RETURN_IF_ERROR(BecomeOpen(n));
  }
  for (;;) {
    if (table_ == Table::kOpen) QUERN_RETURN_IF_ERROR(GrowOpen(words, n));
    if (table_ != Table::kDense) break;
    if (!EndsBehind(words, n) && dense_.Find(words, n, prefetch(), tuples, packed_keys_ahead)) {
      tally()->hits += n;
      return absl::OkStatus();
    }
    QUERN_RETURN_IF_ERROR(WidenDense(words, n));
    if (table_ == Table::kSorted) return FindPackedKeys(words, n, tuples);
  }
  return FindOpen(words, n, tuples, packed_keys_ahead);
}

// Looks up words in the open table, which has room. Where there are few words, the register cache finds their groups
// without the table. A walk that was too long makes the table anew, once in its life.
absl::Status PackedKeyGroups::FindOpen(const uint64_t* words, uint32_t n, uint8_t** tuples,
                                       uint32_t packed_keys_ahead) {
  if (std::exchange(few_growths_, num_growths_) != num_growths_) few_.Forget();
  OpenGroups::Steps steps = {};
  if (few_.serves()) {
    uint64_t other_words[kMaxBatchRows];
    uint8_t* found[kMaxBatchRows];
    uint32_t others[kMaxBatchRows + 8];
    const uint32_t num_others = few_.Look(words, n, packed_keys_ahead, tuples, others);
    steps.hits = n - num_others;
    if (num_others != 0) {
      for (uint32_t o = 0; o < num_others; ++o) other_words[o] = words[others[o]];
      const OpenGroups::Steps other_steps = open_.Find(other_words, num_others, prefetch(), found);
      for (uint32_t o = 0; o < num_others && !other_steps.too_far; ++o) tuples[others[o]] = found[o];
      if (!other_steps.too_far) few_.LearnOthers(words, n, others, num_others, tuples);
      steps = {steps.hits + other_steps.hits, other_steps.further, other_steps.too_far};
    }
  } else {
    steps = open_.Find(words, n, prefetch(), tuples, packed_keys_ahead);
    if (!context_.descriptor->group()->zero_hashes && !steps.too_far) few_.Learn(words, n, tuples);
  }
  tally()->steps += steps.further;
  if (__builtin_expect(static_cast<int>(steps.too_far), 0)) {
    QUERN_RETURN_IF_ERROR(open_.Rehash(context_.options.huge_pages, context_.budget));
    ++num_growths_;
    tally()->hits -= n - steps.hits;  // the groups that have just been made, which will be found
    return FindOpen(words, n, tuples, packed_keys_ahead);
  }
  tally()->hits += steps.hits;
  return absl::OkStatus();
}

// The rows' words where a column holds them directly and consecutively; else null.
const uint64_t* PackedKeyGroups::ColumnOfPackedKeys(const KeyRows& rows) const {
  const QuernRowLayout& group = *context_.descriptor->group();
  const QuernField& key = group.keys[0];
  if (group.num_keys != 1 || key.storage != k64 || key.nullable || key.index_storage != kNoStorage ||
      rows.rows != nullptr)
    return nullptr;
  const uint64_t* const words = static_cast<const uint64_t*>(rows.keys[0].values) + rows.first;
  return reinterpret_cast<uintptr_t>(words) % alignof(uint64_t) == 0 ? words : nullptr;
}

absl::Status PackedKeyGroups::Find(const KeyRows& rows, uint8_t** tuples) {
  if (rows.n == 0) return absl::OkStatus();  // there may be no columns to read
  uint64_t packed[kMaxBatchRows];
  const uint64_t* words = ColumnOfPackedKeys(rows);
  const uint32_t packed_keys_ahead =
      words != nullptr && HasAvx512() ? context_.options.distances.input_rows : 0;  // for loops over eight words only
  if (words == nullptr) {
    context_.entry_points.Now().pack(context_.descriptor->group(), rows.keys, rows.first, rows.rows, rows.n, packed);
    words = packed;
  }
  rows_seen_ += rows.n;
  uint32_t changes = 0;
  const uint32_t sample = std::min(rows.n, kSampleRows);
  for (uint32_t i = 1; i < sample; ++i) changes += words[i] != words[i - 1];
  const bool has_runs = changes * kRowsPerRun < sample && table_ != Table::kSorted;
  has_prefetched_keys_ = packed_keys_ahead != 0 && !has_runs && table_ != Table::kSorted;
  return has_runs ? FindRuns(words, rows.n, tuples) : FindPackedKeys(words, rows.n, tuples, packed_keys_ahead);
}

// The rows of a group are neighbours: only the first of each run is looked up.
absl::Status PackedKeyGroups::FindRuns(const uint64_t* words, uint32_t n, uint8_t** tuples) {
  uint64_t heads[kMaxBatchRows];
  uint32_t run_of[kMaxBatchRows];
  uint8_t* found[kMaxBatchRows];
  // No branch depends on where a run ends.
  uint32_t run = 0;
  heads[0] = words[0];
  run_of[0] = 0;
  for (uint32_t i = 1; i < n; ++i) {
    run += words[i] != words[i - 1];
    heads[run] = words[i];
    run_of[i] = run;
  }
  QUERN_RETURN_IF_ERROR(FindPackedKeys(heads, run + 1, found));
  for (uint32_t i = 0; i < n; ++i) tuples[i] = found[run_of[i]];
  return absl::OkStatus();
}

absl::Status PackedKeyGroups::FindTuples(const GroupTuples& from, uint8_t** tuples) {
  uint64_t words[kMaxBatchRows];
  WordsOf(*context_.descriptor->group(), from.tuples, from.n, words);
  rows_seen_ += from.n;
  return FindPackedKeys(words, from.n, tuples);
}

uint64_t PackedKeyGroups::num_groups() const {
  switch (table_) {
    case Table::kNone: return 0;
    case Table::kDense: return dense_.num_groups();
    case Table::kOpen: return open_.num_groups();
    case Table::kSorted: return sorted_.num_groups();
  }
  return 0;
}

uint64_t PackedKeyGroups::num_positions() const {
  switch (table_) {
    case Table::kNone: return 0;
    case Table::kDense: return dense_.num_cells();
    case Table::kOpen: return open_.num_positions();
    case Table::kSorted: return sorted_.num_groups();
  }
  return 0;
}

uint64_t PackedKeyGroups::bytes() const {
  switch (table_) {
    case Table::kNone: return 0;
    case Table::kDense: return dense_.bytes();
    case Table::kOpen: return open_.bytes();
    case Table::kSorted: return sorted_.bytes();
  }
  return 0;
}

const char* PackedKeyGroups::layout() const {
  switch (table_) {
    case Table::kNone: break;
    case Table::kDense: return "dense";
    case Table::kOpen: break;
    case Table::kSorted: return "sorted";
  }
  return "open";
}

PrefetchSetting PackedKeyGroups::SettingOf(PrefetchLoop loop, uint64_t table_bytes) const {
  return context_.descriptor->group()->prefetches ? context_.options.prefetch.For(loop, table_bytes)
                                                  : PrefetchSetting();
}

PrefetchSetting PackedKeyGroups::prefetch() const {
  if (table_ == Table::kSorted) return {};
  return SettingOf(table_ == Table::kDense ? PrefetchLoop::kUpdateDense : PrefetchLoop::kUpdateOpen, bytes());
}

uint32_t PackedKeyGroups::Scan(uint64_t begin, uint64_t end, uint8_t** tuples) {
  if (table_ == Table::kSorted) return sorted_.Scan(begin, end, tuples);
  const uint64_t ahead_bytes = context_.options.distances.scan_bytes;
  return table_ == Table::kDense ? dense_.Scan(begin, end, ahead_bytes, tuples)
                                 : open_.Scan(begin, end, ahead_bytes, tuples);
}

void PackedKeyGroups::HashesOf(uint64_t, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) const {
  const QuernRowLayout& group = *context_.descriptor->group();
  WordsOf(group, tuples, n, hashes);
  HashPackedKeys(hashes, n, group.zero_hashes, hashes);
}

void PackedKeyGroups::Release() {
  dense_.Free();
  open_.Free();
  sorted_.Free();
  few_.Forget();
  table_ = Table::kNone;
}

}  // namespace quern
