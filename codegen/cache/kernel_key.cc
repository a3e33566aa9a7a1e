// SPDX-License-Identifier: Apache-2.0
// What is fixed for the process (templates, LLVM, machine) is printed once.
#include "codegen/cache/kernel_key.h"

#include "codegen/cache/build_identity.h"
#include "codegen/listeners/code_events.h"
#include "codegen/llvm/template_library.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/fork_safety.h"
#include "runtime/spec/host_aggregates.h"

namespace quern {
namespace {

// The part of the key that callers cannot choose.
const std::string& ProcessKey(const Machine& host) {
  const NoFork no_fork;  // the first call makes it
  static const auto* key = new std::string(std::string(BuildIdentity()) + " llvm=" LLVM_VERSION_STRING +
                                           " abi=" + std::to_string(kKernelAbiVersion) +
                                           " templates=" + std::to_string(EmbeddedTemplatesHash()) +
                                           (WantsSourceLines() ? " lines" : "") + "\n" + PrintMachine(host) + "\n");
  return *key;
}

// The size of a host aggregate's state is compiled into the code but is not in the spec, and it may differ between
// processes. One line for each.
std::string HostStates(const KernelSpec& spec) {
  std::string text;
  const auto* const aggregation = std::get_if<AggregationSpec>(&spec);
  if (aggregation == nullptr) return text;
  for (const AggregateSpec& aggregate : aggregation->aggregates) {
    const HostAggregate* host =
        aggregate.function == AggregateFunction::kHost ? FindHostAggregate(aggregate.host_name) : nullptr;
    if (host != nullptr)
      text += "host." + aggregate.host_name + " state_bytes=" + std::to_string(host->state_bytes) + "\n";
  }
  return text;
}

}  // namespace

std::string KernelKey(const KernelPlan& plan, const Machine& host) {
  return PrintSpec(plan.spec) + "\n" + PlanJson(plan) + "\n" + HostStates(plan.spec) + ProcessKey(host);
}

std::string CodeKey(const KernelPlan& plan, const Machine& host) {
  return PrintSpec(plan.spec) + "\n" + CodeParameters(plan) + "\n" + HostStates(plan.spec) + ProcessKey(host);
}

// One string, each part preceded by its length, because a text may hold any byte and so any separator.
std::string NameOf(std::string_view text, const PlanOverrides& overrides, uint64_t profile_number) {
  std::string name = profile_number == 0 ? "" : "profile " + std::to_string(profile_number) + " ";
  name += std::to_string(text.size()) + " ";
  name += text;
  for (const auto& [parameter, value] : overrides) {
    name += " " + std::to_string(parameter.size()) + " " + parameter + " " + std::to_string(value.size()) + " " + value;
  }
  return name;
}

std::string NameOf(const KernelSpec& spec, const PlanOverrides& overrides, uint64_t profile_number) {
  return NameOf(PrintSpec(spec), overrides, profile_number);
}

}  // namespace quern
