// SPDX-License-Identifier: Apache-2.0
// Arrow C data arrays and schemas for tests, which own their memory, spoil it when they are released and count how
// often they are.
#ifndef QUERN_TEST_HOSTS_ARROW_ARRAYS_H_
#define QUERN_TEST_HOSTS_ARROW_ARRAYS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

// A host has the interface's structs from wherever it likes.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
}
#endif  // ARROW_C_DATA_INTERFACE

namespace quern_test {

constexpr int64_t kArrowNullable = 2;

// An array whose fields a test may spoil before it hands it over.
class TestArray {
 public:
  explicit TestArray(int64_t length) {
    array.length = length;
    array.release = [](ArrowArray* released) { static_cast<TestArray*>(released->private_data)->Released(released); };
    array.private_data = this;
  }
  TestArray(const TestArray&) = delete;
  TestArray& operator=(const TestArray&) = delete;

  TestArray& AddBuffer(const void* data, size_t bytes) {
    const auto* begin = static_cast<const uint8_t*>(data);
    memory_.emplace_back(begin, begin + bytes);
    return AddPointer(memory_.back().data());
  }
  template <class T>
  TestArray& AddBuffer(const std::vector<T>& elements) {
    return AddBuffer(elements.data(), elements.size() * sizeof(T));
  }
  TestArray& AddPointer(const void* pointer) {
    pointers_.push_back(pointer);
    array.buffers = pointers_.data();
    array.n_buffers = static_cast<int64_t>(pointers_.size());
    return *this;
  }
  TestArray& AddChild(std::unique_ptr<TestArray> child) {
    child_pointers_.push_back(&child->array);
    children.push_back(std::move(child));
    array.children = child_pointers_.data();
    array.n_children = static_cast<int64_t>(child_pointers_.size());
    return *this;
  }
  TestArray& SetDictionary(std::unique_ptr<TestArray> values) {
    dictionary = std::move(values);
    array.dictionary = &dictionary->array;
    return *this;
  }
  // The pointers of the buffers, to be spoiled.
  std::vector<const void*>& pointers() { return pointers_; }

  ArrowArray array = {};
  std::vector<std::unique_ptr<TestArray>> children;
  std::unique_ptr<TestArray> dictionary;
  int times_released = 0;

 private:
  void Released(ArrowArray* released) {
    Spoil();
    ++times_released;
    released->release = nullptr;
  }
  void Spoil() {
    for (std::vector<uint8_t>& buffer : memory_) std::fill(buffer.begin(), buffer.end(), uint8_t{0xdd});
    for (auto& child : children) child->Spoil();
    if (dictionary) dictionary->Spoil();
  }

  std::deque<std::vector<uint8_t>> memory_;
  std::vector<const void*> pointers_;
  std::vector<ArrowArray*> child_pointers_;
};

using TestArrayPtr = std::unique_ptr<TestArray>;

template <class T>
TestArrayPtr FixedArray(const std::vector<T>& values) {
  auto array = std::make_unique<TestArray>(static_cast<int64_t>(values.size()));
  array->AddPointer(nullptr).AddBuffer(values);
  return array;
}

inline TestArrayPtr Utf8Array(const std::vector<std::string>& values) {
  auto array = std::make_unique<TestArray>(static_cast<int64_t>(values.size()));
  std::string bytes;
  std::vector<int32_t> offsets = {0};
  for (const std::string& value : values) {
    bytes += value;
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  array->AddPointer(nullptr).AddBuffer(offsets).AddBuffer(bytes.data(), bytes.size() + 1);
  return array;
}

inline TestArrayPtr DictionaryArray(const std::vector<int32_t>& indices, TestArrayPtr values) {
  auto array = FixedArray(indices);
  array->SetDictionary(std::move(values));
  return array;
}

// Gives an array a validity bitmap.
inline TestArrayPtr WithNulls(TestArrayPtr array, const std::vector<uint8_t>& bitmap, int64_t null_count) {
  array->AddBuffer(bitmap);  // owned as one more buffer, which then moves to the front
  array->pointers()[0] = array->pointers().back();
  array->pointers().pop_back();
  --array->array.n_buffers;
  array->array.null_count = null_count;
  return array;
}

template <class... Children>
TestArrayPtr StructArray(int64_t length, Children... children) {
  auto array = std::make_unique<TestArray>(length);
  array->AddPointer(nullptr);
  (array->AddChild(std::move(children)), ...);
  return array;
}

// One field of a test's schema; dictionary: the format of the values, or null.
struct TestField {
  const char* name;
  const char* format;
  const char* dictionary = nullptr;
  bool nullable = false;
};

// A struct schema. Nothing is released: a test keeps it.
class TestSchema {
 public:
  TestSchema(std::initializer_list<TestField> fields) : TestSchema(std::vector<TestField>(fields)) {}
  explicit TestSchema(const std::vector<TestField>& fields) : fields_(fields.size()), dictionaries_(fields.size()) {
    for (size_t i = 0; i < fields.size(); ++i) {
      fields_[i].format = fields[i].format;
      fields_[i].name = fields[i].name;
      fields_[i].flags = fields[i].nullable ? kArrowNullable : 0;
      if (fields[i].dictionary != nullptr) {
        dictionaries_[i].format = fields[i].dictionary;
        dictionaries_[i].name = "";
        fields_[i].dictionary = &dictionaries_[i];
      }
      pointers_.push_back(&fields_[i]);
    }
    schema.format = "+s";
    schema.name = "";
    schema.n_children = static_cast<int64_t>(fields.size());
    schema.children = pointers_.data();
  }
  TestSchema(const TestSchema&) = delete;
  TestSchema& operator=(const TestSchema&) = delete;

  ArrowSchema schema = {};

 private:
  std::vector<ArrowSchema> fields_, dictionaries_;
  std::vector<ArrowSchema*> pointers_;
};

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_ARROW_ARRAYS_H_
