# SPDX-License-Identifier: Apache-2.0
"""conditions_test.py QUERN FOLDER: each condition of a table through all options and arguments that take one.

A line of CASES is a condition and the rows for which it holds; all eight ways to ask must find exactly these. A line of
REFUSED is a condition that all of them refuse, and what they accept instead."""

import datetime
import decimal
import subprocess
import sys

import pyarrow.ipc
from tables import pa, quern, rows

D, NAN, INF = decimal.Decimal, float("nan"), float("inf")
DAYS = [datetime.date(1970, 1, 1), datetime.date(1998, 9, 2), None, datetime.date(1998, 9, 3)]
MOMENTS = [datetime.datetime(1970, 1, 1), datetime.datetime(1998, 9, 2, 12, 30, 15, 250_000), None,
           datetime.datetime(1998, 9, 3)]
CLOCK = [datetime.time(0), datetime.time(12, 30, 15), None, datetime.time(23, 59, 59)]
TOOK = [datetime.timedelta(0), datetime.timedelta(seconds=90), None, datetime.timedelta(seconds=-1)]
COLUMNS = {  # rows 0 to 3; row 2 is null everywhere
    "row": pa.array([0, 1, 2, 3]),
    "i8": pa.array([-128, 1, None, 127], pa.int8()),
    "i16": pa.array([-1, 2, None, 300], pa.int16()),
    "i32": pa.array([-1, 2, None, 2**31 - 1], pa.int32()),
    "i64": pa.array([-(2**63), 2, None, 2**63 - 1], pa.int64()),
    "u8": pa.array([0, 1, None, 255], pa.uint8()),
    "u16": pa.array([0, 1, None, 65535], pa.uint16()),
    "u32": pa.array([0, 1, None, 2**32 - 1], pa.uint32()),
    "u64": pa.array([0, 1, None, 2**64 - 1], pa.uint64()),
    "f32": pa.array([0.1, -0.0, None, NAN], pa.float32()),
    "f64": pa.array([0.1, -0.0, None, NAN], pa.float64()),
    "wide": pa.array([1.0000001192092896, -INF, None, INF], pa.float32()),
    "price": pa.array([D("-1.25"), D("0.10"), None, D("9.99")], pa.decimal128(15, 2)),
    "whole": pa.array([D(-7), D(0), None, D(10**37)], pa.decimal128(38, 0)),
    "date32": pa.array(DAYS, pa.date32()),
    "date64": pa.array(DAYS, pa.date64()),
    "second": pa.array([moment and moment.replace(microsecond=0) for moment in MOMENTS], pa.timestamp("s")),
    "milli": pa.array(MOMENTS, pa.timestamp("ms")),
    "micro": pa.array(MOMENTS, pa.timestamp("us")),
    "nano": pa.array(MOMENTS, pa.timestamp("ns")),
    "zoned": pa.array(MOMENTS, pa.timestamp("ms", "Europe/Berlin")),
    "clock": pa.array(CLOCK, pa.time32("s")),
    "clock_us": pa.array(CLOCK, pa.time64("us")),
    "took": pa.array(TOOK, pa.duration("s")),
    "text": pa.array(["ada", "it's", None, "ADA "]),
    "large": pa.array(["ada", "it's", None, ""], pa.large_string()),
    "view": pa.array(["ada", "a text of more than 12 bytes", None, ""], pa.string_view()),
    "word": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "bytes": pa.array([b"\x00\xff", b"ab", None, b""]),
    "fixed": pa.array([b"ab", b"cd", None, b"\x00\xff"], pa.binary(2)),
    "bool": pa.array([True, False, None, True]),
    "nothing": pa.nulls(4),
}  # fmt: skip
CASES = """
i8 = 1                                  1
i8 = 300                                -
i8 != 300                               0 1 3
i8 < 300                                0 1 3
i8 >= -1e9                              0 1 3
i8 between -1000 and 1.5                0 1
i8 in (1, 127.0, 300, 0.5)              1 3
i8 not in (300)                         0 1 3
not i8 = 300                            0 1 3
i16 > 299.5                             3
i32 <= 2.5 and i32 > -1.5               0 1
i64 = 1.5                               -
i64 != 1.5                              0 1 3
i64 < 1.5                               0
i64 > 1.5                               1 3
i64 >= -9223372036854775808             0 1 3
i64 < 9223372036854775808               0 1 3
i64 = 9223372036854775807               3
i64 > 1e30                              -
u8 > -1                                 0 1 3
u8 < -1                                 -
u8 = -1                                 -
u16 = 65535                             3
u32 between -5 and 1                    0 1
u64 = 18446744073709551615              3
u64 >= 18446744073709551616             -
f32 = 0.1                               0
f64 = 0.1                               0
f32 != 0.1                              1 3
f32 in (0.1, 2)                         0
f32 >= 0.1                              0 3
f32 = 0                                 1
f64 = -0.0                              1
f64 < 0                                 -
f64 = nan                               3
f64 < nan                               0 1
f64 > inf                               3
f64 <= nan                              0 1 3
f64 != nan                              0 1
f64 < 1e-400                            -
f32 > 1e-60                             0 3
wide = 1.00000005960464477540           0
wide = inf                              3
wide < -3.4e38                          1
price = 0.1                             1
price = 0.100                           1
price = 0.123                           -
price < 0.123                           0 1
price >= 0.123                          3
price between -1.255 and 0.1            0 1
price > 1e40                            -
whole = 1e37                            3
whole > -7.5 and whole < 0.5            0 1
date32 <= 1998-09-02                    0 1
date32 = '1998-09-03'                   3
date32 in (date '1970-01-01')           0
date32 < 1969-12-31                     -
date64 > date '1998-09-02'              3
second = '1998-09-02 12:30:15'          1
second = '1998-09-02 12:30:15.000'      1
second > 1998-09-02                     1 3
milli = '1998-09-02 12:30:15.25'        1
milli = '1998-09-02T12:30:15.250'       1
micro < timestamp '1998-09-02 12:30:15.250001'   0 1
nano >= '1998-09-02 12:30:15.250000000'   1 3
nano < '9999-12-31'                     0 1 3
zoned = '1998-09-02 12:30:15.25'        1
zoned = '1998-09-02 14:30:15.25+02:00'  1
zoned = '1998-09-02 14:30:15.25+02'     1
zoned = '1998-09-02 11:00:15.25-0130'   1
zoned = '1998-09-02 12:30:15.25Z'       1
micro >= '1998-09-03 00'                3
clock = '12:30:15'                      1
clock > time '12:30'                    1 3
clock_us <= '12:30:15.000001'           0 1
took = 90                               1
took < 0.5                              0 3
text = 'ada'                            0
text collate utf8mb4_general_ci = 'ADA'   0 3
text COLLATE utf8mb4_general_ci in ('ada', 'x')   0 3
text = 'it''s'                          1
text like '%d%'                         0
text != 'ada'                           1 3
text not like 'a%'                      1 3
text > large                            3
text = view                             0
large = ''                              3
view >= 'ada'                           0
view = x'616461'                        0
word = 'a'                              0 3
word != 'a'                             1
bytes = x'00ff'                         0
bytes = 'ab'                            1
fixed = 'cd'                            1
fixed > x'00ff'                         0 1
bool                                    0 3
not bool                                1
bool = false                            1
bool != true                            1
i8 is null                              2
i8 is not null and (bool or i16 = 2)    0 1 3
nothing = 5                             -
nothing is null                         0 1 2 3
not nothing > 'x'                       -
I8 = 1                                  1
i8 <> 1                                 0 3
i8 collate binary = 1                   1
i8 < i16                                0 1 3
"i8" = 1 or "i8" = 127                  1 3
"""
REFUSED = """
i8 = 'a'                                a number
f32 = 16777217                          a whole number that it can hold, or one with a point, which is rounded
f64 = 9007199254740993                  a whole number that it can hold, or one with a point, which is rounded
f64 = 1e999                             a number that it can hold
f32 = 1e39                              a number that it can hold
f64 = 'nan'                             a number, nan, inf, -inf
price = 1.2.3                           a number
date32 = 5                              a date, YYYY-MM-DD
date32 = '1998-02-29'                   a date, YYYY-MM-DD
date32 = '19980902'                     a date, YYYY-MM-DD
date32 = '1998-09-02 00:00'             a date, YYYY-MM-DD
second = '1998-09-02 12:30:15.25'       a time, YYYY-MM-DD HH:MM:SS, of its unit
milli = '1998-09-02 12:30:15+02:00'     a time, YYYY-MM-DD HH:MM:SS, of its unit
micro = '1998-W36-3'                    a time, YYYY-MM-DD HH:MM:SS, of its unit
clock = '24:00:00'                      a time, HH:MM:SS, of its unit
clock = '12:30:15.5'                    a time, HH:MM:SS, of its unit
clock = '12'                            a time, HH:MM:SS, of its unit
text = 5                                text in single quotes
fixed = 'abc'                           2 bytes
bool = 1                                true, false
i8                                      a bool column, or a comparison
i8 like 'a'                             utf8 and binary columns
i8 collate ascii_bin = 1                utf8 columns
i8 = 1 and                              COLUMN [collate NAME]
date32 = date64                         the same type
"""


