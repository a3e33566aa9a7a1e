# SPDX-License-Identifier: Apache-2.0
"""Results as streams: any number of times, lazily with stream=True; Ctrl-C; threads of Python."""

import gc
import io
import itertools
import signal
import threading
import time
import unittest

from tables import items, orders, pa, quern, rows

from quern._progress import ProgressBar

SCHEMA = pa.schema({"k": pa.int64()})


class Counted:
    """A producer that tells how many of its batches were pulled."""

    def __init__(self, num_batches, rows_each=1000):
        self.pulled = 0
        self.reader = pa.RecordBatchReader.from_batches(SCHEMA, self._batches(num_batches, rows_each))

    def _batches(self, num_batches, rows_each):
        for number in range(num_batches):
            self.pulled += 1
            yield pa.record_batch({"k": pa.array(range(number * rows_each, (number + 1) * rows_each))})

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


class Results(unittest.TestCase):
    def test_exported_again_and_again(self):
        result = quern.join(orders(), items(), on="id = order")
        self.assertEqual(rows(result), rows(result))
        self.assertEqual(pa.schema(result), pa.table(result).schema)
        capsule = result.__arrow_c_stream__()
        table = pa.table(result)
        del result, capsule
        gc.collect()
        self.assertEqual(len(table), 3)
        table.validate(full=True)

    def test_what_it_says_of_itself(self):
        result = quern.sort(orders(), by="id")
        self.assertEqual((len(result), result.num_rows, result.column_names), (5, 5, ["id", "name", "price"]))
        self.assertEqual(repr(result), "<quern.Result: 5 rows, columns id, name, price>")
        self.assertLessEqual({"spec", "engine", "run_ms", "threads", "num_rows"}, set(result.stats))

    def test_of_results(self):
        joined = quern.join(orders(), items(), on="id = order")
        groups = quern.aggregate(joined, by="id", aggs="sum(qty) as qty")
        self.assertEqual(rows(quern.sort(groups, by="id")), [(2, 10), (3, 50)])


class Readers(unittest.TestCase):
    def test_pulls_as_it_is_read(self):
        probe = Counted(100)
        reader = quern.join(probe, pa.table({"k": range(0, 100_000, 2)}), on="k", select="probe.k", stream=True)
        self.assertEqual(reader.column_names, ["k"])
        self.assertEqual(probe.pulled, 0)
        self.assertEqual(len(next(reader)), 500)
        self.assertLessEqual(probe.pulled, 2)
        self.assertEqual(sum(len(batch) for batch in reader), 49_500)

    def test_given_to_a_consumer(self):
        reader = quern.filter(Counted(50), "k >= 25000", stream=True)
        self.assertEqual(pa.schema(reader).names, ["k"])
        self.assertEqual(pa.table(reader)["k"].to_pylist(), list(range(25_000, 50_000)))
        with self.assertRaisesRegex(RuntimeError, "reader that was read before"):
            pa.table(reader)
        with self.assertRaisesRegex(RuntimeError, "reader that was given away"):
            next(reader)

    def test_rows_that_come_alone(self):
        reader = quern.join(Counted(2), pa.table({"k": [5, 5000]}), on="k", how="right", select="build.k", stream=True)
        self.assertEqual([row for batch in reader for row in rows(batch)], [(5,), (5000,)])

    def test_dropped_half_way(self):
        probe = Counted(100)
        reader = quern.join(probe, pa.table({"k": [1]}), on="k", stream=True)
        next(reader)
        del reader
        gc.collect()
        self.assertLess(probe.pulled, 100)

    def test_aggregations_and_sorts_pull(self):
        self.assertEqual(rows(quern.aggregate(Counted(100), aggs="count(*)", stream=True, threads=2)), [(100_000,)])
        self.assertEqual(rows(quern.sort(Counted(100), by="k desc", limit=1, stream=True, threads=2)), [(99_999,)])


class Interrupts(unittest.TestCase):
    def setUp(self):
        # A process that was started in the background of a shell ignores Ctrl-C.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def endless(self):
        batch = pa.record_batch({"k": pa.array(range(1000))})
        return pa.RecordBatchReader.from_batches(SCHEMA, itertools.repeat(batch))

    def interrupted(self, call):
        """Ctrl-C again and again, since Python itself may lose one, where it comes in the middle of a finalizer."""
        done = threading.Event()

        def press():
            while not done.wait(0.3):
                signal.raise_signal(signal.SIGINT)

        presser = threading.Thread(target=press)
        with self.assertRaises(KeyboardInterrupt):
            presser.start()
            try:
                call()
                time.sleep(10)  # where the signal came after the end
            finally:
                done.set()
        presser.join()

    def test_while_a_batch_is_probed(self):
        """Each of 60,000 rows has 60,000 candidates: some 20 seconds, if nothing ended them."""
        left = pa.table({"k": [1] * 60_000, "x": range(60_000)})
        right = pa.table({"k": [1] * 60_000, "y": [-1] * 60_000})
        start = time.process_time()  # of all threads; it does not pass while others use the machine
        self.interrupted(lambda: quern.join(left, right, on="k", residual="x < y", how="semi"))
        self.assertLess(time.process_time() - start, 2)

    def test_while_threads_work(self):
        self.interrupted(lambda: quern.aggregate(self.endless(), by="k", aggs="count(*)", stream=True, threads=2))

    def test_while_an_input_is_collected(self):
        self.interrupted(lambda: quern.sort(self.endless(), by="k"))

    def test_while_a_consumer_reads(self):
        def read():
            try:
                for _ in pa.RecordBatchReader.from_stream(quern.filter(self.endless(), "k = -1", stream=True)):
                    pass
            except OSError:
                time.sleep(1)  # Python raises what the signal wants here

        self.interrupted(read)


