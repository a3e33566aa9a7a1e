# SPDX-License-Identifier: Apache-2.0
"""Five TPC-H queries in three forms: as calls of quern on Polars frames (tpch.py runs them), as Polars' lazy frames, as
SQL.

In the first two forms, Polars computes expressions such as l_extendedprice * (1 - l_discount); quern filters, joins,
aggregates and sorts. All three read the same columns, with prices as f64.
"""

import datetime

import polars as pl

import quern

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "supplier")
REVENUE = pl.col("l_extendedprice") * (1 - pl.col("l_discount"))
Q1_SUMS = (
    "sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price, "
    "sum(disc_price) as sum_disc_price, sum(charge) as sum_charge"
)
Q1_AVERAGES = (
    "avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, "
    "count(*) as count_order"
)


# ---- quern ----


def q1(t, **options):
    items = t["lineitem"].with_columns(REVENUE.alias("disc_price"), (REVENUE * (1 + pl.col("l_tax"))).alias("charge"))
    groups = quern.aggregate(
        items,
        by="l_returnflag, l_linestatus",
        aggs=f"{Q1_SUMS}, {Q1_AVERAGES}",
        where="l_shipdate <= date '1998-09-02'",
        **options,
    )
    return quern.sort(groups, by="l_returnflag, l_linestatus", **options)


def q3(t, **options):
    orders = quern.join(
        t["orders"], t["customer"], on="o_custkey = c_custkey", how="semi",
        probe_where="o_orderdate < date '1995-03-15'", build_where="c_mktsegment = 'BUILDING'",
        select="o_orderkey, o_orderdate, o_shippriority", **options
    )  # fmt: skip
    items = quern.join(
        t["lineitem"], orders, on="l_orderkey = o_orderkey", probe_where="l_shipdate > date '1995-03-15'",
        select="l_orderkey, l_extendedprice, l_discount, o_orderdate, o_shippriority", **options
    )  # fmt: skip
    revenues = items.to_polars().with_columns(revenue=REVENUE)
    groups = quern.aggregate(
        revenues, by="l_orderkey, o_orderdate, o_shippriority", aggs="sum(revenue) as revenue", **options
    )
    chosen = "l_orderkey, revenue, o_orderdate, o_shippriority"
    return quern.sort(groups, by="revenue desc, o_orderdate", limit=10, select=chosen, **options)


def q9(t, **options):
    nations = quern.join(
        t["supplier"], t["nation"], on="s_nationkey = n_nationkey", select="s_suppkey, n_name", **options
    )
    costs = quern.join(
        t["partsupp"], t["part"], on="ps_partkey = p_partkey", how="semi", build_where="p_name like '%green%'",
        select="ps_partkey, ps_suppkey, ps_supplycost", **options
    )  # fmt: skip
    costs = quern.join(
        costs, nations, on="ps_suppkey = s_suppkey", select="ps_partkey, ps_suppkey, ps_supplycost, n_name", **options
    )
    items = quern.join(
        t["lineitem"], costs, on="l_partkey = ps_partkey, l_suppkey = ps_suppkey",
        select="l_orderkey, l_quantity, l_extendedprice, l_discount, ps_supplycost, n_name", **options
    ).to_polars()  # fmt: skip
    amount = REVENUE - pl.col("ps_supplycost") * pl.col("l_quantity")
    amounts = items.select("l_orderkey", nation="n_name", amount=amount)
    dates = quern.join(
        amounts, t["orders"], on="l_orderkey = o_orderkey", select="nation, o_orderdate, amount", **options
    ).to_polars()
    profit = dates.select("nation", o_year=pl.col("o_orderdate").dt.year(), amount="amount")
    groups = quern.aggregate(profit, by="nation, o_year", aggs="sum(amount) as sum_profit", **options)
    return quern.sort(groups, by="nation, o_year desc", **options)


def q13(t, **options):
    joined = quern.join(
        t["orders"], t["customer"], on="o_custkey = c_custkey", how="right",
        probe_where="o_comment not like '%special%requests%'", select="c_custkey, o_orderkey", **options
    )  # fmt: skip
    counts = quern.aggregate(joined, by="c_custkey", aggs="count(o_orderkey) as c_count", **options)
    groups = quern.aggregate(counts, by="c_count", aggs="count(*) as custdist", **options)
    return quern.sort(groups, by="custdist desc, c_count desc", **options)


def q18(t, **options):
    sums = quern.aggregate(t["lineitem"], by="l_orderkey", aggs="sum(l_quantity) as sum_qty", **options)
    chosen = "o_custkey, o_orderkey, o_orderdate, o_totalprice, sum_qty"
    orders = quern.join(
        t["orders"], sums, on="o_orderkey = l_orderkey", build_where="sum_qty > 300", select=chosen, **options
    )
    chosen = "c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum_qty"
    joined = quern.join(t["customer"], orders, on="c_custkey = o_custkey", select=chosen, **options)
    return quern.sort(joined, by="o_totalprice desc, o_orderdate", limit=100, **options)


