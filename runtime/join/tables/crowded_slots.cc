// SPDX-License-Identifier: Apache-2.0
// A slot of an unchained table has half a tuple on average, and a probe compares all of them. More than 256 tuples mean
// one of two things:
//
//     key 7 has 1,000 rows           not crowded: nothing is done
//     1,000 keys share top bits      crowded: the tuples are sorted by hash, and 1,000 runs are noted
//
// Which of them shows in the slot's tag, of whose 16 bits a hash sets four, or in 16 of its tuples, taken at random. A
// frequent key may be among those that meet. So a hash is elected by a vote (Boyer and Moore, 1991), and only the
// tuples of others are sorted. They go behind those of the elected one:
//
//     hashes of the tuples    9 9 4 9 2 9     vote: 9
//     tuples afterwards       0 1 5 3 4 2     runs: 9 -> 0..3, 2 -> 4, 4 -> 5
//
// A probe row that reaches such a slot looks up its hash and then compares only tuples of this hash. Whatever the keys,
// it compares at most 256 tuples with other hashes. Tuples keep their slot, so nothing else in the table changes.
//
// Different packed keys have different hashes, so that keys stand for hashes until runs are noted. Where keys are not
// packed, hashes do not lie in tuples and are read from the spans. A slot's tuples lie in the order of the spans.
#include "runtime/join/tables/crowded_slots.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint32_t kBlockRows = 1024;
constexpr uint64_t kFewestBuckets = 64;
constexpr uint64_t kVoters = 64;
constexpr uint64_t kSample = 16;
constexpr int64_t kFewestOthers = 4;  // in a sample of a crowd

// A word that stands for a tuple's hash: its packed key, or the hash itself.
using Mark = uint64_t;

struct Slot {
  uint64_t number = 0;
  uint64_t begin = 0, end = 0;  // bytes
  Mark elected = 0;             // the most frequent one, if it has more than half of the votes
  uint64_t votes = 0;
  uint64_t num_seen = 0;
  uint64_t num_others = 0;  // tuples of other marks
  uint64_t first_other = 0;

  // Any mark may be elected: the tuples of others take longer, no more.
  void Vote(Mark mark) {
    if (votes == 0) elected = mark;
    votes += mark == elected ? 1 : uint64_t{0} - 1;
  }
};

struct MarkedTuple {
  Mark mark;
  uint64_t number;  // in its slot; later among the others
  bool operator<(const MarkedTuple& other) const { return mark < other.mark; }
};

// The crowded slots of one range of slots.
class Range {
 public:
  Range(const UnchainedBuild& build, const TupleList& spans)
      : build_(build), spans_(spans), is_packed_(build.format.packed_bytes != 0) {
    for (const uint64_t number : *build.crowded) {
      const uint64_t* const entry = &build.directory[number];
      const uint64_t begin = number == build.first_slot ? build.first_byte : entry[-1] >> kTagBits;
      slots_.push_back({number, begin, entry[0] >> kTagBits});
    }
    if (is_packed_) KeepCrowded();
    else MakeBuckets();
  }

  absl::Status Group(const std::shared_ptr<MemoryBudget>& budget, HashRuns* runs) {
    if (slots_.empty()) return absl::OkStatus();
    if (is_packed_) VoteOfFew();
    else ForEachTuple([](Slot* slot, Mark mark) { slot->Vote(mark); });
    ForEachTuple([](Slot* slot, Mark mark) { slot->num_others += mark != slot->elected; });
    uint64_t num_others = 0, most_others = 0;
    for (Slot& slot : slots_) {
      slot.first_other = num_others;
      num_others += slot.num_others;
      most_others = std::max(most_others, slot.num_others);
    }
    HugeBuffer others, copies;
    if (num_others != 0) {
      QUERN_ASSIGN_OR_RETURN(others, HugeBuffer::Allocate(budget, num_others * sizeof(MarkedTuple), false));
      QUERN_ASSIGN_OR_RETURN(copies, HugeBuffer::Allocate(budget, most_others * tuple_bytes(), false));
    }
    auto* const all = reinterpret_cast<MarkedTuple*>(others.data());
    const auto note = [all](Slot* slot, Mark mark) {
      if (mark != slot->elected) all[slot->first_other++] = {mark, slot->num_seen};
      ++slot->num_seen;
    };
    if (num_others != 0) ForEachTuple(note, true);
    for (const Slot& slot : slots_) {
      MarkedTuple* const of_slot = all + slot.first_other - slot.num_others;
      if (slot.num_others != 0) SetApart(slot, of_slot, copies.data());
      runs->slots.push_back(slot.begin);
      AddRuns(slot, of_slot, &runs->runs);
    }
    return absl::OkStatus();
  }

 private:
  uint64_t tuple_bytes() const { return build_.format.tuple_bytes; }
  uint64_t NumTuples(const Slot& slot) const { return (slot.end - slot.begin) / tuple_bytes(); }

