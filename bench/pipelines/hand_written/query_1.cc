// SPDX-License-Identifier: Apache-2.0
// Query 1: 98 % of the line items in four groups, six sums of decimals. A batch passes these loops:
//
//     dates <= 1998-09-02          numbers of rows that stay
//     two texts to one group       "A", "F" -> 0x4146 -> group 0; where both texts have a byte in the whole batch
//     four decimals to 64 bits     the bits of the largest
//     two products                 each over the whole batch, eight rows at a time
//     six sums of the row's group  two copies of each group take turns, since an addition waits for the one before it
//
// The 64-bit sums of a batch go to 128-bit sums at its end. A batch whose products may need more bits, or that has more
// than 16 groups, adds each row to the 128-bit sums.
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/pipelines/hand_written/batches.h"
#include "bench/pipelines/hand_written/queries.h"

namespace quern::bench {
namespace {

constexpr int32_t kLastDay = 10471;  // 1998-09-02
constexpr uint32_t kFewGroups = 16;
enum Column { kQuantity, kPrice, kDiscount, kTax, kNumColumns };

struct LineItems {
  size_t num_rows;
  const int32_t* ship_date;
  Texts return_flag, line_status;
  const int64_t* decimals[kNumColumns];
};

struct Group {
  Sum quantity, price, discounted, charge, discount;
  int64_t count = 0;

  void Merge(const Group& other) {
    quantity.Merge(other.quantity);
    price.Merge(other.price);
    discounted.Merge(other.discounted);
    charge.Merge(other.charge);
    discount.Merge(other.discount);
    count += other.count;
  }
  bool overflow() const {
    return quantity.overflow || price.overflow || discounted.overflow || charge.overflow || discount.overflow;
  }
};

// Sums of a batch; a cache line.
struct alignas(64) BatchGroup {
  int64_t quantity, price, discounted, charge, discount, count;
};

// Whether each of n texts has one byte. For offsets 7 8 9 10: yes.
bool HaveOneByte(const int32_t* offsets, uint32_t n) {
  int32_t differences = 0;
  for (uint32_t i = 0; i < n; ++i) differences |= (offsets[i + 1] - offsets[i]) ^ 1;
  return differences == 0;
}

class Worker {
 public:
  void AddBatch(const LineItems& items, size_t first, uint32_t n);

  std::map<std::pair<std::string, std::string>, uint32_t> numbers;  // of groups
  std::vector<Group> groups;

 private:
  uint32_t NumberOf(std::string_view flag, std::string_view status) {
    const auto [found, is_new] = numbers.try_emplace({std::string(flag), std::string(status)}, groups.size());
    if (is_new) groups.emplace_back();
    return found->second;
  }
  void FindGroups(const LineItems& items, size_t first, uint32_t n);
  bool SumIn64Bits(const LineItems& items, size_t first, uint32_t n);
  void SumIn128Bits(const LineItems& items, size_t first, uint32_t n);

