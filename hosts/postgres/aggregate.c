/* SPDX-License-Identifier: Apache-2.0
 *
 * An Agg as "aggregate keys=.. aggs=..". Aggregates of PostgreSQL whose result is a numeric are made of sums in 128
 * bits and of counts, so that their digits are PostgreSQL's.
 */
#include "quern_pg.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

typedef struct AggregateMaking {
  NodePlan plan;
  StringInfoData keys, functions;
  List* keys_of;   /* of ColumnPlan */
  List* arguments; /* of ColumnPlan */
  List* outputs;   /* of OutputPlan, of aggregates and of further columns */
  int num_keys, num_functions;
  List* scan_tlist;
} AggregateMaking;

/* Adds "name(spec)", whose argument is a column; spec NULL: a function without one. */
static void add_function(AggregateMaking* making, const char* name, const char* spec, const ColumnPlan* column,
                         const Aggref* aggref, Expr* argument) {
  appendStringInfo(&making->functions, "%s%s", making->num_functions++ > 0 ? "," : " aggs=", name);
  if (spec != NULL) {
    appendStringInfo(&making->functions, "(%s:nullable)", spec);
    making->arguments = lappend(making->arguments, column_with(column, spec, argument));
    if (aggref != NULL) ((ColumnPlan*)llast(making->arguments))->filter = aggref->aggfilter;
  }
  if (aggref != NULL && aggref->aggfilter != NULL) {
    const ColumnPlan condition = {.kind = KIND_BOOL, .width = 1};

    appendStringInfoString(&making->functions, ":filter");
    making->arguments = lappend(making->arguments, column_with(&condition, "bool", aggref->aggfilter));
  }
}

static OutputPlan* add_output(AggregateMaking* making, OutputKind kind, const ColumnPlan* values) {
  OutputPlan* output = palloc0(sizeof(OutputPlan));

  output->kind = kind;
  output->column = making->num_keys + making->num_functions;
  output->values = *values;
  making->outputs = lappend(making->outputs, output);
  return output;
}

static const ColumnPlan kInt64 = {.kind = KIND_BYVALUE, .width = 8};

/* A number: of numerics those whose scale is the same in all rows. */
static bool number(const Aggref* aggref, Expr* argument, ColumnPlan* column, const char** spec) {
  const Oid type = exprType((Node*)argument);

  if (type == NUMERICOID) {
    column->scale = decimal_scale_of((Node*)argument);
    if (column->scale < 0) return false;
    column->kind = KIND_DECIMAL, *spec = "decimal128";
    return true;
  }
  return type_number(type, exprTypmod((Node*)argument), column, spec);
}

static bool add_distinct(AggregateMaking* making, const Aggref* aggref, Expr* argument) {
  const SortGroupClause* clause = linitial_node(SortGroupClause, aggref->aggdistinct);
  ColumnPlan column = {0};
  const char* spec;

  if (list_length(aggref->aggdistinct) != 1) return false;
  if (!type_group_key(exprType((Node*)argument), exprTypmod((Node*)argument), clause->eqop, aggref->inputcollid,
                      &column, &spec))
    return false;
  switch (aggref->aggfnoid) {
    case F_COUNT_ANY:
      add_output(making, OUT_COLUMN, &kInt64);
      add_function(making, "count_distinct", spec, &column, aggref, argument);
      return true;
    case F_SUM_INT2:
    case F_SUM_INT4:
      add_output(making, OUT_COLUMN, &kInt64);
      add_function(making, "sum_distinct", spec, &column, aggref, argument);
      return true;
    default: return false;
  }
}

/* ---- sums of a CASE whose results have different scales ---- */

static Expr* int4_constant(int value, bool is_null) {
  return (Expr*)makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(value), is_null, true);
}

/* The digits behind the point of a result; null where that is null. */
static Expr* scale_of_result(Expr* result) {
  const int scale = decimal_scale_of((Node*)result);
  CaseExpr* expr;
  CaseWhen* when;
  NullTest* test;

  if (IsA(result, Const)) return int4_constant(scale, false);
  test = makeNode(NullTest);
  test->arg = result;
  test->nulltesttype = IS_NULL;
  when = makeNode(CaseWhen);
  when->expr = (Expr*)test;
  when->result = int4_constant(0, true);
  expr = makeNode(CaseExpr);
  expr->casetype = INT4OID;
  expr->args = list_make1(when);
  expr->defresult = int4_constant(scale, false);
  return (Expr*)expr;
}

