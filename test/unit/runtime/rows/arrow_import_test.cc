// SPDX-License-Identifier: Apache-2.0
// Import of Arrow arrays: the resulting columns, every rejection in full, and that release is called once on every
// path. Buffers have exactly the bytes that Arrow requires, so that AddressSanitizer detects a read beyond them.
#include "runtime/rows/arrow_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace quern {
namespace {

std::string Message(const absl::Status& status) {
  return status.ok() ? "no error" : std::string(status.message().data(), status.message().size());
}

ColumnType Type(TypeId id, bool nullable = false) {
  ColumnType type;
  type.id = id;
  type.nullable = nullable;
  return type;
}

ColumnType Dictionary(TypeId index, TypeId id, bool nullable = false) {
  ColumnType type = Type(id, nullable);
  type.is_dictionary = true;
  type.index = index;
  return type;
}

// ---- building arrays ----

void ReleaseChild(ArrowArray* array) { array->release = nullptr; }

// One array with its buffers. A copy copies the buffers too; Finish points the ArrowArray to them.
struct TestArray {
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<bool> present;
  int64_t length = 0;
  int64_t null_count = 0;
  int64_t offset = 0;
  std::vector<TestArray> dictionary;  // none or one

  std::vector<const void*> pointers = {};
  ArrowArray array = {};

  ArrowArray* Finish() {
    pointers.clear();
    for (size_t i = 0; i < bytes.size(); ++i) pointers.push_back(present[i] ? bytes[i].data() : nullptr);
    array = {};
    array.length = length;
    array.null_count = null_count;
    array.offset = offset;
    array.n_buffers = static_cast<int64_t>(bytes.size());
    array.buffers = pointers.data();
    array.dictionary = dictionary.empty() ? nullptr : dictionary[0].Finish();
    array.release = &ReleaseChild;
    return &array;
  }

  // Only the first `n` rows, or all after the first ones.
  TestArray Sliced(int64_t first, int64_t n) const {
    TestArray slice = *this;
    slice.offset += first;
    slice.length = n;
    slice.null_count = null_count == 0 ? 0 : -1;
    return slice;
  }
};

template <class T>
std::vector<uint8_t> BytesOf(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> Bitmap(const std::string& bits) {
  std::vector<uint8_t> bytes((bits.size() + 7) / 8);
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i] == '1') bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1 << (i % 8));
  return bytes;
}

// `validity`: a string of 0 and 1; empty means no bitmap.
template <class T>
TestArray Fixed(const std::vector<T>& values, const std::string& validity = "") {
  TestArray array;
  array.bytes = {Bitmap(validity), BytesOf(values)};
  array.present = {!validity.empty(), true};
  array.length = static_cast<int64_t>(values.size());
  array.null_count = static_cast<int64_t>(std::count(validity.begin(), validity.end(), '0'));
  return array;
}

TestArray Bools(const std::string& values, const std::string& validity = "") {
  TestArray array = Fixed<uint8_t>(Bitmap(values), validity);
  array.length = static_cast<int64_t>(values.size());
  return array;
}

template <class Offset = int32_t>
TestArray StringsAt(const std::vector<Offset>& offsets, const std::string& bytes, const std::string& validity = "") {
  TestArray array = Fixed<Offset>(offsets, validity);
  array.bytes.emplace_back(bytes.begin(), bytes.end());
  array.present.push_back(true);
  array.length = static_cast<int64_t>(offsets.size()) - 1;
  return array;
}

struct View {
  int32_t length;
  char prefix[4];
  int32_t buffer;
  int32_t offset;
};

TestArray Views(const std::vector<View>& views, const std::vector<std::string>& buffers,
                const std::string& validity = "") {
  TestArray array = Fixed<View>(views, validity);
  std::vector<int64_t> sizes;
  for (const std::string& buffer : buffers) {
    array.bytes.emplace_back(buffer.begin(), buffer.end());
    array.present.push_back(true);
    sizes.push_back(static_cast<int64_t>(buffer.size()));
  }
  array.bytes.push_back(BytesOf(sizes));
  array.present.push_back(!sizes.empty());
  return array;
}

TestArray WithDictionary(TestArray indices, const TestArray& dictionary) {
  indices.dictionary = {dictionary};
  return indices;
}

// A struct array over columns that counts calls of release.
struct TestBatch {
  std::deque<TestArray> columns;
  std::vector<ArrowArray*> children;
  std::vector<uint8_t> bitmap;
  const void* buffer = nullptr;
  ArrowArray array = {};
  int released = 0;

  explicit TestBatch(std::vector<TestArray> arrays) : columns(arrays.begin(), arrays.end()) {
    for (TestArray& column : columns) children.push_back(column.Finish());
    array.length = columns.empty() ? 0 : columns[0].length;
    array.n_buffers = 1;
    array.n_children = static_cast<int64_t>(children.size());
    array.buffers = &buffer;
    array.children = children.data();
    array.private_data = this;
    array.release = [](ArrowArray* self) {
      ++static_cast<TestBatch*>(self->private_data)->released;
      self->release = nullptr;
    };
  }
  TestBatch(const TestBatch&) = delete;
  TestBatch& operator=(const TestBatch&) = delete;
};

