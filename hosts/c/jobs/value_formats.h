// SPDX-License-Identifier: Apache-2.0
// What Arrow's formats say of columns that expressions read: digits, scales and units, which a spec's text has in part.
#ifndef QUERN_HOSTS_C_JOBS_VALUE_FORMATS_H_
#define QUERN_HOSTS_C_JOBS_VALUE_FORMATS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hosts/c/arrow_fields.h"
#include "runtime/spec/expression.h"

namespace quern::c_abi {

std::vector<std::string> FormatsOf(const std::vector<BoundField>& fields);

// Whether decimals have the scale of their types, and as many digits or fewer. what: "map input", as messages name the
// columns.
absl::Status CheckValueFormats(std::span<const ValueType> columns, const std::vector<std::string>& formats,
                               const std::string& what);

// Seconds beside milliseconds would be compared, or come out, as if they were of one unit.
absl::Status CheckUnits(const Expression& e, const std::vector<std::string>& formats);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_JOBS_VALUE_FORMATS_H_
