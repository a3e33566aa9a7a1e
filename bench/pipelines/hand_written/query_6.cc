// SPDX-License-Identifier: Apache-2.0
// Query 6: of 6 M line items one in 50 stays, and the sum of their products is the result. Each condition reads its
// column for the rows that the one before it has left: 15 % after the date, 4 % after the discount. A decimal has 16
// bytes, so that few rows of a column touch few of its lines; those of the date's rows are prefetched a batch ahead.
//
//     batch 0   dates, prefetch |
//     batch 1   dates, prefetch | batch 0   discounts, quantities, products
#include <string>
#include <vector>

#include "bench/pipelines/hand_written/batches.h"
#include "bench/pipelines/hand_written/queries.h"

namespace quern::bench {
namespace {

constexpr int32_t kFirstDay = 8766, kEndDay = 9131;  // 1994, in days since 1970
constexpr int64_t kLeastDiscount = 5, kMostDiscount = 7, kQuantityBelow = 2400;

struct LineItems {
  size_t num_rows;
  const int32_t* ship_date;
  const int64_t *quantity, *price, *discount;
};

// Rows of a batch that have passed the first condition.
struct Rows {
  size_t first = 0;
  uint32_t n = 0;
  uint32_t rows[kBatchRows];
};

class Worker {
 public:
  void AddBatch(const LineItems& items, size_t first, uint32_t n) {
    Rows* next = &rows_[current_ ^ 1];
    next->first = first;
    const int32_t* dates = items.ship_date + first;
    next->n = Select(n, next->rows, [&](uint32_t i) {
      return static_cast<uint32_t>(dates[i]) - static_cast<uint32_t>(kFirstDay) <
             static_cast<uint32_t>(kEndDay - kFirstDay);
    });
    for (uint32_t j = 0; j < next->n; ++j) {
      __builtin_prefetch(&items.discount[first + next->rows[j]]);
      __builtin_prefetch(&items.quantity[first + next->rows[j]]);
    }
    Finish(items);
    current_ ^= 1;
  }

  // The rows that AddBatch has left for later.
  void Finish(const LineItems& items) {
    Rows* rows = &rows_[current_];
    if (rows->n != 0 && !SumIn64Bits(items, rows)) SumIn128Bits(items, *rows);
    rows->n = 0;
  }

  Sum revenue;
  size_t num_rows = 0;  // in the sum

 private:
  bool SumIn64Bits(const LineItems& items, Rows* rows);
  void SumIn128Bits(const LineItems& items, const Rows& rows);

  Rows rows_[2];
  uint32_t current_ = 0;  // of rows_
  uint32_t kept_[kBatchRows];
  int64_t discount_[kBatchRows], quantity_[kBatchRows], price_[kBatchRows];
};

bool Worker::SumIn64Bits(const LineItems& items, Rows* rows) {
  const size_t first = rows->first;
  const uint32_t* all = rows->rows;
  const unsigned discount_bits = Gather(rows->n, discount_, [&](uint32_t j) { return items.discount[first + all[j]]; });
  Gather(rows->n, quantity_, [&](uint32_t j) { return items.quantity[first + all[j]]; });
  const uint32_t num_kept = Select(rows->n, kept_, [&](uint32_t j) {
    return (discount_[j] >= kLeastDiscount) & (discount_[j] <= kMostDiscount) & (quantity_[j] < kQuantityBelow);
  });
  for (uint32_t k = 0; k < num_kept; ++k) __builtin_prefetch(&items.price[first + all[kept_[k]]]);
  const unsigned price_bits = Gather(num_kept, price_, [&](uint32_t k) { return items.price[first + all[kept_[k]]]; });
  if (price_bits + discount_bits + kBatchBits > kSafeBits) return false;
  int64_t sum = 0;
  for (uint32_t k = 0; k < num_kept; ++k) sum += price_[k] * discount_[kept_[k]];
  revenue.Add(sum);
  num_rows += num_kept;
  return true;
}

void Worker::SumIn128Bits(const LineItems& items, const Rows& rows) {
  for (uint32_t j = 0; j < rows.n; ++j) {
    const size_t row = rows.first + rows.rows[j];
    const __int128 discount = items.discount[row];
    if (discount < kLeastDiscount || discount > kMostDiscount || items.quantity[row] >= kQuantityBelow) continue;
    revenue.AddProduct(items.price[row], discount);
    ++num_rows;
  }
}

}  // namespace

std::string Query6(TableReader* tables, unsigned num_threads, ResultTable* result) {
  const LineItems items = {tables->NumRows("lineitem"), tables->Date("lineitem", "l_shipdate"),
                           tables->Money("lineitem", "l_quantity"), tables->Money("lineitem", "l_extendedprice"),
                           tables->Money("lineitem", "l_discount")};
  if (!tables->error().empty()) return tables->error();
  std::vector<Worker> workers(num_threads);
  ForEachBatch(items.num_rows, num_threads,
               [&](unsigned thread, size_t first, uint32_t n) { workers[thread].AddBatch(items, first, n); });
  Sum revenue;
  size_t num_rows = 0;
  for (Worker& worker : workers) {
    worker.Finish(items);
    revenue.Merge(worker.revenue);
    num_rows += worker.num_rows;
  }
  if (revenue.overflow) return kOverflow;
  if (num_rows == 0) result->AddNulls("revenue", 1);
  else result->Add("revenue", std::vector<__int128>{revenue.value}, 4);
  return "";
}

}  // namespace quern::bench
