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
  quern_aggregate* aggregate = NULL;
  quern_groups* groups = NULL;
  CHECK(
      quern_compile("aggregate keys=i64 aggs=count_star,sum(i64),max(f64)", QUERN_ENGINE_AUTO, NULL, &kernel, &error));
  CHECK(quern_aggregate_create(kernel, 0, &aggregate, &error));

  /* Payload: the arguments of the aggregates in order; count_star has none. Nothing of a batch is kept. */
  const quern_column keys[] = {{.values = item_order}};
  const quern_column arguments[] = {{.values = item_quantity}, {.values = item_price}};
  const quern_batch items = {.keys = keys, .payload = arguments, .num_rows = 6};
  CHECK(quern_aggregate_append(aggregate, &items, &error)); /* as often as there are batches */
  CHECK(quern_aggregate_finalise(aggregate, &error));

  CHECK(quern_groups_create(aggregate, QUERN_GROUP_RESULTS, 0, &groups, &error));
  bool more = true;
  while (more) {
    quern_result result; /* valid until the next call on the groups, which come in no order */
    CHECK(quern_groups_next(groups, &result, &more, &error));
    print_groups(&result);
  }
  exit_status = 0;
done: /* in any order; NULL is fine */
  quern_groups_destroy(groups);
  quern_aggregate_destroy(aggregate);
  quern_kernel_destroy(kernel);
  return exit_status;
}
