// SPDX-License-Identifier: Apache-2.0
// The order of a kernel's stages. Each call of a stage covers tens to thousands of rows, so a call through a pointer
// adds no measurable cost. Nothing here depends on the spec, so nothing here is compiled at run time.
//
// Every stage can stop and resume: an output batch may become full anywhere, even between two tuples of one slot. The
// work in progress lies in the scratch:
//
//     hashes or words [batch_next .. batch_rows)
//         ->  candidates [0 .. num_candidates)  ->  matches [match_next .. num_matches)
//
// A match is a row of the hash batch and a tuple with equal keys. The kind of join decides what happens to it:
//
//     kind            effect of a match                            at the end of a hash batch of 1024 rows
//     inner, right    a result row                                 --
//     left, full      a result row, and found[row] = 1             rows not found, with the null tuple
//     semi, anti      found[row] = 1                               rows found, or not found
//     mark            found[row] = 1                               all rows, with found as a column
//     right_semi ..   the tuple's matched flag is set              -- (the scan of unmatched build rows reads the
//                                                                  flags after all probing)
#include "runtime/join/join_loop.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/key_filter.h"
#include "runtime/join/tables/crowded_slots.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/join/tables/unchained_table.h"
#include "runtime/rows/selected_rows.h"

namespace quern {
namespace {

constexpr uint64_t kScanPositions = uint64_t{1} << 16;  // of a morsel

uint32_t BatchSize(uint32_t batch_rows, uint64_t rows_left) {
  return static_cast<uint32_t>(std::min<uint64_t>(batch_rows, rows_left));
}

// Whether check_tags itself applies this setting, row by row, as compiled in: a ring of directory entries and their
// tuples, into all caches. Other settings are applied here, a group of rows at a time, with the stage's own prefetch
// turned off (distance 0).
bool TestPrefetches(const PrefetchSetting& setting) {
  return setting.distance != kWholeBatch && setting.stages >= 2 && setting.hint == PrefetchHint::kT0;
}

// How many of n matches have room for their strings. Where memory is refused for all, fewer may have some: a result
// then ends before its capacity. Negative: a code, where a single match has none.
int64_t ReserveOutput(const QuernJoinEntryPoints& kernel, const uint32_t* rows, const uint64_t* tuples, uint32_t n,
                      QuernJoinProbeArgs* args) {
  if (kernel.reserve_output == nullptr) return n;
  int64_t fit = kernel.reserve_output(args, rows, tuples, n);
  for (; fit == kQuernOutOfMemory && n > 1; fit = kernel.reserve_output(args, rows, tuples, n)) n /= 2;
  return fit;
}

bool IsRuns(Layout layout) { return layout == Layout::kCsr || layout == Layout::kCounting; }

// The processing of one input by one prober.
class Prober {
 public:
  Prober(const JoinProbe& probe, QuernJoinProbeArgs* args)
      : p_(probe),
        kernel_(&probe.entry_points->Now()),
        a_(args),
        s_(args->scratch),
        rows_alone_(probe.kind->probe_row != RowsOut::kNever),
        counts_pairs_(probe.counts && probe.kind->pairs && !rows_alone_ && args->descriptor->num_residual == 0 &&
                      !args->descriptor->asks_host && args->descriptor->matched_offset == 0),
        first_open_(args->scratch->num_matches) {
    args->prefetch_distance = TestPrefetches(probe.table->probe) ? RingDistance(probe.table->probe) : 0;
  }

  ~Prober() {
    p_.counters->Add(Counter::kTagHits, tally_.hits);
    p_.counters->Add(Counter::kChainSteps, tally_.steps);
  }

