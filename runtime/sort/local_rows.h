// SPDX-License-Identifier: Apache-2.0
// What one thread keeps of a sort: its rows as words and tuples, in chunks; under a limit, no more of them than may
// come out.
#ifndef QUERN_RUNTIME_SORT_LOCAL_ROWS_H_
#define QUERN_RUNTIME_SORT_LOCAL_ROWS_H_

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/sort/sort_chunk.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sort_options.h"
#include "runtime/sort/sort_prefixes.h"
#include "runtime/sort/string_dictionary.h"

namespace quern {

// A row that sides keep no row after: the last of as many as the limit says, or a host's.
struct SortBound {
  std::vector<uint64_t> words;
  uint32_t incomplete = 0;             // keys whose value its words may not say whole
  bool drops_ties = false;             // a row that is equal need not come out either
  std::vector<uint8_t> tuple;          // empty where there is none
  std::shared_ptr<const void> memory;  // of its strings
};

// The lowest bound that is known. *Threads*: any.
class SortThreshold {
 public:
  explicit SortThreshold(std::shared_ptr<const SortDescriptor> descriptor) : descriptor_(std::move(descriptor)) {}
  void Lower(std::shared_ptr<const SortBound> bound);
  std::shared_ptr<const SortBound> Get() const;

 private:
  std::shared_ptr<const SortDescriptor> descriptor_;
  mutable std::mutex mutex_;
  std::shared_ptr<const SortBound> bound_;
};

// What a sort and its sides are made of.
struct SortContext {
  std::shared_ptr<const SortDescriptor> descriptor;
  SortEntrySource entry_points;
  std::shared_ptr<MemoryBudget> budget;
  SortOptions options;
  std::shared_ptr<SortThreshold> threshold;
  std::shared_ptr<CounterSet> counters = nullptr;

  bool keeps_top() const {
    return descriptor->spec().limit != 0 && descriptor->spec().limit <= options.top_rows &&
           descriptor->method() == SortMethod::kRadix;
  }
  bool uses_row_ids() const;
};

// A key whose strings are codes in all chunks, in the bits of its first part, until they are made ranks.
struct DictionaryKey {
  uint32_t key;
  std::vector<const StringDictionary*> codes;  // by side
};

// Rows of one or more sides, as those who sort them see them.
struct SortInput {
  std::vector<const SortChunk*> chunks;
  std::vector<WordBits64> bits;  // by word
  uint32_t incomplete = 0;       // keys with values that their words do not say whole
  bool rows_in_order = true;     // row ids grow with the numbers of rows
  uint64_t last_row_id = 0;      // of the last chunk's last row
  uint32_t num_local_states = 0;
  std::vector<uint32_t> locals;  // by chunk: its side
  std::vector<DictionaryKey> coded;
  bool needs_tuples = false;  // words and codes do not say all fields
};

class LocalRows {
 public:
  explicit LocalRows(SortContext context);
  ~LocalRows();

  // *Errors*: ResourceExhausted.
  absl::Status Append(const BatchView& batch, uint64_t first_row_id);

  // Whether a key's rows have codes, and how to make them bytes again.
  bool HasDictionary(uint32_t key) const;
  absl::Status Uncode(uint32_t key);

  // Whether words and codes do not say all that tuples hold: then all sides must have tuples, of all rows. *Errors*:
  // ResourceExhausted.
  bool NeedsTuples() const;
  absl::Status RestoreTuples();

  // Adds this side's chunks and what is known of them. Keys that are coded here must be so in all sides.
  void AddTo(SortInput* input) const;

  CounterBlock* counters() { return &counters_; }
  uint64_t num_input_rows() const { return num_input_rows_; }
  uint64_t num_rows() const { return num_rows_; }

