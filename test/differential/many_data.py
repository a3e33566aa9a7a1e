# SPDX-License-Identifier: Apache-2.0
"""Many data sets for one spec, as one table: the rows of data set 0, then those of data set 1, and so on. Everything is
drawn by numpy for all of them at once.

    sets = DataSets(rng, [3, 0, 2])           rows 0 1 2 | | 3 4
    ranks = random_ranks(rng, sets, 10, ..)   a number below 10 for each row: few or many, skewed, sorted, each once
    column = BulkColumn(type, values, codes, nulls)

A column is a *pool* of values (random_data.py) and a code for each row. The buffers, DuckDB's equivalent column, the
expected values of results and their hashes are gathered from the pool, so that nothing is computed row by row in
Python. Buffers lie between pages that cannot be read.
"""
import dataclasses
import random

import numpy as np
import pyarrow as pa

from collated_strings import restricted
from oracle import duckdb_numbers
from random_data import (FLOAT_BITS, INTEGER_CODES, STRING_TYPES, TEMPORAL_CODES, Layout, guarded, index_limit,
                         integer_bounds, make_array)

PLAIN = Layout(plain=True)
SIZES = (0, 1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 100, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097)
_WEIGHTS = (6, 8, 6, 6, 6, 8, 6, 8, 5, 6, 5, 10, 3, 3, 3, 1, 1, 1, 0.15, 0.2, 0.15)
FEWEST_DISTINCT = (1, 2, 3, 10, 100)
NULL_DENSITIES = (0, 0, 0, 0.02, 0.1, 0.5, 1)
MOST_VALUES = 4000
MANY_LARGE = 4  # data sets of a spec that have a thousand rows and more


def random_set_sizes(rng, count, batch_size, most=20_000):
    """Rows of each of `count` data sets: mostly few, now and then around `batch_size`, of a few thousands."""
    weights = np.array(_WEIGHTS) / sum(_WEIGHTS)
    sizes = rng.choice(SIZES, count, p=weights)
    any_size = rng.random(count) < 0.25
    sizes[any_size] = rng.integers(2, 200, any_size.sum())
    around = rng.random(count) < (0.1 if batch_size <= 64 else 0.005)
    sizes[around] = np.maximum(batch_size + rng.integers(-1, 2, around.sum()), 0)
    large = rng.integers(1000, 4500, MANY_LARGE)
    sizes[rng.integers(0, count, MANY_LARGE)] = np.where(rng.random(MANY_LARGE) < 0.1, 3 * large, large)
    return np.minimum(sizes, most).astype(np.int64)


# ---- values that are hard --------------------------------------------------------------------------------------------

_STEM = b"0123456789abcdefghijklmn"
_TAILS = (b"\0", b"\x01", b"\t", b" ", b"  ", b" \0", b"!", b"a", b"A", b"\x7f")


def _hard_strings(is_utf8):
    """Empty ones, NUL, beyond ASCII, and pairs that differ in byte 8, 12, 16 or in their length there."""
    values = [b"", b"\0", b"a", b"a\0", b"a ", b" ", "é漢😀".encode(), "é".encode(), b"\x7f"]
    for place in (3, 4, 7, 8, 11, 12, 15, 16, 23):
        values += [_STEM[:place], _STEM[:place] + b"\0", _STEM[:place] + b"Z" + _STEM[place + 1:]]
    values += [_STEM[:place] + tail for place in (16, 17, 20) for tail in _TAILS]
    return values if is_utf8 else values + [b"\xff", b"\x80", b"\xff" * 16]


def hard_values(rng, column_type):
    """Values at the ends of a type and at the bounds of what words hold."""
    if column_type.name in STRING_TYPES:
        values = _hard_strings(column_type.is_utf8)
        return restricted(rng, column_type.collation, values) if column_type.collation else values
    if column_type.is_float:
        return list(FLOAT_BITS[column_type.name])
    if column_type.is_decimal:
        low, high = integer_bounds(column_type)
        return list(map(column_type.decimal_value, (0, 1, -1, high, low)))
    if column_type.name in (*INTEGER_CODES, *TEMPORAL_CODES):
        low, high = integer_bounds(column_type)
        return [low, high, low + 1, high - 1, 0, 1, max(low, -1)]
    return []


