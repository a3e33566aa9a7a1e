/* SPDX-License-Identifier: Apache-2.0
 *
 * Quern's C ABI: kernels for joins, aggregations, set operations, sorts, filters and maps (computed columns), compiled
 * for one spec on this machine, called from any engine. Plain C11; this header and libquern.so are all that is needed.
 *
 * A *kernel* is made from a spec, one line of text with types, keys and results. A *job* is one run of a kernel. Rows
 * enter and leave it by *ports*, through *inputs* and *outputs*, of which each thread makes its own:
 *
 *     spec ── quern_compile ──> kernel ── quern_job_create ──> job
 *
 *         on each thread   quern_input_create -> quern_input_append.. -> quern_input_finish
 *         on any threads   quern_job_work until done, or quern_job_finalise
 *         on each thread   quern_output_create -> quern_output_next..
 *
 *                     inputs                             outputs
 *     join            BUILD                              PROBE (takes batches, too), then UNMATCHED
 *     aggregation     ROWS, STATES                       ROWS or STATES
 *     set operation   LEFT, RIGHT, STATES                ROWS or STATES
 *     sort            ROWS, THRESHOLD                    ROWS, THRESHOLD
 *     merge           ROWS, one input for each run       ROWS
 *     map             none                               ROWS (takes batches, too)
 *     pipeline        ROWS                               those of its end; a pipeline that emits rows has none
 *     filter          none: quern_job_filter answers batch by batch
 *
 * The columns of a result are those that a batch takes, so that the output of one job is the input of another. A host
 * without threads calls quern_job_run, which does all of this.
 *
 * Errors: a function that can fail returns a quern_status; QUERN_OK is 0. If it is given an error object (which may be
 * NULL), it leaves one line of text there. Exceptions never cross this boundary, and nothing aborts.
 *
 * Threads: any number of threads may share a kernel or a job. An input or an output is used by one thread at a time. No
 * function waits for another thread, except quern_job_finalise and quern_job_run.
 *
 * Ownership: handles are reference-counted. Destroy each one once, in any order; NULL is allowed.
 *
 * ABI: functions are only added, never changed. Structs with a struct_size member, which holds their size, may grow at
 * their end; the others are frozen. quern_abi_version() returns the version of the library that was loaded,
 * QUERN_ABI_VERSION is that of this header. A library serves all headers of the same major version.
 */
#ifndef QUERN_H_
#define QUERN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_ABI_VERSION_MAJOR 2
#define QUERN_ABI_VERSION_MINOR 3
#define QUERN_ABI_VERSION (QUERN_ABI_VERSION_MAJOR * 1000 + QUERN_ABI_VERSION_MINOR)

#define QUERN_API __attribute__((visibility("default")))

/* The structs of the Arrow C data interface; complete where the host has included their definition. */
struct ArrowSchema;
struct ArrowArray;

typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_INVALID_ARGUMENT = 1,    /* the caller's mistake; the text names the value and what is accepted */
  QUERN_RESOURCE_EXHAUSTED = 2,  /* the memory limit, or the machine's memory */
  QUERN_FAILED_PRECONDITION = 3, /* calls in the wrong order, or a machine that cannot run this */
  QUERN_UNIMPLEMENTED = 4,
  QUERN_INTERNAL = 5,     /* a defect of Quern */
  QUERN_CANCELLED = 6,    /* the host has stopped the job */
  QUERN_OUT_OF_RANGE = 7, /* data without a result: a sum that does not fit its type, a second match in a single join */
  QUERN_ABORTED = 8,      /* a function of the host has failed */
  QUERN_IO_ERROR = 9      /* rows could not be written to files, or did not come back as they were */
} quern_status;

/* Owned by the caller; filled on failure. The text is one NUL-terminated line, cut if it is longer than the array. */
typedef struct quern_error {
  quern_status status;
  char text[1020];
} quern_error;

typedef struct quern_kernel quern_kernel;
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
 * `quern dump plan`). The spec of a pipeline gives one handle for the kernels of all its steps (docs/pipelines.md).
 *
 * QUERN_ENGINE_AUTO returns at once. The generic kernel, whose results are identical to the bit, runs until the jobs
 * that use the kernel have processed so many rows that compiling pays off. Then a thread of the library compiles, and
 * jobs use the machine code from their next batch on and keep their data. If compiling fails, the generic kernel
 * continues to run, and one warning gives the reason (quern_set_log_callback, quern_kernel_text). Cost: 10 to 50 us;
 * below 1 us for a spec that was requested before, which starts compiled where the process has compiled it.
 * QUERN_ENGINE_JIT costs 3 to 40 ms the first time, 1 ms with the kernel on disk, and below 1 us afterwards. */
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
  /* Rows of all inputs that one thread is about to process: if they pay, compiling begins now. 0: unknown. */
  uint64_t expected_rows;
  /* For tests: compile after exactly this many rows. The caller gets a kernel of its own, which is generic up to that
   * point even if the process already has the compiled one. 0: compile when it pays off. */
  uint64_t compile_after_rows;
  /* For tests: the call that adds the last of these rows returns only when the compiled kernel is ready, and the next
   * batch runs on that kernel. */
  bool swap_waits;
} quern_compile_options;

/* options: NULL stands for zeros. */
QUERN_API quern_status quern_compile_with(const char* spec, const quern_compile_options* options, quern_kernel** kernel,
                                          quern_error* error);

/* Like expected_rows, for a job that uses an existing kernel. quern_job_run calls it itself. */
QUERN_API void quern_kernel_expect_rows(quern_kernel* kernel, uint64_t num_rows);

/* Returns how many of `available` threads pay for a job of num_rows input rows (UINT64_MAX: unknown), at least one.
 * This is advice: any number works. With a NULL kernel or a NULL look_rows the rows alone decide. For an aggregation
 * the number of groups counts too: if *look_rows is not 0 afterwards, append the first *look_rows rows with one thread
 * and call again, with the number of groups after look i in groups_seen[i] (num_looks of them; at first none, and
 * groups_seen may be NULL). */
