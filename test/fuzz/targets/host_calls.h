// SPDX-License-Identifier: Apache-2.0
// Calls of the C ABI by fuzz targets: handles that destroy themselves, generic kernels, and the rules for a status.
#ifndef QUERN_TEST_FUZZ_TARGETS_HOST_CALLS_H_
#define QUERN_TEST_FUZZ_TARGETS_HOST_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "hosts/c/quern.h"
#include "test/fuzz/targets/fuzz_target.h"

namespace quern::fuzz {

template <class Handle, void (*kDestroy)(Handle*)>
struct Destroyer {
  void operator()(Handle* handle) const { kDestroy(handle); }
};
template <class Handle, void (*kDestroy)(Handle*)>
using Owned = std::unique_ptr<Handle, Destroyer<Handle, kDestroy>>;

using KernelHandle = Owned<quern_kernel, quern_kernel_destroy>;
using JoinHandle = Owned<quern_join, quern_join_destroy>;
using ProberHandle = Owned<quern_prober, quern_prober_destroy>;
using AggregateHandle = Owned<quern_aggregate, quern_aggregate_destroy>;
using GroupsHandle = Owned<quern_groups, quern_groups_destroy>;
using SortHandle = Owned<quern_sort, quern_sort_destroy>;
using SortedHandle = Owned<quern_sorted, quern_sorted_destroy>;
using MergeHandle = Owned<quern_merge, quern_merge_destroy>;
using FilterHandle = Owned<quern_filter, quern_filter_destroy>;

// Whether a call succeeded. A call may refuse its input with one line of the usual form, and nothing else.
inline bool Succeeded(quern_status status, const quern_error& error) {
  if (status == QUERN_OK) return true;
  Require(status != QUERN_INTERNAL, "no input shows a defect", error.text);
  RequireOneLine(error.text);
  RequireErrorForm(error.text);
  return false;
}
inline void RequireSuccess(quern_status status, const quern_error& error, const char* rule) {
  Require(status == QUERN_OK, rule, error.text);
}

// The generic kernel of a spec; null where the spec is refused. Compiling is for other tests.
inline KernelHandle CompileGeneric(const std::string& spec) {
  quern_error error;
  quern_kernel* kernel = nullptr;
  const quern_status status = quern_compile(spec.c_str(), QUERN_ENGINE_GENERIC, nullptr, &kernel, &error);
  return Succeeded(status, error) ? KernelHandle(kernel) : KernelHandle();
}

// Creates a handle from another: Create<JoinHandle>(quern_join_create, kernel.get(), limit).
template <class Handle, class Function, class... Arguments>
Handle Create(Function create, Arguments... arguments) {
  quern_error error;
  typename Handle::pointer made = nullptr;
  RequireSuccess(create(arguments..., &made, &error), error, "a handle is created");
  return Handle(made);
}

}  // namespace quern::fuzz

#endif  // QUERN_TEST_FUZZ_TARGETS_HOST_CALLS_H_
