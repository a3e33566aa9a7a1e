// SPDX-License-Identifier: Apache-2.0
// Jobs of the C ABI over small tables, from quern_compile to destroy. A job allocates nothing of its own, so that all
// requests for memory in it are the library's, and its result is one number.
#ifndef QUERN_TEST_REFUSALS_REFUSED_JOBS_H_
#define QUERN_TEST_REFUSALS_REFUSED_JOBS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "hosts/c/quern.h"

namespace quern_test {

// How a job calls the library: call by call on this thread, by quern_job_run, with Arrow arrays, or call by call with
// the work in pieces, after another job that was cancelled.
enum class Way : uint8_t { kCalls, kRun, kArrow, kPieces };

// Columns are letters: n for i64, f for f64, t for utf8, d for dictionary(i32,utf8). Of joins `keys` and `payload` are
// those of the build side, `probe` the payload of the probe side.
struct Job {
  const char* name;
  const char* spec;
  const char* keys;
  const char* payload;
  const char* probe;
  const char* result;
  Way way = Way::kCalls;
  quern_engine engine = QUERN_ENGINE_GENERIC;
  uint32_t threads = 1;
  const char* params = nullptr;
};

std::string NameOf(const Job& job);
inline std::ostream& operator<<(std::ostream& out, const Job& job) { return out << NameOf(job); }

struct Outcome {
  quern_status status = QUERN_OK;  // of the first call that failed
  uint64_t sum = 0;                // of all rows that came out
  char text[256] = {};             // of the error
};

// Tables of up to 8 batches with `batch_rows` rows, for all jobs from now on.
void MakeTables(uint64_t num_batches, uint64_t batch_rows);
// Takes all memory that the library keeps from one job for the next, so that what is held grows no further.
void FillKeptMemory();
// Gives back the blocks and pages that the process keeps for buffers of later jobs.
void ReleaseKeptMemory();
// What a job needs that is allocated; to be called before each.
void PrepareJob(const Job& job);
// Appends of vectors that are refused memory are repeated once, and so is the building of a join's table.
Outcome RunJob(const Job& job);
// The appends that were refused memory since the last call.
struct NumAppends {
  uint64_t repeated = 0;  // with success
  uint64_t given_up = 0;  // after a second failure
};
NumAppends TakeNumAppends();
// Whether no array that the job received has been released twice, and all memory of which it has told.
bool AllIsReleased();

}  // namespace quern_test

#endif  // QUERN_TEST_REFUSALS_REFUSED_JOBS_H_
