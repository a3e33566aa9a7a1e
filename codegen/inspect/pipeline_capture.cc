// SPDX-License-Identifier: Apache-2.0
#include "codegen/inspect/pipeline_capture.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "codegen/inspect/capture.h"
#include "codegen/plan/pipeline_plan.h"

namespace quern {

std::unique_ptr<PipelineCapture> PipelineCapture::Of(const PipelineSpec& spec, const PlanOverrides& params) {
  if (!IsCapturing() || spec.steps.empty()) return nullptr;
  std::unique_ptr<PipelineCapture> capture(new PipelineCapture());
  capture->spec_ = PrintPipeline(spec);
  std::copy_if(params.begin(), params.end(), std::back_inserter(capture->params_),
               [](const auto& param) { return param.first.find("prefetch_") == std::string::npos; });
  // A reader refuses a whole file for one line that it cannot read.
  const absl::StatusOr<PipelineSpec> read = ParsePipeline(capture->spec_);
  if (!read.ok() || !MakePipelinePlan(*read, capture->params_).ok()) return nullptr;
  return capture;
}

void PipelineCapture::Add(uint64_t num_rows, uint64_t ns) {
  num_rows_ += num_rows;
  ns_ += ns;
}

PipelineCapture::~PipelineCapture() {
  if (!has_ended_) return;
  try {
    CapturedJob job;
    job.spec = std::move(spec_);
    job.params = std::move(params_);
    job.layout = "pipeline";
    job.jobs = 1;
    job.threads = std::max(num_threads_.load(), 1u);
    job.build_rows = static_cast<double>(num_rows_.load());
    job.ns = static_cast<double>(ns_.load());
    AddToCapture(job);
  } catch (const std::bad_alloc&) {
    return;  // the job is left out
  }
}

}  // namespace quern
