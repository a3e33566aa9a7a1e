# SPDX-License-Identifier: Apache-2.0
"""Sorts of many data sets: one query of DuckDB sorts all rows by data set, keys and row id, and ranks them.

A stable sort has to give these rows. Otherwise rows that are equal in all keys may stand in any order, and a limit may
cut them anywhere: the rows in the places of a class have to be among the rows of that class, each as often as there.
Window functions hang on a row's place alone.
"""
import numpy as np
import pyarrow as pa

import many_data
from many_data import BulkColumn, DataSets, codes_of_ranks, own_codes, random_base, random_nulls, random_ranks
from many_hashes import Hasher, mix, number_hashes, row_hashes
from many_job import ENGINES, Disagreement, ManyJob, Side
from oracle import sql_key
from quern_abi import ROWS
from sort_case import Case, random_params
from sort_order import sql_order

LIMITS = (1, 2, 10, 100)


def _sorted_query(case):
    order = ", ".join(sql_order(number, key) for number, key in enumerate(case.keys))
    split = ", ".join(["d", *(sql_key(key, f"k{number}") for number, key in enumerate(case.keys[:case.partition]))])
    columns = ["d", "row_id", f"dense_rank() OVER (PARTITION BY d ORDER BY {order}) AS class"]
    for name in case.window:
        last = ", row_id" if name == "row_number" else ""
        columns.append(f"{name}() OVER (PARTITION BY {split} ORDER BY {order}{last}) AS {name}")
    return f"SELECT {', '.join(columns)} FROM input ORDER BY d, {order}, row_id"