  int32_t Run() {
    const uint32_t max_matches = MaxBatchRows();
    for (;;) {
      // A batch whose rows have many candidates each may take minutes.
      if (p_.stop_flag != nullptr && p_.stop_flag->is_set()) return kQuernFull;
      const bool needs_room = s_->num_matches >= max_matches || NeedsRoom();
      if (first_open_ < s_->num_matches && (needs_room || IsBatchDone())) {
        if (const int32_t code = Take(first_open_); code != kQuernDone) return code;
        first_open_ = s_->num_matches;
        continue;
      }
      if (needs_room) {
        if (const int32_t code = Emit(); code != kQuernDone) return code;
      }
      if (s_->num_candidates > 0) {
        if (const int32_t code = TakeCandidates(max_matches); code != kQuernDone) return code;
      } else if (s_->batch_next < s_->batch_rows) {
        if (const int32_t code = Test(); code != kQuernDone) return code;
      } else if (s_->batch_is_open) {
        if (const int32_t code = EndBatch(); code != kQuernDone) return code;
      } else if (a_->next_row < a_->num_rows) {
        if (p_.short_keys != nullptr && s_->num_matches + MaxBatchRows() > kMaxBatchRows) {  // BeginBatch finds some
          if (const int32_t code = Emit(); code != kQuernDone) return code;
        }
        if (const int32_t code = BeginBatch(); code != kQuernDone) return code;
      } else {
        return s_->num_matches > 0 ? Emit() : kQuernDone;
      }
    }
  }

  // Moves matches to the output.
  int32_t Emit() {
    if (p_.counts) {
      a_->output.num_rows += s_->num_matches - s_->match_next;
      s_->num_matches = s_->match_next = 0;
      return kQuernDone;
    }
    const uint32_t* rows = s_->match_rows + s_->match_next;
    const uint64_t* tuples = s_->match_tuples + s_->match_next;
    const uint64_t out_row = a_->output.num_rows;
    int64_t n = BatchSize(s_->num_matches - s_->match_next, a_->output.capacity - out_row);
    if (p_.out_rows != nullptr) {
      std::memcpy(p_.out_rows + out_row, rows, static_cast<size_t>(n) * sizeof(uint32_t));
      if (p_.out_tuples != nullptr)
        std::memcpy(p_.out_tuples + out_row, tuples, static_cast<size_t>(n) * sizeof(uint64_t));
    } else {
      n = ReserveOutput(*kernel_, rows, tuples, static_cast<uint32_t>(n), a_);
      if (n == kQuernOutOfMemory && out_row > 0) return kQuernFull;
      if (n < 0) return static_cast<int32_t>(n);
      SelectedRows(p_.sparse_rows, rows, static_cast<uint32_t>(n))
          .Prefetch(a_->descriptor->probe, a_->descriptor->num_probe, a_->payload);
      if (kernel_->emit != nullptr) kernel_->emit(a_, rows, tuples, static_cast<uint32_t>(n));
      if (p_.out_mark != nullptr) EmitMarks(static_cast<uint32_t>(n));
    }
    a_->output.num_rows += static_cast<uint64_t>(n);
    s_->match_next += static_cast<uint32_t>(n);
    if (s_->match_next < s_->num_matches) return kQuernFull;
    s_->num_matches = s_->match_next = first_open_ = 0;
    return kQuernDone;
  }

 private:
  bool IsBatchDone() const { return s_->num_candidates == 0 && s_->batch_next == s_->batch_rows; }

  bool IsPackedKey() const { return a_->descriptor->rows.packed_bytes != 0; }

  uint32_t MaxBatchRows() const {
    const uint32_t rows = p_.table->probe.batch_rows;
    return rows != 0 ? std::min(rows, kMaxBatchRows) : a_->descriptor->batch_rows;
  }

  // Packed-key tables look up a whole batch at once, and need room for a match of every row.
  bool NeedsRoom() const { return s_->batch_next < s_->batch_rows && s_->num_matches + s_->batch_rows > kMaxBatchRows; }

