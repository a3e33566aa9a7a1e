// SPDX-License-Identifier: Apache-2.0
// The shared parts of operators: handles that close themselves, appending and reading on threads, and results in the
// order of their morsels.
#ifndef QUERN_HOSTS_PYTHON_SRC_OPERATOR_PARTS_H_
#define QUERN_HOSTS_PYTHON_SRC_OPERATOR_PARTS_H_

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "hosts/c/quern.h"
#include "operators.h"
#include "workers.h"

namespace quern::python {

template <class Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

// A schema that is released where the block ends.
class SchemaOfView {
 public:
  explicit SchemaOfView(const View& view) { ExportSchema(view.output_fields(), &schema_); }
  SchemaOfView(const SchemaOfView&) = delete;
  SchemaOfView& operator=(const SchemaOfView&) = delete;
  ~SchemaOfView() { schema_.release(&schema_); }
  const ArrowSchema* get() const { return &schema_; }

 private:
  ArrowSchema schema_ = {};
};

// 0, the calling thread, for a single morsel: threads that are made for it would take longer than its rows.
inline uint32_t ThreadsFor(const View& view, uint32_t threads) {
  if (!view.source()->is_collected()) return threads;
  if (view.source()->num_rows() <= static_cast<uint64_t>(kMorselRows)) return 0;
  return quern_advise_threads(nullptr, view.source()->num_rows(), threads, nullptr, 0, nullptr);
}

// A batch on its way into the library.
struct Handover {
  ArrowArray array = {};
  quern_arrow_rows rows = {};

  Handover(const Taken& taken, uint64_t first_row) {
    ExportBatch(taken.batch, &array);
    rows = {sizeof(rows), taken.rows, taken.num_rows, first_row};
  }
};

// Calls take(what the view makes of it, morsel) for the next morsel, where it has rows then; false where there is no
// further one.
template <class Take>
bool TakeMorsel(Feed* feed, const View& view, RowRoom* room, const Take& take) {
  std::optional<Feed::Morsel> morsel = feed->Next();
  if (!morsel) return false;
  const Taken taken = view.Take(std::move(morsel->batch), room);
  if (taken.num_rows > 0) take(taken, *morsel);
  return true;
}

// The same for all that this thread gets.
template <class Take>
void TakeMorsels(Feed* feed, const View& view, const StopFlag& stop, const Take& take) {
  RowRoom room;
  while (!stop && TakeMorsel(feed, view, &room, take)) {
  }
}

// Append and finalise, of any operator whose handles and calls are these.
template <class State, class Appender>
struct AppendCalls {
  quern_status (*append)(State*, ArrowArray*, const quern_arrow_rows*, quern_error*);
  quern_status (*appender_create)(State*, Appender**, quern_error*);
  void (*appender_destroy)(Appender*);
  quern_status (*appender_append)(Appender*, ArrowArray*, const quern_arrow_rows*, quern_error*);
  quern_status (*appender_finish)(Appender*, quern_error*);
  quern_status (*finalise_shared)(State*, quern_error*);
};

template <class State, class Appender>
void AppendByOne(const AppendCalls<State, Appender>& calls, State* state, const View& view, Feed* feed,
                 uint32_t threads) {
  RunWorkers(threads, [&](uint32_t, const StopFlag& stop) {
    TakeMorsels(feed, view, stop, [&](const Taken& taken, const Feed::Morsel& morsel) {
      Handover batch(taken, morsel.first_row);
      quern_error error;
      Check(calls.append(state, &batch.array, &batch.rows, &error), error);
    });
  });
}

template <class State, class Appender>
void AppendByAll(const AppendCalls<State, Appender>& calls, State* state, const View& view, Feed* feed,
                 uint32_t threads) {
  RunWorkers(threads, [&](uint32_t, const StopFlag& stop) {
    quern_error error;
    Appender* created = nullptr;
    Check(calls.appender_create(state, &created, &error), error);
    const Owned<Appender> appender(created, calls.appender_destroy);
    TakeMorsels(feed, view, stop, [&](const Taken& taken, const Feed::Morsel& morsel) {
      Handover batch(taken, morsel.first_row);
      Check(calls.appender_append(created, &batch.array, &batch.rows, &error), error);
    });
    Check(calls.appender_finish(created, &error), error);
  });
}

// threads: as of RunWorkers. What the feed has left.
template <class State, class Appender>
void AppendAndFinalise(const AppendCalls<State, Appender>& calls, State* state, const View& view, Feed* feed,
                       uint32_t threads) {
  if (threads <= 1) AppendByOne(calls, state, view, feed, threads);
  else AppendByAll(calls, state, view, feed, threads);
  RunWorkers(threads, [&](uint32_t, const StopFlag&) {
    quern_error error;
    Check(calls.finalise_shared(state, &error), error);
  });
}

// Batches that several threads made, put into order when all are there.
class OrderedBatches {
 public:
  // place: of the batch among all; several batches of one place keep the order in which one thread adds them.
  void Add(uint64_t place, Batch batch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    batches_.push_back({place, batches_.size(), std::move(batch)});
  }
  std::vector<Batch> Take() {
    const auto comes_before = [](const Made& a, const Made& b) {
      return std::tie(a.place, a.arrival) < std::tie(b.place, b.arrival);
    };
    std::sort(batches_.begin(), batches_.end(), comes_before);
    std::vector<Batch> batches;
    for (Made& made : batches_) batches.push_back(std::move(made.batch));
    return batches;
  }

 private:
  struct Made {
    uint64_t place;
    size_t arrival;
    Batch batch;
  };

  std::mutex mutex_;
  std::vector<Made> batches_;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_OPERATOR_PARTS_H_
