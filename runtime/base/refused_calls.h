// SPDX-License-Identifier: Apache-2.0
// Calls of generated code that were refused memory.
//
// Generated code has no unwind tables, so nothing may be thrown through it. A call that it makes and that runs out of
// memory, such as one that needs ICU's key of a long string, therefore returns a value without meaning and is noted for
// its thread. What runs kernels makes a RefusedCalls first and asks it at the end of a batch or a task:
//
//     Append -> kernel -> quern_rt_hash_utf8 -> bad_alloc, noted -> 0 -> kernel -> Append: OutOfMemory()
//
// Values without meaning are harmless until then: a hash or an outcome of a comparison leads to a wrong tuple, never
// beyond the tuples.
#ifndef QUERN_RUNTIME_BASE_REFUSED_CALLS_H_
#define QUERN_RUNTIME_BASE_REFUSED_CALLS_H_

#include <new>

#include "absl/status/status.h"

namespace quern {

// Asks about the calls of this thread during its own life. Scopes may be nested.
class RefusedCalls {
 public:
  RefusedCalls() noexcept;
  ~RefusedCalls();
  RefusedCalls(const RefusedCalls&) = delete;
  RefusedCalls& operator=(const RefusedCalls&) = delete;

  // OutOfMemory() where a call was refused memory.
  absl::Status status() const noexcept;
  static void Note() noexcept;

 private:
  const bool noted_before_;
};

// The result of `body`, or, where an allocation fails in it, a note and `otherwise`.
template <class Result, class Body>
Result OrNoted(Result otherwise, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    RefusedCalls::Note();
    return otherwise;
  }
}

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_REFUSED_CALLS_H_
