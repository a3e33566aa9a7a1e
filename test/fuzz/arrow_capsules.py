#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the Python package with ill-formed arrays and schemas in capsules: a ValueError, or no harm.

    arrow_capsules.py --lib build/lib/libquern.so --seed 1 --cases 1000        PYTHONPATH names the package

The breakages of arrays are those of arrow_import.py; the schema's are here. An object whose __arrow_c_array__ answers
the broken structs is given to each of the four functions. A breakage marked REFUSE must be refused by some exception of
ERRORS. Of part of an array a null count is not taken over, so that a wrong one is harmless there.
"""
import ctypes
import sys

import arrow_import
import watched
import quern_abi
from arrow_import import REFUSE

import quern

ERRORS = (ValueError, TypeError)
HARMLESS = ("struct_buffers_wrong", "null_count_lies")
CALLS = {
    "aggregate by c0": lambda t: quern.aggregate(t, by="c0", aggs="count(*), max(c1)"),
    "aggregate by c1": lambda t: quern.aggregate(t, by="c1, c0", aggs="first(c0)"),
    "aggregate where": lambda t: quern.aggregate(t, by="c0", where="not (c1 is null) and c0 = c0"),
    "sort": lambda t: quern.sort(t, by="c1 desc, c0", engine="generic"),
    "filter": lambda t: quern.filter(t, "c0 is not null or c1 is null"),
    "join": lambda t: quern.join(t, t, on="c0", select="probe.c1"),
}  # fmt: skip
# Formats that are none, since a buffer's size cannot be told from the format of another type.
FORMATS = (*(text for text in arrow_import.FORMATS if text != b"i"),
           b"d:10", b"d:x,y", b"d:99,99", b"d:10,2,", b"d:,", b"tss", b"tsx:", b"tiD", b"w:3,4",
           b"+w:3", b"+ud:0,1", b"+" * 100_000, b"vu0")  # fmt: skip
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Capsules:
    """Has __arrow_c_array__. The structs are moved out of copies, so that it can be asked more than once."""

    def __init__(self, schema, array):
        self.schema, self.array, self.keep = schema, array, []

    def __arrow_c_array__(self, requested_schema=None):
        copy = quern_abi.ArrowArray()
        ctypes.memmove(ctypes.byref(copy), ctypes.byref(self.array), ctypes.sizeof(copy))
        self.keep.append(copy)
        return (capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
                capsule(ctypes.addressof(copy), b"arrow_array", None))


def _break_schema(schema, rng):
    """Breaks one part, and returns what it did."""
    child, kind = schema.children[rng.randrange(2)].contents, rng.randrange(8)
    if kind == 0:
        child.format = rng.choice([text for text in FORMATS if text != child.format])
    elif kind == 1:
        schema.n_children = rng.choice((0, 1, -1, -(2**63)))
    elif kind == 2:
        schema.format = rng.choice((b"i", b"", None, b"+l", b"\xff"))
    elif kind == 3:
        schema.children = None
    elif kind == 4:
        children = (ctypes.POINTER(quern_abi.ArrowSchema) * 2)(schema.children[0], schema.children[1])
        children[rng.randrange(2)] = None
        schema.children = children
    elif kind == 5:
        child.name = rng.choice((None, b"\xff\xfe", b"c0", b""))
    elif kind == 6 and child.dictionary:
        child.dictionary.contents.format = rng.choice((None, b"", b"d:", b"+s", b"u" * 5000))
    elif kind == 6:
        child.dictionary = ctypes.pointer(schema)
    else:
        schema.release = None
    return f"schema breakage {kind}"


def _broken_array(owned, types, rng):
    breakage, number = rng.choice(arrow_import.BREAKAGES), rng.randrange(2)
    while breakage in (arrow_import.too_many_rows, arrow_import.nothing):  # these cannot be told from right ones
        breakage = rng.choice(arrow_import.BREAKAGES)
    return f"{breakage.__name__} in column {number}", breakage(owned, owned.children[number], types[number], rng)


def one_case(library, rng):
    types = arrow_import._random_types(rng)
    batch = arrow_import.random_batch(rng, types, rng.choice((1, 2, 8, 70)))
    owned = arrow_import.OwnedArray(batch.struct)
    schema = quern_abi.export_schema(batch.schema)
    structs = [schema, *(schema.children[number].contents for number in range(2))]
    structs += [child.dictionary.contents for child in structs[1:] if child.dictionary]
    saved = [(struct, ctypes.string_at(ctypes.byref(struct), ctypes.sizeof(struct))) for struct in structs]
    expected = None
    if rng.random() < 0.4:
        what = _break_schema(schema, rng)
    else:
        what, expected = _broken_array(owned, types, rng)
    name = rng.choice(list(CALLS))
    yield f"{name} of {', '.join(column_type.text() for column_type in types)}: {what}"
    refused = False
    try:
        CALLS[name](Capsules(schema, owned.struct))
    except ERRORS:
        refused = True  # not the error, whose traceback would keep the array for longer than `owned`
    except Exception as error:
        raise watched.Failure(f"{type(error).__name__}: {error}") from None
    if not refused and expected == REFUSE and not any(name in what for name in HARMLESS):
        raise watched.Failure("an ill-formed array was accepted")
    for struct, bytes_ in saved:
        ctypes.memmove(ctypes.byref(struct), bytes_, len(bytes_))
    quern_abi.release_schema(schema)
    owned.close()


if __name__ == "__main__":
    sys.exit(watched.main(__doc__, one_case))
