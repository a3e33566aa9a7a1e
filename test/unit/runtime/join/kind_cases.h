// SPDX-License-Identifier: Apache-2.0
// Cases of joins of every kind, their results by the definition of a join, and their results by a HashJoin.
#ifndef QUERN_TEST_UNIT_RUNTIME_JOIN_KIND_CASES_H_
#define QUERN_TEST_UNIT_RUNTIME_JOIN_KIND_CASES_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"

namespace quern::test {

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
  bool is_text = false;  // of up to 39 letters and the number
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
inline Data MakeData(const char* name, int64_t distinct, int64_t times, int64_t step) {
  Data data = {name, {}, {}};
  for (int64_t i = 0; i < distinct * times; ++i) data.build.emplace_back((i * 37 % distinct - distinct / 2) * step);
  for (int64_t i = 0; i < 2 * distinct; ++i)
    data.probe.emplace_back((i * 37 % (2 * distinct) - distinct) * step + (i % 5 == 4 ? 1 : 0));
  return data;
}

inline Keys WithNulls(Keys keys, size_t every) {
  for (size_t i = every / 2; i < keys.size(); i += every) keys[i].reset();
  return keys;
}

// The columns of a side: keys, row number, and the column of the residual predicate, which is null in every 11th row.
struct Side {
  std::vector<int64_t> wide, second, rows, residual;
  std::vector<int32_t> narrow;
  std::vector<uint8_t> validity, residual_validity;
  std::string texts;
  std::vector<int32_t> text_ends = {0};
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
      if (form.is_text) AddText(wide.back());
    }
  }
  void AddText(int64_t number) {
    texts += std::string(static_cast<uint64_t>(number) % 40, 'k') + std::to_string(number);
    text_ends.push_back(static_cast<int32_t>(texts.size()));
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
    else if (form.is_text) batch.keys = {TextColumn(begin, bits)};
    else batch.keys = {column(wide, bits), column(second, bits)};
    batch.keys.resize(form.num_keys);
    if (has_rows) batch.payload.push_back(column(rows, nullptr));
    if (has_residual) batch.payload.push_back(column(residual, &residual_validity));
    batch.num_rows = n;
    return batch;
  }
  QuernColumn TextColumn(size_t begin, const std::vector<uint8_t>* bits) const {
    QuernColumn c = {};
    c.values = texts.data();
    c.offsets = text_ends.data() + begin;
    c.validity = bits != nullptr ? bits->data() : nullptr;
    c.bit_offset = begin;
    return c;
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

inline bool ComesOut(RowsOut when, bool matched) {
  return when == RowsOut::kAlways || (when == RowsOut::kMatched && matched) ||
         (when == RowsOut::kUnmatched && !matched);
}

// Cases that the spec does not allow: spec_join_kinds_test.cc.
inline bool IsAllowed(const Case& of) {
  const bool may_be_unknown = of.form.nullable && !of.form.null_equal;
  if (of.kind.id == JoinKind::kAntiNullAware && (of.residual || of.form.num_keys > 1)) return false;
  if (of.kind.id == JoinKind::kMark && may_be_unknown && (of.residual || of.form.num_keys > 1)) return false;
  return (!of.probe_rows || of.kind.has_probe_columns()) && (!of.build_rows || of.kind.has_build_columns());
}

struct Expectation {
  Result rows;
  bool has_second_match = false;
};

inline Expectation NestedLoops(const Case& of, const Data& data, const Side& build, const Side& probe) {
  Expectation expected;
  const auto is_null = [&](const std::optional<int64_t>& key) { return !key && !of.form.null_equal; };
  const bool has_null = std::any_of(data.build.begin(), data.build.end(), is_null);
  std::vector<bool> met(data.build.size());
  std::map<std::optional<int64_t>, std::vector<size_t>> rows_of;
  for (size_t b = 0; b < data.build.size(); ++b)
    if (!is_null(data.build[b])) rows_of[data.build[b]].push_back(b);
  for (size_t p = 0; p < data.probe.size(); ++p) {
    size_t num_matches = 0;
    for (const size_t b : is_null(data.probe[p]) ? std::vector<size_t>() : rows_of[data.probe[p]]) {
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

inline int64_t ValueAt(const OutputBatch& out, size_t column, uint64_t row) {
  const QuernOutColumn& c = out.column(column);
  if (c.validity != nullptr && ((c.validity[row / 8] >> row % 8) & 1) == 0) return kNull;
  if (out.type(column).id == TypeId::kBool) return (static_cast<const uint8_t*>(c.values)[row / 8] >> row % 8) & 1;
  return static_cast<const int64_t*>(c.values)[row];
}

inline void AddResultRows(const Case& of, const OutputBatch& out, Result* rows) {
  const bool has_mark = of.kind.probe_row == RowsOut::kAlways;
  const size_t mark_column = of.probe_rows ? 1 : 0, build_column = mark_column + (has_mark ? 1 : 0);
  for (uint64_t i = 0; i < out.num_rows(); ++i) {
    const int64_t probe_row = of.probe_rows ? ValueAt(out, 0, i) : kAbsent;
    const int64_t build_row = of.build_rows ? ValueAt(out, build_column, i) : kAbsent;
    rows->emplace_back(probe_row, build_row, has_mark ? ValueAt(out, mark_column, i) : kAbsent);
  }
}

inline JoinOptions OptionsOf(LayoutChoice layout) {
  JoinOptions options;
  options.layout = layout;
  return options;
}

class Runner {
 public:
  // spill: null: rows stay in memory.
  Runner(const Case& of, LayoutChoice layout, uint64_t capacity, const std::shared_ptr<MemoryBudget>& budget = nullptr,
         const std::shared_ptr<SpillContext>& spill = nullptr)
      : case_(of),
        join_(std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(of.Spec())),
                                         GenericJoinKernel(), nullptr, budget, OptionsOf(layout))),
        out_(JoinOutputTypes(join_->descriptor().spec()), capacity, nullptr) {
    join_->SetSpill(spill);
    join_->SetGeneric(GenericJoinKernel());
    for (int i = 0; i < 3; ++i) probers_.push_back(std::make_unique<JoinProber>(join_));
  }

  std::string layout() const { return join_->stats().layout; }
  const Result& rows() const { return rows_; }
  bool has_spilled() const { return join_->has_spilled(); }
  const std::shared_ptr<HashJoin>& join() const { return join_; }

  // Batches of 70 rows, distributed over the probers; then the scan of unmatched build rows, one output batch of each
  // prober in turn.
  absl::Status Run(const Side& build, const Side& probe) {
    if (absl::Status status = Append(build); !status.ok()) return status;
    if (absl::Status status = join_->Finalise(); !status.ok()) return status;
    return Probe(probe);
  }

  // Batches of 70 rows, by one appender after the other, each of which takes so many rows.
  absl::Status Append(const Side& build, size_t rows_of_each = SIZE_MAX) {
    const size_t num_rows = build.rows.size();
    for (size_t first = 0, end = 0; first < num_rows; first = end) {
      end = first + std::min(rows_of_each, num_rows - first);
      Appender appender(join_);
      for (size_t begin = first; begin < end; begin += 70) {
        const BatchView batch = build.Batch(begin, std::min<size_t>(70, end - begin), case_.build_rows, case_.residual);
        if (absl::Status status = appender.Append(batch); !status.ok()) return status;
      }
      if (absl::Status status = appender.Finish(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Probe(const Side& probe) {
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
    AddResultRows(case_, out_, &rows_);
    return absl::OkStatus();
  }

  const Case& case_;
  std::shared_ptr<HashJoin> join_;
  OutputBatch out_;
  std::vector<std::unique_ptr<JoinProber>> probers_;
  Result rows_;
};

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_JOIN_KIND_CASES_H_
