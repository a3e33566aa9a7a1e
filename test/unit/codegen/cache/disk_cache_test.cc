// SPDX-License-Identifier: Apache-2.0
// Kernels on disk in one process: what is stored is found, whole and only by its key; a damaged file or an unsafe
// folder is not read.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "test/unit/codegen/cache/cache_folder.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

// Tests of this program count compilations, so none may find a kernel of an earlier run.
[[maybe_unused]] const int kOff = setenv("QUERN_CACHE", "off", 0);

TEST(KernelFile, HoldsKeyAndObject) {
  for (const size_t bytes : {0, 1, 5000}) {
    const std::string object = ObjectOf(bytes, bytes);
    const std::string file = EncodeKernelFile("key", object);
    EXPECT_EQ(file.size(), 64 + 3 + bytes);
    const auto read = DecodeKernelFile(file);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->key, "key");
    EXPECT_EQ(read->object, object);
  }
}

TEST(KernelFile, EveryBitCounts) {
  const std::string file = EncodeKernelFile(KeyOf(1), ObjectOf(1, 100));
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeKernelFile(damaged).ok()) << "bit " << bit;
  }
}

TEST(KernelFile, EveryLengthCounts) {
  const std::string file = EncodeKernelFile(KeyOf(1), ObjectOf(1, 100));
  for (size_t bytes = 0; bytes < file.size(); ++bytes)
    EXPECT_FALSE(DecodeKernelFile(file.substr(0, bytes)).ok()) << bytes;
  EXPECT_FALSE(DecodeKernelFile(file + '\0').ok());
  EXPECT_FALSE(DecodeKernelFile(file + file).ok());
}

TEST(KernelFile, SaysWhatIsWrong) {
  const std::string file = EncodeKernelFile("key", "object");
  EXPECT_EQ(DecodeKernelFile("").status().message(), "not a kernel's file");
  EXPECT_EQ(DecodeKernelFile(std::string(100, 'x')).status().message(), "not a kernel's file");
  EXPECT_EQ(DecodeKernelFile(file.substr(0, 63)).status().message(), "cut short");
  std::string other_version = file;
  other_version[12] = 2;
  EXPECT_EQ(DecodeKernelFile(other_version).status().message(), "of version 2");
  EXPECT_EQ(DecodeKernelFile(file.substr(0, 70)).status().message(), "damaged");
}

TEST_F(CacheFolder, FindsWhatWasStored) {
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(Path())) << "made by a search";
  Cache().Store(KeyOf(1), ObjectOf(1, 3000));
  Cache().Store(KeyOf(2), "");
  EXPECT_EQ(Cache().Find(KeyOf(1)), ObjectOf(1, 3000));
  EXPECT_EQ(Cache().Find(KeyOf(2)), "");
  EXPECT_EQ(Cache().Find(KeyOf(3)), std::nullopt);
  EXPECT_EQ(Names().size(), 2u) << "a temporary file is left";
  EXPECT_TRUE(lines.empty()) << lines[0];
}

TEST_F(CacheFolder, IsForTheUserAlone) {
  const mode_t before = umask(0);
  DiskCache({DiskCacheMode::kReadWrite, Path() + "/a/b"}).Store(KeyOf(1), "object");
  umask(before);
  const std::string file = Path() + "/a/b/" + KernelFileStem(KeyOf(1)) + ".kernel";
  for (const auto& [path, mode] :
       {std::pair(Path(), 0700u), {Path() + "/a", 0700u}, {Path() + "/a/b", 0700u}, {file, 0600u}}) {
    struct stat about = {};
    ASSERT_EQ(stat(path.c_str(), &about), 0) << path;
    EXPECT_EQ(about.st_mode & 07777, mode) << path;
  }
}

// The name of a file only locates it.
TEST_F(CacheFolder, ComparesTheWholeKey) {
  Cache().Store(KeyOf(1), "object of 1");
  std::filesystem::rename(FileOf(KeyOf(1)), FileOf(KeyOf(2)));
  EXPECT_EQ(Cache().Find(KeyOf(2)), std::nullopt);
  EXPECT_EQ(Kernels().at(0).problem, "of another name");
  Cache().Store(KeyOf(2), "object of 2");
  EXPECT_EQ(Cache().Find(KeyOf(2)), "object of 2");
}

