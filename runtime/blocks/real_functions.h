// SPDX-License-Identifier: Apache-2.0
// Functions of floats that no machine has as an instruction: those of the C library. Compiled and generic kernels call
// the same ones, so that both agree to the bit on one machine; another C library may round otherwise.
#ifndef QUERN_RUNTIME_BLOCKS_REAL_FUNCTIONS_H_
#define QUERN_RUNTIME_BLOCKS_REAL_FUNCTIONS_H_

// Eight results of eight values x and, quern_rt_power alone, eight values y. Never fail: 0, negative numbers and NaN
// give what IEEE 754 says. *Cost*: eight calls of the C library.
extern "C" void quern_rt_ln(const double* x, const double* y, double* results);
extern "C" void quern_rt_log10(const double* x, const double* y, double* results);
extern "C" void quern_rt_exp(const double* x, const double* y, double* results);
extern "C" void quern_rt_power(const double* x, const double* y, double* results);

#endif  // QUERN_RUNTIME_BLOCKS_REAL_FUNCTIONS_H_
