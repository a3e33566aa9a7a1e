// SPDX-License-Identifier: Apache-2.0
// A job stops at its first call that fails and destroys its handles, as a host would. Its sum weighs each row that came
// out by its values and, where rows have an order, by its position:
//
//     rows (1, "a"), (2, "b")      sum = hash(1, "a") + hash(2, "b"), for a sort 1 * hash(1, "a") + 2 * hash(2, "b")
//
// so that a row which is lost, doubled or wrong changes it.
#include "test/refusals/refused_jobs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/host_tables.h"

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

// ---- results ----

uint64_t Mixed(uint64_t hash, const void* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001b3u;
  return hash ^ (hash >> 29);
}

uint64_t HashOfRow(const quern_result& result, std::string_view kinds, uint64_t row) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < result.num_columns; ++i) {
    const quern_column& column = result.columns[i];
    hash = Mixed(hash, &kinds[i], 1);
    if (column.validity != nullptr && !BitAt(column.validity, row)) continue;
    if (kinds[i] == 't') {
      const auto* offsets = static_cast<const int32_t*>(column.offsets);
      hash = Mixed(hash, static_cast<const char*>(column.values) + offsets[row],
                   static_cast<size_t>(offsets[row + 1] - offsets[row]));
    } else {
      hash = Mixed(hash, static_cast<const char*>(column.values) + row * 8, 8);
    }
  }
  return hash;
}

// The sum of a job's rows. *Threads*: any.
struct Sum {
  const char* kinds;
  bool is_ordered;
  std::atomic<uint64_t> sum{0}, num_rows{0};

  void Add(const quern_result& result) {
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      const uint64_t position = ++num_rows;
      sum += HashOfRow(result, kinds, row) * (is_ordered ? position : 1);
    }
  }
};

bool TakeResult(void* sum, const quern_result* result) {
  static_cast<Sum*>(sum)->Add(*result);
  return true;
}

void AddArray(ArrowArray* array, Sum* sum) {
  if (array->release == nullptr) return;
  sum->num_rows += static_cast<uint64_t>(array->length);
  sum->sum += static_cast<uint64_t>(array->length) * 31;
  array->release(array);
}

// ---- operators ----

// Destroys a handle at the end of a scope.
template <class Handle>
struct Owned {
  explicit Owned(void (*destroy_handle)(Handle*)) : destroy(destroy_handle) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy(handle); }

  void (*destroy)(Handle*);
  Handle* handle = nullptr;
};

#define RETURN_IF_FAILED(call)                                                                \
  do {                                                                                        \
    if (const quern_status call_status = (call); call_status != QUERN_OK) return call_status; \
  } while (false)

quern_status JoinByCalls(quern_join* join, Sum* sum, quern_error* error) {
  Owned<quern_appender> appender(&quern_appender_destroy);
  RETURN_IF_FAILED(quern_appender_create(join, &appender.handle, error));
  for (const quern_batch& batch : build_input.batches)
    RETURN_IF_FAILED(quern_appender_append(appender.handle, &batch, true, error));
  RETURN_IF_FAILED(quern_appender_finish(appender.handle, error));
  RETURN_IF_FAILED(quern_join_finalise(join, error));
  Owned<quern_prober> prober(&quern_prober_destroy);
  RETURN_IF_FAILED(quern_prober_create(join, 0, &prober.handle, error));
  quern_result result;
  for (size_t i = 0; i <= probe_input.batches.size(); ++i) {
    if (i == probe_input.batches.size()) RETURN_IF_FAILED(quern_prober_input_unmatched(prober.handle, error));
    else RETURN_IF_FAILED(quern_prober_input(prober.handle, &probe_input.batches[i], error));
    for (bool more = true; more;) {
      RETURN_IF_FAILED(quern_prober_next(prober.handle, &result, &more, error));
      sum->Add(result);
    }
  }
  return QUERN_OK;
}

