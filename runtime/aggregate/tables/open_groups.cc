// SPDX-License-Identifier: Apache-2.0
// The search for a word begins at the slot that the top bits of its hash select and proceeds slot by slot; the first
// slot that holds the word or is empty belongs to it. All rows of a batch take their first probe before any takes its
// second, and no probe branches on what it finds:
//
//     words 7 9 4 9, slots .. |9| | | ..      probe 1: 7 looks at |9|, another's, and stays; 9 is found;
//                                                      4 looks at | | and stays; 9 is found
//                                             probe 2: 7 still looks at |9|; 4 is made
//                                             probe 3: 7 looks one slot further
//
// The first probe makes no groups, which costs new groups a probe and saves all others a store.
//
// In a large table a word begins at the first slot of a pair in one cache line, and the first probe looks at both
// slots, because a further probe would cost another line.
//
// With 50 % of the slots taken, a row needs 1.5 probes on average. The word 0 cannot be distinguished from an empty
// slot and has a slot behind the last.
//
// Since slots are in the order of hashes, a table of twice the size holds the same groups in the same order: growing is
// a sequential pass, 1 to 2 ns a group compared with 50 for a random insertion. A large table grows in place: slot 1000
// of 4096 becomes 2000 or 2001 of 8192, so from the last to the first, each tuple moves to a place behind all tuples
// that have not moved yet.
//
// A walk of more than 512 slots means that the words' hashes are not spread: they were made to meet, or they are the
// groups of another table, in its order. Find then stops, and Rehash moves the groups to a table whose hashes are made
// with a secret of its own. Different words have different hashes, so such a table is as good as any.
#include "runtime/aggregate/tables/open_groups.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/packed_key_lanes.h"
#include "runtime/rows/prefetch_lines.h"
#include "runtime/rows/tuple_store.h"

