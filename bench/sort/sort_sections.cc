// SPDX-License-Identifier: Apache-2.0
// The sections of sort_bench in order; each has its columns, what one of its cells measures, and the list of its cells.
// A cell makes its workload, runs contenders over it in turns and prints a row, for example in section keys:
//
//     i64  vector  8 B  64 bits  append 0.9  finalise 5.6  read 0.8  all 7.3 ns a row  generic 9.1  1.25  VQSort 5.4 ..
#include "bench/sort/sort_sections.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/sort/sort_run.h"
#include "bench/sort/sort_workload.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr uint64_t kRows = 10'000'000, kPaperRows = 1'000'000;
constexpr char kPadding[] = "utf8mb4_bin";

// Consecutive cells share a workload.
const SortWorkload& WorkloadOf(const SortWorkloadSpec& spec) {
  static std::unique_ptr<SortWorkload> last;
  if (last == nullptr || !(last->spec() == spec)) {
    last.reset();  // before the next workload takes its memory
    last = std::make_unique<SortWorkload>(spec);
  }
  return *last;
}

// A key list, all of whose keys are results, with or without row ids.
struct SortKeys {
  std::string name;
  std::vector<SortKey> keys;
  bool has_rowid = false;

  std::string Spec(const std::string& collation = "", uint64_t limit = 0) const {
    return "sort keys=" + KeyList(keys, collation) + (has_rowid ? " payload=rowid" : "") +
           (limit == 0 ? "" : " limit=" + std::to_string(limit));
  }
  // Whether sorts of bare numbers are compared with it.
  bool is_integer() const { return keys.size() == 1 && keys[0] == SortKey::kI64; }
};

const std::vector<SortKeys>& AllKeys() {
  using enum SortKey;
  static const std::vector<SortKeys> all = {{"i64", {kI64}},
                                            {"i64,rowid", {kI64}, true},
                                            {"i32,rowid", {kI32}, true},
                                            {"f64,i64", {kF64, kI64}},
                                            {"text16", {kText16}},
                                            {"words", {kWord}},
                                            {"i32,words", {kCategory, kWord}},
                                            {"words,i64", {kWord, kI64}},
                                            {"words,words", {kWord, kWord}},
                                            {"i32,words,i64,words", {kCategory, kWord, kI64, kWord}}};
  return all;
}

absl::StatusOr<SortContender> Compete(const std::string& spec, const SortWorkload& workload,
                                      const std::string& params = "", Engine engine = Engine::kJit,
                                      unsigned threads = 1) {
  QUERN_ASSIGN_OR_RETURN(const auto kernel, CompileSort(spec, params, engine));
  return SortWith(kernel, workload, threads);
}

std::string NsPer(double seconds, uint64_t n) { return Fixed(seconds / static_cast<double>(n) * 1e9); }

double Ratio(const SortContender& slow, const SortContender& fast) { return slow.best.all_s() / fast.best.all_s(); }

// ---- keys ------------------------------------------------------------------------------------------------------

absl::Status KeysCell(const Settings& settings, const SortKeys& keys, Section* section) {
  const SortWorkload& workload = WorkloadOf({.keys = keys.keys, .num_rows = settings.Rows(kRows)});
  std::vector<SortContender> contenders;
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    QUERN_ASSIGN_OR_RETURN(SortContender contender, Compete(keys.Spec(), workload, "", engine));
    contenders.push_back(std::move(contender));
  }
  if (keys.is_integer()) {
    contenders.push_back(VectorSortOf(workload));
    contenders.push_back(StdSortOf(workload));
  }
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(3), &contenders));
  const SortTimes& best = contenders[0].best;
  const uint64_t rows = workload.spec().num_rows;
  std::vector<std::string> row = {keys.name,
                                  best.stats.method,
                                  Bytes(best.stats.entry_bytes),
                                  std::to_string(best.stats.key_bits),
                                  Grouped(best.stats.collided_rows),
                                  NsPer(best.append_s, rows),
                                  NsPer(best.finalise_s, rows),
                                  NsPer(best.read_s, rows),
                                  NsPer(best.all_s(), rows),
                                  NsPer(contenders[1].best.all_s(), rows),
                                  Fixed(Ratio(contenders[1], contenders[0]))};
  for (size_t i = 2; i < 4; ++i) {
    const bool is_there = i < contenders.size();
    row.push_back(is_there ? NsPer(contenders[i].best.all_s(), rows) : "-");
    row.push_back(is_there ? Fixed(Ratio(contenders[0], contenders[i])) : "-");
  }
  section->Row(row);
  return absl::OkStatus();
}

