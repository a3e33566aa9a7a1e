// SPDX-License-Identifier: Apache-2.0
// Collations as an enum with its table (collations.def).
#ifndef QUERN_RUNTIME_COLLATION_COLLATION_ID_H_
#define QUERN_RUNTIME_COLLATION_COLLATION_ID_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/abi/kernel_abi.h"

namespace quern {

// A row of collations.def; or, from kFirstIcuCollation on, a collation of ICU, whose number is derived from its name,
// so that it is the same in every process.
enum Collation : uint32_t {
#define QUERN_COLLATION(Id, text, pad, equality, order) Id,
#include "runtime/collation/collations.def"
  kFirstIcuCollation = 1u << 26,
};

enum class PadRule : uint8_t { kNoPad, kPads, kTrims };
// The sources of characters' weights (collation_weights.h). kUca900Tidb: TiDB's, which differ from MySQL's in 880 code
// points.
enum class Weights : uint8_t { kBytes, kAsciiUpper, kLatin1, kGeneral, kUca400, kUca520, kUca900, kUca900Tidb, kIcu };

// One row of collations.def.
struct CollationRow {
  Collation id;
  std::string_view text;
  PadRule pad;
  Weights equality;
  Weights order;
};

std::span<const CollationRow> AllCollations();
const CollationRow& RowOf(Collation id);
// How kernels read its strings.
CollationRule RuleOf(Collation id);

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_COLLATION_ID_H_
