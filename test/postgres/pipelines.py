# SPDX-License-Identifier: Apache-2.0
"""Joins that rows pass in a pipeline: pipelines.py --library QUERN.SO [--rows 60000]

Each query has the same rows as without Quern, with one thread and with three, with much memory and with little. EXPLAIN
ANALYZE counts the same rows of each join as PostgreSQL does. Joins of which each reads the rows of the one before lie
in a pipeline, if there is memory for it. A pipeline ends where a query is cancelled, and where a value has no exact
form."""

import argparse
import json
import sys
import threading
import time

import cluster

TABLES = """
create table facts as select g as id, g % 1000 as a, g % 777 as b, case when g % 11 > 0 then g % 500 end as c,
  g::int8 * 7 % 100 as wide, md5((g % 900)::text) as t, (g % 10000 / 100.0)::numeric(9,2) as n,
  date '2020-01-01' + g % 400 as d, case when g % 3 = 0 then repeat('long ', 1 + g % 40) end as note
  from generate_series(1, ROWS) g;
create table da as select g as a, g % 40 as x, 'a' || g as name, repeat('da', 1 + g % 30) as words,
  (g / 3.0)::numeric(12,4) as m from generate_series(0, 899) g;
create table db as select g as b, g % 30 as y, md5(g::text) as name, case when g % 5 > 0 then g * 2 end as v
  from generate_series(0, 699) g;
create table dc as select g % 400 as c, g as z, 'c' || g % 10 as name from generate_series(0, 799) g;
create table dt as select md5(g::text) as t, g as k, g::int2 as small from generate_series(0, 1200) g;
create table dx as select g as x, 'x' || g as name, g::int8 as big, 1 + g % 3 as w from generate_series(0, 45) g;
create table dn as select (g / 100.0)::numeric(9,2) as n, g as k from generate_series(0, 5000) g;
create table large(id int, long text);
alter table large alter long set storage external;
insert into large select g, repeat(md5(g::text), 400) from generate_series(1, 3000) g;
create table nan as select a, m from da;
insert into nan values (999, 'NaN');
vacuum analyze;
""".replace("\n  ", " ")

# Joins, what is computed of their rows, and the joins that lie in pipelines, where memory suffices.
QUERIES = [
    ("facts f join da using (a) join db using (b)", "count(*), sum(f.id), sum(x), sum(y), sum(v)", 2),
    ("facts f join da using (a) join dx using (x) join db using (b)", "count(*), sum(f.id), min(dx.name), sum(big)", 3),
    ("facts f join da using (a) join db using (b)", "da.name, count(*), max(db.name), sum(f.n), min(note)", 2),
    ("facts f join da using (a) join dx using (x)", "x, count(*), sum(m * f.n), max(words), avg(m)", 2),
    # Two rows for one, and rows without one.
    ("facts f join dc using (c) join da using (a)", "count(*), sum(z), max(dc.name), max(da.words)", 2),
    ("facts f left join dc using (c) left join da using (a)", "count(*), count(z), sum(f.id), max(words), sum(m)", 2),
    # A key that PostgreSQL computes, behind the first join.
    ("facts f left join da using (a) join dx on dx.x = coalesce(da.x, 3)", "count(*), sum(f.id), max(dx.name)", 1),
    ("facts f full join da using (a)", "count(*), count(f.id), count(x), sum(m), max(words)", 1),
    ("facts f right join dc using (c) join dx on x = z", "count(*), count(f.id), sum(z), max(dx.name)", 2),
    # Texts, numerics and numbers of other widths as keys.
    ("facts f join dt using (t) join da using (a)", "count(*), sum(k), max(t), max(words)", 2),
    ("facts f join da using (a) join dt on dt.t = f.t", "small, count(*), sum(m), min(f.t)", 2),
    ("facts f join da using (a) join dx on dx.big = da.x", "count(*), sum(big), max(dx.name)", 2),
    ("facts f join dn using (n) join dx on x = k", "count(*), sum(k), sum(n), max(dx.name)", 2),
    # Conditions behind a join, on its pairs, and rows that only have to exist.
    ("facts f join da using (a) join db using (b) where da.x + db.y > 20", "count(*), sum(f.id), sum(x)", None),
    ("facts f left join da on da.a = f.a and da.x < f.b join db using (b)", "count(*), count(x), sum(y)", 2),
    ("facts f join da using (a) join db using (b) where exists (select from dc where dc.c = f.c)",
     "count(*), sum(f.id), max(da.name)", 3),
    ("facts f join da using (a) where not exists (select from db where db.b = f.b)", "count(*), sum(f.id), max(words)",
     2),
    # Without a column; into a table; groups, and joins above them.
    ("facts f join da using (a) join db using (b)", "count(*)", 2),
    ("facts g join (facts f join da using (a) join db using (b)) using (id)", "count(*), max(words), sum(y)", None),
    # More than fits into little memory.
    ("facts f join large using (id) join da using (a)",
     "count(*), sum(x), min(long), max(long)", 2),
    ("(select x, count(*) as num, max(f.t) as t from facts f join da using (a) group by x) s join dx using (x)",
     "count(*), sum(num), max(s.t), max(dx.name)", None),
]
WHOLE = [
    ("select f.id, da.name, db.name, m from facts f join da using (a) join db using (b) order by m, f.id", 2),
    ("select d, words, sum(n) over (order by d, f.id) from facts f join da using (a) join dx using (x) "
     "order by d, f.id", None),
]
GROUPED = ("da.name", "x", "small")


