// SPDX-License-Identifier: Apache-2.0
// An aggregation: every thread appends morsels to groups of its own, all bring the groups together, all read them. Groups have no order.
#include <utility>

#include "hosts/c/quern.h"
#include "operator_parts.h"

namespace quern::python {
namespace {

constexpr AppendCalls<quern_aggregate, quern_aggregate_appender> kCalls = {
    quern_aggregate_append_arrow,          quern_aggregate_appender_create, quern_aggregate_appender_destroy,
    quern_aggregate_appender_append_arrow, quern_aggregate_appender_finish, quern_aggregate_finalise_shared};

Owned<quern_aggregate> MakeAggregate(const KernelHandle& kernel, const Input& input, const RunOptions& options) {
  quern_error error;
  quern_aggregate* aggregate = nullptr;
  Check(quern_aggregate_create(kernel.get(), options.memory_limit, &aggregate, &error), error);
  Owned<quern_aggregate> owned(aggregate, quern_aggregate_destroy);
  const SchemaOfView schema(*input.view);
  Check(quern_aggregate_bind_arrow(aggregate, schema.get(), input.keys.data(), input.payload.data(), &error), error);
  return owned;
}

void ReadGroups(quern_aggregate* aggregate, size_t num_columns, const ResultShape& shape, const StopFlag& stop, OrderedBatches* out) {
  quern_error error;
  quern_groups* created = nullptr;
  Check(quern_groups_create(aggregate, QUERN_GROUP_RESULTS, 0, &created, &error), error);
  const Owned<quern_groups> groups(created, quern_groups_destroy);
  for (bool more = true; more && !stop;) {
    ArrowArray array = {};
    Check(quern_groups_next_arrow(created, &array, &more, &error), error);
    const Batch batch = ImportBatch(&array, num_columns);
    if (batch.num_rows > 0) out->Add(0, shape.Arranged(batch));
  }
}

}  // namespace

Table RunAggregate(const KernelHandle& kernel, const Input& input, const ResultShape& shape, const RunOptions& options, bool in_order) {
  const Owned<quern_aggregate> aggregate = MakeAggregate(kernel, input, options);
  quern_error error;
  ArrowSchema schema = {};
  Check(quern_aggregate_result_schema(aggregate.get(), QUERN_GROUP_RESULTS, &schema, &error), error);
  const auto num_columns = static_cast<size_t>(schema.n_children);
  std::vector<Field> fields = shape.Fields(&schema);
  AppendAndFinalise(kCalls, aggregate.get(), *input.view, options.threads, in_order);
  OrderedBatches out;
  RunWorkers(ThreadsFor(*input.view, options.threads),
             [&](uint32_t, const StopFlag& stop) { ReadGroups(aggregate.get(), num_columns, shape, stop, &out); });
  return MakeTable(std::move(fields), out.Take());
}

}  // namespace quern::python
