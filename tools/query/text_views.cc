// SPDX-License-Identifier: Apache-2.0
#include "tools/query/text_views.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern::query {
namespace {

// Buffers of a column with offsets.
struct Texts {
  OutputBuffer validity, offsets, bytes;
  const void* buffers[3] = {};
};

void ReleaseTexts(ArrowArray* array) {
  delete static_cast<Texts*>(array->private_data);
  array->release = nullptr;
}

// The views of an array.
struct Views {
  explicit Views(const ArrowArray& array)
      : validity(static_cast<const uint8_t*>(array.buffers[0])),
        views(static_cast<const uint8_t*>(array.buffers[1])),
        data(reinterpret_cast<const uint8_t* const*>(array.buffers + 2)),
        first(static_cast<uint64_t>(array.offset)),
        num_rows(static_cast<uint64_t>(array.length)) {}

  bool IsValid(uint64_t i) const {
    return validity == nullptr || (validity[(first + i) / 8] >> (first + i) % 8 & 1) != 0;
  }
  blocks::Bytes Of(uint64_t i) const {
    const uint8_t* const view = views + (first + i) * sizeof(StringRef);
    const auto length = blocks::Load<uint32_t>(view);
    if (!IsValid(i)) return {nullptr, 0};
    if (length <= kInlineStringBytes) return {view + sizeof(uint32_t), length};
    const auto buffer = blocks::Load<uint32_t>(view + 8), offset = blocks::Load<uint32_t>(view + 12);
    return {data[buffer] + offset, length};
  }

  const uint8_t *validity, *views;
  const uint8_t* const* data;
  uint64_t first, num_rows;
};

absl::StatusOr<ArrowArray> OffsetsOf(const ArrowArray& from, const QueryColumn& column,
                                     const std::shared_ptr<MemoryBudget>& budget) {
  const Views views(from);
  uint64_t num_bytes = 0;
  for (uint64_t i = 0; i < views.num_rows; ++i) num_bytes += views.Of(i).length;
  if (num_bytes > INT32_MAX)
    return absl::ResourceExhaustedError("texts of column " + column.name + " in one batch of the result: " +
                                        std::to_string(num_bytes) + " bytes; accepted: " + std::to_string(INT32_MAX));
  auto texts = std::make_unique<Texts>();
  QUERN_RETURN_IF_ERROR(texts->offsets.Allocate(budget, (views.num_rows + 1) * sizeof(int32_t)));
  QUERN_RETURN_IF_ERROR(texts->bytes.Allocate(budget, num_bytes));
  if (views.validity != nullptr) {
    QUERN_RETURN_IF_ERROR(texts->validity.Allocate(budget, (views.num_rows + 7) / 8));
    std::memset(texts->validity.data(), 0, (views.num_rows + 7) / 8);
  }
  auto* const offsets = reinterpret_cast<int32_t*>(texts->offsets.data());
  uint8_t* const bytes = texts->bytes.data();
  int32_t end = 0;
  offsets[0] = 0;
  for (uint64_t i = 0; i < views.num_rows; ++i) {
    const blocks::Bytes text = views.Of(i);
    if (text.length != 0) std::memcpy(bytes + end, text.data, text.length);
    end += static_cast<int32_t>(text.length);
    offsets[i + 1] = end;
    if (views.validity != nullptr) blocks::SetBitTo(texts->validity.data(), i, views.IsValid(i));
  }
  texts->buffers[0] = texts->validity.data();
  texts->buffers[1] = offsets;
  texts->buffers[2] = bytes;
  ArrowArray made = {};
  made.length = from.length;
  made.null_count = from.null_count;
  made.n_buffers = 3;
  made.buffers = texts->buffers;
  made.private_data = texts.release();
  made.release = &ReleaseTexts;
  return made;
}

}  // namespace

bool MayBeViews(const QueryColumn& column) {
  return column.type.has_value() && !column.type->is_dictionary &&
         (column.type->id == TypeId::kUtf8 || column.type->id == TypeId::kBinary);
}

void PassAsViews(QueryColumn* column) {
  column->type->id = column->type->id == TypeId::kUtf8 ? TypeId::kUtf8View : TypeId::kBinaryView;
}

bool PassesAsViews(const QueryColumn& column) {
  return column.type.has_value() && !column.type->is_dictionary && RowOf(column.type->id).storage == kView &&
         (column.format == "u" || column.format == "z");
}

ColumnType StoredType(const QueryColumn& column) {
  ColumnType type = *column.type;
  if (PassesAsViews(column)) type.id = type.id == TypeId::kUtf8View ? TypeId::kUtf8 : TypeId::kBinary;
  return type;
}

absl::Status TextViews::Make(const uint32_t* selection, uint64_t num_rows, const std::shared_ptr<MemoryBudget>& budget,
                             QuernColumn* column) {
  uint64_t num_places = num_rows;
  if (selection != nullptr && num_rows != 0)
    num_places = uint64_t{*std::max_element(selection, selection + num_rows)} + 1;
  if (views_.capacity_bytes() < num_places * sizeof(StringRef))
    QUERN_RETURN_IF_ERROR(views_.Allocate(budget, num_places * sizeof(StringRef)));
  bytes_ = static_cast<const uint8_t*>(column->values);
  for (uint64_t i = 0; i < num_rows; ++i) {
    const uint64_t row = selection != nullptr ? selection[i] : i,
                   begin = blocks::LoadAt<uint32_t>(column->offsets, row);
    const auto length = static_cast<uint32_t>(blocks::LoadAt<uint32_t>(column->offsets, row + 1) - begin);
    StringRef ref = blocks::MakeStringRef({bytes_ + begin, length});
    // Buffer 0 in the low half, the place in it in the high half.
    if (length > kInlineStringBytes) ref.bytes = reinterpret_cast<const char*>(begin << 32);
    blocks::Store(views_.data() + row * sizeof(StringRef), ref);
  }
  column->values = views_.data();
  column->offsets = nullptr;
  column->buffers = &bytes_;
  return absl::OkStatus();
}

absl::Status MakeOffsets(const std::vector<QueryColumn>& columns, const std::shared_ptr<MemoryBudget>& budget,
                         ArrowArray* batch) {
  std::vector<std::pair<ArrowArray*, ArrowArray>> made;
  absl::Status status;
  for (size_t c = 0; c < columns.size() && status.ok(); ++c) {
    if (!PassesAsViews(columns[c])) continue;
    absl::StatusOr<ArrowArray> child = OffsetsOf(*batch->children[c], columns[c], budget);
    if (child.ok()) made.emplace_back(batch->children[c], *child);
    status = child.status();
  }
  for (auto& [child, replacement] : made) {
    if (!status.ok()) {
      replacement.release(&replacement);
      continue;
    }
    child->release(child);
    *child = replacement;
  }
  return status;
}

}  // namespace quern::query
