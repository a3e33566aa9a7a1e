/* SPDX-License-Identifier: Apache-2.0
 *
 * The PostgreSQL extension: nodes of finished plans that run as kernels of libquern.
 *
 *     planner.c    planner_hook: which nodes of a finished plan become ours, and what that does to the cost
 *     join.c, loop.c, aggregate.c, sort.c
 *                  one node: its spec, its sources, its results
 *     variables.c  columns of children in expressions as columns of a node's rows
 *     source_plan.c, expressions.c
 *                  what is read from a child, and what a map computes of it
 *     types.c      PostgreSQL's types as column types of a spec
 *     node.c       CustomScan: life cycle, rows out, the stock plan where a value cannot be exact
 *     source.c, heap.c, tuples.c, lanes.h
 *                  batches from a child: by slots, by heap pages, from another of our nodes
 *     pipeline.c   rows of a source through all joins above it, into a node's job
 *     threads.c    threads that read pages of a table beside the backend's own
 *     columns.c    values into columns;   output.c: columns into Datums;   numeric.c: numerics as 128-bit integers
 *     explain.c    EXPLAIN;   versions.h: what differs between versions of PostgreSQL
 *
 * A node's plan is a CustomScan whose custom_private holds a NodePlan in list form (plan_lists.c), so that plans may be
 * copied and cached.
 */
#ifndef QUERN_PG_H_
#define QUERN_PG_H_

#include "postgres.h"
/* PostgreSQL's headers come first, in any order behind it. */
#include "access/tableam.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "portability/instr_time.h"
#include "quern.h"
#include "versions.h"

/* ---- settings (module.c) ---- */

typedef enum Enabled { QUERN_OFF, QUERN_ON, QUERN_FORCE } Enabled;
typedef enum ScanBy { SCAN_BY_SLOTS, SCAN_BY_PAGES } ScanBy;

extern int quern_enabled;    /* an Enabled */
extern bool quern_join;      /* replace hash joins */
extern bool quern_aggregate; /* .. aggregations */
extern bool quern_sort;      /* .. sorts */
extern bool quern_loop;      /* .. nested loops that look up an index */
extern int quern_min_rows;   /* rows that a node's children must be expected to bring */
extern int quern_scan;       /* a ScanBy */
extern int quern_min_memory; /* kB that a node may always take, whatever work_mem says */
extern int quern_loop_rows;  /* outer rows of a nested loop that are looked up; -1: as many as pay */
extern int quern_threads;    /* of a node; 0: as many as a parallel plan would have had processes */
extern bool quern_log_nodes; /* a line in the server's log for each node that has run */

/* ---- columns ---- */

/* How the values of a column cross between PostgreSQL and a kernel. */
typedef enum ColumnKind {
  KIND_BYVALUE,    /* width bytes of a Datum */
  KIND_I64_OF_I16, /* widened, since the other side of a join is wider */
  KIND_I64_OF_I32,
  KIND_F64_OF_F32,
  KIND_FIXED,       /* width bytes behind a pointer */
  KIND_VARLENA,     /* a whole varlena, its header in one canonical form: equal values are equal bytes */
  KIND_TEXT,        /* the bytes of a varlena, without its header */
  KIND_TRIMMED,     /* the same without blanks at the end: bpchar */
  KIND_DECIMAL,     /* a numeric as a 128-bit integer of `scale` digits behind the point */
  KIND_NUMERIC_KEY, /* a numeric as bytes that are equal where numerics are */
  KIND_BOOL,        /* a condition */
  KIND_FLAG         /* whether there is a value; no more */
} ColumnKind;

/* One column that a node reads from a child, or that comes out of it. */
typedef struct ColumnPlan {
  ColumnKind kind;
  int width;        /* bytes of KIND_BYVALUE and KIND_FIXED */
  int scale;        /* of KIND_DECIMAL */
  const char* type; /* of a source, and of a join's result: as a spec names it */
  Expr* expr;       /* of a source; of a result: not used */
  Expr* filter;     /* of a source: where it is not true, the expression must not be computed; or NULL */
} ColumnPlan;

