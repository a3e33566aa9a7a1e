# SPDX-License-Identifier: Apache-2.0
"""Expressions over the columns of an input: names resolved, types found by a kernel's spec. For the results of

    price * (1 - discount)    year(day)

over a table with the columns name, price, discount and day, the map reads price, discount and day, and its two results
stand behind the columns of the view.
"""

from __future__ import annotations

from quern import _quern
from quern._inputs import Input
from quern._types import type_name

_VIEWS = {"u": "vu", "U": "vu", "z": "vz", "Z": "vz"}


def with_names_of(data: Input, expression: _quern.Expression) -> _quern.Expression:
    """The expression with the names of the columns in their own letters. *Errors*: ValueError for unknown columns."""
    return expression.renamed([data.names[data.find_in_any_letters(name)] for name in expression.names])


def resolved(
    data: Input, name: str, expression: _quern.Expression | None, may_be_column: bool
) -> _quern.Expression | None:
    """The expression that a text stands for, likewise; None: it is the column `name`, or neither."""
    if expression is None or (may_be_column and name in data.names):
        return None
    try:
        return with_names_of(data, expression)
    except ValueError:
        if not may_be_column:
            raise
    return None


Described = list[tuple[str, str, str, str, bool]]


def describe(data: Input, expressions: list[_quern.Expression]) -> tuple[list[int], Described]:
    """The columns that expressions mention, each once: their numbers, and what map_text has to know of them."""
    columns: list[int] = []
    described: Described = []
    for name in [name for expression in expressions for name in expression.names]:
        column = data.find(name)
        field = data.fields[column]
        # Values of a dictionary come out as they are, strings as views.
        value_format = _VIEWS.get(field.dictionary, field.value_format)
        number = data.made(column, value_format) if field.dictionary else data.readable(column, "b")
        if number in columns:
            continue
        columns.append(number)
        described.append((name, data.column_text(name), type_name(field), value_format, data.nullable(column)))
    return columns, described


def compute(
    data: Input, what: str, expressions: list[_quern.Expression], engine: str, params: str = ""
) -> tuple[_quern.Kernel, int]:
    """Adds the results of a map to the columns of an input, to which no column is added afterwards; the number of the
    first. `what` is the argument that held the expressions, whose names are those of with_names_of.
    """
    columns, described = describe(data, expressions)
    kernel = _quern.Kernel(_quern.map_text(what, expressions, described), engine, params, False)
    return kernel, data.set_computation(kernel, columns)


def compute_sides(
    sides: list[Input], what: str, expressions: list[list[_quern.Expression]], engine: str
) -> tuple[int, int]:
    """The same for comparisons of two inputs: expressions[0][i] of the first with expressions[1][i] of the second."""
    described = [describe(data, of_side) for data, of_side in zip(sides, expressions)]
    texts = _quern.side_map_texts(what, expressions[0], described[0][1], expressions[1], described[1][1])
    first, second = (
        data.set_computation(_quern.Kernel(text, engine, "", False), columns)
        for data, text, (columns, _) in zip(sides, texts, described)
    )
    return first, second