/* Makes the expression of a row's digits behind the point, and finds the most there are; NULL where a result's depend
 * on its value. */
static Expr* scale_by_row(Expr* argument, int* scale) {
  const CaseExpr* expr = (const CaseExpr*)argument;
  CaseExpr* made;
  ListCell* cell;

  if (!IsA(expr, CaseExpr) || expr->defresult == NULL || expr->arg != NULL) return NULL;
  made = copyObject((CaseExpr*)expr);
  made->casetype = INT4OID;
  *scale = decimal_scale_of((Node*)expr->defresult);
  if (*scale < 0) return NULL;
  made->defresult = scale_of_result(expr->defresult);
  foreach (cell, made->args) {
    CaseWhen* when = lfirst_node(CaseWhen, cell);
    const int of_result = decimal_scale_of((Node*)when->result);

    if (of_result < 0) return NULL;
    *scale = Max(*scale, of_result);
    when->result = scale_of_result(when->result);
  }
  return (Expr*)made;
}

/* PostgreSQL's sum has as many digits behind the point as the row with the most. */
static bool add_sum_by_row(AggregateMaking* making, const Aggref* aggref, Expr* argument) {
  ColumnPlan column = {.kind = KIND_DECIMAL};
  const ColumnPlan scale = {.kind = KIND_BYVALUE, .width = 4};
  Expr* scale_expr = scale_by_row(argument, &column.scale);

  if (scale_expr == NULL) return false;
  add_output(making, OUT_SCALED, &column);
  add_function(making, "sum", "decimal128", &column, aggref, argument);
  add_function(making, "max", "i32", &scale, aggref, scale_expr);
  return true;
}

static bool add_sum(AggregateMaking* making, const Aggref* aggref, Expr* argument) {
  ColumnPlan column = {0};
  const char* spec;

  if (aggref->aggfnoid == F_SUM_NUMERIC && decimal_scale_of((Node*)argument) < 0)
    return add_sum_by_row(making, aggref, argument);
  if (!number(aggref, argument, &column, &spec)) return false;
  switch (aggref->aggfnoid) {
    case F_SUM_INT2:
    case F_SUM_INT4: add_output(making, OUT_COLUMN, &kInt64); break;
    case F_SUM_FLOAT8: add_output(making, OUT_FLOAT, &kInt64); break;
    default: add_output(making, OUT_NUMERIC, &column); break;
  }
  add_function(making, aggref->aggfnoid == F_SUM_INT8 ? "sum128" : "sum", spec, &column, aggref, argument);
  return true;
}

static bool add_average(AggregateMaking* making, const Aggref* aggref, Expr* argument) {
  ColumnPlan column = {0};
  const char* spec;

  if (!number(aggref, argument, &column, &spec)) return false;
  if (aggref->aggfnoid == F_AVG_FLOAT4 || aggref->aggfnoid == F_AVG_FLOAT8) {
    add_output(making, OUT_FLOAT, &kInt64);
    add_function(making, "avg", spec, &column, aggref, argument);
    return true;
  }
  add_output(making, OUT_AVERAGE, &column);
  add_function(making, column.kind == KIND_DECIMAL ? "sum" : "sum128", spec, &column, aggref, argument);
  add_function(making, "count", spec, &column, aggref, argument);
  return true;
}

static bool add_extreme(AggregateMaking* making, const Aggref* aggref, Expr* argument, const char* name) {
  ColumnPlan column = {0};
  const char* spec;
  bool tie;

  if (aggref->aggfnoid == F_MIN_TEXT || aggref->aggfnoid == F_MAX_TEXT) {
    const char* collation = type_collation(aggref->inputcollid, &tie);

    if (collation == NULL || strcmp(collation, "binary") != 0) return false;
    column.kind = KIND_TEXT, spec = "utf8_view(binary)";
  } else if (!number(aggref, argument, &column, &spec)) {
    return false;
  }
  add_output(making, OUT_COLUMN, &column);
  add_function(making, name, spec, &column, aggref, argument);
  return true;
}

