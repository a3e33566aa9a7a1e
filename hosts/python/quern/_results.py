# SPDX-License-Identifier: Apache-2.0
"""The results of operators.

A Result keeps its rows and may be exported any number of times (DuckDB exports three times for one query). A Reader
makes its rows when it is read, a batch at a time, and is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from quern import _quern
from quern._html import fold, head, page, table
from quern._types import Field, type_name

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_SHOWN_COLUMNS = 8
_SHOWN_ROWS = 10


def _shown_columns(names: list[str]) -> str:
    more = "" if len(names) <= _SHOWN_COLUMNS else f", .. ({len(names)} in all)"
    return ", ".join(names[:_SHOWN_COLUMNS]) + more


class Result:
    """Rows of a join, aggregation, sort or filter, in memory as Arrow columns.

    Ownership: exports share the memory, which lives as long as the Result or anything made from it. Threads: any; it is
        immutable. Column names are distinct. Types are those of the inputs, with dictionaries decoded (except by a
        filter).
    """

    __slots__ = ("_stats", "_table")

    def __init__(self, table: _quern.Table, stats: dict[str, Any]) -> None:
        self._table = table
        self._stats = stats

    def __arrow_c_schema__(self) -> object:
        """A PyCapsule of an ArrowSchema, a struct of the columns."""
        return self._table.schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A PyCapsule of an ArrowArrayStream over all rows. requested_schema is ignored, which the protocol allows."""
        return self._table.stream_capsule()

    def __len__(self) -> int:
        return self._table.num_rows

    @property
    def num_rows(self) -> int:
        return self._table.num_rows

    @property
    def num_batches(self) -> int:
        """Batches of the stream, of up to 65,536 rows each."""
        return self._table.num_batches

    @property
    def column_names(self) -> list[str]:
        return [field[0] for field in self._table.fields]

    @property
    def stats(self) -> dict[str, Any]:
        """Statistics: spec, engine ("jit", "generic"), cache ("miss", "memory", ..), compile_ms and run_ms, threads,
        num_rows.
        """
        return dict(self._stats)

    def to_pyarrow(self) -> pyarrow.Table:
        """A pyarrow.Table of the same memory. Needs pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """A polars.DataFrame, of the same memory for types that Polars keeps as they are. Needs polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame, which copies. Needs pandas 3, and pyarrow, through which pandas reads Arrow."""
        import pandas

        return pandas.DataFrame.from_arrow(self)

    def _repr_html_(self) -> str:
        """For notebooks: names, types and number of rows, and the first rows if pyarrow is installed to read them."""
        names = [head(field[0], type_name(Field(*field))) for field in self._table.fields]
        parts = [table(names, self._first_rows()), f"<div>{len(self):,} rows</div>"]
        if "spec" in self._stats:
            parts.append(fold("how", "\n".join(f"{name:<12}{value}" for name, value in self._stats.items())))
        return page(parts)

    def _first_rows(self) -> list[list[object]]:
        try:
            import pyarrow
        except ImportError:
            return []
        for batch in pyarrow.RecordBatchReader.from_stream(self):
            return [list(row) for row in zip(*(self._values(column) for column in batch.slice(0, _SHOWN_ROWS).columns))]
        return []

    @staticmethod
    def _values(column: pyarrow.Array) -> list[object]:
        try:
            values: list[object] = column.to_pylist()
        except ValueError:  # Python has no nanoseconds
            values = column.cast("string").to_pylist()
        return values

    def __repr__(self) -> str:
        return f"<quern.Result: {len(self):,} rows, columns {_shown_columns(self.column_names)}>"


class Reader:
    """The same rows, made on demand: iterate over it for one Result a batch, or pass it to a consumer of Arrow streams.

    Memory: for a join, the table of the build side and one batch of the probe side at a time. Threads: any one thread
        reads, and kernels run on it. Errors: RuntimeError when it is read twice; other errors are raised by the reading
        call, as the consumer wraps them.
    """

    __slots__ = ("_reader", "_stats")

    def __init__(self, reader: _quern.Reader, stats: dict[str, Any]) -> None:
        self._reader = reader
        self._stats = stats

    def __arrow_c_schema__(self) -> object:
        """A PyCapsule of an ArrowSchema; any number of times."""
        return self._reader.schema_capsule()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A PyCapsule of an ArrowArrayStream; once."""
        return self._reader.take_stream()

    def __iter__(self) -> Iterator[Result]:
        return self

    def __next__(self) -> Result:
        table = self._reader.next()
        if table is None:
            raise StopIteration
        return Result(table, self._stats)

    @property
    def column_names(self) -> list[str]:
        return [field[0] for field in self._reader.fields]

    def __repr__(self) -> str:
        return f"<quern.Reader: columns {_shown_columns(self.column_names)}>"
