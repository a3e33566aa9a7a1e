/* SPDX-License-Identifier: Apache-2.0
 *
 * The CustomScan of all three operators: reads its sources into a job of libquern, and hands out its results, row by
 * row or as whole batches.
 *
 * Where a value has no exact form in a kernel (NaN in numeric(10,2), say), or a sum leaves its range, the node runs
 * the plan that it has replaced, from the beginning: PostgreSQL's own code then gives the result, or the error with
 * its own words. This is possible because nothing has left the node by then: joins have no such values.
 */
#include "quern_pg.h"

#include "catalog/pg_tablespace.h"
#include "commands/tablespace.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/memutils.h"

static quern_error error_of_backend;
QUERN_THREAD_LOCAL quern_error* quern_last_error = &error_of_backend;
QUERN_THREAD_LOCAL sigjmp_buf* node_escape;

static Node* create_state(CustomScan* scan);
static void begin_node(CustomScanState* state, EState* estate, int flags);
static TupleTableSlot* exec_node(CustomScanState* state);
static void end_node(CustomScanState* state);
static void rescan_node(CustomScanState* state);

const CustomScanMethods quern_join_methods = {"QuernJoin", create_state};
const CustomScanMethods quern_aggregate_methods = {"QuernAggregate", create_state};
const CustomScanMethods quern_sort_methods = {"QuernSort", create_state};

#define EXEC_METHODS(name)          \
  {.CustomName = (name),            \
   .BeginCustomScan = begin_node,   \
   .ExecCustomScan = exec_node,     \
   .EndCustomScan = end_node,       \
   .ReScanCustomScan = rescan_node, \
   .ExplainCustomScan = node_explain}

static const CustomExecMethods kExecMethods[] = {[QUERN_JOIN] = EXEC_METHODS("QuernJoin"),
                                                 [QUERN_AGGREGATE] = EXEC_METHODS("QuernAggregate"),
                                                 [QUERN_SORT] = EXEC_METHODS("QuernSort")};

void node_register(void) {
  RegisterCustomScanMethods(&quern_join_methods);
  RegisterCustomScanMethods(&quern_aggregate_methods);
  RegisterCustomScanMethods(&quern_sort_methods);
  RegisterCustomScanMethods(&quern_gate_methods);
}

bool node_is_ours(const Plan* plan) {
  const CustomScanMethods* methods;

  if (!IsA(plan, CustomScan)) return false;
  methods = ((const CustomScan*)plan)->methods;
  return methods == &quern_join_methods || methods == &quern_aggregate_methods || methods == &quern_sort_methods;
}

Operator node_operator(const Plan* plan) {
  const CustomScanMethods* methods = ((const CustomScan*)plan)->methods;

  return methods == &quern_join_methods ? QUERN_JOIN : methods == &quern_sort_methods ? QUERN_SORT : QUERN_AGGREGATE;
}

QuernNode* node_of_state(PlanState* state) {
  return IsA(state, CustomScanState) && node_is_ours(state->plan) ? (QuernNode*)state : NULL;
}

void node_raise(void) {
  const char* text = quern_last_error->text;

  if (node_escape != NULL) siglongjmp(*node_escape, 1);
  switch (quern_last_error->status) {
    case QUERN_RESOURCE_EXHAUSTED:
      ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"), errdetail("quern: %s", text));
    case QUERN_IO_ERROR:
      if (temp_file_limit > 0 && strstr(text, "more than their limit") != NULL)
        ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                errmsg("temporary file size exceeds temp_file_limit (%dkB)", temp_file_limit));
      ereport(ERROR, errcode(ERRCODE_IO_ERROR), errmsg("could not write or read temporary rows"),
              errdetail("quern: %s", text));
    case QUERN_OUT_OF_RANGE:
      ereport(ERROR, errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value out of range"),
              errdetail("quern: %s", text));
    default: ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("quern: %s", text));
  }
  pg_unreachable();
}

/* ---- life cycle ---- */

static Node* create_state(CustomScan* scan) {
  QuernNode* node = (QuernNode*)newNode(sizeof(QuernNode), T_CustomScanState);

  node->plan = node_plan_of_list(scan->custom_private);
  node->css.methods = &kExecMethods[node->plan->op];
  return (Node*)node;
}

