// SPDX-License-Identifier: Apache-2.0
// A call of a kernel computes eight rows: for ln of 1, 0 and -1 the results are 0, -inf and NaN. Lanes without a value
// are computed like the others.
#include "runtime/blocks/real_functions.h"

#include <cmath>

#include "runtime/blocks/filter_blocks.h"

namespace {

template <class Function>
void EachLane(const double* x, double* results, Function function) {
  for (uint32_t i = 0; i < quern::blocks::kLanes; ++i) results[i] = function(x[i], i);
}

}  // namespace

extern "C" void quern_rt_ln(const double* x, const double* /*y*/, double* results) {
  EachLane(x, results, [](double value, uint32_t) { return std::log(value); });
}
extern "C" void quern_rt_log10(const double* x, const double* /*y*/, double* results) {
  EachLane(x, results, [](double value, uint32_t) { return std::log10(value); });
}
extern "C" void quern_rt_exp(const double* x, const double* /*y*/, double* results) {
  EachLane(x, results, [](double value, uint32_t) { return std::exp(value); });
}
extern "C" void quern_rt_power(const double* x, const double* y, double* results) {
  EachLane(x, results, [y](double value, uint32_t i) { return std::pow(value, y[i]); });
}
