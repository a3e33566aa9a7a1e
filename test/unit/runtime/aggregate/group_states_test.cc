// SPDX-License-Identifier: Apache-2.0
// States of groups: the sum of two halves equals the result of one pass, saved states mean the same, and results are
// exact at the extremes.
#include "runtime/aggregate/group_states.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::BoolColumn;
using test::ColumnPtr;
using test::Message;
using test::NumberColumn;
using test::WithNulls;

constexpr __int128 kLargest128 = (static_cast<__int128>(INT64_MAX) << 64) | static_cast<__int128>(UINT64_MAX);

// One group with one aggregate, updated by the generic kernel.
class Group {
 public:
  explicit Group(const std::string& aggregate)
      : descriptor_(test::ShapeOf("aggregate aggs=" + aggregate)),
        memory_(nullptr),
        words_(descriptor_->group()->tuple_bytes / 8),
        tuple_(reinterpret_cast<uint8_t*>(words_.data())) {}

  bool Add(const std::vector<ColumnPtr>& columns, uint32_t n, uint64_t first_row_id = 0) {
    std::vector<QuernColumn> raw;
    for (const ColumnPtr& column : columns) raw.push_back(column->column);
    std::vector<uint32_t> rows(n);
    std::vector<uint8_t*> tuples(n, tuple_);
    for (uint32_t i = 0; i < n; ++i) rows[i] = i;
    uint8_t overflowed = 0;
    QuernUpdateArgs args = {};
    args.descriptor = descriptor_->get();
    args.columns = raw.data();
    args.rows = rows.data();
    args.first_row_id = first_row_id;
    args.tuples = tuples.data();
    args.n = args.num_rows = n;
    args.overflowed = &overflowed;
    GenericAggregateKernel().update(&args);
    return overflowed == 0;
  }
  absl::Status Merge(const Group& from) {
    uint8_t* source = from.tuple_;
    return MergeStates(*descriptor_, &tuple_, &source, 1, &memory_);
  }
  std::string Saved() const {
    std::string bytes;
    SaveState(*descriptor_, 0, tuple_, &bytes);
    return bytes;
  }
  absl::Status MergeSaved(std::string_view bytes) { return MergeSavedState(*descriptor_, 0, bytes, tuple_, &memory_); }
  std::string Result() const {
    OutputBatch out(AggregateOutputTypes(descriptor_->spec()), 1, nullptr);
    EXPECT_EQ(out.Reset(), absl::OkStatus());
    const auto n = WriteResults(*descriptor_, 0, &tuple_, 1, out.columns(), 0);
    EXPECT_TRUE(n.ok()) << n.status();
    return test::CellOf(out.column(0), out.type(0), 0);
  }
  bool IsZero() const { return words_ == std::vector<uint64_t>(words_.size()); }

 private:
  std::shared_ptr<AggregateDescriptor> descriptor_;
  AccumulatorMemory memory_;
  std::vector<uint64_t> words_;
  uint8_t* tuple_;
};

template <class T>
std::string ResultOf(const std::string& aggregate, const std::vector<T>& values) {
  Group group(aggregate);
  EXPECT_TRUE(group.Add({NumberColumn(values)}, static_cast<uint32_t>(values.size()))) << aggregate;
  return group.Result();
}

// ---- every update function ----

struct Case {
  const char* aggregate;
  std::string none, all;  // saved states: of no rows; of -3 -2 .. 4 (x) and 6 4 2 .. -8 (y)
};

ColumnPtr NumbersOf(const ColumnType& type, const std::vector<int64_t>& values) {
  const Storage storage = RowOf(type.id).storage;
  if (type.id == TypeId::kF32) return NumberColumn(std::vector<float>(values.begin(), values.end()));
  if (type.id == TypeId::kF64) return NumberColumn(std::vector<double>(values.begin(), values.end()));
  if (storage == kBit) return BoolColumn(std::vector<bool>(values.begin(), values.end()));
  if (storage == k8) return NumberColumn(std::vector<int8_t>(values.begin(), values.end()));
  if (storage == k16) return NumberColumn(std::vector<int16_t>(values.begin(), values.end()));
  if (storage == k32) return NumberColumn(std::vector<int32_t>(values.begin(), values.end()));
  if (storage == k128) return NumberColumn(std::vector<__int128>(values.begin(), values.end()));
  return NumberColumn(values);
}

