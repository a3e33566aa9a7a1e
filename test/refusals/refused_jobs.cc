// SPDX-License-Identifier: Apache-2.0
// A job stops at its first call that fails and destroys its handles, as a host would.
#include "test/refusals/refused_jobs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/host_tables.h"
#include "test/refusals/row_sum.h"

namespace quern_test {
namespace {

// ---- tables ----

// One batch: the same columns for hosts' vectors and as an Arrow array.
struct Columns {
  std::vector<int64_t> numbers;
  std::vector<double> doubles;
  std::vector<std::string> texts, words;
  std::vector<int32_t> indices;
  StringVector<int32_t> text_bytes{{}}, word_bytes{{}};
  quern_column dictionary = {};

  quern_column ColumnOf(char kind) const {
    quern_column column = {};
    if (kind == 'n') column.values = numbers.data();
    if (kind == 'f') column.values = doubles.data();
    if (kind == 't') column = text_bytes.column();
    if (kind == 'd') {
      column.values = indices.data();
      column.dictionary = &dictionary;
    }
    return column;
  }
  TestArrayPtr ArrayOf(char kind) const {
    if (kind == 'n') return FixedArray(numbers);
    if (kind == 'f') return FixedArray(doubles);
    if (kind == 't') return Utf8Array(texts);
    return DictionaryArray(indices, Utf8Array(words));
  }
};

std::deque<Columns> tables;
uint64_t rows_of_batch = 0;
constexpr size_t kMaxBatches = 8;

// The batches of one input of a job.
struct Input {
  std::vector<std::vector<quern_column>> keys, payload;
  std::vector<quern_batch> batches;

  void Make(std::string_view key_kinds, std::string_view payload_kinds) {
    keys.assign(tables.size(), {});
    payload.assign(tables.size(), {});
    batches.assign(tables.size(), {});
    for (size_t i = 0; i < tables.size(); ++i) {
      for (const char kind : key_kinds) keys[i].push_back(tables[i].ColumnOf(kind));
      for (const char kind : payload_kinds) payload[i].push_back(tables[i].ColumnOf(kind));
      batches[i] = {keys[i].data(), payload[i].data(), nullptr, rows_of_batch, i * rows_of_batch, 0};
    }
  }
};

Input build_input, probe_input;
std::vector<uint32_t> selected;
std::vector<uint8_t> bits;
std::vector<TestArrayPtr> build_arrays, probe_arrays;
std::unique_ptr<TestSchema> build_schema, probe_schema;
std::vector<int32_t> children;

// All columns of a side as the children of an Arrow array.
std::vector<TestArrayPtr> MakeArrays(std::string_view kinds) {
  std::vector<TestArrayPtr> arrays;
  for (const Columns& columns : tables) {
    TestArrayPtr whole = StructArray(static_cast<int64_t>(rows_of_batch));
    for (const char kind : kinds) whole->AddChild(columns.ArrayOf(kind));
    arrays.push_back(std::move(whole));
  }
  return arrays;
}

std::unique_ptr<TestSchema> MakeSchema(std::string_view kinds) {
  std::vector<TestField> fields;
  for (const char kind : kinds) {
    if (kind == 'n') fields.push_back({"number", "l"});
    if (kind == 'f') fields.push_back({"double", "g"});
    if (kind == 't') fields.push_back({"text", "u"});
    if (kind == 'd') fields.push_back({"word", "i", "u"});
  }
  return std::make_unique<TestSchema>(fields);
}

// ---- handles ----

// Destroys a handle at the end of a scope.
template <class Handle, auto kDestroy>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { kDestroy(handle); }

