# SPDX-License-Identifier: Apache-2.0
"""DuckDB's answers for an aggregation, one query for each aggregate that it supports. A group is identified by its
lowest row:

    SELECT min(row_id), sum(a0::HUGEINT) FILTER (WHERE f) FROM input GROUP BY rtrim(k0, ' ')

Columns are replaced by equivalent ones (oracle.py). Sums and decimals are integers of 128 bits and come back as text.
"""
import dataclasses
import math

import duckdb
import pyarrow as pa

from aggregate_answers import Anything, EqualTo, Exactly, Near, NotFinite, bits_of, real_of, taking_part
from oracle import duckdb_column, duckdb_numbers, is_trimmed_text, normalise, places_in_order, sql_key
from random_data import ColumnType, float_bits, normalised_float, wide

MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr")
SAME = ("min", "max", "first", "last")
COMPARED = ("min", "max", "count_distinct")
_WIDE = "::HUGEINT"


def _argument(aggregate, number):
    column_type, column = aggregate.types[number], aggregate.arguments[number]
    if aggregate.function not in COMPARED:
        column_type = dataclasses.replace(column_type, collation="")
    return duckdb_numbers(column_type, column.values, column.indices)


@dataclasses.dataclass
class SqlKey:
    """As oracle.sql_key asks for it."""
    type: ColumnType


def _ordered(call, condition):
    return f"{call[:-1]} ORDER BY row_id) FILTER (WHERE {condition})"


def sql_expression(aggregate):
    """The SQL of an aggregate; None where DuckDB has none like it."""
    name, types = aggregate.function, aggregate.types
    has_all = (" AND ".join([f"a{number} IS NOT NULL" for number in range(len(types))]
                            + (["f"] if aggregate.filter else [])) or "true")
    plain = f" FILTER (WHERE {has_all})"
    is_float = bool(types) and types[0].is_float
    compared = sql_key(SqlKey(types[0]), "a0") if types else ""
    if name == "count_star":
        return f"count(*){plain}"
    if name == "count":
        return f"count(a0){plain}"
    if name in ("sum", "sum128", "sum_distinct"):
        return f"sum({'DISTINCT ' if name == 'sum_distinct' else ''}a0{'::DOUBLE' if is_float else _WIDE}){plain}"
    if name == "avg":
        return None if types[0].is_decimal else f"avg(a0{'::DOUBLE' if is_float else ''}){plain}"
    if name in ("min", "max"):
        return f"{name}({compared}){plain}"
    if name in ("first", "last"):
        return _ordered(f"{name}(a0)", has_all)
    if name in ("bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"):
        return f"{name}(a0){plain}"
    if name in MOMENTS:
        return f"{name}({', '.join(f'a{number}::DOUBLE' for number in range(len(types)))}){plain}"
    if name == "count_distinct":
        return f"count(DISTINCT {compared}){plain}"
    if name in ("median", "quantile"):
        return f"quantile_cont(a0::DOUBLE, {aggregate.quantile if name == 'quantile' else '0.5'}){plain}"
    if name == "string_agg" and types[0].is_utf8 and aggregate.separator.isascii():
        separator = " || ".join(f"chr({byte})" for byte in aggregate.separator) or "''"
        return _ordered(f"string_agg(a0, {separator})", has_all) if b"\0" not in aggregate.separator else None
    return None


def _query(case, expression):
    keys = ", ".join(sql_key(SqlKey(key.type), f"k{number}") for number, key in enumerate(case.keys))
    return f"SELECT min(row_id) AS row, {expression} AS answer FROM input" + (f" GROUP BY {keys}" if keys else "")


def _is_near(real, other):
    return real == other or real != real and other != other or abs(real - other) <= 1e-12 * abs(other)


