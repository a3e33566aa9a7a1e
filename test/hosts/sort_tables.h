// SPDX-License-Identifier: Apache-2.0
// Sorts for tests: made, fed and read in one line each.
#ifndef QUERN_TEST_HOSTS_SORT_TABLES_H_
#define QUERN_TEST_HOSTS_SORT_TABLES_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "test/hosts/host_tables.h"

namespace quern_test {

inline quern::Sort NewSort(const std::string& spec, quern::Engine engine = quern::Engine::kJit,
                           uint64_t memory_limit = 0) {
  auto kernel = quern::Kernel::Compile(spec, engine);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  auto sort = quern::Sort::Create(*kernel, memory_limit);
  EXPECT_TRUE(sort.ok()) << sort.status().text();
  return *std::move(sort);
}

// All rows that a reader gives out, in their order; it is the only one.
inline Lines ReadInOrder(quern::SortedRows* sorted, std::string_view kinds) {
  Lines lines;
  for (bool more = true; more;) {
    quern::Result<quern::PlacedRows> rows = sorted->Next();
    EXPECT_TRUE(rows.ok()) << rows.status().text();
    if (!rows.ok()) return lines;
    if (rows->result.num_rows != 0) {
      EXPECT_EQ(rows->position, lines.size());
    }
    AddLines(rows->result, kinds, &lines);
    more = rows->more;
  }
  return lines;
}

inline Lines RowsOf(const quern::Sort& sort, std::string_view kinds, uint64_t batch_rows = 0) {
  auto sorted = quern::SortedRows::Create(sort, batch_rows);
  EXPECT_TRUE(sorted.ok()) << sorted.status().text();
  return sorted.ok() ? ReadInOrder(&*sorted, kinds) : Lines();
}

// A sort of these tables, one batch each.
inline quern::Sort Sorted(const std::string& spec, const std::vector<Table>& tables,
                          quern::Engine engine = quern::Engine::kJit,
                          quern::StringBytes bytes = quern::StringBytes::kStay) {
  quern::Sort sort = NewSort(spec, engine);
  for (const Table& table : tables) EXPECT_EQ(sort.Append(table.batch(), bytes).text(), "");
  EXPECT_EQ(sort.Finalise().text(), "");
  return sort;
}

// The same rows in the same order by every engine, in results of every size.
inline void ExpectSorted(const std::string& spec, const std::vector<Table>& tables, std::string_view kinds,
                         const Lines& expected) {
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    for (const uint64_t batch_rows : {0, 1, 2}) {
      SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)) + ", batch_rows " +
                   std::to_string(batch_rows));
      const auto bytes = batch_rows == 1 ? quern::StringBytes::kCopied : quern::StringBytes::kStay;
      EXPECT_EQ(RowsOf(Sorted(spec, tables, engine, bytes), kinds, batch_rows), expected);
    }
  }
}

// The threshold of a sort as one line; "none".
inline std::string ThresholdOf(quern::Sort* sort, std::string_view kinds) {
  auto row = sort->GetThreshold();
  EXPECT_TRUE(row.ok()) << row.status().text();
  if (!row.ok() || !row->has_value()) return "none";
  Lines lines;
  AddLines(**row, kinds, &lines);
  EXPECT_EQ(lines.size(), 1u);
  return lines.empty() ? "" : lines[0];
}

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_SORT_TABLES_H_
