// SPDX-License-Identifier: Apache-2.0
// A merge of sorted runs repeatedly takes the smallest of the first rows of all runs. Of each run a *window* of rows is
// encoded to words (and stored as tuples, if the spec needs them), so that a comparison is one of numbers. When a
// window is used up, the run's batch fills it again, or the run needs input. Three runs of `keys=i32:out`, whose first
// words (upper halves) are
//
//     run 0:  80000001  80000004         leaf 0 ------------------+
//     run 1:  80000000  80000009         leaf 1 --+               +-- run 0 lost here -- run 1 wins
//     run 2:  80000003                   leaf 2 --+-- run 2 lost -+
//
// In a *loser tree* (Knuth, The Art of Computer Programming 3, 5.4.1) a node stores the run that lost there, and the
// winner is stored apart. When the winner's row has been taken, the next row of its run meets the losers on the path
// from its leaf to the root: one comparison a level, and none between siblings. Two runs need no tree but one
// comparison a row, in a loop over both windows; a single remaining run needs no comparison.
//
// Words order rows if they hold the whole key. Once a key has had a longer string, the rest of its strings is compared
// after its words and before the words of later keys (key_comparison.h).
//
// Up to a block of rows is first *picked*, as a list of their places in the windows; then the block is written, column
// by column. No window is filled again before all picked rows are written.
#include "runtime/sort/run_merger.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/sort/key_comparison.h"
#include "runtime/sort/sort_columns.h"

namespace quern {
namespace {

using blocks::Bytes;

constexpr uint32_t kMaxRuns = 65536;
// Rows in all windows together if there are many runs: words and tuples of so many rows stay in caches.
constexpr uint32_t kWindowRows = thresholds::kMergeWindowRows;
constexpr uint32_t kMinWindowRows = 64;   // a stage of a kernel costs a call or two, whatever the rows
constexpr uint32_t kLeastWindowRows = 8;  // where memory is short
constexpr uint32_t kNoRun = UINT32_MAX;

std::string_view TextOf(WindowFunction function) {
  switch (function) {
    case WindowFunction::kRowNumber: return "row_number";
    case WindowFunction::kRank: return "rank";
    case WindowFunction::kDenseRank: return "dense_rank";
  }
  return "";
}

}  // namespace

struct RunMerger::Run {
  BatchView batch;
  std::vector<QuernColumn> fields;  // of the batch, as the store stage expects them
  uint64_t next_row = 0;            // first row of the batch that is not in the window
  uint64_t first_row_id = 0;        // of the batch's row 0
  uint64_t num_rows = 0;            // of all batches
  uint32_t begin = 0, end = 0;      // places of the window's rows that are not yet picked
  bool has_last = false;            // the row before the window's first lies one place before it
  bool has_ended = false;
  HugeBuffer last_strings;  // of that row's keys
};

// A *place* is the number of a row in a window; run r has the places [r * run_places, (r + 1) * run_places). The first
// of them is for the last row of the previous window, for checking the order.
struct RunMerger::State {
  std::shared_ptr<const SortDescriptor> descriptor;
  SortEntrySource entry_points;
  std::shared_ptr<CounterSet> counter_set;
  CounterBlock counters;
  std::shared_ptr<const void> code;
  std::shared_ptr<MemoryBudget> budget;
  SortColumnWriter writer;

  uint32_t num_runs;
  uint64_t window_bytes = 0;  // of all windows; 0: no bound
  std::vector<Run> runs;
  uint32_t run_places = 0;
  HugeBuffer memory;
  std::vector<uint64_t*> words;  // words[w][place]
  uint64_t num_places = 0;
  uint64_t* row_ids = nullptr;       // by place
  uint8_t* tuples = nullptr;         // by place
  uint32_t incomplete = 0;           // keys that have had values which do not fit their words
  std::vector<KeyComparison> steps;  // comparison keys of two rows

  uint32_t num_open = 0;      // runs that have not ended
  uint32_t first_unfed = 0;   // all runs before it have had rows or have ended
  uint32_t used_up = kNoRun;  // the run whose window is fully picked, until the rows are written
  uint32_t waiting = kNoRun;  // the run whose batch is used up, until it has another
  uint64_t rows_left = 0;     // of the limit
  bool has_failed = false;

