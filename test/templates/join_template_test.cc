// SPDX-License-Identifier: Apache-2.0
// The join template, compiled natively and linked with the simplest holes that make a join of it: one u64 key, one u64 of payload. No LLVM,
// no generator, no runtime: a debugger and the sanitizers see the loops as they were written.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_map>
#include <vector>

#include "ir-templates/holes.h"
#include "runtime/blocks.h"
#include "runtime/join_loop.h"
#include "runtime/unchained_table.h"
#include "test/templates/guarded_buffer.h"

extern "C" {
#define QUERN_JOIN_ENTRY(field, result, parameters) result quern_join_##field parameters;
#include "runtime/join_entry_points.def"
}

namespace quern::test {
namespace {

struct Tuple {
  uint64_t key, payload;
};

bool g_zero_hashes = false, g_prefetches = true;

const uint64_t* Values(const QuernColumn* column) { return static_cast<const uint64_t*>(column->values); }

QuernJoinEntryPoints Kernel() {
  return {
#define QUERN_JOIN_ENTRY(field, result, parameters) quern_join_##field,
#include "runtime/join_entry_points.def"
  };
}

struct Rows {
  std::vector<uint64_t> keys, payload;
};

using Matches = std::vector<std::pair<uint64_t, uint64_t>>;  // probe row, payload

Matches Expected(const Rows& build, const std::vector<uint64_t>& probe) {
  std::unordered_multimap<uint64_t, uint64_t> table;
  for (size_t i = 0; i < build.keys.size(); ++i) table.emplace(build.keys[i], build.payload[i]);
  Matches matches;
  for (size_t row = 0; row < probe.size(); ++row) {
    const auto [begin, end] = table.equal_range(probe[row]);
    for (auto at = begin; at != end; ++at) matches.emplace_back(row, at->second);
  }
  std::sort(matches.begin(), matches.end());
  return matches;
}

struct Tuning {
  uint32_t batch_rows, group_rows, distance;
};

struct Shape {
  Tuning tuning;
  uint32_t directory_bits;
  uint64_t out_capacity;
};

// All buffers of exactly the size that the ABI promises, each against a red zone.
Matches Join(const Rows& build, const std::vector<uint64_t>& probe, const Shape& shape, Guard guard) {
  const uint64_t n = build.keys.size();
  const GuardedBuffer keys = GuardedBuffer::Of(build.keys, guard), payload = GuardedBuffer::Of(build.payload, guard);
  const GuardedBuffer chunk(n * sizeof(Tuple), guard), hashes((n + 2 * kMaxPrefetchDistance) * 8, guard);
  const GuardedBuffer table(n * sizeof(Tuple), guard), directory(((uint64_t{1} << shape.directory_bits) + 1) * 8, guard);
  QuernColumn key_column = {}, payload_column = {};
  key_column.values = keys.data();
  payload_column.values = payload.data();
  std::vector<uint32_t> scratch_rows(kMaxBatchRows);
  QuernJoinShape kernel_shape = {};
  kernel_shape.tuple_bytes = sizeof(Tuple);
  kernel_shape.batch_rows = shape.tuning.batch_rows;
  kernel_shape.group_rows = shape.tuning.group_rows;
  QuernJoinAppendArgs append = {};
  append.shape = &kernel_shape;
  append.keys = &key_column;
  append.payload = &payload_column;
  append.num_rows = n;
  append.tuples = chunk.data();
  append.hashes = hashes.as<uint64_t>();
  append.capacity = n;
  append.rows = scratch_rows.data();
  EXPECT_EQ(AppendRows(Kernel(), &append), kQuernDone);
  EXPECT_EQ(append.num_tuples, n);

  UnchainedBuild table_build;
  table_build.tuples = chunk.data();
  table_build.hashes = hashes.as<uint64_t>();
  table_build.num_tuples = n;
  table_build.tuple_bytes = sizeof(Tuple);
  table_build.directory = directory.as<uint64_t>() + 1;
  table_build.directory_bits = shape.directory_bits;
  table_build.prefetch_distance = shape.tuning.distance;
  table_build.target = table.data();
  CountTuples(table_build);
  SumSlots(table_build);
  ScatterTuples(table_build);

  const GuardedBuffer probe_keys = GuardedBuffer::Of(probe, guard);
  const GuardedBuffer out_rows(shape.out_capacity * 8, guard), out_payload(shape.out_capacity * 8, guard);
  QuernColumn probe_column = {};
  probe_column.values = probe_keys.data();
  QuernOutColumn out_probe = {}, out_build = {};
  out_probe.values = out_rows.data();
  out_build.values = out_payload.data();
  auto scratch = std::make_unique<QuernProbeScratch>();
  *scratch = {};
  QuernJoinProbeArgs args = {};
  args.shape = &kernel_shape;
  args.keys = &probe_column;
  args.num_rows = probe.size();
  args.tuples = table.data();
  args.directory = table_build.directory;
  args.tags = DirectoryTags();
  args.shift = 64 - shape.directory_bits;
  args.prefetch_distance = shape.tuning.distance;
  args.out_probe = &out_probe;
  args.out_build = &out_build;
  args.out_capacity = shape.out_capacity;
  args.scratch = scratch.get();
  Matches matches;
  int32_t code = kQuernFull;
  while (code == kQuernFull) {
    args.out_rows = 0;
    code = ProbeRows(Kernel(), &args);
    for (uint64_t i = 0; i < args.out_rows; ++i) matches.emplace_back(out_rows.as<uint64_t>()[i], out_payload.as<uint64_t>()[i]);
  }
  EXPECT_EQ(code, kQuernDone);
  std::sort(matches.begin(), matches.end());
  return matches;
}

Rows RandomBuild(uint64_t n, uint64_t distinct, uint64_t seed) {
  std::mt19937_64 random(seed);
  Rows rows;
  for (uint64_t i = 0; i < n; ++i) {
    rows.keys.push_back(random() % distinct);
    rows.payload.push_back(random());
  }
  return rows;
}

std::vector<uint64_t> RandomProbe(uint64_t n, uint64_t distinct, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) key = random() % (distinct + distinct / 2 + 1);
  return keys;
}

class JoinTemplate : public testing::TestWithParam<std::tuple<uint32_t, uint32_t, uint32_t>> {};

TEST_P(JoinTemplate, GivesTheRowsOfAMultimapWhateverTheTuning) {
  const auto [batch_rows, group_rows, distance] = GetParam();
  const Tuning tuning = {batch_rows, std::min(group_rows, batch_rows), distance};
  g_prefetches = distance != 1;
  for (g_zero_hashes = false;; g_zero_hashes = true) {
    for (uint64_t n : {0, 1, 2, 6, 7, 8, 300, 1023, 1024, 1025}) {
      if (g_zero_hashes && n > 300) continue;
      const Rows build = RandomBuild(n, std::max<uint64_t>(n / 2, 1), n);
      const std::vector<uint64_t> probe = RandomProbe(n + 3, std::max<uint64_t>(n / 2, 1), n + 1);
      const Matches expected = Expected(build, probe);
      for (uint64_t capacity : {1, 5, 100000}) {
        for (Guard guard : {Guard::kBehind, Guard::kInFront}) {
          EXPECT_EQ(Join(build, probe, {tuning, 4, capacity}, guard), expected) << n << " rows, capacity " << capacity;
          EXPECT_EQ(Join(build, probe, {tuning, 11, capacity}, guard), expected) << n << " rows, capacity " << capacity;
        }
      }
    }
    if (g_zero_hashes) break;
  }
  g_zero_hashes = false;
}

INSTANTIATE_TEST_SUITE_P(Tunings, JoinTemplate,
                         testing::Combine(testing::Values(1, 7, 1024, 4096), testing::Values(1, 3, 64), testing::Values(0, 1, 16, 512)));

}  // namespace
}  // namespace quern::test

