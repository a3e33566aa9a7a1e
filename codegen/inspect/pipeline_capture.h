// SPDX-License-Identifier: Apache-2.0
// Captures the jobs of whole pipelines: their specs, how many rows of the source they had, and how long they took. The
// operators in them are captured as always (capture.h).
#ifndef QUERN_CODEGEN_INSPECT_PIPELINE_CAPTURE_H_
#define QUERN_CODEGEN_INSPECT_PIPELINE_CAPTURE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "codegen/plan/plan.h"
#include "runtime/pipeline/pipeline_spec.h"

namespace quern {

// One job. When it is destroyed after End, it is recorded. *Threads*: any, until then.
class PipelineCapture {
 public:
  // params: of the pipeline's plan, as the host gave them; prefetch settings are left out. Null if the process does not
  // capture, for a pipeline without steps, and for a spec whose text does not say all of it.
  static std::unique_ptr<PipelineCapture> Of(const PipelineSpec& spec, const PlanOverrides& params);
  PipelineCapture(const PipelineCapture&) = delete;
  PipelineCapture& operator=(const PipelineCapture&) = delete;
  ~PipelineCapture();

  // One thread more sends rows.
  void AddThread() { ++num_threads_; }
  // Rows of the source, and the time that sending them took.
  void Add(uint64_t num_rows, uint64_t ns);
  // All rows have been sent.
  void End() { has_ended_ = true; }

 private:
  PipelineCapture() = default;

  std::string spec_;
  PlanOverrides params_;
  std::atomic<uint32_t> num_threads_{0};
  std::atomic<uint64_t> num_rows_{0}, ns_{0};
  std::atomic<bool> has_ended_{false};
};

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_PIPELINE_CAPTURE_H_
