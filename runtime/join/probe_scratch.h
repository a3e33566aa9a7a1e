// SPDX-License-Identifier: Apache-2.0
// The scratch of one probe. Scratch that is given back serves a later one: to allocate and free 280 KB costs more than
// a small probe.
#ifndef QUERN_RUNTIME_JOIN_PROBE_SCRATCH_H_
#define QUERN_RUNTIME_JOIN_PROBE_SCRATCH_H_

#include <memory>

#include "runtime/abi/join_abi.h"

namespace quern {

struct GiveScratchBack {
  void operator()(QuernProbeScratch* scratch) const;
};
using ProbeScratch = std::unique_ptr<QuernProbeScratch, GiveScratchBack>;

// Its members before the arrays are zero. *Threads*: any.
ProbeScratch TakeProbeScratch();

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_PROBE_SCRATCH_H_