  struct Loser {
    uint64_t lead;  // of the run
    uint64_t run;
  };
  std::vector<Loser> losers;    // by node; empty: no tree
  std::vector<uint64_t> leads;  // by run: word 0 of its first row; all ones if the run has ended
  uint32_t first_run = 0;       // the winner
  bool first_has_moved = false;

  // The block of picked rows.
  HugeBuffer block_memory;
  uint32_t* picked = nullptr;  // places
  uint32_t num_picked = 0, num_written = 0;
  std::vector<uint64_t*> block_words;  // nullptr: no column needs it
  uint64_t* block_row_ids = nullptr;   // the same
  uint64_t* block_tuples = nullptr;

  State(std::shared_ptr<const SortDescriptor> s, SortEntrySource k, std::shared_ptr<const void> c,
        std::shared_ptr<MemoryBudget> b, uint32_t n);

  absl::Status Check() const;
  absl::Status CheckRun(uint32_t run) const;
  absl::Status Fail(absl::Status status);

  absl::Status Allocate();
  absl::Status Fill(uint32_t run);
  absl::Status CheckOrder(uint32_t run);
  absl::Status KeepLast(uint32_t run);
  absl::Status Advance();

  const uint8_t* TupleAt(uint32_t place) const {
    return tuples + uint64_t{place} * descriptor->get()->rows.tuple_bytes;
  }
  int Compare(uint32_t a, uint32_t b) const;
  bool Before(uint32_t a, uint32_t b) const;
  bool BeforeAtCollision(uint32_t a, uint32_t b) const;
  void BuildTree();
  void Climb(uint32_t from);

  void Pick(uint32_t most);
  void PickOne(uint32_t most);
  void PickOfTwo(uint32_t most);
  void PickOfMany(uint32_t most);
  uint32_t NextOpen(uint32_t run) const;
  absl::Status Write(OutputBatch* out);
  uint32_t NeededRun();
  absl::StatusOr<MergeState> Next(OutputBatch* out, uint32_t* needed_run);
};

// ---- memory ---------------------------------------------------------------------------------------------------------

RunMerger::State::State(std::shared_ptr<const SortDescriptor> s, SortEntrySource k, std::shared_ptr<const void> c,
                        std::shared_ptr<MemoryBudget> b, uint32_t n)
    : descriptor(std::move(s)),
      entry_points(std::move(k)),
      counter_set(entry_points.NewCounters()),
      counters(counter_set),
      code(std::move(c)),
      budget(std::move(b)),
      writer(descriptor, entry_points),
      num_runs(n) {
  num_open = n;
  steps = StepsOf(*descriptor->get(), 0);
  rows_left = descriptor->spec().limit == 0 ? UINT64_MAX : descriptor->spec().limit;
}

// Allocates all arrays at once, as soon as there is a row. Addresses and row ids precede tuples, for alignment.
absl::Status RunMerger::State::Allocate() {
  const QuernSortDescriptor& sort = *descriptor->get();
  uint64_t window_rows = std::clamp(kWindowRows / num_runs, kMinWindowRows, kMaxBatchRows);
  const uint64_t place_bytes = 8 * (sort.num_words + 1) + sort.rows.tuple_bytes;
  if (window_bytes != 0)
    window_rows = std::clamp<uint64_t>(window_bytes / (place_bytes * num_runs), kLeastWindowRows, window_rows);
  run_places = static_cast<uint32_t>(std::min(window_rows, rows_left)) + 1;
  num_places = uint64_t{run_places} * num_runs;
  QUERN_ASSIGN_OR_RETURN(memory, HugeBuffer::Allocate(budget, num_places * place_bytes, true));
  uint64_t* next = reinterpret_cast<uint64_t*>(memory.data());
  for (uint32_t w = 0; w < sort.num_words; ++w, next += num_places) words.push_back(next);
  row_ids = next;
  tuples = reinterpret_cast<uint8_t*>(next + num_places);

  QUERN_ASSIGN_OR_RETURN(block_memory,
                         HugeBuffer::Allocate(budget, uint64_t{kMaxBatchRows} * 8 * (sort.num_words + 3), false));
  next = reinterpret_cast<uint64_t*>(block_memory.data());
  picked = reinterpret_cast<uint32_t*>(next);
  block_tuples = next += kMaxBatchRows;
  block_words.assign(sort.num_words, nullptr);
  for (const SortColumn& column : descriptor->columns()) {
    if (column.source == SortColumn::Source::kRowId && block_row_ids == nullptr) block_row_ids = next += kMaxBatchRows;
    if (column.source != SortColumn::Source::kWords) continue;
    const QuernSortKey& key = sort.keys[column.index];
    for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
      uint64_t*& of_word = block_words[sort.parts[p].word];
      if (of_word == nullptr) of_word = next += kMaxBatchRows;
    }
  }
  return absl::OkStatus();
}

