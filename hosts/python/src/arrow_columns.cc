// SPDX-License-Identifier: Apache-2.0
// A producer hands over a struct array once; here several threads use its columns in parts, and results can be exported
// any number of times. So a counted owner keeps the array, and every exported ArrowArray is a copy of the small struct
// with one more reference:
//
//     producer's array (1,000,000 rows)  <- owner <- Column 0, Column 1
//     morsel 3: rows 196608 to 262143    = Column with offset + 196608, length 65536
//     its export                         = ArrowArray whose release drops one reference
//
// Each exported child has a release callback of its own, as the C data interface requires, since a consumer may move
// one out of its parent.
#include "arrow_columns.h"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "errors.h"
#include "runtime/rows/arrow_import.h"

namespace quern::python {
namespace {

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

// ---- schemas ----

struct SchemaTexts {
  std::string format, name;
  ArrowSchema dictionary = {};
};

void ReleaseField(ArrowSchema* schema) {
  auto* const texts = static_cast<SchemaTexts*>(schema->private_data);
  if (texts->dictionary.release != nullptr) texts->dictionary.release(&texts->dictionary);
  delete texts;
  schema->release = nullptr;
}

ArrowSchema SchemaOf(const std::string& format, const std::string& name, int64_t flags) {
  auto texts = std::make_unique<SchemaTexts>(SchemaTexts{format, name});
  ArrowSchema schema = {};
  schema.format = texts->format.c_str();
  schema.name = texts->name.c_str();
  schema.flags = flags;
  schema.release = ReleaseField;
  schema.private_data = texts.release();
  return schema;
}

ArrowSchema SchemaOf(const Field& field) {
  const int64_t flags =
      (field.nullable ? ARROW_FLAG_NULLABLE : 0) | (field.ordered ? ARROW_FLAG_DICTIONARY_ORDERED : 0);
  ArrowSchema schema = SchemaOf(field.format, field.name, flags);
  if (field.dictionary.empty()) return schema;
  auto* const texts = static_cast<SchemaTexts*>(schema.private_data);
  texts->dictionary = SchemaOf(field.dictionary, "", ARROW_FLAG_NULLABLE);
  schema.dictionary = &texts->dictionary;
  return schema;
}

struct Fields {
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

void ReleaseFields(ArrowSchema* schema) {
  const std::unique_ptr<Fields> fields(static_cast<Fields*>(schema->private_data));
  for (ArrowSchema& child : fields->children)
    if (child.release != nullptr) child.release(&child);
  schema->release = nullptr;
}

// ---- arrays ----

// What an array that went out keeps.
struct Shared {
  std::shared_ptr<const void> owner;
  ArrowArray dictionary = {};
};

void ReleaseShared(ArrowArray* array) {
  auto* const shared = static_cast<Shared*>(array->private_data);
  if (shared->dictionary.release != nullptr) shared->dictionary.release(&shared->dictionary);
  delete shared;
  array->release = nullptr;
}

ArrowArray Share(const ArrowArray& array, const std::shared_ptr<const void>& owner) {
  auto shared = std::make_unique<Shared>(Shared{owner});
  ArrowArray copy = array;
  if (array.dictionary != nullptr) {
    shared->dictionary = Share(*array.dictionary, owner);
    copy.dictionary = &shared->dictionary;
  }
  copy.release = ReleaseShared;
  copy.private_data = shared.release();
  return copy;
}

struct Children {
  std::vector<ArrowArray> arrays;
  std::vector<ArrowArray*> pointers;
  const void* no_validity = nullptr;
};

void ReleaseChildren(ArrowArray* array) {
  const std::unique_ptr<Children> children(static_cast<Children*>(array->private_data));
  for (ArrowArray& child : children->arrays)
    if (child.release != nullptr) child.release(&child);
  array->release = nullptr;
}

// Keeps a moved array until the last reader is gone.
struct MovedArray {
  ArrowArray array;
  explicit MovedArray(ArrowArray* from) : array(*from) { from->release = nullptr; }
  MovedArray(const MovedArray&) = delete;
  MovedArray& operator=(const MovedArray&) = delete;
  ~MovedArray() {
    if (array.release != nullptr) array.release(&array);
  }
};

bool AnyBitClear(const uint8_t* bitmap, int64_t first, int64_t count) {
  for (int64_t i = first, end = first + count; i < end;) {
    if (i % 64 == 0 && end - i >= 64) {
      uint64_t word = 0;
      std::memcpy(&word, bitmap + i / 8, sizeof(word));
      if (word != ~uint64_t{0}) return true;
      i += 64;
      continue;
    }
    if ((bitmap[i / 8] >> (i % 8) & 1) == 0) return true;
    ++i;
  }
  return false;
}

bool HasNulls(const ArrowArray& array) {
  if (array.null_count == 0 || array.length == 0) return false;
  if (array.n_buffers == 0) return true;  // of type null
  const auto* const validity = static_cast<const uint8_t*>(array.buffers[0]);
  return validity != nullptr && AnyBitClear(validity, array.offset, array.length);
}

// ---- what a producer may get wrong ----

// A format of more bytes is that of a nested type with many fields, which nothing reads.
constexpr size_t kMaxFormatBytes = 256;

std::string FormatOf(const ArrowSchema& schema, const std::string& what) {
  if (schema.format == nullptr || schema.format[0] == '\0')
    throw std::invalid_argument("missing Arrow format of " + what + ": none; accepted: a format, as l or u");
  return std::string(schema.format, strnlen(schema.format, kMaxFormatBytes));
}

void CheckStruct(const ArrowArray& array, size_t num_columns) {
  constexpr int64_t kMaxElements = int64_t{1} << 44;  // more than memory holds
  const auto refuse = [](const std::string& what, int64_t value, const std::string& accepted) {
    throw std::invalid_argument(what + ": " + std::to_string(value) + "; accepted: " + accepted);
  };
  if (array.release == nullptr)
    throw std::invalid_argument("released array: no release callback; accepted: an array that is alive");
  if (array.length < 0 || array.length > kMaxElements) refuse("number of rows out of range", array.length, "0 to 2^44");
  if (array.offset < 0 || array.offset > kMaxElements - array.length)
    refuse("offset out of range", array.offset, "0 or more, up to 2^44 with the rows");
  if (array.n_buffers < 0 || array.n_buffers > 1 || (array.n_buffers == 1 && array.buffers == nullptr))
    refuse("not a struct array, by its number of buffers", array.n_buffers, "1, with a pointer to it");
  if (array.n_children != static_cast<int64_t>(num_columns))
    refuse("batch that does not fit its schema, by its columns", array.n_children, std::to_string(num_columns));
  if (num_columns > 0 && array.children == nullptr) refuse("missing columns of a batch", array.n_children, "arrays");
}

void CheckChild(const ArrowArray* child, const std::optional<ColumnType>& type, size_t number) {
  const std::string name = std::to_string(number);
  if (child == nullptr)
    throw std::invalid_argument("missing array of a column: column " + name + "; accepted: an array");
  if (type.has_value()) return Check(CheckArrowArray(*child, *type, name));
  if (child->release == nullptr || child->n_buffers < 0 || (child->n_buffers > 0 && child->buffers == nullptr)) {
    throw std::invalid_argument("array without its buffers: column " + name +
                                "; accepted: an array that is alive, with a pointer to each buffer");
  }
}

}  // namespace

Field FieldOf(const ArrowSchema& schema) {
  Field field{TextOf(schema.name), "", "", (schema.flags & ARROW_FLAG_NULLABLE) != 0,
              (schema.flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0};
  const std::string what = "column " + field.name;
  field.format = FormatOf(schema, what);
  if (schema.dictionary != nullptr) field.dictionary = FormatOf(*schema.dictionary, "dictionary of " + what);
  return field;
}

void ExportSchema(const std::vector<Field>& fields, ArrowSchema* schema) {
  auto owner = std::make_unique<Fields>();
  owner->children.reserve(fields.size());
  for (const Field& field : fields) owner->children.push_back(SchemaOf(field));
  for (ArrowSchema& child : owner->children) owner->pointers.push_back(&child);
  *schema = {};
  schema->format = "+s";
  schema->name = "";
  schema->n_children = static_cast<int64_t>(fields.size());
  schema->children = owner->pointers.data();
  schema->release = ReleaseFields;
  schema->private_data = owner.release();
}

std::vector<Field> FieldsOf(const ArrowSchema& schema, const std::string& what) {
  if (schema.release == nullptr)
    throw std::invalid_argument("schema of " + what + " that was released: no release callback; accepted: a new one");
  const std::string format = FormatOf(schema, what);
  if (format != "+s") {
    throw std::invalid_argument("no table in " + what + ": Arrow format " + format +
                                "; accepted: +s, rows made of columns");
  }
  if (schema.n_children < 0 || (schema.n_children > 0 && schema.children == nullptr)) {
    throw std::invalid_argument("schema of " + what + " without its columns: " + std::to_string(schema.n_children) +
                                "; accepted: 0 or more, each with a schema");
  }
  std::vector<Field> fields;
  for (int64_t i = 0; i < schema.n_children; ++i) {
    if (schema.children[i] == nullptr) {
      throw std::invalid_argument("missing schema of a column of " + what + ": column " + std::to_string(i) +
                                  "; accepted: a schema");
    }
    fields.push_back(FieldOf(*schema.children[i]));
  }
  return fields;
}

std::vector<std::optional<ColumnType>> TypesOf(const std::vector<Field>& fields) {
  std::vector<std::optional<ColumnType>> types;
  for (const Field& field : fields) {
    ArrowSchema dictionary = {}, schema = {};
    dictionary.format = field.dictionary.c_str();
    schema.format = field.format.c_str();
    schema.dictionary = field.dictionary.empty() ? nullptr : &dictionary;
    const absl::StatusOr<ColumnType> type = TypeOfArrow(schema);
    types.push_back(type.ok() ? std::optional<ColumnType>(*type) : std::nullopt);
  }
  return types;
}

Batch ImportBatch(ArrowArray* array, const std::vector<std::optional<ColumnType>>& types) {
  auto moved = std::make_unique<MovedArray>(array);
  CheckStruct(moved->array, types.size());
  for (size_t i = 0; i < types.size(); ++i) CheckChild(moved->array.children[i], types[i], i);
  return ImportBatch(&moved->array, types.size());
}

Batch ImportBatch(ArrowArray* array, size_t num_columns) {
  const auto moved = std::make_shared<MovedArray>(array);
  const ArrowArray& whole = moved->array;
  if (whole.n_children != static_cast<int64_t>(num_columns) || whole.length < 0 || whole.offset < 0) {
    throw std::invalid_argument("batch that does not fit its schema: " + std::to_string(whole.n_children) +
                                " columns; accepted: " + std::to_string(num_columns));
  }
  if (HasNulls(whole) && whole.n_buffers > 0) {
    throw std::invalid_argument(
        "batch whose rows are null as a whole: a struct array with nulls; accepted: rows of columns");
  }
  Batch batch{whole.length, {}};
  for (size_t i = 0; i < num_columns; ++i) {
    const ArrowArray& child = *whole.children[i];
    if (child.offset < 0 || child.length - whole.offset < whole.length) {
      throw std::invalid_argument("column that is shorter than its batch: " + std::to_string(child.length) +
                                  " rows; accepted: " + std::to_string(whole.offset + whole.length));
    }
    batch.columns.push_back(SliceColumn({child, moved}, whole.offset, whole.length));
  }
  return batch;
}

void ExportBatch(const Batch& batch, ArrowArray* array) {
  auto children = std::make_unique<Children>();
  children->arrays.reserve(batch.columns.size());
  for (const Column& column : batch.columns) children->arrays.push_back(Share(column.array, column.owner));
  for (ArrowArray& child : children->arrays) children->pointers.push_back(&child);
  *array = {};
  array->length = batch.num_rows;
  array->n_buffers = 1;
  array->buffers = &children->no_validity;
  array->n_children = static_cast<int64_t>(batch.columns.size());
  array->children = children->pointers.data();
  array->release = ReleaseChildren;
  array->private_data = children.release();
}

Column SliceColumn(const Column& column, int64_t first, int64_t num_rows) {
  Column slice = column;
  const bool is_whole = first == 0 && num_rows == column.array.length;
  slice.array.offset += first;
  slice.array.length = num_rows;
  if (!is_whole && column.array.null_count != 0) slice.array.null_count = -1;
  return slice;
}

Batch SliceBatch(const Batch& batch, int64_t first, int64_t num_rows) {
  if (first == 0 && num_rows == batch.num_rows) return batch;
  Batch slice{num_rows, {}};
  for (const Column& column : batch.columns) slice.columns.push_back(SliceColumn(column, first, num_rows));
  return slice;
}

bool HasNulls(const Column& column) {
  return HasNulls(column.array) || (column.array.dictionary != nullptr && HasNulls(*column.array.dictionary));
}

}  // namespace quern::python
