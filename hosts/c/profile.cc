// SPDX-License-Identifier: Apache-2.0
// Tuning profiles for hosts: choosing one and making one.
//
// An engine need not have files or a user's home folder. It tunes once on each kind of machine, keeps the text with its
// other settings, and passes it on when it starts:
//
//     quern_tune -> quern_profile_text -> the host's catalogue, 6 KiB
//     at the next start: quern_set_profile_text    prefetch_probe_open = 0@512K,48@8M,96; profile: 5 sizes exact, ..
//
// A profile is checked as a whole before it is set: a profile of another machine, or with one wrong line, changes
// nothing, so a host that continues after the error has its old settings.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tuning/tuner.h"
#include "hosts/c/boundary.h"
#include "hosts/c/quern.h"

struct quern_profile {
  std::string text;
};

namespace quern::c_abi {
namespace {

constexpr double kDefaultSeconds = 60, kLeastSeconds = 0.1, kMostSeconds = 24 * 3600;
constexpr uint32_t kMostThreads = 1024;
constexpr uint64_t kLeastBytes = uint64_t{1} << kSmallestSizeClass, kMostBytes = uint64_t{1} << kLargestSizeClass;

absl::StatusOr<Profile> OfThisMachine(Profile profile, const std::string& name) {
  const std::string difference = ForeignMachine(profile);
  if (difference.empty()) return profile;
  return absl::FailedPreconditionError("profile of another machine: " + name + " (" + difference +
                                       "); accepted: one of this machine, which quern tune makes");
}

absl::StatusOr<Profile> ParseText(std::string_view text, const std::string& name) {
  QUERN_ASSIGN_OR_RETURN(Profile profile, Profile::Parse(text, name));
  return OfThisMachine(std::move(profile), name);
}

absl::Status SetProfile(const char* path) {
  if (path == nullptr || std::string_view(path) == "off") {
    SetProfileOfProcess(path == nullptr ? FindProfile() : nullptr);
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(Profile read, ReadProfile(path));
  QUERN_ASSIGN_OR_RETURN(Profile profile, OfThisMachine(std::move(read), ShowPath(path)));
  SetProfileOfProcess(std::make_shared<const Profile>(std::move(profile)));
  return absl::OkStatus();
}

absl::Status SetProfileText(const char* text, size_t num_bytes) {
  if (text == nullptr) return MissingArgument("text");
  QUERN_ASSIGN_OR_RETURN(Profile profile, ParseText({text, num_bytes}, "text"));
  SetProfileOfProcess(std::make_shared<const Profile>(std::move(profile)));
  return absl::OkStatus();
}

// ---- tuning ----

absl::StatusOr<TuningEffort> EffortOf(const quern_tune_effort& effort) {
  const uint32_t number = NumberOf(effort);
  if (number == QUERN_TUNE_MEASURE) return TuningEffort::kMeasure;
  if (number == QUERN_TUNE_PATIENT) return TuningEffort::kPatient;
  return InvalidArgument("unknown effort: " + std::to_string(number) +
                         "; accepted: QUERN_TUNE_MEASURE (0), QUERN_TUNE_PATIENT (1)");
}

absl::Status CheckNumbers(const quern_tune_options& given) {
  const auto wrong = [](const char* what, const std::string& value, const char* accepted) {
    return InvalidArgument(std::string(what) + " out of range: " + value + "; accepted: " + accepted);
  };
  if (given.budget_seconds != 0 && !(given.budget_seconds >= kLeastSeconds && given.budget_seconds <= kMostSeconds))
    return wrong("budget_seconds", std::to_string(given.budget_seconds), "0.1 to 86400, or 0");
  if (given.threads > kMostThreads) return wrong("threads", std::to_string(given.threads), "0 to 1024");
  if (given.max_bytes != 0 && (given.max_bytes < kLeastBytes || given.max_bytes > kMostBytes))
    return wrong("max_bytes", std::to_string(given.max_bytes), "32768 to 2147483648, or 0");
  return absl::OkStatus();
}

constexpr size_t kTuneOptionsSize = sizeof(quern_tune_options);  // in version 2.0

absl::StatusOr<TuningOptions> OptionsOf(const quern_tune_options& given) {
  QUERN_RETURN_IF_ERROR(CheckNumbers(given));
  TuningOptions options;
  QUERN_ASSIGN_OR_RETURN(options.effort, EffortOf(given.effort));
  options.budget_seconds = given.budget_seconds == 0 ? kDefaultSeconds : given.budget_seconds;
  options.threads = given.threads == 0 ? std::min(NumUsableCpus(), 2u) : given.threads;
  options.max_bytes = given.max_bytes;
  if (given.num_specs != 0 && given.specs == nullptr) return MissingArgument("specs");
  for (size_t i = 0; i < given.num_specs; ++i) {
    if (given.specs[i] == nullptr) return MissingArgument("specs");
    options.specs.emplace_back(given.specs[i]);
  }
  return options;
}

// An exception of a host in C++ ends the tuning and goes no further.
std::function<void(const TuningProgress&)> ProgressOf(const quern_tune_options& given, std::atomic<bool>* stop) {
  if (given.on_progress == nullptr) return nullptr;
  return [on_progress = given.on_progress, context = given.context, stop](const TuningProgress& at) {
    if (*stop) return;
    try {
      *stop = !on_progress(context, at.share, at.doing.c_str());
    } catch (...) {
      *stop = true;
    }
  };
}

absl::Status TuneMachine(const quern_tune_options* given, quern_profile** profile) {
  if (profile == nullptr) return MissingArgument("profile");
  *profile = nullptr;
  QUERN_ASSIGN_OR_RETURN(const quern_tune_options all, ReadOptions(given, kTuneOptionsSize));
  QUERN_ASSIGN_OR_RETURN(TuningOptions options, OptionsOf(all));
  std::optional<Profile> start;
  if (all.start != nullptr) {
    QUERN_ASSIGN_OR_RETURN(start, ParseText(all.start, "start"));
    options.start = &*start;
  }
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.progress = ProgressOf(all, &stop);
  QUERN_ASSIGN_OR_RETURN(const TuningResult result, Tune(options));
  *profile = std::make_unique<quern_profile>(quern_profile{result.profile.Print()}).release();
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_set_profile(const char* path, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::SetProfile(path); });
}

quern_status quern_set_profile_text(const char* text, size_t num_bytes, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::SetProfileText(text, num_bytes); });
}

quern_status quern_tune(const quern_tune_options* options, quern_profile** profile, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::TuneMachine(options, profile); });
}

void quern_profile_destroy(quern_profile* profile) { delete profile; }

const char* quern_profile_text(const quern_profile* profile) {
  return profile == nullptr ? nullptr : profile->text.c_str();
}

}  // extern "C"
