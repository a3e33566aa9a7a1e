// SPDX-License-Identifier: Apache-2.0
// The grid of the proof and its table; the measured values depend on the machine.
#include "tools/report/proof.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace quern {
namespace {

std::string KeyOf(const ProofCell& cell) {
  return cell.job + " " + std::to_string(cell.log2_rows) + " " + std::to_string(cell.hits_percent) + " " +
         std::to_string(cell.zipf) + " " + std::to_string(cell.rows_per_key);
}

TEST(Proof, GridHasEachCellOnceAndAnyPartOfItAllSizes) {
  const std::vector<ProofCell> grid = ProofGrid();
  std::set<std::string> keys, shapes_of_a_tenth;
  std::set<uint32_t> sizes_of_a_tenth;
  for (size_t i = 0; i < grid.size(); ++i) {
    EXPECT_TRUE(keys.insert(KeyOf(grid[i])).second) << KeyOf(grid[i]);
    if (i >= grid.size() / 10) continue;
    sizes_of_a_tenth.insert(grid[i].log2_rows);
    shapes_of_a_tenth.insert(grid[i].job);
  }
  EXPECT_EQ(sizes_of_a_tenth.size(), 8u);
  EXPECT_GE(shapes_of_a_tenth.size(), 5u);
}

ProofResult Result(uint32_t log2_rows, uint64_t bytes, double tuned, double off, double fixed, double best) {
  ProofResult result;
  result.cell.job = "join utf8";
  result.cell.log2_rows = log2_rows;
  result.table_bytes = bytes;
  result.tuned_ns = tuned, result.off_ns = off, result.fixed16_ns = fixed, result.best_ns = best;
  return result;
}

TEST(Proof, TableSaysWhichTargetsAreMet) {
  MachineSignature machine;
  machine.l3_bytes = 1 << 25;
  EXPECT_EQ(ProofTable({}, machine), "no cell was measured\n");
  const std::string table = ProofTable({Result(10, 1 << 14, 2, 2, 3, 2), Result(10, 1 << 14, 2.1, 2.1, 3, 2),
                                        Result(24, 1 << 30, 8, 32, 10, 8), Result(24, 1 << 30, 10, 5, 9, 8)},
                                       machine);
  EXPECT_EQ(table, R"(job                     rows  cells  tuned ns    off ns     16 ns   best ns    regret     worst
join utf8               2^10      2      2.10      2.10      3.00      2.00    5.0 %    5.0 %
join utf8               2^24      2     10.00     32.00     10.00      8.00   25.0 %   25.0 %
4 of 688 cells; medians over hit rates, skews and duplicates
regret against the exhaustive best, median cell                              5.0 %, wanted   3.0 %: missed
the same, worst cell                                                        25.0 %, wanted   8.0 %: missed
faster than 16 rows fixed, best cell above L3                               20.0 %, wanted  10.0 %: met
speed without prefetch that is kept, worst cell                             50.0 %, wanted  98.0 %: missed
cells that are slower than without prefetch beyond that                     25.0 %, wanted   0.0 %: missed
)");
}

TEST(Proof, StopsWhereItIsTold) {
  ProofOptions options;
  const std::atomic<bool> stop{true};
  options.stop = &stop;
  const auto results = Prove(Profile(), options);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->empty());
}

}  // namespace
}  // namespace quern
