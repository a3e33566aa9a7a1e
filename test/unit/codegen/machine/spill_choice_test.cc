// SPDX-License-Identifier: Apache-2.0
// The line of a profile about spilled rows: it reads back as it was written, wrong ones are named, profiles keep it.
#include "codegen/machine/spill_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "codegen/plan/plan.h"
#include "runtime/spill/spill_context.h"

namespace quern {
namespace {

constexpr const char* kLine =
    "spill block_bytes=1048576 read_ahead=4 write_behind=3 threads=5 reads=threads codec=lz4 device_mb_s=520.5 "
    "cache_mb_s=1900 default_device_mb_s=310.2 default_cache_mb_s=1450 noise=0.08";

ProfileSpill ASpill() {
  ProfileSpill spill;
  spill.choice = {1 << 20, 4, 3, 5, false, true};
  spill.speed = {520.5, 1900};
  spill.default_speed = {310.2, 1450};
  spill.noise = 0.08;
  return spill;
}

std::string Error(const std::string& rest) { return std::string(ParseSpillLine(rest).status().message()); }

TEST(SpillChoice, ALineReadsBackAsItWasWritten) {
  EXPECT_EQ(PrintSpillLine(ASpill()), kLine);
  const absl::StatusOr<ProfileSpill> parsed = ParseSpillLine(std::string(kLine).substr(6));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->choice, ASpill().choice);
  EXPECT_EQ(PrintSpillLine(*parsed), kLine);
}

TEST(SpillChoice, WrongFieldsAreNamed) {
  const std::string form =
      "; accepted: spill block_bytes=N read_ahead=N write_behind=N threads=N reads=WORD codec=WORD device_mb_s=N "
      "cache_mb_s=N default_device_mb_s=N default_cache_mb_s=N noise=N";
  EXPECT_EQ(Error("read_ahead=1"), "bad field of a spill line: read_ahead=1" + form);
  EXPECT_EQ(Error("block_bytes=1"), "bad field of a spill line: block_bytes=1; accepted: 16384 to 67108864");
  EXPECT_EQ(Error("block_bytes=65536 read_ahead=0"), "bad field of a spill line: read_ahead=0; accepted: 1 to 64");
  EXPECT_EQ(Error("block_bytes=65536 read_ahead=1 write_behind=0 threads=1 reads=cd"),
            "bad field of a spill line: reads=cd; accepted: ring, threads");
  EXPECT_EQ(Error("block_bytes=65536 read_ahead=1 write_behind=0 threads=1 reads=ring codec=zip"),
            "bad field of a spill line: codec=zip; accepted: none, lz4");
  EXPECT_EQ(Error("block_bytes=65536 read_ahead=1 write_behind=0 threads=1 reads=ring device_mb_s=-1"),
            "bad field of a spill line: device_mb_s=-1; accepted: a number of 0 or more");
  EXPECT_EQ(Error(std::string(kLine).substr(6) + " more=1"), "bad field of a spill line: more=1" + form);
}

TEST(SpillChoice, ALineOfAnEarlierVersionHasNoCodec) {
  std::string line = std::string(kLine).substr(6);
  line.erase(line.find("codec=lz4 "), std::string("codec=lz4 ").size());
  const absl::StatusOr<ProfileSpill> parsed = ParseSpillLine(line);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(parsed->choice.compresses);
  EXPECT_EQ(parsed->choice.threads, ASpill().choice.threads);
}

Profile WithSpill() {
  Profile profile;
  profile.machine = HostSignature();
  profile.spill = ASpill();
  return profile;
}

TEST(SpillChoice, AProfileKeepsTheLine) {
  const Profile profile = WithSpill();
  const absl::StatusOr<Profile> parsed = Profile::Parse(profile.Print(), "p");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Print(), profile.Print());
  Profile without = profile;
  without.spill.reset();
  EXPECT_EQ(PrintSpillLine(*MergeProfiles(profile, without)->spill), kLine);
  EXPECT_EQ(PrintSpillLine(*MergeProfiles(without, profile)->spill), kLine);
  EXPECT_EQ(DiffProfiles(without, profile),
            "~ spill: not measured -> block_bytes=1048576 read_ahead=4 write_behind=3 threads=5 reads=threads "
            "codec=lz4\n");
  std::string twice = profile.Print();
  twice.insert(twice.find("spill"), std::string(kLine) + "\n");
  EXPECT_NE(Profile::Parse(twice, "p").status().message().find("spill line of a profile twice: "), std::string::npos);
}

TEST(SpillChoice, APlanTakesItAndTheRuntimeGetsIt) {
  const Profile profile = WithSpill();
  const KernelSpec spec = *ParseSpec("sort keys=i64");
  const absl::StatusOr<KernelPlan> plan = MakePlan(spec, Machine{}, {{"spill_threads", "9"}}, &profile);
  ASSERT_TRUE(plan.ok());
  const SpillSettings settings = MakeSpillSettings(*plan);
  EXPECT_EQ(settings.block_bytes, 0);
  EXPECT_EQ(settings.max_block_bytes, 1 << 20);
  EXPECT_EQ(settings.read_depth, 4);
  EXPECT_EQ(settings.write_depth, 3);
  EXPECT_EQ(settings.num_threads, 9);
  EXPECT_FALSE(settings.uses_ring);
  EXPECT_EQ(settings.codec, BlockCodec::kLz4);
  EXPECT_EQ(CodeParameters(*plan), CodeParameters(*MakePlan(spec, Machine{}, {})));
}

// The defaults stand in three places, of rooms that do not know each other.
TEST(SpillChoice, DefaultsAreThoseOfThePlanAndOfTheRuntime) {
  const SpillSettings planned = MakeSpillSettings(*MakePlan(*ParseSpec("sort keys=i64"), Machine{}, {}));
  const SpillSettings settings;
  const SpillChoice choice;
  EXPECT_EQ(planned.max_block_bytes, settings.max_block_bytes);
  EXPECT_EQ(planned.max_block_bytes, choice.block_bytes);
  EXPECT_EQ(planned.read_depth, choice.read_ahead);
  EXPECT_EQ(planned.write_depth, settings.write_depth);
  EXPECT_EQ(planned.write_depth, choice.write_behind);
  EXPECT_EQ(planned.num_threads, settings.num_threads);
  EXPECT_EQ(planned.num_threads, choice.threads);
  EXPECT_EQ(planned.uses_ring, settings.uses_ring);
  EXPECT_EQ(planned.uses_ring, choice.reads_by_ring);
  EXPECT_EQ(planned.codec, settings.codec);
  EXPECT_EQ(planned.codec == BlockCodec::kLz4, choice.compresses);
}

}  // namespace
}  // namespace quern
