/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines: the rows of a source pass through all joins above it into the job of a node, some thousand at a time.
 *
 *     source ─> join ─> join ─┬─> other form, map ─> join ─┬─> other form, map ─> job: table, groups, rows to sort
 *               first segment ┘            second segment ─┘
 *
 * A segment is a pipeline of libquern: joins of which each reads the columns of the one before as they are. Rows stay
 * where they are in it, next to what they have found, and texts stay in the tables. Behind a segment, columns take the
 * form that the next node reads: a numeric becomes a 128-bit integer, say. A join is a segment of its own where EXPLAIN
 * ANALYZE counts its rows, and where there is little memory left.
 *
 * Tables have been built before, by the first batch, which each node takes from the node below (source.c). What joins
 * have left when the rows of the source have ended, rows without a match and rows in files, goes that way, too.
 *
 * Threads have pipelines of their own (threads.c). What they call here calls nothing of PostgreSQL.
 */
#include "quern_pg.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* One or more joins, and the source that reads their rows. */
typedef struct Segment {
  Pipeline* pipeline;
  const char* types; /* of the columns of rows that go into it */
  int num_joins;
  quern_pipeline_step* steps;
  uint32* columns; /* of the last join's results, that are read */
  Source* source;  /* they become its columns; of this pipeline alone */
  quern_input* input;
  Instrumentation* instrument; /* of the join, if EXPLAIN ANALYZE counts its rows; else NULL */
  uint64 rows;                 /* that have come out of it */
} Segment;

struct Pipeline {
  QuernNode* node; /* whose job takes the rows */
  quern_input* input;
  int num_segments;
  Segment* segments;
  const bool* stopping; /* of threads; NULL: in the backend's own */
  bool is_stopped;      /* rows were dropped, since nothing matters any more */
  RowsEnd end;
  quern_error error; /* of ROWS_FAILED */
  uint64 added;      /* rows, to the job */
};

/* ---- on the way ---- */

static bool give(Pipeline* pipeline, int number, Source* source, uint64 rows);

/* Whether the query is to end. What else the backend may be asked to do can wait until the batch is done. */
static bool must_stop(const Pipeline* pipeline) {
  if (pipeline->stopping != NULL) return __atomic_load_n(pipeline->stopping, __ATOMIC_RELAXED);
  return InterruptPending && (QueryCancelPending || ProcDiePending) && INTERRUPTS_CAN_BE_PROCESSED();
}

static bool pass_on(Segment* segment, const quern_batch* rows) {
  Pipeline* pipeline = segment->pipeline;
  Source* source = segment->source;

  source_take_rows(source, rows);
  source->failed = source->columns->inexact;
  if (!source->failed) source_compute(source, rows->num_rows, rows->selection);
  if (source->failed) {
    pipeline->end = ROWS_INEXACT;
    return false;
  }
  return give(pipeline, (int)(segment - pipeline->segments) + 1, source, rows->num_rows);
}

/* Called by libquern with rows of a segment. Errors must not leave it by a jump: they would skip the library's frames.
 */
static bool take_rows(void* context, const quern_batch* rows) {
  Segment* segment = context;
  Pipeline* pipeline = segment->pipeline;
  sigjmp_buf* const before = node_escape;
  Instrumentation* const timed = pipeline->stopping == NULL ? segment->instrument : NULL;
  sigjmp_buf escape;
  volatile bool wants_more = false;

  pipeline->is_stopped = must_stop(pipeline);
  if (pipeline->is_stopped) return false;
  segment->rows += rows->num_rows;
  if (timed != NULL) InstrStopNode(timed, (double)rows->num_rows);
  node_escape = &escape;
  if (sigsetjmp(escape, 0) == 0) {
    wants_more = pass_on(segment, rows);
  } else {
    pipeline->end = ROWS_FAILED;
    pipeline->error = *quern_last_error;
  }
  node_escape = before;
  if (timed != NULL) InstrStartNode(timed);
  return wants_more;
}

/* Gives rows to segment `number`, or to the job behind the last one. Returns whether all went well. */
static bool give(Pipeline* pipeline, int number, Source* source, uint64 rows) {
  const bool is_last = number == pipeline->num_segments;
  const quern_batch batch =
      is_last ? source_batch_to_keep(source, pipeline->node->plan->num_keys, rows) : source_batch(source, 0, rows);
  quern_input* input = is_last ? pipeline->input : pipeline->segments[number].input;

  if (quern_input_append(input, &batch, quern_last_error) != QUERN_OK) {
    pipeline->end = ROWS_FAILED;
    pipeline->error = *quern_last_error;
  }
  if (is_last && pipeline->end == ROWS_DONE) pipeline->added += rows;
  return pipeline->end == ROWS_DONE && !pipeline->is_stopped;
}

RowsEnd pipeline_append(Pipeline* pipeline, Source* source, uint64 rows) {
  give(pipeline, 0, source, rows);
  if (pipeline->end == ROWS_FAILED) *quern_last_error = pipeline->error;
  return pipeline->end;
}

