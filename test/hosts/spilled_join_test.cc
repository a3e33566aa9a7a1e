// SPDX-License-Identifier: Apache-2.0
// Joins that write rows beyond their memory, as a host sees them: rows that come out where it asks for unmatched ones,
// the row ids that its own residual is given, and a pipeline of which such a join is a step.
//
// 400,000 build rows of 16 bytes do not fit 16 MiB as a table, which takes their tuples twice while it is built. Some
// partitions fit: their probe rows are joined at once, and those of the others at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr uint64_t kLimit = uint64_t{16} << 20;
constexpr int64_t kNumBuild = 400'000, kNumProbe = 50'000, kStep = 10;
constexpr uint64_t kFirstBuildId = 7'000'000, kFirstProbeId = 3'000'000;
const quern_column kRowIds = {};

// Each tenth build row has a match.
struct Sides {
  std::vector<int64_t> build, probe;

  Sides() {
    for (int64_t i = 0; i < kNumBuild; ++i) build.push_back(i * 1'000'003);
    for (int64_t i = 0; i < kNumProbe; ++i) probe.push_back(i * kStep * 1'000'003);
  }
  Table build_rows(const quern_column& payload) const {
    return {{ColumnOf(build)}, {payload}, build.size(), {}, kFirstBuildId};
  }
  Table probe_rows() const { return {{ColumnOf(probe)}, {kRowIds}, probe.size(), {}, kFirstProbeId}; }
  // Of the probe row and its match; the last probe rows have none.
  static std::string Line(int64_t probe_row) {
    const uint64_t row = static_cast<uint64_t>(probe_row);
    return std::to_string(kFirstProbeId + row) + "|" + std::to_string(kFirstBuildId + row * kStep);
  }
  static bool HasMatch(int64_t probe_row) { return probe_row * kStep < kNumBuild; }
};

// The job and what its options point to.
struct SpilledJoin {
  quern_spill_options spill = {};
  quern_job_options options = LimitedTo(kLimit);

  quern::Join Build(const std::string& spec, Engine engine, const Table& rows) {
    options.spill = &spill;
    quern::Join join = Take(quern::Join::Create(KernelOf(spec, engine), options));
    Feed(join.Build(), {rows});
    Done(join.Finalise());
    EXPECT_GT(join.Stats().spilled_rows, 0u);
    return join;
  }
};

TEST(SpilledJoins, TheUnmatchedPortOfAnInnerJoinHasTheOtherRows) {
  const Sides sides;
  Lines expected;
  for (int64_t row = 0; row < kNumProbe; ++row)
    if (Sides::HasMatch(row)) expected.push_back(Sides::Line(row));
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    SpilledJoin made;
    quern::Join join = made.Build("join.inner keys=i64 build=rowid probe=rowid", engine, sides.build_rows(kRowIds));
    quern::Output output = Take(join.Probe());
    Lines lines = Probed(&output, sides.probe_rows(), "rr");
    const Lines later = RowsOf(join.Unmatched(), "rr");
    EXPECT_GT(later.size(), 0u);
    EXPECT_LT(later.size(), expected.size());
    lines.insert(lines.end(), later.begin(), later.end());
    EXPECT_EQ(Ordered(lines), Ordered(expected));
    EXPECT_LE(join.Stats().peak_bytes, kLimit);
    quern::Status late = output.Push(sides.probe_rows().batch());
    if (late.ok()) late = output.Next().status();
    EXPECT_EQ(late.code(), QUERN_FAILED_PRECONDITION);
    EXPECT_EQ(late.text(),
              "probe after the unmatched rows were asked for: the rows of a join that has spilled; accepted: all "
              "probing first");
  }
}

// What the host's residual is told: by the context of the output that asks.
struct Host {
  struct Output {
    uint64_t num_pairs = 0, num_wrong = 0;
  };
  static int Keep(void* /*user*/, void* context, const uint64_t* probe_rows, const uint64_t* build_rows,
                  uint64_t num_pairs, uint8_t* keep) {
    auto* const output = static_cast<Output*>(context);
    for (uint64_t i = 0; i < num_pairs; ++i) {
      const uint64_t probe_row = probe_rows[i] - kFirstProbeId;
      if (build_rows[i] != kFirstBuildId + probe_row * kStep) ++output->num_wrong;
      keep[i] = probe_row % 3 == 0 ? 1 : 0;
    }
    output->num_pairs += num_pairs;
    return 0;
  }
};

