// SPDX-License-Identifier: Apache-2.0
// Every choice about a kernel is made here, once, and printed. Example:
//
//     plan join.inner keys=i64 build=f64
//     layout = auto                       # table layout; auto: by the keys, ..; accepted: auto, unchained, dense, open
//     batch_size = 1024                   # rows hashed, encoded or tested at a time (rows)
//     prefetch_probe_open = 0@1M,64@32M,128   # settings by table size; estimate
//     ..
//     l2_bytes = 1048576                  # the machine's: where the classes of table size begin
//
// The text parses back to the same plan; what follows a '#' is for people.
#include "codegen/plan/plan.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

#include "codegen/machine/prefetch_choice.h"
#include "runtime/base/status.h"
#include "runtime/rows/tuple_layout.h"

namespace quern {
namespace {

// "a|b" holds "a".
bool IsAccepted(std::string_view accepted, std::string_view word) {
  while (!accepted.empty()) {
    const size_t bar = std::min(accepted.find('|'), accepted.size());
    if (accepted.substr(0, bar) == word) return true;
    accepted.remove_prefix(std::min(bar + 1, accepted.size()));
  }
  return false;
}

std::string CommaList(std::string_view accepted) {
  std::string text(accepted);
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|')) text.replace(at, 1, ", ");
  return text;
}

bool ReadNumber(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

absl::Status SetNumber(std::string_view name, std::string_view value, uint64_t min, uint64_t max, const char* unit,
                       uint32_t* target) {
  uint64_t number = 0;
  if (!ReadNumber(value, &number) || number < min || number > max) {
    return InvalidArgument("bad value of plan parameter " + std::string(name) + ": " + Show(value) +
                           "; accepted: " + std::to_string(min) + " to " + std::to_string(max) + " " + unit);
  }
  *target = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

absl::Status SetChoice(std::string_view name, std::string_view value, std::string_view accepted, std::string* target) {
  if (!IsAccepted(accepted, value)) {
    return InvalidArgument("bad value of plan parameter " + std::string(name) + ": " + Show(value) +
                           "; accepted: " + CommaList(accepted));
  }
  *target = std::string(value);
  return absl::OkStatus();
}

absl::Status SetSchedule(PrefetchLoop loop, std::string_view name, std::string_view value, bool applies,
                         KernelPlan* plan) {
  absl::StatusOr<PrefetchSchedule> schedule = ParseSchedule(value, DefaultHint(loop));
  if (!schedule.ok())
    return InvalidArgument("bad value of plan parameter " + std::string(name) + ": " +
                           std::string(schedule.status().message()));
  if (!applies) return absl::OkStatus();
#define QUERN_PLAN_SCHEDULE(scope, Loop, parameter, meaning) \
  if (loop == PrefetchLoop::Loop) {                          \
    plan->parameter = *std::move(schedule);                  \
    plan->parameter##_origin.text = "given";                 \
    return absl::OkStatus();                                 \
  }
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning)
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning)
#include "codegen/plan/plan_parameters.def"
  return absl::OkStatus();
}

enum class Scope : uint8_t { kAll, kStored, kBoth, kJoin, kPackedJoin, kAggregate, kPackedAggregate, kSort };

bool HasPackedKeys(const KernelSpec& spec) {
  std::vector<KeySpec> kernel_keys;
  for (const KeySpec& key : spec.keys) kernel_keys.push_back(KernelKey(key));
  return WordBits(kernel_keys) != 0;
}

// Schedules of loops over words are taken for all keys, so that one list of parameters serves many specs.
Scope OperatorsOf(Scope scope) {
  return scope == Scope::kPackedJoin ? Scope::kJoin : scope == Scope::kPackedAggregate ? Scope::kAggregate : scope;
}

bool IsIn(Scope scope, const KernelSpec& spec) {
  switch (scope) {
    case Scope::kAll: return true;
    case Scope::kStored: return spec.op != Operator::kFilter;
    case Scope::kBoth: return spec.op == Operator::kJoin || spec.op == Operator::kAggregate;
    case Scope::kJoin: return spec.op == Operator::kJoin;
    case Scope::kPackedJoin: return spec.op == Operator::kJoin && HasPackedKeys(spec);
    case Scope::kPackedAggregate: return spec.op == Operator::kAggregate && HasPackedKeys(spec);
    case Scope::kAggregate: return spec.op == Operator::kAggregate;
    case Scope::kSort: return spec.op == Operator::kSort;
  }
  return false;
}

std::string ParameterNames(const KernelSpec& spec) {
  std::string names;
  const auto add = [&](Scope scope, const char* name) {
    if (IsIn(scope, spec)) names += (names.empty() ? "" : ", ") + std::string(name);
  };
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) add(Scope::scope, #name);
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning) add(Scope::scope, #name);
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) add(Scope::scope, #name);
#include "codegen/plan/plan_parameters.def"
  return names;
}

absl::Status SetParameter(KernelPlan* plan, std::string_view name, std::string_view value) {
#define QUERN_PLAN_NUMBER(scope, parameter, default_value, min, max, unit, meaning) \
  if (name == #parameter && IsIn(Scope::scope, plan->spec))                         \
    return SetNumber(name, value, min, max, unit, &plan->parameter);
#define QUERN_PLAN_CHOICE(scope, parameter, default_value, accepted, meaning) \
  if (name == #parameter && IsIn(Scope::scope, plan->spec)) return SetChoice(name, value, accepted, &plan->parameter);
#define QUERN_PLAN_SCHEDULE(scope, Loop, parameter, meaning)             \
  if (name == #parameter && IsIn(OperatorsOf(Scope::scope), plan->spec)) \
    return SetSchedule(PrefetchLoop::Loop, name, value, IsIn(Scope::scope, plan->spec), plan);
#include "codegen/plan/plan_parameters.def"
  return InvalidArgument("unknown plan parameter: " + Show(name) + "; accepted: " + ParameterNames(plan->spec));
}

// Printed as 0, so that a plan shows what is done.
void StopPrefetching(KernelPlan* plan) {
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning)
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning)
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning)                     \
  plan->name = ParseSchedule("0", DefaultHint(PrefetchLoop::Loop)).value(); \
  plan->name##_origin.text = "off";
#include "codegen/plan/plan_parameters.def"
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) \
  if (IsIn(Scope::scope, plan->spec)) plan->prefetch_##name = 0;
#include "runtime/rows/prefetch_distances.def"
}

// What parameters say about each other.
absl::Status FinaliseModule(KernelPlan* plan) {
  std::vector<KeySpec> kernel_keys;
  for (const KeySpec& key : plan->spec.keys) kernel_keys.push_back(KernelKey(key));
  if ((plan->group_layout == "dense" || plan->group_layout == "open") && WordBits(kernel_keys) == 0) {
    return InvalidArgument("layout for keys that fit one machine word: " + Show(plan->group_layout) +
                           "; accepted: auto, directory");
  }
  if (plan->prefetch == "off") StopPrefetching(plan);
  // A group cannot be longer than the batch that it is a part of.
  plan->prefetch_group = std::min(plan->prefetch_group, plan->batch_size);
  // A string's field ends at a multiple of 8, so that the next field lies where it would have to anyway.
  plan->inline_key_bytes = (plan->inline_key_bytes + 3) / 8 * 8 + 4;
  plan->inline_group_bytes = (plan->inline_group_bytes + 3) / 8 * 8 + 4;
  if ((plan->layout == "dense" || plan->layout == "open") && WordBits(plan->spec) == 0) {
    return InvalidArgument("layout for keys that fit one machine word: " + Show(plan->layout) +
                           "; accepted: auto, unchained");
  }
  return absl::OkStatus();
}

std::string OriginText(const ScheduleOrigin& origin) { return origin.text.empty() ? "" : "; " + origin.text; }

std::string Line(const std::string& setting, const std::string& meaning) {
  const size_t column = 36;
  return setting + std::string(setting.size() < column ? column - setting.size() : 1, ' ') + "# " + meaning + "\n";
}

}  // namespace

