# SPDX-License-Identifier: Apache-2.0
"""What tasks of Spark run for spark_tpch.py: functions for mapInArrow and applyInArrow.

Spark sends this module to its Python workers (addPyFile). A worker imports it once, so that what the module keeps
serves all tasks of the worker. Variables of a program's main file do not: each task gets copies of its own.
"""

import functools

import pyarrow as pa
import pyarrow.parquet as pq

import quern

# Of each task. Spark runs one on each core, so that a task has one thread and its share of the executor's memory.
THREADS = 1
MEMORY = "1G"

ITEMS_1 = ("l_returnflag", "l_linestatus", "l_shipdate", "l_quantity", "l_extendedprice", "l_discount", "l_tax")
SUMS_1 = {
    "qty": "sum(l_quantity)",
    "price": "sum(l_extendedprice)",
    "disc_price": "sum(l_extendedprice * (1 - l_discount))",
    "charge": "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax))",
    "disc": "sum(l_discount)",
    "n": "count(*)",
}
# The order and the types of the columns that q1 gives: Spark finds them by their places.
SCHEMA_1 = """l_returnflag string, l_linestatus string, qty decimal(38,2), price decimal(38,2),
    disc_price decimal(38,4), charge decimal(38,6), disc decimal(38,2), n long"""

ITEMS_3 = ("l_orderkey", "l_shipdate", "l_extendedprice", "l_discount")
ORDERS_3 = ("o_orderkey", "o_orderdate", "o_shippriority")
KEYS_3 = "l_orderkey, o_orderdate, o_shippriority"
SCHEMA_3 = "l_orderkey long, o_orderdate date, o_shippriority int, revenue decimal(38,4)"

COLUMNS_SORT = ("l_shipdate", "l_orderkey", "l_linenumber", "l_extendedprice")
SCHEMA_SORT = "l_shipdate date, l_orderkey long, l_linenumber int, l_extendedprice decimal(15,2)"


# ---- Queries: from an Arrow table to a Result ----


def q1(items):
    """Sums of the groups of query 1 among these items; Spark adds up those of all tasks."""
    late = quern.scan(items).filter("l_shipdate <= date '1998-09-02'")
    return late.aggregate("l_returnflag, l_linestatus", SUMS_1).collect(threads=THREADS, memory_limit=MEMORY)


def q3(items, orders):
    """Sums of the groups of query 3 among these items; orders: the chosen ones, a table or a scan."""
    joined = quern.scan(items).filter("l_shipdate > date '1995-03-15'").join(orders, on="l_orderkey = o_orderkey")
    groups = joined.aggregate(KEYS_3, revenue="sum(l_extendedprice * (1 - l_discount))")
    return groups.collect(threads=THREADS, memory_limit=MEMORY)


def in_order(items):
    by = "l_shipdate, l_orderkey, l_linenumber"
    return quern.sort(items, by=by, reader=True, threads=THREADS, memory_limit=MEMORY)


# ---- Tasks: functions for mapInArrow, from batches to batches ----


def on_rows(query):
    """Runs a query on the rows of each partition."""

    def task(batches):
        rows = list(batches)
        if rows:  # a partition without rows has no batch that would tell their types
            yield from pa.RecordBatchReader.from_stream(query(pa.Table.from_batches(rows)))

    return task


def on_files(query, columns):
    """Runs a query on row groups of Parquet files, pairs of path and number, which the task itself reads."""

    def task(batches):
        groups_of: dict[str, list[int]] = {}
        for path, group in (pair.values() for batch in batches for pair in batch.to_pylist()):
            groups_of.setdefault(path, []).append(group)
        for path, groups in groups_of.items():
            rows = pq.ParquetFile(path).read_row_groups(groups, columns=list(columns), use_threads=False)
            yield from pa.RecordBatchReader.from_stream(query(rows))

    return task


@functools.lru_cache(maxsize=1)
def scan_of(broadcast):
    """The table of a broadcast variable, an Arrow stream in bytes: once in a worker."""
    return quern.scan(pa.ipc.open_stream(broadcast.value).read_all())


def q3_with(orders):
    """Query 3 with the orders of a broadcast variable."""
    return lambda items: q3(items, scan_of(orders))


def q3_of_bucket(items, orders):
    """For cogroup: the groups of the items and orders whose keys fall into one bucket. Types are those of SCHEMA_3."""
    groups = q3(items.drop_columns("bucket"), orders.drop_columns("bucket")).to_pyarrow()
    return groups.cast(pa.schema([("l_orderkey", pa.int64()), ("o_orderdate", pa.date32()),
                                  ("o_shippriority", pa.int32()), ("revenue", pa.decimal128(38, 4))]))  # fmt: skip
