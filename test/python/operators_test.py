# SPDX-License-Identifier: Apache-2.0
"""Each function of the package on small tables, with its arguments in their several forms."""

import unittest

from tables import items, orders, pa, quern, rows, sorted_rows


class Joins(unittest.TestCase):
    def test_forms_of_on(self):
        expected = [(2, 10), (3, 20), (3, 30)]
        for on in ("id = order", [("id", "order")], {"id": "order"}):
            self.assertEqual(rows(quern.join(orders(), items(), on=on, select=["id", "qty"])), expected)
        self.assertEqual(len(quern.join(orders(), orders(), on="id", select=[])), 4)
        self.assertEqual(len(quern.join(orders(), orders(), on=["id"], null_equal=["id"], select=[])), 5)

    def test_every_kind(self):
        counts = {"inner": 3, "left": 6, "right": 4, "full": 7, "semi": 2, "anti": 3, "right_semi": 3, "right_anti": 1,
                  "anti_null_aware": 2, "mark": 5}  # fmt: skip
        for how, count in counts.items():
            for engine in ("jit", "generic"):
                for threads in (1, 3):
                    result = quern.join(orders(), items(), on="id = order", how=how, engine=engine, threads=threads)
                    self.assertEqual(len(result), count, how)
        with self.assertRaisesRegex(RuntimeError, "second match"):
            quern.join(orders(), items(), on="id = order", how="single")

    def test_names_of_the_result(self):
        twice = quern.join(orders(), orders(), on="id", select="probe.id, build.id, probe.name")
        self.assertEqual(twice.column_names, ["probe.id", "build.id", "name"])
        mark = quern.join(orders(), items(), on="id = order", how="mark", select="mark, id")
        self.assertEqual(rows(mark)[:3], [(False, 1), (True, 2), (True, 3)])

    def test_residual(self):
        late = pa.table({"order": [2, 3, 3], "least": [3.0, 1.0, 2.0]})
        for residual in ("price < least", [("price", "<", "least")]):
            self.assertEqual(rows(quern.join(orders(), late, on="id = order", residual=residual, select="id, least")),
                             [(2, 3.0)])

    def test_collation(self):
        left, right = pa.table({"s": ["Ada ", "BOB"]}), pa.table({"t": ["ada", "bob", "x"]})
        result = quern.join(left, right, on="s = t collate utf8mb4_general_ci")
        self.assertEqual(rows(result), [("Ada ", "ada"), ("BOB", "bob")])
        self.assertEqual(rows(quern.join(left, right, on=[("s", "t", "collate utf8mb4_general_ci")])), rows(result))

    def test_large_inputs_keep_the_order_of_probe(self):
        n = 300_000
        probe, build = pa.table({"k": range(n)}), pa.table({"k": range(0, n, 3), "v": range(0, n, 3)})
        for threads in (1, 4):
            result = quern.join(probe, build, on="k", select="v", threads=threads)
            self.assertEqual(pa.table(result)["v"].to_pylist(), list(range(0, n, 3)))