quern_status JoinByArrow(quern_join* join, Sum* sum, quern_error* error) {
  const int32_t *keys = children.data(), *payload = keys + build_input.keys[0].size();
  RETURN_IF_FAILED(
      quern_join_bind_arrow(join, &build_schema->schema, keys, payload, &probe_schema->schema, keys, payload, error));
  ArrowSchema schema = {};
  RETURN_IF_FAILED(quern_join_result_schema(join, &schema, error));
  schema.release(&schema);
  for (const TestArrayPtr& array : build_arrays) RETURN_IF_FAILED(quern_join_append_arrow(join, &array->array, error));
  RETURN_IF_FAILED(quern_join_finalise(join, error));
  Owned<quern_prober> prober(&quern_prober_destroy);
  RETURN_IF_FAILED(quern_prober_create(join, 0, &prober.handle, error));
  for (const TestArrayPtr& array : probe_arrays) {
    RETURN_IF_FAILED(quern_prober_input_arrow(prober.handle, &array->array, error));
    for (bool more = true; more;) {
      ArrowArray result = {};
      RETURN_IF_FAILED(quern_prober_next_arrow(prober.handle, &result, &more, error));
      AddArray(&result, sum);
    }
  }
  return QUERN_OK;
}

quern_status RunJoin(quern_kernel* kernel, const Job& job, Sum* sum, quern_error* error) {
  Owned<quern_join> join(&quern_join_destroy);
  RETURN_IF_FAILED(quern_join_create(kernel, 0, &join.handle, error));
  if (job.way == Way::kCalls) return JoinByCalls(join.handle, sum, error);
  if (job.way == Way::kArrow) return JoinByArrow(join.handle, sum, error);
  return quern_join_run(join.handle, build_input.batches.data(), build_input.batches.size(), probe_input.batches.data(),
                        probe_input.batches.size(), job.threads, 0, TakeResult, sum, nullptr, error);
}

quern_status ReadGroups(quern_aggregate* aggregate, Sum* sum, bool as_arrow, quern_error* error) {
  Owned<quern_groups> groups(&quern_groups_destroy);
  RETURN_IF_FAILED(quern_groups_create(aggregate, QUERN_GROUP_RESULTS, 0, &groups.handle, error));
  quern_result result;
  for (bool more = true; more;) {
    if (as_arrow) {
      ArrowArray array = {};
      RETURN_IF_FAILED(quern_groups_next_arrow(groups.handle, &array, &more, error));
      AddArray(&array, sum);
    } else {
      RETURN_IF_FAILED(quern_groups_next(groups.handle, &result, &more, error));
      sum->Add(result);
    }
  }
  return QUERN_OK;
}

quern_status RunAggregate(quern_kernel* kernel, const Job& job, Sum* sum, quern_error* error) {
  Owned<quern_aggregate> aggregate(&quern_aggregate_destroy);
  RETURN_IF_FAILED(quern_aggregate_create(kernel, 0, &aggregate.handle, error));
  if (job.way == Way::kRun) {
    return quern_aggregate_run(aggregate.handle, build_input.batches.data(), build_input.batches.size(), job.threads, 0,
                               TakeResult, sum, nullptr, error);
  }
  if (job.way == Way::kArrow) {
    const int32_t *keys = children.data(), *payload = keys + build_input.keys[0].size();
    RETURN_IF_FAILED(quern_aggregate_bind_arrow(aggregate.handle, &build_schema->schema, keys, payload, error));
    for (const TestArrayPtr& array : build_arrays)
      RETURN_IF_FAILED(quern_aggregate_append_arrow(aggregate.handle, &array->array, error));
  } else {
    for (const quern_batch& batch : build_input.batches)
      RETURN_IF_FAILED(quern_aggregate_append(aggregate.handle, &batch, error));
  }
  RETURN_IF_FAILED(quern_aggregate_finalise(aggregate.handle, error));
  return ReadGroups(aggregate.handle, sum, job.way == Way::kArrow, error);
}

