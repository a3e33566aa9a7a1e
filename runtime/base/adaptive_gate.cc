// SPDX-License-Identifier: Apache-2.0
// Judging takes two multiplications, so that a share is compared without a division; windows are at most some batches
// long, which no product of 64 bits overflows.
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
