# SPDX-License-Identifier: Apache-2.0
"""Random steps of queries. Each changes the rows so far (Rows), and is written as a step of a query's text and as SQL:

    filter "odd name t0" > 3          SELECT * FROM (..) WHERE "odd name t0" > 3
"""
import dataclasses

from query_tables import QueryType, quoted

MOST_ROWS = 200_000
SIGNS = ("=", "<", "<=", ">", ">=", "!=")
KINDS = ("inner", "left", "semi", "anti", "anti_null_aware", "mark", "single", "right", "full", "right_semi",
         "right_anti")
_NUMBER, _BOOL = QueryType("i64", "number"), QueryType("bool", "bool")


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    type: QueryType

    def text(self):
        return quoted(self.name)


@dataclasses.dataclass
class Rows:
    """Rows on their way: their columns, and what makes them."""
    columns: list
    sql: str
    most: int              # rows that there may be
    order: str = ""        # of the rows, in SQL, where a sort has given them one
    unique: str = ""       # a column whose values differ

    def of(self, *classes):
        return [column for column in self.columns if column.type.of in classes]


@dataclasses.dataclass
class Step:
    word: str              # filter, join.left, ..
    body: str
    relation: object = None  # of a join
    limit: tuple = ()      # (limit, offset)
    parts: tuple = ()      # (calls, keys) of an aggregation

    def text(self, names):
        """names: of the relations that are joined, by identity."""
        body = f"{names[id(self.relation)]} on {self.body}" if self.relation else self.body
        if not self.limit:
            return f"{self.word} {body}"
        limit = f"limit {self.limit[0]}" + f" offset {self.limit[1]}" * (self.limit[1] > 0)
        return f"sort {body} {limit}" if self.word == "sort" else limit


def decoded(columns):
    """Behind a step that collects rows or makes new ones, dictionaries are plain values."""
    return [Column(column.name, QueryType("utf8", "string")) if column.type.name == "dictionary" else column
            for column in columns]


# ---- conditions ------------------------------------------------------------------------------------------------------


def _constant(rng, column):
    return column.type.constant(rng.choice([value for value in column.type.pool(rng) if value == value
                                            and value != float("inf")]))


def is_alike(left, right):
    """Whether columns compare: integers with each other, decimals too, others with those of their type."""
    if left.type.of == right.type.of == "decimal":
        return True
    if left.type.of in ("number", "wild") and right.type.of in ("number", "wild"):
        return "u64" not in (left.type.name, right.type.name) or left.type.name == right.type.name
    return (left.type.of, left.type.name) == (right.type.of, right.type.name)


def _random_leaf(rng, rows):
    column = rng.choice(rows.columns)
    style = rng.choice(("constant", "constant", "columns", "between", "in", "null", "like", "computed", "bool"))
    numbers = [number for number in rows.of("number") if number.type.high <= 40]  # whose products fit an i8
    if style == "columns":
        other = rng.choice([other for other in rows.columns if is_alike(column, other)])
        return f"{column.text()} {rng.choice(SIGNS)} {other.text()}"
    if style == "between":
        return f"{column.text()} between {_constant(rng, column)} and {_constant(rng, column)}"
    if style == "in":
        return f"{column.text()}{rng.choice((' ', ' not '))}in ({', '.join(_constant(rng, column) for _ in range(3))})"
    if style == "null":
        return f"{column.text()} is {rng.choice(('', 'not '))}null"
    if style == "computed" and column.type.of == "string":
        return rng.choice((f"substring({column.text()}, 1, 1) = 'a'", f"{column.text()} || 'x' like '%ax'",
                           f"char_length(trim({column.text()})) > 3"))
    if style == "like" and column.type.of == "string":
        return f"{column.text()} like '{rng.choice(('a%', '%', '%x%', '_', 'ab', '%--%'))}'"
    if style == "computed" and numbers:
        one, other = rng.choice(numbers), rng.choice(numbers)
        return f"{one.text()}{rng.choice((' + ', '+'))}{other.text()} > {one.text()}{rng.choice((' * ', '*'))}2"
    if style == "bool" and rows.of("bool"):
        return rng.choice(rows.of("bool")).text()
    return f"{column.text()} {rng.choice(SIGNS)} {_constant(rng, column)}"


