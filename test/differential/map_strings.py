# SPDX-License-Identifier: Apache-2.0
"""Strings in random maps: columns of them, and expressions that take and give them. They have draws of their own, so
that the columns and expressions without strings are those that a case would have anyway.

    columns = string_columns(rng, num_rows)
    results = string_results(rng, types, first)        types of all columns; those of strings begin at `first`

    columns, kinds = text_columns(rng, num_rows)       texts that are numbers, dates, .. as their kinds say
    TextMaker(rng, columns, kinds).result()            trim(substring($3,2:i64,char_length(cast($0,utf8))))
"""
import dataclasses

from aggregate_rows import Column
from map_expressions import FLOATS, INTEGERS, STRING_FUNCTIONS, Expression, Maker, random_value_type, value_type
from map_string_sql import BINARY_TYPES, COLLATIONS, STRING_TYPES, TEXT_TYPES, is_string
from random_data import DECIMALS, ColumnType, random_indices, random_values, with_nulls

_NAMES = TEXT_TYPES
_CONDITIONS = ("like", "not_like", "starts_with", "ends_with", "contains", "octet_length", "char_length")
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

    function = rng.choice((*_COMPARISONS, *_CONDITIONS, "or", "is_null", "is_valid"))
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


# ---- strings as results ----------------------------------------------------------------------------------------------

# Texts that are values of a type, or nearly: by the kind of a column.
_KINDS = {
    "integer": (b"0", b"7", b"12", b"+5", b"0012", b"99", b"100", b"127", b"1", b"3"),
    "signed": (b"0", b"-1", b"-128", b"127", b"+5", b"-007", b"42", b"-99"),
    "decimal": (b"0.5", b"-0.05", b"1.005", b"-1.995", b"12", b"+3.25", b".5", b"7.", b"0.00", b"-0.0049",
                b"00012.340"),
    "float": (b"0.1", b"-2.5", b"1e5", b"1E-7", b"+0.25", b"123456789.125", b"1e15", b".5", b"4.", b"-12e+3"),
    "bool": (b"true", b"false", b"TRUE", b"False", b"fAlSe", b"tRUE"),
    "date": (b"2024-02-29", b"1970-01-01", b"0001-01-01", b"-0044-03-15", b"12345-01-01", b"1999-12-31", b"0000-02-29"),
    "nearly": (b"", b" 12", b"12 ", b"1.5", b"1e3", b"-", b"+", b".", b"--1", b"+-1", b"0x1f", b"1_000", b"128",
               b"-129", b"256", b"4294967296", b"99999999999999999999999", b"truex", b"t", b"1", b"2023-02-29",
               b"2024-2-29", b"2024-13-01", b"2024-00-10", b"2024-02-29 ",
               b"024-02-29", b"+2024-02-29", b"1\0", b"\xd9\xa1",
               b"nul", b"9.995", b"-9.995", b"1.2.3", b"fal\xc5\xbfe", b"2024-02-30"),
    "blanks": (b"", b" ", b"   ", b" a", b"a ", b"  a b  ", b"\ta\t", b" \n ",
               b"\xc2\xa0a\xc2\xa0", b"  \xc3\xa9  "),
}
_ASCII = (b"", b"a", b"A", b"b", b"ab", b"AB ", b" ", b"a ", b"a  ", b"Mail", b"MAIL", b"50%", b"a_b", b"it's", b"[x]",
          b"~", b"special Wholesale requests", b"specialwholesale")
_KIND_OF = {"bool": "bool", "date32": "date", "f32": "float", "f64": "float", **dict.fromkeys(DECIMALS, "decimal")}
_STARTS = (1, 2, 3, 0, -1, -5, 4, 100, 2**31, 2**32 + 1, 2**63 - 1, -2**31, -2**63)
_LENGTHS = (0, 1, 2, 3, 5, 20, 2**32, 2**63 - 1)
_NUMBER_BYTES = 48  # no number or date has a longer text
_MOST_BYTES, _MOST_BYTES_OF_ALL = 3000, 1 << 26


