// SPDX-License-Identifier: Apache-2.0
// The loops read Arrow's buffers as they are: a decimal(15,2) is two words, a text is two neighbouring offsets.
//
//     l_discount  0.05, 0.07       words 5 0 7 0
//     n_name      CHINA, INDIA     offsets 0 5 10, bytes CHINAINDIA
//
// A result is exported the other way round. One object owns all buffers and the two arrays of children, and is freed by
// the release function of the outer struct; pyarrow moves the children out of it before, so that each child owns its
// column.
#include "bench/pipelines/hand_written/arrow_tables.h"

#include <memory>
#include <utility>

namespace quern::bench {
namespace {

// What an exported array owns. A child owns one column, the outer one its children.
struct OwnedArray {
  ResultTable::Column column;
  const void* buffers[3] = {};
  std::vector<std::unique_ptr<ArrowArray>> children;
  std::vector<ArrowArray*> child_pointers;
};

struct OwnedSchema {
  std::string name, format;
  std::vector<std::unique_ptr<ArrowSchema>> children;
  std::vector<ArrowSchema*> child_pointers;
};

template <class Struct, class Owned>
void Release(Struct* exported) {
  auto* owned = static_cast<Owned*>(exported->private_data);
  for (const auto& child : owned->children)
    if (child->release != nullptr) child->release(child.get());
  delete owned;
  exported->release = nullptr;
}

template <class Struct, class Owned>
void AddChild(Owned* parent) {
  parent->children.push_back(std::make_unique<Struct>());
  parent->child_pointers.push_back(parent->children.back().get());
}

void ExportColumn(ResultTable::Column column, size_t num_rows, ArrowArray* array) {
  auto* owned = new OwnedArray;
  owned->column = std::move(column);
  const bool is_text = !owned->column.offsets.empty();
  if (is_text) owned->buffers[1] = owned->column.offsets.data();
  owned->buffers[is_text ? 2 : 1] = owned->column.bytes.data();
  *array = {};
  array->length = static_cast<int64_t>(num_rows);
  if (owned->column.format == "n") array->null_count = array->length;
  else array->n_buffers = is_text ? 3 : 2;
  array->buffers = owned->buffers;
  array->release = Release<ArrowArray, OwnedArray>;
  array->private_data = owned;
}

void ExportType(const std::string& name, const std::string& format, OwnedSchema* owned, ArrowSchema* schema) {
  owned->name = name;
  owned->format = format;
  *schema = {};
  schema->format = owned->format.c_str();
  schema->name = owned->name.c_str();
  schema->n_children = static_cast<int64_t>(owned->children.size());
  schema->children = owned->child_pointers.data();
  schema->release = Release<ArrowSchema, OwnedSchema>;
  schema->private_data = owned;
}

}  // namespace

const ArrowTable* TableReader::FindTable(std::string_view table) {
  for (const ArrowTable& known : tables_)
    if (known.name == table) return &known;
  if (error_.empty()) error_ = "no such table: " + std::string(table) + "; accepted: the tables that were passed";
  return nullptr;
}

size_t TableReader::NumRows(std::string_view table) {
  const ArrowTable* found = FindTable(table);
  return found == nullptr ? 0 : static_cast<size_t>(found->array->length);
}

const ArrowArray* TableReader::Find(std::string_view table, std::string_view column, std::string_view format,
                                    size_t* first) {
  const ArrowTable* found = FindTable(table);
  if (found == nullptr) return nullptr;
  const auto fail = [&](const std::string& what, const std::string& accepted) {
    if (error_.empty())
      error_ = what + ": " + std::string(table) + "." + std::string(column) + "; accepted: " + accepted;
    return nullptr;
  };
  for (int64_t i = 0; i < found->schema->n_children; ++i) {
    if (found->schema->children[i]->name != column) continue;
    const ArrowArray* array = found->array->children[i];
    if (found->schema->children[i]->format != format)
      return fail(std::string("column of format ") + found->schema->children[i]->format, std::string(format));
    if (array->null_count != 0 && array->buffers[0] != nullptr) return fail("column with nulls", "columns without");
    *first = static_cast<size_t>(found->array->offset + array->offset);
    return array;
  }
  return fail("no such column", "columns of the table");
}

Texts TableReader::Text(std::string_view table, std::string_view column) {
  size_t first = 0;
  const ArrowArray* array = Find(table, column, "u", &first);
  if (array == nullptr) return {};
  return {static_cast<const int32_t*>(array->buffers[1]) + first, static_cast<const char*>(array->buffers[2])};
}

void ResultTable::AddBytes(const char* name, std::string format, const void* bytes, size_t num_bytes, size_t num_rows) {
  const char* begin = static_cast<const char*>(bytes);
  columns_.push_back({name, std::move(format), {}, {begin, begin + num_bytes}});
  num_rows_ = num_rows;
}

void ResultTable::Add(const char* name, const std::vector<std::string>& texts) {
  std::string bytes;
  std::vector<int32_t> offsets = {0};
  for (const std::string& text : texts) {
    bytes += text;
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  AddBytes(name, "u", bytes.data(), bytes.size(), texts.size());
  columns_.back().offsets = std::move(offsets);
}

void ResultTable::Add(const char* name, const std::vector<int64_t>& numbers) {
  AddBytes(name, "l", numbers.data(), numbers.size() * sizeof(int64_t), numbers.size());
}

void ResultTable::Add(const char* name, const std::vector<double>& numbers) {
  AddBytes(name, "g", numbers.data(), numbers.size() * sizeof(double), numbers.size());
}

void ResultTable::AddInt32(const char* name, const char* format, const std::vector<int32_t>& numbers) {
  AddBytes(name, format, numbers.data(), numbers.size() * sizeof(int32_t), numbers.size());
}

void ResultTable::AddNulls(const char* name, size_t num_rows) { AddBytes(name, "n", nullptr, 0, num_rows); }

void ResultTable::Add(const char* name, const std::vector<__int128>& decimals, int scale) {
  AddBytes(name, "d:38," + std::to_string(scale), decimals.data(), decimals.size() * sizeof(__int128), decimals.size());
}

void ResultTable::Export(ArrowArray* array, ArrowSchema* schema) && {
  auto* arrays = new OwnedArray;
  auto* schemas = new OwnedSchema;
  for (Column& column : columns_) {
    AddChild<ArrowSchema>(schemas);
    ExportType(column.name, column.format, new OwnedSchema, schemas->child_pointers.back());
    AddChild<ArrowArray>(arrays);
    ExportColumn(std::move(column), num_rows_, arrays->child_pointers.back());
  }
  ExportType("", "+s", schemas, schema);
  *array = {};
  array->length = static_cast<int64_t>(num_rows_);
  array->n_buffers = 1;
  array->n_children = static_cast<int64_t>(arrays->children.size());
  array->buffers = arrays->buffers;
  array->children = arrays->child_pointers.data();
  array->release = Release<ArrowArray, OwnedArray>;
  array->private_data = arrays;
}

}  // namespace quern::bench
