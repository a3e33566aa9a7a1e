/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"

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
  if (from->kind == KIND_BYVALUE)
    return (to->kind == KIND_I64_OF_I32 && from->width == 4) || (to->kind == KIND_I64_OF_I16 && from->width == 2) ||
           (to->kind == KIND_F64_OF_F32 && from->width == 4) || to->kind == KIND_FLAG ||
           (to->kind == KIND_BOOL && from->width == 1);
  if (to->kind == KIND_FLAG) return true;
  return from->kind == KIND_VARLENA && (to->kind == KIND_TEXT || to->kind == KIND_TRIMMED || to->kind == KIND_DECIMAL ||
                                        to->kind == KIND_NUMERIC_KEY);
}

/* A child that is a node of ours hands over its batches, if nothing has to be computed between the two. */
static bool find_node(Source* source, PlanState* child) {
  QuernNode* node = node_of_state(child);

  if (node == NULL || child->plan->qual != NIL) return false;
  source->node_columns = palloc0(sizeof(int) * (source->columns->num_columns + 1));
  for (int i = 0; i < source->columns->num_columns; ++i) {
    const int output = child_output(node, source->columns->buffers[i].attno);

    if (output < 0 || !fits(&node->outputs[output].values, &source->columns->buffers[i])) return false;
    source->node_columns[i] = output;
  }
  source->node = node;
  return true;
}

/* Aggregates often read the same column: it is filled once. Returns the plans that differ. */
static List* find_vectors(Source* source, List* plans) {
  List* columns = NIL;
  ListCell* cell;

  source->num_vectors = list_length(plans);
  source->column_of = palloc0(sizeof(int) * (source->num_vectors + 1));
  source->vectors = palloc0(sizeof(quern_column) * (source->num_vectors + 1));
  foreach (cell, plans) {
    const ColumnPlan* plan = lfirst(cell);
    int i = 0;

    for (; i < list_length(columns); ++i) {
      const ColumnPlan* other = list_nth(columns, i);

      if (other->kind == plan->kind && other->width == plan->width && other->scale == plan->scale &&
          equal(other->expr, plan->expr))
        break;
    }
    if (i == list_length(columns)) columns = lappend(columns, (void*)plan);
    source->column_of[foreach_current_index(cell)] = i;
  }
  return columns;
}

/* Columns that are no plain ones of the child are computed by PostgreSQL, row by row, into slots. */
static void project(Source* source, QuernNode* parent, List* plans) {
  List* entries = NIL;
  TupleTableSlot* slot;
  ListCell* cell;

  foreach (cell, plans) {
    const AttrNumber number = (AttrNumber)(foreach_current_index(cell) + 1);

    entries = lappend(entries, makeTargetEntry(((ColumnPlan*)lfirst(cell))->expr, number, NULL, false));
    source->columns->buffers[number - 1].attno = number;
  }
  source->context = CreateExprContext(parent->css.ss.ps.state);
  slot = MakeSingleTupleTableSlot(ExecTypeFromTL(entries), &TTSOpsVirtual);
  source->projection = ExecBuildProjectionInfo(entries, source->context, slot, &parent->css.ss.ps, NULL);
}

static void find_columns(Source* source, QuernNode* parent, List* plans) {
  ListCell* cell;
  bool is_computed = false;

  foreach (cell, plans) {
    const Var* var = (const Var*)((ColumnPlan*)lfirst(cell))->expr;

    if (!IsA(var, Var) || var->varattno <= 0) {
      is_computed = true;
      break;
    }
    source->columns->buffers[foreach_current_index(cell)].attno = var->varattno;
    source->max_attno = Max(source->max_attno, var->varattno);
  }
  if (is_computed) project(source, parent, plans);
}

Source* source_create(QuernNode* parent, PlanState* child, List* plans) {
  Source* source = palloc0(sizeof(Source));
  List* columns = find_vectors(source, plans);

  source->child = child;
  source->columns = columns_create(columns, BATCH_ROWS);
  find_columns(source, parent, columns);
  if (source->projection == NULL && !find_node(source, child)) source->pages = heap_pages_create(source, child);
  return source;
}

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

