// SPDX-License-Identifier: Apache-2.0
// LZ4 finds bytes that repeat, and numbers have few in a row: one below 2^24 has five zeros behind three bytes that
// vary from row to row. So the bytes of values are split first by their places (as Parquet's BYTE_STREAM_SPLIT and
// Blosc's shuffle do it), and the places that do not vary are one long match:
//
//     values   4f 1a 02 00 | 93 77 05 00 | c8 0e 01 00 | ..
//     split    4f 93 c8 .. | 1a 77 0e .. | 02 05 01 .. | 00 00 00 ..
//
// It is faster, too, since matches are long. A compressed block is a sequence of chunks, each of up to 16 KiB of one
// part of a column:
//
//     chunk | num_bytes, compressed_bytes, value_bytes | bytes |      compressed_bytes = num_bytes: as they are
#include "runtime/spill/block_codec.h"

#include <lz4.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/cpu.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint64_t kChunkBytes = 16 << 10;  // two of them on the stack, and in the L1 cache
constexpr uint64_t kLeastBytes = 64;        // that LZ4 is asked about
constexpr int kAcceleration = 4;            // of LZ4: places that vary are left sooner
constexpr uint32_t kWidest = 256;           // values that are split

struct ChunkHead {
  uint32_t num_bytes, compressed_bytes, value_bytes;
};

template <class Word>
inline __attribute__((always_inline)) void SplitAs(const uint8_t* __restrict in, uint64_t n, uint8_t* __restrict out) {
  const auto* const words = reinterpret_cast<const Word*>(in);
  for (uint64_t b = 0; b < sizeof(Word); ++b)
    for (uint64_t i = 0; i < n; ++i) out[b * n + i] = static_cast<uint8_t>(words[i] >> (8 * b));
}

template <class Word>
inline __attribute__((always_inline)) void JoinAs(const uint8_t* __restrict in, uint64_t n, uint8_t* __restrict out) {
  auto* const words = reinterpret_cast<Word*>(out);
  for (uint64_t i = 0; i < n; ++i) {
    Word word = 0;
    for (uint64_t b = 0; b < sizeof(Word); ++b) word |= static_cast<Word>(static_cast<Word>(in[b * n + i]) << (8 * b));
    words[i] = word;
  }
}

// Of n words.
struct WordLoops {
  void (*split4)(const uint8_t* in, uint64_t n, uint8_t* out);
  void (*split8)(const uint8_t* in, uint64_t n, uint8_t* out);
  void (*join4)(const uint8_t* in, uint64_t n, uint8_t* out);
  void (*join8)(const uint8_t* in, uint64_t n, uint8_t* out);
};

#define QUERN_WORD_LOOPS(suffix, target)                                                                     \
  target void Split4##suffix(const uint8_t* in, uint64_t n, uint8_t* out) { SplitAs<uint32_t>(in, n, out); } \
  target void Split8##suffix(const uint8_t* in, uint64_t n, uint8_t* out) { SplitAs<uint64_t>(in, n, out); } \
  target void Join4##suffix(const uint8_t* in, uint64_t n, uint8_t* out) { JoinAs<uint32_t>(in, n, out); }   \
  target void Join8##suffix(const uint8_t* in, uint64_t n, uint8_t* out) { JoinAs<uint64_t>(in, n, out); }   \
  constexpr WordLoops kWordLoops##suffix = {Split4##suffix, Split8##suffix, Join4##suffix, Join8##suffix};

QUERN_WORD_LOOPS(Baseline, )
#if defined(__x86_64__)
QUERN_WORD_LOOPS(Avx2, __attribute__((target("avx2"))))
QUERN_WORD_LOOPS(Avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))
#endif

const WordLoops& LoopsOfMachine() {
#if defined(__x86_64__)
  if (HasAvx512()) return kWordLoopsAvx512;
  if (HasAvx2()) return kWordLoopsAvx2;
#endif
  return kWordLoopsBaseline;
}

// The bytes of a chunk by their place in its values, and back.
class ByteSplitter {
 public:
  static bool Takes(uint32_t value_bytes) {
    return value_bytes == 4 || (value_bytes != 0 && value_bytes % 8 == 0 && value_bytes <= kWidest);
  }

  void Split(const uint8_t* values, uint64_t num_bytes, uint32_t value_bytes, uint8_t* out) {
    if (value_bytes == 4) return loops_.split4(values, num_bytes / 4, out);
    if (value_bytes == 8) return loops_.split8(values, num_bytes / 8, out);
    const uint64_t n = num_bytes / value_bytes, num_words = value_bytes / 8;
    const auto* const from = reinterpret_cast<const uint64_t*>(values);
    for (uint64_t w = 0; w < num_words; ++w) {
      for (uint64_t i = 0; i < n; ++i) words_[i] = from[i * num_words + w];
      loops_.split8(reinterpret_cast<const uint8_t*>(words_), n, out + w * 8 * n);
    }
  }

  void Join(const uint8_t* split, uint64_t num_bytes, uint32_t value_bytes, uint8_t* values) {
    if (value_bytes == 4) return loops_.join4(split, num_bytes / 4, values);
    if (value_bytes == 8) return loops_.join8(split, num_bytes / 8, values);
    const uint64_t n = num_bytes / value_bytes, num_words = value_bytes / 8;
    auto* const to = reinterpret_cast<uint64_t*>(values);
    for (uint64_t w = 0; w < num_words; ++w) {
      loops_.join8(split + w * 8 * n, n, reinterpret_cast<uint8_t*>(words_));
      for (uint64_t i = 0; i < n; ++i) to[i * num_words + w] = words_[i];
    }
  }

