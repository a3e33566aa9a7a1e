// SPDX-License-Identifier: Apache-2.0
// Residuals that the host evaluates: each kind of join over random rows, compared with pairs that the test makes
// itself; on tables of every layout, with both engines, alone and beside the spec's own comparisons.
//
// A pair matches where its two numbers have a sum that is a multiple of 3, which no comparison of columns says.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <stdexcept>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using Rows = std::vector<uint32_t>;

const quern_column kRowIds = {};
constexpr uint64_t kFirstBuildId = 1000000, kFirstProbeId = 5000;  // of the first rows

// A side's rows, whose ids begin with `first_id`.
struct Side {
  std::vector<int64_t> key, number;
  std::vector<bool> valid;
  std::vector<uint8_t> bitmap;
  std::vector<int64_t> ids;
  uint64_t first_id;

  Side(std::mt19937_64* random, uint32_t num_rows, uint64_t num_keys, int64_t step, uint64_t first) : first_id(first) {
    for (uint32_t i = 0; i < num_rows; ++i) {
      key.push_back(static_cast<int64_t>((*random)() % num_keys) * step);
      number.push_back(static_cast<int64_t>((*random)() % 100));
      valid.push_back((*random)() % 12 != 0);
      ids.push_back(static_cast<int64_t>(first + i));
    }
    bitmap = Bitmap(valid);
  }
  void KeepKeysOnce() {
    std::set<int64_t> seen;
    for (size_t i = 0; i < key.size(); ++i)
      while (!seen.insert(key[i]).second) key[i] += 1;
  }
  size_t size() const { return key.size(); }
  Table table(bool nullable) const {
    return {{nullable ? WithValidity(ColumnOf(key), bitmap) : ColumnOf(key)}, {}, key.size(), {}, first_id};
  }
};

// What the host's function reads.
struct Host {
  const Side *build, *probe;
  uint64_t num_calls = 0, num_pairs = 0, most_pairs = 0;
  void* context = nullptr;
  int result = 0;
  bool throws = false;

  bool Holds(uint64_t probe_row, uint64_t build_row) const {
    return (probe->number.at(probe_row) + build->number.at(build_row)) % 3 == 0;
  }
  static int Keep(void* user, void* context, const uint64_t* probe_rows, const uint64_t* build_rows, uint64_t num_pairs,
                  uint8_t* keep) {
    Host* const host = static_cast<Host*>(user);
    EXPECT_EQ(context, host->context);
    ++host->num_calls;
    host->num_pairs += num_pairs;
    host->most_pairs = std::max(host->most_pairs, num_pairs);
    if (host->throws) throw std::runtime_error("thrown by the host");
    for (uint64_t i = 0; i < num_pairs; ++i) {
      EXPECT_EQ(keep[i], 0);
      if (host->Holds(probe_rows[i] - host->probe->first_id, build_rows[i] - host->build->first_id)) keep[i] = 1;
    }
    return host->result;
  }
  quern_job_options options() {
    quern_job_options options = {};
    options.residual = Keep;
    options.residual_user = this;
    return options;
  }
};

// ---- every kind ----

struct Shape {
  const char* kind;
  bool build, probe;  // which side's columns come out
};
constexpr Shape kShapes[] = {{"inner", true, true},      {"left", true, true},   {"right", true, true},
                             {"full", true, true},       {"single", true, true}, {"semi", false, true},
                             {"anti", false, true},      {"mark", false, true},  {"right_semi", true, false},
                             {"right_anti", true, false}};

// The result of a kind from the pairs that match.
Lines Expected(const std::string& kind, const Side& build, const Side& probe,
               const std::function<bool(uint32_t probe_row, uint32_t build_row)>& matches) {
  std::vector<bool> probe_found(probe.size()), build_found(build.size());
  Lines lines;
  const auto id = [](const Side& side, size_t row) { return std::to_string(side.ids[row]); };
  const bool has_pairs = kind == "inner" || kind == "left" || kind == "right" || kind == "full" || kind == "single";
  for (uint32_t p = 0; p < probe.size(); ++p) {
    for (uint32_t b = 0; b < build.size(); ++b) {
      if (probe.key[p] != build.key[b] || !matches(p, b)) continue;
      probe_found[p] = build_found[b] = true;
      if (has_pairs) lines.push_back(id(probe, p) + "|" + id(build, b));
    }
  }
  for (uint32_t p = 0; p < probe.size(); ++p) {
    const bool found = probe_found[p];
    if ((kind == "left" || kind == "full" || kind == "single") && !found) lines.push_back(id(probe, p) + "|null");
    if (kind == (found ? "semi" : "anti")) lines.push_back(id(probe, p));
    if (kind == "mark") lines.push_back(id(probe, p) + (found ? "|true" : "|false"));
  }
  for (uint32_t b = 0; b < build.size(); ++b) {
    if ((kind == "right" || kind == "full") && !build_found[b]) lines.push_back("null|" + id(build, b));
    if (kind == (build_found[b] ? "right_semi" : "right_anti")) lines.push_back(id(build, b));
  }
  return Ordered(lines);
}

