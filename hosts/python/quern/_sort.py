# SPDX-License-Identifier: Apache-2.0
"""quern.sort: from names to the spec of a sort. For

    sort(t, by="price desc, name collate utf8mb4_bin", partition_by="shop", window="rank", select="name, id, price")

with shop an i32, price a decimal in which nulls were read, name a string and id an i64, the spec is

    sort keys=i32,decimal128:nullable:desc:out,utf8(utf8mb4_bin):out payload=i64 partition=1 window=rank

A column that is both a key and in the result is a key that comes out. The kernel writes keys, then payload, then window
functions: here price, name, id, rank. `order` = 1, 2, 0, 3 puts these into the requested order. A key that is an
expression is computed by a map, whose results stand behind all other columns; it is only a key, and does not come out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, Union, overload

from quern import _quern
from quern._arguments import Names, Params, SpillDir, items_of, plain_names, text_of, wrong
from quern._conditions import apply_where
from quern._expressions import compute, resolved
from quern._inputs import Input
from quern._progress import Progress
from quern._results import Reader, Result
from quern._run import Run

_MAX_KEYS = 16
_MAX_LIMIT = 2**63 - 1
By = Union[str, Iterable[Union[str, tuple[str, ...]]]]


class _Key(NamedTuple):
    name: str
    collation: str
    descending: bool
    nulls_first: bool
    expression: _quern.Expression | None = None
    may_be_column: bool = True



def _keys(by: By) -> list[_Key]:
    """"a desc, b" or ["a desc", ("b", "asc", "nulls first")]: the first item of a tuple is a whole name."""
    if isinstance(by, str):
        return [_Key(*key) for key in _quern.parse_sort_keys("by", text_of("by", by))]
    keys: list[_Key] = []
    for item in items_of("by", by):
        if isinstance(item, tuple):
            words = [text_of("by", word) for word in item]
            item = " ".join([_quern.quote_name(words[0]), *words[1:]]) if words else ""
        keys += [_Key(*key) for key in _quern.parse_sort_keys("by", text_of("by", item))]
    return keys


def _window(text: str) -> str:
    functions = _quern.parse_windows("window", text_of("window", text))
    if len(functions) != 1:
        raise wrong("bad number of window functions for a name", text, "one")
    return functions[0][0]


def _windows(window: Names | dict[str, str] | None) -> list[tuple[str, str]]:
    """ "rank as place" or ["rank"] or {"place": "rank"}."""
    if window is None:
        return []
    if isinstance(window, str):
        return _quern.parse_windows("window", text_of("window", window))
    if isinstance(window, dict):
        return [(_window(function), text_of("window", name)) for name, function in window.items()]
    return [
        pair for text in items_of("window", window) for pair in _quern.parse_windows("window", text_of("window", text))
    ]


class _SortSpec:
    """Keys, payload and window functions as the spec and the view need them."""

    def __init__(self, data: Input, selected: list[str]) -> None:
        self.data = data
        self.selected = selected
        self.keys: list[int] = []
        self.payload: list[int] = []
        self.key_texts: list[str] = []
        self.payload_texts: list[str] = []
        self.comes_out: list[str] = []  # columns of the kernel's result
        self._computed: list[tuple[int, _Key, _quern.Expression]] = []  # the number of the key among the keys

    def add_key(self, key: _Key) -> None:
        expression = resolved(self.data, key.name, key.expression, key.may_be_column)
        if expression is not None:
            if not expression.names:
                raise wrong("constant as a key in by", key.name, "a column name, or an expression over columns")
            self._computed.append((len(self.keys), key, expression))
            self._append_key(-1, "")
            return
        column = self.data.find(key.name)
        number = self.data.readable(column)
        nullable = self.data.nullable(column)
        text = self.data.kernel_type(number, nullable, key.collation) + self._order_text(key, nullable)
        if key.name in self.selected and key.name not in self.comes_out:
            text += ":out"
            self.comes_out.append(key.name)
        self._append_key(self.data.place(number), text)

    def _append_key(self, place: int, text: str) -> None:
        self.keys.append(place)
        self.key_texts.append(text)

    @staticmethod
    def _order_text(key: _Key, nullable: bool) -> str:
        text = ":desc" if key.descending else ""
        return text + (":nulls_first" if key.nulls_first and nullable else "")  # without nulls none comes first

    def finish(self, engine: str) -> None:
        """Computes keys that are expressions; no column is added afterwards."""
        if not self._computed:
            return
        first = compute(self.data, "by", [expression for _, _, expression in self._computed], engine)[1]
        for index, (place, key, _) in enumerate(self._computed):
            if key.collation:
                raise wrong("collation on a key without text", key.name, "utf8 columns")
            text, nullable = self.data.result_type(first + index), self.data.result_nullable(first + index)
            self.keys[place] = self.data.place(first + index)
            self.key_texts[place] = text + self._order_text(key, nullable)

    def add_payload(self, name: str) -> None:
        column = self.data.find(name)
        number = self.data.readable(column)
        self.payload_texts.append(self.data.kernel_type(number, self.data.nullable(column)))
        self.payload.append(self.data.place(number))
        self.comes_out.append(name)


def _check_result(selected: list[str], windows: list[tuple[str, str]]) -> None:
    names: set[str] = set()
    for name in selected:
        if name in names:
            raise wrong("column selected twice", _quern.quote_name(name), "once")
        names.add(name)
    functions: set[str] = set()
    for function, name in windows:
        if function in functions:
            raise wrong("window function given twice", function, "once")
        if name in names:
            raise wrong(
                "two result columns of one name",
                _quern.quote_name(name),
                f"different names, as by window='{function} as NAME'",
            )
        functions.add(function)
        names.add(name)


def _check_keys(keys: list[_Key]) -> None:
    if not 1 <= len(keys) <= _MAX_KEYS:
        raise wrong("bad number of keys", len(keys), f"1 to {_MAX_KEYS}")
    seen: set[tuple[str, str]] = set()
    for key in keys:
        if (key.name, key.collation) in seen:
            raise wrong("key given twice", _quern.quote_name(key.name), "once, or with another collation")
        seen.add((key.name, key.collation))


@overload
def sort(t: object, by: By, limit: int | None = None, *, select: Names | None = None, stable: bool = False,
         where: str | None = None, window: Names | dict[str, str] | None = None,
         partition_by: Names | None = None, threads: int | None = None, memory_limit: int | str | None = None,
         spill_dir: SpillDir = None, spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None,
         stream: bool = False, progress: Progress = None, reader: Literal[False] = False) -> Result: ...
@overload
def sort(t: object, by: By, limit: int | None = None, *, select: Names | None = None, stable: bool = False,
         where: str | None = None, window: Names | dict[str, str] | None = None,
         partition_by: Names | None = None, threads: int | None = None, memory_limit: int | str | None = None,
         spill_dir: SpillDir = None, spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None,
         stream: bool = False, progress: Progress = None, reader: Literal[True]) -> Reader: ...
@overload
def sort(t: object, by: By, limit: int | None = None, *, select: Names | None = None, stable: bool = False,
         where: str | None = None, window: Names | dict[str, str] | None = None,
         partition_by: Names | None = None, threads: int | None = None, memory_limit: int | str | None = None,
         spill_dir: SpillDir = None, spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None,
         stream: bool = False, progress: Progress = None, reader: bool) -> Result | Reader: ...
def sort(
    t: object,
    by: By,
    limit: int | None = None,
    *,
    select: Names | None = None,
    stable: bool = False,
    where: str | None = None,
    window: Names | dict[str, str] | None = None,
    partition_by: Names | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: SpillDir = None,
    spill_bytes: int | str | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
    progress: Progress = None,
    reader: bool = False,
) -> Result | Reader:
    """The rows of t in the order of keys.

    by: "day desc nulls first, name collate utf8mb4_bin", or a list of such keys, or of tuples ("odd, name", "desc").
        The default is ascending, with nulls last in either direction. NaN is the greatest number. A key may be an
        expression, "price * (1 - discount) desc" (quern.map describes them), which does not come out; the name in a
        tuple is none.
    limit: only the first rows; rows that cannot be among them are dropped as they arrive. select: columns of the result
        in order; None: all.
    stable: rows with equal keys stay in the order of t; otherwise their order is arbitrary. where: only rows for which
        the condition is true (see filter).
    window: further columns, "row_number, rank as place, dense_rank", or {"place": "rank"}. They restart where a column
        of partition_by changes; rows are sorted by those columns first.
    threads: None: QUERN_THREADS, else the number of cores. memory_limit: bytes that the rows and the result may take,
        or "512M". spill_dir, spill_bytes: as in join.
    engine: "jit", "generic" or "auto". params: {"prefix_words": 3}. stream: t is pulled batch by batch instead of being
        collected first, for readers whose rows would not fit; with a limit, memory holds about as many rows as the
        limit. progress: as in join. reader: returns a Reader, which makes the result batch by batch; a batch counts
        until it is released.
    Cost: docs/performance.md; with where and expressions, a copy of the rows that take part. Errors: ValueError,
        MemoryError above the limit, OSError of files, RuntimeError (as for a row without a key).
    """
    run = Run(threads, memory_limit, engine, params, progress, spill_dir, spill_bytes)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MAX_LIMIT):
        raise wrong("bad limit", limit, "1 to 2^63-1")
    data = Input(t, "t", stream)
    partition = [] if partition_by is None else plain_names("partition_by", partition_by)
    windows = _windows(window)
    selected = list(data.names) if select is None else plain_names("select", select)
    keys = [_Key(name, "", False, False) for name in partition] + _keys(by)
    _check_keys(keys)
    _check_result(selected, windows)
    spec = _SortSpec(data, selected)
    for key in keys:
        spec.add_key(key)
    for name in selected:
        if name not in spec.comes_out:
            spec.add_payload(name)
    apply_where(data, where, engine)
    spec.finish(engine)
    order = [spec.comes_out.index(name) for name in selected] + [len(spec.comes_out) + i for i in range(len(windows))]
    kernel = run.compile(_sort_text(spec, limit, stable, len(partition), windows))
    shape = _quern.Descriptor(order, selected + [name for _, name in windows])
    source = data.kernel_input(spec.keys, spec.payload)

    if reader:

        def sorted_rows() -> _quern.Reader:
            return _quern.read_sort(kernel, source, shape, run.options)

        return run.reader(kernel, run.watched("sort", [data], sorted_rows))

    def in_order() -> _quern.Table:
        return _quern.run_sort(kernel, source, shape, run.options)

    return run.result(kernel, lambda: run.watched("sort", [data], in_order))


def _sort_text(spec: _SortSpec, limit: int | None, stable: bool, partition: int, windows: list[tuple[str, str]]) -> str:
    text = "sort keys=" + ",".join(spec.key_texts)
    if spec.payload_texts:
        text += " payload=" + ",".join(spec.payload_texts)
    text += f" limit={limit}" if limit is not None else ""
    text += " stable" if stable else ""
    text += f" partition={partition}" if partition and windows else ""
    return text + (" window=" + ",".join(function for function, _ in windows) if windows else "")
