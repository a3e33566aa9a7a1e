// SPDX-License-Identifier: Apache-2.0
// The reports of a tuning: CSV and table in full; the page is well formed, loads nothing from elsewhere, and shows what
// was measured.
#include "tools/report/report.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/charts.h"

namespace quern {
namespace {

CandidateResult Candidate(uint16_t distance, double ns, uint32_t runs, bool dropped = false) {
  CandidateResult candidate;
  candidate.setting.distance = distance;
  candidate.ns = ns;
  candidate.low_ns = ns * 0.9;
  candidate.high_ns = ns * 1.1;
  candidate.runs = runs;
  candidate.dropped = dropped;
  return candidate;
}

// A probe of 64 KiB where off is the default and remains, and one of 192 MiB where a distance with another hint is
// best.
std::vector<CellResult> TwoCells() {
  CellResult small;
  small.cell = {.loop = PrefetchLoop::kProbeOpen, .size_class = 16};
  small.table_bytes = 1 << 16;
  small.candidates = {Candidate(0, 2, 15), Candidate(16, 2.5, 2, true)};
  small.noise = 0.01;
  CellResult large;
  large.cell = {.loop = PrefetchLoop::kProbeOpen, .size_class = 28};
  large.table_bytes = 192 << 20;
  large.candidates = {Candidate(128, 20, 22), Candidate(0, 50, 2, true), Candidate(kWholeBatch, 30, 3, true),
                      Candidate(64, 16, 19)};
  large.candidates[3].setting.hint = PrefetchHint::kNta;
  large.candidates[3].setting.group_rows = 16;
  large.best = 3;
  large.off = 1;
  large.noise = 0.025;
  large.beats_default = true;
  return {large, small};  // not sorted by size
}

MachineFacts SomeFacts() {
  MachineFacts facts;
  facts.signature.cpu_name = "A & B <Processor> \"X\"";
  facts.signature.cpu = "znver5";
  facts.signature.hypervisor = "kvm";
  facts.signature.cores = 2;
  facts.l2_bytes = 1 << 20;
  for (const uint64_t bytes : {uint64_t{1} << 15, uint64_t{1} << 24, uint64_t{1} << 28}) {
    for (const bool huge : {false, true}) {
      MemoryFact fact;
      fact.bytes = bytes;
      fact.huge_pages = huge;
      fact.latency_ns = 80;
      fact.read_ns = huge ? 5 : 6;
      fact.write_ns = huge ? 9 : 8;
      facts.memory.push_back(fact);
    }
  }
  return facts;
}

TuningResult SomeResult() {
  TuningResult result;
  result.facts = SomeFacts();
  result.cells = TwoCells();
  result.seconds = 1.25;
  return result;
}

size_t Count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// The open elements when an element ends that is not the innermost, or at the end of the text; "" if all are closed in
// order.
std::string Misnested(std::string_view html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string_view::npos) return "no end of a tag";
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" \n/", 1)));
    if (tag[0] == '!' || tag.back() == '/' || name == "meta") continue;
    if (tag[0] != '/') open.push_back(name);
    else if (open.empty() || "/" + open.back() != tag) return open.empty() ? std::string(tag) : open.back();
    else open.pop_back();
  }
  return open.empty() ? "" : open.back();
}

TEST(TuningReport, CsvHasALineForEachCandidate) {
  EXPECT_EQ(CsvReport(SomeResult()),
            "loop,keys,pipeline,threads,table_bytes,distance,group,batch,stages,hint,ns,low_ns,high_ns,runs,dropped,"
            "chosen,default\n"
            "probe_open,packed,1,1,201326592,128,0,0,3,t0,20.000,18.000,22.000,22,0,0,1\n"
            "probe_open,packed,1,1,201326592,0,0,0,3,t0,50.000,45.000,55.000,2,1,0,0\n"
            "probe_open,packed,1,1,201326592,all,0,0,3,t0,30.000,27.000,33.000,3,1,0,0\n"
            "probe_open,packed,1,1,201326592,64,16,0,3,nta,16.000,14.400,17.600,19,0,1,0\n"
            "probe_open,packed,1,1,65536,0,0,0,3,t0,2.000,1.800,2.200,15,0,1,1\n"
            "probe_open,packed,1,1,65536,16,0,0,3,t0,2.500,2.250,2.750,2,1,0,0\n");
}