// Imports with column i as key i.
absl::StatusOr<BatchView> Import(TestBatch* batch, const std::vector<ColumnType>& keys) {
  ColumnBinding binding;
  for (size_t i = 0; i < keys.size(); ++i) binding.keys.push_back(static_cast<int>(i));
  return ImportArrow(&batch->array, binding, keys, {});
}

// The message of ImportArrow for one column; checks that release was called.
std::string Error(const TestArray& column, const ColumnType& type,
                  const std::function<void(TestBatch*)>& change = nullptr) {
  TestBatch batch({column});
  if (change) change(&batch);
  const bool alive = batch.array.release != nullptr;
  std::string message;
  {
    const auto view = Import(&batch, {type});
    message = Message(view.status());
    EXPECT_EQ(batch.array.release, nullptr);
    EXPECT_EQ(batch.released, alive && !view.ok() ? 1 : 0);
  }
  EXPECT_EQ(batch.released, alive ? 1 : 0);
  return message;
}

std::string StringAt(const QuernColumn& column, uint32_t row) {
  const auto* offsets = static_cast<const int32_t*>(column.offsets);
  return std::string(static_cast<const char*>(column.values) + offsets[row],
                     static_cast<size_t>(offsets[row + 1] - offsets[row]));
}

bool ValidAt(const QuernColumn& column, uint64_t row) {
  const uint64_t bit = column.bit_offset + row;
  return column.validity == nullptr || (column.validity[bit / 8] >> (bit % 8) & 1) != 0;
}

std::string ValidityText(const QuernColumn& column, uint64_t num_rows) {
  std::string text;
  for (uint64_t row = 0; row < num_rows; ++row) text += ValidAt(column, row) ? '1' : '0';
  return text;
}

// ---- what is imported ----

TEST(ImportArrow, FixedWidth) {
  TestBatch batch({Fixed<int64_t>({1, 2, 3}), Fixed<int16_t>({7, 8, 9}, "101")});
  {
    const auto view = Import(&batch, {Type(TypeId::kI64), Type(TypeId::kI16, true)});
    ASSERT_TRUE(view.ok()) << Message(view.status());
    EXPECT_EQ(view->num_rows, 3u);
    EXPECT_EQ(view->selection, nullptr);
    EXPECT_EQ(static_cast<const int64_t*>(view->keys[0].values)[2], 3);
    EXPECT_EQ(view->keys[0].validity, nullptr);
    EXPECT_EQ(ValidityText(view->keys[1], 3), "101");
    EXPECT_EQ(batch.released, 0);
  }
  EXPECT_EQ(batch.released, 1);
}

TEST(ImportArrow, OwnerOutlivesTheView) {
  TestBatch batch({Fixed<int64_t>({1})});
  auto view = Import(&batch, {Type(TypeId::kI64)});
  ASSERT_TRUE(view.ok());
  std::shared_ptr<const void> owner = view->owner;
  view = absl::CancelledError();
  EXPECT_EQ(batch.released, 0);
  owner.reset();
  EXPECT_EQ(batch.released, 1);
}

TEST(ImportArrow, OffsetsOfChildAndParentAddUp) {
  TestArray numbers = Fixed<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "1111110111").Sliced(2, 8);
  TestArray strings = StringsAt<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "abcdefghij").Sliced(2, 8);
  TestArray bools = Bools("0000001000").Sliced(2, 8);
  TestBatch batch({numbers, strings, bools});
  batch.array.offset = 3;
  batch.array.length = 4;
  const auto view = Import(&batch, {Type(TypeId::kI64, true), Type(TypeId::kUtf8), Type(TypeId::kBool)});
  ASSERT_TRUE(view.ok()) << Message(view.status());
  EXPECT_EQ(view->num_rows, 4u);
  EXPECT_EQ(static_cast<const int64_t*>(view->keys[0].values)[0], 5);
  EXPECT_EQ(view->keys[0].bit_offset, 5u);
  EXPECT_EQ(ValidityText(view->keys[0], 4), "1011");
  EXPECT_EQ(StringAt(view->keys[1], 0), "f");
  EXPECT_EQ(StringAt(view->keys[1], 3), "i");
  EXPECT_EQ(view->keys[2].bit_offset, 5u);
  EXPECT_EQ(view->keys[2].values, batch.columns[2].bytes[1].data());
}

TEST(ImportArrow, NullsOutsideTheSliceDoNotCount) {
  TestBatch batch({Fixed<int32_t>({1, 2, 3, 4}, "1110")});
  batch.array.length = 3;
  const auto view = Import(&batch, {Type(TypeId::kI32)});
  ASSERT_TRUE(view.ok()) << Message(view.status());
  EXPECT_EQ(view->keys[0].validity, nullptr);
}

TEST(ImportArrow, UnknownNullCountIsCounted) {
  for (int64_t n : {1, 7, 8, 9, 63, 64, 65, 200}) {
    for (int64_t first : {0, 1, 5, 8, 13}) {
      std::string bits(static_cast<size_t>(first + n), '1');
      TestArray column = Fixed<int8_t>(std::vector<int8_t>(bits.size()), bits).Sliced(first, n);
      column.null_count = -1;
      EXPECT_EQ(Error(column, Type(TypeId::kI8)), "no error");
      bits.back() = '0';
      column = Fixed<int8_t>(std::vector<int8_t>(bits.size()), bits).Sliced(first, n);
      EXPECT_EQ(Error(column, Type(TypeId::kI8)),
                "null at row " + std::to_string(n - 1) +
                    " of column keys[0]: i8; accepted: no nulls, or a spec with i8:nullable");
      column.null_count = 1;
      EXPECT_EQ(Error(column, Type(TypeId::kI8, true)), "no error");
    }
  }
}

