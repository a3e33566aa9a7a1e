// SPDX-License-Identifier: Apache-2.0
// A CSV file says nothing of its rows, so it is read twice. The first time one thread reads it block by block, divides
// blocks into pieces of whole rows, and finds the types of the columns (csv_types.h):
//
//     name,text<newline>            bytes 0 .. 9         the header
//     ada,"one<newline>two"<newline>..                   10 .. 196,598       a piece of 3,000 rows
//     bob,..                                             196,599 .. 393,150  a piece of 2,998 rows
//
// Then threads take pieces in turns and make columns of these types. A piece is small enough that its bytes, its fields
// and its columns fit into a thread's part of the readers' memory; a row may be longer.
//
// Blocks are those of Arrow's reader, which accepts a row that ends in the block in which it begins or in the next one.
// The same rows are accepted here.
#include <arrow/api.h>
#include <arrow/csv/chunker.h>
#include <arrow/csv/converter.h>
#include <arrow/csv/parser.h>
#include <arrow/io/api.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/csv_numbers.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/read_csv.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/stream/csv_types.h"
#include "tools/quern/stream/file_pieces.h"

namespace quern::cli {
namespace {

using arrow::csv::BlockParser;
using BufferPointer = std::shared_ptr<arrow::Buffer>;
using FilePointer = std::shared_ptr<arrow::io::RandomAccessFile>;

// The bytes of a piece: a column of short numbers takes four times as much as their digits, and parsing twice as much.
int64_t PieceBytes() {
  constexpr uint64_t kTimesRead = 8;
  constexpr int64_t kFewest = 32 << 10;
  if (ReadingLimit() == 0) return kCsvBlockBytes;
  return std::clamp<int64_t>(static_cast<int64_t>(ReaderBytes() / kTimesRead), kFewest, kCsvBlockBytes);
}

// A file's blocks, each cut where a row ends.
class RowBlocks {
 public:
  RowBlocks(FilePointer file, int64_t begin, int64_t size)
      : file_(std::move(file)), chunker_(arrow::csv::MakeChunker(CsvParseOptions())), begin_(begin), size_(size) {}

  // The next rows; null: there are none left.
  arrow::Result<BufferPointer> Next() {
    if (begin_ >= size_) return nullptr;
    const int64_t block_end =
        std::min(std::max(read_to_, begin_) / kCsvBlockBytes * kCsvBlockBytes + kCsvBlockBytes, size_);
    ARROW_ASSIGN_OR_RAISE(const BufferPointer data, file_->ReadAt(begin_, block_end - begin_));
    const int64_t partial_bytes = std::max<int64_t>(read_to_ - begin_, 0);
    const BufferPointer partial = arrow::SliceBuffer(data, 0, partial_bytes);
    BufferPointer block = arrow::SliceBuffer(data, partial_bytes);
    BufferPointer completion, whole, rest;
    is_last_ = block_end == size_;
    if (is_last_) {
      ARROW_RETURN_NOT_OK(chunker_->ProcessFinal(partial, block, &completion, &whole));
    } else {
      ARROW_RETURN_NOT_OK(chunker_->ProcessWithPartial(partial, block, &completion, &rest));
      block = rest;
      ARROW_RETURN_NOT_OK(chunker_->Process(block, &whole, &rest));
    }
    rows_begin_ = begin_;
    begin_ = is_last_ ? size_ : block_end - rest->size();
    read_to_ = block_end;
    return arrow::SliceBuffer(data, 0, begin_ - rows_begin_);
  }

  // Of the rows that Next has returned.
  int64_t rows_begin() const { return rows_begin_; }
  bool is_last() const { return is_last_; }

 private:
  const FilePointer file_;
  const std::unique_ptr<arrow::Chunker> chunker_;
  int64_t begin_;  // of the rows that have not been returned
  const int64_t size_;
  int64_t read_to_ = 0;
  int64_t rows_begin_ = 0;
  bool is_last_ = false;
};

class CsvPieces final : public FilePieces {
 public:
  CsvPieces(const std::string& path, const std::vector<std::string>& columns) : FilePieces(path, columns) {}

