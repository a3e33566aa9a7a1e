/* SPDX-License-Identifier: Apache-2.0
 * The declarations of an earlier quern.h, made by test/hosts/kept_header.py: never edit them. */
/* clang-format off */
#ifndef QUERN_H_
#define QUERN_H_
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define QUERN_ABI_VERSION_MAJOR 2
#define QUERN_ABI_VERSION_MINOR 0
#define QUERN_ABI_VERSION (QUERN_ABI_VERSION_MAJOR * 1000 + QUERN_ABI_VERSION_MINOR)
#define QUERN_API __attribute__((visibility("default")))
struct ArrowSchema;
struct ArrowArray;
typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_INVALID_ARGUMENT = 1,
  QUERN_RESOURCE_EXHAUSTED = 2,
  QUERN_FAILED_PRECONDITION = 3,
  QUERN_UNIMPLEMENTED = 4,
  QUERN_INTERNAL = 5,
  QUERN_CANCELLED = 6,
  QUERN_OUT_OF_RANGE = 7,
  QUERN_ABORTED = 8
} quern_status;
typedef struct quern_error {
  quern_status status;
  char text[1020];
} quern_error;
typedef struct quern_kernel quern_kernel;
typedef struct quern_job quern_job;
typedef struct quern_input quern_input;
typedef struct quern_output quern_output;
QUERN_API uint32_t quern_abi_version(void);
QUERN_API const char* quern_version(void);
typedef enum quern_engine {
  QUERN_ENGINE_AUTO = 0,
  QUERN_ENGINE_JIT = 1,
  QUERN_ENGINE_GENERIC = 2
} quern_engine;
QUERN_API quern_status quern_compile(const char* spec, quern_engine engine, const char* params, quern_kernel** kernel,
                                     quern_error* error);
QUERN_API void quern_kernel_destroy(quern_kernel* kernel);
typedef enum quern_compile_when {
  QUERN_COMPILE_BACKGROUND = 0,
  QUERN_COMPILE_NOW = 1
} quern_compile_when;
typedef struct quern_compile_options {
  size_t struct_size;
  quern_engine engine;
  quern_compile_when when;
  const char* params;
  uint64_t expected_rows;
  uint64_t compile_after_rows;
  bool swap_waits;
} quern_compile_options;
QUERN_API quern_status quern_compile_with(const char* spec, const quern_compile_options* options, quern_kernel** kernel,
                                          quern_error* error);
QUERN_API void quern_kernel_expect_rows(quern_kernel* kernel, uint64_t num_rows);
QUERN_API uint32_t quern_advise_threads(const quern_kernel* kernel, uint64_t num_rows, uint32_t available,
                                        const uint64_t* groups_seen, size_t num_looks, uint64_t* look_rows);
