# SPDX-License-Identifier: Apache-2.0
"""Filters by Quern through its C ABI. The input is vectors that point into the arrays, in batches that are made
beforehand; the library counts the rows of each batch that pass, and the counts are added up. Timed: making the filter,
all batches, and destroying the filter. 64 Ki and 1 Mi rows in a batch are tried.

With more than one thread, all share the filter, and each takes the next batch.
"""
import quern_abi
from columns import row_table
from quern_threads import in_threads


class FilterRuns:
    """The table of one case, and filters of it. `compile`: a spec to a kernel."""

    _VARIANTS = {"batch65536": 1 << 16, "batch1048576": 1 << 20}

    def __init__(self, compile, threads):
        self._compile, self._threads = compile, threads
        self._batches, self._keep = {}, []
        self.layout = None  # a filter has no table

    def variants(self):
        return tuple(self._VARIANTS)

    def load(self, case, tables):
        for name, rows in self._VARIANTS.items():
            self._batches[name] = [self._input(case, batch) for batch in tables["facts"].to_batches(max_chunksize=rows)]

    def _input(self, case, batch):
        """A quern_batch; what it points to is kept."""
        columns = [batch.column(name) for name in case.columns]
        return quern_abi.raw_batch(columns, [], None, batch.num_rows, 0, self._keep)

    def drop(self):
        self._batches, self._keep = {}, []

    def spec(self, case):
        return case.spec()

    def run(self, case, variant):
        """How many rows pass."""
        with self._compile(case.spec()) as kernel, kernel.job() as rows:
            return sum(in_threads(self._threads, lambda batches: sum(map(rows.count, batches)), self._batches[variant]))

    def table(self, result):
        return row_table([result])
