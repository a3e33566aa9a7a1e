// SPDX-License-Identifier: Apache-2.0
// Joins, aggregations, sorts, filters, maps and set operations over views, on several threads.
#ifndef QUERN_HOSTS_PYTHON_SRC_OPERATORS_H_
#define QUERN_HOSTS_PYTHON_SRC_OPERATORS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel.h"
#include "results.h"
#include "view.h"

namespace quern::python {

// One input of a kernel: which columns of the view are its keys and which its payload.
struct Input {
  std::shared_ptr<const View> view;
  std::vector<int32_t> keys;
  std::vector<int32_t> payload;
};

struct RunOptions {
  uint32_t threads = 1;
  uint64_t memory_limit = 0;  // bytes that the library may take; 0: no limit
  bool spills = false;        // rows beyond the limit go to files
  std::string spill_dir;      // their folder; "": that of the environment
  uint64_t spill_bytes = 0;   // that the files may take; 0: no limit
};

// All are called with the GIL, which is released while kernels run; Ctrl-C ends them within some milliseconds, and a
// reader between two batches. Sources that were not collected are read during the work. *Errors*: those of the C ABI
// (errors.h).

// Rows come out in the order of the probe side, followed by build rows that come out on their own.
Table RunJoin(const KernelHandle& kernel, const Input& build, const Input& probe, const ResultShape& descriptor,
              const RunOptions& options);
// Builds the table; the reader pulls the probe side, a batch at a time, on one thread.
std::unique_ptr<Reader> ReadJoin(const KernelHandle& kernel, const Input& build, const Input& probe,
                                 const ResultShape& descriptor, const RunOptions& options);
// Aggregates that depend on the order of rows, and stable sorts, use the order of the source, whichever thread appends.
Table RunAggregate(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                   const RunOptions& options);
Table RunSet(const KernelHandle& kernel, const Input& left, const Input& right, const ResultShape& descriptor,
             const RunOptions& options);
Table RunSort(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor, const RunOptions& options);
// The same, up to their first result; the reader takes them, a batch at a time, on one thread.
std::unique_ptr<Reader> ReadAggregate(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                                      const RunOptions& options);
std::unique_ptr<Reader> ReadSet(const KernelHandle& kernel, const Input& left, const Input& right,
                                const ResultShape& descriptor, const RunOptions& options);
std::unique_ptr<Reader> ReadSort(const KernelHandle& kernel, const Input& input, const ResultShape& descriptor,
                                 const RunOptions& options);
// The view's own rows, in order.
Table RunFilter(const std::shared_ptr<const View>& view, const RunOptions& options);
std::unique_ptr<Reader> ReadFilter(const std::shared_ptr<const View>& view);
// The same with other names, and in an order of its own.
Table RunMap(const std::shared_ptr<const View>& view, const ResultShape& descriptor, const RunOptions& options);
std::unique_ptr<Reader> ReadMap(const std::shared_ptr<const View>& view, const ResultShape& descriptor);

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_OPERATORS_H_
