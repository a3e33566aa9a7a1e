/* SPDX-License-Identifier: Apache-2.0
 *
 * Nested loops that look up an index for each row of their outer side. Often more outer rows come than the planner
 * expects, or each lookup reads pages that are in no cache. Such a loop takes seconds where a hash join would read the
 * inner table once. The node in its place begins as the loop and measures it. It switches when the outer rows that are
 * still expected would take longer to look up than the inner table takes to read: it builds a hash table of them, which
 * the inner table probes. After as many rows as the planner expected, it expects as many again as it has seen, so that
 * it takes at most about twice as long as the faster of the two ways.
 */
#include "quern_pg.h"

#include <math.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* ---- planning: the hash join that a loop stands for ---- */

/* Milliseconds: a page that is read from shared buffers, and one that is not; a row that probes, and one that comes by
 * a slot; a row that is looked up where its neighbours were just before, and a row that is found. Far from them it
 * takes ten times as long, which the loop finds out. A loop that is expected to be kTooSlow times as slow does not
 * begin. */
static const double kPageMs = 0.001, kFarPageMs = 0.02, kProbeMs = 0.00001, kSlotMs = 0.00012, kLookupMs = 0.001,
                    kFetchMs = 0.0003, kTooSlow = 3;

enum { kFewestTimed = 64, kRowsBetween = 256, kRowsTimed = 8 };

typedef struct LoopMaking {
  const NestLoop* loop;
  const IndexScan* inner;
  List* inner_tlist;  /* of the inner table's scan: what the loop reads, then columns of conditions */
  List* scan_quals;   /* of the inner table alone */
  List* hash_clauses; /* inner column = outer expression */
  List* join_quals;
  bool reads_slots; /* PostgreSQL decides these, row by row */
  bool failed;
} LoopMaking;

/* Positions of columns in the rows of the inner scan, to which they are added. */
static AttrNumber inner_position(LoopMaking* making, const Var* var) {
  ListCell* cell;
  TargetEntry* entry;

  foreach (cell, making->inner_tlist)
    if (equal(lfirst_node(TargetEntry, cell)->expr, var)) return (AttrNumber)(foreach_current_index(cell) + 1);
  entry = makeTargetEntry((Expr*)copyObject(var), (AttrNumber)(list_length(making->inner_tlist) + 1), NULL, true);
  making->inner_tlist = lappend(making->inner_tlist, entry);
  return entry->resno;
}

static const Var* outer_of_param(const NestLoop* loop, int number) {
  ListCell* cell;

  foreach (cell, loop->nestParams) {
    const NestLoopParam* param = lfirst(cell);

    if (param->paramno == number) return param->paramval;
  }
  return NULL;
}

/* Whether an expression has parameters of the loop. */
static bool is_of_loop(Node* node, void* loop) {
  if (node == NULL) return false;
  if (IsA(node, Param) && ((const Param*)node)->paramkind == PARAM_EXEC)
    return outer_of_param(loop, ((const Param*)node)->paramid) != NULL;
  return expression_tree_walker(node, is_of_loop, loop);
}

/* A condition of the inner scan as one of a hash join whose outer side is that scan. */
static Node* turn_scan(Node* node, LoopMaking* making) {
  if (node == NULL) return NULL;
  if (IsA(node, Param) && ((const Param*)node)->paramkind == PARAM_EXEC) {
    const Var* outer = outer_of_param(making->loop, ((const Param*)node)->paramid);
    Var* var;

    if (outer == NULL) return copyObject(node);
    if (!IsA(outer, Var) || outer->varno != OUTER_VAR) {
      making->failed = true;
      return node;
    }
    var = (Var*)copyObject((void*)outer);
    var->varno = INNER_VAR;
    return (Node*)var;
  }
  if (IsA(node, Var)) {
    Var* var = copyObject((Var*)node);

    if (var->varno != making->inner->scan.scanrelid || var->varattno <= 0) making->failed = true;
    else var->varattno = inner_position(making, (const Var*)node);
    var->varno = OUTER_VAR;
    return (Node*)var;
  }
  if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan)) {
    making->failed = true;
    return node;
  }
  return expression_tree_mutator(node, turn_scan, making);
}