QUERN_API uint32_t quern_advise_threads(const quern_kernel* kernel, uint64_t num_rows, uint32_t available,
                                        const uint64_t* groups_seen, size_t num_looks, uint64_t* look_rows);

/* Describes a kernel. The names are "spec" (canonical), "plan", "layout", "engine" (what runs now: "jit" or "generic"),
 * "cache" (where the compiled code came from: "memory", "disk", "miss"; "off" while there is none), "compile_ms",
 * "code_bytes" and "warning" (why the kernel is not compiled and will not be). Returns NULL for any other name. The
 * text lives as long as the kernel. */
QUERN_API const char* quern_kernel_text(const quern_kernel* kernel, const char* name);

/* ---- counters ---- */

/* What one job, or all jobs of a kernel, have counted batch by batch. Counting is always on; only reading costs. */
typedef struct quern_counters {
  size_t struct_size;     /* sizeof(quern_counters), set by the caller: later versions may add members at the end */
  uint64_t rows, batches; /* input, for a join of both sides; a batch has at most batch_size rows */
  uint64_t ns;            /* spent in calls of the operator, summed over threads; short calls are sampled */
  uint64_t tag_hits;      /* rows whose tag or bit led to a tuple; in tables without tags, rows that found their slot */
  uint64_t chain_steps;   /* further tuples, slots or directory entries that were visited */
  uint64_t growths;       /* of group tables */
  uint64_t generic_rows, generic_batches;   /* those of the rows and batches that the generic kernel processed */
  uint64_t compiled_rows, compiled_batches; /* those that the compiled kernel processed */
  const char* prefetch_class; /* after finalise: "l2", "l3", "dram" by table size; "group": sorts; "off"; "": none */
  const char* tier;           /* which kernel ran: "generic", "compiled", "both", "none" */
  const char* cache;          /* where the compiled kernel came from: "memory", "disk", "miss", "off" */
} quern_counters;

/* Of all jobs that have run the kernel, through any handle; of a pipeline, the kernel of its end. Threads: any, at any
 * time. NULL gives zeros. */
QUERN_API void quern_kernel_get_counters(const quern_kernel* kernel, quern_counters* counters);

/* ---- batches of a host's own vectors ---- */

/* How the values of a column lie in memory, where that differs from the type; may be combined. */
typedef enum quern_column_flags {
  QUERN_COLUMN_CONSTANT = 1, /* element 0 is the value of every row, also in the bitmaps */
  /* utf8_view, binary_view: elements longer than 12 bytes end in a pointer instead of a buffer's number and an offset,
     as the string_t of DuckDB and the strings of Umbra do; `buffers` is not read. */
  QUERN_COLUMN_POINTERS = 2,
  QUERN_COLUMN_BYTES = 4, /* bool: one byte a row; any value but 0 is true */
  /* utf8_view, binary_view: `values` is an array of pointers (the Datums of a PostgreSQL column) to varlena values with
     headers of 1 or 4 bytes, in the byte order of little-endian machines; nothing needs to be aligned. Those that are
     compressed or stored elsewhere (TOAST) are QUERN_INVALID_ARGUMENT, which names the row: unpack them before, with
     pg_detoast_datum_packed. Pointers of null rows are not followed. Values lie in place as without this flag: of
     stored rows until the job and its outputs are destroyed, unless copy_bytes is true. */
  QUERN_COLUMN_VARLENA = 8,
  /* With QUERN_COLUMN_VARLENA: blanks (U+0020) at the end are no part of a value, as PostgreSQL compares and hashes
     bpchar. Values come out without them. */
  QUERN_COLUMN_TRIMMED = 16
} quern_column_flags;

/* One column of one batch. Element r of the buffers belongs to row r. The buffers depend on the type:
 *
 * fixed width: `values`. bool: `values` is a bitmap (bit 0 of byte 0 first) that starts at bit `bit_offset`. utf8,
 * binary: `values` holds the bytes and `offsets` int32 offsets (large_: int64), one more than there are rows. Views:
 * `values` holds 16-byte Arrow views and `buffers` the data buffers. Dictionaries: `values` holds the indices and
 * `dictionary` the values.
 * `validity` is a bitmap that starts at bit `bit_offset`; set bits are values. NULL: no nulls. Strings are below 4 GiB.
 * The members up to bit_offset suffice for Arrow's layouts; zeros in the others change nothing. A column that uses
 * `selection`, `flags` or `value_bytes` is copied into a plain one for the rows of the batch, at a few ns a row. */
typedef struct quern_column {
  const uint8_t* validity;
  const void* values;
  const void* offsets;
  const uint8_t* const* buffers;
  const struct quern_column* dictionary;
  uint64_t bit_offset;
  const uint32_t* selection; /* NULL, or: element selection[r] of every buffer and bitmap belongs to row r */
  uint32_t flags;            /* of quern_column_flags */
  uint32_t value_bytes;      /* 0, or those of an integer or decimal narrower than its type: 1, 2, 4 or 8 */
  uint64_t num_bytes;        /* of results only: the bytes of the column's strings */
  uint64_t null_count;       /* of results only */
  uint64_t reserved;         /* 0 */
} quern_column;

/* One batch. `keys` and `payload` are in the order of the spec. A `rowid` payload needs a column too, which is not
 * read. num_rows counts the selected rows and is below 2^32 - 1.
 *
 * Join: after the payload, the same array holds this side's column of each comparison of `residual`. Filter: `keys`
 * holds a column for each mention of one in the condition, in that order; `payload` is not read. Aggregation: `payload`
 * holds the columns of each aggregate in turn: its arguments, then its `:filter` (a bool column in which null counts as
 * false); or the columns `in` of a spec with expressions. A batch of states has the keys of results (dictionaries
 * decoded), and a binary column for each aggregate as payload.
 *
 * The contents are trusted: only pointers are checked for NULL. Use the Arrow calls for data from untrusted sources. */
