// SPDX-License-Identifier: Apache-2.0
#include "codegen/machine/piece_choice.h"

#include "codegen/base/text_words.h"
#include "codegen/machine/line_fields.h"
#include "runtime/base/status.h"

namespace quern {

std::string PrintPiecesLine(const ProfilePieces& pieces) {
  return "pieces rows=" + std::to_string(pieces.rows) + " ns=" + PrintReal(pieces.ns) +
         " default_ns=" + PrintReal(pieces.default_ns) + " noise=" + PrintReal(pieces.noise);
}

absl::StatusOr<ProfilePieces> ParsePiecesLine(std::string_view rest) {
  ProfilePieces pieces;
  LineFields fields("pieces", "pieces rows=N ns=N default_ns=N noise=N", rest);
  QUERN_RETURN_IF_ERROR(fields.TakeCount("rows", 1, kMostPieceRows, &pieces.rows));
  QUERN_RETURN_IF_ERROR(fields.TakeReal("ns", &pieces.ns));
  QUERN_RETURN_IF_ERROR(fields.TakeReal("default_ns", &pieces.default_ns));
  QUERN_RETURN_IF_ERROR(fields.TakeReal("noise", &pieces.noise));
  QUERN_RETURN_IF_ERROR(fields.CheckEnd());
  return pieces;
}

}  // namespace quern
