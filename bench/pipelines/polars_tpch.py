# SPDX-License-Identifier: Apache-2.0
"""Queries of TPC-H as lazy frames of Polars. Each function takes the tables as lazy frames by their names. The joins
stand in the order of the .quern texts, since Polars keeps the order that it is given; it pushes down projections and
filters itself.

Polars gives a product of decimals the digits of its wider factor and rounds away the others. A price with four digits
behind the point therefore has an exact product with one of two, and one with six an exact product with two of them.
"""
from datetime import date
from decimal import Decimal

import polars as pl
from polars import col

ONE = Decimal("1.00")


def price(scale=4):
    return col("l_extendedprice").cast(pl.Decimal(38, scale))


def discounted(scale=4):
    return price(scale) * (ONE - col("l_discount"))


def within(column, first, end):
    return col(column).is_between(first, end, closed="left")


def number(text):
    return Decimal(f"{text}.00")


def query_1(t):
    rows = t["lineitem"].filter(col("l_shipdate") <= date(1998, 9, 2))
    return rows.group_by("l_returnflag", "l_linestatus").agg(
        sum_qty=col("l_quantity").sum(), sum_base_price=col("l_extendedprice").sum(),
        sum_disc_price=discounted().sum(), sum_charge=(discounted(6) * (ONE + col("l_tax"))).sum(),
        avg_qty=col("l_quantity").mean(), avg_price=col("l_extendedprice").mean(), avg_disc=col("l_discount").mean(),
        count_order=pl.len())


def query_3(t):
    building = t["customer"].filter(col("c_mktsegment") == "BUILDING")
    orders = t["orders"].filter(col("o_orderdate") < date(1995, 3, 15)).join(
        building, left_on="o_custkey", right_on="c_custkey", how="semi")
    rows = t["lineitem"].filter(col("l_shipdate") > date(1995, 3, 15)).join(
        orders, left_on="l_orderkey", right_on="o_orderkey")
    groups = rows.group_by("l_orderkey", "o_orderdate", "o_shippriority").agg(revenue=discounted().sum())
    return groups.sort("revenue", "o_orderdate", descending=[True, False]).head(10)


def query_5(t):
    asia = t["nation"].join(t["region"].filter(col("r_name") == "ASIA"), left_on="n_regionkey", right_on="r_regionkey",
                            how="semi")
    customers = t["customer"].join(asia, left_on="c_nationkey", right_on="n_nationkey")
    orders = t["orders"].filter(within("o_orderdate", date(1994, 1, 1), date(1995, 1, 1))).join(
        customers, left_on="o_custkey", right_on="c_custkey")
    rows = t["lineitem"].join(orders, left_on="l_orderkey", right_on="o_orderkey").join(
        t["supplier"], left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
    return rows.group_by("n_name").agg(revenue=discounted().sum())


def query_6(t):
    rows = t["lineitem"].filter(
        within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)),
        col("l_discount").is_between(Decimal("0.05"), Decimal("0.07")), col("l_quantity") < number(24))
    return rows.select(revenue=(price() * col("l_discount")).sum())


def query_9(t):
    green = t["part"].filter(col("p_name").str.contains("green", literal=True))
    suppliers = t["supplier"].join(t["nation"], left_on="s_nationkey", right_on="n_nationkey")
    supplies = t["partsupp"].join(green, left_on="ps_partkey", right_on="p_partkey", how="semi").join(
        suppliers, left_on="ps_suppkey", right_on="s_suppkey")
    sold = t["lineitem"].join(supplies, left_on=["l_partkey", "l_suppkey"], right_on=["ps_partkey", "ps_suppkey"])
    rows = t["orders"].join(sold, left_on="o_orderkey", right_on="l_orderkey")
    profit = discounted() - col("ps_supplycost").cast(pl.Decimal(38, 4)) * col("l_quantity")
    return rows.group_by(nation=col("n_name"), o_year=col("o_orderdate").dt.year()).agg(sum_profit=profit.sum())


def query_10(t):
    orders = t["orders"].filter(within("o_orderdate", date(1993, 10, 1), date(1994, 1, 1)))
    buyers = t["customer"].join(t["nation"], left_on="c_nationkey", right_on="n_nationkey").join(
        orders, left_on="c_custkey", right_on="o_custkey")
    rows = t["lineitem"].filter(col("l_returnflag") == "R").join(buyers, left_on="l_orderkey", right_on="o_orderkey")
    groups = rows.group_by("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
    return groups.agg(revenue=discounted().sum()).sort("revenue", descending=True).head(20)


def query_12(t):
    late = t["lineitem"].filter(
        col("l_shipmode").is_in(["MAIL", "SHIP"]), col("l_commitdate") < col("l_receiptdate"),
        col("l_shipdate") < col("l_commitdate"), within("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1)))
    rows = t["orders"].join(late, left_on="o_orderkey", right_on="l_orderkey")
    high = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return rows.group_by("l_shipmode").agg(high_line_count=high.sum(), low_line_count=(~high).sum())


def query_14(t):
    sold = t["lineitem"].filter(within("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
    rows = t["part"].join(sold, left_on="p_partkey", right_on="l_partkey")
    promo = discounted().filter(col("p_type").str.starts_with("PROMO")).sum().cast(pl.Float64)
    return rows.select(promo_revenue=100.0 * promo / discounted().sum().cast(pl.Float64))


def query_18(t):
    large = t["lineitem"].group_by("l_orderkey").agg(quantity=col("l_quantity").sum()).filter(
        col("quantity") > number(300))
    rows = t["orders"].join(large, left_on="o_orderkey", right_on="l_orderkey").join(
        t["customer"], left_on="o_custkey", right_on="c_custkey")
    groups = rows.group_by("c_name", c_custkey=col("o_custkey"), o_orderkey=col("o_orderkey"),
                           o_orderdate=col("o_orderdate"), o_totalprice=col("o_totalprice"))
    return groups.agg(sum_qty=col("quantity").sum()).sort(
        "o_totalprice", "o_orderdate", descending=[True, False]).head(100)


def query_19(t):
    fits, sold = [], []
    for brand, size, least, kinds in (("Brand#12", 5, 1, ("CASE", "BOX", "PACK", "PKG")),
                                      ("Brand#23", 10, 10, ("BAG", "BOX", "PKG", "PACK")),
                                      ("Brand#34", 15, 20, ("CASE", "BOX", "PACK", "PKG"))):
        prefix = {"Brand#12": "SM", "Brand#23": "MED", "Brand#34": "LG"}[brand]
        is_brand = col("p_brand") == brand
        fits.append(is_brand & col("p_container").is_in([f"{prefix} {kind}" for kind in kinds])
                    & col("p_size").is_between(1, size))
        sold.append(is_brand & col("l_quantity").is_between(number(least), number(least + 10)))
    parts = t["part"].filter(fits[0] | fits[1] | fits[2])
    rows = t["lineitem"].filter(
        col("l_shipmode").is_in(["AIR", "AIR REG"]), col("l_shipinstruct") == "DELIVER IN PERSON",
        col("l_quantity").is_between(number(1), number(30)))
    rows = rows.join(parts, left_on="l_partkey", right_on="p_partkey").filter(sold[0] | sold[1] | sold[2])
    return rows.select(revenue=discounted().sum())


QUERIES = {f"tpch.{number}": globals()[f"query_{number}"] for number in (1, 3, 5, 6, 9, 10, 12, 14, 18, 19)}
