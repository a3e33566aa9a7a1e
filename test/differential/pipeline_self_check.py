#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what reads and compares emitted rows, without Quern: columns of every type come out as the rows that they were
made of, whatever their layout and selection; rows are taken in any order, and refused where one is missing, or is there
twice."""
import argparse
import array
import collections
import random
import sys

sys.dont_write_bytecode = True

import quern_abi
from emitted_rows import rows_of
from pipeline_ends import EmittedRows, EmitAnswer
from pipeline_rows import random_column
from random_data import SCALAR_TYPES, Layout, make_array
from result_columns import Mismatch


def _batch(rng, columns, num_rows, keep):
    """(quern_batch, the rows that it selects)."""
    layout = Layout(misaligned=rng.random() < 0.2)
    arrays = [make_array(rng, column.type, column.values, column.indices, layout) for column in columns]
    if rng.random() < 0.4:
        return quern_abi.raw_batch(arrays, [], None, num_rows, 0, keep), range(num_rows)
    selection = rng.sample(range(num_rows), rng.randint(0, num_rows))
    return quern_abi.raw_batch(arrays, [], array.array("I", selection), len(selection), 0, keep), selection


def _check_rows(rng, number):
    """The columns' types, and the rows that were read."""
    num_rows, keep = rng.choice((1, 7, 64, 300)), []
    columns = [random_column(rng, num_rows) for _ in range(rng.choice((1, 3, 5)))]
    batch, selection = _batch(rng, columns, num_rows, keep)
    wanted = [tuple(None if column.indices[row] is None else column.values[column.indices[row]] for column in columns)
              for row in selection]
    found = rows_of(batch, [column.type for column in columns])
    if found != wanted:
        place = next(place for place, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1])
        raise SystemExit(f"case {number}: row {place} of {[column.type.text() for column in columns]} is read as "
                         f"{found[place]}; expected {wanted[place]}")
    return columns, wanted


def _is_refused(expected, rows, stops_after=None):
    try:
        expected.check(EmitAnswer(rows, stops_after))
    except Mismatch:
        return True
    return False


def _check_comparison(rows, number):
    expected = EmittedRows(rows)
    if _is_refused(expected, rows[::-1]) or _is_refused(expected, rows[1:], stops_after=1):
        raise SystemExit(f"case {number}: the right rows are refused")
    if not all(_is_refused(expected, wrong) for wrong in (rows[1:], rows + rows[:1])):
        raise SystemExit(f"case {number}: wrong rows are taken")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=400)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    seen, num_compared = collections.Counter(), 0
    for number in range(options.cases):
        columns, rows = _check_rows(random.Random(f"emitted rows/{options.seed}/{number}"), number)
        seen.update(column.type.name for column in columns)
        if rows:
            _check_comparison(rows, number)
            num_compared += 1
    if never := [name for name in SCALAR_TYPES if not seen[name]]:
        raise SystemExit(f"no column of {', '.join(never)}")
    print(f"{options.cases} cases passed, {num_compared} of them compared")


if __name__ == "__main__":
    main()
