# SPDX-License-Identifier: Apache-2.0
"""The expected answer of each aggregate function for the values of one group, computed plainly in Python. More than one
value may be right:

    sum of three f64 0.1        Near(0.3, 3 * 2^-52 * 0.3)     additions in any order
    any of 'a' 'b'              OneOf({'a', 'b'})
    min of 'a ' 'a' 'b', PAD    OneOf({'a ', 'a'})

Values are physical (random_data.py): a float is its bits, a decimal128 16 bytes; None is null.
"""
import dataclasses
import functools
import math
import struct

from oracle import normalise, ordered_value
from random_data import ColumnType, normalised_float, wide

EPSILON = 2.0 ** -52
HUGE = 1e300  # above it squares and sums overflow in some orders of addition
TINY = 1e-290  # below it a sum of squares has lost some of them
CANONICAL_NAN = {"f32": 0x7FC00000, "f64": 0x7FF8000000000000}


def real_of(name, bits):
    return struct.unpack("<f" if name == "f32" else "<d", struct.pack("<I" if name == "f32" else "<Q", bits))[0]


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def number_of(column_type, value):
    """A physical value as a Python number."""
    if column_type.is_float:
        return real_of(column_type.name, value)
    return column_type.unscaled(value) if column_type.is_decimal else value


# ---- answers ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Exactly:
    value: object

    def takes(self, value):
        return value == self.value


@dataclasses.dataclass(frozen=True)
class OneOf:
    values: frozenset

    def takes(self, value):
        return value in self.values


@dataclasses.dataclass(frozen=True)
class EqualTo:
    """A value that compares equal: a float as one NaN and one zero."""
    name: str
    value: object

    def takes(self, value):
        return value is not None and normalised_float(ColumnType(self.name), value) == self.value


@dataclasses.dataclass(frozen=True)
class Near:
    value: float
    tolerance: float

    def takes(self, value):
        if value is None:
            return False
        real = real_of("f64", value)
        if not math.isfinite(self.value):
            return math.isnan(real) if math.isnan(self.value) else real == self.value
        return abs(real - self.value) <= self.tolerance + 1e-300


@dataclasses.dataclass(frozen=True)
class Within:
    least: float
    most: float

    def takes(self, value):
        return self.least <= value <= self.most


@dataclasses.dataclass(frozen=True)
class NotFinite:
    def takes(self, value):
        return value is not None and not math.isfinite(real_of("f64", value))


@dataclasses.dataclass(frozen=True)
class Anything:
    """No order of additions tells."""

    def takes(self, value):
        return True


NULL = Exactly(None)


# ---- sums ------------------------------------------------------------------------------------------------------------


def _near_sum(reals, divisor=1):
    """The sum of floats, added in any order, divided."""
    if any(map(math.isnan, reals)) or math.inf in reals and -math.inf in reals:
        return Near(math.nan, 0)
    if math.inf in reals or -math.inf in reals:
        return Near(math.inf if math.inf in reals else -math.inf, 0)
    try:
        total, magnitude = math.fsum(reals), math.fsum(map(abs, reals))
    except OverflowError:
        return Anything()
    if magnitude > 1e307:
        return Anything()
    tolerance = 0 if len(reals) == 1 and divisor == 1 else len(reals) * EPSILON * magnitude / divisor
    return Near(total / divisor, tolerance + EPSILON * abs(total / divisor))


def _sum(types, values):
    numbers = [number_of(types[0], value) for value in values[0]]
    if types[0].is_float:
        return _near_sum(numbers)
    return Exactly(wide(sum(numbers)) if types[0].is_decimal else sum(numbers))


def _sum128(types, values):
    return Exactly(wide(sum(values[0])))


def _avg(types, values):
    numbers = [number_of(types[0], value) for value in values[0]]
    if types[0].is_float:
        return _near_sum(numbers, len(numbers))
    total = sum(numbers)
    if types[0].is_decimal:
        quotient, rest = divmod(abs(total), len(numbers))
        quotient += 2 * rest >= len(numbers)
        return Exactly(wide(-quotient if total < 0 else quotient))
    return Exactly(bits_of(float(total) / len(numbers)))


def _distinct(types, values):
    return {normalise(types[0], value): value for value in values[0]}


def _sum_distinct(types, values):
    return _sum(types, [list(_distinct(types, values).values())])


# ---- values ----------------------------------------------------------------------------------------------------------


def _extreme(types, values, pick):
    column_type = types[0]
    best = pick(values[0], key=functools.partial(ordered_value, column_type))
    wanted = normalise(column_type, best)
    if column_type.is_float:
        return EqualTo(column_type.name, wanted)
    return OneOf(frozenset(value for value in values[0] if normalise(column_type, value) == wanted))


