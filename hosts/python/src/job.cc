// SPDX-License-Identifier: Apache-2.0
// Joins, aggregations, sorts and set operations take the same way. With 3 threads:
//
//     append    morsels of 65,536 rows    each thread by an input of its own
//     work      between inputs and outputs    all threads
//     read      each thread by an output of its own
//
// All threads wait for each other between these steps. Batches are added with the number of their rows in the source,
// and come out with their place in the result, so that neither depends on which thread had them.
#include "job.h"

#include <algorithm>
#include <tuple>

#include "errors.h"

namespace quern::python {
namespace {

// A batch on its way into the library.
struct Handover {
  ArrowArray array = {};
  quern_arrow_rows rows = {};

  Handover(const Taken& taken, uint64_t first_row) {
    ExportBatch(taken.batch, &array);
    rows = {sizeof(rows), taken.rows, taken.num_rows, first_row};
  }
};

Owned<quern_job> NewJob(const KernelHandle& kernel, const RunOptions& options) {
  quern_job_options given = {};
  given.struct_size = sizeof(given);
  given.memory_limit = options.memory_limit;
  quern_spill_options spill = {};
  spill.struct_size = sizeof(spill);
  spill.folder = options.spill_dir.empty() ? nullptr : options.spill_dir.c_str();
  spill.max_bytes = options.spill_bytes;
  if (options.spills) given.spill = &spill;
  quern_job* job = nullptr;
  quern_error error;
  Check(quern_job_create(kernel.get(), &given, &job, &error), error);
  return {job, quern_job_destroy};
}

uint64_t BatchRows(const RunOptions& options) {
  constexpr uint64_t kLimitOfRow = 4096, kFewestRows = 4096, kMostRows = 65536;
  return options.spills ? std::clamp(options.memory_limit / kLimitOfRow, kFewestRows, kMostRows) : 0;
}

Owned<quern_input> NewInput(const Job& job, quern_port port) {
  quern_input* input = nullptr;
  quern_error error;
  Check(quern_input_create(job.get(), port, nullptr, &input, &error), error);
  return {input, quern_input_destroy};
}

void Bind(quern_job* job, quern_port port, const Input& input) {
  ArrowSchema schema = {};
  ExportSchema(input.view->output_fields(), &schema);
  quern_error error;
  const quern_status status = quern_job_bind_arrow(job, port, &schema, input.keys.data(), input.payload.data(), &error);
  schema.release(&schema);
  Check(status, error);
}

}  // namespace

void OrderedBatches::Add(uint64_t place, Batch batch) {
  if (batch.num_rows == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  batches_.push_back({place, batches_.size(), std::move(batch)});
}

std::vector<Batch> OrderedBatches::Take() {
  const auto comes_before = [](const Made& a, const Made& b) {
    return std::tie(a.place, a.arrival) < std::tie(b.place, b.arrival);
  };
  std::sort(batches_.begin(), batches_.end(), comes_before);
  std::vector<Batch> batches;
  for (Made& made : batches_) batches.push_back(std::move(made.batch));
  return batches;
}

uint32_t ThreadsFor(const View& view, uint32_t threads) {
  if (!view.source()->is_collected()) return threads;
  if (view.source()->num_rows() <= static_cast<uint64_t>(kMorselRows)) return 0;
  return quern_advise_threads(nullptr, view.source()->num_rows(), threads, nullptr, 0, nullptr);
}

// ---- inputs ----

Appending::Appending(const Job* job, const View& view) : Appending(job, view, job->input_port()) {}

Appending::Appending(const Job* job, const View& view, quern_port port)
    : job_(*job), view_(view), port_(port), feed_(view.source()) {
  inputs_.push_back(NewInput(job_, port_));
}

// Returns false where the source has no further morsel.
bool Appending::AppendMorsel(quern_input* input, RowRoom* room) {
  std::optional<Feed::Morsel> morsel = feed_.Next();
  if (!morsel) return false;
  const Taken taken = view_.Take(std::move(morsel->batch), morsel->first_row, room);
  if (taken.num_rows == 0) return true;
  Handover batch(taken, morsel->first_row);
  quern_error error;
  Check(quern_input_append_arrow(input, &batch.array, &batch.rows, &error), error);
  return true;
}

uint64_t Appending::Look(uint64_t num_rows) {
  job_.Run(view_.source()->is_collected() ? 0 : 1, [&](uint32_t, const GoOn& go_on) {
    RowRoom room;
    while (go_on() && feed_.rows_taken() < num_rows && AppendMorsel(inputs_.front().get(), &room)) {
    }
  });
  return quern_input_num_groups(inputs_.front().get());
}

void Appending::AppendAll(uint32_t threads) {
  while (inputs_.size() < threads) inputs_.push_back(NewInput(job_, port_));
  job_.Run(threads, [&](uint32_t thread, const GoOn& go_on) {
    RowRoom room;
    while (go_on() && AppendMorsel(inputs_[thread].get(), &room)) {
    }
    quern_error error;
    Check(quern_input_finish(inputs_[thread].get(), &error), error);
  });
  inputs_.clear();
}

void Appending::Finish(uint32_t threads) {
  AppendAll(threads);
  job_.Run(threads, [&](uint32_t, const GoOn&) {
    quern_error error;
    Check(quern_job_finalise(job_.get(), &error), error);
  });
}

// ---- outputs ----

Output::Output(const Job& job, quern_port port)
    : job_(job),
      handle_(nullptr, quern_output_destroy),
      state_(port == QUERN_PORT_PROBE ? QUERN_RESULT_NEEDS_INPUT : QUERN_RESULT_MORE) {
  quern_output* output = nullptr;
  quern_error error;
  quern_output_options options = {};
  options.struct_size = sizeof(options);
  options.batch_rows = job.batch_rows();
  Check(quern_output_create(job.get(), port, &options, &output, &error), error);
  handle_.reset(output);
}

void Output::Push(const Taken& taken, uint64_t first_row) {
  if (taken.num_rows == 0) return;
  Handover batch(taken, first_row);
  quern_error error;
  Check(quern_output_push_arrow(handle_.get(), &batch.array, &batch.rows, &error), error);
  state_ = QUERN_RESULT_MORE;
}

Batch Output::Next() {
  ArrowArray array = {};
  const quern_result* result = nullptr;
  quern_error error;
  Check(quern_output_next_arrow(handle_.get(), &array, &result, &error), error);
  state_ = result->state;
  position_ = result->position;
  return job_.Arranged(&array);
}

void Output::Read(uint64_t place, const GoOn& go_on, OrderedBatches* out) {
  while (state_ == QUERN_RESULT_MORE && go_on()) {
    Batch batch = Next();
    out->Add(place + position_, std::move(batch));
  }
}

// ---- jobs ----

Job::Job(const KernelHandle& kernel, const RunOptions& options,
         std::initializer_list<std::pair<quern_port, const Input*>> inputs, quern_port outputs,
         const ResultShape& descriptor)
    : handle_(NewJob(kernel, options)),
      input_port_(inputs.begin()->first),
      batch_rows_(BatchRows(options)),
      descriptor_(descriptor) {
  for (const auto& [port, input] : inputs) Bind(get(), port, *input);
  ArrowSchema schema = {};
  quern_error error;
  Check(quern_job_result_schema(get(), outputs, &schema, &error), error);
  num_columns_ = static_cast<size_t>(schema.n_children);
  fields_ = descriptor_.Fields(&schema);
}

Batch Job::Arranged(ArrowArray* array) const { return descriptor_.Arranged(ImportBatch(array, num_columns_)); }

void Job::Run(uint32_t threads, const Work& work) const {
  RunWorkers(threads, work, [this] { quern_job_cancel(get()); });
}

void Job::Read(uint32_t threads, quern_port port, uint64_t place, OrderedBatches* out) const {
  Run(threads, [&](uint32_t, const GoOn& go_on) { Output(*this, port).Read(place, go_on, out); });
}

}  // namespace quern::python
