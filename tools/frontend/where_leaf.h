// SPDX-License-Identifier: Apache-2.0
// A comparison with constants as a kernel's predicate: constants of the column's type that keep the meaning of their
// texts.
#ifndef QUERN_TOOLS_FRONTEND_WHERE_LEAF_H_
#define QUERN_TOOLS_FRONTEND_WHERE_LEAF_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/spec/condition.h"
#include "tools/frontend/where_text.h"

namespace quern::cli {

// The column of a comparison.
struct WhereColumn {
  std::string option;     // --where, for errors
  std::string text;       // "column k of INPUT", likewise
  std::string type_text;  // "decimal128(10, 2)", likewise
  std::string format;     // of its values, in the Arrow C data interface: has a decimal's scale and a time's unit
  ColumnType type;        // as the kernel reads it
};

// Never rounds if that would change a result: for integers `qty < 2.5` becomes `qty <= 2`; for a decimal with two
// digits `price = 0.123` is never true, and neither is `tiny = 1000` for an i8. Numbers with a point or an exponent are
// rounded to the precision of a float column. *Errors*: a constant that is not of the column's type.
absl::StatusOr<Predicate> LeafOf(const WhereText& leaf, const WhereColumn& column);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_WHERE_LEAF_H_
