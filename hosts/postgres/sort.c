/* SPDX-License-Identifier: Apache-2.0
 *
 * A Sort as "sort keys=.. payload=.. limit=..".
 */
#include "quern_pg.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

typedef struct SortMaking {
  NodePlan plan;
  StringInfoData spec;
  List* columns;       /* of ColumnPlan */
  const List* entries; /* of the child */
  int* output_of;      /* of the child's column: its place in the result; -1: not yet */
  int num_keys, num_outputs;
} SortMaking;

static Expr* var_of(const SortMaking* making, AttrNumber attno) {
  const TargetEntry* entry = list_nth(making->entries, attno - 1);

  return (Expr*)makeVar(OUTER_VAR, attno, exprType((Node*)entry->expr), exprTypmod((Node*)entry->expr),
                        exprCollation((Node*)entry->expr), 0);
}

static void add_source(SortMaking* making, const ColumnPlan* column, const char* type, AttrNumber attno) {
  making->columns = lappend(making->columns, column_with(column, type, var_of(making, attno)));
}

static void add_output(SortMaking* making, const ColumnPlan* column, AttrNumber attno) {
  OutputPlan* output = palloc0(sizeof(OutputPlan));

  output->column = making->num_outputs;
  output->values = *column;
  making->plan.outputs = lappend(making->plan.outputs, output);
  making->output_of[attno - 1] = making->num_outputs++;
}

/* One key of a spec. The key comes out if the value can be had from it, and no key before it was the same column. */
static void add_key(SortMaking* making, const ColumnPlan* column, AttrNumber attno, const char* type, bool descending,
                    bool nulls_first, bool comes_out) {
  comes_out = comes_out && making->output_of[attno - 1] < 0;
  appendStringInfo(&making->spec, "%s%s:nullable%s%s%s", making->num_keys++ > 0 ? "," : "", type,
                   descending ? ":desc" : "", nulls_first ? ":nulls_first" : "", comes_out ? ":out" : "");
  add_source(making, column, type, attno);
  if (comes_out) add_output(making, column, attno);
}

static bool add_string_key(SortMaking* making, Oid type, Oid collation, AttrNumber attno, bool descending,
                           bool nulls_first) {
  ColumnPlan column = {.kind = type == BPCHAROID ? KIND_TRIMMED : KIND_TEXT};
  bool tie;
  const char* name = type_collation(collation, &tie);

  if (name == NULL) return false;
  if (strcmp(name, "binary") == 0) {
    add_key(making, &column, attno, "utf8_view(binary)", descending, nulls_first, type != BPCHAROID);
    return true;
  }
  /* Kernels make ICU's whole sort key of each string; PostgreSQL makes eight bytes of it, and compares where those are
   * equal, which is faster for texts that differ early. */
  if (quern_enabled != QUERN_FORCE) return false;
  add_key(making, &column, attno, psprintf("utf8_view(%s)", name), descending, nulls_first, false);
  if (tie) add_key(making, &column, attno, "utf8_view(binary)", descending, nulls_first, type != BPCHAROID);
  return true;
}

static bool add_sort_key(SortMaking* making, const Sort* sort, int i) {
  const AttrNumber attno = sort->sortColIdx[i];
  const TargetEntry* entry = list_nth(making->entries, attno - 1);
  const Oid type = exprType((Node*)entry->expr);
  ColumnPlan column = {0};
  const char* spec;
  Oid family;
  bool descending;

  if (making->num_keys >= 15) return false;
  if (!sort_operator_family(sort->sortOperators[i], &family, &descending)) return false;
  if (family != lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf) return false;
  switch (type) {
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID: return add_string_key(making, type, sort->collations[i], attno, descending, sort->nullsFirst[i]);
    case BYTEAOID:
      column.kind = KIND_TEXT;
      add_key(making, &column, attno, "binary_view", descending, sort->nullsFirst[i], true);
      return true;
    case UUIDOID:
      column.kind = KIND_FIXED, column.width = 16;
      add_key(making, &column, attno, "fixed_binary(16)", descending, sort->nullsFirst[i], true);
      return true;
    default:
      if (!type_number(type, exprTypmod((Node*)entry->expr), &column, &spec)) return false;
      /* A key has one 0 and one NaN; the value may have another one. */
      add_key(making, &column, attno, spec, descending, sort->nullsFirst[i], type != FLOAT4OID && type != FLOAT8OID);
      return true;
  }
}

