// SPDX-License-Identifier: Apache-2.0
// A batch is encoded and stored 1024 rows at a time: words to the chunk's word arrays, fields to its tuples, both in the order of arrival.
// Which bits of each word vary is known by or-ing and and-ing them while they are in the cache. A chunk has 131,072 rows; the first one
// begins with 1,024 and is copied as it grows, so that a sort of a hundred rows takes 8 KiB a word.
//
// Under a limit of 100, a side keeps up to 1,224 rows. When they are there, it sorts them, keeps the first 100, and remembers the words of
// the last of these, the bound: a row that comes after it can never come out. From then on a batch is encoded by word 0 alone ("lead"), and
// looked at again only where that word is not above the bound's; of 10 million random rows about a thousand are. Sides tell each other
// their bounds. (Top-N with a threshold that is pushed down: as DuckDB and DataFusion do.)
#include "runtime/sort_side.h"

#include <algorithm>
#include <cstring>

#include "runtime/blocks.h"
#include "runtime/encode.h"
#include "runtime/sorted_rows.h"
#include "runtime/status.h"
#include "runtime/storage_dispatch.h"

namespace quern {
namespace {

constexpr uint32_t kFirstRows = 1024;
constexpr uint64_t kRowsBesideLimit = 1024;

// The steps that words decide, before the first tail.
std::vector<SortStep> WordSteps(const QuernSortShape& shape, uint32_t incomplete) {
  std::vector<SortStep> steps = StepsOf(shape, incomplete);
  steps.erase(std::find_if(steps.begin(), steps.end(), [](const SortStep& step) { return step.is_tail(); }), steps.end());
  return steps;
}

// As far as words say it.
int CompareWords(const std::vector<SortStep>& steps, const uint64_t* a, uint64_t stride, const std::vector<uint64_t>& b) {
  for (const SortStep& step : steps) {
    const uint64_t x = a[step.word * stride] & step.mask, y = b[step.word] & step.mask;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

int CompareBounds(const QuernSortShape& shape, const SortBound& a, const SortBound& b) {
  return CompareWords(WordSteps(shape, a.incomplete | b.incomplete), a.words.data(), 1, b.words);
}

// Adds the numbers of those of 64 leads from `first` on that are not above `most`.
inline uint32_t PickSome(const uint64_t* leads, uint32_t first, uint32_t n, uint64_t most, uint32_t* picked) {
  uint32_t num_picked = 0;
  for (uint32_t i = first; i < first + n; ++i) {
    picked[num_picked] = i;
    num_picked += leads[i] <= most ? 1 : 0;
  }
  return num_picked;
}

// The numbers of those of n leads that are not above `most`. 64 at a time, where none is.
uint32_t PickLeads(const uint64_t* leads, uint32_t n, uint64_t most, uint32_t* picked) {
  uint32_t num_picked = 0;
  for (uint32_t i = 0; i < n; i += 64) {
    const uint32_t some = std::min(n - i, 64u);
    uint64_t lowest = ~uint64_t{0};
    for (uint32_t j = 0; j < some; ++j) lowest = std::min(lowest, leads[i + j]);
    if (lowest <= most) num_picked += PickSome(leads, i, some, most, picked + num_picked);
  }
  return num_picked;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl"))) uint32_t PickLeadsAvx512(const uint64_t* leads, uint32_t n, uint64_t most,
                                                                              uint32_t* picked) {
  typedef uint64_t U64x8 __attribute__((vector_size(64)));
  uint32_t num_picked = 0, i = 0;
  for (; i + 64 <= n; i += 64) {
    U64x8 lowest, next;
    std::memcpy(&lowest, leads + i, sizeof(lowest));
    for (uint32_t j = 8; j < 64; j += 8) {
      std::memcpy(&next, leads + i + j, sizeof(next));
      lowest = next < lowest ? next : lowest;
    }
    uint64_t least = lowest[0];
    for (uint32_t j = 1; j < 8; ++j) least = lowest[j] < least ? lowest[j] : least;
    if (least <= most) num_picked += PickSome(leads, i, 64, most, picked + num_picked);
  }
  return num_picked + PickSome(leads, i, n - i, most, picked + num_picked);
}
#endif

}  // namespace

void SortThreshold::Lower(std::shared_ptr<const SortBound> bound) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bound_ == nullptr || CompareBounds(*shape_->get(), *bound, *bound_) < 0) bound_ = std::move(bound);
}

std::shared_ptr<const SortBound> SortThreshold::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bound_;
}

