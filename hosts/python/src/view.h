// SPDX-License-Identifier: Apache-2.0
// The columns of a source that an operator reads, some of them made on the way, and which of their rows meet a
// condition.
#ifndef QUERN_HOSTS_PYTHON_SRC_VIEW_H_
#define QUERN_HOSTS_PYTHON_SRC_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arrow_columns.h"
#include "computation.h"
#include "hosts/c/quern.h"
#include "kernel.h"
#include "source.h"

namespace quern::python {

// A condition over columns: whether it holds, row by row.
class Test {
 public:
  // `columns`: one for each mention of a column in the kernel's condition, numbers of `fields`.
  Test(const KernelHandle& kernel, const std::vector<Field>& fields, const std::vector<uint32_t>& columns);

  // *Threads*: any.
  uint64_t Select(const Batch& batch,
                  uint32_t* rows) const;                // writes the rows where it holds, and returns how many they are
  std::vector<uint8_t> Bits(const Batch& batch) const;  // a bitmap of them

 private:
  uint64_t Answer(const Batch& batch, uint32_t* rows, uint8_t* bitmap) const;

  std::vector<uint32_t> children_;  // of the batches that the filter sees, numbers of columns
  std::unique_ptr<quern_job, void (*)(quern_job*)> filter_;
};

// What a view makes of a batch.
struct Taken {
  Batch batch;                     // all rows
  const uint32_t* rows = nullptr;  // those that meet the condition, in order; nullptr: all
  uint64_t num_rows = 0;           // of these
};

// Room for the numbers of a batch's rows, used again from batch to batch: of one thread.
class RowRoom {
 public:
  uint32_t* For(int64_t num_rows) {
    if (rows_.size() < static_cast<size_t>(num_rows)) rows_.resize(static_cast<size_t>(num_rows));
    return rows_.data();
  }

 private:
  std::vector<uint32_t> rows_;
};

class View {
 public:
  explicit View(std::shared_ptr<Source> source) : source_(std::move(source)), fields_(source_->fields()) {}

  // Further columns, behind those of the source and made so far; each answers its number. They are made of all rows.
  uint32_t AddCast(uint32_t column, const std::string& format);
  uint32_t AddTest(const KernelHandle& kernel, const std::vector<uint32_t>& columns);
  // The results of a map, which are made of the rows alone that come out; the number of the first. No column is added
  // after them.
  uint32_t SetComputation(const KernelHandle& kernel, std::vector<uint32_t> columns);
  // The fields of all columns, made ones too.
  const std::vector<Field>& fields() const { return fields_; }
  // Only rows where it holds.
  void SetWhere(const KernelHandle& kernel, const std::vector<uint32_t>& columns);
  // The columns that come out, in order.
  void SetOutput(std::vector<uint32_t> columns);

  Source* source() const { return source_.get(); }
  const std::vector<Field>& output_fields() const { return output_fields_; }
  // What comes out of a batch of the source, whose row 0 is the source's row `first_row`; its rows lie in `room`.
  // *Threads*: any, without the GIL.
  Taken Take(Batch batch, uint64_t first_row, RowRoom* room) const;
  // The same as a batch of these rows alone. *Cost*: a copy of them, unless all come out.
  Batch Gather(Batch batch, uint64_t first_row, RowRoom* room) const;

 private:
  Taken WithResults(Batch batch, uint64_t first_row, Taken taken) const;

  struct Cast {
    uint32_t column;
    std::string format;
  };

  std::shared_ptr<Source> source_;
  std::vector<Field> fields_;  // the source's, then the made columns'
  std::vector<std::variant<Cast, Test>> steps_;
  std::unique_ptr<Test> where_;
  std::unique_ptr<Computation> computation_;
  std::vector<uint32_t> output_;
  std::vector<Field> output_fields_;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_VIEW_H_
