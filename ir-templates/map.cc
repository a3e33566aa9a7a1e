// SPDX-License-Identifier: Apache-2.0
// The entry point of a map. Its loop, over eight rows at a time, is part of the hole: a compiled kernel keeps all
// values of eight rows in registers from the first instruction to the last, while the generic kernel takes one
// instruction after the other over a piece of rows.
#include "ir-templates/holes.h"

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))

QUERN_ENTRY int32_t quern_map_rows(QuernMapArgs* args) { return quern_hole_map_batch(args); }
