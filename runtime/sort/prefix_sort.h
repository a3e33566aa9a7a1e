// SPDX-License-Identifier: Apache-2.0
// Sorts n sort-key prefixes of 1 to 4 words of 64 bits, the first word most significant. Depends on no spec and is not
// compiled at run time.
#ifndef QUERN_RUNTIME_SORT_PREFIX_SORT_H_
#define QUERN_RUNTIME_SORT_PREFIX_SORT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"

namespace quern {

// Sorts for one thread; keeps its scratch memory from call to call. *Threads*: one.
class PrefixSorter {
 public:
  // words: of a prefix, 1 to kMaxEntryWords.
  PrefixSorter(uint32_t words, std::shared_ptr<MemoryBudget> budget);
  ~PrefixSorter();

  // Sorts n prefixes in place. Prefixes that are equal in all words are interchangeable.
  // *Cost*: 3 to 12 ns a prefix where all fit the L2 cache; scratch memory of the same size where a prefix has more
  // than one word.
  // *Errors*: ResourceExhausted.
  absl::Status Sort(uint64_t* entries, uint64_t n);
  // The same for n prefixes that are already sorted by their first word.
  absl::Status SortCollisions(uint64_t* entries, uint64_t n);

  // The same for n prefixes of which few are out of place. Returns false if there were too many; all prefixes are then
  // still there, in some other order.
  // *Cost*: two passes, and sorting the prefixes that are out of place.
  absl::StatusOr<bool> SortNearly(uint64_t* entries, uint64_t n);

  // The method that Sort chooses: "insertion", "vector", "radix".
  static const char* MethodFor(uint32_t words, uint64_t n);

 private:
  struct Vectors;
  template <uint32_t kWords>
  absl::Status SortAll(uint64_t* entries, uint64_t n);
  template <uint32_t kWords>
  absl::StatusOr<bool> SortFew(uint64_t* entries, uint64_t n);

  const uint32_t words_;
  std::shared_ptr<MemoryBudget> budget_;
  HugeBuffer scratch_;
  std::vector<std::unique_ptr<uint32_t[]>> counts_;  // by depth
  std::unique_ptr<Vectors> vectors_;
};

// Whether n prefixes are sorted.
bool IsSorted(const uint64_t* entries, uint64_t n, uint32_t words);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_PREFIX_SORT_H_