TEST(ImportArrow, EmptyArraysMayLackBuffers) {
  const auto empty = [](size_t num_buffers) {
    TestArray array;
    array.bytes.resize(num_buffers);
    array.present.assign(num_buffers, false);
    return array;
  };
  for (const TypeRow& row : AllTypes()) {
    if (row.id == TypeId::kRowId) continue;
    ColumnType type = Type(row.id);
    if (row.id == TypeId::kFixedBinary) type.width_bytes = 5;
    const TestArray array = empty(IsVariable(row.storage) ? 3 : 2);
    EXPECT_EQ(Error(array, type), "no error") << row.text;
    type.is_dictionary = true;
    EXPECT_EQ(Error(WithDictionary(empty(2), array), type), "no error") << row.text;
  }
  TestBatch batch({empty(3), empty(3)});
  const auto view = Import(&batch, {Type(TypeId::kUtf8), Type(TypeId::kLargeUtf8)});
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(*static_cast<const int32_t*>(view->keys[0].offsets), 0);
  EXPECT_EQ(*static_cast<const int64_t*>(view->keys[1].offsets), 0);
}

TEST(ImportArrow, EmptyStringsNeedNoBytes) {
  TestArray strings = StringsAt<int32_t>({0, 0, 0}, "");
  strings.present[2] = false;
  EXPECT_EQ(Error(strings, Type(TypeId::kUtf8)), "no error");
}

TEST(ImportArrow, Payload) {
  TestBatch batch({Fixed<int64_t>({1, 2}), Fixed<double>({0.5, 1.5})});
  const auto view = ImportArrow(&batch.array, {{0}, {-1, 0, 1}}, {Type(TypeId::kI64)},
                                {Type(TypeId::kRowId), Type(TypeId::kI64), Type(TypeId::kF64)});
  ASSERT_TRUE(view.ok()) << Message(view.status());
  ASSERT_EQ(view->payload.size(), 3u);
  EXPECT_EQ(view->payload[0].values, nullptr);
  EXPECT_EQ(view->payload[1].values, view->keys[0].values);
  EXPECT_EQ(static_cast<const double*>(view->payload[2].values)[1], 1.5);
}

TEST(ImportArrow, ViewsAndTheirBuffers) {
  const std::vector<View> views = {{3, {'a', 'b', 'c', 0}, 0, 0}, {13, {'t', 'h', 'i', 'r'}, 1, 2}};
  TestBatch batch({Views(views, {"", "..thirteen byte"})});
  const auto view = Import(&batch, {Type(TypeId::kUtf8View)});
  ASSERT_TRUE(view.ok()) << Message(view.status());
  EXPECT_EQ(std::memcmp(view->keys[0].buffers[1] + 2, "thirteen byte", 13), 0);
  EXPECT_EQ(static_cast<const View*>(view->keys[0].values)[0].length, 3);
}

TEST(ImportArrow, DictionaryIndicesAreAdvanced) {
  const TestArray indices = Fixed<int8_t>({9, 0, 1, 1}).Sliced(1, 3);
  TestBatch batch({WithDictionary(indices, StringsAt<int32_t>({0, 1, 3, 6}, "?bbccc").Sliced(1, 2))});
  const auto view = Import(&batch, {Dictionary(TypeId::kI8, TypeId::kUtf8)});
  ASSERT_TRUE(view.ok()) << Message(view.status());
  const QuernColumn& column = view->keys[0];
  ASSERT_NE(column.dictionary, nullptr);
  EXPECT_EQ(static_cast<const int8_t*>(column.values)[0], 0);
  EXPECT_EQ(StringAt(*column.dictionary, 0), "bb");
  EXPECT_EQ(StringAt(*column.dictionary, 1), "ccc");
  EXPECT_EQ(column.validity, nullptr);
}

TEST(ImportArrow, NullsOfDictionariesAreFolded) {
  // Rows: 1, null with a garbage index, 0, 1, 2; value 1 is null.
  const TestArray indices = Fixed<uint32_t>({77, 1, 4000000000, 0, 1, 2}, "110111").Sliced(1, 5);
  const TestArray dictionary = Bools("?1?1", "1101").Sliced(1, 3);
  TestBatch batch({WithDictionary(indices, dictionary)});
  const auto view = Import(&batch, {Dictionary(TypeId::kU32, TypeId::kBool, true)});
  ASSERT_TRUE(view.ok()) << Message(view.status());
  const QuernColumn& column = view->keys[0];
  EXPECT_EQ(ValidityText(column, 5), "00101");
  EXPECT_EQ(column.bit_offset, 0u);
  EXPECT_EQ(column.dictionary->validity, nullptr);
  EXPECT_EQ(column.dictionary->bit_offset, 1u);
}

