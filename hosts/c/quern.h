/* SPDX-License-Identifier: Apache-2.0
 *
 * Quern's C ABI: kernels for joins, aggregations, sorts and filters, compiled for one spec on this machine, called from
 * any engine. Plain C11; nothing but this header and libquern.so is needed.
 *
 *     spec text -> quern_compile -> quern_kernel
 *
 * A join:
 *
 *     quern_join_create -> quern_join_append_*  (build side, batch by batch) -> quern_join_finalise
 *     quern_prober_create -> quern_prober_input_* (a batch of the probe side) -> quern_prober_next_* until no more
 *                            (both again for each further batch)
 *
 * and, for joins that also return build rows on their own (right, full, right_semi, right_anti), after all probing:
 *
 *     quern_prober_input_unmatched -> quern_prober_next_* until no more
 *
 * An aggregation:
 *
 *     quern_aggregate_create -> quern_aggregate_append_* (batch by batch) -> quern_aggregate_finalise
 *     quern_groups_create -> quern_groups_next_* until no more
 *
 * or an aggregation in two phases, with a shuffle by the host between them: quern_groups_create with QUERN_GROUP_STATES
 * returns states instead of results; quern_aggregate_append_states_* adds them to another aggregation of the same spec.
 *
 * A sort, and a merge of the output of several sorts:
 *
 *     quern_sort_create -> quern_sort_append_* (batch by batch) -> quern_sort_finalise
 *     quern_sorted_create -> quern_sorted_next_* until no more
 *     quern_merge_create -> quern_merge_next_* until done; where it needs input, quern_merge_input_* or quern_merge_end
 *
 * A filter, which keeps nothing from one batch to the next:
 *
 *     quern_filter_create -> quern_filter_select_* or quern_filter_bitmap_* or quern_filter_count_*, batch by batch
 *
 * In a host with threads, each thread appends through its own quern_appender (quern_aggregate_appender,
 * quern_sort_appender), and all of them finalise with quern_join_finalise_shared (quern_aggregate_finalise_shared,
 * quern_sort_finalise_shared). A host without threads calls quern_join_run, quern_aggregate_run or quern_sort_run,
 * which do all of this.
 *
 * Errors: a function that can fail returns a quern_status; QUERN_OK is 0. If it is given an error object (which may be
 * NULL), it leaves one line of text there. Exceptions never cross this boundary, and nothing aborts.
 *
 * Threads: any number of threads may share a kernel. A join, an aggregation or a sort is built by one thread at a time,
 * or by any number of appenders with one thread each. After finalise, any number of readers (quern_prober,
 * quern_groups, quern_sorted) may read it, with one thread each. A merge is used by one thread at a time; a filter by
 * any number at once.
 *
 * Ownership: handles are reference-counted. Destroy each one once, in any order.
 *
 * ABI: functions are only added, never changed. Structs are frozen, except those with a struct_size member, which holds
 * their size. quern_abi_version() returns the version of the library that was loaded, QUERN_ABI_VERSION is that of this
 * header. A library serves all headers of the same major version.
 */
#ifndef QUERN_H_
#define QUERN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_ABI_VERSION_MAJOR 1
#define QUERN_ABI_VERSION_MINOR 6
#define QUERN_ABI_VERSION (QUERN_ABI_VERSION_MAJOR * 1000 + QUERN_ABI_VERSION_MINOR)

#define QUERN_API __attribute__((visibility("default")))

/* The structs of the Arrow C data interface; complete where the host has included their definition. */
struct ArrowSchema;
struct ArrowArray;

typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_INVALID_ARGUMENT = 1,   /* the caller's mistake; the text names the value and what is accepted */
  QUERN_RESOURCE_EXHAUSTED = 2, /* the memory limit, or the machine's memory */
  /* Calls in the wrong order, a machine that cannot run this, or data that has no result: a sum that is too large, a
     host's function that failed. */
  QUERN_FAILED_PRECONDITION = 3,
  QUERN_UNIMPLEMENTED = 4,
  QUERN_INTERNAL = 5, /* a defect of Quern */
  QUERN_CANCELLED = 6 /* the host has stopped the job */
} quern_status;

/* Owned by the caller; filled on failure. The text is one NUL-terminated line, cut if it is longer than the array. */
typedef struct quern_error {
  quern_status status;
  char text[1020];
} quern_error;

typedef struct quern_kernel quern_kernel;
typedef struct quern_join quern_join;
typedef struct quern_appender quern_appender;
typedef struct quern_prober quern_prober;
typedef struct quern_aggregate quern_aggregate;
typedef struct quern_aggregate_appender quern_aggregate_appender;
typedef struct quern_groups quern_groups;
typedef struct quern_sort quern_sort;
typedef struct quern_sort_appender quern_sort_appender;
typedef struct quern_sorted quern_sorted;
typedef struct quern_merge quern_merge;
typedef struct quern_filter quern_filter;
typedef struct quern_job quern_job;
typedef struct quern_input quern_input;
typedef struct quern_output quern_output;

QUERN_API uint32_t quern_abi_version(void);
/* "0.1.0" */
QUERN_API const char* quern_version(void);

/* ---- kernels ---- */

typedef enum quern_engine {
  QUERN_ENGINE_AUTO = 0,   /* generic at first; compiled as soon as that pays off */
  QUERN_ENGINE_JIT = 1,    /* compiled before quern_compile returns; otherwise an error */
  QUERN_ENGINE_GENERIC = 2 /* never compiled */
} quern_engine;

/* Makes the kernel for a spec, or finds it in the process's cache. `params`: NULL or "name=value name=value" (see
 * `quern dump plan`).
 *
 * QUERN_ENGINE_AUTO returns at once. The generic kernel, whose results are identical to the bit, runs until the jobs
 * that use the kernel have processed so many rows that compiling pays off. Then a thread of the library compiles, and
 * joins, aggregations, sorts and filters use the machine code from their next batch on and keep their data. A kernel
 * that the process has compiled before starts compiled. If compiling fails, the generic kernel continues to run, and
 * one warning gives the reason (quern_set_log_callback, quern_kernel_text). Cost: 10 to 50 us; below 1 us for a spec
 * that was requested before.
 *
 * QUERN_ENGINE_JIT costs 3 to 40 ms the first time, or 1 ms if an earlier process has left the kernel on disk; below 1
 * us afterwards. */
QUERN_API quern_status quern_compile(const char* spec, quern_engine engine, const char* params, quern_kernel** kernel,
                                     quern_error* error);
QUERN_API void quern_kernel_destroy(quern_kernel* kernel);

typedef enum quern_compile_when {
  QUERN_COMPILE_BACKGROUND = 0, /* like QUERN_ENGINE_AUTO above */
  QUERN_COMPILE_NOW = 1         /* before the call returns; if that fails, the generic kernel is used */
} quern_compile_when;

/* All zeros give the behaviour of quern_compile. */
typedef struct quern_compile_options {
  size_t struct_size; /* sizeof(quern_compile_options): later versions may add members at the end */
  quern_engine engine;
  quern_compile_when when; /* only for QUERN_ENGINE_AUTO, as are all members below except params */
  const char* params;      /* NULL or "name=value name=value"; only read during the call */
  /* The rows that one thread of the host is about to process, of all inputs. If that many pay off, compiling begins
   * now. 0: unknown. */
  uint64_t expected_rows;
  /* For tests: compile after exactly this many rows. The caller gets a kernel of its own, which is generic up to that
   * point even if the process already has the compiled one. 0: compile when it pays off. */
  uint64_t compile_after_rows;
  /* For tests: the call that adds the last of these rows returns only when the compiled kernel is ready, and the next
   * batch runs on that kernel. */
  bool swap_waits;
} quern_compile_options;

QUERN_API quern_status quern_compile_with(const char* spec, const quern_compile_options* options, quern_kernel** kernel,
                                          quern_error* error);

/* Like expected_rows, for a job that uses an existing kernel. quern_join_run, quern_aggregate_run and quern_sort_run
 * call it themselves. */
QUERN_API void quern_kernel_expect_rows(quern_kernel* kernel, uint64_t num_rows);

/* Returns how many of `available` threads pay for a job of num_rows input rows (UINT64_MAX: unknown), at least one.
 * This is advice: any number works. With a NULL kernel or a NULL look_rows the rows alone decide. For an aggregation
 * the number of groups counts too: if *look_rows is not 0 afterwards, append the first *look_rows rows with one thread
 * and call again, with the number of groups after look i in groups_seen[i] (num_looks of them; at first none, and
 * groups_seen may be NULL). Since 1.6. */
