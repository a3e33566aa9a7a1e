// SPDX-License-Identifier: Apache-2.0
// A folder of kernels for each test of the disk cache, and the cache's messages while the test runs.
#ifndef QUERN_TEST_UNIT_CODEGEN_CACHE_CACHE_FOLDER_H_
#define QUERN_TEST_UNIT_CODEGEN_CACHE_CACHE_FOLDER_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "codegen/base/log.h"
#include "codegen/cache/disk_cache.h"
#include "codegen/cache/kernel_file.h"

namespace quern {

inline std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  chmod(path.c_str(), 0600);
}

inline void SetFileTime(const std::string& path, int64_t seconds_ago) {
  timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds_ago;
  times[1] = times[0];
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

inline int64_t SecondsSinceChange(const std::string& path) {
  struct stat about = {};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return stat(path.c_str(), &about) == 0 ? now.tv_sec - about.st_mtim.tv_sec : -1;
}

// That many bytes, made from the number alone, so that another process can check a key's object.
inline std::string ObjectOf(uint64_t number, size_t bytes) {
  std::mt19937_64 random(number);
  std::string object(bytes, '\0');
  for (char& c : object) c = static_cast<char>(random());
  return object;
}
inline std::string KeyOf(uint64_t number) {
  return "join.inner keys=i64\nkernel " + std::to_string(number) + "\nmachine\n";
}

class CacheFolder : public ::testing::Test {
 protected:
  CacheFolder() {
    // Not in the test runner's folder, which only its owner may enter: a test may change its user.
    std::string name = "/tmp/quern-cache-XXXXXX";
    top = mkdtemp(name.data());
    SetLogCallback([this](LogLevel, std::string_view line) { lines.emplace_back(line); });
  }
  ~CacheFolder() override {
    SetLogCallback(nullptr);
    std::error_code error;
    std::filesystem::remove_all(top, error);
  }

  std::string Path() const { return top + "/quern"; }
  DiskCache Cache(DiskCacheMode mode = DiskCacheMode::kReadWrite) const { return DiskCache({mode, Path()}); }
  std::string FileOf(const std::string& key) const { return Path() + "/" + KernelFileStem(key) + ".kernel"; }
  std::vector<StoredKernel> Kernels() const {
    const auto content = Cache().Read();
    return content.ok() ? content->kernels : std::vector<StoredKernel>();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(Path()))
      names.push_back(entry.path().filename().string());
    return names;
  }

  std::string top;  // the folder of the cache is below it and does not exist yet
  std::vector<std::string> lines;
};

}  // namespace quern

#endif  // QUERN_TEST_UNIT_CODEGEN_CACHE_CACHE_FOLDER_H_
