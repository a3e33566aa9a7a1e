// SPDX-License-Identifier: Apache-2.0
// Profiles: their text, which parses completely or not at all; what a lookup finds, and how that changes the schedules
// of a plan.
#include "codegen/machine/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/plan/plan.h"
#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

MachineSignature Signature() {
  MachineSignature signature;
  signature.cpu_name = "Test \"CPU\" 9000";
  signature.cpu = "znver4";
  signature.cores = 8;
  signature.l2_bytes = 1 << 20;
  signature.l3_bytes = 32 << 20;
  signature.huge_pages = "madvise";
  return signature;
}

ProfileEntry Entry(PrefetchLoop loop, KeyClass keys, uint32_t size_class, uint16_t distance, uint32_t pipeline = 1,
                   uint32_t threads = 1) {
  ProfileEntry entry;
  entry.cell = {loop, keys, pipeline, size_class, threads};
  entry.setting.distance = distance;
  entry.setting.hint = DefaultHint(loop);
  entry.ns = 3.25;
  entry.default_ns = 4.5;
  entry.off_ns = 9;
  entry.noise = 0.0125;
  return entry;
}

ProfileEntry Word(uint32_t size_class, uint16_t distance) {
  return Entry(PrefetchLoop::kProbeOpen, KeyClass::kPacked, size_class, distance);
}

Profile Of(const std::vector<ProfileEntry>& entries) {
  Profile profile;
  profile.machine = Signature();
  profile.Put(entries);
  return profile;
}

std::string Error(const std::string& text) {
  const auto profile = Profile::Parse(text, "p");
  return profile.ok() ? "" : std::string(profile.status().message());
}

std::string Head() { return "quern-profile 1\nmachine " + PrintSignature(Signature()) + "\n"; }
constexpr char kEntryText[] =
    "entry probe_open packed 2^24 pipeline=1 threads=1 setting=64/stages=1 ns=3.25 default_ns=4.5 off_ns=9 "
    "noise=0.0125\n";

// ---- text ----------------------------------------------------------------------------------------------------

TEST(ProfileText, ALineAnEntry) {
  Profile profile = Of({Word(24, 64)});
  profile.entries[0].setting.stages = 1;
  EXPECT_EQ(profile.Print(), Head() + kEntryText + "end 1\n");
  profile.entries[0].is_default = true;
  EXPECT_NE(profile.Print().find(" setting=default ns=3.25 "), std::string::npos);
}

ProfileEntry RandomEntry(std::mt19937_64* random) {
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>((*random)() % n); };
  const auto loop = static_cast<PrefetchLoop>(below(kNumPrefetchLoops));
  ProfileEntry entry = Entry(
      loop, static_cast<KeyClass>(below(3)), kSmallestSizeClass + below(kLargestSizeClass - kSmallestSizeClass + 1),
      static_cast<uint16_t>(below(2) == 0 ? kWholeBatch : below(kMaxPrefetchDistance + 1)), 1 + below(3), 1 + below(4));
  entry.setting.group_rows = static_cast<uint16_t>(below(64));
  entry.setting.batch_rows = static_cast<uint16_t>(below(4096));
  entry.setting.stages = static_cast<uint8_t>(1 + below(3));
  entry.setting.hint = static_cast<PrefetchHint>(below(5));
  entry.is_default = below(4) == 0;
  entry.ns = static_cast<double>((*random)()) / 1e17;
  entry.noise = static_cast<double>(below(1000000)) / 1e7;
  return entry;
}

TEST(ProfileText, ReadsBackWhatWasWritten) {
  auto random = test::PrintedRandom();
  for (int round = 0; round < 50; ++round) {
    std::vector<ProfileEntry> entries;
    for (uint64_t n = random() % 30; n > 0; --n) entries.push_back(RandomEntry(&random));
    const std::string text = Of(entries).Print();
    const auto parsed = Profile::Parse(text, "p");
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    EXPECT_EQ(parsed->Print(), text);
    EXPECT_EQ(parsed->machine, Signature());
  }
}