  std::vector<uint32_t> number_of_bytes_ = std::vector<uint32_t>(1u << 16);  // plus 1
  uint32_t rows_[kBatchRows], num_rows_ = 0;
  uint32_t group_[kBatchRows];  // of rows_
  int64_t discounted_[kBatchRows], charge_[kBatchRows];
  std::array<std::array<BatchGroup, 2>, kFewGroups> sums_ = {};
};

void Worker::FindGroups(const LineItems& items, size_t first, uint32_t n) {
  const int32_t *flags = items.return_flag.offsets + first, *statuses = items.line_status.offsets + first;
  if (!HaveOneByte(flags, n) || !HaveOneByte(statuses, n)) {
    for (uint32_t j = 0; j < num_rows_; ++j)
      group_[j] = NumberOf(items.return_flag[first + rows_[j]], items.line_status[first + rows_[j]]);
    return;
  }
  const char *flag = items.return_flag.bytes + flags[0], *status = items.line_status.bytes + statuses[0];
  for (uint32_t j = 0; j < num_rows_; ++j) {
    const uint32_t row = rows_[j];
    uint32_t& number = number_of_bytes_[static_cast<uint32_t>(static_cast<uint8_t>(flag[row]) << 8 |
                                                              static_cast<uint8_t>(status[row]))];
    if (number == 0) number = NumberOf({flag + row, 1}, {status + row, 1}) + 1;
    group_[j] = number - 1;
  }
}

bool Worker::SumIn64Bits(const LineItems& items, size_t first, uint32_t n) {
  if (groups.size() > kFewGroups) return false;
  const int64_t* values[kNumColumns];
  unsigned bits[kNumColumns];
  for (uint32_t c = 0; c < kNumColumns; ++c) {
    values[c] = items.decimals[c] + first;
    bits[c] = BitsOf(n, values[c]);
  }
  const unsigned of_charge = bits[kPrice] + BitsWithHundred(bits[kDiscount]) + BitsWithHundred(bits[kTax]);
  if (std::max(of_charge, bits[kQuantity]) + kBatchBits > kSafeBits) return false;

  for (uint32_t i = 0; i < n; ++i) {
    discounted_[i] = values[kPrice][i] * (100 - values[kDiscount][i]);
    charge_[i] = discounted_[i] * (100 + values[kTax][i]);
  }
  for (uint32_t j = 0; j < num_rows_; ++j) {
    const uint32_t row = rows_[j];
    BatchGroup& sums = sums_[group_[j]][j & 1];
    sums.quantity += values[kQuantity][row];
    sums.price += values[kPrice][row];
    sums.discounted += discounted_[row];
    sums.charge += charge_[row];
    sums.discount += values[kDiscount][row];
    ++sums.count;
  }
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (BatchGroup& sums : sums_[g]) {
      groups[g].quantity.Add(sums.quantity);
      groups[g].price.Add(sums.price);
      groups[g].discounted.Add(sums.discounted);
      groups[g].charge.Add(sums.charge);
      groups[g].discount.Add(sums.discount);
      groups[g].count += sums.count;
      sums = {};
    }
  }
  return true;
}

void Worker::SumIn128Bits(const LineItems& items, size_t first, uint32_t) {
  for (uint32_t j = 0; j < num_rows_; ++j) {
    __int128 values[kNumColumns];
    for (uint32_t c = 0; c < kNumColumns; ++c) values[c] = items.decimals[c][first + rows_[j]];
    Sum factor, product;  // factor: 100 - discount, then 100 + tax
    factor.Add(100);
    factor.Subtract(values[kDiscount]);
    product.AddProduct(values[kPrice], factor.value);
    Group& group = groups[group_[j]];
    group.quantity.Add(values[kQuantity]);
    group.price.Add(values[kPrice]);
    group.discounted.Merge(product);
    group.discount.Add(values[kDiscount]);
    factor.value = 100;
    factor.Add(values[kTax]);
    group.charge.AddProduct(product.value, factor.value);
    group.charge.overflow |= factor.overflow || product.overflow;
    ++group.count;
  }
}

void Worker::AddBatch(const LineItems& items, size_t first, uint32_t n) {
  const int32_t* dates = items.ship_date + first;
  num_rows_ = Select(n, rows_, [&](uint32_t i) { return dates[i] <= kLastDay; });
  FindGroups(items, first, n);
  if (!SumIn64Bits(items, first, n)) SumIn128Bits(items, first, n);
}

// The groups of all workers, in the order of their keys. Empty, or an error.
std::string MakeResult(const std::vector<Worker>& workers, ResultTable* result) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const Worker& worker : workers)
    for (const auto& [keys, number] : worker.numbers) groups[keys].Merge(worker.groups[number]);
  std::vector<std::string> flags, statuses;
  std::vector<__int128> quantity, price, discounted, charge;
  std::vector<double> averages[3];
  std::vector<int64_t> count;
  for (const auto& [keys, group] : groups) {
    if (group.overflow()) return kOverflow;
    flags.push_back(keys.first);
    statuses.push_back(keys.second);
    quantity.push_back(group.quantity.value);
    price.push_back(group.price.value);
    discounted.push_back(group.discounted.value);
    charge.push_back(group.charge.value);
    count.push_back(group.count);
    const Sum* const of_averages[3] = {&group.quantity, &group.price, &group.discount};
    for (int i = 0; i < 3; ++i)
      averages[i].push_back(static_cast<double>(of_averages[i]->value) / 100 / static_cast<double>(group.count));
  }
  result->Add("l_returnflag", flags);
  result->Add("l_linestatus", statuses);
  result->Add("sum_qty", quantity, 2);
  result->Add("sum_base_price", price, 2);
  result->Add("sum_disc_price", discounted, 4);
  result->Add("sum_charge", charge, 6);
  result->Add("avg_qty", averages[0]);
  result->Add("avg_price", averages[1]);
  result->Add("avg_disc", averages[2]);
  result->Add("count_order", count);
  return "";
}

}  // namespace

std::string Query1(TableReader* tables, unsigned num_threads, ResultTable* result) {
  const LineItems items = {tables->NumRows("lineitem"),
                           tables->Date("lineitem", "l_shipdate"),
                           tables->Text("lineitem", "l_returnflag"),
                           tables->Text("lineitem", "l_linestatus"),
                           {tables->Money("lineitem", "l_quantity"), tables->Money("lineitem", "l_extendedprice"),
                            tables->Money("lineitem", "l_discount"), tables->Money("lineitem", "l_tax")}};
  if (!tables->error().empty()) return tables->error();
  std::vector<Worker> workers(num_threads);
  ForEachBatch(items.num_rows, num_threads,
               [&](unsigned thread, size_t first, uint32_t n) { workers[thread].AddBatch(items, first, n); });
  return MakeResult(workers, result);
}

}  // namespace quern::bench
