// SPDX-License-Identifier: Apache-2.0
// A thousand small jobs of all operators, eight at a time, with what hosts do to them: a job is cancelled by another
// thread or by its stop flag, or a request for memory is refused, after a random number of calls; inputs are destroyed
// unfinished; threads that wait work beside threads that never do; handles are destroyed in random order, so that
// outputs outlive their job.
//
// A job whose calls all succeed has the right rows, whatever was done to it. One that nothing was done to has no other
// choice. A join that was refused memory while it was built is built again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "quern.hpp"
#include "test/unit/seed.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// Abseil's library is not built for ThreadSanitizer, which therefore does not see how the threads that share a status
// count its owners.
extern "C" const char* __tsan_default_suppressions() { return "race:Unref\n"; }
#endif
#endif

namespace {

using quern::Input;
using quern::Job;
using quern::Kernel;
using quern::Output;
using quern::Status;
using Numbers = std::vector<int64_t>;
using Random = std::mt19937_64;

constexpr uint32_t kThreads = 8, kJobs = 1000;
constexpr int64_t kNull = INT64_MIN;

uint64_t Below(Random* random, uint64_t limit) { return (*random)() % limit; }
bool OneIn(Random* random, uint64_t n) { return Below(random, n) == 0; }

enum class Operator : uint8_t { kJoin, kAggregate, kSort, kMerge, kFilter };
constexpr const char* kSpecs[] = {"join.right keys=i64 build=i64 probe=i64", "aggregate keys=i64 aggs=sum(i64)",
                                  "sort keys=i64:out", "sort keys=i64:out", "filter i64 < 100"};

enum class Disturbance : uint8_t { kNone, kCancel, kStopFlag, kRefusal };

quern_column ColumnOf(const Numbers& values, size_t first) {
  quern_column column = {};
  column.values = values.data() + first;
  return column;
}

void OnThreads(uint32_t threads, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others) thread.join();
}

// A host's account of memory, which grants so many requests.
struct Account {
  std::atomic<int64_t> used{0}, granted{INT64_MAX};

  static bool Reserve(void* host, uint64_t bytes) {
    auto* account = static_cast<Account*>(host);
    if (account->granted-- <= 0) return false;
    account->used += static_cast<int64_t>(bytes);
    return true;
  }
  static void Release(void* host, uint64_t bytes) { static_cast<Account*>(host)->used -= static_cast<int64_t>(bytes); }
};

// Rows of one thread: of the build side and of the probe side of a join, otherwise only the first.
struct Rows {
  Numbers keys, values;
};

Rows RandomRows(Random* random) {
  Rows rows;
  const uint64_t num_rows = OneIn(random, 20) ? 5000 : Below(random, 200);
  for (uint64_t i = 0; i < num_rows; ++i) {
    rows.keys.push_back(static_cast<int64_t>(Below(random, num_rows + 100)));
    rows.values.push_back(static_cast<int64_t>(Below(random, 1000)));
  }
  return rows;
}

// One job, and the host's threads that work for it.
class Case {
 public:
  Case(const Kernel& kernel, Operator op, uint64_t seed) : op_(op), random_(seed) {
    threads_ = 1 + static_cast<uint32_t>(Below(&random_, 3));
    disturbance_ = OneIn(&random_, 2) ? Disturbance::kNone : static_cast<Disturbance>(1 + Below(&random_, 3));
    call_ = static_cast<int64_t>(Below(&random_, 12 * threads_));
    by_a_worker_ = OneIn(&random_, 2);
    for (uint32_t i = 0; i < threads_; ++i) {
      sides_.push_back(RandomRows(&random_));
      probes_.push_back(RandomRows(&random_));
      seeds_.push_back(random_());
      if (op == Operator::kMerge) std::ranges::sort(sides_.back().keys);
    }
    inputs_.resize(threads_);
    outputs_.resize(threads_);
    if (disturbance_ == Disturbance::kRefusal) account_.granted = call_ / 3;
    quern_job_options options = {};
    options.num_runs = op == Operator::kMerge ? threads_ : 0;
    options.reserve = Account::Reserve;
    options.release = Account::Release;
    options.host = &account_;
    options.stop = &stop_;
    quern::Result<Job> job = Job::Create(kernel, options);
    if (Succeeded(job.status())) job_ = *std::move(job);
  }

