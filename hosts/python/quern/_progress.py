# SPDX-License-Identifier: Apache-2.0
"""The progress of a long call, as one line that is redrawn in place, or as calls of a function of the caller.

    sort: 12,582,912 rows, 3.1 s                     a stream: the number of rows is unknown
    [########............]  40%  sort: 400 of 1,000  a known total

The line is drawn only on a terminal, never into a file, ten times a second at most, and is wiped at the end.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO, Union

Progress = Union[bool, Callable[[float, Union[float, None]], object], None]

_SECONDS_BETWEEN = 0.1
_CELLS = 20


def _is_terminal(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # not a file, or a closed one
        return False


class ProgressBar:
    """One line on a terminal, or calls of `function(done, total)`. Use it in a `with`, which wipes the line; so does
    close().

    total: the final value of `done`, None if unknown. label: what is done. file: where to draw, None: sys.stderr.
    function: called instead, as often as update is; update passes its exceptions on.
    """

    def __init__(
        self,
        total: float | None,
        label: str,
        file: TextIO | None = None,
        function: Callable[[float, float | None], object] | None = None,
    ) -> None:
        self._total = total
        self._label = label
        self._file = sys.stderr if file is None else file
        self._function = function
        self._draws = function is None and _is_terminal(self._file)
        self._width = 0  # of the line that is on the terminal
        self._begin = time.monotonic()
        self._next = 0.0

    def update(self, done: float, text: str = "") -> None:
        """`text` follows the number: "hash join, 4 lanes"."""
        if self._function is not None:
            self._function(done, self._total)
            return
        if not self._draws or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN
        self._draw(self._line(done, text))

    def close(self) -> None:
        if self._width:
            self._draw("")
        self._draws = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _line(self, done: float, text: str) -> str:
        seconds = f"{time.monotonic() - self._begin:.1f} s"
        tail = f", {text}" if text else ""
        if not self._total:
            return f"{self._label}: {done:,.0f} rows{tail}, {seconds}"
        share = min(max(done / self._total, 0.0), 1.0)
        cells = "#" * int(share * _CELLS)
        return f"[{cells:.<{_CELLS}}] {share:4.0%}  {self._label}: {done:,.0f} of {self._total:,.0f}{tail}, {seconds}"

    def _draw(self, line: str) -> None:
        try:
            columns = os.get_terminal_size(self._file.fileno()).columns
        except (OSError, ValueError, AttributeError):
            columns = 0
        width = columns - 1 if columns > 1 else 79  # 0: a terminal that does not tell
        line = line[:width]
        try:
            self._file.write("\r" + line.ljust(self._width) + ("\r" if not line else ""))
            self._file.flush()
        except (OSError, ValueError):  # the terminal went away: the call goes on
            self._draws = False
        self._width = len(line)


def check_progress(progress: Progress) -> Progress:
    """*Errors*: TypeError for anything else."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            f"bad type of progress: {type(progress).__name__}; accepted: True, False, or a function of done and total"
        )
    return progress


def progress_bar(progress: Progress, total: float | None, label: str) -> ProgressBar | None:
    """The meaning of an argument `progress=`: True, a function, or None and False for nothing. *Errors*: TypeError."""
    progress = check_progress(progress)
    if callable(progress):
        return ProgressBar(total, label, function=progress)
    return ProgressBar(total, label) if progress else None
