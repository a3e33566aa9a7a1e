# SPDX-License-Identifier: Apache-2.0
"""Random key, residual and payload columns of a join: which types, and which rows hold which values.

Keys come in two styles. *Mixed*: any types; the rows of both sides are drawn from one pool of tuples, so that several
keys match at once. *Narrow*: types that fit one 64-bit word together, which tables other than the unchained one are
made for. Their tuples are numbered by *rank*, and the build side is an arrangement of ranks:

    keys=i32, values 5 6 7 8 (a run), ranks 0 .. 3; the probe side also draws rank 4, 5, ..: values 4, 9, not in build
    keys=i8,bool: rank = 2 * number of the i8 value + bool
    unique:  3 0 2 1     few duplicates:  3 0 2 2     duplicates: 0 1 0 1     equal: 2 2 2 2
"""
import dataclasses

from random_data import (COLLATIONS, DECIMALS, FLOAT_BITS, INTEGER_CODES, NARROW_DECIMAL_CODES, STRING_TYPES,
                         TEMPORAL_CODES, ColumnType, float_bits, integer_bounds, integer_run, normalised_float,
                         random_indices, random_type, random_values, with_nulls)

SIDES = ("build", "probe")
COMPARISONS = ("lt", "le", "gt", "ge", "ne", "eq")
WORD_BITS = 64
RESIDUAL_TYPES = ("bool", *INTEGER_CODES, "f32", "f64", "f32", "f64", "decimal128", *DECIMALS, *TEMPORAL_CODES)


@dataclasses.dataclass
class Column:
    """A key or residual column (indices of both sides) or a payload column (of its side)."""
    type: ColumnType
    values: list
    indices: dict


@dataclasses.dataclass
class Payload:
    """What the spec lists under build= or probe=: a row id, a key or residual column once more, or a column of its
    own."""
    type: ColumnType
    column: Column | None  # None: row id


@dataclasses.dataclass
class Residual:
    """One conjunct: probe side's column OP build side's column. The column may be a key."""
    type: ColumnType
    column: Column
    op: str

    def text(self):
        return f"{self.type.text()}:{self.op}"


# ---- sizes -----------------------------------------------------------------------------------------------------------


def random_sizes(rng):
    big = rng.random()
    if big < 0.01:
        return {"build": rng.randint(100_000, 300_000), "probe": rng.choice((0, 1, 30_000))}
    if big < 0.02:
        return {"build": rng.choice((1, 1000, 20_000)), "probe": rng.randint(100_000, 200_000)}
    return {side: _random_size(rng) for side in SIDES}


def _random_size(rng):
    style = rng.choice(("fewest", "batch", "batch", "power", "power", "any", "thousands"))
    if style == "fewest":
        return rng.choice((0, 1, 2))
    if style == "batch":
        return rng.choice((7, 64, 1024, 2048)) + rng.choice((-1, 0, 1))
    if style == "power":
        return 2 ** rng.randint(2, 12) + rng.choice((-1, 0, 1))
    return rng.randint(0, 200) if style == "any" else rng.randint(1000, 5000)


# ---- narrow keys -----------------------------------------------------------------------------------------------------

_WORD_NAMES = ("bool", *INTEGER_CODES, "f32", "f64", *NARROW_DECIMAL_CODES, *TEMPORAL_CODES)
_COMPOSITES = (("i32", "i32"), ("i8", "bool", "i16"), ("f32", "i16"), ("u16", "i16", "u8", "i8"), ("date32", "u16"),
               ("bool", "i32"), ("u8", "u8"), ("bool", "bool"))
_ARRANGEMENTS = ("unique", "unique", "unique", "gaps", "few duplicates", "few duplicates", "duplicates", "equal",
                 "zipf")


def key_bits(column_type):
    """Bits of a key in a packed key; None if it cannot be packed."""
    if column_type.name not in _WORD_NAMES:
        return None
    bits = 1 if column_type.name == "bool" else 8 * column_type.number_bytes()
    return bits + (column_type.nullable and column_type.null_equal)


def fit_word(keys):
    bits = [key_bits(key.type) for key in keys]
    return None not in bits and sum(bits) <= WORD_BITS


def _narrow_types(rng):
    if rng.random() < 0.55:
        names = (rng.choice(("i32", "i64", "u32", "u64", "i16", "u16", "i8", "u8", "i32", "i64", *NARROW_DECIMAL_CODES,
                             *TEMPORAL_CODES)),)
    else:
        names = rng.choice(_COMPOSITES) if rng.random() < 0.8 else rng.choices(_WORD_NAMES, k=rng.randint(1, 3))
    types = []
    for name in names:
        nullable = rng.random() < 0.35
        null_equal = nullable and rng.random() < 0.5
        if names == ("f32", "i16") and name == "i16":
            nullable = null_equal = True
        column_type = random_type(rng, dictionaries=False, names=(name,))
        index = rng.choice(("i16", "u16", "i32", "u64")) if rng.random() < 0.08 else ""
        types.append(dataclasses.replace(column_type, index=index, nullable=nullable, null_equal=null_equal))
    return types


