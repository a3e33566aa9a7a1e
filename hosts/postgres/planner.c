/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes are replaced in the finished plan, as TimescaleDB does for its vectorised aggregation: the order of joins and
 * the shape of the plan stay PostgreSQL's, and every rule that the planner keeps (permissions, row-level security,
 * parameters) is kept already. A parallel plan is compared with the serial one in which nodes have been replaced.
 */
#include "quern_pg.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "common/int.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

static planner_hook_type previous_planner;

/* While its nodes are replaced. */
static const PlannedStmt* planned_statement;
static int planned_threads; /* of each node */

Oid planned_relation(Index entry) { return list_nth_node(RangeTblEntry, planned_statement->rtable, entry - 1)->relid; }

int planned_width(const Plan* plan, const Expr* expr) {
  while (plan != NULL && IsA(expr, Var)) {
    const Var* var = (const Var*)expr;
    const List* targetlist = plan->targetlist;
    const TargetEntry* entry;

    if (!IS_SPECIAL_VARNO(var->varno)) {
      const RangeTblEntry* table = list_nth_node(RangeTblEntry, planned_statement->rtable, (int)var->varno - 1);

      return table->rtekind == RTE_RELATION && var->varattno > 0 ? get_attavgwidth(table->relid, var->varattno) : 0;
    }
    if (var->varno == INDEX_VAR) {
      if (!IsA(plan, CustomScan)) return 0;
      targetlist = ((const CustomScan*)plan)->custom_scan_tlist;
    } else {
      plan = var->varno == OUTER_VAR ? plan->lefttree : plan->righttree;
      if (plan != NULL) targetlist = plan->targetlist;
    }
    entry = plan == NULL ? NULL : get_tle_by_resno((List*)targetlist, var->varattno);
    if (entry == NULL) return 0;
    expr = entry->expr;
  }
  return 0;
}

/* What our nodes cost, in shares of PostgreSQL's own: more than was measured (docs/postgres.md), so that a close race
 * goes to PostgreSQL's parallel plan. */
static const double kShareOfCost[] = {[QUERN_JOIN] = 0.25, [QUERN_AGGREGATE] = 0.2, [QUERN_SORT] = 0.45};
static const double kShareOfScan = 0.2;
/* What each further thread takes over of this. */
static const double kShareOfThread = 0.5;
/* What a nested loop that reads its inner table in order takes of what PostgreSQL expects. */
static const double kShareOfLoopInOrder = 0.7;

typedef struct Replacing {
  int replaced;
  double saved; /* of the plan's cost */
} Replacing;

/* ---- nodes ---- */

Plan* node_plan_make(const NodePlan* plan, List* children, List* scan_tlist, List* targetlist, List* qual,
                     List* shown) {
  static const CustomScanMethods* const kMethods[] = {&quern_join_methods, &quern_aggregate_methods,
                                                      &quern_sort_methods};
  CustomScan* scan = makeNode(CustomScan);
  const NodeTag tag = scan->scan.plan.type;
  NodePlan threaded = *plan;

  threaded.threads = planned_threads;
  scan->scan.plan = *plan->stock;
  scan->scan.plan.type = tag;
  scan->scan.plan.targetlist = targetlist;
  scan->scan.plan.qual = qual;
  scan->scan.plan.parallel_aware = false;
  /* The executor runs custom_plans alone. The planner finds what is below by these two (unlink_children). */
  scan->scan.plan.lefttree = linitial(children);
  scan->scan.plan.righttree = list_length(children) > 1 ? lsecond(children) : NULL;
  scan->scan.scanrelid = 0;
  scan->custom_plans = children;
  scan->custom_exprs = shown;
  scan->custom_scan_tlist = scan_tlist;
  scan->custom_private = node_plan_to_list(&threaded);
  scan->methods = kMethods[plan->op];
  return (Plan*)scan;
}

/* Of what one thread takes. */
static double share_with_threads(const NodePlan* node) { return 1 / (1 + kShareOfThread * (node->threads - 1)); }

static double cost_of_children(const Plan* plan) {
  double cost = 0;

  if (plan->lefttree != NULL) cost += plan->lefttree->total_cost;
  if (plan->righttree != NULL) {
    const Plan* right = plan->righttree;

    cost += IsA(right, Hash) ? right->lefttree->total_cost : right->total_cost;
  }
  return cost;
}

