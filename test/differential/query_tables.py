# SPDX-License-Identifier: Apache-2.0
"""Random tables for queries, and the constants that their columns are compared with.

    table = random_table(rng, "t0")
    table.arrow(rng, 7)      what Quern reads: any layout of strings, batches of 7 rows that are slices
    table.plain()            the same rows for DuckDB

A column's *class* says what it compares with. Columns of a class `number` have small values, so that their sums and
products fit into every type; those of a class with another name reach the ends of their types.
"""
import dataclasses
import datetime
import decimal

import pyarrow as pa

from random_data import random_indices, with_nulls

INTEGERS = {"i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(), "u8": pa.uint8(),
            "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64()}
FLOATS = {"f32": pa.float32(), "f64": pa.float64()}
DECIMALS = {"decimal32": pa.decimal32, "decimal64": pa.decimal64, "decimal128": pa.decimal128}
OTHERS = {"bool": pa.bool_(), "date32": pa.date32(), "timestamp": pa.timestamp("us")}
_STRING_TYPES = {"utf8": pa.utf8(), "large_utf8": pa.large_utf8(), "utf8_view": pa.string_view(),
                 "dictionary": pa.dictionary(pa.int32(), pa.utf8())}
TYPES = (*INTEGERS, *FLOATS, *DECIMALS, *OTHERS, *_STRING_TYPES)
_DIGITS = 9  # of decimals
SIZES = (0, 1, 2, 3, 7, 64, 65, 1000, 1023, 1025, 3000)
_STRINGS = ("", "a", "A", "ab", "a -- b", "it's", "#", 'say "x"', "ünïcode", "twelve bytes", "thirteen byte", "z" * 40)
_DAY = datetime.date(1998, 9, 2)
_NAMES = ("key", "Price", "odd name", "limit", "by", "unit-price", 'quoted"name', "Größe", "mark", "x#y", "a:", "1st",
          "--", "it's")


def quoted(name):
    """In a query's text and in SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclasses.dataclass(frozen=True)
class QueryType:
    """of: the class; low, high: bounds of a number that is computed with."""
    name: str
    of: str
    low: int = 0
    high: int = 0
    scale: int = 0

    @property
    def is_integer(self):
        return self.name in INTEGERS

    def arrow(self):
        if self.name in DECIMALS:
            return DECIMALS[self.name](_DIGITS, self.scale)
        return {**INTEGERS, **FLOATS, **OTHERS}.get(self.name, pa.utf8())

    def pool(self, rng):
        """Values that rows and constants are taken from."""
        if self.of == "wild":
            bits, signed = self.arrow().bit_width, self.name[0] == "i"
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            return [low, low + 1, 0, 1, high - 1, high]
        if self.is_integer:
            return list(range(self.low, self.high + 1))
        if self.of == "float":
            return [step / 2 for step in range(-5, 9)] + [float("nan"), float("inf")] * rng.randint(0, 1)
        if self.of == "decimal":
            return [decimal.Decimal(step).scaleb(-self.scale) for step in (-150, -1, 0, 1, 25, 100, 101, 150)]
        if self.of == "bool":
            return [False, True]
        if self.of == "date":
            return [_DAY + datetime.timedelta(days=days) for days in (-10_000, -1, 0, 1, 2, 30, 365)]
        if self.of == "timestamp":
            return [datetime.datetime(1998, 9, 2, 12, 0, second, 500_000) for second in range(5)]
        return list(_STRINGS)

    def constant(self, value):
        """The value in a query's text; SQL has the same."""
        if self.of == "date":
            return f"date '{value}'"
        if self.of == "timestamp":
            return f"timestamp '{value}'"
        if self.of == "string":
            return "'" + value.replace("'", "''") + "'"
        return str(value).lower() if self.of == "bool" else str(value)


def random_query_type(rng):
    name = rng.choice((*TYPES, "i64", "i32", "utf8", "utf8"))
    if name in INTEGERS:
        if rng.random() < 0.15:
            return QueryType(name, "wild")
        return QueryType(name, "unsigned" if name == "u64" else "number", -5 if name[0] == "i" else 0,
                         rng.choice((1, 4, 20)))
    if name in DECIMALS:
        return QueryType(name, "decimal", scale=rng.choice((0, 2)))
    classes = {"f32": "float", "f64": "float", "date32": "date", **dict.fromkeys(_STRING_TYPES, "string")}
    return QueryType(name, classes.get(name, name))


@dataclasses.dataclass
class TableColumn:
    name: str
    type: QueryType
    values: list


class Table:
    def __init__(self, name, columns, num_rows):
        self.name, self.columns, self.num_rows = name, columns, num_rows

    def keep(self, first, end):
        for column in self.columns:
            column.values = column.values[first:end]
        self.num_rows = len(self.columns[0].values)

    def plain(self):
        return pa.table({column.name: pa.array(column.values, column.type.arrow()) for column in self.columns})

    def arrow(self, rng, batch_rows):
        """In batches of so many rows (0: one), which are slices of larger arrays."""
        arrays = [_laid_out(rng, column) for column in self.columns]
        names = [column.name for column in self.columns]
        step = batch_rows or max(self.num_rows, 1)
        batches = [pa.RecordBatch.from_arrays([array.slice(first, step) for array in arrays], names)
                   for first in range(0, self.num_rows, step)]
        schema = pa.schema([pa.field(name, array.type) for name, array in zip(names, arrays)])
        return pa.Table.from_batches(batches, schema)


def _laid_out(rng, column):
    before = rng.choice((0, 0, 1, 9))
    array = pa.array([None] * before + column.values, column.type.arrow())
    if column.type.of == "string":
        array = array.dictionary_encode() if column.type.name == "dictionary" else array.cast(_STRING_TYPES[
            column.type.name])
    return array.slice(before)


def random_table(rng, name):
    num_rows = rng.choice(SIZES) if rng.random() < 0.6 else rng.randint(0, 300)
    columns = []
    for number in range(rng.randint(2, 5)):
        column_type = QueryType("i32", "number", -5, 20) if number == 0 else random_query_type(rng)
        values = column_type.pool(rng)
        indices = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "zipf", "equal", "sequential")))
        indices = with_nulls(rng, indices, rng.choice((0, 0, 0.1, 0.5, 1)))
        column_name = f"{rng.choice(_NAMES)} {name}{number}" if rng.random() < 0.3 else f"{name}_c{number}"
        columns.append(TableColumn(column_name, column_type, [None if i is None else values[i] for i in indices]))
    return Table(name, columns, num_rows)
