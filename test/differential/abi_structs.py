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


class JoinStats(ctypes.Structure):
    _fields_ = [("build_rows", ctypes.c_uint64), ("table_rows", ctypes.c_uint64), ("directory_bytes", ctypes.c_uint64),
                ("tuple_bytes", ctypes.c_uint64), ("peak_bytes", ctypes.c_uint64),
                ("prefetch_distance", ctypes.c_uint32)]


class AggregateStats(ctypes.Structure):
    _fields_ = [("input_rows", ctypes.c_uint64), ("num_groups", ctypes.c_uint64), ("table_bytes", ctypes.c_uint64),
                ("num_growths", ctypes.c_uint64), ("peak_bytes", ctypes.c_uint64),
                ("prefetch_distance", ctypes.c_uint32)]


class SortStats(ctypes.Structure):
    _fields_ = [("input_rows", ctypes.c_uint64), ("num_rows", ctypes.c_uint64), ("dropped_rows", ctypes.c_uint64),
                ("collided_rows", ctypes.c_uint64), ("peak_bytes", ctypes.c_uint64), ("entry_bytes", ctypes.c_uint64),
                ("key_bits", ctypes.c_uint32)]


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
UPDATE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Column), ctypes.c_uint32,
                                   ctypes.POINTER(ctypes.c_uint32), _POINTERS, ctypes.c_uint64)
MERGE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _POINTERS, _POINTERS, ctypes.c_uint64)
FINALISE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _POINTERS, ctypes.c_uint64, ctypes.c_void_p,
                                     ctypes.c_void_p)


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