/* How the rows of a child are read. */
typedef enum SourceWay {
  SOURCE_SLOTS,     /* columns are Vars of the child's rows */
  SOURCE_PROJECTED, /* columns are computed by PostgreSQL from the child's rows */
  SOURCE_PAGES,     /* the child scans a heap: columns are Vars of the relation */
  SOURCE_JOIN,      /* the child is a join of ours: columns are Vars of its scan tuple */
  SOURCE_NODE       /* the child is another node of ours: batches if they fit, else as slots */
} SourceWay;

typedef struct SourcePlan {
  SourceWay way;
  List* columns;    /* of ColumnPlan: what is read from the child */
  List* vectors;    /* of int, for what the kernel reads: a column, or -1 - i for result i of the map */
  char* types;      /* of the vectors of a join's source, as a pipeline's columns; else NULL */
  char* map;        /* a spec that computes columns, or NULL */
  List* map_inputs; /* of int: columns */
  char* condition;  /* of SOURCE_PAGES: a map with one bool, which replaces the scan's condition; or NULL */
  List* condition_inputs;
} SourcePlan;

/* How a result column of a node is made of the kernel's. */
typedef enum OutputKind {
  OUT_COLUMN,  /* column `column` as it is */
  OUT_NUMERIC, /* a 128-bit integer as numeric */
  OUT_SCALED,  /* the same, with as many digits behind the point as column + 1 says */
  OUT_AVERAGE, /* numeric: column / column + 1 */
  OUT_FLOAT    /* a float8 sum or average, which may have overflowed */
} OutputKind;

typedef struct OutputPlan {
  OutputKind kind;
  int column;        /* of the kernel's result */
  ColumnPlan values; /* how that column is read */
} OutputPlan;

typedef enum Operator { QUERN_JOIN, QUERN_AGGREGATE, QUERN_SORT } Operator;

/* What planning decides about a node. */
typedef struct NodePlan {
  Operator op;
  char* spec;
  int num_keys;           /* leading columns of each source that are keys */
  int key_bytes;          /* of a join with one key of strings: that its values have on the build side; 0: unknown */
  SourcePlan* sources[2]; /* joins: probe side, then build side */
  List* outputs;          /* of OutputPlan */
  int join_type;          /* a JoinType, or kJoinRightSemi, kJoinRightAnti */
  bool probes_first;      /* a join: its build side is not read where its probe side has no row */
  double input_rows;      /* as the planner expects */
  double output_rows;
  Plan* stock; /* the replaced node */
  /* Of a join in place of a nested loop: that loop, where it begins with it, else NULL; the outer rows that the planner
   * expects; and the milliseconds that reading the inner table is expected to take, 0 for other nodes. */
  Plan* loop;
  double outer_rows, hash_ms;
  int threads; /* that may work for it, the backend's own included */
} NodePlan;

/* ---- values into columns (columns.c) ---- */

/* Buffers of one column, filled row by row. */
typedef struct ColumnBuffer {
  ColumnKind kind;
  int width;
  int scale;
  AttrNumber attno; /* of the slot or tuple that values are read from */
  char* values;
  uint8* validity;
  bool has_nulls;
} ColumnBuffer;

typedef struct Bytes {
  char* data;
  Size used, size;
  bool of_thread; /* from malloc, not from a memory context */
} Bytes;

/* The rows of one batch. */
typedef struct Columns {
  int num_columns;
  int capacity; /* rows */
  ColumnBuffer* buffers;
  Bytes bytes;        /* of strings; cleared with each batch */
  const uint8* arena; /* bytes.data, for views */
  quern_column* vectors;
  bool inexact; /* a numeric had no 128-bit form: the batch is not to be used */
} Columns;

/* Rows of a batch, and bytes of its strings at which it ends early. */
#define BATCH_ROWS 4096
#define BATCH_BYTES ((Size)1 << 20)

static inline bool column_is_null(const quern_column* column, uint64 row) {
  return column->validity != NULL && ((column->validity[row >> 3] >> (row & 7)) & 1) == 0;
}

extern Columns* columns_create(const List* plans, int capacity);
/* An empty copy for another thread, in the current memory context but for its bytes, which columns_free_bytes frees. */
extern Columns* columns_create_for_thread(const List* plans, const Columns* like);
extern void columns_free_bytes(Columns* columns);
extern void columns_clear(Columns* columns);
extern void columns_put(Columns* columns, ColumnBuffer* column, int row, Datum value);
/* The same of a value as a tuple has it; `at` is aligned as its type asks. */
extern void columns_put_stored(Columns* columns, ColumnBuffer* column, int row, const char* at);
extern void columns_put_null(Columns* columns, ColumnBuffer* column, int row);