 private:
  struct Memory;
  struct Block;
  struct KeyDictionary {
    uint32_t key;
    std::unique_ptr<StringDictionary> codes;  // null: rows have bytes
    bool may_try = true;
  };
  absl::Status AppendRows(const Block& block);
  absl::Status AppendTop(const Block& block);
  uint32_t SelectTop(const Block& block, uint32_t* rows);
  absl::Status AppendToChunk(const Block& block);
  void ReadStrings(const SortChunk& chunk, uint32_t key, uint32_t begin, uint32_t n, blocks::Bytes* strings) const;
  void ReadStrings(const Block& block, uint32_t key, blocks::Bytes* strings) const;
  absl::Status CodeRows(const Block& block, SortChunk* chunk);
  void StoreTuples(const Block& block, uint32_t at, const SortChunk& chunk) const;
  void FindOddFloats(const Block& block);
  void RestoreField(uint32_t f, const uint64_t* const* words, uint32_t n, uint8_t* tuples) const;
  void WriteBytes(uint32_t key, uint32_t begin, uint32_t n, SortChunk* chunk);
  absl::Status TryDictionary(KeyDictionary* key);
  absl::StatusOr<bool> CodeSome(KeyDictionary* key, const blocks::Bytes* strings, SortChunk* chunk, uint32_t begin,
                                uint32_t n);
  void PointToCopies(const QuernSortKey& key, const blocks::Bytes* strings, const uint8_t* const* copies, uint32_t n,
                     uint8_t* tuples) const;
  bool IsSkipped(const QuernSortPart& part) const;
  void FindDictionaryWords();
  absl::StatusOr<SortChunk*> ChunkFor(uint64_t n);
  absl::Status GrowFirst(uint32_t capacity);
  void SetMemory(uint8_t* memory, uint32_t capacity, bool has_tuples, SortChunk* chunk) const;
  uint64_t RowBytes(bool has_tuples) const;
  static bool FollowsInBlocks(const SortChunk& chunk, const Block& block);
  absl::Status AddRowIds(const Block& block, SortChunk* chunk);
  absl::Status MakeRowIds(SortChunk* chunk);
  absl::Status CopyStrings(uint8_t* tuples, uint32_t n);
  absl::Status KeepTop();
  absl::Status KeepRow(const class SortedRows& sorted, uint64_t row, uint64_t num_left);
  absl::Status LowerBound();

  SortContext context_;
  CounterBlock counters_;
  std::shared_ptr<Memory> memory_;
  std::deque<SortChunk> chunks_;
  std::vector<WordBits64> bits_;
  uint32_t incomplete_ = 0;
  uint64_t num_input_rows_ = 0;
  uint64_t num_rows_ = 0;
  bool row_ids_grow_ = true;
  uint64_t first_row_id_ = 0;
  uint64_t last_row_id_ = 0;
  bool keeps_owners_ = false;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<KeyDictionary> key_codes_;
  std::vector<std::unique_ptr<StringDictionary>> old_codes_;
  uint32_t skipped_keys_ = 0;     // that have codes: their bytes are not encoded
  std::vector<bool> is_written_;  // by word: whether encoding writes to it
  std::vector<bool>
      is_zeroed_;  // by word, where keys are skipped: it must be zeros before, as what it begins with is not encoded
  bool may_drop_tuples_ = false;  // all fields are keys that words or codes may say
  uint32_t float_fields_ = 0;     // keys that are fields for being floats
  uint32_t odd_floats_ = 0;       // those of them with a value that its word does not give back
  // Under a limit.
  std::vector<KeyComparison> bound_steps_;  // those that words decide
  uint32_t bound_incomplete_ = ~0u;         // what they were made for
  std::shared_ptr<const SortBound> bound_;
  bool drops_ties_ = false;  // those of the bound
  std::vector<uint64_t> lead_;
  std::vector<uint32_t> picked_;
  std::vector<uint64_t> picked_words_;
  bool arrivals_grow_ = true;  // row ids, in the order of arrival
  uint64_t num_arrived_ = 0;
  uint64_t last_arrival_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_LOCAL_ROWS_H_
