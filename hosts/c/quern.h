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
 *     quern_prober_create -> quern_prober_input_* (probe side, a batch) -> quern_prober_next_* until no more -> next
 * batch
 *
 * and where build rows come out on their own (right, full, right_semi, right_anti), after all probing:
 *
 *     quern_prober_input_unmatched -> quern_prober_next_* until no more
 *
 * An aggregation:
 *
 *     quern_aggregate_create -> quern_aggregate_append_* (batch by batch) -> quern_aggregate_finalise
 *     quern_groups_create -> quern_groups_next_* until no more
 *
 * and in two phases, with a host's shuffle between them: quern_groups_create with QUERN_GROUP_STATES lets states out
 * instead of results, which go into another aggregation of the same spec by quern_aggregate_append_states_*.
 *
 * A sort, and a merge of what several sorts gave out:
 *
 *     quern_sort_create -> quern_sort_append_* (batch by batch) -> quern_sort_finalise
 *     quern_sorted_create -> quern_sorted_next_* until no more
 *     quern_merge_create -> quern_merge_next_*, and where it needs input quern_merge_input_* or quern_merge_end, until
 * it is done
 *
 * A filter, which keeps nothing from one batch to the next:
 *
 *     quern_filter_create -> quern_filter_select_* or quern_filter_bitmap_* or quern_filter_count_*, batch by batch
 *
 * A host with threads appends by a quern_appender (quern_aggregate_appender, quern_sort_appender) each and finalises by
 * quern_join_finalise_shared (quern_aggregate_finalise_shared, quern_sort_finalise_shared); for a host without any,
 * quern_join_run, quern_aggregate_run and quern_sort_run do all of it.
 *
 * Errors: functions that can fail return a quern_status; QUERN_OK is 0. With an error object (may be NULL) they leave a
 * text of one line. Threads: a kernel may be shared by any threads. A join is built by one thread at a time, or by any
 * number of appenders, one thread each, and so are an aggregation and a sort. After finalise any number of probers (of
 * quern_groups, of quern_sorted), one thread each, may read it. A merge is one thread's at a time; a filter is any
 * threads'. Handles are counted: destroy each once, in any order. Exceptions never cross this boundary. Nothing aborts.
 *
 * ABI: functions are only added, never changed; structs carry no size and are frozen, except those with a
 * struct_size, which tell theirs; quern_abi_version() tells the version of the library that was loaded,
 * QUERN_ABI_VERSION that of this header. A library serves all headers of the same major version.
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

/* The Arrow C data interface's structs, complete where the host has included their definition. */
struct ArrowSchema;
struct ArrowArray;

typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_INVALID_ARGUMENT = 1,   /* the caller's mistake: the text names the value and what is accepted */
  QUERN_RESOURCE_EXHAUSTED = 2, /* the memory limit, or the machine's memory */
  /* Calls in the wrong order, a machine that cannot run this, or data without an answer: a sum too large, a host's
     function that failed. */
  QUERN_FAILED_PRECONDITION = 3,
  QUERN_UNIMPLEMENTED = 4,
  QUERN_INTERNAL = 5 /* a defect of Quern */
} quern_status;

/* Owned by the caller; filled on failure. The text is one line and NUL-terminated (cut at the array's end if longer).
 */
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

QUERN_API uint32_t quern_abi_version(void);
/* "0.1.0" */
QUERN_API const char* quern_version(void);

/* ---- kernels ---- */

typedef enum quern_engine {
  QUERN_ENGINE_AUTO = 0,   /* generic at first, compiled once that pays */
  QUERN_ENGINE_JIT = 1,    /* compiled before it is answered, or an error */
  QUERN_ENGINE_GENERIC = 2 /* never compiled */
} quern_engine;

/* Makes the kernel for a spec, or finds it in the process's cache. `params`: NULL or "name=value name=value" (see
 * `quern dump plan`).
 *
 * AUTO answers at once. What runs is the generic kernel, the same results to the bit, until so many rows have come (of
 * all jobs that use the kernel) that compiling pays; then a thread of the library's compiles, and joins, aggregations,
 * sorts and filters go on with machine code from their next batch on, with what they hold. A kernel that the process
 * has compiled before is compiled from the start. Where compiling fails, the generic kernel goes on running, and one
 * warning says why (quern_set_log_callback, quern_kernel_text). Cost: 10 to 50 us, below 1 us for a spec that was asked
 * for before. JIT: once 3 to 40 ms, or 1 ms where an earlier process has left the kernel on disk; below 1 us
 * afterwards. */
QUERN_API quern_status quern_compile(const char* spec, quern_engine engine, const char* params, quern_kernel** kernel,
                                     quern_error* error);
QUERN_API void quern_kernel_destroy(quern_kernel* kernel);

typedef enum quern_compile_when {
  QUERN_COMPILE_BACKGROUND = 0, /* as AUTO above */
  QUERN_COMPILE_NOW = 1         /* before the call answers; where that fails, the generic kernel */
} quern_compile_when;

/* Zeros are what quern_compile does. */
typedef struct quern_compile_options {
  size_t struct_size; /* sizeof(quern_compile_options): later versions may add members at the end */
  quern_engine engine;
  quern_compile_when when; /* of AUTO alone, as all but params below */
  const char* params;      /* NULL or "name=value name=value"; only read during the call */
  /* Rows that one thread of the host's is about to process, of all inputs: where that pays, compiling begins now. 0:
   * unknown. */
  uint64_t expected_rows;
  /* For tests: compile after so many rows, neither earlier nor later. The caller gets a kernel of its own, which is
   * generic up to there even where the process has the compiled one. 0: when it pays. */
  uint64_t compile_after_rows;
  /* For tests: the call that brings the last of these rows answers when the compiled kernel is there, and the batch
   * after it runs on it. */
  bool swap_waits;
} quern_compile_options;

