// SPDX-License-Identifier: Apache-2.0
// A decimal's format must be that of its type; times have the unit of their column.
#include "hosts/c/jobs/value_formats.h"

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

absl::Status CheckValueFormats(std::span<const ValueType> columns, const std::vector<std::string>& formats,
                               const std::string& what) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].id != TypeId::kDecimal128) continue;
    const std::string &format = formats[i], wanted = DefaultFormat(columns[i]);
    if (format == wanted || format == wanted + ",128") continue;
    return Wrong("format of " + what + " column " + std::to_string(i), format, wanted);
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
