# SPDX-License-Identifier: Apache-2.0
"""Expressions where columns stand: keys of sorts, sides of keys and comparisons of joins, conditions of
aggregates."""

import unittest

import pyarrow as pa
import quern
from tables import rows

ENGINES = ("jit", "generic")


def sales():
    return pa.table({
        "id": [1, 2, 3, 4],
        "price": [2.0, 0.5, 1.0, None],
        "qty": [2, 3, 4, 5],
        "unit-price": [1, 3, 2, 0],
        "name": ["ada", "bob", "ada", None],
    })  # fmt: skip


class Sort(unittest.TestCase):
    def test_keys(self):
        for engine in ENGINES:
            result = quern.sort(sales(), "PRICE * qty desc nulls first, -id", select="id", engine=engine)
            self.assertEqual(rows(result), [(4,), (3,), (1,), (2,)])
            result = quern.sort(sales(), ["qty % 2 desc", ("id", "desc")], 3, where="id <> 3", engine=engine)
            self.assertEqual([row[0] for row in rows(result)], [4, 2, 1])
            self.assertEqual(result.column_names, sales().column_names)
        self.assertEqual(rows(quern.sort(sales(), "id + qty desc, id", select="price, id", limit=1)), [(None, 4)])

    def test_rows_that_are_left_out_are_not_computed(self):
        result = quern.sort(sales(), "12 / (qty - 3)", where="qty <> 3", select="id", stable=True, threads=3)
        self.assertEqual(rows(result), [(1,), (4,), (3,)])
        with self.assertRaisesRegex(RuntimeError, "row 1: divide_checked.* of 12 and 0: division by 0"):
            quern.sort(sales(), "12 / (qty - 3)")

    def test_windows_and_streams(self):
        result = quern.sort(sales(), "qty % 2", partition_by="name", window="rank as r", select="id", stable=True)
        self.assertEqual(rows(result), [(1, 1), (3, 1), (2, 1), (4, 1)])
        n = 200000
        t = pa.table({"a": range(n)}).to_batches(max_chunksize=50000)
        reader = pa.RecordBatchReader.from_batches(t[0].schema, t)
        self.assertEqual(rows(quern.sort(reader, "a % 1000 desc, -a", limit=2, stream=True)), [(199999,), (198999,)])

    def test_names_come_first(self):
        self.assertEqual(rows(quern.sort(sales(), "unit-price", select="id", limit=1)), [(4,)])
        self.assertEqual(rows(quern.sort(sales(), "qty -id desc, id desc", select="id", limit=1)), [(4,)])

    def test_errors(self):
        wrong = {
            "1 + 1": "constant as a key in by: 1 . 1; accepted: a column name, or an expression over columns",
            "prices * 2": "unknown column of t: prices",
            "qty * 2 dsc": "unknown word in by: dsc; did you mean desc",
            "qty * 2 collate utf8mb4_bin": "collation on a key without text: qty . 2; accepted: utf8 columns",
            "name + 1": "utf8 and i64 have no common type",
        }
        for by, text in wrong.items():
            with self.assertRaisesRegex(ValueError, text):
                quern.sort(sales(), by)

    def test_frames(self):
        frame = quern.scan(sales()).sort("price * qty desc nulls first, -id", limit=2).select("id")
        self.assertEqual(rows(frame.collect()), [(4,), (3,)])
        with self.assertRaisesRegex(ValueError, "unknown column: prise; did you mean price"):
            quern.scan(sales()).sort("prise * 2")
        with self.assertRaisesRegex(ValueError, "constant as a key in sort: 2"):
            quern.scan(sales()).sort("2")


