// SPDX-License-Identifier: Apache-2.0
// Aggregations for tests: made, fed and read in one line each.
#ifndef QUERN_TEST_HOSTS_AGGREGATE_TABLES_H_
#define QUERN_TEST_HOSTS_AGGREGATE_TABLES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "test/hosts/host_tables.h"

namespace quern_test {

inline quern::Aggregate NewAggregate(const std::string& spec, quern::Engine engine = quern::Engine::kJit,
                                     uint64_t memory_limit = 0) {
  auto kernel = quern::Kernel::Compile(spec, engine);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  auto aggregate = quern::Aggregate::Create(*kernel, memory_limit);
  EXPECT_TRUE(aggregate.ok()) << aggregate.status().text();
  return *std::move(aggregate);
}

// All groups that a reader gives out, sorted.
inline Lines GroupsOf(const quern::Aggregate& aggregate, std::string_view kinds,
                      const quern::GroupOptions& options = {}) {
  auto groups = quern::Groups::Create(aggregate, options);
  EXPECT_TRUE(groups.ok()) << groups.status().text();
  return groups.ok() ? ScanUnmatched(&*groups, kinds) : Lines();
}

// An aggregation of these tables, one batch each.
inline quern::Aggregate Aggregated(const std::string& spec, const std::vector<Table>& tables,
                                   quern::Engine engine = quern::Engine::kJit) {
  quern::Aggregate aggregate = NewAggregate(spec, engine);
  for (const Table& table : tables) EXPECT_EQ(aggregate.Append(table.batch()).text(), "");
  EXPECT_EQ(aggregate.Finalise().text(), "");
  return aggregate;
}

// The same groups by every engine, in results of every size.
inline void ExpectGroups(const std::string& spec, const std::vector<Table>& tables, std::string_view kinds,
                         Lines expected) {
  std::sort(expected.begin(), expected.end());
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    for (const uint64_t batch_rows : {0, 1, 2}) {
      SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)) + ", batch_rows " +
                   std::to_string(batch_rows));
      EXPECT_EQ(GroupsOf(Aggregated(spec, tables, engine), kinds, {.batch_rows = batch_rows}), expected);
    }
  }
}

// A result's columns as those of a batch (not of views).
inline Table AsTable(const quern_result& result, size_t num_keys) {
  Table table;
  for (size_t i = 0; i < result.num_columns; ++i) {
    quern_column column = {};
    column.validity = result.columns[i].validity;
    column.values = result.columns[i].values;
    column.offsets = result.columns[i].offsets;
    (i < num_keys ? table.keys : table.payload).push_back(column);
  }
  table.num_rows = result.num_rows;
  return table;
}

// Hands an aggregation's states to another, or to an appender of it.
template <class Target>
void MoveStates(const quern::Aggregate& from, size_t num_keys, Target* into, quern::GroupOptions options = {}) {
  options.columns = quern::GroupColumns::kStates;
  auto groups = quern::Groups::Create(from, options);
  ASSERT_TRUE(groups.ok()) << groups.status().text();
  for (bool more = true; more;) {
    auto rows = groups->Next();
    ASSERT_TRUE(rows.ok()) << rows.status().text();
    ASSERT_EQ(into->AppendStates(AsTable(rows->result, num_keys).batch()).text(), "");
    more = rows->more;
  }
}

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_AGGREGATE_TABLES_H_
