/* SPDX-License-Identifier: Apache-2.0
 *
 * A HashJoin as "join.KIND keys=.. build=.. probe=..": the outer side probes, the inner side is built.
 */
#include "quern_pg.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

typedef struct JoinMaking {
  NodePlan plan;
  StringInfoData keys, residual;
  int num_keys;
  List* keys_of[2]; /* of ColumnPlan */
  List* residuals_of[2];
  List* payload_of[2];
} JoinMaking;

static const char* kind_of(int type) {
  switch (type) {
    case JOIN_INNER: return "inner";
    case JOIN_LEFT: return "left";
    case JOIN_RIGHT: return "right";
    case JOIN_FULL: return "full";
    case JOIN_SEMI: return "semi";
    case JOIN_ANTI: return "anti";
    default: return join_of_build_rows(type);
  }
}

/* A cast that changes no bits (varchar to text) has the column below it. */
static Expr* bare(Expr* expr) {
  while (IsA(expr, RelabelType)) expr = ((RelabelType*)expr)->arg;
  return expr;
}

static bool add_key(JoinMaking* making, Node* clause) {
  const OpExpr* op = (const OpExpr*)clause;
  ColumnPlan columns[2] = {{0}};
  const char* spec;

  if (!IsA(op, OpExpr) || list_length(op->args) != 2 || making->num_keys == 16) return false;
  if (!type_join_keys(op->opno, op->inputcollid, columns, &spec)) return false;
  appendStringInfo(&making->keys, "%s%s:nullable", making->num_keys++ > 0 ? "," : "", spec);
  for (int side = 0; side < 2; ++side)
    making->keys_of[side] =
        lappend(making->keys_of[side], column_with(&columns[side], spec, bare(list_nth(op->args, side))));
  return true;
}

/* The name of a comparison of two values of one type in a spec, or NULL. */
static const char* comparison_of(Oid operator, const TypeCacheEntry* type) {
  static const char* const kNames[] = {NULL, "lt", "le", "eq", "ge", "gt"};
  const int strategy = get_op_opfamily_strategy(operator, type->btree_opf);
  const Oid negator = get_negator(operator);

  if (strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber) return kNames[strategy];
  if (OidIsValid(negator) && get_op_opfamily_strategy(negator, type->btree_opf) == BTEqualStrategyNumber) return "ne";
  return NULL;
}

/* Which side an expression belongs to: 0 outer, 1 inner, -1 neither or both. */
static int side_of(Node* expr) {
  VarColumns columns = {{NIL}};

  var_columns_collect(&columns, expr);
  if (columns.failed || columns.aggregates != NIL || contain_volatile_functions(expr)) return -1;
  if (columns.vars[0] != NIL && columns.vars[1] == NIL) return 0;
  return columns.vars[1] != NIL && columns.vars[0] == NIL ? 1 : -1;
}

/* A condition of an outer, semi or anti join: outer OP inner, of numbers. Both are computed for all rows, PostgreSQL
 * computes them for those whose keys are equal. */
static bool add_residual(JoinMaking* making, Node* clause) {
  const OpExpr* op = (const OpExpr*)clause;
  Node* args[2];
  Oid operator;
  const TypeCacheEntry* type;
  ColumnPlan column = {0};
  const char *spec, *comparison;

  if (!IsA(op, OpExpr) || list_length(op->args) != 2) return false;
  operator = op->opno;
  args[0] = linitial(op->args);
  args[1] = lsecond(op->args);
  if (side_of(args[0]) == 1) {
    Node* first = args[0];

    args[0] = args[1];
    args[1] = first;
    operator = get_commutator(operator);
  }
  if (!OidIsValid(operator) || side_of(args[0]) != 0 || side_of(args[1]) != 1) return false;
  if (exprType(args[0]) != exprType(args[1])) return false;
  type = lookup_type_cache(exprType(args[0]), TYPECACHE_BTREE_OPFAMILY);
  if (exprType(args[0]) == NUMERICOID || !type_number(exprType(args[0]), -1, &column, &spec)) return false;
  column.type = spec;
  if (!expression_cannot_fail(args[0], &column) || !expression_cannot_fail(args[1], &column)) return false;
  comparison = comparison_of(operator, type);
  if (comparison == NULL || list_length(making->residuals_of[0]) == 16) return false;
  appendStringInfo(&making->residual, "%s%s:nullable:%s", making->residual.len > 0 ? "," : " residual=", spec,
                   comparison);
  for (int side = 0; side < 2; ++side)
    making->residuals_of[side] = lappend(making->residuals_of[side], column_with(&column, spec, (Expr*)args[side]));
  return true;
}

