// SPDX-License-Identifier: Apache-2.0
// A join in four steps, each by all threads, each waited for before the next begins:
//
//     append      morsels of the build side       into an appender of each thread
//     finalise    the table                       shared
//     probe       morsels of the probe side       each with the number of its rows' place: 0, 1, 2, ..
//     unmatched   build rows that come out alone  right, full, right_semi, right_anti; behind all others
//
// A prober returns the matches of its morsel in the order of the probe rows, so batches sorted by the number of their
// morsel are the result in the order of the probe side, whichever thread made them. A reader does the third step batch
// by batch, on request.
#include <limits>
#include <optional>
#include <utility>

#include "hosts/c/quern.h"
#include "operator_parts.h"

namespace quern::python {
namespace {

constexpr uint64_t kAtTheEnd = std::numeric_limits<uint64_t>::max();

constexpr AppendCalls<quern_join, quern_appender> kCalls = {
    quern_join_append_arrow_rows,     quern_appender_create, quern_appender_destroy,
    quern_appender_append_arrow_rows, quern_appender_finish, quern_join_finalise_shared};

Owned<quern_join> MakeJoin(const KernelHandle& kernel, const Input& build, const Input& probe,
                           const RunOptions& options) {
  quern_error error;
  quern_join* join = nullptr;
  Check(quern_join_create(kernel.get(), options.memory_limit, &join, &error), error);
  Owned<quern_join> owned(join, quern_join_destroy);
  const SchemaOfView build_schema(*build.view), probe_schema(*probe.view);
  Check(quern_join_bind_arrow(join, build_schema.get(), build.keys.data(), build.payload.data(), probe_schema.get(),
                              probe.keys.data(), probe.payload.data(), &error),
        error);
  return owned;
}

void BuildTable(quern_join* join, const View& build, uint32_t threads) {
  Feed feed(build.source());
  AppendAndFinalise(kCalls, join, build, &feed, ThreadsFor(build, threads));
}

std::vector<Field> FieldsOf(const quern_join* join, const ResultShape& descriptor) {
  quern_error error;
  ArrowSchema schema = {};
  Check(quern_join_result_schema(join, &schema, &error), error);
  return descriptor.Fields(&schema);
}

// One thread's prober, with how many columns its results have.
class Prober {
 public:
  Prober(quern_join* join, size_t num_columns) : prober_(nullptr, quern_prober_destroy), num_columns_(num_columns) {
    quern_prober* prober = nullptr;
    Check(quern_prober_create(join, 0, &prober, &error_), error_);
    prober_.reset(prober);
  }

  // Rows that were selected must stay until Next has answered nullopt.
  void Input(const Taken& taken, uint64_t first_row) {
    Handover batch(taken, first_row);
    Check(quern_prober_input_arrow_rows(prober_.get(), &batch.array, &batch.rows, &error_), error_);
    more_ = true;
  }
  void InputUnmatched() {
    Check(quern_prober_input_unmatched(prober_.get(), &error_), error_);
    more_ = true;
  }
  // Of the input; nullopt when there are no more.
  std::optional<Batch> Next() {
    if (!more_) return std::nullopt;
    ArrowArray array = {};
    Check(quern_prober_next_arrow(prober_.get(), &array, &more_, &error_), error_);
    return ImportBatch(&array, num_columns_);
  }

 private:
  Owned<quern_prober> prober_;
  size_t num_columns_;
  quern_error error_;
  bool more_ = false;
};

struct ProbeWork {
  const ResultShape& descriptor;
  OrderedBatches* out;
};

void ScanUnmatched(Prober* prober, const ProbeWork& work, uint64_t place, const StopFlag& stop) {
  while (!stop) {
    std::optional<Batch> batch = prober->Next();
    if (!batch) return;
    if (batch->num_rows > 0) work.out->Add(place, work.descriptor.Arranged(*batch));
  }
}

size_t NumColumns(const quern_join* join) {
  quern_error error;
  ArrowSchema schema = {};
  Check(quern_join_result_schema(join, &schema, &error), error);
  const auto num_columns = static_cast<size_t>(schema.n_children);
  schema.release(&schema);
  return num_columns;
}

// What a reader keeps between two batches. The prober goes before the join.
struct JoinReading {
  Owned<quern_join> join;
  std::shared_ptr<const View> probe;
  Feed feed;
  Prober prober;
  ResultShape descriptor;
  RowRoom room;
  bool is_unmatched = false;

  JoinReading(Owned<quern_join> made, const Input& input, ResultShape result)
      : join(std::move(made)),
        probe(input.view),
        feed(probe->source()),
        prober(join.get(), NumColumns(join.get())),
        descriptor(std::move(result)) {}

  std::optional<Batch> Next(const Reader::Pause& pause) {
    while (true) {
      pause();
      std::optional<Batch> batch = prober.Next();
      if (batch && batch->num_rows == 0) continue;
      if (batch) return descriptor.Arranged(*batch);
      if (is_unmatched) return std::nullopt;
      std::optional<Feed::Morsel> morsel = feed.Next();
      is_unmatched = !morsel.has_value();
      if (morsel) prober.Input(probe->Take(std::move(morsel->batch), &room), morsel->first_row);
      else prober.InputUnmatched();
    }
  }
};

}  // namespace

Table RunJoin(const KernelHandle& kernel, const Input& build, const Input& probe, const ResultShape& descriptor,
              const RunOptions& options) {
  const Owned<quern_join> join = MakeJoin(kernel, build, probe, options);
  std::vector<Field> fields = FieldsOf(join.get(), descriptor);
  BuildTable(join.get(), *build.view, options.threads);
  const uint32_t threads = std::max(ThreadsFor(*probe.view, options.threads), ThreadsFor(*build.view, options.threads));
  const size_t num_columns = NumColumns(join.get());
  std::vector<std::unique_ptr<Prober>> probers;
  for (uint32_t i = 0; i < std::max(threads, 1U); ++i)
    probers.push_back(std::make_unique<Prober>(join.get(), num_columns));
  OrderedBatches out;
  const ProbeWork work{descriptor, &out};
  Feed feed(probe.view->source());
  RunWorkers(threads, [&](uint32_t thread, const StopFlag& stop) {
    Prober* const prober = probers[thread].get();
    TakeMorsels(&feed, *probe.view, stop, [&](const Taken& taken, const Feed::Morsel& morsel) {
      prober->Input(taken, morsel.first_row);
      ScanUnmatched(prober, work, morsel.number, stop);
    });
  });
  RunWorkers(threads, [&](uint32_t thread, const StopFlag& stop) {
    probers[thread]->InputUnmatched();
    ScanUnmatched(probers[thread].get(), work, kAtTheEnd, stop);
  });
  return MakeTable(std::move(fields), out.Take());
}

std::unique_ptr<Reader> ReadJoin(const KernelHandle& kernel, const Input& build, const Input& probe,
                                 const ResultShape& descriptor, const RunOptions& options) {
  Owned<quern_join> join = MakeJoin(kernel, build, probe, options);
  std::vector<Field> fields = FieldsOf(join.get(), descriptor);
  BuildTable(join.get(), *build.view, options.threads);
  const auto reading = std::make_shared<JoinReading>(std::move(join), probe, descriptor);
  return std::make_unique<Reader>(std::move(fields),
                                  [reading](const Reader::Pause& pause) { return reading->Next(pause); });
}

}  // namespace quern::python
