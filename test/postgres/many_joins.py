# SPDX-License-Identifier: Apache-2.0
"""Queries of many joins: many_joins.py --library QUERN.SO [--rows 20000]

The tables and the queries have the shapes of the Join Order Benchmark (Leis et al., How Good Are Query Optimizers,
Really?, 2015): a table of titles in the middle, tables of pairs around it whose columns are skewed and correlated, so
that estimates of rows are wrong, and small tables of names outside. The rows are drawn by hashes. Each query has the
same rows with quern.enabled = off and force, with the planner's own choice of joins, and with hash joins alone."""

import argparse
import sys

import cluster

# Draws a number below N from the row's number: uniform, and with many small ones.
EVEN = "(hashint8extended(g, {seed}) & 2147483647) % ({n})"
SKEWED = "(({n}) * power((hashint8extended(g, {seed}) & 2147483647) / 2147483648.0, 3))::int"


def even(n, seed):
    return EVEN.format(n=n, seed=seed)


def skewed(n, seed):
    return SKEWED.format(n=n, seed=seed)


TABLES = f"""
create table kind_type as select g as id, 'kind ' || g as kind from generate_series(0, 6) g;
create table info_type as select g as id, 'info ' || g as info from generate_series(0, 110) g;
create table role_type as select g as id, 'role ' || g as role from generate_series(0, 11) g;
create table company_type as select g as id, 'type ' || g as kind from generate_series(0, 3) g;
create table link_type as select g as id, 'link ' || g as link from generate_series(0, 17) g;
create table keyword as select g as id, 'word ' || g % 977 as keyword from generate_series(0, ROWS / 10) g;
create table company_name as select g as id, 'company ' || {skewed(500, 1)} as name,
  case when g % 11 = 0 then null else '[' || chr((97 + g % 7)::int) || ']' end as country_code
  from generate_series(0, ROWS / 10) g;
create table name as select g as id, md5((g % 5000)::text) as name, (array['m', 'f', null])[1 + g % 3] as gender
  from generate_series(0, ROWS) g;
create table title as select g as id, md5(g::text) as title, {skewed(7, 2)} as kind_id,
  case when g % 17 = 0 then null else 1900 + g % 120 end as production_year from generate_series(0, ROWS) g;
create table movie_companies as select g as id, {skewed('ROWS', 3)} as movie_id, {skewed('ROWS / 10', 4)} as company_id,
  {even(4, 5)} as company_type_id, case when g % 3 = 0 then null else 'note ' || {even(20, 6)} end as note
  from generate_series(0, ROWS * 2) g;
create table movie_info as select g as id, {skewed('ROWS', 7)} as movie_id, {skewed(111, 8)} as info_type_id,
  'value ' || {skewed(300, 9)} as info from generate_series(0, ROWS * 3) g;
create table movie_info_idx as select g as id, {even('ROWS', 10)} as movie_id, 99 + {even(3, 11)} as info_type_id,
  ({even(100, 12)} / 10.0)::numeric(4,1) as info from generate_series(0, ROWS) g;
create table movie_keyword as select g as id, {skewed('ROWS', 13)} as movie_id, {skewed('ROWS / 10', 14)} as keyword_id
  from generate_series(0, ROWS * 3) g;
create table cast_info as select g as id, {even('ROWS', 15)} as person_id, {skewed('ROWS', 16)} as movie_id,
  {skewed(12, 17)} as role_id, case when g % 4 = 0 then '(voice)' end as note from generate_series(0, ROWS * 4) g;
create table movie_link as select g as id, {even('ROWS', 18)} as movie_id, {even('ROWS', 19)} as linked_movie_id,
  {even(18, 20)} as link_type_id from generate_series(0, ROWS / 8) g;
create table person_info as select g as id, {even('ROWS', 21)} as person_id, {even(111, 22)} as info_type_id,
  'about ' || {even(50, 23)} as info from generate_series(0, ROWS) g;
alter table title add primary key (id);
create index on movie_companies (movie_id);
create index on cast_info (movie_id);
create index on movie_keyword (keyword_id);
analyze
"""

