// SPDX-License-Identifier: Apache-2.0
// The order of the rows that a selection names, and bringing rows into it.
#ifndef QUERN_RUNTIME_ROWS_ROW_ORDER_H_
#define QUERN_RUNTIME_ROWS_ROW_ORDER_H_

#include <cstdint>
#include <vector>

namespace quern {

// Whether each of n row numbers is above the one before it. *Cost*: 0.1 ns a row.
bool Ascend(const uint32_t* rows, uint64_t n);

// Sorts row numbers of a small range: a byte for each row of the range says whether it is there, and eight bytes that
// are 0 are passed over at once. A look-up that needs several rounds finds its rows out of order.
//
//     rows 5 9 2     bytes 0 0 1 0 0 1 0 0 | 0 1 0 0 ..     rows 2 5 9
//
// *Threads*: one.
class RowSorter {
 public:
  // For rows 0 .. num_places-1.
  explicit RowSorter(uint32_t num_places);

  // Sorts the rows. False where one of them is there twice: their order is then undefined. *Cost*: 0.1 ns a place and
  // 1 to 2 ns a row; of rows that ascend already, 0.1 ns a row.
  bool SortDistinct(uint32_t* rows, uint64_t n);

 private:
  std::vector<uint8_t> is_there_;  // all 0 between calls; a multiple of 64
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ROW_ORDER_H_
