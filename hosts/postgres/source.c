/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"

/* ---- creation ---- */

/* The result column of a child of ours that holds column `attno` of its rows; -1 where it is computed from others. */
static int child_output(const QuernNode* child, AttrNumber attno) {
  const TargetEntry* entry = list_nth(child->css.ss.ps.plan->targetlist, attno - 1);
  const Var* var = (const Var*)entry->expr;

  if (!IsA(var, Var) || var->varno != INDEX_VAR) return -1;
  return child->outputs[var->varattno - 1].kind == OUT_COLUMN ? var->varattno - 1 : -1;
}

/* Whether a child's column can be this node's: the same form, or one of which the values can be made at once. */
static bool fits(const ColumnPlan* from, const ColumnBuffer* to) {
  if (from->kind == to->kind && from->scale == to->scale)
    return from->kind == KIND_FIXED || from->kind == KIND_BYVALUE ? from->width == to->width : true;
  if (to->kind == KIND_FLAG) return true;
  if (from->kind == KIND_BYVALUE)
    return (to->kind == KIND_I64_OF_I32 && from->width == 4) || (to->kind == KIND_I64_OF_I16 && from->width == 2) ||
           (to->kind == KIND_F64_OF_F32 && from->width == 4) || (to->kind == KIND_BOOL && from->width == 1);
  return from->kind == KIND_VARLENA && (to->kind == KIND_TEXT || to->kind == KIND_TRIMMED || to->kind == KIND_DECIMAL ||
                                        to->kind == KIND_NUMERIC_KEY);
}

static bool is_copied(ColumnKind kind) { return kind == KIND_BYVALUE || kind == KIND_FIXED || kind == KIND_VARLENA; }

/* A child that is a node of ours hands over its batches, if nothing has to be computed between the two. Of one that is
 * taken in the middle, after rows one by one, values are copied. */
static void find_node(Source* source, bool in_the_middle) {
  QuernNode* node = node_of_state(source->child);

  if (node == NULL || source->child->plan->qual != NIL) return;
  source->node_columns = palloc0(sizeof(int) * (source->columns->num_columns + 1));
  for (int i = 0; i < source->columns->num_columns; ++i) {
    const AttrNumber attno = source->columns->buffers[i].attno;
    const int output = source->plan->way == SOURCE_JOIN ? attno - 1 : child_output(node, attno);

    if (output < 0 || !fits(&node->outputs[output].values, &source->columns->buffers[i])) return;
    if (in_the_middle && !is_copied(node->outputs[output].values.kind)) return;
    source->node_columns[i] = output;
  }
  source->node = node;
}

/* Columns that are no plain ones of the child are computed by PostgreSQL, row by row, into slots. */
static void project(Source* source, QuernNode* parent) {
  List* entries = NIL;
  TupleTableSlot* slot;
  ListCell* cell;

  foreach (cell, source->plan->columns) {
    const AttrNumber number = (AttrNumber)(foreach_current_index(cell) + 1);

    entries = lappend(entries, makeTargetEntry(((ColumnPlan*)lfirst(cell))->expr, number, NULL, false));
    source->columns->buffers[number - 1].attno = number;
  }
  source->context = CreateExprContext(parent->css.ss.ps.state);
  slot = MakeSingleTupleTableSlot(ExecTypeFromTL(entries), &TTSOpsVirtual);
  source->projection = ExecBuildProjectionInfo(entries, source->context, slot, &parent->css.ss.ps, NULL);
}

static void find_columns(Source* source) {
  ListCell* cell;

  foreach (cell, source->plan->columns) {
    const Var* var = castNode(Var, ((ColumnPlan*)lfirst(cell))->expr);

    source->columns->buffers[foreach_current_index(cell)].attno = var->varattno;
    source->max_attno = Max(source->max_attno, var->varattno);
  }
}

static void open_map(MapRun* run, const char* spec, const List* inputs) {
  const quern_compile_options compile = {.struct_size = sizeof(compile)};
  ListCell* cell;

  if (spec == NULL) return;
  run->num_inputs = list_length(inputs);
  run->inputs = palloc0(sizeof(int) * (run->num_inputs + 1));
  run->keys = palloc0(sizeof(quern_column) * (run->num_inputs + 1));
  foreach (cell, inputs) run->inputs[foreach_current_index(cell)] = lfirst_int(cell);
  QUERN_CALL(quern_compile_with(spec, &compile, &run->kernel, quern_last_error));
  QUERN_CALL(quern_job_create(run->kernel, NULL, &run->job, quern_last_error));
  QUERN_CALL(quern_output_create(run->job, QUERN_PORT_ROWS, NULL, &run->output, quern_last_error));
}

