// SPDX-License-Identifier: Apache-2.0
// Strings are laid one behind the other in buffers, each twice as large as the one before. When the scratch is emptied
// the largest one stays, so that rows of like lengths need no further memory.
#include "runtime/blocks/string_scratch.h"

#include <algorithm>
#include <new>

#include "runtime/base/status.h"
#include "runtime/base/thread_local.h"

namespace quern {
namespace {

constexpr uint64_t kBufferBytes = uint64_t{64} << 10;
constexpr uint64_t kMostKeptBytes = uint64_t{1} << 20;  // between rows

QUERN_THREAD_LOCAL StringScratch* current = nullptr;

}  // namespace

StringScratch::Use::Use(StringScratch* scratch) : scratch_(scratch), before_(std::exchange(current, scratch)) {
  scratch->used_bytes_ = 0;
  scratch->refused_ = absl::OkStatus();
  scratch->is_refused_ = scratch->is_too_large_ = false;
}
StringScratch::Use::~Use() {
  scratch_->Keep(kBufferBytes);
  current = before_;
}

void StringScratch::Keep(uint64_t most_bytes) noexcept {
  if (buffers_.size() > 1) {  // the last one is the largest
    std::swap(buffers_.front(), buffers_.back());
    buffers_.resize(1);
  }
  if (!buffers_.empty() && buffers_[0].bytes() > most_bytes) buffers_.clear();
  used_bytes_ = 0;
}

uint8_t* StringScratch::New(uint64_t bytes) {
  if (buffers_.empty() || buffers_.back().bytes() - used_bytes_ < bytes) {
    const uint64_t twice = buffers_.empty() ? 0 : std::min(2 * buffers_.back().bytes(), kMostKeptBytes);
    absl::StatusOr<HugeBuffer> buffer = HugeBuffer::Allocate(budget_, std::max({bytes, twice, kBufferBytes}),
                                                             /*huge_pages=*/false, Contents::kAnything);
    if (!buffer.ok()) {
      is_refused_ = true;
      if (refused_.ok()) refused_ = buffer.status();
      return nullptr;
    }
    buffers_.push_back(*std::move(buffer));
    used_bytes_ = 0;
  }
  return buffers_.back().data() + std::exchange(used_bytes_, used_bytes_ + bytes);
}

uint8_t* StringScratch::Allocate(uint64_t bytes) noexcept {
  try {
    return current->New(bytes);
  } catch (const std::bad_alloc&) {  // of the list of buffers, or of an error's text
    current->is_refused_ = true;
    return nullptr;
  }
}

void StringScratch::Empty() noexcept { current->Keep(kMostKeptBytes); }

absl::Status StringScratch::status() const {
  if (!is_refused_) return absl::OkStatus();
  return refused_.ok() ? OutOfMemory() : refused_;
}

void StringScratch::NoteTooLarge() noexcept { current->is_too_large_ = true; }

}  // namespace quern
