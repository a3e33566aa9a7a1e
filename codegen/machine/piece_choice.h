// SPDX-License-Identifier: Apache-2.0
// How many rows of a pipeline pass all of its steps before the next ones do, as a profile keeps it.
#ifndef QUERN_CODEGEN_MACHINE_PIECE_CHOICE_H_
#define QUERN_CODEGEN_MACHINE_PIECE_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/thresholds.h"

namespace quern {

// The most rows of a piece, wherever it is given.
constexpr uint32_t kMostPieceRows = 65536;

// The line of a profile: "pieces rows=8192 ns=5.1 default_ns=5.6 noise=0.012".
struct ProfilePieces {
  uint32_t rows = thresholds::kPipelineRows;  // the default where nothing beat it beyond the noise
  double ns = 0, default_ns = 0;              // a row of the source, as a geometric mean over the pipelines measured
  double noise = 0;                           // share by which two measurements of one size differ
};
std::string PrintPiecesLine(const ProfilePieces& pieces);
// rest: the line without its first word. *Errors*: InvalidArgument.
absl::StatusOr<ProfilePieces> ParsePiecesLine(std::string_view rest);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_PIECE_CHOICE_H_
