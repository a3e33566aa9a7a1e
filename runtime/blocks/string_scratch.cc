// SPDX-License-Identifier: Apache-2.0
#include "runtime/blocks/string_scratch.h"

#include <algorithm>
#include <new>

#include "runtime/base/refused_calls.h"

namespace quern {
namespace {

constexpr uint64_t kBufferBytes = uint64_t{64} << 10;

thread_local StringScratch* current = nullptr;

}  // namespace

StringScratch::Use::Use(StringScratch* scratch) : before_(std::exchange(current, scratch)) {
  if (scratch->buffers_.size() > 1) scratch->buffers_.resize(1);
  if (!scratch->buffers_.empty() && scratch->buffers_[0].bytes() > kBufferBytes) scratch->buffers_.clear();
  scratch->used_bytes_ = 0;
  scratch->is_too_large_ = false;
}
StringScratch::Use::~Use() { current = before_; }

uint8_t* StringScratch::New(uint64_t bytes) {
  if (buffers_.empty() || buffers_.back().bytes() - used_bytes_ < bytes) {
    absl::StatusOr<HugeBuffer> buffer =
        HugeBuffer::Allocate(budget_, std::max(bytes, kBufferBytes), /*huge_pages=*/false, Contents::kAnything);
    if (!buffer.ok()) return nullptr;
    buffers_.push_back(*std::move(buffer));
    used_bytes_ = 0;
  }
  return buffers_.back().data() + std::exchange(used_bytes_, used_bytes_ + bytes);
}

uint8_t* StringScratch::Allocate(uint64_t bytes) noexcept {
  uint8_t* data = nullptr;
  try {
    data = current->New(bytes);
  } catch (const std::bad_alloc&) {  // of the list of buffers, or of an error's text
  }
  if (data == nullptr) RefusedCalls::Note();
  return data;
}

void StringScratch::NoteTooLarge() noexcept { current->is_too_large_ = true; }

}  // namespace quern
