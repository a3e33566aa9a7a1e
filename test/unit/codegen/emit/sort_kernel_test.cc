// SPDX-License-Identifier: Apache-2.0
// The entry points of sort kernels, compiled and generic, on random columns of every type: both make the same words,
// which order as the rows do, and the same tuples, which compare as the rows do. Three plain functions define the order
// of rows (Compare below), and CompareStrings that of collated strings. Columns end at inaccessible pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "runtime/blocks/blocks.h"
#include "runtime/collation/collation.h"
#include "runtime/rows/output_batch.h"
#include "test/templates/guarded_buffer.h"

namespace quern {
namespace {

using test::Guard;
using test::GuardedBuffer;
using int128_t = __int128;

constexpr uint32_t kRows = 100;

// A value in the reference: a number in the order of the values, or bytes.
struct Cell {
  bool is_null = false;
  int128_t number = 0;
  std::string text;
};

// A column of kRows rows whose buffers have exactly the lengths that the ABI promises.
struct Column {
  std::vector<GuardedBuffer> buffers;
  std::vector<const uint8_t*> data;
  std::vector<Cell> cells;
  std::unique_ptr<Column> dictionary;
  QuernColumn column = {};

  template <class T>
  const void* Keep(const std::vector<T>& values, Guard guard = Guard::kBehind) {
    buffers.push_back(GuardedBuffer::Of(values, guard));
    return buffers.back().data();
  }
};

class ColumnMaker {
 public:
  explicit ColumnMaker(uint64_t seed) : random_(seed) {}

