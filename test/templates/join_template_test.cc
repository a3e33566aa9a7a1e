// SPDX-License-Identifier: Apache-2.0
// The join template, compiled natively and linked with the simplest holes that make a join of it: one u64 key, which is
// null where all its bits are set, one u64 of payload, and the residual predicate `probe payload < build payload`.
// There is no LLVM and no generator: a debugger and the sanitizers see the loops as written. Each kind of join runs
// twice, with the key in a field of its own (the template's hash, check_tags and compare) and as a packed key (the
// loops of runtime/join/tables/packed_key_table.cc), and must return the rows of two nested loops:
//
//     build  7:70 7:71 null:72     probe  7 null 9
//     full   (0,70) (0,71) (1,-) (2,-) (-,72)     right_semi  (-,70) (-,71)
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "ir-templates/holes.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/join_loop.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/join/tables/unchained_table.h"
#include "test/templates/guarded_buffer.h"

extern "C" {
#define QUERN_JOIN_ENTRY(field, result, parameters) result quern_join_##field parameters;
#include "runtime/abi/join_entry_points.def"
}

namespace b = quern::blocks;

namespace quern::test {
namespace {

struct Tuple {
  uint64_t key, payload;
  uint8_t mark, is_null;  // is_null: the tuple's key is null
  uint8_t padding[6];
};
static_assert(sizeof(Tuple) == 24);

constexpr uint64_t kNullKey = UINT64_MAX;
constexpr uint64_t kNull = UINT64_MAX;  // in a result

bool g_zero_hashes = false, g_prefetches = true;

const uint64_t* Values(const QuernColumn* column) { return static_cast<const uint64_t*>(column->values); }

QuernJoinEntryPoints Kernel() {
  return {
#define QUERN_JOIN_ENTRY(field, result, parameters) quern_join_##field,
#include "runtime/abi/join_entry_points.def"
  };
}

struct Rows {
  std::vector<uint64_t> keys, payload;
};

Rows RandomRows(uint64_t n, uint64_t distinct, bool nulls, uint64_t seed) {
  std::mt19937_64 random(seed);
  Rows rows;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t key = distinct == 0 ? i * 3 : random() % distinct;  // 0: unique
    rows.keys.push_back(nulls && random() % 8 == 0 ? kNullKey : key);
    rows.payload.push_back(random() >> 1);
  }
  return rows;
}

// ---- expected results ----

using ResultRow = std::tuple<uint64_t, uint64_t, int>;  // probe row, build payload, mark column (3: none)

struct Result {
  int32_t code = kQuernDone;
  std::vector<ResultRow> rows;
  bool operator==(const Result&) const = default;
};

bool ComesOut(RowsOut when, bool matched) {
  return when == RowsOut::kAlways || (when == RowsOut::kMatched && matched) ||
         (when == RowsOut::kUnmatched && !matched);
}

bool IsMatch(const Rows& build, size_t b, const Rows& probe, size_t p, bool residual) {
  if (build.keys[b] == kNullKey || build.keys[b] != probe.keys[p]) return false;
  return !residual || probe.payload[p] < build.payload[b];
}

Result Expected(const JoinKindRow& kind, const Rows& build, const Rows& probe, bool residual) {
  Result result;
  const bool has_null = std::count(build.keys.begin(), build.keys.end(), kNullKey) > 0, is_empty = build.keys.empty();
  std::vector<bool> met(build.keys.size());
  for (size_t p = 0; p < probe.keys.size(); ++p) {
    size_t num_matches = 0;
    for (size_t b = 0; b < build.keys.size(); ++b) {
      if (!IsMatch(build, b, probe, p, residual)) continue;
      met[b] = true;
      ++num_matches;
      if (kind.pairs) result.rows.emplace_back(p, build.payload[b], 3);
    }
    if (kind.id == JoinKind::kSingle && num_matches > 1) return {kQuernSecondMatch, {}};
    const bool is_unknown = num_matches == 0 && !is_empty && (has_null || probe.keys[p] == kNullKey);
    if (kind.id == JoinKind::kAntiNullAware && is_unknown) continue;
    const int mark = kind.probe_row != RowsOut::kAlways ? 3 : num_matches > 0 ? 1 : is_unknown ? 2 : 0;
    if (ComesOut(kind.probe_row, num_matches > 0)) result.rows.emplace_back(p, kNull, mark);
  }
  for (size_t b = 0; b < build.keys.size(); ++b)
    if (ComesOut(kind.build_row, met[b])) result.rows.emplace_back(kNull, build.payload[b], 3);
  std::sort(result.rows.begin(), result.rows.end());
  return result;
}

// ---- the join; all buffers have exactly the size that the ABI promises and end at a red zone ----

struct Tuning {
  uint32_t batch_rows, group_rows, directory_bits;
  bool zero_hashes;
  PrefetchSetting prefetch;
};

class TemplateJoin {
 public:
  TemplateJoin(const JoinKindRow& kind, bool is_word, bool residual, const Tuning& tuning, Guard guard)
      : kind_(kind),
        kernel_(Kernel()),
        tuning_(tuning),
        guard_(guard),
        directory_(((uint64_t{1} << tuning.directory_bits) + 1) * sizeof(uint64_t), guard),
        scratch_(sizeof(QuernProbeScratch), guard) {
    g_zero_hashes = tuning.zero_hashes;
    g_prefetches = tuning.prefetch.distance != 1;
    key_.storage = k64;
    key_.index_storage = kNoStorage;
    descriptor_.rows.keys = &key_;
    descriptor_.rows.num_keys = descriptor_.rows.num_fields = descriptor_.num_probe = 1;
    descriptor_.rows.num_output_fields = 1;
    descriptor_.num_residual = residual ? 1 : 0;
    descriptor_.rows.tuple_bytes = sizeof(Tuple);
    descriptor_.matched_offset = kind.flags_matched_rows() ? offsetof(Tuple, mark) : 0;
    descriptor_.rows.packed_bytes = is_word ? 8 : 0;
    descriptor_.stops_at_first = !kind.pairs && !kind.flags_matched_rows() && !residual;
    descriptor_.stops_at_matched = !kind.pairs && kind.flags_matched_rows() && !residual;
    descriptor_.batch_rows = tuning.batch_rows;
    descriptor_.group_rows = tuning.group_rows;
    descriptor_.rows.zero_hashes = tuning.zero_hashes;
  }