  int32_t BeginBatch() {
    const uint32_t n = BatchSize(MaxBatchRows(), a_->num_rows - a_->next_row);
    kernel_ = &p_.entry_points->ForBatch(n, p_.counters);
    const QuernRowLayout* layout = &a_->descriptor->rows;
    if (a_->selection != nullptr)
      SelectedRows(p_.sparse_rows, a_->selection + a_->next_row, n, p_.input_rows)
          .Prefetch(layout->keys, layout->num_keys, a_->keys);
    BatchRows batch = SelectRows(*kernel_, layout, a_->keys, a_->selection, a_->next_row, n, s_->rows);
    bool is_settled = false;  // without the table
    uint32_t num_found = 0;   // of a batch that is settled
    if (rows_alone_) {
      s_->num_dropped = batch.n < n ? DroppedRows(a_->selection, a_->next_row, n, batch, s_->dropped) : 0;
      std::memset(s_->found, 0, batch.n);
      if (p_.part.found != nullptr) LoadFound(batch);
    }
    const bool is_filtered = p_.key_filter != nullptr && p_.key_filter->TakeTurn();
    if (IsPackedKey()) {
      const bool is_packed = !(HasWordsInColumn(batch.rows) && (is_filtered || IsBitmap(p_.table->layout)));
      if (is_packed) kernel_->pack(layout, a_->keys, batch.first, batch.rows, batch.n, s_->words);
      if (is_filtered) batch = KeepKeys(batch, is_packed ? KeyWords::Packed(s_->words) : ColumnWords(0, batch.first));
      if (p_.table->layout == Layout::kUnchained) HashPackedKeys(s_->words, batch.n, p_.table->zero_hashes, s_->hashes);
    } else {
      if (is_filtered) {
        const uint32_t key = p_.table->filter_key;
        if (batch.rows != nullptr) LoadFilterKeys(*layout, key, a_->keys, batch.rows, batch.n, s_->words);
        batch = KeepKeys(batch, batch.rows != nullptr ? KeyWords::Packed(s_->words) : ColumnWords(key, batch.first));
        const SelectedRows sparse(p_.sparse_rows, batch.rows, batch.n);
        for (uint32_t k = 0; k < layout->num_keys; ++k)
          if (k != key) sparse.Prefetch(a_->keys[k], ColumnRowBytes(layout->keys[k]));
      }
      is_settled = p_.short_keys != nullptr && LookInCache(batch, &num_found);
      if (!is_settled) kernel_->hash(layout, a_->keys, batch.first, batch.rows, batch.n, s_->hashes);
    }
    s_->batch_numbers = batch.rows;
    s_->batch_first = batch.first;
    s_->batch_rows = batch.n;
    s_->batch_next = is_settled ? batch.n : 0;
    s_->batch_is_open = rows_alone_;
    a_->next_row += n;
    if (!is_settled) return kQuernDone;
    const uint32_t before = s_->num_matches;
    s_->num_matches += num_found;
    tally_.hits += num_found;
    return Found(before);
  }

  // Whether the cache of short keys settles all rows of a batch. If so, their matches stand behind those there are.
  bool LookInCache(const BatchRows& batch, uint32_t* num_found) {
    if (!p_.short_keys->Takes(batch.n)) return false;
    uint32_t* const found = s_->match_index + s_->num_matches;
    uint64_t* const tuples = s_->match_tuples + s_->num_matches;
    uint32_t num_others = 0;
    *num_found =
        p_.short_keys->Look(a_->keys, batch.first, batch.rows, batch.n, found, tuples, s_->looking, &num_others);
    const bool is_settled = num_others == 0 || AskTable(batch, num_others, found, tuples, num_found);
    p_.short_keys->Count(batch.n, is_settled);
    return is_settled;
  }

  // Adds the matches of rows that the cache does not know, in their order.
  bool AskTable(const BatchRows& batch, uint32_t num_others, uint32_t* found, uint64_t* tuples, uint32_t* num_found) {
    if (num_others > batch.n / thresholds::kShortKeyOthersShare) return false;
    uint32_t rows[kMaxBatchRows];
    uint32_t* const others = s_->looking;
    for (uint32_t o = 0; o < num_others; ++o) rows[o] = blocks::RowAt(batch.rows, batch.first, others[o]);
    kernel_->hash(&a_->descriptor->rows, a_->keys, 0, rows, num_others, s_->hashes);
    if (!p_.short_keys->Ask(a_->keys, rows, s_->hashes, num_others, s_->words)) return false;
    uint32_t num_more = 0;
    for (uint32_t o = 0; o < num_others; ++o) {
      others[num_more] = others[o];
      s_->words[num_more] = s_->words[o];
      num_more += s_->words[o] != ShortKeyCache::kNoTuple;
    }
    uint32_t end = *num_found;
    *num_found += num_more;
    for (; num_more != 0; --num_more) {  // from the back, as the lists share their memory
      const uint32_t other = others[num_more - 1], if_all_match = other - (num_more - 1);
      const bool is_there = if_all_match <= end && (if_all_match == end || found[if_all_match] > other) &&
                            (if_all_match == 0 || found[if_all_match - 1] < other);
      const uint32_t at =
          is_there ? if_all_match : static_cast<uint32_t>(std::upper_bound(found, found + end, other) - found);
      std::copy_backward(found + at, found + end, found + end + num_more);
      std::copy_backward(tuples + at, tuples + end, tuples + end + num_more);
      found[at + num_more - 1] = other;
      tuples[at + num_more - 1] = s_->words[num_more - 1];
      end = at;
    }
    return true;
  }

