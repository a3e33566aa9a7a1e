// SPDX-License-Identifier: Apache-2.0
// Looks up a loop's setting in a profile. Nobody measures all combinations of loops, key classes, sizes, pipelines and
// threads, so a look-up accepts near entries if there is no exact one. Example, a profile with these two entries:
//
//     entry probe_open packed 2^22 pipeline=1 threads=1 setting=48 ..
//     entry probe_open packed 2^27 pipeline=1 threads=1 setting=96 ..
//
// A join of i64 keys whose table has 3 MiB takes 48 (exact); so does one of 10 MiB (2^24: nearest size, a factor of 4);
// one of 100 MiB takes 96. Between equally near sizes the larger one counts, since a useless prefetch costs less than a
// wait. A table of 16 KiB is 7 classes from any measured size and takes the default, the estimate of prefetch_choice.h.
// Two probes in one pipeline, or string keys, take the same entries (same family) until they are measured themselves.
//
// An entry may also record that the default is best. It has no setting, and the present estimate counts.
#include "codegen/machine/profile.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint32_t kNearClasses = 2;  // a factor of 4

uint32_t Distance(uint32_t a, uint32_t b) { return a < b ? b - a : a - b; }

// How much an entry's cell differs from a cell; the entries with the lowest value replace missing measurements.
uint32_t FamilyRank(const TuningCell& cell, const TuningCell& entry) {
  return (entry.keys != cell.keys ? 4u : 0u) + (entry.pipeline != cell.pipeline ? 2u : 0u) +
         (entry.threads != cell.threads ? 1u : 0u);
}

struct FoundEntry {
  const ProfileEntry* entry = nullptr;
  ProfileMatch match = ProfileMatch::kDefault;
};

// Whether one size is a better substitute for a cell's size than another.
bool IsNearer(uint32_t size_class, uint32_t than, uint32_t wanted) {
  const uint32_t a = Distance(size_class, wanted), b = Distance(than, wanted);
  return a != b ? a < b : size_class > than;
}

// The nearest measured family, and its nearest size. *Cost*: one pass over the entries, since plans are made for jobs
// of milliseconds.
FoundEntry FindEntry(const std::vector<ProfileEntry>& entries, const TuningCell& cell) {
  const ProfileEntry* best = nullptr;
  uint32_t best_rank = UINT32_MAX;
  for (const ProfileEntry& entry : entries) {
    if (entry.cell.loop != cell.loop) continue;
    const uint32_t rank = FamilyRank(cell, entry.cell);
    if (rank > best_rank) continue;
    if (rank == best_rank && !IsNearer(entry.cell.size_class, best->cell.size_class, cell.size_class)) continue;
    best = &entry;
    best_rank = rank;
  }
  if (best == nullptr || Distance(best->cell.size_class, cell.size_class) > kNearClasses) return {};
  if (best_rank != 0) return {best, ProfileMatch::kSameFamily};
  return {best, best->cell == cell ? ProfileMatch::kExact : ProfileMatch::kNearestSize};
}

// Whether a setting counts. The number of threads is unknown when a plan is made, so a setting must win at one thread
// and at every other number that was measured, or the default stays. A cell's entries are adjacent, ordered by threads.
bool Counts(const std::vector<ProfileEntry>& entries, const ProfileEntry& entry) {
  if (entry.is_default) return false;
  for (const ProfileEntry* other = &entry + 1; other != entries.data() + entries.size(); ++other) {
    TuningCell cell = other->cell;
    cell.threads = entry.cell.threads;
    if (cell != entry.cell) break;
    if (other->is_default) return false;
  }
  return true;
}

void AddEntry(uint64_t max_bytes, const PrefetchSetting& setting, PrefetchSchedule* schedule) {
  if (!schedule->entries.empty() && schedule->entries.back().setting == setting)
    schedule->entries.back().max_bytes = max_bytes;
  else schedule->entries.push_back({max_bytes, setting});
}

// The entries of a schedule for tables of more than `begin` and up to `end` bytes.
void CopyEntries(const PrefetchSchedule& from, uint64_t begin, uint64_t end, PrefetchSchedule* schedule) {
  for (const ScheduleEntry& entry : from.entries) {
    if (entry.max_bytes <= begin) continue;
    AddEntry(std::min(entry.max_bytes, end), entry.setting, schedule);
    if (entry.max_bytes >= end) return;
  }
}

// "profile: 9 sizes exact, 3 nearest size": how many sizes matched in each way, best match first.
std::string OriginOf(const uint32_t (&counts)[4], const std::string& estimate_origin) {
  std::string text;
  for (const ProfileMatch match :
       {ProfileMatch::kExact, ProfileMatch::kNearestSize, ProfileMatch::kSameFamily, ProfileMatch::kDefault}) {
    const uint32_t count = counts[static_cast<size_t>(match)];
    if (count == 0) continue;
    text += (text.empty() ? "profile: " + std::to_string(count) + (count == 1 ? " size " : " sizes ")
                          : ", " + std::to_string(count) + " ") +
            MatchText(match);
  }
  return counts[static_cast<size_t>(ProfileMatch::kDefault)] == 0 ? text : text + " (" + estimate_origin + ")";
}

