# SPDX-License-Identifier: Apache-2.0
"""Set operations by Quern through its C ABI. The input is vectors that point into the arrays, in batches that are made
beforehand, first of the left side and then of the right side. The result is all rows, which the library makes batch by
batch as Arrow arrays that own their memory. Timed: making the operation, appending, finalising, all results, and
destroying it. 64 Ki and 1 Mi rows in a batch are tried, for input and for result.

With more than one thread, each takes the next batch for an input of its own, all finalise together, and each reads
rows.
"""
import ctypes
import itertools

import pyarrow as pa
import quern_abi
from quern_abi import LEFT, RIGHT, ROWS
from quern_threads import in_threads

_TYPES = {"i64": pa.int64(), "utf8": pa.string()}
_PORTS = {"lhs": LEFT, "rhs": RIGHT}


class SetRuns:
    """The tables of one case, and operations on them. `compile`: a spec to a kernel."""

    _INPUT_ROWS = {"input65536": 1 << 16, "input1048576": 1 << 20}
    _RESULT_ROWS = {"result65536": 1 << 16, "result1048576": 1 << 20}

    def __init__(self, compile, threads):
        self._compile, self._threads = compile, threads
        self._batches, self._keep, self._schema = {}, [], None
        self.layout = None  # of the last groups that were made

    def variants(self):
        return tuple(",".join(names) for names in itertools.product(self._INPUT_ROWS, self._RESULT_ROWS))

    def load(self, case, tables):
        self._schema = pa.schema([(f"k{i}", _TYPES[key]) for i, key in enumerate(case.keys)])
        for name, rows in self._INPUT_ROWS.items():
            self._batches[name] = {side: [self._input(case, batch) for batch in tables[side].to_batches(rows)]
                                   for side in _PORTS}

    def _input(self, case, batch):
        """A quern_batch; what it points to is kept."""
        keys = [batch.column(f"k{i}") for i in range(case.num_keys)]
        return quern_abi.raw_batch(keys, [], None, batch.num_rows, 0, self._keep)

    def drop(self):
        self._batches, self._keep = {}, []

    def spec(self, case):
        return case.spec()

    def run(self, case, variant):
        """A list of Arrow arrays."""
        input_rows, result_rows = variant.split(",")
        with self._compile(case.spec()) as kernel, kernel.job() as operation:
            for side, batches in self._batches[input_rows].items():
                in_threads(self._threads, lambda shared, port=_PORTS[side]: operation.append(port, shared), batches)
            in_threads(self._threads, lambda _: operation.finalise())
            self.layout = operation.layout()
            lists = in_threads(self._threads, lambda _: self._read(operation, self._RESULT_ROWS[result_rows]))
            return list(itertools.chain(*lists))

    def _read(self, operation, batch_rows):
        with operation.output(ROWS, batch_rows) as rows:
            return [array for _, array in rows.results(as_arrow=True)]

    def table(self, result):
        batches = [pa.RecordBatch._import_from_c(ctypes.addressof(array), self._schema) for array in result]
        return pa.Table.from_batches(batches, self._schema)