/* PostgreSQL does not see libquern's memory, which is in no context. */
static void note_memory(QuernNode* node) {
  const uint64 kb = quern_job_used_bytes(node->job) / 1024;

  if (node->account == NULL || kb == node->account_kb) return;
  node->account_kb = kb;
  snprintf(node->account_text, sizeof(node->account_text), "%s: " UINT64_FORMAT " kB beside this context",
           node->css.methods->CustomName, kb);
}

/* Destroys the handles of the job, whose memory is not PostgreSQL's. */
static void drop_job(QuernNode* node) {
  quern_output_destroy(node->output);
  quern_input_destroy(node->input);
  if (node->job != NULL) {
    quern_counters counters = {.struct_size = sizeof(counters)};

    quern_job_get_stats(node->job, &node->stats);
    quern_job_get_counters(node->job, &counters);
    node->tier = counters.tier;
  }
  quern_job_destroy(node->job);
  node->output = NULL;
  node->input = NULL;
  node->job = NULL;
  node->result = NULL;
  node->row = 0;
  note_memory(node);
}

/* Also runs where the query was aborted: with the memory of the query's context. */
static void release(void* argument) {
  QuernNode* node = argument;

  drop_job(node);
  for (int i = 0; i < 2; ++i)
    if (node->sources[i] != NULL) source_release(node->sources[i]);
  quern_kernel_destroy(node->kernel);
  node->kernel = NULL;
}

/* How many bytes of a key tuples hold by default, and the most that inline_key_bytes may be. */
enum { kInlineKeyBytes = 20, kMostInlineKeyBytes = 68 };

const char* node_params(const NodePlan* plan) {
  if (plan->key_bytes <= kInlineKeyBytes || plan->key_bytes > kMostInlineKeyBytes) return NULL;
  return psprintf("inline_key_bytes=%d", plan->key_bytes);
}

static void open_sources_and_kernel(QuernNode* node) {
  const quern_compile_options options = {.struct_size = sizeof(options),
                                         .params = node_params(node->plan),
                                         .expected_rows = (uint64)Max(node->plan->input_rows, 0)};
  ListCell* cell;

  foreach (cell, node->css.custom_ps)
    source_create(node, lfirst(cell), node->plan->sources[foreach_current_index(cell)]);
  QUERN_CALL(quern_compile_with(node->plan->spec, &options, &node->kernel, quern_last_error));
}

static void begin_node(CustomScanState* state, EState* estate, int flags) {
  QuernNode* node = (QuernNode*)state;
  CustomScan* scan = (CustomScan*)state->ss.ps.plan;
  ListCell* cell;

  /* EXPLAIN names the columns of conditions by these two. */
  scan->scan.plan.lefttree = linitial(scan->custom_plans);
  scan->scan.plan.righttree = list_length(scan->custom_plans) > 1 ? lsecond(scan->custom_plans) : NULL;
  foreach (cell, scan->custom_plans)
    state->custom_ps = lappend(state->custom_ps, ExecInitNode(lfirst(cell), estate, flags));
  node->num_outputs = list_length(node->plan->outputs);
  node->outputs = palloc0(sizeof(OutputPlan) * (node->num_outputs + 1));
  foreach (cell, node->plan->outputs) node->outputs[foreach_current_index(cell)] = *(OutputPlan*)lfirst(cell);
  node->is_plain = state->ss.ps.qual == NULL && state->ss.ps.ps_ProjInfo == NULL;
  node->stats.struct_size = sizeof(node->stats);
  if (node->plan->loop != NULL) node->loop = loop_begin(node, estate, flags);
  if (flags & EXEC_FLAG_EXPLAIN_ONLY) return;

  node->callback.func = release;
  node->callback.arg = node;
  MemoryContextRegisterResetCallback(estate->es_query_cxt, &node->callback);
  if (node->loop == NULL) open_sources_and_kernel(node);
}

/* Tests count these lines, so that they are known to test something. */
static void log_run(const QuernNode* node) {
  if (!quern_log_nodes || (node->state == NODE_NEW && node->stock == NULL)) return;
  ereport(LOG_SERVER_ONLY, errhidestmt(true),
          errmsg_internal("quern: %s %s%s", node->css.methods->CustomName,
                          node->stock != NULL ? "ran as PostgreSQL's own node" : "ran as a kernel",
                          node->num_threads > 1 ? " with threads" : ""));
}