absl::StatusOr<KernelPlan> MakePlan(const KernelSpec& spec, const Machine& machine, const PlanOverrides& overrides,
                                    const Profile* profile) {
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  KernelPlan plan;
  plan.spec = spec;
  plan.l2_bytes = machine.l2_bytes;
  plan.l3_bytes = machine.l3_bytes;
  const KeyClass keys = KeyClassOf(spec);
  // Schedules are chosen by it, and may be given beside it.
  for (const auto& [name, value] : overrides)
    if (name == "pipeline") QUERN_RETURN_IF_ERROR(SetParameter(&plan, name, value));
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning)
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning)
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) \
  if (IsIn(Scope::scope, spec))                         \
    plan.name = ChooseSchedule(PrefetchLoop::Loop, keys, plan.pipeline, machine, profile, &plan.name##_origin.text);
#include "codegen/plan/plan_parameters.def"
  for (const auto& [name, value] : overrides) QUERN_RETURN_IF_ERROR(SetParameter(&plan, name, value));
  if (plan.states == "auto" && spec.op == Operator::kAggregate)
    plan.states = HasVectorMasks(machine) ? "vectors" : "single";
  QUERN_RETURN_IF_ERROR(FinaliseModule(&plan));
  return plan;
}

std::string PrintPlan(const KernelPlan& plan) {
  std::string text = "plan " + PrintSpec(plan.spec) + "\n";
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  if (IsIn(Scope::scope, plan.spec)) text += Line(#name " = " + std::to_string(plan.name), meaning " (" unit ")");
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning) \
  if (IsIn(Scope::scope, plan.spec))                                     \
    text += Line(#name " = " + plan.name, meaning "; accepted: " + CommaList(accepted));
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning)                                   \
  if (IsIn(Scope::scope, plan.spec))                                                      \
    text += Line(#name " = " + PrintSchedule(plan.name, DefaultHint(PrefetchLoop::Loop)), \
                 meaning + OriginText(plan.name##_origin));
#include "codegen/plan/plan_parameters.def"
  text += Line("l2_bytes = " + std::to_string(plan.l2_bytes), "the machine's: tables up to it are of class l2");
  text += Line("l3_bytes = " + std::to_string(plan.l3_bytes),
               "the machine's: tables up to it are of class l3, beyond of class dram");
  return text;
}

absl::StatusOr<KernelPlan> ParsePlan(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line.rfind("plan ", 0) != 0) {
    return InvalidArgument("bad plan: " + Show(line) + "; accepted: plan SPEC, then NAME = VALUE lines");
  }
  KernelPlan plan;
  QUERN_ASSIGN_OR_RETURN(plan.spec, ParseSpec(std::string_view(line).substr(5)));
  while (std::getline(lines, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, equals, value, extra;
    if (!(words >> name)) continue;
    if (!(words >> equals >> value) || equals != "=" || (words >> extra)) {
      return InvalidArgument("bad line of a plan: " + Show(line) + "; accepted: NAME = VALUE  # comment");
    }
    uint64_t bytes = 0;
    if ((name == "l2_bytes" || name == "l3_bytes") && ReadNumber(value, &bytes))
      (name == "l2_bytes" ? plan.l2_bytes : plan.l3_bytes) = bytes;
    else QUERN_RETURN_IF_ERROR(SetParameter(&plan, name, value));
  }
  QUERN_RETURN_IF_ERROR(FinaliseModule(&plan));
  return plan;
}

std::string PlanJson(const KernelPlan& plan) {
  std::string text = "{";
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  if (IsIn(Scope::scope, plan.spec)) text += "\"" #name "\":" + std::to_string(plan.name) + ",";
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning) \
  if (IsIn(Scope::scope, plan.spec)) text += "\"" #name "\":\"" + plan.name + "\",";
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) \
  if (IsIn(Scope::scope, plan.spec))                    \
    text += "\"" #name "\":\"" + PrintSchedule(plan.name, DefaultHint(PrefetchLoop::Loop)) + "\",";
#include "codegen/plan/plan_parameters.def"
  return text + "\"l2_bytes\":" + std::to_string(plan.l2_bytes) + ",\"l3_bytes\":" + std::to_string(plan.l3_bytes) +
         "}";
}

