# SPDX-License-Identifier: Apache-2.0
"""What functions of strings are in SQL, where DuckDB's own function does something else, and in Python, where DuckDB
has no such function.

    call_sql(call, ["c0", "CAST('-1' AS BIGINT)"])       substring('abcdef', -1, 4) is 'ab' here, and 'f' in DuckDB
    float_text("f64", bits)                              "1e+15"

Collated strings have an order in SQL only where they are printable ASCII.
"""
import struct

TEXT_TYPES = ("utf8", "large_utf8", "utf8_view")
BINARY_TYPES = ("binary", "large_binary", "binary_view")
STRING_TYPES = (*TEXT_TYPES, *BINARY_TYPES)
COLLATIONS = ("utf8mb4_bin", "utf8mb4_general_ci", "tidb.utf8mb4_general_ci")
_LIKE = ("like", "not_like", "starts_with", "ends_with", "contains")
_MOST = 1_000_000_000  # DuckDB's positions end at 2^32, and twice as many are those of hexadecimal digits
_LETTERS = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_CHANGES = {
    "ascii_lower": "translate({}, '%s', '%s')" % _LETTERS, "ascii_upper": "translate({}, '%s', '%s')" % _LETTERS[::-1],
    "trim": "trim({}, ' ')", "trim_start": "ltrim({}, ' ')", "trim_end": "rtrim({}, ' ')",
    "replace": "replace({}, {}, {})", }

# Texts that are values of a type, as RE2 reads them.
_DIGITS = "[0-9]+[.]?[0-9]*|[.][0-9]+"
_DATE = "-?[0-9]{4,7}-[0-9]{2}-[0-9]{2}"
_TRUTH = "[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"


def is_string(column_type):
    return column_type.name in STRING_TYPES


def takes_or_gives_strings(call):
    return is_string(call.type) or any(is_string(argument.type) for argument in call.arguments)


def constant_sql(column_type, text):
    """`text`: as the spec has it, 'it''s' or x'00ff'."""
    if column_type.name in TEXT_TYPES:
        return text
    return f"unhex({text[1:]})" if text.startswith("x") else f"encode({text})"


def _folded(column_type, sql):
    return f"upper({sql})" if column_type.collation.endswith("_ci") else sql


def _keys(call, arguments):
    """What compares by bytes as the arguments do under their collation."""
    return [f"rtrim({_folded(one.type, sql)}, ' ')" if one.type.is_collated else sql
            for one, sql in zip(call.arguments, arguments)]


def _substring(call, arguments):
    """DuckDB counts from the end where the start is negative. All arguments are computed, and nulls are no errors."""
    string, start = arguments[:2]
    nulls = " + ".join(f"CAST({sql} IS NULL AS INTEGER)" for sql in arguments)
    first = f"CAST(least(greatest({start}, 1), {_MOST}) AS BIGINT)"
    number = str(_MOST)
    if len(arguments) > 2:  # a cast to UBIGINT is an error below 0
        number = f"CAST(CAST({arguments[2]} AS UBIGINT) AS HUGEINT) + least(CAST({start} AS HUGEINT), 1) - 1"
        number = f"CAST(least(greatest({number}, 0), {_MOST}) AS BIGINT)"
    part = f"substring({string}, {first}, {number})"
    if call.type.name in BINARY_TYPES:
        part = f"unhex(substring(hex({string}), 2 * {first} - 1, 2 * {number}))"
    return f"CASE WHEN {nulls} > 0 THEN NULL ELSE {part} END"


def _to_string(call, sql):
    of = call.arguments[0].type
    if is_string(of):
        return f"encode({sql})" if of.name in TEXT_TYPES and call.type.name in BINARY_TYPES else sql
    if of.name == "date32":  # DuckDB has no year below 1, but years before Christ
        day = f"(DATE '1970-01-01' + {sql})"
        sign = f"CASE WHEN year({day}) < 0 THEN '-' ELSE '' END"
        return f"printf('%s%04d-%02d-%02d', {sign}, abs(year({day})), month({day}), day({day}))"
    if of.is_decimal and of.precision == of.scale:  # DuckDB: .5
        return f"CAST(CAST({sql} AS DECIMAL({of.precision + 1},{of.scale})) AS VARCHAR)" if of.scale < 38 else None
    return f"CAST({sql} AS VARCHAR)"