typedef struct quern_batch {
  const quern_column* keys;
  const quern_column* payload;
  const uint32_t* selection; /* NULL, or the numbers of the rows that take part */
  uint64_t num_rows;
  /* The row id of row 0, for rowid columns, the aggregates first, last and string_agg, and stable sorts. */
  uint64_t first_row_id;
  /* 0: the members above. Otherwise sizeof(quern_batch): later versions may add members at the end. */
  size_t struct_size;
} quern_batch;

/* Which rows of an Arrow array take part, and their row ids. The members mean the same as those of quern_batch. NULL
 * for the struct stands for all rows, with row ids that continue those of the previous batch. Each number is checked to
 * be below the array's length; row 0 is the first one after the array's offset. The selection is only read during the
 * call, except by quern_output_push_arrow and by inputs of a merge, where it must stay for as long as the vectors of a
 * quern_batch. Cost: one pass over the selection. The array is checked in full, as it is without a selection. */
typedef struct quern_arrow_rows {
  size_t struct_size;        /* sizeof(quern_arrow_rows): later versions may add members at the end */
  const uint32_t* selection; /* NULL: the first num_rows rows */
  uint64_t num_rows;         /* rows that take part */
  uint64_t first_row_id;     /* as in quern_batch */
} quern_arrow_rows;

typedef enum quern_result_state {
  QUERN_RESULT_MORE = 0,        /* call again */
  QUERN_RESULT_NEEDS_INPUT = 1, /* PROBE: push the next batch; a merge: run `run` needs its next batch, or end */
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
  /* All start at bit 0. Row ids are u64, or u32 if row_id_bytes of the job's options is 4. `validity` is NULL where
   * neither the spec nor the kind of join can produce nulls; the strings of a view column are in buffers[0]. */
  const quern_column* columns;
  quern_result_state state;
  uint32_t run;      /* of a merge that needs input */
  uint64_t position; /* of a sort: the position of the first of these rows among all of them */
} quern_result;

/* ---- jobs ---- */

/* Where rows enter and leave a job. A port has inputs or outputs, any number of them: see the top of this file. */
typedef enum quern_port {
  QUERN_PORT_ROWS = 0,
  QUERN_PORT_BUILD = 1,
  QUERN_PORT_PROBE = 2,
  /* The build rows without a match (right, full, right_anti) or with one (right_semi), and none of other kinds. Create
   * such outputs when all probing is done. They share these rows: each comes out of one output, once. Of a job that has
   * written rows to files, all rows of the keys that were written come out here, whatever the kind. */
  QUERN_PORT_UNMATCHED = 3,
  /* Groups with a binary column of states for each aggregate, to be added to another aggregation of the same spec, in
   * this process or on another machine. Arrow arrays of states are taken by position, without a binding; damaged states
   * are QUERN_INVALID_ARGUMENT. */
  QUERN_PORT_STATES = 4,
  /* The threshold of a sort with a limit: a row that later rows must precede (or equal) to be among the first `limit`,
   * so that a host's scan may skip those after it: its keys, in the order of the spec (dictionaries decoded). It exists
   * only when somewhat more than `limit` rows have arrived, not for limits above the plan's top_rows, and gets tighter
   * as rows arrive, though not with each of them. It may go to sorts of other threads or machines. Each result of an
   * output is the threshold at that time, or no row. */
  QUERN_PORT_THRESHOLD = 5,
  /* The two sides of a set operation; neither has to be complete before the other one begins. Batches have the keys of
   * the spec, and no payload. */
  QUERN_PORT_LEFT = 6,
  QUERN_PORT_RIGHT = 7
} quern_port;

/* What a host knows of the values of an aggregation's key: the smallest and the largest (u64: the same bits; ignored
 * for keys that are not integers, dates or times). */
typedef struct quern_key_range {
  uint32_t key; /* its number in the spec */
  int64_t min, max;
} quern_key_range;

/* Where a job writes rows that its memory limit, or the host's account, has no room for. With such options joins,
 * aggregations, set operations and sorts finish under any limit from about 16 MiB up (docs/spilling.md), where they
 * would fail with QUERN_RESOURCE_EXHAUSTED. Nothing is written while all rows fit. A sixteenth to an eighth of the
 * limit is set aside for reading and writing. */