static void open_shared_map(MapRun* run, const MapRun* of) {
  if (of->job == NULL) return;
  run->kernel = of->kernel;
  run->job = of->job;
  run->is_shared = true;
  run->num_inputs = of->num_inputs;
  run->inputs = of->inputs;
  run->keys = palloc0(sizeof(quern_column) * (run->num_inputs + 1));
  QUERN_CALL(quern_output_create(run->job, QUERN_PORT_ROWS, NULL, &run->output, quern_last_error));
}

Source* source_create_for_thread(const Source* of) {
  Source* source = palloc0(sizeof(Source));

  source->plan = of->plan;
  source->node = of->node;
  source->node_columns = of->node_columns;
  source->max_attno = of->max_attno;
  source->columns = columns_create_for_thread(of->plan->columns, of->columns);
  source->vectors = palloc0(sizeof(quern_column) * (list_length(of->plan->vectors) + 1));
  if (of->selected != NULL) source->selected = palloc(sizeof(uint32) * BATCH_ROWS);
  return source;
}

void source_open_for_thread(Source* source, const Source* of) {
  open_shared_map(&source->map, &of->map);
  open_shared_map(&source->condition, &of->condition);
}

Source* source_create(QuernNode* parent, PlanState* child, const SourcePlan* plan) {
  Source* source = palloc0(sizeof(Source));

  /* Its handles are the parent's to release from now on. */
  parent->sources[parent->sources[0] != NULL] = source;
  source->plan = plan;
  source->child = child;
  source->columns = columns_create(plan->columns, BATCH_ROWS);
  source->vectors = palloc0(sizeof(quern_column) * (list_length(plan->vectors) + 1));
  if (plan->way == SOURCE_PROJECTED) project(source, parent);
  else find_columns(source);
  if (plan->way == SOURCE_JOIN || plan->way == SOURCE_NODE) find_node(source, parent->plan->loop != NULL);
  if (plan->way == SOURCE_JOIN && source->node == NULL) elog(ERROR, "quern: a join does not hand over its batches");
  if (plan->way == SOURCE_PAGES) source->pages = heap_pages_create(source);
  open_map(&source->map, plan->map, plan->map_inputs);
  open_map(&source->condition, plan->condition, plan->condition_inputs);
  if (plan->condition != NULL) source->selected = palloc(sizeof(uint32) * BATCH_ROWS);
  return source;
}

/* ---- reading ---- */

static int fill_by_slots(Source* source) {
  Columns* columns = source->columns;
  int row = 0;

  while (!source->at_end && !columns_are_full(columns, row)) {
    TupleTableSlot* slot = ExecProcNode(source->child);

    if (TupIsNull(slot)) {
      source->at_end = true;
      break;
    }
    if (source->projection != NULL) {
      ResetExprContext(source->context);
      source->context->ecxt_outertuple = source->context->ecxt_innertuple = slot;
      slot = ExecProject(source->projection);
    } else if (source->max_attno > 0) {
      slot_getsomeattrs(slot, source->max_attno);
    }
    for (int i = 0; i < columns->num_columns; ++i) {
      ColumnBuffer* column = &columns->buffers[i];

      if (slot->tts_isnull[column->attno - 1]) columns_put_null(columns, column, row);
      else columns_put(columns, column, row, slot->tts_values[column->attno - 1]);
    }
    ++row;
  }
  return row;
}

int source_result_column(const Source* source, int column) {
  return source->node->outputs[source->node_columns[column]].column;
}

static bool is_converted(const Source* source, int index) {
  return source->node->outputs[source->node_columns[index]].values.kind != source->columns->buffers[index].kind;
}

bool source_reads_as_is(const Source* source, int column) {
  const ColumnPlan* plan = list_nth(source->plan->columns, column);
  const char* type = source->node->outputs[source->node_columns[column]].values.type;

  return !is_converted(source, column) && type != NULL && plan->type != NULL && strcmp(type, plan->type) == 0;
}

/* Values of a child's column into row `to` of a column that has another form, or is copied. */
static void convert(Source* source, int index, const quern_column* from, uint64 row, int to) {
  const ColumnPlan* values = &source->node->outputs[source->node_columns[index]].values;
  ColumnBuffer* buffer = &source->columns->buffers[index];
  const char* value = (const char*)from->values + (Size)values->width * row;

  if (column_is_null(from, row)) columns_put_null(source->columns, buffer, to);
  else if (buffer->kind == KIND_FLAG) columns_put(source->columns, buffer, to, 0);
  else if (values->kind == KIND_VARLENA) columns_put(source->columns, buffer, to, output_varlena(from, row));
  else if (values->kind == KIND_BYVALUE)
    columns_put(source->columns, buffer, to, fetch_att(value, true, values->width));
  else columns_put(source->columns, buffer, to, PointerGetDatum(value)); /* KIND_FIXED */
}