  // Rows of which an earlier chunk of the build side has a match.
  void LoadFound(const BatchRows& batch) {
    for (uint32_t i = 0; i < batch.n; ++i) {
      const uint64_t bit = p_.part.first_row + blocks::RowAt(batch.rows, batch.first, i);
      s_->found[i] = p_.part.found[bit / 8] >> (bit % 8) & 1;
    }
  }

  void StoreFound() {
    for (uint32_t i = 0; i < s_->batch_rows; ++i) {
      const uint64_t bit = p_.part.first_row + blocks::RowAt(s_->batch_numbers, s_->batch_first, i);
      p_.part.found[bit / 8] |= static_cast<uint8_t>((s_->found[i] != 0 ? 1 : 0) << bit % 8);
    }
  }

  // Whether the packed keys of these rows lie side by side in a column.
  bool HasWordsInColumn(const uint32_t* rows) const { return rows == nullptr && HasKeyInColumn(a_->descriptor->rows); }

  // Of the rows from `first` on.
  KeyWords ColumnWords(uint32_t key, uint64_t first) const {
    return KeyWords::Of(a_->descriptor->rows.keys[key], a_->keys[key], first, p_.input_rows);
  }

  // The words of the hash batch: where BeginBatch has not packed them, those of the column.
  KeyWords LookedUpWords() const {
    const bool reads_column = HasWordsInColumn(s_->batch_numbers) && IsBitmap(p_.table->layout);
    return reads_column ? ColumnWords(0, s_->batch_first) : KeyWords::Packed(s_->words);
  }

  // Keeps the rows of a batch whose words the key filter has. Keys that are not packed are hashed without their words.
  BatchRows KeepKeys(const BatchRows& batch, const KeyWords& words) {
    const uint32_t kept = KeepKeysOf(*p_.table, batch.rows, static_cast<uint32_t>(batch.first), batch.n, words,
                                     s_->rows, IsPackedKey() ? s_->words : nullptr);
    p_.key_filter->Count(batch.n, batch.n - kept);
    *p_.num_filtered += batch.n - kept;
    return {s_->rows, 0, kept};
  }

  int32_t Test() {
    if (IsPackedKey() && p_.table->layout != Layout::kUnchained) {
      s_->batch_next = s_->batch_rows;
      if (counts_pairs_) {
        a_->output.num_rows += CountPackedKeys(*p_.table, LookedUpWords(), s_, &tally_);
        return kQuernDone;
      }
      const uint32_t before = s_->num_matches;
      LookUpPackedKeys(*p_.table, LookedUpWords(), s_, &tally_);
      *p_.num_new_candidates = s_->num_candidates;
      return Found(before);
    }
    const PrefetchSetting& setting = p_.table->probe;
    const uint32_t group_rows = setting.group_rows != 0 ? setting.group_rows : a_->descriptor->group_rows;
    const uint32_t begin = s_->batch_next, end = std::min(s_->batch_rows, begin + group_rows);
    s_->num_candidates =
        IsPackedKey() ? TestPackedKeys(*p_.table, *s_, begin, end, s_->candidates) : TestGroup(begin, end);
    s_->batch_next = end;
    if (__builtin_expect(static_cast<int>(p_.table->crowded != nullptr), 0))
      s_->num_candidates = p_.table->crowded->Narrow(s_->hashes, s_->num_candidates, s_->candidates);
    tally_.hits += * p_.num_new_candidates = s_->num_candidates;
    if (kernel_->prefetch_keys != nullptr && setting.distance != 0 && setting.stages >= 3 && s_->num_candidates > 0)
      kernel_->prefetch_keys(a_);
    return kQuernDone;
  }