  Handle* handle = nullptr;
};
using KernelHandle = Owned<quern_kernel, quern_kernel_destroy>;
using JobHandle = Owned<quern_job, quern_job_destroy>;
using InputHandle = Owned<quern_input, quern_input_destroy>;
using OutputHandle = Owned<quern_output, quern_output_destroy>;

NumAppends num_appends;

// The memory of which jobs have told.
std::atomic<int64_t> reserved_bytes{0};

bool Reserve(void* /*host*/, uint64_t bytes) {
  reserved_bytes += static_cast<int64_t>(bytes);
  return true;
}

void Release(void* /*host*/, uint64_t bytes) { reserved_bytes -= static_cast<int64_t>(bytes); }

#define RETURN_IF_FAILED(call)                                                                \
  do {                                                                                        \
    if (const quern_status call_status = (call); call_status != QUERN_OK) return call_status; \
  } while (false)

// num_runs: of a merge.
quern_status MakeJob(quern_kernel* kernel, uint32_t num_runs, JobHandle* job, quern_error* error) {
  quern_job_options options = {};
  options.struct_size = sizeof(options);
  options.num_runs = num_runs;
  options.reserve = Reserve;
  options.release = Release;
  return quern_job_create(kernel, &options, &job->handle, error);
}

quern_status MakeInput(quern_job* job, quern_port port, uint32_t run, InputHandle* input, quern_error* error) {
  quern_input_options options = {};
  options.struct_size = sizeof(options);
  options.run = run;
  options.copy_bytes = true;
  return quern_input_create(job, port, &options, &input->handle, error);
}

// ---- the phases of a job ----

// Appends a batch, again where memory was refused: the host has made room, or gives up after a second refusal.
quern_status AppendBatch(quern_input* input, const quern_batch& batch, quern_error* error) {
  const quern_status status = quern_input_append(input, &batch, error);
  if (status != QUERN_RESOURCE_EXHAUSTED) return status;
  const quern_status again = quern_input_append(input, &batch, error);
  ++(again == QUERN_OK ? num_appends.repeated : num_appends.given_up);
  return again;
}

quern_status Append(quern_job* job, quern_port port, Way way, quern_error* error) {
  InputHandle input;
  RETURN_IF_FAILED(MakeInput(job, port, 0, &input, error));
  if (way == Way::kArrow) {
    for (const TestArrayPtr& array : build_arrays)
      RETURN_IF_FAILED(quern_input_append_arrow(input.handle, &array->array, nullptr, error));
  } else {
    for (const quern_batch& batch : build_input.batches) RETURN_IF_FAILED(AppendBatch(input.handle, batch, error));
  }
  return quern_input_finish(input.handle, error);
}

quern_status Work(quern_job* job, Way way, quern_error* error) {
  if (way != Way::kPieces) return quern_job_finalise(job, error);
  for (quern_work_state state = QUERN_WORK_MORE; state != QUERN_WORK_DONE;)
    RETURN_IF_FAILED(quern_job_work(job, &state, error));
  return QUERN_OK;
}

// All results of an output, or of the batch that was pushed.
quern_status Read(quern_output* output, Way way, Sum* sum, quern_error* error) {
  const quern_result* result = nullptr;
  do {
    if (way == Way::kArrow) {
      ArrowArray array = {};
      RETURN_IF_FAILED(quern_output_next_arrow(output, &array, &result, error));
      AddArray(&array, sum);
    } else {
      RETURN_IF_FAILED(quern_output_next(output, &result, error));
      sum->Add(*result);
    }
  } while (result->state == QUERN_RESULT_MORE);
  return QUERN_OK;
}

quern_status ReadPort(quern_job* job, quern_port port, Way way, Sum* sum, quern_error* error) {
  OutputHandle output;
  RETURN_IF_FAILED(quern_output_create(job, port, nullptr, &output.handle, error));
  return Read(output.handle, way, sum, error);
}

// A job that is cancelled in the midst of its work: later calls say so.
quern_status Cancel(quern_kernel* kernel, quern_port port, quern_error* error) {
  JobHandle job;
  RETURN_IF_FAILED(MakeJob(kernel, 0, &job, error));
  RETURN_IF_FAILED(Append(job.handle, port, Way::kPieces, error));
  quern_work_state state = QUERN_WORK_MORE;
  RETURN_IF_FAILED(quern_job_work(job.handle, &state, error));
  quern_job_cancel(job.handle);
  if (state == QUERN_WORK_DONE) return QUERN_OK;
  const quern_status status = quern_job_work(job.handle, &state, error);
  if (status == QUERN_OK) return QUERN_INTERNAL;
  return status == QUERN_CANCELLED ? QUERN_OK : status;
}

// ---- operators ----

quern_status RunWhole(quern_job* job, quern_port port, uint32_t threads, Sum* sum, quern_error* error) {
  const quern_run_input inputs[] = {{port, build_input.batches.data(), build_input.batches.size()},
                                    {QUERN_PORT_PROBE, probe_input.batches.data(), probe_input.batches.size()}};
  quern_run_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  options.on_result = TakeResult;
  options.context = sum;
  return quern_job_run(job, inputs, port == QUERN_PORT_BUILD ? 2 : 1, &options, nullptr, error);
}

quern_status BindArrow(quern_job* job, quern_port port, const TestSchema& schema, quern_error* error) {
  const int32_t *keys = children.data(), *payload = keys + build_input.keys[0].size();
  return quern_job_bind_arrow(job, port, &schema.schema, keys, payload, error);
}

quern_status RunJoin(quern_job* join, const Job& job, Sum* sum, quern_error* error) {
  if (job.way == Way::kArrow) {
    RETURN_IF_FAILED(BindArrow(join, QUERN_PORT_BUILD, *build_schema, error));
    RETURN_IF_FAILED(BindArrow(join, QUERN_PORT_PROBE, *probe_schema, error));
    ArrowSchema schema = {};
    RETURN_IF_FAILED(quern_job_result_schema(join, QUERN_PORT_PROBE, &schema, error));
    schema.release(&schema);
  }
  RETURN_IF_FAILED(Append(join, QUERN_PORT_BUILD, job.way, error));
  const quern_status refused = Work(join, job.way, error);
  if (refused == QUERN_RESOURCE_EXHAUSTED) RETURN_IF_FAILED(Work(join, job.way, error));  // the host has made room
  else RETURN_IF_FAILED(refused);
  OutputHandle output;
  RETURN_IF_FAILED(quern_output_create(join, QUERN_PORT_PROBE, nullptr, &output.handle, error));
  for (size_t i = 0; i < probe_input.batches.size(); ++i) {
    if (job.way == Way::kArrow)
      RETURN_IF_FAILED(quern_output_push_arrow(output.handle, &probe_arrays[i]->array, nullptr, error));
    else RETURN_IF_FAILED(quern_output_push(output.handle, &probe_input.batches[i], error));
    RETURN_IF_FAILED(Read(output.handle, job.way, sum, error));
  }
  return ReadPort(join, QUERN_PORT_UNMATCHED, job.way, sum, error);
}

// Aggregations and sorts.
quern_status RunRows(quern_job* rows, const Job& job, Sum* sum, quern_error* error) {
  if (job.way == Way::kArrow) RETURN_IF_FAILED(BindArrow(rows, QUERN_PORT_ROWS, *build_schema, error));
  RETURN_IF_FAILED(Append(rows, QUERN_PORT_ROWS, job.way, error));
  RETURN_IF_FAILED(Work(rows, job.way, error));
  return ReadPort(rows, QUERN_PORT_ROWS, job.way, sum, error);
}

// The batches are both sides.
quern_status RunSet(quern_job* set, const Job& job, Sum* sum, quern_error* error) {
  for (const quern_port side : {QUERN_PORT_LEFT, QUERN_PORT_RIGHT}) {
    if (job.way == Way::kArrow) RETURN_IF_FAILED(BindArrow(set, side, *build_schema, error));
    RETURN_IF_FAILED(Append(set, side, job.way, error));
  }
  RETURN_IF_FAILED(Work(set, job.way, error));
  return ReadPort(set, QUERN_PORT_ROWS, job.way, sum, error);
}

// Each batch is a run: its key ascends.
quern_status RunMerge(quern_kernel* kernel, Sum* sum, quern_error* error) {
  JobHandle merge;
  InputHandle runs[kMaxBatches];
  const auto num_runs = static_cast<uint32_t>(build_input.batches.size());
  RETURN_IF_FAILED(MakeJob(kernel, num_runs, &merge, error));
  for (uint32_t run = 0; run < num_runs; ++run) {
    RETURN_IF_FAILED(MakeInput(merge.handle, QUERN_PORT_ROWS, run, &runs[run], error));
    RETURN_IF_FAILED(quern_input_append(runs[run].handle, &build_input.batches[run], error));
  }
  OutputHandle output;
  RETURN_IF_FAILED(quern_output_create(merge.handle, QUERN_PORT_ROWS, nullptr, &output.handle, error));
  const quern_result* result = nullptr;
  do {
    RETURN_IF_FAILED(quern_output_next(output.handle, &result, error));
    sum->Add(*result);
    if (result->state == QUERN_RESULT_NEEDS_INPUT)
      RETURN_IF_FAILED(quern_input_finish(runs[result->run].handle, error));
  } while (result->state != QUERN_RESULT_DONE);
  return QUERN_OK;
}

quern_status RunFilter(quern_job* filter, const Job& job, Sum* sum, quern_error* error) {
  if (job.way == Way::kArrow) RETURN_IF_FAILED(BindArrow(filter, QUERN_PORT_ROWS, *build_schema, error));
  for (size_t i = 0; i < build_input.batches.size(); ++i) {
    const quern_batch& batch = build_input.batches[i];
    uint64_t num_rows = 0, num_bits = 0;
    if (job.way == Way::kArrow) {
      RETURN_IF_FAILED(
          quern_job_filter_arrow(filter, &build_arrays[i]->array, nullptr, selected.data(), nullptr, &num_rows, error));
    } else {
      RETURN_IF_FAILED(quern_job_filter(filter, &batch, selected.data(), nullptr, &num_rows, error));
      RETURN_IF_FAILED(quern_job_filter(filter, &batch, nullptr, bits.data(), &num_bits, error));
    }
    for (uint64_t row = 0; row < num_rows; ++row) sum->sum += Mixed(i, &selected[row], sizeof(selected[row]));
    sum->sum += num_bits;
  }
  return QUERN_OK;
}

quern_status RunMap(quern_job* map, const Job& job, Sum* sum, quern_error* error) {
  if (job.way == Way::kArrow) RETURN_IF_FAILED(BindArrow(map, QUERN_PORT_ROWS, *build_schema, error));
  OutputHandle output;
  RETURN_IF_FAILED(quern_output_create(map, QUERN_PORT_ROWS, nullptr, &output.handle, error));
  for (size_t i = 0; i < build_input.batches.size(); ++i) {
    if (job.way == Way::kArrow)
      RETURN_IF_FAILED(quern_output_push_arrow(output.handle, &build_arrays[i]->array, nullptr, error));
    else RETURN_IF_FAILED(quern_output_push(output.handle, &build_input.batches[i], error));
    RETURN_IF_FAILED(Read(output.handle, job.way, sum, error));
  }
  return QUERN_OK;
}

quern_status RunOperator(quern_kernel* kernel, const Job& job, Sum* sum, quern_error* error) {
  const std::string_view spec = job.spec;
  if (spec.starts_with("sort") && job.way == Way::kArrow) return RunMerge(kernel, sum, error);
  const bool is_set = spec.starts_with("set");
  const quern_port port = spec.starts_with("join") ? QUERN_PORT_BUILD : is_set ? QUERN_PORT_LEFT : QUERN_PORT_ROWS;
  if (job.way == Way::kPieces) RETURN_IF_FAILED(Cancel(kernel, port, error));
  JobHandle made;
  RETURN_IF_FAILED(MakeJob(kernel, 0, &made, error));
  if (spec.starts_with("filter")) return RunFilter(made.handle, job, sum, error);
  if (spec.starts_with("map")) return RunMap(made.handle, job, sum, error);
  if (job.way == Way::kRun) return RunWhole(made.handle, port, job.threads, sum, error);
  if (is_set) return RunSet(made.handle, job, sum, error);
  return port == QUERN_PORT_BUILD ? RunJoin(made.handle, job, sum, error) : RunRows(made.handle, job, sum, error);
}

}  // namespace

