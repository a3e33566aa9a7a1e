# SPDX-License-Identifier: Apache-2.0
"""quern.scan and quern.run: steps, names, what is checked when, engines, threads, errors."""

import decimal
import unittest

import pyarrow as pa
import quern
from tables import rows

D = decimal.Decimal


def sales():
    return pa.table({
        "item": pa.array([1, 2, 1, 9, 3], pa.int32()),
        "price": pa.array([D("1.50"), D("3.00"), D("7.00"), D("1.00"), None], pa.decimal128(15, 2)),
        "qty": [3, 2, 1, 1, None],
        "kind": pa.array(["a", "b", "a", "b", None]).dictionary_encode(),
    })  # fmt: skip


def items():
    return pa.table({"id": [1, 2, 4], "category": ["toys", "books", "none"]})


class Query(unittest.TestCase):
    def test_all_steps(self):
        frame = (
            quern.scan(sales())
            .filter("qty > 0 and price * qty > 1")
            .join(items(), on="item = id")
            .select("category, QTY as n", revenue="price * qty")
            .aggregate("category", revenue="sum(revenue)", most="max(n)")
            .sort("revenue desc", limit=10)
        )
        self.assertEqual(frame.column_names, ["category", "revenue", "most"])
        expected = [("toys", D("11.50"), 3), ("books", D("6.00"), 2)]
        for engine in ("auto", "jit", "generic"):
            for threads in (1, 3):
                result = frame.collect(engine=engine, threads=threads)
                self.assertEqual(rows(result), expected)
                self.assertIn(result.stats["engine"], ("jit", "generic") if engine == "auto" else (engine,))
        self.assertEqual(result.stats["pipelines"][1]["rows_in"], 5)
        self.assertEqual(result.stats["pipelines"][1]["rows_out"], 3)

    def test_text_runs_again(self):
        few = quern.scan(items(), "items").filter("category <> 'none'")
        frame = quern.scan(sales(), "sales").join(few, on="item = id", how="semi").aggregate(aggs="count(*) as n")
        self.assertEqual(rows(frame.collect()), [(3,)])
        self.assertEqual(
            frame.text,
            "r0:\n  scan items\n  filter category <> 'none'\n"
            "result:\n  scan sales\n  join.semi r0 on item = id\n  aggregate count(*) as n\n",
        )
        self.assertEqual(rows(quern.run(frame.text, {"sales": sales(), "items": quern.scan(items())})), [(3,)])

    def test_frames_share_steps_and_tables(self):
        scanned = quern.scan(sales())
        small = scanned.filter("price < 5").select("item as k", "price as p")
        twice = scanned.join(small, on="item = k and price > p").join(small.select("k as l"), on="item = l", how="semi")
        self.assertEqual(rows(twice.select("item", "price", "p").collect()), [(1, D("7.00"), D("1.50"))])
        self.assertEqual(twice.text.count("scan t0"), 3)

    def test_texts_with_offsets_and_views(self):
        # Texts of joined tables pass as views, and come out in the type that the table has.
        texts = ["", "short", "a text of twenty-two b.", None, "x" * 5000]
        table = pa.table({"id": range(700), "text": [texts[i % 5] for i in range(700)], "other": ["o"] * 700})
        more = pa.table({"key": range(0, 700, 3), "name": [texts[i % 4] for i in range(0, 700, 3)]})
        facts = pa.table({"id2": [i * 37 % 900 for i in range(20_000)], "n": range(20_000)})
        for kind in (pa.string(), pa.binary(), pa.large_string(), pa.string_view()):
            typed = table.set_column(1, "text", table["text"].cast(kind))
            frame = quern.scan(facts).join(typed, on="id2 = id").join(more, on="id2 = key", how="left")
            for engine, threads in (("generic", 1), ("jit", 2)):
                grouped = frame.aggregate(["text", "name"], n="sum(n)", most="max(text)")
                groups = grouped.collect(engine=engine, threads=threads, memory_limit=64 << 20)
                types = [field.type for field in pa.table(groups).schema]
                self.assertEqual(types, [kind, pa.string(), pa.int64(), kind])
                expected = {}
                for number, n in zip(facts["id2"].to_pylist(), facts["n"].to_pylist()):
                    if number < 700:
                        key = (texts[number % 5], texts[number % 4] if number % 3 == 0 else None)
                        expected[key] = expected.get(key, 0) + n
                found = [(t.decode() if isinstance(t, bytes) else t, name, n) for t, name, n, _ in rows(groups)]
                self.assertEqual(sorted(found, key=str), sorted(((*k, n) for k, n in expected.items()), key=str))
                plain = frame.select("n", "text", "name").sort("n").collect(engine=engine, threads=threads)
                self.assertEqual(pa.table(plain).schema.field("text").type, kind)
                self.assertEqual(plain.num_rows, sum(number < 700 for number in facts["id2"].to_pylist()))
            if kind == pa.string():  # both of tables that are joined
                same = frame.filter("text = name").aggregate(aggs="count(*) as n")
                self.assertEqual(rows(same.collect()), [(
                    sum(v < 700 and v % 3 == 0 and texts[v % 5] is not None and texts[v % 5] == texts[v % 4]
                        for v in facts["id2"].to_pylist()),)])

    def test_kinds_of_joins(self):
        probe, build = quern.scan(pa.table({"a": [1, 2, None]})), quern.scan(pa.table({"b": [1, 1, 4], "v": [5, 6, 7]}))
        self.assertEqual(sorted(rows(probe.join(build, "a = b").select("a", "v").collect())), [(1, 5), (1, 6)])
        left = rows(probe.join(build, "a = b", how="left").select("a", "v").collect())
        self.assertEqual(sorted(left, key=str), [(1, 5), (1, 6), (2, None), (None, None)])
        self.assertEqual(rows(probe.join(build, "a = b", how="anti").collect()), [(2,), (None,)])
        probe = probe.filter("a is not null")
        self.assertEqual(rows(probe.join(build, "a = b", how="mark").select("mark").collect()), [(True,), (False,)])

    def test_dictionaries_and_nulls(self):
        frame = quern.scan(sales()).aggregate("kind", n="count(*)", p="sum(price) filter (where qty > 1)")
        groups = sorted(rows(frame.collect()), key=str)
        self.assertEqual(groups, [("a", 2, D("1.50")), ("b", 2, D("3.00")), (None, 1, None)])
        frame = quern.scan(sales()).filter("kind is not null").sort("kind desc, item", limit=3, offset=1)
        self.assertEqual(rows(frame.select("kind", "item").collect()), [("b", 9), ("a", 1), ("a", 1)])
        self.assertEqual(rows(quern.scan(sales()).select("kind", "kind as again").limit(1).collect()), [("a", "a")])

    def test_no_rows(self):
        empty = quern.scan(sales().slice(0, 0))
        self.assertEqual(rows(empty.collect()), [])
        self.assertEqual(rows(empty.aggregate(n="count(*)", s="sum(price)").collect()), [(0, None)])
        self.assertEqual(rows(quern.scan(sales()).join(empty.select("item as i"), "item = i").collect()), [])
        self.assertEqual(rows(empty.sort("item").select("item + 1 as j").collect()), [])

    def test_order_of_rows(self):
        n = 300_000
        t = pa.table({"k": pa.array(range(n)), "s": [str(i % 7) for i in range(n)]})
        result = pa.table(quern.scan(t).filter("k % 3 = 1").select("k * 2 as k", "s").collect(threads=4))
        self.assertEqual(result["k"].to_pylist(), [2 * k for k in range(1, n, 3)])
        self.assertEqual(result["s"].to_pylist(), [str(k % 7) for k in range(1, n, 3)])
        result = pa.table(quern.scan(t).sort("k desc").select("k + 1 as k").limit(70_000, 5).collect(threads=4))
        self.assertEqual(result["k"].to_pylist(), list(range(n - 5, n - 70_005, -1)))

    def test_mistakes_are_found_at_once(self):
        frame = quern.scan(sales())
        for call, text in (
            (lambda: frame.filter("pric > 3"), "unknown column: pric; did you mean price\\? accepted: item"),
            (lambda: frame.filter("price"), "filter that is no condition|condition that is no bool"),
            (lambda: frame.select(), "select of nothing"),
            (lambda: frame.select("item", "qty as item"), "two columns of one name: item"),
            (lambda: frame.join(items(), "item = category"), "keys of types that do not compare"),
            (lambda: frame.join(items(), "item < id"), "join without a key"),
            (lambda: frame.join(items(), "item = id", how="outer"), "unknown kind of join: outer"),
            (lambda: frame.aggregate(), "aggregation of nothing"),
            (lambda: frame.sort("item", limit=0), "bad limit: 0"),
            (lambda: frame.limit(3).filter("item > 1"), "limit within a query"),
            (lambda: frame.collect(engine="llvm"), "unknown engine"),
            (lambda: quern.run("scan t\nsort x", {"t": sales()}), "line 2: unknown column: x"),
            (lambda: quern.run("scan t", {"t": frame.filter("item > 1")}), "table that is a query: t"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()
        with self.assertRaisesRegex(TypeError, "data"):
            quern.scan(5)

    def test_errors_of_rows_and_memory(self):
        with self.assertRaisesRegex(RuntimeError, "division by 0"):
            quern.scan(sales()).select("qty / (item - 1) as x").collect()
        t = pa.table({"k": pa.array(range(200_000))})
        with self.assertRaisesRegex(MemoryError, "memory limit"):
            quern.scan(t).aggregate("k").collect(memory_limit="1M")

    def test_looks_inside(self):
        frame = quern.scan(sales(), "sales").filter("qty > 1").aggregate("item", s="sum(price)")
        self.assertIn("filter i64:nullable > 1  [$2]", frame.explain())
        self.assertIn("== aggregate keys=i32 aggs=sum(decimal128:nullable)", frame.dump("plan"))
        self.assertIn("scan sales", repr(frame))

    def test_columns_that_are_not_mentioned(self):
        """They are not exported, and errors name them."""
        wide = sales().append_column("odd", pa.array([[1]] * sales().num_rows)).append_column("qty", sales()["qty"])
        with self.assertRaisesRegex(ValueError, "line 2: .*accepted: .*odd"):
            quern.run("scan sales\naggregate sum(price_) as s", {"sales": wide})
        text = "scan sales\naggregate sum(price) as s by item\nsort item"
        expected = quern.run(text, {"sales": sales()}).to_pyarrow()
        self.assertEqual(quern.run(text, {"sales": wide, "other": wide}).to_pyarrow(), expected)
        reader = sales().to_reader()  # can be read once
        self.assertEqual(quern.run(text, {"sales": reader}).to_pyarrow(), expected)
        counted = quern.run("scan sales\naggregate count(*) as n", {"sales": wide}).to_pyarrow()
        self.assertEqual(counted.to_pylist(), [{"n": wide.num_rows}])

    def test_counters_of_steps(self):
        frame = quern.scan(sales(), "sales").filter("qty > 1").aggregate("item", s="sum(price)").sort("item")
        for _ in range(2):  # those of an earlier run are not among them
            pipelines = frame.collect().stats["pipelines"]
            steps = [(step["step"], step["spec"].split()[0], step["rows"]) for p in pipelines for step in p["steps"]]
            rows, passed, groups = pipelines[0]["rows_in"], pipelines[0]["rows_out"], pipelines[1]["rows_in"]
            self.assertEqual(steps, [(0, "filter", rows), (1, "aggregate", passed), (0, "sort", groups)])

    def test_parameters(self):
        frame = quern.scan(sales(), "sales").filter("qty > 1").aggregate("item", s="sum(price * qty)").sort("item")
        expected = frame.collect().to_pyarrow()
        for params in ({"piece_rows": 1}, "fuse=off batch_size=64", {"0.1.batch_size": 64, "1.prefix_words": 1}):
            for engine in ("jit", "generic"):
                self.assertEqual(frame.collect(engine=engine, params=params).to_pyarrow(), expected)
        self.assertEqual(quern.run(frame.text, {"sales": sales()}, params="piece_rows=2").to_pyarrow(), expected)
        explained = frame.explain(params={"piece_rows": 7, "0.1.batch_size": 64})
        self.assertIn("pieces of 7 rows: given\n", explained)
        self.assertEqual(explained.count("    batch_size = 64\n"), 1)
        self.assertNotIn("  map ", frame.explain())
        self.assertEqual(frame.explain().count("    fused: multiply("), 1)
        self.assertNotIn("fused", frame.explain(params="fuse=off"))
        self.assertIn("  map ", frame.explain(params="fuse=off"))
        self.assertIn("batch_size = 64 ", frame.dump("plan", params="0.1.batch_size=64"))
        for params, text in (
            ("odd=1", "unknown plan parameter of a query: odd"),
            ("odd", "accepted: name=value"),
            ("5.batch_size=1", "accepted: 0 to 1"),
            ("1.1.batch_size=1", "accepted: 0 to 0, the end"),
            ("1.0.fuse=off", "unknown name of plan parameter 1.0.fuse"),
            ("piece_rows=0", "accepted: 1 to 65536 rows"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                frame.collect(params=params)


if __name__ == "__main__":
    unittest.main()
