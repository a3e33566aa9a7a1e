// SPDX-License-Identifier: Apache-2.0
// Files are written whole or not at all. test/faults lets every call fail; here is what a process can cause by itself.
#include "codegen/base/write_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "codegen/base/private_folder.h"

namespace quern {
namespace {

class WriteFile : public testing::Test {
 protected:
  WriteFile() { std::filesystem::create_directory(folder); }
  ~WriteFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string Path(const std::string& name) const { return folder + "/" + name; }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  const std::string folder = testing::TempDir() + "write_file." + std::to_string(getpid());
};

TEST_F(WriteFile, ReplacesTheFileAndALeftTemporary) {
  std::ofstream(Path("a")) << "old";
  std::ofstream(Path("a.tmp")) << "left by a killed process, and longer";
  ASSERT_EQ(ReplaceFile(AT_FDCWD, Path("a"), Path("a.tmp"), "new", 0600), 0);
  EXPECT_EQ(Content(Path("a")), "new");
  struct stat about;
  ASSERT_EQ(stat(Path("a").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const Descriptor open_folder(open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(ReplaceFile(open_folder.get(), "a", "b", "newer", 0600), 0);
  EXPECT_EQ(Content(Path("a")), "newer");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(WriteFile, LeavesTheOldFileWhereItFails) {
  std::filesystem::create_directory(Path("folder"));
  EXPECT_EQ(ReplaceFile(AT_FDCWD, Path("folder"), Path("a.tmp"), "new", 0600), EISDIR);
  EXPECT_EQ(ReplaceFile(AT_FDCWD, Path("a"), Path("folder"), "new", 0600), EISDIR);
  EXPECT_EQ(ReplaceFile(AT_FDCWD, Path("none/a"), Path("none/b"), "new", 0600), ENOENT);
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(WriteFile, AFileAboveTheLimitIsAnErrorAndNoSignal) {
  std::ofstream(Path("a")) << "old";
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {5, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const int fits = ReplaceFile(AT_FDCWD, Path("a"), Path("b"), "five.", 0600);
  const int is_too_long = ReplaceFile(AT_FDCWD, Path("a"), Path("b"), "six ..", 0600);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(fits, 0);
  EXPECT_EQ(is_too_long, EFBIG);
  EXPECT_EQ(Content(Path("a")), "five.");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(WriteFile, AFullDiskIsAnError) {
  const Descriptor full(open("/dev/full", O_WRONLY));
  if (full.get() < 0) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(WriteBytes(full.get(), "x"), ENOSPC);
  EXPECT_EQ(WriteBytes(full.get(), ""), 0);
}

}  // namespace
}  // namespace quern
