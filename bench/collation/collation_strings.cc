// SPDX-License-Identifier: Apache-2.0
// Strings compared with strings by filter kernels, by the functions of collation.h and by virtual comparisons; and the
// keys of a string. In `predicates` every collation has a row, for example
//
//     cased  16  utf8mb4_general_ci    eq  kernel 3.1 ns  1.20 x binary  function 6.0  virtual 41
//                                      less ..  like ..  columns ..
//
// The result of a kernel is a bitmap over 64 Ki rows at a time; functions and virtual calls write a byte a row. Columns
// of 64 Ki strings stay in the L2 or L3 cache, since the bench measures comparisons, not memory.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/collation/collation_sections.h"
#include "bench/collation/filter_run.h"
#include "bench/collation/virtual_collator.h"
#include "bench/common/strings_workload.h"
#include "bench/common/timing.h"
#include "runtime/base/status.h"
#include "runtime/blocks/block_signatures.h"
#include "runtime/collation/collation.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/spec/spec.h"

namespace quern::bench {
namespace {

constexpr uint64_t kRows = uint64_t{1} << 16;
constexpr uint32_t kLengths[] = {5, 16, 64};
constexpr int kTurns = 15;

std::string NsPerRow(const Timed& timed, uint64_t rows) {
  return Fixed(timed.best_s / static_cast<double>(rows) * 1e9);
}

bool IsNotBuilt(const std::string& collation) { return !CollationNamed(collation).ok(); }

// A collation of the table, with its virtual collator.
struct Contestant {
  std::string name;
  CollationRule rule = 0;
  std::unique_ptr<VirtualCollator> virtual_collator;  // null: none
};

absl::StatusOr<std::vector<Contestant>> MakeContestants() {
  std::vector<Contestant> all;
  for (const std::string& name : BenchCollations()) {
    if (IsNotBuilt(name)) continue;
    QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationNamed(name));
    all.push_back({name, RuleOf(collation), MakeVirtualCollator(collation)});
  }
  return all;
}

// Made once for all cells: a table of weights takes milliseconds to make.
absl::StatusOr<const std::vector<Contestant>*> Contestants() {
  static const absl::StatusOr<std::vector<Contestant>> all = MakeContestants();
  QUERN_RETURN_IF_ERROR(all.status());
  return &*all;
}

// ---- predicates ------------------------------------------------------------------------------------------------

enum class Test : uint8_t { kEqual, kLess, kLike, kColumns };
constexpr Test kTests[] = {Test::kEqual, Test::kLess, Test::kLike, Test::kColumns};

// The condition of a filter's spec. Neither constants nor patterns contain quotes.
std::string ConditionOf(Test test, const std::string& collation, const StringsWorkload& strings) {
  const std::string column = "utf8(" + collation + ")";
  switch (test) {
    case Test::kEqual: return column + " = '" + strings.constant + "'";
    case Test::kLess: return column + " < '" + strings.constant + "'";
    case Test::kLike: return column + " like '" + strings.pattern + "'";
    case Test::kColumns: return column + " = " + column;
  }
  return "";
}

using PerRow = std::vector<uint8_t>;  // 1: the row passes

// Fills in the answers row by row.
template <class Answer>
Timed ByRow(const StringsWorkload& strings, PerRow* answers, const Answer& answer) {
  answers->resize(strings.left.num_rows());
  return {.run = [answers, answer] {
    for (uint64_t row = 0; row < answers->size(); ++row) (*answers)[row] = answer(row);
    return absl::OkStatus();
  }};
}

Timed ByVirtualCalls(Test test, const VirtualCollator* collator, const StringsWorkload& strings, PerRow* answers) {
  const StringColumn *left = &strings.left, *right = &strings.right;
  const std::string* constant = &strings.constant;
  switch (test) {
    case Test::kEqual:
      return ByRow(strings, answers,
                   [=](uint64_t row) { return collator->Compare(TextOf(left->Row(row)), *constant) == 0; });
    case Test::kLess:
      return ByRow(strings, answers,
                   [=](uint64_t row) { return collator->Compare(TextOf(left->Row(row)), *constant) < 0; });
    case Test::kLike: {
      const std::shared_ptr<VirtualPattern> pattern = collator->MakePattern(strings.pattern);
      return ByRow(strings, answers, [=](uint64_t row) { return pattern->Match(TextOf(left->Row(row))); });
    }
    case Test::kColumns:
      return ByRow(strings, answers, [=](uint64_t row) {
        return collator->Compare(TextOf(left->Row(row)), TextOf(right->Row(row))) == 0;
      });
  }
  return {};
}

// Comparisons only: there is no LIKE function.
Timed ByFunction(Test test, CollationRule rule, const StringsWorkload& strings, PerRow* answers) {
  const StringColumn *left = &strings.left, *right = &strings.right;
  const blocks::Bytes constant = BytesOf(strings.constant);
  if (test == Test::kEqual)
    return ByRow(strings, answers, [=](uint64_t row) { return EqualStrings(left->Row(row), constant, rule); });
  if (test == Test::kLess)
    return ByRow(strings, answers, [=](uint64_t row) { return CompareStrings(left->Row(row), constant, rule) < 0; });
  return ByRow(strings, answers, [=](uint64_t row) { return EqualStrings(left->Row(row), right->Row(row), rule); });
}

absl::StatusOr<Timed> ByKernel(Test test, const std::string& collation, const StringsWorkload& strings,
                               std::vector<uint8_t>* bitmap) {
  BatchView batch;
  batch.keys.push_back(strings.left.View());
  if (test == Test::kColumns) batch.keys.push_back(strings.right.View());
  batch.num_rows = strings.left.num_rows();
  return FilterWith(ConditionOf(test, collation, strings), batch, bitmap);
}

// The contenders of one collation in one test, and their answers.
struct TestRun {
  std::string name;
  std::vector<Timed> timed;  // kernel, function, virtual call, as far as they exist
  std::vector<uint8_t> bitmap;
  PerRow of_function, of_virtual;
};

// Runs each contender once. All must return the same answers; virtual calls are the reference where they exist.
absl::Status Check(const TestRun& run) {
  for (const Timed& timed : run.timed) QUERN_RETURN_IF_ERROR(timed.run());
  const PerRow& expected = run.of_virtual.empty() ? run.of_function : run.of_virtual;
  for (uint64_t row = 0; row < expected.size(); ++row) {
    const bool of_kernel = (run.bitmap[row / 8] >> row % 8 & 1) != 0,
               of_function = run.of_function.empty() || run.of_function[row] != 0;
    const bool passes = expected[row] != 0;
    if (of_kernel == passes && (of_function == passes || run.of_function.empty())) continue;
    return Internal("row on which kernel, function and virtual calls differ in " + run.name + ": " +
                    std::to_string(row) + "; accepted: none");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TestRun>> MakeRun(Test test, const Contestant& who, const StringsWorkload& strings) {
  auto run = std::make_unique<TestRun>();
  run->name = ConditionOf(test, who.name, strings);
  QUERN_ASSIGN_OR_RETURN(Timed kernel, ByKernel(test, who.name, strings, &run->bitmap));
  run->timed.push_back(std::move(kernel));
  if (test != Test::kLike) run->timed.push_back(ByFunction(test, who.rule, strings, &run->of_function));
  if (who.virtual_collator != nullptr)
    run->timed.push_back(ByVirtualCalls(test, who.virtual_collator.get(), strings, &run->of_virtual));
  QUERN_RETURN_IF_ERROR(Check(*run));
  return run;
}

// Runs all collations of one test in turns: kernel, function and virtual call of the first one, then those of the
// second, and so on.
absl::Status TakeTurns(int turns, std::vector<std::unique_ptr<TestRun>>* runs) {
  for (int turn = 0; turn < turns; ++turn) {
    for (const auto& run : *runs) QUERN_RETURN_IF_ERROR(TakeTurns(1, &run->timed));
  }
  return absl::OkStatus();
}

absl::Status PredicatesCell(const Settings& settings, StringKind kind, uint32_t num_bytes, Section* section) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<Contestant>* all, Contestants());
  const StringsWorkload strings({kind, num_bytes, settings.Rows(kRows)});
  const uint64_t rows = strings.left.num_rows();
  std::vector<std::vector<std::string>> table;
  for (const Contestant& who : *all) table.push_back({NameOf(kind), std::to_string(num_bytes), who.name});
  for (const Test test : kTests) {
    std::vector<std::unique_ptr<TestRun>> runs;
    for (const Contestant& who : *all) {
      QUERN_ASSIGN_OR_RETURN(auto run, MakeRun(test, who, strings));
      runs.push_back(std::move(run));
    }
    QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(kTurns), &runs));
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::vector<Timed>& timed = runs[i]->timed;
      table[i].push_back(NsPerRow(timed[0], rows));
      table[i].push_back(Fixed(timed[0].best_s / runs[0]->timed[0].best_s));
      if (test != Test::kLike) table[i].push_back(NsPerRow(timed[1], rows));
      table[i].push_back((*all)[i].virtual_collator == nullptr ? "-" : NsPerRow(timed.back(), rows));
    }
  }
  section->BreakAt(std::string(NameOf(kind)) + std::to_string(num_bytes));
  for (const auto& row : table) section->Row(row);
  return absl::OkStatus();
}

