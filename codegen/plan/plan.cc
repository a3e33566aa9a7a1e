// SPDX-License-Identifier: Apache-2.0
// Makes and prints every choice about a kernel. Example:
//
//     plan join.inner keys=i64 build=f64
//     layout = auto                       # table layout; auto: by the keys, ..; accepted: auto, unchained, dense, open
//     batch_size = 1024                   # rows hashed, encoded or tested at a time (rows)
//     prefetch_probe_open = 0@1M,64@32M,128   # looking up keys in slots; estimate
//     ..
//     l2_bytes = 1048576                  # the machine's L2 cache; tables up to this size ..
//
// The text before each '#' is an override; together they make the same plan. The text after it is for people.
#include "codegen/plan/plan.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "codegen/machine/prefetch_choice.h"
#include "codegen/machine/profile.h"
#include "codegen/plan/plan_parameters.h"
#include "codegen/plan/plan_values.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/row_layout.h"
#include "runtime/spill/spill_context.h"

namespace quern {
namespace {

absl::Status Set(const NumberParameter& parameter, std::string_view value, uint32_t* target) {
  return SetPlanNumber(parameter.name, value, parameter.min, parameter.max, parameter.unit, target);
}

template <class Choice>
absl::Status Set(const ChoiceParameter<Choice>& parameter, std::string_view value, Choice* target) {
  return SetPlanChoice(parameter.name, value, target);
}

// applies: whether the spec's kernel has the schedule's loop; if not, the schedule is parsed and dropped.
absl::Status Set(const ScheduleParameter& parameter, std::string_view value, bool applies, PrefetchSchedule* target,
                 ScheduleOrigin* origin) {
  absl::StatusOr<PrefetchSchedule> schedule = ParseSchedule(value, DefaultHint(parameter.loop));
  if (!schedule.ok()) return InvalidArgument(BadPlanValue(parameter.name) + std::string(schedule.status().message()));
  if (!applies) return absl::OkStatus();
  *target = *std::move(schedule);
  origin->text = "given";
  return absl::OkStatus();
}

bool HasPackedKeys(const KernelSpec& spec) {
  std::vector<KeySpec> kernel_keys;
  for (const KeySpec& key : KeysOf(spec)) kernel_keys.push_back(KernelKey(key));
  return WordBits(kernel_keys) != 0;
}

std::string ParameterNames(const KernelSpec& spec) {
  std::string names;
  const auto add = [&](const auto& parameter) {
    if (IsIn(parameter.scope, spec)) names += (names.empty() ? "" : ", ") + std::string(parameter.name);
  };
  const auto add_shown = [&](const auto& parameter, const auto&) {
    if (!parameter.is_for_tests) add(parameter);
  };
  const KernelPlan plan;
  ForEachParameter(plan, add_shown, add_shown,
                   [&](const ScheduleParameter& parameter, const auto&...) { add(parameter); });
  return names;
}

absl::Status SetParameter(KernelPlan* plan, std::string_view name, std::string_view value) {
  std::optional<absl::Status> status;  // of the row of this name
  const auto set = [&](const auto& parameter, auto& target) {
    if (parameter.name == name && IsIn(parameter.scope, plan->spec)) status = Set(parameter, value, &target);
  };
  const auto set_schedule = [&](const ScheduleParameter& parameter, PrefetchSchedule& schedule,
                                ScheduleOrigin& origin) {
    // Schedules of loops over packed keys are accepted for all keys, so that one list of parameters serves many specs.
    if (parameter.name == name && IsIn(OperatorsOf(parameter.scope), plan->spec))
      status = Set(parameter, value, IsIn(parameter.scope, plan->spec), &schedule, &origin);
  };
  ForEachParameter(*plan, set, set, set_schedule);
  if (status) return *std::move(status);
  return InvalidArgument("unknown plan parameter: " + Show(name) + "; accepted: " + ParameterNames(plan->spec));
}

absl::Status PackedLayout(std::string_view layout, const char* accepted) {
  return InvalidArgument("layout for keys that fit one machine word: " + std::string(layout) +
                         "; accepted: " + accepted);
}

// The default is a quarter of the L2 cache, since sorting needs as much memory again (10 M prefixes of two words take
// 13 ns a prefix with 512 buckets, 11 with 1024 of 156 KB, 15 with 2048; `sort_bench --benchmark_filter=keys`).
uint32_t BucketBytes(const KernelPlan& plan) {
  const uint64_t bytes = plan.bucket_bytes != 0 ? plan.bucket_bytes : plan.l2_bytes / thresholds::kBucketCacheShare;
  return static_cast<uint32_t>(std::clamp<uint64_t>(bytes, 4096, uint64_t{1} << 30));
}

// Sets all schedules and distances to 0, so that a printed plan shows what is done.
void StopPrefetching(KernelPlan* plan) {
  ForEachParameter(*plan, kSkipParameter, kSkipParameter,
                   [&](const ScheduleParameter& parameter, PrefetchSchedule& schedule, ScheduleOrigin& origin) {
                     schedule = ParseSchedule("0", DefaultHint(parameter.loop)).value();
                     origin.text = "off";
                   });
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) \
  if (IsIn(Scope::scope, plan->spec)) plan->prefetch_##name = 0;
#include "runtime/rows/prefetch_distances.def"
}

// Aggregations without keys have a distance of their own.
uint32_t ChooseInputRows(const KernelSpec& spec, const Machine& machine, const Profile* profile) {
  const InputRows rows =
      profile != nullptr && profile->input.has_value() ? profile->input->rows : DefaultInputRows(machine);
  return IsIn(Scope::kAggregate, spec) && GroupsOf(spec).keys.empty() ? rows.keyless_rows : rows.rows;
}

void SetSpilling(const SpillChoice& choice, KernelPlan* plan) {
  plan->spill_block_bytes = choice.block_bytes;
  plan->spill_read_ahead = choice.read_ahead;
  plan->spill_write_behind = choice.write_behind;
  plan->spill_threads = choice.threads;
  plan->spill_reads = choice.reads_by_ring ? SpillReads::kRing : SpillReads::kThreads;
  plan->spill_codec = choice.compresses ? SpillCodec::kLz4 : SpillCodec::kNone;
}

// Constraints between parameters.
absl::Status FinalisePlan(KernelPlan* plan) {
  const bool wants_packed_groups =
      plan->group_layout == GroupLayout::kDense || plan->group_layout == GroupLayout::kOpen;
  if (wants_packed_groups && !HasPackedKeys(plan->spec))
    return PackedLayout(WordOf(plan->group_layout), "auto, directory");
  const bool wants_packed_table = plan->layout == LayoutChoice::kDense || plan->layout == LayoutChoice::kOpen;
  if (wants_packed_table && WordBits(KeysOf(plan->spec)) == 0)
    return PackedLayout(WordOf(plan->layout), "auto, unchained");
  if (plan->prefetch == PrefetchScheme::kOff) StopPrefetching(plan);
  if (Is<SortSpec>(plan->spec)) plan->bucket_bytes = BucketBytes(*plan);
  // A group is part of a batch and cannot be longer.
  plan->prefetch_group = std::min(plan->prefetch_group, plan->batch_size);
  // A string's field ends at a multiple of 8, where the next field has to begin anyway.
  plan->inline_key_bytes = (plan->inline_key_bytes + 3) / 8 * 8 + 4;
  plan->inline_group_bytes = (plan->inline_group_bytes + 3) / 8 * 8 + 4;
  return absl::OkStatus();
}

std::string OriginText(const ScheduleOrigin& origin) { return origin.text.empty() ? "" : "; " + origin.text; }

// Whether a plan of the spec prints the parameter.
template <class Parameter, class Value>
bool IsShown(const Parameter& parameter, const Value& value, const KernelSpec& spec) {
  return IsIn(parameter.scope, spec) && !(parameter.is_for_tests && value == parameter.default_value);
}

template <class Choice>
std::string Quoted(Choice choice) {
  return "\"" + std::string(WordOf(choice)) + "\"";
}

// A member of a JSON object.
std::string Member(std::string_view name, const std::string& value) {
  return "\"" + std::string(name) + "\":" + value + ",";
}

}  // namespace

