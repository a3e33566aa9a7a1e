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
using JobHandle = Owned<quern_job, quern_job_destroy>;
using InputHandle = Owned<quern_input, quern_input_destroy>;
using OutputHandle = Owned<quern_output, quern_output_destroy>;

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

// Creates a handle from another: Create<JobHandle>(quern_job_create, kernel.get(), &options).
template <class Handle, class Function, class... Arguments>
Handle Create(Function create, Arguments... arguments) {
  quern_error error;
  typename Handle::pointer made = nullptr;
  RequireSuccess(create(arguments..., &made, &error), error, "a handle is created");
  return Handle(made);
}

// num_runs: of a merge.
inline JobHandle NewJob(const KernelHandle& kernel, uint32_t num_runs = 0) {
  quern_job_options options = {};
  options.struct_size = sizeof(options);
  options.num_runs = num_runs;
  return Create<JobHandle>(quern_job_create, kernel.get(), &options);
}
inline InputHandle NewInput(const JobHandle& job, quern_port port, uint32_t run = 0) {
  quern_input_options options = {};
  options.struct_size = sizeof(options);
  options.run = run;
  return Create<InputHandle>(quern_input_create, job.get(), port, &options);
}
inline OutputHandle NewOutput(const JobHandle& job, quern_port port, uint64_t batch_rows) {
  quern_output_options options = {};
  options.struct_size = sizeof(options);
  options.batch_rows = batch_rows;
  return Create<OutputHandle>(quern_output_create, job.get(), port, &options);
}

// The next rows of an output; null where the call is refused.
inline const quern_result* Next(const OutputHandle& output) {
  quern_error error;
  const quern_result* result = nullptr;
  return Succeeded(quern_output_next(output.get(), &result, &error), error) ? result : nullptr;
}

}  // namespace quern::fuzz

#endif  // QUERN_TEST_FUZZ_TARGETS_HOST_CALLS_H_
