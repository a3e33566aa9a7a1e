/* SPDX-License-Identifier: Apache-2.0
 * What a job costs when it has ten rows: 100,000 jobs of each operator on a kernel that is compiled, from
 * quern_job_create to the last destroy, on one thread. Of several rounds by turns, the fastest counts.
 *
 *     build/bin/small_jobs [JOBS] [ROUNDS]     default 100000 3
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "quern.h"

enum { ROWS = 10, NUM_OPERATORS = 4 };

static const char* const specs[NUM_OPERATORS] = {
    "join.inner keys=i64 build=i64 probe=i64",
    "aggregate keys=i64 aggs=sum(i64),count_star",
    "sort keys=i64:out payload=i64",
    "filter i64 > 4",
};
static const char* const names[NUM_OPERATORS] = {"join", "aggregation", "sort", "filter"};

static const int64_t keys[ROWS] = {5, 3, 8, 1, 9, 2, 7, 4, 6, 0};
static const quern_column key = {.values = keys};
static const quern_batch batch = {.keys = &key, .payload = &key, .num_rows = ROWS};

static uint64_t read_rows(quern_output* output) {
  uint64_t num_rows = 0;
  const quern_result* result;
  do {
    CHECK(quern_output_next(output, &result, &error));
    num_rows += result->num_rows;
  } while (result->state == QUERN_RESULT_MORE);
  return num_rows;
}

/* Returns the rows that come out. */
static uint64_t run_job(quern_kernel* kernel, int operator_number) {
  quern_job* job;
  CHECK(quern_job_create(kernel, NULL, &job, &error));
  uint64_t num_rows = 0;
  if (operator_number == 3) {
    uint32_t rows[ROWS];
    CHECK(quern_job_filter(job, &batch, rows, NULL, &num_rows, &error));
  } else {
    quern_input* input;
    quern_output* output;
    CHECK(quern_input_create(job, operator_number == 0 ? QUERN_PORT_BUILD : QUERN_PORT_ROWS, NULL, &input, &error));
    CHECK(quern_input_append(input, &batch, &error));
    CHECK(quern_input_finish(input, &error));
    quern_input_destroy(input);
    CHECK(quern_job_finalise(job, &error));
    CHECK(quern_output_create(job, operator_number == 0 ? QUERN_PORT_PROBE : QUERN_PORT_ROWS, NULL, &output, &error));
    if (operator_number == 0) CHECK(quern_output_push(output, &batch, &error));
    num_rows = read_rows(output);
    quern_output_destroy(output);
  }
  quern_job_destroy(job);
  return num_rows;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  const long num_jobs = argc > 1 ? atol(argv[1]) : 100000, num_rounds = argc > 2 ? atol(argv[2]) : 3;
  if (argc > 3 || num_jobs < 1 || num_rounds < 1) {
    fprintf(stderr, "usage: small_jobs [JOBS] [ROUNDS]: 1 or more of each\n");
    return 2;
  }
  quern_kernel* kernels[NUM_OPERATORS];
  double fastest[NUM_OPERATORS] = {1e9, 1e9, 1e9, 1e9};
  uint64_t num_rows[NUM_OPERATORS];
  for (int i = 0; i < NUM_OPERATORS; ++i) {
    CHECK(quern_compile(specs[i], QUERN_ENGINE_JIT, NULL, &kernels[i], &error));
    num_rows[i] = run_job(kernels[i], i); /* warm */
  }
  for (long round = 0; round < num_rounds; ++round) {
    for (int i = 0; i < NUM_OPERATORS; ++i) {
      const double begin = seconds();
      for (long job = 0; job < num_jobs; ++job) {
        if (run_job(kernels[i], i) != num_rows[i]) return 1;
      }
      const double taken = seconds() - begin;
      if (taken < fastest[i]) fastest[i] = taken;
    }
  }
  printf("%-12s %8s %8s\n", "operator", "us a job", "rows out");
  for (int i = 0; i < NUM_OPERATORS; ++i) {
    printf("%-12s %8.2f %8" PRIu64 "\n", names[i], fastest[i] / (double)num_jobs * 1e6, num_rows[i]);
    quern_kernel_destroy(kernels[i]);
  }
  return 0;
}
