// SPDX-License-Identifier: Apache-2.0
// How 10,000,000 rows of keys=i64 payload=rowid are sorted, in phases whose tasks any thread may run:
//
//     begin    all 64 bits of the words vary; a row's number takes 24: prefixes of two words, 160 MB
//     scan     task = chunk of 131,072 rows: counts prefixes by bucket (bucket_map.h), and how often the first word
//              rises and falls
//     place    task = chunk: makes prefixes and radix-partitions them into 1024 buckets of 156 KB each
//     sort     task = some buckets: each is sorted in the L2 cache (prefix_sort.h), then its collided rows
//              (collision_sort.h)
//     windows  task = 64 Ki positions: where partitions and peers begin
//
// A prefix is made when it is partitioned and not stored before; the scan makes only its first word. If words never
// fall (or never rise, and are all different), prefixes are placed in order (or in reverse), and only those with equal
// first words are sorted. If words rarely fall, prefixes that are out of place are removed, sorted and merged back; if
// there are too many, prefixes are partitioned after all. Input that fits a part of the L2 cache is one task without a
// scan. If all columns are decoded from words (strings: from ranks), a prefix has no row number, and no row is read
// again. A comparison sort has only one task: it sorts the addresses of tuples.
#include "runtime/sort/sorted_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

constexpr uint64_t kTaskRows = uint64_t{1} << 16;
// If words fall less often than once in so many rows, we try to repair the order.
constexpr uint64_t kFewFalls = thresholds::kNearlySortedRows;
constexpr uint64_t kSampleWords = 16384, kSampleWordsOfBucket = 256;

}  // namespace

struct SortedRows::Worker {
  Worker(const SortContext& context, const PrefixLayout& layout, const SortChunks& chunks, bool by_row_id,
         const PrefetchSetting& of_ties)
      : sorter(layout.words(), context.budget),
        ties(context.descriptor->get(), &layout, &chunks, by_row_id, of_ties, context.budget) {}
  PrefixSorter sorter;
  CollisionSorter ties;
};

SortedRows::SortedRows(const SortContext& context, SortInput input, bool needs_rows)
    : context_(context), input_(std::move(input)), needs_rows_(needs_rows), work_([this] { return NextPhase(); }) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  chunks_ = SortChunks(input_.chunks, descriptor.rows.tuple_bytes);
  for (const SortChunk* chunk : input_.chunks) {
    bases_.push_back(num_rows_);
    num_rows_ += chunk->num_rows;
    const uint64_t row_bytes = uint64_t{descriptor.num_words} * sizeof(uint64_t) +
                               (chunk->tuples == nullptr ? 0 : descriptor.rows.tuple_bytes);
    stored_bytes_ += chunk->num_rows * (row_bytes + (chunk->row_ids == nullptr ? 0 : sizeof(uint64_t)));
  }
  for (uint32_t f = 0; f < descriptor.rows.num_output_fields; ++f)
    if (blocks::IsVariableStorage(descriptor.rows.fields[f].storage))
      string_offsets_.push_back(descriptor.rows.fields[f].tuple_offset);
  by_row_id_ = context_.descriptor->spec().stable && !input_.rows_in_order;
  decodes_ = context_.descriptor->has_tuples() && num_rows_ != 0 && !input_.needs_tuples;
  ranked_of_key_.resize(descriptor.num_keys);
  FindWordsRead();
  FindIdBases();
  needs_rows_ |= reads_row_ids_ || (context_.descriptor->has_tuples() && !decodes_);
}

void SortedRows::FindWordsRead() {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  for (const SortColumn& column : context_.descriptor->columns()) {
    const bool is_field = column.source == SortColumn::Source::kField && decodes_;
    reads_row_ids_ |= column.source == SortColumn::Source::kRowId;
    if (column.source != SortColumn::Source::kWords && !is_field) continue;
    const QuernSortKey& key =
        descriptor.keys[is_field ? context_.descriptor->fields()[column.index].index : column.index];
    for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
      const bool is_rest = is_field && descriptor.parts[p].kind == kBytesPart &&
                           descriptor.parts[p].first_byte != 0;  // ranks are in the first part
      if (!is_rest) words_read_.push_back(descriptor.parts[p].word);
    }
  }
  std::sort(words_read_.begin(), words_read_.end());
  words_read_.erase(std::unique(words_read_.begin(), words_read_.end()), words_read_.end());
}

SortedRows::~SortedRows() = default;

