// SPDX-License-Identifier: Apache-2.0
// A batch is encoded and stored 1024 rows at a time: words go to the chunk's word arrays and fields to its tuples, both
// in the order of arrival. OR-ing and AND-ing the words while they are in the cache finds which of their bits vary. A
// chunk has 131,072 rows. The first one begins with 32, or as many as the batch that comes, and is copied as it grows,
// so that a sort of ten rows takes 256 bytes a word.
//
// A block becomes part of its chunk when nothing more can fail: until then its words, tuples and ids lie behind the
// chunk's rows, and a block that is refused memory is encoded again when it comes again. What is known of all rows
// (which bits vary, which keys are incomplete) may then include it, which costs time, but no row.
//
// local_rows_dictionary.cc describes what is stored of a row beside its words, and when nothing is; sort_top.cc, how
// few rows are kept under a limit.
#include "runtime/sort/local_rows.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/blocks/encode.h"
#include "runtime/rows/row_order.h"
#include "runtime/sort/local_rows_batch.h"

namespace quern {
namespace {

constexpr uint32_t kFirstRows = 32;

}  // namespace

bool SortContext::uses_row_ids() const {
  const auto is_row_id = [](const SortColumn& column) { return column.source == SortColumn::Source::kRowId; };
  return descriptor->spec().stable ||
         std::any_of(descriptor->columns().begin(), descriptor->columns().end(), is_row_id);
}

LocalRows::LocalRows(SortContext context)
    : LocalState(context.counters),
      context_(std::move(context)),
      memory_(std::make_shared<Memory>(context_.budget, context_.options.huge_pages)),
      bits_(context_.descriptor->get()->num_words) {
  const QuernRowLayout& rows = context_.descriptor->get()->rows;
  const auto is_variable = [](const QuernField& field) { return IsVariable(field.storage); };
  keeps_owners_ = !context_.keeps_top() && std::any_of(rows.fields, rows.fields + rows.num_fields, is_variable);
  FindDictionaryWords();
  may_drop_tuples_ = !context_.keeps_top() && context_.descriptor->may_drop_tuples();
  for (const SortFieldSource& field : context_.descriptor->fields())
    if (may_drop_tuples_ && blocks::IsFloatStorage(context_.descriptor->get()->keys[field.index].storage))
      float_fields_ |= 1u << field.index;
  if (context_.keeps_top() || context_.descriptor->method() != SortMethod::kRadix ||
      context_.options.dictionary_rows == 0)
    return;
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  for (uint32_t k = 0; k < descriptor.num_keys; ++k)
    if (IsVariable(descriptor.keys[k].storage)) key_codes_.push_back({k, nullptr});
}

LocalRows::~LocalRows() = default;

absl::Status LocalRows::Append(const BatchView& batch, RowKind /*kind*/, uint64_t first_row_id) {
  std::vector<QuernColumn> fields;
  for (const SortFieldSource& source : context_.descriptor->fields())
    fields.push_back(source.is_key ? batch.keys[source.index] : batch.payload[source.index]);
  const bool keeps_owner = keeps_owners_ && batch.owner != nullptr;
  if (keeps_owner) owners_.push_back(batch.owner);
  const absl::Status status = WithoutBadAlloc([&] { return AppendBlocks(batch, fields, first_row_id); });
  if (!status.ok() && taken_rows_ == 0 && keeps_owner) owners_.pop_back();
  num_input_rows_ += taken_rows_;
  return status;
}

absl::Status LocalRows::Add(const BatchView& batch, uint64_t first_row_id, uint64_t* taken_rows) {
  taken_rows_ = 0;
  const absl::Status status = Append(batch, RowKind::kInput, first_row_id);
  *taken_rows = status.ok() ? batch.num_rows : taken_rows_;
  return status;
}

QUERN_INLINE absl::Status LocalRows::AppendBlocks(const BatchView& batch, const std::vector<QuernColumn>& fields,
                                                  uint64_t first_row_id) {
  QUERN_RETURN_IF_ERROR(RepairWords());
  const uint32_t batch_rows = context_.descriptor->get()->batch_rows;
  const RefusedCalls refused;
  while (taken_rows_ < batch.num_rows) {
    const uint64_t row = taken_rows_;
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(batch_rows, batch.num_rows - row));
    const uint32_t* const rows = batch.selection == nullptr ? nullptr : batch.selection + row;
    const Block block = {&batch,       &fields, rows == nullptr ? row : 0, rows, n, batch.num_rows - row,
                         first_row_id, &refused};
    context_.entry_points.ForBatch(n, &counters_);
    QUERN_RETURN_IF_ERROR(context_.keeps_top() ? AppendTop(block) : AppendRows(block, &taken_rows_));
  }
  return absl::OkStatus();
}

