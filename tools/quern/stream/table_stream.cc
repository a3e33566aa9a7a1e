// SPDX-License-Identifier: Apache-2.0
// Pieces are numbered through all files, and so are rows; threads take pieces in turns:
//
//     a.csv    rows 0 .. 4,999: A    5,000 .. 9,998: B        b.csv    9,999 .. 14,999: A
//
// Files of one input have the same types. A CSV file may have a column without values; it takes the type of that column
// in another file, and its nulls are made here.
#include "tools/quern/stream/table_stream.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

absl::StatusOr<FilePiecesPointer> OpenPieces(const std::string& path, FileFormat format,
                                             const std::vector<std::string>& columns) {
  switch (format) {
    case FileFormat::kParquet: return OpenParquetPieces(path, columns);
    case FileFormat::kCsv: return OpenCsvPieces(path, columns);
    case FileFormat::kArrow: return OpenArrowPieces(path, columns);
  }
  return Internal("unknown file format: " + path);
}

// One row, or none.
absl::StatusOr<std::shared_ptr<arrow::Array>> Sample(const std::shared_ptr<arrow::DataType>& type, bool is_null,
                                                     bool is_empty) {
  const std::string what = "cannot make a value of type: " + type->ToString();
  std::unique_ptr<arrow::ArrayBuilder> builder;
  QUERN_RETURN_IF_ARROW_ERROR(arrow::MakeBuilder(arrow::default_memory_pool(), type, &builder), what);
  if (!is_empty) QUERN_RETURN_IF_ARROW_ERROR(is_null ? builder->AppendNull() : builder->AppendEmptyValue(), what);
  QUERN_ASSIGN_OR_RETURN_ARROW(std::shared_ptr<arrow::Array> array, builder->Finish(), what);
  return array;
}

}  // namespace

absl::StatusOr<TableStream> TableStream::Open(const TableInput& input, const std::vector<std::string>& columns) {
  TableStream stream;
  stream.columns_ = columns;
  stream.types_.assign(columns.size(), arrow::null());
  std::vector<std::string> paths(columns.size());  // of the first file with values
  std::vector<bool> may_be_null(columns.size());
  for (const std::string& path : input.files()) {
    QUERN_ASSIGN_OR_RETURN(FilePiecesPointer file, OpenPieces(path, input.format(), columns));
    QUERN_RETURN_IF_ERROR(stream.AddTypes(*file, &paths));
    for (size_t c = 0; c < columns.size(); ++c) may_be_null[c] = may_be_null[c] || file->may_be_null()[c];
    for (size_t piece = 0; piece < file->rows().size(); ++piece) {
      stream.pieces_.push_back({stream.files_.size(), piece, stream.num_rows_});
      stream.num_rows_ += file->rows()[piece];
    }
    stream.most_threads_ = std::min(stream.most_threads_, file->most_threads());
    stream.files_.push_back(std::move(file));
  }
  const bool is_empty = stream.num_rows_ == 0;
  arrow::FieldVector fields;
  std::vector<std::shared_ptr<arrow::ChunkedArray>> values;
  for (size_t c = 0; c < columns.size(); ++c) {
    QUERN_ASSIGN_OR_RETURN(auto value, Sample(stream.types_[c], may_be_null[c], is_empty));
    fields.push_back(arrow::field(columns[c], stream.types_[c]));
    values.push_back(std::make_shared<arrow::ChunkedArray>(std::move(value)));
  }
  stream.schema_ = arrow::schema(std::move(fields));
  stream.sample_ = arrow::Table::Make(stream.schema_, values, is_empty ? 0 : 1);
  return stream;
}

absl::Status TableStream::AddTypes(const FilePieces& file, std::vector<std::string>* paths) {
  for (size_t c = 0; c < columns_.size(); ++c) {
    const std::shared_ptr<arrow::DataType>& type = file.types()[c];
    QUERN_RETURN_IF_ERROR(CheckSameType(columns_[c], *types_[c], (*paths)[c], *type, file.path()));
    if (types_[c]->id() != arrow::Type::NA) continue;
    types_[c] = type;
    (*paths)[c] = file.path();
  }
  return absl::OkStatus();
}

absl::Status TableStream::ReadPiece(size_t piece, const Take& take) const {
  const Piece& of = pieces_[piece];
  const FilePieces& file = *files_[of.file];
  uint64_t first_row = of.first_row;
  return file.ReadPiece(of.of_file, [&](const arrow::ArrayVector& arrays, int64_t num_rows) -> absl::Status {
    std::vector<std::shared_ptr<arrow::ChunkedArray>> columns;
    for (size_t c = 0; c < arrays.size(); ++c) {
      std::shared_ptr<arrow::Array> array = arrays[c];
      if (!array->type()->Equals(types_[c])) {
        QUERN_ASSIGN_OR_RETURN_ARROW(array, arrow::MakeArrayOfNull(types_[c], num_rows, ReadingPool()),
                                     CannotRead(file.path()));
      }
      columns.push_back(std::make_shared<arrow::ChunkedArray>(std::move(array)));
    }
    QUERN_RETURN_IF_ERROR(take(arrow::Table::Make(schema_, std::move(columns), num_rows), first_row));
    first_row += static_cast<uint64_t>(num_rows);
    return absl::OkStatus();
  });
}

}  // namespace quern::cli