def _agrees(aggregate, answer, value):
    """Whether Python's answer accepts DuckDB's."""
    name, column_type = aggregate.function, aggregate.types[0] if aggregate.types else None
    if value is None or isinstance(answer, (Anything, NotFinite)) or name == "corr" and value != value:
        return value is None and answer.takes(None) or isinstance(answer, (Anything, NotFinite)) or answer.takes(None)
    if name in MOMENTS and isinstance(answer, Near) and not math.isfinite(answer.value):
        return True  # of one infinity it says 0
    if name == "avg" and isinstance(answer, Exactly):
        return _is_near(value, real_of("f64", answer.value))
    if name in SAME:
        return _agrees_on_value(aggregate, answer, value)
    if isinstance(value, float):
        return answer.takes(bits_of(value)) or isinstance(answer, Near) and _is_near(value, answer.value)
    if name == "sum128" or name in ("sum", "sum_distinct") and column_type.is_decimal:
        return answer.takes(wide(int(value)))
    return answer.takes(value.encode() if isinstance(value, str) else int(value))


def _places(aggregate):
    """The place of each spelling in the order of all; kept, as every group asks."""
    spellings = aggregate.arguments[0].values
    if getattr(aggregate, "_places", (None, None))[0] is not spellings:
        places = places_in_order(aggregate.types[0], spellings, range(len(spellings)))
        aggregate._places = spellings, dict(zip(spellings, places))
    return aggregate._places[1]


def _agrees_on_value(aggregate, answer, value):
    name, column_type = aggregate.function, aggregate.types[0]
    if column_type.is_float:
        wanted = answer.value if isinstance(answer, EqualTo) else normalised_float(column_type, answer.value)
        return normalised_float(column_type, float_bits(column_type, value)) == wanted
    if column_type.is_decimal:
        return answer.takes(column_type.decimal_value(int(value)))
    if name in COMPARED and column_type.is_collated:
        if is_trimmed_text(column_type):
            return value.encode() in {normalise(column_type, spelling) for spelling in answer.values}
        places = _places(aggregate)
        return value in {places[spelling] for spelling in answer.values}
    return answer.takes(value.encode() if isinstance(value, str) else int(value) if isinstance(value, bool) else value)


class DuckdbGroups:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def check(self, case, groups):
        """Raises AssertionError where Python's groups are not DuckDB's: a defect of the harness."""
        by_row = {group.rows[0] if group.rows else None: group for group in groups.values()}
        self._check(case, by_row, None, "count(*)")
        for number, aggregate in enumerate(case.aggregates):
            expression = sql_expression(aggregate)
            if expression is not None:
                self._check(case, by_row, number, expression)

    def _check(self, case, by_row, number, expression):
        columns = {"row_id": pa.array(range(case.num_rows), pa.int64())}
        columns |= {f"k{place}": duckdb_column(key.type, key.values, key.indices)
                    for place, key in enumerate(case.keys)}
        aggregate = None if number is None else case.aggregates[number]
        if aggregate:
            columns |= {f"a{place}": _argument(aggregate, place) for place in range(len(aggregate.types))}
            if aggregate.filter:
                columns["f"] = duckdb_column(aggregate.filter.type, aggregate.filter.values, aggregate.filter.indices)
        self._connection.register("input", pa.table(columns))
        try:
            rows = self._connection.sql(_query(case, expression)).fetchall()
        except duckdb.OutOfRangeException:  # squares of infinity, sums above 128 bits: errors there
            return
        finally:
            self._connection.unregister("input")
        if {row for row, _ in rows} != set(by_row):
            raise AssertionError(f"the oracles disagree on the groups of {case.spec()}, replay {case.replay()}: lowest "
                                 "rows of DuckDB's "
                                 f"alone {sorted({row for row, _ in rows} - set(by_row))[:5]}, of Python's "
                                 f"{sorted(set(by_row) - {row for row, _ in rows})[:5]}")
        for row, value in rows if aggregate else ():
            self._compare(case, aggregate, by_row[row], by_row[row].answers[number], value)

    @staticmethod
    def _compare(case, aggregate, group, answer, value):
        if not _agrees(aggregate, answer, value):
            raise AssertionError(f"the oracles disagree (a defect of this harness) on {aggregate.text()} of "
                                 f"{case.spec()}, replay "
                                 f"{case.replay()}: DuckDB says {value!r}, Python {answer}; rows {group.rows[:10]}, "
                                 "values "
                                 f"{[values[:20] for values in taking_part(aggregate, group.rows)]}")