TEST(TuningReport, TerminalHasALineForEachCell) {
  EXPECT_EQ(
      TerminalReport(SomeResult()),
      "loop        keys    pipeline  threads    table  default                          chosen                 off "
      "   gain  noise\n"
      "probe_open  packed         1        1   64 KiB        0   2.00 ns               default   2.00 ns   2.00 ns "
      "      -  1.0 %\n"
      "probe_open  packed         1        1  192 MiB      128  20.00 ns  64/group=16/hint=nta  16.00 ns  50.00 ns "
      " 20.0 %  2.5 %\n"
      "2 cells in 1.2 s, 1 of them better than by default\n");
}

TEST(TuningReport, NothingWasTuned) {
  TuningResult result;
  result.stopped = true;
  result.cells.emplace_back();  // no candidate
  EXPECT_EQ(TerminalReport(result), "0 cells in 0.0 s, 0 of them better than by default; stopped early\n");
  EXPECT_EQ(Count(CsvReport(result), "\n"), 1U);
  const std::string html = HtmlReport(result);
  EXPECT_EQ(Misnested(html), "");
  EXPECT_EQ(Count(html, "Nothing was tuned."), 1U);
  EXPECT_EQ(Count(html, "<p>Unknown processor.</p>\n<p>Its memory was not measured.</p>"), 1U);
}

TEST(TuningReport, PageIsWellFormedAndAsksForNothing) {
  const std::string html = HtmlReport(SomeResult());
  EXPECT_EQ(Misnested(html), "");
  for (const char* const word :
       {"http:", "https:", "src=", "href=", "url(", "@import", "<script", "nan\"", "inf\"", "nan,", "inf,"})
    EXPECT_EQ(Count(html, word), 0U) << word;
  EXPECT_EQ(Count(html, "default-src 'none'"), 1U);
  EXPECT_EQ(Count(html, "prefers-color-scheme:dark"), 1U);
  EXPECT_EQ(
      Count(html, "A &amp; B &lt;Processor&gt; &quot;X&quot; (znver5), 2 cores, under kvm, L2 as measured 1 MiB."), 1U);
}

TEST(TuningReport, PageShowsWhatWasMeasured) {
  const std::string html = HtmlReport(SomeResult());
  EXPECT_EQ(Count(html, "<h2>probe_open, packed keys, 1 thread</h2>"), 1U);
  EXPECT_EQ(Count(html, "Gate: prefetch is off in tables up to 64 KiB of those that were measured."), 1U);
  EXPECT_EQ(Count(html, ">gate 64 KiB</text>"), 1U);
  EXPECT_EQ(Count(html, "<h3>64 KiB: default stays</h3>"), 1U);
  EXPECT_EQ(Count(html, "<h3>192 MiB: 64/group=16/hint=nta, 20.0 % faster</h3>"), 1U);
  EXPECT_EQ(Count(html, "<svg viewBox=\"0 0 300 "), 2U);
  EXPECT_EQ(Count(html, "<svg viewBox=\"0 0 620 "), 2U);
  EXPECT_EQ(Count(html, "class=\"chosen-ring\""), 3U);  // one of them explains the symbol
  EXPECT_EQ(Count(html, "class=\"default-ring\""), 3U);
  EXPECT_EQ(Count(html, "class=\"plain loser\""), 4U);
  EXPECT_EQ(Count(html, "class=\"variant\""), 2U);
  EXPECT_EQ(Count(html, "class=\"noise\""), 3U);
  EXPECT_EQ(Count(html, "<title>64/group=16/hint=nta: 16.00 ns/row (14.40 to 17.60, 19 runs, chosen)</title>"), 2U);
  EXPECT_EQ(Count(html, "<title>128: 20.00 ns/row (18.00 to 22.00, 22 runs, default)</title>"), 2U);
  EXPECT_EQ(Count(html, "<title>16: 2.50 ns/row (2.25 to 2.75, 2 runs, left early)</title>"), 1U);
  EXPECT_EQ(
      Count(html, "<tr><td>192 MiB</td><td>64/group=16/hint=nta</td><td>16.00</td><td>14.40 to 17.60</td><td>19</td>"),
      1U);
}

