// SPDX-License-Identifier: Apache-2.0
// A chart is drawn in a box of its own units, which the page scales, with names of classes in place of colours: the
// page's style sheet has one set of them for light and one for dark. Text behind the pointer is the <title> of an
// element; there is no script.
//
// The scale of distances has one tick for each distance that was tried, so that 0, 4, 8 .. 256 and `all`, which is no
// number, are evenly spaced:
//
//     20 |o                           o  off and all: left the race early
//        |                         .
//     10 |   o   .               .
//        |- - - - - - - - - - - - - - -  the floor
//      0 +--------------------------
//        off 4   8   16  32  64 .. all
//
// Scales of bytes are logarithmic, and so are scales of nanoseconds over bytes: a loop is twenty times as slow in DRAM
// as in L2, and readers compare ratios at each size.
#include "tools/report/charts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace quern {
namespace {

using Point = std::pair<double, double>;

// Text of a chart as it grows.
class Svg {
 public:
  Svg(double width, double height, std::string_view label) {
    text_ = "<svg viewBox=\"0 0 " + FixedText(width, 0) + " " + FixedText(height, 0) + "\" role=\"img\" aria-label=\"" +
            EscapeHtml(label) + "\">\n";
  }
  void Line(Point from, Point to, std::string_view style) {
    text_ += "<line" + At("x1", from.first) + At("y1", from.second) + At("x2", to.first) + At("y2", to.second) +
             Class(style) + "/>\n";
  }
  void Path(const std::vector<Point>& points, std::string_view style) {
    if (points.size() < 2) return;
    text_ += "<polyline points=\"" + List(points) + "\"" + Class(style) + "/>\n";
  }
  void Area(const std::vector<Point>& points, std::string_view style) {
    if (points.size() < 4) return;
    text_ += "<polygon points=\"" + List(points) + "\"" + Class(style) + "/>\n";
  }
  void Circle(Point centre, double radius, std::string_view style, std::string_view title) {
    text_ += "<circle" + At("cx", centre.first) + At("cy", centre.second) + At("r", radius) + Class(style) +
             "><title>" + EscapeHtml(title) + "</title></circle>\n";
  }
  void Text(Point at, std::string_view style, std::string_view text) {
    text_ += "<text" + At("x", at.first) + At("y", at.second) + Class(style) + ">" + EscapeHtml(text) + "</text>\n";
  }
  std::string Finish() { return std::move(text_) + "</svg>\n"; }

 private:
  static std::string At(const char* name, double value) {
    return std::string(" ") + name + "=\"" + FixedText(value, 1) + "\"";
  }
  static std::string Class(std::string_view style) { return " class=\"" + std::string(style) + "\""; }
  static std::string List(const std::vector<Point>& points) {
    std::string list;
    for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + FixedText(x, 1) + "," + FixedText(y, 1);
    return list;
  }

  std::string text_;
};

// Maps values to positions in a box.
struct Scale {
  double from, to;  // values
  double begin, end;
  bool is_log = false;

