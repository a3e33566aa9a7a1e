# SPDX-License-Identifier: Apache-2.0
"""quern.aggregate: from names to the spec of an aggregation. For

    aggregate(t, by="flag", aggs="sum(price), count(price) filter (where qty >= 10)")

with flag a string, price a decimal in which nulls were read and qty an integer, the kernel reads three columns: flag,
price and whether qty >= 10. The spec is

    aggregate keys=utf8 aggs=sum(decimal128:nullable),count(decimal128:nullable):filter

Where an argument or a condition is an expression, the kernel computes it: aggs="sum(price * qty)" gives

    aggregate keys=utf8 in=decimal128(15,2):nullable,i64 aggs=sum(multiply($0,cast($1,decimal128(19,0))))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Union, overload

from quern import _quern
from quern._arguments import Names, Params, SpillDir, items_of, text_of, wrong
from quern._conditions import Condition, apply_where
from quern._expressions import compute, describe, resolved, with_names_of
from quern._inputs import Input
from quern._progress import Progress
from quern._results import Reader, Result
from quern._run import Run

Aggs = Union[str, Iterable[Union[str, tuple[str, ...]]], Mapping[str, Union[str, tuple[str, ...]]]]
_Read = tuple[str, str, str, bool]  # format, that of a dictionary's values, collation, nullable
_NUMBERS = ("sum", "sum128", "avg", "sum_distinct", "bit_and", "bit_or", "bit_xor")
_DOUBLES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr", "median", "quantile")


def _call_text(call: str | tuple[str, ...]) -> str:
    """ "sum(x)", or ("sum", "x") with a whole name."""
    if not isinstance(call, tuple):
        return text_of("aggs", call)
    words = [text_of("aggs", word) for word in call]
    if words == ["count"]:
        return "count(*)"
    return f"{words[0]}({', '.join(_quern.quote_name(name) for name in words[1:])})" if words else ""


def _calls(aggs: Aggs | None) -> list[dict[str, Any]]:
    """Calls from a text, a list of texts or tuples, or a dictionary of them by the names of the result columns."""
    if aggs is None:
        return []
    if isinstance(aggs, str):
        return _quern.parse_aggregates("aggs", text_of("aggs", aggs))
    if not isinstance(aggs, Mapping):
        return [call for text in items_of("aggs", aggs) for call in _quern.parse_aggregates("aggs", _call_text(text))]
    calls = []
    for name, text in aggs.items():
        parsed = _quern.parse_aggregates("aggs", _call_text(text))
        if len(parsed) != 1:
            raise wrong("more than one aggregate for a name", _quern.quote_name(text_of("aggs", name)), "one")
        calls.append({**parsed[0], "name": text_of("aggs", name)})
    return calls


def keys_of(by: Names | None) -> list[tuple[str, str]]:
    if by is None:
        return []
    if isinstance(by, str):
        return _quern.parse_keys("by", text_of("by", by))
    return [_key(item) for item in items_of("by", by)]


def _key(item: str | tuple[str, ...]) -> tuple[str, str]:
    """ "name", whole, or ("name", "collate", COLLATION)."""
    if not isinstance(item, tuple):
        return text_of("by", item), ""
    if len(item) == 3 and str(item[1]).lower() == "collate":
        return text_of("by", item[0]), text_of("by", item[2])
    raise wrong("bad key in by", item, 'a name, or ("NAME", "collate", "COLLATION")')


class _Argument(NamedTuple):
    number: int  # of a column, or of an expression among these
    type: str | None = None  # in the spec; None: it is an expression
    column: _Read = ("", "", "", True)  # that has the type


class _AggregateSpec:
    """Keys and calls are added first; finish makes the spec."""

    def __init__(self, data: Input, engine: str) -> None:
        self.data = data
        self.engine = engine
        self.keys: list[int] = []
        self.key_texts: list[str] = []
        self._computed: list[_quern.Expression] = []
        self._calls: list[tuple[dict[str, Any], list[_Argument], _Argument | None]] = []

    def add_key(self, name: str, collation: str) -> None:
        column = self.data.find(name)
        number = self.data.readable(column)
        self.key_texts.append(self.data.kernel_type(number, self.data.nullable(column), collation))
        self.keys.append(self.data.place(number))

    def add_call(self, call: dict[str, Any]) -> None:
        arguments = [self._argument(call["function"], *argument) for argument in call["arguments"]]
        self._calls.append((call, arguments, self._filter(call["filter"], call["computed_filter"])))

    def _filter(self, where: _quern.Where | None, expression: _quern.Expression | None) -> _Argument | None:
        """The column of a condition: over columns where they are there, otherwise an expression."""
        data = self.data
        has_columns = where is not None and data.has_in_any_letters(where.names)
        if expression is not None and not has_columns and (where is None or data.has_in_any_letters(expression.names)):
            self._computed.append(with_names_of(data, expression))
            return _Argument(len(self._computed) - 1)
        if where is None:
            return None
        condition = Condition(data, "aggs", where)
        test = data.add_test(condition.compile(self.engine), condition.columns)
        return _Argument(test, "bool", ("b", "", "", False))

    def _argument(
        self, function: str, name: str, collation: str, expression: _quern.Expression | None, may_be_column: bool
    ) -> _Argument:
        computed = resolved(self.data, name, expression, may_be_column)
        if computed is not None:
            self._computed.append(computed)
            return _Argument(len(self._computed) - 1)
        column = self.data.find(name)
        number, nullable = self.data.readable(column, _format_without_values(function)), self.data.nullable(column)
        read = self.data.format_of(number)
        return _Argument(number, self.data.kernel_type(number, nullable, collation), (*read, collation, nullable))

    def finish(self) -> tuple[str, list[int]]:
        """The spec, and the places of the columns behind its keys."""
        data, expressions = self.data, self._computed
        columns, described = describe(data, expressions)
        types = _quern.result_types("aggs", expressions, described) if expressions else []
        texts: list[str] = []
        arguments: list[_Argument] = []
        for call, of_call, test in self._calls:
            inside = [types[argument.number] if argument.type is None else argument.type for argument in of_call]
            if call["function"] == "quantile":
                inside.append(repr(call["quantile"]))
            if call["function"] == "string_agg":
                inside.append(f"x'{call['separator'].hex()}'")
            texts.append(f"{call['function']}({','.join(inside)})" if inside else call["function"])
            arguments += of_call
            if test is not None:
                if test.type is None and not types[test.number].startswith("bool"):
                    raise wrong("filter of an aggregate that is no condition", call["name"], "a bool")
                arguments.append(test)
                texts[-1] += ":filter"
        text = "aggregate"
        text += " keys=" + ",".join(self.key_texts) if self.key_texts else ""
        text += " aggs=" + ",".join(texts) if texts else ""
        if not expressions:
            return text, [data.place(argument.number) for argument in arguments]
        for argument in arguments:
            if argument.type is not None and argument.number not in columns:
                columns.append(argument.number)
        read = [
            argument.number if argument.type is None else (columns.index(argument.number), *argument.column)
            for argument in arguments
        ]
        fused = _quern.fused_text(text, "aggs", expressions, described, read)
        if fused is not None:
            return fused[0], [data.place(columns[number]) for number in fused[1]]
        first = compute(data, "aggs", expressions, self.engine)[1]
        of_map = [argument.number + (first if argument.type is None else 0) for argument in arguments]
        return text, [data.place(number) for number in of_map]


def _format_without_values(function: str) -> str:
    """The format that stands for a column of type null."""
    if function.startswith("bool_"):
        return "b"
    return "l" if function in _NUMBERS + _DOUBLES else "u"


def _check_names(names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise wrong("two result columns of one name", name, "different names, as by FUNCTION(COLUMN) as NAME")


@overload
def aggregate(t: object, by: Names | None = None, aggs: Aggs | None = None, *, where: str | None = None,
              threads: int | None = None, memory_limit: int | str | None = None, spill_dir: SpillDir = None,
              spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None, stream: bool = False,
              progress: Progress = None, reader: Literal[False] = False) -> Result: ...
@overload
def aggregate(t: object, by: Names | None = None, aggs: Aggs | None = None, *, where: str | None = None,
              threads: int | None = None, memory_limit: int | str | None = None, spill_dir: SpillDir = None,
              spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None, stream: bool = False,
              progress: Progress = None, reader: Literal[True]) -> Reader: ...
@overload
def aggregate(t: object, by: Names | None = None, aggs: Aggs | None = None, *, where: str | None = None,
              threads: int | None = None, memory_limit: int | str | None = None, spill_dir: SpillDir = None,
              spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None, stream: bool = False,
              progress: Progress = None, reader: bool) -> Result | Reader: ...
def aggregate(
    t: object,
    by: Names | None = None,
    aggs: Aggs | None = None,
    *,
    where: str | None = None,
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
    """One row for each group of rows of t whose keys are equal, in no particular order.

    by: "a, s collate utf8mb4_bin", or ["a", ("s", "collate", "utf8mb4_bin")]; None: all rows are one group, even if
        there are none.
    aggs: "count(*), sum(x) as total, count(distinct s), quantile(x, 0.9) filter (where y > 5)"; or a list of such
        calls, or of tuples ("sum", "odd, name"); or a dictionary {"total": "sum(x)"}. None: only the distinct keys.
        An argument may be an expression, "sum(price * qty)" (quern.map describes them), and so may a condition, "avg(x)
        filter (where price * qty > 3)"; a name in a tuple is none.
    where: only rows for which the condition is true take part (quern.filter describes the grammar).
    threads, memory_limit, spill_dir, spill_bytes, engine, params, progress: as in join. stream: t is pulled batch by
        batch instead of being collected first; memory holds only the groups. reader: returns a Reader, which makes the
        result batch by batch; a batch counts until it is released.
    Nulls: equal to each other as keys; skipped by all functions but count(*). Over no rows a function is null, a count
        0.
    Types: sums of integers have 64 bits, and one that does not fit is a RuntimeError (sum128 has 128); sums and
        averages of decimals are decimals with 38 digits; dictionaries come out decoded.
    Cost: docs/performance.md. Errors: ValueError,
        MemoryError above the limit, OSError of files, RuntimeError.
    """
    run = Run(threads, memory_limit, engine, params, progress, spill_dir, spill_bytes)
    keys, calls = keys_of(by), _calls(aggs)
    if not keys and not calls:
        raise wrong("aggregation of nothing", "neither by nor aggs", "one of them, or both")
    names = [name for name, _ in keys] + [call["name"] for call in calls]
    _check_names(names)
    data = Input(t, "t", stream)
    spec = _AggregateSpec(data, engine)
    for name, collation in keys:
        spec.add_key(name, collation)
    for call in calls:
        spec.add_call(call)
    apply_where(data, where, engine)
    text, payload = spec.finish()
    kernel = run.compile(text)
    shape = _quern.Descriptor(list(range(len(names))), names)
    source = data.kernel_input(spec.keys, payload)

    if reader:

        def groups() -> _quern.Reader:
            return _quern.read_aggregate(kernel, source, shape, run.options)

        return run.reader(kernel, run.watched("aggregate", [data], groups))

    def compute() -> _quern.Table:
        return _quern.run_aggregate(kernel, source, shape, run.options)

    return run.result(kernel, lambda: run.watched("aggregate", [data], compute))
