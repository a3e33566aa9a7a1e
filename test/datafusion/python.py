#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quern in sessions of DataFusion's Python package, against the same sessions without it: python.py. The module
quern_datafusion is found by PYTHONPATH; tools/rust runs this."""

import datetime
import decimal
import gc
import pathlib
import tempfile
import threading
import unittest

import datafusion
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import quern_datafusion

QUERIES = [
    ("select k % 10 as g, count(*), sum(v), min(s), avg(d) from a group by g order by g", True),
    ("select a.k, a.s, b.w from a join b on a.k = b.k where a.v > 10 order by a.k, a.s, b.w", True),
    ("select b.w, sum(a.d) from a join b on a.k = b.k group by b.w order by b.w", True),
    ("select k, v from a order by v desc, k limit 20", False),
    ("select s, count(distinct k) from a where day < date '2020-02-01' group by s order by s", True),
    ("select count(*) from a where k in (select k from b)", True),
    ("select a.k from a left join b on a.k = b.k where b.k is null order by 1", True),
    ("select g, n from (select k % 7 as g, count(*) as n from a group by g) order by n desc, g limit 3", True),
    ("select s, k, v from a order by s nulls first, k desc, v", True),
    ("select 1 as one", False),
]


def tables():
    rows = 20_000
    numbers = range(rows)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=n % 90) for n in numbers]
    a = pa.table({
        "k": pa.array([None if n % 17 == 0 else n * 7 % 501 for n in numbers], pa.int64()),
        "v": pa.array([n * 31 % 1000 for n in numbers], pa.int32()),
        "s": pa.array([None if n % 13 == 0 else f"word {n % 21} of a table" for n in numbers], pa.string()),
        "d": pa.array([decimal.Decimal(n % 1000) / 100 for n in numbers], pa.decimal128(15, 2)),
        "day": pa.array(days, pa.date32()),
    })
    b = pa.table({"k": pa.array(range(0, 800, 3), pa.int64()), "w": pa.array([f"b{n % 5}" for n in range(267)])})
    return a, b


class Sessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tables = dict(zip("ab", tables()))
        for name, table in cls.tables.items():
            pq.write_table(table, pathlib.Path(cls.folder.name) / f"{name}.parquet", row_group_size=3000)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def session(self, partitions, extension=None):
        context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(partitions))
        if extension is not None:
            context = context.with_extensions(extension)
        for name in self.tables:
            context.register_parquet(name, str(pathlib.Path(self.folder.name) / f"{name}.parquet"))
        return context

    def test_answers(self):
        for partitions in (1, 3):
            stock = self.session(partitions)
            quern = self.session(partitions, quern_datafusion.Extension())
            for query, has_fragment in QUERIES:
                with self.subTest(query=query, partitions=partitions):
                    frame = quern.sql(query)
                    self.assertEqual(pa.table(frame).to_pylist(), pa.table(stock.sql(query)).to_pylist())
                    plan = quern.sql(query).execution_plan().display_indent()
                    self.assertEqual("QuernExec" in plan, has_fragment, plan)

    def test_settings(self):
        quern = self.session(2, quern_datafusion.Extension(aggregates=False, sorts=False))
        self.assertNotIn("QuernExec", quern.sql(QUERIES[0][0]).execution_plan().display_indent())
        with self.assertRaises(TypeError):
            quern_datafusion.Extension(unknown=True)

    def test_errors_are_those_of_the_session(self):
        quern = self.session(2, quern_datafusion.Extension())
        with self.assertRaisesRegex(Exception, "nowhere"):
            quern.sql("select * from nowhere")
        with self.assertRaisesRegex(Exception, "(?i)divi(de|sion) by (0|zero)"):
            pa.table(quern.sql("select sum(k / (v - v)) from a where k > 0"))

    def test_a_sum_that_does_not_fit_is_an_error(self):
        quern = self.session(3, quern_datafusion.Extension())
        with self.assertRaisesRegex(Exception, "sum"):
            pa.table(quern.sql("select k % 3 as g, sum(v * 9223372036854775) as s from a group by g order by g"))

    def test_functions_of_the_session(self):
        """A residual of a join calls a function that only the session knows."""

        def halved(values):
            return pa.compute.divide(values, 2)

        sessions = self.session(2), self.session(2, quern_datafusion.Extension())
        query = "select count(*) as n from a join b on a.k = b.k and halved(a.v) > length(b.w) * 30"
        rows = []
        for context in sessions:
            context.register_udf(datafusion.udf(halved, [pa.int32()], pa.int32(), "immutable", "halved"))
            rows.append(pa.table(context.sql(query)).to_pylist())
        self.assertEqual(rows[1], rows[0])
        self.assertIn("QuernExec", sessions[1].sql(query).execution_plan().display_indent())

    def test_runs_at_once_have_feeds_of_their_own(self):
        query, _ = QUERIES[1]
        frame = self.session(3, quern_datafusion.Extension()).sql(query)
        self.assertIn("FeedExec", frame.execution_plan().display_indent())
        expected = pa.table(self.session(3).sql(query)).to_pylist()
        found = []
        threads = [threading.Thread(target=lambda: found.append(pa.table(frame).to_pylist())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 4)

    def test_threads(self):
        quern = self.session(2, quern_datafusion.Extension())
        stock = self.session(2)
        expected = [pa.table(stock.sql(query)).to_pylist() for query, _ in QUERIES]
        wrong = []

        def ask():
            for (query, _), rows in zip(QUERIES, expected):
                if pa.table(quern.sql(query)).to_pylist() != rows:
                    wrong.append(query)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_streams_that_are_dropped(self):
        quern = self.session(2, quern_datafusion.Extension())
        for query, _ in QUERIES:
            stream = quern.sql(query).execute_stream()
            next(iter(stream), None)
            del stream
        gc.collect()
        self.assertEqual(pa.table(quern.sql("select count(*) as n from a")).to_pylist(), [{"n": 20_000}])


if __name__ == "__main__":
    unittest.main()
