// SPDX-License-Identifier: Apache-2.0
// Sorts that keep only key words, since everything in a tuple can be decoded from them: floats bit by bit, strings by
// their dictionary codes. A value that cannot be decoded from its word (-0, NaNs, one string too many) makes tuples of
// all earlier rows, in this chunk and in others.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/sort/sort_chunk.h"
#include "runtime/sort/sort_decode.h"
#include "test/unit/runtime/sort/sort_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::NumberColumn;
using test::RowIdColumn;
using test::Rows;
using test::SortOf;
using test::SortTuning;
using test::StringColumn;
using test::WithNulls;

constexpr uint64_t kOddNan = 0xfff8000000000001u;
constexpr const char* kFloats = "sort keys=f64:nullable:out,f32:desc:out payload=rowid stable";

// All rows of a sort, as the bytes of its columns.
std::string BytesOfResult(const std::shared_ptr<RowSort>& sort) {
  OutputBatch out(SortOutputTypes(sort->descriptor().spec()), sort->stats().num_rows, nullptr);
  SortReader reader(sort);
  const absl::StatusOr<bool> next = reader.Next(&out);
  EXPECT_TRUE(next.ok() && !*next) << next.status();
  EXPECT_EQ(out.num_rows(), sort->stats().num_rows);
  std::string bytes;
  const uint64_t n = out.num_rows();
  for (size_t c = 0; c < out.num_columns(); ++c) {
    const QuernOutColumn& column = out.column(c);
    const Storage storage = RowOf(out.type(c).id).storage;
    const uint64_t width = storage == kView ? 16 : storage == k32 || storage == kF32 ? 4 : 8;
    if (column.validity != nullptr) bytes.append(reinterpret_cast<const char*>(column.validity), n / 8);
    if (column.offsets != nullptr) bytes.append(static_cast<const char*>(column.offsets), n * 4 + 4);
    else bytes.append(static_cast<const char*>(column.values), n * width);
    if (column.bytes != nullptr) bytes.append(reinterpret_cast<const char*>(column.bytes), column.num_bytes);
  }
  return bytes;
}

bool HasAllTuples(const RowSort& sort) {
  const QuernSortDescriptor& descriptor = *sort.descriptor().get();
  return sort.stats().stored_bytes >=
         sort.stats().input_rows * (descriptor.num_words * 8 + descriptor.rows.tuple_bytes);
}

// ---- floats ----

struct Floats {
  std::vector<double> f64;
  std::vector<float> f32;
};

// Few distinct ones, so that the second key matters, with infinities and the one NaN that words can represent.
Floats SomeFloats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Floats floats;
  for (size_t i = 0; i < n; ++i) {
    const double number = static_cast<double>(random() % 2000) - 1000;
    floats.f64.push_back(random() % 100 == 0   ? INFINITY
                         : random() % 100 == 0 ? std::bit_cast<double>(0x7ff8000000000000u)
                                               : number / 8);
    floats.f32.push_back(random() % 100 == 0 ? -INFINITY : static_cast<float>(random() % 5000) - 2500);
  }
  return floats;
}

// Batches of 10,000 rows; every 19th f64 is null.
void AppendFloats(const Floats& floats, size_t first_row, Appender* local) {
  for (size_t begin = 0; begin < floats.f64.size(); begin += 10000) {
    const auto from = static_cast<ptrdiff_t>(begin),
               to = static_cast<ptrdiff_t>(std::min(begin + 10000, floats.f64.size()));
    std::vector<bool> valid;
    for (ptrdiff_t i = from; i < to; ++i) valid.push_back(i % 19 != 0);
    const ColumnPtr f64 = NumberColumn(std::vector<double>(floats.f64.begin() + from, floats.f64.begin() + to));
    const ColumnPtr f32 = NumberColumn(std::vector<float>(floats.f32.begin() + from, floats.f32.begin() + to));
    BatchView batch = Rows(static_cast<size_t>(to - from), {WithNulls(f64, valid), f32}, {RowIdColumn()});
    batch.first_row_id = first_row + begin;
    ASSERT_EQ(local->Append(batch), absl::OkStatus());
  }
}

std::shared_ptr<RowSort> SortFloats(const std::vector<Floats>& locals, SortMethod method) {
  SortTuning tuning;
  tuning.method = method;
  return SortOfSides(kFloats, tuning, locals, AppendFloats, [](const Floats& floats) { return floats.f64.size(); });
}

void ExpectFloats(const std::vector<Floats>& locals, bool has_tuples) {
  const auto sort = SortFloats(locals, SortMethod::kRadix);
  EXPECT_EQ(HasAllTuples(*sort), has_tuples);
  EXPECT_TRUE(BytesOfResult(sort) == BytesOfResult(SortFloats(locals, SortMethod::kComparison)));
}

TEST(SortDroppedTuples, FloatsComeOutOfTheirWords) {
  for (const size_t n : {size_t{1}, size_t{100}, size_t{3000}, size_t{kChunkRows} + 5000})
    ExpectFloats({SomeFloats(n, 1)}, false);
}

TEST(SortDroppedTuples, OddFloatsComeEarlyAndLate) {
  for (const double odd : {-0.0, std::bit_cast<double>(kOddNan)}) {
    for (const size_t at : {size_t{1}, size_t{2500}, size_t{kChunkRows} + 4001}) {
      Floats floats = SomeFloats(at < kChunkRows ? 5000 : kChunkRows + 5000, 2);
      floats.f64[at] = odd;
      ExpectFloats({floats}, true);
    }
  }
  Floats floats = SomeFloats(5000, 3);
  floats.f32[4000] = -0.0f;
  ExpectFloats({floats}, true);
}

