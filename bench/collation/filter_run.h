// SPDX-License-Identifier: Apache-2.0
// Timed runs of filters over one batch.
#ifndef QUERN_BENCH_COLLATION_FILTER_RUN_H_
#define QUERN_BENCH_COLLATION_FILTER_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/common/timing.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/status.h"
#include "runtime/filter/row_filter.h"
#include "runtime/rows/batch_view.h"

namespace quern::bench {

// Writes the bitmap of the rows that pass; `condition` is that of a filter's spec. The batch's columns and the bitmap
// must stay where they are.
inline absl::StatusOr<Timed> FilterWith(const std::string& condition, const BatchView& batch,
                                        std::vector<uint8_t>* bitmap, Engine engine = Engine::kJit) {
  CompileOptions options;
  options.engine = engine;
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileText("filter " + condition, options));
  bitmap->resize((batch.num_rows + 7) / 8);
  const auto filter = MakeRowFilter(compiled.kernel);
  return Timed{.run = [=]() -> absl::Status { return filter->Mask(batch, bitmap->data()).status(); }};
}

}  // namespace quern::bench

#endif  // QUERN_BENCH_COLLATION_FILTER_RUN_H_
