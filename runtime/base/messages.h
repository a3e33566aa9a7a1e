// SPDX-License-Identifier: Apache-2.0
// Messages about unknown names: `unknown <what>: <value>; did you mean ..? accepted: ..`.
#ifndef QUERN_RUNTIME_BASE_MESSAGES_H_
#define QUERN_RUNTIME_BASE_MESSAGES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace quern {

using Names = std::vector<std::string_view>;

std::string Listed(const Names& names);  // "a, b, c"
// `<what>: <value>; accepted: <accepted>`.
absl::Status Wrong(std::string_view what, std::string_view value, const std::string& accepted);
// `unknown <what>: <value>; did you mean ..? accepted: ..`; the hint appears where an accepted name is near.
absl::Status Unknown(std::string_view what, std::string_view value, const Names& accepted);

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_MESSAGES_H_
