// SPDX-License-Identifier: Apache-2.0
// The boundary that each function of the C ABI passes through: arguments, structs that carry their size, and errors.
// Internal.
#ifndef QUERN_HOSTS_C_BOUNDARY_H_
#define QUERN_HOSTS_C_BOUNDARY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hosts/c/quern.h"
#include "runtime/base/status.h"

namespace quern::c_abi {

// *Errors*: it is one.
absl::Status MissingArgument(const char* name);

// A caller's enum as the number that it is: C lets any through.
template <class Enum>
uint32_t NumberOf(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(uint32_t));
  uint32_t number = 0;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

// Checks the size that a caller's struct says it has. `rest` is what it has beyond `ours` bytes, those that this
// library knows. *Errors*: InvalidArgument below `least` bytes, or for members that this library does not know and that
// are not zero.
absl::Status CheckStructSize(size_t given, size_t least, size_t ours, const void* rest);

// A caller's struct of options, whose first member is struct_size; null stands for zeros. Members that the caller's
// version does not have are zero. least: its size in version 2.0.
template <class Struct>
absl::StatusOr<Struct> ReadOptions(const Struct* given, size_t least) {
  Struct options = {};
  if (given == nullptr) return options;
  QUERN_RETURN_IF_ERROR(CheckStructSize(given->struct_size, least, sizeof(Struct),
                                        reinterpret_cast<const char*>(given) + sizeof(Struct)));
  std::memcpy(&options, given, std::min(given->struct_size, sizeof(Struct)));
  return options;
}

// Copies as many members of an answer as the caller's struct has room for.
template <class Struct>
void WriteAnswer(Struct answer, Struct* wanted) {
  answer.struct_size = wanted->struct_size;
  std::memcpy(wanted, &answer, std::min(wanted->struct_size, sizeof(Struct)));
}

// Writes a failure's text to `error` (may be null) and returns its code. Never throws.
quern_status Report(const absl::Status& status, quern_error* error) noexcept;
quern_status Report(quern_status status, const char* text, quern_error* error) noexcept;

// Runs the body of a function of the ABI. No exception passes. *Cost*: nothing while nothing is thrown.
template <class Body>
quern_status Boundary(quern_error* error, Body&& body) noexcept {
  try {
    return Report(body(), error);
  } catch (const std::bad_alloc&) {
    return Report(OutOfMemory(), error);
  } catch (const std::exception& thrown) {
    return Report(QUERN_INTERNAL, thrown.what(), error);
  } catch (...) {
    return Report(QUERN_INTERNAL, "unknown exception: not a std::exception; accepted: none", error);
  }
}

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_BOUNDARY_H_