QUERN_API const char* quern_kernel_text(const quern_kernel* kernel, const char* name);
typedef struct quern_counters {
  size_t struct_size;
  uint64_t rows, batches;
  uint64_t ns;
  uint64_t tag_hits;
  uint64_t chain_steps;
  uint64_t growths;
  uint64_t generic_rows, generic_batches;
  uint64_t compiled_rows, compiled_batches;
  const char* prefetch_class;
  const char* tier;
  const char* cache;
} quern_counters;
QUERN_API void quern_kernel_get_counters(const quern_kernel* kernel, quern_counters* counters);
typedef enum quern_column_flags {
  QUERN_COLUMN_CONSTANT = 1,
  QUERN_COLUMN_POINTERS = 2,
  QUERN_COLUMN_BYTES = 4,
  QUERN_COLUMN_VARLENA = 8,
  QUERN_COLUMN_TRIMMED = 16
} quern_column_flags;
typedef struct quern_column {
  const uint8_t* validity;
  const void* values;
  const void* offsets;
  const uint8_t* const* buffers;
  const struct quern_column* dictionary;
  uint64_t bit_offset;
  const uint32_t* selection;
  uint32_t flags;
  uint32_t value_bytes;
  uint64_t num_bytes;
  uint64_t null_count;
  uint64_t reserved;
} quern_column;
typedef struct quern_batch {
  const quern_column* keys;
  const quern_column* payload;
  const uint32_t* selection;
  uint64_t num_rows;
  uint64_t first_row_id;
  size_t struct_size;
} quern_batch;
typedef struct quern_arrow_rows {
  size_t struct_size;
  const uint32_t* selection;
  uint64_t num_rows;
  uint64_t first_row_id;
} quern_arrow_rows;
typedef enum quern_result_state {
  QUERN_RESULT_MORE = 0,
  QUERN_RESULT_NEEDS_INPUT = 1,
  QUERN_RESULT_DONE = 2
} quern_result_state;
typedef struct quern_result {
  uint64_t num_rows;
  size_t num_columns;
  const quern_column* columns;
  quern_result_state state;
  uint32_t run;
  uint64_t position;
} quern_result;
typedef enum quern_port {
  QUERN_PORT_ROWS = 0,
  QUERN_PORT_BUILD = 1,
  QUERN_PORT_PROBE = 2,
  QUERN_PORT_UNMATCHED = 3,
  QUERN_PORT_STATES = 4,
  QUERN_PORT_THRESHOLD = 5,
  QUERN_PORT_LEFT = 6,
  QUERN_PORT_RIGHT = 7
} quern_port;
typedef struct quern_key_range {
  uint32_t key;
  int64_t min, max;
} quern_key_range;
typedef struct quern_job_options {
  size_t struct_size;
  uint64_t memory_limit;
  uint32_t num_runs;
  uint64_t expected_groups;
  const quern_key_range* key_ranges;
  size_t num_key_ranges;
  bool (*reserve)(void* host, uint64_t bytes);
  void (*release)(void* host, uint64_t bytes);
  void* host;
  const volatile int* stop;
  int (*residual)(void* user, void* context, const uint64_t* probe_rows, const uint64_t* build_rows, uint64_t num_pairs,
                  uint8_t* keep);
  void* residual_user;
  uint32_t row_id_bytes;
} quern_job_options;
QUERN_API quern_status quern_job_create(quern_kernel* kernel, const quern_job_options* options, quern_job** job,
                                        quern_error* error);
QUERN_API void quern_job_destroy(quern_job* job);
QUERN_API void quern_job_cancel(quern_job* job);
QUERN_API quern_status quern_job_bind_arrow(quern_job* job, quern_port port, const struct ArrowSchema* schema,
                                            const int32_t* keys, const int32_t* payload, quern_error* error);
QUERN_API quern_status quern_job_result_schema(const quern_job* job, quern_port port, struct ArrowSchema* schema,
                                               quern_error* error);
typedef struct quern_input_options {
  size_t struct_size;
  uint32_t run;
  bool copy_bytes;
  uint32_t format;
} quern_input_options;
QUERN_API quern_status quern_input_create(quern_job* job, quern_port port, const quern_input_options* options,
                                          quern_input** input, quern_error* error);
