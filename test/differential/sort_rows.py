# SPDX-License-Identifier: Apache-2.0
"""Random columns of a sort: keys of every type and order, values that are hard for key words, prefixes and prefix
collisions, and rows that are sorted, or nearly so.

Rows are drawn from a *pool* of key tuples; then they may be sorted and disturbed a little:

    pool (1, 'a') (2, 'b') (2, 'c')    rows 2 0 1 0    sorted 0 0 1 2    nearly sorted 0 1 0 2
"""
import dataclasses

from aggregate_rows import Column
from collated_strings import restricted
from random_data import COLLATIONS, STRING_TYPES, ColumnType, random_indices, random_type, random_values, with_nulls
from sort_order import row_classes

MAX_KEYS = 16
BIG_ROWS = 20_000
MANY_ROWS = 16_384  # from which on orders of the input are looked for
HUGE_LIMIT = (1 << 63) - 1
WINDOW_FUNCTIONS = ("row_number", "rank", "dense_rank")
# Around words (8), what a string holds itself (12), what words hold of it (16), and beyond.
STRING_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 100)
ORDERS = ("as they come", "sorted", "reversed", "nearly sorted", "sorted runs")


@dataclasses.dataclass
class Key(Column):
    descending: bool
    nulls_first: bool
    out: bool
    flags: list  # as the spec's text has them, in any order

    def text(self):
        return ":".join([dataclasses.replace(self.type, nullable=False).text(), *self.flags])


@dataclasses.dataclass
class Payload:
    """A row id, a key once more, or a column of its own."""
    type: ColumnType
    column: Column | None  # None: row id


# ---- sizes -----------------------------------------------------------------------------------------------------------


def random_size(rng):
    style = rng.random()
    if style < 0.004:
        return rng.choice((262_145, 300_000))  # as many as a sort with a limit keeps at most, and more
    if style < 0.05:
        return rng.choice((16_384, 20_000, 20_000, 33_000, 40_000, 65_537))  # more than are sorted in one task
    if style < 0.12:
        return rng.choice((4095, 4096, 4097, 8000))
    if style < 0.3:
        return rng.choice((999, 1000, 1023, 1024, 1025, 2048, 2049))
    if style < 0.6:
        return rng.choice((2, 3, 8, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 64, 65, 99, 100, 127, 128, 255, 256, 257,
                           511, 512, 513))
    return rng.choice((0, 0, 1, 1)) if style < 0.66 else rng.randint(2, 2000)