TEST(ProfileText, FactsReadBackToo) {
  Profile profile = Of({Word(20, 8)});
  profile.facts.emplace();
  profile.facts->memory.push_back({1 << 20, false, 12.5, 1.25, 16, 2.5, 8});
  const std::string text = profile.Print();
  EXPECT_NE(text.find("\nfact memory "), std::string::npos) << text;
  const auto parsed = Profile::Parse(text, "p");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Print(), text);
  EXPECT_EQ(parsed->facts->memory[0].latency_ns, 12.5);
}

TEST(ProfileText, CommentsAndForeignLineEndsSayNothing) {
  const auto parsed =
      Profile::Parse("# by hand\r\n\r\n" + Head() + "  # one\n\t\n" + kEntryText + "end 1\n\n# behind\n", "p");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->entries.size(), 1u);
}

TEST(ProfileText, EveryCutIsSeen) {
  const std::string text = Of({Word(20, 8), Word(24, 64)}).Print();
  for (size_t size = 0; size + 1 < text.size(); ++size) EXPECT_NE(Error(text.substr(0, size)), "") << size;
  EXPECT_EQ(Error(text.substr(0, text.size() - 1)), "");  // it is complete without its last line end
  EXPECT_EQ(Error(Head() + kEntryText),
            "p:3: profile without its last line: cut off; accepted: a whole one, from quern-profile 1 to end COUNT");
  EXPECT_EQ(Error(""),
            "p:1: profile without its last line: empty; accepted: a whole one, from quern-profile 1 to end COUNT");
}

TEST(ProfileText, WrongLinesAreNamed) {
  EXPECT_EQ(Error("# a\nELF\n"), "p:2: not a profile: ELF; accepted: quern-profile 1 as first line");
  for (const char* version : {"0", "2", "x"})
    EXPECT_EQ(Error(std::string("quern-profile ") + version + "\n"),
              std::string("p:1: version of a profile: ") + version + "; accepted: 1; quern tune makes a new one");
  EXPECT_EQ(Error("quern-profile 1\nend 0\n"),
            "p:2: line before the machine of a profile: end; accepted: machine NAME=VALUE ..");
  EXPECT_EQ(Error(Head() + "machine x\n"), "p:3: machine of a profile twice: x; accepted: one");
  EXPECT_EQ(Error(Head() + "wisdom 1\n"),
            "p:3: unknown line of a profile: wisdom; accepted: machine, fact, spill, pieces, input, entry, end");
  EXPECT_EQ(Error(Head() + kEntryText + "end 2\n"),
            "p:4: number of entries of a profile: 2; accepted: 1, as many as there are");
  EXPECT_EQ(Error(Head() + "end 0\n# b\nentry x\n"),
            "p:5: line behind the end of a profile: entry x; accepted: nothing behind end");
  EXPECT_EQ(Error(Head() + kEntryText + kEntryText + "end 1\n"),
            "p:4: entry twice: probe_open packed 2^24 pipeline=1 threads=1; accepted: each once");
  EXPECT_EQ(Error("quern-profile 1\nmachine cpu=x\n").rfind("p:2: ", 0), 0u);
  EXPECT_EQ(Error(Head() + "fact moon\n").rfind("p:3: unknown fact: ", 0), 0u);
}

std::string EntryError(const std::string& from, const std::string& to) {
  std::string text = kEntryText;
  text.replace(text.find(from), from.size(), to);
  return Error(Head() + "\n" + text + "end 1\n");
}

