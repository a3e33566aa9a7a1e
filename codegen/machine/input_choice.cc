// SPDX-License-Identifier: Apache-2.0
#include "codegen/machine/input_choice.h"

#include "codegen/base/text_words.h"
#include "codegen/machine/line_fields.h"
#include "runtime/base/status.h"
#include "runtime/rows/prefetch.h"

namespace quern {

InputRows DefaultInputRows(const Machine& machine) {
  const uint32_t rows = PrefetchDistances().input_rows;
  return {rows, InputRowsWithoutKeys(machine, rows)};
}

std::string PrintInputRows(const InputRows& rows) {
  return "rows=" + std::to_string(rows.rows) + " keyless_rows=" + std::to_string(rows.keyless_rows);
}

std::string PrintInputLine(const ProfileInput& input) {
  return "input " + PrintInputRows(input.rows) + " " + PrintCosts(input.ns, input.default_ns, input.noise);
}

absl::StatusOr<ProfileInput> ParseInputLine(std::string_view rest) {
  ProfileInput input;
  LineFields fields("input", "input rows=N keyless_rows=N ns=N default_ns=N noise=N", rest);
  QUERN_RETURN_IF_ERROR(fields.TakeCount("rows", 0, kMostInputRows, &input.rows.rows));
  QUERN_RETURN_IF_ERROR(fields.TakeCount("keyless_rows", 0, kMostInputRows, &input.rows.keyless_rows));
  QUERN_RETURN_IF_ERROR(fields.TakeCosts(&input.ns, &input.default_ns, &input.noise));
  return input;
}

}  // namespace quern