bool IsIn(Scope scope, const KernelSpec& spec) {
  const auto bits = static_cast<uint32_t>(scope);
  const bool packed_only = (bits & static_cast<uint32_t>(Scope::kPacked)) != 0;
  return (bits & 1u << spec.index()) != 0 && (!packed_only || HasPackedKeys(spec));
}

bool HasLoop(const KernelSpec& spec, PrefetchLoop loop) {
  constexpr Scope kScopes[] = {
#define QUERN_PREFETCH_LOOP(Id, name, scope, hint, stages, meaning) OperatorsOf(Scope::scope),
#include "runtime/rows/prefetch_loops.def"
  };
  return !KeysOf(spec).empty() && IsIn(kScopes[static_cast<size_t>(loop)], spec);
}

bool HasParameter(const KernelSpec& spec, std::string_view name) {
  const KernelPlan plan;
  bool found = false;
  const auto look = [&](const auto& parameter, const auto&...) {
    found = found || (parameter.name == name && IsIn(OperatorsOf(parameter.scope), spec));
  };
  ForEachParameter(plan, look, look, look);
  return found;
}

absl::StatusOr<KernelPlan> MakePlan(const KernelSpec& spec, const Machine& machine, const PlanOverrides& overrides,
                                    const Profile* profile) {
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  KernelPlan plan;
  plan.spec = spec;
  plan.l2_bytes = machine.l2_bytes;
  plan.l3_bytes = machine.l3_bytes;
  const KeyClass keys = KeyClassOf(spec);
  // The choice of schedules depends on `pipeline`, and overrides may set both.
  for (const auto& [name, value] : overrides)
    if (name == "pipeline") QUERN_RETURN_IF_ERROR(SetParameter(&plan, name, value));
  ForEachParameter(plan, kSkipParameter, kSkipParameter,
                   [&](const ScheduleParameter& parameter, PrefetchSchedule& schedule, ScheduleOrigin& origin) {
                     if (IsIn(parameter.scope, spec))
                       schedule = ChooseSchedule(parameter.loop, keys, plan.pipeline, machine, profile, &origin.text);
                   });
  if (IsIn(Scope::kRead, spec)) plan.prefetch_input_rows = ChooseInputRows(spec, machine, profile);
  if (profile != nullptr && profile->spill.has_value()) SetSpilling(profile->spill->choice, &plan);
  for (const auto& [name, value] : overrides) QUERN_RETURN_IF_ERROR(SetParameter(&plan, name, value));
  if (plan.states == StateLayout::kAuto && IsIn(Scope::kAggregate, spec))
    plan.states = HasVectorMasks(machine) ? StateLayout::kVectors : StateLayout::kSingle;
  if (plan.runs == RunUpdate::kAuto && IsIn(Scope::kAggregate, spec))
    plan.runs = HasVectorMasks(machine) ? RunUpdate::kLanes : RunUpdate::kRows;
  QUERN_RETURN_IF_ERROR(FinalisePlan(&plan));
  return plan;
}