TEST(ProfileText, WrongEntriesAreNamed) {
  EXPECT_EQ(EntryError("probe_open", "probe_closed"),
            "p:4: unknown loop: probe_closed; accepted: build_dense, build_open, build_unchained, probe_dense, "
            "probe_open, probe_unchained, "
            "update_dense, update_open, update_directory, gather, collision");
  EXPECT_EQ(EntryError("packed", "words"), "p:4: unknown key class: words; accepted: packed, fixed, string");
  for (const char* size : {"2^14", "2^32", "2^", "24", "2^24x"})
    EXPECT_EQ(EntryError("2^24", size), std::string("p:4: bad table size: ") + size + "; accepted: 2^15 to 2^31");
  EXPECT_EQ(EntryError("threads=1", "threads=0"), "p:4: bad threads of an entry: 0; accepted: 1 to 1024");
  EXPECT_EQ(EntryError("pipeline=1", "pipeline=65"), "p:4: bad pipeline of an entry: 65; accepted: 1 to 64");
  EXPECT_EQ(EntryError("noise=", "noise=1 noise="), "p:4: field of an entry twice: noise; accepted: each once");
  EXPECT_EQ(EntryError("noise=", "colour="),
            "p:4: unknown field of an entry: colour=0.0125; accepted: pipeline=, threads=, setting=, ns=, default_ns=, "
            "off_ns=, noise=");
  EXPECT_EQ(EntryError(" noise=0.0125", ""),
            "p:4: missing field of an entry: noise; accepted: entry LOOP KEYS 2^SIZE pipeline=N threads=N "
            "setting=SETTING ns=N default_ns=N "
            "off_ns=N noise=N");
  for (const char* number : {"-1", "nan", "inf", "1e999", "", "1,5", "0x1"})
    EXPECT_EQ(EntryError("3.25", number).rfind("p:4: bad ns of an entry: ", 0), 0u) << number;
  EXPECT_EQ(EntryError("64/stages=1", "64/stages=9").rfind("p:4: bad prefetch setting: 64/stages=9; accepted: ", 0),
            0u);
}

TEST(ProfileText, NoBytesMakeItFail) {
  auto random = test::PrintedRandom();
  const std::string whole = Of({Word(20, 8), Word(24, 64)}).Print();
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) text[random() % text.size()] = static_cast<char>(random());
    const auto parsed = Profile::Parse(text, "p");
    if (parsed.ok()) {
      EXPECT_LE(parsed->entries.size(), 2u);
    } else {
      EXPECT_EQ(std::string(parsed.status().message()).rfind("p:", 0), 0u);
    }
  }
}

// ---- look-up ---------------------------------------------------------------------------------------------------

TuningCell Cell(uint32_t size_class, KeyClass keys = KeyClass::kPacked, uint32_t pipeline = 1, uint32_t threads = 1) {
  return {PrefetchLoop::kProbeOpen, keys, pipeline, size_class, threads};
}

void ExpectFound(const Profile& profile, const TuningCell& cell, ProfileMatch match, uint16_t distance) {
  PrefetchSetting estimate;
  estimate.distance = 7;
  const ProfileLookUp found = profile.Find(cell, estimate);
  EXPECT_STREQ(MatchText(found.match), MatchText(match)) << PrintCell(cell);
  EXPECT_EQ(found.setting.distance, distance) << PrintCell(cell);
}

TEST(ProfileLookUp, FromNearToFar) {
  const Profile profile = Of({Word(22, 48), Word(27, 96)});
  ExpectFound(profile, Cell(22), ProfileMatch::kExact, 48);
  ExpectFound(profile, Cell(27), ProfileMatch::kExact, 96);
  for (const uint32_t size : {20u, 21u, 23u, 24u}) ExpectFound(profile, Cell(size), ProfileMatch::kNearestSize, 48);
  for (const uint32_t size : {25u, 26u, 28u, 29u}) ExpectFound(profile, Cell(size), ProfileMatch::kNearestSize, 96);
  for (const uint32_t size : {15u, 19u, 30u, 31u}) ExpectFound(profile, Cell(size), ProfileMatch::kDefault, 7);
  ExpectFound(profile, Cell(22, KeyClass::kString), ProfileMatch::kSameFamily, 48);
  ExpectFound(profile, Cell(23, KeyClass::kPacked, 2), ProfileMatch::kSameFamily, 48);
  ExpectFound(profile, Cell(27, KeyClass::kPacked, 1, 4), ProfileMatch::kSameFamily, 96);
  TuningCell other = Cell(22);
  other.loop = PrefetchLoop::kProbeDense;
  ExpectFound(profile, other, ProfileMatch::kDefault, 7);
}

TEST(ProfileLookUp, OfTwoEquallyNearTheLargerCounts) {
  ExpectFound(Of({Word(20, 1), Word(22, 3)}), Cell(21), ProfileMatch::kNearestSize, 3);
  ExpectFound(Of({Word(22, 3), Word(20, 1)}), Cell(21), ProfileMatch::kNearestSize, 3);
}

