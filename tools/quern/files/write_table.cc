// SPDX-License-Identifier: Apache-2.0
// Tables to files. Parquet gets row groups of 1 Mi rows and Arrow's schema, so that types survive a round trip. CSV has
// texts for what Arrow's CSV writer does not support: decimals, views, and bytes that are not text.
#include "tools/quern/files/write_table.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/csv/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <arrow/util/byte_size.h>
#include <arrow/util/io_util.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/base/write_file.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

using TablePointer = std::shared_ptr<arrow::Table>;

constexpr int64_t kRowGroupRows = 1 << 20;

std::shared_ptr<parquet::ArrowWriterProperties> KeepSchema() {
  parquet::ArrowWriterProperties::Builder properties;
  properties.store_schema();
  return properties.build();
}

// The values of the first rows as bytes, as far as they lie in memory one by one; none for other types.
std::vector<std::string_view> FirstValues(const arrow::Array& column, int64_t num_rows) {
  std::vector<std::string_view> values;
  if (num_rows == 0) return values;
  const arrow::Type::type id = column.type_id();
  const int bit_width = arrow::is_fixed_width(id) ? column.type()->bit_width() : 0;
  if (id == arrow::Type::STRING || id == arrow::Type::BINARY) {
    for (int64_t row = 0; row < num_rows; ++row)
      values.push_back(static_cast<const arrow::BinaryArray&>(column).GetView(row));
  } else if (id != arrow::Type::DICTIONARY && bit_width >= 8) {
    const int64_t width = bit_width / 8;
    const auto* const bytes = reinterpret_cast<const char*>(column.data()->buffers[1]->data());
    for (int64_t row = 0; row < num_rows; ++row)
      values.emplace_back(bytes + (column.offset() + row) * width, static_cast<size_t>(width));
  }
  return values;
}

// Whether a dictionary would hardly be shorter than the column: most of its first values differ. Making one, which the
// Parquet library gives up at a megabyte, took half of the time of writing a column of numbers.
bool MostDiffer(const arrow::Array& column) {
  constexpr int64_t kSampleRows = 4096;
  const std::vector<std::string_view> values = FirstValues(column, std::min(column.length(), kSampleRows));
  const std::unordered_set<std::string_view> different(values.begin(), values.end());
  return different.size() * 2 > values.size();
}

// first_rows: may be null.
std::shared_ptr<parquet::WriterProperties> PropertiesFor(const arrow::RecordBatch* first_rows,
                                                         arrow::MemoryPool* pool) {
  parquet::WriterProperties::Builder properties;
  properties.max_row_group_length(kRowGroupRows)->memory_pool(pool);
  for (int c = 0; first_rows != nullptr && c < first_rows->num_columns(); ++c)
    if (MostDiffer(*first_rows->column(c))) properties.disable_dictionary(first_rows->column_name(c));
  return properties.build();
}

arrow::Status WriteParquet(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  std::shared_ptr<arrow::RecordBatch> first_rows;
  ARROW_RETURN_NOT_OK(arrow::TableBatchReader(*table).ReadNext(&first_rows));
  arrow::MemoryPool* const pool = arrow::default_memory_pool();
  return parquet::arrow::WriteTable(*table, pool, stream, kRowGroupRows, PropertiesFor(first_rows.get(), pool),
                                    KeepSchema());
}

// Bytes that are not text, as DuckDB writes them to CSV: \x00 for everything but printable ASCII.
arrow::Result<std::shared_ptr<arrow::Array>> BinaryText(const arrow::ChunkedArray& column) {
  arrow::LargeStringBuilder builder;
  for (int64_t row = 0; row < column.length(); ++row) {
    ARROW_ASSIGN_OR_RAISE(const auto scalar, column.GetScalar(row));
    if (!scalar->is_valid) {
      ARROW_RETURN_NOT_OK(builder.AppendNull());
      continue;
    }
    std::string text;
    for (const char c : static_cast<const arrow::BaseBinaryScalar&>(*scalar).view()) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02X", static_cast<unsigned char>(c));
      text += c >= 0x20 && c < 0x7f && c != '\\' ? std::string(1, c) : std::string(hex);
    }
    ARROW_RETURN_NOT_OK(builder.Append(text));
  }
  return builder.Finish();
}

