// SPDX-License-Identifier: Apache-2.0
// Memory ends when partitions 0 to 3 have so many blocks. What is written is the memory of what comes next:
//
//     partition 0  [full] [full] [full] [open]        partition 0  [full] [full] [full] [full] [open]
//     partition 1  [full] [full] [open]          ->   partition 1  [full] [full] [full] [open]
//     partition 2  [full] [full] [full] [open]        partition 2  [full] [full] [full] [open]
//     partition 3  [full] [full] [open]               partition 3  [open]               written: 2 blocks
//
// So the first partitions stay in memory as a whole, as many as there is room for, and each tuple is copied once,
// whether it stays or is written.
#include "runtime/spill/tuple_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/prefetch_line.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

// Blocks of memory are smaller than those that are written, so that a thread can have one for each partition.
constexpr uint64_t kBlocksOfWritten = 4, kFewestBytes = uint64_t{16} << 10, kMostBytes = uint64_t{64} << 10;
constexpr uint64_t kFewestTuples = 16;
// That go without a block after a refusal, as each refusal costs a microsecond.
constexpr uint32_t kUnaskedTuples = 256;

}  // namespace

// ---- blocks of a partition ------------------------------------------------------------------------------------------

uint64_t PartBlocks::num_tuples() const {
  uint64_t n = 0;
  for (const TupleSpan& span : spans) n += span.num_tuples;
  return n;
}

uint64_t PartBlocks::bytes() const {
  uint64_t n = 0;
  for (const HugeBuffer& block : memory) n += block.bytes();
  return n;
}

void PartBlocks::Take(PartBlocks* other) {
  spans.reserve(spans.size() + other->spans.size());
  memory.reserve(memory.size() + other->memory.size());
  spans.insert(spans.end(), other->spans.begin(), other->spans.end());
  for (HugeBuffer& block : other->memory) memory.push_back(std::move(block));
  other->Clear();
}

void PartBlocks::Clear() {
  spans.clear();
  memory.clear();
}

absl::StatusOr<uint64_t> WriteLastBlocks(uint64_t bytes, uint32_t tuple_bytes, WriteTogether write, PartBlocks* blocks,
                                         std::vector<HugeBuffer>* idle) {
  std::vector<iovec> values;
  uint64_t freed = 0, num_tuples = 0;
  size_t first = blocks->memory.size();
  while (first != 0 && freed < bytes) {
    const TupleSpan& span = blocks->spans[--first];
    freed += blocks->memory[first].bytes();
    if (span.num_tuples == 0) continue;
    values.push_back({span.tuples, span.num_tuples * tuple_bytes});
    num_tuples += span.num_tuples;
  }
  if (idle != nullptr) idle->reserve(idle->size() + blocks->memory.size() - first);
  if (num_tuples != 0) QUERN_RETURN_IF_ERROR(write(BlockPieces(values, tuple_bytes, num_tuples), num_tuples));
  for (size_t b = first; b < blocks->memory.size() && idle != nullptr; ++b) {
    idle->push_back(std::move(blocks->memory[b]));
  }
  blocks->spans.resize(first);
  blocks->memory.resize(first);
  return freed;
}

uint64_t BytesToFree(uint64_t block_bytes) {
  return std::max(block_bytes / thresholds::kFreedBlocksShare, thresholds::kFewestFreedBytes);
}

// ---- blocks of a thread ---------------------------------------------------------------------------------------------

TupleBlocks::TupleBlocks(uint32_t tuple_bytes, uint32_t num_parts, uint32_t shift, uint64_t write_bytes,
                         uint64_t prefetch_bytes, std::shared_ptr<MemoryBudget> budget, BlockSink* sink)
    : tuple_bytes_(tuple_bytes),
      shift_(shift),
      mask_(num_parts - 1),
      block_bytes_(BlockBytes(write_bytes, tuple_bytes)),
      write_bytes_(write_bytes),
      prefetch_bytes_(prefetch_bytes),
      budget_(std::move(budget)),
      sink_(sink),
      open_(num_parts),
      parts_(num_parts) {}

uint64_t TupleBlocks::BlockBytes(uint64_t write_bytes, uint32_t tuple_bytes) {
  const uint64_t bytes = std::clamp(write_bytes / kBlocksOfWritten, kFewestBytes, kMostBytes);
  return std::max(bytes, kFewestTuples * tuple_bytes);
}

