# SPDX-License-Identifier: Apache-2.0
"""The expected rows of a join, from two oracles that share no code with Quern nor with each other. A result row is
(probe row, build row, mark). A side without a row is null, and so is the mark where it is unknown and in every kind but
mark:

    left join, probe keys 7 8, build keys 7 7     (0, 0, null) (0, 1, null) (1, null, null)

DuckDB compares real columns: integers as integers, floats as floats (NaN = NaN, -0 = 0, NaN greatest there), strings as
VARCHAR or BLOB, `=` or IS NOT DISTINCT FROM per key. Types that it lacks are replaced by equivalent columns:
fixed_binary as BLOB, dates, times, timestamps and durations as their integers, dictionaries and views decoded, decimals
of a residual predicate as their unscaled integers, collated strings as their ranks among the column's values
(collation_oracle.py), unless rtrim(x, ' ') is equivalent. Each kind has a query of its own.

The Python oracle puts normalised key tuples into a dict, and derives every kind from the matches of each probe row and
the table of kinds. It checks DuckDB, and estimates the size of results before anything runs.
"""
import collections
import operator
import struct

import duckdb
import pyarrow as pa

import collation_oracle
from join_kinds import ALWAYS, MATCHED, NEVER
from random_data import STRING_TYPES, bits_array, normalised_float

# ---- the oracle in Python --------------------------------------------------------------------------------------------

_OPERATORS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "ne": operator.ne,
              "eq": operator.eq}


def normalise(column_type, value):
    """A physical value normalised for comparison as a key: equal keys become equal values."""
    if column_type.is_float:
        return normalised_float(column_type, value)
    return collation_oracle.equality_key(column_type.collation, value) if column_type.is_collated else value


def ordered_value(column_type, value):
    """A physical value normalised for order and predicates: there is one NaN, and it is the greatest value."""
    if column_type.is_collated:
        return collation_oracle.order_key(column_type.collation, value)
    if column_type.is_decimal:
        return column_type.unscaled(value)
    if not column_type.is_float:
        return value
    if normalised_float(column_type, value) == "NaN":
        return (1, 0.0)
    bits, real = ("<I", "<f") if column_type.name == "f32" else ("<Q", "<d")
    return (0, struct.unpack(real, struct.pack(bits, value))[0])


def _row_keys(keys, side):
    """The normalised key tuple of each row; None where a null that equals nothing keeps the row out."""
    columns = []
    for key in keys:
        classes = [normalise(key.type, value) for value in key.values]
        null = ("null",) if key.type.null_equal else None
        columns.append([null if index is None else (classes[index],) for index in key.indices[side]])
    return [None if None in row else row for row in zip(*columns)]


def _residual_test(residuals):
    """A function of (probe row, build row)."""
    conjuncts = []
    for conjunct in residuals:
        ordered = [ordered_value(conjunct.type, value) for value in conjunct.column.values]
        sides = [[None if index is None else ordered[index] for index in conjunct.column.indices[side]]
                 for side in ("probe", "build")]
        conjuncts.append((_OPERATORS[conjunct.op], *sides))

    def holds(probe, build):
        return all(left[probe] is not None and right[build] is not None and compare(left[probe], right[build])
                   for compare, left, right in conjuncts)

    return holds


def _matches(case):
    """The list of matching build rows of each probe row."""
    by_key = collections.defaultdict(list)
    for row, key in enumerate(_row_keys(case.keys, "build")):
        if key is not None:
            by_key[key].append(row)
    holds = _residual_test(case.residuals)
    return [[] if key is None else [row for row in by_key.get(key, ()) if holds(probe, row)]
            for probe, key in enumerate(_row_keys(case.keys, "probe"))]


def _comes_out(when, is_matched):
    return when != NEVER and (when == ALWAYS or is_matched == (when == MATCHED))


def python_rows(case):
    """The result as a list of (probe row, build row, mark)."""
    kind, matches, num_build = case.kind, _matches(case), case.sides["build"].num_rows
    unequal = [key for key in case.keys if not key.type.null_equal]
    is_null = {side: {row for key in unequal for row, index in enumerate(key.indices[side]) if index is None}
               for side in case.sides}
    rows = []
    for probe, matching in enumerate(matches):
        if kind.pairs:
            rows += [(probe, build, None) for build in matching]
        if not _comes_out(kind.probe_row, bool(matching)):
            continue
        unknown = num_build > 0 and not matching and (probe in is_null["probe"] or bool(is_null["build"]))
        if kind.marks:
            rows.append((probe, None, None if unknown else bool(matching)))
        elif kind.name != "anti_null_aware" or not unknown:
            rows.append((probe, None, None))
    matched = {build for matching in matches for build in matching}
    return rows + [(None, build, None) for build in range(num_build) if _comes_out(kind.build_row, build in matched)]


def count_pairs(keys):
    """How many pairs of rows have equal keys, without making them."""
    counts = collections.Counter(key for key in _row_keys(keys, "build") if key is not None)
    return sum(counts[key] for key in _row_keys(keys, "probe") if key is not None)


def count_table_rows(keys):
    """Build rows that can match at all."""
    return sum(key is not None for key in _row_keys(keys, "build"))


def rows_of_first_keys(keys, side):
    """The rows of a side without those whose key stood in a row before; those that can match nothing stay."""
    row_keys = _row_keys(keys, side)
    first = {key: row for row, key in reversed(list(enumerate(row_keys)))}
    return [row for row, key in enumerate(row_keys) if key is None or first[key] == row]


# ---- DuckDB ----------------------------------------------------------------------------------------------------------


