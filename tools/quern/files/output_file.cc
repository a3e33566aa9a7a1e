// SPDX-License-Identifier: Apache-2.0
// Output is written to ".NAME.RANDOM.tmp" in the folder of the result and renamed by rename(2), which POSIX makes
// atomic: a reader of the result sees the old file or all of the new one.
//
//     .sales.csv.3f0c9a12b47d5e86.tmp      locked by its writer, from its creation to the rename
//
// The name is random, not the number of the process: in a container every run may be process 1, and a name that a
// killed run left behind would block all later ones. What is left behind is found by its lock (flock), which the kernel
// releases when the writer dies, however it dies and in whichever PID namespace it lived. A writer removes leftovers of
// its own result before it begins:
//
//     writer A                            writer B, of the same result
//     creates .sales.csv.3f..tmp
//                                         opens it and takes the lock: the owner seems dead
//     fails to lock it: tries a new name  removes it, since the name still has the inode that it locked
//
// On file systems of a network a lock may be unknown to other machines, so nothing is removed there.
#include "tools/quern/files/output_file.h"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <parquet/exception.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/base/write_file.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/write_table.h"

namespace quern::cli {
namespace {

std::string CannotWrite(const std::string& path) { return "cannot write file: " + path; }

// ---- names ----

constexpr size_t kRandomDigits = 16;
constexpr std::string_view kSuffix = ".tmp";

// ".NAME." of the temporaries of one result; long names are cut, so that the whole is one that file systems take.
std::string TemporaryPrefix(const std::filesystem::path& target) {
  constexpr size_t kMaxNameBytes = NAME_MAX - 2 - kRandomDigits - kSuffix.size();
  return "." + target.filename().string().substr(0, kMaxNameBytes) + ".";
}

bool IsTemporaryName(std::string_view name, std::string_view prefix) {
  if (name.size() != prefix.size() + kRandomDigits + kSuffix.size() || name.substr(0, prefix.size()) != prefix)
    return false;
  const std::string_view digits = name.substr(prefix.size(), kRandomDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         name.substr(prefix.size() + kRandomDigits) == kSuffix;
}

// *Errors*: errno is set and the text is empty.
std::string RandomDigits() {
  unsigned char bytes[kRandomDigits / 2];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return "";
  std::string digits;
  for (const unsigned char byte : bytes) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    digits += hex;
  }
  return digits;
}

// A link of somebody else in a folder like /tmp is not followed, as the kernel does not follow it (protected_symlinks).
bool IsTrap(const std::filesystem::path& link) {
  struct stat about, folder;
  const std::string parent = link.parent_path().empty() ? "." : link.parent_path().string();
  if (lstat(link.c_str(), &about) != 0 || stat(parent.c_str(), &folder) != 0) return true;
  const bool is_open_to_all = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return is_open_to_all && about.st_uid != geteuid() && about.st_uid != folder.st_uid;
}

// Where the file is in the end: a link is followed even if what it names does not exist yet.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as many as the kernel follows
  std::filesystem::path target(path);
  for (int links = 0; links <= kMaxLinks; ++links) {
    std::error_code error;
    if (!std::filesystem::is_symlink(target, error)) return target.string();
    if (IsTrap(target)) return WriteError(path, EACCES);
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) return WriteError(path, error.value());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return WriteError(path, ELOOP);
}

// ---- leftovers ----

bool NamesFile(const std::string& path, const struct stat& file) {
  struct stat named;
  return lstat(path.c_str(), &named) == 0 && named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

// File systems of a network, by statfs's numbers: NFS, SMB, CIFS, SMB2, FUSE, 9P, Ceph, AFS, Lustre.
bool IsShared(const std::string& folder) {
  constexpr uint32_t kShared[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42, 0x65735546,
                                  0x01021997, 0x00c36400, 0x5346414f, 0x0bd00bd0};
  struct statfs about;
  return statfs(folder.c_str(), &about) != 0 ||
         std::find(std::begin(kShared), std::end(kShared), static_cast<uint32_t>(about.f_type)) != std::end(kShared);
}

void RemoveIfLeft(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about;
  if (file.get() < 0 || fstat(file.get(), &about) != 0) return;
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid()) return;
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 && NamesFile(path, about)) unlink(path.c_str());
}

void RemoveLeftovers(const std::string& folder, const std::string& prefix) {
  if (IsShared(folder)) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing.get()))
    if (IsTemporaryName(entry->d_name, prefix)) RemoveIfLeft((std::filesystem::path(folder) / entry->d_name).string());
}

// ---- signals ----

// The temporary file's name for the signal handler, which may only touch plain memory; empty: there is none.
char signal_path[PATH_MAX];

extern "C" void RemoveTemporaryAndDie(int signal) {
  if (signal_path[0] != '\0') unlink(signal_path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// A signal that whoever started the process had ignored, as nohup does, stays ignored. A write beyond the limit of file
// sizes is an error like a full disk.
void RemoveOnSignals(const std::string& temporary) {
  std::signal(SIGXFSZ, SIG_IGN);
  if (temporary.size() >= sizeof signal_path) return;
  std::memcpy(signal_path, temporary.c_str(), temporary.size() + 1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGPIPE, SIGALRM}) {
    struct sigaction action;
    const bool is_ignored = sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!is_ignored) std::signal(signal, RemoveTemporaryAndDie);
  }
}

// ---- the temporary ----

struct Temporary {
  std::string path;
  Descriptor file;
};

