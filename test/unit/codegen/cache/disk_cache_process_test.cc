// SPDX-License-Identifier: Apache-2.0
// Kernels on disk and several processes: they share a folder, are killed while they write, and meet a file system that
// is full or read-only.
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "test/unit/codegen/cache/cache_folder.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

constexpr int kSkipped = 77;

// Starts a process that calls `work` and exits with its result.
pid_t Start(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

int ExitStatus(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Whether this process may mount file systems that only it sees. Without root rights it gets them in a user namespace.
bool MayMount() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return false;
  if (user != 0) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  }
  return geteuid() == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

class CacheProcesses : public CacheFolder {
 protected:
  // Redirects the warnings of a child to a file that the parent reads.
  void SpeakIntoFile() {
    SetLogCallback(
        [this](LogLevel, std::string_view line) { std::ofstream(top + "/said", std::ios::app) << line << '\n'; });
  }
  std::string Said() const { return FileContent(top + "/said"); }

  // Looks up and stores kernels of 20 keys, and sometimes removes some. Returns 0 if everything it found was whole.
  int UseRandomly(unsigned seed) {
    std::minstd_rand random(seed);
    DiskCache cache = Cache();
    for (int i = 0; i < 400; ++i) {
      const uint64_t number = random() % 20;
      const auto object = cache.Find(KeyOf(number));
      if (object.has_value() && *object != ObjectOf(number, 3000 + number)) return 1;
      if (random() % 2 == 0) cache.Store(KeyOf(number), ObjectOf(number, 3000 + number));
      if (random() % 50 == 0 && !cache.Collect(30'000).ok()) return 2;
      if (random() % 100 == 0 && !cache.Clear().ok()) return 3;
    }
    return lines.empty() ? 0 : 4;
  }
};

TEST_F(CacheProcesses, ManyShareAFolder) {
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 6; ++i) children.push_back(Start([this, i] { return UseRandomly(i + 1); }));
  for (const pid_t child : children) EXPECT_EQ(ExitStatus(child), 0);
  const DiskCacheContent content = *Cache().Read();
  for (const StoredKernel& kernel : content.kernels) EXPECT_EQ(kernel.problem, "");
  EXPECT_EQ(content.temporary_files, 0u);
}

// Kernels of 8 MiB, so that a process spends most of its life writing one. It is killed at a random time; every other
// process is stopped repeatedly until it has a temporary file, and is killed then.
TEST_F(CacheProcesses, AreKilledWhileTheyWrite) {
  const std::string objects[] = {ObjectOf(0, 8 << 20), ObjectOf(1, 8 << 20)};
  Cache().Store(KeyOf(0), objects[0]);
  std::mt19937_64 random = test::PrintedRandom();
  const auto num_temporaries = [this] {
    const std::vector<std::string> names = Names();
    return std::count_if(names.begin(), names.end(),
                         [](const std::string& name) { return name.ends_with(".quern-tmp"); });
  };
  for (int round = 0; round < 10; ++round) {
    const auto before = num_temporaries();
    const pid_t child = Start([&] {
      DiskCache cache = Cache();
      for (uint64_t i = 0;; ++i) cache.Store(KeyOf(i % 2), objects[i % 2]);
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    for (bool caught = round % 2 == 0; !caught;) {
      kill(child, SIGSTOP);
      ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
      caught = num_temporaries() > before;
      if (!caught) kill(child, SIGCONT);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (uint64_t i = 0; i < 2; ++i) {
      const auto found = Cache().Find(KeyOf(i));
      EXPECT_TRUE(!found.has_value() || *found == objects[i]);
      EXPECT_TRUE(found.has_value() || !std::filesystem::exists(FileOf(KeyOf(i))))
          << "a part has the name of the whole";
    }
  }
  for (const std::string& name : Names()) SetFileTime(Path() + "/" + name, 4000);
  EXPECT_GT(*Cache().Collect(100 << 20), 0u);
  EXPECT_EQ(Cache().Read()->temporary_files, 0u);
  Cache().Store(KeyOf(0), "small");
  EXPECT_EQ(Cache().Find(KeyOf(0)), "small");
}

TEST_F(CacheProcesses, AFullDiskIsOneWarning) {
  std::filesystem::create_directory(Path());
  const int status = ExitStatus(Start([this] {
    SpeakIntoFile();
    // A file system of 64 KiB that only this process sees.
    if (!MayMount() || mount("quern", Path().c_str(), "tmpfs", 0, "size=65536,mode=700") != 0) return kSkipped;
    DiskCache cache = Cache();
    cache.Store(KeyOf(0), ObjectOf(0, 5000));
    for (uint64_t i = 1; i < 20; ++i) cache.Store(KeyOf(i), ObjectOf(i, 30'000));
    if (cache.Find(KeyOf(0)) != ObjectOf(0, 5000)) return 1;
    const auto content = cache.Read();
    if (!content.ok() || content->temporary_files != 0 || content->kernels.size() < 2) return 2;
    for (const StoredKernel& kernel : content->kernels) {
      if (!kernel.problem.empty()) return 3;
    }
    if (!cache.Clear().ok()) return 4;
    cache.Store(KeyOf(30), ObjectOf(30, 30'000));
    return cache.Find(KeyOf(30)) == ObjectOf(30, 30'000) ? 0 : 5;
  }));
  if (status == kSkipped) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Said(), "kernels are not kept on disk: cannot write to kernel cache: " + Path() +
                        " (No space left on device); accepted: a folder that takes new files\n");
}

// A write beyond the limit would end the process with a signal.
TEST_F(CacheProcesses, ALimitOfFilesIsKept) {
  const int status = ExitStatus(Start([this] {
    SpeakIntoFile();
    const struct rlimit limit = {10'000, 10'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    Cache().Store(KeyOf(1), ObjectOf(1, 20'000));
    Cache().Store(KeyOf(2), ObjectOf(2, 5'000));
    return Names().size() == 1 && Cache().Find(KeyOf(2)).has_value() ? 0 : 2;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Said(), "kernels are not kept on disk: cannot write to kernel cache: " + Path() +
                        " (File too large); accepted: a folder that takes new files\n");
}

// Permissions do not restrict root, so the child becomes another user.
TEST_F(CacheProcesses, AReadOnlyFolderIsRead) {
  constexpr uid_t kNobody = 65534;
  const bool is_root = geteuid() == 0;
  Cache().Store(KeyOf(1), "object");
  if (is_root) {
    for (const std::string& path : {top, Path(), FileOf(KeyOf(1))}) ASSERT_EQ(chown(path.c_str(), kNobody, kNobody), 0);
  }
  ASSERT_EQ(chmod(FileOf(KeyOf(1)).c_str(), 0400), 0);
  ASSERT_EQ(chmod(Path().c_str(), 0500), 0);
  const int status = ExitStatus(Start([&] {
    SpeakIntoFile();
    if (is_root && (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) return kSkipped;
    DiskCache cache = Cache();
    if (cache.Find(KeyOf(1)) != "object") return 1;
    cache.Store(KeyOf(2), "object");
    cache.Store(KeyOf(1), "other");
    if (cache.Find(KeyOf(1)) != "object" || cache.Find(KeyOf(2)).has_value()) return 2;
    DiskCache below({DiskCacheMode::kReadWrite, Path() + "/new"});
    below.Store(KeyOf(1), "object");
    return below.Find(KeyOf(1)).has_value() ? 3 : 0;
  }));
  ASSERT_EQ(chmod(Path().c_str(), 0700), 0);
  if (status == kSkipped) GTEST_SKIP() << "this root may not be somebody else";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Said(), "kernels are not kept on disk: cannot write to kernel cache: " + Path() +
                        " (Permission denied); accepted: a folder that takes new files\n"
                        "kernels are not kept on disk: cannot make kernel cache: " +
                        Path() + "/new (Permission denied); accepted: a folder that takes new files\n");
}

}  // namespace
}  // namespace quern
