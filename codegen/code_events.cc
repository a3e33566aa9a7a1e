// SPDX-License-Identifier: Apache-2.0
#include "codegen/code_events.h"

namespace quern {

bool WantsCodeEvents() { return false; }
bool WantsSourceLines() { return false; }
std::shared_ptr<const void> AnnounceCode(const CodeLoaded&) { return nullptr; }

}  // namespace quern