std::string NameOf(const Job& job) {
  static constexpr const char* kWays[] = {"calls", "run", "arrow", "pieces"};
  static constexpr const char* kEngines[] = {"auto", "jit", "generic"};
  return std::string(job.name) + " " + kWays[static_cast<size_t>(job.way)] + " " + kEngines[job.engine] + " " +
         std::to_string(job.threads) + (job.params == nullptr ? "" : " " + std::string(job.params));
}

void MakeTables(uint64_t num_batches, uint64_t batch_rows) {
  tables.clear();
  rows_of_batch = batch_rows;
  selected.assign(batch_rows, 0);
  bits.assign(batch_rows / 8 + 1, 0);
  for (uint64_t b = 0; b < num_batches; ++b) {
    Columns& columns = tables.emplace_back();
    for (uint64_t i = 0; i < batch_rows; ++i) {
      const uint64_t at = b * batch_rows + i;
      columns.numbers.push_back(static_cast<int64_t>(b + 2 * i));
      columns.doubles.push_back(static_cast<double>(at * 7 % 1000) / 4);
      columns.texts.push_back("text " + std::to_string(at * 13 % (num_batches * batch_rows / 2)) +
                              (at % 3 == 0 ? " of more than twelve bytes, \u00e9" : ""));
      columns.indices.push_back(static_cast<int32_t>(at % 17));
    }
    for (int i = 0; i < 17; ++i) columns.words.push_back("word " + std::to_string(i));
    columns.text_bytes = StringVector<int32_t>(columns.texts);
    columns.word_bytes = StringVector<int32_t>(columns.words);
    columns.dictionary = columns.word_bytes.column();
  }
}