void AddPredicates(Cells* cells) {
  std::vector<TextColumn> columns = {{"strings", -8}, {"bytes", 6}, {"  collation", -27}};
  for (const char* group : {"= constant", "< constant", "like '%..%'", "= column"}) {
    columns.push_back({"kernel", 8, group});
    columns.push_back({"binary", 7, group});
    if (std::string(group) != "like '%..%'") columns.push_back({"function", 9, group});
    columns.push_back({"virtual", 8, group});
  }
  cells->Begin("predicates",
               "what does it cost to compare two strings? ns a row of the compiled kernel, and its ratio to "
               "binary; ns of the library's "
               "function and of a virtual call",
               columns);
  for (const StringKind kind : {StringKind::kRandom, StringKind::kSame, StringKind::kCased, StringKind::kMixed}) {
    for (const uint32_t num_bytes : kLengths)
      cells->Add(std::string(NameOf(kind)) + "/" + std::to_string(num_bytes),
                 [settings = cells->settings(), kind, num_bytes](Section* section) {
                   return PredicatesCell(settings, kind, num_bytes, section);
                 });
  }
}

// ---- keys ------------------------------------------------------------------------------------------------------

constexpr uint32_t kEncodedBytes = 16;  // bytes of a string that a sort encodes
constexpr uint64_t kBatchRows = 1024;   // the batch size of plans