class Aggregations(unittest.TestCase):
    def test_forms_of_aggs(self):
        t = pa.table({"k": ["a", "b", "a", None], "x": [1, 2, 3, None], "odd, name": [1, 1, 1, 1]})
        expected = sorted([("a", 2, 4), ("b", 1, 2), (None, 1, None)], key=repr)
        for aggs in ("count(*) as n, sum(x) as s", ["count(*) as n", "sum(x) as s"],
                     {"n": "count(*)", "s": ("sum", "x")}):
            self.assertEqual(sorted_rows(quern.aggregate(t, by="k", aggs=aggs)), expected)
        whole = quern.aggregate(t, aggs=[("count",), ("sum", "odd, name")])
        self.assertEqual((whole.column_names, rows(whole)), (["count(*)", 'sum("odd, name")'], [(4, 4)]))
        self.assertEqual(sorted_rows(quern.aggregate(t, by=["k"])), [("a",), ("b",), (None,)])

    def test_functions(self):
        t = pa.table({"x": [1, 2, 3, 4], "b": [True, False, True, True], "s": ["p", "q", "r", "s"]})
        aggs = "quantile(x, 0.5), bool_or(b), string_agg(s, '-'), count(distinct b), first(s), last(s), var_pop(x)"
        aggs += ", sum(x) filter (where x >= 2.5)"
        self.assertEqual(rows(quern.aggregate(t, aggs=aggs)), [(2.5, True, "p-q-r-s", 2, "p", "s", 1.25, 7)])
        only = quern.aggregate(t, aggs="count(*)", where="b and s != 'p'")
        self.assertEqual(rows(only), [(2,)])

    def test_no_rows(self):
        nothing = pa.table({"x": pa.array([], pa.int64())})
        self.assertEqual(rows(quern.aggregate(nothing, aggs="sum(x), count(*)")), [(None, 0)])
        self.assertEqual(rows(quern.aggregate(nothing, by="x", aggs="count(*)")), [])

    def test_many_threads(self):
        t = pa.table({"k": [i % 1000 for i in range(500_000)], "x": [1] * 500_000})
        for stream in (False, True):
            result = quern.aggregate(t, by="k", aggs="sum(x) as s", threads=4, stream=stream)
            self.assertEqual(sorted_rows(result), sorted([(k, 500) for k in range(1000)], key=repr))

    def test_expressions_as_arguments(self):
        t = pa.table({
            "k": ["a", "b", "a"], "x": [1, 2, 3], "Y": [10.0, None, 30.0], "x-y": [7, 8, 9],
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(), "nothing": pa.nulls(3),
        })  # fmt: skip
        aggs = "sum(x * y) as a, sum(x-y) as b, count(*) filter (where x > 1) as c, max(x) as d, sum(x * y) as e"
        expected = [("a", 100.0, 16, 1, 3, 100.0), ("b", None, 8, 1, 2, None)]
        for engine in ("jit", "generic"):
            result = quern.aggregate(t, "k", aggs, engine=engine)
            self.assertEqual(sorted_rows(result), expected)
        self.assertEqual(sorted_rows(quern.aggregate(t, "k", aggs, stream=True)), expected)
        self.assertEqual(
            sorted_rows(quern.aggregate(t, "kind", "sum(10 / (x - 2)), first(k), count(nothing + x)", where="x <> 2")),
            [("u", 0, "a", 0)],
        )
        for aggs, spec in {
            "sum(x * y), max(x), min(k)":
                "in=i64,f64:nullable,utf8 aggs=sum(multiply(cast($0,f64),$1)),max($0),min($2)",
            "sum(x) filter (where x * 2 > 3), sum(-x) filter (where x > 1), count(*)":
                "in=i64,bool aggs=sum($0):filter(greater(multiply_checked($0,2:i64),3:i64)),"
                "sum(negate_checked($0)):filter($1),count_star",
            "sum(x + 1), count(kind)": "aggs=sum(i64),count(dictionary(i32,utf8))",
        }.items():  # fmt: skip
            self.assertEqual(quern.aggregate(t, "k", aggs).stats["spec"], "aggregate keys=utf8 " + spec)
        self.assertEqual(quern.aggregate(t, "k", {"total": "sum(x + 1)"}).column_names, ["k", "total"])
        self.assertEqual(rows(quern.aggregate(t, aggs=[("sum", "x-y"), "avg(x + x-y)"])), [(24, -16.0)])
        for text, error in {
            "sum(x * z)": "unknown column of t: z",
            "sum(x-z)": "unknown column of t: x-z",
            "sum(k + 1)": "k \\+ 1: utf8 and i64 have no common type",
            "sum(x > 1)": "sum",
        }.items():
            with self.assertRaisesRegex(ValueError, error):
                quern.aggregate(t, "k", text)

    def test_expressions_over_many_rows(self):
        n = 200000
        t = pa.table({"k": [i % 3 for i in range(n)], "x": range(n)})
        for threads in (1, 3):
            aggs = "sum(x * 2), first(x + 1)"
            found = sorted_rows(quern.aggregate(t, "k", aggs, where="x >= 70000", threads=threads))
            firsts = [70002, 70000, 70001]  # of each k
            self.assertEqual(found, [(k, 2 * sum(range(x, n, 3)), x + 1) for k, x in enumerate(firsts)])
        with self.assertRaisesRegex(RuntimeError, "row 150000: divide_checked"):
            quern.aggregate(t, "k", "sum(1 / (x - 150000))", where="x >= 70000")


