// SPDX-License-Identifier: Apache-2.0
// Declarations of the holes (holes.def). Each kernel made from a template defines them.
#ifndef QUERN_IR_TEMPLATES_HOLES_H_
#define QUERN_IR_TEMPLATES_HOLES_H_

#include "runtime/abi/aggregate_abi.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/abi/sort_abi.h"

// A constant hole has no effect and gives the same number at every call, so that it can be moved out of loops.
#define QUERN_HOLE_ATTRIBUTES_constant __attribute__((pure))
#define QUERN_HOLE_ATTRIBUTES_row
#define QUERN_HOLE_ATTRIBUTES_batch

extern "C" {
#define QUERN_HOLE(grain, result, name, parameters) QUERN_HOLE_ATTRIBUTES_##grain result quern_hole_##name parameters;
#include "ir-templates/holes.def"
}

#endif  // QUERN_IR_TEMPLATES_HOLES_H_