bool IsBinary(arrow::Type::type id) {
  return id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY || id == arrow::Type::BINARY_VIEW ||
         id == arrow::Type::FIXED_SIZE_BINARY;
}

// Arrow's CSV writer supports fewer types than Arrow's casts to utf8, and treats binary columns as text.
arrow::Result<TablePointer> CsvTable(TablePointer table) {
  for (int i = 0; i < table->num_columns(); ++i) {
    const arrow::Type::type id = table->field(i)->type()->id();
    if (id != arrow::Type::STRING_VIEW && !arrow::is_decimal(id) && !IsBinary(id)) continue;
    std::shared_ptr<arrow::ChunkedArray> text;
    if (IsBinary(id)) {
      ARROW_ASSIGN_OR_RAISE(const auto array, BinaryText(*table->column(i)));
      text = std::make_shared<arrow::ChunkedArray>(array);
    } else {
      ARROW_ASSIGN_OR_RAISE(const arrow::Datum cast, arrow::compute::Cast(table->column(i), arrow::large_utf8()));
      text = cast.chunked_array();
    }
    ARROW_ASSIGN_OR_RAISE(table, table->SetColumn(i, arrow::field(table->field(i)->name(), text->type()), text));
  }
  return table;
}

arrow::Status WriteCsv(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  ARROW_ASSIGN_OR_RAISE(const TablePointer text, CsvTable(table));
  return arrow::csv::WriteCSV(*text, arrow::csv::WriteOptions::Defaults(), stream.get());
}

// Arrow's own stream takes an interrupted write for an error, and repeats one that takes nothing without end.
class DescriptorStream : public arrow::io::OutputStream {
 public:
  explicit DescriptorStream(int file) : file_(file) {}
  arrow::Status Write(const void* data, int64_t bytes) override {
    const int error = WriteBytes(file_, {static_cast<const char*>(data), static_cast<size_t>(bytes)});
    if (error != 0) return arrow::internal::IOErrorFromErrno(error, "write");
    written_ += bytes;
    return arrow::Status::OK();
  }
  arrow::Status Close() override {
    is_closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return is_closed_; }
  arrow::Result<int64_t> Tell() const override { return written_; }

 private:
  int file_;
  int64_t written_ = 0;
  bool is_closed_ = false;
};

arrow::Status WriteArrow(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  ARROW_ASSIGN_OR_RAISE(const auto writer, arrow::ipc::MakeFileWriter(stream, table->schema()));
  ARROW_RETURN_NOT_OK(writer->WriteTable(*table));
  return writer->Close();
}

// ---- batch by batch -------------------------------------------------------------------------------------------------

// Row groups of 2^20 rows, of which the encoded pages are in memory until they are complete; under a limit, of a
// sixteenth of it at most, and 8 MiB: then memory that a group has freed serves the next one (kept_blocks.h). A batch
// that has more is a group of its own, whose pages are written as they are encoded: those of a text of 1 MiB took 6 MiB
// until the next group began.
class ParquetBatchWriter final : public BatchWriter {
 public:
  ParquetBatchWriter(std::shared_ptr<arrow::Schema> schema, std::shared_ptr<DescriptorStream> stream)
      : schema_(std::move(schema)), stream_(std::move(stream)) {}
  arrow::Status Write(const std::shared_ptr<arrow::RecordBatch>& batch) override {
    constexpr uint64_t kShare = 16, kMostBytes = 8 << 20;
    if (writer_ == nullptr) ARROW_RETURN_NOT_OK(Open(batch.get()));
    ARROW_ASSIGN_OR_RAISE(const int64_t referenced, arrow::util::ReferencedBufferSize(*batch));
    const auto bytes = static_cast<uint64_t>(referenced);
    const uint64_t most_bytes = std::min(ReadingLimit() / kShare, kMostBytes);
    if (ReadingLimit() != 0 && bytes > most_bytes && batch->num_rows() != 0) {
      group_bytes_ = bytes;
      ARROW_ASSIGN_OR_RAISE(const TablePointer table, arrow::Table::FromRecordBatches(schema_, {batch}));
      return writer_->WriteTable(*table, batch->num_rows());
    }
    if (ReadingLimit() != 0 && group_bytes_ != 0 && group_bytes_ + bytes > most_bytes) {
      ARROW_RETURN_NOT_OK(writer_->NewBufferedRowGroup());
      group_bytes_ = 0;
    }
    group_bytes_ += bytes;
    return writer_->WriteRecordBatch(*batch);
  }
  arrow::Status Close() override {
    if (writer_ == nullptr) ARROW_RETURN_NOT_OK(Open(nullptr));
    ARROW_RETURN_NOT_OK(writer_->Close());
    return stream_->Close();
  }

