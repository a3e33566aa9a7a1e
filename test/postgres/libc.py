# SPDX-License-Identifier: Apache-2.0
"""Prints which nodes run under the locale de_DE.UTF-8 of the C library: libc.py QUERN.SO; LOCPATH has that locale."""

import sys

import cluster

QUERIES = [
    ("order by t", "select t from a order by t"),
    ("order by t collate \"C\"", "select t from a order by t collate \"C\""),
    ("group by t", "select t, count(*) from a group by t"),
    ("join on t", "select count(*) from a join a b using (t)"),
    ("max(t)", "select max(t) from a"),
]

cluster.end_on_signals()
settings = {"enable_mergejoin": "off", "enable_nestloop": "off"}
with cluster.Cluster(settings, sys.argv[1], locale="de_DE.UTF-8") as pg, pg.session() as session:
    session.execute("create table a(t text)", "insert into a values ('Äb'), ('ab'), ('Ab'), ('Ax')", "analyze a")
    results = {}
    for mode in ("off", "force"):
        session.execute(f"set quern.enabled = {mode}")
        results[mode] = [session.rows(query) for _, query in QUERIES]
        plans = [session.rows(f"explain {query}") for _, query in QUERIES]
    print("order:", *(row[0] for row in results["force"][0]))
    for (name, _), off, force, plan in zip(QUERIES, results["off"], results["force"], plans):
        nodes = cluster.node_types(plan)
        shown = ", ".join(f"{node} {nodes[node]}" for node in sorted(nodes) if node not in ("Seq Scan", "Hash"))
        print(f"{name}: {shown}{'' if sorted(off) == sorted(force) else ' DIFFERENT'}")
