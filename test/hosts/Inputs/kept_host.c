/* SPDX-License-Identifier: Apache-2.0
 * A host that was compiled with an earlier header: a join with options of every kind, and the states of an aggregation.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "quern_2_0.h"

static void Check(quern_status status, const quern_error* error) {
  if (status == QUERN_OK) return;
  fprintf(stderr, "%s\n", error->text);
  exit(1);
}

static quern_batch BatchOf(const quern_column* keys, const quern_column* payload, uint64_t num_rows) {
  quern_batch batch = {.keys = keys, .payload = payload, .num_rows = num_rows, .struct_size = sizeof(batch)};
  return batch;
}

static void Append(quern_job* job, quern_port port, const quern_batch* batch) {
  quern_error error;
  quern_input_options options = {.struct_size = sizeof(options), .copy_bytes = true};
  quern_input* input = NULL;
  Check(quern_input_create(job, port, &options, &input, &error), &error);
  Check(quern_input_append(input, batch, &error), &error);
  Check(quern_input_finish(input, &error), &error);
  quern_input_destroy(input);
  Check(quern_job_finalise(job, &error), &error);
}

static quern_job* NewJob(const char* spec) {
  quern_error error;
  quern_compile_options how = {.struct_size = sizeof(how), .engine = QUERN_ENGINE_GENERIC};
  quern_kernel* kernel = NULL;
  Check(quern_compile_with(spec, &how, &kernel, &error), &error);
  quern_job_options options = {.struct_size = sizeof(options), .memory_limit = 1 << 24};
  quern_job* job = NULL;
  Check(quern_job_create(kernel, &options, &job, &error), &error);
  quern_kernel_destroy(kernel);
  return job;
}

/* Prints the rows of an output of i64 columns; pushes the batch first, if there is one. */
static void Print(quern_job* job, quern_port port, const quern_batch* batch) {
  quern_error error;
  quern_output_options options = {.struct_size = sizeof(options), .batch_rows = 2};
  quern_output* output = NULL;
  Check(quern_output_create(job, port, &options, &output, &error), &error);
  if (batch != NULL) Check(quern_output_push(output, batch, &error), &error);
  for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
    const quern_result* result = NULL;
    Check(quern_output_next(output, &result, &error), &error);
    for (uint64_t row = 0; row < result->num_rows; ++row)
      for (size_t i = 0; i < result->num_columns; ++i)
        printf("%" PRId64 "%s", ((const int64_t*)result->columns[i].values)[row],
               i + 1 < result->num_columns ? " " : "\n");
    state = result->state;
  }
  quern_output_destroy(output);
}

int main(void) {
  if (quern_abi_version() / 1000 != QUERN_ABI_VERSION_MAJOR) return 1;
  const int64_t numbers[] = {1, 2, 3}, values[] = {10, 20, 30};
  const quern_column keys = {.values = numbers}, payload = {.values = values};
  const quern_batch batch = BatchOf(&keys, &payload, 3);

  quern_job* join = NewJob("join.inner keys=i64 build=i64 probe=i64");
  Append(join, QUERN_PORT_BUILD, &batch);
  Print(join, QUERN_PORT_PROBE, &batch);
  quern_job_stats stats = {.struct_size = sizeof(stats)};
  quern_job_get_stats(join, &stats);
  quern_counters counters = {.struct_size = sizeof(counters)};
  quern_job_get_counters(join, &counters);
  printf("%" PRIu64 " in the table, %" PRIu64 " rows, %s\n", stats.num_rows, counters.rows, counters.tier);
  quern_job_destroy(join);

  quern_job* aggregate = NewJob("aggregate aggs=sum(i64),count_star");
  Append(aggregate, QUERN_PORT_ROWS, &(quern_batch){.payload = &payload, .num_rows = 3});
  Print(aggregate, QUERN_PORT_ROWS, NULL);
  quern_job_destroy(aggregate);
  return 0;
}
