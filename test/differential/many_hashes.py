# SPDX-License-Identifier: Apache-2.0
"""Hashes of 64 bits by which columns, rows and sets of rows are compared in bulk. Values with different bits have
different hashes, but for a chance of 2^-64; so have two sets of rows, each the sum of its rows' hashes.

    hasher = Hasher(column_type, values)
    hasher.of_rows(column)                   of the rows that went in, by their codes
    hasher.of_answer(chunks, counts)         of the rows that came out, by their bytes

The *class* of a key is what compares equal: one NaN, one zero, strings as their collation has them.
"""
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oracle import normalise
from random_data import bits_array

NULL = np.uint64(0x9E3779B97F4A7C15)
_STRANGER = np.uint64(0xD1B54A32D192ED03)  # a value that no row has


def mix(numbers):
    """splitmix64's finaliser; the sums wrap."""
    numbers = np.asarray(numbers, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def row_hashes(columns, num_rows):
    """Of rows whose columns have these hashes."""
    total = np.zeros(num_rows, np.uint64)
    for number, column in enumerate(columns):
        total += mix(column + np.uint64((number + 1) * 0xA0761D6478BD642F & 0xFFFFFFFFFFFFFFFF))
    return mix(total)


def set_sums(hashes, sets, count):
    """(rows, sum of hashes) of each of `count` data sets."""
    order = np.argsort(sets, kind="stable")
    rows = np.bincount(sets, minlength=count)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes[order], dtype=np.uint64)])
    end = np.cumsum(rows)
    return rows, sums[end] - sums[end - rows]


def normalised_floats(name, bits):
    """One NaN, no -0."""
    exponent, sign = (0x7F800000, 1 << 31) if name == "f32" else (0x7FF0000000000000, 1 << 63)
    canonical = np.uint64(exponent | 1 << (22 if name == "f32" else 51))
    bits = np.where((bits & np.uint64(sign - 1)) > np.uint64(exponent), canonical, bits)
    return np.where(bits == np.uint64(sign), np.uint64(0), bits)


class Hasher:
    """Of one column's values, which are those of a pool."""

    def __init__(self, column_type, values):
        self.type = column_type
        bits = column_type.bits_arrow()
        self.is_narrow = pa.types.is_boolean(bits) or pa.types.is_integer(bits)
        if self.is_narrow:
            width = 1 if pa.types.is_boolean(bits) else bits.bit_width
            codes = np.array([value & (1 << width) - 1 for value in values], np.uint64)
        else:
            self._pool = bits_array(column_type, values, range(len(values)))
            codes = pc.index_in(self._pool, value_set=self._pool).to_numpy().astype(np.uint64)
        self._by_value = mix(codes)
        self._by_class = self._by_value
        if column_type.is_float:
            self._by_class = mix(normalised_floats(column_type.name, codes))
        elif column_type.is_collated:
            place = {}
            classes = [place.setdefault(normalise(column_type, value), len(place)) for value in values]
            self._by_class = mix(np.array(classes, np.uint64))

    def of_rows(self, column, rows=None, by_class=False):
        """Hashes of a BulkColumn's rows, or of these rows; rows of -1 are null."""
        hashes = self._by_class if by_class else self._by_value
        if rows is None:
            found, null = hashes[column.codes], column.nulls
        else:
            found, null = hashes[column.codes[rows]], rows < 0
            null = null if column.nulls is None else null | column.nulls[rows]
        return found if null is None else np.where(null, NULL, found)

    def of_answer(self, chunks, counts, by_class=False):
        valid = chunks.valid(counts)
        if self.is_narrow:
            numbers = chunks.numbers(counts)
            if by_class and self.type.is_float:
                numbers = normalised_floats(self.type.name, numbers)
            return np.where(valid, mix(numbers), NULL)
        found = chunks.numbers(counts) if chunks.kind == "fixed" else chunks.strings(counts)
        codes = pc.index_in(found, value_set=self._pool)
        known = codes.is_valid().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(0).to_numpy()
        hashes = (self._by_class if by_class else self._by_value)[codes]
        return np.where(valid, np.where(known, hashes, _STRANGER), NULL)


def number_hashes(chunks, counts, one_nan=False):
    """Of a column of numbers that is no input's: a row id, a mark, a count. `one_nan`: floats, whose NaNs are one."""
    numbers = chunks.numbers(counts)
    if one_nan:
        limit = 0x7F800000 if chunks.width == 4 else 0x7FF0000000000000
        numbers = np.where((numbers & np.uint64((1 << 8 * chunks.width - 1) - 1)) > np.uint64(limit), NULL, numbers)
    return np.where(chunks.valid(counts), mix(numbers), NULL)
