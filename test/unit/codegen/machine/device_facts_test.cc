// SPDX-License-Identifier: Apache-2.0
// Facts of a file system: measured values are plausible, no file is left, and a folder that cannot be measured is an
// error.
#include "codegen/machine/device_facts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>

namespace quern {
namespace {

DeviceFacts SomeFacts() {
  DeviceFacts facts;
  facts.folder = "/var/tmp";
  facts.file_system = "ext4";
  facts.file_bytes = uint64_t{256} << 20;
  facts.passes_cache = true;
  facts.facts = {{64 << 10, 1, false, 130.2, 480.25, 95, 650},
                 {64 << 10, 4, false, 510, 490, 380, 700},
                 {1 << 20, 1, false, 900, 1100, 800, 1250},
                 {64 << 10, 1, true, 8000, 7.5, 2500, 25}};
  facts.seconds = 2.04;
  return facts;
}

TEST(DeviceFacts, ATableHasALineForEachSizeAndAColumnForEachDepth) {
  const std::string text = PrintDevice(SomeFacts());
  EXPECT_EQ(text.find("device      /var/tmp, ext4, a file of 256 MiB, page cache bypassed\n"), 0) << text;
  EXPECT_NE(text.find("\ndevice, reads, MB/s\n"
                      "     depth        1        4\n"
                      "    64 KiB      130      510\n"
                      "     1 MiB      900        -\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\npage cache, writes, MB/s\n"
                      "     depth        1\n"
                      "    64 KiB     2500\n"),
            std::string::npos)
      << text;
}

TEST(DeviceFacts, JsonHasAllOfThem) {
  DeviceFacts facts = SomeFacts();
  facts.facts.resize(1);
  EXPECT_EQ(DeviceJson(facts),
            R"({"folder":"/var/tmp","file_system":"ext4","file_bytes":268435456,"passes_cache":true,"blocks":[)"
            R"({"block_bytes":65536,"depth":1,"cached":false,"read_mb_s":130.2,"read_us":480.2,"write_mb_s":95.0,)"
            R"("write_us":650.0}],"seconds":2.040})");
}

TEST(DeviceFacts, AreMeasuredAndLeaveNoFile) {
  const std::string folder = testing::TempDir() + "quern-device-facts";
  std::filesystem::create_directory(folder);
  DeviceFactsOptions options;
  options.seconds = 0.1;
  options.max_bytes = uint64_t{8} << 20;
  int num_said = 0;
  options.progress = [&](const std::string&) { ++num_said; };
  const absl::StatusOr<DeviceFacts> facts = MeasureDevice(folder, options);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->file_bytes, uint64_t{8} << 20);
  EXPECT_FALSE(facts->facts.empty());
  for (const DeviceFact& fact : facts->facts) {
    EXPECT_GT(fact.read_mb_s, 0);
    EXPECT_GT(fact.read_us, 0);
  }
  EXPECT_GT(num_said, 4);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

TEST(DeviceFacts, AFolderThatIsNotThereIsAnError) {
  const absl::Status status = MeasureDevice("/tmp/not-there/at-all").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(),
            "cannot measure the file system: /tmp/not-there/at-all (No such file or directory); accepted: a folder "
            "that takes new files, with 32 MiB of free space");
}

TEST(DeviceFacts, StopEndsTheMeasurement) {
  const std::atomic<bool> stop = true;
  DeviceFactsOptions options;
  options.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(MeasureDevice(testing::TempDir(), options).status()));
}

}  // namespace
}  // namespace quern