  std::unique_ptr<Column> Make(const ColumnType& type, uint32_t num_rows = kRows) {
    auto column = std::make_unique<Column>();
    column->cells.resize(num_rows);
    if (type.is_dictionary) MakeDictionary(type, column.get());
    else MakeValues(type, column.get());
    if (type.nullable) MakeNulls(column.get());
    return column;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  void MakeNulls(Column* column) {
    column->column.bit_offset = 3;
    std::vector<uint8_t> bits((column->cells.size() + 3 + 7) / 8);
    for (size_t i = 0; i < column->cells.size(); ++i) {
      column->cells[i].is_null = Below(4) == 0;
      blocks::SetBitTo(bits.data(), i + 3, !column->cells[i].is_null);
    }
    column->column.validity = static_cast<const uint8_t*>(column->Keep(bits));
  }

  void MakeDictionary(const ColumnType& type, Column* column) {
    ColumnType values = type;
    values.is_dictionary = values.nullable = false;
    column->dictionary = Make(values, 20);
    std::vector<uint64_t> indices(column->cells.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      indices[i] = Below(20);
      column->cells[i] = column->dictionary->cells[indices[i]];
    }
    column->column.dictionary = &column->dictionary->column;
    column->column.values = Narrow(indices, RowOf(type.index).storage, column);
  }

  const void* Narrow(const std::vector<uint64_t>& values, Storage storage, Column* column) {
    if (storage == k8) return column->Keep(std::vector<uint8_t>(values.begin(), values.end()));
    if (storage == k16) return column->Keep(std::vector<uint16_t>(values.begin(), values.end()));
    if (storage == k32) return column->Keep(std::vector<uint32_t>(values.begin(), values.end()));
    return column->Keep(values);
  }

  void MakeValues(const ColumnType& type, Column* column) {
    switch (RowOf(type.id).key_storage) {
      case kBit: return MakeBits(column);
      case k8: return MakeIntegers<int8_t, uint8_t>(type, column);
      case k16: return MakeIntegers<int16_t, uint16_t>(type, column);
      case k32: return MakeIntegers<int32_t, uint32_t>(type, column);
      case k64: return MakeIntegers<int64_t, uint64_t>(type, column);
      case k128: return MakeWide(column);
      case kF32: return MakeFloats<float>(column);
      case kF64: return MakeFloats<double>(column);
      case kFixed:
      case kVar32:
      case kVar64:
      case kView: return MakeStrings(type, column);
      case kRowId:
      case kNoStorage: break;
    }
  }

  void MakeBits(Column* column) {
    column->column.bit_offset = 3;
    std::vector<uint8_t> bits((column->cells.size() + 3 + 7) / 8);
    for (size_t i = 0; i < column->cells.size(); ++i) {
      column->cells[i].number = static_cast<int128_t>(Below(2));
      blocks::SetBitTo(bits.data(), i + 3, column->cells[i].number != 0);
    }
    column->column.values = column->Keep(bits);
  }

  template <class Signed, class Unsigned>
  void MakeIntegers(const ColumnType& type, Column* column) {
    const bool is_signed = type.id < TypeId::kU8 || type.id > TypeId::kU64;
    std::vector<Unsigned> values;
    for (Cell& cell : column->cells) {
      values.push_back(static_cast<Unsigned>(Below(2) == 0 ? random_() : Below(7) - 3));
      cell.number = is_signed ? int128_t{static_cast<Signed>(values.back())} : int128_t{values.back()};
    }
    column->column.values = column->Keep(values);
  }

  void MakeWide(Column* column) {
    std::vector<int128_t> values;
    for (Cell& cell : column->cells) {
      const int128_t high = Below(2) == 0 ? static_cast<int64_t>(random_()) : static_cast<int64_t>(Below(3)) - 1;
      values.push_back(high * (int128_t{1} << 64) + static_cast<int128_t>(Below(2) == 0 ? random_() : Below(3)));
      cell.number = values.back();
    }
    column->column.values = column->Keep(values);
  }

  // The number of a float is its place in this list; -0 and 0 share one, as do all NaNs.
  template <class F>
  void MakeFloats(Column* column) {
    using L = std::numeric_limits<F>;
    const F list[] = {-L::infinity(),  -L::max(), -1,       -L::denorm_min(), 0,
                      L::denorm_min(), 1,         L::max(), L::infinity(),    L::quiet_NaN()};
    std::vector<F> values;
    for (Cell& cell : column->cells) {
      const uint64_t place = Below(10);
      const bool turned = (place == 4 || place == 9) && Below(2) == 0;
      values.push_back(turned ? -list[place] : list[place]);
      cell.number = static_cast<int128_t>(place);
    }
    column->column.values = column->Keep(values);
  }

  std::string RandomText(const ColumnType& type) {
    std::string text;
    const uint64_t length = type.id == TypeId::kFixedBinary ? type.width_bytes : Below(3) == 0 ? Below(30) : Below(5);
    for (uint64_t i = 0; i < length; ++i) text += " abA\t\xff"[Below(6)];
    if (length > 0 && Below(8) == 0) text.back() = '\0';
    if (length > 17 && Below(2) == 0) text.replace(0, 17, "the same prefixes");
    return text;
  }

  void MakeStrings(const ColumnType& type, Column* column) {
    std::vector<char> bytes;
    std::vector<int64_t> offsets = {0};
    for (Cell& cell : column->cells) {
      cell.text = RandomText(type);
      bytes.insert(bytes.end(), cell.text.begin(), cell.text.end());
      offsets.push_back(static_cast<int64_t>(bytes.size()));
      if ((RuleOf(type.collation) & kTrimsSpaces) != 0) cell.text.erase(cell.text.find_last_not_of(' ') + 1);
    }
    QuernColumn* c = &column->column;
    const Storage storage = RowOf(type.id).storage;
    if (storage == kView) return MakeViews(bytes, offsets, column);
    c->values = column->Keep(bytes);
    if (storage == kVar32) c->offsets = column->Keep(std::vector<int32_t>(offsets.begin(), offsets.end()));
    if (storage == kVar64) c->offsets = column->Keep(offsets);
  }

  void MakeViews(const std::vector<char>& bytes, const std::vector<int64_t>& offsets, Column* column) {
    std::vector<StringRef> views;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      const auto* at = reinterpret_cast<const uint8_t*>(bytes.data()) + offsets[i];
      const auto length = static_cast<uint32_t>(offsets[i + 1] - offsets[i]);
      views.push_back(blocks::MakeStringRef({at, length}));
      const uint32_t place[] = {0, static_cast<uint32_t>(offsets[i])};
      if (length > kInlineStringBytes) std::memcpy(&views.back().bytes, place, 8);
    }
    column->data = {static_cast<const uint8_t*>(column->Keep(bytes))};
    column->column.buffers = column->data.data();
    column->column.values = column->Keep(views);
  }

