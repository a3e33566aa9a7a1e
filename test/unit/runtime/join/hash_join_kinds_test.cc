// SPDX-License-Identifier: Apache-2.0
// Every kind of join over every layout, against two nested loops: with and without nulls, with duplicates, with a
// residual predicate, with columns of both sides, of one and of none, with output batches of 1, 3 and 1024 rows, by
// three probers that also share the scan of unmatched build rows.
//
// A result row is (probe row, build row, mark); -1 is a null, -2 a column that the kind does not have. For build keys 7
// 7 - and probe keys 7 9 -, where - is null:
//
//     left          (0,0) (0,1) (1,-1) (2,-1)        mark   (0, true) (1, null) (2, null)
//     right_anti    (2)                              anti   (1) (2)          anti_null_aware   nothing
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"

namespace quern {
namespace {

constexpr int64_t kNull = -1, kAbsent = -2;

using ResultRow = std::tuple<int64_t, int64_t, int64_t>;
using Result = std::vector<ResultRow>;
using Keys = std::vector<std::optional<int64_t>>;

// ---- data
// ---------------------------------------------------------------------------------------------------------------------

// The form of the keys: bytes of the packed key (0: two keys, which do not pack), and how nulls compare.
struct KeyForm {
  const char* text;
  uint32_t num_keys;
  bool is_narrow;  // 32 bits
  bool nullable;
  bool null_equal;
};
constexpr KeyForm kForms[] = {{"i64", 1, false, false, false},
                              {"i64:nullable", 1, false, true, false},
                              {"i32:nullable:nullequal", 1, true, true, true},
                              {"i32", 1, true, false, false},
                              {"i64,i64", 2, false, false, false},
                              {"i64:nullable,i64:nullable", 2, false, true, false},
                              {"i64:nullable:nullequal", 1, false, true, true}};

struct Data {
  const char* name;
  Keys build;
  Keys probe;
};

// `distinct` build keys with a distance of `step`, each `times` times, and probe keys half of which are among them.
// Every 7th key is null.
Data MakeData(const char* name, int64_t distinct, int64_t times, int64_t step) {
  Data data = {name, {}, {}};
  for (int64_t i = 0; i < distinct * times; ++i) data.build.emplace_back((i * 37 % distinct - distinct / 2) * step);
  for (int64_t i = 0; i < 2 * distinct; ++i)
    data.probe.emplace_back((i * 37 % (2 * distinct) - distinct) * step + (i % 5 == 4 ? 1 : 0));
  return data;
}

const std::vector<Data>& AllData() {
  static const std::vector<Data> all = {
      MakeData("dense", 200, 1, 1),           MakeData("dense twice", 50, 3, 1),
      MakeData("sparse", 150, 1, 7990001),    MakeData("sparse twice", 61, 3, 7990001),
      {"no build rows", {}, {1, 2, 3, 4, 5}}, {"one build row", {5}, {1, 5, 5, 9, 5, -5}},
      {"no probe rows", {4, 4, 5}, {}}};
  return all;
}

Keys WithNulls(Keys keys, size_t every) {
  for (size_t i = every / 2; i < keys.size(); i += every) keys[i].reset();
  return keys;
}

// The columns of a side: keys, row number, and the column of the residual predicate, which is null in every 11th row.
struct Side {
  std::vector<int64_t> wide, second, rows, residual;
  std::vector<int32_t> narrow;
  std::vector<uint8_t> validity, residual_validity;
  const KeyForm& form;

