// SPDX-License-Identifier: Apache-2.0
// The line of a profile about pieces of pipelines: it reads back as it was written, wrong ones are named, profiles keep
// it.
#include "codegen/machine/piece_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr const char* kLine = "pieces rows=8192 ns=5.1 default_ns=5.6 noise=0.012";

std::string Error(const std::string& rest) { return std::string(ParsePiecesLine(rest).status().message()); }

TEST(PieceChoice, ALineReadsBackAsItWasWritten) {
  EXPECT_EQ(PrintPiecesLine({8192, 5.1, 5.6, 0.012}), kLine);
  const absl::StatusOr<ProfilePieces> parsed = ParsePiecesLine(std::string(kLine).substr(7));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->rows, 8192u);
  EXPECT_EQ(PrintPiecesLine(*parsed), kLine);
  EXPECT_EQ(ProfilePieces().rows, thresholds::kPipelineRows);
}

TEST(PieceChoice, WrongFieldsAreNamed) {
  const std::string form = "; accepted: pieces rows=N ns=N default_ns=N noise=N";
  EXPECT_EQ(Error(""), "bad field of a pieces line: \"\"" + form);
  EXPECT_EQ(Error("ns=1"), "bad field of a pieces line: ns=1" + form);
  for (const char* rows : {"0", "65537", "x", "-1", ""}) {
    EXPECT_EQ(Error("rows=" + std::string(rows)),
              "bad field of a pieces line: rows=" + std::string(rows) + "; accepted: 1 to 65536");
  }
  EXPECT_EQ(Error("rows=1 ns=-1"), "bad field of a pieces line: ns=-1; accepted: a number of 0 or more");
  EXPECT_EQ(Error("rows=1 ns=1 noise=1"), "bad field of a pieces line: noise=1" + form);
  EXPECT_EQ(Error(std::string(kLine).substr(7) + " more=1"), "bad field of a pieces line: more=1" + form);
}

Profile WithPieces(uint32_t rows) {
  Profile profile;
  profile.machine = HostSignature();
  profile.pieces = {rows, 5.1, 5.6, 0.012};
  return profile;
}

TEST(PieceChoice, AProfileKeepsTheLine) {
  const Profile profile = WithPieces(8192);
  const absl::StatusOr<Profile> parsed = Profile::Parse(profile.Print(), "p");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Print(), profile.Print());
  EXPECT_NE(profile.Print().find("\n" + std::string(kLine) + "\n"), std::string::npos);
  std::string twice = profile.Print();
  twice.insert(twice.find("pieces"), std::string(kLine) + "\n");
  EXPECT_EQ(Profile::Parse(twice, "p").status().message().find("p:4: pieces line of a profile twice: "), 0u);
  std::string bad = profile.Print();
  bad.replace(bad.find("rows=8192"), 9, "rows=0");
  EXPECT_EQ(Profile::Parse(bad, "p").status().message(),
            "p:3: bad field of a pieces line: rows=0; accepted: 1 to 65536");
}

TEST(PieceChoice, ProfilesAreMergedAndCompared) {
  const Profile profile = WithPieces(8192);
  Profile without = profile;
  without.pieces.reset();
  EXPECT_EQ(MergeProfiles(profile, without)->pieces->rows, 8192u);
  EXPECT_EQ(MergeProfiles(without, profile)->pieces->rows, 8192u);
  EXPECT_EQ(MergeProfiles(profile, WithPieces(1024))->pieces->rows, 1024u);
  EXPECT_EQ(DiffProfiles(without, profile), "~ pieces: not measured -> rows=8192\n");
  EXPECT_EQ(DiffProfiles(profile, WithPieces(1024)), "~ pieces: rows=8192 -> rows=1024\n");
  EXPECT_EQ(DiffProfiles(profile, profile), "");
}

}  // namespace
}  // namespace quern