  std::mt19937_64 random_;
};

// ---- the oracle ----

int SignOf(int64_t order) { return static_cast<int>(order > 0) - static_cast<int>(order < 0); }

blocks::Bytes BytesOf(const Cell& cell) {
  return {reinterpret_cast<const uint8_t*>(cell.text.data()), static_cast<uint32_t>(cell.text.size())};
}

int CompareCells(const KeySpec& key, const Cell& a, const Cell& b) {
  if (a.is_null || b.is_null) {
    if (a.is_null && b.is_null) return 0;
    return a.is_null == key.nulls_first ? -1 : 1;
  }
  int order = a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  const bool is_plain = key.type.collation == kCollationBinary;
  if (order == 0)
    order = is_plain ? SignOf(a.text.compare(b.text))
                     : SignOf(CompareStrings(BytesOf(a), BytesOf(b), RuleOf(key.type.collation)));
  return key.descending ? -order : order;
}

struct Decision {
  int order = 0;
  uint32_t key = 0;
};

class SortKernels {
 public:
  SortKernels(const std::string& text, uint64_t seed, const PlanOverrides& overrides = {}) : text_(text) {
    for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
      CompileOptions options;
      options.engine = engine;
      options.overrides = overrides;
      const auto compiled = CompileText(text, options);
      EXPECT_TRUE(compiled.ok()) << text << ": " << compiled.status();
      if (!compiled.ok()) return;
      EXPECT_EQ(compiled->kernel->engine, engine);
      kernels_.push_back(compiled->kernel);
    }
    ColumnMaker maker(seed);
    for (const KeySpec& key : spec().keys) columns_.push_back(maker.Make(key.type));
    for (const ColumnType& type : spec().payload)
      columns_.push_back(type.id == TypeId::kRowId ? std::make_unique<Column>() : maker.Make(type));
    for (const auto& column : columns_) views_.push_back(column->column);
    for (uint32_t i = 0; i < 75; ++i) picked_.push_back(i * 77 % kRows);
  }

  bool ok() const { return kernels_.size() == 2; }
  const SortSpec& spec() const { return std::get<SortSpec>(kernels_[0]->plan.spec); }
  const SortDescriptor& descriptor() const { return *kernels_[0]->As<SortSpec>().descriptor; }
  const QuernSortEntryPoints& jit() const { return kernels_[0]->As<SortSpec>().entry_points; }
  const QuernSortEntryPoints& generic() const { return kernels_[1]->As<SortSpec>().entry_points; }

  // Selects rows of a batch: neighbours from row 5 on, or picked ones.
  void Pick(bool picked) {
    first_ = picked ? 0 : 5;
    rows_ = picked ? picked_.data() : nullptr;
    n_ = picked ? 75 : kRows - 5;
  }

  uint64_t LeftOutOfLead() const {
    const QuernSortDescriptor& s = *descriptor().get();
    uint64_t mask = 0;
    for (uint32_t p = 0; p < s.num_parts; ++p) {
      const QuernSortPart& part = s.parts[p];
      if (part.word == 0 && IsLeftOutOfLead(&s, &part)) mask |= SortPartMask(&part);
    }
    return mask;
  }

  void ExpectWordsOrderAsRows() {
    std::vector<std::vector<uint64_t>> words = Encode(jit()), again = Encode(generic());
    EXPECT_EQ(words, again) << text_;
    const uint32_t incomplete = incomplete_;
    std::vector<uint64_t> lead = words[0];
    for (uint64_t& word : lead) word &= ~LeftOutOfLead();
    EXPECT_EQ(Lead(jit()), lead) << text_;
    EXPECT_EQ(Lead(generic()), lead) << text_;
    for (uint32_t i = 0; i < n_; ++i) {
      for (uint32_t j = 0; j < n_; ++j) {
        const Decision expected = Compare(i, j, false);
        int order = 0;
        for (size_t w = 0; w < words.size() && order == 0; ++w)
          order = words[w][i] < words[w][j] ? -1 : words[w][i] > words[w][j];
        if (order == expected.order) continue;
        ASSERT_NE(expected.order, 0) << text_ << " rows " << i << " " << j;
        ASSERT_NE(incomplete >> expected.key & 1, 0u) << text_ << " rows " << i << " " << j;
      }
    }
  }

