# SPDX-License-Identifier: Apache-2.0
"""A comparison with constants as a kernel's condition: constants of the column's type that keep the meaning of their
texts.

Kernels compare the numbers that columns hold: unscaled decimals, days, microseconds. A constant is a number on the same
scale and often lies between two that a column can hold. The comparison is then changed to use the nearest one below:

    decimal(10, 2), 0.123       12.3 hundredths: below it 12
      x < 0.123   x <= 12     x >= 0.123   x > 12     x = 0.123   never       x between 0.123 and 9   13 to 900
    i8, 1000                    above all
      x < 1000    always      x = 1000     never            x in (3, 1000)          x in (3)

`always` and `never` are still unknown where x is null, so they are comparisons too: x between (not between) the ends of
its type. (The command line does the same: tools/frontend/where_leaf.cc.)
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from quern._arguments import wrong
from quern._types import Field, decimal_scale, is_decimal, is_integer, type_name

_WIDTHS = {"c": 8, "s": 16, "i": 32, "l": 64, "C": 8, "S": 16, "I": 32, "L": 64, "tts": 32, "ttm": 32, "tdD": 32}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")
_MOST_EXPONENT = 400  # of a number that is compared exactly; beyond, all columns are passed
_PER_SECOND = {"s": 1, "m": 1000, "u": 1_000_000, "n": 1_000_000_000}
_EPOCH = datetime.datetime(1970, 1, 1)
_Value = TypeVar("_Value")


class Operand(NamedTuple):
    """The column that a condition compares. `text` names it ("column k of t"), `type` is its text in the spec."""

    option: str
    text: str
    field: Field
    type: str

    def bad(self, shown: str, accepted: str) -> ValueError:
        return wrong(f"bad constant in {self.option}", shown, f"{accepted}, as {self.text} is {type_name(self.field)}")


Constant = tuple[str, bytes, str]  # form ("bare", "text", "bytes"), text, all of it for errors


def _ends(text: str) -> tuple[int, int]:
    """The least and greatest number of a format."""
    if is_decimal(text):
        return 1 - 10**38, 10**38 - 1
    bits = _WIDTHS.get(text, 64)
    return (0, 2**bits - 1) if text in "CSIL" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# ---- constants of whole numbers ----


def _number(operand: Operand, constant: Constant) -> Fraction:
    form, text, shown = constant
    written = text.decode(errors="replace")
    if form != "bare" or not _NUMBER.fullmatch(written):
        raise operand.bad(shown, "a number")
    mantissa, _, exponent = written.lower().partition("e")
    power = max(-_MOST_EXPONENT, min(_MOST_EXPONENT, int(exponent or "0")))
    scale = decimal_scale(operand.field.value_format) if is_decimal(operand.field.value_format) else 0
    return Fraction(mantissa) * Fraction(10) ** (power + scale)


def _parsed(operand: Operand, constant: Constant, parse: Callable[[str], _Value], accepted: str) -> _Value:
    form, text, shown = constant
    if form == "bytes":
        raise operand.bad(shown, accepted)
    try:
        return parse(text.decode())
    except ValueError:
        raise operand.bad(shown, accepted) from None


def _date(operand: Operand, constant: Constant) -> Fraction:
    day = _parsed(operand, constant, datetime.date.fromisoformat, "a date, YYYY-MM-DD")
    days = (day - _EPOCH.date()).days
    return Fraction(days if operand.field.value_format == "tdD" else days * 86_400_000)


_FRACTION = re.compile(r"\.(\d{1,9})")


def _without_fraction(text: str) -> tuple[str, Fraction]:
    """The text without the digits after its seconds, and these digits in seconds: datetime reads six of nine."""
    match = _FRACTION.search(text)
    if match is None:
        return text, Fraction(0)
    return text[: match.start()] + text[match.end() :], Fraction(int(match[1]), 10 ** len(match[1]))


def _time(operand: Operand, constant: Constant) -> Fraction:
    accepted = "a time, HH:MM:SS, of its unit"

    def seconds(text: str) -> Fraction:
        whole, fraction = _without_fraction(text)
        time = datetime.time.fromisoformat(whole)
        return time.hour * 3600 + time.minute * 60 + time.second + fraction

    units = _parsed(operand, constant, seconds, accepted) * _PER_SECOND[operand.field.value_format[2]]
    if units.denominator != 1:
        raise operand.bad(constant[2], accepted)
    return units


def _timestamp(operand: Operand, constant: Constant) -> Fraction:
    accepted = "a time, YYYY-MM-DD HH:MM:SS, of its unit"

    def seconds(text: str) -> Fraction:
        whole, fraction = _without_fraction(text)
        time = datetime.datetime.fromisoformat(whole)
        if time.tzinfo is not None:  # without one: UTC
            time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        since = time - _EPOCH
        return since.days * 86400 + since.seconds + fraction

    units = _parsed(operand, constant, seconds, accepted) * _PER_SECOND[operand.field.value_format[2]]
    if units.denominator != 1:
        raise operand.bad(constant[2], accepted)
    return units


def _whole(operand: Operand, constant: Constant) -> Fraction:
    text = operand.field.value_format
    if text in ("tdD", "tdm"):
        return _date(operand, constant)
    if text.startswith("tt"):
        return _time(operand, constant)
    return _timestamp(operand, constant) if text.startswith("ts") else _number(operand, constant)


# ---- comparisons of whole numbers ----


def _always(operand: Operand, value: bool) -> str:
    least, most = _ends(operand.field.value_format)
    return f"{operand.type} {'' if value else 'not '}between {least} and {most}"


def _compared(operand: Operand, op: str, constant: Fraction) -> str:
    least, most = _ends(operand.field.value_format)
    floor = math.floor(constant)
    is_exact = constant.denominator == 1
    if op in ("=", "!="):
        if not is_exact or not least <= floor <= most:
            return _always(operand, op == "!=")
        return f"{operand.type} {'<>' if op == '!=' else '='} {floor}"
    is_less = op in ("<", "<=")
    if floor > most:
        return _always(operand, is_less)
    if floor < least:
        return _always(operand, not is_less)
    if not is_exact:
        op = "<=" if is_less else ">"
    return f"{operand.type} {op} {floor}"


def _between(operand: Operand, negated: bool, low: Fraction, high: Fraction) -> str:
    least, most = _ends(operand.field.value_format)
    first, last = math.ceil(low), math.floor(high)
    if first > most or last < least:
        return _always(operand, negated)
    return f"{operand.type} {'not ' if negated else ''}between {max(first, least)} and {min(last, most)}"


def _in(operand: Operand, negated: bool, constants: list[Fraction]) -> str:
    least, most = _ends(operand.field.value_format)
    values = [str(value.numerator) for value in constants if value.denominator == 1 and least <= value <= most]
    if not values:
        return _always(operand, negated)
    return f"{operand.type} {'not ' if negated else ''}in ({', '.join(values)})"


# ---- other constants ----


def _real(operand: Operand, constant: Constant) -> str:
    """A whole number that a float column cannot hold lies between two that it can; comparing with either would be
    wrong.
    """
    form, text, shown = constant
    written = text.decode(errors="replace")
    lower = written.lower()
    if form == "bare" and lower in ("nan", "inf", "+inf", "-inf"):
        return lower.removeprefix("+")
    if form != "bare" or not _NUMBER.fullmatch(written):
        raise operand.bad(shown, "a number, nan, inf, -inf")
    value = float(written)
    if operand.field.value_format == "f":
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise operand.bad(shown, "a number that it can hold")
    if written.lstrip("+-").isdigit() and Fraction(value) != Fraction(written):
        raise operand.bad(shown, "a whole number that it can hold, or one with a point, which is rounded")
    return repr(value)


def _text(operand: Operand, constant: Constant) -> str:
    form, text, shown = constant
    if form == "bare":
        raise operand.bad(shown, "text in single quotes")
    width = int(operand.field.value_format[2:]) if operand.field.value_format.startswith("w:") else len(text)
    if len(text) != width:
        raise operand.bad(shown, f"{width} bytes")
    return quoted(text)


def quoted(text: bytes) -> str:
    """The text in a spec, which is one line: bytes that are not plain text become hexadecimal digits."""
    if all(0x20 <= byte < 0x7F for byte in text):
        return "'" + text.decode().replace("'", "''") + "'"
    return f"x'{text.hex()}'"


def _bool(operand: Operand, constant: Constant) -> str:
    form, text, shown = constant
    lower = text.lower()
    if form != "bare" or lower not in (b"true", b"false"):
        raise operand.bad(shown, "true, false")
    return lower.decode()


def _literal(operand: Operand, constant: Constant) -> str:
    text = operand.field.value_format
    if text == "b":
        return _bool(operand, constant)
    return _real(operand, constant) if text in ("f", "g") else _text(operand, constant)


# ---- leaves ----


def _is_text(text: str) -> bool:
    return text in ("u", "U", "vu", "z", "Z", "vz")


def _is_whole(text: str) -> bool:
    return not (text in ("b", "f", "g") or _is_text(text) or text.startswith("w:"))


def _check(operand: Operand, leaf: dict[str, Any]) -> None:
    text = operand.field.value_format
    column = f"{operand.text} is {type_name(operand.field)}"
    if leaf["bare"] and text != "b":
        raise wrong(f"condition that is no bool in {operand.option}", column, "a bool column, or a comparison")
    if leaf["kind"] == "like" and not _is_text(text):
        raise wrong(f"like on a column without text in {operand.option}", column, "utf8 and binary columns")
    if is_integer(text) or is_decimal(text) or not _is_whole(text) or text[0] == "t":
        return
    raise wrong(
        f"no constants for the type of a column in {operand.option}",
        column,
        "integers, floats, decimals, dates, strings, bool",
    )


def _like(operand: Operand, leaf: dict[str, Any], negated: str) -> str:
    pattern = quoted(leaf["constants"][0][1])
    escape = leaf["escape"]
    if escape == ord("\\"):
        return f"{operand.type} {negated}like {pattern}"
    return f"{operand.type} {negated}like {pattern} escape {quoted(chr(escape).encode() if escape else b'')}"


def leaf_text(leaf: dict[str, Any], operand: Operand) -> str:
    """The spec text of a leaf of parse_where on one column. *Errors*: ValueError for a constant that is not of the
    column's type.
    """
    kind, negated = leaf["kind"], leaf["negated"]
    no = "not " if negated else ""
    if kind == "is_null":
        return f"{operand.type} is {no}null"
    _check(operand, leaf)
    if kind == "like":
        return _like(operand, leaf, no)
    if _is_whole(operand.field.value_format):
        numbers = [_whole(operand, constant) for constant in leaf["constants"]]
        if kind == "compare":
            return _compared(operand, leaf["op"], numbers[0])
        return _between(operand, negated, *numbers) if kind == "between" else _in(operand, negated, numbers)
    values = [_literal(operand, constant) for constant in leaf["constants"]]
    if kind == "compare":
        return f"{operand.type} {'<>' if leaf['op'] == '!=' else leaf['op']} {values[0]}"
    if kind == "between":
        return f"{operand.type} {no}between {values[0]} and {values[1]}"
    return f"{operand.type} {no}in ({', '.join(values)})"