static void read_as_is(Source* source, int index, const quern_column* from) {
  quern_column* vector = &source->columns->vectors[index];

  *vector = *from;
  vector->num_bytes = vector->null_count = 0;
}

/* Columns of a child's result, from row `first` on: as they lie there, but for columns of another form. */
static void take_result(Source* source, const quern_result* result, uint64 first) {
  Columns* columns = source->columns;

  for (int i = 0; i < columns->num_columns; ++i) {
    const quern_column* from = &result->columns[source_result_column(source, i)];

    if (first == 0 && !is_converted(source, i)) continue;
    for (uint64 row = first; row < result->num_rows; ++row) convert(source, i, from, row, (int)(row - first));
  }
  columns_finish(columns);
  for (int i = 0; i < columns->num_columns && first == 0; ++i)
    if (!is_converted(source, i)) read_as_is(source, i, &result->columns[source_result_column(source, i)]);
}

void source_take_rows(Source* source, const quern_batch* rows) {
  Columns* columns = source->columns;

  columns_clear(columns);
  for (int i = 0; i < columns->num_columns; ++i) {
    if (!is_converted(source, i)) continue;
    for (uint64 n = 0; n < rows->num_rows; ++n) {
      const uint32 row = rows->selection != NULL ? rows->selection[n] : (uint32)n;

      convert(source, i, &rows->keys[i], row, (int)row);
    }
  }
  columns_finish(columns);
  for (int i = 0; i < columns->num_columns; ++i)
    if (!is_converted(source, i)) read_as_is(source, i, &rows->keys[i]);
}

/* A batch of the child, or what is left of one of which rows were taken one by one. */
static uint64 take_batch(Source* source) {
  QuernNode* node = source->node;
  uint64 first = node->result != NULL ? node->row : 0;

  if (first == 0 || first >= node->result->num_rows) {
    first = 0;
    if (!node_next_batch(node)) return 0;
  }
  take_result(source, node->result, first);
  node->row = node->result->num_rows;
  return node->result->num_rows - first;
}

/* Rows of the child, as columns. */
static uint64 read_columns(Source* source) {
  uint64 rows;

  columns_clear(source->columns);
  if (source->pages != NULL) {
    rows = (uint64)heap_pages_fill(source->pages, source->columns);
    columns_finish(source->columns);
    return rows;
  }
  if (source->node != NULL && source->node->stock == NULL) {
    rows = take_batch(source);
    if (rows > 0 || source->node->stock == NULL) return rows;
    columns_clear(source->columns);
    /* From now on the child counts its rows by itself. */
    if (source->is_timed) InstrStopNode(source->child->instrument, 0);
    source->is_timed = false;
  }
  rows = (uint64)fill_by_slots(source);
  columns_finish(source->columns);
  return rows;
}

/* Computes the results of a map for the rows of a batch. Returns false where a row has none. */
static bool run_map(MapRun* run, const Columns* columns, const uint32* selection, uint64 rows) {
  quern_batch batch = {.struct_size = sizeof(batch), .keys = run->keys, .selection = selection, .num_rows = rows};

  for (int i = 0; i < run->num_inputs; ++i) run->keys[i] = columns->vectors[run->inputs[i]];
  if (quern_output_push(run->output, &batch, quern_last_error) != QUERN_OK) node_raise();
  if (quern_output_next(run->output, &run->result, quern_last_error) != QUERN_OK) {
    if (quern_last_error->status != QUERN_OUT_OF_RANGE) node_raise();
    return false;
  }
  if (run->result->num_rows != rows) elog(ERROR, "quern: a map returned " UINT64_FORMAT " rows", run->result->num_rows);
  return true;
}

/* Lists the rows for which the condition's result is true. */
static uint64 select_rows(Source* source, uint64 rows) {
  const quern_column* result = &source->condition.result->columns[0];
  const uint8* values = result->values;
  uint64 n = 0;

  for (uint64 row = 0; row < rows; ++row) {
    source->selected[n] = (uint32)row;
    n += ((values[row >> 3] >> (row & 7)) & 1) && !column_is_null(result, row);
  }
  return n;
}

