# SPDX-License-Identifier: Apache-2.0
"""Values that kernels do not have, and errors of PostgreSQL's own: exact.py --library QUERN.SO

Each query has the same rows, or the same error, with quern.enabled = off and force, and the nodes that are named."""

import argparse
import re
import sys

import cluster

SCALES = range(10)
TABLES = """
create table a(k int, n numeric(10,2), d numeric(12,4), i int8, f float8, s int2, day date, c char(5), t text);
insert into a select g, g, g, g, g, g %% 100, date '2000-01-01' + g, 'c' || g %% 7, 'text ' || g %% 11
  from generate_series(1, 20000) g;
create table holes as select * from a;
insert into holes(k, n, d) values (5, 'NaN', 'NaN'), (6, 1.5, 'NaN'), (7, null, null);
create table b(k int, n numeric(10,2), w numeric); insert into b select g, g, g / 4.0 from generate_series(1, 20000) g;
insert into b values (5, 'NaN', 'NaN'), (6, 1, 'Infinity');
create table large(k int, i int8, f float8, day date);
insert into large values (1, 9223372036854775807, 1e308, 'infinity'), (1, 1, 1e308, '-infinity'),
  (2, 1, 'Infinity', '0044-03-15 BC'), (2, 2, 'NaN', '2024-02-29');
create table scales(k int, %s);
insert into scales select g, %s from generate_series(-3000, 3000) g;
insert into scales(k, n3) values (1, 0.001), (2, -0.001), (3, 0), (4, 123456789012.345), (5, null);
create table pages(t0 text, v varchar(40), k int, c char(20), b bytea, old int);
insert into pages select case when g %% 3 > 0 then repeat('x', g %% 150) end, g, case when g %% 5 > 0 then g end,
  repeat('y', g %% 19), decode(repeat('ab', g %% 130), 'hex'), g from generate_series(1, 5000) g;
insert into pages select repeat(md5(g::text), 100), repeat('z', g %% 40), g, 'w', repeat('long', 3000)::bytea, g
  from generate_series(1, 100) g;
create table hashes(h text, m varchar, c char(40), k int);
insert into hashes select md5((g / 2)::text), md5((g / 2)::text) || repeat('m', g %% 50),
  substr(md5(g::text), 1, g %% 33), g from generate_series(1, 6000) g;
alter table pages drop column old;
alter table pages add column new int default 7, add column late text;
insert into pages select 'short', 'row', g, 'late', null, g, repeat('late', g %% 20) from generate_series(1, 3000) g;
vacuum analyze;
""" % (", ".join(f"n{scale} numeric(18,{scale})" for scale in SCALES),
       ", ".join(f"g * {7 ** scale}::numeric / {10 ** scale}::numeric" for scale in SCALES))
