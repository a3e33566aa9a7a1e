# SPDX-License-Identifier: Apache-2.0
"""Rows that a pipeline emits, copied while on_rows runs: columns that lie in memory of the host, of a step or of a
table, some of whose rows are selected.

    rows_of(batch, [ColumnType("i64")])         a tuple of physical values for each row that takes part

Only bytes between the first and the last of the selected rows are read.
"""
import array
import ctypes

from random_data import INTEGER_CODES, STRING_TYPES, ColumnType


def rows_of(batch, types):
    num_rows = batch.num_rows
    rows = (ctypes.c_uint32 * num_rows).from_address(batch.selection)[:] if batch.selection else range(num_rows)
    if not types or not num_rows:
        return [()] * num_rows
    return list(zip(*(_values(batch.keys[number], column_type, rows) for number, column_type in enumerate(types))))


def _bits(address, bit_offset, rows):
    first, last = bit_offset + min(rows), bit_offset + max(rows)
    content = ctypes.string_at(address + first // 8, last // 8 - first // 8 + 1)
    return [content[(bit_offset + row) // 8 - first // 8] >> (bit_offset + row) % 8 & 1 for row in rows]


def _elements(address, num_bytes, rows):
    """The bytes of the elements."""
    first, end = min(rows), max(rows) + 1
    content = ctypes.string_at(address + first * num_bytes, (end - first) * num_bytes)
    return [content[(row - first) * num_bytes:(row - first + 1) * num_bytes] for row in rows]


def _numbers(address, code, rows):
    first, end = min(rows), max(rows) + 1
    size = array.array(code).itemsize
    content = array.array(code, ctypes.string_at(address + first * size, (end - first) * size))
    return [content[row - first] for row in rows]


def _view(column, element):
    num_bytes = int.from_bytes(element[:4], "little")
    if num_bytes <= 12:
        return element[4:4 + num_bytes]
    number, offset = (int.from_bytes(element[place:place + 4], "little") for place in (8, 12))
    buffer = ctypes.c_void_p.from_address(column.buffers + 8 * number).value or 0
    return ctypes.string_at(buffer + offset, num_bytes)


def _strings(column, name, rows):
    """Of rows that have values."""
    if name.endswith("_view"):
        return [_view(column, element) for element in _elements(column.values, 16, rows)]
    code = "q" if name.startswith("large") else "i"
    begins, ends = (_numbers(column.offsets, code, [row + step for row in rows]) for step in (0, 1))
    return [ctypes.string_at(column.values + begin, end - begin) if end > begin else b""
            for begin, end in zip(begins, ends)]


def _values(column, column_type, rows):
    """The physical value of each of the rows; None: null."""
    if column_type.index:
        return _decoded(column, column_type, rows)
    valid = _bits(column.validity, column.bit_offset, rows) if column.validity else [1] * len(rows)
    present = [row for row, is_valid in zip(rows, valid) if is_valid]
    values = iter(_present(column, column_type, present) if present else ())
    return [next(values) if is_valid else None for is_valid in valid]


def _present(column, column_type, rows):
    if column_type.name == "bool":
        return _bits(column.values, column.bit_offset, rows)
    if column_type.name in STRING_TYPES:
        return _strings(column, column_type.name, rows)
    if column_type.name in ("fixed_binary", "decimal128"):
        return _elements(column.values, column_type.value_bytes(), rows)
    return _numbers(column.values, column_type.code(), rows)


def _decoded(column, column_type, rows):
    index_type = ColumnType(column_type.index)
    assert column_type.index in INTEGER_CODES
    value_type = ColumnType(column_type.name, width=column_type.width)
    numbers = _values(column, index_type, rows)
    used = sorted({number for number in numbers if number is not None})
    values = dict(zip(used, _values(column.dictionary.contents, value_type, used) if used else ()))
    return [None if number is None else values[number] for number in numbers]
