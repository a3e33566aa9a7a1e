// SPDX-License-Identifier: Apache-2.0
// Text of prefetch settings and of schedules, and the look-up by size. For example, a plan's
//
//     prefetch_probe_open = 0@1M,64@32M,128/hint=nta
//
// does not prefetch in tables up to 1 MiB, prefetches 64 rows ahead in those up to 32 MiB, and 128 rows ahead and past
// the caches in larger ones.
#include "runtime/rows/prefetch.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr const char* kHintTexts[] = {"t0", "t1", "t2", "nta", "w"};

struct LoopRow {
  const char* name;
  PrefetchHint hint;
  uint32_t stages;
};
constexpr LoopRow kLoops[] = {
#define QUERN_PREFETCH_LOOP(Id, name, scope, hint, stages, meaning) {#name, PrefetchHint::hint, stages},
#include "runtime/rows/prefetch_loops.def"
};

bool ReadNumber(std::string_view text, uint64_t max, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value <= max;
}

absl::Status BadSetting(std::string_view text) {
  return InvalidArgument(
      "bad prefetch setting: " + Show(text) + "; accepted: a distance of 0 to " + std::to_string(kMaxPrefetchDistance) +
      " rows or all, then any of /group=1..4096, /batch=1..4096, /stages=1..3, /hint=t0, t1, t2, nta or w");
}

absl::Status BadSize(std::string_view text) {
  return InvalidArgument("bad size in a prefetch schedule: " + Show(text) +
                         "; accepted: SETTING@SIZE,..,SETTING with growing sizes such as 256K, 32M or 1G, and none "
                         "behind the last setting");
}

// Reads an option of a setting, such as "group=32".
bool ReadOption(std::string_view option, PrefetchSetting* setting) {
  const size_t equals = option.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = option.substr(0, equals), value = option.substr(equals + 1);
  if (name == "hint") {
    const auto* const hint = std::find(std::begin(kHintTexts), std::end(kHintTexts), value);
    if (hint == std::end(kHintTexts)) return false;
    setting->hint = static_cast<PrefetchHint>(hint - std::begin(kHintTexts));
    return true;
  }
  uint64_t number = 0;
  const bool is_stages = name == "stages";
  if (!ReadNumber(value, is_stages ? 3 : kMaxBatchRows, &number) || number == 0) return false;
  if (is_stages) setting->stages = static_cast<uint8_t>(number);
  else if (name == "group") setting->group_rows = static_cast<uint16_t>(number);
  else if (name == "batch") setting->batch_rows = static_cast<uint16_t>(number);
  else return false;
  return true;
}

std::string PrintSize(uint64_t bytes) {
  constexpr std::pair<int, char> kUnits[] = {{30, 'G'}, {20, 'M'}, {10, 'K'}};
  for (const auto& [bits, letter] : kUnits)
    if (bytes >> bits != 0 && bytes % (uint64_t{1} << bits) == 0) return std::to_string(bytes >> bits) + letter;
  return std::to_string(bytes);
}

bool ReadSize(std::string_view text, uint64_t* bytes) {
  int bits = 0;
  if (!text.empty()) {
    const char letter = text.back();
    bits = letter == 'K' ? 10 : letter == 'M' ? 20 : letter == 'G' ? 30 : 0;
  }
  if (bits != 0) text.remove_suffix(1);
  if (!ReadNumber(text, (UINT64_MAX - 1) >> bits, bytes) || *bytes == 0) return false;
  *bytes <<= bits;
  return true;
}

