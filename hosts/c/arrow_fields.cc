// SPDX-License-Identifier: Apache-2.0
// Arrow: exported schemas, what is read of imported ones, and which rows of an array take part.
//
// A schema is a tree of structs, each with its own release callback, since the C data interface lets a consumer move a
// child out and release the parent first. So each field owns its texts, and the parent owns the array of fields:
//
//     ArrowSchema "+s"  private_data -> SchemaOwner { children[2], pointers[2] }
//       children[0] "l" private_data -> SchemaTexts { "l", "order_id" }        release: ReleaseField
//       children[1] "g" private_data -> SchemaTexts { "g", "sum(f64)" }        release: ReleaseField
//
// Example: the host moves children[1] out (copies the struct, sets children[1].release to null) and releases the
// schema: ReleaseSchema passes over it, and the texts of the copy live until its own release is called.
#include "hosts/c/arrow_fields.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "hosts/c/boundary.h"
#include "hosts/c/host_batch.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

// A child's texts belong to the child, so that it can be moved out of its parent.
struct SchemaTexts {
  std::string format, name;
};

struct SchemaOwner {
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  std::string metadata;
};

void ReleaseField(ArrowSchema* schema) {
  delete static_cast<SchemaTexts*>(schema->private_data);
  schema->release = nullptr;
}

void ReleaseSchema(ArrowSchema* schema) {
  std::unique_ptr<SchemaOwner> owner(static_cast<SchemaOwner*>(schema->private_data));
  for (ArrowSchema& child : owner->children) {
    if (child.release != nullptr) child.release(&child);
  }
  schema->release = nullptr;
}

ArrowSchema FieldSchema(std::unique_ptr<SchemaTexts> texts, bool nullable) noexcept {
  ArrowSchema schema = {};
  schema.format = texts->format.c_str();
  schema.name = texts->name.c_str();
  schema.flags = nullable ? ARROW_FLAG_NULLABLE : 0;
  schema.release = ReleaseField;
  schema.private_data = texts.release();
  return schema;
}

}  // namespace

absl::StatusOr<std::vector<int>> ChildNumbers(const int32_t* numbers, size_t count, const char* name) {
  if (count == 0) return std::vector<int>();
  if (numbers == nullptr) return MissingArgument(name);
  return std::vector<int>(numbers, numbers + count);
}

absl::Status SelectArrowRows(const quern_arrow_rows* rows, BatchView* view) {
  if (rows == nullptr) return absl::OkStatus();
  constexpr size_t kSize = sizeof(quern_arrow_rows);
  QUERN_RETURN_IF_ERROR(CheckStructSize(rows->struct_size, kSize, kSize, rows + 1));
  QUERN_RETURN_IF_ERROR(CheckNumRows(rows->num_rows));
  if (rows->selection == nullptr && rows->num_rows > view->num_rows) {
    return InvalidArgument("more rows than the array has: " + std::to_string(rows->num_rows) + "; accepted: 0 to " +
                           std::to_string(view->num_rows) + ", or a selection");
  }
  const std::span<const uint32_t> selection(rows->selection, rows->selection == nullptr ? 0 : rows->num_rows);
  uint32_t highest = 0;
  for (const uint32_t row : selection) highest = std::max(highest, row);
  if (!selection.empty() && highest >= view->num_rows) {
    const auto beyond =
        std::find_if(selection.begin(), selection.end(), [view](uint32_t row) { return row >= view->num_rows; });
    const std::string accepted =
        view->num_rows == 0 ? "no row, as the array has none" : "0 to " + std::to_string(view->num_rows - 1);
    return InvalidArgument("selection of a row that is not there: selection[" +
                           std::to_string(beyond - selection.begin()) + "] is " + std::to_string(*beyond) +
                           "; accepted: " + accepted);
  }
  view->selection = rows->selection;
  view->num_rows = rows->num_rows;
  view->first_row_id = rows->first_row_id;
  return absl::OkStatus();
}

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

std::string ValueFormat(const ArrowSchema& field) {
  return TextOf(field.dictionary != nullptr ? field.dictionary->format : field.format);
}

absl::Status CheckSameUnit(const SideField& a, const SideField& b, const char* part, size_t i) {
  if (UnitOf(a.field.format) == UnitOf(b.field.format)) return absl::OkStatus();
  return InvalidArgument(std::string(part) + " of different units: " + part + "[" + std::to_string(i) + "] is " +
                         a.field.format + " on the " + a.side + " side, " + b.field.format + " on the " + b.side +
                         " side; accepted: the same unit or scale");
}

ResultField FieldOf(const BoundField& bound, const ColumnType& type, const char* rowid, bool nullable) {
  if (type.id == TypeId::kRowId) return {rowid, "L", nullable, true};
  return {bound.name, bound.format, nullable};
}

// Everything that can throw comes first: an error leaves `schema` empty.
absl::Status ExportFields(const std::vector<ResultField>& fields, std::string metadata, ArrowSchema* schema) {
  *schema = {};
  std::vector<std::unique_ptr<SchemaTexts>> texts;
  for (const ResultField& field : fields)
    texts.push_back(std::make_unique<SchemaTexts>(SchemaTexts{field.format, field.name}));
  auto owner = std::make_unique<SchemaOwner>();
  owner->children.resize(fields.size());
  owner->pointers.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    owner->children[i] = FieldSchema(std::move(texts[i]), fields[i].nullable);
    owner->pointers[i] = &owner->children[i];
  }
  owner->metadata = std::move(metadata);
  schema->format = "+s";
  schema->name = "";
  schema->metadata = owner->metadata.empty() ? nullptr : owner->metadata.c_str();
  schema->n_children = static_cast<int64_t>(fields.size());
  schema->children = owner->pointers.data();
  schema->release = ReleaseSchema;
  schema->private_data = owner.release();
  return absl::OkStatus();
}

}  // namespace quern::c_abi
