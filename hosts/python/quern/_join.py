# SPDX-License-Identifier: Apache-2.0
"""quern.join: from names to the spec of a join. For

    join(probe, build, on="id = order", select="qty, probe.note, id")        probe: id, note    build: order, qty, note

the key is the pair (id, order), and the columns of the result are build qty, probe note, probe id. If id is an i64 and
order an i32, order is cast, and the spec is

    join.inner keys=i64 build=i64 probe=utf8,i64

Its kernel writes probe payload, then build payload: here note, id, qty. `order` = 2, 0, 1 puts these into the requested
order. The mark of a mark join stands between the two. Sides of keys and comparisons that are expressions are computed
by a map of each input, whose results stand behind all other columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Union, overload

from quern import _quern
from quern._arguments import Names, Params, SpillDir, items_of, text_of, wrong
from quern._conditions import apply_where
from quern._expressions import compute_sides, resolved
from quern._inputs import KEY_TYPES, Input, in_common_type
from quern._progress import Progress
from quern._results import Reader, Result
from quern._run import Run
from quern._types import common_format

_MARK = "mark"
_MAX_KEYS = 16
# kind: whether columns of probe and of build come out
KINDS = {
    "inner": (True, True), "left": (True, True), "right": (True, True), "full": (True, True), "semi": (True, False),
    "anti": (True, False), "right_semi": (False, True), "right_anti": (False, True), "anti_null_aware": (True, False),
    "mark": (True, False), "single": (True, True),
}  # fmt: skip
_SIGNS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "!=": "ne", "=": "eq"}
On = Union[str, Iterable[Union[str, tuple[str, ...]]], Mapping[str, str]]
Residual = Union[str, Iterable[Union[str, tuple[str, str, str]]], None]
_Side = tuple[str, Union[_quern.Expression, None], bool]  # name, expression, whether the text may be a name
_Pair = tuple[_Side, _Side, str]  # probe, build, collation
_Comparison = tuple[_Side, str, _Side]


class _Column(NamedTuple):
    side: int  # 0: probe, 1: build, 2: the mark
    name: str


# ---- arguments ----


def _pairs(on: On) -> list[_Pair]:
    """ "a = b, k collate C"; or ["k", ("a", "b"), ("s", "t", "collate C")] and {"a": "b"} of whole names."""
    if isinstance(on, str):
        return _quern.parse_key_pairs("on", text_of("on", on))
    items: Iterable[Any] = on.items() if isinstance(on, Mapping) else items_of("on", on)
    return [_pair(item) for item in items]


def _name(name: str) -> _Side:
    return name, None, True


def _pair(item: str | tuple[str, ...]) -> _Pair:
    if not isinstance(item, tuple):
        return _name(text_of("on", item)), _name(item), ""
    words = [text_of("on", word) for word in item]
    if len(words) == 2:
        return _name(words[0]), _name(words[1]), ""
    if len(words) == 3 and words[2].lower().startswith("collate "):
        return _name(words[0]), _name(words[1]), words[2][len("collate ") :].strip()
    raise wrong("bad key in on", item, 'a name, ("LEFT", "RIGHT"), or ("LEFT", "RIGHT", "collate NAME")')


def _comparisons(residual: Residual) -> list[_Comparison]:
    if residual is None:
        return []
    if isinstance(residual, str):
        return _quern.parse_comparisons("residual", text_of("residual", residual))
    comparisons: list[_Comparison] = []
    for item in items_of("residual", residual):
        if not isinstance(item, tuple):
            comparisons += _quern.parse_comparisons("residual", text_of("residual", item))
            continue
        if len(item) != 3 or item[1] not in _SIGNS:
            raise wrong("bad comparison in residual", item, '("LEFT", "<", "RIGHT") with < <= > >= != or =')
        sides = _name(text_of("residual", item[0])), _name(text_of("residual", item[2]))
        comparisons.append((sides[0], item[1], sides[1]))
    return comparisons


def _name_texts(what: str, names: Names) -> list[tuple[str | None, str, str]]:
    """(whole, side, name) of each; of a list's texts "probe.x" may be both."""
    if isinstance(names, str):
        return _quern.parse_names(what, text_of(what, names))
    texts: list[tuple[str | None, str, str]] = []
    for name in items_of(what, names):
        side, point, rest = text_of(what, name).partition(".")
        has_side = point and rest and side in ("probe", "build")
        texts.append((name, side if has_side else "", rest if has_side else name))
    return texts


# ---- columns of the result ----


