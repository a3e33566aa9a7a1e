// SPDX-License-Identifier: Apache-2.0
// Measuring takes seconds or minutes on threads of its own, and Python needs progress meanwhile: a bar that moves, and
// Ctrl-C. So, as for operators (workers.cc), the calling thread does not measure but waits, and every 20 ms it does the
// following with the GIL:
//
//     measuring     probe_open word 16 MiB .. stop? .. update_open word 16 MiB .. stop? ..
//     caller        wait 20 ms, signals, tick("probe_open word 16 MiB"), wait 20 ms, ..
//
// This costs some microseconds in 20 ms, and on one core of two it does not affect the measurements. The end differs
// from that of operators: half a result of an operator is worthless, but a tuning keeps its measurements, so Ctrl-C
// ends it and it returns them; a second Ctrl-C is raised.
#include "tuning.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/machine/machine_facts.h"
#include "errors.h"
#include "without_gil.h"
#include "workers.h"

namespace nb = nanobind;

namespace quern::python {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(20);

// What the measuring thread shares with the waiting one.
class Watch {
 public:
  void Say(const std::string& doing) {
    const std::lock_guard<std::mutex> lock(mutex_);
    doing_ = doing;
  }
  void End(std::exception_ptr failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = std::move(failure);
    is_over_ = true;
    over_.notify_all();
  }
  // Until it is over, for 20 ms. *doing: what is measured now.
  bool WaitForEnd(std::string* doing) {
    std::unique_lock<std::mutex> lock(mutex_);
    over_.wait_for(lock, kBetweenLooks, [this] { return is_over_; });
    *doing = doing_;
    return is_over_;
  }
  std::exception_ptr failure() const { return failure_; }  // once it is over

  std::atomic<bool> stop{false};

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::string doing_;
  std::exception_ptr failure_;
};

// What Ctrl-C does.
enum class Interrupt : uint8_t { kRaises, kEndsAtFirst };

// Signals, then tick(doing), both with the GIL; returns what they raise.
std::exception_ptr Look(const nb::object& tick, const std::string& doing) {
  const nb::gil_scoped_acquire gil;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!tick.is_none()) tick(doing);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

bool IsKeyboardInterrupt(const std::exception_ptr& raised) {
  const nb::gil_scoped_acquire gil;
  try {
    std::rethrow_exception(raised);
  } catch (nb::python_error& error) {
    return error.matches(PyExc_KeyboardInterrupt);
  } catch (...) {
    return false;
  }
}

// Called with the GIL, which is released meanwhile. *Errors*: what measure throws, what tick or a signal's handler
// raises.
void RunWatched(const nb::object& tick, Interrupt interrupt, const std::function<void(Watch*)>& measure) {
  Watch watch;
  std::exception_ptr raised;
  {
    const WithoutGil no_gil;
    const auto run = [&watch, &measure] {
      try {
        measure(&watch);
        watch.End(nullptr);
      } catch (...) {
        watch.End(std::current_exception());
      }
    };
    std::thread worker;
    try {
      worker = std::thread(run);
    } catch (const std::system_error&) {  // the system's limit of threads: without progress, and signals afterwards
      run();
    }
    for (std::string doing; !watch.WaitForEnd(&doing);) {
      if (raised) continue;
      std::exception_ptr seen = Look(tick, doing);
      if (!seen) continue;
      const bool ends_well = interrupt == Interrupt::kEndsAtFirst && !watch.stop && IsKeyboardInterrupt(seen);
      if (!ends_well) raised = std::move(seen);
      watch.stop = true;
    }
    if (worker.joinable()) worker.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (watch.failure()) std::rethrow_exception(watch.failure());
}

std::tuple<std::string, std::string> MeasureWatched(double seconds, uint64_t max_bytes, const nb::object& tick) {
  MachineFacts facts;
  RunWatched(tick, Interrupt::kRaises, [&](Watch* watch) {
    MachineFactsOptions options;
    options.seconds = seconds;
    options.max_bytes = max_bytes;
    options.progress = [watch](const std::string& doing) { watch->Say(doing); };
    options.stop = &watch->stop;
    absl::StatusOr<MachineFacts> measured = MeasureMachine(options);
    if (absl::IsCancelled(measured.status())) return;  // what ended it is raised
    Check(measured.status());
    facts = *std::move(measured);
  });
  return {FactsJson(facts), PrintFacts(facts)};
}

PyProfile TuneWatched(TuningOptions options, const nb::object& tick) {
  PyProfile made;
  RunWatched(tick, Interrupt::kEndsAtFirst, [&](Watch* watch) {
    options.progress = [watch](const TuningProgress& at) { watch->Say(at.doing); };
    options.stop = &watch->stop;
    absl::StatusOr<TuningResult> result = Tune(options);
    Check(result.status());
    made.tuning = std::make_shared<const TuningResult>(*std::move(result));
    made.profile = std::shared_ptr<const Profile>(made.tuning, &made.tuning->profile);
  });
  return made;
}

TuningEffort EffortOf(const std::string& name) {
  if (name == "estimate") return TuningEffort::kEstimate;
  if (name == "patient") return TuningEffort::kPatient;
  return TuningEffort::kMeasure;
}

}  // namespace

void DefineTuning(nb::module_* module) {
  module->def("measure_machine", &MeasureWatched, nb::arg("seconds"), nb::arg("max_bytes"), nb::arg("tick").none(),
              "The facts as JSON, and as a table for people.");
  module->def(
      "tune",
      [](std::vector<std::string> specs, const std::string& effort, double budget, uint32_t threads, uint64_t max_bytes,
         const PyProfile* start, const nb::object& tick) {
        TuningOptions options;
        options.specs = std::move(specs);
        options.effort = EffortOf(effort);
        options.budget_seconds = budget;
        options.threads = threads;
        options.max_bytes = max_bytes;
        const std::shared_ptr<const Profile> kept = start == nullptr ? nullptr : start->profile;
        options.start = kept.get();
        return TuneWatched(std::move(options), tick);
      },
      nb::arg("specs"), nb::arg("effort"), nb::arg("budget"), nb::arg("threads"), nb::arg("max_bytes"),
      nb::arg("start").none(), nb::arg("tick").none());
}

}  // namespace quern::python