 private:
  const WordLoops& loops_ = LoopsOfMachine();
  alignas(64) uint64_t words_[kChunkBytes / 16];  // one of each value of several words
};

// Adds chunks behind one another, up to `most` bytes.
class Compressor {
 public:
  Compressor(uint8_t* to, uint64_t most) : to_(to), most_(most) {}

  // False where there is no room.
  bool Add(const uint8_t* bytes, uint64_t num_bytes, uint32_t value_bytes) {
    if (num_compressed_ + sizeof(ChunkHead) >= most_) return false;
    const uint64_t room = most_ - num_compressed_ - sizeof(ChunkHead);
    ChunkHead head = {static_cast<uint32_t>(num_bytes), static_cast<uint32_t>(num_bytes), value_bytes};
    uint8_t* const to = to_ + num_compressed_ + sizeof(ChunkHead);
    if (const int n = num_bytes < kLeastBytes ? 0 : Compress(bytes, num_bytes, value_bytes, to, room); n > 0) {
      head.compressed_bytes = static_cast<uint32_t>(n);
    } else if (num_bytes <= room) {
      std::memcpy(to, bytes, num_bytes);
    } else {
      return false;
    }
    std::memcpy(to_ + num_compressed_, &head, sizeof(head));
    num_compressed_ += sizeof(head) + head.compressed_bytes;
    return true;
  }
  uint64_t num_compressed() const { return num_compressed_; }

 private:
  int Compress(const uint8_t* bytes, uint64_t num_bytes, uint32_t value_bytes, uint8_t* to, uint64_t room) {
    if (value_bytes != 1) splitter_.Split(bytes, num_bytes, value_bytes, split_);
    const uint8_t* const from = value_bytes == 1 ? bytes : split_;
    return LZ4_compress_fast(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to),
                             static_cast<int>(num_bytes), static_cast<int>(std::min(room, num_bytes - 1)),
                             kAcceleration);
  }

  uint8_t* const to_;
  const uint64_t most_;
  uint64_t num_compressed_ = 0;
  ByteSplitter splitter_;
  alignas(64) uint8_t split_[kChunkBytes];
};

absl::Status OtherBytes(const std::string& found) {
  return absl::DataLossError("spilled rows: a compressed block is not what was written: " + found +
                             "; accepted: the bytes that the store was given");
}

}  // namespace

absl::StatusOr<uint64_t> CompressBlock(const BlockPieces& block, const std::shared_ptr<MemoryBudget>& budget,
                                       OutputBuffer* compressed) {
  const uint64_t most = block.num_bytes() - block.num_bytes() / thresholds::kCompressionShare;
  if (compressed->capacity_bytes() < most) QUERN_RETURN_IF_ERROR(compressed->Allocate(budget, most));
  Compressor compressor(compressed->data(), most);
  for (size_t p = 0; p < block.pieces().size(); ++p) {
    const iovec& piece = block.pieces()[p];
    const uint32_t value_bytes = ByteSplitter::Takes(block.value_bytes()[p]) ? block.value_bytes()[p] : 1;
    const uint64_t chunk_bytes = kChunkBytes / value_bytes * value_bytes;
    for (uint64_t at = 0; at < piece.iov_len; at += chunk_bytes) {
      const uint64_t n = std::min<uint64_t>(chunk_bytes, piece.iov_len - at);
      if (!compressor.Add(static_cast<const uint8_t*>(piece.iov_base) + at, n, value_bytes)) return 0;
    }
  }
  return compressor.num_compressed();
}

absl::Status DecompressBlock(const uint8_t* compressed, uint64_t compressed_bytes, uint8_t* bytes, uint64_t num_bytes) {
  ByteSplitter splitter;
  alignas(64) uint8_t split[kChunkBytes];
  uint64_t at = 0, done = 0;
  while (at < compressed_bytes) {
    ChunkHead head;
    if (compressed_bytes - at < sizeof(head)) return OtherBytes("a chunk of " + std::to_string(compressed_bytes - at));
    std::memcpy(&head, compressed + at, sizeof(head));
    at += sizeof(head);
    const bool is_whole = head.compressed_bytes <= compressed_bytes - at && head.num_bytes <= num_bytes - done &&
                          head.num_bytes <= kChunkBytes && head.compressed_bytes <= head.num_bytes;
    const bool has_values =
        head.value_bytes == 1 || (ByteSplitter::Takes(head.value_bytes) && head.num_bytes % head.value_bytes == 0);
    if (!is_whole || !has_values) return OtherBytes("a chunk of " + std::to_string(head.num_bytes) + " bytes");
    if (head.compressed_bytes == head.num_bytes) {
      std::memcpy(bytes + done, compressed + at, head.num_bytes);
    } else {
      uint8_t* const to = head.value_bytes == 1 ? bytes + done : split;
      const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(compressed + at), reinterpret_cast<char*>(to),
                                        static_cast<int>(head.compressed_bytes), static_cast<int>(head.num_bytes));
      if (n != static_cast<int>(head.num_bytes)) return OtherBytes("LZ4 refuses a chunk");
      if (head.value_bytes != 1) splitter.Join(split, head.num_bytes, head.value_bytes, bytes + done);
    }
    at += head.compressed_bytes;
    done += head.num_bytes;
  }
  if (done != num_bytes)
    return OtherBytes(std::to_string(done) + " bytes where " + std::to_string(num_bytes) + " were");
  return absl::OkStatus();
}

}  // namespace quern
