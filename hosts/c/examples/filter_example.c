/* SPDX-License-Identifier: Apache-2.0
 * Selects those of eight orders that went by rail or ship and have deposits pending. (example.c explains every step.)
 */
#include <inttypes.h>
#include <stdio.h>

#include "quern.h"

static const char mode[] = "RAILSHIPrailAIRShip MAILRAIL";
static const int32_t mode_offsets[] = {0, 4, 8, 12, 15, 20, 24, 28, 28};
static const char comment[] = "pending deposits-please pack-none-pending-all pending deposits--pending big deposits-";
static const int32_t comment_offsets[] = {0, 17, 29, 34, 42, 63, 64, 85, 85};
static const uint8_t mode_validity[] = {0x7F}; /* the last has none */

static quern_error error;
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != QUERN_OK) {                                                              \
      fprintf(stderr, "%s\n  quern error %d: %s\n", #call, (int)error.status, error.text); \
      goto done;                                                                           \
    }                                                                                      \
  } while (0)

int main(void) {
  int exit_status = 1;
  quern_kernel* kernel = NULL;
  quern_job* filter = NULL;
  /* The first column is compared without regard to case and trailing blanks, the second by its bytes. */
  const char* spec = "filter utf8(utf8mb4_general_ci):nullable in ('RAIL', 'SHIP') and utf8 like '%pending%deposits%'";
  CHECK(quern_compile(spec, QUERN_ENGINE_AUTO, NULL, &kernel, &error));
  CHECK(quern_job_create(kernel, NULL, &filter, &error));

  /* The columns in the order in which the condition mentions them. */
  const quern_column columns[] = {{.validity = mode_validity, .values = mode, .offsets = mode_offsets},
                                  {.values = comment, .offsets = comment_offsets}};
  const quern_batch orders = {.keys = columns, .num_rows = 8};
  uint32_t rows[8];
  uint64_t num_rows = 0;
  CHECK(quern_job_filter(filter, &orders, rows, NULL, &num_rows, &error)); /* by any number of threads at once */
  for (uint64_t i = 0; i < num_rows; ++i) printf("row %" PRIu32 "\n", rows[i]);

  uint8_t bitmap[1];
  CHECK(quern_job_filter(filter, &orders, NULL, bitmap, &num_rows, &error));
  printf("bitmap 0x%02x\n", bitmap[0]);
  exit_status = 0;
done: /* in any order; NULL is fine */
  quern_job_destroy(filter);
  quern_kernel_destroy(kernel);
  return exit_status;
}