  // Reads the file once.
  absl::Status Open();
  absl::Status ReadPiece(size_t piece, const Take& take) const override;

 private:
  struct Piece {
    int64_t begin, bytes;
  };
  arrow::Status FindPieces(const FilePointer& file, int64_t begin, const CsvConverters& converters);
  arrow::Status AddPieces(std::string_view rows, int64_t begin, bool is_last, const CsvConverters& converters);
  // Of columns whose numbers were not looked at from the first row on.
  arrow::Status LookAtNumbers(const FilePointer& file, const CsvConverters& converters);
  std::unique_ptr<BlockParser> NewParser() const;
  // *Errors*: a file that is another one than before.
  arrow::Result<std::unique_ptr<BlockParser>> Parsed(const FilePointer& file, size_t piece) const;
  arrow::Result<std::shared_ptr<arrow::Array>> ColumnOf(const BlockParser& block, size_t column,
                                                        const arrow::csv::ConvertOptions& options) const;

  int64_t piece_bytes_ = 0;
  int32_t num_fields_ = 0;       // of a row
  std::vector<int32_t> places_;  // of the columns among them
  std::vector<CsvColumnType> found_;
  std::vector<Piece> pieces_;
};

std::unique_ptr<BlockParser> CsvPieces::NewParser() const {
  return std::make_unique<BlockParser>(ReadingPool(), CsvParseOptions(), num_fields_, /*first_row=*/-1,
                                       static_cast<int32_t>(thresholds::kMorselRows));
}

absl::Status CsvPieces::Open() {
  piece_bytes_ = PieceBytes();
  QUERN_ASSIGN_OR_RETURN(const CsvHeader header, ReadCsvHeader(path_));
  num_fields_ = static_cast<int32_t>(header.names.size());
  for (const std::string& column : columns_) {
    const auto name = std::find(header.names.begin(), header.names.end(), column);
    places_.push_back(static_cast<int32_t>(name - header.names.begin()));
  }
  found_.resize(columns_.size());
  QUERN_ASSIGN_OR_RETURN_ARROW(const FilePointer file, BoundedFile::Open(path_), CannotRead(path_));
  QUERN_ASSIGN_OR_RETURN_ARROW(const CsvConverters converters, CsvConverters::Make(), CannotRead(path_));
  QUERN_RETURN_IF_ARROW_ERROR(FindPieces(file, header.end, converters), CannotRead(path_));
  QUERN_RETURN_IF_ARROW_ERROR(LookAtNumbers(file, converters), CannotRead(path_));
  for (size_t c = 0; c < columns_.size(); ++c) {
    QUERN_ASSIGN_OR_RETURN(auto type, found_[c].Type(ColumnText(path_, columns_[c])));
    types_.push_back(std::move(type));
    may_be_null_[c] = found_[c].has_nulls();
  }
  return absl::OkStatus();
}

arrow::Status CsvPieces::FindPieces(const FilePointer& file, int64_t begin, const CsvConverters& converters) {
  ARROW_ASSIGN_OR_RAISE(const int64_t size, file->GetSize());
  RowBlocks blocks(file, begin, size);
  while (true) {
    ARROW_ASSIGN_OR_RAISE(const BufferPointer rows, blocks.Next());
    if (rows == nullptr) return arrow::Status::OK();
    ARROW_RETURN_NOT_OK(AddPieces(std::string_view(*rows), blocks.rows_begin(), blocks.is_last(), converters));
  }
}

arrow::Status CsvPieces::AddPieces(std::string_view rows, int64_t begin, bool is_last,
                                   const CsvConverters& converters) {
  size_t most = static_cast<size_t>(piece_bytes_);
  while (!rows.empty()) {
    const std::string_view text = rows.substr(0, most);
    const std::unique_ptr<BlockParser> block = NewParser();
    uint32_t bytes = 0;
    ARROW_RETURN_NOT_OK(is_last && text.size() == rows.size() ? block->ParseFinal(text, &bytes)
                                                              : block->Parse(text, &bytes));
    if (bytes == 0 && text.size() < rows.size()) {  // a long row
      most *= 2;
      continue;
    }
    if (bytes == 0) return arrow::Status::Invalid("CSV parse error: no end of a row in ", rows.size(), " bytes");
    for (size_t c = 0; c < columns_.size(); ++c)
      ARROW_RETURN_NOT_OK(found_[c].AddBlock(converters, *block, places_[c]));
    pieces_.push_back({begin, bytes});
    rows_.push_back(static_cast<uint64_t>(block->num_rows()));
    begin += bytes;
    rows.remove_prefix(bytes);
    most = static_cast<size_t>(piece_bytes_);
  }
  return arrow::Status::OK();
}

arrow::Status CsvPieces::LookAtNumbers(const FilePointer& file, const CsvConverters& converters) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < columns_.size(); ++c)
    if (found_[c].NeedsNumbers()) columns.push_back(c);
  for (const size_t c : columns) found_[c].BeginNumbers();
  for (size_t piece = 0; piece < pieces_.size() && !columns.empty(); ++piece) {
    ARROW_ASSIGN_OR_RAISE(const auto block, Parsed(file, piece));
    for (const size_t c : columns) ARROW_RETURN_NOT_OK(found_[c].AddNumbers(converters, *block, places_[c]));
  }
  return arrow::Status::OK();
}

