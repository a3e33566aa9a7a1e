// SPDX-License-Identifier: Apache-2.0
// Query 3: two joins, and groups that are known before the last of them. A group is an order, since the keys are those
// of the order and its columns; so the tuples of the table of orders are the groups, and no other table is needed:
//
//     customers   market segment              -> filter of customers
//     orders      date | filter of customers  -> table of orders, filter of orders
//     line items  date | filter of orders | probe | product, added to the tuple's sum
//
// Where an order stands twice, each of its tuples gets the sums, and equal groups are added up at the end.
#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/pipelines/hand_written/batches.h"
#include "bench/pipelines/hand_written/join_table.h"
#include "bench/pipelines/hand_written/queries.h"

namespace quern::bench {
namespace {

constexpr int32_t kDay = 9204;  // 1995-03-15
constexpr std::string_view kSegment = "BUILDING";
constexpr size_t kLimit = 10;

struct Customers {
  size_t num_rows;
  const int64_t* key;
  Texts segment;
};

struct Orders {
  size_t num_rows;
  const int64_t *key, *customer;
  const int32_t *date, *priority;
};

struct LineItems {
  size_t num_rows;
  const int64_t* order;
  const int32_t* ship_date;
  const int64_t *price, *discount;
};

std::vector<int64_t> CustomersOfSegment(const Customers& customers, unsigned num_threads) {
  std::vector<std::vector<int64_t>> keys(num_threads);
  ForEachBatch(customers.num_rows, num_threads, [&](unsigned thread, size_t first, uint32_t n) {
    uint32_t rows[kBatchRows];
    const uint32_t num_rows = Select(n, rows, [&](uint32_t i) { return customers.segment[first + i] == kSegment; });
    for (uint32_t j = 0; j < num_rows; ++j) keys[thread].push_back(customers.key[first + rows[j]]);
  });
  return Concatenated(keys);
}

// Rows of orders before the day, of these customers.
std::vector<uint32_t> OpenOrders(const Orders& orders, const std::vector<int64_t>& customers, unsigned num_threads) {
  const KeyFilter filter(customers.data(), customers.size());
  const JoinTable<int64_t> table(customers.data(), customers.size());
  std::vector<std::vector<uint32_t>> rows_of(num_threads);
  std::vector<std::vector<Match>> matches(num_threads);
  ForEachBatch(orders.num_rows, num_threads, [&](unsigned thread, size_t first, uint32_t n) {
    uint32_t rows[kBatchRows];
    n = Select(n, rows, [dates = orders.date + first](uint32_t i) { return dates[i] < kDay; });
    n = KeepMatching(filter, table, orders.customer + first, rows, n, &matches[thread]);
    for (uint32_t j = 0; j < n; ++j) rows_of[thread].push_back(static_cast<uint32_t>(first + rows[j]));
  });
  return Concatenated(rows_of);
}

class Worker {
 public:
  void AddBatch(const LineItems& items, const KeyFilter& filter, const JoinTable<int64_t>& table, size_t first,
                uint32_t n) {
    const int32_t* dates = items.ship_date + first;
    n = Select(n, rows_, [dates](uint32_t i) { return dates[i] > kDay; });
    n = filter.Keep(items.order + first, rows_, n);
    const uint32_t num_matches = table.Probe(
        n, &matches_, [keys = items.order + first, this](uint32_t i) { return keys[rows_[i]]; },
        [this](uint32_t i) { return rows_[i]; });
    for (uint32_t begin = 0; begin < num_matches; begin += kBatchRows)
      AddMatches(items, first, matches_.data() + begin, std::min(kBatchRows, num_matches - begin));
  }

  std::vector<Sum> sums;        // of tuples
  std::vector<uint8_t> is_met;  // tuples

 private:
  void AddMatches(const LineItems& items, size_t first, const Match* matches, uint32_t n);

  uint32_t rows_[kBatchRows];
  std::vector<Match> matches_;
  int64_t price_[kBatchRows], discount_[kBatchRows];
};

void Worker::AddMatches(const LineItems& items, size_t first, const Match* matches, uint32_t n) {
  for (uint32_t m = 0; m < n; ++m) {
    __builtin_prefetch(&items.price[first + matches[m].row]);
    __builtin_prefetch(&items.discount[first + matches[m].row]);
    __builtin_prefetch(&sums[matches[m].tuple]);
    is_met[matches[m].tuple] = 1;
  }
  const unsigned bits = Gather(n, price_, [&](uint32_t m) { return items.price[first + matches[m].row]; });
  const unsigned discount_bits =
      Gather(n, discount_, [&](uint32_t m) { return items.discount[first + matches[m].row]; });
  if (bits + BitsWithHundred(discount_bits) <= kSafeBits) {
    for (uint32_t m = 0; m < n; ++m) sums[matches[m].tuple].Add(price_[m] * (100 - discount_[m]));
    return;
  }
  for (uint32_t m = 0; m < n; ++m) {
    Sum factor;
    factor.Add(100);
    factor.Subtract(items.discount[first + matches[m].row]);
    sums[matches[m].tuple].AddProduct(items.price[first + matches[m].row], factor.value);
    sums[matches[m].tuple].overflow |= factor.overflow;
  }
}

struct Group {
  int64_t order;
  int32_t date, priority;
  Sum revenue;

