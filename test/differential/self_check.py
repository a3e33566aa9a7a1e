#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The harness checks itself, without a library: both oracles agree on every kind of join, on aggregations, orders,
conditions and set operations; every layout of rows decodes (by pyarrow) to those rows; the comparison of answers
detects a row that is missing, wrong or out of place; the tables of kinds, functions and collations are the library's;
texts of floats are right.

    self_check.py --seed 1 --cases 200
"""
import argparse
import collections
import dataclasses
import pathlib
import random
import re
import sys

sys.dont_write_bytecode = True

import pyarrow as pa

import aggregate_answers
import aggregate_case
import aggregate_expected
import aggregate_run
import collation_oracle
import filter_case
import filter_expected
import join_case
import join_expected
import row_feed
import set_case
import set_expected
import set_run
import sort_case
import sort_expected
from aggregate_duckdb import DuckdbGroups
from aggregate_functions import FUNCTIONS
from aggregate_rows import Aggregate
from join_feed import Feeder
from join_kinds import KINDS
from join_run import Answer
from map_expressions import ALL_FUNCTIONS
from map_string_sql import float_text
from oracle import DuckdbOracle, normalise
from random_data import STRING_TYPES, ColumnType, bits_array, float_bits
from sort_order import DuckdbOrder


def _bits(array, column_type):
    """A batch's column as its physical values, decoded by pyarrow."""
    if column_type.index:
        value_type = dataclasses.replace(column_type, index="")
        values = _bits(array.dictionary, value_type)
        return [None if index is None else values[index] for index in array.indices.to_pylist()]
    if column_type.name in STRING_TYPES:
        return array.cast(pa.large_binary()).to_pylist()
    values = array.view(column_type.bits_arrow()).to_pylist()
    return [int(value) if isinstance(value, bool) else value for value in values]


def _check_batch(case, batch, columns, rows):
    """`columns`: (type, values, indices of all rows) of each child."""
    for child, (column_type, values, indices) in zip(batch.flatten(), columns):
        if _bits(child, column_type) != bits_array(column_type, values, indices[rows]).to_pylist():
            raise SystemExit(f"case {case.number}: a layout of {column_type.text()} changes its rows")


def check_layouts(case, variant):
    for name in join_case.SIDES:
        feeder = Feeder(case, variant, name)
        if feeder.vectors:
            continue
        columns = [feeder.columns[number] for number in feeder.side.child_order]
        for batch, cut in zip(feeder.arrow_batches(), feeder.cuts):
            _check_batch(case, batch, [(column.type, column.values, column.indices[name]) for column in columns],
                         slice(*cut))


RUNTIME = pathlib.Path(__file__).resolve().parents[2] / "runtime"


def check_kinds():
    """join_kinds.py = runtime/spec/join_kinds.def."""
    path = RUNTIME / "spec/join_kinds.def"
    rows = re.findall(r'^QUERN_JOIN_KIND\(\w+, "(\w+)", (true|false), k(\w+), k(\w+)\)', path.read_text(), re.MULTILINE)
    theirs = [(name, pairs == "true", probe.lower(), build.lower()) for name, pairs, probe, build in rows]
    ours = [dataclasses.astuple(kind) for kind in KINDS.values()]
    if theirs != ours:
        raise SystemExit(f"the kinds differ: {sorted(set(theirs) ^ set(ours))}; those of {path} are wanted")


def check_comparison(case, expected):
    """The comparison accepts the oracle's answer in another order, and rejects it without its last row."""
    if expected.must_fail:
        return
    for table in (expected.table, None if expected.table is None else expected.table.slice(1)):
        num_rows = expected.num_rows if table is None else table.num_rows
        turned = None if table is None else table.take(pa.array(range(num_rows - 1, -1, -1), pa.int64()))
        is_whole = num_rows == expected.num_rows
        try:
            expected.check(Answer(num_rows, turned, min(expected.table_rows), expected.build_rows, None, None))
        except join_expected.Mismatch as error:
            if is_whole:
                raise SystemExit(f"case {case.number}: the oracle's own answer is refused: {error}") from error
        else:
            if not is_whole:
                raise SystemExit(f"case {case.number}: an answer that lacks a row is taken")


