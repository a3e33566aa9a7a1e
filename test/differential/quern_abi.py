# SPDX-License-Identifier: Apache-2.0
"""libquern.so through its C ABI (hosts/c/quern.h), with ctypes (structs and signatures: abi_structs.py).

    library = Library("build/lib/libquern.so")
    kernel = library.compile("join.inner keys=i64 build=f64", engine="jit", params="batch_size=7")
    join = kernel.job()
    join.bind_arrow(BUILD, build_schema, [0], [1])
    join.bind_arrow(PROBE, probe_schema, [0], [])
    join.append(BUILD, batches)                  # of Arrow (RecordBatch, StructArray), or of the host's own (raw_batch)
    join.finalise()
    with join.output(PROBE, batch_rows=1000) as output:
        output.push(batch)
        for result, array in output.results(as_arrow=True): ...

An aggregation, a sort and a merge (of `kernel.job(num_runs=3)`) do the same with ROWS, STATES and THRESHOLD. A filter
has no ports but ROWS, to bind Arrow columns:

    rows = condition.select(batch, len(batch))        # also bitmap(), count()

A failed call raises QuernError with the library's text. Every handle closes once; `with` closes it at the end of the
block.
"""
import ctypes
import os
import time

import pyarrow as pa

from abi_structs import (FINALISE_FUNCTION, HANDLE, MERGE_FUNCTION, ON_RESULT, ON_ROWS, RELEASE_ARRAY,  # noqa: F401
                         SIGNATURES, UPDATE_FUNCTION, AggregateFunction, ArrowArray, ArrowSchema, Batch, Column,
                         CompileOptions, Counters, Error, InputOptions, JobOptions, JobStats, KeyRange, OutputOptions,
                         PipelineOptions, PipelineStep, Result, RunInput, RunOptions, export_batch, export_schema,
                         int32s, release_array, release_schema, sized, uint32s)
from library_environment import environment_for  # noqa: F401

# Set before the library is loaded: tests compile their kernels, and the user's own cache stays as it is.
os.environ.setdefault("QUERN_CACHE", "off")

STATUS_NAMES = ("OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL",
                "CANCELLED", "OUT_OF_RANGE", "ABORTED", "IO_ERROR")
OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = range(6)
CANCELLED, OUT_OF_RANGE, ABORTED, IO_ERROR = range(6, 10)
ENGINES = {"auto": 0, "jit": 1, "generic": 2}
ROWS, BUILD, PROBE, UNMATCHED, STATES, THRESHOLD, LEFT, RIGHT = range(8)  # ports
MORE, NEEDS_INPUT, DONE = range(3)                           # states of a result
WORK_MORE, WORK_BUSY, WORK_DONE = range(3)
COLUMN_CONSTANT, COLUMN_POINTERS, COLUMN_BYTES = 1, 2, 4
ABI_VERSION_MAJOR = 2


class QuernError(Exception):
    """A status other than OK, with the text that came with it."""

    def __init__(self, status, text):
        name = STATUS_NAMES[status] if 0 <= status < len(STATUS_NAMES) else str(status)
        super().__init__(f"{name}: {text}")
        self.status = status
        self.text = text


class ContractError(Exception):
    """The library did not do what its header promises."""


def library_path(path=None):
    path = path or os.environ.get("QUERN_LIB")
    if not path:
        raise SystemExit("no libquern.so: give --lib PATH or set QUERN_LIB")
    return path


class Library:
    def __init__(self, path=None):
        self.path = library_path(path)
        self._library = ctypes.CDLL(self.path)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        version = self._library.quern_abi_version()
        if version // 1000 != ABI_VERSION_MAJOR:
            raise SystemExit(f"{self.path} has ABI version {version}; accepted: {ABI_VERSION_MAJOR}.*")

    def function(self, name):
        return getattr(self._library, name)

    def call(self, name, *arguments):
        """Calls a function whose last parameter is the error object, and raises the error."""
        error = Error()
        status = self.function(name)(*arguments, ctypes.byref(error))
        if status == OK:
            return
        text = error.text.decode("utf-8", "replace")
        if error.status != status:
            raise ContractError(f"{name} answered status {status} but its error object says {error.status}: {text}")
        raise QuernError(status, text)

    def made(self, name, *arguments):
        """The handle that a function leaves in its last parameter before the error object."""
        handle = HANDLE()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    def compile(self, spec, engine="auto", params=None):
        spec = spec.encode() if isinstance(spec, str) else spec
        params = params.encode() if isinstance(params, str) else params
        return Kernel(self, self.made("quern_compile", spec, ENGINES[engine], params))

    def compile_after(self, rows, spec, params=None):
        """A kernel that is generic for `rows` rows; then the job waits for the compiled one and goes on with it."""
        options = sized(CompileOptions, compile_after_rows=rows, swap_waits=True,
                        params=params.encode() if params else None)
        return Kernel(self, self.made("quern_compile_with", spec.encode(), ctypes.byref(options)))

    def clear_cache(self):
        self.function("quern_cache_clear")()


