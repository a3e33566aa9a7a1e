// SPDX-License-Identifier: Apache-2.0
// Results: tables that can be read any number of times, and readers that compute while they are read.
#ifndef QUERN_HOSTS_PYTHON_SRC_RESULTS_H_
#define QUERN_HOSTS_PYTHON_SRC_RESULTS_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrow_columns.h"

namespace quern::python {

// The positions and names in a table of a kernel's result columns.
struct ResultShape {
  std::vector<uint32_t> order;     // by column of the table: the kernel's
  std::vector<std::string> names;  // likewise

  // From a schema of the library, which is released.
  std::vector<Field> Fields(ArrowSchema* schema) const;
  Batch Arranged(const Batch& batch) const;
};

// *Threads*: any; it never changes.
struct TableData {
  std::vector<Field> fields;
  std::vector<Batch> batches;
  uint64_t num_rows = 0;
};
using Table = std::shared_ptr<const TableData>;

// Batches without rows are left out.
Table MakeTable(std::vector<Field> fields, std::vector<Batch> batches);

// "arrow_schema" and "arrow_array_stream" capsules.
nanobind::object SchemaCapsule(const std::vector<Field>& fields);
nanobind::object StreamCapsule(const Table& table);

// Batches that are made one after the other, each on request; read once.
class Reader {
 public:
  // next: the next batch; nullopt at the end. It runs without the GIL, on whatever thread reads, and is destroyed on
  // any. It calls `pause` between two morsels, which may throw what a signal's handler raised.
  using Pause = std::function<void()>;
  using Next = std::function<std::optional<Batch>(const Pause& pause)>;
  Reader(std::vector<Field> fields, Next next);

  const std::vector<Field>& fields() const { return fields_; }
  // A table of one batch, or nullptr at the end. Called with the GIL. *Errors*: RuntimeError where a stream was taken
  // of it.
  Table NextTable();
  // Hands the reader's batches to a consumer. *Errors*: RuntimeError the second time.
  nanobind::object TakeStream();

 private:
  struct State;
  std::vector<Field> fields_;
  std::shared_ptr<State> state_;
  bool is_taken_ = false;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_RESULTS_H_