static void end_node(CustomScanState* state) {
  QuernNode* node = (QuernNode*)state;
  ListCell* cell;

  log_run(node);
  for (int i = 0; i < 2; ++i)
    if (node->sources[i] != NULL) source_end(node->sources[i]);
  release(node);
  foreach (cell, state->custom_ps) ExecEndNode(lfirst(cell));
  if (node->stock != NULL) ExecEndNode(node->stock);
  if (node->loop != NULL) loop_end(node->loop);
}

bool node_has_spilled(const QuernNode* node) {
  quern_job_stats stats = {.struct_size = sizeof(stats)};

  quern_job_get_stats(node->job, &stats);
  return stats.spilled_rows > 0;
}

/* Whether build rows come out by themselves, behind all others. */
static bool has_build_rows(const QuernNode* node) {
  const JoinType type = (JoinType)node->plan->join_type;

  return type == JOIN_RIGHT || type == JOIN_FULL || join_of_build_rows(type) != NULL;
}

static bool find_param(Node* expr, void* context) {
  return expr != NULL && (IsA(expr, Param) || expression_tree_walker(expr, find_param, context));
}

/* Whether columns of a source are computed from parameters. */
static bool has_params(const SourcePlan* source) {
  ListCell* cell;

  foreach (cell, source->columns)
    if (find_param((Node*)((const ColumnPlan*)lfirst(cell))->expr, NULL)) return true;
  return false;
}

/* A join whose build side stays as it is keeps its table. */
static bool keeps_table(const QuernNode* node) {
  if (node->plan->op != QUERN_JOIN || node->state == NODE_NEW || node->job == NULL || node->stock != NULL) return false;
  if (node->loop != NULL) return false;
  if (((PlanState*)lsecond(node->css.custom_ps))->chgParam != NULL) return false;
  if (node->css.ss.ps.chgParam != NULL && has_params(node->plan->sources[1])) return false;
  /* Matched flags are set, or probe rows are in files. */
  return !has_build_rows(node) && !node_has_spilled(node);
}

static void rescan_node(CustomScanState* state) {
  QuernNode* node = (QuernNode*)state;
  ListCell* cell;

  foreach (cell, state->custom_ps)
    if (state->ss.ps.chgParam != NULL) UpdateChangedParamSet(lfirst(cell), state->ss.ps.chgParam);
  if (node->stock != NULL) {
    if (state->ss.ps.chgParam != NULL) UpdateChangedParamSet(node->stock, state->ss.ps.chgParam);
    if (node->stock->chgParam == NULL) ExecReScan(node->stock);
    return;
  }
  node->first_rows = 0;
  if (keeps_table(node)) {
    quern_output_destroy(node->output);
    node->output = NULL;
    node->result = NULL;
    node->row = 0;
    node->state = NODE_PROBING;
    node->batch_pending = false;
    source_rescan(node->sources[0]);
    return;
  }
  drop_job(node);
  node->state = NODE_NEW;
  node->batch_pending = false;
  node->has_emitted = false;
  for (int i = 0; i < 2; ++i)
    if (node->sources[i] != NULL) source_rescan(node->sources[i]);
  if (node->loop == NULL) return;
  loop_rescan(node);
  if (node->sources[0] != NULL) return;
  foreach (cell, state->custom_ps)
    if (((PlanState*)lfirst(cell))->chgParam == NULL) ExecReScan(lfirst(cell));
}

/* ---- memory and files ---- */

uint64 node_memory_limit(const QuernNode* node) {
  const uint64 allowed = node->plan->op == QUERN_SORT ? (uint64)work_mem * 1024 : (uint64)get_hash_memory_limit();

  return Max(allowed, (uint64)quern_min_memory * 1024);
}

