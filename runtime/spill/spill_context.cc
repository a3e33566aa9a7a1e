// SPDX-License-Identifier: Apache-2.0
// Memory that is set aside, of a limit of 256 MiB:
//
//     job's budget   |######## tables, rows, results ########|== set aside: 32 MiB ==|
//                                                             io_budget takes this first, then what is free on the left
#include "runtime/spill/spill_context.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spill/io_threads.h"

namespace quern {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kAsideShare = 8;  // of the limit
constexpr uint64_t kMinAsideBytes = kMiB, kMaxAsideBytes = 64 * kMiB;
constexpr uint64_t kAsideBytesWithoutLimit = 8 * kMiB;
constexpr uint64_t kMinBlockBytes = 16 << 10;
// The shares of the memory set aside that one writer's partitions take.
constexpr uint64_t kWriterShares = 4;
// How much of it may be written behind, and must be free for that; so that as many sequences can be read at once.
constexpr uint64_t kWriteBehindShare = 8, kFreeShare = 4;
constexpr uint64_t kLeastReaders = 16;
constexpr uint32_t kLeastReadDepth = 2, kMaxThreads = 64;

SpillSettings Complete(SpillSettings settings, uint64_t limit) {
  if (settings.io_bytes == 0) {
    settings.io_bytes =
        limit == 0 ? kAsideBytesWithoutLimit : std::clamp(limit / kAsideShare, kMinAsideBytes, kMaxAsideBytes);
  }
  if (settings.num_partitions == 0) {
    settings.num_partitions = settings.io_bytes >= 16 * kMiB ? 64 : settings.io_bytes >= 3 * kMiB ? 32 : 16;
  }
  settings.num_partitions = std::clamp<uint32_t>(std::bit_ceil(settings.num_partitions), 2, 256);
  if (settings.block_bytes == 0) {
    settings.block_bytes = std::clamp(settings.io_bytes / (kWriterShares * settings.num_partitions), kMinBlockBytes,
                                      std::max(settings.max_block_bytes, kMinBlockBytes));
  }
  // Whoever has chosen the size: the blocks of one writer take no more than a quarter of the limit.
  if (limit != 0) {
    const uint64_t most = std::max(limit / (kWriterShares * settings.num_partitions), kMinBlockBytes);
    settings.block_bytes = std::min(settings.block_bytes, most);
  }
  const auto blocks_in = [&](uint64_t bytes) { return static_cast<uint32_t>(bytes / settings.block_bytes); };
  if (settings.read_depth == 0) settings.read_depth = kLeastReadDepth;
  const uint32_t most_ahead = std::max(blocks_in(settings.io_bytes / kLeastReaders), kLeastReadDepth + 1) - 1;
  settings.read_depth = std::min(settings.read_depth, most_ahead);
  settings.write_depth = std::min(settings.write_depth, blocks_in(settings.io_bytes / kWriteBehindShare));
  settings.num_threads = std::clamp(settings.num_threads, 1u, kMaxThreads);
  return settings;
}

}  // namespace

// What is set aside: bytes that are reserved in the job's budget whether they are used or not.
struct SpillContext::Aside {
  std::shared_ptr<MemoryBudget> budget;
  std::mutex mutex;
  bool is_set = false;
  uint64_t reserved_bytes = 0;  // in the job's budget
  uint64_t used_bytes = 0;      // by readers and writers
  uint64_t least_bytes = 0;     // that stay reserved
  uint64_t overdraft_left = 0;  // that may be reserved beyond the budget's limit
  uint64_t overdrawn_bytes = 0;

  bool Reserve(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (used_bytes + bytes > reserved_bytes) {
      const uint64_t more = used_bytes + bytes - reserved_bytes;
      if (!budget->Reserve(more).ok() && !Overdraw(more)) return false;
      reserved_bytes += more;
    }
    used_bytes += bytes;
    return true;
  }

