/* SPDX-License-Identifier: Apache-2.0
 * A small query engine on Quern: columns in files, threads and vectors of its own, no Arrow. It runs TPC-H query 3:
 *
 *     select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
 *     from customer, orders, lineitem
 *     where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
 *       and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
 *     group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10
 *
 * in four pipelines. Each ends where all of its rows must have come before the next can begin; that is where the
 * threads wait.
 *
 *     1  customer ─> filter ─────────────────────> join of customers: build
 *     2  orders   ─> filter ─> customers: probe ─> join of orders: build
 *     3  lineitem ─> filter ─> orders: probe ─> l_extendedprice * (100 - l_discount) ─> groups
 *     4  groups   ─> first ten rows
 *
 * The engine keeps what belongs to an engine: columns, the distribution of rows over threads, expressions, waiting.
 * Quern does everything between two arrows. The result of a filter is a selection vector that the next operator takes
 * as it is; the columns of a result are the input columns of the next operator. (example.c explains every call;
 * docs/embedding.md explains life cycle, threads, memory and errors.)
 *
 *     build/venv/bin/python hosts/c/examples/engine_example_columns.py build/data/tpch-sf0.1 columns
 *     cc -std=c11 engine_example.c -Ihosts/c -Lbuild/lib -lquern -Wl,-rpath,build/lib -pthread -o engine
 *     ./engine columns 2
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "quern.h"

enum { MORSEL_ROWS = 16384, MAX_THREADS = 64 };

/* ---- storage: a column is a file of fixed-width values; a string column is two, offsets and bytes ---- */

struct table {
  const char* name;
  uint64_t num_rows;
  _Atomic uint64_t next_row; /* of the morsels that no thread has taken yet */
};

static struct table customer = {.name = "customer"}, orders = {.name = "orders"}, lineitem = {.name = "lineitem"};
static const int64_t *c_custkey, *o_orderkey, *o_custkey, *l_orderkey, *l_extendedprice,
    *l_discount; /* prices in cents, discounts in percent */
static const int32_t *c_mktsegment_offsets, *o_orderdate, *o_shippriority,
    *l_shipdate; /* dates in days since 1970-01-01 */
static const char* c_mktsegment;

/* Maps FOLDER/TABLE.COLUMN for the life of the process. The number of rows is that of the file, or must equal it:
 * `extra` is 1 for offsets. */
static bool map_column(const char* folder, struct table* table, const char* column, size_t value_bytes, uint64_t extra,
                       const void** values) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s", folder, table->name, column);
  const int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0 || status.st_size == 0) {
    fprintf(stderr, "cannot read column: %s; expected: a file as engine_example_columns.py writes it\n", path);
    if (file >= 0) close(file);
    return false;
  }
  *values = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  const uint64_t num_rows = (uint64_t)status.st_size / value_bytes - extra;
  if (value_bytes != 1 && table->num_rows == 0) table->num_rows = num_rows;
  if (*values == MAP_FAILED || (value_bytes != 1 && num_rows != table->num_rows)) {
    fprintf(stderr, "bad column: %s: %" PRIu64 " rows; expected: %" PRIu64 "\n", path, num_rows, table->num_rows);
    return false;
  }
  return true;
}

static bool map_tables(const char* folder) {
  return map_column(folder, &customer, "c_custkey", 8, 0, (const void**)&c_custkey) &&
         map_column(folder, &customer, "c_mktsegment.offsets", 4, 1, (const void**)&c_mktsegment_offsets) &&
         map_column(folder, &customer, "c_mktsegment.bytes", 1, 0, (const void**)&c_mktsegment) &&
         map_column(folder, &orders, "o_orderkey", 8, 0, (const void**)&o_orderkey) &&
         map_column(folder, &orders, "o_custkey", 8, 0, (const void**)&o_custkey) &&
         map_column(folder, &orders, "o_orderdate", 4, 0, (const void**)&o_orderdate) &&
         map_column(folder, &orders, "o_shippriority", 4, 0, (const void**)&o_shippriority) &&
         map_column(folder, &lineitem, "l_orderkey", 8, 0, (const void**)&l_orderkey) &&
         map_column(folder, &lineitem, "l_extendedprice", 8, 0, (const void**)&l_extendedprice) &&
         map_column(folder, &lineitem, "l_discount", 8, 0, (const void**)&l_discount) &&
         map_column(folder, &lineitem, "l_shipdate", 4, 0, (const void**)&l_shipdate);
}

