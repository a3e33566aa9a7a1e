/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a plain heap, read page by page. Visibility is decided by the heap's own code (heap_read_page), which also
 * prunes pages and reports conflicts of serializable transactions, as it does for a sequential scan. What is left out
 * is a call of the executor for each row.
 */
#include "quern_pg.h"

#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "storage/bufpage.h"

struct HeapPages {
  SeqScanState* scan_state;
  TableScanDesc scan;
  const Source* source;
  ExprState* qual; /* the scan's condition where PostgreSQL has to decide it */
  BlockNumber next_block;
  bool at_end;
  PageTuples* tuples;
  const uint16** places; /* of each column */
  PageKind kind;         /* of the page that is read */
  FoundTuples found;
  const char* prefetched;     /* a page; NULL: none */
  BlockNumber next_lookup;    /* of a page in the shared buffers, ahead of its turn */
  int next_tuple, num_tuples; /* of the page: those found, or those visible where it is read by slots */
};

static void find_ranges(HeapPages* pages) {
  const SeqScan* scan = (const SeqScan*)pages->scan_state->ss.ps.plan;
  ListCell* cell;

  if (pages->source->plan->condition == NULL) return;
  foreach (cell, scan->scan.plan.qual) {
    AttrNumber attno;
    int width;
    int64 low, high;

    if (expression_range(lfirst(cell), scan->scan.scanrelid, &attno, &width, &low, &high))
      page_tuples_add_range(pages->tuples, attno, width, low, high);
  }
}

HeapPages* heap_pages_create(const Source* source) {
  HeapPages* pages = palloc0(sizeof(HeapPages));
  SeqScanState* state = castNode(SeqScanState, source->child);
  Relation relation = state->ss.ss_currentRelation;
  const Columns* columns = source->columns;

  pages->scan_state = state;
  pages->source = source;
  pages->qual = source->plan->condition == NULL ? state->ss.ps.qual : NULL;
  pages->tuples = page_tuples_create(RelationGetDescr(relation), source->max_attno);
  pages->places = palloc0(sizeof(uint16*) * (columns->num_columns + 1));
  for (int i = 0; i < columns->num_columns; ++i)
    pages->places[i] = page_tuples_read(pages->tuples, columns->buffers[i].attno);
  find_ranges(pages);
  pages->scan = table_beginscan(relation, state->ss.ps.state->es_snapshot, 0, NULL);
  return pages;
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
static int take_slots(HeapPages* pages, Columns* columns, int row) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const Page page = BufferGetPage(scan->rs_cbuf);
  HeapTupleData tuple = {.t_tableOid = RelationGetRelid(scan->rs_base.rs_rd)};

  for (; pages->next_tuple < pages->num_tuples && !columns_are_full(columns, row); ++pages->next_tuple) {
    const OffsetNumber number = scan->rs_vistuples[pages->next_tuple];
    const ItemId item = PageGetItemId(page, number);

    tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSet(&tuple.t_self, scan->rs_cblock, number);
    row += put_by_slot(pages, columns, &tuple, row);
  }
  return row;
}

static int take_rows(HeapPages* pages, Columns* columns, int row) {
  const FoundTuples* found = &pages->found;

  for (; pages->next_tuple < pages->num_tuples && !columns_are_full(columns, row); ++pages->next_tuple, ++row) {
    for (int i = 0; i < columns->num_columns; ++i) {
      const uint16 place = pages->places[i][found->tuples[pages->next_tuple]];

      if (place != 0) columns_put_stored(columns, &columns->buffers[i], row, found->page + place);
      else columns_put_null(columns, &columns->buffers[i], row);
    }
  }
  return row;
}

static int take_columns(HeapPages* pages, Columns* columns, int row) {
  const int n = Min(pages->num_tuples - pages->next_tuple, columns->capacity - row);

  for (int i = 0; i < columns->num_columns; ++i)
    columns_put_found(columns, &columns->buffers[i], pages->places[i], &pages->found, pages->next_tuple, n, row);
  pages->next_tuple += n;
  return row + n;
}

static int take_tuples(HeapPages* pages, Columns* columns, int row) {
  switch (pages->kind) {
    case PAGE_BY_COLUMNS: return take_columns(pages, columns, row);
    case PAGE_BY_ROWS: return take_rows(pages, columns, row);
    case PAGE_BY_SLOTS: break;
  }
  return take_slots(pages, columns, row);
}

/* A page of fewer tuples has long ones, most of whose lines are not read. */
enum { kFewTuples = 16, kPagesWithoutLookup = 64 };

/* Where the next page lies in the shared buffers, so that it is prefetched; NULL: not there. Where one page is not, the
 * next ones are not looked for, since looking asks the system to read them. */
static const char* next_page(HeapPages* pages) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const BlockNumber next = scan->rs_cblock + 1;
  Buffer buffer;

  if (scan->rs_ntuples < kFewTuples || next >= scan->rs_nblocks || next < pages->next_lookup) return NULL;
  buffer = PrefetchBuffer(scan->rs_base.rs_rd, MAIN_FORKNUM, next).recent_buffer;
  if (BufferIsValid(buffer)) return BufferGetPage(buffer);
  pages->next_lookup = next + kPagesWithoutLookup;
  return NULL;
}

/* Finds the tuples of the page that has been read. */
static void open_page(HeapPages* pages) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const char* page = BufferGetPage(scan->rs_cbuf);
  const int n = (int)scan->rs_ntuples;
  bool is_prefetched;

  pages->kind = PAGE_BY_SLOTS;
  pages->num_tuples = n;
  count_returned_tuples(scan->rs_base.rs_rd, n);
  if (pages->qual != NULL) return;
  is_prefetched = page == pages->prefetched;
  pages->prefetched = next_page(pages);
  pages->kind =
      page_tuples_find(pages->tuples, page, is_prefetched, pages->prefetched, scan->rs_vistuples, n, &pages->found);
  if (pages->kind == PAGE_BY_SLOTS) return;
  pages->num_tuples = pages->found.num_tuples;
  InstrCountFiltered1(pages->scan_state, n - pages->num_tuples);
}

int heap_pages_fill(HeapPages* pages, Columns* columns) {
  int rows = 0;

  for (;;) {
    if (pages->next_tuple < pages->num_tuples) rows = take_tuples(pages, columns, rows);
    if (pages->next_tuple < pages->num_tuples || columns_are_full(columns, rows)) break;
    if (pages->at_end) break;
    CHECK_FOR_INTERRUPTS();
    /* The slot holds a pin of the page before. */
    ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
    pages->next_tuple = pages->num_tuples = 0;
    pages->at_end = !heap_read_page(pages->scan, &pages->next_block);
    if (pages->at_end) break;
    open_page(pages);
  }
  return rows;
}

void heap_pages_rescan(HeapPages* pages) {
  pages->next_block = pages->next_lookup = 0;
  pages->at_end = false;
  pages->next_tuple = pages->num_tuples = 0;
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  table_rescan(pages->scan, NULL);
}

void heap_pages_end(HeapPages* pages) {
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  table_endscan(pages->scan);
}
