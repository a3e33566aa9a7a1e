# SPDX-License-Identifier: Apache-2.0
"""libquern.so through its C ABI (hosts/c/quern.h), with ctypes (structs and signatures: abi_structs.py).

    library = Library("build/lib/libquern.so")
    kernel = library.compile("join.inner keys=i64 build=f64", engine="jit", params="batch_size=7")
    join = kernel.join()
    join.bind_arrow(build_schema, [0], [1], probe_schema, [0], [])
    join.append_arrow(batch)                     # pyarrow.RecordBatch or StructArray
    join.finalise()
    prober = join.prober(batch_rows=1000)
    prober.input_arrow(batch)
    for rows in prober.results_arrow(schema): ...

    aggregate = kernel.aggregate()                # of "aggregate keys=i64 aggs=sum(f64)"; bind, append and finalise as
                                                  above
    with aggregate.groups(batch_rows=1000) as groups:
        array, more = groups.next_arrow()

    sort = kernel.sort()                          # of "sort keys=i64:out payload=rowid"; bind, append and finalise as
                                                  above
    with sort.reader(batch_rows=1000) as reader:
        array, position, more = reader.next_arrow()

    condition = kernel.filter()                   # of "filter i64 = 5"; bind_arrow(schema, [0])
    rows = condition.select(batch, len(batch))        # of Arrow or of the host's own; also bitmap(), count()

A failed call raises QuernError with the library's text. Every handle closes once; `with` closes it at the end of the
block.
"""
import ctypes
import os
import struct
import subprocess

import pyarrow as pa

# noqa: F401
from abi_structs import (ADDED_SIGNATURES, AGGREGATE_SIGNATURES, FILTER_SIGNATURES, FINALISE_FUNCTION, HANDLE,
                         MERGE_FUNCTION, ON_RESULT, RELEASE_ARRAY, SIGNATURES, SORT_SIGNATURES, UPDATE_FUNCTION,
                         AggregateFunction, AggregateStats, ArrowArray, ArrowSchema, Batch, Column, CompileOptions,
                         Counters, Error, JoinStats, Result, SortStats, export_batch, export_schema, int32s,
                         release_array, release_schema)

# Set before the library is loaded: tests compile their kernels, and the user's own cache stays as it is.
os.environ.setdefault("QUERN_CACHE", "off")

STATUS_NAMES = ("OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL")
OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = range(6)
ENGINES = {"auto": 0, "jit": 1, "generic": 2}
MERGE_STATES = ("rows", "needs input", "done")
GROUP_COLUMNS = {"results": 0, "states": 1}
ABI_VERSION_MAJOR = 1
ABI_VERSION_OF_KINDS = 1001  # before it: inner joins without a residual predicate, one layout


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


# By the symbol that a library built with a sanitizer wants: what must be in the process before it, in the names of GCC
# and of Clang.
_SANITIZERS = ((b"__asan_init", "libasan.so", "libclang_rt.asan-x86_64.so"),
               (b"__tsan_init", "libtsan.so", "libclang_rt.tsan-x86_64.so"))


_SANITIZER_STATUS = 99  # of a process that a sanitizer ends; its own default is 1, as that of a failure which was
                        # reported


def _dynamic_names(content):
    """The names of an ELF file's dynamic section and symbols. (The whole file has more: LLVM's own literals name every
    sanitizer.)"""
    SHT_DYNSYM = 11
    (first,), (size, num_sections) = struct.unpack_from("<Q", content, 0x28), struct.unpack_from("<HH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQI", content, first + number * size) for number in range(num_sections)]
    strings = next(section[6] for section in sections if section[1] == SHT_DYNSYM)
    offset, num_bytes = sections[strings][4:6]
    return content[offset:offset + num_bytes].split(b"\0")


