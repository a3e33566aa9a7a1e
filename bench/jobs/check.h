// SPDX-License-Identifier: Apache-2.0
// Calls of the C ABI in benches written in C: an error ends the program.
#ifndef QUERN_BENCH_JOBS_CHECK_H_
#define QUERN_BENCH_JOBS_CHECK_H_

#include <stdio.h>
#include <stdlib.h>

#include "quern.h"

static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

#endif  // QUERN_BENCH_JOBS_CHECK_H_
