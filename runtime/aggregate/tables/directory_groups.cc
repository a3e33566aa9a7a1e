// SPDX-License-Identifier: Apache-2.0
// A directory entry is 8 bytes: the address of a tuple and 16 bits of its hash. These bits reject all but 1 in 65,536
// rows whose key differs, without reading the tuple. Each stage covers all rows of a batch before the next one begins,
// as in open_groups.cc:
//
//     probe     goes to the first entry of the line that is empty: the row's group is made there, its tuple is the next
//               free one; or to the first that has its tag: a candidate; or to the next line      directory_probe.cc
//     store     writes the keys of the new groups, consecutively                                  kernel
//     compare   compares candidates with their tuples; those that differ go one entry further     kernel
//
// until no row is left. Where two rows of a batch have the same new key, the first makes the group; the second finds
// its tag there and is compared after the key has been stored. Tuples do not move when the directory grows, and hashes
// lie beside them, so no key is hashed twice.
//
// A batch that goes through more than 64 rounds has met keys whose hashes are not spread, or are even equal: they were
// made so. The directory then takes a secret of its own (Rehash), by which it hashes the keys of tuples. A new row's
// keys are stored in a tuple beside the table first. The hashes beside tuples stay those of the process, which other
// tables and partitions go by.
//
// A batch that is refused memory leaves no groups: those that it has made may point to its strings, or stand where they
// would not be found again. The last tuples are dropped, the directory is filled anew from the others, and the cache of
// short keys, which may know the dropped ones, forgets all.
#include "runtime/aggregate/tables/directory_groups.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

constexpr uint64_t kFewestEntries = 64;
constexpr uint64_t kFirstSpanBytes = uint64_t{16} << 10, kLastSpanBytes = uint64_t{16} << 20;
constexpr uint32_t kMostRounds = thresholds::kLongestGroupProbe / 8;  // of a line each
constexpr uint64_t kFewestGroupsToJump = thresholds::kFourfoldGrowthGroups;
// The share of the L3 cache up to which one pass is enough: beyond it, tuples have to be prefetched earlier (250,000
// texts in 18 MB: 16.3 ns a row with a limit of a quarter, 18.6 with all of it, 17.6 without one pass).
constexpr uint64_t kOnePassShare = thresholds::kOnePassCacheShare;

uint64_t EntryOf(const uint8_t* tuple, uint64_t hash) {
  return reinterpret_cast<uint64_t>(tuple) << kTagBits | (hash & kTagMask);
}
uint8_t* TupleOf(uint64_t entry) { return reinterpret_cast<uint8_t*>(entry >> kTagBits); }

uint64_t WordOf(const QuernRowLayout& group, const uint8_t* tuple) {
  return group.packed_bytes == 4 ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple);
}

uint32_t RowOf(const KeyRows& rows, uint32_t i) { return blocks::RowAt(rows.rows, rows.first, i); }

template <class Word>
uint32_t CompareWords(const uint64_t* words, uint32_t n, const uint32_t* candidates, uint8_t* const* tuples,
                      uint32_t* unequal) {
  uint32_t num_unequal = 0;
  for (uint32_t c = 0; c < n; ++c) {
    const uint32_t i = candidates[c];
    unequal[num_unequal] = i;
    num_unequal += blocks::Load<Word>(tuples[i]) != static_cast<Word>(words[i]);
  }
  return num_unequal;
}

// Rows of a batch whose keys the kernel compares.
struct FieldKeys {
  const GroupContext& context;
  const KeyRows& rows;