bool SortContext::uses_row_ids() const {
  const auto is_row_id = [](const SortColumn& column) { return column.source == SortColumn::Source::kRowId; };
  return shape->spec().stable || std::any_of(shape->columns().begin(), shape->columns().end(), is_row_id);
}

// What chunks point to.
struct SortSide::Memory {
  Memory(const std::shared_ptr<MemoryBudget>& budget, bool huge_pages) : chunks(budget, huge_pages), strings(budget, false) {}
  HugeBuffer first;  // the first chunk, as long as it grows
  Arena chunks;
  HugeBuffer first_row_ids;
  Arena strings;  // copied bytes of strings, under a limit
};

// Up to batch_rows rows of a batch.
struct SortSide::Block {
  const BatchView* batch;
  const std::vector<QuernColumn>* fields;
  uint64_t first;        // the block's rows are rows[i], or first + i
  const uint32_t* rows;  // null: they follow each other
  uint32_t n;
  uint64_t first_row_id;  // of the batch's row 0
  uint64_t RowId(uint32_t i) const { return first_row_id + (rows != nullptr ? rows[i] : first + i); }
};

namespace {

// Whether codes pay is seen from a sample of so many rows.
constexpr uint32_t kSampleRows = 4096;

// The bits of word 0 from the first one on that `lead` leaves out.
uint64_t UndecidedByLead(const QuernSortShape& shape) {
  for (uint32_t p = 0; p < shape.num_parts && shape.parts[p].word == 0; ++p) {
    const QuernSortPart& part = shape.parts[p];
    if (IsLeftOutOfLead(&shape, &part)) return ~uint64_t{0} >> (64 - part.shift - part.bits);
  }
  return 0;
}

template <class Visit>
void ForBytesParts(const QuernSortShape& shape, const QuernSortKey& key, Visit visit) {
  for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
    const QuernSortPart& part = shape.parts[p];
    if (part.kind == kBytesPart) visit(part, SortPartMask(&part));
  }
}

}  // namespace

SortSide::SortSide(SortContext context)
    : context_(std::move(context)),
      counters_(context_.counters),
      memory_(std::make_shared<Memory>(context_.budget, context_.options.huge_pages)),
      bits_(context_.shape->get()->num_words) {
  const QuernJoinShape& rows = context_.shape->get()->rows;
  const auto is_variable = [](const QuernField& field) { return IsVariable(field.storage); };
  keeps_owners_ = !context_.keeps_top() && (std::any_of(rows.build, rows.build + rows.num_build, is_variable) ||
                                            std::any_of(rows.build_residual, rows.build_residual + rows.num_residual, is_variable));
  FindCodedWords();
  if (context_.keeps_top() || context_.shape->method() != SortMethod::kRadix || context_.options.code_rows == 0) return;
  const QuernSortShape& shape = *context_.shape->get();
  for (uint32_t k = 0; k < shape.num_keys; ++k)
    if (IsVariable(shape.keys[k].storage)) key_codes_.push_back({k, nullptr});
}

SortSide::~SortSide() = default;

absl::Status SortSide::Append(const BatchView& batch, uint64_t first_row_id) {
  std::vector<QuernColumn> fields;
  for (const SortFieldSource& source : context_.shape->fields())
    fields.push_back(source.is_key ? batch.keys[source.index] : batch.payload[source.index]);
  if (keeps_owners_ && batch.owner != nullptr) owners_.push_back(batch.owner);
  const uint32_t batch_rows = context_.shape->get()->batch_rows;
  for (uint64_t row = 0; row < batch.num_rows; row += batch_rows) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(batch_rows, batch.num_rows - row));
    const uint32_t* const rows = batch.selection == nullptr ? nullptr : batch.selection + row;
    const Block block = {&batch, &fields, rows == nullptr ? row : 0, rows, n, first_row_id};
    context_.entry_points.ForBatch(n, &counters_);
    QUERN_RETURN_IF_ERROR(context_.keeps_top() ? AppendTop(block) : AppendRows(block));
  }
  num_input_rows_ += batch.num_rows;
  return absl::OkStatus();
}