/* An expression of the loop as one of that hash join: the sides change places. */
static Node* turn_sides(Node* node, void* context) {
  if (node == NULL) return NULL;
  if (IsA(node, Var)) {
    Var* var = copyObject((Var*)node);

    if (var->varno == OUTER_VAR) var->varno = INNER_VAR;
    else if (var->varno == INNER_VAR) var->varno = OUTER_VAR;
    return (Node*)var;
  }
  return expression_tree_mutator(node, turn_sides, context);
}

/* Whether all columns of an expression are of one side, and there is one. */
static bool is_of_side(Node* expr, int varno) {
  VarColumns columns = {{NIL}};

  var_columns_collect(&columns, expr);
  if (columns.failed || columns.aggregates != NIL) return false;
  return columns.vars[varno == INNER_VAR] != NIL && columns.vars[varno != INNER_VAR] == NIL;
}

/* A comparison by which a hash join finds its rows: the column of the inner scan comes first. NULL: it is none. */
static OpExpr* hash_clause(Node* clause) {
  OpExpr* op = (OpExpr*)clause;
  ColumnPlan columns[2] = {{0}};
  const char* spec;

  if (!IsA(op, OpExpr) || list_length(op->args) != 2) return NULL;
  if (is_of_side(linitial(op->args), INNER_VAR) && is_of_side(lsecond(op->args), OUTER_VAR)) {
    if (!OidIsValid(get_commutator(op->opno))) return NULL;
    op = copyObject(op);
    CommuteOpExpr(op);
  }
  if (!is_of_side(linitial(op->args), OUTER_VAR) || !is_of_side(lsecond(op->args), INNER_VAR)) return NULL;
  return type_join_keys(op->opno, op->inputcollid, columns, &spec) ? op : NULL;
}

/* A comparison of columns and constants of a type that PostgreSQL has by itself: it raises no error, though those of
 * numerics are not marked as leakproof. */
static bool is_plain_comparison(const Node* clause) {
  const OpExpr* op = (const OpExpr*)clause;
  bool negated = false;
  ListCell* cell;

  if (!IsA(op, OpExpr) || list_length(op->args) != 2 || op->opno >= FirstNormalObjectId) return false;
  foreach (cell, op->args) {
    const Node* arg = lfirst(cell);

    if (IsA(arg, RelabelType)) arg = (const Node*)((const RelabelType*)arg)->arg;
    if (!IsA(arg, Var) && !IsA(arg, Const)) return false;
  }
  return comparison_strategy(op->opno, exprType(linitial(op->args)), &negated) != 0;
}

static const ColumnPlan kBool = {.kind = KIND_BOOL, .type = "bool"};

/* Whether both sides may be computed for rows that the index does not find. It has every row of the outer side. */
static bool keys_cannot_fail(const OpExpr* key, bool of_index) {
  const Node *inner = linitial(key->args), *outer = lsecond(key->args);

  while (IsA(inner, RelabelType)) inner = (const Node*)((const RelabelType*)inner)->arg;
  while (IsA(outer, RelabelType)) outer = (const Node*)((const RelabelType*)outer)->arg;
  return IsA(inner, Var) && (of_index || IsA(outer, Var));
}

static void add_scan_qual(LoopMaking* making, Node* clause, bool of_index) {
  Node* turned;
  OpExpr* key;

  if (!is_of_loop(clause, (void*)making->loop)) {
    /* It is decided for rows that the index would not have found: it has to be free of errors. */
    if (!expression_cannot_fail(clause, &kBool)) {
      if (contain_leaked_vars(clause) && !is_plain_comparison(clause)) making->failed = true;
      making->reads_slots = true;
    }
    making->scan_quals = lappend(making->scan_quals, copyObject(clause));
    return;
  }
  turned = turn_scan(clause, making);
  if (making->failed) return;
  key = hash_clause(turned);
  if (key != NULL && keys_cannot_fail(key, of_index)) making->hash_clauses = lappend(making->hash_clauses, key);
  else making->join_quals = lappend(making->join_quals, turned);
}

/* The kind of hash join that keeps the loop's outer rows in its table. */
static bool turned_kind(JoinType type, JoinType* turned) {
  switch (type) {
    case JOIN_INNER: *turned = JOIN_INNER; return true;
    case JOIN_LEFT: *turned = JOIN_RIGHT; return true;
    case JOIN_SEMI: *turned = kJoinRightSemi; return true;
    case JOIN_ANTI: *turned = kJoinRightAnti; return true;
    default: return false;
  }
}

