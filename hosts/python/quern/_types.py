# SPDX-License-Identifier: Apache-2.0
"""Arrow formats: the types of an input's columns, their names in specs, and the common type of two columns."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMES = {
    "n": "null", "b": "bool", "c": "int8", "s": "int16", "i": "int32", "l": "int64", "C": "uint8", "S": "uint16",
    "I": "uint32", "L": "uint64", "e": "float16", "f": "float32", "g": "float64", "z": "binary", "Z": "large_binary",
    "vz": "binary_view", "u": "utf8", "U": "large_utf8", "vu": "utf8_view", "tdD": "date32", "tdm": "date64",
    "tts": "time32[s]", "ttm": "time32[ms]", "ttu": "time64[us]", "ttn": "time64[ns]", "tDs": "duration[s]",
    "tDm": "duration[ms]", "tDu": "duration[us]", "tDn": "duration[ns]", "+l": "list", "+L": "large_list",
    "+s": "struct", "+m": "map", "+r": "run_end_encoded", "+vl": "list_view", "+vL": "large_list_view",
}  # fmt: skip
_SIGNED = "csil"
_UNSIGNED = "CSIL"
_WIDTHS = {"c": 8, "s": 16, "i": 32, "l": 64, "C": 8, "S": 16, "I": 32, "L": 64}
_STRINGS = ("u", "U", "vu")
_BINARIES = ("z", "Z", "vz")
_MAX_DIGITS = {32: 9, 64: 18, 128: 38}  # of decimals by their bits
_DECIMAL = re.compile(r"d:(\d+),(-?\d+)(?:,(\d+))?")  # digits, of these after the point, bits
_UNIT_NAMES = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
ACCEPTED = (
    "bool, integers, float32, float64, decimals of 32 to 128 bits, dates, times, timestamps, durations, "
    "fixed_size_binary, strings and binaries of any layout, and dictionaries of these"
)


class Field(NamedTuple):
    """A column of a schema. `dictionary`: the format of the values where `format` is that of indices, else ""."""

    name: str
    format: str
    dictionary: str
    nullable: bool

    @property
    def value_format(self) -> str:
        return self.dictionary or self.format


def type_name(field: Field) -> str:
    """In readable form: "dictionary(int32, utf8)", "decimal128(15, 2)"."""
    if field.dictionary:
        return f"dictionary({_format_name(field.format)}, {_format_name(field.dictionary)})"
    return _format_name(field.format)


def _format_name(text: str) -> str:
    if decimal := _DECIMAL.fullmatch(text):
        return f"decimal{decimal[3] or '128'}({decimal[1]}, {decimal[2]})"
    if text.startswith("ts"):
        unit = _UNIT_NAMES.get(text[2:3], text[2:3])
        return f"timestamp[{unit}, {text[4:]}]" if text[4:] else f"timestamp[{unit}]"
    if text.startswith("w:"):
        return f"fixed_size_binary({text[2:]})"
    return _NAMES.get(text, text)


def decimal_scale(text: str) -> int:
    return int(text[2:].split(",")[1])


def _decimal_digits(text: str) -> int:
    return int(text[2:].split(",")[0])


def _decimal_bits(text: str) -> int:
    parts = text.split(",")
    return int(parts[2]) if len(parts) > 2 else 128


def is_decimal(text: str) -> bool:
    decimal = _DECIMAL.fullmatch(text)
    return decimal is not None and _decimal_bits(text) in _MAX_DIGITS


def is_integer(text: str) -> bool:
    return text in _WIDTHS


def _common_integer(a: str, b: str) -> str | None:
    if (a in _SIGNED) == (b in _SIGNED):
        return a if _WIDTHS[a] >= _WIDTHS[b] else b
    signed, unsigned = (a, b) if a in _SIGNED else (b, a)
    bits = max(_WIDTHS[signed], 2 * _WIDTHS[unsigned])
    return {16: "s", 32: "i", 64: "l"}.get(bits)


def _common_decimal(a: str, b: str) -> str | None:
    scale = max(decimal_scale(a), decimal_scale(b))
    whole = max(_decimal_digits(a) - decimal_scale(a), _decimal_digits(b) - decimal_scale(b))
    digits = whole + scale
    if digits > _MAX_DIGITS[128]:
        return None
    bits = max(_decimal_bits(a), _decimal_bits(b))
    return f"d:{digits},{scale}" if bits == 128 or digits > _MAX_DIGITS[bits] else f"d:{digits},{scale},{bits}"


def same_kind(a: str, b: str) -> bool:
    """Formats that differ only in what comparisons ignore: a decimal's digits, a timestamp's zone."""
    if is_decimal(a) and is_decimal(b):
        return decimal_scale(a) == decimal_scale(b) and _decimal_bits(a) == _decimal_bits(b)
    return a.startswith("ts") and b.startswith("ts") and a[2:3] == b[2:3]


def common_format(probe: Field, build: Field) -> str | None:
    """The format to which both columns are cast before they are compared, such that different values never become
    equal.

    The same format: that. Integers: the narrowest that holds both. An integer with a float, two floats: f64. Strings in
    two layouts: views; likewise binaries. A dictionary with anything else: its values. Decimals: the larger scale, with
    room for the larger integer part. A column of type null: the other's. None: there is no such format.
    """
    a, b = probe.value_format, build.value_format
    if a == "n" or b == "n":
        return a if b == "n" else b
    if a in _STRINGS + _BINARIES and a != b or probe.dictionary or build.dictionary:
        for layouts, views in ((_STRINGS, "vu"), (_BINARIES, "vz")):
            if a in layouts and b in layouts:
                return views
    if a == b or same_kind(a, b):
        return a
    if is_integer(a) and is_integer(b):
        return _common_integer(a, b)
    if is_decimal(a) and is_decimal(b):
        return _common_decimal(a, b)
    numbers = [is_integer(text) or text in ("f", "g") for text in (a, b)]
    return "g" if all(numbers) else None
