# SPDX-License-Identifier: Apache-2.0
"""Types of Arrow: what comes in comes out, keys of two types meet, constants are compared exactly."""

import datetime
import decimal
import unittest

from tables import pa, quern, rows

D = decimal.Decimal
WHEN = datetime.datetime(2020, 2, 29, 12, 30, 15, 250_000)
LATER = WHEN + datetime.timedelta(1)

COLUMNS = {
    "bool": pa.array([True, None, False]),
    "i8": pa.array([1, None, -3], pa.int8()),
    "u64": pa.array([1, None, 2**64 - 1], pa.uint64()),
    "f32": pa.array([1.5, None, -2.25], pa.float32()),
    "decimal": pa.array([D("1.25"), None, D("-3.50")], pa.decimal128(15, 2)),
    "date32": pa.array([datetime.date(1995, 3, 15), None, datetime.date(1969, 12, 31)]),
    "date64": pa.array([datetime.date(1995, 3, 15), None, datetime.date(1969, 12, 31)], pa.date64()),
    "time": pa.array([datetime.time(1, 2, 3), None, datetime.time(4)], pa.time32("s")),
    "timestamp": pa.array([WHEN, None, LATER], pa.timestamp("us")),
    "zoned": pa.array([WHEN, None, LATER], pa.timestamp("ms", "UTC")),
    "duration": pa.array([datetime.timedelta(1), None, datetime.timedelta(2)], pa.duration("ns")),
    "fixed": pa.array([b"abc", None, b"xyz"], pa.binary(3)),
    "binary": pa.array([b"\xff", None, b""]),
    "large_binary": pa.array([b"\xff", None, b"more than twelve bytes"], pa.large_binary()),
    "utf8": pa.array(["a", None, "more than twelve bytes"]),
    "large_utf8": pa.array(["a", None, "more than twelve bytes"], pa.large_string()),
    "utf8_view": pa.array(["a", None, "more than twelve bytes"], pa.string_view()),
    "binary_view": pa.array([b"a", None, b"more than twelve bytes"], pa.binary_view()),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
}


class EveryType(unittest.TestCase):
    def test_comes_out_as_it_came_in(self):
        for name, column in COLUMNS.items():
            t = pa.table({"k": [0, 1, 2], "v": column})
            for result in (quern.join(t, pa.table({"k": [0, 1, 2]}), on="k", select="v"),
                           quern.sort(t, by="k", select="v"),
                           quern.filter(t, "k >= 0", "v"), quern.filter(t, "k != 5", "v")):  # fmt: skip
                self.assertEqual(pa.table(result)["v"].to_pylist(), column.to_pylist(), name)

    def test_filters_gather(self):
        for name, column in COLUMNS.items():
            t = pa.table({"k": [0, 1, 2, 0, 1, 2], "v": pa.concat_arrays([column, column])}).slice(1, 5)
            result = pa.table(quern.filter(t, "k != 1", "v"))
            self.assertEqual(result["v"].to_pylist(), [column[2].as_py(), column[0].as_py(), column[2].as_py()], name)
            self.assertEqual(result.schema.field("v").type, column.type, name)
            result.validate(full=True)

    def test_keys_and_groups(self):
        for name, column in COLUMNS.items():
            t = pa.table({"v": column})
            self.assertEqual(rows(quern.join(t, t, on="v", select="probe.v")),
                             [row for row in rows(t) if row[0] is not None], name)
            groups = rows(quern.aggregate(t, by="v", aggs="count(*) as n"))
            self.assertEqual({str(row[0]) for row in groups}, {str(row[0]) for row in rows(t)}, name)


