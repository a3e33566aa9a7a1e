# SPDX-License-Identifier: Apache-2.0
"""Interrupts queries of Quern's nodes at random moments:

    interrupts.py --library QUERN.SO [--rounds 60] [--seed N] [--kill]

A round runs a query with quern.enabled = force and a random limit of memory, and one of these happens to it: nothing,
statement_timeout, pg_cancel_backend, pg_terminate_backend, a full folder of temporary files (temp_file_limit), or, with
--kill, SIGKILL, from which the server recovers by itself. Then the answer is the one of stock PostgreSQL, or the error
is the one that belongs to what happened. The session, if it is still there, goes on, in a transaction with a savepoint
or without. At the end no temporary file is left and the log has no warning."""

import argparse
import os
import random
import resource
import signal
import sys
import threading
import time

import cluster
import random_queries

TABLES = [
    "create unlogged table a as select g % 50000 as k, g as v, md5((g % 70000)::text) as t, "
    "(g % 1000)::numeric(9,2) as n from generate_series(1, {rows}) g",
    "create unlogged table b as select g as k, g * 3 as w, md5(g::text) as t from generate_series(1, {rows} / 3) g",
    "vacuum analyze a", "vacuum analyze b",
]
QUERIES = [
    "select count(*), sum(a.v), sum(b.w) from a join b using (k)",
    "select count(*), sum(v), sum(w) from a left join b on a.t = b.t and a.v < b.w",
    "select count(*), sum(v) from a where not exists (select 1 from b where b.t = a.t)",
    "select count(*), sum(v) from a full join b on a.v = b.w",
    "select count(*), sum(s), min(t) from (select t, sum(v) s, count(*) c from a group by t offset 0) made",
    "select count(*), sum(s), max(m) from (select k, sum(n) s, max(t) m from a group by k offset 0) made",
    "select count(*), sum(d) from (select k % 100 as k, count(distinct t) d from a group by 1 offset 0) made",
    "select sum(r * (v % 7)) from (select v, row_number() over (order by t, v desc) r from a) made",
    "select sum(v), count(t) from (select v, t from a order by n desc, v limit 20000) made",
    "select count(*), sum(c) from (select b.w, count(*) c from a join b using (t) group by b.w offset 0) made",
]
# SQLSTATEs that belong to what happens; the answer is right as well, since it may have come before.
EXPECTED = {"nothing": set(), "timeout": {"57014"}, "cancel": {"57014"}, "terminate": {"57P01"}, "kill": set(),
            "no files": {"53400"}, "no memory": {"53200"}}
STRUCK = ("cancel", "terminate", "kill", "no memory")
GOOD, LOST = "00000", "lost"


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def limit_memory(pg, pid, more=None):
    """Refuses a backend what is more than so many bytes beyond what it has; None: no limit."""
    limit = "unlimited"
    if more is not None:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            limit = int(statm.read().split()[0]) * resource.getpagesize() + more
    pg.run_as_server(["prlimit", f"--pid={pid}", f"--as={limit}:unlimited"])


