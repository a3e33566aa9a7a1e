// SPDX-License-Identifier: Apache-2.0
// The only prefetch instruction in the library's code (test/style/prefetches.test). Whether a loop has it goes by a
// distance that came from the plan, and is decided outside of the loop, by a type:
//
//     WithPrefetch(distance, [&]<class Prefetch>() {
//       for (uint32_t i = 0; i < n; ++i) {
//         Prefetch::For(address(i + distance));    // at distance 0 Prefetch is NoPrefetch, and the loop has no
//         instruction of it Use(i);
//       }
//     });
//
// A plain header: templates and blocks, which become bitcode, include it too.
#ifndef QUERN_RUNTIME_BASE_PREFETCH_LINE_H_
#define QUERN_RUNTIME_BASE_PREFETCH_LINE_H_

#include <stdint.h>

namespace quern {

// The instruction: into all caches, from L2 on, from L3 on, past the caches (x86: prefetchnta), or to be written
// (prefetchw).
enum class PrefetchHint : uint8_t { kT0, kT1, kT2, kNta, kWrite };

// Prefetches the line of an address. For the types and functions below, and for loops of which all is prefetched or
// nothing is called.
template <PrefetchHint kHint>
inline __attribute__((always_inline)) void PrefetchLine(const void* address) {
  if constexpr (kHint == PrefetchHint::kT0) __builtin_prefetch(address, 0, 3);
  if constexpr (kHint == PrefetchHint::kT1) __builtin_prefetch(address, 0, 2);
  if constexpr (kHint == PrefetchHint::kT2) __builtin_prefetch(address, 0, 1);
  if constexpr (kHint == PrefetchHint::kNta) __builtin_prefetch(address, 0, 0);
  if constexpr (kHint == PrefetchHint::kWrite) {
#if defined(__x86_64__)
    // Compilers make a read of it for processors that need not have the instruction; those without do nothing.
    asm volatile("prefetchw (%0)" : : "r"(address));
#else
    __builtin_prefetch(address, 1, 3);
#endif
  }
}

struct NoPrefetch {
  static constexpr bool kPrefetches = false;
  static inline __attribute__((always_inline)) void For(const void*) {}
};

template <PrefetchHint kHint>
struct PrefetchWith {
  static constexpr bool kPrefetches = true;
  static inline __attribute__((always_inline)) void For(const void* address) { PrefetchLine<kHint>(address); }
};

// Calls f.operator()<Prefetch>() with a type that prefetches where the distance is not 0.
template <PrefetchHint kHint = PrefetchHint::kT0, class F>
inline __attribute__((always_inline)) decltype(auto) WithPrefetch(uint64_t distance, F&& f) {
  if (distance == 0) return f.template operator()<NoPrefetch>();
  return f.template operator()<PrefetchWith<kHint>>();
}

// For loops that a type of their own would only make longer: the compiler or the processor foresees a test of what does
// not change.
template <PrefetchHint kHint = PrefetchHint::kT0>
inline __attribute__((always_inline)) void PrefetchIf(uint64_t distance, const void* address) {
  if (distance != 0) PrefetchLine<kHint>(address);
}

// Rows of a block that are prefetched so many rows ahead: one test a row says both whether the plan prefetches and
// where the block ends.
class RowsToCome {
 public:
  RowsToCome(uint32_t distance, uint32_t n)
      : distance_(distance), end_(distance == 0 || distance >= n ? 0 : n - distance) {}

  // Whether row i + distance is to be prefetched before row i is used.
  bool Covers(uint32_t i) const { return i < end_; }
  // Prefetches address_of(that row), where there is one.
  template <class AddressOf>
  inline __attribute__((always_inline)) void Before(uint32_t i, AddressOf&& address_of) const {
    if (Covers(i)) PrefetchLine<PrefetchHint::kT0>(address_of(i + distance_));
  }

 private:
  uint32_t distance_, end_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_PREFETCH_LINE_H_