TEST(ProfileLookUp, OthersStandInOnlyForWhatWasNotMeasured) {
  const auto strings = [](uint32_t size_class, uint16_t distance) {
    return Entry(PrefetchLoop::kProbeOpen, KeyClass::kString, size_class, distance);
  };
  // Strings were measured at 2^30: for a table of 2^20 bytes the entry for words of that size does not apply.
  ExpectFound(Of({Word(20, 1), strings(30, 2)}), Cell(20, KeyClass::kString), ProfileMatch::kDefault, 7);
  // A different number of threads is nearer than a different pipeline, which is nearer than different keys.
  const ProfileEntry threads = Entry(PrefetchLoop::kProbeOpen, KeyClass::kFixed, 20, 3, 1, 2);
  const ProfileEntry pipeline = Entry(PrefetchLoop::kProbeOpen, KeyClass::kFixed, 20, 4, 2, 1);
  ExpectFound(Of({Word(20, 1), pipeline, threads}), Cell(20, KeyClass::kFixed), ProfileMatch::kSameFamily, 3);
  ExpectFound(Of({Word(20, 1), pipeline}), Cell(20, KeyClass::kFixed), ProfileMatch::kSameFamily, 4);
  ExpectFound(Of({Word(20, 1)}), Cell(20, KeyClass::kFixed), ProfileMatch::kSameFamily, 1);
}

TEST(ProfileLookUp, AMeasuredDefaultIsTheEstimate) {
  Profile profile = Of({Word(22, 48)});
  profile.entries[0].is_default = true;
  ExpectFound(profile, Cell(22), ProfileMatch::kExact, 7);
  ExpectFound(profile, Cell(23), ProfileMatch::kNearestSize, 7);
}

// ---- schedules ---------------------------------------------------------------------------------------------------

std::string ScheduleText(const Profile& profile, const char* estimate, std::string* origin) {
  *origin = "estimate";
  return PrintSchedule(profile.Schedule(PrefetchLoop::kProbeOpen, KeyClass::kPacked, 1,
                                        *ParseSchedule(estimate, PrefetchHint::kT0), origin),
                       PrefetchHint::kT0);
}

TEST(ProfileSchedule, EntriesAndEstimatesTakeTurns) {
  std::string origin;
  EXPECT_EQ(ScheduleText(Of({}), "0@1M,64@36M,128", &origin), "0@1M,64@36M,128");
  EXPECT_EQ(origin, "estimate");
  EXPECT_EQ(ScheduleText(Of({Word(22, 48), Word(27, 96)}), "0@1M,64@36M,128", &origin), "0@512K,48@16M,96@512M,128");
  EXPECT_EQ(origin, "profile: 2 sizes exact, 8 nearest size, 7 default (estimate)");
  // A threshold of an estimate inside a size class stays where it is.
  EXPECT_EQ(ScheduleText(Of({Word(22, 48)}), "0@1280K,64@36M,128", &origin), "0@512K,48@16M,64@36M,128");
  Profile all = Of({Word(16, 1), Word(20, 2), Word(24, 3), Word(28, 4), Word(31, 5)});
  EXPECT_EQ(ScheduleText(all, "0", &origin), "1@128K,2@2M,3@32M,4@512M,5");
  EXPECT_EQ(origin, "profile: 5 sizes exact, 12 nearest size");
}

TEST(ProfileSchedule, IsWhatALookUpOfEachSizeSays) {
  auto random = test::PrintedRandom();
  const PrefetchSchedule estimate = *ParseSchedule("0@1M,64@36M,128", PrefetchHint::kT0);
  for (int round = 0; round < 100; ++round) {
    std::vector<ProfileEntry> entries;
    for (uint64_t n = random() % 40; n > 0; --n) entries.push_back(RandomEntry(&random));
    const Profile profile = Of(entries);
    std::string origin;
    const PrefetchSchedule schedule =
        profile.Schedule(PrefetchLoop::kProbeOpen, KeyClass::kPacked, 1, estimate, &origin);
    EXPECT_EQ(*ParseSchedule(PrintSchedule(schedule, PrefetchHint::kT0), PrefetchHint::kT0), schedule);
    for (uint64_t bytes = 1; bytes < uint64_t{1} << 34; bytes += bytes / 3 + 1)
      EXPECT_EQ(schedule.For(bytes), profile.Find(Cell(SizeClassOf(bytes)), estimate.For(bytes)).setting)
          << bytes << "\n"
          << profile.Print();
  }
}

