// SPDX-License-Identifier: Apache-2.0
// A position behind the end is an error, bytes beyond the end are cut off, as read(2) does it; readers compare how many
// they got with how many they asked for. A file of 500 bytes, read at 480 for 2^40 bytes, gives 20.
#include "tools/quern/files/bounded_file.h"

#include <arrow/api.h>

#include <algorithm>

namespace quern::cli {
namespace {

arrow::Status TooShort(int64_t position, int64_t nbytes, int64_t size) {
  return arrow::Status::IOError(nbytes, " bytes at ", position, " of a file of ", size, " bytes");
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> BoundedFile::Open(const std::string& path,
                                                                              arrow::MemoryPool* pool) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path, pool));
  ARROW_ASSIGN_OR_RAISE(const int64_t size, file->GetSize());
  return std::make_shared<BoundedFile>(std::move(file), size);
}

arrow::Status BoundedFile::WillNeed(const std::vector<arrow::io::ReadRange>& ranges) {
  std::vector<arrow::io::ReadRange> inside;
  for (const arrow::io::ReadRange& range : ranges) {
    ARROW_ASSIGN_OR_RAISE(const int64_t bytes, Bytes(range.offset, range.length));
    inside.push_back({range.offset, bytes});
  }
  return file_->WillNeed(inside);
}

arrow::Result<int64_t> BoundedFile::Bytes(int64_t position, int64_t nbytes) const {
  if (position < 0 || position > size_ || nbytes < 0) return TooShort(position, nbytes, size_);
  return std::min(nbytes, size_ - position);
}

arrow::Result<std::shared_ptr<arrow::Buffer>> BoundedFile::Read(int64_t nbytes) {
  ARROW_ASSIGN_OR_RAISE(const int64_t position, file_->Tell());
  ARROW_ASSIGN_OR_RAISE(const int64_t bytes, Bytes(position, nbytes));
  return file_->Read(bytes);
}

arrow::Result<std::shared_ptr<arrow::Buffer>> BoundedFile::ReadAt(int64_t position, int64_t nbytes) {
  ARROW_ASSIGN_OR_RAISE(const int64_t bytes, Bytes(position, nbytes));
  return file_->ReadAt(position, bytes);
}

arrow::Result<int64_t> BoundedFile::ReadAt(int64_t position, int64_t nbytes, bool allow_short_read, void* out) {
  ARROW_ASSIGN_OR_RAISE(const int64_t bytes, file_->ReadAt(position, nbytes, out));
  if (bytes < nbytes && !allow_short_read) return TooShort(position, nbytes, size_);
  return bytes;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> BoundedFile::ReadAt(int64_t position, int64_t nbytes,
                                                                  bool allow_short_read) {
  ARROW_ASSIGN_OR_RAISE(const int64_t bytes, Bytes(position, nbytes));
  if (bytes < nbytes && !allow_short_read) return TooShort(position, nbytes, size_);
  return ReadAt(position, bytes);
}

}  // namespace quern::cli
