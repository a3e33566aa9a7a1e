# SPDX-License-Identifier: Apache-2.0
"""Draws what join_bench measured of PostgreSQL's table: nanoseconds a probe row by size of the build side.

    build/bin/join_bench --benchmark_filter='postgres/(i64|text16|text64)/.*extra0' >join.txt
    python3 bench/figures/prefetch.py join.txt docs/figures/prefetch.svg \\
        "AMD Zen 5, 2-core virtual machine, November 2026"

Three bars for each key type and size: a row at a time, as a tuple-at-a-time engine probes; the batched kernel without
prefetch; the batched kernel with the prefetch distance that the plan chose."""
import pathlib
import re
import sys

import svg

ROW = re.compile(
    r"^ +(\S.*?) +0 +([\d,]+) +([\d,]+) +(\w+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)")
KINDS = [("a row at a time", "#c3c7cd"), ("batches, no prefetch", "#8a8f98"),
         ("batches, tuned prefetch (the default)", "#c8511b")]
LEFT, BARS, BAR, GAP, TOP = 190, 480, 11, 12, 78


def rows_of(text):
    for line in text.splitlines():
        match = ROW.match(line)
        if match:
            keys, build, layout = match[1], match[2], match[4]
            yield keys, build, layout, (float(match[11]), float(match[8]), float(match[6]))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rows = list(rows_of(pathlib.Path(sys.argv[1]).read_text()))
    if not rows:
        sys.exit(f"{sys.argv[1]}: no rows of the section postgres; accepted: what join_bench prints")
    title = "Nanoseconds a probe row of a hash join: shorter is better"
    drawing = svg.Drawing(LEFT + BARS + 70, TOP + len(rows) * (len(KINDS) * (BAR + 2) + GAP) + 12, title)
    drawing.text(10, 20, title, 14, weight="bold")
    drawing.text(10, 38, sys.argv[3] + "; one thread, 10 M probe rows, by turns in one process", 11)
    x = 10
    for words, colour in KINDS:
        drawing.bar(x, 50, 11, 11, colour)
        drawing.text(x + 16, 60, words, 11)
        x += 30 + 6.2 * len(words)
    longest = max(max(values) for *_, values in rows)
    y = TOP
    for keys, build, layout, values in rows:
        drawing.text(10, y + 16, f"{keys}, {build} rows", 12)
        drawing.text(10, y + 30, f"{layout} table", 10)
        for (_, colour), value in zip(KINDS, values):
            drawing.bar(LEFT, y, BARS * value / longest, BAR, colour)
            drawing.text(LEFT + BARS * value / longest + 5, y + BAR - 1.5, f"{value:.1f}", 10)
            y += BAR + 2
        y += GAP
    drawing.write(pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
