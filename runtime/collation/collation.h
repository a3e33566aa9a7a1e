// SPDX-License-Identifier: Apache-2.0
// Collations at work: how strings of one are hashed, told equal, ordered and matched. All of it goes through two keys
// of a string, which are made from one table of weights and hence agree:
//
//     equality key  strings are equal where these bytes are            "Straße", utf8mb4_unicode_ci  ->  "STRASSE"
//     order key     strings come in the order of these bytes, behind
//                   whose end comes PadByte(rule) for ever (kPads) or nothing
//
// Keys are never materialised where they need not be: a string of U+0020 to U+007E has an equality key of the same
// length, its letters as capitals, and an order key of the same length, one byte a character, so that kernels hash,
// compare and encode it as it is read. COLLATIONS.md draws both keys and says what each collation equals.
//
// Ill-formed UTF-8 has a place in every order: see COLLATIONS.md. Nothing here reads beyond a string's end.
#ifndef QUERN_RUNTIME_COLLATION_COLLATION_H_
#define QUERN_RUNTIME_COLLATION_COLLATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/bytes.h"
#include "runtime/collation/collation_id.h"

namespace quern {

// The collation of that name: of a row of collations.def, or `icu:` and a BCP 47 tag ("icu:de-u-co-phonebk") where the
// library was built with ICU. The first mention of a tag opens it, for as long as the process lives. *Threads*: any
// number. *Errors*: InvalidArgument for names that are not known, with those that are; for tags that ICU does not know.
absl::StatusOr<Collation> CollationNamed(std::string_view name);

// All functions below take a rule of RuleOf(collation), and any number of threads may call them. Trailing spaces are
// theirs to cut.

// Hash of the equality key: HashBytes of it, so that strings whose equality key is themselves have the hash of their
// bytes.
uint64_t HashString(blocks::Bytes s, CollationRule rule);
bool EqualStrings(blocks::Bytes a, blocks::Bytes b, CollationRule rule);
// Negative, 0 or positive. *Cost*: of strings of U+0020 to U+007E that of a memcmp and a look-up of the two bytes that
// differ.
int CompareStrings(blocks::Bytes a, blocks::Bytes b, CollationRule rule);

// The keys as a whole, appended to *key.
void AppendEqualityKey(blocks::Bytes s, CollationRule rule, std::string* key);
void AppendOrderKey(blocks::Bytes s, CollationRule rule, std::string* key);

// Bytes from .. from + n - 1 of the order key, behind its end PadByte(rule). Answers how many bytes the key has from
// `from` on, but at most n + 1, which says that there are more. *Cost*: a byte a look-up for strings of U+0020 to
// U+007E, else all of the key up to there.
uint32_t OrderKeyBytes(blocks::Bytes s, CollationRule rule, uint32_t from, uint32_t n, uint8_t* out);
uint8_t PadByte(CollationRule rule);

// Whether LIKE takes one character for the other: not what `=` says of them as strings, since nothing expands and
// nothing is ignored (COLLATIONS.md). Characters are code points; under rule 0 (binary) the caller compares bytes.
bool MatchesCharacter(char32_t a, char32_t b, CollationRule rule);
// A number that two characters have in common exactly where one matches the other, or 0, for which MatchesCharacter has
// to be asked.
// *Cost*: two loads.
uint64_t CharacterClass(char32_t c, CollationRule rule);

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_COLLATION_H_
