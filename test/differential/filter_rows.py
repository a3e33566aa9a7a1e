# SPDX-License-Identifier: Apache-2.0
"""Random conditions and the columns that they read: leaves of every kind and type, constants that equal, nearly equal
or respell values of rows, patterns cut out of such values, and trees of and, or, not.
"""
import dataclasses

from aggregate_rows import Column
from collated_strings import is_known, random_strings, restricted
from collation_oracle import BY_BYTES
from filter_conditions import SIGNS, Leaf, Node
from random_data import (COLLATIONS, SCALAR_TYPES, STRING_TYPES, float_bits, integer_bounds, random_indices,
                         random_type, random_values, with_nulls)

BIG_ROWS = 20_000
MAX_CONSTANT_BYTES = 40  # of every length up to here; a few are longer
_ESCAPES = ("!", "#", "|", "x", "%", "_", "a", "")


def random_size(rng):
    style = rng.random()
    if style < 0.04:
        return rng.choice((20_000, 33_000))
    if style < 0.4:
        return rng.choice((0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 511, 512, 513))
    return rng.choice((1023, 1024, 1025, 4095, 4096, 4097, 5000)) if style < 0.6 else rng.randint(2, 2000)


# ---- columns ---------------------------------------------------------------------------------------------------------


def _random_type(rng, names=None):
    names = names or (STRING_TYPES if rng.random() < 0.55 else SCALAR_TYPES)
    column_type = random_type(rng, names=names)
    changes = {"nullable": rng.random() < 0.5}
    if column_type.name in STRING_TYPES and rng.random() < 0.65:
        changes["collation"] = rng.choice(COLLATIONS)
    return dataclasses.replace(column_type, **changes)


def _values(rng, column_type, num_rows):
    values = random_values(rng, column_type, rng.choice((1, 2, 5, 30, 300, max(min(num_rows, 3000), 1))))
    return values[:50] if column_type.index in ("i8", "u8") else values[:5000] if column_type.index else values


def _indices(rng, column_type, num_values, num_rows):
    rows = random_indices(rng, num_rows, num_values, rng.choice(("uniform", "uniform", "sequential", "zipf", "equal")))
    return with_nulls(rng, rows, rng.choice((0, 0.02, 0.3, 0.9, 1)) if column_type.nullable else 0)


def _column(rng, column_type, num_rows, values=None):
    values = values or _values(rng, column_type, num_rows)
    return Column(column_type, values, _indices(rng, column_type, len(values), num_rows))


# ---- constants -------------------------------------------------------------------------------------------------------


def _cut(rng, column_type, value, first=None):
    """A prefix, by characters where the type is text."""
    if column_type.is_utf8:
        text = value.decode()
        return text[first or 0:rng.randint(first or 0, len(text))].encode()
    return value[first or 0:rng.randint(first or 0, len(value))]


def _near_string(rng, column_type, value):
    style = rng.choice(("same", "same", "cut", "longer", "case", "blanks", "other", "length"))
    if style == "cut":
        return _cut(rng, column_type, value)
    if style == "longer":
        return value + rng.choice((b"a", b"\0", b" ", b"\t", b"zz"))
    if style == "case":
        return rng.choice((bytes.upper, bytes.lower, bytes.swapcase))(value)
    if style == "blanks":
        return value.rstrip(b" ") + b" " * rng.choice((0, 1, 9))
    if style == "other":
        return rng.choice(random_strings(rng, column_type.collation, column_type.is_utf8, 3))
    if style == "length":
        return "".join(rng.choices("abAB", k=rng.randint(0, MAX_CONSTANT_BYTES))).encode()
    return value


