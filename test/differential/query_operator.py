# SPDX-License-Identifier: Apache-2.0
"""Queries of several steps as an operator that run.py can test: their texts, and the same by the methods of the Python
package, over random tables. The rows must be those of DuckDB's answer to the same query in SQL, in its order where the
query ends in a sort.

The package is imported from PYTHONPATH; run.py's library does not run queries.
"""
import collections
import dataclasses
import decimal
import math
import random

import duckdb
import pyarrow as pa

import run_coverage
from query_case import Case, Relation  # noqa: F401
from query_steps import KINDS
from query_tables import TYPES
from random_spill import LEAST_LIMIT
from result_columns import Mismatch

ENGINES = ("generic", "jit", "auto")


def _comparable(value):
    """Values that are equal where the results are, whatever the widths of their types."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    return value.normalize() + 0 if isinstance(value, decimal.Decimal) else value


def _rows(table):
    """The table's rows as tuples."""
    columns = [[_comparable(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns))


class Oracle:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def table(self, case):
        for table in case.tables:
            self._connection.register(table.name, table.plain())
        try:
            return self._connection.sql(case.sql()).to_arrow_table()
        finally:
            for table in case.tables:
                self._connection.unregister(table.name)


@dataclasses.dataclass
class Answer:
    table: object  # None: memory was refused


class Expected:
    def __init__(self, case, oracle):
        self.case, self.rows = case, _rows(oracle.table(case))

    def check(self, answer):
        if answer.table is None:
            return
        rows, wanted = _rows(answer.table), self.rows
        names = [column.name for column in self.case.columns]
        if answer.table.column_names != names:
            raise Mismatch(f"the columns are {answer.table.column_names}; expected {names}")
        for field, column in zip(answer.table.schema, answer.table.columns):
            if column.null_count and not field.nullable:
                raise Mismatch(f"column {field.name} has nulls, which its field excludes")
        if self.case.is_ordered:
            if rows != wanted:
                place = next((place for place, pair in enumerate(zip(rows, wanted)) if pair[0] != pair[1]), -1)
                raise Mismatch(f"{len(rows)} rows, expected {len(wanted)}; row {place} is {rows[place:][:1]}, "
                               f"expected {wanted[place:][:1]}")
            return
        found, expected = collections.Counter(rows), collections.Counter(wanted)
        if found != expected:
            many, missing = list((found - expected).items())[:3], list((expected - found).items())[:3]
            raise Mismatch(f"{len(rows)} rows, expected {len(wanted)}; too many: {many}; missing: {missing}")


# ---- running ---------------------------------------------------------------------------------------------------------


def _frame_of(quern, source, tables, frames):
    """The rows of a table or of a relation as a frame; each is made once."""
    if id(source) not in frames:
        if not isinstance(source, Relation):
            frames[id(source)] = quern.scan(tables[source.name], name=source.name)
        else:
            frame = _frame_of(quern, source.source, tables, frames)
            for step in source.steps:
                frame = _with_step(quern, frame, step, tables, frames)
            frames[id(source)] = frame
    return frames[id(source)]


def _with_step(quern, frame, step, tables, frames):
    if step.word.startswith("join."):
        return frame.join(_frame_of(quern, step.relation, tables, frames), step.body, step.word[5:])
    if step.word == "aggregate":
        return frame.aggregate(step.parts[1] or None, step.parts[0] or None)
    if step.word == "sort":
        return frame.sort(step.body, *step.limit)
    return frame.limit(*step.limit) if step.word == "limit" else getattr(frame, step.word)(step.body)


def run(_, case, variant):
    """Raises Mismatch, or ValueError for a query that is refused."""
    import quern
    rng = random.Random(variant.layout_seed)
    tables = {table.name: table.arrow(rng, variant.batch_rows) for table in case.tables}
    options = {"threads": variant.threads, "engine": variant.engine, "memory_limit": variant.memory_limit or None}
    # Below the least limit that the package accepts for it, too.
    quern._run.LEAST_SPILL_LIMIT = 0 if variant.spills else LEAST_LIMIT
    try:
        if variant.interface == "text":
            result = quern.run(case.text(rng), tables, **options)
        else:
            result = _frame_of(quern, case.relations[-1], tables, {}).collect(**options)
    except OSError as error:
        if not variant.spills or "memory" not in str(error):
            raise Mismatch(f"rows were not written: {error}") from None
        return Answer(None)
    except MemoryError:
        if not variant.memory_limit:
            raise Mismatch("memory was refused without a limit") from None
        return Answer(None)
    table = pa.table(result)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Mismatch(f"the result is no valid table: {error}") from None
    return Answer(table)


def check_compiles_twice(library, case, variant):
    """The kernels are those of the other operators, which check it."""


# ---- what a run shows ------------------------------------------------------------------------------------------------


def _marks(case, variant):
    for relation in case.relations:
        yield from ((step.word, variant.engine) for step in relation.steps)
    yield from (("column", column.type.name) for table in case.tables for column in table.columns)
    yield "interface", variant.interface


def _wanted():
    words = ["filter", "select", "aggregate", "sort", "limit", *(f"join.{kind}" for kind in KINDS)]
    yield from ((word, engine) for word in words for engine in ENGINES)
    yield from (("column", name) for name in TYPES)
    yield from (("interface", name) for name in ("text", "frames"))
    yield from (("memory", what) for what in ("refused", "enough"))


class Coverage(run_coverage.Coverage):
    def __init__(self):
        end = lambda answer: "refused" if answer.table is None else "enough"
        super().__init__("memory", _marks, _wanted(), end, rare_end="refused")
