# SPDX-License-Identifier: Apache-2.0
"""The expected result of a join: the oracles' rows as columns of the result, and the comparison of an answer with them.

Rows are compared as a multiset, sorted by all columns, as physical values. A single join in which a probe row has two
matches must end in an error instead.
"""
import collections

import pyarrow as pa
import pyarrow.compute as pc

from join_rows import SIDES
from oracle import count_table_rows, python_rows
from random_data import bits_array
from result_columns import Mismatch

MAX_PYTHON_ROWS = 20_000  # of both sides; beyond it DuckDB is believed alone
SECOND_MATCH = "second match"


class Expected:
    def __init__(self, case, duckdb_oracle):
        rows = duckdb_oracle.rows(case)
        if sum(side.num_rows for side in case.sides.values()) <= MAX_PYTHON_ROWS:
            cross_check(case, python_rows(case), rows)
        self.num_rows = rows.num_rows
        self.must_fail = case.kind.name == "single" and len(pc.unique(rows["probe"])) < rows.num_rows
        self._set_table_rows(case)
        columns = [_output_column(output, case, rows) for output in case.outputs()]
        self.table = (_sorted(pa.table(columns, names=[f"c{number}" for number in range(len(columns))]))
                      if columns else None)
        self._seen = None

    def _set_table_rows(self, case):
        self.build_rows = case.sides["build"].num_rows
        self.table_rows = {count_table_rows(case.keys)}
        if case.kind.build_row == "unmatched":
            self.table_rows.add(self.build_rows)  # rows that can never match come out, too

    def _may_be_in_table(self, answer):
        """Of a join that has spilled, the table has the rows of the partitions that fit."""
        if answer.spilled_bytes:
            return answer.table_rows <= max(self.table_rows)
        return answer.table_rows in self.table_rows

    def check(self, answer):
        if answer.out_of_memory:
            return
        if answer.build_rows != self.build_rows or not self._may_be_in_table(answer):
            raise Mismatch(f"stats say build_rows {answer.build_rows}, table_rows {answer.table_rows}; "
                           f"expected {self.build_rows} and {sorted(self.table_rows)}")
        if self.must_fail or answer.error:
            self._check_error(answer.error)
            return
        if self.table is not None and self._seen is not None and answer.table.equals(self._seen):
            return  # row by row what was checked before
        if answer.num_rows != self.num_rows:
            raise Mismatch(f"{answer.num_rows} result rows; expected "
                           f"{self.num_rows}{_first_differences(answer.table, self.table)}")
        if self.table is not None:
            if not _sorted(answer.table).equals(self.table):
                raise Mismatch(f"result rows differ{_first_differences(answer.table, self.table)}")
            self._seen = answer.table

    def _check_error(self, error):
        if not error:
            raise Mismatch("a probe row has two matches, and the single join said nothing")
        if not self.must_fail or SECOND_MATCH not in error.text:
            raise Mismatch(f"probing failed: {error}")


def _output_column(output, case, rows):
    if output.side == "mark":
        return rows["mark"].combine_chunks().cast(pa.uint8())
    row_numbers = rows[output.side].combine_chunks()
    if output.column is None:
        return row_numbers.cast(pa.uint64())
    return bits_array(output.type, output.column.values, output.column.indices[output.side]).take(row_numbers)


def cross_check(case, from_python, from_duckdb):
    from_duckdb = collections.Counter(zip(*(from_duckdb[name].to_pylist() for name in ("probe", "build", "mark"))))
    from_python = collections.Counter(from_python)
    if from_duckdb != from_python:
        more, fewer = (list((one - other).items())[:3]
                       for one, other in ((from_duckdb, from_python), (from_python, from_duckdb)))
        raise AssertionError(f"the oracles disagree (a defect of this harness) on {case.spec()}, replay "
                             f"{case.replay()}: "
                             f"(probe row, build row, mark) of DuckDB alone {more}, of Python alone "
                             f"{fewer}\n{case.rows_text()}")


def _sorted(table):
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    return table.take(order).combine_chunks()


def _first_differences(answer, expected):
    """The first rows that only one side has, as text."""
    if answer is None or expected is None:
        return ""
    counts = {}
    for table, sign in ((answer, 1), (expected, -1)):
        for row in zip(*(column.to_pylist() for column in table.columns)):
            counts[row] = counts.get(row, 0) + sign
    extra = [row for row, count in counts.items() if count > 0]
    missing = [row for row, count in counts.items() if count < 0]
    lines = [f"\n  {len(extra)} distinct rows too many, {len(missing)} missing"]
    lines += [f"  unexpected: {row}" for row in extra[:3]] + [f"  missing:    {row}" for row in missing[:3]]
    return "\n".join(lines)
