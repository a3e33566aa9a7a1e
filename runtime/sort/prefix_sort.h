// SPDX-License-Identifier: Apache-2.0
// Sorts entries: n times 1 to 4 words of 64 bits, the first one highest. Depends on no spec and is not compiled at run
// time.
#ifndef QUERN_RUNTIME_SORT_PREFIX_SORT_H_
#define QUERN_RUNTIME_SORT_PREFIX_SORT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"

namespace quern {

// What one thread sorts with; keeps its scratch memory from call to call. *Threads*: one.
class PrefixSorter {
 public:
  // words: of an entry, 1 to kMaxEntryWords.
  PrefixSorter(uint32_t words, std::shared_ptr<MemoryBudget> budget);
  ~PrefixSorter();

  // Sorts n entries where they are. Entries that are equal in all their words are the same entry. *Cost*: 3 to 12 ns an
  // entry where all fit the L2 cache; scratch of the same bytes where an entry has more than one word. *Errors*:
  // ResourceExhausted.
  absl::Status Sort(uint64_t* entries, uint64_t n);
  // The same for n entries that are in order by their first word already.
  absl::Status SortCollisions(uint64_t* entries, uint64_t n);

  // The same for n entries of which few are out of place. Answers whether it was so: if not, they are all there, in
  // some other order.
  // *Cost*: two passes, and sorting of those that are out of place.
  absl::StatusOr<bool> SortNearly(uint64_t* entries, uint64_t n);

  // How Sort would sort: "insertion", "vector", "radix".
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

// Whether n entries are in order.
bool IsSorted(const uint64_t* entries, uint64_t n, uint32_t words);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_PREFIX_SORT_H_
