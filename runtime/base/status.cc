// SPDX-License-Identifier: Apache-2.0
// Values in messages. A message is one line of printable ASCII whatever the value was, since it may go to logs and
// terminals: "i6\x015"; a megabyte of nonsense is cut to its first 80 bytes.
//
// A status with a text takes two allocations, so a handler of std::bad_alloc that made one would throw again, and on a
// thread of the library that ends the process. Such handlers return a copy of OutOfMemory().
#include "runtime/base/status.h"

#include <exception>

#include "absl/strings/cord.h"

namespace quern {
namespace {

// Without its text where there is no memory for it: a status that is a code alone allocates nothing. Never destroyed,
// since threads may still run when the process ends.
const absl::Status* MakeOutOfMemory() noexcept {
  alignas(absl::Status) static unsigned char place[sizeof(absl::Status)];
  try {
    return new (place) absl::Status(absl::StatusCode::kResourceExhausted,
                                    "out of memory: an allocation failed; accepted: what the system has free");
  } catch (const std::bad_alloc&) {
    return new (place) absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

constexpr const char* kMemoryLost = "quern/memory_lost";  // the name of a payload

const absl::Status* const kOutOfMemory = MakeOutOfMemory();

}  // namespace

const absl::Status& OutOfMemory() noexcept { return *kOutOfMemory; }

absl::Status MemoryLost(const absl::Status& refused) {
  absl::Status lost = absl::UnavailableError(refused.message());
  lost.SetPayload(kMemoryLost, absl::Cord());
  return lost;
}

bool IsMemoryLost(const absl::Status& status) {
  return absl::IsUnavailable(status) && status.GetPayload(kMemoryLost).has_value();
}

absl::Status StatusOfException() noexcept {
  return WithoutBadAlloc([] {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    } catch (const std::exception& thrown) {
      return Internal(thrown.what());
    } catch (...) {
      return Internal("unknown exception: not a std::exception; accepted: none");
    }
  });
}

std::string Show(std::string_view value) {
  constexpr size_t kMaxShownBytes = 80;
  const std::string shown = ShowPath(value.substr(0, kMaxShownBytes));
  return value.size() > kMaxShownBytes ? shown + ".." : shown;
}

std::string ShowPath(std::string_view path) {
  constexpr char kHex[] = "0123456789abcdef";
  if (path.empty()) return "\"\"";
  std::string shown;
  for (char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) shown += c;
    else shown += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return shown;
}

}  // namespace quern