  void Build(const Rows& build) {
    StoreRows(build);
    table_tuples_ = GuardedBuffer((tuples_.num_tuples + 1) * sizeof(Tuple), guard_);
    UnchainedBuild unchained;
    unchained.format = {sizeof(Tuple), descriptor_.rows.packed_bytes, tuning_.zero_hashes};
    unchained.directory = directory_.as<uint64_t>() + 1;
    unchained.shift = 64 - tuning_.directory_bits;
    unchained.end_slot = uint64_t{1} << tuning_.directory_bits;
    unchained.prefetch = tuning_.prefetch;
    unchained.target = table_tuples_.data();
    CountTuples(unchained, tuples_);
    SumSlots(unchained);
    ScatterTuples(unchained, tuples_);
    EXPECT_EQ(unchained.directory[unchained.end_slot - 1] >> kTagBits, tuples_.num_tuples * sizeof(Tuple));
    table_.tuple_bytes = sizeof(Tuple);
    table_.packed_bytes = descriptor_.rows.packed_bytes;
    table_.zero_hashes = tuning_.zero_hashes;
    table_.probe = table_.build = tuning_.prefetch;
    table_.num_tuples = tuples_.num_tuples;
    table_.tuples = table_tuples_.data();
    table_.null_tuple = tuples_.num_tuples * sizeof(Tuple);
    b::Store(table_.tuples + table_.null_tuple + offsetof(Tuple, is_null), uint8_t{1});
    table_.directory = unchained.directory;
    table_.shift = unchained.shift;
  }

