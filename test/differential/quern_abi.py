# SPDX-License-Identifier: Apache-2.0
"""libquern.so through its C ABI (hosts/c/quern.h), with ctypes. The structs below repeat the header's, field by field.

    library = Library("build/lib/libquern.so")
    kernel = library.compile("join.inner keys=i64 build=f64", engine="jit", params="batch_size=7")
    join = kernel.join()
    join.bind_arrow(build_schema, [0], [1], probe_schema, [0], [])
    join.append_arrow(batch)                     # pyarrow.RecordBatch or StructArray
    join.finalise()
    prober = join.prober(batch_rows=1000)
    prober.input_arrow(batch)
    for rows in prober.results_arrow(schema): ...

    aggregate = kernel.aggregate()                # of "aggregate keys=i64 aggs=sum(f64)"; bind, append and finalise as above
    with aggregate.groups(batch_rows=1000) as groups:
        array, more = groups.next_arrow()

A failed call raises QuernError with the library's text. Every handle closes once; `with` closes it at the end of the block.
"""
import ctypes
import os
import struct
import subprocess

import pyarrow as pa

STATUS_NAMES = ("OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL")
OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = range(6)
ENGINES = {"auto": 0, "jit": 1, "generic": 2}
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


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 1020)]


class Column(ctypes.Structure):
    pass


Column._fields_ = [("validity", ctypes.c_void_p), ("values", ctypes.c_void_p), ("offsets", ctypes.c_void_p),
                   ("buffers", ctypes.c_void_p), ("dictionary", ctypes.POINTER(Column)), ("bit_offset", ctypes.c_uint64)]


class Batch(ctypes.Structure):
    _fields_ = [("keys", ctypes.POINTER(Column)), ("payload", ctypes.POINTER(Column)), ("selection", ctypes.c_void_p),
                ("num_rows", ctypes.c_uint64), ("first_row_id", ctypes.c_uint64)]


class ResultColumn(ctypes.Structure):
    _fields_ = [("validity", ctypes.c_void_p), ("values", ctypes.c_void_p), ("offsets", ctypes.c_void_p), ("bytes", ctypes.c_void_p),
                ("num_bytes", ctypes.c_uint64), ("null_count", ctypes.c_uint64)]


class Result(ctypes.Structure):
    _fields_ = [("num_rows", ctypes.c_uint64), ("num_columns", ctypes.c_size_t), ("columns", ctypes.POINTER(ResultColumn))]


class JoinStats(ctypes.Structure):
    _fields_ = [("build_rows", ctypes.c_uint64), ("table_rows", ctypes.c_uint64), ("directory_bytes", ctypes.c_uint64),
                ("tuple_bytes", ctypes.c_uint64), ("peak_bytes", ctypes.c_uint64), ("prefetch_distance", ctypes.c_uint32)]


class AggregateStats(ctypes.Structure):
    _fields_ = [("input_rows", ctypes.c_uint64), ("num_groups", ctypes.c_uint64), ("table_bytes", ctypes.c_uint64),
                ("num_growths", ctypes.c_uint64), ("peak_bytes", ctypes.c_uint64), ("prefetch_distance", ctypes.c_uint32)]


_POINTERS = ctypes.POINTER(ctypes.c_void_p)
UPDATE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Column), ctypes.c_uint32,
                                   ctypes.POINTER(ctypes.c_uint32), _POINTERS, ctypes.c_uint64)
MERGE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _POINTERS, _POINTERS, ctypes.c_uint64)
FINALISE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _POINTERS, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)


class AggregateFunction(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("state_bytes", ctypes.c_uint32), ("result", ctypes.c_char_p),
                ("user", ctypes.c_void_p), ("update", UPDATE_FUNCTION), ("merge", MERGE_FUNCTION), ("finalise", FINALISE_FUNCTION)]


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
                        ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
                        ("dictionary", ctypes.POINTER(ArrowSchema)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                       ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                       ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))), ("dictionary", ctypes.POINTER(ArrowArray)),
                       ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]

RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))


