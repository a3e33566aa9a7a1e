# SPDX-License-Identifier: Apache-2.0
"""Equality, order and LIKE under a collation, straight from the published rules; no code or table is shared with Quern.

    equality_key("utf8mb4_unicode_ci", "Straße ".encode())      (0x0FEA, 0x1002, ..); equal keys, equal strings
    order_key("utf8mb4_bin", b"a\\t") < order_key("utf8mb4_bin", b"a")        as if spaces followed
    matches("utf8mb4_general_ci", "a", "A")                     True: LIKE matches one character with the other
    like("utf8mb4_bin", b"a_%", b"abc", "\\\\")                 True

A string is a list of units: its bytes, or its characters' weights. Weights are those of Unicode's tables
(character_weights.py extracts them; general_ci follows from Python's unicodedata). Each byte of ill-formed UTF-8 is a
unit of its own above all characters; under `tidb.` names with weights it ends the string instead. (ascii_ci works on
bytes.) Then padding at the end is removed:

    utf8mb4_unicode_ci        'a \\0' -> 0E33 0209 (nothing) -> 0E33         padding is what weighs as a space does
    tidb.utf8mb4_unicode_ci   'a \\0' -> 0E33 0209 only U+0020 at the very end goes, before anything is weighed
"""
import dataclasses
import functools
import pathlib
import unicodedata

ILL_FORMED = 0x200000  # plus the byte: above every weight
_TABLE = pathlib.Path(__file__).resolve().parent / "Inputs" / "character_weights.txt"


@dataclasses.dataclass(frozen=True)
class Collation:
    name: str
    pad: str      # no, pads, trims: PadRule of collations.def
    weights: str  # bytes, upper, latin1, general, uca400, uca520, uca900, uca900_tidb


def _rows():
    for name, pad, weights in (
            ("binary", "no", "bytes"), ("ascii_bin", "pads", "bytes"), ("latin1_bin", "pads", "latin1"),
            ("utf8_bin", "pads", "bytes"), ("utf8mb4_bin", "pads", "bytes"), ("utf8mb4_0900_bin", "no", "bytes"),
            ("ascii_ci", "pads", "upper"), ("utf8_general_ci", "pads", "general"),
            ("utf8mb4_general_ci", "pads", "general"), ("utf8_unicode_ci", "pads", "uca400"),
            ("utf8mb4_unicode_ci", "pads", "uca400"), ("utf8mb4_unicode_520_ci", "pads", "uca520"),
            ("utf8mb4_0900_ai_ci", "no", "uca900"), ("tidb.binary", "no", "bytes"),
            ("tidb.ascii_bin", "trims", "bytes"), ("tidb.latin1_bin", "trims", "bytes"),
            ("tidb.utf8_bin", "trims", "bytes"), ("tidb.utf8mb4_bin", "trims", "bytes"),
            ("tidb.utf8mb4_0900_bin", "no", "bytes"), ("tidb.utf8_general_ci", "trims", "general"),
            ("tidb.utf8mb4_general_ci", "trims", "general"), ("tidb.utf8_unicode_ci", "trims", "uca400"),
            ("tidb.utf8mb4_unicode_ci", "trims", "uca400"), ("tidb.utf8mb4_0900_ai_ci", "no", "uca900_tidb")):
        yield Collation(name, pad, weights)


COLLATIONS = {collation.name: collation for collation in _rows()}
BINARY = COLLATIONS["binary"]
BY_BYTES = ("", "binary", "tidb.binary")  # what is one character to LIKE


def collation_of(name):
    """'' is the default."""
    return COLLATIONS[name] if name else BINARY


# ---- weights of characters -------------------------------------------------------------------------------------------


@functools.cache
def _tables():
    """Of 4.0.0, 5.2.0, 9.0.0: code point -> weights; and what the extract knows."""
    tables = ({}, {}, {})
    for line in _TABLE.read_text().splitlines():
        if line.startswith("#"):
            continue
        code, *texts = line.split()
        for table, text in zip(tables, texts):
            if text != "-":
                table[int(code, 16)] = tuple(int(weight, 16) for weight in text.split(".")) if text != "0" else ()
    return tables


def known_code_points():
    """Characters whose weights in the tables are known. Others have implicit weights (Han, Hangul syllables) or
    none."""
    return sorted(set().union(*_tables()))