/* Tuples of a page that is pinned. */
typedef struct FoundTuples {
  const char* page;
  const uint16* tuples; /* their numbers in lists of places */
  int num_tuples;
  bool has_nulls; /* one of the page has */
  bool has_lanes; /* AVX-512 (lanes.h) */
} FoundTuples;

/* The values of tuples first .. first + n - 1 into rows row .. row + n - 1. `places`: of each tuple, bytes from the
 * begin of the page, 0 for null. No value is compressed or stored elsewhere. */
extern void columns_put_found(Columns* columns, ColumnBuffer* column, const uint16* places, const FoundTuples* found,
                              int first, int n, int row);
/* Completes `vectors`. */
extern void columns_finish(Columns* columns);

static inline bool columns_are_full(const Columns* columns, int rows) {
  return rows >= columns->capacity || columns->bytes.used >= BATCH_BYTES;
}

/* ---- numerics (numeric.c) ---- */

typedef __int128 Decimal;

/* Returns false where the value is NaN or infinite, or has more digits than fit. */
extern bool decimal_of_numeric(struct varlena* numeric, int scale, Decimal* decimal);
/* The same of values of a page, into n elements of 16 bytes; returns whether all of them have such a form. */
extern bool decimals_of_found(char* values, int scale, const uint16* places, const FoundTuples* found, int first,
                              int n);
/* In the current memory context, with `scale` digits behind the point. */
extern struct varlena* numeric_of_decimal(Decimal decimal, int scale);
/* Appends the canonical bytes of a numeric: those of equal numerics are equal. */
extern void numeric_append_key(struct varlena* numeric, Bytes* bytes);
extern char* bytes_reserve(Bytes* bytes, Size size);

/* ---- types (types.c) ---- */

/* Whether a type's values can be carried, and how; every type that a slot can hold can, but cstrings. */
extern bool type_carried(Oid type, ColumnPlan* column, const char** spec);
/* A key of a grouping or a sort-free comparison: the operator is the type's own equality. The value comes out again. */
extern bool type_group_key(Oid type, int32 typmod, Oid equality, Oid collation, ColumnPlan* column, const char** spec);
/* The two sides of an equality that a hash join can use. */
extern bool type_join_keys(Oid equality, Oid collation, ColumnPlan columns[2], const char** spec);
/* An argument of sum, min and so on: numbers, dates and times. */
/* The digits behind the point of every value of a numeric expression, where they are the same in all rows; else -1. */
extern int decimal_scale_of(Node* expr);
extern bool type_number(Oid type, int32 typmod, ColumnPlan* column, const char** spec);
/* "binary", "icu:TAG", or NULL where Quern does not have that order. `tie`: equal strings are ordered by bytes. */
extern const char* type_collation(Oid collation, bool* tie);

/* ---- expressions (expressions.c), sources (source_plan.c) ---- */

/* A map that grows by one result after the other. */
typedef struct ExpressionMaking {
  List** columns; /* of the source: those that expressions need are added */
  List* inputs;   /* of int: the columns $0, $1 .. */
  StringInfoData types, results;
  bool can_fail; /* a row may have no result */
} ExpressionMaking;

/* Adds an expression whose result is to have the form `as`. Returns false where it cannot be a map's. */
extern bool expression_add(ExpressionMaking* making, Node* expr, const ColumnPlan* as);
/* Whether an expression has a result of the form `as` in every row, so that it may be computed for rows that
 * PostgreSQL does not compute it for. */
extern bool expression_cannot_fail(const Node* expr, const ColumnPlan* as);
/* The strategy of a comparison in the default order of its type, 0 without one; equality and *negated for <>. */
extern int comparison_strategy(Oid operator, Oid type, bool* negated);
/* A clause that compares a column of a relation with a constant: low <= value <= high. Integers, dates, timestamps. */
extern bool expression_range(const Node* clause, Index relation, AttrNumber* attno, int* width, int64* low,
                             int64* high);
extern char* expression_spec(const ExpressionMaking* making);

