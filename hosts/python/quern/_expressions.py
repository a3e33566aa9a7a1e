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


def compute(
    data: Input, what: str, expressions: list[_quern.Expression], engine: str, params: str = ""
) -> tuple[_quern.Kernel, int]:
    """Adds the results of a map to the columns of an input, to which no column is added afterwards; the number of the
    first. `what` is the argument that held the expressions, whose names are those of with_names_of.
    """
    columns: list[int] = []
    described = []
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
    kernel = _quern.Kernel(_quern.map_text(what, expressions, described), engine, params, False)
    return kernel, data.set_computation(kernel, columns)