class Rounds:
    def __init__(self, pg, rng):
        self.pg, self.rng = pg, rng
        self.session = self.other = None
        self.expected, self.seen, self.bad = {}, {}, []
        self.most_mb = self.slowest_ms = 0.0

    def begin_session(self):
        """A new session, and another one to strike with. A server that lost a backend starts again by itself, and its
        unlogged tables are empty then."""
        while True:
            for session in (self.session, self.other):
                if session:
                    session.close()
            try:
                self.session, self.other = self.pg.session(), self.pg.session()
                self.pid = int(self.session.value("select pg_backend_pid()"))
                self.session.execute("set enable_mergejoin = off", "set enable_nestloop = off")
                self.other.execute("select 1")
                if self.expected and int(self.session.value("select count(*) from a")) == 0:
                    self.make_tables()
                return
            except (cluster.Crashed, cluster.Failed):
                if not self.pg.is_running():
                    raise
                time.sleep(0.1)

    def ask_stock(self):
        self.session.execute("set quern.enabled = off")
        for query in QUERIES:
            began = time.perf_counter()
            self.expected[query] = self.session.rows(query), time.perf_counter() - began
        self.session.execute("set quern.enabled = force")

    def strike(self, what, after):
        """Does to the session's backend what happens in this round, after so many seconds."""
        time.sleep(after)
        try:
            if what == "kill":
                os.kill(self.pid, signal.SIGKILL)
            elif what == "no memory":
                limit_memory(self.pg, self.pid, self.more_memory)
            elif what in ("cancel", "terminate"):
                self.other.results([f"select pg_{what}_backend({self.pid})"])
            self.struck = time.monotonic()
        except (cluster.Crashed, ProcessLookupError, FileNotFoundError):
            pass

    def pick(self):
        """A query, what compares its rows with the right ones, and how long it takes."""
        query = self.rng.choice(QUERIES)
        rows, seconds = self.expected[query]
        return query, lambda found: None if found == rows else f"expected: {rows}", seconds

    def round(self, number, happens):
        rng = self.rng
        what = rng.choice(happens)
        query, difference, seconds = self.pick()
        after = rng.uniform(0, seconds)
        if what == "no memory":
            after *= rng.choice((0, 0.2, 1))
        self.more_memory = rng.choice((0, 1, 8)) << 20
        work_mem = rng.choice(("64kB", "1MB", "4MB", "64MB", *["512MB"] * 4 * (what == "no memory")))
        ahead = [f"set work_mem = '{work_mem}'",
                 f"set temp_file_limit = {rng.choice((100, 1000)) if what == 'no files' else -1}",
                 f"set quern.threads = {rng.choice((1, 2, 4))}", "set quern.enabled = force"]
        in_transaction = rng.random() < 0.4
        striker = None
        self.struck = None
        try:
            self.session.execute(*ahead)
            if in_transaction:
                self.session.execute("begin", "savepoint s")
            if what == "timeout":  # as late as that: it strikes every statement that follows
                self.session.execute(f"set statement_timeout = {max(1, round(after * 1000))}")
            if what in STRUCK:
                striker = threading.Thread(target=self.strike, args=(what, after))
                striker.start()
            result = self.session.results([query], 120)[0]
            ended, state = time.monotonic(), result.sqlstate
            if in_transaction:
                self.end_transaction()
        except cluster.Crashed as error:
            ended, result, state = time.monotonic(), None, LOST
            if "no answer" in str(error):
                self.bad.append(f"round {number}: {what} after {after:.3f} s: {error}: {query}")
        if striker:
            striker.join()
        if self.struck and state not in (GOOD,):
            self.slowest_ms = max(self.slowest_ms, (ended - self.struck) * 1000)
        if state == GOOD and difference(result.rows):
            found = f"{str(result.rows)[:1000]}; {difference(result.rows)}"
            self.bad.append(f"round {number}: {what}: {found}: work_mem {work_mem}: {query}")
        elif state not in {GOOD, *EXPECTED[what]} and not (state == LOST and what in ("terminate", "kill")):
            found = f"{what} after {after:.3f} s, work_mem {work_mem}: {result or state}"
            self.bad.append(f"round {number}: {found}: {query}")
        self.seen[what, state] = self.seen.get((what, state), 0) + 1
        self.after_round(number, state, what)

    def end_transaction(self):
        if self.session.results(["rollback to s", "commit"])[-1].failed:
            self.insist("rollback")

    def insist(self, statement):
        """What was meant for a query that has ended before may strike the next statement."""
        for _ in range(100):
            result = self.session.results([statement])[0]
            if not result.failed:
                return
            if result.sqlstate in EXPECTED["no memory"]:  # the limit may be below what the backend has
                limit_memory(self.pg, self.pid)
        raise cluster.Failed(f"{statement}: {result.sqlstate}: {result.message}")

    def after_round(self, number, state, what):
        """The session goes on where there is one."""
        if what in ("terminate", "kill") or state == LOST:
            self.begin_session()
            return
        self.insist("set statement_timeout = 0")
        self.most_mb = max(self.most_mb, resident_mb(self.pid))

    def make_tables(self, rows=None):
        self.rows = rows or self.rows
        self.session.execute("drop table if exists a, b", "set quern.enabled = off",
                             *(text.format(rows=self.rows) for text in TABLES))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("QUERN_TEST_SEED") or 1))
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    cluster.end_on_signals()
    happens = ["nothing", "timeout", "timeout", "cancel", "cancel", "terminate", "no files"] + ["kill"] * options.kill
    with cluster.Cluster({"shared_buffers": "128MB"}, options.library) as pg:
        rounds = Rounds(pg, random.Random(options.seed))
        rounds.begin_session()
        rounds.make_tables(options.rows)
        rounds.ask_stock()
        for number in range(options.rounds):
            rounds.round(number, happens)
            if len(rounds.bad) >= 10 or not pg.is_running():
                break
        time.sleep(0.1)
        files = rounds.other.rows("select name from pg_ls_tmpdir()")
        if files:
            rounds.bad.append(f"temporary files are left: {files[:5]}")
        expected = "terminated by signal 9" if options.kill else "nothing of this kind"
        crashes = [line for line in pg.log.splitlines() if random_queries.LEAKS.search(line) and expected not in line
                   and not (options.kill and "terminating connection because of crash" in line)]
        rounds.bad += [f"in the log: {line}" for line in crashes[:10]]
    seen = ", ".join(f"{what}: {state} {count}" for (what, state), count in sorted(rounds.seen.items()))
    print(f"seed {options.seed}: {sum(rounds.seen.values())} rounds; {seen}")
    print(f"the slowest answer to an interruption: {rounds.slowest_ms:.0f} ms; "
          f"the largest backend: {rounds.most_mb:.0f} MB")
    print("\n".join(f"FAILED {text}" for text in rounds.bad))
    print(f"{len(rounds.bad)} failures")
    sys.exit(bool(rounds.bad))


if __name__ == "__main__":
    main()
