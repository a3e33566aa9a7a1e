# SPDX-License-Identifier: Apache-2.0
"""Random columns of an aggregation: keys with a given number of groups, arguments whose sums may overflow, filters.

Keys are drawn from a *pool* of tuples, which is made as the build side of a join is (join_rows.py):

    pool (1, 'a') (2, 'b') (null, 'c')      rows 0 1 2 2 0: each tuple once, the rest at random, then perhaps sorted
                                            into runs
"""
import dataclasses

from aggregate_functions import ACCEPTED, COMPARING, FUNCTIONS, HOST_ARGUMENT, HOST_NAME
from join_rows import mixed_keys, narrow_keys
from oracle import normalise
from random_data import (COLLATIONS, DECIMALS, INTEGER_CODES, STRING_TYPES, ColumnType, float_bits, integer_bounds,
                         random_indices, random_type, random_values, with_nulls)

MANY_GROUPS = 50_000
BATCHES = (1, 7, 64, 1024, 4096)  # values of batch_size
NULL_DENSITIES = (0, 0, 0.05, 0.5, 1)
BIG_ROWS = 20_000
MAX_BIG_AGGREGATES = 2


@dataclasses.dataclass
class Column:
    type: ColumnType
    values: list   # physical values
    indices: list  # of each row; None: null


@dataclasses.dataclass
class Aggregate:
    """function(arguments) of a spec. An argument may be a key or another aggregate's argument once more."""
    function: str
    types: list            # of the arguments: the column's, or the same without its collation
    arguments: list        # columns
    filter: Column | None  # bool
    quantile: str = ""
    separator: bytes = b""

    def name(self):
        return f"host.{HOST_NAME}" if self.function == "host" else self.function

    def canonical_text(self):
        """As the library prints it: the collation that is the default anyway is left out."""
        plain = [dataclasses.replace(column_type,
                                     collation="" if column_type.collation == "binary" else column_type.collation)
                 for column_type in self.types]
        return dataclasses.replace(self, types=plain).text()

    def text(self):
        return self.text_of([column_type.text() for column_type in self.types])

    def text_of(self, arguments, condition=None):
        """The call with these arguments, types or expressions; condition: the filter where that is an expression."""
        inside = list(arguments)
        if self.function == "quantile":
            inside.append(self.quantile)
        if self.function == "string_agg":
            inside.append(f"x'{self.separator.hex()}'")
        call = self.name() if self.function == "count_star" else f"{self.name()}({','.join(inside)})"
        return call + (":filter" if self.filter else "") + (f"({condition})" if condition else "")


# ---- sizes -----------------------------------------------------------------------------------------------------------


def random_sizes(rng):
    """(tuples of the pool, rows)."""
    style = rng.choices(("none", "one", "few", "batch", "hundreds", "thousands", "many"), (4, 8, 25, 30, 20, 10, 2))[0]
    if style == "none":
        return 1, 0
    if style == "many":
        groups = MANY_GROUPS + rng.choice((0, 1, 500))
        return groups, groups + rng.choice((0, 10_000))
    if style == "batch":
        groups = max(rng.choice(BATCHES[1:]) + rng.choice((-1, 0, 1)), 1)
        return groups, groups + rng.choice((0, 0, groups, rng.randint(0, 500)))
    groups = {"one": 1, "few": rng.randint(2, 20), "hundreds": rng.randint(20, 700),
              "thousands": rng.randint(700, 5000)}[style]
    return groups, rng.choice((groups, rng.randint(1, 2000), rng.choice(BATCHES) + rng.choice((-1, 0, 1)) + 1,
                               3 * groups))


# ---- keys ------------------------------------------------------------------------------------------------------------


