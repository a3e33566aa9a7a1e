# SPDX-License-Identifier: Apache-2.0
"""Columns that are fetched when few rows are left (tools/query/late_columns.h): the rows are DuckDB's, whatever decides
them, and where nothing does."""
import random
import unittest

import duckdb
from tables import pa, quern

FACTS = 20_000
# What makes a query one whose columns are late, or one where they would be wrong.
KINDS = ("key", "key", "key", "key", "key", "repeated", "null", "far apart", "strings", "small")


def ids(rng, kind, count):
    """Numbers of the rows of a table: its key, or nearly so."""
    numbers = rng.sample(range(10 ** 12 if kind == "far apart" else 4 * count), count)
    if kind == "repeated":
        numbers[1] = numbers[0]
    if kind == "null":
        numbers[0] = None
    return numbers


class Case:
    """sales of buyers that live in places: sales.buyer = buyers.id, buyers.place = places.number."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.kind = rng.choice(KINDS)
        count = rng.choice((2, 40, 100))
        self.facts = 100 if self.kind == "small" else FACTS
        buyer, place = ids(rng, self.kind, count), ids(rng, rng.choice(KINDS), 8)
        texts = [None, "", "a", "Zürich", "a text of more than twelve bytes"]
        self.tables = {
            "sales": pa.table({
                "buyer": pa.array(rng.choices(buyer + [-1], k=self.facts), pa.int64()),
                "amount": pa.array([rng.randrange(1000) for _ in range(self.facts)], pa.int64()),
                "day": pa.array([rng.randrange(9) for _ in range(self.facts)], pa.int32()),
            }),
            "buyers": pa.table({
                "id": pa.array(buyer, pa.int64()),
                "name": pa.array(rng.choices(texts, k=len(buyer)),
                                 rng.choice((pa.utf8(), pa.large_utf8(), pa.string_view()))),
                "rank": pa.array(rng.choices((None, 1, 2), k=len(buyer)), pa.int32()),
                "score": pa.array(rng.choices((None, 0.0, -0.0, 1.5), k=len(buyer)), pa.float64()),
                "place": pa.array(rng.choices(place, k=len(buyer)), pa.int64()),
            }),
            "places": pa.table({
                "number": pa.array(place, pa.int64()),
                "city": pa.array(rng.choices(texts, k=8), pa.utf8()),
            }),
        }
        if rng.random() < 0.3:  # in several batches, one of them behind an offset
            buyers = self.tables["buyers"]
            self.tables["buyers"] = pa.concat_tables([buyers.slice(0, 1), buyers.slice(1)])

    def query(self):
        """The steps, and the same in SQL."""
        rng = self.rng
        keys = [key for key in ("id", "name", "rank", "score", "place", "city") if key == "id" or rng.random() < 0.7]
        rng.shuffle(keys)
        if self.kind == "strings":
            keys = [key for key in keys if key != "id"] or ["name"]
        named = {key: f"the_{key}" if rng.random() < 0.2 else key for key in keys}
        day = rng.randrange(9)
        is_nested = rng.random() < 0.5
        has_filter, has_select = rng.random() < 0.3, rng.random() < 0.5
        limit, offset = rng.choice((1, 5, 20, 300)), rng.choice((0, 0, 1, 7))
        group_keys = ", ".join(key if named[key] == key else f"{key} as {named[key]}" for key in keys)
        # Of all columns, so that the order is total; or of the key, which leaves texts for later. Where that is none,
        # all groups come out, in any order.
        order = ["total desc", *(f"{named[key]} nulls first" for key in rng.sample(keys, len(keys)))]
        self.is_ordered = "id" not in keys or rng.random() < 0.2
        if not self.is_ordered:
            order = ["total desc", named["id"]]
            limit, offset = 300, 0
        filters = ["  filter total > 300"] if has_filter else []
        joins = ["  join places on place = number"]
        sales = ["  scan sales", f"  filter day <= {day}"]
        if is_nested:
            steps = ["homes:", "  scan buyers", *joins, "result:", *sales, "  join homes on buyer = id"]
        else:
            steps = ["result:", *sales, "  join buyers on buyer = id", *joins]
        steps += [f"  aggregate sum(amount) as total, count(*) as num by {group_keys}", *filters,
                  f"  sort {', '.join(order)} limit {limit} offset {offset}"]
        shown = [*named.values(), "total", "num"]
        if has_select:
            shown = rng.sample(shown, rng.randint(1, len(shown)))
            steps.append("  select " + ", ".join(shown))
        sql_order = ", ".join(key if "nulls" in key else key + " nulls last" for key in order)
        sql = (f"select {', '.join(shown)} from (select {', '.join(f'{k} as {n}' for k, n in named.items())}, "
               f"sum(amount)::bigint as total, count(*) as num from sales join buyers on buyer = id "
               f"join places on place = number where day <= {day} group by {', '.join(keys)}) "
               f"{'where total > 300' if has_filter else ''} order by {sql_order} limit {limit} offset {offset}")
        return "\n".join(steps), sql


def rows_of(table):
    # DuckDB may show either zero of a group.
    return [tuple(0.0 if value == 0.0 and isinstance(value, float) else value for value in row.values())
            for row in table.to_pylist()]


class LateColumns(unittest.TestCase):
    def test_rows_are_those_of_duckdb(self):
        late = 0
        for seed in range(160):
            case = Case(seed)
            steps, sql = case.query()
            with duckdb.connect() as connection:
                for name, table in case.tables.items():
                    connection.register(name, table)
                expected = connection.sql(sql).to_arrow_table()
            for engine in ("generic", "jit") if seed % 8 == 0 else ("generic",):
                result = quern.run(steps, case.tables, engine=engine)
                late += any(pipeline["relation"] == "result, buyers" for pipeline in result.stats["pipelines"])
                found = pa.table(result)
                ours, theirs = rows_of(found), rows_of(expected)
                if not case.is_ordered:
                    ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
                with self.subTest(seed=seed, kind=case.kind, steps=steps, sql=sql, engine=engine):
                    self.assertEqual(found.column_names, expected.column_names)
                    self.assertEqual(ours, theirs)
        self.assertGreater(late, 30)
        self.assertLess(late, 200)


if __name__ == "__main__":
    unittest.main()
