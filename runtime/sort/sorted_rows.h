// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of all sides, by any number of threads, and gives them out by position.
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
  // needs_rows: entries must lead back to rows, whatever the descriptor says.
  SortedRows(const SortContext& context, SortInput input, bool needs_rows);
  ~SortedRows();

  // Takes part until all is sorted. *Threads*: any number. *Errors*: ResourceExhausted, for all of them.
  absl::Status RunTasks() { return work_.RunTasks(); }

  uint64_t num_rows() const { return num_rows_; }
  const char* method() const { return method_; }
  uint64_t collided_rows() const { return collided_rows_; }  // whose order their entries did not say
  uint32_t entry_bytes() const;
  uint32_t key_bits() const;
  const SortChunks& chunks() const { return chunks_; }
  uint64_t stored_bytes() const { return stored_bytes_; }  // of the rows, without the bytes of long strings
  // For blocks read from now on, and for what is sorted later.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) { context_.options.prefetch.Set(loop, setting); }
  // The number of the row at a position; entries must lead back to rows.
  uint64_t RowAt(uint64_t position) const;

  // Buffers that a block of rows is put into.
  struct BlockBuffers {
    std::vector<uint64_t> words;  // by word, of kBlockRows each
    std::vector<const uint64_t*> word_columns;
    std::vector<uint64_t> tuples, row_ids, row_numbers, ranks, dense_ranks;
    uint64_t begin = 0, end = 0;  // of the block
    uint64_t num_tuples = 0;      // from its begin on: of the block, and of blocks to come
    uint64_t num_asked = 0;       // those whose strings were asked for
  };
  static constexpr uint32_t kBlockRows = PrefixLayout::kBlockRows;
  // Rows of a block, up to kBlockRows.
  uint32_t block_rows() const;
  // Rows position .. position+n-1, n up to kBlockRows. *Cost*: a random line a row where the descriptor has tuples;
  // they are asked for as the setting says: those of the block, and of so many rows behind it as the distance has.
  SortedBlock Read(uint64_t position, uint32_t n, BlockBuffers* buffers) const;

 private:
  enum class Stage : uint8_t { kBegin, kScan, kPlace, kTry, kSort, kWindows, kDone };
  enum class Order : uint8_t { kNone, kSorted, kReversed, kNearly };
  // What one thread sorts with.
  struct Worker;
  // What a look at one chunk found: how many entries go to each bucket (then: where the next one goes), and how its
  // rows stand.
  struct ChunkScan {
    std::vector<uint64_t> buckets;
    uint64_t first = 0, last = 0;  // first words of its entries
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
  std::vector<uint64_t> SampleFirstWords() const;
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
  bool decodes_ = false;  // all fields come out of words: rows have no tuples
  std::vector<uint64_t>
      id_bases_;  // by 1024 rows, or one for all: a row's id less its number; empty where each row has its own
  bool by_row_id_ = false;  // ties must be put in the order of row ids, which is not theirs
  SortChunks chunks_;
  std::vector<uint64_t> bases_;  // by chunk: rows before it
  uint64_t num_rows_ = 0;
  uint64_t stored_bytes_ = 0;
  std::vector<uint32_t> string_offsets_;  // in a tuple, of fields that may point to bytes
  std::optional<PrefixLayout> layout_;
  HugeBuffer entries_;
  HugeBuffer pointers_;                                    // of tuples: comparison sorts
  std::vector<uint32_t> words_read_;                       // words of keys that come out of them
  std::vector<std::vector<std::vector<uint32_t>>> ranks_;  // by coded key, side and code; in the order of the key
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
      bounds_;  // of buckets, or of ranges whose entries are in order by their first words; one more than there are
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
