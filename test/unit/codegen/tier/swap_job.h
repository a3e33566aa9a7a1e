// SPDX-License-Identifier: Apache-2.0
// Jobs that start on the generic kernel and continue on the compiled one from a chosen moment, and their results, to
// the bit.
//
//     SwapJob job("join.left keys=i64,utf8 build=f64", {{"batch_size", "8"}});
//     Lines before = job.Run(kNever);       // everything on the generic kernel
//     Lines swapped = job.Run(17);          // the 18th call of the generic kernel publishes the compiled one
#ifndef QUERN_TEST_UNIT_CODEGEN_TIER_SWAP_JOB_H_
#define QUERN_TEST_UNIT_CODEGEN_TIER_SWAP_JOB_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "codegen/tier/tier.h"
#include "ir-templates/generic/generic_aggregate.h"
#include "ir-templates/generic/generic_filter.h"
#include "ir-templates/generic/generic_join.h"
#include "ir-templates/generic/generic_sort.h"
#include "runtime/aggregate/set_operation.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/filter/filter_maker.h"

namespace quern::test {

inline constexpr int64_t kNever = -1;

// Counts a job's calls of the generic kernel and publishes at one of them. One thread at a time.
struct SwapMoment {
  int64_t at_call = kNever;
  int64_t num_calls = 0;
  std::function<void()> publish;
};
inline SwapMoment& Moment() {
  static SwapMoment moment;
  return moment;
}

template <class EntryPoints>
const EntryPoints& GenericEntryPoints();
template <>
inline const QuernJoinEntryPoints& GenericEntryPoints() {
  static const QuernJoinEntryPoints kernel = GenericJoinKernel();
  return kernel;
}
template <>
inline const QuernAggregateEntryPoints& GenericEntryPoints() {
  static const QuernAggregateEntryPoints kernel = GenericAggregateKernel();
  return kernel;
}
template <>
inline const QuernSortEntryPoints& GenericEntryPoints() {
  static const QuernSortEntryPoints kernel = GenericSortKernel();
  return kernel;
}
template <>
inline const QuernFilterEntryPoints& GenericEntryPoints() {
  static const QuernFilterEntryPoints kernel = GenericFilterKernel();
  return kernel;
}

template <>
inline const QuernMapEntryPoints& GenericEntryPoints() {
  static const QuernMapEntryPoints kernel = GenericMapKernel();
  return kernel;
}

// An entry point of the generic kernel that counts its calls.
template <class EntryPoints, auto kField>
struct Counted;
template <class EntryPoints, class Result, class... Args, Result (*EntryPoints::*kField)(Args...)>
struct Counted<EntryPoints, kField> {
  static Result Call(Args... args) {
    if (Moment().num_calls++ == Moment().at_call) Moment().publish();
    return (GenericEntryPoints<EntryPoints>().*kField)(args...);
  }
};

inline QuernJoinEntryPoints CountedLike(const QuernJoinEntryPoints&) {
  return {
#define QUERN_JOIN_ENTRY(field, result, parameters) Counted<QuernJoinEntryPoints, &QuernJoinEntryPoints::field>::Call,
#include "runtime/abi/join_entry_points.def"
  };
}
inline QuernAggregateEntryPoints CountedLike(const QuernAggregateEntryPoints&) {
  return {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) \
  Counted<QuernAggregateEntryPoints, &QuernAggregateEntryPoints::field>::Call,
#include "runtime/abi/aggregate_entry_points.def"
  };
}
inline QuernSortEntryPoints CountedLike(const QuernSortEntryPoints&) {
  return {
#define QUERN_SORT_ENTRY(field, result, parameters) Counted<QuernSortEntryPoints, &QuernSortEntryPoints::field>::Call,
#include "runtime/abi/sort_entry_points.def"
  };
}
inline QuernFilterEntryPoints CountedLike(const QuernFilterEntryPoints&) {
  return {Counted<QuernFilterEntryPoints, &QuernFilterEntryPoints::mask>::Call};
}
inline QuernMapEntryPoints CountedLike(const QuernMapEntryPoints&) {
  return {Counted<QuernMapEntryPoints, &QuernMapEntryPoints::rows>::Call};
}

// Calls are counted only in jobs of one thread.
enum class Calls : uint8_t { kCounted, kNotCounted };

