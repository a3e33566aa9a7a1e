// SPDX-License-Identifier: Apache-2.0
// A decimal's format must have the scale of its type and no more digits; times have the unit of their column.
#include "hosts/c/jobs/value_formats.h"

#include <cstdio>
#include <optional>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/expression_units.h"

namespace quern::c_abi {

std::vector<std::string> FormatsOf(const std::vector<BoundField>& fields) {
  std::vector<std::string> formats;
  for (const BoundField& field : fields) formats.push_back(field.format);
  return formats;
}

namespace {

// Whether values of the format are values of the type: "d:7,4" of decimal128(18,4), "d:7,4,64" of decimal64(18,4).
bool IsWithin(const std::string& format, const ValueType& type) {
  unsigned digits = 0;
  int scale = 0, end = 0;
  if (std::sscanf(format.c_str(), "d:%2u,%d%n", &digits, &scale, &end) != 2) return false;
  const std::string rest = format.substr(static_cast<size_t>(end));
  const std::string bits = "," + std::to_string(RowOf(type.id).width_bytes * 8);
  return digits <= type.digits && scale == type.scale && (rest == bits || (rest.empty() && bits == ",128"));
}

}  // namespace

absl::Status CheckValueFormats(std::span<const ValueType> columns, const std::vector<std::string>& formats,
                               const std::string& what) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!IsDecimal(columns[i].id)) continue;
    if (IsWithin(formats[i], columns[i])) continue;
    return Wrong("format of " + what + " column " + std::to_string(i), formats[i], DefaultFormat(columns[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckUnits(const Expression& e, const std::vector<std::string>& formats) {
  const std::optional<MixedUnits> mixed = FindMixedUnits(e, formats);
  if (!mixed.has_value()) return absl::OkStatus();
  return Wrong("units in " + PrintExpression(*mixed->call),
               "$" + std::to_string(mixed->first) + " is " + formats[mixed->first] + ", $" +
                   std::to_string(mixed->other) + " is " + formats[mixed->other],
               "columns of one unit");
}

}  // namespace quern::c_abi
