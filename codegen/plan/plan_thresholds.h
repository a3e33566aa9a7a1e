// SPDX-License-Identifier: Apache-2.0
// The part of `quern dump plan` about thresholds, which no parameter sets (runtime/base/thresholds.def).
#ifndef QUERN_CODEGEN_PLAN_PLAN_THRESHOLDS_H_
#define QUERN_CODEGEN_PLAN_PLAN_THRESHOLDS_H_

#include <string>

#include "runtime/spec/spec.h"

namespace quern {

// An empty line, a heading, then one line "name = value unit  # meaning; figure" for each threshold of the spec's
// operator.
std::string PrintThresholds(const KernelSpec& spec);

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_PLAN_THRESHOLDS_H_
