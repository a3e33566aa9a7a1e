// SPDX-License-Identifier: Apache-2.0
// What tells whether a collation still gives the order and the equality that somebody relied on: indexes of a host,
// sorted files, partitions of a table.
#ifndef QUERN_RUNTIME_COLLATION_COLLATION_VERSION_H_
#define QUERN_RUNTIME_COLLATION_COLLATION_VERSION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quern {

// A text that is another one whenever two strings may compare otherwise under the collation, and only rarely besides.
// name: as for CollationNamed. *Cost*: about 0.1 ms for collations with tables of weights. *Threads*: any. *Errors*: as
// CollationNamed.
absl::StatusOr<std::string> CollationVersion(std::string_view name);

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_COLLATION_VERSION_H_
