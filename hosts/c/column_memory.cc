// SPDX-License-Identifier: Apache-2.0
#include "hosts/c/column_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/base/thresholds.h"

namespace quern::c_abi {

absl::StatusOr<uint8_t*> OwnStrings(const std::shared_ptr<MemoryBudget>& budget, uint64_t num_bytes,
                                    std::shared_ptr<const void>* owner, bool huge_pages) {
  // No bytes have an address, too.
  QUERN_ASSIGN_OR_RETURN(
      HugeBuffer own, HugeBuffer::Allocate(budget, std::max<uint64_t>(num_bytes, 1), huge_pages, Contents::kAnything));
  uint8_t* const bytes = own.data();
  *owner = std::make_shared<HugeBuffer>(std::move(own));
  return bytes;
}

absl::StatusOr<uint8_t*> StringPages::Allocate(const std::shared_ptr<MemoryBudget>& budget, uint64_t num_bytes,
                                               std::shared_ptr<const void>* owner) {
  const uint64_t limit = budget->limit_bytes(),
                 most = limit == 0 ? thresholds::kLargePageBytes
                                   : std::min(thresholds::kLargePageBytes, limit / thresholds::kStringPageShare);
  // Nothing is held that the batch alone needs.
  if (num_bytes == 0 || num_bytes > most / 2) return OwnStrings(budget, num_bytes, owner, huge_pages_);
  if (last_ == nullptr || last_->bytes() - used_bytes_ < num_bytes) {
    last_.reset();
    // A small job takes little more than it needs: each piece is as large as all earlier ones together.
    const uint64_t wanted = std::max(num_bytes, std::min(all_bytes_, most));
    absl::StatusOr<HugeBuffer> made = HugeBuffer::Allocate(budget, wanted, huge_pages_, Contents::kAnything);
    if (!made.ok() && wanted > num_bytes)
      made = HugeBuffer::Allocate(budget, num_bytes, huge_pages_, Contents::kAnything);
    if (!made.ok()) return made.status();
    last_ = std::make_shared<HugeBuffer>(*std::move(made));
    used_bytes_ = 0;
    all_bytes_ += last_->bytes();
  }
  uint8_t* const bytes = last_->data() + used_bytes_;
  used_bytes_ += num_bytes;
  *owner = last_;
  return bytes;
}

}  // namespace quern::c_abi