def random_limit(rng, num_rows):
    style = rng.random()
    if style < 0.5:
        return 0
    if num_rows > 1024 and style < 0.75:
        # so that rows are dropped
        return rng.choice((1, 2, 10, 100, (num_rows - 1024) // 2, (num_rows - 1024) // 3 + 1)) or 1
    if style < 0.6:
        return rng.choice((1, 1, 2))
    if style < 0.85:
        return max(rng.choice((3, 10, 100, num_rows // 20, num_rows // 3, rng.randint(1, num_rows + 1))), 1)
    return max(rng.choice((num_rows - 1, num_rows, num_rows + 1, 1_000_000, HUGE_LIMIT)), 1)


# ---- values ----------------------------------------------------------------------------------------------------------


def _letters(rng, alphabet, num_bytes):
    return "".join(rng.choices(alphabet, k=num_bytes)).encode()


def _string_values(rng, utf8, count):
    """Strings with long common prefixes, prefixes of each other, or with ends that the order may ignore."""
    style = rng.choice(("lengths", "shared prefix", "shared prefix", "endings", "endings", "prefixes of one",
                        "one byte differs"))
    alphabet = rng.choice(("a", "ab", "abcdefghijklmnopqrstuvwxyz", "\0a", " a", "\0 \x01\x1f!"))
    if style == "lengths":
        values = [_letters(rng, alphabet, rng.choice(STRING_LENGTHS)) for _ in range(count)]
    elif style == "shared prefix":
        shared = _letters(rng, alphabet, rng.choice((1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 40, 100, 300)))
        values = [shared + _letters(rng, alphabet + "xyz", rng.choice((0, 0, 1, 2, 7, 8, 9, 20))) for _ in range(count)]
    elif style == "endings":
        stems = [_letters(rng, alphabet, rng.choice((0, 1, 6, 7, 8, 11, 12, 14, 15, 16, 17, 24)))
                 for _ in range(count // 5 + 1)]
        ends = (b"", b"\0", b"\0\0", b" ", b"  ", b" \0", b"\0 ", b"\x01", b"\x1f", b"!", b" " * 9, b"\0" * 9,
                b" " * 20, b"\t")
        values = [rng.choice(stems) + rng.choice(ends) for _ in range(count)]
    elif style == "prefixes of one":
        whole = _letters(rng, alphabet, 150)
        values = [whole[:rng.choice((*STRING_LENGTHS, 99, 101, 150))] for _ in range(count)]
    else:
        values = []
        for _ in range(count):
            value = bytearray(b"m" * rng.choice((8, 12, 13, 16, 17, 24, 40)))
            place = rng.choice((0, len(value) - 1, rng.randrange(len(value))))
            value[place] = rng.choice(b"\0\x7faz" if utf8 else b"\0\x80\xff")
            values.append(bytes(value))
    if not utf8 and rng.random() < 0.3:
        values = [value.replace(b"a", rng.choice((b"\xff", b"\x80", b"\xc3"))) for value in values]
    return values


def _key_values(rng, key_type, count):
    """Never empty."""
    count = max(count, 1)
    if key_type.name in STRING_TYPES and count <= BIG_ROWS and rng.random() < (0.4 if key_type.collation else 0.7):
        return restricted(rng, key_type.collation, _string_values(rng, key_type.is_utf8, count))
    return random_values(rng, key_type, count)


def _fitted(column_type, values):
    """As many values as a dictionary of the type can have."""
    return values[:50] if column_type.index in ("i8", "u8") else values[:5000] if column_type.index else values


# ---- keys ------------------------------------------------------------------------------------------------------------


def _key_type(rng):
    key_type = random_type(rng)
    changes = {"nullable": rng.random() < 0.45}
    if key_type.name in STRING_TYPES and rng.random() < 0.5:
        changes["collation"] = rng.choice(COLLATIONS)
    return dataclasses.replace(key_type, **changes)


def key_flags(rng, key_type):
    """(descending, nulls first, comes out, flags as text)."""
    descending, nulls_first, out = rng.random() < 0.4, rng.random() < (0.4 if key_type.nullable
                                                                       else 0.1), rng.random() < 0.4
    flags = ["nullable"] * key_type.nullable + ["out"] * out
    flags += ["desc"] if descending else ["asc"] * (rng.random() < 0.1)
    flags += ["nulls_first"] if nulls_first else ["nulls_last"] * (rng.random() < 0.1)
    rng.shuffle(flags)
    return descending, nulls_first, out, flags


def _random_key(rng, pool_size, pool_rows, few):
    """`few`: values, so that keys that follow decide."""
    key_type = _key_type(rng)
    values = _fitted(key_type, _key_values(rng, key_type, few or pool_size))
    in_order = rng.random() < 0.6
    of_pool_row = [row % len(values) if in_order else rng.randrange(len(values)) for row in range(pool_size)]
    changed = rng.choice((0, 0, 0, 0.02, 0.3))
    indices = [of_pool_row[row] if changed == 0 or rng.random() >= changed else rng.randrange(len(values))
               for row in pool_rows]
    indices = with_nulls(rng, indices, rng.choice((0, 0, 0.01, 0.1, 0.5, 1)) if key_type.nullable else 0)
    descending, nulls_first, out, flags = key_flags(rng, key_type)
    return Key(key_type, values, indices, descending, nulls_first, out, flags)


def _num_keys(rng, num_rows):
    if num_rows >= BIG_ROWS:
        return rng.choice((1, 1, 2, 3))
    return rng.choices((1, 2, 3, 4, rng.randint(5, MAX_KEYS), MAX_KEYS), (35, 25, 14, 10, 10, 2))[0]


def _disturbed(rng, rows):
    """Rows in order, a few of them elsewhere."""
    count = max(1, len(rows) // rng.choice((10_000, 1000, 100, 20)))
    style = rng.choice(("swapped", "moved", "at the end", "neighbours"))
    for _ in range(count if len(rows) > 1 else 0):
        one, other = rng.randrange(len(rows)), rng.randrange(len(rows))
        if style == "swapped":
            rows[one], rows[other] = rows[other], rows[one]
        elif style == "moved":
            rows.insert(other, rows.pop(one))
        elif style == "at the end":
            rows.append(rows.pop(one))
        else:
            one = max(one, 1)
            rows[one - 1], rows[one] = rows[one], rows[one - 1]
    return rows


def _in_order(rng, keys, num_rows, order):
    """The keys' rows arranged; the order is that of the keys' flags."""
    classes = row_classes(keys, num_rows)
    rows = list(range(num_rows))
    if order == "sorted runs":
        bounds = sorted(rng.randint(0, num_rows) for _ in range(rng.choice((1, 2, 5, 20))))
        rows = [row for begin, end in zip([0, *bounds], [*bounds, num_rows])
                for row in sorted(range(begin, end), key=classes.__getitem__)]
    else:
        rows.sort(key=classes.__getitem__, reverse=order == "reversed")
    if order == "nearly sorted":
        rows = _disturbed(rng, rows)
    for key in keys:
        key.indices = [key.indices[row] for row in rows]


def random_keys(rng, num_rows):
    """(keys, how their rows are ordered)."""
    pool_size = rng.choice((1, 2, 10, 100, num_rows, num_rows, num_rows, 2 * num_rows))
    if num_rows >= BIG_ROWS:
        pool_size = rng.choice((10, 1000, num_rows, num_rows))
    pool_size = max(pool_size, 1)
    distributions = (("uniform", "uniform", "zipf", "sequential", "equal")
                     if num_rows < BIG_ROWS else ("uniform", "uniform", "zipf"))
    pool_rows = random_indices(rng, num_rows, pool_size, rng.choice(distributions))
    num_keys = _num_keys(rng, num_rows)
    few = [rng.choice((1, 2, 3, 20)) if rng.random() < (0.5 if number + 1 < num_keys else 0.15) else 0
           for number in range(num_keys)]
    keys = [_random_key(rng, pool_size, pool_rows, values) for values in few]
    order = rng.choices(ORDERS, (50, 13, 10, 20, 7) if num_rows < MANY_ROWS else (30, 10, 25, 30, 5))[0]
    if order != "as they come":
        _in_order(rng, keys, num_rows, order)
    return keys, order


# ---- payload ---------------------------------------------------------------------------------------------------------


def random_payload(rng, keys, num_rows):
    payload = []
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3, 6)) if num_rows < BIG_ROWS else rng.choice((0, 1, 1, 2))):
        kind = rng.random()
        if kind < 0.25:
            payload.append(Payload(ColumnType("rowid"), None))
        elif kind < 0.4:
            key = rng.choice(keys)
            payload.append(Payload(dataclasses.replace(key.type, collation=""), key))
        else:
            payload.append(_own_payload(rng, num_rows))
    return payload


def _own_payload(rng, num_rows):
    column_type = dataclasses.replace(random_type(rng), nullable=rng.random() < 0.5)
    values = _fitted(column_type, _key_values(rng, column_type, rng.choice((1, 3, 50, min(num_rows, 1000)))))
    rows = random_indices(rng, num_rows, len(values), rng.choice(("uniform", "sequential", "zipf", "equal")))
    rows = with_nulls(rng, rows, rng.choice((0, 0.1, 0.5, 1)) if column_type.nullable else 0)
    return Payload(column_type, Column(column_type, values, rows))