# ---- aggregations ----------------------------------------------------------------------------------------------------


def check_functions():
    """aggregate_functions.py = runtime/spec/aggregate_functions.def."""
    path = RUNTIME / "spec/aggregate_functions.def"
    rows = re.findall(r'^QUERN_AGGREGATE\(\w+, "(\w+)", (\d), k(\w+), k(\w+)\)', path.read_text(), re.MULTILINE)
    snake = lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    theirs = [(name, int(num_arguments), snake(accepts), snake(result))
              for name, num_arguments, accepts, result in rows]
    ours = [dataclasses.astuple(function) for function in FUNCTIONS.values()]
    if theirs != ours:
        raise SystemExit(f"the functions differ: {sorted(set(theirs) ^ set(ours))}; those of {path} are wanted")


def check_fed_layouts(case, variant):
    feeder = row_feed.Feeder(case, variant)
    if feeder.vectors or feeder.shuffles:
        return
    columns = [feeder.columns[number] for number in case.child_order]
    for (batch, _), cut in zip(feeder.batches(), feeder.cuts):
        _check_batch(case, batch, [(column.type, column.values, column.indices) for column in columns], slice(*cut))


def _value_taken(answer):
    """One value that an answer accepts."""
    if isinstance(answer, aggregate_answers.Exactly):
        return answer.value
    if isinstance(answer, aggregate_answers.OneOf):
        return min(answer.values)
    if isinstance(answer, aggregate_answers.EqualTo):
        return aggregate_answers.CANONICAL_NAN[answer.name] if answer.value == "NaN" else answer.value
    if isinstance(answer, aggregate_answers.Within):
        return int(answer.least + answer.most) // 2
    return aggregate_answers.bits_of(getattr(answer, "value", float("inf")))


def _normalised_keys(keys, row):
    """The keys of a row as they come out."""
    values = [None if key.indices[row] is None else key.values[key.indices[row]] for key in keys]
    for place, key in enumerate(keys):
        if key.type.is_float and values[place] is not None:
            normalised = normalise(key.type, values[place])
            values[place] = aggregate_answers.CANONICAL_NAN[key.type.name] if normalised == "NaN" else normalised
    return tuple(values)


def _rows_taken(case, expected):
    return [(*_normalised_keys(case.keys, group.rows[0]), *map(_value_taken, group.answers))
            for group in expected.groups.values()]


def _is_refused(expected, rows):
    answer = aggregate_run.Answer(rows, None, len(expected.groups), "open", "first", None, False)
    try:
        expected.check(answer)
    except join_expected.Mismatch as error:
        return str(error)
    return ""


def check_aggregate_comparison(case, expected):
    """The comparison accepts the oracle's groups, and rejects them without the last one or with another count."""
    if expected.must_fail:
        return
    rows = _rows_taken(case, expected)
    if refusal := _is_refused(expected, rows[::-1]):
        raise SystemExit(f"case {case.number}: the oracle's own answer is refused: {refusal}")
    if (rows and not _is_refused(expected, rows[:-1]) or len(rows) > 1
            and not _is_refused(expected, rows[:-1] + rows[:1])):
        raise SystemExit(f"case {case.number}: an answer that lacks a group is taken")
    for place, aggregate in enumerate(case.aggregates, len(case.keys)):
        if aggregate.function not in ("count", "count_star", "count_distinct") or not rows:
            continue
        if not _is_refused(expected, [(*row[:place], row[place] + 1, *row[place + 1:]) for row in rows]):
            raise SystemExit(f"case {case.number}: a wrong {aggregate.function} is taken")


