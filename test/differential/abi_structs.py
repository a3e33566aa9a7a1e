# SPDX-License-Identifier: Apache-2.0
"""The structs of hosts/c/quern.h and of Arrow's C data interface, field by field, and the signatures of the functions,
for quern_abi.py."""
import ctypes


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 1020)]


class Column(ctypes.Structure):
    pass


Column._fields_ = [("validity", ctypes.c_void_p), ("values", ctypes.c_void_p), ("offsets", ctypes.c_void_p),
                   ("buffers", ctypes.c_void_p), ("dictionary", ctypes.POINTER(Column)),
                   ("bit_offset", ctypes.c_uint64), ("selection", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                   ("value_bytes", ctypes.c_uint32), ("num_bytes", ctypes.c_uint64), ("null_count", ctypes.c_uint64),
                   ("reserved", ctypes.c_uint64)]


class Batch(ctypes.Structure):
    _fields_ = [("keys", ctypes.POINTER(Column)), ("payload", ctypes.POINTER(Column)), ("selection", ctypes.c_void_p),
                ("num_rows", ctypes.c_uint64), ("first_row_id", ctypes.c_uint64), ("struct_size", ctypes.c_size_t)]


class Result(ctypes.Structure):
    _fields_ = [("num_rows", ctypes.c_uint64), ("num_columns", ctypes.c_size_t),
                ("columns", ctypes.POINTER(Column)), ("state", ctypes.c_int), ("run", ctypes.c_uint32),
                ("position", ctypes.c_uint64)]


class KeyRange(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint32), ("min", ctypes.c_int64), ("max", ctypes.c_int64)]


_NUMBER = ctypes.POINTER(ctypes.c_uint64)
WRITE_BLOCK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, _NUMBER)
READ_BLOCK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
FREE_BLOCK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


RESERVE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)


class SpillOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("folder", ctypes.c_char_p), ("max_bytes", ctypes.c_uint64),
                ("block_bytes", ctypes.c_uint64), ("write_block", WRITE_BLOCK), ("read_block", READ_BLOCK),
                ("free_block", FREE_BLOCK)]


ON_ROWS = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(Batch))


class JobOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("memory_limit", ctypes.c_uint64), ("num_runs", ctypes.c_uint32),
                ("expected_groups", ctypes.c_uint64), ("key_ranges", ctypes.POINTER(KeyRange)),
                ("num_key_ranges", ctypes.c_size_t), ("reserve", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("host", ctypes.c_void_p), ("stop", ctypes.c_void_p), ("residual", ctypes.c_void_p),
                ("residual_user", ctypes.c_void_p), ("row_id_bytes", ctypes.c_uint32),
                ("spill", ctypes.POINTER(SpillOptions)), ("tables", ctypes.POINTER(ctypes.c_void_p)),
                ("num_tables", ctypes.c_size_t), ("on_rows", ON_ROWS), ("rows_context", ctypes.c_void_p)]


class InputOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("run", ctypes.c_uint32), ("copy_bytes", ctypes.c_bool),
                ("format", ctypes.c_uint32), ("context", ctypes.c_void_p)]


class OutputOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("batch_rows", ctypes.c_uint64), ("partition", ctypes.c_uint32),
                ("num_partitions", ctypes.c_uint32), ("context", ctypes.c_void_p)]


_NUMBERS = ctypes.POINTER(ctypes.c_uint32)


class PipelineStep(ctypes.Structure):
    _fields_ = [("job", ctypes.c_void_p), ("keys", _NUMBERS), ("num_keys", ctypes.c_size_t), ("payload", _NUMBERS),
                ("num_payload", ctypes.c_size_t), ("context", ctypes.c_void_p)]


class PipelineOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("columns", ctypes.c_char_p),
                ("steps", ctypes.POINTER(PipelineStep)), ("num_steps", ctypes.c_size_t), ("keys", _NUMBERS),
                ("num_keys", ctypes.c_size_t), ("payload", _NUMBERS), ("num_payload", ctypes.c_size_t),
                ("copy_bytes", ctypes.c_bool), ("piece_rows", ctypes.c_uint64), ("on_rows", ON_ROWS),
                ("context", ctypes.c_void_p)]


class RunInput(ctypes.Structure):
    _fields_ = [("port", ctypes.c_int), ("batches", ctypes.POINTER(Batch)), ("num_batches", ctypes.c_size_t)]


ON_RESULT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(Result))


class RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32), ("batch_rows", ctypes.c_uint64),
                ("on_result", ON_RESULT), ("context", ctypes.c_void_p)]


_SPILL_STATS = ("spilled_bytes", "spilled_rows", "unspilled_bytes", "spill_levels", "spill_waits")
_STATS = ("input_rows", "num_rows", "used_bytes", "peak_bytes", "directory_bytes", "tuple_bytes", "table_bytes",
          "num_growths", "dropped_rows", "collided_rows", "entry_bytes")


class JobStats(ctypes.Structure):
    _fields_ = ([("struct_size", ctypes.c_size_t), ("layout", ctypes.c_char_p)] +
                [(name, ctypes.c_uint64) for name in _STATS] +
                [("key_bits", ctypes.c_uint32), ("prefetch_distance", ctypes.c_uint32)] +
                [(name, ctypes.c_uint64) for name in _SPILL_STATS])


class CompileOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("engine", ctypes.c_int), ("when", ctypes.c_int),
                ("params", ctypes.c_char_p), ("expected_rows", ctypes.c_uint64),
                ("compile_after_rows", ctypes.c_uint64), ("swap_waits", ctypes.c_bool)]