def random_pool(rng, column_type, values, hard=True):
    """The values of a column, perhaps with hard ones, as many as its dictionary may have."""
    values = list(dict.fromkeys(values))[:MOST_VALUES]
    if hard and rng.random() < 0.5:
        more = hard_values(rng, column_type)
        values = more + values if rng.random() < 0.5 else values + more
    return values[:min(index_limit(column_type), 120 if column_type.index in ("i8", "u8") else MOST_VALUES)
                  if column_type.index else len(values)]


# ---- data sets -------------------------------------------------------------------------------------------------------


class DataSets:
    """Where the data sets lie in the table. `live`: the rows that take part; the others lie between them in the
    vectors and are left out by a selection."""

    def __init__(self, sizes):
        self.sizes = np.asarray(sizes, np.int64)
        self.end = np.cumsum(self.sizes)
        self.first = self.end - self.sizes
        self.num_rows = int(self.end[-1]) if len(self.end) else 0
        self.count = len(self.sizes)
        self.set_of_row = np.repeat(np.arange(self.count), self.sizes)
        self.place = np.arange(self.num_rows) - self.first[self.set_of_row]
        self.live = np.ones(self.num_rows, bool)
        self.selects, self.comes_as_arrow = np.zeros(self.count, bool), np.zeros(self.count, bool)

    def select_some(self, rng, share):
        """A selection for about this share of the data sets, which leaves rows out; some others come as Arrow."""
        self.selects = rng.random(self.count) < share
        density = rng.choice((0.1, 0.5, 0.9, 1), self.count)
        self.live &= ~self.selects[self.set_of_row] | (rng.random(self.num_rows) < density[self.set_of_row])
        self.comes_as_arrow = ~self.selects & (rng.random(self.count) < 0.1)

    def halve(self, numbers):
        """Drops the second half of these data sets' rows."""
        for number in numbers:
            self.sizes[number] //= 2
            self.live[self.first[number] + self.sizes[number]:self.end[number]] = False
            self.end[number] = self.first[number] + self.sizes[number]

    def keep_only(self, number, first=0, end=None):
        """Drops the rows of all other data sets, and of this one all but those at places [first, end)."""
        self.live &= self.set_of_row == number
        if end is not None:
            self.live &= (self.place >= first) & (self.place < end)
            self.selects[number], self.comes_as_arrow[number] = True, False

    def rows(self):
        """The numbers of the live rows."""
        return np.flatnonzero(self.live)

    def per_row(self, of_set):
        return of_set[self.set_of_row]


def random_ranks(rng, sets, num_ranks, base, unique_share=0.1):
    """A number below num_ranks for each row. Each data set has its own style: few or many distinct numbers, skewed,
    each once, sorted."""
    few = np.minimum(rng.choice((*FEWEST_DISTINCT, num_ranks, num_ranks), sets.count), num_ranks)
    style = rng.choice(4, sets.count, p=((0.8 - unique_share), 0.1, 0.1, unique_share))
    few[style == 3] = num_ranks
    skew = rng.choice((1.0, 1.0, 3.0, 8.0), sets.count)
    draws = (sets.per_row(few) * rng.random(sets.num_rows) ** sets.per_row(skew)).astype(np.int64)
    style = sets.per_row(style)
    ordered = np.flatnonzero(style == 1)
    draws[ordered] = draws[ordered][np.lexsort((draws[ordered], sets.set_of_row[ordered]))]
    draws = np.where(style >= 2, sets.place % sets.per_row(few), draws)
    return (sets.per_row(base) + draws) % num_ranks


