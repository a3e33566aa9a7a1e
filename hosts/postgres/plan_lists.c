/* SPDX-License-Identifier: Apache-2.0
 *
 * A NodePlan as lists of nodes, which is what custom_private of a plan that is copied, cached or sent may hold.
 */
#include "quern_pg.h"

#include <math.h>

#include "nodes/makefuncs.h"
#include "nodes/value.h"

static Node* text_node(const char* text) { return text == NULL ? NULL : (Node*)makeString(pstrdup(text)); }
static char* text_of_node(Node* node) { return node == NULL ? NULL : strVal(node); }

static List* column_to_list(const ColumnPlan* column) {
  return list_make3(list_make3_int(column->kind, column->width, column->scale), column->expr, text_node(column->type));
}

static ColumnPlan* column_of_list(List* list) {
  ColumnPlan* column = palloc0(sizeof(ColumnPlan));
  List* numbers = linitial(list);

  column->kind = (ColumnKind)linitial_int(numbers);
  column->width = lsecond_int(numbers);
  column->scale = lthird_int(numbers);
  column->expr = lsecond(list);
  column->type = text_of_node(lthird(list));
  return column;
}

static List* columns_to_list(List* columns) {
  List* list = NIL;
  ListCell* cell;

  foreach (cell, columns) list = lappend(list, column_to_list(lfirst(cell)));
  return list;
}

static List* columns_of_list(List* list) {
  List* columns = NIL;
  ListCell* cell;

  foreach (cell, list) columns = lappend(columns, column_of_list(lfirst(cell)));
  return columns;
}

static List* source_to_list(const SourcePlan* source) {
  List* list;

  if (source == NULL) return NIL;
  list = list_make3(list_make1_int(source->way), columns_to_list(source->columns), source->vectors);
  list = lappend(list, text_node(source->map));
  list = lappend(list, source->map_inputs);
  list = lappend(list, text_node(source->condition));
  list = lappend(list, source->condition_inputs);
  return lappend(list, text_node(source->types));
}

static SourcePlan* source_of_list(List* list) {
  SourcePlan* source;

  if (list == NIL) return NULL;
  source = palloc0(sizeof(SourcePlan));
  source->way = (SourceWay)linitial_int((List*)linitial(list));
  source->columns = columns_of_list(list_nth(list, 1));
  source->vectors = list_nth(list, 2);
  source->map = text_of_node(list_nth(list, 3));
  source->map_inputs = list_nth(list, 4);
  source->condition = text_of_node(list_nth(list, 5));
  source->condition_inputs = list_nth(list, 6);
  source->types = text_of_node(list_nth(list, 7));
  return source;
}

static List* outputs_to_list(List* outputs) {
  List* list = NIL;
  ListCell* cell;

  foreach (cell, outputs) {
    const OutputPlan* output = lfirst(cell);

    list = lappend(list, list_make2(list_make2_int(output->kind, output->column), column_to_list(&output->values)));
  }
  return list;
}

static List* outputs_of_list(List* list) {
  List* outputs = NIL;
  ListCell* cell;

  foreach (cell, list) {
    OutputPlan* output = palloc0(sizeof(OutputPlan));
    List* numbers = linitial((List*)lfirst(cell));

    output->kind = (OutputKind)linitial_int(numbers);
    output->column = lsecond_int(numbers);
    output->values = *column_of_list(lsecond((List*)lfirst(cell)));
    outputs = lappend(outputs, output);
  }
  return outputs;
}

enum { kMicroseconds = 1000 }; /* of a millisecond */

/* A number without a fraction, in a node that is read back as what it was written as: a Float may become an Integer. */
static Node* rows_node(double rows) {
  const double most = 1e18;

  return (Node*)makeString(psprintf(INT64_FORMAT, (int64)Min(Max(rows, 0), most)));
}

static double number_of_node(Node* node) { return (double)strtoll(strVal(node), NULL, 10); }

List* node_plan_to_list(const NodePlan* plan) {
  List* list = list_make3(list_make4_int(plan->op, plan->num_keys, plan->join_type, plan->probes_first),
                          makeString(plan->spec), rows_node(plan->input_rows));

  list = lappend(list, rows_node(plan->output_rows));
  list = lappend(list, source_to_list(plan->sources[0]));
  list = lappend(list, source_to_list(plan->sources[1]));
  list = lappend(list, outputs_to_list(plan->outputs));
  /* A join never runs it, and copies of a plan would copy all below it once more. */
  list = lappend(list, plan->op == QUERN_JOIN ? NULL : plan->stock);
  list = lappend(list, plan->loop);
  list = lappend(list, makeInteger(plan->key_bytes));
  list = lappend(list, rows_node(plan->outer_rows));
  list = lappend(list, rows_node(ceil(plan->hash_ms * kMicroseconds)));
  return lappend(list, makeInteger(plan->threads));
}

NodePlan* node_plan_of_list(List* list) {
  NodePlan* plan = palloc0(sizeof(NodePlan));
  List* numbers = linitial(list);

  plan->op = (Operator)linitial_int(numbers);
  plan->num_keys = lsecond_int(numbers);
  plan->join_type = lthird_int(numbers);
  plan->probes_first = lfourth_int(numbers) != 0;
  plan->spec = strVal(list_nth(list, 1));
  plan->input_rows = number_of_node(list_nth(list, 2));
  plan->output_rows = number_of_node(list_nth(list, 3));
  plan->sources[0] = source_of_list(list_nth(list, 4));
  plan->sources[1] = source_of_list(list_nth(list, 5));
  plan->outputs = outputs_of_list(list_nth(list, 6));
  plan->stock = list_nth(list, 7);
  plan->loop = list_nth(list, 8);
  plan->key_bytes = intVal(list_nth(list, 9));
  plan->outer_rows = number_of_node(list_nth(list, 10));
  plan->hash_ms = number_of_node(list_nth(list, 11)) / kMicroseconds;
  plan->threads = intVal(list_nth(list, 12));
  return plan;
}
