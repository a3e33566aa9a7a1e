# SPDX-License-Identifier: Apache-2.0
"""The order of a sort's rows, from two oracles that share no code with Quern nor with each other. Both give each row
its *class*: the number of distinct key tuples before its own.

    keys 'b' 7, 'a' 9, 'b ' 7, 'B\t' 7 under utf8mb4_bin        classes 2 1 2 0

Python compares tuples of ranks: the rank of a key is that of its value within the column, nulls first or last. DuckDB
computes classes by dense_rank() over equivalent columns (oracle.py), and window functions within partitions likewise.
"""
import bisect
import itertools

import duckdb
import pyarrow as pa

from oracle import duckdb_numbers, ordered_value, sql_key


def key_ranks(key):
    """The rank of each row in one key."""
    used = {index for index in key.indices if index is not None}
    comparable = {index: ordered_value(key.type, key.values[index]) for index in used}
    place = {value: rank for rank, value in enumerate(sorted(set(comparable.values()), reverse=key.descending))}
    null_rank = -1 if key.nulls_first else len(place)
    rank_of = {index: place[value] for index, value in comparable.items()}
    return [null_rank if index is None else rank_of[index] for index in key.indices]


def row_classes(keys, num_rows):
    """For each row the number of distinct key tuples before its own; without keys all rows are equal."""
    if not keys:
        return [0] * num_rows
    rows = list(zip(*map(key_ranks, keys)))
    place = {row: number for number, row in enumerate(sorted(set(rows)))}
    return [place[row] for row in rows]


def classes_below(sorted_classes, limit_class):
    """How many of the rows, whose classes are given in order, do not come after a class."""
    return bisect.bisect_right(sorted_classes, limit_class)


def window_columns(functions, partitions, classes):
    """For each function its values for rows whose partitions and classes are given in order."""
    columns = {name: [] for name in functions}
    for _, rows in itertools.groupby(zip(partitions, classes), key=lambda row: row[0]):
        number, rank, dense_rank, before = 0, 0, 0, None
        for _, row_class in rows:
            number += 1
            if row_class != before:
                rank, dense_rank, before = number, dense_rank + 1, row_class
            for name, value in (("row_number", number), ("rank", rank), ("dense_rank", dense_rank)):
                if name in columns:
                    columns[name].append(value)
    return [columns[name] for name in functions]


# ---- DuckDB ----------------------------------------------------------------------------------------------------------


def sql_order(number, key):
    direction, nulls = "DESC" if key.descending else "ASC", "FIRST" if key.nulls_first else "LAST"
    return f"{sql_key(key, f'k{number}')} {direction} NULLS {nulls}"


def _query(case):
    order = ", ".join(sql_order(number, key) for number, key in enumerate(case.keys))
    columns = [f"dense_rank() OVER (ORDER BY {order}) - 1"]
    split = ", ".join(sql_key(key, f"k{number}") for number, key in enumerate(case.keys[:case.partition]))
    for name in ("rank", "dense_rank"):
        if name in case.window:
            columns.append(f"{name}() OVER ({f'PARTITION BY {split} ' if split else ''}ORDER BY {order})")
    return f"SELECT {', '.join(columns)} FROM input ORDER BY row_id"


class DuckdbOrder:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def check(self, case, classes, ranks):
        """Raises AssertionError where Python's classes, and its ranks and dense ranks by row, are not DuckDB's: a
        defect of the harness."""
        columns = {"row_id": pa.array(range(case.num_rows), pa.int64())}
        columns |= {f"k{number}": duckdb_numbers(key.type, key.values, key.indices)
                    for number, key in enumerate(case.keys)}
        self._connection.register("input", pa.table(columns))
        try:
            rows = self._connection.sql(_query(case)).fetchall()
        finally:
            self._connection.unregister("input")
        for row, (theirs, ours) in enumerate(zip(rows, zip(classes, *ranks))):
            if theirs != ours:
                raise AssertionError(f"the oracles disagree (a defect of this harness) on {case.spec()}, replay "
                                     f"{case.replay()}: row {row} "
                                     f"is {theirs} to DuckDB, {ours} to Python\n{case.rows_text()}")