def release_array(array):
    if array.release:
        RELEASE_ARRAY(array.release)(ctypes.byref(array))


def release_schema(schema):
    if schema.release:
        RELEASE_SCHEMA(schema.release)(ctypes.byref(schema))


def export_batch(batch):
    """A RecordBatch or StructArray as a struct array that the caller owns. A sliced StructArray keeps its offset."""
    array = ArrowArray()
    batch._export_to_c(ctypes.addressof(array))
    return array


def export_schema(schema):
    exported = ArrowSchema()
    schema._export_to_c(ctypes.addressof(exported))
    return exported


def _int32s(numbers):
    return (ctypes.c_int32 * max(len(numbers), 1))(*numbers)


HANDLE = ctypes.c_void_p
ERROR = ctypes.POINTER(Error)
_SIGNATURES = {
    "quern_abi_version": (ctypes.c_uint32, []),
    "quern_version": (ctypes.c_char_p, []),
    "quern_compile": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(HANDLE), ERROR]),
    "quern_kernel_destroy": (None, [HANDLE]),
    "quern_kernel_text": (ctypes.c_char_p, [HANDLE, ctypes.c_char_p]),
    "quern_join_create": (ctypes.c_int, [HANDLE, ctypes.c_uint64, ctypes.POINTER(HANDLE), ERROR]),
    "quern_join_destroy": (None, [HANDLE]),
    "quern_join_bind_arrow": (ctypes.c_int, [HANDLE] + [ctypes.POINTER(ArrowSchema), ctypes.POINTER(ctypes.c_int32),
                                                        ctypes.POINTER(ctypes.c_int32)] * 2 + [ERROR]),
    "quern_join_result_schema": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowSchema), ERROR]),
    "quern_join_append_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_join_append": (ctypes.c_int, [HANDLE, ctypes.POINTER(Batch), ctypes.c_bool, ERROR]),
    "quern_join_finalise": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_join_get_stats": (None, [HANDLE, ctypes.POINTER(JoinStats)]),
    "quern_prober_create": (ctypes.c_int, [HANDLE, ctypes.c_uint64, ctypes.POINTER(HANDLE), ERROR]),
    "quern_prober_destroy": (None, [HANDLE]),
    "quern_prober_input": (ctypes.c_int, [HANDLE, ctypes.POINTER(Batch), ERROR]),
    "quern_prober_input_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_prober_next": (ctypes.c_int, [HANDLE, ctypes.POINTER(Result), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_prober_next_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_cache_set_limit": (None, [ctypes.c_uint64]),
    "quern_cache_clear": (None, []),
}
# Added by version 1.1; Library.has() tells whether a library has one.
_ADDED_SIGNATURES = {
    "quern_prober_input_unmatched": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_appender_create": (ctypes.c_int, [HANDLE, ctypes.POINTER(HANDLE), ERROR]),
    "quern_appender_append": (ctypes.c_int, [HANDLE, ctypes.POINTER(Batch), ctypes.c_bool, ERROR]),
    "quern_appender_append_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_appender_finish": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_appender_destroy": (None, [HANDLE]),
    "quern_join_finalise_shared": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_join_layout": (ctypes.c_char_p, [HANDLE]),
}
# Added by version 1.2.
ON_RESULT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(Result))
_INT32S, _BATCHES = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(Batch)
_AGGREGATE_SIGNATURES = {
    "quern_aggregate_create": (ctypes.c_int, [HANDLE, ctypes.c_uint64, ctypes.POINTER(HANDLE), ERROR]),
    "quern_aggregate_destroy": (None, [HANDLE]),
    "quern_aggregate_hint_groups": (ctypes.c_int, [HANDLE, ctypes.c_uint64, ERROR]),
    "quern_aggregate_hint_range": (ctypes.c_int, [HANDLE, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64, ERROR]),
    "quern_aggregate_bind_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowSchema), _INT32S, _INT32S, ERROR]),
    "quern_aggregate_append": (ctypes.c_int, [HANDLE, _BATCHES, ERROR]),
    "quern_aggregate_append_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_aggregate_append_states": (ctypes.c_int, [HANDLE, _BATCHES, ERROR]),
    "quern_aggregate_append_states_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_aggregate_finalise": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_aggregate_finalise_shared": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_aggregate_layout": (ctypes.c_char_p, [HANDLE]),
    "quern_aggregate_get_stats": (None, [HANDLE, ctypes.POINTER(AggregateStats)]),
    "quern_aggregate_appender_create": (ctypes.c_int, [HANDLE, ctypes.POINTER(HANDLE), ERROR]),
    "quern_aggregate_appender_destroy": (None, [HANDLE]),
    "quern_aggregate_appender_append": (ctypes.c_int, [HANDLE, _BATCHES, ERROR]),
    "quern_aggregate_appender_append_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_aggregate_appender_append_states": (ctypes.c_int, [HANDLE, _BATCHES, ERROR]),
    "quern_aggregate_appender_append_states_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ERROR]),
    "quern_aggregate_appender_finish": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_groups_create": (ctypes.c_int, [HANDLE, ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(HANDLE), ERROR]),
    "quern_groups_create_partition": (ctypes.c_int, [HANDLE, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64,
                                                     ctypes.POINTER(HANDLE), ERROR]),
    "quern_groups_destroy": (None, [HANDLE]),
    "quern_groups_next": (ctypes.c_int, [HANDLE, ctypes.POINTER(Result), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_groups_next_arrow": (ctypes.c_int, [HANDLE, ctypes.POINTER(ArrowArray), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_aggregate_result_schema": (ctypes.c_int, [HANDLE, ctypes.c_int, ctypes.POINTER(ArrowSchema), ERROR]),
    "quern_aggregate_run": (ctypes.c_int, [HANDLE, _BATCHES, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ON_RESULT,
                                           ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ERROR]),
    "quern_register_aggregate": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(AggregateFunction), ERROR]),
}


