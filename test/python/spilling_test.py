# SPDX-License-Identifier: Apache-2.0
"""Rows beyond a memory limit go to files: every operator, with the rows that it has without a limit; and what is said
where they cannot."""

import os
import tempfile
import unittest

from tables import pa, quern, rows

NUM_ROWS = 400_000  # some 30 MB of groups or of sorted rows
LIMIT = "16M"


def big(first=0, num_rows=NUM_ROWS):
    """Distinct keys in no order, with strings."""
    keys = [(number * 7919) % 1_000_003 + first for number in range(num_rows)]
    return pa.table({"k": keys, "s": [f"the text of the row with the key {key}" for key in keys]})


TABLE = big()


def in_order(result):
    return sorted(rows(result))


class Spilling(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def check_spills(self, call, read=rows):
        """call(**options): fails in memory, and answers the rows of no limit from files."""
        with self.assertRaisesRegex(MemoryError, "memory limit exceeded: .*limit 16777216"):
            read(call(memory_limit=LIMIT, spill_dir="off"))
        self.assertEqual(read(call(memory_limit=LIMIT, spill_dir=self.folder)), read(call()))
        self.assertEqual(os.listdir(self.folder), [])

    def test_aggregations(self):
        def call(**options):
            groups = quern.aggregate(TABLE, by="k, s", aggs="count(*), sum(k)", reader=True, **options)
            return sorted(row for batch in groups for row in rows(batch))

        self.check_spills(call, lambda made: made)

    def test_sorts(self):
        def call(**options):
            ordered = quern.sort(TABLE, by="s desc, k", reader=True, **options)
            return [row for batch in ordered for row in rows(batch)]

        self.check_spills(call, lambda made: made)

    def test_set_operations(self):
        other = big(0, NUM_ROWS - 5000)
        self.check_spills(lambda **options: quern.except_(TABLE, other, by="k, s", **options), in_order)

    def test_joins_of_every_kind(self):
        """Rows that were written come out behind all others, whatever the kind. A table of so many strings has no room
        in memory, of whatever kind the join is."""
        build, probe = big(0, 450_000), big(0, 470_000).slice(440_000, 20_000)
        for how in ("inner", "left", "right", "full", "semi", "anti", "right_semi", "right_anti", "anti_null_aware",
                    "mark", "single"):  # fmt: skip
            def call(how=how, **options):
                joined = quern.join(probe, build, on="s", how=how, stream=True, **options)
                return sorted((row for batch in joined for row in rows(batch)), key=repr)

            with self.subTest(how):
                self.check_spills(call, lambda made: made)

    def test_joins_of_queries(self):
        build, probe = big(0, 450_000), big(0, 470_000).slice(440_000, 20_000)
        renamed = quern.scan(build).select("k as bk, s as bs")
        for how in ("inner", "full", "semi", "mark"):
            def call(how=how, **options):
                joined = quern.scan(probe).join(renamed, "s = bs", how)
                return joined.aggregate(None, "count(*) as n, sum(k) as k, min(s) as least").collect(**options)

            with self.subTest(how):
                self.check_spills(call)

    def test_queries(self):
        def call(**options):
            by_key = quern.scan(TABLE).aggregate("k, s", "count(*) as n")
            return by_key.aggregate(None, "count(*) as groups, sum(n) as n").collect(**options)

        self.check_spills(call)

    def test_a_limit_on_files(self):
        with self.assertRaisesRegex(
                OSError, r"^spilled rows: more than their limit: \d+ bytes; accepted: up to 1048576$"):
            quern.sort(TABLE, by="s", memory_limit=LIMIT, spill_dir=self.folder, spill_bytes="1M")

    def test_bad_arguments(self):
        t = pa.table({"k": [1]})
        with self.assertRaisesRegex(TypeError, '^bad type of spill_dir: int; accepted: a path, or "off"$'):
            quern.sort(t, by="k", spill_dir=5)
        missing = os.path.join(self.folder, "missing")
        with self.assertRaisesRegex(ValueError, f'^no folder for rows that are spilled: {missing}; accepted: a folder '
                                    'that exists, or "off"$'):
            quern.join(t, t, on="k", memory_limit=LIMIT, spill_dir=missing)
        with self.assertRaisesRegex(ValueError, "^bad spill_bytes: lots; accepted: bytes, or a text as 512M or 2G$"):
            quern.union(t, t, spill_bytes="lots")

    def test_a_folder_that_goes_away(self):
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)

        def batches():
            yield from TABLE.slice(0, 1000).to_batches()
            os.rmdir(gone)
            yield from TABLE.to_batches()

        reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
        with self.assertRaisesRegex(OSError, f"^spilled rows: no file can be made in {gone}: No such file or directory"
                                    "; accepted: a folder on a device with free space$"):
            quern.sort(reader, by="s", memory_limit=LIMIT, spill_dir=gone, stream=True, reader=True)


if __name__ == "__main__":
    unittest.main()