def random_condition(rng, rows, most=3):
    leaves = [_random_leaf(rng, rows) for _ in range(rng.randint(1, most))]
    if any(sign in leaf for leaf in leaves for sign in ("+", "*", "||", "substring(", "trim(")):
        return " and ".join(leaves)  # constants that are text and computed values meet at `and` alone
    text = leaves[0]
    for leaf in leaves[1:]:
        text = rng.choice((f"{text} and {leaf}", f"({text}) or {leaf}", f"not ({text}) and {leaf}"))
    return text


# ---- steps -----------------------------------------------------------------------------------------------------------


def _small(rows):
    """Columns whose sums and products fit an i8."""
    return [column for column in rows.columns if column.type.of == "number" and -40 <= column.type.low
            and column.type.high <= 40]


class StepMaker:
    def __init__(self, rng, kinds, of_places):
        """of_places: draws expressions in places that once had columns alone, so that the others stay as they are."""
        self.rng, self.kinds, self.of_places, self.num_names = rng, kinds, of_places, 0

    def name(self):
        self.num_names += 1
        return f"n{self.num_names}" if self.rng.random() < 0.8 else f"N {self.num_names}"

    def filter(self, rows):
        condition = random_condition(self.rng, rows)
        sql = f"SELECT * FROM ({rows.sql}) WHERE {condition}"
        return Step("filter", condition), dataclasses.replace(rows, sql=sql)

    def select(self, rows):
        rng = self.rng
        taken = rng.sample(rows.columns, rng.randint(1, len(rows.columns)))
        taken = [column for column in rows.columns if column in taken]
        texts, columns, sqls = [], [], []
        for column in taken:
            keeps_name = rng.random() < 0.6
            named = column if keeps_name else Column(self.name(), column.type)
            texts.append(column.text() + ("" if keeps_name else f" as {named.text()}"))
            sqls.append(f"{column.text()} AS {named.text()}")
            columns.append(named)
        for column in rows.of("number"):
            bound = max(abs(column.type.low), column.type.high)
            if rng.random() < 0.3 and bound < 40:
                value = rng.choice((f"{column.text()} + 1", f"{column.text()}*2",
                                    f"case when {column.text()} > 1 then {column.text()} else 0 end"))
                made_type = dataclasses.replace(column.type, low=2 * column.type.low, high=2 * bound + 1)
                made = Column(self.name(), made_type)
                texts.append(f"{value} as {made.text()}")
                sqls.append(f"{value} AS {made.text()}")
                columns.append(made)
        plain = [column for column in rows.columns if column.type.of in ("number", "wild", "bool", "date", "decimal")]
        if (rows.of("string") or plain) and self.of_places.random() < 0.4:
            if rows.of("string"):
                value, made_type = self._computed_string(rows)
            else:
                value = f"'a text of more than twelve bytes, ' || {self.of_places.choice(plain).text()}::text"
                made_type = QueryType("utf8", "string")
            made = Column(self.name(), made_type)
            texts.append(f"{value} as {made.text()}")
            sqls.append(f"{value} AS {made.text()}")
            columns.append(made)
        unique = next((new.name for old, new in zip(taken, columns) if old.name == rows.unique), "")
        sql = f"SELECT {', '.join(sqls)} FROM ({rows.sql})"
        return Step("select", ", ".join(texts)), Rows(columns, sql, rows.most, unique=unique)

    def _computed_string(self, rows):
        """(an expression with a string, its type), the same in a query's text and in SQL."""
        rng = self.of_places
        column = rng.choice(rows.of("string"))
        text = column.text()
        made_type = QueryType("utf8", "string") if column.type.name == "dictionary" else column.type
        plain = [other for other in rows.columns if other.type.of in ("number", "wild", "bool", "date", "decimal")]
        values = [f"{text} || '-' || {text}", f"substring({text}, {rng.randint(1, 3)}, {rng.randint(0, 4)})",
                  f"coalesce({text}, 'none')", f"trim({text} || '  ')", f"replace({text}, 'a', 'bb')",
                  f"case when {text} like '%a%' then {text} else 'twelve bytes and more' end", f"least({text}, 'b')"]
        if plain:
            values.append(f"{text} || {rng.choice(plain).text()}::text" if made_type.name == "utf8" else values[0])
            values.append(f"case when {rng.choice(plain).text()} is null then {text} else substring({text}, 2) end")
        return rng.choice(values), made_type

    def renamed(self, rows):
        """All columns under new names, so that the rows may be joined with any."""
        columns = [Column(self.name(), column.type) for column in rows.columns]
        pairs = [(old.text(), new.text()) for old, new in zip(rows.columns, columns)]
        unique = next((new.name for old, new in zip(rows.columns, columns) if old.name == rows.unique), "")
        return (Step("select", ", ".join(f"{old} as {new}" for old, new in pairs)),
                Rows(columns, f"SELECT {', '.join(f'{old} AS {new}' for old, new in pairs)} FROM ({rows.sql})",
                     rows.most, unique=unique))

    def join(self, rows, relation, build):
        """None where no columns compare, or too many rows might come out."""
        rng = self.rng
        pairs = [(one, other) for one in rows.columns for other in build.columns if is_alike(one, other)
                 and (one.type.scale == other.type.scale)]
        keys = [rng.choice(pairs)] if pairs else []
        kind = rng.choice(self.kinds)
        if kind == "single":
            keys = [pair for pair in pairs if pair[1].name == build.unique][:1]
        has_pairs = kind in ("inner", "left", "right", "full") and keys and keys[0][1].name != build.unique
        most = max(rows.most, 1) * max(build.most, 1) if has_pairs else rows.most + build.most
        has_mark = any(column.name == "mark" for column in rows.columns + build.columns)
        if not keys or most > MOST_ROWS or kind == "mark" and has_mark:
            return None
        terms = [f"{keys[0][0].text()} = {keys[0][1].text()}"]
        residuals = [pair for pair in pairs if pair[0].type.is_integer and pair[0].type.of == "number"
                     and pair[1].type.of == "number"]
        if kind not in ("anti_null_aware", "mark", "single") and residuals and rng.random() < 0.3:
            one, other = rng.choice(residuals)
            terms.append(f"{one.text()} {rng.choice(SIGNS[1:])} {other.text()}")
        terms = self._computed_terms(kind, terms, keys[0], rows, build)
        matches = " AND ".join(terms)
        columns, sql = _joined(kind, rows, build, keys[0], matches)
        return Step(f"join.{kind}", " and ".join(terms), relation), Rows(decoded(columns), sql, most)

    def _computed_terms(self, kind, terms, key, rows, build):
        """Some terms with expressions in place of columns, and conditions of both sides for an inner join."""
        rng, probe, table = self.of_places, _small(rows), _small(build)
        if key[0] in probe and key[1] in table and rng.random() < 0.3:
            terms = [f"{key[0].text()} + 1 = {key[1].text()} + 1", *terms[1:]]
        if not probe or not table or kind in ("anti_null_aware", "mark", "single"):
            return terms
        one, other = rng.choice(probe), rng.choice(table)
        if rng.random() < 0.2:
            terms = [*terms, f"{one.text()} * 2 {rng.choice(SIGNS[1:])} {other.text()} + 1"]
        if kind == "inner" and rng.random() < 0.3:
            either = f"({one.text()} > 1 or {other.text()} < 2)"
            terms = [*terms, rng.choice((f"{one.text()} + {other.text()} > 3", either))]
        return terms

    def aggregate(self, rows):
        rng = self.rng
        keys = rng.sample(rows.columns, min(rng.choice((0, 1, 1, 2)), len(rows.columns)))
        calls, columns = [], list(keys)
        for _ in range(rng.randint(0 if keys else 1, 3)):
            column = rng.choice(rows.columns)
            made, call = self._call(column)
            condition = f" filter (where {self._plain_condition(rows)})" if rng.random() < 0.25 else ""
            if _small(rows) and self.of_places.random() < 0.2:
                one, other = self.of_places.choice(_small(rows)), self.of_places.choice(_small(rows))
                condition = f" filter (where {one.text()} * 2 > {other.text()} + 1)"
            calls.append((f"{call}{condition}", made))
            columns.append(made)
        text = ", ".join(f"{call} as {made.text()}" for call, made in calls)
        by = ", ".join(key.text() for key in keys)
        wanted = [key.text() for key in keys] + [f"{call} AS {made.text()}" for call, made in calls]
        sql = f"SELECT {', '.join(wanted)} FROM ({rows.sql})" + (f" GROUP BY {by}" if keys else "")
        unique = keys[0].name if len(keys) == 1 else ""
        step = Step("aggregate", text + f" by {by}" * bool(keys), parts=(text, by))
        return step, Rows(decoded(columns), sql, max(rows.most, 1), unique=unique)

    def _plain_condition(self, rows):
        """One that expressions have, too: without text."""
        numbers = rows.of("number", "bool", "date")
        if not numbers:
            return f"{rows.columns[0].text()} is null" if rows.columns[0].type.of != "string" else "1 = 1"
        column = self.rng.choice(numbers)
        return f"{column.text()} {self.rng.choice(SIGNS)} {_constant(self.rng, column)}"

    def _call(self, column):
        calls = ["count(*)", "count", "min", "max", "count(distinct"]
        if column.type.of in ("number", "float"):
            calls += ["sum", "avg"]
        if column.type.of == "decimal":
            calls.append("sum")  # DuckDB's averages are floats
        call, name = self.rng.choice(calls), self.name()
        if call == "count(*)":
            return Column(name, _NUMBER), call
        if call.startswith("count"):
            return Column(name, _NUMBER), f"{call}{'(' if call == 'count' else ' '}{column.text()})"
        whole = QueryType("u64", "unsigned") if column.type.name[0] == "u" else QueryType("i64", "wild")
        sums = {"number": whole, "decimal": dataclasses.replace(column.type, name="decimal128")}
        made = {"sum": sums.get(column.type.of, QueryType("f64", "float")),
                "avg": QueryType("f64", "float")}.get(call, column.type)
        return Column(name, made), f"{call}({column.text()})"

    def sort(self, rows):
        """By all columns, so that rows which compare equal are the same."""
        rng = self.rng
        texts, sqls = [], []
        for column in rng.sample(rows.columns, len(rows.columns)):
            descending, nulls_first = rng.random() < 0.4, rng.random() < 0.3
            # An expression of the same order, so that the rows are in it, too.
            is_computed = column in _small(rows) and self.of_places.random() < 0.3
            text = column.text() + " * 2 + 1" * is_computed
            texts.append(text + " desc" * descending + " nulls first" * nulls_first)
            sqls.append(f"{column.text()} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}")
        limit = (rng.choice((1, 3, 10, 1000, 2**63)), rng.choice((0, 0, 1, 5, 2**62))) if rng.random() < 0.6 else ()
        order = ", ".join(sqls)
        sql = f"SELECT * FROM ({rows.sql}) ORDER BY {order}{_sql_limit(limit)}"
        made = dataclasses.replace(rows, sql=sql, columns=decoded(rows.columns), order=order)
        return Step("sort", ", ".join(texts), limit=limit), made

    def limit(self, rows):
        """Of rows in order."""
        limit = (self.rng.choice((1, 2, 7, 2000, 2**63)), self.rng.choice((0, 0, 1, 6, 2**63 - 1)))
        sql = f"SELECT * FROM ({rows.sql}) ORDER BY {rows.order}{_sql_limit(limit)}"
        return Step("limit", "", limit=limit), dataclasses.replace(rows, sql=sql)