class Aggregate(unittest.TestCase):
    def test_conditions(self):
        aggs = {"a": "count(*) filter (where PRICE * qty > 1.5)", "b": "sum(qty) filter (where id % 2 = 1)",
                "c": "count(*) filter (where unit-price > 1)", "d": "count(*) filter (where price * 0 is null)"}
        for engine in ENGINES:
            self.assertEqual(rows(quern.aggregate(sales(), aggs=aggs, engine=engine)), [(2, 6, 2, 1)])
        result = quern.aggregate(sales(), "name", "count(*) filter (where 12 / (qty - 3) > 0) as n", where="qty <> 3")
        self.assertEqual(sorted(rows(result), key=str), [("ada", 1), (None, 1)])
        frame = quern.scan(sales()).aggregate(aggs="sum(id) filter (where qty - id < 2 and price * qty <> 4) as s")
        self.assertEqual(rows(frame.collect()), [(2,)])

    def test_errors(self):
        wrong = {
            "price * qty": "filter of an aggregate that is no condition: .*; accepted: a bool",
            "prise * qty > 1": "unknown column of t: prise",
            "prise > 1": "unknown column of t: prise",
            "name > 1 + 1": "utf8 and i64 have no common type",
        }
        for condition, text in wrong.items():
            with self.assertRaisesRegex(ValueError, text):
                quern.aggregate(sales(), aggs=f"count(*) filter (where {condition})")


def items():
    return pa.table({"o": [2, 3, 4, 5], "least": [15, 2, 3, None], "owner": ["x", "y", "z", "w"], "k": [1, 3, None, 2]})


class Join(unittest.TestCase):
    def test_sides(self):
        for engine in ENGINES:
            result = quern.join(sales(), items(), on="ID + 1 = o", select="id, owner", engine=engine)
            self.assertEqual(rows(result), [(1, "x"), (2, "y"), (3, "z"), (4, "w")])
            result = quern.join(sales(), items(), on="id + 1 = o, qty % 5 = k", residual="price * 2 < least",
                                how="left", select="id, owner", engine=engine, threads=2)
            self.assertEqual(sorted(rows(result)), [(1, None), (2, "y"), (3, None), (4, None)])
        self.assertEqual(len(quern.join(sales(), sales(), on="id % 2", select=[])), 8)

    def test_nulls_and_conditions(self):
        on, nulls = "price - 1 = least", '"price - 1"'
        self.assertEqual(len(quern.join(sales(), items(), on=on, select=[])), 0)
        self.assertEqual(len(quern.join(sales(), items(), on=on, null_equal=nulls, select=[])), 1)
        on = "12 / (qty - 3) = o * 3 - 9"
        result = quern.join(sales(), items(), on=on, probe_where="qty <> 3", build_where="o <> 4", select="id, o")
        self.assertEqual(rows(result), [(4, 5)])
        with self.assertRaisesRegex(RuntimeError, "row 1: divide_checked.* of 12 and 0: division by 0"):
            quern.join(sales(), items(), on="12 / (qty - 3) = o")

    def test_streams_and_names(self):
        n = 200000
        t = pa.table({"a": range(n)})
        small = pa.table({"b": [3, 1999]})
        reader = quern.join(t, small, on="a % 2000 = b", residual="a + 1 > b * 2", select="a", stream=True)
        expected = [(a,) for a in range(n) if a % 2000 in (3, 1999) and a + 1 > a % 2000 * 2]
        self.assertEqual([row for batch in reader for row in rows(batch)], expected)
        self.assertEqual(rows(quern.join(sales(), items(), on="unit-price = o - 1", select="owner, id")),
                         [("x", 1), ("z", 2), ("y", 3)])

    def test_errors(self):
        wrong = {
            "id + o = o": "unknown column of probe: o",
            "id < o": "bad value of on: id < o; accepted: L=R",
            "id + 1 = owner": "i64 and utf8 have no common type",
            "id + 1 = o collate utf8mb4_bin": "bad value of on",
        }
        for on, text in wrong.items():
            with self.assertRaisesRegex(ValueError, text):
                quern.join(sales(), items(), on=on)
        with self.assertRaisesRegex(ValueError, "bad expression in residual: owner . 1: utf8 and i64"):
            quern.join(sales(), items(), on="id = o", residual="price < owner + 1")

    def test_frames(self):
        frame = quern.scan(sales()).join(items(), on="id + 1 = o and price + least > 3 and 4 > id").select("id, owner")
        self.assertEqual(rows(frame.collect()), [(1, "x"), (3, "z")])
        with self.assertRaisesRegex(ValueError, "condition of join.semi: price . least > 3; accepted: comparisons"):
            quern.scan(sales()).join(items(), on="id + 1 = o and price + least > 3", how="semi")


if __name__ == "__main__":
    unittest.main()
