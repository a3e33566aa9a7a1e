// SPDX-License-Identifier: Apache-2.0
// The rows of thresholds.def as constants.
#ifndef QUERN_RUNTIME_BASE_THRESHOLDS_H_
#define QUERN_RUNTIME_BASE_THRESHOLDS_H_

#include <stdint.h>  // templates include this header and have no C++ library

namespace quern::thresholds {

#define QUERN_THRESHOLD(kName, name, operators, value, unit, meaning, figure) inline constexpr auto kName = value;
#include "runtime/base/thresholds.def"

}  // namespace quern::thresholds

#endif  // QUERN_RUNTIME_BASE_THRESHOLDS_H_
