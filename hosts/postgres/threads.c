/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads beside the backend's own. PostgreSQL's code runs in the backend's thread alone: it reads pages and decides
 * which of their tuples are visible. It pins pages for the others, who find the attributes, compute conditions and
 * expressions, probe the joins on the way, and add the rows to a job, as the backend does with pages that it keeps. So
 * all of them share the tables of joins, and a group or a sort has one job.
 *
 *     backend     reads pages ─┬─> columns ─> condition ─> map ─> joins ─> job
 *     threads                  └─> columns ─> condition ─> map ─> joins ─> job      16 pages at a time
 *
 * Threads call libquern and what is marked so in quern_pg.h, and nothing of PostgreSQL. They work for as long as one
 * source of a node is read: errors of the backend end them (threads_abort) before the pins of their pages are released,
 * and so does its exit (end_with_backend). A thread itself stays for the next node.
 *
 * Morsels of pages: Leis et al., "Morsel-driven parallelism", SIGMOD 2014.
 */
#include "quern_pg.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"

enum {
  kPagesOfMorsel = 16,
  kMorselsOfThread = 2,
  kPagesThatPay = 256,       /* a thread is started for so many */
  kRowsThatPay = 100 * 1000, /* in the work of a job */
  kTuplesOfPage = 60,        /* a guess */
  kMostReturned = 64,        /* to the caller, before threads get no more pages */
  kStackBytes = 2 << 20,     /* kernels need 250 kB */
  kMostWorkers = 64,
  kWaitNs = 5 * 1000 * 1000
};

typedef enum MorselState {
  MORSEL_FREE,
  MORSEL_FULL, /* of pages to read */
  MORSEL_TAKEN,
  MORSEL_READ /* its pages are to be released */
} MorselState;

typedef struct Morsel {
  MorselState state;
  int num_pages;
  ListedPage pages[kPagesOfMorsel];
  bool is_returned[kPagesOfMorsel]; /* to the caller, since it is not read by columns */
  OffsetNumber visible[kPagesOfMorsel][MaxHeapTuplesPerPage];
} Morsel;

/* What one thread does for a node. */
typedef struct Thread {
  Threads* threads;
  int worker; /* that does it; -1: none */
  PageReader* reader;
  Source* source; /* its own, of the pages */
  Pipeline* pipeline;
  quern_input* input;
  int rows;                /* in the columns of the source */
  uint64 passed, left_out; /* rows of pages: by their condition and its ranges */
  RowsEnd end;
  quern_error error;
} Thread;

struct Threads {
  MemoryContext memory; /* of all that is here */
  QuernNode* node;
  List* sources; /* the caller's, that of the pages first; NIL: threads do the work of the job */
  HeapPages* pages;
  int num_threads;
  Thread* each;
  int num_morsels, pages_of_morsel;
  Morsel* morsels;
  ListedPage* returned; /* pages for the caller, whose lists of tuples are in returned_visible */
  OffsetNumber (*returned_visible)[MaxHeapTuplesPerPage];
  int num_returned, total_returned;
  pthread_mutex_t mutex; /* of the states of morsels, `ending` and the ends of threads */
  pthread_cond_t is_full, is_read;
  bool ending;   /* no more morsels come */
  bool stopping; /* nothing matters any more */
};

static bool is_stopping(const Threads* threads) { return __atomic_load_n(&threads->stopping, __ATOMIC_RELAXED); }

/* ---- workers ---- */

/* A thread of the backend, which stays for the next nodes until the backend ends. */
typedef struct Worker {
  pthread_t id;
  sem_t may_begin, has_ended;
  Thread* thread; /* what it does; NULL: nothing */
} Worker;

static Worker workers[kMostWorkers];
static int num_workers;

static void wait_for(sem_t* event) {
  while (sem_wait(event) != 0) {
  }
}

static void run(Thread* thread);

static void* be_worker(void* argument) {
  Worker* worker = argument;

  for (;;) {
    wait_for(&worker->may_begin);
    run(worker->thread);
    sem_post(&worker->has_ended);
  }
  return NULL;
}

