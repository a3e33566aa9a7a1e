# SPDX-License-Identifier: Apache-2.0
"""Joins that begin as nested loops: loops.py --library QUERN.SO

Each query has the same rows as without Quern, whether all outer rows are looked up in the index, some, or none. And a
loop whose outer rows are far more than the planner expects turns to the hash join."""

import argparse
import re
import sys

import cluster

TABLES = """
create table inner_side(k int, k8 int8, t text, c char(6), v numeric(9,2), d date, wide text);
insert into inner_side select case when g % 50 > 0 then g / 3 end, g / 3, 'key ' || g / 3, 'c' || g / 3, g / 7.0,
  date '2000-01-01' + g / 3, repeat('w', g % 60) from generate_series(1, 9000) g;
create index on inner_side(k); create index on inner_side(k8, d); create index on inner_side(t);
create index on inner_side(c);
create table outer_side(id int, k int, k8 int8, t text, c char(6), v numeric(9,2), d date, note text);
insert into outer_side select g, case when g % 40 > 0 then g * 7 % 3600 end, g * 7 % 3600, 'key ' || g * 7 % 3600,
  'c' || g * 7 % 3600, g / 3.0, date '2000-01-01' + g * 7 % 3600, case when g % 9 > 0 then 'note ' || g end
  from generate_series(1, 2500) g;
create table few(n int, x int); insert into few values (1, 10), (2, 100);
create index on outer_side(id);
create table kinds(k int, k8 int8, name text, c char(6)); create index on kinds(k); create index on kinds(k8, name);
insert into kinds select nullif(g, 5), g, 'kind ' || g, 'c' || g from generate_series(1, 40) g;
insert into kinds select g, g, 'another ' || g, 'c' || g from generate_series(1, 9) g;
create table part_side as select * from inner_side; create index on part_side(k) where v > 300;
-- The planner takes both conditions for independent, and expects a hundredth of the rows that come.
create table skewed(k int, a int, b int, pad text);
insert into skewed select g, g % 100, g % 100, repeat('p', 20) from generate_series(1, 400000) g;
vacuum analyze;
""".replace("\n  ", " ")

# Join, condition, what is computed of the rows.
JOINS = [
    ("{o} o join inner_side i on o.k = i.k", "count(*), sum(o.id), sum(i.v), max(i.wide), min(o.note)"),
    ("{o} o join inner_side i on o.k = i.k and o.v < i.v + 1000", "count(*), sum(o.id * i.v)"),
    ("{o} o join inner_side i on o.k8 = i.k8 and o.d >= i.d", "count(*), sum(o.id), max(i.d)"),
    ("{o} o join inner_side i on o.k = i.k8 and i.d = o.d and i.v > 5", "count(*), sum(o.id), min(i.t)"),
    ("{o} o join inner_side i on i.t = o.t where i.wide <> o.note", "count(*), sum(i.v), max(i.c)"),
    ("{o} o join inner_side i on i.c = o.c and i.k is not null", "count(*), sum(o.id), max(i.c), max(o.c)"),
    ("{o} o left join inner_side i on o.k = i.k and i.v < 300",
     "count(*), count(i.k), sum(i.v), sum(o.id), max(i.wide)"),
    ("{o} o left join inner_side i on o.k = i.k and i.k8 > o.id", "count(*), count(i.k8), sum(o.id)"),
    ("{o} o left join inner_side i on o.k = i.k where i.k is null or i.v > 40", "count(*), count(i.k), sum(o.id)"),
    ("{o} o where exists (select from inner_side i where i.k = o.k and i.v > 50)", "count(*), sum(o.id), max(o.note)"),
    ("{o} o where exists (select from inner_side i where i.k8 = o.k8 and i.k < o.id)", "count(*), sum(o.id)"),
    ("{o} o where not exists (select from inner_side i where i.k = o.k)", "count(*), sum(o.id), max(o.note)"),
    ("{o} o where not exists (select from inner_side i where i.k8 = o.k8 and i.k <> o.id)", "count(*), sum(o.id)"),
    ("{o} o join inner_side i on o.k = i.k join inner_side j on i.k8 = j.k8", "count(*), sum(j.v), max(o.note)"),
    ("{o} o join inner_side i on o.k8 = i.k8 left join inner_side j on i.t = j.t and j.v < o.v",
     "count(*), count(j.v), sum(i.v), max(j.wide)"),
    ("(select k, count(*) as n from {o} s group by k) o join inner_side i on o.k = i.k", "count(*), sum(n), sum(i.v)"),
]
# The outer side: a table; a join of ours, whose batches the hash join takes; no row.
OUTER = ["outer_side", "(select o.* from outer_side o join few on few.n = o.id % 3)",
         "(select * from outer_side where id % 2 < 0)"]