  auto Keys() const { return std::tuple(order, date, priority); }
};

// Adds the sums of equal groups up.
void MergeEqual(std::vector<Group>* groups) {
  std::sort(groups->begin(), groups->end(), [](const Group& a, const Group& b) { return a.Keys() < b.Keys(); });
  size_t num_groups = 0;
  for (const Group& group : *groups) {
    if (num_groups != 0 && (*groups)[num_groups - 1].Keys() == group.Keys())
      (*groups)[num_groups - 1].revenue.Merge(group.revenue);
    else (*groups)[num_groups++] = group;
  }
  groups->resize(num_groups);
}

// The tuples that have met a line item; adds the sums of all workers up in those of the first.
std::vector<Group> MakeGroups(const Orders& orders, const std::vector<uint32_t>& rows, std::vector<Worker>* workers) {
  std::vector<Group> groups;
  Worker& all = workers->front();
  for (size_t tuple = 0; tuple < rows.size(); ++tuple) {
    for (size_t thread = 1; thread < workers->size(); ++thread) {
      const Worker& worker = (*workers)[thread];
      if (worker.is_met[tuple] == 0) continue;
      all.sums[tuple].Merge(worker.sums[tuple]);
      all.is_met[tuple] = 1;
    }
    const uint32_t row = rows[tuple];
    if (all.is_met[tuple] != 0)
      groups.push_back({orders.key[row], orders.date[row], orders.priority[row], all.sums[tuple]});
  }
  return groups;
}

std::string MakeResult(std::vector<Group> groups, ResultTable* result) {
  for (const Group& group : groups)
    if (group.revenue.overflow) return kOverflow;
  const size_t num_rows = std::min(groups.size(), kLimit);
  std::partial_sort(groups.begin(), groups.begin() + static_cast<ptrdiff_t>(num_rows), groups.end(),
                    [](const Group& a, const Group& b) {
                      return std::tuple(b.revenue.value, a.date) < std::tuple(a.revenue.value, b.date);
                    });
  groups.resize(num_rows);
  std::vector<int64_t> order;
  std::vector<__int128> revenue;
  std::vector<int32_t> date, priority;
  for (const Group& group : groups) {
    order.push_back(group.order);
    revenue.push_back(group.revenue.value);
    date.push_back(group.date);
    priority.push_back(group.priority);
  }
  result->Add("l_orderkey", order);
  result->Add("revenue", revenue, 4);
  result->AddInt32("o_orderdate", "tdD", date);
  result->AddInt32("o_shippriority", "i", priority);
  return "";
}

}  // namespace

std::string Query3(TableReader* tables, unsigned num_threads, ResultTable* result) {
  const Customers customers = {tables->NumRows("customer"), tables->Int64("customer", "c_custkey"),
                               tables->Text("customer", "c_mktsegment")};
  const Orders orders = {tables->NumRows("orders"), tables->Int64("orders", "o_orderkey"),
                         tables->Int64("orders", "o_custkey"), tables->Date("orders", "o_orderdate"),
                         tables->Int32("orders", "o_shippriority")};
  const LineItems items = {tables->NumRows("lineitem"), tables->Int64("lineitem", "l_orderkey"),
                           tables->Date("lineitem", "l_shipdate"), tables->Money("lineitem", "l_extendedprice"),
                           tables->Money("lineitem", "l_discount")};
  if (!tables->error().empty()) return tables->error();

  const std::vector<uint32_t> rows = OpenOrders(orders, CustomersOfSegment(customers, num_threads), num_threads);
  std::vector<int64_t> keys;
  keys.reserve(rows.size());
  for (const uint32_t row : rows) keys.push_back(orders.key[row]);
  const KeyFilter filter(keys.data(), keys.size());
  const JoinTable<int64_t> table(keys.data(), keys.size());
  std::vector<Worker> workers(num_threads);
  for (Worker& worker : workers) {
    worker.sums.resize(rows.size());
    worker.is_met.resize(rows.size());
  }
  ForEachBatch(items.num_rows, num_threads, [&](unsigned thread, size_t first, uint32_t n) {
    workers[thread].AddBatch(items, filter, table, first, n);
  });
  std::vector<Group> groups = MakeGroups(orders, rows, &workers);
  if (!table.is_unique()) MergeEqual(&groups);
  return MakeResult(std::move(groups), result);
}

}  // namespace quern::bench
