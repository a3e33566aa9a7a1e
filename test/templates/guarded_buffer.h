// SPDX-License-Identifier: Apache-2.0
// Buffers between inaccessible pages: an access one byte too far, before the beginning or after the end, ends the test
// at once.
#ifndef QUERN_TEST_TEMPLATES_GUARDED_BUFFER_H_
#define QUERN_TEST_TEMPLATES_GUARDED_BUFFER_H_

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace quern::test {

enum class Guard { kBehind, kInFront };  // the end that touches its red zone

// `bytes` zeroed bytes that end at (kBehind) or begin at (kInFront) a red zone of one page. *Ownership*: the destructor
// unmaps them.
class GuardedBuffer {
 public:
  GuardedBuffer(size_t bytes, Guard guard) : bytes_(bytes) {
    const size_t body = (bytes + kPage - 1) / kPage * kPage + kPage;
    mapped_ = body + 2 * kPage;
    mapping_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(mapping_ + kPage, body, PROT_READ | PROT_WRITE);
    data_ = guard == Guard::kInFront ? mapping_ + kPage : mapping_ + kPage + body - bytes;
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept
      : bytes_(other.bytes_), mapped_(other.mapped_), mapping_(other.mapping_), data_(other.data_) {
    other.mapping_ = nullptr;
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapping_, other.mapping_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~GuardedBuffer() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_);
  }

  template <class T>
  static GuardedBuffer Of(const std::vector<T>& values, Guard guard) {
    GuardedBuffer buffer(values.size() * sizeof(T), guard);
    if (!values.empty()) std::memcpy(buffer.data(), values.data(), values.size() * sizeof(T));
    return buffer;
  }

  uint8_t* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t bytes_, mapped_;
  uint8_t* mapping_;
  uint8_t* data_;
};

}  // namespace quern::test

#endif  // QUERN_TEST_TEMPLATES_GUARDED_BUFFER_H_
