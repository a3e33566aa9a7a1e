# SPDX-License-Identifier: Apache-2.0
"""Quern in tasks of Spark: what docs/distributed.md says of types, partitions without rows, errors and workers. It runs
with the Python of build/spark-venv; the folder of spark_fragments.py is in PYTHONPATH."""

import collections
import datetime
import decimal
import os
import unittest

import pyarrow as pa
import spark_fragments as fragments
import spark_tpch
from pyspark.errors import PythonException

import quern

SCHEMA = """k long, i int, s string, b binary, d decimal(15,2), day date, t timestamp, local timestamp_ntz, f float,
    ok boolean"""


def rows():
    for n in range(200):
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=n)
        time = datetime.datetime(2020, 1, 1, 12, n % 60, 0, n)
        row = (n % 7, n, f"text {n % 3}", bytes([n]), decimal.Decimal(n) / 100, day, time, time, n / 4, n % 2 == 0)
        yield tuple(None if (n + place) % 11 == 0 else value for place, value in enumerate(row))


def copied(items):
    return quern.map(items, "*")


class Tasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.spark = spark_tpch.session("local[2]")
        cls.spark.sparkContext.setLogLevel("OFF")  # failures of tasks are wanted here
        cls.table = cls.spark.createDataFrame(list(rows()), SCHEMA).repartition(3)

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def test_types(self):
        expected = collections.Counter(self.table.collect())
        for large in ("false", "true"):  # large_utf8 instead of utf8
            for zone in ("UTC", "America/New_York"):
                self.spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
                self.spark.conf.set("spark.sql.session.timeZone", zone)
                answer = self.table.mapInArrow(fragments.on_rows(copied), SCHEMA)
                self.assertEqual(collections.Counter(answer.collect()), expected, (large, zone))

    def test_partitions_without_rows(self):
        def sums(items):
            return quern.aggregate(items, by="k", aggs="sum(d) as d")

        schema = "k long, d decimal(38,2)"
        none = self.table.where("i > 1000").mapInArrow(fragments.on_rows(sums), schema)
        self.assertEqual(none.collect(), [])
        some = self.table.where("i = 3").mapInArrow(fragments.on_rows(sums), schema)
        self.assertEqual([tuple(row) for row in some.collect()], [(3, decimal.Decimal("0.03"))])

    def test_columns_go_by_their_places(self):
        def two(items):
            return quern.map(items, "k, i")

        swapped = self.spark.range(1).selectExpr("id as k", "cast(7 as long) as i")
        swapped = swapped.mapInArrow(fragments.on_rows(two), "i long, k long")
        self.assertEqual([row.asDict() for row in swapped.collect()], [{"i": 0, "k": 7}])

    def test_sums_of_sums(self):
        def parts(items):
            aggs = "sum(i) as i, count(i) as n, min(s) as least, max(t) as latest, sum(d) as d"
            return quern.aggregate(items, by="ok", aggs=aggs)

        schema = "ok boolean, i long, n long, least string, latest timestamp, d decimal(38,2)"
        self.table.mapInArrow(fragments.on_rows(parts), schema).createOrReplaceTempView("parts")
        self.table.createOrReplaceTempView("whole")
        answer = self.spark.sql("""select ok, sum(i) / sum(n), sum(n), min(least), max(latest), sum(d) from parts
            group by ok order by ok""")
        expected = self.spark.sql("""select ok, avg(i), count(i), min(s), max(t), sum(d) from whole
            group by ok order by ok""")
        self.assertEqual([tuple(row) for row in answer.collect()], [tuple(row) for row in expected.collect()])

    def test_errors_name_the_reason(self):
        wrong = [("sum(i * 9223372036854775807)", "overflow of i64"), ("sum(nothing)", "unknown column.*nothing")]
        for text, message in wrong:

            def fails(items, text=text):
                return quern.aggregate(items, by="k", aggs=f"{text} as x")

            with self.assertRaisesRegex(PythonException, message):
                self.table.mapInArrow(fragments.on_rows(fails), "k long, x long").collect()

    def test_a_worker_keeps_the_table_of_a_broadcast(self):
        """Each worker reads it once: misses of the cache, by worker."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("key", pa.int64())])) as writer:
            writer.write_table(pa.table({"key": [1, 3, 5]}))
        broadcast = self.spark.sparkContext.broadcast(sink.getvalue().to_pybytes())

        def task(batches):
            num_rows = 0
            for batch in batches:
                joined = quern.scan(batch).join(fragments.scan_of(broadcast), on="id = key", how="semi")
                num_rows += len(joined.collect(threads=1))
            misses = fragments.scan_of.cache_info().misses
            yield pa.record_batch({"worker": [os.getpid()], "misses": [misses], "rows": [num_rows]})

        answer = []
        for _ in range(2):
            numbers = self.spark.range(0, 8, 1, 8)
            answer += numbers.mapInArrow(task, "worker long, misses long, rows long").collect()
        self.assertEqual(sum(row.rows for row in answer), 6)
        self.assertEqual({row.misses for row in answer if row.rows}, {1})

    def test_a_sort_beyond_its_limit_is_spilled(self):
        def descending(items):
            return quern.sort(items, by="id desc", memory_limit="16M", threads=1, reader=True)

        answer = self.spark.range(0, 3_000_000, 1, 1).mapInArrow(fragments.on_rows(descending), "id long").toArrow()
        self.assertEqual(answer["id"].to_numpy().tolist(), list(range(2_999_999, -1, -1)))


if __name__ == "__main__":
    unittest.main()
