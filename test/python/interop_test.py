# SPDX-License-Identifier: Apache-2.0
"""Tables of every library that speaks Arrow go in, and results go out to it.

Libraries that are not installed are skipped; with --all, as in the environment that has them all, a missing one is a
failure.
"""

import decimal
import importlib
import sys
import unittest

from tables import ITEMS, ORDERS, items, orders, pa, quern, rows

ALL = "--all" in sys.argv
JOINED = [(2, "bob", 10), (3, None, 20), (3, None, 30)]


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        if ALL:
            raise
        raise unittest.SkipTest(f"no {name}") from None


class Producers(unittest.TestCase):
    """Each gives the same two tables, whatever types it has for them."""

    def check(self, probe, build):
        result = quern.join(probe(), build(), on="id = order", select="id, name, qty")
        # pandas has NaN for null
        found = [tuple(None if value != value else value for value in row) for row in rows(result)]
        self.assertEqual(sorted(found, key=repr), sorted(JOINED, key=repr))
        counts = quern.aggregate(build(), by="order", aggs="sum(qty) as qty", where="qty > 15")
        self.assertEqual(sorted(rows(counts)), [(3, 50), (9, 40)])
        self.assertEqual([row[1] for row in rows(quern.sort(build(), by="qty desc", limit=2))], [40, 30])
        self.assertEqual([row[1] for row in rows(quern.filter(build(), "qty < 15"))], [10])

    def test_pyarrow(self):
        self.check(orders, items)
        self.check(lambda: orders().to_batches()[0], lambda: items().to_reader())
        self.check(lambda: pa.RecordBatchReader.from_stream(orders()), items)

    def test_polars(self):
        polars = library("polars")
        self.check(lambda: polars.DataFrame(ORDERS, strict=False), lambda: polars.DataFrame(ITEMS))
        categories = polars.DataFrame(ORDERS, strict=False).with_columns(polars.col("name").cast(polars.Categorical))
        self.check(lambda: categories, lambda: polars.DataFrame(ITEMS))

    def test_pandas(self):
        pandas = library("pandas")
        self.check(lambda: pandas.DataFrame(ORDERS), lambda: pandas.DataFrame(ITEMS))
        categories = pandas.DataFrame(ORDERS).astype({"name": "category"})
        self.check(lambda: categories, lambda: pandas.DataFrame(ITEMS))

    def test_duckdb(self):
        connection = library("duckdb").connect()
        connection.register("o", orders())
        connection.register("i", items())
        self.check(lambda: connection.sql("from o"), lambda: connection.sql('select "order", qty from i'))
        prices = connection.sql("select 1::decimal(15, 2) as p union all select 2.25::decimal(15, 2)")
        self.assertEqual(rows(quern.aggregate(prices, aggs="sum(p)")), [(decimal.Decimal("3.25"),)])

    def test_datafusion(self):
        context = library("datafusion").SessionContext()
        context.register_record_batches("o", [orders().to_batches()])
        context.register_record_batches("i", [items().to_batches()])
        self.check(lambda: context.table("o"), lambda: context.sql('select "order", qty from i'))

    def test_nanoarrow(self):
        nanoarrow = library("nanoarrow")
        self.check(lambda: nanoarrow.ArrayStream(orders()), lambda: nanoarrow.ArrayStream(items()))
        self.check(lambda: nanoarrow.c_array(orders().to_batches()[0]), lambda: nanoarrow.c_array_stream(items()))

    def test_results_and_readers(self):
        self.check(lambda: quern.filter(orders(), "id is null or id > 0"), lambda: quern.filter(items(), "qty > 0"))
        self.check(lambda: quern.filter(orders(), "id is null or id > 0", stream=True),
                   lambda: quern.filter(items(), "qty > 0"))


class Consumers(unittest.TestCase):
    def setUp(self):
        self.result = quern.join(orders(), items(), on="id = order", select="id, name, qty")
        self.expected = [{"id": row[0], "name": row[1], "qty": row[2]} for row in JOINED]

    def test_pyarrow(self):
        self.assertEqual(self.result.to_pyarrow().to_pylist(), self.expected)
        self.assertEqual(pa.RecordBatchReader.from_stream(self.result).read_all().to_pylist(), self.expected)

    def test_polars(self):
        polars = library("polars")
        self.assertEqual(self.result.to_polars().to_dicts(), self.expected)
        self.assertEqual(polars.DataFrame(self.result).to_dicts(), self.expected)

    def test_pandas(self):
        pandas = library("pandas")
        self.assertEqual(self.result.to_pandas()["qty"].tolist(), [10, 20, 30])
        self.assertEqual(pandas.DataFrame.from_arrow(self.result)["id"].tolist(), [2, 3, 3])

    def test_duckdb(self):
        duckdb = library("duckdb")
        joined = self.result
        self.assertEqual(duckdb.sql("select count(*), sum(qty) from joined").fetchall(), [(3, 60)])
        self.assertEqual(duckdb.sql("select a.qty from joined a join joined b using (qty) order by all").fetchall(),
                         [(10,), (20,), (30,)])
        del joined

    def test_datafusion(self):
        context = library("datafusion").SessionContext()
        self.assertEqual(context.from_arrow(self.result).to_pylist(), self.expected)

    def test_nanoarrow(self):
        nanoarrow = library("nanoarrow")
        self.assertEqual(nanoarrow.ArrayStream(self.result).read_all().to_pylist(), self.expected)
        self.assertEqual([field.name for field in nanoarrow.Schema(self.result).fields], ["id", "name", "qty"])

    def test_readers(self):
        """A Reader goes to the same consumers, once."""
        consumers = {
            "pyarrow": lambda library, reader: library.table(reader).num_rows,
            "polars": lambda library, reader: library.DataFrame(reader).height,
            "pandas": lambda library, reader: len(library.DataFrame.from_arrow(reader)),
            "duckdb": lambda library, reader: library.sql("select count(*) from reader").fetchall()[0][0],
            "datafusion": lambda library, reader: library.SessionContext().from_arrow(reader).count(),
            "nanoarrow": lambda library, reader: len(library.ArrayStream(reader).read_all()),
        }
        for name, count in consumers.items():
            with self.subTest(name):
                reader = quern.join(orders(), items(), on="id = order", stream=True)
                self.assertEqual(count(library(name), reader), 3)


class PolarsRecipe(unittest.TestCase):
    """That of hosts/python/README.md; quern.polars has its own tests."""

    def test_map_batches(self):
        polars = library("polars")
        lazy = polars.LazyFrame({"k": [1, 1, 2], "x": [1, 2, 3]})
        totals = lazy.map_batches(
            lambda frame: quern.aggregate(frame, by="k", aggs="sum(x) as x").to_polars(),
            schema={"k": polars.Int64, "x": polars.Int64}
        )
        self.assertEqual(totals.filter(polars.col("x") > 0).sort("k").collect().rows(), [(1, 3), (2, 3)])


class OtherCompilers(unittest.TestCase):
    """chDB has an LLVM of its own inside, of another version."""

    def test_two_llvms(self):
        chdb = library("chdb")
        settings = "compile_expressions = 1, min_count_to_compile_expression = 0"
        query = ("select sum(a * 2 + b * 3 - a * b) from (select number as a, number + 1 as b from numbers(1000)) "
                 f"settings {settings}")
        self.assertEqual(len(quern.join(orders(), items(), on="id = order", engine="jit")), 3)
        self.assertEqual(str(chdb.query(query)).strip(), "-330832500")
        self.assertEqual(quern.compile("sort keys=i64:desc:out payload=u8", engine="jit").stats["engine"], "jit")


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"])
