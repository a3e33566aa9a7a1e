// SPDX-License-Identifier: Apache-2.0
// Shortcuts for absl::Status. Every message reads `<what is wrong>: <the value>; <what is accepted>`.
#ifndef QUERN_RUNTIME_BASE_STATUS_H_
#define QUERN_RUNTIME_BASE_STATUS_H_

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define QUERN_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                        \
    if (absl::Status quern_status_ = (expression); !quern_status_.ok()) return quern_status_; \
  } while (false)

#define QUERN_CONCAT_INNER_(a, b) a##b
#define QUERN_CONCAT_(a, b) QUERN_CONCAT_INNER_(a, b)
#define QUERN_ASSIGN_OR_RETURN(lhs, expression) \
  QUERN_ASSIGN_OR_RETURN_(QUERN_CONCAT_(quern_or_, __LINE__), lhs, expression)
#define QUERN_ASSIGN_OR_RETURN_(temporary, lhs, expression)  \
  auto temporary = (expression);                             \
  if (!temporary.ok()) return std::move(temporary).status(); \
  lhs = std::move(temporary).value()

namespace quern {

inline absl::Status InvalidArgument(const std::string& text) { return absl::InvalidArgumentError(text); }
inline absl::Status Internal(const std::string& text) { return absl::InternalError(text); }

// The status of an allocation that failed, for handlers that must not allocate: it is made when the library is loaded,
// and a copy only counts a reference. *Threads*: any.
const absl::Status& OutOfMemory() noexcept;

// Of an operator that cannot go on because memory was refused in a place where the call cannot be repeated: of code
// Unavailable, unlike ResourceExhausted, after which it can. *Errors* of `refused` are those of an allocation.
absl::Status MemoryLost(const absl::Status& refused);
bool IsMemoryLost(const absl::Status& status);

// Runs `body`, which returns an absl::Status; OutOfMemory() where an allocation fails in it.
template <class Body>
absl::Status WithoutBadAlloc(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// The status that stands for the exception which is being handled: OutOfMemory() for std::bad_alloc, Internal with its
// text for any other. Call it within `catch (...)`.
absl::Status StatusOfException() noexcept;

// A value as messages show it: one line, printable, not too long.
std::string Show(std::string_view value);
// The path of a file or folder: likewise, but whole, since a path without its end leads nowhere.
std::string ShowPath(std::string_view path);

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_STATUS_H_