// ---- windows --------------------------------------------------------------------------------------------------------

// Fills the run's window, which is empty, with the next rows of its batch, which has some.
absl::Status RunMerger::State::Fill(uint32_t run) {
  const QuernSortDescriptor* sort = descriptor->get();
  Run& r = runs[run];
  const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(run_places - 1, r.batch.num_rows - r.next_row));
  const uint32_t* rows = r.batch.selection != nullptr ? r.batch.selection + r.next_row : nullptr;
  r.begin = run * run_places + 1;
  r.end = r.begin + n;
  uint64_t* to[kMaxSortWords];
  for (uint32_t w = 0; w < sort->num_words; ++w) to[w] = words[w] + r.begin;
  const QuernSortEntryPoints& kernel = entry_points.ForBatch(n, &counters);
  uint32_t found = 0;
  const RefusedCalls refused;
  kernel.encode(sort, r.batch.keys.data(), r.next_row, rows, n, to, &found);
  QUERN_RETURN_IF_ERROR(refused.status());
  if ((found & ~incomplete) != 0) {
    incomplete |= found;
    steps = StepsOf(*sort, incomplete);
  }
  uint8_t* const tuples_to = tuples + uint64_t{r.begin} * sort->rows.tuple_bytes;
  if (kernel.store != nullptr && descriptor->has_tuples()) {
    kernel.store(&sort->rows, r.fields.data(), r.next_row, rows, n, r.first_row_id, tuples_to);
  }
  for (uint32_t i = 0; i < n; ++i) row_ids[r.begin + i] = r.first_row_id + blocks::RowAt(rows, r.next_row, i);
  r.next_row += n;
  leads[run] = words[0][r.begin];
  return CheckOrder(run);
}

absl::Status RunMerger::State::CheckOrder(uint32_t run) {
  const Run& r = runs[run];
  for (uint32_t place = r.begin + (r.has_last ? 0 : 1); place < r.end; ++place) {
    if (words[0][place - 1] < words[0][place] || Compare(place - 1, place) <= 0) continue;
    return InvalidArgument("run not in order: run " + std::to_string(run) + ", row " + std::to_string(row_ids[place]) +
                           "; accepted: rows in the order of the spec's keys");
  }
  return absl::OkStatus();
}

// Keeps the window's last row for a comparison with the next batch's first, when the strings of its keys may be gone.
absl::Status RunMerger::State::KeepLast(uint32_t run) {
  const QuernSortDescriptor* sort = descriptor->get();
  Run& r = runs[run];
  const uint32_t kept = run * run_places, last = r.end - 1;
  for (uint64_t* of_word : words) of_word[kept] = of_word[last];
  r.has_last = true;
  if (!descriptor->has_tuples()) return absl::OkStatus();
  uint8_t* const tuple = tuples + uint64_t{kept} * sort->rows.tuple_bytes;
  std::memcpy(tuple, TupleAt(last), sort->rows.tuple_bytes);
  struct Long {
    uint8_t* field;
    Bytes bytes;
  } strings[kMaxKeys];
  uint32_t num_strings = 0;
  uint64_t num_bytes = 0;
  for (uint32_t k = 0; k < sort->num_keys; ++k) {
    const QuernSortKey& key = sort->keys[k];
    if (key.field == kNoField || !blocks::IsVariableStorage(key.storage)) continue;
    const QuernField& field = *SortFieldOf(sort, &key);
    if (field.null_mask != 0 && (tuple[field.null_offset] & field.null_mask) != 0) continue;
    const Bytes bytes = blocks::BytesOf(tuple + field.tuple_offset, field.width_bytes);
    if (bytes.length <= kInlineStringBytes) continue;
    strings[num_strings++] = {tuple + field.tuple_offset, bytes};
    num_bytes += bytes.length;
  }
  if (num_bytes > r.last_strings.bytes()) {
    r.last_strings.Free();
    QUERN_ASSIGN_OR_RETURN(r.last_strings, HugeBuffer::Allocate(budget, num_bytes, false));
  }
  uint8_t* to = r.last_strings.data();
  for (uint32_t i = 0; i < num_strings; to += strings[i++].bytes.length) {
    std::memcpy(to, strings[i].bytes.data, strings[i].bytes.length);
    blocks::StoreString({to, strings[i].bytes.length}, strings[i].field, 0);
  }
  return absl::OkStatus();
}

