# SPDX-License-Identifier: Apache-2.0
"""One random query: its tables, its relations with their steps, and its variants, which must all give the same rows.

    case = Case.generate(seed, number)       the same case for the same two numbers
    case.text(rng)                           as `quern run` takes it
    case.sql()                               as DuckDB does

A reduction of a case drops rows of tables, or the last steps of the result.
"""
import dataclasses
import random

from query_steps import KINDS, Column, Rows, StepMaker
from query_tables import quoted, random_table
from random_case import RandomVariant


@dataclasses.dataclass
class Relation:
    name: str
    source: object  # a Table or a Relation
    steps: list
    rows: list      # behind the source, and behind each step


class Case:
    kinds = KINDS

    def __init__(self, seed, number):
        self.seed, self.number, self.reduction = seed, number, {}
        rng = random.Random(f"query/{seed}/{number}")
        self.tables = [random_table(rng, f"t{place}") for place in range(rng.randint(1, 3))]
        of_places = random.Random(f"query places/{seed}/{number}")
        self._maker, self._ctes, self.relations = StepMaker(rng, self.kinds, of_places), [], []
        for _ in range(rng.choice((0, 1, 1, 2))):
            self._add_relation(rng, rng.randint(0, 2))
        self._add_relation(rng, rng.randint(1, 4), is_result=True)

    @classmethod
    def generate(cls, seed, number):
        return cls(seed, number)

    # ---- making steps ----

    def _named(self, rows):
        """The rows, whose SQL has a name from now on."""
        self._ctes.append(rows.sql)
        return dataclasses.replace(rows, sql=f"SELECT * FROM s{len(self._ctes) - 1}")

    def _rows_of(self, source):
        if isinstance(source, Relation):
            return source.rows[-1]
        return Rows([Column(column.name, column.type) for column in source.columns],
                    f"SELECT * FROM {quoted(source.name)}", source.num_rows)

    def _add_relation(self, rng, num_steps, is_result=False):
        source = rng.choice(self.tables + self.relations)
        name = "result" if is_result else rng.choice((f"r{len(self.relations)}", f"odd: {len(self.relations)}"))
        relation = Relation(name, source, [], [self._rows_of(source)])
        for _ in range(num_steps):
            self._add(relation, self._random_step(rng, relation))
        if not is_result:
            self._add(relation, self._maker.renamed(relation.rows[-1]))
        elif relation.rows[-1].order and rng.random() < 0.4:
            self._add(relation, self._maker.limit(relation.rows[-1]))
        self.relations.append(relation)

    def _add(self, relation, made):
        if made is not None:
            relation.steps.append(made[0])
            relation.rows.append(self._named(made[1]))

    def _random_step(self, rng, relation):
        rows, maker = relation.rows[-1], self._maker
        style = rng.choice(("filter", "filter", "select", "join", "join", "join", "aggregate", "aggregate", "sort"))
        if style != "join":
            return getattr(maker, style)(rows)
        # A relation whose columns are here already would be joined under the same names.
        here = {column.name for column in rows.columns}
        others = [other for other in self.tables + self.relations
                  if not here & {column.name for column in self._rows_of(other).columns}]
        if not others:
            return maker.filter(rows)
        other = rng.choice(others)
        return maker.join(rows, other, self._rows_of(other))

    # ---- the query ----

    def text(self, rng):
        """With comments, and words in any letters, where rng says so."""
        names = {id(one): quoted(one.name) for one in self.tables + self.relations}
        lines = []
        for relation in self.relations:
            if len(self.relations) > 1 or rng.random() < 0.5:
                lines.append(f"{quoted(relation.name)}:")
            lines.append(f"  scan {names[id(relation.source)]}")
            for step in relation.steps:
                word, _, rest = step.text(names).partition(" ")
                lines.append(f"  {word.upper() if rng.random() < 0.1 else word} {rest}")
        for place in range(len(lines)):
            lines[place] += rng.choice(("", "", "", "  -- it's", "  # \"", "\n\n", "\r"))
        return "\n".join(lines)

    def sql(self):
        rows = self.relations[-1].rows[-1]
        ctes = ", ".join(f"s{place} AS MATERIALIZED ({sql})" for place, sql in enumerate(self._ctes))
        order = f" ORDER BY {rows.order}" if rows.order else ""
        return f"WITH {ctes} {rows.sql}{order}" if ctes else rows.sql

    @property
    def columns(self):
        return self.relations[-1].rows[-1].columns

    @property
    def is_ordered(self):
        return bool(self.relations[-1].rows[-1].order)

    # ---- what run.py asks for ----

    def spec(self):
        return "\n" + self.text(random.Random(0))

    def rows_text(self, most=8):
        return "\n".join(f"{table.name}: {table.num_rows} rows\n{table.plain().slice(0, most).to_pylist()}"
                         for table in self.tables) + f"\nSQL: {self.sql()}"

    def replay(self):
        return {"seed": self.seed, "case": self.number, **self.reduction}

    def reduced(self, reduction):
        """A new case of the same numbers with less: {"steps": 2}, {"tables": [[first, end], ..]}."""
        case = type(self)(self.seed, self.number)
        case.reduction = reduction
        result = case.relations[-1]
        result.steps = result.steps[:reduction.get("steps", len(result.steps))]
        result.rows = result.rows[:len(result.steps) + 1]
        for table, (first, end) in zip(case.tables, reduction.get("tables", ())):
            table.keep(first, end)
        return case

    def smaller(self):
        """Reductions one step smaller than the case's own, the big steps first."""
        steps = len(self.relations[-1].steps)
        if steps:
            yield {**self.reduction, "steps": steps - 1}
        ranges = self.reduction.get("tables") or [[0, table.num_rows] for table in self.tables]
        for place, (first, end) in enumerate(ranges):
            step = (end - first + 1) // 2
            while step > 0:
                for part in ([first, end - step], [first + step, end]):
                    yield {**self.reduction, "tables": [*ranges[:place], part, *ranges[place + 1:]]}
                step //= 4

    def variants(self):
        """Generic and compiled, and both again otherwise; one has too little memory, perhaps."""
        rng = random.Random(f"query variants/{self.seed}/{self.number}")
        variants = [Variant.random(rng, engine) for engine in ("generic", "jit", rng.choice(("auto", "generic")))]
        variants[2].memory_limit = 2 ** rng.randint(10, 20)
        if rng.random() < 0.5:
            # A megabyte is set aside for each join, and the rest is little, so that some rows are written.
            num_joins = sum(step.word.startswith("join.") for relation in self.relations for step in relation.steps)
            variants[1].memory_limit = (num_joins + 2 << 20) + int(2 ** rng.uniform(14, 20))
            variants[1].spills = True
        return variants


@dataclasses.dataclass
class Variant(RandomVariant):
    engine: str
    params: dict
    threads: int
    batch_rows: int     # of tables; 0: they are whole
    interface: str      # text, frames
    layout_seed: int
    memory_limit: int   # 0: none
    spills: bool = False  # rows may be written under the limit, however small it is

    @staticmethod
    def random(rng, engine):
        return Variant(engine, {}, rng.choice((1, 3)), rng.choice((0, 0, 1, 7, 1000)), rng.choice(("text", "frames")),
                       rng.getrandbits(32), 0)