absl::Status SortSide::AppendRows(const Block& block) {
  for (uint32_t done = 0; done < block.n;) {
    QUERN_ASSIGN_OR_RETURN(SortChunk * chunk, ChunkFor(block.n - done));
    Block piece = block;
    piece.n = std::min(block.n - done, chunk->capacity - chunk->num_rows);
    if (block.rows != nullptr) piece.rows = block.rows + done;
    else piece.first = block.first + done;
    QUERN_RETURN_IF_ERROR(AppendToChunk(piece));
    done += piece.n;
  }
  return absl::OkStatus();
}

absl::Status SortSide::AppendToChunk(const Block& block) {
  SortChunk& chunk = chunks_.back();
  const QuernSortShape& shape = *context_.shape->get();
  const QuernSortEntryPoints& kernel = context_.entry_points.Now();
  uint64_t* words[kMaxSortWords];
  for (uint32_t w = 0; w < shape.num_words; ++w) words[w] = chunk.words + uint64_t{w} * chunk.capacity + chunk.num_rows;
  uint32_t incomplete = skipped_keys_ << kSkipKeyShift;
  kernel.encode(&shape, block.batch->keys.data(), block.first, block.rows, block.n, words, &incomplete);
  incomplete_ |= incomplete & ((1u << kSkipKeyShift) - 1);
  for (uint32_t w = 0; w < shape.num_words; ++w) {
    if (!is_written_[w]) continue;
    WordBits64 bits = bits_[w];
    for (uint32_t i = 0; i < block.n; ++i) {
      bits.any |= words[w][i];
      bits.all &= words[w][i];
    }
    bits_[w] = bits;
  }
  if (context_.shape->has_tuples()) {
    uint8_t* const tuples = chunk.tuples + uint64_t{chunk.num_rows} * shape.rows.tuple_bytes;
    kernel.store(&shape.rows, block.fields->data(), block.first, block.rows, block.n, block.first_row_id, tuples);
    if (context_.keeps_top()) QUERN_RETURN_IF_ERROR(CopyStrings(tuples, block.n));
  }
  if (context_.uses_row_ids()) QUERN_RETURN_IF_ERROR(AddRowIds(block, &chunk));
  chunk.num_rows += block.n;
  num_rows_ += block.n;
  return CodeRows(block, &chunk);
}

// ---- codes -------------------------------------------------------------------------------------------------------------

// The strings of a key in a chunk's tuples; those of nulls have no address.
void SortSide::ReadStrings(const SortChunk& chunk, uint32_t key, uint32_t begin, uint32_t n, blocks::Bytes* strings) const {
  const QuernSortShape& shape = *context_.shape->get();
  for (uint32_t i = 0; i < n; ++i)
    strings[i] = SortBytes(shape, shape.keys[key], chunk.tuples + uint64_t{begin + i} * shape.rows.tuple_bytes);
}

// The same from the batch that they came in: without the branch on its length that a string in a tuple costs.
void SortSide::ReadStrings(const Block& block, uint32_t key, blocks::Bytes* strings) const {
  const QuernSortKey& sort_key = context_.shape->get()->keys[key];
  const QuernColumn* column = &block.batch->keys[key];
  uint32_t translated[kMaxBatchRows];
  uint64_t first = block.first;
  const uint32_t* rows = block.rows;
  if (sort_key.index_storage != kNoStorage) {
    TranslateRows(sort_key.index_storage, column, first, rows, block.n, translated);
    column = column->dictionary;
    rows = translated;
  }
  DispatchStorage(sort_key.storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (blocks::IsVariableStorage(kStorage)) {
      const QuernColumn c = *column;
      for (uint32_t i = 0; i < block.n; ++i) {
        const uint32_t row = blocks::RowAt(rows, first, i);
        const bool is_null = sort_key.nullable && !blocks::IsValid(&c, row);
        strings[i] = is_null ? blocks::Bytes{nullptr, 0} : blocks::ReadBytes<kStorage>(&c, row, sort_key.rule, 0);
      }
    }
  });
}

absl::Status SortSide::CodeRows(const Block& block, SortChunk* chunk) {
  blocks::Bytes strings[kMaxBatchRows];
  for (KeyCodes& key : key_codes_) {
    if (key.codes == nullptr && (!key.may_try || num_rows_ < context_.options.code_rows)) continue;
    if (key.codes == nullptr) {
      QUERN_RETURN_IF_ERROR(TryCodes(&key));
      continue;
    }
    ReadStrings(block, key.key, strings);
    QUERN_ASSIGN_OR_RETURN(const bool coded, CodeSome(&key, strings, chunk, chunk->num_rows - block.n, block.n));
    if (!coded) Uncode(key.key);
  }
  return absl::OkStatus();
}