/* The next rows of a table for the calling thread: [*first, *first + result). 0: none are left. */
static uint64_t take_morsel(struct table* table, uint64_t* first) {
  *first = atomic_fetch_add(&table->next_row, MORSEL_ROWS);
  if (*first >= table->num_rows) return 0;
  const uint64_t left = table->num_rows - *first;
  return left < MORSEL_ROWS ? left : MORSEL_ROWS;
}

/* ---- the plan: one kernel and one job for each operator ---- */

/* 9204 is 1995-03-15. The joins return what the next operator needs, the sort its keys (`out`) and payload. */
static const char* const specs[] = {
    "filter utf8 = 'BUILDING'",
    "filter date32 < 9204",
    "filter date32 > 9204",
    "join.semi keys=i64 probe=i64,date32,i32",
    "join.inner keys=i64 build=date32,i32 probe=i64,i64,i64",
    "aggregate keys=i64,date32,i32 aggs=sum(i64)",
    "sort keys=i64:desc:out,date32:out payload=i64,i32 limit=10",
};
enum { CUSTOMERS_FILTER, ORDERS_FILTER, ITEMS_FILTER, CUSTOMERS_JOIN, ORDERS_JOIN, GROUPS, FIRST_ROWS, NUM_STEPS };

static quern_kernel* kernels[NUM_STEPS];
static quern_job* jobs[NUM_STEPS];

/* ---- the threads: all run the same pipelines, each over its own morsels ---- */

static pthread_barrier_t all_here;
static atomic_bool failed;

/* Prints the error, and tells the other threads to stop. */
#define CHECK(call)                                                        \
  do {                                                                     \
    quern_error error_;                                                    \
    if ((call) != QUERN_OK) {                                              \
      fprintf(stderr, "quern error %d: %s\n", error_.status, error_.text); \
      atomic_store(&failed, true);                                         \
      goto done;                                                           \
    }                                                                      \
  } while (0)

/* What a thread has in a pipeline: a source of rows and the input that they go to. */
struct part {
  quern_output* source;
  quern_input* input;
  uint32_t* selection; /* of a morsel */
  int64_t* revenue;    /* of a result */
};

/* Pipeline 1. A selection counts rows of the whole column, so no batch begins in the middle of a string column. */
static void build_customers(struct part* part) {
  uint64_t first, num_rows;
  while (!atomic_load(&failed) && (num_rows = take_morsel(&customer, &first)) != 0) {
    const quern_column segment = {.values = c_mktsegment, .offsets = c_mktsegment_offsets + first};
    quern_batch batch = {.keys = &segment, .num_rows = num_rows};
    CHECK(quern_job_filter(jobs[CUSTOMERS_FILTER], &batch, part->selection, NULL, &batch.num_rows, &error_));
    const quern_column key = {.values = c_custkey + first};
    batch.keys = &key;
    batch.selection = part->selection;
    CHECK(quern_input_append(part->input, &batch, &error_));
  }
done:
  return;
}

/* Pipeline 2. The columns of a result are the input of the next job, which copies their values into its table. */
static void build_orders(struct part* part) {
  uint64_t first, num_rows;
  while (!atomic_load(&failed) && (num_rows = take_morsel(&orders, &first)) != 0) {
    const quern_column date = {.values = o_orderdate + first};
    quern_batch batch = {.keys = &date, .num_rows = num_rows};
    CHECK(quern_job_filter(jobs[ORDERS_FILTER], &batch, part->selection, NULL, &batch.num_rows, &error_));
    const quern_column key = {.values = o_custkey + first};
    const quern_column payload[] = {{.values = o_orderkey + first}, date, {.values = o_shippriority + first}};
    batch.keys = &key;
    batch.payload = payload;
    batch.selection = part->selection;
    CHECK(quern_output_push(part->source, &batch, &error_));
    const quern_result* found;
    do {
      CHECK(quern_output_next(part->source, &found, &error_));
      batch = (quern_batch){.keys = found->columns, .payload = found->columns + 1, .num_rows = found->num_rows};
      CHECK(quern_input_append(part->input, &batch, &error_));
    } while (found->state == QUERN_RESULT_MORE);
  }
done:
  return;
}