class _Columns:
    """The columns that select may name."""

    def __init__(self, how: str, sides: list[Input]) -> None:
        self.how = how
        self.sides = sides
        self.comes_out = KINDS[how]
        self.has_mark = how == "mark"

    def selectable(self) -> list[str]:
        accepted: list[str] = []
        for side in (0, 1):
            if not self.comes_out[side]:
                continue
            other = self.sides[1 - side].names if self.comes_out[1 - side] else []
            for name in self.sides[side].names:
                needs_side = name in other or (self.has_mark and name == _MARK)
                accepted.append((("probe.", "build.")[side] if needs_side else "") + _quern.quote_name(name))
        return accepted + [_MARK] * self.has_mark

    def of_side(self, side: int, name: str) -> _Column:
        if not self.comes_out[side]:
            what = f"column of {self.sides[side].what} does not come out of join type {self.how}"
            raise wrong(what, _quern.quote_name(name), ", ".join(self.selectable()))
        self.sides[side].find(name)
        return _Column(side, name)

    def selected(self, whole: str | None, side: str, name: str) -> _Column:
        if self.has_mark and whole == _MARK:
            return _Column(2, _MARK)
        found = [whole is not None and whole in data.names for data in self.sides]
        if whole is not None and any(found):
            if all(found) and all(self.comes_out):
                quoted = _quern.quote_name(whole)
                raise wrong("ambiguous column", quoted, f"probe.{quoted}, build.{quoted}")
            one = 0 if found[0] and (self.comes_out[0] or not found[1]) else 1
            return self.of_side(one, whole)
        if side:
            return self.of_side(("probe", "build").index(side), name)
        raise ValueError(_quern.unknown_word("column", _quern.quote_name(name), self.selectable()))

    def all(self) -> list[_Column]:
        columns = [
            self.of_side(side, name) for side in (0, 1) if self.comes_out[side] for name in self.sides[side].names
        ]
        if self.has_mark and _MARK in self.sides[0].names:
            raise wrong(
                "two result columns of one name", _MARK, f"a select with {_MARK}, the join's own, or probe.{_MARK}"
            )
        return columns + [_Column(2, _MARK)] * self.has_mark

    def names(self, columns: list[_Column]) -> list[str]:
        """The names of the columns in the result: with their side if both sides have a selected column of that name."""
        names: list[str] = []
        for index, column in enumerate(columns):
            if column in columns[:index]:
                prefix = ("probe.", "build.", "")[column.side]
                raise wrong("column selected twice", prefix + _quern.quote_name(column.name), "once")
            twins = [other for other in columns if other.name == column.name and other.side != column.side]
            name = ("probe.", "build.")[column.side] + column.name if twins and column.side < 2 else column.name
            if name in names:
                raise wrong("two result columns of one name", _quern.quote_name(name), "a select with one of them")
            names.append(name)
        return names


# ---- the spec ----


class _Computed(NamedTuple):
    """A key or a comparison whose sides are computed, and where its columns and its text belong."""

    expressions: list[_quern.Expression]  # of each side
    is_key: bool
    places: list[int]  # among the keys or the payload of each side
    text: int  # among the texts of the spec
    suffix: str


