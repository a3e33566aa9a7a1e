// SPDX-License-Identifier: Apache-2.0
// The functions that compare, copy and search strings, measured against libc. libc chooses its functions by the machine
// that it finds. Blocks are part of a kernel that is compiled for its machine, so this file is compiled for the machine
// that builds it. The cost of a call is measured in a sequence of calls on 64 places of memory, which the caches hold:
//
//     bytes   equal   memcmp      search   memmem   strstr
//        16    1.1      2.6         3.9     14.2      8.1      ns a call
//
// The two strings of a comparison are equal; the needle of a search stands at the end, behind random letters.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "bench/collation/collation_sections.h"
#include "bench/common/random_bits.h"
#include "bench/common/strings_workload.h"
#include "bench/common/timing.h"
#include "runtime/base/status.h"
#include "runtime/blocks/filter_strings.h"
#include "runtime/collation/collation.h"

namespace quern::bench {
namespace {

constexpr uint32_t kPlaces = 64,
                   kSlack = 192;  // bytes after a place: for wide reads, and so that places have different alignments
constexpr uint64_t kCalls = 1 << 15, kBytes = 1 << 22;  // in one turn, whichever limit is reached first
constexpr std::string_view kNeedle = "pending";
constexpr uint32_t kNeedleRarest[] = {0, 6};
constexpr int kTurns = 25;

// The same text at all places, each terminated by a zero byte that is not part of it.
class Places {
 public:
  explicit Places(const std::string& text)
      : num_bytes_(static_cast<uint32_t>(text.size())),
        stride_(num_bytes_ + kSlack),
        bytes_(uint64_t{kPlaces} * stride_ + kSlack) {
    for (uint32_t i = 0; i < kPlaces; ++i) std::memcpy(At(i), text.data(), text.size());
  }

  uint32_t num_bytes() const { return num_bytes_; }
  // The alignments of consecutive places are in no order.
  uint8_t* At(uint32_t place) { return bytes_.data() + uint64_t{place} * stride_ + place * 37 % 64; }

 private:
  const uint32_t num_bytes_, stride_;
  std::vector<uint8_t> bytes_;
};

std::string RandomLetters(uint32_t num_bytes) {
  std::string text;
  for (uint32_t i = 0; i < num_bytes; ++i) text += static_cast<char>('a' + RandomBits(uint64_t{i} + 1) % 26);
  return text;
}

// Random letters, then the needle, or as much of it as there is room for.
std::string Haystack(uint32_t num_bytes, std::string_view needle) {
  const std::string text = RandomLetters(num_bytes - static_cast<uint32_t>(needle.size()));
  return text + std::string(needle);
}

// Calls the function at each place, with a second place 32 further on. The results are summed, so that no call is
// optimised away, and the compiler does not see the length.
struct Bench {
  explicit Bench(const std::string& text) : a(text), b(text) {}

  template <class Call>
  Timed operator()(const Call& call) {
    return {.run = [this, call] {
      uint32_t n = a.num_bytes();
      const uint64_t calls = std::clamp<uint64_t>(kBytes / (n + 1), kPlaces, kCalls);
      uint64_t total = 0;
      for (uint64_t i = 0; i < calls; ++i) {
        asm volatile("" : "+r"(n));
        total += call(a.At(i % kPlaces), b.At((i + 32) % kPlaces), n);
      }
      asm volatile("" : : "r"(total) : "memory");
      return absl::OkStatus();
    }};
  }

  std::string NsPerCall(const Timed& timed) const {
    const uint64_t calls = std::clamp<uint64_t>(kBytes / (a.num_bytes() + 1), kPlaces, kCalls);
    return Fixed(timed.best_s / static_cast<double>(calls) * 1e9);
  }

  Places a, b;
};

// A part of a LIKE pattern as in a filter's descriptor: its bytes, and masks that fold nothing.
struct Needle {
  explicit Needle(std::string_view text) : bytes(2 * text.size() + kSlack), length(static_cast<uint32_t>(text.size())) {
    std::copy(text.begin(), text.end(), bytes.begin());
  }
  blocks::Part AsPart() const {
    const uint32_t last = length - 1;
    return {{bytes.data(), length}, std::min(kNeedleRarest[0], last), std::min(kNeedleRarest[1], last)};
  }