QUERN_API uint32_t quern_advise_threads(const quern_kernel* kernel, uint64_t num_rows, uint32_t available,
                                        const uint64_t* groups_seen, size_t num_looks, uint64_t* look_rows);

/* Describes a kernel. The names are "spec" (canonical), "plan", "layout", "engine" (what runs now: "jit" or "generic"),
 * "cache" (where the compiled code came from: "memory", "disk", "miss"; "off" while there is none), "compile_ms",
 * "code_bytes" and "warning" (why the kernel is not compiled and will not be). Returns NULL for any other name. The
 * text lives as long as the kernel. */
QUERN_API const char* quern_kernel_text(const quern_kernel* kernel, const char* name);

/* ---- counters ---- */

/* What one job, or all jobs of a kernel, have counted batch by batch. Counting is always on; only reading has a cost.
 * Since 1.5. */
typedef struct quern_counters {
  size_t struct_size;     /* sizeof(quern_counters), set by the caller: later versions may add members at the end */
  uint64_t rows, batches; /* input, for a join of both sides; a batch is one of the kernel's, with batch_size rows at
                             most */
  uint64_t ns;            /* spent in calls of the operator, summed over threads; only some of the short calls are
                             timed */
  uint64_t tag_hits;      /* rows whose tag or bit led to a tuple; in tables without tags, rows that found their slot */
  uint64_t chain_steps;   /* further tuples, slots or directory entries that were visited */
  uint64_t growths;       /* of group tables */
  uint64_t generic_rows, generic_batches;   /* those of the rows and batches that the generic kernel processed */
  uint64_t compiled_rows, compiled_batches; /* those that the compiled kernel processed */
  const char* prefetch_class; /* after finalise: "l2", "l3" or "dram", by the size of the table; "group" for sorts;
                                 "off"; "" where there is none */
  const char* tier;           /* which kernel ran: "generic", "compiled", "both", "none" */
  const char* cache;          /* where the compiled kernel came from: "memory", "disk", "miss", "off" */
} quern_counters;

/* The counters of all jobs that have run the kernel, through any handle that shares it. These calls are allowed at any
 * time and from any thread. NULL gives zeros. */
QUERN_API void quern_kernel_get_counters(const quern_kernel* kernel, quern_counters* counters);
QUERN_API void quern_join_get_counters(const quern_join* join, quern_counters* counters);
QUERN_API void quern_aggregate_get_counters(const quern_aggregate* aggregate, quern_counters* counters);
QUERN_API void quern_sort_get_counters(const quern_sort* sort, quern_counters* counters);
QUERN_API void quern_merge_get_counters(const quern_merge* merge, quern_counters* counters);
QUERN_API void quern_filter_get_counters(const quern_filter* filter, quern_counters* counters);

/* ---- batches of a host's own vectors ---- */

/* How the values of a column lie in memory, where that differs from the type; may be combined. */
typedef enum quern_column_flags {
  QUERN_COLUMN_CONSTANT = 1, /* element 0 is the value of every row, also in the bitmaps */
  /* utf8_view, binary_view: elements longer than 12 bytes end in a pointer instead of a buffer's number and an offset,
     as the string_t of DuckDB and the strings of Umbra do; `buffers` is not read. */
  QUERN_COLUMN_POINTERS = 2,
  QUERN_COLUMN_BYTES = 4 /* bool: one byte a row; any value but 0 is true */
} quern_column_flags;

/* One column of one batch. Element r of the buffers belongs to row r. The buffers depend on the type:
 *
 * fixed width: `values`. bool: `values` is a bitmap (bit 0 of byte 0 first) that starts at bit `bit_offset`. utf8,
 * binary: `values` holds the bytes and `offsets` int32 offsets (large_: int64), one more than there are rows. Views:
 * `values` holds 16-byte Arrow views and `buffers` the data buffers. Dictionaries: `values` holds the indices and
 * `dictionary` the values.
 *
 * `validity` is a bitmap that starts at bit `bit_offset`; a set bit means that the row has a value. NULL: no nulls. A
 * string is shorter than 4 GiB.
 *
 * The members up to bit_offset suffice for Arrow's layouts; zeros in the others change nothing. A column that uses
 * `selection`, `flags` or `value_bytes` is copied into a plain one for the rows of the batch, at a few ns a row. */
typedef struct quern_column {
  const uint8_t* validity;
  const void* values;
  const void* offsets;
  const uint8_t* const* buffers;
  const struct quern_column* dictionary;
  uint64_t bit_offset;
  const uint32_t* selection; /* NULL, or the column's own: element selection[r] belongs to row r, in every buffer and
                                bitmap */
  uint32_t flags;            /* of quern_column_flags */
  uint32_t value_bytes;      /* 0, or the bytes of an integer or decimal that is stored narrower than its type: 1, 2, 4
                                or 8 */
  uint64_t num_bytes;        /* of results only: the bytes of the column's strings */
  uint64_t null_count;       /* of results only */
  uint64_t reserved;         /* 0 */
} quern_column;

/* One batch. `keys` and `payload` are in the order of the spec. A `rowid` payload needs a column too, which is not
 * read. num_rows counts the selected rows and is below 2^32 - 1.
 *
 * Join: after the payload, the same array holds this side's column of each comparison of `residual`.
 *
 * Aggregation: `payload` holds the columns of each aggregate in turn: its arguments, then its `:filter` (a bool column
 * in which null counts as false). A batch of states has the keys of results (dictionaries decoded), and a binary column
 * for each aggregate as payload.
 *
 * Filter: `keys` holds one column for each mention of a column in the condition, in the order of mention; `payload` is
 * not read.
 *
 * The contents are trusted: only pointers are checked for NULL. Use the Arrow calls for data from untrusted sources. */
typedef struct quern_batch {
  const quern_column* keys;
  const quern_column* payload;
  const uint32_t* selection; /* NULL, or the numbers of the rows that take part */
  uint64_t num_rows;
  /* The row id of the batch's row 0, for rowid columns. The aggregates first, last and string_agg and stable sorts use
   * row ids as well. */
  uint64_t first_row_id;
  /* 0: the members above. Otherwise sizeof(quern_batch): later versions may add members at the end. */
  size_t struct_size;
} quern_batch;

/* Which rows of an Arrow array take part, and their row ids. The members mean the same as those of quern_batch. The
 * calls whose names end in _arrow_rows take this struct; NULL stands for all rows, with row ids that continue those of
 * the previous batch. Since 1.6.
 *
 * `selection` is, for example, the output of quern_filter_select_arrow. Each number is checked to be below the array's
 * length; row 0 is the first one after the array's offset. The selection is only read during the call, except by a
 * prober or a merge, where it must stay for as long as the vectors of a quern_batch. Cost: one pass over the selection.
 * The array is checked in full, as it is without a selection. */
typedef struct quern_arrow_rows {
  size_t struct_size;        /* sizeof(quern_arrow_rows): later versions may add members at the end */
  const uint32_t* selection; /* NULL: the first num_rows rows */
  uint64_t num_rows;         /* rows that take part */
  uint64_t first_row_id;     /* as in quern_batch */
} quern_arrow_rows;

typedef enum quern_result_state {
  QUERN_RESULT_MORE = 0,        /* call again */
  QUERN_RESULT_NEEDS_INPUT = 1, /* QUERN_PORT_PROBE: push the next batch, if there is one. A merge: run number `run`
                                   needs its next batch, or its end */
  QUERN_RESULT_DONE = 2         /* no more rows */
} quern_result_state;

/* Rows that come out, as columns that can be the input of another job. Owned by the output, which may add members at
 * the end in later versions; valid until the next call on it. In every state there may be rows, or none. */
typedef struct quern_result {
  uint64_t num_rows;
  /* Join: probe payload, the mark of a mark join (bool), build payload. Aggregation: keys (dictionaries decoded), then
   * one column for each aggregate. Sort or merge: the keys that the spec flags `out` (dictionaries decoded), then
   * payload, then one column for each window function (u64). With 0 columns only num_rows counts. */
  size_t num_columns;
  /* All start at bit 0. `validity` is NULL where neither the spec nor the kind of join can produce nulls; the strings
   * of a view column are in buffers[0]. */
  const quern_column* columns;
  quern_result_state state;
  uint32_t run;      /* of a merge that needs input */
  uint64_t position; /* of a sort: the position of the first of these rows among all of them */
} quern_result;

/* ---- jobs ---- */

