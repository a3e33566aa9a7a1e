// SPDX-License-Identifier: Apache-2.0
// Texts of captures: what is accepted prints, and the print is accepted and prints as itself.
#include <string>
#include <string_view>

#include "codegen/inspect/capture.h"
#include "test/fuzz/targets/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using quern::CaptureLog;
  using quern::fuzz::Require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<CaptureLog> log = CaptureLog::Parse(text, "fuzz.capture");
  if (!log.ok()) return quern::fuzz::RequireRefusalInOneLine(log.status()), 0;
  const std::string printed = log->Print();
  const absl::StatusOr<CaptureLog> again = CaptureLog::Parse(printed, "printed.capture");
  Require(again.ok(), "a printed capture is accepted", printed + again.status().ToString());
  Require(again->Print() == printed, "a printed capture prints as itself", printed + again->Print());
  return 0;
}
