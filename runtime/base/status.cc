// SPDX-License-Identifier: Apache-2.0
// Values in messages. A message is one line of printable ASCII whatever the value was, since it may go to logs and
// terminals: "i6\x015"; a megabyte of nonsense is cut to its first 80 bytes.
#include "runtime/base/status.h"

namespace quern {

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