void AddKeys(Cells* cells) {
  cells->Begin("keys",
               "what does a row cost, by its keys? All keys are results. Beside it sorts of the bare numbers, in "
               "place; over: Quern's time divided "
               "by theirs",
               {{"keys", -22},
                {"method", -16},
                {"prefix", 7},
                {"bits", 6},
                {"collided", 12},
                {"append", 9, "a row"},
                {"finalise", 10, "a row"},
                {"read", 8, "a row"},
                {"all", 8, "a row"},
                {"all", 9, "generic"},
                {"ratio", 7, "generic"},
                {"VQSort", 9, "bare numbers"},
                {"over", 7, "bare numbers"},
                {"std::sort", 11, "bare numbers"},
                {"over", 7, "bare numbers"}});
  for (const SortKeys& keys : AllKeys())
    cells->Add(keys.name,
               [settings = cells->settings(), &keys](Section* section) { return KeysCell(settings, keys, section); });
}

// ---- paper -----------------------------------------------------------------------------------------------------

// The sorts in TiFlash's paper on compiled kernels, and longer key lists, which the paper leaves out.
const std::vector<SortKeys>& PaperKeys() {
  using enum SortKey;
  static const std::vector<SortKeys> all = {
      {"UInt64,STR", {kFewU64, kWord}},
      {"STR,UInt64", {kWord, kFewU64}},
      {"Int64,STR", {kFewI64, kWord}},
      {"STR,STR", {kWord, kWord}},
      {"p_mfgr,p_name", {kManufacturer, kPartName}},
      {"3keys", {kFewI64, kWord, kFewI64}},
      {"4keys", {kFewI64, kWord, kFewI64, kWord}},
      {"6keys", {kFewI64, kWord, kFewI64, kWord, kFewI64, kWord}},
      {"8keys", {kFewI64, kWord, kFewI64, kWord, kFewI64, kWord, kFewI64, kWord}}};
  return all;
}

absl::Status PaperCell(const Settings& settings, const SortKeys& keys, Section* section) {
  const SortWorkload& workload = WorkloadOf({.keys = keys.keys, .num_rows = settings.Rows(kPaperRows)});
  const std::string spec = keys.Spec(kPadding);
  QUERN_ASSIGN_OR_RETURN(SortContender generic,
                         Compete(spec, workload, "test.sort_method=comparison", Engine::kGeneric));
  QUERN_ASSIGN_OR_RETURN(SortContender comparison, Compete(spec, workload, "test.sort_method=comparison"));
  QUERN_ASSIGN_OR_RETURN(SortContender radix, Compete(spec, workload, "test.sort_method=radix"));
  std::vector<SortContender> contenders = {generic, comparison, radix};
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(5), &contenders));
  std::vector<std::string> row = {keys.name, Grouped(workload.spec().num_rows)};
  for (const SortContender& contender : contenders) {
    row.push_back(NsPer(contender.best.finalise_s, workload.spec().num_rows));
    row.push_back(NsPer(contender.best.all_s(), workload.spec().num_rows));
    if (&contender == &contenders[0]) continue;
    row.push_back(Fixed(contenders[0].best.finalise_s / contender.best.finalise_s));
    row.push_back(Fixed(Ratio(contenders[0], contender)));
  }
  section->Row(row);
  return absl::OkStatus();
}

