// SPDX-License-Identifier: Apache-2.0
// What profilers and debuggers learn about a kernel: names, files that must not be trusted, and invalid objects.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "codegen/base/log.h"
#include "codegen/compiler.h"
#include "codegen/listeners/announcement_file.h"
#include "codegen/listeners/code_listener.h"

// The declarations of GDB.
struct DebuggerEntry {
  DebuggerEntry *next, *previous;
  const char* object;
  uint64_t bytes;
};
struct DebuggerList {
  uint32_t version, action;
  DebuggerEntry *relevant, *first;
};
extern "C" DebuggerList __jit_debug_descriptor;

namespace quern {
namespace {

// ---- names ----

TEST(FrameName, IsTheSymbolAndTheSpec) {
  EXPECT_EQ(FrameName("quern_join_check_tags", "join.inner keys=i64"), "quern_join_check_tags [join.inner keys=i64]");
}

TEST(FrameName, IsOneLine) {
  EXPECT_EQ(FrameName("quern_filter_mask", "filter utf8 = 'a\nb\x01\x7f'"),
            "quern_filter_mask [filter utf8 = 'a b  ']");
}

TEST(FrameName, LongSpecsAreCut) {
  std::string spec = "join.inner keys=";
  while (spec.size() < 1000) spec += "i64,";
  const std::string name = FrameName("quern_join_check_tags", spec);
  EXPECT_EQ(name.size(), kMaxFrameNameBytes);
  EXPECT_EQ(name.substr(name.size() - 3), "..]");
}

TEST(FrameName, CharactersStayWhole) {
  for (size_t shift = 0; shift < 3; ++shift) {
    std::string spec(shift, 'x');
    while (spec.size() < 1000) spec += "\xe2\x82\xac";
    const std::string name = FrameName("f", spec);
    EXPECT_LE(name.size(), kMaxFrameNameBytes);
    EXPECT_EQ(name.substr(name.size() - 6), "\xe2\x82\xac..]");
  }
}

TEST(FrameName, AtTheLimit) {
  const std::string fits(kMaxFrameNameBytes - 4, 'x');  // "f [" and "]"
  EXPECT_EQ(FrameName("f", fits), "f [" + fits + "]");
  EXPECT_EQ(FrameName("f", fits + "x").size(), kMaxFrameNameBytes);
}

// ---- files ----

class Announcements : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("quern_events." + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    SetLogCallback([this](LogLevel, std::string_view line) { warnings.emplace_back(line); });
  }
  void TearDown() override {
    SetLogCallback(nullptr);
    std::filesystem::remove_all(folder);
  }
  std::string Folder() const { return folder.string(); }
  std::string Path(const std::string& prefix, const std::string& suffix) const {
    return Folder() + "/" + prefix + std::to_string(getpid()) + suffix;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void ExpectOneWarning(const std::string& path, const std::string& problem) const {
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0], "cannot tell profilers of kernels: " + path + ": " + problem +
                               "; accepted: a file of this user's that can be written");
  }

  std::filesystem::path folder;
  std::vector<std::string> warnings;
};

NamedFunction Function(const std::string& name, const std::string& code) {
  NamedFunction function;
  function.name = name;
  function.address = reinterpret_cast<uint64_t>(code.data());
  function.bytes = code.size();
  return function;
}

std::string Line(const NamedFunction& function) {
  std::ostringstream text;
  text << std::hex << function.address << " " << function.bytes << " " << function.name << "\n";
  return text.str();
}

