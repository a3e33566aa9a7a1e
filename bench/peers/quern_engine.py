# SPDX-License-Identifier: Apache-2.0
"""Quern through libquern.so, as a host without C would call it: test/differential/quern_abi.py has the ABI's structs
and handles, and quern_join.py, quern_aggregate.py, quern_sort.py, quern_filter.py and quern_set.py use them."""
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "differential"))

import quern_abi  # noqa: E402
from quern_aggregate import AggregateRuns  # noqa: E402
from quern_filter import FilterRuns  # noqa: E402
from quern_join import JoinRuns  # noqa: E402
from quern_set import SetRuns  # noqa: E402
from quern_sort import SortRuns  # noqa: E402


class QuernEngine:
    name = "quern"

    def __init__(self, threads, library, engine="auto", params=None, raw=False):
        self._library, self._engine, self._params = quern_abi.Library(library), engine, params
        self._runs = {
            "join": JoinRuns(self._compile, threads, raw),
            "aggregate": AggregateRuns(self._compile, threads),
            "sort": SortRuns(self._compile, threads),
            "filter": FilterRuns(self._compile, threads),
            "set": SetRuns(self._compile, threads),
        }
        self._current = None  # of the case that is loaded
        # A process's first compilation also starts LLVM; that is not a kernel's price. Parameters belong to an
        # operator: none here.
        self._library.compile("join.inner keys=u8", engine).close()

    def _compile(self, spec):
        return self._library.compile(spec, self._engine, self._params)

    def version(self):
        return self._library.function("quern_version")().decode()

    def variants(self, case):
        return self._runs[case.operator].variants()

    def load(self, case, tables):
        self._current = self._runs[case.operator]
        self._current.load(case, tables)

    def cold_compile_ms(self, case):
        """Of the kernel, with nothing of it in the process's cache; afterwards it is there."""
        self._library.clear_cache()
        start = time.perf_counter()
        with self._compile(self._current.spec(case)):
            return (time.perf_counter() - start) * 1e3

    @property
    def layout(self):
        return self._current.layout

    def run(self, case, variant):
        return self._current.run(case, variant)

    def table(self, result):
        return self._current.table(result)

    def drop(self):
        if self._current:
            self._current.drop()
