// SPDX-License-Identifier: Apache-2.0
// Blocks of 1,024 rows pass column by column. First every column of strings says how many rows of the block it has room
// for; then all write as many.
#include "runtime/rows/copy_rows.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "runtime/base/status.h"
#include "runtime/blocks/storage_dispatch.h"

namespace quern {
namespace {

constexpr uint32_t kBlockRows = 1024;
using RowNumbers = std::array<uint32_t, kBlockRows>;

// The values of a column, with their rows: those of its dictionary if it has one.
struct Values {
  const QuernColumn* column;
  const uint32_t* rows;
  Storage storage;
  uint32_t width;
  bool nullable;
};

template <class F>
auto WithSource(const Values& values, F&& f) {
  return DispatchStorage(values.storage, [&](auto tag) {
    return f(tag, blocks::ProbeSource<tag.value>{values.column, values.rows, values.nullable, values.width});
  });
}

// Of a column of variable length.
absl::StatusOr<uint32_t> RoomFor(const Values& values, uint32_t n, QuernOutColumn* out) {
  const int64_t fit = WithSource(values, [&](auto tag, const auto& source) -> int64_t {
    if constexpr (blocks::IsVariableStorage(tag.value)) return blocks::FitStrings<tag.value>(source, n, out);
    else return n;
  });
  if (fit < 0) return StatusOfCode(fit);
  return static_cast<uint32_t>(fit);
}

// One block of rows.
class Block {
 public:
  Block(const BatchView& batch, uint64_t first_row, uint32_t num_rows) : batch_(batch), num_rows_(num_rows) {
    if (batch.selection != nullptr) {
      std::copy_n(batch.selection + first_row, num_rows, rows_.begin());
    } else {
      std::iota(rows_.begin(), rows_.begin() + num_rows, static_cast<uint32_t>(first_row));
    }
  }

  absl::StatusOr<uint32_t> Copy(const std::vector<ColumnType>& types, OutputBatch* out) {
    uint32_t n = num_rows_;
    for (size_t c = 0; c < types.size(); ++c) {
      if (!IsVariable(RowOf(types[c].id).storage)) continue;
      QUERN_ASSIGN_OR_RETURN(n, RoomFor(ValuesOf(c, types[c]), n, &out->columns()[c]));
    }
    for (size_t c = 0; c < types.size(); ++c) {
      QuernOutColumn* const to = &out->columns()[c];
      const Values values = ValuesOf(c, types[c]);
      WithSource(values, [&](auto tag, const auto& source) {
        blocks::EmitColumn<tag.value>(source, n, to, out->num_rows(), to->validity != nullptr);
      });
    }
    out->set_num_rows(out->num_rows() + n);
    return n;
  }

 private:
  Values ValuesOf(size_t c, const ColumnType& type) {
    const QuernColumn& column = batch_.keys[c];
    const Values values{&column, rows_.data(), RowOf(type.id).storage, type.width_bytes, type.nullable};
    if (!type.is_dictionary) return values;
    TranslateRows(RowOf(type.index).storage, &column, 0, rows_.data(), num_rows_, dictionary_rows_.data());
    return {column.dictionary, dictionary_rows_.data(), values.storage, values.width, values.nullable};
  }

  const BatchView& batch_;
  const uint32_t num_rows_;
  RowNumbers rows_;
  RowNumbers dictionary_rows_;
};

}  // namespace

absl::StatusOr<uint64_t> CopyRows(const BatchView& batch, const std::vector<ColumnType>& types, uint64_t first_row,
                                  OutputBatch* out) {
  uint64_t copied = 0;
  while (first_row + copied < batch.num_rows && out->num_rows() < out->capacity()) {
    const uint64_t left = std::min(batch.num_rows - first_row - copied, out->capacity() - out->num_rows());
    const auto num_rows = static_cast<uint32_t>(std::min<uint64_t>(left, kBlockRows));
    QUERN_ASSIGN_OR_RETURN(const uint32_t n, Block(batch, first_row + copied, num_rows).Copy(types, out));
    copied += n;
    if (n < num_rows) break;
  }
  return copied;
}

}  // namespace quern