def environment_for(library):
    """The environment of a Python that can load the library: a sanitizer's runtime comes first, and does not count
    Python's own leaks."""
    environment = dict(os.environ, PYTHONMALLOC="malloc")
    with open(library, "rb") as file:
        content = file.read()
    names = _dynamic_names(content)
    for symbol, of_gcc, of_clang in _SANITIZERS:
        if symbol not in names:
            continue
        compiler, name = ((("gcc", "g++"), of_gcc)
                          if of_gcc.encode() + b"." in content else (("clang-22", "clang"), of_clang))
        runtime = next(filter(os.path.isfile, (_file_of(command, name) for command in compiler)), None)
        if runtime:
            environment["LD_PRELOAD"] = os.path.realpath(runtime)
        for options, first in (("ASAN_OPTIONS", "detect_leaks=0"), ("UBSAN_OPTIONS", "halt_on_error=1"),
                               ("TSAN_OPTIONS", "halt_on_error=1")):
            environment[options] = f"{first}:exitcode={_SANITIZER_STATUS}:" + os.environ.get(options, "")
        return environment
    return dict(os.environ)


def _file_of(compiler, name):
    try:
        return subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


class Library:
    def __init__(self, path=None):
        self.path = library_path(path)
        self._library = ctypes.CDLL(self.path)
        all_added = ADDED_SIGNATURES | AGGREGATE_SIGNATURES | SORT_SIGNATURES | FILTER_SIGNATURES
        added = {name: signature for name, signature in all_added.items() if self.has(name)}
        for name, (result, arguments) in (SIGNATURES | added).items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        version = self._library.quern_abi_version()
        self.knows_kinds = version >= ABI_VERSION_OF_KINDS
        self.knows_aggregates = all(self.has(name) for name in AGGREGATE_SIGNATURES)
        self.knows_sorts = all(self.has(name) for name in SORT_SIGNATURES)
        self.knows_filters = all(self.has(name) for name in FILTER_SIGNATURES)
        if version // 1000 != ABI_VERSION_MAJOR:
            raise SystemExit(f"{self.path} has ABI version {version}; accepted: {ABI_VERSION_MAJOR}.*")

    def function(self, name):
        return getattr(self._library, name)

    def has(self, name):
        return hasattr(self._library, name)

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

    def compile(self, spec, engine="auto", params=None):
        handle = HANDLE()
        spec = spec.encode() if isinstance(spec, str) else spec
        params = params.encode() if isinstance(params, str) else params
        self.call("quern_compile", spec, ENGINES[engine], params, ctypes.byref(handle))
        return Kernel(self, handle)

    def compile_after(self, rows, spec, params=None):
        """A kernel that is generic for `rows` rows; then the job waits for the compiled one and goes on with it.
        Libraries without this function give what `auto` gives."""
        if not self.has("quern_compile_with"):
            return self.compile(spec, "auto", params)
        handle, options = HANDLE(), CompileOptions(struct_size=ctypes.sizeof(CompileOptions), compile_after_rows=rows,
                                                   swap_waits=True)
        options.params = params.encode() if params else None
        self.call("quern_compile_with", spec.encode(), ctypes.byref(options), ctypes.byref(handle))
        return Kernel(self, handle)

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
        """The counters of all jobs of the kernel; None from a library without them."""
        if not self.library.has("quern_kernel_get_counters"):
            return None
        counters = Counters(struct_size=ctypes.sizeof(Counters))
        self.library.function("quern_kernel_get_counters")(self.handle, ctypes.byref(counters))
        return counters

    def join(self, memory_limit=0):
        handle = HANDLE()
        self.library.call("quern_join_create", self.handle, memory_limit, ctypes.byref(handle))
        return Join(self.library, handle)

    def aggregate(self, memory_limit=0):
        handle = HANDLE()
        self.library.call("quern_aggregate_create", self.handle, memory_limit, ctypes.byref(handle))
        return Aggregate(self.library, handle)

    def sort(self, memory_limit=0):
        handle = HANDLE()
        self.library.call("quern_sort_create", self.handle, memory_limit, ctypes.byref(handle))
        return Sort(self.library, handle)

    def merge(self, num_runs, batch_rows=0, memory_limit=0):
        handle = HANDLE()
        self.library.call("quern_merge_create", self.handle, memory_limit, num_runs, batch_rows, ctypes.byref(handle))
        return Merge(self.library, handle)

    def filter(self):
        handle = HANDLE()
        self.library.call("quern_filter_create", self.handle, ctypes.byref(handle))
        return Filter(self.library, handle)