// On file systems without locks (ENOLCK, EOPNOTSUPP) it is not locked, and nobody can lock it to see whether it is
// left.
absl::StatusOr<Temporary> MakeTemporary(const std::string& path, const std::string& folder, const std::string& prefix,
                                        mode_t mode) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string digits = RandomDigits();
    if (digits.empty()) return WriteError(path, errno);
    const std::string name = (std::filesystem::path(folder) / (prefix + digits + std::string(kSuffix))).string();
    Descriptor file(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (file.get() < 0 && errno == EEXIST) continue;
    if (file.get() < 0) return WriteError(path, errno);
    struct stat about;
    const bool is_taken = flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && fstat(file.get(), &about) == 0 && NamesFile(name, about)) return Temporary{name, std::move(file)};
    unlink(name.c_str());
  }
  return WriteError(path, EEXIST);
}

}  // namespace

absl::Status WriteError(const std::string& path, int number) {
  const char* const accepted = number == ENOSPC || number == EDQUOT ? "a disk with room"
                               : number == EFBIG                    ? "a limit of file sizes that is above it"
                                                                    : "a name in a folder that takes new files";
  return DataError(CannotWrite(path) + "; " + std::strerror(number) + "; accepted: " + accepted);
}

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  struct stat about;
  const bool replaces = stat(target.c_str(), &about) == 0;
  if (replaces && !S_ISREG(about.st_mode)) {
    return DataError(CannotWrite(path) +
                     "; it is there and is no file; accepted: a name in a folder that takes new files");
  }
  const std::string parent = std::filesystem::path(target).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const std::string prefix = TemporaryPrefix(target);
  RemoveLeftovers(folder, prefix);
  const mode_t mode = replaces ? 0600 : 0666;  // the file that is replaced may be for its user only; see Commit
  QUERN_ASSIGN_OR_RETURN(Temporary temporary, MakeTemporary(path, folder, prefix, mode));
  RemoveOnSignals(temporary.path);
  return OutputFile(path, target, std::move(temporary.path), std::move(temporary.file));
}

OutputFile::OutputFile(std::string path, std::string target, std::string temporary, Descriptor file)
    : path_(std::move(path)), target_(std::move(target)), temporary_(std::move(temporary)), file_(std::move(file)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, "")),
      file_(std::move(other.file_)),
      writer_(std::move(other.writer_)) {}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  signal_path[0] = '\0';
}

template <class F>
absl::Status OutputFile::Writing(const F& write) const {
  try {
    const arrow::Status written = write();
    if (const int number = ErrnoOf(written); number != 0) return WriteError(path_, number);
    if (!written.ok()) return FromArrow(written, CannotWrite(path_));
  } catch (const parquet::ParquetException& error) {  // the Parquet library throws some of its errors
    return DataError(CannotWrite(path_) + "; " + error.what());
  }
  return absl::OkStatus();
}

absl::Status OutputFile::WriteTable(const std::shared_ptr<arrow::Table>& table, FileFormat format) {
  return Writing([&] { return WriteTableTo(table, format, file_.get()); });
}

absl::Status OutputFile::BeginTable(const std::shared_ptr<arrow::Schema>& schema, FileFormat format) {
  return Writing([&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(writer_, MakeBatchWriter(schema, format, file_.get()));
    return arrow::Status::OK();
  });
}

absl::Status OutputFile::WriteBatch(const std::shared_ptr<arrow::RecordBatch>& batch) {
  return Writing([&] { return writer_->Write(batch); });
}

absl::Status OutputFile::EndTable() {
  return Writing([&] { return writer_->Close(); });
}

absl::Status OutputFile::WriteText(const std::string& text) {
  const int error = WriteBytes(file_.get(), text);
  return error == 0 ? absl::OkStatus() : WriteError(path_, error);
}

// Rights are never wider than those of the old file: where its group cannot be kept, the group has only the rights that
// everybody has, and where owner or group cannot be kept, the file does not run as them.
absl::Status OutputFile::TakeOverAttributes() {
  struct stat old, made;
  if (stat(target_.c_str(), &old) != 0) return absl::OkStatus();
  if (fstat(file_.get(), &made) != 0) return WriteError(path_, errno);
  mode_t mode = old.st_mode & 07777;
  const bool keeps_group = made.st_gid == old.st_gid || fchown(file_.get(), static_cast<uid_t>(-1), old.st_gid) == 0;
  const bool keeps_user = made.st_uid == old.st_uid || fchown(file_.get(), old.st_uid, static_cast<gid_t>(-1)) == 0;
  if (!keeps_group) mode &= ~static_cast<mode_t>(S_IRWXG) | ((mode & S_IRWXO) << 3);
  if (!keeps_group || !keeps_user) mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
  return fchmod(file_.get(), mode) == 0 ? absl::OkStatus() : WriteError(path_, errno);
}

// Some file systems report only to close(2) that they could not write. The file itself stays open until it has its
// name, for its lock; a copy of the descriptor is closed before, and tells the same.
absl::Status OutputFile::Commit() {
  QUERN_RETURN_IF_ERROR(TakeOverAttributes());
  Descriptor copy(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) return WriteError(path_, errno);
  if (const int error = copy.Close(); error != 0) return WriteError(path_, error);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return WriteError(path_, errno);
  signal_path[0] = '\0';
  temporary_.clear();
  file_.Close();
  return absl::OkStatus();
}

}  // namespace quern::cli
