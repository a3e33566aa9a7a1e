# SPDX-License-Identifier: Apache-2.0
"""Times whole queries: ten of TPC-H, the thirteen of the Star Schema Benchmark, and two joins, over tables in memory.

    bench/pipelines/run                                  all queries, all engines, scale factor 1, a thread
    bench/pipelines/run --queries ssb,tpch.3 --rounds 9  some, more often
    bench/pipelines/run --scale 0.1 --threads 2          smaller tables, two threads for every engine
    bench/pipelines/run --engines quern,generic,duckdb   Quern with compiled kernels and without them
    bench/pipelines/run --queries seam                   two joins with a wide result that is summed at once
    bench/pipelines/run --compile                        what compiling each query's kernels takes, and nothing else
    bench/pipelines/run --list                           the names of the queries, and nothing else

The .quern texts give a query's steps; query_list.py says how they were chosen.

The time is that of the query alone, from its text to a result in memory: the tables are in each engine's own memory
format by then. Decimals have 64 bits for Quern, DuckDB, ClickHouse and the loops by hand, and 128 bits for Polars and
DataFusion. An untimed run comes first, so that what an engine compiles and keeps is there. The engines take turns
in one process, round by round; each setting that is documented to help is tried (query_engines.py), in all rounds
unless it was far from that engine's best, and the best time counts. All engines must give the same answer, as sorted
rows, with numbers equal to eight digits.

Beside the engines stand three that say where Quern's time goes: `generic` runs the same steps without compiling,
`operators` compiles, but runs each operator alone over all rows that the one before it has written (single_steps.py),
and `hand-written` is loops in C++ for queries 1, 3, 6 and 9 of TPC-H (hand_written/*.cc, target hand_written_queries).

`best` names the fastest of the other engines; `quern x` is its time divided by Quern's. The last lines have geometric
means. The exit status is 1 if answers differ, 2 for a wrong command line.
"""
import argparse
import dataclasses
import gc
import json
import math
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers"))

import answers  # noqa: E402
import compile_times  # noqa: E402
import query_list  # noqa: E402
from query_report import OTHERS, OURS, CompileTable, Table  # noqa: E402

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
    parser.add_argument("--decimals", type=int, choices=(64, 128), default=64, metavar="BITS",
                        help="of decimals in the tables that Quern reads, 64 or 128; default: 64, which DuckDB and "
                        "ClickHouse have in their own tables")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="best of N; default: %(default)s")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall",
                        help="processor counts the processor time of all threads: on a busy machine, with one thread; "
                        "default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="all times, of every variant, as JSON")
    parser.add_argument("--compile", action="store_true",
                        help="compile the kernels of each query, in processes of their own, and run none: ms in all, "
                        "cold and from the disk cache, medians of the rounds")
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


def _reads_narrow_decimals(name, options):
    """Whether the tables of an engine have decimals of 64 bits. The loops by hand have no others."""
    return name == "hand-written" or name in OURS and options.decimals == 64


def _supports(engine, query):
    return not hasattr(engine, "supports") or engine.supports(query)


def compile_suite(suite, queries, engine, options, table):
    """{query: CompileTimes as a dict}."""
    import query_tables

    tables = query_tables.read(suite.name, options.scale, queries)
    engine.load(suite, query_tables.with_narrow_decimals(tables) if options.decimals == 64 else tables)
    times = {}
    for query in queries:
        measured = compile_times.measure(engine.specs(query), options.rounds)
        table.add(query, measured)
        times[query.name] = dataclasses.asdict(measured)
    engine.drop()
    return times


def run_suite(suite, queries, engines, options, table):
    """Answers ({query: {engine: {variant: seconds}}}, errors)."""
    import compare
    import query_tables

    seconds, errors = {}, []
    try:
        tables = query_tables.read(suite.name, options.scale, queries)
        narrow = query_tables.with_narrow_decimals(tables)
        for name, engine in engines.items():
            engine.load(suite, narrow if _reads_narrow_decimals(name, options) else tables)
        del tables, narrow
        for query in queries:
            able = {name: engine for name, engine in engines.items() if _supports(engine, query)}
            if not able:
                continue
            timings, wrong = time_query(query, able, suite, options)
            table.add(query, timings)
            seconds[query.name] = {name: timing.seconds for name, timing in timings.items()}
            errors += wrong
    finally:
        for engine in engines.values():
            engine.drop()
        compare.give_back_memory()
    return seconds, errors


def compile_all(options):
    """Prints what compiling takes. Answers the exit status."""
    import query_engines

    engine = query_engines.Quern(options.threads)
    print(f"quern {engine.version()}\nmedians of {options.rounds} rounds, kernels compiled one after the other\n")
    table, times = CompileTable(), {}
    for suite, queries in _by_suite(options.queries):
        times |= compile_suite(suite, queries, engine, options, table)
    if options.json:
        _write_json(options, {"versions": {"quern": engine.version()}, "compile": times})
    return 0


def run_all(options):
    """Times all queries in all engines and prints a table. Answers the exit status."""
    engines = make_engines(options)
    versions = {name: engine.version() for name, engine in engines.items()}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"ms of {options.clock} time, best of {options.rounds} rounds, {options.threads} thread(s), scale factor "
          f"{options.scale:g}\n")
    seconds, errors, table = {}, [], Table(engines)
    for suite, queries in _by_suite(options.queries):
        of_suite, wrong = run_suite(suite, queries, engines, options, table)
        seconds |= of_suite
        errors += wrong
    table.end()
    if options.json:
        _write_json(options, {"versions": versions, "seconds": seconds, "errors": errors})
    for error in errors:
        print(f"run: error: {error}", file=sys.stderr)
    return 1 if errors else 0


def _by_suite(queries):
    """[(suite, those of its queries that run over one load of tables)]: one for suite seam, whose tables are large."""
    loads = {}
    for query in queries:
        loads.setdefault(query.name if query.suite == "seam" else query.suite, []).append(query)
    return [(query_list.Suite(of_load[0].suite), of_load) for of_load in loads.values()]


def _write_json(options, report):
    settings = {name: getattr(options, name) for name in ("rounds", "scale", "threads", "clock", "decimals")}
    with open(options.json, "w") as file:
        json.dump(report | {"settings": settings}, file, indent=1)


def main(arguments):
    options = parse_options(arguments)
    if options.list:
        print("\n".join(query.name for query in options.queries))
        return 0
    return compile_all(options) if options.compile else run_all(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
