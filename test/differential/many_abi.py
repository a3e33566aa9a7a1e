# SPDX-License-Identifier: Apache-2.0
"""The C ABI with as few Python objects a call as can be: handles and addresses are numbers, and batches and their
columns are numpy arrays that have the layout of quern_batch and quern_column.

    calls = Calls("build/lib/libquern.so")
    batches = Batches(keys, payload, cuts)                    all batches of all data sets
    with calls.handle("job", kernel, None) as join:           raises quern_abi.QuernError
        with calls.handle("input", join, BUILD, None) as rows:
            calls("quern_input_append", rows, batches.address(3))
            calls("quern_input_finish", rows)

A Collector copies the buffers of results as they come, and joins them when all data sets have run.
"""
import contextlib
import ctypes
import dataclasses
import struct

import numpy as np
import pyarrow as pa

import abi_structs
import quern_abi
from random_data import STRING_TYPES

_COLUMN_WORDS, _BATCH_WORDS, _ROWS_WORDS, _RESULT_WORDS = 11, 6, 4, 5


def _untyped(argument):
    """Pointers as numbers."""
    return ctypes.c_void_p if hasattr(argument, "contents") or argument is ctypes.c_char_p else argument


class Calls:
    """Functions of the library by name. A call whose status is not QUERN_OK raises QuernError."""

    def __init__(self, path):
        self._library, self._functions = ctypes.CDLL(path), {}
        for name, (result, arguments) in abi_structs.SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, [_untyped(argument) for argument in arguments]
            self._functions[name] = function
        self._error, self._stats = abi_structs.Error(), abi_structs.sized(abi_structs.JobStats)
        self._error_at, self._stats_at = ctypes.addressof(self._error), ctypes.addressof(self._stats)
        self._out = ctypes.c_uint64()
        self._out_at = ctypes.addressof(self._out)

    def __call__(self, name, *arguments):
        status = self._functions[name](*arguments, self._error_at)
        if status:
            raise quern_abi.QuernError(status, self._error.text.decode("utf-8", "replace"))

    def answer(self, name, *arguments):
        """The handle, number or pointer that a function leaves in its last parameter."""
        self(name, *arguments, self._out_at)
        return self._out.value

    @contextlib.contextmanager
    def handle(self, kind, *arguments):
        """A job, an input or an output."""
        made = self.answer(f"quern_{kind}_create", *arguments)
        try:
            yield made
        finally:
            self._functions[f"quern_{kind}_destroy"](made)

    def layout(self, job):
        self._functions["quern_job_get_stats"](job, self._stats_at)
        return self._stats.layout.decode()

    def read(self, output, collector):
        """All results of an output, or of the batch that was pushed, into the collector."""
        state = quern_abi.MORE
        while state == quern_abi.MORE:
            result = (ctypes.c_uint64 * _RESULT_WORDS).from_address(self.answer("quern_output_next", output))
            collector.take(result[0], result[1], result[2])
            state = result[3] & 0xFFFFFFFF  # then the run

    def move_rows(self, output, rows):
        """All arrays of an output into an input."""
        array, state = abi_structs.ArrowArray(), quern_abi.MORE
        address = ctypes.addressof(array)
        while state == quern_abi.MORE:
            result = abi_structs.Result.from_address(self.answer("quern_output_next_arrow", output, address))
            state = result.state
            self("quern_input_append_arrow", rows, address, None)


# ---- what goes in ----------------------------------------------------------------------------------------------------