uint32_t SortedRows::entry_bytes() const {
  return compares() ? sizeof(uint8_t*) : layout_.has_value() ? layout_->bytes() : 0;
}
uint32_t SortedRows::key_bits() const { return layout_.has_value() ? layout_->key_bits() : 0; }
uint64_t SortedRows::RowAt(uint64_t position) const { return layout_->RowOf(EntryAt(position)); }

// ---- phases --------------------------------------------------------------------------------------------------------

SharedWork::Phase SortedRows::PhaseOver(uint64_t num_tasks, absl::Status (SortedRows::*run)(uint64_t task)) {
  return {num_tasks, [this, run](uint64_t task) { return (this->*run)(task); }};
}

absl::StatusOr<std::optional<SharedWork::Phase>> SortedRows::NextPhase() {
  switch (stage_) {
    case Stage::kBegin: return Begin();
    case Stage::kScan:
      FindOrder();
      stage_ = Stage::kPlace;
      return PhaseOver(chunks_.size(), &SortedRows::PlaceChunk);
    case Stage::kPlace:
      if (order_ == Order::kNearly) {
        stage_ = Stage::kTry;
        return PhaseOver(1, &SortedRows::TryNearly);
      }
      stage_ = Stage::kSort;
      if (order_ != Order::kNone) CutRanges();
      CutTasks();
      return PhaseOver(task_bounds_.size() - 1, &SortedRows::SortBuckets);
    case Stage::kTry:  // the input is now sorted, or was found to be too far from it
      stage_ = Stage::kPlace;
      if (order_ == Order::kSorted) return NextPhase();
      SetOrder(Order::kNone);
      return PhaseOver(chunks_.size(), &SortedRows::PlaceChunk);
    case Stage::kSort:
      workers_.clear();
      scans_.clear();
      stage_ = context_.descriptor->spec().window.empty() ? Stage::kDone : Stage::kWindows;
      if (stage_ == Stage::kDone) return std::nullopt;
      QUERN_RETURN_IF_ERROR(windows_.Begin(num_rows_, context_.budget));
      return PhaseOver((num_rows_ + kTaskRows - 1) / kTaskRows, &SortedRows::MarkWindows);
    case Stage::kWindows:
      windows_.Finish();
      stage_ = Stage::kDone;
      return std::nullopt;
    case Stage::kDone: break;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<SharedWork::Phase>> SortedRows::Begin() {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  if (compares()) {
    stage_ = Stage::kSort;
    method_ = "comparison";
    QUERN_ASSIGN_OR_RETURN(pointers_, HugeBuffer::Allocate(context_.budget, num_rows_ * 2 * sizeof(uint8_t*),
                                                           context_.options.huge_pages, Contents::kAnything));
    return PhaseOver(1, &SortedRows::SortTuples);
  }
  input_.bits.resize(descriptor.num_words);
  QUERN_RETURN_IF_ERROR(RankDictionary());
  const std::vector<KeyComparison> steps = StepsOf(descriptor, input_.incomplete);
  const uint64_t last_number = chunks_.size() == 0   ? 0
                               : chunks_.size() == 1 ? std::max<uint64_t>(num_rows_, 1) - 1
                                                     : (chunks_.size() << kChunkShift) - 1;
  const auto row_bits = static_cast<uint32_t>(std::bit_width(last_number));
  layout_.emplace(steps, input_.bits, needs_rows_ ? row_bits : 0,
                  needs_rows_ ? context_.options.prefix_words : kMaxEntryWords);
  // Keys that no prefix holds whole are read from rows.
  if (!needs_rows_ && !layout_->rest().empty())
    layout_.emplace(steps, input_.bits, row_bits, context_.options.prefix_words);
  // A number that must be decoded but is not whole in the prefix costs a random line a row; one more word costs less.
  const auto is_cut = [this](uint32_t word) { return !layout_->Holds(word); };
  if (needs_rows_ && context_.options.prefix_words < kMaxEntryWords &&
      std::any_of(words_read_.begin(), words_read_.end(), is_cut)) {
    PrefixLayout wider(steps, input_.bits, row_bits, context_.options.prefix_words + 1);
    if (wider.rest().empty()) layout_.emplace(std::move(wider));
  }
  partition_bits_ = layout_->PrefixBits(descriptor, context_.descriptor->spec().partition);
  if (partition_bits_ == UINT32_MAX) {
    QuernSortDescriptor prefix = descriptor;
    while (prefix.num_parts > 0 && prefix.parts[prefix.num_parts - 1].key >= context_.descriptor->spec().partition)
      --prefix.num_parts;
    partition_steps_ = StepsOf(prefix, input_.incomplete);
    for (KeyComparison& step : partition_steps_)  // strings with codes have undefined bytes
      if (!step.is_tail()) step.mask &= input_.bits[step.word].varying();
  }
  QUERN_ASSIGN_OR_RETURN(entries_, HugeBuffer::Allocate(context_.budget, num_rows_ * layout_->bytes(),
                                                        context_.options.huge_pages, Contents::kAnything));
  const uint32_t bucket_bits = BucketBits();
  if (bucket_bits == 0) {
    stage_ = Stage::kSort;
    return PhaseOver(1, &SortedRows::SortSmall);
  }
  PopulatePages(entries_.data(), entries_.bytes());
  std::vector<uint64_t> sample = SampleFirstWords(std::min(kSampleWords, kSampleWordsOfBucket << bucket_bits));
  QUERN_RETURN_IF_ERROR(PrefixSorter(1, context_.budget).Sort(sample.data(), sample.size()));
  buckets_.emplace(bucket_bits, std::move(sample));
  stage_ = Stage::kScan;
  scans_.resize(chunks_.size());
  return PhaseOver(chunks_.size(), &SortedRows::ScanChunk);
}

// Limits the number of buckets so that their ends stay in the caches.
uint32_t SortedRows::BucketBits() const {
  constexpr uint32_t kMostBits = thresholds::kMostBucketBits;
  const uint64_t bytes = num_rows_ * layout_->bytes(), bucket_bytes = context_.options.bucket_bytes;
  if (bytes <= bucket_bytes) return 0;
  return std::min(static_cast<uint32_t>(std::bit_width((bytes - 1) / bucket_bytes)), kMostBits);
}

// First words of about num_words rows, 16 neighbours at a time.
std::vector<uint64_t> SortedRows::SampleFirstWords(uint64_t num_words) const {
  constexpr uint32_t kSideBySide = 16;
  std::vector<uint64_t> sample;
  const uint64_t step = std::max<uint64_t>(num_rows_ / (num_words / kSideBySide), kSideBySide);
  for (uint64_t c = 0, row = 0; c < chunks_.size(); ++c) {
    const SortChunk& chunk = chunks_[c];
    for (; row - bases_[c] < chunk.num_rows; row += step) {
      const auto begin = static_cast<uint32_t>(row - bases_[c]);
      const uint32_t n = std::min(kSideBySide, chunk.num_rows - begin);
      uint64_t words[kSideBySide];
      layout_->PackFirst(chunk, begin, n, words);
      sample.insert(sample.end(), words, words + n);
    }
  }
  return sample;
}

// ---- ranks ----------------------------------------------------------------------------------------------------------

// Finds the ranks of strings with dictionary codes, and how many bits the ranks vary in.
absl::Status SortedRows::RankDictionary() {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  for (const DictionaryKey& coded : input_.coded) {
    const QuernSortKey& key = descriptor.keys[coded.key];
    QUERN_ASSIGN_OR_RETURN(const uint32_t num_strings,
                           RankStrings(coded.codes, key.rule, context_.budget, &ranks_.emplace_back()));
    for (std::vector<uint32_t>& ranks : ranks_.back())
      for (uint32_t& rank : ranks) rank = key.descending ? num_strings - 1 - rank : rank;
    if (decodes_) QUERN_RETURN_IF_ERROR(OrderStrings(coded, ranks_.back(), num_strings));
    input_.incomplete &= ~(1u << coded.key);
    uint64_t varying = (uint64_t{1} << std::bit_width(num_strings - 1)) - 1;
    for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
      const QuernSortPart& part = descriptor.parts[p];
      if (part.kind != kBytesPart) continue;
      const uint64_t mask = SortPartMask(&part);
      input_.bits[part.word].any = (input_.bits[part.word].any & ~mask) | std::exchange(varying, 0) << part.shift;
      input_.bits[part.word].all &= ~mask;
    }
  }
  return absl::OkStatus();
}

// Orders the strings of a key by rank, when no two strings share one. Short strings are also stored in that order, as
// strings that are read one after the other are often neighbours.
absl::Status SortedRows::OrderStrings(const DictionaryKey& coded, const std::vector<std::vector<uint32_t>>& ranks,
                                      uint32_t num_ranks) {
  constexpr uint32_t kMoved = 256;
  RankedStrings& ranked = ranked_.emplace_back();
  ranked.strings.resize(num_ranks);
  for (size_t local = 0; local < ranks.size(); ++local)
    for (size_t code = 0; code < ranks[local].size(); ++code)
      ranked.strings[ranks[local][code]] = coded.codes[local]->strings()[code];
  uint64_t num_bytes = 0;
  for (const blocks::Bytes& string : ranked.strings) num_bytes += string.length <= kMoved ? string.length : 0;
  QUERN_ASSIGN_OR_RETURN(ranked.bytes, HugeBuffer::Allocate(context_.budget, std::max<uint64_t>(num_bytes, 1), false));
  uint8_t* to = ranked.bytes.data();
  for (blocks::Bytes& string : ranked.strings) {
    if (string.length > kMoved) continue;
    if (string.length != 0) std::memcpy(to, string.data, string.length);
    string.data = to;
    to += string.length;
  }
  ranked_of_key_[coded.key] = ranked.strings.data();
  return absl::OkStatus();
}

// Replaces the codes of a chunk by ranks.
void SortedRows::MakeRanks(uint64_t c) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const SortChunk& chunk = chunks_[c];
  for (size_t k = 0; k < input_.coded.size(); ++k) {
    const uint32_t* const ranks = ranks_[k][input_.locals[c]].data();
    const QuernSortPart& part = *FirstBytesPart(&descriptor, &descriptor.keys[input_.coded[k].key]);
    const uint64_t mask = SortPartMask(&part);
    uint64_t* const words = chunk.words + uint64_t{part.word} * chunk.capacity;
    for (uint32_t i = 0; i < chunk.num_rows; ++i)
      words[i] = (words[i] & ~mask) | uint64_t{ranks[(words[i] & mask) >> part.shift]} << part.shift;
  }
}