 private:
  arrow::Status Open(const arrow::RecordBatch* first_rows) {
    ARROW_ASSIGN_OR_RAISE(writer_,
                          parquet::arrow::FileWriter::Open(*schema_, ReadingPool(), stream_,
                                                           PropertiesFor(first_rows, ReadingPool()), KeepSchema()));
    return arrow::Status::OK();
  }

  const std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<DescriptorStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;  // null until the first batch
  uint64_t group_bytes_ = 0;                            // of the batches in the row group
};

// IPC and CSV have writers of one interface. That of CSV is made for the first batch, of which some columns become
// texts.
class IpcBatchWriter final : public BatchWriter {
 public:
  IpcBatchWriter(std::shared_ptr<arrow::Schema> schema, FileFormat format, std::shared_ptr<DescriptorStream> stream)
      : schema_(std::move(schema)), format_(format), stream_(std::move(stream)) {}

  arrow::Status Write(const std::shared_ptr<arrow::RecordBatch>& batch) override {
    ARROW_ASSIGN_OR_RAISE(TablePointer table, arrow::Table::FromRecordBatches(schema_, {batch}));
    return WriteTable(std::move(table));
  }
  arrow::Status Close() override {
    if (writer_ == nullptr) {
      ARROW_ASSIGN_OR_RAISE(TablePointer empty, arrow::Table::MakeEmpty(schema_));
      ARROW_RETURN_NOT_OK(WriteTable(std::move(empty)));
    }
    ARROW_RETURN_NOT_OK(writer_->Close());
    return stream_->Close();
  }

 private:
  arrow::Status WriteTable(TablePointer table) {
    if (format_ == FileFormat::kCsv) {
      ARROW_ASSIGN_OR_RAISE(table, CsvTable(std::move(table)));
    }
    if (writer_ == nullptr && format_ == FileFormat::kCsv) {
      ARROW_ASSIGN_OR_RAISE(writer_, arrow::csv::MakeCSVWriter(stream_, table->schema()));
    } else if (writer_ == nullptr) {
      ARROW_ASSIGN_OR_RAISE(writer_, arrow::ipc::MakeFileWriter(stream_, table->schema()));
    }
    return writer_->WriteTable(*table);
  }

  const std::shared_ptr<arrow::Schema> schema_;
  const FileFormat format_;
  std::shared_ptr<DescriptorStream> stream_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

}  // namespace

arrow::Result<std::unique_ptr<BatchWriter>> MakeBatchWriter(const std::shared_ptr<arrow::Schema>& schema,
                                                            FileFormat format, int descriptor) {
  auto stream = std::make_shared<DescriptorStream>(descriptor);
  if (format != FileFormat::kParquet) return std::make_unique<IpcBatchWriter>(schema, format, std::move(stream));
  return std::make_unique<ParquetBatchWriter>(schema, std::move(stream));
}

arrow::Status WriteTableTo(const TablePointer& table, FileFormat format, int descriptor) {
  const auto stream = std::make_shared<DescriptorStream>(descriptor);
  switch (format) {
    case FileFormat::kParquet: ARROW_RETURN_NOT_OK(WriteParquet(table, stream)); break;
    case FileFormat::kCsv: ARROW_RETURN_NOT_OK(WriteCsv(table, stream)); break;
    case FileFormat::kArrow: ARROW_RETURN_NOT_OK(WriteArrow(table, stream)); break;
  }
  return stream->Close();
}

}  // namespace quern::cli
