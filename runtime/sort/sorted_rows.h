// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of all thread-local states with any number of threads, and reads them by position.
#ifndef QUERN_RUNTIME_SORT_SORTED_ROWS_H_
#define QUERN_RUNTIME_SORT_SORTED_ROWS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/bucket_map.h"
#include "runtime/base/memory.h"
#include "runtime/base/shared_work.h"
#include "runtime/sort/collision_sort.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/prefix_sort.h"
#include "runtime/sort/sort_columns.h"
#include "runtime/sort/sort_prefixes.h"
#include "runtime/sort/sort_windows.h"

namespace quern {

class SortedRows {
 public:
  // needs_rows: prefixes must contain row numbers, whatever the descriptor says.
  SortedRows(const SortContext& context, SortInput input, bool needs_rows);
  ~SortedRows();

  // The work after which all rows are sorted. *Errors*: ResourceExhausted.
  SharedWork* work() { return &work_; }

  uint64_t num_rows() const { return num_rows_; }
  const char* method() const { return method_; }
  uint64_t collided_rows() const { return collided_rows_; }  // whose prefixes collided
  uint32_t entry_bytes() const;
  uint32_t key_bits() const;
  const SortChunks& chunks() const { return chunks_; }
  uint64_t stored_bytes() const { return stored_bytes_; }  // of the rows, without the bytes of long strings
  // Applies to blocks read from now on, and to sorting that begins later.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) { context_.options.prefetch.Set(loop, setting); }
  // The number of the row at a position; prefixes must contain row numbers.
  uint64_t RowAt(uint64_t position) const;

  // Buffers for a block of rows.
  struct BlockBuffers {
    std::vector<uint64_t> words;  // of the words that are read, one after the other
    std::vector<const uint64_t*> word_columns;
    std::vector<uint64_t> tuples, row_ids, row_numbers, ranks, dense_ranks;
    uint64_t begin = 0, end = 0;  // of the block
    uint64_t num_tuples = 0;      // tuples found from `begin` on, of this block and of later ones
    uint64_t num_prefetched = 0;  // tuples whose strings were prefetched
  };
  static constexpr uint32_t kBlockRows = PrefixLayout::kBlockRows;
  // The number of rows of a block, up to kBlockRows.
  uint32_t block_rows() const;
  // Reads rows position .. position+n-1, n up to kBlockRows.
  // *Cost*: a random line a row where the descriptor has tuples. The tuples of the block, and of as many rows after it
  // as the prefetch distance, are prefetched by the setting.
  SortedBlock Read(uint64_t position, uint32_t n, BlockBuffers* buffers) const;

 private:
  enum class Stage : uint8_t { kBegin, kScan, kPlace, kTry, kSort, kWindows, kDone };
  enum class Order : uint8_t { kNone, kSorted, kReversed, kNearly };
  // The sorters and buffers of one thread.
  struct Worker;
  // The result of scanning one chunk: how many prefixes go to each bucket (later: where the next one goes), and how far
  // its rows are in order.
  struct ChunkScan {
    std::vector<uint64_t> buckets;
    uint64_t first = 0, last = 0;  // first words of its first and last prefix
    uint64_t num_rises = 0, num_falls = 0;
  };

  absl::StatusOr<std::optional<SharedWork::Phase>> NextPhase();
  absl::StatusOr<std::optional<SharedWork::Phase>> Begin();
  void FindWordsRead();
  void FindIdBases();
  absl::Status RankDictionary();
  absl::Status OrderStrings(const DictionaryKey& coded, const std::vector<std::vector<uint32_t>>& ranks,
                            uint32_t num_ranks);
  void MakeRanks(uint64_t c);
  SharedWork::Phase PhaseOver(uint64_t num_tasks, absl::Status (SortedRows::*run)(uint64_t task));
  uint32_t BucketBits() const;
  std::vector<uint64_t> SampleFirstWords(uint64_t num_words) const;
  absl::Status ScanChunk(uint64_t c);
  void FindOrder();
  void SetOrder(Order order);
  void CutBuckets();
  void CutRanges();
  void CutTasks();
  absl::Status PlaceChunk(uint64_t c);
  void PlaceInOrder(uint64_t c);
  void PlaceByBucket(uint64_t c);
  absl::Status SortSmall(uint64_t task);
  absl::Status SortTuples(uint64_t task);
  absl::Status TryNearly(uint64_t task);
  absl::Status SortBuckets(uint64_t task);
  absl::Status SortRange(uint64_t begin, uint64_t end, Worker* worker);
  absl::Status MarkWindows(uint64_t task);
  SortRow WordsOf(uint64_t row) const;
  bool IsSamePartition(uint64_t position) const;
  bool HasSameKeys(uint64_t position) const;
  PrefetchSetting SettingOf(PrefetchLoop loop) const;
  const uint8_t* TupleAt(uint64_t position) const;
  template <class Prefetch>
  void FindTuples(uint64_t position, uint32_t n, const PrefetchSetting& setting, BlockBuffers* buffers) const;
  template <class Prefetch>
  void ReadRowIds(uint64_t position, uint32_t n, const PrefetchSetting& setting, uint64_t* row_ids) const;
  std::unique_ptr<Worker> TakeWorker();
  void GiveWorker(std::unique_ptr<Worker> worker);
  uint64_t* EntryAt(uint64_t i) const { return reinterpret_cast<uint64_t*>(entries_.data()) + i * layout_->words(); }
  bool compares() const { return context_.descriptor->method() == SortMethod::kComparison; }

  SortContext context_;
  SortInput input_;
  bool needs_rows_;
  bool reads_row_ids_ = false;
  bool decodes_ = false;  // all fields are decoded from words: rows have no tuples
  std::vector<uint64_t>
      id_bases_;            // by 1024 rows, or one for all: a row's id less its number; empty if each row has its own
  bool by_row_id_ = false;  // equal rows must be sorted by row id, which differs from row number
  SortChunks chunks_;
  std::vector<uint64_t> bases_;  // by chunk: rows before it
  uint64_t num_rows_ = 0;
  uint64_t stored_bytes_ = 0;
  std::vector<uint32_t> string_offsets_;  // in a tuple, of fields that may point to bytes
  std::optional<PrefixLayout> layout_;
  HugeBuffer entries_;
  HugeBuffer pointers_;                                    // of tuples: comparison sorts
  std::vector<uint32_t> words_read_;                       // words from which keys are decoded
  std::vector<std::vector<std::vector<uint32_t>>> ranks_;  // by coded key, thread-local state and code; in key order
  struct RankedStrings {
    std::vector<blocks::Bytes> strings;  // by rank
    HugeBuffer bytes;
  };
  std::vector<RankedStrings> ranked_;                // by coded key
  std::vector<const blocks::Bytes*> ranked_of_key_;  // by key
  const char* method_ = "none";
  Stage stage_ = Stage::kBegin;
  Order order_ = Order::kNone;
  std::optional<BucketMap> buckets_;
  std::vector<ChunkScan> scans_;  // by chunk
  std::vector<uint64_t>
      bounds_;  // of buckets, or of ranges of prefixes already sorted by their first words; one more than there are
  std::vector<uint64_t> task_bounds_;  // of tasks, in buckets
  std::mutex workers_mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint64_t> collided_rows_{0};
  uint32_t partition_bits_ = 0;
  std::vector<KeyComparison> partition_steps_;
  SortWindows windows_;
  SharedWork work_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORTED_ROWS_H_
