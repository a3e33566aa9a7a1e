// SPDX-License-Identifier: Apache-2.0
// Collations of ICU, by BCP 47 tag: "icu:de-u-co-phonebk". They stay open for the rest of the process. In a build
// without ICU every tag is an error and the other functions do nothing.
#ifndef QUERN_RUNTIME_COLLATION_ICU_COLLATION_H_
#define QUERN_RUNTIME_COLLATION_ICU_COLLATION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/bytes.h"
#include "runtime/collation/collation_id.h"

namespace quern {

constexpr std::string_view kIcuPrefix = "icu:";
constexpr std::string_view kIcuForm = "icu:TAG";  // listed as accepted in messages

// The version of ICU in this build: "72.1"; empty without ICU.
std::string_view IcuVersion();

// Makes ICU take its data from where it was built to find them, if it takes them from this folder. Called before any
// other function.
void IgnoreIcuFolder(std::string_view folder);

// The collation of a tag, given without the prefix. Tags with the same meaning are one collation, whose name is ICU's
// form of the tag. *Errors*: InvalidArgument: no ICU; no such tag; two tags with the same number by chance.
absl::StatusOr<Collation> OpenIcuCollation(std::string_view tag);

// The row of an open collation; nullptr for other numbers. *Threads*: any; takes no lock.
const CollationRow* FindIcuRow(Collation id);

// Appends the sort key: bytes other than 0, whose order is the order of strings, and which are equal if strings are.
// Bytes that are no characters count as U+FFFD. `collation` must be open.
void AppendIcuKey(Collation collation, blocks::Bytes s, std::string* key);
int CompareIcu(Collation collation, blocks::Bytes a, blocks::Bytes b);

// The version of the rules and data of an open collation, which ICU changes with them: "153.120.42".
std::string IcuRulesVersion(Collation collation);

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_ICU_COLLATION_H_