def _sql_limit(limit):
    most = 2**62  # DuckDB's numbers are signed
    return f" LIMIT {min(limit[0], most)} OFFSET {min(limit[1], most)}" if limit else ""


def _joined(kind, rows, build, key, matches):
    """(columns, SQL) of a join."""
    probe, table = f"({rows.sql}) AS probe", f"({build.sql}) AS build"
    exists = f"EXISTS (SELECT 1 FROM {table} WHERE {matches})"
    unknown = (f"EXISTS (SELECT 1 FROM {table}) AND ({key[0].text()} IS NULL OR EXISTS (SELECT 1 FROM {table} "
               f"WHERE {key[1].text()} IS NULL))")
    if kind in ("inner", "left", "single", "right", "full"):
        word = {"inner": "INNER", "right": "RIGHT", "full": "FULL"}.get(kind, "LEFT")
        return rows.columns + build.columns, f"SELECT * FROM {probe} {word} JOIN {table} ON {matches}"
    if kind in ("right_semi", "right_anti"):
        found = f"EXISTS (SELECT 1 FROM {probe} WHERE {matches})"
        return build.columns, f"SELECT * FROM {table} WHERE {'NOT ' * (kind == 'right_anti')}{found}"
    if kind == "mark":
        mark = f"CASE WHEN {exists} THEN true WHEN {unknown} THEN NULL ELSE false END"
        return [*rows.columns, Column("mark", _BOOL)], f"SELECT *, {mark} AS mark FROM {probe}"
    condition = {"semi": exists, "anti": f"NOT {exists}"}.get(kind, f"NOT {exists} AND NOT ({unknown})")
    return rows.columns, f"SELECT * FROM {probe} WHERE {condition}"