/* The folder for temporary files that PostgreSQL would use, by temp_tablespaces; it exists afterwards. */
static char* temporary_folder(void) {
  char* folder = palloc(MAXPGPATH);
  Oid tablespace;

  PrepareTempTablespaces();
  tablespace = GetNextTempTableSpace();
  if (!OidIsValid(tablespace)) tablespace = MyDatabaseTableSpace;
  TempTablespacePath(folder, tablespace);
  if (MakePGDirectory(folder) < 0 && errno != EEXIST)
    ereport(ERROR, errcode_for_file_access(), errmsg("could not create temporary directory \"%s\": %m", folder));
  return folder;
}

void node_check_interrupts(QuernNode* node) {
  note_memory(node);
  CHECK_FOR_INTERRUPTS();
}

static void open_account(QuernNode* node) {
  if (node->account != NULL) return;
  node->account = AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt, "Quern job", ALLOCSET_SMALL_SIZES);
  node->account_kb = UINT64_MAX;
  MemoryContextSetIdentifier(node->account, node->account_text);
}

static void create_job(QuernNode* node) {
  quern_spill_options spill = {.struct_size = sizeof(spill)};
  quern_job_options options = {.struct_size = sizeof(options), .spill = &spill};

  spill.folder = temporary_folder();
  if (temp_file_limit > 0) spill.max_bytes = (uint64)temp_file_limit * 1024;
  options.memory_limit = node_memory_limit(node);
  options.expected_groups = node->plan->op == QUERN_AGGREGATE ? (uint64)Max(node->plan->output_rows, 0) : 0;
  QUERN_CALL(quern_job_create(node->kernel, &options, &node->job, quern_last_error));
  open_account(node);
  note_memory(node);
}

/* ---- the stock plan ---- */

static void run_stock(QuernNode* node) {
  EState* estate = node->css.ss.ps.state;
  MemoryContext before = MemoryContextSwitchTo(estate->es_query_cxt);

  Assert(!node->has_emitted);
  drop_job(node);
  node->stock = ExecInitNode(node->plan->stock, estate, 0);
  node->state = NODE_DONE;
  MemoryContextSwitchTo(before);
}

/* Whether PostgreSQL's own node is to answer for an error: with a result, or with its own message. Parents may read
 * columns of a join that its rows do not have. */
static bool stock_decides(const QuernNode* node) {
  if (node->has_emitted || node->plan->op == QUERN_JOIN) return false;
  return quern_last_error->status == QUERN_OUT_OF_RANGE || quern_last_error->status == QUERN_RESOURCE_EXHAUSTED;
}

/* After a failed call: returns if the stock plan runs from now on. */
static void fail(QuernNode* node) {
  if (!stock_decides(node)) node_raise();
  ereport(DEBUG1, errmsg_internal("quern: %s; PostgreSQL's own node runs", quern_last_error->text));
  run_stock(node);
}

/* ---- running ---- */

/* Each returns false where the stock plan has taken over. */

/* Adds the rows of a source, with threads where these pay, and through a pipeline once all joins below are ready. */
static RowsEnd append_all(QuernNode* node, Source* source, quern_port port) {
  bool begins = true, failed = false;
  RowsEnd end = ROWS_DONE, end_of_threads;
  uint64 rows, piped;

  node->built_rows = 0;
  while (end == ROWS_DONE && (rows = source_next(source)) > 0) {
    const quern_batch batch = source_batch_to_keep(source, node->plan->num_keys, rows);

    failed = quern_input_append(node->input, &batch, quern_last_error) != QUERN_OK;
    if (failed) break;
    node->built_rows += rows;
    /* All tables on the way have been built now. */
    if (begins) threads_start(node, source, port);
    begins = false;
    note_memory(node);
    end = pipeline_run(node, source, &piped);
    node->built_rows += piped;
    if (node->threads != NULL && threads_have_failed(node->threads)) break;
  }
  failed |= end == ROWS_FAILED;
  if (!failed) quern_last_error->status = QUERN_OK;
  end_of_threads = threads_end(node, &rows);
  node->built_rows += rows;
  if (failed) return ROWS_FAILED;
  return source->failed || end == ROWS_INEXACT ? ROWS_INEXACT : end_of_threads;
}

