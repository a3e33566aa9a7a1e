# SPDX-License-Identifier: Apache-2.0
"""Runs random queries with and without Quern's nodes and compares the answers:

    random_queries.py --library QUERN.SO [--cases 300] [--seed N] [--only DATASET[.CASE]] [--failures FOLDER]

Each query runs with quern.enabled = off and with force, in one session and one snapshot. Rows are compared as
multisets, and where there is an ORDER BY, the sort keys row by row; errors by SQLSTATE and message. Float sums whose
digits depend on the order of rows may differ by a relative 1e-9. A query is a plain statement, a prepared one that runs
several times, a cursor that is read in parts, the source of a temporary table, or one that locks or changes the rows
that a join finds. Planner settings are drawn too, so
that joins, aggregates and sorts of each kind come up, in memory and not, in parallel plans and not.

Each failure is printed with its query and the rows that differ, and is written to a file that psql can run by itself.
The run ends with counts: how many queries had a node of which type. A type that none had is a failure too, except with
--allow-none."""

import argparse
import collections
import decimal
import math
import os
import pathlib
import random
import re
import sys
import tempfile
import time

import cluster
import random_select
import random_tables

CASES_PER_DATASET = 40
NODES = ("QuernJoin", "QuernAggregate", "QuernSort")
STOCK = {"Hash Join": "QuernJoin", "HashAggregate": "QuernAggregate", "GroupAggregate": "QuernAggregate",
         "Aggregate": "QuernAggregate", "Sort": "QuernSort"}
TIMED_OUT = "57014"
# A leader that ends by an error of the query, such as an overflow, terminates parallel workers that are at work.
LEAKS = re.compile(r"WARNING:|PANIC:|TRAP:|terminated by signal|stack trace|"
                   r"FATAL:(?!.*(the database system is|terminating connection due to|canceling|"
                   r"terminating background worker))")


def settings(rng):
    """Statements that set the planner and Quern up, for one case."""
    pick = rng.choice
    parallel = rng.random() < 0.2
    values = {
        "work_mem": pick(("64kB", "64kB", "256kB", "4MB", "64MB")),
        "hash_mem_multiplier": pick(("1", "2")),
        "enable_mergejoin": pick(("off", "off", "off", "on")),
        "enable_nestloop": pick(("off", "off", "off", "on")),
        "enable_hashagg": pick(("on", "on", "off")),
        "enable_incremental_sort": pick(("on", "off")),
        "enable_memoize": pick(("on", "off")),
        "enable_partitionwise_join": pick(("on", "off", "off")),
        "enable_partitionwise_aggregate": pick(("on", "off", "off")),
        "max_parallel_workers_per_gather": "2" if parallel else "0",
        "plan_cache_mode": pick(("auto", "force_generic_plan", "force_custom_plan")),
        "quern.scan": pick(("slots", "pages")),
        "quern.threads": pick(("0", "1", "2", "4")),
    }
    if rng.random() < 0.4:
        # Nested loops over indexes, of which the first outer rows are looked up: none, a few, all.
        values.update({"enable_nestloop": "on", "enable_hashjoin": "off", "enable_mergejoin": "off",
                       "random_page_cost": "0.1", "quern.loop_rows": pick(("0", "1", "3", "50", "100000"))})
    if rng.random() < 0.15:
        values["quern." + pick(("joins", "aggregates", "sorts", "loops"))] = "off"
    if parallel:
        values.update({"min_parallel_table_scan_size": "0", "parallel_setup_cost": "0", "parallel_tuple_cost": "0",
                       "enable_parallel_hash": pick(("on", "off"))})
    # Quoted, since JOIN is a word that SQL keeps for itself.
    return [f"set local \"{name}\" = '{value}'" for name, value in values.items()]


