// SPDX-License-Identifier: Apache-2.0
// Columns that a map computes of the rows of a batch.
#ifndef QUERN_HOSTS_PYTHON_SRC_COMPUTATION_H_
#define QUERN_HOSTS_PYTHON_SRC_COMPUTATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "arrow_columns.h"
#include "hosts/c/quern.h"
#include "kernel.h"

namespace quern::python {

class Computation {
 public:
  // `columns`: those of the kernel's spec, numbers of `fields`.
  Computation(const KernelHandle& kernel, const std::vector<Field>& fields, std::vector<uint32_t> columns);

  // Of the results.
  const std::vector<Field>& fields() const { return fields_; }
  // The results for the rows rows[0] .. rows[n - 1] of a batch of up to kMorselRows rows; nullptr: for all of them.
  // first_row: the number of the batch's row 0 in the source. *Threads*: any, without the GIL. *Errors*:
  // std::runtime_error for a row without a result, which it names by its number in the source.
  std::vector<Column> Results(const Batch& batch, uint64_t first_row, const uint32_t* rows, uint64_t n) const;

 private:
  std::vector<uint32_t> columns_;
  std::unique_ptr<quern_job, void (*)(quern_job*)> job_;
  std::vector<Field> fields_;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_COMPUTATION_H_
