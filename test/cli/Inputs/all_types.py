# SPDX-License-Identifier: Apache-2.0
"""all_types.py write FOLDER: files with one column of each type that a kernel carries. all_types.py check FILE...: the
join of the two on row = other has the right rows in each file."""

import datetime
import decimal
import sys

import pyarrow as pa
import pyarrow.parquet

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 13, 14, 15)
VALUES = {
    "bool": ([True, None, False, True], pa.bool_()),
    "i8": ([-128, None, 0, 127], pa.int8()),
    "i16": ([-(2**15), None, 0, 2**15 - 1], pa.int16()),
    "i32": ([-(2**31), None, 0, 2**31 - 1], pa.int32()),
    "i64": ([-(2**63), None, 0, 2**63 - 1], pa.int64()),
    "u8": ([0, None, 1, 255], pa.uint8()),
    "u16": ([0, None, 1, 2**16 - 1], pa.uint16()),
    "u32": ([0, None, 1, 2**32 - 1], pa.uint32()),
    "u64": ([0, None, 1, 2**64 - 1], pa.uint64()),
    "f32": ([0.5, None, -1.5, 2.0], pa.float32()),
    "f64": ([0.1, None, -1e300, 2.0], pa.float64()),
    "decimal32": ([decimal.Decimal("-99999.99"), None, decimal.Decimal(0), decimal.Decimal("99999.99")],
                  pa.decimal32(7, 2)),
    "decimal64": ([decimal.Decimal("1.25"), None, decimal.Decimal("-9999999999999.99"), decimal.Decimal(0)],
                  pa.decimal64(15, 2)),
    "decimal": ([decimal.Decimal("1.25"), None, decimal.Decimal("-1.25"), decimal.Decimal(0)], pa.decimal128(15, 2)),
    "date32": ([DAY, None, DAY, DAY], pa.date32()),
    "time32": ([datetime.time(1, 2, 3), None, datetime.time(0), datetime.time(23)], pa.time32("ms")),
    "time64": ([datetime.time(1, 2, 3, 4), None, datetime.time(0), datetime.time(23)], pa.time64("us")),
    "timestamp": ([MOMENT, None, MOMENT, MOMENT], pa.timestamp("us")),
    "zoned": ([MOMENT, None, MOMENT, MOMENT], pa.timestamp("us", "UTC")),
    "duration": ([datetime.timedelta(days=-1), None, datetime.timedelta(0), datetime.timedelta(milliseconds=1500)],
                 pa.duration("ms")),
    "fixed": ([b"abc", None, b"\0\0\0", b"xyz"], pa.binary(3)),
    "binary": ([b"\0\xff", None, b"", b"more than twelve bytes"], pa.binary()),
    "utf8": (["a", None, "", "more than twelve bytes, \u00e4\u20ac"], pa.utf8()),
    "large_utf8": (["a", None, "", "more than twelve bytes"], pa.large_utf8()),
    "utf8_view": (["a", None, "", "more than twelve bytes"], pa.string_view()),
    "full": (["no", "nulls", "in", "here, where more than twelve bytes are"], pa.utf8()),
}


def columns(rows):
    return {name: pa.array([values[row] for row in rows], type_) for name, (values, type_) in VALUES.items()}


def write(folder):
    tables = {
        "probe": {"row": pa.array([0, 1, 2, 3, 9], pa.int64())},
        "build": {"other": pa.array([3, 2, 8, 1, 0], pa.int64()), **columns([3, 2, 0, 1, 0])},
    }
    for side, of_side in tables.items():
        table = pa.table(of_side)
        pyarrow.parquet.write_table(table, f"{folder}/{side}.parquet")
        with pa.ipc.new_stream(f"{folder}/{side}.arrow", table.schema) as writer:
            writer.write_table(table)


def read(path):
    if path.endswith(".parquet"):
        return pyarrow.parquet.read_table(path)
    return pa.ipc.open_file(path).read_all()


def check(path):
    rows = pa.array([0, 1, 2, 3], pa.int64())
    expected = pa.table({"row": rows, "other": rows, **columns(range(4))})
    found = read(path)
    found.validate(full=True)
    for name in expected.column_names:
        if found.column_names != expected.column_names or not found[name].equals(expected[name]):
            sys.exit(f"{path}: {name}\n{found.schema}\n{found[name] if name in found.column_names else None}\n"
                     f"expected\n{expected[name]}")


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    for file in sys.argv[2:]:
        check(file)
