// SPDX-License-Identifier: Apache-2.0
// A file whose reads are cut to its size before memory is taken for them.
#ifndef QUERN_TOOLS_FILES_BOUNDED_FILE_H_
#define QUERN_TOOLS_FILES_BOUNDED_FILE_H_

#include <arrow/io/api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/quern/files/reading_memory.h"

namespace quern::cli {

// Readers ask for as many bytes as a length in the file says, and Arrow's file takes memory for as many: of a file of
// 500 bytes whose length was changed to 2^40, a terabyte. This one takes what the file can give. *Threads*: reads at a
// position: any.
class BoundedFile final : public arrow::io::RandomAccessFile {
 public:
  // What is read lies in memory of `pool`.
  static arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> Open(const std::string& path,
                                                                          arrow::MemoryPool* pool = ReadingPool());
  BoundedFile(std::shared_ptr<arrow::io::ReadableFile> file, int64_t size) : file_(std::move(file)), size_(size) {}

  // None says `override`: those with `allow_short_read` are no virtual functions of older versions of Arrow.
  // NOLINTBEGIN(modernize-use-override)
  arrow::Status Close() { return file_->Close(); }
  bool closed() const { return file_->closed(); }
  arrow::Result<int64_t> Tell() const { return file_->Tell(); }
  arrow::Status Seek(int64_t position) { return file_->Seek(position); }
  arrow::Result<int64_t> GetSize() { return size_; }
  arrow::Status WillNeed(const std::vector<arrow::io::ReadRange>& ranges);
  arrow::Result<int64_t> Read(int64_t nbytes, void* out) { return file_->Read(nbytes, out); }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t nbytes);
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t nbytes, void* out) {
    return file_->ReadAt(position, nbytes, out);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t nbytes);
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t nbytes, bool allow_short_read, void* out);
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t nbytes, bool allow_short_read);
  // NOLINTEND(modernize-use-override)

 private:
  // Of `nbytes`, how many the file has from `position` on. *Errors*: a negative number, a position behind the end.
  arrow::Result<int64_t> Bytes(int64_t position, int64_t nbytes) const;

  std::shared_ptr<arrow::io::ReadableFile> file_;
  int64_t size_;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_BOUNDED_FILE_H_