/* What a replaced node saves of the plan's cost: of its own, and of the scans whose pages it reads. A subplan in its
 * conditions takes as long as before. */
static double saved_by(const Plan* made, const Plan* plan) {
  const bool has_subplan = contain_subplans((Node*)made->qual);
  const double own = has_subplan ? 0 : Max(plan->total_cost - cost_of_children(plan), 0);
  const NodePlan* node = node_plan_of_list(((const CustomScan*)made)->custom_private);
  const double rest = share_with_threads(node);
  double saved = own * (1 - kShareOfCost[node->op] * rest);
  ListCell* cell;

  foreach (cell, ((const CustomScan*)made)->custom_plans)
    if (node->sources[foreach_current_index(cell)]->way == SOURCE_PAGES)
      saved += ((const Plan*)lfirst(cell))->total_cost * (1 - kShareOfScan * rest);
  return saved;
}

/* The same of a join in place of a nested loop: it takes about as long as the faster of that loop and a hash join. A
 * loop that reads its inner table in order is faster than PostgreSQL's costs say, and saves nothing where it goes on.
 */
static double saved_by_loop(const Plan* made, const NestLoop* loop) {
  const NodePlan* node = node_plan_of_list(((const CustomScan*)made)->custom_private);
  const List* sides = ((const CustomScan*)made)->custom_plans;
  const bool is_turned = node->hash_ms > 0;
  const Plan* probing = linitial(sides);
  const Plan* scan = is_turned ? probing : lsecond(sides);
  const double rest = share_with_threads(node);
  double own = loop->join.plan.total_cost - loop->join.plan.lefttree->total_cost;
  const double read = node->sources[is_turned ? 0 : 1]->way == SOURCE_PAGES ? kShareOfScan * rest : 1;
  const double probe = cpu_operator_cost * probing->plan_rows * kShareOfCost[QUERN_JOIN] * rest;

  if (is_turned && loop_is_in_order(loop)) {
    if (loop_expected_ms(loop) <= node->hash_ms) return 0;
    own *= kShareOfLoopInOrder;
  }
  return Max(own - scan->total_cost * read - probe, 0);
}

static Plan* replace(Plan* plan, const Plan* parent, bool collected, Replacing* replacing);

static void replace_list(List* plans, const Plan* parent, bool collected, Replacing* replacing) {
  ListCell* cell;

  foreach (cell, plans) lfirst(cell) = replace(lfirst(cell), parent, collected, replacing);
}

/* Rows that a Limit with constants wants of the sort below it; 0: unknown. */
static int64 limit_of(const Plan* parent) {
  const Limit* limit = (const Limit*)parent;
  int64 rows = 0;

  if (parent == NULL || !IsA(parent, Limit) || limit->limitOption != LIMIT_OPTION_COUNT) return 0;
  if (limit->limitCount == NULL || !IsA(limit->limitCount, Const) || ((const Const*)limit->limitCount)->constisnull)
    return 0;
  rows = DatumGetInt64(((const Const*)limit->limitCount)->constvalue);
  if (limit->limitOffset != NULL) {
    const Const* offset = (const Const*)limit->limitOffset;

    if (!IsA(offset, Const) || offset->constisnull) return 0;
    if (pg_add_s64_overflow(rows, DatumGetInt64(offset->constvalue), &rows)) return 0;
  }
  return Max(rows, 0);
}

/* Whether rows come from a join in place of a nested loop, of which there are many where it pays. */
static bool has_loop_below(const Plan* plan) {
  if (plan == NULL) return false;
  if (node_is_ours(plan) && node_plan_of_list(((const CustomScan*)plan)->custom_private)->hash_ms > 0) return true;
  return has_loop_below(plan->lefttree);
}