/* A job is one run of a kernel: the build side of a join and its probes, an aggregation, a sort, a merge of sorted
 * runs, or a filter. Rows enter and leave it by ports. A port has inputs or outputs, any number of them, each of which
 * belongs to one thread at a time.
 *
 *                     inputs                                     outputs
 *     join            BUILD                                      PROBE (takes batches, too), then UNMATCHED
 *     aggregation     ROWS, STATES                               ROWS or STATES
 *     sort            ROWS, THRESHOLD                            ROWS, THRESHOLD
 *     merge           ROWS, one input for each run               ROWS
 *     filter          quern_job_filter
 */
typedef enum quern_port {
  QUERN_PORT_ROWS = 0,
  QUERN_PORT_BUILD = 1,
  QUERN_PORT_PROBE = 2,
  /* The build rows without a match (right, full, right_anti) or with one (right_semi), and none of other kinds. Create
   * such outputs when all probing is done. They share these rows: each comes out of one output, once. */
  QUERN_PORT_UNMATCHED = 3,
  /* Groups with a binary column of states for each aggregate, to be added to another aggregation of the same spec, in
   * this process or on another machine. Arrow arrays of states are taken by position, without a binding; damaged states
   * are QUERN_INVALID_ARGUMENT. */
  QUERN_PORT_STATES = 4,
  /* The threshold of a sort with a limit: a row that later rows must precede (or equal) to be among the first `limit`.
   * It gets tighter as rows arrive, though not with each of them. It exists only when somewhat more than `limit` rows
   * have arrived, and not for limits above the plan's top_rows. A host's scan may skip rows that come after it, and may
   * pass it on to sorts of other threads or machines: the keys of one row, in the order of the spec (dictionaries
   * decoded). Each result of an output is the threshold at that time, or no row. */
  QUERN_PORT_THRESHOLD = 5
} quern_port;

/* What a host knows of the values of an aggregation's key: the smallest and the largest (u64: the same bits; ignored
 * for keys that are not integers, dates or times). */
typedef struct quern_key_range {
  uint32_t key; /* its number in the spec */
  int64_t min, max;
} quern_key_range;

/* All zeros are the defaults. */
typedef struct quern_job_options {
  size_t struct_size;    /* sizeof(quern_job_options): later versions may add members at the end */
  uint64_t memory_limit; /* bytes that tables, rows and results may take; 0: no limit */
  uint32_t num_runs; /* 1 to 65536: merge so many runs, by a kernel of a sort without window functions. 0: no merge */
  /* Hints for an aggregation. A wrong hint makes it slower, never wrong. */
  uint64_t expected_groups;
  const quern_key_range* key_ranges; /* only read during the call */
  size_t num_key_ranges;
  /* The host's account of memory; both functions or neither. `reserve` is called before memory is taken, `release`
   * after it was freed, on whichever thread works for the job, also while its handles are destroyed. Where `reserve`
   * returns false, the call that needs the memory fails with QUERN_RESOURCE_EXHAUSTED. */
  bool (*reserve)(void* host, uint64_t bytes);
  void (*release)(void* host, uint64_t bytes);
  void* host; /* passed to both */
  /* NULL, or a flag that the host, perhaps its signal handler, makes non-zero to stop the job, as quern_job_cancel
   * does. It must outlive the job's handles. */
  const volatile int* stop;
} quern_job_options;

/* options: NULL stands for zeros. Cost: about a microsecond; memory is taken when rows come. */
QUERN_API quern_status quern_job_create(quern_kernel* kernel, const quern_job_options* options, quern_job** job,
                                        quern_error* error);
QUERN_API void quern_job_destroy(quern_job* job);

/* Stops the job: from now on its calls return QUERN_CANCELLED, those in progress after some milliseconds (a batch of
 * 65536 rows, or one piece of work). The handles must still be destroyed. Threads: any, at any time; may be called by a
 * signal handler. */
QUERN_API void quern_job_cancel(quern_job* job);

/* Binds the columns of a port to the children of Arrow batches; call it before the port's first Arrow batch. `keys` and
 * `payload` are child numbers of the struct schema, as many as a quern_batch of the port has columns (-1 for a rowid).
 * The schema is checked against the spec and not kept. Ports that can be bound: ROWS, BUILD, PROBE. */
QUERN_API quern_status quern_job_bind_arrow(quern_job* job, quern_port port, const struct ArrowSchema* schema,
                                            const int32_t* keys, const int32_t* payload, quern_error* error);

/* The schema of the arrays of quern_output_next_arrow for outputs of a port, once all inputs of the job are bound. The
 * names and formats are those of the inputs (dictionaries decoded).
 *
 * Join: probe payload, the "mark" of a mark join, build payload; a rowid is "probe_rowid" or "build_rowid". If rows of
 * one side can come out without a match, the fields of the other side are nullable. Aggregation: the keys, then the
 * aggregates, each named by its text in the spec: "sum(i64)". Sums and averages of decimals have the scale of the
 * argument and 38 digits; results of a host's function have seconds (time64: microseconds) as unit, scale 0 and no time
 * zone. Sort and merge: the keys that come out, the payload (a rowid is "rowid"), then "row_number", "rank",
 * "dense_rank". The caller releases `schema`. */
QUERN_API quern_status quern_job_result_schema(const quern_job* job, quern_port port, struct ArrowSchema* schema,
                                               quern_error* error);

typedef struct quern_input_options {
  size_t struct_size; /* sizeof(quern_input_options): later versions may add members at the end */
  uint32_t run;       /* of a merge: the number of the run */
  /* Joins and sorts keep pointers to the bytes of strings longer than 12, which must stay in place until the job and
   * its outputs are destroyed (Arrow arrays are kept until then). If this is true they are copied instead. */
  bool copy_bytes;
} quern_input_options;

/* Makes an input, by which one thread adds batches while others add theirs by inputs of their own. options: NULL stands
 * for zeros. Destroying an input that has not finished drops its rows. */
QUERN_API quern_status quern_input_create(quern_job* job, quern_port port, const quern_input_options* options,
                                          quern_input** input, quern_error* error);
QUERN_API void quern_input_destroy(quern_input* input);

/* Adds a batch of the host's own vectors, or an Arrow array.
 *
 * Fixed-width values are copied, and so are all values that an aggregation keeps; for the bytes of strings see
 * copy_bytes. The vectors of a merge must stay in place until the run needs input again; it takes one batch a run, when
 * it needs one or before the first result. An array is moved in, also on error, and its release callback is called when
 * the job no longer needs it. Checking it costs O(columns), plus one pass over bitmaps (rows/8 bytes), string offsets,
 * views and dictionary indices. rows: NULL for all rows, with row ids that continue those of the previous batch.
 *
 * Errors: after a failure that may have added a part of the batch every call on the job fails. In a merge, rows that
 * are not in order are QUERN_INVALID_ARGUMENT, here or when they are due to come out. */
