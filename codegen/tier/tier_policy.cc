// SPDX-License-Identifier: Apache-2.0
// A short job must not pay for a compilation, and a long one must not wait for it. Nobody knows how long a job will be
// unless the host says so. The rule is that of the ski rental problem: rent until the rents add up to the price.
//
//     rows = price of compiling / gain of a row        4 ms / 5 ns = 800,000 rows
//
// On a machine with a spare CPU the job does not pay that price. It loses a little, because both share memory and
// caches, and the result also serves the next job and, on disk, the next process. So a tenth of the price counts, but
// not before the job has run for as long as compiling takes, since such a job is likely to run for as long again: 4 ms
// at 10 ns a row are 400,000 rows. With one CPU, the job pays the whole price.
//
// With expected_rows the question is whether the compiled kernel will be ready for enough of the rows. If compiling
// takes 4 ms while the job runs at 10 ns a row, it will be ready for all but the first 400,000. With a million rows to
// come, 600,000 of them gain 3 ms.
//
// If a row gains less than a fiftieth of its time, nothing is compiled: the estimate is not that accurate, and nobody
// would notice the gain.
//
// The estimates are linear in the columns of a spec, and rough: they need to be right within a factor of two.
// `never_slower --benchmark_filter=speeds` prints them beside measured times. The estimate of compile time is corrected
// by the compilations of this process.
#include "codegen/tier/tier_policy.h"

#include <algorithm>
#include <cmath>

#include "codegen/tier/compile_queue.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/thresholds.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using thresholds::kDiskLookNs, thresholds::kFirstCompilationMs, thresholds::kLeastGain, thresholds::kLoadMs,
    thresholds::kSpareCpuShare;

bool IsString(const ColumnType& type) { return IsVariable(RowOf(type.id).storage); }

// The costs that the columns of one role add.
struct ColumnCosts {
  double compile_ms, generic_ns, gain_ns;
};

void Add(const ColumnCosts& column, double count, KernelCosts* costs) {
  costs->compile_ms += column.compile_ms * count;
  costs->generic_ns += column.generic_ns * count;
  costs->gain_ns += column.gain_ns * count;
}

void AddColumns(const std::vector<ColumnType>& columns, const ColumnCosts& word, const ColumnCosts& text,
                KernelCosts* costs) {
  for (const ColumnType& column : columns) Add(IsString(column) ? text : word, 1, costs);
}

void AddKeys(const std::vector<KeySpec>& keys, const ColumnCosts& word, const ColumnCosts& text, KernelCosts* costs) {
  for (const KeySpec& key : keys) Add(IsString(key.type) ? text : word, 1, costs);
}

// Whether the key is one machine word: hash tables of such keys are not compiled, nor are their comparisons.
bool IsOneWord(const std::vector<KeySpec>& keys) {
  return keys.empty() || (keys.size() == 1 && !IsString(keys[0].type));
}

KernelCosts CostsOf(const JoinSpec& spec) {
  KernelCosts costs = IsOneWord(spec.keys) ? KernelCosts{2.2, 8, 0.4} : KernelCosts{6, 8, 2};
  AddKeys(spec.keys, {1.0, 2, 0.3}, {3.0, 15, 4}, &costs);
  AddColumns(spec.build, {0.9, 1.5, 0.5}, {1.5, 6, 1}, &costs);
  AddColumns(spec.probe, {0.9, 1.5, 0.5}, {1.5, 6, 1}, &costs);
  Add({1.0, 3, 1}, static_cast<double>(spec.residual.size()), &costs);
  return costs;
}

// Every part of an expression.
KernelCosts CostsOf(const MapSpec& spec) {
  KernelCosts costs = {3, 0.2, 0.1};
  for (const Expression& result : spec.results) Add({0.6, 0.5, 0.4}, static_cast<double>(SizeOf(result)), &costs);
  return costs;
}

KernelCosts CostsOf(const AggregationSpec& spec) {
  KernelCosts costs = IsOneWord(spec.keys) ? KernelCosts{2, 8, 2} : KernelCosts{4.5, 12, 2};
  AddKeys(spec.keys, {1.0, 5, 1}, {3.5, 14, 4}, &costs);
  for (const AggregateSpec& aggregate : spec.aggregates) {
    const bool has_text = std::any_of(aggregate.arguments.begin(), aggregate.arguments.end(), IsString);
    Add(has_text ? ColumnCosts{1.0, 10, 0.3} : ColumnCosts{0.9, 1.5, 1}, 1, &costs);
  }
  if (const MapSpec computed = ComputedArguments(spec); !computed.results.empty()) {
    const KernelCosts map = CostsOf(computed);
    Add({map.compile_ms, map.generic_ns, map.gain_ns}, 1, &costs);
  }
  return costs;
}

