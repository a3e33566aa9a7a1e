// SPDX-License-Identifier: Apache-2.0
// One flag for each thread. A scope saves and clears it, so that what an earlier job left behind is not taken for a
// failure of this one; at its end the flag is again what it was.
#include "runtime/base/refused_calls.h"

#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thread_local.h"

namespace quern {
namespace {

QUERN_THREAD_LOCAL bool noted = false;

}  // namespace

RefusedCalls::RefusedCalls() noexcept : noted_before_(std::exchange(noted, false)) {}
RefusedCalls::~RefusedCalls() { noted = noted_before_; }
absl::Status RefusedCalls::status() const noexcept { return noted ? OutOfMemory() : absl::OkStatus(); }
void RefusedCalls::Note() noexcept { noted = true; }

}  // namespace quern