std::string PrintPlan(const KernelPlan& plan) {
  std::string text = "plan " + PrintSpec(plan.spec) + "\n";
  const auto add_number = [&](const NumberParameter& parameter, uint32_t value) {
    if (IsShown(parameter, value, plan.spec))
      text += PlanNumberLine(parameter.name, value, parameter.meaning, parameter.unit);
  };
  const auto add_choice = [&]<class Choice>(const ChoiceParameter<Choice>& parameter, Choice value) {
    if (IsShown(parameter, value, plan.spec)) text += PlanChoiceLine(parameter.name, value, parameter.meaning);
  };
  const auto add_schedule = [&](const ScheduleParameter& parameter, const PrefetchSchedule& schedule,
                                const ScheduleOrigin& origin) {
    if (IsIn(parameter.scope, plan.spec))
      text += PlanLine(parameter.name, PrintSchedule(schedule, DefaultHint(parameter.loop)),
                       parameter.meaning + OriginText(origin));
  };
  ForEachParameter(plan, add_number, add_choice, add_schedule);
  text += PlanLine("l2_bytes", std::to_string(plan.l2_bytes),
                   "the machine's L2 cache; tables up to this size are of class l2");
  text += PlanLine("l3_bytes", std::to_string(plan.l3_bytes),
                   "the machine's L3 cache; tables up to this size are of class l3, larger ones of class dram");
  return text;
}

