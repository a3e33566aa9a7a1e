// SPDX-License-Identifier: Apache-2.0
// Hashing, comparing, ordering and matching strings under a collation. All of it is defined by two keys of a string,
// which are derived from one table of weights and hence agree:
//
//     equality key  strings are equal if these bytes are               "Straße", utf8mb4_unicode_ci  ->  "STRASSE"
//     order key     strings are ordered by these bytes; the end is
//                   followed by PadByte(rule) for ever (kPads) or by nothing
//
// Keys are materialised only where necessary. A string of U+0020 to U+007E has an equality key of the same length, with
// its letters as capitals, and an order key of the same length, one byte a character, so that kernels hash, compare and
// encode such strings as they read them. docs/collations.md shows both keys and says which strings each collation
// treats as equal.
//
// Ill-formed UTF-8 has a place in every order: see docs/collations.md. No function reads beyond a string's end.
#ifndef QUERN_RUNTIME_COLLATION_COLLATION_H_
#define QUERN_RUNTIME_COLLATION_COLLATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/bytes.h"
#include "runtime/collation/collation_id.h"

namespace quern {

// The collation with that name: a row of collations.def, or `icu:` and a BCP 47 tag ("icu:de-u-co-phonebk") if the
// library was built with ICU. The first use of a tag opens it for the rest of the process. *Threads*: any. *Errors*:
// InvalidArgument for unknown names, with a list of the known ones; for tags that ICU does not know.
absl::StatusOr<Collation> CollationNamed(std::string_view name);

// All functions below take a rule of RuleOf(collation), and any number of threads may call them. They trim trailing
// spaces themselves.

// The hash of the equality key: its HashBytes, so that a string which is its own equality key has the hash of its
// bytes.
uint64_t HashString(blocks::Bytes s, CollationRule rule, const blocks::HashSecret& secret);
bool EqualStrings(blocks::Bytes a, blocks::Bytes b, CollationRule rule);
// Negative, 0 or positive. *Cost*: for strings of U+0020 to U+007E, a memcmp and a look-up of the two bytes that
// differ.
int CompareStrings(blocks::Bytes a, blocks::Bytes b, CollationRule rule);

// The whole keys, appended to *key.
void AppendEqualityKey(blocks::Bytes s, CollationRule rule, std::string* key);
void AppendOrderKey(blocks::Bytes s, CollationRule rule, std::string* key);

// Bytes from .. from + n - 1 of the order key, followed by PadByte(rule) behind its end. Returns how many bytes the key
// has from `from` on, but at most n + 1, which means that there are more. *Cost*: a look-up for each byte for strings
// of U+0020 to U+007E, else the whole key up to there.
uint32_t OrderKeyBytes(blocks::Bytes s, CollationRule rule, uint32_t from, uint32_t n, uint8_t* out);
uint8_t PadByte(CollationRule rule);

// Whether LIKE matches one character with the other. This is not `=` of them as strings, since nothing expands and
// nothing is ignored (docs/collations.md). Characters are code points; under rule 0 (binary) the caller compares bytes.
bool MatchesCharacter(char32_t a, char32_t b, CollationRule rule);
// A number that is the same for two characters exactly if they match, or 0 if only MatchesCharacter can decide. *Cost*:
// two loads.
uint64_t CharacterClass(char32_t c, CollationRule rule);

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_COLLATION_H_
