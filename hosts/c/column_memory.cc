// SPDX-License-Identifier: Apache-2.0
#include "hosts/c/column_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/base/thresholds.h"

namespace quern::c_abi {

absl::StatusOr<uint8_t*> StringPages::Allocate(const std::shared_ptr<MemoryBudget>& budget, uint64_t num_bytes,
                                               std::shared_ptr<const void>* owner) {
  num_bytes = std::max<uint64_t>(num_bytes, 1);  // no bytes have an address, too
  const uint64_t limit = budget->limit_bytes(),
                 most = limit == 0 ? thresholds::kLargePageBytes
                                   : std::min(thresholds::kLargePageBytes, limit / thresholds::kStringPageShare);
  if (num_bytes > most / 2) {  // nothing is held that the batch alone needs
    QUERN_ASSIGN_OR_RETURN(HugeBuffer own, HugeBuffer::Allocate(budget, num_bytes, huge_pages_, Contents::kAnything));
    uint8_t* const bytes = own.data();
    *owner = std::make_shared<HugeBuffer>(std::move(own));
    return bytes;
  }
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