// Refills the window that is used up from its run's batch, if that has rows left.
absl::Status RunMerger::State::Advance() {
  if (used_up == kNoRun) return absl::OkStatus();
  const uint32_t run = std::exchange(used_up, kNoRun);
  Run& r = runs[run];
  QUERN_RETURN_IF_ERROR(KeepLast(run));
  if (r.next_row < r.batch.num_rows) return Fill(run);
  r.batch = {};
  r.next_row = 0;
  waiting = run;
  return absl::OkStatus();
}

// ---- order ----------------------------------------------------------------------------------------------------------

// Compares two rows by their keys: negative, 0 or positive.
int RunMerger::State::Compare(uint32_t a, uint32_t b) const {
  return CompareRows(*descriptor->get(), steps, {words[0] + a, num_places, TupleAt(a)},
                     {words[0] + b, num_places, TupleAt(b)});
}

// Whether the first row of run a comes before that of run b.
bool RunMerger::State::Before(uint32_t a, uint32_t b) const {
  return leads[a] != leads[b] ? leads[a] < leads[b] : BeforeAtCollision(a, b);
}

bool RunMerger::State::BeforeAtCollision(uint32_t a, uint32_t b) const {
  if (runs[a].has_ended || runs[b].has_ended) return runs[a].has_ended == runs[b].has_ended ? a < b : runs[b].has_ended;
  const int order = Compare(runs[a].begin, runs[b].begin);
  return order != 0 ? order < 0 : a < b;
}

// Node n has the nodes 2n and 2n+1 below it, the leaf of run r is node num_runs + r, and the root is node 1.
void RunMerger::State::BuildTree() {
  losers.assign(num_runs, {});
  std::vector<uint32_t> winners(2 * size_t{num_runs});
  for (uint32_t r = 0; r < num_runs; ++r) winners[num_runs + r] = r;
  for (uint32_t node = num_runs - 1; node >= 1; --node) {
    const uint32_t a = winners[2 * node], b = winners[2 * node + 1];
    const bool a_wins = Before(a, b);
    winners[node] = a_wins ? a : b;
    const uint32_t loser = a_wins ? b : a;
    losers[node] = {leads[loser], loser};
  }
  first_run = winners[1];
  first_has_moved = false;
}

// Finds the new winner when the previous one has another row, or none. Who wins at a node is as good as random, and a
// branch that is predicted wrongly costs as much as all nodes of a path: so winner and loser are exchanged by masks.
void RunMerger::State::Climb(uint32_t from) {
  Loser* const nodes = losers.data();
  uint64_t run = from, lead = leads[from];
  for (uint32_t node = (num_runs + from) / 2; node >= 1; node /= 2) {
    const Loser loser = nodes[node];
    bool loser_wins = loser.lead < lead;
    if (loser.lead == lead) [[unlikely]]
      loser_wins = BeforeAtCollision(static_cast<uint32_t>(loser.run), static_cast<uint32_t>(run));
    uint64_t all_or_none = uint64_t{0} - static_cast<uint64_t>(loser_wins);
    asm("" : "+r"(all_or_none));  // or else compilers make a branch of it
    const uint64_t leads_differ = (loser.lead ^ lead) & all_or_none, runs_differ = (loser.run ^ run) & all_or_none;
    nodes[node] = {loser.lead ^ leads_differ, loser.run ^ runs_differ};
    lead ^= leads_differ;
    run ^= runs_differ;
  }
  first_run = static_cast<uint32_t>(run);
}

// ---- picking --------------------------------------------------------------------------------------------------------

uint32_t RunMerger::State::NextOpen(uint32_t run) const {
  while (runs[run].has_ended) ++run;
  return run;
}

