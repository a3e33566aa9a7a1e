// SPDX-License-Identifier: Apache-2.0
// The page is self-contained: it has no script, font or picture from elsewhere, and its Content-Security-Policy would
// not let it load one. For each loop and key class it shows a chart over table size, a small chart over distance for
// each size, and a table of every candidate, so that the numbers of a chart can be read and copied.
//
// Example, two lines of the table for a terminal:
//
//     loop        keys    pipeline  threads    table  default              chosen                   off    gain  noise
//     probe_open  packed         1        1   64 KiB   0  2.00 ns         default   2.00 ns   2.00 ns       -  1.0 %
//     probe_open  packed         1        1  192 MiB  128  20.00 ns  64/group=16/..  16.00 ns  50.00 ns  20.0 %  2.5 %
#include "tools/report/report.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/report/charts.h"

namespace quern {
namespace {

// The cells of one chart over size.
using Family = std::vector<const CellResult*>;

auto FamilyOf(const TuningCell& cell) { return std::tuple(cell.loop, cell.keys, cell.pipeline, cell.threads); }

std::vector<Family> FamiliesOf(const std::vector<CellResult>& cells) {
  Family all;
  for (const CellResult& cell : cells)
    if (!cell.candidates.empty()) all.push_back(&cell);
  std::sort(all.begin(), all.end(), [](const CellResult* a, const CellResult* b) {
    return std::tuple(FamilyOf(a->cell), a->table_bytes, a) < std::tuple(FamilyOf(b->cell), b->table_bytes, b);
  });
  std::vector<Family> families;
  for (const CellResult* cell : all) {
    if (families.empty() || FamilyOf(families.back().front()->cell) != FamilyOf(cell->cell)) families.emplace_back();
    families.back().push_back(cell);
  }
  return families;
}

std::string FamilyText(const TuningCell& cell) {
  std::string text = std::string(LoopText(cell.loop)) + ", " + KeyClassText(cell.keys) + " keys";
  if (cell.pipeline != 1) text += ", " + std::to_string(cell.pipeline) + " in a pipeline";
  return text + (cell.threads == 1 ? ", 1 thread" : ", " + std::to_string(cell.threads) + " threads");
}

std::string NsText(const CandidateResult& candidate) {
  return candidate.runs == 0 ? "-" : FixedText(candidate.ns, 2) + " ns";
}
std::string PercentText(double share) { return FixedText(share * 100, 1) + " %"; }
std::string SettingOf(const CellResult& cell, size_t place) {
  return PrintSetting(cell.candidates[place].setting, DefaultHint(cell.cell.loop));
}
std::string GainText(const CellResult& cell) {
  if (!cell.beats_default) return "-";
  return PercentText(1 - cell.candidates[cell.best].ns / cell.candidates[cell.by_default].ns);
}

// A line for each cell, in columns; the first line names them.
using Row = std::vector<std::string>;
constexpr size_t kNumLeftColumns = 2;  // names, left-aligned; numbers are right-aligned

std::vector<Row> RowsOf(const std::vector<Family>& families) {
  std::vector<Row> rows = {
      {"loop", "keys", "pipeline", "threads", "table", "default", "", "chosen", "", "off", "gain", "noise"}};
  for (const Family& family : families) {
    for (const CellResult* cell : family) {
      const auto& candidates = cell->candidates;
      rows.push_back({LoopText(cell->cell.loop), KeyClassText(cell->cell.keys), std::to_string(cell->cell.pipeline),
                      std::to_string(cell->cell.threads), BytesText(cell->table_bytes),
                      SettingOf(*cell, cell->by_default), NsText(candidates[cell->by_default]),
                      cell->beats_default ? SettingOf(*cell, cell->best) : "default", NsText(candidates[cell->best]),
                      NsText(candidates[cell->off]), GainText(*cell),
                      candidates[cell->by_default].runs == 0 ? "-"
                      : cell->noise >= 1                     ? "undecided"
                                                             : PercentText(cell->noise)});
    }
  }
  return rows;
}

std::string Aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      text += (i == 0 ? "" : "  ") + (i < kNumLeftColumns ? row[i] + blanks : blanks + row[i]);
    }
    text += "\n";
  }
  return text;
}

// "12 cells in 34.1 s, 5 of them better than by default".
std::string SummaryText(const TuningResult& result) {
  size_t cells = 0, better = 0;
  for (const CellResult& cell : result.cells) {
    if (cell.candidates.empty()) continue;
    ++cells;
    better += cell.beats_default ? 1 : 0;
  }
  std::string text = std::to_string(cells) + (cells == 1 ? " cell in " : " cells in ") + FixedText(result.seconds, 1) +
                     " s, " + std::to_string(better) + " of them better than by default";
  return result.stopped ? text + "; stopped early" : text;
}