static bool add_count(AggregateMaking* making, const Aggref* aggref, Expr* argument) {
  const ColumnPlan flag = {.kind = KIND_FLAG, .width = 1};

  add_output(making, OUT_COLUMN, &kInt64);
  if (argument == NULL) add_function(making, "count_star", NULL, NULL, aggref, NULL);
  else add_function(making, "count", "u8", &flag, aggref, argument);
  return true;
}

static bool add_aggregate(AggregateMaking* making, const Aggref* aggref) {
  Expr* argument = aggref->args != NIL ? linitial_node(TargetEntry, aggref->args)->expr : NULL;

  if (aggref->aggorder != NIL || aggref->aggdirectargs != NIL || aggref->aggvariadic || aggref->agglevelsup != 0 ||
      aggref->aggsplit != AGGSPLIT_SIMPLE || list_length(aggref->args) > 1 || making->num_functions > 250)
    return false;
  if (aggref->aggdistinct != NIL) return argument != NULL && add_distinct(making, aggref, argument);
  switch (aggref->aggfnoid) {
    case F_COUNT_: return add_count(making, aggref, NULL);
    case F_COUNT_ANY: return add_count(making, aggref, argument);
    case F_SUM_INT2:
    case F_SUM_INT4:
    case F_SUM_INT8:
    case F_SUM_FLOAT8:
    case F_SUM_NUMERIC: return add_sum(making, aggref, argument);
    case F_AVG_INT2:
    case F_AVG_INT4:
    case F_AVG_INT8:
    case F_AVG_FLOAT4:
    case F_AVG_FLOAT8:
    case F_AVG_NUMERIC: return add_average(making, aggref, argument);
    case F_MIN_INT2:
    case F_MIN_INT4:
    case F_MIN_INT8:
    case F_MIN_FLOAT4:
    case F_MIN_FLOAT8:
    case F_MIN_NUMERIC:
    case F_MIN_DATE:
    case F_MIN_TIME:
    case F_MIN_TIMESTAMP:
    case F_MIN_TIMESTAMPTZ:
    case F_MIN_OID:
    case F_MIN_TEXT:
    case F_BOOL_AND:
    case F_EVERY: return add_extreme(making, aggref, argument, "min");
    case F_MAX_INT2:
    case F_MAX_INT4:
    case F_MAX_INT8:
    case F_MAX_FLOAT4:
    case F_MAX_FLOAT8:
    case F_MAX_NUMERIC:
    case F_MAX_DATE:
    case F_MAX_TIME:
    case F_MAX_TIMESTAMP:
    case F_MAX_TIMESTAMPTZ:
    case F_MAX_OID:
    case F_MAX_TEXT:
    case F_BOOL_OR: return add_extreme(making, aggref, argument, "max");
    default: return false;
  }
}

/* The expression that a column of a plan's rows is computed by, in that plan or below it. */
static Node* origin_of(const Plan* plan, const TargetEntry* entry) {
  const Expr* expr = entry->expr;

  while (IsA(expr, Var) && plan != NULL) {
    const Var* var = (const Var*)expr;
    const List* list = NIL;

    if (var->varno == INDEX_VAR && IsA(plan, CustomScan)) {
      list = ((const CustomScan*)plan)->custom_scan_tlist;
    } else if (var->varno == OUTER_VAR || var->varno == INNER_VAR) {
      plan = var->varno == OUTER_VAR ? plan->lefttree : plan->righttree;
      if (plan != NULL) list = plan->targetlist;
    }
    if (var->varattno <= 0 || var->varattno > list_length(list)) break;
    expr = list_nth_node(TargetEntry, list, var->varattno - 1)->expr;
  }
  return (Node*)expr;
}

