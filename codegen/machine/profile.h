// SPDX-License-Identifier: Apache-2.0
// A tuning profile: the best settings for prefetching, spilling and pipelines measured on a machine, kept as text. A
// profile changes speed, never results. *Source*: FFTW's wisdom is the model.
#ifndef QUERN_CODEGEN_MACHINE_PROFILE_H_
#define QUERN_CODEGEN_MACHINE_PROFILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/input_choice.h"
#include "codegen/machine/machine_facts.h"
#include "codegen/machine/piece_choice.h"
#include "codegen/machine/prefetch_choice.h"
#include "codegen/machine/spill_choice.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// The most tables of a pipeline that the tuner lets take turns; the settings for so many stand for more.
constexpr uint32_t kMostTablesInTurn = 2;

// The unit of tuning: one loop with one class of keys and one size of table.
struct TuningCell {
  PrefetchLoop loop = PrefetchLoop::kProbeOpen;
  KeyClass keys = KeyClass::kPacked;
  uint32_t pipeline = 1;  // number of such loops that take turns batch by batch, each over a table of this size
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
  bool is_default = false;  // nothing beat the default beyond the noise; `setting` is not used
  double ns = 0;            // ns a row: with `setting`; with the default; without prefetch
  double default_ns = 0, off_ns = 0;
  double noise = 0;  // share of ns by which two measurements of one setting differ
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
  std::optional<ProfileSpill> spill;    // how rows are spilled; none: not measured
  std::optional<ProfilePieces> pieces;  // of pipelines; none: not measured
  std::optional<ProfileInput> input;    // how far ahead columns are prefetched; none: not measured
  std::vector<ProfileEntry> entries;    // sorted by cell; one entry a cell
  std::string path;                     // the file it was read from; "": none

  // Parses the whole text or fails. *Errors*: InvalidArgument "NAME:LINE: ..."; names the word and what is accepted.
  static absl::StatusOr<Profile> Parse(std::string_view text, std::string_view name);
  std::string Print() const;

  // The setting for a cell. An unmeasured size takes the setting of the nearest size within a factor of 4; an
  // unmeasured key class or pipeline takes that of another. `estimate` if no entry fits.
  ProfileLookUp Find(const TuningCell& cell, const PrefetchSetting& estimate) const;
  // The same for all sizes. *origin: on entry the origin of the estimate, "estimate"; on return, if entries were used,
  // "profile: 9 sizes exact, 3 nearest size, 5 default (estimate)".
  PrefetchSchedule Schedule(PrefetchLoop loop, KeyClass keys, uint32_t pipeline, const PrefetchSchedule& estimate,
                            std::string* origin) const;

  // Adds entries; each replaces the entry of the same cell.
  void Put(const std::vector<ProfileEntry>& news);
};

// Why a profile belongs to another machine; "" if it belongs to this one.
std::string ForeignMachine(const Profile& profile);

// Merges two profiles of one machine; entries of the second take precedence. *Errors*: FailedPrecondition if the
// machines differ.
absl::StatusOr<Profile> MergeProfiles(const Profile& first, const Profile& second);
// A line for each cell that differs: "- .." in the first only, "+ .." in the second only, "~ .." in both.
std::string DiffProfiles(const Profile& first, const Profile& second);

// The paths that are searched for a profile: only $QUERN_PROFILE if that is set ("off": none), otherwise
// $XDG_CONFIG_HOME/quern/NAME, then /etc/quern/NAME; NAME is derived from the signature.
std::vector<std::string> ProfilePlaces(const MachineSignature& machine);
// The path that `quern tune` writes to. *Errors*: FailedPrecondition if there is none.
absl::StatusOr<std::string> ProfileHome(const MachineSignature& machine);

absl::StatusOr<Profile> ReadProfile(const std::string& path);
// Writes a temporary file and renames it; creates the folder.
absl::Status WriteProfile(const Profile& profile, const std::string& path);

// The profile that Compile uses; null: none. The first call reads it from the first path that has a file; a file that
// is malformed or belongs to another machine causes one warning and counts as none. *Threads*: any.
std::shared_ptr<const Profile> ProfileOfProcess();
// The profile that ProfileOfProcess finds at its first call. *Errors*: none; no warning is repeated.
std::shared_ptr<const Profile> FindProfile();
// Replaces the profile of the process for kernels that are compiled from now on. Compiled code is kept.
void SetProfileOfProcess(std::shared_ptr<const Profile> profile);
// A number that changes with the profile, so that plans cached under an older number are not found. *Cost*: one load.
uint64_t ProfileNumber();

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_PROFILE_H_
