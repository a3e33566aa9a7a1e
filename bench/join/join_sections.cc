// SPDX-License-Identifier: Apache-2.0
// The sections in order; each has its columns, what one of its cells measures, and the list of its cells. Three
// sections reproduce the PostgreSQL developers' thread about prefetching in hash joins (postgres, selfjoin, queue), two
// look for what limits a join (floor, partitions), three for what could slow it down (threads, duplicates, kinds).
//
// A cell makes its workload, runs contenders over it in turns and prints a row, for example in section floor, where a
// row costs 1.23 times what its line costs:
//
//     open  i64  10,000,000 rows  191 MiB  1 line  9.80 ns a line  12.10 ns a row  1.23
#include "bench/join/join_sections.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "bench/common/memory_floor.h"
#include "bench/join/join_run.h"
#include "bench/join/join_workload.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

// Consecutive cells have the same keys, so that they often share a workload.
const JoinWorkload& WorkloadOf(const WorkloadSpec& spec) {
  static std::unique_ptr<JoinWorkload> last;
  if (last == nullptr || last->spec() != spec) {
    last.reset();  // before the next workload takes its memory
    last = std::make_unique<JoinWorkload>(spec);
  }
  return *last;
}

// "i64,i64" for ("i64", 2).
std::string Repeated(const std::string& item, size_t times) {
  std::string list;
  for (size_t i = 0; i < times; ++i) list += (i == 0 ? "" : ",") + item;
  return list;
}

// "join.inner keys=i64 build=i64,i64"
std::string SpecText(const WorkloadSpec& spec, size_t build_columns = 0, std::string_view kind = "inner") {
  std::string text = "join." + std::string(kind) + " keys=" + KeyType(spec.keys);
  return build_columns == 0 ? text : text + " build=" + Repeated("i64", build_columns);
}

absl::StatusOr<std::vector<Contender>> CompeteAll(const std::string& spec, const std::vector<std::string>& params) {
  std::vector<Contender> contenders;
  for (const std::string& param : params) {
    QUERN_ASSIGN_OR_RETURN(Contender contender, Compete(spec, param));
    contenders.push_back(std::move(contender));
  }
  return contenders;
}

double Ratio(const Contender& slow, const Contender& fast) { return slow.best.all_s() / fast.best.all_s(); }

// The default and distance 0 are the first two contenders; a low ratio is measured once more, since it may be noise.
absl::Status TakeTurnsTwice(const JoinWorkload& workload, int turns, std::vector<Contender>* contenders) {
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, turns, contenders));
  if (Ratio((*contenders)[1], (*contenders)[0]) >= kLowRatio) return absl::OkStatus();
  std::vector<Contender> two(contenders->begin(), contenders->begin() + 2);
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, 2 * turns, &two));
  std::copy(two.begin(), two.end(), contenders->begin());
  return absl::OkStatus();
}

std::string Numbered(const char* text, uint64_t number) { return text + std::to_string(number); }

std::string Marked(double ratio) { return Fixed(ratio) + (ratio < kLowRatio ? "!" : " "); }

int TurnsFor(const Settings& settings, uint64_t build_rows) { return settings.Turns(build_rows > 1'000'000 ? 3 : 5); }

// ---- postgres --------------------------------------------------------------------------------------------------

constexpr uint64_t kRowAtATimeProbeRows = 1'000'000;

struct PostgresKeys {
  std::string name;  // printed in the table
  std::string id;    // part of the benchmark's name
  KeyKind keys;
  uint32_t text_bytes;
  std::vector<uint64_t> build_rows;
  uint64_t probe_rows;
};