TEST(ImportArrow, NullsOfDictionariesThatNoRowNames) {
  const TestArray dictionary = Fixed<int64_t>({5, 6}, "01");
  EXPECT_EQ(Error(WithDictionary(Fixed<int16_t>({1, 1, 1}), dictionary), Dictionary(TypeId::kI16, TypeId::kI64)),
            "no error");
  EXPECT_EQ(Error(WithDictionary(Fixed<int16_t>({1, 1, 0}), dictionary), Dictionary(TypeId::kI16, TypeId::kI64)),
            "null at row 2 of column keys[0]: dictionary(i16,i64); accepted: no nulls, or a spec with "
            "dictionary(i16,i64):nullable");
}

TEST(ImportArrow, EveryIndexType) {
  const auto check = [](auto zero, TypeId index) {
    using Index = decltype(zero);
    const TestArray dictionary = Fixed<int32_t>({1, 2});
    EXPECT_EQ(Error(WithDictionary(Fixed<Index>({1, 0, 1}), dictionary), Dictionary(index, TypeId::kI32)), "no error");
    const std::string accepted = " of column keys[0]: 2; accepted: 0 or more, below 2";
    EXPECT_EQ(Error(WithDictionary(Fixed<Index>({1, 0, 2}), dictionary), Dictionary(index, TypeId::kI32)),
              "index outside the dictionary at row 2" + accepted);
    EXPECT_EQ(Error(WithDictionary(Fixed<Index>({1, 2, 2}, "101"), dictionary), Dictionary(index, TypeId::kI32, true)),
              "index outside the dictionary at row 2" + accepted);
    if (!std::is_signed_v<Index>) return;
    EXPECT_EQ(
        Error(WithDictionary(Fixed<Index>({1, static_cast<Index>(-1)}), dictionary), Dictionary(index, TypeId::kI32)),
        "index outside the dictionary at row 1 of column keys[0]: -1; accepted: 0 or more, below 2");
  };
  check(int8_t{0}, TypeId::kI8);
  check(int16_t{0}, TypeId::kI16);
  check(int32_t{0}, TypeId::kI32);
  check(int64_t{0}, TypeId::kI64);
  check(uint8_t{0}, TypeId::kU8);
  check(uint16_t{0}, TypeId::kU16);
  check(uint32_t{0}, TypeId::kU32);
  check(uint64_t{0}, TypeId::kU64);
  const std::vector<uint8_t> top_bit = {0, 127, 128, 255};
  EXPECT_EQ(Error(WithDictionary(Fixed<uint8_t>(top_bit), Fixed<uint8_t>(std::vector<uint8_t>(256))),
                  Dictionary(TypeId::kU8, TypeId::kU8)),
            "no error");
  // -1 is not a form of 255.
  const TestArray large = Fixed<uint8_t>(std::vector<uint8_t>(300));
  EXPECT_EQ(Error(WithDictionary(Fixed<int8_t>({127, -1}), large), Dictionary(TypeId::kI8, TypeId::kU8)),
            "index outside the dictionary at row 1 of column keys[0]: -1; accepted: 0 or more, below 128");
}

// ---- rejections ----

TEST(ImportErrors, Numbers) {
  const ColumnType type = Type(TypeId::kI64);
  const auto error = [&](const std::function<void(ArrowArray*)>& change) {
    return Error(Fixed<int64_t>({1, 2, 3}), type, [&](TestBatch* batch) { change(batch->children[0]); });
  };
  EXPECT_EQ(error([](ArrowArray* a) { a->length = 2; }), "too few rows of column keys[0]: 2; accepted: 3 or more");
  EXPECT_EQ(error([](ArrowArray* a) { a->length = -1; }), "negative length of column keys[0]: -1; accepted: 0 or more");
  EXPECT_EQ(error([](ArrowArray* a) { a->offset = -1; }), "negative offset of column keys[0]: -1; accepted: 0 or more");
  EXPECT_EQ(error([](ArrowArray* a) { a->offset = INT64_MAX; }),
            "offset and length out of range of column keys[0]: 9223372036854775807 and 3; accepted: together up to "
            "17592186044416");
  EXPECT_EQ(error([](ArrowArray* a) { a->length = INT64_MAX; }),
            "offset and length out of range of column keys[0]: 0 and 9223372036854775807; accepted: together up to "
            "17592186044416");
  EXPECT_EQ(error([](ArrowArray* a) { a->null_count = -2; }),
            "null count out of range of column keys[0]: -2; accepted: -1 to 3");
  EXPECT_EQ(error([](ArrowArray* a) { a->null_count = 4; }),
            "null count out of range of column keys[0]: 4; accepted: -1 to 3");
  EXPECT_EQ(error([](ArrowArray* a) { a->null_count = 1; }),
            "wrong null count of column keys[0]: 1; accepted: -1 or 0, since there is no bitmap");
  EXPECT_EQ(error([](ArrowArray* a) { a->n_buffers = 3; }),
            "wrong number of buffers of column keys[0]: 3; accepted: 2");
  EXPECT_EQ(error([](ArrowArray* a) { a->buffers = nullptr; }),
            "missing buffers of column keys[0]: null; accepted: an array of 2");
  EXPECT_EQ(error([](ArrowArray* a) { a->n_children = 1; }), "unexpected children of column keys[0]: 1; accepted: 0");
  EXPECT_EQ(error([](ArrowArray* a) { a->buffers[1] = nullptr; }),
            "missing buffer of column keys[0]: values; accepted: no null pointer where there are 3 rows");
  EXPECT_EQ(error([](ArrowArray* a) { a->release = nullptr; }),
            "released array of column keys[0]: no release callback; accepted: an array that is alive");
  EXPECT_EQ(error([](ArrowArray* a) { a->dictionary = a; }),
            "unexpected dictionary of column keys[0]: one; accepted: i64");
}