  void Hash(uint64_t* hashes) const {
    context.entry_points.Now().hash(context.descriptor->group(), rows.keys, rows.first, rows.rows, rows.n, hashes);
  }
  void Hash(const TableSecret& secret, uint64_t* hashes) const {
    const QuernRowLayout& group = *context.descriptor->group();
    uint32_t batch_rows[kMaxBatchRows];
    uint8_t* tuples[kMaxBatchRows];
    std::vector<uint8_t> stored(uint64_t{rows.n} * group.tuple_bytes);
    for (uint32_t i = 0; i < rows.n; ++i) {
      batch_rows[i] = RowOf(rows, i);
      tuples[i] = stored.data() + uint64_t{i} * group.tuple_bytes;
    }
    StoreKeys(context, rows.keys, batch_rows, rows.n, stored.data());
    HashStoredKeys(group, tuples, rows.n, secret.numbers, hashes);
  }
  uint32_t Compare(uint32_t n, const uint32_t* candidates, uint8_t* const* tuples, uint32_t* unequal) const {
    return context.entry_points.Now().compare(context.descriptor->group(), rows.keys, rows.first, rows.rows, n,
                                              candidates, tuples, unequal);
  }
  void Store(const uint32_t* made, uint32_t n, uint8_t* tuples) const {
    uint32_t batch_rows[kMaxBatchRows];
    for (uint32_t i = 0; i < n; ++i) batch_rows[i] = RowOf(rows, made[i]);
    StoreKeys(context, rows.keys, batch_rows, n, tuples);
  }
};

// Rows of a batch, or groups, with packed keys: their tuples are too wide for slots of a table.
struct PackedKeys {
  const GroupContext& context;
  const uint64_t* words;
  uint32_t n;

  void Hash(uint64_t* hashes) const { HashPackedKeys(words, n, context.descriptor->group()->zero_hashes, hashes); }
  void Hash(const TableSecret& secret, uint64_t* hashes) const {
    for (uint32_t i = 0; i < n; ++i) hashes[i] = secret.Remix(words[i]);
  }
  uint32_t Compare(uint32_t num_candidates, const uint32_t* candidates, uint8_t* const* tuples,
                   uint32_t* unequal) const {
    if (context.descriptor->group()->packed_bytes == 4)
      return CompareWords<uint32_t>(words, num_candidates, candidates, tuples, unequal);
    return CompareWords<uint64_t>(words, num_candidates, candidates, tuples, unequal);
  }
  void Store(const uint32_t* made, uint32_t num_made, uint8_t* tuples) const {
    const QuernRowLayout& group = *context.descriptor->group();
    for (uint32_t i = 0; i < num_made; ++i)
      std::memcpy(tuples + uint64_t{i} * group.tuple_bytes, &words[made[i]], group.packed_bytes);
  }
};

bool EqualStored(const QuernField& key, const uint8_t* a, const uint8_t* b) {
  const bool a_is_null = (a[key.null_offset] & key.null_mask) != 0,
             b_is_null = (b[key.null_offset] & key.null_mask) != 0;
  if (a_is_null || b_is_null) return a_is_null && b_is_null;
  const uint8_t *field_a = a + key.tuple_offset, *field_b = b + key.tuple_offset;
  if (!blocks::IsVariableStorage(key.storage)) {
    const uint32_t bytes = key.storage == kFixed ? key.width_bytes : StorageFieldBytes(key.storage);
    return std::memcmp(field_a, field_b, bytes) == 0;
  }
  const blocks::Bytes string_a = blocks::BytesOf(field_a, key.width_bytes);
  if ((key.rule & kWeighsEquality) != 0)
    return blocks::EqualCollated(string_a, blocks::BytesOf(field_b, key.width_bytes), key.rule);
  return blocks::EqualString(string_a, field_b, key.width_bytes);
}

// Groups of another table.
struct TupleKeys {
  const GroupContext& context;
  const GroupTuples& from;