def _bits(types, values, combine):
    bits = types[0].number_bytes() * 8
    result = functools.reduce(combine, (value & (1 << bits) - 1 for value in values[0]))
    is_negative = types[0].name.startswith("i") and result >> (bits - 1)
    return Exactly(result - (1 << bits) if is_negative else result)


# ---- moments ---------------------------------------------------------------------------------------------------------


def _moments(reals):
    """(mean, sum of squared distances from it, sum of squares)."""
    mean = math.fsum(reals) / len(reals)
    left = math.fsum(value - mean for value in reals)  # by which the mean is rounded
    squares = math.fsum((value - mean) ** 2 for value in reals) - left * left / len(reals)
    return mean, max(squares, 0.0), math.fsum(value * value for value in reals)


def _moments_error(n, squares, whole):
    """The error bound of a sum of squared distances that is added up value by value: Chan, Golub, LeVeque 1983, table
    1.1."""
    return 16 * n * EPSILON * math.sqrt(squares) * math.sqrt(whole) + 64 * (n * EPSILON) ** 2 * whole


def _is_safe(*sums):
    return all(math.isfinite(value) and value < HUGE for value in sums)


def _vanish(reals, squares):
    """Whether numbers are so small that their squares are no measure of rounding."""
    return squares < TINY and any(reals)


def _spread(types, values, is_sample, is_root):
    reals = [float(number_of(types[0], value)) for value in values[0]]
    n = len(reals)
    if n <= is_sample:
        return NULL
    if not all(map(math.isfinite, reals)):
        return Near(math.nan, 0)
    try:
        _, squares, whole = _moments(reals)
    except OverflowError:
        return Anything()
    if not _is_safe(whole):
        return Anything()
    error, divisor = _moments_error(n, squares, whole), n - is_sample
    if not is_root:
        return Near(squares / divisor, error / divisor)
    low, high = (math.sqrt(max(squares + sign * error, 0.0) / divisor) for sign in (-1, 1))
    middle = math.sqrt(squares / divisor)
    return Near(middle, max(high - middle, middle - low) + 4 * EPSILON * middle)


def _pairs(types, values):
    return ([float(number_of(column_type, value)) for value in column] for column_type, column in zip(types, values))


def _covariance(types, values, is_sample):
    x, y = _pairs(types, values)
    n = len(x)
    if n <= is_sample:
        return NULL
    if not all(map(math.isfinite, x + y)):
        return NotFinite()
    try:
        (mean_x, sx, wx), (mean_y, sy, wy) = _moments(x), _moments(y)
        products = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    except OverflowError:
        return Anything()
    if not _is_safe(wx, wy) or _vanish(x, wx) or _vanish(y, wy):
        return Anything()
    error = (16 * n * EPSILON * (math.sqrt(wx) * math.sqrt(sy) + math.sqrt(sx) * math.sqrt(wy))
             + 64 * (n * EPSILON) ** 2 * math.sqrt(wx) * math.sqrt(wy))
    return Near(products / (n - is_sample), error / (n - is_sample))


def _correlation(types, values):
    x, y = _pairs(types, values)
    n = len(x)
    constant = [len(set(side)) == 1 and math.isfinite(side[0]) for side in (x, y)]
    if any(constant):
        return NULL
    if not all(map(math.isfinite, x + y)):
        return NotFinite()
    try:
        (mean_x, sx, wx), (mean_y, sy, wy) = _moments(x), _moments(y)
        products = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    except OverflowError:
        return Anything()
    if not _is_safe(wx, wy) or min(sx, sy) < 1e-250:
        return Anything()
    scale = math.sqrt(sx) * math.sqrt(sy)
    error = (16 * n * EPSILON * (math.sqrt(wx / sx) + math.sqrt(wy / sy)) + 64 * (n * EPSILON) ** 2
             * math.sqrt(wx / sx) * math.sqrt(wy / sy))
    error += _moments_error(n, sx, wx) / sx + _moments_error(n, sy, wy) / sy
    return Anything() if error > 0.1 else Near(products / scale, error)


# ---- quantiles, strings, the host's ----------------------------------------------------------------------------------


def _quantile(types, values, quantile):
    reals = sorted((float(number_of(types[0], value)) for value in values[0]),
                   key=lambda real: (math.isnan(real), real))
    place = quantile * (len(reals) - 1)
    index = int(place)
    lower, fraction = reals[index], place - index
    if fraction == 0 or math.isnan(lower):
        return Near(lower, 0)
    upper = reals[index + 1]
    if lower == upper:
        return Near(upper, 0)
    if not math.isfinite(upper - lower):
        return Anything() if math.isfinite(lower) and math.isfinite(upper) else NotFinite()
    return Near(lower + (upper - lower) * fraction, 4 * EPSILON * (abs(lower) + abs(upper)))


