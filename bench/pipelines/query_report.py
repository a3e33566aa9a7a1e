# SPDX-License-Identifier: Apache-2.0
"""The tables that run.py prints, a line per query as soon as it is known, and geometric means at the end:

    query         duckdb       polars        quern   hand-written         best      quern x    rows
    tpch.5          44.7         41.0         39.8              -       polars         1.03       5
"""
import math

OTHERS = ("duckdb", "datafusion", "polars", "clickhouse")
OURS = ("quern", "generic", "operators", "hand-written")
COMPARED = ("quern", "generic")  # with the best of the others
# What is said of Quern beside others of OURS, with the mean of their time divided by Quern's.
BESIDE = {
    "generic": "quern is {:.2f} times as fast as without compiled kernels",
    "operators": "quern is {:.2f} times as fast as its operators one by one",
    "hand-written": "quern is {:.2f} times as fast as loops written by hand",
}


def _mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _cells(texts):
    return "".join(f"{text:>13}" for text in texts)


class Table:
    """Milliseconds of the engines; `-` where an engine does not have the query."""

    def __init__(self, engines):
        self._engines, self._compared = list(engines), [name for name in COMPARED if name in engines]
        self._others = [name for name in engines if name in OTHERS]
        self._ratios = {}  # by suite and text
        headers = [*engines, "best", *(f"{name} x" for name in self._compared if self._others)]
        print("query      " + _cells(headers) + "    rows")

    def add(self, query, timings):
        milliseconds = {name: timing.best() * 1e3 for name, timing in timings.items()}
        best = min(self._others, key=milliseconds.get, default=None)
        ratios = {name: milliseconds[best] / milliseconds[name] for name in self._compared if best}
        for name, ratio in ratios.items():
            self._keep(query.suite, f"{name} is {{:.2f}} times as fast as the best other engine", ratio)
        for name, text in BESIDE.items():
            if name in milliseconds and "quern" in milliseconds:
                self._keep(query.suite, text, milliseconds[name] / milliseconds["quern"])
        times = (f"{milliseconds[name]:.1f}" if name in milliseconds else "-" for name in self._engines)
        num_rows = len(next(iter(timings.values())).answer)
        print(f"{query.name:11}" + _cells([*times, best or "-", *(f"{ratio:.2f}" for ratio in ratios.values())])
              + f"{num_rows:8}", flush=True)

    def _keep(self, suite, text, ratio):
        self._ratios.setdefault((suite, text), []).append(ratio)

    def end(self):
        for (suite, text), ratios in self._ratios.items():
            print(f"{suite}: {text.format(_mean(ratios))}, geometric mean of {len(ratios)} queries")


class CompileTable:
    """What compiling takes: the kernels of a query, their code in bytes, and milliseconds of all of them together, cold
    and from disk; `longest` is the slowest kernel, cold."""

    def __init__(self):
        print("query      " + _cells(("kernels", "code bytes", "cold ms", "longest ms", "disk ms")))

    def add(self, query, times):
        print(f"{query.name:11}" + _cells((times.num_kernels, times.code_bytes, f"{times.total['cold']:.1f}",
                                           f"{times.longest:.1f}", f"{times.total['disk']:.2f}")), flush=True)
