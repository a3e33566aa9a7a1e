# SPDX-License-Identifier: Apache-2.0
"""Random expressions of maps: their text in a spec, the type that runtime/spec/expression.h gives them, and their SQL
where DuckDB has the function with the same meaning.

    Expression("add_checked", (column, constant), i64).text()      "add_checked($0,1:i64)"
    Expression("add_checked", (column, constant), i64).sql()       "(c0 + CAST('1' AS BIGINT))"

What DuckDB does otherwise has no SQL: integers that wrap around, floats that are cast to integers (DuckDB rounds), the
rest of a division by -1 (DuckDB refuses that of the lowest integer), errors behind `and` and `or` (DuckDB computes all
their arguments) and below TRY (which catches them), and decimals whose product has more than 18 digits (DuckDB keeps to
18 where its arguments do). Calls that take or give strings have that of map_string_sql.py.
"""
import dataclasses

import map_string_sql
from map_string_sql import BINARY_TYPES, STRING_TYPES, TEXT_TYPES, is_string
from random_data import DECIMAL_DIGITS, DECIMALS, FLOAT_CODES, INTEGER_CODES, ColumnType, float_bits, integer_bounds

INTEGERS, FLOATS = tuple(INTEGER_CODES), tuple(FLOAT_CODES)
TEMPORALS = {"date32": "", "date64": "", "time32": "s", "time64": "us", "timestamp": "us", "duration": "us"}
TYPES = ("bool", *INTEGERS, *FLOATS, *DECIMALS, *TEMPORALS)
MOST_DIGITS = DECIMAL_DIGITS["decimal128"]
SQL_TYPES = {
    "bool": "BOOLEAN", "i8": "TINYINT", "i16": "SMALLINT", "i32": "INTEGER", "i64": "BIGINT", "u8": "UTINYINT",
    "u16": "USMALLINT", "u32": "UINTEGER", "u64": "UBIGINT", "f32": "FLOAT", "f64": "DOUBLE", "date32": "INTEGER",
    "date64": "BIGINT", "time32": "INTEGER", "time64": "BIGINT", "timestamp": "BIGINT", "duration": "BIGINT"
}

# Function: (the SQL of its arguments or None, what it accepts, the type of its result, the number of arguments)
_NUMBERS, _ALIKE = (*INTEGERS, *FLOATS, *DECIMALS), TYPES
_INFIX = {"add": "+", "subtract": "-", "multiply": "*"}
_ARITHMETIC = (*_INFIX, "negate", "abs")  # of decimals of any width it gives those of 128 bits
_COMPARISONS = {"equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">",
                "greater_equal": ">=", "is_distinct": "IS DISTINCT FROM", "is_not_distinct": "IS NOT DISTINCT FROM"}