PlanOverrides ParametersOf(const KernelPlan& plan) {
  PlanOverrides parameters;
  ForEachParameter(
      plan,
      [&](const NumberParameter& parameter, uint32_t value) {
        parameters.emplace_back(parameter.name, std::to_string(value));
      },
      [&](const auto& parameter, auto value) { parameters.emplace_back(parameter.name, WordOf(value)); },
      kSkipParameter);
  return parameters;
}

std::string PlanJson(const KernelPlan& plan) {
  std::string text = "{";
  const auto add_number = [&](const NumberParameter& parameter, uint32_t value) {
    if (IsShown(parameter, value, plan.spec)) text += Member(parameter.name, std::to_string(value));
  };
  const auto add_choice = [&](const auto& parameter, auto value) {
    if (IsShown(parameter, value, plan.spec)) text += Member(parameter.name, Quoted(value));
  };
  const auto add_schedule = [&](const ScheduleParameter& parameter, const PrefetchSchedule& schedule, const auto&) {
    if (IsIn(parameter.scope, plan.spec))
      text += Member(parameter.name, "\"" + PrintSchedule(schedule, DefaultHint(parameter.loop)) + "\"");
  };
  ForEachParameter(plan, add_number, add_choice, add_schedule);
  return text + "\"l2_bytes\":" + std::to_string(plan.l2_bytes) + ",\"l3_bytes\":" + std::to_string(plan.l3_bytes) +
         "}";
}

std::string CodeParameters(const KernelPlan& plan) {
  constexpr std::string_view kOfCode[] = {
      "inline_key_bytes", "inline_group_bytes", "prefetch",  "prefetch_input_rows", "states",           "runs",
      "passes",           "codegen_level",      "test.hash", "test.sort_method",    "test.toggled_pass"};
  const auto is_of_code = [&](const auto& parameter, const auto& value) {
    if (Is<JoinSpec>(plan.spec) && parameter.name == "prefetch_input_rows") return false;  // data of a join
    return std::find(std::begin(kOfCode), std::end(kOfCode), parameter.name) != std::end(kOfCode) &&
           IsShown(parameter, value, plan.spec);
  };
  std::string text;
  const auto add_number = [&](const NumberParameter& parameter, uint32_t value) {
    if (is_of_code(parameter, value)) text += Member(parameter.name, std::to_string(value));
  };
  const auto add_choice = [&](const auto& parameter, auto value) {
    if (is_of_code(parameter, value)) text += Member(parameter.name, Quoted(value));
  };
  ForEachParameter(plan, add_number, add_choice, kSkipParameter);
  if (!text.empty()) text.pop_back();
  return "{" + text + "}";
}

namespace {

void SetTuning(const KernelPlan& plan, QuernRowLayout* layout) {
  layout->prefetches = plan.prefetch != PrefetchScheme::kOff;
  layout->prefetch_string_bytes = plan.prefetch_string_bytes;
  layout->zero_hashes = plan.test.hash == HashFunction::kZero;
}

}  // namespace

std::shared_ptr<const JoinDescriptor> MakePlannedDescriptor(const KernelPlan& plan) {
  auto descriptor = std::make_shared<JoinDescriptor>(std::get<JoinSpec>(plan.spec), plan.inline_key_bytes);
  QuernJoinDescriptor* tuning = descriptor->mutable_tuning();
  tuning->batch_rows = plan.batch_size;
  tuning->group_rows = plan.prefetch_group;
  SetTuning(plan, &tuning->rows);
  return descriptor;
}

namespace {

// An operator uses only the schedules of its own loops.
void SetPrefetch(const KernelPlan& plan, PrefetchSchedules* schedules, PrefetchDistances* distances) {
  if (plan.prefetch == PrefetchScheme::kOff) return StopPrefetching(schedules, distances);
  PrefetchSchedules::All& all = schedules->Change();
  ForEachParameter(plan, kSkipParameter, kSkipParameter,
                   [&](const ScheduleParameter& parameter, const PrefetchSchedule& schedule, const auto&) {
                     all[static_cast<size_t>(parameter.loop)] = schedule;
                   });
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) distances->name = plan.prefetch_##name;
#include "runtime/rows/prefetch_distances.def"
}

}  // namespace

