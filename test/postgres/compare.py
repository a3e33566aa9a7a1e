# SPDX-License-Identifier: Apache-2.0
"""Tests what random_queries.py takes for a difference: compare.py"""

import random_queries
import random_select
from random_tables import KINDS


def query(kinds, keys=(), is_total=False, has_limit=False, loose=False, inexact=()):
    columns = [random_select.Column(f"c{i}", KINDS[kind], 10, loose, i in inexact) for i, kind in enumerate(kinds)]
    return random_select.Query("", columns, list(keys), is_total, has_limit, False)


def differs(off, force, *arguments, **keywords):
    return random_queries.rows_differ(off, force, query(*arguments, **keywords)) is not None


CASES = [
    # what, what is expected, rows with off, rows with force, the query
    ("another row", True, [("1",)], [("2",)], (["i4"],), {}),
    ("a row twice", True, [("1",), ("2",), ("2",)], [("1",), ("1",), ("2",)], (["i4"],), {}),
    ("a row less", True, [("1",), ("1",)], [("1",)], (["i4"],), {}),
    ("null and empty", True, [(None,)], [("",)], (["t"],), {}),
    ("another order without ORDER BY", False, [("1",), ("2",)], [("2",), ("1",)], (["i4"],), {}),
    ("another order with it", True, [("1",), ("2",)], [("2",), ("1",)], (["i4"],), {"keys": [0]}),
    ("equal keys in another order", False, [("1", "a"), ("1", "b")], [("1", "b"), ("1", "a")], (["i4", "t"],),
     {"keys": [0]}),
    ("other rows of equal keys below a limit", False, [("1", "a")], [("1", "b")], (["i4", "t"],),
     {"keys": [0], "has_limit": True}),
    ("the same in a total order", True, [("1", "a")], [("1", "b")], (["i4", "t"],),
     {"keys": [0], "has_limit": True, "is_total": True}),
    ("a scale", True, [("1.0",)], [("1.00",)], (["nu"],), {}),
    ("a scale of a group key", False, [("1.0",)], [("1.00",)], (["nu"],), {"loose": True}),
    ("a sign of zero", True, [("0",)], [("-0",)], (["fw"],), {}),
    ("a sign of zero of a group key", False, [("0",)], [("-0",)], (["fw"],), {"loose": True}),
    ("a last digit of a sum", False, [("1", "2000.0000000000002")], [("1", "2000")], (["i4", "fw"],), {"inexact": {1}}),
    ("a third digit of it", True, [("1", "2010")], [("1", "2000")], (["i4", "fw"],), {"inexact": {1}}),
    ("NaN and a number", True, [("NaN",)], [("1",)], (["fw"],), {"inexact": {0}}),
    ("an infinity", True, [("Infinity",)], [("-Infinity",)], (["fw"],), {"inexact": {0}}),
]

bad = [what for what, expected, off, force, arguments, keywords in CASES
       if differs(off, force, *arguments, **keywords) != expected]
print(f"compare: not as expected: {', '.join(bad)}" if bad else "compare: all as expected")