QUERN_API quern_status quern_compile_with(const char* spec, const quern_compile_options* options, quern_kernel** kernel,
                                          quern_error* error);

/* As expected_rows, for a job that uses a kernel which is there already. quern_join_run, _aggregate_run and _sort_run
 * say it themselves. */
QUERN_API void quern_kernel_expect_rows(quern_kernel* kernel, uint64_t num_rows);

/* How many of `available` threads, one at least, pay for a job of num_rows input rows (UINT64_MAX: unknown). Advice:
 * any number works. kernel may be NULL; the rows alone decide then. Of an aggregation the number of groups decides too:
 * where *look_rows is not 0 afterwards, append the first *look_rows rows by one thread and ask again, with
 * groups_seen[i] the groups that there were after look i (num_looks of them; none at first: groups_seen may be NULL).
 * look_rows may be NULL: the rows alone decide. Since 1.6. */
QUERN_API uint32_t quern_advise_threads(const quern_kernel* kernel, uint64_t num_rows, uint32_t available,
                                        const uint64_t* groups_seen, size_t num_looks, uint64_t* look_rows);

/* What a kernel is: "spec" (canonical), "plan", "layout", "engine" (what runs now: "jit" or "generic"), "cache" (where
 * the compiled code came from: "memory", "disk", "miss"; "off" while there is none), "compile_ms", "code_bytes",
 * "warning" (why it is not compiled and will not be). NULL for another name. The text lives as long as the kernel. */
QUERN_API const char* quern_kernel_text(const quern_kernel* kernel, const char* name);

/* ---- what kernels do ---- */

/* What was counted, batch by batch, of a job or of all jobs of a kernel; asking is the only cost. Since 1.5. */
typedef struct quern_counters {
  size_t struct_size;     /* sizeof(quern_counters), set by the caller: later versions may add members at the end */
  uint64_t rows, batches; /* taken in, of a join on both sides; batches are the kernel's, of batch_size rows at most */
  uint64_t ns;            /* in the operator's calls, of all threads together; of short calls some are timed */
  uint64_t tag_hits; /* rows that a table's tag or bit sent on to a tuple; of tables without, that found their slot */
  uint64_t chain_steps;                     /* further tuples, slots or entries that were looked at */
  uint64_t growths;                         /* of tables of groups */
  uint64_t generic_rows, generic_batches;   /* of the rows and batches those that the generic kernel processed */
  uint64_t compiled_rows, compiled_batches; /* and those that the compiled one did */
  const char* prefetch_class; /* after finalise: "l2", "l3", "dram" by the table's bytes; sorts "group"; "off"; "" where
                                 there is none */
  const char* tier;           /* which kernel ran: "generic", "compiled", "both", "none" */
  const char* cache;          /* where the compiled kernel came from: "memory", "disk", "miss", "off" */
} quern_counters;

/* Of all jobs that ran the kernel so far, of any handle that shares it. At any time, from any thread, as the others
 * are; NULL: zeros. */
QUERN_API void quern_kernel_get_counters(const quern_kernel* kernel, quern_counters* counters);
QUERN_API void quern_join_get_counters(const quern_join* join, quern_counters* counters);
QUERN_API void quern_aggregate_get_counters(const quern_aggregate* aggregate, quern_counters* counters);
QUERN_API void quern_sort_get_counters(const quern_sort* sort, quern_counters* counters);
QUERN_API void quern_merge_get_counters(const quern_merge* merge, quern_counters* counters);
QUERN_API void quern_filter_get_counters(const quern_filter* filter, quern_counters* counters);

/* ---- columns of a host that has its own vectors ---- */

/* One column of one batch. Element r of the buffers is row r. Fixed-width types: `values`. bool: `values` is a bitmap
 * (bit 0 of byte 0 first) that starts at bit `bit_offset`. utf8, binary: `values` the bytes, `offsets` int32 (large_:
 * int64), one more than rows. Views: `values` 16-byte Arrow views, `buffers` the data buffers. Dictionaries: `values`
 * the indices, `dictionary` the values. `validity`: bitmap, bit set where the row has a value, from bit `bit_offset`;
 * NULL: no nulls. A string has below 4 GiB. */
typedef struct quern_column {
  const uint8_t* validity;
  const void* values;
  const void* offsets;
  const uint8_t* const* buffers;
  const struct quern_column* dictionary;
  uint64_t bit_offset;
} quern_column;

/* One batch of one side. `keys` and `payload` as the spec lists them (a `rowid` payload needs a column too; it is not
 * read); after the payload, in the same array, this side's column of each comparison of `residual`. Of an aggregation:
 * `payload` are the columns of all aggregates one after the other, of each its arguments, then its `:filter` (a bool
 * column, where null counts as false).
 * Of a filter: `keys` are the columns of the condition in the order in which it mentions them, one for each mention;
 * `payload` is not read. `selection`: NULL, or the batch's row of each row that takes part. num_rows: selected rows;
 * below 2^32 - 1. The contents are trusted: only the pointers are checked for presence. Use the Arrow calls for data
 * from strangers. */
typedef struct quern_batch {
  const quern_column* keys;
  const quern_column* payload;
  const uint32_t* selection;
  uint64_t num_rows;
  /* What rowid columns call the batch's row 0; also what the aggregates first, last and string_agg go by, and stable
   * sorts. */
  uint64_t first_row_id;
} quern_batch;

/* Which rows of an Arrow array take part, and what they are called, as the members of quern_batch say it: for the calls
 * that end in _arrow_rows, where NULL means all rows, called on from those of the batch before. Since 1.6. `selection`:
 * for one, what quern_filter_select_arrow has written. Checked: each number is below the array's length, where row 0 is
 * the first one behind its offset. Only read during the call; of a prober and a merge, as long as the host's vectors of
 * a quern_batch. Cost: one pass over it. The rest of the array is checked too, as without. */
