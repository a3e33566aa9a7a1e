// SPDX-License-Identifier: Apache-2.0
// Where blocks of spilled rows lie: in nameless files of a folder, or wherever a host keeps them.
#ifndef QUERN_RUNTIME_SPILL_SPILL_STORE_H_
#define QUERN_RUNTIME_SPILL_SPILL_STORE_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spill/read_ring.h"

namespace quern {

// Bytes that were written, as a store knows them.
struct StoredBlock {
  uint64_t place = 0;  // the store's own number
  uint64_t bytes = 0;
};

// *Threads*: any number at once. *Errors*: Unavailable where a device or a host fails, with its reason.
class SpillStore {
 public:
  SpillStore() = default;
  SpillStore(const SpillStore&) = delete;
  SpillStore& operator=(const SpillStore&) = delete;
  virtual ~SpillStore() = default;

  // Writes the pieces one after the other as one block. Nothing remains of a block whose write failed.
  virtual absl::StatusOr<StoredBlock> Write(std::span<const iovec> pieces) = 0;
  // Reads all of a block.
  virtual absl::Status Read(const StoredBlock& block, uint8_t* bytes) = 0;
  // Gives a block's space back; it is read no more.
  virtual void Free(const StoredBlock& block) = 0;

  // For reads that the kernel does meanwhile; null where the store or the kernel has none.
  virtual std::unique_ptr<ReadRing> NewRing(uint32_t /*num_reads*/) { return nullptr; }
  // Asks for a block; false, and nothing is done, where the ring takes no more.
  virtual bool AskRing(ReadRing* /*ring*/, const StoredBlock& /*block*/, uint8_t* /*bytes*/, RingRead* /*read*/) {
    return false;
  }
  // Ends such a read when it is done: reads what the kernel has left out, or failed to read.
  virtual absl::Status EndRead(const StoredBlock& block, uint8_t* bytes, const RingRead& /*read*/) {
    return Read(block, bytes);
  }
};

// The system calls of a store, for tests that let each of them fail in turn. Each returns what the call returns, and
// sets errno.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  // A new file of the folder that has no name there, open for reading and writing.
  virtual int Open(const char* folder);
  virtual ssize_t Write(int file, const iovec* pieces, int num_pieces, off_t offset);
  virtual ssize_t Read(int file, void* bytes, size_t num_bytes, off_t offset);
  // What a ring has read: the result of the read, or another one in a test.
  virtual int64_t HasRead(void* bytes, int64_t result);
  // Null in a test: a kernel that refuses.
  virtual std::unique_ptr<ReadRing> NewRing(uint32_t num_reads);
  virtual int PunchHole(int file, off_t offset, off_t num_bytes);
  virtual int Close(int file);
};

// The calls of the system itself; lives as long as the process.
FileCalls* SystemFileCalls();

// Blocks in nameless files of a folder (O_TMPFILE, or unlinked as soon as they are open), which are made when the first
// block is written. The system removes them however the process ends.
class TemporaryFiles final : public SpillStore {
 public:
  // max_bytes: that all blocks may take at one time; 0: no limit. calls: not owned.
  TemporaryFiles(std::string folder, uint64_t max_bytes, FileCalls* calls = SystemFileCalls());
  ~TemporaryFiles() override;

  // *Errors*: Unavailable for a folder without such files, a full disk, a failed call, and blocks above the limit.
  absl::StatusOr<StoredBlock> Write(std::span<const iovec> pieces) override;
  absl::Status Read(const StoredBlock& block, uint8_t* bytes) override;
  void Free(const StoredBlock& block) override;
  std::unique_ptr<ReadRing> NewRing(uint32_t num_reads) override;
  bool AskRing(ReadRing* ring, const StoredBlock& block, uint8_t* bytes, RingRead* read) override;
  absl::Status EndRead(const StoredBlock& block, uint8_t* bytes, const RingRead& read) override;

 private:
  // A system locks a file while it writes to it, so that threads write to several.
  static constexpr uint32_t kNumFiles = 4;
  struct File {
    std::mutex mutex;  // guards `descriptor` while it is made
    std::atomic<int> descriptor{-1};
    std::atomic<uint64_t> end{0};
  };
  absl::StatusOr<int> OpenFile(File* file);
  absl::Status ReadFrom(const StoredBlock& block, uint64_t done, uint8_t* bytes);
  int FileOf(const StoredBlock& block) const { return files_[block.place % kNumFiles].descriptor; }
  // Bytes of a file that no block has any more.
  struct Hole {
    uint32_t file;
    uint64_t begin, end;
  };
  void Punch(std::vector<Hole> holes);
  bool Reserve(uint64_t room);
  absl::Status Failed(const char* what, int error) const;

  const std::string folder_;
  const uint64_t max_bytes_;
  FileCalls* const calls_;
  std::array<File, kNumFiles> files_;
  std::atomic<uint32_t> next_file_{0};
  std::atomic<uint64_t> used_bytes_{0};  // of blocks and of holes that are not punched yet
  std::mutex holes_mutex_;               // guards what follows
  std::vector<Hole> holes_;
  uint64_t hole_bytes_ = 0;
};

// A host's own store. The functions return 0 for success and are called by any thread.
struct SpillHost {
  int (*write)(void* host, const void* bytes, uint64_t num_bytes, uint64_t* block) = nullptr;
  int (*read)(void* host, uint64_t block, void* bytes, uint64_t num_bytes) = nullptr;
  void (*free)(void* host, uint64_t block, uint64_t num_bytes) = nullptr;
  void* host = nullptr;
};
std::unique_ptr<SpillStore> MakeHostStore(const SpillHost& host);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_SPILL_STORE_H_
