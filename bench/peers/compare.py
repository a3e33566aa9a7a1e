#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same queries over the same arrays in DuckDB, DataFusion, Polars, ClickHouse (chdb) and Quern, and prints
seconds and ratios.

    bench/peers/peers                                            every case; about two hours
    bench/peers/peers --cases 'join/*'                           the joins; half an hour, below 18 GiB of memory
    bench/peers/peers --cases 'sort/*' --cases 'topn/*'          the sorts
    bench/peers/peers --cases 'filter/*' --cases 'collated/*'    conditions on texts and numbers; texts compared without
                                                                 regard to case
    bench/peers/peers --cases 'agg/i64/*' --rounds 5             some, more often
    bench/peers/peers --scale 0.01 --engines quern,duckdb        small ones, to see that it works
    bench/peers/peers --list                                     names, rows, targets

The queries are `SELECT count(*) FROM probe JOIN build ON ..`, or the sums of the build side's extra columns; and
`SELECT k0, .., sum(i0), .. FROM facts GROUP BY k0, ..` with all its groups; or `SELECT k0, .. FROM facts ORDER BY k0,
..` with all its rows or the first 100; and `SELECT count(*) FROM facts WHERE ..`; over tables that each engine has in
its own memory format. The time is that of the query alone: planning, building, probing, and a result in the engine's
own memory format. Quern's kernel is in its cache by then, as it is from the second query of a process on; column
`compile` gives the cost of compiling it in ms, and `layout` the table that it built, or how it sorted.

The comparison is kept fair. All engines run in one process with one thread (--threads); a warning tells where an engine
took more processor time. Every setting that is documented to help is tried (`variants` in engines.py), in all rounds
unless it was far from that engine's best, and the best time counts. An untimed run comes first. The engines take turns,
round by round, so that a slow minute of the machine affects all. All must have the same result: groups are compared by
their number and by checksums, sorted rows by a checksum that depends on their positions (digest.py). The table looks
like this (the figures are invented):

    case                          duckdb  datafusion  ..  best    quern   ratio  target     compile  layout
    join/i64sparse/build10000000  1.6560  1.8100      ..  1.5970  0.3000  5.32   5.00  yes  10.8     open

`ratio` is the best other engine's time divided by Quern's. The exit status is 0 even if a target is missed, 1 if
results differ or an engine fails, 2 for a wrong command line.
"""
import argparse
import ctypes
import gc
import importlib
import json
import os
import sys
import time

sys.dont_write_bytecode = True

import cases as catalogue
import report

ENGINE_NAMES = ("duckdb", "datafusion", "polars", "clickhouse", "quern")
DEFAULT_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "lib", "libquern.so")
VARIANT_WITHIN = 1.3  # of the engine's best: others get no further round
MIN_SECONDS_TO_JUDGE = 0.02  # shorter runs say nothing about threads


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", action="append", metavar="GLOB",
                        help="only cases that match; may be given several times")
    parser.add_argument("--engines", default=",".join(ENGINE_NAMES), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="best of N; default: %(default)s")
    parser.add_argument("--scale", type=float, default=1.0, metavar="F", help="rows times F; default: 1")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of every engine; default: 1")
    parser.add_argument("--seed", type=int, default=1, help="of the random arrays; default: %(default)s")
    parser.add_argument("--lib", default=os.path.normpath(DEFAULT_LIBRARY), metavar="PATH",
                        help="libquern.so; default: the build's")
    parser.add_argument("--quern-engine", default="auto", choices=("auto", "jit", "generic"),
                        help="default: %(default)s")
    parser.add_argument("--quern-params", metavar="'N=V ..'", help="plan parameters; see quern dump plan")
    parser.add_argument("--quern-input", default="arrow", choices=("arrow", "raw"),
                        help="of joins: Arrow C data, or vectors; default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="all times, of every variant, as JSON")
    parser.add_argument("--list", action="store_true", help="names, rows and targets of the cases, and nothing else")
    options = parser.parse_args(arguments)
    options.engines = options.engines.split(",")
    for name in options.engines:
        if name not in ENGINE_NAMES:
            parser.error(f"unknown engine: {name}; accepted: {', '.join(ENGINE_NAMES)}")
    for name in ("rounds", "scale", "threads"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} is out of range: {getattr(options, name)}; accepted: above 0")
    return options


def make_engines(options):
    """The engines by name, in the order of ENGINE_NAMES. Imports them now, because they read the number of threads from
    the environment as they load."""
    import engines
    import pyarrow

    pyarrow.set_cpu_count(options.threads)
    made = {}
    for name in ENGINE_NAMES:
        if name in options.engines and name != "quern":
            made[name] = engines.ENGINES[name](options.threads)
    if "quern" in options.engines:
        from quern_engine import QuernEngine

        made["quern"] = QuernEngine(options.threads, options.lib, options.quern_engine, options.quern_params,
                                    options.quern_input == "raw")
    return made


# ---- one case --------------------------------------------------------------------------------------------------------


class Timings:
    """One engine in one case: the seconds of each variant's runs, and their answers."""

    def __init__(self, variants):
        self.seconds = {variant: [] for variant in variants}
        self.processor_share = 0.0  # most processor time per wall time that a run took
        self.answers = set()

    def measure(self, engine, case, variant):
        gc.collect()
        processor, start = time.process_time(), time.perf_counter()
        result = engine.run(case, variant)
        wall = time.perf_counter() - start
        if wall >= MIN_SECONDS_TO_JUDGE:
            self.processor_share = max(self.processor_share, (time.process_time() - processor) / wall)
        self.seconds[variant].append(wall)
        self.answers.add(answer_of(engine, case, result))

    def best(self):
        return min(min(seconds, default=float("inf")) for seconds in self.seconds.values())

    def worth_another_round(self):
        return [variant for variant, seconds in self.seconds.items() if not seconds
                or min(seconds) <= self.best() * VARIANT_WITHIN]


