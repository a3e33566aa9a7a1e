// SPDX-License-Identifier: Apache-2.0
// A sort: every thread appends morsels, all sort, all read. A reader gets the position of its rows among all, which
// orders the batches:
//
//     thread 0   rows 0 .. 65535, 131072 .. 196607    thread 1   65536 .. 131071    ->  batches 0, 65536, 131072
#include <utility>

#include "hosts/c/quern.h"
#include "operator_parts.h"

namespace quern::python {
namespace {

constexpr AppendCalls<quern_sort, quern_sort_appender> kCalls = {
    quern_sort_append_arrow_rows,          quern_sort_appender_create, quern_sort_appender_destroy,
    quern_sort_appender_append_arrow_rows, quern_sort_appender_finish, quern_sort_finalise_shared};

Owned<quern_sort> MakeSort(const KernelHandle& kernel, const Input& input, const RunOptions& options) {
  quern_error error;
  quern_sort* sort = nullptr;
  Check(quern_sort_create(kernel.get(), options.memory_limit, &sort, &error), error);
  Owned<quern_sort> owned(sort, quern_sort_destroy);
  const SchemaOfView schema(*input.view);
  Check(quern_sort_bind_arrow(sort, schema.get(), input.keys.data(), input.payload.data(), &error), error);
  return owned;
}

void ReadSorted(quern_sort* sort, size_t num_columns, const ResultShape& descriptor, const StopFlag& stop,
                OrderedBatches* out) {
  quern_error error;
  quern_sorted* created = nullptr;
  Check(quern_sorted_create(sort, 0, &created, &error), error);
  const Owned<quern_sorted> sorted(created, quern_sorted_destroy);
  for (bool more = true; more && !stop;) {
    ArrowArray array = {};
    uint64_t position = 0;
    Check(quern_sorted_next_arrow(created, &array, &position, &more, &error), error);
    const Batch batch = ImportBatch(&array, num_columns);
    if (batch.num_rows > 0) out->Add(position, descriptor.Arranged(batch));
  }
}

}  // namespace

Table RunSort(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
              const RunOptions& options) {
  const Owned<quern_sort> sort = MakeSort(kernel, input, options);
  quern_error error;
  ArrowSchema schema = {};
  Check(quern_sort_result_schema(sort.get(), &schema, &error), error);
  const auto num_columns = static_cast<size_t>(schema.n_children);
  std::vector<Field> fields = descriptor.Fields(&schema);
  Feed feed(input.view->source());
  AppendAndFinalise(kCalls, sort.get(), *input.view, &feed, ThreadsFor(*input.view, options.threads));
  OrderedBatches out;
  RunWorkers(ThreadsFor(*input.view, options.threads),
             [&](uint32_t, const StopFlag& stop) { ReadSorted(sort.get(), num_columns, descriptor, stop, &out); });
  return MakeTable(std::move(fields), out.Take());
}

}  // namespace quern::python