/* The columns of both sides that come out: probe side first. Returns false where one cannot be carried. */
static bool add_payload(JoinMaking* making, VarColumns* vars, StringInfo spec, List** scan_tlist, List* positions[2]) {
  for (int side = 0; side < 2; ++side) {
    static const char* const kNames[] = {" probe=", " build="};
    ListCell* cell;

    foreach (cell, vars->vars[side]) {
      Var* var = lfirst(cell);
      OutputPlan* output = palloc0(sizeof(OutputPlan));
      const char* type;

      if (var->varattno <= 0 || !type_carried(var->vartype, &output->values, &type)) return false;
      appendStringInfo(spec, "%s%s:nullable", foreach_current_index(cell) == 0 ? kNames[side] : ",", type);
      output->column = list_length(making->plan.outputs);
      output->values.type = type;
      making->plan.outputs = lappend(making->plan.outputs, output);
      making->payload_of[side] = lappend(making->payload_of[side], column_with(&output->values, type, (Expr*)var));
      *scan_tlist = lappend(*scan_tlist, makeTargetEntry((Expr*)copyObject(var),
                                                         (AttrNumber)(list_length(*scan_tlist) + 1), NULL, false));
      positions[side] = lappend_int(positions[side], list_length(*scan_tlist));
    }
  }
  return true;
}

/* The mean bytes of the strings of a key, which tuples are to hold; 0 for several such keys, as all of them get the
 * same room. */
static int key_bytes_of(const JoinMaking* making, const Plan* child) {
  const ColumnPlan* key = NULL;
  const TargetEntry* entry;
  ListCell* cell;

  foreach (cell, making->keys_of[1]) {
    const ColumnPlan* column = lfirst(cell);

    if (strncmp(column->type, "binary_view", strlen("binary_view")) != 0) continue;
    if (key != NULL) return 0;
    key = column;
  }
  if (key == NULL || !IsA(key->expr, Var)) return 0;
  entry = get_tle_by_resno(child->targetlist, ((const Var*)key->expr)->varattno);
  return entry == NULL ? 0 : planned_width(child, entry->expr);
}

static bool add_conditions(JoinMaking* making, const HashJoin* join) {
  ListCell* cell;

  initStringInfo(&making->keys);
  initStringInfo(&making->residual);
  foreach (cell, join->hashclauses)
    if (!add_key(making, lfirst(cell))) return false;
  if (join->join.jointype == JOIN_INNER) return true;
  foreach (cell, join->join.joinqual)
    if (!add_residual(making, lfirst(cell))) return false;
  return true;
}

/* Whether a plan computes expressions that may raise errors, as far as can be seen. */
static bool may_raise(const Plan* plan) {
  const List* children = NIL;
  ListCell* cell;

  if (plan == NULL) return false;
  if (contain_leaked_vars((Node*)plan->qual) || contain_leaked_vars((Node*)plan->targetlist)) return true;
  if (IsA(plan, SubqueryScan) && may_raise(((const SubqueryScan*)plan)->subplan)) return true;
  if (IsA(plan, Append)) children = ((const Append*)plan)->appendplans;
  foreach (cell, children)
    if (may_raise(lfirst(cell))) return true;
  return may_raise(plan->lefttree) || may_raise(plan->righttree);
}