TEST_F(CacheFolder, ADamagedFileIsNotReadAndIsReplaced) {
  const std::string object = ObjectOf(7, 2000);
  Cache().Store(KeyOf(7), object);
  const std::string whole = FileContent(FileOf(KeyOf(7)));
  std::mt19937_64 random = test::PrintedRandom();
  const int file = open(FileOf(KeyOf(7)).c_str(), O_WRONLY);  // damaged in place: writing it anew takes milliseconds
  for (size_t at = 0; at < whole.size(); ++at) {
    const char damaged = static_cast<char>(whole[at] ^ (1 << random() % 8));
    ASSERT_EQ(pwrite(file, &damaged, 1, static_cast<off_t>(at)), 1);
    EXPECT_EQ(Cache().Find(KeyOf(7)), std::nullopt) << "byte " << at;
    ASSERT_EQ(pwrite(file, &whole[at], 1, static_cast<off_t>(at)), 1);
  }
  EXPECT_EQ(Cache().Find(KeyOf(7)), object);
  for (size_t bytes = whole.size(); bytes-- > 0;) {
    ASSERT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(Cache().Find(KeyOf(7)), std::nullopt) << bytes << " bytes";
  }
  close(file);
  Cache().Store(KeyOf(7), object);
  EXPECT_EQ(Cache().Find(KeyOf(7)), object);
  EXPECT_TRUE(lines.empty()) << lines[0];
}

TEST_F(CacheFolder, RefusesFilesThatAreNotTheUsersAlone) {
  Cache().Store(KeyOf(1), "object");
  const std::string path = FileOf(KeyOf(1));
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
  }
  EXPECT_EQ(Kernels().at(0).problem, "others can write to it, mode 0666");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(Cache().Find(KeyOf(1)), "object") << "others may read";
  if (chown(path.c_str(), 12345, static_cast<gid_t>(-1)) != 0) GTEST_SKIP() << "only root gives files away";
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
  EXPECT_EQ(Kernels().at(0).problem, "of user 12345");
  Cache().Store(KeyOf(1), "object");
  EXPECT_EQ(Cache().Find(KeyOf(1)), "object") << "not replaced";
}

TEST_F(CacheFolder, RefusesWhatIsNoFile) {
  Cache().Store(KeyOf(1), "object");
  const std::string path = FileOf(KeyOf(1));
  std::filesystem::rename(path, top + "/kept");
  std::filesystem::create_symlink(top + "/kept", path);
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt) << "a link was followed";
  EXPECT_EQ(Kernels().at(0).problem, "a link");
  Cache().Store(KeyOf(1), "new");
  EXPECT_EQ(Cache().Find(KeyOf(1)), "new");
  EXPECT_EQ(DecodeKernelFile(FileContent(top + "/kept"))->object, "object") << "written through a link";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);  // without waiting for a writer
  EXPECT_EQ(Kernels().at(0).problem, "not a file");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
}