  // With capacity 0 it only counts.
  Result Probe(const Rows& probe, uint64_t capacity) {
    const GuardedBuffer keys = GuardedBuffer::Of(probe.keys, guard_),
                        payload = GuardedBuffer::Of(probe.payload, guard_);
    QuernColumn key_column = {}, payload_columns[2] = {};
    key_column.values = keys.data();
    payload_columns[1].values = payload.data();  // the column of the residual predicate follows the payload
    QuernJoinProbeArgs args = {};
    args.descriptor = &descriptor_;
    args.keys = &key_column;
    args.payload = payload_columns;
    args.num_rows = probe.keys.size();
    args.tuples = table_.tuples;
    args.output.tuples = table_.tuples;
    args.directory = table_.directory;
    args.tags = DirectoryTags();
    args.shift = table_.shift;
    args.scratch = scratch_.as<QuernProbeScratch>();
    Result result;
    std::atomic<uint64_t> next_morsel{0};
    ScanUnmatched scan;
    scan.next_morsel = &next_morsel;
    scan.null_rows = &null_rows_;
    Run(&args, capacity, &result, [](const JoinProbe& p, QuernJoinProbeArgs* a) { return ProbeRows(p, a); });
    if (kind_.flags_matched_rows() && result.code == kQuernDone) {
      Run(&args, capacity, &result,
          [&](const JoinProbe& p, QuernJoinProbeArgs* a) { return ScanUnmatchedRows(p, &scan, a); });
    }
    if (result.code < 0) result.rows.clear();
    std::sort(result.rows.begin(), result.rows.end());
    return result;
  }

 private:
  // Tuples in order of arrival, batch by batch; those with a null key are kept apart.
  void StoreRows(const Rows& build) {
    const uint64_t n = build.keys.size();
    const GuardedBuffer keys = GuardedBuffer::Of(build.keys, guard_),
                        payload = GuardedBuffer::Of(build.payload, guard_);
    flat_ = GuardedBuffer(n * sizeof(Tuple), guard_);
    null_tuples_ = GuardedBuffer(n * sizeof(Tuple), guard_);
    hashes_ = GuardedBuffer(n * sizeof(uint64_t), guard_);
    tuples_ = {flat_.data(), descriptor_.rows.packed_bytes == 0 ? hashes_.as<uint64_t>() : nullptr, 0, n};
    TupleSpan null_rows = {null_tuples_.data(), nullptr, 0, n};
    QuernColumn key_column = {}, payload_column = {};
    key_column.values = keys.data();
    payload_column.values = payload.data();
    std::vector<uint32_t> kept(tuning_.batch_rows), dropped(tuning_.batch_rows);
    for (uint64_t next = 0; next < n; next += tuning_.batch_rows) {
      const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(tuning_.batch_rows, n - next));
      const BatchRows batch = SelectRows(kernel_, &descriptor_.rows, &key_column, nullptr, next, rows, kept.data());
      const uint32_t num_dropped = batch.n < rows ? DroppedRows(nullptr, next, rows, batch, dropped.data()) : 0;
      const auto append = [&](const BatchRows& of, TupleSpan* to) {
        uint8_t* const tuples = to->tuples + to->num_tuples * sizeof(Tuple);
        kernel_.store(&descriptor_.rows, &key_column, &payload_column, of.first, of.rows, of.n, 0, tuples);
        if (to->hashes)
          kernel_.hash(&descriptor_.rows, &key_column, of.first, of.rows, of.n, to->hashes + to->num_tuples);
        to->num_tuples += of.n;
      };
      append(batch, &tuples_);
      append({dropped.data(), 0, num_dropped}, &null_rows);
    }
    has_null_key_ = null_rows.num_tuples > 0;
    if (kind_.build_row == RowsOut::kUnmatched) null_rows_ = {null_rows};
    is_empty_ = n == 0;
  }

  template <class Fill>
  void Run(QuernJoinProbeArgs* args, uint64_t capacity, Result* result, Fill&& fill) {
    const bool counts = capacity == 0;
    const GuardedBuffer rows(capacity * 8, guard_), payload(capacity * 8, guard_), marks((capacity + 7) / 8, guard_);
    const GuardedBuffer valid_marks((capacity + 7) / 8, guard_);
    QuernOutColumn out_probe = {}, out_build = {}, out_mark = {};
    out_probe.values = rows.data();
    out_build.values = payload.data();
    out_mark.values = marks.data();
    out_mark.validity = valid_marks.data();
    const bool has_mark = kind_.probe_row == RowsOut::kAlways;
    CounterBlock counters(nullptr);
    uint32_t num_new_candidates = 0;
    JoinProbe probe;
    probe.entry_points = &entry_points_;
    probe.kind = &kind_;
    probe.table = &table_;
    probe.build_is_empty = is_empty_;
    probe.build_has_null_key = has_null_key_;
    probe.counts = counts;
    probe.out_mark = has_mark && !counts ? &out_mark : nullptr;
    probe.counters = &counters;
    probe.num_new_candidates = &num_new_candidates;
    args->out_probe = &out_probe;
    args->output.columns = &out_build;
    args->output.capacity = counts ? UINT64_MAX : capacity;
    do {
      args->output.num_rows = 0;
      std::fill_n(marks.data(), marks.bytes(), uint8_t{0});
      std::fill_n(valid_marks.data(), marks.bytes(), uint8_t{0});
      result->code = fill(probe, args);
      for (uint64_t i = 0; i < args->output.num_rows && result->code >= 0; ++i) {
        if (counts) result->rows.emplace_back(0, 0, 0);
        else
          result->rows.emplace_back(rows.as<uint64_t>()[i], payload.as<uint64_t>()[i],
                                    MatchedFlagAt(has_mark, out_mark, i));
      }
    } while (result->code == kQuernFull);
  }

