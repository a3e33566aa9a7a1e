// SPDX-License-Identifier: Apache-2.0
// Query 9: six tables. Green parts leave one supply in 19; the line items of these supplies are one in 19 of all:
//
//     parts       name with "green"         -> filter of parts
//     suppliers   nation's name             -> table of suppliers
//     supplies    filter | probe supplier   -> table of part and supplier, filter of their parts
//     orders                                -> table of all orders
//     line items  filter | probe supply | probe order | profit, added to the group of nation and year
//
// Orders are the table, as in queries/tpch/9.quern: an array of 6 M cells, where
// their keys allow one, costs less to fill than a hash table of the line items. Names of nations become numbers before
// the joins, the same number for the same name.
#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/pipelines/hand_written/batches.h"
#include "bench/pipelines/hand_written/contains.h"
#include "bench/pipelines/hand_written/join_table.h"
#include "bench/pipelines/hand_written/queries.h"

namespace quern::bench {
namespace {

struct Tables {
  size_t num_parts, num_suppliers, num_nations, num_supplies, num_orders, num_items;
  const int64_t* part_key;
  Texts part_name;
  const int64_t *supplier_key, *supplier_nation;
  const int64_t* nation_key;
  Texts nation_name;
  const int64_t *supply_part, *supply_supplier;
  const int64_t* supply_cost;
  const int64_t* order_key;
  const int32_t* order_date;
  const int64_t *item_order, *item_part, *item_supplier;
  const int64_t *price, *discount, *quantity;
};

Tables Read(TableReader* tables) {
  return {tables->NumRows("part"),
          tables->NumRows("supplier"),
          tables->NumRows("nation"),
          tables->NumRows("partsupp"),
          tables->NumRows("orders"),
          tables->NumRows("lineitem"),
          tables->Int64("part", "p_partkey"),
          tables->Text("part", "p_name"),
          tables->Int64("supplier", "s_suppkey"),
          tables->Int64("supplier", "s_nationkey"),
          tables->Int64("nation", "n_nationkey"),
          tables->Text("nation", "n_name"),
          tables->Int64("partsupp", "ps_partkey"),
          tables->Int64("partsupp", "ps_suppkey"),
          tables->Money("partsupp", "ps_supplycost"),
          tables->Int64("orders", "o_orderkey"),
          tables->Date("orders", "o_orderdate"),
          tables->Int64("lineitem", "l_orderkey"),
          tables->Int64("lineitem", "l_partkey"),
          tables->Int64("lineitem", "l_suppkey"),
          tables->Money("lineitem", "l_extendedprice"),
          tables->Money("lineitem", "l_discount"),
          tables->Money("lineitem", "l_quantity")};
}

std::vector<int64_t> GreenParts(const Tables& tables, unsigned num_threads) {
  std::vector<std::vector<int64_t>> keys(num_threads);
  ForEachBatch(tables.num_parts, num_threads, [&](unsigned thread, size_t first, uint32_t n) {
    ForEachTextWithGreen(tables.part_name, first, n, [&](size_t row) { keys[thread].push_back(tables.part_key[row]); });
  });
  return Concatenated(keys);
}

// Suppliers, each with the number of its nation's name.
struct Suppliers {
  std::vector<int64_t> keys;
  std::vector<uint32_t> names;         // by supplier
  std::vector<std::string> all_names;  // by number
};

Suppliers SuppliersOf(const Tables& tables) {
  Suppliers suppliers;
  std::map<std::string_view, uint32_t> numbers;
  std::vector<uint32_t> name_of_nation;
  for (size_t nation = 0; nation < tables.num_nations; ++nation) {
    const auto [found, is_new] = numbers.try_emplace(tables.nation_name[nation], numbers.size());
    if (is_new) suppliers.all_names.emplace_back(found->first);
    name_of_nation.push_back(found->second);
  }
  const JoinTable<int64_t> nations(tables.nation_key, tables.num_nations);
  std::vector<Match> matches;
  for (size_t first = 0; first < tables.num_suppliers; first += kBatchRows) {
    const int64_t* keys = tables.supplier_nation + first;
    const uint32_t n = static_cast<uint32_t>(std::min<size_t>(kBatchRows, tables.num_suppliers - first));
    const uint32_t num_matches =
        nations.Probe(n, &matches, [&](uint32_t i) { return keys[i]; }, [](uint32_t i) { return i; });
    for (uint32_t m = 0; m < num_matches; ++m) {
      suppliers.keys.push_back(tables.supplier_key[first + matches[m].row]);
      suppliers.names.push_back(name_of_nation[matches[m].tuple]);
    }
  }
  return suppliers;
}

// What a line item needs of its supply.
struct Supply {
  int64_t cost;
  uint32_t name;
};

struct GreenSupplies {
  std::vector<KeyPair> keys;
  std::vector<Supply> supplies;
};

GreenSupplies GreenSuppliesOf(const Tables& tables, const std::vector<int64_t>& parts, const Suppliers& suppliers,
                              unsigned num_threads) {
  const KeyFilter filter(parts.data(), parts.size());
  const JoinTable<int64_t> part_table(parts.data(), parts.size());
  const JoinTable<int64_t> supplier_table(suppliers.keys.data(), suppliers.keys.size());
  std::vector<std::vector<KeyPair>> keys(num_threads);
  std::vector<std::vector<Supply>> supplies(num_threads);
  std::vector<std::vector<Match>> matches(num_threads);
  ForEachBatch(tables.num_supplies, num_threads, [&](unsigned thread, size_t first, uint32_t n) {
    uint32_t rows[kBatchRows];
    for (uint32_t i = 0; i < n; ++i) rows[i] = i;
    n = KeepMatching(filter, part_table, tables.supply_part + first, rows, n, &matches[thread]);
    const int64_t* supplier = tables.supply_supplier + first;
    const uint32_t num_matches = supplier_table.Probe(
        n, &matches[thread], [&](uint32_t i) { return supplier[rows[i]]; }, [&](uint32_t i) { return rows[i]; });
    for (uint32_t m = 0; m < num_matches; ++m) {
      const Match match = matches[thread][m];
      const size_t row = first + match.row;
      keys[thread].push_back({tables.supply_part[row], tables.supply_supplier[row]});
      supplies[thread].push_back({tables.supply_cost[row], suppliers.names[match.tuple]});
    }
  });
  return {Concatenated(keys), Concatenated(supplies)};
}

int32_t YearOf(int32_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  return static_cast<int>(date.year());
}

// Sums by the number of a nation's name and a year: an array while the years lie within 64 of the first one met.
class Groups {
 public:
  Sum& Of(uint32_t name, int32_t year) {
    if (cells_.empty()) first_year_ = year - static_cast<int32_t>(kYears / 2);
    const uint32_t place = static_cast<uint32_t>(year) - static_cast<uint32_t>(first_year_);
    if (place >= kYears) return others_[{name, year}];
    const size_t cell = name * kYears + place;
    if (cell >= cells_.size()) cells_.resize((name + 1) * kYears);
    cells_[cell].is_met = true;
    return cells_[cell].sum;
  }

