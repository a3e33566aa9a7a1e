// SPDX-License-Identifier: Apache-2.0
// An aggregation: every thread appends morsels to its thread-local groups, all merge them, all read them. Groups have
// no order. The number of threads depends on the groups of the first rows (codegen/plan/thread_advice.cc).
#include <cstdint>
#include <utility>
#include <vector>

#include "hosts/c/quern.h"
#include "operator_parts.h"

namespace quern::python {
namespace {

constexpr AppendCalls<quern_aggregate, quern_aggregate_appender> kCalls = {
    quern_aggregate_append_arrow_rows,          quern_aggregate_appender_create, quern_aggregate_appender_destroy,
    quern_aggregate_appender_append_arrow_rows, quern_aggregate_appender_finish, quern_aggregate_finalise_shared};

Owned<quern_aggregate> MakeAggregate(const KernelHandle& kernel, const Input& input, const RunOptions& options) {
  quern_error error;
  quern_aggregate* aggregate = nullptr;
  Check(quern_aggregate_create(kernel.get(), options.memory_limit, &aggregate, &error), error);
  Owned<quern_aggregate> owned(aggregate, quern_aggregate_destroy);
  const SchemaOfView schema(*input.view);
  Check(quern_aggregate_bind_arrow(aggregate, schema.get(), input.keys.data(), input.payload.data(), &error), error);
  return owned;
}

// Appends by one thread until so many of the feed's rows were partitioned.
void AppendSome(quern_aggregate* aggregate, const View& view, Feed* feed, uint64_t rows) {
  RunWorkers(view.source()->is_collected() ? 0 : 1, [&](uint32_t, const StopFlag& stop) {
    RowRoom room;
    const auto append = [aggregate](const Taken& taken, const Feed::Morsel& morsel) {
      Handover batch(taken, morsel.first_row);
      quern_error error;
      Check(quern_aggregate_append_arrow_rows(aggregate, &batch.array, &batch.rows, &error), error);
    };
    while (!stop && feed->rows_taken() < rows && TakeMorsel(feed, view, &room, append)) {
    }
  });
}

uint64_t GroupsSoFar(const quern_aggregate* aggregate) {
  quern_aggregate_stats stats;
  quern_aggregate_get_stats(aggregate, &stats);
  return stats.num_groups;
}

// How many of these threads are worth it for what the feed has left, after as many looks at the groups of its first
// rows as it takes.
uint32_t ThreadsAfterALook(const KernelHandle& kernel, quern_aggregate* aggregate, const View& view, Feed* feed,
                           uint32_t threads) {
  if (threads <= 1) return threads;
  const uint64_t num_rows = view.source()->is_collected() ? view.source()->num_rows() : UINT64_MAX;
  std::vector<uint64_t> groups_seen;
  while (true) {
    uint64_t look_rows = 0;
    const uint32_t advised =
        quern_advise_threads(kernel.get(), num_rows, threads, groups_seen.data(), groups_seen.size(), &look_rows);
    if (look_rows == 0) return advised;
    AppendSome(aggregate, view, feed, look_rows);
    groups_seen.push_back(GroupsSoFar(aggregate));
  }
}

void ReadGroups(quern_aggregate* aggregate, size_t num_columns, const ResultShape& descriptor, const StopFlag& stop,
                OrderedBatches* out) {
  quern_error error;
  quern_groups* created = nullptr;
  Check(quern_groups_create(aggregate, QUERN_GROUP_RESULTS, 0, &created, &error), error);
  const Owned<quern_groups> groups(created, quern_groups_destroy);
  for (bool more = true; more && !stop;) {
    ArrowArray array = {};
    Check(quern_groups_next_arrow(created, &array, &more, &error), error);
    const Batch batch = ImportBatch(&array, num_columns);
    if (batch.num_rows > 0) out->Add(0, descriptor.Arranged(batch));
  }
}

}  // namespace

Table RunAggregate(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                   const RunOptions& options) {
  const Owned<quern_aggregate> aggregate = MakeAggregate(kernel, input, options);
  quern_error error;
  ArrowSchema schema = {};
  Check(quern_aggregate_result_schema(aggregate.get(), QUERN_GROUP_RESULTS, &schema, &error), error);
  const auto num_columns = static_cast<size_t>(schema.n_children);
  std::vector<Field> fields = descriptor.Fields(&schema);
  Feed feed(input.view->source());
  const uint32_t threads = ThreadsFor(*input.view, options.threads);
  const uint32_t appending = ThreadsAfterALook(kernel, aggregate.get(), *input.view, &feed, threads);
  AppendAndFinalise(kCalls, aggregate.get(), *input.view, &feed, appending);
  OrderedBatches out;
  RunWorkers(threads,
             [&](uint32_t, const StopFlag& stop) { ReadGroups(aggregate.get(), num_columns, descriptor, stop, &out); });
  return MakeTable(std::move(fields), out.Take());
}

}  // namespace quern::python
