/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between PostgreSQL 15 and 18. Nothing else of the extension asks for the server's version.
 */
#ifndef QUERN_PG_VERSIONS_H_
#define QUERN_PG_VERSIONS_H_

#include "postgres.h"
/* PostgreSQL's headers come first, in any order behind it. */
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "commands/explain.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* Before the declaration of a function that does not return. */
#if PG_VERSION_NUM >= 180000
#define QUERN_NORETURN pg_noreturn
#else
#define QUERN_NORETURN __attribute__((noreturn))
#endif

/* Where a catalogue has the ICU locales of a database and of a collation. */
#if PG_VERSION_NUM >= 170000
enum { kIcuOfDatabase = Anum_pg_database_datlocale, kIcuOfCollation = Anum_pg_collation_colllocale };
#else
enum { kIcuOfDatabase = Anum_pg_database_daticulocale, kIcuOfCollation = Anum_pg_collation_colliculocale };
#endif

/* Where a catalogue has rules that change the order of such a locale; 0: it has none. */
#if PG_VERSION_NUM >= 160000
enum { kRulesOfDatabase = Anum_pg_database_daticurules, kRulesOfCollation = Anum_pg_collation_collicurules };
#else
enum { kRulesOfDatabase = 0, kRulesOfCollation = 0 };
#endif

/* Whether a test asks for parallel plans whatever they cost. */
static inline bool parallel_is_forced(void) {
#if PG_VERSION_NUM >= 160000
  return debug_parallel_query != DEBUG_PARALLEL_OFF;
#else
  return force_parallel_mode != FORCE_PARALLEL_OFF;
#endif
}

/* Whether strings of a collation are ordered by their bytes. */
static inline bool collation_is_c(Oid collation) {
#if PG_VERSION_NUM >= 180000
  return pg_newlocale_from_collation(collation)->collate_is_c;
#else
  return lc_collate_is_c(collation);
#endif
}

/* The operator family of a sort operator, and whether that sorts downwards; false where it is no such operator. */
static inline bool sort_operator_family(Oid operator, Oid * family, bool* descending) {
  Oid input;
#if PG_VERSION_NUM >= 180000
  CompareType order;

  if (!get_ordering_op_properties(operator, family, &input, &order)) return false;
  *descending = order == COMPARE_GT;
#else
  int16 order;

  if (!get_ordering_op_properties(operator, family, &input, &order)) return false;
  *descending = order == BTGreaterStrategyNumber;
#endif
  return true;
}

/* Nodes of a plan that settings such as enable_hashjoin forbid; before version 18 these add to its cost. */
static inline int plan_disabled_nodes(const Plan* plan) {
#if PG_VERSION_NUM >= 180000
  return plan->disabled_nodes;
#else
  return 0;
#endif
}

/* Semi and anti joins whose rows are those of the build side. Where PostgreSQL has none, nodes of ours may. */
#if PG_VERSION_NUM >= 180000
enum { kJoinRightSemi = JOIN_RIGHT_SEMI };
#else
enum { kJoinRightSemi = 1000 };
#endif
#if PG_VERSION_NUM >= 160000
enum { kJoinRightAnti = JOIN_RIGHT_ANTI };
#else
enum { kJoinRightAnti = 1001 };
#endif

/* The kind of such a join, as a spec names it; NULL: another join. */
static inline const char* join_of_build_rows(int type) {
  if (type == kJoinRightAnti) return "right_anti";
  return type == kJoinRightSemi ? "right_semi" : NULL;
}

/* For pg_stat_user_tables. */
static inline void count_returned_tuples(Relation relation, int n) {
  if (!pgstat_should_count_relation(relation)) return;
#if PG_VERSION_NUM >= 160000
  relation->pgstat_info->counts.tuples_returned += n;
#else
  relation->pgstat_info->t_counts.t_tuples_returned += n;
#endif
}

/* Reads a page of a scan, whose visible tuples are then listed in scan->rs_vistuples. `skips`: the page before was not
 * read by this function. The scan begins at page 0. */
