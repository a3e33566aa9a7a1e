/* SPDX-License-Identifier: Apache-2.0 */
#include "quern_pg.h"

#include <limits.h>
#include <sys/stat.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

int quern_enabled = QUERN_ON;
bool quern_join = true;
bool quern_aggregate = true;
bool quern_sort = true;
bool quern_loop = true;
int quern_loop_rows = -1;
int quern_min_rows = 10000;
int quern_scan = SCAN_BY_PAGES;
int quern_min_memory = 16 * 1024;
int quern_threads = 0;
bool quern_log_nodes = false;

static const struct config_enum_entry kEnabled[] = {
    {"off", QUERN_OFF, false}, {"on", QUERN_ON, false}, {"force", QUERN_FORCE, false}, {NULL, 0, false}};
static const struct config_enum_entry kScan[] = {
    {"slots", SCAN_BY_SLOTS, false}, {"pages", SCAN_BY_PAGES, false}, {NULL, 0, false}};

static void define_settings(void) {
  DefineCustomEnumVariable("quern.enabled", "Runs joins, aggregations and sorts as kernels of Quern.",
                           "force: wherever that is exact, whatever the cost.", &quern_enabled, QUERN_ON, kEnabled,
                           PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomBoolVariable("quern.joins", "Replaces hash joins.", NULL, &quern_join, true, PGC_USERSET, GUC_EXPLAIN,
                           NULL, NULL, NULL);
  DefineCustomBoolVariable("quern.aggregates", "Replaces aggregations.", NULL, &quern_aggregate, true, PGC_USERSET,
                           GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomBoolVariable("quern.sorts", "Replaces sorts.", NULL, &quern_sort, true, PGC_USERSET, GUC_EXPLAIN, NULL,
                           NULL, NULL);
  DefineCustomBoolVariable("quern.loops", "Replaces nested loops that look up an index.", NULL, &quern_loop, true,
                           PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomIntVariable("quern.loop_rows", "Outer rows of a nested loop that are looked up in the index.",
                          "-1: as many as are expected to be faster than a hash join.", &quern_loop_rows, -1, -1,
                          INT_MAX / 4, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomIntVariable("quern.min_rows", "Expected input rows below which PostgreSQL's own node runs.", NULL,
                          &quern_min_rows, 10000, 0, INT_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomEnumVariable("quern.scan", "How nodes read the rows of tables: by slots or by whole pages.", NULL,
                           &quern_scan, SCAN_BY_PAGES, kScan, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomIntVariable("quern.min_memory", "Memory that a node may take even if work_mem allows less.",
                          "Above the larger of the two, rows go to temporary files.", &quern_min_memory, 16 * 1024,
                          16 * 1024, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomIntVariable("quern.threads", "Threads of a node, the backend's own included.",
                          "0: as many as a parallel plan would have processes.", &quern_threads, 0, 0, 64, PGC_USERSET,
                          GUC_EXPLAIN, NULL, NULL, NULL);
  DefineCustomBoolVariable("quern.log_nodes", "Writes a line to the server's log for each node that has run.", NULL,
                           &quern_log_nodes, false, PGC_SUSET, 0, NULL, NULL, NULL);
  MarkGUCPrefixReserved("quern");
}

/* Compiled kernels stay in the cluster, for its other backends and for its next start. */
static void set_cache_folder(void) {
  char folder[MAXPGPATH];

  snprintf(folder, sizeof(folder), "%s/quern_cache", DataDir);
  setenv("QUERN_CACHE_DIR", folder, 0);
}

void _PG_init(void);
void _PG_init(void) {
  define_settings();
  set_cache_folder();
  node_register();
  planner_install();
}

PG_FUNCTION_INFO_V1(quern_pg_version);
Datum quern_pg_version(PG_FUNCTION_ARGS) { PG_RETURN_TEXT_P(cstring_to_text(quern_version())); }