/* The selection is that of all columns. But where there are results of a map, which lie side by side, the columns
 * beside them have it. */
static void make_vectors(Source* source, const uint32* selection) {
  const uint32* of_column = source->map.job != NULL ? selection : NULL;
  ListCell* cell;

  source->selection = source->map.job != NULL ? NULL : selection;
  foreach (cell, source->plan->vectors) {
    quern_column* vector = &source->vectors[foreach_current_index(cell)];
    const int place = lfirst_int(cell);

    *vector = place >= 0 ? source->columns->vectors[place] : source->map.result->columns[-1 - place];
    vector->num_bytes = vector->null_count = 0;
    if (place >= 0) vector->selection = of_column;
  }
}

uint64 source_filter(Source* source, uint64 rows, const uint32** selection) {
  uint64 n = rows;

  *selection = NULL;
  source->failed = source->columns->inexact;
  if (source->failed || rows == 0 || source->condition.job == NULL) return rows;
  source->failed = !run_map(&source->condition, source->columns, NULL, rows);
  if (source->failed) return 0;
  n = select_rows(source, rows);
  if (n < rows) *selection = source->selected;
  return n;
}

void source_compute(Source* source, uint64 rows, const uint32* selection) {
  source->failed = source->map.job != NULL && !run_map(&source->map, source->columns, selection, rows);
  if (!source->failed) make_vectors(source, selection);
}

quern_batch source_batch(const Source* source, int num_keys, uint64 rows) {
  const quern_batch batch = {.struct_size = sizeof(batch),
                             .keys = source->vectors,
                             .payload = source->vectors + num_keys,
                             .selection = source->selection,
                             .num_rows = rows};

  return batch;
}

quern_batch source_batch_to_keep(Source* source, int num_keys, uint64 rows) {
  const int num_vectors = list_length(source->plan->vectors);
  bool has_texts = false;

  for (int i = 0; i < num_vectors; ++i) has_texts |= source->vectors[i].buffers != NULL;
  for (int i = 0; i < num_vectors && has_texts && source->selection != NULL; ++i)
    source->vectors[i].selection = source->selection;
  if (has_texts) source->selection = NULL;
  return source_batch(source, num_keys, rows);
}

/* Reads the next rows for which the condition holds. */
static uint64 read_selected(Source* source, const uint32** selection) {
  for (;;) {
    uint64 rows, n;

    CHECK_FOR_INTERRUPTS();
    rows = read_columns(source);
    n = source_filter(source, rows, selection);
    if (source->failed) return 0;
    if (n < rows) InstrCountFiltered1(source->child, rows - n);
    if (n > 0 || rows == 0) return n;
  }
}

uint64 source_next(Source* source) {
  /* Rows by slots are counted by the child itself. */
  Instrumentation* instrument =
      source->pages != NULL || (source->node != NULL && source->node->stock == NULL) ? source->child->instrument : NULL;
  const uint32* selection;
  uint64 rows;

  if (source->child->chgParam != NULL) ExecReScan(source->child);
  source->is_timed = instrument != NULL;
  if (source->is_timed) InstrStartNode(instrument);
  rows = read_selected(source, &selection);
  if (source->is_timed) InstrStopNode(instrument, (double)rows);
  if (rows == 0) return 0;
  source_compute(source, rows, selection);
  return source->failed ? 0 : rows;
}

/* ---- the end ---- */

/* The child itself is rescanned by its first call where its parameters have changed. */
void source_rescan(Source* source) {
  source->at_end = false;
  source->failed = false;
  if (source->pages != NULL) heap_pages_rescan(source->pages);
  if (source->child->chgParam == NULL) ExecReScan(source->child);
}

void source_end(Source* source) {
  if (source->pages != NULL) heap_pages_end(source->pages);
  source->pages = NULL;
}

static void close_map(MapRun* run) {
  quern_output_destroy(run->output);
  if (run->is_shared) {
    memset(run, 0, sizeof(*run));
    return;
  }
  quern_job_destroy(run->job);
  quern_kernel_destroy(run->kernel);
  memset(run, 0, sizeof(*run));
}

void source_release(Source* source) {
  close_map(&source->map);
  close_map(&source->condition);
}

void source_release_of_thread(Source* source) {
  source_release(source);
  columns_free_bytes(source->columns);
}

const char* source_way(const Source* source) {
  if (source->pages != NULL) return "pages";
  if (source->projection != NULL) return "rows, computed by PostgreSQL";
  return source->node != NULL && source->node->stock == NULL ? "batches" : "rows";
}
