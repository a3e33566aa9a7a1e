// SPDX-License-Identifier: Apache-2.0
// Declarations of the holes (holes.def). Each kernel made from a template defines them.
#ifndef QUERN_IR_TEMPLATES_HOLES_H_
#define QUERN_IR_TEMPLATES_HOLES_H_

#include "runtime/abi/aggregate_abi.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/join_abi.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/abi/map_abi.h"
#include "runtime/abi/sort_abi.h"

extern "C" {
// A constant hole has no effect and gives the same number at every call, so that it can be moved out of loops.
#define QUERN_TUPLE_CONSTANT(result, name) __attribute__((pure)) result quern_hole_##name(const QuernRowLayout* layout);
#define QUERN_JOIN_CONSTANT(result, name) \
  __attribute__((pure)) result quern_hole_##name(const QuernJoinDescriptor* descriptor);
#define QUERN_TUPLE_HOLE(grain, result, name, Function, parameters, arguments) result quern_hole_##name parameters;
#define QUERN_JOIN_HOLE(grain, result, name, Function, parameters, arguments) result quern_hole_##name parameters;
#define QUERN_SORT_HOLE(grain, result, name, Function, parameters, arguments) result quern_hole_##name parameters;
#define QUERN_OTHER_HOLE(grain, result, name, parameters) result quern_hole_##name parameters;
#include "ir-templates/holes.def"
}

#endif  // QUERN_IR_TEMPLATES_HOLES_H_
