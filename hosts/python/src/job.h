// SPDX-License-Identifier: Apache-2.0
// A job of the library over views, whatever its operator: how rows go in, how threads work and are stopped, and how
// rows come out.
#ifndef QUERN_HOSTS_PYTHON_SRC_JOB_H_
#define QUERN_HOSTS_PYTHON_SRC_JOB_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hosts/c/quern.h"
#include "operators.h"
#include "workers.h"

namespace quern::python {

template <class Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

// Batches that several threads made, put into order when all are there.
class OrderedBatches {
 public:
  // place: of the batch among all; several batches of one place keep the order in which one thread adds them. A batch
  // without rows is left out.
  void Add(uint64_t place, Batch batch);
  std::vector<Batch> Take();

 private:
  struct Made {
    uint64_t place;
    size_t arrival;
    Batch batch;
  };

  std::mutex mutex_;
  std::vector<Made> batches_;
};

// 0, the calling thread, for a single morsel: threads that are made for it would take longer than its rows.
uint32_t ThreadsFor(const View& view, uint32_t threads);

class Job;

// Appends the rows of a view to a port. Threads are those of RunWorkers.
class Appending {
 public:
  // To the first port that is bound, or to this one.
  Appending(const Job* job, const View& view);
  Appending(const Job* job, const View& view, quern_port port);

  // Appends, by one thread, until so many rows of the source were taken. Returns the number of groups among them.
  uint64_t Look(uint64_t num_rows);
  // Appends all that is left, each thread by an input of its own.
  void AppendAll(uint32_t threads);
  // The same, and does the work that follows.
  void Finish(uint32_t threads);

 private:
  bool AppendMorsel(quern_input* input, RowRoom* room);

  const Job& job_;
  const View& view_;
  const quern_port port_;
  Feed feed_;
  std::vector<Owned<quern_input>> inputs_;  // one for each thread
};

// What comes out of one output.
class Output {
 public:
  // *Errors*: those of the C ABI, as of all calls here.
  Output(const Job& job, quern_port port);

  // Takes a batch of the probe side, unless it has no rows. Rows that were selected must stay until the state is no
  // longer QUERN_RESULT_MORE.
  void Push(const Taken& taken, uint64_t first_row);
  // The next rows of the table, perhaps none, while the state is QUERN_RESULT_MORE.
  Batch Next();
  quern_result_state state() const { return state_; }
  // Adds all rows up to another state, those of a sort at their position behind `place`.
  void Read(uint64_t place, const GoOn& go_on, OrderedBatches* out);

 private:
  const Job& job_;
  Owned<quern_output> handle_;
  quern_result_state state_;
  uint64_t position_ = 0;
};

class Job {
 public:
  // The inputs are those of the ports that are bound; `outputs` is the port of the rows that come out.
  Job(const KernelHandle& kernel, const RunOptions& options,
      std::initializer_list<std::pair<quern_port, const Input*>> inputs, quern_port outputs,
      const ResultShape& descriptor);

  quern_job* get() const { return handle_.get(); }
  quern_port input_port() const { return input_port_; }
  // The most rows of a result; 0: as many as the library likes. A batch of few groups, as of one that were spilled,
  // takes as much memory as one that is full.
  uint64_t batch_rows() const { return batch_rows_; }
  // Of the table that is made of the rows.
  const std::vector<Field>& fields() const { return fields_; }
  // Makes a batch of the table from an array of an output, which is moved.
  Batch Arranged(ArrowArray* array) const;

  // As RunWorkers; what ends the work cancels the job, so that calls of other threads end too.
  void Run(uint32_t threads, const Work& work) const;
  // Adds the rows of a port by so many threads, or fewer.
  void Read(uint32_t threads, quern_port port, uint64_t place, OrderedBatches* out) const;

 private:
  Owned<quern_job> handle_;
  quern_port input_port_;
  uint64_t batch_rows_;
  ResultShape descriptor_;
  size_t num_columns_;  // of the arrays
  std::vector<Field> fields_;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_JOB_H_
