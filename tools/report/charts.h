// SPDX-License-Identifier: Apache-2.0
// Charts of a report, as SVG within an HTML page that defines the colours.
#ifndef QUERN_TOOLS_REPORT_CHARTS_H_
#define QUERN_TOOLS_REPORT_CHARTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "codegen/machine/machine_facts.h"
#include "codegen/tuning/search.h"

namespace quern {

// The text with &, <, > and quotes escaped for HTML and SVG.
std::string EscapeHtml(std::string_view text);
// "12.30", with a point in every locale.
std::string FixedText(double value, int digits);
// "48 KiB", "1.5 GiB".
std::string BytesText(uint64_t bytes);

// The lower bound of a cell's nanoseconds a row: one random line, at the best number of outstanding misses, for each
// table that is looked up. 0 if unknown: without facts, or with several threads, for which nothing was measured.
double FloorNs(const MachineFacts& facts, const CellResult& cell);
// The largest table size up to which prefetch is off in all cells. `cells`: of one loop, by size. 0 if it is on in the
// first.
uint64_t GateBytes(const std::vector<const CellResult*>& cells);

// ns/row over distance: a curve of the candidates that differ only in distance, the others as points, with quartiles,
// the band of noise around the default, the floor, the losers and the chosen candidate.
std::string DistanceChart(const CellResult& cell, double floor_ns);
// ns/row over table size: off, default, chosen, floor; the gate. `cells`: of one loop, by size.
std::string SizeChart(const std::vector<const CellResult*>& cells, const MachineFacts& facts);
// Latency and floor over table size, for both kinds of page.
std::string MemoryChart(const MachineFacts& facts);
// The style sheet of all charts.
std::string_view ChartStyle();

}  // namespace quern

#endif  // QUERN_TOOLS_REPORT_CHARTS_H_
