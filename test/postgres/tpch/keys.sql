-- SPDX-License-Identifier: Apache-2.0
-- Primary keys, made after the rows are there. The index on a foreign key is for queries 17 and 20, whose subqueries
-- PostgreSQL runs once for each part: without it they read all line items each time, which takes hours at scale 1.
alter table region add primary key (r_regionkey);
alter table nation add primary key (n_nationkey);
alter table supplier add primary key (s_suppkey);
alter table customer add primary key (c_custkey);
alter table part add primary key (p_partkey);
alter table partsupp add primary key (ps_partkey, ps_suppkey);
alter table orders add primary key (o_orderkey);
alter table lineitem add primary key (l_orderkey, l_linenumber);
create index on lineitem (l_partkey, l_suppkey);
vacuum analyze;
