# SPDX-License-Identifier: Apache-2.0
"""Draws what bench/pipelines or bench/peers measured: a group of bars for each query or case, a bar for each engine, as
long as its time.

    bench/pipelines/run --queries tpch --json queries.json
    python3 bench/figures/engines.py queries.json docs/figures/queries.svg \\
        "AMD Zen 5, 2-core virtual machine, November 2026"

Each group has a scale of its own: its longest bar is as long as every other group's. Numbers behind the bars are
milliseconds."""
import json
import pathlib
import sys

import svg

NAMES = {
    "join/int32/build10000000/extra0": "join 20 M rows with 10 M, int32",
    "join/i64sparse/build10000000": "join 20 M rows with 10 M, sparse i64",
    "join/text16/build10000000/extra0": "join 10 M rows with 10 M, text of 16 bytes",
    "join/text16/build1000/extra0": "join 10 M rows with 1,000, text of 16 bytes",
    "agg/i64/1000000": "group 20 M rows into 1 M groups",
    "agg/i64/10000000": "group 20 M rows into 10 M groups",
    "agg/q1": "TPC-H query 1, scale factor 1",
    "sort/i64": "sort 10 M i64",
    "sort/i32,str,i64,str": "sort 10 M rows by i32, text, i64, text",
}
LEFT, BARS, BAR, GAP, TOP = 325, 400, 11, 12, 58


def of_cases(report):
    """[(label, {engine: seconds})] of what bench/peers wrote."""
    cases = report if isinstance(report, list) else report["cases"]
    return [(NAMES.get(case["case"], case["case"]), {name: case["seconds"].get(name) for name in svg.COLOURS})
            for case in cases]


def of_queries(report):
    """The same of what bench/pipelines/run wrote: the best run of an engine's variants."""
    return [(name.replace("tpch.", "TPC-H query ").replace("ssb.", "SSB query "),
             {engine: min(map(min, filter(None, engines[engine].values())), default=None)
              for engine in svg.COLOURS if engine in engines})
            for name, engines in report["seconds"].items()]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    report = json.loads(pathlib.Path(sys.argv[1]).read_text())
    rows = of_queries(report) if "settings" in report else of_cases(report)
    rows = [(label, {name: value for name, value in seconds.items() if value}) for label, seconds in rows]
    height = TOP + sum(len(seconds) * (BAR + 2) + GAP for _, seconds in rows) + 12
    title = "Time of the query alone, one thread, in memory: shorter is better"
    drawing = svg.Drawing(LEFT + BARS + 70, height, title)
    drawing.text(10, 20, title, 14, weight="bold")
    drawing.text(10, 38, sys.argv[3] + "; best of each engine's settings, by turns, milliseconds", 11)
    y = TOP
    for label, seconds in rows:
        longest = max(seconds.values())
        middle = y + len(seconds) * (BAR + 2) / 2
        drawing.text(10, middle + 1, label, 12.5)
        others = [value for name, value in seconds.items() if name != "quern"]
        if others and "quern" in seconds:
            ratio = min(others) / seconds["quern"]
            drawing.text(10, middle + 15, f"{ratio:.1f} times the best other engine" if ratio >= 1
                         else f"{ratio:.2f} of the best other engine", 10.5)
        for name, value in seconds.items():
            drawing.bar(LEFT, y, BARS * value / longest, BAR, svg.COLOURS[name])
            drawing.text(LEFT - 6, y + BAR - 1.5, name, 10, "end", weight="bold" if name == "quern" else "normal")
            drawing.text(LEFT + BARS * value / longest + 5, y + BAR - 1.5, f"{value * 1e3:.0f}" if value >= 0.01
                         else f"{value * 1e3:.1f}", 10)
            y += BAR + 2
        y += GAP
    drawing.write(pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
