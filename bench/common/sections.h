// SPDX-License-Identifier: Apache-2.0
// The parts of a bench: each section answers one question and consists of cells that --benchmark_filter selects.
#ifndef QUERN_BENCH_COMMON_SECTIONS_H_
#define QUERN_BENCH_COMMON_SECTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bench/common/text_table.h"

namespace quern::bench {

struct Settings {
  double rows_scale = 1;
  int turns = 0;  // 0: the default of each section

  uint64_t Rows(uint64_t rows) const;  // scaled; a multiple of 4, and at least 4
  int Turns(int own) const { return turns > 0 ? turns : own; }
};

class Section;

// Prints rows of its section.
using Cell = std::function<absl::Status(Section*)>;

class Section {
 public:
  Section(std::string name, std::string question, std::vector<TextColumn> columns)
      : name_(std::move(name)), question_(std::move(question)), table_(std::move(columns)) {}

  void Row(const std::vector<std::string>& cells) const { table_.PrintRow(cells); }

  // Begins the table if another one was open.
  void Open() const;
  // Prints an empty line before the next row if `block` differs from the previous row's.
  void BreakAt(const std::string& block);
  // Counts a ratio of the times without and with prefetching for the section's last line; below 0.98 it counts as low.
  void CountRatio(double ratio);
  void PrintSummary() const;

 private:
  std::string name_, question_;
  TextTable table_;
  std::string block_;
  int num_ratios_ = 0, num_low_ratios_ = 0;
  double lowest_ratio_ = 1e9, highest_ratio_ = 0;
};

struct NamedCell {
  std::string name;  // "postgres/i32/build1000/extra2"
  std::shared_ptr<Section> section;
  Cell run;
};

// Collects the cells, section by section.
class Cells {
 public:
  Cells(const Settings& settings, std::vector<NamedCell>* cells) : settings_(settings), cells_(cells) {}

  void Begin(const std::string& name, const std::string& question, std::vector<TextColumn> columns) {
    name_ = name;
    section_ = std::make_shared<Section>(name, question, std::move(columns));
  }
  void Add(const std::string& name, Cell run) { cells_->push_back({name_ + "/" + name, section_, std::move(run)}); }
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
  std::vector<NamedCell>* cells_;
  std::string name_;
  std::shared_ptr<Section> section_;
};

constexpr double kLowRatio = 0.98;  // of the times without and with prefetching

// The cells in the order of printing. The row counts in their names are those of scale 1.
using AllCells = std::vector<NamedCell> (*)(const Settings& settings);

// The main function of a bench: reads its options, runs the selected cells and prints their tables. Returns the exit
// status.
int RunSections(const std::string& bench, AllCells all_cells, int argc, char** argv);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_SECTIONS_H_