// Words that hold nothing but skipped bytes are never touched, nor are their pages.
void SortSide::FindCodedWords() {
  const QuernSortShape& shape = *context_.shape->get();
  skipped_keys_ = 0;
  for (const KeyCodes& key : key_codes_) skipped_keys_ |= key.codes == nullptr ? 0 : 1u << key.key;
  is_written_.assign(shape.num_words, false);
  for (uint32_t p = 0; p < shape.num_parts; ++p) {
    const QuernSortPart& part = shape.parts[p];
    const bool is_skipped = part.kind == kBytesPart && (skipped_keys_ >> part.key & 1) != 0;
    if (!is_skipped) is_written_[part.word] = true;
  }
}

// Takes up codes where a sample of the rows so far has duplicates enough to expect few strings, and there are few.
absl::Status SortSide::TryCodes(KeyCodes* key) {
  key->may_try = false;
  SortChunk& chunk = chunks_.front();
  blocks::Bytes strings[kMaxBatchRows];
  uint32_t codes[kMaxBatchRows];
  const uint8_t* copies[kMaxBatchRows];
  StringCodes sample(context_.budget);
  const uint32_t num_sampled = std::min(kSampleRows, chunk.num_rows), step = chunk.num_rows / num_sampled;
  for (uint32_t i = 0; i < num_sampled; ++i) ReadStrings(chunk, key->key, i * step, 1, strings + i);
  QUERN_RETURN_IF_ERROR(sample.Add(strings, num_sampled, codes, copies).status());
  if (sample.size() > num_sampled - num_sampled / 32) return absl::OkStatus();
  key->codes = std::make_unique<StringCodes>(context_.budget);
  // Nulls have code 0: the empty string's, whose rank is the same in all sides.
  const blocks::Bytes empty = {nullptr, 0};
  QUERN_RETURN_IF_ERROR(key->codes->Add(&empty, 1, codes, copies).status());
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += kMaxBatchRows) {
    const uint32_t n = std::min(kMaxBatchRows, chunk.num_rows - begin);
    ReadStrings(chunk, key->key, begin, n, strings);
    QUERN_ASSIGN_OR_RETURN(const bool few, key->codes->Add(strings, n, codes, copies));
    if (few && key->codes->size() <= chunk.num_rows / 2) continue;
    key->codes.reset();
    return absl::OkStatus();
  }
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += kMaxBatchRows) {
    const uint32_t n = std::min(kMaxBatchRows, chunk.num_rows - begin);
    ForBytesParts(*context_.shape->get(), context_.shape->get()->keys[key->key], [&](const QuernSortPart& part, uint64_t mask) {
      uint64_t* const words = chunk.words + uint64_t{part.word} * chunk.capacity + begin;
      for (uint32_t i = 0; i < n; ++i) words[i] &= ~mask;
    });
    ReadStrings(chunk, key->key, begin, n, strings);
    QUERN_RETURN_IF_ERROR(CodeSome(key, strings, &chunk, begin, n).status());
  }
  FindCodedWords();
  return absl::OkStatus();
}

// Puts codes into the words of n rows, in which the key's bits are zero; answers false, and leaves them as they are, where there are too
// many strings.
absl::StatusOr<bool> SortSide::CodeSome(KeyCodes* key, const blocks::Bytes* strings, SortChunk* chunk, uint32_t begin, uint32_t n) {
  const QuernSortShape& shape = *context_.shape->get();
  uint32_t codes[kMaxBatchRows];
  const uint8_t* copies[kMaxBatchRows];
  QUERN_ASSIGN_OR_RETURN(const bool few, key->codes->Add(strings, n, codes, copies));
  if (!few) return false;
  PointToCopies(shape.keys[key->key], strings, copies, n, chunk->tuples + uint64_t{begin} * shape.rows.tuple_bytes);
  for (uint32_t i = 0; i < n; ++i)
    if (strings[i].data == nullptr) codes[i] = 0;  // its null bit decides
  const QuernSortPart& part = *FirstBytesPart(&shape, &shape.keys[key->key]);
  uint64_t* const words = chunk->words + uint64_t{part.word} * chunk->capacity + begin;
  for (uint32_t i = 0; i < n; ++i) words[i] |= uint64_t{codes[i]} << part.shift;
  return true;
}

