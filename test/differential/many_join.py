# SPDX-License-Identifier: Apache-2.0
"""Joins of many data sets: one query of DuckDB joins those of a spec, with the data set's number as one more key.

DuckDB answers pairs of row numbers. The columns of these rows are what Quern's result has to hold, as a multiset for
each data set. A single join fails where a probe row has two matches, exactly in those data sets.
"""
import dataclasses

import numpy as np
import pyarrow as pa

import many_data
from join_case import Case, random_params
from join_expected import SECOND_MATCH
from join_rows import SIDES
from many_data import BulkColumn, DataSets, codes_of_ranks, own_codes, random_base, random_nulls, random_ranks
from many_hashes import NULL, Hasher, mix, number_hashes, row_hashes, set_sums
from many_job import Disagreement, ManyJob, Side
from oracle import join_query
from quern_abi import BUILD, PROBE, UNMATCHED
from random_data import ColumnType

MOST_PAIRS = 20_000  # of a data set


class Job(ManyJob):
    operator = "join"

    def __init__(self, seed, number, num_sets):
        super().__init__(seed, number, num_sets)
        size = self.rng.choice((20, 300, 300, 1000))
        self.case = case = self.chosen(
            lambda attempt: Case.generate(seed, attempt, {side: size for side in SIDES}))
        self.spec = case.spec()
        self._params = random_params(self.rng, case)
        self.sets_of = {side: DataSets(self.sizes(self._params)) for side in SIDES}
        self.sets, self.all_sets = self.sets_of["probe"], list(self.sets_of.values())
        self._add_columns()
        for sets in self.all_sets:
            sets.select_some(self.np_rng, 0.2)
        self._limit_pairs()
        self.types = [dataclasses.replace(output.type, index="") if output.column or output.side == "mark" else
                      ColumnType("u64", nullable=output.type.nullable) for output in case.outputs()]
        self.marks[f"kind {case.kind.name}"] += 1
        self.marks.update({"residual": len(case.residuals)})
        self.marks.update(f"key {key.type.name}" for key in case.keys)
        self.marks.update(f"collation {key.type.collation}" for key in case.keys if key.type.collation)

    def random_params(self):
        return self._params

    # ---- data ----

    def _pool(self, column):
        values = many_data.random_pool(self.rng, column.type, column.values, not self.case.fits_word())
        self.pools[id(column)] = values
        return values

    def _add_columns(self):
        """The columns of both sides by id(column): keys from common ranks, the others on their own."""
        case, rng = self.case, self.np_rng
        self.pools, self.columns = {}, {side: {} for side in SIDES}
        num_ranks = max(len(self._pool(key)) for key in case.keys) * self.rng.choice((1, 1, 2))
        maps = {id(key): self._code_of_rank(key, num_ranks) for key in case.keys}
        base = random_base(rng, self.num_sets, num_ranks)
        for side in SIDES:
            sets = self.sets_of[side]
            unique = 0.7 if side == "build" and case.kind.name == "single" else 0.2
            shifted = np.where(rng.random(self.num_sets) < 0.8, base, random_base(rng, self.num_sets, num_ranks))
            ranks = random_ranks(rng, sets, num_ranks, shifted, unique)
            for key in case.keys:
                codes = codes_of_ranks(rng, sets, ranks, maps[id(key)])
                self._add(side, key, codes)
            for column in case.columns(case.sides[side]):
                if id(column) not in self.columns[side]:
                    values = self.pools.get(id(column)) or self._pool(column)
                    self._add(side, column, own_codes(rng, sets, len(values)))

    def _code_of_rank(self, key, num_ranks):
        num_values = len(self.pools[id(key)])
        if self.rng.random() < 0.6:
            return np.arange(num_ranks) % num_values
        return self.np_rng.integers(0, num_values, num_ranks)

    def _add(self, side, column, codes):
        nulls = random_nulls(self.np_rng, self.sets_of[side], column.type)
        self.columns[side][id(column)] = BulkColumn(column.type, self.pools[id(column)], codes, nulls)

    def _limit_pairs(self):
        """Halves data sets until none has too many pairs of rows with equal keys."""
        classes = {}
        for side in SIDES:
            keys = [self.columns[side][id(key)] for key in self.case.keys]
            hashes = [Hasher(key.type, key.values).of_rows(key, by_class=True) for key in keys]
            sets = self.sets_of[side]
            classes[side] = row_hashes(hashes + [mix(sets.set_of_row)], sets.num_rows)
            for key in keys:
                if key.nulls is not None and not key.type.null_equal:
                    classes[side] = np.where(key.nulls, mix(np.arange(sets.num_rows)) ^ NULL, classes[side])
        while len(large := self._sets_with_many_pairs(classes)):
            for sets in self.all_sets:
                sets.halve(large)

    def _sets_with_many_pairs(self, classes):
        counts, set_of = {}, None
        for side in SIDES:
            rows = self.sets_of[side].rows()
            found, first, counts[side] = np.unique(classes[side][rows], return_index=True, return_counts=True)
            counts[side] = found, counts[side], self.sets_of[side].set_of_row[rows][first]
        _, build, probe = np.intersect1d(counts["build"][0], counts["probe"][0], True, True)
        set_of = counts["build"][2][build]
        pairs = np.bincount(set_of, counts["build"][1][build] * counts["probe"][1][probe], self.num_sets)
        return np.flatnonzero(pairs > MOST_PAIRS)

    def bind(self):
        """The batches of both sides."""
        self.sides = {}
        for side in SIDES:
            payload = [item.column and id(item.column) for item in self.case.sides[side].payload]
            payload += [id(conjunct.column) for conjunct in self.case.residuals]
            self.sides[side] = Side(self.rng, self.sets_of[side], self.columns[side],
                                    [id(key) for key in self.case.keys], payload)

    # ---- running ----

    def run_set(self, calls, kernel, number, answer):
        build, probe = self.sides["build"], self.sides["probe"]
        with calls.handle("job", kernel, None) as join:
            build.bind(calls, number, join, BUILD)
            probe.bind(calls, number, join, PROBE)
            build.append(calls, number, build.cuts_of(number), join, BUILD, number % 3 == 0)
            calls("quern_job_finalise", join)
            self.marks[f"layout {calls.layout(join)}"] += 1
            with self.output(calls, number, join, PROBE) as output:
                for cut in probe.cuts_of(number):
                    probe.feed(calls, number, cut, "quern_output_push", output)
                    calls.read(output, answer)
            if self.case.kind.scans_unmatched:
                with self.output(calls, number, join, UNMATCHED) as output:
                    calls.read(output, answer)

    # ---- comparing ----

    def _register(self, duckdb, side):
        sets, rows = self.sets_of[side], self.sets_of[side].rows()
        columns = {"d": pa.array(sets.set_of_row[rows]), "row_id": pa.array(rows)}
        for number, key in enumerate(self.case.keys):
            columns[f"k{number}"] = self.columns[side][id(key)].for_duckdb(rows)
        for number, conjunct in enumerate(self.case.residuals):
            column = self.columns[side][id(conjunct.column)]
            columns[f"r{number}"] = column.for_duckdb(rows, conjunct.type)
        self.counts["rows"] += len(rows)
        duckdb.register(side, pa.table(columns))

    def _expected_rows(self, duckdb):
        """(set, probe row, build row, mark), -1 for null."""
        for side in SIDES:
            self._register(duckdb, side)
        table = duckdb.sql(join_query(self.case, by_set=True)).to_arrow_table().combine_chunks()
        probe, build = (table[name].combine_chunks().fill_null(-1).to_numpy().astype(np.int64)
                        for name in ("probe", "build"))
        mark = table["mark"].combine_chunks().cast(pa.int8()).fill_null(-1).to_numpy()
        of_side = {side: np.append(self.sets_of[side].set_of_row, 0) for side in SIDES}
        return np.where(probe >= 0, of_side["probe"][probe], of_side["build"][build]), probe, build, mark

    def compare(self, duckdb):
        sets, probe, build, mark = self._expected_rows(duckdb)
        self.counts["with DuckDB"] += self.counts["cases"]
        must_fail = {}
        if self.case.kind.name == "single":
            pairs = np.bincount(probe[build >= 0], minlength=self.sets.num_rows + 1)
            must_fail = {int(number): SECOND_MATCH for number in np.unique(self.sets.set_of_row[
                np.flatnonzero(pairs[:self.sets.num_rows] > 1)])}
        yield from self.error_differs(must_fail)
        hashers, columns = [], []
        for output in self.case.outputs():
            rows = {"probe": probe, "build": build, "mark": mark}[output.side]
            if output.column is None:
                hashers.append(None)
                columns.append(np.where(rows < 0, NULL, mix(rows)))
            else:
                column = self.columns[output.side][id(output.column)]
                hashers.append(Hasher(output.type, column.values))
                columns.append(hashers[-1].of_rows(column, rows))
        wanted = set_sums(row_hashes(columns, len(sets)), sets, self.num_sets)
        answers = [self._sums(answer, hashers) for answer in self.answers]
        failed = self.failed_sets()
        for engine, (rows, sums) in zip(("jit", "generic"), answers):
            wrong = ~failed & ((rows != wanted[0]) | (sums != wanted[1]) & bool(hashers))
            if self.only is not None:
                wrong &= np.arange(self.num_sets) == self.only
            for number in np.flatnonzero(wrong):
                yield Disagreement(int(number), f"{engine}: {rows[number]} rows; DuckDB has {wanted[0][number]}"
                                                f"{', other ones' if rows[number] == wanted[0][number] else ''}")

    def _sums(self, answer, hashers):
        if not hashers:
            return self.counted_rows(answer), np.zeros(self.num_sets, np.uint64)
        columns = [number_hashes(chunks, answer.counts) if hasher is None else
                   hasher.of_answer(chunks, answer.counts) for chunks, hasher in zip(answer.columns, hashers)]
        sets = answer.set_of_row()
        return set_sums(row_hashes(columns, len(sets)), sets, self.num_sets)

    def tables(self):
        return [(side, self.sets_of[side], self.columns[side]) for side in SIDES]
