// SPDX-License-Identifier: Apache-2.0
// What a host does with a kernel of each operator, in batches of 64 Ki rows. Example: with `join.inner keys=i64
// build=i64` and 100,000 rows the build side is one batch of 10,000 rows, the probe side two batches of 65,536 and
// 34,464. Both sides draw their keys from 10,000 values, so a probe row finds one build row on average.
#include "bench/common/any_job.h"

#include <algorithm>
#include <vector>

#include "bench/common/append_rows.h"
#include "runtime/aggregate/set_operation.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"

namespace quern::bench {
namespace {

constexpr uint64_t kOutputRows = uint64_t{1} << 14;

std::vector<ColumnType> TypesOf(const std::vector<KeySpec>& keys) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  return types;
}

void AddLeafTypes(const Predicate& predicate, std::vector<ColumnType>* types) {
  if (predicate.children.empty()) types->push_back(predicate.column);
  if (predicate.kind == PredicateKind::kCompareColumns) types->push_back(predicate.other);
  for (const Predicate& child : predicate.children) AddLeafTypes(child, types);
}

// The columns of the input, and of a join's build side.
struct InputTypes {
  std::vector<ColumnType> keys, payload, build_payload;
};

InputTypes TypesOf(const JoinSpec& spec) { return {TypesOf(spec.keys), spec.probe, spec.build}; }
InputTypes TypesOf(const AggregationSpec& spec) { return {TypesOf(spec.keys), AggregateInputTypes(spec), {}}; }
InputTypes TypesOf(const SetSpec& spec) { return {TypesOf(spec.keys), {}, {}}; }
InputTypes TypesOf(const SortSpec& spec) { return {TypesOf(spec.keys), spec.payload, {}}; }
InputTypes TypesOf(const FilterSpec& spec) {
  InputTypes types;
  AddLeafTypes(spec.where, &types.keys);
  return types;
}

InputTypes TypesOf(const MapSpec& spec) { return {MapInputTypes(spec), {}, {}}; }

template <class Take>
absl::Status ForBatches(uint64_t num_rows, Take take) {
  for (uint64_t at = 0; at < num_rows; at += kBatchRows)
    QUERN_RETURN_IF_ERROR(take(at, std::min(kBatchRows, num_rows - at)));
  return absl::OkStatus();
}

absl::Status AppendAll(const AnyInput& input, const std::shared_ptr<Sink>& sink) {
  return AppendRows(sink, input.num_rows(), /*threads=*/1,
                    [&](uint64_t at, uint64_t rows) { return input.Batch(at, rows); });
}

template <class Reader>
absl::Status ReadAll(Reader* reader, OutputBatch* out, uint64_t* rows_out) {
  for (bool more = true; more;) {
    QUERN_ASSIGN_OR_RETURN(more, reader->Next(out));
    *rows_out += out->num_rows();
  }
  return absl::OkStatus();
}

uint64_t OutputRows(const AnyInput& input) { return std::clamp<uint64_t>(input.num_rows(), 1, kOutputRows); }

absl::StatusOr<uint64_t> Run(const JoinSpec& spec, const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  const auto budget = std::make_shared<MemoryBudget>();
  const std::shared_ptr<HashJoin> join = MakeHashJoin(kernel, budget);
  QUERN_RETURN_IF_ERROR(AppendRows(join, input.build_rows(), /*threads=*/1,
                                   [&](uint64_t at, uint64_t rows) { return input.BuildBatch(at, rows); }));
  QUERN_RETURN_IF_ERROR(join->Finalise());
  JoinProber prober(join);
  OutputBatch out(JoinOutputTypes(spec), OutputRows(input), budget);
  uint64_t rows_out = 0;
  const auto probe = [&](uint64_t at, uint64_t rows) -> absl::Status {
    QUERN_RETURN_IF_ERROR(prober.SetInput(input.Batch(at, rows)));
    return ReadAll(&prober, &out, &rows_out);
  };
  QUERN_RETURN_IF_ERROR(ForBatches(input.num_rows(), probe));
  return rows_out;
}

absl::StatusOr<uint64_t> Run(const AggregationSpec& spec, const std::shared_ptr<const Kernel>& kernel,
                             const AnyInput& input) {
  const auto budget = std::make_shared<MemoryBudget>();
  const std::shared_ptr<HashAggregate> aggregate = MakeHashAggregate(kernel, budget);
  QUERN_RETURN_IF_ERROR(AppendAll(input, aggregate));
  QUERN_RETURN_IF_ERROR(aggregate->Finalise());
  GroupReader reader(aggregate);
  OutputBatch out(AggregateOutputTypes(spec), OutputRows(input), budget);
  uint64_t rows_out = 0;
  QUERN_RETURN_IF_ERROR(ReadAll(&reader, &out, &rows_out));
  return rows_out;
}

// Every other batch is of the right side.
absl::StatusOr<uint64_t> Run(const SetSpec& spec, const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  const auto budget = std::make_shared<MemoryBudget>();
  const std::shared_ptr<HashAggregate> groups = MakeHashAggregate(kernel, budget);
  SideColumns sides(spec, budget);
  QUERN_RETURN_IF_ERROR(ForBatches(input.num_rows(), [&](uint64_t at, uint64_t rows) -> absl::Status {
    const SetSide side = at / kBatchRows % 2 == 0 ? SetSide::kLeft : SetSide::kRight;
    QUERN_ASSIGN_OR_RETURN(const BatchView batch, sides.With(input.Batch(at, rows), side));
    return groups->Append(batch);
  }));
  QUERN_RETURN_IF_ERROR(groups->Finalise());
  GroupReader reader(groups, GroupColumns::kKeys);
  reader.SetCopies(CopiesOf(spec.kind));
  OutputBatch out(SetOutputTypes(spec), OutputRows(input), budget);
  uint64_t rows_out = 0;
  QUERN_RETURN_IF_ERROR(ReadAll(&reader, &out, &rows_out));
  return rows_out;
}

absl::StatusOr<uint64_t> Run(const SortSpec& spec, const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  const auto budget = std::make_shared<MemoryBudget>();
  const std::shared_ptr<RowSort> sort = MakeRowSort(kernel, budget);
  QUERN_RETURN_IF_ERROR(AppendAll(input, sort));
  QUERN_RETURN_IF_ERROR(sort->Finalise());
  SortReader reader(sort);
  OutputBatch out(SortOutputTypes(spec), OutputRows(input), budget);
  uint64_t rows_out = 0;
  QUERN_RETURN_IF_ERROR(ReadAll(&reader, &out, &rows_out));
  return rows_out;
}

absl::StatusOr<uint64_t> Run(const FilterSpec&, const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  const std::shared_ptr<RowFilter> filter = MakeRowFilter(kernel);
  std::vector<uint8_t> bits(kBatchRows / 8);
  uint64_t rows_out = 0;
  QUERN_RETURN_IF_ERROR(ForBatches(input.num_rows(), [&](uint64_t at, uint64_t rows) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const uint64_t passed, filter->Mask(input.Batch(at, rows), bits.data()));
    rows_out += passed;
    return absl::OkStatus();
  }));
  return rows_out;
}

