// SPDX-License-Identifier: Apache-2.0
// Which tuple a short string key has.
#ifndef QUERN_RUNTIME_JOIN_TABLES_SHORT_KEY_CACHE_H_
#define QUERN_RUNTIME_JOIN_TABLES_SHORT_KEY_CACHE_H_

#include <cstdint>
#include <memory>

#include "runtime/abi/join_abi.h"
#include "runtime/base/adaptive_gate.h"
#include "runtime/base/memory.h"
#include "runtime/join/join_table.h"

namespace quern {

// Stands in front of an unchained table of few tuples, whose keys are one string or fixed_binary that is compared by
// its bytes, and has all of those with up to kMostBytes bytes. *Ownership*: none of the table. *Threads*: one.
class ShortKeyCache {
 public:
  static constexpr uint32_t kMostBytes = 16;

  // Whether a join with this table may have one.
  static bool Serves(const QuernJoinDescriptor& descriptor, const JoinTable& table);

  // adapts: Takes says no where many rows need the table. budget: for 128 to 256 bytes a tuple, once Takes has seen
  // many rows; none where that is too large a share of its limit (kShortKeyLimitShare).
  ShortKeyCache(const QuernJoinDescriptor& descriptor, const JoinTable& table, std::shared_ptr<MemoryBudget> budget,
                bool adapts);

  // Rows whose look-ups may have to be repeated: is_again: they are, and Takes answers as it did the first time.
  void BeginPiece(bool is_again);

  // Whether to look n rows up. Counts them.
  bool Takes(uint32_t n);
  // Looks the rows `rows ? rows[i] : first + i`, i < n, up. Writes the numbers i of those that have a tuple to `found`,
  // with their tuples (byte offsets), and of those for which the table must be asked to `others`; each ascends. All
  // have room for n. Returns how many were found. *Cost*: 2 to 4 ns a row.
  uint32_t Look(const QuernColumn* keys, uint64_t first, const uint32_t* rows, uint32_t n, uint32_t* found,
                uint64_t* tuples, uint32_t* others, uint32_t* num_others);
  // Asks the table. hashes: of the rows, as the table has them. Writes the tuple of each row, or kNoTuple. False, and
  // nothing is known, where a row has two tuples. *Cost*: 10 to 20 ns a row.
  bool Ask(const QuernColumn* keys, const uint32_t* rows, const uint64_t* hashes, uint32_t n, uint64_t* tuples) const;
  static constexpr uint64_t kNoTuple = UINT64_MAX;
  // Whether n rows that Look has taken needed nothing else.
  void Count(uint32_t n, bool is_settled) { now_.gate.Count(n, is_settled ? n : 0); }

 private:
  typedef uint64_t Key __attribute__((vector_size(16)));
  // A cache line of two keys, with their tuples. A place without a key has one that belongs to another bucket.
  struct Bucket {
    Key keys[2];
    uint64_t tuples[2];
    uint64_t has_others;  // keys of the table that found no room, or that several tuples have
    uint64_t num_taken;   // places
  };
  // What a repeated piece needs.
  struct Progress {
    AdaptiveGate gate;
    uint64_t num_rows = 0;
  };
  struct Loops;

  bool MakeBuckets();
  bool TakeMemory(uint64_t bytes);
  void Put(const Key& key, uint64_t tuple);
  const Bucket* buckets() const { return reinterpret_cast<const Bucket*>(memory_.data()); }

  const QuernRowLayout& layout_;
  const QuernField& field_;
  const uint32_t tuple_bytes_;
  const JoinTable& table_;
  const std::shared_ptr<MemoryBudget> budget_;
  Progress now_, before_piece_;
  HugeBuffer memory_;
  uint32_t shift_ = 0;         // bucket of hash h: h >> shift
  Key fillers_[2] = {};        // of places without a key: the second one is for the bucket to which the first belongs
  bool has_uncached_ = false;  // the table has keys that no bucket takes
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TABLES_SHORT_KEY_CACHE_H_
