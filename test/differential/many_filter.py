# SPDX-License-Identifier: Apache-2.0
"""Filters of many data sets. A condition looks at one row alone, so one query of DuckDB needs no data sets; it answers
the leaves that SQL can express (filter_conditions.py), and the whole condition where it can express all of them.

The other oracle decides each leaf for each value of the pool, in Python, and combines rows in numpy. It answers every
condition: collations, LIKE.
"""
import numpy as np
import pyarrow as pa

import many_data
from filter_case import Case
from filter_conditions import Leaf
from many_data import BulkColumn, DataSets, own_codes, random_nulls
from many_job import ENGINES, MOST_ROWS, Disagreement, ManyJob, Side
from oracle import ordered_value
from quern_abi import ROWS

OUTPUTS = ("select", "bitmap", "count")
_GUARD = 0xDEADBEEF
_SIGNS = {"=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
          ">=": np.greater_equal}


class _Answer:
    """The rows that passed, and their number for each data set."""

    def __init__(self):
        self.passed, self.errors, self.rows_of_set = [], {}, {}

    def begin(self, number):
        self._set, self._count = number, 0

    def take(self, count, rows):
        self._count += count
        if rows is not None:
            self.passed.append(rows)

    def end(self, error=None):
        self.rows_of_set[self._set] = self._count
        if error is not None:
            self.errors[self._set] = error

    def spoil(self, number):
        self.rows_of_set[number] += 1
        return True


