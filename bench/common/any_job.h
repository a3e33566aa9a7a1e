// SPDX-License-Identifier: Apache-2.0
// One job of any spec, from Compile to its last result row, on one thread.
#ifndef QUERN_BENCH_COMMON_ANY_JOB_H_
#define QUERN_BENCH_COMMON_ANY_JOB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/common/any_columns.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"

namespace quern::bench {

// The input of a job: num_rows rows. A join has them on the probe side, and a tenth as many on the build side.
class AnyInput {
 public:
  AnyInput(const KernelSpec& spec, uint64_t num_rows);

  const KernelSpec& spec() const { return spec_; }
  uint64_t num_rows() const { return num_rows_; }
  uint64_t build_rows() const { return build_rows_; }
  BatchView Batch(uint64_t first, uint64_t rows) const;
  BatchView BuildBatch(uint64_t first, uint64_t rows) const;

 private:
  const KernelSpec spec_;
  const uint64_t num_rows_;
  const uint64_t build_rows_;
  std::unique_ptr<AnyTable> keys_, payload_, build_keys_, build_payload_;
};

// Runs a kernel over the input, drops the result rows and returns their number. *Errors*: the operator's.
absl::StatusOr<uint64_t> RunAny(const std::shared_ptr<const Kernel>& kernel, const AnyInput& input);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_ANY_JOB_H_
