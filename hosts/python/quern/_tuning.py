# SPDX-License-Identifier: Apache-2.0
"""Tuning to this machine: quern.tune."""

from __future__ import annotations

import os
from typing import Literal

from quern import _quern
from quern._arguments import text_of, threads_of
from quern._kernel import Kernel
from quern._machine import seconds_of, size_of, ticker
from quern._profile import Path, Profile
from quern._progress import Progress, progress_bar

_EFFORTS = ["estimate", "measure", "patient"]
_MOST_SECONDS = 24 * 3600


def _beginning(profile: Profile | Path | None, write: bool) -> tuple[Profile | None, str | None]:
    """The profile to start from, and the file to write."""
    if isinstance(profile, Profile):
        return profile, None
    if profile is not None:
        path = os.fspath(profile)
    elif not _quern.profile_places():  # QUERN_PROFILE=off
        return None, None
    else:
        path = _quern.profile_home()
    start = Profile.read(path) if os.path.exists(path) else None
    return start, path if write else None


def tune(
    *specs: str | Kernel,
    effort: Literal["estimate", "measure", "patient"] = "measure",
    budget: float = 60.0,
    threads: int | None = None,
    max_size: int | str | None = None,
    profile: Profile | Path | None = None,
    write: bool = True,
    progress: Progress = True,
) -> Profile:
    """Measures which prefetch settings are best on this machine, with real joins, aggregations and sorts, and keeps
    them for later kernels.

    specs: tune the loops of these kernels, "join.inner keys=i64" or results of quern.compile; none: every loop.
    effort: "estimate": measures and writes nothing, so schedules() shows the estimates; "measure": the table sizes at
        which something changes; "patient": all sizes from 32 KiB, and more settings.
    budget: seconds that it may take, 0.1 to 86400.
    threads: settings that win with one thread are tried with this many; None: 2, if there are that many.
    max_size: the largest table, "32K" to "2G"; None: 2 GiB, or half of the free memory if that is less.
    profile: None: this machine's own profile, which is the starting point, is written, and is used by this process's
        kernels from then on; with QUERN_PROFILE=off none is. A path: that file is the starting point and is written. A
        Profile: the starting point; nothing is written.
    write: False: nothing is written.
    progress: True: a bar on stderr, if that is a terminal; a function of seconds passed and `budget`; False or None:
        nothing.
    Threads: one tuning at a time in a process; the GIL is released; nothing else should run meanwhile. Ctrl-C ends the
        tuning after the current cell; the result so far is returned and kept (see `stopped`). A second Ctrl-C is
        raised, and nothing is kept.
    Errors: ValueError for a bad argument or spec, and for a starting file that is not a profile; RuntimeError for a
        file that cannot be written, and during another tuning.
    """
    if effort not in _EFFORTS:
        raise ValueError(_quern.unknown_word("effort", str(effort), _EFFORTS))
    budget = seconds_of("budget", budget, 0.1, _MOST_SECONDS)
    wanted = threads_of(threads) if threads is not None else min(len(os.sched_getaffinity(0)), 2)
    size = size_of(max_size)
    texts = [spec.spec if isinstance(spec, Kernel) else text_of("specs", spec) for spec in specs]
    start, path = _beginning(profile, write and effort != "estimate")
    bar = progress_bar(progress, budget, "tuning")
    try:
        native = _quern.tune(
            texts, effort, budget, wanted, size, None if start is None else start._profile, ticker(bar, budget)
        )
    finally:
        if bar is not None:
            bar.close()
    if path is None:
        return Profile(native)
    native = native.write(path)
    if profile is None:
        _quern.use_profile(native)
    return Profile(native)
