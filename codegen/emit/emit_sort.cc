// SPDX-License-Identifier: Apache-2.0
// Emits the holes of the sort template: those that read keys (ir-templates/holes/sort_holes.h by hole_emitter.h), and
// those that read and write tuples, which emit_tuples.cc emits.
#include "ir-templates/holes/sort_holes.h"

#include "codegen/emit/hole_emitter.h"
#include "ir-templates/holes.h"

namespace quern {

void EmitHoles(const KernelPlan&, const QuernSortDescriptor& descriptor, Emitter* emitter) {
  EmitTupleHoles(descriptor.rows, emitter);
#define QUERN_SORT_HOLE(grain, result, name, Function, parameters, arguments)              \
  EmitHole(emitter, #name, #arguments, static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& b, const auto&... all) { return holes::Function(b, descriptor, all...); });
#include "ir-templates/holes.def"
}

}  // namespace quern