ROWS = (0, 1, 700, 10000000)
WHOLE = [
    # Rows in an order, through a sort; groups.
    "select o.id, i.v, i.wide from outer_side o join inner_side i on o.k = i.k order by i.v, o.id, i.wide",
    "select i.k8, sum(o.id), count(*) from outer_side o left join inner_side i on o.k = i.k group by 1 order by 1",
    # Conditions that are not to be decided for rows that the index does not find.
    "select count(*), sum(i.v) from outer_side o join inner_side i on o.k = i.k and 10 / i.k8 >= 0 where o.k > 0",
    "select count(*) from outer_side o join inner_side i on o.k = i.k and (select count(*) from few where n < i.k) > 0",
    "select count(*) from outer_side o join inner_side i on o.k = i.k and o.id = 10 / i.k8 where o.k > 0",
    "select count(*) from outer_side o join inner_side i on o.k = i.k and i.k8 + 0 = 10 / (o.id - 40)",
    "select count(*), sum(i.v) from outer_side o join part_side i on o.k = i.k and i.v > 300",
    "select sum(s), count(*) from outer_side o left join lateral (select coalesce(i.k8, 0) + o.id as s "
    "from inner_side i where i.k = o.k) l on true",
    "select max(s), count(*) from outer_side o left join lateral (select coalesce(i.t, '') || o.note as s "
    "from inner_side i where i.k = o.k) l on true",
    # An aggregate whose result is in the order of the rows; texts of groups, between two batches.
    "select array_agg(id) from (select o.id from outer_side o join inner_side i on o.k = i.k order by o.id) s",
    "select count(*), sum(i.v) from (select id as k, min(t) as t from outer_side group by id) s "
    "join inner_side i on i.k = case when s.t = 'key 7' then 1 else s.k end",
    # Run again for each row of few; with a parameter, and without.
    "select n, m.* from few, lateral (select count(*), sum(i.v) from outer_side o join inner_side i on o.k = i.k "
    "where o.id % 200 < x offset 0) m order by n",
    "select n, (select sum(i.v) from outer_side o join inner_side i on o.k = i.k + n * 0 where o.id > x) from few",
]
# Loops over a table of few rows: conditions, what is computed.
SMALL = [
    ("outer_side o join kinds i on i.k = o.id % 50", "count(*), sum(o.id), max(i.name)"),
    ("outer_side o join kinds i on i.k8 = o.k8 % 50 and i.name like 'kind%'", "count(*), sum(o.id), min(i.c)"),
    ("outer_side o join kinds i on i.k = o.id % 50 and i.k8 < o.k", "count(*), sum(o.id * i.k8)"),
    ("outer_side o left join kinds i on i.k = o.id % 50 and i.k8 < 20", "count(*), count(i.k), sum(o.id)"),
    ("outer_side o left join kinds i on i.k8 = o.id where i.name is null or i.c > 'c2'", "count(*), sum(o.id)"),
    ("outer_side o where exists (select from kinds i where i.k = o.id % 50)", "count(*), sum(o.id)"),
    ("outer_side o where exists (select from kinds i where i.k = o.id % 50 and i.k8 <> o.k8)", "count(*), sum(o.id)"),
    ("outer_side o where not exists (select from kinds i where i.k = o.id % 50)", "count(*), sum(o.id)"),
    ("outer_side o join kinds i on i.k = o.id % 50 join kinds j on j.k8 = i.k8", "i.c, count(*), max(j.name)"),
    ("outer_side o join kinds i on i.k = o.id % 50 and 10 / i.k8 >= 0", "count(*), sum(i.k8)"),
]