// Picks up to `most` rows, until a window is used up. The number of open runs only falls, so a slower way of picking
// never follows a faster one.
void RunMerger::State::Pick(uint32_t most) {
  num_picked = num_written = 0;
  if (num_open == 1) return PickOne(most);
  if (num_open == 2) return PickOfTwo(most);
  PickOfMany(most);
}

void RunMerger::State::PickOne(uint32_t most) {
  const uint32_t run = NextOpen(0);
  Run& r = runs[run];
  while (num_picked < most && r.begin < r.end) picked[num_picked++] = r.begin++;
  if (r.begin == r.end) used_up = run;
}

void RunMerger::State::PickOfTwo(uint32_t most) {
  const uint32_t a = NextOpen(0), b = NextOpen(a + 1);
  uint32_t i = runs[a].begin, j = runs[b].begin, n = 0;
  const uint32_t i_end = runs[a].end, j_end = runs[b].end;
  const uint64_t* const lead = words[0];
  const bool lead_says_all = steps.size() == 1;
  while (n < most && i < i_end && j < j_end) {
    const bool takes_b = lead[j] < lead[i] || (lead[j] == lead[i] && !lead_says_all && Compare(j, i) < 0);
    picked[n++] = takes_b ? j : i;
    j += takes_b;
    i += !takes_b;
  }
  num_picked = n;
  runs[a].begin = i;
  runs[b].begin = j;
  if (i == i_end) used_up = a;
  else if (j == j_end) used_up = b;
}

void RunMerger::State::PickOfMany(uint32_t most) {
  if (losers.empty()) BuildTree();
  while (num_picked < most) {
    if (first_has_moved) Climb(first_run);
    first_has_moved = true;
    Run& r = runs[first_run];
    picked[num_picked++] = r.begin++;
    if (r.begin == r.end) {
      used_up = first_run;
      return;
    }
    leads[first_run] = words[0][r.begin];
  }
}

// ---- writing --------------------------------------------------------------------------------------------------------

// Writes the picked rows that are not written yet, as far as they fit.
absl::Status RunMerger::State::Write(OutputBatch* out) {
  if (num_written == num_picked) return absl::OkStatus();
  if (out->num_columns() == 0) {
    out->set_num_rows(out->num_rows() + num_picked - num_written);
    num_written = num_picked;
    return absl::OkStatus();
  }
  const uint32_t n = num_picked - num_written;
  const uint32_t* const places = picked + num_written;
  for (size_t w = 0; w < block_words.size(); ++w)
    for (uint32_t i = 0; i < n && block_words[w] != nullptr; ++i) block_words[w][i] = words[w][places[i]];
  for (uint32_t i = 0; i < n && block_row_ids != nullptr; ++i) block_row_ids[i] = row_ids[places[i]];
  for (uint32_t i = 0; i < n && descriptor->has_tuples(); ++i)
    block_tuples[i] = reinterpret_cast<uint64_t>(TupleAt(places[i]));
  SortedBlock block;
  block.n = n;
  block.words = block_words.data();
  block.tuples = block_tuples;
  block.row_ids = block_row_ids;
  QUERN_ASSIGN_OR_RETURN(const uint32_t written, writer.Append(block, out));
  num_written += written;
  return absl::OkStatus();
}

// A run that needs input or an end before any row can be picked, or kNoRun.
uint32_t RunMerger::State::NeededRun() {
  if (waiting != kNoRun) return waiting;
  while (first_unfed < num_runs && (runs[first_unfed].has_ended || runs[first_unfed].begin < runs[first_unfed].end))
    ++first_unfed;
  return first_unfed < num_runs ? first_unfed : kNoRun;
}

absl::StatusOr<MergeState> RunMerger::State::Next(OutputBatch* out, uint32_t* needed_run) {
  const bool counts = out->num_columns() == 0;
  for (;;) {
    QUERN_RETURN_IF_ERROR(Write(out));
    if (num_written < num_picked) return MergeState::kRows;
    if (rows_left == 0) return MergeState::kDone;
    QUERN_RETURN_IF_ERROR(Advance());
    if (const uint32_t needed = NeededRun(); needed != kNoRun) {
      *needed_run = needed;
      return MergeState::kNeedsInput;
    }
    if (num_open == 0) return MergeState::kDone;
    const uint64_t room = counts ? kMaxBatchRows : out->capacity() - out->num_rows();
    if (room == 0) return MergeState::kRows;
    Pick(static_cast<uint32_t>(std::min({uint64_t{kMaxBatchRows}, room, rows_left})));
    rows_left -= num_picked;
  }
}

