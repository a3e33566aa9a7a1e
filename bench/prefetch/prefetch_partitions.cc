// SPDX-License-Identifier: Apache-2.0
// Two ways to keep a large join from waiting for memory: prefetch lines, or first radix-partition both sides so that
// the table of each partition fits the cache, and join partition by partition, as PostgreSQL does when it has to write
// partitions to disk. Both sides have 10 M rows of i64:
//
//     one table        1 x (append 10 M, finalise, probe 10 M)                     a table of 190 to 410 MiB
//     256 partitions   partition 2 x 10 M rows,
//                      256 x (append 39,000, finalise, probe 39,000)               tables of 0.8 to 1.6 MiB
//
// The partition is the lowest byte of the key, which has 64 random bits; the join takes its own partitions and slots
// from bits of a hash of the key. Partitioning writes a line of 8 values at a time. It is a pass of its own with a time
// of its own, since rows may arrive partitioned. Kernels, tables and batches are those of other joins; all settings
// take turns on both, and all of them must find the same number of pairs. The system provides the memory of each table
// anew: huge pages for the one table, small pages for a partition's table. Hence the column of page faults.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/timing.h"
#include "bench/join/join_run.h"
#include "bench/join/join_workload.h"
#include "bench/prefetch/prefetch_sections.h"
#include "bench/prefetch/prefetch_sweep.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"

namespace quern::bench {
namespace {

constexpr uint64_t kRows = 10'000'000;  // on each side
constexpr uint32_t kParts = 256;
constexpr uint64_t kBatchRows = uint64_t{1} << 16;
constexpr uint64_t kOutputRows = uint64_t{1} << 14;
constexpr uint32_t kLineValues = 8;

// Columns of 64-bit values whose rows are grouped by partition. The first column is the key.
struct Side {
  std::vector<const uint64_t*> columns;
  std::vector<uint64_t> begins;  // of the partitions, and the end of the last

  BatchView View(uint64_t first, uint64_t rows) const {
    BatchView batch;
    batch.num_rows = rows;
    for (size_t i = 0; i < columns.size(); ++i) {
      QuernColumn column = {};
      column.values = columns[i] + first;
      (i == 0 ? batch.keys : batch.payload).push_back(column);
    }
    return batch;
  }
};

Side WholeSide(const BatchView& batch) {
  Side side;
  for (const std::vector<QuernColumn>* columns : {&batch.keys, &batch.payload})
    for (const QuernColumn& column : *columns) side.columns.push_back(static_cast<const uint64_t*>(column.values));
  side.begins = {0, batch.num_rows};
  return side;
}

uint32_t PartOf(uint64_t key) { return static_cast<uint32_t>(key % kParts); }

// A partitioned side. Its memory is allocated once, so that partitioning again writes to pages that exist.
class PartitionedGroups {
 public:
  explicit PartitionedGroups(const Side& from)
      : from_(from), columns_(from.columns.size(), std::vector<uint64_t>(from.begins.back(), 1)) {
    for (const std::vector<uint64_t>& column : columns_) side_.columns.push_back(column.data());
  }

  void Partition();
  const Side& side() const { return side_; }

 private:
  void PartitionColumn(const uint64_t* from, uint64_t* to) const;

