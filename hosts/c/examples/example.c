/* SPDX-License-Identifier: Apache-2.0
 * A small engine with vectors of its own joins two of them through Quern: line items find their order by number and
 * region.
 *
 *     cc -std=c11 example.c -Ihosts/c -Lbuild/lib -lquern -Wl,-rpath,build/lib -o example
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "quern.h"

/* Orders, the build side, in three columns: numbers; strings as bytes and offsets, with a bitmap of the rows that have
 * one (bit i is row i: the third order has no region); and a price, which is copied into the table. */
static const int64_t order_number[] = {101, 102, 103, 104};
static const char order_region[] = "ASIAEUROPEASIA";
static const int32_t order_region_offsets[] = {0, 4, 10, 10, 14};
static const uint8_t order_region_valid[] = {0x0b}; /* 1011 in binary */
static const double order_price[] = {10.5, 20.25, 30.0, 40.75};

/* Line items, the probe side. Region is padded here; utf8mb4_bin does not see trailing spaces. A filter ran before the
 * join and left a selection vector: row 3 is out. */
static const int64_t item_order[] = {101, 102, 103, 104, 101, 102};
static const char item_region[] = "ASIA  EUROPEASIAASIAASIAASIA";
static const int32_t item_region_offsets[] = {0, 6, 12, 16, 20, 24, 28};
static const char* const item_part[] = {"bolt", "nut", "gear", "cog", "cam", "pin"};
static const uint32_t item_selection[] = {0, 1, 2, 4, 5};

/* Every call that can fail returns a status; the text says what is wrong and what is accepted. */
static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      goto done;                                                                           \
    }                                                                                      \
  } while (0)

/* The spec says what the kernel computes, not how. There are two keys, of which the second may be null (and then
 * matches nothing). The build side adds the price and the row's number, the probe side only the row's number, with
 * which a host gathers its own columns. */
static const char spec[] = "join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,rowid probe=rowid";

static void print_rows(const quern_result* result) {
  /* Columns: probe payload first, then build payload, in the order of the spec. */
  const uint64_t* item_row = result->columns[0].values;
  const double* price = result->columns[1].values;
  const uint64_t* order_row = result->columns[2].values;
  for (uint64_t i = 0; i < result->num_rows; ++i) {
    printf("item %" PRIu64 " (%s)  order %" PRId64 "  price %.2f\n", item_row[i], item_part[item_row[i]],
           order_number[order_row[i]], price[i]);
  }
}

int main(void) {
  int exit_status = 1;
  quern_kernel* kernel = NULL;
  quern_job* join = NULL;
  quern_input* build = NULL;
  quern_output* probe = NULL;

  /* Returns at once. When enough rows have come for compilation to pay off, machine code for this spec and machine
   * takes over. */
  CHECK(quern_compile(spec, QUERN_ENGINE_AUTO, NULL, &kernel, &error));
  const char* plan = quern_kernel_text(kernel, "plan");
  printf("%.*s\n", (int)strcspn(plan, "\n"), plan);

  /* Build side: columns are pointers into the host's vectors. The regions' bytes stay where they are (an option of the
   * input copies them), so they must outlive the join. The rowid column has no data: its values are first_row_id,
   * first_row_id + 1, .. One input for each thread. */
  const quern_column build_keys[] = {
      {.values = order_number},
      {.values = order_region, .offsets = order_region_offsets, .validity = order_region_valid},
  };
  const quern_column build_payload[] = {{.values = order_price}, {.values = NULL}};
  const quern_batch orders = {.keys = build_keys, .payload = build_payload, .num_rows = 4, .first_row_id = 0};
  CHECK(quern_job_create(kernel, NULL, &join, &error)); /* NULL: default options, such as no memory limit */
  CHECK(quern_input_create(join, QUERN_PORT_BUILD, NULL, &build, &error));
  CHECK(quern_input_append(build, &orders, &error)); /* as often as there are batches */
  CHECK(quern_input_finish(build, &error));
  CHECK(quern_job_finalise(join, &error)); /* by any number of threads */

  /* Probe side: one output for each thread. */
  const quern_column probe_keys[] = {
      {.values = item_order},
      {.values = item_region, .offsets = item_region_offsets},
  };
  const quern_column probe_payload[] = {{.values = NULL}};
  const quern_batch items = {
      .keys = probe_keys, .payload = probe_payload, .selection = item_selection, .num_rows = 5, .first_row_id = 0};
  const quern_output_options two_rows = {.struct_size = sizeof two_rows, .batch_rows = 2}; /* to show the loop */
  CHECK(quern_output_create(join, QUERN_PORT_PROBE, &two_rows, &probe, &error));
  CHECK(quern_output_push(probe, &items, &error)); /* as often as there are batches */
  const quern_result* result;                      /* valid until the next call on the output */
  do {
    CHECK(quern_output_next(probe, &result, &error));
    print_rows(result);
  } while (result->state == QUERN_RESULT_MORE); /* then it needs the next batch */

  quern_job_stats stats = {.struct_size = sizeof stats};
  quern_job_get_stats(join, &stats);
  printf("%" PRIu64 " orders, %" PRIu64 " in the table\n", stats.input_rows, stats.num_rows);
  exit_status = 0;

done: /* in any order; NULL is fine */
  quern_kernel_destroy(kernel);
  quern_job_destroy(join);
  quern_input_destroy(build);
  quern_output_destroy(probe);
  return exit_status;
}