std::string CodeParameters(const KernelPlan& plan) {
  constexpr std::string_view kOfCode[] = {"inline_key_bytes", "inline_group_bytes",  "sort_method", "hash",
                                          "prefetch",         "prefetch_input_rows", "states",      "passes",
                                          "codegen_level",    "toggled_pass"};
  std::string text;
  const auto add = [&](Scope scope, std::string_view name, const std::string& value) {
    if (!IsIn(scope, plan.spec) || std::find(std::begin(kOfCode), std::end(kOfCode), name) == std::end(kOfCode)) return;
    text += (text.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + value;
  };
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  add(Scope::scope, #name, std::to_string(plan.name));
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning) \
  add(Scope::scope, #name, "\"" + plan.name + "\"");
#include "codegen/plan/plan_parameters.def"
  return text + "}";
}

std::shared_ptr<const JoinDescriptor> MakePlannedDescriptor(const KernelPlan& plan) {
  auto descriptor = std::make_shared<JoinDescriptor>(plan.spec, plan.inline_key_bytes);
  QuernJoinDescriptor* tuning = descriptor->mutable_tuning();
  tuning->batch_rows = plan.batch_size;
  tuning->group_rows = plan.prefetch_group;
  tuning->prefetches = plan.prefetch != "off";
  tuning->prefetch_string_bytes = plan.prefetch_string_bytes;
  tuning->zero_hashes = plan.hash == "zero";
  return descriptor;
}

namespace {

// Operators follow those of their own loops alone.
void SetPrefetch(const KernelPlan& plan, PrefetchSchedules* schedules, PrefetchDistances* distances) {
  if (plan.prefetch == "off") return StopPrefetching(schedules, distances);
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning)
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning)
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) (*schedules)[PrefetchLoop::Loop] = plan.name;
#include "codegen/plan/plan_parameters.def"
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) distances->name = plan.prefetch_##name;
#include "runtime/rows/prefetch_distances.def"
}

}  // namespace

