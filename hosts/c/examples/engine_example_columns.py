# SPDX-License-Identifier: Apache-2.0
"""Writes the columns that engine_example.c maps: engine_example_columns.py TPCH_FOLDER COLUMNS_FOLDER.

TPCH_FOLDER holds customer.parquet, orders.parquet and lineitem.parquet; missing files are made by `tpchgen-cli parquet
-s 0.1 -o TPCH_FOLDER`. A column becomes a file TABLE.COLUMN of its little-endian values: keys and decimals (in
hundredths) of 8 bytes, dates and int32 of 4. A string column becomes TABLE.COLUMN.offsets (4 bytes, one more than rows)
and TABLE.COLUMN.bytes.
"""

import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = {
    "customer": ["c_custkey", "c_mktsegment"],
    "orders": ["o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"],
    "lineitem": ["l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"],
}


def write(path, data):
    """Writes under a temporary name first, so that no partial file has the final name."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.rename(path)


def slice_of(column, buffer, value_bytes, num_values):
    begin = column.offset * value_bytes
    return memoryview(column.buffers()[buffer])[begin : begin + num_values * value_bytes]


def write_column(column, path):
    column = column.combine_chunks()
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
        write(path.with_name(path.name + ".offsets"), slice_of(column, 1, 4, len(column) + 1))
        write(path.with_name(path.name + ".bytes"), memoryview(column.buffers()[2]))
    else:
        values = slice_of(column, 1, column.type.bit_width // 8, len(column))
        if pa.types.is_decimal(column.type):
            values = values.cast("q")[::2].tobytes()  # the lower half of 16 bytes: hundredths, as the scale is 2
        write(path, values)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    source, target = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for table, names in COLUMNS.items():
        columns = pq.read_table(source / f"{table}.parquet", columns=names)
        for name in names:
            write_column(columns[name], target / f"{table}.{name}")


if __name__ == "__main__":
    main()
