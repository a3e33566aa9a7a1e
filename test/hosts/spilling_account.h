// SPDX-License-Identifier: Apache-2.0
// A host's account of memory by which a join writes its rows, so that all of them are joined at the end.
#ifndef QUERN_TEST_HOSTS_SPILLING_ACCOUNT_H_
#define QUERN_TEST_HOSTS_SPILLING_ACCOUNT_H_

#include <atomic>
#include <cstdint>

#include "test/hosts/jobs.h"

namespace quern_test {

// Of one join. It must outlive the job.
class SpillingAccount {
 public:
  quern_job_options options() {
    quern_job_options options = OptionsWithAccount(this);
    options.spill = &spill_;
    return options;
  }
  // The table has `room` bytes while it is built; afterwards all memory is given.
  void Finalise(quern::Job* join, int64_t room) {
    refuses_next_ = true;
    limit_ = used_ + room;
    Done(join->Finalise());
    limit_ = INT64_MAX;
  }

  static bool Reserve(void* host, uint64_t bytes) {
    auto* const own = static_cast<SpillingAccount*>(host);
    if (own->refuses_next_.exchange(false)) return false;
    if ((own->used_ += static_cast<int64_t>(bytes)) <= own->limit_) return true;
    own->used_ -= static_cast<int64_t>(bytes);
    return false;
  }
  static void Release(void* host, uint64_t bytes) {
    static_cast<SpillingAccount*>(host)->used_ -= static_cast<int64_t>(bytes);
  }

 private:
  quern_spill_options spill_ = {};
  std::atomic<int64_t> used_{0}, limit_{INT64_MAX};
  std::atomic<bool> refuses_next_{false};
};

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_SPILLING_ACCOUNT_H_
