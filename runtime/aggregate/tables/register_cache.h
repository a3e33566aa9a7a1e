// SPDX-License-Identifier: Apache-2.0
// Caches the groups of packed keys in registers, where there are few.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_REGISTER_CACHE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_REGISTER_CACHE_H_

#include <cstdint>

#include "runtime/base/adaptive_gate.h"

namespace quern {

// *Ownership*: none; addresses that it has learnt are returned until Forget. *Threads*: one.
class RegisterCache {
 public:
  explicit RegisterCache(bool adapts = true) : gate_(Gate::kRegisterCache, adapts) {}

  static constexpr uint32_t kMostWords = 16;

  // Whether Look may be called: some words are known, and most recent rows had one of them. Always false without
  // AVX-512.
  bool serves() const { return num_words_ != 0; }

  // Sets tuples[i] to the group of row i except for rows of unknown words, which are listed in `others` (room for n +
  // 8); returns their number. packed_keys_ahead: prefetch distance in words, 0: none. *Cost*: 0.1 ns a row in the L1
  // cache.
  uint32_t Look(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead, uint8_t** tuples,
                uint32_t* others) const;

  // Learns the groups of a block that Look did not serve, or of the rows that Look listed; num_rows: the rows of the
  // whole block.
  // *Cost*: where blocks have too many words, one in sixteen is sampled, for 0.2 us; 1 us where a word becomes known.
  void Learn(const uint64_t* words, uint32_t num_rows, uint8_t* const* tuples);
  void LearnOthers(const uint64_t* words, uint32_t num_rows, const uint32_t* others, uint32_t num_others,
                   uint8_t* const* tuples);

  // Call it where tuples have moved.
  void Forget() { num_words_ = 0; }

 private:
  static constexpr uint32_t kPlacesLog2 = 5, kNumPlaces = 1u << kPlacesLog2;

  template <class Prefetch>
  uint32_t LookAs(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead, uint8_t** tuples,
                  uint32_t* others) const;
  bool Add(uint64_t word, uint8_t* tuple);
  void GiveUp();
  void Place();
  static uint32_t PlaceOf(uint64_t word, uint64_t multiplier) {
    return static_cast<uint32_t>(word * multiplier >> (64 - kPlacesLog2));
  }
  bool Separates(uint64_t multiplier) const;

  uint32_t num_words_ = 0;
  AdaptiveGate gate_;
  uint64_t known_[kMostWords];  // in order of first occurrence
  uint8_t* groups_[kMostWords];
  uint64_t multiplier_ = 0;
  uint64_t words_[kNumPlaces];  // by place; an empty place holds a word that belongs elsewhere
  uint8_t* tuples_[kNumPlaces];
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_REGISTER_CACHE_H_