typedef struct quern_arrow_rows {
  size_t struct_size;        /* sizeof(quern_arrow_rows): later versions may add members at the end */
  const uint32_t* selection; /* NULL: the first num_rows rows */
  uint64_t num_rows;         /* that take part */
  uint64_t first_row_id;     /* as quern_batch's */
} quern_arrow_rows;

/* One column of a result. Same layouts as quern_column, from bit 0. Valid until the next call on its prober,
 * quern_groups, quern_sorted or quern_merge. */
typedef struct quern_result_column {
  const uint8_t* validity; /* NULL where neither spec nor kind of join makes nulls */
  const void* values;      /* utf8 and binary: the bytes */
  const void* offsets;
  const uint8_t* bytes; /* views: data buffer 0 */
  uint64_t num_bytes;
  uint64_t null_count;
} quern_result_column;

typedef struct quern_result {
  uint64_t num_rows;
  /* Of a join: probe payload, a mark join's mark (bool), build payload; 0: only num_rows counts. Of an aggregation:
   * keys (dictionaries decoded), then one for each aggregate. Of a sort or merge: the keys that the spec flags `out`
   * (dictionaries decoded), then payload, then one for each window function (u64); 0: only num_rows counts. */
  size_t num_columns;
  const quern_result_column* columns; /* owned by whom it came from */
} quern_result;

/* ---- the join ---- */

/* memory_limit: bytes that table and results may take; 0: no limit. */
QUERN_API quern_status quern_join_create(quern_kernel* kernel, uint64_t memory_limit, quern_join** join,
                                         quern_error* error);
QUERN_API void quern_join_destroy(quern_join* join);

/* Tells where the spec's columns stand in Arrow batches, before the first one: `keys` and `payload` are child numbers
 * of the struct schema, as many as the spec lists (-1 for a rowid), and after the payload one for each comparison of
 * `residual`. The schemas are checked against the spec and not kept. */
QUERN_API quern_status quern_join_bind_arrow(quern_join* join, const struct ArrowSchema* build,
                                             const int32_t* build_keys, const int32_t* build_payload,
                                             const struct ArrowSchema* probe, const int32_t* probe_keys,
                                             const int32_t* probe_payload, quern_error* error);

/* The result's schema under that binding: probe payload, a mark join's "mark", build payload, with names and formats of
 * the inputs (dictionaries decoded). Where rows of one side come out on their own, the fields of the other are
 * nullable. The caller releases `schema`. */
QUERN_API quern_status quern_join_result_schema(const quern_join* join, struct ArrowSchema* schema, quern_error* error);

/* Adds a batch to the build side. Moves the array in: its release callback is called when the join no longer needs it
 * (also on error). The array is checked: O(columns), plus one pass over bitmaps (rows/8 bytes), string offsets, views
 * and dictionary indices. */
