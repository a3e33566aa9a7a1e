#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes quern_compile with spec and parameter texts: never a crash; an error is one line that says what is accepted.

    spec_text.py --lib build/lib/libquern.so --seed 1 --seconds 20

Half of the texts are valid and must be accepted; their canonical form must be accepted too and print as itself. The
others are valid texts with a few changes (a byte, a word, a piece twice, two specs spliced), or words in any order.
"""
import dataclasses
import random
import sys

import watched
from quern_abi import QuernError
from random_data import COLLATIONS, FLOAT_CODES, INTEGER_CODES, SCALAR_TYPES, STRING_TYPES, random_type

_WORDS = [
    "join.inner", "join.left", "join.mark", "join.anti_null_aware", "join.right_semi", "join.outer", "join.", "join",
    "aggregate", "sort", "filter", "keys=", "build=", "probe=", "residual=", "residual=i64:lt", "residual", "keys", "=",
    ",", "(", ")", ":", " ", "  ", "i64", "i65", "utf8", "fixed_binary", "fixed_binary(0)", "fixed_binary(-1)",
    "fixed_binary(99999999999999999999)", "fixed_binary(4294967295)", "fixed_binary()", "dictionary",
    "dictionary(i32,utf8)", "dictionary(f32,utf8)", "dictionary(i8,bool", "dictionary(i8,dictionary(i8,i8))", "rowid",
    "time", "decimal64", "decimal128", "nullable", ":nullable", ":nullequal", ":desc", ":nulls_first",
    ":nullable:nullable", ":lt", ":ge", ":eq:ne", "lt", "utf8(utf8mb4_bin)", "utf8(nothing)", "i64(binary)",
    "\t", "\n", "\x01", "\x7f", "é",
    "\u2028", "%s%n", "'", '"', "0", "aggs=", "aggs", "aggs=count_star", "count_star", "count_star()",
    "count_star:filter", "sum(i64)", "sum(utf8)", "sum", "sum()", "min(utf8(utf8mb4_bin))",
    "covar_pop(f64,i32:nullable)", "quantile(f64,0.9)", "quantile(f64,2)", "quantile(f64,nan)", "quantile(f64,1e-999)",
    "string_agg(utf8,x'2c20')", "string_agg(utf8,x'2')", "string_agg(", "x''", ":filter", ":filter:filter",
    "sort keys=", ":asc", ":asc:desc", ":nulls_last", ":out", ":out:out", "payload=", "payload=rowid", "limit=",
    "limit=1", "limit=0", "limit=9223372036854775807", "limit=9223372036854775808", "limit=-1", "stable", "stable=",
    "stable stable", "partition=", "partition=1", "partition=17", "partition=99999999999", "window=", "window=rank",
    "row_number", "dense_rank", "rank,rank", "ntile", "filter ", " and ", " or ", " not ", "(", ")", " in (",
    " between ", " like ", " escape ", " is null", "'", "''", "x'00ff'", "x'0'", "'%a!%'", " <> ", " >= ", "==", "-",
    "nan", "-inf", "1e999", "1e-400", "340282366920938463463374607431768211456", "true", "filter i64 = 5",
    "filter utf8 like '%'", "filter i64 = i32" ]
_PARAMS = [
    "batch_size=7", "batch_size=0", "batch_size=4096", "batch_size=4097", "batch_size=-1", "batch_size=",
    "batch_size", "=7", "test.hash=zero", "hash=zero", "test.hash=", "test.hash=sum", "prefetch=off",
    "prefetch_group=1", "pipeline=2", "prefetch_probe_unchained=513",
    "prefetch_probe_unchained=1@99999999999999999999,2", "huge_pages=on", "huge_pages=ON", "layout=unchained",
    "batch_size=1e3", "batch_size=0x10", "nothing=1", " ", "\n", "batch_size=7\x01", "test.sort_method=comparison",
    "test.sort_method=merge", "prefix_words=4", "prefix_words=0", "top_rows=0", "top_rows=1073741825"
]


# Which sides a kind's result has columns of, and whether null keys make its answers unknown (then: one key, no
# residual).
_KINDS = {
    "inner": ("bp", False), "left": ("bp", False), "right": ("bp", False), "full": ("bp", False),
    "single": ("bp", False), "semi": ("p", False), "anti": ("p", False), "anti_null_aware": ("p", True),
    "mark": ("p", True), "right_semi": ("b", False), "right_anti": ("b", False)
}
_RESIDUAL_TYPES = tuple(name for name in SCALAR_TYPES if name not in (*STRING_TYPES, "fixed_binary"))
_COMPARISONS = ("lt", "le", "gt", "ge", "ne", "eq")

# Functions of aggregates: how many columns each takes, and of which types. A host's are not among them: none is
# registered here.
_PLAIN_NUMBERS = (*INTEGER_CODES, *FLOAT_CODES)
_NUMBERS = (*_PLAIN_NUMBERS, "decimal32", "decimal64", "decimal128")
_COMPARING = ("min", "max", "any", "first", "last", "count_distinct", "approx_count_distinct")
_AGGREGATES = {
    "count_star": (0, ()), "count": (1, SCALAR_TYPES), **{name: (1, SCALAR_TYPES) for name in _COMPARING},
    **{name: (1, _NUMBERS) for name in ("sum", "avg", "sum_distinct")},
    **{name: (1, tuple(INTEGER_CODES)) for name in ("sum128", "bit_and", "bit_or", "bit_xor")},
    **{name: (1, _PLAIN_NUMBERS)
       for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "median", "quantile")},
    **{name: (2, _PLAIN_NUMBERS) for name in ("covar_pop", "covar_samp", "corr")},
    **{name: (1, ("bool",)) for name in ("bool_and", "bool_or")}, "string_agg": (1, STRING_TYPES)
}


def _right_type(rng, key):
    column_type = dataclasses.replace(random_type(rng), nullable=rng.random() < 0.3)
    if key and column_type.name in STRING_TYPES and rng.random() < 0.4:
        column_type = dataclasses.replace(column_type, collation=rng.choice(COLLATIONS))
    return dataclasses.replace(column_type, null_equal=key and column_type.nullable and rng.random() < 0.5).text()


def _right_residual(rng):
    flags = [rng.choice(_COMPARISONS)] + ["nullable"] * (rng.random() < 0.3)
    rng.shuffle(flags)
    return ":".join([rng.choice(_RESIDUAL_TYPES), *flags])


def _right_join(rng):
    kind, (sides, one_key) = rng.choice(tuple(_KINDS.items()))
    num_keys = 1 if one_key else rng.choice((1, 1, 2, 3, 16))
    text = f"join.{kind} keys=" + ",".join(_right_type(rng, True) for _ in range(num_keys))
    for side in ("build", "probe"):
        num_columns = rng.choice((0, 1, 2, 5)) if side[0] in sides else 0
        payload = ["rowid" if rng.random() < 0.1 else _right_type(rng, False) for _ in range(num_columns)]
        text += f" {side}={','.join(payload)}" if payload else ""
    residual = [_right_residual(rng) for _ in range(0 if one_key else rng.choice((0, 0, 1, 2, 16)))]
    return text + (f" residual={','.join(residual)}" if residual else "")


def _right_argument(rng, names, collated):
    column_type = dataclasses.replace(random_type(rng, names=names), nullable=rng.random() < 0.3)
    if collated and column_type.name in STRING_TYPES and rng.random() < 0.4:
        column_type = dataclasses.replace(column_type, collation=rng.choice(COLLATIONS))
    return column_type.text()


def _right_aggregate(rng):
    name, (num_arguments, names) = rng.choice(tuple(_AGGREGATES.items()))
    inside = [_right_argument(rng, names, name in _COMPARING) for _ in range(num_arguments)]
    if name == "quantile":
        inside.append(rng.choice(("0", "1", "0.5", "0.90", "1e-3", "-0", repr(rng.random()))))
    if name == "string_agg":
        inside.append("x'" + rng.choice(("", "2c20", "2C", "00fF29", "0a" * 1024)) + "'")
    return name + (f"({','.join(inside)})" if inside else "") + (":filter" if rng.random() < 0.3 else "")


def _right_aggregation(rng):
    keys = [_right_argument(rng, SCALAR_TYPES, True) for _ in range(rng.choice((0, 1, 1, 2, 16)))]
    aggregates = [_right_aggregate(rng) for _ in range(rng.choice((1, 2, 5, 20) if not keys else (0, 1, 2, 5, 20)))]
    fields = [f"{name}={','.join(items)}" for name, items in (("keys", keys), ("aggs", aggregates)) if items]
    rng.shuffle(fields)
    return " ".join(["aggregate", *fields])


def _right_sort_key(rng):
    flags = [rng.choice(pair)
             for pair in (("nullable", ""), ("asc", "desc", ""), ("nulls_first", "nulls_last", ""), ("out", ""))]
    rng.shuffle(flags)
    column_type = dataclasses.replace(random_type(rng), nullable=False)
    if column_type.name in STRING_TYPES and rng.random() < 0.4:
        column_type = dataclasses.replace(column_type, collation=rng.choice(COLLATIONS))
    return ":".join([column_type.text(), *filter(None, flags)])


def _right_sort(rng):
    keys = [_right_sort_key(rng) for _ in range(rng.choice((1, 1, 2, 3, 16)))]
    payload = ["rowid" if rng.random() < 0.2 else _right_type(rng, False) for _ in range(rng.choice((0, 1, 2, 5)))]
    window = rng.sample(("row_number", "rank", "dense_rank"), rng.choice((0, 0, 1, 3)))
    fields = [f"{name}={','.join(items)}" for name, items in (("keys", keys), ("payload", payload), ("window", window))
              if items]
    if rng.random() < 0.4:
        fields.append(f"limit={rng.choice((1, 10, 100_000, 2**63 - 1, rng.randint(1, 2**40)))}")
    if rng.random() < 0.4:
        fields.append("stable")
    if window:
        fields.append(f"partition={rng.randint(0, len(keys))}")
    rng.shuffle(fields)
    return " ".join(["sort", *fields])


# The integers that a column of a type holds.
_INTEGER_BITS = {
    "date32": 32, "time32": 32, "date64": 64, "time64": 64, "timestamp": 64, "duration": 64, "decimal32": 32,
    "decimal64": 64, "decimal128": 128,
    **{name: int(name[1:]) for name in INTEGER_CODES}
}


def _right_text(rng, size):
    content = bytes(rng.choice((rng.randint(0x20, 0x7E), rng.randint(0, 255))) for _ in range(size))
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"x'{content.hex()}'"
    return f"x'{content.hex()}'" if "\0" in text or rng.random() < 0.2 else "'" + text.replace("'", "''") + "'"


def _right_literal(rng, column_type):
    if column_type.name == "bool":
        return rng.choice(("true", "FALSE"))
    if column_type.name in FLOAT_CODES:
        return rng.choice(("0", "-0", ".5", "1.50e3", "nan", "-INF", "1e-30", repr(rng.uniform(-1e6, 1e6)),
                           str(rng.randint(-99, 99))))
    if column_type.name in _INTEGER_BITS:
        bits = _INTEGER_BITS[column_type.name]
        least = 0 if column_type.name[0] == "u" else -(1 << (bits - 1))
        return str(rng.choice((least, least + (1 << bits) - 1, rng.randint(0, 127))))
    return _right_text(rng, column_type.width
                       if column_type.name == "fixed_binary" else rng.choice((0, 1, 4, 12, 13, 40)))


def _right_leaf(rng):
    column_type = dataclasses.replace(random_type(rng), nullable=rng.random() < 0.3)
    if column_type.name in STRING_TYPES and rng.random() < 0.4:
        column_type = dataclasses.replace(column_type, collation=rng.choice(COLLATIONS))
    column, literal = column_type.text(), lambda: _right_literal(rng, column_type)
    negation = rng.choice(("", "not ", "NOT "))
    kind = rng.randrange(6)
    if kind == 0:
        return f"{column} is {negation}null"
    if kind == 1:
        return f"{column} {negation}between {literal()} and {literal()}"
    if kind == 2:
        return f"{column} {negation}in ({', '.join(literal() for _ in range(rng.choice((1, 3, 20))))})"
    if kind == 3 and column_type.name in STRING_TYPES:
        return f"{column} {negation}like {literal()}" + rng.choice(("", " escape '!'", " escape ''", " escape 'é'"))
    other = dataclasses.replace(column_type, nullable=rng.random() < 0.3).text()
    return f"{column} {rng.choice(('=', '==', '<>', '!=', '<', '<=', '>', '>='))} {other if kind == 4 else literal()}"


def _right_condition(rng, depth):
    kind = rng.randrange(4) if depth else 3
    if kind == 3:
        return _right_leaf(rng)
    if kind == 2:
        return f"not ({_right_condition(rng, depth - 1)})"
    return rng.choice((" and ", " or ", "\tOR\n")).join(f"({_right_condition(rng, depth - 1)})"
                                                        for _ in range(rng.choice((2, 3))))


def _right_filter(rng):
    return "filter " + _right_condition(rng, rng.choice((0, 1, 3)))


def right_spec(rng):
    return rng.choices((_right_join, _right_aggregation, _right_sort, _right_filter), (4, 3, 3, 3))[0](rng)


# Apart from right_spec, so that the other operators' cases remain what they were.
def _right_set(rng):
    kind = rng.choice(("union", "intersect", "except", "intersect_all", "except_all"))
    keys = [_right_argument(rng, SCALAR_TYPES, True) for _ in range(rng.choice((1, 1, 2, 16)))]
    return f"set.{kind} keys={','.join(keys)}"


def _wrong_set(rng):
    if rng.random() < 0.1:
        return rng.choice(("set.union", "set.intersection keys=i64", "set.except_all keys=", "set. keys=i64",
                           "set.union keys=i64 aggs=count_star", "set.except keys=i64:nullequal",
                           "set.intersect keys=rowid", "set.union keys=" + ",".join(["i64"] * rng.choice((17, 5000)))))
    text = _right_set(rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        text = _mutated(rng, text)
    return text.replace("\0", "\1")


# Functions of expressions that take two values of any one type of these, and those of one value.
_OF_TWO = {
    **{name: tuple(INTEGER_CODES) for name in
       ("add_checked", "subtract_or_null", "modulo_checked", "divide_or_null", "bit_xor")},
    **{name: tuple(FLOAT_CODES) for name in ("add", "multiply", "divide", "divide_checked")},
    **{name: (*_PLAIN_NUMBERS, "bool", "date32", "timestamp", "duration") for name in
       ("less", "not_equal", "is_distinct", "coalesce", "null_if", "greatest")}
}
_OF_ONE = {"negate": _PLAIN_NUMBERS, "abs_checked": tuple(INTEGER_CODES), "floor": tuple(FLOAT_CODES), "not": ("bool",),
           "year": ("date32",), "is_null": (*_PLAIN_NUMBERS, "bool", "time64")}
_MAP_TYPES = (*_PLAIN_NUMBERS, "bool", "date32", "date64", "time32", "time64", "timestamp", "duration")


def _right_value(rng, name, columns, depth):
    """An expression of the type."""
    kind, found = rng.randrange(5), [number for number, column in enumerate(columns) if column == name]
    if found and kind < 2:
        return f"${rng.choice(found)}"
    if depth and kind == 2:
        return f"case_when({_right_value(rng, 'bool', columns, 0)}, {_right_value(rng, name, columns, depth - 1)}," \
               f"{_right_value(rng, name, columns, depth - 1)})"
    if name == "bool":
        return rng.choice(("true:bool", "false:bool", "null:bool"))
    if name in FLOAT_CODES:
        return rng.choice(("0", "-1.5", "nan", "inf", "2e3", "null")) + ":" + name
    return rng.choice(("0", "1", "127", "null")) + ":" + name


def _right_expression(rng, columns):
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(("1.00:decimal128(3,2)", "-7:decimal128(38,0)", "null:decimal128(5,5)",
                           "multiply(0.5:decimal128(2,1),12345.67:decimal128(15,2))"))
    if kind == 1:
        source, target = rng.choice(_PLAIN_NUMBERS), rng.choice(_PLAIN_NUMBERS)
        return f"{rng.choice(('cast', 'cast_or_null'))}({_right_value(rng, source, columns, 1)},{target})"
    table = _OF_TWO if kind < 4 else _OF_ONE
    function, names = rng.choice(tuple(table.items()))
    name = rng.choice(names)
    return f"{function}({','.join(_right_value(rng, name, columns, 2) for _ in range(2 if kind < 4 else 1))})"


# Apart, as sets are.
def _right_map(rng):
    columns = [rng.choice(_MAP_TYPES) for _ in range(rng.choice((0, 1, 3, 10)))]
    given = ",".join(name + rng.choice(("", ":nullable")) for name in columns)
    results = [_right_expression(rng, columns) for _ in range(rng.choice((1, 1, 3, 10)))]
    return f"map{' in=' + given if given else ''} out={','.join(results)}"


def _wrong_map(rng):
    if rng.random() < 0.1:
        return rng.choice(("map", "map in=i64", "map out=", "map out=$0", "map in=utf8 out=$0", "map out=1:decimal128",
                           "map out=" + "not(" * rng.choice((63, 64, 100_000)) + "true:bool",
                           "map out=" + ",".join(["1:i8"] * rng.choice((1024, 1025, 20_000))),
                           "map in=" + ",".join(["i8"] * rng.choice((1024, 1025, 20_000))) + " out=$0",
                           "map out=1" + "0" * rng.choice((37, 38, 5000)) + ":decimal128(38,0)"))
    text = _right_map(rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        text = _mutated(rng, text)
    return text.replace("\0", "\1")


def _mutated(rng, text):
    at, end = sorted(rng.randint(0, len(text)) for _ in range(2))
    kind = rng.randrange(8)
    if kind == 0:
        return text[:at] + text[at + 1:]
    if kind == 1:
        return text[:at] + chr(rng.choice((0x20, 0x2C, 0x3A, 0x3D, 0x28, 0x29, 0x0A, 0x7F, 0xE9,
                                           rng.randint(1, 127)))) + text[at:]
    if kind == 2:
        return text[:at] + rng.choice(_WORDS) + text[end:]
    if kind == 3:
        return text[:end] + text[at:]
    if kind == 4:
        return text[:at] + text[at:end] * rng.choice((0, 2, 3, 20)) + text[end:]
    if kind == 5:
        other = right_spec(rng)
        return text[:at] + other[rng.randint(0, len(other)):]
    if kind == 6:
        return text.upper() if rng.random() < 0.3 else text[:at] + text[at:end].swapcase() + text[end:]
    return " ".join(sorted(text.split(" "), key=lambda _: rng.random()))


def _wrong_spec(rng):
    kind = rng.random()
    if kind < 0.15:
        return "".join(rng.choice(_WORDS) for _ in range(rng.randint(0, 30))).encode()
    if kind < 0.18:
        return rng.choice((b"join.inner keys=" + b"dictionary(i8," * rng.choice((2, 1000, 100_000)),
                           b"join.inner keys=" + b",".join([b"i64"] * rng.choice((17, 5000))),
                           b"a" * rng.choice((1019, 1020, 100_000)),
                           b"join.inner keys=i64 build=" + b",".join([b"i64"] * rng.choice((1024, 1025, 20_000))),
                           b"aggregate aggs=" + b",".join([b"count_star"] * rng.choice((256, 257, 6000))),
                           b"aggregate aggs=string_agg(utf8,x'" + b"2c" * rng.choice((1024, 1025, 40_000)) + b"')",
                           b"sort keys=" + b",".join([b"utf8:desc"] * rng.choice((17, 5000))),
                           b"sort keys=i64 payload=" + b",".join([b"utf8"] * rng.choice((1024, 1025, 20_000))),
                           b"sort keys=i64 window=" + b",".join([b"rank"] * rng.choice((2, 5000))),
                           b"sort keys=i64 payload=" + b",".join([b"i64"] * rng.choice((1024, 1025, 20_000))),
                           b"sort keys=" + b",".join([b"utf8:desc:out"] * rng.choice((16, 17, 5000))),
                           b"filter i64 in (" + b",".join([b"7"] * rng.choice((1, 65536, 65537))) + b")",
                           b"filter " + b"not " * rng.choice((63, 64, 100_000)) + b"bool",
                           b"filter " + b"(" * rng.choice((63, 64, 100_000)) + b"bool",
                           b"filter " + b" or ".join([b"bool"] * rng.choice((1024, 1025, 50_000))),
                           b"filter utf8 = '" + b"a" * rng.choice((1000, 4 << 20)) + b"'",
                           b"join.full keys=i64 residual=" + b",".join([b"u8:le"] * rng.choice((16, 17, 5000))),
                           b"join.inner keys=i64 build="
                           + b",".join([b"fixed_binary(2147483647)"] * rng.choice((1, 2, 3, 1024)))))
    text = right_spec(rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        text = _mutated(rng, text)
    content = text.encode()
    if rng.random() < 0.05 and content:
        at = rng.randrange(len(content))
        content = content[:at] + bytes([rng.randint(128, 255)]) + content[at + 1:]
    return content.replace(b"\0", b"\1")


def _compile(library, spec, params, must_pass):
    """The canonical spec, or None where it was refused."""
    try:
        with library.compile(spec, "generic", params) as kernel:
            canonical = kernel.text("spec")
            kernel.job().close()
            return canonical
    except QuernError as error:
        if must_pass:
            raise watched.Failure(f"a right spec was refused: {error.text}") from None
        watched.check_error(error)
    return None


def _try(library, spec, params, right):
    yield (spec if len(spec) < 500 else spec[:500] + b"...", params)
    canonical = _compile(library, spec, params, right and params is None)
    if canonical is None:
        return
    yield ("canonical", canonical[:500])
    again = _compile(library, canonical, None, True)
    if again != canonical:
        raise watched.Failure(
            f"the canonical form of a spec prints otherwise when parsed again: {canonical!r} and {again!r}")


def one_case(library, rng):
    right = rng.random() < 0.5
    spec = right_spec(rng).encode() if right else _wrong_spec(rng)
    params = None if rng.random() < 0.7 else " ".join(rng.choice(_PARAMS) for _ in range(rng.randint(1, 3))).encode()
    yield from _try(library, spec, params, right)
    clears_cache = rng.random() < 0.01
    if rng.random() < 0.2:
        right = rng.random() < 0.5
        yield from _try(library, (_right_set if right else _wrong_set)(rng).encode(), params, right)
    maps = random.Random(rng.getrandbits(64))  # whose draws shift no others
    if maps.random() < 0.4:
        right = maps.random() < 0.5
        yield from _try(library, (_right_map if right else _wrong_map)(maps).encode(), None, right)
    if clears_cache:
        library.clear_cache()


if __name__ == "__main__":
    sys.exit(watched.main(__doc__, one_case))
