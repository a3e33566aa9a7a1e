// SPDX-License-Identifier: Apache-2.0
#include "codegen/machine/piece_choice.h"

#include "codegen/base/text_words.h"
#include "codegen/machine/line_fields.h"
#include "runtime/base/status.h"

namespace quern {

std::string PrintPiecesLine(const ProfilePieces& pieces) {
  return "pieces rows=" + std::to_string(pieces.rows) + " " + PrintCosts(pieces.ns, pieces.default_ns, pieces.noise);
}

absl::StatusOr<ProfilePieces> ParsePiecesLine(std::string_view rest) {
  ProfilePieces pieces;
  LineFields fields("pieces", "pieces rows=N ns=N default_ns=N noise=N", rest);
  QUERN_RETURN_IF_ERROR(fields.TakeCount("rows", 1, kMostPieceRows, &pieces.rows));
  QUERN_RETURN_IF_ERROR(fields.TakeCosts(&pieces.ns, &pieces.default_ns, &pieces.noise));
  return pieces;
}

}  // namespace quern
