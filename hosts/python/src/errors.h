// SPDX-License-Identifier: Apache-2.0
// The library's errors as Python's: ValueError for the caller's mistake, MemoryError for the limit, otherwise
// RuntimeError.
#ifndef QUERN_HOSTS_PYTHON_SRC_ERRORS_H_
#define QUERN_HOSTS_PYTHON_SRC_ERRORS_H_

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hosts/c/quern.h"
#include "runtime/base/status.h"

namespace quern::python {

// nanobind makes a MemoryError of every std::bad_alloc, with its text.
class LimitError : public std::bad_alloc {
 public:
  explicit LimitError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// OSError: rows could not be written to files, or did not come back as they were.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The error of further calls on a job that has failed or was cancelled: true, but not the cause, which another thread
// received.
class FollowUpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws the error of a call of the C ABI, unless it is QUERN_OK.
inline void Check(quern_status status, const quern_error& error) {
  if (status == QUERN_OK) return;
  if (status == QUERN_RESOURCE_EXHAUSTED) throw LimitError(error.text);
  if (status == QUERN_IO_ERROR) throw IoError(error.text);
  if (status == QUERN_INVALID_ARGUMENT || status == QUERN_UNIMPLEMENTED) throw std::invalid_argument(error.text);
  if (status == QUERN_CANCELLED || std::string_view(error.text).find(" after a fail") != std::string_view::npos)
    throw FollowUpError(error.text);
  throw std::runtime_error(error.text);
}

inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::string text(status.message());
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos;)
    text.replace(at, 1, "\\0");  // texts of Python end there
  if (absl::IsResourceExhausted(status) || IsMemoryLost(status)) throw LimitError(text);
  if (absl::IsUnavailable(status) || absl::IsDataLoss(status)) throw IoError(text);
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) throw std::invalid_argument(text);
  throw std::runtime_error(text);
}

// The value, unless there is none: then the error is thrown.
template <class T>
T Value(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_ERRORS_H_
