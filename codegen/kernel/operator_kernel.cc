// SPDX-License-Identifier: Apache-2.0
// One visit of the variant for each question; the answers are the traits'.
#include "codegen/kernel/operator_kernel.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/base/status.h"

namespace quern {

absl::StatusOr<AnyOperatorKernel> DescribeKernel(const KernelPlan& plan) {
  return std::visit(
      [&]<class Spec>(const Spec&) -> absl::StatusOr<AnyOperatorKernel> {
        OperatorKernel<Spec> kernel;
        QUERN_ASSIGN_OR_RETURN(kernel.descriptor, OperatorTraits<Spec>::MakeDescriptor(plan));
        kernel.options = OperatorTraits<Spec>::MakeOptions(plan);
        return kernel;
      },
      plan.spec);
}

void SetOptions(const KernelPlan& plan, AnyOperatorKernel* kernel) {
  std::visit([&]<class Spec>(OperatorKernel<Spec>& of) { of.options = OperatorTraits<Spec>::MakeOptions(plan); },
             *kernel);
}

absl::Status ChangePlan(const KernelPlan& plan, AnyOperatorKernel* kernel) {
  SetOptions(plan, kernel);
  return std::visit(
      [&]<class Spec>(OperatorKernel<Spec>& of) {
        QUERN_ASSIGN_OR_RETURN(of.descriptor, OperatorTraits<Spec>::MakeDescriptor(plan));
        return absl::OkStatus();
      },
      *kernel);
}

std::vector<std::string> EntryPointSymbols(const AnyOperatorKernel& kernel) {
  std::vector<std::string> symbols;
  std::visit(
      [&]<class Spec>(OperatorKernel<Spec> of) {
        OperatorTraits<Spec>::ForEachEntryPoint(*of.descriptor, &of.entry_points,
                                                [&](const char* symbol, auto*) { symbols.emplace_back(symbol); });
      },
      kernel);
  return symbols;
}

void SetEntryPoints(const std::vector<void*>& addresses, AnyOperatorKernel* kernel) {
  size_t i = 0;
  std::visit(
      [&]<class Spec>(OperatorKernel<Spec>& of) {
        OperatorTraits<Spec>::ForEachEntryPoint(*of.descriptor, &of.entry_points,
                                                [&]<class Function>(const char*, Function* function) {
                                                  *function = reinterpret_cast<Function>(addresses[i++]);
                                                });
      },
      *kernel);
}

void SetGenericEntryPoints(AnyOperatorKernel* kernel) {
  std::visit([]<class Spec>(OperatorKernel<Spec>& of) { of.entry_points = OperatorTraits<Spec>::Generic(); }, *kernel);
}

std::string PrintLayout(const AnyOperatorKernel& kernel) {
  return std::visit([](const auto& of) { return of.descriptor->Print(); }, kernel);
}

const char* TemplateName(const KernelSpec& spec) {
  return std::visit([]<class Spec>(const Spec&) -> const char* { return OperatorTraits<Spec>::kTemplate; }, spec);
}

}  // namespace quern
