# SPDX-License-Identifier: Apache-2.0
"""Conditions that reach an operator as row numbers: the same results as over a filtered table, for any threads and
chunks, and in row order where an operator depends on it."""

import unittest

from tables import items, message_of, orders, pa, quern, rows, sorted_rows

ROWS = 140_000  # more than one thread's worth


def columns(result):
    """By name, in one piece each, so that those of two results can be compared."""
    return {name: column.combine_chunks() for name, column in zip(result.column_names, pa.table(result).columns)}


def numbers(chunk_rows=30_001):
    """Chunks that begin at no multiple of anything."""
    text = pa.array([None if i % 11 == 0 else f"text number {i % 7} of some length" for i in range(77)],
                    pa.string_view())
    whole = pa.table(
        {
            "row": pa.array(range(ROWS)),
            "group": pa.array([i * 7919 % 1009 for i in range(ROWS)], pa.int32()),
            "value": pa.array([None if i % 13 == 0 else i % 101 for i in range(ROWS)]),
            "text": pa.chunked_array([text] * (ROWS // 77) + [text[: ROWS % 77]]).combine_chunks(),
            "kind": pa.array([("red", "green", "blue")[i % 3] for i in range(ROWS)]).dictionary_encode(),
            "odd": pa.array([i % 2 == 1 for i in range(ROWS)]),
        }
    )
    return pa.concat_tables([whole.slice(first, chunk_rows) for first in range(0, ROWS, chunk_rows)])


CONDITIONS = ("odd", "value < 50 or value is null", "kind = 'red' and text like '%3%'", "row >= 139999", "row < 0")


class SameAsOfAFilteredTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.t = numbers()

    def both(self, where):
        return [(self.t, where), (pa.table(quern.filter(self.t, where)), None)]

    def test_aggregate(self):
        aggs = "count(*), sum(value), min(text), max(kind), count(row) filter (where odd)"
        for where in CONDITIONS:
            for by in ("group", "text, kind", None):
                answers = [sorted_rows(quern.aggregate(t, by=by, aggs=aggs, where=w, threads=3))
                           for t, w in self.both(where)]
                self.assertEqual(answers[0], answers[1], (where, by))

    def test_sort(self):
        for where in CONDITIONS:
            for limit in (None, 10):
                answers = [columns(quern.sort(t, by="kind, value desc, row", limit=limit, where=w, threads=3))
                           for t, w in self.both(where)]
                self.assertTrue(answers[0] == answers[1], where)

    def test_join(self):
        build = pa.table({"group": pa.array(range(0, 1009, 3), pa.int64()),
                          "name": [f"the name of {i}" for i in range(0, 1009, 3)]})
        for where in CONDITIONS:
            for how in ("inner", "left", "anti", "mark"):
                answers = [columns(quern.join(t, build, on="group", how=how, probe_where=w, threads=3))
                           for t, w in self.both(where)]
                self.assertTrue(answers[0] == answers[1], (where, how))
            for how in ("inner", "right", "right_semi", "right_anti"):
                answers = [
                    quern.join(build, t, on="group", how=how, build_where=w, select="row, text, kind", threads=3)
                    for t, w in self.both(where)
                ]
                answers = [columns(quern.sort(answer, by="row", threads=1)) for answer in answers]
                self.assertTrue(answers[0] == answers[1], (where, how))

    def test_join_as_a_stream(self):
        build = pa.table({"group": pa.array([1, 2, 3], pa.int32())})
        reader = quern.join(self.t, build, on="group", how="full", probe_where="odd and row < 100000", select="row",
                            stream=True)
        whole = quern.join(self.t, build, on="group", how="full", probe_where="odd and row < 100000", select="row")
        self.assertEqual([row for batch in reader for row in rows(batch)], rows(whole))


class OrderOfRows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.t = numbers()

    def test_first_and_last(self):
        firsts = {}
        for row in range(1, ROWS, 2):
            first, _ = firsts.get(row * 7919 % 1009, (row, row))
            firsts[row * 7919 % 1009] = (first, row)
        expected = sorted((group, first, last) for group, (first, last) in firsts.items())
        for stream in (False, True):
            answer = quern.aggregate(self.t, by="group", aggs="first(row), last(row)", where="odd", threads=3,
                                     stream=stream)
            self.assertEqual(sorted(rows(answer)), expected)

    def test_string_agg(self):
        chosen = [9, 30_003, 30_004, 70_008, 139_998]
        answer = quern.aggregate(self.t, by="kind", aggs="string_agg(text, ',')", where=f"row in {tuple(chosen)}",
                                 threads=3)
        texts = [f"text number {row % 77 % 7} of some length" for row in chosen]
        green = texts.pop(2)
        self.assertEqual(sorted(rows(answer)), [("green", green), ("red", ",".join(texts))])

    def test_stable_sort(self):
        expected = sorted((row for row in range(ROWS) if row % 2), key=lambda row: row * 7919 % 1009)
        for stream in (False, True):
            answer = quern.sort(self.t, by="group", select="row", stable=True, where="odd", threads=3, stream=stream)
            self.assertEqual([row for (row,) in rows(answer)], expected)


class NoConversions(unittest.TestCase):
    def test_columns_are_read_as_they_are(self):
        result = quern.aggregate(numbers(), by="text, kind", aggs="count(*)", where="odd")
        self.assertEqual(result.stats["spec"], "aggregate keys=utf8_view:nullable,dictionary(i32,utf8) aggs=count_star")


class ManyGroups(unittest.TestCase):
    """Threads take part as long as groups are few; results do not depend on it."""

    def test_any_number(self):
        for divisor, threads in ((1, 2), (4, 2), (40, 2), (70_000, 2)):
            t = pa.table({"k": [i // divisor for i in range(ROWS)]})
            counts = rows(quern.aggregate(t, by="k", aggs="count(*)", threads=threads))
            self.assertEqual(sorted(counts),
                             [(k, min(divisor, ROWS - k * divisor)) for k in range((ROWS + divisor - 1) // divisor)])

    def test_seen_soon(self):
        t = pa.table({"k": [i * 7919 % 10_007 for i in range(ROWS)]})
        counts = dict(rows(quern.aggregate(t, by="k", aggs="count(*)", threads=2)))
        self.assertEqual((len(counts), sum(counts.values())), (10_007, ROWS))


class Arguments(unittest.TestCase):
    def test_of_a_join(self):
        joined = quern.join(items(), orders(), on="order = id", probe_where="qty >= 20", build_where="name is null",
                            select="order, qty")
        self.assertEqual(rows(joined), [(3, 20), (3, 30)])

    def test_errors(self):
        for argument, accepted in (("probe_where", "order, qty"), ("build_where", "id, name, price")):
            with self.assertRaises(ValueError) as error:
                quern.join(items(), orders(), on="order = id", **{argument: "nothing = 3"})
            side = argument.partition("_")[0]
            self.assertEqual(message_of(error), f"unknown column of {side}: nothing; accepted: {accepted}")
        with self.assertRaisesRegex(ValueError, "^bad constant in build_where: "):
            quern.join(items(), orders(), on="order = id", build_where="price > 'x'")


if __name__ == "__main__":
    unittest.main()
