# SPDX-License-Identifier: Apache-2.0
"""The filters that are compared: names, conditions, and the target: how much faster Quern should be than the best other
engine.

    filter/shipmode        6 M line items of TPC-H: l_shipmode = 'zzzz', which none of them has. It is greater than
                           every value: DuckDB, which keeps the least and the greatest value of a column, reads no row
    filter/shipmode/inside the same with 'RAIM', which none of them has either, and which is not beyond them
    filter/orders_like     1.5 M orders of TPC-H: o_comment like '%pending%deposits%'
    filter/i64range        10 M rows of which a tenth is in a range

The rows that pass are counted. A condition is a conjunction of leaves; each engine gets it in its own language: SQL,
Polars' expressions, Quern's spec. filter_arrays.py says what the columns look like.
"""
import dataclasses
import re

ROWS = 10_000_000
LINE_ITEMS = 6_001_215  # at scale factor 1
ORDERS = 1_500_000
MIN_SCALED_ROWS = 16

_SPEC_TYPES = {"i": "i64", "s": "utf8", "c": "utf8"}  # by a column's first letter
_CI = "utf8(utf8mb4_general_ci)"  # of ASCII texts, what ILIKE and lower() are to the other engines


@dataclasses.dataclass(frozen=True)
class Leaf:
    """column OP values: "=", "<", "in", "between", "like"; "ilike" and "=ci" are blind to case; "= column" has another
    column's name."""
    column: str
    op: str
    values: tuple

    def sql(self, dialect):
        first = _sql_of(self.values[0])
        if self.op in ("=", "<", "like"):
            return f"{self.column} {self.op.upper()} {first}"
        if self.op == "in":
            return f"{self.column} IN ({', '.join(map(_sql_of, self.values))})"
        if self.op == "between":
            return f"{self.column} BETWEEN {first} AND {_sql_of(self.values[1])}"
        if self.op == "= column":
            return f"{self.column} = {self.values[0]}"
        if self.op == "ilike":
            return f"{self.column} ILIKE {first}"
        if dialect == "duckdb":
            return f"{self.column} = {first} COLLATE NOCASE"
        return f"lower({self.column}) = {first.lower()}"

    def spec(self):
        kind = _CI if self.op in ("ilike", "=ci") else _SPEC_TYPES[self.column[0]]
        first = _sql_of(self.values[0])
        if self.op == "in":
            return f"{kind} in ({', '.join(map(_sql_of, self.values))})"
        if self.op == "between":
            return f"{kind} between {first} and {_sql_of(self.values[1])}"
        if self.op == "= column":
            return f"{kind} = {kind}"
        return f"{kind} {self.op.replace('ilike', 'like').replace('=ci', '=')} {first}"

    def columns(self):
        """In the order in which the spec mentions them."""
        return (self.column, self.values[0]) if self.op == "= column" else (self.column,)

    def expression(self, polars):
        column, first = polars.col(self.column), self.values[0]
        if self.op == "=":
            return column == first
        if self.op == "<":
            return column < first
        if self.op == "in":
            return column.is_in(list(self.values))
        if self.op == "between":
            return column.is_between(*self.values)
        if self.op == "= column":
            return column == polars.col(first)
        if self.op == "=ci":
            return column.str.to_lowercase() == first.lower()
        return _pattern(column, first, self.op == "ilike")


def _sql_of(value):
    return f"'{value}'" if isinstance(value, str) else str(value)


def _pattern(column, pattern, ignores_case):
    """LIKE with % alone, in the cheapest way that Polars has for it: a literal's search or end, or else a regular
    expression."""
    prefix, *middle, suffix = pattern.split("%")
    if not ignores_case and not prefix and not suffix and len(middle) == 1:
        return column.str.contains(middle[0], literal=True)
    if not ignores_case and prefix and not middle and not suffix:
        return column.str.starts_with(prefix)
    expression = "(?s)" + ".*".join(map(re.escape, pattern.split("%")))
    expression = expression.replace("(?s).*", "(?s)", 1) if not prefix else expression.replace("(?s)", "(?s)^", 1)
    expression = expression.removesuffix(".*") if not suffix else expression + "$"
    return column.str.contains(("(?i)" if ignores_case else "") + expression)


@dataclasses.dataclass(frozen=True)
class FilterCase:
    name: str
    data: str  # a kind of filter_arrays.KINDS
    leaves: tuple[Leaf, ...]
    rows: int = ROWS
    target: float | None = None

    operator = "filter"
    ignores_case = False  # of keys, which a filter has none of

    @property
    def sizes(self):
        return {"rows": self.rows}

    @property
    def has_texts(self):
        return any(name[0] != "i" for name in self.columns)

    @property
    def columns(self):
        """As the spec mentions them; one that is mentioned twice stands twice."""
        return [name for leaf in self.leaves for name in leaf.columns()]

    def scaled(self, factor):
        return dataclasses.replace(self, rows=max(MIN_SCALED_ROWS, round(self.rows * factor)))

    def sql(self, dialect=None):
        return "SELECT count(*) AS a0 FROM facts WHERE " + " AND ".join(leaf.sql(dialect) for leaf in self.leaves)

    def spec(self):
        return "filter " + " and ".join(leaf.spec() for leaf in self.leaves)


def _tpch(name, column, op, value, rows=LINE_ITEMS):
    return FilterCase(f"filter/{name}", f"tpch {column}", (Leaf("c0", op, (value,)),), rows, 2.0)


def _words(name, *leaves):
    return FilterCase(f"filter/{name}", "words", leaves)


CASES = (
    _tpch("shipmode", "l_shipmode", "=", "zzzz"),
    _tpch("shipmode/inside", "l_shipmode", "=", "RAIM"),
    _tpch("returnflag", "l_returnflag", "=", "R"),
    _tpch("comment", "l_comment", "=", "egular courts above the"),
    _tpch("orders_like", "o_comment", "like", "%pending%deposits%", ORDERS),
    _words("i64range", Leaf("i0", "between", (-50, 49))),
    _words("i64in", Leaf("i0", "in", (-400, -321, -7, 0, 1, 77, 250, 499))),
    _words("str", Leaf("s0", "=", ("marketplace",))),
    _words("str_less", Leaf("s0", "<", ("marketplace",))),
    _words("str_in", Leaf("s0", "in", ("marketplace", "apple", "zebra", "warehouse"))),
    _words("str_prefix", Leaf("s0", "like", ("ma%",))),
    _words("str_contains", Leaf("s0", "like", ("%et%",))),
    _words("str_columns", Leaf("s0", "= column", ("s1",))),
    _words("i64,str", Leaf("i0", "between", (-250, 249)), Leaf("s0", "like", ("%et%",))),
    _words("str_ci", Leaf("c0", "=ci", ("MarketPlace",))),
    _words("str_ilike", Leaf("c0", "ilike", ("%ET%",))),
)
