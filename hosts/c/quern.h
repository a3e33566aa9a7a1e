/* SPDX-License-Identifier: Apache-2.0
 *
 * Quern's C ABI: kernels for joins, compiled for one spec on this machine, called from any engine. Plain C11; nothing but this header
 * and libquern.so is needed.
 *
 *     spec text -> quern_compile -> quern_kernel
 *     quern_join_create -> quern_join_append_*  (build side, batch by batch) -> quern_join_finalise
 *     quern_prober_create -> quern_prober_input_* (probe side, a batch) -> quern_prober_next_* until no more -> next batch
 *
 * and where build rows come out on their own (right, full, right_semi, right_anti), after all probing:
 *
 *     quern_prober_input_unmatched -> quern_prober_next_* until no more
 *
 * A host with threads appends by a quern_appender each and finalises by quern_join_finalise_shared; for a host without any,
 * quern_join_run does all of it.
 *
 * Errors: functions that can fail return a quern_status; QUERN_OK is 0. With an error object (may be NULL) they leave a text of one line.
 * Threads: a kernel may be shared by any threads. A join is built by one thread at a time, or by any number of appenders, one thread each.
 * After finalise any number of probers, one thread each, may probe it. Handles are counted: destroy each once, in any order.
 * Exceptions never cross this boundary. Nothing aborts.
 *
 * ABI: functions are only added, never changed; structs carry no size and are frozen; quern_abi_version() tells the version of the
 * library that was loaded, QUERN_ABI_VERSION that of this header. A library serves all headers of the same major version.
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
#define QUERN_ABI_VERSION_MINOR 1
#define QUERN_ABI_VERSION (QUERN_ABI_VERSION_MAJOR * 1000 + QUERN_ABI_VERSION_MINOR)

#define QUERN_API __attribute__((visibility("default")))

/* The Arrow C data interface's structs, complete where the host has included their definition. */
struct ArrowSchema;
struct ArrowArray;

typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_INVALID_ARGUMENT = 1,    /* the caller's mistake: the text names the value and what is accepted */
  QUERN_RESOURCE_EXHAUSTED = 2,  /* the memory limit, or the machine's memory */
  QUERN_FAILED_PRECONDITION = 3, /* calls in the wrong order, or a machine that cannot run this */
  QUERN_UNIMPLEMENTED = 4,
  QUERN_INTERNAL = 5 /* a defect of Quern */
} quern_status;

/* Owned by the caller; filled on failure. The text is one line and NUL-terminated (cut at the array's end if longer). */
typedef struct quern_error {
  quern_status status;
  char text[1020];
} quern_error;

typedef struct quern_kernel quern_kernel;
typedef struct quern_join quern_join;
typedef struct quern_appender quern_appender;
typedef struct quern_prober quern_prober;

QUERN_API uint32_t quern_abi_version(void);
/* "0.1.0" */
QUERN_API const char* quern_version(void);

/* ---- kernels ---- */

typedef enum quern_engine {
  QUERN_ENGINE_AUTO = 0,   /* compiled where possible, else generic */
  QUERN_ENGINE_JIT = 1,    /* compiled, or an error */
  QUERN_ENGINE_GENERIC = 2 /* never compile */
} quern_engine;

/* Makes the kernel for a spec, or finds it in the process's cache. `params`: NULL or "name=value name=value" (see `quern dump plan`).
 * Cost: once about 10 ms and 1 to 3 ms more for each key and payload column beyond the first (so that a spec with hundreds of columns is
 * one for QUERN_ENGINE_GENERIC); below 1 us afterwards. */
QUERN_API quern_status quern_compile(const char* spec, quern_engine engine, const char* params, quern_kernel** kernel, quern_error* error);
QUERN_API void quern_kernel_destroy(quern_kernel* kernel);

/* What a kernel is: "spec" (canonical), "plan", "layout", "engine" ("jit" or "generic"), "cache" ("memory", "miss" or "off"),
 * "compile_ms", "code_bytes", "warning". NULL for another name. The text lives as long as the kernel. */
QUERN_API const char* quern_kernel_text(const quern_kernel* kernel, const char* name);

