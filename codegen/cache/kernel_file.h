// SPDX-License-Identifier: Apache-2.0
// What a kernel is on disk: the key it was made for, which is also its description, and the object, under one checksum.
#ifndef QUERN_CODEGEN_CACHE_KERNEL_FILE_H_
#define QUERN_CODEGEN_CACHE_KERNEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quern {

// Raised with every change of the layout; files of another version are not read.
inline constexpr uint32_t kKernelFileVersion = 1;
// No kernel comes near it: 16 keys take 20 KB. What is larger is not read into memory, nor written.
inline constexpr size_t kMaxKernelFileBytes = size_t{16} << 20;

// *Ownership*: views into the bytes of the file.
struct KernelFile {
  std::string_view key;
  std::string_view object;
};

// The whole file.
std::string EncodeKernelFile(std::string_view key, std::string_view object);

// *Cost*: one BLAKE3 of the bytes. *Errors*: DataLoss that says in a few words what is wrong with the file; nothing of
// it was used.
absl::StatusOr<KernelFile> DecodeKernelFile(std::string_view bytes);

// 32 hexadecimal digits of a key, the same in every process.
std::string KernelFileStem(std::string_view key);

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_KERNEL_FILE_H_