absl::StatusOr<std::shared_ptr<const AggregateDescriptor>> MakePlannedGroups(const KernelPlan& plan) {
  QUERN_ASSIGN_OR_RETURN(std::shared_ptr<AggregateDescriptor> descriptor,
                         AggregateDescriptor::Make(plan.spec, plan.inline_group_bytes));
  QuernJoinDescriptor* tuning = descriptor->mutable_tuning();
  tuning->batch_rows = plan.batch_size;
  tuning->prefetches = plan.prefetch != "off";
  tuning->prefetch_string_bytes = plan.prefetch_string_bytes;
  tuning->zero_hashes = plan.hash == "zero";
  return std::shared_ptr<const AggregateDescriptor>(std::move(descriptor));
}

AggregateOptions MakeAggregateOptions(const KernelPlan& plan) {
  AggregateOptions options;
  SetPrefetch(plan, &options.prefetch, &options.distances);
  options.caches = {plan.l2_bytes, plan.l3_bytes};
  options.l2_batch_rows = plan.batch_size_l2;
  options.adapts = plan.adapt == "on";
  options.huge_pages = plan.huge_pages == "on";
  options.layout = plan.group_layout == "dense"       ? GroupLayout::kDense
                   : plan.group_layout == "open"      ? GroupLayout::kOpen
                   : plan.group_layout == "directory" ? GroupLayout::kDirectory
                                                      : GroupLayout::kAuto;
  options.load_percent = plan.group_load_percent;
  options.partition_bits = plan.partition_bits;
  options.local_groups = plan.local_groups;
  return options;
}

std::shared_ptr<const SortDescriptor> MakePlannedSort(const KernelPlan& plan) {
  auto descriptor = std::make_shared<SortDescriptor>(
      plan.spec, plan.sort_method == "comparison" ? SortMethod::kComparison : SortMethod::kRadix);
  descriptor->mutable_tuning()->batch_rows = plan.batch_size;
  descriptor->mutable_tuning()->prefetch_merge_rows = plan.prefetch_merge_rows;
  descriptor->mutable_tuning()->rows.prefetches = plan.prefetch != "off";
  descriptor->mutable_tuning()->rows.prefetch_string_bytes = plan.prefetch_string_bytes;
  return descriptor;
}

SortOptions MakeSortOptions(const KernelPlan& plan) {
  SortOptions options;
  SetPrefetch(plan, &options.prefetch, &options.distances);
  options.prefetches = plan.prefetch != "off";
  options.huge_pages = plan.huge_pages == "on";
  // A quarter of the L2 cache, since sorting wants as much again beside them (10 M entries of two words: 512 buckets 13
  // ns an entry for all, 1024 of 156 KB 11, 2048 15; `sort_bench --benchmark_filter=keys`).
  options.bucket_bytes = std::max<uint64_t>(plan.l2_bytes / 4, 4096);
  options.dictionary_rows = plan.dictionary_rows;
  options.prefix_words = plan.prefix_words;
  options.top_rows = plan.top_rows;
  return options;
}

std::shared_ptr<const FilterDescriptor> MakePlannedFilter(const KernelPlan& plan) {
  auto descriptor = std::make_shared<FilterDescriptor>(plan.spec);
  descriptor->set_batch_rows(plan.batch_size);
  descriptor->set_prefetches(plan.prefetch != "off");
  return descriptor;
}

JoinOptions MakeJoinOptions(const KernelPlan& plan) {
  JoinOptions options;
  SetPrefetch(plan, &options.prefetch, &options.distances);
  options.caches = {plan.l2_bytes, plan.l3_bytes};
  options.adapts = plan.adapt == "on";
  options.huge_pages = plan.huge_pages == "on";
  options.layout = plan.layout == "unchained" ? LayoutChoice::kUnchained
                   : plan.layout == "dense"   ? LayoutChoice::kDense
                   : plan.layout == "open"    ? LayoutChoice::kOpen
                                              : LayoutChoice::kAuto;
  options.open_load_percent = plan.open_load_percent;
  options.partition_bits = plan.partition_bits;
  return options;
}

}  // namespace quern