TEST(SpilledJoins, ResidualsOfTheHostGetTheRowIdsOfRowsThatWereWritten) {
  const Sides sides;
  Lines expected;
  uint64_t num_pairs = 0;
  for (int64_t row = 0; row < kNumProbe; ++row) {
    if (!Sides::HasMatch(row)) continue;
    ++num_pairs;
    if (row % 3 == 0) expected.push_back(Sides::Line(row));
  }
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    SpilledJoin made;
    made.options.residual = Host::Keep;
    quern::Join join =
        made.Build("join.inner keys=i64 build=rowid probe=rowid residual=host", engine, sides.build_rows(kRowIds));
    Host::Output of_probe, of_unmatched;
    quern::Output output = Take(join.Probe(0, &of_probe));
    Lines lines = Probed(&output, sides.probe_rows(), "rr");
    quern_output_options options = {};
    options.context = &of_unmatched;
    const Lines later = RowsOf(join.NewOutput(QUERN_PORT_UNMATCHED, options), "rr");
    lines.insert(lines.end(), later.begin(), later.end());
    EXPECT_EQ(Ordered(lines), Ordered(expected));
    EXPECT_GT(of_unmatched.num_pairs, 0u);
    EXPECT_EQ(of_probe.num_pairs + of_unmatched.num_pairs, num_pairs);
    EXPECT_EQ(of_probe.num_wrong + of_unmatched.num_wrong, 0u);
  }
}

// Bytes that the library copies count, and leave memory with the rows that point to them: 40 MB in so many batches. Of
// a large one they are copied piece by piece.
void ExpectRoomForCopies(int64_t num_batches) {
  const int64_t num_rows = 200'000 / num_batches;
  SpilledJoin made;
  made.options.spill = &made.spill;
  auto join = New<quern::Join>("join.inner keys=i64 build=utf8 probe=i64", Engine::kGeneric, made.options);
  quern::Input build = Take(join.Build(StringBytes::kCopied));
  const auto text_of = [](int64_t key) { return std::to_string(key) + std::string(190 + key % 20, 't'); };
  std::vector<int64_t> keys(num_rows);
  for (int64_t batch = 0; batch < num_batches; ++batch) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < num_rows; ++i) {
      keys[i] = batch * num_rows + i;
      texts.push_back(text_of(keys[i]));
    }
    const StringVector<int32_t> strings(texts);
    Done(build.Append(Table{{ColumnOf(keys)}, {strings.column()}, keys.size()}.batch()));
  }
  Done(build.Finish());
  Done(join.Finalise());
  Lines expected;
  keys.resize(5000);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int64_t>(i) * 40;
    expected.push_back(std::to_string(keys[i]) + "|" + text_of(keys[i]));
  }
  quern::Output output = Take(join.Probe());
  Lines lines = Probed(&output, {{ColumnOf(keys)}, {ColumnOf(keys)}, keys.size()}, "ls");
  const Lines later = RowsOf(join.Unmatched(), "ls");
  lines.insert(lines.end(), later.begin(), later.end());
  EXPECT_EQ(Ordered(lines), Ordered(expected));
  EXPECT_GT(join.Stats().spilled_rows, 0u);
  EXPECT_LE(join.Stats().peak_bytes, kLimit);
}

TEST(SpilledJoins, CopiesOfTheHostsStringsFindRoom) {
  for (const int64_t num_batches : {40, 2, 1}) {
    SCOPED_TRACE(num_batches);
    ExpectRoomForCopies(num_batches);
  }
}