/* A partial index has decided conditions that the scan does not show. */
static bool is_partial(Oid index) {
  Relation relation = index_open(index, AccessShareLock);
  const bool found = RelationGetIndexPredicate(relation) != NIL;

  index_close(relation, NoLock);
  return found;
}

/* A scan of an index that gives columns of its table and nothing else: expressions may have parameters of the loop, or
 * fail for rows that the index does not find. */
static const IndexScan* index_scan_of(const Plan* plan) {
  const IndexScan* scan;
  ListCell* cell;

  if (IsA(plan, Memoize)) plan = plan->lefttree;
  if (!IsA(plan, IndexScan) || plan->initPlan != NIL) return NULL;
  scan = (const IndexScan*)plan;
  foreach (cell, plan->targetlist)
    if (!IsA(lfirst_node(TargetEntry, cell)->expr, Var)) return NULL;
  return scan->indexorderby == NIL && !is_partial(scan->indexid) ? scan : NULL;
}

/* From here on, as ANALYZE sees it, the tuples of a table lie in the order of an index. */
static const double kInOrder = 0.9;

bool loop_is_in_order(const NestLoop* loop) {
  const IndexScan* scan = index_scan_of(loop->join.plan.righttree);
  Relation index = index_open(scan->indexid, AccessShareLock);
  const AttrNumber attno = index->rd_index->indkey.values[0];
  HeapTuple statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(index->rd_index->indrelid),
                                         Int16GetDatum(attno), BoolGetDatum(false));
  bool in_order = false;
  AttStatsSlot slot;

  index_close(index, NoLock);
  if (!HeapTupleIsValid(statistics)) return false;
  if (get_attstatsslot(&slot, statistics, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS)) {
    in_order = slot.nnumbers > 0 && fabs(slot.numbers[0]) >= kInOrder;
    free_attstatsslot(&slot);
  }
  ReleaseSysCache(statistics);
  return in_order;
}

/* A scan of the whole inner table, with the conditions of that table alone. */
static SeqScan* whole_scan(const LoopMaking* making, double rows, double pages) {
  SeqScan* scan = makeNode(SeqScan);
  const NodeTag tag = scan->scan.plan.type;
  ListCell* cell;

  scan->scan = making->inner->scan;
  scan->scan.plan.type = tag;
  scan->scan.plan.targetlist = making->inner_tlist;
  scan->scan.plan.qual = making->scan_quals;
  scan->scan.plan.plan_rows = rows;
  scan->scan.plan.startup_cost = 0;
  scan->scan.plan.total_cost =
      pages * seq_page_cost + rows * (cpu_tuple_cost + cpu_operator_cost * list_length(making->scan_quals));
  scan->scan.plan.extParam = bms_copy(scan->scan.plan.extParam);
  scan->scan.plan.allParam = bms_copy(scan->scan.plan.allParam);
  foreach (cell, making->loop->nestParams) {
    const int number = ((const NestLoopParam*)lfirst(cell))->paramno;

    scan->scan.plan.extParam = bms_del_member(scan->scan.plan.extParam, number);
    scan->scan.plan.allParam = bms_del_member(scan->scan.plan.allParam, number);
  }
  return scan;
}

/* Gives the loop rows of the outer side, whose state is the node's. */
static Plan* gate_of(const Plan* outer) {
  CustomScan* gate = makeNode(CustomScan);
  ListCell* cell;

  gate->scan.plan.plan_rows = outer->plan_rows;
  gate->scan.plan.plan_width = outer->plan_width;
  gate->methods = &quern_gate_methods;
  foreach (cell, outer->targetlist) {
    const TargetEntry* entry = lfirst_node(TargetEntry, cell);
    Expr* var = (Expr*)makeVar(INDEX_VAR, entry->resno, exprType((Node*)entry->expr), exprTypmod((Node*)entry->expr),
                               exprCollation((Node*)entry->expr), 0);

    gate->scan.plan.targetlist =
        lappend(gate->scan.plan.targetlist, makeTargetEntry(var, entry->resno, NULL, entry->resjunk));
    gate->custom_scan_tlist =
        lappend(gate->custom_scan_tlist, makeTargetEntry(var, entry->resno, NULL, entry->resjunk));
  }
  return (Plan*)gate;
}

