// SPDX-License-Identifier: Apache-2.0
// String views of Arrow's layout that point to any address, so that no byte of a string is copied for them.
//
// A long string's view has the number of a buffer and an offset of 31 bits. Here buffer b begins at address b x 2^31,
// whatever lies there, so that the two together are an address:
//
//     bytes at 0x7f31a4c01230   view | 20 | a ke | buffer 0xfe63 | offset 0x24c01230 |
//     buffers[0xfe63] = 0x7f3180000000
//
// All columns share one array of buffers. The strings must stay where they are as long as the views are read.
#ifndef QUERN_RUNTIME_ROWS_ADDRESS_VIEWS_H_
#define QUERN_RUNTIME_ROWS_ADDRESS_VIEWS_H_

#include <cstdint>

namespace quern {

constexpr uint32_t kAddressOffsetBits = 31;  // offsets of views are signed, 32 bits
constexpr uint32_t kAddressBits = 48;        // of a process: 47 on x86-64, 48 on AArch64

// The array for QuernColumn::buffers. *Cost*: the first call fills 1 MiB. *Threads*: any.
const uint8_t* const* AddressBuffers();

// The last eight bytes of a long string's view: buffer number and offset.
inline uint64_t ViewOfAddress(uint64_t address) {
  constexpr uint64_t kOffsets = (uint64_t{1} << kAddressOffsetBits) - 1;
  return address >> kAddressOffsetBits | (address & kOffsets) << 32;
}

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ADDRESS_VIEWS_H_
