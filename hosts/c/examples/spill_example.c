/* SPDX-License-Identifier: Apache-2.0
 * Four million rows of a million customers, grouped under a memory limit of 16 MiB. What the limit has no room for goes
 * to a store of the host: three functions over one temporary file. (example.c explains every other step.)
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "quern.h"

static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      goto done;                                                                           \
    }                                                                                      \
  } while (0)

/* The host's store. Its functions are called by several threads at once, so that the counters are atomic. */
struct store {
  int file;
  atomic_uint_fast64_t end, used_bytes;
};

/* The block's number is its place. A write that stops half way ends the job, as any failure does. */
static int write_block(void* host, const void* bytes, uint64_t num_bytes, uint64_t* block) {
  struct store* store = host;
  *block = atomic_fetch_add(&store->end, num_bytes);
  atomic_fetch_add(&store->used_bytes, num_bytes);
  return pwrite(store->file, bytes, num_bytes, (off_t)*block) == (ssize_t)num_bytes ? 0 : 1;
}

static int read_block(void* host, uint64_t block, void* bytes, uint64_t num_bytes) {
  const struct store* store = host;
  return pread(store->file, bytes, num_bytes, (off_t)block) == (ssize_t)num_bytes ? 0 : 1;
}

/* A real store would use the place again. */
static void free_block(void* host, uint64_t block, uint64_t num_bytes) {
  struct store* store = host;
  (void)block;
  atomic_fetch_sub(&store->used_bytes, num_bytes);
}

enum { BATCH_ROWS = 65536, NUM_ROWS = 4000000, NUM_CUSTOMERS = 1000000 };

int main(void) {
  static int64_t customer[BATCH_ROWS], amount[BATCH_ROWS];
  int exit_status = 1;
  quern_kernel* kernel = NULL;
  quern_job* aggregation = NULL;
  quern_input* input = NULL;
  quern_output* groups = NULL;
  FILE* file = tmpfile(); /* removed by the system, however the process ends */
  if (file == NULL) return 1;
  struct store store = {.file = fileno(file)};
  const quern_spill_options spill = {
      .struct_size = sizeof spill, .write_block = write_block, .read_block = read_block, .free_block = free_block};
  const quern_job_options options = {
      .struct_size = sizeof options, .memory_limit = 16 << 20, .host = &store, .spill = &spill};
  CHECK(quern_compile("aggregate keys=i64 aggs=count_star,sum(i64)", QUERN_ENGINE_AUTO, NULL, &kernel, &error));
  CHECK(quern_job_create(kernel, &options, &aggregation, &error));
  CHECK(quern_input_create(aggregation, QUERN_PORT_ROWS, NULL, &input, &error));
  for (int64_t first = 0; first < NUM_ROWS; first += BATCH_ROWS) {
    const quern_column keys[] = {{.values = customer}}, arguments[] = {{.values = amount}};
    quern_batch rows = {.keys = keys, .payload = arguments};
    for (; rows.num_rows < BATCH_ROWS && first + (int64_t)rows.num_rows < NUM_ROWS; ++rows.num_rows) {
      customer[rows.num_rows] = (first + (int64_t)rows.num_rows) * 7919 % NUM_CUSTOMERS;
      amount[rows.num_rows] = 25;
    }
    CHECK(quern_input_append(input, &rows, &error));
  }
  CHECK(quern_input_finish(input, &error));
  CHECK(quern_job_finalise(aggregation, &error));

  int64_t num_groups = 0, sum = 0;
  const quern_result* result;
  CHECK(quern_output_create(aggregation, QUERN_PORT_ROWS, NULL, &groups, &error));
  do { /* partition after partition is read back here */
    CHECK(quern_output_next(groups, &result, &error));
    const int64_t* amounts = result->columns[2].values;
    for (uint64_t i = 0; i < result->num_rows; ++i) sum += amounts[i];
    num_groups += (int64_t)result->num_rows;
  } while (result->state != QUERN_RESULT_DONE);
  quern_job_stats stats = {.struct_size = sizeof stats};
  quern_job_get_stats(aggregation, &stats);
  printf("%" PRId64 " customers, amounts of %" PRId64 "\n", num_groups, sum);
  printf("peak below the limit: %s; rows were written: %s\n", stats.peak_bytes <= options.memory_limit ? "yes" : "no",
         stats.spilled_rows != 0 ? "yes" : "no");
  exit_status = 0;
done: /* the job's handles go before the store that they use */
  quern_output_destroy(groups);
  quern_input_destroy(input);
  quern_job_destroy(aggregation);
  quern_kernel_destroy(kernel);
  printf("bytes left in the store: %" PRIu64 "\n", (uint64_t)store.used_bytes);
  fclose(file);
  return exit_status;
}
