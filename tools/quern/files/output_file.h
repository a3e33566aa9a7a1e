// SPDX-License-Identifier: Apache-2.0
// A result file that is written completely or not at all.
#ifndef QUERN_TOOLS_FILES_OUTPUT_FILE_H_
#define QUERN_TOOLS_FILES_OUTPUT_FILE_H_

#include <arrow/type_fwd.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/base/private_folder.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/files/write_table.h"

namespace quern::cli {

// A file that appears under its name when it is complete, or not at all. It is written as a temporary file in the same
// folder, which is removed on every other outcome that the process sees: errors, and the signals that end it. What a
// killed process left behind is removed by the next one that writes a file of that name. *Threads*: one; at most one
// object at a time.
class OutputFile {
 public:
  // A symbolic link is followed: the file that it names is replaced. *Errors*: the folder is not writable; the name is
  // taken by something else than a file.
  static absl::StatusOr<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  absl::Status WriteTable(const std::shared_ptr<arrow::Table>& table, FileFormat format);
  // The same batch by batch: BeginTable, then WriteBatch for each, then EndTable.
  absl::Status BeginTable(const std::shared_ptr<arrow::Schema>& schema, FileFormat format);
  absl::Status WriteBatch(const std::shared_ptr<arrow::RecordBatch>& batch);
  absl::Status EndTable();
  absl::Status WriteText(const std::string& text);

  // Gives the file its name, replacing a file of that name. The new file has the mode of the one that it replaces and,
  // where the process may set them, its owner and group.
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::string target, std::string temporary, Descriptor file);
  absl::Status TakeOverAttributes();
  template <class F>
  absl::Status Writing(const F& write) const;

  std::string path_;       // as the user gave it, for messages
  std::string target_;     // with links followed
  std::string temporary_;  // "": committed or moved from
  Descriptor file_;        // the temporary, locked
  std::unique_ptr<BatchWriter> writer_;
};

// *Errors*: `path` and the reason, in strerror's words.
absl::Status WriteError(const std::string& path, int number);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_OUTPUT_FILE_H_
