/* SPDX-License-Identifier: Apache-2.0
 * A pipeline: filter, map and probe of a table in front of an aggregation. It computes
 *
 *     SELECT category, sum(price * (100 - discount)) FROM sales JOIN items USING (item)
 *     WHERE day >= 20 GROUP BY category
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

static quern_job* job_of(const char* spec, quern_job* table) {
  const quern_job_options options = {
      .struct_size = sizeof(options), .tables = &table, .num_tables = table == NULL ? 0 : 1};
  quern_kernel* kernel;
  quern_job* job;
  quern_error error;
  check(quern_compile(spec, QUERN_ENGINE_AUTO, NULL, &kernel, &error), &error);
  check(quern_job_create(kernel, &options, &job, &error), &error);
  quern_kernel_destroy(kernel);
  return job;
}

/* All rows of a table go in: each thread of a host makes an input of its own. */
static void append(quern_job* job, const quern_column* columns, uint64_t num_rows) {
  quern_input* input;
  quern_error error;
  check(quern_input_create(job, QUERN_PORT_ROWS, NULL, &input, &error), &error);
  check(quern_input_append(input, &(quern_batch){.keys = columns, .num_rows = num_rows}, &error), &error);
  check(quern_input_finish(input, &error), &error);
  quern_input_destroy(input);
  check(quern_job_finalise(job, &error), &error);
}

int main(void) {
  const int64_t item[] = {1, 2, 3}, category[] = {10, 10, 20};
  const int64_t sold_item[] = {1, 3, 2, 1, 9}, price[] = {500, 300, 200, 700, 100}, discount[] = {10, 0, 50, 0, 0};
  const int32_t day[] = {21, 20, 25, 19, 30};
  quern_error error;

  /* The table of items. */
  quern_job* items = job_of(
      "pipeline in=i64,i64"
      " | build join.inner keys=i64 build=i64 probe=i64 [$0; $1]",
      NULL);
  append(items, (const quern_column[]){{.values = item}, {.values = category}}, 3);

  /* Columns of a sale: $0 day, $1 item, $2 price, $3 discount in percent; behind the map: $4, price * (100 - discount);
   * behind the probe: $0, that product, and $1, the category. */
  quern_job* sums = job_of(
      "pipeline in=i32,i64,i64,i64"
      " | filter i32 >= 20 [$0]"
      " | map in=i64,i64 out=multiply_checked($0,subtract_checked(100:i64,$1)) [$2, $3]"
      " | probe join.inner keys=i64 build=i64 probe=i64 [$1; $4]"
      " | aggregate keys=i64 aggs=sum(i64) [$1; $0]",
      items);
  const quern_column sales[] = {{.values = day}, {.values = sold_item}, {.values = price}, {.values = discount}};
  append(sums, sales, 5);

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
  quern_job_destroy(sums);
  quern_job_destroy(items);
  return 0;
}
