// SPDX-License-Identifier: Apache-2.0
// Writes a table in each of the file formats.
#ifndef QUERN_TOOLS_FILES_WRITE_TABLE_H_
#define QUERN_TOOLS_FILES_WRITE_TABLE_H_

#include <arrow/type_fwd.h>

#include <memory>

#include "tools/quern/files/table_io.h"

namespace quern::cli {

// Writes a table batch by batch to an open file. *Ownership*: the descriptor is borrowed. *Errors*: as WriteTableTo.
class BatchWriter {
 public:
  virtual ~BatchWriter() = default;
  virtual arrow::Status Write(const std::shared_ptr<arrow::RecordBatch>& batch) = 0;
  virtual arrow::Status Close() = 0;
};
arrow::Result<std::unique_ptr<BatchWriter>> MakeBatchWriter(const std::shared_ptr<arrow::Schema>& schema,
                                                            FileFormat format, int descriptor);

// Writes to an open file. *Ownership*: the descriptor is borrowed. *Errors*: those of Arrow, with errno where a write
// failed. The Parquet library may throw parquet::ParquetException.
arrow::Status WriteTableTo(const std::shared_ptr<arrow::Table>& table, FileFormat format, int descriptor);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_WRITE_TABLE_H_
