// SPDX-License-Identifier: Apache-2.0
// The operators, in terms of jobs.
//
// A join is probed by all threads, each with an output of its own. The matches of a morsel come out in the order of its
// rows, so batches that are sorted by the number of their morsel are the result in the order of the probe side; the
// build rows that come out alone (right, full, right_semi, right_anti) stand behind all others. A reader does the same
// batch by batch, on request.
//
// An aggregation is advised on its threads by the groups of its first rows (codegen/plan/thread_advice.cc). Groups have
// no order. The rows of a sort know their position:
//
//     thread 0   rows 0 .. 65535, 131072 .. 196607    thread 1   65536 .. 131071    ->  batches 0, 65536, 131072
//
// A set operation appends its left side, then its right one, and reads its rows as groups.
//
// The results of these three are tables, or are read batch by batch, for rows that memory does not hold.
//
// A filter and a map are a view and nothing else: rows are gathered morsel by morsel, with the columns that are
// computed of them, and put back into the order of the source.
#include <algorithm>
#include <limits>
#include <optional>

#include "job.h"

namespace quern::python {
namespace {

constexpr uint64_t kAtTheEnd = std::numeric_limits<uint64_t>::max();

// How many of these threads are worth it for what is left, after as many looks at the groups of the first rows as it
// takes.
uint32_t ThreadsAfterALook(const KernelHandle& kernel, const View& view, uint32_t threads, Appending* appending) {
  if (threads <= 1) return threads;
  const uint64_t num_rows = view.source()->is_collected() ? view.source()->num_rows() : UINT64_MAX;
  std::vector<uint64_t> groups_seen;
  while (true) {
    uint64_t look_rows = 0;
    const uint32_t advised =
        quern_advise_threads(kernel.get(), num_rows, threads, groups_seen.data(), groups_seen.size(), &look_rows);
    if (look_rows == 0) return advised;
    groups_seen.push_back(appending->Look(look_rows));
  }
}

Job BuiltJoin(const KernelHandle& kernel, const Input& build, const Input& probe, const ResultShape& descriptor,
              const RunOptions& options) {
  Job job(kernel, options, {{QUERN_PORT_BUILD, &build}, {QUERN_PORT_PROBE, &probe}}, QUERN_PORT_PROBE, descriptor);
  Appending(&job, *build.view).Finish(ThreadsFor(*build.view, options.threads));
  return job;
}

// The calling thread sees no signals within a call, and a batch whose keys are all the same takes seconds: 65,536 rows
// on both sides are 4 billion candidates. A thread takes some 30 us, as do 10,000 candidates.
uint32_t ThreadsOfProbe(const View& build, const View& probe, uint32_t threads) {
  constexpr uint64_t kManyCandidates = 10'000'000;
  const uint32_t advised = std::max(ThreadsFor(probe, threads), ThreadsFor(build, threads));
  if (advised > 0 || probe.source()->num_rows() * build.source()->num_rows() < kManyCandidates) return advised;
  return 1;
}

// What a reader keeps between two batches. Outputs go before the job.
struct JoinReading {
  Job job;
  std::shared_ptr<const View> probe;
  Feed feed;
  RowRoom room;
  std::optional<Output> output;

  JoinReading(Job built, const Input& input) : job(std::move(built)), probe(input.view), feed(probe->source()) {
    output.emplace(job, QUERN_PORT_PROBE);
  }

  std::optional<Batch> Next(const Reader::Pause& pause) {
    while (true) {
      pause();
      if (output->state() == QUERN_RESULT_DONE) return std::nullopt;
      if (output->state() == QUERN_RESULT_MORE) {
        Batch batch = output->Next();
        if (batch.num_rows > 0) return batch;
        continue;
      }
      std::optional<Feed::Morsel> morsel = feed.Next();
      if (morsel) output->Push(probe->Take(std::move(morsel->batch), morsel->first_row, &room), morsel->first_row);
      else output.emplace(job, QUERN_PORT_UNMATCHED);
    }
  }
};

// ---- jobs that need all rows first ----

// A job that has done its work, and how many threads its rows are worth.
struct Finished {
  Job job;
  uint32_t threads;
};

Finished Aggregated(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                    const RunOptions& options) {
  Finished made{Job(kernel, options, {{QUERN_PORT_ROWS, &input}}, QUERN_PORT_ROWS, descriptor),
                ThreadsFor(*input.view, options.threads)};
  Appending appending(&made.job, *input.view);
  appending.Finish(ThreadsAfterALook(kernel, *input.view, made.threads, &appending));
  return made;
}

Finished Combined(const KernelHandle& kernel, const Input& left, const Input& right, const ResultShape& descriptor,
                  const RunOptions& options) {
  const uint32_t left_threads = ThreadsFor(*left.view, options.threads);
  const uint32_t threads = std::max(left_threads, ThreadsFor(*right.view, options.threads));
  Finished made{
      Job(kernel, options, {{QUERN_PORT_LEFT, &left}, {QUERN_PORT_RIGHT, &right}}, QUERN_PORT_ROWS, descriptor),
      threads};
  Appending(&made.job, *left.view, QUERN_PORT_LEFT).AppendAll(left_threads);
  Appending(&made.job, *right.view, QUERN_PORT_RIGHT).Finish(threads);
  return made;
}

Finished Sorted(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                const RunOptions& options) {
  Finished made{Job(kernel, options, {{QUERN_PORT_ROWS, &input}}, QUERN_PORT_ROWS, descriptor),
                ThreadsFor(*input.view, options.threads)};
  Appending(&made.job, *input.view).Finish(made.threads);
  return made;
}

Table TableOf(const Finished& made) {
  OrderedBatches out;
  made.job.Read(made.threads, QUERN_PORT_ROWS, 0, &out);
  return MakeTable(made.job.fields(), out.Take());
}

// The output goes before the job.
struct RowsReading {
  Job job;
  Output output;

