// SPDX-License-Identifier: Apache-2.0
// The bytes of a kernel on disk. For `join.inner keys=i64`, the key has 2,000 bytes (mostly names of CPU features) and
// the object 1,600, which gives a file of 64 + 2,000 + 1,600 bytes:
//
//       0  12  "quern kernel"                  marks the file as a kernel
//      12   4  1                               version of this layout; all numbers are little-endian
//      16  32  BLAKE3 of the bytes from 48 on  covers all that follows, so that any changed byte is detected
//      48   8  2000                            bytes of the key
//      56   8  1600                            bytes of the object
//      64      key, then object                the end of the file
//
// The name of the file is half a BLAKE3 of the key. It only says where to look: the key itself is compared byte by
// byte, so that neither a collision nor a renamed file can give a query the wrong kernel.
//
// The order of the checks matters: sizes are read after the checksum is verified, so that no number from a damaged file
// is ever used, and LLVM's parser sees only bytes that some process wrote as an object. A checksum is not a signature:
// disk_cache.cc checks who can write to the folder.
#include "codegen/cache/kernel_file.h"

#include <cstring>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/BLAKE3.h"

namespace quern {
namespace {

constexpr std::string_view kMagic = "quern kernel";
constexpr size_t kVersionAt = 12, kChecksumAt = 16, kCheckedFrom = 48, kKeyBytesAt = 48, kObjectBytesAt = 56,
                 kKeyAt = 64;

llvm::BLAKE3Result<> Checksum(std::string_view bytes) {
  return llvm::BLAKE3::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

template <typename T>
void Put(T number, size_t at, std::string* file) {
  std::memcpy(file->data() + at, &number, sizeof number);
}

template <typename T>
T Get(std::string_view file, size_t at) {
  T number;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

}  // namespace

std::string EncodeKernelFile(std::string_view key, std::string_view object) {
  std::string file;
  file.reserve(kKeyAt + key.size() + object.size());
  file.assign(kKeyAt, '\0');
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  Put(kKernelFileVersion, kVersionAt, &file);
  Put(uint64_t{key.size()}, kKeyBytesAt, &file);
  Put(uint64_t{object.size()}, kObjectBytesAt, &file);
  file.append(key).append(object);
  const llvm::BLAKE3Result<> checksum = Checksum(std::string_view(file).substr(kCheckedFrom));
  std::memcpy(file.data() + kChecksumAt, checksum.data(), checksum.size());
  return file;
}

absl::StatusOr<KernelFile> DecodeKernelFile(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) return absl::DataLossError("not a kernel's file");
  if (bytes.size() < kKeyAt) return absl::DataLossError("cut short");
  const auto version = Get<uint32_t>(bytes, kVersionAt);
  if (version != kKernelFileVersion) return absl::DataLossError("of version " + std::to_string(version));
  const llvm::BLAKE3Result<> checksum = Checksum(bytes.substr(kCheckedFrom));
  if (std::memcmp(checksum.data(), bytes.data() + kChecksumAt, checksum.size()) != 0)
    return absl::DataLossError("damaged");
  const auto key_bytes = Get<uint64_t>(bytes, kKeyBytesAt);
  const uint64_t rest = bytes.size() - kKeyAt;
  if (key_bytes > rest || rest - key_bytes != Get<uint64_t>(bytes, kObjectBytesAt))
    return absl::DataLossError("damaged");
  return KernelFile{bytes.substr(kKeyAt, key_bytes), bytes.substr(kKeyAt + key_bytes)};
}

std::string KernelFileStem(std::string_view key) {
  constexpr char kHex[] = "0123456789abcdef";
  const llvm::BLAKE3Result<> hash = Checksum(key);
  std::string stem;
  for (size_t i = 0; i < hash.size() / 2; ++i) stem += {kHex[hash[i] >> 4], kHex[hash[i] & 15]};
  return stem;
}

}  // namespace quern