class _JoinSpec:
    def __init__(self, how: str, sides: list[Input]) -> None:
        self.how = how
        self.sides = sides
        self.keys: list[list[int]] = [[], []]
        self.payload: list[list[int]] = [[], []]
        self.key_texts: list[str] = []
        self.payload_texts: list[list[str]] = [[], []]
        self.residual_texts: list[str] = []
        self._computed: list[_Computed] = []

    def _add_computed(self, sides: tuple[_Side, _Side], is_key: bool, suffix: str) -> bool:
        """Whether one of the sides is an expression: then both are computed, by finish."""
        found = [resolved(data, *side) for data, side in zip(self.sides, sides)]
        if found == [None, None]:
            return False
        expressions = []
        for data, (name, _, _), expression in zip(self.sides, sides, found):
            if expression is None:
                data.find(name)
            expressions.append(expression or _quern.column_expression(name))
        columns, texts = (self.keys, self.key_texts) if is_key else (self.payload, self.residual_texts)
        places = [len(columns[side]) for side in (0, 1)]
        self._computed.append(_Computed(expressions, is_key, places, len(texts), suffix))
        texts.append("")
        for side in (0, 1):
            columns[side].append(-1)
        return True

    def finish(self, engine: str) -> None:
        """Computes sides that are expressions; no column is added afterwards."""
        if not self._computed:
            return
        what = ", ".join({"on" if computed.is_key else "residual": None for computed in self._computed})
        expressions = [[computed.expressions[side] for computed in self._computed] for side in (0, 1)]
        first = compute_sides(self.sides, what, expressions, engine)
        for index, computed in enumerate(self._computed):
            numbers = [first[side] + index for side in (0, 1)]
            nullable = any(data.result_nullable(number) for data, number in zip(self.sides, numbers))
            columns, texts = (self.keys, self.key_texts) if computed.is_key else (self.payload, self.residual_texts)
            suffix = computed.suffix if nullable or not computed.is_key else ""
            texts[computed.text] = self.sides[0].kernel_type(numbers[0], nullable) + suffix
            for side in (0, 1):
                columns[side][computed.places[side]] = self.sides[side].place(numbers[side])

    def add_key(self, pair: _Pair, null_equal: bool) -> None:
        if self._add_computed((pair[0], pair[1]), True, ":nullequal" if null_equal else ""):
            if pair[2]:
                raise wrong("collation on a key without text", pair[0][0], "utf8 columns")
            return
        names = (pair[0][0], pair[1][0])
        numbers, nullable = in_common_type(self.sides, names, "keys of types that do not compare", KEY_TYPES)
        text = self.sides[0].kernel_type(numbers[0], nullable, pair[2])
        self.sides[1].kernel_type(numbers[1], nullable, pair[2])
        self.key_texts.append(text + (":nullequal" if null_equal and nullable else ""))
        for side in (0, 1):
            self.keys[side].append(self.sides[side].place(numbers[side]))

    def add_payload(self, column: _Column) -> None:
        data = self.sides[column.side]
        place = data.find(column.name)
        number = data.readable(place)
        self.payload_texts[column.side].append(data.kernel_type(number, data.nullable(place)))
        self.payload[column.side].append(data.place(number))

    def add_residual(self, left: _Side, sign: str, right: _Side) -> None:
        if self._add_computed((left, right), False, f":{_SIGNS[sign]}"):
            return
        accepted = "the same type, two integers that one integer type holds, numbers with floats"
        what = "residual on types that do not compare"
        numbers, nullable = in_common_type(self.sides, (left[0], right[0]), what, accepted, "b")
        numbers = [self._decoded(side, number) for side, number in enumerate(numbers)]
        self.residual_texts.append(f"{self.sides[0].kernel_type(numbers[0], nullable)}:{_SIGNS[sign]}")
        for side in (0, 1):
            self.payload[side].append(self.sides[side].place(numbers[side]))

    def _decoded(self, side: int, number: int) -> int:
        data = self.sides[side]
        is_dictionary = number < len(data.fields) and data.fields[number].dictionary
        return (
            data.made(number, common_format(data.fields[number], data.fields[number]) or "vu")
            if is_dictionary
            else number
        )

    def text(self) -> str:
        text = f"join.{self.how} keys=" + ",".join(self.key_texts)
        for name, texts in (
            ("build", self.payload_texts[1]), ("probe", self.payload_texts[0]), ("residual", self.residual_texts)
        ):
            text += f" {name}=" + ",".join(texts) if texts else ""
        return text


def _null_equal_keys(null_equal: Names | None, pairs: list[_Pair]) -> set[int]:
    """A key is named by either of its columns; the probe's name comes first."""
    found: set[int] = set()
    for whole, _, name in [] if null_equal is None else _name_texts("null_equal", null_equal):
        by_side = [[pair[side][0] for pair in pairs] for side in (0, 1)]
        side = next((names for names in by_side if whole in names), None)
        if whole is None or side is None:
            accepted = [_quern.quote_name(pair[0][0]) for pair in pairs]
            given = _quern.quote_name(name if whole is None else whole)
            raise ValueError(_quern.unknown_word("key in null_equal", given, accepted))
        found.add(side.index(whole))
    return found


def _order(columns: list[_Column]) -> list[int]:
    """For each column of the result, its position in the kernel's output: probe payload, the mark, build payload."""
    kernel = [column for side in (0, 2, 1) for column in columns if column.side == side]
    return [kernel.index(column) for column in columns]


def _prepare(
    spec: _JoinSpec, pairs: list[_Pair], columns: list[_Column], residual: Residual, null_equal: Names | None
) -> None:
    if not 1 <= len(pairs) <= _MAX_KEYS:
        raise wrong("bad number of keys", len(pairs), f"1 to {_MAX_KEYS}")
    equal = _null_equal_keys(null_equal, pairs)
    for index, pair in enumerate(pairs):
        spec.add_key(pair, index in equal)
    for column in columns:
        if column.side < 2:
            spec.add_payload(column)
    for comparison in _comparisons(residual):
        spec.add_residual(*comparison)


@overload
def join(probe: object, build: object, on: On, how: str = "inner", *, null_equal: Names | None = None,
         residual: Residual = None, probe_where: str | None = None, build_where: str | None = None,
         select: Names | None = None, threads: int | None = None, memory_limit: int | str | None = None,
         spill_dir: SpillDir = None, spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None,
         stream: Literal[False] = False, progress: Progress = None) -> Result: ...
@overload
def join(probe: object, build: object, on: On, how: str = "inner", *, null_equal: Names | None = None,
         residual: Residual = None, probe_where: str | None = None, build_where: str | None = None,
         select: Names | None = None, threads: int | None = None, memory_limit: int | str | None = None,
         spill_dir: SpillDir = None, spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None,
         stream: Literal[True], progress: Progress = None) -> Reader: ...