static inline void heap_read_page(TableScanDesc table_scan, BlockNumber block, bool skips) {
#if PG_VERSION_NUM >= 170000
  HeapScanDesc scan = (HeapScanDesc)table_scan;

  if (BufferIsValid(scan->rs_cbuf)) ReleaseBuffer(scan->rs_cbuf);
  scan->rs_cbuf = InvalidBuffer;
  scan->rs_dir = ForwardScanDirection;
  if (skips) {
    read_stream_reset(scan->rs_read_stream);
    scan->rs_inited = block > 0;
    if (block > 0) scan->rs_prefetch_block = block - 1;
  }
  scan->rs_cbuf = read_stream_next_buffer(scan->rs_read_stream, NULL);
  scan->rs_cblock = block;
  if (!BufferIsValid(scan->rs_cbuf) || BufferGetBlockNumber(scan->rs_cbuf) != block)
    elog(ERROR, "quern: a scan does not return page %u", block);
  heap_prepare_pagescan(table_scan);
#else
  heapgetpage(table_scan, block);
#endif
}

/* Pages that the scan then reads at least: its look-ahead has begun with them. */
#if PG_VERSION_NUM >= 170000
enum { kPagesOfStream = 64 };
#else
enum { kPagesOfStream = 1 };
#endif

/* Whether a shared buffer had a page of a table just now. Reads what another process may be writing. */
static inline bool buffer_holds(Relation relation, BlockNumber block, Buffer buffer) {
  const BufferDesc* descriptor;
  BufferTag tag;

  if (buffer <= 0 || buffer > NBuffers || RelationUsesLocalBuffers(relation)) return false;
  descriptor = GetBufferDescriptor(buffer - 1);
#if PG_VERSION_NUM >= 160000
  InitBufferTag(&tag, &relation->rd_locator, MAIN_FORKNUM, block);
  return BufferTagsEqual(&tag, &descriptor->tag);
#else
  INIT_BUFFERTAG(tag, relation->rd_node, MAIN_FORKNUM, block);
  return BUFFERTAGS_EQUAL(tag, descriptor->tag);
#endif
}

/* Counts that the page of a shared buffer is used, as PostgreSQL does where it looks the page up (PinBuffer). A header
 * that another process has locked is left alone: the count is a hint for replacement. */
static inline void buffer_count_use(Buffer buffer, BufferAccessStrategy strategy) {
  BufferDesc* descriptor = GetBufferDescriptor(buffer - 1);
  const uint32 most = strategy != NULL ? 1 : BM_MAX_USAGE_COUNT;
  uint32 state = pg_atomic_read_u32(&descriptor->state);

  while ((state & BM_LOCKED) == 0 && BUF_STATE_GET_USAGECOUNT(state) < most) {
    if (pg_atomic_compare_exchange_u32(&descriptor->state, &state, state + BUF_USAGECOUNT_ONE)) break;
  }
}

/* Pins a buffer if it has this page of a table; counts as a read. */
static inline bool buffer_pin(Relation relation, BlockNumber block, Buffer buffer, BufferAccessStrategy strategy) {
#if PG_VERSION_NUM >= 160000
  if (!ReadRecentBuffer(relation->rd_locator, MAIN_FORKNUM, block, buffer)) return false;
#if PG_VERSION_NUM >= 180000
  pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, 1, 0);
#else
  pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT);
#endif
#else
  if (!ReadRecentBuffer(relation->rd_node, MAIN_FORKNUM, block, buffer)) return false;
#endif
  buffer_count_use(buffer, strategy);
  pgstat_count_buffer_read(relation);
  pgstat_count_buffer_hit(relation);
  return true;
}

/* Raises the error of a snapshot whose rows have been removed from a page. */
static inline void test_for_old_snapshot(Snapshot snapshot, Relation relation, Page page) {
#if PG_VERSION_NUM < 170000
  TestForOldSnapshot(snapshot, relation, page);
#endif
}

#endif /* QUERN_PG_VERSIONS_H_ */