// Tuples take the copy of a string's bytes in place of the bytes that came: the copies of few strings are in the cache when rows come out.
// What trimming has cut off is not in the copy.
void SortSide::PointToCopies(const QuernSortKey& key, const blocks::Bytes* strings, const uint8_t* const* copies, uint32_t n,
                             uint8_t* tuples) const {
  const QuernSortShape& shape = *context_.shape->get();
  const uint32_t offset = SortFieldOf(&shape, &key)->tuple_offset;
  for (uint32_t i = 0; i < n; ++i) {
    uint8_t* const field = tuples + uint64_t{i} * shape.rows.tuple_bytes + offset;
    const bool is_copied = strings[i].length > kInlineStringBytes && blocks::Load<uint32_t>(field) == strings[i].length;
    const auto address = reinterpret_cast<uintptr_t>(copies[i]);
    blocks::Store(field + 8, is_copied ? address : blocks::Load<uintptr_t>(field + 8));
  }
}

bool SortSide::IsCoded(uint32_t key) const {
  return std::any_of(key_codes_.begin(), key_codes_.end(),
                     [&](const KeyCodes& codes) { return codes.key == key && codes.codes != nullptr; });
}

void SortSide::Uncode(uint32_t key) {
  for (KeyCodes& codes : key_codes_)
    if (codes.key == key && codes.codes != nullptr) old_codes_.push_back(std::move(codes.codes));  // tuples point to copies
  FindCodedWords();
  for (SortChunk& chunk : chunks_)
    for (uint32_t begin = 0; begin < chunk.num_rows; begin += blocks::kPrefixRows)
      WriteBytes(key, begin, std::min(blocks::kPrefixRows, chunk.num_rows - begin), &chunk);
}

// Puts the first bytes of a key's strings, which tuples have, into the words of n rows, up to kPrefixRows.
void SortSide::WriteBytes(uint32_t key, uint32_t begin, uint32_t n, SortChunk* chunk) {
  const QuernSortShape& shape = *context_.shape->get();
  const QuernSortKey& sort_key = shape.keys[key];
  const uint64_t turned = sort_key.descending ? ~uint64_t{0} : 0;
  blocks::Bytes strings[blocks::kPrefixRows] = {};
  uint64_t high[blocks::kPrefixRows], low[blocks::kPrefixRows];
  ReadStrings(*chunk, key, begin, n, strings);
  incomplete_ |= blocks::OrderPrefixes(strings, n, sort_key.rule, high, low) ? 1u << key : 0;
  for (uint32_t i = 0; i < n; ++i) {
    const bool is_null = strings[i].data == nullptr;
    high[i] = is_null ? 0 : high[i] ^ turned;
    low[i] = is_null ? 0 : low[i] ^ turned;
  }
  ForBytesParts(shape, sort_key, [&](const QuernSortPart& part, uint64_t mask) {
    uint64_t* const words = chunk->words + uint64_t{part.word} * chunk->capacity + begin;
    for (uint32_t i = 0; i < n; ++i) words[i] &= ~mask;
    QuernSortPart others = part;
    others.begins_word = false;
    blocks::WriteBytesPart(others, high, low, n, words);
    for (uint32_t i = 0; i < n; ++i) {
      bits_[part.word].any |= words[i];
      bits_[part.word].all &= words[i];
    }
  });
}

// Whether the block's row ids follow each other, and those of the 1024 rows that it goes on with.
bool SortSide::FollowsInBlocks(const SortChunk& chunk, const Block& block) {
  if (block.RowId(block.n - 1) - block.RowId(0) != block.n - 1 || (block.rows != nullptr && block.n > 1)) return false;
  const bool begins = chunk.num_rows % (1u << SortChunk::kIdShift) == 0;
  return begins || chunk.RowId(chunk.num_rows - 1) + 1 == block.RowId(0);
}

