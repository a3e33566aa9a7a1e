# SPDX-License-Identifier: Apache-2.0
"""Kernels for inspection: quern.compile."""

from __future__ import annotations

from typing import Any

from quern import _quern
from quern._arguments import Params, params_text, text_of
from quern._html import code, fold, page, table

_NUMBERS = {"compile_ms": float, "code_bytes": int}


def kernel_stats(kernel: _quern.Kernel) -> dict[str, Any]:
    """engine, cache, compile_ms, code_bytes; and warning, if there is one."""
    stats: dict[str, Any] = {}
    for name in ("engine", "cache", "compile_ms", "code_bytes", "warning"):
        text = kernel.text(name)
        if name != "warning" or text:
            stats[name] = _NUMBERS.get(name, str)(text)
    return stats


class Kernel:
    """A kernel for one spec, and each stage of its code generation. Threads: any.

    Cost: ir, opt and asm generate the code anew, some 10 ms each; the rest is stored.
    """

    __slots__ = ("_kernel", "_machine")

    def __init__(self, kernel: _quern.Kernel, machine: str) -> None:
        self._kernel = kernel
        self._machine = machine

    @property
    def spec(self) -> str:
        """The spec in its canonical form: equal specs are equal texts."""
        return self._kernel.text("spec")

    @property
    def plan(self) -> str:
        """The plan, a line for each parameter (`quern dump plan`)."""
        return self._kernel.text("plan")

    @property
    def layout(self) -> str:
        """The layout of a tuple, or the operations of a filter."""
        return self._kernel.text("layout")

    @property
    def ir(self) -> str:
        """LLVM IR as instantiated from templates and the spec."""
        return self.dump("ir")

    @property
    def opt(self) -> str:
        """The same after the optimiser's passes."""
        return self.dump("opt")

    @property
    def asm(self) -> str:
        """Assembly for this machine, or for the one that was passed to quern.compile."""
        return self.dump("asm")

    @property
    def stats(self) -> dict[str, Any]:
        """engine ("jit", "generic"), cache ("miss", "memory", ..), compile_ms, code_bytes; warning if it had to be
        generic.
        """
        return kernel_stats(self._kernel)

    def dump(self, stage: str) -> str:
        """spec, plan, layout, template, ir, opt, asm, obj or remarks: identical from run to run, byte for byte."""
        return self._kernel.dump(stage, self._machine)

    def __repr__(self) -> str:
        stats = self.stats
        return f"<quern.Kernel: {self.spec}; {stats['engine']}, {stats['code_bytes']:,} bytes>"

    def _repr_html_(self) -> str:
        """For notebooks: the spec, the statistics, and the plan and the code in folds."""
        stats = self.stats
        folds = (("plan", self.plan), ("layout", self.layout), ("optimised IR", self.opt), ("assembly", self.asm))
        return page(
            [code(self.spec), table(list(stats), [stats.values()]), *(fold(name, text) for name, text in folds)]
        )


def compile(spec: str, *, engine: str = "auto", params: Params = None, machine: str = "native") -> Kernel:
    """Makes the kernel for a spec, or finds it in the process's cache.

    spec: as `quern join --explain` prints it, "join.inner keys=i64 build=f64"; docs/spec.md has the grammar.
    engine: "auto" (compiled now if possible), "jit" (compiled, or an error), "generic" (never compiled).
    params: parameters of the plan, {"layout": "dense"} or "layout=dense".
    machine: the machine of the dumped code, "native" or a CPU's name, "znver4", "aarch64:neoverse-n1"; the kernel that
        runs is always made for this one.
    Cost: some 10 ms once, 1 us afterwards. Errors: ValueError that names the wrong part of the spec and what is
        accepted.
    """
    return Kernel(
        _quern.Kernel(text_of("spec", spec), text_of("engine", engine), params_text(params), True),
        text_of("machine", machine),
    )