void AddPaper(Cells* cells) {
  const std::string generic = "generic, comparing", comparison = "compiled, comparing",
                    radix = "compiled, encoded keys";
  cells->Begin("paper",
               "TiFlash's sorts, texts with utf8mb4_bin: what does compiling gain? Times (sort: finalise alone; all), "
               "and how many times "
               "faster than generic",
               {{"keys", -16},
                {"rows", 11},
                {"sort", 9, generic},
                {"all", 9, generic},
                {"sort", 9, comparison},
                {"all", 9, comparison},
                {"times", 7, comparison},
                {"all", 7, comparison},
                {"sort", 9, radix},
                {"all", 9, radix},
                {"times", 7, radix},
                {"all", 7, radix}});
  for (const SortKeys& keys : PaperKeys())
    cells->Add(keys.name,
               [settings = cells->settings(), &keys](Section* section) { return PaperCell(settings, keys, section); });
}

// ---- small -----------------------------------------------------------------------------------------------------

// A contender that runs `one` that many times.
SortContender Repeated(const SortContender& one, uint64_t times) {
  SortContender all = one;
  all.run = [run = one.run, times](SortTimes* sum) -> absl::Status {
    for (uint64_t i = 0; i < times; ++i) {
      SortTimes each;
      QUERN_RETURN_IF_ERROR(run(&each));
      sum->create_s += each.create_s;
      sum->append_s += each.append_s;
      sum->finalise_s += each.finalise_s;
      sum->read_s += each.read_s;
      sum->stats = each.stats;
    }
    return absl::OkStatus();
  };
  return all;
}

absl::Status SmallCell(const Settings& settings, const SortKeys& keys, uint64_t num_rows, Section* section) {
  const SortWorkload& workload = WorkloadOf({.keys = keys.keys, .num_rows = num_rows});
  const uint64_t times = std::max<uint64_t>(settings.Rows(1'000'000) / num_rows, 4);
  std::vector<SortContender> contenders;
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    QUERN_ASSIGN_OR_RETURN(const SortContender one, Compete(keys.Spec(), workload, "", engine));
    contenders.push_back(Repeated(one, times));
  }
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(7), &contenders));
  const SortTimes& best = contenders[0].best;
  const auto microseconds = [times](double seconds) { return Fixed(seconds / static_cast<double>(times) * 1e6); };
  section->BreakAt(keys.name);
  section->Row({keys.name, Grouped(num_rows), best.stats.method, microseconds(best.create_s),
                microseconds(best.append_s), microseconds(best.finalise_s), microseconds(best.read_s),
                microseconds(best.all_s()), microseconds(contenders[1].best.all_s())});
  return absl::OkStatus();
}

void AddSmall(Cells* cells) {
  static const std::vector<SortKeys> all = {{"i64,rowid", {SortKey::kI64}, true},
                                            {"i32,words", {SortKey::kCategory, SortKey::kWord}}};
  cells->Begin("small", "what does a sort of few rows cost with a warm kernel? MICROSECONDS for the whole sort",
               {{"keys", -14},
                {"rows", 8},
                {"method", -16},
                {"create", 9},
                {"append", 9},
                {"finalise", 10},
                {"read", 9},
                {"all", 9},
                {"generic", 9}});
  for (const SortKeys& keys : all) {
    for (const uint64_t rows : {10, 100, 1000})
      cells->Add(keys.name + "/" + std::to_string(rows), [settings = cells->settings(), &keys, rows](Section* section) {
        return SmallCell(settings, keys, rows, section);
      });
  }
}

// ---- order -----------------------------------------------------------------------------------------------------

struct NamedOrder {
  const char* name;
  RowOrder order;
};

constexpr NamedOrder kOrders[] = {{"random", RowOrder::kRandom},
                                  {"sorted", RowOrder::kSorted},
                                  {"reversed", RowOrder::kReversed},
                                  {"1 % moved", RowOrder::kOnePercentMoved},
                                  {"10 pairs", RowOrder::kTenPairs},
                                  {"one value", RowOrder::kOneValue},
                                  {"1000 values", RowOrder::kThousandValues}};