namespace quern {
namespace {

using blocks::Load;
using blocks::Store;

constexpr uint32_t kCopyRows = 256;
constexpr uint64_t kGrowingBytes = thresholds::kGrowInPlaceBytes;
constexpr uint64_t kReservedTimes = 64;  // reserve addresses for a table this many times as large
constexpr uint64_t kPairedBytes = thresholds::kPairedSlotsBytes;
constexpr uint64_t kWidestPairedSlot = 32;  // bytes: two are a line
constexpr uint64_t kFirstSlots = 4096;      // moved last when a table grows in place
constexpr uint32_t kLongestWalk = thresholds::kLongestGroupProbe;

void HashWithSecret(const uint64_t* words, uint32_t n, const TableSecret& secret, uint64_t* hashes) {
  for (uint32_t i = 0; i < n; ++i) hashes[i] = secret.Remix(words[i]);
}

}  // namespace

absl::Status OpenGroups::Allocate(uint64_t bytes, bool huge_pages, const std::shared_ptr<MemoryBudget>& budget) {
  if (bytes >= kGrowingBytes) {
    if (auto reserved = GrowingBuffer::Reserve(budget, bytes * kReservedTimes, huge_pages); reserved.ok()) {
      QUERN_RETURN_IF_ERROR(reserved->Grow(bytes));
      growing_ = *std::move(reserved);
      memory_.Free();
      slots_ = growing_.data();
      return absl::OkStatus();
    }
  }
  QUERN_ASSIGN_OR_RETURN(HugeBuffer memory, HugeBuffer::Allocate(budget, bytes, huge_pages));
  memory_ = std::move(memory);
  growing_.Free();
  slots_ = memory_.data();
  return absl::OkStatus();
}

absl::Status OpenGroups::Begin(const QuernRowLayout& group, uint32_t bits, uint32_t common_bits, bool huge_pages,
                               const std::shared_ptr<MemoryBudget>& budget) {
  const uint64_t num_slots = uint64_t{1} << bits;
  QUERN_RETURN_IF_ERROR(Allocate((num_slots + 1) * group.tuple_bytes, huge_pages, budget));
  num_slots_ = num_slots;
  shift_ = 64 - bits;
  common_bits_ = common_bits;
  slot_bytes_ = group.tuple_bytes;
  SetPairs();
  packed_bytes_ = group.packed_bytes;
  zero_hashes_ = group.zero_hashes;
  num_groups_ = 0;
  has_zero_ = false;
  return absl::OkStatus();
}

void OpenGroups::SetPairs() {
  const bool has_pairs = slot_bytes_ <= kWidestPairedSlot && num_slots_ * slot_bytes_ > kPairedBytes;
  first_slot_mask_ = has_pairs ? ~uint64_t{1} : ~uint64_t{0};
}

// Calls f with the sizes of word and slot as constants; 0 stands for rare sizes.
template <class F>
void OpenGroups::WithWordAndBytes(F&& f) const {
  const auto with_bytes = [&]<class Word>() {
    switch (slot_bytes_) {
      case 8: return f.template operator()<Word, 8>();
      case 16: return f.template operator()<Word, 16>();
      case 32: return f.template operator()<Word, 32>();
      case 64: return f.template operator()<Word, 64>();
      default: return f.template operator()<Word, 0>();
    }
  };
  if (packed_bytes_ == 4) with_bytes.template operator()<uint32_t>();
  else with_bytes.template operator()<uint64_t>();
}

void OpenGroups::Hash(const uint64_t* words, uint32_t n, uint64_t* hashes) const {
  if (has_secret_) return HashWithSecret(words, n, secret_, hashes);
  HashPackedKeys(words, n, zero_hashes_, hashes);
  if (common_bits_ == 0) return;
  for (uint32_t i = 0; i < n; ++i) hashes[i] <<= common_bits_;
}

template <class Word, uint32_t kBytes>
void OpenGroups::CopyTo(OpenGroups* larger) const {
  const uint8_t* from[kCopyRows];
  uint64_t words[kCopyRows], hashes[kCopyRows];
  const uint64_t bytes = kBytes != 0 ? kBytes : slot_bytes_, mask = larger->num_slots_ - 1;
  for (uint64_t slot = 0; slot < num_slots_;) {
    uint32_t n = 0;
    for (; slot < num_slots_ && n < kCopyRows; ++slot) {
      const uint8_t* tuple = slots_ + slot * bytes;
      from[n] = tuple;
      words[n] = Load<Word>(tuple);
      n += words[n] != 0;
    }
    larger->Hash(words, n, hashes);
    for (uint32_t i = 0; i < n; ++i) {
      uint64_t to = larger->FirstSlot(hashes[i]);
      while (Load<Word>(larger->slots_ + to * bytes) != 0) to = (to + 1) & mask;
      std::memcpy(larger->slots_ + to * bytes, from[i], bytes);
    }
  }
  std::memcpy(larger->slots_ + larger->num_slots_ * bytes, slots_ + num_slots_ * bytes, bytes);
  larger->num_groups_ = num_groups_;
  larger->has_zero_ = has_zero_;
}

// Puts a tuple where its hash belongs, unless that is before slot `first_free` or past the end; returns whether it did.
template <class Word, uint32_t kBytes>
bool OpenGroups::PutFrom(const uint8_t* tuple, uint64_t hash, uint64_t first_free) {
  const uint64_t bytes = kBytes != 0 ? kBytes : slot_bytes_;
  uint64_t to = FirstSlot(hash);
  if (to < first_free) return false;
  while (Load<Word>(slots_ + to * bytes) != 0)
    if (++to == num_slots_) return false;
  std::memcpy(slots_ + to * bytes, tuple, bytes);
  return true;
}

// Rearranges tuples after the table has become larger. From the last block to the first, each block is taken out and
// its tuples put where their hashes now belong, which is behind all tuples not yet taken out. The few tuples for which
// it is not, and the first ones, wait.
template <class Word, uint32_t kBytes>
void OpenGroups::SpreadOut(uint64_t old_num_slots, Moving* moving) {
  const uint64_t bytes = kBytes != 0 ? kBytes : slot_bytes_, num_first = std::min(old_num_slots, kFirstSlots);
  std::vector<uint8_t>&waiting = moving->waiting, &block = moving->block;
  waiting.assign(slots_, slots_ + num_first * bytes);
  std::memset(slots_, 0, num_first * bytes);
  uint64_t words[kCopyRows], hashes[kCopyRows];
  for (uint64_t end = old_num_slots; end > num_first;) {
    const uint64_t begin = std::max(num_first, end - std::min<uint64_t>(end, kCopyRows)), n = end - begin;
    // Empty slots are skipped here, without a branch that would be mispredicted half of the time.
    uint32_t num_taken = 0;
    for (uint64_t slot = begin; slot < begin + n; ++slot) {
      const uint8_t* tuple = slots_ + slot * bytes;
      std::memcpy(block.data() + num_taken * bytes, tuple, bytes);
      words[num_taken] = Load<Word>(tuple);
      num_taken += words[num_taken] != 0;
    }
    std::memset(slots_ + begin * bytes, 0, n * bytes);
    Hash(words, num_taken, hashes);
    for (uint32_t i = 0; i < num_taken; ++i) {
      const uint8_t* tuple = block.data() + i * bytes;
      if (!PutFrom<Word, kBytes>(tuple, hashes[i], begin)) waiting.insert(waiting.end(), tuple, tuple + bytes);
    }
    end = begin;
  }
  for (uint64_t at = 0; at < waiting.size(); at += bytes) {
    const uint8_t* tuple = waiting.data() + at;
    words[0] = Load<Word>(tuple);
    if (words[0] == 0) continue;
    Hash(words, 1, hashes);
    uint64_t to = FirstSlot(hashes[0]);
    while (Load<Word>(slots_ + to * bytes) != 0) to = (to + 1) & (num_slots_ - 1);
    std::memcpy(slots_ + to * bytes, tuple, bytes);
  }
}

absl::Status OpenGroups::Grow(uint32_t more_bits, bool huge_pages, const std::shared_ptr<MemoryBudget>& budget) {
  const uint64_t old_num_slots = num_slots_, num_slots = num_slots_ << more_bits, bytes = (num_slots + 1) * slot_bytes_;
  if (growing_.data() != nullptr && bytes <= growing_.most_bytes()) {
    Moving moving;  // all that moving takes, so that nothing is refused when it has begun
    moving.waiting.reserve((std::min(old_num_slots, kFirstSlots) + kCopyRows) * slot_bytes_);
    moving.block.resize(kCopyRows * slot_bytes_);
    QUERN_RETURN_IF_ERROR(growing_.Grow(bytes));
    is_broken_ = true;
    num_slots_ = num_slots;
    shift_ -= more_bits;
    SetPairs();
    uint8_t* const old_end = slots_ + old_num_slots * slot_bytes_;  // the slot of the word 0
    std::memcpy(slots_ + num_slots * slot_bytes_, old_end, slot_bytes_);
    std::memset(old_end, 0, slot_bytes_);
    WithWordAndBytes([&]<class Word, uint32_t kBytes>() { SpreadOut<Word, kBytes>(old_num_slots, &moving); });
    is_broken_ = false;
    return absl::OkStatus();
  }
  OpenGroups larger;
  larger.has_secret_ = has_secret_;
  larger.secret_ = secret_;
  return MoveTo(&larger, 64 - shift_ + more_bits, huge_pages, budget);
}

// Moves the groups to a table of 2^bits slots, which replaces this one.
absl::Status OpenGroups::MoveTo(OpenGroups* other, uint32_t bits, bool huge_pages,
                                const std::shared_ptr<MemoryBudget>& budget) {
  QuernRowLayout group = {};
  group.tuple_bytes = slot_bytes_;
  group.packed_bytes = packed_bytes_;
  group.zero_hashes = zero_hashes_;
  QUERN_RETURN_IF_ERROR(other->Begin(group, bits, other->has_secret_ ? 0 : common_bits_, huge_pages, budget));
  WithWordAndBytes([&]<class Word, uint32_t kBytes>() { CopyTo<Word, kBytes>(other); });
  *this = std::move(*other);
  return absl::OkStatus();
}

absl::Status OpenGroups::Rehash(bool huge_pages, const std::shared_ptr<MemoryBudget>& budget) {
  OpenGroups rehashed;
  rehashed.has_secret_ = true;
  rehashed.secret_ = DrawTableSecret();
  return MoveTo(&rehashed, 64 - shift_, huge_pages, budget);
}

namespace {

// What the first probe needs of a table.
struct FirstProbe {
  uint8_t* slots;
  uint8_t* end;  // of all slots but the word 0's, which lies there
  uint64_t slot_bytes;
  uint64_t first_slot_mask;
  uint32_t shift;
  uint32_t common_bits;
  bool zero_hashes;
  uint32_t packed_keys_ahead;  // prefetch distance for the words; 0: none, they are in the cache
  PrefetchSetting setting;
  const TableSecret* secret = nullptr;  // of a table that has one of its own
};

// The result. Rows that look on did not find their word in the slot that the hash selects.
struct FirstProbed {
  uint32_t num_looking = 0;
  uint32_t num_further = 0;  // slots passed by rows that look on
  bool has_zeros = false;
};

// The first probe of all rows: writes to `tuples` the address of each row's slot, or of the next one where the slot
// belongs to another word, and to `looking` (room for n + 8) the rows that look on. It makes no groups, so rows of
// present groups, the majority where speed matters, cost no store into the table. Where lines are prefetched, it also
// prefetches what a row will look at next.
using StepLoop = FirstProbed (*)(const FirstProbe& table, const uint64_t* words, uint32_t n, uint8_t** tuples,
                                 uint32_t* looking);

template <class Word, class Prefetch>
FirstProbed StepByRow(const FirstProbe& table, const uint64_t* words, uint32_t n, uint8_t** tuples, uint32_t* looking) {
  const FirstProbe t = table;  // a copy, so that the compiler need not assume that stores change it
  FirstProbed done;
  uint64_t hashes[kMaxBatchRows];
  if (t.secret == nullptr) HashPackedKeys(words, n, t.zero_hashes, hashes);
  else HashWithSecret(words, n, *t.secret, hashes);
  for (uint32_t i = 0; i < n; ++i) {
    const bool is_zero = words[i] == 0;
    uint8_t* const at = t.slots + (((hashes[i] << t.common_bits) >> t.shift) & t.first_slot_mask) * t.slot_bytes;
    tuples[i] = is_zero ? t.end : at;  // always equal to it
    done.has_zeros |= is_zero;
  }
  const auto prefetch = [=](uint32_t i) { Prefetch::For(tuples[i]); };
  ForEachRow<Prefetch>(n, RowsAhead(t.setting, n), prefetch, [&](uint32_t i) {
    uint8_t* const at = tuples[i];
    const Word found = Load<Word>(at);
    const bool looks = found != static_cast<Word>(words[i]), leaves = looks & (found != 0);
    uint8_t* const next = at + t.slot_bytes == t.end ? t.slots : at + t.slot_bytes;
    tuples[i] = leaves ? next : at;
    if constexpr (Prefetch::kPrefetches) Prefetch::For(tuples[i]);
    looking[done.num_looking] = i;
    done.num_looking += looks;
    done.num_further += leaves;
  });
  return done;
}

#if defined(__x86_64__)
// Writes the slots that the hashes of `whole` rows, a multiple of eight, select; returns whether one of the words is 0.
template <class Prefetch>
QUERN_AVX512 bool PlaceByEight(const FirstProbe& t, const uint64_t* words, uint32_t whole, uint8_t** tuples) {
  const __m512i slots = AllEight(t.slots), end = AllEight(t.end), slot_bytes = AllEight(t.slot_bytes);
  const __m512i hashed = AllEight(t.zero_hashes ? 0 : ~uint64_t{0}), slot_mask = AllEight(t.first_slot_mask);
  const __m128i common_bits = _mm_cvtsi32_si128(static_cast<int>(t.common_bits)),
                shift = _mm_cvtsi32_si128(static_cast<int>(t.shift));
  uint32_t zeros = 0;
  for (uint32_t i = 0; i < whole; i += 8) {
    Prefetch::For(words + i + t.packed_keys_ahead);
    const __m512i word = _mm512_loadu_si512(words + i), hash = _mm512_and_si512(HashEight(word), hashed);
    const __m512i slot = _mm512_and_si512(_mm512_srl_epi64(_mm512_sll_epi64(hash, common_bits), shift), slot_mask);
    const __mmask8 is_zero = _mm512_testn_epi64_mask(word, word);
    const __m512i at = _mm512_add_epi64(slots, _mm512_mullo_epi64(slot, slot_bytes));
    _mm512_storeu_si512(tuples + i, _mm512_mask_mov_epi64(at, is_zero, end));  // always equal to it
    zeros |= is_zero;
  }
  return zeros != 0;
}

// Eight rows at a time, without a branch that depends on the result.
template <class Word, bool kPairs, class Prefetch>
QUERN_AVX512 FirstProbed StepByEight(const FirstProbe& table, const uint64_t* words, uint32_t n, uint8_t** tuples,
                                     uint32_t* looking) {
  const FirstProbe t = table;
  const uint32_t whole = n / 8 * 8, ahead = RowsAhead(t.setting, whole);
  const __m512i slots = AllEight(t.slots), end = AllEight(t.end), slot_bytes = AllEight(t.slot_bytes);
  FirstProbed done;
  done.has_zeros = WithPrefetch<kInputHint>(
      t.packed_keys_ahead, [&]<class Input>() { return PlaceByEight<Input>(t, words, whole, tuples); });
  if constexpr (Prefetch::kPrefetches)
    for (uint32_t i = 0; i < ahead; ++i) Prefetch::For(tuples[i]);
  __m256i rows = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (uint32_t i = 0; i < whole; i += 8) {
    if constexpr (Prefetch::kPrefetches) {
      // Past the last row the last one again, so that no row has a branch of its own.
      if (i + ahead < whole)
        for (uint32_t k = 0; k < 8; ++k) Prefetch::For(tuples[std::min(i + k + ahead, whole - 1)]);
    }
    const __m512i word = WordsOfRows<Word>(words + i), found = WordsIn<Word>(tuples + i, 0);
    __mmask8 looks = _mm512_cmpneq_epi64_mask(found, word);
    const __mmask8 leaves = _mm512_mask_test_epi64_mask(looks, found, found);
    __m512i at = _mm512_loadu_si512(tuples + i);
    at = _mm512_mask_add_epi64(at, leaves, at, slot_bytes);
    done.num_further += static_cast<uint32_t>(__builtin_popcount(leaves));
    if constexpr (kPairs) {
      const __m512i second = WordsIn<Word>(tuples + i, t.slot_bytes);
      const __mmask8 finds = _mm512_mask_cmpeq_epi64_mask(leaves, second, word);
      const __mmask8 leaves_both = _mm512_mask_test_epi64_mask(static_cast<__mmask8>(leaves & ~finds), second, second);
      at = _mm512_mask_add_epi64(at, leaves_both, at, slot_bytes);
      done.num_further += static_cast<uint32_t>(__builtin_popcount(leaves_both));
      looks = static_cast<__mmask8>(looks & ~finds);
    }
    at = _mm512_mask_mov_epi64(at, _mm512_mask_cmpeq_epi64_mask(leaves, at, end), slots);
    _mm512_storeu_si512(tuples + i, at);
    // To a register and then to memory: ten times as fast as directly to memory; later stores overwrite the excess.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(looking + done.num_looking),
                        _mm256_maskz_compress_epi32(looks, rows));
    const uint32_t looking_end = done.num_looking + static_cast<uint32_t>(__builtin_popcount(looks));
    if constexpr (Prefetch::kPrefetches)
      for (uint32_t k = done.num_looking; k < looking_end; ++k) Prefetch::For(tuples[looking[k]]);
    done.num_looking = looking_end;
    rows = _mm256_add_epi32(rows, _mm256_set1_epi32(8));
  }
  if (whole == n) return done;
  uint32_t rest[16];
  const FirstProbed after = StepByRow<Word, Prefetch>(t, words + whole, n - whole, tuples + whole, rest);
  for (uint32_t k = 0; k < after.num_looking; ++k) looking[done.num_looking++] = whole + rest[k];
  done.num_further += after.num_further;
  done.has_zeros |= after.has_zeros;
  return done;
}

// The second probe of rows that look on, until a row would make a group, so that rows of present groups take no probe
// with a store. Returns how many rows look on afterwards, including those left over from the last eight.
template <class Word>
QUERN_AVX512 uint32_t StepAgainByEight(const FirstProbe& table, const uint64_t* words, uint8_t** tuples,
                                       uint32_t* looking, uint32_t n, uint64_t* num_further) {
  const FirstProbe t = table;
  const __m512i slots = AllEight(t.slots), end = AllEight(t.end), slot_bytes = AllEight(t.slot_bytes);
  const uint32_t whole = n / 8 * 8;
  uint32_t num_looking = 0;
  for (uint32_t r = 0; r < whole; r += 8) {
    const uint32_t* const rows = looking + r;
    uint8_t* eight[8];
    for (uint32_t k = 0; k < 8; ++k) eight[k] = tuples[rows[k]];
    const __m512i word = AsInSlots<Word>(OfRows(words, rows)), found = WordsIn<Word>(eight, 0);
    const __mmask8 looks = _mm512_cmpneq_epi64_mask(found, word),
                   leaves = _mm512_mask_test_epi64_mask(looks, found, found);
    __m512i at = OfRows(tuples, rows);
    at = _mm512_mask_add_epi64(at, leaves, at, slot_bytes);
    at = _mm512_mask_mov_epi64(at, _mm512_mask_cmpeq_epi64_mask(leaves, at, end), slots);
    _mm512_storeu_si512(eight, at);
    for (uint32_t k = 0; k < 8; ++k) tuples[rows[k]] = eight[k];
    const __m256i still =
        _mm256_maskz_compress_epi32(looks, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(looking + num_looking), still);
    num_looking += static_cast<uint32_t>(__builtin_popcount(looks));
    *num_further += static_cast<uint32_t>(__builtin_popcount(leaves));
  }
  for (uint32_t r = whole; r < n; ++r) looking[num_looking++] = looking[r];
  return num_looking;
}
#endif

template <class Word>
StepLoop StepLoopFor(const PrefetchSetting& setting, [[maybe_unused]] bool has_pairs,
                     [[maybe_unused]] bool has_secret) {
  return WithPrefetch(setting, [=]<class Prefetch>() -> StepLoop {
#if defined(__x86_64__)
    if (HasAvx512() && !has_secret)
      return has_pairs ? StepByEight<Word, true, Prefetch> : StepByEight<Word, false, Prefetch>;
#endif
    return StepByRow<Word, Prefetch>;
  });
}

}  // namespace