  void Hash(uint64_t* hashes) const { std::memcpy(hashes, from.hashes, from.n * sizeof(uint64_t)); }
  void Hash(const TableSecret& secret, uint64_t* hashes) const {
    HashStoredKeys(*context.descriptor->group(), from.tuples, from.n, secret.numbers, hashes);
  }
  bool Equal(const uint8_t* a, const uint8_t* b) const {
    const QuernRowLayout& group = *context.descriptor->group();
    for (uint32_t k = 0; k < group.num_keys; ++k)
      if (!EqualStored(group.keys[k], a, b)) return false;
    return true;
  }
  uint32_t Compare(uint32_t n, const uint32_t* candidates, uint8_t* const* tuples, uint32_t* unequal) const {
    uint32_t num_unequal = 0;
    for (uint32_t c = 0; c < n; ++c) {
      const uint32_t i = candidates[c];
      unequal[num_unequal] = i;
      num_unequal += !Equal(from.tuples[i], tuples[i]);
    }
    return num_unequal;
  }
  // Stores keys with their nulls; states and seen bits stay zero.
  void Store(const uint32_t* made, uint32_t n, uint8_t* tuples) const {
    const QuernAggregateDescriptor& descriptor = *context.descriptor->get();
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t* source = from.tuples[made[i]];
      uint8_t* tuple = tuples + uint64_t{i} * descriptor.group.tuple_bytes;
      std::memcpy(tuple, source, descriptor.states_offset);
      std::memset(tuple + descriptor.bits_offset, 0, descriptor.bits_bytes);
      for (uint32_t k = 0; k < descriptor.group.num_keys; ++k) {
        const QuernField& key = descriptor.group.keys[k];
        tuple[key.null_offset] =
            static_cast<uint8_t>(tuple[key.null_offset] | (source[key.null_offset] & key.null_mask));
      }
    }
  }
};

bool WeighsKeys(const QuernRowLayout& group) {
  return std::any_of(group.keys, group.keys + group.num_keys,
                     [](const QuernField& key) { return (key.rule & kWeighsEquality) != 0; });
}

}  // namespace

DirectoryGroups::DirectoryGroups(const GroupContext& context, uint64_t expected_groups)
    : context_(context),
      expected_groups_(expected_groups),
      weighs_keys_(WeighsKeys(*context_.descriptor->group())),
      arena_(context.budget, context.options.huge_pages, Contents::kAnything),
      key_bytes_(context),
      short_keys_(*context_.descriptor->group(), context.options.adapts),
      finds_first_(Gate::kFindFirst, context.options.adapts),
      short_strings_(*context_.descriptor->group(), context.options.adapts) {}

PrefetchSetting DirectoryGroups::prefetch() const {
  return context_.descriptor->group()->prefetches
             ? context_.options.prefetch.For(PrefetchLoop::kUpdateDirectory, bytes())
             : PrefetchSetting();
}

// The first probe of all rows makes no groups: most rows find their group where speed matters, and that takes no more
// than an entry's tag. Rows that are no candidates take the probe that makes groups. A tuple is prefetched once its
// entry is read, and used after the whole batch has been tested.
template <class Prefetch>
void DirectoryGroups::TestOnce(uint32_t n, const PrefetchSetting& setting, DirectoryRows* looking,
                               uint8_t** tuples) const {
  const uint64_t* const entries = reinterpret_cast<const uint64_t*>(directory_.data());
  const uint64_t* const hashes = looking->hashes;
  const uint32_t common_bits = context_.common_bits, shift = shift_;
  const bool prefetches_tuples = setting.stages >= 2;
  const uint64_t last_byte = context_.descriptor->group()->tuple_bytes - 1;
  const auto slot_of = [=](uint32_t i) { return (hashes[i] << common_bits) >> shift; };
  uint32_t num_candidates = 0, num_others = 0;
  const auto prefetch = [=](uint32_t i) { Prefetch::For(&entries[slot_of(i)]); };
  ForEachRow<Prefetch>(n, RowsAhead(setting, n), prefetch, [&](uint32_t i) {
    const uint64_t slot = slot_of(i), found = entries[slot];
    const bool is_candidate = (found != 0) & (((found ^ hashes[i]) & kTagMask) == 0);
    tuples[i] = TupleOf(found);
    if (Prefetch::kPrefetches && prefetches_tuples) {
      Prefetch::For(tuples[i]);
      Prefetch::For(tuples[i] + last_byte);
    }
    looking->candidates[num_candidates] = i;
    num_candidates += is_candidate;
    looking->slots[i] = slot;
    looking->rows[num_others] = i;
    num_others += !is_candidate;
  });
  looking->num_candidates = num_candidates;
  looking->n = num_others;
}

// All rows take the probe that makes groups, without the first probe that makes none.
void DirectoryGroups::PlaceAll(uint32_t n, DirectoryRows* looking) const {
  for (uint32_t i = 0; i < n; ++i) looking->slots[i] = SlotOf(looking->hashes[i]);
  std::iota(looking->rows, looking->rows + n, 0u);
  looking->n = n;
}

