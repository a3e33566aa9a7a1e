// SPDX-License-Identifier: Apache-2.0
// A run takes minutes and is watched, so each row is printed at once; hence the widths of the columns are fixed from
// the start. A cell that is too wide moves the rest of its row and loses nothing.
//
//                        ---- default ----
//     key    build rows     build    probe
//     i32         1,000     14.10     6.10
#include "bench/common/text_table.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace quern::bench {
namespace {

std::string Padded(const std::string& text, int width) {
  const size_t size = static_cast<size_t>(std::abs(width));
  // A left-aligned column has its leading space too.
  if (width < 0) return "  " + text + std::string(size - std::min(size, text.size() + 2), ' ');
  return std::string(std::max<size_t>(size, text.size() + 1) - text.size(), ' ') + text;
}

void PrintLine(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// "--- default ---" in `width` columns, the first of which stays empty.
std::string Ruled(const std::string& name, size_t width) {
  if (name.empty() || width < name.size() + 6) return Padded(name, static_cast<int>(width));
  const size_t dashes = width - 2 - name.size() - 2;
  return "  " + std::string(dashes / 2, '-') + " " + name + " " + std::string(dashes - dashes / 2, '-');
}

}  // namespace

std::string TextTable::GroupLine() const {
  std::string line;
  for (size_t i = 0; i < columns_.size();) {
    size_t width = 0, end = i;
    for (; end < columns_.size() && columns_[end].group == columns_[i].group; ++end)
      width += static_cast<size_t>(std::abs(columns_[end].width));
    line += columns_[i].group.empty() ? std::string(width, ' ') : Ruled(columns_[i].group, width);
    i = end;
  }
  return line;
}

void TextTable::PrintHeader() const {
  if (std::any_of(columns_.begin(), columns_.end(), [](const TextColumn& column) { return !column.group.empty(); }))
    PrintLine(GroupLine());
  std::string line;
  for (const TextColumn& column : columns_) line += Padded(column.name, column.width);
  PrintLine(line);
}

void TextTable::PrintRow(const std::vector<std::string>& cells) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += Padded(cells[i], columns_[i].width);
  PrintLine(line);
}

std::string Fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string Grouped(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string Bytes(uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit < 3; ++unit) value /= 1024;
  return Fixed(value, unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2) + " " + units[unit];
}

}  // namespace quern::bench
