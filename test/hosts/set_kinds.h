// SPDX-License-Identifier: Apache-2.0
// What set operations give, by the definition of SQL.
#ifndef QUERN_TEST_HOSTS_SET_KINDS_H_
#define QUERN_TEST_HOSTS_SET_KINDS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "test/hosts/jobs.h"

namespace quern_test {

constexpr const char* kSetKinds[] = {"union", "intersect", "except", "intersect_all", "except_all"};

// How often a row comes out that either side has so many times.
inline uint64_t Copies(std::string_view kind, uint64_t left, uint64_t right) {
  if (kind == "union") return 1;
  if (kind == "intersect") return left > 0 && right > 0 ? 1 : 0;
  if (kind == "except") return left > 0 && right == 0 ? 1 : 0;
  return kind == "intersect_all" ? std::min(left, right) : left - std::min(left, right);
}

// The rows of such an operation, in the order of their texts.
inline Lines Combination(std::string_view kind, const Lines& left, const Lines& right) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> counts;
  for (const std::string& line : left) ++counts[line].first;
  for (const std::string& line : right) ++counts[line].second;
  Lines lines;
  for (const auto& [line, count] : counts) lines.insert(lines.end(), Copies(kind, count.first, count.second), line);
  return Ordered(lines);
}

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_SET_KINDS_H_
