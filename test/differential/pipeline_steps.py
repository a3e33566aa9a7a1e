# SPDX-License-Identifier: Apache-2.0
"""Random steps of pipelines, and the rows behind them:

    step = random_filter(rng, rows, name)
    step.text()              "filter i32 >= 20 [$0]"
    step.apply(rows)         the rows behind it

The rows are those of the step's own operator (filter_expected.py, map_operator.py, oracle.py). Maps have expressions
that mean the same in SQL; map_expressions.py says which do not, and `--operator map` compares these between kernels. A
map, or a join that allows one match a row, may have rows without a result: then all rows are `failed_at` the step, and
behind it stand columns of the right types, with values that nobody compares.
"""
import dataclasses
import types

import filter_case
import filter_expected
import map_case
from filter_conditions import Leaf
from filter_rows import GivenColumns, random_condition
from join_expected import MAX_PYTHON_ROWS, cross_check
from join_kinds import KINDS, MATCHED, UNMATCHED
from map_dates import DateMaker
from map_expressions import INTEGERS, Expression, Maker, value_type
from map_numbers import NumberMaker
from map_string_sql import COLLATIONS, TEXT_TYPES, is_string
from map_strings import TextMaker
from oracle import python_rows
from pipeline_joins import FlowJoin, random_join
from pipeline_rows import (FlowColumn, Rows, as_compared, bound, bracketed, column_of, is_value, maybe_nullable,
                           oracles, placeholder)
from random_data import DECIMAL_DIGITS, ColumnType

_TRIES = 40


# ---- filters ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class FilterStep:
    condition: object
    name: tuple  # seed and number: of the case
    word = "filter"
    table = None

    def _case(self, num_rows):
        return filter_case.Case(*self.name, num_rows, self.condition, False, [], {}, num_rows)

    def text(self):
        return f"{self._case(0).spec()} {bracketed(column.number for column in self.condition.columns())}"

    def apply(self, rows):
        if rows.failed_at:
            return rows
        for leaf in self.condition.leaves():
            leaf.column = bound(leaf.column, rows)
            leaf.other = leaf.other and bound(leaf.other, rows)
        truths = filter_expected.Expected(self._case(rows.num_rows), oracles().filter).truths
        return rows.some([row for row, truth in enumerate(truths) if truth is True])


def random_filter(rng, rows, name):
    return FilterStep(random_condition(rng, rows.num_rows, GivenColumns(rows.num_rows, rows.columns, as_compared)),
                      name)


# ---- maps ------------------------------------------------------------------------------------------------------------


def _may_fail(expression):
    """Whether a row may have no result. (Decimals that have SQL have too few digits for that.)"""
    return any(call.function.endswith("_checked") or call.function == "cast" and not is_string(call.type)
               or call.function == "substring" for call in expression.calls())


@dataclasses.dataclass
class MapStep:
    columns: list      # as they are read
    expressions: list
    num_before: int    # columns in front of the map
    name: tuple
    word = "map"
    table = None

    def may_fail(self):
        return any(map(_may_fail, self.expressions))

    def text(self):
        case = map_case.Case(*self.name, 0, self.columns, self.expressions, False, [], {}, 0)
        return f"{case.spec()} {bracketed(column.number for column in self.columns)}"

    def results(self, rows, numbers):
        """DuckDB's values for rows of these numbers; None where one of them has none."""
        keys = [bound(column, rows) for column in self.columns]
        return oracles().map.results(types.SimpleNamespace(keys=keys), self.expressions, numbers)

    def apply(self, rows):
        values = [[] for _ in self.expressions]
        if rows.num_rows and not rows.failed_at:
            values = self.results(rows, range(rows.num_rows))
        if values is None or rows.failed_at:
            made = rows.with_more([_nothing(one.type, rows.num_rows) for one in self.expressions])
            return dataclasses.replace(made, **rows.failure(self))
        return rows.with_more([column_of(one.type, of_one) for one, of_one in zip(self.expressions, values)])


def _nothing(column_type, num_rows):
    column_type = dataclasses.replace(column_type, index="", collation="")
    return FlowColumn(column_type, [placeholder(column_type)], [0] * num_rows, computed=True)


def _as_value(rng, column):
    """The type as which a map reads a column: decimals with more digits, printable texts under a collation."""
    column_type = maybe_nullable(rng, column.type)
    if column_type.is_decimal and rng.random() < 0.2:
        most = DECIMAL_DIGITS[column_type.name]
        return dataclasses.replace(column_type, precision=rng.randint(max(column_type.precision, 1), most))
    is_plain = lambda value: value.isascii() and value.decode().isprintable()
    if column_type.name in TEXT_TYPES and rng.random() < 0.1 and all(map(is_plain, column.values)):
        return dataclasses.replace(column_type, collation=rng.choice(COLLATIONS))
    return column_type


def _any_expression(rng, columns, texts):
    """`texts`: those of the columns that are strings, the last ones."""
    of = [column.type for column in columns]
    depth, style = rng.choice((0, 1, 1, 2, 2, 3)), rng.random()
    if texts and style < 0.5:
        return TextMaker(rng, columns, [column.kind for column in texts]).result()
    plain = of[:len(of) - len(texts)]
    if style < 0.62:
        return DateMaker(rng, plain).any()
    return NumberMaker(rng, plain).any() if style < 0.66 else Maker(rng, plain).any(depth)


def _random_expression(rng, columns, texts, fails):
    """One that DuckDB has, too. fails: whether it may have no result for some row."""
    for _ in range(_TRIES):
        made = _any_expression(rng, columns, texts)
        # What is null in every row makes a call of DuckDB null before its other arguments are computed.
        if made.sql() is not None and _may_fail(made) == fails and not (fails and made.has_constant_null()):
            return made
    return Expression(":", ("7",), value_type("i32"))


