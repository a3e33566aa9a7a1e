// SPDX-License-Identifier: Apache-2.0
// Accelerators that pay for some data and cost for other data are tried, and left alone while they do not pay. A gate
// decides, by the share of trials that succeeded. Example, of a rule that wants 7 of 8 rows found and then waits for 15
// blocks:
//
//     block         1      2      3 .. 17     18
//     TakeTurn      true   true   false       true: another try
//     rows found    98 %   80 %                             Count closes the gate after block 2
//
// What each accelerator's rule is stands in one table, adaptive_gates.def. A plan's `adapt=off` keeps all gates open:
// accelerators and prefetch stay as chosen, whatever the data.
#ifndef QUERN_RUNTIME_BASE_ADAPTIVE_GATE_H_
#define QUERN_RUNTIME_BASE_ADAPTIVE_GATE_H_

#include <cstdint>

namespace quern {

enum class Gate : uint8_t {
#define QUERN_ADAPTIVE_GATE(Id, name, operators, window, unit, least, of, closed_for, meaning) Id,
#include "runtime/base/adaptive_gates.def"
};

struct GateRule {
  static constexpr uint32_t kForGood = UINT32_MAX, kJudgedOn = 0;

  const char* name;
  uint64_t window;  // trials
  uint64_t least;   // of `of` trials have to succeed
  uint64_t of;
  uint32_t closed_for;  // turns
};
const GateRule& RuleOf(Gate gate);

// *Threads*: one.
class AdaptiveGate {
 public:
  AdaptiveGate(Gate gate, bool adapts) : rule_(&RuleOf(gate)), adapts_(adapts) {}

  bool is_open() const { return turns_closed_ == 0; }
  const GateRule& rule() const { return *rule_; }

  // Whether the accelerator is to be used this time; where not, that is one of the turns for which the gate stays
  // closed.
  bool TakeTurn() {
    if (turns_closed_ == 0) return true;
    if (turns_closed_ != GateRule::kForGood) --turns_closed_;
    return false;
  }

  // Adds trials; where the window is full the gate closes, or opens, by those in it.
  void Count(uint64_t trials, uint64_t successes);
  // For what no share says: data that the accelerator cannot be used for.
  void Close();

 private:
  const GateRule* rule_;
  bool adapts_;
  uint32_t turns_closed_ = 0;
  uint64_t trials_ = 0, successes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_ADAPTIVE_GATE_H_