QUERN_API quern_status quern_input_append(quern_input* input, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_input_append_arrow(quern_input* input, struct ArrowArray* batch,
                                                const quern_arrow_rows* rows, quern_error* error);

/* Hands the rows over to the job. In a merge, the run ends when its last batch is used up. Call it once, after the last
 * batch. */
QUERN_API quern_status quern_input_finish(quern_input* input, quern_error* error);

/* The groups of an aggregation that this input has seen so far, for quern_advise_threads; 0 for other jobs and NULL. */
QUERN_API uint64_t quern_input_num_groups(const quern_input* input);

typedef enum quern_work_state {
  QUERN_WORK_MORE = 0, /* call again, from any thread */
  QUERN_WORK_BUSY = 1, /* other threads do all that can be done now; there may be more when one of them has returned */
  QUERN_WORK_DONE = 2  /* outputs may be created */
} quern_work_state;

/* Does one piece of the work between the last input and the first output: of building a join's table, merging groups,
 * sorting. All inputs must have finished. Never waits for another thread, so that it suits hosts with an event loop or
 * a scheduler of their own. Most pieces take less than 10 ms; a sort whose threads have coded strings differently
 * begins with a pass over its rows. Merges and filters have no such work.
 *
 * Errors: the same for all threads. After QUERN_RESOURCE_EXHAUSTED while a join is built, once all threads have
 * returned, everything is as before the first piece, so that the host may free memory and try again. Otherwise the job
 * cannot be used any more. */
QUERN_API quern_status quern_job_work(quern_job* job, quern_work_state* state, quern_error* error);

/* The same for hosts whose threads may wait: returns when all work is done, at once if it already is. Any number of
 * threads may call it, and each takes part. */
QUERN_API quern_status quern_job_finalise(quern_job* job, quern_error* error);

typedef struct quern_output_options {
  size_t struct_size;  /* sizeof(quern_output_options): later versions may add members at the end */
  uint64_t batch_rows; /* the most rows of a result; 0: 65536 */
  /* Aggregations: only the groups of partition number `partition`, by the hash of the key; num_partitions 0 or 1: all.
   * A key belongs to the same partition in every aggregation of the process, and in those of other processes unless a
   * key is a dictionary. Outputs of different partitions may follow one another. */
  uint32_t partition, num_partitions;
} quern_output_options;

/* Makes an output, which belongs to one thread. Outputs of a job share its rows: each row comes out of one of them. A
 * sort's rows come in order, each call taking the next that no output has taken; groups come in no particular order.
 * options: NULL stands for zeros. All work must be done, except in merges and for thresholds. */
QUERN_API quern_status quern_output_create(quern_job* job, quern_port port, const quern_output_options* options,
                                           quern_output** output, quern_error* error);
QUERN_API void quern_output_destroy(quern_output* output);

/* Starts a batch of the probe side (QUERN_PORT_PROBE). The host's vectors must stay in place until the result's state
 * is QUERN_RESULT_NEEDS_INPUT; an array is moved in. What is left of an earlier batch is dropped. */
QUERN_API quern_status quern_output_push(quern_output* output, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_output_push_arrow(quern_output* output, struct ArrowArray* batch,
                                               const quern_arrow_rows* rows, quern_error* error);

/* Returns the next rows. On failure *result is NULL, and rows are lost: only another batch can follow in a probe, and
 * nothing elsewhere. QUERN_FAILED_PRECONDITION is also data that has no result: a sum or average that does not fit its
 * type, the second match of a single join. */
QUERN_API quern_status quern_output_next(quern_output* output, const quern_result** result, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive all handles. The result has no columns,
 * and its num_rows is that of the array. */
QUERN_API quern_status quern_output_next_arrow(quern_output* output, struct ArrowArray* rows,
                                               const quern_result** result, quern_error* error);

/* Finds the rows of a batch for which the condition of a filter is true: neither false, nor unknown because of a null.
 *
 * rows: receives their numbers, rows[0] .. rows[*num_rows - 1], in the order of the batch; room for batch->num_rows of
 * them. With a selection, only its rows are tested and its elements are written, so that the result may serve as the
 * selection of another batch (but must not overwrite the selection that is read). bitmap: instead, bit i % 8 of byte
 * i / 8 is set where row i (with a selection: row selection[i]) passes, and cleared where it does not; bits beyond the
 * last row become 0. This is the layout of a bool column; room for (batch->num_rows + 7) / 8 bytes. With neither, the
 * rows are only counted. num_rows: receives the number of rows that pass; may be &batch->num_rows.
 *
 * Ownership: nothing is kept; an array remains the caller's and is not released. Cost: one pass over the columns; later
 * comparisons test only the rows that earlier ones left undecided. Threads: any number at once. Errors: the contents of
 * `rows` and `bitmap` are then undefined. */
QUERN_API quern_status quern_job_filter(const quern_job* job, const quern_batch* batch, uint32_t* rows, uint8_t* bitmap,
                                        uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_job_filter_arrow(const quern_job* job, const struct ArrowArray* batch,
                                              const quern_arrow_rows* selected, uint32_t* rows, uint8_t* bitmap,
                                              uint64_t* num_rows, quern_error* error);

/* What a job has done. Members that do not concern its operator are 0. */
typedef struct quern_job_stats {
  size_t struct_size; /* sizeof(quern_job_stats), set by the caller: later versions may add members at the end */
  /* How the rows are laid out, or were sorted, which is chosen by the data. Join: "unchained", "bitmap", "dense",
   * "csr", "open", "counting". Aggregation: "single", "dense", "open", "sorted", "directory". Sort: "none" (fewer than
   * two rows, for example), "sorted" (they arrived in order), "reversed", "nearly_sorted", "insertion", "vector",
   * "radix", "comparison". Later versions may add more. Static text; "" before all work is done. */
  const char* layout;
  uint64_t input_rows;      /* of a join: the build side's */
  uint64_t num_rows;        /* of a join's table, without rows that can never match (null keys); groups; rows that come
                               out of a sort */
  uint64_t used_bytes;      /* memory now */
  uint64_t peak_bytes;      /* the most memory taken so far */
  uint64_t directory_bytes; /* of a join's table */
  uint64_t tuple_bytes;     /* of a join's table */
  uint64_t table_bytes;     /* of all tables of an aggregation */
  uint64_t num_growths;     /* of tables of an aggregation */
  uint64_t dropped_rows;    /* rows that a sort's limit or threshold dropped on arrival */
  uint64_t collided_rows;   /* rows of a sort with a prefix collision, ordered by their further key bytes */
  uint64_t entry_bytes;     /* of one sort-key prefix, which is sorted in place of a row */
  uint32_t key_bits;        /* bits of a sort's keys that differ from row to row */
  uint32_t prefetch_distance;
} quern_job_stats;
/* Must not be called while other threads append or work. NULL gives zeros. */
QUERN_API void quern_job_get_stats(const quern_job* job, quern_job_stats* stats);
/* The job's part of quern_kernel_get_counters. Threads: any, at any time. NULL gives zeros. */
QUERN_API void quern_job_get_counters(const quern_job* job, quern_counters* counters);

/* Receives one result, which is valid until the function returns. It is called from several threads at once, in each
 * thread with one result at a time. Returning false means that no more results are wanted. */
typedef bool (*quern_on_result)(void* context, const quern_result* result);

typedef struct quern_run_input {
  quern_port port; /* ROWS, BUILD, PROBE or STATES */
  const quern_batch* batches;
  size_t num_batches;
} quern_run_input;

typedef struct quern_run_options {
  size_t struct_size;        /* sizeof(quern_run_options): later versions may add members at the end */
  uint32_t threads;          /* 1 to 1024; 0: as many as the machine has */
  uint64_t batch_rows;       /* the most rows of a result; 0: 65536 */
  quern_on_result on_result; /* receives the results that have rows; NULL: they are only counted */
  void* context;             /* passed to on_result */
} quern_run_options;

/* A whole job for hosts without threads: adds the batches of all inputs, does the work and takes all results, on
 * threads of its own and this one. It divides batches of more than 65536 rows, so that one batch keeps all threads
 * busy. Rows that were added before take part.
 *
 * Joins are probed with the batches of PROBE, after which the build rows of UNMATCHED come out. Results come in no
 * particular order, except those of a sort (one after the other, in order) and of a join with one thread (in the order
 * of the probe rows). Where a sort's results are only counted, they remain for outputs. options: NULL stands for zeros.
 * num_rows: NULL, or receives the number of rows that came out, also on failure.
 *
 * The bytes of strings must stay in place as without copy_bytes. After on_result has returned false it is not called
 * again, except for calls in progress on other threads, and the status is QUERN_OK. A failure before the first result
 * leaves the job unusable. Merges and filters are QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_job_run(quern_job* job, const quern_run_input* inputs, size_t num_inputs,
                                     const quern_run_options* options, uint64_t* num_rows, quern_error* error);

/* ---- the join ---- */

/* memory_limit: the bytes that the table and the results may take; 0: no limit. */
QUERN_API quern_status quern_join_create(quern_kernel* kernel, uint64_t memory_limit, quern_join** join,
                                         quern_error* error);
QUERN_API void quern_join_destroy(quern_join* join);

/* Binds the spec's columns to the children of Arrow batches; call it before the first batch. `keys` and `payload` are
 * child numbers of the struct schema, as many as the spec lists (-1 for a rowid); the payload is followed by one number
 * for each comparison of `residual`. The schemas are checked against the spec and not kept. */
QUERN_API quern_status quern_join_bind_arrow(quern_join* join, const struct ArrowSchema* build,
                                             const int32_t* build_keys, const int32_t* build_payload,
                                             const struct ArrowSchema* probe, const int32_t* probe_keys,
                                             const int32_t* probe_payload, quern_error* error);

/* The result's schema under that binding: probe payload, the "mark" of a mark join, build payload, with the names and
 * formats of the inputs (dictionaries decoded). If rows of one side can come out without a match, the fields of the
 * other side are nullable. The caller releases `schema`. */
QUERN_API quern_status quern_join_result_schema(const quern_join* join, struct ArrowSchema* schema, quern_error* error);

/* Adds a batch to the build side. Moves the array in: its release callback is called when the join no longer needs the
 * array, also on error. Cost of checking the array: O(columns), plus one pass over bitmaps (rows/8 bytes), string
 * offsets, views and dictionary indices. */
QUERN_API quern_status quern_join_append_arrow(quern_join* join, struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_join_append_arrow_rows(quern_join* join, struct ArrowArray* batch,
                                                    const quern_arrow_rows* rows, quern_error* error);

/* Adds a batch of the host's own vectors. Fixed-width values are copied into the table. The bytes of strings and
 * binaries are not copied and must stay in place until the join is destroyed, unless copy_bytes is true, which costs
 * one copy of them. */
QUERN_API quern_status quern_join_append(quern_join* join, const quern_batch* batch, bool copy_bytes,
                                         quern_error* error);

/* Builds the table. Appending is not allowed after it, probing is not allowed before it. */
QUERN_API quern_status quern_join_finalise(quern_join* join, quern_error* error);

/* The same, called by any number of threads at once. Each takes part and returns when the table is built, or at once if
 * it already is. All get the same status; after a failure the join is unusable. All appenders must have finished. */
QUERN_API quern_status quern_join_finalise_shared(quern_join* join, quern_error* error);

/* The layout of the table, which finalise chooses by the data: "unchained", "bitmap", "dense", "csr", "open",
 * "counting"; later versions may add more. Static text; "" before finalise; NULL for NULL. */
QUERN_API const char* quern_join_layout(const quern_join* join);

typedef struct quern_join_stats {
  uint64_t build_rows;
  uint64_t table_rows; /* build_rows without the rows that can never match (null keys) */
  uint64_t directory_bytes;
  uint64_t tuple_bytes;
  uint64_t peak_bytes; /* the most memory taken so far */
  uint32_t prefetch_distance;
} quern_join_stats;
/* Must not be called while other threads append or finalise. */
QUERN_API void quern_join_get_stats(const quern_join* join, quern_join_stats* stats);

/* ---- building by several threads ---- */

/* A handle through which one thread adds batches while other threads add theirs through handles of their own. There may
 * be any number of appenders; each belongs to one thread. */
QUERN_API quern_status quern_appender_create(quern_join* join, quern_appender** appender, quern_error* error);
QUERN_API void quern_appender_destroy(quern_appender* appender);

/* Like quern_join_append and quern_join_append_arrow, which state the ownership of the batch. A failed append may have
 * stored a part of the batch: from then on every appender of the join fails, and the join cannot be finalised. Row ids
 * of Arrow batches continue those of the previous batch, of whichever appender. */
QUERN_API quern_status quern_appender_append(quern_appender* appender, const quern_batch* batch, bool copy_bytes,
                                             quern_error* error);
QUERN_API quern_status quern_appender_append_arrow(quern_appender* appender, struct ArrowArray* batch,
                                                   quern_error* error);
QUERN_API quern_status quern_appender_append_arrow_rows(quern_appender* appender, struct ArrowArray* batch,
                                                        const quern_arrow_rows* rows, quern_error* error);

/* Hands the rows over to the join. Call it once, before finalise. Destroying an appender that has not finished drops
 * its rows. */
QUERN_API quern_status quern_appender_finish(quern_appender* appender, quern_error* error);

/* ---- probing ---- */

/* batch_rows: the most rows of a result; 0: 65536. */
QUERN_API quern_status quern_prober_create(quern_join* join, uint64_t batch_rows, quern_prober** prober,
                                           quern_error* error);
QUERN_API void quern_prober_destroy(quern_prober* prober);

/* Starts a probe batch. The host's vectors must stay in place until quern_prober_next has returned more = false; an
 * array is moved in. */
QUERN_API quern_status quern_prober_input(quern_prober* prober, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_prober_input_arrow(quern_prober* prober, struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_prober_input_arrow_rows(quern_prober* prober, struct ArrowArray* batch,
                                                     const quern_arrow_rows* rows, quern_error* error);

/* Starts the scan of unmatched build rows; call it when all probers of the join have finished all inputs. The scan
 * returns the build rows without a match (right, full, right_anti) or with one (right_semi), and none for other kinds.
 * Probers that call it share these rows: each row comes out of one prober, once. */
QUERN_API quern_status quern_prober_input_unmatched(quern_prober* prober, quern_error* error);

/* Returns the next result rows of the input. `more`: whether to call again before the next input. A result may have no
 * rows. In a single join, a second match of a probe row is QUERN_FAILED_PRECONDITION. */
QUERN_API quern_status quern_prober_next(quern_prober* prober, quern_result* result, bool* more, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive the prober and the join. */
QUERN_API quern_status quern_prober_next_arrow(quern_prober* prober, struct ArrowArray* result, bool* more,
                                               quern_error* error);

/* ---- a whole join, for hosts without threads ---- */

/* Appends the build batches, finalises, probes the probe batches and scans the unmatched build rows, all on threads of
 * its own and this one. It divides batches of more than 65536 rows, so that one batch keeps all threads busy. Batches
 * that were appended before take part.
 *
 * threads: 1 to 1024; 0: as many as the machine has. batch_rows: the most rows of a result; 0: 65536. on_result:
 * receives the results that have rows, in no particular order (with one thread: in the order of the probe rows); NULL:
 * the rows are only counted. num_rows: NULL, or receives the number of rows that came out, also on failure.
 *
 * The bytes of strings must stay in place as with copy_bytes = false. After on_result has returned false it is not
 * called again, except for calls in progress on other threads, and the status is QUERN_OK. Afterwards the join is
 * finalised and may be probed like any other. A failure while building leaves the join unusable. */
QUERN_API quern_status quern_join_run(quern_join* join, const quern_batch* build, size_t num_build,
                                      const quern_batch* probe, size_t num_probe, uint32_t threads, uint64_t batch_rows,
                                      quern_on_result on_result, void* context, uint64_t* num_rows, quern_error* error);

/* ---- the aggregation ---- */

/* `kernel`: its spec is `aggregate ..`. memory_limit: the bytes that tables and results may take; 0: no limit. */
QUERN_API quern_status quern_aggregate_create(quern_kernel* kernel, uint64_t memory_limit, quern_aggregate** aggregate,
                                              quern_error* error);
QUERN_API void quern_aggregate_destroy(quern_aggregate* aggregate);

/* Hints, to be given before the first batch and the first appender: the expected number of groups; the smallest and the
 * largest value of key number `key` of the spec (u64: the same bits; ignored for keys that are not integers, dates or
 * times). A wrong hint makes the aggregation slower, never wrong. A later hint replaces an earlier one. */
QUERN_API quern_status quern_aggregate_hint_groups(quern_aggregate* aggregate, uint64_t expected_groups,
                                                   quern_error* error);
QUERN_API quern_status quern_aggregate_hint_range(quern_aggregate* aggregate, uint32_t key, int64_t min, int64_t max,
                                                  quern_error* error);

/* Binds the spec's columns to the children of Arrow batches; call it before the first batch. `keys` and `payload` are
 * child numbers of the struct schema, as many as the spec has keys and as quern_batch's payload has columns. The schema
 * is checked against the spec and not kept. */
QUERN_API quern_status quern_aggregate_bind_arrow(quern_aggregate* aggregate, const struct ArrowSchema* input,
                                                  const int32_t* keys, const int32_t* payload, quern_error* error);

/* Adds a batch of the host's own vectors, or an Arrow array. Nothing of it is kept: the vectors may go away when the
 * call returns; an array is moved in, checked as by quern_join_append_arrow, and released, also on error. Cost: one or
 * two random cache lines a row. A failed append may have added a part of the batch: from then on the aggregation fails.
 * Row ids of Arrow batches continue those of the previous batch. */
QUERN_API quern_status quern_aggregate_append(quern_aggregate* aggregate, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_aggregate_append_arrow(quern_aggregate* aggregate, struct ArrowArray* batch,
                                                    quern_error* error);
QUERN_API quern_status quern_aggregate_append_arrow_rows(quern_aggregate* aggregate, struct ArrowArray* batch,
                                                         const quern_arrow_rows* rows, quern_error* error);

/* Adds states that came out of another aggregation of the same spec (QUERN_GROUP_STATES), in this process or on another
 * machine. The input is a batch whose keys are those of results (dictionaries decoded) and whose payload has a binary
 * column for each aggregate; or the array of quern_groups_next_arrow, whose columns are taken by position, without a
 * binding. Damaged states are QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_aggregate_append_states(quern_aggregate* aggregate, const quern_batch* batch,
                                                     quern_error* error);
QUERN_API quern_status quern_aggregate_append_states_arrow(quern_aggregate* aggregate, struct ArrowArray* batch,
                                                           quern_error* error);

/* Merges the groups of all threads. Appending is not allowed after it, reading is not allowed before it. */
QUERN_API quern_status quern_aggregate_finalise(quern_aggregate* aggregate, quern_error* error);

/* The same, called by any number of threads at once, like quern_join_finalise_shared. */
QUERN_API quern_status quern_aggregate_finalise_shared(quern_aggregate* aggregate, quern_error* error);

/* The layout of the group table: "single", "dense", "open", "sorted", "directory"; later versions may add more. Static
 * text; "" before finalise; NULL for NULL. */
QUERN_API const char* quern_aggregate_layout(const quern_aggregate* aggregate);

typedef struct quern_aggregate_stats {
  uint64_t input_rows;
  uint64_t num_groups;  /* before finalise: the groups so far, without those of appenders; counting them may read the
                           table */
  uint64_t table_bytes; /* of all tables at finalise */
  uint64_t num_growths; /* of tables */
  uint64_t peak_bytes;  /* the most memory taken so far */
  uint32_t prefetch_distance;
} quern_aggregate_stats;
/* Must not be called while other threads append or finalise. */
QUERN_API void quern_aggregate_get_stats(const quern_aggregate* aggregate, quern_aggregate_stats* stats);

/* A handle through which one thread adds batches, like quern_appender. */
QUERN_API quern_status quern_aggregate_appender_create(quern_aggregate* aggregate, quern_aggregate_appender** appender,
                                                       quern_error* error);
QUERN_API void quern_aggregate_appender_destroy(quern_aggregate_appender* appender);

/* Like the functions of quern_aggregate. After a failed append every appender of the aggregation fails. */
QUERN_API quern_status quern_aggregate_appender_append(quern_aggregate_appender* appender, const quern_batch* batch,
                                                       quern_error* error);
QUERN_API quern_status quern_aggregate_appender_append_arrow(quern_aggregate_appender* appender,
                                                             struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_aggregate_appender_append_arrow_rows(quern_aggregate_appender* appender,
                                                                  struct ArrowArray* batch,
                                                                  const quern_arrow_rows* rows, quern_error* error);
QUERN_API quern_status quern_aggregate_appender_append_states(quern_aggregate_appender* appender,
                                                              const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_aggregate_appender_append_states_arrow(quern_aggregate_appender* appender,
                                                                    struct ArrowArray* batch, quern_error* error);

/* Hands the groups over to the aggregation. Call it once, before finalise. Destroying an appender that has not finished
 * drops its rows. */
QUERN_API quern_status quern_aggregate_appender_finish(quern_aggregate_appender* appender, quern_error* error);

/* ---- reading groups ---- */

typedef enum quern_group_columns {
  QUERN_GROUP_RESULTS = 0, /* keys, then the aggregates' results */
  QUERN_GROUP_STATES =
      1 /* keys, then a binary column of states for each aggregate, for quern_aggregate_append_states */
} quern_group_columns;

/* A reader of the groups of a finalised aggregation, which come in no particular order. It belongs to one thread. Any
 * number of readers share the groups: each group comes out of one reader, once, as a result or as a state. batch_rows:
 * the most groups of a result; 0: 65536.
 *
 * _partition: only the groups of partition number `partition` of num_partitions, by the hash of the key. A key belongs
 * to the same partition in every aggregation of the process, and in those of other processes unless a key is a
 * dictionary. Readers of different partitions may follow one another. */
QUERN_API quern_status quern_groups_create(quern_aggregate* aggregate, quern_group_columns columns, uint64_t batch_rows,
                                           quern_groups** groups, quern_error* error);
QUERN_API quern_status quern_groups_create_partition(quern_aggregate* aggregate, quern_group_columns columns,
                                                     uint32_t partition, uint32_t num_partitions, uint64_t batch_rows,
                                                     quern_groups** groups, quern_error* error);
QUERN_API void quern_groups_destroy(quern_groups* groups);

/* Returns the next groups. `more`: whether to call again. A result may have no rows. A sum or average that does not fit
 * its type is QUERN_FAILED_PRECONDITION; after this and any other failure, groups are lost. */
QUERN_API quern_status quern_groups_next(quern_groups* groups, quern_result* result, bool* more, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive all handles. Needs no binding. */
QUERN_API quern_status quern_groups_next_arrow(quern_groups* groups, struct ArrowArray* result, bool* more,
                                               quern_error* error);

/* The schema of the arrays of quern_groups_next_arrow under the binding: keys with the names and formats of the input
 * (dictionaries decoded), then aggregates, each named by its text in the spec: "sum(i64)". Sums and averages of
 * decimals have the scale of the argument and 38 digits. Results of a host's function have seconds (time64:
 * microseconds) as unit, scale 0 and no time zone. The caller releases `schema`. */
QUERN_API quern_status quern_aggregate_result_schema(const quern_aggregate* aggregate, quern_group_columns columns,
                                                     struct ArrowSchema* schema, quern_error* error);

/* A whole aggregation for hosts without threads, like quern_join_run: appends the batches, finalises and reads all
 * groups, on threads of its own and this one. num_groups: NULL, or receives the number of groups that came out, also on
 * failure. */
QUERN_API quern_status quern_aggregate_run(quern_aggregate* aggregate, const quern_batch* batches, size_t num_batches,
                                           uint32_t threads, uint64_t batch_rows, quern_on_result on_result,
                                           void* context, uint64_t* num_groups, quern_error* error);

/* ---- the sort ---- */

/* `kernel`: its spec is `sort ..`. memory_limit: the bytes that rows and results may take; 0: no limit. */
QUERN_API quern_status quern_sort_create(quern_kernel* kernel, uint64_t memory_limit, quern_sort** sort,
                                         quern_error* error);
QUERN_API void quern_sort_destroy(quern_sort* sort);

/* Binds the spec's columns to the children of Arrow batches; call it before the first batch. `keys` and `payload` are
 * child numbers of the struct schema, as many as the spec lists (-1 for a rowid). The schema is checked against the
 * spec and not kept. */
QUERN_API quern_status quern_sort_bind_arrow(quern_sort* sort, const struct ArrowSchema* input, const int32_t* keys,
                                             const int32_t* payload, quern_error* error);

/* The schema of the arrays of quern_sorted_next_arrow under that binding: the keys that come out and the payload, with
 * the names and formats of the input (dictionaries decoded; a rowid is "rowid"), then "row_number", "rank",
 * "dense_rank". The caller releases `schema`. */
QUERN_API quern_status quern_sort_result_schema(const quern_sort* sort, struct ArrowSchema* schema, quern_error* error);

/* Adds a batch of the host's own vectors, or an Arrow array, which is moved in and checked as by
 * quern_join_append_arrow. Fixed-width values are copied. The bytes of strings and binaries are not copied and must
 * stay in place until the sort and its readers are destroyed (arrays are kept until then), unless copy_bytes is true,
 * which costs one copy of them. It costs nothing where the spec has a limit up to the plan's top_rows: such a sort
 * copies only the bytes of the few rows that it keeps. Row ids of Arrow batches continue those of the previous batch. A
 * failed append may have added a part of the batch: from then on the sort fails. */
QUERN_API quern_status quern_sort_append(quern_sort* sort, const quern_batch* batch, bool copy_bytes,
                                         quern_error* error);
QUERN_API quern_status quern_sort_append_arrow(quern_sort* sort, struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_sort_append_arrow_rows(quern_sort* sort, struct ArrowArray* batch,
                                                    const quern_arrow_rows* rows, quern_error* error);

/* Sorts the rows. Appending is not allowed after it, reading is not allowed before it. */
QUERN_API quern_status quern_sort_finalise(quern_sort* sort, quern_error* error);

/* The same, called by any number of threads at once, like quern_join_finalise_shared. */
QUERN_API quern_status quern_sort_finalise_shared(quern_sort* sort, quern_error* error);

/* How the rows were sorted, which finalise chooses by the data: "none" (fewer than two rows, for example), "sorted"
 * (they arrived in order), "reversed", "nearly_sorted", "insertion", "vector", "radix", "comparison"; later versions
 * may add more. Static text; "" before finalise; NULL for NULL. */
QUERN_API const char* quern_sort_method(const quern_sort* sort);

typedef struct quern_sort_stats {
  uint64_t input_rows;    /* 0 before finalise, like all members but peak_bytes */
  uint64_t num_rows;      /* rows that come out */
  uint64_t dropped_rows;  /* rows that a limit or threshold dropped on arrival */
  uint64_t collided_rows; /* rows with a prefix collision, ordered by their further key bytes */
  uint64_t peak_bytes;    /* the most memory taken so far */
  uint64_t entry_bytes;   /* of one sort-key prefix, which is sorted in place of a row */
  uint32_t key_bits;      /* bits of the keys that differ from row to row */
} quern_sort_stats;
/* Must not be called while other threads append or finalise. */
QUERN_API void quern_sort_get_stats(const quern_sort* sort, quern_sort_stats* stats);

/* The threshold of a sort with a limit: a row that later rows must precede (or equal) to be among the first `limit`. It
 * gets tighter as rows arrive, though not with each of them. It exists only when somewhat more than `limit` rows have
 * arrived, and not for limits above the plan's top_rows. A host's scan may skip rows that come after the threshold, and
 * may pass the threshold on to sorts of other threads or machines.
 *
 * _get: `row` becomes one row with all keys in the order of the spec (dictionaries decoded), valid until the next
 * quern_sort_get_threshold on the sort. `exists`: whether there is a threshold; without one `row` has no rows. Threads:
 * one at a time, while others append.
 *
 * _set: rows that come after this one need not come out. `keys`: one row (num_rows 1) of keys as in quern_sort_append;
 * payload is not read, and nothing of the vectors is kept. Threads: any, while others append. */
QUERN_API quern_status quern_sort_get_threshold(quern_sort* sort, quern_result* row, bool* exists, quern_error* error);
QUERN_API quern_status quern_sort_set_threshold(quern_sort* sort, const quern_batch* keys, quern_error* error);

/* A handle through which one thread adds batches, like quern_appender. */
QUERN_API quern_status quern_sort_appender_create(quern_sort* sort, quern_sort_appender** appender, quern_error* error);
QUERN_API void quern_sort_appender_destroy(quern_sort_appender* appender);

/* Like the functions of quern_sort. After a failed append every appender of the sort fails. */
QUERN_API quern_status quern_sort_appender_append(quern_sort_appender* appender, const quern_batch* batch,
                                                  bool copy_bytes, quern_error* error);
QUERN_API quern_status quern_sort_appender_append_arrow(quern_sort_appender* appender, struct ArrowArray* batch,
                                                        quern_error* error);
QUERN_API quern_status quern_sort_appender_append_arrow_rows(quern_sort_appender* appender, struct ArrowArray* batch,
                                                             const quern_arrow_rows* rows, quern_error* error);

/* Hands the rows over to the sort. Call it once, before finalise. Destroying an appender that has not finished drops
 * its rows. */
QUERN_API quern_status quern_sort_appender_finish(quern_sort_appender* appender, quern_error* error);

/* ---- reading sorted rows ---- */

/* A reader of the rows of a finalised sort. It belongs to one thread. A single reader returns all rows in order.
 * Several readers share the rows: each call takes the next rows that no reader has taken and returns their position.
 * batch_rows: the most rows of a result; 0: 65536. */
QUERN_API quern_status quern_sorted_create(quern_sort* sort, uint64_t batch_rows, quern_sorted** sorted,
                                           quern_error* error);
QUERN_API void quern_sorted_destroy(quern_sorted* sorted);

/* Returns the next rows. position: NULL, or receives the position of the first of them among all rows of the sort.
 * `more`: whether to call again. A result may have no rows. After a failure rows are lost. */
QUERN_API quern_status quern_sorted_next(quern_sorted* sorted, quern_result* result, uint64_t* position, bool* more,
                                         quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive all handles. Needs no binding. */
QUERN_API quern_status quern_sorted_next_arrow(quern_sorted* sorted, struct ArrowArray* result, uint64_t* position,
                                               bool* more, quern_error* error);

/* A whole sort for hosts without threads, like quern_join_run. It appends the batches and finalises on threads of its
 * own and this one; then only this thread reads, and on_result receives the results one after the other, in order.
 * NULL: the rows are only counted and remain for readers. num_rows: NULL, or receives the number of rows that came out,
 * also on failure. */
QUERN_API quern_status quern_sort_run(quern_sort* sort, const quern_batch* batches, size_t num_batches,
                                      uint32_t threads, uint64_t batch_rows, quern_on_result on_result, void* context,
                                      uint64_t* num_rows, quern_error* error);

/* ---- merging sorted runs ---- */

/* Merges runs of rows that are in the order of the spec, such as the output of sorts on several machines or of parts of
 * a table. It holds no more than one batch of each run. `kernel`: its spec is `sort ..` without window functions; the
 * spec's limit applies to the merged rows. Rows with equal keys come out in the order of their runs. num_runs: 1 to
 * 65536. memory_limit: bytes; 0: no limit. batch_rows: the most rows of a result; 0: 65536.
 *
 * A batch has the same columns as for quern_sort_append, so the sorts whose output is merged must return all of their
 * keys. */
QUERN_API quern_status quern_merge_create(quern_kernel* kernel, uint64_t memory_limit, uint32_t num_runs,
                                          uint64_t batch_rows, quern_merge** merge, quern_error* error);
QUERN_API void quern_merge_destroy(quern_merge* merge);

/* Like quern_sort_bind_arrow and quern_sort_result_schema. */
QUERN_API quern_status quern_merge_bind_arrow(quern_merge* merge, const struct ArrowSchema* input, const int32_t* keys,
                                              const int32_t* payload, quern_error* error);
QUERN_API quern_status quern_merge_result_schema(const quern_merge* merge, struct ArrowSchema* schema,
                                                 quern_error* error);

/* Adds the next batch of run number `run`, when quern_merge_next requests it or before the first quern_merge_next. The
 * host's vectors must stay in place until the run needs input again or the merge is destroyed; an array is moved in,
 * also on error. Rows that are not in order are QUERN_INVALID_ARGUMENT, here or when they are due to come out. */
QUERN_API quern_status quern_merge_input(quern_merge* merge, uint32_t run, const quern_batch* batch,
                                         quern_error* error);
QUERN_API quern_status quern_merge_input_arrow(quern_merge* merge, uint32_t run, struct ArrowArray* batch,
                                               quern_error* error);
QUERN_API quern_status quern_merge_input_arrow_rows(quern_merge* merge, uint32_t run, struct ArrowArray* batch,
                                                    const quern_arrow_rows* rows, quern_error* error);

/* Ends run number `run`: it has no further batch. */
QUERN_API quern_status quern_merge_end(quern_merge* merge, uint32_t run, quern_error* error);

typedef enum quern_merge_state {
  QUERN_MERGE_ROWS = 0,        /* call again */
  QUERN_MERGE_NEEDS_INPUT = 1, /* run number `run` needs its next batch, or its end */
  QUERN_MERGE_DONE = 2         /* all runs have ended, or the limit is reached */
} quern_merge_state;

/* Returns the rows whose position is certain by now; in every state there may be some or none. After a failure rows are
 * lost. */
QUERN_API quern_status quern_merge_next(quern_merge* merge, quern_result* result, quern_merge_state* state,
                                        uint32_t* run, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive the merge. Needs no binding. */
QUERN_API quern_status quern_merge_next_arrow(quern_merge* merge, struct ArrowArray* result, quern_merge_state* state,
                                              uint32_t* run, quern_error* error);

/* ---- the filter ---- */

/* `kernel`: its spec is `filter CONDITION`. */
QUERN_API quern_status quern_filter_create(quern_kernel* kernel, quern_filter** filter, quern_error* error);
QUERN_API void quern_filter_destroy(quern_filter* filter);

/* Binds the condition's columns to the children of Arrow batches; call it before the first batch. `columns` are child
 * numbers of the struct schema, one for each mention of a column, in the order of mention; a number may occur more than
 * once. The schema is checked against the spec and not kept. */
QUERN_API quern_status quern_filter_bind_arrow(quern_filter* filter, const struct ArrowSchema* input,
                                               const int32_t* columns, quern_error* error);

/* Finds the rows of a batch for which the condition is true: neither false, nor unknown because of a null.
 *
 * _select: writes their numbers to rows[0] .. rows[*num_rows - 1], in the order of the batch. With a `selection`, only
 * its rows are tested, and its elements are written, so the result may serve as the selection of another quern_batch
 * (but must not overwrite the selection that is read). The caller provides room for batch->num_rows numbers. num_rows
 * may be &batch->num_rows. After a failure the contents of `rows` are undefined.
 *
 * _bitmap: sets bit i % 8 of byte i / 8 where row i (with a selection: row selection[i]) passes, and clears it where it
 * does not. Bits beyond the last row become 0: this is the layout of a bool column. The caller provides room for
 * (batch->num_rows + 7) / 8 bytes. num_rows: NULL, or receives the number of rows that pass.
 *
 * _count: only the number of rows that pass.
 *
 * Ownership: nothing is kept; an array remains the caller's, is only read during the call and not released. It is
 * checked as by quern_join_append_arrow; its row 0 is the first row after its offset. Cost: one pass over the columns;
 * later comparisons test only the rows that earlier ones left undecided. Threads: any number at once. */
QUERN_API quern_status quern_filter_select(const quern_filter* filter, const quern_batch* batch, uint32_t* rows,
                                           uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_filter_select_arrow(const quern_filter* filter, const struct ArrowArray* batch,
                                                 uint32_t* rows, uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_filter_bitmap(const quern_filter* filter, const quern_batch* batch, uint8_t* bitmap,
                                           uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_filter_bitmap_arrow(const quern_filter* filter, const struct ArrowArray* batch,
                                                 uint8_t* bitmap, uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_filter_count(const quern_filter* filter, const quern_batch* batch, uint64_t* num_rows,
                                          quern_error* error);
QUERN_API quern_status quern_filter_count_arrow(const quern_filter* filter, const struct ArrowArray* batch,
                                                uint64_t* num_rows, quern_error* error);

/* ---- aggregate functions of the host ---- */

/* An aggregate function that specs call as host.NAME(TYPE,..). A state has `state_bytes` bytes, is aligned to 8 bytes,
 * and is all zero for no rows. It is moved and copied as bytes and must own nothing. The callbacks return 0 for
 * success; anything else ends the aggregation with an error that names the function. They are called on every thread
 * that aggregates, on each for states of its own. */
typedef struct quern_aggregate_function {
  size_t struct_size;   /* sizeof(quern_aggregate_function): later versions may add members at the end */
  uint32_t state_bytes; /* 1 to 4096 */
  const char*
      result; /* the type of the result, as in a spec: "f64"; a number, date or time. Only read during the call. */
  void* user; /* passed to the callbacks */
  /* Adds row rows[i] of the columns to states[i], for i < n. Rows with null arguments, and rows that a filter rejects,
   * are not among them. The columns are those of the batch: dictionary columns hold indices. */
  int (*update)(void* user, const quern_column* columns, uint32_t num_columns, const uint32_t* rows,
                void* const* states, uint64_t n);
  /* Adds from[i] to into[i]. */
  int (*merge)(void* user, void* const* into, const void* const* from, uint64_t n);
  /* Writes n values of the result type, one after the other. Where there is no value, it clears bit i of `validity`,
   * whose bits are all set before. */
  int (*finalise)(void* user, const void* const* states, uint64_t n, void* values, uint8_t* validity);
} quern_aggregate_function;

/* Registers a function under a name (letters, digits, '_') for the life of the process. Call it before the first
 * quern_compile of a spec that calls the function. A second function of the same name is QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_register_aggregate(const char* name, const quern_aggregate_function* function,
                                                quern_error* error);

/* ---- background compilation and messages ---- */

typedef enum quern_compile_thread {
  QUERN_COMPILE_THREAD_OWN =
      0, /* one thread of the library, started when first needed, with low priority and all signals blocked */
  QUERN_COMPILE_THREAD_HOST = 1 /* threads of the host that call quern_compile_work */
} quern_compile_thread;

/* Selects whose thread compiles in the background, for the process, from now on. */
QUERN_API quern_status quern_compile_thread_mode(quern_compile_thread thread, quern_error* error);

/* Runs one waiting compilation, or the first that arrives within `timeout_ms` (0: does not wait). `worked`: whether it
 * ran one. Any number of threads may call it, in either mode; each needs 1 MiB of stack. */
QUERN_API quern_status quern_compile_work(uint32_t timeout_ms, bool* worked, quern_error* error);

typedef enum quern_log_level {
  QUERN_LOG_WARNING = 0, /* something is wrong, but results are correct */
  QUERN_LOG_INFO = 1     /* requested by QUERN_VERBOSE */
} quern_log_level;

/* Receives one line, without a line break. Called by any thread, one line at a time; must not call the library. */
typedef void (*quern_on_log)(void* context, quern_log_level level, const char* line);

/* Sets the receiver of the library's messages, for the process; NULL: stderr, the default. Once this returns, the
 * previous callback is not called any more. */
QUERN_API void quern_set_log_callback(quern_on_log on_log, void* context);

/* ---- tuning to the machine ---- */

/* Selects the prefetch settings of kernels: those of a profile that `quern tune` or quern_tune has written, or else
 * estimates. Without these calls, the process looks for a profile when it makes its first kernel: in QUERN_PROFILE,
 * then in the user's folder, then in /etc/quern. The settings change speed only, never a result, and no code is
 * compiled for them. They apply to the process, for kernels requested from now on; running jobs keep their settings.
 * All since 1.6.
 *
 * quern_set_profile: `path` is a file; "off" for no profile; NULL to repeat the process's own search, which warns of a
 * profile that it cannot use and does not fail. quern_set_profile_text takes the text of a profile, num_bytes long,
 * which is only read during the call.
 *
 * Errors: a file that is missing or wrong in any line (the error names the line); QUERN_FAILED_PRECONDITION for a
 * profile of another machine. After a failure the previous settings remain. Cost: about 0.2 ms, and 5 us a loop when a
 * kernel is next requested. Threads: any. */
QUERN_API quern_status quern_set_profile(const char* path, quern_error* error);
QUERN_API quern_status quern_set_profile_text(const char* text, size_t num_bytes, quern_error* error);

typedef struct quern_profile quern_profile;

typedef enum quern_tune_effort {
  QUERN_TUNE_MEASURE = 0, /* four table sizes of each loop, the most useful settings */
  QUERN_TUNE_PATIENT = 1  /* all sizes from 32 KiB, and more settings */
} quern_tune_effort;

/* Reports the progress of tuning, on the tuning thread: the used share of the budget, from 0 to 1, and the next step,
 * "probe_open packed 16 MiB". Returning false ends the tuning before that step. */
typedef bool (*quern_on_tune)(void* context, double share, const char* doing);

/* All zeros give the behaviour of `quern tune`. */
typedef struct quern_tune_options {
  size_t struct_size;       /* sizeof(quern_tune_options): later versions may add members at the end */
  const char* const* specs; /* tune the loops of these kernels (joins, aggregations, sorts); only read during the
                               call */
  size_t num_specs;         /* 0: every loop */
  quern_tune_effort effort;
  double budget_seconds; /* 0.1 to 86400; 0: 60 */
  uint32_t threads;   /* settings that win with one thread are tried with this many, 1 to 1024; 0: 2, if there are that
                         many */
  uint64_t max_bytes; /* of a table, 32 KiB to 2 GiB; 0: 2 GiB, or half of the free memory if that is less */
  const char* start;  /* NULL, or the text of a profile of this machine to start from; its settings stay where nothing
                         is measured */
  quern_on_tune on_progress; /* may be NULL */
  void* context;             /* passed to on_progress */
} quern_tune_options;

/* Measures which settings are best on this machine, with real joins, aggregations and sorts on this thread and on
 * threads that it starts. The result is neither used nor written: pass its text to quern_set_profile_text, or keep it
 * in a file. `options`: NULL stands for zeros. If on_progress ends the tuning, the profile holds what was measured
 * until then. Cost: the budget; memory for one table at a time. Threads: one call at a time in a process, otherwise
 * QUERN_FAILED_PRECONDITION; nothing else should run on the machine. */
QUERN_API quern_status quern_tune(const quern_tune_options* options, quern_profile** profile, quern_error* error);
QUERN_API void quern_profile_destroy(quern_profile* profile);
/* NUL-terminated, with one entry a line; lives as long as the profile. NULL for NULL. */
QUERN_API const char* quern_profile_text(const quern_profile* profile);

/* ---- the process's kernel cache ---- */

QUERN_API void quern_cache_set_limit(uint64_t code_bytes);
QUERN_API void quern_cache_clear(void);

/* The memory of kernels. The first five counts are those of the cache. The others are of all kernels of the process,
 * which handles may keep alive beyond the cache. Since 1.5. */
typedef struct quern_cache_stats {
  size_t struct_size; /* sizeof(quern_cache_stats), set by the caller: later versions may add members at the end */
  uint64_t kernels;   /* kernels that the cache keeps */
  uint64_t code_bytes, limit_bytes; /* of machine code, in whole pages: what the cache keeps, and the most it may
                                       keep */
  uint64_t hits, misses, evictions;
  uint64_t live_kernels, live_bytes; /* kernels that are loaded, and their pages */
  uint64_t reserved_bytes;           /* address space of the slabs that hold these pages; not memory */
  uint64_t mappings;                 /* lines of /proc/PID/maps for all of these */
} quern_cache_stats;

QUERN_API void quern_cache_get_stats(quern_cache_stats* stats);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_H_ */