// ---- scan -----------------------------------------------------------------------------------------------------------

absl::Status SortedRows::ScanChunk(uint64_t c) {
  MakeRanks(c);
  const SortChunk& chunk = chunks_[c];
  ChunkScan scan;
  scan.buckets.resize(buckets_->num_buckets());
  uint64_t* const counts = scan.buckets.data();
  const BucketMap::Range* const ranges = buckets_->ranges();
  const uint32_t shift = buckets_->shift();
  uint64_t words[PrefixLayout::kBlockRows + 1];
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += PrefixLayout::kBlockRows) {
    const uint32_t n = std::min(PrefixLayout::kBlockRows, chunk.num_rows - begin);
    layout_->PackFirst(chunk, begin, n, words + 1);
    if (begin == 0) words[0] = scan.first = words[1];
    if (buckets_->is_plain()) {
      for (uint32_t i = 1; i <= n; ++i) ++counts[words[i] >> shift];
    } else {
      for (uint32_t i = 1; i <= n; ++i) ++counts[BucketMap::BucketOf(ranges, words[i])];
    }
    uint64_t rises = 0, falls = 0;
    for (uint32_t i = 1; i <= n; ++i) {
      rises += words[i] > words[i - 1] ? 1 : 0;
      falls += words[i] < words[i - 1] ? 1 : 0;
    }
    scan.num_rises += rises;
    scan.num_falls += falls;
    words[0] = scan.last = words[n];
  }
  scans_[c] = std::move(scan);
  return absl::OkStatus();
}

