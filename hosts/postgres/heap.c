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
#include "storage/predicate.h"

/* Puts tuples of one page after the other into columns. */
struct PageReader {
  PageTuples* tuples;
  const uint16** places; /* of each column */
  PageKind kind;         /* of the page that is read */
  FoundTuples found;
  int next_tuple, num_tuples; /* of the page: those found, or those visible where it is read by slots */
};

struct HeapPages {
  SeqScanState* scan_state;
  TableScanDesc scan;
  const Source* source;
  ExprState* qual; /* the scan's condition where PostgreSQL has to decide it */
  BlockNumber next_block;
  bool at_end, has_skipped; /* the page before was not read by PostgreSQL's scan */
  BlockNumber next_skip;    /* the first that may not be */
  Buffer likely;            /* what has the next page, as it seems; else invalid */
  int step;                 /* from the buffer of one page to that of the next */
  PageReader* reader;
  ListedPage page;         /* that is read */
  bool page_is_kept;       /* a thread has returned it; its pin is released here */
  bool page_is_read;       /* it is the next one, already read */
  const char* prefetched;  /* a page; NULL: none */
  BlockNumber next_lookup; /* of a page in the shared buffers, ahead of its turn */
  Threads* threads;        /* which read pages as well; NULL: none */
};

/* ---- a page ---- */

static void find_ranges(PageReader* reader, const Source* source) {
  const SeqScan* scan = (const SeqScan*)source->child->plan;
  ListCell* cell;

  if (source->plan->condition == NULL) return;
  foreach (cell, scan->scan.plan.qual) {
    AttrNumber attno;
    int width;
    int64 low, high;

    if (expression_range(lfirst(cell), scan->scan.scanrelid, &attno, &width, &low, &high))
      page_tuples_add_range(reader->tuples, attno, width, low, high);
  }
}

PageReader* page_reader_create(const Source* source) {
  PageReader* reader = palloc0(sizeof(PageReader));
  const ScanState* state = &castNode(SeqScanState, source->child)->ss;
  const Columns* columns = source->columns;

  reader->tuples = page_tuples_create(RelationGetDescr(state->ss_currentRelation), source->max_attno);
  reader->places = palloc0(sizeof(uint16*) * (columns->num_columns + 1));
  for (int i = 0; i < columns->num_columns; ++i)
    reader->places[i] = page_tuples_read(reader->tuples, columns->buffers[i].attno);
  find_ranges(reader, source);
  return reader;
}

PageKind page_reader_open(PageReader* reader, const char* page, bool is_prefetched, const char* next,
                          const ListedPage* listed) {
  reader->next_tuple = 0;
  reader->num_tuples = listed->num_visible;
  reader->kind =
      page_tuples_find(reader->tuples, page, is_prefetched, next, listed->visible, listed->num_visible, &reader->found);
  if (reader->kind != PAGE_BY_SLOTS) reader->num_tuples = reader->found.num_tuples;
  return reader->kind;
}

bool page_reader_at_end(const PageReader* reader) { return reader->next_tuple >= reader->num_tuples; }

int page_reader_num_tuples(const PageReader* reader) { return reader->num_tuples; }

int page_reader_take(PageReader* reader, Columns* columns, int row) {
  const int n = Min(reader->num_tuples - reader->next_tuple, columns->capacity - row);

  for (int i = 0; i < columns->num_columns; ++i)
    columns_put_found(columns, &columns->buffers[i], reader->places[i], &reader->found, reader->next_tuple, n, row);
  reader->next_tuple += n;
  return row + n;
}

/* ---- rows one by one ---- */

/* Returns whether the row passes the scan's condition, and is in the batch. */
static bool put_by_slot(HeapPages* pages, Columns* columns, HeapTuple tuple, int row) {
  ScanState* scan = &pages->scan_state->ss;
  TupleTableSlot* slot = scan->ss_ScanTupleSlot;

  ExecStoreBufferHeapTuple(tuple, slot, pages->page.buffer);
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
  PageReader* reader = pages->reader;
  const Page page = BufferGetPage(pages->page.buffer);
  HeapTupleData tuple = {.t_tableOid = RelationGetRelid(pages->scan->rs_rd)};

  for (; !page_reader_at_end(reader) && !columns_are_full(columns, row); ++reader->next_tuple) {
    const OffsetNumber number = pages->page.visible[reader->next_tuple];
    const ItemId item = PageGetItemId(page, number);

    tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
    tuple.t_len = ItemIdGetLength(item);
    ItemPointerSet(&tuple.t_self, pages->page.block, number);
    row += put_by_slot(pages, columns, &tuple, row);
  }
  return row;
}

static int take_rows(PageReader* reader, Columns* columns, int row) {
  const FoundTuples* found = &reader->found;

  for (; !page_reader_at_end(reader) && !columns_are_full(columns, row); ++reader->next_tuple, ++row) {
    for (int i = 0; i < columns->num_columns; ++i) {
      const uint16 place = reader->places[i][found->tuples[reader->next_tuple]];

      if (place != 0) columns_put_stored(columns, &columns->buffers[i], row, found->page + place);
      else columns_put_null(columns, &columns->buffers[i], row);
    }
  }
  return row;
}

