# SPDX-License-Identifier: Apache-2.0
"""Conditions of filters (runtime/spec/condition.h): their text in a spec, their truth for a row, and the same in SQL.

    leaf = Leaf("like", Column(utf8, [b"abc"], [0, None]), values=[b"a%"], negated=True)
    And([leaf, ..]).text()               "utf8:nullable not like 'a%' and .."
    leaf.truths(2)                       [False, None]: True, False or None (unknown) for each row

Constants are physical values (random_data.py).
"""
import dataclasses
import operator
import re

import collation_oracle
from aggregate_answers import real_of
from oracle import is_trimmed_text, ordered_value
from random_data import STRING_TYPES

SIGNS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_WRITTEN = {"=": ("=", "=="), "<>": ("<>", "!=")}


# ---- constants -------------------------------------------------------------------------------------------------------


def _is_printable(value):
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return not any(character < " " or "\x7f" <= character < "\xa0" for character in text)


def string_text(value, rng=None):
    """As the library prints it; with `rng` in hex at random."""
    if not _is_printable(value) or rng and rng.random() < 0.3:
        return f"x'{value.hex()}'"
    return "'" + value.decode().replace("'", "''") + "'"


def literal_text(column_type, value, rng=None):
    if column_type.name == "bool":
        return "true" if value else "false"
    if column_type.is_float:
        real = real_of(column_type.name, value)
        return repr(real).replace("+", "") if real == real else "nan"
    if column_type.is_decimal:
        return str(column_type.unscaled(value))
    return string_text(value, rng) if isinstance(value, bytes) else str(value)


def sql_literal(column_type, value):
    """For oracle.duckdb_numbers' column of that type."""
    if column_type.name == "bool":
        return "true" if value else "false"
    if column_type.is_float:
        real = real_of(column_type.name, value)
        return f"'{real!r}'::{'FLOAT' if column_type.name == 'f32' else 'DOUBLE'}"
    if column_type.is_decimal:
        return f"{column_type.unscaled(value)}::DECIMAL(38, 0)"
    if column_type.name in STRING_TYPES and column_type.is_utf8:
        return "concat(" + ", ".join(f"chr({code})" for code in map(ord, value.decode())) + ")" if value else "''"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    return str(value)


# ---- leaves ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Leaf:
    """kind: compare, columns, between, in, like, null, or bool, which is true where its column is."""
    kind: str
    column: object
    other: object = None   # columns
    op: str = "="          # compare, columns
    negated: bool = False  # between, in, like, null
    values: list = dataclasses.field(default_factory=list)
    escape: str = "\\"     # like; "": none

    def leaves(self):
        return [self]

    def columns(self):
        return [self.column, self.other] if self.kind == "columns" else [self.column]

    def text(self, rng=None):
        column_type, negation = self.column.type, " not" if self.negated else ""
        literals = [literal_text(column_type, value, rng) for value in self.values]
        op = rng.choice(_WRITTEN.get(self.op, (self.op,))) if rng else self.op
        if (self.kind == "bool" or rng is None
                and (column_type.name, self.kind, op, literals) == ("bool", "compare", "=", ["true"])):
            return column_type.text()
        if self.kind == "null":
            return f"{column_type.text()} is{negation} null"
        if self.kind == "columns":
            return f"{column_type.text()} {op} {self.other.type.text()}"
        if self.kind == "compare":
            return f"{column_type.text()} {op} {literals[0]}"
        if self.kind == "between":
            return f"{column_type.text()}{negation} between {literals[0]} and {literals[1]}"
        if self.kind == "in":
            return f"{column_type.text()}{negation} in ({', '.join(literals)})"
        escape = "" if self.escape == "\\" else f" escape {string_text(self.escape.encode())}"
        return f"{column_type.text()}{negation} like {literals[0]}{escape}"

    def truths(self, num_rows):
        if self.kind == "columns":
            ordered = [[ordered_value(column.type, value) for value in column.values] for column in self.columns()]
            return [None if one is None or other is None else SIGNS[self.op](ordered[0][one], ordered[1][other])
                    for one, other in zip(self.column.indices, self.other.indices)]
        if self.kind == "null":
            return [(index is None) != self.negated for index in self.column.indices]
        used = {index for index in self.column.indices if index is not None}
        truth = {index: self.holds(self.column.values[index]) != self.negated for index in used}
        return [None if index is None else truth[index] for index in self.column.indices]

    def holds(self, value):
        column_type = self.column.type
        if self.kind == "bool":
            return bool(value)
        if self.kind == "like":
            is_text = column_type.is_utf8 and column_type.collation in collation_oracle.BY_BYTES
            collation = "utf8mb4_0900_bin" if is_text else column_type.collation  # in text `_` is a character
            return collation_oracle.like(collation, self.values[0], value, self.escape)
        ordered = ordered_value(column_type, value)
        constants = self._constants()
        if self.kind == "compare":
            return SIGNS[self.op](ordered, constants[0])
        return constants[0] <= ordered <= constants[1] if self.kind == "between" else ordered in constants

    def _constants(self):
        constants = getattr(self, "_ordered", None)
        if constants is None:
            constants = self._ordered = [ordered_value(self.column.type, value) for value in self.values]
        return constants

    def sql(self, number):
        """SQL over columns c{number}, c{number + 1}; None where DuckDB has no equivalent."""
        if any(not _is_sql(column.type) and self.kind != "null" for column in self.columns()):
            return None
        compared = lambda text: (f"rtrim({text}, ' ')"
                                 if self.column.type.is_collated and is_trimmed_text(self.column.type) else text)
        column, negation = compared(f"c{number}"), "NOT " if self.negated else ""
        literals = [compared(sql_literal(self.column.type, value)) for value in self.values]
        if self.kind == "bool":
            return f"c{number}"
        if self.kind == "null":
            return f"c{number} IS {negation}NULL"
        if self.kind == "columns":
            return f"{column} {self.op} {compared(f'c{number + 1}')}"
        if self.kind == "compare":
            return f"{column} {self.op} {literals[0]}"
        if self.kind == "between":
            return f"{column} {negation}BETWEEN {literals[0]} AND {literals[1]}"
        if self.kind == "in":
            return f"{column} {negation}IN ({', '.join(literals)})"
        return self._sql_like(number, negation)

    def _sql_like(self, number, negation):
        """As a regular expression, whose '.' is a character; of text that is compared by its bytes."""
        if self.column.type.is_collated or not self.column.type.is_utf8:
            return None
        pieces, pattern, escaped = [], self.values[0].decode(), False
        for place, character in enumerate(pattern):
            if character == self.escape and not escaped and place + 1 < len(pattern):
                escaped = True
                continue
            if character in "%_" and character != self.escape and not escaped:
                pieces.append(".*" if character == "%" else ".")
            else:
                pieces.append(character if character.isalnum()
                              and character.isascii() else f"\\x{{{ord(character):x}}}")
            escaped = False
        regex = "".join(pieces)
        return f"{negation}regexp_full_match(c{number}, '(?s){regex}')"


