# SPDX-License-Identifier: Apache-2.0
"""quern.map: forms of its argument, what is copied and what is computed, conditions, streams, threads, errors."""

import datetime
import decimal
import unittest

import pyarrow as pa
import quern
from tables import rows


def sales():
    return pa.table({
        "id": [1, 2, 3],
        "name": ["ada", "bob", None],
        "price": pa.array([decimal.Decimal("2.25"), decimal.Decimal("1.50"), None], pa.decimal128(15, 2)),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "day": [datetime.date(1998, 12, 1), None, datetime.date(2000, 1, 1)],
        "nothing": pa.nulls(3),
    })  # fmt: skip


class Map(unittest.TestCase):
    def test_forms_of_select(self):
        for engine in ("jit", "generic"):
            result = quern.map(sales(), {"NAME": "name", "total": "PRICE * (1 - 0.5)", "y": "year(day)"}, engine=engine)
            self.assertEqual(result.column_names, ["NAME", "total", "y"])
            half = decimal.Decimal("1.125"), decimal.Decimal("0.75"), None
            self.assertEqual(rows(result), [("ada", half[0], 1998), ("bob", half[1], None), (None, half[2], 2000)])
        result = quern.map(sales(), "Id, id + 1, name as n, nothing + id as none")
        self.assertEqual(result.column_names, ["id", "id + 1", "n", "none"])
        self.assertEqual(rows(result), [(1, 2, "ada", None), (2, 3, "bob", None), (3, 4, None, None)])
        self.assertEqual(quern.map(sales(), "NAME as NAME, Id, id as ID").column_names, ["NAME", "id", "ID"])
        self.assertEqual(quern.map(sales(), "*, id % 2 as odd").column_names, sales().column_names + ["odd"])

    def test_all_columns(self):
        t = pa.table({"unit-price": [1], "a b": [2], "unit": [3], "price": [5]})
        self.assertEqual(rows(quern.map(t, "*")), [(1, 2, 3, 5)])

    def test_types(self):
        at, n = pa.array([0, 86400], pa.timestamp("s", "Europe/Berlin")), pa.array([1, 2], pa.int16())
        t = pa.table({"at": at, "n": n})
        table = pa.table(quern.map(t, {"a": "coalesce(at, timestamp '1970-01-02 00:00:00Z')", "b": "n + 1", "c": "at"}))
        self.assertEqual(table.schema.types, [t.schema.field("at").type, pa.int16(), t.schema.field("at").type])
        self.assertEqual(table["a"], t["at"])

    def test_units_of_constants(self):
        moment = datetime.datetime(1970, 1, 1, 0, 0, 1)
        s, ms = pa.array([moment, None], pa.timestamp("s")), pa.array([moment] * 2, pa.timestamp("ms"))
        t = pa.table({"s": s, "ms": ms})
        text = "case when s is null then null else timestamp '2020-01-01 00:00:00.5' end as at"
        for other in ("ms = timestamp '1970-01-01 00:00:01' as b", "ms = s::i64::timestamp as b"):
            self.assertEqual(pa.table(quern.map(t, f"{other}, {text}"))["at"].type, pa.timestamp("us"))
            found = pa.table(quern.map(t, f"{text}, {other}"))["at"]
            self.assertEqual(found.type, pa.timestamp("us"))
            self.assertEqual(found.to_pylist(), [datetime.datetime(2020, 1, 1, 0, 0, 0, 500000), None])
        self.assertEqual(rows(quern.map(t, "s = s as a, ms = timestamp '1970-01-01 00:00:01' as b"))[1], (None, True))

    def test_errors_name_the_row_of_the_table(self):
        t = pa.table({"a": range(200000)})
        for threads in (1, 3):
            with self.assertRaisesRegex(RuntimeError, "row 150000: divide_checked"):
                quern.map(t, "1 / (a - 150000)", threads=threads)
        with self.assertRaisesRegex(RuntimeError, "row 150000: divide_checked"):
            quern.map(t, "1 / (a - 150000)", where="a > 100000", threads=1)
        with self.assertRaisesRegex(RuntimeError, "row 150000: divide_checked"):
            for _ in quern.map(t, "1 / (a - 150000)", stream=True):
                pass

    def test_columns_are_copied_as_they_are(self):
        result = pa.table(quern.map(sales(), {"a": "kind", "b": "kind", "c": "id * 2"}, where="id <> 2"))
        self.assertEqual(result["a"].type, sales()["kind"].type)
        self.assertEqual(result.to_pylist(), [{"a": "x", "b": "x", "c": 2}, {"a": "x", "b": "x", "c": 6}])

    def test_rows_that_the_condition_leaves_out_are_not_computed(self):
        self.assertEqual(rows(quern.map(sales(), "6 / (id - 1) as x", where="id <> 1")), [(6,), (3,)])
        self.assertEqual(rows(quern.map(sales(), "6 / (id - 1) as x", where="id > 5")), [])
        with self.assertRaisesRegex(RuntimeError, "division by 0"):
            quern.map(sales(), "6 / (id - 1) as x")

    def test_large_and_streams(self):
        n = 300000
        t = pa.table({"a": range(n), "s": [str(i) for i in range(n)]})
        expected = [(str(i), 2 * i) for i in range(100000, n)]
        for threads in (1, 3):
            self.assertEqual(rows(quern.map(t, "s, a * 2 as b", where="a >= 100000", threads=threads)), expected)
        reader = quern.map(t, "s, a * 2 as b", where="a >= 100000", stream=True)
        self.assertEqual([row for batch in reader for row in rows(batch)], expected)

    def test_strings(self):
        t = pa.table({"s": ["MAIL", "it's", None], "d": pa.array(["x", "y", "x"]).dictionary_encode(),
                      "v": pa.array(["MAIL", "b", "c"], pa.string_view())})
        select = {"a": "s = 'MAIL'", "b": "s like '%''_'", "c": "case when d in ('x', 'z') then 1 else 0 end",
                  "d": "octet_length(v)", "e": "s is null or d <> 'x'"}
        expected = [(True, False, 1, 4, False), (False, True, 0, 1, True), (None, None, 1, 1, True)]
        for engine in ("generic", "jit"):
            self.assertEqual(rows(quern.map(t, select, engine=engine)), expected)

    def test_results_that_are_strings(self):
        t = pa.table({"s": ["Mail", "\u00e4 b", None], "d": pa.array(["x", "y", "x"]).dictionary_encode(),
                      "n": pa.array([7, None, -1], pa.int16()), "day": pa.array([0, 19782, -1], pa.date32())})
        select = {"a": "s || '/' || n::text", "b": "substring(ascii_upper(s), 1, 2)",
                  "c": "case when n > 0 then 'more' else d end", "e": "coalesce(s, 'none')", "f": "day::text",
                  "g": "substring(day::text, 1, 4)::i32", "h": "replace(trim(s), ' ', '-') like '%-b'"}
        expected = [("Mail/7", "MA", "more", "Mail", "1970-01-01", 1970, False),
                    (None, "\u00e4 ", "y", "\u00e4 b", "2024-02-29", 2024, True),
                    (None, None, "x", "none", "1969-12-31", 1969, None)]
        for engine in ("generic", "jit"):
            self.assertEqual(rows(quern.map(t, select, engine=engine)), expected)

    def test_errors(self):
        wrong = {
            "id +": "bad expression in select: end of the expression",
            "nme": "unknown column of t: nme; did you mean name",
            "name + 1": "utf8 and i64 have no common type",
            "coalesce(name, 1)": "utf8 and i64 have no common type",
            "id, id": "two result columns of one name: id",
            "price / 2": "quotient of decimals",
        }
        for select, text in wrong.items():
            with self.assertRaisesRegex(ValueError, text):
                quern.map(sales(), select)
        with self.assertRaisesRegex(ValueError, "map to nothing"):
            quern.map(sales(), {})
        with self.assertRaisesRegex(TypeError, "bad type of select: int"):
            quern.map(sales(), 5)


if __name__ == "__main__":
    unittest.main()