// Row ids are kept one by one only where they do not follow each other.
absl::Status SortSide::AddRowIds(const Block& block, SortChunk* chunk) {
  const uint64_t first = block.RowId(0), last = block.RowId(block.n - 1);
  if (num_rows_ == 0) first_row_id_ = first;
  else row_ids_grow_ &= first > last_row_id_;
  for (uint32_t i = 1; i < block.n && block.rows != nullptr; ++i) row_ids_grow_ &= block.rows[i] > block.rows[i - 1];
  last_row_id_ = last;
  if (chunk->row_ids == nullptr && FollowsInBlocks(*chunk, block)) {
    constexpr uint32_t kBlock = 1u << SortChunk::kIdShift;
    uint32_t at = (chunk->num_rows + kBlock - 1) / kBlock * kBlock;
    for (; at < chunk->num_rows + block.n; at += kBlock) chunk->block_ids[at / kBlock] = first + (at - chunk->num_rows);
    return absl::OkStatus();
  }
  if (chunk->row_ids == nullptr) QUERN_RETURN_IF_ERROR(MakeRowIds(chunk));
  for (uint32_t i = 0; i < block.n; ++i) chunk->row_ids[chunk->num_rows + i] = block.RowId(i);
  return absl::OkStatus();
}

// ---- chunks ----------------------------------------------------------------------------------------------------------

void SortSide::SetMemory(uint8_t* memory, uint32_t capacity, SortChunk* chunk) const {
  const QuernSortShape& shape = *context_.shape->get();
  chunk->capacity = capacity;
  chunk->words = reinterpret_cast<uint64_t*>(memory);
  chunk->tuples = shape.rows.tuple_bytes == 0 ? nullptr : memory + uint64_t{capacity} * shape.num_words * 8;
}

// Moves the first chunk to memory for more rows.
absl::Status SortSide::GrowFirst(uint32_t capacity) {
  const QuernSortShape& shape = *context_.shape->get();
  SortChunk& chunk = chunks_.front();
  SortChunk grown = chunk;
  QUERN_ASSIGN_OR_RETURN(HugeBuffer memory, HugeBuffer::Allocate(context_.budget, capacity * RowBytes(), false));
  SetMemory(memory.data(), capacity, &grown);
  const uint64_t n = chunk.num_rows;
  for (uint32_t w = 0; w < shape.num_words && n != 0; ++w)
    std::memcpy(grown.words + uint64_t{w} * capacity, chunk.words + uint64_t{w} * chunk.capacity, n * 8);
  if (grown.tuples != nullptr && n != 0) std::memcpy(grown.tuples, chunk.tuples, n * shape.rows.tuple_bytes);
  if (chunk.row_ids != nullptr) {
    QUERN_ASSIGN_OR_RETURN(HugeBuffer ids, HugeBuffer::Allocate(context_.budget, uint64_t{capacity} * 8, false));
    grown.row_ids = reinterpret_cast<uint64_t*>(ids.data());
    std::memcpy(grown.row_ids, chunk.row_ids, n * 8);
    memory_->first_row_ids = std::move(ids);
  }
  memory_->first = std::move(memory);
  chunk = grown;
  return absl::OkStatus();
}

// The chunk that the next n rows go to, with room for one of them at least.
absl::StatusOr<SortChunk*> SortSide::ChunkFor(uint64_t n) {
  if (chunks_.empty()) chunks_.emplace_back();
  SortChunk* chunk = &chunks_.back();
  if (chunk->num_rows < chunk->capacity) return chunk;
  if (chunk->capacity < kChunkRows) {
    uint64_t capacity = std::max(chunk->capacity * 4, kFirstRows);
    while (capacity < chunk->num_rows + n && capacity < kChunkRows) capacity *= 4;
    QUERN_RETURN_IF_ERROR(GrowFirst(static_cast<uint32_t>(std::min<uint64_t>(capacity, kChunkRows))));
    return chunk;
  }
  QUERN_ASSIGN_OR_RETURN(uint8_t* memory, memory_->chunks.Allocate(kChunkRows * RowBytes()));
  SetMemory(memory, kChunkRows, &chunks_.emplace_back());
  return &chunks_.back();
}

uint64_t SortSide::RowBytes() const {
  const QuernSortShape& shape = *context_.shape->get();
  return uint64_t{shape.num_words} * 8 + shape.rows.tuple_bytes;
}

absl::Status SortSide::MakeRowIds(SortChunk* chunk) {
  const uint64_t bytes = uint64_t{chunk->capacity} * 8;
  uint64_t* ids = nullptr;
  if (chunk == &chunks_.front()) {
    QUERN_ASSIGN_OR_RETURN(memory_->first_row_ids, HugeBuffer::Allocate(context_.budget, bytes, false));
    ids = reinterpret_cast<uint64_t*>(memory_->first_row_ids.data());
  } else {
    QUERN_ASSIGN_OR_RETURN(uint8_t* memory, memory_->chunks.Allocate(bytes));
    ids = reinterpret_cast<uint64_t*>(memory);
  }
  for (uint32_t i = 0; i < chunk->num_rows; ++i) ids[i] = chunk->RowId(i);
  chunk->row_ids = ids;
  return absl::OkStatus();
}