TEST(Profile, WhatLosesWithMoreThreadsDoesNotCount) {
  ProfileEntry one = Word(22, 48), two = Word(22, 48);
  two.cell.threads = 2;
  std::string origin;
  EXPECT_EQ(ScheduleText(Of({one, two}), "7", &origin), "7@512K,48@16M,7");
  two.is_default = true;
  EXPECT_EQ(ScheduleText(Of({one, two}), "7", &origin), "7");
  EXPECT_EQ(Of({one, two}).Find(one.cell, {}).setting.distance, 0);
  two.cell.size_class = 23;  // another size is not compared
  EXPECT_EQ(ScheduleText(Of({one, two}), "7", &origin), "7@512K,48@16M,7");
}

// ---- estimates -------------------------------------------------------------------------------------------------

std::string Estimate(PrefetchLoop loop, const MemoryModel& model) {
  return PrintSchedule(EstimateSchedule(loop, KeyClass::kPacked, model), DefaultHint(loop));
}

Machine With(uint64_t l2_bytes, uint64_t l3_bytes) {
  Machine machine;
  machine.l2_bytes = l2_bytes;
  machine.l3_bytes = l3_bytes;
  return machine;
}

TEST(Estimate, OfBelievedMemoryGoesByTheCaches) {
  for (const auto& [l2, l3, text] :
       {std::tuple(1 << 20, 32 << 20, "0@1M,64@32M,128"), std::tuple(1280 << 10, 36 << 20, "0@1280K,64@36M,128"),
        std::tuple(256 << 10, 8 << 20, "0@256K,64@8M,128"), std::tuple(4 << 20, 4 << 20, "0@4M,128"),
        std::tuple(2 << 20, 105 << 20, "0@2M,64@105M,128")})
    for (const PrefetchLoop loop :
         {PrefetchLoop::kProbeOpen, PrefetchLoop::kBuildUnchained, PrefetchLoop::kUpdateDirectory})
      EXPECT_EQ(Estimate(loop, BelievedModel(With(l2, l3))), text);
  EXPECT_EQ(Estimate(PrefetchLoop::kUpdateOpen, BelievedModel(With(1 << 20, 32 << 20))), "0@8M,64@32M,128");
  EXPECT_EQ(Estimate(PrefetchLoop::kUpdateDense, BelievedModel(With(2 << 20, 4 << 20))), "0@2M,64@4M,128");
  EXPECT_EQ(Estimate(PrefetchLoop::kUpdateDense, BelievedModel(With(4 << 20, 4 << 20))), "0@4M,128");
  EXPECT_EQ(Estimate(PrefetchLoop::kGather, BelievedModel(With(1 << 20, 32 << 20))), "0@2M,all");
  EXPECT_EQ(Estimate(PrefetchLoop::kCollision, BelievedModel(With(2 << 20, 32 << 20))), "0@1M,24");
}

TEST(Estimate, CoversMeasuredLatencyTwice) {
  MemoryModel model = BelievedModel(With(1 << 20, 32 << 20));
  for (uint32_t i = 6; i < 12; ++i) {
    model.latency_ns[i] = 40;  // 2^21 to 2^26: 40 / 2 * 2 = 40
    model.line_ns[i] = 2;
  }
  for (uint32_t i = 12; i < 17; ++i) {
    model.latency_ns[i] = 300;  // 300 / 4 * 2 = 150
    model.line_ns[i] = 4;
  }
  EXPECT_EQ(Estimate(PrefetchLoop::kProbeOpen, model), "0@1M,64@64M,128");
  EXPECT_EQ(Estimate(PrefetchLoop::kBuildOpen, model), "0@1M,all");
  for (uint32_t i = 6; i < 12; ++i) model.latency_ns[i] = 12;  // 12 / 2 * 2 = 12
  EXPECT_EQ(Estimate(PrefetchLoop::kProbeOpen, model), "0@1M,16@64M,128");
  for (double& ns : model.latency_ns) ns = 5;  // arrives there before it is needed
  EXPECT_EQ(Estimate(PrefetchLoop::kProbeOpen, model), "0");
  for (double& ns : model.latency_ns) ns = 1e9;
  for (double& ns : model.line_ns) ns = 0;
  EXPECT_EQ(Estimate(PrefetchLoop::kProbeOpen, model), "8");
}