// A tier whose compiled kernel exists from the start and is published when a test requests it.
class TestTier : public KernelTier {
 public:
  explicit TestTier(std::shared_ptr<const Kernel> compiled, const std::shared_ptr<RowMeter>& meter = nullptr,
                    Calls calls = Calls::kCounted)
      : compiled_(std::move(compiled)) {
    const bool counts = calls == Calls::kCounted;
    std::visit(
        [&]<class Spec>(const OperatorKernel<Spec>& of) {
          using EntryPoints = typename OperatorTraits<Spec>::EntryPoints;
          const EntryPoints first = counts ? CountedLike(of.entry_points) : OperatorTraits<Spec>::Generic();
          slot_ = Slot<Spec>{std::make_shared<EntrySlot<EntryPoints>>(first, meter)};
        },
        compiled_->of);
  }
  std::shared_ptr<const Kernel> Compiled() const override { return compiled_; }
  CacheOutcome cache() const override { return CacheOutcome::kOff; }
  std::string Failure() const override { return ""; }
  void Expect(uint64_t) override {}

  void Publish() {
    std::visit(
        [&]<class Spec>(const OperatorKernel<Spec>& of) {
          std::get<Slot<Spec>>(slot_).slot->Publish(of.entry_points, compiled_);
        },
        compiled_->of);
  }

 private:
  std::shared_ptr<const Kernel> compiled_;
};

// The two kernels of one spec.
struct BothKernels {
  std::shared_ptr<const Kernel> generic, compiled;

  explicit BothKernels(const std::string& spec, const PlanOverrides& overrides = {}) {
    for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
      CompileOptions options;
      options.engine = engine;
      options.overrides = overrides;
      const auto kernel = CompileText(spec, options);
      EXPECT_TRUE(kernel.ok()) << spec << ": " << kernel.status();
      if (kernel.ok()) (engine == Engine::kJit ? compiled : generic) = kernel->kernel;
    }
  }
  bool ok() const { return generic != nullptr && compiled != nullptr; }

  // The generic kernel with a tier.
  std::shared_ptr<const Kernel> With(std::shared_ptr<TestTier> tier) const {
    auto kernel = std::make_shared<Kernel>(*generic);
    kernel->tier = std::move(tier);
    return kernel;
  }
};

// Columns with few distinct values, so that keys match and rows have equal keys; the order of summands shows in the
// last bits of their sums.
class SwapColumns {
 public:
  explicit SwapColumns(uint64_t seed) : maker_(seed) {}

  FilterColumns Make(const std::vector<ColumnType>& types, uint32_t num_rows, uint64_t distinct) {
    FilterColumns columns;
    for (const ColumnType& type : types) {
      std::vector<FilterCell> cells(num_rows);
      for (FilterCell& cell : cells) cell = Cell(type, distinct);
      columns.push_back(type.id == TypeId::kRowId ? std::make_unique<FilterColumn>()
                                                  : MakeFilterColumn(type, std::move(cells), Guard::kBehind));
    }
    return columns;
  }

 private:
  FilterCell Cell(const ColumnType& type, uint64_t distinct) {
    FilterCell cell;
    cell.is_null = type.nullable && maker_.Below(6) == 0;
    const uint64_t value = maker_.Below(distinct);
    cell.number = static_cast<__int128>(type.id == TypeId::kBool ? value % 2 : value % 127);
    cell.real = static_cast<double>(value) * 0.1 - 3;
    cell.text = "key " + std::to_string(value % 50);
    if (value % 3 == 0) cell.text += " and what no tuple holds itself, nor a word";
    if (value % 5 == 0) cell.text += " ";
    if (RowOf(type.id).storage == kFixed) cell.text.resize(type.width_bytes, 'x');
    return cell;
  }

  FilterMaker maker_;
};

// A batch that keeps its columns alive.
inline BatchView ViewOf(const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload, uint32_t num_rows,
                        uint64_t distinct, uint64_t seed) {
  struct Owner {
    FilterColumns keys, payload;
    std::vector<uint32_t> selection;
  };
  SwapColumns maker(seed);
  const auto owner = std::make_shared<Owner>();
  owner->keys = maker.Make(keys, num_rows, distinct);
  owner->payload = maker.Make(payload, num_rows, 1000);
  BatchView batch;
  for (const auto& column : owner->keys) batch.keys.push_back(column->column);
  for (const auto& column : owner->payload) batch.payload.push_back(column->column);
  batch.num_rows = num_rows;
  if (seed % 2 == 1) {  // every other batch has a selection
    for (uint32_t row = 0; row < num_rows; ++row)
      if (row % 5 != 2) owner->selection.push_back(row);
    batch.selection = owner->selection.data();
    batch.num_rows = owner->selection.size();
  }
  batch.owner = owner;
  return batch;
}

inline std::vector<ColumnType> TypesOf(std::span<const KeySpec> keys) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  return types;
}

