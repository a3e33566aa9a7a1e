// SPDX-License-Identifier: Apache-2.0
// The counters of jobs, for hosts. A job's counters are those of one operator's handle. A kernel's are the sums over
// all operators made from its handle, or from another one that shares its kernel, including operators that are gone:
//
//     two joins of one kernel, 3,000 and 1,000 rows     quern_join_get_counters: 3000, 1000
//                                                       quern_kernel_get_counters: 4000
#include <algorithm>
#include <cstring>

#include "codegen/tier/tier.h"
#include "hosts/c/aggregate_handles.h"
#include "hosts/c/handles.h"
#include "hosts/c/sort_handles.h"

namespace quern::c_abi {

void CopyCounters(const Counters& counted, const char* prefetch_class, const Kernel& kernel, CacheOutcome cache,
                  quern_counters* counters) {
  quern_counters all = {};
  all.struct_size = counters->struct_size;
#define QUERN_COUNTER(id, name, meaning) all.name = counted.name;
#include "runtime/base/counters.def"
  all.prefetch_class = prefetch_class;
  all.tier = TierText(counted);
  all.cache = CacheText(kernel.tier == nullptr ? cache : kernel.tier->cache());
  std::memcpy(counters, &all, std::min(counters->struct_size, sizeof(all)));
}

}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

void quern_kernel_get_counters(const quern_kernel* kernel, quern_counters* counters) {
  c_abi::GetCounters(kernel, counters, [&] {
    const quern::CompiledKernel& compiled = kernel->compiled;
    c_abi::CopyCounters(compiled.kernel->counters->Sum(), "", *compiled.kernel, compiled.cache, counters);
  });
}

void quern_join_get_counters(const quern_join* join, quern_counters* counters) {
  c_abi::GetCounters(join, counters, [&] {
    const c_abi::JoinState& state = *join->state;
    c_abi::CopyCounters(state.sink->counters(), state.sink->is_finalised() ? state.join()->stats().prefetch_class : "",
                        *state.kernel, state.cache, counters);
  });
}

void quern_aggregate_get_counters(const quern_aggregate* aggregate, quern_counters* counters) {
  c_abi::GetCounters(aggregate, counters, [&] {
    const c_abi::AggregateState& state = *aggregate->state;
    c_abi::CopyCounters(state.sink->counters(),
                        state.sink->is_finalised() ? state.aggregate()->stats().prefetch_class : "", *state.kernel,
                        state.cache, counters);
  });
}

void quern_sort_get_counters(const quern_sort* sort, quern_counters* counters) {
  c_abi::GetCounters(sort, counters, [&] {
    const c_abi::SortState& state = *sort->state;
    c_abi::CopyCounters(state.sink->counters(), state.sink->is_finalised() ? state.sort()->stats().prefetch_class : "",
                        *state.kernel, state.cache, counters);
  });
}

void quern_merge_get_counters(const quern_merge* merge, quern_counters* counters) {
  c_abi::GetCounters(merge, counters, [&] {
    c_abi::CopyCounters(merge->merger->counters(), "off", *merge->kernel, merge->cache, counters);
  });
}

}  // extern "C"
