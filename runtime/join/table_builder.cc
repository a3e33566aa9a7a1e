// SPDX-License-Identifier: Apache-2.0
// The layout is chosen here, once all rows have arrived and their number, the keys' range and the tuple's size are
// known. Whether the keys are unique is not known: building shows it, and a duplicate ends the attempt. So the builder
// goes through a list of layouts, whose last one, unchained, serves all data:
//
//     10 M i32 keys 0 .. 9,999,999, count    bitmap           1.25 MB
//     the same with 8 bytes of payload       dense            10 M x 16 bytes, bitmap
//     the same keys, each twice              csr              20 M x 16 bytes, 10 M x 4 bytes of ends
//                                                             (dense stopped at the first duplicate)
//     1 M of 40 M keys, with payload         ranked           1 M x 16 bytes, bitmap, counts: 7.5 MB
//     10 M random i64, count                 open             25 M slots x 8 bytes
//     each of them 4 times, count            counting         25 M slots x 16 bytes: one line a probe, whatever
//                                                             the number of duplicates
//     each of them 4 times, with payload     unchained
//     strings, wide tuples                   unchained
//
// Data with a notable share of duplicates shows one early: of 10 M rows with 2.5 M keys, the first 3,000 contain one.
#include "runtime/join/table_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/key_filter.h"
#include "runtime/join/tables/unchained_table.h"

