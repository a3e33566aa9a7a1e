// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/address_views.h"

#include <vector>

#include "runtime/base/fork_safety.h"

namespace quern {

const uint8_t* const* AddressBuffers() {
  const NoFork no_fork;                    // the first call makes it
  static const auto* const buffers = [] {  // never destroyed: other threads may still read it as the process ends
    auto* const made = new std::vector<const uint8_t*>(uint64_t{1} << (kAddressBits - kAddressOffsetBits));
    for (uint64_t b = 0; b < made->size(); ++b)
      (*made)[b] = reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(b << kAddressOffsetBits));
    return made;
  }();
  return buffers->data();
}

}  // namespace quern
