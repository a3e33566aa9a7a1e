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

typedef struct Attribute {
  int16 length;
  char align;
  int first_column; /* that is read from it; -1: none */
  uint32 offset;    /* of a leading attribute of fixed length, in tuples without nulls */
} Attribute;

struct HeapPages {
  SeqScanState* scan_state;
  TableScanDesc scan;
  const Source* source;
  ExprState* qual; /* the scan's condition where PostgreSQL has to decide it */
  BlockNumber next_block;
  int next_tuple, num_tuples; /* of the page that is read */
  Attribute* attributes;      /* of tuples: those up to the last that is read */
  int num_attributes;
  int num_fixed; /* leading attributes whose offset is the same in all tuples without nulls */
  uint32 fixed_bytes;
  int* next_column; /* of the same attribute; -1: none */
};

/* heapgetpage has another form and another name from version 17 on; such servers hand rows over by slots. */
#if PG_VERSION_NUM < 170000

/* Lists the attributes up to the last that is read, and the columns that are read from each. */
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
    attribute->first_column = -1;
    if (pages->num_fixed == i && form->attlen > 0) {
      offset = att_align_nominal(offset, form->attalign);
      attribute->offset = offset;
      offset += form->attlen;
      ++pages->num_fixed;
    }
  }
  pages->fixed_bytes = offset;
  pages->next_column = palloc0(sizeof(int) * (pages->source->columns->num_columns + 1));
  for (int i = pages->source->columns->num_columns; i-- > 0;) {
    Attribute* attribute = &pages->attributes[pages->source->columns->buffers[i].attno - 1];

    pages->next_column[i] = attribute->first_column;
    attribute->first_column = i;
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
  pages->scan = table_beginscan(relation, state->ss.ps.state->es_snapshot, 0, NULL);
  return pages;
}

static void put_attribute(const HeapPages* pages, Columns* columns, const Attribute* attribute, int row,
                          const char* at) {
  for (int i = attribute->first_column; i >= 0; i = pages->next_column[i])
    columns_put_stored(columns, &columns->buffers[i], row, at);
}

/* Walks the attributes of a tuple from the first whose offset is not the same in all tuples. */
static void put_in_place(const HeapPages* pages, Columns* columns, HeapTupleHeader tuple, int row) {
  const char* data = (const char*)tuple + tuple->t_hoff;
  const bits8* nulls = (tuple->t_infomask & HEAP_HASNULL) != 0 ? tuple->t_bits : NULL;
  int first = 0;
  uint32 offset = 0;

  if (nulls == NULL) {
    for (; first < pages->num_fixed; ++first) {
      const Attribute* attribute = &pages->attributes[first];

      if (attribute->first_column >= 0) put_attribute(pages, columns, attribute, row, data + attribute->offset);
    }
    offset = pages->fixed_bytes;
  }
  for (int i = first; i < pages->num_attributes; ++i) {
    const Attribute* attribute = &pages->attributes[i];

    if (nulls != NULL && att_isnull(i, nulls)) {
      for (int c = attribute->first_column; c >= 0; c = pages->next_column[c])
        columns_put_null(columns, &columns->buffers[c], row);
      continue;
    }
    offset = att_align_pointer(offset, attribute->align, attribute->length, data + offset);
    if (attribute->first_column >= 0) put_attribute(pages, columns, attribute, row, data + offset);
    offset = att_addlength_pointer(offset, attribute->length, data + offset);
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
      put_in_place(pages, columns, tuple.t_data, row++);
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
