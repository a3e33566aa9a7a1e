// SPDX-License-Identifier: Apache-2.0
// The output of a producer: a schema and its batches, as a whole or one after the other.
#ifndef QUERN_HOSTS_PYTHON_SRC_SOURCE_H_
#define QUERN_HOSTS_PYTHON_SRC_SOURCE_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "arrow_columns.h"
#include "runtime/base/thresholds.h"

namespace quern::python {

constexpr int64_t kMorselRows = thresholds::kMorselRows;

// A Python object with __arrow_c_stream__ or __arrow_c_array__.
class Source {
 public:
  // May be destroyed on any thread, with the GIL or without.
  // `what` is the argument that it was given as, for errors. *Errors*: TypeError for an object of another kind,
  // ValueError for a producer whose rows are not made of columns, RuntimeError with the producer's own text.
  Source(nanobind::handle object, std::string what);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source();

  const std::string& what() const { return what_; }
  const std::vector<Field>& fields() const { return fields_; }

  // Takes all batches; once. *Cost*: none of its own for a table in memory. *Threads*: called with the GIL; Ctrl-C ends
  // it.
  void Collect();
  bool is_collected() const { return is_collected_; }
  const std::vector<Batch>& batches() const { return batches_; }
  uint64_t num_rows() const { return num_rows_; }  // that were collected
  // Rows that operators have taken so far, in all runs. Any thread may read and count.
  uint64_t rows_taken() const { return rows_taken_.load(std::memory_order_relaxed); }
  void CountTaken(int64_t rows) { rows_taken_.fetch_add(static_cast<uint64_t>(rows), std::memory_order_relaxed); }
  bool HasNulls(size_t column) const;  // in what was collected

  // The next batch of a source that is not collected. By one thread at a time, with or without the GIL.
  std::optional<Batch> Pull();

 private:
  void OpenStream(nanobind::handle object);
  void OpenArray(nanobind::handle object);
  [[noreturn]] void Refuse(nanobind::handle object) const;
  void TakeFields(const ArrowSchema& schema);

  std::string what_;
  std::vector<Field> fields_;
  std::vector<std::optional<ColumnType>> types_;  // of these
  ArrowArrayStream stream_ = {};
  std::vector<Batch> batches_;
  uint64_t num_rows_ = 0;
  std::atomic<uint64_t> rows_taken_ = 0;
  bool is_collected_ = false;
};

// The batches of a source in morsels of up to kMorselRows rows, for any number of threads.
class Feed {
 public:
  explicit Feed(Source* source) : source_(*source) {}

  struct Morsel {
    Batch batch;
    uint64_t number;     // from 0, in the order of the rows
    uint64_t first_row;  // of the source's
  };
  std::optional<Morsel> Next();
  // *Threads*: none while another calls Next.
  uint64_t rows_taken() const { return rows_dealt_; }

 private:
  std::optional<Batch> NextBatch();

  Source& source_;
  std::mutex mutex_;
  Batch batch_;
  int64_t next_row_ = 0;
  size_t next_batch_ = 0;
  uint64_t next_number_ = 0;
  uint64_t rows_dealt_ = 0;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_SOURCE_H_