TEST(Estimate, PlansSayWhereTheirLaddersComeFrom) {
  const auto spec = *ParseSpec("join.inner keys=i64");
  const Machine machine = With(1 << 20, 32 << 20);
  EXPECT_EQ(MakePlan(spec, machine, {})->prefetch_probe_open_origin.text, "estimate");
  EXPECT_EQ(MakePlan(spec, machine, {{"prefetch_probe_open", "3"}})->prefetch_probe_open_origin.text, "given");
  Profile profile = Of({Word(22, 48)});
  const auto tuned = MakePlan(spec, machine, {}, &profile);
  EXPECT_EQ(tuned->prefetch_probe_open_origin.text, "profile: 1 size exact, 4 nearest size, 12 default (estimate)");
  EXPECT_EQ(tuned->prefetch_probe_open.For(4 << 20).distance, 48);
  EXPECT_EQ(tuned->prefetch_probe_dense_origin.text, "estimate");
  profile.facts.emplace();
  profile.facts->memory.push_back({uint64_t{1} << 27, true, 60, 4, 16, 4, 16});
  const auto measured = MakePlan(spec, machine, {}, &profile);
  EXPECT_EQ(measured->prefetch_probe_dense_origin.text, "estimate by measured latencies");
  EXPECT_EQ(measured->prefetch_probe_dense.For(uint64_t{1} << 27).distance, 32);
}

// ---- two profiles ----------------------------------------------------------------------------------------------

TEST(TwoProfiles, TheSecondOnesEntriesWin) {
  const auto merged = MergeProfiles(Of({Word(20, 1), Word(22, 2)}), Of({Word(22, 3), Word(24, 4)}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->Print(), Of({Word(20, 1), Word(22, 3), Word(24, 4)}).Print());
}

TEST(TwoProfiles, FactsOfTheSecondCountWhereItHasAny) {
  Profile first = Of({}), second = Of({});
  first.facts.emplace();
  first.facts->l2_bytes = 1;
  EXPECT_EQ(MergeProfiles(first, second)->facts->l2_bytes, 1u);
  second.facts.emplace();
  second.facts->l2_bytes = 2;
  EXPECT_EQ(MergeProfiles(first, second)->facts->l2_bytes, 2u);
}

TEST(TwoProfiles, OfTwoMachinesAreNotMerged) {
  Profile other = Of({});
  other.machine.cpu = "znver5";
  const auto merged = MergeProfiles(Of({}), other);
  EXPECT_EQ(merged.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      merged.status().message(),
      "profiles of different machines: cpu znver4 here, znver5 in the profile; accepted: profiles of one machine");
}

TEST(TwoProfiles, DifferencesAreLines) {
  EXPECT_EQ(DiffProfiles(Of({Word(20, 1)}), Of({Word(20, 1)})), "");
  ProfileEntry by_default = Word(24, 9);
  by_default.is_default = true;
  Profile second = Of({Word(21, 5), Word(22, 3), by_default});
  second.entries[1].ns = 100;  // different times are not a difference
  EXPECT_EQ(DiffProfiles(Of({Word(20, 1), Word(22, 3), Word(24, 9)}), second),
            "- probe_open packed 2^20 pipeline=1 threads=1: 1\n"
            "+ probe_open packed 2^21 pipeline=1 threads=1: 5\n"
            "~ probe_open packed 2^24 pipeline=1 threads=1: 9 -> default\n");
}

TEST(TwoProfiles, PutKeepsTheOrder) {
  auto random = test::PrintedRandom();
  std::vector<ProfileEntry> entries;
  for (int i = 0; i < 200; ++i) entries.push_back(RandomEntry(&random));
  const Profile profile = Of(entries);
  EXPECT_TRUE(std::is_sorted(profile.entries.begin(), profile.entries.end(),
                             [](const ProfileEntry& a, const ProfileEntry& b) { return a.cell < b.cell; }));
  for (size_t i = 1; i < profile.entries.size(); ++i) EXPECT_NE(profile.entries[i - 1].cell, profile.entries[i].cell);
}

}  // namespace
}  // namespace quern
