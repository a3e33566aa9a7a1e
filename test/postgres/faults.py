# SPDX-License-Identifier: Apache-2.0
"""Faults at random moments of random queries: faults.py --library QUERN.SO [--rounds 200 | --seconds S] [--seed N]

As interrupts.py with --kill, and more: queries are also those of random_select.py on tables of random_tables.py, and a
backend may be refused memory (RLIMIT_AS) from a random moment on. After each round that the session survives, it has no
temporary file open and no memory of an executor; at the end no temporary file is left, the postmaster runs, and the log
tells of nothing else."""

import argparse
import itertools
import os
import random
import re
import sys
import time

import cluster
import interrupts
import random_queries
import random_select
import random_tables

HAPPENS = ["nothing", *["timeout", "cancel", "no memory"] * 2, "terminate", "no files", "kill"]
CONTEXTS = "select count(*), count(*) filter (where name in ('ExecutorState', 'PortalContext')) " \
           "from pg_backend_memory_contexts where name not in ('CacheMemoryContext', 'index info', 'relation rules')"
# The system ends a process whose stack cannot grow, whoever uses it: the stack has grown before memory is refused.
DEEP = "select " + "(1 + " * 1500 + "1" + ")" * 1500
ENDED = re.compile(r"terminated by signal|annot allocate|exited with exit code|LLVM ERROR|^terminate|abort")
ROUNDS_OF_TABLES = 100
MANY_CONTEXTS = 60  # more than a session has without a query; relations' own contexts come and go


def open_temporary_files(pg, pid):
    shown = pg.run_as_server(["ls", "-l", f"/proc/{pid}/fd"]).stdout
    return [line for line in shown.splitlines() if "pgsql_tmp" in line]


class Faults(interrupts.Rounds):
    def __init__(self, pg, rng):
        super().__init__(pg, rng)
        self.tables, self.most_contexts, self.num_random, self.most_threads = [], 0, 0, 0

    def begin_session(self):
        super().begin_session()
        self.session.script("\\set ON_ERROR_ROLLBACK on")
        self.session.execute(DEEP)
        self.make([table for table in self.tables if table.is_temporary])

    def make_random_tables(self):
        self.session.execute("set statement_timeout = 0", "set temp_file_limit = -1", "set quern.enabled = off")
        if self.tables:
            self.session.execute("drop table if exists " + ", ".join(table.name for table in self.tables))
        self.tables = random_tables.make_tables(self.rng)
        self.make(self.tables)

    def make(self, tables):
        self.session.script("\n".join(table.statements() for table in tables), 60)
        if self.session.notices.strip():
            raise cluster.Failed(f"random tables: {self.session.notices[:2000]}")

    def pick(self):
        if self.rng.random() < 0.5:
            return super().pick()
        while True:
            queries = random_select.Queries(self.rng, self.tables)
            queries.parameters = []
            query = queries.query()
            began = time.perf_counter()
            rows = self.session.results(["set quern.enabled = off", "set statement_timeout = '3s'",
                                         "set work_mem = '4MB'", query.text])[-1]
            if queries.parameters or rows.failed or query.may_fail:
                continue
            self.num_random += 1
            differ = lambda found: random_queries.rows_differ(rows.rows, found, query)
            return query.text, lambda found: (differ(found) or [None])[0], time.perf_counter() - began

    def after_round(self, number, state, what):
        if what == "no memory" and state != interrupts.LOST:
            interrupts.limit_memory(self.pg, self.pid)
        super().after_round(number, state, what)
        files = open_temporary_files(self.pg, self.pid)
        contexts, of_queries = map(int, self.session.rows(CONTEXTS)[0])
        self.most_contexts = max(self.most_contexts, contexts)
        self.most_threads = max(self.most_threads, len(os.listdir(f"/proc/{self.pid}/task")))
        if files or of_queries != 2 or contexts > MANY_CONTEXTS:
            self.bad.append(f"round {number}: {what}: open files {files}, memory contexts {contexts}, {of_queries}")
        if number % ROUNDS_OF_TABLES == ROUNDS_OF_TABLES - 1:
            self.make_random_tables()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, help="as many rounds as begin in this time")
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("QUERN_TEST_SEED") or 1))
    parser.add_argument("--happens", default=",".join(dict.fromkeys(HAPPENS)), metavar="WHAT,WHAT",
                        help="what may happen; all of it by default")
    options = parser.parse_args()
    happens = [what for what in HAPPENS if what in options.happens.split(",")]
    if not happens or set(options.happens.split(",")) - set(happens):
        parser.error(f"--happens {options.happens}; accepted: {', '.join(dict.fromkeys(HAPPENS))}")
    cluster.end_on_signals()
    settings = {"shared_buffers": "128MB", "log_min_messages": "warning", "quern.log_nodes": "on"}
    with cluster.Cluster(settings, options.library) as pg:
        rounds = Faults(pg, random.Random(options.seed))
        rounds.begin_session()
        if rounds.session.results(["create collation of_icu (provider = icu, locale = 'und')"])[0].failed:
            random_tables.without_icu()
        rounds.session.execute(*random_tables.PREPARATIONS)
        rounds.make_tables(options.rows)
        rounds.make_random_tables()
        rounds.ask_stock()
        began = time.monotonic()
        for number in itertools.count():
            if number >= options.rounds if options.seconds is None else time.monotonic() - began > options.seconds:
                break
            rounds.round(number, happens)
            if len(rounds.bad) >= 10 or not pg.is_running():
                break
        rounds.bad += [] if pg.is_running() else ["the postmaster ended"]
        files = rounds.other.rows("select name from pg_ls_tmpdir()")
        rounds.bad += [f"temporary files are left: {files[:5]}"] if files else []
        pg_log = pg.log
        rounds.bad += [f"in the log: {line}" for line in pg_log.splitlines() if random_queries.LEAKS.search(line)
                       and "terminated by signal 9" not in line and "because of crash" not in line][:10]
        rounds.bad += [f"in the log: {line}" for line in pg_log.splitlines() if ENDED.search(line)][-10:] \
            if any("lost" in text for text in rounds.bad) else []
    kernels, own, threaded = (pg_log.count(text) for text in ("ran as a kernel", "ran as PostgreSQL's own node",
                                                              "with threads"))
    seen = ", ".join(f"{what}: {state} {count}" for (what, state), count in sorted(rounds.seen.items()))
    print(f"seed {options.seed}: {sum(rounds.seen.values())} rounds, {rounds.num_random} of random queries; {seen}")
    print(f"the slowest answer to an interruption: {rounds.slowest_ms:.0f} ms; the largest backend: "
          f"{rounds.most_mb:.0f} MB, {rounds.most_threads} threads, {rounds.most_contexts} memory contexts")
    print(f"nodes that ran to their end: {kernels} as kernels, {threaded} of them with threads, "
          f"{own} as PostgreSQL's own")
    print("\n".join(f"FAILED {text}" for text in rounds.bad))
    print(f"{len(rounds.bad)} failures")
    sys.exit(bool(rounds.bad))


if __name__ == "__main__":
    main()
