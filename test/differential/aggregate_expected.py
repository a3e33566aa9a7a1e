# SPDX-License-Identifier: Apache-2.0
"""The expected result of an aggregation, and the comparison of an answer with it. Python finds the groups and takes the
answers of aggregate_answers.py; DuckDB must agree.

Groups are compared as a set, by their normalised keys. Sums of floats may differ in their last bits where rows may come
in another order; two runs in the same order, compiled and generic, must agree bit by bit.
"""
import collections
import dataclasses
import math

from aggregate_answers import CANONICAL_NAN, answer_of, overflow_of, overflow_text, real_of, taking_part
from aggregate_functions import ALWAYS_NULLABLE, FUNCTIONS
from aggregate_rows import group_keys
from oracle import normalise
from result_columns import Mismatch

AFTER_A_FAILURE = "after a failed append"  # what other threads are told
FAILED_PRECONDITION, OUT_OF_RANGE = 3, 7


def is_nullable(case, aggregate):
    function = FUNCTIONS[aggregate.function]
    return function.result != "count" and bool(
        aggregate.function in ALWAYS_NULLABLE or aggregate.filter or not case.keys or
        any(column_type.nullable for column_type in aggregate.types))


def output_types(case):
    """The result's columns: keys, then aggregates."""
    keys = [dataclasses.replace(key.type, index="", collation="", null_equal=False) for key in case.keys]
    return keys + [FUNCTIONS[item.function].result_type(item.types, is_nullable(case, item))
                   for item in case.aggregates]


def check_spelling(column, value, rows, spelling):
    """Of a key of these rows' group: a float has one spelling; a string is spelt as in the first row, or in any."""
    if value is None:
        return
    if column.type.is_float:
        normalised = normalise(column.type, value)
        if value != (CANONICAL_NAN[column.type.name] if normalised == "NaN" else normalised):
            raise Mismatch(f"a key comes out as {value:#x}, which is not normalised")
    if column.type.is_collated:
        rows = rows[:1] if spelling == "first" else rows
        # One code stands for all spellings in all dictionaries that there were, used or not.
        spellings = column.values if column.type.index else {column.values[column.indices[row]] for row in rows}
        if value not in spellings:
            raise Mismatch(f"a key comes out as {value}, which none of the rows has that may spell it ({spelling})")


@dataclasses.dataclass
class Group:
    rows: list
    answers: list  # of each aggregate


class Expected:
    def __init__(self, case, duckdb_oracle):
        self.case, self.groups, self.seen = case, {}, {}
        self.must_fail, self.may_fail = set(), set()  # texts
        rows_of = collections.defaultdict(list)
        for row, key in enumerate(group_keys(case.keys, case.num_rows)):
            rows_of[key].append(row)
        if not case.keys:
            rows_of[()]  # the one group that is there without rows, too
        for key, rows in rows_of.items():
            self.groups[key] = Group(rows, [self._answer(aggregate, rows) for aggregate in case.aggregates])
        if not self.must_fail:
            duckdb_oracle.check(case, self.groups)
        self.types = output_types(case)
        self.key_types = [dataclasses.replace(key.type, index="", null_equal=False) for key in case.keys]

    def _answer(self, aggregate, rows):
        values = taking_part(aggregate, rows)
        overflow = overflow_of(aggregate, values)
        if overflow == "never":
            return answer_of(aggregate, values)
        (self.must_fail if overflow == "always" else self.may_fail).add(overflow_text(aggregate))
        return answer_of(aggregate, values) if overflow == "perhaps" else None

    def check(self, answer):
        if answer.out_of_memory:
            return
        if answer.error or self.must_fail:
            self._check_error(answer)
            return
        if answer.num_rows is not None and answer.num_rows != self.case.num_rows:
            raise Mismatch(f"stats say input_rows {answer.num_rows}; expected {self.case.num_rows}")
        for name, number in (("stats say num_groups", answer.num_groups), ("groups that came out:", len(answer.rows))):
            is_bound = answer.layout == "spilled" and number is answer.num_groups and number > len(self.groups)
            if number != len(self.groups) and not is_bound:
                raise Mismatch(f"{name} {number}; expected {len(self.groups)}{self._wrong_groups(answer.rows)}")
        found = set()
        for row in answer.rows:
            found.add(self._checked(row, answer.spelling))
        if len(found) != len(self.groups):
            raise Mismatch(f"{len(answer.rows) - len(found)} groups come out twice")
        self._check_repeats(answer)

    def _check_error(self, answer):
        if not answer.error:
            raise Mismatch(f"no error; expected one of {sorted(self.must_fail)}")
        allowed = self.must_fail | self.may_fail
        is_echo = answer.concurrent and allowed and AFTER_A_FAILURE in answer.error.text
        wanted = FAILED_PRECONDITION if is_echo else OUT_OF_RANGE
        if answer.error.text not in allowed and not is_echo or answer.error.status != wanted:
            raise Mismatch(f"failed: {answer.error}; expected one of {sorted(allowed) or 'none'}")

    def _key_of(self, row):
        return tuple((None,) if value is None else (normalise(key_type, value),)
                     for key_type, value in zip(self.key_types, row))

    def _checked(self, row, spelling):
        """The key of a result row that is as it should be."""
        key = self._key_of(row)
        group = self.groups.get(key)
        if group is None:
            raise Mismatch(f"a group that there is not: {row}{self._wrong_groups([row])}")
        for column, value in zip(self.case.keys, row):
            check_spelling(column, value, group.rows, spelling)
        for number, answer in enumerate(group.answers):
            value = row[len(self.case.keys) + number]
            if not answer.takes(value):
                raise Mismatch(f"{self.case.aggregates[number].text()} of the group {row[:len(self.case.keys)]} is "
                               f"{self._shown(value, self.types[len(self.case.keys) + number])}; expected {answer}\n"
                               f"  the group's {len(group.rows)} rows: {group.rows[:20]}; the values that take part: "
                               f"{[values[:20] for values in taking_part(self.case.aggregates[number], group.rows)]}")
        return key

    def _shown(self, value, column_type):
        return (f"{value} ({real_of(column_type.name, value)!r})" if column_type.is_float
                and value is not None else repr(value))

    def _wrong_groups(self, rows):
        keys = collections.Counter(self._key_of(row) for row in rows)
        missing = [key for key in self.groups if key not in keys]
        strangers = [key for key in keys if key not in self.groups]
        twice = [key for key, count in keys.items() if count > 1]
        return (f"\n  {len(missing)} missing: {missing[:3]}\n  {len(strangers)} unexpected: {strangers[:3]}\n"
                f"  {len(twice)} more than once: {twice[:3]}")

    def _check_repeats(self, answer):
        """The same bits as another engine's in the same order."""
        if answer.order is None:
            return
        rows = sorted((tuple(map(self._comparable, row, self.types)) for row in answer.rows), key=repr)
        before = self.seen.setdefault(answer.order, rows)
        for one, other in zip(before, rows):
            if one != other:
                raise Mismatch(f"another engine found other bits in the same order of rows:\n  {one}\n  {other}")

    @staticmethod
    def _comparable(value, column_type):
        return "NaN" if value is not None and column_type.name == "f64" and math.isnan(real_of("f64", value)) else value
