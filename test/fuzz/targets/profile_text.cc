// SPDX-License-Identifier: Apache-2.0
// Texts of profiles: what is accepted prints, and the print is accepted and prints as itself. Every loop finds a
// setting in it.
#include <string>
#include <string_view>

#include "codegen/machine/profile.h"
#include "test/fuzz/targets/fuzz_target.h"

namespace {

using quern::Profile;
using quern::fuzz::Require;

void FindInAll(const Profile& profile) {
  for (const quern::ProfileEntry& entry : profile.entries) {
    const quern::ProfileLookUp found = profile.Find(entry.cell, {});
    Require(found.match == quern::ProfileMatch::kExact || entry.is_default, "a cell of the profile is found",
            quern::PrintCell(entry.cell));
    std::string origin = "estimate";
    profile.Schedule(entry.cell.loop, entry.cell.keys, entry.cell.pipeline, {}, &origin);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Profile> profile = Profile::Parse(text, "fuzz.profile");
  if (!profile.ok()) return quern::fuzz::RequireRefusalInOneLine(profile.status()), 0;
  const std::string printed = profile->Print();
  const absl::StatusOr<Profile> again = Profile::Parse(printed, "printed.profile");
  Require(again.ok(), "a printed profile is accepted", printed + again.status().ToString());
  Require(again->Print() == printed, "a printed profile prints as itself", printed);
  FindInAll(*profile);
  const absl::StatusOr<Profile> merged = quern::MergeProfiles(*profile, *again);
  Require(merged.ok() && merged->Print() == printed, "a profile merged with itself stays", printed);
  Require(quern::DiffProfiles(*again, *merged).empty(), "a profile does not differ from itself", printed);
  return 0;
}
