// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of an aggregation. Internal: quern.h is the interface.
#ifndef QUERN_HOSTS_C_AGGREGATE_HANDLES_H_
#define QUERN_HOSTS_C_AGGREGATE_HANDLES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "hosts/c/handles.h"
#include "hosts/c/quern.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/memory.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/output_batch.h"

namespace quern::c_abi {

// The positions of the spec's columns in Arrow batches, and the fields of both kinds of output.
struct GroupBinding {
  ColumnBinding input;
  std::vector<ResultField> results;
  std::vector<ResultField> states;
};

// An aggregation. The binding is written before the first Arrow batch of appenders.
struct AggregateState : SinkState {
  static constexpr const char* kArgument = "aggregate";

  GroupHints hints;  // each makes the sink anew
  BatchTypes input;
  BatchTypes states;
  ColumnBinding states_by_position;
  std::optional<GroupBinding> binding;

  std::shared_ptr<HashAggregate> aggregate() const { return std::static_pointer_cast<HashAggregate>(sink); }
  const BatchTypes& types(RowKind kind) const { return kind == RowKind::kInput ? input : states; }
};

// Adds a host's vectors. Nothing of them is kept.
absl::Status AddHostBatch(const AggregateState& state, const SinkInput& input, const quern_batch& batch, RowKind kind);

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

struct quern_aggregate_appender : quern::c_abi::AppenderHandle<quern::c_abi::AggregateState> {
  using AppenderHandle::AppenderHandle;
};

struct quern_groups {
  quern_groups(std::shared_ptr<quern::c_abi::AggregateState> aggregate_state, quern::GroupColumns columns,
               const quern::c_abi::GroupShare& share, std::vector<quern::ColumnType> types, uint64_t batch_rows)
      : state(std::move(aggregate_state)),
        reader(state->aggregate(), columns, share.partition, share.num_partitions),
        output(std::move(types), batch_rows, state->budget) {}

  std::shared_ptr<quern::c_abi::AggregateState> state;
  quern::GroupReader reader;
  quern::OutputBatch output;
  std::vector<quern_column> result_columns;
  quern::c_abi::ReadState read_state = quern::c_abi::ReadState::kRunning;
};

#endif  // QUERN_HOSTS_C_AGGREGATE_HANDLES_H_
