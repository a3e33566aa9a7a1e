// SPDX-License-Identifier: Apache-2.0
// How many threads pay for a job. This is advice only: operators run with any number.
#ifndef QUERN_CODEGEN_PLAN_THREAD_ADVICE_H_
#define QUERN_CODEGEN_PLAN_THREAD_ADVICE_H_

#include <cstdint>
#include <span>

#include "runtime/spec/spec.h"

namespace quern {

struct ThreadAdvice {
  uint32_t threads = 1;
  // 0: the advice is final. Otherwise one thread appends the job's rows until it has appended this many, and the caller
  // then calls AdviseThreads again with the number of groups found.
  uint64_t look_rows = 0;
};

// How many of `available` threads, at least one, pay for num_rows input rows (UINT64_MAX: unknown), for any operator.
uint32_t ThreadsForRows(uint64_t num_rows, uint32_t available);

// The same for a job of this spec. groups_seen: an aggregation's number of groups after each look so far; empty at
// first.
ThreadAdvice AdviseThreads(const KernelSpec& spec, uint64_t num_rows, std::span<const uint64_t> groups_seen,
                           uint32_t available);

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_THREAD_ADVICE_H_