typedef struct quern_spill_options {
  size_t struct_size; /* sizeof(quern_spill_options): later versions may add members at the end */
  /* A folder for nameless files, which the system removes however the process ends. NULL: QUERN_SPILL_DIR of the
   * environment, else /var/tmp. Not read where the host has functions of its own. */
  const char* folder;
  uint64_t max_bytes;   /* that the files may take at one time; above it calls fail with QUERN_IO_ERROR. 0: no limit */
  uint64_t block_bytes; /* of one write: 4096 to 64 MiB, or less under a small limit; 0: by limit and plan */
  /* The host's own store in place of files: all three, or none. They receive `host` of the job's options, and are
   * called by any thread and by several at once, also by threads of the library that read ahead and write behind.
   * write_block copies num_bytes bytes and sets *block to a number of its own, by which read_block finds all of them
   * again; free_block ends that. Returning anything but 0 ends the job with QUERN_IO_ERROR. Bytes that come back are
   * compared with a checksum. */
  int (*write_block)(void* host, const void* bytes, uint64_t num_bytes, uint64_t* block);
  int (*read_block)(void* host, uint64_t block, void* bytes, uint64_t num_bytes);
  void (*free_block)(void* host, uint64_t block, uint64_t num_bytes);
} quern_spill_options;

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
   * after it was freed, on any thread that works for the job or destroys its handles. Where `reserve` returns false,
   * the call that needs the memory fails with QUERN_RESOURCE_EXHAUSTED. */
  bool (*reserve)(void* host, uint64_t bytes);
  void (*release)(void* host, uint64_t bytes);
  void* host; /* the host's own pointer for the job: passed to both, and to the host's aggregate functions */
  /* NULL, or a flag that the host, perhaps its signal handler, makes non-zero to stop the job, as quern_job_cancel
   * does. It must outlive the job's handles. */
  const volatile int* stop;
  /* The part of a join's residual that the host evaluates; for a spec with `residual=host` or `residual=..,host`, and
   * for no other. It is called with pairs of rows whose keys are equal and for which the spec's comparisons hold, up to
   * 1024 at a time, and sets keep[i] to 1 where pair i matches (all are 0 before). Every kind of join treats the others
   * as pairs that do not match. A pair is shown once. Rows are given by their ids, as in `rowid` columns; `context` is
   * that of the output's options. Return 0; anything else, or an exception, fails the call of quern_output_next with
   * QUERN_ABORTED. Cost: a call for up to 1024 pairs, and 1 to 2 ns a pair; a build row takes 8 bytes more, unless its
   * payload has a rowid. Threads: that of the output; several at once. It must not call functions on this output. */
  int (*residual)(void* user, void* context, const uint64_t* probe_rows, const uint64_t* build_rows, uint64_t num_pairs,
                  uint8_t* keep);
  void* residual_user; /* passed to `residual` */
  /* The width of the row ids that come out, in results and in Arrow arrays: 8 (0), or 4 for hosts that take rows by u32
   * numbers. The call whose result would have a row id of 2^32 or more fails with QUERN_OUT_OF_RANGE. Batches that go
   * in have no ids in them. Cost of 4: about 0.4 ns an id. */
  uint32_t row_id_bytes;
  /* NULL: rows stay in memory. Otherwise where rows may be written; only read during the call. Jobs that keep no rows
   * (merges, filters, maps) ignore it. For joins of every kind the host then reads QUERN_PORT_UNMATCHED, too: rows
   * whose key was written come out there, in no order. */
  const quern_spill_options* spill;
  /* Of a pipeline, and of no other job. tables: the joins that its steps probe or reduce by, in the order of the steps;
   * jobs of joins, or of pipelines that end in `build`, whose spec is that of the step. Their work is done before an
   * input of the pipeline is created. The job keeps them; the array is only read during the call. */
  quern_job* const* tables;
  size_t num_tables;
  /* Of a pipeline that ends in `emit`, and of no other: receives its rows, as on_rows of quern_pipeline_options does.
   * Threads: those that append, finalise or work; several at once. */
  bool (*on_rows)(void* context, const quern_batch* rows);
  void* rows_context; /* passed to on_rows, unless the input's options have a context */
} quern_job_options;

/* options: NULL stands for zeros. Cost: about a microsecond; memory is taken when rows come. */
QUERN_API quern_status quern_job_create(quern_kernel* kernel, const quern_job_options* options, quern_job** job,
                                        quern_error* error);
QUERN_API void quern_job_destroy(quern_job* job);

/* A handle of one step of a pipeline: a filter, a map, a table; behind the steps, the job of its end. They are numbered
 * from 0 as in the kernel's text "plan". For counters and statistics; the end also for its own inputs and outputs, by
 * which rows pass no step. *of_step is one more handle to destroy. Errors: QUERN_INVALID_ARGUMENT for a job that is no
 * pipeline, or a step that it does not have. */
QUERN_API quern_status quern_job_step(quern_job* job, size_t step, quern_job** of_step, quern_error* error);

/* Stops the job: from now on its calls return QUERN_CANCELLED, those in progress after some milliseconds (a batch of
 * 65536 rows, or one piece of work). The handles must still be destroyed. Threads: any, and signal handlers. */
QUERN_API void quern_job_cancel(quern_job* job);

/* Binds the columns of a port to the children of Arrow batches; call it before the port's first Arrow batch. `keys` and
 * `payload` are child numbers of the struct schema, as many as a quern_batch of the port has columns (-1 for a rowid).
 * The schema is checked against the spec and not kept. Ports that can be bound: ROWS, BUILD, PROBE. The arrays of
 * STATES are taken by position: a schema that comes with them may be checked by this call, any number of times, and
 * `keys` and `payload` are not read. For STATES, and for ROWS of a merge, metadata with another format number than this
 * library's is QUERN_INVALID_ARGUMENT (quern_format_number). */
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
 * "dense_rank". Schemas of states, of sorts and of merges carry the format number as metadata "quern.format". The
 * caller releases `schema`. */
QUERN_API quern_status quern_job_result_schema(const quern_job* job, quern_port port, struct ArrowSchema* schema,
                                               quern_error* error);