def random_map(rng, rows, name):
    known = [column for column in rows.columns if is_value(column.type)]
    known = rng.sample(known, min(rng.choice((0, 1, 2, 3, 3, 5)), len(known)))
    columns = [dataclasses.replace(column, type=_as_value(rng, column)) for column in known]
    columns.sort(key=lambda column: is_string(column.type))
    texts = [column for column in columns if is_string(column.type)]
    expressions = [_random_expression(rng, columns, texts, rng.random() < 0.4)
                   for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return MapStep(columns, expressions, len(rows.columns), name)


def random_guarded_division(rng, rows, name):
    """A filter that takes away zeros, and a map that divides by what is left; None where there are no integers."""
    integers = [column for column in rows.columns if column.type.name in INTEGERS and not column.type.index]
    if not integers:
        return None
    divisor = rng.choice(integers)
    alike = [column for column in integers if column.type.name == divisor.type.name]
    read = [dataclasses.replace(column) for column in (rng.choice(alike), divisor)]
    arguments = tuple(Expression("$", (place,), column.type) for place, column in enumerate(read))
    nullable = any(column.type.nullable for column in read)
    quotient = Expression("divide_checked", arguments, value_type(divisor.type.name, nullable))
    leaf = Leaf("compare", dataclasses.replace(divisor), op="<>", values=[0])
    return [FilterStep(leaf, name), MapStep(read, [quotient], len(rows.columns), name)]


# ---- probes and reductions -------------------------------------------------------------------------------------------


def takes_rows_away(join):
    """Whether the rows that come out are rows that went in, each once and with its own id."""
    takes = not join.kind.pairs and join.kind.probe_row in (MATCHED, UNMATCHED)
    changes = any(column_type.index or column_type.name == "rowid" for _, column_type in join.flow_payload)
    return takes and not changes


@dataclasses.dataclass
class ProbeStep:
    join: FlowJoin
    word = "probe"

    @property
    def table(self):
        return self.join

    def text(self):
        return f"probe {self.join.spec} {bracketed(self.join.keys_read(), self.join.payload_read())}"

    def apply(self, rows):
        case = self.join.case(rows)
        table = oracles().join.rows(case)
        if rows.num_rows + self.join.num_other <= MAX_PYTHON_ROWS:
            cross_check(case, python_rows(case), table)
        found = sorted(zip(*(table[name].to_pylist() for name in ("probe", "build", "mark"))),
                       key=lambda row: tuple((value is None, value or 0) for value in row))
        probes, builds, marks = (list(numbers) for numbers in zip(*found)) if found else ([], [], [])
        is_second = self.join.kind.name == "single" and len(set(probes)) < len(probes)
        columns = [self._column(output, rows, probes, builds, marks) for output in case.outputs()]
        payload = iter(self.join.flow_payload)
        for output, column in zip(case.outputs(), columns):
            if output.side == "probe":
                number, column_type = next(payload)
                if column_type.name != "rowid":
                    column.computed, column.kind = rows.columns[number].computed, rows.columns[number].kind
        ids = [rows.ids[row] for row in probes] if rows.ids is not None and takes_rows_away(self.join) else None
        return Rows(columns, len(found), ids, **(rows.failure(self) if is_second or rows.failed_at else {}))

    @staticmethod
    def _column(output, rows, probes, builds, marks):
        column_type = dataclasses.replace(output.type, index="", collation="", null_equal=False)
        if output.side == "mark":
            return FlowColumn(column_type, [0, 1], [None if mark is None else int(mark) for mark in marks])
        numbers = probes if output.side == "probe" else builds
        if output.column is None:  # ids of a table's rows, which are their numbers
            column_type = ColumnType("u64", nullable=column_type.nullable)
            return FlowColumn(column_type, list(range(max([0, *(row for row in numbers if row is not None)]) + 1)),
                              list(numbers))
        indices = output.column.indices[output.side]
        return FlowColumn(column_type, output.column.values, [None if row is None else indices[row] for row in numbers])


def random_probe(rng, rows, name, first_row_id):
    return ProbeStep(random_join(rng, rows, "probe", KINDS.values(), name, first_row_id))


@dataclasses.dataclass
class ReduceStep:
    """Takes rows away that a later probe takes away anyway, or some of them: the rows behind that probe are the same,
    and those in between are not compared."""
    probe: ProbeStep
    keys: list  # numbers of columns
    word = "reduce"

    @property
    def table(self):
        return self.probe.join

    def text(self):
        return f"reduce {self.probe.join.spec} {bracketed(self.keys)}"

    def apply(self, rows):
        return rows


# Kinds that drop a probe row without a match, and to which such a row makes no difference.
_REDUCED = ("inner", "semi", "right", "right_semi", "right_anti")
# Kinds behind which no row comes out because another one is missing, and which have no errors.
_PASSED = ("inner", "left", "semi", "anti", "anti_null_aware", "mark")


def reduction_places(steps, probe):
    """(place among the steps in front of a probe, numbers of the keys there) where its table may take rows away."""
    numbers, place, places = probe.join.keys_read(), len(steps), []
    if probe.join.kind.name not in _REDUCED:
        return places
    while True:
        places.append((place, numbers))
        place -= 1
        if place < 0:
            return places
        step = steps[place]
        if step.word == "map" and (step.may_fail() or max(numbers) >= step.num_before):
            return places
        if step.word == "probe":
            payload = step.join.flow_payload
            if step.join.kind.name not in _PASSED or any(
                    number >= len(payload) or payload[number][1].name == "rowid" or payload[number][1].index
                    for number in numbers):
                return places
            numbers = [payload[number][0] for number in numbers]
