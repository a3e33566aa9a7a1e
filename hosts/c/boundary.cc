// SPDX-License-Identifier: Apache-2.0
// Every function of the C ABI has the same form: it checks what a caller can get wrong, then does its work inside
// Boundary, which turns a Status into a code and a text and lets no exception out.
//
// Structs grow at their end. A host that was built with an older header passes a shorter one, whose missing members are
// zero; with a newer header it passes a longer one, which is accepted while the members beyond ours are zero:
//
//     ours            | struct_size | memory_limit | num_runs |
//     an older host's | 16          | 1 GiB        |              num_runs = 0
//     a newer host's  | 32          | 1 GiB        | 0        | 7 |    refused: 7 asks for what is not here
#include "hosts/c/boundary.h"

#include <string>
#include <string_view>

namespace quern::c_abi {
namespace {

quern_status CodeOf(const absl::Status& status) {
  if (IsMemoryLost(status)) return QUERN_RESOURCE_EXHAUSTED;
  switch (status.code()) {
    case absl::StatusCode::kOk: return QUERN_OK;
    // A host's function that is not registered, or is registered already.
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists: return QUERN_INVALID_ARGUMENT;
    case absl::StatusCode::kResourceExhausted: return QUERN_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition: return QUERN_FAILED_PRECONDITION;
    case absl::StatusCode::kOutOfRange: return QUERN_OUT_OF_RANGE;
    case absl::StatusCode::kAborted: return QUERN_ABORTED;
    case absl::StatusCode::kUnimplemented: return QUERN_UNIMPLEMENTED;
    case absl::StatusCode::kCancelled: return QUERN_CANCELLED;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss: return QUERN_IO_ERROR;
    default: return QUERN_INTERNAL;  // not our enum: Abseil may add values
  }
}

// Copies text into an error object as one line, cut where no UTF-8 character is split.
void SetText(std::string_view text, quern_error* error) noexcept {
  size_t length = text.size();
  if (length > sizeof(error->text) - 1) {
    length = sizeof(error->text) - 1;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  }
  for (size_t i = 0; i < length; ++i)
    error->text[i] = text[i] == '\n' || text[i] == '\r' || text[i] == '\0' ? ' ' : text[i];
  error->text[length] = '\0';
}

}  // namespace

absl::Status MissingArgument(const char* name) {
  return InvalidArgument("null argument: " + std::string(name) + "; accepted: a pointer");
}

absl::Status CheckStructSize(size_t given, size_t least, size_t ours, const void* rest) {
  if (given < least) {
    return InvalidArgument("struct_size too small: " + std::to_string(given) + "; accepted: " + std::to_string(least) +
                           " or more");
  }
  const auto* bytes = static_cast<const unsigned char*>(rest);
  for (size_t i = ours; i < given; ++i) {
    if (bytes[i - ours] == 0) continue;
    return InvalidArgument("struct_size too large: " + std::to_string(given) + ", with a member at byte " +
                           std::to_string(i) + " that this library does not know; accepted: " + std::to_string(ours) +
                           ", or zeros beyond it");
  }
  return absl::OkStatus();
}

quern_status Report(quern_status status, const char* text, quern_error* error) noexcept {
  if (error == nullptr) return status;
  error->status = status;
  SetText(text, error);
  return status;
}

quern_status Report(const absl::Status& status, quern_error* error) noexcept {
  if (status.ok()) return QUERN_OK;
  if (error != nullptr) SetText({status.message().data(), status.message().size()}, error);
  const quern_status code = CodeOf(status);
  if (error != nullptr) error->status = code;
  return code;
}

}  // namespace quern::c_abi
