# SPDX-License-Identifier: Apache-2.0
"""A program that uses the package, for type checkers: mypy reads it (types.test), nothing runs it."""

from collections.abc import Callable
from typing import Any, Union, assert_type

import quern


def results(t: object, stream: bool) -> None:
    assert_type(quern.join(t, t, on="a = b"), quern.Result)
    assert_type(quern.join(t, t, {"a": "b"}, "semi", select=["a"], stream=True), quern.Reader)
    assert_type(quern.join(t, t, ["a", ("b", "c")], residual=[("a", "<", "c")], stream=stream),
                Union[quern.Result, quern.Reader])
    assert_type(quern.filter(t, "a > 5", ["a"]), quern.Result)
    assert_type(quern.filter(t, "a > 5", stream=True), quern.Reader)
    assert_type(quern.map(t, {"b": "a + 1"}, where="a > 5"), quern.Result)
    assert_type(quern.map(t, "a + 1 as b", stream=True), quern.Reader)
    assert_type(quern.aggregate(t, by="a", aggs={"n": "count(*)", "s": ("sum", "odd, name")}, threads=2), quern.Result)
    assert_type(quern.except_(t, t, ["a", "b"], all=True), quern.Result)
    assert_type(quern.aggregate(t, by="a", memory_limit="64M", spill_dir="/var/tmp", reader=True), quern.Reader)
    assert_type(quern.sort(t, "a", memory_limit="64M", spill_bytes="20G", reader=True), quern.Reader)
    assert_type(quern.sort(t, [("odd, name", "desc"), "b"], 10, window={"place": "rank"}, memory_limit="512M"),
                quern.Result)


def parts(t: object) -> None:
    result = quern.sort(t, "a", progress=lambda done, total: print(done, total))
    assert_type(len(result), int)
    assert_type(result.column_names, list[str])
    assert_type(result.stats, dict[str, Any])
    for batch in quern.filter(t, "a", stream=True):
        assert_type(batch, quern.Result)
    assert_type(quern.compile("sort keys=i64:out", params={"layout": "dense"}), quern.Kernel)
    assert_type(quern.compile("sort keys=i64:out").asm, str)
    assert_type(quern.version, str)


def tuning() -> None:
    profile = quern.tune("join.inner keys=i64", quern.compile("sort keys=i64:out"), effort="patient", budget=5,
                         max_size="1G")
    assert_type(profile, quern.Profile)
    assert_type(profile.entries[0].gain, float)
    assert_type(quern.profile(), Union[quern.Profile, None])
    quern.use_profile("off")
    quern.use_profile(profile)
    assert_type(quern.machine(1, progress=False).memory, list[quern.MemoryFact])
    quern.plot_profile(profile, threads=2)


# What is wrong is found: these lines are errors, and mypy tells when one is none.
wrong: list[Callable[[], object]] = [
    lambda: quern.join(1, 2),  # type: ignore[call-overload]
    lambda: quern.join(1, 2, on="a", thread=2),  # type: ignore[call-overload]
    lambda: quern.sort(1, by="a", limit="3"),  # type: ignore[call-overload]
    lambda: quern.filter(1, "a", memory_limit="1M"),  # type: ignore[call-overload]
    lambda: quern.map(1, ["a"]),  # type: ignore[call-overload]
    lambda: quern.aggregate(1, by=5),  # type: ignore[call-overload]
    lambda: quern.sort(1, "a", progress="yes"),  # type: ignore[call-overload]
    lambda: quern.tune(effort="quick"),  # type: ignore[arg-type]
]
