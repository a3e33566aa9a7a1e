/* SPDX-License-Identifier: Apache-2.0
 * What the rows of a piece and fusing are worth: two pipelines by their spec over random rows, on one thread, with a
 * filter, a map and sums, and with a probe of a table in front of the map. Settings take turns; the fastest round of
 * each counts, without compiling.
 *
 *     build/bin/pipeline_pieces [ROWS] [ROUNDS]     default 6000000 9
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "quern.h"

enum { NUM_PIPELINES = 2, NUM_SETTINGS = 8, NUM_COLUMNS = 5, SHARE_OF_TABLE = 6 };

#define PRODUCTS " out=multiply($0,subtract(1:f64,$1)),multiply(multiply($0,subtract(1:f64,$1)),add(1:f64,$2))"
static const char table_spec[] = "join.inner keys=i64 build=i64 probe=f64,f64,f64";
static const char* const specs[NUM_PIPELINES] = {
    "pipeline in=i32,i64,f64,f64,f64 | filter i32 < 90 [$0] | map in=f64,f64,f64" PRODUCTS
    " [$2, $3, $4] | aggregate keys=i32 aggs=sum(f64),sum(f64),sum(f64),count_star [$0; $2, $5, $6]",
    "pipeline in=i32,i64,f64,f64,f64 | filter i32 < 50 [$0]"
    " | probe join.inner keys=i64 build=i64 probe=f64,f64,f64 [$1; $2, $3, $4] | map in=f64,f64,f64" PRODUCTS
    " [$0, $1, $2] | aggregate keys=i64 aggs=sum(f64),sum(f64),count_star [$3; $4, $5]",
};
static const char* const settings[NUM_SETTINGS] = {"fuse=auto",        "fuse=off",        "piece_rows=256",
                                                   "piece_rows=1024",  "piece_rows=4096", "piece_rows=8192",
                                                   "piece_rows=32768", "piece_rows=65536"};

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void append(quern_job* job, quern_port port, const quern_batch* batch) {
  quern_input* input;
  CHECK(quern_input_create(job, port, NULL, &input, &error));
  CHECK(quern_input_append(input, batch, &error));
  CHECK(quern_input_finish(input, &error));
  quern_input_destroy(input);
  CHECK(quern_job_finalise(job, &error));
}

static void* allocated(size_t num_rows, size_t bytes) {
  void* const values = malloc(num_rows * bytes);
  if (values != NULL) return values;
  fprintf(stderr, "no memory for %zu rows\n", num_rows);
  exit(1);
}

static double run(int pipeline, const char* params, quern_job* table, const quern_batch* rows) {
  const quern_job_options options = {
      .struct_size = sizeof(options), .tables = &table, .num_tables = pipeline == 0 ? 0 : 1};
  quern_kernel* kernel;
  quern_job* job;
  CHECK(quern_compile(specs[pipeline], QUERN_ENGINE_JIT, params, &kernel, &error));
  CHECK(quern_job_create(kernel, &options, &job, &error));
  const double begin = now_ms();
  append(job, QUERN_PORT_ROWS, rows);
  const double taken = now_ms() - begin;
  quern_job_destroy(job);
  quern_kernel_destroy(kernel);
  return taken;
}

int main(int argc, char** argv) {
  const long num_rows = argc > 1 ? atol(argv[1]) : 6000000, rounds = argc > 2 ? atol(argv[2]) : 9;
  if (num_rows < SHARE_OF_TABLE || rounds < 1) return fputs("usage: pipeline_pieces [ROWS] [ROUNDS]\n", stderr), 2;
  const size_t n = (size_t)num_rows, table_rows = n / SHARE_OF_TABLE;
  int32_t* const day = allocated(n, sizeof(*day));
  int64_t *const item = allocated(n, sizeof(*item)), *const number = allocated(table_rows, sizeof(*number)),
                 *const group = allocated(table_rows, sizeof(*group));
  double* const amounts[3] = {allocated(n, sizeof(double)), allocated(n, sizeof(double)), allocated(n, sizeof(double))};
  uint64_t random = 1;
  for (size_t i = 0; i < n; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    day[i] = (int32_t)(random >> 33) % 100;
    item[i] = (int64_t)((random >> 20) % (table_rows + table_rows / 5 + 1));
    for (int a = 0; a < 3; ++a) amounts[a][i] = 1.0 + (double)((random >> (20 + 8 * a)) % 100) / 100.0;
  }
  for (size_t i = 0; i < table_rows; ++i) number[i] = (int64_t)i, group[i] = (int64_t)(i % 100);

  quern_kernel* kernel;
  quern_job* table;
  CHECK(quern_compile(table_spec, QUERN_ENGINE_JIT, NULL, &kernel, &error));
  CHECK(quern_job_create(kernel, NULL, &table, &error));
  quern_kernel_destroy(kernel);
  const quern_column key = {.values = number}, payload = {.values = group};
  append(table, QUERN_PORT_BUILD, &(quern_batch){.keys = &key, .payload = &payload, .num_rows = table_rows});

  const quern_column columns[NUM_COLUMNS] = {
      {.values = day}, {.values = item}, {.values = amounts[0]}, {.values = amounts[1]}, {.values = amounts[2]}};
  const quern_batch rows = {.keys = columns, .num_rows = n};
  double best[NUM_PIPELINES][NUM_SETTINGS];
  for (long round = 0; round < rounds; ++round) {
    for (int p = 0; p < NUM_PIPELINES; ++p) {
      for (int s = 0; s < NUM_SETTINGS; ++s) {
        const double taken = run(p, settings[s], table, &rows);
        if (round == 0 || taken < best[p][s]) best[p][s] = taken;
      }
    }
  }
  printf("ms for %ld rows, best of %ld rounds, one thread; piece_rows=16384 and fuse=auto unless said otherwise\n\n",
         num_rows, rounds);
  printf("%-18s%12s%12s\n", "", "map, sums", "with probe");
  for (int s = 0; s < NUM_SETTINGS; ++s) printf("%-18s%12.1f%12.1f\n", settings[s], best[0][s], best[1][s]);
  quern_job_destroy(table);
  for (int a = 0; a < 3; ++a) free(amounts[a]);
  free(group);
  free(number);
  free(item);
  free(day);
  return 0;
}