  std::vector<uint8_t> bytes;
  uint32_t length;
};

absl::Status Differs(const char* what, uint32_t num_bytes) {
  return Internal(std::string(what) + " differs from libc at this number of bytes: " + std::to_string(num_bytes) +
                  "; accepted: none");
}

const uint8_t* PlaceOf(const void* found) { return static_cast<const uint8_t*>(found); }

// Checks all of them against libc, on equal strings and on strings that differ in each byte.
absl::Status Check(uint32_t num_bytes, const Needle& needle) {
  const std::string text =
      Haystack(std::max(num_bytes, needle.length), std::string_view(kNeedle).substr(0, needle.length));
  Places a(text), b(text);
  const uint32_t n = std::min(num_bytes, a.num_bytes());
  uint8_t* right = b.At(5);
  for (uint32_t i = 0; i <= n; ++i) {  // i = n: no byte differs
    if (i < n) right[i] ^= 1;
    if (blocks::EqualBytes(a.At(3), right, n) != (std::memcmp(a.At(3), right, n) == 0)) return Differs("EqualBytes", n);
    const int order = CompareStrings({a.At(3), n}, {right, n}, 0), expected = std::memcmp(a.At(3), right, n);
    if ((order < 0) != (expected < 0) || (order == 0) != (expected == 0)) return Differs("CompareStrings", n);
    if (i < n) right[i] ^= 1;
  }
  std::vector<uint8_t> to(n + kSlack);
  blocks::CopyBytes(to.data(), a.At(3), n);
  if (std::memcmp(to.data(), a.At(3), n) != 0) return Differs("CopyBytes", n);
  const uint8_t* end = a.At(3) + n;
  if (blocks::FindPart(a.At(3), end, needle.AsPart()) !=
      PlaceOf(memmem(a.At(3), n, needle.bytes.data(), needle.length)))
    return Differs("FindPart", n);
  return absl::OkStatus();
}

absl::Status SizeCell(const Settings& settings, uint32_t num_bytes, Section* section) {
  const Needle needle(kNeedle.substr(0, std::clamp<size_t>(num_bytes, 1, kNeedle.size()))), byte("!");
  QUERN_RETURN_IF_ERROR(Check(num_bytes, needle));
  const std::string_view needle_text = std::string_view(kNeedle).substr(0, needle.length);
  Bench text(num_bytes < needle.length ? "" : Haystack(num_bytes, needle_text));
  Bench marked(num_bytes == 0 ? "" : RandomLetters(num_bytes - 1) + "!"), spaces(std::string(num_bytes, ' '));
  const std::string needle_string(needle_text);
  const blocks::Part part = needle.AsPart(), byte_part = byte.AsPart();
  using P = uint8_t*;
  std::vector<Timed> timed = {
      text([](P a, P b, uint32_t n) -> uint64_t { return blocks::EqualBytes(a, b, n); }),
      text([](P a, P b, uint32_t n) -> uint64_t { return std::memcmp(a, b, n) == 0; }),
      text([](P a, P b, uint32_t n) -> uint64_t { return static_cast<uint64_t>(CompareStrings({a, n}, {b, n}, 0)); }),
      text([](P a, P b, uint32_t n) -> uint64_t { return static_cast<uint64_t>(std::memcmp(a, b, n)); }),
      text([](P a, P b, uint32_t n) -> uint64_t {
        blocks::CopyBytes(a, b, n);
        return *a;
      }),
      text([](P a, P b, uint32_t n) -> uint64_t {
        std::memcpy(a, b, n);
        return *a;
      }),
      text([=](P a, P, uint32_t n) { return reinterpret_cast<uint64_t>(blocks::FindPart(a, a + n, part)); }),
      text([=](P a, P, uint32_t n) {
        return reinterpret_cast<uint64_t>(memmem(a, n, needle_text.data(), needle_text.size()));
      }),
      text([&](P a, P, uint32_t) {
        return reinterpret_cast<uint64_t>(std::strstr(reinterpret_cast<const char*>(a), needle_string.c_str()));
      }),
      marked([=](P a, P, uint32_t n) { return reinterpret_cast<uint64_t>(blocks::FindPart(a, a + n, byte_part)); }),
      marked([](P a, P, uint32_t n) { return reinterpret_cast<uint64_t>(std::memchr(a, '!', n)); }),
      text([](P a, P, uint32_t n) -> uint64_t { return blocks::TrimSpaces({a, n}).length; }),
      spaces([](P a, P, uint32_t n) -> uint64_t { return blocks::TrimSpaces({a, n}).length; }),
  };
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(kTurns), &timed));
  std::vector<std::string> row = {Grouped(num_bytes)};
  for (const Timed& each : timed) row.push_back(text.NsPerCall(each));
  section->Row(row);
  return absl::OkStatus();
}

}  // namespace

void AddMemorySection(Cells* cells) {
  const std::string equal = "equal", order = "order", copy = "copy", search = "search of 7 bytes", byte = "of 1 byte",
                    trim = "trim spaces";
  cells->Begin("memory", "how fast are the primitives of blocks, compared with libc? ns a call",
               {{"bytes", 7},
                {"block", 8, equal},
                {"memcmp", 8, equal},
                {"function", 10, order},
                {"memcmp", 8, order},
                {"block", 8, copy},
                {"memcpy", 8, copy},
                {"block", 9, search},
                {"memmem", 9, search},
                {"strstr", 9, search},
                {"block", 8, byte},
                {"memchr", 8, byte},
                {"none", 8, trim},
                {"all", 9, trim}});
  for (const uint32_t num_bytes : {0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096})
    cells->Add(std::to_string(num_bytes), [settings = cells->settings(), num_bytes](Section* section) {
      return SizeCell(settings, num_bytes, section);
    });
}

}  // namespace quern::bench