static Plan* replacement_of(Plan* plan, const Plan* parent) {
  double rows = 0;

  if (plan->parallel_aware) return NULL;
  if (plan->lefttree != NULL) rows += plan->lefttree->plan_rows;
  if (plan->righttree != NULL) rows += plan->righttree->plan_rows;
  if (quern_enabled != QUERN_FORCE && rows < quern_min_rows && !has_loop_below(plan)) return NULL;
  if (IsA(plan, HashJoin)) return quern_join ? replace_join((HashJoin*)plan, false) : NULL;
  if (IsA(plan, Agg)) return quern_aggregate ? replace_aggregate((Agg*)plan) : NULL;
  if (IsA(plan, Sort) && quern_sort) {
    const int64 limit = limit_of(parent);
    const Node* count = parent != NULL && IsA(parent, Limit) ? ((const Limit*)parent)->limitCount : NULL;

    /* A merge join may go back in its inner side. A limit that is no constant may be small. */
    if (parent != NULL && IsA(parent, MergeJoin) && parent->righttree == plan) return NULL;
    if (count != NULL && limit == 0 && quern_enabled != QUERN_FORCE) return NULL;
    return replace_sort((Sort*)plan, limit);
  }
  return NULL;
}

/* Whether an aggregate has the same result in any order of its rows, but for the rounding of floats. */
static bool is_unordered(const Aggref* aggref) {
  static const char* const kNames[] = {"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every"};
  const char* name = get_func_name(aggref->aggfnoid);

  if (aggref->aggorder != NIL || aggref->aggdistinct != NIL || aggref->aggfnoid >= FirstNormalObjectId) return false;
  for (int i = 0; i < lengthof(kNames); ++i)
    if (name != NULL && strcmp(name, kNames[i]) == 0) return true;
  return false;
}

/* Whether an aggregation wants its rows in an order, or gets values that are in theirs. */
static bool find_ordered(Node* node, void* context) {
  if (node == NULL) return false;
  if (IsA(node, Aggref) && !is_unordered((const Aggref*)node)) return true;
  return expression_tree_walker(node, find_ordered, context);
}

/* Whether a node reads all rows of its outer child, and these may come in any order. `collected`: whether its parent
 * does so. */
static bool collects(const Plan* plan, bool collected) {
  switch (nodeTag(plan)) {
    case T_Sort:
    case T_Hash: return true;
    case T_Agg: {
      const Agg* agg = (const Agg*)plan;

      if (agg->aggstrategy != AGG_PLAIN && agg->aggstrategy != AGG_HASHED) return false;
      return !find_ordered((Node*)plan->targetlist, NULL) && !find_ordered((Node*)plan->qual, NULL);
    }
    case T_HashJoin:
    case T_NestLoop:
    case T_Append:
    case T_Result:
    case T_SubqueryScan: return collected;
    default: return false;
  }
}

/* Whether the inner side of a nested loop is expected to run once, whatever the outer row is. */
static bool runs_once(const Plan* plan) {
  return IsA(plan, NestLoop) && plan->lefttree->plan_rows <= 1 && ((const NestLoop*)plan)->nestParams == NIL;
}

static Plan* loop_replacement(Plan* plan) {
  const double rows = plan->lefttree->plan_rows;

  if (!quern_loop || !quern_join || plan->parallel_aware) return NULL;
  /* It is run again for each value of a parameter. */
  if (!bms_is_empty(plan->extParam)) return NULL;
  /* One row of an index stays one row. */
  if (quern_enabled != QUERN_FORCE && rows <= 1 && IsA(plan->lefttree, IndexScan)) return NULL;
  return replace_loop((NestLoop*)plan, has_loop_below(plan->lefttree));
}

/* Replaces what can be, from the leaves up. Below a Gather, plans run in other processes and stay as they are. */
static Plan* replace(Plan* plan, const Plan* parent, bool collected, Replacing* replacing) {
  bool collects_rows;
  Plan* made;

  if (plan == NULL || IsA(plan, Gather) || IsA(plan, GatherMerge)) return plan;
  collects_rows = collects(plan, collected);
  plan->lefttree = replace(plan->lefttree, plan, collects_rows, replacing);
  plan->righttree = replace(plan->righttree, plan, collected && runs_once(plan), replacing);
  switch (nodeTag(plan)) {
    case T_Append: replace_list(((Append*)plan)->appendplans, plan, collects_rows, replacing); break;
    case T_MergeAppend: replace_list(((MergeAppend*)plan)->mergeplans, plan, false, replacing); break;
    case T_SubqueryScan:
      ((SubqueryScan*)plan)->subplan = replace(((SubqueryScan*)plan)->subplan, plan, collects_rows, replacing);
      break;
    default: break;
  }
  if (!IsA(plan, NestLoop)) made = replacement_of(plan, parent);
  else made = collected ? loop_replacement(plan) : NULL;
  if (made == NULL) return plan;
  ++replacing->replaced;
  if (node_is_ours(made))
    replacing->saved += IsA(plan, NestLoop) ? saved_by_loop(made, (NestLoop*)plan) : saved_by(made, plan);
  return made;
}