static bool append_rows(QuernNode* node, Source* source, quern_port port) {
  const quern_input_options options = {.struct_size = sizeof(options), .copy_bytes = true};
  RowsEnd end;

  QUERN_CALL(quern_input_create(node->job, port, &options, &node->input, quern_last_error));
  PG_TRY();
  {
    end = append_all(node, source, port);
  }
  PG_CATCH();
  {
    threads_abort(node);
    PG_RE_THROW();
  }
  PG_END_TRY();
  if (end == ROWS_FAILED) return fail(node), false;
  if (end == ROWS_INEXACT) {
    if (node->plan->op == QUERN_JOIN) elog(ERROR, "quern: a column of a join has no exact form");
    run_stock(node);
    return false;
  }
  if (quern_input_finish(node->input, quern_last_error) != QUERN_OK) return fail(node), false;
  quern_input_destroy(node->input);
  node->input = NULL;
  return true;
}

/* Pieces of work are short, so that a query can be cancelled between them. */
static bool work_to_the_end(QuernNode* node) {
  quern_work_state work = QUERN_WORK_MORE;

  threads_start_work(node);
  while (work != QUERN_WORK_DONE) {
    node_check_interrupts(node);
    if (quern_job_work(node->job, &work, quern_last_error) != QUERN_OK) return false;
    if (work == QUERN_WORK_BUSY) pg_usleep(QUERN_BUSY_US);
  }
  return true;
}

static bool finish_work(QuernNode* node) {
  bool done;
  uint64 rows;

  PG_TRY();
  {
    done = work_to_the_end(node);
  }
  PG_CATCH();
  {
    threads_abort(node);
    PG_RE_THROW();
  }
  PG_END_TRY();
  if (done) quern_last_error->status = QUERN_OK;
  done = threads_end(node, &rows) == ROWS_DONE && done;
  if (!done) fail(node);
  return done;
}

static void open_output(QuernNode* node, quern_port port) {
  const quern_output_options options = {.struct_size = sizeof(options), .batch_rows = BATCH_ROWS};

  quern_output_destroy(node->output);
  node->output = NULL;
  QUERN_CALL(quern_output_create(node->job, port, &options, &node->output, quern_last_error));
}

/* Rows of the probe side; 0: they have ended. */
static uint64 next_probe_rows(QuernNode* node) {
  uint64 rows = node->first_rows;

  node->first_rows = 0;
  if (rows > 0) return rows;
  rows = source_next(node->sources[0]);
  if (node->sources[0]->failed) elog(ERROR, "quern: a column of a join has no exact form");
  return rows;
}

/* Whether a join has no results where its build side has no rows: its probe side is then not read. */
static bool needs_build_rows(const QuernNode* node) {
  const JoinType type = (JoinType)node->plan->join_type;

  if (node->plan->op != QUERN_JOIN) return false;
  return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT || join_of_build_rows(type) != NULL;
}

static bool build(QuernNode* node) {
  const bool is_join = node->plan->op == QUERN_JOIN;

  if (node->plan->probes_first) {
    node->first_rows = next_probe_rows(node);
    if (node->first_rows == 0) {
      node->state = NODE_DONE;
      return true;
    }
  }
  create_job(node);
  if (!append_rows(node, node->sources[is_join ? 1 : 0], is_join ? QUERN_PORT_BUILD : QUERN_PORT_ROWS)) return false;
  if (node->built_rows == 0 && needs_build_rows(node)) {
    drop_job(node);
    node->state = NODE_DONE;
    return true;
  }
  if (!finish_work(node)) return false;
  node->state = is_join ? NODE_PROBING : NODE_READING;
  if (!is_join) open_output(node, QUERN_PORT_ROWS);
  return true;
}

/* Gives the join its next batch of probe rows, or turns to its unmatched rows where those have ended. */
static void next_probe_batch(QuernNode* node) {
  Source* source = node->sources[0];
  const uint64 rows = next_probe_rows(node);

  if (rows > 0) {
    const quern_batch batch = source_batch(source, node->plan->num_keys, rows);

    QUERN_CALL(quern_output_push(node->output, &batch, quern_last_error));
    node->batch_pending = true;
    return;
  }
  if (has_build_rows(node) || node_has_spilled(node)) {
    open_output(node, QUERN_PORT_UNMATCHED);
    node->state = NODE_READING;
  } else {
    node->state = NODE_DONE;
  }
}