def _distinct_values(rng, column_type, count, style):
    """Up to `count` values that differ as keys."""
    count = min(count, 5000) if column_type.index else count
    if column_type.name == "bool":
        return [0, 1][:count]
    if column_type.is_float:
        bits = [float_bits(column_type, step) for step in range(count)]
        candidates = (rng.sample(FLOAT_BITS[column_type.name], 6) if rng.random() < 0.5 else []) + bits
        return list({normalised_float(column_type, value): value for value in candidates}.values())[:count]
    low, high = integer_bounds(column_type)
    if style == "run" or high - low < 4 * count:
        return integer_run(rng, low, high, count)
    if style == "stride":
        step = rng.choice((2, 8, 1000, 4096))
        return list(range(0, min(high, step * count - 1) + 1, step))
    values = set()
    while len(values) < count:
        values.add(rng.randint(low, high))
    return rng.sample(sorted(values), len(values))


def _misses(rng, column_type, values):
    """A few values that are not among the given ones: neighbours, ends of the type, random ones."""
    if column_type.is_float or column_type.name == "bool" or column_type.index:
        return []
    low, high = integer_bounds(column_type)
    near = [min(values) - 1, max(values) + 1, min(values) - 2, max(values) + 100, low, high, 0, rng.randint(low, high)]
    known = set(values)
    return [value for value in dict.fromkeys(near) if low <= value <= high and value not in known]


def _rank_columns(rng, types, num_ranks):
    """(values of each key, stride of each key in a rank, ranks of the build side, all ranks)."""
    style = rng.choice(("run", "run", "run", "sparse", "sparse", "stride"))
    if len(types) == 1:
        values = _distinct_values(rng, types[0], num_ranks, style)
        misses = _misses(rng, types[0], values)
        return [values + misses], [1], len(values), len(values) + len(misses)
    columns, strides, capacity = [], [], 1
    for number, column_type in enumerate(types):
        left = num_ranks * 5 // 4 // capacity + 1
        wanted = left if number == len(types) - 1 else min(left, rng.choice((1, 2, 5, 50, left)))
        columns.append(_distinct_values(rng, column_type, wanted, style))
        strides.append(capacity)
        capacity *= len(columns[-1])
    return columns, strides, min(num_ranks, capacity), capacity


