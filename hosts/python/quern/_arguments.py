# SPDX-License-Identifier: Apache-2.0
"""Arguments that the functions share: names in their several forms, threads, limits, plan parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar, Union

from quern import _quern

Names = Union[str, Iterable[str]]
Params = Union[str, Mapping[str, object], None]
SpillDir = Union[str, "os.PathLike[str]", None]
MAX_THREADS = 1024
LEAST_SPILL_LIMIT = 16 << 20  # bytes of a memory limit from which on rows are spilled
_Item = TypeVar("_Item")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def wrong(what: str, value: object, accepted: str) -> ValueError:
    text = str(value).replace("\n", "\\n")
    return ValueError(f"{what}: {text}; accepted: {accepted}")


def text_of(what: str, value: object) -> str:
    """A text in a list's grammar; TypeError for anything else, ValueError for a text that UTF-8 cannot encode."""
    if not isinstance(value, str):
        raise TypeError(f"bad type of {what}: {type(value).__name__}; accepted: a text, or a list of texts")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(f"text of {what} that is no Unicode", ascii(value[error.start]), "no lone surrogates") from None
    return value


def items_of(what: str, values: Iterable[_Item]) -> Iterator[_Item]:
    """The items of a list; TypeError for anything else."""
    try:
        return iter(values)
    except TypeError:
        raise TypeError(f"bad type of {what}: {type(values).__name__}; accepted: a text, or a list of texts") from None


def plain_names(what: str, names: Names) -> list[str]:
    """Columns of one input: "a,b" as on the command line, or ["a", "b"], where every text is a whole name."""
    if isinstance(names, str):
        parsed = _quern.parse_names(what, text_of(what, names))
        return [f"{side}.{name}" if whole is None else whole for whole, side, name in parsed]
    return [text_of(what, name) for name in items_of(what, names)]


def threads_of(threads: int | None) -> int:
    """None: QUERN_THREADS, else as many as this process may run on."""
    if threads is None:
        variable = os.environ.get("QUERN_THREADS", "")
        if not variable:
            return min(len(os.sched_getaffinity(0)), MAX_THREADS)
        if not variable.isdecimal() or not 1 <= int(variable) <= MAX_THREADS:
            raise wrong("bad value of QUERN_THREADS", variable, f"1 to {MAX_THREADS}")
        return int(variable)
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MAX_THREADS:
        raise wrong("bad number of threads", threads, f"1 to {MAX_THREADS}")
    return threads


def bytes_of(limit: int | str | None, what: str = "memory_limit") -> int:
    """None: 0, which is no limit. "512M", "2G": in powers of 1024."""
    if limit is None:
        return 0
    if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit < 1 << 63:
        return limit
    match = re.fullmatch(r"(\d+)([kmgtKMGT]?)", limit) if isinstance(limit, str) else None
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if not 0 < size < 1 << 63:
        raise wrong(f"bad {what}", limit, "bytes, or a text as 512M or 2G")
    return size


def spill_dir_of(folder: SpillDir) -> str:
    """A folder; "" for that of QUERN_SPILL_DIR, or "off"."""
    if folder is None:
        return "off" if os.environ.get("QUERN_SPILL_DIR") == "off" else ""
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"bad type of spill_dir: {type(folder).__name__}; accepted: a path, or \"off\"")
    path = os.fspath(folder)
    if path != "off" and not os.path.isdir(path):
        raise wrong("no folder for rows that are spilled", path, "a folder that exists, or \"off\"")
    return path


def params_text(params: Params) -> str:
    """{"layout": "dense"} or "layout=dense prefetch=off"."""
    if params is None:
        return ""
    if isinstance(params, str):
        return text_of("params", params)
    if not isinstance(params, Mapping):
        raise TypeError(
            f"bad type of params: {type(params).__name__}; accepted: a dictionary, or a text as layout=dense"
        )
    return text_of("params", " ".join(f"{name}={value}" for name, value in params.items()))