/* ---- creation ---- */

List* pipeline_sources(Source* top) {
  List* sources = list_make1(top);

  for (const Source* source = top; source->node != NULL; source = linitial(sources)) {
    const QuernNode* join = source->node;

    if (join->plan->op != QUERN_JOIN || join->state != NODE_PROBING || join->output == NULL) break;
    sources = lcons(join->sources[0], sources);
  }
  return sources;
}

/* Bytes of a column's values in a pipeline, next to the rows and copied. */
enum { kBytesOfColumn = 2 * 16 * BATCH_ROWS, kBytesOfSegment = 1 << 20 };

/* Whether the memory that a join may still take suffices for what segments of so many columns need, of which it is the
 * last join. */
static bool has_room(const QuernNode* join, int num_columns, int num_pipelines) {
  const uint64 needed = kBytesOfSegment + (uint64)num_columns * kBytesOfColumn;

  return !node_has_spilled(join) && quern_job_used_bytes(join->job) + needed * num_pipelines <= node_memory_limit(join);
}

/* Whether the rows of the join below a source may go to the next join as they are. */
static bool passes_rows(const Source* source) {
  if (source->map.job != NULL || source->child->instrument != NULL || source->plan->types == NULL) return false;
  for (int i = 0; i < source->columns->num_columns; ++i)
    if (!source_reads_as_is(source, i)) return false;
  return true;
}

/* The number of a vector of a source among the columns on their way: it is the first of a segment, or a join's results
 * are its columns. */
static uint32 number_of(const Source* source, bool is_first, int vector) {
  if (is_first) return (uint32)vector;
  return (uint32)source_result_column(source, list_nth_int(source->plan->vectors, vector));
}

/* The join that the rows of a source probe. */
static void make_step(quern_pipeline_step* step, const Source* source, bool is_first, const QuernNode* join) {
  const int num_vectors = list_length(source->plan->vectors);
  uint32* numbers = palloc(sizeof(uint32) * (num_vectors + 1));

  for (int i = 0; i < num_vectors; ++i) numbers[i] = number_of(source, is_first, i);
  step->job = join->job;
  step->keys = numbers;
  step->num_keys = join->plan->num_keys;
  step->payload = numbers + join->plan->num_keys;
  step->num_payload = num_vectors - join->plan->num_keys;
}

/* Makes a segment of the joins behind source `from`; returns the number of the source behind it. */
static int make_segment(Segment* segment, const List* sources, int from, int num_pipelines) {
  const int last = list_length(sources) - 1;
  const Source* behind = list_nth(sources, from + 1);
  int to = from + 1, num_columns = behind->node->num_outputs;

  segment->types = ((const Source*)list_nth(sources, from))->plan->types;
  segment->steps = palloc0(sizeof(quern_pipeline_step) * (last - from));
  make_step(&segment->steps[0], list_nth(sources, from), true, behind->node);
  for (; to < last && passes_rows(behind); ++to) {
    const Source* next = list_nth(sources, to + 1);

    num_columns += next->node->num_outputs;
    if (!has_room(next->node, num_columns, num_pipelines)) break;
    make_step(&segment->steps[to - from], behind, false, next->node);
    behind = next;
  }
  segment->num_joins = to - from;
  segment->columns = palloc(sizeof(uint32) * (behind->columns->num_columns + 1));
  for (int i = 0; i < behind->columns->num_columns; ++i) segment->columns[i] = (uint32)source_result_column(behind, i);
  segment->source = source_create_for_thread(behind);
  segment->instrument = behind->child->instrument;
  return to;
}

Pipeline* pipeline_create(QuernNode* node, const List* sources, int num_pipelines, const bool* stopping) {
  Pipeline* pipeline = palloc0(sizeof(Pipeline));
  const int last = list_length(sources) - 1;

  pipeline->node = node;
  pipeline->stopping = stopping;
  pipeline->segments = palloc0(sizeof(Segment) * (last + 1));
  for (int from = 0; from < last;) {
    Segment* segment = &pipeline->segments[pipeline->num_segments++];

    segment->pipeline = pipeline;
    from = make_segment(segment, sources, from, num_pipelines);
  }
  return pipeline;
}

static void open_segment(Segment* segment, const Source* like) {
  const quern_pipeline_options options = {.struct_size = sizeof(options),
                                          .columns = segment->types,
                                          .steps = segment->steps,
                                          .num_steps = segment->num_joins,
                                          .keys = segment->columns,
                                          .num_keys = segment->source->columns->num_columns,
                                          .piece_rows = BATCH_ROWS,
                                          .on_rows = take_rows,
                                          .context = segment};

  source_open_for_thread(segment->source, like);
  QUERN_CALL(quern_pipeline_input_create(NULL, QUERN_PORT_ROWS, &options, &segment->input, quern_last_error));
}

