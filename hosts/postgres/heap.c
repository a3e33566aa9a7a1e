/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a plain heap, read page by page. Visibility is decided by the heap's own heapgetpage, which also prunes
 * pages and reports conflicts of serializable transactions, as it does for a sequential scan. What is left out is a
 * call of the executor for each row.
 */
#include "quern_pg.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

struct HeapPages {
  SeqScanState* scan_state;
  TableScanDesc scan;
  const Source* source;
  ExprState* qual; /* the scan's condition where PostgreSQL has to decide it */
  BlockNumber next_block;
  int next_tuple, num_tuples; /* of the page that is read */
  bool offsets_known;         /* of every column, in tuples without nulls */
};

/* heapgetpage has another form and another name from version 17 on; such servers hand rows over by slots. */
#if PG_VERSION_NUM < 170000

/* Sets the offset of a column where no column before it is variable; returns whether there is one. */
static bool find_offset(TupleDesc descriptor, ColumnBuffer* column) {
  int offset = 0;

  for (int i = 0; i < column->attno; ++i) {
    const Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
    const bool is_last = i == column->attno - 1;

    if (attribute->atthasmissing) return false;
    if (attribute->attlen == -1 && is_last) {
      /* A header of one byte stands where it is, one of four is aligned: known at the tuple. */
      column->offset = offset;
      return attribute->attalign == TYPALIGN_INT;
    }
    if (attribute->attlen < 0) return false;
    offset = att_align_nominal(offset, attribute->attalign);
    column->offset = offset;
    offset += attribute->attlen;
  }
  return true;
}

HeapPages* heap_pages_create(const Source* source) {
  HeapPages* pages = palloc0(sizeof(HeapPages));
  SeqScanState* state = castNode(SeqScanState, source->child);
  Relation relation = state->ss.ss_currentRelation;

  pages->scan_state = state;
  pages->source = source;
  pages->qual = source->plan->condition == NULL ? state->ss.ps.qual : NULL;
  pages->offsets_known = pages->qual == NULL;
  for (int i = 0; i < source->columns->num_columns; ++i)
    if (!find_offset(RelationGetDescr(relation), &source->columns->buffers[i])) pages->offsets_known = false;
  pages->scan = table_beginscan(relation, state->ss.ps.state->es_snapshot, 0, NULL);
  return pages;
}

/* Columns of a tuple without nulls, all of which have a known offset. */
static void put_in_place(Columns* columns, HeapTuple tuple, int row) {
  char* data = (char*)tuple->t_data + tuple->t_data->t_hoff;

  for (int i = 0; i < columns->num_columns; ++i) {
    ColumnBuffer* column = &columns->buffers[i];
    const char* at = data + column->offset;

    if (column->kind == KIND_BYVALUE) {
      switch (column->width) {
        case 1: ((uint8*)column->values)[row] = *(const uint8*)at; break;
        case 2: ((uint16*)column->values)[row] = *(const uint16*)at; break;
        case 4: ((uint32*)column->values)[row] = *(const uint32*)at; break;
        default: ((uint64*)column->values)[row] = *(const uint64*)at; break;
      }
    } else if (column->kind == KIND_I64_OF_I32) {
      ((int64*)column->values)[row] = *(const int32*)at;
    } else if (column->kind == KIND_I64_OF_I16) {
      ((int64*)column->values)[row] = *(const int16*)at;
    } else if (column->kind == KIND_F64_OF_F32) {
      ((float8*)column->values)[row] = *(const float4*)at;
    } else if (column->kind == KIND_FIXED || column->kind == KIND_FLAG) {
      columns_put(columns, column, row, PointerGetDatum(at));
    } else {
      columns_put(columns, column, row,
                  PointerGetDatum(data + att_align_pointer(column->offset, TYPALIGN_INT, -1, at)));
    }
  }
}

/* Returns whether the row passes the scan's condition, and is in the batch. */
static bool put_by_slot(HeapPages* pages, Columns* columns, HeapTuple tuple, int row) {
  ScanState* scan = &pages->scan_state->ss;
  TupleTableSlot* slot = scan->ss_ScanTupleSlot;

  ExecStoreBufferHeapTuple(tuple, slot, ((HeapScanDesc)pages->scan)->rs_cbuf);
  if (pages->qual != NULL) {
    ResetExprContext(scan->ps.ps_ExprContext);
    scan->ps.ps_ExprContext->ecxt_scantuple = slot;
    if (!ExecQual(pages->qual, scan->ps.ps_ExprContext)) {
      InstrCountFiltered1(scan, 1);
      return false;
    }
  }
  if (pages->source->max_attno > 0) slot_getsomeattrs(slot, pages->source->max_attno);
  for (int i = 0; i < columns->num_columns; ++i) {
    ColumnBuffer* column = &columns->buffers[i];

    if (slot->tts_isnull[column->attno - 1]) columns_put_null(columns, column, row);
    else columns_put(columns, column, row, slot->tts_values[column->attno - 1]);
  }
  return true;
}

/* Takes tuples of the current page until the batch is full. */
static int take_tuples(HeapPages* pages, Columns* columns, int row) {
  HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const Page page = BufferGetPage(scan->rs_cbuf);
  HeapTupleData tuple = {.t_tableOid = RelationGetRelid(scan->rs_base.rs_rd)};

  for (; pages->next_tuple < pages->num_tuples && !columns_are_full(columns, row); ++pages->next_tuple) {
    const OffsetNumber number = scan->rs_vistuples[pages->next_tuple];
    const ItemId item = PageGetItemId(page, number);

    tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSet(&tuple.t_self, scan->rs_cblock, number);
    if (pages->offsets_known && !HeapTupleHasNulls(&tuple) &&
        HeapTupleHeaderGetNatts(tuple.t_data) >= pages->source->max_attno) {
      put_in_place(columns, &tuple, row++);
    } else if (put_by_slot(pages, columns, &tuple, row)) {
      ++row;
    }
  }
  return row;
}

/* For pg_stat_user_tables. */
static void count_tuples(Relation relation, int n) {
  if (!pgstat_should_count_relation(relation)) return;
#if PG_VERSION_NUM >= 160000
  relation->pgstat_info->counts.tuples_returned += n;
#else
  relation->pgstat_info->t_counts.t_tuples_returned += n;
#endif
}

int heap_pages_fill(HeapPages* pages, Columns* columns) {
  HeapScanDesc scan = (HeapScanDesc)pages->scan;
  int rows = 0;

  for (;;) {
    if (pages->next_tuple < pages->num_tuples) rows = take_tuples(pages, columns, rows);
    if (pages->next_tuple < pages->num_tuples || columns_are_full(columns, rows)) break;
    if (pages->next_block >= scan->rs_nblocks) break;
    CHECK_FOR_INTERRUPTS();
    /* The slot holds a pin of the page before. */
    ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
    heapgetpage(pages->scan, pages->next_block++);
    pages->next_tuple = 0;
    pages->num_tuples = scan->rs_ntuples;
    count_tuples(scan->rs_base.rs_rd, pages->num_tuples);
  }
  return rows;
}

void heap_pages_rescan(HeapPages* pages) {
  pages->next_block = 0;
  pages->next_tuple = pages->num_tuples = 0;
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  table_rescan(pages->scan, NULL);
}

void heap_pages_end(HeapPages* pages) {
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  table_endscan(pages->scan);
}

#else

HeapPages* heap_pages_create(const Source* source) { return NULL; }
int heap_pages_fill(HeapPages* pages, Columns* columns) { return 0; }
void heap_pages_rescan(HeapPages* pages) {}
void heap_pages_end(HeapPages* pages) {}

#endif
