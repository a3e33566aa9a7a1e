# SPDX-License-Identifier: Apache-2.0
"""What a join must answer: pairs (probe row, build row), from two oracles that share no code with Quern nor with each other.

DuckDB compares real columns: integers as integers, floats as floats (NaN = NaN, -0 = 0 there), strings as VARCHAR or BLOB, `=` or
IS NOT DISTINCT FROM per key. What it cannot take as it is comes as an equivalent column: fixed_binary as BLOB, dates, times,
timestamps and durations as their integers, dictionaries and views decoded, a padding collation as rtrim(x, ' ') (on a BLOB: the hex
digits without trailing '20's).

The Python one puts normalised key tuples into a dict. It checks DuckDB, and it estimates results before anything runs.
"""
import collections

import duckdb
import pyarrow as pa

from random_data import STRING_TYPES, bits_array, normalised_float


def normalise(column_type, value):
    """A physical value as a key compares it: equal keys are equal here."""
    if column_type.is_float:
        return normalised_float(column_type, value)
    return value.rstrip(b" ") if column_type.trims_spaces else value


def _row_keys(keys, side):
    """The normalised key tuple of each row; None where a null that equals nothing keeps the row out."""
    columns = []
    for key in keys:
        classes = [normalise(key.type, value) for value in key.values]
        null = ("null",) if key.type.null_equal else None
        columns.append([null if index is None else (classes[index],) for index in key.indices[side]])
    return [None if None in row else row for row in zip(*columns)]


def python_pairs(keys):
    by_key = collections.defaultdict(list)
    for row, key in enumerate(_row_keys(keys, "build")):
        if key is not None:
            by_key[key].append(row)
    probe = _row_keys(keys, "probe")
    return [(row, match) for row, key in enumerate(probe) if key is not None for match in by_key.get(key, ())]


def count_pairs(keys):
    """How many rows the join gives, without making them."""
    counts = collections.Counter(key for key in _row_keys(keys, "build") if key is not None)
    return sum(counts[key] for key in _row_keys(keys, "probe") if key is not None)


def count_table_rows(keys):
    """Build rows that can match at all."""
    return sum(key is not None for key in _row_keys(keys, "build"))


def _duckdb_column(key, side):
    column_type, values, indices = key.type, key.values, key.indices[side]
    if column_type.name == "bool":
        return pa.array([None if index is None else bool(values[index]) for index in indices], pa.bool_())
    if column_type.is_float or column_type.name == "decimal128" and 0 <= column_type.scale <= column_type.precision:
        return bits_array(column_type, values, indices).view(column_type.value_arrow())
    if column_type.name in STRING_TYPES:
        text = pa.large_utf8() if column_type.is_utf8 else pa.large_binary()
        return bits_array(column_type, values, indices).cast(text)
    if column_type.name in ("decimal128", "fixed_binary"):
        return bits_array(column_type, values, indices).cast(pa.large_binary())
    return bits_array(column_type, values, indices)


def _sql_key(key, column):
    if not key.type.trims_spaces:
        return column
    return f"rtrim({column}, ' ')" if key.type.is_utf8 else f"regexp_replace(hex({column}), '(20)+$', '')"


def _sql_equal(key, build, probe):
    equals = "IS NOT DISTINCT FROM" if key.type.null_equal else "="
    return f"{_sql_key(key, build)} {equals} {_sql_key(key, probe)}"


class DuckdbOracle:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def pairs(self, keys, num_rows):
        """(probe rows, build rows) as two int64 arrays."""
        for side in ("build", "probe"):
            columns = {"row_id": pa.array(range(num_rows[side]), pa.int64())}
            columns |= {f"k{number}": _duckdb_column(key, side) for number, key in enumerate(keys)}
            self._connection.register(side, pa.table(columns))
        equal = " AND ".join(_sql_equal(key, f"build.k{number}", f"probe.k{number}") for number, key in enumerate(keys))
        query = f"SELECT probe.row_id AS probe_row, build.row_id AS build_row FROM build JOIN probe ON {equal}"
        result = self._connection.sql(query).to_arrow_table()
        for side in ("build", "probe"):
            self._connection.unregister(side)
        return result.column("probe_row").combine_chunks(), result.column("build_row").combine_chunks()