/* False where the system refuses one. */
static bool add_worker(void) {
  Worker* worker = &workers[num_workers];
  pthread_attr_t attributes;
  sigset_t all, before;
  bool is_made = false;

  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setstacksize(&attributes, kStackBytes);
    sem_init(&worker->may_begin, 0, 0);
    sem_init(&worker->has_ended, 0, 0);
    /* Signals are the backend's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    is_made = pthread_create(&worker->id, &attributes, be_worker, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
  }
  num_workers += is_made;
  return is_made;
}

/* Has a worker do something; false: there is none. */
static bool start_worker(Thread* thread) {
  int i = 0;

  while (i < num_workers && workers[i].thread != NULL) ++i;
  if (i == num_workers && (i == kMostWorkers || !add_worker())) return false;
  workers[i].thread = thread;
  thread->worker = i;
  sem_post(&workers[i].may_begin);
  return true;
}

static void wait_for_worker(int number) {
  wait_for(&workers[number].has_ended);
  workers[number].thread = NULL;
}

/* ---- in a thread ---- */

QUERN_NORETURN static void give_up(Thread* thread, RowsEnd end) {
  thread->end = end;
  siglongjmp(*node_escape, 1);
}

/* Sends the rows that lie in the columns of the source on their way. */
static void pass_rows(Thread* thread, uint64 rows) {
  Source* source = thread->source;
  const uint32* selection;
  const uint64 n = source_filter(source, rows, &selection);
  RowsEnd end;

  if (!source->failed && n > 0) source_compute(source, n, selection);
  if (source->failed) give_up(thread, ROWS_INEXACT);
  thread->left_out += rows - n;
  if (n == 0) return;
  thread->passed += n;
  end = pipeline_append(thread->pipeline, source, n);
  if (is_stopping(thread->threads)) give_up(thread, ROWS_DONE);
  if (end != ROWS_DONE) give_up(thread, end);
}

static void flush(Thread* thread) {
  Columns* columns = thread->source->columns;
  const int rows = thread->rows;

  thread->rows = 0;
  if (rows == 0) return;
  columns_finish(columns);
  pass_rows(thread, (uint64)rows);
  columns_clear(columns);
}

static void read_morsel(Thread* thread, Morsel* morsel) {
  Columns* columns = thread->source->columns;

  for (int i = 0; i < morsel->num_pages && !is_stopping(thread->threads); ++i) {
    const ListedPage* listed = &morsel->pages[i];
    const char* next = i + 1 < morsel->num_pages ? BufferGetPage(morsel->pages[i + 1].buffer) : NULL;
    const PageKind kind = page_reader_open(thread->reader, BufferGetPage(listed->buffer), i > 0, next, listed);

    morsel->is_returned[i] = kind != PAGE_BY_COLUMNS;
    if (morsel->is_returned[i]) continue;
    thread->left_out += listed->num_visible - page_reader_num_tuples(thread->reader);
    while (!page_reader_at_end(thread->reader)) {
      thread->rows = page_reader_take(thread->reader, columns, thread->rows);
      if (columns_are_full(columns, thread->rows)) flush(thread);
    }
  }
}

/* Waits for a morsel; NULL: there will be none. */
static Morsel* take_morsel(Threads* threads) {
  Morsel* morsel = NULL;

  pthread_mutex_lock(&threads->mutex);
  while (morsel == NULL && !threads->stopping) {
    for (int i = 0; i < threads->num_morsels && morsel == NULL; ++i)
      if (threads->morsels[i].state == MORSEL_FULL) morsel = &threads->morsels[i];
    if (morsel != NULL) morsel->state = MORSEL_TAKEN;
    else if (threads->ending) break;
    else pthread_cond_wait(&threads->is_full, &threads->mutex);
  }
  pthread_mutex_unlock(&threads->mutex);
  return morsel;
}

static void read_pages(Thread* thread) {
  Threads* threads = thread->threads;
  Morsel* morsel;

  while ((morsel = take_morsel(threads)) != NULL) {
    read_morsel(thread, morsel);
    pthread_mutex_lock(&threads->mutex);
    morsel->state = MORSEL_READ;
    pthread_cond_signal(&threads->is_read);
    pthread_mutex_unlock(&threads->mutex);
  }
  if (is_stopping(threads)) return;
  flush(thread);
  pipeline_finish(thread->pipeline);
  QUERN_CALL(quern_input_finish(thread->input, quern_last_error));
}

static void work(Thread* thread) {
  quern_work_state state = QUERN_WORK_MORE;

  while (state != QUERN_WORK_DONE && !is_stopping(thread->threads)) {
    QUERN_CALL(quern_job_work(thread->threads->node->job, &state, quern_last_error));
    if (state == QUERN_WORK_BUSY) {
      const struct timespec pause = {.tv_nsec = QUERN_BUSY_US * 1000};

      nanosleep(&pause, NULL);
    }
  }
}

static void stop(Threads* threads) {
  pthread_mutex_lock(&threads->mutex);
  __atomic_store_n(&threads->stopping, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&threads->is_full);
  pthread_cond_broadcast(&threads->is_read);
  pthread_mutex_unlock(&threads->mutex);
}

static void run(Thread* thread) {
  sigjmp_buf escape;

  node_escape = &escape;
  quern_last_error = &thread->error;
  thread->end = ROWS_FAILED;
  if (sigsetjmp(escape, 0) == 0) {
    if (thread->threads->sources != NIL) read_pages(thread);
    else work(thread);
    thread->end = ROWS_DONE;
  }
  if (thread->end != ROWS_DONE) stop(thread->threads);
  node_escape = NULL;
}

/* ---- beginning and end ---- */

static void stop_and_close(Threads* threads);

/* Called when the backend exits while threads are at work, before its transaction is aborted: the last callback to be
 * registered comes first. An open handle would keep its job, and the threads that read and write files for it. */
static void end_with_backend(int code, Datum threads) { stop_and_close((Threads*)DatumGetPointer(threads)); }

/* Makes threads and their memory, which becomes the current one. A node may have them once for each rescan. */
static Threads* create(QuernNode* node, int num_threads) {
  MemoryContext memory =
      AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt, "Quern threads", ALLOCSET_DEFAULT_SIZES);
  Threads* threads = MemoryContextAllocZero(memory, sizeof(Threads));

  MemoryContextSwitchTo(memory);
  threads->memory = memory;
  threads->node = node;
  threads->num_threads = num_threads;
  threads->each = palloc0(sizeof(Thread) * num_threads);
  for (int i = 0; i < num_threads; ++i) {
    threads->each[i].threads = threads;
    threads->each[i].worker = -1;
  }
  pthread_mutex_init(&threads->mutex, NULL);
  pthread_cond_init(&threads->is_full, NULL);
  pthread_cond_init(&threads->is_read, NULL);
  node->threads = threads;
  before_shmem_exit(end_with_backend, PointerGetDatum(threads));
  return threads;
}