  void ExpectTuplesCompareAsRows() {
    const std::vector<uint8_t> tuples = Store(jit());
    EXPECT_EQ(tuples, Store(generic())) << text_;
    if (jit().compare == nullptr) return;
    const uint32_t bytes = descriptor().get()->rows.tuple_bytes;
    for (uint32_t i = 0; i < n_; ++i) {
      for (uint32_t j = 0; j < n_; ++j) {
        const int expected = Compare(i, j, true).order;
        const uint8_t *a = &tuples[size_t{i} * bytes], *b = &tuples[size_t{j} * bytes];
        ASSERT_EQ(SignOf(jit().compare(descriptor().get(), a, b)), expected) << text_ << " rows " << i << " " << j;
        ASSERT_EQ(SignOf(generic().compare(descriptor().get(), a, b)), expected) << text_ << " rows " << i << " " << j;
      }
    }
  }

  void ExpectComparisonSorts() {
    std::vector<uint8_t> tuples = Store(jit());
    const std::vector<uint32_t> expected = SortedRows();
    for (const QuernSortEntryPoints* kernel : {&jit(), &generic()}) {
      ASSERT_NE(kernel->sort, nullptr) << text_;
      std::vector<uint8_t*> sorted(n_), scratch(n_);
      for (uint32_t i = 0; i < n_; ++i) sorted[i] = &tuples[size_t{i} * descriptor().get()->rows.tuple_bytes];
      kernel->sort(descriptor().get(), sorted.data(), n_, scratch.data());
      for (uint32_t i = 0; i < n_; ++i) ASSERT_EQ(RowOfTuple(tuples, sorted[i]), expected[i]) << text_ << " at " << i;
    }
  }

  // Rows are decoded from tuples unchanged.
  void ExpectTuplesComeOut(const std::vector<ColumnType>& types) {
    const std::vector<uint8_t> tuples = Store(jit());
    std::vector<uint64_t> addresses;
    for (uint32_t i = 0; i < n_; ++i)
      addresses.push_back(reinterpret_cast<uint64_t>(&tuples[size_t{i} * descriptor().get()->rows.tuple_bytes]));
    for (const QuernSortEntryPoints* kernel : {&jit(), &generic()}) {
      OutputBatch out(types, kRows, std::make_shared<MemoryBudget>());
      ASSERT_EQ(out.Reset(), absl::OkStatus());
      QuernOutputArgs args = {};
      args.layout = &descriptor().get()->rows;
      args.columns = out.columns();
      args.capacity = kRows;
      ASSERT_NE(kernel->reserve_output, nullptr);
      ASSERT_EQ(kernel->reserve_output(&args, addresses.data(), n_), n_);
      kernel->emit(&args, addresses.data(), n_);
      for (uint32_t i = 0; i < n_; ++i) ExpectRow(out, i);
    }
  }

 private:
  uint32_t Row(uint32_t i) const { return rows_ != nullptr ? rows_[i] : static_cast<uint32_t>(first_) + i; }

  // Compares rows i and j of the batch by all keys, or by those that have fields.
  Decision Compare(uint32_t i, uint32_t j, bool by_fields) const {
    for (uint32_t k = 0; k < spec().keys.size(); ++k) {
      if (by_fields && descriptor().get()->keys[k].field == kNoField) continue;
      const int order = CompareCells(spec().keys[k], columns_[k]->cells[Row(i)], columns_[k]->cells[Row(j)]);
      if (order != 0) return {order, k};
    }
    return {};
  }

  std::vector<uint32_t> SortedRows() const {
    std::vector<uint32_t> rows(n_);
    std::iota(rows.begin(), rows.end(), 0u);
    std::sort(rows.begin(), rows.end(), [&](uint32_t i, uint32_t j) {
      const int order = Compare(i, j, false).order;
      return order != 0 ? order < 0 : i < j;
    });
    return rows;
  }