// Long keys have as many rows as make 1 GB a side.
const std::vector<PostgresKeys>& AllPostgresKeys() {
  static const std::vector<PostgresKeys> all = {
      {"i32 dense", "i32", KeyKind::kDenseI32, 0, {1'000, 100'000, 10'000'000}, 10'000'000},
      {"i64 sparse", "i64", KeyKind::kSparseI64, 0, {1'000, 100'000, 10'000'000}, 10'000'000},
      {"text 8", "text8", KeyKind::kText, 8, {1'000, 100'000, 10'000'000}, 10'000'000},
      {"text 16", "text16", KeyKind::kText, 16, {1'000, 100'000, 10'000'000}, 10'000'000},
      {"text 32", "text32", KeyKind::kText, 32, {1'000, 100'000, 10'000'000}, 10'000'000},
      {"text 64", "text64", KeyKind::kText, 64, {1'000, 100'000, 10'000'000}, 10'000'000},
      {"text 1 KB", "text1K", KeyKind::kText, 1024, {1'000, 100'000, 1'000'000}, 1'000'000},
      {"text 64 KB", "text64K", KeyKind::kText, 65536, {1'000, 4'000, 16'000}, 16'000},
  };
  return all;
}

absl::Status PostgresCell(const Settings& settings, const PostgresKeys& keys, uint64_t build_rows, size_t extra,
                          Section* section) {
  const JoinWorkload& workload = WorkloadOf({.keys = keys.keys,
                                             .text_bytes = keys.text_bytes,
                                             .build_rows = settings.Rows(build_rows),
                                             .probe_rows = settings.Rows(keys.probe_rows),
                                             .payload_columns = 4});
  QUERN_ASSIGN_OR_RETURN(
      std::vector<Contender> contenders,
      CompeteAll(SpecText(workload.spec(), extra), {"", "prefetch=off", "batch_size=1 prefetch=off"}));
  contenders[2].probe_rows = kRowAtATimeProbeRows;
  contenders[2].turns = 2;
  QUERN_RETURN_IF_ERROR(TakeTurnsTwice(workload, TurnsFor(settings, build_rows), &contenders));
  std::vector<std::string> row = {keys.name, std::to_string(extra), Grouped(workload.spec().build_rows),
                                  Grouped(workload.spec().probe_rows), contenders[0].best.stats.layout};
  for (const Contender& contender : contenders) {
    row.push_back(Fixed(contender.BuildNs(workload)));
    row.push_back(Fixed(contender.ProbeNs(workload)));
  }
  const double ratio = Ratio(contenders[1], contenders[0]);
  const double row_at_a_time_s = contenders[2].best.build_s() + contenders[2].ProbeNs(workload) *
                                                                    static_cast<double>(workload.spec().probe_rows) /
                                                                    1e9;
  row.insert(row.begin() + 9, Marked(ratio));
  row.push_back(Fixed(row_at_a_time_s / contenders[0].best.all_s()));
  section->BreakAt(keys.name);
  section->CountRatio(ratio);
  section->Row(row);
  return absl::OkStatus();
}

void AddPostgres(Cells* cells) {
  cells->Begin("postgres", "does prefetching gain for every key type, width and size, and lose for none?",
               {{"key", -12},
                {"cols", 5},
                {"build rows", 11},
                {"probe rows", 11},
                {"layout", -12},
                {"build", 9, "default"},
                {"probe", 9, "default"},
                {"build", 9, "distance 0"},
                {"probe", 9, "distance 0"},
                {"ratio ", 7, "distance 0"},
                {"build", 9, "row at a time"},
                {"probe", 9, "row at a time"},
                {"ratio", 7, "row at a time"}});
  for (const PostgresKeys& keys : AllPostgresKeys()) {
    for (const uint64_t build_rows : keys.build_rows) {
      for (const size_t extra : {0, 2, 4}) {
        cells->Add(keys.id + Numbered("/build", build_rows) + Numbered("/extra", extra),
                   [settings = cells->settings(), &keys, build_rows, extra](Section* section) {
                     return PostgresCell(settings, keys, build_rows, extra, section);
                   });
      }
    }
  }
}

// ---- selfjoin --------------------------------------------------------------------------------------------------

absl::Status SelfJoinCell(const Settings& settings, const std::string& layout, Section* section) {
  const uint64_t rows = settings.Rows(20'000'000);
  const JoinWorkload& workload = WorkloadOf({.keys = KeyKind::kSequentialI32, .build_rows = rows, .probe_rows = rows});
  QUERN_ASSIGN_OR_RETURN(std::vector<Contender> contenders,
                         CompeteAll(SpecText(workload.spec()), {"layout=" + layout, "prefetch=off layout=" + layout}));
  QUERN_RETURN_IF_ERROR(TakeTurnsTwice(workload, settings.Turns(3), &contenders));
  std::vector<std::string> row = {layout, contenders[0].best.stats.layout, Grouped(rows)};
  for (const Contender& contender : contenders) {
    row.push_back(Fixed(contender.BuildNs(workload)));
    row.push_back(Fixed(contender.ProbeNs(workload)));
    row.push_back(Fixed(contender.best.all_s() * 1e3, 1));
  }
  const double ratio = Ratio(contenders[1], contenders[0]);
  row.push_back(Marked(ratio));
  section->CountRatio(ratio);
  section->Row(row);
  return absl::OkStatus();
}

void AddSelfJoin(Cells* cells) {
  cells->Begin(
      "selfjoin",
      "20 M sequential i32 joined with themselves and counted: does order help, and does prefetching do no harm?",
      {{"requested", -12},
       {"layout", -13},
       {"rows", 11},
       {"build", 9, "default"},
       {"probe", 9, "default"},
       {"ms", 10, "default"},
       {"build", 9, "distance 0"},
       {"probe", 9, "distance 0"},
       {"ms", 10, "distance 0"},
       {"ratio ", 8}});
  for (const char* const layout : {"auto", "open", "unchained"}) {
    cells->Add(layout, [settings = cells->settings(), layout](Section* section) {
      return SelfJoinCell(settings, layout, section);
    });
  }
}

// ---- queue -----------------------------------------------------------------------------------------------------

std::string QueueOf(int rows) {
  std::string params;
  for (const char* const loop :
       {"build_dense", "build_open", "build_unchained", "probe_dense", "probe_open", "probe_unchained"})
    params += " prefetch_" + std::string(loop) + "=" + std::to_string(rows);
  return params;
}

absl::Status QueueCell(const Settings& settings, const std::string& layout, uint64_t build_rows, Section* section) {
  const uint64_t rows = settings.Rows(build_rows);
  const JoinWorkload& workload = WorkloadOf({.build_rows = rows, .probe_rows = 4});
  const std::string direct = "partition_bits=0 layout=" + layout;
  QUERN_ASSIGN_OR_RETURN(
      std::vector<Contender> contenders,
      CompeteAll(SpecText(workload.spec()), {direct + " prefetch=off", direct + QueueOf(1), direct + QueueOf(4),
                                             direct + QueueOf(16), direct, "layout=" + layout}));
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, TurnsFor(settings, build_rows), &contenders));
  std::vector<std::string> row = {
      contenders[0].best.stats.layout, Grouped(rows),
      Bytes(contenders[0].best.stats.tuple_bytes + contenders[0].best.stats.directory_bytes)};
  for (const Contender& contender : contenders) row.push_back(Fixed(contender.BuildNs(workload)));
  row.insert(row.end() - 1, std::to_string(contenders[4].best.stats.prefetch_distance));
  section->Row(row);
  return absl::OkStatus();
}