  // Calls use(name, year, sum) for all groups.
  template <class Use>
  void ForEach(Use&& use) const {
    for (size_t cell = 0; cell < cells_.size(); ++cell)
      if (cells_[cell].is_met)
        use(static_cast<uint32_t>(cell / kYears), first_year_ + static_cast<int32_t>(cell % kYears), cells_[cell].sum);
    for (const auto& [keys, sum] : others_) use(keys.first, keys.second, sum);
  }

 private:
  struct Cell {
    Sum sum;
    bool is_met = false;
  };
  static constexpr size_t kYears = 64;

  int32_t first_year_ = 0;
  std::vector<Cell> cells_;
  std::map<std::pair<uint32_t, int32_t>, Sum> others_;
};

class Worker {
 public:
  void AddBatch(const Tables& tables, const KeyFilter& parts, const JoinTable<KeyPair>& table,
                const JoinTable<int64_t>& orders, const std::vector<Supply>& supplies, size_t first, uint32_t n);

  Groups groups;

 private:
  void AddMatches(const Tables& tables, const std::vector<Supply>& supplies, size_t first, const Match* of_supply,
                  const Match* of_order, uint32_t n);

  enum Column { kPrice, kDiscount, kQuantity, kCost, kNumColumns };

  uint32_t rows_[kBatchRows];
  std::vector<Match> of_supplies_, of_orders_;  // the latter's rows are numbers of the former
  int64_t values_[kNumColumns][kBatchRows];
};

void Worker::AddBatch(const Tables& tables, const KeyFilter& parts, const JoinTable<KeyPair>& table,
                      const JoinTable<int64_t>& orders, const std::vector<Supply>& supplies, size_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) rows_[i] = i;
  n = parts.Keep(tables.item_part + first, rows_, n);
  const int64_t *part = tables.item_part + first, *supplier = tables.item_supplier + first;
  const uint32_t num_supplies = table.Probe(
      n, &of_supplies_, [&](uint32_t i) { return KeyPair{part[rows_[i]], supplier[rows_[i]]}; },
      [&](uint32_t i) { return rows_[i]; });
  for (uint32_t begin = 0; begin < num_supplies; begin += kBatchRows) {
    const Match* matches = of_supplies_.data() + begin;
    const uint32_t num_orders = orders.Probe(
        std::min(kBatchRows, num_supplies - begin), &of_orders_,
        [&](uint32_t i) { return tables.item_order[first + matches[i].row]; }, [](uint32_t i) { return i; });
    for (uint32_t at = 0; at < num_orders; at += kBatchRows)
      AddMatches(tables, supplies, first, matches, of_orders_.data() + at, std::min(kBatchRows, num_orders - at));
  }
}

void Worker::AddMatches(const Tables& tables, const std::vector<Supply>& supplies, size_t first, const Match* of_supply,
                        const Match* of_order, uint32_t n) {
  const auto item = [&](uint32_t m) { return first + of_supply[of_order[m].row].row; };
  const auto supply = [&](uint32_t m) -> const Supply& { return supplies[of_supply[of_order[m].row].tuple]; };
  for (uint32_t m = 0; m < n; ++m) {
    __builtin_prefetch(&tables.order_date[of_order[m].tuple]);
    __builtin_prefetch(&supply(m));
    __builtin_prefetch(&tables.price[item(m)]);
    __builtin_prefetch(&tables.discount[item(m)]);
    __builtin_prefetch(&tables.quantity[item(m)]);
  }
  const unsigned price_bits = Gather(n, values_[kPrice], [&](uint32_t m) { return tables.price[item(m)]; });
  const unsigned discount_bits = Gather(n, values_[kDiscount], [&](uint32_t m) { return tables.discount[item(m)]; });
  const unsigned quantity_bits = Gather(n, values_[kQuantity], [&](uint32_t m) { return tables.quantity[item(m)]; });
  const unsigned cost_bits = Gather(n, values_[kCost], [&](uint32_t m) { return supply(m).cost; });
  const bool fits = price_bits + BitsWithHundred(discount_bits) < kSafeBits && cost_bits + quantity_bits < kSafeBits;
  for (uint32_t m = 0; m < n; ++m) {
    Sum& sum = groups.Of(supply(m).name, YearOf(tables.order_date[of_order[m].tuple]));
    if (fits) {
      sum.Add(values_[kPrice][m] * (100 - values_[kDiscount][m]) - values_[kCost][m] * values_[kQuantity][m]);
      continue;
    }
    Sum factor, cost;
    factor.Add(100);
    factor.Subtract(tables.discount[item(m)]);
    cost.AddProduct(supply(m).cost, tables.quantity[item(m)]);
    sum.AddProduct(tables.price[item(m)], factor.value);
    sum.Subtract(cost.value);
    sum.overflow |= factor.overflow || cost.overflow;
  }
}

std::string MakeResult(const std::vector<Worker>& workers, const std::vector<std::string>& names, ResultTable* result) {
  std::map<std::pair<uint32_t, int32_t>, Sum> groups;
  for (const Worker& worker : workers)
    worker.groups.ForEach(
        [&](uint32_t name, int32_t year, const Sum& sum) { groups[std::pair(name, year)].Merge(sum); });
  std::vector<std::string> nation;
  std::vector<int64_t> year;
  std::vector<__int128> profit;
  for (const auto& [keys, sum] : groups) {
    if (sum.overflow) return kOverflow;
    nation.push_back(names[keys.first]);
    year.push_back(keys.second);
    profit.push_back(sum.value);
  }
  result->Add("nation", nation);
  result->Add("o_year", year);
  result->Add("sum_profit", profit, 4);
  return "";
}

}  // namespace

