// SPDX-License-Identifier: Apache-2.0
// Memory that is refused once, and batches that are appended again.
#ifndef QUERN_TEST_HOSTS_REFUSALS_H_
#define QUERN_TEST_HOSTS_REFUSALS_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "test/hosts/jobs.h"

namespace quern_test {

// Refuses one request.
struct OneRefusal {
  int64_t left = 0;  // requests before it
  static bool Reserve(void* host, uint64_t /*bytes*/) { return static_cast<OneRefusal*>(host)->left-- != 0; }
  static void Release(void* /*host*/, uint64_t /*bytes*/) {}
  quern_job_options options() { return OptionsWithAccount(this); }
};

// Refuses all requests after some of those to come; none where `left` is negative.
struct RefusalsFrom {
  int64_t left = -1;  // requests before them
  static bool Reserve(void* host, uint64_t /*bytes*/) {
    auto* const own = static_cast<RefusalsFrom*>(host);
    if (own->left > 0) --own->left;
    return own->left != 0;
  }
  static void Release(void* /*host*/, uint64_t /*bytes*/) {}
  quern_job_options options() { return OptionsWithAccount(this); }
};

// Refuses two requests of those to come.
struct TwoRefusals {
  int64_t first = -1, second = -1;  // requests before each, in ascending order
  int64_t num_requests = 0;
  static bool Reserve(void* host, uint64_t /*bytes*/) {
    auto* const own = static_cast<TwoRefusals*>(host);
    const int64_t n = own->num_requests++;
    return n != own->first && n != own->second;
  }
  static void Release(void* /*host*/, uint64_t /*bytes*/) {}
  quern_job_options options() { return OptionsWithAccount(this); }
};

// Appends a batch, and again where memory was refused. Returns whether it was not.
inline bool AppendTwice(quern::Input* input, const Table& table) {
  quern::Status status = input->Append(table.batch());
  if (status.ok()) return true;
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED) << status.text();
  Done(input->Append(table.batch()));
  return false;
}

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_REFUSALS_H_
