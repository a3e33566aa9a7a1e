// SPDX-License-Identifier: Apache-2.0
// collations.def as an array, in the order of the enum, so that RowOf is an index. Collations of ICU, which have no row
// there, are looked up among the open ones.
#include "runtime/collation/collation_id.h"

#include <cstddef>
#include <iterator>

#include "runtime/collation/icu_collation.h"

namespace quern {
namespace {

constexpr CollationRow kCollations[] = {
#define QUERN_COLLATION(Id, text, pad, equality, order) {Id, text, PadRule::pad, Weights::equality, Weights::order},
#include "runtime/collation/collations.def"
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kCollations); ++i)
    if (static_cast<size_t>(kCollations[i].id) != i) return false;
  return true;
}
static_assert(IsInOrder());

}  // namespace

std::span<const CollationRow> AllCollations() { return kCollations; }

const CollationRow& RowOf(Collation id) {
  if (static_cast<size_t>(id) < std::size(kCollations)) return kCollations[static_cast<size_t>(id)];
  const CollationRow* const row = FindIcuRow(id);
  return row != nullptr ? *row : kCollations[kCollationBinary];
}

CollationRule RuleOf(Collation id) {
  const CollationRow& row = RowOf(id);
  CollationRule rule = 0;
  if (row.pad != PadRule::kNoPad) rule |= kTrimsSpaces;
  if (row.pad == PadRule::kPads) rule |= kPadsSpaces;
  if (row.equality != Weights::kBytes) rule |= kWeighsEquality;
  if (row.order != Weights::kBytes) rule |= kWeighsOrder;
  if (row.equality != Weights::kBytes && row.equality != Weights::kIcu) rule |= kFoldsAscii;
  // Without flags that need the number it is left out, so that equal rules make equal code.
  if ((rule & (kWeighsEquality | kWeighsOrder)) != 0) rule |= static_cast<uint32_t>(id) << kCollationShift;
  return rule;
}

}  // namespace quern