  uint32_t RowOfTuple(const std::vector<uint8_t>& tuples, const uint8_t* tuple) const {
    return static_cast<uint32_t>(static_cast<size_t>(tuple - tuples.data()) / descriptor().get()->rows.tuple_bytes);
  }

  std::vector<std::vector<uint64_t>> Encode(const QuernSortEntryPoints& kernel) {
    const uint32_t num_words = descriptor().get()->num_words;
    std::vector<GuardedBuffer> buffers;
    std::vector<uint64_t*> words;
    for (uint32_t w = 0; w < num_words; ++w) {
      buffers.push_back(GuardedBuffer::Of(std::vector<uint64_t>(n_, 0x5555555555555555u), Guard::kBehind));
      words.push_back(buffers.back().as<uint64_t>());
    }
    incomplete_ = 0;
    kernel.encode(descriptor().get(), views_.data(), first_, rows_, n_, words.data(), &incomplete_);
    std::vector<std::vector<uint64_t>> result;
    for (uint64_t* word : words) result.emplace_back(word, word + n_);
    return result;
  }

  std::vector<uint64_t> Lead(const QuernSortEntryPoints& kernel) {
    const GuardedBuffer lead = GuardedBuffer::Of(std::vector<uint64_t>(n_, 0x5555555555555555u), Guard::kBehind);
    kernel.encode_leading(descriptor().get(), views_.data(), first_, rows_, n_, lead.as<uint64_t>());
    return {lead.as<uint64_t>(), lead.as<uint64_t>() + n_};
  }

  std::vector<uint8_t> Store(const QuernSortEntryPoints& kernel) {
    if (kernel.store == nullptr) return {};
    std::vector<QuernColumn> fields;
    for (const SortFieldSource& field : descriptor().fields())
      fields.push_back(views_[field.is_key ? field.index : spec().keys.size() + field.index]);
    const GuardedBuffer tuples(size_t{n_} * descriptor().get()->rows.tuple_bytes, Guard::kBehind);
    kernel.store(&descriptor().get()->rows, fields.data(), first_, rows_, n_, /*first_row_id=*/1000, tuples.data());
    return {tuples.data(), tuples.data() + tuples.bytes()};
  }

  // Output column c is field c: an i64 or a string of the payload, or row ids.
  void ExpectRow(const OutputBatch& out, uint32_t i) const {
    for (size_t c = 0; c < out.num_columns(); ++c) {
      const QuernOutColumn& column = out.column(c);
      const SortFieldSource source = descriptor().fields()[c];
      const Cell* cell = source.is_key ? &columns_[source.index]->cells[Row(i)] : nullptr;
      if (cell == nullptr && spec().payload[source.index].id == TypeId::kRowId) {
        ASSERT_EQ(static_cast<const uint64_t*>(column.values)[i], 1000u + Row(i));
        continue;
      }
      if (cell == nullptr) cell = &columns_[spec().keys.size() + source.index]->cells[Row(i)];
      ASSERT_EQ(column.validity == nullptr || blocks::Bit(column.validity, i), !cell->is_null);
      if (cell->is_null) continue;
      if (column.offsets == nullptr) {
        ASSERT_EQ(static_cast<const int64_t*>(column.values)[i], static_cast<int64_t>(cell->number));
      } else {
        const auto* offsets = static_cast<const int32_t*>(column.offsets);
        ASSERT_EQ(std::string(column.bytes + offsets[i], column.bytes + offsets[i + 1]), cell->text);
      }
    }
  }