/* The planner leaves constants where nobody reads a column. */
static bool comes_out(const Plan* plan, AttrNumber attno) {
  ListCell* cell;

  foreach (cell, plan->targetlist) {
    const Var* var = (const Var*)lfirst_node(TargetEntry, cell)->expr;

    if (IsA(var, Var) && var->varattno == attno) return true;
  }
  return false;
}

static bool add_payload(SortMaking* making, const Plan* plan) {
  bool is_first = true;
  ListCell* cell;

  foreach (cell, making->entries) {
    const TargetEntry* entry = lfirst(cell);
    const AttrNumber attno = (AttrNumber)(foreach_current_index(cell) + 1);
    ColumnPlan column = {0};
    const char* type;

    if (making->output_of[attno - 1] >= 0 || !comes_out(plan, attno)) continue;
    if (!type_carried(exprType((Node*)entry->expr), &column, &type)) return false;
    appendStringInfo(&making->spec, "%s%s:nullable", is_first ? " payload=" : ",", type);
    is_first = false;
    add_source(making, &column, type, attno);
    add_output(making, &column, attno);
  }
  return true;
}

/* The scan tuple has the columns of the result in their order; `targetlist` has those of the plan. */
static bool make_lists(SortMaking* making, const Plan* plan, List** scan_tlist, List** targetlist) {
  AttrNumber* attno_of = palloc0(sizeof(AttrNumber) * (making->num_outputs + 1));
  ListCell* cell;

  for (int i = 0; i < list_length(making->entries); ++i)
    if (making->output_of[i] >= 0) attno_of[making->output_of[i]] = (AttrNumber)(i + 1);
  for (int i = 0; i < making->num_outputs; ++i)
    *scan_tlist = lappend(*scan_tlist, makeTargetEntry(var_of(making, attno_of[i]), (AttrNumber)(i + 1), NULL, false));
  foreach (cell, plan->targetlist) {
    TargetEntry* entry = copyObject(lfirst_node(TargetEntry, cell));
    Var* var = (Var*)entry->expr;

    if (IsA(var, Const)) {
      *targetlist = lappend(*targetlist, entry);
      continue;
    }
    if (!IsA(var, Var) || var->varno != OUTER_VAR || var->varattno <= 0) return false;
    var->varno = INDEX_VAR;
    var->varattno = (AttrNumber)(making->output_of[var->varattno - 1] + 1);
    *targetlist = lappend(*targetlist, entry);
  }
  return true;
}

Plan* replace_sort(Sort* sort, int64 limit) {
  Plan *plan = &sort->plan, *child = plan->lefttree;
  SortMaking making = {.entries = child->targetlist};
  List *scan_tlist = NIL, *targetlist = NIL, *shown = NIL;

  if (plan->qual != NIL) return NULL;
  making.output_of = palloc(sizeof(int) * (list_length(child->targetlist) + 1));
  for (int i = 0; i < list_length(child->targetlist); ++i) making.output_of[i] = -1;
  initStringInfo(&making.spec);
  appendStringInfoString(&making.spec, "sort keys=");
  for (int i = 0; i < sort->numCols; ++i) {
    if (!add_sort_key(&making, sort, i)) return NULL;
    shown = lappend(shown, var_of(&making, sort->sortColIdx[i]));
  }
  making.plan.num_keys = making.num_keys;
  if (!add_payload(&making, plan) || !make_lists(&making, plan, &scan_tlist, &targetlist)) return NULL;
  if (limit > 0) appendStringInfo(&making.spec, " limit=" INT64_FORMAT, limit);
  making.plan.op = QUERN_SORT;
  making.plan.sources[0] = source_plan_make(child, making.columns, true, false);
  making.plan.spec = making.spec.data;
  making.plan.input_rows = child->plan_rows;
  making.plan.output_rows = plan->plan_rows;
  making.plan.stock = plan;
  return node_plan_make(&making.plan, list_make1(child), scan_tlist, targetlist, NIL, shown);
}
