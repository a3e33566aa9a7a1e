# SPDX-License-Identifier: Apache-2.0
"""The speed of this machine's memory, measured: quern.machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from quern import _quern
from quern._arguments import bytes_of, wrong
from quern._progress import Progress, ProgressBar, progress_bar

_LEAST_BYTES, _MOST_BYTES = 1 << 15, 1 << 31


def size_of(max_size: int | str | None) -> int:
    """The largest table; 0: as large as memory allows."""
    size = bytes_of(max_size, "max_size")
    if max_size is not None and not _LEAST_BYTES <= size <= _MOST_BYTES:
        raise wrong("bad max_size", max_size, "32K to 2G")
    return size


def seconds_of(what: str, value: float, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise wrong(f"bad {what}", value, f"seconds from {least:g} to {most:g}")
    return float(value)


def size_text(size: int) -> str:
    """"32 KiB", "96 MiB", "1.5 GiB"; "?" for 0."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes" if size else "?"


def ticker(bar: ProgressBar | None, seconds: float) -> Callable[[str], None] | None:
    """Advances a bar by the time that has passed, up to `seconds`."""
    if bar is None:
        return None
    begin = time.monotonic()

    def tick(doing: str) -> None:
        bar.update(min(time.monotonic() - begin, seconds), doing)

    return tick


class MemoryFact(NamedTuple):
    """Random cache lines of a table of one size. Times are nanoseconds."""

    bytes: int
    huge_pages: bool
    latency_ns: float  # of a load that the next one waits for
    read_ns: float  # a line, with the best number of misses under way: the floor
    read_misses: int  # that number
    write_ns: float  # the same of lines that are written
    write_misses: int


class Machine:
    """Measured facts of a machine. Sizes are bytes, times nanoseconds, streams GB/s. Immutable.

    str(machine) is the table of `quern machine`; machine.json() is its JSON.
    """

    __slots__ = ("_facts", "_json", "_table")

    def __init__(self, json_text: str, table: str) -> None:
        self._json = json_text
        self._table = table
        self._facts: dict[str, Any] = json.loads(json_text)

    @property
    def signature(self) -> dict[str, str | int]:
        """The identity of the machine: cpu_name, cpu, microcode, hypervisor, cores, l2_bytes and l3_bytes as reported,
        huge_pages.
        """
        return dict(self._facts["signature"])

    @property
    def features(self) -> list[str]:
        """Features of the CPU, as LLVM names them: "avx2"; empty for the machine of a profile."""
        features: str = self._facts["features"]
        return features.split()

    @property
    def memory(self) -> list[MemoryFact]:
        """By size, with and without huge pages."""
        return [MemoryFact(**fact) for fact in self._facts["memory"]]

    @property
    def caches(self) -> dict[str, int]:
        """l1_bytes, l2_bytes, l3_bytes: where latency begins to rise; 0 if no rise was seen."""
        return dict(self._facts["caches"])

    @property
    def sequential(self) -> dict[str, float]:
        """read_gb_s, write_gb_s, copy_gb_s."""
        return dict(self._facts["sequential"])

    @property
    def stores(self) -> dict[str, float | bool]:
        """GB/s of zeros over zeros and their controls, and zero_stores_are_cheaper."""
        return dict(self._facts["stores"])

    @property
    def seconds(self) -> float:
        """The time that measuring took."""
        return float(self._facts["measuring"]["seconds"])

    def dict(self) -> dict[str, Any]:
        """Everything, as in json()."""
        facts: dict[str, Any] = json.loads(self._json)
        return facts

    def json(self) -> str:
        """One JSON object on one line, `quern machine --json`."""
        return self._json

    def __str__(self) -> str:
        return self._table

    def __repr__(self) -> str:
        caches = ", ".join(f"L{level} {size_text(self.caches[f'l{level}_bytes'])}" for level in (1, 2, 3))
        name = self.signature["cpu_name"] or self.signature["cpu"]
        largest = max((fact.bytes for fact in self.memory), default=0)
        slowest = max((fact.latency_ns for fact in self.memory if fact.bytes == largest), default=0.0)
        return f"<quern.Machine: {name}; {caches}; a random line of {size_text(largest)} in {slowest:.0f} ns>"


def machine(seconds: float = 3.0, *, max_size: int | str | None = None, progress: Progress = True) -> Machine:
    """Measures this machine's memory: latency and throughput of random lines by table size, caches, streams, stores of
    zeros.

    seconds: about how long it may take, 0.1 to 600. max_size: the largest table, "32K" to "2G"; None: 2 GiB, or half of
        the free memory if that is less.
    progress: True: a bar on stderr, if that is a terminal; a function of seconds passed and `seconds`; False or None:
        nothing.
    Threads: the GIL is released; nothing else should run meanwhile. Errors: ValueError for a bad argument, MemoryError
        if there is no memory; Ctrl-C ends it.
    """
    seconds = seconds_of("seconds", seconds, 0.1, 600)
    size = size_of(max_size)
    bar = progress_bar(progress, seconds, "measuring")
    try:
        return Machine(*_quern.measure_machine(seconds, size, ticker(bar, seconds)))
    finally:
        if bar is not None:
            bar.close()