def _fields(array, keep):
    """(validity, values, bytes a row of values, offsets, bytes a row of offsets, buffers, dictionary)."""
    column = quern_abi.raw_column(array, keep)
    address = lambda pointer: pointer or 0
    dictionary = ctypes.addressof(column.dictionary.contents) if column.dictionary else 0
    arrow_type = array.type
    if pa.types.is_dictionary(arrow_type):
        steps = (arrow_type.index_type.bit_width // 8, 0)
    elif pa.types.is_boolean(arrow_type):
        steps = (0, 0)
    elif pa.types.is_binary_view(arrow_type) or pa.types.is_string_view(arrow_type):
        steps = (16, 0)
    elif len(array.buffers()) == 3:
        steps = (0, 8 if pa.types.is_large_binary(arrow_type) or pa.types.is_large_string(arrow_type) else 4)
    else:
        steps = (arrow_type.bit_width // 8, 0)
    return (address(column.validity), address(column.values), steps[0], address(column.offsets), steps[1],
            address(column.buffers), dictionary)


@dataclasses.dataclass
class Cut:
    """A batch: rows [first, end) of the table, or those of them that `selection` lists, counted from `first`."""
    first: int
    end: int
    selection: np.ndarray | None


class Batches:
    """quern_batch, and quern_arrow_rows with slices of one struct array, for each cut. A payload of None is a rowid.
    Row ids are the numbers of rows in the table."""

    def __init__(self, keys, payload, cuts):
        self._keep, self.cuts = [], cuts
        first = np.array([cut.first for cut in cuts], np.uint64)
        self._keys, self._payload = self._columns(keys, first), self._columns(payload, first)
        batches = np.zeros((max(len(cuts), 1), _BATCH_WORDS), np.uint64)
        rows = np.zeros((max(len(cuts), 1), _ROWS_WORDS), np.uint64)
        for number, cut in enumerate(cuts):
            selection = 0 if cut.selection is None else cut.selection.ctypes.data
            num_rows = cut.end - cut.first if cut.selection is None else len(cut.selection)
            batches[number] = (self._address(self._keys, keys, number), self._address(self._payload, payload, number),
                               selection, num_rows, cut.first, 0)
            rows[number] = (8 * _ROWS_WORDS, selection, num_rows, cut.first)
        self._batches, self._rows = batches, rows
        self.at, self.rows_at = batches.ctypes.data, rows.ctypes.data

    def _columns(self, arrays, first):
        table = np.zeros((len(first), max(len(arrays), 1), _COLUMN_WORDS), np.uint64)
        for number, array in enumerate(arrays):
            if array is None:
                continue
            validity, values, step, offsets, offset_step, buffers, dictionary = _fields(array, self._keep)
            columns = table[:, number]
            columns[:, 0], columns[:, 1], columns[:, 5] = validity, values + first * np.uint64(step), first
            columns[:, 2] = offsets + first * np.uint64(offset_step)
            columns[:, 3], columns[:, 4] = buffers, dictionary
        return table

    @staticmethod
    def _address(table, arrays, number):
        return table.ctypes.data + number * 8 * _COLUMN_WORDS * max(len(arrays), 1)

    def address(self, number):
        return self.at + number * 8 * _BATCH_WORDS

    def rows_address(self, number):
        return self.rows_at + number * 8 * _ROWS_WORDS


class ArrowSide:
    """The columns of a side as the children of one struct array."""

    def __init__(self, keys, payload):
        distinct = list({id(array): array for array in (*keys, *payload) if array is not None}.values())
        place = {id(array): number for number, array in enumerate(distinct)}
        fields = [pa.field(f"c{number}", array.type, True) for number, array in enumerate(distinct)]
        self.struct = pa.StructArray.from_arrays(distinct, fields=fields) if distinct else None
        self._schema = abi_structs.export_schema(pa.schema(fields))
        self.schema_at = ctypes.addressof(self._schema)
        self._keys = abi_structs.int32s([place[id(array)] for array in keys])
        self._payload = abi_structs.int32s([-1 if array is None else place[id(array)] for array in payload])
        self.keys_at, self.payload_at = ctypes.addressof(self._keys), ctypes.addressof(self._payload)
        self._array = abi_structs.ArrowArray()

    def bind(self, calls, job, port):
        calls("quern_job_bind_arrow", job, port, self.schema_at, self.keys_at, self.payload_at)

    def exported(self, cut):
        """The address of a struct array of the cut's rows, which the library moves in."""
        self.struct.slice(cut.first, cut.end - cut.first)._export_to_c(ctypes.addressof(self._array))
        return ctypes.addressof(self._array)

    def release(self):
        """Releases the last array, where the library only reads it."""
        abi_structs.release_array(self._array)

    def __del__(self):
        abi_structs.release_schema(self._schema)


# ---- what comes out --------------------------------------------------------------------------------------------------


class _Chunks:
    """The buffers of one result column, result by result."""

    def __init__(self, column_type):
        self.type = column_type
        self.validity, self.values, self.offsets, self.bytes = [], [], [], []
        self._valid = self._strings = None
        name = column_type.name
        self.kind = ("bit" if name == "bool" else "view" if name.endswith("_view") else
                     "strings" if name in STRING_TYPES else "fixed")
        self.width = (16 if self.kind == "view" else (8 if name.startswith("large") else 4) if self.kind == "strings"
                      else 0 if self.kind == "bit" else column_type.bits_arrow().bit_width // 8)

    def take(self, num_rows, validity, values, offsets, data, num_bytes):
        at = ctypes.string_at
        self.validity.append(at(validity, (num_rows + 7) // 8) if validity else None)
        if self.kind == "fixed":
            self.values.append(at(values, num_rows * self.width))
        elif self.kind == "bit":
            self.values.append(at(values, (num_rows + 7) // 8))
        elif self.kind == "strings":
            self.offsets.append(at(offsets, (num_rows + 1) * self.width))
            self.values.append(at(values, num_bytes) if num_bytes else b"")
        else:
            self.values.append(at(values, num_rows * 16))
            self.bytes.append(at(data, num_bytes) if num_bytes else b"")

    def spoil(self, place):
        """Changes the first value of a result; answers whether there was one that it knows to change."""
        data, validity = bytearray(self.values[place]), self.validity[place]
        if self.kind == "view" or not data or validity is not None and not validity[0] & 1:
            return False
        data[max(self.width - 1, 0) if self.kind == "fixed" else 0] ^= 0x40 if self.kind == "fixed" else 1
        self.values[place] = bytes(data)
        return True

    def valid(self, counts):
        """Which rows of all results are not null."""
        if self._valid is None:
            self._valid = np.ones(sum(counts), bool)
            if any(self.validity):
                self._valid = _bits([b"\xff" * ((count + 7) // 8) if bits is None else bits
                                     for bits, count in zip(self.validity, counts)], counts)
        return self._valid

    def numbers(self, counts):
        """Fixed width: one unsigned number a row, or a row of bytes where it is wider."""
        if self.kind == "bit":
            return _bits(self.values, counts).astype(np.uint64)
        joined = b"".join(self.values)
        if self.type.name not in ("fixed_binary", "decimal128"):
            return np.frombuffer(joined, f"u{self.width}").astype(np.uint64)
        return pa.Array.from_buffers(pa.binary(self.width), sum(counts), [None, pa.py_buffer(joined)])

    def strings(self, counts):
        """As large_binary; what is under a null is of no meaning."""
        if self._strings is None:
            self._strings = self._views(counts) if self.kind == "view" else self._joined(counts)
        return self._strings

    def _joined(self, counts):
        lengths = [np.diff(np.frombuffer(offsets, f"i{self.width}")) for offsets in self.offsets]
        offsets = np.zeros(sum(counts) + 1, np.int64)
        np.cumsum(np.concatenate(lengths or [np.zeros(0)]), out=offsets[1:])
        return pa.Array.from_buffers(pa.large_binary(), sum(counts),
                                     [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(self.values))])

    def _views(self, counts):
        views = np.frombuffer(b"".join(self.values), np.int32).reshape(-1, 4).copy()
        begin = np.cumsum([0] + [len(data) for data in self.bytes])[:-1]
        views[:, 3] += np.where(views[:, 0] > 12, np.repeat(begin, counts), 0).astype(np.int32)
        views[~self.valid(counts)] = 0
        array = pa.Array.from_buffers(pa.binary_view(), len(views),
                                      [None, pa.py_buffer(views), pa.py_buffer(b"".join(self.bytes))])
        return array.cast(pa.large_binary())


def _bits(bitmaps, counts):
    """The bits of bitmaps, each of which begins with a byte of its own."""
    counts = np.asarray(counts, np.int64)
    skipped = -counts % 8
    shift = np.cumsum(skipped) - skipped
    places = np.arange(counts.sum()) + np.repeat(shift, counts)
    return np.unpackbits(np.frombuffer(b"".join(bitmaps), np.uint8), bitorder="little")[places].astype(bool)


class Collector:
    """The results of one engine over all data sets. `errors`: of data sets that failed, whose rows do not count."""

    def __init__(self, types):
        self.columns = [_Chunks(column_type) for column_type in types]
        self.counts, self.sets, self.errors = [], [], {}
        self.rows_of_set = {}
        self._unpack = struct.Struct(f"{_COLUMN_WORDS * len(types)}Q").unpack
        self._set = self._in_set = 0

    def begin(self, number):
        self._set, self._in_set = number, 0

    def end(self, error=None):
        """Ends the data set; without its results where there was an error."""
        if error is not None:
            self.errors[self._set] = error
        self.rows_of_set[self._set] = self._in_set if error is None else 0

    def take(self, num_rows, num_columns, columns_at):
        if not num_rows:
            return
        self._in_set += num_rows
        if not self.columns:
            return
        if num_columns != len(self.columns):
            raise quern_abi.ContractError(f"a result has {num_columns} columns; the spec has {len(self.columns)}")
        words = self._unpack(ctypes.string_at(columns_at, 8 * _COLUMN_WORDS * num_columns))
        for number, column in enumerate(self.columns):
            first = _COLUMN_WORDS * number
            (validity, values, offsets, buffers), num_bytes = words[first:first + 4], words[first + 8]
            data = ctypes.c_void_p.from_address(buffers).value if buffers else None
            column.take(num_rows, validity, values, offsets, data, num_bytes)
        self.counts.append(num_rows)
        self.sets.append(self._set)

    def set_of_row(self):
        """Of each row that came out, errors or not."""
        return np.repeat(np.array(self.sets, np.int64), np.array(self.counts, np.int64))

    def spoil(self, number):
        """Changes one value of a data set's first result, or adds a row where there are no columns, for the check of
        the check. Answers whether there was one."""
        if number in self.errors or number not in self.rows_of_set:
            return False
        if not self.columns:
            self.rows_of_set[number] += 1
            return True
        if number not in self.sets:
            return False
        place = self.sets.index(number)
        return any(column.spoil(place) for column in self.columns)
