# SPDX-License-Identifier: Apache-2.0
"""Answers of queries, so that engines can be compared. An answer is a list of rows in an order of its own, each with
the values of the columns in the order of their names:

    a result n_name 'CHINA', revenue 53724494.2566 and 'INDIA', 52035512.0002 in any order
    its answer [('CHINA', 53724494.2566), ('INDIA', 52035512.0002)]

Numbers, whatever their types, are floats; all else is text. Two numbers are equal to eight digits, or to six behind the
point, which is all that DataFusion gives to the mean of a decimal(15,2).
"""
import decimal
import math
import numbers

RELATIVE_ERROR, ABSOLUTE_ERROR = 1e-8, 1e-6


def _value(value):
    if isinstance(value, (numbers.Number, decimal.Decimal)):
        return float(value)
    return value if value is None else str(value)


def _sort_key(row):
    """By texts, then by numbers with seven digits, so that the last digit does not decide which row comes first."""
    texts = tuple("" if isinstance(value, float) else repr(value) for value in row)
    return texts, tuple(float(f"{value:.7g}") for value in row if isinstance(value, float))


def of_table(table):
    """The answer of a pyarrow table."""
    names = sorted(table.column_names, key=str.lower)
    rows = zip(*(table.column(name).to_pylist() for name in names))
    return sorted((tuple(_value(value) for value in row) for row in rows), key=_sort_key)


def _equal(left, right):
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=RELATIVE_ERROR, abs_tol=ABSOLUTE_ERROR)
    return left == right


def difference(left, right):
    """None where two answers are equal; else what differs first, as a text."""
    if len(left) != len(right):
        return f"{len(left)} rows and {len(right)}"
    for i, (row, other) in enumerate(zip(left, right)):
        if len(row) != len(other) or not all(map(_equal, row, other)):
            return f"row {i} is {row} and {other}"
    return None
