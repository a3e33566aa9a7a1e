// SPDX-License-Identifier: Apache-2.0
// Selects a quantile of values that are read several times and never moved: by counting how many begin with each
// 16 bits, then how many of those with the right ones go on with each next 16, and so on.
//
//     quantile 0.5 of 5 values: the one at place 2
//     pass 1    first 16 bits    ..3ff0: 1   ..4000: 3   ..4010: 1      place 2 is the second of those with 4000
//     pass 2    next 16 bits     ..0000: 1   ..8000: 2                  it is the first of those with 4000 8000
//     ..
//
// (Radix selection; Knuth, TAOCP 3, 5.3.3 and 5.2.5, for the parts.)
#ifndef QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_QUANTILE_SELECTION_H_
#define QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_QUANTILE_SELECTION_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern {

// Takes some of the values.
using ValuesRead = std::function<void(const double* values, uint64_t n)>;
// Gives all of them to f, in the same order each time.
using ReadValues = std::function<absl::Status(const ValuesRead& f)>;

// What a selection takes.
constexpr uint64_t kSelectionBytes = uint64_t{1} << 19;

// The quantile as `quantile` of a spec defines it: linear between the two values around place quantile * (n - 1); NaN
// is greater than all numbers. None: there are no values. *Cost*: four or five passes. *Errors*: those of `read`.
absl::StatusOr<std::optional<double>> SelectQuantileByCounting(const ReadValues& read, double quantile);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_QUANTILE_SELECTION_H_
