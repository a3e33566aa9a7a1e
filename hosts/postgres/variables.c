/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

static bool collect(Node* node, VarColumns* columns) {
  if (node == NULL) return false;
  if (IsA(node, Var)) {
    const Var* var = (const Var*)node;
    const int side = var->varno == INNER_VAR;

    if (var->varno != OUTER_VAR && var->varno != INNER_VAR) columns->failed = true;
    else if (!list_member(columns->vars[side], var)) columns->vars[side] = lappend(columns->vars[side], (void*)var);
    return false;
  }
  if (IsA(node, Aggref)) {
    if (!list_member(columns->aggregates, node)) columns->aggregates = lappend(columns->aggregates, node);
    return false;
  }
  /* A subplan belongs to the node that computes it, and refers to its arguments by Vars. A grouping set has no single
   * value. */
  if ((IsA(node, SubPlan) && !columns->allows_subplans) || IsA(node, AlternativeSubPlan) || IsA(node, GroupingFunc)) {
    columns->failed = true;
    return false;
  }
  return expression_tree_walker(node, collect, columns);
}

void var_columns_collect(VarColumns* columns, Node* expr) { collect(expr, columns); }

typedef struct Mapping {
  VarColumns* columns;
  List** positions;
  int first_aggregate;
} Mapping;

static int position_of(List* list, const Node* node) {
  ListCell* cell;

  foreach (cell, list)
    if (equal(lfirst(cell), node)) return foreach_current_index(cell);
  return -1;
}

static Node* map(Node* node, Mapping* mapping) {
  if (node == NULL) return NULL;
  if (IsA(node, Var)) {
    Var* var = copyObject((Var*)node);
    const int side = var->varno == INNER_VAR;
    const int position = position_of(mapping->columns->vars[side], node);

    if (position < 0) {
      mapping->columns->failed = true;
      return (Node*)var;
    }
    var->varattno = (AttrNumber)list_nth_int(mapping->positions[side], position);
    var->varno = INDEX_VAR;
    return (Node*)var;
  }
  if (IsA(node, Aggref)) {
    const int position = position_of(mapping->columns->aggregates, node);

    if (position < 0) mapping->columns->failed = true;
    return (Node*)makeVar(INDEX_VAR, (AttrNumber)(mapping->first_aggregate + position), exprType(node),
                          exprTypmod(node), exprCollation(node), 0);
  }
  return expression_tree_mutator(node, map, mapping);
}

Node* var_columns_map(VarColumns* columns, Node* expr, List* var_positions[2], int first_aggregate) {
  Mapping mapping = {columns, var_positions, first_aggregate};

  return map(expr, &mapping);
}