static bool is_null(const quern_column* column, uint64 row) {
  return column->validity != NULL && ((column->validity[row >> 3] >> (row & 7)) & 1) == 0;
}

/* Rows of a batch of a child of ours, one column of which has another form here. */
static void convert(Source* source, int index, uint64 rows) {
  const OutputPlan* output = &source->node->outputs[source->node_columns[index]];
  const quern_column* from = &source->node->result->columns[output->column];
  ColumnBuffer* to = &source->columns->buffers[index];

  for (uint64 row = 0; row < rows; ++row) {
    const char* value = (const char*)from->values + (Size)output->values.width * row;

    if (is_null(from, row)) columns_put_null(source->columns, to, (int)row);
    else if (output->values.kind == KIND_VARLENA) columns_put(source->columns, to, (int)row, output_varlena(from, row));
    else if (output->values.kind == KIND_BYVALUE)
      columns_put(source->columns, to, (int)row, fetch_att(value, true, output->values.width));
    else columns_put(source->columns, to, (int)row, 0); /* KIND_FLAG */
  }
}

/* A batch of the child as it lies there, but for columns of another form. */
static uint64 take_batch(Source* source) {
  Columns* columns = source->columns;
  QuernNode* node = source->node;
  uint64 rows;

  if (!node_next_batch(node)) return 0;
  rows = node->result->num_rows;
  for (int i = 0; i < columns->num_columns; ++i) {
    const OutputPlan* output = &node->outputs[source->node_columns[i]];

    if (output->values.kind != columns->buffers[i].kind) convert(source, i, rows);
  }
  columns_finish(columns);
  for (int i = 0; i < columns->num_columns; ++i) {
    const OutputPlan* output = &node->outputs[source->node_columns[i]];

    if (output->values.kind == columns->buffers[i].kind) {
      columns->vectors[i] = node->result->columns[output->column];
      columns->vectors[i].num_bytes = columns->vectors[i].null_count = 0;
    }
  }
  return rows;
}

static uint64 finish(Source* source, uint64 rows) {
  for (int i = 0; i < source->num_vectors; ++i) source->vectors[i] = source->columns->vectors[source->column_of[i]];
  source->rows += rows;
  return rows;
}

uint64 source_next(Source* source) {
  uint64 rows;
  Instrumentation* instrument = source->child->instrument;

  CHECK_FOR_INTERRUPTS();
  columns_clear(source->columns);
  if (source->child->chgParam != NULL) ExecReScan(source->child);
  if (source->node != NULL && source->node->stock == NULL) {
    if (instrument != NULL) InstrStartNode(instrument);
    rows = take_batch(source);
    if (instrument != NULL) InstrStopNode(instrument, (double)rows);
    if (rows > 0 || source->node->stock == NULL) return finish(source, rows);
  }
  if (source->pages != NULL) {
    if (instrument != NULL) InstrStartNode(instrument);
    rows = (uint64)heap_pages_fill(source->pages, source->columns);
    if (instrument != NULL) InstrStopNode(instrument, (double)rows);
  } else {
    rows = (uint64)fill_by_slots(source);
  }
  columns_finish(source->columns);
  return finish(source, rows);
}

/* The child itself is rescanned by its first call where its parameters have changed. */
void source_rescan(Source* source) {
  source->at_end = false;
  if (source->pages != NULL) heap_pages_rescan(source->pages);
  if (source->child->chgParam == NULL) ExecReScan(source->child);
}

void source_end(Source* source) {
  if (source->pages != NULL) heap_pages_end(source->pages);
  source->pages = NULL;
}

const char* source_way(const Source* source) {
  if (source->projection != NULL) return "computed rows";
  if (source->node != NULL) return source->node->stock == NULL ? "batches" : "rows";
  return source->pages != NULL ? "pages" : "rows";
}