// Says how many tuples the block has that is being filled.
void TupleBlocks::CloseSpan(uint64_t part) {
  if (open_[part].next == nullptr) return;
  TupleSpan& span = parts_[part].spans.back();
  span.num_tuples = static_cast<uint64_t>(open_[part].next - span.tuples) / tuple_bytes_;
}

// Takes full blocks out of one partition, as many as are written together: of the last one that has so many, or else of
// the one that has most. False: no block is full.
bool TupleBlocks::TakeFull(uint32_t* part, PartBlocks* full) {
  const size_t many = std::max<uint64_t>(write_bytes_ / block_bytes_, 1);
  uint64_t chosen = 0;
  size_t most = 0;
  for (uint64_t p = parts_.size(); p-- > 0 && most < many;) {
    const size_t num_full = parts_[p].memory.empty() ? 0 : parts_[p].memory.size() - 1;
    if (num_full <= most) continue;
    chosen = p;
    most = num_full;
  }
  if (most == 0) return false;
  PartBlocks& blocks = parts_[chosen];
  most = std::min(most, many);
  full->spans.reserve(most);
  full->memory.reserve(most);
  const size_t first = blocks.memory.size() - 1 - most;  // the block that is being filled stays, as the last one
  for (size_t b = first; b < first + most; ++b) {
    full->spans.push_back(blocks.spans[b]);
    full->memory.push_back(std::move(blocks.memory[b]));
  }
  std::swap(blocks.spans[first], blocks.spans.back());
  std::swap(blocks.memory[first], blocks.memory.back());
  blocks.spans.resize(first + 1);
  blocks.memory.resize(first + 1);
  *part = static_cast<uint32_t>(chosen);
  has_written_ = true;
  return true;
}

absl::StatusOr<uint64_t> TupleBlocks::Write(uint64_t part, uint64_t bytes, PartBlocks* blocks,
                                            std::vector<HugeBuffer>* idle) {
  const auto write = [&](const BlockPieces& block, uint64_t num_tuples) {
    return sink_->WritePart(static_cast<uint32_t>(part), block, num_tuples);
  };
  return WriteLastBlocks(bytes, tuple_bytes_, write, blocks, idle);
}

// Writes full blocks of one partition now. Returns how many bytes that frees; 0: no block is full.
absl::StatusOr<uint64_t> TupleBlocks::WriteFull(std::vector<HugeBuffer>* idle) {
  uint32_t part;
  PartBlocks full;
  if (!TakeFull(&part, &full)) return 0;
  return Write(part, full.bytes(), &full, idle);
}

// The same on another thread, where one is free.
void TupleBlocks::WriteFullBehind() {
  uint32_t part;
  auto full = std::make_shared<PartBlocks>();
  {
    const std::lock_guard<std::mutex> lock(behind_.mutex);
    if (behind_.num_pending != 0 || !TakeFull(&part, full.get())) return;
    behind_.written.reserve(behind_.written.size() + full->memory.size());
    ++behind_.num_pending;
  }
  const auto write = [this, part, full] {
    std::vector<HugeBuffer> idle;
    const absl::Status status = WithoutBadAlloc([&] { return Write(part, full->bytes(), full.get(), &idle).status(); });
    const std::lock_guard<std::mutex> lock(behind_.mutex);
    for (HugeBuffer& block : idle) behind_.written.push_back(std::move(block));  // there is room
    if (behind_.status.ok()) behind_.status = status;
    --behind_.num_pending;
    behind_.changed.notify_all();
  };
  if (!sink_->CallBehind(write)) write();
}

// Adds the memory of blocks that were written behind to idle_. waits: for all of them.
absl::Status TupleBlocks::TakeWritten(bool waits) {
  std::unique_lock<std::mutex> lock(behind_.mutex);
  if (waits) behind_.changed.wait(lock, [this] { return behind_.num_pending == 0; });
  idle_.reserve(idle_.size() + behind_.written.size());
  for (HugeBuffer& block : behind_.written) idle_.push_back(std::move(block));
  behind_.written.clear();
  return behind_.status;
}

TupleBlocks::~TupleBlocks() {
  std::unique_lock<std::mutex> lock(behind_.mutex);
  behind_.changed.wait(lock, [this] { return behind_.num_pending == 0; });
}

