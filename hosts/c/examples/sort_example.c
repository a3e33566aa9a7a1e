/* SPDX-License-Identifier: Apache-2.0
 * The four most expensive of six parts; parts of equal price are sorted by name. (example.c explains every step.)
 */
#include <inttypes.h>
#include <stdio.h>

#include "quern.h"

static const double part_price[] = {10.5, 20.25, 30.0, 20.25, 5.0, 20.25};
static const char part_name[] = "boltnutgearcogcampin";
static const int32_t part_name_offsets[] = {0, 4, 7, 11, 14, 17, 20};

static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      goto done;                                                                           \
    }                                                                                      \
  } while (0)

static void print_rows(const quern_result* result) {
  /* Columns: the keys flagged `out`, then payload, in the order of the spec. */
  const double* price = result->columns[0].values;
  const char* name = result->columns[1].values;
  const int32_t* offsets = result->columns[1].offsets;
  const uint64_t* part = result->columns[2].values;
  for (uint64_t i = 0; i < result->num_rows; ++i)
    printf("%" PRIu64 ". %.2f  %.*s  (row %" PRIu64 ")\n", result->position + i + 1, price[i],
           (int)(offsets[i + 1] - offsets[i]), name + offsets[i], part[i]);
}

int main(void) {
  int exit_status = 1;
  quern_kernel* kernel = NULL;
  quern_job* sort = NULL;
  quern_input* input = NULL;
  quern_output* sorted = NULL;
  CHECK(
      quern_compile("sort keys=f64:desc:out,utf8:out payload=rowid limit=4", QUERN_ENGINE_AUTO, NULL, &kernel, &error));
  CHECK(quern_job_create(kernel, NULL, &sort, &error));
  const quern_column keys[] = {{.values = part_price}, {.values = part_name, .offsets = part_name_offsets}};
  const quern_column payload[] = {{.values = NULL}}; /* the rowid: first_row_id, first_row_id + 1, .. */
  const quern_batch parts = {.keys = keys, .payload = payload, .num_rows = 6, .first_row_id = 0};
  CHECK(quern_input_create(sort, QUERN_PORT_ROWS, NULL, &input, &error));
  CHECK(quern_input_append(input, &parts, &error)); /* as often as there are batches */
  CHECK(quern_input_finish(input, &error));
  CHECK(quern_job_finalise(sort, &error));

  CHECK(quern_output_create(sort, QUERN_PORT_ROWS, NULL, &sorted, &error));
  const quern_result* result; /* valid until the next call on the output */
  do {
    CHECK(quern_output_next(sorted, &result, &error));
    print_rows(result);
  } while (result->state != QUERN_RESULT_DONE);
  exit_status = 0;
done: /* in any order; NULL is fine */
  quern_output_destroy(sorted);
  quern_input_destroy(input);
  quern_job_destroy(sort);
  quern_kernel_destroy(kernel);
  return exit_status;
}