static int take_tuples(HeapPages* pages, Columns* columns, int row) {
  switch (pages->reader->kind) {
    case PAGE_BY_COLUMNS: return page_reader_take(pages->reader, columns, row);
    case PAGE_BY_ROWS: return take_rows(pages->reader, columns, row);
    case PAGE_BY_SLOTS: break;
  }
  return take_slots(pages, columns, row);
}

/* ---- the scan ---- */

HeapPages* heap_pages_create(const Source* source) {
  HeapPages* pages = palloc0(sizeof(HeapPages));
  SeqScanState* state = castNode(SeqScanState, source->child);

  pages->scan_state = state;
  pages->source = source;
  pages->qual = source->plan->condition == NULL ? state->ss.ps.qual : NULL;
  pages->reader = page_reader_create(source);
  /* Not where other scans of the table are: at page 0. */
  pages->scan =
      table_beginscan_strat(state->ss.ss_currentRelation, state->ss.ps.state->es_snapshot, 0, NULL, true, false);
  pages->has_skipped = true;
  pages->step = 1;
  return pages;
}

/* A page of fewer tuples has long ones, most of whose lines are not read. */
enum { kFewTuples = 16, kPagesWithoutLookup = 64, kHeaderBytes = 256, kNearBuffers = 4 };

/* A buffer close behind that of this page. */
static Buffer find_near_buffer(HeapPages* pages) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  Buffer buffer;

  if (!BufferIsValid(scan->rs_cbuf)) return InvalidBuffer;
  buffer = scan->rs_cbuf + pages->step;
  if (buffer_holds(scan->rs_base.rs_rd, pages->next_block, buffer)) return buffer;
  for (int step = 1; step <= kNearBuffers; ++step) {
    buffer = scan->rs_cbuf + step;
    if (!buffer_holds(scan->rs_base.rs_rd, pages->next_block, buffer)) continue;
    pages->step = step;
    return buffer;
  }
  return InvalidBuffer;
}

/* Finds out which of the shared buffers has the next page. Most often it lies close behind that of this page, since the
 * table was once read or written in order: a look-up takes 0.3 us, as its lines are in no cache. Where a look-up does
 * not find one page, the next ones are not looked up, since that asks the system to read them. */
static void find_next_buffer(HeapPages* pages, bool looks_up) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const BlockNumber next = pages->next_block;

  if (next >= scan->rs_nblocks || BufferIsValid(pages->likely)) return;
  pages->likely = find_near_buffer(pages);
  if (BufferIsValid(pages->likely) || !looks_up || next < pages->next_lookup) return;
  pages->likely = PrefetchBuffer(scan->rs_base.rs_rd, MAIN_FORKNUM, next).recent_buffer;
  if (!BufferIsValid(pages->likely)) pages->next_lookup = next + kPagesWithoutLookup;
}

/* The next page, so that it is prefetched; NULL: it is not in the shared buffers, or not worth it. */
static const char* next_page(HeapPages* pages) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;

  if (scan->rs_ntuples < kFewTuples) return NULL;
  find_next_buffer(pages, true);
  return BufferIsValid(pages->likely) ? BufferGetPage(pages->likely) : NULL;
}

static void list_all_tuples(HeapScanDesc scan, Page page) {
  const OffsetNumber last = PageGetMaxOffsetNumber(page);
  int n = 0;

  for (OffsetNumber number = FirstOffsetNumber; number <= last; ++number) {
    scan->rs_vistuples[n] = number;
    n += ItemIdIsNormal(PageGetItemId(page, number));
  }
  scan->rs_ntuples = n;
}

/* Reads the next page from the buffer that has it, if VACUUM has marked it as visible to all. What PostgreSQL's scan
 * does with such a page, without the look-up. Returns false where the scan has to read it. */
static bool read_visible_page(HeapPages* pages) {
  const Buffer buffer = pages->likely;
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const Relation relation = scan->rs_base.rs_rd;
  const Snapshot snapshot = scan->rs_base.rs_snapshot;
  bool all_visible;

  if (!BufferIsValid(buffer) || !PageIsAllVisible(BufferGetPage(buffer)) || snapshot->takenDuringRecovery) return false;
  if (pages->next_block < pages->next_skip) return false;
  if (CheckForSerializableConflictOutNeeded(relation, snapshot)) return false;
  if (!buffer_pin(relation, pages->next_block, buffer, scan->rs_strategy)) return false;
  if (BufferIsValid(scan->rs_cbuf)) ReleaseBuffer(scan->rs_cbuf);
  scan->rs_cbuf = buffer;
  scan->rs_cblock = pages->next_block;
  heap_page_prune_opt(relation, buffer);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  test_for_old_snapshot(snapshot, relation, BufferGetPage(buffer));
  all_visible = PageIsAllVisible(BufferGetPage(buffer));
  if (all_visible) list_all_tuples(scan, BufferGetPage(buffer));
  LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
  return all_visible;
}