// Prefetches tuples that are compared after the keys of the new ones have been stored: both lines that a tuple may lie
// in.
template <class Prefetch>
void DirectoryGroups::PrefetchCandidates(const DirectoryRows& looking, uint8_t* const* tuples) const {
  if constexpr (!Prefetch::kPrefetches) return;
  const uint64_t last_byte = context_.descriptor->group()->tuple_bytes - 1;
  for (uint32_t c = 0; c < looking.num_candidates; ++c) {
    const uint8_t* const tuple = tuples[looking.candidates[c]];
    Prefetch::For(tuple);
    Prefetch::For(tuple + last_byte);
  }
}

// Candidates whose key differs go on, from the next entry.
template <class Keys>
void DirectoryGroups::Compare(const Keys& keys, DirectoryRows* looking, uint8_t** tuples) const {
  if (looking->num_candidates == 0) return;
  uint32_t* const unequal = looking->rows + looking->n;
  looking->n += keys.Compare(looking->num_candidates, looking->candidates, tuples, unequal);
}

// The first probe of all rows makes no groups; the remaining rows take the probe that does.
template <class Keys>
void DirectoryGroups::FindMost(const Keys& keys, uint32_t n, const PrefetchSetting& setting, DirectoryRows* looking,
                               uint8_t** tuples) {
  if constexpr (std::is_same_v<Keys, FieldKeys>) {
    const uint64_t used_bytes =
        num_entries_ * sizeof(uint64_t) + num_groups_ * context_.descriptor->group()->tuple_bytes;
    if (used_bytes <= context_.options.caches.l3_bytes / kOnePassShare && short_strings_.Takes(keys.rows)) {
      const DirectoryView directory = {reinterpret_cast<const uint64_t*>(directory_.data()), num_entries_ - 1,
                                       context_.common_bits, shift_};
      looking->n = short_strings_.Find(directory, setting, keys.rows, looking->hashes, tuples, looking->rows);
      for (uint32_t r = 0; r < looking->n; ++r)
        looking->slots[looking->rows[r]] = SlotOf(looking->hashes[looking->rows[r]]);
      tally()->hits += n - looking->n;
      return;
    }
  }
  WithPrefetch(setting, [&]<class Prefetch>() { TestOnce<Prefetch>(n, setting, looking, tuples); });
  const uint32_t num_others = looking->n;
  Compare(keys, looking, tuples);
  tally()->hits += looking->num_candidates - (looking->n - num_others);
}

// Where a batch had many new groups, the next batch skips the probe that only finds groups and takes the one that makes
// them. (10 M rows, 4.9 M groups of a number and a text: 27 ns a row where the limit is one new group in eight rows, 48
// where it is one in two.)
template <class Keys>
absl::Status DirectoryGroups::FindAll(const Keys& keys, uint32_t n, uint8_t** tuples) {
  if (n == 0) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(MakeRoom(n));
  rows_seen_ += n;
  DirectoryRows looking;
  keys.Hash(looking.hashes);
  if (__builtin_expect(static_cast<int>(has_secret_), 0)) {
    process_hashes_.assign(looking.hashes, looking.hashes + n);
    keys.Hash(secret_, looking.hashes);
  }
  const PrefetchSetting setting = prefetch();
  const uint64_t groups_before = num_groups_;
  if (finds_first_.is_open()) FindMost(keys, n, setting, &looking, tuples);
  else PlaceAll(n, &looking);
  for (uint32_t round = 0; looking.n > 0; ++round) {
    QUERN_RETURN_IF_ERROR(MakeGroups(keys, setting, &looking, tuples));
    if (round < kMostRounds || has_secret_ || context_.descriptor->group()->zero_hashes) continue;
    QUERN_RETURN_IF_ERROR(Rehash());
    rows_seen_ -= n;
    tally()->hits -= n - looking.n;  // which will be found
    return FindAll(keys, n, tuples);
  }
  finds_first_.Count(n, n - (num_groups_ - groups_before));
  return absl::OkStatus();
}