void pipeline_open(Pipeline* pipeline, const List* sources, quern_input* input) {
  int from = 0;

  pipeline->input = input;
  for (int i = 0; i < pipeline->num_segments; ++i) {
    from += pipeline->segments[i].num_joins;
    open_segment(&pipeline->segments[i], list_nth(sources, from));
  }
}

void pipeline_finish(Pipeline* pipeline) {
  for (int i = 0; i < pipeline->num_segments; ++i)
    QUERN_CALL(quern_input_finish(pipeline->segments[i].input, quern_last_error));
}

void pipeline_close(Pipeline* pipeline) {
  for (int i = 0; i < pipeline->num_segments; ++i) {
    Segment* segment = &pipeline->segments[i];

    quern_input_destroy(segment->input);
    segment->input = NULL;
    source_release_of_thread(segment->source);
  }
}

uint64 pipeline_added(const Pipeline* pipeline) { return pipeline->added; }

void pipeline_count_rows(const Pipeline* pipeline) {
  for (int i = 0; i < pipeline->num_segments; ++i) {
    const Segment* segment = &pipeline->segments[i];

    if (segment->instrument != NULL) InstrUpdateTupleCount(segment->instrument, (double)segment->rows);
  }
}

/* ---- in the backend's own thread ---- */

/* Whether a join waits for the next batch of its probe side. */
static bool is_idle(const QuernNode* join) {
  if (join->state != NODE_PROBING || join->output == NULL || join->batch_pending || join->first_rows > 0) return false;
  return join->result == NULL || join->row >= join->result->num_rows;
}

/* The sources of a pipeline up to `top`; NIL: there is no join on the way, one has rows of a batch left, or too little
 * memory. */
static List* sources_that_pay(Source* top) {
  List* sources = pipeline_sources(top);
  int num_columns = 0;
  bool is_ready = list_length(sources) > 1;

  for (int i = 1; i < list_length(sources) && is_ready; ++i) {
    const QuernNode* join = ((const Source*)list_nth(sources, i))->node;

    num_columns += join->num_outputs;
    is_ready = is_idle(join) && has_room(join, num_columns, 1);
  }
  if (is_ready) return sources;
  list_free(sources);
  return NIL;
}

static void start_timing(const Pipeline* pipeline) {
  for (int i = 0; i < pipeline->num_segments; ++i)
    if (pipeline->segments[i].instrument != NULL) InstrStartNode(pipeline->segments[i].instrument);
}

static void stop_timing(const Pipeline* pipeline) {
  for (int i = 0; i < pipeline->num_segments; ++i)
    if (pipeline->segments[i].instrument != NULL) InstrStopNode(pipeline->segments[i].instrument, 0);
}

static void close_with_memory(void* pipeline) { pipeline_close(pipeline); }

/* Makes a pipeline in a memory context whose end closes it. */
static Pipeline* create_in_memory(QuernNode* node, const List* sources, MemoryContext memory) {
  const MemoryContext before = MemoryContextSwitchTo(memory);
  MemoryContextCallback* callback = palloc0(sizeof(MemoryContextCallback));
  Pipeline* pipeline = pipeline_create(node, sources, 1, NULL);

  callback->func = close_with_memory;
  callback->arg = pipeline;
  MemoryContextRegisterResetCallback(memory, callback);
  MemoryContextSwitchTo(before);
  pipeline_open(pipeline, sources, node->input);
  return pipeline;
}

/* Sends the rows of the lowest source through, of which `rows` have been read, until they end or something fails. */
static void send_rows(QuernNode* node, Pipeline* pipeline, Source* bottom, uint64 rows) {
  while (rows > 0) {
    start_timing(pipeline);
    pipeline_append(pipeline, bottom, rows);
    stop_timing(pipeline);
    node_check_interrupts(node);
    if (pipeline->is_stopped) elog(ERROR, "quern: rows were dropped for a query that goes on");
    if (pipeline->end != ROWS_DONE || (node->threads != NULL && threads_have_failed(node->threads))) return;
    start_timing(pipeline);
    rows = source_next(bottom);
    stop_timing(pipeline);
  }
  if (bottom->failed) pipeline->end = ROWS_INEXACT;
  else pipeline_finish(pipeline);
}

RowsEnd pipeline_run(QuernNode* node, Source* top, uint64* added) {
  List* sources = sources_that_pay(top);
  MemoryContext memory;
  Pipeline* pipeline;
  Source* bottom;
  RowsEnd end;
  uint64 rows;

  *added = 0;
  if (sources == NIL) return ROWS_DONE;
  bottom = linitial(sources);
  /* Most often there is one batch. */
  rows = source_next(bottom);
  if (rows == 0) return bottom->failed ? ROWS_INEXACT : ROWS_DONE;
  memory = AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt, "Quern pipeline", ALLOCSET_DEFAULT_SIZES);
  pipeline = create_in_memory(node, sources, memory);
  node->num_piped = list_length(sources) - 1;
  list_free(sources);
  send_rows(node, pipeline, bottom, rows);
  end = pipeline->end;
  *added = pipeline->added;
  MemoryContextDelete(memory);
  return end;
}