// Where memory is refused, a written block's. While one is filled, another thread writes the next ones.
absl::StatusOr<HugeBuffer> TupleBlocks::TakeMemory() {
  if (idle_.empty()) {
    absl::StatusOr<HugeBuffer> memory = HugeBuffer::Allocate(budget_, block_bytes_, false, Contents::kAnything);
    if (memory.ok()) {
      PopulatePages(memory->data(), block_bytes_);
      bytes_ += block_bytes_;
    }
    if (!absl::IsResourceExhausted(memory.status())) return memory;
    QUERN_RETURN_IF_ERROR(TakeWritten(/*waits=*/false));
    if (idle_.empty()) QUERN_RETURN_IF_ERROR(WriteFull(&idle_).status());
    if (idle_.empty()) QUERN_RETURN_IF_ERROR(TakeWritten(/*waits=*/true));
    if (idle_.empty()) return memory;
    WriteFullBehind();
  }
  HugeBuffer memory = std::move(idle_.back());
  idle_.pop_back();
  return memory;
}

// Opens a block of the partition. *Errors*: ResourceExhausted, which changes nothing; others, as of Add.
absl::Status TupleBlocks::OpenBlock(uint64_t part) {
  return WithoutBadAlloc([&]() -> absl::Status {
    PartBlocks& blocks = parts_[part];
    CloseSpan(part);
    ReserveOne(&blocks.spans);
    ReserveOne(&blocks.memory);
    QUERN_ASSIGN_OR_RETURN(HugeBuffer memory, TakeMemory());
    const uint64_t capacity = memory.bytes() / tuple_bytes_;
    blocks.spans.push_back({memory.data(), nullptr, 0, capacity});
    open_[part] = {memory.data(), memory.data() + capacity * tuple_bytes_};
    blocks.memory.push_back(std::move(memory));
    return absl::OkStatus();
  });
}

absl::Status TupleBlocks::Add(uint8_t* const* tuples, const uint64_t* hashes, uint32_t n) {
  uint8_t* homeless[kMaxBatchRows];  // tuples for which there is no memory
  uint32_t num_homeless = 0;
  // Copies, so that the compiler need not assume that stores change them.
  Open* const open = open_.data();
  const uint32_t shift = shift_, mask = mask_;
  const uint64_t prefetch_bytes = prefetch_bytes_;
  const auto add = [&, open, shift, mask, prefetch_bytes]<uint32_t kBytes>() -> absl::Status {
    const uint64_t bytes = kBytes != 0 ? kBytes : tuple_bytes_;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t part = (hashes[i] >> shift) & mask;
      if (__builtin_expect(static_cast<int>(open[part].next == open[part].end), 0)) {
        const bool asks = num_unasked_ == 0;
        const absl::Status opened = asks ? OpenBlock(part) : absl::OkStatus();
        if (!asks || absl::IsResourceExhausted(opened)) {
          num_unasked_ = asks ? kUnaskedTuples : num_unasked_ - 1;
          homeless[num_homeless++] = tuples[i];
          continue;
        }
        QUERN_RETURN_IF_ERROR(opened);
      }
      uint8_t* const to = std::exchange(open[part].next, open[part].next + bytes);
      std::memcpy(to, tuples[i], bytes);
      PrefetchIf(prefetch_bytes, to + prefetch_bytes);
    }
    return absl::OkStatus();
  };
  switch (tuple_bytes_) {
    case 8: QUERN_RETURN_IF_ERROR(add.template operator()<8>()); break;
    case 16: QUERN_RETURN_IF_ERROR(add.template operator()<16>()); break;
    case 24: QUERN_RETURN_IF_ERROR(add.template operator()<24>()); break;
    case 32: QUERN_RETURN_IF_ERROR(add.template operator()<32>()); break;
    case 40: QUERN_RETURN_IF_ERROR(add.template operator()<40>()); break;
    case 64: QUERN_RETURN_IF_ERROR(add.template operator()<64>()); break;
    default: QUERN_RETURN_IF_ERROR(add.template operator()<0>()); break;
  }
  if (num_homeless == 0) return absl::OkStatus();
  has_written_ = true;
  return sink_->WriteTuples(homeless, num_homeless);
}