/* Reads the next page of the table; false: there is none. */
static bool read_page(HeapPages* pages) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;

  pages->at_end = pages->next_block >= scan->rs_nblocks;
  if (pages->at_end) return false;
  find_next_buffer(pages, false);
  if (read_visible_page(pages)) {
    pages->has_skipped = true;
  } else {
    heap_read_page(pages->scan, pages->next_block, pages->has_skipped);
    if (pages->has_skipped) pages->next_skip = pages->next_block + kPagesOfStream;
    pages->has_skipped = false;
  }
  pages->likely = InvalidBuffer;
  ++pages->next_block;
  pages->page.buffer = scan->rs_cbuf;
  pages->page.block = scan->rs_cblock;
  pages->page.visible = scan->rs_vistuples;
  pages->page.num_visible = (int)scan->rs_ntuples;
  count_returned_tuples(scan->rs_base.rs_rd, pages->page.num_visible);
  return true;
}

/* What of a page is read to list its tuples. */
static void prefetch_header(const char* page) {
  if (page == NULL) return;
  for (int i = 0; i < kHeaderBytes; i += QUERN_CACHE_LINE) __builtin_prefetch(page + i);
}

bool heap_pages_list(HeapPages* pages, ListedPage* page, OffsetNumber* visible) {
  if (pages->page_is_read || !read_page(pages)) return false;
  if (!PageIsAllVisible(BufferGetPage(pages->page.buffer))) {
    pages->page_is_read = true;
    return false;
  }
  *page = pages->page;
  page->visible = visible;
  memcpy(visible, pages->page.visible, sizeof(OffsetNumber) * page->num_visible);
  IncrBufferRefCount(page->buffer);
  prefetch_header(next_page(pages));
  return true;
}

/* Whether the next page will be a thread's. */
static bool gives_away(const HeapPages* pages) {
  return pages->threads != NULL && PageIsAllVisible(BufferGetPage(pages->page.buffer));
}

/* Finds the tuples of the page that has been read. */
static void open_page(HeapPages* pages) {
  PageReader* reader = pages->reader;
  const char* page = BufferGetPage(pages->page.buffer);
  bool is_prefetched;

  if (pages->qual != NULL) {
    reader->kind = PAGE_BY_SLOTS;
    reader->next_tuple = 0;
    reader->num_tuples = pages->page.num_visible;
    return;
  }
  is_prefetched = page == pages->prefetched;
  pages->prefetched = pages->page_is_kept || gives_away(pages) ? NULL : next_page(pages);
  page_reader_open(reader, page, is_prefetched, pages->prefetched, &pages->page);
  InstrCountFiltered1(pages->scan_state, pages->page.num_visible - reader->num_tuples);
}

static void drop_page(HeapPages* pages) {
  /* The slot holds a pin of the page before. */
  ExecClearTuple(pages->scan_state->ss.ss_ScanTupleSlot);
  if (pages->page_is_kept) ReleaseBuffer(pages->page.buffer);
  pages->page_is_kept = false;
  pages->reader->next_tuple = pages->reader->num_tuples = 0;
}

/* Lets go of the page that was read, and makes the next one the page that is read: one that a thread has returned, or
 * one of the table. Threads may return some after the last one of the table. */
static bool turn_page(HeapPages* pages) {
  drop_page(pages);
  if (pages->threads != NULL) {
    pages->page_is_kept = threads_take_back(pages->threads, &pages->page);
    if (pages->page_is_kept) return true;
    threads_feed(pages->threads, pages);
  }
  if (pages->page_is_read || read_page(pages)) {
    pages->page_is_read = false;
    return true;
  }
  if (pages->threads != NULL) pages->page_is_kept = threads_wait(pages->threads, &pages->page);
  return pages->page_is_kept;
}

int heap_pages_fill(HeapPages* pages, Columns* columns) {
  int rows = 0;

  for (;;) {
    if (!page_reader_at_end(pages->reader)) rows = take_tuples(pages, columns, rows);
    if (!page_reader_at_end(pages->reader) || columns_are_full(columns, rows)) break;
    CHECK_FOR_INTERRUPTS();
    if (!turn_page(pages)) break;
    open_page(pages);
  }
  return rows;
}

double heap_pages_left(const HeapPages* pages) {
  const HeapScanDesc scan = (HeapScanDesc)pages->scan;
  const BlockNumber next = BlockNumberIsValid(scan->rs_cblock) ? scan->rs_cblock + 1 : 0;

  if (pages->at_end || pages->qual != NULL || RelationUsesLocalBuffers(pages->scan->rs_rd)) return 0;
  return next < scan->rs_nblocks ? scan->rs_nblocks - next : 0;
}

void heap_pages_share(HeapPages* pages, Threads* threads) { pages->threads = threads; }

void heap_pages_rescan(HeapPages* pages) {
  pages->next_block = pages->next_lookup = pages->next_skip = 0;
  pages->likely = InvalidBuffer;
  pages->has_skipped = true;
  pages->at_end = pages->page_is_read = false;
  drop_page(pages);
  table_rescan(pages->scan, NULL);
}

void heap_pages_end(HeapPages* pages) {
  drop_page(pages);
  table_endscan(pages->scan);
}