struct Variant {
  Engine engine;
  const char* params;
  uint64_t batch_rows;
};
constexpr Variant kVariants[] = {{Engine::kJit, "", 0},
                                 {Engine::kGeneric, "", 0},
                                 {Engine::kJit, "layout=unchained", 100},
                                 {Engine::kGeneric, "layout=unchained batch_size=3", 0},
                                 {Engine::kJit, "layout=open prefetch_group=5", 0},
                                 {Engine::kGeneric, "layout=dense batch_size=4096", 7},
                                 {Engine::kJit, "layout=unchained test.hash=zero", 0}};

// build_ids: the payload column in which the build side's ids come out, "rowid" or "i64". residual: of the spec.
void ExpectKind(const Shape& shape, const Side& build, const Side& probe, bool nullable, const std::string& build_ids,
                const std::string& residual) {
  const std::string key = nullable ? "i64:nullable" : "i64";
  const bool compares = residual != "host";
  std::string spec = "join." + std::string(shape.kind) + " keys=" + key + (shape.build ? " build=" + build_ids : "") +
                     (shape.probe ? " probe=rowid" : "") + " residual=" + residual;
  std::string kinds = shape.probe ? "r" : "";
  if (std::string(shape.kind) == "mark") kinds += "b";
  if (shape.build) kinds += build_ids == "rowid" ? "r" : "l";
  Table build_rows = build.table(nullable), probe_rows = probe.table(nullable);
  if (shape.build) build_rows.payload.push_back(build_ids == "rowid" ? kRowIds : ColumnOf(build.ids));
  if (shape.probe) probe_rows.payload.push_back(kRowIds);
  if (compares) build_rows.payload.push_back(ColumnOf(build.number));
  if (compares) probe_rows.payload.push_back(ColumnOf(probe.number));
  Host host = {&build, &probe};
  const Lines expected = Expected(shape.kind, build, probe, [&](uint32_t p, uint32_t b) {
    if (nullable && (!probe.valid[p] || !build.valid[b])) return false;
    return host.Holds(p, b) && (!compares || probe.number[p] < build.number[b]);
  });
  for (const Variant& variant : kVariants) {
    SCOPED_TRACE(spec + ", " + variant.params);
    quern::Join join = Take(quern::Join::Create(KernelOf(spec, variant.engine, variant.params), host.options()));
    Feed(join.Build(), {build_rows});
    Done(join.Finalise());
    host.context = &join;
    quern::Output output = Take(join.Probe(variant.batch_rows, &join));
    Lines lines = Probed(&output, probe_rows, kinds, variant.batch_rows);
    const Lines alone = RowsOf(join.Unmatched(), kinds);
    lines.insert(lines.end(), alone.begin(), alone.end());
    EXPECT_EQ(Ordered(lines), expected) << join.Stats().layout;
  }
  EXPECT_GT(host.num_calls, 0u);
  EXPECT_LE(host.most_pairs, 1024u);
}

TEST(HostResidual, OfEachKind) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  for (const int64_t step : {int64_t{1}, int64_t{1} << 33}) {
    for (const Shape& shape : kShapes) {
      Side build(&random, 250, 60, step, kFirstBuildId);
      const Side probe(&random, 400, 90, step, kFirstProbeId);
      const bool is_single = std::string(shape.kind) == "single", is_mark = std::string(shape.kind) == "mark";
      if (is_single) build.KeepKeysOnce();
      for (const bool nullable : {false, true}) {
        if (nullable && is_mark) continue;
        ExpectKind(shape, build, probe, nullable, "rowid", "host");
        if (nullable || step != 1) continue;
        if (shape.build) ExpectKind(shape, build, probe, nullable, "i64", "host");
        ExpectKind(shape, build, probe, nullable, "rowid", "i64:lt,host");
      }
    }
  }
}