def _move_in(library, name, handle, batch, *numbers):
    """`numbers`: what stands between the handle and the array."""
    array = batch if isinstance(batch, ArrowArray) else export_batch(batch)
    try:
        library.call(name, handle, *numbers, ctypes.byref(array))
    finally:
        moved = not array.release
        release_array(array)
        if not moved:
            raise ContractError(
                f"{name} did not take over the array that it was given (its release callback is still there)")


class Join(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_join_destroy")

    def bind_arrow(self, build, build_keys, build_payload, probe, probe_keys, probe_payload):
        schemas = [export_schema(build), export_schema(probe)]
        try:
            self.library.call("quern_join_bind_arrow", self.handle, ctypes.byref(schemas[0]), int32s(build_keys),
                              int32s(build_payload), ctypes.byref(schemas[1]), int32s(probe_keys),
                              int32s(probe_payload))
        finally:
            for schema in schemas:
                release_schema(schema)

    def result_schema(self):
        schema = ArrowSchema()
        self.library.call("quern_join_result_schema", self.handle, ctypes.byref(schema))
        return pa.Schema._import_from_c(ctypes.addressof(schema))

    def append_arrow(self, batch):
        _move_in(self.library, "quern_join_append_arrow", self.handle, batch)

    def append(self, batch, copy_bytes=False):
        self.library.call("quern_join_append", self.handle, ctypes.byref(batch), copy_bytes)

    def appender(self):
        handle = HANDLE()
        self.library.call("quern_appender_create", self.handle, ctypes.byref(handle))
        return Appender(self.library, handle)

    def finalise(self):
        self.library.call("quern_join_finalise", self.handle)

    def finalise_shared(self):
        self.library.call("quern_join_finalise_shared", self.handle)

    def layout(self):
        """The table's layout, after finalise; None from a library without this function."""
        if not self.library.has("quern_join_layout"):
            return None
        layout = self.library.function("quern_join_layout")(self.handle)
        if layout is None:
            raise ContractError("quern_join_layout answered NULL after finalise")
        return layout.decode()

    def stats(self):
        stats = JoinStats()
        self.library.function("quern_join_get_stats")(self.handle, ctypes.byref(stats))
        return stats

    def prober(self, batch_rows=0):
        handle = HANDLE()
        self.library.call("quern_prober_create", self.handle, batch_rows, ctypes.byref(handle))
        return Prober(self.library, handle)


class Appender(Handle):
    """Adds to a join's build side from a thread of its own."""

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_appender_destroy")

    def append_arrow(self, batch):
        _move_in(self.library, "quern_appender_append_arrow", self.handle, batch)

    def append(self, batch, copy_bytes=False):
        self.library.call("quern_appender_append", self.handle, ctypes.byref(batch), copy_bytes)

    def finish(self):
        self.library.call("quern_appender_finish", self.handle)


class Prober(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_prober_destroy")

    def input_arrow(self, batch):
        _move_in(self.library, "quern_prober_input_arrow", self.handle, batch)

    def input(self, batch):
        self.library.call("quern_prober_input", self.handle, ctypes.byref(batch))

    def input_unmatched(self):
        """After all probing: a share of the build rows that come out on their own becomes the input."""
        self.library.call("quern_prober_input_unmatched", self.handle)

    def next_arrow(self):
        """(ArrowArray, more); the caller releases or imports the array."""
        array, more = ArrowArray(), ctypes.c_bool()
        self.library.call("quern_prober_next_arrow", self.handle, ctypes.byref(array), ctypes.byref(more))
        return array, more.value

    def next(self):
        """(Result, more); the result's columns are valid until the next call."""
        result, more = Result(), ctypes.c_bool()
        self.library.call("quern_prober_next", self.handle, ctypes.byref(result), ctypes.byref(more))
        return result, more.value

    def results_arrow(self, schema):
        """The input's results as record batches read under `schema`, fully validated."""
        more = True
        while more:
            array, more = self.next_arrow()
            batch = pa.RecordBatch._import_from_c(ctypes.addressof(array), schema)
            batch.validate(full=True)
            yield batch


class _OneInput(Handle):
    """What an aggregation, a sort and a merge have in common. `prefix`: of its functions."""
    prefix = ""

    def bind_arrow(self, schema, keys, payload):
        exported = export_schema(schema)
        try:
            self.library.call(f"{self.prefix}_bind_arrow", self.handle, ctypes.byref(exported), int32s(keys),
                              int32s(payload))
        finally:
            release_schema(exported)

    def result_schema(self):
        schema = ArrowSchema()
        self.library.call(f"{self.prefix}_result_schema", self.handle, ctypes.byref(schema))
        return pa.Schema._import_from_c(ctypes.addressof(schema))


class _Appending(Handle):
    """What an aggregation and its appenders have in common: rows, or states, in two ways. `prefix`: of its
    functions."""
    prefix = ""

    def append(self, batch, states=False):
        self.library.call(f"{self.prefix}_append{'_states' if states else ''}", self.handle, ctypes.byref(batch))

    def append_arrow(self, batch, states=False):
        _move_in(self.library, f"{self.prefix}_append{'_states' if states else ''}_arrow", self.handle, batch)


class Aggregate(_Appending, _OneInput):
    prefix = "quern_aggregate"

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_aggregate_destroy")

    def hint_groups(self, expected_groups):
        self.library.call("quern_aggregate_hint_groups", self.handle, expected_groups)

    def hint_range(self, key, least, greatest):
        self.library.call("quern_aggregate_hint_range", self.handle, key, least, greatest)

    def result_schema(self, columns="results"):
        schema = ArrowSchema()
        self.library.call("quern_aggregate_result_schema", self.handle, GROUP_COLUMNS[columns], ctypes.byref(schema))
        return pa.Schema._import_from_c(ctypes.addressof(schema))

    def appender(self):
        handle = HANDLE()
        self.library.call("quern_aggregate_appender_create", self.handle, ctypes.byref(handle))
        return AggregateAppender(self.library, handle)

    def finalise(self):
        self.library.call("quern_aggregate_finalise", self.handle)

    def finalise_shared(self):
        self.library.call("quern_aggregate_finalise_shared", self.handle)

    def layout(self):
        layout = self.library.function("quern_aggregate_layout")(self.handle)
        if layout is None:
            raise ContractError("quern_aggregate_layout answered NULL")
        return layout.decode()

    def stats(self):
        stats = AggregateStats()
        self.library.function("quern_aggregate_get_stats")(self.handle, ctypes.byref(stats))
        return stats

    def groups(self, columns="results", batch_rows=0, partition=None):
        """`partition`: None, or (number, of how many)."""
        handle = HANDLE()
        if partition is None:
            self.library.call("quern_groups_create", self.handle, GROUP_COLUMNS[columns], batch_rows,
                              ctypes.byref(handle))
        else:
            self.library.call("quern_groups_create_partition", self.handle, GROUP_COLUMNS[columns], *partition,
                              batch_rows, ctypes.byref(handle))
        return Groups(self.library, handle)

    def run(self, batches, threads, batch_rows, on_result):
        """The whole aggregation of raw batches; on_result(Result) answers whether to go on. Answers the number of
        groups."""
        count, array, num_groups = len(batches), (Batch * max(len(batches), 1))(*batches), ctypes.c_uint64()
        self.library.call("quern_aggregate_run", self.handle, array, count, threads, batch_rows,
                          ON_RESULT(lambda context, result: on_result(result.contents)), None, ctypes.byref(num_groups))
        return num_groups.value


class AggregateAppender(_Appending):
    prefix = "quern_aggregate_appender"

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_aggregate_appender_destroy")

    def finish(self):
        self.library.call("quern_aggregate_appender_finish", self.handle)


class Groups(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_groups_destroy")

    def next_arrow(self):
        """(ArrowArray, more); the caller releases or imports the array."""
        array, more = ArrowArray(), ctypes.c_bool()
        self.library.call("quern_groups_next_arrow", self.handle, ctypes.byref(array), ctypes.byref(more))
        return array, more.value

    def next(self):
        """(Result, more); the result's columns are valid until the next call."""
        result, more = Result(), ctypes.c_bool()
        self.library.call("quern_groups_next", self.handle, ctypes.byref(result), ctypes.byref(more))
        return result, more.value


class Sort(_OneInput):
    prefix = "quern_sort"

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_sort_destroy")

    def append(self, batch, copy_bytes=False):
        self.library.call("quern_sort_append", self.handle, ctypes.byref(batch), copy_bytes)

    def append_arrow(self, batch):
        _move_in(self.library, "quern_sort_append_arrow", self.handle, batch)

    def appender(self):
        handle = HANDLE()
        self.library.call("quern_sort_appender_create", self.handle, ctypes.byref(handle))
        return SortAppender(self.library, handle)

    def get_threshold(self):
        """(Result, whether there is one); valid until the next call."""
        row, exists = Result(), ctypes.c_bool()
        self.library.call("quern_sort_get_threshold", self.handle, ctypes.byref(row), ctypes.byref(exists))
        return row, exists.value

    def set_threshold(self, keys):
        self.library.call("quern_sort_set_threshold", self.handle, ctypes.byref(keys))

    def finalise(self):
        self.library.call("quern_sort_finalise", self.handle)

    def finalise_shared(self):
        self.library.call("quern_sort_finalise_shared", self.handle)

    def method(self):
        method = self.library.function("quern_sort_method")(self.handle)
        if method is None:
            raise ContractError("quern_sort_method answered NULL")
        return method.decode()

    def stats(self):
        stats = SortStats()
        self.library.function("quern_sort_get_stats")(self.handle, ctypes.byref(stats))
        return stats

    def reader(self, batch_rows=0):
        handle = HANDLE()
        self.library.call("quern_sorted_create", self.handle, batch_rows, ctypes.byref(handle))
        return SortedRows(self.library, handle)

    def run(self, batches, threads, batch_rows, on_result):
        """The whole sort of raw batches; on_result(Result) answers whether to go on. Answers the number of rows."""
        count, array, num_rows = len(batches), (Batch * max(len(batches), 1))(*batches), ctypes.c_uint64()
        self.library.call("quern_sort_run", self.handle, array, count, threads, batch_rows,
                          ON_RESULT(lambda context, result: on_result(result.contents)), None, ctypes.byref(num_rows))
        return num_rows.value


class SortAppender(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_sort_appender_destroy")

    def append(self, batch, copy_bytes=False):
        self.library.call("quern_sort_appender_append", self.handle, ctypes.byref(batch), copy_bytes)

    def append_arrow(self, batch):
        _move_in(self.library, "quern_sort_appender_append_arrow", self.handle, batch)

    def finish(self):
        self.library.call("quern_sort_appender_finish", self.handle)


class SortedRows(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_sorted_destroy")

    def next(self):
        """(Result, place of its first row, more); the result's columns are valid until the next call."""
        result, position, more = Result(), ctypes.c_uint64(), ctypes.c_bool()
        self.library.call("quern_sorted_next", self.handle, ctypes.byref(result), ctypes.byref(position),
                          ctypes.byref(more))
        return result, position.value, more.value

    def next_arrow(self):
        """The same with an ArrowArray, which the caller releases or imports."""
        array, position, more = ArrowArray(), ctypes.c_uint64(), ctypes.c_bool()
        self.library.call("quern_sorted_next_arrow", self.handle, ctypes.byref(array), ctypes.byref(position),
                          ctypes.byref(more))
        return array, position.value, more.value


class Merge(_OneInput):
    prefix = "quern_merge"

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_merge_destroy")

    def input(self, run, batch):
        self.library.call("quern_merge_input", self.handle, run, ctypes.byref(batch))

    def input_arrow(self, run, batch):
        _move_in(self.library, "quern_merge_input_arrow", self.handle, batch, run)

    def end(self, run):
        self.library.call("quern_merge_end", self.handle, run)

    def _next(self, name, result):
        state, run = ctypes.c_int(), ctypes.c_uint32()
        self.library.call(name, self.handle, ctypes.byref(result), ctypes.byref(state), ctypes.byref(run))
        return result, MERGE_STATES[state.value], run.value

    def next(self):
        """(Result, state, the run that needs input); the result's columns are valid until the next call."""
        return self._next("quern_merge_next", Result())

    def next_arrow(self):
        """The same with an ArrowArray, which the caller releases or imports."""
        return self._next("quern_merge_next_arrow", ArrowArray())


class Filter(Handle):
    """Answers rows as lists of numbers, bitmaps as bytes. Where both are written, guard values stand behind and must
    stay."""

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_filter_destroy")

    def bind_arrow(self, schema, columns):
        exported = export_schema(schema)
        try:
            self.library.call("quern_filter_bind_arrow", self.handle, ctypes.byref(exported), int32s(columns))
        finally:
            release_schema(exported)

    def _call(self, name, batch, *outputs):
        """A batch of the host's vectors, or an Arrow array, which stays the caller's."""
        num_passed = ctypes.c_uint64(_UNTOUCHED)
        if isinstance(batch, Batch):
            self.library.call(f"quern_filter_{name}", self.handle, ctypes.byref(batch), *outputs,
                              ctypes.byref(num_passed))
            return num_passed.value
        array = export_batch(batch)
        try:
            self.library.call(f"quern_filter_{name}_arrow", self.handle, ctypes.byref(array), *outputs,
                              ctypes.byref(num_passed))
            if not array.release:
                raise ContractError(f"quern_filter_{name}_arrow took over the array that it was shown")
        finally:
            release_array(array)
        return num_passed.value

    def select(self, batch, num_rows):
        rows = (ctypes.c_uint32 * (num_rows + 1))()
        rows[num_rows] = _GUARD
        num_passed = self._call("select", batch, rows)
        if rows[num_rows] != _GUARD or num_passed > num_rows:
            raise ContractError(
                f"quern_filter_select wrote behind {num_rows} rows, or says that {num_passed} of them pass")
        return rows[:num_passed]

    def bitmap(self, batch, num_rows):
        """(bitmap, how many rows pass)."""
        num_bytes = (num_rows + 7) // 8
        bits = ctypes.create_string_buffer(b"\xa5" * (num_bytes + 1), num_bytes + 1)
        num_passed = self._call("bitmap", batch, bits)
        if bits.raw[num_bytes] != 0xA5:
            raise ContractError(f"quern_filter_bitmap wrote behind {num_bytes} bytes")
        return bits.raw[:num_bytes], num_passed

    def count(self, batch):
        return self._call("count", batch)


_GUARD, _UNTOUCHED = 0xDEADBEEF, (1 << 64) - 1


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
    columns = [[Column() if array is None else raw_column(array, keep) for array in arrays]
               for arrays in (keys, payload)]
    batch = Batch(num_rows=num_rows, first_row_id=first_row_id)
    for name, side in zip(("keys", "payload"), columns):
        side = (Column * max(len(side), 1))(*side)
        keep.append(side)
        setattr(batch, name, ctypes.cast(side, ctypes.POINTER(Column)))
    if selection is not None:
        batch.selection = selection.buffer_info()[0]
        keep.append(selection)
    return batch