TEST(ImportErrors, NullCounts) {
  TestArray column = Fixed<int64_t>({1, 2, 3}, "101");
  for (int64_t told : {0, 2}) {
    column.null_count = told;
    EXPECT_EQ(Error(column, Type(TypeId::kI64, true)), "wrong null count of column keys[0]: " + std::to_string(told) +
                                                           "; accepted: -1 or 1, as its bitmap says");
  }
  column.null_count = 1;
  EXPECT_EQ(Error(column, Type(TypeId::kI64)),
            "null at row 1 of column keys[0]: i64; accepted: no nulls, or a spec with i64:nullable");
}

TEST(ImportErrors, StructArray) {
  const TestArray column = Fixed<int64_t>({1, 2, 3});
  const ColumnType type = Type(TypeId::kI64);
  const auto error = [&](const std::function<void(TestBatch*)>& change) { return Error(column, type, change); };
  EXPECT_EQ(error([](TestBatch* b) { b->array.length = -1; }),
            "number of rows out of range: -1; accepted: below 4294967295");
  EXPECT_EQ(error([](TestBatch* b) { b->array.length = 4294967295; }),
            "number of rows out of range: 4294967295; accepted: below 4294967295");
  EXPECT_EQ(error([](TestBatch* b) { b->array.offset = -1; }), "offset out of range: -1; accepted: 0 or more");
  EXPECT_EQ(error([](TestBatch* b) { b->array.offset = INT64_MAX; }),
            "offset out of range: 9223372036854775807; accepted: 0 or more");
  EXPECT_EQ(error([](TestBatch* b) { b->array.offset = 1; }), "too few rows of column keys[0]: 3; accepted: 4 or more");
  EXPECT_EQ(error([](TestBatch* b) { b->array.n_buffers = 2; }),
            "not a struct array, by its number of buffers: 2; accepted: 1");
  EXPECT_EQ(error([](TestBatch* b) { b->array.n_children = -1; }),
            "number of children out of range: -1; accepted: 0 or more");
  EXPECT_EQ(error([](TestBatch* b) { b->array.n_children = 0; }),
            "field out of range for keys[0]: 0; accepted: 0 to -1");
  EXPECT_EQ(error([](TestBatch* b) { b->children[0] = nullptr; }),
            "missing child of column keys[0]: null; accepted: an array");
  EXPECT_EQ(error([](TestBatch* b) { b->array.null_count = 2; }), "struct array with null rows: 2; accepted: none");
  const auto with_bitmap = [&](const std::string& bits, int64_t null_count) {
    return error([&](TestBatch* b) {
      b->bitmap = Bitmap(bits);
      b->buffer = b->bitmap.data();
      b->array.null_count = null_count;
    });
  };
  EXPECT_EQ(with_bitmap("101", -1), "struct array with null rows: 1; accepted: none");
  EXPECT_EQ(with_bitmap("101", 0), "struct array with null rows: 1; accepted: none");
  EXPECT_EQ(with_bitmap("111", -1), "no error");
  EXPECT_EQ(error([](TestBatch* b) { b->array.release = nullptr; }),
            "released array: no release callback; accepted: a struct array that is alive");
  EXPECT_EQ(Message(ImportArrow(nullptr, {}, {}, {}).status()),
            "released array: no release callback; accepted: a struct array that is alive");
}

TEST(ImportErrors, Bindings) {
  const auto error = [](const ColumnBinding& binding, const std::vector<ColumnType>& payload) {
    TestBatch batch({Fixed<int64_t>({1})});
    const std::string message = Message(ImportArrow(&batch.array, binding, {Type(TypeId::kI64)}, payload).status());
    EXPECT_EQ(batch.released, 1);
    return message;
  };
  EXPECT_EQ(error({{0, 0}, {}}, {}), "binding of wrong size: 2 keys; accepted: 1");
  EXPECT_EQ(error({{0}, {}}, {Type(TypeId::kI64)}), "binding of wrong size: 0 payload columns; accepted: 1");
  EXPECT_EQ(error({{1}, {}}, {}), "field out of range for keys[0]: 1; accepted: 0 to 0");
  EXPECT_EQ(error({{-1}, {}}, {}), "field out of range for keys[0]: -1; accepted: 0 to 0");
  EXPECT_EQ(error({{0}, {0}}, {Type(TypeId::kRowId)}),
            "field out of range for payload[0]: 0; accepted: -1 for a rowid");
}