static bool add_keys(AggregateMaking* making, const Agg* agg) {
  const Plan* child = agg->plan.lefttree;

  if (agg->numCols > 16) return false;
  for (int i = 0; i < agg->numCols; ++i) {
    const TargetEntry* entry = list_nth(child->targetlist, agg->grpColIdx[i] - 1);
    const Oid type = exprType((Node*)entry->expr);
    const int32 typmod = exprTypmod((Node*)entry->expr);
    const Oid collation = exprCollation((Node*)entry->expr);
    Var* var = makeVar(OUTER_VAR, agg->grpColIdx[i], type, typmod, collation, 0);
    ColumnPlan column = {0};
    OutputPlan* output = palloc0(sizeof(OutputPlan));
    const char* spec;

    if (!type_group_key(type, typmod, agg->grpOperators[i], agg->grpCollations[i], &column, &spec)) {
      column.scale = decimal_scale_of(origin_of(child, entry));
      if (column.scale < 0 || agg->grpOperators[i] != lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr) return false;
      column.kind = KIND_DECIMAL, spec = "decimal128";
    }
    appendStringInfo(&making->keys, "%s%s:nullable", making->num_keys > 0 ? "," : " keys=", spec);
    making->keys_of = lappend(making->keys_of, column_with(&column, spec, (Expr*)var));
    making->scan_tlist = lappend(
        making->scan_tlist, makeTargetEntry((Expr*)copyObject(var), (AttrNumber)(making->num_keys + 1), NULL, false));
    output->column = making->num_keys++;
    output->values = column;
    making->plan.outputs = lappend(making->plan.outputs, output);
  }
  return true;
}

static void add_scan_entry(AggregateMaking* making, Expr* expr) {
  making->scan_tlist =
      lappend(making->scan_tlist,
              makeTargetEntry(copyObject(expr), (AttrNumber)(list_length(making->scan_tlist) + 1), NULL, false));
}

/* Columns beside the keys depend on them (the rest of a row whose primary key is grouped by): any row has them. */
static bool add_variables(AggregateMaking* making, const Agg* agg, const VarColumns* vars, List** positions) {
  ListCell* cell;

  foreach (cell, vars->vars[0]) {
    Var* var = lfirst(cell);
    ColumnPlan column = {0};
    const char* spec;
    int key = 0;

    while (key < agg->numCols && agg->grpColIdx[key] != var->varattno) ++key;
    if (key < agg->numCols) {
      *positions = lappend_int(*positions, key + 1);
      continue;
    }
    if (var->varattno <= 0 || !type_carried(var->vartype, &column, &spec)) return false;
    add_output(making, OUT_COLUMN, &column);
    add_function(making, "any", spec, &column, NULL, (Expr*)var);
    add_scan_entry(making, (Expr*)var);
    *positions = lappend_int(*positions, list_length(making->scan_tlist));
  }
  return true;
}

static Plan* make_hashed(Agg* agg, Plan* child) {
  Plan* plan = &agg->plan;
  AggregateMaking making = {{0}};
  VarColumns vars = {{NIL}};
  List *positions[2] = {NIL, NIL}, *targetlist, *qual, *shown = NIL;
  ListCell* cell;

  initStringInfo(&making.keys);
  initStringInfo(&making.functions);
  if (!add_keys(&making, agg)) return NULL;
  foreach (cell, making.keys_of) shown = lappend(shown, ((ColumnPlan*)lfirst(cell))->expr);
  var_columns_collect(&vars, (Node*)plan->targetlist);
  var_columns_collect(&vars, (Node*)plan->qual);
  if (vars.failed || vars.vars[1] != NIL) return NULL;
  foreach (cell, vars.aggregates) {
    if (contain_volatile_functions(lfirst(cell)) || !add_aggregate(&making, lfirst(cell))) return NULL;
    add_scan_entry(&making, lfirst(cell));
  }
  if (!add_variables(&making, agg, &vars, &positions[0])) return NULL;
  if (making.num_keys + making.num_functions == 0) return NULL;
  targetlist = (List*)var_columns_map(&vars, (Node*)plan->targetlist, positions, making.num_keys + 1);
  qual = (List*)var_columns_map(&vars, (Node*)plan->qual, positions, making.num_keys + 1);
  if (vars.failed) return NULL;

  making.plan.op = QUERN_AGGREGATE;
  making.plan.spec = psprintf("aggregate%s%s", making.keys.data, making.functions.data);
  making.plan.num_keys = making.num_keys;
  making.plan.sources[0] = source_plan_make(child, list_concat(making.keys_of, making.arguments), true, false);
  making.plan.outputs = list_concat(making.plan.outputs, making.outputs);
  making.plan.input_rows = child->plan_rows;
  making.plan.output_rows = plan->plan_rows;
  making.plan.stock = plan;
  return node_plan_make(&making.plan, list_make1(child), making.scan_tlist, targetlist, qual, shown);
}