// Loops, key classes, pipelines and threads that differ have separate charts.
TEST(TuningReport, FamiliesAreApart) {
  TuningResult result = SomeResult();
  for (const TuningCell& cell :
       {TuningCell{.loop = PrefetchLoop::kUpdateOpen, .size_class = 16},
        TuningCell{.loop = PrefetchLoop::kProbeOpen, .keys = KeyClass::kString, .size_class = 16},
        TuningCell{.loop = PrefetchLoop::kProbeOpen, .pipeline = 2, .size_class = 16},
        TuningCell{.loop = PrefetchLoop::kProbeOpen, .size_class = 16, .threads = 2}}) {
    result.cells.push_back(result.cells[1]);
    result.cells.back().cell = cell;
  }
  const std::string html = HtmlReport(result);
  EXPECT_EQ(Misnested(html), "");
  for (const char* const title :
       {"update_open, packed keys, 1 thread", "probe_open, string keys, 1 thread",
        "probe_open, packed keys, 2 in a pipeline, 1 thread", "probe_open, packed keys, 2 threads"})
    EXPECT_EQ(Count(html, "<h2>" + std::string(title) + "</h2>"), 1U) << title;
}

// An estimate has settings but no times.
TEST(TuningReport, WithoutRunsThereAreNoCurves) {
  TuningResult result = SomeResult();
  for (CellResult& cell : result.cells) {
    cell.best = cell.by_default;
    cell.beats_default = false;
    for (CandidateResult& candidate : cell.candidates) candidate = Candidate(candidate.setting.distance, 0, 0);
  }
  EXPECT_EQ(Count(TerminalReport(result), " ns"), 0U);
  const std::string html = HtmlReport(result);
  EXPECT_EQ(Misnested(html), "");
  EXPECT_EQ(Count(html, "<svg viewBox=\"0 0 300 "), 0U);
  EXPECT_EQ(Count(html, "nan"), 0U);
}

TEST(TuningReport, OneCandidateIsAPage) {
  TuningResult result = SomeResult();
  result.facts.memory.clear();
  result.cells = {result.cells[1]};
  result.cells[0].candidates.resize(1);
  const std::string html = HtmlReport(result);
  EXPECT_EQ(Misnested(html), "");
  EXPECT_EQ(Count(html, "nan\""), 0U);
  EXPECT_EQ(Count(html, "inf\""), 0U);
}

TEST(TuningCharts, FloorIsThatOfTheNearestSize) {
  const MachineFacts facts = SomeFacts();
  CellResult cell;
  cell.cell.loop = PrefetchLoop::kProbeOpen;
  cell.table_bytes = 100 << 20;
  EXPECT_EQ(FloorNs(facts, cell), 5);
  cell.cell.pipeline = 3;
  EXPECT_EQ(FloorNs(facts, cell), 15);
  cell.cell = {.loop = PrefetchLoop::kUpdateOpen};
  EXPECT_EQ(FloorNs(facts, cell), 8);  // for lines that are written
  cell.cell.threads = 2;
  EXPECT_EQ(FloorNs(facts, cell), 0);
  EXPECT_EQ(FloorNs(MachineFacts(), cell), 0);
}

TEST(TuningCharts, GateIsWhereOffEnds) {
  std::vector<CellResult> cells(4, TwoCells()[1]);
  for (size_t i = 0; i < cells.size(); ++i) cells[i].table_bytes = uint64_t{1} << (16 + i);
  const std::vector<const CellResult*> family = {&cells[0], &cells[1], &cells[2], &cells[3]};
  EXPECT_EQ(GateBytes(family), uint64_t{1} << 19);
  cells[2].best = 1;
  EXPECT_EQ(GateBytes(family), uint64_t{1} << 17);
  cells[0].best = 1;
  EXPECT_EQ(GateBytes(family), 0U);
}

TEST(TuningCharts, TextOfNumbers) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(32 << 10), "32 KiB");
  EXPECT_EQ(BytesText(3 << 19), "1.5 MiB");
  EXPECT_EQ(BytesText(uint64_t{2} << 30), "2 GiB");
  EXPECT_EQ(FixedText(1.005, 1), "1.0");
  EXPECT_EQ(FixedText(-0.0, 0), "0");
  EXPECT_EQ(FixedText(1e300, 0).size(), 301U);
  EXPECT_EQ(EscapeHtml("<a b=\"c\">&"), "&lt;a b=&quot;c&quot;&gt;&amp;");
}

}  // namespace
}  // namespace quern