class Stopped(Exception):
    pass


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressOfCalls(unittest.TestCase):
    def test_function(self):
        t = pa.table({"k": range(300_000)})
        calls = {
            "sort": (lambda told: quern.sort(t, by="k desc", progress=told), 300_000),
            "aggregate": (lambda told: quern.aggregate(t, by="k", progress=told, where="k < 5"), 300_000),
            "join": (lambda told: quern.join(t, t, on="k", select=[], progress=told), 600_000),
            "table": (lambda told: quern.join(t, t.slice(0, 10), on="k", stream=True, progress=told), 10),
        }
        for name, (call, total) in calls.items():
            with self.subTest(name):
                told = []
                call(lambda done, total: told.append((done, total)))
                self.assertEqual(told[-1], (total, total))
                self.assertEqual(told, sorted(told))

    def test_of_a_stream(self):
        told = []
        quern.aggregate(Counted(100), aggs="count(*)", stream=True, threads=2,
                        progress=lambda *numbers: told.append(numbers))
        self.assertEqual(told[-1], (100_000, None))

    def test_what_it_raises_ends_the_call(self):
        batch = pa.record_batch({"k": pa.array(range(1000))})
        endless = pa.RecordBatchReader.from_batches(SCHEMA, itertools.repeat(batch))

        def stop(done, total):
            if done > 10_000:
                raise Stopped

        with self.assertRaises(Stopped):
            quern.aggregate(endless, by="k", aggs="count(*)", stream=True, threads=2, progress=stop)

    def test_bar(self):
        terminal, file = Terminal(), io.StringIO()
        for stream in (terminal, file):
            with ProgressBar(1000, "sort", stream) as bar:
                bar.update(400, "half way")
        self.assertEqual(file.getvalue(), "")
        line = terminal.getvalue().split("\r")[1]
        self.assertRegex(line, r"^\[########\.{12}\]  40%  sort: 400 of 1,000, half way, \d+\.\d s$")
        self.assertTrue(terminal.getvalue().endswith("\r" + " " * len(line) + "\r"))
        terminal = Terminal()
        ProgressBar(None, "sort", terminal).update(12_345)
        self.assertRegex(terminal.getvalue(), r"^\rsort: 12,345 rows, \d+\.\d s$")


class Threads(unittest.TestCase):
    def test_several_python_threads(self):
        t = pa.table({"k": [i % 100 for i in range(200_000)]})
        answers = []

        def run():
            for _ in range(3):
                answers.append(len(quern.join(t, quern.aggregate(t, by="k"), on="k", select=[], threads=2)))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [200_000] * 12)

    def test_other_threads_go_on(self):
        t = pa.table({"k": range(1_000_000), "s": [f"a text of some length {i}" for i in range(1_000_000)]})
        ticks = 0
        done = threading.Event()

        def work():
            for _ in range(100):  # a machine that does much else may let one sort end before this thread runs again
                quern.sort(t, by="s desc", threads=1)
                if ticks > 5:
                    break
            done.set()

        worker = threading.Thread(target=work)
        worker.start()
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)
        worker.join()
        self.assertGreater(ticks, 5)


class Kernels(unittest.TestCase):
    def test_stages(self):
        kernel = quern.compile("join.inner build=i32 keys=i64", machine="znver4")
        self.assertEqual(kernel.spec, "join.inner keys=i64 build=i32")
        self.assertIn("layout = auto", kernel.plan)
        self.assertIn("define", kernel.ir)
        self.assertIn("define", kernel.opt)
        self.assertIn(".text", kernel.asm)
        self.assertEqual(kernel.stats["engine"], "jit")
        self.assertIn("<details>", kernel._repr_html_())
        self.assertTrue(repr(kernel).startswith("<quern.Kernel: join.inner keys=i64 build=i32; jit, "))
        self.assertEqual(quern.compile("sort keys=i64:out", engine="generic").stats["engine"], "generic")
        self.assertIn("dense", quern.compile("join.inner keys=i64", params={"layout": "dense"}).plan)

    def test_in_notebooks(self):
        kernel = quern.compile("join.inner keys=i64:nullable build=i32")
        html = kernel._repr_html_()
        for part in ("<code>join.inner keys=i64:nullable build=i32</code>", "<th>code_bytes</th>",
                     "<summary>plan</summary><pre>plan join"):
            self.assertIn(part, html)
        self.assertNotIn("<i8", html)
        t = pa.table({"<b>": ["<i>", None], "t": pa.array([1000, None], pa.time64("ns")), "year": [2026, 5]})
        html = quern.sort(t, by="year desc")._repr_html_()
        self.assertIn("<th>&lt;b&gt;<br><small>utf8</small></th>", html)
        first = "<td>&lt;i&gt;</td><td>00:00:00.000001</td><td class=number>2026</td>"
        second = '<td class="null">null</td><td class="null">null</td><td class=number>5</td>'
        self.assertIn(f"<tr>{first}</tr><tr>{second}</tr>", html)
        self.assertIn("2 rows", html)
        self.assertIn("0 rows", quern.filter(t, "year < 0")._repr_html_())
        self.assertIn("3 rows", quern.join(orders(), items(), on="id = order", select=[])._repr_html_())

    def test_versions(self):
        self.assertRegex(quern.version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(quern.abi_version // 1000, 1)


if __name__ == "__main__":
    unittest.main()