  explicit RowsReading(Job done) : job(std::move(done)), output(job, QUERN_PORT_ROWS) {}

  std::optional<Batch> Next(const Reader::Pause& pause) {
    while (output.state() == QUERN_RESULT_MORE) {
      pause();
      Batch batch = output.Next();
      if (batch.num_rows > 0) return batch;
    }
    return std::nullopt;
  }
};

std::unique_ptr<Reader> ReaderOf(Finished made) {
  const auto reading = std::make_shared<RowsReading>(std::move(made.job));
  return std::make_unique<Reader>(reading->job.fields(),
                                  [reading](const Reader::Pause& pause) { return reading->Next(pause); });
}

// ---- rows of a view ----

ResultShape WholeShape(const View& view) {
  ResultShape shape;
  for (const Field& field : view.output_fields()) {
    shape.order.push_back(static_cast<uint32_t>(shape.order.size()));
    shape.names.push_back(field.name);
  }
  return shape;
}

std::vector<Field> FieldsOf(const View& view, const ResultShape& shape) {
  std::vector<Field> fields;
  for (size_t i = 0; i < shape.order.size(); ++i) {
    fields.push_back(view.output_fields().at(shape.order[i]));
    fields.back().name = shape.names[i];
  }
  return fields;
}

}  // namespace

Table RunJoin(const KernelHandle& kernel, const Input& build, const Input& probe, const ResultShape& descriptor,
              const RunOptions& options) {
  const Job job = BuiltJoin(kernel, build, probe, descriptor, options);
  const uint32_t threads = ThreadsOfProbe(*build.view, *probe.view, options.threads);
  OrderedBatches out;
  Feed feed(probe.view->source());
  job.Run(threads, [&](uint32_t, const GoOn& go_on) {
    Output output(job, QUERN_PORT_PROBE);
    RowRoom room;
    while (go_on()) {
      std::optional<Feed::Morsel> morsel = feed.Next();
      if (!morsel) return;
      output.Push(probe.view->Take(std::move(morsel->batch), morsel->first_row, &room), morsel->first_row);
      output.Read(morsel->number, go_on, &out);
    }
  });
  job.Read(threads, QUERN_PORT_UNMATCHED, kAtTheEnd, &out);
  return MakeTable(job.fields(), out.Take());
}

std::unique_ptr<Reader> ReadJoin(const KernelHandle& kernel, const Input& build, const Input& probe,
                                 const ResultShape& descriptor, const RunOptions& options) {
  const auto reading = std::make_shared<JoinReading>(BuiltJoin(kernel, build, probe, descriptor, options), probe);
  return std::make_unique<Reader>(reading->job.fields(),
                                  [reading](const Reader::Pause& pause) { return reading->Next(pause); });
}

Table RunAggregate(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                   const RunOptions& options) {
  return TableOf(Aggregated(kernel, input, descriptor, options));
}

Table RunSet(const KernelHandle& kernel, const Input& left, const Input& right, const ResultShape& descriptor,
             const RunOptions& options) {
  return TableOf(Combined(kernel, left, right, descriptor, options));
}

Table RunSort(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
              const RunOptions& options) {
  return TableOf(Sorted(kernel, input, descriptor, options));
}

std::unique_ptr<Reader> ReadAggregate(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                                      const RunOptions& options) {
  return ReaderOf(Aggregated(kernel, input, descriptor, options));
}

std::unique_ptr<Reader> ReadSet(const KernelHandle& kernel, const Input& left, const Input& right,
                                const ResultShape& descriptor, const RunOptions& options) {
  return ReaderOf(Combined(kernel, left, right, descriptor, options));
}

std::unique_ptr<Reader> ReadSort(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                                 const RunOptions& options) {
  return ReaderOf(Sorted(kernel, input, descriptor, options));
}

Table RunFilter(const std::shared_ptr<const View>& view, const RunOptions& options) {
  return RunMap(view, WholeShape(*view), options);
}

std::unique_ptr<Reader> ReadFilter(const std::shared_ptr<const View>& view) { return ReadMap(view, WholeShape(*view)); }

Table RunMap(const std::shared_ptr<const View>& view, const ResultShape& descriptor, const RunOptions& options) {
  OrderedBatches out;
  Feed feed(view->source());
  RunWorkers(ThreadsFor(*view, options.threads), [&](uint32_t, const GoOn& go_on) {
    RowRoom room;
    while (go_on()) {
      std::optional<Feed::Morsel> morsel = feed.Next();
      if (!morsel) return;
      const Batch rows = view->Gather(std::move(morsel->batch), morsel->first_row, &room);
      if (rows.num_rows > 0) out.Add(morsel->number, descriptor.Arranged(rows));
    }
  });
  return MakeTable(FieldsOf(*view, descriptor), out.Take());
}

std::unique_ptr<Reader> ReadMap(const std::shared_ptr<const View>& view, const ResultShape& descriptor) {
  const auto feed = std::make_shared<Feed>(view->source());
  return std::make_unique<Reader>(
      FieldsOf(*view, descriptor),
      [view, descriptor, feed, room = RowRoom()](const Reader::Pause& pause) mutable -> std::optional<Batch> {
        while (std::optional<Feed::Morsel> morsel = feed->Next()) {
          pause();
          const Batch batch = view->Gather(std::move(morsel->batch), morsel->first_row, &room);
          if (batch.num_rows > 0) return descriptor.Arranged(batch);
        }
        return std::nullopt;
      });
}

}  // namespace quern::python