  // Where marks lie in tuples, a few tuples at places that nobody can know tell whether many keys meet.
  void KeepCrowded() {
    const TableSecret secret = DrawTableSecret();
    const auto is_of_one_key = [&](const Slot& slot) {
      TupleSpan of_slot;
      of_slot.tuples = build_.target + slot.begin;
      Mark marks[kSample];
      Slot sample;
      for (uint64_t i = 0; i < kSample; ++i) {
        LoadMarks(of_slot, secret.Remix(slot.number * kSample + i) % NumTuples(slot), 1, &marks[i]);
        sample.Vote(marks[i]);
      }
      const auto num_others =
          std::count_if(marks, marks + kSample, [&sample](Mark mark) { return mark != sample.elected; });
      return num_others < kFewestOthers;
    };
    slots_.erase(std::remove_if(slots_.begin(), slots_.end(), is_of_one_key), slots_.end());
  }

  // Where marks lie in tuples, every 64th part of a slot is asked.
  void VoteOfFew() {
    for (Slot& slot : slots_) {
      TupleSpan of_slot;
      of_slot.tuples = build_.target + slot.begin;
      for (uint64_t i = 0, n = NumTuples(slot); i < n; i += n / kVoters) {
        Mark mark;
        LoadMarks(of_slot, i, 1, &mark);
        slot.Vote(mark);
      }
    }
  }

  void LoadMarks(const TupleSpan& span, uint64_t first, uint32_t n, Mark* marks) const {
    if (is_packed_ && !build_.format.zero_hashes)
      LoadPackedKeys(span.tuples + first * tuple_bytes(), n, build_.format, marks);
    else LoadHashes(span, first, n, build_.format, marks);
  }

  // Which of the crowded slots lie in each of 2^k equal parts of the range.
  void MakeBuckets() {
    const uint64_t num_slots = build_.end_slot - build_.first_slot;
    const uint64_t num_buckets = std::min(num_slots, std::max(std::bit_ceil(4 * slots_.size()), kFewestBuckets));
    bucket_shift_ = static_cast<uint32_t>(std::bit_width(num_slots) - std::bit_width(num_buckets));
    bucket_begin_.assign(num_buckets + 1, 0);
    for (const Slot& slot : slots_) ++bucket_begin_[BucketOf(slot.number) + 1];
    for (size_t b = 1; b < bucket_begin_.size(); ++b) bucket_begin_[b] += bucket_begin_[b - 1];
  }
  uint64_t BucketOf(uint64_t number) const { return (number - build_.first_slot) >> bucket_shift_; }

  // nullptr: it is not crowded.
  Slot* Find(uint64_t number) {
    const uint64_t bucket = BucketOf(number);
    if (bucket_begin_[bucket] == bucket_begin_[bucket + 1]) return nullptr;
    Slot *const first = slots_.data() + bucket_begin_[bucket], *const last = slots_.data() + bucket_begin_[bucket + 1];
    Slot* const found =
        std::lower_bound(first, last, number, [](const Slot& slot, uint64_t n) { return slot.number < n; });
    return found != last && found->number == number ? found : nullptr;
  }

  // Calls f(slot, mark) for the tuples of crowded slots, or of those with several marks; the tuples of a slot in their
  // order.
  template <class F>
  void ForEachTuple(F&& f, bool only_mixed = false) {
    Mark marks[kBlockRows];
    const auto for_each_block = [&](const TupleSpan& span, auto&& do_block) {
      for (uint64_t first = 0; first < span.num_tuples; first += kBlockRows) {
        const auto n = static_cast<uint32_t>(std::min<uint64_t>(kBlockRows, span.num_tuples - first));
        LoadMarks(span, first, n, marks);
        do_block(n);
      }
    };
    if (is_packed_) {
      for (Slot& slot : slots_) {
        if (only_mixed && slot.num_others == 0) continue;
        TupleSpan of_slot;
        of_slot.tuples = build_.target + slot.begin;
        of_slot.num_tuples = NumTuples(slot);
        Slot seen = slot;  // in registers
        for_each_block(of_slot, [&](uint32_t n) {
          for (uint32_t i = 0; i < n; ++i) f(&seen, marks[i]);
        });
        slot = seen;
      }
      return;
    }
    for (const TupleSpan& span : spans_) {
      for_each_block(span, [&](uint32_t n) {
        for (uint32_t i = 0; i < n; ++i)
          if (Slot* const slot = Find(marks[i] >> build_.shift); slot != nullptr) f(slot, marks[i]);
      });
    }
  }