void FillKeptMemory() {
  KernelHandle kernel;
  JobHandle join;
  OutputHandle outputs[8];  // the scratch of four is kept
  quern_compile("join.inner keys=i64", QUERN_ENGINE_GENERIC, nullptr, &kernel.handle, nullptr);
  quern_job_create(kernel.handle, nullptr, &join.handle, nullptr);
  quern_job_finalise(join.handle, nullptr);
  for (OutputHandle& output : outputs)
    quern_output_create(join.handle, QUERN_PORT_PROBE, nullptr, &output.handle, nullptr);
}

void ReleaseKeptMemory() {
  KernelHandle kernel;
  JobHandle join;
  uint64_t released = 0;
  quern_compile("join.inner keys=i64", QUERN_ENGINE_GENERIC, nullptr, &kernel.handle, nullptr);
  quern_job_create(kernel.handle, nullptr, &join.handle, nullptr);
  quern_job_release_memory(join.handle, UINT64_MAX, &released, nullptr);
}

void PrepareJob(const Job& job) {
  build_input.Make(job.keys, job.payload);
  probe_input.Make(job.keys, job.probe);
  build_arrays.clear();
  probe_arrays.clear();
  if (job.way != Way::kArrow) return;
  const std::string build = std::string(job.keys) + job.payload, probe = std::string(job.keys) + job.probe;
  build_arrays = MakeArrays(build);
  probe_arrays = MakeArrays(probe);
  build_schema = MakeSchema(build);
  probe_schema = MakeSchema(probe);
  children.clear();
  for (size_t i = 0; i < std::max(build.size(), probe.size()); ++i) children.push_back(static_cast<int32_t>(i));
}

Outcome RunJob(const Job& job) {
  const bool is_ordered = std::string_view(job.spec).starts_with("sort");
  Outcome outcome;
  quern_error error = {};
  Sum sum{job.result, is_ordered};
  KernelHandle kernel;
  outcome.status = quern_compile(job.spec, job.engine, job.params, &kernel.handle, &error);
  if (outcome.status == QUERN_OK) {
    quern_kernel_text(kernel.handle, "plan");
    outcome.status = RunOperator(kernel.handle, job, &sum, &error);
    quern_counters counters = {};
    counters.struct_size = sizeof(counters);
    quern_kernel_get_counters(kernel.handle, &counters);
  }
  outcome.sum = sum.sum + sum.num_rows;
  std::strncpy(outcome.text, error.text, sizeof(outcome.text) - 1);
  return outcome;
}

NumAppends TakeNumAppends() { return std::exchange(num_appends, {}); }

bool AllIsReleased() {
  if (reserved_bytes != 0) return false;
  for (const auto* arrays : {&build_arrays, &probe_arrays})
    for (const TestArrayPtr& array : *arrays)
      if (array->times_released > 1) return false;
  return true;
}

}  // namespace quern_test
