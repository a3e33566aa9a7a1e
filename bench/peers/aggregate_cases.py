# SPDX-License-Identifier: Apache-2.0
"""The aggregations that are compared: names, keys, sizes, and the target: how much faster Quern should be than the best
other engine.

    agg/i64/10000          20 M rows in 10,000 groups of one sparse int64 key; counted, a sum and a maximum
    agg/str,i32,str        three keys, which together are almost unique: 10 M rows in some 8.5 M groups
    agg/q1                 TPC-H's first query; its products of columns are computed beforehand
    collated/agg/str       words that are compared without regard to case: other engines aggregate lower(k0)

Aggregates have the names that SQL and Quern's specs share. Columns are named by type and number: i0 is int64; f0, f1,
.. are float64; d0 is a date. aggregate_arrays.py says what keys and columns look like.
"""
import dataclasses

ROWS = 20_000_000
TEXT_ROWS = 10_000_000
MIN_SCALED_ROWS = 16
MIN_SCALED_KEY_VALUES = 10
PAIRS = 30_000_000  # of which 10 M draws meet 30 M * (1 - e^(-1/3)) = 8.5 M
Q1_ROWS = 6_001_215  # line items at scale factor 1


@dataclasses.dataclass(frozen=True)
class AggregateCase:
    name: str
    keys: tuple[str, ...]  # types as Quern's specs name them
    data: str  # a kind of aggregate_arrays.KINDS
    rows: int
    key_values: int  # that keys are drawn from: the number of groups where it is far below that of rows, and an upper
                     # bound otherwise
    aggregates: tuple[str, ...]
    target: float | None = None
    last_day: str | None = None  # only rows whose d0 is not after it take part
    ignores_case: bool = False  # of keys that are texts

    operator = "aggregate"

    @property
    def sizes(self):
        return {"rows": self.rows, "key values": self.key_values}

    @property
    def num_keys(self):
        return len(self.keys)

    @property
    def has_texts(self):
        return "utf8" in self.keys

    @property
    def arguments(self):
        """The column of each aggregate, None for count_star: ("i0", None, "f0", "f0")."""
        return tuple(_argument(aggregate) for aggregate in self.aggregates)

    @property
    def columns(self):
        """What the aggregates and the filter read, each once."""
        return sorted({name for name in self.arguments if name} | ({"d0"} if self.last_day else set()))

    def scaled(self, factor):
        """Rows per key value stay, down to a handful of values."""
        rows = max(MIN_SCALED_ROWS, round(self.rows * factor))
        key_values = max(min(self.key_values, MIN_SCALED_KEY_VALUES), round(self.key_values * factor))
        return dataclasses.replace(self, rows=rows, key_values=key_values)

    def sql(self, _dialect=None):
        keys = ", ".join(f"k{i}" for i in range(self.num_keys))
        results = keys
        if self.ignores_case:
            keys = ", ".join(f"lower(facts.k{i})" if key == "utf8" else f"facts.k{i}"
                             for i, key in enumerate(self.keys))
            results = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys.split(", ")))
        aggregates = ", ".join(f"{_sql_of(aggregate)} AS a{i}" for i, aggregate in enumerate(self.aggregates))
        where = f" WHERE d0 <= DATE '{self.last_day}'" if self.last_day else ""
        return f"SELECT {results}, {aggregates} FROM facts{where} GROUP BY {keys}"

    def spec(self):
        """Quern's; rows are selected by another kernel."""
        aggregates = (_spec_of(aggregate) for aggregate in self.aggregates)
        keys = ("utf8(utf8mb4_general_ci)" if key == "utf8" and self.ignores_case else key for key in self.keys)
        return f"aggregate keys={','.join(keys)} aggs={','.join(aggregates)}"


def _argument(aggregate):
    return aggregate[aggregate.index("(") + 1:-1] if "(" in aggregate else None


def _sql_of(aggregate):
    return "count(*)" if aggregate == "count_star" else aggregate


def _spec_of(aggregate):
    column = _argument(aggregate)
    return aggregate if column is None else aggregate.replace(column, {"i": "i64", "f": "f64"}[column[0]])


_PLAIN = ("count_star", "sum(i0)", "max(f0)")
_EIGHT = ("count_star", "sum(i0)", "sum(f0)", "min(i0)", "max(i0)", "min(f0)", "max(f0)", "avg(f0)")
# f0 to f4: quantity, extendedprice, disc_price, charge, discount.
_Q1 = ("sum(f0)", "sum(f1)", "sum(f2)", "sum(f3)", "avg(f0)", "avg(f1)", "avg(f4)", "count_star")


def _integers(name, data, targets):
    for key_values, target in targets.items():
        yield AggregateCase(f"agg/{name}/{key_values}", ("i64",), data, ROWS, key_values, _PLAIN, target)


def _clickbench(name, *keys, data="users"):
    return AggregateCase(f"agg/clickbench/{name}", keys, data, TEXT_ROWS, TEXT_ROWS, ("count_star", "sum(i0)"))


def _texts(name, keys, key_values, target, data="pairs"):
    return AggregateCase(f"agg/{name}", keys, data, TEXT_ROWS, key_values, ("sum(i0)",), target)


CASES = (
    *_integers("i64", "sparse", {10: 2.0, 10_000: 2.0, 1_000_000: 5.0, 10_000_000: 5.0}),
    *_integers("i64dense", "dense", {10: 2.0, 10_000: 2.0, 1_000_000: 5.0}),
    _texts("str", ("utf8",), 20_000, 2.0, data="words"),
    _texts("i64,str", ("i64", "utf8"), PAIRS, 3.0),
    _texts("i64,str,i32", ("i64", "utf8", "i32"), PAIRS, 3.0),
    _texts("str,i32,str", ("utf8", "i32", "utf8"), PAIRS, 3.0),
    _texts("i32,str/1000", ("i32", "utf8"), 1_000, 2.0),
    AggregateCase("agg/eight", ("i64",), "sparse", TEXT_ROWS, 10_000, _EIGHT),
    AggregateCase("agg/q1", ("utf8", "utf8"), "tpch", Q1_ROWS, 4, _Q1, 2.0, last_day="1998-09-02"),
    _clickbench("int", "i64"),
    _clickbench("text", "utf8"),
    _clickbench("int,text", "i64", "utf8"),
    _clickbench("int,int,text", "i64", "i32", "utf8"),
    _clickbench("five", "i64", "i32", "utf8", "i16", "date32", data="counters"),
    AggregateCase("collated/agg/str", ("utf8",), "cased", TEXT_ROWS, 20_000, ("sum(i0)",), ignores_case=True),
)
