// SPDX-License-Identifier: Apache-2.0
// Under a limit of 100, a thread keeps up to 1,224 rows. Then it sorts them, keeps the first 100, and stores the words
// of the last of these as the bound: a row after it can never be part of the result. From then on, encode_leading
// encodes only the leading key word (word 0) of a batch, and only rows whose leading word is not above the bound's are
// examined further; of 10 million random rows about a thousand are. Threads share their bounds. (Top-N with a threshold
// that is pushed down, as in DuckDB and DataFusion.)
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/cpu.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/row_order.h"
#include "runtime/sort/key_comparison.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/local_rows_batch.h"
#include "runtime/sort/sorted_rows.h"

namespace quern {
namespace {

constexpr uint64_t kRowsBesideLimit = thresholds::kRowsBesideLimit;

// The comparison keys on words, before the first tail.
std::vector<KeyComparison> WordSteps(const QuernSortDescriptor& descriptor, uint32_t incomplete) {
  std::vector<KeyComparison> steps = StepsOf(descriptor, incomplete);
  steps.erase(std::find_if(steps.begin(), steps.end(), [](const KeyComparison& step) { return step.is_tail(); }),
              steps.end());
  return steps;
}

// Compares by words alone.
int CompareWords(const std::vector<KeyComparison>& steps, const uint64_t* a, uint64_t stride,
                 const std::vector<uint64_t>& b) {
  for (const KeyComparison& step : steps) {
    const uint64_t x = a[step.word * stride] & step.mask, y = b[step.word] & step.mask;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

int CompareBounds(const QuernSortDescriptor& descriptor, const SortBound& a, const SortBound& b) {
  return CompareWords(WordSteps(descriptor, a.incomplete | b.incomplete), a.words.data(), 1, b.words);
}

// Appends the numbers of those of 64 leading words, from `first` on, that are not above `most`.
inline uint32_t PickSome(const uint64_t* leads, uint32_t first, uint32_t n, uint64_t most, uint32_t* picked) {
  uint32_t num_picked = 0;
  for (uint32_t i = first; i < first + n; ++i) {
    picked[num_picked] = i;
    num_picked += leads[i] <= most ? 1 : 0;
  }
  return num_picked;
}

// The numbers of those of n leading words that are not above `most`. Skips 64 at a time if none is.
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
__attribute__((target("avx512f,avx512dq,avx512vl"))) uint32_t PickLeadsAvx512(const uint64_t* leads, uint32_t n,
                                                                              uint64_t most, uint32_t* picked) {
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

// The bits of word 0 from the first one that encode_leading leaves out.
uint64_t UndecidedByLead(const QuernSortDescriptor& descriptor) {
  for (uint32_t p = 0; p < descriptor.num_parts && descriptor.parts[p].word == 0; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (IsLeftOutOfLead(&descriptor, &part)) return ~uint64_t{0} >> (64 - part.shift - part.bits);
  }
  return 0;
}

}  // namespace

void SortThreshold::Lower(std::shared_ptr<const SortBound> bound) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bound_ == nullptr || CompareBounds(*descriptor_->get(), *bound, *bound_) < 0) bound_ = std::move(bound);
}

std::shared_ptr<const SortBound> SortThreshold::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bound_;
}

// Selects the rows of a block that may be part of the result, by their numbers in the batch; returns how many.
uint32_t LocalRows::SelectTop(const Block& block, uint32_t* rows) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const QuernSortEntryPoints& kernel = context_.entry_points.Now();
  lead_.resize(kMaxBatchRows);
  picked_.resize(kMaxBatchRows);
  kernel.encode_leading(&descriptor, block.batch->keys.data(), block.first, block.rows, block.n, lead_.data());
#if defined(__x86_64__)
  const auto pick = HasAvx512() ? PickLeadsAvx512 : PickLeads;
#else
  const auto pick = PickLeads;
#endif
  const uint32_t num_leading =
      pick(lead_.data(), block.n, bound_->words[0] | UndecidedByLead(descriptor), picked_.data());
  if (num_leading == 0) return 0;
  for (uint32_t i = 0; i < num_leading; ++i)
    rows[i] = block.rows != nullptr ? block.rows[picked_[i]] : static_cast<uint32_t>(block.first + picked_[i]);
  picked_words_.resize(uint64_t{num_leading} * descriptor.num_words);
  uint64_t* words[kMaxSortWords];
  for (uint32_t w = 0; w < descriptor.num_words; ++w) words[w] = picked_words_.data() + uint64_t{w} * num_leading;
  uint32_t incomplete = 0;
  kernel.encode(&descriptor, block.batch->keys.data(), 0, rows, num_leading, words, &incomplete);
  incomplete |= bound_->incomplete;
  if (incomplete != bound_incomplete_) bound_steps_ = WordSteps(descriptor, incomplete);
  bound_incomplete_ = incomplete;
  const int most = drops_ties_ && incomplete == 0 ? -1 : 0;
  uint32_t num_picked = 0;
  for (uint32_t i = 0; i < num_leading; ++i) {
    rows[num_picked] = rows[i];
    num_picked += CompareWords(bound_steps_, words[0] + i, num_leading, bound_->words) <= most ? 1 : 0;
  }
  return num_picked;
}