// The holes, as short as they can be.
using namespace quern::test;  // NOLINT
namespace b = quern::blocks;

extern "C" {
uint32_t quern_hole_tuple_bytes(const QuernJoinShape*) { return sizeof(Tuple); }
bool quern_hole_prefetches(const QuernJoinShape*) { return g_prefetches; }
uint32_t quern_hole_filter_rows(const QuernJoinShape*, const QuernColumn*, uint64_t, const uint32_t*, uint32_t, uint32_t*) {
  return kAllRows;
}
void quern_hole_hash_rows(const QuernJoinShape*, const QuernColumn* keys, uint64_t first, const uint32_t* rows, uint32_t n,
                          uint64_t* hashes) {
  for (uint32_t i = 0; i < n; ++i) hashes[i] = g_zero_hashes ? 0 : b::Mix(Values(keys)[b::RowAt(rows, first, i)]);
}
void quern_hole_store_rows(const QuernJoinShape*, const QuernColumn* keys, const QuernColumn* payload, uint64_t first, const uint32_t* rows,
                           uint32_t n, uint64_t, uint8_t* tuples) {
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = b::RowAt(rows, first, i);
    b::Store(tuples + i * sizeof(Tuple), Tuple{Values(keys)[row], Values(payload)[row]});
  }
}
bool quern_hole_equal_row(const QuernJoinShape*, const QuernColumn* keys, uint32_t row, const uint8_t* tuple) {
  return Values(keys)[row] == b::Load<Tuple>(tuple).key;
}
int64_t quern_hole_fit_matches(QuernJoinProbeArgs*, const uint32_t*, const uint64_t*, uint32_t n) { return n; }
void quern_hole_emit_matches(QuernJoinProbeArgs* args, const uint32_t* rows, const uint64_t* tuples, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    static_cast<uint64_t*>(args->out_probe->values)[args->out_rows + i] = rows[i];
    static_cast<uint64_t*>(args->out_build->values)[args->out_rows + i] = b::Load<Tuple>(args->tuples + tuples[i]).payload;
  }
}
}