  void Run() {
    if (!job_) return;
    std::thread disturber([this] {
      while (num_calls_ < call_ && !ended_) std::this_thread::yield();
      if (!by_a_worker_) Disturb();
    });
    if (op_ == Operator::kFilter) OnThreads(threads_, [this](uint32_t thread) { Select(thread); });
    else if (op_ == Operator::kMerge) Merge();
    else RunSink();
    ended_ = true;
    disturber.join();
    DestroyAll();
    EXPECT_EQ(account_.used, 0);
    if (failed_) return;
    std::ranges::sort(found_);
    EXPECT_EQ(found_, Expected());
  }

 private:
  // ---- what the host does ----

  void Disturb() {
    if (disturbance_ == Disturbance::kCancel) job_->Cancel();
    if (disturbance_ == Disturbance::kStopFlag) __atomic_store_n(&stop_, 1, __ATOMIC_RELAXED);
  }

  // Whether a call has succeeded. A failure must be one that the disturbance explains.
  bool Succeeded(const Status& status) {
    if (num_calls_++ == call_ && by_a_worker_) Disturb();
    if (status.ok()) return true;
    failed_ = true;
    const quern_status wanted = disturbance_ == Disturbance::kRefusal ? QUERN_RESOURCE_EXHAUSTED : QUERN_CANCELLED;
    const bool follows = status.code() == QUERN_FAILED_PRECONDITION;  // the failure of another thread
    if (disturbance_ == Disturbance::kNone || (status.code() != wanted && !follows)) ADD_FAILURE() << status.text();
    return false;
  }

  // ---- joins, aggregations, sorts ----

  void RunSink() {
    OnThreads(threads_, [this](uint32_t thread) { Append(thread); });
    OnThreads(threads_, [this](uint32_t thread) { Work(thread); });
    if (op_ == Operator::kJoin && !WorkAgain()) return;
    if (op_ == Operator::kJoin) OnThreads(threads_, [this](uint32_t thread) { Probe(thread); });
    OnThreads(threads_, [this](uint32_t thread) { outputs_[thread] = NewOutput(UnprobedPort()); });
    const bool outlive = OneIn(&random_, 2);
    if (outlive && disturbance_ != Disturbance::kCancel) job_.reset();
    OnThreads(threads_, [this](uint32_t thread) {
      if (outputs_[thread]) Read(&*outputs_[thread], QUERN_RESULT_DONE);
    });
  }

  quern_port InputPort() const { return op_ == Operator::kJoin ? QUERN_PORT_BUILD : QUERN_PORT_ROWS; }
  quern_port UnprobedPort() const { return op_ == Operator::kJoin ? QUERN_PORT_UNMATCHED : QUERN_PORT_ROWS; }

  std::optional<Input> NewInput(uint32_t run = 0) {
    quern_input_options options = {};
    options.run = run;
    quern::Result<Input> input = job_->NewInput(InputPort(), options);
    if (!Succeeded(input.status())) return std::nullopt;
    return *std::move(input);
  }

  std::optional<Output> NewOutput(quern_port port) {
    quern_output_options options = {};
    options.batch_rows = 64;
    quern::Result<Output> output = job_->NewOutput(port, options);
    if (!Succeeded(output.status())) return std::nullopt;
    return *std::move(output);
  }

  // Calls use(batch) for batches of random sizes, until it returns false; returns whether all were used.
  template <class Use>
  static bool InBatches(const Rows& rows, Random* random, const Use& use) {
    for (size_t first = 0; first < rows.keys.size();) {
      const size_t num_rows = std::min<size_t>(rows.keys.size() - first, 1 + Below(random, 100));
      const quern_column key = ColumnOf(rows.keys, first), value = ColumnOf(rows.values, first);
      quern_batch batch = {};
      batch.keys = &key;
      batch.payload = &value;
      batch.num_rows = num_rows;
      if (!use(batch)) return false;
      first += num_rows;
    }
    return true;
  }