  uint32_t TestGroup(uint32_t begin, uint32_t end) {
    const PrefetchSetting& setting = p_.table->probe;
    const bool prefetches_here = setting.distance != 0 && !TestPrefetches(setting);
    if (!prefetches_here) return kernel_->check_tags(a_, begin, end);
    PrefetchEntries(*p_.table, *s_, begin == 0 ? 0 : PrefetchedUpTo(begin), PrefetchedUpTo(end));
    s_->num_candidates = kernel_->check_tags(a_, begin, end);
    if (setting.stages >= 2) PrefetchTuples(*p_.table, *s_);
    return s_->num_candidates;
  }

  // The end of the rows whose entries have been prefetched when check_tags runs for the group that ends at `end`.
  uint32_t PrefetchedUpTo(uint32_t end) const { return std::min(s_->batch_rows, end + p_.table->probe.distance); }

  int32_t TakeCandidates(uint32_t max_matches) {
    const uint32_t before = s_->num_matches;
    const bool takes_runs = IsRuns(p_.table->layout);
    uint32_t num_looked_at = std::min(s_->num_candidates, max_matches - before);
    if (takes_runs) TakeRuns(max_matches);
    else if (IsPackedKey()) ComparePackedKeys(*p_.table, *a_->descriptor, max_matches, s_);
    else kernel_->compare(a_, max_matches);
    if (takes_runs) num_looked_at = s_->num_matches - before;
    const uint32_t num_new = std::min(*p_.num_new_candidates, num_looked_at);
    *p_.num_new_candidates -= num_new;
    tally_.steps += num_looked_at - num_new;
    return Found(before);
  }

  // The key matches from `begin` on are new. Those that the host decides about wait until there are many, or until no
  // more are to come of the batch.
  int32_t Found(uint32_t begin) {
    if (a_->descriptor->asks_host) return kQuernDone;
    const int32_t code = Take(begin);
    first_open_ = s_->num_matches;
    return code;
  }

  // Keeps those of the matches from `begin` on that the host keeps.
  int32_t AskHost(uint32_t begin) {
    uint64_t probe_rows[kMaxHostPairs], build_rows[kMaxHostPairs];
    uint32_t kept = begin;
    for (uint32_t first = begin; first < s_->num_matches; first += kMaxHostPairs) {
      const uint32_t n = std::min(kMaxHostPairs, s_->num_matches - first);
      uint8_t keep[kMaxHostPairs] = {};
      const uint8_t* const rows = a_->tuples + a_->descriptor->host_row_offset;
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t row = s_->match_rows[first + i];
        probe_rows[i] = p_.part.row_ids != nullptr ? p_.part.row_ids[row] : a_->first_row_id + row;
        build_rows[i] = blocks::Load<uint64_t>(rows + s_->match_tuples[first + i]);
      }
      if (p_.host->keep_pairs(p_.host->user, p_.host_context, probe_rows, build_rows, n, keep) != 0)
        return kQuernHostFailed;
      for (uint32_t i = first; i < first + n; ++i) {
        s_->match_rows[kept] = s_->match_rows[i];
        s_->match_tuples[kept] = s_->match_tuples[i];
        s_->match_index[kept] = s_->match_index[i];
        kept += keep[i - first] != 0;
      }
    }
    s_->num_matches = kept;
    return kQuernDone;
  }

  // Turns runs into matches: all tuples of a run, or only the first where one is enough.
  void TakeRuns(uint32_t max_matches) {
    uint32_t matches = s_->num_matches, remaining = 0;
    for (uint32_t c = 0; c < s_->num_candidates; ++c) {
      QuernCandidate run = s_->candidates[c];
      for (; run.begin != run.end && matches < max_matches; run.begin += a_->descriptor->rows.tuple_bytes) {
        s_->match_index[matches] = run.index;
        s_->match_tuples[matches++] = run.begin;
        if (a_->descriptor->stops_at_first) run.end = run.begin + a_->descriptor->rows.tuple_bytes;
      }
      s_->candidates[remaining] = run;
      remaining += run.begin != run.end;
    }
    s_->num_candidates = remaining;
    s_->num_matches = matches;
  }

