// SPDX-License-Identifier: Apache-2.0
// How many rows ahead columns that are read in order are prefetched, as a profile keeps it.
#ifndef QUERN_CODEGEN_MACHINE_INPUT_CHOICE_H_
#define QUERN_CODEGEN_MACHINE_INPUT_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "codegen/machine/machine.h"

namespace quern {

// The greatest distance, that of the plan parameter prefetch_input_rows.
constexpr uint32_t kMostInputRows = 65536;

// Distances, in rows; 0: no prefetch. Aggregations without keys have one of their own: nothing but the columns is read,
// and on some processors prefetches only cost.
struct InputRows {
  uint32_t rows = 0;
  uint32_t keyless_rows = 0;  // of aggregations without keys

  bool operator==(const InputRows&) const = default;
};
// Without a profile.
InputRows DefaultInputRows(const Machine& machine);
// "rows=2048 keyless_rows=256".
std::string PrintInputRows(const InputRows& rows);

// The line of a profile: "input rows=1024 keyless_rows=256 ns=1.1 default_ns=1.3 noise=0.012".
struct ProfileInput {
  InputRows rows;                 // each the default where nothing beat it beyond the noise
  double ns = 0, default_ns = 0;  // a row, as a geometric mean over the kernels measured
  double noise = 0;               // share by which two measurements of one distance differ
};
std::string PrintInputLine(const ProfileInput& input);
// rest: the line without its first word. *Errors*: InvalidArgument.
absl::StatusOr<ProfileInput> ParseInputLine(std::string_view rest);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_INPUT_CHOICE_H_
