# SPDX-License-Identifier: Apache-2.0
"""Loops that are written by hand for a few queries (hand_written/*.cc), as one more engine: what is left to win beyond
Quern's kernels. They run over the Arrow tables that Quern reads, and give an Arrow table."""
import ctypes
import os

import pyarrow as pa

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.path.join(ROOT, "build", "lib", "libhand_written_queries.so")
QUERIES = ("tpch.1", "tpch.3", "tpch.6", "tpch.9")
# Bytes of the structs of the Arrow C data interface.
SCHEMA_BYTES, ARRAY_BYTES = 72, 80


class _Table(ctypes.Structure):
    """quern::bench::ArrowTable"""
    _fields_ = [("name", ctypes.c_char_p), ("schema", ctypes.c_void_p), ("array", ctypes.c_void_p)]


def _pointer(capsule, name):
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer_of(capsule, name)


class HandWritten:
    """Batches of 1,024 rows, a loop for each step, prefetches between them, hash tables of their own."""

    name = "hand-written"

    def __init__(self, threads):
        if not os.path.isfile(LIBRARY):
            raise SystemExit(f"no library of the loops: {LIBRARY}; accepted: one that "
                             "`cmake --build build --target hand_written_queries` has made")
        self._run = ctypes.CDLL(LIBRARY).quern_hand_written_run
        self._run.restype = ctypes.c_char_p
        self._run.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Table), ctypes.c_size_t, ctypes.c_uint, ctypes.c_char_p,
                              ctypes.c_char_p]
        self._threads, self._capsules, self._tables = threads, [], None

    def version(self):
        return "loops"

    def supports(self, query):
        return query.name in QUERIES

    def variants(self, _suite):
        return ("loops",)

    def load(self, _suite, tables):
        self._capsules, self._tables = [], (_Table * len(tables))()
        for place, (name, table) in zip(self._tables, tables.items()):
            batches = table.to_batches()
            if len(batches) != 1:
                raise ValueError(f"table of several batches: {name}; accepted: one batch, as query_tables.py makes it")
            schema, array = batches[0].__arrow_c_array__()
            self._capsules += [schema, array]  # which keep the buffers
            place.name, place.schema, place.array = (name.encode(), _pointer(schema, b"arrow_schema"),
                                                     _pointer(array, b"arrow_array"))

    def run(self, query, _variant):
        schema, array = ctypes.create_string_buffer(SCHEMA_BYTES), ctypes.create_string_buffer(ARRAY_BYTES)
        error = self._run(query.name.encode(), self._tables, len(self._tables), self._threads, array, schema)
        if error is not None:
            raise ValueError(f"{query.name}: {error.decode()}")
        return pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))

    def table(self, result):
        return pa.Table.from_batches([result])

    def drop(self):
        self._capsules, self._tables = [], None
