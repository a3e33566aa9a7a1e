# SPDX-License-Identifier: Apache-2.0
"""Results of the C ABI as arrays of physical values.

    reader = ResultReader([ColumnType("i64")], vectors=True, batch_rows=1000)
    reader.read(output)
    table_of(reader.types, reader.batches)

is a copy of the rows, in types that sort and compare.
"""
import ctypes
import struct

import pyarrow as pa

from random_data import STRING_TYPES, comparable_arrow


class Mismatch(Exception):
    """The library's answer is not the oracle's, or breaks a promise of its header."""


def _string_at(address, num_bytes):
    if num_bytes and not address:
        raise Mismatch(f"a result column has {num_bytes} bytes but no pointer to them")
    return ctypes.string_at(address, num_bytes) if num_bytes else b""


def result_array(column, column_type, num_rows):
    """A quern_column, copied."""
    if not column_type.nullable and column.validity:
        raise Mismatch("a result column that the spec calls not nullable has a validity bitmap")
    validity = pa.py_buffer(_string_at(column.validity, (num_rows + 7) // 8)) if column.validity else None
    bits_type = column_type.bits_arrow()
    if column_type.name.endswith("_view"):
        data = ctypes.c_void_p.from_address(column.buffers).value
        buffers = [_string_at(column.values, 16 * num_rows), _string_at(data, column.num_bytes)]
    elif column_type.name in STRING_TYPES:
        offset_bytes = 8 if column_type.name.startswith("large") else 4
        buffers = [_string_at(column.offsets, offset_bytes * (num_rows + 1)),
                   _string_at(column.values, column.num_bytes)]
        if struct.unpack_from("<q" if offset_bytes == 8 else "<i", buffers[0],
                              offset_bytes * num_rows)[0] != column.num_bytes:
            raise Mismatch("the last offset of a result column is not its num_bytes")
    else:
        num_bytes = (num_rows + 7) // 8 if column_type.name == "bool" else bits_type.bit_width // 8 * num_rows
        buffers = [_string_at(column.values, num_bytes)]
    result = pa.Array.from_buffers(bits_type, num_rows, [validity, *map(pa.py_buffer, buffers)], column.null_count)
    result.validate(full=True)
    return result


DEFAULT_BATCH_ROWS = 65536


class ResultReader:
    """The results of one output: the host's vectors, copied, or Arrow arrays, whose memory is the job's until they go;
    lets_go: these are copied, too, so that they do not fill a limit of the job's."""

    def __init__(self, types, vectors, batch_rows, lets_go=False):
        self.types, self.vectors, self.limit = types, vectors, batch_rows or DEFAULT_BATCH_ROWS
        self.lets_go = lets_go
        self.fields = [pa.field(f"c{number}", column_type.bits_arrow()) for number, column_type in enumerate(types)]
        self.batches, self.num_rows = [], 0  # (position of the first row, number of rows, columns)

    def read(self, output):
        """Up to the first result after which there are no more, or input is needed."""
        for result, array in output.results(as_arrow=not self.vectors):
            self.take(result, array)

    def take(self, result, array=None):
        """A quern_result; `array`: its rows, if they are Arrow."""
        columns = self._copied(result) if array is None else self._imported(array)
        if self.types and result.num_rows > self.limit:
            raise Mismatch(f"a result has {result.num_rows} rows; batch_rows is {self.limit}")
        for column_type, column in zip(self.types, columns):
            if column.null_count and not column_type.nullable:
                raise Mismatch(f"a result column of type {column_type.text()} has nulls")
        self.num_rows += result.num_rows
        if result.num_rows:
            self.batches.append((result.position, result.num_rows, columns))
        return True

    def _copied(self, result):
        if result.num_columns != len(self.types):
            raise Mismatch(f"a result has {result.num_columns} columns; the spec has {len(self.types)}")
        return [result_array(result.columns[number], column_type, result.num_rows)
                for number, column_type in enumerate(self.types)]

    def _imported(self, array):
        batch = pa.RecordBatch._import_from_c(ctypes.addressof(array), pa.schema(self.fields))
        batch.validate(full=True)
        if self.lets_go:
            batch = pa.ipc.read_record_batch(batch.serialize(), batch.schema)
        return batch.columns


def table_of(types, batches):
    """The rows of some readers' batches; None where they have no columns."""
    columns = [pa.chunked_array([comparable(batch[2][number]) for batch in batches],
                                comparable_arrow(column_type.bits_arrow()))
               for number, column_type in enumerate(types)]
    return pa.table(columns, names=[f"c{number}" for number in range(len(columns))]) if columns else None


def comparable(column):
    return column if column.type == comparable_arrow(column.type) else column.cast(comparable_arrow(column.type))