FUNCTIONS = {
    **{name: (f"({{}} {sign} {{}})", (*INTEGERS, *FLOATS, *DECIMALS), "wider", 2)
       for name, sign in _INFIX.items()},
    **{f"{name}_checked": (f"({{}} {sign} {{}})", INTEGERS, "same", 2) for name, sign in _INFIX.items()},
    **{f"{name}_or_null": (f"TRY({{}} {sign} {{}})", INTEGERS, "same", 2) for name, sign in _INFIX.items()},
    "negate": ("(-{})", _NUMBERS, "same", 1), "abs": ("abs({})", _NUMBERS, "same", 1),
    "negate_checked": ("(-{})", INTEGERS, "same", 1), "abs_checked": ("abs({})", INTEGERS, "same", 1),
    "divide": (None, FLOATS, "same", 2), "divide_checked": ("({} // {})", (*INTEGERS, *FLOATS), "same", 2),
    "divide_or_null": ("TRY({} // {})", (*INTEGERS, *FLOATS), "same", 2),
    "modulo_checked": (None, INTEGERS, "same", 2), "modulo_or_null": (None, INTEGERS, "same", 2),
    "bit_and": ("({} & {})", INTEGERS, "same", 2), "bit_or": ("({} | {})", INTEGERS, "same", 2),
    "bit_xor": ("xor({}, {})", INTEGERS, "same", 2), "bit_not": ("(~{})", INTEGERS, "same", 1),
    "floor": ("floor({})", FLOATS, "same", 1), "ceil": ("ceil({})", FLOATS, "same", 1),
    "trunc": ("trunc({})", FLOATS, "same", 1), "round_half_to_even": ("round_even({}, 0)", FLOATS, "same", 1),
    "sqrt": ("sqrt({})", FLOATS, "same", 1),
    **{name: (f"({{}} {sign} {{}})", _ALIKE, "bool", 2) for name, sign in _COMPARISONS.items()},
    "is_null": ("({} IS NULL)", _ALIKE, "bool", 1), "is_valid": ("({} IS NOT NULL)", _ALIKE, "bool", 1),
    "and": (" AND ", ("bool",), "bool", 3), "or": (" OR ", ("bool",), "bool", 3),
    "not": ("(NOT {})", ("bool",), "bool", 1),
    "case_when": ("CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", _ALIKE, "cases", 5),
    "coalesce": ("coalesce({}, {})", _ALIKE, "same", 2), "null_if": ("nullif({}, {})", _ALIKE, "same", 2),
    "least": ("least({}, {}, {})", _ALIKE, "same", 3), "greatest": ("greatest({}, {}, {})", _ALIKE, "same", 3),
    **{name: (f"CAST({name}(DATE '1970-01-01' + {{}}) AS INTEGER)", ("date32",), "i32", 1)
       for name in ("year", "quarter", "month", "day")},
    "cast": ("CAST({} AS {})", (*INTEGERS, *FLOATS, *DECIMALS, "bool"), "target", 1),
    "cast_or_null": ("TRY_CAST({} AS {})", (*INTEGERS, *FLOATS, *DECIMALS, "bool"), "target", 1),
}
# Draws of their own (map_strings.py). A constant is its text in quotes. None: map_string_sql.py has the SQL.
STRING_FUNCTIONS = {
    "like": ("({} LIKE {} ESCAPE '\\')", STRING_TYPES, "bool", 2),
    "not_like": ("({} NOT LIKE {} ESCAPE '\\')", STRING_TYPES, "bool", 2),
    **{name: (f"{name}({{}}, {{}})", STRING_TYPES, "bool", 2) for name in ("starts_with", "ends_with", "contains")},
    "octet_length": (None, STRING_TYPES, "i64", 1), "char_length": ("length({})", TEXT_TYPES, "i64", 1),
    "substring": (None, STRING_TYPES, "same", 3), "concat": (None, STRING_TYPES, "same", 4),
    "replace": (None, STRING_TYPES, "same", 3),
    **{name: (None, TEXT_TYPES, "same", 1)
       for name in ("ascii_lower", "ascii_upper", "trim", "trim_start", "trim_end")},
}

# Function: (its SQL, what it accepts, the type of its result). map_dates.py makes their calls.
_DATE, _MOMENT = "(DATE '1970-01-01' + {%d})", "make_timestamp({0})"


def _days(sql):
    return f"(CAST({sql} AS DATE) - DATE '1970-01-01')"


DATE_FUNCTIONS = {
    **{name: (f"{theirs}({_DATE % 0})", ("date32",), "i32")
       for name, theirs in {"iso_year": "isoyear", "iso_week": "weekofyear", "iso_day_of_week": "isodow",
                            "sunday_day_of_week": "dayofweek", "day_of_year": "dayofyear"}.items()},
    **{f"date_trunc_{field}": (_days(f"date_trunc('{field}', {_DATE % 0})"), ("date32",), "date32")
       for field in ("year", "quarter", "month", "week")},
    "add_days": (_days(f"{_DATE % 0} + {{1}}"), ("date32", "i32"), "date32"),
    "add_months": (_days(f"{_DATE % 0} + to_months({{1}})"), ("date32", "i32"), "date32"),
    "days_between": (f"({_DATE % 1} - {_DATE % 0})", ("date32", "date32"), "i64"),
    "timestamp_to_date": (_days(_MOMENT), ("timestamp", "units"), "date32"),
    "date_to_timestamp": (f"epoch_us(CAST({_DATE % 0} AS TIMESTAMP))", ("date32", "units"), "timestamp"),
    **{field: (f"{field}({_MOMENT})", ("timestamp", "units"), "i32") for field in ("hour", "minute", "second")},
    **{f"timestamp_trunc_{field}": (f"epoch_us(date_trunc('{field}', {_MOMENT}))", ("timestamp", "units"), "timestamp")
       for field in ("day", "hour", "minute", "second")},
}
# Function: (its SQL, what it accepts, the number of arguments). map_numbers.py makes their calls. DuckDB has the same C
# library or another one, whose last bits may differ, so that only signs are compared with it.
NUMBER_FUNCTIONS = {
    "sign": ("sign({})", _NUMBERS, 1),
    **{f"{name}{errors}": (None, FLOATS, 1) for name in ("ln", "log10") for errors in ("", "_checked", "_or_null")},
    **{f"exp{errors}": (None, FLOATS, 1) for errors in ("", "_checked")},
    **{f"power{errors}": (None, FLOATS, 2) for errors in ("", "_checked", "_or_null")},
}
ALL_FUNCTIONS = {**FUNCTIONS, **DATE_FUNCTIONS, **STRING_FUNCTIONS, **NUMBER_FUNCTIONS}