def arrays_of(case):
    return importlib.import_module(f"{case.operator}_arrays")


def answer_of(engine, case, result):
    return arrays_of(case).answer(case, engine.table(result))


def run_case(case, engines, options):
    """Answers {engine: Timings}, the ms of Quern's cold compilation and the layout of its table (None without it)."""
    try:
        tables = arrays_of(case).make_tables(case, options.seed)
        for engine in engines.values():
            engine.load(case, tables)
        del tables
        compile_ms = (min(engines["quern"].cold_compile_ms(case) for _ in range(options.rounds))
                      if "quern" in engines else None)
        timings = {name: Timings(engine.variants(case)) for name, engine in engines.items()}
        gc.disable()
        for name, engine in engines.items():
            timings[name].answers.add(answer_of(engine, case, engine.run(case, engine.variants(case)[0])))
        for _ in range(options.rounds):
            for name, engine in engines.items():
                for variant in timings[name].worth_another_round():
                    timings[name].measure(engine, case, variant)
        return timings, compile_ms, engines["quern"].layout if "quern" in engines else None
    finally:
        gc.enable()
        for engine in engines.values():
            engine.drop()
        give_back_memory()


def give_back_memory():
    """Returns freed memory to the system, so that one case's tables do not count in the next one's peak."""
    import pyarrow

    gc.collect()
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)


# ---- all cases -------------------------------------------------------------------------------------------------------


def compare(cases, options):
    try:
        engines = make_engines(options)
    except Exception as error:  # not installed, no such library
        print(f"peers: error: an engine does not start: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    versions = {name: engine.version() for name, engine in engines.items()}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"seconds, best of {options.rounds} rounds, {options.threads} thread(s), rows times {options.scale:g}, seed "
          f"{options.seed}\n")
    rows, errors, table = [], [], report.Table(cases, engines)
    for case in cases:
        case = case.scaled(options.scale)
        try:
            row = report.describe(case, *run_case(case, engines, options))
        except Exception as error:  # an engine's own exception: the cases that are left still run
            errors.append(f"{case.name} failed: {type(error).__name__}: {error}")
            print(f"{case.name}  FAILED", flush=True)
            continue
        rows.append(row)
        table.add(row)
        wrong, warnings = report.complaints(row, options.threads)
        errors += wrong
        for warning in warnings:
            print(f"peers: warning: {warning}", file=sys.stderr)
    if options.json:
        settings = {name: getattr(options, name)
                    for name in ("rounds", "scale", "threads", "seed", "quern_params", "quern_input")}
        with open(options.json, "w") as file:
            json.dump({"versions": versions, "settings": settings, "cases": rows, "errors": errors}, file, indent=1)
    print("\n" + report.summary(rows) if rows else "")
    for error in errors:
        print(f"peers: error: {error}", file=sys.stderr)
    return 1 if errors else 0


def main(arguments):
    options = parse_options(arguments)
    cases = catalogue.matching(options.cases)
    if not cases:
        print(f"peers: error: no such case: {' '.join(options.cases)}; accepted: patterns of the names that --list "
              "prints", file=sys.stderr)
        return 2
    if options.list:
        report.print_list(cases)
        return 0
    return compare(cases, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
