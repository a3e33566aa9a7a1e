# SPDX-License-Identifier: Apache-2.0
"""Times joins, aggregates and sorts in PostgreSQL, with and without Quern's nodes, in a scratch cluster.

    compare_times.py --library QUERN.SO [--scale 1] [--only REGEX] [--keys int,text16] [--builds 1000,100000,10000000]
                     [--columns 0,2,4] [--work-mem 4MB,64MB,1GB] [--quern-work-mem 4MB,1GB] [--runs 2] [--workers 0]
                     [--json FILE] [--short]

Each query runs with stock PostgreSQL at each size of --work-mem, and with quern.enabled = on at each size of
--quern-work-mem, in one session and by turns; the best of the runs counts, and all answers are compared. The factor is
the best stock time over the best of Quern's. Tables are unlogged and in shared buffers; PostgreSQL's JIT is off. The
rows of all tables are multiplied by --scale, but for build sides that stay smaller than their probe sides. --list
prints the cases."""

import argparse
import json
import math
import os
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/postgres"))

import cluster  # noqa: E402, below the path
import thread_tables  # noqa: E402


def memory_mb():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


class Tables:
    """Makes the tables of a case, and drops those that it does not name."""

    def __init__(self, session):
        self._session, self._there = session, {}

    def make(self, case):
        for name in [name for name in self._there if name not in case.tables]:
            self._session.execute(f"drop table {name}")
            del self._there[name]
        for name, select in case.tables.items():
            if name not in self._there:
                made = ["set work_mem = '512MB'", "select setseed(0.5)", f"create unlogged table {name} as {select}",
                        f"vacuum analyze {name}"]
                self._session.execute(*made, seconds=3600)
                self._there[name] = select
            self._session.execute(f"select pg_prewarm('{name}')")


def measure(session, case, variants, runs):
    """(the best seconds of each variant, whether all answers are the same, the types of Quern's nodes)"""
    best, answers = {name: math.inf for name, _, _ in variants}, set()
    nodes = []
    for turn in range(runs):
        for name, mode, work_mem in variants[turn % len(variants):] + variants[:turn % len(variants)]:
            session.execute(f"set quern.enabled = {mode}", f"set work_mem = '{work_mem}'")
            began = time.perf_counter()
            result = session.results([case.sql], seconds=3600)[0]
            took = time.perf_counter() - began
            if result.failed:
                answers.add(f"{name}: {result}")
                continue
            best[name] = min(best[name], took)
            answers.add(tuple(result.rows))
            if mode != "off" and not nodes:
                found = cluster.node_types(session.rows(f"explain (costs off) {case.sql}"))
                nodes = sorted(node for node in found if node.startswith("Quern"))
    return best, len(answers) == 1, nodes


def factor(best):
    stock = min(value for name, value in best.items() if name.startswith("stock"))
    quern = min(value for name, value in best.items() if name.startswith("quern"))
    return stock / quern if math.isfinite(stock) and math.isfinite(quern) else math.nan


def print_header(names, width):
    print(f"{'':<{width}} " + " ".join(f"{name:>11}" for name in names) + "  factor", flush=True)


def print_row(title, best, is_same, nodes, width):
    note = "" if is_same else "  ANSWERS DIFFER"
    note += "" if nodes else "  (no node of Quern)"
    print(f"{title:<{width}} " + " ".join(f"{value:11.2f}" for value in best.values()) + f"  {factor(best):6.1f}{note}",
          flush=True)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(word) for word in text.split(",")]
    words = lambda text: text.split(",")
    parser.add_argument("--library", required=True, help="the built quern.so")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", default="", metavar="REGEX", help="of the names of cases")
    parser.add_argument("--keys", type=words, default=list(thread_tables.KEYS))
    parser.add_argument("--builds", type=numbers, default=[1_000, 100_000, 10_000_000])
    parser.add_argument("--columns", type=numbers, default=[0, 2, 4])
    parser.add_argument("--work-mem", type=words, default=["4MB", "64MB", "1GB"])
    parser.add_argument("--quern-work-mem", type=words, default=["4MB", "1GB"])
    parser.add_argument("--mode", choices=("on", "force"), default="on", help="of quern.enabled")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0, help="max_parallel_workers_per_gather")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a line of postgresql.conf")
    parser.add_argument("--folder", help="where the cluster is made; default: /tmp")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--short", action="store_true", help="titles instead of names")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    cluster.end_on_signals()
    cases = [case for case in thread_tables.cases(options.scale, options.keys, options.builds, options.columns)
             if re.search(options.only, case.name)]
    if options.list or not cases:
        print("\n".join(f"{case.name:<28} {case.title}" for case in cases) or f"no case matches: {options.only}")
        sys.exit(not cases)
    variants = [(f"stock {size}", "off", size) for size in options.work_mem]
    variants += [(f"quern {size}", options.mode, size) for size in options.quern_work_mem]
    settings = {"shared_buffers": f"{min(8192, max(256, memory_mb() // 4))}MB", "maintenance_work_mem": "512MB",
                "max_parallel_workers_per_gather": options.workers, "hash_mem_multiplier": "1.0",
                **dict(pair.split("=", 1) for pair in options.set)}
    width = max(len(case.title if options.short else case.name) for case in cases)
    figures, all_same = [], True
    with cluster.Cluster(settings, options.library, folder=options.folder) as pg, pg.session() as session:
        session.execute("create extension pg_prewarm")
        version = session.value("show server_version")
        tables = Tables(session)
        print_header([name for name, _, _ in variants], width)
        for case in cases:
            tables.make(case)
            best, is_same, nodes = measure(session, case, variants, options.runs)
            all_same &= is_same
            print_row(case.title if options.short else case.name, best, is_same, nodes, width)
            figures.append({"name": case.name, "title": case.title, "seconds": best, "factor": factor(best),
                            "same_answers": is_same, "nodes": nodes})
    factors = [row["factor"] for row in figures if math.isfinite(row["factor"])]
    if factors:
        print(f"geometric mean of the factors: {math.exp(sum(map(math.log, factors)) / len(factors)):.2f}; "
              f"the lowest: {min(factors):.2f}")
    if options.json:
        about = {"postgres": version, "cores": os.cpu_count(), "scale": options.scale, "runs": options.runs,
                 "workers": options.workers, "settings": settings, "cases": figures}
        pathlib.Path(options.json).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print("all answers are the same" if all_same else "ANSWERS DIFFER")
    sys.exit(not all_same)


if __name__ == "__main__":
    main()
