// SPDX-License-Identifier: Apache-2.0
// The different strings of a sort's key, while they are few: rows are sorted by their ranks instead of their bytes.
#ifndef QUERN_RUNTIME_STRING_CODES_H_
#define QUERN_RUNTIME_STRING_CODES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/blocks.h"
#include "runtime/memory.h"

namespace quern {

// Numbers strings in the order in which they are first seen. *Threads*: one.
class StringCodes {
 public:
  static constexpr uint32_t kMostStrings = 1u << 15;

  explicit StringCodes(std::shared_ptr<MemoryBudget> budget) : budget_(budget), bytes_(std::move(budget), false) {}

  // The codes of n strings, and the addresses of their copies, which stay as long as this does. Answers false once there would be more than
  // kMostStrings different ones; what it has written by then is of no use.
  // *Cost*: about 5 ns a string of up to 32 bytes that was seen before. *Errors*: ResourceExhausted.
  absl::StatusOr<bool> Add(const blocks::Bytes* strings, uint32_t n, uint32_t* codes, const uint8_t** copies);

  uint32_t size() const { return static_cast<uint32_t>(strings_.size()); }
  const std::vector<blocks::Bytes>& strings() const { return strings_; }

 private:
  // One cache line: a string of up to 32 bytes is compared without another one, and without a branch on its length.
  struct alignas(64) Slot {
    blocks::ShortWords front;
    const uint8_t* bytes;
    uint32_t length;
    uint32_t code_plus_one;  // 0: empty
  };
  static bool IsString(const Slot& slot, const blocks::ShortWords& words, blocks::Bytes string);
  absl::Status Grow();
  absl::Status AddNew(const blocks::ShortWords& words, blocks::Bytes string, Slot* slot);

  std::shared_ptr<MemoryBudget> budget_;
  Arena bytes_;
  HugeBuffer slots_;
  uint64_t mask_ = 0;
  std::vector<blocks::Bytes> strings_;
};

// The ranks of the strings of several numberings among all of them: (*ranks)[i][code], strings that are equal by the rule having equal
// ranks. Answers how many different ranks there are. Strings come trimmed, where the rule trims. *Errors*: ResourceExhausted.
absl::StatusOr<uint32_t> RankStrings(const std::vector<const StringCodes*>& codes, CollationRule rule,
                                     const std::shared_ptr<MemoryBudget>& budget, std::vector<std::vector<uint32_t>>* ranks);

}  // namespace quern

#endif  // QUERN_RUNTIME_STRING_CODES_H_