arrow::Result<std::unique_ptr<BlockParser>> CsvPieces::Parsed(const FilePointer& file, size_t piece) const {
  const Piece& of = pieces_[piece];
  ARROW_ASSIGN_OR_RAISE(const BufferPointer data, file->ReadAt(of.begin, of.bytes));
  std::unique_ptr<BlockParser> block = NewParser();
  uint32_t bytes = 0;
  ARROW_RETURN_NOT_OK(block->ParseFinal(std::string_view(*data), &bytes));
  if (bytes != of.bytes || static_cast<uint64_t>(block->num_rows()) != rows_[piece])
    return arrow::Status::Invalid("the file has changed since its rows were counted");
  return block;
}

arrow::Result<std::shared_ptr<arrow::Array>> CsvPieces::ColumnOf(const BlockParser& block, size_t column,
                                                                 const arrow::csv::ConvertOptions& options) const {
  const bool is_text = found_[column].IsReadAsText(*types_[column]);
  ARROW_ASSIGN_OR_RAISE(const auto converter, arrow::csv::Converter::Make(is_text ? arrow::binary() : types_[column],
                                                                          options, ReadingPool()));
  ARROW_ASSIGN_OR_RAISE(auto values, converter->Convert(block, places_[column]));
  if (!is_text) return values;
  return NumbersOf(static_cast<const arrow::BinaryArray&>(*values), types_[column]);
}

absl::Status CsvPieces::ReadPiece(size_t piece, const Take& take) const {
  QUERN_ASSIGN_OR_RETURN_ARROW(const FilePointer file, BoundedFile::Open(path_), CannotRead(path_));
  QUERN_ASSIGN_OR_RETURN_ARROW(std::unique_ptr<BlockParser> block, Parsed(file, piece), CannotRead(path_));
  const arrow::csv::ConvertOptions options = CsvConvertOptions({});
  arrow::ArrayVector columns;
  for (size_t c = 0; c < columns_.size(); ++c) {
    QUERN_ASSIGN_OR_RETURN_ARROW(auto column, ColumnOf(*block, c, options), CannotRead(path_));
    columns.push_back(std::move(column));
  }
  block.reset();
  return take(columns, static_cast<int64_t>(rows_[piece]));
}

}  // namespace

absl::StatusOr<FilePiecesPointer> OpenCsvPieces(const std::string& path, const std::vector<std::string>& columns) {
  auto pieces = std::make_unique<CsvPieces>(path, columns);
  QUERN_RETURN_IF_ERROR(pieces->Open());
  return pieces;
}

}  // namespace quern::cli