  double At(double value) const {
    const double share = is_log ? std::log(std::clamp(value, from, to) / from) / std::log(to / from)
                                : (std::clamp(value, from, to) - from) / (to - from);
    return begin + share * (end - begin);
  }
};

constexpr double kLeft = 40, kTop = 22;

// 1, 2 or 5 times a power of ten, at least `value`.
double RoundUp(double value) {
  double power = std::pow(10, std::floor(std::log10(std::max(value, 1e-3))));
  for (const double digit : {1, 2, 5})
    if (digit * power >= value) return digit * power;
  return 10 * power;
}

std::string TickText(double value) { return FixedText(value, value < 1 && value > 0 ? (value < 0.1 ? 2 : 1) : 0); }

// The ticks of a linear scale that begins at 0, or of a logarithmic one.
std::vector<double> TicksOf(const Scale& y) {
  std::vector<double> ticks;
  const double step = RoundUp(y.to / 5);
  for (int i = 0; !y.is_log && i * step <= y.to * 1.001; ++i) ticks.push_back(i * step);
  for (int exponent = -3; y.is_log && exponent < 12; ++exponent)
    for (const double digit : {1, 2, 5})
      if (const double value = digit * std::pow(10, exponent); value >= y.from && value <= y.to) ticks.push_back(value);
  return ticks;
}

void DrawTicks(Svg* svg, const Scale& y, double right) {
  for (const double value : TicksOf(y)) {
    svg->Line({kLeft, y.At(value)}, {right, y.At(value)}, "grid");
    svg->Text({kLeft - 4, y.At(value) + 3}, "tick end", TickText(value));
  }
}

// ---- over distance ---------------------------------------------------------------------------------------------

constexpr double kWide =
    4;  // ratio of slowest to fastest candidate above which the scale is logarithmic, to keep the fast ones apart
constexpr double kPanelWidth = 300, kPanelHeight = 180, kPanelRight = 290, kPanelBottom = 140;

bool IsPlain(const PrefetchSetting& setting, PrefetchHint hint) {
  PrefetchSetting plain;
  plain.distance = setting.distance;
  plain.hint = hint;
  return setting == plain;
}

class DistancePanel {
 public:
  DistancePanel(const CellResult& cell, double floor_ns)
      : cell_(cell),
        floor_ns_(floor_ns),
        svg_(kPanelWidth, kPanelHeight, "ns/row over distance, " + PrintCell(cell.cell)) {
    for (const CandidateResult& candidate : cell.candidates) distances_.push_back(candidate.setting.distance);
    std::sort(distances_.begin(), distances_.end());
    distances_.erase(std::unique(distances_.begin(), distances_.end()), distances_.end());
    double least = HUGE_VAL, most = floor_ns;
    for (const CandidateResult& candidate : cell.candidates) {
      least = std::min(least, candidate.low_ns);
      most = std::max(most, candidate.high_ns);
    }
    if (most > kWide * least)
      y_ = {(floor_ns > 0 ? std::min(least, floor_ns) : least) / 1.2, most * 1.2, kPanelBottom, kTop, true};
    else y_ = {0, RoundUp(most / 4) * std::ceil(most / RoundUp(most / 4)), kPanelBottom, kTop};
  }

  std::string Draw() {
    DrawAxes();
    DrawNoise();
    DrawCurve();
    if (floor_ns_ > 0) svg_.Line({kLeft, y_.At(floor_ns_)}, {kPanelRight, y_.At(floor_ns_)}, "floor");
    for (size_t i = 0; i < cell_.candidates.size(); ++i) DrawPoint(i);
    return svg_.Finish();
  }

 private:
  double X(uint16_t distance) const {
    const auto place =
        static_cast<double>(std::lower_bound(distances_.begin(), distances_.end(), distance) - distances_.begin());
    const auto steps = static_cast<double>(std::max<size_t>(distances_.size(), 2) - 1);
    return kLeft + 12 + place / steps * (kPanelRight - kLeft - 24);
  }
  Point At(const CandidateResult& candidate, double ns) const { return {X(candidate.setting.distance), y_.At(ns)}; }

  void DrawAxes() {
    DrawTicks(&svg_, y_, kPanelRight);
    const size_t every = (distances_.size() + 10) / 11;
    for (size_t i = 0; i < distances_.size(); ++i) {
      const uint16_t distance = distances_[i];
      const std::string text = distance == 0 ? "off" : distance == kWholeBatch ? "all" : std::to_string(distance);
      if (i % every == 0 || distance == kWholeBatch) svg_.Text({X(distance), kPanelBottom + 14}, "tick middle", text);
    }
    svg_.Text({(kLeft + kPanelRight) / 2, kPanelBottom + 30}, "axis middle", "distance, rows");
    svg_.Text({4, 9}, "axis", "ns/row");
  }