// Returns the part of a text up to a letter, and removes that part and the letter from the text.
std::string_view TakePart(std::string_view* text, char letter) {
  const size_t end = std::min(text->find(letter), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

}  // namespace

const char* HintText(PrefetchHint hint) { return kHintTexts[static_cast<size_t>(hint)]; }
const char* LoopText(PrefetchLoop loop) { return kLoops[static_cast<size_t>(loop)].name; }
PrefetchHint DefaultHint(PrefetchLoop loop) { return kLoops[static_cast<size_t>(loop)].hint; }
uint32_t NumStages(PrefetchLoop loop) { return kLoops[static_cast<size_t>(loop)].stages; }

std::string PrintSetting(const PrefetchSetting& setting, PrefetchHint default_hint) {
  std::string text = setting.distance == kWholeBatch ? "all" : std::to_string(setting.distance);
  if (setting.group_rows != 0) text += "/group=" + std::to_string(setting.group_rows);
  if (setting.batch_rows != 0) text += "/batch=" + std::to_string(setting.batch_rows);
  if (setting.stages != PrefetchSetting().stages) text += "/stages=" + std::to_string(setting.stages);
  if (setting.hint != default_hint) text += std::string("/hint=") + HintText(setting.hint);
  return text;
}

absl::StatusOr<PrefetchSetting> ParseSetting(std::string_view text, PrefetchHint default_hint) {
  const std::string_view whole = text;
  PrefetchSetting setting;
  setting.hint = default_hint;
  const std::string_view distance = TakePart(&text, '/');
  uint64_t rows = kWholeBatch;
  if (distance != "all" && !ReadNumber(distance, kMaxPrefetchDistance, &rows)) return BadSetting(whole);
  setting.distance = static_cast<uint16_t>(rows);
  if (text.empty() && distance.size() != whole.size()) return BadSetting(whole);
  while (!text.empty())
    if (!ReadOption(TakePart(&text, '/'), &setting)) return BadSetting(whole);
  return setting;
}

const PrefetchSetting& PrefetchSchedule::For(uint64_t table_bytes) const {
  size_t entry = 0;
  while (entry + 1 < entries.size() && table_bytes > entries[entry].max_bytes) ++entry;
  return entries[entry].setting;
}

std::string PrintSchedule(const PrefetchSchedule& schedule, PrefetchHint default_hint) {
  std::string text;
  for (size_t i = 0; i < schedule.entries.size(); ++i) {
    const ScheduleEntry& entry = schedule.entries[i];
    const bool is_last = i + 1 == schedule.entries.size();
    if (!is_last && schedule.entries[i + 1].setting == entry.setting) continue;
    text += PrintSetting(entry.setting, default_hint);
    if (!is_last) text += "@" + PrintSize(entry.max_bytes) + ",";
  }
  return text;
}

absl::StatusOr<PrefetchSchedule> ParseSchedule(std::string_view text, PrefetchHint default_hint) {
  PrefetchSchedule schedule;
  schedule.entries.clear();
  uint64_t before = 0;
  const bool ends_open = !text.empty() && text.back() == ',';
  do {
    std::string_view part = TakePart(&text, ',');
    const std::string_view whole = part;
    const std::string_view setting_text = TakePart(&part, '@');
    ScheduleEntry entry;
    QUERN_ASSIGN_OR_RETURN(entry.setting, ParseSetting(setting_text, default_hint));
    const bool is_last = text.empty();
    if (is_last != (setting_text.size() == whole.size()) || (is_last && ends_open)) return BadSize(whole);
    if (!is_last && (!ReadSize(part, &entry.max_bytes) || entry.max_bytes <= before)) return BadSize(whole);
    before = entry.max_bytes;
    if (!schedule.entries.empty() && schedule.entries.back().setting == entry.setting)
      schedule.entries.back().max_bytes = entry.max_bytes;
    else schedule.entries.push_back(entry);
  } while (!text.empty());
  return schedule;
}

const PrefetchSchedules::All PrefetchSchedules::kDefault;

void StopPrefetching(PrefetchSchedules* schedules, PrefetchDistances* distances) {
  *schedules = {};
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) distances->name = 0;
#include "runtime/rows/prefetch_distances.def"
}

std::vector<uint32_t> EffectiveDistances(const PrefetchSchedules& schedules, const PrefetchDistances& distances) {
  std::vector<uint32_t> all;
  for (const PrefetchSchedule& schedule : schedules.all())
    for (const ScheduleEntry& entry : schedule.entries) all.push_back(entry.setting.distance);
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) all.push_back(distances.name);
#include "runtime/rows/prefetch_distances.def"
  return all;
}

const char* CacheSizes::NameFor(uint64_t table_bytes) const {
  if (table_bytes <= l2_bytes) return "l2";
  return table_bytes <= l3_bytes ? "l3" : "dram";
}

}  // namespace quern
