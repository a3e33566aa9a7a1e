# SPDX-License-Identifier: Apache-2.0
"""quern.union, intersect and except_: from names to the spec of a set operation. For

    intersect(old, new, by="name collate utf8mb4_bin, id")      old: id, name, note    new: name, id, day

with id an i32 in old and an i64 in new, and nulls among the names of new, id of old is cast, and the spec is

    set.intersect keys=utf8(utf8mb4_bin):nullable,i64
"""

from __future__ import annotations

from quern import _quern
from quern._aggregate import keys_of
from quern._arguments import Names, Params, SpillDir, wrong
from quern._conditions import apply_where
from quern._inputs import KEY_TYPES, Input, in_common_type
from quern._progress import Progress
from quern._results import Result
from quern._run import Run

_MAX_KEYS = 16


def _resolved(by: Names | None, sides: list[Input]) -> list[tuple[str, str]]:
    """(name, collation) of each column."""
    keys = [(name, "") for name in sides[0].names] if by is None else keys_of(by)
    if not 1 <= len(keys) <= _MAX_KEYS:
        raise wrong("number of columns out of range", len(keys), f"1 to {_MAX_KEYS}, chosen by by")
    names = [name for name, _ in keys]
    for index, name in enumerate(names):
        for side in sides:
            side.find(name)
        if name in names[:index]:
            raise wrong("column named twice in by", _quern.quote_name(name), "once")
    return keys


def _combined(
    kind: str, left: object, right: object, by: Names | None, run: Run, engine: str, wheres: tuple[str | None, ...],
    stream: bool,
) -> Result:  # fmt: skip
    sides = [Input(left, "left", stream), Input(right, "right", stream)]
    keys = _resolved(by, sides)
    places: list[list[int]] = [[], []]
    texts = []
    for name, collation in keys:
        numbers, nullable = in_common_type(sides, (name, name), "columns of types that do not compare", KEY_TYPES)
        texts.append(sides[0].kernel_type(numbers[0], nullable, collation))
        for side in (0, 1):
            sides[side].kernel_type(numbers[side], nullable, collation)
            places[side].append(sides[side].place(numbers[side]))
    for side, where in enumerate(wheres):
        apply_where(sides[side], where, engine, f"{sides[side].what}_where")
    kernel = run.compile(f"set.{kind} keys=" + ",".join(texts))
    shape = _quern.Descriptor(list(range(len(keys))), [name for name, _ in keys])
    left_input, right_input = (sides[side].kernel_input(places[side], []) for side in (0, 1))

    def compute() -> _quern.Table:
        return _quern.run_set(kernel, left_input, right_input, shape, run.options)

    return run.result(kernel, lambda: run.watched(kind.partition("_")[0], sides, compute))


def union(
    left: object,
    right: object,
    by: Names | None = None,
    *,
    left_where: str | None = None,
    right_where: str | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: SpillDir = None,
    spill_bytes: int | str | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
    progress: Progress = None,
) -> Result:
    """Rows that are in left or in right, each once, in no particular order. (All rows of both, as of SQL's UNION ALL,
    are the two tables one after the other.)

    by: columns that are compared and come out, which both tables have by that name: "a, s collate utf8mb4_bin", or
        ["a", ("s", "collate", "utf8mb4_bin")]; None: all of left. Further columns are not read.
    left_where, right_where: only rows of that table for which the condition is true take part (quern.filter describes
        the grammar).
    threads, memory_limit, spill_dir, spill_bytes, engine, params, progress: as in join. stream: both tables are pulled
        batch by batch instead of being collected first; memory holds only the different rows.
    Nulls: equal to each other. Types: columns of two types are compared, and come out, in a type that holds both,
        exactly or with a ValueError; dictionaries come out decoded. Of strings that a collation takes as equal, any
        one comes out.
    Cost: that of quern.aggregate over the rows of both tables. Errors: ValueError, MemoryError above the limit,
        OSError of files, RuntimeError.
    """
    run = Run(threads, memory_limit, engine, params, progress, spill_dir, spill_bytes)
    return _combined("union", left, right, by, run, engine, (left_where, right_where), stream)


def intersect(
    left: object,
    right: object,
    by: Names | None = None,
    all: bool = False,
    *,
    left_where: str | None = None,
    right_where: str | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: SpillDir = None,
    spill_bytes: int | str | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
    progress: Progress = None,
) -> Result:
    """Rows that are in left and in right, in no particular order.

    all: False: each row comes out once; True: as often as the table that has it less often.
    Arguments, nulls, types, cost and errors besides: as of quern.union.
    """
    run = Run(threads, memory_limit, engine, params, progress, spill_dir, spill_bytes)
    kind = "intersect_all" if all else "intersect"
    return _combined(kind, left, right, by, run, engine, (left_where, right_where), stream)


def except_(
    left: object,
    right: object,
    by: Names | None = None,
    all: bool = False,
    *,
    left_where: str | None = None,
    right_where: str | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: SpillDir = None,
    spill_bytes: int | str | None = None,
    engine: str = "auto",
    params: Params = None,
    stream: bool = False,
    progress: Progress = None,
) -> Result:
    """Rows that are in left and not in right, in no particular order.

    all: False: each row comes out once; True: as many times more often as left has it than right.
    Arguments, nulls, types, cost and errors besides: as of quern.union.
    """
    run = Run(threads, memory_limit, engine, params, progress, spill_dir, spill_bytes)
    kind = "except_all" if all else "except"
    return _combined(kind, left, right, by, run, engine, (left_where, right_where), stream)