void SortedRows::FindOrder() {
  uint64_t num_rises = 0, num_falls = 0;
  for (size_t c = 0; c < scans_.size(); ++c) {
    num_rises += scans_[c].num_rises + (c > 0 && scans_[c].first > scans_[c - 1].last ? 1 : 0);
    num_falls += scans_[c].num_falls + (c > 0 && scans_[c].first < scans_[c - 1].last ? 1 : 0);
  }
  // In reverse order, the numbers of equal rows would fall.
  const bool reverses_ties = layout_->words() == 1 && layout_->row_bits() != 0 && num_falls + 1 != num_rows_;
  SetOrder(num_falls == 0                       ? Order::kSorted
           : num_rises == 0 && !reverses_ties   ? Order::kReversed
           : num_falls <= num_rows_ / kFewFalls ? Order::kNearly
                                                : Order::kNone);
}

void SortedRows::SetOrder(Order order) {
  order_ = order;
  switch (order) {
    case Order::kSorted: method_ = "sorted"; break;
    case Order::kReversed: method_ = "reversed"; break;
    case Order::kNearly: method_ = "nearly_sorted"; break;
    case Order::kNone:
      method_ = layout_->words() == 1 ? "vector" : "radix";
      CutBuckets();
      break;
  }
}

// ---- place ----------------------------------------------------------------------------------------------------------

