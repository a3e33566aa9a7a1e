# SPDX-License-Identifier: Apache-2.0
"""The engines that answer whole queries, one class each: those of bench/peers/engines.py, which says how each keeps its
tables and how many threads it takes, and Quern. Every class has:

    name, version()
    variants(suite)         names of settings; each is tried, and the best counts
    load(suite, tables)     puts pyarrow tables, by their names, into the engine's own memory format; not timed
    run(query, variant)     the query of query_list.py; the result, complete; timed
    table(result)           the result as a pyarrow table; not timed
    drop()                  gives the tables' memory back
    supports(query)         whether it has the query; a class without this function has all of them

Decimals stay decimals in all of them, and overflow checks stay on.
"""
import importlib
import inspect
import itertools
import os
import sys

import engines
import pyarrow as pa
import single_steps
import tpch
from hand_written_engine import HandWritten

_SQL, _STEPS = ",sql", ",steps"


def _with_texts(variants):
    return tuple(variant + text for variant in variants for text in (_SQL, _STEPS))


def _text_of(query, variant):
    """The variant without the name of its text, and that text."""
    if variant.endswith(_STEPS):
        return variant.removesuffix(_STEPS), query.sql_of_steps
    return variant.removesuffix(_SQL), query.sql


class Duckdb(engines.DuckdbEngine):
    """Tables of an in-memory database; results are rows of Python's values, which take less time than Arrow for as
    few rows as these queries have."""

    def variants(self, _suite):
        return ("default",)

    def run(self, query, _variant):
        return self._connection.execute(query.sql).fetchall()

    def table(self, result):
        names = [column[0] for column in self._connection.description]
        return pa.table({name: [row[i] for row in result] for i, name in enumerate(names)})


class Datafusion(engines.DatafusionEngine):
    """The variants of bench/peers, rows a batch and texts as views or as utf8, each with two texts of a query: the SQL,
    whose tables it joins in the order in which they are named, and SQL with the joins of the .quern text."""

    def variants(self, suite):
        return _with_texts(super().variants(suite))

    def load(self, suite, tables):
        as_views = {name: table.cast(engines._with_views(table.schema)) for name, table in tables.items()}
        for settings in super().variants(suite):
            rows, text = settings.split(",")
            self._contexts[settings] = self._context(int(rows.removeprefix("batch")), None,
                                                     as_views if text == "view" else tables)

    def run(self, query, variant):
        settings, text = _text_of(query, variant)
        return self._contexts[settings].sql(text).to_arrow_table()

    def table(self, result):
        return result


class Polars(engines.PolarsEngine):
    """Lazy frames written by hand (polars_tpch.py, polars_ssb.py, polars_seam.py), with both of its engines."""

    def __init__(self, threads):
        super().__init__(threads)
        self._queries = {name: query for suite in ("tpch", "ssb", "seam")
                         for name, query in importlib.import_module(f"polars_{suite}").QUERIES.items()}

    def run(self, query, variant):
        frames = {name: frame.lazy() for name, frame in self._frames.items()}
        return self._queries[query.name](frames).collect(engine=variant)


class Clickhouse(engines.ClickhouseEngine):
    """Tables of the Memory engine, whose columns have no nulls; results are streams of Arrow. Two join algorithms are
    tried, each with and without the filter that it makes of the build keys, and with two texts of a query: the SQL,
    whose joins it orders itself, and SQL with the joins of the .quern text, in that order. Its JIT compiles at the
    first use."""

    _SETTINGS = ("compile_expressions = 1, min_count_to_compile_expression = 0, compile_aggregate_expressions = 1, "
                 "min_count_to_compile_aggregate_expression = 0, max_bytes_ratio_before_external_join = 0, "
                 "max_bytes_ratio_before_external_group_by = 0, max_bytes_ratio_before_external_sort = 0")

    def variants(self, _suite):
        return _with_texts(",".join(names) for names in itertools.product(self._ALGORITHM, self._FILTER))

    def load(self, _suite, tables):
        self._tables = list(tables)
        for name, arrays in tables.items():
            columns = ", ".join(f"{field.name} {self._type(field.type)}" for field in arrays.schema)
            self._session.query(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
            # Python(..) takes a variable of this function by its name.
            self._session.query(
                f"INSERT INTO {name} SELECT * FROM Python(arrays) SETTINGS max_threads = 1, max_insert_threads = 1")

    def _type(self, arrow_type):
        if pa.types.is_decimal(arrow_type):
            return f"Decimal({arrow_type.precision}, {arrow_type.scale})"
        return self._TYPES[arrow_type]

    def run(self, query, variant):
        names, text = _text_of(query, variant)
        choices = [self._CHOICES[name] for name in names.split(",")]
        settings = [f"max_threads = {self._threads}", self._SETTINGS, *choices]
        if variant.endswith(_STEPS):
            settings.append("query_plan_optimize_join_order_limit = 0, query_plan_join_swap_table = 'false'")
        return self._session.query(f"{text} SETTINGS {', '.join(settings)}", "ArrowStream")


class Quern:
    """The .quern text over Arrow tables; results are Arrow tables. Its kernels are in its cache from the first run
    on. `auto` begins with generic kernels and compiles once that pays; `jit` compiles at once."""

    name, _KERNELS = "quern", ("auto", "jit")

    def __init__(self, threads):
        sys.path.insert(0, os.path.join(tpch.ROOT, "build", "python-site"))
        import quern

        if not hasattr(quern, "run"):
            raise SystemExit(f"no function run in the Python package: {inspect.getfile(quern)}; accepted: a package "
                             "that reads texts of queries")
        self._quern, self._threads, self._tables = quern, threads, {}

    def version(self):
        return self._quern.__version__

    def variants(self, _suite):
        return self._KERNELS

    def load(self, _suite, tables):
        self._tables = tables

    def run(self, query, variant):
        return self._run(query.steps, self._tables, variant)

    def _run(self, text, tables, variant):
        return self._quern.run(text, tables, engine=variant, threads=self._threads)

    def specs(self, query):
        """The specs of the kernels of a query, once each."""
        sources = [(name, self._quern._query._Table(table, name).source) for name, table in self._tables.items()]
        return list(dict.fromkeys(spec for spec, _ in self._quern._quern.Query(query.steps, sources).specs("")))

    def table(self, result):
        return pa.table(result)

    def drop(self):
        self._tables = {}


class Generic(Quern):
    """Quern without compiled kernels."""

    name, _KERNELS = "generic", ("generic",)


class Operators(Quern):
    """Quern without pipelines: each operator of the text runs alone, over all rows that the one before it has written
    (single_steps.py)."""

    name = "operators"

    def run(self, query, variant):
        run = lambda text, tables: self._run(text, tables, variant)
        return single_steps.Steps(query.steps, run, lambda rows: rows.column_names).result(self._tables)


ENGINES = {engine.name: engine
           for engine in (Duckdb, Datafusion, Polars, Clickhouse, Quern, Generic, Operators, HandWritten)}
