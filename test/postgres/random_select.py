# SPDX-License-Identifier: Apache-2.0
"""Random SELECTs over the tables of random_tables.py, whose answers do not depend on the order in which PostgreSQL
meets rows.

A query is made of relations (what stands in FROM) and of selects over them. Each relation says about how many rows it
has, so that no join makes millions, and by which columns its rows differ, so that LIMIT and row_number() get a total
order. A column may be

    loose      equal values print differently (-0 and 0; 1.0 and 1.00), and which one stands for a group is open
    inexact    a float sum, whose last digits depend on the order of the rows; nothing is computed from it
"""

import dataclasses

from random_tables import ICU, KINDS

MAX_ROWS = 40000  # that a relation is believed to have
MAX_LOOPS = 1500000  # rows that a correlated subquery may read in all
INTS = ("i2", "i4", "i8")
TEXTS = ("t", "tc", "ti", "v", "c")
COLLATED = ("tc", "ti", "tn")  # of which two may have no common collation


@dataclasses.dataclass(frozen=True)
class Column:
    expr: str
    kind: object
    num_values: int
    loose: bool = False
    inexact: bool = False
    may_overflow: bool = False
    values: tuple = ()


@dataclasses.dataclass
class Relation:
    text: str
    columns: list
    num_rows: float
    unique: list  # columns by which all rows differ; empty where none are known
    where: list = dataclasses.field(default_factory=list)
    is_join: bool = False


@dataclasses.dataclass
class Select:
    """A SELECT without ORDER BY, whose columns are named c1, c2, .."""
    text: str
    columns: list
    num_rows: float
    unique: list


@dataclasses.dataclass
class Query:
    text: str
    columns: list
    keys: list  # positions of the sort keys
    is_total: bool  # they order all rows
    has_limit: bool
    may_fail: bool


def distinct(columns):
    """Those of them that are different expressions."""
    return list({column.expr: column for column in columns}.values())


def _as_group(column):
    """The column as a group has it: of values that are equal, one."""
    return dataclasses.replace(column, loose=column.loose or column.kind.loose)


def literal(value, kind):
    return "'" + value.replace("'", "''") + f"'::{kind.cast}"


