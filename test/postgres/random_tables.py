# SPDX-License-Identifier: Apache-2.0
"""Tables of random rows for random queries, as the SQL that makes them.

All tables of a data set draw from the same pools, one for each family of types, so that joins find partners: an int4
column draws the values of the family `int` that fit it. A column draws from 3, 30, 400 or all values of its pool.

Tables have dead rows, updated rows, columns that were dropped, and columns that were added later with a default, which
older rows do not store."""

import dataclasses
import random
import uuid


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of columns. `loose`: values that are equal may print differently, as -0 and 0. `sums`: sum and avg accept
    it. `minmax`: min and max do. `inexact_sum`: its sum depends on the order of the rows."""
    name: str
    sql: str
    family: str
    weight: int = 2
    loose: bool = False
    sums: bool = False
    minmax: bool = True
    inexact_sum: bool = False

    @property
    def cast(self):
        return self.sql.split(" collate ")[0]


KINDS = {kind.name: kind for kind in [
    Kind("i2", "int2", "int", sums=True),
    Kind("i4", "int4", "int", 4, sums=True),
    Kind("i8", "int8", "int", 4, sums=True),
    Kind("f4", "float4", "float", sums=True, inexact_sum=True),
    Kind("f8", "float8", "float", 3, sums=True),
    Kind("fw", "float8", "wild", loose=True, sums=True, inexact_sum=True),
    Kind("n9", "numeric(9,2)", "numeric", 3, sums=True),
    Kind("n30", "numeric(30,6)", "numeric", 2, sums=True),
    Kind("nu", "numeric", "any_numeric", 2, loose=True, sums=True),
    Kind("t", "text", "text", 4),
    Kind("tc", 'text collate "C"', "text", 2),
    Kind("ti", 'text collate "und-x-icu"', "text", 2),
    Kind("tn", "text collate case_blind", "text", 1, loose=True),
    Kind("v", "varchar(20)", "text", 3),
    Kind("c", "char(8)", "text", 2),
    Kind("tl", "text", "long", 1),
    Kind("d", "date", "date", 3),
    Kind("ts", "timestamp", "timestamp", 2),
    Kind("tz", "timestamptz", "timestamp", 2),
    Kind("tm", "time", "time", 1),
    Kind("u", "uuid", "uuid", 2, minmax=False),
    Kind("b", "bool", "bool", 2, minmax=False),
    Kind("by", "bytea", "bytea", 2, minmax=False),
    Kind("e", "mood", "enum", 2),
    Kind("iv", "interval", "interval", 1, loose=True, sums=True),
    Kind("ar", "int[]", "array", 1),
    Kind("js", "jsonb", "json", 1, minmax=False),
    Kind("dm", "posint", "int", 1, sums=True),
    Kind("o", "oid", "oid", 1),
    Kind("nm", "name", "name", 1, minmax=False),
    Kind("ip", "inet", "inet", 1),
    Kind("tt", "timetz", "timetz", 1),
    Kind("vb", "varbit", "varbit", 1, minmax=False),
    # Not of columns: where a row lies, and the whole of it.
    Kind("tid", "tid", "tid", 0, minmax=False),
    Kind("row", "record", "row", 0, loose=True, minmax=False),
]}

PREPARATIONS = [
    "create type mood as enum ('sad', 'ok', 'happy', 'with ''quote', 'Ä')",
    "alter type mood add value 'late' before 'ok'",  # so that its number is not in the order of the labels
    "create domain posint as int4 check (value <> 123456789)",
    "create collation case_blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
]

ICU = ["und-x-icu"]  # a collation of ICU


def without_icu():
    """For servers that have no ICU."""
    for name in ("ti", "tn"):
        KINDS[name] = dataclasses.replace(KINDS[name], weight=0)
    ICU[:] = ["C"]
    PREPARATIONS[:] = [text for text in PREPARATIONS if "icu" not in text]


INT_LIMITS = {"i2": 1 << 15, "i4": 1 << 31, "i8": 1 << 63, "dm": 1 << 31}
WORDS = ["", " ", "a", "A", "a ", "ä", "Ä", "é", "e\u0301", "z", "Z", "zz", "Straße", "STRASSE", "日本", "日本語", "😀",
         "\\", "%", "_", "a\tb", "two\nlines", "0", "NULL", "apple", "Apple", "banana",
         "ﬁ", "co-op", "coop", "résumé", "resume"]
HEX = "0123456789abcdef"


def _hex(rng, length):
    return "".join(rng.choices(HEX, k=length))


def _text(rng, _):
    pick = rng.random()
    if pick < 0.25:
        return rng.choice(WORDS)
    if pick < 0.5:
        return "prefix_prefix_" + _hex(rng, rng.randrange(1, 5))
    return _hex(rng, rng.choice((1, 2, 3, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 40)))


def _time(rng):
    if rng.random() < 0.02:
        return "24:00:00"
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}" + rng.choice(
        ("", f".{rng.randrange(1000000):06}"))


def _date(rng):
    pick = rng.random()
    if pick < 0.03:
        return rng.choice(("infinity", "-infinity", "4713-01-01 BC", "0001-12-31 BC", "5874897-12-31", "2000-02-29"))
    return f"{rng.randrange(1950, 2040) if pick < 0.2 else 1995}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"


def _timestamp(rng):
    day = _date(rng)
    if day == "5874897-12-31":
        return "294276-12-31 23:59:59.999999"
    return day if day.endswith(("BC", "infinity")) else f"{day} {_time(rng)}"


def _numeric(rng):
    pick = rng.random()
    if pick < 0.002:
        return "NaN"  # which no decimal of a kernel has
    if pick < 0.6:
        return f"{rng.randrange(-200, 2000)}.{rng.randrange(100):02}"
    return rng.choice(("0", "0.00", "1", "1.0", "-1.50", "9999999.99", "-9999999.99", "0.01")) if pick < 0.7 else \
        f"{rng.randrange(-10**6, 10**7)}"


def _any_numeric(rng):
    pick = rng.random()
    if pick < 0.05:
        return rng.choice(("NaN", "Infinity", "-Infinity", "1e40", "-1e-30", f"{'1234567890' * 3}.123456789"))
    if pick >= 0.8:
        return f"{rng.random() * 1e6:.9f}"
    number = _numeric(rng)
    return number + rng.choice(("", "", "0", "000")) if number != "NaN" else number


def _wild(rng):
    pick = rng.random()
    if pick < 0.3:
        return rng.choice(("NaN", "Infinity", "-Infinity", "-0", "0", "4.9406564584124654e-324", "1e-300", "-1"))
    return repr(rng.uniform(-1000, 1000))


def _int(rng, column):
    pick = rng.random()
    if column.get("edges") and pick < 0.1:
        limit = rng.choice([1 << 15, 1 << 31, 1 << 63])
        return str(rng.choice((-limit, limit - 1, -limit + 1)))
    if pick < 0.3:
        return str(rng.randrange(-10, 100))
    return str(rng.randrange(10000) if pick < 0.9 else rng.randrange(-2**31, 2**31))


MAKERS = {
    "int": _int,
    "float": lambda rng, _: str(rng.randrange(-4000, 40000) / 4),
    "wild": lambda rng, _: _wild(rng),
    "numeric": lambda rng, _: _numeric(rng),
    "any_numeric": lambda rng, _: _any_numeric(rng),
    "text": _text,
    "long": lambda rng, _: rng.choice((_hex(rng, rng.randrange(2000, 9000)), _hex(rng, 3) * 2000, _hex(rng, 5))),
    "date": lambda rng, _: _date(rng),
    "timestamp": lambda rng, _: _timestamp(rng),
    "time": lambda rng, _: _time(rng),
    "uuid": lambda rng, _: str(uuid.UUID(int=rng.getrandbits(128))),
    "bool": lambda rng, _: rng.choice("tf"),
    "bytea": lambda rng, _: "\\x" + _hex(rng, 2 * rng.choice((0, 1, 2, 3, 7, 8, 12, 16, 20, 100))),
    "enum": lambda rng, _: rng.choice(("sad", "ok", "happy", "with 'quote", "Ä", "late")),
    "interval": lambda rng, _: rng.choice(("1 month", "30 days", "720 hours", "1 day", "24 hours", "-1 day",
                                           "00:00:01.5", f"{rng.randrange(100)} hours")),
    "array": lambda rng, _: "{" + ",".join(str(rng.randrange(3)) for _ in range(rng.randrange(4))) + "}",
    "oid": lambda rng, _: str(rng.choice((rng.randrange(300), rng.randrange(1 << 32)))),
    "name": lambda rng, _: rng.choice(WORDS[:8]) + _hex(rng, rng.choice((1, 2, 7, 50))),
    "inet": lambda rng, _: f"10.{rng.randrange(3)}.0.{rng.randrange(256)}" + rng.choice(("", "/8", "/24")),
    "timetz": lambda rng, _: _time(rng) + rng.choice(("+00", "+01", "-07:30")),
    "varbit": lambda rng, _: "".join(rng.choices("01", k=rng.randrange(12))),
    "json": lambda rng, _: rng.choice(('{"a": 1}', "[]", "null", f"[{rng.randrange(20)}]", '"x"')),
}
POOL_SIZES = {"long": 12, "bool": 2, "enum": 6, "array": 40, "json": 20, "interval": 30}


class Pools:
    """The values that the tables of a data set draw from."""

    def __init__(self, rng):
        self._seed = rng.random()
        self._pools = {}

    def of(self, kind, edges=False):
        """Values of a kind, as text."""
        key = (kind.name, edges)
        if key not in self._pools:
            size = POOL_SIZES.get(kind.family, 6000)
            rng = random.Random(f"{self._seed} {kind.family}")  # the same for all kinds of a family
            values = list(dict.fromkeys(MAKERS[kind.family](rng, {"edges": edges}) for _ in range(size)))
            if kind.name in INT_LIMITS:
                limit = INT_LIMITS[kind.name]
                values = [value for value in values if -limit <= int(value) < limit]
            if kind.name in ("v", "c"):
                values = list(dict.fromkeys(value[:20 if kind.name == "v" else 8] for value in values))
            self._pools[key] = values
        return self._pools[key]


@dataclasses.dataclass
class TableColumn:
    name: str
    kind: Kind
    num_values: int  # about as many distinct ones
    values: list
    may_overflow: bool = False


class Table:
    """A table, and the SQL that makes it."""

    def __init__(self, name, rng, pools):
        self.name, self._rng = name, rng
        self.num_rows = rng.choices((0, 1, 7, 90, 700, 3000, 9000, 30000), (2, 2, 4, 10, 16, 10, 4, 1))[0]
        kinds = rng.choices(list(KINDS.values()), [kind.weight for kind in KINDS.values()], k=rng.randrange(3, 12))
        if self.num_rows > 700:
            kinds = [kind for kind in kinds if kind.name != "tl"]
        self.columns = [self._column(f"{kind.name}_{i}", kind, pools) for i, kind in enumerate(kinds, 1)]
        self.is_temporary = rng.random() < 0.1
        self.is_partitioned = not self.is_temporary and rng.random() < 0.15
        self.is_updated = rng.random() < 0.5
        self.added = None
        if rng.random() < 0.4:
            kind = KINDS[rng.choice(("i4", "i8", "t", "n9", "d"))]
            self.added = self._column(f"{kind.name}_added", kind, pools)
            self.added.num_values = 2

    def _column(self, name, kind, pools):
        rng = self._rng
        edges = kind.family == "int" and rng.random() < 0.15
        pool = pools.of(kind, edges)
        size = rng.choice((3, 30, 400, len(pool)))
        first = rng.choice((0, 0, 0, 0, 0, min(2, len(pool) - 1)))
        values = pool[first:first + size]
        return TableColumn(name, kind, max(1, min(len(values), self.num_rows)), values, edges)

    @property
    def all_columns(self):
        """Those that queries may name."""
        return self.columns + ([self.added] if self.added else [])

    def _rows(self):
        rng = self._rng
        nulls = {column.name: rng.choice((0, 0, 0.05, 0.3, 1 if rng.random() < 0.05 else 0)) for column in self.columns}
        skews = {column.name: rng.random() < 0.3 for column in self.columns}
        order = list(range(1, self.num_rows + 1))
        rng.shuffle(order)
        for number in order:
            fields = [str(number), "7"]
            for column in self.columns:
                if rng.random() < nulls[column.name]:
                    fields.append("null")
                    continue
                at = int(len(column.values) * (rng.random() ** 3 if skews[column.name] else rng.random()))
                fields.append(quoted(column.values[at]))
            yield f"({','.join(fields)})"

    def statements(self):
        """SQL that makes the table. It has no rows for COPY, whose end psql 15 may overlook at the edge of a buffer."""
        rng, name = self._rng, self.name
        columns = ", ".join(["id int not null", "gone int", *(f"{c.name} {c.kind.sql}" for c in self.columns)])
        made = "create temporary table" if self.is_temporary else "create table"
        lines = [f"{made} {name} ({columns})" + (" partition by range (id);" if self.is_partitioned else ";")]
        if self.is_partitioned:
            middle = self.num_rows // 2
            lines += [f"create table {name}_low partition of {name} for values from (minvalue) to ({middle});",
                      f"create table {name}_high partition of {name} for values from ({middle}) to (maxvalue);"]
        rows = list(self._rows())
        lines += [f"insert into {name} values " + ",\n".join(rows[first:first + 500]) + ";"
                  for first in range(0, len(rows), 500)]
        if self.is_updated:
            lines += [f"begin; insert into {name} (id) select -g from generate_series(1, 50) g; rollback;",
                      f"update {name} set gone = gone + 1 where id % 7 = 3;", f"delete from {name} where id % 11 = 5;"]
        if rng.random() < 0.5:
            lines.append(f"alter table {name} drop column gone;")
        if self.added:
            value = quoted(rng.choice(self.added.values))
            lines += [f"alter table {name} add column {self.added.name} {self.added.kind.sql} default {value};",
                      f"update {name} set {self.added.name} = null where id % 5 = 1;"]
        if rng.random() < 0.3 and not self.is_partitioned:
            lines.append(f"create unique index on {name} (id);")
        for column in self.columns:
            if column.kind.name in INDEXED and rng.random() < 0.5:
                lines.append(f"create index on {name} ({column.name}{rng.choice(('', ', id'))});")
        if rng.random() < 0.4:
            lines.append(f"vacuum {name};")
        if rng.random() < 0.8:
            lines.append(f"analyze {name};")
        return "\n".join(lines)


# Types whose values are short enough for a row of an index.
INDEXED = ("i2", "i4", "i8", "f8", "n9", "v", "c", "d", "ts", "tz", "u", "o")


def quoted(value):
    return "'" + value.replace("'", "''") + "'"


def make_tables(rng, number=6):
    """Tables t1, t2, .. of one data set."""
    pools = Pools(rng)
    return [Table(f"t{i}", rng, pools) for i in range(1, number + 1)]
