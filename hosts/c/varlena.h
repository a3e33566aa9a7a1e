// SPDX-License-Identifier: Apache-2.0
// PostgreSQL's varlena values, as little-endian machines lay them out (varatt.h). Internal.
//
//     first byte       header    length, with the header     then
//     .......1         1 byte    its upper 7 bits            up to 126 bytes, at any address
//     ......00         4 bytes   its upper 30 bits           bytes
//     00000001         a pointer to a value that is stored elsewhere (TOAST)
//     ......10         a compressed value
#ifndef QUERN_HOSTS_C_VARLENA_H_
#define QUERN_HOSTS_C_VARLENA_H_

#include <cstdint>
#include <cstring>

namespace quern::c_abi {

// A value in place, or the reason why it cannot be read.
struct Varlena {
  const uint8_t* data = nullptr;
  uint32_t length = 0;
  const char* refusal = nullptr;
};

inline Varlena ReadVarlena(const uint8_t* at) {
  if (at == nullptr) return {.refusal = "without an address"};
  if (at[0] == 1) return {.refusal = "that is stored elsewhere"};
  if ((at[0] & 1) != 0) return {at + 1, (at[0] >> 1) - 1u};
  if ((at[0] & 2) != 0) return {.refusal = "that is compressed"};
  uint32_t header = 0;
  std::memcpy(&header, at, sizeof header);
  if (header >> 2 < sizeof header) return {.refusal = "that is shorter than its header"};
  return {at + sizeof header, (header >> 2) - static_cast<uint32_t>(sizeof header)};
}

inline uint32_t LengthWithoutBlanks(const uint8_t* data, uint32_t length) {
  while (length > 0 && data[length - 1] == ' ') --length;
  return length;
}

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_VARLENA_H_