// ---- what callers see -----------------------------------------------------------------------------------------------

absl::Status RunMerger::State::Check() const {
  if (num_runs == 0 || num_runs > kMaxRuns) {
    return InvalidArgument("number of runs out of range: " + std::to_string(num_runs) + "; accepted: 1 to 65536");
  }
  if (!descriptor->spec().window.empty()) {
    return InvalidArgument("window function in a merge: " + std::string(TextOf(descriptor->spec().window[0])) +
                           "; accepted: specs without window functions");
  }
  if (!has_failed) return absl::OkStatus();
  return absl::FailedPreconditionError("merge after a failed call: rows are missing; accepted: a new merger");
}

absl::Status RunMerger::State::CheckRun(uint32_t run) const {
  QUERN_RETURN_IF_ERROR(Check());
  if (run >= num_runs) {
    return InvalidArgument("unknown run: " + std::to_string(run) + "; accepted: 0 to " + std::to_string(num_runs - 1));
  }
  const Run& r = runs[run];
  if (r.has_ended) {
    return absl::FailedPreconditionError("input after the run's end: run " + std::to_string(run) +
                                         "; accepted: runs that need input");
  }
  if (run == waiting || (r.begin == r.end && run != used_up)) return absl::OkStatus();
  return absl::FailedPreconditionError("input while the run has rows left: run " + std::to_string(run) +
                                       "; accepted: runs that need input");
}

absl::Status RunMerger::State::Fail(absl::Status status) {
  has_failed |= !status.ok();
  return status;
}

RunMerger::RunMerger(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points,
                     std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, uint32_t num_runs)
    : state_(std::make_unique<State>(std::move(descriptor), std::move(entry_points), std::move(code), std::move(budget),
                                     num_runs)) {
  if (num_runs > kMaxRuns) return;
  state_->runs.resize(num_runs);
  state_->leads.resize(num_runs);
}

RunMerger::~RunMerger() = default;

void RunMerger::SetWindowBytes(uint64_t bytes) { state_->window_bytes = bytes; }

void RunMerger::SetLimit(uint64_t num_rows) { state_->rows_left = std::min(state_->rows_left, num_rows); }

Counters RunMerger::counters() const { return state_->counter_set->Sum(); }

absl::Status RunMerger::Input(uint32_t run, const BatchView& batch) {
  State& s = *state_;
  const CallTimer timer(&s.counters);
  QUERN_RETURN_IF_ERROR(s.CheckRun(run));
  const SortSpec& spec = s.descriptor->spec();
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, spec.keys.size(), spec.payload.size()));
  Run& r = s.runs[run];
  if (batch.num_rows == 0) return absl::OkStatus();
  r.fields.clear();
  for (const SortFieldSource& field : s.descriptor->fields())
    r.fields.push_back(field.is_key ? batch.keys[field.index] : batch.payload[field.index]);
  r.batch = batch;
  r.first_row_id = batch.first_row_id == kCountedRowIds ? r.num_rows : batch.first_row_id;
  r.num_rows += batch.num_rows;
  r.next_row = 0;
  if (s.memory.data() == nullptr) QUERN_RETURN_IF_ERROR(s.Fail(s.Allocate()));
  if (s.waiting == run) s.waiting = kNoRun;
  return s.Fail(s.Fill(run));
}

absl::Status RunMerger::End(uint32_t run) {
  State& s = *state_;
  QUERN_RETURN_IF_ERROR(s.CheckRun(run));
  if (s.waiting == run) s.waiting = kNoRun;
  s.runs[run].has_ended = true;
  s.leads[run] = UINT64_MAX;
  --s.num_open;
  return absl::OkStatus();
}

absl::StatusOr<MergeState> RunMerger::Next(OutputBatch* out) {
  State& s = *state_;
  const CallTimer timer(&s.counters);
  QUERN_RETURN_IF_ERROR(s.Check());
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, s.descriptor->columns().size()));
  QUERN_RETURN_IF_ERROR(out->Reset());
  absl::StatusOr<MergeState> next = s.Next(out, &needed_run_);
  if (!next.ok()) s.has_failed = true;
  return next;
}

}  // namespace quern
