// SPDX-License-Identifier: Apache-2.0
// The local state of a sort: rows as key words and tuples in chunks. Under a limit, only rows that may still be part of
// the result are kept.
#ifndef QUERN_RUNTIME_SORT_LOCAL_ROWS_H_
#define QUERN_RUNTIME_SORT_LOCAL_ROWS_H_

#include <bitset>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/sink/sink.h"
#include "runtime/sort/sort_chunk.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sort_options.h"
#include "runtime/sort/sort_prefixes.h"
#include "runtime/sort/string_dictionary.h"

namespace quern {

// A row after which no row is needed: the last of the first `limit` rows, or one that the host provides.
struct SortBound {
  std::vector<uint64_t> words;
  uint32_t incomplete = 0;             // keys with values that may not fit their key words
  bool drops_ties = false;             // a row equal to the bound is not needed either
  std::vector<uint8_t> tuple;          // empty without a tuple
  std::shared_ptr<const void> memory;  // keeps its strings
};

// The lowest bound known so far. *Threads*: any.
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

// Whether a sort keeps only the rows of its limit.
inline bool KeepsTop(const SortDescriptor& descriptor, const SortOptions& options) {
  return descriptor.spec().limit != 0 && descriptor.spec().limit <= options.top_rows &&
         descriptor.method() == SortMethod::kRadix;
}

// What a sort and its thread-local rows share.
struct SortContext {
  std::shared_ptr<const SortDescriptor> descriptor;
  SortEntrySource entry_points;
  std::shared_ptr<MemoryBudget> budget;
  SortOptions options;
  std::shared_ptr<SortThreshold> threshold;
  std::shared_ptr<CounterSet> counters = nullptr;

  bool keeps_top() const { return KeepsTop(*descriptor, options); }
  bool uses_row_ids() const;
};

// A key whose strings are dictionary codes in all chunks. The codes lie in the bits of the key's first part until ranks
// replace them.
struct DictionaryKey {
  uint32_t key;
  std::vector<const StringDictionary*> codes;  // by thread-local state
};

// The rows of one or more thread-local states, as input of a sort.
struct SortInput {
  std::vector<const SortChunk*> chunks;
  std::vector<WordBits64> bits;  // by word
  uint32_t incomplete = 0;       // keys with values that do not fit their key words
  bool rows_in_order = true;     // row ids ascend with row numbers
  uint64_t last_row_id = 0;      // of the last chunk's last row
  uint32_t num_local_states = 0;
  std::vector<uint32_t> locals;  // by chunk: its thread-local state
  std::vector<DictionaryKey> coded;
  bool needs_tuples = false;  // words and codes do not hold all fields
};

class LocalRows final : public LocalState {
 public:
  explicit LocalRows(SortContext context);
  ~LocalRows() override;

  // *Errors*: ResourceExhausted, after which the rows taken are whole blocks, or the pieces of a block that went to
  // full chunks.
  absl::Status Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) override;

  // As a sink calls Append, for a state that holds this one. taken_rows: receives how many rows were added.
  absl::Status Add(const BatchView& batch, uint64_t first_row_id, uint64_t* taken_rows);

  // HasDictionary: whether the key's words hold dictionary codes. Uncode replaces the codes by the strings' first
  // bytes.
  bool HasDictionary(uint32_t key) const;
  absl::Status Uncode(uint32_t key);
  // Completes what Append began when it was refused memory: writes the bytes of keys whose codes have gone. For the
  // sort, which reads all words; Append itself begins with it. *Errors*: ResourceExhausted, after which it may be
  // repeated.
  absl::Status RepairWords();

  // NeedsTuples: whether tuples hold anything that cannot be decoded from words and codes. Then all thread-local states
  // must have tuples for all rows, and RestoreTuples makes the missing ones.
  // *Errors*: ResourceExhausted.
  bool NeedsTuples() const;
  absl::Status RestoreTuples();

  // Adds these chunks and what is known of them. Keys that have dictionary codes here must have them in all
  // thread-local states.
  void AddTo(SortInput* input) const;

  uint64_t num_input_rows() const { return num_input_rows_; }
  uint64_t num_rows() const { return num_rows_; }

