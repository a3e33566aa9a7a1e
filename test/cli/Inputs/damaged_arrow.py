# SPDX-License-Identifier: Apache-2.0
"""Writes Arrow files of which one number is wrong: damaged_arrow.py FOLDER."""

import struct
import sys

import pyarrow as pa

INDICES, OFFSETS = struct.pack("<3i", 2, 0, 1), struct.pack("<4i", 0, 1, 2, 3)


def written(table, new_writer=pa.ipc.new_file):
    sink = pa.BufferOutputStream()
    with new_writer(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def write(name, data):
    with open(f"{sys.argv[1]}/{name}.arrow", "wb") as file:
        file.write(data)


def replaced(data, old, new):
    if old not in data:
        sys.exit(f"not in the file: {old!r}")
    return data.replace(old, new)


words = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.int32()), ["red", "green", "blue"])
table = pa.table({"s": ["a", "b", "c"], "k": [1, 2, 3], "d": words})
good = written(table)
write("good", good)
write("offset", replaced(good, OFFSETS, struct.pack("<4i", 0, 1, 2, 3000)))
stream = written(table, pa.ipc.new_stream)
write("offset_stream", replaced(stream, OFFSETS, struct.pack("<4i", 0, 1, 2, 3000)))
write("index", replaced(good, INDICES, struct.pack("<3i", 2, 0, 1000000)))
# The number of bytes is the length of the column's buffer and that of the whole message.
rows = written(pa.table({"k": list(range(12345))}), pa.ipc.new_stream)
write("length", replaced(rows, struct.pack("<q", 12345 * 8), struct.pack("<q", 2**40)))
write("rows", replaced(written(pa.table({"n": pa.nulls(54321)})), struct.pack("<q", 54321), struct.pack("<q", 2**61)))