absl::Status LocalRows::AppendTop(const Block& block) {
  const std::shared_ptr<const SortBound> shared = context_.threshold->Get();
  if (shared != nullptr && shared != bound_ &&
      (bound_ == nullptr || CompareBounds(*context_.descriptor->get(), *shared, *bound_) < 0)) {
    bound_ = shared;
    drops_ties_ = shared->drops_ties;
  }
  arrivals_grow_ &= num_arrived_ == 0 || block.RowId(0) > last_arrival_;
  if (arrivals_grow_ && block.rows != nullptr) arrivals_grow_ = Ascend(block.rows, block.n);
  if (!arrivals_grow_ && context_.descriptor->spec().stable) drops_ties_ = false;
  uint32_t rows[kMaxBatchRows];
  Block picked = block;
  picked.num_left = block.n;  // few rows of the batch will be kept
  if (bound_ != nullptr) {
    picked.first = 0;
    picked.rows = rows;
    picked.num_left = picked.n = SelectTop(block, rows);
    QUERN_RETURN_IF_ERROR(block.refused->status());
  }
  uint64_t num_done = 0;
  const absl::Status status = WithoutBadAlloc([&] { return AppendRows(picked, &num_done); });
  const auto last = static_cast<uint32_t>(num_done) - 1;
  TakeArrivals(block, num_done == picked.n ? block.n : num_done == 0 ? 0 : PositionOf(block, picked, last) + 1);
  if (!status.ok() || picked.n == 0) return status;
  return num_rows_ > 2 * context_.descriptor->spec().limit + kRowsBesideLimit ? KeepTop() : absl::OkStatus();
}

// Where row i of those that SelectTop has picked stands in its block. A row that the block has more than once was
// picked each time.
uint32_t LocalRows::PositionOf(const Block& block, const Block& picked, uint32_t i) {
  if (picked.rows == block.rows) return i;
  if (block.rows == nullptr) return static_cast<uint32_t>(picked.rows[i] - block.first);
  uint32_t position = 0;
  for (uint32_t found = 0; found <= i; ++position) found += block.rows[position] == picked.rows[found] ? 1 : 0;
  return position - 1;
}

void LocalRows::TakeArrivals(const Block& block, uint32_t num_taken) {
  if (num_taken == 0) return;
  last_arrival_ = block.RowId(num_taken - 1);
  num_arrived_ += num_taken;
  taken_rows_ += num_taken;
}

