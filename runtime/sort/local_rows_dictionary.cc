// SPDX-License-Identifier: Apache-2.0
// Dictionary codes, and rows without tuples. When a thread has 65,536 rows, a key's strings are tried for dictionary
// codes: codes replace the bytes in the words of all rows. Once there are too many distinct strings, bytes replace the
// codes again.
//
// A chunk has tuples only if some column of the result cannot be decoded from words. Floats can, as long as none was -0
// or an odd NaN; strings can, as long as they have codes. A row of keys=f64:out,i64:out then takes 16 bytes, and the
// result reads no random line for it. The first float or string that cannot be decoded makes us materialise the tuples
// of earlier rows:
//
//     rows of keys=f64:out    2.5 | 0 | 1e9 | -0 | 7      words alone as far as 1e9; then tuples of 2.5, 0 and 1e9
//                                                         are made from their words, and -0 and 7 are stored
//                                                         as they come
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/encode.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/sort/key_comparison.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/local_rows_batch.h"
#include "runtime/sort/sort_decode.h"

namespace quern {
namespace {

// A sample of so many rows decides whether codes pay.
constexpr uint32_t kSampleRows = thresholds::kDictionarySampleRows;

template <class Visit>
void ForBytesParts(const QuernSortDescriptor& descriptor, const QuernSortKey& key, Visit visit) {
  for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (part.kind == kBytesPart) visit(part, SortPartMask(&part));
  }
}

}  // namespace

// ---- codes ----------------------------------------------------------------------------------------------------------

// Reads the strings of a key from a chunk's tuples; those of nulls have no address.
void LocalRows::ReadStrings(const SortChunk& chunk, uint32_t key, uint32_t begin, uint32_t n,
                            blocks::Bytes* strings) const {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  for (uint32_t i = 0; i < n; ++i)
    strings[i] =
        SortBytes(descriptor, descriptor.keys[key], chunk.tuples + uint64_t{begin + i} * descriptor.rows.tuple_bytes);
}