// Turns each chunk's counts by bucket into the positions where its prefixes go.
void SortedRows::CutBuckets() {
  uint64_t position = 0;
  for (uint32_t b = 0; b < buckets_->num_buckets(); ++b) {
    if (bounds_.empty() || bounds_.back() != position) bounds_.push_back(position);
    for (ChunkScan& scan : scans_) position += std::exchange(scan.buckets[b], position);
  }
  if (bounds_.back() != position) bounds_.push_back(position);
}

// Ranges of about kTaskRows, cut where first words differ.
void SortedRows::CutRanges() {
  const uint32_t words = layout_->words();
  const uint64_t ignored = words == 1 ? layout_->row_mask() : 0;
  for (uint64_t begin = 0; begin < num_rows_;) {
    bounds_.push_back(begin);
    uint64_t end = std::min(begin + kTaskRows, num_rows_);
    while (end < num_rows_ && ((*EntryAt(end) ^ *EntryAt(end - 1)) & ~ignored) == 0) ++end;
    begin = end;
  }
  bounds_.push_back(num_rows_);
}

// Makes tasks of some buckets each.
void SortedRows::CutTasks() {
  task_bounds_.push_back(0);
  for (uint64_t b = 1; b < bounds_.size(); ++b) {
    const bool is_last = b + 1 == bounds_.size();
    if (is_last || bounds_[b] - bounds_[task_bounds_.back()] >= kTaskRows) task_bounds_.push_back(b);
  }
}

absl::Status SortedRows::PlaceChunk(uint64_t c) {
  if (order_ == Order::kNone) PlaceByBucket(c);
  else PlaceInOrder(c);
  return absl::OkStatus();
}

void SortedRows::PlaceInOrder(uint64_t c) {
  const SortChunk& chunk = chunks_[c];
  const uint32_t words = layout_->words();
  uint64_t buffer[PrefixLayout::kBlockRows * kMaxEntryWords];
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += PrefixLayout::kBlockRows) {
    const uint32_t n = std::min(PrefixLayout::kBlockRows, chunk.num_rows - begin);
    const uint64_t position = bases_[c] + begin;
    if (order_ != Order::kReversed) {
      layout_->Pack(chunk, begin, n, c << kChunkShift, EntryAt(position));
      continue;
    }
    layout_->Pack(chunk, begin, n, c << kChunkShift, buffer);
    for (uint32_t i = 0; i < n; ++i)
      std::copy_n(buffer + uint64_t{i} * words, words, EntryAt(num_rows_ - 1 - position - i));
  }
}

namespace {

template <uint32_t kWords, class BucketOf>
void PartitionInto(const uint64_t* from, uint32_t n, uint64_t* ends, uint64_t* to, BucketOf bucket_of) {
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t position = ends[bucket_of(from[uint64_t{i} * kWords])]++;
    for (uint32_t w = 0; w < kWords; ++w) to[position * kWords + w] = from[uint64_t{i} * kWords + w];
  }
}

template <uint32_t kWords>
void Partition(const uint64_t* from, uint32_t n, const BucketMap& buckets, uint64_t row_mask, uint64_t* ends,
               uint64_t* to) {
  if (buckets.is_plain()) {
    PartitionInto<kWords>(from, n, ends, to, [shift = buckets.shift()](uint64_t word) { return word >> shift; });
  } else {
    // A prefix of one word contains the row's number, which a sample of first words lacks.
    const uint64_t mask = ~row_mask;
    PartitionInto<kWords>(from, n, ends, to, [ranges = buckets.ranges(), mask](uint64_t word) {
      return BucketMap::BucketOf(ranges, word & mask);
    });
  }
}

}  // namespace

void SortedRows::PlaceByBucket(uint64_t c) {
  const SortChunk& chunk = chunks_[c];
  uint64_t* const ends = scans_[c].buckets.data();
  uint64_t buffer[PrefixLayout::kBlockRows * kMaxEntryWords];
  const auto deal = layout_->words() == 1   ? Partition<1>
                    : layout_->words() == 2 ? Partition<2>
                    : layout_->words() == 3 ? Partition<3>
                                            : Partition<4>;
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += PrefixLayout::kBlockRows) {
    const uint32_t n = std::min(PrefixLayout::kBlockRows, chunk.num_rows - begin);
    layout_->Pack(chunk, begin, n, c << kChunkShift, buffer);
    deal(buffer, n, *buckets_, layout_->words() == 1 ? layout_->row_mask() : 0, ends, EntryAt(0));
  }
}