  void DrawNoise() {
    const double ns = cell_.candidates[cell_.by_default].ns;
    const double low = y_.At(ns * (1 - cell_.noise)), high = y_.At(ns * (1 + cell_.noise));
    svg_.Area({{kLeft, low}, {kPanelRight, low}, {kPanelRight, high}, {kLeft, high}}, "noise");
  }

  void DrawCurve() {
    std::vector<const CandidateResult*> plain;
    for (const CandidateResult& candidate : cell_.candidates)
      if (IsPlain(candidate.setting, DefaultHint(cell_.cell.loop))) plain.push_back(&candidate);
    std::sort(plain.begin(), plain.end(),
              [](const auto* a, const auto* b) { return a->setting.distance < b->setting.distance; });
    std::vector<Point> line, band;
    for (const CandidateResult* candidate : plain) {
      line.push_back(At(*candidate, candidate->ns));
      band.push_back(At(*candidate, candidate->low_ns));
    }
    for (auto candidate = plain.rbegin(); candidate != plain.rend(); ++candidate)
      band.push_back(At(**candidate, (*candidate)->high_ns));
    svg_.Area(band, "quartiles");
    svg_.Path(line, "curve");
  }

  void DrawPoint(size_t place) {
    const CandidateResult& candidate = cell_.candidates[place];
    const bool is_plain = IsPlain(candidate.setting, DefaultHint(cell_.cell.loop));
    std::string title = PrintSetting(candidate.setting, DefaultHint(cell_.cell.loop)) + ": " +
                        FixedText(candidate.ns, 2) + " ns/row (" + FixedText(candidate.low_ns, 2) + " to " +
                        FixedText(candidate.high_ns, 2) + ", " + std::to_string(candidate.runs) +
                        (candidate.runs == 1 ? " run" : " runs");
    if (candidate.dropped) title += ", left early";
    if (place == cell_.by_default) title += ", default";
    title += place == cell_.best ? ", chosen)" : ")";
    const Point at = At(candidate, candidate.ns);
    const std::string kind = std::string(is_plain ? "plain" : "variant") + (candidate.dropped ? " loser" : "");
    svg_.Circle(at, is_plain ? 3 : 2, kind, title);
    if (place == cell_.by_default) svg_.Circle(at, 5, "default-ring", title);
    if (place == cell_.best) svg_.Circle(at, 7.5, "chosen-ring", title);
  }

  const CellResult& cell_;
  const double floor_ns_;
  std::vector<uint16_t> distances_;  // tried, in order
  Scale y_{};
  Svg svg_;
};

// ---- over size -------------------------------------------------------------------------------------------------

constexpr double kWideWidth = 620, kWideHeight = 230, kWideRight = 540, kWideBottom = 190;

// A line of a chart over size, with its name at its end.
struct Series {
  std::string_view name, style;
  std::vector<std::pair<uint64_t, double>> values;  // by bytes
};

// Names at the ends of lines must not overlap.
std::vector<double> Spread(const std::vector<double>& wished) {
  constexpr double kRowHeight = 12;
  std::vector<size_t> order(wished.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wished[a] > wished[b]; });
  std::vector<double> rows = wished;
  double below = kWideBottom + kRowHeight;
  for (const size_t i : order) below = rows[i] = std::min(wished[i], below - kRowHeight);
  return rows;
}

class SizePlot {
 public:
  SizePlot(std::string_view label, std::vector<Series> series)
      : series_(std::move(series)), svg_(kWideWidth, kWideHeight, label) {
    std::erase_if(series_, [](const Series& one) { return one.values.empty(); });
    double low = HUGE_VAL, high = 0, least = HUGE_VAL, most = 0;
    for (const Series& one : series_)
      for (const auto& [bytes, ns] : one.values) {
        low = std::min(low, ns), high = std::max(high, ns);
        least = std::min(least, static_cast<double>(bytes)), most = std::max(most, static_cast<double>(bytes));
      }
    // The range is never empty, so that a single point is in the middle.
    x_ = {least / 1.5, most * 1.5, kLeft, kWideRight, true};
    y_ = {low / 1.3, high * 1.3, kWideBottom, kTop, true};
  }

