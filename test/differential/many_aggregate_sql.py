# SPDX-License-Identifier: Apache-2.0
"""How DuckDB computes each aggregate for the groups of all data sets, and how the answers are compared in bulk.

    sum(i64)     sum(a0_0::HUGEINT)                             the same number; whether it, or a part, leaves 64 bits
    min(utf8)    arg_min(row_id, a0_0)                          a value that compares equal to that row's
    first(f64)   min(row_id)                                    the bits of that row's
    any(i32)                                                    a value of one of the group's rows
    var_pop(f32) var_pop(a0_0::DOUBLE), count(a0_0)             near, by the number of rows and the largest value

Sums of floats and what is made of them are compared with DuckDB where all values are finite and of at most 1e9.
"""
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aggregate_answers import number_of
from aggregate_duckdb import MOMENTS, SqlKey, sql_expression
from many_hashes import NULL, Hasher, mix, number_hashes, row_hashes
from oracle import sql_key

EPSILON = 2.0 ** -52
MOST_COMPARED = 1e9
_ROW_OF = {"first": "min(row_id)", "last": "max(row_id)"}
_NEAR = (*MOMENTS, "median", "quantile")


def group_query(case, comparisons):
    keys = [sql_key(SqlKey(key.type), f"k{number}") for number, key in enumerate(case.keys)]
    columns = [column for comparison in comparisons for column in comparison.sql()]
    return f"SELECT {', '.join(['d', 'min(row_id) AS row', *columns])} FROM input GROUP BY {', '.join(['d', *keys])}"


def _is_narrow(column_type):
    return column_type.name.startswith(("i", "u")) and not column_type.name.startswith("utf8")