typedef struct quern_input_options {
  size_t struct_size; /* sizeof(quern_input_options): later versions may add members at the end */
  uint32_t run;       /* of a merge: the number of the run */
  /* Joins and sorts keep pointers to the bytes of strings longer than 12, which must stay in place until the job and
   * its outputs are destroyed (Arrow arrays are kept until then). If this is true they are copied instead, and an array
   * is released by the call that appends it. */
  bool copy_bytes;
  /* Of states, and of the runs of a merge: what quern_format_number answered in the process that wrote them. Another
   * number than this library's is QUERN_INVALID_ARGUMENT. 0: unknown, or from this process. */
  uint32_t format;
  /* Of ROWS of a pipeline: passed to on_rows, and to `residual` of the joins that it probes. Rows that joins have left
   * have none: there on_rows gets rows_context, and `residual` NULL. */
  void* context;
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
 * Errors: after QUERN_RESOURCE_EXHAUSTED append the same batch again when there is memory, or destroy the input, which
 * drops its rows (docs/embedding.md, "Errors"). Until the job has all of it, quern_input_finish and another number of
 * rows are QUERN_FAILED_PRECONDITION where rows were taken. After any other failure that may have added a part of the
 * batch, and after a refusal in a merge or in a state that docs/embedding.md lists, all calls on the job fail. In a
 * merge, rows out of order are QUERN_INVALID_ARGUMENT, here or when they come out. */
QUERN_API quern_status quern_input_append(quern_input* input, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_input_append_arrow(quern_input* input, struct ArrowArray* batch,
                                                const quern_arrow_rows* rows, quern_error* error);

/* Hands the rows over to the job; call it once, after the last batch. A merge's run ends when that is used up. */
QUERN_API quern_status quern_input_finish(quern_input* input, quern_error* error);

/* The groups of an aggregation that this input has seen so far, for quern_advise_threads; 0 for other jobs and NULL. */
QUERN_API uint64_t quern_input_num_groups(const quern_input* input);

/* A pipeline: batches pass through steps on their way into a job, or to the host, some thousand rows at a time, so that
 * rows which one step makes are still in the cache when the next one reads them. Rows have columns, numbered from 0: a
 * filter takes rows away; a map adds its results behind the columns; a join, all of whose work must be done, replaces
 * the columns by those of its results, whose row ids are u64.
 *
 * Each step names the columns that its job's batches have, by number: keys (filters, maps: all), then payload. The rows
 * of a join's UNMATCHED, which any kind has that has spilled, are for an input whose columns are the join's results and
 * whose steps are those behind it: make such outputs when all inputs that probe the join have finished, and use
 * copy_bytes where strings are kept. */
typedef struct quern_pipeline_step {
  quern_job* job;
  const uint32_t* keys;
  size_t num_keys;
  const uint32_t* payload;
  size_t num_payload;
  void* context; /* a join's: passed to its `residual` */
} quern_pipeline_step;

typedef struct quern_pipeline_options {
  size_t struct_size;  /* sizeof(quern_pipeline_options): later versions may add members at the end */
  const char* columns; /* the types of the columns of the batches that come in: "i64,utf8:nullable" */
  const quern_pipeline_step* steps;
  size_t num_steps;
  const uint32_t* keys; /* of what takes the rows: columns behind the last step */
  size_t num_keys;
  const uint32_t* payload;
  size_t num_payload;
  bool copy_bytes;     /* as in quern_input_options */
  uint64_t piece_rows; /* rows that pass together; at most 65536; 0: the profile's, else 16384; see docs/pipelines.md */
  /* For a NULL job: takes the rows, as a batch that may be another job's; nothing is copied, and its memory is valid
   * during the call. Behind a join first_row_id is 0. It is called by quern_input_append, and not for rows that it has
   * when a refused batch comes again. Returns whether it wants more: if not, rows are dropped from then on. */
  bool (*on_rows)(void* context, const quern_batch* rows);
  void* context; /* passed to on_rows */
  /* num_steps values, or NULL: whether a step only takes away rows that quern_job_may_match of its join leaves out. It
   * has keys alone, keeps the columns, and does not test all rows where few are taken away (semi-join reduction). */
  const bool* reductions;
} quern_pipeline_options;

/* Makes an input of the job behind a pipeline; of a NULL job, one that ends in on_rows, whose memory counts in the last
 * step's job. A merge is refused: it reads batches in place after the call. The types of columns are checked here, with
 * digits and scale of decimals that a map has computed; those of others, and units of times, are not known. Batches
 * have the columns as keys, and no payload; Arrow arrays have them in order, without a binding, and where they bring no
 * row ids their rows are numbered over all pipelines into the job. options and what it points to are read during the
 * call; the jobs of steps may be destroyed afterwards. Errors: those of the steps, and of quern_input_append;
 * QUERN_ABORTED for an exception of on_rows; QUERN_FAILED_PRECONDITION for rows that probe a join whose UNMATCHED has
 * been read. Cost: 0.2 to 0.5 us a step and piece. Threads: as quern_input_create; steps are shared. */
QUERN_API quern_status quern_pipeline_input_create(quern_job* job, quern_port port,
                                                   const quern_pipeline_options* options, quern_input** input,
                                                   quern_error* error);

typedef enum quern_work_state {
  QUERN_WORK_MORE = 0, /* call again, from any thread */
  QUERN_WORK_BUSY = 1, /* other threads do all that can be done now; there may be more when one of them has returned */
  QUERN_WORK_DONE = 2  /* outputs may be created */
} quern_work_state;

/* Does one piece of the work between the last input and the first output: of building a join's table, merging groups,
 * sorting. All inputs must have finished. Never waits for another thread, so that it suits hosts with an event loop or
 * a scheduler of their own. Most pieces take less than 10 ms; a sort whose threads have coded strings differently
 * begins with a pass over its rows. Merges and filters have no such work. Errors: the same for all threads. After
 * QUERN_RESOURCE_EXHAUSTED while a join is built, once all threads have returned, everything is as before the first
 * piece, so that the host may free memory and try again. Otherwise the job cannot be used any more. */
QUERN_API quern_status quern_job_work(quern_job* job, quern_work_state* state, quern_error* error);

/* The same for threads that may wait: returns when all work is done. Any number may call it, and each takes part. */
QUERN_API quern_status quern_job_finalise(quern_job* job, quern_error* error);

typedef struct quern_output_options {
  size_t struct_size;  /* sizeof(quern_output_options): later versions may add members at the end */
  uint64_t batch_rows; /* the most rows of a result; 0: 65536 */
  /* Aggregations: only the groups of partition number `partition`, by the hash of the key, which is that of
   * quern_job_partition in every process with the same format number; num_partitions 0 or 1: all. Outputs of different
   * partitions may follow one another. */
  uint32_t partition, num_partitions;
  void* context; /* PROBE, and UNMATCHED of a join that has spilled: passed to the job's `residual` */
} quern_output_options;

/* Makes an output, which belongs to one thread. Outputs of a job share its rows: each row comes out of one of them. A
 * sort's rows come in order, each call taking the next that no output has taken; groups come in no particular order.
 * options: NULL stands for zeros. All work must be done, except in merges and for thresholds. */
QUERN_API quern_status quern_output_create(quern_job* job, quern_port port, const quern_output_options* options,
                                           quern_output** output, quern_error* error);
QUERN_API void quern_output_destroy(quern_output* output);

/* Starts a batch of the probe side (PROBE) or of a map (ROWS). The host's vectors must stay in place until the result's
 * state is QUERN_RESULT_NEEDS_INPUT; an array is moved in. What is left of an earlier batch is dropped. Errors: where
 * rows of a join that spills could not be written, every later push to it fails with the same error. */
QUERN_API quern_status quern_output_push(quern_output* output, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_output_push_arrow(quern_output* output, struct ArrowArray* batch,
                                               const quern_arrow_rows* rows, quern_error* error);

/* Returns the next rows. On failure *result is NULL and rows are lost: only probes and maps go on, with a new batch. */
QUERN_API quern_status quern_output_next(quern_output* output, const quern_result** result, quern_error* error);
/* The same as an Arrow struct array, which the caller releases; it may outlive all handles. The result has no columns,
 * and its num_rows is that of the array. */
QUERN_API quern_status quern_output_next_arrow(quern_output* output, struct ArrowArray* rows,
                                               const quern_result** result, quern_error* error);

/* Finds the rows of a batch for which the condition of a filter is true: neither false, nor unknown because of a null.
 *
 * rows: receives their numbers, rows[0] .. rows[*num_rows - 1], in the order of the batch; room for batch->num_rows of
 * them. With a selection, only its rows are tested and its elements are written: the result may be the selection of
 * another batch, but must not overwrite the one that is read. bitmap: instead, as a bool column, bit i % 8 of byte i /
 * 8 is set where row i (with a selection: row selection[i]) passes and cleared where it does not, as are bits beyond
 * the last row; room for (batch->num_rows + 7) / 8 bytes. With neither, the rows are only counted. num_rows: receives
 * the number of rows that pass; may be &batch->num_rows. Ownership: nothing is kept; an array remains the caller's and
 * is not released. Cost: one pass over the columns; later comparisons test only the rows that earlier ones left
 * undecided. Threads: any number at once. Errors: the contents of `rows` and `bitmap` are then undefined. */
QUERN_API quern_status quern_job_filter(const quern_job* job, const quern_batch* batch, uint32_t* rows, uint8_t* bitmap,
                                        uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_job_filter_arrow(const quern_job* job, const struct ArrowArray* batch,
                                              const quern_arrow_rows* selected, uint32_t* rows, uint8_t* bitmap,
                                              uint64_t* num_rows, quern_error* error);

/* ---- what a join's table tells, and partitions of rows ---- */

/* One key of a join's build rows. For a scan of the probe side that leaves out what cannot match. */
typedef struct quern_key_summary {
  size_t struct_size;     /* sizeof(quern_key_summary), set by the caller: later versions may add members at the end */
  uint64_t num_rows;      /* all build rows */
  uint64_t num_null_rows; /* those with a null key where nulls are not equal: they count in nothing below */
  uint64_t num_keys;      /* different keys, each of all columns of the spec's `keys` together */
  bool num_keys_is_exact; /* false: there are at most num_keys, as the table does not compare its keys */
  bool has_null;          /* this column is null in a row, and the spec says nullequal */
  bool has_range;         /* min and max are values of this column, whose type has an order below */
  /* Of bool, integers, dates, times, timestamps, durations and decimals; with u64 the same bits. `_high` has the upper
   * half of a decimal128, and repeats the sign of others. Units and scales are those of the column. */
  int64_t min, max;
  int64_t min_high, max_high;
} quern_key_summary;

/* Summarises column number `key` (from 0) of the keys of a join, once all work on its build side is done. An empty
 * build side, or one with nulls alone, has no range; nor do floats, strings and binaries. num_keys is exact for every
 * layout of the table (quern_job_get_stats) but "unchained", unless that has fewer than two rows. A join that has
 * spilled rows knows the range of a single packed key only, and num_keys is the number of rows without null keys.
 * Cost: at most one pass over the table, of 1 to 3 ns a row, and next to nothing for a single integer key
 * (docs/embedding.md); call it once. Threads: any number at once, also while others probe. Errors:
 * QUERN_FAILED_PRECONDITION before all work is done; QUERN_INVALID_ARGUMENT for a job that is no join, or a key that it
 * does not have; the summary is then zero. */
QUERN_API quern_status quern_job_summarise_key(const quern_job* job, uint32_t key, quern_key_summary* summary,
                                               quern_error* error);

/* Finds the rows of a batch of a join's probe side whose key a build row may have, without probing. Where it leaves a
 * row out, no build row has an equal key, by the equality of the spec (collations, NaN, dictionaries by value); a row
 * with a null key is left out unless the spec says nullequal. The residual is not looked at. Rows without a match pass
 * only where the table's layout (quern_job_get_stats) is "unchained": of its foreign keys, 1 in 300 to 1,000, and all
 * those that share a place with very many build rows. Of a join that has spilled rows, all others pass, too.
 *
 * The answer is that of quern_job_filter: `rows` receives row numbers, or `bitmap` one bit a row, or neither counts
 * them. So the rows may be the `selection` of the batch that is pushed to a probe, in inner, right, semi, right_semi
 * and right_anti joins; other kinds need the rows without a match too. The batch has the columns of `keys`; `payload`
 * is not read. Arrays have the schema to which QUERN_PORT_PROBE is bound, and remain the caller's.
 * Cost: hashing the key, and one random cache line of the table, 1 to 8 ns a row; more for strings and weights.
 * Ownership: nothing is kept. Threads: any number at once, also while others probe. Errors: QUERN_FAILED_PRECONDITION
 * before all work is done, or for an array without a binding; QUERN_INVALID_ARGUMENT for a job that is no join, or a
 * wrong batch. Contents of `rows` and `bitmap` are then undefined, and *num_rows is 0. */
QUERN_API quern_status quern_job_may_match(const quern_job* job, const quern_batch* batch, uint32_t* rows,
                                           uint8_t* bitmap, uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_job_may_match_arrow(const quern_job* job, const struct ArrowArray* batch,
                                                 const quern_arrow_rows* selected, uint32_t* rows, uint8_t* bitmap,
                                                 uint64_t* num_rows, quern_error* error);

/* The version of the function below, the same within a minor version; another one may give other partitions. */
#define QUERN_PARTITION_VERSION 1

/* Writes the partition of each row of a batch by its key, for an exchange of rows between threads, processes or
 * machines: partitions[i], from 0 to num_partitions - 1, belongs to row i (with a selection: to row selection[i]); room
 * for batch->num_rows of them. `port` is BUILD or PROBE of a join, ROWS of an aggregation, or LEFT or RIGHT of a set
 * operation, and says which columns the batch has: those of `keys`; `payload` is not read. Arrays have the schema to
 * which the port is bound, and remain the caller's.
 * Equal keys have the same number: on both sides of a join, in joins and aggregations with the same types of keys, in
 * every process and on every machine. docs/embedding.md says which values are equal; a null is a value of its own. An
 * output's option num_partitions divides groups in the same way. num_partitions: 1 to 4294967295. The job need not have
 * begun. Cost: 2 to 10 ns a row and key. Ownership: nothing is kept. Threads: any number at once. Errors:
 * QUERN_INVALID_ARGUMENT for another port or job, or a wrong batch; QUERN_FAILED_PRECONDITION for an array without a
 * binding. The contents of `partitions` are then undefined. */
QUERN_API quern_status quern_job_partition(const quern_job* job, quern_port port, const quern_batch* batch,
                                           uint32_t num_partitions, uint32_t* partitions, quern_error* error);
QUERN_API quern_status quern_job_partition_arrow(const quern_job* job, quern_port port, const struct ArrowArray* batch,
                                                 const quern_arrow_rows* selected, uint32_t num_partitions,
                                                 uint32_t* partitions, quern_error* error);

/* ---- statistics ---- */

/* What a job has done. Members that do not concern its operator are 0. */
typedef struct quern_job_stats {
  size_t struct_size; /* sizeof(quern_job_stats), set by the caller: later versions may add members at the end */
  /* How the rows are laid out, or were sorted, which is chosen by the data. Join: "unchained", "bitmap", "dense",
   * "ranked", "csr", "open", "counting"; where rows were spilled, of the table of those that fit. Aggregation:
   * "single", "dense", "open", "sorted", "directory"; "spilled" where groups were. Sort: "none" (fewer than two rows,
   * for example), "sorted" (they arrived in order), "reversed", "nearly_sorted", "insertion", "vector", "radix",
   * "comparison"; "distributed" or "merged" where rows were spilled. Later versions may add more. Static text; ""
   * before all work is done. */
  const char* layout;
  uint64_t input_rows;      /* of a join: the build side's */
  uint64_t num_rows;        /* of a join's table, without null keys that never match; groups; a sort's result */
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
  uint64_t spilled_bytes, spilled_rows; /* written to files, or to the host's store; a row may be written repeatedly */
  uint64_t unspilled_bytes;             /* read back */
  uint64_t spill_levels;                /* how often rows were divided, or runs merged, again; 0: nothing was written */
  uint64_t spill_waits;                 /* blocks that had not come yet, though they were read ahead */
} quern_job_stats;
/* Must not be called while other threads append or work. NULL gives zeros. */
QUERN_API void quern_job_get_stats(const quern_job* job, quern_job_stats* stats);
/* used_bytes of its statistics: the memory that the limit counts. Threads: any, at any time. NULL gives 0. */
QUERN_API uint64_t quern_job_used_bytes(const quern_job* job);
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
 * threads of its own and this one, which share batches of more than 65536 rows. Rows that were added before take part.
 * Joins are probed with the batches of PROBE, after which the build rows of UNMATCHED come out. Results come in no
 * particular order, except those of a sort (one after the other, in order) and of a join with one thread (in the order
 * of the probe rows). Where a sort's results are only counted, they remain for outputs. options: NULL stands for zeros.
 * num_rows: NULL, or receives the number of rows that came out, also on failure.
 * The bytes of strings must stay in place as without copy_bytes. After on_result has returned false it is not called
 * again, except for calls in progress on other threads, and the status is QUERN_OK. A failure before the first result
 * leaves the job unusable. Merges and filters are QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_job_run(quern_job* job, const quern_run_input* inputs, size_t num_inputs,
                                     const quern_run_options* options, uint64_t* num_rows, quern_error* error);

/* ---- aggregate functions of the host ---- */

/* An aggregate function that specs call as host.NAME(TYPE,..). A state has `state_bytes` bytes, is aligned to 8 bytes,
 * and is all zero for no rows. It is moved and copied as bytes and must own nothing: what it points to belongs to
 * somebody else, such as the memory of the job's `host`, and states with pointers must not leave the process. The
 * callbacks return 0 for success; anything else ends the aggregation with an error that names the function. They are
 * called on every thread that aggregates, on each for states of its own. */
typedef struct quern_aggregate_function {
  size_t struct_size;   /* sizeof(quern_aggregate_function): later versions may add members at the end */
  uint32_t state_bytes; /* 1 to 4096 */
  const char* result;   /* its type, as in a spec: "f64"; a number, date or time; only read during the call */
  /* Passed to the callbacks, each of which also receives `host` of the job's options: a memory context that belongs to
   * the query, for example. Jobs that run at the same time call with pointers of their own. */
  void* user;
  /* Adds row rows[i] of the columns to states[i], for i < n. Rows with null arguments, and rows that a filter rejects,
   * are not among them. The columns are those of the batch: dictionary columns hold indices. */
  int (*update)(void* user, void* host, const quern_column* columns, uint32_t num_columns, const uint32_t* rows,
                void* const* states, uint64_t n);
  /* Adds from[i] to into[i]. */
  int (*merge)(void* user, void* host, void* const* into, const void* const* from, uint64_t n);
  /* Writes n values of the result type, one after the other. Where there is no value, it clears bit i of `validity`,
   * whose bits are all set before. */
  int (*finalise)(void* user, void* host, const void* const* states, uint64_t n, void* values, uint8_t* validity);
} quern_aggregate_function;

/* Registers a function under a name (letters, digits, '_') for the life of the process. Call it before the first
 * quern_compile of a spec that calls the function. A second function of the same name is QUERN_INVALID_ARGUMENT. */
QUERN_API quern_status quern_register_aggregate(const char* name, const quern_aggregate_function* function,
                                                quern_error* error);

/* ---- versions of what hosts keep ---- */

/* The version of a collation, as a spec names it ("utf8mb4_unicode_ci", "icu:de-u-co-phonebk"): a text without spaces
 * that is another one whenever the order or the equality of strings under the collation may be another one. A host
 * stores it beside what relies on the order (an index, a sorted file), and compares the texts of one collation as a
 * whole when it opens that again (docs/embedding.md).
 * version: receives the text, which lives as long as the process. Cost: about 0.1 ms. Threads: any. Errors: as for a
 * spec with that name. */
QUERN_API quern_status quern_collation_version(const char* name, const char** version, quern_error* error);

/* The format number of this library. States of groups, partitions of keys (quern_output_options) and the order of
 * sorted runs mean the same to all libraries with the same number, whatever their versions, and to no others; a new
 * number is 1 above the last. Machines compare their numbers before they exchange such rows, or let the rows carry it:
 * as metadata of Arrow schemas (quern_job_result_schema), or beside batches (`format` of quern_input_options).
 * Collations have versions of their own, above. */
QUERN_API uint32_t quern_format_number(void);

/* ---- background compilation and messages ---- */

typedef enum quern_compile_thread {
  QUERN_COMPILE_THREAD_OWN = 0, /* one of the library, started when needed, of low priority, with signals blocked */
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

/* Sets the process's receiver of messages; NULL: stderr, the default. The previous one is not called after this. */
QUERN_API void quern_set_log_callback(quern_on_log on_log, void* context);

/* ---- tuning to the machine ---- */

/* Selects the prefetch settings of kernels: those of a profile that `quern tune` or quern_tune has written, or else
 * estimates. Without these calls, the process looks for a profile when it makes its first kernel: in QUERN_PROFILE,
 * then in the user's folder, then in /etc/quern. Settings change speed only, never a result or the compiled code. They
 * apply to the process, for kernels requested from now on; running jobs keep theirs.
 * quern_set_profile: `path` is a file; "off" for no profile; NULL to repeat the process's own search, which warns of a
 * profile that it cannot use and does not fail. quern_set_profile_text takes the text of a profile, num_bytes long,
 * which is only read during the call. Errors: a file that is missing or wrong in any line, which is named;
 * QUERN_FAILED_PRECONDITION for a profile of another machine. The previous settings then remain. Cost: about 0.2 ms,
 * and 5 us a loop when a kernel is next requested. Threads: any. */
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
  const char* const* specs; /* of joins, aggregations, sorts, pipelines: tune their loops, and pieces; only read then */
  size_t num_specs;         /* 0: every loop, and the pieces of two pipelines */
  quern_tune_effort effort;
  double budget_seconds; /* 0.1 to 86400; 0: 60 */
  uint32_t threads;      /* with which settings that win with one thread are tried, 1 to 1024; 0: 2, where there are */
  uint64_t max_bytes;    /* of a table, 32 KiB to 2 GiB; 0: 2 GiB, or half of the free memory if that is less */
  const char* start;     /* NULL, or a profile's text to start from: its settings stay where nothing is measured */
  quern_on_tune on_progress; /* may be NULL */
  void* context;             /* passed to on_progress */
} quern_tune_options;

/* Measures which settings are best on this machine, with real joins, aggregations, sorts and pipelines on this thread
 * and on threads that it starts. The result is neither used nor written: pass its text to quern_set_profile_text, or
 * keep it in a file. It holds what was measured until on_progress ended the tuning. `options`: NULL stands for zeros.
 * Cost: the budget; memory for one table, or for the pipelines, at a time. Threads: one call at a time in a process,
 * otherwise QUERN_FAILED_PRECONDITION; nothing else should run on the machine. */
QUERN_API quern_status quern_tune(const quern_tune_options* options, quern_profile** profile, quern_error* error);
QUERN_API void quern_profile_destroy(quern_profile* profile);
/* NUL-terminated, with one entry a line; lives as long as the profile. NULL for NULL. */
QUERN_API const char* quern_profile_text(const quern_profile* profile);

/* ---- memory of the process: kept pages, and the kernel cache ---- */

/* Bounds the large pages that jobs leave for later jobs of the process, in no job's memory limit and in no host's
 * account; 0 keeps none, and returns those that are kept. Default: 1 GiB, or a sixteenth of the machine's memory where
 * that is less. */
QUERN_API void quern_set_kept_memory(uint64_t bytes);

/* Asks for memory that a job holds without needing it, for a host that is short of it: until `bytes` bytes are free, or
 * all there is (UINT64_MAX). No row is lost, and the job continues as before. Call it before another job is refused
 * memory: today this is what the process keeps for later jobs, as a whole, which counts in no account. Later versions
 * may move rows to a disk here, if the job's options allow that.
 * released: receives the bytes that went back to the system; may exceed `bytes`; 0 if there was nothing. Cost: about
 * 3 ms a GiB; new jobs then pay for new pages. Threads: any, also while others use the job. */
QUERN_API quern_status quern_job_release_memory(quern_job* job, uint64_t bytes, uint64_t* released, quern_error* error);

QUERN_API void quern_cache_set_limit(uint64_t code_bytes);
QUERN_API void quern_cache_clear(void);

/* The memory of kernels: up to `evictions` of the cache, then of all kernels, which handles keep alive beyond it. */
typedef struct quern_cache_stats {
  size_t struct_size; /* sizeof(quern_cache_stats), set by the caller: later versions may add members at the end */
  uint64_t kernels;   /* kernels that the cache keeps */
  uint64_t code_bytes, limit_bytes; /* of machine code, in whole pages: kept, and the most that may be */
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