// The same from the batch in which they came, without the branch on the length that a string in a tuple costs.
void LocalRows::ReadStrings(const Block& block, uint32_t key, blocks::Bytes* strings) const {
  const QuernSortKey& sort_key = context_.descriptor->get()->keys[key];
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

absl::Status LocalRows::CodeRows(const Block& block, SortChunk* chunk) {
  blocks::Bytes strings[kMaxBatchRows];
  for (KeyDictionary& key : key_codes_) {
    if (key.codes == nullptr && (!key.may_try || num_rows_ < context_.options.dictionary_rows)) continue;
    if (key.codes == nullptr) {
      QUERN_RETURN_IF_ERROR(TryDictionary(&key));
      continue;
    }
    ReadStrings(block, key.key, strings);
    const uint32_t at = chunk->num_rows - block.n;
    QUERN_ASSIGN_OR_RETURN(const bool coded, CodeSome(&key, strings, chunk, at, block.n));
    if (coded) continue;
    if (chunk->tuples == nullptr) {
      QUERN_RETURN_IF_ERROR(RestoreTuples());
      StoreTuples(block, at, *chunk);
    }
    QUERN_RETURN_IF_ERROR(Uncode(key.key));
  }
  return absl::OkStatus();
}

bool LocalRows::IsSkipped(const QuernSortPart& part) const {
  return part.kind == kBytesPart && (skipped_keys_ >> part.key & 1) != 0;
}

// Finds words that hold only skipped bytes and no codes. These are never written, so their contents are undefined.
void LocalRows::FindDictionaryWords() {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  skipped_keys_ = 0;
  for (const KeyDictionary& key : key_codes_) skipped_keys_ |= key.codes == nullptr ? 0 : 1u << key.key;
  is_written_.reset();
  for (uint32_t p = 0; p < descriptor.num_parts; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (!IsSkipped(part)) is_written_[part.word] = true;
  }
  if (skipped_keys_ == 0) return;
  std::bitset<kMaxSortWords> has_codes, begins_empty;
  for (uint32_t k = 0; k < descriptor.num_keys; ++k)
    if ((skipped_keys_ >> k & 1) != 0) has_codes[FirstBytesPart(&descriptor, &descriptor.keys[k])->word] = true;
  for (uint32_t p = 0; p < descriptor.num_parts; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (part.begins_word && IsSkipped(part)) begins_empty[part.word] = true;
  }
  for (uint32_t w = 0; w < descriptor.num_words; ++w)
    is_zeroed_[w] = begins_empty[w] && (is_written_[w] || has_codes[w]);
}

// The codes of a chunk's strings if a sample has enough duplicates to expect few distinct ones, and there are few; else
// null. Finding them again takes no memory.
absl::StatusOr<std::unique_ptr<StringDictionary>> LocalRows::CodesThatPay(uint32_t key, const SortChunk& chunk) const {
  blocks::Bytes strings[kMaxBatchRows];
  uint32_t codes[kMaxBatchRows];
  const uint8_t* copies[kMaxBatchRows];
  StringDictionary sample(context_.budget, context_.options.distances);
  const uint32_t num_sampled = std::min(kSampleRows, chunk.num_rows), step = chunk.num_rows / num_sampled;
  for (uint32_t i = 0; i < num_sampled; ++i) ReadStrings(chunk, key, i * step, 1, strings + i);
  QUERN_RETURN_IF_ERROR(sample.Add(strings, num_sampled, codes, copies).status());
  if (sample.size() > num_sampled - num_sampled / thresholds::kDictionarySampleRepeats) return nullptr;
  auto all = std::make_unique<StringDictionary>(context_.budget, context_.options.distances);
  // Nulls have code 0, the empty string's, whose rank is the same in all thread-local states.
  const blocks::Bytes empty = {nullptr, 0};
  QUERN_RETURN_IF_ERROR(all->Add(&empty, 1, codes, copies).status());
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += kMaxBatchRows) {
    const uint32_t n = std::min(kMaxBatchRows, chunk.num_rows - begin);
    ReadStrings(chunk, key, begin, n, strings);
    QUERN_ASSIGN_OR_RETURN(const bool few, all->Add(strings, n, codes, copies));
    if (!few || all->size() > chunk.num_rows / 2) return nullptr;
  }
  QUERN_RETURN_IF_ERROR(all->MakeRoom());
  return all;
}

// Starts to use codes if they pay. A refusal changes nothing.
absl::Status LocalRows::TryDictionary(KeyDictionary* key) {
  SortChunk& chunk = chunks_.front();
  QUERN_ASSIGN_OR_RETURN(key->codes, CodesThatPay(key->key, chunk));
  key->may_try = false;
  if (key->codes == nullptr) return absl::OkStatus();
  blocks::Bytes strings[kMaxBatchRows];
  for (uint32_t begin = 0; begin < chunk.num_rows; begin += kMaxBatchRows) {
    const uint32_t n = std::min(kMaxBatchRows, chunk.num_rows - begin);
    ForBytesParts(*context_.descriptor->get(), context_.descriptor->get()->keys[key->key],
                  [&](const QuernSortPart& part, uint64_t mask) {
                    uint64_t* const words = chunk.words + uint64_t{part.word} * chunk.capacity + begin;
                    for (uint32_t i = 0; i < n; ++i) words[i] &= ~mask;
                  });
    ReadStrings(chunk, key->key, begin, n, strings);
    QUERN_RETURN_IF_ERROR(CodeSome(key, strings, &chunk, begin, n).status());
  }
  FindDictionaryWords();
  return absl::OkStatus();
}