/* Pipeline 3. The expression is the engine's: hundredths of cents, so that all sums are exact. */
static void group_items(struct part* part) {
  uint64_t first, num_rows;
  while (!atomic_load(&failed) && (num_rows = take_morsel(&lineitem, &first)) != 0) {
    const quern_column date = {.values = l_shipdate + first};
    quern_batch batch = {.keys = &date, .num_rows = num_rows};
    CHECK(quern_job_filter(jobs[ITEMS_FILTER], &batch, part->selection, NULL, &batch.num_rows, &error_));
    const quern_column payload[] = {
        {.values = l_extendedprice + first}, {.values = l_discount + first}, {.values = l_orderkey + first}};
    batch.keys = &payload[2];
    batch.payload = payload;
    batch.selection = part->selection;
    CHECK(quern_output_push(part->source, &batch, &error_));
    const quern_result* found; /* probe payload: price, discount, orderkey; build payload: date, priority */
    do {
      CHECK(quern_output_next(part->source, &found, &error_));
      const int64_t *price = found->columns[0].values, *discount = found->columns[1].values;
      for (uint64_t i = 0; i < found->num_rows; ++i) part->revenue[i] = price[i] * (100 - discount[i]);
      const quern_column revenue = {.values = part->revenue};
      batch = (quern_batch){.keys = found->columns + 2, .payload = &revenue, .num_rows = found->num_rows};
      CHECK(quern_input_append(part->input, &batch, &error_));
    } while (found->state == QUERN_RESULT_MORE);
  }
done:
  return;
}

/* Pipeline 4: outputs share the groups, each group comes out of one of them. */
static void sort_groups(struct part* part) {
  const quern_result* found; /* keys: orderkey, date, priority; then the sum */
  do {
    CHECK(quern_output_next(part->source, &found, &error_));
    const quern_column keys[] = {found->columns[3], found->columns[1]};
    const quern_column payload[] = {found->columns[0], found->columns[2]};
    const quern_batch batch = {.keys = keys, .payload = payload, .num_rows = found->num_rows};
    CHECK(quern_input_append(part->input, &batch, &error_));
  } while (found->state == QUERN_RESULT_MORE && !atomic_load(&failed));
done:
  return;
}

struct pipeline {
  int source; /* the job whose output it reads, all of whose rows must have come; -1: none */
  quern_port source_port;
  int sink; /* the job that its rows go to */
  quern_port sink_port;
  void (*run)(struct part* part);
};
static const struct pipeline pipelines[] = {
    {-1, QUERN_PORT_ROWS, CUSTOMERS_JOIN, QUERN_PORT_BUILD, build_customers},
    {CUSTOMERS_JOIN, QUERN_PORT_PROBE, ORDERS_JOIN, QUERN_PORT_BUILD, build_orders},
    {ORDERS_JOIN, QUERN_PORT_PROBE, GROUPS, QUERN_PORT_ROWS, group_items},
    {GROUPS, QUERN_PORT_ROWS, FIRST_ROWS, QUERN_PORT_ROWS, sort_groups},
};
enum { NUM_PIPELINES = sizeof pipelines / sizeof pipelines[0] };

/* One thread's part of a pipeline. */
static void run_pipeline(const struct pipeline* pipeline, struct part* part) {
  const quern_output_options options = {.struct_size = sizeof options, .batch_rows = MORSEL_ROWS};
  part->source = NULL;
  part->input = NULL;
  if (pipeline->source >= 0) {
    quern_job* source = jobs[pipeline->source];
    CHECK(quern_job_finalise(source, &error_)); /* all threads together */
    CHECK(quern_output_create(source, pipeline->source_port, &options, &part->source, &error_));
  }
  CHECK(quern_input_create(jobs[pipeline->sink], pipeline->sink_port, NULL, &part->input, &error_));
  pipeline->run(part);
  if (!atomic_load(&failed)) CHECK(quern_input_finish(part->input, &error_));
done:
  quern_input_destroy(part->input);
  quern_output_destroy(part->source);
}