/* The number of a column among those of a source, to which it is added if it is new. */
extern int source_column(List** columns, const ColumnPlan* column);
/* A copy of a column with its type's name in a spec, and the expression that it is read from. */
extern ColumnPlan* column_with(const ColumnPlan* column, const char* type, Expr* expr);
/* How the columns `wanted` (of ColumnPlan, over the child's rows) are had from a child. `may_fail`: the node can still
 * turn to the stock plan when a row has no result. `by_rows`: no pages are read, since the child's own
 * code has begun to. */
extern SourcePlan* source_plan_make(Plan* child, List* wanted, bool may_fail, bool by_rows);
/* Whether a plan scans a plain heap, whose pages may be read. */
extern bool scans_heap(const Plan* plan);

/* ---- plans (planner.c, plan_lists.c, join.c, aggregate.c, sort.c) ---- */

/* Each returns the node that takes the plan's place, or NULL. `limit`: rows that are wanted of a sort; 0: all. */
extern Plan* replace_join(HashJoin* join, bool build_by_rows);
/* has_many_rows: far more outer rows may come than the planner expects. */
extern Plan* replace_loop(NestLoop* loop, bool has_many_rows);
/* Whether the tuples of such a loop's inner table lie in the order of its index. */
extern bool loop_is_in_order(const NestLoop* loop);
/* What its lookups are expected to take where that table lies in shared buffers. */
extern double loop_expected_ms(const NestLoop* loop);
extern Plan* replace_aggregate(Agg* aggregate);
extern Plan* replace_sort(Sort* sort, int64 limit);

/* `targetlist` and `qual` refer to `scan_tlist` by INDEX_VAR. */
extern Plan* node_plan_make(const NodePlan* plan, List* children, List* scan_tlist, List* targetlist, List* qual,
                            List* shown);
extern List* node_plan_to_list(const NodePlan* plan);
extern NodePlan* node_plan_of_list(List* list);
extern bool node_is_ours(const Plan* plan);
extern Operator node_operator(const Plan* plan);
/* The relation of an entry of the range table of the statement whose nodes are being replaced. */
extern Oid planned_relation(Index entry);
/* The mean bytes of an expression over a plan's rows, header included, where it is a column that ANALYZE has seen, or
 * 0. */
extern int planned_width(const Plan* plan, const Expr* expr);

/* Collects the Vars of expressions over one or two children, each once, and maps them to columns of a scan tuple
 * (variables.c). */
typedef struct VarColumns {
  List* vars[2];    /* of OUTER_VAR, of INNER_VAR */
  List* aggregates; /* Aggrefs, each once */
  bool allows_subplans;
  bool failed;
} VarColumns;
extern void var_columns_collect(VarColumns* columns, Node* expr);
/* `var_positions[side]`: those of vars[side] in the scan tuple, from 1; `first_aggregate`: of the first Aggref. */
extern Node* var_columns_map(VarColumns* columns, Node* expr, List* var_positions[2], int first_aggregate);

extern void planner_install(void);

/* ---- sources (source.c, heap.c) ---- */

typedef struct QuernNode QuernNode;
typedef struct LoopRun LoopRun;
typedef struct HeapPages HeapPages;
typedef struct Threads Threads;

/* A map over columns of a source. */
typedef struct MapRun {
  quern_kernel* kernel;
  quern_job* job;
  quern_output* output;
  bool is_shared; /* all but the output are another source's */
  int num_inputs;
  int* inputs; /* columns */
  quern_column* keys;
  const quern_result* result;
} MapRun;

/* The rows of a child, batch by batch. */
typedef struct Source {
  const SourcePlan* plan;
  PlanState* child;
  Columns* columns;
  quern_column* vectors;      /* what the kernel reads, through the selection */
  const uint32* selection;    /* of the rows of the batch; NULL: all */
  QuernNode* node;            /* a child of ours that hands over whole batches; else NULL */
  int* node_columns;          /* its output, for each column */
  HeapPages* pages;           /* a heap whose pages are read here; else NULL */
  ProjectionInfo* projection; /* where columns are computed by PostgreSQL; else NULL */
  ExprContext* context;
  MapRun map, condition; /* their jobs are NULL where there is none */
  uint32* selected;      /* rows for which the condition is true */
  int max_attno;
  bool at_end;
  bool is_timed; /* by the child's instrumentation */
  bool failed;   /* the rows cannot be had exactly: the stock plan is to run */
} Source;

