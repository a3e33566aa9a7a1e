// SPDX-License-Identifier: Apache-2.0
// An adaptive gate stops an optimisation that pays for some data and costs for other data while too few of its trials
// succeed. Example: a rule requires that 7 of 8 rows are found, and otherwise closes the gate for 15 blocks:
//
//     block         1      2      3 .. 17     18
//     TakeTurn      true   true   false       true          another try
//     rows found    98 %   80 %                             Count closes the gate after block 2
//
// The rules are in one table, adaptive_gates.def. A plan's `adapt=off` keeps all gates open, so that optimisations and
// prefetches stay as chosen, whatever the data.
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
  uint64_t least;   // of `of` trials must succeed
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

  // Whether to use the optimisation this time. If not, the call counts as one of the turns for which the gate is
  // closed.
  bool TakeTurn() {
    if (turns_closed_ == 0) return true;
    if (turns_closed_ != GateRule::kForGood) --turns_closed_;
    return false;
  }

  // Adds trials; once the window is full, the share of successes in it closes or opens the gate.
  void Count(uint64_t trials, uint64_t successes);
  // Closes the gate regardless of any share, for data that the optimisation cannot handle.
  void Close();

 private:
  const GateRule* rule_;
  bool adapts_;
  uint32_t turns_closed_ = 0;
  uint64_t trials_ = 0, successes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_ADAPTIVE_GATE_H_