/* ---- columns of a host that has its own vectors ---- */

/* One column of one batch. Element r of the buffers is row r. Fixed-width types: `values`. bool: `values` is a bitmap (bit 0 of byte 0
 * first) that starts at bit `bit_offset`. utf8, binary: `values` the bytes, `offsets` int32 (large_: int64), one more than rows.
 * Views: `values` 16-byte Arrow views, `buffers` the data buffers. Dictionaries: `values` the indices, `dictionary` the values.
 * `validity`: bitmap, bit set where the row has a value, from bit `bit_offset`; NULL: no nulls. A string has below 4 GiB. */
typedef struct quern_column {
  const uint8_t* validity;
  const void* values;
  const void* offsets;
  const uint8_t* const* buffers;
  const struct quern_column* dictionary;
  uint64_t bit_offset;
} quern_column;

/* One batch of one side. `keys` and `payload` as the spec lists them (a `rowid` payload needs a column too; it is not read); after the
 * payload, in the same array, this side's column of each comparison of `residual`.
 * `selection`: NULL, or the batch's row of each row that takes part. num_rows: selected rows; below 2^32 - 1.
 * The contents are trusted: only the pointers are checked for presence. Use the Arrow calls for data from strangers. */
typedef struct quern_batch {
  const quern_column* keys;
  const quern_column* payload;
  const uint32_t* selection;
  uint64_t num_rows;
  uint64_t first_row_id; /* what rowid columns call the batch's row 0 */
} quern_batch;

/* One column of a result. Same layouts as quern_column, from bit 0. Valid until the next call on its prober. */
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
  size_t num_columns;                 /* probe payload, a mark join's mark (bool), build payload; 0: only num_rows counts */
  const quern_result_column* columns; /* owned by the prober */
} quern_result;

/* ---- the join ---- */

/* memory_limit: bytes that table and results may take; 0: no limit. */
QUERN_API quern_status quern_join_create(quern_kernel* kernel, uint64_t memory_limit, quern_join** join, quern_error* error);
QUERN_API void quern_join_destroy(quern_join* join);

/* Tells where the spec's columns stand in Arrow batches, before the first one: `keys` and `payload` are child numbers of the struct
 * schema, as many as the spec lists (-1 for a rowid), and after the payload one for each comparison of `residual`. The schemas are checked
 * against the spec and not kept. */
QUERN_API quern_status quern_join_bind_arrow(quern_join* join, const struct ArrowSchema* build, const int32_t* build_keys,
                                             const int32_t* build_payload, const struct ArrowSchema* probe, const int32_t* probe_keys,
                                             const int32_t* probe_payload, quern_error* error);

/* The result's schema under that binding: probe payload, a mark join's "mark", build payload, with names and formats of the inputs
 * (dictionaries decoded). Where rows of one side come out on their own, the fields of the other are nullable. The caller releases
 * `schema`. */
QUERN_API quern_status quern_join_result_schema(const quern_join* join, struct ArrowSchema* schema, quern_error* error);

/* Adds a batch to the build side. Moves the array in: its release callback is called when the join no longer needs it (also on error).
 * The array is checked: O(columns), plus one pass over bitmaps (rows/8 bytes), string offsets, views and dictionary indices. */
QUERN_API quern_status quern_join_append_arrow(quern_join* join, struct ArrowArray* batch, quern_error* error);

/* Adds a batch of the host's own vectors. Fixed-width values are copied into the table. Strings and binaries are not: their bytes must
 * stay where they are until the join is destroyed, unless copy_bytes is true, which costs one copy of them. */
QUERN_API quern_status quern_join_append(quern_join* join, const quern_batch* batch, bool copy_bytes, quern_error* error);

/* Builds the table. No append after it, no probe before it. */
QUERN_API quern_status quern_join_finalise(quern_join* join, quern_error* error);

/* The same by any number of threads at once, each of which takes part and returns when the table is built: at once where it already is. All
 * get the same answer; after a failure the join is of no use. All appenders must be done. */
QUERN_API quern_status quern_join_finalise_shared(quern_join* join, quern_error* error);