QUERIES = [
    # Tuples of every digit of the base behind the point; of strings, nulls, large values and columns that are new.
    *(("QuernAggregate", f"select sum(n{scale}), min(n{scale}), max(n{scale}), count(distinct n{scale}), "
                         f"sum(n{scale} * k) from scales where k between -2000 and 2900") for scale in SCALES),
    ("QuernAggregate QuernSort", "select n3, n2, n9, count(*) from scales group by n3, n2, n9 order by n3, n2, n9"),
    *(("QuernAggregate", f"select {key}, count(*), sum(k) from pages where k <> 11 group by {key} order by {key}")
      for key in ("t0", "v", "c", "b", "new", "late")),
    ("QuernSort", "select t0, v, k, c, b, new, late from pages where k > 4 order by k, v, t0, late"),
    # the nodes that run, the query
    ("QuernAggregate QuernJoin", "select count(*), sum(a.k) from holes a join b using (k) where a.n > 2 and b.n >= 3"),
    ("QuernAggregate", "select sum(n), sum(d * n), avg(n), max(n), min(d), count(n) from holes where n > 2"),
    ("QuernAggregate", "select sum(n) from holes where n < 100 and d < 100"),
    ("QuernAggregate QuernSort", "select n, count(*) from holes where k < 10 group by n order by n desc"),
    ("QuernAggregate QuernJoin", "select max(a.n), min(b.n), sum(a.n * b.n) from holes a join b using (k)"),
    ("QuernAggregate QuernJoin", "select count(*), sum(a.i) from holes a join b on a.n = b.w"),
    ("QuernSort", "select k, n from holes where k between 4 and 8 order by n desc, k"),
    ("QuernAggregate", "select sum(i + 9223372036854775807) from large"),                       # 22003
    ("QuernAggregate", "select sum(i * 4), avg(i), sum(i) from a"),
    ("QuernAggregate", "select k, sum(i) from large group by k order by k"),
    ("QuernAggregate", "select sum(f) from large where k = 1"),                                   # 22003
    ("QuernAggregate", "select sum(f), avg(f) from large where k = 2"),
    ("QuernAggregate", "select sum(k / (k - 77)) from a"),                                        # 22012
    ("QuernAggregate", "select sum(extract(year from day)) from large where day > date '1900-01-01'"),
    ("QuernAggregate", "select sum(extract(year from day)) from large where k = 2"),
    ("QuernAggregate", "select sum(extract(quarter from day) * n) from a where day < timestamp '2001-01-01'"),
    ("QuernAggregate", "select sum(case when c = 'c1' then n * d else 0 end), "
                       "sum(case when k < 0 then n else 0 end), sum(case when k < 3 then d end) from holes"),
    ("QuernAggregate", "select c, count(*) filter (where t like '%1%'), count(distinct t) from a "
                       "where t not like 'text 10' and s in (1, 2, 3) group by c order by c"),
    ("QuernAggregate", "select count(*) from a where day >= '2020-01-01' or c = 'c3   ' or n is null"),
    ("QuernJoin", "select count(*) from (select a.k, b.n from a left join b on a.i = b.k and a.k <= b.k offset 0) m"),
    ("QuernJoin", "select count(*) from a where exists (select from b where b.k = a.s and b.k <> a.k)"),
    ("QuernJoin", "select count(*) from a where not exists (select from b where b.k = a.i)"),
    # An argument is not computed where the filter is not true.
    ("QuernAggregate", "select sum(100 / (k % 7)) filter (where k % 7 > 0), sum(k), "
                       "count(distinct 100 / s) filter (where s > 0) from a"),
    # A condition of an outer join is not computed for rows whose keys differ.
    ("", "select count(*), sum(b.n) from a left join b on a.k = b.k and a.s < 100 / (b.k % 7 + b.k / 7 * 7 - a.k + 1)"),
    # Where one side of a join has no row, conditions of the other one are not decided.
    ("QuernJoin", "select count(*) from a join (select * from b where k < 0) e on e.k = a.k where 1 / a.s >= 0"),
    ("QuernJoin", "select count(*), max(e.n) from a join (select k, 1 / (k % 7) as n from b offset 0) e on e.k = a.k "
                  "where a.s < 0"),
    # The key of the build side has a parameter.
    ("QuernJoin", "select v, m.* from (values (1), (50), (3)) v(v), "
                  "lateral (select count(*), sum(a.k) from a join b on a.k = b.k + v where b.k < 1000 offset 0) m"),
    ("QuernAggregate", "select count(distinct t), sum(k) from a"),
    ("QuernAggregate QuernSort", "select c, count(distinct t) from a group by c order by c"),
    # A Sort that runs a subquery first stays.
    ("QuernSort", "select s, count(*) from (select s from a where k <> (select max(k) from b) order by s) m "
                  "group by s"),
    ("QuernAggregate", "select count(*) from (select s from a where k <> (select max(k) from b) order by s) m"),
    # Strings that tuples hold whole, in part, or not at all.
    *(("QuernAggregate QuernJoin",
       f"select count(*), sum(a.k), max(b.m) from hashes a join hashes b on a.{key} = b.{key}")
      for key in ("h", "m", "c")),
    ("QuernAggregate QuernJoin", "select count(*), sum(b.k), max(c.h) from hashes a join hashes b using (h) "
                                 "join hashes c on c.m = b.m"),
    ("QuernJoin", "select count(*) from (select b.m from hashes a left join hashes b on a.h = substr(b.m, 1, 32) and "
                  "a.k < b.k offset 0) m"),
    # PostgreSQL computes subplans for the rows of a join: with arguments of both sides, hashed, of outer joins; where
    # they raise an error, where the node gives up, and where it runs again.
    ("QuernAggregate QuernJoin", "select count(*), sum(a.k) from a join b on a.k = b.k and a.s + b.k < "
                                 "(select sum(l.i / 1000000000000000) from large l where l.k <= a.s % 3 + b.k % 2)"),
    ("QuernAggregate QuernJoin", "select count(*), sum(a.k) from a join b on a.k = b.k and (a.s + b.k) % 50 not in "
                                 "(select k from large)"),
    ("QuernJoin", "select count(*), sum(a.k) from a left join b on a.k + 15000 = b.k where b.k is null or "
                  "exists (select from large l where l.k = b.k % 4 and l.k < a.s)"),
    ("QuernJoin", "select count(*) from a join b on a.k = b.k and a.s > "
                  "(select max(100 / (l.k - 2)) from large l where l.k > b.k % 10)"),                # 22012
    ("QuernJoin", "select count(*), sum(a.k), max(b.w) from holes a join b on a.n = b.n and a.k <= "
                  "(select count(*) + b.k from large l where l.k = a.s % 3)"),
    ("QuernJoin", "select v, m.* from (values (1), (50), (3)) v(v), lateral (select count(*), sum(a.k) from a join b "
                  "on a.k = b.k + v and a.s > (select min(l.k) + v from large l where l.k > b.k % 2) offset 0) m"),
    # Which rows of the build side have a match, and which have none; from version 16 and 18 on.
    ("QuernJoin", "select count(*), sum(b.k) from b where not exists (select from a where a.s = b.k)"),
    ("QuernJoin", "select count(*), sum(b.k) from b where exists (select from a where a.k / 2 = b.k)"),
]