static void join_threads(Threads* threads) {
  for (int i = 0; i < threads->num_threads; ++i) {
    Thread* thread = &threads->each[i];

    if (thread->worker >= 0) wait_for_worker(thread->worker);
    thread->worker = -1;
  }
}

/* Closes what the threads have opened. What they probe is at its end then. */
static void close_handles(Threads* threads) {
  for (int i = 0; i < threads->num_threads; ++i) {
    Thread* thread = &threads->each[i];

    quern_input_destroy(thread->input);
    thread->input = NULL;
    if (thread->pipeline != NULL) pipeline_close(thread->pipeline);
    if (thread->source != NULL) source_release_of_thread(thread->source);
  }
}

static void stop_and_close(Threads* threads) {
  stop(threads);
  join_threads(threads);
  close_handles(threads);
  if (threads->pages != NULL) heap_pages_share(threads->pages, NULL);
}

static void forget(Threads* threads) {
  cancel_before_shmem_exit(end_with_backend, PointerGetDatum(threads));
  threads->node->threads = NULL;
  list_free(threads->sources);
  pthread_cond_destroy(&threads->is_read);
  pthread_cond_destroy(&threads->is_full);
  pthread_mutex_destroy(&threads->mutex);
  MemoryContextDelete(threads->memory);
}

/* For EXPLAIN ANALYZE. */
static void count_rows(const Threads* threads) {
  const PlanState* scan = threads->sources != NIL ? ((const Source*)linitial(threads->sources))->child : NULL;

  for (int i = 0; i < threads->num_threads && scan != NULL; ++i) {
    const Thread* thread = &threads->each[i];

    if (scan->instrument != NULL) InstrUpdateTupleCount(scan->instrument, (double)thread->passed);
    InstrCountFiltered1(scan, (double)thread->left_out);
    pipeline_count_rows(thread->pipeline);
  }
}

/* Once a call has failed, those of other threads fail since it has. */
static void keep_first_error(const quern_error* error) {
  if (quern_last_error->status == QUERN_OK || quern_last_error->status == QUERN_FAILED_PRECONDITION)
    *quern_last_error = *error;
}