  void DrawGate(uint64_t bytes) {
    if (series_.empty()) return;
    const double x = x_.At(static_cast<double>(bytes) * 1.4);
    svg_.Line({x, kTop}, {x, kWideBottom}, "gate");
    svg_.Text({x + 4, kTop + 9}, "axis", "gate " + BytesText(bytes));
  }

  std::string Draw() {
    if (series_.empty()) return "";
    DrawAxes();
    std::vector<double> wished;
    for (const Series& one : series_) {
      DrawLine(one);
      wished.push_back(y_.At(one.values.back().second) + 4);
    }
    const std::vector<double> rows = Spread(wished);
    for (size_t i = 0; i < series_.size(); ++i) svg_.Text({kWideRight + 6, rows[i]}, "name", series_[i].name);
    return svg_.Finish();
  }

 private:
  void DrawAxes() {
    DrawTicks(&svg_, y_, kWideRight);
    const int step = x_.to / x_.from > 64 ? 2 : 1;
    for (int bits = 0; bits < 60; bits += step) {
      const auto bytes = uint64_t{1} << bits;
      const auto value = static_cast<double>(bytes);
      if (value >= x_.from && value <= x_.to)
        svg_.Text({x_.At(value), kWideBottom + 14}, "tick middle", BytesText(bytes));
    }
    svg_.Text({(kLeft + kWideRight) / 2, kWideBottom + 30}, "axis middle", "bytes of the table");
    svg_.Text({4, 9}, "axis", "ns");
  }

  void DrawLine(const Series& one) {
    std::vector<Point> line;
    for (const auto& [bytes, ns] : one.values) line.emplace_back(x_.At(static_cast<double>(bytes)), y_.At(ns));
    svg_.Path(line, "line " + std::string(one.style));
    for (size_t i = 0; i < line.size(); ++i)
      svg_.Circle(line[i], 3, "dot " + std::string(one.style),
                  std::string(one.name) + ", " + BytesText(one.values[i].first) + ": " +
                      FixedText(one.values[i].second, 2) + " ns");
  }

  std::vector<Series> series_;
  Scale x_{}, y_{};
  Svg svg_;
};

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') escaped += "&amp;";
    else if (c == '<') escaped += "&lt;";
    else if (c == '>') escaped += "&gt;";
    else if (c == '"') escaped += "&quot;";
    else escaped += c;
  }
  return escaped;
}

std::string FixedText(double value, int digits) {
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  const auto [end, error] =
      std::to_chars(text.begin(), text.end(), value == 0 ? 0 : value, std::chars_format::fixed, digits);
  return std::string(text.begin(), end);
}

std::string BytesText(uint64_t bytes) {
  constexpr std::pair<int, const char*> kUnits[] = {{30, " GiB"}, {20, " MiB"}, {10, " KiB"}};
  for (const auto& [bits, unit] : kUnits) {
    const double value = static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << bits);
    if (value < 1) continue;
    const std::string text = FixedText(value, value < 10 ? 1 : 0);
    return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + unit;
  }
  return std::to_string(bytes) + " B";
}

double FloorNs(const MachineFacts& facts, const CellResult& cell) {
  if (cell.cell.threads != 1) return 0;
  const bool writes = DefaultHint(cell.cell.loop) == PrefetchHint::kWrite;
  double floor = 0, nearest = HUGE_VAL;
  for (const MemoryFact& fact : facts.memory) {
    const double ns = writes ? fact.write_ns : fact.read_ns;
    if (ns <= 0 || fact.bytes == 0 || cell.table_bytes == 0) continue;
    const double away = std::abs(std::log2(static_cast<double>(fact.bytes) / static_cast<double>(cell.table_bytes)));
    if (away > nearest) continue;
    floor = away < nearest || floor == 0 ? ns : std::min(floor, ns);
    nearest = away;
  }
  return floor * cell.cell.pipeline;
}