std::vector<ColumnPtr> ColumnsOf(const std::string& aggregate, int64_t begin, int64_t end) {
  const AggregationSpec spec = *ParseSpecOf<AggregationSpec>("aggregate aggs=" + aggregate);
  std::vector<ColumnPtr> columns;
  for (size_t a = 0; a < spec.aggregates[0].arguments.size(); ++a) {
    std::vector<int64_t> values;
    for (int64_t i = begin; i < end; ++i) values.push_back(a == 0 ? i : -2 * i);
    columns.push_back(NumbersOf(spec.aggregates[0].arguments[a], values));
  }
  return columns;
}

const std::vector<Case>& AllCases() {
  static const std::vector<Case> cases = {
      {"count_star", "0", "8"},
      {"count(i64)", "0", "8"},
      {"sum(i32)", "null", "4"},
      {"sum(f32)", "null", "4"},
      {"sum128(i8)", "null", "4"},
      {"sum(decimal128)", "null", "4"},
      {"avg(i16)", "null", "0.5"},
      {"avg(i64)", "null", "0.5"},
      {"avg(f64)", "null", "0.5"},
      {"avg(decimal128)", "null", "1"},
      {"min(i8)", "null", "-3"},
      {"max(i16)", "null", "4"},
      {"min(f32)", "null", "-3"},
      {"max(f64)", "null", "4"},
      {"min(decimal128)", "null", "-3"},
      {"max(decimal128)", "null", "4"},
      {"any(i64)", "null", "4"},
      {"any(decimal128)", "null", "4"},
      {"first(i32)", "null", "-3"},
      {"last(f64)", "null", "4"},
      {"first(decimal128)", "null", "-3"},
      {"last(decimal128)", "null", "4"},
      {"bool_and(bool)", "null", "false"},
      {"bool_or(bool)", "null", "true"},
      {"bit_and(i8)", "null", "0"},
      {"bit_or(i64)", "null", "-1"},
      {"bit_xor(i16)", "null", "-8"},
      {"var_pop(i64)", "null", "5.25"},
      {"var_samp(f64)", "null", "6"},
      {"stddev_pop(f64)", "null", "2.29128784747792"},
      {"stddev_samp(i32)", "null", "2.44948974278318"},
      {"covar_pop(f64,f64)", "null", "-10.5"},
      {"covar_samp(i64,f32)", "null", "-12"},
      {"corr(f64,i8)", "null", "-1"},
  };
  return cases;
}

TEST(GroupStates, OnePassGivesTheResult) {
  for (const Case& c : AllCases()) {
    Group group(c.aggregate);
    EXPECT_TRUE(group.Add(ColumnsOf(c.aggregate, -3, 5), 8)) << c.aggregate;
    EXPECT_EQ(group.Result(), c.all) << c.aggregate;
  }
}

TEST(GroupStates, ZeroBytesAreNoRows) {
  for (const Case& c : AllCases()) {
    Group group(c.aggregate), other(c.aggregate);
    EXPECT_EQ(group.Result(), c.none) << c.aggregate;
    EXPECT_EQ(group.Merge(other), absl::OkStatus());
    EXPECT_EQ(group.MergeSaved(other.Saved()), absl::OkStatus());
    EXPECT_TRUE(group.IsZero()) << c.aggregate;
  }
}

TEST(GroupStates, TwoHalvesAreTheWhole) {
  for (const Case& c : AllCases()) {
    for (int64_t middle = -3; middle <= 5; ++middle) {
      Group whole(c.aggregate), saved(c.aggregate), low(c.aggregate), high(c.aggregate);
      EXPECT_TRUE(low.Add(ColumnsOf(c.aggregate, -3, middle), static_cast<uint32_t>(middle + 3)));
      EXPECT_TRUE(high.Add(ColumnsOf(c.aggregate, middle, 5), static_cast<uint32_t>(5 - middle), 100));
      for (const Group* half : {&low, &high}) {
        EXPECT_EQ(whole.Merge(*half), absl::OkStatus());
        EXPECT_EQ(saved.MergeSaved(half->Saved()), absl::OkStatus());
      }
      EXPECT_EQ(whole.Result(), c.all) << c.aggregate << " " << middle;
      EXPECT_EQ(saved.Result(), c.all) << c.aggregate << " " << middle;
    }
  }
}

// ---- sums ----