def check_extremes():
    """Under padding what is below a space is below the empty string, and below what weighs nothing."""
    values = ["\u0310".encode(), b"a", b"\t"]
    for name, wanted in (("min", b"\t"), ("max", b"a")):
        aggregate = Aggregate(name, [ColumnType("utf8", collation="utf8mb4_unicode_ci")], [], None)
        answer = aggregate_answers.answer_of(aggregate, [values])
        if not answer.takes(wanted) or any(answer.takes(value) for value in values if value != wanted):
            raise SystemExit(f"{name} of {values} is {answer}; {wanted} is wanted")


def check_aggregations(seed, num_cases):
    check_functions()
    check_extremes()
    oracle, functions = DuckdbGroups(), collections.Counter()
    for number in range(num_cases):
        case = aggregate_case.Case.generate(seed, number)
        check_aggregate_comparison(case, aggregate_expected.Expected(case, oracle))
        functions.update(aggregate.function for aggregate in case.aggregates)
        for variant in case.variants()[:2]:
            check_fed_layouts(case, variant)
    print(", ".join(f"{name} {functions[name]}" for name in FUNCTIONS))
    if never := [name for name in FUNCTIONS if not functions[name]]:
        raise SystemExit(f"no case of {', '.join(never)}")


# ---- sorts -----------------------------------------------------------------------------------------------------------


def _sort_answer(case, expected, order, bound=None):
    """These rows of the case, in this order, as an answer; window functions by place."""
    row_ids = list(range(100, 100 + case.num_rows))
    answer = sort_expected.Answer(None, len(order), row_ids, bound=bound)
    windows = [pa.chunked_array([numbers[:len(order)]], pa.uint64()) for numbers in expected.windows]
    columns = expected.table(answer, order).columns + windows
    answer.table = pa.table(columns, names=[f"c{number}" for number in range(len(columns))]) if columns else None
    return answer


def _refusal_of_order(case, expected, order, bound=None):
    try:
        expected.check(_sort_answer(case, expected, order, bound))
    except join_expected.Mismatch as error:
        return str(error)
    return ""


def check_sort_comparison(case, expected, rng):
    """The comparison accepts the oracle's order, and any other order of rows with equal keys unless the sort is stable.
    It rejects two swapped rows of different classes, and a row that comes twice."""
    order, classes = expected.order, expected.classes
    if refusal := _refusal_of_order(case, expected, order[:expected.num_rows]):
        raise SystemExit(f"case {case.number}: the oracle's own answer is refused: {refusal}")
    shuffled = sorted(rng.sample(order, len(order)), key=classes.__getitem__)[:expected.num_rows]
    if not case.stable and (refusal := _refusal_of_order(case, expected, shuffled)):
        raise SystemExit(f"case {case.number}: another order of rows with equal keys is refused: {refusal}")
    if order and not _refusal_of_order(case, expected, order[:expected.num_rows - 1]):
        raise SystemExit(f"case {case.number}: an answer that lacks a row is taken")
    if not case.has_row_id() or expected.num_rows < 2:
        return  # two rows may look alike
    one, other = sorted(rng.sample(range(expected.num_rows), 2))
    swapped = list(order[:expected.num_rows])
    swapped[one], swapped[other] = swapped[other], swapped[one]
    if (case.stable or classes[order[one]] != classes[order[other]]) and not _refusal_of_order(case, expected, swapped):
        raise SystemExit(f"case {case.number}: rows in places {one} and {other} may be swapped")
    swapped[other] = swapped[one]
    if not _refusal_of_order(case, expected, swapped):
        raise SystemExit(f"case {case.number}: a row may come out twice")


def check_thresholds(case, expected, rng):
    """Rows may be missing after a threshold, but not before it, and not out of order."""
    if not expected.order:
        return
    bound = expected.classes[rng.choice(expected.order)]
    certain = [row for row in expected.order if expected.classes[row] <= bound][:expected.num_rows]
    rest = [row for row in expected.order[len(certain):expected.num_rows] if rng.random() < 0.5]
    if refusal := _refusal_of_order(case, expected, certain + rest, bound):
        raise SystemExit(f"case {case.number}: rows that lack after a threshold are asked for: {refusal}")
    if not _refusal_of_order(case, expected, certain[1:], bound):
        raise SystemExit(f"case {case.number}: a row before a threshold may lack")
    classes = [expected.classes[row] for row in rest]
    if (case.has_row_id() and classes and classes[0] != classes[-1]
            and not _refusal_of_order(case, expected, certain + rest[::-1], bound)):
        raise SystemExit(f"case {case.number}: rows after a threshold may be out of order")