// Among the rows that are still looking, those that find no group make theirs; those whose tag belongs to another key
// go on.
template <class Keys>
absl::Status DirectoryGroups::MakeGroups(const Keys& keys, const PrefetchSetting& setting, DirectoryRows* looking,
                                         uint8_t** tuples) {
  TupleSpan& span = spans_.back();
  const uint64_t tuple_bytes = context_.descriptor->group()->tuple_bytes;
  uint8_t* const first_made = span.tuples + span.num_tuples * tuple_bytes;
  const DirectoryEntries directory = {reinterpret_cast<uint64_t*>(directory_.data()), num_entries_};
  ProbeLines(directory, {first_made, span.hashes + span.num_tuples, tuple_bytes}, setting, looking, tuples);
  if (has_secret_)
    for (uint32_t m = 0; m < looking->num_made; ++m)
      span.hashes[span.num_tuples + m] = process_hashes_[looking->made[m]];
  const uint32_t tuples_distance = setting.stages >= 2 ? setting.distance : 0;
  WithPrefetch<PrefetchHint::kWrite>(tuples_distance,
                                     [&]<class Prefetch>() { PrefetchCandidates<Prefetch>(*looking, tuples); });
  if (looking->num_made > 0) {
    std::memset(first_made, 0, looking->num_made * tuple_bytes);  // states, and nulls of keys, begin as zeros
    keys.Store(looking->made, looking->num_made, first_made);
    span.num_tuples += looking->num_made;
    num_positions_ += looking->num_made;
    num_groups_ += looking->num_made;
    QUERN_RETURN_IF_ERROR(key_bytes_.Keep(first_made, looking->num_made));
  }
  tally()->hits += looking->num_candidates;
  Compare(keys, looking, tuples);
  tally()->steps += looking->n;
  return absl::OkStatus();
}

// Calls find(), and drops the groups that it has made where it was refused memory.
template <class F>
absl::Status DirectoryGroups::FindOrDrop(F&& find) {
  const uint64_t groups_before = num_groups_;
  const absl::Status status = WithoutBadAlloc([&]() -> absl::Status {
    if (!weighs_keys_) return find();
    const RefusedCalls refused;
    QUERN_RETURN_IF_ERROR(find());
    return refused.status();
  });
  if (!status.ok()) DropGroups(groups_before);
  return status;
}

void DirectoryGroups::DropGroups(uint64_t num_left) {
  if (num_entries_ == 0) return;
  short_keys_.Forget();
  while (num_groups_ > num_left && spans_.back().num_tuples < num_groups_ - num_left) {
    num_groups_ -= spans_.back().num_tuples;
    spans_.pop_back();
    span_positions_.pop_back();
  }
  if (num_groups_ > num_left) spans_.back().num_tuples -= num_groups_ - num_left;
  num_groups_ = num_positions_ = num_left;
  std::memset(directory_.data(), 0, num_entries_ * sizeof(uint64_t));
  InsertAll();
}

absl::Status DirectoryGroups::Find(const KeyRows& rows, uint8_t** tuples) {
  if (rows.n == 0) return absl::OkStatus();  // there may be no columns to read
  return FindOrDrop([&] { return FindRows(rows, tuples); });
}

absl::Status DirectoryGroups::FindTuples(const GroupTuples& from, uint8_t** tuples) {
  return FindOrDrop([&] { return FindGroups(from, tuples); });
}

absl::Status DirectoryGroups::FindRows(const KeyRows& rows, uint8_t** tuples) {
  const QuernRowLayout& group = *context_.descriptor->group();
  if (group.packed_bytes == 0) {
    uint32_t others[kMaxBatchRows], num_others = 0;
    if (!short_keys_.Look(rows, tuples, others, &num_others)) return FindAll(FieldKeys{context_, rows}, rows.n, tuples);
    rows_seen_ += rows.n - num_others;
    tally()->hits += rows.n - num_others;
    return num_others == 0 ? absl::OkStatus() : FindOthers(rows, others, num_others, tuples);
  }
  uint64_t words[kMaxBatchRows];
  context_.entry_points.Now().pack(&group, rows.keys, rows.first, rows.rows, rows.n, words);
  return FindAll(PackedKeys{context_, words, rows.n}, rows.n, tuples);
}

