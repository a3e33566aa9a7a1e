// SPDX-License-Identifier: Apache-2.0
// A kernel on disk: the key for which it was compiled, which also describes it, and the object, under one checksum.
#ifndef QUERN_CODEGEN_CACHE_KERNEL_FILE_H_
#define QUERN_CODEGEN_CACHE_KERNEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quern {

// Increase it with every change of the layout; files of other versions are not read.
inline constexpr uint32_t kKernelFileVersion = 1;
// Far above any kernel: one with 16 keys takes 20 KB. Larger files are neither read nor written.
inline constexpr size_t kMaxKernelFileBytes = size_t{16} << 20;

// *Ownership*: views into the bytes of the file.
struct KernelFile {
  std::string_view key;
  std::string_view object;
};

// Returns the whole file.
std::string EncodeKernelFile(std::string_view key, std::string_view object);

// *Cost*: one BLAKE3 of the bytes. *Errors*: DataLoss with a short text of what is wrong with the file.
absl::StatusOr<KernelFile> DecodeKernelFile(std::string_view bytes);

// 32 hexadecimal digits for a key, the same in every process.
std::string KernelFileStem(std::string_view key);

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_KERNEL_FILE_H_