  static int MatchedFlagAt(bool has_mark, const QuernOutColumn& out, uint64_t row) {
    if (!has_mark) return 3;
    return !b::Bit(out.validity, row) ? 2 : b::Bit(static_cast<const uint8_t*>(out.values), row);
  }

  const JoinKindRow& kind_;
  const QuernJoinEntryPoints kernel_;
  const JoinEntrySource entry_points_{kernel_};
  const Tuning tuning_;
  const Guard guard_;
  QuernField key_ = {};
  QuernJoinDescriptor descriptor_ = {};
  GuardedBuffer directory_, scratch_;
  GuardedBuffer flat_{0, Guard::kBehind}, null_tuples_{0, Guard::kBehind}, hashes_{0, Guard::kBehind},
      table_tuples_{0, Guard::kBehind};
  TupleSpan tuples_;
  TupleList null_rows_;
  JoinTable table_;
  bool is_empty_ = true, has_null_key_ = false;
};

struct Size {
  uint64_t build_rows, distinct;  // 0: unique
};
constexpr Size kSizes[] = {{0, 1}, {1, 1}, {2, 1}, {7, 4}, {300, 150}, {300, 0}, {1025, 512}};
constexpr Tuning kTunings[] = {{1, 1, 4, false, {0}},
                               {7, 3, 4, false, {1}},
                               {7, 7, 11, false, {kMaxPrefetchDistance}},
                               {1024, 64, 11, false, {0}},
                               {1024, 3, 4, false, {16}},
                               {4096, 4096, 8, false, {2, 5, 100, 1, PrefetchHint::kT0}},
                               {1024, 64, 11, false, {kWholeBatch, 0, 0, 3, PrefetchHint::kNta}},
                               {64, 64, 8, false, {kWholeBatch, 32, 4096, 1, PrefetchHint::kT1}},
                               {1024, 1, 8, false, {40, 7, 0, 2, PrefetchHint::kWrite}},
                               {1024, 64, 4, true, {16}}};

class JoinTemplate : public testing::TestWithParam<std::tuple<JoinKind, bool, bool>> {};

TEST_P(JoinTemplate, GivesTheRowsOfNestedLoopsWhateverTheTuning) {
  const auto [id, is_word, residual] = GetParam();
  const JoinKindRow& kind = RowOf(id);
  if (residual && id == JoinKind::kAntiNullAware) return;
  const bool nulls = !residual || id != JoinKind::kMark;
  uint32_t turn = 0;
  for (const Size& size : kSizes) {
    const uint64_t n = size.build_rows;
    const Rows build = RandomRows(n, size.distinct, nulls && n > 2, n);
    const Rows probe =
        RandomRows(n + 3, size.distinct == 0 ? 3 * n : size.distinct + size.distinct / 2 + 1, nulls && n > 1, n + 1);
    const Result expected = Expected(kind, build, probe, residual);
    for (const Tuning& tuning : kTunings) {
      if (tuning.zero_hashes && n > 300) continue;
      for (const uint64_t capacity : {1, 3, 100000, 0}) {
        TemplateJoin join(kind, is_word, residual, tuning, turn++ % 2 == 0 ? Guard::kBehind : Guard::kInFront);
        join.Build(build);
        const Result result = join.Probe(probe, capacity);
        if (capacity == 0) {
          EXPECT_EQ(result.rows.size(), expected.rows.size()) << n << " rows counted, batch " << tuning.batch_rows;
        } else {
          EXPECT_EQ(result, expected) << n << " rows, batch " << tuning.batch_rows << ", capacity " << capacity;
        }
      }
    }
  }
}