// num_done: counts the rows that have become part of chunks.
absl::Status LocalRows::AppendRows(const Block& block, uint64_t* num_done) {
  for (uint32_t done = 0; done < block.n;) {
    QUERN_ASSIGN_OR_RETURN(SortChunk * chunk, ChunkFor(block.num_left - done));
    Block piece = block;
    piece.n = std::min(block.n - done, chunk->capacity - chunk->num_rows);
    if (block.rows != nullptr) piece.rows = block.rows + done;
    else piece.first = block.first + done;
    QUERN_RETURN_IF_ERROR(AppendToChunk(piece));
    done += piece.n;
    *num_done += piece.n;
  }
  return absl::OkStatus();
}

absl::Status LocalRows::AppendToChunk(const Block& block) {
  SortChunk& chunk = chunks_.back();
  QUERN_RETURN_IF_ERROR(FillChunk(block, &chunk));
  chunk.num_rows += block.n;
  num_rows_ += block.n;
  if (!key_codes_.empty()) {
    const absl::Status status = WithoutBadAlloc([&] { return CodeRows(block, &chunk); });
    if (!status.ok()) {
      chunk.num_rows -= block.n;
      num_rows_ -= block.n;
      return status;
    }
  }
  if (context_.uses_row_ids()) TakeRowIds(block);
  return absl::OkStatus();
}

// Writes the block behind the chunk's rows.
QUERN_INLINE absl::Status LocalRows::FillChunk(const Block& block, SortChunk* to) {
  SortChunk& chunk = *to;
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const QuernSortEntryPoints& kernel = context_.entry_points.Now();
  uint64_t* words[kMaxSortWords];
  for (uint32_t w = 0; w < descriptor.num_words; ++w) {
    words[w] = chunk.words + uint64_t{w} * chunk.capacity + chunk.num_rows;
    if (skipped_keys_ != 0 && is_zeroed_[w]) std::fill_n(words[w], block.n, uint64_t{0});
  }
  uint32_t incomplete = skipped_keys_ << kSkipKeyShift;
  kernel.encode(&descriptor, block.batch->keys.data(), block.first, block.rows, block.n, words, &incomplete);
  QUERN_RETURN_IF_ERROR(block.refused->status());
  incomplete_ |= incomplete & ((1u << kSkipKeyShift) - 1);
  for (uint32_t w = 0; w < descriptor.num_words; ++w) {
    if (!is_written_[w]) continue;
    WordBits64 bits = bits_[w];
    for (uint32_t i = 0; i < block.n; ++i) {
      bits.any |= words[w][i];
      bits.all &= words[w][i];
    }
    bits_[w] = bits;
  }
  if (context_.descriptor->has_tuples()) {
    FindOddFloats(block);
    if (chunk.tuples == nullptr && NeedsTuples()) QUERN_RETURN_IF_ERROR(RestoreTuples());
    if (chunk.tuples != nullptr) StoreTuples(block, chunk.num_rows, chunk);
    if (context_.keeps_top())
      QUERN_RETURN_IF_ERROR(
          CopyStrings(chunk.tuples + uint64_t{chunk.num_rows} * descriptor.rows.tuple_bytes, block.n));
  }
  return context_.uses_row_ids() ? WriteRowIds(block, &chunk) : absl::OkStatus();
}

void LocalRows::StoreTuples(const Block& block, uint32_t at, const SortChunk& chunk) const {
  const QuernRowLayout& rows = context_.descriptor->get()->rows;
  uint8_t* const tuples = chunk.tuples + uint64_t{at} * rows.tuple_bytes;
  context_.entry_points.Now().store(&rows, block.fields->data(), block.first, block.rows, block.n, block.first_row_id,
                                    tuples);
}

