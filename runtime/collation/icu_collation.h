// SPDX-License-Identifier: Apache-2.0
// Collations of ICU, by BCP 47 tag: "icu:de-u-co-phonebk". Opened once, for as long as the process lives. Without ICU
// in the build every tag is an error and the rest of this file does nothing.
#ifndef QUERN_RUNTIME_COLLATION_ICU_COLLATION_H_
#define QUERN_RUNTIME_COLLATION_ICU_COLLATION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/bytes.h"
#include "runtime/collation/collation_id.h"

namespace quern {

constexpr std::string_view kIcuPrefix = "icu:";
constexpr std::string_view kIcuForm = "icu:TAG";  // what messages say is accepted

// Whether this build has ICU, and which version: "72.1"; empty without.
std::string_view IcuVersion();

// The collation of a tag, without the prefix. Tags that mean the same are one collation, whose name has ICU's form of
// the tag.
// *Errors*: InvalidArgument: no ICU; no such tag; two tags whose numbers are the same by chance.
absl::StatusOr<Collation> OpenIcuCollation(std::string_view tag);

// The row of an open one; nullptr for other numbers. *Threads*: any number; takes no lock.
const CollationRow* FindIcuRow(Collation id);

// Appends the sort key: bytes without 0, whose order is the order of strings, and which are equal where strings are.
// Bytes that are no characters count as U+FFFD. `collation` is open.
void AppendIcuKey(Collation collation, blocks::Bytes s, std::string* key);
int CompareIcu(Collation collation, blocks::Bytes a, blocks::Bytes b);

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_ICU_COLLATION_H_
