// SPDX-License-Identifier: Apache-2.0
// Strings as arguments of functions (expression.h).
#ifndef QUERN_RUNTIME_SPEC_EXPRESSION_STRINGS_H_
#define QUERN_RUNTIME_SPEC_EXPRESSION_STRINGS_H_

#include <span>

#include "absl/status/status.h"
#include "runtime/spec/expression.h"

namespace quern {

// Whether all arguments of the function are strings.
bool TakesOnlyStrings(const ExpressionFunctionRow& row);
// Whether one of the arguments is a string, or the function has strings only.
bool TakesStrings(const ExpressionFunctionRow& row, std::span<const Expression> arguments);

// Checks the arguments of such a call, of which there are as many as the function has. *Errors*: InvalidArgument that
// names the types and what is accepted.
absl::Status CheckStringArguments(const ExpressionFunctionRow& row, std::span<const Expression> arguments);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_EXPRESSION_STRINGS_H_
