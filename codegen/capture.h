// SPDX-License-Identifier: Apache-2.0
// Capture: with QUERN_CAPTURE=DIR every job of a process leaves what a tuner needs to play it again (never the data itself): spec, sizes,
// and how keys are distributed.
#ifndef QUERN_CODEGEN_CAPTURE_H_
#define QUERN_CODEGEN_CAPTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

// One kind of job, and how often it was met.
struct CapturedJob {
  std::string spec;    // canonical
  std::string params;  // plan parameters that the host gave, as --param takes them
  uint64_t jobs = 0;
  // Of a job, on average.
  uint64_t build_rows = 0;    // or input rows of an aggregation or a sort
  uint64_t probe_rows = 0;    // joins
  uint64_t keys = 0;          // different ones: of the build side, or groups
  uint32_t hits_percent = 0;  // joins: probe rows that match
  double zipf = 0;            // exponent that explains the heaviest keys; 0: all alike
  uint32_t key_bytes = 0;     // of strings, on average
  uint32_t threads = 1;
  uint64_t table_bytes = 0;
};

// Whether this process captures. *Cost*: one load.
bool IsCapturing();
// *Threads*: any. Written at the end of the process and every few seconds, under a temporary name; one file a process.
void CaptureJob(const CapturedJob& job);

// All of a folder, alike ones together. *Errors*: InvalidArgument "FILE:LINE: ..".
absl::StatusOr<std::vector<CapturedJob>> ReadCaptures(const std::string& folder);

}  // namespace quern

#endif  // QUERN_CODEGEN_CAPTURE_H_