def lines_of(text):
    return [[part.strip() for part in line.split("   ", 1)] if "   " in line else line.rsplit(" ", 1)
            for line in text.strip().splitlines()]


def run(words):
    return subprocess.run([QUERN, *words, "--engine", ENGINE, PATH], capture_output=True, text=True)


def sets(conditions):
    """For each way to ask a function from a condition to (rows, error)."""
    table = pa.table(COLUMNS)

    def command(words):
        done = run(words)
        found = sorted(int(line.split()[0]) for line in done.stdout.splitlines()[1:-1]
                       if line.split()[-1] != "0" or len(line.split()) == 1)
        return found, done.stderr

    def package(call):
        try:
            return sorted(row[0] for row in rows(call()) if row[-1] != 0 or len(row) == 1), ""
        except ValueError as error:
            return [], str(error)

    return {
        "filter --where": lambda where: command(["filter", "--where", where, "--select", "row"]),
        "aggregate --filter": lambda where: command(["aggregate", "--by", "row", "--filter", where]),
        "--agg filter (where)":
            lambda where: command(["aggregate", "--by", "row", "--agg", f"count(*) filter (where {where}) as n"]),
        "sort --filter": lambda where: command(["sort", "--by", "row", "--filter", where, "--select", "row"]),
        "filter()": lambda where: package(lambda: quern.filter(table, where, "row", engine=ENGINE)),
        "aggregate(where=)": lambda where: package(lambda: quern.aggregate(table, "row", where=where, engine=ENGINE)),
        "aggs filter (where)": lambda where: package(
            lambda: quern.aggregate(table, "row", f"count(*) filter (where {where}) as n", engine=ENGINE)),
        "sort(where=)": lambda where: package(
            lambda: quern.sort(table, "row", where=where, select="row", engine=ENGINE)),
    }


def check():
    wrong = []
    for name, ask in sets(CASES).items():
        for where, expected in lines_of(CASES):
            found, error = ask(where)
            if error or found != [int(row) for row in expected.split() if row != "-"]:
                wrong.append(f"{name}: {where}: {found}, not {expected} {error}")
        for where, accepted in lines_of(REFUSED):
            found, error = ask(where)
            if f"; accepted: {accepted}" not in error:
                wrong.append(f"{name}: {where}: {found}, {error!r}, not {accepted}")
    assert not wrong, "\n".join(wrong)


QUERN, folder = sys.argv[1:]
PATH = f"{folder}/in.arrow"
ENGINE = "generic"  # test/differential compares the compiled kernels with it
with pyarrow.ipc.new_file(PATH, pa.table(COLUMNS).schema) as file:
    file.write_table(pa.table(COLUMNS))
check()