// ---- sort -----------------------------------------------------------------------------------------------------------

std::unique_ptr<SortedRows::Worker> SortedRows::TakeWorker() {
  {
    const std::lock_guard<std::mutex> lock(workers_mutex_);
    if (!workers_.empty()) {
      std::unique_ptr<Worker> worker = std::move(workers_.back());
      workers_.pop_back();
      return worker;
    }
  }
  return std::make_unique<Worker>(context_, *layout_, chunks_, by_row_id_, SettingOf(PrefetchLoop::kCollision));
}

void SortedRows::GiveWorker(std::unique_ptr<Worker> worker) {
  const std::lock_guard<std::mutex> lock(workers_mutex_);
  workers_.push_back(std::move(worker));
}

absl::Status SortedRows::SortRange(uint64_t begin, uint64_t end, Worker* worker) {
  uint64_t* const entries = EntryAt(begin);
  const uint64_t n = end - begin;
  QUERN_RETURN_IF_ERROR(order_ == Order::kNone ? worker->sorter.Sort(entries, n)
                                               : worker->sorter.SortCollisions(entries, n));
  if (layout_->rest().empty() && !by_row_id_) return absl::OkStatus();
  return layout_->row_bits() == 0 ? absl::OkStatus() : worker->ties.Sort(entries, n);
}

absl::Status SortedRows::SortBuckets(uint64_t task) {
  std::unique_ptr<Worker> worker = TakeWorker();
  const uint64_t tied_before = worker->ties.num_collided();
  for (uint64_t b = task_bounds_[task]; b < task_bounds_[task + 1]; ++b)
    QUERN_RETURN_IF_ERROR(SortRange(bounds_[b], bounds_[b + 1], worker.get()));
  collided_rows_ += worker->ties.num_collided() - tied_before;
  GiveWorker(std::move(worker));
  return absl::OkStatus();
}

absl::Status SortedRows::TryNearly(uint64_t) {
  PrefixSorter sorter(layout_->words(), context_.budget);
  QUERN_ASSIGN_OR_RETURN(const bool is_sorted, sorter.SortNearly(EntryAt(0), num_rows_));
  if (is_sorted) order_ = Order::kSorted;
  return absl::OkStatus();
}

absl::Status SortedRows::SortSmall(uint64_t) {
  order_ = Order::kSorted;
  for (uint64_t c = 0; c < chunks_.size(); ++c) {
    MakeRanks(c);
    PlaceInOrder(c);
  }
  const bool is_sorted = IsSorted(EntryAt(0), num_rows_, layout_->words());
  if (!is_sorted) order_ = Order::kNone;
  if (num_rows_ > 1) method_ = is_sorted ? "sorted" : PrefixSorter::MethodFor(layout_->words(), num_rows_);
  if (is_sorted && layout_->rest().empty() && !by_row_id_) return absl::OkStatus();
  Worker worker(context_, *layout_, chunks_, by_row_id_, SettingOf(PrefetchLoop::kCollision));
  QUERN_RETURN_IF_ERROR(SortRange(0, num_rows_, &worker));
  collided_rows_ += worker.ties.num_collided();
  return absl::OkStatus();
}

absl::Status SortedRows::SortTuples(uint64_t) {
  auto** const tuples = reinterpret_cast<uint8_t**>(pointers_.data());
  auto* const numbers = reinterpret_cast<uint64_t*>(tuples + num_rows_);
  uint64_t position = 0;
  for (uint64_t c = 0; c < chunks_.size(); ++c)
    for (uint32_t i = 0; i < chunks_[c].num_rows; ++i) numbers[position++] = c << kChunkShift | i;
  const auto is_before = [&](uint64_t a, uint64_t b) {
    return std::pair(chunks_.RowId(a), a) < std::pair(chunks_.RowId(b), b);
  };
  if (by_row_id_) std::sort(numbers, numbers + num_rows_, is_before);
  for (uint64_t i = 0; i < num_rows_; ++i) tuples[i] = const_cast<uint8_t*>(chunks_.Tuple(numbers[i]));
  context_.entry_points.Now().sort(context_.descriptor->get(), tuples, num_rows_, tuples + num_rows_);
  return absl::OkStatus();
}

// ---- windows --------------------------------------------------------------------------------------------------------

SortRow SortedRows::WordsOf(uint64_t row) const {
  return {chunks_.WordAt(0, row), chunks_[row >> kChunkShift].capacity,
          context_.descriptor->has_tuples() && !decodes_ ? chunks_.Tuple(row) : nullptr};
}

