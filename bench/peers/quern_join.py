# SPDX-License-Identifier: Apache-2.0
"""Joins by Quern through its C ABI. Build and probe side are Arrow record batches (or, with `raw`, pointers into the
same buffers, which the library does not check) that point into the arrays. Results are read as raw columns, and each
extra column is summed by numpy while its batch is still in the cache; that counts as Quern's time, and so do making the
join and destroying it. Only the slicing into batches is done before.

The cost per batch is Python's: some 10 us. It vanishes in batches of 1 Mi rows; batches of 64 Ki rows are what a host
would rather use: both are tried. With more than one thread, each takes the next batch for an input or output of its
own, and all finalise together.
"""
import ctypes

import numpy as np
import pyarrow as pa
import quern_abi
from columns import row_table
from quern_abi import BUILD, PROBE
from quern_threads import in_threads

BUILD_BATCH_ROWS = 1 << 16
RESULT_BATCH_ROWS = 1 << 16  # four columns of a result are 2 MiB, which stay in the cache until they are summed
_TYPES = {pa.int32(): "i32", pa.int64(): "i64", pa.string(): "utf8"}


class JoinRuns:
    """The tables of one case, and joins of them. `compile`: a spec to a kernel."""

    _VARIANTS = {"batch65536": 1 << 16, "batch1048576": 1 << 20}

    def __init__(self, compile, threads, raw):
        self._compile, self._threads, self._raw = compile, threads, raw
        self._schemas, self._build, self._probe = None, None, {}
        self.layout = None  # of the last table that was built

    def variants(self):
        return tuple(self._VARIANTS)

    def load(self, _case, tables):
        build, probe = tables["build"], tables["probe"]
        self._schemas = build.schema, probe.schema
        self._build = self._batches(build, BUILD_BATCH_ROWS)
        self._probe = {variant: self._batches(probe, rows) for variant, rows in self._VARIANTS.items()}

    def drop(self):
        self._build, self._probe = None, {}

    def spec(self, case):
        keys = ",".join(_TYPES[self._schemas[0].field(f"k{i}").type] for i in range(case.num_keys))
        return f"join.inner keys={keys}" + (" build=" + ",".join(["i64"] * case.num_extra) if case.num_extra else "")

    def run(self, case, variant):
        with self._compile(self.spec(case)) as kernel, kernel.job() as join:
            self._build_table(case, join)
            self.layout = join.layout()
            return self._probe_all(case, join, self._probe[variant])

    def table(self, result):
        return row_table(result)

    def _batches(self, table, batch_rows):
        """What the library takes: record batches, or (quern_batch, what it points to)."""
        batches = table.to_batches(max_chunksize=batch_rows)
        return [_raw_batch(batch) for batch in batches] if self._raw else batches

    def _build_table(self, case, join):
        keys, payload = list(range(case.num_keys)), list(range(case.num_keys, case.num_keys + case.num_extra))
        if not self._raw:
            join.bind_arrow(BUILD, self._schemas[0], keys, payload)
            join.bind_arrow(PROBE, self._schemas[1], keys, [])
        in_threads(self._threads, lambda batches: join.append(BUILD, map(self._input, batches)), self._build)
        in_threads(self._threads, lambda _: join.finalise())

    def _input(self, batch):
        return batch[0] if self._raw else batch

    def _probe_all(self, case, join, batches):
        def probe(batches):
            total = [0] * max(case.num_extra, 1)
            with join.output(PROBE, RESULT_BATCH_ROWS if case.num_extra else max(self._VARIANTS.values())) as output:
                for batch in batches:
                    self._probe_batch(output, batch, total)
            return total

        return tuple(sum(totals) for totals in zip(*in_threads(self._threads, probe, batches)))

    def _probe_batch(self, output, batch, total):
        output.push(self._input(batch))
        for result, _ in output.results():
            if result.num_columns == 0:
                total[0] += result.num_rows
            elif result.num_rows:
                for i in range(result.num_columns):
                    total[i] += _sum_int64(result.columns[i].values, result.num_rows)


def _sum_int64(address, num_rows):
    return int(np.add.reduce(np.frombuffer((ctypes.c_int64 * num_rows).from_address(address), dtype=np.int64)))


def _raw_batch(batch):
    keep, columns = [], {name: batch.column(name) for name in batch.schema.names}
    sides = [[column for name, column in columns.items() if name[0] == kind] for kind in "kx"]
    return quern_abi.raw_batch(*sides, None, batch.num_rows, 0, keep), keep