  // For a sort that moves rows elsewhere, which has no strings to keep, nor a limit. FreeBefore gives memory back that
  // only chunks before this one have; Clear forgets the rows of one chunk, and keeps its memory for the next ones.
  const std::vector<SortChunk>& chunks() const { return chunks_; }
  uint32_t incomplete() const { return incomplete_; }
  void FreeBefore(size_t chunk);
  void Clear();

 private:
  struct Memory;
  struct Block;
  struct KeyDictionary {
    uint32_t key;
    std::unique_ptr<StringDictionary> codes;  // null: words hold the strings' bytes
    bool may_try = true;
  };
  absl::Status AppendBlocks(const BatchView& batch, const std::vector<QuernColumn>& fields, uint64_t first_row_id);
  absl::Status AppendRows(const Block& block, uint64_t* num_done);
  absl::Status AppendTop(const Block& block);
  uint32_t SelectTop(const Block& block, uint32_t* rows);
  void TakeArrivals(const Block& block, uint32_t num_taken);
  static uint32_t PositionOf(const Block& block, const Block& picked, uint32_t i);
  absl::Status AppendToChunk(const Block& block);
  void ReadStrings(const SortChunk& chunk, uint32_t key, uint32_t begin, uint32_t n, blocks::Bytes* strings) const;
  void ReadStrings(const Block& block, uint32_t key, blocks::Bytes* strings) const;
  absl::Status CodeRows(const Block& block, SortChunk* chunk);
  void StoreTuples(const Block& block, uint32_t at, const SortChunk& chunk) const;
  void FindOddFloats(const Block& block);
  void RestoreField(uint32_t f, const uint64_t* const* words, uint32_t n, uint8_t* tuples) const;
  void WriteBytes(uint32_t key, uint32_t begin, uint32_t n, SortChunk* chunk);
  absl::Status TryDictionary(KeyDictionary* key);
  absl::StatusOr<std::unique_ptr<StringDictionary>> CodesThatPay(uint32_t key, const SortChunk& chunk) const;
  void EndCodes(KeyDictionary* key);
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
  absl::Status WriteRowIds(const Block& block, SortChunk* chunk);
  void TakeRowIds(const Block& block);
  absl::Status FillChunk(const Block& block, SortChunk* chunk);
  absl::Status MakeRowIds(SortChunk* chunk);
  absl::Status CopyStrings(uint8_t* tuples, uint32_t n);
  absl::Status KeepTop();
  absl::Status KeepRows(const class SortedRows& sorted);
  absl::Status KeepRow(const class SortedRows& sorted, uint64_t row, uint64_t num_left);
  absl::Status LowerBound();

  SortContext context_;
  std::shared_ptr<Memory> memory_;
  std::vector<SortChunk> chunks_;  // addresses are taken once no row is added any more
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
  uint32_t skipped_keys_ = 0;              // keys with dictionary codes, whose bytes are not encoded
  uint32_t keys_without_bytes_ = 0;        // keys whose codes have gone and whose bytes not all words have yet
  std::bitset<kMaxSortWords> is_written_;  // by word: whether encode writes it
  std::bitset<kMaxSortWords>
      is_zeroed_;  // by word, with skipped keys: whether it must be zeroed first, since its leading part is not encoded
  bool may_drop_tuples_ = false;  // all fields are keys that words or codes may hold
  uint32_t float_fields_ = 0;     // float keys that are fields
  uint32_t odd_floats_ = 0;       // those with a value that cannot be decoded from its word
  // Members for a limit.
  std::vector<KeyComparison> bound_steps_;  // the comparison keys on words, before the first tail
  uint32_t bound_incomplete_ = ~0u;         // the set of keys for which bound_steps_ was made
  std::shared_ptr<const SortBound> bound_;
  bool drops_ties_ = false;  // drops rows equal to the bound
  std::vector<uint64_t> lead_;
  std::vector<uint32_t> picked_;
  std::vector<uint64_t> picked_words_;
  bool arrivals_grow_ = true;  // row ids ascend in the order of arrival
  uint64_t num_arrived_ = 0;
  uint64_t last_arrival_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_LOCAL_ROWS_H_
