// SPDX-License-Identifier: Apache-2.0
// The number of the form in which rows go from one process to another and only make sense there if both agree.
#ifndef QUERN_RUNTIME_BASE_FORMAT_NUMBER_H_
#define QUERN_RUNTIME_BASE_FORMAT_NUMBER_H_

#include <cstdint>

namespace quern {

// Stands for the bytes of saved states, the partition of a key, and the order of sorted runs apart from collations. Of
// two processes with the same number, each can merge what the other wrote. Raise it when one of the three changes:
// CONTRIBUTING.md, "Releases"; test/unit/runtime/aggregate/format_number_test.cc holds it to them.
constexpr uint32_t kFormatNumber = 1;

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_FORMAT_NUMBER_H_