// ---- row ids --------------------------------------------------------------------------------------------------------

// Whether the block's row ids are consecutive, and continue those of the chunk's current 1024 rows.
bool LocalRows::FollowsInBlocks(const SortChunk& chunk, const Block& block) {
  if (block.RowId(block.n - 1) - block.RowId(0) != block.n - 1 || (block.rows != nullptr && block.n > 1)) return false;
  const bool begins = chunk.num_rows % (1u << SortChunk::kIdShift) == 0;
  return begins || chunk.RowId(chunk.num_rows - 1) + 1 == block.RowId(0);
}

// Row ids are stored one by one only where they are not consecutive. Those of blocks of 1024 rows that an earlier call
// has written for a block that was then refused memory are written again.
absl::Status LocalRows::WriteRowIds(const Block& block, SortChunk* chunk) {
  if (chunk->row_ids == nullptr && FollowsInBlocks(*chunk, block)) {
    constexpr uint32_t kBlock = 1u << SortChunk::kIdShift;
    uint32_t at = (chunk->num_rows + kBlock - 1) / kBlock * kBlock;
    chunk->block_ids.resize(at / kBlock);
    for (; at < chunk->num_rows + block.n; at += kBlock)
      chunk->block_ids.push_back(block.RowId(0) + (at - chunk->num_rows));
    return absl::OkStatus();
  }
  if (chunk->row_ids == nullptr) QUERN_RETURN_IF_ERROR(MakeRowIds(chunk));
  for (uint32_t i = 0; i < block.n; ++i) chunk->row_ids[chunk->num_rows + i] = block.RowId(i);
  return absl::OkStatus();
}

// What is known of all row ids, from now on with those of a block that has become part of its chunk.
void LocalRows::TakeRowIds(const Block& block) {
  if (num_rows_ == block.n) first_row_id_ = block.RowId(0);
  else row_ids_grow_ &= block.RowId(0) > last_row_id_;
  if (row_ids_grow_ && block.rows != nullptr) row_ids_grow_ = Ascend(block.rows, block.n);
  last_row_id_ = block.RowId(block.n - 1);
}

// ---- chunks ---------------------------------------------------------------------------------------------------------

void LocalRows::SetMemory(uint8_t* memory, uint32_t capacity, bool has_tuples, SortChunk* chunk) const {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  chunk->capacity = capacity;
  chunk->words = reinterpret_cast<uint64_t*>(memory);
  chunk->tuples = !has_tuples || descriptor.rows.tuple_bytes == 0
                      ? nullptr
                      : memory + uint64_t{capacity} * descriptor.num_words * 8;
}

// Moves the first chunk to memory with room for more rows.
absl::Status LocalRows::GrowFirst(uint32_t capacity) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  SortChunk& chunk = chunks_.front();
  SortChunk grown = chunk;
  const bool has_tuples = chunk.capacity == 0 ? NeedsTuples() : chunk.tuples != nullptr;
  QUERN_ASSIGN_OR_RETURN(HugeBuffer memory, HugeBuffer::Allocate(context_.budget, capacity * RowBytes(has_tuples),
                                                                 context_.options.huge_pages, Contents::kAnything));
  SetMemory(memory.data(), capacity, has_tuples, &grown);
  const uint64_t n = chunk.num_rows;
  for (uint32_t w = 0; w < descriptor.num_words && n != 0; ++w)
    std::memcpy(grown.words + uint64_t{w} * capacity, chunk.words + uint64_t{w} * chunk.capacity, n * 8);
  if (grown.tuples != nullptr && n != 0) std::memcpy(grown.tuples, chunk.tuples, n * descriptor.rows.tuple_bytes);
  if (chunk.row_ids != nullptr) {
    QUERN_ASSIGN_OR_RETURN(HugeBuffer ids,
                           HugeBuffer::Allocate(context_.budget, uint64_t{capacity} * 8, false, Contents::kAnything));
    grown.row_ids = reinterpret_cast<uint64_t*>(ids.data());
    std::memcpy(grown.row_ids, chunk.row_ids, n * 8);
    memory_->first_row_ids = std::move(ids);
  }
  memory_->first = std::move(memory);
  chunk = std::move(grown);
  return absl::OkStatus();
}