TEST_F(CacheFolder, ReadsNoFileThatIsTooLarge) {
  Cache().Store(KeyOf(1), "object");
  ASSERT_EQ(truncate(FileOf(KeyOf(1)).c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
  EXPECT_EQ(Kernels().at(0).problem, "too large");
  Cache().Store(KeyOf(2), std::string(kMaxKernelFileBytes, 'x'));
  EXPECT_FALSE(std::filesystem::exists(FileOf(KeyOf(2))));
}

TEST_F(CacheFolder, AFolderThatOthersCanWriteToIsOneWarning) {
  Cache().Store(KeyOf(1), "object");
  ASSERT_EQ(chmod(Path().c_str(), 0770), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
    Cache().Store(KeyOf(2), "object");
  }
  EXPECT_FALSE(std::filesystem::exists(FileOf(KeyOf(2))));
  const std::string text =
      "kernel cache that others can write to: " + Path() +
      " (mode 0770); accepted: a folder of yours that nobody else can write to, as after chmod go-w " + Path();
  EXPECT_EQ(lines, std::vector<std::string>{"kernels are not kept on disk: " + text});
  EXPECT_EQ(Cache().Read().status(), absl::FailedPreconditionError(text));
  EXPECT_EQ(Cache().Collect(0).status(), absl::FailedPreconditionError(text));
  EXPECT_EQ(Cache().Clear().status(), absl::FailedPreconditionError(text));
  ASSERT_EQ(chmod(Path().c_str(), 0755), 0);
  EXPECT_EQ(Cache().Find(KeyOf(1)), "object");
}

TEST_F(CacheFolder, RefusesAFolderOfAnotherUserAndALink) {
  constexpr char kAccepted[] = "; accepted: a folder of yours that nobody else can write to";
  Cache().Store(KeyOf(1), "object");
  std::filesystem::create_symlink(Path(), top + "/link");
  for (const char* end : {"", "/", "/.", "/./", "//.//."}) {
    DiskCache through_link({DiskCacheMode::kReadWrite, top + "/link" + end});
    EXPECT_EQ(through_link.Find(KeyOf(1)), std::nullopt) << end;
    EXPECT_EQ(through_link.Read().status().message(), "kernel cache is not a folder: " + top + "/link" + kAccepted);
  }
  std::filesystem::create_directory(Path() + "/below");
  DiskCache from_below({DiskCacheMode::kReadWrite, top + "/link/below/.."});
  EXPECT_EQ(from_below.Read().status().message(),
            "kernel cache that is named from below: " + top + "/link/below/.." + kAccepted);
  DiskCache file({DiskCacheMode::kReadWrite, FileOf(KeyOf(1))});
  file.Store(KeyOf(2), "object");
  EXPECT_EQ(file.Read().status().message(), "kernel cache is not a folder: " + FileOf(KeyOf(1)) + kAccepted);
  if (chown(Path().c_str(), 12345, static_cast<gid_t>(-1)) != 0) GTEST_SKIP() << "only root gives folders away";
  EXPECT_EQ(Cache().Find(KeyOf(1)), std::nullopt);
  EXPECT_EQ(Cache().Read().status().message(), "kernel cache of another user: " + Path() + " (user 12345)" + kAccepted);
}

TEST_F(CacheFolder, TheModesReadAndWriteOrNot) {
  Cache(DiskCacheMode::kReadOnly).Store(KeyOf(1), "object");
  Cache(DiskCacheMode::kOff).Store(KeyOf(1), "object");
  EXPECT_FALSE(std::filesystem::exists(Path()));
  Cache().Store(KeyOf(1), "object");
  SetFileTime(FileOf(KeyOf(1)), 7200);
  EXPECT_EQ(Cache(DiskCacheMode::kOff).Find(KeyOf(1)), std::nullopt);
  EXPECT_EQ(Cache(DiskCacheMode::kReadOnly).Find(KeyOf(1)), "object");
  EXPECT_GE(SecondsSinceChange(FileOf(KeyOf(1))), 7200);
  EXPECT_EQ(Cache(DiskCacheMode::kReadWrite).Find(KeyOf(1)), "object");
  EXPECT_LT(SecondsSinceChange(FileOf(KeyOf(1))), 3600);
}

TEST_F(CacheFolder, CollectsTheLeastRecentlyUsed) {
  for (int i = 0; i < 5; ++i) {
    Cache().Store(KeyOf(i), ObjectOf(i, 1000));
    SetFileTime(FileOf(KeyOf(i)), 10000 - 1000 * i);
  }
  const uint64_t bytes = std::filesystem::file_size(FileOf(KeyOf(0)));
  EXPECT_TRUE(Cache().Find(KeyOf(0)).has_value());  // marks it as recently used
  EXPECT_EQ(*Cache().Collect(5 * bytes), 0u);
  EXPECT_EQ(*Cache().Collect(3 * bytes), 2u);
  const std::vector<StoredKernel> kernels = Kernels();
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].description, KeyOf(0));
  EXPECT_EQ(kernels[0].object_bytes, 1000u);
  EXPECT_EQ(kernels[0].file_bytes, bytes);
  EXPECT_EQ(kernels[1].description, KeyOf(4));
  EXPECT_EQ(kernels[2].description, KeyOf(3));
  for (const int gone : {1, 2}) EXPECT_EQ(Cache().Find(KeyOf(gone)), std::nullopt);
  for (const int left : {0, 3, 4}) EXPECT_TRUE(Cache().Find(KeyOf(left)).has_value());
}