// Copies the strings to which tuples point to this thread's memory: nothing of a batch is kept under a limit.
absl::Status LocalRows::CopyStrings(uint8_t* tuples, uint32_t n) {
  const QuernRowLayout& rows = context_.descriptor->get()->rows;
  for (uint32_t f = 0; f < rows.num_fields; ++f) {
    const QuernField& field = rows.fields[f];
    if (!IsVariable(field.storage)) continue;
    for (uint32_t i = 0; i < n; ++i) {
      uint8_t* const tuple = tuples + uint64_t{i} * rows.tuple_bytes;
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

// Copies one sorted row to the next position.
absl::Status LocalRows::KeepRow(const SortedRows& sorted, uint64_t row, uint64_t num_left) {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  QUERN_ASSIGN_OR_RETURN(SortChunk * chunk, ChunkFor(num_left));
  const uint32_t at = chunk->num_rows;
  for (uint32_t w = 0; w < descriptor.num_words; ++w)
    chunk->words[uint64_t{w} * chunk->capacity + at] = sorted.chunks().Word(w, row);
  if (descriptor.rows.tuple_bytes != 0) {
    uint8_t* const tuple = chunk->tuples + uint64_t{at} * descriptor.rows.tuple_bytes;
    std::memcpy(tuple, sorted.chunks().Tuple(row), descriptor.rows.tuple_bytes);
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

// Sorts the rows and keeps the first `limit`, in order, in new memory. For rows that are equal except for their row
// ids, positions from now on give the order of arrival.
absl::Status LocalRows::KeepTop() {
  SortInput input;
  AddTo(&input);
  SortedRows sorted(context_, std::move(input), /*needs_rows=*/true);
  QUERN_RETURN_IF_ERROR(sorted.work()->RunTasks());
  // The old rows until the new ones are complete, then the other way round.
  std::vector<SortChunk> chunks;
  auto memory = std::make_shared<Memory>(context_.budget, context_.options.huge_pages);
  const auto exchange_rows = [&] {
    chunks_.swap(chunks);
    memory_.swap(memory);
  };
  exchange_rows();
  const uint64_t num_rows = std::exchange(num_rows_, 0);
  const bool row_ids_grow = std::exchange(row_ids_grow_, false);
  const absl::Status status = WithoutBadAlloc([&] { return KeepRows(sorted); });
  if (status.ok()) return LowerBound();
  exchange_rows();
  num_rows_ = num_rows;
  row_ids_grow_ = row_ids_grow;
  return status;
}

absl::Status LocalRows::KeepRows(const SortedRows& sorted) {
  const uint64_t limit = context_.descriptor->spec().limit;
  for (uint64_t i = 0; i < limit; ++i) QUERN_RETURN_IF_ERROR(KeepRow(sorted, sorted.RowAt(i), limit - i));
  return absl::OkStatus();
}

// Makes the last row the bound, for this thread and all others.
absl::Status LocalRows::LowerBound() {
  const QuernSortDescriptor& descriptor = *context_.descriptor->get();
  const SortChunk& chunk = chunks_.back();
  const uint32_t last = chunk.num_rows - 1;
  auto bound = std::make_shared<SortBound>();
  for (uint32_t w = 0; w < descriptor.num_words; ++w)
    bound->words.push_back(chunk.words[uint64_t{w} * chunk.capacity + last]);
  bound->incomplete = incomplete_;
  bound->drops_ties = !context_.descriptor->spec().stable;
  if (descriptor.rows.tuple_bytes != 0) {
    const uint8_t* const tuple = chunk.tuples + uint64_t{last} * descriptor.rows.tuple_bytes;
    bound->tuple.assign(tuple, tuple + descriptor.rows.tuple_bytes);
    bound->memory = memory_;
  }
  context_.threshold->Lower(bound);
  if (bound_ != nullptr && CompareBounds(descriptor, *bound, *bound_) > 0) return absl::OkStatus();
  // Equal rows that come later have higher row ids, as long as rows arrive in order.
  drops_ties_ = bound->drops_ties || arrivals_grow_;
  bound_ = std::move(bound);
  return absl::OkStatus();
}

}  // namespace quern