// The chunk for the next n rows, with room for at least one of them; the first chunk gets room for all, if a chunk has
// it.
absl::StatusOr<SortChunk*> LocalRows::ChunkFor(uint64_t n) {
  if (chunks_.empty()) chunks_.emplace_back();
  SortChunk* chunk = &chunks_.back();
  if (chunk->num_rows < chunk->capacity) return chunk;
  if (chunk->capacity < kChunkRows) {
    uint64_t capacity = std::max(chunk->capacity * 4, kFirstRows);
    while (capacity < chunk->num_rows + n && capacity < kChunkRows) capacity *= 4;
    QUERN_RETURN_IF_ERROR(GrowFirst(static_cast<uint32_t>(std::min<uint64_t>(capacity, kChunkRows))));
    return chunk;
  }
  const bool has_tuples = NeedsTuples();
  chunk = &chunks_.emplace_back();
  const absl::Status status = WithoutBadAlloc([&]() -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(uint8_t* memory, memory_->chunks.Allocate(kChunkRows * RowBytes(has_tuples)));
    SetMemory(memory, kChunkRows, has_tuples, chunk);
    return absl::OkStatus();
  });
  if (!status.ok()) return chunks_.pop_back(), status;
  return chunk;
}

void LocalRows::FreeBefore(size_t chunk) {
  if (chunk == 0) return;
  memory_->first.Free();
  memory_->first_row_ids.Free();
  memory_->chunks.FreeBefore(reinterpret_cast<const uint8_t*>(chunks_[chunk].words));
}

void LocalRows::Clear() {
  for (SortChunk& chunk : chunks_) {
    chunk.num_rows = 0;
    chunk.block_ids.clear();
  }
  num_rows_ = 0;
  row_ids_grow_ = true;
}

uint64_t LocalRows::RowBytes(bool has_tuples) const {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  return uint64_t{descriptor.num_words} * 8 + (has_tuples ? descriptor.rows.tuple_bytes : 0);
}

absl::Status LocalRows::MakeRowIds(SortChunk* chunk) {
  const uint64_t bytes = uint64_t{chunk->capacity} * 8;
  uint64_t* ids = nullptr;
  if (chunk == &chunks_.front()) {
    QUERN_ASSIGN_OR_RETURN(memory_->first_row_ids,
                           HugeBuffer::Allocate(context_.budget, bytes, false, Contents::kAnything));
    ids = reinterpret_cast<uint64_t*>(memory_->first_row_ids.data());
  } else {
    QUERN_ASSIGN_OR_RETURN(uint8_t* memory, memory_->chunks.Allocate(bytes));
    ids = reinterpret_cast<uint64_t*>(memory);
  }
  for (uint32_t i = 0; i < chunk->num_rows; ++i) ids[i] = chunk->RowId(i);
  chunk->row_ids = ids;
  return absl::OkStatus();
}

void LocalRows::AddTo(SortInput* input) const {
  input->bits.resize(bits_.size());
  for (size_t w = 0; w < bits_.size(); ++w) {
    input->bits[w].any |= bits_[w].any;
    input->bits[w].all &= bits_[w].all;
  }
  input->incomplete |= incomplete_;
  const bool follows = input->chunks.empty() || num_rows_ == 0 || input->last_row_id < first_row_id_;
  input->rows_in_order = input->rows_in_order && row_ids_grow_ && follows;
  if (num_rows_ != 0) input->last_row_id = last_row_id_;
  for (const SortChunk& chunk : chunks_) {
    if (chunk.num_rows == 0) continue;
    input->chunks.push_back(&chunk);
    input->locals.push_back(input->num_local_states);
  }
  if (num_rows_ == 0) return;
  input->needs_tuples |= NeedsTuples();
  ++input->num_local_states;
  for (const KeyDictionary& key : key_codes_) {
    if (key.codes == nullptr) continue;
    const auto has_key = [&](const DictionaryKey& coded) { return coded.key == key.key; };
    auto coded = std::find_if(input->coded.begin(), input->coded.end(), has_key);
    if (coded == input->coded.end()) coded = input->coded.insert(coded, {key.key, {}});
    coded->codes.push_back(key.codes.get());
  }
}

}  // namespace quern
