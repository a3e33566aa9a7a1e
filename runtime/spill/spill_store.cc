// SPDX-License-Identifier: Apache-2.0
// Blocks of a file follow one another; a block that is freed leaves a hole, which takes no space:
//
//     file 0    | block 0 | block 4 | (hole) | block 12 |        place = file + 4 * offset / kAlignment
//     file 1    | block 1 | ..
#include "runtime/spill/spill_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

// Blocks begin at multiples of this, so that the holes of freed ones are whole pages of a file system.
constexpr uint64_t kAlignment = 4096;

// Longer blocks are read by threads, in as many calls as the system makes of them.
constexpr uint64_t kMaxRingBytes = uint64_t{1} << 30;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

uint64_t OffsetOf(const StoredBlock& block, uint64_t num_files) { return block.place / num_files * kAlignment; }

uint64_t BytesOf(std::span<const iovec> pieces) {
  uint64_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

std::string ErrorText(int error) { return std::error_code(error, std::generic_category()).message(); }

class HostStore final : public SpillStore {
 public:
  explicit HostStore(const SpillHost& host) : host_(host) {}

  absl::StatusOr<StoredBlock> Write(std::span<const iovec> pieces) override {
    std::vector<uint8_t> bytes;
    bytes.reserve(BytesOf(pieces));
    for (const iovec& piece : pieces) {
      const auto* const begin = static_cast<const uint8_t*>(piece.iov_base);
      bytes.insert(bytes.end(), begin, begin + piece.iov_len);
    }
    StoredBlock block = {0, bytes.size()};
    if (!Call([&] { return host_.write(host_.host, bytes.data(), bytes.size(), &block.place); }))
      return Failed("write", block);
    return block;
  }

  absl::Status Read(const StoredBlock& block, uint8_t* bytes) override {
    if (!Call([&] { return host_.read(host_.host, block.place, bytes, block.bytes); })) return Failed("read", block);
    return absl::OkStatus();
  }

  void Free(const StoredBlock& block) override {
    Call([&] {
      host_.free(host_.host, block.place, block.bytes);
      return 0;
    });
  }

 private:
  // A host in C++ may throw, which is a failure like any result other than 0.
  template <class F>
  static bool Call(const F& function) {
    try {
      return function() == 0;
    } catch (...) {
      return false;
    }
  }
  static absl::Status Failed(const char* what, const StoredBlock& block) {
    return absl::UnavailableError(std::string("spilled rows: the host's ") + what + " of a block failed: " +
                                  std::to_string(block.bytes) + " bytes; accepted: a store that succeeds");
  }

  const SpillHost host_;
};

}  // namespace

// ---- system calls ---------------------------------------------------------------------------------------------------

int FileCalls::Open(const char* folder) {
  const int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  // File systems without nameless files, such as some network file systems.
  std::string name = std::string(folder) + "/quern-spill-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

ssize_t FileCalls::Write(int file, const iovec* pieces, int num_pieces, off_t offset) {
  return pwritev(file, pieces, num_pieces, offset);
}
ssize_t FileCalls::Read(int file, void* bytes, size_t num_bytes, off_t offset) {
  return pread(file, bytes, num_bytes, offset);
}
int64_t FileCalls::HasRead(void* /*bytes*/, int64_t result) { return result; }
std::unique_ptr<ReadRing> FileCalls::NewRing(uint32_t num_reads) { return ReadRing::Make(num_reads); }
int FileCalls::PunchHole(int file, off_t offset, off_t num_bytes) {
  return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, num_bytes);
}
int FileCalls::Close(int file) { return close(file); }

FileCalls* SystemFileCalls() {
  static FileCalls calls;
  return &calls;
}

// ---- files ----------------------------------------------------------------------------------------------------------

TemporaryFiles::TemporaryFiles(std::string folder, uint64_t max_bytes, FileCalls* calls)
    : folder_(std::move(folder)), max_bytes_(max_bytes), calls_(calls) {}

TemporaryFiles::~TemporaryFiles() {
  for (File& file : files_)
    if (file.descriptor >= 0) calls_->Close(file.descriptor);
}

absl::Status TemporaryFiles::Failed(const char* what, int error) const {
  return absl::UnavailableError(std::string("spilled rows: ") + what + " in " + ShowPath(folder_) + ": " +
                                ErrorText(error) + "; accepted: a folder on a device with free space");
}

absl::StatusOr<int> TemporaryFiles::OpenFile(File* file) {
  if (const int open = file->descriptor.load(std::memory_order_acquire); open >= 0) return open;
  const std::lock_guard<std::mutex> lock(file->mutex);
  if (file->descriptor >= 0) return file->descriptor.load();
  const int opened = calls_->Open(folder_.c_str());
  if (opened < 0) return Failed("no file can be made", errno);
  file->descriptor.store(opened, std::memory_order_release);
  return opened;
}