class Handle:
    """A counted handle of the library: closed once, after which it is None."""

    def __init__(self, library, handle, destroy):
        if not handle:
            raise ContractError(f"{destroy.replace('destroy', 'create')} answered OK without a handle")
        self.library, self.handle, self._destroy = library, handle, destroy

    def close(self):
        if self.handle:
            self.library.function(self._destroy)(self.handle)
            self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class Kernel(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_kernel_destroy")

    def text(self, name):
        text = self.library.function("quern_kernel_text")(self.handle, name.encode())
        return None if text is None else text.decode()

    def counters(self):
        """The counters of all jobs of the kernel."""
        counters = sized(Counters)
        self.library.function("quern_kernel_get_counters")(self.handle, ctypes.byref(counters))
        return counters

    def job(self, memory_limit=0, num_runs=0, expected_groups=0, key_ranges=(), store=None, account=None, tables=(),
            on_rows=None):
        """`key_ranges`: (number of the key, least, greatest) each. `store`: where rows may be written
        (random_spill.py). `account`: of memory (host_account.py). Of a pipeline, tables: jobs of the joins that it
        probes; on_rows(Batch): takes rows that are emitted, and answers whether it wants more."""
        ranges = (KeyRange * max(len(key_ranges), 1))(*key_ranges)
        handles = (HANDLE * max(len(tables), 1))(*(table.handle for table in tables))
        takes_rows = ON_ROWS(lambda _, rows: on_rows(rows.contents)) if on_rows else ON_ROWS()
        options = sized(JobOptions, memory_limit=memory_limit, num_runs=num_runs, expected_groups=expected_groups,
                        key_ranges=ranges, num_key_ranges=len(key_ranges),
                        spill=ctypes.pointer(store.options) if store else None, tables=handles,
                        num_tables=len(tables), on_rows=takes_rows, **(account.options() if account else {}))
        made = self.library.made("quern_job_create", self.handle, ctypes.byref(options))
        return Job(self.library, made, store, account, takes_rows)


def _move_in(library, name, handle, batch):
    array = batch if isinstance(batch, ArrowArray) else export_batch(batch)
    try:
        library.call(name, handle, ctypes.byref(array), None)
    finally:
        moved = not array.release
        release_array(array)
        if not moved:
            raise ContractError(
                f"{name} did not take over the array that it was given (its release callback is still there)")


_GUARD, _UNTOUCHED = 0xDEADBEEF, (1 << 64) - 1


class Job(Handle):
    def __init__(self, library, handle, store=None, account=None, on_rows=None):
        super().__init__(library, handle, "quern_job_destroy")
        self.store, self.account, self._on_rows = store, account, on_rows

    def close(self):
        """All other handles of the job are closed before."""
        is_open = self.handle is not None
        super().close()
        if is_open and self.store and (left := self.store.what_is_left()):
            raise ContractError(f"{len(left)} blocks or files are left of a job that is gone: {left[:3]}")

    def bind_arrow(self, port, schema, keys, payload):
        exported = export_schema(schema)
        try:
            self.library.call("quern_job_bind_arrow", self.handle, port, ctypes.byref(exported), int32s(keys),
                              int32s(payload))
        finally:
            release_schema(exported)

    def result_schema(self, port):
        schema = ArrowSchema()
        self.library.call("quern_job_result_schema", self.handle, port, ctypes.byref(schema))
        return pa.Schema._import_from_c(ctypes.addressof(schema))

    def input(self, port, run=0, copy_bytes=False):
        options = sized(InputOptions, run=run, copy_bytes=copy_bytes)
        return Input(self.library, self.library.made("quern_input_create", self.handle, port, ctypes.byref(options)))

    def pipeline_input(self, port, columns, steps, keys, payload=(), piece_rows=0, copy_bytes=False):
        """An input behind steps, each a tuple of a job, the numbers of its keys, and those of its payload. `columns`:
        the types of the columns that come in."""
        made = [
            PipelineStep(job.handle, uint32s(at), len(at), uint32s(also), len(also), None) for job, at, also in steps
        ]
        options = sized(PipelineOptions, columns=columns.encode(), steps=(PipelineStep * max(len(made), 1))(*made),
                        num_steps=len(made), keys=uint32s(keys), num_keys=len(keys), payload=uint32s(payload),
                        num_payload=len(payload), copy_bytes=copy_bytes, piece_rows=piece_rows)
        return Input(self.library,
                     self.library.made("quern_pipeline_input_create", self.handle, port, ctypes.byref(options)))

    def output(self, port, batch_rows=0, partition=None):
        """`partition`: None, or (number, of how many)."""
        number, num_partitions = partition or (0, 0)
        options = sized(OutputOptions, batch_rows=batch_rows, partition=number, num_partitions=num_partitions)
        return Output(self.library, self.library.made("quern_output_create", self.handle, port, ctypes.byref(options)))

    def append(self, port, batches, copy_bytes=False):
        """Adds batches by one input."""
        with self.input(port, copy_bytes=copy_bytes) as rows:
            for batch in batches:
                rows.append(batch)
                del batch
            rows.finish()

    def finalise(self):
        self.library.call("quern_job_finalise", self.handle)

    def work(self):
        """One piece of the work; answers its state."""
        state = ctypes.c_int()
        self.library.call("quern_job_work", self.handle, ctypes.byref(state))
        return state.value

    def work_to_end(self):
        """All of the work in pieces, as a host with a scheduler of its own does it."""
        while (state := self.work()) != WORK_DONE:
            if state == WORK_BUSY:
                time.sleep(0)

    def step(self, number):
        """The job of a pipeline's step, or of its end behind them; a handle of its own."""
        made = HANDLE()
        self.library.call("quern_job_step", self.handle, number, ctypes.byref(made))
        return Job(self.library, made)

    def counters(self):
        counters = sized(Counters)
        self.library.function("quern_job_get_counters")(self.handle, ctypes.byref(counters))
        return counters

    def stats(self):
        """`layout` is bytes."""
        stats = sized(JobStats)
        self.library.function("quern_job_get_stats")(self.handle, ctypes.byref(stats))
        if stats.layout is None:
            raise ContractError("quern_job_get_stats left layout NULL")
        return stats

    def layout(self):
        return self.stats().layout.decode()

    def run(self, inputs, threads, batch_rows, on_result):
        """The whole job of raw batches; `inputs`: port -> batches. on_result(Result) answers whether to go on, and may
        raise. Answers the number of rows."""
        errors, num_rows = [], ctypes.c_uint64()

        def guarded(_, result):
            try:
                return on_result(result.contents)
            except Exception as error:  # any exception is raised again when the library has returned
                errors.append(error)
                return False

        given = [RunInput(port, (Batch * max(len(batches), 1))(*batches), len(batches))
                 for port, batches in inputs.items()]
        options = sized(RunOptions, threads=threads, batch_rows=batch_rows, on_result=ON_RESULT(guarded))
        self.library.call("quern_job_run", self.handle, (RunInput * len(given))(*given), len(given),
                          ctypes.byref(options), ctypes.byref(num_rows))
        if errors:
            raise errors[0]
        return num_rows.value

    # ---- filters: guard values stand behind what is written, and must stay ----

    def _filter(self, batch, rows=None, bitmap=None):
        """A batch of the host's vectors, or an Arrow array, which stays the caller's."""
        num_passed = ctypes.c_uint64(_UNTOUCHED)
        if isinstance(batch, Batch):
            self.library.call("quern_job_filter", self.handle, ctypes.byref(batch), rows, bitmap,
                              ctypes.byref(num_passed))
            return num_passed.value
        array = export_batch(batch)
        try:
            self.library.call("quern_job_filter_arrow", self.handle, ctypes.byref(array), None, rows, bitmap,
                              ctypes.byref(num_passed))
            if not array.release:
                raise ContractError("quern_job_filter_arrow took over the array that it was shown")
        finally:
            release_array(array)
        return num_passed.value

    def select(self, batch, num_rows):
        """The numbers of the rows that pass."""
        rows = (ctypes.c_uint32 * (num_rows + 1))()
        rows[num_rows] = _GUARD
        num_passed = self._filter(batch, rows=rows)
        if rows[num_rows] != _GUARD or num_passed > num_rows:
            raise ContractError(
                f"quern_job_filter wrote behind {num_rows} rows, or says that {num_passed} of them pass")
        return rows[:num_passed]

    def bitmap(self, batch, num_rows):
        """(bitmap, how many rows pass)."""
        num_bytes = (num_rows + 7) // 8
        bits = ctypes.create_string_buffer(b"\xa5" * (num_bytes + 1), num_bytes + 1)
        num_passed = self._filter(batch, bitmap=bits)
        if bits.raw[num_bytes] != 0xA5:
            raise ContractError(f"quern_job_filter wrote behind {num_bytes} bytes")
        return bits.raw[:num_bytes], num_passed

    def count(self, batch):
        return self._filter(batch)


class Input(Handle):
    """Adds batches of the host's own vectors (Batch), or of Arrow, for one thread."""

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_input_destroy")

    def append(self, batch):
        if isinstance(batch, Batch):
            self.library.call("quern_input_append", self.handle, ctypes.byref(batch))
        else:
            _move_in(self.library, "quern_input_append_arrow", self.handle, batch)

    def finish(self):
        self.library.call("quern_input_finish", self.handle)


class Output(Handle):
    """Rows of a job, for one thread."""

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_output_destroy")

    def push(self, batch):
        if isinstance(batch, Batch):
            self.library.call("quern_output_push", self.handle, ctypes.byref(batch))
        else:
            _move_in(self.library, "quern_output_push_arrow", self.handle, batch)

    def next(self):
        """The next rows, valid until the next call."""
        result = ctypes.POINTER(Result)()
        self.library.call("quern_output_next", self.handle, ctypes.byref(result))
        return result.contents

    def next_arrow(self):
        """(Result without columns, ArrowArray); the caller releases or imports the array."""
        array, result = ArrowArray(), ctypes.POINTER(Result)()
        self.library.call("quern_output_next_arrow", self.handle, ctypes.byref(array), ctypes.byref(result))
        if array.length != result.contents.num_rows:
            raise ContractError(f"an array has {array.length} rows; its result says {result.contents.num_rows}")
        return result.contents, array

    def results(self, as_arrow=False):
        """(Result, its ArrowArray or None), up to the first after which there are no more, or input is needed."""
        state = MORE
        while state == MORE:
            result, array = self.next_arrow() if as_arrow else (self.next(), None)
            state = result.state
            yield result, array


def raw_column(array, keep):
    """A pyarrow array as the quern_column of a host's own vectors. Appends to `keep` what must outlive it."""
    buffers, offset, arrow_type = array.buffers(), array.offset, array.type
    address = lambda buffer: None if buffer is None else buffer.address
    shifted = lambda buffer, bytes_per_row: None if buffer is None else buffer.address + offset * bytes_per_row
    column = Column(validity=address(buffers[0]), bit_offset=offset)
    keep.append(array)
    if pa.types.is_dictionary(arrow_type):
        column.values = shifted(buffers[1], arrow_type.index_type.bit_width // 8)
        dictionary = raw_column(array.dictionary, keep)
        column.dictionary = ctypes.pointer(dictionary)
        keep.append(dictionary)
    elif pa.types.is_boolean(arrow_type):
        column.values = address(buffers[1])
    elif pa.types.is_binary_view(arrow_type) or pa.types.is_string_view(arrow_type):
        column.values = shifted(buffers[1], 16)
        data = (ctypes.c_void_p * max(len(buffers) - 2, 1))(*[address(buffer) for buffer in buffers[2:]])
        column.buffers = ctypes.addressof(data)
        keep.append(data)
    elif len(buffers) == 3:
        wide = pa.types.is_large_binary(arrow_type) or pa.types.is_large_string(arrow_type)
        column.offsets = shifted(buffers[1], 8 if wide else 4)
        column.values = address(buffers[2])
    else:
        column.values = shifted(buffers[1], arrow_type.bit_width // 8)
    return column


def raw_batch(keys, payload, selection, num_rows, first_row_id, keep):
    """A quern_batch of pyarrow arrays (None in `payload`: a rowid). `selection`: None or an array.array of uint32."""
    keys, payload = ([Column() if array is None else raw_column(array, keep) for array in arrays]
                     for arrays in (keys, payload))
    return batch_of_columns(keys, payload, selection, num_rows, first_row_id, keep)


def batch_of_columns(keys, payload, selection, num_rows, first_row_id, keep):
    """The same of quern_columns."""
    batch = Batch(num_rows=num_rows, first_row_id=first_row_id)
    for name, side in zip(("keys", "payload"), (keys, payload)):
        side = (Column * max(len(side), 1))(*side)
        keep.append(side)
        setattr(batch, name, ctypes.cast(side, ctypes.POINTER(Column)))
    if selection is not None:
        batch.selection = selection.buffer_info()[0]
        keep.append(selection)
    return batch