// Sums up what a function returns, so that no call is optimised away.
template <class Answer>
Timed Summed(const StringColumn& column, uint64_t* sum, const Answer& answer) {
  return {.run = [&column, sum, answer] {
    uint64_t total = 0;
    for (uint64_t row = 0; row < column.num_rows(); ++row) total += answer(column.Row(row));
    *sum = total;
    return absl::OkStatus();
  }};
}

Timed SortKeysOf(const StringColumn& column, uint64_t* sum, const VirtualCollator* collator) {
  const auto key = std::make_shared<std::string>();
  return Summed(column, sum, [=](blocks::Bytes s) {
    key->clear();
    collator->SortKey(TextOf(s), key.get());
    return key->size();
  });
}

// The function that kernels of joins and aggregations call for a batch.
Timed HashBlock(const StringColumn& column, CollationRule rule) {
  const auto hashes = std::make_shared<std::vector<uint64_t>>(kBatchRows);
  return {.run = [=, &column] {
    const QuernColumn view = column.View();
    for (uint64_t first = 0; first < column.num_rows(); first += kBatchRows) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(kBatchRows, column.num_rows() - first));
      quern_rt_hash_var32(&view, first, nullptr, n, hashes->data(), false, false, rule, kInlineStringBytes);
    }
    return absl::OkStatus();
  }};
}

// The function that kernels of sorts call for a batch.
absl::StatusOr<Timed> EncodeBlock(const StringColumn& column, const std::string& collation) {
  QUERN_ASSIGN_OR_RETURN(const SortSpec spec, ParseSpecOf<SortSpec>("sort keys=utf8(" + collation + ")"));
  const auto descriptor = std::make_shared<SortDescriptor>(spec);
  const uint32_t num_words = descriptor->get()->num_words;
  const auto memory = std::make_shared<std::vector<uint64_t>>(uint64_t{num_words} * kBatchRows);
  std::vector<uint64_t*> words;
  for (uint32_t i = 0; i < num_words; ++i) words.push_back(memory->data() + uint64_t{i} * kBatchRows);
  return Timed{.run = [=, &column] {
    const QuernColumn view = column.View();
    uint32_t incomplete = 0;
    for (uint64_t first = 0; first < column.num_rows(); first += kBatchRows) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(kBatchRows, column.num_rows() - first));
      quern_rt_encode_var32(descriptor->get(), 0, &view, first, nullptr, n, words.data(), num_words, &incomplete);
    }
    return memory->empty() ? Internal("no words") : absl::OkStatus();
  }};
}

// One run for each column of the table. Functions that are called string by string add their results to *sum.
absl::StatusOr<std::vector<Timed>> KeysOf(const Contestant& who, const StringColumn& column, uint64_t* sum) {
  const CollationRule rule = who.rule;
  const auto key = std::make_shared<std::string>();
  QUERN_ASSIGN_OR_RETURN(Timed encode, EncodeBlock(column, who.name));
  std::vector<Timed> all = {
      HashBlock(column, rule),
      Summed(column, sum, [=](blocks::Bytes s) { return HashString(s, rule, blocks::quern_hash_secret); }),
      std::move(encode),
      Summed(column, sum,
             [=](blocks::Bytes s) -> uint64_t {
               uint8_t out[kEncodedBytes];
               const uint32_t n = OrderKeyBytes(s, rule, 0, kEncodedBytes, out);
               return n + out[0];
             }),
      Summed(column, sum, [=](blocks::Bytes s) {
        key->clear();
        AppendOrderKey(s, rule, key.get());
        return key->size();
      })};
  if (who.virtual_collator != nullptr) all.push_back(SortKeysOf(column, sum, who.virtual_collator.get()));
  return all;
}