void SortSide::AddTo(SortInput* input) const {
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
    input->sides.push_back(input->num_sides);
  }
  if (num_rows_ == 0) return;
  ++input->num_sides;
  for (const KeyCodes& key : key_codes_) {
    if (key.codes == nullptr) continue;
    const auto has_key = [&](const CodedKey& coded) { return coded.key == key.key; };
    auto coded = std::find_if(input->coded.begin(), input->coded.end(), has_key);
    if (coded == input->coded.end()) coded = input->coded.insert(coded, {key.key, {}});
    coded->codes.push_back(key.codes.get());
  }
}

// ---- under a limit ----------------------------------------------------------------------------------------------------

// The rows of a block that may come out, by their numbers in the batch; answers how many.
uint32_t SortSide::SelectTop(const Block& block, uint32_t* rows) {
  const QuernSortShape& shape = *context_.shape->get();
  const QuernSortEntryPoints& kernel = context_.entry_points.Now();
  lead_.resize(kMaxBatchRows);
  picked_.resize(kMaxBatchRows);
  kernel.lead(&shape, block.batch->keys.data(), block.first, block.rows, block.n, lead_.data());
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const auto pick = has ? PickLeadsAvx512 : PickLeads;
#else
  const auto pick = PickLeads;
#endif
  const uint32_t num_leading = pick(lead_.data(), block.n, bound_->words[0] | UndecidedByLead(shape), picked_.data());
  if (num_leading == 0) return 0;
  for (uint32_t i = 0; i < num_leading; ++i)
    rows[i] = block.rows != nullptr ? block.rows[picked_[i]] : static_cast<uint32_t>(block.first + picked_[i]);
  picked_words_.resize(uint64_t{num_leading} * shape.num_words);
  uint64_t* words[kMaxSortWords];
  for (uint32_t w = 0; w < shape.num_words; ++w) words[w] = picked_words_.data() + uint64_t{w} * num_leading;
  uint32_t incomplete = 0;
  kernel.encode(&shape, block.batch->keys.data(), 0, rows, num_leading, words, &incomplete);
  incomplete |= bound_->incomplete;
  if (incomplete != bound_incomplete_) bound_steps_ = WordSteps(shape, bound_incomplete_ = incomplete);
  const int most = drops_ties_ && incomplete == 0 ? -1 : 0;
  uint32_t num_picked = 0;
  for (uint32_t i = 0; i < num_leading; ++i) {
    rows[num_picked] = rows[i];
    num_picked += CompareWords(bound_steps_, words[0] + i, num_leading, bound_->words) <= most ? 1 : 0;
  }
  return num_picked;
}

absl::Status SortSide::AppendTop(const Block& block) {
  const std::shared_ptr<const SortBound> shared = context_.threshold->Get();
  if (shared != nullptr && shared != bound_ && (bound_ == nullptr || CompareBounds(*context_.shape->get(), *shared, *bound_) < 0)) {
    bound_ = shared;
    drops_ties_ = shared->drops_ties;
  }
  arrivals_grow_ &= num_arrived_ == 0 || block.RowId(0) > last_arrival_;
  for (uint32_t i = 1; i < block.n && block.rows != nullptr; ++i) arrivals_grow_ &= block.rows[i] > block.rows[i - 1];
  last_arrival_ = block.RowId(block.n - 1);
  num_arrived_ += block.n;
  if (!arrivals_grow_ && context_.shape->spec().stable) drops_ties_ = false;
  uint32_t rows[kMaxBatchRows];
  Block picked = block;
  if (bound_ != nullptr) {
    picked.first = 0;
    picked.rows = rows;
    picked.n = SelectTop(block, rows);
  }
  if (picked.n == 0) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(AppendRows(picked));
  return num_rows_ > 2 * context_.shape->spec().limit + kRowsBesideLimit ? KeepTop() : absl::OkStatus();
}

