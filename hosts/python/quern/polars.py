# SPDX-License-Identifier: Apache-2.0
"""Joins, aggregations, sorts and filters for lazy frames of Polars: nodes of a lazy query that Quern computes when the
query is collected.

    import quern.polars
    items, orders = pl.scan_parquet("lineitem.parquet"), pl.scan_parquet("orders.parquet")
    lazy = quern.polars.join(items, orders, on="l_orderkey = o_orderkey")
    lazy.filter(pl.col("o_orderdate") < day).group_by("o_orderpriority").len().collect()

Polars identifies a node by its schema and its columns, and requests only the columns that the rest of the query needs:
only those are joined or sorted. Conditions on a node's columns are applied to its result and do not reach its inputs,
so filter the inputs first. Inputs are collected as a whole, each time the node is computed. Only public parts of Polars
are used (polars.io.plugins.register_io_source).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, Union

import polars as pl
from polars.io.plugins import register_io_source

import quern

Frame = Union[pl.LazyFrame, pl.DataFrame]


def _schema_of(frame: Frame) -> pl.DataFrame:
    """The frame without rows."""
    return (frame.collect_schema() if isinstance(frame, pl.LazyFrame) else frame.schema).to_frame()


def _collected(frame: Frame) -> pl.DataFrame:
    return frame.collect() if isinstance(frame, pl.LazyFrame) else frame


def _checked(what: str, frame: object) -> None:
    if not isinstance(frame, (pl.LazyFrame, pl.DataFrame)):
        raise TypeError(f"bad type of {what}: {type(frame).__name__}; accepted: a LazyFrame or DataFrame of Polars")


def _node(
    function: Callable[..., quern.Result], frames: list[Frame], options: dict[str, Any], selects: bool
) -> pl.LazyFrame:
    """selects: whether requested columns can be passed to the function as select=."""
    if options.get("stream"):
        raise ValueError(
            f"bad value of stream for a node of a lazy query: {options['stream']}; "
            "accepted: False, as it is computed whole"
        )
    of_schema = {name: value for name, value in options.items() if name != "progress"}
    schema = function(*[_schema_of(frame) for frame in frames], **of_schema).to_polars().schema
    names = list(schema)

    def compute(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = names if with_columns is None else [name for name in names if name in with_columns]
        inputs = [_collected(frame) for frame in frames]
        if selects and with_columns:
            frame = function(*inputs, **options, select=wanted).to_polars()
            frame.columns = wanted  # probe.x, selected without build.x, comes as x
        else:
            frame = function(*inputs, **options).to_polars()
        # The columns of a predicate are among those wanted.
        frame = frame if predicate is None else frame.filter(predicate)
        frame = frame if n_rows is None else frame.head(n_rows)
        yield frame if with_columns is None else frame.select(with_columns)

    return register_io_source(compute, schema=schema)


def join(probe: Frame, build: Frame, on: Any, how: str = "inner", **options: Any) -> pl.LazyFrame:
    """quern.join as a node. options: those of quern.join but stream."""
    _checked("probe", probe)
    _checked("build", build)
    return _node(quern.join, [probe, build], {"on": on, "how": how, **options}, selects="select" not in options)


def aggregate(t: Frame, by: Any = None, aggs: Any = None, **options: Any) -> pl.LazyFrame:
    """quern.aggregate as a node. options: those of quern.aggregate but stream."""
    _checked("t", t)
    return _node(quern.aggregate, [t], {"by": by, "aggs": aggs, **options}, selects=False)


def sort(t: Frame, by: Any, limit: int | None = None, **options: Any) -> pl.LazyFrame:
    """quern.sort as a node. options: those of quern.sort but stream."""
    _checked("t", t)
    return _node(
        quern.sort,
        [t],
        {"by": by, "limit": limit, **options},
        selects="select" not in options and "window" not in options,
    )


def filter(t: Frame, where: str, **options: Any) -> pl.LazyFrame:
    """quern.filter as a node. options: those of quern.filter but stream."""
    _checked("t", t)
    return _node(quern.filter, [t], {"where": where, **options}, selects="select" not in options)
