// SPDX-License-Identifier: Apache-2.0
// Columns of strings of one length, and a constant and a pattern to compare them with.
#ifndef QUERN_BENCH_COMMON_STRINGS_WORKLOAD_H_
#define QUERN_BENCH_COMMON_STRINGS_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/blocks/blocks.h"

namespace quern::bench {

enum class StringKind : uint8_t {
  kRandom,  // ASCII letters and digits, one of 1,000 strings; the constant is one of them
  kSame,    // all rows equal the constant of ASCII letters and digits
  kCased,   // all rows equal the constant except for the case of its letters
  kMixed,   // about every second character is not ASCII and has two or three bytes; one of 1,000 strings
};

// "random", ..
const char* NameOf(StringKind kind);

// A column in the layout of Arrow's utf8.
class StringColumn {
 public:
  void Add(std::string_view text);
  uint64_t num_rows() const { return offsets_.size() - 1; }
  QuernColumn View() const;
  blocks::Bytes Row(uint64_t row) const {
    return {bytes_.data() + offsets_[row], static_cast<uint32_t>(offsets_[row + 1] - offsets_[row])};
  }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<int32_t> offsets_ = {0};
};

struct StringsSpec {
  StringKind kind = StringKind::kRandom;
  uint32_t num_bytes = 0;  // of every string; at least 4
  uint64_t num_rows = 0;
};

struct StringsWorkload {
  explicit StringsWorkload(const StringsSpec& spec);

  StringColumn left, right;  // compared row by row; with kRandom and kMixed every second row is equal in both
  std::string constant;
  std::string pattern;  // '%..%' around a piece of the constant without wildcards: a quarter of its bytes, at least two
};

inline std::string_view TextOf(blocks::Bytes s) { return {reinterpret_cast<const char*>(s.data), s.length}; }
inline blocks::Bytes BytesOf(std::string_view s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), static_cast<uint32_t>(s.size())};
}

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_STRINGS_WORKLOAD_H_
