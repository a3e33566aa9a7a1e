// SPDX-License-Identifier: Apache-2.0
// Sets of operators: where a plan parameter, a threshold or an adaptive gate has a meaning.
#ifndef QUERN_CODEGEN_PLAN_SCOPE_H_
#define QUERN_CODEGEN_PLAN_SCOPE_H_

#include <cstdint>

#include "runtime/rows/prefetch.h"
#include "runtime/spec/spec.h"

namespace quern {

// One bit for each operator, in the order of KernelSpec.
template <class Spec>
constexpr uint32_t kOperatorBit = 1u << KernelSpec(Spec()).index();

enum class Scope : uint32_t {
  kJoin = kOperatorBit<JoinSpec>,
  kAggregate = kOperatorBit<AggregationSpec> | kOperatorBit<SetSpec>,  // all that group rows
  kSort = kOperatorBit<SortSpec>,
  kFilter = kOperatorBit<FilterSpec>,
  kMap = kOperatorBit<MapSpec>,
  kBoth = kJoin | kAggregate,
  kRead = kBoth | kFilter,       // all that prefetch the columns they read in order
  kStored = kBoth | kSort,       // all that store rows
  kBatched = kStored | kFilter,  // all whose plan has a batch size
  kAll = kBatched | kMap,
  kPacked = 1u << 31,  // only where the keys fit one machine word
  kPackedJoin = kJoin | kPacked,
  kPackedAggregate = kAggregate | kPacked,
};

constexpr Scope operator|(Scope a, Scope b) {
  return static_cast<Scope>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
// The same operators, whatever their keys.
constexpr Scope OperatorsOf(Scope scope) {
  return static_cast<Scope>(static_cast<uint32_t>(scope) & ~static_cast<uint32_t>(Scope::kPacked));
}

bool IsIn(Scope scope, const KernelSpec& spec);

// Whether kernels of the spec's operator have the loop (for some types of keys).
bool HasLoop(const KernelSpec& spec, PrefetchLoop loop);

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_SCOPE_H_
