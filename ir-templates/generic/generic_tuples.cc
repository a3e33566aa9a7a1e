// SPDX-License-Identifier: Apache-2.0
// The holes that read keys and that read and write tuples (ir-templates/holes/tuple_holes.h by hole_interpreter.h), for
// the generic kernels of all operators. For keys i64,utf8
//
//     quern_hole_hash_rows    key 0    switch (storage) Hash<k64>
//                             key 1    switch (storage) Hash<kVar32>
//
// dispatches twice a batch.
#include "ir-templates/generic/hole_interpreter.h"
#include "ir-templates/holes.h"
#include "ir-templates/holes/tuple_holes.h"

extern "C" {
#define QUERN_TUPLE_CONSTANT(result, name) \
  result quern_hole_##name(const QuernRowLayout* layout) { return layout->name; }
#define QUERN_TUPLE_HOLE(grain, result, name, Function, parameters, arguments) \
  result quern_hole_##name parameters { QUERN_INTERPRET(Function, arguments); }
#include "ir-templates/holes.def"
}