  Side from_, side_;
  std::vector<std::vector<uint64_t>> columns_;
};

void PartitionedGroups::Partition() {
  const uint64_t rows = from_.begins.back();
  side_.begins.assign(kParts + 1, 0);
  for (uint64_t row = 0; row < rows; ++row) ++side_.begins[PartOf(from_.columns[0][row]) + 1];
  for (uint32_t part = 0; part < kParts; ++part) side_.begins[part + 1] += side_.begins[part];
  for (size_t i = 0; i < columns_.size(); ++i) PartitionColumn(from_.columns[i], columns_[i].data());
}

// One line for each partition stays in the cache until it is full.
void PartitionedGroups::PartitionColumn(const uint64_t* from, uint64_t* to) const {
  struct alignas(64) Line {
    uint64_t values[kLineValues];
  };
  std::vector<Line> lines(kParts);
  std::vector<uint64_t> next(side_.begins.begin(), side_.begins.end() - 1), taken(kParts);
  const uint64_t* const keys = from_.columns[0];
  const uint64_t rows = from_.begins.back();
  for (uint64_t row = 0; row < rows; ++row) {
    const uint32_t part = PartOf(keys[row]);
    lines[part].values[taken[part]] = from[row];
    if (++taken[part] < kLineValues) continue;
    std::memcpy(to + next[part], lines[part].values, sizeof(Line));
    next[part] += kLineValues;
    taken[part] = 0;
  }
  for (uint32_t part = 0; part < kParts; ++part)
    if (taken[part] != 0) std::memcpy(to + next[part], lines[part].values, taken[part] * sizeof(uint64_t));
}

struct PhaseTimes {
  double build_s = 0, probe_s = 0;
  uint64_t rows_out = 0;
  uint64_t table_bytes = 0;  // of the largest partition
  uint64_t faults = 0;       // pages that the system provided
  double all_s() const { return build_s + probe_s; }
};

absl::Status ProbePart(const std::shared_ptr<HashJoin>& join, const Side& probe, size_t part, OutputBatch* out,
                       PhaseTimes* times) {
  JoinProber prober(join);
  for (uint64_t at = probe.begins[part]; at < probe.begins[part + 1]; at += kBatchRows) {
    QUERN_RETURN_IF_ERROR(prober.SetInput(probe.View(at, std::min(kBatchRows, probe.begins[part + 1] - at))));
    for (bool more = true; more;) {
      QUERN_ASSIGN_OR_RETURN(more, prober.Next(out));
      times->rows_out += out->num_rows();
    }
  }
  return absl::OkStatus();
}

uint64_t PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

// For each partition a table, and all lookups in it.
absl::StatusOr<PhaseTimes> JoinParts(const std::shared_ptr<const Kernel>& kernel, const Side& build,
                                     const Side& probe) {
  PhaseTimes times;
  const uint64_t faults_before = PageFaults();
  const auto budget = std::make_shared<MemoryBudget>();
  OutputBatch out(JoinOutputTypes(std::get<JoinSpec>(kernel->plan.spec)), kOutputRows, budget);
  for (size_t part = 0; part + 1 < build.begins.size(); ++part) {
    const double start = Now();
    const std::shared_ptr<HashJoin> join = MakeHashJoin(kernel, budget);
    for (uint64_t at = build.begins[part]; at < build.begins[part + 1]; at += kBatchRows)
      QUERN_RETURN_IF_ERROR(join->Append(build.View(at, std::min(kBatchRows, build.begins[part + 1] - at))));
    QUERN_RETURN_IF_ERROR(join->Finalise());
    const double built = Now();
    QUERN_RETURN_IF_ERROR(ProbePart(join, probe, part, &out, &times));
    times.build_s += built - start;
    times.probe_s += Now() - built;
    times.table_bytes = std::max(times.table_bytes, join->stats().directory_bytes + join->stats().tuple_bytes);
  }
  times.faults = PageFaults() - faults_before;
  return times;
}

std::string EachLoop(const std::string& setting) {
  std::string params;
  for (const char* const loop : {"build_open", "build_unchained", "probe_open", "probe_unchained"})
    params += " prefetch_" + std::string(loop) + "=" + setting;
  return params;
}

struct PartitionCase {
  const char* layout;
  size_t columns;  // of the build side, besides the key
};

// One table and 256, each without prefetching, with 16 rows as engines hard-code it, and with the plan's setting.
struct Rival {
  const char* asks;
  bool is_partitioned;
  std::shared_ptr<const Kernel> kernel = nullptr;
  PhaseTimes best = {};
};

absl::StatusOr<std::vector<Rival>> MakeRivals(const PartitionCase& which) {
  const std::string spec = std::string("join.inner keys=i64") + (which.columns == 0 ? "" : " build=i64");
  const std::string layout = std::string("layout=") + which.layout;
  std::vector<Rival> rivals;
  for (const bool is_partitioned : {false, true}) {
    const std::pair<const char*, std::string> settings[] = {
        {"0", " prefetch=off"}, {"16", EachLoop("16")}, {"as planned", ""}};
    for (const auto& [asks, params] : settings) {
      QUERN_ASSIGN_OR_RETURN(const Contender contender, Compete(spec, layout + params));
      rivals.push_back({asks, is_partitioned, contender.kernel});
    }
  }
  return rivals;
}

// Times are those of whole joins: the best turn of one partition plus that of another would be no join that ever ran.
absl::Status TakeTurns(int turns, uint64_t expected, const Side& build, const Side& probe,
                       PartitionedGroups* partitioned_build, PartitionedGroups* partitioned_probe,
                       std::vector<Rival>* rivals, double* partition_s) {
  *partition_s = 1e9;
  for (int turn = 0; turn < turns; ++turn) {
    const double start = Now();
    partitioned_build->Partition();
    partitioned_probe->Partition();
    *partition_s = std::min(*partition_s, Now() - start);
    for (Rival& rival : *rivals) {
      QUERN_ASSIGN_OR_RETURN(const PhaseTimes times,
                             JoinParts(rival.kernel, rival.is_partitioned ? partitioned_build->side() : build,
                                       rival.is_partitioned ? partitioned_probe->side() : probe));
      if (times.rows_out != expected)
        return Internal("wrong number of result rows: " + std::to_string(times.rows_out) +
                        "; accepted: " + std::to_string(expected));
      if (turn == 0 || times.all_s() < rival.best.all_s()) rival.best = times;
    }
  }
  return absl::OkStatus();
}

const Rival& BestOf(const std::vector<Rival>& rivals, bool is_partitioned) {
  const Rival* best = nullptr;
  for (const Rival& rival : rivals)
    if (rival.is_partitioned == is_partitioned && (best == nullptr || rival.best.all_s() < best->best.all_s()))
      best = &rival;
  return *best;
}

void PrintReading(const char* layout, const std::vector<Rival>& rivals, double partition_s) {
  const double none_s = rivals[0].best.all_s();
  const Rival &one = BestOf(rivals, false), &parts = BestOf(rivals, true);
  const double one_s = one.best.all_s(), parts_s = parts.best.all_s(), with_s = parts_s + partition_s;
  std::printf(
      "\n%s: prefetching (%s) makes one table %s times as fast, partitions (%s) %s times, partitioning included %s "
      "times; ",
      layout, one.asks, Fixed(none_s / one_s).c_str(), parts.asks, Fixed(none_s / parts_s).c_str(),
      Fixed(none_s / with_s).c_str());
  if (one_s <= parts_s) std::printf("prefetching gains more than partitions even if rows arrive partitioned\n\n");
  else if (one_s <= with_s) std::printf("partitions gain more only if rows arrive partitioned\n\n");
  else std::printf("partitions gain more, partitioning included\n\n");
  std::fflush(stdout);
}

absl::Status PartitionedCell(const Settings& settings, const PartitionCase& which, Section* section) {
  const uint64_t rows = settings.Rows(kRows);
  const JoinWorkload workload({.keys = KeyKind::kSparseI64,
                               .build_rows = rows,
                               .probe_rows = rows,
                               .payload_columns = static_cast<uint32_t>(which.columns)});
  const Side build = WholeSide(workload.Build(0, rows, which.columns)), probe = WholeSide(workload.Probe(0, rows, 0));
  PartitionedGroups partitioned_build(build), partitioned_probe(probe);
  QUERN_ASSIGN_OR_RETURN(std::vector<Rival> rivals, MakeRivals(which));
  double partition_s = 0;
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(3), workload.ResultRows(JoinKind::kInner), build, probe,
                                  &partitioned_build, &partitioned_probe, &rivals, &partition_s));
  const double per_row = 1e9 / static_cast<double>(rows), none_s = rivals[0].best.all_s();
  for (const Rival& rival : rivals) {
    const PhaseTimes& best = rival.best;
    const double with_s = best.all_s() + (rival.is_partitioned ? partition_s : 0);
    section->BreakAt(std::string(which.layout) + (rival.is_partitioned ? " parts" : ""));
    section->Row(
        {which.layout, std::to_string(which.columns), Grouped(rows),
         rival.is_partitioned ? std::to_string(kParts) : "1", Bytes(best.table_bytes), rival.asks,
         rival.is_partitioned ? Fixed(partition_s * per_row) : "-", Fixed(best.build_s * per_row),
         Fixed(best.probe_s * per_row), Fixed(static_cast<double>(best.faults) * 1e3 / static_cast<double>(rows), 1),
         Fixed(best.all_s() * 1e3, 1), Fixed(none_s / best.all_s()), Fixed(with_s * 1e3, 1), Fixed(none_s / with_s)});
  }
  PrintReading(which.layout, rivals, partition_s);
  return absl::OkStatus();
}

}  // namespace

void AddPartitionedJoins(Cells* cells) {
  static const PartitionCase cases[] = {{"open", 0}, {"unchained", 1}};
  cells->Begin(
      "pgcon",
      "one table, or 256 that fit the cache, with and without prefetching? ns/row of one side; faults per thousand "
      "rows; gain: over one "
      "table at 0",
      {{"layout", -12},
       {"cols", 5},
       {"rows each", 12},
       {"tables", 8},
       {"size", 10},
       {"prefetch", 12},
       {"partition", 10},
       {"build", 8},
       {"probe", 8},
       {"faults", 8},
       {"ms", 9, "joins alone"},
       {"gain", 7, "joins alone"},
       {"ms", 9, "with partitioning"},
       {"gain", 12, "with partitioning"}});
  for (const PartitionCase& which : cases)
    cells->Add(which.layout, [settings = cells->settings(), &which](Section* section) {
      return PartitionedCell(settings, which, section);
    });
}

}  // namespace quern::bench
