// SPDX-License-Identifier: Apache-2.0
// The C ABI of aggregations: batches of a host's own vectors in, groups out. (Arrow: aggregate_arrow.cc; runs on
// threads of the library: aggregate_run.cc.)
//
// Its functions have the form that quern.cc describes, and so have its handles:
//
//     quern_kernel -> Kernel (machine code) <- AggregateState (tables, memory budget) <- quern_aggregate
//                                              AggregateState                         <- quern_aggregate_appender, ..
//                                              AggregateState                         <- quern_groups, quern_groups, ..
//
// Two things differ from a join. Nothing of a batch is kept, so there is nothing to copy and nothing to keep alive. And
// there are two kinds of input rows, which take the same path: a spec `aggregate keys=utf8 aggs=sum(i64),count_star`
// accepts
//
//     input     key utf8    payload i64               "a", 5   "b", 1   "a", 2
//     states    key utf8    payload binary, binary    the output of an aggregation of the first two rows:
//                                                     "a", {5}, {1}   "b", {1}, {1}
//
// Hints choose the initial tables. The state is made together with the handle, which costs nothing before rows come,
// and is made anew by each hint; after the first batch or appender hints are too late.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hosts/c/aggregate_handles.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/quern.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

// The types of batches of input, and of batches of states.
void SetBatchTypes(AggregateState* state) {
  const KernelSpec& spec = state->spec();
  for (const KeySpec& key : spec.keys) state->input.keys.push_back(key.type);
  state->input.payload = AggregateInputTypes(spec.aggregates);
  const std::vector<ColumnType> types = AggregateStateTypes(spec);
  const auto num_keys = static_cast<ptrdiff_t>(spec.keys.size());
  state->states.keys.assign(types.begin(), types.begin() + num_keys);
  state->states.payload.assign(types.begin() + num_keys, types.end());
  for (size_t i = 0; i < types.size(); ++i) {
    ColumnBinding& binding = state->states_by_position;
    (i < spec.keys.size() ? binding.keys : binding.payload).push_back(static_cast<int>(i));
  }
}

absl::Status CreateAggregate(quern_kernel* kernel, uint64_t memory_limit, quern_aggregate** aggregate) {
  if (aggregate == nullptr) return MissingArgument("aggregate");
  *aggregate = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  QUERN_RETURN_IF_ERROR(CheckOperator(*kernel, Operator::kAggregate, "an aggregation"));
  auto state = std::make_shared<AggregateState>();
  state->kernel = kernel->compiled.kernel;
  state->cache = kernel->compiled.cache;
  state->budget = std::make_shared<MemoryBudget>(memory_limit);
  state->sink = MakeHashAggregate(state->kernel, state->budget, state->hints);
  SetBatchTypes(state.get());
  *aggregate = std::make_unique<quern_aggregate>(quern_aggregate{std::move(state)}).release();
  return absl::OkStatus();
}

// ---- hints ----

absl::Status CheckTakesHints(const AggregateState& state) {
  if (!state.sink->has_begun()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "hint after append: the aggregation has begun; accepted: before the first batch and the first appender");
}

absl::Status SetHints(AggregateState* state, GroupHints hints) {
  state->sink = MakeHashAggregate(state->kernel, state->budget, hints);
  state->hints = std::move(hints);
  return absl::OkStatus();
}

absl::Status HintGroups(quern_aggregate* aggregate, uint64_t expected_groups) {
  if (aggregate == nullptr) return MissingArgument("aggregate");
  QUERN_RETURN_IF_ERROR(CheckTakesHints(*aggregate->state));
  GroupHints hints = aggregate->state->hints;
  hints.expected_groups = expected_groups;
  return SetHints(aggregate->state.get(), std::move(hints));
}

absl::Status CheckKeyNumber(uint32_t key, size_t num_keys) {
  if (key < num_keys) return absl::OkStatus();
  const std::string accepted =
      num_keys == 0 ? "none, since the spec has no keys" : "0 to " + std::to_string(num_keys - 1);
  return InvalidArgument("key number out of range: " + std::to_string(key) + "; accepted: " + accepted);
}