def _arranged(rng, arrangement, num_rows, num_ranks):
    if arrangement in ("unique", "gaps", "few duplicates"):
        ranks = rng.sample(range(num_ranks), min(num_rows, num_ranks))
        if rng.random() < 0.4:
            ranks.sort(reverse=rng.random() < 0.3)
        if arrangement == "few duplicates" and ranks:
            for _ in range(rng.choice((1, 2, len(ranks) // 50 + 1))):
                ranks[rng.randrange(len(ranks))] = rng.choice(ranks)
        return ranks
    return random_indices(rng, num_rows, num_ranks,
                          {"duplicates": rng.choice(("uniform", "sequential"))}.get(arrangement, arrangement))


def narrow_keys(rng, sizes):
    """Keys that mostly fit one word. Reduces sizes["build"] where the types have fewer values than there are distinct
    rows."""
    types = _narrow_types(rng)
    arrangement = rng.choice(_ARRANGEMENTS)
    share = {"gaps": rng.choice((1.1, 2, 10 if sizes["build"] < 10_000 else 2)),
             "duplicates": 1 / rng.randint(2, 5)}.get(arrangement, 1)
    columns, strides, build_ranks, all_ranks = _rank_columns(rng, types, int(max(sizes["build"], 1) * share) + 1)
    ranks = {"build": _arranged(rng, arrangement, sizes["build"], build_ranks)}
    sizes["build"] = len(ranks["build"])
    reach = rng.choice((build_ranks, all_ranks, all_ranks))
    ranks["probe"] = random_indices(rng, sizes["probe"], reach,
                                    rng.choice(("uniform", "uniform", "zipf", "sequential")))
    keys = []
    for column_type, values, stride in zip(types, columns, strides):
        indices = {}
        for side in SIDES:
            rows = [rank // stride % len(values) for rank in ranks[side]]
            indices[side] = with_nulls(rng, rows,
                                       rng.choice((0, 0, 0, 0.02, 0.1, 0.5, 1)) if column_type.nullable else 0)
        keys.append(Column(column_type, values, indices))
    return keys


# ---- mixed keys ------------------------------------------------------------------------------------------------------


def _random_key_type(rng):
    key_type = random_type(rng)
    nullable = rng.random() < 0.45
    changes = {"nullable": nullable, "null_equal": nullable and rng.random() < 0.5}
    if key_type.name in STRING_TYPES and rng.random() < 0.5:
        changes["collation"] = rng.choice(COLLATIONS)
    return dataclasses.replace(key_type, **changes)


def _num_values(rng, column_type, distinct):
    few = rng.choice((1, 2, 3, 20)) if rng.random() < 0.3 else distinct
    return max(1, min(few, 50) if column_type.index in ("i8", "u8") else min(few, 5000) if column_type.index else few)


def mixed_keys(rng, sizes, num_keys=None):
    """Keys whose rows are drawn from a common pool of tuples, so that several keys match at once, with a few rows
    changed in one key."""
    big = max(sizes.values()) > 10_000
    num_keys = num_keys or rng.randint(1, 2) if big else rng.choices((1, 2, 3, 4, rng.randint(5, 16)),
                                                                     (40, 25, 12, 10, 8))[0]
    most = max(*sizes.values(), 1)
    distinct = most if big else rng.choice((1, 2, 10, 100, most, most, 2 * most))
    distributions = ["uniform", "uniform", "zipf", "sequential"] + ([] if big else ["equal"])
    chosen = {side: rng.choice(distributions) for side in SIDES}
    if rng.random() < 0.06:
        chosen = {"build": "low half", "probe": "high half"}
    pool_rows = {side: random_indices(rng, sizes[side], distinct, chosen[side]) for side in SIDES}
    return [_mixed_key(rng, distinct, pool_rows) for _ in range(num_keys)]


def _mixed_key(rng, distinct, pool_rows):
    key_type = _random_key_type(rng)
    values = random_values(rng, key_type, _num_values(rng, key_type, distinct))
    values = values[:50] if key_type.index in ("i8", "u8") else values
    in_order = rng.random() < 0.6
    of_pool_row = [row % len(values) if in_order else rng.randrange(len(values)) for row in range(distinct)]
    indices = {}
    for side in SIDES:
        changed = rng.choice((0, 0, 0, 0.02, 0.3))
        rows = [of_pool_row[row] if rng.random() >= changed else rng.randrange(len(values)) for row in pool_rows[side]]
        indices[side] = with_nulls(rng, rows,
                                   rng.choice((0, 0, 0.05, 0.05, 0.1, 0.5, 0.5, 1) if key_type.nullable else (0,)))
    return Column(key_type, values, indices)


# ---- residual and payload --------------------------------------------------------------------------------------------


def random_residuals(rng, keys, sizes):
    return [_random_residual(rng, keys, sizes) for _ in range(rng.choices((0, 1, 2), (60, 28, 12))[0])]


def _random_residual(rng, keys, sizes):
    op = rng.choice(COMPARISONS)
    usable = [key for key in keys if key.type.name in RESIDUAL_TYPES and not key.type.index]
    if usable and rng.random() < 0.1:
        key = rng.choice(usable)
        return Residual(dataclasses.replace(key.type, null_equal=False), key, op)
    column_type = dataclasses.replace(random_type(rng, dictionaries=False, names=RESIDUAL_TYPES),
                                      nullable=rng.random() < 0.5)
    values = random_values(rng, column_type, rng.choice((2, 5, 50, 1000)))
    indices = {}
    for side in SIDES:
        rows = random_indices(rng, sizes[side], len(values),
                              rng.choice(("uniform", "uniform", "zipf", "equal", "sequential")))
        indices[side] = with_nulls(rng, rows, rng.choice((0, 0.1, 0.1, 0.5, 1)) if column_type.nullable else 0)
    return Residual(column_type, Column(column_type, values, indices), op)


def random_payload(rng, shared, side, num_rows, numbers=(0, 0, 1, 1, 2, 3, 6)):
    """Payload of a side; `shared`: the columns that it may list once more."""
    payload = []
    for _ in range(rng.choice(numbers) if num_rows < 10_000 else rng.choice((0, 1, 1, 2))):
        kind = rng.random()
        if kind < 0.15:
            payload.append(Payload(ColumnType("rowid"), None))
        elif kind < 0.3:
            column = rng.choice(shared)
            payload.append(Payload(dataclasses.replace(column.type, collation="", null_equal=False), column))
        else:
            payload.append(own_payload(rng, side, num_rows))
    return payload


def own_payload(rng, side, num_rows):
    column_type = dataclasses.replace(random_type(rng), nullable=rng.random() < 0.5)
    values = random_values(rng, column_type, _num_values(rng, column_type, min(num_rows, 1000)))
    values = values[:50] if column_type.index in ("i8", "u8") else values
    rows = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "sequential", "zipf", "equal")))
    rows = with_nulls(rng, rows, rng.choice((0, 0.1, 0.5, 1) if column_type.nullable else (0,)))
    return Payload(column_type, Column(column_type, values, {side: rows}))
