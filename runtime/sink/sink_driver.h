// SPDX-License-Identifier: Apache-2.0
// Adds rows to a sink and finalises it on threads of the library, for callers that have none of their own. (Morsels:
// Leis, Boncz, Kemper, Neumann, Morsel-Driven Parallelism, SIGMOD 2014.)
//
//     append      thread 0: morsels 0, 2, 5, ..    thread 1: morsels 1, 3, 4, ..    each to an appender of its own
//     finalise    all threads together
#ifndef QUERN_RUNTIME_SINK_SINK_DRIVER_H_
#define QUERN_RUNTIME_SINK_SINK_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "runtime/sink/sink.h"

namespace quern {

// Where a thread's batches go: to its appender, or to the sink itself. Not owned.
struct SinkInput {
  Sink* sink;
  Appender* appender;  // null: none

  absl::Status CheckOpen(const char* call) const {
    return appender == nullptr ? sink->CheckOpen(call) : appender->CheckOpen(call);
  }
  absl::Status Append(const BatchView& batch, RowKind kind = RowKind::kInput) const {
    return appender == nullptr ? sink->Append(batch, kind) : appender->Append(batch, kind);
  }
  absl::Status FreeMemory(const absl::Status& refused) const {
    return appender == nullptr ? sink->FreeMemory(refused) : appender->FreeMemory(refused);
  }
};

// Calls append(input, thread, morsel) for morsels 0 .. num_morsels-1, in this order, on up to `threads` threads, the
// calling one among them; it adds the morsel's rows to `input`. A single thread, or a single morsel, goes to the sink
// itself, which then has nothing to combine. Where the system has no more threads, fewer run.
// *Errors*: the first failed call's; morsels are then missing, whatever the sink says of itself.
using AppendMorsel = std::function<absl::Status(const SinkInput& input, uint32_t thread, uint64_t morsel)>;
absl::Status AppendMorsels(const std::shared_ptr<Sink>& sink, uint64_t num_morsels, uint32_t threads,
                           const AppendMorsel& append);

// Finalises, likewise. *Errors*: as Sink::Finalise.
absl::Status FinaliseOnThreads(Sink* sink, uint32_t threads);

}  // namespace quern

#endif  // QUERN_RUNTIME_SINK_SINK_DRIVER_H_
