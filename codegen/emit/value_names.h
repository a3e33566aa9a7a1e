// SPDX-License-Identifier: Apache-2.0
// Names of values in the IR, for those who read a dump: a value is named after the column or the expression that it
// holds, as the spec writes columns.
//
//     $1                            a value of column 1
//     multiply($0,subtract(1,$1))   of an expression: the functions of its instructions
//     sum128($0)                    the state of an aggregate
//
// A name that is there already gets a number behind it.
#ifndef QUERN_CODEGEN_EMIT_VALUE_NAMES_H_
#define QUERN_CODEGEN_EMIT_VALUE_NAMES_H_

#include <string>
#include <vector>

#include "runtime/abi/aggregate_abi.h"
#include "runtime/abi/map_abi.h"

namespace quern {

// names: of the map's instructions before this one. A store has none; a name of more than 80 bytes is the function's.
std::string NameOfInstruction(const QuernMapInstruction& instruction, const std::vector<std::string>& names);

std::string NameOfArgument(const QuernArgument& argument);
std::string NameOfState(const QuernAccumulator& accumulator);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_VALUE_NAMES_H_