def _implicit(base, code):
    return (base + (code >> 15), code & 0x7FFF | 0x8000)


def _uca400(code, table=0):
    if code > 0xFFFF and table == 0:
        return (0xFFFD,)
    if code in _tables()[table] and not (code == 0xFDFA and table == 0):
        return _tables()[table][code][:8]
    if 0x3400 <= code <= 0x4DB5:
        return _implicit(0xFB80, code)
    return _implicit(0xFB40 if 0x4E00 <= code <= 0x9FA5 or code in (0xFA0E, 0xFA0F) else 0xFBC0, code)


def _jamo(code):
    """The jamo of a Hangul syllable."""
    place = code - 0xAC00
    jamo = (0x1100 + place // 588, 0x1161 + place % 588 // 28, 0x11A7 + place % 28)
    return jamo[:2] if place % 28 == 0 else jamo


_HAN_EXTENSIONS = ((0x3400, 0x4DB5), (0x20000, 0x2A6D6), (0x2A700, 0x2B734), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1))


def _uca900(code, of_tidb=False):
    if 0xAC00 <= code <= 0xD7AF:
        return tuple(weight for jamo in _jamo(code) for weight in _uca900(jamo))
    if of_tidb and code >= 0x2CEA2:
        return _implicit(0xFBC0, code)
    if code == 0xFFFD:
        return (0xFFFD,)
    if code in _tables()[2]:
        return _tables()[2][code][:8]
    if 0x17000 <= code <= 0x18AFF:
        return (0xFB00, code - 0x17000 | 0x8000)
    if any(first <= code <= last for first, last in _HAN_EXTENSIONS):
        return _implicit(0xFB80, code)
    return _implicit(0xFB40 if 0x4E00 <= code <= 0x9FD5 or 0xFA0E <= code <= 0xFA29 else 0xFBC0, code)


_GENERAL_BLOCKS = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x1E, 0x1F, 0x21, 0x24, 0xFF}
_GENERAL_EXCEPTIONS = {0x00DF: 0x53, 0x03F2: 0x03A3, 0x0419: 0x0419, 0x0439: 0x0419}
# In those blocks, younger than Unicode 3.0: assigned by 3.1 or 3.2, after which unicodedata knows.
_SINCE_3_1 = {0x220, 0x34F, *range(0x363, 0x370), 0x3D8, 0x3D9, 0x3F4, 0x3F5, 0x3F6, 0x48A, 0x48B, 0x4C5, 0x4C6, 0x4C9,
              0x4CA, 0x4CD, 0x4CE, *range(0x500, 0x510), *range(0x213D, 0x214C), *range(0x21F4, 0x2200),
              *range(0x24EB, 0x24FF), 0xFF5F, 0xFF60}


def _is_old(character):
    return unicodedata.ucd_3_2_0.category(character) != "Cn" and ord(character) not in _SINCE_3_1


def _stripped(character):
    """Without marks: canonical decompositions into a letter and a mark, repeatedly."""
    while True:
        parts = unicodedata.decomposition(character).split()
        if len(parts) != 2 or parts[0].startswith("<"):
            return character
        base, mark = (chr(int(part, 16)) for part in parts)
        if not unicodedata.category(base).startswith("L") or unicodedata.category(mark) != "Mn":
            return character
        character = base


def _general(code):
    if code > 0xFFFF:
        return (0xFFFD,)
    character = chr(code)
    if code in _GENERAL_EXCEPTIONS:
        return (_GENERAL_EXCEPTIONS[code],)
    if code >> 8 not in _GENERAL_BLOCKS or not _is_old(character):
        return (code,)
    character = _stripped(character)
    upper = character.upper()
    if len(upper) == 1 and ord(upper) <= 0xFFFF and _is_old(upper):
        character = upper
    return (ord(_stripped(character)),)


def _upper(code):
    return (code - 32 if 0x61 <= code <= 0x7A else code,)


def _latin1(code):
    """MySQL's latin1 is Windows-1252, whose five holes are control characters; what it lacks comes after it, by code
    point."""
    try:
        return (chr(code).encode("cp1252")[0],)
    except UnicodeEncodeError:
        return (code,) if code in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else (0x10000 + code,)


_WEIGHTS = {"upper": _upper, "latin1": _latin1, "general": _general, "uca400": _uca400,
            "uca520": functools.partial(_uca400, table=1), "uca900": _uca900,
            "uca900_tidb": functools.partial(_uca900, of_tidb=True)}


