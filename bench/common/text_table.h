// SPDX-License-Identifier: Apache-2.0
// Aligned tables that are printed row by row, as soon as a row is ready.
#ifndef QUERN_BENCH_COMMON_TEXT_TABLE_H_
#define QUERN_BENCH_COMMON_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace quern::bench {

struct TextColumn {
  std::string name;
  int width = 0;           // including the space before it; positive: right-aligned, negative: left-aligned
  std::string group = {};  // neighbouring columns of one group share its heading
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

  void PrintHeader() const;
  void PrintRow(const std::vector<std::string>& cells) const;

 private:
  std::string GroupLine() const;
  std::vector<TextColumn> columns_;
};

std::string Fixed(double value, int decimals = 2);
std::string Grouped(uint64_t value);  // "10,000,000"
std::string Bytes(uint64_t bytes);    // "191 MiB"

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_TEXT_TABLE_H_