std::string SpillText(const std::optional<ProfileSpill>& spill) {
  return spill.has_value() ? PrintSpillChoice(spill->choice) : "not measured";
}

std::string PiecesText(const std::optional<ProfilePieces>& pieces) {
  return pieces.has_value() ? "rows=" + std::to_string(pieces->rows) : "not measured";
}

std::string InputText(const std::optional<ProfileInput>& input) {
  return input.has_value() ? PrintInputRows(input->rows) : "not measured";
}

std::string EntryText(const ProfileEntry& entry) {
  return entry.is_default ? "default" : PrintSetting(entry.setting, DefaultHint(entry.cell.loop));
}

// The parts of an entry that are compared; measured times always differ.
bool SayTheSame(const ProfileEntry& first, const ProfileEntry& second) { return EntryText(first) == EntryText(second); }

}  // namespace

const char* MatchText(ProfileMatch match) {
  switch (match) {
    case ProfileMatch::kExact: return "exact";
    case ProfileMatch::kNearestSize: return "nearest size";
    case ProfileMatch::kSameFamily: return "same family";
    case ProfileMatch::kDefault: return "default";
  }
  return "default";
}

ProfileLookUp Profile::Find(const TuningCell& cell, const PrefetchSetting& estimate) const {
  const FoundEntry found = FindEntry(entries, cell);
  return {found.entry == nullptr || !Counts(entries, *found.entry) ? estimate : found.entry->setting, found.match};
}

PrefetchSchedule Profile::Schedule(PrefetchLoop loop, KeyClass keys, uint32_t pipeline,
                                   const PrefetchSchedule& estimate, std::string* origin) const {
  PrefetchSchedule schedule;
  schedule.entries.clear();
  uint32_t counts[4] = {};
  uint64_t begin = 0;
  for (uint32_t size_class = kSmallestSizeClass; size_class <= kLargestSizeClass; ++size_class) {
    const uint64_t end = size_class == kLargestSizeClass ? UINT64_MAX : uint64_t{1} << size_class;
    const FoundEntry found = FindEntry(entries, {loop, keys, pipeline, size_class, 1});
    ++counts[static_cast<size_t>(found.match)];
    if (found.entry == nullptr || !Counts(entries, *found.entry)) CopyEntries(estimate, begin, end, &schedule);
    else AddEntry(end, found.entry->setting, &schedule);
    begin = end;
  }
  const bool says_nothing =
      counts[static_cast<size_t>(ProfileMatch::kDefault)] == kLargestSizeClass - kSmallestSizeClass + 1;
  if (!says_nothing) *origin = OriginOf(counts, *origin);
  return schedule;
}

void Profile::Put(const std::vector<ProfileEntry>& news) {
  for (const ProfileEntry& entry : news) {
    const auto at = std::lower_bound(entries.begin(), entries.end(), entry.cell,
                                     [](const ProfileEntry& e, const TuningCell& cell) { return e.cell < cell; });
    if (at != entries.end() && at->cell == entry.cell) *at = entry;
    else entries.insert(at, entry);
  }
}

absl::StatusOr<Profile> MergeProfiles(const Profile& first, const Profile& second) {
  const std::string difference = SignatureDifference(first.machine, second.machine);
  if (!difference.empty()) {
    return absl::FailedPreconditionError("profiles of different machines: " + difference +
                                         "; accepted: profiles of one machine");
  }
  Profile merged = first;
  merged.machine = second.machine;
  merged.path.clear();
  if (second.facts.has_value()) merged.facts = second.facts;
  if (second.spill.has_value()) merged.spill = second.spill;
  if (second.pieces.has_value()) merged.pieces = second.pieces;
  if (second.input.has_value()) merged.input = second.input;
  merged.Put(second.entries);
  return merged;
}

std::string DiffProfiles(const Profile& first, const Profile& second) {
  std::string text;
  const std::string machines = SignatureDifference(first.machine, second.machine);
  if (!machines.empty()) text += "~ machine: " + machines + "\n";
  if (SpillText(first.spill) != SpillText(second.spill))
    text += "~ spill: " + SpillText(first.spill) + " -> " + SpillText(second.spill) + "\n";
  if (PiecesText(first.pieces) != PiecesText(second.pieces))
    text += "~ pieces: " + PiecesText(first.pieces) + " -> " + PiecesText(second.pieces) + "\n";
  if (InputText(first.input) != InputText(second.input))
    text += "~ input: " + InputText(first.input) + " -> " + InputText(second.input) + "\n";
  auto a = first.entries.begin();
  auto b = second.entries.begin();
  while (a != first.entries.end() || b != second.entries.end()) {
    if (b == second.entries.end() || (a != first.entries.end() && a->cell < b->cell)) {
      text += "- " + PrintCell(a->cell) + ": " + EntryText(*a) + "\n";
      ++a;
    } else if (a == first.entries.end() || b->cell < a->cell) {
      text += "+ " + PrintCell(b->cell) + ": " + EntryText(*b) + "\n";
      ++b;
    } else {
      if (!SayTheSame(*a, *b)) text += "~ " + PrintCell(a->cell) + ": " + EntryText(*a) + " -> " + EntryText(*b) + "\n";
      ++a;
      ++b;
    }
  }
  return text;
}

}  // namespace quern
