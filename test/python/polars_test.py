# SPDX-License-Identifier: Apache-2.0
"""quern.polars: nodes of lazy queries give the rows of Polars' own operators, whatever the query."""

import unittest

import polars as pl

import quern
import quern.polars

NAMES = ["ada", "bob", None, "dora", "a text of more than 12 bytes"]
ORDERS = pl.LazyFrame({"id": [1, 2, 3, 4, None], "name": NAMES, "x": [1, 2, 3, 4, 5]})
ITEMS = pl.LazyFrame({"order": [2, 3, 3, 9], "qty": [10, 20, 30, 40], "x": [7, 8, 9, 10]})


class Joins(unittest.TestCase):
    def setUp(self):
        self.joined = quern.polars.join(ORDERS, ITEMS, on="id = order")

    def test_schema(self):
        expected = {"id": pl.Int64, "name": pl.String, "probe.x": pl.Int64, "order": pl.Int64, "qty": pl.Int64,
                    "build.x": pl.Int64}
        self.assertEqual(dict(self.joined.collect_schema()), expected)
        self.assertEqual(self.joined.collect().schema, expected)

    def test_equals_polars(self):
        own = ORDERS.join(ITEMS, left_on="id", right_on="order").select("id", "name", "qty").collect()
        self.assertEqual(sorted(self.joined.select("id", "name", "qty").collect().rows(), key=repr),
                         sorted(own.rows(), key=repr))
        for engine in ("in-memory", "streaming"):
            self.assertEqual(self.joined.select(pl.col("qty").sum()).collect(engine=engine).item(), 60)

    def test_columns_that_are_asked_for(self):
        self.assertEqual(self.joined.select("probe.x").collect().to_dict(as_series=False), {"probe.x": [2, 3, 3]})
        self.assertEqual(self.joined.select("build.x", "id").collect().rows(), [(7, 2), (8, 3), (9, 3)])
        self.assertEqual(self.joined.select(pl.len()).collect().item(), 3)
        self.assertIn("PROJECT 1/6 COLUMNS", self.joined.select("qty").explain())

    def test_conditions_and_slices(self):
        self.assertEqual(self.joined.filter(pl.col("qty") > 15).select("name", "id").collect().rows(),
                         [(None, 3), (None, 3)])
        self.assertEqual(self.joined.filter(pl.col("qty") > 15).head(1).select("qty").collect().rows(), [(20,)])
        self.assertEqual(self.joined.slice(1, 1).select("qty").collect().rows(), [(20,)])
        self.assertEqual(self.joined.tail(1).select("qty").collect().rows(), [(30,)])

    def test_nodes_over_nodes(self):
        totals = quern.polars.aggregate(quern.polars.filter(self.joined, "qty > 10"), by="id", aggs="sum(qty) as qty")
        self.assertEqual(totals.with_columns(pl.col("qty") * 2).collect().rows(), [(3, 100)])

    def test_frames(self):
        self.assertEqual(quern.polars.join(ORDERS.collect(), ITEMS, on="id = order", select="qty").collect().height, 3)


class Others(unittest.TestCase):
    def test_aggregate(self):
        totals = quern.polars.aggregate(ITEMS, by="order", aggs={"s": "sum(qty)", "n": "count(*)"})
        self.assertEqual(totals.sort("order").collect().rows(), [(2, 10, 1), (3, 50, 2), (9, 40, 1)])
        self.assertEqual(totals.select(pl.col("s").sum()).collect().item(), 100)

    def test_sort(self):
        ordered = quern.polars.sort(ORDERS, "id desc nulls last", 2, window="row_number as place")
        self.assertEqual(ordered.collect().rows(), [(4, "dora", 4, 1), (3, None, 3, 2)])
        self.assertEqual(ordered.select("place").collect().rows(), [(1,), (2,)])
        self.assertEqual(quern.polars.sort(ORDERS, "name desc", 1).select("x").collect().rows(), [(4,)])

    def test_filter(self):
        self.assertEqual(quern.polars.filter(ORDERS, "name like '%a%' and id > 1").select("id").collect().rows(),
                         [(4,)])


class Errors(unittest.TestCase):
    def test_when_the_query_is_made(self):
        with self.assertRaisesRegex(ValueError, "^unknown column of probe: idd; did you mean id?"):
            quern.polars.join(ORDERS, ITEMS, on="idd = order")
        with self.assertRaisesRegex(TypeError,
                                    "^bad type of build: int; accepted: a LazyFrame or DataFrame of Polars$"):
            quern.polars.join(ORDERS, 5, on="id")
        with self.assertRaisesRegex(ValueError,
                                    "^bad value of stream for a node of a lazy query: True; accepted: False, as it is"):
            quern.polars.filter(ORDERS, "id = 1", stream=True)

    def test_when_it_is_collected(self):
        sums = quern.polars.aggregate(pl.LazyFrame({"x": [2**62, 2**62]}), aggs="sum(x)")
        with self.assertRaisesRegex(Exception, "sum out of range"):
            sums.collect()


if __name__ == "__main__":
    unittest.main()