class Job(ManyJob):
    operator = "sort"

    def __init__(self, seed, number, num_sets):
        super().__init__(seed, number, num_sets)
        size = self.rng.choice((20, 300, 300, 1000))
        self.case = case = self.chosen(lambda attempt: Case.generate(seed, attempt, size))
        if case.limit:
            case.limit = self.rng.choice((*LIMITS, case.limit))
        self.spec = case.spec()
        self._params = random_params(self.rng, case)
        self.sets = DataSets(self.sizes(self._params))
        self.all_sets = [self.sets]
        self._add_columns()
        self.sets.select_some(self.np_rng, 0.2)
        self.types = [output.type for output in case.outputs()]
        self.marks.update(f"key {key.type.name}" for key in case.keys)
        self.marks.update(f"collation {key.type.collation}" for key in case.keys if key.type.collation)
        self.marks.update(f"window {name}" for name in case.window)
        self.marks.update({"limit": bool(case.limit), "stable": case.stable})

    def random_params(self):
        return self._params

    def _add_columns(self):
        case, rng, self.columns = self.case, self.np_rng, {}
        pools = {id(column): many_data.random_pool(self.rng, column.type, column.values) for column in case.columns()}
        num_ranks = max(len(pools[id(key)]) for key in case.keys) * self.rng.choice((1, 1, 2))
        ranks = random_ranks(rng, self.sets, num_ranks, random_base(rng, self.num_sets, num_ranks))
        keys = {id(key) for key in case.keys}
        for column in case.columns():
            num_values = len(pools[id(column)])
            if id(column) in keys and self.rng.random() < 0.7:
                some = self.rng.choice((2, 20, num_values, num_values)) if len(keys) > 1 else num_values
                codes = codes_of_ranks(rng, self.sets, ranks, np.arange(num_ranks) % min(some, num_values))
            else:
                codes = own_codes(rng, self.sets, num_values)
            self.columns[id(column)] = BulkColumn(column.type, pools[id(column)], codes,
                                                  random_nulls(rng, self.sets, column.type))

    def bind(self):
        self.side = Side(self.rng, self.sets, self.columns, [id(key) for key in self.case.keys],
                         [column and id(column) for column in self.case.payload()])


    # ---- running ----

    def run_set(self, calls, kernel, number, answer):
        with calls.handle("job", kernel, None) as sort:
            self.side.bind(calls, number, sort, ROWS)
            self.side.append(calls, number, self.side.cuts_of(number), sort, ROWS, number % 3 == 0)
            calls("quern_job_finalise", sort)
            self.marks[f"method {calls.layout(sort)}"] += 1
            with self.output(calls, number, sort, ROWS) as output:
                calls.read(output, answer)

    # ---- comparing ----

    def _expected(self, duckdb):
        """All rows in order: (set, row, class, windows)."""
        rows = self.sets.rows()
        self.counts["rows"] += len(rows)
        columns = {"d": pa.array(self.sets.set_of_row[rows]), "row_id": pa.array(rows)}
        columns |= {f"k{number}": self.columns[id(key)].for_duckdb(rows) for number, key in enumerate(self.case.keys)}
        duckdb.register("input", pa.table(columns))
        table = duckdb.sql(_sorted_query(self.case)).to_arrow_table().combine_chunks()
        numbers = [table[name].to_numpy().astype(np.int64) for name in ("d", "row_id", "class", *self.case.window)]
        return numbers[0], numbers[1], numbers[2], numbers[3:]

    def _row_hashes(self, rows):
        """Of the rows of the input, without window functions."""
        columns = []
        for output in self.case.outputs(window=False):
            if output.column is None:
                columns.append(mix(rows))
            else:
                column = self.columns[id(output.column)]
                columns.append(Hasher(output.type, column.values).of_rows(column, rows))
        return row_hashes(columns, len(rows))

    def _answer_hashes(self, answer):
        """(hash of each row that came out, hashes of each window function)."""
        columns, windows = [], []
        for output, chunks in zip(self.case.outputs(), answer.columns):
            if output.column is None:
                (windows if output.window else columns).append(number_hashes(chunks, answer.counts))
            else:
                hasher = Hasher(output.type, self.columns[id(output.column)].values)
                columns.append(hasher.of_answer(chunks, answer.counts))
        num_rows = int(sum(answer.counts))
        return row_hashes(columns, num_rows), windows

    def compare(self, duckdb):
        sets, rows, classes, windows = self._expected(duckdb)
        self.counts["with DuckDB"] += self.counts["cases"]
        yield from self.error_differs({})
        failed = self.failed_sets()
        in_set = np.bincount(sets, minlength=self.num_sets)
        place = np.arange(len(sets)) - (np.cumsum(in_set) - in_set)[sets]
        comes_out = place < self.case.limit if self.case.limit else np.ones(len(sets), bool)
        wanted_rows = np.bincount(sets[comes_out], minlength=self.num_sets)
        hashes = self._row_hashes(rows)
        class_hash = mix(mix(sets) + classes.astype(np.uint64))
        for engine, answer in zip(ENGINES, self.answers):
            found_rows = self.counted_rows(answer)
            wrong = ~failed & (found_rows != wanted_rows)
            for number in np.flatnonzero(wrong):
                yield Disagreement(int(number), f"{engine}: {found_rows[number]} rows; DuckDB has "
                                                f"{wanted_rows[number]}")
            wrong |= failed
            if not self.types:
                continue
            found, found_windows = self._answer_hashes(answer)
            keep_found, keep = ~wrong[answer.set_of_row()], comes_out & ~wrong[sets]
            found, of_set = found[keep_found], sets[keep]
            for name, column, numbers in zip(self.case.window, found_windows, windows):
                for at in np.flatnonzero(column[keep_found] != mix(numbers[keep])):
                    yield Disagreement(int(of_set[at]), f"{engine}: another {name} in place {place[keep][at]}")
            if self.case.stable:
                bad = found != hashes[keep]
            else:
                bad = _not_of_class(found, class_hash[keep], hashes[~wrong[sets]], class_hash[~wrong[sets]])
            for at in np.flatnonzero(bad):
                yield Disagreement(int(of_set[at]), f"{engine}: another row in place {place[keep][at]}; row "
                                   f"{rows[keep][at] - self.sets.first[of_set[at]]} or its like is wanted")


def _not_of_class(found, found_classes, hashes, classes):
    """Of the rows that came out, which are not among the rows of their place's class, or come more often."""
    known, counts = np.unique(hashes ^ classes, return_counts=True)
    rows, inverse, times = np.unique(found ^ found_classes, return_inverse=True, return_counts=True)
    if not len(rows):
        return np.zeros(0, bool)
    at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    return ((known[at] != rows) | (times > counts[at]))[inverse]
