// SPDX-License-Identifier: Apache-2.0
// Which rows of a pipeline have row ids of the source, and who reads them.
#ifndef QUERN_RUNTIME_PIPELINE_ROW_NUMBERS_H_
#define QUERN_RUNTIME_PIPELINE_ROW_NUMBERS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/spec/join_spec.h"

namespace quern {

// Whether the rows that come out of a probe are rows that went in, each once and with its own columns.
bool IsSelection(const JoinSpec& join);

// Whether rows behind a step are numbered: their ids are columns of results, or a host's residual is asked with them.
bool ReadsRowIdsBehind(const Pipeline& pipeline, size_t step);

// Rows that a semi or anti join has written to files come back without the ids of the source, which rows behind such a
// join have otherwise. *Errors*: InvalidArgument where a step behind one reads them. The tables have all their rows.
absl::Status CheckRowIds(const Pipeline& pipeline);

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_ROW_NUMBERS_H_
