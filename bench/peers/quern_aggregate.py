# SPDX-License-Identifier: Apache-2.0
"""Aggregations by Quern through its C ABI. The input is vectors that point into the arrays, in batches that are made
beforehand. The result is all groups, which the library makes batch by batch as Arrow arrays that own their memory.
Timed: making the aggregation, appending, finalising, all results, and destroying the aggregation. 64 Ki and 1 Mi rows
in a batch are tried, for input and for result.

Where a case has a last day, a filter's kernel compares the dates of each batch, timed, and the rows that pass are the
batch's selection. With more than one thread, each takes the next batch for an input of its own, all finalise
together, and each reads groups. No hints are given about the number of groups or the range of keys.
"""
import contextlib
import ctypes
import datetime
import itertools

import numpy as np
import pyarrow as pa
import quern_abi
from quern_abi import ROWS
from quern_threads import in_threads

_EPOCH = datetime.date(1970, 1, 1)
_TYPES = {"i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(), "f64": pa.float64(), "utf8": pa.string(),
          "date32": pa.date32()}


class AggregateRuns:
    """The table of one case, and aggregations of it. `compile`: a spec to a kernel."""

    _INPUT_ROWS = {"input65536": 1 << 16, "input1048576": 1 << 20}
    _RESULT_ROWS = {"result65536": 1 << 16, "result1048576": 1 << 20}

    def __init__(self, compile, threads):
        self._compile, self._threads = compile, threads
        self._batches, self._schema = {}, None
        self.layout = None  # of the last groups that were made

    def variants(self):
        return tuple(",".join(names) for names in itertools.product(self._INPUT_ROWS, self._RESULT_ROWS))

    def load(self, case, tables):
        self._schema = _result_schema(case)
        for name, rows in self._INPUT_ROWS.items():
            self._batches[name] = [_InputBatch(case, batch) for batch in tables["facts"].to_batches(max_chunksize=rows)]

    def drop(self):
        self._batches = {}

    def spec(self, case):
        return case.spec()

    def run(self, case, variant):
        """A list of Arrow arrays."""
        input_rows, result_rows = variant.split(",")
        with self._compile(case.spec()) as kernel, kernel.job() as aggregate, self._filter(case) as dates:
            self._append_all(aggregate, dates, self._batches[input_rows])
            self.layout = aggregate.layout()
            lists = in_threads(self._threads, lambda _: self._read(aggregate, self._RESULT_ROWS[result_rows]))
            return list(itertools.chain(*lists))

    def _filter(self, case):
        """Of dates; nothing where all rows take part."""
        if not case.last_day:
            return contextlib.nullcontext()
        last_date = (datetime.date.fromisoformat(case.last_day) - _EPOCH).days
        with self._compile(f"filter date32 <= {last_date}") as kernel:
            return kernel.job()

    def _append_all(self, aggregate, dates, batches):
        def append(shared):
            aggregate.append(ROWS, (batch.selected(dates) for batch in shared))

        in_threads(self._threads, append, batches)
        in_threads(self._threads, lambda _: aggregate.finalise())

    def _read(self, aggregate, batch_rows):
        with aggregate.output(ROWS, batch_rows) as groups:
            return [array for _, array in groups.results(as_arrow=True)]

    def table(self, result):
        batches = [pa.RecordBatch._import_from_c(ctypes.addressof(array), self._schema) for array in result]
        return pa.Table.from_batches(batches, self._schema)


def _result_schema(case):
    """Keys, then aggregates: counts and what becomes of integers are int64."""
    keys = [(f"k{i}", _TYPES[key]) for i, key in enumerate(case.keys)]
    is_float = [name is not None and name[0] == "f" for name in case.arguments]
    return pa.schema(keys + [(f"a{i}", pa.float64() if each else pa.int64()) for i, each in enumerate(is_float)])


class _InputBatch:
    """A quern_batch, what it points to, and the dates that decide which of its rows take part."""

    def __init__(self, case, batch):
        self._keep = []  # also the batch's arrays
        keys = [batch.column(f"k{i}") for i in range(case.num_keys)]
        arguments = [batch.column(name) for name in case.arguments if name]
        self._batch = quern_abi.raw_batch(keys, arguments, None, batch.num_rows, 0, self._keep)
        self._dates, self._selection = None, None
        if case.last_day:
            self._dates = quern_abi.raw_batch([batch.column("d0")], [], None, batch.num_rows, 0, self._keep)
            self._selection = np.empty(batch.num_rows, np.uint32)

    def selected(self, dates):
        """dates: the filter, or None."""
        if dates:
            rows, num_rows = self._selection.ctypes.data, ctypes.c_uint64()
            dates.library.call("quern_job_filter", dates.handle, ctypes.byref(self._dates), rows, None,
                               ctypes.byref(num_rows))
            self._batch.selection, self._batch.num_rows = rows, num_rows.value
        return self._batch
