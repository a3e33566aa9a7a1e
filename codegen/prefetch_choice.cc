// SPDX-License-Identifier: Apache-2.0
// Example: latency 90 ns, 6 ns a line where many are under way: 15 lines cover the latency, and 64 rows ahead is the power of two at four
// times as many.
#include "codegen/prefetch_choice.h"

#include <algorithm>
#include <bit>

#include "codegen/profile.h"
#include "runtime/aggregate_shape.h"
#include "runtime/tuple_layout.h"

namespace quern {
namespace {

constexpr uint32_t kNumClasses = kLargestSizeClass - kSmallestSizeClass + 1;

bool HasVariable(const ColumnType& type) { return !type.is_dictionary && IsVariable(RowOf(type.id).storage); }

uint64_t BytesOf(uint32_t size_class) { return uint64_t{1} << size_class; }

// Where asking begins to pay. Words of groups are looked for eight at a time, none of which waits for another: that gains by prefetching
// only from a quarter of the L3 cache on (100,000 groups of 32 bytes: 6.7 ns a row without, 7.1 with; 300,000: 13.5 and 9.9; `agg_bench
// --benchmark_filter=groups`).
uint64_t GateBytes(PrefetchLoop loop, const MemoryModel& model) {
  const bool is_words_of_groups = loop == PrefetchLoop::kUpdateDense || loop == PrefetchLoop::kUpdateOpen;
  return is_words_of_groups ? std::max(model.l2_bytes, model.l3_bytes / 4) : model.l2_bytes;
}

}  // namespace

const char* KeyClassText(KeyClass keys) {
  switch (keys) {
    case KeyClass::kWord: return "word";
    case KeyClass::kFixed: return "fixed";
    case KeyClass::kString: return "string";
  }
  return "fixed";
}

KeyClass KeyClassOf(const KernelSpec& spec) {
  std::vector<KeySpec> kernel_keys;
  bool has_variable = false;
  for (const KeySpec& key : spec.keys) {
    kernel_keys.push_back(KernelKey(key));
    has_variable |= HasVariable(key.type);
  }
  if (spec.op == Operator::kSort)
    for (const ColumnType& type : spec.payload) has_variable |= HasVariable(type);
  if (has_variable) return KeyClass::kString;
  if (spec.op == Operator::kSort) return spec.payload.empty() ? KeyClass::kWord : KeyClass::kFixed;
  return WordBits(kernel_keys) != 0 ? KeyClass::kWord : KeyClass::kFixed;
}

uint32_t SizeClassOf(uint64_t table_bytes) {
  const auto bits = static_cast<uint32_t>(std::bit_width(std::max<uint64_t>(table_bytes, 1) - 1));
  return std::clamp(bits, kSmallestSizeClass, kLargestSizeClass);
}

MemoryModel BelievedModel(const Machine& machine) {
  MemoryModel model = {machine.l2_bytes, machine.l3_bytes, {}, {}};
  for (uint32_t i = 0; i < kNumClasses; ++i) {
    const uint64_t bytes = BytesOf(kSmallestSizeClass + i);
    model.latency_ns[i] = bytes <= machine.l2_bytes ? 5 : bytes <= machine.l3_bytes ? 20 : 90;
    model.line_ns[i] = bytes <= machine.l2_bytes ? 1 : bytes <= machine.l3_bytes ? 2 : 5;
  }
  return model;
}

PrefetchLadder EstimateLadder(PrefetchLoop loop, KeyClass, const MemoryModel& model) {
  PrefetchLadder ladder;
  ladder.rungs.clear();
  const auto setting = [&](uint32_t distance) {
    PrefetchSetting setting;
    setting.distance = static_cast<uint16_t>(distance);
    setting.hint = DefaultHint(loop);
    return setting;
  };
  const uint64_t gate = GateBytes(loop, model);
  ladder.rungs.push_back({gate, setting(0)});
  if (model.l3_bytes > gate) ladder.rungs.push_back({model.l3_bytes, setting(64)});
  ladder.rungs.push_back({UINT64_MAX, setting(128)});
  return ladder;
}

PrefetchLadder ChooseLadder(PrefetchLoop loop, KeyClass keys, const Machine& machine, const Profile* profile, std::string* origin) {
  const PrefetchLadder estimate = EstimateLadder(loop, keys, BelievedModel(machine));
  *origin = "estimate";
  return profile == nullptr ? estimate : profile->Ladder(loop, keys, 1, estimate, origin);
}

}  // namespace quern
