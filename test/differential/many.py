#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Differential test of many cases: compiled kernels = generic kernels = DuckDB. A case is one spec with one data set.

    many.py --lib build/lib/libquern.so --operator join --seed 7 --cases 100000
    many.py --lib build/lib/libquern.so --operator join --seed 7 --spec 31 --data 12
    many.py --lib build/lib/libquern.so --seconds 600                        all operators, in turn

run.py makes one query of DuckDB for each case, and every row is a Python object. Here a spec is compiled once (with
default parameters and with random ones) and runs hundreds of data sets, from no row to thousands, which numpy draws
together and of which each is an input of its own to Quern. DuckDB answers all of them in one query, where the number of
the data set is one more key. Answers are compared in bulk, by hashes of rows (many_hashes.py). Specs and values come
from the generators of run.py, which covers what many.py leaves out: threads, states, merges, the result as Arrow,
functions of the host, a swap of the kernel within a job.

Prints the seed first. The cases run in a child process; where it crashes, the parent tells in which data set. A failure
is run again with its data set alone, and printed with the command that does so. The last lines are, for each operator,
what was covered, and the numbers of cases, of those that DuckDB answered, rows, specs and seconds.
"""
import argparse
import collections
import math
import mmap
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import duckdb

import many_aggregate
import many_filter
import many_join
import many_set
import many_sort
import quern_abi
from many_abi import Calls

OPERATORS = {"aggregate": many_aggregate, "filter": many_filter, "join": many_join, "set": many_set,
             "sort": many_sort}
SETS_OF_SPEC = 200
PROGRESS_SECONDS = 60


class Marker:
    """Three numbers in a file that outlives a crash: operator, spec and data set."""
    NUM_BYTES = 24

    def __init__(self, path):
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.NUM_BYTES)

    def put(self, operator, spec, data):
        place = list(OPERATORS).index(operator)
        self._map[:] = b"".join(number.to_bytes(8, "little") for number in (place, spec, data))

    @classmethod
    def read(cls, file):
        """(operator, spec, data set)."""
        file.seek(0)
        place, spec, data = (int.from_bytes(file.read(8), "little") for _ in range(3))
        return list(OPERATORS)[place], spec, data


def made_job(options, operator, number):
    """The job of a spec, ready to run."""
    job = OPERATORS[operator].Job(options.seed, number, options.sets)
    if options.data is not None:
        job.only = options.data
        for sets, rows in zip(job.all_sets, options.rows or [()] * len(job.all_sets)):
            sets.keep_only(options.data, *rows)
    job.bind()
    return job


def run_spec(options, operator, number, library, calls, marker, connection):
    """(job, failures) of one spec."""
    job = made_job(options, operator, number)
    job.compile(library)
    try:
        job.run(calls, lambda data: marker.put(operator, number, data))
        failures = job.check(connection)
    finally:
        job.close()
    return job, failures


def again(options, operator, spec, data, rows=()):
    """The command that runs a data set alone."""
    places = " --rows " + ",".join(f"{first}:{end}" for first, end in rows) if rows else ""
    return (f"{sys.executable} {os.path.abspath(__file__)} --lib {options.lib} --operator {operator} "
            f"--seed {options.seed} --sets {options.sets} --spec {spec} --data {data}{places}")


def minimised(options, operator, number, data, *context):
    """(rows of each input at which a data set alone still fails, the job, its failures); no rows where it does not."""
    def failing(rows):
        job, failures = run_spec(argparse.Namespace(**{**vars(options), "data": data, "rows": rows}), operator, number,
                                 *context)
        return (rows, job, failures) if failures else None

    smallest = failing(None)
    if smallest is None:
        return (), None, []
    rows = [(0, int(sets.end[data] - sets.first[data])) for sets in smallest[1].all_sets]
    smallest, shrunk = failing(rows) or smallest, True
    while shrunk and smallest[0]:
        shrunk = False
        for place, (first, end) in enumerate(smallest[0]):
            step = (end - first + 1) // 2
            for part in ((first, end - step), (first + step, end), (first, end - 1), (first + 1, end)):
                found = failing([*smallest[0][:place], part, *smallest[0][place + 1:]]) if end > first else None
                if found:
                    smallest, shrunk = found, True
                    break
    return smallest


def report_failure(options, operator, job, failures, context):
    print(f"FAILED: {operator}, seed {options.seed}, spec {job.number}: {job.spec}\nparams: {job.params}")
    for failure in failures:
        print(f"data set {failure.number} ({job.sizes_text(failure.number)}): {failure}", flush=True)
        rows, smaller, left = minimised(options, operator, job.number, failure.number, *context)
        if smaller:
            print(f"with fewer rows: {left[0]}\n{smaller.rows_text()}")
        print(f"again: {again(options, operator, job.number, failure.number, rows)}", flush=True)


def run_operator(options, operator, cases, seconds, marker):
    """Runs specs until there are enough cases or the time is over. The number of cases; None after a failure."""
    library, calls, connection = quern_abi.Library(options.lib), Calls(options.lib), duckdb.connect()
    connection.execute("SET threads = 1")
    context = library, calls, marker, connection
    begun, counts, marks = time.monotonic(), collections.Counter(), collections.Counter()
    number, told = options.spec or 0, begun
    while counts["cases"] < cases and time.monotonic() - begun < seconds:
        job, failures = run_spec(options, operator, number, *context)
        counts.update(job.counts)
        marks.update(job.marks)
        counts["specs"] += 1
        if failures:
            report_failure(options, operator, job, failures, context)
            return None
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{operator}: {counts['cases']} cases, spec {number}", flush=True)
        library.clear_cache()
        number += 1
        if options.spec is not None:
            break
    print(f"{operator} covered: {', '.join(f'{name} {count}' for name, count in sorted(marks.items()))}")
    print(f"{operator}: {counts['cases']} cases, of which DuckDB knew {counts['with DuckDB']} as a whole and "
          f"{counts['errors']} had to end in an error; {counts['rows']} rows, {counts['specs']} specs, "
          f"{time.monotonic() - begun:.0f} s", flush=True)
    return counts["cases"]


def run_child(options):
    names, begun = [options.operator] if options.operator else list(OPERATORS), time.monotonic()
    marker = Marker(options.child)
    passed = [run_operator(options, name, options.cases / len(names), options.seconds / len(names), marker)
              for name in names]
    if None in passed:
        return 1
    print(f"{sum(passed)} cases passed in {time.monotonic() - begun:.0f} s")
    return 0


def watch(options):
    """Runs the cases in a child process; tells where it crashed."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(Marker.NUM_BYTES))
        file.flush()
        child = subprocess.run([sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--seed", str(options.seed),
                                "--lib", options.lib, "--child", file.name],
                               env=quern_abi.environment_for(options.lib))
        if child.returncode in (0, 1):
            return child.returncode
        operator, spec, data = Marker.read(file)
    print(f"FAILED: {operator}, seed {options.seed}: the process ended with status {child.returncode} in spec {spec}, "
          f"data set {data}\nagain: {again(options, operator, spec, data)}")
    return 1


def _ranges(text):
    return [tuple(map(int, part.split(":"))) for part in text.split(",")]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--operator", choices=list(OPERATORS), help="default: all, in turn")
    parser.add_argument("--seed", type=int, default=1, help="0: from the clock")
    parser.add_argument("--cases", type=int, help="default: as many as fit into --seconds")
    parser.add_argument("--seconds", type=float, help="default: 60, or no limit where --cases is given")
    parser.add_argument("--sets", type=int, default=SETS_OF_SPEC, help="data sets of a spec")
    parser.add_argument("--spec", type=int, help="this spec alone")
    parser.add_argument("--data", type=int, help="this data set alone")
    parser.add_argument("--rows", type=_ranges, help="FIRST:END of each input, these rows of the data set alone")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    options.seed = options.seed or time.time_ns() % 1_000_000_000
    if options.seconds is None:
        options.seconds = math.inf if options.cases or options.spec is not None else 60
    options.cases = options.cases or 1_000_000_000
    return options


def main():
    options = parse_options()
    if options.child:
        return run_child(options)
    print(f"seed {options.seed}", flush=True)
    return watch(options)


if __name__ == "__main__":
    sys.exit(main())