RowsEnd threads_end(QuernNode* node, uint64* rows) {
  Threads* threads = node->threads;
  RowsEnd end = ROWS_DONE;

  *rows = 0;
  if (threads == NULL) return ROWS_DONE;
  stop_and_close(threads);
  for (int i = 0; i < threads->num_threads; ++i) {
    const Thread* thread = &threads->each[i];

    if (thread->pipeline != NULL) *rows += pipeline_added(thread->pipeline);
    if (thread->end == ROWS_DONE || end == ROWS_INEXACT) continue;
    end = thread->end;
    if (end == ROWS_FAILED) keep_first_error(&thread->error);
  }
  for (int i = 0; i < threads->num_morsels; ++i)
    for (int k = 0; k < threads->morsels[i].num_pages; ++k) ReleaseBuffer(threads->morsels[i].pages[k].buffer);
  while (threads->num_returned > 0) ReleaseBuffer(threads->returned[--threads->num_returned].buffer);
  count_rows(threads);
  forget(threads);
  return end;
}

void threads_abort(QuernNode* node) {
  if (node->threads == NULL) return;
  stop_and_close(node->threads);
  forget(node->threads);
}

bool threads_have_failed(Threads* threads) { return is_stopping(threads); }

/* ---- starting ---- */

/* The threads beside this one that pay for `rows` rows. */
static int threads_that_pay(const QuernNode* node, double rows) {
  if (node->plan->threads <= 1) return 0;
  if (quern_enabled == QUERN_FORCE) return node->plan->threads - 1;
  return (int)quern_advise_threads(node->kernel, (uint64)Max(rows, 0), (uint32)node->plan->threads, NULL, 0, NULL) - 1;
}

/* The sources that rows pass from the pages of a table to `top`, in this order; NIL: they come from elsewhere. */
static List* find_sources(Source* top) {
  List* sources = pipeline_sources(top);

  if (((const Source*)linitial(sources))->pages != NULL) return sources;
  list_free(sources);
  return NIL;
}

static void open_thread(Thread* thread, quern_port port) {
  const quern_input_options options = {.struct_size = sizeof(options), .copy_bytes = true};
  const Threads* threads = thread->threads;
  const Source* source = linitial(threads->sources);

  thread->reader = page_reader_create(source);
  thread->source = source_create_for_thread(source);
  source_open_for_thread(thread->source, source);
  QUERN_CALL(quern_input_create(threads->node->job, port, &options, &thread->input, quern_last_error));
  thread->pipeline = pipeline_create(threads->node, threads->sources, threads->num_threads + 1, &threads->stopping);
  pipeline_open(thread->pipeline, threads->sources, thread->input);
}

/* How many pages one backend may pin: its share of the shared buffers, as later versions of PostgreSQL count it. */
static int most_pins(void) { return NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS); }

/* Starts them, as far as the system lets it. */
static void start_all(Threads* threads) {
  QuernNode* node = threads->node;
  uint64 rows;
  int n = 0;

  while (n < threads->num_threads && start_worker(&threads->each[n])) ++n;
  node->num_threads = Max(node->num_threads, n + 1);
  if (n == 0) threads_end(node, &rows);
}

/* How many threads pay for the pages that are left of a scan, and may pin some of them. */
static int threads_for_pages(const QuernNode* node, const HeapPages* pages) {
  const double left = heap_pages_left(pages);
  const double most = quern_enabled == QUERN_FORCE ? left : left / kPagesThatPay;
  /* Tuples that a condition leaves out are work, too. */
  const int n = threads_that_pay(node, Max(node->plan->input_rows, left * kTuplesOfPage));

  return Min((int)Min(n, most), most_pins() / kMorselsOfThread);
}

void threads_start(QuernNode* node, Source* source, quern_port port) {
  List* sources = node->plan->threads > 1 ? find_sources(source) : NIL;
  HeapPages* pages = sources != NIL ? ((const Source*)linitial(sources))->pages : NULL;
  const int n = pages != NULL ? threads_for_pages(node, pages) : 0;
  const MemoryContext before = CurrentMemoryContext;
  Threads* threads;
  int most_returned;

  if (n <= 0) {
    list_free(sources);
    return;
  }
  threads = create(node, n);
  threads->sources = sources;
  threads->num_morsels = n * kMorselsOfThread;
  threads->pages_of_morsel = Min(kPagesOfMorsel, most_pins() / threads->num_morsels);
  threads->morsels = palloc0(sizeof(Morsel) * threads->num_morsels);
  most_returned = threads->num_morsels * threads->pages_of_morsel;
  threads->returned = palloc(sizeof(ListedPage) * most_returned);
  threads->returned_visible = palloc(sizeof(*threads->returned_visible) * most_returned);
  for (int i = 0; i < n; ++i) open_thread(&threads->each[i], port);
  MemoryContextSwitchTo(before);
  threads->pages = pages;
  heap_pages_share(pages, threads);
  start_all(threads);
}