def library_path(path=None):
    path = path or os.environ.get("QUERN_LIB")
    if not path:
        raise SystemExit("no libquern.so: give --lib PATH or set QUERN_LIB")
    return path


# By the symbol that a library built with a sanitizer wants: what must be in the process before it, in the names of GCC and of Clang.
_SANITIZERS = ((b"__asan_init", "libasan.so", "libclang_rt.asan-x86_64.so"), (b"__tsan_init", "libtsan.so", "libclang_rt.tsan-x86_64.so"))


_SANITIZER_STATUS = 99  # of a process that a sanitizer ends; its own default is 1, as that of a failure which was reported


def _dynamic_names(content):
    """The names of an ELF file's dynamic section and symbols. (The whole file has more: LLVM's own literals name every sanitizer.)"""
    SHT_DYNSYM = 11
    (first,), (size, num_sections) = struct.unpack_from("<Q", content, 0x28), struct.unpack_from("<HH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQI", content, first + number * size) for number in range(num_sections)]
    strings = next(section[6] for section in sections if section[1] == SHT_DYNSYM)
    offset, num_bytes = sections[strings][4:6]
    return content[offset:offset + num_bytes].split(b"\0")


def environment_for(library):
    """The environment of a Python that can load the library: a sanitizer's runtime comes first, and does not count Python's own leaks."""
    environment = dict(os.environ, PYTHONMALLOC="malloc")
    with open(library, "rb") as file:
        content = file.read()
    names = _dynamic_names(content)
    for symbol, of_gcc, of_clang in _SANITIZERS:
        if symbol not in names:
            continue
        compiler, name = (("gcc", "g++"), of_gcc) if of_gcc.encode() + b"." in content else (("clang-22", "clang"), of_clang)
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
        added = {name: signature for name, signature in (_ADDED_SIGNATURES | _AGGREGATE_SIGNATURES).items() if self.has(name)}
        for name, (result, arguments) in (_SIGNATURES | added).items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        version = self._library.quern_abi_version()
        self.knows_kinds = version >= ABI_VERSION_OF_KINDS
        self.knows_aggregates = all(self.has(name) for name in _AGGREGATE_SIGNATURES)
        if version // 1000 != ABI_VERSION_MAJOR:
            raise SystemExit(f"{self.path} has ABI version {version}; accepted: {ABI_VERSION_MAJOR}.*")

    def function(self, name):
        return getattr(self._library, name)

    def has(self, name):
        return hasattr(self._library, name)

    def call(self, name, *arguments):
        """Calls a function whose last parameter is the error object; raises what it says."""
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

    def join(self, memory_limit=0):
        handle = HANDLE()
        self.library.call("quern_join_create", self.handle, memory_limit, ctypes.byref(handle))
        return Join(self.library, handle)

    def aggregate(self, memory_limit=0):
        handle = HANDLE()
        self.library.call("quern_aggregate_create", self.handle, memory_limit, ctypes.byref(handle))
        return Aggregate(self.library, handle)