def _is_sql(column_type):
    """Whether DuckDB compares it with constants as we do."""
    return not column_type.is_collated or is_trimmed_text(column_type)


# ---- and, or, not ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Node:
    """kind: and, or, of two or more; not, of one."""
    kind: str
    children: list

    def leaves(self):
        return [leaf for child in self.children for leaf in child.leaves()]

    def columns(self):
        return [column for leaf in self.leaves() for column in leaf.columns()]

    def text(self, rng=None):
        """With `rng` with parentheses that need not be, and keywords in any case."""
        parts = []
        for child in self.children:
            needed = isinstance(child, Node) and _BINDS[child.kind] < _BINDS[self.kind]
            extra = rng is not None and rng.random() < 0.15
            parts.append(f"({child.text(rng)})" if needed or extra else child.text(rng))
        word = self.kind if rng is None else rng.choice((self.kind, self.kind, self.kind.upper()))
        return f"{word} {parts[0]}" if self.kind == "not" else f" {word} ".join(parts)

    def truths(self, num_rows):
        parts = [child.truths(num_rows) for child in self.children]
        if self.kind == "not":
            return [None if truth is None else not truth for truth in parts[0]]
        decides = self.kind == "or"
        return [decides if decides in row else None if None in row else not decides for row in zip(*parts)]

    def sql(self, number):
        parts = []
        for child in self.children:
            parts.append(child.sql(number))
            number += len(child.columns())
        if None in parts:
            return None
        return f"(NOT ({parts[0]}))" if self.kind == "not" else "(" + f") {self.kind} (".join(parts) + ")"


_BINDS = {"or": 0, "and": 1, "not": 2}


def negations_at_leaves(condition):
    """How many leaves stand below an odd number of nots."""
    def count(node, odd):
        if isinstance(node, Leaf):
            return int(odd)
        return sum(count(child, odd != (node.kind == "not")) for child in node.children)
    return count(condition, False)


def depth(condition):
    return 1 if isinstance(condition, Leaf) else 1 + max(map(depth, condition.children))


def like_shape(pattern):
    """The kind of a pattern without escapes: all, exact, prefix, suffix, contains, general."""
    text = re.sub(rb"%+", b"%", pattern)
    if text == b"%":
        return "all"
    if b"_" in text:
        return "general"
    inner = text.strip(b"%")
    if b"%" in inner:
        return "parts"
    return {(False, False): "exact", (False, True): "prefix", (True, False): "suffix", (True, True): "contains"}[
        text.startswith(b"%"), text.endswith(b"%")]