/* Not where rows may be read again in a newer version, one at a time (EvalPlanQual). */
static bool can_replace(const PlannedStmt* statement) {
  return (statement->commandType == CMD_SELECT || statement->commandType == CMD_INSERT) && statement->rowMarks == NIL &&
         !statement->hasModifyingCTE && statement->planTree != NULL;
}

/* Whether a plan that can go back is to go on doing so: a cursor without SCROLL and NO SCROLL scrolls where its plan
 * can. Cursors alone have FAST_PLAN. */
static bool may_go_back(int cursor_options) {
  if ((cursor_options & CURSOR_OPT_SCROLL) != 0) return true;
  return (cursor_options & CURSOR_OPT_FAST_PLAN) != 0 && (cursor_options & CURSOR_OPT_NO_SCROLL) == 0;
}

/* Leaves the children of our nodes in custom_plans alone, until the executor begins: a plan that is kept is copied, and
 * each further pointer would be a further copy of all that is below. */
static void unlink_children(Plan* plan) {
  const List* children = NIL;
  ListCell* cell;

  if (plan == NULL) return;
  if (node_is_ours(plan)) {
    children = ((CustomScan*)plan)->custom_plans;
    plan->lefttree = plan->righttree = NULL;
  } else if (IsA(plan, Append)) {
    children = ((Append*)plan)->appendplans;
  } else if (IsA(plan, MergeAppend)) {
    children = ((MergeAppend*)plan)->mergeplans;
  } else if (IsA(plan, SubqueryScan)) {
    unlink_children(((SubqueryScan*)plan)->subplan);
  }
  unlink_children(plan->lefttree);
  unlink_children(plan->righttree);
  foreach (cell, children) unlink_children(lfirst(cell));
}

static Replacing replace_all(PlannedStmt* statement, int cursor_options, int threads) {
  Replacing replacing = {0};
  const bool went_back = ExecSupportsBackwardScan(statement->planTree);
  ListCell* cell;

  planned_statement = statement;
  planned_threads = threads;
  statement->planTree = replace(statement->planTree, NULL, false, &replacing);
  foreach (cell, statement->subplans) {
    Plan* subplan = lfirst(cell);

    /* Workers run it each by themselves. */
    if (subplan != NULL && statement->parallelModeNeeded && subplan->parallel_safe) continue;
    lfirst(cell) = replace(subplan, NULL, false, &replacing);
  }
  if (replacing.replaced > 0 && may_go_back(cursor_options) && went_back &&
      !ExecSupportsBackwardScan(statement->planTree))
    statement->planTree = materialize_finished_plan(statement->planTree);
  unlink_children(statement->planTree);
  foreach (cell, statement->subplans) unlink_children(lfirst(cell));
  return replacing;
}

static PlannedStmt* plan_query(Query* query, const char* text, int options, ParamListInfo params) {
  return previous_planner != NULL ? previous_planner(query, text, options, params)
                                  : standard_planner(query, text, options, params);
}

/* As standard_planner decides it. */
static bool may_be_parallel(Query* query, int options) {
  return (options & CURSOR_OPT_PARALLEL_OK) != 0 && max_parallel_workers_per_gather > 0 && IsUnderPostmaster &&
         query->commandType == CMD_SELECT && !query->hasModifyingCTE && !IsParallelWorker() &&
         max_parallel_hazard(query) != PROPARALLEL_UNSAFE;
}

/* As compute_parallel_worker counts them: one more for each three times that a table is larger. */
static int workers_for_table(Oid table) {
  Relation relation = table_open(table, NoLock);
  int workers = RelationUsesLocalBuffers(relation) ? 0 : RelationGetParallelWorkers(relation, -1);

  if (workers < 0) {
    const double pages = RelationGetNumberOfBlocks(relation);
    double threshold = Max(min_parallel_table_scan_size, 1);

    for (workers = 0; pages >= threshold; threshold *= 3) ++workers;
  }
  table_close(relation, NoLock);
  return workers;
}

