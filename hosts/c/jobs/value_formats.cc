// SPDX-License-Identifier: Apache-2.0
// A decimal's format must have the scale of its type and no more digits; times have the unit of their column.
#include "hosts/c/jobs/value_formats.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

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
  constexpr std::string_view kPrefix = "d:";
  if (!format.starts_with(kPrefix)) return false;
  unsigned digits = 0;
  const char* const end = format.data() + format.size();
  const auto [rest, error] = std::from_chars(format.data() + kPrefix.size(), end, digits);
  if (error != std::errc() || digits == 0 || digits > type.digits) return false;
  const std::string own = DefaultFormat(type), found(rest, end);
  const std::string wanted = own.substr(own.find(','));
  return found == wanted || (type.id == TypeId::kDecimal128 && found == wanted + ",128");
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
