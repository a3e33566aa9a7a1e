# SPDX-License-Identifier: Apache-2.0
"""tpch.py FOLDER [--rounds N] [--threads N] [--query Q]: TPC-H queries 1, 3, 9, 13 and 18 as calls of quern on Polars
frames.

FOLDER holds the tables as Parquet files, as `tpchgen-cli parquet -s 0.1 -o FOLDER` writes them. The results are
compared with those of Polars and DuckDB (f64 to a relative error of 1e-9); then the three take turns, and the best turn
of each counts. Tables are in memory for all three. Kernels are compiled during the comparison, and that time is printed
too, as `first`.
"""

import argparse
import math
import os
import pathlib
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[1].strip())
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine; 0: only compare (default: 5)")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each engine (default: all cores)"
    )
    parser.add_argument("--query", action="append", help="only this one; may be given several times")
    return parser.parse_args()


def read_tables(folder, names):
    """Frames of one chunk, the fastest form for Polars: a frame of several is copied where a column is added and
    batches are requested.
    """
    import polars as pl

    numbers = pl.selectors.decimal().cast(pl.Float64)
    return {name: pl.read_parquet(folder / f"{name}.parquet").with_columns(numbers).rechunk() for name in names}


def engines_of(tables, threads):
    """By name: a function that answers a query's rows as a table."""
    import duckdb

    import tpch_queries

    connection = duckdb.connect(config={"threads": threads})
    for name, frame in tables.items():
        connection.register("frame", frame)
        connection.execute(f"create table {name} as from frame")
    return {
        "quern": lambda query: tpch_queries.QUERN[query](tables, threads=threads),
        "polars": lambda query: tpch_queries.POLARS[query](tables).collect(),
        "duckdb": lambda query: connection.sql(tpch_queries.SQL[query]).pl(),
    }


def timed(function, *values):
    begin = time.perf_counter()
    answer = function(*values)
    return answer, time.perf_counter() - begin


def equal(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9)
    return a == b


def difference(rows, other):
    """The first row that differs, as text; None where there is none."""
    if len(rows) != len(other):
        return f"{len(rows)} rows, not {len(other)}"
    for number, (row, expected) in enumerate(zip(rows, other)):
        if len(row) != len(expected) or not all(map(equal, row, expected)):
            return f"row {number}: {row}, not {expected}"
    return None


def compare(engines, query):
    """Rows of the answer, and the seconds of quern's first run. Ends the program where the engines do not agree."""
    import polars as pl

    answer, first = timed(engines["quern"], query)
    rows = pl.DataFrame(answer).rows()
    for name in ("polars", "duckdb"):
        found = difference(rows, engines[name](query).rows())
        if found is not None:
            sys.exit(f"query {query}: quern is not {name}: {found}")
    return len(rows), first


def best_of(engines, query, rounds):
    best = dict.fromkeys(engines, math.inf)
    for _ in range(rounds):
        for name, run in engines.items():
            best[name] = min(best[name], timed(run, query)[1])
    return best


def main():
    options = arguments()
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)  # read when it is imported
    import tpch_queries

    queries = options.query or list(tpch_queries.QUERN)
    engines = engines_of(read_tables(options.folder, tpch_queries.TABLES), options.threads)
    print("query  rows  first ms  quern ms  polars ms  duckdb ms")
    for query in queries:
        num_rows, first = compare(engines, query)
        best = best_of(engines, query, options.rounds) if options.rounds else {}
        times = [f"{best[name] * 1e3:.1f}" if name in best else "-" for name in ("quern", "polars", "duckdb")]
        print(
            f"{query:>5}  {num_rows:>4}  {first * 1e3:>8.1f}  {times[0]:>8}  {times[1]:>9}  {times[2]:>9}", flush=True
        )
    print(f"{len(queries)} queries, equal to Polars' and DuckDB's")


if __name__ == "__main__":
    main()
