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

#include <cstdio>
#include <string>
#include <utility>

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

arrow::Status WriteParquet(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  return parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), stream, kRowGroupRows,
                                    parquet::default_writer_properties(), KeepSchema());
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

// Row groups of 2^20 rows, of which the encoded pages are in memory until they are complete; under a limit, of an
// eighth of it at most.
class ParquetBatchWriter final : public BatchWriter {
 public:
  ParquetBatchWriter(std::shared_ptr<DescriptorStream> stream, std::unique_ptr<parquet::arrow::FileWriter> writer)
      : stream_(std::move(stream)), writer_(std::move(writer)) {}
  arrow::Status Write(const std::shared_ptr<arrow::RecordBatch>& batch) override {
    constexpr uint64_t kShare = 8;
    ARROW_ASSIGN_OR_RAISE(const int64_t bytes, arrow::util::ReferencedBufferSize(*batch));
    if (ReadingLimit() != 0 && group_bytes_ != 0 &&
        group_bytes_ + static_cast<uint64_t>(bytes) > ReadingLimit() / kShare) {
      ARROW_RETURN_NOT_OK(writer_->NewBufferedRowGroup());
      group_bytes_ = 0;
    }
    group_bytes_ += static_cast<uint64_t>(bytes);
    return writer_->WriteRecordBatch(*batch);
  }
  arrow::Status Close() override {
    ARROW_RETURN_NOT_OK(writer_->Close());
    return stream_->Close();
  }

 private:
  std::shared_ptr<DescriptorStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  uint64_t group_bytes_ = 0;  // of the batches in the row group
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
  parquet::WriterProperties::Builder properties;
  properties.max_row_group_length(kRowGroupRows)->memory_pool(ReadingPool());
  ARROW_ASSIGN_OR_RAISE(
      auto writer, parquet::arrow::FileWriter::Open(*schema, ReadingPool(), stream, properties.build(), KeepSchema()));
  return std::make_unique<ParquetBatchWriter>(std::move(stream), std::move(writer));
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