/* The loop that gives the rows of the hash join's scan tuple. Its outer rows come through a gate. */
static NestLoop* gated_loop(const LoopMaking* making, const CustomScan* made) {
  NestLoop* loop = palloc(sizeof(NestLoop));
  const List* inner_tlist = making->inner->scan.plan.targetlist;

  *loop = *making->loop;
  loop->join.plan.lefttree = gate_of(making->loop->join.plan.lefttree);
  loop->join.plan.targetlist = (List*)turn_sides((Node*)made->custom_scan_tlist, NULL);
  loop->join.plan.qual = NIL;
  loop->join.plan.initPlan = NIL;
  /* These are conditions of the node's rows. Without them the first row of the index need not be the only one. */
  if (loop->join.jointype == JOIN_INNER) {
    loop->join.joinqual = NIL;
    loop->join.inner_unique = false;
  }
  if (list_length(making->inner_tlist) > list_length(inner_tlist)) {
    IndexScan* inner = palloc(sizeof(IndexScan));

    *inner = *making->inner;
    inner->scan.plan.targetlist = making->inner_tlist;
    loop->join.plan.righttree = (Plan*)inner;
  }
  return loop;
}

typedef struct InnerTable {
  double rows, pages;
} InnerTable;

static InnerTable inner_table_of(const LoopMaking* making) {
  Relation relation = table_open(planned_relation(making->inner->scan.scanrelid), NoLock);
  const InnerTable table = {.rows = Max(relation->rd_rel->reltuples, 0), .pages = RelationGetNumberOfBlocks(relation)};

  table_close(relation, NoLock);
  return table;
}

double loop_expected_ms(const NestLoop* loop) {
  const double lookup = kLookupMs + kFetchMs * loop->join.plan.righttree->plan_rows;

  return loop->join.plan.lefttree->plan_rows * lookup;
}

/* Sets what the loop is measured by, and whether it begins at all. Returns false where the inner table is small. */
static bool choose_way(const LoopMaking* making, const InnerTable* inner, NodePlan* plan, bool* begins) {
  const Plan* outer = making->loop->join.plan.lefttree;

  plan->hash_ms = Min(inner->pages, NBuffers) * kPageMs + Max(inner->pages - NBuffers, 0) * kFarPageMs +
                  inner->rows * (making->reads_slots ? kSlotMs : kProbeMs);
  plan->outer_rows = outer->plan_rows;
  if (quern_loop_rows >= 0) *begins = quern_loop_rows > 0;
  else *begins = quern_enabled != QUERN_FORCE && loop_expected_ms(making->loop) < kTooSlow * plan->hash_ms;
  return quern_enabled == QUERN_FORCE || inner->rows >= quern_min_rows;
}

/* ---- planning: the node ---- */

/* A hash join of the scan of the inner table, which has its sides in this order or the other one. */
static HashJoin* hash_join(const LoopMaking* making, JoinType type, Plan* outer, Plan* inner) {
  HashJoin* join = makeNode(HashJoin);
  Hash* hash = makeNode(Hash);

  join->join = making->loop->join;
  join->join.plan.type = T_HashJoin;
  join->join.jointype = type;
  hash->plan.lefttree = inner;
  join->join.plan.lefttree = outer;
  join->join.plan.righttree = &hash->plan;
  return join;
}

/* The outer rows are in the table, and the inner table probes it. */
static Plan* make_turned(const LoopMaking* making, JoinType type, Plan* scan, const NodePlan* way, bool begins) {
  const NestLoop* loop = making->loop;
  HashJoin* join = hash_join(making, type, scan, loop->join.plan.lefttree);
  CustomScan* made;
  NodePlan* plan;

  join->join.plan.targetlist = (List*)turn_sides((Node*)loop->join.plan.targetlist, NULL);
  join->join.plan.qual = (List*)turn_sides((Node*)loop->join.plan.qual, NULL);
  join->join.joinqual = list_concat(making->join_quals, (List*)turn_sides((Node*)loop->join.joinqual, NULL));
  join->hashclauses = making->hash_clauses;
  made = (CustomScan*)replace_join(join, begins);
  if (made == NULL) return NULL;
  plan = node_plan_of_list(made->custom_private);
  plan->stock = (Plan*)&loop->join.plan;
  /* Its probe side is the loop's inner side. */
  plan->probes_first = false;
  plan->hash_ms = way->hash_ms;
  plan->outer_rows = way->outer_rows;
  if (begins) plan->loop = (Plan*)gated_loop(making, made);
  made->custom_private = node_plan_to_list(plan);
  return (Plan*)made;
}

