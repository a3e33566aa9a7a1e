// SPDX-License-Identifier: Apache-2.0
// The format number of states and runs: with Arrow schemas, and of what comes in. Internal.
#ifndef QUERN_HOSTS_C_FORMAT_NUMBER_H_
#define QUERN_HOSTS_C_FORMAT_NUMBER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/abi/arrow_abi.h"

namespace quern::c_abi {

// The metadata of a schema, in the encoding of the Arrow C data interface: "quern.format" and our number.
std::string FormatMetadata();
// *Errors*: InvalidArgument for metadata with another number; `what` is the name in the text. No number is accepted.
absl::Status CheckFormatMetadata(const ArrowSchema& schema, const char* what);
// The same for a number; 0: none.
absl::Status CheckFormatNumber(uint32_t number, const char* what);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_FORMAT_NUMBER_H_