def type_text(column_type):
    if is_string(column_type):
        return dataclasses.replace(column_type, nullable=False).text()
    if column_type.is_decimal:
        return f"{column_type.name}({column_type.precision},{column_type.scale})"
    return column_type.name


def sql_type(column_type):
    if is_string(column_type):
        return "BLOB" if column_type.name in BINARY_TYPES else "VARCHAR"
    if column_type.is_decimal:
        return f"DECIMAL({column_type.precision},{column_type.scale})"
    return SQL_TYPES[column_type.name]


def value_type(name, nullable=False, precision=0, scale=0):
    return ColumnType(name, nullable=nullable, unit=TEMPORALS.get(name, ""), precision=precision, scale=scale)


@dataclasses.dataclass(frozen=True)
class Expression:
    """A call, a column ("$", its number) or a constant (":", its text)."""
    function: str
    arguments: tuple
    type: ColumnType
    in_sql: bool = True  # whether DuckDB is asked where it has the function

    def text(self):
        if self.function == "$":
            return f"${self.arguments[0]}"
        if self.function == ":":
            return f"{self.arguments[0]}:{type_text(self.type)}"
        target = f",{type_text(self.type)}" if self.function.startswith("cast") else ""
        return f"{self.function}({','.join(argument.text() for argument in self.arguments)}{target})"

    def calls(self):
        """All calls, this one first."""
        if self.function in ("$", ":"):
            return []
        return [self] + [call for argument in self.arguments for call in argument.calls()]

    def has_columns(self):
        return self.function == "$" or self.function != ":" and any(one.has_columns() for one in self.arguments)

    def has_constant_null(self):
        """Whether a part may be null whatever the columns are."""
        if self.function == "$":
            return False
        if self.type.nullable and not self.has_columns():
            return True
        return self.function != ":" and any(one.has_constant_null() for one in self.arguments)

    def may_fail(self):
        return any(call.function.endswith("_checked") or call.function == "cast" and not is_string(call.type)
                   or call.function == "substring" or call.type.is_decimal for call in self.calls())

    def sql(self):
        """None where DuckDB has no such function."""
        if self.function == "$":
            return f"c{self.arguments[0]}"
        if self.function == ":":
            if is_string(self.type) and self.arguments[0] != "null":
                return map_string_sql.constant_sql(self.type, self.arguments[0])
            return "NULL::" + sql_type(self.type) if self.arguments[0] == "null" else (
                f"CAST('{self.arguments[0]}' AS {sql_type(self.type)})")
        arguments = [argument.sql() for argument in self.arguments]
        if None in arguments or not self._is_same_in_sql():
            return None
        pattern = ALL_FUNCTIONS[self.function][0]
        if self.function in ("and", "or"):
            return "(" + pattern.join(arguments) + ")"
        if map_string_sql.takes_or_gives_strings(self):
            text = map_string_sql.call_sql(self, arguments, pattern, sql_type)
        else:
            text = pattern.format(*arguments, *[sql_type(self.type)] * self.function.startswith("cast"))
        if text is None or len(text) > _MOST_SQL_BYTES:
            return None
        return f"CAST({text} AS {sql_type(self.type)})" if self.type.name != "bool" else text

    def _is_same_in_sql(self):
        name, of = self.function, self.arguments[0].type.name
        if not self.in_sql or ALL_FUNCTIONS[name][0] is None and name not in STRING_FUNCTIONS:
            return False
        if map_string_sql.takes_or_gives_strings(self):
            return self._is_same_of_strings(of)
        if name in ("and", "or") or "TRY(" in ALL_FUNCTIONS[name][0]:
            return not any(argument.may_fail() for argument in self.arguments)
        if self.type.is_decimal and name in _ARITHMETIC:
            return self.type.precision <= 18
        if name in _ARITHMETIC:
            return of in FLOATS
        if name.startswith("negate") or name.startswith("abs"):
            return of[0] == "i"
        if name.startswith("divide_") and of in FLOATS:
            return False  # DuckDB's // is of integers
        if name == "sign":  # of NaN DuckDB's is 0
            return of not in FLOATS
        if name in ("least", "greatest"):  # which of 0 and -0 comes out
            return of not in FLOATS
        return not name.startswith("cast") or self._casts_alike(of, self.type.name)

    def _is_same_of_strings(self, of):
        if not self.function.startswith("cast"):
            return True
        if self.type.name == "date32" and self.function == "cast_or_null":  # by TRY
            return not self.arguments[0].may_fail()
        return of not in FLOATS

    @staticmethod
    def _casts_alike(of, to):
        if of in FLOATS:
            return (of, to) == ("f32", "f64") or of == to
        return of not in DECIMALS or to not in FLOATS


