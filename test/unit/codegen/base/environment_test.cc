// SPDX-License-Identifier: Apache-2.0
// What a program with more rights than its user reads of that user's environment.
#include "codegen/base/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cache/disk_cache.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"

namespace quern {
namespace {

// Sets a variable for its own lifetime.
class Setting {
 public:
  Setting(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value, 1);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() {
    if (before_.has_value()) setenv(name_.c_str(), before_->c_str(), 1);
    else unsetenv(name_.c_str());
  }

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

std::vector<std::unique_ptr<Setting>> SetAll() {
  std::vector<std::unique_ptr<Setting>> settings;
  for (const VariableRow& row : ReadEnvironment()) settings.push_back(std::make_unique<Setting>(row.name, "1"));
  return settings;
}

TEST(Environment, OfAProgramWithMoreRightsNamesNoFilesAndLoadsNoCode) {
  const auto settings = SetAll();
  for (const VariableRow& row : ReadEnvironment()) EXPECT_TRUE(row.from_environment) << row.name;
  const PretendPrivileged privileged;
  const Variable read[] = {Variable::kThreads, Variable::kMachine, Variable::kVerbose, Variable::kKeptMemory};
  for (const VariableRow& row : ReadEnvironment()) {
    const bool is_read = std::find(std::begin(read), std::end(read), row.id) != std::end(read);
    EXPECT_EQ(row.from_environment, is_read) << row.name;
    EXPECT_EQ(row.value == "1", is_read) << row.name;
  }
  EXPECT_EQ(ReadVariable(Variable::kJitProfile).value, "");
  EXPECT_EQ(ReadVariable(Variable::kVtuneCollector).value, "");
}

TEST(Environment, OfAProgramWithMoreRightsSwitchesEverythingOff) {
  const Setting dump("QUERN_DUMP", "ir:/tmp"), override_folder("QUERN_OVERRIDE", "/tmp"),
      profile("QUERN_PROFILE", "/p"), cache("QUERN_CACHE", "rw"), folder("QUERN_CACHE_DIR", "/tmp/k"),
      home("HOME", "/tmp");
  EXPECT_FALSE(StageDumpOfEnvironment()->stages.empty());
  EXPECT_EQ(*FolderOfEnvironment(Variable::kOverride), "/tmp");
  const PretendPrivileged privileged;
  EXPECT_TRUE(StageDumpOfEnvironment()->stages.empty());
  EXPECT_EQ(*FolderOfEnvironment(Variable::kOverride), "");
  EXPECT_EQ(UserConfigFolder(), "");
  EXPECT_EQ(ProfilePlaces(HostSignature()), std::vector<std::string>());
  EXPECT_EQ(FindProfile(), nullptr);
  const absl::StatusOr<DiskCachePlace> place = DiskCachePlaceOfEnvironment();
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->mode, DiskCacheMode::kOff);
  EXPECT_EQ(place->directory, "");
}

}  // namespace
}  // namespace quern
