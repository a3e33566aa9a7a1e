// SPDX-License-Identifier: Apache-2.0
// The generic join kernel: the template ir-templates/join.cc, compiled natively, with holes that interpret the
// descriptor (ir-templates/holes/join_holes.h by hole_interpreter.h; generic_tuples.cc has the holes that read keys and
// tuples). It needs no compilation and its results agree with a compiled kernel's to the bit, because both use the same
// template, the same holes and the same blocks.
//
// Batch holes dispatch once per batch and column, which costs little compared to the loops; row holes dispatch once per
// row and column.
#include "ir-templates/generic/generic_join.h"

#include "ir-templates/generic/hole_interpreter.h"
#include "ir-templates/holes.h"
#include "ir-templates/holes/join_holes.h"

extern "C" {
#define QUERN_JOIN_ENTRY(field, result, parameters) result quern_join_##field parameters;
#include "runtime/abi/join_entry_points.def"
}

namespace quern {

QuernJoinEntryPoints GenericJoinKernel() {
  return {
#define QUERN_JOIN_ENTRY(field, result, parameters) quern_join_##field,
#include "runtime/abi/join_entry_points.def"
  };
}

}  // namespace quern

extern "C" {
#define QUERN_JOIN_CONSTANT(result, name) \
  result quern_hole_##name(const QuernJoinDescriptor* descriptor) { return descriptor->name; }
#define QUERN_JOIN_HOLE(grain, result, name, Function, parameters, arguments) \
  result quern_hole_##name parameters { QUERN_INTERPRET(Function, arguments); }
#include "ir-templates/holes.def"
}
