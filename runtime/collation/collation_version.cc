// SPDX-License-Identifier: Apache-2.0
// A collation is code and, for some, a table. The version names both: a number that is raised by hand when the code
// changes which strings are equal or in what order they come, and a digest of the table. Of ICU, the table is what its
// collator says of its own rules and data, as PostgreSQL stores it too:
//
//     binary                    1
//     utf8mb4_unicode_ci        1.d2995676b0c0012d
//     icu:de-u-co-phonebk       1.153.120.42
//
// test/unit/runtime/collation/collation_version_test.cc holds the versions to what the collations answer.
#include "runtime/collation/collation_version.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "runtime/collation/collation.h"
#include "runtime/collation/icu_collation.h"
#include "runtime/collation/packed_weights.h"

namespace quern {
namespace {

// FNV-1a. The digest is stored by hosts, and must not change with the hashes of tables.
std::string DigestOf(std::string_view packed) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (const char c : packed) digest = (digest ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

std::string WithTable(const char* code, std::string_view packed) { return std::string(code) + "." + DigestOf(packed); }

// Raise the number of a row where its code gives other results. It stands for the padding of its collations too.
std::string VersionOf(Weights weights, Collation id) {
  switch (weights) {
    case Weights::kBytes:
    case Weights::kAsciiUpper:
    case Weights::kLatin1: return "1";
    case Weights::kGeneral: return WithTable("1", kPackedGeneral);
    case Weights::kUca400: return WithTable("1", kPackedUca400);
    case Weights::kUca520: return WithTable("1", kPackedUca520);
    case Weights::kUca900: return WithTable("1", kPackedUca900);
    case Weights::kUca900Tidb: return WithTable("1", kPackedUca900);
    case Weights::kIcu: return "1." + IcuRulesVersion(id);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> CollationVersion(std::string_view name) {
  const absl::StatusOr<Collation> id = CollationNamed(name);
  if (!id.ok()) return id.status();
  return VersionOf(RowOf(*id).order, *id);  // equality goes by the same weights, or by bytes
}

}  // namespace quern
