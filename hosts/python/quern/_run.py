# SPDX-License-Identifier: Apache-2.0
"""The run of a kernel, which the functions share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from quern import _quern
from quern._arguments import LEAST_SPILL_LIMIT, Params, SpillDir, bytes_of, params_text, spill_dir_of, threads_of
from quern._inputs import Input
from quern._kernel import kernel_stats
from quern._progress import Progress, check_progress, progress_bar
from quern._results import Reader, Result

_Made = TypeVar("_Made")


class Run:
    """The options of one call, checked before anything is read."""

    def __init__(
        self,
        threads: int | None,
        memory_limit: int | str | None,
        engine: str,
        params: Params = None,
        progress: Progress = None,
        spill_dir: SpillDir = None,
        spill_bytes: int | str | None = None,
    ) -> None:
        if engine not in ("auto", "jit", "generic"):
            raise ValueError(_quern.unknown_word("engine", str(engine), ["auto", "jit", "generic"]))
        self.threads = threads_of(threads)
        limit, folder = bytes_of(memory_limit), spill_dir_of(spill_dir)
        spills = limit >= LEAST_SPILL_LIMIT and folder != "off"
        self.options = _quern.Options(self.threads, limit, spills, folder, bytes_of(spill_bytes, "spill_bytes"))
        self.engine = engine
        self.params = params_text(params)
        self.progress = check_progress(progress)
        self._begin = time.perf_counter()

    def compile(self, spec: str) -> _quern.Kernel:
        return _quern.Kernel(spec, self.engine, self.params, False)

    def stats(self, kernel: _quern.Kernel | None) -> dict[str, Any]:
        stats: dict[str, Any] = {"threads": self.threads}
        if kernel is not None:
            stats = {"spec": kernel.text("spec"), **kernel_stats(kernel), **stats}
        return stats

    def watched(self, label: str, inputs: Iterable[Input], call: Callable[[], _Made]) -> _Made:
        """call(), with the requested `progress`: the rows that were taken of all inputs so far."""
        inputs = list(inputs)
        known = not any(data.is_stream for data in inputs)
        bar = progress_bar(self.progress, sum(data.source.num_rows for data in inputs) if known else None, label)
        if bar is None:
            return call()

        def tick() -> None:
            bar.update(sum(data.source.rows_taken for data in inputs))

        with bar:
            made: _Made = _quern.with_ticks(tick, call)
            tick()
        return made

    def result(self, kernel: _quern.Kernel | None, run: Callable[[], _quern.Table]) -> Result:
        begin = time.perf_counter()
        table = run()
        stats = self.stats(kernel)
        stats["run_ms"] = round((time.perf_counter() - begin) * 1e3, 3)
        stats["total_ms"] = round((time.perf_counter() - self._begin) * 1e3, 3)
        stats["num_rows"] = table.num_rows
        return Result(table, stats)

    def reader(self, kernel: _quern.Kernel | None, reader: _quern.Reader) -> Reader:
        return Reader(reader, self.stats(kernel))