/* One call of the output: sets node->result, which may be empty. */
static bool read_output(QuernNode* node) {
  if (quern_output_next(node->output, &node->result, quern_last_error) != QUERN_OK) return fail(node), false;
  if (node->result->state == QUERN_RESULT_NEEDS_INPUT) node->batch_pending = false;
  if (node->result->state == QUERN_RESULT_DONE) node->state = NODE_DONE;
  if (node->plan->op == QUERN_AGGREGATE && output_overflowed(node)) {
    if (!node->has_emitted) {
      run_stock(node);
      return false;
    }
    ereport(ERROR, errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value out of range: overflow"));
  }
  return true;
}

/* Where a loop has left rows to the kernel; in the memory of the query. */
static void open_behind_loop(QuernNode* node) {
  MemoryContext before;

  if (node->sources[0] != NULL) return;
  before = MemoryContextSwitchTo(node->css.ss.ps.state->es_query_cxt);
  open_sources_and_kernel(node);
  MemoryContextSwitchTo(before);
}

/* Runs the nested loop. Returns whether node->result has rows of it; else the state is NODE_NEW, for the outer rows
 * that are left, or NODE_DONE. */
static bool run_loop(QuernNode* node) {
  node->state = NODE_LOOPING;
  if (loop_next(node)) {
    node->has_emitted = true;
    return true;
  }
  if (node->loop->is_cut_off) open_behind_loop(node);
  node->state = node->loop->is_cut_off ? NODE_NEW : NODE_DONE;
  return false;
}

static bool begins_as_loop(const QuernNode* node) {
  if (node->loop == NULL) return false;
  return node->state == NODE_LOOPING || (node->state == NODE_NEW && !node->loop->is_cut_off);
}

bool node_next_batch(QuernNode* node) {
  node->row = 0;
  node->result = NULL;
  if (node->stock != NULL) return false;
  if (begins_as_loop(node) && run_loop(node)) return true;
  if (node->state == NODE_NEW && !build(node)) return false;
  while (node->state != NODE_DONE) {
    node_check_interrupts(node);
    if (node->state == NODE_PROBING) {
      if (node->output == NULL) open_output(node, QUERN_PORT_PROBE);
      if (!node->batch_pending) {
        next_probe_batch(node);
        continue;
      }
    }
    if (!read_output(node)) return false;
    if (node->result->num_rows > 0) {
      node->has_emitted = true;
      return true;
    }
  }
  node->result = NULL;
  return false;
}

/* Callers expect the virtual slot of a CustomScan. */
static TupleTableSlot* next_stock_row(QuernNode* node) {
  TupleTableSlot* slot = node->css.ss.ps.ps_ResultTupleSlot;
  TupleTableSlot* row = ExecProcNode(node->stock);
  const int n = slot->tts_tupleDescriptor->natts;

  ExecClearTuple(slot);
  if (TupIsNull(row)) return slot;
  slot_getallattrs(row);
  memcpy(slot->tts_values, row->tts_values, sizeof(Datum) * n);
  memcpy(slot->tts_isnull, row->tts_isnull, sizeof(bool) * n);
  return ExecStoreVirtualTuple(slot);
}

static TupleTableSlot* exec_node(CustomScanState* state) {
  QuernNode* node = (QuernNode*)state;
  ExprContext* context = state->ss.ps.ps_ExprContext;
  TupleTableSlot* slot = state->ss.ss_ScanTupleSlot;

  for (;;) {
    if (node->stock != NULL) return next_stock_row(node);
    if (node->result == NULL || node->row >= node->result->num_rows) {
      if (node_next_batch(node)) continue;
      if (node->stock != NULL) continue;
      return ExecClearTuple(node->is_plain ? slot : state->ss.ps.ps_ResultTupleSlot);
    }
    output_fill_slot(node, slot, context->ecxt_per_tuple_memory);
    ++node->row;
    if (node->is_plain) return slot;
    context->ecxt_scantuple = slot;
    if (state->ss.ps.qual != NULL && !ExecQual(state->ss.ps.qual, context)) {
      InstrCountFiltered1(state, 1);
      continue;
    }
    return state->ss.ps.ps_ProjInfo != NULL ? ExecProject(state->ss.ps.ps_ProjInfo) : slot;
  }
}