def random_constant(rng, column):
    column_type, value = column.type, rng.choice(column.values)
    if column_type.name in STRING_TYPES:
        near = restricted(rng, column_type.collation, [_near_string(rng, column_type, value)])[0]
        return near if not column_type.is_utf8 or _is_text(near) else value
    if column_type.name == "fixed_binary":
        return value if rng.random() < 0.7 else rng.randbytes(column_type.width)
    if rng.random() < 0.6 or column_type.name == "bool":
        return value
    if column_type.is_float:
        return float_bits(column_type, rng.choice((0.0, -0.0, 1.0, -2.5, float("inf"), float("-inf"), float("nan"))))
    low, high = integer_bounds(column_type)
    if column_type.is_decimal:
        near = column_type.unscaled(value) // rng.choice((1, 2, -1)) + rng.choice((-1, 0, 1))
        return column_type.decimal_value(min(max(near, low), high))
    return min(max(value + rng.choice((-1, 1)), low), high)


def _is_text(value):
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---- patterns --------------------------------------------------------------------------------------------------------


def _escaped(text, escape):
    """So that nothing of it means more than itself."""
    return "".join(escape + character if character in ("%", "_", escape) and escape else character
                   for character in text)


def _pattern_text(rng, value, escape):
    style = rng.choice(("exact", "prefix", "suffix", "contains", "contains", "parts", "one", "all", "random", "other"))
    begin = rng.randint(0, len(value))
    end = rng.randint(begin, min(len(value), begin + rng.choice((1, 3, 8, 20, 40))))
    piece = lambda first=begin, last=end: _escaped(value[first:last], escape)
    if style == "exact":
        return _escaped(value, escape)
    if style == "prefix":
        return piece(0) + "%"
    if style == "suffix":
        return "%" + piece(begin, len(value))
    if style == "contains":
        return "%" + piece() + "%"
    if style == "parts":
        middle = rng.randint(begin, end)
        return (rng.choice(("%", "")) + piece(begin, middle) + rng.choice(("%", "%%", "_%")) + piece(middle, end)
                + rng.choice(("%", "")))
    if style == "one":
        return piece(0, begin) + "_" * rng.choice((1, 1, 2)) + piece(begin + 1, len(value))
    if style == "all":
        return rng.choice(("%", "", "_", "%%", "_%", "%_%", "__"))
    if style == "random":
        return "".join(rng.choices(("%", "_", "a", "A", escape or "b", value[begin:begin + 1], value[begin:end]),
                                   k=rng.randint(0, 8)))
    return rng.choice(("%zzzz", "pending%deposits", "%pending%deposits%", "a%b%a%b", "%" + "ab" * 40 + "%"))


def _random_pattern(rng, column, escape):
    value = rng.choice(column.values)
    if rng.random() < 0.2:
        value = value.swapcase()
    if column.type.collation in BY_BYTES and not column.type.is_utf8 and not _is_text(value):
        pattern = _pattern_text(rng, value.decode("latin-1"), escape if escape.isascii() else "").encode("latin-1")
    else:
        pattern = _pattern_text(rng, value.decode("utf-8", "ignore"), escape).encode()
    if not is_known(column.type.collation, pattern):
        return b"%" + rng.choice((b"a", b"", b"ab")) + b"%"
    return pattern


# ---- leaves and trees ------------------------------------------------------------------------------------------------


_KINDS = ("compare", "compare", "compare", "columns", "between", "in", "in", "like", "like", "null", "bool")
_NAMES_OF_KIND = {"like": STRING_TYPES, "bool": ("bool",)}  # others take columns of any type


class DrawnColumns:
    """Columns that are drawn where a leaf wants one, and now and then one that another leaf has."""

    def __init__(self, num_rows):
        self.num_rows, self._known = num_rows, []

    def kinds(self):
        """Of leaves for which there are columns."""
        return _KINDS

    def one(self, rng, names):
        """A column of one of the types; None: of any."""
        usable = [column for column in self._known if names is None or column.type.name in names]
        if usable and rng.random() < 0.25:
            return rng.choice(usable)
        return _column(rng, _random_type(rng, names), self.num_rows)

    def alike(self, rng, column):
        """A column of the same type, which may have nulls where the other has none."""
        other_type = dataclasses.replace(column.type, nullable=rng.random() < 0.5)
        return _column(rng, other_type, self.num_rows, column.values if rng.random() < 0.8 else None)

    def add(self, columns):
        """These may be taken again."""
        self._known += [column for column in columns if not any(column is other for other in self._known)]