// Whether the row at a position has the same first `partition` keys as the one before.
bool SortedRows::IsSamePartition(uint64_t position) const {
  const uint64_t *a = EntryAt(position - 1), *b = EntryAt(position);
  if (partition_bits_ == UINT32_MAX) {
    return CompareRows(*context_.descriptor->get(), partition_steps_, WordsOf(layout_->RowOf(a)),
                       WordsOf(layout_->RowOf(b))) == 0;
  }
  const uint32_t whole = partition_bits_ / 64, bits = partition_bits_ % 64;
  for (uint32_t w = 0; w < whole; ++w)
    if (a[w] != b[w]) return false;
  return bits == 0 || (a[whole] ^ b[whole]) >> (64 - bits) == 0;
}

bool SortedRows::HasSameKeys(uint64_t position) const {
  const uint64_t *a = EntryAt(position - 1), *b = EntryAt(position);
  if (!layout_->Collides(a)) return false;
  if (layout_->rest().empty()) return true;
  return CompareRows(*context_.descriptor->get(), layout_->rest(), WordsOf(layout_->RowOf(a)),
                     WordsOf(layout_->RowOf(b))) == 0;
}

absl::Status SortedRows::MarkWindows(uint64_t task) {
  const uint64_t end = std::min((task + 1) * kTaskRows, num_rows_);
  for (uint64_t position = task * kTaskRows; position < end; ++position) {
    if (position != 0 && HasSameKeys(position)) continue;
    windows_.MarkPeers(position);
    if (position == 0 || !IsSamePartition(position)) windows_.MarkPartition(position);
  }
  return absl::OkStatus();
}

// ---- reading --------------------------------------------------------------------------------------------------------

PrefetchSetting SortedRows::SettingOf(PrefetchLoop loop) const {
  return context_.options.prefetches ? context_.options.prefetch.For(loop, stored_bytes_) : PrefetchSetting();
}

uint32_t SortedRows::block_rows() const {
  const uint32_t batch_rows = SettingOf(PrefetchLoop::kGather).batch_rows;
  return batch_rows == 0 ? kBlockRows : std::min(batch_rows, kBlockRows);
}

const uint8_t* SortedRows::TupleAt(uint64_t position) const {
  if (compares()) return reinterpret_cast<const uint8_t* const*>(pointers_.data())[position];
  return chunks_.Tuple(layout_->RowOf(EntryAt(position)));
}

namespace {

template <class Prefetch>
void PrefetchString(const uint8_t* field) {
  const uint32_t length = blocks::Load<uint32_t>(field);
  if (length <= kInlineStringBytes) return;
  const uint8_t* const bytes = blocks::Load<const uint8_t*>(field + 8);
  Prefetch::For(bytes);
  Prefetch::For(bytes + (length < 64 ? length - 1 : 63));  // the hardware prefetcher fetches the rest
}

}  // namespace

// A block is read a column at a time, so the prefetch distance counts from its end. The bytes of strings to which
// tuples only point are prefetched half as far ahead, once the tuples have arrived. Tuples found with the previous
// block are kept, unless another reader took the rows between.
template <class Prefetch>
void SortedRows::FindTuples(uint64_t position, uint32_t n, const PrefetchSetting& setting,
                            BlockBuffers* buffers) const {
  const uint64_t tuple_bytes = context_.descriptor->get()->rows.tuple_bytes,
                 ahead = setting.distance == kWholeBatch ? 0 : RingDistance(setting);
  const uint64_t gone = buffers->end == position ? buffers->end - buffers->begin : buffers->num_tuples;
  uint64_t* const tuples = buffers->tuples.data();
  std::copy(tuples + gone, tuples + buffers->num_tuples, tuples);
  buffers->num_tuples -= gone;
  buffers->num_prefetched -= std::min(gone, buffers->num_prefetched);
  buffers->begin = position;
  buffers->end = position + n;
  const uint64_t most = num_rows_ - position, end = std::min(n + ahead, most),
                 strings_end = std::min(n + ahead / 2, most);
  for (; buffers->num_tuples < end; ++buffers->num_tuples) {
    const uint8_t* const tuple = TupleAt(position + buffers->num_tuples);
    tuples[buffers->num_tuples] = reinterpret_cast<uint64_t>(tuple);
    Prefetch::For(tuple);
    if ((reinterpret_cast<uint64_t>(tuple) & 63) + tuple_bytes > 64) Prefetch::For(tuple + tuple_bytes - 1);
  }
  if (!Prefetch::kPrefetches || setting.stages < 2) return;
  for (const uint32_t offset : string_offsets_)
    for (uint64_t i = buffers->num_prefetched; i < strings_end; ++i)
      PrefetchString<Prefetch>(reinterpret_cast<const uint8_t*>(tuples[i]) + offset);
  buffers->num_prefetched = std::max(buffers->num_prefetched, strings_end);
}