extern Source* source_create(QuernNode* parent, PlanState* child, const SourcePlan* plan);
/* For another thread: the same columns and maps, filled and run by itself. The second call opens handles, which
 * source_release_of_thread closes, also after an error. */
extern Source* source_create_for_thread(const Source* of);
extern void source_open_for_thread(Source* source, const Source* of);
extern void source_release_of_thread(Source* source);

/* The batch of source->vectors that a job takes: the first num_keys of them are keys. */
extern quern_batch source_batch(const Source* source, int num_keys, uint64 rows);
/* The same for an input that copies texts: it is faster where the rows lie side by side. */
extern quern_batch source_batch_to_keep(Source* source, int num_keys, uint64 rows);

/* The parts of source_next behind reading. Threads and pipelines call them for sources of their own: they call nothing
 * of PostgreSQL then, and raise errors by node_raise. */

/* Makes columns of rows of a child that is a join: keys of the batch are what the columns are made of. */
extern void source_take_rows(Source* source, const quern_batch* rows);
/* Lists the rows of the columns for which the condition holds, and returns how many; *selection: NULL where all do. */
extern uint64 source_filter(Source* source, uint64 rows, const uint32** selection);
/* Completes source->vectors and source->selection for these rows. Both: source->failed where a row has no result. */
extern void source_compute(Source* source, uint64 rows, const uint32* selection);
/* The number of the child's result that a column is made of, and whether it is read as it lies there. */
extern int source_result_column(const Source* source, int column);
extern bool source_reads_as_is(const Source* source, int column);
/* Returns the rows of the next batch, in source->vectors; 0 at the end, or where it has failed. */
extern uint64 source_next(Source* source);
extern void source_rescan(Source* source);
extern void source_end(Source* source);
/* Destroys its handles; also after an error. */
extern void source_release(Source* source);
extern const char* source_way(const Source* source);

/* Bytes that one prefetch brings. */
#define QUERN_CACHE_LINE 64

/* Attributes of the tuples of one page (tuples.c). */
typedef struct PageTuples PageTuples;

/* How the tuples of a page are put into columns. */
typedef enum PageKind {
  PAGE_BY_COLUMNS, /* column by column */
  PAGE_BY_ROWS,    /* a value is compressed or stored elsewhere: row by row, since it may be large */
  PAGE_BY_SLOTS    /* a tuple is older than a column: through PostgreSQL's executor */
} PageKind;

/* Of tuples with the attributes 1 .. num_attributes at least. */
extern PageTuples* page_tuples_create(TupleDesc descriptor, int num_attributes);
/* The places of an attribute, for each page that is read from now on. */
extern const uint16* page_tuples_read(PageTuples* tuples, AttrNumber attno);
/* Leaves out tuples whose attribute, an integer of `width` bytes, is null, below `low` or above `high`. */
extern void page_tuples_add_range(PageTuples* tuples, AttrNumber attno, int width, int64 low, int64 high);
/* Finds the attributes of the visible tuples of a page, and lists the tuples that are in all ranges, in their order.
 * `next`: a page to prefetch, or NULL. */
extern PageKind page_tuples_find(PageTuples* tuples, const char* page, bool is_prefetched, const char* next,
                                 const OffsetNumber* visible, int n, FoundTuples* found);

/* A page that is pinned, and its visible tuples. */
typedef struct ListedPage {
  Buffer buffer;
  BlockNumber block;
  const OffsetNumber* visible;
  int num_visible;
} ListedPage;

/* Puts tuples of pages into columns (heap.c). Calls nothing of PostgreSQL once it has been created. */
typedef struct PageReader PageReader;

extern PageReader* page_reader_create(const Source* source);
/* `next`: a page to prefetch, or NULL. The tuples of one of PAGE_BY_COLUMNS are taken next. */
extern PageKind page_reader_open(PageReader* reader, const char* page, bool is_prefetched, const char* next,
                                 const ListedPage* listed);
extern bool page_reader_at_end(const PageReader* reader);
/* Of the page that is open. */
extern int page_reader_num_tuples(const PageReader* reader);
/* Puts tuples into rows from `row` on, as many as there is room for; returns the row behind them. */
extern int page_reader_take(PageReader* reader, Columns* columns, int row);