  std::string text_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::vector<QuernColumn> views_;
  std::vector<uint32_t> picked_;
  uint64_t first_ = 0;
  const uint32_t* rows_ = nullptr;
  uint32_t n_ = 0;
  uint32_t incomplete_ = 0;
};

const char* const kTypes[] = {"bool",
                              "i8",
                              "u8",
                              "i16",
                              "u16",
                              "i32",
                              "u32",
                              "i64",
                              "u64",
                              "f32",
                              "f64",
                              "decimal128",
                              "date32",
                              "fixed_binary(1)",
                              "fixed_binary(7)",
                              "fixed_binary(16)",
                              "fixed_binary(29)",
                              "utf8",
                              "utf8(utf8mb4_bin)",
                              "utf8(tidb.utf8mb4_bin)",
                              "large_utf8(utf8mb4_general_ci)",
                              "utf8_view(utf8mb4_0900_ai_ci)",
                              "dictionary(i32,utf8(utf8mb4_unicode_ci))",
                              "large_binary",
                              "binary_view",
                              "utf8_view(ascii_bin)",
                              "dictionary(i8,utf8)",
                              "dictionary(u16,i32)",
                              "dictionary(u64,f64)",
                              "dictionary(i32,decimal128)"};

void ExpectKernelsSort(const std::string& keys, uint64_t seed) {
  for (const bool compares : {false, true}) {
    PlanOverrides overrides;
    if (compares) overrides = {{"test.sort_method", "comparison"}};
    SortKernels kernels("sort keys=" + keys + " payload=i64", seed, overrides);
    ASSERT_TRUE(kernels.ok());
    for (const bool picked : {false, true}) {
      kernels.Pick(picked);
      kernels.ExpectWordsOrderAsRows();
      kernels.ExpectTuplesCompareAsRows();
      if (compares) kernels.ExpectComparisonSorts();
    }
  }
}

TEST(SortKernel, EveryTypeInEveryDirection) {
  uint64_t seed = 0;
  for (const char* type : kTypes) {
    for (const char* flags : {":desc", ":nullable", ":desc:nulls_first:nullable"}) {
      ExpectKernelsSort(std::string(type) + flags, ++seed);
      if (HasFatalFailure()) return;
    }
  }
}

std::string RandomKeys(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string keys;
  for (uint64_t k = 0, num_keys = 2 + random() % 6; k < num_keys; ++k) {
    keys += std::string(k == 0 ? "" : ",") + kTypes[random() % std::size(kTypes)];
    for (const char* flag : {":desc", ":nulls_first", ":nullable"}) keys += random() % 2 == 0 ? flag : "";
  }
  return keys;
}

TEST(SortKernel, SeveralKeysOneAfterTheOther) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ExpectKernelsSort(RandomKeys(seed), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(SortKernel, WhatComesOutIsWhatWentIn) {
  SortKernels kernels("sort keys=utf8:nullable:out,i32 payload=i64:nullable,utf8:nullable,rowid,i64 limit=10", 3,
                      {{"test.sort_method", "comparison"}});
  ASSERT_TRUE(kernels.ok());
  const auto type = [](TypeId id, bool nullable) {
    ColumnType t;
    t.id = id;
    t.nullable = nullable;
    return t;
  };
  for (const bool picked : {false, true}) {
    kernels.Pick(picked);
    kernels.ExpectTuplesComeOut({type(TypeId::kUtf8, true), type(TypeId::kI64, true), type(TypeId::kUtf8, true),
                                 type(TypeId::kU64, false), type(TypeId::kI64, false)});
  }
}

TEST(SortKernel, EntryPointsAreThereWhereThereIsWork) {
  for (const char* spec :
       {"sort keys=i64", "sort keys=utf8", "sort keys=i64,utf8 payload=i64", "sort keys=f64:out payload=rowid limit=7",
        "sort keys=i64 payload=utf8:nullable window=row_number", "sort keys=fixed_binary(16)"}) {
    for (const char* method : {"radix", "comparison"}) {
      CompileOptions options;
      options.engine = Engine::kJit;
      options.overrides = {{"test.sort_method", method}};
      const auto compiled = CompileText(spec, options);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      const NeededSortEntryPoints needed = EntryPointsOf(*compiled->kernel->As<SortSpec>().descriptor->get());
#define QUERN_SORT_ENTRY(field, result, parameters)                                       \
  EXPECT_EQ(compiled->kernel->As<SortSpec>().entry_points.field != nullptr, needed.field) \
      << spec << " " << method << " " #field;
#include "runtime/abi/sort_entry_points.def"
    }
  }
}

TEST(SortKernel, EqualSpecsShareOneKernel) {
  CompileOptions options;
  options.engine = Engine::kJit;
  const auto first = CompileText("sort keys=i64:desc,utf8:nulls_last payload=f64", options);
  const auto second = CompileText("sort payload=f64 keys=i64:desc,utf8:asc", options);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->kernel, second->kernel);
}

}  // namespace
}  // namespace quern
