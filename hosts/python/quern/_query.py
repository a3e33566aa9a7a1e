# SPDX-License-Identifier: Apache-2.0
"""quern.scan: queries of several steps, and quern.run: the same from a text.

Each method adds a step to the text of a query (docs/queries.md). For

    orders = quern.scan(orders).filter("o_orderdate < date '1995-03-15'")
    quern.scan(lineitem).join(orders, on="l_orderkey = o_orderkey").aggregate("o_orderdate", "sum(l_quantity) as qty")

the text is

    r0:
      scan t1
      filter o_orderdate < date '1995-03-15'
    result:
      scan t0
      join r0 on l_orderkey = o_orderkey
      aggregate sum(l_quantity) as qty by o_orderdate
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Union

from quern import _quern
from quern._arguments import Names, Params, SpillDir, params_text, text_of, wrong
from quern._join import KINDS
from quern._kernel import compile as compile_kernel
from quern._results import Result
from quern._run import Run

Calls = Union[str, Mapping[str, str], None]
_QUOTED = re.compile("\"[^\"]*\"|'[^']*'")
_COMMENTS = re.compile(f"({_QUOTED.pattern})|(?:--|#).*")


class _Table:
    """What a scan reads: the batches of an object with Arrow data."""

    def __init__(self, data: object, name: str | None) -> None:
        self.name = name
        self.source = _quern.Source(data, "data")
        self.source.collect()


def _mentioned(text: str, name: str, data: Any) -> object:
    """The columns of a table that a query mentions, or at least one: exporting others takes time, and pandas also
    copies them. Objects of other classes than these stay as they are. No row is copied."""
    package, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if (package, kind) == ("pyarrow", "Table"):
        names = list(data.column_names)
    elif (package, kind) in (("polars", "DataFrame"), ("pandas", "DataFrame")):
        names = [str(column) for column in data.columns]
    else:
        return data
    numbers = _quern.mentioned_columns(text, name, names) or [0]
    if len(numbers) >= len(names):
        return data
    if package == "pyarrow":
        return data.select(numbers)
    return data[:, numbers] if package == "polars" else data.iloc[:, numbers]


class _Text:
    """The text of a query while it is put together, and its tables by name."""

    def __init__(self) -> None:
        self.tables: dict[str, _Table] = {}
        self.relations: list[str] = []
        self._names: dict[int, str] = {}  # of frames, by identity

    def name_of(self, frame: Frame) -> str:
        """Of a table, or of a relation, which is added."""
        if not frame._steps:
            return self.name_of_table(frame._table)
        if id(frame) not in self._names:
            self.add(frame, None)
        return self._names[id(frame)]

    def name_of_table(self, table: _Table) -> str:
        for name, known in self.tables.items():
            if known is table:
                return _quern.quote_name(name)
        name = table.name or f"t{len(self.tables)}"
        while name in self.tables or name in self._names.values():
            name += "_"
        self.tables[name] = table
        return _quern.quote_name(name)

    def add(self, frame: Frame, name: str | None) -> None:
        """name: None: r0, r1, .. in the order of the text."""
        lines = [f"scan {self.name_of_table(frame._table)}"]
        for step in frame._steps:
            lines.append(step if isinstance(step, str) else f"{step[0]} {self.name_of(step[1])} on {step[2]}")
        if name is None:
            name = f"r{len(self.relations)}"
            while name in self.tables:  # a relation hides a table of its name
                name += "_"
        self._names[id(frame)] = name
        self.relations.append("\n  ".join([f"{name}:", *lines]))


def _one_line(what: str, text: str) -> str:
    """A text as part of a step, which has one line: without comments and line feeds."""
    lines = [_COMMENTS.sub(lambda found: found[1] or "", line) for line in text_of(what, text).split("\n")]
    if any(re.search("[\"']", _QUOTED.sub("", line)) for line in lines):
        raise wrong(f"text of {what} with a quote that is open at the end of a line", text, "quotes within a line")
    return " ".join(lines)


def _name_text(what: str, name: str) -> str:
    if "\n" in text_of(what, name):
        raise wrong(f"name in {what} with a line feed", name, "names of one line")
    return _quern.quote_name(name)


def _calls_text(what: str, calls: Mapping[str, str]) -> list[str]:
    texts = []
    for name, call in calls.items():
        text = _one_line(what, call)
        if what == "select":
            _quern.parse_expression(what, text)
        elif len(_quern.parse_aggregates(what, text)) != 1:
            raise wrong("more than one aggregate for a name", _quern.quote_name(name), "one")
        texts.append(f"{text} as {_name_text(what, name)}")
    return texts


def _count(what: str, number: object, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number < 1 << 64:
        raise wrong(f"bad {what}", number, f"a whole number from {least}")
    return number


class Frame:
    """Rows on their way: a table and steps, which run in their order when collect is called.

    Frames never change: each method returns a new one, after it has checked the step against names and types. They plan
    nothing: build sides and orders of joins are the caller's. Threads: any may use a frame.
    """

    __slots__ = ("_query", "_steps", "_table", "_text")

    def __init__(self, table: _Table, steps: tuple[str | tuple[str, Frame, str], ...]) -> None:
        self._table = table
        self._steps = steps
        text = _Text()
        text.add(self, "result")
        self._text = "\n".join(text.relations) + "\n"
        self._query = _query_of(self._text, text.tables)

    def _with(self, step: str | tuple[str, Frame, str]) -> Frame:
        return Frame(self._table, (*self._steps, step))

    def filter(self, condition: str) -> Frame:
        """Keeps the rows for which the condition is true: "price * qty > 100 and name like 'a%'"."""
        return self._with(f"filter {_one_line('condition', condition)}")

    def select(self, *columns: str, **computed: str) -> Frame:
        """The columns from here on: select("*", revenue="price * qty"), select("a, b as c")."""
        texts = [_one_line("select", column) for column in columns] + _calls_text("select", computed)
        if not texts:
            raise wrong("select of nothing", "no columns", "one or more")
        return self._with(f"select {', '.join(texts)}")

    def join(self, other: object, on: str, how: str = "inner") -> Frame:
        """Probes a hash table of `other`, a Frame or an object with Arrow data, whose columns come behind these.

        on: "a = b and c * 2 < d", columns and expressions of this frame to the left: keys, and comparisons of pairs; of
        an inner join also any other condition. how: as of quern.join.
        """
        if how not in KINDS:
            raise ValueError(_quern.unknown_word("kind of join", str(how), list(KINDS)))
        frame = other if isinstance(other, Frame) else scan(other)
        return self._with((f"join.{how}", frame, _one_line("on", on)))

    def aggregate(self, by: Names | None = None, aggs: Calls = None, **named: str) -> Frame:
        """One row for each group: aggregate("year(day) as y", revenue="sum(price * qty)", n="count(*)").

        by: keys, columns or expressions; None: all rows are one group. aggs: calls in a text or by name; `named`: more.
        """
        if by is None or isinstance(by, str):
            keys = _one_line("by", by or "")
        else:
            keys = ", ".join(_name_text("by", name) for name in by)
        if aggs is None or isinstance(aggs, str):
            calls = [_one_line("aggs", aggs)] if aggs else []
        else:
            calls = _calls_text("aggs", aggs)
        calls += _calls_text("aggs", named)
        return self._with(f"aggregate {', '.join(calls)}" + (f" by {keys}" if keys else ""))

    def sort(self, by: str, limit: int | None = None, offset: int = 0) -> Frame:
        """The rows in order, or the first of them: sort("revenue desc, day", limit=10), sort("price * qty")."""
        text = f"sort {_one_line('by', by)}"
        if limit is not None:
            text += f" limit {_count('limit', limit, 1)}"
            if _count("offset", offset, 0):
                text += f" offset {offset}"
        elif offset:
            raise wrong("offset of a sort without a limit", offset, "an offset beside a limit")
        return self._with(text)

    def limit(self, num_rows: int, offset: int = 0) -> Frame:
        """Some of the rows; the last step of all."""
        return self._with(f"limit {_count('limit', num_rows, 1)} offset {_count('offset', offset, 0)}")

    def collect(
        self,
        *,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        spill_dir: SpillDir = None,
        spill_bytes: int | str | None = None,
        engine: str = "auto",
        params: Params = None,
    ) -> Result:
        """Runs the steps; threads, memory_limit, spill_dir, spill_bytes and engine as for quern.join. Joins,
        aggregates and sorts are spilled.

        params: of the query, {"piece_rows": 1024, "fuse": "off"}, of all kernels, {"batch_size": 512}, of those of
        pipeline 2 as explain() numbers it, {"2.batch_size": 512}, or of its step 1, {"2.1.batch_size": 512}.

        Errors: MemoryError above the limit, RuntimeError for a row without a result.
        """
        return _collect(self._query, Run(threads, memory_limit, engine, params, None, spill_dir, spill_bytes))

    def explain(self, *, params: Params = None) -> str:
        """The pipelines, a line a step: which rows pass together, and the specs of the kernels."""
        return self._query.explain(params_text(params))

    def dump(self, stage: str = "asm", machine: str = "native", *, params: Params = None) -> str:
        """One stage of each kernel, as Kernel.dump has it, under its spec."""
        specs = dict.fromkeys(self._query.specs(params_text(params)))
        kernels = [compile_kernel(spec, params=given, machine=machine) for spec, given in specs]
        return "\n".join(f"== {kernel.spec}\n{kernel.dump(stage)}" for kernel in kernels)

    @property
    def text(self) -> str:
        """The text of the query, as `quern run` takes it."""
        return self._text

    @property
    def column_names(self) -> list[str]:
        return list(self._query.names)

    def __repr__(self) -> str:
        return f"<quern.Frame\n{self._text}>"


def _query_of(text: str, tables: Mapping[str, _Table]) -> _quern.Query:
    try:
        return _quern.Query(text, [(name, table.source) for name, table in tables.items()])
    except ValueError as error:
        raise ValueError(re.sub(r"^line \d+: ", "", str(error))) from None


def _collect(query: _quern.Query, run: Run) -> Result:
    begin = time.perf_counter()
    table, ran, pipelines = query.run(run.engine, run.params, run.options)
    stats = {
        "engine": ran,
        "threads": run.threads,
        "run_ms": round((time.perf_counter() - begin) * 1e3, 3),
        "num_rows": table.num_rows,
        "pipelines": [
            {
                **dict(zip(("relation", "rows_in", "rows_out", "ms"), pipeline)),
                "steps": [{"step": step, "spec": spec, **counters} for step, spec, counters in pipeline[4]],
            }
            for pipeline in pipelines
        ],
    }
    return Result(table, stats)


def scan(data: object, name: str | None = None) -> Frame:
    """A query over an object with Arrow data, whose rows are taken now; they are shared by all frames made of it.

    name: of the table in the query's text; None: t0, t1, ..
    """
    if name is not None:
        _name_text("name", name)
    return Frame(_Table(data, name), ())


def run(
    text: str,
    tables: Mapping[str, object],
    *,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: SpillDir = None,
    spill_bytes: int | str | None = None,
    engine: str = "auto",
    params: Params = None,
) -> Result:
    """Runs the text of a query (docs/queries.md) over tables by name: objects with Arrow data, or scans of them.

    params: as of Frame.collect.

    Errors: ValueError that begins with the line, MemoryError above the limit, RuntimeError for a row without a result.
    """
    named: dict[str, _Table] = {}
    narrowed: dict[str, object] = {}
    for name, data in tables.items():
        if isinstance(data, Frame):
            if data._steps:
                accepted = "an object with Arrow data, or quern.scan of one"
                raise wrong("table that is a query", text_of("tables", name), accepted)
            named[text_of("tables", name)] = data._table
            continue
        mentioned = _mentioned(text_of("text", text), text_of("tables", name), data)
        if mentioned is not data:
            narrowed[name] = data
        named[name] = _Table(mentioned, name)
    try:
        query = _quern.Query(text, [(name, table.source) for name, table in named.items()])
    except ValueError:
        for name, data in narrowed.items():  # the error has the names of all columns
            named[name] = _Table(data, name)
        query = _quern.Query(text, [(name, table.source) for name, table in named.items()])
    return _collect(query, Run(threads, memory_limit, engine, params, None, spill_dir, spill_bytes))