def check_sorts(seed, num_cases):
    oracle, orders = DuckdbOrder(), collections.Counter()
    for number in range(num_cases):
        case = sort_case.Case.generate(seed, number)
        expected, rng = sort_expected.Expected(case, oracle), random.Random(number)
        check_sort_comparison(case, expected, rng)
        check_thresholds(case, expected, rng)
        orders[case.order] += 1
        for variant in case.variants()[:2]:
            check_fed_layouts(case, variant)
    print(", ".join(f"{order} {count}" for order, count in orders.items()))


# ---- collations and filters ------------------------------------------------------------------------------------------

_PADS = {"kNoPad": "no", "kPads": "pads", "kTrims": "trims"}
_WEIGHTS = {"kBytes": "bytes", "kAsciiUpper": "upper", "kLatin1": "latin1", "kGeneral": "general", "kUca400": "uca400",
            "kUca520": "uca520", "kUca900": "uca900", "kUca900Tidb": "uca900_tidb"}


def check_collations():
    """collation_oracle.py = runtime/collation/collations.def."""
    path = RUNTIME / "collation/collations.def"
    rows = re.findall(r'^QUERN_COLLATION\(\w+, "([^"]+)", (\w+), \w+, (\w+)\)', path.read_text(), re.MULTILINE)
    theirs = [(name, _PADS[pad], _WEIGHTS[weights]) for name, pad, weights in rows]
    ours = [dataclasses.astuple(collation) for collation in collation_oracle.COLLATIONS.values()]
    if theirs != ours:
        raise SystemExit(f"the collations differ: {sorted(set(theirs) ^ set(ours))}; those of {path} are wanted")


def _refusal_of_rows(expected, passed, num_rows):
    try:
        expected.check(filter_expected.Answer([list(range(num_rows))], passed, len(passed)))
    except join_expected.Mismatch as error:
        return str(error)
    return ""


def check_filter_comparison(case, expected):
    """The comparison accepts exactly the rows for which the condition is true, in their order."""
    rows = [row for row, truth in enumerate(expected.truths) if truth is True]
    others = sorted(set(range(case.num_rows)) - set(rows))
    if refusal := _refusal_of_rows(expected, rows, case.num_rows):
        raise SystemExit(f"case {case.number}: the oracle's own answer is refused: {refusal}")
    wrong = [rows[:-1]] * bool(rows) + [rows + others[:1]] * bool(others) + [rows[::-1]] * (len(rows) > 1)
    wrong += [rows[1:] + others[:1]] * bool(rows and others)
    if not all(_refusal_of_rows(expected, passed, case.num_rows) for passed in wrong):
        raise SystemExit(f"case {case.number}: an answer with other rows is taken")


def check_filters(seed, num_cases):
    check_collations()
    oracle, kinds = filter_expected.DuckdbFilter(), collections.Counter()
    for number in range(num_cases):
        case = filter_case.Case.generate(seed, number)
        check_filter_comparison(case, filter_expected.Expected(case, oracle))
        kinds.update(leaf.kind for leaf in case.condition.leaves())
        for variant in case.variants()[:2]:
            check_fed_layouts(case, variant)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))


# ---- set operations --------------------------------------------------------------------------------------------------


def check_set_kinds():
    """set_case.KINDS = the names of runtime/spec/set_spec.cc."""
    path = RUNTIME / "spec/set_spec.cc"
    theirs = re.findall(r'"set\.(\w+)"', path.read_text())
    if theirs != list(set_case.KINDS):
        raise SystemExit(f"the kinds differ: {sorted(set(theirs) ^ set(set_case.KINDS))}; those of {path} are wanted")