def _only(sql, pattern, part=None):
    """The text, or a part of it, where it has the pattern, and else one that no cast reads."""
    return f"CASE WHEN NOT regexp_full_match({sql}, '{pattern}') THEN 'x' ELSE {part or sql} END"


def _of_string(call, sql, sql_type):
    name, cast = call.type.name, "TRY_CAST" if call.function == "cast_or_null" else "CAST"
    if name == "date32":
        year = f"CAST({_only(sql, _DATE, f'left({sql}, -6)')} AS BIGINT)"
        month, day = (f"CAST(substring({sql}, {place}, 2) AS BIGINT)" for place in (-5, -2))
        days = f"CAST(make_date({year}, {month}, {day}) - DATE '1970-01-01' AS INTEGER)"
        return f"TRY({days})" if cast == "TRY_CAST" else days
    pattern = _TRUTH if name == "bool" else f"[+-]?({_DIGITS})"
    if name in ("f32", "f64"):
        pattern += "([eE][+-]?[0-9]+)?"
    elif name[0] in "iu":
        pattern = "[+-]?[0-9]+" if name[0] == "i" else "[+]?[0-9]+|-0+"
    return f"{cast}({_only(sql, pattern)} AS {sql_type(call.type)})"


def call_sql(call, arguments, pattern, sql_type):
    """A call that takes or gives strings; None where DuckDB has nothing with the same meaning. `pattern`: of the
    function. sql_type(type): its name."""
    function, of = call.function, call.arguments[0].type
    if function.startswith("cast"):
        return _to_string(call, *arguments) if is_string(call.type) else _of_string(call, *arguments, sql_type)
    if function == "substring":
        return _substring(call, arguments)
    if function == "concat":
        return " || ".join(arguments)
    if function == "octet_length":
        return f"octet_length({arguments[0]})" if of.name in BINARY_TYPES else f"strlen({arguments[0]})"
    if function in _CHANGES:
        return None if of.name in BINARY_TYPES else _CHANGES[function].format(*arguments)
    if function in _LIKE:
        if of.name in BINARY_TYPES:
            return None
        arguments = [_folded(of, sql) for sql in arguments]
    elif function in ("least", "greatest"):
        return None if of.is_collated else f"{function}({', '.join(arguments)})"  # which of equal ones comes out
    elif function == "null_if" and of.is_collated:
        left, right = _keys(call, arguments)
        return f"CASE WHEN {left} = {right} THEN NULL ELSE {arguments[0]} END"
    elif call.type.name == "bool" and function != "case_when":
        arguments = _keys(call, arguments)
    return pattern.format(*arguments)


# ---- texts of floats -------------------------------------------------------------------------------------------------


def _fewest_digits(value, packing):
    """The number with the fewest digits that are read as the same one, as "-d.dde-05"."""
    for digits in range(17):
        text = f"{value:.{digits}e}"
        try:
            if struct.pack(packing, float(text)) == struct.pack(packing, value):
                return text
        except OverflowError:
            pass
    raise AssertionError(f"17 digits are read as another number than {value}")


def float_text(name, bits):
    """The text of a float, given its bits: runtime/spec/expression_strings.h."""
    packing, num_bytes = ("<f", 4) if name == "f32" else ("<d", 8)
    value, = struct.unpack(packing, bits.to_bytes(num_bytes, "little"))
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")) or value == 0:
        return str(value).removesuffix(".0")
    bounds = (1e-4, 1e15 if name == "f64" else 1e6)
    low, high = (struct.unpack(packing, struct.pack(packing, bound))[0] for bound in bounds)
    mantissa, exponent = _fewest_digits(value, packing).split("e")
    if not low <= abs(value) < high:
        return f"{mantissa}e{exponent}"
    digits, sign = mantissa.lstrip("-").replace(".", ""), "-" * mantissa.startswith("-")
    point = int(exponent) + 1
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return sign + digits.ljust(point, "0")[:point] + ("." + digits[point:]) * (len(digits) > point)
