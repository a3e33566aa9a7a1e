#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The functions of a page are those of runtime/spec/expression_functions.def.

    expression_functions.py DEF PAGE        prints each row of the table that the page lacks; exit status 1 if any
"""
import pathlib
import re
import sys

_ACCEPTS = {
    "kNumbers": "integers, floats, decimals", "kPlainNumbers": "integers, floats", "kIntegers": "integers",
    "kFloats": "floats", "kAlike": "any", "kTruths": "bool", "kCases": "bool, any, .., any", "kDates": "date32",
    "kDecimals": "decimals",
    "kDateAndNumber": "date32, i32", "kDateAndUnits": "date32, units", "kTimestampAndUnits": "timestamp, units",
    "kAnyValue": "any", "kStrings": "strings", "kTexts": "utf8 strings", "kAllStrings": "strings",
    "kStringAndRange": "string, i64, ..", "kStringAndText": "string, constant",
    "kStringAndPattern": "string, constants"
}
_RESULTS = {
    "kSame": "the same", "kSameIn128": "the same; decimals: of 128 bits",
    "kWider": "the same; decimals: wider", "kProduct": "the same; decimals: product",
    "kTruth": "bool", "kTruthNeverNull": "bool, never null", "kCases": "that of the values",
    "kFirstValid": "the same, null if all are", "kFirstOrNull": "the same, may be null", "kI32": "i32",
    "kI64": "i64", "kDate": "date32", "kTimestamp": "timestamp",
    "kTarget": "the type", "kQuotient": "the type"
}
_ERRORS = {"kNone": "", "kFail": "error", "kNull": "null"}


def row_of(text, fewest, most, accepts, result, errors):
    number = fewest if fewest == most else f"{fewest} to {most}"
    cells = (f"`{text}`", number, _ACCEPTS[accepts], _RESULTS[result], _ERRORS[errors])
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def main():
    table, page = (pathlib.Path(name).read_text() for name in sys.argv[1:3])
    rows = [row_of(*fields) for fields in re.findall(
        r'^QUERN_EXPRESSION_FUNCTION\(\w+, "(\w+)", (\d+), (\d+), (\w+), (\w+), (\w+)\)', table, re.MULTILINE)]
    lines = page.splitlines()
    missing = [row for row in rows if not any(line.startswith(row) for line in lines)]
    print("".join(f"not on the page: {row}\n" for row in missing), end="")
    on_page = re.findall(r"^\| `(\w+)` \| \d", page, re.MULTILINE)
    names = [row.split("`")[1] for row in rows]
    print(f"{len(rows)} functions; on the page, and nowhere else: {sorted(set(on_page) - set(names)) or 'none'}")
    return 1 if missing or sorted(on_page) != sorted(names) else 0


if __name__ == "__main__":
    sys.exit(main())