_MOST_SQL_BYTES = 30_000


# ---- random ----------------------------------------------------------------------------------------------------------


def random_value_type(rng, names=TYPES):
    name, precision = rng.choice(names), 0
    if name in DECIMALS:
        precision = rng.randint(1, rng.choice((min(18, DECIMAL_DIGITS[name]), DECIMAL_DIGITS[name])))
    return value_type(name, rng.random() < 0.5, precision, rng.randint(0, precision))


def _of_any_width(rng, column_type):
    """A decimal type of the same scale."""
    name = rng.choice([name for name, digits in DECIMAL_DIGITS.items() if digits >= column_type.scale])
    return dataclasses.replace(column_type, name=name, precision=min(column_type.precision, DECIMAL_DIGITS[name]))


def _constant(rng, wanted):
    if rng.random() < 0.1:
        return Expression(":", ("null",), dataclasses.replace(wanted, nullable=True))
    if wanted.name == "bool":
        text = rng.choice(("true", "false"))
    elif wanted.name in FLOATS:
        text = rng.choice(("0", "1", "-2.5", "0.5", "nan", "inf", "-inf", "1e+30", "0.125"))
    elif wanted.is_decimal:
        number = rng.randint(0, 10**rng.randint(0, wanted.precision) - 1)
        digits = str(number).rjust(wanted.scale + 1, "0")
        text = digits[:len(digits) - wanted.scale] + ("." + digits[len(digits) - wanted.scale:]) * (wanted.scale > 0)
        text = rng.choice(("", "-")) * (number != 0) + text
    else:
        low, high = (-700_000, 2_900_000) if wanted.name == "date32" else integer_bounds(wanted)
        text = str(rng.choice((0, 1, 2, 7, low, high, max(low, -1), rng.randint(low, high))))
    return Expression(":", (text,), dataclasses.replace(wanted, nullable=False))


def _widened(types, more):
    """Of decimals: the most digits before and behind the point."""
    whole, scale = max(one.precision - one.scale for one in types), max(one.scale for one in types)
    return {"precision": min(whole + scale + more, MOST_DIGITS), "scale": scale}


def _decimal_result(function, of):
    """What a call of decimals has of its own: width, digits and scale; None where the scale is too large."""
    if function == "null_if":
        return {}
    if function == "multiply":
        scale = of[0].scale + of[1].scale
        precision = min(of[0].precision + of[1].precision, MOST_DIGITS)
        return {"name": "decimal128", "precision": precision, "scale": scale} if scale <= MOST_DIGITS else None
    widest = "decimal128" if function in _ARITHMETIC else max((one.name for one in of), key=DECIMALS.index)
    return {"name": widest, **_widened(of, 1 if FUNCTIONS[function][2] == "wider" else 0)}