// Looks up rows whose short keys the group cache does not hold.
absl::Status DirectoryGroups::FindOthers(const KeyRows& rows, const uint32_t* others, uint32_t n, uint8_t** tuples) {
  uint32_t batch_rows[kMaxBatchRows];
  uint8_t* found[kMaxBatchRows];
  for (uint32_t o = 0; o < n; ++o) batch_rows[o] = RowOf(rows, others[o]);
  QUERN_RETURN_IF_ERROR(FindAll(FieldKeys{context_, {rows.keys, 0, batch_rows, n}}, n, found));
  for (uint32_t o = 0; o < n; ++o) tuples[others[o]] = found[o];
  short_keys_.Learn(others, n, found);
  return absl::OkStatus();
}

absl::Status DirectoryGroups::FindGroups(const GroupTuples& from, uint8_t** tuples) {
  const QuernRowLayout& group = *context_.descriptor->group();
  if (group.packed_bytes == 0) return FindAll(TupleKeys{context_, from}, from.n, tuples);
  uint64_t words[kMaxBatchRows];
  for (uint32_t i = 0; i < from.n; ++i) words[i] = WordOf(group, from.tuples[i]);
  return FindAll(PackedKeys{context_, words, from.n}, from.n, tuples);
}

// ---- memory -------------------------------------------------------------------------------------------------------

absl::Status DirectoryGroups::MakeRoom(uint32_t n) {
  const uint64_t tuple_bytes = context_.descriptor->group()->tuple_bytes;
  if ((num_groups_ + n) * 100 > num_entries_ * context_.options.load_percent)
    QUERN_RETURN_IF_ERROR(Grow(num_groups_ + n));
  if (!spans_.empty() && spans_.back().capacity - spans_.back().num_tuples >= n) return absl::OkStatus();
  const uint64_t row_bytes = tuple_bytes + sizeof(uint64_t);
  const uint64_t grown = std::clamp(num_groups_ * row_bytes, kFirstSpanBytes, kLastSpanBytes) / row_bytes;
  TupleSpan span;
  span.capacity = std::max<uint64_t>(n, grown);
  ReserveOne(&spans_);
  ReserveOne(&span_positions_);
  absl::StatusOr<uint8_t*> bytes = arena_.Allocate(span.capacity * row_bytes);
  if (absl::IsResourceExhausted(bytes.status()) && span.capacity > n) {
    span.capacity = n;
    bytes = arena_.Allocate(n * row_bytes);
  }
  QUERN_ASSIGN_OR_RETURN(span.tuples, std::move(bytes));
  span.hashes =
      reinterpret_cast<uint64_t*>(span.tuples + span.capacity * tuple_bytes);  // tuple_bytes is a multiple of 8
  spans_.push_back(span);
  span_positions_.push_back(num_positions_);
  return absl::OkStatus();
}

void DirectoryGroups::Insert(uint64_t hash, const uint8_t* tuple) {
  uint64_t* const entries = reinterpret_cast<uint64_t*>(directory_.data());
  uint64_t slot = SlotOf(hash);
  while (entries[slot] != 0) slot = (slot + 1) & (num_entries_ - 1);
  entries[slot] = EntryOf(tuple, hash);
}

absl::Status DirectoryGroups::Grow(uint64_t groups) {
  const uint64_t new_groups = num_groups_ - groups_at_growth_, new_rows = rows_seen_ - rows_at_growth_;
  const bool hardly_any_found = num_groups_ >= kFewestGroupsToJump && new_rows < new_groups + new_groups / 2;
  const uint64_t wanted =
      std::max(groups, num_entries_ == 0 ? expected_groups_ : 0) * 100 / context_.options.load_percent + 1;
  const uint64_t least = std::bit_ceil(std::max({wanted, num_entries_ * 2, kFewestEntries}));
  uint64_t num_entries = std::max(least, hardly_any_found ? std::bit_ceil(num_entries_ * 4) : 0);
  const auto allocate = [&] {
    return HugeBuffer::Allocate(context_.budget, num_entries * sizeof(uint64_t), context_.options.huge_pages);
  };
  absl::StatusOr<HugeBuffer> directory = allocate();
  if (absl::IsResourceExhausted(directory.status()) && num_entries != least) {
    num_entries = least;
    directory = allocate();
  }
  QUERN_RETURN_IF_ERROR(directory.status());
  num_growths_ += num_entries_ != 0;
  directory_ = *std::move(directory);
  num_entries_ = num_entries;
  shift_ = 64 - static_cast<uint32_t>(std::bit_width(num_entries - 1));
  rows_at_growth_ = rows_seen_;
  groups_at_growth_ = num_groups_;
  InsertAll();
  return absl::OkStatus();
}