std::vector<JoinKind> AllIds() {
  std::vector<JoinKind> ids;
  for (const JoinKindRow& kind : AllJoinKinds()) ids.push_back(kind.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Kinds, JoinTemplate,
                         testing::Combine(testing::ValuesIn(AllIds()), testing::Bool(), testing::Bool()),
                         [](const auto& of) {
                           return std::string(RowOf(std::get<0>(of.param)).text) +
                                  (std::get<1>(of.param) ? "_word" : "_wide") +
                                  (std::get<2>(of.param) ? "_residual" : "");
                         });

}  // namespace
}  // namespace quern::test

// The holes, as short as possible.
using namespace quern::test;  // NOLINT

extern "C" {
uint32_t quern_hole_tuple_bytes(const QuernRowLayout*) { return sizeof(Tuple); }
bool quern_hole_prefetches(const QuernRowLayout*) { return g_prefetches; }
uint32_t quern_hole_matched_offset(const QuernJoinDescriptor* descriptor) { return descriptor->matched_offset; }
bool quern_hole_stops_at_first(const QuernJoinDescriptor* descriptor) { return descriptor->stops_at_first; }
void quern_hole_prefetch_keys(const QuernRowLayout*, const uint8_t*) {}
bool quern_hole_stops_at_matched(const QuernJoinDescriptor* descriptor) { return descriptor->stops_at_matched; }
uint32_t quern_hole_filter_rows(const QuernRowLayout*, const QuernColumn* keys, uint64_t first, const uint32_t* rows,
                                uint32_t n, uint32_t* out) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i)
    if (const uint32_t row = b::RowAt(rows, first, i); Values(keys)[row] != kNullKey) out[kept++] = row;
  return kept == n && rows == nullptr ? kAllRows : kept;
}
void quern_hole_pack_rows(const QuernRowLayout*, const QuernColumn* keys, uint64_t first, const uint32_t* rows,
                          uint32_t n, uint64_t* words) {
  for (uint32_t i = 0; i < n; ++i) words[i] = Values(keys)[b::RowAt(rows, first, i)];
}
void quern_hole_hash_rows(const QuernRowLayout*, const QuernColumn* keys, uint64_t first, const uint32_t* rows,
                          uint32_t n, uint64_t* hashes) {
  for (uint32_t i = 0; i < n; ++i)
    hashes[i] = g_zero_hashes ? 0 : b::Mix(Values(keys)[b::RowAt(rows, first, i)], b::quern_hash_secret);
}
void quern_hole_store_rows(const QuernRowLayout*, const QuernColumn* keys, const QuernColumn* payload, uint64_t first,
                           const uint32_t* rows, uint32_t n, uint64_t, uint8_t* tuples) {
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = b::RowAt(rows, first, i);
    b::Store(tuples + i * sizeof(Tuple), Tuple{Values(keys)[row], Values(payload)[row], 0, 0, {}});
  }
}
bool quern_hole_equal_row(const QuernRowLayout*, const QuernColumn* keys, uint32_t row, const uint8_t* tuple) {
  return Values(keys)[row] == b::Load<Tuple>(tuple).key;
}
bool quern_hole_residual_row(const QuernJoinDescriptor*, const QuernColumn* payload, uint32_t row,
                             const uint8_t* tuple) {
  return Values(&payload[1])[row] < b::Load<Tuple>(tuple).payload;
}
int64_t quern_hole_reserve_matches(QuernJoinProbeArgs*, const uint32_t*, const uint64_t*, uint32_t n) { return n; }
void quern_hole_emit_matches(QuernJoinProbeArgs* args, const uint32_t* rows, const uint64_t* tuples, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    const Tuple tuple = b::Load<Tuple>(args->output.tuples + tuples[i]);
    static_cast<uint64_t*>(args->out_probe->values)[args->output.num_rows + i] = rows[i] == kNullRow ? kNull : rows[i];
    static_cast<uint64_t*>(args->output.columns->values)[args->output.num_rows + i] =
        tuple.is_null != 0 ? kNull : tuple.payload;
  }
}
}