  // With the mutex: reserves what least_bytes says.
  absl::Status SetAtLeast() {
    if (reserved_bytes < least_bytes) {
      QUERN_RETURN_IF_ERROR(budget->Reserve(least_bytes - reserved_bytes));
      reserved_bytes = least_bytes;
    }
    is_set = true;
    return absl::OkStatus();
  }

  void Release(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    used_bytes -= bytes;
    GiveBackUnused();
  }

  // With the mutex.
  bool Overdraw(uint64_t bytes) {
    if (bytes > overdraft_left) return false;
    budget->Take(bytes);
    overdraft_left -= bytes;
    overdrawn_bytes += bytes;
    return true;
  }

  // With the mutex. What was overdrawn is given back first.
  void GiveBackUnused() {
    const uint64_t kept = std::max(used_bytes, is_set ? least_bytes : 0);
    if (kept >= reserved_bytes) return;
    const uint64_t given_back = std::exchange(reserved_bytes, kept) - kept;
    budget->Release(given_back);
    const uint64_t of_overdraft = std::min(given_back, overdrawn_bytes);
    overdrawn_bytes -= of_overdraft;
    overdraft_left += of_overdraft;
  }
};

SpillContext::SpillContext(std::shared_ptr<SpillStore> store, std::shared_ptr<MemoryBudget> budget,
                           const SpillSettings& settings)
    : SpillContext(nullptr, std::move(store), std::move(budget), settings, 0) {}

SpillContext::SpillContext(const std::shared_ptr<SpillContext>& whole, std::shared_ptr<MemoryBudget> budget,
                           uint64_t share_bytes)
    : SpillContext(whole, whole->store_, std::move(budget), whole->given_, share_bytes) {}

SpillContext::SpillContext(std::shared_ptr<SpillContext> whole, std::shared_ptr<SpillStore> store,
                           std::shared_ptr<MemoryBudget> budget, const SpillSettings& settings, uint64_t share_bytes)
    : whole_(std::move(whole)),
      store_(std::move(store)),
      budget_(std::move(budget)),
      given_(settings),
      share_bytes_(share_bytes),
      settings_(Complete(settings, share_bytes == 0 ? budget_->limit_bytes() : share_bytes)),
      aside_(std::make_shared<Aside>()),
      has_rings_(settings.uses_ring) {
  aside_->budget = budget_;
  aside_->least_bytes = settings_.io_bytes;
  if (budget_->may_take()) aside_->overdraft_left = settings_.overdraft_bytes;
  const MemoryAccount account = {[](void* aside, uint64_t bytes) { return static_cast<Aside*>(aside)->Reserve(bytes); },
                                 [](void* aside, uint64_t bytes) { static_cast<Aside*>(aside)->Release(bytes); },
                                 aside_.get(), budget_.get()};
  // Blocks may outlive the context, and with them this budget: it keeps the account.
  io_budget_ = std::shared_ptr<MemoryBudget>(new MemoryBudget(0, account),
                                             [aside = aside_](const MemoryBudget* io) { delete io; });
}

SpillContext::~SpillContext() {
  io_threads_.reset();
  EndSettingAside();
}

void SpillContext::EndSettingAside() {
  const std::lock_guard<std::mutex> lock(aside_->mutex);
  aside_->is_set = false;
  aside_->GiveBackUnused();
}

absl::Status SpillContext::SetMemoryAside() {
  const std::lock_guard<std::mutex> lock(aside_->mutex);
  if (aside_->is_set) return absl::OkStatus();
  return aside_->SetAtLeast();
}

absl::Status SpillContext::SetMoreAside(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(aside_->mutex);
  const uint64_t before = std::exchange(aside_->least_bytes, std::max(aside_->least_bytes, bytes));
  const absl::Status status = aside_->SetAtLeast();
  if (!status.ok()) aside_->least_bytes = before;
  return status;
}

