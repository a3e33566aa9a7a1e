// SPDX-License-Identifier: Apache-2.0
// Arrow structs made from fuzz input. Each buffer has exactly the bytes that its struct promises, so that
// AddressSanitizer sees a read beyond it; a few members lie, where the lie can be detected.
#ifndef QUERN_TEST_FUZZ_TARGETS_FUZZ_ARROW_H_
#define QUERN_TEST_FUZZ_TARGETS_FUZZ_ARROW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/arrow_abi.h"
#include "test/fuzz/targets/fuzz_target.h"

namespace quern::fuzz {

// A column of a batch: the format of its values, and of its indices if it is a dictionary.
struct ArrowColumn {
  std::string format;
  std::string index;  // "": no dictionary
};
ArrowColumn ReadColumn(Input* in);

// The struct schema of some columns. *Ownership*: its release callback does nothing; the object owns all of it.
class FuzzSchema {
 public:
  explicit FuzzSchema(const std::vector<ArrowColumn>& columns);
  const ArrowSchema& field(size_t column) const { return nodes_[first_[column]]->schema; }
  const ArrowSchema* get() const { return &nodes_[0]->schema; }
  // Makes one member of the struct or of a column a lie, or a format other words.
  void Break(Input* in);

 private:
  struct Node {
    ArrowSchema schema = {};
    std::string format, name;
    std::vector<ArrowSchema*> children;
  };
  size_t Add(const std::string& format, const std::string& name);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<size_t> first_;  // the node of each column
};

// A struct array of up to 40 rows. *Ownership*: the object owns all buffers; the array's release callback counts.
class FuzzArray {
 public:
  FuzzArray(const std::vector<ArrowColumn>& columns, Input* in);
  ~FuzzArray();
  FuzzArray(const FuzzArray&) = delete;
  FuzzArray& operator=(const FuzzArray&) = delete;

  ArrowArray* get() { return &nodes_[0]->array; }
  int times_released() const { return times_released_; }
  void Break(Input* in);  // makes one member a lie that can be detected

 private:
  struct Node {
    ArrowArray array = {};
    std::unique_ptr<const void*[]> buffers;
    std::unique_ptr<ArrowArray*[]> children;
  };
  Node* AddNode(int64_t length, int64_t offset, const std::vector<const void*>& buffers);
  Node* AddColumn(const ArrowColumn& column, int64_t rows, Input* in);
  Node* AddValues(const std::string& format, int64_t rows, Input* in);
  std::vector<const void*> Strings(size_t offset_bytes, int64_t slots, Input* in);
  std::vector<const void*> Views(int64_t slots, Input* in);
  uint8_t* Buffer(size_t bytes, Input* in);  // filled from the input

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
  int times_released_ = 0;
};

// Reads every byte of an array of these fields that a consumer may read, and releases both.
void ReadAndRelease(ArrowArray* array, const ArrowSchema& schema);

}  // namespace quern::fuzz

#endif  // QUERN_TEST_FUZZ_TARGETS_FUZZ_ARROW_H_
