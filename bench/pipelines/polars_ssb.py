# SPDX-License-Identifier: Apache-2.0
"""Queries of the Star Schema Benchmark as lazy frames of Polars. Each function takes the tables as lazy frames by their
names; joins stand in the order of the .quern texts. Polars adds i32 up in an i32, so that what is summed becomes an i64
first.
"""
import polars as pl
from polars import col


def either(column, *values):
    """A comparison each: faster than is_in for two."""
    first, second = values
    return (col(column) == first) | (col(column) == second)


def days(rows, t, *conditions, how="inner"):
    return rows.join(t["date"].filter(*conditions), left_on="lo_orderdate", right_on="d_datekey", how=how)


def parts(rows, t, condition, how="inner"):
    return rows.join(t["part"].filter(condition), left_on="lo_partkey", right_on="p_partkey", how=how)


def suppliers(rows, t, condition, how="inner"):
    return rows.join(t["supplier"].filter(condition), left_on="lo_suppkey", right_on="s_suppkey", how=how)


def customers(rows, t, condition, how="inner"):
    return rows.join(t["customer"].filter(condition), left_on="lo_custkey", right_on="c_custkey", how=how)


def total(column):
    return col(column).cast(pl.Int64).sum()


def flight_1(t, discounts, quantities, *conditions):
    rows = t["lineorder"].filter(col("lo_discount").is_between(*discounts), quantities)
    product = col("lo_extendedprice").cast(pl.Int64) * col("lo_discount")
    return days(rows, t, *conditions, how="semi").select(revenue=product.sum())


def query_1_1(t):
    return flight_1(t, (1, 3), col("lo_quantity") < 25, col("d_year") == 1993)


def query_1_2(t):
    return flight_1(t, (4, 6), col("lo_quantity").is_between(26, 35), col("d_yearmonthnum") == 199401)


def query_1_3(t):
    return flight_1(t, (5, 7), col("lo_quantity").is_between(26, 35), col("d_weeknuminyear") == 6,
                    col("d_year") == 1994)


def flight_2(rows, t):
    return days(rows, t).group_by("d_year", "p_brand1").agg(revenue=total("lo_revenue"))


def query_2_1(t):
    rows = parts(t["lineorder"], t, col("p_category") == "MFGR#12")
    return flight_2(suppliers(rows, t, col("s_region") == "AMERICA", "semi"), t)


def query_2_2(t):
    rows = suppliers(t["lineorder"], t, col("s_region") == "ASIA", "semi")
    return flight_2(parts(rows, t, col("p_brand1").is_between(pl.lit("MFGR#2221"), pl.lit("MFGR#2228"))), t)


def query_2_3(t):
    rows = parts(t["lineorder"], t, col("p_brand1") == "MFGR#2221")
    return flight_2(suppliers(rows, t, col("s_region") == "EUROPE", "semi"), t)


def flight_3(t, of_supplier, of_customer, keys):
    rows = customers(suppliers(t["lineorder"], t, of_supplier), t, of_customer)
    rows = days(rows, t, col("d_year") >= 1992, col("d_year") <= 1997)
    return rows.group_by(keys).agg(revenue=total("lo_revenue"))


CITIES = ("UNITED KI1", "UNITED KI5")


def query_3_1(t):
    return flight_3(t, col("s_region") == "ASIA", col("c_region") == "ASIA", ["c_nation", "s_nation", "d_year"])


def query_3_2(t):
    return flight_3(t, col("s_nation") == "UNITED STATES", col("c_nation") == "UNITED STATES",
                    ["c_city", "s_city", "d_year"])


def query_3_3(t):
    return flight_3(t, either("s_city", *CITIES), either("c_city", *CITIES), ["c_city", "s_city", "d_year"])


def query_3_4(t):
    rows = suppliers(days(t["lineorder"], t, col("d_yearmonth") == "Dec1997"), t, either("s_city", *CITIES))
    rows = customers(rows, t, either("c_city", *CITIES))
    return rows.group_by("c_city", "s_city", "d_year").agg(revenue=total("lo_revenue"))


def profit():
    return (col("lo_revenue") - col("lo_supplycost")).cast(pl.Int64).sum()


def query_4_1(t):
    rows = suppliers(t["lineorder"], t, col("s_region") == "AMERICA", "semi")
    rows = customers(rows, t, col("c_region") == "AMERICA")
    rows = days(parts(rows, t, either("p_mfgr", "MFGR#1", "MFGR#2"), "semi"), t)
    return rows.group_by("d_year", "c_nation").agg(profit=profit())


def query_4_2(t):
    rows = suppliers(t["lineorder"], t, col("s_region") == "AMERICA")
    rows = customers(rows, t, col("c_region") == "AMERICA", "semi")
    rows = days(parts(rows, t, either("p_mfgr", "MFGR#1", "MFGR#2")), t, either("d_year", 1997, 1998))
    return rows.group_by("d_year", "s_nation", "p_category").agg(profit=profit())


def query_4_3(t):
    rows = parts(suppliers(t["lineorder"], t, col("s_nation") == "UNITED STATES"), t, col("p_category") == "MFGR#14")
    rows = customers(rows, t, col("c_region") == "AMERICA", "semi")
    rows = days(rows, t, either("d_year", 1997, 1998))
    return rows.group_by("d_year", "s_city", "p_brand1").agg(profit=profit())


QUERIES = {f"ssb.{name.removeprefix('query_')}": query for name, query in list(globals().items())
           if name.startswith("query_")}