// ---- the page --------------------------------------------------------------------------------------------------

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Quern: tuned prefetching</title>
<style>
:root{--paper:#fff;--ink:#1b1f24;--quiet:#5d6670;--grid:#e4e7ea;--noise:#dfe9f6;--default:#1f6fd0;--chosen:#c2410c;
--off:#7a7f87;
--floor:#1a7f4b}
@media (prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e6e8eb;--quiet:#a2abb5;--grid:#2c3137;--noise:#22344b;
--default:#6aaef5;
--chosen:#ff9a5c;--off:#9aa1aa;--floor:#52c98b}}
body{margin:0 auto;max-width:1100px;padding:24px;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:40px 0 4px}h3{font-size:13px;margin:0 0 2px;font-weight:600}
p{margin:4px 0 12px;color:var(--quiet);max-width:80ch}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:8px 0}
th,td{padding:2px 10px;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}th{font-weight:600;color:var(--quiet)}
.scroll{overflow-x:auto}.wide{max-width:760px}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:20px;margin:12px 0}
.key{display:flex;flex-wrap:wrap;gap:4px 20px;color:var(--quiet);font-size:13px}
.key span{display:inline-flex;align-items:center;gap:6px}.key svg{width:22px;height:18px}
summary{cursor:pointer;color:var(--quiet);font-size:13px}
)";

// The legend of the charts.
constexpr std::string_view kKey = R"(<div class="key">
<span><svg viewBox="0 0 22 18"><line x1="1" y1="9" x2="21" y2="9" class="curve"/>
<circle cx="11" cy="9" r="3" class="plain"/></svg>distance alone</span>
<span><svg viewBox="0 0 22 18">
<circle cx="11" cy="9" r="2" class="variant"/></svg>also another hint, stages, group or batch</span>
<span><svg viewBox="0 0 22 18"><circle cx="11" cy="9" r="3" class="plain loser"/></svg>left the race early</span>
<span><svg viewBox="0 0 22 18"><circle cx="11" cy="9" r="7.5" class="chosen-ring"/></svg>chosen</span>
<span><svg viewBox="0 0 22 18"><circle cx="11" cy="9" r="5" class="default-ring"/></svg>default</span>
<span><svg viewBox="0 0 22 18"><line x1="1" y1="9" x2="21" y2="9" class="floor"/></svg>floor</span>
<span><svg viewBox="0 0 22 18">
<rect x="0" y="4" width="22" height="10" class="noise"/></svg>noise around the default</span>
<span><svg viewBox="0 0 22 18">
<rect x="0" y="4" width="22" height="10" class="quartiles"/></svg>quartiles of the runs</span>
</div>
)";