def _signed64(bits):
    bits &= (1 << 64) - 1
    return bits - (1 << 64) if bits >> 63 else bits


def _approx_count(types, values):
    exact = len(_distinct(types, values))
    slack = max(2, 0.08 * exact)
    return Within(exact - slack, exact + slack)


_FUNCTIONS = {
    "sum": _sum, "sum128": _sum128, "avg": _avg, "sum_distinct": _sum_distinct,
    "min": functools.partial(_extreme, pick=min), "max": functools.partial(_extreme, pick=max),
    "any": lambda types, values: OneOf(frozenset(values[0])),
    "first": lambda types, values: Exactly(values[0][0]), "last": lambda types, values: Exactly(values[0][-1]),
    "bool_and": lambda types, values: Exactly(int(all(values[0]))),
    "bool_or": lambda types, values: Exactly(int(any(values[0]))),
    "bit_and": functools.partial(_bits, combine=lambda a, b: a & b),
    "bit_or": functools.partial(_bits, combine=lambda a, b: a | b),
    "bit_xor": functools.partial(_bits, combine=lambda a, b: a ^ b),
    "var_pop": functools.partial(_spread, is_sample=0, is_root=False),
    "var_samp": functools.partial(_spread, is_sample=1, is_root=False),
    "stddev_pop": functools.partial(_spread, is_sample=0, is_root=True),
    "stddev_samp": functools.partial(_spread, is_sample=1, is_root=True),
    "covar_pop": functools.partial(_covariance, is_sample=0), "covar_samp": functools.partial(_covariance, is_sample=1),
    "corr": _correlation,
    "count_distinct": lambda types, values: Exactly(len(_distinct(types, values))),
    "approx_count_distinct": _approx_count,
    "median": functools.partial(_quantile, quantile=0.5),
    "host": lambda types, values: Exactly(_signed64(functools.reduce(lambda a, b: a ^ b, (*values[0], *values[1])))),
}


def taking_part(aggregate, rows):
    """For each argument the values of the rows that pass the filter and have no null argument; without arguments the
    rows."""
    if aggregate.filter:
        numbers, values = aggregate.filter.indices, aggregate.filter.values
        rows = [row for row in rows if numbers[row] is not None and values[numbers[row]]]
    if not aggregate.arguments:
        return [rows]
    indices = [column.indices for column in aggregate.arguments]
    rows = [row for row in rows if all(of_column[row] is not None for of_column in indices)]
    return [[column.values[column.indices[row]] for row in rows] for column in aggregate.arguments]


def answer_of(aggregate, values):
    """`values`: for each argument the values of the group's rows that take part, by row id; for count_star one list of
    rows."""
    name = aggregate.function
    if name in ("count_star", "count"):
        return Exactly(len(values[0]))
    if not values[0]:
        return Exactly(0) if name in ("count_distinct", "approx_count_distinct") else NULL
    if name == "quantile":
        return _quantile(aggregate.types, values, float(aggregate.quantile))
    if name == "string_agg":
        return Exactly(aggregate.separator.join(values[0]))
    return _FUNCTIONS[name](aggregate.types, values)


# ---- sums that do not fit --------------------------------------------------------------------------------------------


def _sum_range(column_type):
    if column_type.is_decimal:
        return -(1 << 127), (1 << 127) - 1
    return (-(1 << 63), (1 << 63) - 1) if column_type.name.startswith("i") else (0, (1 << 64) - 1)


def overflow_of(aggregate, values):
    """"never", "always", or "perhaps": the sum fits but partial sums overflow in some order."""
    if aggregate.function not in ("sum", "sum_distinct", "avg") or aggregate.types[0].is_float:
        return "never"
    column_type = aggregate.types[0]
    if aggregate.function == "avg" and not column_type.is_decimal or not values[0]:
        return "never"
    is_distinct = aggregate.function == "sum_distinct"
    numbers = [number_of(column_type, value) for value in (set(values[0]) if is_distinct else values[0])]
    least, most = _sum_range(column_type)
    if not least <= sum(numbers) <= most:
        return "always"
    if is_distinct:
        return "never"  # summed up when all are known
    leaves = (sum(number for number in numbers if number > 0) > most
              or sum(number for number in numbers if number < 0) < least)
    return "perhaps" if leaves else "never"


def overflow_text(aggregate):
    text = dataclasses.replace(aggregate.types[0], nullable=False, null_equal=False).text()
    is_wide = aggregate.types[0].is_decimal
    if aggregate.function == "sum_distinct":
        return f"sum out of range: sum_distinct({text}); accepted: results within {'128' if is_wide else '64'} bits"
    return (f"sum out of range: {aggregate.function}({text}); accepted: sums within "
            f"{'128 bits' if is_wide else '64 bits, or sum128'}")