TEST(ImportErrors, Offsets) {
  const ColumnType utf8 = Type(TypeId::kUtf8), large = Type(TypeId::kLargeUtf8, true);
  EXPECT_EQ(Error(StringsAt<int32_t>({0, 40, 12, 50}, std::string(50, 'x')), utf8),
            "offsets fall at row 1 of column keys[0]: 40 to 12; accepted: non-decreasing");
  EXPECT_EQ(Error(StringsAt<int32_t>({-1, 40}, std::string(50, 'x')), utf8),
            "negative offset at row 0 of column keys[0]: -1; accepted: 0 or more");
  EXPECT_EQ(Error(StringsAt<int32_t>({0, 40, INT32_MIN}, std::string(50, 'x')), utf8),
            "offsets fall at row 1 of column keys[0]: 40 to -2147483648; accepted: non-decreasing");
  EXPECT_EQ(Error(StringsAt<int64_t>({0, 40, 12}, std::string(50, 'x')), large),
            "offsets fall at row 1 of column keys[0]: 40 to 12; accepted: non-decreasing");
  EXPECT_EQ(Error(StringsAt<int64_t>({0, 5000000000}, "x"), large),
            "value too long at row 0 of column keys[0]: 5000000000 bytes; accepted: up to 4294967295");
  EXPECT_EQ(Error(StringsAt<int64_t>({0, 5000000000}, "x", "0"), large), "no error");
  EXPECT_EQ(Error(StringsAt<int64_t>({0, 4294967295}, "x"), large), "no error");
  TestArray strings = StringsAt<int32_t>({0, 3}, "abc");
  strings.present[2] = false;
  EXPECT_EQ(Error(strings, utf8),
            "missing buffer of column keys[0]: bytes; accepted: no null pointer where there are 1 rows");
  strings.present = {false, false, true};
  EXPECT_EQ(Error(strings, utf8),
            "missing buffer of column keys[0]: offsets; accepted: no null pointer where there are 1 rows");
  // Rows before the slice are not checked.
  EXPECT_EQ(Error(StringsAt<int32_t>({9, 0, 1, 2}, "ab").Sliced(1, 2), utf8), "no error");
}

TEST(ImportErrors, Views) {
  const ColumnType type = Type(TypeId::kBinaryView, true);
  const auto error = [&](const View& view, const std::string& validity = "") {
    return Error(Views({{0, {}, 0, 0}, view}, {std::string(20, 'x')}, validity), type);
  };
  EXPECT_EQ(error({20, {}, 0, 0}), "no error");
  for (const int32_t length : {-1, -2, -3, -4, -5, INT32_MIN}) {
    EXPECT_EQ(error({length, {}, 0, 0}), "negative length of a view at row 1 of column keys[0]: " +
                                             std::to_string(length) + "; accepted: 0 or more");
  }
  EXPECT_EQ(error({13, {}, 1, 0}), "view into an unknown buffer at row 1 of column keys[0]: 1; accepted: below 1");
  EXPECT_EQ(error({13, {}, -1, 0}), "view into an unknown buffer at row 1 of column keys[0]: -1; accepted: below 1");
  EXPECT_EQ(error({13, {}, 0, 8}),
            "view outside its buffer at row 1 of column keys[0]: 8 and 13 bytes; accepted: within 20");
  EXPECT_EQ(error({INT32_MAX, {}, 0, INT32_MAX}),
            "view outside its buffer at row 1 of column keys[0]: 2147483647 and 2147483647 bytes; accepted: within 20");
  EXPECT_EQ(error({13, {}, 0, -1}),
            "view outside its buffer at row 1 of column keys[0]: -1 and 13 bytes; accepted: within 20");
  std::vector<View> many(600, {12, {}, 77, -9});
  many[599] = {16, {}, 0, 5};
  EXPECT_EQ(Error(Views(many, {std::string(20, 'x')}), type),
            "view outside its buffer at row 599 of column keys[0]: 5 and 16 bytes; accepted: within 20");
  EXPECT_EQ(error({-5, {}, 77, -9}, "10"), "no error");  // null: garbage is not checked
  EXPECT_EQ(error({12, {}, 77, -9}), "no error");        // inline: these bytes belong to the string
  TestArray views = Views({{20, {}, 0, 0}}, {std::string(20, 'x')});
  views.bytes[3] = BytesOf<int64_t>({-1});
  EXPECT_EQ(Error(views, type), "negative size of data buffer 0 of column keys[0]: -1; accepted: 0 or more");
  views.present[3] = false;
  EXPECT_EQ(
      Error(views, type),
      "missing buffer of column keys[0]: sizes of the data buffers; accepted: no null pointer where there are 1 rows");
  views = Views({{20, {}, 0, 0}}, {std::string(20, 'x')});
  views.present[2] = false;
  EXPECT_EQ(Error(views, type),
            "missing buffer of column keys[0]: data; accepted: no null pointer where there are 1 rows");
  views.present[1] = false;
  EXPECT_EQ(Error(views, type),
            "missing buffer of column keys[0]: views; accepted: no null pointer where there are 1 rows");
  views.bytes.resize(2);
  EXPECT_EQ(Error(views, type), "wrong number of buffers of column keys[0]: 2; accepted: 3 or more");
}

