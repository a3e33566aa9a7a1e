# SPDX-License-Identifier: Apache-2.0
"""Aggregations of many data sets: one query of DuckDB groups those of a spec, the data set's number being one more key.

A group is known by its data set and the classes of its keys (many_hashes.py); DuckDB tells it by its lowest row. The
expression and the comparison of each aggregate are in many_aggregate_sql.py. Both engines run with the same parameters,
so that they add in the same order: their answers agree to the bit, also those that DuckDB does not know.
"""
import contextlib
import ctypes
import dataclasses

import numpy as np
import pyarrow as pa

import many_data
from abi_structs import JobOptions, sized
from aggregate_case import Case, random_params
from aggregate_expected import output_types
from aggregate_rows import Aggregate
from many_aggregate_sql import Comparison, group_query
from many_data import BulkColumn, DataSets, codes_of_ranks, own_codes, random_base, random_nulls, random_ranks
from many_hashes import Hasher, mix, row_hashes, set_sums
from many_job import ENGINES, Disagreement, ManyJob, Side
from quern_abi import ROWS, STATES

OVERFLOW = "sum out of range"
_ADDING = ("sum", "sum128", "avg", "sum_distinct", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop",
           "covar_samp", "corr", "median", "quantile")
_MOST_DECIMAL = 10 ** 30


def _summable(column):
    """The values of a decimal column, whose sums fit 128 bits."""
    if not column.type.is_decimal:
        return column.values
    numbers = map(column.type.unscaled, column.values)
    return [column.type.decimal_value(number if abs(number) < _MOST_DECIMAL else number % _MOST_DECIMAL)
            for number in numbers]


