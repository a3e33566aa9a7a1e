// SPDX-License-Identifier: Apache-2.0
// The first stages of a probe, without the rest: filter, pack or hash, and a look at one line of the table. Each row
// gets a byte, 1 where it passes, and the bytes become the answer:
//
//     batch rows      0     1     2     3     4      row 2 has a null key, which matches nothing
//     looked at       0     1           3     4
//     passes          1     0           0     1
//     all rows        1     0     0     0     1      bitmap 0x11, or rows 0 and 4
//
// No branch depends on what a look finds, and a row needs no result of another row. The processor therefore overlaps
// the cache misses of many rows, so that bitmaps, runs and directories are not prefetched. Walks of an open table have
// several rounds and take their prefetches from the probe.
#include "runtime/join/membership.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/join_loop.h"
#include "runtime/join/key_filter.h"
#include "runtime/join/probe_scratch.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/join/tables/unchained_table.h"
#include "runtime/rows/prefetch_lines.h"
#include "runtime/rows/selected_rows.h"

namespace quern {
namespace {

// Calls look(i) for each row, and prefetches address_of(i) before, as `setting` says.
template <class AddressOf, class Look>
void LookAll(const PrefetchSetting& setting, uint32_t n, AddressOf&& address_of, Look&& look) {
  WithPrefetch(setting, [&]<class Prefetch>() {
    ForEachRow<Prefetch>(n, RowsAhead(setting, n), [&](uint32_t i) { Prefetch::For(address_of(i)); }, look);
  });
}

void TestBits(const JoinTable& table, const uint64_t* words, uint32_t n, uint8_t* passes) {
  const uint64_t base = table.base, sign_bit = table.sign_bit, range = table.range;
  const uint64_t* const bitmap = table.bitmap;
  const auto place_of = [&](uint32_t i) {
    const uint64_t number = (words[i] ^ sign_bit) - base;
    return number < range ? number : 0;
  };
  LookAll(
      range > kPrefetchedBits ? table.probe : PrefetchSetting(), n,
      [&](uint32_t i) { return &bitmap[place_of(i) / 64]; },
      [&](uint32_t i) {
        const uint64_t place = place_of(i), inside = (words[i] ^ sign_bit) - base < range ? 1 : 0;
        passes[i] = static_cast<uint8_t>((bitmap[place / 64] >> (place % 64)) & inside);
      });
}

void TestRuns(const JoinTable& table, const uint64_t* words, uint32_t n, uint8_t* passes) {
  const uint64_t base = table.base, sign_bit = table.sign_bit, range = table.range;
  const uint32_t* const runs = table.runs;
  const auto place_of = [&](uint32_t i) {
    const uint64_t number = (words[i] ^ sign_bit) - base;
    return number < range ? static_cast<int64_t>(number) : 0;
  };
  LookAll(
      table.probe, n, [&](uint32_t i) { return &runs[place_of(i)]; },
      [&](uint32_t i) {
        const int64_t place = place_of(i);
        const bool inside = (words[i] ^ sign_bit) - base < range;
        passes[i] = static_cast<uint8_t>(static_cast<int>(inside) & static_cast<int>(runs[place] != runs[place - 1]));
      });
}

void TestTags(const JoinTable& table, const uint64_t* hashes, uint32_t n, uint8_t* passes) {
  const uint64_t* const directory = table.directory;
  const uint16_t* const tags = DirectoryTags();
  const uint32_t shift = table.shift;
  LookAll(
      table.probe, n, [&](uint32_t i) { return &directory[hashes[i] >> shift]; },
      [&](uint32_t i) {
        const uint64_t tag = TagOf(tags, hashes[i]);
        passes[i] = static_cast<uint8_t>((directory[hashes[i] >> shift] & tag) == tag);
      });
}

void TestSlots(const JoinTable& table, uint32_t n, QuernProbeScratch* s, uint8_t* passes) {
  s->batch_rows = n;
  s->num_matches = s->num_candidates = 0;
  LookUpTally tally;
  LookUpPackedKeys(table, KeyWords::Packed(s->words), s, &tally);
  std::memset(passes, 0, n);
  for (uint32_t m = 0; m < s->num_matches; ++m) passes[s->match_index[m]] = 1;
  for (uint32_t c = 0; c < s->num_candidates; ++c) passes[s->candidates[c].index] = 1;
}

// Tests the n rows whose words or hashes the scratch has.
void Test(const JoinTable& table, uint32_t n, QuernProbeScratch* s, uint8_t* passes) {
  if (table.has_key_filter() && table.packed_bytes != 0) return TestBits(table, s->words, n, passes);
  switch (table.layout) {
    case Layout::kBitmap:
    case Layout::kDense:
    case Layout::kRanked: return TestBits(table, s->words, n, passes);
    case Layout::kCsr: return TestRuns(table, s->words, n, passes);
    case Layout::kOpen:
    case Layout::kCounting: return TestSlots(table, n, s, passes);
    case Layout::kUnchained:
      if (table.packed_bytes != 0) HashPackedKeys(s->words, n, table.zero_hashes, s->hashes);
      return TestTags(table, s->hashes, n, passes);
  }
}

// Gives each of the n rows from the batch's row `next` on its byte; those that are not in `kept` get 0.
void Spread(const uint32_t* selection, uint64_t next, uint32_t n, const BatchRows& kept, const uint8_t* passes,
            uint8_t* all) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = selection ? selection[next + i] : static_cast<uint32_t>(next + i);
    const bool is_kept = k < kept.n && kept.rows[k] == row;
    all[i] = is_kept ? passes[k] : 0;
    k += is_kept;
  }
}