// Blocks of views are checked at once where all lie in one buffer.
TEST(ImportErrors, OneViewOfManyIsFoundAnywhere) {
  const ColumnType type = Type(TypeId::kBinaryView);
  const std::vector<std::string> buffers = {std::string(20, 'x'), std::string(40, 'y')};
  const View bad[] = {{-1, {}, 0, 0},         {INT32_MIN, {}, 1, 0},  {13, {}, 2, 0},  {13, {}, -1, 0},
                      {13, {}, 0, 8},         {13, {}, 1, 28},        {13, {}, 0, -1}, {INT32_MAX, {}, 1, INT32_MAX},
                      {13, {}, 1, INT32_MAX}, {INT32_MAX, {}, 1, -1}, {41, {}, 1, 0},  {21, {}, 0, 0}};
  for (const size_t num_rows : {1u, 3u, 4u, 255u, 257u, 600u}) {
    std::vector<View> views(num_rows);
    for (size_t i = 0; i < num_rows; ++i)
      views[i] = i % 5 == 4 ? View{12, {}, 77, -9} : View{static_cast<int32_t>(13 + i % 8), {}, 1, 20};
    EXPECT_EQ(Error(Views(views, buffers), type), "no error") << num_rows;
    for (size_t at = 0; at < num_rows; at += 1 + num_rows / 40) {
      for (const View& view : bad) {
        std::vector<View> wrong = views;
        wrong[at] = view;
        EXPECT_NE(Error(Views(wrong, buffers), type).find(" at row " + std::to_string(at) + " of"), std::string::npos)
            << num_rows << " " << at << " " << view.length << " " << view.buffer << " " << view.offset;
      }
      std::vector<View> other = views;
      other[at] = {20, {}, 0, 0};  // valid, in the other buffer
      EXPECT_EQ(Error(Views(other, buffers), type), "no error") << num_rows << " " << at;
    }
  }
}

TEST(ImportErrors, Dictionaries) {
  const ColumnType type = Dictionary(TypeId::kI8, TypeId::kUtf8);
  const TestArray indices = Fixed<int8_t>({0});
  EXPECT_EQ(Error(indices, type), "missing dictionary of column keys[0]: none; accepted: dictionary(i8,utf8)");
  EXPECT_EQ(Error(WithDictionary(indices, StringsAt<int32_t>({0, 4, 2}, "abcd")), type),
            "offsets fall at row 1 of column dictionary of keys[0]: 4 to 2; accepted: non-decreasing");
  EXPECT_EQ(Error(WithDictionary(indices, StringsAt<int32_t>({0}, "")), type),
            "index outside the dictionary at row 0 of column keys[0]: 0; accepted: 0 or more, below 0");
  TestArray dictionary = StringsAt<int32_t>({0, 1}, "a");
  EXPECT_EQ(Error(WithDictionary(indices, WithDictionary(dictionary, dictionary)), type),
            "unexpected dictionary of column dictionary of keys[0]: a second one; accepted: none");
  dictionary.length = 4294967295;
  EXPECT_EQ(Error(WithDictionary(indices, dictionary), type),
            "too many rows of column dictionary of keys[0]: 4294967295; accepted: below 4294967295");
}

// ---- schemas ----

struct TestSchema {
  std::string format;
  std::string name;
  int64_t flags = ARROW_FLAG_NULLABLE;
  std::vector<TestSchema> fields = {};
  std::vector<TestSchema> dictionary = {};

  std::vector<ArrowSchema*> pointers = {};
  ArrowSchema schema = {};

  const ArrowSchema& Finish() {
    schema = {};
    schema.format = format.c_str();
    schema.name = name.c_str();
    schema.flags = flags;
    pointers.clear();
    for (TestSchema& field : fields) {
      field.Finish();
      pointers.push_back(&field.schema);
    }
    schema.n_children = static_cast<int64_t>(fields.size());
    schema.children = pointers.data();
    if (!dictionary.empty()) {
      dictionary[0].Finish();
      schema.dictionary = &dictionary[0].schema;
    }
    return schema;
  }
};

// The type of a format, printed, or the error message.
std::string TypeOf(TestSchema schema) {
  const auto type = TypeOfArrow(schema.Finish());
  return type.ok() ? PrintType(*type) + (type->nullable ? ":nullable" : "") : Message(type.status());
}

std::string TypeOf(const char* format) { return TypeOf(TestSchema{format, "x", 0}); }

TEST(TypeOfArrow, EveryFormat) {
  EXPECT_EQ(TypeOf("b"), "bool");
  EXPECT_EQ(TypeOf("c"), "i8");
  EXPECT_EQ(TypeOf("C"), "u8");
  EXPECT_EQ(TypeOf("s"), "i16");
  EXPECT_EQ(TypeOf("S"), "u16");
  EXPECT_EQ(TypeOf("i"), "i32");
  EXPECT_EQ(TypeOf("I"), "u32");
  EXPECT_EQ(TypeOf("l"), "i64");
  EXPECT_EQ(TypeOf("L"), "u64");
  EXPECT_EQ(TypeOf("f"), "f32");
  EXPECT_EQ(TypeOf("g"), "f64");
  EXPECT_EQ(TypeOf("d:9,2,32"), "decimal32");
  EXPECT_EQ(TypeOf("d:18,-3,64"), "decimal64");
  EXPECT_EQ(TypeOf("d:10,2"), "decimal128");
  EXPECT_EQ(TypeOf("d:38,-3,128"), "decimal128");
  EXPECT_EQ(TypeOf("tdD"), "date32");
  EXPECT_EQ(TypeOf("tdm"), "date64");
  EXPECT_EQ(TypeOf("tts"), "time32");
  EXPECT_EQ(TypeOf("ttm"), "time32");
  EXPECT_EQ(TypeOf("ttu"), "time64");
  EXPECT_EQ(TypeOf("ttn"), "time64");
  EXPECT_EQ(TypeOf("tss:"), "timestamp");
  EXPECT_EQ(TypeOf("tsn:Europe/Berlin"), "timestamp");
  EXPECT_EQ(TypeOf("tDs"), "duration");
  EXPECT_EQ(TypeOf("tDm"), "duration");
  EXPECT_EQ(TypeOf("tDu"), "duration");
  EXPECT_EQ(TypeOf("tDn"), "duration");
  EXPECT_EQ(TypeOf("w:16"), "fixed_binary(16)");
  EXPECT_EQ(TypeOf("z"), "binary");
  EXPECT_EQ(TypeOf("u"), "utf8");
  EXPECT_EQ(TypeOf("Z"), "large_binary");
  EXPECT_EQ(TypeOf("U"), "large_utf8");
  EXPECT_EQ(TypeOf("vz"), "binary_view");
  EXPECT_EQ(TypeOf("vu"), "utf8_view");
  EXPECT_EQ(TypeOf(TestSchema{.format = "u", .name = "x"}), "utf8:nullable");
  EXPECT_EQ(TypeOf(TestSchema{.format = "i", .name = "x", .dictionary = {{.format = "w:3", .name = ""}}}),
            "dictionary(i32,fixed_binary(3)):nullable");
}

