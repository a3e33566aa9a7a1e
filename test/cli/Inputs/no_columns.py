# SPDX-License-Identifier: Apache-2.0
"""Writes Arrow files that have rows and no columns: no_columns.py FOLDER."""

import sys

import pyarrow as pa


def write(name, new_writer, num_rows):
    rows = pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
    with pa.OSFile(f"{sys.argv[1]}/{name}", "wb") as file, new_writer(file, pa.schema([])) as writer:
        writer.write_batch(rows)


write("five.arrow", pa.ipc.new_file, 5)
write("five.arrows.arrow", pa.ipc.new_stream, 5)
write("many.arrow", pa.ipc.new_file, 200000)