def small(session):
    """Returns the numbers of loops over a small table that are hash joins of ours, and of queries that differ."""
    num_joins = num_bad = 0
    session.execute("reset quern.loop_rows")
    for joins, shown in SMALL:
        query = f"select {shown} from {joins}" + (" group by i.c order by i.c" if shown[0] == "i" else "")
        session.execute("set quern.enabled = off")
        expected = session.results([query])[0]
        session.execute("set quern.enabled = on")
        found = session.results([query])[0]
        plan = session.rows(f"explain {query}")
        num_joins += cluster.node_types(plan)["QuernJoin"]
        if found.failed or found.rows != expected.rows or any("Outer Rows:" in line for (line,) in plan):
            num_bad += 1
            print(f"{query}\n  {found} {found.rows}\n  off: {expected} {expected.rows}")
    return num_joins, num_bad


def queries():
    for join, shown in JOINS:
        for outer in OUTER:
            yield f"select {shown} from {join.format(o=outer)}"
    yield from WHOLE


def compare(session):
    """Returns the numbers of queries, of those with a loop of ours, and of those that differ."""
    num_loops = num_bad = num = 0
    for query in queries():
        session.execute("set quern.enabled = off")
        expected = session.results([query])[0]
        session.execute("set quern.enabled = on")
        num += 1
        for rows in ROWS:
            session.execute(f"set quern.loop_rows = {rows}")
            plan = session.rows(f"explain {query}")
            found = session.results([query])[0]
            num_loops += rows == ROWS[-1] and any("Outer Rows:" in line for (line,) in plan)
            if expected.failed or found.failed or found.rows != expected.rows:
                num_bad += 1
                print(f"{query}\n  loop_rows {rows}: {found} {found.rows[:3] if found.rows else ''}\n"
                      f"  off: {expected} {expected.rows[:3] if expected.rows else ''}")
    return num, num_loops, num_bad


def turns(session):
    """Whether a loop of 4,000 rows where 40 are expected turns to the hash join."""
    query = ("select count(*), sum(i.v) from skewed s join inner_side i on s.k % 10000 = i.k "
             "where s.a = 7 and s.b = 7")
    session.execute("set quern.enabled = off")
    expected = session.results([query])[0].rows
    session.execute("set quern.enabled = on", "reset quern.loop_rows")
    plan = "\n".join(line for (line,) in session.rows(f"explain (analyze, timing off) {query}"))
    looked_up = re.search(r"Outer Rows Looked Up: (\d+)", plan)
    rows = session.results([query])[0].rows
    good = looked_up is not None and int(looked_up[1]) < 4000 and "Kernel:" in plan and rows == expected
    print("the loop has turned" if good else f"the loop has not turned: {rows}, {expected}\n{plan}")
    return good


def copies(session):
    """Runs a prepared query of many joins, whose plan is copied: with each node more than once, it would not end."""
    joins = " ".join(f"join few f{i} using (n)" for i in range(1, 18))
    session.execute("set quern.enabled = force", "set enable_hashjoin = on", "set enable_nestloop = off",
                    "set join_collapse_limit = 1", "set plan_cache_mode = force_generic_plan",
                    f"prepare q as select count(*) from few f0 {joins}")
    found = [session.rows("execute q") for _ in range(2)]
    print("the prepared query has run" if found == [[("2",)]] * 2 else f"the prepared query: {found}")
    return found == [[("2",)]] * 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    options = parser.parse_args()
    cluster.end_on_signals()
    settings = {"enable_mergejoin": "off", "enable_hashjoin": "off", "max_parallel_workers_per_gather": "0",
                "random_page_cost": "1", "quern.min_rows": "100"}
    with cluster.Cluster(settings, options.library) as pg, pg.session() as session:
        session.execute(*TABLES.strip().split(";\n"))
        num, num_loops, num_bad = compare(session)
        num_small, num_small_bad = small(session)
        print(f"{num_small} loops over a small table are hash joins, {num_small_bad} queries differ")
        good = turns(session) and copies(session)
    print(f"{num} queries, {num_loops} begin as nested loops, {num_bad} differ")
    sys.exit(num_bad + num_small_bad > 0 or not good)


if __name__ == "__main__":
    main()
