/* SPDX-License-Identifier: Apache-2.0
 * Six line items grouped by order: their number, the sum of their quantities, their highest price. (example.c explains
 * every step.)
 */
#include <inttypes.h>
#include <stdio.h>

#include "quern.h"

static const int64_t item_order[] = {101, 102, 101, 103, 102, 101};
static const int64_t item_quantity[] = {5, 7, 1, 3, 2, 4};
static const double item_price[] = {10.5, 20.25, 30.0, 40.75, 5.0, 12.0};

static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      goto done;                                                                           \
    }                                                                                      \
  } while (0)

static void print_groups(const quern_result* result) {
  /* Columns: keys first, then one for each aggregate, in the order of the spec. */
  const int64_t* order = result->columns[0].values;
  const int64_t *count = result->columns[1].values, *quantity = result->columns[2].values;
  const double* price = result->columns[3].values;
  for (uint64_t i = 0; i < result->num_rows; ++i)
    printf("order %" PRId64 "  items %" PRId64 "  quantity %" PRId64 "  price %.2f\n", order[i], count[i], quantity[i],
           price[i]);
}

int main(void) {
  int exit_status = 1;
  quern_kernel* kernel = NULL;
  quern_job* aggregation = NULL;
  quern_input* input = NULL;
  quern_output* groups = NULL;
  CHECK(
      quern_compile("aggregate keys=i64 aggs=count_star,sum(i64),max(f64)", QUERN_ENGINE_AUTO, NULL, &kernel, &error));
  CHECK(quern_job_create(kernel, NULL, &aggregation, &error));

  /* Payload: the arguments of the aggregates in order; count_star has none. Nothing of a batch is kept. */
  const quern_column keys[] = {{.values = item_order}};
  const quern_column arguments[] = {{.values = item_quantity}, {.values = item_price}};
  const quern_batch items = {.keys = keys, .payload = arguments, .num_rows = 6};
  CHECK(quern_input_create(aggregation, QUERN_PORT_ROWS, NULL, &input, &error));
  CHECK(quern_input_append(input, &items, &error)); /* as often as there are batches */
  CHECK(quern_input_finish(input, &error));
  CHECK(quern_job_finalise(aggregation, &error));

  CHECK(quern_output_create(aggregation, QUERN_PORT_ROWS, NULL, &groups, &error));
  const quern_result* result; /* valid until the next call on the output; groups come in no order */
  do {
    CHECK(quern_output_next(groups, &result, &error));
    print_groups(result);
  } while (result->state != QUERN_RESULT_DONE);
  exit_status = 0;
done: /* in any order; NULL is fine */
  quern_output_destroy(groups);
  quern_input_destroy(input);
  quern_job_destroy(aggregation);
  quern_kernel_destroy(kernel);
  return exit_status;
}