absl::Status HintRange(quern_aggregate* aggregate, uint32_t key, int64_t min, int64_t max) {
  if (aggregate == nullptr) return MissingArgument("aggregate");
  const size_t num_keys = aggregate->state->spec().keys.size();
  QUERN_RETURN_IF_ERROR(CheckKeyNumber(key, num_keys));
  QUERN_RETURN_IF_ERROR(CheckTakesHints(*aggregate->state));
  GroupHints hints = aggregate->state->hints;
  hints.ranges.resize(num_keys);
  hints.ranges[key] = {true, min, max};
  return SetHints(aggregate->state.get(), std::move(hints));
}

// ---- input ----

template <class Handle>
absl::Status Append(Handle* handle, const quern_batch* batch, RowKind kind) {
  QUERN_ASSIGN_OR_RETURN(const SinkInput input, OpenInput(handle));
  if (batch == nullptr) return MissingArgument("batch");
  return AddHostBatch(*handle->state, input, *batch, kind);
}

// ---- layout, statistics and counters ----

void GetStats(const quern_aggregate* aggregate, quern_aggregate_stats* stats) {
  if (stats == nullptr) return;
  *stats = {};
  if (aggregate == nullptr) return;
  const AggregateState& state = *aggregate->state;
  const AggregateStats& counted = state.aggregate()->stats();
  stats->input_rows = counted.input_rows;
  stats->num_groups = state.sink->is_finalised() ? counted.num_groups : state.aggregate()->num_groups_so_far();
  stats->table_bytes = counted.table_bytes;
  stats->num_growths = counted.num_growths;
  stats->peak_bytes = state.budget->peak_bytes();
  stats->prefetch_distance = counted.prefetch_distance;
}

const char* LayoutOf(const quern_aggregate* aggregate) {
  if (aggregate == nullptr) return nullptr;
  return aggregate->state->sink->is_finalised() ? aggregate->state->aggregate()->stats().layout : "";
}

// ---- reading groups ----

absl::Status CheckShare(const GroupShare& share) {
  if (share.num_partitions == 0) return InvalidArgument("num_partitions out of range: 0; accepted: 1 or more");
  if (share.partition < share.num_partitions) return absl::OkStatus();
  return InvalidArgument("partition out of range: " + std::to_string(share.partition) + "; accepted: 0 to " +
                         std::to_string(share.num_partitions - 1));
}

absl::Status CreateGroups(quern_aggregate* aggregate, const quern_group_columns& columns, const GroupShare& share,
                          uint64_t batch_rows, quern_groups** groups) {
  if (groups == nullptr) return MissingArgument("groups");
  *groups = nullptr;
  if (aggregate == nullptr) return MissingArgument("aggregate");
  QUERN_ASSIGN_OR_RETURN(const GroupColumns wanted, GroupColumnsOf(columns));
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<quern_groups> made, NewGroups(aggregate->state, wanted, share, batch_rows));
  *groups = made.release();
  return absl::OkStatus();
}

absl::Status NextResult(quern_groups* groups, quern_result* result, bool* more) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  if (more == nullptr) return MissingArgument("more");
  *more = false;
  if (groups == nullptr) return MissingArgument("groups");
  QUERN_ASSIGN_OR_RETURN(*more, ReadNext(groups));
  *result = ResultOf(groups);
  return absl::OkStatus();
}

}  // namespace

absl::Status AddHostBatch(const AggregateState& state, const SinkInput& input, const quern_batch& batch, RowKind kind) {
  const BatchTypes& types = state.types(kind);
  const char* const side = kind == RowKind::kInput ? "input" : "states";
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view,
                         ViewOfHostBatch(batch, types.keys, types.payload, side, {state.budget}));
  return input.Append(view.batch, kind);
}

absl::StatusOr<GroupColumns> GroupColumnsOf(const quern_group_columns& columns) {
  const uint32_t number = NumberOf(columns);
  if (number == QUERN_GROUP_RESULTS) return GroupColumns::kResults;
  if (number == QUERN_GROUP_STATES) return GroupColumns::kStates;
  return InvalidArgument("unknown group columns: " + std::to_string(number) +
                         "; accepted: QUERN_GROUP_RESULTS (0), QUERN_GROUP_STATES (1)");
}