// Makes the directory anew under a secret of its own.
absl::Status DirectoryGroups::Rehash() {
  QUERN_ASSIGN_OR_RETURN(HugeBuffer directory, HugeBuffer::Allocate(context_.budget, num_entries_ * sizeof(uint64_t),
                                                                    context_.options.huge_pages));
  directory_ = std::move(directory);
  ++num_growths_;
  has_secret_ = true;
  secret_ = DrawTableSecret();
  context_.common_bits = 0;  // of hashes of the process
  InsertAll();
  return absl::OkStatus();
}

void DirectoryGroups::InsertAllWithSecret() {
  const QuernRowLayout& group = *context_.descriptor->group();
  uint8_t* tuples[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows];
  for (const TupleSpan& span : spans_) {
    for (uint64_t begin = 0; begin < span.num_tuples; begin += kMaxBatchRows) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(kMaxBatchRows, span.num_tuples - begin));
      for (uint32_t i = 0; i < n; ++i) tuples[i] = span.tuples + (begin + i) * group.tuple_bytes;
      if (group.packed_bytes == 0) HashStoredKeys(group, tuples, n, secret_.numbers, hashes);
      else
        for (uint32_t i = 0; i < n; ++i) hashes[i] = secret_.Remix(WordOf(group, tuples[i]));
      for (uint32_t i = 0; i < n; ++i) Insert(hashes[i], tuples[i]);
    }
  }
}

// Inserts all groups into an empty directory.
void DirectoryGroups::InsertAll() {
  if (has_secret_) return InsertAllWithSecret();
  const uint64_t* const entries = reinterpret_cast<const uint64_t*>(directory_.data());
  const uint64_t tuple_bytes = context_.descriptor->group()->tuple_bytes,
                 distance = context_.options.distances.rebuild_rows;
  WithPrefetch<PrefetchHint::kWrite>(distance, [&]<class Prefetch>() {
    for (const TupleSpan& span : spans_) {
      for (uint64_t t = 0; t < span.num_tuples; ++t) {
        Prefetch::For(&entries[SlotOf(span.hashes[std::min(t + distance, span.num_tuples - 1)])]);
        Insert(span.hashes[t], span.tuples + t * tuple_bytes);
      }
    }
  });
}

void DirectoryGroups::Release() {
  short_keys_.Forget();
  spans_.clear();
  span_positions_.clear();
  arena_.Clear();
  directory_.Free();
  num_entries_ = num_groups_ = num_positions_ = 0;
  shift_ = 64;
}

// ---- reading ------------------------------------------------------------------------------------------------------

uint32_t DirectoryGroups::Scan(uint64_t begin, uint64_t end, uint8_t** tuples) {
  return ScanSpans(spans_, span_positions_, context_.descriptor->group()->tuple_bytes, begin, end, tuples);
}

void DirectoryGroups::HashesOf(uint64_t begin, uint8_t* const*, uint32_t n, uint64_t* hashes) const {
  size_t s = static_cast<size_t>(std::upper_bound(span_positions_.begin(), span_positions_.end(), begin) -
                                 span_positions_.begin()) -
             1;
  for (uint32_t i = 0; i < n; ++s) {
    for (uint64_t t = begin + i - span_positions_[s]; t < spans_[s].num_tuples && i < n; ++t)
      hashes[i++] = spans_[s].hashes[t];
  }
}

}  // namespace quern
