# SPDX-License-Identifier: Apache-2.0
"""The 22 queries of TPC-H with and without Quern's nodes:

    tpch.py --library QUERN.SO [--scale 0.01] [--queries 1,3,18] [--time 3] [--explain] [--json FILE]

loads the tables that the project's generator makes into a scratch cluster, with primary keys, and compares the answers
with quern.enabled = off, on and force. With --time N, each query also runs N times with stock PostgreSQL, at its
default number of parallel workers and each size of --work-mem, and as many times with quern.enabled = on at the
largest of them. They take turns; the best time of each counts. The factor is that of the better stock time, and the
last line but one has the geometric mean of the factors."""

import argparse
import collections
import json
import math
import os
import pathlib
import sys
import time

import cluster

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
NODES = ("QuernJoin", "QuernAggregate", "QuernSort")


def generator():
    """tpchgen-cli: that of the Python environment which runs this, or of this checkout."""
    for folder in (pathlib.Path(sys.executable).parent, ROOT / "build/venv/bin"):
        if (folder / "tpchgen-cli").is_file():
            return folder / "tpchgen-cli"
    raise cluster.Failed("no generator of TPC-H data: tpchgen-cli; tools/setup installs it")


def load(pg, scale):
    """Makes the tables, and the rows through a pipe from the generator."""
    made = pg.psql("-q", "-v", "ON_ERROR_STOP=1", "-f", str(HERE / "tpch/schema.sql"))
    program = generator()
    for table in TABLES:
        command = f"'{program}' csv --quiet --stdout -s {scale:g} -T {table}".replace("'", "''")
        copy = f"\\copy {table} from program '{command}' with (format csv, header)"
        made = pg.psql("-q", "-v", "ON_ERROR_STOP=1", "-c", copy, capture_output=True, text=True)
        if made.returncode:
            raise cluster.Failed(f"cannot load {table}: {made.stderr.strip()}")
    made = pg.psql("-q", "-v", "ON_ERROR_STOP=1", "-f", str(HERE / "tpch/keys.sql"))
    if made.returncode:
        raise cluster.Failed("cannot make the primary keys")


def queries(scale, chosen):
    """{number: SQL}. The share of query 11 depends on the scale factor."""
    found = {}
    for number in chosen:
        text = (HERE / f"tpch/q{number:02}.sql").read_text(encoding="utf-8")
        text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        found[number] = text.replace(":scale", f"{scale:g}").strip()
    return found


def set_up(session, mode, work_mem):
    session.execute(f"set quern.enabled = {mode}", f"set work_mem = '{work_mem}'")


def check(session, number, sql):
    """Compares the modes; returns the counts of nodes with force, and whether the answers agree."""
    answers, nodes = {}, collections.Counter()
    for mode in ("off", "on", "force"):
        set_up(session, mode, "64MB")
        (answers[mode],) = session.results([sql])
    nodes = cluster.node_types(session.rows(f"explain (costs off) {sql}"))
    off = answers["off"]
    good = not off.failed
    if off.failed:
        print(f"FAILED q{number}: stock PostgreSQL: {off}")
    for mode in ("on", "force"):
        mine = answers[mode]
        if mine.failed != off.failed or sorted(mine.rows, key=str) != sorted(off.rows, key=str):
            good = False
            left, right = (collections.Counter(rows) for rows in (off.rows, mine.rows))
            print(f"FAILED q{number}: {off} with off, {mine} with {mode}")
            for row in list(left - right)[:3]:
                print(f"  only with off: {row}")
            for row in list(right - left)[:3]:
                print(f"  only with {mode}: {row}")
    return {name: nodes[name] for name in NODES}, len(off.rows or ()), good


def seconds(session, sql):
    began = time.perf_counter()
    result = session.results([sql])[0]
    took = time.perf_counter() - began
    return math.inf if result.failed else took


def measure(session, sql, work_mems, runs):
    """The best seconds of each variant: {"stock 4MB": 1.2, .., "quern 64MB": 0.5}."""
    variants = [(f"stock {size}", "off", size) for size in work_mems]
    variants.append((f"quern {work_mems[-1]}", "on", work_mems[-1]))
    best = {name: math.inf for name, _, _ in variants}
    for turn in range(runs):
        for name, mode, size in variants[turn % len(variants):] + variants[:turn % len(variants)]:
            set_up(session, mode, size)
            best[name] = min(best[name], seconds(session, sql))
    return best


def print_times(times):
    names = list(next(iter(times.values())))
    print("query " + " ".join(f"{name:>12}" for name in names) + "  factor")
    factors = []
    for number, row in times.items():
        *stock, mine = row.values()
        factors.append(min(stock) / mine)
        print(f"q{number:<5}" + " ".join(f"{value:12.3f}" for value in row.values()) + f"  {factors[-1]:6.2f}")
    sums = [sum(row[name] for row in times.values()) for name in names]
    print("sum   " + " ".join(f"{value:12.3f}" for value in sums))
    mean = math.exp(sum(map(math.log, factors)) / len(factors))
    print(f"geometric mean of the factors: {mean:.2f}; the lowest: {min(factors):.2f}")
    return mean


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", help="the built quern.so; without it, stock is compared with itself")
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--queries", default=",".join(map(str, range(1, 23))))
    parser.add_argument("--time", type=int, default=0, metavar="RUNS")
    parser.add_argument("--work-mem", default="4MB,64MB", help="sizes for stock; Quern runs with the last one")
    parser.add_argument("--explain", action="store_true", help="print plans with quern.enabled = on")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a line of postgresql.conf")
    parser.add_argument("--json", help="a file for the times")
    options = parser.parse_args()
    cluster.end_on_signals()
    buffers = f"{int(max(128, 6000 * options.scale))}MB"  # a table of a quarter of them is not kept there
    given = {"shared_buffers": buffers, "maintenance_work_mem": "512MB", "effective_cache_size": "8GB",
             **dict(pair.split("=", 1) for pair in options.set)}
    todo = queries(options.scale, map(int, options.queries.split(",")))
    num_good, times = 0, {}
    with cluster.Cluster(given, options.library) as pg:
        load(pg, options.scale)
        with pg.session() as session:
            for number, sql in todo.items():
                nodes, num_rows, good = check(session, number, sql)
                num_good += good
                found = ", ".join(f"{name} {count}" for name, count in nodes.items())
                print(f"q{number:02} {num_rows} rows, {found}", flush=True)
                if options.explain:
                    set_up(session, "on", "64MB")
                    print("\n".join(f"    {line}" for (line,) in session.rows(f"explain {sql}")))
                if options.time:
                    times[number] = measure(session, sql, options.work_mem.split(","), options.time)
                    took = ", ".join(f"{name} {value:.3f} s" for name, value in times[number].items())
                    print(f"    {took}", flush=True)
    if times:
        mean = print_times(times)
        if options.json:
            row = {"scale": options.scale, "geometric_mean": mean, "cores": os.cpu_count(), "seconds": times}
            pathlib.Path(options.json).write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    print(f"{num_good} of {len(todo)} queries have the same answers")
    sys.exit(num_good != len(todo))


if __name__ == "__main__":
    main()