absl::Status TupleBlocks::Free(uint64_t bytes) {
  uint64_t freed = 0;
  QUERN_RETURN_IF_ERROR(TakeWritten(/*waits=*/true));
  for (; !idle_.empty() && freed < bytes; idle_.pop_back()) freed += block_bytes_;
  while (freed < bytes) {
    QUERN_ASSIGN_OR_RETURN(const uint64_t written, WriteFull(nullptr));
    if (written == 0) break;
    freed += written;
  }
  for (uint64_t p = parts_.size(); p-- > 0;) {
    CloseSpan(p);
    while (freed < bytes && !parts_[p].memory.empty()) {
      has_written_ = true;
      open_[p] = {};
      QUERN_ASSIGN_OR_RETURN(const uint64_t written,
                             Write(p, std::min(bytes - freed, write_bytes_), &parts_[p], nullptr));
      freed += written;
    }
  }
  bytes_ -= std::min(bytes_.load(), freed);
  return absl::OkStatus();
}

uint64_t TupleBlocks::num_tuples() {
  uint64_t n = 0;
  for (uint64_t p = 0; p < parts_.size(); ++p) n += num_tuples_of(p);
  return n;
}

uint64_t TupleBlocks::num_tuples_of(uint64_t part) {
  CloseSpan(part);
  return parts_[part].num_tuples();
}

TupleList* TupleBlocks::mutable_spans(uint64_t part) {
  CloseSpan(part);
  open_[part] = {};
  return &parts_[part].spans;
}

void TupleBlocks::FreePart(uint64_t part) {
  bytes_ -= parts_[part].bytes();
  parts_[part].Clear();
  open_[part] = {};
}

absl::StatusOr<std::vector<PartBlocks>> TupleBlocks::Take() {
  QUERN_RETURN_IF_ERROR(TakeWritten(/*waits=*/true));
  for (uint64_t p = 0; p < parts_.size(); ++p) CloseSpan(p);
  std::vector<PartBlocks> taken(parts_.size());
  taken.swap(parts_);
  std::fill(open_.begin(), open_.end(), Open());
  idle_.clear();
  bytes_ = 0;
  return taken;
}

// ---- blocks that are kept -------------------------------------------------------------------------------------------

KeptBlocks::KeptBlocks(uint32_t num_parts) : parts_(num_parts) {}

absl::StatusOr<uint64_t> KeptBlocks::Keep(TupleBlocks* blocks) {
  QUERN_ASSIGN_OR_RETURN(std::vector<PartBlocks> taken, blocks->Take());
  uint64_t num_tuples = 0;
  for (size_t p = 0; p < taken.size(); ++p) {
    if (taken[p].memory.empty()) continue;
    num_tuples += taken[p].num_tuples();
    const std::lock_guard<std::mutex> lock(parts_[p].mutex);
    if (parts_[p].blocks == nullptr) parts_[p].blocks = std::make_shared<PartBlocks>();
    bytes_ += taken[p].bytes();
    parts_[p].blocks->Take(&taken[p]);
  }
  return num_tuples;
}

absl::StatusOr<uint64_t> KeptBlocks::Free(uint32_t part, uint64_t bytes, uint64_t write_bytes, uint32_t tuple_bytes,
                                          WriteTogether write) {
  uint64_t freed = 0;
  const std::lock_guard<std::mutex> lock(parts_[part].mutex);
  const std::shared_ptr<PartBlocks>& blocks = parts_[part].blocks;
  while (blocks != nullptr && blocks.use_count() == 1 && !blocks->memory.empty() && freed < bytes) {
    const uint64_t some = std::min(bytes - freed, write_bytes);
    QUERN_ASSIGN_OR_RETURN(const uint64_t written, WriteLastBlocks(some, tuple_bytes, write, blocks.get(), nullptr));
    freed += written;
    bytes_ -= written;
  }
  return freed;
}

uint64_t KeptBlocks::num_tuples_of(uint32_t part) const {
  const std::shared_ptr<PartBlocks> blocks = Share(part);
  return blocks == nullptr ? 0 : blocks->num_tuples();
}

std::shared_ptr<PartBlocks> KeptBlocks::Take(uint32_t part) {
  const std::lock_guard<std::mutex> lock(parts_[part].mutex);
  if (parts_[part].blocks != nullptr) bytes_ -= parts_[part].blocks->bytes();
  return std::exchange(parts_[part].blocks, nullptr);
}

std::shared_ptr<PartBlocks> KeptBlocks::Share(uint32_t part) const {
  const std::lock_guard<std::mutex> lock(parts_[part].mutex);
  return parts_[part].blocks;
}

}  // namespace quern