std::string Query9(TableReader* reader, unsigned num_threads, ResultTable* result) {
  const Tables tables = Read(reader);
  if (!reader->error().empty()) return reader->error();

  // With one thread, the table of orders is made where it is first needed.
  std::future<JoinTable<int64_t>> orders =
      std::async(num_threads > 1 ? std::launch::async : std::launch::deferred,
                 [&] { return JoinTable<int64_t>(tables.order_key, tables.num_orders); });
  const Suppliers suppliers = SuppliersOf(tables);
  const unsigned num_others = std::max(1u, num_threads - 1);
  const GreenSupplies green = GreenSuppliesOf(tables, GreenParts(tables, num_others), suppliers, num_others);
  std::vector<int64_t> parts;
  parts.reserve(green.keys.size());
  for (const KeyPair& key : green.keys) parts.push_back(key.first);
  const KeyFilter filter(parts.data(), parts.size());
  const JoinTable<KeyPair> table(green.keys.data(), green.keys.size());
  const JoinTable<int64_t> order_table = orders.get();

  std::vector<Worker> workers(num_threads);
  ForEachBatch(tables.num_items, num_threads, [&](unsigned thread, size_t first, uint32_t n) {
    workers[thread].AddBatch(tables, filter, table, order_table, green.supplies, first, n);
  });
  return MakeResult(workers, suppliers.all_names, result);
}

}  // namespace quern::bench
