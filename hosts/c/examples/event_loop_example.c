/* SPDX-License-Identifier: Apache-2.0
 * A host with an event loop and two worker threads, as servers have them. No thread ever waits inside Quern: each call
 * does a bounded piece of one query, and then the worker turns to whatever query is next. Three queries run at once:
 *
 *     groups     aggregate keys=i64 aggs=sum(i64)    4 M rows, 1000 groups
 *     order      sort keys=i64:out                   2 M rows
 *     endless    the first query over rows that never end; its client goes away, and the loop cancels it
 *
 * A query has two lanes, so that both workers can serve it. A lane is in the queue, in a worker's hands, or parked:
 *
 *     append ── no rows left ─> parked ── the last lane has finished ─> work ─> read ─> the loop hears of it
 *                                            QUERN_WORK_BUSY: parked, until another lane's piece is done, which may
 *                                            have been before this lane was parked
 *
 *     cc -std=c11 event_loop_example.c -Ihosts/c -Lbuild/lib -lquern -Wl,-rpath,build/lib -pthread -o loop && ./loop
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "quern.h"

enum { WORKERS = 2, LANES = 2, QUERIES = 3, MORSEL_ROWS = 8192, QUEUE_SIZE = QUERIES * LANES + WORKERS };

enum phase { APPEND, WORK, READ, ENDED };

struct query;
struct lane {
  struct query* query;
  quern_input* input;
  quern_output* output;
  bool parked; /* under the mutex, like all that lanes share */
  bool waits;  /* parked for another lane's piece of work; otherwise for the end of the phase */
};

struct query {
  const char* name;
  const char* spec;
  uint64_t num_rows;
  quern_kernel* kernel;
  quern_job* job;
  struct lane lanes[LANES];
  enum phase phase;
  uint64_t next_row;
  int num_active;    /* lanes that have not reached the end of the phase */
  uint64_t num_done; /* pieces of work */
  uint64_t rows_out; /* what came out, and the sum of the last column */
  int64_t sum;
  quern_status failure; /* the first */
  char text[1020];
};

static struct query queries[QUERIES] = {
    {.name = "groups", .spec = "aggregate keys=i64 aggs=sum(i64)", .num_rows = 4000000},
    {.name = "order", .spec = "sort keys=i64:out", .num_rows = 2000000},
    {.name = "endless", .spec = "aggregate keys=i64 aggs=sum(i64)", .num_rows = UINT64_MAX},
};

/* ---- the queue, and the pipe by which workers tell the loop that a query has ended ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER; /* idle workers wait here, outside of Quern */
static struct lane* queue[QUEUE_SIZE];                      /* NULL sends a worker home */
static int queue_begin, queue_length;
static int events[2];

static void enqueue(struct lane* lane) {
  queue[(queue_begin + queue_length++) % QUEUE_SIZE] = lane;
  pthread_cond_signal(&not_empty);
}

/* all: also those that have reached the end of the phase. */
static void wake(struct query* query, bool all) {
  for (int i = 0; i < LANES; ++i) {
    struct lane* lane = &query->lanes[i];
    if (!lane->parked || !(all || lane->waits)) continue;
    lane->parked = lane->waits = false;
    enqueue(lane);
  }
}

/* ---- pieces: each is one call of Quern, or two; their own data are touched by no other thread ---- */

/* Appends a morsel; *more is false after the last one. */
static quern_status append_piece(struct lane* lane, uint64_t first, uint64_t num_rows, bool* more, quern_error* error) {
  static _Thread_local int64_t keys[MORSEL_ROWS], values[MORSEL_ROWS];
  *more = num_rows != 0;
  if (!*more) return quern_input_finish(lane->input, error);
  for (uint64_t i = 0; i < num_rows; ++i) {
    const uint64_t row = first + i;
    keys[i] = (int64_t)(lane->query->spec[0] == 's' ? row * 7919 % 2000000 : row % 1000);
    values[i] = (int64_t)(row % 10);
  }
  const quern_column key = {.values = keys}, value = {.values = values};
  const quern_batch batch = {.keys = &key, .payload = &value, .num_rows = num_rows};
  return quern_input_append(lane->input, &batch, error);
}

static quern_status read_piece(struct lane* lane, uint64_t* num_rows, int64_t* sum, bool* more, quern_error* error) {
  const quern_output_options options = {.struct_size = sizeof options, .batch_rows = MORSEL_ROWS};
  quern_status status = QUERN_OK;
  if (lane->output == NULL)
    status = quern_output_create(lane->query->job, QUERN_PORT_ROWS, &options, &lane->output, error);
  const quern_result* result;
  if (status == QUERN_OK) status = quern_output_next(lane->output, &result, error);
  if (status != QUERN_OK) return status;
  *more = result->state == QUERN_RESULT_MORE;
  *num_rows = result->num_rows;
  const int64_t* last = result->columns[result->num_columns - 1].values;
  for (uint64_t i = 0; i < result->num_rows; ++i) *sum += last[i];
  return QUERN_OK;
}

/* ---- lanes ---- */

