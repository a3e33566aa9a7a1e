// SPDX-License-Identifier: Apache-2.0
// Jobs for tests: made, fed and read in one line each.
#ifndef QUERN_TEST_HOSTS_JOBS_H_
#define QUERN_TEST_HOSTS_JOBS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "quern.hpp"
#include "test/hosts/host_tables.h"

namespace quern_test {

using quern::Engine;
using quern::StringBytes;
using Where = std::source_location;

// ---- what must succeed ----

inline void Done(const quern::Status& status, const Where& where = Where::current()) {
  if (!status.ok()) ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << status.text();
}

template <class Made>
Made Take(quern::Result<Made> result, const Where& where = Where::current()) {
  Done(result.status(), where);
  if (!result.ok()) std::abort();
  return *std::move(result);
}

inline quern::Kernel KernelOf(const std::string& spec, Engine engine = Engine::kJit, const std::string& params = "") {
  return Take(quern::Kernel::Compile(spec, engine, params));
}

// A job of one of the classes of quern.hpp.
template <class Job>
Job New(const std::string& spec, Engine engine = Engine::kJit, const quern_job_options& options = {}) {
  return Take(Job::Create(KernelOf(spec, engine), options));
}

inline quern_job_options LimitedTo(uint64_t bytes) {
  quern_job_options options = {};
  options.memory_limit = bytes;
  return options;
}

inline quern_output_options BatchRows(uint64_t batch_rows) {
  quern_output_options options = {};
  options.batch_rows = batch_rows;
  return options;
}

// ---- rows in ----

// An input with one batch a table, which has finished.
inline void Feed(quern::Result<quern::Input> input, const std::vector<Table>& tables,
                 const Where& where = Where::current()) {
  quern::Input open = Take(std::move(input), where);
  for (const Table& table : tables) Done(open.Append(table.batch()), where);
  Done(open.Finish(), where);
}

// ---- rows out ----

// All rows up to a state other than QUERN_RESULT_MORE, in their order. Where batch_rows is given, results are expected
// to be full up to the last.
inline Lines InOrder(quern::Output* output, std::string_view kinds, uint64_t batch_rows = 0) {
  Lines lines;
  while (true) {
    const quern::Result<const quern_result*> next = output->Next();
    Done(next.status());
    if (!next.ok()) return lines;
    const quern_result& result = **next;
    if (result.position != 0) {
      EXPECT_EQ(result.position, lines.size());
    }
    AddLines(result, kinds, &lines);
    if (result.state != QUERN_RESULT_MORE) return lines;
    if (batch_rows != 0) {
      EXPECT_EQ(result.num_rows, batch_rows);
    }
  }
}
inline Lines InOrder(quern::Result<quern::Output> output, std::string_view kinds, uint64_t batch_rows = 0) {
  quern::Output opened = Take(std::move(output));
  return InOrder(&opened, kinds, batch_rows);
}

inline Lines Ordered(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The same in the order of their texts.
inline Lines RowsOf(quern::Output* output, std::string_view kinds, uint64_t batch_rows = 0) {
  return Ordered(InOrder(output, kinds, batch_rows));
}
inline Lines RowsOf(quern::Result<quern::Output> output, std::string_view kinds, uint64_t batch_rows = 0) {
  return Ordered(InOrder(std::move(output), kinds, batch_rows));
}

// The rows of one batch of the probe side.
inline Lines Probed(quern::Output* output, const Table& table, std::string_view kinds, uint64_t batch_rows = 0) {
  Done(output->Push(table.batch()));
  return RowsOf(output, kinds, batch_rows);
}

// ---- finished jobs ----

inline quern::Join Built(const std::string& spec, const std::vector<Table>& tables, Engine engine = Engine::kJit,
                         StringBytes bytes = StringBytes::kStay, const std::string& params = "") {
  quern::Join join = Take(quern::Join::Create(KernelOf(spec, engine, params)));
  Feed(join.Build(bytes), tables);
  Done(join.Finalise());
  return join;
}

inline quern::Aggregate Aggregated(const std::string& spec, const std::vector<Table>& tables,
                                   Engine engine = Engine::kJit) {
  quern::Aggregate aggregate = New<quern::Aggregate>(spec, engine);
  Feed(aggregate.Rows(), tables);
  Done(aggregate.Finalise());
  return aggregate;
}

inline quern::Sort Sorted(const std::string& spec, const std::vector<Table>& tables, Engine engine = Engine::kJit,
                          StringBytes bytes = StringBytes::kStay) {
  quern::Sort sort = New<quern::Sort>(spec, engine);
  Feed(sort.Rows(bytes), tables);
  Done(sort.Finalise());
  return sort;
}

// Feeds a merge with the batches of each run as it asks for them, and returns all rows in their order.
inline Lines Merged(quern::Merge* merge, const std::vector<std::vector<Table>>& runs, std::string_view kinds,
                    uint64_t batch_rows = 0) {
  std::vector<quern::Input> inputs;
  for (uint32_t run = 0; run < runs.size(); ++run) inputs.push_back(Take(merge->RunInput(run)));
  std::vector<size_t> next(runs.size());
  quern::Output merged = Take(merge->Merged(batch_rows));
  Lines lines;
  while (true) {
    const quern_result& result = *Take(merged.Next());
    if (batch_rows != 0) {
      EXPECT_LE(result.num_rows, batch_rows);
    }
    AddLines(result, kinds, &lines);
    if (result.state == QUERN_RESULT_DONE) return lines;
    if (result.state == QUERN_RESULT_MORE) continue;
    const uint32_t run = result.run;
    const bool has_more = next.at(run) < runs[run].size();
    Done(has_more ? inputs[run].Append(runs[run][next[run]++].batch()) : inputs[run].Finish());
  }
}

// A result's columns as those of a batch; only read before the next call on its output.
inline Table AsTable(const quern_result& result, size_t num_keys) {
  const quern_column *begin = result.columns, *end = begin + result.num_columns;
  return {{begin, begin + num_keys}, {begin + num_keys, end}, result.num_rows};
}

// Hands the states of an aggregation to an input of another.
inline void MoveStates(quern::Result<quern::Output> from, size_t num_keys, quern::Input* into) {
  quern::Output states = Take(std::move(from));
  for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
    const quern_result& result = *Take(states.Next());
    Done(into->Append(AsTable(result, num_keys).batch()));
    state = result.state;
  }
}

// ---- threads, and memory ----

template <class Work>
void OnThreads(uint32_t num_threads, Work&& work) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < num_threads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

// Options of a job whose memory an account of the host's counts, by its static functions Reserve and Release.
template <class Account>
quern_job_options OptionsWithAccount(Account* account) {
  quern_job_options options = {};
  options.reserve = Account::Reserve;
  options.release = Account::Release;
  options.host = account;
  return options;
}

// A host's account of memory, with a limit that may change.
struct HostMemory {
  std::atomic<int64_t> used{0}, limit{INT64_MAX};

  static bool Reserve(void* host, uint64_t bytes) {
    auto* memory = static_cast<HostMemory*>(host);
    if ((memory->used += static_cast<int64_t>(bytes)) <= memory->limit) return true;
    memory->used -= static_cast<int64_t>(bytes);
    return false;
  }
  static void Release(void* host, uint64_t bytes) {
    static_cast<HostMemory*>(host)->used -= static_cast<int64_t>(bytes);
  }
  quern_job_options options() { return OptionsWithAccount(this); }
};

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_JOBS_H_