/* ---- aggregations of sorted rows ---- */

/* The Sort that a plan is, or that a node of ours has replaced; NULL: another plan. */
static const Sort* sort_below(const Plan* plan) {
  const Plan* stock = plan;

  if (node_is_ours(plan)) stock = node_plan_of_list(((const CustomScan*)plan)->custom_private)->stock;
  return stock != NULL && IsA(stock, Sort) ? (const Sort*)stock : NULL;
}

/* Whether the columns of a sort are those of its child, one for one, and it does nothing else. */
static bool only_sorts(const Sort* sort) {
  ListCell* cell;

  if (sort->plan.initPlan != NIL) return false;
  foreach (cell, sort->plan.targetlist) {
    const Var* var = (const Var*)lfirst_node(TargetEntry, cell)->expr;

    if (!IsA(var, Const) && (!IsA(var, Var) || var->varattno != foreach_current_index(cell) + 1)) return false;
  }
  return list_length(sort->plan.targetlist) == list_length(sort->plan.lefttree->targetlist);
}

/* The column of the aggregation's results that is column `attno` of its input; 0: none. */
static AttrNumber result_column(const Agg* agg, AttrNumber attno) {
  ListCell* cell;

  foreach (cell, agg->plan.targetlist) {
    const Var* var = (const Var*)lfirst_node(TargetEntry, cell)->expr;

    if (IsA(var, Var) && var->varno == OUTER_VAR && var->varattno == attno)
      return (AttrNumber)(foreach_current_index(cell) + 1);
  }
  return 0;
}

/* The results in the order of the groups, which parents may rely on. Keys of the input's sort behind those of the
 * groups are there for aggregates that want their rows sorted. */
static Sort* sort_results(const Agg* agg, const Sort* below, Plan* made) {
  Sort* sort = copyObject((Sort*)below);
  List* targetlist = NIL;
  ListCell* cell;

  for (int i = 0; i < sort->numCols; ++i) {
    sort->sortColIdx[i] = result_column(agg, sort->sortColIdx[i]);
    if (sort->sortColIdx[i] != 0) continue;
    if (i < agg->numCols || i == 0) return NULL;
    sort->numCols = i;
  }
  foreach (cell, agg->plan.targetlist) {
    TargetEntry* entry = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));

    entry->expr = (Expr*)makeVar(OUTER_VAR, entry->resno, exprType((Node*)entry->expr), exprTypmod((Node*)entry->expr),
                                 exprCollation((Node*)entry->expr), 0);
    targetlist = lappend(targetlist, entry);
  }
  sort->plan = agg->plan;
  sort->plan.type = T_Sort;
  sort->plan.targetlist = targetlist;
  sort->plan.qual = NIL;
  sort->plan.initPlan = NIL;
  sort->plan.lefttree = made;
  return sort;
}

/* Sorting groups is less work than sorting rows. */
static Plan* make_of_sorted(Agg* agg) {
  const Sort* below = sort_below(agg->plan.lefttree);
  Plan *made, *replaced;
  Sort* sort;

  if (below == NULL || !only_sorts(below)) return NULL;
  made = make_hashed(agg, below->plan.lefttree);
  if (made == NULL) return NULL;
  sort = sort_results(agg, below, made);
  if (sort == NULL) return NULL;
  replaced = quern_sort ? replace_sort(sort, 0) : NULL;
  return replaced != NULL ? replaced : &sort->plan;
}

/* From version 16 on, DISTINCT aggregates have a Sort below, which no aggregate of ours needs. */
static Plan* without_sort(Plan* plan) {
  const Sort* sort = sort_below(plan);

  return sort != NULL && only_sorts(sort) ? sort->plan.lefttree : plan;
}

Plan* replace_aggregate(Agg* agg) {
  if (agg->aggsplit != AGGSPLIT_SIMPLE || agg->groupingSets != NIL || agg->chain != NIL) return NULL;
  switch (agg->aggstrategy) {
    case AGG_HASHED: return make_hashed(agg, agg->plan.lefttree);
    case AGG_SORTED: return make_of_sorted(agg);
    case AGG_PLAIN: return make_hashed(agg, without_sort(agg->plan.lefttree));
    default: return NULL;
  }
}
