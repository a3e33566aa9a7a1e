// SPDX-License-Identifier: Apache-2.0
// Arrow structs through the C ABI: two columns of any formats as key and payload of a join, an aggregation, a sort, a
// filter or a merge. Whatever the structs say, nothing is read beyond a buffer, each array is released exactly once,
// and what is refused is refused in one line.
//
// The first byte chooses the operator, the next four the two columns ({2, 0, 5, 0}: i32 and i64); then come the
// batches, whose bytes fuzz_arrow.cc reads.
#include "runtime/rows/arrow_import.h"

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/fuzz/targets/fuzz_arrow.h"
#include "test/fuzz/targets/host_calls.h"

namespace quern::fuzz {
namespace {

constexpr int32_t kFirst[] = {0}, kSecond[] = {1};
constexpr uint32_t kMostBatches = 3;

// One input: the columns, their schema and their batches, which live as long as the handles that read them.
class Case {
 public:
  explicit Case(Input* given) : in(given) {
    columns_ = {ReadColumn(in), ReadColumn(in)};
    schema_ = std::make_unique<FuzzSchema>(columns_);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const absl::StatusOr<ColumnType> type = TypeOfArrow(schema_->field(i));
      types_.push_back(type.ok() ? PrintType(*type) + (in->Chance(128) ? ":nullable" : "") : "i64");
    }
    if (in->Chance(32)) schema_->Break(in);
  }
  // After all handles are gone.
  void RequireReleased() const {
    for (const auto& batch : moved_) Require(batch->times_released() == 1, "an array is released once");
  }

  const std::string& key() const { return types_[0]; }
  const std::string& payload() const { return types_[1]; }
  const ArrowSchema* schema() const { return schema_->get(); }

  // Calls a function that takes over an array, with a new one. Returns whether it was accepted.
  template <class Call>
  bool Move(Call&& call) {
    moved_.push_back(NewBatch());
    ArrowArray array = *moved_.back()->get();
    quern_error error;
    const bool accepted = Succeeded(call(&array, &error), error);
    Require(array.release == nullptr, "an array is moved in, also on error");
    return accepted;
  }
  // The same for a function that only reads.
  template <class Call>
  bool Lend(Call&& call) {
    const std::unique_ptr<FuzzArray> batch = NewBatch();
    quern_error error;
    const bool accepted = Succeeded(call(batch->get(), &error), error);
    Require(batch->times_released() == 0, "an array that is only read is not released");
    return accepted;
  }

  Input* const in;

 private:
  std::unique_ptr<FuzzArray> NewBatch() {
    auto batch = std::make_unique<FuzzArray>(columns_, in);
    if (in->Chance(48)) batch->Break(in);
    return batch;
  }

  std::vector<ArrowColumn> columns_;
  std::vector<std::string> types_;
  std::unique_ptr<FuzzSchema> schema_;
  std::vector<std::unique_ptr<FuzzArray>> moved_;
};

bool Bind(const Case& test, const JobHandle& job, quern_port port) {
  quern_error error;
  return Succeeded(quern_job_bind_arrow(job.get(), port, test.schema(), kFirst, kSecond, &error), error);
}

// Up to kMostBatches - 1 batches by one input, and the work. Returns whether all was accepted.
bool AppendAndFinalise(Case* test, const JobHandle& job, quern_port port) {
  const InputHandle rows = NewInput(job, port);
  for (uint32_t i = test->in->Below(kMostBatches); i > 0; --i) {
    if (!test->Move([&](auto* array, auto* e) { return quern_input_append_arrow(rows.get(), array, nullptr, e); }))
      return false;
  }
  quern_error error;
  return Succeeded(quern_input_finish(rows.get(), &error), error) &&
         Succeeded(quern_job_finalise(job.get(), &error), error);
}

// The schema of a port's results, which lives as long as this.
class ResultSchema {
 public:
  ResultSchema(const JobHandle& job, quern_port port) {
    quern_error error;
    RequireSuccess(quern_job_result_schema(job.get(), port, &schema_, &error), error, "a binding has a result");
  }
  ~ResultSchema() { schema_.release(&schema_); }
  ResultSchema(const ResultSchema&) = delete;
  ResultSchema& operator=(const ResultSchema&) = delete;

  // Reads the next array of an output. Returns its result; null for a failure.
  const quern_result* ReadNext(const OutputHandle& output) const {
    ArrowArray rows = {};
    quern_error error;
    const quern_result* result = nullptr;
    if (!Succeeded(quern_output_next_arrow(output.get(), &rows, &result, &error), error)) return nullptr;
    Require(result->num_rows == static_cast<uint64_t>(rows.length), "a result has the rows of its array");
    ReadAndRelease(&rows, schema_);
    return result;
  }