HANDLE = ctypes.c_void_p
ERROR = ctypes.POINTER(Error)
SIGNATURES = {
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
    "quern_prober_next_arrow": (ctypes.c_int,
                                [HANDLE, ctypes.POINTER(ArrowArray), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_cache_set_limit": (None, [ctypes.c_uint64]),
    "quern_cache_clear": (None, []),
}
# Added by version 1.1; Library.has() tells whether a library has one.
ADDED_SIGNATURES = {
    "quern_compile_with": (ctypes.c_int,
                           [ctypes.c_char_p, ctypes.POINTER(CompileOptions), ctypes.POINTER(HANDLE), ERROR]),
    "quern_kernel_get_counters": (None, [HANDLE, ctypes.POINTER(Counters)]),
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
AGGREGATE_SIGNATURES = {
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
    "quern_groups_create_partition": (ctypes.c_int,
                                      [HANDLE, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64,
                                       ctypes.POINTER(HANDLE), ERROR]),
    "quern_groups_destroy": (None, [HANDLE]),
    "quern_groups_next": (ctypes.c_int, [HANDLE, ctypes.POINTER(Result), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_groups_next_arrow": (ctypes.c_int,
                                [HANDLE, ctypes.POINTER(ArrowArray), ctypes.POINTER(ctypes.c_bool), ERROR]),
    "quern_aggregate_result_schema": (ctypes.c_int, [HANDLE, ctypes.c_int, ctypes.POINTER(ArrowSchema), ERROR]),
    "quern_aggregate_run": (ctypes.c_int,
                            [HANDLE, _BATCHES, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ON_RESULT,
                             ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ERROR]),
    "quern_register_aggregate": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(AggregateFunction), ERROR]),
}

# Added by version 1.3.
_RESULT, _ARRAY, _SCHEMA, _BOOL = (ctypes.POINTER(kind) for kind in (Result, ArrowArray, ArrowSchema, ctypes.c_bool))
_HANDLES, _UINT32S, _UINT64S = (ctypes.POINTER(kind) for kind in (HANDLE, ctypes.c_uint32, ctypes.c_uint64))
SORT_SIGNATURES = {
    "quern_sort_create": (ctypes.c_int, [HANDLE, ctypes.c_uint64, _HANDLES, ERROR]),
    "quern_sort_destroy": (None, [HANDLE]),
    "quern_sort_bind_arrow": (ctypes.c_int, [HANDLE, _SCHEMA, _INT32S, _INT32S, ERROR]),
    "quern_sort_result_schema": (ctypes.c_int, [HANDLE, _SCHEMA, ERROR]),
    "quern_sort_append": (ctypes.c_int, [HANDLE, _BATCHES, ctypes.c_bool, ERROR]),
    "quern_sort_append_arrow": (ctypes.c_int, [HANDLE, _ARRAY, ERROR]),
    "quern_sort_finalise": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_sort_finalise_shared": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_sort_method": (ctypes.c_char_p, [HANDLE]),
    "quern_sort_get_stats": (None, [HANDLE, ctypes.POINTER(SortStats)]),
    "quern_sort_get_threshold": (ctypes.c_int, [HANDLE, _RESULT, _BOOL, ERROR]),
    "quern_sort_set_threshold": (ctypes.c_int, [HANDLE, _BATCHES, ERROR]),
    "quern_sort_appender_create": (ctypes.c_int, [HANDLE, _HANDLES, ERROR]),
    "quern_sort_appender_destroy": (None, [HANDLE]),
    "quern_sort_appender_append": (ctypes.c_int, [HANDLE, _BATCHES, ctypes.c_bool, ERROR]),
    "quern_sort_appender_append_arrow": (ctypes.c_int, [HANDLE, _ARRAY, ERROR]),
    "quern_sort_appender_finish": (ctypes.c_int, [HANDLE, ERROR]),
    "quern_sorted_create": (ctypes.c_int, [HANDLE, ctypes.c_uint64, _HANDLES, ERROR]),
    "quern_sorted_destroy": (None, [HANDLE]),
    "quern_sorted_next": (ctypes.c_int, [HANDLE, _RESULT, _UINT64S, _BOOL, ERROR]),
    "quern_sorted_next_arrow": (ctypes.c_int, [HANDLE, _ARRAY, _UINT64S, _BOOL, ERROR]),
    "quern_sort_run": (ctypes.c_int,
                       [HANDLE, _BATCHES, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ON_RESULT, ctypes.c_void_p,
                        _UINT64S, ERROR]),
    "quern_merge_create": (ctypes.c_int, [HANDLE, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64, _HANDLES, ERROR]),
    "quern_merge_destroy": (None, [HANDLE]),
    "quern_merge_bind_arrow": (ctypes.c_int, [HANDLE, _SCHEMA, _INT32S, _INT32S, ERROR]),
    "quern_merge_result_schema": (ctypes.c_int, [HANDLE, _SCHEMA, ERROR]),
    "quern_merge_input": (ctypes.c_int, [HANDLE, ctypes.c_uint32, _BATCHES, ERROR]),
    "quern_merge_input_arrow": (ctypes.c_int, [HANDLE, ctypes.c_uint32, _ARRAY, ERROR]),
    "quern_merge_end": (ctypes.c_int, [HANDLE, ctypes.c_uint32, ERROR]),
    "quern_merge_next": (ctypes.c_int, [HANDLE, _RESULT, ctypes.POINTER(ctypes.c_int), _UINT32S, ERROR]),
    "quern_merge_next_arrow": (ctypes.c_int, [HANDLE, _ARRAY, ctypes.POINTER(ctypes.c_int), _UINT32S, ERROR]),
}

# Added by version 1.4. What comes out: row numbers, a bitmap, or nothing but the number of rows.
FILTER_SIGNATURES = {
    "quern_filter_create": (ctypes.c_int, [HANDLE, _HANDLES, ERROR]),
    "quern_filter_destroy": (None, [HANDLE]),
    "quern_filter_bind_arrow": (ctypes.c_int, [HANDLE, _SCHEMA, _INT32S, ERROR]),
    "quern_filter_select": (ctypes.c_int, [HANDLE, _BATCHES, ctypes.c_void_p, _UINT64S, ERROR]),
    "quern_filter_select_arrow": (ctypes.c_int, [HANDLE, _ARRAY, ctypes.c_void_p, _UINT64S, ERROR]),
    "quern_filter_bitmap": (ctypes.c_int, [HANDLE, _BATCHES, ctypes.c_void_p, _UINT64S, ERROR]),
    "quern_filter_bitmap_arrow": (ctypes.c_int, [HANDLE, _ARRAY, ctypes.c_void_p, _UINT64S, ERROR]),
    "quern_filter_count": (ctypes.c_int, [HANDLE, _BATCHES, _UINT64S, ERROR]),
    "quern_filter_count_arrow": (ctypes.c_int, [HANDLE, _ARRAY, _UINT64S, ERROR]),
}