void SpillContext::SetLessAside() {
  const std::lock_guard<std::mutex> lock(aside_->mutex);
  aside_->least_bytes = settings_.io_bytes;
  aside_->GiveBackUnused();
}

bool SpillContext::HasRoom(uint64_t bytes) const {
  if (!budget_->Reserve(bytes).ok()) return false;
  budget_->Release(bytes);
  return true;
}

bool SpillContext::HasRoomInShare(uint64_t bytes) const {
  const bool is_within = share_bytes_ == 0 || budget_->used_bytes() + bytes <= share_bytes_;
  return is_within && HasRoom(bytes);
}

// Nothing where operators that follow, or a host that counts the bytes, need them.
uint64_t SpillContext::most_kept_bytes() const {
  return budget_->has_host() || is_shared_ || whole_ != nullptr ? 0 : budget_->limit_bytes();
}

uint64_t SpillContext::reader_bytes() const {
  // A compressed block that was asked for has its memory beside that of its rows.
  return settings_.block_bytes * (settings_.read_depth * (settings_.codec == BlockCodec::kNone ? 1 : 2) + 1);
}

uint32_t SpillContext::max_readers() const {
  return static_cast<uint32_t>(std::clamp<uint64_t>(settings_.io_bytes / reader_bytes(), 2, 1024));
}

bool SpillContext::BeginWrite() {
  if (num_writes_.fetch_add(1, std::memory_order_relaxed) < settings_.write_depth) return true;
  EndWrite();
  return false;
}

bool SpillContext::HasIoRoom() const {
  const std::lock_guard<std::mutex> lock(aside_->mutex);
  return aside_->used_bytes + settings_.io_bytes / kFreeShare <= settings_.io_bytes;
}

SpillStats SpillContext::stats() const {
  return {written_bytes_, read_bytes_,   row_bytes_, written_blocks_,
          read_blocks_,   written_rows_, max_level_, late_blocks_};
}

void SpillContext::CountWritten(uint64_t bytes, uint64_t row_bytes, uint64_t rows) {
  if (whole_ != nullptr) return whole_->CountWritten(bytes, row_bytes, rows);
  row_bytes_.fetch_add(row_bytes, std::memory_order_relaxed);
  written_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  written_rows_.fetch_add(rows, std::memory_order_relaxed);
  written_blocks_.fetch_add(1, std::memory_order_relaxed);
}

void SpillContext::CountRead(uint64_t bytes) {
  if (whole_ != nullptr) return whole_->CountRead(bytes);
  read_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  read_blocks_.fetch_add(1, std::memory_order_relaxed);
}

void SpillContext::CountLate() {
  if (whole_ != nullptr) return whole_->CountLate();
  late_blocks_.fetch_add(1, std::memory_order_relaxed);
}

void SpillContext::CountLevel(uint64_t level) {
  if (whole_ != nullptr) return whole_->CountLevel(level);
  uint64_t most = max_level_.load(std::memory_order_relaxed);
  while (most < level && !max_level_.compare_exchange_weak(most, level, std::memory_order_relaxed)) {
  }
}

std::unique_ptr<ReadRing> SpillContext::TakeRing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!has_rings_) return nullptr;
  if (!rings_.empty()) {
    std::unique_ptr<ReadRing> ring = std::move(rings_.back());
    rings_.pop_back();
    return ring;
  }
  std::unique_ptr<ReadRing> ring = store_->NewRing(settings_.read_depth);
  // Refused once, refused always: readers need not ask again.
  has_rings_ = ring != nullptr;
  return ring;
}

void SpillContext::GiveBack(std::unique_ptr<ReadRing> ring) {
  if (ring == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  rings_.push_back(std::move(ring));
}

IoThreads* SpillContext::io_threads() {
  if (whole_ != nullptr) return whole_->io_threads();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!tried_threads_) {
    tried_threads_ = true;
    io_threads_ = IoThreads::Start(settings_.num_threads);
  }
  return io_threads_.get();
}

}  // namespace quern