  Side(const Keys& keys, const KeyForm& f) : form(f) {
    validity.assign(keys.size() / 8 + 1, 0);
    residual_validity.assign(keys.size() / 8 + 1, 0);
    for (size_t i = 0; i < keys.size(); ++i) {
      wide.push_back(keys[i].value_or(-12345));  // a null may hide any value
      narrow.push_back(static_cast<int32_t>(wide.back()));
      second.push_back(wide.back() / 3);
      rows.push_back(static_cast<int64_t>(i));
      residual.push_back(static_cast<int64_t>(i * 13 % 101));
      if (keys[i]) validity[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      if (i % 11 != 10) residual_validity[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    }
  }
  bool HasResidual(size_t row) const { return row % 11 != 10; }

  BatchView Batch(size_t begin, size_t n, bool has_rows, bool has_residual) const {
    const auto column = [begin](const auto& values, const std::vector<uint8_t>* bits) {
      QuernColumn c = {};
      c.values = values.data() + begin;
      c.validity = bits != nullptr ? bits->data() : nullptr;
      c.bit_offset = begin;
      return c;
    };
    const std::vector<uint8_t>* const bits = form.nullable ? &validity : nullptr;
    BatchView batch;
    if (form.is_narrow) batch.keys = {column(narrow, bits)};
    else batch.keys = {column(wide, bits), column(second, bits)};
    batch.keys.resize(form.num_keys);
    if (has_rows) batch.payload.push_back(column(rows, nullptr));
    if (has_residual) batch.payload.push_back(column(residual, &residual_validity));
    batch.num_rows = n;
    return batch;
  }
};

// ---- the definition
// ---------------------------------------------------------------------------------------------------------------------

struct Case {
  const JoinKindRow& kind;
  const KeyForm& form;
  bool residual, probe_rows, build_rows;  // which columns the spec has

  std::string Spec() const {
    std::string text = "join." + std::string(kind.text) + " keys=" + form.text;
    if (build_rows) text += " build=i64";
    if (probe_rows) text += " probe=i64";
    return text + (residual ? " residual=i64:nullable:le" : "");
  }
};

bool ComesOut(RowsOut when, bool matched) {
  return when == RowsOut::kAlways || (when == RowsOut::kMatched && matched) ||
         (when == RowsOut::kUnmatched && !matched);
}

struct Expectation {
  Result rows;
  bool has_second_match = false;
};

Expectation NestedLoops(const Case& of, const Data& data, const Side& build, const Side& probe) {
  Expectation expected;
  const auto is_null = [&](const std::optional<int64_t>& key) { return !key && !of.form.null_equal; };
  const bool has_null = std::any_of(data.build.begin(), data.build.end(), is_null);
  std::vector<bool> met(data.build.size());
  for (size_t p = 0; p < data.probe.size(); ++p) {
    size_t num_matches = 0;
    for (size_t b = 0; b < data.build.size(); ++b) {
      if (is_null(data.probe[p]) || is_null(data.build[b]) || data.probe[p] != data.build[b]) continue;
      if (of.residual && !(probe.HasResidual(p) && build.HasResidual(b) && probe.residual[p] <= build.residual[b]))
        continue;
      met[b] = true;
      ++num_matches;
      if (of.kind.pairs) expected.rows.emplace_back(p, b, kAbsent);
    }
    expected.has_second_match |= of.kind.id == JoinKind::kSingle && num_matches > 1;
    const bool is_unknown = num_matches == 0 && !data.build.empty() && (has_null || is_null(data.probe[p]));
    if (of.kind.id == JoinKind::kAntiNullAware && is_unknown) continue;
    const int64_t mark = of.kind.probe_row != RowsOut::kAlways ? kAbsent : is_unknown ? kNull : num_matches > 0;
    if (ComesOut(of.kind.probe_row, num_matches > 0)) expected.rows.emplace_back(p, kNull, mark);
  }
  for (size_t b = 0; b < data.build.size(); ++b)
    if (ComesOut(of.kind.build_row, met[b])) expected.rows.emplace_back(kNull, b, kAbsent);
  for (auto& [probe_row, build_row, mark] : expected.rows) {
    if (!of.probe_rows) probe_row = kAbsent;
    if (!of.build_rows) build_row = kAbsent;
  }
  std::sort(expected.rows.begin(), expected.rows.end());
  return expected;
}

// ---- the join
// ---------------------------------------------------------------------------------------------------------------------

JoinOptions OptionsOf(LayoutChoice layout) {
  JoinOptions options;
  options.layout = layout;
  return options;
}

class Runner {
 public:
  Runner(const Case& of, LayoutChoice layout, uint64_t capacity)
      : case_(of),
        join_(std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(of.Spec())),
                                         GenericJoinKernel(), nullptr, nullptr, OptionsOf(layout))),
        out_(JoinOutputTypes(join_->descriptor().spec()), capacity, nullptr) {
    for (int i = 0; i < 3; ++i) probers_.push_back(std::make_unique<JoinProber>(join_));
  }

  std::string layout() const { return join_->stats().layout; }
  const Result& rows() const { return rows_; }

  // Batches of 70 rows, distributed over the probers; then the scan of unmatched build rows, one output batch of each
  // prober in turn.
  absl::Status Run(const Side& build, const Side& probe) {
    for (size_t begin = 0; begin < build.rows.size(); begin += 70) {
      const size_t n = std::min<size_t>(70, build.rows.size() - begin);
      if (absl::Status status = join_->Append(build.Batch(begin, n, case_.build_rows, case_.residual)); !status.ok())
        return status;
    }
    if (absl::Status status = join_->Finalise(); !status.ok()) return status;
    for (size_t begin = 0; begin < probe.rows.size(); begin += 70) {
      const size_t n = std::min<size_t>(70, probe.rows.size() - begin);
      JoinProber* const prober = probers_[begin / 70 % 3].get();
      if (absl::Status status = prober->SetInput(probe.Batch(begin, n, case_.probe_rows, case_.residual)); !status.ok())
        return status;
      for (bool more = true; more;)
        if (absl::Status status = Next(prober, &more); !status.ok()) return status;
    }
    bool more[3] = {true, true, true};
    for (const auto& prober : probers_)
      if (absl::Status status = prober->SetUnmatched(); !status.ok()) return status;
    for (int turn = 0; more[0] || more[1] || more[2]; ++turn)
      if (absl::Status status = Next(probers_[turn % 3].get(), &more[turn % 3]); !status.ok()) return status;
    std::sort(rows_.begin(), rows_.end());
    return absl::OkStatus();
  }

