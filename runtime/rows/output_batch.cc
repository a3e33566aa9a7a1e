// SPDX-License-Identifier: Apache-2.0
// Result columns, which kernels write and which become an Arrow array without a copy.
//
// Bytes of a column of 1000 rows, by storage (each buffer is rounded up to 64 bytes and has 64 more):
//
//     storage   validity   values             offsets         bytes
//     64        125        8000
//     bit       125        125 (bitmap)
//     fixed     125        n * 1000
//     var32     125                           1001 * 4        grows
//     view      125        16 * 1000                          grows, strings above 12 bytes only
//
// A batch is reused: Reset keeps the buffers and zeroes the bitmaps, because kernels only set bits.
// ExportArrow gives the buffers away. Each child of the exported array owns its buffers on its own, since the C data
// interface lets a consumer move children out and release the parent first. The memory counts against the budget until
// then.
#include "runtime/rows/output_batch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/aligned_block.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/output_buffer.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint64_t kSpareBytes = 64;
constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 47;
constexpr uint64_t kMaxCapacityRows = INT32_MAX;

// Initial bytes of string data per row (a guess: half of the strings of TPC-H are shorter); the buffer grows beyond
// that.
constexpr uint64_t kFirstBytesPerRow = 16;
constexpr uint64_t kMaxFirstBytes = uint64_t{1} << 20;
constexpr uint64_t kLeastShrunkBytes = uint64_t{16} << 10;

uint64_t BitmapBytes(uint64_t rows) { return (rows + 7) / 8; }

uint64_t OffsetBytes(Storage storage) {
  if (storage == kVar32) return 4;
  return storage == kVar64 ? 8 : 0;
}

uint64_t ValuesBytes(const ColumnType& type, Storage storage, uint64_t rows) {
  if (storage == kBit) return BitmapBytes(rows);
  if (storage == kFixed) return rows * type.width_bytes;
  if (storage == kVar32 || storage == kVar64) return 0;
  return rows * StorageFieldBytes(storage);
}

bool IsLarge(uint64_t bytes) { return bytes >= thresholds::kLargeOutputBytes; }

// Uses large pages for a large buffer: result columns are written once, front to back, and the first write to each page
// is a fault. Null: out of memory.
void* AllocateBuffer(uint64_t bytes) {
  constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
  if (!IsLarge(bytes)) return AllocateBlock(bytes);
  void* data = nullptr;
  if (posix_memalign(&data, kHugePageBytes, bytes) != 0) return nullptr;
  madvise(data, bytes, MADV_HUGEPAGE);  // only a hint
  return data;
}

}  // namespace

