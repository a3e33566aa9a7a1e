# SPDX-License-Identifier: Apache-2.0
"""The set operations that are compared: names, keys, sizes. No targets.

    set/intersect/i64/1000000     10 M rows on either side, each of one of 1 M numbers; half of a side's numbers are
                                  also on the other side
    set/except/str/20000          the same with words

SQL's meaning: a row comes out once, however often a side has it. set_arrays.py says what keys look like.
"""
import dataclasses

ROWS = 10_000_000
MIN_SCALED_ROWS = 16


@dataclasses.dataclass(frozen=True)
class SetCase:
    name: str
    kind: str  # "intersect" or "except"
    keys: tuple[str, ...]  # types as Quern's specs name them
    rows: int  # of either side
    key_values: int  # of either side

    operator = "set"
    target = None
    ignores_case = False
    aggregates = ()

    @property
    def sizes(self):
        return {"rows a side": self.rows, "key values": self.key_values}

    @property
    def num_keys(self):
        return len(self.keys)

    @property
    def has_texts(self):
        return "utf8" in self.keys

    def scaled(self, factor):
        """Rows per key value stay, down to two values."""
        return dataclasses.replace(self, rows=max(MIN_SCALED_ROWS, round(self.rows * factor)),
                                   key_values=max(2, round(self.key_values * factor)))

    def sql(self, dialect=None):
        keys = ", ".join(f"k{i}" for i in range(self.num_keys))
        distinct = " DISTINCT" if dialect == "clickhouse" else ""  # where the default is a setting
        return f"SELECT {keys} FROM lhs {self.kind.upper()}{distinct} SELECT {keys} FROM rhs"

    def spec(self):
        return f"set.{self.kind} keys={','.join(self.keys)}"


CASES = tuple(
    SetCase(f"set/{kind}/{name}/{key_values}", kind, keys, ROWS, key_values)
    for name, keys, key_values in (("i64", ("i64",), 1_000_000), ("i64", ("i64",), 10_000_000),
                                   ("str", ("utf8",), 20_000)) for kind in ("intersect", "except"))