extern HeapPages* heap_pages_create(const Source* source);
extern int heap_pages_fill(HeapPages* pages, Columns* columns);
/* Reads the next page for somebody else, with a pin of its own; false at the end, and where the next page remains for
 * this reader: all of its tuples have been read already to find those that are visible. `visible` has
 * MaxHeapTuplesPerPage elements. */
extern bool heap_pages_list(HeapPages* pages, ListedPage* page, OffsetNumber* visible);
/* Pages that are left and may be read by other threads. */
extern double heap_pages_left(const HeapPages* pages);
/* Gives pages to threads from now on; NULL: no more. */
extern void heap_pages_share(HeapPages* pages, Threads* threads);
extern void heap_pages_rescan(HeapPages* pages);
extern void heap_pages_end(HeapPages* pages);

/* ---- pipelines (pipeline.c) ---- */

typedef struct Pipeline Pipeline;

/* How rows on their way to a job have ended. */
typedef enum RowsEnd {
  ROWS_DONE,
  ROWS_INEXACT, /* one cannot be had exactly */
  ROWS_FAILED   /* with quern_last_error */
} RowsEnd;

/* Sends what a source still brings through the joins below `top` into node->input, past the nodes of these; returns at
 * once where there are none, or they are not ready for it. *added: rows of the job. What the joins have left is to be
 * read from `top` afterwards. */
extern RowsEnd pipeline_run(QuernNode* node, Source* top, uint64* added);

/* For threads. The sources that rows pass up to `top`, the lowest first; joins between two of them have been built. */
extern List* pipeline_sources(Source* top);
/* One of num_pipelines, in the current memory context. stopping: becomes true when nothing matters any more. */
extern Pipeline* pipeline_create(QuernNode* node, const List* sources, int num_pipelines, const bool* stopping);
/* Opens handles, which pipeline_close closes, also after an error. input: of the node's job. */
extern void pipeline_open(Pipeline* pipeline, const List* sources, quern_input* input);
/* Sends rows of a source that is a copy of the lowest one. It calls nothing of PostgreSQL, and neither does the next.
 */
extern RowsEnd pipeline_append(Pipeline* pipeline, Source* source, uint64 rows);
extern void pipeline_finish(Pipeline* pipeline);
extern void pipeline_close(Pipeline* pipeline);
extern uint64 pipeline_added(const Pipeline* pipeline);
/* For EXPLAIN ANALYZE. */
extern void pipeline_count_rows(const Pipeline* pipeline);

/* ---- threads (threads.c) ---- */

/* Starts threads that send rows of a source to the node's job through `port`, as the caller does, if these come from
 * pages of which enough are left. Sets node->threads to them, or leaves it NULL. */
extern void threads_start(QuernNode* node, Source* source, quern_port port);
/* Starts threads that do the work of the node's job. */
extern void threads_start_work(QuernNode* node);
/* How long a thread that can do no work pauses. */
#define QUERN_BUSY_US 50
/* Whether one of them has failed, so that the others have stopped. */
extern bool threads_have_failed(Threads* threads);

/* Stops the threads of a node, if it has any, and waits for them: until a call of the library has returned. *rows: that
 * they have added. quern_last_error, the caller's own or QUERN_OK, becomes a thread's if that one was first.
 * node->threads is NULL afterwards. */
extern RowsEnd threads_end(QuernNode* node, uint64* rows);
/* The same after an error, when pages are no longer to be released here. */
extern void threads_abort(QuernNode* node);

/* For heap.c. Gives pages to threads that have too few. */
extern void threads_feed(Threads* threads, HeapPages* pages);
/* A page that they have returned to the caller, who releases it; false: there is none now. */
extern bool threads_take_back(Threads* threads, ListedPage* page);
/* The same, but waits until all pages have been read; false: there is none, and the threads have ended. */
extern bool threads_wait(Threads* threads, ListedPage* page);

/* ---- nodes (node.c, output.c, explain.c) ---- */

typedef enum NodeState {
  NODE_NEW,
  NODE_LOOPING, /* a join: rows come from the nested loop */
  NODE_PROBING, /* a join: the probe side is read */
  NODE_READING, /* an output is read to its end */
  NODE_DONE
} NodeState;