TEST(HostResidual, OfEmptySides) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  const Side rows(&random, 5, 3, 1, kFirstProbeId), none(&random, 0, 3, 1, kFirstBuildId);
  Host host = {&none, &rows};
  quern::Join join =
      New<quern::Join>("join.left keys=i64 build=i64 probe=rowid residual=host", Engine::kJit, host.options());
  Done(join.Finalise());
  Table probe = rows.table(false);
  probe.payload = {kRowIds};
  quern::Output output = Take(join.Probe());
  EXPECT_EQ(Probed(&output, probe, "rl"), (Lines{"5000|null", "5001|null", "5002|null", "5003|null", "5004|null"}));
  EXPECT_EQ(host.num_calls, 0u);
}

// Keys of strings compare tuples group by group; pairs are nevertheless collected.
TEST(HostResidual, IsAskedForManyPairsAtOnce) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  const Side build(&random, 3000, 1000, 1, kFirstBuildId), probe(&random, 20000, 1000, 1, kFirstProbeId);
  const auto words_of = [](const Side& side) {
    std::vector<std::string> words;
    for (const int64_t key : side.key) words.push_back("key " + std::to_string(key));
    return words;
  };
  const StringVector<int32_t> build_words(words_of(build)), probe_words(words_of(probe));
  Host host = {&build, &probe};
  const uint64_t expected =
      Expected("semi", build, probe, [&](uint32_t p, uint32_t b) { return host.Holds(p, b); }).size();
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    for (const bool strings : {false, true}) {
      host = {&build, &probe};
      quern::Join join = New<quern::Join>(
          std::string("join.semi keys=") + (strings ? "utf8" : "i64") + " residual=host", engine, host.options());
      Table build_rows = build.table(false), probe_rows = probe.table(false);
      if (strings) build_rows.keys = {build_words.column()};
      if (strings) probe_rows.keys = {probe_words.column()};
      Feed(join.Build(), {build_rows});
      Done(join.Finalise());
      quern::Output output = Take(join.Probe());
      Done(output.Push(probe_rows.batch()));
      uint64_t num_rows = 0;
      for (const quern_result* result = Take(output.Next());; result = Take(output.Next())) {
        num_rows += result->num_rows;
        if (result->state != QUERN_RESULT_MORE) break;
      }
      EXPECT_EQ(num_rows, expected);
      EXPECT_GT(host.num_pairs, 50000u);
      EXPECT_GT(host.num_pairs / host.num_calls, 400u);
      EXPECT_LE(host.most_pairs, 1024u);
    }
  }
}

// ---- row ids ----

// Rows of a selection; a batch of several slices of 65,536 rows; an Arrow array, whose ids continue; threads of the
// library.
TEST(HostResidual, KnowsRowsByTheirIds) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  const Side build(&random, 100, 70, 1, kFirstBuildId), probe(&random, 150000, 100000, 1, kFirstProbeId);
  Host host = {&build, &probe};
  const auto matches = [&](uint32_t p, uint32_t b) { return host.Holds(p, b); };
  const Lines expected = Expected("inner", build, probe, matches);
  ASSERT_GT(expected.size(), 20u);
  const std::string spec = "join.inner keys=i64 build=i64 probe=rowid residual=host";
  quern::Join join = New<quern::Join>(spec, Engine::kJit, host.options());
  Table build_rows = build.table(false), probe_rows = probe.table(false);
  build_rows.payload = {ColumnOf(build.ids)};
  probe_rows.payload = {kRowIds};
  Feed(join.Build(), {build_rows});
  Done(join.Finalise());
  quern::Output output = Take(join.Probe());
  EXPECT_EQ(Probed(&output, probe_rows, "rl"), expected);
  Table last = probe_rows;
  for (uint32_t row = 149999; row >= 149000; --row) last.selection.push_back(row);
  Lines of_last;
  for (const std::string& line : expected)
    if (std::stoul(line) >= kFirstProbeId + 149000) of_last.push_back(line);
  EXPECT_EQ(Probed(&output, last, "rl"), of_last);
}