quern_status RunSort(quern_kernel* kernel, const Job& job, Sum* sum, quern_error* error) {
  Owned<quern_sort> sort(&quern_sort_destroy);
  RETURN_IF_FAILED(quern_sort_create(kernel, 0, &sort.handle, error));
  if (job.way == Way::kRun) {
    return quern_sort_run(sort.handle, build_input.batches.data(), build_input.batches.size(), job.threads, 0,
                          TakeResult, sum, nullptr, error);
  }
  for (const quern_batch& batch : build_input.batches)
    RETURN_IF_FAILED(quern_sort_append(sort.handle, &batch, true, error));
  RETURN_IF_FAILED(quern_sort_finalise(sort.handle, error));
  Owned<quern_sorted> sorted(&quern_sorted_destroy);
  RETURN_IF_FAILED(quern_sorted_create(sort.handle, 0, &sorted.handle, error));
  quern_result result;
  for (bool more = true; more;) {
    RETURN_IF_FAILED(quern_sorted_next(sorted.handle, &result, nullptr, &more, error));
    sum->Add(result);
  }
  return QUERN_OK;
}

// Each batch is a run: its key ascends.
quern_status RunMerge(quern_kernel* kernel, Sum* sum, quern_error* error) {
  Owned<quern_merge> merge(&quern_merge_destroy);
  const auto num_runs = static_cast<uint32_t>(build_input.batches.size());
  RETURN_IF_FAILED(quern_merge_create(kernel, 0, num_runs, 0, &merge.handle, error));
  for (uint32_t run = 0; run < num_runs; ++run) {
    RETURN_IF_FAILED(quern_merge_input(merge.handle, run, &build_input.batches[run], error));
  }
  quern_result result;
  for (quern_merge_state state = QUERN_MERGE_ROWS; state != QUERN_MERGE_DONE;) {
    uint32_t run = 0;
    RETURN_IF_FAILED(quern_merge_next(merge.handle, &result, &state, &run, error));
    sum->Add(result);
    if (state == QUERN_MERGE_NEEDS_INPUT) RETURN_IF_FAILED(quern_merge_end(merge.handle, run, error));
  }
  return QUERN_OK;
}

quern_status RunFilter(quern_kernel* kernel, const Job& job, Sum* sum, quern_error* error) {
  Owned<quern_filter> filter(&quern_filter_destroy);
  RETURN_IF_FAILED(quern_filter_create(kernel, &filter.handle, error));
  if (job.way == Way::kArrow)
    RETURN_IF_FAILED(quern_filter_bind_arrow(filter.handle, &build_schema->schema, children.data(), error));
  for (size_t i = 0; i < build_input.batches.size(); ++i) {
    const quern_batch& batch = build_input.batches[i];
    uint64_t num_rows = 0, num_bits = 0;
    if (job.way == Way::kArrow) {
      RETURN_IF_FAILED(
          quern_filter_select_arrow(filter.handle, &build_arrays[i]->array, selected.data(), &num_rows, error));
    } else {
      RETURN_IF_FAILED(quern_filter_select(filter.handle, &batch, selected.data(), &num_rows, error));
      RETURN_IF_FAILED(quern_filter_bitmap(filter.handle, &batch, bits.data(), &num_bits, error));
    }
    for (uint64_t row = 0; row < num_rows; ++row) sum->sum += Mixed(i, &selected[row], sizeof(selected[row]));
    sum->sum += num_bits;
  }
  return QUERN_OK;
}

quern_status RunOperator(quern_kernel* kernel, const Job& job, Sum* sum, quern_error* error) {
  const std::string_view spec = job.spec;
  if (spec.starts_with("join")) return RunJoin(kernel, job, sum, error);
  if (spec.starts_with("aggregate")) return RunAggregate(kernel, job, sum, error);
  if (spec.starts_with("filter")) return RunFilter(kernel, job, sum, error);
  return job.way == Way::kArrow ? RunMerge(kernel, sum, error) : RunSort(kernel, job, sum, error);
}

}  // namespace

std::string NameOf(const Job& job) {
  static constexpr const char* kWays[] = {"calls", "run", "arrow"};
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
  Owned<quern_kernel> kernel(&quern_kernel_destroy);
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

bool ArraysAreReleased() {
  for (const auto* arrays : {&build_arrays, &probe_arrays})
    for (const TestArrayPtr& array : *arrays)
      if (array->times_released > 1) return false;
  return true;
}

}  // namespace quern_test
