# SPDX-License-Identifier: Apache-2.0
"""Pages in shared buffers, read while others write them: pages.py --library QUERN.SO [--rounds 30] [--seed 1]

Two sessions move amounts between the rows of a table, insert and delete rows in pairs that cancel out, and vacuum it.
Two more sessions read: whatever they see, the sum of all amounts is the same, and in one snapshot a query has the same
rows with and without Quern. The server has few buffers, so that pages change their places, or many. In the log there
is no pin that was left, and no buffer that was not pinned."""

import argparse
import random
import re
import sys
import threading

import cluster

ROWS = 20000
TABLES = f"""
create table accounts(id int primary key, amount int8, note text) with (fillfactor = 90);
insert into accounts select g, g % 1000, repeat('n', g % 90) from generate_series(1, {ROWS}) g;
create table names(id int, name text);
insert into names select g, 'name ' || g from generate_series(1, {ROWS}, 3) g;
vacuum analyze;
"""
QUERIES = [
    "select count(*), sum(amount), sum(id), max(note) from accounts where id > 0",
    "select count(*), sum(a.amount), max(a.note), min(n.name) from accounts a join names n on a.id = n.id",
    "select amount % 7, count(*), sum(id), sum(length(note)) from accounts where id > 0 group by 1 order by 1",
    "select count(*), sum(amount) from accounts where length(note) > 40 and id > 0",
]
SETTINGS = [
    {"shared_buffers": "1MB", "max_parallel_workers_per_gather": "0"},  # a ring of few buffers for each scan
    {"shared_buffers": "16MB", "max_parallel_workers_per_gather": "0"},
    {"shared_buffers": "16MB", "max_parallel_workers_per_gather": "2", "quern.threads": "3"},
]
BAD = re.compile(r"PANIC|FATAL:  could not|buffer refcount leak|resource was not closed|terminated by signal|TRAP:")


def write(pg, seed, stop, failures):
    """Transactions that leave the sum as it is."""
    chance = random.Random(seed)
    try:
        with pg.session() as session:
            session.execute("set quern.enabled = off")
            while not stop.is_set():
                kind = chance.randrange(6)
                a, b = sorted(chance.sample(range(1, ROWS + 1), 2))
                amount = chance.randrange(1000)
                if kind <= 2:
                    session.results(["begin", f"update accounts set amount = amount + {amount} where id = {a}",
                                     f"update accounts set amount = amount - {amount} where id = {b}", "commit"])
                elif kind == 3:
                    few = chance.randrange(1, 300)
                    session.results([f"insert into accounts select -g * 10 - {seed}, case g % 2 when 0 then {amount} "
                                     f"else -{amount} end, 'pair' from generate_series(1, {2 * few}) g "
                                     "on conflict do nothing"] if seed % 2 else ["select 1"])
                elif kind == 4 and seed % 2:
                    session.results(["delete from accounts where id < 0"])
                else:
                    session.results(["vacuum accounts"])
    except Exception as error:
        failures.append(f"a writer: {error!r}")


def read(session, query):
    """The query in one snapshot, both ways. Returns what is wrong, or None."""
    got = session.results(["begin isolation level repeatable read", "set local quern.enabled = force",
                           query, "select sum(amount) from accounts", "set local quern.enabled = off", query,
                           "set local quern.enabled = force", query, "commit"])
    forced, total, stock, again = got[2], got[3], got[5], got[7]
    for result in (forced, total, stock, again):
        if result.failed:
            return f"{result}"
    if not forced.rows == stock.rows == again.rows:
        return f"{query}: {forced.rows} and {again.rows}; stock: {stock.rows}"
    return total.rows[0][0]


def run(library, settings, rounds, seed):
    """Returns (failures, nodes that ran as kernels)."""
    failures = []
    with cluster.Cluster({**settings, "quern.log_nodes": "on"}, library) as pg:
        with pg.session() as session:
            session.execute(*TABLES.strip().rstrip(";").split(";\n"))
            expected = session.value("select sum(amount) from accounts")
            for _ in range(6):  # so that all pages are used as often as is counted
                failures += [f"{query}: differs before anything is written" for query in QUERIES
                             if read(session, query) != expected]
            stop = threading.Event()
            writers = [threading.Thread(target=write, args=(pg, 2 * seed + i, stop, failures)) for i in range(2)]
            for writer in writers:
                writer.start()
            for number in range(rounds):
                for query in QUERIES:
                    total = read(session, query)
                    if total != expected:
                        failures.append(f"round {number}: {query}: {total}; expected {expected}")
            stop.set()
            for writer in writers:
                writer.join()
        log = pg.log
        failures += [f"in the log: {line}" for line in log.splitlines() if BAD.search(line)][:5]
        return failures, log.count("ran as a kernel")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cluster.end_on_signals()
    failures, kernels = [], 0
    for settings in SETTINGS:
        bad, ran = run(options.library, settings, options.rounds, options.seed)
        failures += [f"{settings}: {text}" for text in bad]
        kernels += ran
    print(f"seed {options.seed}: {kernels} nodes ran as kernels")
    print("\n".join(f"FAILED {text}" for text in failures[:20]))
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
