# SPDX-License-Identifier: Apache-2.0
"""Times whole queries: ten of TPC-H and the thirteen of the Star Schema Benchmark, over tables in memory.

    bench/pipelines/run                                  all queries, all engines, scale factor 1, a thread
    bench/pipelines/run --queries ssb,tpch.3 --rounds 9  some, more often
    bench/pipelines/run --scale 0.1 --threads 2          smaller tables, two threads for every engine
    bench/pipelines/run --engines quern,generic,duckdb   Quern with compiled kernels and without them
    bench/pipelines/run --list                           the names of the queries, and nothing else

The .quern texts give a query's steps; query_list.py says how they were chosen.

The time is that of the query alone, from its text to a result in memory: the tables are in each engine's own memory
format by then. An untimed run comes first, so that what an engine compiles and keeps is there. The engines take turns
in one process, round by round; each setting that is documented to help is tried (query_engines.py), in all rounds
unless it was far from that engine's best, and the best time counts. All engines must give the same answer, as sorted
rows, with numbers equal to eight digits.

`best` is the fastest other engine's time in ms, and `ratio` is that time divided by Quern's. The last lines have the
geometric means of the ratios. The exit status is 1 if answers differ, 2 for a wrong command line.
"""
import argparse
import gc
import json
import math
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers"))

import answers  # noqa: E402
import query_list  # noqa: E402

OTHERS = ("duckdb", "datafusion", "polars", "clickhouse")
OURS = ("quern", "generic")
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
VARIANT_WITHIN = 1.3  # of the engine's best: others get no further round


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default=",".join(query_list.SUITES), metavar="NAMES",
                        help="suites and queries; default: %(default)s")
    parser.add_argument("--engines", default=",".join(OURS + OTHERS), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--scale", type=float, default=1.0, metavar="F", help="scale factor of TPC-H; default: 1")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of every engine; default: 1")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="best of N; default: %(default)s")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall",
                        help="processor counts the processor time of all threads: on a busy machine, with one thread; "
                        "default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="all times, of every variant, as JSON")
    parser.add_argument("--list", action="store_true", help="the names of the queries, and nothing else")
    options = parser.parse_args(arguments)
    options.engines = options.engines.split(",")
    for name in options.engines:
        if name not in OTHERS + OURS:
            parser.error(f"unknown engine: {name}; accepted: {', '.join(OTHERS + OURS)}")
    for name in ("scale", "threads", "rounds"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} is out of range: {getattr(options, name)}; accepted: above 0")
    try:
        options.queries = query_list.matching(options.queries.split(","))
    except ValueError as error:
        parser.error(str(error))
    return options


def make_engines(options):
    """The engines by name. Imports them now, because they read the number of threads from the environment as they
    load."""
    import pyarrow
    import query_engines

    pyarrow.set_cpu_count(options.threads)
    return {name: query_engines.ENGINES[name](options.threads) for name in OTHERS + OURS if name in options.engines}


class Timings:
    """One engine's seconds in one query, of each variant, and its answer."""

    def __init__(self, engine, query, variants, clock):
        self._engine, self._query, self._clock = engine, query, clock
        self.seconds = {variant: [] for variant in variants}
        self.answer = answers.of_table(engine.table(engine.run(query, variants[0])))
        self.errors = []

    def round(self):
        best = self.best()
        for variant, seconds in self.seconds.items():
            if not seconds or min(seconds) <= best * VARIANT_WITHIN:
                self._measure(variant, seconds)

    def _measure(self, variant, seconds):
        gc.collect()
        start = self._clock()
        result = self._engine.run(self._query, variant)
        seconds.append(self._clock() - start)
        if len(seconds) == 1:
            differs = answers.difference(self.answer, answers.of_table(self._engine.table(result)))
            if differs:
                self.errors.append(f"{self._query.name}: {self._engine.name} has another answer with {variant}: "
                                   f"{differs}")

    def best(self):
        return min(min(seconds, default=math.inf) for seconds in self.seconds.values())


def time_query(query, engines, suite, options):
    """{engine: Timings}, and what is wrong, one line each."""
    timings = {name: Timings(engine, query, engine.variants(suite), CLOCKS[options.clock])
               for name, engine in engines.items()}
    for _ in range(options.rounds):
        for timing in timings.values():
            timing.round()
    errors = [error for timing in timings.values() for error in timing.errors]
    first, *others = timings
    for name in others:
        differs = answers.difference(timings[first].answer, timings[name].answer)
        if differs:
            errors.append(f"{query.name}: {first} and {name} have different answers: {differs}")
    return timings, errors


class Table:
    """Prints a line per query as soon as it is known, and the geometric means of the ratios at the end."""

    def __init__(self, engines):
        self._engines, self._compared = engines, [name for name in OURS if name in engines]
        self._others = [name for name in engines if name in OTHERS]
        self._ratios = {}
        headers = [*engines, "best", *(f"{name} x" for name in self._compared if self._others)]
        print("query     " + "".join(f"{header:>12}" for header in headers) + "    rows")

    def add(self, query, timings):
        milliseconds = {name: timing.best() * 1e3 for name, timing in timings.items()}
        best = min(self._others, key=milliseconds.get, default=None)
        ratios = {name: milliseconds[best] / milliseconds[name] for name in self._compared if best}
        for name, ratio in ratios.items():
            self._ratios.setdefault((query.suite, name), []).append(ratio)
        cells = [*(f"{value:.1f}" for value in milliseconds.values()), best or "-",
                 *(f"{ratio:.2f}" for ratio in ratios.values())]
        num_rows = len(next(iter(timings.values())).answer)
        print(f"{query.name:10}" + "".join(f"{cell:>12}" for cell in cells) + f"{num_rows:8}", flush=True)

    def end(self):
        for (suite, name), ratios in self._ratios.items():
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{suite}: {name} is {mean:.2f} times as fast as the best other engine, geometric mean of "
                  f"{len(ratios)} queries")


def run_suite(suite, queries, engines, options, table):
    """Answers ({query: {engine: {variant: seconds}}}, errors)."""
    import compare
    import query_tables

    seconds, errors = {}, []
    try:
        tables = query_tables.read(suite.name, options.scale)
        for engine in engines.values():
            engine.load(suite, tables)
        del tables
        for query in queries:
            timings, wrong = time_query(query, engines, suite, options)
            table.add(query, timings)
            seconds[query.name] = {name: timing.seconds for name, timing in timings.items()}
            errors += wrong
    finally:
        for engine in engines.values():
            engine.drop()
        compare.give_back_memory()
    return seconds, errors


def main(arguments):
    options = parse_options(arguments)
    if options.list:
        print("\n".join(query.name for query in options.queries))
        return 0
    engines = make_engines(options)
    versions = {name: engine.version() for name, engine in engines.items()}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"ms of {options.clock} time, best of {options.rounds} rounds, {options.threads} thread(s), scale factor "
          f"{options.scale:g}\n")
    seconds, errors, table = {}, [], Table(engines)
    for name in query_list.SUITES:
        queries = [query for query in options.queries if query.suite == name]
        if queries:
            of_suite, wrong = run_suite(query_list.Suite(name), queries, engines, options, table)
            seconds |= of_suite
            errors += wrong
    table.end()
    if options.json:
        settings = {name: getattr(options, name) for name in ("rounds", "scale", "threads", "clock")}
        with open(options.json, "w") as file:
            json.dump({"versions": versions, "settings": settings, "seconds": seconds, "errors": errors}, file,
                      indent=1)
    for error in errors:
        print(f"run: error: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