class Job(ManyJob):
    operator = "filter"

    def __init__(self, seed, number, num_sets):
        super().__init__(seed, number, num_sets)
        self.case = case = Case.generate(seed, number, self.rng.choice((20, 300, 300)))
        self.spec = case.spec()
        self._params = {"batch_size": self.rng.choice((1, 7, 64, 1000, 4096))}
        self.sets = DataSets(self.sizes(self._params))
        self.all_sets = [self.sets]
        self.columns = {}
        for column in case.columns():
            values = many_data.random_pool(self.rng, column.type, column.values)
            codes = own_codes(self.np_rng, self.sets, len(values))
            self.columns[id(column)] = BulkColumn(column.type, values, codes,
                                                  random_nulls(self.np_rng, self.sets, column.type))
        self.sets.select_some(self.np_rng, 0.3)
        self._rows = np.zeros(MOST_ROWS + 1, np.uint32)
        self._bits = np.zeros(MOST_ROWS // 8 + 2, np.uint8)
        self.types = []
        self.marks.update(f"leaf {leaf.kind}" for leaf in case.condition.leaves())
        self.marks.update(f"column {column.type.name}" for column in case.columns())
        self.marks.update(f"collation {column.type.collation}" for column in case.columns() if column.type.collation)

    def random_params(self):
        return self._params

    def bind(self):
        self.side = Side(self.rng, self.sets, self.columns, [id(column) for column in self.case.keys], [])


    # ---- running ----

    def answer(self):
        return _Answer()

    def run_set(self, calls, kernel, number, answer):
        with calls.handle("job", kernel, None) as condition:
            self.side.bind(calls, number, condition, ROWS)
            for cut in self.side.cuts_of(number):
                answer.take(*self._asked(calls, condition, number, cut))

    def _asked(self, calls, condition, number, cut):
        """(how many rows pass, which), of one batch."""
        output, rows_of = OUTPUTS[number % 3], self.side.batches.cuts[cut]
        num_rows = rows_of.end - rows_of.first if rows_of.selection is None else len(rows_of.selection)
        if output == "count":
            return self._counted(calls, condition, number, cut, None, None), None
        out = self._rows if output == "select" else self._bits
        last = num_rows if output == "select" else (num_rows + 7) // 8
        out[last] = _GUARD & (0xFFFFFFFF if output == "select" else 0xFF)
        places = (out.ctypes.data, None) if output == "select" else (None, out.ctypes.data)
        count = self._counted(calls, condition, number, cut, *places)
        if out[last] != _GUARD & (0xFFFFFFFF if output == "select" else 0xFF):
            raise Disagreement(number, f"quern_job_filter wrote behind {num_rows} rows ({output})")
        if output == "select":
            return count, out[:count].astype(np.int64) + rows_of.first
        bits = np.unpackbits(out[:last], bitorder="little")
        if bits[num_rows:].any():
            raise Disagreement(number, f"a bitmap of {num_rows} rows has bits beyond them")
        places = np.flatnonzero(bits[:num_rows])
        return count, rows_of.first + (places if rows_of.selection is None else rows_of.selection[places].astype(int))

    def _counted(self, calls, condition, number, cut, rows, bitmap):
        """How many rows of a batch pass; writes them, or their bits."""
        if not self.sets.comes_as_arrow[number]:
            return calls.answer("quern_job_filter", condition, self.side.batches.address(cut), rows, bitmap)
        try:
            return calls.answer("quern_job_filter_arrow", condition,
                                self.side.arrow.exported(self.side.batches.cuts[cut]),
                                self.side.batches.rows_address(cut), rows, bitmap)
        finally:
            self.side.arrow.release()

    # ---- the oracles ----

    def _leaf_truths(self, leaf):
        """1 true, 0 false, -1 unknown, of each row."""
        columns = [self.columns[id(column)] for column in leaf.columns()]
        nulls = [np.zeros(self.sets.num_rows, bool) if column.nulls is None else column.nulls for column in columns]
        if leaf.kind == "null":
            return (nulls[0] != leaf.negated).astype(np.int8)
        if leaf.kind == "columns":
            ordered = [[ordered_value(column.type, value) for value in column.values] for column in columns]
            place = {value: rank for rank, value in enumerate(sorted(set(ordered[0] + ordered[1])))}
            one, other = (np.array([place[value] for value in values])[column.codes]
                          for values, column in zip(ordered, columns))
            return np.where(nulls[0] | nulls[1], -1, _SIGNS[leaf.op](one, other)).astype(np.int8)
        truth = np.array([leaf.holds(value) != leaf.negated for value in columns[0].values], np.int8)
        return np.where(nulls[0], -1, truth[columns[0].codes]).astype(np.int8)

    def _truths(self, node, of_leaf):
        if isinstance(node, Leaf):
            return of_leaf[id(node)]
        truths = [self._truths(child, of_leaf) for child in node.children]
        if node.kind == "not":
            return np.where(truths[0] < 0, -1, 1 - truths[0]).astype(np.int8)
        stack = np.stack(truths)
        decides = 0 if node.kind == "and" else 1
        found = np.where((stack < 0).any(0), -1, 1 - decides)
        return np.where((stack == decides).any(0), decides, found).astype(np.int8)

    def _check_duckdb(self, duckdb, of_leaf, truths):
        """Compares the leaves, and the condition, that SQL can express. Yields Disagreements."""
        columns, asked, number = {}, [], 0
        rows = self.sets.rows()
        for leaf in self.case.condition.leaves():
            asked.append((leaf.sql(number), of_leaf[id(leaf)], leaf.text()))
            for column in leaf.columns():
                columns[f"c{number}"] = self.columns[id(column)].for_duckdb(rows)
                number += 1
        whole = self.case.condition.sql(0)
        asked = [item for item in [*asked, (whole, truths, "the condition")] if item[0] is not None]
        if not asked:
            return
        duckdb.register("input", pa.table({"row_id": pa.array(rows), **columns}))
        table = duckdb.sql(f"SELECT {', '.join(item[0] for item in asked)} FROM input ORDER BY row_id"
                           ).to_arrow_table()
        for place, (_, ours, text) in enumerate(asked):
            theirs = table.column(place).combine_chunks().cast(pa.int8()).fill_null(-1).to_numpy()
            differ = rows[theirs != ours[rows]]
            if len(differ):
                row = int(differ[0])
                yield Disagreement(int(self.sets.set_of_row[row]), f"the oracles disagree (a defect of the harness) on "
                                   f"{text} of the row {self.row_text(row)}")
        self.counts["with DuckDB"] += self.counts["cases"] * (whole is not None)

    def row_text(self, row):
        return [self.columns[id(column)].value(row) for column in self.case.keys]

    # ---- comparing ----

    def compare(self, duckdb):
        of_leaf = {id(leaf): self._leaf_truths(leaf) for leaf in self.case.condition.leaves()}
        truths = self._truths(self.case.condition, of_leaf)
        yield from self._check_duckdb(duckdb, of_leaf, truths)
        wanted = (truths == 1) & self.sets.live
        self.counts["rows"] += int(self.sets.live.sum())
        counts = np.bincount(self.sets.set_of_row[wanted], minlength=self.num_sets)
        tells_rows = np.arange(self.num_sets) % 3 != 2
        yield from self.error_differs({})
        for engine, answer in zip(ENGINES, self.answers):
            rows = np.concatenate(answer.passed) if answer.passed else np.zeros(0, np.int64)
            found = np.zeros(self.sets.num_rows, bool)
            found[rows] = True
            wrong = (found != wanted) & self.sets.per_row(tells_rows)
            for number in np.unique(self.sets.set_of_row[wrong]):
                row = int(np.flatnonzero(wrong & (self.sets.set_of_row == number))[0])
                yield Disagreement(int(number), f"{engine}: row {row - self.sets.first[number]} "
                                   f"{'passes' if found[row] else 'does not pass'}: {self.row_text(row)}")
            for place in np.flatnonzero(np.diff(rows) <= 0):
                yield Disagreement(int(self.sets.set_of_row[rows[place]]), f"{engine}: rows are not in their order")
            for number in answer.rows_of_set:
                if answer.rows_of_set[number] != counts[number]:
                    yield Disagreement(number, f"{engine}: {answer.rows_of_set[number]} rows pass; "
                                               f"{counts[number]} have to")