// Outputs that one thread reads by turns: those that come when others have all the memory leave the rows to them.
TEST(SpilledJoins, OutputsMayComeLate) {
  const Sides sides;
  for (const size_t num_outputs : {2, 8, 40}) {
    SpilledJoin made;
    quern::Join join =
        made.Build("join.left keys=i64 build=i64 probe=rowid", Engine::kJit, sides.build_rows(ColumnOf(sides.build)));
    quern::Output probe = Take(join.Probe());
    uint64_t num_rows = Probed(&probe, sides.probe_rows(), "rl").size();
    std::vector<quern::Output> outputs;
    quern_output_options options = {};
    options.batch_rows = 1024;
    for (size_t i = 0; i < num_outputs; ++i) outputs.push_back(Take(join.NewOutput(QUERN_PORT_UNMATCHED, options)));
    std::vector<ArrowArray> last(num_outputs);  // what the host has of each output
    std::vector<bool> has_more(num_outputs, true);
    while (std::find(has_more.begin(), has_more.end(), true) != has_more.end()) {
      for (size_t i = 0; i < num_outputs; ++i) {
        if (!has_more[i]) continue;
        if (last[i].release != nullptr) last[i].release(&last[i]);
        const quern_result& result = *Take(outputs[i].NextArrow(&last[i]));
        num_rows += result.num_rows;
        has_more[i] = result.state == QUERN_RESULT_MORE;
      }
    }
    for (ArrowArray& array : last)
      if (array.release != nullptr) array.release(&array);
    EXPECT_EQ(num_rows, static_cast<uint64_t>(kNumProbe)) << num_outputs;
    EXPECT_LE(join.Stats().peak_bytes, kLimit);
  }
}

TEST(SpilledJoins, RunsOfTheLibraryHaveAllRows) {
  const Sides sides;
  SpilledJoin made;
  made.options.spill = &made.spill;
  auto join = New<quern::Join>("join.left keys=i64 build=rowid probe=rowid", Engine::kGeneric, made.options);
  const Table build = sides.build_rows(kRowIds), probe = sides.probe_rows();
  const quern_batch batches[] = {build.batch(), probe.batch()};
  const quern_run_input inputs[] = {{QUERN_PORT_BUILD, &batches[0], 1}, {QUERN_PORT_PROBE, &batches[1], 1}};
  EXPECT_EQ(Take(join.Run(inputs, quern_run_options{})), static_cast<uint64_t>(kNumProbe));
  EXPECT_GT(join.Stats().spilled_rows, 0u);
}

// A pipeline with as many rows as the whole job has: those that its probe step gives at once, and those of the port.
TEST(SpilledJoins, ArePartsOfPipelines) {
  const Sides sides;
  SpilledJoin made;
  quern::Join join =
      made.Build("join.inner keys=i64 build=i64 probe=i64", Engine::kJit, sides.build_rows(ColumnOf(sides.build)));
  auto sum = New<quern::Aggregate>("aggregate aggs=count_star,sum(i64)");
  quern::Input input = Take(quern::Pipeline("i64").Through(join, {0}, {0}).Into(sum, QUERN_PORT_ROWS, {}, {0}));
  Done(input.Append(Table{{ColumnOf(sides.probe)}, {}, sides.probe.size()}.batch()));
  EXPECT_EQ(join.Unmatched().status().text(),
            "QUERN_PORT_UNMATCHED before all inputs of pipelines have finished: 1 with rows; accepted: after "
            "quern_input_finish of each");
  Done(input.Finish());
  quern::Input rest = Take(quern::Pipeline("i64,i64").Into(sum, QUERN_PORT_ROWS, {}, {0}));
  quern::Output left = Take(join.Unmatched());
  uint64_t num_left = 0;
  for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
    const quern_result& rows = *Take(left.Next());
    num_left += rows.num_rows;
    Done(rest.Append(AsTable(rows, rows.num_columns).batch()));
    state = rows.state;
  }
  Done(rest.Finish());
  Done(sum.Finalise());
  int64_t expected = 0, num_rows = 0;
  for (int64_t row = 0; row < kNumProbe && Sides::HasMatch(row); ++row, ++num_rows) expected += sides.probe[row];
  EXPECT_EQ(RowsOf(sum.Groups(), "ll"), Lines({std::to_string(num_rows) + "|" + std::to_string(expected)}));
  EXPECT_GT(num_left, 0u);
  EXPECT_LT(num_left, static_cast<uint64_t>(num_rows));
}

}  // namespace
}  // namespace quern_test
