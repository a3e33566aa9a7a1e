// SPDX-License-Identifier: Apache-2.0
// Emits the holes of the join template: those of joins alone (ir-templates/holes/join_holes.h by hole_emitter.h), and
// those that read keys and tuples, which emit_tuples.cc emits.
#include "ir-templates/holes/join_holes.h"

#include "codegen/emit/hole_emitter.h"
#include "ir-templates/holes.h"

namespace quern {

void EmitHoles(const KernelPlan&, const QuernJoinDescriptor& descriptor, Emitter* emitter) {
  EmitTupleHoles(descriptor.rows, emitter);
#define QUERN_JOIN_CONSTANT(result, name)                                                      \
  EmitHole(emitter, #name, "(descriptor)", static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& /*b*/, const auto& /*descriptor*/) { return descriptor.name; });
#define QUERN_JOIN_HOLE(grain, result, name, Function, parameters, arguments)              \
  EmitHole(emitter, #name, #arguments, static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& b, const auto&... all) { return holes::Function(b, descriptor, all...); });
#include "ir-templates/holes.def"
}

}  // namespace quern