// If ids are consecutive within each 1024 rows, a row's id is its number plus a base of those rows; often one base
// serves all rows.
void SortedRows::FindIdBases() {
  const auto keeps_ids = [](const SortChunk* chunk) { return chunk->row_ids != nullptr; };
  if (!reads_row_ids_ || std::any_of(input_.chunks.begin(), input_.chunks.end(), keeps_ids)) return;
  for (uint64_t c = 0; c < chunks_.size(); ++c) {
    const SortChunk& chunk = chunks_[c];
    id_bases_.resize(c << (kChunkShift - SortChunk::kIdShift));
    for (uint32_t i = 0; i < chunk.num_rows; i += 1u << SortChunk::kIdShift)
      id_bases_.push_back(chunk.RowId(i) - (c << kChunkShift | i));
  }
  if (std::adjacent_find(id_bases_.begin(), id_bases_.end(), std::not_equal_to<>()) == id_bases_.end())
    id_bases_.resize(1);
}

template <class Prefetch>
void SortedRows::ReadRowIds(uint64_t position, uint32_t n, const PrefetchSetting& setting, uint64_t* row_ids) const {
  if (!id_bases_.empty()) {
    const uint64_t* const bases = id_bases_.data();
    layout_->UnpackRows(EntryAt(position), n, row_ids);
    if (id_bases_.size() == 1) {
      for (uint32_t i = 0; i < n; ++i) row_ids[i] += bases[0];
    } else {
      for (uint32_t i = 0; i < n; ++i) row_ids[i] += bases[row_ids[i] >> SortChunk::kIdShift];
    }
    return;
  }
  const auto prefetch = [&](uint32_t i) {
    if (const uint64_t* const at = chunks_.RowIdAt(RowAt(position + i))) Prefetch::For(at);
  };
  ForEachRow<Prefetch>(n, RowsAhead(setting, n), prefetch,
                       [&](uint32_t i) { row_ids[i] = chunks_.RowId(RowAt(position + i)); });
}

SortedBlock SortedRows::Read(uint64_t position, uint32_t n, BlockBuffers* buffers) const {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const PrefetchSetting setting = SettingOf(PrefetchLoop::kGather);
  const uint64_t most_rows = std::min<uint64_t>(kBlockRows, num_rows_);  // the buffers of few rows are small
  SortedBlock block;
  block.n = n;
  if (descriptor.rows.tuple_bytes != 0 && !decodes_) {
    buffers->tuples.resize(std::min<uint64_t>(kBlockRows + kMaxPrefetchDistance, num_rows_));
    WithPrefetch(setting, [&]<class Prefetch>() { FindTuples<Prefetch>(position, n, setting, buffers); });
  }
  if (!compares()) {
    buffers->words.resize(words_read_.size() * most_rows);
    buffers->word_columns.resize(descriptor.num_words);
    uint64_t* words = buffers->words.data();
    for (const uint32_t w : words_read_) {
      layout_->Unpack(chunks_, EntryAt(position), n, w, setting, context_.options.distances.word_rows, words);
      buffers->word_columns[w] = words;
      words += most_rows;
    }
    block.words = buffers->word_columns.data();
    if (reads_row_ids_) {
      buffers->row_ids.resize(most_rows);
      WithPrefetch(setting,
                   [&]<class Prefetch>() { ReadRowIds<Prefetch>(position, n, setting, buffers->row_ids.data()); });
      block.row_ids = buffers->row_ids.data();
    }
  }
  block.tuples = buffers->tuples.data();
  block.ranked = decodes_ ? ranked_of_key_.data() : nullptr;
  if (!context_.descriptor->spec().window.empty()) {
    buffers->row_numbers.resize(most_rows);
    buffers->ranks.resize(most_rows);
    buffers->dense_ranks.resize(most_rows);
    windows_.Fill(position, n, buffers->row_numbers.data(), buffers->ranks.data(), buffers->dense_ranks.data());
    block.row_numbers = buffers->row_numbers.data();
    block.ranks = buffers->ranks.data();
    block.dense_ranks = buffers->dense_ranks.data();
  }
  return block;
}

}  // namespace quern
