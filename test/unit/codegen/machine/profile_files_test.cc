// SPDX-License-Identifier: Apache-2.0
// Where profiles are stored, how they are written, and which one the plans of a process use.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/machine/profile.h"

namespace quern {
namespace {

std::string Message(const absl::Status& status) { return std::string(status.message()); }

Profile Here(uint16_t distance) {
  Profile profile;
  profile.machine = HostSignature();
  ProfileEntry entry;
  entry.cell = {PrefetchLoop::kProbeOpen, KeyClass::kPacked, 1, 24, 1};
  entry.setting.distance = distance;
  profile.Put({entry});
  return profile;
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder for the test, and an environment that is restored afterwards.
class ProfileFiles : public ::testing::Test {
 protected:
  ProfileFiles() {
    char name[] = "/tmp/quern-profile-XXXXXX";
    folder = mkdtemp(name) == nullptr ? "" : name;
    for (const char* variable : kVariables) {
      const char* value = std::getenv(variable);
      before.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
    }
    Set("QUERN_PROFILE", nullptr);
    Set("XDG_CONFIG_HOME", (folder + "/config").c_str());
  }
  ~ProfileFiles() override {
    SetProfileOfProcess(nullptr);
    for (size_t i = 0; i < std::size(kVariables); ++i)
      Set(kVariables[i], before[i].has_value() ? before[i]->c_str() : nullptr);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  static void Set(const char* variable, const char* value) {
    if (value == nullptr) unsetenv(variable);
    else setenv(variable, value, 1);
  }
  std::string Path(const std::string& name) const { return folder + "/" + name; }
  std::vector<std::string> FilesIn(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      names.push_back(entry.path().filename().string());
    return names;
  }

  static constexpr const char* kVariables[] = {"QUERN_PROFILE", "XDG_CONFIG_HOME", "HOME"};
  std::string folder;
  std::vector<std::optional<std::string>> before;
};

TEST_F(ProfileFiles, TheVariableComesAloneThenTheUserThenTheSystem) {
  const MachineSignature machine = HostSignature();
  const std::vector<std::string> places = ProfilePlaces(machine);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].rfind(Path("config/quern/"), 0), 0u) << places[0];
  EXPECT_EQ(places[1].rfind("/etc/quern/", 0), 0u) << places[1];
  EXPECT_EQ(places[0].substr(places[0].rfind('/')), places[1].substr(places[1].rfind('/')));
  EXPECT_EQ(*ProfileHome(machine), places[0]);
  Set("QUERN_PROFILE", "/x/y");
  EXPECT_EQ(ProfilePlaces(machine), std::vector<std::string>{"/x/y"});
  EXPECT_EQ(*ProfileHome(machine), "/x/y");
  Set("QUERN_PROFILE", "off");
  EXPECT_TRUE(ProfilePlaces(machine).empty());
  EXPECT_EQ(*ProfileHome(machine), places[0]);
  Set("QUERN_PROFILE", nullptr);
  Set("XDG_CONFIG_HOME", nullptr);
  Set("HOME", "/h");
  EXPECT_EQ(ProfilePlaces(machine)[0].rfind("/h/.config/quern/", 0), 0u);
  Set("HOME", nullptr);
  EXPECT_EQ(ProfilePlaces(machine), std::vector<std::string>{places[1]});
  EXPECT_EQ(Message(ProfileHome(machine).status()),
            "no folder for profiles: HOME is not set; accepted: QUERN_PROFILE=FILE, or --profile FILE");
}

TEST_F(ProfileFiles, TheNameIsTheMachines) {
  MachineSignature machine = HostSignature();
  machine.cpu = "a/../b c";
  const std::string name = ProfilePlaces(machine)[0].substr(Path("config/quern/").size());
  EXPECT_EQ(name.rfind("a_.._b_c-", 0), 0u) << name;
  EXPECT_EQ(name.substr(name.size() - 8), ".profile");
  MachineSignature same = machine, other = machine;
  same.microcode += "1";
  ++same.cores;
  EXPECT_EQ(ProfilePlaces(same), ProfilePlaces(machine));
  other.l3_bytes *= 2;
  EXPECT_NE(ProfilePlaces(other), ProfilePlaces(machine));
}

TEST_F(ProfileFiles, WhatIsWrittenIsReadAndReplacesWhatWasThere) {
  const std::string path = Path("new/folder/p");
  for (const uint16_t distance : {uint16_t{3}, uint16_t{4}}) {
    const absl::Status status = WriteProfile(Here(distance), path);
    ASSERT_TRUE(status.ok()) << status;
    const auto read = ReadProfile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->Print(), Here(distance).Print());
    EXPECT_EQ(read->path, path);
  }
  EXPECT_EQ(FilesIn(Path("new/folder")), std::vector<std::string>{"p"});
}

TEST_F(ProfileFiles, WhatCannotBeReadOrWrittenIsSaid) {
  EXPECT_TRUE(absl::IsNotFound(ReadProfile(Path("none")).status()));
  EXPECT_EQ(Message(ReadProfile(Path("none")).status()),
            "no profile: " + Path("none") + "; accepted: a file that quern tune has written");
  EXPECT_EQ(Message(ReadProfile(folder).status()),
            "cannot read profile: " + folder + " (not a file); accepted: a file that quern tune has written");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_NE(Message(ReadProfile(Path("pipe")).status()).find("(not a file)"), std::string::npos);
  std::ofstream(Path("large")).close();
  std::filesystem::resize_file(Path("large"), (16 << 20) + 1);
  EXPECT_NE(Message(ReadProfile(Path("large")).status()).find("(more than 16 MiB)"), std::string::npos);
  std::ofstream(Path("bad")) << "quern-profile 0\n";
  EXPECT_EQ(Message(ReadProfile(Path("bad")).status()),
            Path("bad") + ":1: version of a profile: 0; accepted: 1; quern tune makes a new one");
  const absl::Status below_file = WriteProfile(Here(1), Path("bad/p"));
  EXPECT_EQ(Message(below_file).rfind("cannot make folder of profiles: " + Path("bad") + " (", 0), 0u) << below_file;
  ASSERT_TRUE(std::filesystem::create_directory(Path("folder")));
  const absl::Status over_folder = WriteProfile(Here(1), Path("folder"));
  EXPECT_EQ(Message(over_folder).rfind("cannot write profile: " + Path("folder") + " (", 0), 0u) << over_folder;
  EXPECT_EQ(Content(Path("bad")), "quern-profile 0\n");
  EXPECT_EQ(FilesIn(folder).size(), 4u);  // no temporary file is left
}

// ---- the profile of the process -------------------------------------------------------------------------------

CompileOptions Now(Engine engine) {
  CompileOptions options;
  options.engine = engine;
  return options;
}

uint32_t PlannedDistance(const absl::StatusOr<CompiledKernel>& compiled) {
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? compiled->kernel->plan.prefetch_probe_open.For(1 << 24).distance : 0;
}

constexpr char kSpec[] = "join.inner keys=i64 build=i32,i32";

TEST_F(ProfileFiles, LaterCallsGoByANewProfileAndKeepTheCode) {
  ClearKernelCache();
  SetProfileOfProcess(nullptr);
  const auto untuned = CompileText(kSpec, Now(Engine::kJit));
  const uint64_t live = GetKernelCacheStats().live_kernels;
  for (const uint16_t distance : {uint16_t{5}, uint16_t{6}, uint16_t{5}}) {
    SetProfileOfProcess(std::make_shared<const Profile>(Here(distance)));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(PlannedDistance(CompileText(kSpec, Now(Engine::kJit))), distance);
      EXPECT_EQ(PlannedDistance(Compile(*ParseSpec(kSpec), Now(Engine::kJit))), distance);
    }
    EXPECT_EQ(PlannedDistance(Compile(*ParseSpec(kSpec), Now(Engine::kGeneric))), distance);
  }
  EXPECT_EQ(GetKernelCacheStats().live_kernels, live);  // nothing was compiled again
  SetProfileOfProcess(nullptr);
  EXPECT_EQ(PlannedDistance(CompileText(kSpec, Now(Engine::kJit))), PlannedDistance(untuned));
  ClearKernelCache();
}

