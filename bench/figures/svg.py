# SPDX-License-Identifier: Apache-2.0
"""What the figures share: an SVG of rectangles, lines and words, readable on light and on dark pages."""
import html

FONT = "font-family='Helvetica, Arial, sans-serif'"
COLOURS = {"quern": "#c8511b", "duckdb": "#8a8f98", "datafusion": "#a7acb4", "polars": "#c3c7cd",
           "clickhouse": "#70757e"}
INK = "#57606a"


class Drawing:
    def __init__(self, width, height, title):
        self._size, self._title, self._parts = (width, height), title, []

    def text(self, x, y, words, size=13, anchor="start", colour=INK, weight="normal"):
        self._parts.append(f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{colour}' "
                           f"font-weight='{weight}' {FONT}>{html.escape(words)}</text>")

    def bar(self, x, y, width, height, colour):
        self._parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0.5):.1f}' height='{height:.1f}' "
                           f"rx='1.5' fill='{colour}'/>")

    def line(self, points, colour=INK, width=1.0, dash=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = f" stroke-dasharray='{dash}'" if dash else ""
        self._parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='{width}'{dashes}/>")

    def dot(self, x, y, colour):
        self._parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{colour}'/>")

    def write(self, path):
        width, height = self._size
        path.write_text(f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
                        f"height='{height}' role='img' aria-label='{html.escape(self._title)}'>\n"
                        f"<!-- SPDX-License-Identifier: Apache-2.0 -->\n<title>{html.escape(self._title)}</title>\n"
                        + "\n".join(self._parts) + "\n</svg>\n")
