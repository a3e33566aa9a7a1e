# SPDX-License-Identifier: Apache-2.0
"""Result columns of the C ABI as arrays of physical values; joins and aggregations read their answers so.

    comparable(result_array(result.columns[0], ColumnType("i64"), result.num_rows))

is a copy of the column, in a type that sorts and compares.
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


def comparable(column):
    return column if column.type == comparable_arrow(column.type) else column.cast(comparable_arrow(column.type))