TEST_F(ProfileFiles, TiersGoByANewProfileToo) {
  ClearKernelCache();
  CompileOptions options;
  options.when = CompileWhen::kBackground;
  for (const uint16_t distance : {uint16_t{5}, uint16_t{6}, uint16_t{7}}) {
    SetProfileOfProcess(std::make_shared<const Profile>(Here(distance)));
    EXPECT_EQ(PlannedDistance(CompileText(kSpec, options)), distance);
    EXPECT_EQ(PlannedDistance(Compile(*ParseSpec(kSpec), options)), distance);
  }
  ClearKernelCache();
}

TEST_F(ProfileFiles, AsItIsSetItIsNumbered) {
  SetProfileOfProcess(std::make_shared<const Profile>(Here(1)));
  const uint64_t number = ProfileNumber();
  SetProfileOfProcess(std::make_shared<const Profile>(Here(1)));  // with the same settings
  EXPECT_EQ(ProfileNumber(), number);
  SetProfileOfProcess(std::make_shared<const Profile>(Here(2)));
  EXPECT_GT(ProfileNumber(), number);
}

TEST_F(ProfileFiles, AnyThreadMaySetAndAsk) {
  std::vector<std::thread> threads;
  for (uint16_t t = 1; t <= 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        SetProfileOfProcess(std::make_shared<const Profile>(Here(t)));
        const auto profile = ProfileOfProcess();
        EXPECT_TRUE(profile != nullptr && profile->entries.size() == 1);
        EXPECT_LE(PlannedDistance(Compile(*ParseSpec(kSpec), Now(Engine::kGeneric))), 4u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace quern