def _refusal_of_set(expected, rows):
    answer = set_run.Answer(rows, None, len(expected.rows_of), "open", "first")
    try:
        expected.check(answer)
    except join_expected.Mismatch as error:
        return str(error)
    return ""


def check_set_comparison(case, expected):
    """The comparison accepts the oracle's rows, and rejects them without the last one, with it in the place of the
    first, and with one more."""
    rows = []
    for key, count in expected.counts.items():
        first = min(expected.rows_of[key], key=lambda row: not case.is_left[row])
        rows += [_normalised_keys(case.keys, first)] * count
    if refusal := _refusal_of_set(expected, rows[::-1]):
        raise SystemExit(f"case {case.number}: the oracle's own answer is refused: {refusal}")
    wrong = [rows[:-1], rows + rows[:1]] * bool(rows) + [rows[1:] + rows[-1:]] * (rows[:1] != rows[-1:])
    if not all(_refusal_of_set(expected, others) for others in wrong):
        raise SystemExit(f"case {case.number}: an answer with other rows is taken")


def check_sets(seed, num_cases):
    check_set_kinds()
    oracle, kinds = set_expected.DuckdbSets(), collections.Counter()
    for number in range(num_cases):
        case = set_case.Case.generate(seed, number)
        check_set_comparison(case, set_expected.Expected(case, oracle))
        kinds[case.kind] += 1
    print(", ".join(f"{kind} {kinds[kind]}" for kind in set_case.KINDS))


# ---- maps ------------------------------------------------------------------------------------------------------------

_NOT_TESTED = ("divide_decimal_checked", "divide_decimal_or_null")  # test/unit has them


def check_expression_functions():
    """map_expressions.py has all functions of runtime/spec/expression_functions.def."""
    path = RUNTIME / "spec/expression_functions.def"
    theirs = re.findall(r'^QUERN_EXPRESSION_FUNCTION\(\w+, "(\w+)"', path.read_text(), re.MULTILINE)
    if differing := set(theirs) ^ {*ALL_FUNCTIONS, *_NOT_TESTED}:
        raise SystemExit(f"the functions differ: {sorted(differing)}; those of {path} are wanted")


def check_float_texts():
    for name, value, wanted in (
            ("f64", 0.1, "0.1"), ("f64", -2.0, "-2"), ("f64", 1e15, "1e+15"), ("f64", 1e-5, "1e-05"),
            ("f64", 1e-4, "0.0001"), ("f64", 123456789012345.0, "123456789012345"), ("f64", -12.5, "-12.5"),
            ("f32", 0.1, "0.1"), ("f32", 1e14, "1e+14"), ("f32", 123456.0, "123456"), ("f64", float("inf"), "inf"),
            ("f64", float("nan"), "nan"), ("f64", -0.0, "-0")):
        if (text := float_text(name, float_bits(ColumnType(name), value))) != wanted:
            raise SystemExit(f"the text of {name} {value} is {text}; {wanted} is wanted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    check_kinds()
    check_expression_functions()
    check_float_texts()
    oracle, kinds = DuckdbOracle(), collections.Counter()
    for number in range(options.cases):
        case = join_case.Case.generate(options.seed, number)
        check_comparison(case, join_expected.Expected(case, oracle))  # which compares the oracles
        kinds[case.kind.name, bool(case.residuals)] += 1
        for variant in case.variants():
            check_layouts(case, variant)
    print(", ".join(f"{name} {kinds[name, False]} + {kinds[name, True]} with residual" for name in KINDS))
    never = [name for name in KINDS if not kinds[name, False] or not kinds[name, True] and name != "anti_null_aware"]
    if never:
        raise SystemExit(f"no case, or none with a residual predicate, of {', '.join(never)}")
    check_aggregations(options.seed, options.cases // 2)
    check_sorts(options.seed, options.cases)
    check_filters(options.seed, options.cases)
    check_sets(options.seed, options.cases // 2)
    print(f"{options.cases} cases passed")


if __name__ == "__main__":
    main()
