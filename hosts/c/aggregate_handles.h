// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of an aggregation. Internal: quern.h is the interface.
#ifndef QUERN_HOSTS_C_AGGREGATE_HANDLES_H_
#define QUERN_HOSTS_C_AGGREGATE_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "hosts/c/handles.h"
#include "hosts/c/quern.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/memory.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/output_batch.h"

namespace quern::c_abi {

// The kind of the rows of an input batch.
enum class RowKind : uint8_t { kInput, kStates };

// The positions of the spec's columns in Arrow batches, and the fields of both kinds of output.
struct GroupBinding {
  ColumnBinding input;
  std::vector<ResultField> results;
  std::vector<ResultField> states;
};

// An aggregation and everything that it needs when other handles are gone. *Threads*: members that are not atomic are
// written before appenders and readers exist (the binding: before their first Arrow batch) and only read from then on.
struct AggregateState : InputStage {
  AggregateState() : InputStage(kAggregateTexts) {}

  std::shared_ptr<const Kernel> kernel;
  std::shared_ptr<MemoryBudget> budget;
  GroupHints hints;
  std::shared_ptr<HashAggregate> aggregate;  // made anew by each hint
  BatchTypes input;
  BatchTypes states;
  ColumnBinding states_by_position;
  std::optional<GroupBinding> binding;
  std::atomic<bool> begun{false};  // rows or an appender have come: too late for hints

  const KernelSpec& spec() const { return kernel->plan.spec; }
  const BatchTypes& types(RowKind kind) const { return kind == RowKind::kInput ? input : states; }
};

// The destination of rows: the aggregation itself, or `appender` if it is not null.
struct Inlet {
  AggregateState* state;
  AggregateAppender* appender;
};

// *Errors*: InvalidArgument for null; FailedPrecondition unless rows may still be added.
absl::StatusOr<Inlet> InletOf(quern_aggregate* aggregate);
absl::StatusOr<Inlet> InletOf(quern_aggregate_appender* appender);

// Adds a batch. Nothing of it is kept.
absl::Status AddBatch(const Inlet& inlet, const BatchView& batch, RowKind kind);
absl::Status AddHostBatch(const Inlet& inlet, const quern_batch& batch, RowKind kind);
absl::Status FinaliseShared(AggregateState* state);

// A caller's choice of columns. *Errors*: InvalidArgument.
absl::StatusOr<GroupColumns> GroupColumnsOf(const quern_group_columns& columns);

struct GroupShare {
  uint32_t partition = 0;
  uint32_t num_partitions = 1;
};
// *Errors*: FailedPrecondition before finalise; InvalidArgument.
absl::StatusOr<std::unique_ptr<quern_groups>> NewGroups(const std::shared_ptr<AggregateState>& state,
                                                        GroupColumns columns, const GroupShare& share,
                                                        uint64_t batch_rows);
// The reader's output batch as the ABI shows it, valid until the next ReadNext.
quern_result ResultOf(quern_groups* groups);

}  // namespace quern::c_abi

struct quern_aggregate {
  std::shared_ptr<quern::c_abi::AggregateState> state;
};

struct quern_aggregate_appender {
  explicit quern_aggregate_appender(std::shared_ptr<quern::c_abi::AggregateState> aggregate_state)
      : state(std::move(aggregate_state)), appender(state->aggregate) {}

  std::shared_ptr<quern::c_abi::AggregateState> state;
  quern::AggregateAppender appender;
  bool finished = false;
};

struct quern_groups {
  quern_groups(std::shared_ptr<quern::c_abi::AggregateState> aggregate_state, quern::GroupColumns columns,
               const quern::c_abi::GroupShare& share, std::vector<quern::ColumnType> types, uint64_t batch_rows)
      : state(std::move(aggregate_state)),
        reader(state->aggregate, columns, share.partition, share.num_partitions),
        output(std::move(types), batch_rows, state->budget) {}

  std::shared_ptr<quern::c_abi::AggregateState> state;
  quern::GroupReader reader;
  quern::OutputBatch output;
  std::vector<quern_result_column> result_columns;
  quern::c_abi::ReadState read_state = quern::c_abi::ReadState::kRunning;
};

#endif  // QUERN_HOSTS_C_AGGREGATE_HANDLES_H_