absl::StatusOr<std::unique_ptr<quern_groups>> NewGroups(const std::shared_ptr<AggregateState>& state,
                                                        GroupColumns columns, const GroupShare& share,
                                                        uint64_t batch_rows) {
  QUERN_RETURN_IF_ERROR(CheckShare(share));
  QUERN_RETURN_IF_ERROR(CheckBatchRows(batch_rows));
  if (!state->sink->is_finalised()) {
    return absl::FailedPreconditionError(
        "groups before finalise: they are not complete; accepted: after quern_aggregate_finalise");
  }
  const uint64_t capacity = ResultRows(batch_rows, state->aggregate()->stats().num_groups);
  const KernelSpec& spec = state->spec();
  std::vector<ColumnType> types =
      columns == GroupColumns::kResults ? AggregateOutputTypes(spec) : AggregateStateTypes(spec);
  return std::make_unique<quern_groups>(state, columns, share, std::move(types), capacity);
}

quern_result ResultOf(quern_groups* groups) { return ShowRows(groups->output, &groups->result_columns); }

}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;
using quern::RowKind;

extern "C" {

quern_status quern_aggregate_create(quern_kernel* kernel, uint64_t memory_limit, quern_aggregate** aggregate,
                                    quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateAggregate(kernel, memory_limit, aggregate); });
}

void quern_aggregate_destroy(quern_aggregate* aggregate) { delete aggregate; }

quern_status quern_aggregate_hint_groups(quern_aggregate* aggregate, uint64_t expected_groups, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::HintGroups(aggregate, expected_groups); });
}

quern_status quern_aggregate_hint_range(quern_aggregate* aggregate, uint32_t key, int64_t min, int64_t max,
                                        quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::HintRange(aggregate, key, min, max); });
}

quern_status quern_aggregate_append(quern_aggregate* aggregate, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(aggregate, batch, RowKind::kInput); });
}

quern_status quern_aggregate_append_states(quern_aggregate* aggregate, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(aggregate, batch, RowKind::kStates); });
}

quern_status quern_aggregate_finalise(quern_aggregate* aggregate, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Finalise(aggregate); });
}

quern_status quern_aggregate_finalise_shared(quern_aggregate* aggregate, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinaliseShared(aggregate); });
}

const char* quern_aggregate_layout(const quern_aggregate* aggregate) { return c_abi::LayoutOf(aggregate); }

void quern_aggregate_get_stats(const quern_aggregate* aggregate, quern_aggregate_stats* stats) {
  c_abi::GetStats(aggregate, stats);
}

quern_status quern_aggregate_appender_create(quern_aggregate* aggregate, quern_aggregate_appender** appender,
                                             quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateAppender(aggregate, appender); });
}

void quern_aggregate_appender_destroy(quern_aggregate_appender* appender) { delete appender; }

quern_status quern_aggregate_appender_append(quern_aggregate_appender* appender, const quern_batch* batch,
                                             quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(appender, batch, RowKind::kInput); });
}

quern_status quern_aggregate_appender_append_states(quern_aggregate_appender* appender, const quern_batch* batch,
                                                    quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(appender, batch, RowKind::kStates); });
}

quern_status quern_aggregate_appender_finish(quern_aggregate_appender* appender, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinishAppender(appender); });
}

quern_status quern_groups_create(quern_aggregate* aggregate, quern_group_columns columns, uint64_t batch_rows,
                                 quern_groups** groups, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateGroups(aggregate, columns, {}, batch_rows, groups); });
}

quern_status quern_groups_create_partition(quern_aggregate* aggregate, quern_group_columns columns, uint32_t partition,
                                           uint32_t num_partitions, uint64_t batch_rows, quern_groups** groups,
                                           quern_error* error) {
  return c_abi::Boundary(
      error, [&] { return c_abi::CreateGroups(aggregate, columns, {partition, num_partitions}, batch_rows, groups); });
}

void quern_groups_destroy(quern_groups* groups) { delete groups; }

quern_status quern_groups_next(quern_groups* groups, quern_result* result, bool* more, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextResult(groups, result, more); });
}

}  // extern "C"
