// SPDX-License-Identifier: Apache-2.0
// Files of the disk cache. A random file has no right checksum, so each input is tried three ways: as it is; with its
// checksum put right, which leads to the sizes behind it; and as the key and the object of a file that must decode to
// them, and must not decode with one bit turned.
#include <string>
#include <string_view>

#include "codegen/cache/kernel_file.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/BLAKE3.h"
#include "test/fuzz/targets/fuzz_target.h"

namespace {

using quern::DecodeKernelFile;
using quern::EncodeKernelFile;
using quern::fuzz::Require;

constexpr size_t kChecksumAt = 16, kCheckedFrom = 48;

void Decode(std::string_view bytes) {
  // A copy of this size, so that AddressSanitizer sees a read beyond it.
  const std::string file(bytes);
  const auto decoded = DecodeKernelFile(file);
  if (!decoded.ok())
    return Require(absl::IsDataLoss(decoded.status()), "a bad file is a loss of data", decoded.status().ToString());
  Require(EncodeKernelFile(decoded->key, decoded->object) == file, "a file that decodes is the encoded one");
}

std::string WithChecksum(std::string file) {
  if (file.size() < kCheckedFrom) return file;
  const llvm::ArrayRef bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  const llvm::BLAKE3Result<> checksum = llvm::BLAKE3::hash(bytes.drop_front(kCheckedFrom));
  std::memcpy(file.data() + kChecksumAt, checksum.data(), checksum.size());
  return file;
}

void EncodeAndDamage(std::string_view text) {
  const size_t cut = text.empty() ? 0 : static_cast<uint8_t>(text[0]) % text.size();
  std::string file = EncodeKernelFile(text.substr(0, cut), text.substr(cut));
  const auto decoded = DecodeKernelFile(file);
  Require(decoded.ok() && decoded->key == text.substr(0, cut) && decoded->object == text.substr(cut),
          "a file decodes to what was encoded");
  const size_t bit = text.size() < 2 ? 0 : static_cast<uint8_t>(text[1]) * 257U % (file.size() * 8);
  file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
  Require(!DecodeKernelFile(file).ok(), "a changed file does not decode");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Decode(text);
  Decode(WithChecksum(std::string(text)));
  EncodeAndDamage(text);
  return 0;
}