// Stores codes in the words of n rows, in which the key's bits are zero. Returns false, and leaves the words unchanged,
// if there are too many strings.
absl::StatusOr<bool> LocalRows::CodeSome(KeyDictionary* key, const blocks::Bytes* strings, SortChunk* chunk,
                                         uint32_t begin, uint32_t n) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  uint32_t codes[kMaxBatchRows];
  const uint8_t* copies[kMaxBatchRows];
  const bool has_tuples = chunk->tuples != nullptr;
  QUERN_ASSIGN_OR_RETURN(const bool few, key->codes->Add(strings, n, codes, has_tuples ? copies : nullptr));
  if (!few) return false;
  if (has_tuples)
    PointToCopies(descriptor.keys[key->key], strings, copies, n,
                  chunk->tuples + uint64_t{begin} * descriptor.rows.tuple_bytes);
  for (uint32_t i = 0; i < n; ++i)
    if (strings[i].data == nullptr) codes[i] = 0;  // the null bit decides
  const QuernSortPart& part = *FirstBytesPart(&descriptor, &descriptor.keys[key->key]);
  uint64_t* const words = chunk->words + uint64_t{part.word} * chunk->capacity + begin;
  for (uint32_t i = 0; i < n; ++i) words[i] |= uint64_t{codes[i]} << part.shift;
  return true;
}

// Tuples point to the dictionary's copy of a string's bytes instead of the input's: copies of few strings are in the
// cache when rows are read. The copy lacks what trimming has cut off.
void LocalRows::PointToCopies(const QuernSortKey& key, const blocks::Bytes* strings, const uint8_t* const* copies,
                              uint32_t n, uint8_t* tuples) const {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const uint32_t offset = SortFieldOf(&descriptor, &key)->tuple_offset;
  for (uint32_t i = 0; i < n; ++i) {
    uint8_t* const field = tuples + uint64_t{i} * descriptor.rows.tuple_bytes + offset;
    const bool is_copied = strings[i].length > kInlineStringBytes && blocks::Load<uint32_t>(field) == strings[i].length;
    const auto address = reinterpret_cast<uintptr_t>(copies[i]);
    blocks::Store(field + 8, is_copied ? address : blocks::Load<uintptr_t>(field + 8));
  }
}

bool LocalRows::HasDictionary(uint32_t key) const {
  return std::any_of(key_codes_.begin(), key_codes_.end(),
                     [&](const KeyDictionary& codes) { return codes.key == key && codes.codes != nullptr; });
}

absl::Status LocalRows::Uncode(uint32_t key) {
  QUERN_RETURN_IF_ERROR(RestoreTuples());
  for (KeyDictionary& codes : key_codes_)
    if (codes.key == key && codes.codes != nullptr) EndCodes(&codes);
  return RepairWords();
}

void LocalRows::EndCodes(KeyDictionary* key) {
  old_codes_.push_back(std::move(key->codes));  // tuples point to its copies
  keys_without_bytes_ |= 1u << key->key;
  const std::bitset<kMaxSortWords> were_written = is_written_, were_zeroed = is_zeroed_;
  FindDictionaryWords();
  for (uint32_t w = 0; w < is_written_.size(); ++w) {
    if (!is_written_[w] || were_written[w] || were_zeroed[w]) continue;
    for (SortChunk& chunk : chunks_)
      std::fill_n(chunk.words + uint64_t{w} * chunk.capacity, chunk.num_rows, uint64_t{0});
  }
}

// A collation's weights may be refused memory when a part of the words is written. All are then written anew, from the
// strings to which the tuples point.
absl::Status LocalRows::RepairWords() {
  if (keys_without_bytes_ == 0) return absl::OkStatus();
  return WithoutBadAlloc([this] {
    for (; keys_without_bytes_ != 0; keys_without_bytes_ &= keys_without_bytes_ - 1) {
      const auto key = static_cast<uint32_t>(std::countr_zero(keys_without_bytes_));
      for (SortChunk& chunk : chunks_)
        for (uint32_t begin = 0; begin < chunk.num_rows; begin += blocks::kPrefixRows)
          WriteBytes(key, begin, std::min(blocks::kPrefixRows, chunk.num_rows - begin), &chunk);
    }
    return absl::OkStatus();
  });
}

