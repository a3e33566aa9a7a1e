// SPDX-License-Identifier: Apache-2.0
// An appender is made when its thread takes its first morsel, so that a thread which comes late leaves nothing to
// combine.
#include "runtime/sink/sink_driver.h"

#include <vector>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// Morsels that were refused are not appended again.
absl::Status Lost(Sink* sink, const absl::Status& appended) {
  absl::Status first = sink->FirstLoss(appended);
  sink->LoseRows();
  return first;
}

}  // namespace

absl::Status AppendMorsels(const std::shared_ptr<Sink>& sink, uint64_t num_morsels, uint32_t threads,
                           const AppendMorsel& append) {
  if (threads <= 1 || num_morsels <= 1) {
    const absl::Status appended = RunMorsels(1, num_morsels, [&](uint32_t thread, uint64_t morsel) {
      return append({sink.get(), nullptr}, thread, morsel);
    });
    return appended.ok() ? appended : Lost(sink.get(), appended);
  }
  std::vector<std::unique_ptr<Appender>> appenders(threads);
  const absl::Status appended = RunMorsels(threads, num_morsels, [&](uint32_t thread, uint64_t morsel) {
    if (appenders[thread] == nullptr) appenders[thread] = std::make_unique<Appender>(sink);
    return append({sink.get(), appenders[thread].get()}, thread, morsel);
  });
  if (!appended.ok()) return Lost(sink.get(), appended);
  for (const auto& appender : appenders)
    if (appender != nullptr) QUERN_RETURN_IF_ERROR(appender->Finish());
  return absl::OkStatus();
}

absl::Status FinaliseOnThreads(Sink* sink, uint32_t threads) {
  if (threads <= 1) return sink->Finalise();
  const absl::Status finalised = RunMorsels(threads, threads, [sink](uint32_t, uint64_t) { return sink->Finalise(); });
  return finalised.ok() ? finalised : sink->FirstLoss(finalised);
}

}  // namespace quern