/* A nested loop that a join begins with (loop.c). */
struct LoopRun {
  PlanState* state; /* the loop */
  PlanState* outer; /* its outer side, of which the kernel has the rows that the loop does not get */
  Columns* columns; /* rows of the loop */
  quern_result result;
  double expected_rows; /* of the outer side */
  double hash_ms;
  uint64 num_given;        /* outer rows, to the loop */
  uint64 num_timed;        /* of these */
  instr_time timed, began; /* looking them up; the last of them */
  bool is_timing;
  bool outer_ended, is_cut_off;
};

struct QuernNode {
  CustomScanState css;
  NodePlan* plan;
  Source* sources[2];
  quern_kernel* kernel;
  quern_job* job;
  quern_input* input;
  quern_output* output;
  const quern_result* result; /* NULL: none */
  uint64 row;                 /* of result, that is next */
  NodeState state;
  uint64 built_rows;  /* of a join's build side */
  uint64 first_rows;  /* of the probe side, read before the build side; 0: none */
  bool batch_pending; /* a pushed batch may have more rows */
  bool has_emitted;   /* a row or a batch has left the node */
  bool is_plain;      /* neither condition nor projection */
  int num_outputs;
  OutputPlan* outputs;
  LoopRun* loop;    /* NULL: there is none */
  Threads* threads; /* at work for the job; NULL: none */
  int num_threads;  /* the most that have worked for it, the backend's own included */
  int num_piped;    /* joins below it that a pipeline has passed */
  PlanState* stock; /* runs in the node's place; NULL: it does not */
  MemoryContextCallback callback;
  /* An empty context below the query's, whose identifier says what memory the job has, for
   * pg_backend_memory_contexts and pg_log_backend_memory_contexts; NULL before there is a job. */
  MemoryContext account;
  char account_text[48];
  uint64 account_kb;     /* in the text */
  quern_job_stats stats; /* of the last job */
  const char* tier;
};

extern const CustomScanMethods quern_join_methods, quern_aggregate_methods, quern_sort_methods, quern_gate_methods;
extern void node_register(void);
extern QuernNode* node_of_state(PlanState* state);
extern uint64 node_memory_limit(const QuernNode* node);
extern bool node_has_spilled(const QuernNode* node);
/* Raises what a cancelled query ends with. */
extern void node_check_interrupts(QuernNode* node);
/* Of its kernel: "name=value name=value", or NULL. */
extern const char* node_params(const NodePlan* plan);
/* Makes result the next batch. Returns false at its end, or where the stock plan has taken over (node->stock). */
extern bool node_next_batch(QuernNode* node);
/* Fills the scan tuple's slot with row node->row. */
extern void output_fill_slot(QuernNode* node, TupleTableSlot* slot, MemoryContext memory);
/* The value in row `row` of a column of KIND_VARLENA, where it lies. */
extern Datum output_varlena(const quern_column* column, uint64 row);
/* Whether a sum of floats of this batch has left the range, so that the stock plan has to say what that means. */
extern bool output_overflowed(const QuernNode* node);
extern void node_explain(CustomScanState* state, List* ancestors, ExplainState* explain);

extern LoopRun* loop_begin(QuernNode* node, EState* estate, int flags);
/* Makes node->result the loop's next rows; false at its end, which may come before that of the outer rows. */
extern bool loop_next(QuernNode* node);
extern void loop_rescan(QuernNode* node);
extern void loop_end(LoopRun* run);

/* In the block that pthread_create allocates: of a module that is loaded later, the C library otherwise allocates such
 * variables when a thread first uses them, and ends the process where memory is refused. */
#define QUERN_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

/* Each thread has its own. */
extern QUERN_THREAD_LOCAL quern_error* quern_last_error;
/* Where an error of a thread that is not the backend's own ends; NULL: it is. */
extern QUERN_THREAD_LOCAL sigjmp_buf* node_escape;
/* Raises the last error of libquern as PostgreSQL's, or ends what this thread does. */
QUERN_NORETURN extern void node_raise(void);
#define QUERN_CALL(call)                  \
  do {                                    \
    if ((call) != QUERN_OK) node_raise(); \
  } while (0)

#endif /* QUERN_PG_H_ */