absl::StatusOr<uint64_t> Run(const MapSpec& spec, const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  const auto budget = std::make_shared<MemoryBudget>();
  MapReader reader(MakeRowMapper(kernel), budget);
  OutputBatch out(MapOutputTypes(spec), OutputRows(input), budget);
  uint64_t rows_out = 0;
  QUERN_RETURN_IF_ERROR(ForBatches(input.num_rows(), [&](uint64_t at, uint64_t rows) -> absl::Status {
    QUERN_RETURN_IF_ERROR(reader.SetInput(input.Batch(at, rows)));
    return ReadAll(&reader, &out, &rows_out);
  }));
  return rows_out;
}

}  // namespace

AnyInput::AnyInput(const KernelSpec& spec, uint64_t num_rows)
    : spec_(spec), num_rows_(num_rows), build_rows_(Is<JoinSpec>(spec) ? std::max<uint64_t>(num_rows / 10, 1) : 0) {
  const uint64_t distinct = std::max<uint64_t>(num_rows / 10, 4);
  const InputTypes types = std::visit([](const auto& of) { return TypesOf(of); }, spec);
  keys_ = std::make_unique<AnyTable>(types.keys, num_rows, distinct);
  payload_ = std::make_unique<AnyTable>(types.payload, num_rows, distinct);
  build_keys_ = std::make_unique<AnyTable>(types.keys, build_rows_, distinct);
  build_payload_ = std::make_unique<AnyTable>(types.build_payload, build_rows_, distinct);
}

BatchView AnyInput::Batch(uint64_t first, uint64_t rows) const {
  BatchView batch;
  batch.keys = keys_->From(first);
  batch.payload = payload_->From(first);
  batch.num_rows = rows;
  return batch;
}

BatchView AnyInput::BuildBatch(uint64_t first, uint64_t rows) const {
  BatchView batch;
  batch.keys = build_keys_->From(first);
  batch.payload = build_payload_->From(first);
  batch.num_rows = rows;
  return batch;
}

absl::StatusOr<uint64_t> RunAny(const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  return std::visit([&](const auto& spec) { return Run(spec, kernel, input); }, input.spec());
}

}  // namespace quern::bench