QUERN_API quern_status quern_join_append_arrow(quern_join* join, struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_join_append_arrow_rows(quern_join* join, struct ArrowArray* batch,
                                                    const quern_arrow_rows* rows, quern_error* error);

/* Adds a batch of the host's own vectors. Fixed-width values are copied into the table. Strings and binaries are not:
 * their bytes must stay where they are until the join is destroyed, unless copy_bytes is true, which costs one copy of
 * them. */
QUERN_API quern_status quern_join_append(quern_join* join, const quern_batch* batch, bool copy_bytes,
                                         quern_error* error);

/* Builds the table. No append after it, no probe before it. */
QUERN_API quern_status quern_join_finalise(quern_join* join, quern_error* error);

/* The same by any number of threads at once, each of which takes part and returns when the table is built: at once
 * where it already is. All get the same answer; after a failure the join is of no use. All appenders must be done. */
QUERN_API quern_status quern_join_finalise_shared(quern_join* join, quern_error* error);

/* How the table is laid out, which finalise decides by the data: "unchained", "bitmap", "dense", "csr", "open",
 * "counting"; there may be more one day. Static text; "" before finalise; NULL for NULL. */
QUERN_API const char* quern_join_layout(const quern_join* join);

typedef struct quern_join_stats {
  uint64_t build_rows;
  uint64_t table_rows; /* build_rows without those that can never match (null keys) */
  uint64_t directory_bytes;
  uint64_t tuple_bytes;
  uint64_t peak_bytes; /* of memory taken so far */
  uint32_t prefetch_distance;
} quern_join_stats;
/* Not while other threads append or finalise. */
QUERN_API void quern_join_get_stats(const quern_join* join, quern_join_stats* stats);

/* ---- building by several threads ---- */

/* One thread's way to add batches while others do the same by theirs. Any number of appenders; each belongs to one
 * thread. */
QUERN_API quern_status quern_appender_create(quern_join* join, quern_appender** appender, quern_error* error);
QUERN_API void quern_appender_destroy(quern_appender* appender);

/* As quern_join_append and quern_join_append_arrow, which say what becomes of the batch. A failed append may have
 * stored a part of it: from then on no appender of the join goes on, and the join cannot be finalised. Row ids of Arrow
 * batches go on from whatever batch came before, of any appender. */
QUERN_API quern_status quern_appender_append(quern_appender* appender, const quern_batch* batch, bool copy_bytes,
                                             quern_error* error);
QUERN_API quern_status quern_appender_append_arrow(quern_appender* appender, struct ArrowArray* batch,
                                                   quern_error* error);
QUERN_API quern_status quern_appender_append_arrow_rows(quern_appender* appender, struct ArrowArray* batch,
                                                        const quern_arrow_rows* rows, quern_error* error);

/* Hands the rows over to the join; once, before finalise. An appender that is destroyed without it takes its rows with
 * it. */
QUERN_API quern_status quern_appender_finish(quern_appender* appender, quern_error* error);

/* ---- probing ---- */

/* batch_rows: rows of a result at most; 0: 65536. */
QUERN_API quern_status quern_prober_create(quern_join* join, uint64_t batch_rows, quern_prober** prober,
                                           quern_error* error);
QUERN_API void quern_prober_destroy(quern_prober* prober);

/* Starts on a probe batch. The host's vectors must stay until quern_prober_next has answered more = false; an array is
 * moved in. */
QUERN_API quern_status quern_prober_input(quern_prober* prober, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_prober_input_arrow(quern_prober* prober, struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_prober_input_arrow_rows(quern_prober* prober, struct ArrowArray* batch,
                                                     const quern_arrow_rows* rows, quern_error* error);

/* Starts on the build rows that come out on their own, when all probers of the join are done with all inputs: those
 * without a match (right, full, right_anti) or with one (right_semi); none for the other kinds. Probers that do so
 * share the rows: each comes out of one, once. */
QUERN_API quern_status quern_prober_input_unmatched(quern_prober* prober, quern_error* error);

/* The next result rows of the input. `more`: whether to call again before the next input. A result may have no rows. In
 * a single join the second match of a probe row is QUERN_FAILED_PRECONDITION. */
QUERN_API quern_status quern_prober_next(quern_prober* prober, quern_result* result, bool* more, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive prober and join. */
QUERN_API quern_status quern_prober_next_arrow(quern_prober* prober, struct ArrowArray* result, bool* more,
                                               quern_error* error);

/* ---- a whole join, for hosts without threads ---- */

/* Takes one result, valid until it returns. Called from several threads at once, one result at a time in each. false:
 * no more results. */
typedef bool (*quern_on_result)(void* context, const quern_result* result);

/* Appends the build batches, finalises, probes the probe batches and lets the build rows out that come on their own,
 * all by threads of its own and this one; batches above 65536 rows are cut, so that one batch keeps all of them busy.
 * Batches that were appended before take part.
 *
 * threads: 1 to 1024; 0: as many as the machine has. batch_rows: rows of a result at most; 0: 65536. on_result: gets
 * the results that have rows, in no order (with one thread in that of the probe rows); NULL: the rows only count.
 * num_rows: NULL, or where the number of rows that came out is put, at every outcome. Bytes of strings must stay as
 * with copy_bytes = false. After on_result has said false it is not called again, except for calls under way in other
 * threads, and the answer is QUERN_OK. The join is finalised then, and may be probed as any other. A failure while
 * building leaves a join of no use. */
QUERN_API quern_status quern_join_run(quern_join* join, const quern_batch* build, size_t num_build,
                                      const quern_batch* probe, size_t num_probe, uint32_t threads, uint64_t batch_rows,
                                      quern_on_result on_result, void* context, uint64_t* num_rows, quern_error* error);

/* ---- the aggregation ---- */

/* `kernel`: of a spec `aggregate ..`. memory_limit: bytes that tables and results may take; 0: no limit. */
QUERN_API quern_status quern_aggregate_create(quern_kernel* kernel, uint64_t memory_limit, quern_aggregate** aggregate,
                                              quern_error* error);
QUERN_API void quern_aggregate_destroy(quern_aggregate* aggregate);

/* What the host knows, before the first batch and the first appender: how many groups there will be, and the smallest
 * and largest value of the key number `key` of the spec (of u64 the same bits; without meaning for keys that are no
 * integers, dates or times). Nothing is wrong where it is wrong, but slower. A later hint takes the place of an earlier
 * one. */
QUERN_API quern_status quern_aggregate_hint_groups(quern_aggregate* aggregate, uint64_t expected_groups,
                                                   quern_error* error);
QUERN_API quern_status quern_aggregate_hint_range(quern_aggregate* aggregate, uint32_t key, int64_t min, int64_t max,
                                                  quern_error* error);

/* Tells where the spec's columns stand in Arrow batches, before the first one: `keys` and `payload` are child numbers
 * of the struct schema, as many as the spec has keys, and as quern_batch's payload has columns. The schema is checked
 * against the spec and not kept. */
QUERN_API quern_status quern_aggregate_bind_arrow(quern_aggregate* aggregate, const struct ArrowSchema* input,
                                                  const int32_t* keys, const int32_t* payload, quern_error* error);

/* Adds a batch of the host's own vectors, or an Arrow array. Nothing is kept of it: the vectors may go when the call
 * returns, and an array, which is moved in, is released (also on error; it is checked as by quern_join_append_arrow).
 * Cost: one or two random cache lines a row. A failed append may have added a part of the batch: from then on the
 * aggregation does not go on. Row ids of Arrow batches go on from whatever batch came before. */
QUERN_API quern_status quern_aggregate_append(quern_aggregate* aggregate, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_aggregate_append_arrow(quern_aggregate* aggregate, struct ArrowArray* batch,
                                                    quern_error* error);
QUERN_API quern_status quern_aggregate_append_arrow_rows(quern_aggregate* aggregate, struct ArrowArray* batch,
                                                         const quern_arrow_rows* rows, quern_error* error);

/* Adds states that another aggregation of the same spec let out (QUERN_GROUP_STATES), in this process or on another
 * machine: a batch whose keys are those of results (dictionaries decoded), and whose payload is a binary column for
 * each aggregate; or the array of quern_groups_next_arrow, its columns by position, which needs no binding. Damaged
 * states are QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_aggregate_append_states(quern_aggregate* aggregate, const quern_batch* batch,
                                                     quern_error* error);
QUERN_API quern_status quern_aggregate_append_states_arrow(quern_aggregate* aggregate, struct ArrowArray* batch,
                                                           quern_error* error);

/* Brings all groups together. No append after it, no groups before it. */
QUERN_API quern_status quern_aggregate_finalise(quern_aggregate* aggregate, quern_error* error);

/* The same by any number of threads at once, as quern_join_finalise_shared. */
QUERN_API quern_status quern_aggregate_finalise_shared(quern_aggregate* aggregate, quern_error* error);

/* How the groups' table is laid out: "single", "dense", "open", "sorted", "directory"; there may be more one day.
 * Static text; "" before finalise; NULL for NULL. */
QUERN_API const char* quern_aggregate_layout(const quern_aggregate* aggregate);

typedef struct quern_aggregate_stats {
  uint64_t input_rows;
  uint64_t num_groups; /* before finalise: so far, without those of appenders, where counting them may read the table */
  uint64_t table_bytes; /* of all tables at finalise */
  uint64_t num_growths; /* of tables */
  uint64_t peak_bytes;  /* of memory taken so far */
  uint32_t prefetch_distance;
} quern_aggregate_stats;
/* Not while other threads append or finalise. */
QUERN_API void quern_aggregate_get_stats(const quern_aggregate* aggregate, quern_aggregate_stats* stats);

/* One thread's way to add batches while others do the same by theirs, as quern_appender. */
QUERN_API quern_status quern_aggregate_appender_create(quern_aggregate* aggregate, quern_aggregate_appender** appender,
                                                       quern_error* error);
QUERN_API void quern_aggregate_appender_destroy(quern_aggregate_appender* appender);

/* As the functions of quern_aggregate. A failed append ends the work of all appenders of the aggregation. */
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

/* Hands the groups over to the aggregation; once, before finalise. An appender that is destroyed without it takes its
 * rows with it. */
QUERN_API quern_status quern_aggregate_appender_finish(quern_aggregate_appender* appender, quern_error* error);

/* ---- reading groups ---- */

typedef enum quern_group_columns {
  QUERN_GROUP_RESULTS = 0, /* keys, then the aggregates' results */
  QUERN_GROUP_STATES =
      1 /* keys, then a binary column of states for each aggregate: for quern_aggregate_append_states */
} quern_group_columns;

/* A reader of a finalised aggregation's groups, which come in no order; it belongs to one thread. Any number of readers
 * share the groups: each group comes out of one of them, once, as result or as state. batch_rows: groups of a result at
 * most; 0: 65536.
 *
 * _partition: only the groups of share number `partition` of num_partitions, by the hash of the key: a key has the same
 * share in every aggregation of the process, and in those of other processes where no key is a dictionary. Readers of
 * different shares may follow one another. */
QUERN_API quern_status quern_groups_create(quern_aggregate* aggregate, quern_group_columns columns, uint64_t batch_rows,
                                           quern_groups** groups, quern_error* error);
QUERN_API quern_status quern_groups_create_partition(quern_aggregate* aggregate, quern_group_columns columns,
                                                     uint32_t partition, uint32_t num_partitions, uint64_t batch_rows,
                                                     quern_groups** groups, quern_error* error);
QUERN_API void quern_groups_destroy(quern_groups* groups);

/* The next groups. `more`: whether to call again. A result may have no rows. A sum or average that does not fit its
 * type is QUERN_FAILED_PRECONDITION; after that and any other failure groups are lost. */
QUERN_API quern_status quern_groups_next(quern_groups* groups, quern_result* result, bool* more, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive all handles. Needs no binding. */
QUERN_API quern_status quern_groups_next_arrow(quern_groups* groups, struct ArrowArray* result, bool* more,
                                               quern_error* error);

/* The schema of quern_groups_next_arrow's arrays under the binding: keys with the names and formats of the input
 * (dictionaries decoded), then aggregates, named by their text in the spec: "sum(i64)". Of decimals, sums and averages
 * have the argument's scale and 38 digits. Of a host's function: seconds (time64: microseconds), scale 0, no time zone.
 * The caller releases `schema`. */
QUERN_API quern_status quern_aggregate_result_schema(const quern_aggregate* aggregate, quern_group_columns columns,
                                                     struct ArrowSchema* schema, quern_error* error);

/* A whole aggregation for hosts without threads, as quern_join_run: appends the batches, finalises and reads all
 * groups, by threads of its own and this one. num_groups: NULL, or where the number of groups that came out is put, at
 * every outcome. */
QUERN_API quern_status quern_aggregate_run(quern_aggregate* aggregate, const quern_batch* batches, size_t num_batches,
                                           uint32_t threads, uint64_t batch_rows, quern_on_result on_result,
                                           void* context, uint64_t* num_groups, quern_error* error);

/* ---- the sort ---- */

/* `kernel`: of a spec `sort ..`. memory_limit: bytes that rows and results may take; 0: no limit. */
QUERN_API quern_status quern_sort_create(quern_kernel* kernel, uint64_t memory_limit, quern_sort** sort,
                                         quern_error* error);
QUERN_API void quern_sort_destroy(quern_sort* sort);

/* Tells where the spec's columns stand in Arrow batches, before the first one: `keys` and `payload` are child numbers
 * of the struct schema, as many as the spec lists (-1 for a rowid). The schema is checked against the spec and not
 * kept. */
QUERN_API quern_status quern_sort_bind_arrow(quern_sort* sort, const struct ArrowSchema* input, const int32_t* keys,
                                             const int32_t* payload, quern_error* error);

/* The schema of quern_sorted_next_arrow's arrays under that binding: the keys that come out and the payload with names
 * and formats of the input (dictionaries decoded; a rowid is "rowid"), then "row_number", "rank", "dense_rank". The
 * caller releases `schema`. */
QUERN_API quern_status quern_sort_result_schema(const quern_sort* sort, struct ArrowSchema* schema, quern_error* error);

/* Adds a batch of the host's own vectors, or an Arrow array, which is moved in and checked as by
 * quern_join_append_arrow. Fixed-width values are copied. Strings and binaries are not: their bytes must stay where
 * they are until the sort and its readers are destroyed (arrays are kept for that), unless copy_bytes is true, which
 * costs one copy of them (nothing where the spec has a limit up to the plan's top_rows: such a sort copies those of the
 * few rows that it keeps). Row ids of Arrow batches go on from whatever batch came before. A failed append may have
 * added a part of the batch: from then on the sort does not go on. */
QUERN_API quern_status quern_sort_append(quern_sort* sort, const quern_batch* batch, bool copy_bytes,
                                         quern_error* error);
QUERN_API quern_status quern_sort_append_arrow(quern_sort* sort, struct ArrowArray* batch, quern_error* error);
QUERN_API quern_status quern_sort_append_arrow_rows(quern_sort* sort, struct ArrowArray* batch,
                                                    const quern_arrow_rows* rows, quern_error* error);

/* Sorts. No append after it, no reader before it. */
QUERN_API quern_status quern_sort_finalise(quern_sort* sort, quern_error* error);

/* The same by any number of threads at once, as quern_join_finalise_shared. */
QUERN_API quern_status quern_sort_finalise_shared(quern_sort* sort, quern_error* error);

/* How rows were sorted, which finalise decides by the data: "none" (fewer than two rows, say), "sorted" (they came so),
 * "reversed", "nearly_sorted", "insertion", "vector", "radix", "comparison"; there may be more one day. Static text; ""
 * before finalise; NULL for NULL. */
QUERN_API const char* quern_sort_method(const quern_sort* sort);

typedef struct quern_sort_stats {
  uint64_t input_rows;    /* 0 before finalise, as all but peak_bytes */
  uint64_t num_rows;      /* that come out */
  uint64_t dropped_rows;  /* that a limit or threshold left out as they arrived */
  uint64_t collided_rows; /* whose order their entries' words did not say */
  uint64_t peak_bytes;    /* of memory taken so far */
  uint64_t entry_bytes;   /* of what is sorted in place of a row */
  uint32_t key_bits;      /* of the keys, that differ from row to row */
} quern_sort_stats;
/* Not while other threads append or finalise. */
QUERN_API void quern_sort_get_stats(const quern_sort* sort, quern_sort_stats* stats);

/* The threshold of a sort with a limit: a row that later rows must come before (or tie with) to be among the first
 * `limit`. It comes nearer as rows come, but not with each of them, and exists only after some more than `limit` have
 * come; not for limits above the plan's top_rows. A host's scan may leave out what comes after it, and tell it to sorts
 * of other threads or machines.
 *
 * _get: `row` becomes one row of all keys in the order of the spec (dictionaries decoded), valid until the next
 * quern_sort_get_threshold of the sort; `exists`: whether there is one. Without one `row` has no rows. By one thread at
 * a time, while others append. _set: rows that come after this one need not come out. `keys`: one row (num_rows 1) of
 * keys as quern_sort_append takes them; payload is not read, nothing is kept of the vectors. By any thread, while
 * others append. */
QUERN_API quern_status quern_sort_get_threshold(quern_sort* sort, quern_result* row, bool* exists, quern_error* error);
QUERN_API quern_status quern_sort_set_threshold(quern_sort* sort, const quern_batch* keys, quern_error* error);

/* One thread's way to add batches while others do the same by theirs, as quern_appender. */
QUERN_API quern_status quern_sort_appender_create(quern_sort* sort, quern_sort_appender** appender, quern_error* error);
QUERN_API void quern_sort_appender_destroy(quern_sort_appender* appender);

/* As the functions of quern_sort. A failed append ends the work of all appenders of the sort. */
QUERN_API quern_status quern_sort_appender_append(quern_sort_appender* appender, const quern_batch* batch,
                                                  bool copy_bytes, quern_error* error);
QUERN_API quern_status quern_sort_appender_append_arrow(quern_sort_appender* appender, struct ArrowArray* batch,
                                                        quern_error* error);
QUERN_API quern_status quern_sort_appender_append_arrow_rows(quern_sort_appender* appender, struct ArrowArray* batch,
                                                             const quern_arrow_rows* rows, quern_error* error);

/* Hands the rows over to the sort; once, before finalise. An appender that is destroyed without it takes its rows with
 * it. */
QUERN_API quern_status quern_sort_appender_finish(quern_sort_appender* appender, quern_error* error);

/* ---- reading sorted rows ---- */

/* A reader of a finalised sort's rows; it belongs to one thread. One reader gives out all rows in order. Several share
 * them: each takes the next rows that none has taken, and tells where they stand. batch_rows: rows of a result at most;
 * 0: 65536. */
QUERN_API quern_status quern_sorted_create(quern_sort* sort, uint64_t batch_rows, quern_sorted** sorted,
                                           quern_error* error);
QUERN_API void quern_sorted_destroy(quern_sorted* sorted);

/* The next rows. position: NULL, or where the place of the first of them among all rows of the sort is put. `more`:
 * whether to call again. A result may have no rows. After a failure rows are lost. */
QUERN_API quern_status quern_sorted_next(quern_sorted* sorted, quern_result* result, uint64_t* position, bool* more,
                                         quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive all handles. Needs no binding. */
QUERN_API quern_status quern_sorted_next_arrow(quern_sorted* sorted, struct ArrowArray* result, uint64_t* position,
                                               bool* more, quern_error* error);

/* A whole sort for hosts without threads, as quern_join_run: appends the batches and finalises, by threads of its own
 * and this one, then this thread alone reads: on_result gets the results one after the other, in order. NULL: the rows
 * only count, and none is taken from readers. num_rows: NULL, or where the number of rows that came out is put, at
 * every outcome. */
QUERN_API quern_status quern_sort_run(quern_sort* sort, const quern_batch* batches, size_t num_batches,
                                      uint32_t threads, uint64_t batch_rows, quern_on_result on_result, void* context,
                                      uint64_t* num_rows, quern_error* error);

/* ---- merging sorted runs ---- */

/* Merges runs of rows that are in the order of the spec, as sorts of several machines or of parts of a table give them
 * out, without having more than one batch of each run. `kernel`: of a spec `sort ..` without window functions, whose
 * limit counts for the merged rows; rows with equal keys come out in the order of their runs. num_runs: 1 to 65536.
 * memory_limit: bytes; 0: no limit. batch_rows: rows of a result at most; 0: 65536.
 *
 * A batch brings the columns that quern_sort_append takes: to merge what sorts gave out, all of their keys must have
 * come out. */
QUERN_API quern_status quern_merge_create(quern_kernel* kernel, uint64_t memory_limit, uint32_t num_runs,
                                          uint64_t batch_rows, quern_merge** merge, quern_error* error);
QUERN_API void quern_merge_destroy(quern_merge* merge);

/* As quern_sort_bind_arrow and quern_sort_result_schema. */
QUERN_API quern_status quern_merge_bind_arrow(quern_merge* merge, const struct ArrowSchema* input, const int32_t* keys,
                                              const int32_t* payload, quern_error* error);
QUERN_API quern_status quern_merge_result_schema(const quern_merge* merge, struct ArrowSchema* schema,
                                                 quern_error* error);

/* The next batch of run number `run`, when quern_merge_next asks for it or before the first quern_merge_next. The
 * host's vectors must stay until the run needs input again or the merge is destroyed; an array is moved in, also on
 * error. Rows that are not in order are QUERN_INVALID_ARGUMENT, here or when they are to come out. */
QUERN_API quern_status quern_merge_input(quern_merge* merge, uint32_t run, const quern_batch* batch,
                                         quern_error* error);
QUERN_API quern_status quern_merge_input_arrow(quern_merge* merge, uint32_t run, struct ArrowArray* batch,
                                               quern_error* error);
QUERN_API quern_status quern_merge_input_arrow_rows(quern_merge* merge, uint32_t run, struct ArrowArray* batch,
                                                    const quern_arrow_rows* rows, quern_error* error);

/* Says that run number `run` has no further batch. */
QUERN_API quern_status quern_merge_end(quern_merge* merge, uint32_t run, quern_error* error);

typedef enum quern_merge_state {
  QUERN_MERGE_ROWS = 0,        /* call again */
  QUERN_MERGE_NEEDS_INPUT = 1, /* run number `run` needs its next batch, or its end */
  QUERN_MERGE_DONE = 2         /* all runs are at their ends, or the limit is reached */
} quern_merge_state;

/* The rows that are certain by now; in every state there may be some, or none. After a failure rows are lost. */
QUERN_API quern_status quern_merge_next(quern_merge* merge, quern_result* result, quern_merge_state* state,
                                        uint32_t* run, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive the merge. Needs no binding. */
QUERN_API quern_status quern_merge_next_arrow(quern_merge* merge, struct ArrowArray* result, quern_merge_state* state,
                                              uint32_t* run, quern_error* error);

/* ---- the filter ---- */

/* `kernel`: of a spec `filter CONDITION`. */
QUERN_API quern_status quern_filter_create(quern_kernel* kernel, quern_filter** filter, quern_error* error);
QUERN_API void quern_filter_destroy(quern_filter* filter);

/* Tells where the condition's columns stand in Arrow batches, before the first one: `columns` are child numbers of the
 * struct schema, one for each mention of a column, in that order; a number may come more than once. The schema is
 * checked against the spec and not kept. */
QUERN_API quern_status quern_filter_bind_arrow(quern_filter* filter, const struct ArrowSchema* input,
                                               const int32_t* columns, quern_error* error);

/* Which rows of a batch the condition is true for: not where it is false, and not where it is unknown because of a
 * null.
 *
 * _select: writes their numbers to rows[0] .. rows[*num_rows - 1], in the order of the batch. With a `selection` only
 * its rows are asked, and what is written are its elements, so that the result may be the selection of a next batch
 * struct (but not be written over it). The caller has room for batch->num_rows numbers. num_rows may be
 * &batch->num_rows. After a failure the contents of `rows` are undefined. _bitmap: sets bit i % 8 of byte i / 8 where
 * row i (of a selection: row selection[i]) passes, and clears it where it does not; the caller has room for
 * (batch->num_rows + 7) / 8 bytes, and bits beyond the last row become 0: the layout of a bool column. num_rows: NULL,
 * or where the number of rows that pass is put. _count: only how many pass.
 *
 * Nothing is kept, and an array stays the caller's: it is looked at during the call and not released. It is checked as
 * by quern_join_append_arrow; its row 0 is the first row behind its offset. Cost: one pass over the columns, of which
 * later comparisons ask only those rows that earlier ones left open. Threads: any at once. */
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

/* ---- aggregate functions of the host's own ---- */

/* An aggregate function that specs call as host.NAME(TYPE,..). A state is `state_bytes` bytes, all zero for no rows,
 * aligned to 8; it is moved and copied as bytes, and must own nothing. The callbacks answer 0, or anything else for
 * failure, which ends the aggregation with an error that names the function. They are called from every thread that
 * aggregates, each time for states of its own. */
typedef struct quern_aggregate_function {
  size_t struct_size;   /* sizeof(quern_aggregate_function): later versions may add members at the end */
  uint32_t state_bytes; /* 1 to 4096 */
  const char*
      result; /* the type of the answer, as in a spec: "f64"; a number, date or time. Only read during the call. */
  void* user; /* handed to the callbacks */
  /* Adds row rows[i] of the columns to states[i], i < n. Rows whose arguments are null, or that a filter leaves out,
   * are not among them. Columns are those of the batch: dictionaries come with their indices. */
  int (*update)(void* user, const quern_column* columns, uint32_t num_columns, const uint32_t* rows,
                void* const* states, uint64_t n);
  /* Adds from[i] to into[i]. */
  int (*merge)(void* user, void* const* into, const void* const* from, uint64_t n);
  /* Writes n values of the result type side by side; where there is none, clears bit i of `validity` (all set before).
   */
  int (*finalise)(void* user, const void* const* states, uint64_t n, void* values, uint8_t* validity);
} quern_aggregate_function;

/* Registers a function under a name (letters, digits, '_') for the process, for good: before the first quern_compile of
 * a spec that calls it. A second one of the same name is QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_register_aggregate(const char* name, const quern_aggregate_function* function,
                                                quern_error* error);

/* ---- what compiles in the background, and what it says ---- */

typedef enum quern_compile_thread {
  QUERN_COMPILE_THREAD_OWN =
      0, /* one thread of the library's, started when it is first needed; of low priority, all signals blocked */
  QUERN_COMPILE_THREAD_HOST = 1 /* threads of the host's that call quern_compile_work */
} quern_compile_thread;

/* Whose thread compiles in the background: for the process, from now on. */
QUERN_API quern_status quern_compile_thread_mode(quern_compile_thread thread, quern_error* error);

/* Runs one compilation that waits, or the first that comes within `timeout_ms` (0: does not wait). `worked`: whether it
 * ran one. Any number of threads may call it, in either mode; each needs 1 MiB of stack. */
QUERN_API quern_status quern_compile_work(uint32_t timeout_ms, bool* worked, quern_error* error);

typedef enum quern_log_level {
  QUERN_LOG_WARNING = 0, /* something is not as it should be; results are right all the same */
  QUERN_LOG_INFO = 1     /* asked for by QUERN_VERBOSE */
} quern_log_level;

/* Takes one line, without its end. Called by any thread, one line at a time; must not call the library. */
typedef void (*quern_on_log)(void* context, quern_log_level level, const char* line);

/* Who hears the library's lines, for the process; NULL: stderr, as at first. The callback before is not called any more
 * once this returns. */
QUERN_API void quern_set_log_callback(quern_on_log on_log, void* context);

/* ---- tuning to the machine ---- */

/* Which prefetch settings kernels go by: those of a profile that `quern tune` or quern_tune has written, else
 * estimates. Without any of these calls the process looks for one when it makes its first kernel: QUERN_PROFILE, then
 * the user's folder, then /etc/quern. It changes speed alone, never a result, and no code is compiled for it. For the
 * process, kernels that are asked for from now on; jobs go on as they began. All since 1.6.
 *
 * quern_set_profile: `path`: a file; "off": none; NULL: looks again where the process does by itself, which warns of
 * what it cannot use and does not fail. _text: the same of a profile's text, num_bytes long, only read during the call.
 * On failure what was before stays. A file that is missing or wrong in any line is an error (which names the line), and
 * so is a profile of another machine: QUERN_FAILED_PRECONDITION. Cost: some 0.2 ms, and 5 us a loop when a kernel is
 * next asked for. Threads: any. */
QUERN_API quern_status quern_set_profile(const char* path, quern_error* error);
QUERN_API quern_status quern_set_profile_text(const char* text, size_t num_bytes, quern_error* error);

typedef struct quern_profile quern_profile;

typedef enum quern_tune_effort {
  QUERN_TUNE_MEASURE = 0, /* four table sizes of each loop, the most useful settings */
  QUERN_TUNE_PATIENT = 1  /* all sizes from 32 KiB, more settings */
} quern_tune_effort;

/* Says how far tuning is, a share of the budget from 0 to 1, and what comes next, "probe_open word 16 MiB"; on the
 * thread that tunes. false ends the tuning before that. */
typedef bool (*quern_on_tune)(void* context, double share, const char* doing);

/* Zeros are what `quern tune` does. */
typedef struct quern_tune_options {
  size_t struct_size;       /* sizeof(quern_tune_options): later versions may add members at the end */
  const char* const* specs; /* tune what these kernels run (joins, aggregations, sorts); only read during the call */
  size_t num_specs;         /* 0: every loop */
  quern_tune_effort effort;
  double budget_seconds; /* 0.1 to 86400; 0: 60 */
  uint32_t threads;   /* what holds with one thread is tried with so many, 1 to 1024; 0: 2, where there are as many */
  uint64_t max_bytes; /* of a table, 32 KiB to 2 GiB; 0: 2 GiB, or half of the memory that is free */
  const char* start;  /* NULL, or the text of a profile of this machine to begin with: what it has is kept where nothing
                         is measured */
  quern_on_tune on_progress; /* may be NULL */
  void* context;             /* handed to on_progress */
} quern_tune_options;

/* Measures which settings are best on this machine: real joins, aggregations and sorts on this thread and those it
 * starts. What comes out is not used and not written: hand its text to quern_set_profile_text, or keep it in a file.
 * `options`: NULL is zeros. Where on_progress ends it, what was measured until then comes out. Cost: the budget; memory
 * for one table at a time. Threads: one at a time in a process, else QUERN_FAILED_PRECONDITION; nothing else should
 * run. */
QUERN_API quern_status quern_tune(const quern_tune_options* options, quern_profile** profile, quern_error* error);
QUERN_API void quern_profile_destroy(quern_profile* profile);
/* NUL-terminated, one thing a line; lives as long as the profile. NULL of NULL. */
QUERN_API const char* quern_profile_text(const quern_profile* profile);

/* ---- the process's kernel cache ---- */

QUERN_API void quern_cache_set_limit(uint64_t code_bytes);
QUERN_API void quern_cache_clear(void);

/* What kernels take. The first five of the cache; the others of all kernels of the process, which handles may keep
 * beyond the cache. Since 1.5. */
typedef struct quern_cache_stats {
  size_t struct_size; /* sizeof(quern_cache_stats), set by the caller: later versions may add members at the end */
  uint64_t kernels;   /* that the cache keeps */
  uint64_t code_bytes, limit_bytes; /* of machine code, in whole pages: kept, and at most */
  uint64_t hits, misses, evictions;
  uint64_t live_kernels, live_bytes; /* loaded; their pages */
  uint64_t reserved_bytes;           /* addresses of the slabs that these pages are taken from: no memory */
  uint64_t mappings;                 /* lines of /proc/PID/maps for all of it */
} quern_cache_stats;

QUERN_API void quern_cache_get_stats(quern_cache_stats* stats);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_H_ */
