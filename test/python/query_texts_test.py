# SPDX-License-Identifier: Apache-2.0
"""Queries whose texts are hard: names that hide others, comments, quotes, limits beyond 64 bits, dictionaries behind
joins and sorts, columns that nobody wants; and the line and the names of errors."""

import unittest

from tables import pa, quern

T = pa.table({"a": pa.array([1, 2, None, 4], pa.int8()), "b": [1, 0, 3, 4], "s": ["x", "y", None, "X"],
              "f": [True, False, None, True], "mark": [1, 2, 3, 4]})
D = pa.table({"word": pa.array(["x", "y", "x"]).dictionary_encode(), "k": [1, 2, 3]})
NESTED = pa.table({"list": [[1], [2]], "k": [1, 2]})
MOST = 2**64 - 3


def rows(text):
    return pa.table(quern.run(text, {"t": T, "d": D, "nested": NESTED})).to_pydict()


def error_of(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def refusal(text):
    return error_of(lambda: rows(text))


class Filters(unittest.TestCase):
    def test_a_name_with_signs_is_an_expression_where_no_quotes_say_otherwise(self):
        self.assertEqual(rows("scan t\nfilter b*2 > 2\nselect b"), {"b": [3, 4]})
        self.assertEqual(rows("scan t\nfilter a-1 > 0 and a between 1 and 2\nselect a"), {"a": [2]})
        self.assertIn('unknown column: b*2;', refusal('scan t\nfilter "b*2" > 2'))

    def test_conditions_on_text_stand_beside_computed_ones(self):
        text = "scan t\nfilter b * 2 < 7 and s in ('x', 'x and y') and case when a > 1 or f then f end\nselect b"
        self.assertEqual(rows(text), {"b": [1]})


class Columns(unittest.TestCase):
    def test_dictionaries_are_plain_behind_a_sort_and_a_join(self):
        self.assertEqual(rows("scan d\nsort k desc\nselect word as one, word as two\nfilter one = 'x'"),
                         {"one": ["x", "x"], "two": ["x", "x"]})
        self.assertEqual(rows("scan t\nselect b\njoin d on b = k\naggregate max(word) as m, count(*) as n"),
                         {"m": ["x"], "n": [2]})

    def test_rows_are_counted_where_the_first_column_has_an_unsupported_type(self):
        self.assertEqual(rows("scan nested\naggregate count(*) as n"), {"n": [2]})

    def test_a_side_that_does_not_come_out_may_have_columns_of_any_type(self):
        self.assertEqual(rows("scan t\njoin.semi nested on b = k\nselect b"), {"b": [1]})
        self.assertEqual(rows("scan t\nselect b\njoin.semi nested on b = k"), {"b": [1]})
        self.assertEqual(rows("scan nested\njoin.right_anti t on k = b\nselect b"), {"b": [0, 3, 4]})
        self.assertEqual(rows("scan nested\njoin.right_anti t on k = b\nselect b, mark"),
                         {"b": [0, 3, 4], "mark": [2, 3, 4]})
        self.assertIn("line 2: unsupported type of column list of table nested:",
                      refusal("scan t\njoin nested on b = k"))

    def test_no_join_gives_two_columns_named_mark(self):
        self.assertIn("line 3: column of the name that a join gives: mark;",
                      refusal("scan t\nselect b, mark\njoin.mark d on b = k"))
        self.assertEqual(rows("scan t\nselect b, mark\njoin.mark d on b = k\nselect b"), {"b": [1, 0, 3, 4]})


class Limits(unittest.TestCase):
    def test_limits_that_no_sort_reaches(self):
        self.assertEqual(rows(f"scan t\nsort b limit {MOST} offset 2\nselect b"), {"b": [3, 4]})
        self.assertEqual(rows(f"scan t\nselect b\nsort b limit 2 offset 1\nlimit 1 offset {MOST + 1}"), {"b": []})

    def test_an_offset_alone_is_refused(self):
        self.assertIn("offset of a sort without a limit: 1;",
                      error_of(lambda: quern.scan(T).sort("b", offset=1)))


class Errors(unittest.TestCase):
    def test_the_line_is_that_of_the_step_in_the_relation_that_is_named(self):
        text = "r:\n  scan t\n  filter a > 'x'\ns:\n  scan t\n  join r on a = a\nscan s"
        self.assertTrue(refusal(text.replace("\nscan s", "\nlast:\n  scan s")).startswith("line 3: "))

    def test_all_names_are_listed_though_some_are_not_wanted(self):
        self.assertIn("unknown column: n; accepted: a, b, s, f, mark", refusal("scan t\nfilter n > 1\nselect a"))

    def test_names_of_a_side_that_does_not_come_out_are_not_listed(self):
        self.assertIn("line 3: unknown column: n; accepted: k, word",
                      refusal("scan t\njoin.right_semi d on b = k\nfilter n > 1\nselect k"))
        self.assertIn("line 3: unknown column: n; accepted: b, a, s, f, mark",
                      refusal("scan t\njoin.semi d on b = k\nfilter n > 1\nselect b"))

    def test_relations_that_double_with_each_line(self):
        text = "r0:\nscan t\nselect b\n" + "".join(f"r{i + 1}:\nscan r{i}\njoin r{i} on b = b\n" for i in range(60))
        self.assertIn("relations that are used too often: 257 uses; accepted: up to 256;", refusal(text))


class Frames(unittest.TestCase):
    def test_comments_end_with_their_line(self):
        frame = quern.scan(T).filter("b > 0 -- some\n and b < 4").aggregate("f # key", "count(*) as n -- rows")
        self.assertEqual(pa.table(frame.sort("f").collect()).to_pydict(), {"f": [True, None], "n": [1, 1]})
        self.assertEqual(quern.scan(T).filter("s = 'a -- b # c'").text,
                         "result:\n  scan t0\n  filter s = 'a -- b # c'\n")

    def test_texts_and_names_of_several_lines(self):
        self.assertIn("quote that is open", error_of(lambda: quern.scan(T).filter("s = 'a\nb'")))
        self.assertIn("name in by with a line feed", error_of(lambda: quern.scan(T).aggregate(["a\nb"])))

    def test_one_expression_for_a_name(self):
        self.assertIn("bad expression in select: , a;", error_of(lambda: quern.scan(T).select(c="b, a")))
        self.assertIn("more than one aggregate for a name: x;",
                      error_of(lambda: quern.scan(T).aggregate(x="sum(a), sum(b)")))

    def test_no_relation_hides_a_table(self):
        small = quern.scan(T, name="r0").filter("b > 1").select("b as c, s")
        frame = quern.scan(T, name="r0").select("b").join(small, "b = c")
        self.assertEqual(pa.table(frame.collect()).to_pydict(), {"b": [3, 4], "c": [3, 4], "s": [None, "X"]})
        frame = quern.scan(D).select("k").join(small, "k = c")
        self.assertEqual(pa.table(frame.collect()).to_pydict(), {"k": [3], "c": [3], "s": [None]})


if __name__ == "__main__":
    unittest.main()
