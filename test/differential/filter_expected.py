# SPDX-License-Identifier: Apache-2.0
"""The rows that a filter must pass: those for which Python finds the condition true. DuckDB must agree where SQL can
express the condition.

DuckDB evaluates each leaf (true, false or null), and the whole condition where it can evaluate every leaf.
"""
import dataclasses

import duckdb
import pyarrow as pa

from oracle import duckdb_numbers
from result_columns import Mismatch

MAX_DUCKDB_ROWS = 5000


@dataclasses.dataclass
class Answer:
    """What came out, batch by batch. `places`: for each batch, the row of the case at each selected place."""
    places: list
    passed: list          # rows of the case that passed, in the order of their batch and place; None: only their number
                          # is known
    count: int
    same_bits: bool = True


class DuckdbFilter:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def check(self, case, truths):
        """Raises AssertionError where Python and DuckDB disagree: a defect of the harness. Returns the number of leaves
        that DuckDB evaluated."""
        columns = {"row_id": pa.array(range(case.num_rows), pa.int64())}
        expressions, number = [], 0
        for leaf in case.condition.leaves():
            expressions.append((leaf.sql(number), leaf.truths(case.num_rows)))
            for column in leaf.columns():
                columns[f"c{number}"] = duckdb_numbers(column.type, column.values, column.indices)
                number += 1
        expressions.append((case.condition.sql(0), truths))
        asked = [pair for pair in expressions if pair[0] is not None]
        if not asked or case.num_rows > MAX_DUCKDB_ROWS:
            return 0
        self._connection.register("input", pa.table(columns))
        try:
            rows = self._connection.sql(
                f"SELECT {', '.join(pair[0] for pair in asked)} FROM input ORDER BY row_id").fetchall()
        finally:
            self._connection.unregister("input")
        for place, (expression, ours) in enumerate(asked):
            for row, theirs in enumerate(answers[place] for answers in rows):
                if theirs is not ours[row]:
                    raise AssertionError(f"the oracles disagree (a defect of this harness) on {case.spec()}, replay "
                                         f"{case.replay()}: "
                                         f"row {row} is {theirs} to DuckDB, {ours[row]} to Python, in {expression}\n"
                                         f"{case.rows_text(row + 1)}")
        return len(asked)


class Expected:
    def __init__(self, case, duckdb_filter):
        self.case = case
        self.truths = case.condition.truths(case.num_rows)
        duckdb_filter.check(case, self.truths)
        self.num_passed = sum(truth is True for truth in self.truths)

    def check(self, answer):
        if answer.count != self.num_passed:
            raise Mismatch(f"{answer.count} rows passed; expected {self.num_passed} of "
                           f"{self.case.num_rows}{self._differing(answer)}")
        if answer.passed is not None:
            wanted = [row for places in answer.places for row in places if self.truths[row] is True]
            if answer.passed != wanted:
                raise Mismatch(f"other rows passed{self._differing(answer)}, or in another order")

    def _differing(self, answer):
        if answer.passed is None:
            return ""
        wanted = {row for row, truth in enumerate(self.truths) if truth is True}
        text = ""
        for what, rows in (("missing", wanted - set(answer.passed)), ("unexpected", set(answer.passed) - wanted)):
            if rows:
                row = min(rows)
                values = [None if column.indices[row] is None else column.values[column.indices[row]]
                          for column in self.case.keys]
                text += f"\n  {len(rows)} {what}, the first of them row {row}: {values}"
        return text