/* The lane has reached the end of its phase; the last one begins the next. With the mutex. */
static void end_phase(struct lane* lane) {
  struct query* query = lane->query;
  lane->parked = true;
  if (--query->num_active != 0) return;
  ++query->phase;
  query->num_active = LANES;
  if (query->phase != ENDED) {
    wake(query, true);
  } else {
    const char number = (char)(query - queries);
    if (write(events[1], &number, 1) != 1) abort();
  }
}

static void run_piece(struct lane* lane) {
  struct query* query = lane->query;
  pthread_mutex_lock(&mutex);
  const enum phase phase = query->failure == QUERN_OK ? query->phase : ENDED;
  const uint64_t first = query->next_row, left = query->num_rows - first;
  const uint64_t num_morsel = left < MORSEL_ROWS ? left : MORSEL_ROWS, num_done = query->num_done;
  if (phase == APPEND) query->next_row += num_morsel;
  pthread_mutex_unlock(&mutex);

  quern_error error;
  quern_status status = QUERN_OK;
  quern_work_state work = QUERN_WORK_MORE;
  uint64_t num_rows = 0;
  int64_t sum = 0;
  bool more = false;
  if (phase == APPEND) status = append_piece(lane, first, num_morsel, &more, &error);
  if (phase == WORK) status = quern_job_work(query->job, &work, &error);
  if (phase == READ) status = read_piece(lane, &num_rows, &sum, &more, &error);
  if (phase == WORK) more = work != QUERN_WORK_DONE;

  pthread_mutex_lock(&mutex);
  query->rows_out += num_rows;
  query->sum += sum;
  if (status != QUERN_OK && query->failure == QUERN_OK) {
    query->failure = status; /* every lane ends the query's last phase, whatever it was doing */
    strcpy(query->text, error.text);
    query->phase = READ;
    query->num_active = LANES;
    wake(query, true);
  }
  if (phase == WORK && work != QUERN_WORK_BUSY) {
    ++query->num_done;
    wake(query, false);
  }
  if (query->failure != QUERN_OK || !more) {
    end_phase(lane);
  } else if (phase == WORK && work == QUERN_WORK_BUSY && query->num_done == num_done) {
    lane->parked = lane->waits = true;
  } else {
    enqueue(lane);
  }
  pthread_mutex_unlock(&mutex);
}

static void* worker(void* unused) {
  (void)unused;
  while (true) {
    pthread_mutex_lock(&mutex);
    while (queue_length == 0) pthread_cond_wait(&not_empty, &mutex);
    struct lane* lane = queue[queue_begin];
    queue_begin = (queue_begin + 1) % QUEUE_SIZE;
    --queue_length;
    pthread_mutex_unlock(&mutex);
    if (lane == NULL) return NULL;
    run_piece(lane);
  }
}

/* ---- the loop ---- */

static bool start(struct query* query) {
  quern_error error;
  quern_status status = quern_compile(query->spec, QUERN_ENGINE_AUTO, NULL, &query->kernel, &error);
  if (status == QUERN_OK) status = quern_job_create(query->kernel, NULL, &query->job, &error);
  for (int i = 0; i < LANES && status == QUERN_OK; ++i) {
    query->lanes[i].query = query;
    status = quern_input_create(query->job, QUERN_PORT_ROWS, NULL, &query->lanes[i].input, &error);
  }
  if (status != QUERN_OK) {
    fprintf(stderr, "quern error %d: %s\n", (int)status, error.text);
    return false;
  }
  pthread_mutex_lock(&mutex);
  query->num_active = LANES;
  for (int i = 0; i < LANES; ++i) enqueue(&query->lanes[i]);
  pthread_mutex_unlock(&mutex);
  return true;
}

static void end(struct query* query) {
  for (int i = 0; i < LANES; ++i) {
    quern_input_destroy(query->lanes[i].input);
    quern_output_destroy(query->lanes[i].output);
  }
  quern_job_destroy(query->job);
  quern_kernel_destroy(query->kernel);
}

int main(void) {
  pthread_t workers[WORKERS];
  int num_started = 0, exit_status = 1;
  if (pipe(events) != 0) return 1;
  for (; num_started < WORKERS; ++num_started)
    if (pthread_create(&workers[num_started], NULL, worker, NULL) != 0) goto done;
  for (int i = 0; i < QUERIES; ++i)
    if (!start(&queries[i])) goto done;
  for (int num_ended = 0; num_ended < QUERIES;) {
    struct pollfd event = {.fd = events[0], .events = POLLIN};
    char number;
    if (poll(&event, 1, 10) != 1) continue; /* here the loop serves its other clients */
    if (read(events[0], &number, 1) != 1) goto done;
    if (++num_ended == QUERIES - 1) quern_job_cancel(queries[2].job); /* its client has gone away */
  }
  exit_status = 0;
done:
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < num_started; ++i) enqueue(NULL);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < num_started; ++i) pthread_join(workers[i], NULL);
  for (int i = 0; i < QUERIES; ++i) {
    const struct query* query = &queries[i];
    if (query->failure == QUERN_OK)
      printf("%s: %" PRIu64 " rows, sum %" PRId64 "\n", query->name, query->rows_out, query->sum);
    else printf("%s: %s: %s\n", query->name, query->failure == QUERN_CANCELLED ? "cancelled" : "failed", query->text);
    end(&queries[i]);
  }
  return exit_status;
}