uint64_t CountPassing(const uint8_t* passes, uint32_t n) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < n; ++i) count += passes[i];
  return count;
}

// scratch: room for n rows. Behind the rows that pass nothing is written.
uint64_t WriteRows(const uint32_t* selection, uint64_t next, uint32_t n, const uint8_t* passes, uint32_t* scratch,
                   uint32_t* rows) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < n; ++i) {
    scratch[count] = selection ? selection[next + i] : static_cast<uint32_t>(next + i);
    count += passes[i];
  }
  std::memcpy(rows, scratch, count * sizeof(uint32_t));
  return count;
}

// Sets bits of a zeroed bitmap, eight at a time once they begin a byte: the product moves bit 0 of byte j to bit 56 +
// j.
void WriteBits(uint64_t next, uint32_t n, const uint8_t* passes, uint8_t* bitmap) {
  uint32_t i = 0;
  const auto set_one = [&] { blocks::SetBitTo(bitmap, next + i, passes[i] != 0); };
  for (; i < n && (next + i) % 8 != 0; ++i) set_one();
  for (; i + 8 <= n; i += 8) {
    const auto eight = blocks::Load<uint64_t>(passes + i);
    bitmap[(next + i) / 8] = static_cast<uint8_t>(eight * 0x0102040810204080u >> 56);
  }
  for (; i < n; ++i) set_one();
}

}  // namespace