  // Turns the key matches from `begin` on into the result of the join kind.
  int32_t Take(uint32_t begin) {
    if (counts_pairs_) {
      a_->output.num_rows += s_->num_matches - begin;
      s_->num_matches = begin;
      return kQuernDone;
    }
    const uint32_t* rows = s_->batch_numbers;
    const uint32_t first = static_cast<uint32_t>(s_->batch_first);
    for (uint32_t i = begin; i < s_->num_matches; ++i)
      s_->match_rows[i] = rows ? rows[s_->match_index[i]] : first + s_->match_index[i];
    if (a_->descriptor->num_residual != 0) s_->num_matches = kernel_->filter_residual(a_, begin, s_->num_matches);
    if (a_->descriptor->asks_host && s_->num_matches > begin) {
      if (const int32_t code = AskHost(begin); code != kQuernDone) return code;
    }
    if (rows_alone_) {
      const bool is_single = p_.kind->id == JoinKind::kSingle;
      bool second = false;
      for (uint32_t i = begin; i < s_->num_matches; ++i) {
        second |= s_->found[s_->match_index[i]] != 0;
        s_->found[s_->match_index[i]] = 1;
      }
      if (is_single && second) return kQuernSecondMatch;
    }
    if (a_->descriptor->matched_offset != 0 &&
        !(a_->descriptor->stops_at_matched && p_.table->layout == Layout::kUnchained)) {
      uint8_t* marks = a_->tuples + a_->descriptor->matched_offset;
      for (uint32_t i = begin; i < s_->num_matches; ++i) TestAndSetMatched(marks + s_->match_tuples[i]);
    }
    if (!p_.kind->pairs) s_->num_matches = begin;
    return kQuernDone;
  }

  // Once all matches are out, puts in their place the rows of the batch that are output on their own.
  int32_t EndBatch() {
    if (s_->num_matches > 0) {
      if (const int32_t code = Emit(); code != kQuernDone) return code;
    }
    s_->batch_is_open = false;
    if (p_.part.found != nullptr) StoreFound();
    if (!p_.part.is_last) return kQuernDone;
    const JoinKind id = p_.kind->id;
    if (id == JoinKind::kAntiNullAware && p_.build_has_null_key) return kQuernDone;
    const bool all = p_.kind->probe_row == RowsOut::kAlways;
    const uint8_t wanted = p_.kind->probe_row == RowsOut::kMatched ? 1 : 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s_->batch_rows; ++i) {
      s_->match_rows[n] = s_->batch_numbers ? s_->batch_numbers[i] : static_cast<uint32_t>(s_->batch_first) + i;
      s_->marks[n] = s_->found[i] != 0 ? 1 : p_.build_has_null_key ? 2 : 0;
      n += all || s_->found[i] == wanted;
    }
    const bool keeps_dropped = all || (wanted == 0 && (id != JoinKind::kAntiNullAware || p_.build_is_empty));
    for (uint32_t i = 0; keeps_dropped && i < s_->num_dropped; ++i) {
      s_->match_rows[n] = s_->dropped[i];
      s_->marks[n++] = p_.build_is_empty ? 0 : 2;
    }
    std::fill_n(s_->match_tuples, n, p_.table->null_tuple);
    s_->num_matches = n;
    return n > 0 ? Emit() : kQuernDone;
  }

  void EmitMarks(uint32_t n) {
    QuernOutColumn* out = p_.out_mark;
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t mark = s_->marks[s_->match_next + i];
      blocks::SetBitTo(static_cast<uint8_t*>(out->values), a_->output.num_rows + i, mark == 1);
      if (out->validity == nullptr) continue;
      blocks::SetBitTo(out->validity, a_->output.num_rows + i, mark != 2);
      out->null_count += mark == 2;
    }
  }

  const JoinProbe& p_;
  const QuernJoinEntryPoints* kernel_;  // of the current hash batch
  QuernJoinProbeArgs* const a_;
  QuernProbeScratch* const s_;
  LookUpTally tally_;
  const bool rows_alone_;    // probe rows are output on their own
  const bool counts_pairs_;  // only the number of pairs is needed
  uint32_t first_open_;      // matches from here on are key matches, which Take has not seen
};

}  // namespace

BatchRows SelectRows(const QuernJoinEntryPoints& kernel, const QuernRowLayout* layout, const QuernColumn* keys,
                     const uint32_t* selection, uint64_t next, uint32_t n, uint32_t* scratch) {
  const uint32_t* rows = selection ? selection + next : nullptr;
  const uint32_t kept = kernel.filter != nullptr ? kernel.filter(layout, keys, next, rows, n, scratch) : kAllRows;
  if (kept == kAllRows) return {rows, next, n};
  return {scratch, 0, kept};
}