class GivenColumns(DrawnColumns):
    """The columns of rows that there are. as_read(rng, column): the type as which a condition reads one."""

    def __init__(self, num_rows, columns, as_read):
        super().__init__(num_rows)
        self._columns, self._as_read = columns, as_read

    def _of(self, names):
        return [column for column in self._columns if names is None or column.type.name in names]

    def kinds(self):
        return [kind for kind in _KINDS if self._of(_NAMES_OF_KIND.get(kind))]

    def one(self, rng, names):
        column = rng.choice(self._of(names))
        return dataclasses.replace(column, type=self._as_read(rng, column))

    def alike(self, rng, column):
        plain = lambda column_type: dataclasses.replace(column_type, collation="", nullable=False)
        found = [other for other in self._columns if plain(other.type) == plain(column.type)
                 and is_known_by(column.type.collation, other)]
        other = rng.choice(found)
        collation = column.type.collation
        return dataclasses.replace(other, type=dataclasses.replace(other.type, collation=collation))


def is_known_by(collation, column):
    """Whether the collation's oracle knows all values of a column of strings."""
    return not collation or all(is_known(collation, value) for value in column.values)


def _random_leaf(rng, columns):
    kind, num_rows = rng.choice(columns.kinds()), columns.num_rows
    column = columns.one(rng, _NAMES_OF_KIND.get(kind))
    if kind == "columns":
        return Leaf(kind, column, columns.alike(rng, column), op=rng.choice(list(SIGNS)))
    if kind == "compare":
        return Leaf(kind, column, op=rng.choice(("=", "=", *SIGNS)), values=[random_constant(rng, column)])
    negated = rng.random() < 0.35
    if kind == "between":
        return Leaf(kind, column, negated=negated, values=[random_constant(rng, column) for _ in range(2)])
    if kind == "in":
        count = rng.choice((1, 2, 3, 5, 8, 9, 30, 200)) if num_rows < BIG_ROWS else rng.choice((1, 3, 9))
        return Leaf(kind, column, negated=negated, values=[random_constant(rng, column) for _ in range(count)])
    if kind == "like":
        escape = "\\" if rng.random() < 0.6 else rng.choice(_ESCAPES)
        return Leaf(kind, column, negated=negated, values=[_random_pattern(rng, column, escape)], escape=escape)
    return Leaf(kind, column, negated=kind == "null" and negated)


def _random_tree(rng, columns, num_leaves, parent=""):
    if num_leaves == 1:
        if parent != "not" and rng.random() < 0.1:
            return Node("not", [_random_tree(rng, columns, 1, "not")])
        leaf = _random_leaf(rng, columns)
        columns.add(leaf.columns())
        return leaf
    if parent != "not" and rng.random() < 0.2:
        return Node("not", [_random_tree(rng, columns, num_leaves, "not")])
    kind = {"and": "or", "or": "and"}.get(parent) or rng.choice(("and", "or"))
    num_children = rng.randint(2, min(num_leaves, 4))
    bounds = sorted(rng.sample(range(1, num_leaves), num_children - 1))
    shares = [end - begin for begin, end in zip([0, *bounds], [*bounds, num_leaves])]
    return Node(kind, [_random_tree(rng, columns, share, kind) for share in shares])


def random_condition(rng, num_rows, columns=None):
    """`columns`: GivenColumns; without them the condition's columns are drawn, too."""
    most = rng.choices((1, 2, 3, 5, 9, 24), (40, 22, 14, 14, 8, 2))[0] if num_rows < BIG_ROWS else rng.choice((1, 1, 2))
    return _random_tree(rng, columns or DrawnColumns(num_rows), most)