/* An inner table of few rows is in the table, and the outer rows probe it, as in any hash join. */
static Plan* make_plain(const LoopMaking* making, Plan* scan) {
  const NestLoop* loop = making->loop;
  HashJoin* join = hash_join(making, loop->join.jointype, loop->join.plan.lefttree, scan);
  ListCell* cell;

  join->join.joinqual = list_concat((List*)turn_sides((Node*)making->join_quals, NULL), loop->join.joinqual);
  join->hashclauses = (List*)turn_sides((Node*)making->hash_clauses, NULL);
  foreach (cell, join->hashclauses) CommuteOpExpr(lfirst_node(OpExpr, cell));
  return replace_join(join, false);
}

/* Whether the inner table has so few rows, beside those that are expected of the outer side, that reading it costs
 * nothing. */
static bool is_small(const InnerTable* inner, double outer_rows) {
  if (quern_loop_rows >= 0) return false;
  return inner->rows < quern_min_rows && inner->rows <= outer_rows &&
         (quern_enabled == QUERN_FORCE || outer_rows >= quern_min_rows);
}

Plan* replace_loop(NestLoop* loop, bool has_many_rows) {
  LoopMaking making = {.loop = loop, .inner = index_scan_of(loop->join.plan.righttree)};
  double outer_rows = loop->join.plan.lefttree->plan_rows;
  NodePlan way = {0};
  InnerTable inner;
  JoinType turned;
  Plan* scan;
  bool begins;
  ListCell* cell;

  if (making.inner == NULL || !turned_kind(loop->join.jointype, &turned)) return NULL;
  if (contain_volatile_functions((Node*)loop->join.joinqual) || contain_volatile_functions((Node*)loop->join.plan.qual))
    return NULL;
  if (contain_volatile_functions((Node*)making.inner->scan.plan.qual)) return NULL;
  making.inner_tlist = list_copy(making.inner->scan.plan.targetlist);
  foreach (cell, making.inner->indexqualorig) add_scan_qual(&making, lfirst(cell), true);
  foreach (cell, making.inner->scan.plan.qual) add_scan_qual(&making, lfirst(cell), false);
  if (making.failed || making.hash_clauses == NIL) return NULL;
  inner = inner_table_of(&making);
  if (has_many_rows) outer_rows = Max(outer_rows, quern_min_rows);
  if (is_small(&inner, outer_rows)) {
    scan = (Plan*)whole_scan(&making, inner.rows, inner.pages);
    return scans_heap(scan) ? make_plain(&making, scan) : NULL;
  }
  if (!choose_way(&making, &inner, &way, &begins)) return NULL;
  /* Rows of Memoize have no further columns. */
  if (IsA(loop->join.plan.righttree, Memoize) && begins &&
      list_length(making.inner_tlist) > list_length(making.inner->scan.plan.targetlist))
    return NULL;
  scan = (Plan*)whole_scan(&making, inner.rows, inner.pages);
  return scans_heap(scan) ? make_turned(&making, turned, scan, &way, begins) : NULL;
}

/* ---- the gate ---- */

typedef struct Gate {
  CustomScanState css;
  LoopRun* run; /* of the node */
} Gate;

static Node* create_gate(CustomScan* scan);
static void begin_gate(CustomScanState* state, EState* estate, int flags) {}
static void end_gate(CustomScanState* state) {}
static void rescan_gate(CustomScanState* state) {}

/* Whether a hash join is faster for the outer rows that are left. */
static bool is_too_slow(const LoopRun* run) {
  const double given = (double)run->num_given;
  double per_row;

  if (quern_loop_rows >= 0) return run->num_given >= (uint64)quern_loop_rows;
  if (run->num_timed < kFewestTimed || run->num_given % kRowsBetween != 0) return false;
  per_row = INSTR_TIME_GET_MILLISEC(run->timed) / (double)run->num_timed;
  return per_row * Max(run->expected_rows - given, given) > run->hash_ms;
}