absl::Status OutputBuffer::Allocate(std::shared_ptr<MemoryBudget> budget, uint64_t capacity_bytes) {
  Free();
  const uint64_t capacity = (capacity_bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  const uint64_t total = capacity + kSpareBytes;
  if (budget) QUERN_RETURN_IF_ERROR(budget->Reserve(total));
  void* const data = capacity_bytes <= kMaxBufferBytes ? AllocateBuffer(total) : nullptr;
  if (data == nullptr) {
    if (budget) budget->Release(total);
    return absl::ResourceExhaustedError("out of memory: " + std::to_string(total) +
                                        " bytes requested; accepted: what the system has free");
  }
  budget_ = std::move(budget);
  data_ = static_cast<uint8_t*>(data);
  capacity_bytes_ = capacity;
  charged_bytes_ = total;
  return absl::OkStatus();
}

absl::Status OutputBuffer::Grow(uint64_t capacity_bytes, uint64_t used_bytes) {
  OutputBuffer bigger;
  QUERN_RETURN_IF_ERROR(bigger.Allocate(budget_, capacity_bytes));
  if (used_bytes > 0) std::memcpy(bigger.data_, data_, used_bytes);
  std::swap(data_, bigger.data_);
  std::swap(capacity_bytes_, bigger.capacity_bytes_);
  std::swap(charged_bytes_, bigger.charged_bytes_);
  return absl::OkStatus();
}

void OutputBuffer::Free() {
  if (IsLarge(charged_bytes_)) std::free(data_);
  else FreeBlock(data_, charged_bytes_);
  if (budget_) budget_->Release(charged_bytes_);
  budget_.reset();
  data_ = nullptr;
  capacity_bytes_ = charged_bytes_ = 0;
}

// The buffers of one column and, once exported, also the memory to which its ArrowArray points.
struct OutputBatch::Buffers {
  OutputBuffer validity;
  OutputBuffer values;
  OutputBuffer offsets;
  OutputBuffer bytes;
  const void* exported[4] = {};
  int64_t exported_view_bytes = 0;

  absl::Status Allocate(const ColumnType& type, uint64_t rows, uint64_t expected_bytes,
                        const std::shared_ptr<MemoryBudget>& budget);
  void StartBatch(QuernOutColumn* column, const ColumnType& type, uint64_t capacity_rows);
  void Shrink(const ColumnType& type, uint64_t num_rows, QuernOutColumn* column);
  static ArrowArray Export(std::unique_ptr<Buffers> buffers, const QuernOutColumn& column, Storage storage,
                           uint64_t num_rows);
  static void ReleaseExported(ArrowArray* array);
};

// expected_bytes: of string data.
absl::Status OutputBatch::Buffers::Allocate(const ColumnType& type, uint64_t rows, uint64_t expected_bytes,
                                            const std::shared_ptr<MemoryBudget>& budget) {
  const Storage storage = RowOf(type.id).storage;
  if (type.nullable) QUERN_RETURN_IF_ERROR(validity.Allocate(budget, BitmapBytes(rows)));
  if (OffsetBytes(storage) > 0) {
    QUERN_RETURN_IF_ERROR(offsets.Allocate(budget, (rows + 1) * OffsetBytes(storage)));
  } else {
    QUERN_RETURN_IF_ERROR(values.Allocate(budget, ValuesBytes(type, storage, rows)));
  }
  if (IsVariable(storage))
    QUERN_RETURN_IF_ERROR(
        bytes.Allocate(budget, std::max(expected_bytes, std::min(rows * kFirstBytesPerRow, kMaxFirstBytes))));
  return absl::OkStatus();
}

// Zeroes the memory to which kernels only add, and points the column to the buffers.
void OutputBatch::Buffers::StartBatch(QuernOutColumn* column, const ColumnType& type, uint64_t capacity_rows) {
  if (type.nullable) std::memset(validity.data(), 0, BitmapBytes(capacity_rows));
  if (RowOf(type.id).storage == kBit) std::memset(values.data(), 0, BitmapBytes(capacity_rows));
  if (offsets.data() != nullptr) std::memset(offsets.data(), 0, OffsetBytes(RowOf(type.id).storage));
  *column = {};
  column->validity = validity.data();
  column->values = values.data();
  column->offsets = offsets.data();
  column->bytes = bytes.data();
  column->bytes_capacity = bytes.capacity_bytes();
  column->owner = &bytes;
}

// Moves the rows to buffers of their size, where those that they are in are hardly used: an array may be kept for long.
// Where that is refused, they stay.
void OutputBatch::Buffers::Shrink(const ColumnType& type, uint64_t num_rows, QuernOutColumn* column) {
  const Storage storage = RowOf(type.id).storage;
  const auto shrink = [](OutputBuffer* buffer, uint64_t used_bytes) {
    const uint64_t capacity = buffer->capacity_bytes();
    if (capacity >= kLeastShrunkBytes && used_bytes < capacity / thresholds::kShrunkOutputShare)
      buffer->Grow(used_bytes, used_bytes).IgnoreError();
  };
  shrink(&validity, BitmapBytes(num_rows));
  shrink(&values, ValuesBytes(type, storage, num_rows));
  shrink(&offsets, (num_rows + 1) * OffsetBytes(storage));
  shrink(&bytes, column->num_bytes);
  column->validity = validity.data();
  column->values = values.data();
  column->offsets = offsets.data();
  column->bytes = bytes.data();
}

OutputBatch::OutputBatch(std::vector<ColumnType> types, uint64_t capacity_rows, std::shared_ptr<MemoryBudget> budget)
    : types_(std::move(types)),
      capacity_rows_(capacity_rows),
      budget_(std::move(budget)),
      columns_(types_.size(), QuernOutColumn{}),
      buffers_(types_.size()),
      exported_bytes_(types_.size()) {}

OutputBatch::~OutputBatch() = default;

absl::Status OutputBatch::Reset() {
  num_rows_ = 0;
  if (capacity_rows_ > kMaxCapacityRows) {
    return InvalidArgument("output batch too large: " + std::to_string(capacity_rows_) +
                           " rows; accepted: up to 2147483647");
  }
  for (;;) {
    const absl::Status status = StartBatch();
    if (!absl::IsResourceExhausted(status) || capacity_rows_ / 2 < fewest_rows_) return status;
    for (size_t i = 0; i < types_.size(); ++i) {
      buffers_[i].reset();
      columns_[i] = {};
      exported_bytes_[i] = 0;
    }
    capacity_rows_ /= 2;
  }
}

absl::Status OutputBatch::StartBatch() {
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!buffers_[i]) {
      auto buffers = std::make_unique<Buffers>();
      QUERN_RETURN_IF_ERROR(
          buffers->Allocate(types_[i], capacity_rows_, exported_bytes_[i] + exported_bytes_[i] / 16, budget_));
      buffers_[i] = std::move(buffers);
    }
    buffers_[i]->StartBatch(&columns_[i], types_[i], capacity_rows_);
    columns_[i].most_bytes = most_string_bytes_;
  }
  return absl::OkStatus();
}

