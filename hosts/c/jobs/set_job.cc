// SPDX-License-Identifier: Apache-2.0
// Set operations as jobs:
//
//     LEFT, RIGHT, STATES ─> HashAggregate (a sink) ─ all work done ─> ROWS or STATES
//
// Rows of both sides may come in any order, on any threads. States are groups with what they know of their rows on
// either side (runtime/spec/set_spec.h); they are added on another machine, or in another job of the same spec.
#include <algorithm>
#include <string>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/jobs/group_job.h"
#include "runtime/aggregate/set_operation.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

constexpr const char* kInputs = "QUERN_PORT_LEFT, QUERN_PORT_RIGHT or QUERN_PORT_STATES";
constexpr const char* kOutputs = "QUERN_PORT_ROWS or QUERN_PORT_STATES";

// The fields of states behind the keys.
std::vector<const char*> StateNames(SetKind kind) {
  switch (kind) {
    case SetKind::kUnion: break;
    case SetKind::kIntersect:
    case SetKind::kExcept: return {"sides"};
    case SetKind::kExceptAll: return {"difference"};
    case SetKind::kIntersectAll: return {"left", "right"};
  }
  return {};
}

class SideInput final : public JobInput {
 public:
  SideInput(std::unique_ptr<JobInput> rows, std::shared_ptr<SideColumns> columns, SetSide side)
      : rows_(std::move(rows)), columns_(std::move(columns)), side_(side) {}

  absl::Status CheckOpen(const char* call) const override { return rows_->CheckOpen(call); }
  absl::Status Append(const BatchView& batch, uint64_t* taken_rows) override {
    QUERN_ASSIGN_OR_RETURN(const BatchView with, columns_->With(batch, side_));
    return rows_->Append(with, taken_rows);
  }
  bool needs_rest() const override { return rows_->needs_rest(); }
  absl::Status Finish() override { return rows_->Finish(); }
  void LoseRows() override { rows_->LoseRows(); }
  uint64_t num_groups() const override { return rows_->num_groups(); }

 private:
  const std::unique_ptr<JobInput> rows_;
  const std::shared_ptr<SideColumns> columns_;
  const SetSide side_;
};

class SetJob final : public GroupJob {
 public:
  SetJob(const SetSpec& spec, const CompiledKernel& compiled, const quern_job_options& options, const GroupHints& hints)
      : GroupJob(compiled, options, hints, "set operation"),
        spec_(spec),
        columns_(std::make_shared<SideColumns>(spec, budget)) {
    BatchTypes types;
    for (const KeySpec& key : spec_.keys) types.keys.push_back(key.type);
    ports.reserve(3);
    ports.push_back({QUERN_PORT_LEFT, "left", types});
    ports.push_back({QUERN_PORT_RIGHT, "right", types});
    ports.push_back(StatesPort(GroupsOf(spec_)));
  }

  absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& /*options*/) override {
    if (FindPort(port) == nullptr) return NoSuchPort(port, kInputs);
    if (port == QUERN_PORT_STATES) return NewSinkInput(RowKind::kStates);
    const SetSide side = port == QUERN_PORT_LEFT ? SetSide::kLeft : SetSide::kRight;
    return std::make_unique<SideInput>(NewSinkInput(RowKind::kInput), columns_, side);
  }

  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override {
    if (port != QUERN_PORT_ROWS && port != QUERN_PORT_STATES) return NoSuchPort(port, kOutputs);
    QUERN_RETURN_IF_ERROR(CheckDone());
    if (port == QUERN_PORT_STATES) {
      return std::make_unique<GroupOutput>(groups(), GroupColumns::kStates, AggregateStateTypes(GroupsOf(spec_)),
                                           options, budget);
    }
    return std::make_unique<GroupOutput>(groups(), GroupColumns::kKeys, SetOutputTypes(spec_), options, budget,
                                         CopiesOf(spec_.kind));
  }

  bool HasPartitions(quern_port port) const override { return port == QUERN_PORT_LEFT || port == QUERN_PORT_RIGHT; }
  absl::Status CheckBindings() const override {
    const std::optional<PortBinding>&left = FindPort(QUERN_PORT_LEFT)->binding,
          &right = FindPort(QUERN_PORT_RIGHT)->binding;
    if (!left || !right) return absl::OkStatus();
    for (size_t i = 0; i < spec_.keys.size(); ++i)
      QUERN_RETURN_IF_ERROR(CheckSameUnit({left->keys[i], "left"}, {right->keys[i], "right"}, "keys", i));
    return absl::OkStatus();
  }

  // Columns have the names of the left side.
  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override {
    if (port != QUERN_PORT_ROWS && port != QUERN_PORT_STATES) return NoSuchPort(port, kOutputs);
    const std::vector<ColumnType> types = SetOutputTypes(spec_);
    std::vector<ResultField> fields;
    for (const BoundField& key : FindPort(QUERN_PORT_LEFT)->binding->keys) {
      const ColumnType& type = types[fields.size()];
      fields.push_back(FieldOf(key, type, "", type.nullable));
    }
    if (port == QUERN_PORT_STATES)
      for (const char* name : StateNames(spec_.kind)) fields.push_back({name, "z", false});
    return fields;
  }

 private:
  const SetSpec& spec_;  // of the kernel
  const std::shared_ptr<SideColumns> columns_;
};

}  // namespace

NewJobResult NewJob(const SetSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  QUERN_ASSIGN_OR_RETURN(const GroupHints hints, HintsOf(options, spec.keys.size()));
  return std::make_shared<SetJob>(spec, compiled, options, hints);
}

}  // namespace quern::c_abi
