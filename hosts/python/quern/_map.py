# SPDX-License-Identifier: Apache-2.0
"""quern.map: from expressions over names to the spec of a map. For

    map(t, {"name": "name", "revenue": "price * (1 - discount)"})

with price and discount decimals, name is copied and the kernel reads two columns. The spec is

    map in=decimal128(15,2),decimal128(15,2) out=multiply($0,subtract(1:decimal128(1,0),$1))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Union, overload

from quern import _quern
from quern._arguments import Params, text_of, wrong
from quern._conditions import apply_where
from quern._expressions import compute, with_names_of
from quern._inputs import Input
from quern._results import Reader, Result
from quern._run import Run

Select = Union[str, Mapping[str, str]]


def _expressions_of(data: Input, select: Select) -> list[tuple[str, _quern.Expression]]:
    """(name, expression) of each column of the result, with the names of t."""
    if isinstance(select, str):
        parsed = _quern.parse_select("select", text_of("select", select))
    elif isinstance(select, Mapping):
        parsed = [
            (text_of("select", name), _quern.parse_expression("select", text_of("select", text)), True)
            for name, text in select.items()
        ]
    else:
        raise TypeError(f"bad type of select: {type(select).__name__}; accepted: a text, or a dictionary of texts")
    if not parsed:
        raise wrong("map to nothing", "no columns in select", "one or more")
    expressions = []
    for name, expression, is_named in parsed:
        if expression is None:
            expressions += [(n, _quern.column_expression(n)) for n in data.names]
            continue
        found = with_names_of(data, expression)
        expressions.append((found.names[0] if found.is_column and not is_named else name, found))
    for index, (name, _) in enumerate(expressions):
        if name in [other for other, _ in expressions[:index]]:
            raise wrong(
                "two result columns of one name", _quern.quote_name(name), "different names, as by EXPRESSION as NAME"
            )
    return expressions


@overload
def map(t: object, select: Select, *, where: str | None = None, threads: int | None = None,
        engine: str = "auto", params: Params = None,
        stream: Literal[False] = False) -> Result: ...
@overload
def map(t: object, select: Select, *, where: str | None = None, threads: int | None = None,
        engine: str = "auto", params: Params = None,
        stream: Literal[True]) -> Reader: ...
@overload
def map(t: object, select: Select, *, where: str | None = None, threads: int | None = None,
        engine: str = "auto", params: Params = None,
        stream: bool) -> Result | Reader: ...
def map(
    t: object,
    select: Select,
    *,
    where: str | None = None,
    threads: int | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
) -> Result | Reader:
    """Columns that are computed of the columns of t, for each of its rows, in the order of t.

    select: {"revenue": "l_extendedprice * (1 - l_discount)", "l_orderkey": "l_orderkey"}, or a text as on the command
        line, "l_orderkey, year(l_shipdate) as y, *". A column alone is copied, whatever its type. Expressions have
        + - * / %, comparisons, between, in (..), [not] like, is [not] null, is [not] distinct from, and, or, not, case
        when, cast(e as TYPE), e::TYPE and FUNCTION(e, ..). Columns of strings may be compared and matched with
        constants, 'it''s', and have lengths; no expression gives a string. + - * / % of integers are checked: an
        overflow and a division by 0 are errors. docs/cli.md, "Map", has the implicit casts. The case of names does not
        matter.
    where: only rows for which the condition is true (quern.filter describes the grammar); others are not computed.
    stream: a Reader that pulls t batch by batch, instead of a Result.
    Types: computed decimals have up to 38 digits; times keep unit and zone. Copied columns stay as they are.
    Nulls: a result is null where an argument is, unless the function says otherwise.
    Cost: one pass over the columns; copied columns are shared where all rows come out. Threads: any may call. Errors:
        ValueError for unknown columns and wrong expressions, RuntimeError for a row without a result.
    """
    run = Run(threads, None, engine, params)
    data = Input(t, "t", stream)
    expressions = _expressions_of(data, select)
    apply_where(data, where, engine)
    computed = [expression for _, expression in expressions if not expression.is_column]
    copied = []
    for _, expression in expressions:
        if not expression.is_column:
            continue
        column = data.find(expression.names[0])
        copied.append(data.readable(column))
        data.kernel_type(copied[-1], data.nullable(column))  # refuses types that cannot be gathered
    kernel, first = compute(data, "select", computed, engine, run.params) if computed else (None, 0)
    copies, results = iter(copied), iter(range(first, first + len(computed)))
    places = [data.place(next(copies) if expression.is_column else next(results)) for _, expression in expressions]
    shape = _quern.Descriptor(places, [name for name, _ in expressions])
    view = data.finish()
    if stream:
        return run.reader(kernel, _quern.read_map(view, shape))
    return run.result(kernel, lambda: _quern.run_map(view, shape, run.threads))