/* Whether a row of the probe side is read before the build side, which is then not read where there is none. Errors of
 * the build side depend on it, so that the rule is PostgreSQL's own (ExecHashJoin). A node reads a batch and not a row:
 * the batch must not raise what its first row would not. */
static bool probes_first(const HashJoin* join) {
  const JoinType type = join->join.jointype;
  const Plan *outer = join->join.plan.lefttree, *inner = join->join.plan.righttree;

  if (type == JOIN_RIGHT || type == JOIN_FULL || join_of_build_rows(type) != NULL || may_raise(outer)) return false;
  return type == JOIN_LEFT || type == JOIN_ANTI || outer->startup_cost < inner->total_cost;
}

/* The types of columns, as a pipeline names them. */
static char* types_of(const List* wanted) {
  StringInfoData types;
  ListCell* cell;

  initStringInfo(&types);
  foreach (cell, wanted)
    appendStringInfo(&types, "%s%s:nullable", foreach_current_index(cell) > 0 ? "," : "",
                     ((const ColumnPlan*)lfirst(cell))->type);
  return types.data;
}

Plan* replace_join(HashJoin* join, bool build_by_rows) {
  Plan* plan = &join->join.plan;
  Plan* children[2] = {plan->lefttree, plan->righttree->lefttree};
  JoinMaking making = {{0}};
  VarColumns vars = {{NIL}};
  StringInfoData spec;
  List *scan_tlist = NIL, *positions[2] = {NIL, NIL}, *conditions = NIL, *targetlist;
  const char* kind = kind_of(join->join.jointype);

  if (kind == NULL || plan->righttree->parallel_aware || !add_conditions(&making, join)) return NULL;
  /* Behind an inner join, conditions of the join are conditions of its rows. */
  conditions = list_copy(plan->qual);
  if (join->join.jointype == JOIN_INNER) conditions = list_concat(conditions, join->join.joinqual);
  var_columns_collect(&vars, (Node*)plan->targetlist);
  /* PostgreSQL computes these in the node, row by row. */
  vars.allows_subplans = true;
  var_columns_collect(&vars, (Node*)conditions);
  initStringInfo(&spec);
  appendStringInfo(&spec, "join.%s keys=%s", kind, making.keys.data);
  /* A semi join may show the columns of a row that it has found. */
  if (vars.vars[1] != NIL && (join->join.jointype == JOIN_SEMI || join->join.jointype == JOIN_ANTI)) return NULL;
  if (vars.vars[0] != NIL && join_of_build_rows(join->join.jointype) != NULL) return NULL;
  if (vars.failed || !add_payload(&making, &vars, &spec, &scan_tlist, positions)) return NULL;
  appendStringInfoString(&spec, making.residual.data);

  making.plan.key_bytes = key_bytes_of(&making, children[1]); /* before source_plan_make changes the keys' columns */
  targetlist = (List*)var_columns_map(&vars, (Node*)plan->targetlist, positions, 0);
  conditions = (List*)var_columns_map(&vars, (Node*)conditions, positions, 0);
  if (vars.failed) return NULL;
  for (int side = 0; side < 2; ++side) {
    List* wanted = list_concat(list_concat(making.keys_of[side], making.payload_of[side]), making.residuals_of[side]);

    making.plan.sources[side] = source_plan_make(children[side], wanted, false, side == 1 && build_by_rows);
    if (side == 0) making.plan.sources[side]->types = types_of(wanted);
  }
  making.plan.op = QUERN_JOIN;
  making.plan.spec = spec.data;
  making.plan.num_keys = making.num_keys;
  making.plan.join_type = join->join.jointype;
  making.plan.probes_first = probes_first(join);
  making.plan.input_rows = children[0]->plan_rows + children[1]->plan_rows;
  making.plan.output_rows = plan->plan_rows;
  making.plan.stock = plan;
  return node_plan_make(&making.plan, list_make2(children[0], children[1]), scan_tlist, targetlist, conditions,
                        join->hashclauses);
}