_COUNTERS = ("rows", "batches", "ns", "tag_hits", "chain_steps", "growths", "generic_rows", "generic_batches",
             "compiled_rows", "compiled_batches")


class Counters(ctypes.Structure):
    _fields_ = ([("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in _COUNTERS] +
                [(name, ctypes.c_char_p) for name in ("prefetch_class", "tier", "cache")])


_POINTERS = ctypes.POINTER(ctypes.c_void_p)
UPDATE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Column),
                                   ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32), _POINTERS, ctypes.c_uint64)
MERGE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _POINTERS, _POINTERS, ctypes.c_uint64)
FINALISE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _POINTERS, ctypes.c_uint64,
                                     ctypes.c_void_p, ctypes.c_void_p)


class AggregateFunction(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("state_bytes", ctypes.c_uint32), ("result", ctypes.c_char_p),
                ("user", ctypes.c_void_p), ("update", UPDATE_FUNCTION), ("merge", MERGE_FUNCTION),
                ("finalise", FINALISE_FUNCTION)]


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
                        ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                        ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
                        ("dictionary", ctypes.POINTER(ArrowSchema)), ("release", ctypes.c_void_p),
                        ("private_data", ctypes.c_void_p)]


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                       ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                       ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children",
                                                                      ctypes.POINTER(ctypes.POINTER(ArrowArray))),
                       ("dictionary", ctypes.POINTER(ArrowArray)),
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


def int32s(numbers):
    return (ctypes.c_int32 * max(len(numbers), 1))(*numbers)


def uint32s(numbers):
    return (ctypes.c_uint32 * max(len(numbers), 1))(*numbers)


def sized(kind, **members):
    """A struct that begins with its size."""
    return kind(struct_size=ctypes.sizeof(kind), **members)


HANDLE = ctypes.c_void_p
_HANDLES, _INT32S, _UINT64S = (ctypes.POINTER(kind) for kind in (HANDLE, ctypes.c_int32, ctypes.c_uint64))
_BATCH, _ARRAY, _SCHEMA = (ctypes.POINTER(kind) for kind in (Batch, ArrowArray, ArrowSchema))
_RESULT, _TEXT, _ROWS = ctypes.POINTER(ctypes.POINTER(Result)), ctypes.c_char_p, ctypes.c_void_p
# Functions that return a status: their parameters, without the error object at the end.
_CALLS = {
    "quern_compile": [_TEXT, ctypes.c_int, _TEXT, _HANDLES],
    "quern_compile_with": [_TEXT, ctypes.POINTER(CompileOptions), _HANDLES],
    "quern_register_aggregate": [_TEXT, ctypes.POINTER(AggregateFunction)],
    "quern_job_create": [HANDLE, ctypes.POINTER(JobOptions), _HANDLES],
    "quern_job_step": [HANDLE, ctypes.c_size_t, _HANDLES],
    "quern_job_bind_arrow": [HANDLE, ctypes.c_int, _SCHEMA, _INT32S, _INT32S],
    "quern_job_result_schema": [HANDLE, ctypes.c_int, _SCHEMA],
    "quern_job_work": [HANDLE, ctypes.POINTER(ctypes.c_int)],
    "quern_job_finalise": [HANDLE],
    "quern_job_filter": [HANDLE, _BATCH, _ROWS, ctypes.c_void_p, _UINT64S],
    "quern_job_filter_arrow": [HANDLE, _ARRAY, ctypes.c_void_p, _ROWS, ctypes.c_void_p, _UINT64S],
    "quern_job_run": [HANDLE, ctypes.POINTER(RunInput), ctypes.c_size_t, ctypes.POINTER(RunOptions), _UINT64S],
    "quern_input_create": [HANDLE, ctypes.c_int, ctypes.POINTER(InputOptions), _HANDLES],
    "quern_pipeline_input_create": [HANDLE, ctypes.c_int, ctypes.POINTER(PipelineOptions), _HANDLES],
    "quern_input_append": [HANDLE, _BATCH],
    "quern_input_append_arrow": [HANDLE, _ARRAY, ctypes.c_void_p],
    "quern_input_finish": [HANDLE],
    "quern_output_create": [HANDLE, ctypes.c_int, ctypes.POINTER(OutputOptions), _HANDLES],
    "quern_output_push": [HANDLE, _BATCH],
    "quern_output_push_arrow": [HANDLE, _ARRAY, ctypes.c_void_p],
    "quern_output_next": [HANDLE, _RESULT],
    "quern_output_next_arrow": [HANDLE, _ARRAY, _RESULT],
}
# All functions: the type of the result, and the parameters.
SIGNATURES = {
    **{name: (ctypes.c_int, [*parameters, ctypes.POINTER(Error)]) for name, parameters in _CALLS.items()},
    **{f"quern_{kind}_destroy": (None, [HANDLE]) for kind in ("kernel", "job", "input", "output")},
    "quern_abi_version": (ctypes.c_uint32, []),
    "quern_version": (_TEXT, []),
    "quern_kernel_text": (_TEXT, [HANDLE, _TEXT]),
    "quern_kernel_get_counters": (None, [HANDLE, ctypes.POINTER(Counters)]),
    "quern_job_cancel": (None, [HANDLE]),
    "quern_job_get_stats": (None, [HANDLE, ctypes.POINTER(JobStats)]),
    "quern_job_used_bytes": (ctypes.c_uint64, [HANDLE]),
    "quern_job_get_counters": (None, [HANDLE, ctypes.POINTER(Counters)]),
    "quern_cache_set_limit": (None, [ctypes.c_uint64]),
    "quern_cache_clear": (None, []),
}