KernelCosts CostsOf(const SetSpec& spec) { return CostsOf(GroupsOf(spec)); }

// Sorting takes most of the time and is the same for all specs. With a limit, rows are encoded, tested and dropped.
KernelCosts CostsOf(const SortSpec& spec) {
  const bool is_top = spec.limit != 0;
  KernelCosts costs = {1.5, is_top ? 0.2 : 8, 0};
  AddKeys(spec.keys, is_top ? ColumnCosts{3, 0.7, 0.4} : ColumnCosts{3, 12, 0.15},
          is_top ? ColumnCosts{6, 5, 0.2} : ColumnCosts{6, 25, 0}, &costs);
  for (const ColumnType& column : spec.payload) {
    if (column.id == TypeId::kRowId) continue;
    Add(IsString(column) ? ColumnCosts{1.5, 6, 0.3} : ColumnCosts{0.5, 2, 0.3}, 1, &costs);
  }
  return costs;
}

void AddLeaves(const Predicate& predicate, KernelCosts* costs) {
  for (const Predicate& child : predicate.children) AddLeaves(child, costs);
  switch (predicate.kind) {
    case PredicateKind::kAnd:
    case PredicateKind::kOr:
    case PredicateKind::kNot: return;
    case PredicateKind::kLike: return Add({7.5, 12, 4}, 1, costs);
    case PredicateKind::kCompare:
    case PredicateKind::kCompareColumns:
    case PredicateKind::kBetween:
    case PredicateKind::kIn:
    case PredicateKind::kIsNull:
      return Add(IsString(predicate.column) ? ColumnCosts{6.5, 2, 0.5} : ColumnCosts{1.1, 0.5, 0.33}, 1, costs);
  }
}

KernelCosts CostsOf(const FilterSpec& spec) {
  KernelCosts costs = {4, 0.1, 0};
  AddLeaves(spec.where, &costs);
  return costs;
}

uint64_t AsRows(double rows) { return rows < 1e18 ? static_cast<uint64_t>(std::ceil(std::max(rows, 1.0))) : kNever; }

}  // namespace

KernelCosts EstimateCosts(const KernelSpec& spec) {
  return std::visit([](const auto& of) { return CostsOf(of); }, spec);
}

TierPolicy& TierPolicy::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static auto* policy = new TierPolicy(NumUsableCpus());
  return *policy;
}

double TierPolicy::CompileMs(const KernelCosts& costs) const {
  const double first_ms = num_compiled_.load(std::memory_order_relaxed) == 0 ? kFirstCompilationMs : 0;
  return first_ms + costs.compile_ms * correction_.load(std::memory_order_relaxed);
}

uint64_t TierPolicy::RowsThatPay(const KernelCosts& costs, double ms) const {
  if (costs.gain_ns <= kLeastGain * costs.generic_ns) return kNever;
  const double share = num_cpus_ > 1 ? kSpareCpuShare : 1;
  return AsRows(ms * 1e6 * share / costs.gain_ns);
}

uint64_t TierPolicy::RowsBeforeCompiling(const KernelCosts& costs) const {
  const double ms = CompileMs(costs);
  return std::max(RowsThatPay(costs, ms), AsRows(ms * 1e6 / costs.generic_ns));
}

uint64_t TierPolicy::RowsBeforeLooking(const KernelCosts& costs) const {
  const uint64_t rows = std::max(RowsThatPay(costs, kLoadMs), AsRows(kDiskLookNs / costs.generic_ns));
  return std::min(rows, RowsBeforeCompiling(costs));
}

bool TierPolicy::Pays(const KernelCosts& costs, uint64_t rows_to_come, bool is_on_disk) const {
  const double ms = is_on_disk ? kLoadMs : CompileMs(costs);
  const uint64_t enough = RowsThatPay(costs, ms);
  if (enough == kNever) return false;
  // On one CPU the job stands still during compilation and misses no rows.
  const double missed = num_cpus_ > 1 ? ms * 1e6 / costs.generic_ns : 0;
  return static_cast<double>(rows_to_come) >= missed + static_cast<double>(enough);
}

// The latest compilation counts a quarter, so that one that had to wait for its CPU does not decide. An update lost
// between two threads is harmless.
void TierPolicy::Learn(const KernelCosts& costs, double measured_ms) {
  if (num_compiled_.fetch_add(1, std::memory_order_relaxed) == 0 || costs.compile_ms <= 0) return;
  const double ratio = std::clamp(measured_ms / costs.compile_ms, 0.1, 10.0);
  correction_.store(0.75 * correction_.load(std::memory_order_relaxed) + 0.25 * ratio, std::memory_order_relaxed);
}

}  // namespace quern