def _kind_of(column_type):
    return _KIND_OF.get(column_type.name, "signed" if column_type.name[0] == "i" else "integer")


def _texts(rng, column_type, kind):
    if column_type.collation:
        return list(_ASCII)
    if kind == "random":
        return random_values(rng, column_type, rng.choice((1, 5, 100)))
    texts = _KINDS.get(kind) or [text.encode() for text in _TEXTS]
    if kind == "any" and column_type.name in BINARY_TYPES:
        texts += [b"\xff", b"\x80\xc3", b"\x00", b"\xe2\x82"]
    return rng.sample(texts, rng.randint(1, len(texts)))


def text_columns(rng, num_rows):
    """Columns of strings of one type or two, and the kinds of their texts."""
    columns, kinds = [], []
    for _ in range(rng.choice((1, 2, 3, 4))):
        column_type = ColumnType(rng.choice((*TEXT_TYPES, *STRING_TYPES)), nullable=rng.random() < 0.5,
                                 index=rng.choice(("", "", "", "i32", "u8", "i64")))
        if columns and rng.random() < 0.7:
            column_type = dataclasses.replace(column_type, name=columns[0].type.name,
                                              collation=columns[0].type.collation)
        elif column_type.name in TEXT_TYPES and rng.random() < 0.15:
            column_type = dataclasses.replace(column_type, collation=rng.choice(COLLATIONS))
        kind = "any" if column_type.collation else rng.choice(("any", "any", "random", *_KINDS))
        values = _texts(rng, column_type, kind)
        rows = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "sequential", "equal")))
        columns.append(Column(column_type, values, with_nulls(rng, rows, rng.choice((0, 0.02, 0.3, 1))
                                                              if column_type.nullable else 0)))
        kinds.append(kind)
    return columns, kinds


def _any_nullable(arguments):
    return any(one.type.nullable for one in arguments)


def _all_nullable(arguments):
    return all(one.type.nullable for one in arguments)