namespace quern {
namespace {

constexpr uint32_t kMinDirectoryBits = 4;
constexpr uint64_t kLineBytes = 64;
constexpr uint32_t kMaxSlotBytes = thresholds::kWidestOpenTuple;
constexpr uint64_t kBitsPerRow = thresholds::kBitmapRangePerRow;
constexpr uint64_t kRunsPerRow = thresholds::kCsrRangePerRow;
constexpr uint64_t kForcedFactor = thresholds::kForcedDenseFactor;
constexpr uint64_t kSmallRange = thresholds::kSmallKeyRange;
constexpr uint64_t kMaxRunTuples = UINT32_MAX;

// Slots for n tuples: the power of two above 2 n, so that 0.25 to 0.5 of them are taken. These sizes pay off: 10 M
// probe rows over 1,000, 100,000 and 10 M build rows take 7.0, 7.7 and 29 ns a row, against 8.8, 11 and 33 ns with half
// as many slots, because fewer slots have two tuples.
uint32_t DirectoryBits(uint64_t n) { return std::max(static_cast<uint32_t>(std::bit_width(n * 2)), kMinDirectoryBits); }
// Half as many, where memory is short: rows that find no room for their table cost more than a slower look-up.
uint32_t LeastDirectoryBits(uint64_t n) { return std::max(DirectoryBits(n) - 1, kMinDirectoryBits); }

// Large buffers consist of large pages, the last of which may be in use for a byte.
uint64_t PageSlack(uint64_t bytes) { return bytes > thresholds::kLargePageBytes ? thresholds::kLargePageBytes : 0; }

uint64_t WordMask(uint32_t bits) { return bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1; }

// Finds a word that is no key of the range, or returns false. It marks empty slots.
bool FindSentinel(const PackedKeyRange& range, uint64_t mask, uint64_t sign_bit, uint64_t* sentinel) {
  if (range.is_empty() || range.min > 0) *sentinel = (range.is_empty() ? 0 : range.min - 1) ^ sign_bit;
  else if (range.max < mask) *sentinel = (range.max + 1) ^ sign_bit;
  else return false;
  return true;
}

uint64_t RangeOf(const PackedKeyRange& range) { return range.max - range.min + 1; }  // 0: 2^64

}  // namespace

const char* LayoutText(Layout layout) {
  switch (layout) {
    case Layout::kUnchained: return "unchained";
    case Layout::kBitmap: return "bitmap";
    case Layout::kDense: return "dense";
    case Layout::kRanked: return "ranked";
    case Layout::kCsr: return "csr";
    case Layout::kOpen: return "open";
    case Layout::kCounting: return "counting";
  }
  return "";
}

PrefetchLoop BuildLoopOf(Layout layout) {
  switch (layout) {
    case Layout::kUnchained: return PrefetchLoop::kBuildUnchained;
    case Layout::kBitmap:
    case Layout::kDense:
    case Layout::kRanked:
    case Layout::kCsr: return PrefetchLoop::kBuildDense;
    case Layout::kOpen:
    case Layout::kCounting: return PrefetchLoop::kBuildOpen;
  }
  return PrefetchLoop::kBuildUnchained;
}

PrefetchLoop ProbeLoopOf(Layout layout) {
  switch (layout) {
    case Layout::kUnchained: return PrefetchLoop::kProbeUnchained;
    case Layout::kBitmap:
    case Layout::kDense:
    case Layout::kRanked:
    case Layout::kCsr: return PrefetchLoop::kProbeDense;
    case Layout::kOpen:
    case Layout::kCounting: return PrefetchLoop::kProbeOpen;
  }
  return PrefetchLoop::kProbeUnchained;
}

uint64_t NumPositions(const JoinTable& table) {
  switch (table.layout) {
    case Layout::kUnchained:
    case Layout::kCsr: return table.num_tuples;
    case Layout::kDense: return table.range;
    case Layout::kRanked: return table.num_slots_taken;
    case Layout::kOpen: return table.num_slots;
    case Layout::kBitmap:
    case Layout::kCounting: return 0;
  }
  return 0;
}

bool HasTuple(const JoinTable& table, uint64_t position) {
  switch (table.layout) {
    case Layout::kUnchained:
    case Layout::kRanked:
    case Layout::kCsr: return true;
    case Layout::kDense: return ((table.bitmap[position / 64] >> (position % 64)) & 1) != 0;
    case Layout::kOpen: {
      const uint8_t* slot = table.tuples + position * table.slot_bytes;
      return table.packed_bytes == 4 ? blocks::Load<uint32_t>(slot) != 0 : blocks::Load<uint64_t>(slot) != 0;
    }
    case Layout::kBitmap:
    case Layout::kCounting: return false;
  }
  return false;
}

TableBuilder::TableBuilder(const QuernJoinDescriptor& descriptor, const JoinKindRow& kind, const JoinOptions& options,
                           std::shared_ptr<MemoryBudget> budget, std::vector<TupleStore*> stores,
                           const PackedKeyRange& range)
    : descriptor_(descriptor),
      kind_(kind),
      options_(options),
      budget_(std::move(budget)),
      stores_(std::move(stores)),
      range_(range),
      format_{descriptor.rows.tuple_bytes, descriptor.rows.packed_bytes, descriptor.rows.zero_hashes},
      work_([this] { return NextPhase(); }) {
  bool all = true;
  for (const TupleStore* store : stores_) {
    num_tuples_ += store->num_tuples();
    is_partitioned_ |= store->is_partitioned();
    all &= store->is_partitioned();
  }
  partitions_first_ = is_partitioned_ && !all;
  table.tuple_bytes = descriptor_.rows.tuple_bytes;
  table.packed_bytes = descriptor_.rows.packed_bytes;
  table.zero_hashes = descriptor_.rows.zero_hashes;
  table.num_tuples = num_tuples_;
  table.sign_bit = descriptor_.rows.packed_sign_bit;
  table.base = range_.min;
  to_try_ = LayoutsToTry();
}

bool TableBuilder::NeedsTuples() const { return descriptor_.rows.num_fields + descriptor_.matched_offset != 0; }
bool TableBuilder::OneMatchIsEnough() const { return descriptor_.stops_at_first; }

// The largest range of keys for which n rows get a filter. A few rows of a wide range have none: to clear its bitmap
// would take longer than to look them up.
static uint64_t LargestFilterRange(uint64_t n, uint64_t l2_bytes) {
  const uint64_t small = std::min(8 * n * thresholds::kKeyFilterRangePerRow, thresholds::kSmallKeyFilterRange);
  return std::min(std::max(n * thresholds::kKeyFilterRangePerRow, small), l2_bytes * 8);
}

// Where the bitmap of a key filter is small enough, it may find the tuples, too.
bool TableBuilder::HasRanks(uint64_t range) const {
  return range != 0 && range <= std::min(LargestFilterRange(num_tuples_, options_.caches.l2_bytes), kPrefetchedBits);
}

std::vector<Layout> TableBuilder::LayoutsToTry() const {
  std::vector<Layout> layouts;
  const bool asks = options_.layout != LayoutChoice::kAuto;
  const uint64_t n = num_tuples_, factor = asks ? kForcedFactor : 1;
  if (descriptor_.rows.packed_bytes != 0 && n > 0 && options_.layout != LayoutChoice::kUnchained) {
    const uint64_t range = RangeOf(range_);
    const bool dense = options_.layout != LayoutChoice::kOpen;
    const auto within = [&](uint64_t limit) {
      return dense && range != 0 && range <= std::max(limit * factor, kSmallRange);
    };
    const uint64_t dense_bytes = 2 * (n * descriptor_.rows.tuple_bytes + 4 * sizeof(uint64_t) * n);
    if (!NeedsTuples() && within(n * kBitsPerRow)) layouts.push_back(Layout::kBitmap);
    const bool ranked = NeedsTuples() && !asks && HasRanks(range);
    const bool leaves_gaps =
        n * thresholds::kRankedRangePerRow < range && range * descriptor_.rows.tuple_bytes > options_.caches.l2_bytes;
    if (NeedsTuples() && within(dense_bytes / descriptor_.rows.tuple_bytes) && !(ranked && leaves_gaps))
      layouts.push_back(Layout::kDense);
    if (ranked) layouts.push_back(Layout::kRanked);
    uint64_t sentinel = 0;
    const bool open =
        FindSentinel(range_, WordMask(descriptor_.rows.packed_bits), descriptor_.rows.packed_sign_bit, &sentinel) &&
        descriptor_.rows.tuple_bytes <= kMaxSlotBytes;
    if (open) layouts.push_back(Layout::kOpen);
    // For duplicates, and for unique keys in wide tuples.
    if (within(n * kRunsPerRow) && n < kMaxRunTuples) layouts.push_back(Layout::kCsr);
    if (open && !NeedsTuples() && kind_.pairs) layouts.push_back(Layout::kCounting);
  }
  layouts.push_back(Layout::kUnchained);
  std::reverse(layouts.begin(), layouts.end());  // taken from the back
  return layouts;
}

uint64_t TableBuilder::LeastBytes(const QuernJoinDescriptor& descriptor, uint64_t num_tuples) {
  const uint64_t directory = (uint64_t{1} << DirectoryBits(num_tuples)) * sizeof(uint64_t);
  const uint64_t tuples = num_tuples * descriptor.rows.tuple_bytes;
  return directory + PageSlack(directory) + tuples + PageSlack(tuples);
}

uint64_t TableBuilder::LeastBytesTaking(const QuernJoinDescriptor& descriptor, uint64_t num_tuples) {
  const uint64_t directory = (uint64_t{1} << LeastDirectoryBits(num_tuples)) * sizeof(uint64_t);
  return directory + PageSlack(directory) + PageSlack(num_tuples * descriptor.rows.tuple_bytes);
}

// ---- phases ----------------------------------------------------------------------------------------------------

absl::StatusOr<std::optional<SharedWork::Phase>> TableBuilder::NextPhase() {
  if (partitions_first_) {
    partitions_first_ = false;
    return Phase{stores_.size(), [this](uint64_t i) {
                   return stores_[i]->is_partitioned() ? absl::OkStatus()
                                                       : stores_[i]->Partition(options_.partition_bits);
                 }};
  }
  for (;;) {
    const Inserted stopped = stopped_.exchange(Inserted::kAll);
    if (stopped != Inserted::kAll) {
      phases_.clear();
      // With known duplicates, no layout for unique keys can succeed.
      const auto hopeless = [&](Layout layout) {
        return (layout == Layout::kOpen || layout == Layout::kRanked) && stopped == Inserted::kDuplicate;
      };
      std::erase_if(to_try_, hopeless);
      has_begun_ = false;
    }
    if (!phases_.empty()) {
      Phase phase = std::move(phases_.front());
      phases_.pop_front();
      return phase;
    }
    if (has_begun_ && NextFilterPhase()) continue;
    if (has_begun_) {
      table.max_walk = max_walk_;
      table.num_slots_taken = num_inserted_;
      store_bitmaps_.clear();
      ReleaseSpare();
      const absl::Status indexed = IndexCrowded();
      if (!takes_tuples_ || !absl::IsResourceExhausted(indexed)) QUERN_RETURN_IF_ERROR(indexed);
      return std::nullopt;
    }
    const Layout layout = to_try_.back();
    to_try_.pop_back();
    has_begun_ = true;
    memory = {};
    table.bitmap = nullptr;
    const absl::Status begun = BeginLayout(layout);
    if (begun.ok()) continue;
    if (to_try_.empty() || !absl::IsResourceExhausted(begun)) return begun;
    has_begun_ = false;  // the next one takes less
    store_bitmaps_.clear();
  }
}

void TableBuilder::Stop(Inserted why) {
  Inserted none = Inserted::kAll;
  stopped_.compare_exchange_strong(none, why);
}

SharedWork::Phase TableBuilder::PerPart(std::function<absl::Status(uint64_t part, const TupleList& spans)> run) {
  const uint64_t num_parts = is_partitioned_ ? stores_[0]->parts().size() : 1;
  return {num_parts, [this, run = std::move(run)](uint64_t part) {
            TupleList spans;
            for (const TupleStore* store : stores_) {
              const TupleList& list = is_partitioned_ ? store->parts()[part] : store->flat();
              spans.insert(spans.end(), list.begin(), list.end());
            }
            return run(part, spans);
          }};
}

SharedWork::Phase TableBuilder::PerStore(std::function<void(uint64_t store, const TupleList& spans)> run) {
  return {stores_.size(), [this, run = std::move(run)](uint64_t i) {
            TupleList spans = stores_[i]->flat();
            for (const TupleList& part : stores_[i]->parts()) spans.insert(spans.end(), part.begin(), part.end());
            run(i, spans);
            return absl::OkStatus();
          }};
}

absl::Status TableBuilder::BeginLayout(Layout layout) {
  table.layout = layout;
  switch (layout) {
    case Layout::kUnchained: return BeginUnchained();
    case Layout::kBitmap:
    case Layout::kDense: return BeginBitmap(layout);
    case Layout::kRanked: return BeginRanked();
    case Layout::kCsr: return BeginRuns();
    case Layout::kOpen:
    case Layout::kCounting: return BeginOpen(layout);
  }
  return absl::OkStatus();
}

// Allocates memory for the tuples and for the null tuple behind them. contents: of places that have no tuple yet.
absl::Status TableBuilder::AllocateTuples(uint64_t num_places, uint32_t place_bytes, Contents contents,
                                          std::shared_ptr<MemoryBudget> budget) {
  const uint64_t null_bytes = NullTupleBytes(), bytes = num_places * place_bytes + null_bytes;
  QUERN_ASSIGN_OR_RETURN(memory.tuples, HugeBuffer::Allocate(std::move(budget), bytes, options_.huge_pages, contents));
  table.tuples = memory.tuples.data();
  table.null_tuple = num_places * place_bytes;
  std::memset(table.tuples + table.null_tuple, 0, null_bytes);
  std::memset(table.tuples + table.null_tuple + descriptor_.rows.null_bits_offset, 0xff,
              descriptor_.rows.null_bits_bytes);
  return absl::OkStatus();
}

// Chooses the settings by the size of all memory that a probe touches at random.
void TableBuilder::SetPrefetch() {
  const uint64_t bytes = memory.directory_bytes() + memory.tuples.bytes();
  table.build =
      descriptor_.rows.prefetches ? options_.prefetch.For(BuildLoopOf(table.layout), bytes) : PrefetchSetting();
  table.probe =
      descriptor_.rows.prefetches ? options_.prefetch.For(ProbeLoopOf(table.layout), bytes) : PrefetchSetting();
}

// ---- unchained ----------------------------------------------------------------------------------------------------

absl::Status TableBuilder::BeginUnchained() {
  const uint32_t least = is_partitioned_ ? options_.partition_bits : 0;
  const uint32_t bits = std::max(DirectoryBits(num_tuples_), least);
  part_begin_.assign(1, 0);
  for (uint64_t part = 0; is_partitioned_ && part < stores_[0]->parts().size(); ++part) {
    uint64_t n = 0;
    for (const TupleStore* store : stores_)
      for (const TupleSpan& span : store->parts()[part]) n += span.num_tuples;
    part_begin_.push_back(part_begin_.back() + n * descriptor_.rows.tuple_bytes);
  }
  crowded_runs_.resize(is_partitioned_ ? stores_[0]->parts().size() : 1);
  phases_.push_back(PerPart([this](uint64_t part, const TupleList& spans) { return BuildUnchainedPart(part, spans); }));
  absl::Status allocated = AllocateUnchained(bits, /*takes_tuples=*/false);
  if (absl::IsResourceExhausted(allocated) && is_partitioned_ && budget_ != nullptr) {
    memory = {};
    allocated = AllocateUnchained(std::max(LeastDirectoryBits(num_tuples_), least), /*takes_tuples=*/true);
  }
  if (!allocated.ok()) {
    phases_.clear();
    return allocated;
  }
  SetPrefetch();
  return absl::OkStatus();
}

absl::Status TableBuilder::AllocateUnchained(uint32_t bits, bool takes_tuples) {
  const uint64_t slots = uint64_t{1} << bits;
  QUERN_ASSIGN_OR_RETURN(memory.directory, HugeBuffer::Allocate(budget_, (slots + 1) * sizeof(uint64_t),
                                                                options_.huge_pages, Contents::kAnything));
  reinterpret_cast<uint64_t*>(memory.directory.data())[0] = 0;
  QUERN_RETURN_IF_ERROR(takes_tuples ? TakeTuples()
                                     : AllocateTuples(num_tuples_, descriptor_.rows.tuple_bytes, Contents::kAnything));
  table.directory = reinterpret_cast<const uint64_t*>(memory.directory.data()) + 1;
  table.shift = 64 - bits;
  return absl::OkStatus();
}

// The bytes that the partitions have reserved are the table's from now on. Where partitions are in groups with large
// pages of their own, the pages become the table's, too, as if the stores had released them (kept_pages.h):
//
//     group        0       1       2       3
//     stores       .       .       tuples  tuples      pages of 0 and 1 are the table's, or kept
//     table        tuples  tuples  ..                  2 begins, and takes the pages that group 1 had
//
// With one group, a page of either is in memory only from the first write to a partition of the table to the end of the
// same partition in the stores.
absl::Status TableBuilder::TakeTuples() {
  uint64_t bytes = 0, twice_bytes = 0;  // of a group in both places; of a single partition it is not counted
  for (const TupleStore* store : stores_) {
    bytes += store->part_bytes();
    if (store->num_groups() > 1) twice_bytes += store->largest_group_bytes();
  }
  groups_begun_ = std::vector<std::once_flag>(stores_[0]->num_groups());
  const uint64_t table_bytes = num_tuples_ * descriptor_.rows.tuple_bytes + NullTupleBytes();
  const uint64_t needed = table_bytes + twice_bytes, missing = needed - std::min(needed, bytes);
  QUERN_RETURN_IF_ERROR(budget_->Reserve(missing));
  const absl::Status status =
      AllocateTuples(num_tuples_, descriptor_.rows.tuple_bytes, Contents::kAnything, /*budget=*/nullptr);
  if (!status.ok()) return budget_->Release(missing), status;
  for (TupleStore* store : stores_) store->DisownParts();
  memory.tuples.Own(budget_);
  takes_tuples_ = true;
  spare_bytes_ = bytes + missing - table_bytes;
  return absl::OkStatus();
}

// Before the first write to a group of partitions. New pages would have to be cleared, which was a quarter of the time
// of a join by 10 M texts of 64 bytes.
absl::Status TableBuilder::TakePages(uint64_t part) {
  const TupleStore& store = *stores_[0];
  const uint64_t group = store.GroupOf(part);
  absl::Status status;
  std::call_once(groups_begun_[group], [&] {
    const uint64_t num_parts = store.parts().size() / store.num_groups();  // of a group
    // The first pages of the table may be kept ones already.
    const uint64_t begin = std::max(part_begin_[group * num_parts], memory.tuples.first_zero());
    status = memory.tuples.TakeKeptPages(begin, part_begin_[(group + 1) * num_parts]);
  });
  return status;
}

void TableBuilder::ReleaseSpare() {
  if (spare_bytes_ != 0) budget_->Release(std::exchange(spare_bytes_, 0));
}

// A partition of the table is complete: its tuples are in the first store that had some of them, and in no other.
void TableBuilder::MovePart(uint64_t part) {
  TupleSpan moved;
  moved.tuples = table.tuples + part_begin_[part];
  moved.num_tuples = moved.capacity = (part_begin_[part + 1] - part_begin_[part]) / descriptor_.rows.tuple_bytes;
  for (TupleStore* store : stores_) {
    const bool has_any = !store->parts()[part].empty();
    store->ReplacePart(part, has_any ? moved : TupleSpan());
    if (has_any) moved = {};
  }
}

// The directory may lie in pages that an earlier buffer had. Those of a partition are zeroed just before they are used.
void TableBuilder::ZeroSlots(const UnchainedBuild& build) {
  const uint64_t end_entry = memory.directory.first_zero() / sizeof(uint64_t);  // directory[-1] is entry 0
  const uint64_t end = std::min(build.end_slot, std::max<uint64_t>(end_entry, 1) - 1);
  if (build.first_slot < end)
    std::memset(build.directory + build.first_slot, 0, (end - build.first_slot) * sizeof(uint64_t));
}

absl::Status TableBuilder::BuildUnchainedPart(uint64_t part, const TupleList& spans) {
  const uint64_t slots = uint64_t{1} << (64 - table.shift);
  const uint64_t slots_of_part = is_partitioned_ ? slots / stores_[0]->parts().size() : slots;
  UnchainedBuild build;
  build.format = format_;
  build.directory = reinterpret_cast<uint64_t*>(memory.directory.data()) + 1;
  build.shift = table.shift;
  build.first_slot = part * slots_of_part;
  build.end_slot = build.first_slot + slots_of_part;
  build.first_byte = part_begin_[part];
  build.prefetch = table.build;
  build.target = table.tuples;
  std::vector<uint64_t> crowded;
  build.crowded = &crowded;
  if (takes_tuples_) QUERN_RETURN_IF_ERROR(TakePages(part));
  ZeroSlots(build);
  for (const TupleSpan& span : spans) CountTuples(build, span);
  SumSlots(build);
  for (const TupleSpan& span : spans) ScatterTuples(build, span);
  absl::Status grouped;
  if (!crowded.empty()) grouped = GroupCrowded(build, spans, budget_, &crowded_runs_[part]);
  if (!takes_tuples_) return grouped;
  if (absl::IsResourceExhausted(grouped)) crowded_runs_[part] = {};  // probes find them all the same, but slowly
  else QUERN_RETURN_IF_ERROR(grouped);
  MovePart(part);
  return absl::OkStatus();
}

absl::Status TableBuilder::IndexCrowded() {
  if (std::all_of(crowded_runs_.begin(), crowded_runs_.end(), [](const HashRuns& runs) { return runs.slots.empty(); }))
    return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(memory.crowded, CrowdedSlots::Make(crowded_runs_, descriptor_.rows.tuple_bytes, budget_));
  table.crowded = memory.crowded.get();
  crowded_runs_.clear();
  return absl::OkStatus();
}

// ---- open ----------------------------------------------------------------------------------------------------

// A slot's number is the hash as a fraction of all slots, so there may be any number of regions. A walk stays in its
// region, so the walks of a partition stay in the partition's slots. 10 M tuples at 40 %: 64 partitions x 12 regions of
// 32768 slots.
absl::Status TableBuilder::BeginOpen(Layout layout) {
  constexpr uint64_t kSmallestRegion = 256;
  const uint64_t parts = is_partitioned_ ? stores_[0]->parts().size() : 1;
  const uint64_t slots_of_part = num_tuples_ * 100 / options_.open_load_percent / parts + 1;
  const uint64_t region = std::max(std::bit_floor(slots_of_part / 8 + 1), kSmallestRegion);
  const uint64_t regions = (slots_of_part + region - 1) / region * parts;
  table.slot_bytes =
      layout == Layout::kCounting ? 2 * descriptor_.rows.packed_bytes : std::bit_ceil(descriptor_.rows.tuple_bytes);
  table.line_mask = kLineBytes / table.slot_bytes - 1;
  table.num_slots = regions * region;
  table.region_mask = region - 1;
  FindSentinel(range_, WordMask(descriptor_.rows.packed_bits), descriptor_.rows.packed_sign_bit, &table.sentinel);
  QUERN_RETURN_IF_ERROR(AllocateTuples(table.num_slots, table.slot_bytes, Contents::kZeros));
  SetPrefetch();
  num_inserted_ = 0;
  max_walk_ = 0;
  const Duplicates duplicates = layout == Layout::kCounting ? Duplicates::kCount
                                : OneMatchIsEnough()        ? Duplicates::kDrop
                                                            : Duplicates::kStop;
  phases_.push_back(
      PerPart([this, duplicates](uint64_t, const TupleList& spans) { return InsertPart(spans, duplicates); }));
  return absl::OkStatus();
}

absl::Status TableBuilder::InsertPart(const TupleList& spans, Duplicates duplicates) {
  uint32_t max_walk = 0;
  uint64_t num_inserted = 0;
  for (const TupleSpan& span : spans) {
    if (stopped_.load(std::memory_order_relaxed) != Inserted::kAll) return absl::OkStatus();
    const Inserted inserted = InsertOpen(table, format_, span, duplicates, &max_walk, &num_inserted);
    if (inserted == Inserted::kAll) continue;
    Stop(inserted);
    return absl::OkStatus();
  }
  num_inserted_ += num_inserted;
  uint32_t seen = max_walk_;
  while (seen < max_walk && !max_walk_.compare_exchange_weak(seen, max_walk)) {
  }
  return absl::OkStatus();
}

// ---- dense ----------------------------------------------------------------------------------------------------

// Each store fills a bitmap of its own, the first store that of the table. Then the bitmaps are merged, and finally
// tuples go to their places.
absl::Status TableBuilder::BeginBitmap(Layout layout) {
  QUERN_RETURN_IF_ERROR(AllocateBitmaps(RangeOf(range_)));
  if (layout == Layout::kDense) {  // the bitmap says which places have a tuple
    QUERN_RETURN_IF_ERROR(AllocateTuples(table.range, descriptor_.rows.tuple_bytes, Contents::kAnything));
  }
  SetPrefetch();
  if (layout == Layout::kDense && table.range == num_tuples_ && IsInOrder()) {
    AddCopyPhase();
    return absl::OkStatus();
  }
  AddBitmapPhases(OneMatchIsEnough() ? Duplicates::kDrop : Duplicates::kStop);
  if (layout == Layout::kDense) {
    phases_.push_back(PerStore([this](uint64_t, const TupleList& spans) {
      for (const TupleSpan& span : spans) PlaceDense(table, format_, span);
    }));
  }
  return absl::OkStatus();
}

// The same with a count of the bits before each word, when all of them are there.
absl::Status TableBuilder::BeginRanked() {
  const uint64_t range = RangeOf(range_), num_words = (range + 63) / 64;
  QUERN_RETURN_IF_ERROR(AllocateBitmaps(range));
  QUERN_ASSIGN_OR_RETURN(memory.directory, HugeBuffer::Allocate(budget_, num_words * sizeof(uint32_t),
                                                                options_.huge_pages, Contents::kAnything));
  QUERN_RETURN_IF_ERROR(AllocateTuples(num_tuples_, descriptor_.rows.tuple_bytes, Contents::kAnything));
  uint32_t* const ranks = reinterpret_cast<uint32_t*>(memory.directory.data());
  table.ranks = ranks;
  SetPrefetch();
  const bool is_in_order = IsInOrder();
  if (is_in_order) AddCopyPhase();
  else AddBitmapPhases(OneMatchIsEnough() ? Duplicates::kDrop : Duplicates::kStop);
  phases_.push_back({1, [this, num_words, ranks](uint64_t) {
                       num_inserted_ = SumRanks(table.bitmap, num_words, ranks);
                       return absl::OkStatus();
                     }});
  if (is_in_order) return absl::OkStatus();
  phases_.push_back(PerStore([this](uint64_t, const TupleList& spans) {
    for (const TupleSpan& span : spans) PlaceRanked(table, format_, span);
  }));
  return absl::OkStatus();
}

// Whether the tuples lie as their keys' numbers say: rows came in the order of unique keys, to one thread. So do those
// of most tables that are joined by their own key.
bool TableBuilder::IsInOrder() const {
  const auto has_some = [](const TupleStore* store) { return store->num_tuples() != 0; };
  return range_.ascends && !is_partitioned_ && std::count_if(stores_.begin(), stores_.end(), has_some) == 1;
}

void TableBuilder::AddCopyPhase() {
  phases_.push_back({1, [this](uint64_t) {
                       uint8_t* to = table.tuples;
                       for (const TupleStore* store : stores_) {
                         for (const TupleSpan& span : store->flat()) {
                           CopyInOrder(table, format_, span, reinterpret_cast<uint64_t*>(memory.bitmap.data()), to);
                           to += span.num_tuples * format_.tuple_bytes;
                         }
                       }
                       return absl::OkStatus();
                     }});
}

absl::Status TableBuilder::AllocateBitmaps(uint64_t range) {
  const uint64_t bytes = (range + 63) / 64 * sizeof(uint64_t);
  QUERN_ASSIGN_OR_RETURN(memory.bitmap, HugeBuffer::Allocate(budget_, bytes, options_.huge_pages));
  store_bitmaps_.clear();
  for (size_t i = 1; i < stores_.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(HugeBuffer bitmap, HugeBuffer::Allocate(budget_, bytes, options_.huge_pages));
    store_bitmaps_.push_back(std::move(bitmap));
  }
  table.range = range;
  table.bitmap = reinterpret_cast<const uint64_t*>(memory.bitmap.data());
  return absl::OkStatus();
}

void TableBuilder::AddBitmapPhases(Duplicates duplicates) {
  phases_.push_back(
      PerStore([this, duplicates](uint64_t store, const TupleList& spans) { FillBitmapOf(store, spans, duplicates); }));
  if (store_bitmaps_.empty()) return;
  phases_.push_back({1, [this, duplicates](uint64_t) {
                       MergeBitmaps(duplicates);
                       return absl::OkStatus();
                     }});
}

void TableBuilder::FillBitmapOf(uint64_t store, const TupleList& spans, Duplicates duplicates) {
  uint8_t* const bitmap = store == 0 ? memory.bitmap.data() : store_bitmaps_[store - 1].data();
  if (descriptor_.rows.packed_bytes == 0)
    return FillKeyFilter(table, descriptor_.rows, spans, reinterpret_cast<uint64_t*>(bitmap));
  for (const TupleSpan& span : spans) {
    if (stopped_.load(std::memory_order_relaxed) != Inserted::kAll) return;
    const Inserted inserted = FillBitmap(table, format_, span, duplicates, reinterpret_cast<uint64_t*>(bitmap));
    if (inserted != Inserted::kAll) return Stop(inserted);
  }
}

void TableBuilder::MergeBitmaps(Duplicates duplicates) {
  uint64_t* const all = reinterpret_cast<uint64_t*>(memory.bitmap.data());
  uint64_t twice = 0;
  for (const HugeBuffer& of_store : store_bitmaps_) {
    const uint64_t* const bits = reinterpret_cast<const uint64_t*>(of_store.data());
    for (uint64_t i = 0; i < of_store.bytes() / sizeof(uint64_t); ++i) {
      twice |= all[i] & bits[i];
      all[i] |= bits[i];
    }
  }
  if (twice != 0 && duplicates == Duplicates::kStop) Stop(Inserted::kDuplicate);
}

// ---- key filter ----------------------------------------------------------------------------------------------------

// Adds the filter's next phase, and returns false where there is none. The range of unpacked keys takes a phase of its
// own: nobody needed it while rows arrived.
bool TableBuilder::NextFilterPhase() {
  const bool drops_rows = kind_.probe_row == RowsOut::kNever || kind_.probe_row == RowsOut::kMatched;
  const bool is_wanted = (drops_rows || kind_.id == JoinKind::kAnti) && options_.key_filter != KeyFilterChoice::kOff;
  table.filter_key = FilterKeyOf(descriptor_.rows);
  if (IsBitmap(table.layout) || !is_wanted || num_tuples_ == 0 || table.filter_key == kNoFilterKey) return false;
  const bool is_packed = descriptor_.rows.packed_bytes != 0;
  if (filter_steps_ == 0) {
    filter_steps_ = 1;
    if (is_packed) return true;
    key_ranges_.assign(stores_.size(), {});
    const uint64_t limit = LargestFilterRange(num_tuples_, options_.caches.l2_bytes);
    phases_.push_back(PerStore([this, limit](uint64_t store, const TupleList& spans) {
      key_ranges_[store] = RangeOfKey(descriptor_.rows, table.filter_key, spans, limit);
    }));
    return true;
  }
  if (filter_steps_ == 2) return false;
  filter_steps_ = 2;
  PackedKeyRange range = is_packed ? range_ : PackedKeyRange();
  for (const PackedKeyRange& of_store : key_ranges_) range.Add(of_store);
  BeginKeyFilter(range);
  return true;
}

// The table is complete without it, and stays so where memory is refused. Where most keys of the range are there, it
// would let most rows pass.
void TableBuilder::BeginKeyFilter(const PackedKeyRange& of_keys) {
  const uint64_t range = RangeOf(of_keys);
  if (range == 0 || range > LargestFilterRange(num_tuples_, options_.caches.l2_bytes)) return;
  if (num_tuples_ >= thresholds::kFullKeyFilterRows * range) return;
  if (!AllocateBitmaps(range).ok()) {
    memory.bitmap = {};
    table.bitmap = nullptr;
    return;
  }
  table.base = of_keys.min;
  table.sign_bit = FilterSignBit(descriptor_.rows, table.filter_key);
  AddBitmapPhases(Duplicates::kDrop);
}

// ---- runs
// ------------------------------------------------------------------------------------------------------------

absl::Status TableBuilder::BeginRuns() {
  table.range = RangeOf(range_);
  QUERN_ASSIGN_OR_RETURN(memory.directory,
                         HugeBuffer::Allocate(budget_, (table.range + 1) * sizeof(uint32_t), options_.huge_pages));
  QUERN_RETURN_IF_ERROR(
      AllocateTuples(NeedsTuples() ? num_tuples_ : 0, descriptor_.rows.tuple_bytes, Contents::kAnything));
  uint32_t* const runs = reinterpret_cast<uint32_t*>(memory.directory.data()) + 1;
  table.runs = runs;
  SetPrefetch();
  const RunsOf of = stores_.size() == 1 ? RunsOf::kThread : RunsOf::kThreads;
  phases_.push_back(PerStore([this, of, runs](uint64_t, const TupleList& spans) {
    for (const TupleSpan& span : spans) CountRuns(table, format_, span, of, runs);
  }));
  phases_.push_back({1, [this, runs](uint64_t) {
                       SumRuns(table.range, runs);
                       return absl::OkStatus();
                     }});
  phases_.push_back(PerStore([this, of, runs](uint64_t, const TupleList& spans) {
    for (const TupleSpan& span : spans)
      PlaceRuns(table, format_, span, of, runs, NeedsTuples() ? table.tuples : nullptr);
  }));
  return absl::OkStatus();
}

}  // namespace quern