/* The most workers for one of the tables that a plan scans as a whole, or that a nested loop of it may come to. */
static int workers_for(const Plan* plan, const Plan* parent) {
  int workers = 0;
  const List* children = NIL;
  const ListCell* cell;

  if (plan == NULL) return 0;
  if (IsA(plan, SeqScan) || (IsA(plan, IndexScan) && parent != NULL && IsA(parent, NestLoop)))
    return workers_for_table(planned_relation(((const Scan*)plan)->scanrelid));
  if (IsA(plan, Append)) children = ((const Append*)plan)->appendplans;
  else if (IsA(plan, MergeAppend)) children = ((const MergeAppend*)plan)->mergeplans;
  else if (IsA(plan, SubqueryScan)) workers = workers_for(((const SubqueryScan*)plan)->subplan, plan);
  foreach (cell, children) workers = Max(workers, workers_for(lfirst(cell), plan));
  workers = Max(workers, workers_for(plan->lefttree, IsA(plan, Memoize) ? parent : plan));
  return Max(workers, workers_for(plan->righttree, plan));
}

/* As many as a parallel plan would have processes. */
static int threads_for(const PlannedStmt* statement) {
  int workers;
  const ListCell* cell;

  if (quern_threads > 0) return quern_threads;
  planned_statement = statement;
  workers = workers_for(statement->planTree, NULL);
  foreach (cell, statement->subplans) workers = Max(workers, workers_for(lfirst(cell), NULL));
  return 1 + Min(workers, Min(max_parallel_workers_per_gather, max_parallel_workers));
}

/* A parallel plan is started, and divides what the serial one costs among no more processes than there may be
 * (get_parallel_divisor). */
static double least_parallel_cost(double serial_cost) {
  const int workers = max_parallel_workers_per_gather;
  const double leader = parallel_leader_participation ? Max(1 - 0.3 * workers, 0) : 0;

  return parallel_setup_cost + serial_cost / (workers + leader);
}

/* Nodes of ours run in one process. The serial plan with our nodes is taken unless a parallel one is expected to cost
 * less, which is planned only where it could. The order of joins is PostgreSQL's in both: cheaper hash joins in its
 * search would lead it to other orders, some of which are far slower where its estimates are wrong. */
static PlannedStmt* quern_planner(Query* query, const char* text, int options, ParamListInfo params) {
  PlannedStmt *serial, *parallel;
  Query* copy;
  Replacing replacing;
  double cost, rest, parallel_cost;

  if (quern_enabled == QUERN_OFF) return plan_query(query, text, options, params);
  if (!may_be_parallel(query, options)) {
    serial = plan_query(query, text, options, params);
    if (can_replace(serial)) replace_all(serial, options, Max(quern_threads, 1));
    return serial;
  }
  copy = copyObject(query);
  serial = plan_query(query, text, options & ~CURSOR_OPT_PARALLEL_OK, params);
  if (!can_replace(serial)) return plan_query(copy, text, options, params);
  cost = serial->planTree->total_cost;
  replacing = replace_all(serial, options, threads_for(serial));
  rest = cost - replacing.saved;
  if (plan_disabled_nodes(serial->planTree) == 0) {
    if (replacing.replaced > 0 && (quern_enabled == QUERN_FORCE || rest <= least_parallel_cost(cost))) return serial;
    if (cost <= parallel_setup_cost && !parallel_is_forced()) return serial;
  }
  parallel = plan_query(copy, text, options, params);
  if (!parallel->parallelModeNeeded) return serial;
  parallel_cost = parallel->planTree->total_cost;
  parallel_cost -= replace_all(parallel, options, Max(quern_threads, 1)).saved;
  ereport(DEBUG1, errmsg_internal("quern: the parallel plan costs " INT64_FORMAT ", the serial one " INT64_FORMAT
                                  ", of which " INT64_FORMAT " are saved",
                                  (int64)parallel_cost, (int64)cost, (int64)replacing.saved));
  if (replacing.replaced == 0) return parallel;
  if (plan_disabled_nodes(serial->planTree) > plan_disabled_nodes(parallel->planTree)) return parallel;
  return quern_enabled == QUERN_FORCE || rest < parallel_cost ? serial : parallel;
}

void planner_install(void) {
  previous_planner = planner_hook;
  planner_hook = quern_planner;
}