void AddQueue(Cells* cells) {
  cells->Begin("queue", "how many rows should wait between the prefetch and the insertion? build ns/row, i64 keys",
               {{"layout", -13},
                {"build rows", 12},
                {"table", 10},
                {"none", 10, "queue of N rows, straight into the table"},
                {"1", 10, "queue of N rows, straight into the table"},
                {"4", 10, "queue of N rows, straight into the table"},
                {"16", 10, "queue of N rows, straight into the table"},
                {"tuned", 10, "queue of N rows, straight into the table"},
                {"N", 6, "queue of N rows, straight into the table"},
                {"partitions", 11}});
  for (const char* const layout : {"open", "unchained"}) {
    for (const uint64_t rows : {1'000, 100'000, 1'000'000, 10'000'000}) {
      cells->Add(layout + Numbered("/build", rows), [settings = cells->settings(), layout, rows](Section* section) {
        return QueueCell(settings, layout, rows, section);
      });
    }
  }
}

// ---- floor -----------------------------------------------------------------------------------------------------

struct FloorCase {
  const char* layout;
  KeyKind keys;
  size_t columns;
  int lines;  // random lines that a matching probe row touches
};

absl::Status FloorCell(const Settings& settings, const FloorCase& which, uint64_t build_rows, Section* section) {
  const JoinWorkload& workload = WorkloadOf({.keys = which.keys,
                                             .build_rows = settings.Rows(build_rows),
                                             .probe_rows = settings.Rows(10'000'000),
                                             .payload_columns = static_cast<uint32_t>(which.columns)});
  QUERN_ASSIGN_OR_RETURN(std::vector<Contender> contenders,
                         CompeteAll(SpecText(workload.spec(), which.columns), {std::string("layout=") + which.layout}));
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, TurnsFor(settings, build_rows), &contenders));
  const Contender& join = contenders[0];
  const uint64_t bytes = join.best.stats.directory_bytes + join.best.stats.tuple_bytes;
  const MemoryFloor floor = MeasureFloor(bytes, settings.Rows(5'000'000));
  section->Row({join.best.stats.layout, KeyType(which.keys), std::to_string(which.columns),
                Grouped(workload.spec().build_rows), Grouped(workload.spec().probe_rows), Bytes(bytes),
                std::to_string(which.lines), Fixed(floor.line_ns), std::to_string(floor.distance),
                Fixed(join.ProbeNs(workload)), Fixed(join.ProbeNs(workload) / floor.line_ns),
                Fixed(join.ProbeNs(workload) / floor.line_ns / which.lines)});
  return absl::OkStatus();
}