class KeysOfTwoTypes(unittest.TestCase):
    def check(self, left, right, count):
        self.assertEqual(len(quern.join(pa.table({"k": left}), pa.table({"k": right}), on="k", select=[])), count)
        self.assertEqual(len(quern.join(pa.table({"k": right}), pa.table({"k": left}), on="k", select=[])), count)

    def test_numbers(self):
        self.check(pa.array([1, None, -3], pa.int8()), pa.array([1, 2, -3], pa.int64()), 2)
        self.check(pa.array([1, 255], pa.uint8()), pa.array([-1, 255], pa.int16()), 1)
        self.check(pa.array([1, 2], pa.int32()), pa.array([1.0, 2.5]), 1)
        self.check(pa.array([0.5, 2.5], pa.float32()), pa.array([0.5, 0.1]), 1)
        self.check(pa.array([D("1.2")], pa.decimal128(5, 1)), pa.array([D("1.200")], pa.decimal128(15, 3)), 1)
        self.check(pa.array([D("1.2")], pa.decimal128(5, 1)), pa.array([D("1.2")], pa.decimal128(15, 1)), 1)

    def test_strings(self):
        texts = ["a", None, "more than twelve bytes", ""]
        kinds = [pa.array(texts), pa.array(texts, pa.large_string()), pa.array(texts, pa.string_view()),
                 pa.array(texts).dictionary_encode(),
                 pa.array(texts).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.large_string()))]  # fmt: skip
        for left in kinds:
            for right in kinds:
                self.check(left, right, 3)

    def test_none_in_common(self):
        with self.assertRaisesRegex(ValueError,
                                    "do not compare: column k of probe is int64, column k of build is utf8;"):
            self.check(pa.array([1]), pa.array(["1"]), 0)
        with self.assertRaisesRegex(ValueError, "does not hold: 9007199254740993"):
            self.check(pa.array([2**53 + 1]), pa.array([1.0]), 0)

    def test_columns_without_values(self):
        self.check(pa.nulls(2), pa.array([1, 2]), 0)
        self.check(pa.nulls(2), pa.nulls(1), 0)
        t = pa.table({"k": [1, 2], "nothing": pa.nulls(2)})
        self.assertEqual(rows(quern.sort(t, by="nothing, k")), [(1, None), (2, None)])
        self.assertEqual(rows(quern.aggregate(t, aggs="sum(nothing), count(nothing), max(nothing)")), [(None, 0, None)])
        self.assertEqual(rows(quern.filter(t, "nothing = 5")), [])


class Constants(unittest.TestCase):
    def test_of_every_type(self):
        cases = {
            "decimal": ["decimal > 1.249", "decimal = 1.25", "decimal < 1.255 and decimal > 0"],
            "date32": ["date32 = 1995-03-15", "date32 = date '1995-03-15'", "date32 > '1990-01-01'"],
            "date64": ["date64 = 1995-03-15"],
            "time": ["time = '01:02:03'", "time < time '02:00:00'"],
            "timestamp": ["timestamp <= '2020-02-29 12:30:15.25'", "timestamp between '2020-01-01' and '2021-01-01'"],
            "zoned": ["zoned = timestamp '2020-02-29 12:30:15.250'"],
            "duration": ["duration <= 86400000000000"],
            "f32": ["f32 = 1.5", "f32 > 1e-3"],
            "u64": ["u64 < 18446744073709551615", "u64 >= -1 and u64 < 2"],
            "fixed": ["fixed = 'abc'", "fixed = x'616263'"],
            "binary": ["binary = x'ff'"],
            "utf8_view": ["utf8_view = 'a'", "utf8_view like 'a%'"],
            "dictionary": ["dictionary = 'a'"],
            "bool": ["bool", "bool = true", "not bool = false"],
        }
        for name, conditions in cases.items():
            t = pa.table({name: COLUMNS[name], "row": [0, 1, 2]})
            for where in conditions:
                self.assertEqual(rows(quern.filter(t, where, "row"))[0], (0,), where)

    def test_bad_ones(self):
        cases = [
            ("i8", "i8 = 'a'", "a number"),
            ("date32", "date32 > 5", "a date, YYYY-MM-DD"),
            ("utf8", "utf8 = 5", "text in single"),
            ("f32", "f32 = 16777217", "a whole number that it can hold"),
            ("bool", "bool = 1", "true, false"),
        ]
        for name, where, accepted in cases:
            with self.assertRaisesRegex(
                    ValueError, f"bad constant in where: .*; accepted: {accepted}.*, as column {name} of t is "):
                quern.filter(pa.table({name: COLUMNS[name]}), where)


if __name__ == "__main__":
    unittest.main()