// Rows of an output batch with the bits of their floating-point numbers.
inline void AddBits(const OutputBatch& out, Lines* lines) {
  for (uint64_t row = 0; row < out.num_rows(); ++row) {
    std::string line;
    for (size_t c = 0; c < out.num_columns(); ++c) {
      const bool is_null = out.column(c).validity != nullptr && !blocks::Bit(out.column(c).validity, row);
      const TypeId id = out.type(c).id;
      line += c == 0 ? "" : "|";
      if (id == TypeId::kF64 && !is_null) line += std::to_string(blocks::LoadAt<uint64_t>(out.column(c).values, row));
      else if (id == TypeId::kF32 && !is_null)
        line += std::to_string(blocks::LoadAt<uint32_t>(out.column(c).values, row));
      else line += CellOf(out.column(c), out.type(c), row);
    }
    lines->push_back(std::move(line));
  }
}

// All rows of a reader, prober or merger from calls of next(&out), in order.
template <class Next>
void AddAll(const std::vector<ColumnType>& types, uint64_t capacity, Next&& next, Lines* lines) {
  OutputBatch out(types, capacity, nullptr);
  for (bool more = true; more;) {
    const absl::StatusOr<bool> answer = next(&out);
    ASSERT_TRUE(answer.ok()) << answer.status();
    AddBits(out, lines);
    more = *answer;
  }
}

// A job of a spec, always on the same rows. `capacity`: that of the result batches, so small that calls end in the
// middle of a kernel's batch.
class SwapJob {
 public:
  SwapJob(const std::string& spec, const PlanOverrides& overrides, uint32_t num_rows = 60, uint64_t distinct = 40)
      : kernels(spec, overrides), num_rows_(num_rows), distinct_(distinct) {}

  // Before the swap, at_call + 1 calls use the generic kernel; kNever: all.
  Lines Run(int64_t at_call, uint64_t capacity = 7) {
    tier_ = std::make_shared<TestTier>(kernels.compiled);
    Moment() = {at_call, 0, [this] { tier_->Publish(); }};
    return RunOn(kernels.With(tier_), capacity);
  }

  Lines RunOn(const std::shared_ptr<const Kernel>& kernel, uint64_t capacity) const {
    Lines lines;
    std::visit([&](const auto& spec) { RunSpec(spec, kernel, capacity, &lines); }, kernel->plan.spec);
    return lines;
  }

  const BothKernels kernels;

 private:
  void RunSpec(const JoinSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t capacity,
               Lines* lines) const {
    const auto join = MakeHashJoin(kernel, NoLimit());
    std::vector<ColumnType> build = spec.build, probe = spec.probe;
    for (const ResidualSpec& residual : spec.residual) {
      build.push_back(residual.type);
      probe.push_back(residual.type);
    }
    for (uint64_t seed = 0; seed < 3; ++seed)
      ASSERT_TRUE(join->Append(ViewOf(TypesOf(spec.keys), build, num_rows_, distinct_, seed)).ok());
    ASSERT_TRUE(join->Finalise().ok());
    JoinProber prober(join);
    const auto next = [&](OutputBatch* out) { return prober.Next(out); };
    for (uint64_t seed = 10; seed < 12; ++seed) {
      ASSERT_TRUE(prober.SetInput(ViewOf(TypesOf(spec.keys), probe, num_rows_, distinct_, seed)).ok());
      AddAll(JoinOutputTypes(spec), capacity, next, lines);
    }
    ASSERT_TRUE(prober.SetUnmatched().ok());
    AddAll(JoinOutputTypes(spec), capacity, next, lines);
  }

