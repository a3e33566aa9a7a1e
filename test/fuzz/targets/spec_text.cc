// SPDX-License-Identifier: Apache-2.0
// Spec texts: parse, print, parse again. "join.inner  keys=i64:nullable:nullequal" prints with one blank, is accepted
// again, and prints as itself. What is accepted has a plan, or a message why it has none.
#include <string>
#include <string_view>

#include "codegen/plan/plan.h"
#include "runtime/spec/spec.h"
#include "test/fuzz/targets/fuzz_target.h"

using quern::fuzz::Require;
using quern::fuzz::RequireRefusal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<quern::KernelSpec> spec = quern::ParseSpec(text);
  if (!spec.ok()) return quern::fuzz::RequireRefusalInOneLine(spec.status()), 0;
  const std::string printed = quern::PrintSpec(*spec);
  const absl::StatusOr<quern::KernelSpec> again = quern::ParseSpec(printed);
  Require(again.ok(), "the canonical text of a spec is accepted", printed);
  Require(*again == *spec, "the canonical text of a spec means the same", printed);
  Require(quern::PrintSpec(*again) == printed, "the canonical text of a spec prints as itself", printed);
  Require(quern::ValidateSpec(*spec).ok(), "what the parser accepts is valid", printed);
  const absl::StatusOr<quern::KernelPlan> plan = quern::MakePlan(*spec, quern::Machine{}, {});
  if (!plan.ok()) return RequireRefusal(plan.status()), 0;
  Require(quern::PrintPlan(*plan).starts_with("plan " + printed + "\n"), "a plan begins with its spec", printed);
  return 0;
}