 private:
  ArrowSchema schema_ = {};
};

// Reads all results of an output, or of the batch that was pushed. A failure ends it.
void ReadResults(const JobHandle& job, quern_port port, const OutputHandle& output) {
  const ResultSchema schema(job, port);
  const quern_result* result = nullptr;
  do result = schema.ReadNext(output);
  while (result != nullptr && result->state == QUERN_RESULT_MORE);
}

void Join(Case* test) {
  const std::string kind = test->in->Chance(128) ? "full" : "inner";
  const KernelHandle kernel = CompileGeneric("join." + kind + " keys=" + test->key() + " build=" + test->payload() +
                                             " probe=" + test->payload());
  if (kernel == nullptr) return;
  const JobHandle join = NewJob(kernel);
  if (!Bind(*test, join, QUERN_PORT_BUILD) || !Bind(*test, join, QUERN_PORT_PROBE)) return;
  if (!AppendAndFinalise(test, join, QUERN_PORT_BUILD)) return;
  const OutputHandle output = NewOutput(join, QUERN_PORT_PROBE, 7);
  if (test->Move([&](auto* array, auto* e) { return quern_output_push_arrow(output.get(), array, nullptr, e); }))
    ReadResults(join, QUERN_PORT_PROBE, output);
  if (kind == "full") ReadResults(join, QUERN_PORT_UNMATCHED, NewOutput(join, QUERN_PORT_UNMATCHED, 7));
}

void Aggregate(Case* test) {
  constexpr const char* kFunctions[] = {"min", "count_distinct", "first", "any", "sum", "string_agg"};
  const std::string function = kFunctions[test->in->Below(std::size(kFunctions))];
  const KernelHandle kernel = CompileGeneric("aggregate keys=" + test->key() + " aggs=" + function + "(" +
                                             test->payload() + (function == "string_agg" ? ",x'2c')" : ")"));
  if (kernel == nullptr) return;
  const JobHandle aggregate = NewJob(kernel);
  if (!Bind(*test, aggregate, QUERN_PORT_ROWS) || !AppendAndFinalise(test, aggregate, QUERN_PORT_ROWS)) return;
  const quern_port port = test->in->Chance(64) ? QUERN_PORT_STATES : QUERN_PORT_ROWS;
  ReadResults(aggregate, port, NewOutput(aggregate, port, 7));
}

void Sort(Case* test) {
  const std::string order = test->in->Chance(128) ? ":desc:out" : ":nulls_first:out";
  const std::string limit = test->in->Chance(64) ? " limit=3 stable" : "";
  const KernelHandle kernel =
      CompileGeneric("sort keys=" + test->key() + order + " payload=" + test->payload() + limit);
  if (kernel == nullptr) return;
  const JobHandle sort = NewJob(kernel);
  if (!Bind(*test, sort, QUERN_PORT_ROWS) || !AppendAndFinalise(test, sort, QUERN_PORT_ROWS)) return;
  ReadResults(sort, QUERN_PORT_ROWS, NewOutput(sort, QUERN_PORT_ROWS, 7));
}

// Drives a merge until it is done or refuses; every run gets a batch and then its end.
void Merge(Case* test) {
  const KernelHandle kernel = CompileGeneric("sort keys=" + test->key() + ":out payload=" + test->payload());
  if (kernel == nullptr) return;
  const JobHandle merge = NewJob(kernel, 2);
  if (!Bind(*test, merge, QUERN_PORT_ROWS)) return;
  const InputHandle runs[] = {NewInput(merge, QUERN_PORT_ROWS, 0), NewInput(merge, QUERN_PORT_ROWS, 1)};
  uint32_t num_inputs[] = {0, 0};
  const OutputHandle output = NewOutput(merge, QUERN_PORT_ROWS, 7);
  const ResultSchema schema(merge, QUERN_PORT_ROWS);
  for (;;) {
    const quern_result* const result = schema.ReadNext(output);
    if (result == nullptr || result->state == QUERN_RESULT_DONE) return;
    if (result->state == QUERN_RESULT_MORE) continue;
    const uint32_t number = result->run;
    quern_input* const run = runs[number].get();
    quern_error error;
    const bool accepted =
        num_inputs[number]++ < 2
            ? test->Move([&](auto* array, auto* e) { return quern_input_append_arrow(run, array, nullptr, e); })
            : Succeeded(quern_input_finish(run, &error), error);
    if (!accepted) return;
  }
}

void Filter(Case* test) {
  const KernelHandle kernel =
      CompileGeneric("filter " + test->key() + " is not null or " + test->payload() + " >= " + test->payload());
  if (kernel == nullptr) return;
  const JobHandle filter = NewJob(kernel);
  quern_error error;
  const int32_t columns[] = {0, 1, 1};
  if (!Succeeded(quern_job_bind_arrow(filter.get(), QUERN_PORT_ROWS, test->schema(), columns, nullptr, &error), error))
    return;
  for (uint32_t i = 0; i < kMostBatches; ++i) {
    uint64_t num_rows = 0;
    uint8_t bitmap[8];
    test->Lend([&](const auto* array, auto* e) {
      return quern_job_filter_arrow(filter.get(), array, nullptr, nullptr, bitmap, &num_rows, e);
    });
  }
}

}  // namespace
}  // namespace quern::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quern::fuzz::Input in(data, size);
  constexpr void (*kOperators[])(quern::fuzz::Case*) = {quern::fuzz::Join, quern::fuzz::Aggregate, quern::fuzz::Sort,
                                                        quern::fuzz::Filter, quern::fuzz::Merge};
  const uint32_t number = in.Below(std::size(kOperators));
  quern::fuzz::Case test(&in);
  kOperators[number](&test);
  test.RequireReleased();
  return 0;
}
