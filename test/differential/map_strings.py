# SPDX-License-Identifier: Apache-2.0
"""Strings in random maps: columns of them, and expressions that take them. They have draws of their own, so that the
columns and expressions without strings are those that a case would have anyway.

    columns = string_columns(rng, num_rows)
    results = string_results(rng, types, first)        types of all columns; those of strings begin at `first`
"""
import dataclasses

from aggregate_rows import Column
from map_expressions import STRING_FUNCTIONS, Expression, Maker, random_value_type, value_type
from random_data import ColumnType, random_indices, with_nulls

_NAMES = ("utf8", "large_utf8", "utf8_view")
_TEXTS = ("", "a", "b", "ab", "A", " ", "a ", "50%", "50_", "it's", "\u00e9", "a\u00e9", "MAIL", "SHIP",
          "special wholesale requests", "specialwholesale", "\U0001f600")
_PATTERNS = ("", "%", "a%", "%a", "%special%requests%", "_", "__", "%\u00e9", "50\\%", "50\\_%", "SHIP", "%l_w%")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_distinct",
                "is_not_distinct")


def string_columns(rng, num_rows):
    name, columns = rng.choice(_NAMES), []
    for _ in range(rng.choice((1, 2, 2))):
        column_type = ColumnType(name, index=rng.choice(("", "", "i32", "u8")), nullable=rng.random() < 0.5)
        values = [text.encode() for text in rng.sample(_TEXTS, rng.randint(1, len(_TEXTS)))]
        rows = random_indices(rng, num_rows, len(values), "uniform")
        share = rng.choice((0, 0.02, 0.3, 1)) if column_type.nullable else 0
        columns.append(Column(column_type, values, with_nulls(rng, rows, share)))
    return columns


def _constant(rng, name, texts):
    if rng.random() < 0.05:
        return Expression(":", ("null",), ColumnType(name, nullable=True))
    quoted = rng.choice(texts).replace("'", "''")
    return Expression(":", (f"'{quoted}'",), ColumnType(name))


def _call(rng, types, first):
    """A call of strings that gives a truth or a number."""
    def column():
        number = rng.randrange(first, len(types))
        return Expression("$", (number,), types[number])

    function = rng.choice((*_COMPARISONS, *STRING_FUNCTIONS, "or", "is_null", "is_valid"))
    left, name = column(), types[first].name
    if function == "or":
        equals = tuple(Expression("equal", (left, _constant(rng, name, _TEXTS)),
                                  value_type("bool", left.type.nullable)) for _ in range(3))
        nullable = any(one.type.nullable or one.arguments[1].type.nullable for one in equals)
        equals = tuple(dataclasses.replace(one, type=value_type(
            "bool", left.type.nullable or one.arguments[1].type.nullable)) for one in equals)
        return Expression("or", equals, value_type("bool", nullable))
    arguments = (left,)
    if function in _COMPARISONS:
        other = column() if rng.random() < 0.4 else _constant(rng, name, _TEXTS)
        arguments = (left, other) if rng.random() < 0.7 else (other, left)
    elif function in ("like", "not_like"):
        arguments = (left, _constant(rng, name, _PATTERNS))
    elif function in ("starts_with", "ends_with", "contains"):
        arguments = (left, _constant(rng, name, _TEXTS))
    nullable = any(one.type.nullable for one in arguments) and "is_" not in function
    return Expression(function, arguments, value_type("i64" if "length" in function else "bool", nullable))


def _truth(rng, types, first):
    while True:
        call = _call(rng, types, first)
        if call.type.name == "bool":
            return call


def string_results(rng, types, first):
    results = []
    for _ in range(rng.choice((1, 2, 4))):
        if rng.random() < 0.6:
            results.append(_call(rng, types, first))
            continue
        maker, wanted = Maker(rng, types[:first]), random_value_type(rng)
        values = [maker.of(wanted, 1) for _ in range(3)]
        if len({(one.type.name, one.type.precision, one.type.scale) for one in values}) > 1:
            continue
        result = dataclasses.replace(values[0].type, nullable=any(one.type.nullable for one in values))
        results.append(Expression("case_when", (_truth(rng, types, first), values[0], _truth(rng, types, first),
                                                values[1], values[2]), result))
    return results