absl::StatusOr<StoredBlock> TemporaryFiles::Write(std::span<const iovec> pieces) {
  const uint64_t bytes = BytesOf(pieces);
  const uint64_t room = Aligned(bytes);
  if (!Reserve(room)) {
    const uint64_t used = used_bytes_ + room;
    return absl::UnavailableError("spilled rows: more than their limit: " + std::to_string(used) +
                                  " bytes; accepted: up to " + std::to_string(max_bytes_));
  }
  const uint32_t number = next_file_.fetch_add(1, std::memory_order_relaxed) % kNumFiles;
  File& file = files_[number];
  const auto write = [&]() -> absl::StatusOr<StoredBlock> {
    QUERN_ASSIGN_OR_RETURN(const int descriptor, OpenFile(&file));
    const uint64_t offset = file.end.fetch_add(room);
    std::vector<iovec> left(pieces.begin(), pieces.end());
    size_t next = 0;
    uint64_t written = 0;
    while (written < bytes) {
      constexpr size_t kMostPieces = 1024;  // IOV_MAX of Linux
      const auto num_pieces = static_cast<int>(std::min(left.size() - next, kMostPieces));
      const ssize_t n = calls_->Write(descriptor, left.data() + next, num_pieces, static_cast<off_t>(offset + written));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Failed("a write failed", errno);
      if (n == 0) return Failed("a write failed", ENOSPC);
      written += static_cast<uint64_t>(n);
      for (auto done = static_cast<size_t>(n); next < left.size();) {
        iovec& piece = left[next];
        if (done < piece.iov_len) {
          piece.iov_base = static_cast<uint8_t*>(piece.iov_base) + done;
          piece.iov_len -= done;
          break;
        }
        done -= piece.iov_len;
        ++next;
      }
    }
    return StoredBlock{number + kNumFiles * (offset / kAlignment), bytes};
  };
  absl::StatusOr<StoredBlock> block = write();
  if (!block.ok()) used_bytes_.fetch_sub(room);
  return block;
}

absl::Status TemporaryFiles::Read(const StoredBlock& block, uint8_t* bytes) { return ReadFrom(block, 0, bytes); }

// done: bytes that were read before.
absl::Status TemporaryFiles::ReadFrom(const StoredBlock& block, uint64_t done, uint8_t* bytes) {
  const uint64_t offset = OffsetOf(block, kNumFiles);
  while (done < block.bytes) {
    const ssize_t n = calls_->Read(FileOf(block), bytes + done, block.bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed("a read failed", errno);
    if (n == 0) return Failed("a read failed, the file is too short", EIO);
    done += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

std::unique_ptr<ReadRing> TemporaryFiles::NewRing(uint32_t num_reads) { return calls_->NewRing(num_reads); }

bool TemporaryFiles::AskRing(ReadRing* ring, const StoredBlock& block, uint8_t* bytes, RingRead* read) {
  if (block.bytes > kMaxRingBytes) return false;
  return ring->Ask(FileOf(block), bytes, static_cast<uint32_t>(block.bytes),
                   static_cast<off_t>(OffsetOf(block, kNumFiles)), read);
}

// An error may be that of the ring alone: a thread that has asked and ended since takes its reads with it (ECANCELED).
absl::Status TemporaryFiles::EndRead(const StoredBlock& block, uint8_t* bytes, const RingRead& read) {
  const int64_t result = calls_->HasRead(bytes, read.result);
  return ReadFrom(block, static_cast<uint64_t>(std::max<int64_t>(result, 0)), bytes);
}

// A hole takes 30 us, half as much as to write and read a block of 64 KiB: few are punched one by one, and those of a
// small job not at all.
void TemporaryFiles::Free(const StoredBlock& block) {
  const uint64_t begin = OffsetOf(block, kNumFiles), end = begin + Aligned(block.bytes);
  std::vector<Hole> holes;
  {
    const std::lock_guard<std::mutex> lock(holes_mutex_);
    holes_.push_back({static_cast<uint32_t>(block.place % kNumFiles), begin, end});
    hole_bytes_ += end - begin;
    if (hole_bytes_ <= std::max(thresholds::kMostHoleBytes, used_bytes_ - hole_bytes_)) return;
    holes.swap(holes_);
    hole_bytes_ = 0;
  }
  Punch(std::move(holes));
}

// Gives the space of holes back, neighbours together. Where a file system has no holes, it comes back when the files
// are closed.
void TemporaryFiles::Punch(std::vector<Hole> holes) {
  std::sort(holes.begin(), holes.end(),
            [](const Hole& a, const Hole& b) { return a.file != b.file ? a.file < b.file : a.begin < b.begin; });
  for (size_t i = 0; i < holes.size();) {
    Hole hole = holes[i++];
    while (i < holes.size() && holes[i].file == hole.file && holes[i].begin == hole.end) hole.end = holes[i++].end;
    calls_->PunchHole(files_[hole.file].descriptor, static_cast<off_t>(hole.begin),
                      static_cast<off_t>(hole.end - hole.begin));
    used_bytes_.fetch_sub(hole.end - hole.begin);
  }
}

// Counts bytes that are to be written; false beyond the limit.
bool TemporaryFiles::Reserve(uint64_t room) {
  if (used_bytes_.fetch_add(room) + room <= max_bytes_ || max_bytes_ == 0) return true;
  std::vector<Hole> holes;
  {
    const std::lock_guard<std::mutex> lock(holes_mutex_);
    holes.swap(holes_);
    hole_bytes_ = 0;
  }
  Punch(std::move(holes));
  if (used_bytes_ <= max_bytes_) return true;
  used_bytes_.fetch_sub(room);
  return false;
}

std::unique_ptr<SpillStore> MakeHostStore(const SpillHost& host) { return std::make_unique<HostStore>(host); }

}  // namespace quern
