/* SPDX-License-Identifier: Apache-2.0
 * A pipeline: filter, map and probe of a table in front of an aggregation. It computes
 *
 *     SELECT category, sum(price * (1 - discount)) FROM sales JOIN items USING (item) WHERE day >= 20 GROUP BY category
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "quern.h"

static void check(quern_status status, const quern_error* error) {
  if (status == QUERN_OK) return;
  fprintf(stderr, "%s\n", error->text);
  exit(1);
}

static quern_job* job_of(const char* spec) {
  quern_kernel* kernel;
  quern_job* job;
  quern_error error;
  check(quern_compile(spec, QUERN_ENGINE_AUTO, NULL, &kernel, &error), &error);
  check(quern_job_create(kernel, NULL, &job, &error), &error);
  quern_kernel_destroy(kernel);
  return job;
}

static void append(quern_input* input, const quern_batch* batch) {
  quern_error error;
  check(quern_input_append(input, batch, &error), &error);
  check(quern_input_finish(input, &error), &error);
  quern_input_destroy(input);
}

int main(void) {
  const int64_t item[] = {1, 2, 3}, category[] = {10, 10, 20};
  const int64_t sold_item[] = {1, 3, 2, 1, 9}, price[] = {500, 300, 200, 700, 100}, discount[] = {10, 0, 50, 0, 0};
  const int32_t day[] = {21, 20, 25, 19, 30};
  quern_error error;

  /* The table of items. */
  quern_job* items = job_of("join.inner keys=i64 build=i64 probe=i64");
  const quern_column item_key = {.values = item}, item_category = {.values = category};
  quern_input* build;
  check(quern_input_create(items, QUERN_PORT_BUILD, NULL, &build, &error), &error);
  append(build, &(quern_batch){.keys = &item_key, .payload = &item_category, .num_rows = 3});
  check(quern_job_finalise(items, &error), &error);

  /* Columns of a sale: 0 day, 1 item, 2 price, 3 discount in percent; behind the map: 4 price * (100 - discount);
   * behind the probe: 0 that product, 1 the category. */
  quern_job* recent = job_of("filter i32 >= 20");
  quern_job* product = job_of("map in=i64,i64 out=multiply_checked($0,subtract_checked(100:i64,$1))");
  quern_job* sums = job_of("aggregate keys=i64 aggs=sum(i64)");
  const quern_pipeline_step steps[] = {
      {.job = recent, .keys = (const uint32_t[]){0}, .num_keys = 1},
      {.job = product, .keys = (const uint32_t[]){2, 3}, .num_keys = 2},
      {.job = items, .keys = (const uint32_t[]){1}, .num_keys = 1, .payload = (const uint32_t[]){4}, .num_payload = 1},
  };
  const quern_pipeline_options pipeline = {.struct_size = sizeof(pipeline),
                                           .columns = "i32,i64,i64,i64",
                                           .steps = steps,
                                           .num_steps = 3,
                                           .keys = (const uint32_t[]){1},
                                           .num_keys = 1,
                                           .payload = (const uint32_t[]){0},
                                           .num_payload = 1};
  quern_input* sales;
  check(quern_pipeline_input_create(sums, QUERN_PORT_ROWS, &pipeline, &sales, &error), &error);
  const quern_column columns[] = {{.values = day}, {.values = sold_item}, {.values = price}, {.values = discount}};
  append(sales, &(quern_batch){.keys = columns, .num_rows = 5});
  check(quern_job_finalise(sums, &error), &error);

  quern_output* groups;
  const quern_result* result;
  check(quern_output_create(sums, QUERN_PORT_ROWS, NULL, &groups, &error), &error);
  do {
    check(quern_output_next(groups, &result, &error), &error);
    for (uint64_t i = 0; i < result->num_rows; ++i) {
      const int64_t *group = result->columns[0].values, *sum = result->columns[1].values;
      printf("category %" PRId64 "  %" PRId64 ".%02" PRId64 "\n", group[i], sum[i] / 100, sum[i] % 100);
    }
  } while (result->state == QUERN_RESULT_MORE);
  quern_output_destroy(groups);
  quern_job* const jobs[] = {items, recent, product, sums};
  for (size_t i = 0; i < 4; ++i) quern_job_destroy(jobs[i]);
  return 0;
}
