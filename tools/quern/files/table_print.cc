// SPDX-License-Identifier: Apache-2.0
// Twenty rows become text cell by cell through Arrow's scalars, whose texts are right for every type; speed does not
// matter here. Columns are as wide as their widest cell, in code points (a UTF-8 byte 10xxxxxx does not begin one).
// Numbers are aligned to the right, all else to the left. A cell has at most 60 code points; a longer one ends in an
// ellipsis, so that one long text does not push the other columns off the screen. Control characters are escaped, so
// that none moves the cursor.
#include "tools/quern/files/table_print.h"

#include <arrow/api.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

namespace quern::cli {
namespace {

constexpr size_t kMaxCellWidth = 60;
constexpr const char* kEllipsis = "\u2026";

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCodePoint));
}

std::string Escaped(std::string_view text, bool is_binary) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02x", byte);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f || (is_binary && byte >= 0x80)) {
      out += hex;
    } else {
      out += c;
    }
  }
  return out;
}

std::string Shortened(const std::string& text) {
  if (Width(text) <= kMaxCellWidth) return text;
  size_t end = 0;
  for (size_t code_points = 0; end < text.size(); ++end) {
    if (BeginsCodePoint(text[end]) && code_points++ == kMaxCellWidth - 1) break;
  }
  return text.substr(0, end) + kEllipsis;
}

// The shortest text that reads back as the same number.
template <typename Float>
std::string FloatText(Float value) {
  if (std::isnan(value)) return "NaN";
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end);
}

std::string ScalarText(const arrow::Scalar& scalar) {
  if (!scalar.is_valid) return "NULL";
  switch (scalar.type->id()) {
    case arrow::Type::FLOAT: return FloatText(static_cast<const arrow::FloatScalar&>(scalar).value);
    case arrow::Type::DOUBLE: return FloatText(static_cast<const arrow::DoubleScalar&>(scalar).value);
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW: return Escaped(static_cast<const arrow::BaseBinaryScalar&>(scalar).view(), false);
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::FIXED_SIZE_BINARY:
      return Escaped(static_cast<const arrow::BaseBinaryScalar&>(scalar).view(), true);
    default:  // an enum of Arrow's
      return Escaped(scalar.ToString(), false);
  }
}

struct PrintedColumn {
  bool right_aligned;
  size_t width;
  std::vector<std::string> cells;  // the name first
};

PrintedColumn PrintColumn(const std::string& name, const arrow::ChunkedArray& column, int64_t rows) {
  const arrow::Type::type id = column.type()->id();
  PrintedColumn printed{arrow::is_numeric(id) || arrow::is_decimal(id), 0, {Shortened(Escaped(name, false))}};
  for (int64_t row = 0; row < rows; ++row) {
    const auto scalar = column.GetScalar(row);
    printed.cells.push_back(scalar.ok() ? Shortened(ScalarText(**scalar)) : "?");
  }
  for (const std::string& cell : printed.cells) printed.width = std::max(printed.width, Width(cell));
  return printed;
}

std::string PrintLine(const std::vector<PrintedColumn>& columns, size_t line) {
  std::string text;
  for (const PrintedColumn& column : columns) {
    const std::string& cell = column.cells[line];
    const std::string padding(column.width - Width(cell), ' ');
    if (!text.empty() || &column != columns.data()) text += "  ";
    text += column.right_aligned ? padding + cell : cell + padding;
  }
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string PrintTable(const arrow::Table& table, int64_t max_rows, uint64_t num_rows) {
  const int64_t rows = std::min(max_rows, table.num_rows());
  std::vector<PrintedColumn> columns;
  for (int i = 0; i < table.num_columns(); ++i)
    columns.push_back(PrintColumn(table.field(i)->name(), *table.column(i), rows));
  std::string text;
  for (size_t line = 0; line <= static_cast<size_t>(rows); ++line) text += PrintLine(columns, line);
  text += std::to_string(num_rows) + (num_rows == 1 ? " row" : " rows");
  if (static_cast<uint64_t>(rows) < num_rows) text += " (the first " + std::to_string(rows) + " are shown)";
  return text + "\n";
}

}  // namespace quern::cli