# What is replaced where the planner may choose: an offset alone wants all rows of a sort, a limit may want few of them.
CHOSEN = [
    (True, "select k, i from a order by i offset 1"),
    (False, "select k, i from a order by i limit (select 5)"),
]

# How many bytes of a key tuples hold, from what ANALYZE has found.
PARAMETERS = [
    ("inline_key_bytes=33", "select count(*) from hashes a join hashes b using (h)"),
    ("inline_key_bytes=57", "select count(*) from hashes a join hashes b using (m)"),
    ("inline_key_bytes=33", "select count(*) from a x join (a y join hashes b on b.k = y.k) on x.t = b.h"),
    (None, "select count(*) from hashes a join hashes b using (h, m)"),
    (None, "select count(*) from hashes a join hashes b using (k)"),
    (None, "select count(*) from hashes a join hashes b on a.h || 'x' = b.h || 'x'"),
]


def wrong_parameters(session):
    """How many of PARAMETERS differ."""
    wrong = 0
    session.execute("set quern.enabled = force")
    for expected, query in PARAMETERS:
        lines = [line.strip() for line, in session.rows(f"explain (verbose, costs off) {query}")]
        found = [line.removeprefix("Parameters: ") for line in lines if line.startswith("Parameters: ")]
        if found != ([expected] if expected else []):
            print(f"parameters {found}, expected {expected}: {query}")
            wrong += 1
    return wrong


# What EXPLAIN ANALYZE counts where threads have read most of a table.
COUNTED = ["QuernJoin) (actual rows=500000 loops=1)", "Seq Scan on wide x (actual rows=500000 loops=1)",
           "Seq Scan on wide (actual rows=300000 loops=1)", "Rows Removed by Filter: 200000"]