# By what the queries of the benchmark join.
QUERIES = {
    "companies": """
        select min(mc.note), min(t.title), min(t.production_year), count(*) from company_type ct, info_type it,
        movie_companies mc, movie_info_idx mi, title t where ct.kind = 'type 1' and it.info = 'info 100' and mc.note
        not like '%1%' and ct.id = mc.company_type_id and t.id = mc.movie_id and t.id = mi.movie_id and mc.movie_id
        = mi.movie_id and it.id = mi.info_type_id""",
    "keywords": """
        select min(t.title), count(*) from company_name cn, keyword k, movie_companies mc, movie_keyword mk, title t
        where cn.country_code = '[d]' and k.keyword like 'word 1%' and cn.id = mc.company_id and mc.movie_id = t.id
        and t.id = mk.movie_id and mk.keyword_id = k.id and mc.movie_id = mk.movie_id and t.id % 5 = 0""",
    "ratings": """
        select min(mi.info), min(t.title), sum(mi.info) from info_type it, keyword k, movie_info_idx mi,
        movie_keyword mk, title t where it.info = 'info 101' and k.keyword like '%5%' and mi.info > 5 and
        t.production_year > 1990 and t.id = mi.movie_id and t.id = mk.movie_id and mk.movie_id = mi.movie_id and
        k.id = mk.keyword_id and it.id = mi.info_type_id""",
    "actors": """
        select n.gender, count(*), min(n.name), max(t.title) from cast_info ci, keyword k, movie_keyword mk, name n,
        title t where k.keyword in ('word 3', 'word 8', 'word 21') and n.name like '%a1%' and k.id = mk.keyword_id
        and t.id = mk.movie_id and t.id = ci.movie_id and ci.movie_id = mk.movie_id and n.id = ci.person_id group by
        n.gender order by 1""",
    "links": """
        select lt.link, count(*), min(t1.title), min(t2.title) from movie_link ml, link_type lt, title t1, title t2,
        kind_type kt1, kind_type kt2 where lt.id = ml.link_type_id and t1.id = ml.movie_id and t2.id =
        ml.linked_movie_id and kt1.id = t1.kind_id and kt2.id = t2.kind_id and kt1.kind = kt2.kind group by lt.link
        order by lt.link""",
    "voices": """
        select rt.role, cn.country_code, count(*), count(distinct n.id) from cast_info ci, company_name cn,
        movie_companies mc, name n, role_type rt, title t where ci.note = '(voice)' and n.gender = 'f' and
        cn.country_code is not null and t.id = ci.movie_id and t.id = mc.movie_id and ci.movie_id = mc.movie_id and
        mc.company_id = cn.id and n.id = ci.person_id and rt.id = ci.role_id and t.production_year between 1950 and
        1960 group by rt.role, cn.country_code order by 1, 2""",
    "biographies": """
        select min(n.name), min(pi.info), count(*) from cast_info ci, info_type it, person_info pi, name n, title t,
        movie_link ml, link_type lt where it.info = 'info 7' and n.id = pi.person_id and it.id = pi.info_type_id and
        n.id = ci.person_id and t.id = ci.movie_id and ml.linked_movie_id = t.id and lt.id = ml.link_type_id""",
    "sequels": """
        select cn.name, lt.link, t.title from company_name cn, company_type ct, keyword k, link_type lt,
        movie_companies mc, movie_keyword mk, movie_link ml, title t where cn.country_code <> '[a]' and ct.kind =
        'type 2' and k.keyword like 'word 2%' and mc.note is null and lt.id = ml.link_type_id and ml.movie_id = t.id
        and t.id = mk.movie_id and mk.keyword_id = k.id and t.id = mc.movie_id and mc.company_type_id = ct.id and
        mc.company_id = cn.id order by 1, 2, 3 limit 500""",
    "kinds and infos": """
        select kt.kind, it.info, count(*), avg(t.production_year), max(mi.info) from kind_type kt, info_type it,
        movie_info mi, title t, movie_companies mc, company_name cn where kt.id = t.kind_id and mi.movie_id = t.id
        and it.id = mi.info_type_id and mc.movie_id = t.id and cn.id = mc.company_id and cn.country_code = '[b]' and
        mi.info like 'value 1%' and t.production_year > 1980 group by kt.kind, it.info order by 3 desc, 1, 2 limit
        40""",
    "everything": """
        select count(*), min(cn.name), min(n.name), min(t.title), max(k.keyword) from cast_info ci, company_name cn,
        company_type ct, info_type it1, info_type it2, keyword k, kind_type kt, movie_companies mc, movie_info mi,
        movie_info_idx mx, movie_keyword mk, name n, role_type rt, title t where it1.info = 'info 3' and it2.info =
        'info 99' and kt.kind = 'kind 1' and n.gender = 'm' and t.id = mi.movie_id and t.id = mx.movie_id and t.id =
        mk.movie_id and t.id = ci.movie_id and t.id = mc.movie_id and k.id = mk.keyword_id and it1.id =
        mi.info_type_id and it2.id = mx.info_type_id and kt.id = t.kind_id and n.id = ci.person_id and rt.id =
        ci.role_id and cn.id = mc.company_id and ct.id = mc.company_type_id and mx.info < 4 and t.production_year >
        1970""",
    "without a company": """
        select t.kind_id, count(*), count(mk.id) from title t left join movie_keyword mk on mk.movie_id = t.id left
        join keyword k on k.id = mk.keyword_id and k.id < 300 where not exists (select from movie_companies mc join
        company_name cn on cn.id = mc.company_id where mc.movie_id = t.id and cn.id < 100) and exists (select from
        movie_info mi where mi.movie_id = t.id) group by t.kind_id order by 1""",
    "full": """
        select count(*), count(a.movie_id), count(b.movie_id), sum(a.c), sum(b.c) from (select movie_id, count(*) c
        from cast_info group by movie_id) a full join (select movie_id, count(*) c from movie_info where
        info_type_id < 9 group by movie_id) b using (movie_id)""",
}
SETTINGS = {"join_collapse_limit": "14", "from_collapse_limit": "14", "max_parallel_workers_per_gather": "0",
            "work_mem": "4MB"}
