// SPDX-License-Identifier: Apache-2.0
// The counters of jobs, for hosts. A kernel's counters are the sums over all jobs made from its handle, or from another
// one that shares its kernel, including jobs that are gone:
//
//     two joins of one kernel, 3,000 and 1,000 rows     quern_job_get_counters: 3000, 1000
//                                                       quern_kernel_get_counters: 4000
#include "codegen/tier/tier.h"
#include "hosts/c/job.h"
#include "hosts/c/kernel_handle.h"

namespace quern::c_abi {

void WriteCounters(const Counters& counted, const char* prefetch_class, const Kernel& kernel, CacheOutcome cache,
                   quern_counters* counters) {
  quern_counters all = {};
#define QUERN_COUNTER(id, name, meaning) all.name = counted.name;
#include "runtime/base/counters.def"
  all.prefetch_class = prefetch_class;
  all.tier = TierText(counted);
  all.cache = CacheText(kernel.tier == nullptr ? cache : kernel.tier->cache());
  WriteAnswer(all, counters);
}

namespace {

absl::Status WriteNoCounters(quern_counters* counters) {
  WriteCounters({}, "", Kernel(), CacheOutcome::kOff, counters);
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

void quern_kernel_get_counters(const quern_kernel* kernel, quern_counters* counters) {
  if (counters == nullptr) return;
  c_abi::Boundary(nullptr, [&] {
    if (kernel == nullptr) return c_abi::WriteNoCounters(counters);
    const quern::CompiledKernel& compiled = kernel->compiled;
    c_abi::WriteCounters(compiled.kernel->counters->Sum(), "", *compiled.kernel, compiled.cache, counters);
    return absl::OkStatus();
  });
}

void quern_job_get_counters(const quern_job* handle, quern_counters* counters) {
  if (counters == nullptr) return;
  c_abi::Boundary(nullptr, [&] {
    if (handle == nullptr) return c_abi::WriteNoCounters(counters);
    const c_abi::Job& job = *handle->job;
    c_abi::WriteCounters(job.counters(), job.prefetch_class(), *job.kernel, job.cache, counters);
    return absl::OkStatus();
  });
}

}  // extern "C"
