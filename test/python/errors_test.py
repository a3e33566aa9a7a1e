# SPDX-License-Identifier: Apache-2.0
"""Every error is an exception of the right class, with one line of text: what is wrong, the value, what is accepted."""

import unittest

from tables import items, message_of, orders, pa, quern

NESTED = pa.table({"k": [1, 2], "list": [[1], [2]]})

BAD_VALUES = [
    (lambda: quern.join(orders(), items(), on="idd = order"),
     "unknown column of probe: idd; did you mean id? accepted: id, name, price"),
    (lambda: quern.join(orders(), items(), on="id = order", how="iner"),
     "unknown join type: iner; did you mean inner? accepted: inner, left,"),
    (lambda: quern.join(orders(), items(), on="id = order", select="nam"),
     "unknown column: nam; did you mean name? accepted: id, name, price, order"),
    (lambda: quern.join(orders(), items(), on="id = order", how="semi", select="qty"),
     "column of build does not come out of join type semi: qty;"),
    (lambda: quern.join(orders(), orders(), on="id", select="name"),
     "ambiguous column: name; accepted: probe.name, build.name"),
    (lambda: quern.join(orders(), items(), on="id = order", select="id, id"),
     "column selected twice: probe.id; accepted: once"),
    (lambda: quern.join(orders(), items(), on="id ="), "bad value of on: id =; accepted: L=R"),
    (lambda: quern.join(orders(), items(), on=[]), "bad number of keys: 0; accepted: 1 to 16"),
    (lambda: quern.join(orders(), orders(), on="name collate nocase"), "unknown collation: nocase;"),
    (lambda: quern.join(orders(), items(), on="id = order collate utf8mb4_bin"),
     "collation on a column without text: column id of probe is int64;"),
    (lambda: quern.join(orders(), items(), on="id = order", null_equal="qty"),
     "unknown key in null_equal: qty; accepted: id"),
    (lambda: quern.join(orders(), items(), on="id = order", residual=[("id", "~", "qty")]),
     "bad comparison in residual:"),
    (lambda: quern.join(orders(), items(), on="id = order", threads=0),
     "bad number of threads: 0; accepted: 1 to 1024"),
    (lambda: quern.join(orders(), items(), on="id = order", memory_limit="lots"),
     "bad memory_limit: lots; accepted: bytes, or a text as 512M or 2G"),
    (lambda: quern.join(orders(), items(), on="id = order", engine="jti"),
     "unknown engine: jti; did you mean jit? accepted: auto, jit, generic"),
    (lambda: quern.join(orders(), items(), on="id = order", params={"layout": "round"}), "layout"),
    (lambda: quern.join(NESTED, NESTED, on="k"),
     "unsupported type of column list of probe: list; accepted: bool, integers,"),
    (lambda: quern.filter(NESTED, "k = 1"), "unsupported type of column list of t: list; accepted: bool, integers,"),
    (lambda: quern.aggregate(orders()), "aggregation of nothing: neither by nor aggs; accepted: one of them, or both"),
    (lambda: quern.aggregate(orders(), aggs="summ(id)"), "unknown aggregate function: summ; did you mean sum"),
    (lambda: quern.aggregate(orders(), aggs="sum(name)"), "utf8"),
    (lambda: quern.aggregate(orders(), by="id", aggs="sum(price) as id"),
     "two result columns of one name: id; accepted: different names"),
    (lambda: quern.sort(orders(), by="id upwards"),
     "unknown word in by: upwards; accepted: desc, asc, nulls first, nulls last, collate NAME"),
    (lambda: quern.sort(orders(), by="id", limit=0), "bad limit: 0; accepted: 1 to 2^63-1"),
    (lambda: quern.sort(orders(), by="id, id"), "key given twice: id; accepted: once, or with another collation"),
    (lambda: quern.filter(orders(), "id >"), "bad condition in where: end of the condition; accepted: "),
    (lambda: quern.filter(orders(), "id * 2 > 4"),
     "expression in where: id * 2 > 4; accepted: comparisons of columns with constants or columns; quern.scan(t)"),
    (lambda: quern.filter(orders(), "name"),
     "condition that is no bool in where: column name of t is utf8; accepted: a bool column, or a comparison"),
    (lambda: quern.filter(orders(), "id like 'a'"), "like on a column without text in where: column id of t is int64;"),
    (lambda: quern.filter(orders(), "id = name"),
     "columns of types that do not compare: column id of t is int64, column name of t is utf8;"),
    (lambda: quern.compile("join.iner keys=i64"), "join"),
    (lambda: quern.compile("join.inner keys=i64").dump("asmm"), "asm"),
    (lambda: quern.sort(pa.table({}), by="k"), "unknown column of t: k; accepted: none, since t has no columns"),
    (lambda: quern.sort(orders(), by="id", window={"place": "rank, row_number"}),
     "bad number of window functions for a name: rank, row_number; accepted: one"),
    (lambda: quern.filter(orders(), "name = '\ud800'"),
     r"text of where that is no Unicode: '\ud800'; accepted: no lone surrogates"),
    (lambda: quern.aggregate(orders(), aggs="summ\n(id)"), "summ"),
    (lambda: quern.filter(orders(), "id = 1 \0 2"), "accepted: "),
    (lambda: quern.join(pa.chunked_array([[1]]), items(), on="id"),
     "no table in probe: Arrow format l; accepted: +s, rows made of columns"),
]  # fmt: skip