ALONE = ["set enable_nestloop = off", "set enable_mergejoin = off"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--rows", type=int, default=20000, help="of titles")
    options = parser.parse_args()
    cluster.end_on_signals()
    good = 0
    with cluster.Cluster(SETTINGS, options.library) as pg, pg.session() as session:
        session.execute(*TABLES.replace("ROWS", str(options.rows)).strip().split(";\n"))
        for name, query in QUERIES.items():
            found, nodes = [], {}
            for what, joins in (("own", ["reset enable_nestloop", "reset enable_mergejoin"]), ("hash", ALONE)):
                session.execute(*joins)
                for mode in ("off", "force"):
                    session.execute(f"set quern.enabled = {mode}")
                    found.append(session.rows(query))
                nodes[what] = cluster.node_types(session.rows(f"explain {query}"))
            same = all(rows == found[0] for rows in found)
            good += same
            joins = ", ".join(f"{nodes[what]['QuernJoin']} joins" for what in nodes)
            print(f"{name}: {len(found[0])} rows, {joins}{'' if same else ': DIFFERENT'}")
            if not same:
                modes = ("off", "force", "off, hash joins", "force, hash joins")
                print("\n".join(f"  {mode}: {rows[:5]}" for mode, rows in zip(modes, found)))
    print(f"{good} of {len(QUERIES)} queries have the same answers")
    sys.exit(good < len(QUERIES))


if __name__ == "__main__":
    main()