def _move_in(library, name, handle, batch):
    array = batch if isinstance(batch, ArrowArray) else export_batch(batch)
    try:
        library.call(name, handle, ctypes.byref(array))
    finally:
        moved = not array.release
        release_array(array)
        if not moved:
            raise ContractError(f"{name} did not take over the array that it was given (its release callback is still there)")


class Join(Handle):
    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_join_destroy")

    def bind_arrow(self, build, build_keys, build_payload, probe, probe_keys, probe_payload):
        schemas = [export_schema(build), export_schema(probe)]
        try:
            self.library.call("quern_join_bind_arrow", self.handle, ctypes.byref(schemas[0]), _int32s(build_keys), _int32s(build_payload),
                              ctypes.byref(schemas[1]), _int32s(probe_keys), _int32s(probe_payload))
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
        """The table's layout, after finalise; None from a library that does not tell."""
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


class _Appending(Handle):
    """What an aggregation and its appenders have in common: rows, or states, in two ways. `prefix`: of its functions."""
    prefix = ""

    def append(self, batch, states=False):
        self.library.call(f"{self.prefix}_append{'_states' if states else ''}", self.handle, ctypes.byref(batch))

    def append_arrow(self, batch, states=False):
        _move_in(self.library, f"{self.prefix}_append{'_states' if states else ''}_arrow", self.handle, batch)


class Aggregate(_Appending):
    prefix = "quern_aggregate"

    def __init__(self, library, handle):
        super().__init__(library, handle, "quern_aggregate_destroy")

    def hint_groups(self, expected_groups):
        self.library.call("quern_aggregate_hint_groups", self.handle, expected_groups)

    def hint_range(self, key, least, greatest):
        self.library.call("quern_aggregate_hint_range", self.handle, key, least, greatest)

    def bind_arrow(self, schema, keys, payload):
        exported = export_schema(schema)
        try:
            self.library.call("quern_aggregate_bind_arrow", self.handle, ctypes.byref(exported), _int32s(keys), _int32s(payload))
        finally:
            release_schema(exported)

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
            self.library.call("quern_groups_create", self.handle, GROUP_COLUMNS[columns], batch_rows, ctypes.byref(handle))
        else:
            self.library.call("quern_groups_create_partition", self.handle, GROUP_COLUMNS[columns], *partition, batch_rows,
                              ctypes.byref(handle))
        return Groups(self.library, handle)

    def run(self, batches, threads, batch_rows, on_result):
        """The whole aggregation of raw batches; on_result(Result) answers whether to go on. Answers the number of groups."""
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
    columns = [[Column() if array is None else raw_column(array, keep) for array in arrays] for arrays in (keys, payload)]
    batch = Batch(num_rows=num_rows, first_row_id=first_row_id)
    for name, side in zip(("keys", "payload"), columns):
        side = (Column * max(len(side), 1))(*side)
        keep.append(side)
        setattr(batch, name, ctypes.cast(side, ctypes.POINTER(Column)))
    if selection is not None:
        batch.selection = selection.buffer_info()[0]
        keep.append(selection)
    return batch