QUERN_API void quern_input_destroy(quern_input* input);
QUERN_API quern_status quern_input_append(quern_input* input, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_input_append_arrow(quern_input* input, struct ArrowArray* batch,
                                                const quern_arrow_rows* rows, quern_error* error);
QUERN_API quern_status quern_input_finish(quern_input* input, quern_error* error);
QUERN_API uint64_t quern_input_num_groups(const quern_input* input);
typedef struct quern_pipeline_step {
  quern_job* job;
  const uint32_t* keys;
  size_t num_keys;
  const uint32_t* payload;
  size_t num_payload;
  void* context;
} quern_pipeline_step;
typedef struct quern_pipeline_options {
  size_t struct_size;
  const char* columns;
  const quern_pipeline_step* steps;
  size_t num_steps;
  const uint32_t* keys;
  size_t num_keys;
  const uint32_t* payload;
  size_t num_payload;
  bool copy_bytes;
  uint64_t piece_rows;
  bool (*on_rows)(void* context, const quern_batch* rows);
  void* context;
} quern_pipeline_options;
QUERN_API quern_status quern_pipeline_input_create(quern_job* job, quern_port port,
                                                   const quern_pipeline_options* options, quern_input** input,
                                                   quern_error* error);
typedef enum quern_work_state {
  QUERN_WORK_MORE = 0,
  QUERN_WORK_BUSY = 1,
  QUERN_WORK_DONE = 2
} quern_work_state;
QUERN_API quern_status quern_job_work(quern_job* job, quern_work_state* state, quern_error* error);
QUERN_API quern_status quern_job_finalise(quern_job* job, quern_error* error);
typedef struct quern_output_options {
  size_t struct_size;
  uint64_t batch_rows;
  uint32_t partition, num_partitions;
  void* context;
} quern_output_options;
QUERN_API quern_status quern_output_create(quern_job* job, quern_port port, const quern_output_options* options,
                                           quern_output** output, quern_error* error);
QUERN_API void quern_output_destroy(quern_output* output);
QUERN_API quern_status quern_output_push(quern_output* output, const quern_batch* batch, quern_error* error);
QUERN_API quern_status quern_output_push_arrow(quern_output* output, struct ArrowArray* batch,
                                               const quern_arrow_rows* rows, quern_error* error);
QUERN_API quern_status quern_output_next(quern_output* output, const quern_result** result, quern_error* error);
QUERN_API quern_status quern_output_next_arrow(quern_output* output, struct ArrowArray* rows,
                                               const quern_result** result, quern_error* error);
QUERN_API quern_status quern_job_filter(const quern_job* job, const quern_batch* batch, uint32_t* rows, uint8_t* bitmap,
                                        uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_job_filter_arrow(const quern_job* job, const struct ArrowArray* batch,
                                              const quern_arrow_rows* selected, uint32_t* rows, uint8_t* bitmap,
                                              uint64_t* num_rows, quern_error* error);
typedef struct quern_key_summary {
  size_t struct_size;
  uint64_t num_rows;
  uint64_t num_null_rows;
  uint64_t num_keys;
  bool num_keys_is_exact;
  bool has_null;
  bool has_range;
  int64_t min, max;
  int64_t min_high, max_high;
} quern_key_summary;
QUERN_API quern_status quern_job_summarise_key(const quern_job* job, uint32_t key, quern_key_summary* summary,
                                               quern_error* error);
QUERN_API quern_status quern_job_may_match(const quern_job* job, const quern_batch* batch, uint32_t* rows,
                                           uint8_t* bitmap, uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_job_may_match_arrow(const quern_job* job, const struct ArrowArray* batch,
                                                 const quern_arrow_rows* selected, uint32_t* rows, uint8_t* bitmap,
                                                 uint64_t* num_rows, quern_error* error);
QUERN_API quern_status quern_job_partition(const quern_job* job, quern_port port, const quern_batch* batch,
                                           uint32_t num_partitions, uint32_t* partitions, quern_error* error);
QUERN_API quern_status quern_job_partition_arrow(const quern_job* job, quern_port port, const struct ArrowArray* batch,
                                                 const quern_arrow_rows* selected, uint32_t num_partitions,
                                                 uint32_t* partitions, quern_error* error);
typedef struct quern_job_stats {
  size_t struct_size;
  const char* layout;
  uint64_t input_rows;
  uint64_t num_rows;
  uint64_t used_bytes;
  uint64_t peak_bytes;
  uint64_t directory_bytes;
  uint64_t tuple_bytes;
  uint64_t table_bytes;
  uint64_t num_growths;
  uint64_t dropped_rows;
  uint64_t collided_rows;
  uint64_t entry_bytes;
  uint32_t key_bits;
  uint32_t prefetch_distance;
} quern_job_stats;
QUERN_API void quern_job_get_stats(const quern_job* job, quern_job_stats* stats);
QUERN_API void quern_job_get_counters(const quern_job* job, quern_counters* counters);
typedef bool (*quern_on_result)(void* context, const quern_result* result);
typedef struct quern_run_input {
  quern_port port;
  const quern_batch* batches;
  size_t num_batches;
} quern_run_input;
typedef struct quern_run_options {
  size_t struct_size;
  uint32_t threads;
  uint64_t batch_rows;
  quern_on_result on_result;
  void* context;
} quern_run_options;
QUERN_API quern_status quern_job_run(quern_job* job, const quern_run_input* inputs, size_t num_inputs,
                                     const quern_run_options* options, uint64_t* num_rows, quern_error* error);
typedef struct quern_aggregate_function {
  size_t struct_size;
  uint32_t state_bytes;
  const char* result;
  void* user;
  int (*update)(void* user, void* host, const quern_column* columns, uint32_t num_columns, const uint32_t* rows,
                void* const* states, uint64_t n);
  int (*merge)(void* user, void* host, void* const* into, const void* const* from, uint64_t n);
  int (*finalise)(void* user, void* host, const void* const* states, uint64_t n, void* values, uint8_t* validity);
} quern_aggregate_function;
QUERN_API quern_status quern_register_aggregate(const char* name, const quern_aggregate_function* function,
                                                quern_error* error);
QUERN_API quern_status quern_collation_version(const char* name, const char** version, quern_error* error);
QUERN_API uint32_t quern_format_number(void);
typedef enum quern_compile_thread {
  QUERN_COMPILE_THREAD_OWN = 0,
  QUERN_COMPILE_THREAD_HOST = 1
} quern_compile_thread;
QUERN_API quern_status quern_compile_thread_mode(quern_compile_thread thread, quern_error* error);
QUERN_API quern_status quern_compile_work(uint32_t timeout_ms, bool* worked, quern_error* error);
typedef enum quern_log_level {
  QUERN_LOG_WARNING = 0,
  QUERN_LOG_INFO = 1
} quern_log_level;
typedef void (*quern_on_log)(void* context, quern_log_level level, const char* line);
QUERN_API void quern_set_log_callback(quern_on_log on_log, void* context);
QUERN_API quern_status quern_set_profile(const char* path, quern_error* error);
QUERN_API quern_status quern_set_profile_text(const char* text, size_t num_bytes, quern_error* error);
typedef struct quern_profile quern_profile;
typedef enum quern_tune_effort {
  QUERN_TUNE_MEASURE = 0,
  QUERN_TUNE_PATIENT = 1
} quern_tune_effort;
typedef bool (*quern_on_tune)(void* context, double share, const char* doing);
typedef struct quern_tune_options {
  size_t struct_size;
  const char* const* specs;
  size_t num_specs;
  quern_tune_effort effort;
  double budget_seconds;
  uint32_t threads;
  uint64_t max_bytes;
  const char* start;
  quern_on_tune on_progress;
  void* context;
} quern_tune_options;
QUERN_API quern_status quern_tune(const quern_tune_options* options, quern_profile** profile, quern_error* error);
QUERN_API void quern_profile_destroy(quern_profile* profile);
QUERN_API const char* quern_profile_text(const quern_profile* profile);
QUERN_API void quern_set_kept_memory(uint64_t bytes);
QUERN_API quern_status quern_job_release_memory(quern_job* job, uint64_t bytes, uint64_t* released, quern_error* error);
QUERN_API void quern_cache_set_limit(uint64_t code_bytes);
QUERN_API void quern_cache_clear(void);
typedef struct quern_cache_stats {
  size_t struct_size;
  uint64_t kernels;
  uint64_t code_bytes, limit_bytes;
  uint64_t hits, misses, evictions;
  uint64_t live_kernels, live_bytes;
  uint64_t reserved_bytes;
  uint64_t mappings;
} quern_cache_stats;
QUERN_API void quern_cache_get_stats(quern_cache_stats* stats);
#endif
