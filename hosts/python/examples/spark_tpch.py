# SPDX-License-Identifier: Apache-2.0
"""spark_tpch.py FOLDER [--rounds N] [--master M] [--query Q]: TPC-H queries 1 and 3 and a sort of the line items in
tasks of Spark, with Quern's kernels and as Spark's own SQL.

FOLDER holds lineitem, orders and customer as Parquet files. Spark divides the rows, moves them between tasks, and adds
up the sums of the groups that tasks give it. A query has several forms:

    rows     Spark reads the files and sends their rows to the Python worker of each task (mapInArrow)
    files    each task reads row groups of the files itself; results alone pass through Spark
    cogroup  Spark sends both sides of a join, divided by a bucket of the key (applyInArrow)

Answers are compared with those of Spark's SQL, row by row. Then all forms take turns, and the best turn of each counts.
"""

import argparse
import math
import pathlib
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import spark_fragments as fragments
from pyspark.sql import SparkSession

SQL_1 = """
    select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
           sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
           sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
           avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
    from lineitem where l_shipdate <= date '1998-09-02' group by all order by l_returnflag, l_linestatus"""
# Spark's types: a sum of decimal(15,2) is a decimal(25,2), and an average is its quotient as decimal(19,6).
FINAL_1 = """
    select l_returnflag, l_linestatus, cast(sum(qty) as decimal(25,2)) as sum_qty,
           cast(sum(price) as decimal(25,2)) as sum_base_price, sum(disc_price) as sum_disc_price,
           sum(charge) as sum_charge, cast(sum(qty) / sum(n) as decimal(19,6)) as avg_qty,
           cast(sum(price) / sum(n) as decimal(19,6)) as avg_price,
           cast(sum(disc) / sum(n) as decimal(19,6)) as avg_disc, sum(n) as count_order
    from {sums} group by all order by l_returnflag, l_linestatus"""
CHOSEN_3 = """
    select o_orderkey, o_orderdate, o_shippriority from customer, orders
    where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and o_orderdate < date '1995-03-15'"""
SQL_3 = """
    select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
    from customer, orders, lineitem
    where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
      and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
    group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10"""
FINAL_3 = """
    select l_orderkey, sum(revenue) as revenue, o_orderdate, o_shippriority from {sums}
    group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10"""
SORT = ("l_shipdate", "l_orderkey", "l_linenumber")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[1].strip())
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each form; 0: only compare (default: 3)")
    parser.add_argument("--master", default="local[2]", help="of Spark (default: local[2])")
    parser.add_argument("--query", action="append", help="1, 3 or sort; may be given several times (default: all)")
    return parser.parse_args()