class Case:
    """A query in the form in which it runs: statements, of which `explained` is shown by EXPLAIN; `answers` are the
    groups of statements whose rows together are an answer."""

    def __init__(self, rng, tables):
        queries = random_select.Queries(rng, tables)
        form = rng.random()
        if form < 0.15:
            queries.parameters = []
        self.query = query = (queries.locking() if 0.3 < form < 0.36 else None) or queries.query()
        self.settings = settings(rng)
        self.before, self.explained = [], query.text
        if queries.parameters:
            types = ", ".join(kind for kind, _ in queries.parameters)
            self.before = [f"prepare q ({types}) as {query.text}"]
            calls = ["execute q({})".format(", ".join(values[i] for _, values in queries.parameters)) for i in (0, 1)]
            self.statements = calls + calls[:1]
            self.explained = calls[0]
            self.answers = [[0], [1], [2]]
            self.after = ["deallocate q"]
        elif form < 0.25 and not query.may_fail:  # PostgreSQL may have given rows before it meets the error
            self.before = [f"declare cu no scroll cursor for {query.text}"]
            parts = ["fetch 3 from cu", "fetch 700 from cu"]
            if rng.random() < 0.3:
                parts[1:1] = ["savepoint inner_one", "select 1 / 0", "rollback to inner_one"]
            self.statements = parts + ["fetch all from cu"]
            self.answers = [[i for i, text in enumerate(self.statements) if text.startswith("fetch")]]
            self.after = ["close cu"]
        elif form < 0.3:
            self.before = [f"create temporary table made on commit drop as {query.text}"]
            self.statements, self.answers = ["select * from made"], [[0]]
            self.after = ["drop table if exists made"]
        else:
            self.before = ["savepoint s"]  # a query may change rows
            self.statements, self.answers, self.after = [query.text], [[0]], ["rollback to s"]

    def of_mode(self, mode):
        return [f"set local quern.enabled = {mode}", *self.before, *self.statements, *self.after]

    def run(self, session, seconds):
        """Results of both modes, the rows of EXPLAIN, and how many seconds each mode took."""
        began = time.monotonic()
        session.execute("begin isolation level repeatable read", *self.settings)
        results, took = {}, {}
        try:
            for mode in ("off", "force"):
                began = time.monotonic()
                # A query that takes just less than the limit without Quern may take a little more with it by chance.
                limit = seconds if mode == "off" else 6 * seconds
                found = session.results([f"set local statement_timeout = '{limit}s'", *self.of_mode(mode)],
                                        limit * 10 + 60)[1:]
                took[mode] = time.monotonic() - began
                first = 1 + len(self.before)
                broken = next((r for r in found[:first] if r.failed), None)
                results[mode] = [broken] if broken else found[first:first + len(self.statements)]
            explained = session.results([*self.before[:1 if self.explained.startswith("execute") else 0],
                                         f"explain (costs off) {self.explained}", *self.after[:1]], 60)
            plan = next((r.rows for r in explained if r.rows), [])
        finally:
            session.results(["rollback"], 60)
        return results["off"], results["force"], plan, took

    def script(self):
        """What psql runs to see the case."""
        lines = ["begin isolation level repeatable read;", *(f"{text};" for text in self.settings)]
        if self.explained == self.query.text:
            lines += ["set local quern.enabled = force;", f"explain (costs off) {self.query.text};"]
        for mode in ("off", "force"):
            lines += [f"{text};" for text in self.of_mode(mode)]
        return "\n".join([*lines, "rollback;"])


# Comparing answers.

def comparable(value, column):
    """A value so that equal ones are the same text, for columns where equal values may print differently."""
    if value is None:
        return None
    family = column.kind.family
    if family == "any_numeric":
        number = decimal.Decimal(value)
        return str(number) if not number.is_finite() else format(number.normalize(), "f") if number else "0"
    if family in ("wild", "float"):
        return "0" if value == "-0" else value
    return "*" if column.kind.loose else value


def near(one, other, kind):
    """Two float sums, but for the order in which rows were added."""
    if one is None or other is None:
        return one == other
    a, b = float(one), float(other)
    if a == b or (a != a and b != b):
        return True
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    tolerance = 1e-3 if kind.name == "f4" else 1e-9
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1000.0)


def rows_differ(off, force, query):
    """What is different, as a sentence and the rows that only one side has; None where the answers agree."""
    if len(off) != len(force):
        return f"{len(off)} rows with off, {len(force)} with force", *only_in(off, force)
    columns = query.columns
    positional = range(len(columns)) if query.is_total else query.keys
    exact = [i for i in positional if not columns[i].inexact]
    for number, (one, other) in enumerate(zip(off, force)):
        for i in exact:
            loose = columns[i].loose or (columns[i].kind.loose and not query.is_total)
            a, b = (comparable(one[i], columns[i]), comparable(other[i], columns[i])) if loose else (one[i], other[i])
            if a != b:
                return f"row {number} has another c{i + 1}: {one[i]!r} with off, {other[i]!r} with force", \
                    off[number:number + 3], force[number:number + 3]
    if query.has_limit and not query.is_total:
        return None
    inexact = [i for i, column in enumerate(columns) if column.inexact]
    key = lambda row: tuple(comparable(value, c) if c.loose else value
                            for value, c in zip(row, columns) if not c.inexact)
    if not inexact:
        left, right = collections.Counter(map(key, off)), collections.Counter(map(key, force))
        if left == right:
            return None
        return "other rows", list((left - right).elements()), list((right - left).elements())
    of_text = lambda row: tuple((value is not None, value or "") for value in key(row))
    number = lambda row: tuple((row[i] is not None, float(row[i] or 0) if row[i] != "NaN" else float("inf"))
                               for i in inexact)
    full = lambda row: (of_text(row), number(row))
    for one, other in zip(sorted(off, key=full), sorted(force, key=full)):
        if key(one) != key(other):
            return "other rows", [one], [other]
        for i in inexact:
            if not near(one[i], other[i], columns[i].kind):
                return f"another c{i + 1}: {one[i]} with off, {other[i]} with force", [one], [other]
    return None


