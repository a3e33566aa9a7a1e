// SPDX-License-Identifier: Apache-2.0
// The operators whose jobs have inputs, for tests of what all jobs have in common: one row each.
#ifndef QUERN_TEST_HOSTS_OPERATORS_H_
#define QUERN_TEST_HOSTS_OPERATORS_H_

#include <ostream>
#include <string>

#include "test/hosts/jobs.h"

namespace quern_test {

struct Operator {
  const char* name;
  const char* job;    // in errors: "the join still has work"
  const char* spec;   // of a key and a payload of i64
  const char* kinds;  // of the results
  quern_port input, output;
  uint32_t num_runs;
  const char* side;      // of its batches, in errors
  const char* complete;  // why no row may be added after all work is done
  const char* missing;   // what a failed append causes
};

inline std::ostream& operator<<(std::ostream& out, const Operator& op) { return out << op.name; }

// A join without probes gives all build rows as unmatched ones.
inline const Operator kJoin = {"Join",
                               "join",
                               "join.right_anti keys=i64 build=i64",
                               "l",
                               QUERN_PORT_BUILD,
                               QUERN_PORT_UNMATCHED,
                               0,
                               "build",
                               "the table is built",
                               "a batch is missing from the table"};
inline const Operator kAggregation = {"Aggregation",
                                      "aggregation",
                                      "aggregate keys=i64 aggs=sum(i64)",
                                      "ll",
                                      QUERN_PORT_ROWS,
                                      QUERN_PORT_ROWS,
                                      0,
                                      "input",
                                      "the groups are complete",
                                      "rows are missing from the groups"};
// Rows of the left side without a right one.
inline const Operator kSet = {
    "Set",  "set operation",         "set.except_all keys=i64",         "l", QUERN_PORT_LEFT, QUERN_PORT_ROWS, 0,
    "left", "the rows are complete", "rows are missing from the groups"};
inline const Operator kSort = {"Sort",
                               "sort",
                               "sort keys=i64:out payload=i64",
                               "ll",
                               QUERN_PORT_ROWS,
                               QUERN_PORT_ROWS,
                               0,
                               "input",
                               "the rows are sorted",
                               "rows are missing from the sort"};
inline const Operator kMerge = {
    "Merge", "merge", "sort keys=i64:out payload=i64", "ll", QUERN_PORT_ROWS, QUERN_PORT_ROWS, 1, "input", "", ""};

inline quern::Job NewJob(const Operator& op, quern_job_options options = {}, const char* spec = nullptr,
                         Engine engine = Engine::kJit) {
  options.num_runs = op.num_runs;
  return New<quern::Job>(spec == nullptr ? op.spec : spec, engine, options);
}

// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(const testing::TestParamInfo<Operator>& info) { return info.param.name; }

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_OPERATORS_H_
