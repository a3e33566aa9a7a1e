// SPDX-License-Identifier: Apache-2.0
// A host's own vectors as the columns that kernels read. Internal.
#ifndef QUERN_HOSTS_C_HOST_BATCH_H_
#define QUERN_HOSTS_C_HOST_BATCH_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "hosts/c/quern.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"

namespace quern::c_abi {

struct HostBatchView {
  BatchView batch;                      // its owner holds what had to be made to read the columns
  std::shared_ptr<const void> strings;  // the copied bytes, to which stored tuples point; null if there are none
};

class StringPages;

// What to do with the bytes of strings.
struct StringMemory {
  std::shared_ptr<MemoryBudget> budget;  // pays for copies
  bool copy = false;                     // copy those of all strings and binaries, so that the host's may go away
  StringPages* pages = nullptr;          // of the input; null: blocks of their own
  uint32_t held_key_bytes = 0;           // keys of up to so many bytes are not copied, as stored rows hold them
  uint64_t most_bytes = 0;               // of copies for a batch of several rows; 0: any
  bool* is_too_large = nullptr;          // set where these are exceeded
};

// The view of a host's batch.
// *Nulls*: those of a dictionary's values become nulls of its indices.
// *Cost*: O(columns); O(highest row used), and the bytes, for columns with null values in a dictionary, columns that
// are not plain, and copies. *Errors*: InvalidArgument for a missing pointer or too many rows, naming side and column;
// ResourceExhausted, also for copies of more than most_bytes.
absl::StatusOr<HostBatchView> ViewOfHostBatch(const quern_batch& batch, const std::vector<ColumnType>& keys,
                                              const std::vector<ColumnType>& payload, std::string_view side,
                                              const StringMemory& strings);

// Columns of kernels in the form of the host's, for its functions and to be read as a batch of its own. Nothing is
// copied. *Threads*: one.
class ShownColumns {
 public:
  // Valid until the next call.
  const quern_column* Show(std::span<const QuernColumn> columns);

 private:
  std::vector<quern_column> columns_, dictionaries_;
};

// The same rows with copies of their strings, of a batch that has them elsewhere. *Cost*, *errors*: as above.
absl::StatusOr<HostBatchView> WithCopiedStrings(const BatchView& batch, const std::vector<ColumnType>& keys,
                                                const std::vector<ColumnType>& payload, std::string_view side,
                                                const StringMemory& strings);

// *Errors*: InvalidArgument for more rows than there are row numbers.
absl::Status CheckNumRows(uint64_t num_rows);

// Some of a batch's rows as a batch of their own, for threads that share it. The columns are those of the batch,
// advanced to the first row, so nothing is copied; with a selection the columns stay and the selection is advanced.
// *Ownership*: points into the host's batch and into itself. *Errors*: none; a batch without columns stays one.
class BatchSlice {
 public:
  BatchSlice(const quern_batch& batch, const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload,
             uint64_t first_row, uint64_t num_rows);
  BatchSlice(const BatchSlice&) = delete;
  BatchSlice& operator=(const BatchSlice&) = delete;

  const quern_batch& batch() const { return batch_; }

 private:
  std::vector<quern_column> keys_;
  std::vector<quern_column> payload_;
  quern_batch batch_;
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_HOST_BATCH_H_
