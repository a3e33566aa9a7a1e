// SPDX-License-Identifier: Apache-2.0
// Arrow input and output: arrays that are moved in, their rows, child numbers, formats, and exported schemas. Internal.
#ifndef QUERN_HOSTS_C_ARROW_FIELDS_H_
#define QUERN_HOSTS_C_ARROW_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hosts/c/quern.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/rows/arrow_format.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"

namespace quern::c_abi {

// What a bound schema says of a column: its name, and the format of its values.
struct BoundField {
  std::string name;
  std::string format;
};

// One column of a result's schema.
struct ResultField {
  std::string name;
  std::string format;
  bool nullable = false;
  bool is_row_id = false;
};

// The field of a column that comes out unchanged; a rowid is called `rowid`.
ResultField FieldOf(const BoundField& bound, const ColumnType& type, const char* rowid, bool nullable);

// Releases an array that no import has taken over.
class MovedInArray {
 public:
  explicit MovedInArray(ArrowArray* array) : array_(array) {}
  MovedInArray(const MovedInArray&) = delete;
  MovedInArray& operator=(const MovedInArray&) = delete;
  ~MovedInArray() {
    if (array_ != nullptr && array_->release != nullptr) array_->release(array_);
  }

 private:
  ArrowArray* array_;
};

// A caller's list of child numbers. *Errors*: InvalidArgument if numbers are needed and none are given; `name` is the
// parameter's.
absl::StatusOr<std::vector<int>> ChildNumbers(const int32_t* numbers, size_t count, const char* name);

// Lets only these rows of an imported array take part (null: all of them). The view points to the caller's selection.
// *Cost*: one pass over the selection. *Errors*: InvalidArgument for a number that is not a row of the array, and for a
// struct of another size.
absl::Status SelectArrowRows(const quern_arrow_rows* rows, BatchView* view);

// Empty for null.
std::string TextOf(const char* text);
// The format of the values: of a dictionary's values if the field has a dictionary.
std::string ValueFormat(const ArrowSchema& field);

// A field and the side that it belongs to, for errors.
struct SideField {
  const BoundField& field;
  const char* side;
};
// Checks that values of two sides mean the same. part: "keys". *Errors*: InvalidArgument.
absl::Status CheckSameUnit(const SideField& a, const SideField& b, const char* part, size_t i);

// Writes a struct schema of these fields. metadata: in the interface's encoding; empty for none. *Ownership*: the
// caller releases it; an error leaves it empty.
absl::Status ExportFields(const std::vector<ResultField>& fields, std::string metadata, ArrowSchema* schema);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_ARROW_FIELDS_H_