TEST(SortDroppedTuples, OneSideHasAnOddFloat) {
  Floats odd = SomeFloats(3000, 4);
  odd.f64[2000] = -0.0;
  ExpectFloats({SomeFloats(20000, 5), odd, {}}, true);
  ExpectFloats({SomeFloats(20000, 5), SomeFloats(3000, 6), {}}, false);
}

TEST(SortDroppedTuples, OddFloatsAreFound) {
  QuernSortKey key = {};
  key.storage = kF64;
  const auto is_odd = [&key](double value) {
    std::vector<double> values(37, 1.5);
    values[21] = value;
    const std::vector<uint32_t> rows = {3, 21, kNullRow};
    QuernColumn column = {};
    column.values = values.data();
    const bool odd = HasOddFloat(key, column, 1, nullptr, 36);
    EXPECT_EQ(HasOddFloat(key, column, 0, rows.data(), 3), odd);
    EXPECT_FALSE(HasOddFloat(key, column, 22, nullptr, 15));
    return odd;
  };
  for (const double value :
       {0.0, -1.0, 5e-324, -5e-324, double{INFINITY}, -double{INFINITY}, std::bit_cast<double>(0x7ff8000000000000u)})
    EXPECT_FALSE(is_odd(value)) << value;
  for (const uint64_t bits : {uint64_t{1} << 63, kOddNan, uint64_t{0x7ff0000000000001u}, uint64_t{0xfff8000000000000u}})
    EXPECT_TRUE(is_odd(std::bit_cast<double>(bits))) << bits;
}

// ---- strings ----

using Texts = std::vector<std::string>;

Texts SomeTexts(size_t n, size_t num_different, size_t first) {
  Texts texts;
  for (size_t i = 0; i < n; ++i) {
    const size_t number = first + i * 7919 % num_different;
    texts.push_back(number % 31 == 0 ? "" : std::string(number % 4 == 0 ? 20 : 1, 's') + std::to_string(number));
  }
  return texts;
}

// Batches of 10,000 rows with a text, every 17th of which is null, the previous row's text, and a number.
void AppendTexts(const Texts& texts, size_t first_row, Appender* local) {
  for (size_t begin = 0; begin < texts.size(); begin += 10000) {
    const auto from = static_cast<ptrdiff_t>(begin), to = static_cast<ptrdiff_t>(std::min(begin + 10000, texts.size()));
    std::vector<bool> valid;
    std::vector<double> numbers;
    for (ptrdiff_t i = from; i < to; ++i) valid.push_back(i % 17 != 0);
    for (ptrdiff_t i = from; i < to; ++i) numbers.push_back(static_cast<double>(i % 13) - 6);
    const Texts some(texts.begin() + from, texts.begin() + to);
    Texts others(some.rbegin(), some.rend());
    BatchView batch = Rows(
        some.size(), {WithNulls(StringColumn(kVar32, some), valid), NumberColumn(numbers), StringColumn(kView, others)},
        {RowIdColumn()});
    batch.first_row_id = first_row + begin;
    ASSERT_EQ(local->Append(batch), absl::OkStatus());
  }
}

std::shared_ptr<RowSort> SortTexts(const std::string& spec, const std::vector<Texts>& locals,
                                   uint32_t dictionary_rows) {
  SortTuning tuning;
  tuning.options.dictionary_rows = dictionary_rows;
  return SortOfSides(spec, tuning, locals, AppendTexts, [](const Texts& texts) { return texts.size(); });
}

constexpr const char* kUp = "sort keys=utf8:nullable:out,f64:out,utf8_view:out payload=rowid stable";
constexpr const char* kDown =
    "sort keys=utf8:nullable:desc:nulls_first:out,f64:desc,utf8_view:desc:out payload=rowid stable";

// Compares with a sort that has no codes. has_codes: whether this sort still has codes at its end.
void ExpectTexts(const char* spec, const std::vector<Texts>& locals, bool has_codes) {
  const auto sort = SortTexts(spec, locals, 500);
  EXPECT_TRUE(BytesOfResult(sort) == BytesOfResult(SortTexts(spec, locals, 0)));
  EXPECT_EQ(!HasAllTuples(*sort), has_codes);
}

TEST(SortDroppedTuples, FewStringsComeOutByTheirRanks) {
  ExpectTexts(kUp, {SomeTexts(kChunkRows + 3000, 400, 0)}, true);
}

TEST(SortDroppedTuples, TwoSidesHaveOneOrder) {
  ExpectTexts(kDown, {SomeTexts(kChunkRows + 3000, 400, 0), SomeTexts(3000, 90, 350), {}}, true);
}

// The 32,769th string arrives when there are rows without tuples: in the middle of a block whose first rows have codes.
TEST(SortDroppedTuples, AFloodOfStringsComesLate) {
  Texts texts = SomeTexts(kChunkRows + 2345, 400, 0);
  const Texts flood = SomeTexts(34000, 34000, 1000);
  texts.insert(texts.end(), flood.begin(), flood.end());
  ExpectTexts(kDown, {texts}, false);
}

// A thread-local state that is too small for codes makes the other one decode its codes and make tuples.
TEST(SortDroppedTuples, OneSideHasNoCodes) {
  ExpectTexts(kUp, {SomeTexts(kChunkRows + 3000, 400, 0), SomeTexts(300, 40, 0)}, false);
}

}  // namespace
}  // namespace quern
