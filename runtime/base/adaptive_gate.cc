// SPDX-License-Identifier: Apache-2.0
// Two multiplications compare the shares without a division. A window is at most a few batches long, so the 64-bit
// products cannot overflow.
#include "runtime/base/adaptive_gate.h"

#include <algorithm>

namespace quern {
namespace {

constexpr uint32_t kForGood = GateRule::kForGood, kJudgedOn = GateRule::kJudgedOn;

constexpr GateRule kRules[] = {
#define QUERN_ADAPTIVE_GATE(Id, name, operators, window, unit, least, of, closed_for, meaning) \
  {#name, window, least, of, closed_for},
#include "runtime/base/adaptive_gates.def"
};

}  // namespace

const GateRule& RuleOf(Gate gate) { return kRules[static_cast<uint32_t>(gate)]; }

void AdaptiveGate::Count(uint64_t trials, uint64_t successes) {
  trials_ += trials;
  successes_ += successes;
  if (trials_ < rule_->window) return;
  const bool pays = successes_ * rule_->of >= trials_ * rule_->least;
  trials_ = successes_ = 0;
  if (!pays) Close();
  else if (rule_->closed_for == kJudgedOn) turns_closed_ = 0;
}

void AdaptiveGate::Close() {
  if (adapts_) turns_closed_ = std::max(rule_->closed_for, 1u);
}

}  // namespace quern