/* One thread's work in all pipelines. A thread that fails waits like the others, and all leave together. */
static void* run_pipelines(void* unused) {
  (void)unused;
  struct part part = {.selection = malloc(MORSEL_ROWS * sizeof *part.selection),
                      .revenue = malloc(MORSEL_ROWS * sizeof *part.revenue)};
  if (part.selection == NULL || part.revenue == NULL) atomic_store(&failed, true);
  for (int i = 0; i < NUM_PIPELINES; ++i) {
    if (!atomic_load(&failed)) run_pipeline(&pipelines[i], &part);
    pthread_barrier_wait(&all_here);
  }
  free(part.selection);
  free(part.revenue);
  return NULL;
}

/* ---- the query ---- */

static bool prepare(void) {
  for (int step = 0; step < NUM_STEPS; ++step) {
    CHECK(quern_compile(specs[step], QUERN_ENGINE_AUTO, NULL, &kernels[step], &error_));
    CHECK(quern_job_create(kernels[step], NULL, &jobs[step], &error_));
  }
  return true;
done:
  return false;
}

static bool print_rows(void) {
  quern_output* sorted = NULL;
  const quern_result* rows; /* the keys: revenue, date; payload: orderkey, priority */
  bool printed = false;
  CHECK(quern_job_finalise(jobs[FIRST_ROWS], &error_));
  CHECK(quern_output_create(jobs[FIRST_ROWS], QUERN_PORT_ROWS, NULL, &sorted, &error_));
  printf("l_orderkey  revenue  o_orderdate  o_shippriority\n");
  do {
    CHECK(quern_output_next(sorted, &rows, &error_));
    for (uint64_t i = 0; i < rows->num_rows; ++i) {
      const int64_t revenue = ((const int64_t*)rows->columns[0].values)[i];
      const time_t seconds = (time_t)((const int32_t*)rows->columns[1].values)[i] * 86400;
      char date[16];
      strftime(date, sizeof date, "%Y-%m-%d", gmtime(&seconds));
      printf("%" PRId64 "  %" PRId64 ".%04" PRId64 "  %s  %" PRId32 "\n", ((const int64_t*)rows->columns[2].values)[i],
             revenue / 10000, revenue % 10000, date, ((const int32_t*)rows->columns[3].values)[i]);
    }
  } while (rows->state != QUERN_RESULT_DONE);
  printed = true;
done:
  quern_output_destroy(sorted);
  return printed;
}

/* Handles are reference-counted: any order is fine, and so is NULL. */
static void destroy_all(void) {
  for (int step = 0; step < NUM_STEPS; ++step) {
    quern_job_destroy(jobs[step]);
    quern_kernel_destroy(kernels[step]);
  }
}

static bool run_threads(unsigned num_threads) {
  pthread_t threads[MAX_THREADS];
  pthread_barrier_init(&all_here, NULL, num_threads);
  for (unsigned i = 1; i < num_threads; ++i) {
    if (pthread_create(&threads[i], NULL, run_pipelines, NULL) != 0) {
      fprintf(stderr, "cannot start thread: number %u; expected: fewer threads\n", i);
      exit(1); /* the running threads wait for one that never comes */
    }
  }
  run_pipelines(NULL);
  for (unsigned i = 1; i < num_threads; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all_here);
  return !atomic_load(&failed);
}

int main(int argc, char** argv) {
  const unsigned num_threads = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
  if (argc < 2 || argc > 3 || num_threads < 1 || num_threads > MAX_THREADS) {
    fprintf(stderr, "usage: engine COLUMNS [THREADS]: a folder of column files; 1 to %d threads\n", MAX_THREADS);
    return 2;
  }
  struct timespec begin, end;
  bool ok = map_tables(argv[1]);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  ok = ok && prepare() && run_threads(num_threads) && print_rows();
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (ok)
    fprintf(stderr, "%.1f ms, %u thread(s)\n",
            (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6, num_threads);
  destroy_all();
  return ok ? 0 : 1;
}