// The keys of the strings have the order of the strings, and strings with equal keys have equal hashes.
absl::Status CheckKeys(const Contestant& who, const StringColumn& column) {
  for (uint64_t row = 1; row < std::min<uint64_t>(column.num_rows(), 1000); ++row) {
    const blocks::Bytes a = column.Row(row - 1), b = column.Row(row);
    std::string left, right;
    AppendOrderKey(a, who.rule, &left);
    AppendOrderKey(b, who.rule, &right);
    const bool equal = CompareStrings(a, b, who.rule) == 0;
    const auto hash = [&](blocks::Bytes s) { return HashString(s, who.rule, blocks::quern_hash_secret); };
    if (equal != (left == right) || (equal && hash(a) != hash(b)))
      return Internal("row whose keys and comparison differ under " + who.name + ": " + std::to_string(row) +
                      "; accepted: none");
  }
  return absl::OkStatus();
}

absl::Status KeysCell(const Settings& settings, StringKind kind, uint32_t num_bytes, Section* section) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<Contestant>* all, Contestants());
  const StringsWorkload strings({kind, num_bytes, settings.Rows(kRows)});
  std::vector<std::vector<Timed>> timed;
  uint64_t sum = 0;
  for (size_t i = 0; i < all->size(); ++i) {
    QUERN_RETURN_IF_ERROR(CheckKeys((*all)[i], strings.left));
    QUERN_ASSIGN_OR_RETURN(std::vector<Timed> each, KeysOf((*all)[i], strings.left, &sum));
    timed.push_back(std::move(each));
  }
  for (int turn = 0; turn < settings.Turns(kTurns); ++turn) {
    for (auto& each : timed) QUERN_RETURN_IF_ERROR(TakeTurns(1, &each));
  }
  section->BreakAt(std::string(NameOf(kind)) + std::to_string(num_bytes));
  for (size_t i = 0; i < all->size(); ++i) {
    std::vector<std::string> row = {NameOf(kind), std::to_string(num_bytes), (*all)[i].name};
    for (const Timed& each : timed[i]) row.push_back(NsPerRow(each, strings.left.num_rows()));
    if ((*all)[i].virtual_collator == nullptr) row.push_back("-");
    section->Row(row);
  }
  return absl::OkStatus();
}

void AddKeys(Cells* cells) {
  cells->Begin("keys",
               "what do a string's hash and its sort key cost, by the batch, as kernels call them, and as functions? "
               "Wanted: at most 10 ns for 16 "
               "bytes of ASCII",
               {{"strings", -8},
                {"bytes", 6},
                {"  collation", -27},
                {"block", 9, "hash"},
                {"function", 10, "hash"},
                {"block", 9, "first 16 bytes of sort key"},
                {"function", 10, "first 16 bytes of sort key"},
                {"function", 10, "whole sort key"},
                {"virtual", 9, "whole sort key"}});
  for (const StringKind kind : {StringKind::kRandom, StringKind::kMixed}) {
    for (const uint32_t num_bytes : kLengths)
      cells->Add(std::string(NameOf(kind)) + "/" + std::to_string(num_bytes),
                 [settings = cells->settings(), kind, num_bytes](Section* section) {
                   return KeysCell(settings, kind, num_bytes, section);
                 });
  }
}

}  // namespace

const std::vector<std::string>& BenchCollations() {
  static const std::vector<std::string> all = {"binary",
                                               "utf8mb4_bin",
                                               "utf8mb4_0900_bin",
                                               "latin1_bin",
                                               "ascii_ci",
                                               "utf8mb4_general_ci",
                                               "utf8mb4_unicode_ci",
                                               "utf8mb4_unicode_520_ci",
                                               "utf8mb4_0900_ai_ci",
                                               "tidb.utf8mb4_bin",
                                               "tidb.utf8mb4_general_ci",
                                               "tidb.utf8mb4_unicode_ci",
                                               "tidb.utf8mb4_0900_ai_ci",
                                               "icu:und-u-ks-level1"};
  return all;
}

void AddStringSections(Cells* cells) {
  AddPredicates(cells);
  AddKeys(cells);
}

std::vector<NamedCell> AllCollationCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddStringSections(&cells);
  AddOperatorSections(&cells);
  AddMemorySection(&cells);
  return all;
}

}  // namespace quern::bench