void threads_start_work(QuernNode* node) {
  const double rows = (double)node->built_rows;
  const int n = rows >= kRowsThatPay || quern_enabled == QUERN_FORCE ? threads_that_pay(node, rows) : 0;
  const MemoryContext before = CurrentMemoryContext;

  if (n <= 0) return;
  start_all(create(node, n));
  MemoryContextSwitchTo(before);
}

/* ---- pages ---- */

/* Keeps the pages of a morsel that its thread has returned, and releases the others. */
static void empty_morsel(Threads* threads, Morsel* morsel) {
  for (int i = 0; i < morsel->num_pages; ++i) {
    ListedPage* page = &threads->returned[threads->num_returned];

    if (!morsel->is_returned[i]) {
      ReleaseBuffer(morsel->pages[i].buffer);
      continue;
    }
    *page = morsel->pages[i];
    page->visible = threads->returned_visible[threads->num_returned];
    memcpy(threads->returned_visible[threads->num_returned], morsel->visible[i], sizeof(morsel->visible[i]));
    ++threads->num_returned;
    ++threads->total_returned;
  }
  morsel->num_pages = 0;
}

static MorselState state_of(Threads* threads, const Morsel* morsel) {
  MorselState state;

  pthread_mutex_lock(&threads->mutex);
  state = morsel->state;
  pthread_mutex_unlock(&threads->mutex);
  return state;
}

static void set_state(Threads* threads, Morsel* morsel, MorselState state) {
  pthread_mutex_lock(&threads->mutex);
  morsel->state = state;
  if (state == MORSEL_FULL) pthread_cond_signal(&threads->is_full);
  pthread_mutex_unlock(&threads->mutex);
}

/* Only while there is no returned page, so that there is room for all of them. */
static void empty_morsels(Threads* threads) {
  for (int i = 0; i < threads->num_morsels; ++i) {
    Morsel* morsel = &threads->morsels[i];

    if (state_of(threads, morsel) != MORSEL_READ) continue;
    empty_morsel(threads, morsel);
    set_state(threads, morsel, MORSEL_FREE);
  }
}

bool threads_take_back(Threads* threads, ListedPage* page) {
  if (threads->num_returned == 0) return false;
  *page = threads->returned[--threads->num_returned];
  return true;
}

void threads_feed(Threads* threads, HeapPages* pages) {
  empty_morsels(threads);
  if (threads->total_returned > kMostReturned || threads_have_failed(threads)) return;
  for (int i = 0; i < threads->num_morsels; ++i) {
    Morsel* morsel = &threads->morsels[i];

    if (state_of(threads, morsel) != MORSEL_FREE) continue;
    while (morsel->num_pages < threads->pages_of_morsel) {
      const int n = morsel->num_pages;

      if (!heap_pages_list(pages, &morsel->pages[n], morsel->visible[n])) break;
      morsel->is_returned[n] = true;
      morsel->num_pages = n + 1;
    }
    if (morsel->num_pages == 0) return;
    set_state(threads, morsel, MORSEL_FULL);
  }
}

/* Whether a morsel is on its way. Waits a little while one is and none has been read. */
static bool wait_for_morsel(Threads* threads) {
  struct timespec until;
  int on_their_way = 0, read = 0;

  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += kWaitNs;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&threads->mutex);
  for (int i = 0; i < threads->num_morsels; ++i) {
    read += threads->morsels[i].state == MORSEL_READ;
    on_their_way += threads->morsels[i].state != MORSEL_FREE;
  }
  if (read == 0 && on_their_way > 0 && !threads->stopping)
    pthread_cond_timedwait(&threads->is_read, &threads->mutex, &until);
  pthread_mutex_unlock(&threads->mutex);
  return on_their_way > 0;
}

bool threads_wait(Threads* threads, ListedPage* page) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (threads_take_back(threads, page)) return true;
    empty_morsels(threads);
    if (threads->num_returned > 0) continue;
    if (threads_have_failed(threads) || !wait_for_morsel(threads)) break;
  }
  pthread_mutex_lock(&threads->mutex);
  threads->ending = true;
  pthread_cond_broadcast(&threads->is_full);
  pthread_mutex_unlock(&threads->mutex);
  join_threads(threads);
  close_handles(threads);
  heap_pages_share(threads->pages, NULL);
  threads->pages = NULL;
  return false;
}