TEST_F(Announcements, PerfMapIsALinePerFunctionAndIsAddedTo) {
  const std::string path = Path("perf-", ".map");
  std::ofstream(path) << "1000 10 another_jit\n";
  const std::string code = "0123456789abcdef";
  const NamedFunction first = Function("f [spec one]", code), second = Function("g [spec one]", code),
                      third = Function("f [spec 2]", code);
  const auto map = MakePerfMap(Folder());
  EXPECT_EQ(map->Announce({}, {first, second}), nullptr);
  map->Announce({}, {third});
  EXPECT_EQ(Read(path), "1000 10 another_jit\n" + Line(first) + Line(second) + Line(third));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Announcements, FilesAreForTheirUserAlone) {
  MakePerfMap(Folder())->Announce({}, {});
  struct stat status;
  ASSERT_EQ(stat(Path("perf-", ".map").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Announcements, ALinkIsNotFollowed) {
  const std::string path = Path("perf-", ".map"), target = Folder() + "/target";
  std::ofstream(target) << "mine";
  std::filesystem::create_symlink(target, path);
  const auto map = MakePerfMap(Folder());
  map->Announce({}, {Function("f", "code")});
  map->Announce({}, {Function("f", "code")});
  EXPECT_EQ(Read(target), "mine");
  ExpectOneWarning(path, std::strerror(ELOOP));
}

TEST_F(Announcements, APipeIsRefused) {
  const std::string path = Path("jit-", ".dump");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  MakeJitDump(Folder())->Announce({}, {Function("f", "code")});
  ExpectOneWarning(path, "not a plain file of this user");
}

TEST_F(Announcements, NoFolder) {
  const auto dump = MakeJitDump(Folder() + "/none");
  EXPECT_EQ(dump->Announce({}, {Function("f", "code")}), nullptr);
  ExpectOneWarning(Folder() + "/none/jit-" + std::to_string(getpid()) + ".dump", std::strerror(ENOENT));
}

TEST_F(Announcements, ALimitOfFileSizesLeavesWholeLines) {
  const auto map = MakePerfMap(Folder());
  const NamedFunction function = Function("f [spec]", "code");
  const std::string line = Line(function), path = Path("perf-", ".map");
  // Limits files of this process to two and a half lines. A write beyond ends a process that does not ignore SIGXFSZ.
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {line.size() * 5 / 2, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 5; ++i) map->Announce({}, {function});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(Read(path), line + line);
  ExpectOneWarning(path, std::strerror(EFBIG));
}

TEST_F(Announcements, AChildHasAFileOfItsOwn) {
  const auto map = MakePerfMap(Folder());
  const NamedFunction function = Function("f [spec]", "code");
  map->Announce({}, {function});
  const pid_t child = fork();
  if (child == 0) {
    map->Announce({}, {function});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(Read(Path("perf-", ".map")), Line(function));
  EXPECT_EQ(Read(Folder() + "/perf-" + std::to_string(child) + ".map"), Line(function));
}

TEST_F(Announcements, AJitDumpBeginsAnew) {
  const std::string path = Path("jit-", ".dump"), code = "the code";
  std::ofstream(path) << std::string(1000, 'x');  // of an earlier process with the same id
  MakeJitDump(Folder())->Announce({}, {Function("f [spec]", code)});
  const std::string dump = Read(path);
  EXPECT_EQ(dump.substr(0, 4), "DTiJ");
  EXPECT_EQ(dump.size(), 40 + 56 + std::strlen("f [spec]") + 1 + code.size());
  EXPECT_EQ(dump.substr(dump.size() - code.size()), code);
}

// ---- VTune ----

TEST_F(Announcements, NoCollector) {
  EXPECT_EQ(MakeVtune("/none.so")->Announce({}, {}), nullptr);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            "cannot tell VTune of kernels: cannot load /none.so; accepted: INTEL_JIT_PROFILER64 as vtune sets it");
}

// ---- objects ----

// An ELF file with one loaded section, .text, and one that is not loaded, .comment.
std::string SmallObject() {
  const std::string names("\0.text\0.comment\0.shstrtab\0", 26);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  Elf64_Shdr sections[4] = {};
  sections[1].sh_name = 1;
  sections[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  sections[2].sh_name = 7;
  sections[3].sh_name = 16;
  sections[3].sh_offset = sizeof header + sizeof sections;
  sections[3].sh_size = names.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(reinterpret_cast<const char*>(sections), sizeof sections) + names;
}

uint64_t AddressOf(const std::string& object, size_t section) {
  Elf64_Shdr header;
  std::memcpy(&header, object.data() + sizeof(Elf64_Ehdr) + section * sizeof header, sizeof header);
  return header.sh_addr;
}

CodeLoaded Loaded(std::string_view object) {
  CodeLoaded code;
  code.object = object;
  code.sections = {{".text", 0x7f0000001000}, {".comment", 0x7f0000002000}};
  return code;
}

TEST(AddressedObject, LoadedSectionsHaveTheirAddress) {
  const std::string object = SmallObject(), addressed = AddressedObject(Loaded(object));
  ASSERT_EQ(addressed.size(), object.size());
  EXPECT_EQ(AddressOf(addressed, 1), 0x7f0000001000u);
  EXPECT_EQ(AddressOf(addressed, 2), 0u);
}

TEST(AddressedObject, OfWhatIsNoObject) {
  const std::string object = SmallObject();
  for (size_t size = 0; size < object.size(); ++size) {
    const std::string cut = object.substr(0, size);
    const std::string addressed = AddressedObject(Loaded(cut));
    EXPECT_TRUE(addressed.empty() || addressed.size() == size);
    EXPECT_TRUE(ReadSourceLines(Loaded(cut)).empty());
  }
  for (size_t at = 0; at < object.size(); ++at) {
    std::string damaged = object;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    AddressedObject(Loaded(damaged));
    ReadSourceLines(Loaded(damaged));
  }
}

// ---- the debugger's list ----

std::vector<uint64_t> ObjectsOfDebugger() {
  std::vector<uint64_t> sizes;
  for (const DebuggerEntry* entry = __jit_debug_descriptor.first; entry != nullptr; entry = entry->next) {
    EXPECT_TRUE(entry->next == nullptr || entry->next->previous == entry);
    sizes.push_back(entry->bytes);
  }
  return sizes;
}

TEST(GdbRegistration, ObjectsAreListedWhileTheyAreLoaded) {
  const std::string object = SmallObject();
  const auto gdb = MakeGdbRegistration();
  auto first = gdb->Announce(Loaded(object), {}), second = gdb->Announce(Loaded(object + "."), {});
  auto third = gdb->Announce(Loaded(object + ".."), {});
  EXPECT_EQ(gdb->Announce(Loaded("no object"), {}), nullptr);
  EXPECT_EQ(ObjectsOfDebugger(), (std::vector<uint64_t>{object.size() + 2, object.size() + 1, object.size()}));
  second.reset();
  EXPECT_EQ(ObjectsOfDebugger(), (std::vector<uint64_t>{object.size() + 2, object.size()}));
  third.reset();
  EXPECT_EQ(ObjectsOfDebugger(), (std::vector<uint64_t>{object.size()}));
  first.reset();
  EXPECT_TRUE(ObjectsOfDebugger().empty());
}

TEST_F(Announcements, ThreadsAnnounceAtOnce) {
  constexpr size_t kThreads = 4, kRounds = 200;
  const std::string object = SmallObject(), code = "the code of a function";
  const std::unique_ptr<CodeListener> listeners[] = {MakeGdbRegistration(), MakePerfMap(Folder()),
                                                     MakeJitDump(Folder())};
  const NamedFunction function = Function("f [spec]", code);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (size_t round = 0; round < kRounds; ++round) {
        std::vector<std::shared_ptr<const void>> kept;
        for (const auto& listener : listeners) kept.push_back(listener->Announce(Loaded(object), {function}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ObjectsOfDebugger().empty());
  std::string lines;
  for (size_t i = 0; i < kThreads * kRounds; ++i) lines += Line(function);
  EXPECT_EQ(Read(Path("perf-", ".map")), lines);
  const size_t record_bytes = 56 + std::strlen("f [spec]") + 1 + code.size();
  EXPECT_EQ(Read(Path("jit-", ".dump")).size(), 40 + kThreads * kRounds * record_bytes);
  EXPECT_TRUE(warnings.empty());
}

// ---- this process, run with QUERN_JIT_PROFILE=perfmap ----

TEST(PerfMapOfProcess, HasTheEntryPointsOfAKernelUnderItsSpec) {
  const char* profile = std::getenv("QUERN_JIT_PROFILE");
  if (profile == nullptr || std::string(profile) != "perfmap") GTEST_SKIP() << "QUERN_JIT_PROFILE is not perfmap";
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  const auto compiled = CompileText("join.left keys=i64,utf8 build=f64", options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::map<uint64_t, std::string> names;
  std::ifstream map("/tmp/perf-" + std::to_string(getpid()) + ".map");
  for (std::string line; std::getline(map, line);) {
    uint64_t address = 0, bytes = 0;
    std::istringstream fields(line);
    fields >> std::hex >> address >> bytes;
    EXPECT_GT(bytes, 0u) << line;
    names[address] = line.substr(static_cast<size_t>(fields.tellg()) + 1);
  }
  size_t found = 0;
#define QUERN_JOIN_ENTRY(field, result, parameters)                                                   \
  if (compiled->kernel->As<JoinSpec>().entry_points.field != nullptr) {                               \
    EXPECT_EQ(names[reinterpret_cast<uint64_t>(compiled->kernel->As<JoinSpec>().entry_points.field)], \
              "quern_join_" #field " [join.left keys=i64,utf8 build=f64]");                           \
    ++found;                                                                                          \
  }
#include "runtime/abi/join_entry_points.def"
  EXPECT_GE(found, 5u);
  unlink(("/tmp/perf-" + std::to_string(getpid()) + ".map").c_str());
}

}  // namespace
}  // namespace quern
