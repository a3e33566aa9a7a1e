// SPDX-License-Identifier: Apache-2.0
// A tuning profile: what was measured of this machine's best prefetch settings, kept as text (FFTW's wisdom is the
// model). A profile never changes results, only speed.
#ifndef QUERN_CODEGEN_MACHINE_PROFILE_H_
#define QUERN_CODEGEN_MACHINE_PROFILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/machine_facts.h"
#include "codegen/machine/prefetch_choice.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// What is tuned at a time.
struct TuningCell {
  PrefetchLoop loop = PrefetchLoop::kProbeOpen;
  KeyClass keys = KeyClass::kPacked;
  uint32_t pipeline = 1;  // such loops that take turns batch by batch, each over a table of this size
  uint32_t size_class = kSmallestSizeClass;
  uint32_t threads = 1;

  bool operator==(const TuningCell&) const = default;
  auto operator<=>(const TuningCell&) const = default;
};
// "probe_open packed 2^24 pipeline=1 threads=1".
std::string PrintCell(const TuningCell& cell);

// One line of a profile.
struct ProfileEntry {
  TuningCell cell;
  PrefetchSetting setting;
  bool is_default = false;  // measured, and nothing beat the default beyond the noise: `setting` is not used
  double ns = 0;            // a row, with `setting`; with the default; without prefetch
  double default_ns = 0, off_ns = 0;
  double noise = 0;  // share of ns by which two runs of the same differ
};

enum class ProfileMatch : uint8_t { kExact, kNearestSize, kSameFamily, kDefault };
const char* MatchText(ProfileMatch match);  // "exact", "nearest size", "same family", "default"

struct ProfileLookUp {
  PrefetchSetting setting;
  ProfileMatch match = ProfileMatch::kDefault;
};

class Profile {
 public:
  MachineSignature machine;
  std::optional<MachineFacts> facts;
  std::vector<ProfileEntry> entries;  // sorted by cell, each once
  std::string path;                   // where it was read from; "" nowhere

  // All or nothing. *Errors*: InvalidArgument "NAME:LINE: ..." that names the word and what is accepted.
  static absl::StatusOr<Profile> Parse(std::string_view text, std::string_view name);
  std::string Print() const;

  // What a cell asks for. A size that was not measured takes the nearest one's within a factor of 4; other key classes
  // and pipelines stand in for one that was not measured at all. `estimate` where nothing fits.
  ProfileLookUp Find(const TuningCell& cell, const PrefetchSetting& estimate) const;
  // The same for all sizes. *origin: where the estimate comes from, "estimate"; then, if entries say anything,
  // "profile: 9 sizes exact, 3 nearest size, 5 default (estimate)".
  PrefetchSchedule Schedule(PrefetchLoop loop, KeyClass keys, uint32_t pipeline, const PrefetchSchedule& estimate,
                            std::string* origin) const;

  // Puts entries in the place of those of the same cell.
  void Put(const std::vector<ProfileEntry>& news);
};

// What makes a profile one of another machine; "" where it is of this one.
std::string ForeignMachine(const Profile& profile);

// Of two profiles of one machine, the second one's entries winning. *Errors*: FailedPrecondition where the machines
// differ.
absl::StatusOr<Profile> MergeProfiles(const Profile& first, const Profile& second);
// A line for each cell that differs: "- .." in the first alone, "+ .." in the second, "~ .." in both.
std::string DiffProfiles(const Profile& first, const Profile& second);

// Where profiles are looked for: $QUERN_PROFILE alone if that is set ("off": nowhere), else
// $XDG_CONFIG_HOME/quern/NAME, then /etc/quern/NAME; NAME goes by the signature.
std::vector<std::string> ProfilePlaces(const MachineSignature& machine);
// The place that `quern tune` writes to. *Errors*: FailedPrecondition where there is none.
absl::StatusOr<std::string> ProfileHome(const MachineSignature& machine);

absl::StatusOr<Profile> ReadProfile(const std::string& path);
// Under a temporary name and renamed; makes the folder.
absl::Status WriteProfile(const Profile& profile, const std::string& path);

// What Compile goes by; null: none. Read at the first call from the first place that has one; a bad or foreign one is
// one warning, and none. *Threads*: any.
std::shared_ptr<const Profile> ProfileOfProcess();
// What it finds at first. *Errors*: none; a warning that was said is not said again.
std::shared_ptr<const Profile> FindProfile();
// Takes its place; kernels that are compiled from now on go by it. Code is kept.
void SetProfileOfProcess(std::shared_ptr<const Profile> profile);
// Another one after each change: what was planned under one number is not looked for under another. *Cost*: one load.
uint64_t ProfileNumber();

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_PROFILE_H_
