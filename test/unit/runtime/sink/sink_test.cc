// SPDX-License-Identifier: Apache-2.0
// The contract of sinks, on an operator that adds up numbers: the order of calls, row ids, lost rows, and work in
// pieces by threads that never wait.
#include "runtime/sink/sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/sink/sink_driver.h"

namespace quern {
namespace {

constexpr SinkTexts kTexts = {"rows", "the sum is known", "rows are missing from the sum", "a new sum"};

// What its user wants to fail or to see.
struct SumOptions {
  uint64_t fails_at = UINT64_MAX;  // the row id at which an append fails
  bool is_refused = false;         // once, in want of memory
  bool leaves_part = false;        // and the row has then begun
  bool fails_behind = false;       // also at the row id behind a batch
  bool throws = false;             // and how: with an exception
  absl::Status task = {};          // of the first attempt's tasks
  bool throws_at_end = false;
  bool can_repeat = false;
};

struct LocalSum final : LocalState {
  LocalSum(const std::shared_ptr<CounterSet>& counters, const SumOptions& options)
      : LocalState(counters), options(options) {}

  absl::Status Append(const BatchView& batch, RowKind /*kind*/, uint64_t first_row_id) override {
    const uint64_t end = first_row_id + batch.num_rows;
    for (uint64_t id = first_row_id; id < end || options.fails_behind; ++id) {
      if (id == options.fails_at && !std::exchange(has_failed, true)) {
        is_within_block_ = options.leaves_part;
        if (options.is_refused && options.throws) throw std::bad_alloc();
        if (options.throws) throw std::runtime_error("no sum");
        return options.is_refused ? absl::ResourceExhaustedError("no room") : absl::OutOfRangeError("no sum");
      }
      if (id == end) break;
      sum += id;
      ++taken_rows_;
    }
    return absl::OkStatus();
  }

  const SumOptions options;
  bool has_failed = false;
  uint64_t sum = 0;
};

// The sum of all row ids.
class Sum final : public Sink {
 public:
  explicit Sum(SumOptions options = {})
      : Sink(kTexts, std::make_shared<CounterSet>(), nullptr), options_(std::move(options)) {}

  uint64_t sum() const { return sum_; }

 private:
  std::unique_ptr<LocalState> NewLocalState() override { return std::make_unique<LocalSum>(counters_, options_); }
  absl::Status CheckInput(const BatchView& batch, RowKind kind) const override {
    return kind == RowKind::kStates ? InvalidArgument("states; accepted: input") : CheckBatch(batch, 0, 0);
  }
  // One task for each local state.
  absl::StatusOr<SharedWork*> BeginFinalise() override {
    ++num_attempts_;
    work_ = std::make_unique<SharedWork>([this, begun = false]() mutable {
      std::optional<SharedWork::Phase> phase;
      if (!std::exchange(begun, true)) {
        phase = {local_states()->size(), [this](uint64_t task) {
                   added_ += static_cast<const LocalSum&>(*(*local_states())[task]).sum;
                   return num_attempts_ == 1 ? options_.task : absl::OkStatus();
                 }};
      }
      return absl::StatusOr<std::optional<SharedWork::Phase>>(std::move(phase));
    });
    return work_.get();
  }
  void EndFinalise() override {
    if (options_.throws_at_end && num_ends_++ == 0) throw std::bad_alloc();
    sum_ = added_;
  }
  bool AbandonFinalise() override {
    added_ = 0;
    return options_.can_repeat;
  }