void AddFloor(Cells* cells) {
  static const FloorCase cases[] = {{"open", KeyKind::kSparseI64, 0, 1},
                                    {"open", KeyKind::kSparseI64, 1, 1},
                                    {"dense", KeyKind::kDenseI32, 1, 1},
                                    {"unchained", KeyKind::kSparseI64, 0, 2},
                                    {"unchained", KeyKind::kSparseI64, 1, 2}};
  cells->Begin("floor",
               "how far is a probe from the cost of the random cache lines that it touches, in a table of this size?",
               {{"layout", -12},
                {"key", -5},
                {"cols", 5},
                {"build rows", 12},
                {"probe rows", 12},
                {"table", 9},
                {"lines", 7},
                {"ns", 9, "one line"},
                {"distance", 10, "one line"},
                {"ns/row", 9, "probe"},
                {"/ line", 8, "probe"},
                {"/ lines", 9, "probe"}});
  for (const FloorCase& which : cases) {
    for (const uint64_t rows : {1'000'000, 10'000'000}) {
      cells->Add(std::string(which.layout) + Numbered("/build", rows) + Numbered("/extra", which.columns),
                 [settings = cells->settings(), &which, rows](Section* section) {
                   return FloorCell(settings, which, rows, section);
                 });
    }
  }
}

// ---- inline keys -----------------------------------------------------------------------------------------------

absl::Status InlineCell(const Settings& settings, uint32_t text_bytes, uint64_t build_rows, Section* section) {
  const JoinWorkload& workload = WorkloadOf({.keys = KeyKind::kText,
                                             .text_bytes = text_bytes,
                                             .build_rows = settings.Rows(build_rows),
                                             .probe_rows = settings.Rows(10'000'000)});
  QUERN_ASSIGN_OR_RETURN(std::vector<Contender> contenders,
                         CompeteAll(SpecText(workload.spec()), {"", "inline_key_bytes=" + std::to_string(text_bytes)}));
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, TurnsFor(settings, build_rows), &contenders));
  std::vector<std::string> row = {std::to_string(text_bytes), Grouped(workload.spec().build_rows)};
  for (const Contender& contender : contenders) {
    row.push_back(Fixed(contender.BuildNs(workload)));
    row.push_back(Fixed(contender.ProbeNs(workload)));
    row.push_back(Fixed(contender.best.all_s() * 1e3, 1));
  }
  row.push_back(Fixed(Ratio(contenders[0], contenders[1])));
  section->BreakAt(row[0]);
  section->Row(row);
  return absl::OkStatus();
}