@overload
def join(probe: object, build: object, on: On, how: str = "inner", *, null_equal: Names | None = None,
         residual: Residual = None, probe_where: str | None = None, build_where: str | None = None,
         select: Names | None = None, threads: int | None = None, memory_limit: int | str | None = None,
         spill_dir: SpillDir = None, spill_bytes: int | str | None = None, engine: str = "auto", params: Params = None,
         stream: bool, progress: Progress = None) -> Result | Reader: ...
def join(
    probe: object,
    build: object,
    on: On,
    how: str = "inner",
    *,
    null_equal: Names | None = None,
    residual: Residual = None,
    probe_where: str | None = None,
    build_where: str | None = None,
    select: Names | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: SpillDir = None,
    spill_bytes: int | str | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
    progress: Progress = None,
) -> Result | Reader:
    """Rows of two tables whose keys are equal, in the order of probe. A hash table is made of build, which is best the
    smaller one.

    on: "a = b, k": column a of probe equals column b of build, and the columns k are equal; `s = t collate utf8mb4_bin`
        names a collation. Or a list ["k", ("a", "b"), ("s", "t", "collate NAME")] or a dictionary {"a": "b"}, of whole
        names. In a text a side may be an expression over columns of its table, "a + 1 = b" (quern.map describes them).
    how: inner, left, right, full, semi, anti, right_semi, right_anti, anti_null_aware, mark, single; probe is left.
        Rows of build that come out on their own follow all others, in no particular order.
    null_equal: keys, by name, whose nulls match nulls; otherwise a null matches nothing.
    residual: "shipped < due": pairs match only if column shipped of probe < column due of build, too; also [("shipped",
        "<", "due")].
    probe_where, build_where: only rows of that table for which the condition is true take part, as if it were filtered
        first, but no row is copied (quern.filter describes the grammar).
    select: columns of the result in order, "a, build.k" or ["a", "build.k"], `mark` of a mark join. None: all that come
        out; those that both sides have are called probe.x and build.x. []: none, if only len() is wanted.
    threads: None: QUERN_THREADS, else the number of cores. memory_limit: bytes that the table and the result may take,
        or "512M"; the inputs are not counted. From 16M up, rows that exceed it go to nameless files in the folder
        spill_dir (None: QUERN_SPILL_DIR, else /var/tmp; "off": MemoryError), which take up to spill_bytes bytes at one
        time, or "20G" (None: no limit); probe rows that meet them follow all others, in no particular order.
    engine: "jit" (compiled, or an error), "generic" (nothing is compiled), "auto". params: {"layout": "dense"}.
    stream: returns a Reader, which pulls probe batch by batch and never holds more than one batch; a column is nullable
        if its schema says so.
    progress: True for a line on the terminal, or a function of the rows of both tables processed so far and of all
        their rows (None for a stream), called several times a second; an exception of it ends the call. With a Reader:
        while its table is built.
    Types: keys of two types are compared in a type that holds both, exactly or with a ValueError. Columns keep their
        types; dictionaries come out decoded. Ownership: strings are shared with the inputs, which live as long as the
        result.
    Cost: docs/performance.md. Errors: ValueError, MemoryError above the limit, OSError of files, RuntimeError (a second
        match in a single join).
    """
    run = Run(threads, memory_limit, engine, params, progress, spill_dir, spill_bytes)
    if how not in KINDS:
        raise ValueError(_quern.unknown_word("join type", str(how), list(KINDS)))
    pairs = _pairs(on)
    sides = [Input(probe, "probe", stream), Input(build, "build")]
    resolved = _Columns(how, sides)
    columns = resolved.all() if select is None else [resolved.selected(*text) for text in _name_texts("select", select)]
    shape = _quern.Descriptor(_order(columns), resolved.names(columns))
    spec = _JoinSpec(how, sides)
    _prepare(spec, pairs, columns, residual, null_equal)
    apply_where(sides[0], probe_where, engine, "probe_where")
    apply_where(sides[1], build_where, engine, "build_where")
    spec.finish(engine)
    kernel = run.compile(spec.text())
    probe_input, build_input = (sides[side].kernel_input(spec.keys[side], spec.payload[side]) for side in (0, 1))
    if stream:

        def build_table() -> _quern.Reader:
            return _quern.read_join(kernel, build_input, probe_input, shape, run.options)

        return run.reader(kernel, run.watched("table of join", sides[1:], build_table))

    def compute() -> _quern.Table:
        return _quern.run_join(kernel, build_input, probe_input, shape, run.options)

    return run.result(kernel, lambda: run.watched("join", sides, compute))
