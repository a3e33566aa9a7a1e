// SPDX-License-Identifier: Apache-2.0
// The measurements of a tuning for people: a page, a table for the terminal, and CSV.
#ifndef QUERN_TOOLS_REPORT_REPORT_H_
#define QUERN_TOOLS_REPORT_REPORT_H_

#include <string>

#include "codegen/tuning/tuner.h"

namespace quern {

// One self-contained HTML page with inline SVG that loads nothing from a network. For each loop and key class it has
// curves of ns/row over distance, one for each table size, with the chosen point, the floor F, the gate, the losers,
// and the band of noise; then the machine and the entries.
std::string HtmlReport(const TuningResult& result);
// One line a candidate: loop, keys, pipeline, threads, table_bytes, distance, group, batch, stages, hint, ns, low_ns,
// high_ns, runs, dropped, chosen, default.
std::string CsvReport(const TuningResult& result);
// One line a cell that was tuned: default, chosen, off, gain, noise.
std::string TerminalReport(const TuningResult& result);

}  // namespace quern

#endif  // QUERN_TOOLS_REPORT_REPORT_H_
