/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

ColumnPlan* column_with(const ColumnPlan* column, const char* type, Expr* expr) {
  ColumnPlan* copy = palloc(sizeof(ColumnPlan));

  *copy = *column;
  copy->type = type;
  copy->expr = expr;
  copy->filter = NULL;
  return copy;
}

int source_column(List** columns, const ColumnPlan* column) {
  ListCell* cell;

  foreach (cell, *columns) {
    const ColumnPlan* other = lfirst(cell);

    if (other->kind == column->kind && other->width == column->width && other->scale == column->scale &&
        equal(other->expr, column->expr))
      return foreach_current_index(cell);
  }
  *columns = lappend(*columns, column_with(column, column->type, column->expr));
  return list_length(*columns) - 1;
}

/* ---- the child's own expressions ---- */

/* Replaces Vars of a child's rows by the expressions that the child computes them from. */
typedef struct Resolving {
  List* targetlist;
  bool failed;
} Resolving;

static Node* resolve(Node* node, Resolving* resolving) {
  if (node == NULL) return NULL;
  if (IsA(node, Var)) {
    const Var* var = (const Var*)node;

    if ((var->varno != OUTER_VAR && var->varno != INNER_VAR) || var->varattno <= 0) {
      resolving->failed = true;
      return node;
    }
    return copyObject((Node*)list_nth_node(TargetEntry, resolving->targetlist, var->varattno - 1)->expr);
  }
  return expression_tree_mutator(node, resolve, resolving);
}

/* A scan of a plain heap, whose pages we may read. The relation is locked and open for planning. */
bool scans_heap(const Plan* plan) {
  Relation relation;
  bool plain;

  if (!IsA(plan, SeqScan) || plan->parallel_aware || quern_scan != SCAN_BY_PAGES) return false;
  relation = table_open(planned_relation(((const SeqScan*)plan)->scan.scanrelid), NoLock);
  plain = relation->rd_rel->relam == HEAP_TABLE_AM_OID &&
          (relation->rd_rel->relkind == RELKIND_RELATION || relation->rd_rel->relkind == RELKIND_MATVIEW);
  table_close(relation, NoLock);
  return plain;
}

static SourceWay way_of(const Plan* child) {
  if (scans_heap(child)) return SOURCE_PAGES;
  if (!node_is_ours(child)) return SOURCE_SLOTS;
  return child->qual == NIL && node_operator(child) == QUERN_JOIN ? SOURCE_JOIN : SOURCE_NODE;
}

/* ---- making ---- */

static bool is_column(const Expr* expr) { return IsA(expr, Var) && ((const Var*)expr)->varattno > 0; }

/* The condition of a scan as a map; left to PostgreSQL where a part of it is no map's. */
static void add_condition(SourcePlan* plan, const Plan* child, bool may_fail) {
  List* columns = list_copy(plan->columns);
  ExpressionMaking making = {.columns = &columns};
  const ColumnPlan as = {.kind = KIND_BOOL, .type = "bool"};

  if (child->qual == NIL) return;
  if (!expression_add(&making, (Node*)make_ands_explicit(child->qual), &as)) return;
  if (making.can_fail && !may_fail) return;
  plan->columns = columns;
  plan->condition = expression_spec(&making);
  plan->condition_inputs = making.inputs;
}

/* Columns and computed columns over the expressions of a child. Returns false where one can be neither. */
static bool add_vectors(SourcePlan* plan, List* wanted, List* targetlist, bool may_fail) {
  ExpressionMaking making = {.columns = &plan->columns};
  int num_results = 0;
  ListCell* cell;

  foreach (cell, wanted) {
    ColumnPlan column = *(ColumnPlan*)lfirst(cell);
    Resolving resolving = {.targetlist = targetlist};

    if (targetlist != NIL) column.expr = (Expr*)resolve((Node*)column.expr, &resolving);
    if (resolving.failed) return false;
    if (is_column(column.expr)) {
      plan->vectors = lappend_int(plan->vectors, source_column(&plan->columns, &column));
    } else {
      if (!expression_add(&making, (Node*)column.expr, &column)) return false;
      plan->vectors = lappend_int(plan->vectors, -1 - num_results++);
    }
  }
  if (making.can_fail && !may_fail) return false;
  if (num_results > 0) {
    plan->map = expression_spec(&making);
    plan->map_inputs = making.inputs;
  }
  return true;
}

/* CASE WHEN filter THEN expression END. A map that fails for a row that the filter leaves out has the stock plan run;
 * PostgreSQL's own computation would end the query. */
static Expr* guarded(const ColumnPlan* column) {
  CaseExpr* made;
  CaseWhen* when;

  if (column->filter == NULL || is_column(column->expr)) return column->expr;
  when = makeNode(CaseWhen);
  when->expr = column->filter;
  when->result = column->expr;
  made = makeNode(CaseExpr);
  made->casetype = exprType((Node*)column->expr);
  made->casecollid = exprCollation((Node*)column->expr);
  made->args = list_make1(when);
  made->defresult = (Expr*)makeNullConst(made->casetype, exprTypmod((Node*)column->expr), made->casecollid);
  return (Expr*)made;
}

static SourcePlan* projected(List* wanted) {
  SourcePlan* plan = palloc0(sizeof(SourcePlan));
  ListCell* cell;

  plan->way = SOURCE_SLOTS;
  foreach (cell, wanted) {
    ColumnPlan column = *(ColumnPlan*)lfirst(cell);

    column.expr = guarded(&column);
    if (!is_column(column.expr)) plan->way = SOURCE_PROJECTED;
    plan->vectors = lappend_int(plan->vectors, source_column(&plan->columns, &column));
  }
  return plan;
}

SourcePlan* source_plan_make(Plan* child, List* wanted, bool may_fail, bool by_rows) {
  SourcePlan* plan = palloc0(sizeof(SourcePlan));
  List* targetlist = NIL;

  plan->way = way_of(child);
  if (by_rows && plan->way == SOURCE_PAGES) plan->way = SOURCE_SLOTS;
  if (plan->way == SOURCE_PAGES || plan->way == SOURCE_JOIN) targetlist = child->targetlist;
  if (!add_vectors(plan, wanted, targetlist, may_fail)) return projected(wanted);
  if (plan->way == SOURCE_PAGES) add_condition(plan, child, may_fail);
  return plan;
}