TEST_F(CacheFolder, RemovesNothingOfOthersAndTemporaryFilesOfTheDead) {
  Cache().Store(KeyOf(1), "object");
  const std::vector<std::string> foreign = {"notes.txt", "x.kernel", "0123.quern-tmp",
                                            "0123456789abcdef0123456789abcdeX.kernel"};
  for (const std::string& name : foreign) WriteFile(Path() + "/" + name, "text");
  WriteFile(Path() + "/0123456789abcdef.quern-tmp", "part");
  WriteFile(Path() + "/fedcba9876543210.quern-tmp", "part");
  SetFileTime(Path() + "/fedcba9876543210.quern-tmp", 3700);
  EXPECT_EQ(Cache().Read()->temporary_files, 2u);
  EXPECT_EQ(*Cache().Collect(1 << 20), 1u);
  EXPECT_EQ(Cache().Read()->temporary_files, 1u) << "somebody may be writing it";
  EXPECT_EQ(*Cache().Clear(), 2u);
  EXPECT_EQ(Names().size(), foreign.size());
  EXPECT_EQ(*DiskCache({DiskCacheMode::kReadWrite, Path() + "/none"}).Clear(), 0u);
}

TEST_F(CacheFolder, StaysBelowItsLimitByItself) {
  constexpr uint64_t kMaxBytes = 50'000;
  DiskCache cache({DiskCacheMode::kReadWrite, Path(), kMaxBytes});
  for (int i = 0; i < 300; ++i) cache.Store(KeyOf(i), ObjectOf(i, 900));
  uint64_t bytes = 0;
  for (const StoredKernel& kernel : Kernels()) bytes += kernel.file_bytes;
  EXPECT_LE(bytes, kMaxBytes + 64 * 1100);
  EXPECT_GE(bytes, kMaxBytes - 1100);
}

TEST_F(CacheFolder, ManyThreadsShareIt) {
  DiskCache cache({DiskCacheMode::kReadWrite, Path(), 20'000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      for (int i = 0; i < 300; ++i) {
        const uint64_t number = random() % 20;
        EXPECT_EQ(cache.Find(KeyOf(number)).value_or(ObjectOf(number, 1500)), ObjectOf(number, 1500));
        if (i % 3 == 0) cache.Store(KeyOf(number), ObjectOf(number, 1500));
        EXPECT_TRUE(i % 50 != t || cache.Read().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const StoredKernel& kernel : Kernels()) EXPECT_EQ(kernel.problem, "");
  EXPECT_EQ(cache.Read()->temporary_files, 0u);
}

// Sets environment variables; the destructor restores them.
class Variables {
 public:
  explicit Variables(const std::vector<std::pair<const char*, const char*>>& values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name);
      before_.emplace_back(name, before == nullptr ? std::optional<std::string>() : before);
      Set(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) Set(name, value ? value->c_str() : nullptr);
  }

 private:
  static void Set(const std::string& name, const char* value) {
    if (value == nullptr) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value, 1);
    }
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST(DiskCachePlace, IsTheEnvironments) {
  const auto place = [](const char* cache, const char* dir, const char* xdg, const char* home) {
    const Variables set({{"QUERN_CACHE", cache}, {"QUERN_CACHE_DIR", dir}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}});
    const auto place = DiskCachePlaceOfEnvironment();
    if (!place.ok()) return std::string(place.status().message());
    return std::to_string(static_cast<int>(place->mode)) + " " + place->directory;
  };
  EXPECT_EQ(place(nullptr, nullptr, "/x", "/h"), "2 /x/quern");
  EXPECT_EQ(place("rw", nullptr, nullptr, "/h"), "2 /h/.cache/quern");
  EXPECT_EQ(place("ro", nullptr, "x", "/h"), "1 /h/.cache/quern") << "a relative path of XDG is to be ignored";
  EXPECT_EQ(place("ro", "/d//", "/x", "/h"), "1 /d");
  EXPECT_EQ(place("off", "/d", "/x", "/h"), "0 /d");
  EXPECT_EQ(place("rw", "d/e", "/x", "/h"), "2 " + std::filesystem::current_path().string() + "/d/e");
  EXPECT_EQ(place("off", nullptr, nullptr, nullptr), "0 ");
  EXPECT_EQ(place("rw", nullptr, nullptr, nullptr),
            "no folder for kernels: HOME is not set; accepted: QUERN_CACHE_DIR=FOLDER, or QUERN_CACHE=off");
  EXPECT_EQ(place("on", "/d", "/x", "/h"), "bad value of QUERN_CACHE: on; accepted: off, ro or rw");
}

}  // namespace
}  // namespace quern