class Comparison:
    """Of one aggregate."""

    def __init__(self, job, number, aggregate):
        self.number, self.aggregate, self.job = number, aggregate, job
        self.name, self.text = aggregate.function, aggregate.text()
        self.place = len(job.case.keys) + number
        self.columns = [job.columns[id(column)] for column in aggregate.arguments]
        types = aggregate.types
        self.is_float = bool(types) and types[0].is_float
        self.checks_overflow = self.name in ("sum", "sum_distinct") and _is_narrow(types[0])
        self.scales = [self._scale(place) for place in range(len(types))] if self._adds_reals() else []
        self.is_known = self._is_known()
        self.hasher = None
        if self.name in ("min", "max", "first", "last", "any"):
            self.hasher = Hasher(types[0], self.columns[0].values)

    def _adds_reals(self):
        return self.name in _NEAR or self.name in ("sum", "avg", "sum_distinct") and self.is_float

    def _scale(self, place):
        reals = [abs(float(number_of(self.aggregate.types[place], value))) for value in self.columns[place].values]
        return max(reals) if all(map(np.isfinite, reals)) else np.inf

    def _is_known(self):
        """Whether DuckDB is asked for more than the groups."""
        if self.scales and not max(self.scales) <= MOST_COMPARED:
            return False
        if self.name == "avg" and self.aggregate.types[0].is_decimal:
            return False
        return self.name == "approx_count_distinct" or self.name in _ROW_OF or (
            self.name != "any" and sql_expression(self.aggregate) is not None)

    # ---- the query ----

    def _named(self, text):
        """The harness's a0, a1, f as this aggregate's columns."""
        text = re.sub(r"\ba([01])\b", rf"a{self.number}_\1", text)
        return re.sub(r"\bf\b", f"f{self.number}", text)

    def _taking_part(self):
        parts = [f"a{place} IS NOT NULL" for place in range(len(self.aggregate.types))]
        return " AND ".join(parts + ["f"] * (self.aggregate.filter is not None)) or "true"

    def sql(self):
        """Columns of the query."""
        if not self.is_known:
            return []
        number, condition = self.number, f" FILTER (WHERE {self._taking_part()})"
        columns = [f"count(*){condition} AS n{number}"]
        if self.name in _ROW_OF:
            columns.append(f"{_ROW_OF[self.name]}{condition} AS v{number}")
        elif self.name in ("min", "max"):
            compared = sql_key(SqlKey(self.aggregate.types[0]), "a0")
            columns.append(f"arg_{self.name}(row_id, {compared}){condition} AS v{number}")
        elif self.name == "approx_count_distinct":
            columns.append(f"count(DISTINCT {sql_key(SqlKey(self.aggregate.types[0]), 'a0')}){condition} AS v{number}")
        elif self.name in ("sum", "sum128", "sum_distinct") and not self.is_float:
            columns += self._sums(condition)
        else:
            columns.append(f"{sql_expression(self.aggregate)} AS v{number}")
        if self.name == "corr":
            columns += [f"var_pop(a{place}::DOUBLE){condition} AS s{number}_{place}" for place in (0, 1)]
        return [self._named(column) for column in columns]

    def _sums(self, condition):
        number, expression = self.number, sql_expression(self.aggregate)
        if not self.checks_overflow:
            return [f"({expression})::VARCHAR AS v{number}"]
        is_signed = self.aggregate.types[0].name.startswith("i")
        least, most = (-(1 << 63), (1 << 63) - 1) if is_signed else (0, (1 << 64) - 1)
        columns = [f"TRY_CAST({expression} AS {'BIGINT' if is_signed else 'UBIGINT'}) AS v{number}",
                   f"({expression}) NOT BETWEEN {least} AND {most} AS over{number}"]
        if self.name == "sum_distinct":
            return columns + [f"false AS may{number}"]
        part = f"sum(a0::HUGEINT) FILTER (WHERE {self._taking_part()} AND a0 "
        return columns + [f"(coalesce({part}> 0), 0) > {most} OR coalesce({part}< 0), 0) < {least}) AS may{number}"]

    def of_no_rows(self):
        number = self.number
        values = {f"n{number}": 0, f"v{number}": 0 if "count" in self.name else None, f"over{number}": False,
                  f"may{number}": False, f"s{number}_0": None, f"s{number}_1": None}
        return values

    # ---- the comparison ----

    def wrong(self, answer, places, table, rows, groups):
        """Places of groups, in the table's order, whose answer is not DuckDB's. `places`: these groups in the answer.
        `groups`: their hashes."""
        chunks, counts = answer.columns[self.place], answer.counts
        if self.name == "any":
            return np.flatnonzero(~self._is_member(chunks, counts, places, groups))
        if not self.is_known:
            return np.zeros(0, np.int64)
        wanted = table[f"v{self.number}"].combine_chunks()
        if self.hasher:
            by_class = self.name in ("min", "max")
            row_of = wanted.fill_null(-1).to_numpy().astype(np.int64)
            expected = self.hasher.of_rows(self.columns[0], row_of, by_class)
            return np.flatnonzero(self.hasher.of_answer(chunks, counts, by_class)[places] != expected)
        valid = chunks.valid(counts)[places]
        if self.name == "string_agg":
            found = chunks.strings(counts).take(pa.array(places))
            same = pc.equal(found, wanted.cast(pa.large_binary())).fill_null(True).to_numpy(zero_copy_only=False)
            return np.flatnonzero((valid != _validity(wanted)) | ~same & valid)
        if pa.types.is_string(wanted.type):  # sums of 128 bits
            found = chunks.numbers(counts).take(pa.array(places)).to_pylist()
            wide = [None if text is None else int(text).to_bytes(16, "little", signed=True)
                    for text in wanted.to_pylist()]
            return np.flatnonzero([one != other for one, other in zip(
                [value if is_valid else None for value, is_valid in zip(found, valid)], wide)])
        numbers = chunks.numbers(counts)[places]
        if pa.types.is_floating(wanted.type):
            return self._wrong_reals(numbers.view(np.float64), valid, wanted, table)
        return self._wrong_numbers(numbers, chunks, valid, wanted)

    def _wrong_numbers(self, numbers, chunks, valid, wanted):
        zero = False if pa.types.is_boolean(wanted.type) else 0
        expected = wanted.fill_null(zero).to_numpy(zero_copy_only=False)
        expected = expected.astype(np.uint64 if expected.dtype == np.uint64 else np.int64).astype(np.uint64)
        if self.name == "approx_count_distinct":
            slack = np.maximum(3, 0.1 * expected)
            return np.flatnonzero(np.abs(numbers.astype(float) - expected) > slack)
        if 0 < chunks.width < 8:
            expected &= np.uint64((1 << 8 * chunks.width) - 1)
        return np.flatnonzero((valid != _validity(wanted)) | valid & (numbers != expected))

    def _wrong_reals(self, found, valid, wanted, table):
        expected = wanted.fill_null(0.0).to_numpy()
        n = table[f"n{self.number}"].to_numpy().astype(float)
        if self.name == "corr":
            spread = [table[f"s{self.number}_{place}"].combine_chunks().fill_null(0.0).to_numpy()
                      / max(self.scales[place] ** 2, 1e-300) for place in (0, 1)]
            is_safe = (np.minimum(*spread) > 1e-6) & np.isfinite(expected)
            return np.flatnonzero(is_safe & (~valid | ~(np.abs(found - expected) <= 1e-3)))
        differ = np.abs(found - expected)
        scale = self.scales[0] if self.scales else 0.0
        if self.name in ("median", "quantile"):
            most = 16 * EPSILON * scale
        elif self.name in ("sum", "sum_distinct"):
            most = 4 * EPSILON * n * n * scale
        elif self.name == "avg":
            most = 4 * EPSILON * n * scale + 1e-12 * np.abs(expected)
        else:
            most = 64 * EPSILON * n * scale * self.scales[-1]
            if self.name.startswith("stddev"):
                differ = np.abs(found * found - expected * expected)
        return np.flatnonzero((valid != _validity(wanted)) | valid & ~(differ <= most))

    def _is_member(self, chunks, counts, places, groups):
        """Whether a value is that of one of the group's rows, or null where none of them has a value."""
        job, column = self.job, self.columns[0]
        rows = job.sets.rows()
        if column.nulls is not None:
            rows = rows[~column.nulls[rows]]
        if self.aggregate.filter:
            accepts = job.columns[id(self.aggregate.filter)]
            rows = rows[(np.array(accepts.values)[accepts.codes[rows]] == 1) & ~accepts.nulls[rows]]
        keys = [Hasher(key.type, job.columns[id(key)].values).of_rows(job.columns[id(key)], rows, True)
                for key in job.case.keys]
        group_of = row_hashes([*keys, mix(job.sets.set_of_row[rows])], len(rows))
        found = self.hasher.of_answer(chunks, counts)[places]
        members = mix(group_of) ^ self.hasher.of_rows(column, rows)
        is_null = found == NULL
        return np.where(is_null, ~np.isin(groups, group_of), np.isin(mix(groups) ^ found, members))

    def difference(self, answer, places, table, place):
        """What came out and what is wanted, as text."""
        chunks, counts = answer.columns[self.place], answer.counts
        found = chunks.numbers(counts) if chunks.kind in ("bit", "fixed") else chunks.strings(counts)
        text = f"{found[int(places[place])]} (valid: {chunks.valid(counts)[places[place]]})"
        return text + (f"; DuckDB: {table[f'v{self.number}'][int(place)]}" if self.is_known else "; no such value")

    def other_bits(self, answers, aligned):
        """Places of groups whose answers differ between the engines."""
        hashes = []
        for answer, places in zip(answers, aligned):
            chunks = answer.columns[self.place]
            if chunks.kind in ("strings", "view"):
                hashes.append((chunks.strings(answer.counts).take(pa.array(places)),
                               chunks.valid(answer.counts)[places]))
            elif chunks.width == 16 or chunks.type.name == "fixed_binary":
                hashes.append((chunks.numbers(answer.counts).take(pa.array(places)),
                               chunks.valid(answer.counts)[places]))
            else:
                hashes.append((number_hashes(chunks, answer.counts, self.is_float or self.name in (*_NEAR, "avg"))
                               [places], None))
        if hashes[0][1] is None:
            return np.flatnonzero(hashes[0][0] != hashes[1][0])
        if len(hashes[0][0]) == 0:
            return []
        same = pc.equal(hashes[0][0], hashes[1][0]).to_numpy(zero_copy_only=False)
        return np.flatnonzero((hashes[0][1] != hashes[1][1]) | ~same & hashes[0][1])


def _validity(array):
    return array.is_valid().to_numpy(zero_copy_only=False)