class Queries:
    """Makes queries: each call of query() draws another one."""

    def __init__(self, rng, tables):
        self.rng, self.tables = rng, tables
        self.num_aliases = 0
        self.ctes = []
        self.parameters = None  # [(type, [value of each execution, ..])] of a prepared statement
        self.may_fail = False

    def chance(self, probability):
        return self.rng.random() < probability

    def alias(self):
        self.num_aliases += 1
        return f"a{self.num_aliases}"

    # Values, conditions and expressions.

    def value(self, column):
        """A literal of a column's type, or a parameter."""
        one, other = (self.rng.choice(column.values) for _ in range(2)) if column.values else ("1", "2")
        if self.parameters is not None and self.chance(0.5) and column.kind.name != "tn":
            self.parameters.append((column.kind.cast, [literal(one, column.kind), literal(other, column.kind)]))
            return f"${len(self.parameters)}"
        return literal(one, column.kind)

    def usable(self, relation, test=lambda column: True):
        return [column for column in relation.columns if not column.inexact and test(column)]

    def predicate(self, relation, depth=1):
        columns = self.usable(relation)
        if not columns:
            return "true"
        rng, column = self.rng, self.rng.choice(columns)
        name = column.expr
        if depth and self.chance(0.2):
            left, right = self.predicate(relation, 0), self.predicate(relation, 0)
            return f"({left} {rng.choice(('and', 'or'))} {right})" if self.chance(0.8) else f"not ({left})"
        pick = rng.random()
        if column.kind.name == "b" and pick < 0.5:
            return rng.choice((name, f"not {name}", f"{name} is true", f"{name} is not false"))
        if pick < 0.1 or not column.values:
            return f"{name} is {rng.choice(('null', 'not null', 'not null'))}"
        if pick < 0.14:
            return f"{name} in ({self.value(column)}, {self.value(column)}, {self.value(column)})"
        if pick < 0.2 and column.kind.name in TEXTS:
            return f"{name} like {rng.choice(LIKES)}"
        if pick < 0.4 and column.kind.name in INTS:
            return f"{name} % {rng.choice((2, 3, 7))} = {rng.choice((0, 1))}"
        if pick < 0.5:
            others = [c for c in columns if c.kind.family == column.kind.family and c.kind.name not in COLLATED]
            if len(others) > 1 and column.kind.name not in COLLATED:
                return f"{name} {rng.choice(('<', '<=', '=', '<>'))} {rng.choice(others).expr}"
        if pick < 0.6:
            return f"{name} is distinct from {self.value(column)}"
        return f"{name} {rng.choice(('<', '<=', '>', '>=', '<>', '<>', '<>', '='))} {self.value(column)}"

    def expression(self, column):
        """The column, or something computed from it."""
        rng, name, kind = self.rng, column.expr, column.kind
        if column.inexact or self.chance(0.6):
            return column
        made = lambda expr, to, num=column.num_values: Column(
            expr, KINDS[to], num, column.loose, values=column.values if to == kind.name else ())
        if kind.name in INTS:
            if self.chance(0.03) or column.may_overflow:
                if not self.chance(0.4):
                    return column
                self.may_fail = True
                failing = (f"{name} + {name}", f"100 / {name}", f"abs({name})", f"{name}::int2 + 1::int2")
                return made(rng.choice(failing), kind.name)
            return rng.choice((lambda: made(f"{name} % 10", kind.name, 20), lambda: made(f"({name}::int8 + 1)", "i8"),
                               lambda: made(f"coalesce({name}, 7)", kind.name), lambda: made(f"{name} / 3", kind.name),
                               lambda: made(f"case when {name} > 50 then {name} end", kind.name),
                               lambda: made(f"{name}::numeric * 1.5", "nu"), lambda: made(f"({name} > 20)", "b", 3)))()
        if kind.name in ("f4", "f8"):
            return rng.choice((made(f"{name} * 2", kind.name), made(f"floor({name} / 1000)", "f8", 12),
                               made(f"-{name}::float8", "fw")))
        if kind.name in ("n9", "n30"):
            return rng.choice((made(f"{name} * 2.5", "nu"), made(f"round({name}, 0)", "nu"),
                               made(f"({name} - 1.25)::numeric(12,2)", "n30"), made(f"{name} * {name}", "nu")))
        if kind.name in TEXTS:
            text = kind.name if kind.name in ("tc", "ti") else "t"
            return rng.choice((made(f"length({name})", "i4", 20), made(f"left({name}, 2)", text),
                               made(f"({name} || 'x')", text), made(f"coalesce({name}, 'none')", kind.name),
                               made(f"nullif({name}, '')", kind.name)))
        if kind.name in ("d", "ts"):
            return made(f"({name} > '1995-06-01')", "b", 3)
        return column

    # Relations.

    def base(self, max_rows=None):
        tables = [table for table in self.tables if max_rows is None or table.num_rows <= max_rows] or self.tables[:1]
        table, alias = self.rng.choice(tables), self.alias()
        key = Column(f"{alias}.id", KINDS["i4"], table.num_rows, values=("1", "10", "50", "200"))
        columns = [key] + [Column(f"{alias}.{c.name}", c.kind, c.num_values, may_overflow=c.may_overflow,
                                  values=tuple(c.values)) for c in table.all_columns]
        relation = Relation(f"{table.name} {alias}", columns, table.num_rows, [key])
        if self.chance(0.3):
            relation.where.append(self.predicate(relation))
        if self.chance(0.06):
            columns.append(self.rng.choice((Column(f"{alias}.ctid", KINDS["tid"], table.num_rows),
                                            Column(alias, KINDS["row"], table.num_rows))))
        return relation

    def wrapped(self, select, is_lateral=False):
        alias = self.alias()
        rename = {column.expr: f"{alias}.c{i}" for i, column in enumerate(select.columns, 1)}
        columns = [dataclasses.replace(c, expr=rename[c.expr]) for c in select.columns]
        unique = [dataclasses.replace(c, expr=rename[c.expr]) for c in select.unique]
        text = f"{'lateral ' if is_lateral else ''}({select.text}) {alias}"
        if not is_lateral and self.parameters is None and self.chance(0.2):
            name = f"w{len(self.ctes) + 1}"
            self.ctes.append(f"{name} as {self.rng.choice(('', 'materialized ', 'not materialized '))}({select.text})")
            text = f"{name} {alias}"
        return Relation(text, columns, select.num_rows, unique)

    def in_parentheses(self, relation):
        """The relation as a subquery, whose conditions are its own."""
        columns = distinct(relation.unique + self.sample(relation.columns, 6))
        return self.wrapped(self.select_of(relation, columns, relation.unique))

    def sample(self, columns, most):
        return self.rng.sample(columns, min(len(columns), self.rng.randrange(1, most + 1)))

    def relation(self, depth):
        pick = self.rng.random()
        if depth <= 0 or pick < 0.15:
            return self.base()
        if pick < 0.72:
            return self.join(depth)
        if pick < 0.78:
            return self.with_lateral(depth)
        return self.wrapped(self.select(depth - 1))

    def key_pairs(self, left, right):
        fit = lambda column: column.kind.family not in ("json", "row") and (not column.may_overflow or self.chance(0.5))
        mix = lambda a, b: a == b or ("tn" not in (a, b) and {a, b} != {"tc", "ti"})
        pairs = [(a, b) for a in self.usable(left, fit) for b in self.usable(right, fit)
                 if a.kind.family == b.kind.family and mix(a.kind.name, b.kind.name)]
        return pairs

    def keys(self, left, right, most_rows=MAX_ROWS):
        """Equal columns of two relations, and the believed number of result rows; None where there would be too
        many."""
        pairs = self.key_pairs(left, right)
        for _ in range(6):
            if not pairs:
                return None
            chosen = self.rng.sample(pairs, min(len(pairs), self.rng.choice((1, 1, 1, 2, 2, 3))))
            num_rows = left.num_rows * right.num_rows
            for a, b in chosen:
                num_rows /= max(1, min(a.num_values, b.num_values) / 3)
            if num_rows <= most_rows:
                return [self.equal(a, b) for a, b in chosen], num_rows
        return None

    def equal(self, a, b):
        if self.chance(0.1) and a.kind.name in INTS and b.kind.name in INTS:
            return f"{a.expr}::int8 % 1000 = {b.expr}::int8 % 1000"
        return f"{a.expr} = {b.expr}"

    def residual(self, left, right):
        pairs = [(a, b) for a, b in self.key_pairs(left, right) if a.kind.name == b.kind.name]
        if not pairs or self.chance(0.3):
            return self.predicate(Relation("", left.columns + right.columns, 0, []))
        a, b = self.rng.choice(pairs)
        return f"{a.expr} {self.rng.choice(('<', '<=', '<>', '>='))} {b.expr}"

    def join(self, depth):
        left, right = self.relation(depth - 1), self.relation(depth - self.rng.choice((1, 2)))
        kind = self.rng.choice(("inner", "inner", "inner", "left", "left", "right", "full", "full", "semi", "semi",
                                "anti", "in", "small"))
        if kind in ("semi", "anti", "in"):
            return self.semi_join(left, right, kind)
        if kind == "small":
            right = self.base(100)
            kind = "inner"
        if kind != "inner":
            left = self.in_parentheses(left) if left.where else left
            right = self.in_parentheses(right) if right.where else right
        found = self.keys(left, right)
        if found is None:
            return left
        conditions, num_rows = found
        if self.chance(0.25):
            conditions.append(self.residual(left, right))
        if self.chance(0.1):
            conditions += self.subplan(left, right, num_rows)
        if kind == "full":  # a hash join of it wants equalities of columns
            conditions = [c for c in conditions if c == conditions[0] or self.chance(0.7)]
        if kind in ("left", "full"):
            num_rows += left.num_rows
        if kind in ("right", "full"):
            num_rows += right.num_rows
        inner = f"({right.text})" if right.is_join else right.text
        text = f"{left.text} {kind} join {inner} on {' and '.join(conditions)}"
        unique = left.unique + right.unique if left.unique and right.unique else []
        return Relation(text, left.columns + right.columns, num_rows, unique, left.where + right.where, True)

    def subplan(self, left, right, num_rows):
        """A condition that counts rows of a further table for each row of a join."""
        inner = self.base(100)
        pairs = self.key_pairs(Relation("", left.columns + right.columns, 0, []), inner)
        if not pairs or num_rows * inner.num_rows > MAX_LOOPS:
            return []
        a, b = self.rng.choice(pairs)
        where = " and ".join(inner.where + [f"{a.expr} = {b.expr}"])
        compared = self.rng.choice(("<", ">=", "<>"))
        return [f"(select count(*) from {inner.text} where {where}) {compared} {self.rng.randint(0, 3)}"]

    def semi_join(self, left, right, kind):
        found = self.keys(left, right, MAX_ROWS * 20)
        if found is None:
            return left
        conditions, _ = found
        where = list(right.where)
        if kind == "in":
            pairs = self.key_pairs(left, right)
            a, b = self.rng.choice(pairs)
            text = f"select {b.expr} from {right.text}" + (f" where {' and '.join(where)}" if where else "")
            condition = f"{a.expr} in ({text})"
        else:
            where += conditions + ([self.residual(left, right)] if self.chance(0.3) else [])
            word = "not exists" if kind == "anti" else "exists"
            condition = f"{word} (select 1 from {right.text} where {' and '.join(where)})"
        return dataclasses.replace(left, where=left.where + [condition])

    def with_lateral(self, depth):
        left = self.relation(depth - 1)
        right = self.base(700)
        pairs = self.key_pairs(left, right)
        if not pairs or left.num_rows * right.num_rows > MAX_LOOPS:
            return left
        a, b = self.rng.choice(pairs)
        right.where.append(f"{a.expr} = {b.expr}")
        inner = self.select_aggregate(right, most_keys=self.rng.choice((0, 0, 1)))
        made = self.wrapped(inner, is_lateral=True)
        unique = left.unique + made.unique if left.unique and made.unique else \
            left.unique if inner.num_rows <= 1 else []
        kind = self.rng.choice(("cross join {}", "left join {} on true"))
        return Relation(f"{left.text} {kind.format(made.text)}", left.columns + made.columns,
                        left.num_rows * max(1, min(inner.num_rows, 10)), unique, left.where, True)

    # Selects.

    def select_of(self, relation, columns, unique=(), distinct=False, tail=""):
        listed = ", ".join(f"{column.expr} as c{i}" for i, column in enumerate(columns, 1))
        where = f" where {' and '.join(relation.where)}" if relation.where else ""
        text = f"select {'distinct ' if distinct else ''}{listed} from {relation.text}{where}{tail}"
        unique = [c for c in unique if any(c.expr == mine.expr for mine in columns)]
        return Select(text, columns, relation.num_rows, unique)

    def select(self, depth):
        pick = self.rng.random()
        relation = self.relation(depth)
        if pick < 0.3:
            return self.select_rows(relation)
        if pick < 0.75:
            return self.select_aggregate(relation)
        if pick < 0.83:
            return self.select_distinct(relation)
        if pick < 0.9:
            return self.select_set(relation)
        if pick < 0.95:
            return self.select_top(relation)
        return self.select_window(relation)

    def select_rows(self, relation):
        columns = distinct(map(self.expression, self.sample(relation.columns, 6)))
        unique = relation.unique if self.chance(0.7) else []
        columns += [c for c in unique if all(c.expr != mine.expr for mine in columns)]
        if self.chance(0.1):
            columns += self.scalar_subquery(relation)
        return self.select_of(relation, columns, unique)

    def scalar_subquery(self, relation):
        inner = self.base(700)
        pairs = self.key_pairs(relation, inner)
        if not pairs or relation.num_rows * inner.num_rows > MAX_LOOPS:
            return []
        a, b = self.rng.choice(pairs)
        aggregate = self.aggregate(inner)
        where = " and ".join(inner.where + [f"{a.expr} = {b.expr}"])
        return [dataclasses.replace(aggregate, expr=f"(select {aggregate.expr} from {inner.text} where {where})")]

    def aggregate(self, relation):
        """One aggregate function over a relation."""
        rng = self.rng
        columns = self.usable(relation)
        column = self.expression(rng.choice(columns)) if columns else None
        filtered = f" filter (where {self.predicate(relation)})" if self.chance(0.15) else ""
        if column is None or self.chance(0.2):
            return Column(f"count(*){filtered}", KINDS["i8"], 100)
        kind, name = column.kind, column.expr
        num_groups = column.num_values
        choices = [(f"count({name})", "i8", False, False), (f"count(distinct {name})", "i8", False, False)]
        if kind.minmax:
            choices += [(f"{function}({name})", kind.name, kind.loose, False) for function in ("min", "max")] * 2
        if kind.name == "b":
            choices += [(f"{function}({name})", "b", False, False) for function in ("bool_and", "bool_or", "every")] * 2
        if kind.sums and kind.name != "iv":
            to = {"i2": "i8", "i4": "i8", "f4": "f4", "f8": "f8", "fw": "fw"}.get(kind.name, "nu")
            average = {"f4": "f8", "f8": "f8", "fw": "fw"}.get(kind.name, "nu")
            choices += [(f"sum({name})", to, False, kind.inexact_sum)] * 3
            choices += [(f"avg({name})", average, False, kind.inexact_sum)] * 3
            choices += [(f"sum(distinct {name})", to, False, kind.inexact_sum)]
            if kind.name in INTS:
                choices += [(f"bit_or({name})", kind.name, False, False), (f"variance({name})", "nu", False, False)]
            if kind.name in ("f8", "f4"):
                choices += [(f"stddev({name})", "fw", False, True)]
        if kind.name in TEXTS and not column.loose:
            choices += [(f"string_agg({name}, ',' order by {name} collate \"C\")", "t", False, False)]
        expr, to, loose, inexact = rng.choice(choices)
        return Column(expr + filtered, KINDS[to], num_groups, loose, inexact)

    def select_aggregate(self, relation, most_keys=4):
        rng = self.rng
        candidates = [c for c in map(self.expression, self.usable(relation))]
        keys = distinct(rng.sample(candidates, min(len(candidates), rng.randrange(0, most_keys + 1))))
        keys = [_as_group(key) for key in keys]
        aggregates = [self.aggregate(relation) for _ in range(rng.choice((0, 1, 1, 2, 3, 5) if keys else (1, 2, 3, 5)))]
        listed = keys if self.chance(0.9) or not aggregates else keys[1:]
        columns = listed + aggregates
        tail, unique, num_rows = "", listed if listed == keys else [], 1
        if keys:
            names = ", ".join(key.expr for key in keys)
            if self.chance(0.06):
                tail, unique = f" group by {rng.choice(('rollup', 'cube'))} ({names})", []
            else:
                tail = f" group by {names}"
            num_rows = relation.num_rows
            product = 1.0
            for key in keys:
                product *= key.num_values + 1
            num_rows = min(num_rows, product)
        if self.chance(0.15):
            tail += f" having {self.having(relation)}"
        made = self.select_of(relation, columns, [], tail=tail)
        made.num_rows, made.unique = num_rows, unique
        return made

    def having(self, relation):
        column = self.aggregate(relation)
        while column.inexact:
            column = self.aggregate(relation)
        if column.kind.name in INTS:
            return f"{column.expr} > {self.rng.choice((0, 1, 3, 10))}"
        return f"{column.expr} is not null"

    def select_distinct(self, relation):
        columns = distinct(map(self.expression, self.sample(self.usable(relation) or relation.columns, 3)))
        columns = [_as_group(c) for c in columns if not c.inexact] or [Column("1", KINDS["i4"], 1)]
        made = self.select_of(relation, columns, columns, distinct=True)
        made.unique = columns
        return made

    def select_set(self, relation):
        """Union, intersection or difference of a select and another one with the same types."""
        left = self.select_distinct(relation)
        other = self.base()
        mine = []
        for column in left.columns:
            fits = [c for c in self.usable(other) if c.kind.name == column.kind.name]
            mine.append(self.rng.choice(fits) if fits else Column(f"null::{column.kind.sql}", column.kind, 1))
        right = self.select_of(other, mine)
        word = self.rng.choice(("union", "union all", "intersect", "except", "except all", "intersect all"))
        text = f"({left.text}) {word} ({right.text})"
        columns = left.columns
        return Select(f"select * from ({text}) {self.alias()}", columns, left.num_rows + right.num_rows,
                      columns if word in ("union", "intersect", "except") else [])

    def select_top(self, relation):
        """The first rows in a total order."""
        if not relation.unique or self.may_fail:
            return self.select_rows(relation)
        columns = distinct(self.sample(self.usable(relation), 5) + relation.unique)
        made = self.select_of(relation, columns, relation.unique)
        order = self.order(self.sample(columns, 2)) + self.order(relation.unique)
        number = self.rng.choice((0, 1, 10, 100, 3000))
        made.text += f" order by {', '.join(order)} limit {number}"
        made.num_rows = min(made.num_rows, number)
        return made

    def select_window(self, relation):
        columns = self.sample(self.usable(relation), 3)
        part = f"partition by {self.rng.choice(columns).expr} " if self.chance(0.5) else ""
        order = self.order(self.sample(columns, 2))
        ints = self.usable(relation, lambda c: c.kind.name in INTS)
        functions = ["rank()", "dense_rank()", "count(*)"]
        functions += [f"sum({c.expr}::int8)" for c in ints if not c.may_overflow]
        if relation.unique:
            order_total = order + self.order(relation.unique)
            made = Column(f"row_number() over ({part}order by {', '.join(order_total)})", KINDS["i8"], 1000)
        else:
            made = Column(f"{self.rng.choice(functions)} over ({part}order by {', '.join(order)})", KINDS["nu"], 1000)
        return self.select_of(relation, columns + [made])

    def order(self, columns, names=None):
        """Items of ORDER BY."""
        keys = []
        for i, column in enumerate(columns):
            name = names[i] if names else column.expr
            collation = self.rng.choice(("", "", ' collate "C"', f' collate "{ICU[0]}"')) \
                if column.kind.name in TEXTS and not names else ""
            direction = self.rng.choice(("", "", " asc", " desc", " nulls first", " desc nulls last"))
            keys.append(name + collation + direction)
        return keys

    # Whole queries.

    def query(self):
        """Another query, with an ORDER BY or without."""
        made = self.select(self.rng.choice((1, 1, 2, 2, 3)))
        text, columns = made.text, made.columns
        keys, is_total, has_limit = [], False, False
        ordered = [i for i, c in enumerate(columns) if not c.inexact]
        if ordered and self.chance(0.5):
            keys = self.rng.sample(ordered, min(len(ordered), self.rng.randrange(1, 4)))
            where = {column.expr: i for i, column in reversed(list(enumerate(columns)))}
            unique = {where[c.expr] for c in made.unique}
            if unique and self.chance(0.6):
                keys += sorted(unique - set(keys))
            is_total = bool(unique) and unique <= set(keys)
            order = ", ".join(self.order([columns[i] for i in keys], [f"c{i + 1}" for i in keys]))
            is_limited = " limit " in text
            if is_limited:
                text = f"select * from ({text}) {self.alias()}"
            text += f" order by {order}"
            has_limit = self.chance(0.4) and not self.may_fail
            if has_limit:
                text += self.rng.choice((" limit 1", " limit 10", " limit 10 offset 5", " limit 500", " offset 20"))
        if self.ctes:
            text = f"with {', '.join(self.ctes)} {text}"
        return Query(text, columns, keys, is_total, has_limit, self.may_fail)


    def locking(self):
        """A query that locks rows of a table, or removes or changes them, as a join finds them."""
        left, right = self.base(), self.relation(1)
        found = self.keys(left, right)
        if found is None or left.text.split()[0] in (word for word in right.text.split()):
            return None
        conditions, _ = found
        alias = left.text.split()[1]
        conditions += left.where + right.where
        columns = [c for c in self.sample(left.columns, 5) if c.kind.name != "tid"] or left.columns[:1]
        listed = ", ".join(f"{c.expr} as c{i}" for i, c in enumerate(columns, 1))
        where = f"where {' and '.join(conditions)}"
        text = self.rng.choice((
            f"select {listed} from {left.text}, {right.text} {where} for update of {alias}",
            f"delete from {left.text} using {right.text} {where} returning {listed}",
            f"update {left.text} set id = {alias}.id from {right.text} {where} returning {listed}"))
        if self.ctes:
            text = f"with {', '.join(self.ctes)} {text}"
        return Query(text, columns, [], False, False, self.may_fail)


LIKES = ("'a%'", "'%e%'", "'prefix%'", "'_'", "'%1'")