uint32_t DroppedRows(const uint32_t* selection, uint64_t next, uint32_t n, const BatchRows& kept, uint32_t* dropped) {
  uint32_t k = 0, num_dropped = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = selection ? selection[next + i] : static_cast<uint32_t>(next + i);
    if (k < kept.n && kept.rows[k] == row) ++k;
    else dropped[num_dropped++] = row;
  }
  return num_dropped;
}

int32_t ProbeRows(const JoinProbe& probe, QuernJoinProbeArgs* args) { return Prober(probe, args).Run(); }

int64_t CopyPairs(const JoinProbe& probe, const uint32_t* rows, const uint64_t* tuples, uint64_t n,
                  QuernJoinProbeArgs* args) {
  const QuernJoinEntryPoints& kernel = probe.entry_points->Now();
  uint64_t done = 0;
  while (done < n) {
    const uint32_t some = BatchSize(args->descriptor->batch_rows, n - done);
    const int64_t fit = ReserveOutput(kernel, rows + done, tuples + done, some, args);
    if (fit < 0) return fit == kQuernOutOfMemory && done > 0 ? static_cast<int64_t>(done) : fit;
    if (kernel.emit != nullptr) kernel.emit(args, rows + done, tuples + done, static_cast<uint32_t>(fit));
    args->output.num_rows += static_cast<uint64_t>(fit);
    done += static_cast<uint64_t>(fit);
    if (fit < some) break;
  }
  return static_cast<int64_t>(done);
}

// ---- unmatched build rows ----------------------------------------------------------------------------------------

namespace {

// Takes the next morsel; returns false if there is none.
bool TakeMorsel(const JoinProbe& probe, ScanUnmatched* scan) {
  const uint64_t positions = NumPositions(*probe.table);
  const uint64_t of_table = (positions + kScanPositions - 1) / kScanPositions;
  const uint64_t morsel = scan->next_morsel->fetch_add(1, std::memory_order_relaxed);
  scan->is_table = morsel < of_table;
  if (scan->is_table) {
    scan->tuples = probe.table->tuples;
    scan->position = morsel * kScanPositions;
    scan->end = std::min(scan->position + kScanPositions, positions);
    return true;
  }
  if (morsel - of_table >= scan->null_rows->size()) return false;
  const TupleSpan& span = (*scan->null_rows)[morsel - of_table];
  scan->tuples = span.tuples;
  scan->position = 0;
  scan->end = span.num_tuples;
  return true;
}

// Collects the tuples of the morsel that are output, as matches without a probe row.
void CollectTuples(const JoinProbe& probe, ScanUnmatched* scan, const QuernJoinDescriptor& descriptor,
                   QuernProbeScratch* s) {
  const bool wants_matched = probe.kind->build_row == RowsOut::kMatched;
  const uint64_t stride =
      scan->is_table && probe.table->layout == Layout::kOpen ? probe.table->slot_bytes : descriptor.rows.tuple_bytes;
  uint32_t n = 0;
  for (; scan->position < scan->end && n < descriptor.batch_rows; ++scan->position) {
    if (scan->is_table && !HasTuple(*probe.table, scan->position)) continue;
    const uint64_t tuple = scan->position * stride;
    const bool is_matched = __atomic_load_n(scan->tuples + tuple + descriptor.matched_offset, __ATOMIC_RELAXED) != 0;
    s->match_rows[n] = kNullRow;
    s->match_tuples[n] = tuple;
    n += is_matched == wants_matched;
  }
  s->num_matches = n;
  s->match_next = 0;
}

}  // namespace

int32_t ScanUnmatchedRows(const JoinProbe& probe, ScanUnmatched* scan, QuernJoinProbeArgs* args) {
  for (;;) {
    if (args->scratch->num_matches > 0) {
      args->output.tuples = scan->tuples;
      if (const int32_t code = Prober(probe, args).Emit(); code != kQuernDone) return code;
    }
    if (scan->position == scan->end && !TakeMorsel(probe, scan)) return kQuernDone;
    CollectTuples(probe, scan, *args->descriptor, args->scratch);
  }
}

}  // namespace quern