/* From the row that the loop was given last to this call, it has looked up that row. */
static void stop_timing(LoopRun* run) {
  instr_time now;

  if (!run->is_timing) return;
  INSTR_TIME_SET_CURRENT(now);
  INSTR_TIME_ACCUM_DIFF(run->timed, now, run->began);
  ++run->num_timed;
  run->is_timing = false;
}

static TupleTableSlot* exec_gate(CustomScanState* state) {
  LoopRun* run = ((Gate*)state)->run;
  TupleTableSlot* slot = state->ss.ss_ScanTupleSlot;
  const int n = slot->tts_tupleDescriptor->natts;
  TupleTableSlot* row;

  stop_timing(run);
  ExecClearTuple(slot);
  run->is_cut_off = run->is_cut_off || is_too_slow(run);
  if (run->is_cut_off || run->outer_ended) return slot;
  row = ExecProcNode(run->outer);
  run->outer_ended = TupIsNull(row);
  if (run->outer_ended) return slot;
  ++run->num_given;
  slot_getallattrs(row);
  memcpy(slot->tts_values, row->tts_values, sizeof(Datum) * n);
  memcpy(slot->tts_isnull, row->tts_isnull, sizeof(bool) * n);
  if (run->num_given % kRowsTimed == 0) {
    run->is_timing = true;
    INSTR_TIME_SET_CURRENT(run->began);
  }
  return ExecStoreVirtualTuple(slot);
}

const CustomScanMethods quern_gate_methods = {"QuernGate", create_gate};
static const CustomExecMethods kGateMethods = {.CustomName = "QuernGate",
                                               .BeginCustomScan = begin_gate,
                                               .ExecCustomScan = exec_gate,
                                               .EndCustomScan = end_gate,
                                               .ReScanCustomScan = rescan_gate};

static Node* create_gate(CustomScan* scan) {
  Gate* gate = (Gate*)newNode(sizeof(Gate), T_CustomScanState);

  gate->css.methods = &kGateMethods;
  return (Node*)gate;
}

/* ---- running ---- */

LoopRun* loop_begin(QuernNode* node, EState* estate, int flags) {
  LoopRun* run = palloc0(sizeof(LoopRun));
  List* columns = NIL;

  run->state = ExecInitNode(node->plan->loop, estate, flags);
  ((Gate*)castNode(CustomScanState, outerPlanState(run->state)))->run = run;
  run->outer = lsecond(node->css.custom_ps);
  run->expected_rows = node->plan->outer_rows;
  run->hash_ms = node->plan->hash_ms;
  if (flags & EXEC_FLAG_EXPLAIN_ONLY) return run;
  for (int i = 0; i < node->num_outputs; ++i) columns = lappend(columns, &node->outputs[i].values);
  run->columns = columns_create(columns, BATCH_ROWS);
  return run;
}

bool loop_next(QuernNode* node) {
  LoopRun* run = node->loop;
  int row = 0;

  columns_clear(run->columns);
  while (!columns_are_full(run->columns, row)) {
    TupleTableSlot* slot = ExecProcNode(run->state);

    if (TupIsNull(slot)) break;
    slot_getallattrs(slot);
    for (int i = 0; i < node->num_outputs; ++i) {
      if (slot->tts_isnull[i]) columns_put_null(run->columns, &run->columns->buffers[i], row);
      else columns_put(run->columns, &run->columns->buffers[i], row, slot->tts_values[i]);
    }
    ++row;
  }
  /* What the parent does with these rows is not the loop's. */
  run->is_timing = false;
  columns_finish(run->columns);
  run->result.num_rows = (uint64)row;
  run->result.num_columns = (size_t)node->num_outputs;
  run->result.columns = run->columns->vectors;
  run->result.state = QUERN_RESULT_MORE;
  node->result = row > 0 ? &run->result : NULL;
  return row > 0;
}

void loop_rescan(QuernNode* node) {
  LoopRun* run = node->loop;

  run->num_given = run->num_timed = 0;
  INSTR_TIME_SET_ZERO(run->timed);
  run->is_cut_off = run->outer_ended = run->is_timing = false;
  if (node->css.ss.ps.chgParam != NULL) UpdateChangedParamSet(run->state, node->css.ss.ps.chgParam);
  if (run->state->chgParam == NULL) ExecReScan(run->state);
}

void loop_end(LoopRun* run) { ExecEndNode(run->state); }
