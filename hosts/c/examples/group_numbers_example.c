/* SPDX-License-Identifier: Apache-2.0
 * Group numbers for an engine that keeps states of its own, such as DataFusion's GroupsAccumulator: which group, 0 to
 * n - 1, does each row of a batch belong to? Here the engine multiplies, which Quern does not.
 *
 *     c_group_numbers_example [ROWS GROUPS]     with numbers: how long a row takes instead
 *
 * A function of the host has a state of four bytes, the number of its group plus one. Where that is still 0 the group
 * is new. `update` is called while a batch is appended, once for each block of its rows, and writes the numbers to
 * where the engine wants them; when the append returns, all rows have theirs.
 *
 * Several threads may take numbers from one atomic counter. A group that two threads have met has two numbers then, and
 * `merge` tells the engine of it. With the parameter local_groups=1073741824 no thread numbers a group twice. */
#define _POSIX_C_SOURCE 199309L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "quern.h"

/* What belongs to one query: `host` of its job's options. */
struct query {
  uint32_t num_groups;
  uint32_t* numbers; /* of the rows of the batch that is appended */
  double* products;  /* by group: the engine's states */
};

static int number_rows(void* user, void* host, const quern_column* columns, uint32_t num_columns, const uint32_t* rows,
                       void* const* states, uint64_t n) {
  struct query* query = host;
  for (uint64_t i = 0; i < n; ++i) {
    uint32_t* number = states[i];
    if (*number == 0) *number = ++query->num_groups;
    query->numbers[rows[i]] = *number - 1;
  }
  (void)user, (void)columns, (void)num_columns;
  return 0;
}

/* Group `from` turns out to be group `into`, which may have had no rows yet. */
static int merge_groups(void* user, void* host, void* const* into, const void* const* from, uint64_t n) {
  struct query* query = host;
  for (uint64_t i = 0; i < n; ++i) {
    uint32_t* number = into[i];
    const uint32_t other = *(const uint32_t*)from[i];
    if (*number == 0) *number = other;
    else query->products[*number - 1] *= query->products[other - 1];
  }
  (void)user;
  return 0;
}

/* The number comes out beside the keys of its group. */
static int write_numbers(void* user, void* host, const void* const* states, uint64_t n, void* values,
                         uint8_t* validity) {
  for (uint64_t i = 0; i < n; ++i) ((uint32_t*)values)[i] = *(const uint32_t*)states[i] - 1;
  (void)user, (void)host, (void)validity;
  return 0;
}

static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      goto done;                                                                           \
    }                                                                                      \
  } while (0)

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Appends a key of each of num_rows rows, in batches of 8192 at most, and multiplies what belongs to their groups. */
static quern_status run(const char* spec, struct query* query, const int64_t* keys, const double* factors,
                        uint64_t num_rows) {
  quern_kernel* kernel = NULL;
  quern_job* job = NULL;
  quern_input* input = NULL;
  quern_output* groups = NULL;
  const quern_job_options options = {.struct_size = sizeof options, .host = query};
  CHECK(quern_compile(spec, QUERN_ENGINE_JIT, NULL, &kernel, &error));
  CHECK(quern_job_create(kernel, &options, &job, &error));
  CHECK(quern_input_create(job, QUERN_PORT_ROWS, NULL, &input, &error));
  const double begin = now_ns();
  for (uint64_t first = 0; first < num_rows; first += 8192) {
    const quern_column key = {.values = keys + first};
    const uint64_t n = num_rows - first < 8192 ? num_rows - first : 8192;
    const quern_batch batch = {.keys = &key, .num_rows = n};
    CHECK(quern_input_append(input, &batch, &error));
    for (uint64_t i = 0; i < n && factors != NULL; ++i) query->products[query->numbers[i]] *= factors[first + i];
  }
  if (factors == NULL) printf("%6.2f ns a row: %s\n", (now_ns() - begin) / (double)num_rows, spec);
  CHECK(quern_input_finish(input, &error));
  CHECK(quern_job_finalise(job, &error));
  CHECK(quern_output_create(job, QUERN_PORT_ROWS, NULL, &groups, &error));
  for (const quern_result* result = NULL; result == NULL || result->state == QUERN_RESULT_MORE;) {
    CHECK(quern_output_next(groups, &result, &error));
    const int64_t* share = result->num_rows == 0 ? NULL : result->columns[0].values;
    const uint32_t* number = result->num_rows == 0 ? NULL : result->columns[1].values;
    for (uint64_t i = 0; i < result->num_rows && factors != NULL; ++i)
      printf("share %" PRId64 "  growth %.3f\n", share[i], query->products[number[i]]);
  }
done:
  quern_output_destroy(groups);
  quern_input_destroy(input);
  quern_job_destroy(job);
  quern_kernel_destroy(kernel);
  return error.status;
}

int main(int argc, char** argv) {
  static const int64_t shares[] = {7, 8, 7, 9, 8, 7};
  static const double growth[] = {1.5, 2.0, 2.0, 1.25, 0.5, 3.0};
  static const quern_aggregate_function numbers = {.struct_size = sizeof numbers,
                                                   .state_bytes = sizeof(uint32_t),
                                                   .result = "u32",
                                                   .update = number_rows,
                                                   .merge = merge_groups,
                                                   .finalise = write_numbers};
  if (quern_register_aggregate("number", &numbers, &error) != QUERN_OK) return 1;
  uint32_t of_batch[8192];
  double products[3] = {1, 1, 1};
  struct query query = {0, of_batch, products};
  if (argc != 3) return run("aggregate keys=i64 aggs=host.number()", &query, shares, growth, 6) != QUERN_OK;

  const uint64_t num_rows = strtoull(argv[1], NULL, 10), num_groups = strtoull(argv[2], NULL, 10);
  int64_t* keys = malloc((num_rows + 1) * sizeof *keys);
  if (keys == NULL || num_groups == 0) return 1;
  for (uint64_t i = 0; i < num_rows; ++i) keys[i] = (int64_t)((i * 0x9e3779b97f4a7c15u >> 20) % num_groups);
  for (int round = 0; round < 3; ++round) {
    run("aggregate keys=i64 aggs=count_star", &query, keys, NULL, num_rows);
    query.num_groups = 0;
    run("aggregate keys=i64 aggs=host.number()", &query, keys, NULL, num_rows);
  }
  free(keys);
  return 0;
}