class Sets(unittest.TestCase):
    LEFT = {"k": [1, 1, 1, 2, None, None], "s": ["a", "a", "a", "b", None, None]}
    RIGHT = {"s": ["a", "B", None, "c"], "k": [1.0, 2.0, None, 0.5], "more": [0, 0, 0, 0]}

    def test_kinds(self):
        left, right = pa.table(self.LEFT), pa.table(self.RIGHT)
        a, b, null = (1.0, "a"), (2.0, "b"), (None, None)
        for options in ({"engine": "jit"}, {"engine": "generic"}, {"stream": True, "threads": 3}):
            for found, expected in (
                (quern.union(left, right, **options), [a, b, null, (2.0, "B"), (0.5, "c")]),
                (quern.intersect(left, right, **options), [a, null]),
                (quern.except_(left, right, **options), [b]),
                (quern.intersect(left, left, all=True, **options), [a, a, a, b, null, null]),
                (quern.except_(left, right, None, True, **options), [a, a, b, null]),
            ):
                self.assertEqual(found.column_names, ["k", "s"])
                self.assertEqual(sorted_rows(found), sorted(expected, key=repr))

    def test_forms_of_by(self):
        left, right = pa.table(self.LEFT), pa.table(self.RIGHT)
        for by in ("s collate utf8mb4_general_ci", [("s", "collate", "utf8mb4_general_ci")]):
            self.assertEqual(len(quern.except_(left, right, by)), 0)
            self.assertEqual(len(quern.intersect(left, right, by=by)), 3)
        self.assertEqual(sorted_rows(quern.union(left, right, by="s", left_where="k = 2", right_where="k < 2")),
                         [("a",), ("b",), ("c",)])

    def test_errors(self):
        left, right = pa.table(self.LEFT), pa.table(self.RIGHT)
        for text, arguments in (
            ("unknown column of left: more; accepted: k, s", {"by": "more"}),
            ("column named twice in by: s; accepted: once", {"by": "s, s"}),
            ("number of columns out of range: 0; accepted: 1 to 16, chosen by by", {"by": []}),
        ):
            with self.assertRaises(ValueError) as caught:
                quern.union(left, right, **arguments)
            self.assertEqual(str(caught.exception), text)
        with self.assertRaisesRegex(ValueError, "types that do not compare: column k of left is .*; accepted"):
            quern.union(left, pa.table({"k": ["a"]}), by="k")

    def test_many_threads(self):
        n = 300_000
        left, right = pa.table({"k": [i % 100_000 for i in range(n)]}), pa.table({"k": range(0, n, 3)})
        for stream in (False, True):
            options = {"threads": 3, "stream": stream}
            self.assertEqual(len(quern.union(left, right, **options)), 100_000 + 66_666)
            self.assertEqual(len(quern.intersect(left, right, **options)), 33_334)
            self.assertEqual(len(quern.except_(left, right, all=True, **options)), n - 33_334)


class Sorts(unittest.TestCase):
    def test_forms_of_by(self):
        for by in ("id desc nulls first, name", [("id", "desc", "nulls first"), "name"], ["id desc nulls first"]):
            self.assertEqual([row[0] for row in rows(quern.sort(orders(), by=by))], [None, 4, 3, 2, 1])
        top = quern.sort(orders(), by="price desc", limit=2, select="name, id")
        self.assertEqual(rows(top), [("a text of more than 12 bytes", None), ("dora", 4)])

    def test_window(self):
        t = pa.table({"shop": [1, 2, 1, 2], "price": [5, 7, 5, 9]})
        result = quern.sort(t, by="price", partition_by="shop", window="rank as place, row_number")
        self.assertEqual(rows(result), [(1, 5, 1, 1), (1, 5, 1, 2), (2, 7, 1, 1), (2, 9, 2, 2)])
        self.assertEqual(quern.sort(t, by="price", window={"place": "dense_rank"}).column_names,
                         ["shop", "price", "place"])

    def test_stable_and_large(self):
        n = 300_000
        t = pa.table({"k": [i % 7 for i in range(n)], "row": range(n)})
        for threads in (1, 4):
            result = pa.table(quern.sort(t, by="k", stable=True, threads=threads))
            self.assertEqual(result["row"].to_pylist(), sorted(range(n), key=lambda i: (i % 7, i)))
        self.assertEqual(rows(quern.sort(t, by="row desc", limit=2, stream=True)),
                         [((n - 1) % 7, n - 1), ((n - 2) % 7, n - 2)])


class Filters(unittest.TestCase):
    def test_conditions(self):
        cases = {
            "id < 2.5": [1, 2], "id = 2.5": [], "id != 2.5": [1, 2, 3, 4], "id between 1.5 and 3": [2, 3],
            "id in (1, 2.5, 4)": [1, 4], "id > 1e30": [], "not (id >= 2)": [1],
            "name like '%o%' and price > 2": [2, 4, None], "id is null": [None], "NAME = 'ada'": [1],
            "price >= id": [1, 2, 4], "price is null or id = 1": [1, 3], "name collate utf8mb4_general_ci = 'ADA'": [1],
            "name in ('bob', 'it''s')": [2], }  # fmt: skip
        for where, expected in cases.items():
            for engine in ("jit", "generic"):
                self.assertEqual([row[0] for row in rows(quern.filter(orders(), where, "id", engine=engine))], expected,
                                 where)

    def test_large_filters_keep_the_order(self):
        n = 300_000
        t = pa.table({"x": range(n), "s": [f"text number {i % 100}, long enough" for i in range(n)],
                      "b": [i % 3 == 0 for i in range(n)]})
        expected = [row for row in rows(t) if row[0] % 5 == 0 or row[2]][:1000]
        t = t.append_column("m", pa.array([i % 5 for i in range(n)], pa.int8()))
        for threads in (1, 4):
            self.assertEqual(rows(quern.filter(t, "m = 0 or b", ["x", "s", "b"], threads=threads))[:1000], expected)


if __name__ == "__main__":
    unittest.main()
