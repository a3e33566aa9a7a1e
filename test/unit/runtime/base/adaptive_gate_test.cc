// SPDX-License-Identifier: Apache-2.0
// Gates close where too few trials succeed, for as long as their rule says, and never where a plan does not adapt.
#include "runtime/base/adaptive_gate.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

// How many turns a gate that is closed refuses, up to a hundred.
uint32_t Refusals(AdaptiveGate* gate) {
  uint32_t refusals = 0;
  while (refusals < 100 && !gate->TakeTurn()) ++refusals;
  return refusals;
}

TEST(AdaptiveGate, IsOpenAtFirst) {
  AdaptiveGate gate(Gate::kRegisterCache, true);
  EXPECT_TRUE(gate.is_open());
  EXPECT_EQ(Refusals(&gate), 0u);
}

TEST(AdaptiveGate, ClosesBelowItsShareAndIsTriedAgain) {
  AdaptiveGate gate(Gate::kRegisterCache, true);
  gate.Count(800, 700);  // 7 of 8
  EXPECT_TRUE(gate.is_open());
  gate.Count(800, 699);
  EXPECT_FALSE(gate.is_open());
  EXPECT_EQ(Refusals(&gate), 15u);
  EXPECT_TRUE(gate.is_open());
  gate.Close();
  EXPECT_EQ(Refusals(&gate), 15u);
}

TEST(AdaptiveGate, OneRowTooFew) {
  AdaptiveGate gate(Gate::kShortStrings, true);
  gate.Count(7, 4);
  EXPECT_TRUE(gate.is_open());
  gate.Count(7, 3);
  EXPECT_EQ(Refusals(&gate), 8u);
}

// Trials of several batches are judged together, and those of a window that was judged are not counted again.
TEST(AdaptiveGate, JudgesWholeWindows) {
  AdaptiveGate gate(Gate::kGroupCache, true);
  gate.Count(4096, 0);
  EXPECT_TRUE(gate.is_open());
  gate.Count(100 * 4096, 100 * 4096);
  EXPECT_TRUE(gate.is_open());
  gate.Count(8192, 7167);
  EXPECT_FALSE(gate.is_open());
  EXPECT_EQ(Refusals(&gate), 100u);  // for good
}

TEST(AdaptiveGate, OpensByWhatIsCountedWhileItIsClosed) {
  AdaptiveGate gate(Gate::kProbePrefetch, true);
  gate.Count(4096, 511);
  EXPECT_FALSE(gate.is_open());
  gate.Count(4096, 511);
  EXPECT_FALSE(gate.is_open());
  gate.Count(4095, 4095);
  EXPECT_FALSE(gate.is_open());
  gate.Count(1, 0);
  EXPECT_TRUE(gate.is_open());
}

TEST(AdaptiveGate, NeverClosesWhereThePlanDoesNotAdapt) {
  for (const Gate which : {Gate::kRegisterCache, Gate::kGroupCache, Gate::kProbePrefetchDram}) {
    AdaptiveGate gate(which, false);
    gate.Count(1 << 20, 0);
    gate.Close();
    EXPECT_TRUE(gate.is_open());
    EXPECT_TRUE(gate.TakeTurn());
  }
}

}  // namespace
}  // namespace quern