void AddInline(Cells* cells) {
  cells->Begin("inline", "should a tuple hold all bytes of a longer text? ns/row; gain: over 20 bytes of it",
               {{"text bytes", 10},
                {"build rows", 11},
                {"build", 9, "20 bytes"},
                {"probe", 9, "20 bytes"},
                {"ms", 10, "20 bytes"},
                {"build", 9, "all bytes"},
                {"probe", 9, "all bytes"},
                {"ms", 10, "all bytes"},
                {"gain", 8}});
  for (const uint32_t text_bytes : {24, 32, 48, 64}) {
    for (const uint64_t build_rows : {1'000, 100'000, 10'000'000}) {
      cells->Add("text" + std::to_string(text_bytes) + Numbered("/build", build_rows),
                 [settings = cells->settings(), text_bytes, build_rows](Section* section) {
                   return InlineCell(settings, text_bytes, build_rows, section);
                 });
    }
  }
}

// ---- partitions ------------------------------------------------------------------------------------------------

absl::Status PartitionsCell(const Settings& settings, KeyKind keys, const std::string& layout, Section* section) {
  const uint64_t rows = settings.Rows(10'000'000);
  const JoinWorkload& workload = WorkloadOf({.keys = keys, .text_bytes = 16, .build_rows = rows, .probe_rows = rows});
  const std::vector<std::string> bits = {"0", "4", "6", "8"};
  std::vector<std::string> params;
  for (const std::string& b : bits) params.push_back("layout=" + layout + " partition_bits=" + b);
  QUERN_ASSIGN_OR_RETURN(std::vector<Contender> contenders, CompeteAll(SpecText(workload.spec()), params));
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(3), &contenders));
  for (size_t i = 0; i < contenders.size(); ++i) {
    const Contender& join = contenders[i];
    const double per_row = 1e9 / static_cast<double>(rows);
    section->BreakAt(KeyType(keys) + layout);
    section->Row({join.best.stats.layout, KeyType(keys) + (keys == KeyKind::kText ? " 16" : ""), Grouped(rows), bits[i],
                  Fixed(join.best.append_s * per_row), Fixed(join.best.finalise_s * per_row),
                  Fixed(join.BuildNs(workload)), Fixed(join.ProbeNs(workload)), Fixed(join.best.all_s() * 1e3, 1),
                  Fixed(Ratio(contenders[0], join))});
  }
  return absl::OkStatus();
}

void AddPartitions(Cells* cells) {
  cells->Begin(
      "partitions",
      "does radix-partitioning rows by their hash pay for itself? ns/row; gain: whole join, over no partitions",
      {{"layout", -13},
       {"key", -9},
       {"rows each", 12},
       {"bits", 6},
       {"append", 10, "build"},
       {"finalise", 10, "build"},
       {"sum", 10, "build"},
       {"probe", 10},
       {"ms", 11},
       {"gain", 8}});
  const std::pair<KeyKind, const char*> cases[] = {
      {KeyKind::kSparseI64, "open"}, {KeyKind::kSparseI64, "unchained"}, {KeyKind::kText, "unchained"}};
  for (const auto& [keys, layout] : cases) {
    cells->Add(KeyType(keys) + "/" + layout,
               [settings = cells->settings(), keys = keys, layout = layout](Section* section) {
                 return PartitionsCell(settings, keys, layout, section);
               });
  }
}

// ---- threads ---------------------------------------------------------------------------------------------------