def text_of(joins, shown):
    key = shown.split(",")[0]
    return f"select {shown} from {joins}" + (f" group by {key} order by {key}" if key in GROUPED else "")


def nodes_of(plan, node_type, found):
    """The nodes of that type with their rows, from the top."""
    if node_type in (plan["Node Type"], plan.get("Custom Plan Provider")):
        found.append(plan)
    for child in plan.get("Plans", []):
        nodes_of(child, node_type, found)
    return found


def explain(session, query, node_type):
    (result,) = session.results([f"explain (analyze, timing off, format json) {query}"])
    plan = json.loads("\n".join(line for (line,) in result.rows))[0]["Plan"]
    return nodes_of(plan, node_type, []), plan


def joins_in_pipelines(plan):
    return plan.get("Joins in Pipeline", 0) + sum(joins_in_pipelines(child) for child in plan.get("Plans", []))


def compare(session, query, piped):
    """Returns what is wrong."""
    session.execute("set quern.enabled = off")
    expected = session.results([query])[0]
    stock = [node["Actual Rows"] for node in explain(session, query, "Hash Join")[0]]
    session.execute("set quern.enabled = force")
    wrong = []
    for threads in (1, 3):
        for memory in ("256MB", "64kB"):
            session.execute(f"set quern.threads = {threads}", f"set work_mem = '{memory}'")
            found = session.results([query])[0]
            if found.failed or found.rows != expected.rows:
                rows = [str((result.rows or [])[:3])[:300] for result in (found, expected)]
                wrong.append(f"{threads} threads, {memory}: {found} {', not '.join(rows)}")
                continue
            joins, plan = explain(session, query, "QuernJoin")
            rows = [node["Actual Rows"] for node in joins]
            if rows != stock:
                wrong.append(f"{threads} threads, {memory}: joins have {rows} rows, not {stock}")
            if memory == "256MB" and piped is not None and joins_in_pipelines(plan) != piped:
                wrong.append(f"{threads} threads: {joins_in_pipelines(plan)} joins in pipelines, not {piped}")
    return wrong


def ends_early(pg, session):
    """A query is cancelled while the rows of one batch pass: each has thousands of matches."""
    session.execute("set quern.enabled = force", "set quern.threads = 1", "reset work_mem")
    query = ("select count(*), sum(f.id + g.id) from facts f join da using (a) join facts g on g.wide = f.wide "
             "join facts h on h.wide = f.wide")
    pid = session.value("select pg_backend_pid()")
    struck = []

    def cancel():
        time.sleep(0.3)
        with pg.session() as other:
            struck.append(time.monotonic())
            other.execute(f"select pg_cancel_backend({pid})")

    striker = threading.Thread(target=cancel)
    striker.start()
    result = session.results([query])[0]
    ms = (time.monotonic() - struck[0]) * 1000 if struck else -1
    striker.join()
    good = result.sqlstate == "57014"
    print("a cancelled query has ended" if good else f"a cancelled query: {result} after {ms:.0f} ms")
    return good


def gives_up(session):
    """Behind two joins, NaN has no exact form in a sum of numeric(12,4): PostgreSQL's node gives the result."""
    query = "select count(*), sum(m) from facts f join nan using (a) join db using (b)"
    session.execute("set quern.enabled = force", "set quern.threads = 1")
    rows = session.rows(query)
    ran = [node.get("Ran") for node in explain(session, query, "QuernAggregate")[0]]
    good = rows[0][1] == "NaN" and ran == ["PostgreSQL's own node"]
    print("NaN has been PostgreSQL's" if good else f"NaN: {rows}, {ran}")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--rows", type=int, default=60000)
    options = parser.parse_args()
    cluster.end_on_signals()
    settings = {"enable_mergejoin": "off", "enable_nestloop": "off", "max_parallel_workers_per_gather": "0",
                "join_collapse_limit": "1"}
    queries = [(text_of(joins, shown), piped) for joins, shown, piped in QUERIES] + WHOLE
    num_bad = 0
    with cluster.Cluster(settings, options.library) as pg, pg.session() as session:
        session.execute(*TABLES.replace("ROWS", str(options.rows)).strip().split(";\n"))
        for query, piped in queries:
            wrong = compare(session, query, piped)
            num_bad += bool(wrong)
            print("\n".join([query, *wrong]) if wrong else query)
        good = ends_early(pg, session) and gives_up(session)
    print(f"{len(queries)} queries, {num_bad} differ")
    sys.exit(num_bad > 0 or not good)


if __name__ == "__main__":
    main()