  void Append(uint32_t thread) {
    Random random(seeds_[thread]);
    const bool drops = OneIn(&random, 3);
    std::optional<Input> input = NewInput(), dropped = drops ? NewInput() : std::nullopt;
    if (!input || (drops && !dropped)) return;
    const bool appended = InBatches(sides_[thread], &random, [&](const quern_batch& batch) {
      return Succeeded(input->Append(batch)) && (!drops || Succeeded(dropped->Append(batch)));
    });
    if (appended) Succeeded(input->Finish());
    inputs_[thread] = std::move(input);
    if (!appended) inputs_[thread].reset();
  }

  void Work(uint32_t thread) {
    Random random(seeds_[thread] + 1);
    if (OneIn(&random, 2)) {
      Succeeded(job_->Finalise());
      return;
    }
    while (true) {
      const quern::Result<quern_work_state> state = job_->Work();
      if (!Succeeded(state.status()) || *state == QUERN_WORK_DONE) return;
      std::this_thread::yield();
    }
  }

  // Builds a join again that was refused memory. Returns whether it can be probed.
  bool WorkAgain() {
    if (disturbance_ != Disturbance::kRefusal) return !failed_;
    account_.granted = INT64_MAX;
    const Status status = job_->Finalise();
    const bool rows_are_missing = !AllFinished();
    if (!rows_are_missing) {
      EXPECT_EQ(status.text(), "");
    }
    failed_ = rows_are_missing || !status.ok();
    return !failed_;
  }

  bool AllFinished() const {
    return std::ranges::all_of(inputs_, [](const std::optional<Input>& input) { return input.has_value(); });
  }

  void Probe(uint32_t thread) {
    Random random(seeds_[thread] + 2);
    std::optional<Output> output = NewOutput(QUERN_PORT_PROBE);
    if (!output) return;
    InBatches(probes_[thread], &random, [&](const quern_batch& batch) {
      return Succeeded(output->Push(batch)) && Read(&*output, QUERN_RESULT_NEEDS_INPUT);
    });
    if (OneIn(&random, 2)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    probers_.push_back(std::move(*output));
  }

  // Takes rows until the output is in the state that follows QUERN_RESULT_MORE; returns whether it got there.
  bool Read(Output* output, quern_result_state last) {
    while (true) {
      const quern::Result<const quern_result*> next = output->Next();
      if (!Succeeded(next.status())) return false;
      Take(**next);
      if ((*next)->state != QUERN_RESULT_MORE) return (*next)->state == last || Unexpected((*next)->state);
    }
  }

  static bool Unexpected(quern_result_state state) {
    ADD_FAILURE() << "state " << state;
    return false;
  }

  void Take(const quern_result& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      Numbers& values = found_.emplace_back();
      if (op_ == Operator::kSort) values.push_back(static_cast<int64_t>(result.position + row));
      if (op_ == Operator::kMerge) values.push_back(static_cast<int64_t>(found_.size() - 1));
      for (size_t i = 0; i < result.num_columns; ++i) {
        const quern_column& column = result.columns[i];
        const bool valid = column.validity == nullptr || (column.validity[row / 8] >> row % 8 & 1) != 0;
        values.push_back(valid ? static_cast<const int64_t*>(column.values)[row] : kNull);
      }
    }
  }

  // ---- filters and merges ----

  void Select(uint32_t thread) {
    Random random(seeds_[thread]);
    InBatches(sides_[thread], &random, [&](const quern_batch& batch) {
      std::vector<uint32_t> rows(batch.num_rows);
      uint64_t num_rows = 0;
      quern_error error;
      if (quern_job_filter(job_->handle(), &batch, rows.data(), nullptr, &num_rows, &error) != QUERN_OK)
        return Succeeded(Status(error));
      const std::lock_guard<std::mutex> lock(mutex_);
      for (uint64_t i = 0; i < num_rows; ++i)
        found_.push_back({static_cast<const int64_t*>(batch.keys->values)[rows[i]]});
      return Succeeded(Status());
    });
  }