std::vector<unsigned> ThreadCounts() {
  std::vector<unsigned> counts = {1, 2};
  for (const unsigned threads : {4U, 8U, 16U}) {
    if (threads <= std::thread::hardware_concurrency()) counts.push_back(threads);
  }
  return counts;
}

absl::Status ThreadsCell(const Settings& settings, KeyKind keys, size_t columns, Section* section) {
  const uint64_t rows = settings.Rows(10'000'000);
  const JoinWorkload& workload = WorkloadOf({.keys = keys,
                                             .text_bytes = 16,
                                             .build_rows = rows,
                                             .probe_rows = rows,
                                             .payload_columns = static_cast<uint32_t>(columns)});
  const std::vector<unsigned> threads = ThreadCounts();
  QUERN_ASSIGN_OR_RETURN(std::vector<Contender> contenders,
                         CompeteAll(SpecText(workload.spec(), columns), std::vector<std::string>(threads.size())));
  for (size_t i = 0; i < threads.size(); ++i) contenders[i].threads = threads[i];
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(5), &contenders));
  const JoinTimes& one = contenders[0].best;
  for (const Contender& join : contenders) {
    const JoinTimes& best = join.best;
    section->BreakAt(KeyType(keys) + std::to_string(columns));
    section->Row({best.stats.layout, KeyType(keys) + (keys == KeyKind::kText ? " 16" : ""), std::to_string(columns),
                  Grouped(rows), std::to_string(join.threads), Fixed(best.build_s() * 1e3, 1),
                  Fixed(one.build_s() / best.build_s()), Fixed(best.probe_s * 1e3, 1),
                  Fixed(one.probe_s / best.probe_s), Fixed(best.all_s() * 1e3, 1), Fixed(one.all_s() / best.all_s())});
  }
  return absl::OkStatus();
}

void AddThreads(Cells* cells) {
  cells->Begin("threads", "how much faster are several threads than one?",
               {{"layout", -13},
                {"key", -9},
                {"cols", 5},
                {"rows each", 12},
                {"threads", 9},
                {"ms", 10, "build"},
                {"times", 8, "build"},
                {"ms", 10, "probe"},
                {"times", 8, "probe"},
                {"ms", 10, "whole join"},
                {"times", 8, "whole join"}});
  const std::pair<KeyKind, size_t> cases[] = {{KeyKind::kSparseI64, 0}, {KeyKind::kSparseI64, 1}, {KeyKind::kText, 0}};
  for (const auto& [keys, columns] : cases) {
    cells->Add(KeyType(keys) + Numbered("/extra", columns),
               [settings = cells->settings(), keys = keys, columns = columns](Section* section) {
                 return ThreadsCell(settings, keys, columns, section);
               });
  }
}

// ---- duplicates ------------------------------------------------------------------------------------------------

absl::Status DuplicatesCell(const Settings& settings, double zipf, size_t columns, const std::string& layout,
                            Section* section) {
  const uint64_t rows = settings.Rows(10'000'000);
  const JoinWorkload& workload =
      WorkloadOf({.build_rows = rows, .probe_rows = rows, .rows_per_key = 4, .zipf = zipf, .payload_columns = 1});
  QUERN_ASSIGN_OR_RETURN(
      std::vector<Contender> contenders,
      CompeteAll(SpecText(workload.spec(), columns), {"layout=" + layout, "prefetch=off layout=" + layout}));
  QUERN_RETURN_IF_ERROR(TakeTurnsTwice(workload, settings.Turns(3), &contenders));
  std::vector<std::string> row = {zipf > 0 ? "Zipf " + Fixed(zipf, 1) : "uniform",
                                  columns == 0 ? "count" : "column",
                                  layout,
                                  contenders[0].best.stats.layout,
                                  Grouped(rows),
                                  Grouped(contenders[0].best.rows_out)};
  for (const Contender& contender : contenders) {
    row.push_back(Fixed(contender.BuildNs(workload)));
    row.push_back(Fixed(contender.ProbeNs(workload)));
  }
  const double ratio = Ratio(contenders[1], contenders[0]);
  row.push_back(Marked(ratio));
  section->CountRatio(ratio);
  section->Row(row);
  return absl::OkStatus();
}