absl::Status OrderCell(const Settings& settings, const SortKeys& keys, Section* section) {
  double random_s = 0;
  for (const NamedOrder& order : kOrders) {
    const SortWorkload& workload =
        WorkloadOf({.keys = keys.keys, .num_rows = settings.Rows(kRows), .order = order.order});
    QUERN_ASSIGN_OR_RETURN(SortContender contender, Compete(keys.Spec(), workload));
    std::vector<SortContender> contenders = {contender};
    QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(3), &contenders));
    const SortTimes& best = contenders[0].best;
    if (order.order == RowOrder::kRandom) random_s = best.all_s();
    const uint64_t rows = workload.spec().num_rows;
    section->BreakAt(keys.name);
    section->Row({keys.name, order.name, best.stats.method, std::to_string(best.stats.key_bits),
                  Grouped(best.stats.collided_rows), NsPer(best.append_s, rows), NsPer(best.finalise_s, rows),
                  NsPer(best.read_s, rows), NsPer(best.all_s(), rows), Fixed(random_s / best.all_s())});
  }
  return absl::OkStatus();
}

void AddOrder(Cells* cells) {
  static const std::vector<SortKeys> all = {{"i64,rowid", {SortKey::kI64}, true},
                                            {"words,rowid", {SortKey::kWord}, true},
                                            {"words,i64", {SortKey::kWord, SortKey::kI64}}};
  cells->Begin("order", "does it help when rows come in order, or are equal? Gain: times faster than random rows",
               {{"keys", -14},
                {"input", -14},
                {"method", -16},
                {"bits", 6},
                {"collided", 12},
                {"append", 9},
                {"finalise", 10},
                {"read", 8},
                {"all", 8},
                {"gain", 8}});
  for (const SortKeys& keys : all)
    cells->Add(keys.name,
               [settings = cells->settings(), &keys](Section* section) { return OrderCell(settings, keys, section); });
}

// ---- top -------------------------------------------------------------------------------------------------------

absl::Status TopCell(const Settings& settings, const SortKeys& keys, Section* section) {
  const SortWorkload& workload = WorkloadOf({.keys = keys.keys, .num_rows = settings.Rows(kRows)});
  const uint64_t rows = workload.spec().num_rows;
  std::vector<std::string> row = {keys.name, Grouped(rows)};
  for (const uint64_t limit : {100, 10'000}) {
    const std::string spec = keys.Spec("", limit);
    QUERN_ASSIGN_OR_RETURN(SortContender jit, Compete(spec, workload));
    QUERN_ASSIGN_OR_RETURN(SortContender generic, Compete(spec, workload, "", Engine::kGeneric));
    std::vector<SortContender> contenders = {jit, generic};
    QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(5), &contenders));
    const SortTimes& best = contenders[0].best;
    row.insert(row.end(), {Fixed(best.all_s() * 1e3), NsPer(best.all_s(), rows),
                           Grouped(rows - best.stats.dropped_rows), Fixed(Ratio(contenders[1], contenders[0]))});
  }
  section->Row(row);
  return absl::OkStatus();
}

void AddTop(Cells* cells) {
  cells->Begin("top", "what do the first 100 and 10,000 rows cost? Kept: rows that were not dropped as they arrived",
               {{"keys", -22},
                {"rows", 12},
                {"ms", 9, "100"},
                {"a row", 8, "100"},
                {"kept", 11, "100"},
                {"generic", 9, "100"},
                {"ms", 9, "10,000"},
                {"a row", 8, "10,000"},
                {"kept", 11, "10,000"},
                {"generic", 9, "10,000"}});
  for (const SortKeys& keys : AllKeys())
    cells->Add(keys.name,
               [settings = cells->settings(), &keys](Section* section) { return TopCell(settings, keys, section); });
}

// ---- threads ---------------------------------------------------------------------------------------------------