def _result_type(function, arguments, target):
    """The type of a call; None where the spec would refuse it."""
    types = [argument.type for argument in arguments]
    result, nullable = FUNCTIONS[function][2], any(one.nullable for one in types)
    if result == "target":
        return dataclasses.replace(target, nullable=nullable or function.endswith("or_null"))
    if result == "bool":
        return value_type("bool", nullable and "is_" not in function)
    if result == "i32":
        return value_type("i32", nullable)
    of = types[1::2] + types[-1:] if result == "cases" else types
    changes = {"nullable": any(one.nullable for one in of) or function.endswith("or_null") or function == "null_if"}
    if function in ("coalesce", "least", "greatest"):
        changes["nullable"] = all(one.nullable for one in of)
    if of[0].is_decimal:
        of_decimals = _decimal_result(function, of)
        if of_decimals is None:
            return None
        changes.update(of_decimals)
    return dataclasses.replace(of[0], **changes)


class Maker:
    """Expressions over columns of these types."""

    def __init__(self, rng, types):
        self.rng, self.types = rng, types

    def any(self, depth):
        return self.of(random_value_type(self.rng) if not self.types or self.rng.random() < 0.3
                       else self.rng.choice(self.types), depth)

    def of(self, wanted, depth):
        """An expression of the type; decimals of its width and scale."""
        rng = self.rng
        found = [number for number, one in enumerate(self.types)
                 if (one.name, one.scale) == (wanted.name, wanted.scale)]
        if found and rng.random() < (0.25 if depth else 0.8):
            number = rng.choice(found)
            return Expression("$", (number,), self.types[number])
        for _ in range(20 if depth else 0):
            made = self._call(wanted, depth - 1)
            if made and (made.type.name, made.type.scale) == (wanted.name, wanted.scale):
                return made
        return _constant(rng, wanted)

    def _call(self, wanted, depth):
        rng = self.rng
        function = rng.choice(tuple(FUNCTIONS))
        _, accepts, result, num_arguments = FUNCTIONS[function]
        if wanted.name != result if result in ("bool", "i32") else result != "target" and wanted.name not in accepts:
            return None
        if result == "target":
            source = value_type(rng.choice(accepts))
            if source.name == "bool" and wanted.name not in INTEGERS or wanted.name not in _NUMBERS:
                return None
            if wanted.is_decimal and source.name not in (*INTEGERS, *DECIMALS):
                return None
        else:
            source = wanted
        if source.name not in accepts:
            source = next((one for one in rng.sample(self.types, len(self.types)) if one.name in accepts),
                          value_type(rng.choice([name for name in accepts if name not in DECIMALS])))
        if source.is_decimal and not source.precision:
            source = value_type(source.name, False, min(15, DECIMAL_DIGITS[source.name]), 2)
        elif function == "multiply" and source.is_decimal:
            source = dataclasses.replace(source, scale=source.scale // 2)
        if result == "bool" and accepts == _ALIKE and self.types:
            source = rng.choice(self.types)
        arguments = tuple(self.of(value_type("bool", True), depth)
                          if result == "cases" and number % 2 == 0 and number < num_arguments - 1 else
                          self._argument(source, depth) for number in range(num_arguments))
        made = _result_type(function, arguments, dataclasses.replace(wanted, nullable=False))
        return made and Expression(function, arguments, made)

    def _argument(self, source, depth):
        """One of the type; decimals of any width, now and then."""
        other = source.is_decimal and self.rng.random() < 0.4
        return self.of(_of_any_width(self.rng, source) if other else source, depth)


def physical_values(rng, column_type, values):
    """Values that DuckDB has, too: dates of years that have four digits, floats without -0."""
    if column_type.name == "date32":
        return [rng.choice((0, -1, 59, 60, 10957, rng.randint(-700_000, 2_900_000))) for _ in values]
    if column_type.is_float:
        return [0 if value == float_bits(column_type, -0.0) else value for value in values]
    return values