uint64_t GateBytes(const std::vector<const CellResult*>& cells) {
  uint64_t gate = 0;
  for (const CellResult* cell : cells) {
    if (cell->candidates[cell->best].setting.distance != 0) break;
    gate = cell->table_bytes;
  }
  return gate;
}

std::string DistanceChart(const CellResult& cell, double floor_ns) { return DistancePanel(cell, floor_ns).Draw(); }

std::string SizeChart(const std::vector<const CellResult*>& cells, const MachineFacts& facts) {
  std::vector<Series> series = {
      {"off", "off", {}}, {"default", "default", {}}, {"chosen", "chosen", {}}, {"floor", "floor", {}}};
  for (const CellResult* cell : cells) {
    const size_t places[] = {cell->off, cell->by_default, cell->best};
    for (size_t i = 0; i < 3; ++i)
      if (cell->candidates[places[i]].ns > 0)
        series[i].values.emplace_back(cell->table_bytes, cell->candidates[places[i]].ns);
    if (const double floor = FloorNs(facts, *cell); floor > 0) series[3].values.emplace_back(cell->table_bytes, floor);
  }
  SizePlot plot("ns/row over the size of the table", std::move(series));
  if (const uint64_t gate = GateBytes(cells); gate != 0) plot.DrawGate(gate);
  return plot.Draw();
}

std::string MemoryChart(const MachineFacts& facts) {
  std::vector<Series> series = {{"latency", "off", {}},
                                {"latency, 2 MiB", "default", {}},
                                {"floor", "floor", {}},
                                {"floor, 2 MiB", "chosen", {}}};
  for (const MemoryFact& fact : facts.memory) {
    const size_t of_pages = fact.huge_pages ? 1 : 0;
    if (fact.bytes != 0 && fact.latency_ns > 0) series[of_pages].values.emplace_back(fact.bytes, fact.latency_ns);
    if (fact.bytes != 0 && fact.read_ns > 0) series[2 + of_pages].values.emplace_back(fact.bytes, fact.read_ns);
  }
  for (Series& one : series) std::sort(one.values.begin(), one.values.end());
  return SizePlot("Latency and throughput of random lines", std::move(series)).Draw();
}

std::string_view ChartStyle() {
  return R"(svg{width:100%;height:auto;display:block;font-family:inherit}
svg text{fill:var(--quiet);font-size:10px}
svg text.axis{font-size:9px}
svg text.name{fill:var(--ink)}
svg .end{text-anchor:end}
svg .middle{text-anchor:middle}
svg .grid{stroke:var(--grid);stroke-width:1}
svg .noise{fill:var(--noise);stroke:none}
svg .quartiles{fill:var(--default);opacity:.18;stroke:none}
svg .curve,svg .line{fill:none;stroke:var(--default);stroke-width:2;stroke-linejoin:round}
svg .plain,svg .dot{fill:var(--default);stroke:var(--paper);stroke-width:1}
svg .variant{fill:var(--quiet);stroke:none}
svg .loser{fill:var(--paper);stroke:var(--default);stroke-width:1.2}
svg .variant.loser{stroke:var(--quiet)}
svg .default-ring{fill:none;stroke:var(--default);stroke-width:1.5}
svg .chosen-ring{fill:none;stroke:var(--chosen);stroke-width:2.5}
svg line.floor,svg .line.floor{stroke:var(--floor);stroke-width:1.5;stroke-dasharray:5 3}
svg .dot.floor{fill:var(--floor);r:2px}
svg .line.off{stroke:var(--off)}
svg .dot.off{fill:var(--off)}
svg .line.chosen{stroke:var(--chosen)}
svg .dot.chosen{fill:var(--chosen)}
svg .gate{stroke:var(--quiet);stroke-width:1;stroke-dasharray:2 3}
)";
}

}  // namespace quern
