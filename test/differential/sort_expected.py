# SPDX-License-Identifier: Apache-2.0
"""The expected result of a sort, and the comparison of an answer with it: rows in the order of Python's classes, with
which DuckDB must agree.

With `stable`, and for a merge, answers are compared row by row. Otherwise rows of one class may stand in any order, and
the limit may cut a class anywhere:

    classes in order   0 1 1 1 2    limit=3: the row of class 0, then any two of the three

A wrong threshold loses only rows that come after it; those that come out nevertheless are in order.
"""
import collections
import dataclasses
import itertools

import pyarrow as pa

from random_data import bits_array
from result_columns import Mismatch
from sort_order import classes_below, row_classes

@dataclasses.dataclass
class Answer:
    """What came out."""
    table: pa.Table | None         # columns of case.outputs() as comparable arrays; None where there are none
    num_rows: int
    row_ids: list                  # of each row of the case, as far as they come out
    input_rows: int | None = None  # None: not told
    order: list | None = None      # rows of the case as they must come out, of a merge
    bound: int | None = None       # rows up to this class are certain; None: all
    window: bool = True            # whether window functions are among the columns
    repeats: str | None = None     # runs of equal texts answer the same bits
    method: str = ""
    dropped_rows: int = 0
    collided_rows: int = 0
    entry_bytes: int = 0
    thresholds_read: int = 0
    spilled_bytes: int = 0
    out_of_memory: bool = False    # so that nothing came out, or not all


class Expected:
    def __init__(self, case, duckdb_order):
        self.case = case
        self.classes = case.classes()
        self.partitions = row_classes(case.keys[:case.partition], case.num_rows)
        self.order = sorted(range(case.num_rows), key=self.classes.__getitem__)
        self.sorted_classes = [self.classes[row] for row in self.order]
        self.windows = case.window_columns([self.partitions[row] for row in self.order], self.sorted_classes)
        self.num_rows = min(case.limit or case.num_rows, case.num_rows)
        duckdb_order.check(case, self.classes, self._ranks_by_row())
        self.columns = [bits_array(output.type, output.column.values, output.column.indices) if output.column else None
                        for output in case.outputs(window=False)]
        self.seen = {}

    def _ranks_by_row(self):
        """Rank and dense rank, those that the spec has."""
        columns = []
        for wanted in ("rank", "dense_rank"):
            if wanted in self.case.window:
                by_row = [0] * self.case.num_rows
                for row, rank in zip(self.order, self.windows[self.case.window.index(wanted)]):
                    by_row[row] = rank
                columns.append(by_row)
        return columns

    # ---- the comparison ----

    def table(self, answer, order):
        """The rows `order` as the answer should have them, without window functions."""
        rows = pa.array(order, pa.int64())
        columns = [pa.array([answer.row_ids[row] for row in order], pa.uint64())
                   if column is None else column.take(rows)
                   for column in self.columns]
        return pa.table(columns, names=[f"c{number}" for number in range(len(columns))])

    def check(self, answer):
        if answer.out_of_memory:
            return
        if answer.input_rows is not None and answer.input_rows != self.case.num_rows:
            raise Mismatch(f"stats say input_rows {answer.input_rows}; expected {self.case.num_rows}")
        certain = self.num_rows if answer.bound is None else min(classes_below(self.sorted_classes, answer.bound),
                                                                 self.num_rows)
        if not certain <= answer.num_rows <= self.num_rows:
            raise Mismatch(f"{answer.num_rows} rows came out; expected {certain} to {self.num_rows}")
        if answer.table is None:
            return
        self._check_repeats(answer)
        found = self._without_windows(answer, certain)
        order = answer.order or self.order
        wanted = self.table(answer, order)
        if found.slice(0, certain).equals(wanted.slice(0, certain)):
            rows_found = None
        elif self.case.stable or answer.order is not None:
            raise Mismatch(_first_difference(found.slice(0, certain), wanted.slice(0, certain)))
        else:
            rows_found = _rows(found)
            self._check_by_class(rows_found[:certain], _rows(wanted))
        if certain < answer.num_rows:
            self._check_tail((rows_found or _rows(found))[certain:], _rows(wanted)[certain:], certain)

    def _without_windows(self, answer, certain):
        """The answer's columns but those of window functions, which are checked: they hang on a row's place alone."""
        columns, windows = [], []
        for output, column in zip(self.case.outputs(answer.window), answer.table.columns):
            (windows if output.window else columns).append(column.combine_chunks())
        for name, column, numbers in zip(self.case.window, windows, self.windows):
            if column.slice(0, certain).to_pylist() != numbers[:certain]:
                place = next(place for place, pair in enumerate(zip(column.to_pylist(), numbers)) if pair[0] != pair[1])
                raise Mismatch(f"{name} of the row in place {place} is {column[place]}; expected {numbers[place]}")
        columns = [column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks) for column in columns]
        return pa.table(columns, names=[f"c{number}" for number in range(len(columns))])

    def _check_by_class(self, found, wanted):
        """`wanted`: all rows in order, some of which come out."""
        place = 0
        for row_class, places in itertools.groupby(range(len(wanted)), key=self.sorted_classes.__getitem__):
            size = len(list(places))
            some, all_rows = found[place:place + size], wanted[place:place + size]
            if some != all_rows[:len(some)]:
                strangers = collections.Counter(some) - collections.Counter(all_rows)
                if strangers:
                    raise Mismatch(f"rows in places {place} to {place + len(some) - 1}, which are equal in all keys, "
                                   "are not those of this "
                                   f"class\n  unexpected: {list(strangers)[:3]}\n  expected:   {all_rows[:3]}")
            place += size
            if place >= len(found):
                return

    def _check_tail(self, found, wanted, first_place):
        """Rows after a threshold: in order, each at most once."""
        left = collections.defaultdict(collections.Counter)
        for place, row in enumerate(wanted, first_place):
            left[place if self.case.stable else self.sorted_classes[place]][row] += 1
        groups, current = sorted(left), 0
        for row in found:
            while current < len(groups) and not left[groups[current]][row]:
                current += 1
            if current == len(groups):
                raise Mismatch(f"a row after the threshold is out of order, or there is no such row: {row}")
            left[groups[current]][row] -= 1

    def _check_repeats(self, answer):
        """The same bits as another engine's, where the order is total."""
        if (answer.repeats is None or not self.case.stable and answer.order is None
                and len(set(self.classes)) < self.case.num_rows):
            return
        before = self.seen.setdefault(answer.repeats, answer.table)
        if not before.equals(answer.table):
            raise Mismatch(f"another engine found other bits: {_first_difference(answer.table, before)}")


def _rows(table):
    return list(zip(*(column.to_pylist() for column in table.columns))) if table.num_columns else [()] * table.num_rows


def _first_difference(found, wanted):
    for place, (row, other) in enumerate(zip(_rows(found), _rows(wanted))):
        if row != other:
            return f"the row in place {place} is {row}; expected {other}"
    return f"{found.num_rows} rows; expected {wanted.num_rows}"
