# SPDX-License-Identifier: Apache-2.0
"""quern.filter."""

from __future__ import annotations

from typing import Literal, overload

from quern import _quern
from quern._arguments import Names, Params, plain_names, wrong
from quern._conditions import condition_of
from quern._inputs import Input
from quern._results import Reader, Result
from quern._run import Run


@overload
def filter(t: object, where: str, select: Names | None = None, *, threads: int | None = None,
           engine: str = "auto", params: Params = None,
           stream: Literal[False] = False) -> Result: ...
@overload
def filter(t: object, where: str, select: Names | None = None, *, threads: int | None = None,
           engine: str = "auto", params: Params = None,
           stream: Literal[True]) -> Reader: ...
@overload
def filter(t: object, where: str, select: Names | None = None, *, threads: int | None = None,
           engine: str = "auto", params: Params = None,
           stream: bool) -> Result | Reader: ...
def filter(
    t: object,
    where: str,
    select: Names | None = None,
    *,
    threads: int | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
) -> Result | Reader:
    """The rows of t for which a condition is true, in the order of t.

    where: "l_shipdate >= date '1995-03-15' and l_comment like '%pending%' or qty in (1, 2)". A comparison is a column
        [collate NAME] with a sign and a constant or another column, [not] in (..), [not] between .. and .., [not] like
        '..', is [not] null, or a bool column; not, and, or and parentheses combine them. Constants are compared
        exactly: for integers, `qty < 2.5` is `qty <= 2`. The case of names does not matter.
    select: columns of the result in order, "a, b" or ["a", "b"]; None: all.
    stream: a Reader that pulls t batch by batch, instead of a Result.
    Nulls: a comparison with null is unknown, and only true passes. Types stay as they are, dictionaries too.
    Cost: one pass over the columns of the condition, and a copy of the rows that pass. Errors: ValueError for unknown
        columns, for wrong conditions and constants, and for nested types among the columns of the result.
    """
    run = Run(threads, None, engine, params)
    data = Input(t, "t", stream)
    condition = condition_of(data, "where", where)
    selected = data.names if select is None else plain_names("select", select)
    columns = [data.find_in_any_letters(name) for name in selected]
    for index, column in enumerate(columns):
        if column in columns[:index]:
            raise wrong("column selected twice", _quern.quote_name(data.names[column]), "once")
        data.find(data.names[column])
        data.kernel_type(data.readable(column), data.nullable(column))  # refuses types that cannot be gathered
    kernel = run.compile(condition.spec)
    data.view.set_where(kernel, condition.columns)
    for column in columns:
        data.place(data.readable(column))
    view = data.finish()
    if stream:
        return run.reader(kernel, _quern.read_filter(view))
    return run.result(kernel, lambda: _quern.run_filter(view, run.threads))
