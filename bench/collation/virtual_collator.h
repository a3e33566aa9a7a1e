// SPDX-License-Identifier: Apache-2.0
// Collations as engines implement them: a class for each, found at run time and called once a row. The baseline of
// collation_bench.
#ifndef QUERN_BENCH_COLLATION_VIRTUAL_COLLATOR_H_
#define QUERN_BENCH_COLLATION_VIRTUAL_COLLATOR_H_

#include <memory>
#include <string>
#include <string_view>

#include "runtime/spec/column_type.h"

namespace quern::bench {

class VirtualPattern {
 public:
  virtual ~VirtualPattern() = default;
  virtual bool Match(std::string_view text) const = 0;
};

class VirtualCollator {
 public:
  virtual ~VirtualCollator() = default;
  // Negative, 0 or positive; equality uses it too.
  virtual int Compare(std::string_view a, std::string_view b) const = 0;
  // A key that is hashed or compared byte by byte in place of the string.
  virtual void SortKey(std::string_view text, std::string* key) const = 0;
  // LIKE with the wildcards % and _.
  virtual std::unique_ptr<VirtualPattern> MakePattern(std::string_view pattern) const = 0;
};

// For well-formed text without control characters and without characters from U+10000 on. Null for ICU's collations.
std::unique_ptr<VirtualCollator> MakeVirtualCollator(Collation collation);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COLLATION_VIRTUAL_COLLATOR_H_