/* How the table is laid out, which finalise decides by the data: "unchained", "bitmap", "dense", "dense_runs", "open", "open_counts"; there
 * may be more one day. Static text; "" before finalise; NULL for NULL. */
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

/* One thread's way to add batches while others do the same by theirs. Any number of appenders; each belongs to one thread. */
QUERN_API quern_status quern_appender_create(quern_join* join, quern_appender** appender, quern_error* error);
QUERN_API void quern_appender_destroy(quern_appender* appender);

/* As quern_join_append and quern_join_append_arrow, which say what becomes of the batch. A failed append may have stored a part of it:
 * from then on no appender of the join goes on, and the join cannot be finalised. Row ids of Arrow batches go on from whatever batch came
 * before, of any appender. */
QUERN_API quern_status quern_appender_append(quern_appender* appender, const quern_batch* batch, bool copy_bytes, quern_error* error);
QUERN_API quern_status quern_appender_append_arrow(quern_appender* appender, struct ArrowArray* batch, quern_error* error);

/* Hands the rows over to the join; once, before finalise. An appender that is destroyed without it takes its rows with it. */
QUERN_API quern_status quern_appender_finish(quern_appender* appender, quern_error* error);

/* ---- probing ---- */

/* batch_rows: rows of a result at most; 0: 65536. */
QUERN_API quern_status quern_prober_create(quern_join* join, uint64_t batch_rows, quern_prober** prober, quern_error* error);
QUERN_API void quern_prober_destroy(quern_prober* prober);

/* Starts on a probe batch. The host's vectors must stay until quern_prober_next has answered more = false; an array is moved in. */
QUERN_API quern_status quern_prober_input(quern_prober* prober, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_prober_input_arrow(quern_prober* prober, struct ArrowArray* batch, quern_error* error);

/* Starts on the build rows that come out on their own, when all probers of the join are done with all inputs: those without a match (right,
 * full, right_anti) or with one (right_semi); none for the other kinds. Probers that do so share the rows: each comes out of one, once. */
QUERN_API quern_status quern_prober_input_unmatched(quern_prober* prober, quern_error* error);

/* The next result rows of the input. `more`: whether to call again before the next input. A result may have no rows. In a single join the
 * second match of a probe row is QUERN_FAILED_PRECONDITION. */
QUERN_API quern_status quern_prober_next(quern_prober* prober, quern_result* result, bool* more, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive prober and join. */
QUERN_API quern_status quern_prober_next_arrow(quern_prober* prober, struct ArrowArray* result, bool* more, quern_error* error);

/* ---- a whole join, for hosts without threads ---- */

/* Takes one result, valid until it returns. Called from several threads at once, one result at a time in each. false: no more results. */
typedef bool (*quern_on_result)(void* context, const quern_result* result);

/* Appends the build batches, finalises, probes the probe batches and lets the build rows out that come on their own, all by threads of its
 * own and this one; batches above 65536 rows are cut, so that one batch keeps all of them busy. Batches that were appended before take
 * part.
 *
 * threads: 1 to 1024; 0: as many as the machine has. batch_rows: rows of a result at most; 0: 65536. on_result: gets the results that have
 * rows, in no order (with one thread in that of the probe rows); NULL: the rows only count. num_rows: NULL, or where the number of rows
 * that came out is put, at every outcome. Bytes of strings must stay as with copy_bytes = false. After on_result has said false it is not
 * called again, except for calls under way in other threads, and the answer is QUERN_OK. The join is finalised then, and may be probed as
 * any other. A failure while building leaves a join of no use. */
QUERN_API quern_status quern_join_run(quern_join* join, const quern_batch* build, size_t num_build, const quern_batch* probe,
                                      size_t num_probe, uint32_t threads, uint64_t batch_rows, quern_on_result on_result, void* context,
                                      uint64_t* num_rows, quern_error* error);

/* ---- the process's kernel cache ---- */

QUERN_API void quern_cache_set_limit(uint64_t code_bytes);
QUERN_API void quern_cache_clear(void);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_H_ */