 private:
  absl::Status Next(JoinProber* prober, bool* more) {
    const absl::StatusOr<bool> next = prober->Next(&out_);
    if (!next.ok()) return next.status();
    *more = *next;
    const bool has_mark = case_.kind.probe_row == RowsOut::kAlways;
    const size_t mark_column = case_.probe_rows ? 1 : 0, build_column = mark_column + (has_mark ? 1 : 0);
    for (uint64_t i = 0; i < out_.num_rows(); ++i) {
      const int64_t probe_row = case_.probe_rows ? ValueAt(0, i) : kAbsent;
      const int64_t build_row = case_.build_rows ? ValueAt(build_column, i) : kAbsent;
      rows_.emplace_back(probe_row, build_row, has_mark ? ValueAt(mark_column, i) : kAbsent);
    }
    return absl::OkStatus();
  }

  int64_t ValueAt(size_t column, uint64_t row) const {
    const QuernOutColumn& c = out_.column(column);
    if (c.validity != nullptr && ((c.validity[row / 8] >> row % 8) & 1) == 0) return kNull;
    if (out_.type(column).id == TypeId::kBool) return (static_cast<const uint8_t*>(c.values)[row / 8] >> row % 8) & 1;
    return static_cast<const int64_t*>(c.values)[row];
  }

  const Case& case_;
  std::shared_ptr<HashJoin> join_;
  OutputBatch out_;
  std::vector<std::unique_ptr<JoinProber>> probers_;
  Result rows_;
};

// Cases that the spec does not allow: spec_join_kinds_test.cc.
bool IsAllowed(const Case& of) {
  const bool may_be_unknown = of.form.nullable && !of.form.null_equal;
  if (of.kind.id == JoinKind::kAntiNullAware && (of.residual || of.form.num_keys > 1)) return false;
  if (of.kind.id == JoinKind::kMark && may_be_unknown && (of.residual || of.form.num_keys > 1)) return false;
  return (!of.probe_rows || of.kind.has_probe_columns()) && (!of.build_rows || of.kind.has_build_columns());
}

// Runs one case with all data, layouts and output sizes in turn; returns the resulting layouts.
std::set<std::string> RunCase(const Case& of) {
  constexpr uint64_t kCapacities[] = {1024, 3, 1};
  size_t turn = 0;
  std::set<std::string> layouts;
  for (Data data : AllData()) {
    if (of.form.nullable) data = {data.name, WithNulls(data.build, 7), WithNulls(data.probe, 5)};
    const Side build(data.build, of.form), probe(data.probe, of.form);
    const Expectation expected = NestedLoops(of, data, build, probe);
    for (const LayoutChoice layout :
         {LayoutChoice::kAuto, LayoutChoice::kUnchained, LayoutChoice::kDense, LayoutChoice::kOpen}) {
      const uint64_t capacity = kCapacities[turn++ % 3];
      Runner runner(of, layout, capacity);
      const absl::Status status = runner.Run(build, probe);
      layouts.insert(runner.layout());
      SCOPED_TRACE(of.Spec() + ", " + data.name + ", " + runner.layout() + ", output batches of " +
                   std::to_string(capacity));
      if (expected.has_second_match) {
        EXPECT_EQ(status,
                  absl::OutOfRangeError(
                      "second match of a probe row: in a join of kind single; accepted: at most one build row a key"));
      } else {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(runner.rows(), expected.rows);
      }
    }
  }
  return layouts;
}

class JoinKinds : public testing::TestWithParam<JoinKind> {};

TEST_P(JoinKinds, GiveTheRowsOfNestedLoopsOverEveryLayout) {
  const JoinKindRow& kind = RowOf(GetParam());
  std::set<std::string> layouts;
  for (const KeyForm& form : kForms) {
    for (const bool residual : {false, true}) {
      for (const bool probe_rows : {true, false}) {
        for (const bool build_rows : {true, false}) {
          const Case of = {kind, form, residual, probe_rows, build_rows};
          if (!IsAllowed(of)) continue;
          const std::string spec = of.Spec();
          ASSERT_TRUE(ParseSpec(spec).ok()) << spec << ": " << ParseSpec(spec).status();
          layouts.merge(RunCase(of));
        }
      }
    }
  }
  std::set<std::string> expected = {"bitmap", "open", "unchained"};  // semi, anti: one bit, of one match, is enough
  if (kind.pairs) expected = {"bitmap", "dense", "csr", "open", "counting", "unchained"};
  if (!kind.pairs && kind.id != JoinKind::kAntiNullAware)
    expected.insert({"dense", "csr"});  // with a residual predicate
  if (kind.flags_matched_rows()) expected = {"dense", "csr", "open", "unchained"};
  EXPECT_EQ(layouts, expected);
}

INSTANTIATE_TEST_SUITE_P(All, JoinKinds, testing::ValuesIn([] {
                           std::vector<JoinKind> kinds;
                           for (const JoinKindRow& row : AllJoinKinds()) kinds.push_back(row.id);
                           return kinds;
                         }()),
                         [](const auto& of) { return std::string(RowOf(of.param).text); });

}  // namespace
}  // namespace quern