TEST(GroupStates, SumsFillTheirBitsAndNoMore) {
  EXPECT_EQ(ResultOf<int64_t>("sum(i64)", {INT64_MAX, -1, 1}), "9223372036854775807");
  EXPECT_EQ(ResultOf<int64_t>("sum(i64)", {INT64_MIN, 0}), "-9223372036854775808");
  EXPECT_EQ(ResultOf<uint64_t>("sum(u64)", {UINT64_MAX - 1, 1}), "18446744073709551615");
  EXPECT_FALSE(Group("sum(i64)").Add({NumberColumn<int64_t>({INT64_MAX, 1})}, 2));
  EXPECT_FALSE(Group("sum(i64)").Add({NumberColumn<int64_t>({INT64_MIN, -1})}, 2));
  EXPECT_FALSE(Group("sum(u64)").Add({NumberColumn<uint64_t>({UINT64_MAX, 1})}, 2));
  EXPECT_FALSE(Group("sum(decimal128)").Add({NumberColumn<__int128>({kLargest128, 1})}, 2));
  EXPECT_FALSE(Group("sum(decimal128)").Add({NumberColumn<__int128>({-kLargest128, -2})}, 2));
  EXPECT_FALSE(Group("avg(decimal128)").Add({NumberColumn<__int128>({kLargest128, 1})}, 2));
}

TEST(GroupStates, Sum128TakesWhat64BitsDoNot) {
  EXPECT_EQ(ResultOf<int64_t>("sum128(i64)", {INT64_MIN, INT64_MIN}), "-18446744073709551616");
  EXPECT_EQ(ResultOf<uint64_t>("sum128(u64)", {UINT64_MAX, UINT64_MAX}), "36893488147419103230");
}

TEST(GroupStates, AMergeThatDoesNotFitIsAnError) {
  const auto error = [](const char* aggregate, const ColumnPtr& a, const ColumnPtr& b) {
    Group one(aggregate), two(aggregate), saved(aggregate);
    EXPECT_TRUE(one.Add({a}, 1) && two.Add({b}, 1) && saved.Add({a}, 1));
    const absl::Status status = one.Merge(two);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(saved.MergeSaved(two.Saved()), status);
    return Message(status);
  };
  EXPECT_EQ(error("sum(i64)", NumberColumn<int64_t>({INT64_MIN}), NumberColumn<int64_t>({-1})),
            "sum out of range: sum(i64); accepted: sums within 64 bits, or sum128");
  EXPECT_EQ(error("sum(u64)", NumberColumn<uint64_t>({UINT64_MAX}), NumberColumn<uint64_t>({UINT64_MAX})),
            "sum out of range: sum(u64); accepted: sums within 64 bits, or sum128");
  EXPECT_EQ(error("avg(decimal128)", NumberColumn<__int128>({kLargest128}), NumberColumn<__int128>({kLargest128})),
            "sum out of range: avg(decimal128); accepted: sums within 128 bits");
}

TEST(GroupStates, AveragesAreExactBeforeTheyAreDivided) {
  EXPECT_EQ(ResultOf<int64_t>("avg(i64)", {INT64_MAX, INT64_MAX, -6}),
            ResultOf<double>("avg(f64)", {12297829382473034408.0 / 2}));
  EXPECT_EQ(ResultOf<uint64_t>("avg(u64)", {UINT64_MAX, 1}), ResultOf<double>("avg(f64)", {9223372036854775808.0}));
  EXPECT_EQ(ResultOf<uint32_t>("avg(u32)", {UINT32_MAX, UINT32_MAX}), "4294967295");
}

TEST(GroupStates, AveragesOfDecimalsAreRoundedHalfAwayFromZero) {
  using Wide = __int128;
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {1, 2}), "2");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {-1, -2}), "-2");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {1, 1, 2}), "1");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {1, 2, 2}), "2");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {-1, -1, -2}), "-1");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {-3, 3}), "0");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {-1, 0}), "-1");
  EXPECT_EQ(ResultOf<Wide>("avg(decimal128)", {kLargest128}), "170141183460469231731687303715884105727");
}

// ---- extremes ----

TEST(GroupStates, ExtremesOfFloatsPutNanAboveAllNumbers) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  EXPECT_EQ(ResultOf<double>("max(f64)", {1, nan, inf}), "nan");
  EXPECT_EQ(ResultOf<double>("max(f64)", {1, -nan, inf}), "nan");
  EXPECT_EQ(ResultOf<double>("min(f64)", {1, nan, -inf}), "-inf");
  EXPECT_EQ(ResultOf<double>("min(f64)", {-nan}), "nan");
  EXPECT_EQ(ResultOf<double>("min(f64)", {-nan, inf}), "inf");
  EXPECT_EQ(ResultOf<float>("max(f32)", {1, -std::nanf("")}), "nan");
  EXPECT_EQ(ResultOf<float>("min(f32)", {-std::nanf(""), HUGE_VALF}), "inf");
  EXPECT_EQ(ResultOf<float>("max(f32)", {-HUGE_VALF}), "-inf");
}