void AddDuplicates(Cells* cells) {
  cells->Begin("duplicates", "4 build rows a key, i64: what do duplicates cost, and what do skewed probes gain?",
               {{"probes", -10},
                {"result", -9},
                {"requested", -12},
                {"layout", -14},
                {"rows each", 11},
                {"rows out", 12},
                {"build", 9, "default"},
                {"probe", 9, "default"},
                {"build", 9, "distance 0"},
                {"probe", 9, "distance 0"},
                {"ratio ", 8}});
  for (const double zipf : {0.0, 1.5}) {
    for (const size_t columns : {0, 1}) {
      for (const char* const layout : {"auto", "unchained"}) {
        const std::string name =
            std::string(zipf > 0 ? "zipf" : "uniform") + (columns == 0 ? "/count/" : "/column/") + layout;
        cells->Add(name, [settings = cells->settings(), zipf, columns, layout](Section* section) {
          return DuplicatesCell(settings, zipf, columns, layout, section);
        });
      }
    }
  }
}

// ---- kinds -----------------------------------------------------------------------------------------------------

absl::Status KindsCell(const Settings& settings, const JoinKindRow& kind, Section* section) {
  const JoinWorkload& workload = WorkloadOf({.build_rows = settings.Rows(1'000'000),
                                             .probe_rows = settings.Rows(10'000'000),
                                             .hits_percent = 50,
                                             .payload_columns = 1});
  std::vector<std::string> row = {std::string(kind.text)};
  for (const bool has_columns : {false, true}) {
    const std::string columns = std::string(has_columns && kind.has_build_columns() ? " build=i64" : "") +
                                (has_columns && kind.has_probe_columns() ? " probe=i64" : "");
    QUERN_ASSIGN_OR_RETURN(Contender join, Compete(SpecText(workload.spec(), 0, kind.text) + columns));
    QUERN_ASSIGN_OR_RETURN(Contender inner,
                           Compete(SpecText(workload.spec()) + (has_columns ? " build=i64 probe=i64" : "")));
    std::vector<Contender> contenders = {join, inner};
    QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(5), &contenders));
    if (!has_columns) row.push_back(Grouped(contenders[0].best.rows_out));
    row.insert(row.end(), {contenders[0].best.stats.layout, Fixed(contenders[0].BuildNs(workload)),
                           Fixed(contenders[0].ProbeNs(workload)),
                           Fixed(contenders[0].best.all_s() / contenders[1].best.all_s())});
  }
  section->Row(row);
  return absl::OkStatus();
}

void AddKinds(Cells* cells) {
  cells->Begin(
      "kinds",
      "1 M build rows, 10 M probe rows, i64, half of them match: what does each kind cost, compared with inner?",
      {{"kind", -19},
       {"rows out", 12},
       {"layout", -13, "count"},
       {"build", 8, "count"},
       {"probe", 8, "count"},
       {"/ inner", 9, "count"},
       {"layout", -13, "an i64 column of each side"},
       {"build", 8, "an i64 column of each side"},
       {"probe", 8, "an i64 column of each side"},
       {"/ inner", 9, "an i64 column of each side"}});
  for (const JoinKindRow& kind : AllJoinKinds()) {
    cells->Add(std::string(kind.text),
               [settings = cells->settings(), &kind](Section* section) { return KindsCell(settings, kind, section); });
  }
}

}  // namespace

std::vector<NamedCell> AllJoinCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddPostgres(&cells);
  AddSelfJoin(&cells);
  AddQueue(&cells);
  AddFloor(&cells);
  AddInline(&cells);
  AddPartitions(&cells);
  AddThreads(&cells);
  AddDuplicates(&cells);
  AddKinds(&cells);
  return all;
}

}  // namespace quern::bench