std::string HtmlTable(const std::vector<Row>& rows) {
  std::string html = "<div class=\"scroll\"><table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string tag = i == 0 ? "th" : "td";
    html += "<tr>";
    for (const std::string& cell : rows[i]) html += "<" + tag + ">" + EscapeHtml(cell) + "</" + tag + ">";
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string RateText(double gb_s) { return FixedText(gb_s, 1) + " GB/s"; }

std::string MachineHtml(const MachineFacts& facts) {
  const MachineSignature& machine = facts.signature;
  std::string html =
      "<h2>Machine</h2>\n<p>" + EscapeHtml(machine.cpu_name.empty() ? "Unknown processor" : machine.cpu_name);
  if (!machine.cpu.empty()) html += " (" + EscapeHtml(machine.cpu) + ")";
  if (machine.cores != 0) html += ", " + std::to_string(machine.cores) + (machine.cores == 1 ? " core" : " cores");
  if (!machine.hypervisor.empty()) html += ", under " + EscapeHtml(machine.hypervisor);
  if (facts.l2_bytes != 0) html += ", L2 as measured " + BytesText(facts.l2_bytes);
  if (facts.l3_bytes != 0) html += ", L3 as measured " + BytesText(facts.l3_bytes);
  if (facts.sequential_read_gb_s > 0)
    html += "; reads " + RateText(facts.sequential_read_gb_s) + ", writes " + RateText(facts.sequential_write_gb_s) +
            " in sequence";
  html += ".</p>\n";
  if (facts.memory.empty()) return html + "<p>Its memory was not measured.</p>\n";
  return html +
         "<p>Latency is the time of a random line that the next one waits for; the floor that of one of many under "
         "way.</p>\n" +
         "<div class=\"wide\">" + MemoryChart(facts) + "</div>\n";
}

// One small chart with its heading.
std::string PanelHtml(const CellResult& cell, const MachineFacts& facts) {
  const std::string outcome = cell.beats_default ? SettingOf(cell, cell.best) + ", " + GainText(cell) + " faster"
                                                 : std::string("default stays");
  return "<div><h3>" + BytesText(cell.table_bytes) + ": " + EscapeHtml(outcome) + "</h3>\n" +
         DistanceChart(cell, FloorNs(facts, cell)) + "</div>\n";
}

std::string CandidatesHtml(const Family& family) {
  std::vector<Row> rows = {{"table", "setting", "ns/row", "quartiles", "runs", ""}};
  for (const CellResult* cell : family) {
    for (size_t i = 0; i < cell->candidates.size(); ++i) {
      const CandidateResult& candidate = cell->candidates[i];
      std::string remarks = candidate.dropped ? "left early" : "";
      if (i == cell->by_default) remarks += remarks.empty() ? "default" : ", default";
      if (i == cell->best) remarks += remarks.empty() ? "chosen" : ", chosen";
      rows.push_back({BytesText(cell->table_bytes), SettingOf(*cell, i), FixedText(candidate.ns, 2),
                      FixedText(candidate.low_ns, 2) + " to " + FixedText(candidate.high_ns, 2),
                      std::to_string(candidate.runs), remarks});
    }
  }
  return "<details><summary>All candidates</summary>\n" + HtmlTable(rows) + "</details>\n";
}

std::string FamilyHtml(const Family& family, const MachineFacts& facts) {
  const uint64_t gate = GateBytes(family);
  std::string html =
      "<h2>" + EscapeHtml(FamilyText(family.front()->cell)) + "</h2>\n<p>" +
      (gate == 0 ? "Prefetch is on at each size that was measured."
                 : "Gate: prefetch is off in tables up to " + BytesText(gate) + " of those that were measured.") +
      "</p>\n";
  html += "<div class=\"wide\">" + SizeChart(family, facts) + "</div>\n<div class=\"panels\">\n";
  for (const CellResult* cell : family)
    if (cell->candidates[cell->by_default].runs != 0) html += PanelHtml(*cell, facts);
  return html + "</div>\n" + CandidatesHtml(family);
}

}  // namespace

std::string HtmlReport(const TuningResult& result) {
  const std::vector<Family> families = FamiliesOf(result.cells);
  std::string html = std::string(kHead) + std::string(ChartStyle()) +
                     "</style>\n</head>\n<body>\n<h1>Tuned prefetching</h1>\n<p>" + SummaryText(result) + ".</p>\n" +
                     MachineHtml(result.facts) + "<h2>Results</h2>\n";
  if (families.empty()) return html + "<p>Nothing was tuned.</p>\n</body>\n</html>\n";
  html += "<p>Nanoseconds a row, medians. What does not beat the default by more than the noise is not taken.</p>\n" +
          HtmlTable(RowsOf(families)) + std::string(kKey);
  for (const Family& family : families) html += FamilyHtml(family, result.facts);
  return html + "</body>\n</html>\n";
}

std::string CsvReport(const TuningResult& result) {
  std::string csv =
      "loop,keys,pipeline,threads,table_bytes,distance,group,batch,stages,hint,ns,low_ns,high_ns,runs,dropped,chosen,"
      "default\n";
  for (const CellResult& cell : result.cells) {
    const std::string front = std::string(LoopText(cell.cell.loop)) + "," + KeyClassText(cell.cell.keys) + "," +
                              std::to_string(cell.cell.pipeline) + "," + std::to_string(cell.cell.threads) + "," +
                              std::to_string(cell.table_bytes) + ",";
    for (size_t i = 0; i < cell.candidates.size(); ++i) {
      const CandidateResult& candidate = cell.candidates[i];
      const PrefetchSetting& setting = candidate.setting;
      csv += front + (setting.distance == kWholeBatch ? "all" : std::to_string(setting.distance));
      for (const uint32_t number : {setting.group_rows, setting.batch_rows, uint16_t{setting.stages}})
        csv += "," + std::to_string(number);
      csv += std::string(",") + HintText(setting.hint);
      for (const double ns : {candidate.ns, candidate.low_ns, candidate.high_ns}) csv += "," + FixedText(ns, 3);
      csv += "," + std::to_string(candidate.runs);
      for (const bool flag : {candidate.dropped, i == cell.best, i == cell.by_default}) csv += flag ? ",1" : ",0";
      csv += "\n";
    }
  }
  return csv;
}

std::string TerminalReport(const TuningResult& result) {
  const std::vector<Family> families = FamiliesOf(result.cells);
  return (families.empty() ? "" : Aligned(RowsOf(families))) + SummaryText(result) + "\n";
}

}  // namespace quern