AggregationSpec GroupsOf(const KernelSpec& spec) {
  const auto* const set = std::get_if<SetSpec>(&spec);
  return set != nullptr ? GroupsOf(*set) : std::get<AggregationSpec>(spec);
}

absl::StatusOr<std::shared_ptr<const AggregateDescriptor>> MakePlannedGroups(const KernelPlan& plan) {
  QUERN_ASSIGN_OR_RETURN(std::shared_ptr<AggregateDescriptor> descriptor,
                         AggregateDescriptor::Make(GroupsOf(plan.spec), plan.inline_group_bytes));
  QuernAggregateDescriptor* tuning = descriptor->mutable_tuning();
  tuning->batch_rows = plan.batch_size;
  tuning->has_lanes = tuning->has_lanes && plan.runs == RunUpdate::kLanes;
  SetTuning(plan, &tuning->group);
  return std::shared_ptr<const AggregateDescriptor>(std::move(descriptor));
}

AggregateOptions MakeAggregateOptions(const KernelPlan& plan) {
  AggregateOptions options;
  SetPrefetch(plan, &options.prefetch, &options.distances);
  options.caches = {plan.l2_bytes, plan.l3_bytes};
  options.l2_batch_rows = plan.batch_size_l2;
  options.adapts = plan.adapt == Adaptation::kOn;
  options.huge_pages = plan.huge_pages == HugePages::kOn;
  options.layout = plan.group_layout;
  options.load_percent = plan.group_load_percent;
  options.partition_bits = plan.partition_bits;
  options.local_groups = plan.local_groups;
  return options;
}

std::shared_ptr<const SortDescriptor> MakePlannedSort(const KernelPlan& plan) {
  auto descriptor = std::make_shared<SortDescriptor>(std::get<SortSpec>(plan.spec), plan.test.sort_method);
  QuernSortDescriptor* tuning = descriptor->mutable_tuning();
  tuning->batch_rows = plan.batch_size;
  tuning->prefetch_merge_rows = plan.prefetch_merge_rows;
  SetTuning(plan, &tuning->rows);
  return descriptor;
}

SortOptions MakeSortOptions(const KernelPlan& plan) {
  SortOptions options;
  SetPrefetch(plan, &options.prefetch, &options.distances);
  options.prefetches = plan.prefetch != PrefetchScheme::kOff;
  options.huge_pages = plan.huge_pages == HugePages::kOn;
  options.bucket_bytes = plan.bucket_bytes;
  options.dictionary_rows = plan.dictionary_rows;
  options.prefix_words = plan.prefix_words;
  options.top_rows = plan.top_rows;
  options.divides_ranges = plan.spill_sort == SpillSort::kRanges;
  return options;
}

SpillSettings MakeSpillSettings(const KernelPlan& plan) {
  SpillSettings settings;
  settings.max_block_bytes = plan.spill_block_bytes;
  settings.read_depth = plan.spill_read_ahead;
  settings.write_depth = plan.spill_write_behind;
  settings.num_threads = plan.spill_threads;
  settings.uses_ring = plan.spill_reads == SpillReads::kRing;
  settings.codec = plan.spill_codec == SpillCodec::kLz4 ? BlockCodec::kLz4 : BlockCodec::kNone;
  return settings;
}

std::shared_ptr<const FilterDescriptor> MakePlannedFilter(const KernelPlan& plan) {
  auto descriptor = std::make_shared<FilterDescriptor>(std::get<FilterSpec>(plan.spec));
  descriptor->set_batch_rows(plan.batch_size);
  descriptor->set_prefetches(plan.prefetch != PrefetchScheme::kOff);
  descriptor->set_input_rows(plan.prefetch_input_rows);
  return descriptor;
}

JoinOptions MakeJoinOptions(const KernelPlan& plan) {
  JoinOptions options;
  SetPrefetch(plan, &options.prefetch, &options.distances);
  options.caches = {plan.l2_bytes, plan.l3_bytes};
  options.adapts = plan.adapt == Adaptation::kOn;
  options.huge_pages = plan.huge_pages == HugePages::kOn;
  options.layout = plan.layout;
  options.key_filter = plan.key_filter;
  options.open_load_percent = plan.open_load_percent;
  options.partition_bits = plan.partition_bits;
  return options;
}

}  // namespace quern
