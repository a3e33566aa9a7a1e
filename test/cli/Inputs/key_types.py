# SPDX-License-Identifier: Apache-2.0
"""Writes probe.parquet, probe.arrow and the same two of build: three rows, equal in value from column to column, of
many types."""

import decimal
import sys

import pyarrow as pa
import pyarrow.parquet

NUMBERS = [1, 2, 3]
TEXTS = ["one", "two, and more than twelve bytes", ""]
TYPES = {
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "utf8": pa.utf8(),
    "large_utf8": pa.large_utf8(),
    "utf8_view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.utf8()),
}
# Of a scale.
DECIMALS = {
    "decimal": lambda scale: pa.decimal128(12, scale),
    "decimal32": lambda scale: pa.decimal32(9, scale),
    "decimal64": lambda scale: pa.decimal64(12, scale),
}


def table(side):
    columns = {}
    for name, type_ in TYPES.items():
        is_text = "utf8" in name or name == "dictionary"
        columns[name] = pa.array(TEXTS if is_text else NUMBERS, pa.utf8() if is_text else type_).cast(type_)
    scale = {"probe": 1, "build": 3}[side]
    for name, type_ in DECIMALS.items():
        columns[name] = pa.array([decimal.Decimal(n) for n in NUMBERS], type_(scale))
    columns["list"] = pa.array([[n] for n in NUMBERS], pa.list_(pa.int64()))
    columns["row_" + side] = pa.array([0, 1, 2], pa.int64())
    return pa.table(columns)


for side in ("probe", "build"):
    pyarrow.parquet.write_table(table(side), f"{sys.argv[1]}/{side}.parquet")
    with pa.ipc.new_file(f"{sys.argv[1]}/{side}.arrow", table(side).schema) as writer:
        writer.write_table(table(side))