absl::Status ThreadsCell(const Settings& settings, const SortKeys& keys, Section* section) {
  const SortWorkload& workload = WorkloadOf({.keys = keys.keys, .num_rows = settings.Rows(kRows)});
  std::vector<unsigned> threads;
  std::vector<SortContender> contenders;
  for (unsigned n = 1; n <= std::max(std::thread::hardware_concurrency(), 2u); n *= 2) {
    QUERN_ASSIGN_OR_RETURN(SortContender contender, Compete(keys.Spec(), workload, "", Engine::kJit, n));
    contenders.push_back(std::move(contender));
    threads.push_back(n);
  }
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(5), &contenders));
  section->BreakAt(keys.name);
  for (size_t i = 0; i < contenders.size(); ++i) {
    const SortTimes& t = contenders[i].best;
    const uint64_t rows = workload.spec().num_rows;
    section->Row({keys.name, std::to_string(threads[i]), NsPer(t.append_s, rows), NsPer(t.finalise_s, rows),
                  NsPer(t.read_s, rows), NsPer(t.all_s(), rows), Fixed(Ratio(contenders[0], contenders[i]))});
  }
  return absl::OkStatus();
}

void AddThreads(Cells* cells) {
  using enum SortKey;
  static const std::vector<SortKeys> all = {{"i64,rowid", {kI64}, true},
                                            {"words,i64", {kWord, kI64}},
                                            {"i32,words,i64,words", {kCategory, kWord, kI64, kWord}}};
  cells->Begin(
      "threads", "how much faster are several threads?",
      {{"keys", -22}, {"threads", 9}, {"append", 9}, {"finalise", 10}, {"read", 8}, {"all", 8}, {"speed-up", 10}});
  for (const SortKeys& keys : all)
    cells->Add(keys.name, [settings = cells->settings(), &keys](Section* section) {
      return ThreadsCell(settings, keys, section);
    });
}

// ---- merge -----------------------------------------------------------------------------------------------------

absl::Status MergeCell(const Settings& settings, const SortKeys& keys, uint32_t num_runs, Section* section) {
  const SortWorkload& workload = WorkloadOf({.keys = keys.keys, .num_rows = settings.Rows(kRows)});
  QUERN_ASSIGN_OR_RETURN(const auto kernel, CompileSort(keys.Spec()));
  QUERN_ASSIGN_OR_RETURN(SortContender merge, MergeOf(kernel, workload, num_runs));
  std::vector<SortContender> contenders = {std::move(merge), SortWith(kernel, workload)};
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(3), &contenders));
  const uint64_t rows = workload.spec().num_rows;
  section->BreakAt(keys.name);
  section->Row({keys.name, Grouped(rows), std::to_string(num_runs), NsPer(contenders[0].best.all_s(), rows),
                NsPer(contenders[1].best.all_s(), rows), Fixed(Ratio(contenders[1], contenders[0]))});
  return absl::OkStatus();
}

void AddMerge(Cells* cells) {
  static const std::vector<SortKeys> all = {{"i64", {SortKey::kI64}},
                                            {"i32,words", {SortKey::kCategory, SortKey::kWord}}};
  cells->Begin("merge", "what does merging k sorted runs cost, compared with sorting all rows at once?",
               {{"keys", -14}, {"rows", 12}, {"k", 5}, {"merge", 9}, {"sort", 9}, {"ratio", 8}});
  for (const SortKeys& keys : all) {
    for (const uint32_t num_runs : {2, 8, 64})
      cells->Add(keys.name + "/" + std::to_string(num_runs),
                 [settings = cells->settings(), &keys, num_runs](Section* section) {
                   return MergeCell(settings, keys, num_runs, section);
                 });
  }
}

}  // namespace

std::vector<NamedCell> AllSortCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddKeys(&cells);
  AddPaper(&cells);
  AddSmall(&cells);
  AddOrder(&cells);
  AddTop(&cells);
  AddThreads(&cells);
  AddMerge(&cells);
  return all;
}

}  // namespace quern::bench