def _pool(rng, num_tuples):
    """Key columns of about this many distinct tuples."""
    most_keys = None
    if num_tuples < 3000 and rng.random() < 0.05:
        most_keys = 16
    elif num_tuples >= MANY_GROUPS:
        most_keys = rng.choice((1, 2))
    sizes = {"build": num_tuples, "probe": 0}
    narrow = most_keys != 16 and rng.random() < 0.55
    keys = narrow_keys(rng, sizes) if narrow else mixed_keys(rng, sizes, most_keys)
    return [_as_group_key(key) for key in keys]


def _as_group_key(key):
    return Column(dataclasses.replace(key.type, null_equal=key.type.nullable), key.values, key.indices["build"])


def _in_order(rng, key, rows):
    """By the key's values, nulls first, but perhaps for a few rows at the end."""
    index_of = {row: key.indices[row] for row in rows}
    values = {row: None if index is None else key.values[index] for row, index in index_of.items()}
    rows = sorted(rows, key=lambda row: (values[row] is not None, 0 if values[row] is None else values[row]))
    if rng.random() < 0.4:
        rows += [rows.pop(rng.randrange(len(rows) // 2 + 1)) for _ in range(min(3, len(rows) // 2))]
    return rows


def random_keys(rng, num_tuples, num_rows):
    """Key columns of so many rows. Few types have many values: those are drawn anew."""
    if num_tuples < MANY_GROUPS and rng.random() < 0.12:
        return []
    for _ in range(20):
        keys = _pool(rng, num_tuples)
        if num_tuples < MANY_GROUPS or len(set(zip(*(key.indices for key in keys)))) >= MANY_GROUPS:
            break
    size = len(keys[0].indices)
    if size == 0 or num_rows == 0:
        rows = []
    elif rng.random() < 0.75 or num_tuples >= MANY_GROUPS:
        rows = list(range(min(size, num_rows))) + random_indices(rng, max(num_rows - size, 0), size,
                                                                 rng.choice(("uniform", "zipf")))
        if rng.random() < 0.7:
            rng.shuffle(rows)
    else:
        rows = random_indices(rng, num_rows, size, rng.choice(("uniform", "uniform", "zipf", "sequential", "equal")))
    if rng.random() < 0.25:
        rows.sort(reverse=rng.random() < 0.2)  # runs of equal keys
    elif len(keys) == 1 and rng.random() < 0.6:
        rows = _in_order(rng, keys[0], rows)
    for key in keys:
        key.indices = [key.indices[row] for row in rows]
        if key.type.nullable and rng.random() < 0.4:
            key.indices = with_nulls(rng, key.indices, rng.choice((0.02, 0.5, 1)))
    return keys


def is_sorted(keys):
    """Whether equal keys stand side by side."""
    rows = list(zip(*(key.indices for key in keys)))
    changes = sum(one != other for one, other in zip(rows, rows[1:]))
    return len(rows) > 1 and changes + 1 == len(set(rows)) < len(rows)


# ---- arguments -------------------------------------------------------------------------------------------------------


def mild_values(rng, column_type, count):
    """Numbers whose sums mostly fit, and whose squares fit."""
    if column_type.is_decimal:
        bound = 10 ** min(column_type.precision, rng.choice((2, 10, 33))) - 1
        return [column_type.decimal_value(rng.randint(-bound, bound)) for _ in range(count)]
    if column_type.is_float:
        middle, spread = rng.choice((0, 0, 1, -1000, 1e6)), rng.choice((1, 1, 1000, 1e-3))
        return [float_bits(column_type, rng.choice((rng.gauss(middle, spread), round(rng.gauss(middle, spread)))))
                for _ in range(count)]
    low, high = integer_bounds(column_type)
    bound = rng.choice((2, 100, 1 << 20, 1 << 40))
    return [rng.randint(max(low, -bound), min(high, bound)) for _ in range(count)]


def _argument_values(rng, function, column_type, count):
    if column_type.name in (*INTEGER_CODES, "f32", "f64", *DECIMALS) and not function.accepts == "anything":
        is_sum = function.name in ("sum", "sum_distinct", "avg")
        if rng.random() < (0.85 if is_sum and not column_type.is_float else 0.7):
            return mild_values(rng, column_type, count)
    return random_values(rng, column_type, count)


def _argument_type(rng, function):
    if function.name == "host":
        return ColumnType(HOST_ARGUMENT, nullable=rng.random() < 0.6)
    column_type = random_type(rng, names=ACCEPTED[function.accepts])
    changes = {"nullable": rng.random() < 0.6}
    if column_type.name in STRING_TYPES and function.name in COMPARING and rng.random() < 0.5:
        changes["collation"] = rng.choice(COLLATIONS)
    return dataclasses.replace(column_type, **changes)


def _rows(rng, num_rows, num_values, nullable):
    rows = random_indices(rng, num_rows, num_values,
                          rng.choice(("uniform", "uniform", "uniform", "sequential", "zipf", "equal")))
    return with_nulls(rng, rows, rng.choice(NULL_DENSITIES) if nullable else 0)


def _own_argument(rng, function, num_rows):
    column_type = _argument_type(rng, function)
    count = rng.choice((1, 2, 10, 100, 1000, max(min(num_rows, 5000), 1)))
    values = _argument_values(rng, function, column_type, min(count, max(num_rows, 1)))
    values = values[:50] if column_type.index in ("i8", "u8") else values[:5000] if column_type.index else values
    return Column(column_type, values, _rows(rng, num_rows, len(values), column_type.nullable))


def _known_argument(rng, function, columns):
    """(type, column) of a column that there is; None where none fits."""
    usable = ([column for column in columns if column.type.name in ACCEPTED[function.accepts]]
              if function.name != "host" else [])
    if not usable:
        return None
    column = rng.choice(usable)
    collation = column.type.collation if function.name in COMPARING else ""
    return dataclasses.replace(column.type, collation=collation, null_equal=False), column


def _random_aggregate(rng, name, columns, num_rows):
    function, types, arguments = FUNCTIONS[name], [], []
    for _ in range(2 if name == "host" else function.num_arguments):
        known = _known_argument(rng, function, columns) if rng.random() < 0.2 else None
        if known is None:
            column = _own_argument(rng, function, num_rows)
            known = column.type, column
        types.append(known[0])
        arguments.append(known[1])
    filtering = None
    if rng.random() < 0.25:
        filtering = Column(ColumnType("bool", nullable=True), [0, 1], _rows(rng, num_rows, 2, True))
    return Aggregate(name, types, arguments, filtering,
                     rng.choice(("0", "1", "0.5", "0.25", "0.9", "0.999", repr(round(rng.random(), 3)))),
                     rng.choice((b"", b",", b", ", b"\0", b"'", b"\xff\x01", b"-" * 40))
                     if name == "string_agg" else b"")


def random_aggregates(rng, keys, num_rows):
    numbers = (0, 1, 1, 2, 2, 3, 4, 6, 12) if num_rows <= BIG_ROWS else (0, 1, MAX_BIG_AGGREGATES)
    aggregates, columns = [], list(keys)
    for _ in range(max(rng.choice(numbers), 0 if keys else 1)):
        name = rng.choice(list(FUNCTIONS)) if rng.random() < 0.9 else rng.choice(("sum", "first", "string_agg", "host"))
        aggregates.append(_random_aggregate(rng, name, columns, num_rows))
        columns += [column for column in aggregates[-1].arguments if not any(column is other for other in columns)]
    return aggregates


# ---- what a group is -------------------------------------------------------------------------------------------------


def group_keys(keys, num_rows):
    """The key tuple of each row, as groups compare it: (None,) for a null, (value,) otherwise."""
    columns = []
    for key in keys:
        classes = [(normalise(key.type, value),) for value in key.values]
        columns.append([(None,) if index is None else classes[index] for index in key.indices])
    return list(zip(*columns)) if columns else [()] * num_rows
