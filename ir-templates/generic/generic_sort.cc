// SPDX-License-Identifier: Apache-2.0
// The generic sort kernel: the template ir-templates/sort.cc, compiled natively, with holes that interpret the
// descriptor (ir-templates/holes/sort_holes.h by hole_interpreter.h). Tuples use the holes of all operators
// (generic_tuples.cc). Encoding processes one part after the other, and dispatches once per batch and part:
//
//     keys=i32:nullable,utf8       null part of keys[0]    EncodeNulls
//                                  value part of keys[0]   switch (storage) EncodeColumn<k32>
//                                  bytes of keys[1]        switch (storage) EncodeBytes<kVar32>, all parts in one call
//
// This costs little compared to the loops. Comparing two tuples dispatches once per key; a compiled kernel saves that.
#include "ir-templates/generic/generic_sort.h"

#include "ir-templates/generic/hole_interpreter.h"
#include "ir-templates/holes.h"
#include "ir-templates/holes/sort_holes.h"

extern "C" {
#define QUERN_SORT_ENTRY(field, result, parameters) result quern_sort_##field parameters;
#include "runtime/abi/sort_entry_points.def"
}

namespace quern {

QuernSortEntryPoints GenericSortKernel() {
  return {
#define QUERN_SORT_ENTRY(field, result, parameters) quern_sort_##field,
#include "runtime/abi/sort_entry_points.def"
  };
}

}  // namespace quern

extern "C" {
#define QUERN_SORT_HOLE(grain, result, name, Function, parameters, arguments) \
  result quern_hole_##name parameters { QUERN_INTERPRET(Function, arguments); }
#include "ir-templates/holes.def"
}