TEST(GroupStates, ExtremesOfIntegersAreThoseOfTheirType) {
  EXPECT_EQ(ResultOf<uint64_t>("max(u64)", {UINT64_MAX, 0}), "18446744073709551615");
  EXPECT_EQ(ResultOf<uint64_t>("min(u64)", {UINT64_MAX, 0}), "0");
  EXPECT_EQ(ResultOf<int64_t>("min(i64)", {INT64_MAX, INT64_MIN}), "-9223372036854775808");
  EXPECT_EQ(ResultOf<uint8_t>("max(u8)", {255, 1}), "255");
  EXPECT_EQ(ResultOf<int8_t>("max(i8)", {-1, -128}), "-1");
  EXPECT_EQ(ResultOf<__int128>("min(decimal128)", {-kLargest128 - 1, kLargest128}),
            "-170141183460469231731687303715884105728");
}

// ---- bits ----

TEST(GroupStates, BitFunctionsHaveTheWidthOfTheirType) {
  EXPECT_EQ(ResultOf<int8_t>("bit_and(i8)", {-1, -2}), "-2");
  EXPECT_EQ(ResultOf<uint16_t>("bit_and(u16)", {0xffff, 0x8001}), "32769");
  EXPECT_EQ(ResultOf<int32_t>("bit_and(i32)", {-1}), "-1");
  EXPECT_EQ(ResultOf<uint64_t>("bit_and(u64)", {UINT64_MAX}), "18446744073709551615");
  EXPECT_EQ(ResultOf<int64_t>("bit_or(i64)", {INT64_MIN, 1}), "-9223372036854775807");
  EXPECT_EQ(ResultOf<int16_t>("bit_xor(i16)", {-1, 5, -1}), "5");
}

TEST(GroupStates, BooleansOfNullsAndValues) {
  const auto result = [](const char* aggregate, const std::vector<bool>& values, const std::vector<bool>& valid) {
    Group group(aggregate);
    EXPECT_TRUE(group.Add({WithNulls(BoolColumn(values), valid)}, static_cast<uint32_t>(values.size())));
    return group.Result();
  };
  EXPECT_EQ(result("bool_and(bool:nullable)", {true, false}, {true, false}), "true");
  EXPECT_EQ(result("bool_and(bool:nullable)", {true, false}, {true, true}), "false");
  EXPECT_EQ(result("bool_or(bool:nullable)", {true, false}, {false, true}), "false");
  EXPECT_EQ(result("bool_or(bool:nullable)", {true, false}, {false, false}), "null");
  EXPECT_EQ(result("min(bool:nullable)", {true, false}, {true, true}), "false");
  EXPECT_EQ(result("max(bool:nullable)", {true, false}, {true, true}), "true");
}

// ---- moments ----

TEST(GroupStates, SamplesOfOneValueAreNull) {
  EXPECT_EQ(ResultOf<double>("var_samp(f64)", {3}), "null");
  EXPECT_EQ(ResultOf<double>("stddev_samp(f64)", {3}), "null");
  EXPECT_EQ(ResultOf<double>("var_pop(f64)", {3}), "0");
  Group covariance("covar_samp(f64,f64)"), correlation("corr(f64,f64)");
  const auto three = NumberColumn<double>({3, 3});
  EXPECT_TRUE(covariance.Add({three, three}, 1) && correlation.Add({three, NumberColumn<double>({1, 2})}, 2));
  EXPECT_EQ(covariance.Result(), "null");
  EXPECT_EQ(correlation.Result(), "null");  // x is constant
}

// A difference of sums of squares would lose all digits.
TEST(GroupStates, VariancesFarFromZeroKeepTheirDigits) {
  const std::vector<double> values = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  EXPECT_EQ(ResultOf<double>("var_samp(f64)", values), "30");
  Group low("var_samp(f64)"), high("var_samp(f64)");
  EXPECT_TRUE(low.Add({NumberColumn<double>({values[0]})}, 1));
  EXPECT_TRUE(high.Add({NumberColumn<double>({values[1], values[2], values[3]})}, 3));
  EXPECT_EQ(low.Merge(high), absl::OkStatus());
  EXPECT_EQ(low.Result(), "30");
}

// ---- saved states ----

TEST(GroupStates, BytesThatNobodySavedAreRefused) {
  Group group("sum(i64)");
  for (const std::string& bytes :
       {std::string(), std::string(8, '\0'), std::string(10, '\0'), std::string(8, '\0') + "\2"}) {
    EXPECT_EQ(Message(group.MergeSaved(bytes)), "saved state of sum(i64) is damaged: " + std::to_string(bytes.size()) +
                                                    " bytes; accepted: bytes that this version wrote");
  }
  EXPECT_TRUE(group.IsZero());
}

}  // namespace
}  // namespace quern
