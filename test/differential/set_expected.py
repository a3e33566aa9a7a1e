# SPDX-License-Identifier: Apache-2.0
"""The expected rows of a set operation, and the comparison of an answer with them. Python counts the rows of each group
on either side; DuckDB's UNION, INTERSECT [ALL] and EXCEPT [ALL] must give each group as often.

Rows are compared as a multiset, by their normalised keys. Of strings that a collation takes as equal, the first one
comes out where rows come in order, else any one of either side.
"""
import collections
import dataclasses

import duckdb
import pyarrow as pa

from aggregate_duckdb import SqlKey
from aggregate_expected import check_spelling
from aggregate_rows import group_keys
from oracle import duckdb_column, normalise, sql_key
from result_columns import Mismatch

SQL = {"union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT", "intersect_all": "INTERSECT ALL",
        "except_all": "EXCEPT ALL"}


def copies(kind, left, right):
    """How often a row comes out that is so many times on either side."""
    return {"union": 1, "intersect": int(left > 0 and right > 0), "except": int(left > 0 and right == 0),
            "intersect_all": min(left, right), "except_all": max(left - right, 0)}[kind]


def output_types(case):
    return [dataclasses.replace(key.type, index="", collation="", null_equal=False) for key in case.keys]


class DuckdbSets:
    def __init__(self):
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def check(self, case, numbers, expected):
        """Raises AssertionError where DuckDB's rows are not Python's: a defect of the harness. `numbers`: the group's
        number of each row; `expected`: how often each comes out."""
        columns = {"number": pa.array(numbers, pa.int64()), "is_left": pa.array(case.is_left, pa.bool_())}
        columns |= {f"k{place}": duckdb_column(key.type, key.values, key.indices)
                    for place, key in enumerate(case.keys)}
        keys = ", ".join(f"{sql_key(SqlKey(key.type), f'k{place}')} AS e{place}"
                         for place, key in enumerate(case.keys))
        same = " AND ".join(f"s.e{place} IS NOT DISTINCT FROM g.e{place}" for place in range(len(case.keys)))
        query = (f"WITH s AS (SELECT {keys} FROM input WHERE is_left {SQL[case.kind]} "
                 f"SELECT {keys} FROM input WHERE NOT is_left), g AS (SELECT DISTINCT number, {keys} FROM input) "
                 f"SELECT g.number, count(*) FROM s JOIN g ON {same} GROUP BY g.number")
        self._connection.register("input", pa.table(columns))
        try:
            found = dict(self._connection.sql(query).fetchall())
        finally:
            self._connection.unregister("input")
        wanted = {number: count for number, count in enumerate(expected) if count}
        if found != wanted:
            differing = sorted(set(found.items()) ^ set(wanted.items()))[:5]
            raise AssertionError(f"the oracles disagree (a defect of this harness) on {case.spec()}, replay "
                                 f"{case.replay()}: (group, how often) of one alone: {differing}")


class Expected:
    def __init__(self, case, duckdb_oracle):
        self.case, self.rows_of = case, collections.defaultdict(list)
        keys = group_keys(case.keys, case.num_rows)
        for row, key in enumerate(keys):
            self.rows_of[key].append(row)
        self.counts = {}
        for key, rows in self.rows_of.items():
            left = sum(case.is_left[row] for row in rows)
            self.counts[key] = copies(case.kind, left, len(rows) - left)
        self.num_rows = sum(self.counts.values())
        number_of = {key: number for number, key in enumerate(self.counts)}
        duckdb_oracle.check(case, [number_of[key] for key in keys], list(self.counts.values()))
        self.key_types = [dataclasses.replace(key.type, index="", null_equal=False) for key in case.keys]

    def check(self, answer):
        if answer.out_of_memory:
            return
        for what, number, wanted in (("stats say input_rows", answer.num_input_rows, self.case.num_rows),
                                     ("stats say num_groups", answer.num_groups, len(self.rows_of)),
                                     ("rows that came out:", len(answer.rows), self.num_rows)):
            is_bound = answer.layout == "spilled" and what.endswith("num_groups") and number > wanted
            if number is not None and number != wanted and not is_bound:
                raise Mismatch(f"{what} {number}; expected {wanted}")
        found = collections.Counter()
        for row, count in collections.Counter(answer.rows).items():
            key = tuple((None,) if value is None else (normalise(key_type, value),)
                        for key_type, value in zip(self.key_types, row))
            found[key] += count
            rows = self._spelling_rows(key, answer.spelling)
            for column, value in zip(self.case.keys, row):
                check_spelling(column, value, rows, "any")
        wrong = [(key, found[key], count) for key, count in self.counts.items() if found[key] != count]
        if wrong or sum(found.values()) != self.num_rows:
            strangers = [key for key in found if key not in self.counts]
            raise Mismatch(f"(row, how often it came out, expected): {wrong[:3]}; unexpected: {strangers[:3]}")

    def _spelling_rows(self, key, spelling):
        """The group's rows that may spell its key: each side comes by an input of its own, whose groups then meet."""
        rows = self.rows_of.get(key, ())
        if spelling == "any":
            return rows
        sides = [[row for row in rows if self.case.is_left[row] == is_left] for is_left in (True, False)]
        return [of_side[0] for of_side in sides if of_side]