def wrong_counts(session):
    """How many lines of EXPLAIN differ where three threads read a table."""
    session.execute("create table wide as select g as k, g % 10 as v, 'text' as t from generate_series(1, 500000) g",
                    "vacuum analyze wide", "set quern.enabled = on", "set quern.threads = 3")
    lines = [line for query in ("select v, count(*) from wide where k > 200000 group by v",
                                "select count(*) from wide x join wide y using (k)")
             for line, in session.rows(f"explain (analyze, costs off, timing off, summary off) {query}")]
    lines = [line.replace(".00 loops", " loops") for line in lines]  # as version 18 counts rows
    threads = [line for line in lines if "Threads: " in line]
    missing = [text for text in COUNTED if not any(text in line for line in lines)]
    if missing or len(threads) != 3:
        print("\n".join([f"no {missing}, {len(threads)} nodes with threads", *lines]))
    return len(missing) + abs(len(threads) - 3)


def wrong_account(session):
    """How often a cursor's memory is not that of its query."""
    query = "select ident from pg_backend_memory_contexts where name = 'Quern job'"
    *_, within, _, behind = session.results([
        "begin", "declare c no scroll cursor for select * from wide x join wide y using (k)", "fetch from c", query,
        "commit", query])
    found = [re.fullmatch(r"QuernJoin: (\d+) kB beside this context", text) for text, in within.rows]
    if len(found) == 1 and found[0] and int(found[0][1]) > 1000 and not behind.rows:
        return 0
    print(f"memory contexts: {within.rows}; behind the query {behind.rows}")
    return 1


def wrong_threads(session):
    """Whether a plan that might be parallel has other threads than the table's size gives: 18 MB, so one more."""
    query = "explain select v, count(*) from wide group by v"
    *_, lines, _ = session.results(["set quern.threads = 0", "set max_parallel_workers_per_gather = 2", query,
                                    "set max_parallel_workers_per_gather = 0"])
    if any("Threads Planned: 2" in line for line, in lines.rows):
        return 0
    print("\n".join(["other threads:", *(line for line, in lines.rows)]))
    return 1


def wrong_choices(session):
    """How many of CHOSEN differ."""
    session.execute("set quern.enabled = on", "set quern.min_rows = 1")
    wrong = [query for is_kernel, query in CHOSEN
             if ("QuernSort" in cluster.node_types(session.rows(f"explain {query}"))) != is_kernel]
    for query in wrong:
        print(f"not as chosen: {query}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    options = parser.parse_args()
    cluster.end_on_signals()
    bad = 0
    settings = {"enable_mergejoin": "off", "enable_nestloop": "off", "max_parallel_workers_per_gather": "0"}
    with cluster.Cluster(settings, options.library) as pg, pg.session() as session:
        session.execute(*TABLES.strip().split(";\n"))
        bad += wrong_choices(session) + wrong_parameters(session) + wrong_counts(session) + wrong_account(session)
        bad += wrong_threads(session)
        for nodes, query in QUERIES:
            modes = {}
            for mode, threads in (("off", 1), ("force", 1), ("threads", 3)):
                enabled = "off" if mode == "off" else "force"
                *_, plan, rows = session.results([f"set quern.enabled = {enabled}", f"set quern.threads = {threads}",
                                                  f"explain {query}", query])
                modes[mode] = rows.rows, rows.sqlstate, rows.message
            found = cluster.node_types(plan.rows)
            missing = [node for node in nodes.split() if not found[node]]
            if modes["off"] != modes["force"] or modes["off"] != modes["threads"] or missing:
                bad += 1
                print("\n  ".join([query, *(f"{mode}: {found}" for mode, found in modes.items()), f"no {missing}"]))
            else:
                print(modes["off"][1], query)
    print(f"{len(QUERIES) - bad} of {len(QUERIES)} queries are the same")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
