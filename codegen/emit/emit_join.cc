// SPDX-License-Identifier: Apache-2.0
// Emits the holes that read keys and that read and write tuples (ir-templates/holes/join_holes.h by hole_emitter.h).
#include "ir-templates/holes/join_holes.h"

#include "codegen/emit/hole_emitter.h"
#include "ir-templates/holes.h"

namespace quern {

void EmitHoles(const KernelPlan&, const QuernJoinDescriptor& descriptor, Emitter* emitter) {
#define QUERN_CONSTANT_HOLE(result, name)                                                      \
  EmitHole(emitter, #name, "(descriptor)", static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& /*b*/, const auto& /*descriptor*/) { return descriptor.name; });
#define QUERN_JOIN_HOLE(grain, result, name, Function, parameters, arguments)              \
  EmitHole(emitter, #name, #arguments, static_cast<decltype(quern_hole_##name)*>(nullptr), \
           [&](HoleEmitter& b, const auto&... all) { return holes::Function(b, descriptor, all...); });
#include "ir-templates/holes.def"
}

}  // namespace quern