class TextMaker(Maker):
    """Expressions over all columns of a case, in which strings, numbers and conditions are mixed at every level."""

    def __init__(self, rng, columns, kinds):
        """`kinds`: of the last columns."""
        super().__init__(rng, [column.type for column in columns])
        first = len(columns) - len(kinds)
        self.kinds = dict(enumerate(kinds, first))
        self.bytes_of = {number: max(map(len, column.values)) for number, column in enumerate(columns)
                         if is_string(column.type)}
        self.most_bytes = min(_MOST_BYTES, _MOST_BYTES_OF_ALL // max([1, *(len(one.indices) for one in columns)]))
        self.wanted = [dataclasses.replace(column.type, index="", nullable=False) for column in columns[first:]]

    def result(self):
        rng, depth = self.rng, self.rng.choice((1, 2, 2, 3, 3, 4))
        if rng.random() < 0.7:
            return self.of(rng.choice(self.wanted), depth)
        floats = [number for number, one in enumerate(self.types) if one.is_float]
        if floats and rng.random() < 0.3:  # has no SQL, and is compared with float_text
            number = rng.choice(floats)
            column = Expression("$", (number,), self.types[number])
            return self._cast("cast", column, ColumnType(rng.choice(TEXT_TYPES)))
        return self._of_strings(random_value_type(rng), depth) or self.of(rng.choice(self.wanted), depth)

    def of(self, wanted, depth):
        if is_string(wanted):
            return self._string(dataclasses.replace(wanted, index="", nullable=False), depth)
        made = self._of_strings(wanted, depth - 1) if depth and self.rng.random() < 0.5 else None
        return made or super().of(wanted, depth)

    # ---- calls that give strings ----

    def _string(self, wanted, depth):
        rng = self.rng
        if not depth or rng.random() < 0.1:
            return self._column_or_constant(wanted)
        functions = ["substring", "substring", "concat", "replace", "case_when", "coalesce", "null_if", "least",
                     "greatest", "cast", "cast_or_null"]
        if wanted.name in TEXT_TYPES:
            functions += ["ascii_lower", "ascii_upper", "trim", "trim", "trim_start", "trim_end"]
        made = self._string_call(rng.choice(functions), wanted, depth - 1)
        while self._most_bytes(made) > self.most_bytes:
            made = next(one for one in made.arguments if is_string(one.type))
        return made

    def _column_or_constant(self, wanted):
        found = [number for number, one in enumerate(self.types)
                 if (one.name, one.collation) == (wanted.name, wanted.collation)]
        if found and self.rng.random() < 0.8:
            number = self.rng.choice(found)
            return Expression("$", (number,), self.types[number])
        return self._constant(wanted)

    def _constant(self, wanted, texts=None):
        if self.rng.random() < 0.05:
            return Expression(":", ("null",), dataclasses.replace(wanted, nullable=True))
        if wanted.name in BINARY_TYPES and not texts and self.rng.random() < 0.2:
            return Expression(":", (self.rng.choice(("x'00ff'", "x'80'", "x'c3'")),), wanted)
        texts = texts or ([text.decode() for text in _ASCII] if wanted.collation else _TEXTS)
        return Expression(":", ("'" + self.rng.choice(texts).replace("'", "''") + "'",), wanted)

    def _string_call(self, function, wanted, depth):
        rng = self.rng
        if function.startswith("cast"):
            return self._cast(function, self._source(wanted, depth), wanted)
        if function == "substring":
            arguments = (self.of(wanted, depth), *self._range(depth))
            return Expression(function, arguments, dataclasses.replace(wanted, nullable=_any_nullable(arguments)))
        if function == "case_when":
            arguments = tuple(self.of(value_type("bool", True), depth) if place in (0, 2) else self.of(wanted, depth)
                              for place in range(5))
            of = arguments[1::2] + arguments[-1:]
            return Expression(function, arguments, dataclasses.replace(wanted, nullable=_any_nullable(of)))
        number = {"concat": rng.choice((2, 2, 3, 4)), "replace": 3, "coalesce": 2, "null_if": 2,
                  "least": 3, "greatest": 3}.get(function, 1)
        arguments = tuple(self.of(wanted, depth if function != "replace" or not place else min(depth, 1))
                          for place in range(number))
        nullable = _all_nullable(arguments) if function in ("coalesce", "least", "greatest") else (
            function == "null_if" or _any_nullable(arguments))
        return Expression(function, arguments, dataclasses.replace(wanted, nullable=nullable))

    def _range(self, depth):
        """The start and perhaps the length of a substring."""
        rng, i64 = self.rng, value_type("i64")

        def number(constants, least):
            if rng.random() < 0.5 or not depth:
                return Expression(":", (str(rng.choice(constants)),), i64)
            made = self._of_strings(i64, depth - 1) if rng.random() < 0.7 else self.of(i64, depth)
            return self._at_least(made, least) if rng.random() < 0.9 else made

        start = number(_STARTS, None)
        if rng.random() < 0.3:
            return [start]
        return [start, number((*_LENGTHS, -1) if rng.random() < 0.02 else _LENGTHS, 0)]

    @staticmethod
    def _at_least(made, least):
        if least is None or made.function in ("octet_length", "char_length"):
            return made
        bound = Expression(":", (str(least),), value_type("i64"))
        return Expression("greatest", (made, bound, bound), value_type("i64"))

    @staticmethod
    def _cast(function, argument, wanted, in_sql=True):
        nullable = argument.type.nullable or function.endswith("or_null")
        return Expression(function, (argument,), dataclasses.replace(wanted, nullable=nullable), in_sql)

    def _source(self, wanted, depth):
        """What is cast to strings."""
        rng = self.rng
        of_strings = [one for one in self.types if is_string(one)
                      and (one.name in TEXT_TYPES or wanted.name in BINARY_TYPES)]
        if wanted.name in BINARY_TYPES or of_strings and not wanted.collation and rng.random() < 0.3:
            return self.of(rng.choice(of_strings or [ColumnType("utf8")]), depth)
        return self.of(random_value_type(rng, (*INTEGERS, *DECIMALS, "bool", "date32", "date32")), depth)

    def _most_bytes(self, made):
        """Of the longest string that may come out."""
        if made.function == "$":
            return self.bytes_of[made.arguments[0]]
        if made.function == ":":
            return len(made.arguments[0].encode())
        of = [self._most_bytes(one) for one in made.arguments if is_string(one.type)]
        if made.function == "concat":
            return sum(of)
        return of[0] * max(of[2], 1) if made.function == "replace" else max([_NUMBER_BYTES * (not of), *of])

    # ---- calls that take strings, and give something else ----

    def _of_strings(self, wanted, depth):
        """None where there is no such call."""
        rng, depth = self.rng, max(depth, 0)
        name, of = wanted.name, rng.choice(self.wanted)
        if name == "i64" and rng.random() < 0.7:
            function = rng.choice(("octet_length", "char_length"))
            if of.name in TEXT_TYPES or function == "octet_length":
                made = self.of(of, depth)
                return Expression(function, (made,), value_type("i64", made.type.nullable))
        if name == "bool" and rng.random() < 0.8:
            return self._truth(of, depth)
        if name not in (*INTEGERS, *FLOATS, *DECIMALS, "bool", "date32"):
            return None
        if of.name not in TEXT_TYPES:
            of = ColumnType(rng.choice(TEXT_TYPES))
        text = self._text_of(wanted, of, depth)
        fails = rng.random() < (0.8 if self._is_surely(text, wanted) else 0.02)
        function = "cast" if fails else "cast_or_null"
        in_sql = name not in FLOATS or text.function in ("$", ":")  # DuckDB reads 1e400 as infinite
        return self._cast(function, text, dataclasses.replace(wanted, nullable=False), in_sql)

    def _text_of(self, wanted, of, depth):
        """A string that is, mostly, the text of a value of the type."""
        rng, kind = self.rng, _kind_of(wanted)
        found = [number for number, one in self.kinds.items() if one == kind and self.types[number].name in TEXT_TYPES
                 or one == "nearly" and self.types[number].name == of.name and rng.random() < 0.3]
        style = rng.random()
        if found and style < 0.5:
            number = rng.choice(found)
            return Expression("$", (number,), self.types[number])
        if style < 0.8 and wanted.name not in FLOATS:
            return self._cast("cast", self.of(wanted, depth), of)
        if style < 0.9 and not of.collation:
            return self._constant(of, [text.decode() for text in _KINDS[kind]])
        return self.of(of, depth)

    def _is_surely(self, text, wanted):
        """Whether most rows have a value."""
        if text.function == "$":
            return self.kinds.get(text.arguments[0]) == _kind_of(wanted) and wanted.name not in ("i8", "u8", *DECIMALS)
        return text.function == "cast" and text.arguments[0].type.name == wanted.name

    def _truth(self, of, depth):
        rng = self.rng
        functions = (*_COMPARISONS, "is_null", "is_valid", "like", "not_like", "starts_with", "ends_with", "contains")
        function = rng.choice(functions)
        arguments = (self.of(of, depth),)
        if function in _COMPARISONS:
            arguments += (self.of(of, depth),)
        elif function in ("like", "not_like"):
            arguments += (self._constant(of, [one for one in _PATTERNS if one.isascii() or not of.collation]),)
        elif function in STRING_FUNCTIONS:
            arguments += (self._constant(of),)
        return Expression(function, arguments, value_type("bool", _any_nullable(arguments) and "is_" not in function))


def text_results(rng, columns, kinds):
    maker = TextMaker(rng, columns, kinds)
    return [maker.result() for _ in range(rng.choice((1, 2, 3, 5)))]