  void Merge() {
    for (uint32_t run = 0; run < threads_; ++run) inputs_[run] = NewInput(run);
    outputs_[0] = NewOutput(QUERN_PORT_ROWS);
    if (failed_) return;
    std::vector<size_t> next_row(threads_, 0);
    while (true) {
      const quern::Result<const quern_result*> next = outputs_[0]->Next();
      if (!Succeeded(next.status())) return;
      Take(**next);
      if ((*next)->state == QUERN_RESULT_DONE) return;
      if ((*next)->state == QUERN_RESULT_MORE) continue;
      const uint32_t run = (*next)->run;
      const Numbers& keys = sides_[run].keys;
      const quern_column key = ColumnOf(keys, next_row[run]);
      quern_batch batch = {};
      batch.keys = &key;
      batch.num_rows = std::min<size_t>(keys.size() - next_row[run], 1 + Below(&random_, 300));
      next_row[run] += batch.num_rows;
      if (!Succeeded(batch.num_rows == 0 ? inputs_[run]->Finish() : inputs_[run]->Append(batch))) return;
    }
  }

  // ---- the end ----

  void DestroyAll() {
    std::vector<std::function<void()>> destroyers = {[this] { job_.reset(); }, [this] { probers_.clear(); }};
    for (std::optional<Input>& input : inputs_) destroyers.emplace_back([&input] { input.reset(); });
    for (std::optional<Output>& output : outputs_) destroyers.emplace_back([&output] { output.reset(); });
    std::ranges::shuffle(destroyers, random_);
    for (const auto& destroy : destroyers) destroy();
  }

  std::vector<Numbers> Expected() const {
    std::vector<Numbers> expected;
    Numbers keys;
    std::map<int64_t, int64_t> sums;
    std::multimap<int64_t, int64_t> built, probed;
    for (const Rows& side : sides_) {
      keys.insert(keys.end(), side.keys.begin(), side.keys.end());
      for (size_t i = 0; i < side.keys.size(); ++i) {
        sums[side.keys[i]] += side.values[i];
        built.emplace(side.keys[i], side.values[i]);
      }
    }
    for (const Rows& side : probes_)
      for (size_t i = 0; i < side.keys.size(); ++i) probed.emplace(side.keys[i], side.values[i]);
    std::ranges::sort(keys);
    switch (op_) {
      case Operator::kJoin:
        for (const auto& [key, value] : built) {
          const auto [begin, end] = probed.equal_range(key);
          for (auto match = begin; match != end; ++match) expected.push_back({match->second, value});
          if (begin == end) expected.push_back({kNull, value});
        }
        break;
      case Operator::kAggregate:
        for (const auto& [key, sum] : sums) expected.push_back({key, sum});
        break;
      case Operator::kSort:
      case Operator::kMerge:
        for (const int64_t key : keys) expected.push_back({static_cast<int64_t>(expected.size()), key});
        break;
      case Operator::kFilter:
        for (const int64_t key : keys)
          if (key < 100) expected.push_back({key});
        break;
    }
    std::ranges::sort(expected);
    return expected;
  }

  const Operator op_;
  Random random_;
  uint32_t threads_;
  Disturbance disturbance_;
  int64_t call_;      // after which it happens
  bool by_a_worker_;  // or by a thread that does nothing else
  std::vector<Rows> sides_, probes_;
  std::vector<uint64_t> seeds_;
  Account account_;
  volatile int stop_ = 0;
  std::atomic<int64_t> num_calls_{0};
  std::atomic<bool> ended_{false}, failed_{false};
  std::optional<Job> job_;
  std::vector<std::optional<Input>> inputs_;
  std::vector<std::optional<Output>> outputs_;
  std::vector<Output> probers_;
  std::mutex mutex_;
  std::vector<Numbers> found_;
};

TEST(Stress, JobsThatAreDisturbed) {
  Random random = quern::test::PrintedRandom();
  std::vector<Kernel> kernels;
  for (const char* spec : kSpecs) kernels.push_back(*Kernel::Compile(spec, quern::Engine::kGeneric));
  std::vector<uint64_t> seeds(kJobs);
  std::ranges::generate(seeds, std::ref(random));
  std::atomic<uint32_t> next_job{0};
  OnThreads(kThreads, [&](uint32_t) {
    for (uint32_t number = next_job++; number < kJobs; number = next_job++) {
      SCOPED_TRACE("job " + std::to_string(number));
      const size_t op = number % std::size(kSpecs);
      Case(kernels[op], static_cast<Operator>(op), seeds[number]).Run();
    }
  });
}

}  // namespace