  const SumOptions options_;
  int num_attempts_ = 0, num_ends_ = 0;
  std::unique_ptr<SharedWork> work_;
  std::atomic<uint64_t> added_{0};
  uint64_t sum_ = 0;
};

BatchView Rows(uint64_t n) {
  BatchView batch;
  batch.num_rows = n;
  return batch;
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TEST(Sink, RowIdsContinueOverAllAppenders) {
  const auto sum = std::make_shared<Sum>();
  Appender first(sum), second(sum);
  ASSERT_TRUE(first.Append(Rows(3)).ok());
  ASSERT_TRUE(second.Append(Rows(2)).ok());
  ASSERT_TRUE(sum->Append(Rows(5)).ok());
  for (Appender* appender : {&first, &second}) ASSERT_TRUE(appender->Finish().ok());
  ASSERT_TRUE(sum->Finalise().ok());
  EXPECT_EQ(sum->sum(), 45u);
}

TEST(Sink, CallsOutOfOrderAreRefused) {
  const auto sum = std::make_shared<Sum>();
  Appender finished(sum), late(sum);
  ASSERT_TRUE(finished.Finish().ok());
  EXPECT_EQ(Text(finished.Append(Rows(1))), "append after finish: the rows were handed over; accepted: a new appender");
  EXPECT_EQ(Text(finished.Finish()), "finish called twice: the rows were handed over; accepted: once");
  EXPECT_EQ(Text(sum->Append(Rows(1), RowKind::kStates)), "states; accepted: input");
  EXPECT_FALSE(sum->is_finalised());
  ASSERT_TRUE(sum->Finalise().ok());
  EXPECT_TRUE(sum->is_finalised());
  EXPECT_TRUE(sum->Finalise().ok());
  EXPECT_EQ(*sum->Work(), WorkState::kDone);
  for (const absl::Status& status : {sum->Append(Rows(1)), late.Append(Rows(1)), late.Finish()})
    EXPECT_EQ(Text(status), "append after finalise: the sum is known; accepted: a new sum");
}

TEST(Sink, AfterAFailedAppendEveryCallFails) {
  const auto sum = std::make_shared<Sum>(SumOptions{.fails_at = 7});
  Appender one(sum), other(sum);
  ASSERT_TRUE(one.Append(Rows(7)).ok());
  EXPECT_EQ(Text(other.Append(Rows(1))), "no sum");
  const std::string text =
      " after a failed append: rows are missing from the sum; accepted: a new sum; it failed with: no sum";
  EXPECT_EQ(Text(one.Append(Rows(1))), "append" + text);
  EXPECT_EQ(Text(one.Finish()), "append" + text);
  EXPECT_EQ(Text(sum->Finalise()), "finalise" + text);
  EXPECT_EQ(Text(sum->Work().status()), "finalise" + text);
  EXPECT_EQ(Text(sum->FirstLoss(sum->Finalise())), "no sum");
}

// A part of the batch may have been added when the exception passed.
TEST(Sink, SoDoesItAfterAnException) {
  Sum sum(SumOptions{.fails_at = 2, .throws = true});
  EXPECT_THROW(static_cast<void>(sum.Append(Rows(5))), std::runtime_error);
  EXPECT_EQ(Text(sum.Append(Rows(1))),
            "append after a failed append: rows are missing from the sum; accepted: a new sum; it failed with: no sum");
  EXPECT_EQ(sum.Finalise().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sum.FirstLoss(sum.Finalise()).code(), absl::StatusCode::kInternal);
}

// Rows 7 and 8 come again with the ids that they had, though another appender has counted on.
TEST(Sink, ARefusedAppendGoesOnWithTheRestOfItsBatch) {
  for (const bool throws : {false, true}) {
    const auto sum = std::make_shared<Sum>(SumOptions{.fails_at = 7, .is_refused = true, .throws = throws});
    Appender one(sum), other(sum);
    uint64_t taken = 0;
    EXPECT_EQ(one.Append(Rows(9), RowKind::kInput, &taken).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(taken, 7u);
    EXPECT_TRUE(one.needs_rest());
    EXPECT_EQ(Text(one.Finish()),
              "finish after a refused append: a part of its batch is in the rows; accepted: the rest of the batch");
    ASSERT_TRUE(other.Append(Rows(1), RowKind::kInput, &taken).ok());
    EXPECT_EQ(taken, 1u);
    EXPECT_FALSE(other.needs_rest());
    ASSERT_TRUE(one.Append(Rows(2), RowKind::kInput, &taken).ok());
    EXPECT_EQ(taken, 2u);
    EXPECT_FALSE(one.needs_rest());
    for (Appender* appender : {&one, &other}) ASSERT_TRUE(appender->Finish().ok());
    ASSERT_TRUE(sum->Finalise().ok());
    EXPECT_EQ(sum->sum(), 45u);
  }
}

// Of a batch that was refused as a whole nothing is left.
TEST(Sink, ARefusedAppendThatTookNoRowNeedsNoRest) {
  const auto sum = std::make_shared<Sum>(SumOptions{.fails_at = 0, .is_refused = true});
  Appender one(sum);
  EXPECT_EQ(one.Append(Rows(9)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(one.needs_rest());
  EXPECT_TRUE(one.Finish().ok());
}

// Its row ids are those of the next batch, whichever comes.
TEST(Sink, ARefusedBatchThatIsGivenUpLeavesNoGap) {
  for (const uint64_t next_rows : {2, 9}) {
    const auto sum = std::make_shared<Sum>(SumOptions{.fails_at = 3, .is_refused = true});
    Appender one(sum), other(sum);
    ASSERT_TRUE(one.Append(Rows(3)).ok());
    for (Appender* appender : {&one, &other})
      EXPECT_EQ(appender->Append(Rows(9)).code(), absl::StatusCode::kResourceExhausted);
    ASSERT_TRUE(other.Append(Rows(1)).ok());
    ASSERT_TRUE(one.Append(Rows(next_rows)).ok());
    for (Appender* appender : {&one, &other}) ASSERT_TRUE(appender->Finish().ok());
    ASSERT_TRUE(sum->Finalise().ok());
    const uint64_t num_rows = 4 + next_rows;
    EXPECT_EQ(sum->sum(), num_rows * (num_rows - 1) / 2);
  }
}

TEST(Sink, OnlyTheRestIsAcceptedWhereAPartOfABatchIsHere) {
  const std::string text =
      " after a refused append: a part of its batch is in the rows; accepted: the rest of the batch";
  for (const bool leaves_part : {false, true}) {
    const uint64_t fails_at = leaves_part ? 0 : 7;
    const auto sum =
        std::make_shared<Sum>(SumOptions{.fails_at = fails_at, .is_refused = true, .leaves_part = leaves_part});
    Appender one(sum);
    EXPECT_EQ(one.Append(Rows(9)).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(one.needs_rest());
    for (const uint64_t num_rows : {1, 10}) {
      uint64_t taken = 1;
      const absl::Status status = one.Append(Rows(num_rows), RowKind::kInput, &taken);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(Text(status), "append" + text);
      EXPECT_EQ(taken, 0u);
    }
    EXPECT_EQ(Text(one.Finish()), "finish" + text);
    ASSERT_TRUE(one.Append(Rows(9 - fails_at)).ok());
    EXPECT_FALSE(one.needs_rest());
    ASSERT_TRUE(one.Append(Rows(1)).ok());
    ASSERT_TRUE(one.Finish().ok());
    ASSERT_TRUE(sum->Finalise().ok());
    EXPECT_EQ(sum->sum(), 45u);
  }
}

// Row 8 is here, and then the refusal came: no row is left that could come.
TEST(Sink, ARefusalBehindTheLastRowNeedsNoRest) {
  for (const uint64_t next_rows : {0, 1}) {
    const auto sum = std::make_shared<Sum>(SumOptions{.fails_at = 9, .is_refused = true, .fails_behind = true});
    Appender one(sum);
    uint64_t taken = 0;
    EXPECT_EQ(one.Append(Rows(9), RowKind::kInput, &taken).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(taken, 9u);
    EXPECT_FALSE(one.needs_rest());
    ASSERT_TRUE(one.Append(Rows(next_rows)).ok());
    ASSERT_TRUE(one.Finish().ok());
    ASSERT_TRUE(sum->Finalise().ok());
    EXPECT_EQ(sum->sum(), 36 + 9 * next_rows);
  }
}

TEST(Sink, ItsOwnLocalStateGoesOnToo) {
  Sum sum(SumOptions{.fails_at = 7, .is_refused = true});
  uint64_t taken = 0;
  EXPECT_EQ(sum.Append(Rows(9), RowKind::kInput, &taken).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(taken, 7u);
  EXPECT_EQ(Text(sum.Finalise()),
            "finalise after a refused append: a part of its batch is in the rows; accepted: the rest of the batch");
  ASSERT_TRUE(sum.Append(Rows(2), RowKind::kInput, &taken).ok());
  EXPECT_EQ(taken, 2u);
  ASSERT_TRUE(sum.Finalise().ok());
  EXPECT_EQ(sum.sum(), 36u);
}

TEST(Sink, OnlyAFinaliseThatLeavesTheRowsMayBeRepeated) {
  const absl::Status full = absl::ResourceExhaustedError("no room");
  for (const bool can_repeat : {false, true}) {
    Sum sum({.task = full, .can_repeat = can_repeat});
    ASSERT_TRUE(sum.Append(Rows(4)).ok());
    EXPECT_EQ(sum.Finalise(), full);
    if (can_repeat) {
      EXPECT_TRUE(sum.FirstLoss(absl::OkStatus()).ok());
      EXPECT_TRUE(sum.Append(Rows(1)).ok());
      EXPECT_TRUE(sum.Finalise().ok());
      EXPECT_EQ(sum.sum(), 10u);
    } else {
      EXPECT_EQ(sum.Finalise(), full);  // as for a thread that comes late
      EXPECT_EQ(Text(sum.Append(Rows(1))),
                "append after a failed finalise: rows are missing from the sum; accepted: a new sum; it failed with: "
                "no room");
    }
  }
}

// Whoever leaves failed work last opens the sink again, so that all threads may try once more.
TEST(Sink, ThreadsThatFailTogetherMayTryAgainTogether) {
  const absl::Status full = absl::ResourceExhaustedError("no room");
  for (int round = 0; round < 50; ++round) {
    Sum sum({.task = full, .can_repeat = true});
    ASSERT_TRUE(sum.Append(Rows(4)).ok());
    std::vector<absl::Status> statuses(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&sum, i, status = &statuses[i]] {
        if (i == 0) {
          *status = sum.Finalise();
          return;
        }
        absl::StatusOr<WorkState> state = WorkState::kMore;
        while (state.ok() && *state != WorkState::kDone) state = sum.Work();
        *status = state.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    // A thread that comes after the failure may already try again.
    EXPECT_EQ(std::ranges::count(statuses, full) + std::ranges::count(statuses, absl::OkStatus()), 3);
    EXPECT_GE(std::ranges::count(statuses, full), 1);
    ASSERT_TRUE(sum.Finalise().ok());
    EXPECT_EQ(sum.sum(), 6u);
  }
}

TEST(Sink, ASetStopFlagEndsAppendsAndWork) {
  int hosts_flag = 0;
  const auto flag = std::make_shared<StopFlag>(&hosts_flag);
  Sum sum;
  sum.SetStopFlag(flag);
  ASSERT_TRUE(sum.Append(Rows(4)).ok());
  hosts_flag = 1;
  const char* const text = "job cancelled: the host has stopped it; accepted: a new job";
  EXPECT_EQ(Text(sum.Append(Rows(1))), text);
  hosts_flag = 0;  // the batch that was refused has lost nothing
  ASSERT_TRUE(sum.Append(Rows(1)).ok());
  flag->Stop();
  EXPECT_EQ(Text(sum.Finalise()), text);
  EXPECT_EQ(Text(sum.Work().status()), text);
  EXPECT_FALSE(sum.is_finalised());
}

TEST(Sink, MemoryThatIsRefusedAtTheEndLosesTheResult) {
  Sum sum({.throws_at_end = true, .can_repeat = true});
  ASSERT_TRUE(sum.Append(Rows(4)).ok());
  EXPECT_EQ(sum.Finalise(), OutOfMemory());
  const std::string text =
      "finalise after a failed finalise: rows are missing from the sum; accepted: a new sum; it failed with: ";
  for (const absl::Status& status : {sum.Finalise(), sum.Work().status()})
    EXPECT_EQ(Text(status), text + std::string(OutOfMemory().message()));
  EXPECT_EQ(sum.FirstLoss(sum.Finalise()), OutOfMemory());
  EXPECT_FALSE(sum.is_finalised());
}

// Says at the end of a thread that it has ended.
struct TellsEnd {
  std::atomic<bool>* ended;
  ~TellsEnd() { *ended = true; }
};

// Thread 1 comes after the append of thread 0 has failed, and returns before it.
TEST(Sink, ThreadsThatAppendTogetherReturnTheErrorThatLostRows) {
  for (const bool throws : {false, true}) {
    const auto sum = std::make_shared<Sum>(SumOptions{.fails_at = 0, .throws = throws});
    std::atomic<bool> begun{false}, lost{false}, ended{false};
    const auto wait_for = [](const std::atomic<bool>& moment) {
      while (!moment) std::this_thread::yield();
    };
    const absl::Status status =
        AppendMorsels(sum, 2, 2, [&](const SinkInput& input, uint32_t thread, uint64_t) -> absl::Status {
          if (thread == 1) {
            thread_local const TellsEnd tells{&ended};
            static_cast<void>(tells);
            begun = true;
            wait_for(lost);
            return input.Append(Rows(1));
          }
          wait_for(begun);
          const absl::Status failed = [&] {
            try {
              return input.Append(Rows(1));
            } catch (...) {
              return StatusOfException();
            }
          }();
          lost = true;
          wait_for(ended);
          return failed;
        });
    EXPECT_EQ(Text(status), "no sum");
  }
}

TEST(Sink, ThreadsThatNeverWaitFinaliseTogether) {
  for (int round = 0; round < 50; ++round) {
    const auto sum = std::make_shared<Sum>();
    std::vector<std::unique_ptr<Appender>> appenders;
    for (int i = 0; i < 20; ++i) {
      appenders.push_back(std::make_unique<Appender>(sum));
      ASSERT_TRUE(appenders.back()->Append(Rows(10)).ok());
      ASSERT_TRUE(appenders.back()->Finish().ok());
    }
    std::atomic<int> num_done{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (*sum->Work() != WorkState::kDone) std::this_thread::yield();
        num_done += sum->sum() == 200 * 199 / 2;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(num_done, 3);
  }
}

}  // namespace
}  // namespace quern