absl::StatusOr<uint64_t> FindMembers(const JoinTable& table, const QuernJoinDescriptor& descriptor,
                                     const JoinEntrySource& entry_points, const StopFlag* stop_flag,
                                     const BatchView& batch, const MemberAnswer& answer,
                                     const PrefetchDistances& distances, CounterBlock* counters) {
  const bool is_bitmap = IsBitmap(table.layout);
  const bool keeps = answer.rows != nullptr && table.packed_bytes != 0 && (is_bitmap || table.has_key_filter());
  const bool reads_column = keeps && HasKeyInColumn(descriptor.rows);
  const ProbeScratch scratch = TakeProbeScratch();
  QuernProbeScratch* const s = scratch.get();
  const RefusedCalls refused;
  if (answer.bitmap != nullptr) std::memset(answer.bitmap, 0, (batch.num_rows + 7) / 8);
  uint64_t count = 0;
  for (uint64_t next = 0; next < batch.num_rows;) {
    if (stop_flag != nullptr) QUERN_RETURN_IF_ERROR(stop_flag->Check());
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(descriptor.batch_rows, batch.num_rows - next));
    const QuernJoinEntryPoints& kernel =
        counters != nullptr ? entry_points.ForBatch(n, counters) : entry_points.ForLook(n);
    if (batch.selection != nullptr)
      SelectedRows(distances.sparse_rows, batch.selection + next, n, distances.input_rows)
          .Prefetch(descriptor.rows.keys, descriptor.rows.num_keys, batch.keys.data());
    const BatchRows kept = SelectRows(kernel, &descriptor.rows, batch.keys.data(), batch.selection, next, n, s->rows);
    KeyWords words = KeyWords::Packed(s->words);
    if (reads_column && kept.rows == nullptr)
      words = KeyWords::Of(descriptor.rows.keys[0], batch.keys[0], kept.first, distances.input_rows);
    else if (descriptor.rows.packed_bytes != 0)
      kernel.pack(&descriptor.rows, batch.keys.data(), kept.first, kept.rows, kept.n, s->words);
    else kernel.hash(&descriptor.rows, batch.keys.data(), kept.first, kept.rows, kept.n, s->hashes);
    if (keeps) {
      const uint32_t passed =
          KeepKeysOf(table, kept.rows, static_cast<uint32_t>(kept.first), kept.n, words, s->rows, nullptr);
      std::memcpy(answer.rows + count, s->rows, passed * sizeof(uint32_t));
      count += passed;
      next += n;
      continue;
    }
    Test(table, kept.n, s, s->found);
    const uint8_t* passes = s->found;
    if (kept.n < n) {
      Spread(batch.selection, next, n, kept, s->found, s->marks);
      passes = s->marks;
    }
    if (answer.rows != nullptr) {
      count += WriteRows(batch.selection, next, n, passes, s->rows, answer.rows + count);
    } else {
      if (answer.bitmap != nullptr) WriteBits(next, n, passes, answer.bitmap);
      count += CountPassing(passes, n);
    }
    next += n;
  }
  QUERN_RETURN_IF_ERROR(refused.status());
  return count;
}

absl::StatusOr<uint64_t> FindRowsWithKeys(const QuernJoinDescriptor& descriptor, const JoinEntrySource& entry_points,
                                          const StopFlag* stop_flag, const BatchView& batch,
                                          const MemberAnswer& answer) {
  const ProbeScratch scratch = TakeProbeScratch();
  QuernProbeScratch* const s = scratch.get();
  if (answer.bitmap != nullptr) std::memset(answer.bitmap, 0, (batch.num_rows + 7) / 8);
  uint64_t count = 0;
  for (uint64_t next = 0; next < batch.num_rows;) {
    if (stop_flag != nullptr) QUERN_RETURN_IF_ERROR(stop_flag->Check());
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(descriptor.batch_rows, batch.num_rows - next));
    const BatchRows kept =
        SelectRows(entry_points.ForLook(n), &descriptor.rows, batch.keys.data(), batch.selection, next, n, s->rows);
    std::memset(s->found, 1, kept.n);
    const uint8_t* passes = s->found;
    if (kept.n < n) {
      Spread(batch.selection, next, n, kept, s->found, s->marks);
      passes = s->marks;
    }
    if (answer.rows != nullptr) {
      count += WriteRows(batch.selection, next, n, passes, s->looking, answer.rows + count);
    } else {
      if (answer.bitmap != nullptr) WriteBits(next, n, passes, answer.bitmap);
      count += kept.n;
    }
    next += n;
  }
  return count;
}

}  // namespace quern
