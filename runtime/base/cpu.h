// SPDX-License-Identifier: Apache-2.0
// Which extensions this machine's processor has, for loops that are compiled several times. All loops use the same two
// levels, x86-64-v3 and x86-64-v4; other architectures have neither.
#ifndef QUERN_RUNTIME_BASE_CPU_H_
#define QUERN_RUNTIME_BASE_CPU_H_

namespace quern {

inline bool HasAvx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                          __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return has;
#else
  return false;
#endif
}

inline bool HasAvx512() {
#if defined(__x86_64__)
  static const bool has = HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
#else
  return false;
#endif
}

}  // namespace quern

// A function that is compiled for processors of the higher level, too, and called where HasAvx512().
#if defined(__x86_64__)
#define QUERN_WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt")))
#endif

#endif  // QUERN_RUNTIME_BASE_CPU_H_
