# SPDX-License-Identifier: Apache-2.0
"""Set operations of many data sets: one query of DuckDB combines those of a spec, the data set's number being one more
key.

DuckDB tells each result row by the lowest row that has its keys, on either side. Both sides have the same pools of
values, so the classes of these keys (many_hashes.py) are what Quern's rows have to hold, as a multiset for each data
set. How a row is spelt under a collation is run.py's to check.
"""
import contextlib

import numpy as np
import pyarrow as pa

import many_data
from aggregate_case import random_params
from aggregate_duckdb import SqlKey
from many_data import BulkColumn, DataSets, codes_of_ranks, random_base, random_nulls, random_ranks
from many_hashes import Hasher, row_hashes, set_sums
from many_job import ENGINES, Disagreement, ManyJob, Side
from oracle import sql_key
from quern_abi import LEFT, RIGHT, ROWS, STATES
from set_case import SIDES, Case
from set_expected import SQL, output_types

_PORTS = {"left": LEFT, "right": RIGHT}


class Job(ManyJob):
    operator = "set"

    def __init__(self, seed, number, num_sets):
        super().__init__(seed, number, num_sets)
        tuples = self.rng.choice((20, 300, 300, 1000))
        self.case = case = self.chosen(lambda attempt: Case.generate(seed, attempt, (tuples, tuples)))
        self.spec = case.spec()
        self._params = random_params(self.rng, case)
        if len(case.keys) > 2 and self._params.get("group_layout") == "dense":
            del self._params["group_layout"]  # a table over the range of several keys costs milliseconds a case
        self.sets_of = {side: DataSets(self.sizes(self._params)) for side in SIDES}
        self.sets, self.all_sets = self.sets_of["left"], list(self.sets_of.values())
        self._add_columns()
        for sets in self.all_sets:
            sets.select_some(self.np_rng, 0.2)
        self.in_phases = self.np_rng.random(num_sets) < 0.15
        self.types = output_types(case)
        self.marks[f"kind {case.kind}"] += 1
        self.marks.update(f"key {key.type.name}" for key in case.keys)
        self.marks.update(f"collation {key.type.collation}" for key in case.keys if key.type.collation)

    def random_params(self):
        return self._params

    # ---- data ----

    def _add_columns(self):
        """The keys of both sides, from common ranks."""
        rng, keys = self.np_rng, self.case.keys
        pools = [many_data.random_pool(self.rng, key.type, key.values, not self.case.fits_word()) for key in keys]
        num_ranks = max(map(len, pools)) * self.rng.choice((1, 1, 2))
        maps = [np.arange(num_ranks) % len(pool) if self.rng.random() < 0.6 else rng.integers(0, len(pool), num_ranks)
                for pool in pools]
        base = random_base(rng, self.num_sets, num_ranks)
        self.columns = {}
        for side, sets in self.sets_of.items():
            shifted = np.where(rng.random(self.num_sets) < 0.8, base, random_base(rng, self.num_sets, num_ranks))
            ranks = random_ranks(rng, sets, num_ranks, shifted)
            self.columns[side] = [BulkColumn(key.type, pool, codes_of_ranks(rng, sets, ranks, code_of_rank),
                                             random_nulls(rng, sets, key.type))
                                  for key, pool, code_of_rank in zip(keys, pools, maps)]

    def bind(self):
        """The batches of both sides."""
        places = range(len(self.case.keys))
        self.sides = {side: Side(self.rng, self.sets_of[side], dict(enumerate(self.columns[side])), places, [])
                      for side in SIDES}

    # ---- running ----

    def _append(self, calls, number, cuts, job):
        """Batches of both sides, those of the right first now and then."""
        for name in SIDES if number % 3 else SIDES[::-1]:
            self.sides[name].append(calls, number, cuts[name], job, _PORTS[name], number % 5 == 0)

    def _new_job(self, calls, kernel, number, jobs):
        job = jobs.enter_context(calls.handle("job", kernel, None))
        for name, side in self.sides.items():
            side.bind(calls, number, job, _PORTS[name])
        return job

    def run_set(self, calls, kernel, number, answer):
        cuts = {name: side.cuts_of(number) for name, side in self.sides.items()}
        with contextlib.ExitStack() as jobs:
            job = self._new_job(calls, kernel, number, jobs)
            if self.in_phases[number]:
                self._append(calls, number, {name: of_side[:1] for name, of_side in cuts.items()}, job)
                cuts = {name: of_side[1:] for name, of_side in cuts.items()}
                first, job = job, self._new_job(calls, kernel, number, jobs)
                self._hand_over(calls, first, job)
            self._append(calls, number, cuts, job)
            calls("quern_job_finalise", job)
            self.marks[f"layout {calls.layout(job)}"] += 1
            num_partitions = 3 if number % 11 == 0 else 1
            for partition in range(num_partitions):
                with self.output(calls, number, job, ROWS, partition=partition,
                                 num_partitions=num_partitions) as rows:
                    calls.read(rows, answer)

    @staticmethod
    def _hand_over(calls, one, other):
        """The states of one job into the other."""
        calls("quern_job_finalise", one)
        with calls.handle("output", one, STATES, None) as groups, calls.handle("input", other, STATES, None) as states:
            calls.move_rows(groups, states)
            calls("quern_input_finish", states)

    # ---- comparing ----

    def _register(self, duckdb):
        first = 0
        for side, sets in self.sets_of.items():
            rows = sets.rows()
            self.counts["rows"] += len(rows)
            columns = {"d": pa.array(sets.set_of_row[rows]), "number": pa.array(rows + first)}
            columns |= {f"k{place}": column.for_duckdb(rows) for place, column in enumerate(self.columns[side])}
            duckdb.register(f"{side}_rows", pa.table(columns))
            first += sets.num_rows

    def _expected_rows(self, duckdb):
        """(set, lowest row) of each result row; rows of the right count on from those of the left."""
        self._register(duckdb)
        keys = ", ".join(["d", *(f"{sql_key(SqlKey(key.type), f'k{place}')} AS e{place}"
                                 for place, key in enumerate(self.case.keys))])
        names = [f"e{place}" for place in range(len(self.case.keys))]
        same = " AND ".join(["s.d = g.d", *(f"s.{name} IS NOT DISTINCT FROM g.{name}" for name in names)])
        left, right = (f"SELECT {keys} FROM {side}_rows" for side in SIDES)
        every = " UNION ALL ".join(f"SELECT number, {keys} FROM {side}_rows" for side in SIDES)
        table = duckdb.sql(f"WITH s AS ({left} {SQL[self.case.kind]} {right}), g AS (SELECT d, {', '.join(names)}, "
                           f"min(number) AS lowest FROM ({every}) GROUP BY ALL) SELECT g.d AS d, g.lowest AS lowest "
                           f"FROM s JOIN g ON {same}").to_arrow_table().combine_chunks()
        return (table[name].to_numpy().astype(np.int64) for name in ("d", "lowest"))

    def _hashes(self, place, hasher, rows):
        left, right = (self.columns[side][place] for side in SIDES)
        num_left = self.sets_of["left"].num_rows
        of_left = hasher.of_rows(left, np.where(rows < num_left, rows, -1), True)
        return np.where(rows < num_left, of_left, hasher.of_rows(right, np.where(rows < num_left, -1, rows - num_left),
                                                                 True))

    def compare(self, duckdb):
        sets, rows = self._expected_rows(duckdb)
        self.counts["with DuckDB"] += self.counts["cases"]
        yield from self.error_differs({})
        hashers = [Hasher(key.type, column.values) for key, column in zip(self.case.keys, self.columns["left"])]
        columns = [self._hashes(place, hasher, rows) for place, hasher in enumerate(hashers)]
        wanted = set_sums(row_hashes(columns, len(sets)), sets, self.num_sets)
        failed = self.failed_sets()
        for engine, answer in zip(ENGINES, self.answers):
            found = [hasher.of_answer(chunks, answer.counts, True) for chunks, hasher in zip(answer.columns, hashers)]
            of_set = answer.set_of_row()
            num_rows, sums = set_sums(row_hashes(found, len(of_set)), of_set, self.num_sets)
            wrong = ~failed & ((num_rows != wanted[0]) | (sums != wanted[1]))
            if self.only is not None:
                wrong &= np.arange(self.num_sets) == self.only
            for number in np.flatnonzero(wrong):
                yield Disagreement(int(number), f"{engine}: {num_rows[number]} rows; DuckDB has {wanted[0][number]}"
                                                f"{', other ones' if num_rows[number] == wanted[0][number] else ''}")

    def tables(self):
        return [(side, self.sets_of[side], dict(enumerate(self.columns[side]))) for side in SIDES]