TEST(HostResidual, OfArrowArraysAndThreadsOfTheLibrary) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  const Side build(&random, 50, 20, 1, 0), probe(&random, 90, 20, 1, 0);
  Host host = {&build, &probe};
  const Lines expected = Expected("inner", build, probe, [&](uint32_t p, uint32_t b) { return host.Holds(p, b); });
  quern::Join join =
      New<quern::Join>("join.inner keys=i64 build=rowid probe=rowid residual=host", Engine::kGeneric, host.options());
  const TestSchema schema({{"key", "l"}});
  const int32_t key[] = {0}, rowid[] = {-1};
  for (const quern_port port : {QUERN_PORT_BUILD, QUERN_PORT_PROBE})
    Done(join.BindArrow(port, {&schema.schema, key, rowid}));
  const auto part = [](const Side& side, size_t begin, size_t end) {
    return StructArray(static_cast<int64_t>(end - begin),
                       FixedArray<int64_t>({side.key.begin() + static_cast<ptrdiff_t>(begin),
                                            side.key.begin() + static_cast<ptrdiff_t>(end)}));
  };
  quern::Input input = Take(join.Build());
  const auto build_rows = part(build, 0, 50), first = part(probe, 0, 40), second = part(probe, 40, 90);
  Done(input.AppendArrow(&build_rows->array));
  Done(input.Finish());
  Done(join.Finalise());
  quern::Output output = Take(join.Probe());
  Lines lines;
  for (TestArray* array : {first.get(), second.get()}) {
    Done(output.PushArrow(&array->array));
    const Lines some = RowsOf(&output, "rr");
    lines.insert(lines.end(), some.begin(), some.end());
  }
  EXPECT_EQ(Ordered(lines), expected);

  quern::Job whole = New<quern::Job>("join.semi keys=i64 residual=host", Engine::kJit, host.options());
  const Table build_table = build.table(false), probe_table = probe.table(false);
  const quern_batch batches[] = {build_table.batch(), probe_table.batch()};
  const quern_run_input inputs[] = {{QUERN_PORT_BUILD, &batches[0], 1}, {QUERN_PORT_PROBE, &batches[1], 1}};
  quern_run_options options = {};
  options.threads = 1;
  EXPECT_EQ(Take(whole.Run(inputs, options)),
            Expected("semi", build, probe, [&](uint32_t p, uint32_t b) { return host.Holds(p, b); }).size());
}

// ---- failures ----

TEST(HostResidual, FailsTheCallThatAskedIt) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  const Side build(&random, 50, 20, 1, kFirstBuildId), probe(&random, 90, 20, 1, kFirstProbeId);
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    Host host = {&build, &probe};
    quern::Join join = New<quern::Join>("join.semi keys=i64 probe=rowid residual=host", engine, host.options());
    Feed(join.Build(), {build.table(false)});
    Done(join.Finalise());
    quern::Output output = Take(join.Probe());
    Table rows = probe.table(false);
    rows.payload = {kRowIds};
    for (const bool throws : {false, true}) {
      host.throws = throws;
      host.result = throws ? 0 : 7;
      Done(output.Push(rows.batch()));
      const quern::Status failed = output.Next().status();
      EXPECT_EQ(failed.code(), QUERN_ABORTED);
      EXPECT_EQ(failed.text(), "host residual failed: a result other than 0; accepted: 0");
      EXPECT_EQ(output.Next().status().code(), QUERN_FAILED_PRECONDITION);
    }
    host.throws = false;
    EXPECT_EQ(Probed(&output, rows, "r"),
              Expected("semi", build, probe, [&](uint32_t p, uint32_t b) { return host.Holds(p, b); }))
        << "a new batch helps";
  }
}

TEST(HostResidual, GoesWithItsSpec) {
  const auto text = [](const char* spec, const quern_job_options& options) {
    const quern::Status status = quern::Job::Create(KernelOf(spec, Engine::kGeneric), options).status();
    EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
    return status.text();
  };
  Host host = {nullptr, nullptr};
  EXPECT_EQ(text("join.inner keys=i64 residual=host", {}),
            "residual without a function: host; accepted: quern_job_options with `residual`");
  EXPECT_EQ(text("join.inner keys=i64 residual=i64:lt", host.options()),
            "residual that the spec does not ask for: a function; accepted: NULL, or residual=host");
  EXPECT_EQ(text("sort keys=i64:out", host.options()),
            "residual for a kernel that does not join: a function; accepted: NULL, or a kernel of join");
  EXPECT_EQ(KernelOf("join.semi residual=host,i64:lt keys=i64", Engine::kGeneric).Text("spec"),
            "join.semi keys=i64 residual=i64:lt,host");
  const auto refused = [](const char* spec) { return quern::Kernel::Compile(spec).status().text(); };
  EXPECT_EQ(refused("join.semi keys=i64 residual=host,host"), "residual given twice: host; accepted: one host");
  EXPECT_EQ(refused("join.anti_null_aware keys=i64:nullable residual=host"),
            "residual of join.anti_null_aware: residual=host; accepted: none");
}

}  // namespace
}  // namespace quern_test