def session(master):
    settings = {
        "spark.driver.memory": "4g",  # in local mode also that of the tasks
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    builder = SparkSession.builder.master(master).appName("quern")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.addPyFile(fragments.__file__)
    return spark


class Queries:
    """The forms of each query: functions that make a DataFrame, whose rows are the answer."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.path = str(folder / "lineitem.parquet")
        self.tables = {name: spark.read.parquet(str(folder / f"{name}.parquet"))
                       for name in ("lineitem", "orders", "customer")}  # fmt: skip
        for name, table in self.tables.items():
            table.createOrReplaceTempView(name)

    def row_groups(self):
        """Pairs of path and row group, in as many partitions as there are cores."""
        pairs = [(self.path, group) for group in range(pq.read_metadata(self.path).num_row_groups)]
        context = self.spark.sparkContext
        pairs = context.parallelize(pairs, context.defaultParallelism)
        return self.spark.createDataFrame(pairs, "path string, row_group int")

    def final(self, sql, sums):
        return self.spark.sql(sql, sums=sums)

    def q1_rows(self):
        items = self.tables["lineitem"].select(*fragments.ITEMS_1)
        return self.final(FINAL_1, items.mapInArrow(fragments.on_rows(fragments.q1), fragments.SCHEMA_1))

    def q1_files(self):
        task = fragments.on_files(fragments.q1, fragments.ITEMS_1)
        return self.final(FINAL_1, self.row_groups().mapInArrow(task, fragments.SCHEMA_1))

    def late_items(self):
        """Rows that a condition leaves out are not sent: Spark tests it while it reads."""
        return self.tables["lineitem"].where("l_shipdate > date '1995-03-15'").select(*fragments.ITEMS_3)

    def broadcast_orders(self):
        """The orders of query 3, which Spark finds and which every worker gets as one Arrow stream."""
        orders = self.spark.sql(CHOSEN_3).toArrow()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, orders.schema) as writer:
            writer.write_table(orders)
        return self.spark.sparkContext.broadcast(sink.getvalue().to_pybytes())

    def q3_rows(self):
        task = fragments.on_rows(fragments.q3_with(self.broadcast_orders()))
        return self.final(FINAL_3, self.late_items().mapInArrow(task, fragments.SCHEMA_3))

    def q3_files(self):
        task = fragments.on_files(fragments.q3_with(self.broadcast_orders()), fragments.ITEMS_3)
        return self.final(FINAL_3, self.row_groups().mapInArrow(task, fragments.SCHEMA_3))

    def q3_cogroup(self):
        """A group is a bucket and not a key: a call for each key would cost more than its rows."""
        items = self.late_items().selectExpr("*", "pmod(hash(l_orderkey), 8) as bucket").groupBy("bucket")
        orders = self.spark.sql(CHOSEN_3).selectExpr("*", "pmod(hash(o_orderkey), 8) as bucket").groupBy("bucket")
        sums = items.cogroup(orders).applyInArrow(fragments.q3_of_bucket, fragments.SCHEMA_3)
        return self.final(FINAL_3, sums)

    def sort_sql(self):
        return self.tables["lineitem"].select(*fragments.COLUMNS_SORT).sort(*SORT)

    def sort_rows(self):
        """Spark divides the rows by ranges of the key, and a kernel sorts each of them."""
        items = self.tables["lineitem"].select(*fragments.COLUMNS_SORT)
        ranges = items.repartitionByRange(self.spark.sparkContext.defaultParallelism, *SORT)
        return ranges.mapInArrow(fragments.on_rows(fragments.in_order), fragments.SCHEMA_SORT)

    def forms(self):
        return {
            "1": {"sql": lambda: self.spark.sql(SQL_1), "rows": self.q1_rows, "files": self.q1_files},
            "3": {"sql": lambda: self.spark.sql(SQL_3), "rows": self.q3_rows, "files": self.q3_files,
                  "cogroup": self.q3_cogroup},
            "sort": {"sql": self.sort_sql, "rows": self.sort_rows},
        }  # fmt: skip


def compare(query, forms):
    """The rows of the answer. Ends the program where a form has another one."""
    expected = forms["sql"]().toArrow()
    for name, form in forms.items():
        answer = form().toArrow()
        if answer.cast(expected.schema) != expected:
            sys.exit(f"query {query}: {name} is not sql:\n{answer}\n{expected}")
    return len(expected)


def run(form):
    """Seconds to make all rows of an answer, which go nowhere."""
    begin = time.perf_counter()
    form().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


def best_of(forms, rounds):
    best = dict.fromkeys(forms, math.inf)
    for _ in range(rounds):
        for name, form in forms.items():
            best[name] = min(best[name], run(form))
    return best


def main():
    options = arguments()
    spark = session(options.master)
    queries = Queries(spark, options.folder.resolve()).forms()
    chosen = options.query or list(queries)
    print("query     rows  form     Spark's SQL ms  with Quern ms  ratio")
    for query in chosen:
        forms = queries[query]
        num_rows = compare(query, forms)
        best = best_of(forms, options.rounds)
        for name in list(forms)[1:]:
            times = [best["sql"] * 1e3, best[name] * 1e3]
            shown = [f"{ms:.0f}" for ms in times] + [f"{times[0] / times[1]:.2f}"] if options.rounds else ["-"] * 3
            print(f"{query:<5}  {num_rows:>7}  {name:<7}  {shown[0]:>14}  {shown[1]:>13}  {shown[2]:>5}", flush=True)
    spark.stop()
    print(f"{len(chosen)} queries, equal to those of Spark's SQL")


if __name__ == "__main__":
    main()