  // In two phases: the input of the second one is the states of the first one, and rows.
  void RunSpec(const AggregationSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t capacity,
               Lines* lines) const {
    const auto first = MakeHashAggregate(kernel, NoLimit()), second = MakeHashAggregate(kernel, NoLimit());
    const std::vector<ColumnType> inputs = AggregateInputTypes(spec.aggregates);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      ASSERT_TRUE(first->Append(ViewOf(TypesOf(spec.keys), inputs, num_rows_, distinct_, seed)).ok());
      ASSERT_TRUE(second->Append(ViewOf(TypesOf(spec.keys), inputs, num_rows_, 2 * distinct_, seed + 7)).ok());
    }
    ASSERT_TRUE(first->Finalise().ok());
    OutputBatch states(AggregateStateTypes(spec), 20, nullptr);
    GroupReader reader(first, GroupColumns::kStates);
    for (bool more = true; more;) {
      const absl::StatusOr<bool> next = reader.Next(&states);
      ASSERT_TRUE(next.ok()) << next.status();
      more = *next;
      BatchView batch;
      batch.num_rows = states.num_rows();
      for (size_t c = 0; c < states.num_columns(); ++c) {
        const QuernOutColumn& from = states.column(c);
        const void* const values = from.values != nullptr ? from.values : from.bytes;
        (c < spec.keys.size() ? batch.keys : batch.payload)
            .push_back({from.validity, values, from.offsets, &from.bytes, nullptr, 0});
      }
      ASSERT_TRUE(second->Append(batch, RowKind::kStates).ok());
    }
    ASSERT_TRUE(second->Finalise().ok());
    GroupReader groups(second);
    AddAll(AggregateOutputTypes(spec), capacity, [&](OutputBatch* out) { return groups.Next(out); }, lines);
  }

  // Batches of either side in turn.
  void RunSpec(const SetSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t capacity,
               Lines* lines) const {
    const auto groups = MakeHashAggregate(kernel, NoLimit());
    SideColumns sides(spec, NoLimit());
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const BatchView batch = ViewOf(TypesOf(spec.keys), {}, num_rows_, distinct_, seed);
      const absl::StatusOr<BatchView> with = sides.With(batch, seed % 2 == 0 ? SetSide::kLeft : SetSide::kRight);
      ASSERT_TRUE(with.ok() && groups->Append(*with).ok());
    }
    ASSERT_TRUE(groups->Finalise().ok());
    GroupReader reader(groups, GroupColumns::kKeys);
    reader.SetCopies(CopiesOf(spec.kind));
    AddAll(SetOutputTypes(spec), capacity, [&](OutputBatch* out) { return reader.Next(out); }, lines);
  }

  // Two sorts, and a merge of their results.
  void RunSpec(const SortSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t capacity,
               Lines* lines) const {
    const auto sort = MakeRowSort(kernel, NoLimit());
    for (uint64_t seed = 0; seed < 4; ++seed)
      ASSERT_TRUE(sort->Append(ViewOf(TypesOf(spec.keys), spec.payload, num_rows_, distinct_, seed)).ok());
    ASSERT_TRUE(sort->Finalise().ok());
    SortReader reader(sort);
    AddAll(SortOutputTypes(spec), capacity, [&](OutputBatch* out) { return reader.Next(out); }, lines);
    if (spec.window.empty()) Merge(spec, kernel, capacity, lines);
  }

  // Runs in which all keys are equal: sorted in any order.
  void Merge(const SortSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t capacity, Lines* lines) const {
    constexpr uint32_t kRuns = 3;
    std::vector<ColumnType> keys = TypesOf(spec.keys);
    for (ColumnType& key : keys) key.nullable = false;
    const auto merger = MakeRunMerger(kernel, NoLimit(), kRuns);
    std::vector<uint64_t> num_fed(kRuns);
    OutputBatch out(SortOutputTypes(spec), capacity, nullptr);
    for (MergeState state = MergeState::kRows; state != MergeState::kDone;) {
      const absl::StatusOr<MergeState> next = merger->Next(&out);
      ASSERT_TRUE(next.ok()) << next.status();
      state = *next;
      AddBits(out, lines);
      if (state != MergeState::kNeedsInput) continue;
      const uint32_t run = merger->needed_run();
      if (num_fed[run]++ == 2) {
        ASSERT_TRUE(merger->End(run).ok());
      } else {
        ASSERT_TRUE(merger->Input(run, ViewOf(keys, spec.payload, 20, 1, 2 * run)).ok());
      }
    }
  }

  void RunSpec(const FilterSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t, Lines* lines) const {
    const auto filter = MakeRowFilter(kernel);
    const std::vector<ColumnType> types = ColumnsOf(spec.where);
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const BatchView batch = ViewOf(types, {}, num_rows_ + static_cast<uint32_t>(seed), distinct_, seed);
      std::vector<uint32_t> rows(batch.num_rows);
      std::vector<uint8_t> bitmap((batch.num_rows + 7) / 8);
      const auto selected = filter->Select(batch, rows.data()), masked = filter->Mask(batch, bitmap.data()),
                 counted = filter->Count(batch);
      ASSERT_TRUE(selected.ok() && masked.ok() && counted.ok());
      lines->push_back(std::to_string(*selected) + " " + std::to_string(*masked) + " " + std::to_string(*counted));
      for (uint64_t i = 0; i < *selected; ++i) lines->push_back(std::to_string(rows[i]));
      for (const uint8_t byte : bitmap) lines->push_back(std::to_string(byte));
    }
  }

  void RunSpec(const MapSpec& spec, const std::shared_ptr<const Kernel>& kernel, uint64_t capacity,
               Lines* lines) const {
    MapReader reader(MakeRowMapper(kernel), NoLimit());
    for (uint64_t seed = 0; seed < 6; ++seed) {
      ASSERT_TRUE(reader.SetInput(ViewOf(MapInputTypes(spec), {}, num_rows_, distinct_, seed)).ok());
      AddAll(MapOutputTypes(spec), capacity, [&](OutputBatch* out) { return reader.Next(out); }, lines);
    }
  }

  const uint32_t num_rows_;
  const uint64_t distinct_;
  std::shared_ptr<TestTier> tier_;
};

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_CODEGEN_TIER_SWAP_JOB_H_
