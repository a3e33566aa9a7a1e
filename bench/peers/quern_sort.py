# SPDX-License-Identifier: Apache-2.0
"""Sorts by Quern through its C ABI. The input is vectors that point into the arrays, in batches that are made
beforehand; bytes of texts stay where they are. The result is all rows in order as Arrow arrays that own their memory,
which the library makes batch by batch. Timed: making the sort, appending, finalising, all results, and destroying the
sort. 64 Ki and 1 Mi rows in a batch are tried, for input and for result.

With more than one thread, each takes the next batch for an input of its own, all finalise together, and each reads
rows; the results are then put into order.
"""
import ctypes
import itertools
import operator

import pyarrow as pa
import quern_abi
from quern_abi import ROWS
from quern_threads import in_threads

_TYPES = {"i32": pa.int32(), "i64": pa.int64(), "f64": pa.float64(), "str": pa.string(), "str16": pa.string(),
          "str_cased": pa.string(), "str16_cased": pa.string()}


class SortRuns:
    """The table of one case, and sorts of it. `compile`: a spec to a kernel."""

    _INPUT_ROWS = {"input65536": 1 << 16, "input1048576": 1 << 20}
    _RESULT_ROWS = {"result65536": 1 << 16, "result1048576": 1 << 20}

    def __init__(self, compile, threads):
        self._compile, self._threads = compile, threads
        self._batches, self._keep, self._schema = {}, [], None
        self.layout = None  # how the last rows were sorted

    def variants(self):
        return tuple(",".join(names) for names in itertools.product(self._INPUT_ROWS, self._RESULT_ROWS))

    def load(self, case, tables):
        self._schema = pa.schema([(name, _TYPES[key]) for name, key in zip(case.key_names, case.keys)] +
                                 ([("p0", pa.int64())] if case.has_payload else []))
        for name, rows in self._INPUT_ROWS.items():
            self._batches[name] = [self._input(case, batch) for batch in tables["facts"].to_batches(max_chunksize=rows)]

    def _input(self, case, batch):
        """A quern_batch; what it points to is kept."""
        columns = [batch.column(name) for name in case.column_names]
        return quern_abi.raw_batch(columns[:case.num_keys], columns[case.num_keys:], None, batch.num_rows, 0,
                                   self._keep)

    def drop(self):
        self._batches, self._keep = {}, []

    def spec(self, case):
        return case.spec()

    def run(self, case, variant):
        """A list of Arrow arrays, in order."""
        input_rows, result_rows = variant.split(",")
        with self._compile(case.spec()) as kernel, kernel.job() as sort:
            self._append_all(sort, self._batches[input_rows])
            self.layout = sort.layout()
            lists = in_threads(self._threads, lambda _: self._read(sort, self._RESULT_ROWS[result_rows]))
            return [array for _, array in sorted(itertools.chain(*lists), key=operator.itemgetter(0))]

    def _append_all(self, sort, batches):
        in_threads(self._threads, lambda shared: sort.append(ROWS, shared), batches)
        in_threads(self._threads, lambda _: sort.finalise())

    def _read(self, sort, batch_rows):
        """Pairs of the place of an array's first row, and the array."""
        with sort.output(ROWS, batch_rows) as output:
            return [(result.position, array) for result, array in output.results(as_arrow=True)]

    def table(self, result):
        batches = [pa.RecordBatch._import_from_c(ctypes.addressof(array), self._schema) for array in result]
        return pa.Table.from_batches(batches, self._schema)