TEST(TypeOfArrow, WhatIsNotRead) {
  const std::string accepted =
      "; accepted: b, c, s, i, l, C, S, I, L, f, g, d:*, tdD, tdm, tts|ttm, ttu|ttn, ts*, tDs|tDm|tDu|tDn, w:*, z, u, "
      "Z, U, vz, vu, and "
      "dictionaries of these with integer indices";
  for (const char* format :
       {"",       "+l",   "+s",   "e",     "n",      "d:76,2,256", "d:10,2,32", "d:19,0,64",  "d:9,2,16",
        "d:9,2,", "d:10", "d:",   "d:0,0", "d:39,0", "d:a,b",      "d:*",       "d:1,2,1280", "tdx",
        "tD",     "tDx",  "tDss", "ts*",   "tsx:",   "ts",         "tss",       "w:0",        "w:65537",
        "w:",     "w:-1", "w:1x", "ii",    "tDD",    "vv"}) {
    EXPECT_EQ(TypeOf(format), "unsupported type of field \"x\": " + std::string(format) + accepted);
  }
  EXPECT_EQ(TypeOf(TestSchema{.format = "u", .name = "x\n", .dictionary = {{.format = "u", .name = ""}}}),
            "unsupported type of field \"x?\": dictionary(u,u)" + accepted);
  const TestSchema dictionary = {.format = "i", .name = "x", .dictionary = {{.format = "u", .name = ""}}};
  EXPECT_EQ(TypeOf(TestSchema{.format = "i", .name = "x", .dictionary = {dictionary}}),
            "unsupported type of field \"x\": dictionary(i,i)" + accepted);
  EXPECT_TRUE(absl::IsUnimplemented(TypeOfArrow(ArrowSchema{}).status()));
}

TEST(CheckSchema, ComparesTypes) {
  TestSchema schema = {
      .format = "+s", .name = "", .fields = {{.format = "i", .name = "a"}, {.format = "u", .name = "b"}}};
  const auto check = [&](const ColumnBinding& binding, const std::vector<ColumnType>& keys,
                         const std::vector<ColumnType>& payload) {
    return Message(CheckSchema(schema.Finish(), binding, keys, payload, "build"));
  };
  ColumnType collated = Type(TypeId::kUtf8);
  collated.collation = kCollationAsciiBin;
  EXPECT_EQ(check({{0, 1}, {1, -1}}, {Type(TypeId::kI32), collated}, {Type(TypeId::kUtf8), Type(TypeId::kRowId)}),
            "no error");
  EXPECT_EQ(check({{0}, {}}, {Type(TypeId::kI64)}, {}),
            "wrong type for build keys[0]: field \"a\" is i32; accepted: i64");
  EXPECT_EQ(check({{0}, {0}}, {Type(TypeId::kI32)}, {Type(TypeId::kDate32)}),
            "wrong type for build payload[0]: field \"a\" is i32; accepted: date32");
  EXPECT_EQ(check({{1}, {}}, {Dictionary(TypeId::kI8, TypeId::kUtf8)}, {}),
            "wrong type for build keys[0]: field \"b\" is utf8; accepted: dictionary(i8,utf8)");
  EXPECT_EQ(check({{0}, {}}, {collated}, {}), "wrong type for build keys[0]: field \"a\" is i32; accepted: utf8");
  EXPECT_EQ(check({{2}, {}}, {Type(TypeId::kI32)}, {}), "field out of range for keys[0]: 2; accepted: 0 to 1");
  EXPECT_EQ(check({{}, {}}, {Type(TypeId::kI32)}, {}), "binding of wrong size: 0 keys; accepted: 1");
  schema.fields[0].format = "+l";
  EXPECT_EQ(check({{0}, {}}, {Type(TypeId::kI64)}, {}),
            "wrong type for build keys[0]: field \"a\" is of unsupported format +l; accepted: i64");
  schema.format = "i";
  EXPECT_EQ(check({{0}, {}}, {Type(TypeId::kI64)}, {}), "not a struct schema on the build side: i; accepted: +s");
  EXPECT_EQ(Message(CheckSchema(ArrowSchema{}, {}, {}, {}, "probe")),
            "not a struct schema on the probe side: ; accepted: +s");
}

}  // namespace
}  // namespace quern