// A tuple's strings that it does not hold itself move to memory of this side: nothing of a batch is kept under a limit.
absl::Status SortSide::CopyStrings(uint8_t* tuples, uint32_t n) {
  const QuernJoinShape& shape = context_.shape->get()->rows;
  for (uint32_t f = 0; f < shape.num_build + shape.num_residual; ++f) {
    const QuernField& field = f < shape.num_build ? shape.build[f] : shape.build_residual[f - shape.num_build];
    if (!IsVariable(field.storage)) continue;
    for (uint32_t i = 0; i < n; ++i) {
      uint8_t* const tuple = tuples + uint64_t{i} * shape.tuple_bytes;
      if (field.null_mask != 0 && (tuple[field.null_offset] & field.null_mask) != 0) continue;
      auto ref = blocks::Load<StringRef>(tuple + field.tuple_offset);
      if (ref.length <= kInlineStringBytes) continue;
      QUERN_ASSIGN_OR_RETURN(uint8_t* bytes, memory_->strings.Allocate(ref.length));
      std::memcpy(bytes, ref.bytes, ref.length);
      ref.bytes = reinterpret_cast<const char*>(bytes);
      blocks::Store(tuple + field.tuple_offset, ref);
    }
  }
  return absl::OkStatus();
}

// Copies one row of what was sorted to the next place.
absl::Status SortSide::KeepRow(const SortedRows& sorted, uint64_t row, uint64_t num_left) {
  const QuernSortShape& shape = *context_.shape->get();
  QUERN_ASSIGN_OR_RETURN(SortChunk * chunk, ChunkFor(num_left));
  const uint32_t at = chunk->num_rows;
  for (uint32_t w = 0; w < shape.num_words; ++w) chunk->words[uint64_t{w} * chunk->capacity + at] = sorted.chunks().Word(w, row);
  if (shape.rows.tuple_bytes != 0) {
    uint8_t* const tuple = chunk->tuples + uint64_t{at} * shape.rows.tuple_bytes;
    std::memcpy(tuple, sorted.chunks().Tuple(row), shape.rows.tuple_bytes);
    QUERN_RETURN_IF_ERROR(CopyStrings(tuple, 1));
  }
  if (context_.uses_row_ids()) {
    if (chunk->row_ids == nullptr) QUERN_RETURN_IF_ERROR(MakeRowIds(chunk));
    chunk->row_ids[at] = sorted.chunks().RowId(row);
  }
  ++chunk->num_rows;
  ++num_rows_;
  return absl::OkStatus();
}

// Sorts what is there and keeps the first `limit` rows, in order, in new memory. Of rows that are equal but for their row ids, places say
// from now on which came first.
absl::Status SortSide::KeepTop() {
  SortInput input;
  AddTo(&input);
  SortedRows sorted(context_, std::move(input), /*needs_rows=*/true);
  QUERN_RETURN_IF_ERROR(sorted.Help());
  const auto old_memory = std::exchange(memory_, std::make_shared<Memory>(context_.budget, context_.options.huge_pages));
  const auto old_chunks = std::exchange(chunks_, {});
  num_rows_ = 0;
  row_ids_grow_ = false;
  const uint64_t limit = context_.shape->spec().limit;
  for (uint64_t i = 0; i < limit; ++i) QUERN_RETURN_IF_ERROR(KeepRow(sorted, sorted.RowAt(i), limit - i));
  return LowerBound();
}

// The last row is the bound from now on, of this side and of all others.
absl::Status SortSide::LowerBound() {
  const QuernSortShape& shape = *context_.shape->get();
  const SortChunk& chunk = chunks_.back();
  const uint32_t last = chunk.num_rows - 1;
  auto bound = std::make_shared<SortBound>();
  for (uint32_t w = 0; w < shape.num_words; ++w) bound->words.push_back(chunk.words[uint64_t{w} * chunk.capacity + last]);
  bound->incomplete = incomplete_;
  bound->drops_ties = !context_.shape->spec().stable;
  if (shape.rows.tuple_bytes != 0) {
    const uint8_t* const tuple = chunk.tuples + uint64_t{last} * shape.rows.tuple_bytes;
    bound->tuple.assign(tuple, tuple + shape.rows.tuple_bytes);
    bound->memory = memory_;
  }
  context_.threshold->Lower(bound);
  if (bound_ != nullptr && CompareBounds(shape, *bound, *bound_) > 0) return absl::OkStatus();
  // Ties that come later have higher row ids, as long as rows arrive in order.
  drops_ties_ = bound->drops_ties || arrivals_grow_;
  bound_ = std::move(bound);
  return absl::OkStatus();
}

}  // namespace quern
