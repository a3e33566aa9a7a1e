# SPDX-License-Identifier: Apache-2.0
"""Runs four queries over TPC-H line items and orders by Quern and, where it is installed, by DuckDB, and prints how
long a row takes:

    demo_compare.py --quern build/bin/quern --data FOLDER [--rounds 3]

FOLDER has lineitem.parquet and orders.parquet. Quern reads the files in a process for each round, whose statistics say
how long the kernel ran; kernels are compiled before that. DuckDB holds the same files as tables in memory. Both use one
thread and make the whole result as Arrow columns in memory; reading files, compiling and writing do not count. The
engines take turns; in its turn each runs the query 5 times, and the median of these counts. The median of the rounds is
printed. Numbers of result rows that differ are an error."""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import duckdb
except ImportError:
    duckdb = None


RUNS = 5  # of an engine, in each of its turns


@dataclasses.dataclass
class Query:
    name: str
    title: str
    files: list
    words: list
    sql: str
    num_rows: int = 0
    compile_ms: float = 0
    ms: dict = dataclasses.field(default_factory=dict)
    rows_out: dict = dataclasses.field(default_factory=dict)

    def ns_per_row(self, engine):
        return statistics.median(self.ms[engine]) * 1e6 / max(1, self.num_rows) if engine in self.ms else None


JOINED = "l_orderkey,o_custkey,o_orderdate"
SUMS = "sum(l_quantity), sum(l_extendedprice), avg(l_quantity), avg(l_discount), count(*)"
SHIPPED = "l_shipmode = 'AIR' and l_commitdate < l_receiptdate and l_discount > 0.05"


def queries():
    return [
        Query("join", "every line item with its order, 3 columns", ["lineitem", "orders"],
              ["join", "--on", "l_orderkey=o_orderkey", "--select", JOINED],
              f"select {JOINED} from lineitem join orders on l_orderkey = o_orderkey"),
        Query("aggregate", "TPC-H query 1: two text keys, 5 aggregates", ["lineitem"],
              ["aggregate", "--by", "l_returnflag,l_linestatus", "--agg", SUMS, "--filter", "l_shipdate<=1998-09-02"],
              f"select l_returnflag, l_linestatus, {SUMS} from lineitem where l_shipdate <= date '1998-09-02' "
              "group by all"),
        Query("sort", "all line items by date and price, 3 columns", ["lineitem"],
              ["sort", "--by", "l_shipdate, l_extendedprice desc", "--select", "l_orderkey,l_shipdate,l_extendedprice"],
              "select l_orderkey, l_shipdate, l_extendedprice from lineitem order by l_shipdate, l_extendedprice desc"),
        Query("filter", "three conditions on four columns", ["lineitem"],
              ["filter", "--where", SHIPPED, "--select", "l_orderkey,l_extendedprice"],
              f"select l_orderkey, l_extendedprice from lineitem where {SHIPPED}"),
    ]


def paths(options, query):
    return [os.path.join(options.data, name + ".parquet") for name in query.files]


def run_quern(options, query, engine):
    result = os.path.join(options.data, "demo-result.arrow")
    command = [options.quern, *query.words, "--engine", engine, "--threads", "1", "--repeat", str(RUNS), "--stats",
               "--quiet", "-o", result]
    environment = {**os.environ, "QUERN_CACHE": "rw", "QUERN_CACHE_DIR": options.kernels}
    command += paths(options, query)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"demo: error: {' '.join(command)}: {ended.stderr.strip()}")
    os.remove(result)
    stats = json.loads(ended.stderr.splitlines()[-1])
    query.num_rows = stats["rows_in"]
    if stats["cache"] == "miss":
        query.compile_ms = stats["compile_ms"]
    return stats["run_ms"], stats["rows_out"]


class DuckDB:
    def __init__(self, options):
        self.connection = duckdb.connect()
        self.connection.execute("set threads = 1")
        for name in ("lineitem", "orders"):
            path = os.path.join(options.data, name + ".parquet")
            self.connection.execute(f"create table {name} as select * from read_parquet('{path}')")

    def run(self, query):
        times_ms = []
        for _ in range(RUNS):
            begun = time.perf_counter()
            table = self.connection.sql(query.sql).to_arrow_table()
            times_ms.append((time.perf_counter() - begun) * 1000)
        return statistics.median(times_ms), table.num_rows


def measure(options):
    """All queries with all engines, in turns; the engine that begins is another one in each round."""
    engines = {
        "compiled": lambda query: run_quern(options, query, "jit"),
        "generic": lambda query: run_quern(options, query, "generic"),
    }
    if duckdb:
        engines["DuckDB"] = DuckDB(options).run
    measured = queries()
    for query in measured:  # compiles the kernels and keeps them, so that no process that is measured compiles
        run_quern(options, query, "jit")
    for number in range(options.rounds):
        for query in measured:
            names = list(engines)
            for name in names[number % len(names):] + names[:number % len(names)]:
                ms, query.rows_out[name] = engines[name](query)
                query.ms.setdefault(name, []).append(ms)
    for query in measured:
        if len(set(query.rows_out.values())) != 1:
            sys.exit(f"demo: error: {query.name}: engines differ in the number of result rows: {query.rows_out}")
    return list(engines), measured


def times(numerator, denominator):
    if abs(numerator / denominator - 1) < 0.05:
        return "as fast as"
    return f"{numerator / denominator:.1f} times as fast as" if numerator >= denominator else \
        f"{denominator / numerator:.1f} times as slow as"


def story(query):
    compiled, generic, theirs = (query.ns_per_row(name) for name in ("compiled", "generic", "DuckDB"))
    yield (f"{query.num_rows:,} line items and orders were joined by order key into "
           f"{query.rows_out['compiled']:,} rows, in {compiled:.1f} ns a row:")
    others = f" and {times(theirs, compiled)} DuckDB." if theirs else ". (DuckDB is not installed.)"
    yield f"{times(generic, compiled)} the generic kernel{others}"


def print_table(engines, measured):
    names = " ".join(f"{name:>8}" for name in engines)
    print(f"  {'':<10} {'':<44} {'rows':>9}  {'ns a row:':>9} {names} {'compile':>11}")
    for query in measured:
        numbers = " ".join(f"{query.ns_per_row(name):8.1f}" for name in engines)
        about = f"{query.name:<10} {query.title:<44} {query.num_rows:>9,}"
        print(f"  {about}  {'':>9} {numbers} {query.compile_ms:8.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quern", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as options.kernels:
        engines, measured = measure(options)
    for line in story(measured[0]):
        print("  " + line)
    print()
    print_table(engines, measured)
    print(f"\n  Measured: medians of {options.rounds} rounds of {RUNS} runs, the engines by turns, one thread each, "
          "rows in memory before and\n  after; reading files and compiling do not count. tools/demo --verbose prints "
          "plans and statistics.")


if __name__ == "__main__":
    main()