QUERN = {"1": q1, "3": q3, "9": q9, "13": q13, "18": q18}


# ---- Polars ----


def polars_q1(t):
    col = pl.col
    items = t["lineitem"].lazy().filter(col("l_shipdate") <= datetime.date(1998, 9, 2))
    return items.group_by("l_returnflag", "l_linestatus").agg(
        sum_qty=col("l_quantity").sum(), sum_base_price=col("l_extendedprice").sum(), sum_disc_price=REVENUE.sum(),
        sum_charge=(REVENUE * (1 + col("l_tax"))).sum(), avg_qty=col("l_quantity").mean(),
        avg_price=col("l_extendedprice").mean(), avg_disc=col("l_discount").mean(), count_order=pl.len(),
    ).sort("l_returnflag", "l_linestatus")  # fmt: skip


def polars_q3(t):
    col, day = pl.col, datetime.date(1995, 3, 15)
    orders = t["orders"].lazy().filter(col("o_orderdate") < day)
    customers = t["customer"].lazy().filter(col("c_mktsegment") == "BUILDING")
    items = t["lineitem"].lazy().filter(col("l_shipdate") > day)
    joined = items.join(
        orders.join(customers, left_on="o_custkey", right_on="c_custkey"), left_on="l_orderkey", right_on="o_orderkey"
    )
    groups = joined.group_by("l_orderkey", "o_orderdate", "o_shippriority").agg(revenue=REVENUE.sum())
    groups = groups.select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
    return groups.sort("revenue", "o_orderdate", descending=[True, False]).head(10)


def polars_q9(t):
    col = pl.col
    parts = t["part"].lazy().filter(col("p_name").str.contains("green", literal=True))
    items = t["lineitem"].lazy().join(parts, left_on="l_partkey", right_on="p_partkey", how="semi")
    items = items.join(t["partsupp"].lazy(), left_on=["l_suppkey", "l_partkey"], right_on=["ps_suppkey", "ps_partkey"])
    items = items.join(t["supplier"].lazy(), left_on="l_suppkey", right_on="s_suppkey")
    items = items.join(t["orders"].lazy(), left_on="l_orderkey", right_on="o_orderkey")
    items = items.join(t["nation"].lazy(), left_on="s_nationkey", right_on="n_nationkey")
    amount = REVENUE - col("ps_supplycost") * col("l_quantity")
    groups = items.group_by(nation="n_name", o_year=col("o_orderdate").dt.year()).agg(sum_profit=amount.sum())
    return groups.sort("nation", "o_year", descending=[False, True])


def polars_q13(t):
    col = pl.col
    orders = t["orders"].lazy().filter(~col("o_comment").str.contains("special.*requests"))
    joined = t["customer"].lazy().join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
    counts = joined.group_by("c_custkey").agg(c_count=col("o_orderkey").count())
    return counts.group_by("c_count").agg(custdist=pl.len()).sort("custdist", "c_count", descending=True)


def polars_q18(t):
    col = pl.col
    large = (
        t["lineitem"].lazy().group_by("l_orderkey").agg(sum_qty=col("l_quantity").sum()).filter(col("sum_qty") > 300)
    )
    orders = t["orders"].lazy().join(large, left_on="o_orderkey", right_on="l_orderkey")
    joined = orders.join(t["customer"].lazy(), left_on="o_custkey", right_on="c_custkey")
    joined = joined.select(
        "c_name", col("o_custkey").alias("c_custkey"), "o_orderkey", "o_orderdate", "o_totalprice", "sum_qty"
    )
    return joined.sort("o_totalprice", "o_orderdate", descending=[True, False]).head(100)


POLARS = {"1": polars_q1, "3": polars_q3, "9": polars_q9, "13": polars_q13, "18": polars_q18}


# ---- DuckDB ----

SQL = {
    "1": """
        select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
               sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
               avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
        from lineitem where l_shipdate <= date '1998-09-02' group by all order by l_returnflag, l_linestatus""",
    "3": """
        select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
          and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
    "9": """
        select n_name as nation, year(o_orderdate) as o_year,
               sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) as sum_profit
        from part, supplier, lineitem, partsupp, orders, nation
        where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
          and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%'
        group by all order by nation, o_year desc""",
    "13": """
        select c_count, count(*) as custdist
        from (select c_custkey, count(o_orderkey) as c_count
              from customer left join orders on c_custkey = o_custkey and o_comment not like '%special%requests%'
              group by c_custkey)
        group by c_count order by custdist desc, c_count desc""",
    "18": """
        select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as sum_qty
        from customer, orders, lineitem
        where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300)
          and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by all order by o_totalprice desc, o_orderdate limit 100""",
}