def is_trimmed_text(column_type):
    """Whether its strings compare like the results of rtrim."""
    collation = collation_oracle.collation_of(column_type.collation)
    return column_type.is_utf8 and collation.pad == "trims" and collation.weights == "bytes"


def places_in_order(column_type, values, indices):
    """The dense rank of each row's value among all values."""
    keys = [collation_oracle.order_key(column_type.collation, value) for value in values]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    place_of = [place[key] for key in keys]
    return [None if index is None else place_of[index] for index in indices]


def duckdb_numbers(column_type, values, indices):
    """As duckdb_column, decimals as their unscaled integers."""
    if not column_type.is_decimal:
        return duckdb_column(column_type, values, indices)
    numbers = bits_array(column_type, values, indices)
    return numbers.view(pa.decimal128(38, 0)) if column_type.name == "decimal128" else numbers


def duckdb_column(column_type, values, indices):
    if column_type.name == "bool":
        return pa.array([None if index is None else bool(values[index]) for index in indices], pa.bool_())
    if column_type.is_decimal and not column_type.has_usual_scale:
        return duckdb_numbers(column_type, values, indices)
    if column_type.is_float or column_type.is_decimal:
        return bits_array(column_type, values, indices).view(column_type.value_arrow())
    if column_type.is_collated and not is_trimmed_text(column_type):
        return pa.array(places_in_order(column_type, values, indices), pa.int64())
    if column_type.name in STRING_TYPES:
        text = pa.large_utf8() if column_type.is_utf8 else pa.large_binary()
        return bits_array(column_type, values, indices).cast(text)
    if column_type.name == "fixed_binary":
        return bits_array(column_type, values, indices).cast(pa.large_binary())
    return bits_array(column_type, values, indices)


def sql_key(key, column):
    return f"rtrim({column}, ' ')" if key.type.is_collated and is_trimmed_text(key.type) else column


def _sql_equal(key, build, probe):
    equals = "IS NOT DISTINCT FROM" if key.type.null_equal else "="
    return f"{sql_key(key, build)} {equals} {sql_key(key, probe)}"


_SQL_OPERATORS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "ne": "<>", "eq": "="}
_PAIRS = ("SELECT probe.row_id AS probe, build.row_id AS build, NULL::BOOLEAN AS mark FROM probe {join} JOIN build ON "
          "{matches}")
_PROBE_ROWS = "SELECT row_id AS probe, NULL::BIGINT AS build, NULL::BOOLEAN AS mark FROM probe WHERE {condition}"
_BUILD_ROWS = "SELECT NULL::BIGINT AS probe, row_id AS build, NULL::BOOLEAN AS mark FROM build WHERE {condition}"
_MARKS = "SELECT row_id AS probe, NULL::BIGINT AS build, {condition} AS mark FROM probe"
_QUERIES = {
    "inner": _PAIRS.format(join="INNER", matches="{matches}"),
    "left": _PAIRS.format(join="LEFT", matches="{matches}"),
    "right": _PAIRS.format(join="RIGHT", matches="{matches}"),
    "full": _PAIRS.format(join="FULL", matches="{matches}"),
    "single": _PAIRS.format(join="LEFT", matches="{matches}"),
    "semi": _PROBE_ROWS.format(condition="EXISTS (SELECT 1 FROM build WHERE {matches})"),
    "anti": _PROBE_ROWS.format(condition="NOT EXISTS (SELECT 1 FROM build WHERE {matches})"),
    "right_semi": _BUILD_ROWS.format(condition="EXISTS (SELECT 1 FROM probe WHERE {matches})"),
    "right_anti": _BUILD_ROWS.format(condition="NOT EXISTS (SELECT 1 FROM probe WHERE {matches})"),
    "anti_null_aware": _PROBE_ROWS.format(condition="{probe_key} NOT IN (SELECT {build_key} FROM build{within})"),
}


def join_query(case, by_set=False):
    """`by_set`: rows match only rows of the same data set, column d."""
    matches = " AND ".join(["build.d = probe.d"] * by_set +
                           [_sql_equal(key, f"build.k{number}", f"probe.k{number}")
                            for number, key in enumerate(case.keys)] +
                           [f"probe.r{number} {_SQL_OPERATORS[conjunct.op]} build.r{number}"
                            for number, conjunct in enumerate(case.residuals)])
    within = " WHERE build.d = probe.d" if by_set else ""
    probe_key, build_key = (sql_key(case.keys[0], f"{side}.k0") for side in ("probe", "build"))
    if case.kind.name == "mark":
        is_in = len(case.keys) == 1 and not case.residuals and not case.keys[0].type.null_equal
        query = _MARKS.format(condition=f"{probe_key} IN (SELECT {build_key} FROM build{within})" if is_in else
                              f"EXISTS (SELECT 1 FROM build WHERE {matches})")
        return query
    return _QUERIES[case.kind.name].format(matches=matches, probe_key=probe_key, build_key=build_key, within=within)


class DuckdbOracle:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def rows(self, case):
        """The result as a table: probe and build int64, mark bool."""
        for side in ("build", "probe"):
            columns = {"row_id": pa.array(range(case.sides[side].num_rows), pa.int64())}
            columns |= {f"k{number}": duckdb_column(key.type, key.values, key.indices[side])
                        for number, key in enumerate(case.keys)}
            columns |= {f"r{number}": duckdb_numbers(conjunct.type, conjunct.column.values,
                                                     conjunct.column.indices[side])
                        for number, conjunct in enumerate(case.residuals)}
            self._connection.register(side, pa.table(columns))
        result = self._connection.sql(join_query(case)).to_arrow_table()
        for side in ("build", "probe"):
            self._connection.unregister(side)
        return result.combine_chunks()
