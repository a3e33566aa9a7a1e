// SPDX-License-Identifier: Apache-2.0
// Filters as jobs. They keep nothing from one batch to the next, so they have no inputs or outputs: quern_job_filter
// answers batch by batch, for any number of threads.
#include "hosts/c/job.h"
#include "runtime/filter/row_filter.h"
#include "runtime/spec/condition.h"

namespace quern::c_abi {
namespace {

class FilterJob final : public Job {
 public:
  FilterJob(const FilterSpec& spec, const CompiledKernel& compiled, const quern_job_options& options)
      : Job(compiled, options, "filter"), filter_(MakeRowFilter(kernel)) {
    ports.push_back({QUERN_PORT_ROWS, "input", {ColumnsOf(spec.where), {}}});
  }

  Kept kept(quern_port /*port*/) const override { return Kept::kNothing; }
  Counters counters() const override { return filter_->counters(); }
  const RowFilter* filter() const override { return filter_.get(); }

 private:
  std::shared_ptr<const RowFilter> filter_;
};

}  // namespace

NewJobResult NewJob(const FilterSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  return std::make_shared<FilterJob>(spec, compiled, options);
}

}  // namespace quern::c_abi