class Job(ManyJob):
    operator = "aggregate"
    mixes_params = False

    def __init__(self, seed, number, num_sets):
        super().__init__(seed, number, num_sets)
        tuples = self.rng.choice((20, 300, 300, 1000))
        self.case = case = self.chosen(lambda attempt: Case.generate(seed, attempt, (tuples, tuples)))
        case.aggregates = [aggregate for aggregate in case.aggregates if aggregate.function != "host"]
        if not case.aggregates and not case.keys:
            case.aggregates = [Aggregate("count_star", [], [], None)]
        self.spec = case.spec()
        self._params = random_params(self.rng, case)
        if len(case.keys) > 2 and self._params.get("group_layout") == "dense":
            del self._params["group_layout"]  # a table over the range of several keys costs milliseconds a case
        self.sets = DataSets(self.sizes(self._params))
        self.all_sets = [self.sets]
        self._add_columns()
        self.sets.select_some(self.np_rng, 0.2)
        self.in_phases = self.np_rng.random(num_sets) < 0.15
        self.types = output_types(case)
        self.marks.update(f"function {aggregate.function}" for aggregate in case.aggregates)
        self.marks.update(f"key {key.type.name}" for key in case.keys)
        self.marks.update(f"collation {key.type.collation}" for key in case.keys if key.type.collation)
        self.marks.update({"filter": sum(aggregate.filter is not None for aggregate in case.aggregates)})

    def random_params(self):
        return self._params

    def _add_columns(self):
        case, rng, self.columns = self.case, self.np_rng, {}
        adding = {id(column) for aggregate in case.aggregates if aggregate.function in _ADDING
                  for column in aggregate.arguments}
        pools = {}
        for column in case.columns():
            values = _summable(column) if id(column) in adding else column.values
            is_hard = id(column) not in adding and not (column in case.keys and case.fits_word())
            pools[id(column)] = many_data.random_pool(self.rng, column.type, values, is_hard)
        num_ranks = max([len(pools[id(key)]) for key in case.keys], default=1) * self.rng.choice((1, 1, 2))
        ranks = random_ranks(rng, self.sets, num_ranks, random_base(rng, self.num_sets, num_ranks))
        keys = {id(key) for key in case.keys}
        for column in case.columns():
            num_values = len(pools[id(column)])
            if id(column) in keys:
                in_order = self.rng.random() < 0.6
                code_of_rank = np.arange(num_ranks) % num_values if in_order else rng.integers(0, num_values, num_ranks)
                codes = codes_of_ranks(rng, self.sets, ranks, code_of_rank)
            else:
                codes = own_codes(rng, self.sets, num_values)
            nulls = random_nulls(rng, self.sets, column.type)
            self.columns[id(column)] = BulkColumn(column.type, pools[id(column)], codes, nulls)

    def bind(self):
        self.side = Side(self.rng, self.sets, self.columns, [id(key) for key in self.case.keys],
                         [id(column) for column in self.case.payload()])


    # ---- running ----

    def run_set(self, calls, kernel, number, answer):
        options = sized(JobOptions, expected_groups=number if number % 7 == 0 else 0)
        cuts = self.side.cuts_of(number)
        with contextlib.ExitStack() as jobs:
            job = jobs.enter_context(calls.handle("job", kernel, ctypes.byref(options)))
            self.side.bind(calls, number, job, ROWS)
            if self.in_phases[number] and len(cuts) > 1:
                self.side.append(calls, number, cuts[:1], job, ROWS)
                first, cuts = job, cuts[1:]
                job = jobs.enter_context(calls.handle("job", kernel, None))
                self.side.bind(calls, number, job, ROWS)
                self._hand_over(calls, first, job)
            self.side.append(calls, number, cuts, job, ROWS)
            calls("quern_job_finalise", job)
            self.marks[f"layout {calls.layout(job)}"] += 1
            num_partitions = 3 if number % 11 == 0 else 1
            for partition in range(num_partitions):
                with self.output(calls, number, job, ROWS, partition=partition,
                                 num_partitions=num_partitions) as groups:
                    calls.read(groups, answer)

    @staticmethod
    def _hand_over(calls, one, other):
        """The states of one aggregation into the other."""
        calls("quern_job_finalise", one)
        with calls.handle("output", one, STATES, None) as groups, calls.handle("input", other, STATES, None) as states:
            calls.move_rows(groups, states)
            calls("quern_input_finish", states)

    # ---- comparing ----

    def _register(self, duckdb):
        rows = self.sets.rows()
        self.counts["rows"] += len(rows)
        columns = {"d": pa.array(self.sets.set_of_row[rows]), "row_id": pa.array(rows)}
        for number, key in enumerate(self.case.keys):
            columns[f"k{number}"] = self.columns[id(key)].for_duckdb(rows)
        for number, aggregate in enumerate(self.case.aggregates):
            for place, column in enumerate(aggregate.arguments):
                column_type = aggregate.types[place]
                if aggregate.function not in ("min", "max", "count_distinct", "approx_count_distinct"):
                    column_type = dataclasses.replace(column_type, collation="")
                columns[f"a{number}_{place}"] = self.columns[id(column)].for_duckdb(rows, column_type)
            if aggregate.filter:
                columns[f"f{number}"] = self.columns[id(aggregate.filter)].for_duckdb(rows)
        duckdb.register("input", pa.table(columns))

    def _expected(self, duckdb):
        """DuckDB's groups in the order of their hashes, (table, set, lowest row, hash), and its Comparisons."""
        self._register(duckdb)
        comparisons = [Comparison(self, number, aggregate) for number, aggregate in enumerate(self.case.aggregates)]
        table = duckdb.sql(group_query(self.case, comparisons)).to_arrow_table().combine_chunks()
        if not self.case.keys:
            table = self._with_empty_sets(table, comparisons)
        sets, rows = (table[name].to_numpy().astype(np.int64) for name in ("d", "row"))
        hashes = [Hasher(key.type, self.columns[id(key)].values).of_rows(self.columns[id(key)], rows, True)
                  for key in self.case.keys]
        hashes = row_hashes([*hashes, mix(sets)], len(sets))
        order = np.argsort(hashes)
        return table.take(pa.array(order)), sets[order], rows[order], hashes[order], comparisons

    def _with_empty_sets(self, table, comparisons):
        """Without keys there is a group where there are no rows."""
        numbers = range(self.num_sets) if self.only is None else [self.only]
        empty = sorted(set(numbers) - set(table["d"].to_pylist()))
        values = {"d": empty, "row": [-1] * len(empty)}
        for comparison in comparisons:
            for name, value in comparison.of_no_rows().items():
                values[name] = [value] * len(empty)
        columns = [pa.array(values[field.name], field.type) for field in table.schema]
        return pa.concat_tables([table, pa.table(columns, schema=table.schema)])

    def compare(self, duckdb):
        table, sets, rows, hashes, comparisons = self._expected(duckdb)
        if all(comparison.is_known or comparison.name == "any" for comparison in comparisons):
            self.counts["with DuckDB"] += self.counts["cases"]
        yield from self.error_differs(self._overflows(table, sets, comparisons))
        failed, answers = self.failed_sets(), []
        wanted = set_sums(hashes, sets, self.num_sets)
        for engine, answer in zip(ENGINES, self.answers):
            found = self._found(answer)
            sums = set_sums(found[1], found[0], self.num_sets)
            wrong = ~failed & ((sums[0] != wanted[0]) | (sums[1] != wanted[1]))
            for number in np.flatnonzero(wrong):
                yield Disagreement(int(number), f"{engine}: {sums[0][number]} groups; DuckDB has {wanted[0][number]}"
                                   f"{', other ones' if sums[0][number] == wanted[0][number] else ''}")
            failed |= wrong
            answers.append((engine, answer, found))
        keep = ~failed[sets]
        rows, kept_sets = rows[keep], sets[keep]
        table = table.filter(pa.array(keep))
        aligned = []
        for engine, answer, (of_set, found, keys) in answers:
            places = np.flatnonzero(~failed[of_set])
            places = places[np.argsort(found[places])]
            aligned.append(places)
            yield from self._wrong_keys(engine, answer, places, rows, kept_sets)
            for comparison in comparisons:
                for place in comparison.wrong(answer, places, table, rows, found[places]):
                    yield Disagreement(int(kept_sets[place]), f"{engine}: {comparison.text} of the group with row "
                                       f"{rows[place] - self.sets.first[kept_sets[place]]}: "
                                       f"{comparison.difference(answer, places, table, place)}")
        yield from self._same_bits(aligned, comparisons, kept_sets)

    def _overflows(self, table, sets, comparisons):
        expected = {}
        for name, text in (("may", None), ("over", OVERFLOW)):
            for comparison in comparisons:
                if comparison.checks_overflow:
                    flags = table[f"{name}{comparison.number}"].combine_chunks().fill_null(False)
                    for number in np.unique(sets[flags.to_numpy(zero_copy_only=False)]):
                        expected[int(number)] = text
        return expected

    def _found(self, answer):
        """(set, hash) of each group that came out."""
        sets = answer.set_of_row()
        if not self.case.keys:
            return sets, row_hashes([mix(sets)], len(sets)), []
        hashes = [Hasher(key.type, self.columns[id(key)].values).of_answer(chunks, answer.counts, True)
                  for key, chunks in zip(self.case.keys, answer.columns)]
        return sets, row_hashes([*hashes, mix(sets)], len(sets)), hashes

    def _wrong_keys(self, engine, answer, places, rows, sets):
        """Keys that are not spelt as in the group's first row."""
        for number, (key, chunks) in enumerate(zip(self.case.keys, answer.columns)):
            if not key.type.is_collated or key.type.index:
                continue
            hasher = Hasher(key.type, self.columns[id(key)].values)
            found = hasher.of_answer(chunks, answer.counts)[places]
            wrong = (found != hasher.of_rows(self.columns[id(key)], rows)) & ~self.in_phases[sets]
            for place in np.flatnonzero(wrong):
                yield Disagreement(int(sets[place]), f"{engine}: key {number} is not spelt as in row {rows[place]}")

    def _same_bits(self, aligned, comparisons, sets):
        """The aggregates of both engines."""
        for comparison in comparisons:
            for place in comparison.other_bits(self.answers, aligned):
                yield Disagreement(int(sets[place]), f"{comparison.text}: the engines have other bits")