const void* OffsetsOf(const QuernOutColumn& column) {
  static constexpr int64_t kNoRows = 0;
  return column.offsets != nullptr ? column.offsets : &kNoRows;
}

void OutputBatch::Buffers::ReleaseExported(ArrowArray* array) {
  delete static_cast<Buffers*>(array->private_data);
  array->release = nullptr;
}

// Moves one column's buffers into an array: 2 buffers for fixed width, 3 for strings, 4 for views (whose last one holds
// the sizes of the data buffers, here one).
ArrowArray OutputBatch::Buffers::Export(std::unique_ptr<Buffers> buffers, const QuernOutColumn& column, Storage storage,
                                        uint64_t num_rows) {
  if (column.null_count == 0) buffers->validity.Free();
  const void** const pointers = buffers->exported;
  ArrowArray array = {};
  array.length = static_cast<int64_t>(num_rows);
  array.null_count = static_cast<int64_t>(column.null_count);
  array.n_buffers = 2;
  array.buffers = pointers;
  array.release = &ReleaseExported;
  pointers[0] = buffers->validity.data();
  pointers[1] = column.values;
  if (OffsetBytes(storage) > 0) {
    array.n_buffers = 3;
    pointers[1] = OffsetsOf(column);
    pointers[2] = column.bytes;
  } else if (storage == kView) {
    array.n_buffers = 4;
    buffers->exported_view_bytes = static_cast<int64_t>(column.num_bytes);
    pointers[2] = column.bytes;
    pointers[3] = &buffers->exported_view_bytes;
  }
  array.private_data = buffers.release();
  return array;
}

namespace {

struct ExportedBatch {
  const void* validity = nullptr;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;

  static void Release(ArrowArray* array) {
    auto* batch = static_cast<ExportedBatch*>(array->private_data);
    for (ArrowArray& child : batch->children)
      if (child.release != nullptr) child.release(&child);
    delete batch;
    array->release = nullptr;
  }
};

}  // namespace

void OutputBatch::ExportArrow(ArrowArray* out) {
  // First everything that may fail: an error leaves this batch as it was.
  auto batch = std::make_unique<ExportedBatch>();
  batch->children.reserve(types_.size());
  batch->pointers.reserve(types_.size());
  for (auto& buffers : buffers_)
    if (!buffers) buffers = std::make_unique<Buffers>();  // a batch that was never reset: no rows
  for (size_t i = 0; i < types_.size(); ++i) {
    exported_bytes_[i] = columns_[i].num_bytes;
    buffers_[i]->Shrink(types_[i], num_rows_, &columns_[i]);
    batch->children.push_back(
        Buffers::Export(std::move(buffers_[i]), columns_[i], RowOf(types_[i].id).storage, num_rows_));
    batch->pointers.push_back(&batch->children.back());
    columns_[i] = {};
  }
  *out = {};
  out->length = static_cast<int64_t>(num_rows_);
  out->n_buffers = 1;
  out->n_children = static_cast<int64_t>(types_.size());
  out->buffers = &batch->validity;
  out->children = batch->pointers.data();
  out->release = &ExportedBatch::Release;
  out->private_data = batch.release();
  num_rows_ = 0;
}

}  // namespace quern
