# SPDX-License-Identifier: Apache-2.0
"""Rows on their way through a random pipeline: columns of physical values (random_data.py), which steps read by number.

    rows = random_source(rng, num_rows)
    rows.columns[2].type, .values, .indices       of $2: as of other operators' columns
    rows.ids                                      row 3 of these is row ids[3] of the source

The rows behind a step are computed from those in front of it by the oracles of the step's own operator: by DuckDB
(oracles()), with which the operator's oracle in Python has to agree. One query of nested ones would give the same rows.
A query a step gives physical values in between: bits of floats, dictionaries, types that SQL does not have.
"""
import dataclasses
import functools

import map_operator
from aggregate_duckdb import DuckdbGroups
from aggregate_answers import CANONICAL_NAN
from aggregate_rows import Column, mild_values
from filter_expected import DuckdbFilter
from filter_rows import is_known_by
from map_expressions import FLOATS, INTEGERS, TEMPORALS, TYPES, random_value_type
from map_string_sql import STRING_TYPES, is_string
from map_strings import text_columns
from oracle import DuckdbOracle
from random_data import COLLATIONS, DECIMALS, normalised_float, random_indices, random_type, random_values, with_nulls
from sort_order import DuckdbOrder


class Oracles:
    """DuckDB, by operator."""

    def __init__(self):
        self.filter, self.map, self.join = DuckdbFilter(), map_operator.Oracle(), DuckdbOracle()
        self.groups, self.order = DuckdbGroups(), DuckdbOrder()


@functools.cache
def oracles():
    """Cases are drawn with the rows at hand, and so with the oracles; a process has them once."""
    return Oracles()


# ---- columns and rows ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class FlowColumn(Column):
    """A column of rows in flight."""
    number: int = 0
    computed: bool = False  # by DuckDB: of a float, any NaN may be meant, and either zero
    kind: str = "any"       # of the texts: map_strings.py


@dataclasses.dataclass
class Rows:
    columns: list
    num_rows: int
    ids: list | None         # the source's row that each is; None where a probe has counted them anew
    failed_at: object = None  # the step at which some rows have no result, and the rows in front of it
    failing: object = None

    def __post_init__(self):
        for number, column in enumerate(self.columns):
            column.number = number

    def some(self, kept):
        """The rows of these numbers."""
        columns = [dataclasses.replace(column, indices=[column.indices[row] for row in kept])
                   for column in self.columns]
        ids = None if self.ids is None else [self.ids[row] for row in kept]
        return dataclasses.replace(self, columns=columns, num_rows=len(kept), ids=ids)

    def with_more(self, columns):
        before = [dataclasses.replace(column) for column in self.columns]
        return dataclasses.replace(self, columns=before + columns)

    def failure(self, step):
        """What rows behind a step that fails for some of these, or for some in front of them, are told."""
        return {"failed_at": self.failed_at or step, "failing": self.failing or self}


def bracketed(keys, payload=()):
    """[$0, $1; $2]"""
    listed = lambda numbers: ", ".join(f"${number}" for number in numbers)
    return f"[{listed(keys)}{'; ' if payload else ''}{listed(payload)}]"


def column_of(column_type, values):
    """A column that DuckDB has computed, of one value a row (map_operator.py)."""
    index_of, indices = {}, []
    for value in values:
        if value == "NaN":
            value = CANONICAL_NAN[column_type.name]
        indices.append(None if value is None else index_of.setdefault(value, len(index_of)))
    column_type = dataclasses.replace(column_type, index="", collation="")
    return FlowColumn(column_type, list(index_of) or [placeholder(column_type)], indices, computed=True)


def placeholder(column_type):
    """A value of the type, for columns of which no row has one."""
    if column_type.name == "fixed_binary":
        return bytes(column_type.width)
    if column_type.is_decimal:
        return column_type.decimal_value(0)
    return b"" if is_string(column_type) else 0


def bound(column, rows):
    """A column as a step reads it, of other rows."""
    flow = rows.columns[column.number]
    return dataclasses.replace(column, values=flow.values, indices=flow.indices)


def comparable_values(column, values):
    """The values of a result's column as those of the rows in flight: of computed floats one NaN and one zero."""
    if not column.computed or not column.type.is_float:
        return values
    nan = CANONICAL_NAN[column.type.name]
    normalised = lambda value: normalised_float(column.type, value)
    return [None if value is None else nan if normalised(value) == "NaN" else normalised(value) for value in values]


# ---- types as steps read them ----------------------------------------------------------------------------------------


def is_value(column_type):
    """Whether maps read the type, with the unit that their functions take it to have."""
    if is_string(column_type):
        return True
    has_digits = not column_type.is_decimal or column_type.has_usual_scale
    has_unit = column_type.unit == TEMPORALS.get(column_type.name, "") and not column_type.zone
    return column_type.name in TYPES and not column_type.index and has_digits and has_unit


def maybe_nullable(rng, column_type):
    """A column that has no nulls may be read as one that has some."""
    return dataclasses.replace(column_type, nullable=column_type.nullable or rng.random() < 0.15)


def as_compared(rng, column):
    """The type as which a step reads a column whose values it compares: the collation is the reader's."""
    column_type = maybe_nullable(rng, column.type)
    if column_type.name not in STRING_TYPES or len(column.values) > 1000 or rng.random() < 0.5:
        return column_type
    collation = rng.choice(COLLATIONS)
    return dataclasses.replace(column_type, collation=collation) if is_known_by(collation, column) else column_type


# ---- the source ------------------------------------------------------------------------------------------------------

BIG_ROWS = 20_000


def random_size(rng):
    style = rng.random()
    if style < 0.012:
        return rng.choice((20_000, 66_000, 70_001))
    if style < 0.1:
        return rng.choice((0, 0, 1, 2))
    if style < 0.35:
        return rng.choice((7, 8, 9, 63, 64, 65, 127, 129, 511, 513))
    if style < 0.5:
        return rng.choice((999, 1000, 1001, 1023, 1025, 4095, 4096, 4097, 5000, 9000, 12_000))
    return rng.randint(2, 2000)


def _values(rng, column_type, count):
    if column_type.name in (*INTEGERS, *FLOATS, *DECIMALS) and rng.random() < 0.55:
        return mild_values(rng, column_type, count)
    values = random_values(rng, column_type, count)
    if column_type.name == "date32":  # of years that have four digits, as DuckDB's functions want them
        return [rng.choice((0, -1, 59, 60, 10957, rng.randint(-700_000, 2_900_000))) for _ in values]
    return values


def random_column(rng, num_rows):
    """A column of any type, many of the types that maps read."""
    column_type = (random_value_type(rng) if rng.random() < 0.7 else
                   dataclasses.replace(random_type(rng), nullable=rng.random() < 0.5))
    values = _values(rng, column_type, rng.choice((1, 2, 5, 30, 300)))[:50 if column_type.index else None]
    rows = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "uniform", "sequential", "zipf", "equal")))
    return FlowColumn(column_type, values, with_nulls(rng, rows, rng.choice((0, 0.02, 0.3, 0.9, 1))
                                                      if column_type.nullable else 0))


def random_source(rng, num_rows):
    columns = [random_column(rng, num_rows) for _ in range(rng.choice((1, 2, 3, 4, 6)))]
    if rng.random() < 0.4:
        for text, kind in zip(*text_columns(rng, num_rows)):
            column_type = dataclasses.replace(text.type, collation="")  # a collation is that of a reader
            columns.append(FlowColumn(column_type, text.values, text.indices, kind=kind))
    rng.shuffle(columns)
    return Rows(columns, num_rows, list(range(num_rows)))