def random_base(rng, count, num_ranks):
    """Where each data set's ranks begin."""
    return np.where(rng.random(count) < 0.6, 0, rng.integers(0, num_ranks, count))


def codes_of_ranks(rng, sets, ranks, code_of_rank):
    """The codes of a key; some data sets have a few rows changed."""
    codes = code_of_rank[ranks]
    changed = sets.per_row(rng.choice((0, 0, 0, 0.02, 0.3), sets.count)) > rng.random(sets.num_rows)
    return np.where(changed, code_of_rank[rng.integers(0, len(code_of_rank), sets.num_rows)], codes)


def own_codes(rng, sets, num_values):
    """The codes of a column that hangs on no other."""
    return random_ranks(rng, sets, num_values, random_base(rng, sets.count, num_values))


def random_nulls(rng, sets, column_type):
    """Which rows are null, a density for each data set; None where none may be."""
    if not column_type.nullable:
        return None
    return rng.random(sets.num_rows) < sets.per_row(rng.choice(NULL_DENSITIES, sets.count))


# ---- columns ---------------------------------------------------------------------------------------------------------


class BulkColumn:
    """One column of all data sets of a side."""

    def __init__(self, column_type, values, codes, nulls):
        self.type, self.values, self.codes, self.nulls = column_type, values, codes, nulls

    def indices(self, rows=None):
        """Codes of rows as an Arrow array with nulls."""
        codes, nulls = (self.codes, self.nulls) if rows is None else (
            self.codes[rows], None if self.nulls is None else self.nulls[rows])
        return pa.array(codes, mask=nulls)

    def value(self, row):
        """Physical; None for null."""
        return None if self.nulls is not None and self.nulls[row] else self.values[self.codes[row]]

    def for_duckdb(self, rows, column_type=None):
        pool = duckdb_numbers(column_type or self.type, self.values, range(len(self.values)))
        return pool.take(self.indices(rows))

    def array(self):
        """As the spec's type, in guarded buffers."""
        validity = None
        if self.nulls is not None and (self.nulls.any() or len(self.values) % 2):
            validity = guarded(np.packbits(~self.nulls, bitorder="little").tobytes())
        value_type = dataclasses.replace(self.type, index="")
        pool = make_array(random.Random(len(self.codes)), value_type, self.values, range(len(self.values)), PLAIN)
        if self.type.index:
            order = np.random.default_rng(len(self.codes)).permutation(len(self.values))
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            dictionary = make_array(random.Random(1), value_type, self.values, order.tolist(), PLAIN)
            numbers = place[self.codes].astype(self.type.arrow().index_type.to_pandas_dtype())
            return pa.DictionaryArray.from_buffers(self.type.arrow(), len(numbers),
                                                   [validity, guarded(numbers.tobytes())], dictionary, -1, 0)
        return pa.Array.from_buffers(self.type.value_arrow(), len(self.codes),
                                     [validity, *_gathered(self.type, pool, self.codes)], -1, 0)


def _gathered(column_type, pool, codes):
    """The buffers behind the validity of rows with these codes."""
    buffers = pool.buffers()
    if column_type.name == "bool":
        bits = np.unpackbits(np.frombuffer(buffers[1], np.uint8), bitorder="little")[codes]
        return [guarded(np.packbits(bits, bitorder="little").tobytes())]
    if column_type.name in STRING_TYPES and not column_type.name.endswith("_view"):
        taken = pool.take(pa.array(codes)).buffers()
        return [guarded(taken[1].to_pybytes() if taken[1] else bytes(8)),
                guarded(taken[2].to_pybytes() if taken[2] else b"")]
    width = 16 if column_type.name.endswith("_view") else pool.type.bit_width // 8
    elements = np.frombuffer(buffers[1], np.uint8)[:width * len(pool)].reshape(-1, width)
    return [guarded(elements[codes].tobytes()), *buffers[2:]]
