/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/ruleutils.h"

static void show_expressions(CustomScanState* state, List* ancestors, ExplainState* explain, const char* label) {
  const CustomScan* scan = (const CustomScan*)state->ss.ps.plan;
  List* context = set_deparse_context_plan(explain->deparse_cxt, state->ss.ps.plan, ancestors);
  const bool prefix = list_length(explain->rtable) > 1 || explain->verbose;
  List* texts = NIL;
  ListCell* cell;

  foreach (cell, scan->custom_exprs) texts = lappend(texts, deparse_expression(lfirst(cell), context, prefix, false));
  if (texts != NIL) ExplainPropertyList(label, texts, explain);
}

static void show_run(QuernNode* node, ExplainState* explain) {
  quern_job_stats stats = node->stats;
  quern_counters counters = {.struct_size = sizeof(counters)};
  const char* tier = node->tier;

  if (node->job != NULL) {
    stats.struct_size = sizeof(stats);
    quern_job_get_stats(node->job, &stats);
    quern_job_get_counters(node->job, &counters);
    tier = counters.tier;
  }
  if (node->stock != NULL) {
    ExplainPropertyText("Ran", "PostgreSQL's own node", explain);
    return;
  }
  if (node->loop != NULL) ExplainPropertyInteger("Outer Rows Looked Up", NULL, (int64)node->loop->num_given, explain);
  if (tier != NULL) ExplainPropertyText("Kernel", tier, explain);
  if (node->num_piped > 0) ExplainPropertyInteger("Joins in Pipeline", NULL, node->num_piped, explain);
  if (node->num_threads > 1) ExplainPropertyInteger("Threads", NULL, node->num_threads, explain);
  if (stats.layout != NULL) ExplainPropertyText("Layout", stats.layout, explain);
  ExplainPropertyInteger("Peak Memory", "kB", (int64)(stats.peak_bytes / 1024), explain);
  if (stats.spilled_rows > 0) {
    ExplainPropertyInteger("Spilled", "kB", (int64)(stats.spilled_bytes / 1024), explain);
    ExplainPropertyInteger("Spilled Rows", NULL, (int64)stats.spilled_rows, explain);
  }
}

void node_explain(CustomScanState* state, List* ancestors, ExplainState* explain) {
  QuernNode* node = (QuernNode*)state;
  static const char* const kLabels[] = {
      [QUERN_JOIN] = "Hash Cond", [QUERN_AGGREGATE] = "Group Key", [QUERN_SORT] = "Sort Key"};

  show_expressions(state, ancestors, explain, kLabels[node->plan->op]);
  if (explain->verbose || explain->format != EXPLAIN_FORMAT_TEXT) {
    const char* params = node_params(node->plan);

    ExplainPropertyText("Spec", node->plan->spec, explain);
    if (params != NULL) ExplainPropertyText("Parameters", params, explain);
  }
  if (node->sources[0] != NULL) {
    const char* ways = source_way(node->sources[0]);

    if (node->sources[1] != NULL) ways = psprintf("%s, %s", ways, source_way(node->sources[1]));
    ExplainPropertyText("Reads", ways, explain);
  }
  if (node->plan->loop != NULL && !explain->analyze)
    ExplainPropertyText("Outer Rows", "looked up while that is faster", explain);
  if (node->plan->threads > 1 && !explain->analyze)
    ExplainPropertyInteger("Threads Planned", NULL, node->plan->threads, explain);
  if (explain->analyze) show_run(node, explain);
}
