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

typedef struct Attribute {
  int16 length;
  char align;
  uint32 offset; /* of a leading attribute of fixed length, in tuples without nulls */
} Attribute;

typedef struct Range {
  AttrNumber attno;
  int width;
  int64 low, high;
} Range;

struct HeapPages {
  SeqScanState* scan_state;
  TableScanDesc scan;
  const Source* source;
  ExprState* qual; /* the scan's condition where PostgreSQL has to decide it */
  BlockNumber next_block;
  bool at_end;
  int next_tuple, num_tuples; /* of the page that is read */
  Attribute* attributes;      /* of tuples: those up to the last that is read */
  int num_attributes;
  int num_fixed; /* leading attributes whose offset is the same in all tuples without nulls */
  uint32 fixed_bytes;
  const char** places; /* of the attributes of one tuple; NULL: null */
  Range* ranges;       /* that a tuple has to be in */
  int num_ranges;
};

/* Lists the attributes up to the last that is read. */
static void find_attributes(HeapPages* pages, TupleDesc descriptor) {
  const int n = pages->source->max_attno;
  int offset = 0;

  pages->attributes = palloc0(sizeof(Attribute) * (n + 1));
  pages->num_attributes = n;
  for (int i = 0; i < n; ++i) {
    const Form_pg_attribute form = TupleDescAttr(descriptor, i);
    Attribute* attribute = &pages->attributes[i];

    attribute->length = form->attlen;
    attribute->align = form->attalign;
    if (pages->num_fixed == i && form->attlen > 0) {
      offset = att_align_nominal(offset, form->attalign);
      attribute->offset = offset;
      offset += form->attlen;
      ++pages->num_fixed;
    }
  }
  pages->fixed_bytes = offset;
  pages->places = palloc0(sizeof(char*) * (n + 1));
}

static void find_ranges(HeapPages* pages) {
  const SeqScan* scan = (const SeqScan*)pages->scan_state->ss.ps.plan;
  ListCell* cell;

  if (pages->source->plan->condition == NULL) return;
  pages->ranges = palloc(sizeof(Range) * list_length(scan->scan.plan.qual));
  foreach (cell, scan->scan.plan.qual) {
    Range* range = &pages->ranges[pages->num_ranges];

    if (expression_range(lfirst(cell), scan->scan.scanrelid, &range->attno, &range->width, &range->low, &range->high))
      ++pages->num_ranges;
  }
}

HeapPages* heap_pages_create(const Source* source) {
  HeapPages* pages = palloc0(sizeof(HeapPages));
  SeqScanState* state = castNode(SeqScanState, source->child);
  Relation relation = state->ss.ss_currentRelation;

  pages->scan_state = state;
  pages->source = source;
  pages->qual = source->plan->condition == NULL ? state->ss.ps.qual : NULL;
  find_attributes(pages, RelationGetDescr(relation));
  find_ranges(pages);
  pages->scan = table_beginscan(relation, state->ss.ps.state->es_snapshot, 0, NULL);
  return pages;
}

/* Finds where the attributes lie; those that are null have no place. */
static void locate(HeapPages* pages, HeapTupleHeader tuple) {
  const char* data = (const char*)tuple + tuple->t_hoff;
  const bits8* nulls = (tuple->t_infomask & HEAP_HASNULL) != 0 ? tuple->t_bits : NULL;
  const int first = nulls == NULL ? pages->num_fixed : 0;
  uint32 offset = nulls == NULL ? pages->fixed_bytes : 0;

  for (int i = 0; i < first; ++i) pages->places[i] = data + pages->attributes[i].offset;
  for (int i = first; i < pages->num_attributes; ++i) {
    const Attribute* attribute = &pages->attributes[i];

    if (nulls != NULL && att_isnull(i, nulls)) {
      pages->places[i] = NULL;
      continue;
    }
    offset = att_align_pointer(offset, attribute->align, attribute->length, data + offset);
    pages->places[i] = data + offset;
    offset = att_addlength_pointer(offset, attribute->length, data + offset);
  }
}

/* Whether the tuple may pass the condition: its ranges of integers are tested before anything is copied. */
static bool in_ranges(const HeapPages* pages) {
  for (int i = 0; i < pages->num_ranges; ++i) {
    const Range* range = &pages->ranges[i];
    const char* at = pages->places[range->attno - 1];
    int64 value;

    if (at == NULL) return false;
    value = range->width == 4 ? *(const int32*)at : *(const int64*)at;
    if (value < range->low || value > range->high) return false;
  }
  return true;
}

static void put_in_place(const HeapPages* pages, Columns* columns, int row) {
  for (int i = 0; i < columns->num_columns; ++i) {
    ColumnBuffer* column = &columns->buffers[i];
    const char* at = pages->places[column->attno - 1];

    if (at != NULL) columns_put_stored(columns, column, row, at);
    else columns_put_null(columns, column, row);
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

/* Tuples of a page that has been read long ago lie in memory, not in a cache, and in an order that the processor does
 * not foresee: those to come are prefetched, with the attributes that are read from them. */
enum { kPrefetchDistance = 6, kCacheLine = 64, kPrefetchBytes = 256 };

static void prefetch_tuple(const HeapPages* pages, Page page) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const int ahead = pages->next_tuple + kPrefetchDistance;
  ItemId item;
  const char* tuple;

  if (ahead >= pages->num_tuples) return;
  item = PageGetItemId(page, scan->rs_vistuples[ahead]);
  tuple = PageGetItem(page, item);
  for (unsigned i = 0; i < Min(ItemIdGetLength(item), kPrefetchBytes); i += kCacheLine) __builtin_prefetch(tuple + i);
}

/* Takes tuples of the current page until the batch is full. */
static int take_tuples(HeapPages* pages, Columns* columns, int row) {
  HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const Page page = BufferGetPage(scan->rs_cbuf);
  HeapTupleData tuple = {.t_tableOid = RelationGetRelid(scan->rs_base.rs_rd)};

  for (; pages->next_tuple < pages->num_tuples && !columns_are_full(columns, row); ++pages->next_tuple) {
    const OffsetNumber number = scan->rs_vistuples[pages->next_tuple];
    const ItemId item = PageGetItemId(page, number);

    prefetch_tuple(pages, page);
    tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSet(&tuple.t_self, scan->rs_cblock, number);
    if (pages->qual == NULL && HeapTupleHeaderGetNatts(tuple.t_data) >= pages->num_attributes) {
      locate(pages, tuple.t_data);
      if (in_ranges(pages)) put_in_place(pages, columns, row++);
      else InstrCountFiltered1(pages->scan_state, 1);
    } else if (put_by_slot(pages, columns, &tuple, row)) {
      ++row;
    }
  }
  return row;
}

int heap_pages_fill(HeapPages* pages, Columns* columns) {
  HeapScanDesc scan = (HeapScanDesc)pages->scan;
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
    pages->num_tuples = (int)scan->rs_ntuples;
    count_returned_tuples(scan->rs_base.rs_rd, pages->num_tuples);
  }
  return rows;
}

void heap_pages_rescan(HeapPages* pages) {
  pages->next_block = 0;
  pages->at_end = false;
  pages->next_tuple = pages->num_tuples = 0;
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  table_rescan(pages->scan, NULL);
}

void heap_pages_end(HeapPages* pages) {
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  table_endscan(pages->scan);
}