def only_in(off, force):
    left, right = collections.Counter(off), collections.Counter(force)
    return list((left - right).elements()), list((right - left).elements())


def difference(case, off, force):
    """As rows_differ, for a whole case."""
    if len(off) != len(force):
        bad = next((r for r in (*force, *off) if r.failed), None)
        return f"one mode alone fails: {bad}", [], []
    for answer in case.answers:
        ones, others = ([side[i] for i in answer if i < len(side)] for side in (off, force))
        for one, other in zip(ones, others):
            # Of two rows that raise errors, either may be the first.
            if one.sqlstate != other.sqlstate:
                return f"{one} with off, {other} with force", [], []
        found = rows_differ([row for r in ones for row in r.rows], [row for r in others for row in r.rows], case.query)
        if found:
            return found
    return None


class Run:
    """All cases, on one cluster."""

    def __init__(self, options, pg):
        self.options, self.pg = options, pg
        self.num_failures = self.num_cases = self.num_timeouts = self.num_rows = 0
        self.with_node, self.left_stock, self.sqlstates = (collections.Counter() for _ in range(3))
        self.with_loop = 0
        self.slower, self.num_known = [], 0

    def report(self, dataset, number, case, what, left=(), right=()):
        self.num_failures += 1
        print(f"FAILED {dataset}.{number}: {what}\n{case.script()}", flush=True)
        for mode, rows in (("off", left), ("force", right)):
            for row in list(rows)[:5]:
                print(f"  only with {mode}: {str(row)[:1000]}")
            if len(rows) > 5:
                print(f"  ... {len(rows)} rows only with {mode}")
        if self.options.failures:
            path = pathlib.Path(self.options.failures, f"seed{self.options.seed}-{dataset}.{number}.sql")
            path.parent.mkdir(parents=True, exist_ok=True)
            tables = [f"{text};" for text in random_tables.PREPARATIONS] + self.made
            path.write_text("\n".join([f"-- {what}".replace("\n", " "), *tables, case.script(), ""]), encoding="utf-8")
            print(f"  the tables and the query: {path}")
        print(f"  again: --seed {self.options.seed} --only {dataset}.{number}", flush=True)

    def dataset(self, dataset, numbers):
        seed = f"{self.options.seed}/{dataset}"
        tables = random_tables.make_tables(random.Random(seed))
        with self.pg.session() as session:
            session.script("\\set ON_ERROR_ROLLBACK on")
            names = ", ".join(table.name for table in tables)
            session.execute(f"drop table if exists {names}")
            self.made = [table.statements() for table in tables]
            session.script("\n".join(self.made), 60)
            if session.notices.strip():
                raise cluster.Failed(f"data set {dataset}: {session.notices[:2000]}")
            for number in numbers:
                case = Case(random.Random(f"{seed}/{number}"), tables)
                self.case(session, dataset, number, case)
                if self.num_failures >= self.options.max_failures:
                    return

    def case(self, session, dataset, number, case):
        self.num_cases += 1
        if self.options.verbose:
            print(f"-- {dataset}.{number}\n{case.script()}", flush=True)
        try:
            off, force, plan, took = case.run(session, self.options.seconds)
        except cluster.Crashed as error:
            self.report(dataset, number, case, f"the connection ended: {error}")
            raise
        answers = {i for answer in case.answers for i in answer} if len(off) == len(case.statements) else {0}
        for result in (result for i, result in enumerate(off) if i in answers):
            self.sqlstates[result.sqlstate] += result.failed
            self.num_rows += len(result.rows or ())
        if any(result.sqlstate == TIMED_OUT for result in off):
            self.num_timeouts += 1
            return
        nodes = cluster.node_types(plan)
        self.with_node.update(set(nodes) & set(NODES))
        self.with_loop += any("Outer Rows:" in line for (line,) in plan)
        self.left_stock.update(set(nodes) & set(STOCK))
        if took["force"] > 2 * took["off"] + 0.3:
            self.slower.append((took["force"], took["off"], f"{dataset}.{number}"))
        found = difference(case, off, force)
        if found and self.options.known and re.search(self.options.known, found[0]):
            self.num_known += 1
        elif found:
            self.report(dataset, number, case, *found)

    def all(self):
        options = self.options
        if options.only:
            dataset, _, number = options.only.partition(".")
            todo = [(int(dataset), [int(number)] if number else range(CASES_PER_DATASET))]
        else:
            todo = [(first // CASES_PER_DATASET, range(min(CASES_PER_DATASET, options.cases - first)))
                    for first in range(0, options.cases, CASES_PER_DATASET)]
        with self.pg.session() as session:
            if session.results(["create collation of_icu (provider = icu, locale = 'und')"])[0].failed:
                random_tables.without_icu()
            session.execute(*random_tables.PREPARATIONS)
        for dataset, numbers in todo:
            try:
                self.dataset(dataset, numbers)
            except cluster.Crashed:
                self.wait_for_recovery()
            if self.num_failures >= options.max_failures:
                print(f"stopped after {self.num_failures} failures")
                break
        self.after_all()

    def wait_for_recovery(self):
        """A server that lost a backend starts again by itself."""
        while self.pg.is_running():
            try:
                with self.pg.session() as session:
                    session.execute("select 1")
                    return
            except (cluster.Crashed, cluster.Failed):
                time.sleep(0.2)
        raise cluster.Failed(f"the server ended: {self.pg.log[-3000:]}")

    def after_all(self):
        """What a run may not leave behind."""
        with self.pg.session() as session:
            files = session.rows("select name from pg_ls_tmpdir()")
            if files:
                self.num_failures += 1
                print(f"FAILED: temporary files are left: {files[:5]}")
        bad = [line for line in self.pg.log.splitlines() if LEAKS.search(line)]
        if bad:
            self.num_failures += 1
            print("FAILED: the server's log has warnings:", *bad[:10], sep="\n  ")

    def summary(self):
        errors = ", ".join(f"{state} {count}" for state, count in sorted(self.sqlstates.items()) if count) or "none"
        print(f"seed {self.options.seed}: {self.num_cases} queries, {self.num_rows:,} rows, {self.num_timeouts} "
              f"timed out without Quern; errors that both modes had: {errors}")
        print("queries with a node: " + ", ".join(f"{name} {self.with_node[name]}" for name in NODES))
        print(f"queries with a join that begins as a nested loop: {self.with_loop}")
        kept = ", ".join(f"{name} {count}" for name, count in sorted(self.left_stock.items()))
        print(f"queries that kept a node of PostgreSQL: {kept or 'none'}")
        for force, off, name in sorted(self.slower, reverse=True)[:3]:
            print(f"slower with force: {name}: {force:.2f} s, {off:.2f} s with off")
        missing = [name for name in NODES if not self.with_node[name]]
        if missing and not self.options.allow_none and not self.options.only:
            self.num_failures += 1
            print(f"FAILED: no query had a node {', '.join(missing)}")
        if self.num_known:
            print(f"{self.num_known} known differences")
        print(f"{self.num_failures} failures")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", help="the built quern.so; without it, stock is compared with itself")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("QUERN_TEST_SEED") or 1))
    parser.add_argument("--only", metavar="DATASET[.CASE]")
    parser.add_argument("--failures", metavar="FOLDER", help="where scripts of failed cases are written")
    parser.add_argument("--max-failures", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10, help="statement_timeout without Quern; with it, six times")
    parser.add_argument("--allow-none", action="store_true", help="a type of node that no query has is no failure")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a line of postgresql.conf")
    parser.add_argument("--icu", metavar="LOCALE", help="the default collation is this one of ICU, not C.UTF-8")
    parser.add_argument("--locale", metavar="LOCALE", help="the default collation is this one of the C library")
    parser.add_argument("--known", metavar="REGEX", help="differences that match are counted, and are no failures")
    parser.add_argument("--verbose", action="store_true", help="print each case before it runs")
    options = parser.parse_args()
    cluster.end_on_signals()
    if options.failures is None:
        options.failures = os.path.join(tempfile.gettempdir(), "quern-postgres-failures")
    given = dict(pair.split("=", 1) for pair in options.set)
    given = {"shared_buffers": "64MB", "log_min_messages": "warning", **given}
    with cluster.Cluster(given, options.library, locale=options.locale or "C.UTF-8", icu=options.icu) as pg:
        run = Run(options, pg)
        run.all()
        run.summary()
    sys.exit(run.num_failures > 0)


if __name__ == "__main__":
    main()
