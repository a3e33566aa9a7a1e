// SPDX-License-Identifier: Apache-2.0
// The files of profiles, and the profile that a process uses. A profile's name depends on the machine that it was
// measured on, so that a home directory shared by several machines has one for each:
//
//     $QUERN_PROFILE                             if set, the only path; "off": none
//     ~/.config/quern/znver5-1f0c9a3e.profile    `quern tune` writes it; the name is LLVM's name of the CPU and a hash
//                                                of the CPU's model and cache sizes
//     /etc/quern/znver5-1f0c9a3e.profile
//
// The first path that has a file counts, and is read once in a process, when the first plan is made. A file that cannot
// be used causes one warning, and plans are made without a profile: a profile affects only the time of a job, which may
// run for hours.
//
// The numbers of a profile are checked when they are read and affect nothing but when cache lines are prefetched. So,
// unlike kernels (private_folder.h), a profile may belong to any user: /etc/quern is the administrator's.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/base/private_folder.h"
#include "codegen/base/write_file.h"
#include "codegen/machine/profile.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;  // a hundred thousand entries
constexpr const char* kSystemFolder = "/etc/quern";

std::string ErrorText(int number) { return std::generic_category().message(number); }

absl::Status Failed(const char* what, const std::string& path, const std::string& why, const char* accepted) {
  return absl::FailedPreconditionError(std::string(what) + ": " + ShowPath(path) + " (" + why +
                                       "); accepted: " + accepted);
}

// FNV-1a, for a file's name; it is not a protection.
uint32_t HashOf(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// A hash of what stays the same on one machine. It excludes the number of cores, which differs by container, and the
// microcode.
std::string FileNameOf(const MachineSignature& machine) {
  std::string name = machine.cpu.empty() ? "cpu" : machine.cpu;
  for (char& c : name) {
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
    if (!is_plain) c = '_';
  }
  char hash[16];
  std::snprintf(hash, sizeof hash, "%08x",
                HashOf(machine.cpu_name + "\n" + machine.cpu + "\n" + std::to_string(machine.l2_bytes) + "\n" +
                       std::to_string(machine.l3_bytes)));
  return name + "-" + hash + ".profile";
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  constexpr const char* kAccepted = "a file that quern tune has written";
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 && errno == ENOENT)
    return absl::NotFoundError("no profile: " + ShowPath(path) + "; accepted: " + kAccepted);
  struct stat about;
  if (file.get() < 0 || fstat(file.get(), &about) != 0)
    return Failed("cannot read profile", path, ErrorText(errno), kAccepted);
  if (!S_ISREG(about.st_mode)) return Failed("cannot read profile", path, "not a file", kAccepted);
  if (static_cast<uint64_t>(about.st_size) > kMaxFileBytes)
    return Failed("cannot read profile", path, "more than 16 MiB", kAccepted);
  std::string text(static_cast<size_t>(about.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = read(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed("cannot read profile", path, ErrorText(errno), kAccepted);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

void WarnOf(const absl::Status& status) { WarnOnce("tuning profile is not used: " + std::string(status.message())); }

struct ProfileState {
  ForkSafeMutex mutex;
  bool is_known = false;
  std::shared_ptr<const Profile> profile;
  std::atomic<uint64_t> number = 0;

  static ProfileState& OfProcess() {
    const NoFork no_fork;  // the first call makes it
    static auto* state = new ProfileState;
    return *state;
  }
};

bool IsSame(const std::shared_ptr<const Profile>& a, const std::shared_ptr<const Profile>& b) {
  return a == b || (a != nullptr && b != nullptr && a->Print() == b->Print());
}

}  // namespace

std::string ForeignMachine(const Profile& profile) { return SignatureDifference(HostSignature(), profile.machine); }

std::vector<std::string> ProfilePlaces(const MachineSignature& machine) {
  const VariableRow row = ReadVariable(Variable::kProfile);
  if (row.value == "off") return {};
  if (row.from_environment) return {row.value};
  std::vector<std::string> places;
  const std::string home = UserConfigFolder(), name = FileNameOf(machine);
  if (!home.empty()) places.push_back(home + "/" + name);
  places.push_back(std::string(kSystemFolder) + "/" + name);
  return places;
}

absl::StatusOr<std::string> ProfileHome(const MachineSignature& machine) {
  const VariableRow row = ReadVariable(Variable::kProfile);
  if (row.from_environment && row.value != "off") return row.value;
  const std::string home = UserConfigFolder();
  if (!home.empty()) return home + "/" + FileNameOf(machine);
  return absl::FailedPreconditionError(
      "no folder for profiles: HOME is not set; accepted: QUERN_PROFILE=FILE, or --profile FILE");
}

absl::StatusOr<Profile> ReadProfile(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN(const std::string text, ReadAll(path));
  QUERN_ASSIGN_OR_RETURN(Profile profile, Profile::Parse(text, path));
  profile.path = path;
  return profile;
}

absl::Status WriteProfile(const Profile& profile, const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    return Failed("cannot make folder of profiles", folder.string(), error.message(), "a folder that can be made");
  const std::string temporary = path + "." + std::to_string(getpid()) + ".quern-tmp";
  constexpr mode_t kReadByAll = 0644;
  const int number = ReplaceFile(AT_FDCWD, path, temporary, profile.Print(), kReadByAll);
  if (number == 0) return absl::OkStatus();
  return Failed("cannot write profile", path, ErrorText(number),
                number == EISDIR ? "the name of a file" : "a folder that takes new files");
}

std::shared_ptr<const Profile> FindProfile() {
  const bool is_asked_for = ReadVariable(Variable::kProfile).from_environment;
  for (const std::string& path : ProfilePlaces(HostSignature())) {
    absl::StatusOr<Profile> profile = ReadProfile(path);
    if (absl::IsNotFound(profile.status()) && !is_asked_for) continue;
    const std::string difference = profile.ok() ? ForeignMachine(*profile) : "";
    if (profile.ok() && difference.empty()) return std::make_shared<const Profile>(*std::move(profile));
    WarnOf(profile.ok() ? InvalidArgument("profile of another machine: " + ShowPath(path) + " (" + difference +
                                          "); accepted: one of this machine, which quern tune makes")
                        : profile.status());
    return nullptr;
  }
  return nullptr;
}

std::shared_ptr<const Profile> ProfileOfProcess() {
  ProfileState& state = ProfileState::OfProcess();
  {
    std::lock_guard<ForkSafeMutex> lock(state.mutex);
    if (state.is_known) return state.profile;
  }
  std::shared_ptr<const Profile> found = FindProfile();  // without the lock, since it reads files and warns
  std::lock_guard<ForkSafeMutex> lock(state.mutex);
  if (!state.is_known) state.profile = std::move(found);
  state.is_known = true;
  return state.profile;
}

void SetProfileOfProcess(std::shared_ptr<const Profile> profile) {
  ProfileState& state = ProfileState::OfProcess();
  std::lock_guard<ForkSafeMutex> lock(state.mutex);
  const bool is_same = state.is_known && IsSame(state.profile, profile);
  state.profile.swap(profile);
  state.is_known = true;
  if (!is_same) state.number.fetch_add(1);
}

uint64_t ProfileNumber() { return ProfileState::OfProcess().number.load(std::memory_order_acquire); }

}  // namespace quern