class Errors(unittest.TestCase):
    def test_bad_values(self):
        for call, text in BAD_VALUES:
            with self.assertRaises(ValueError) as error:
                call()
            self.assertIn(text, message_of(error))
            self.assertNotIn("\n", message_of(error))

    def test_objects_without_arrow_data(self):
        for data in (None, 5, [1, 2], {"id": [1]}):
            with self.assertRaisesRegex(
                    TypeError, "no Arrow data in build: an object of type .*; accepted: objects with __arrow_c_str"):
                quern.join(orders(), data, on="id")
        with self.assertRaisesRegex(TypeError, "bad type of where: int; accepted: a text"):
            quern.filter(orders(), 5)
        for call, what in ((lambda: quern.join(orders(), items(), on=5), "on: int"),
                           (lambda: quern.aggregate(orders(), by=5), "by: int"),
                           (lambda: quern.sort(orders(), by=None), "by: NoneType"),
                           (lambda: quern.sort(orders(), by=[b"id"]), "by: bytes"),
                           (lambda: quern.filter(orders(), "id = 1", 5), "select: int")):  # fmt: skip
            with self.assertRaisesRegex(TypeError, f"^bad type of {what}; accepted: a text, or a list of texts$"):
                call()
        with self.assertRaisesRegex(TypeError,
                                    "^bad type of params: list; accepted: a dictionary, or a text as layout=dense$"):
            quern.sort(orders(), by="id", params=["layout=dense"])
        with self.assertRaisesRegex(
                TypeError, "^bad type of progress: str; accepted: True, False, or a function of done and total$"):
            quern.sort(orders(), by="id", progress="bar")

    def test_memory_limit(self):
        t = pa.table({"k": range(200_000)})
        for call in (lambda: quern.join(t, t, on="k", memory_limit=100_000),
                     lambda: quern.sort(t, by="k", memory_limit="100k"),
                     lambda: quern.aggregate(t, by="k", memory_limit="100K")):  # fmt: skip
            with self.assertRaises(MemoryError) as error:
                call()
            self.assertIn("memory", message_of(error))

    def test_data_without_an_answer(self):
        with self.assertRaises(RuntimeError) as error:
            quern.aggregate(pa.table({"x": [2**62, 2**62]}), aggs="sum(x)")
        self.assertIn("accepted", message_of(error))

    def test_producers_that_fail(self):
        def batches():
            yield pa.record_batch({"x": [1]})
            raise OSError("the disk is gone")

        schema = pa.schema({"x": pa.int64()})
        for stream in (False, True):
            reader = pa.RecordBatchReader.from_batches(schema, batches())
            with self.assertRaisesRegex(RuntimeError, "^no batch of t: .*the disk is gone$"):
                quern.aggregate(reader, aggs="sum(x)", stream=stream)
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            pa.table(quern.join(reader, pa.table({"x": [1]}), on="x", stream=True))

    def test_arrays_that_are_wrong(self):
        offsets = pa.py_buffer(b"\x00\x00\x00\x00\x64\x00\x00\x00\x01\x00\x00\x00")  # 0, 100, 1: they fall
        wrong = pa.Array.from_buffers(pa.utf8(), 2, [None, offsets, pa.py_buffer(b"a" * 100)])
        t = pa.table({"s": wrong, "k": [1, 2]})
        for call in (lambda: quern.filter(t, "s = 'a'"), lambda: quern.filter(t, "k = 1"),
                     lambda: quern.sort(t, by="s"),
                     lambda: quern.join(t, pa.table({"s": pa.array(["a"], pa.string_view())}), on="s")):  # fmt: skip
            with self.assertRaises(ValueError):
                call()


if __name__ == "__main__":
    unittest.main()
