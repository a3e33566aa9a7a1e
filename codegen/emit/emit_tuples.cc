// SPDX-License-Identifier: Apache-2.0
// Emits the holes of all operators that read keys and that read and write tuples (ir-templates/holes/tuple_holes.h by
// hole_emitter.h).
#include "codegen/emit/hole_emitter.h"
#include "ir-templates/holes.h"
#include "ir-templates/holes/tuple_holes.h"

namespace quern {

void EmitTupleHoles(const QuernRowLayout& layout, Emitter* emitter) {
#define QUERN_TUPLE_CONSTANT(result, name)                                                 \
  EmitHole(emitter, #name, "(layout)", static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& /*b*/, const auto& /*layout*/) { return layout.name; });
#define QUERN_TUPLE_HOLE(grain, result, name, Function, parameters, arguments)             \
  EmitHole(emitter, #name, #arguments, static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& b, const auto&... all) { return holes::Function(b, layout, all...); });
#include "ir-templates/holes.def"
}

}  // namespace quern