template <class Word, uint32_t kBytes>
OpenGroups::Steps OpenGroups::FindAs(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead,
                                     const PrefetchSetting& setting, uint8_t** tuples) {
  uint32_t looking[kMaxBatchRows + 8];
  const uint64_t bytes = kBytes != 0 ? kBytes : slot_bytes_;
  uint8_t* const slots = slots_;
  uint8_t* const end = slots + num_slots_ * bytes;
  const FirstProbe table = {slots,        end,
                            bytes,        first_slot_mask_,
                            shift_,       common_bits_,
                            zero_hashes_, packed_keys_ahead,
                            setting,      has_secret_ ? &secret_ : nullptr};
  const FirstProbed first =
      StepLoopFor<Word>(setting, first_slot_mask_ != ~uint64_t{0}, has_secret_)(table, words, n, tuples, looking);
  Steps steps = {0, first.num_further};
  const uint32_t longest_walk = has_secret_ || zero_hashes_ ? UINT32_MAX : kLongestWalk;
  uint32_t walk = 0;
  uint64_t num_made = 0;
  uint32_t num_looking = first.num_looking;
#if defined(__x86_64__)
  // Not where most rows look at an empty slot: their groups are new.
  if (HasAvx512() && setting.distance == 0 && first.num_further > first.num_looking / 2)
    num_looking = StepAgainByEight<Word>(table, words, tuples, looking, num_looking, &steps.further);
#endif
  for (; num_looking > 0 && walk <= longest_walk; steps.further += num_looking, ++walk) {
    const uint32_t num_rows = num_looking;
    num_looking = 0;
    for (uint32_t r = 0; r < num_rows; ++r) {
      const uint32_t row = looking[r];
      uint8_t* const at = tuples[row];
      const Word word = static_cast<Word>(words[row]), found = Load<Word>(at);
      const bool is_empty = found == 0, is_equal = found == word;
      Store(at, is_empty ? word : found);
      num_made += is_empty;
      uint8_t* const next = at + bytes == end ? slots : at + bytes;
      tuples[row] = (is_empty | is_equal) ? at : next;
      looking[num_looking] = row;
      num_looking += !(is_empty | is_equal);
      // Few rows get here, and they read lines that the first probe has prefetched.
      PrefetchIf(setting.distance, tuples[row] + ((is_empty | is_equal) ? 0 : bytes));
    }
  }
  num_groups_ += num_made;
  has_zero_ |= first.has_zeros;
  steps.hits = n - num_made;
  steps.too_far = num_looking > 0;
  return steps;
}