// Stores the first bytes of a key's strings, read from tuples, in the words of n rows, up to kPrefixRows.
void LocalRows::WriteBytes(uint32_t key, uint32_t begin, uint32_t n, SortChunk* chunk) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const QuernSortKey& sort_key = descriptor.keys[key];
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
  ForBytesParts(descriptor, sort_key, [&](const QuernSortPart& part, uint64_t mask) {
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

// ---- rows without tuples --------------------------------------------------------------------------------------------

bool LocalRows::NeedsTuples() const {
  if (!may_drop_tuples_ || odd_floats_ != 0) return context_.descriptor->has_tuples();
  const std::vector<SortFieldSource>& fields = context_.descriptor->fields();
  return !std::all_of(fields.begin(), fields.end(), [this](const SortFieldSource& field) {
    return (float_fields_ >> field.index & 1) != 0 || HasDictionary(field.index);
  });
}

void LocalRows::FindOddFloats(const Block& block) {
  uint32_t translated[kMaxBatchRows];
  for (uint32_t keys = float_fields_ & ~odd_floats_; keys != 0; keys &= keys - 1) {
    const auto k = static_cast<uint32_t>(std::countr_zero(keys));
    const QuernSortKey& key = context_.descriptor->get()->keys[k];
    const QuernColumn* column = &block.batch->keys[k];
    const uint32_t* rows = block.rows;
    if (key.index_storage != kNoStorage) {
      TranslateRows(key.index_storage, column, block.first, rows, block.n, translated);
      column = column->dictionary;
      rows = translated;
    }
    if (HasOddFloat(key, *column, block.first, rows, block.n)) odd_floats_ |= 1u << k;
  }
}

// Makes the tuples of rows that were appended without them, from words and codes.
absl::Status LocalRows::RestoreTuples() {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  for (SortChunk& chunk : chunks_) {
    if (chunk.tuples != nullptr || chunk.capacity == 0 || descriptor.rows.tuple_bytes == 0) continue;
    QUERN_ASSIGN_OR_RETURN(chunk.tuples,
                           memory_->chunks.Allocate(uint64_t{chunk.capacity} * descriptor.rows.tuple_bytes));
    std::memset(chunk.tuples, 0, uint64_t{chunk.num_rows} * descriptor.rows.tuple_bytes);
    uint64_t* words[kMaxSortWords];
    for (uint32_t w = 0; w < descriptor.num_words; ++w) words[w] = chunk.words + uint64_t{w} * chunk.capacity;
    for (uint32_t f = 0; f < context_.descriptor->fields().size(); ++f)
      RestoreField(f, words, chunk.num_rows, chunk.tuples);
  }
  return absl::OkStatus();
}

// Restores one field in zeroed tuples.
void LocalRows::RestoreField(uint32_t f, const uint64_t* const* words, uint32_t n, uint8_t* tuples) const {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const uint32_t k = context_.descriptor->fields()[f].index;
  const QuernField& field = context_.descriptor->field(f);
  const RowParts rows(&descriptor, &descriptor.keys[k], words);
  const bool is_float = (float_fields_ >> k & 1) != 0;
  const auto coded =
      std::find_if(key_codes_.begin(), key_codes_.end(), [k](const KeyDictionary& key) { return key.key == k; });
  for (uint32_t i = 0; i < n; ++i) {
    uint8_t* const tuple = tuples + uint64_t{i} * descriptor.rows.tuple_bytes;
    uint8_t* const to = tuple + field.tuple_offset;
    if (!rows.Valid(i)) tuple[field.null_offset] |= field.null_mask;
    else if (!is_float)
      blocks::Store(
          to, blocks::MakeStringRef(coded->codes->strings()[RowCodes(&descriptor, &descriptor.keys[k], words)[i]]));
    else if (descriptor.keys[k].storage == kF32) blocks::Store(to, rows.Float<uint32_t>(i));
    else blocks::Store(to, rows.Float<uint64_t>(i));
  }
}

}  // namespace quern