  // Puts the other tuples, which come in their order, behind those of the elected mark, by their marks.
  void SetApart(const Slot& slot, MarkedTuple* others, uint8_t* copies) const {
    const uint64_t bytes = tuple_bytes(), num_others = slot.num_others, num_elected = NumTuples(slot) - num_others;
    uint8_t* const tuples = build_.target + slot.begin;
    for (uint64_t i = 0; i < num_others; ++i) std::memcpy(copies + i * bytes, tuples + others[i].number * bytes, bytes);
    const MarkedTuple* behind = std::lower_bound(others, others + num_others, num_elected,
                                                 [](const MarkedTuple& t, uint64_t n) { return t.number < n; });
    uint64_t from = num_elected;
    for (const MarkedTuple* hole = others; hole->number < num_elected; ++hole, ++from) {
      for (; behind != others + num_others && behind->number == from; ++behind) ++from;
      std::memcpy(tuples + hole->number * bytes, tuples + from * bytes, bytes);
      if (hole + 1 == others + num_others) break;
    }
    for (uint64_t i = 0; i < num_others; ++i) others[i].number = i;
    std::sort(others, others + num_others);
    for (uint64_t i = 0; i < num_others; ++i)
      std::memcpy(tuples + (num_elected + i) * bytes, copies + others[i].number * bytes, bytes);
  }

  uint64_t HashOf(Mark mark) const {
    uint64_t hash = mark;
    if (is_packed_) HashPackedKeys(&mark, 1, build_.format.zero_hashes, &hash);
    return hash;
  }

  void AddRuns(const Slot& slot, const MarkedTuple* others, std::vector<HashRun>* runs) const {
    const uint64_t end_elected = slot.end - slot.num_others * tuple_bytes();
    if (end_elected != slot.begin) runs->push_back({HashOf(slot.elected), slot.begin, end_elected});
    for (uint64_t i = 0; i < slot.num_others; ++i) {
      const uint64_t begin = end_elected + i * tuple_bytes();
      if (i == 0 || others[i].mark != others[i - 1].mark) runs->push_back({HashOf(others[i].mark), begin, begin});
      runs->back().end += tuple_bytes();
    }
  }

  const UnchainedBuild& build_;
  const TupleList& spans_;
  const bool is_packed_;
  std::vector<Slot> slots_;  // by number
  std::vector<uint32_t> bucket_begin_;
  uint32_t bucket_shift_ = 0;
};

}  // namespace

absl::Status GroupCrowded(const UnchainedBuild& build, const TupleList& spans,
                          const std::shared_ptr<MemoryBudget>& budget, HashRuns* runs) {
  return Range(build, spans).Group(budget, runs);
}

absl::StatusOr<std::unique_ptr<CrowdedSlots>> CrowdedSlots::Make(const std::vector<HashRuns>& runs,
                                                                 uint32_t tuple_bytes,
                                                                 const std::shared_ptr<MemoryBudget>& budget) {
  uint64_t num_runs = 0;
  for (const HashRuns& of_part : runs) num_runs += of_part.runs.size();
  const uint64_t num_slots = std::bit_ceil(num_runs * 2 + 1);
  std::unique_ptr<CrowdedSlots> made(new CrowdedSlots);
  QUERN_ASSIGN_OR_RETURN(made->memory_, HugeBuffer::Allocate(budget, num_slots * sizeof(HashRun), false));
  made->secret_ = DrawTableSecret();
  made->mask_ = num_slots - 1;
  made->shift_ = 65 - static_cast<uint32_t>(std::bit_width(num_slots));
  made->most_bytes_ = thresholds::kCrowdedSlotTuples * tuple_bytes;
  auto* const slots = reinterpret_cast<HashRun*>(made->memory_.data());
  for (const HashRuns& of_part : runs) {
    made->crowded_.insert(made->crowded_.end(), of_part.slots.begin(), of_part.slots.end());
    for (const HashRun& run : of_part.runs) {
      uint64_t at = made->SlotOf(run.hash);
      while (slots[at].end != 0) at = (at + 1) & made->mask_;
      slots[at] = run;
    }
  }
  std::sort(made->crowded_.begin(), made->crowded_.end());
  return made;
}

const HashRun& CrowdedSlots::Find(uint64_t hash) const {
  uint64_t at = SlotOf(hash);
  while (slots()[at].end != 0 && slots()[at].hash != hash) at = (at + 1) & mask_;
  return slots()[at];
}

uint32_t CrowdedSlots::Narrow(const uint64_t* hashes, uint32_t n, QuernCandidate* candidates) const {
  uint32_t num_left = 0;
  for (uint32_t c = 0; c < n; ++c) {
    QuernCandidate candidate = candidates[c];
    if (candidate.end - candidate.begin > most_bytes_ && IsCrowded(candidate.begin)) {
      const HashRun& run = Find(hashes[candidate.index]);
      candidate.begin = run.begin;
      candidate.end = run.end;
    }
    candidates[num_left] = candidate;
    num_left += candidate.begin != candidate.end;
  }
  return num_left;
}

}  // namespace quern