OpenGroups::Steps OpenGroups::Find(const uint64_t* words, uint32_t n, const PrefetchSetting& setting, uint8_t** tuples,
                                   uint32_t packed_keys_ahead) {
  Steps steps = {};
  WithWordAndBytes([&]<class Word, uint32_t kBytes>() {
    steps = FindAs<Word, kBytes>(words, n, packed_keys_ahead, setting, tuples);
  });
  return steps;
}

uint32_t OpenGroups::Scan(uint64_t begin, uint64_t end, uint64_t ahead_bytes, uint8_t** tuples) const {
  uint32_t n = 0;
  const uint64_t bytes = slot_bytes_;
  const auto scan = [&]<class Word, class Prefetch>() {
    uint8_t* tuple = slots_ + begin * bytes;
    for (uint64_t slot = begin; slot < std::min(end, num_slots_); ++slot, tuple += bytes) {
      Prefetch::For(tuple + ahead_bytes);
      tuples[n] = tuple;
      n += Load<Word>(tuple) != 0;
    }
  };
  WithPrefetch(ahead_bytes, [&]<class Prefetch>() {
    if (packed_bytes_ == 4) scan.template operator()<uint32_t, Prefetch>();
    else scan.template operator()<uint64_t, Prefetch>();
  });
  if (end > num_slots_ && has_zero_) tuples[n++] = slots_ + num_slots_ * bytes;
  return n;
}

}  // namespace quern