@functools.lru_cache(1 << 16)
def weights_of(kind, code):
    return _WEIGHTS[kind](code)


# ---- characters of bytes ---------------------------------------------------------------------------------------------


def characters(value):
    """Code points; of what is ill-formed ILL_FORMED plus each byte."""
    try:
        return list(map(ord, value.decode("utf-8")))
    except UnicodeDecodeError:
        # surrogateescape maps each byte of an ill-formed piece to U+DC00 + byte
        return [code - 0xDC00 + ILL_FORMED if 0xDC80 <= code <= 0xDCFF else code
                for code in map(ord, value.decode("utf-8", "surrogateescape"))]


# ---- keys ------------------------------------------------------------------------------------------------------------


def _units(collation, value):
    """All units, before padding goes."""
    if collation.pad == "trims":
        value = value.rstrip(b" ")
    if collation.weights in ("bytes", "upper"):
        return value if collation.weights == "bytes" else value.upper()
    units = []
    for code in characters(value):
        if code < ILL_FORMED:
            units += weights_of(collation.weights, code)
        elif collation.name.startswith("tidb."):
            break
        else:
            units.append(code)
    return tuple(units)


def _pad_unit(collation):
    return 0x20 if collation.weights in ("bytes", "upper") else weights_of(collation.weights, 0x20)[0]


@functools.lru_cache(1 << 17)
def _key(name, value):
    collation = collation_of(name)
    units = _units(collation, value)
    if collation.pad != "pads":
        return units
    pad, end = _pad_unit(collation), len(units)
    while end and units[end - 1] == pad:
        end -= 1
    return units[:end]


def equality_key(name, value):
    if name == "latin1_bin":
        return value.rstrip(b" ")
    return _key(name, value)


@functools.total_ordering
class PaddedKey:
    """Units, behind which padding follows for ever."""
    __slots__ = ("units", "pad")

    def __init__(self, units, pad):
        self.units, self.pad = tuple(units), pad

    def __eq__(self, other):
        return self.units == other.units

    def __hash__(self):
        return hash(self.units)

    def __lt__(self, other):
        lengthened = lambda key, length: key.units + (key.pad,) * (length - len(key.units))
        most = max(len(self.units), len(other.units))
        return lengthened(self, most) < lengthened(other, most)


def order_key(name, value):
    collation = collation_of(name)
    key = _key(name, value)
    return PaddedKey(key, _pad_unit(collation)) if collation.pad == "pads" else key


def is_plain(name):
    """Whether strings are equal only where their bytes are, and come in the order of these."""
    collation = collation_of(name)
    return collation.pad == "no" and collation.weights == "bytes"


# ---- LIKE ------------------------------------------------------------------------------------------------------------


def matches(name, one, other):
    """Whether LIKE matches one unit of `characters` with the other; expansions do not match, and nothing is ignored."""
    collation = collation_of(name)
    if one == other:
        return True
    if collation.weights in ("bytes", "latin1") or max(one, other) >= ILL_FORMED:
        return False
    if collation.weights in ("uca400",) and max(one, other) > 0xFFFF:
        return False
    return weights_of(collation.weights, one) == weights_of(collation.weights, other)


def _pattern_parts(pattern, escape):
    """Of each unit (kind, unit): kind one of unit, any one, any."""
    parts, place = [], 0
    while place < len(pattern):
        unit = pattern[place]
        place += 1
        if unit == escape and place < len(pattern):
            parts.append(("unit", pattern[place]))
            place += 1
        elif unit == escape:
            parts.append(("unit", unit))
        elif unit in (0x25, 0x5F):
            parts.append(("any" if unit == 0x25 else "one", unit))
        else:
            parts.append(("unit", unit))
    return parts


def like(name, pattern, value, escape="\\"):
    """`escape`: a character, or "" for none."""
    split = list if name in BY_BYTES else characters
    units, parts = split(value), _pattern_parts(split(pattern), ord(escape) if escape else None)
    reached = {0}
    for kind, wanted in parts:
        if kind == "any":
            reached = set(range(min(reached), len(units) + 1)) if reached else reached
        else:
            reached = {place + 1 for place in reached if place < len(units)
                       and (kind == "one" or matches(name, wanted, units[place]))}
    return len(units) in reached
