# SPDX-License-Identifier: Apache-2.0
"""Machine facts, tuning and profiles: their contents, their effect on kernels, where files are written, Ctrl-C. Nothing
depends on how fast this machine is: tables are small, budgets tiny, and entries that must be there are written here."""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

os.environ["QUERN_PROFILE"] = "off"  # read when the first kernel is made: no test goes by a user's profile or writes
                                     # one

from tables import message_of, pa, quern

SPEC = "join.inner keys=i64"
ENTRIES = """\
entry probe_open packed 2^18 pipeline=1 threads=1 setting=48 ns=3 default_ns=4 off_ns=6 noise=0.01
entry probe_open packed 2^25 pipeline=1 threads=1 setting=default ns=5 default_ns=5 off_ns=15 noise=0.02
entry update_open string 2^20 pipeline=1 threads=2 setting=all/hint=nta ns=4.5 default_ns=5 off_ns=9 noise=0.03
"""
TINY = {"budget": 0.3, "max_size": "32K", "threads": 1, "progress": False}


def profile_of(entries=ENTRIES, machine=None):
    """Of this machine, unless another one's line is given."""
    machine = machine or "machine " + quern.tune(effort="estimate").signature
    lines = ["quern-profile 1", machine, *entries.splitlines(), f"end {len(entries.splitlines())}", ""]
    return quern.Profile.parse("\n".join(lines))


def schedule():
    """What a plan says of probing slots."""
    plan = quern.compile(SPEC, engine="generic").plan
    return next(line for line in plan.splitlines() if line.startswith("prefetch_probe_open"))


class Machines(unittest.TestCase):
    def test_facts(self):
        machine = quern.machine(0.1, max_size="64K", progress=False)
        self.assertEqual({fact.bytes for fact in machine.memory}, {1 << 15, 1 << 16})
        self.assertTrue(all(fact.latency_ns > 0 and fact.read_ns > 0 and fact.write_ns > 0 for fact in machine.memory))
        self.assertEqual(json.loads(machine.json()), machine.dict())
        self.assertEqual(set(machine.caches), {"l1_bytes", "l2_bytes", "l3_bytes"})
        self.assertIn("zero_stores_are_cheaper", machine.stores)
        self.assertGreater(machine.sequential["read_gb_s"], 0)
        self.assertGreater(machine.signature["cores"], 0)
        self.assertRegex(repr(machine), "^<quern.Machine: .*; a random line of 64 KiB in [0-9]+ ns>$")
        self.assertIn("ns of a random line", str(machine))
        self.assertGreater(machine.seconds, 0)
        self.assertTrue(machine.features)

    def test_bad_arguments(self):
        for call, text in (
            (lambda: quern.machine(0), "bad seconds: 0; accepted: seconds from 0.1 to 600"),
            (lambda: quern.machine("long"), "bad seconds: long; accepted: seconds from 0.1 to 600"),
            (lambda: quern.machine(max_size="5"), "bad max_size: 5; accepted: 32K to 2G"),
            (lambda: quern.machine(max_size="big"), "bad max_size: big; accepted: bytes, or a text as 512M or 2G"),
        ):
            with self.assertRaises(ValueError) as error:
                call()
            self.assertEqual(message_of(error), text)


class Profiles(unittest.TestCase):
    def tearDown(self):
        quern.use_profile("off")

    def test_rows(self):
        profile = profile_of()
        self.assertEqual(len(profile), 3)
        first = profile.entries[0]
        self.assertEqual(first, ("probe_open", "packed", 1, 1, 1 << 18, "48", 3.0, 4.0, 6.0, 0.25, 0.01))
        self.assertEqual(profile.rows()[0], first._asdict())
        table = pa.table(profile)
        self.assertEqual(table.to_pylist(), profile.rows())
        self.assertEqual(pa.schema(profile), table.schema)
        self.assertEqual(pa.table(profile_of("")).num_rows, 0)
        self.assertEqual(repr(profile), "<quern.Profile: this machine's, 3 entries, 2 better than by default>")
        self.assertIn("<td>256 KiB</td>", profile._repr_html_())
        self.assertIsNone(profile.machine)
        self.assertEqual(quern.Profile.parse(profile.text).entries, profile.entries)

    def test_what_kernels_go_by(self):
        quern.use_profile("off")
        self.assertIsNone(quern.profile())
        self.assertIn("; estimate", schedule())
        quern.use_profile(profile_of())
        self.assertEqual(quern.profile().entries, profile_of().entries)
        self.assertIn("; profile: 2 sizes exact", schedule())
        self.assertIn("48@", profile_of().schedules()["probe_open"])
        self.assertEqual(len(quern.join(pa.table({"k": range(100)}), pa.table({"k": range(0, 100, 2)}), on="k")), 50)
        quern.use_profile(None)  # QUERN_PROFILE is off here
        self.assertIn("; estimate", schedule())

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "new" / "a.profile"
            saved = profile_of().save(path)
            self.assertEqual((saved.path, path.read_text()), (str(path), saved.text))
            self.assertEqual(quern.Profile.read(path).entries, saved.entries)
            quern.use_profile(path)
            self.assertEqual(quern.profile().path, str(path))
            with self.assertRaisesRegex(FileNotFoundError,
                                        "no profile: .*; accepted: a file that quern tune has written"):
                quern.use_profile(path.with_name("b.profile"))
            with self.assertRaisesRegex(RuntimeError, "cannot read profile: "):
                quern.Profile.read(folder)
            self.assertEqual(quern.profile().path, str(path))

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "^text:3: unknown"):
            profile_of("entry probe_magic word 2^18 pipeline=1 threads=1 setting=48 ns=3 default_ns=4 off_ns=6 "
                       "noise=0.01\n")
        other = profile_of(machine='machine cpu_name="Golden CPU 9000" cpu=znver4 microcode=0x1 hypervisor="" '
                                   'l2_bytes=1048576 '
                                   'l3_bytes=33554432 huge_pages=madvise cores=8')  # fmt: skip
        self.assertIn("cpu_name", other.difference)
        with self.assertRaisesRegex(
                RuntimeError, r"^profile of another machine: a Profile \(.*\); accepted: one of this machine, which"):
            quern.use_profile(other)
        with self.assertRaisesRegex(RuntimeError, "machine"):
            profile_of().merge(other)
        with self.assertRaisesRegex(
                ValueError, "^report of a profile that was read: entries alone; accepted: one that quern.tune ha"):
            profile_of().csv
        with self.assertRaisesRegex(ValueError, "^unknown keys: words; accepted: packed, fixed, string"):
            profile_of().schedules("words")

    def test_merge_and_diff(self):
        lines = ENTRIES.splitlines(keepends=True)
        changed = profile_of(lines[0].replace("setting=48", "setting=32"))
        both = profile_of().merge(changed)
        self.assertEqual([entry.setting for entry in both.entries], ["32", "default", "all/hint=nta"])
        self.assertEqual([line[0] for line in profile_of().diff(changed).splitlines()], ["~", "-", "-"])


class Tuning(unittest.TestCase):
    def setUp(self):
        self.addCleanup(quern.use_profile, "off")
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_measures(self):
        seen = []
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            profile = quern.tune(quern.compile(SPEC),
                                 **{**TINY, "budget": 1.0, "progress": lambda done, total: seen.append((done, total))})
            profile.report(page)
            self.assertIn("<svg", page.read_text())
        self.assertEqual({entry.loop.split("_")[0] for entry in profile.entries} - {"probe", "build"}, set())
        self.assertIsNotNone(profile.machine)
        self.assertEqual((profile.stopped, profile.path), (False, None))
        self.assertGreater(profile.seconds, 0)
        self.assertTrue(seen and all(0 <= done <= total == 1.0 for done, total in seen))
        self.assertEqual(seen, sorted(seen))
        rows = list(csv.DictReader(io.StringIO(profile.csv)))
        self.assertEqual({row["loop"] for row in rows}, {entry.loop for entry in profile.entries})
        self.assertIn(f"{len(profile)} cells in", profile.table)
        self.assertIsNone(quern.profile())  # QUERN_PROFILE=off: neither written nor used

    def test_estimates_measure_nothing(self):
        profile = quern.tune(effort="estimate")
        self.assertEqual((len(profile), profile.machine), (0, None))
        self.assertIn("; estimate", profile.schedules("string")["gather"])

    def test_files_are_begun_with_and_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "my.profile"
            profile_of().save(path)
            profile = quern.tune(SPEC, **TINY, profile=path)
            self.assertEqual(profile.path, str(path))
            self.assertLessEqual({entry[:5] for entry in profile_of().entries},
                                 {entry[:5] for entry in profile.entries})
            self.assertEqual(path.read_text(), profile.text)
            before = path.read_text()
            quern.tune(SPEC, **TINY, profile=path, write=False)
            self.assertEqual(path.read_text(), before)
            self.assertIsNone(quern.tune(SPEC, **TINY, profile=profile).path)
            path.write_text("no profile")
            with self.assertRaisesRegex(ValueError, "my.profile:1: "):
                quern.tune(SPEC, **TINY, profile=path)

    def test_the_home(self):
        """Where QUERN_PROFILE is not set, this machine's profile is written and used; where it is off, nothing is."""
        script = (
            "import quern\n"
            f"profile = quern.tune({SPEC!r}, budget=0.3, max_size='32K', threads=1)\n"
            "print(profile.path, quern.profile() is not None, quern.profile() is not None and quern.profile().text == "
            "profile.text)"
        )
        with tempfile.TemporaryDirectory() as folder:
            environment = {name: value for name, value in os.environ.items() if name != "QUERN_PROFILE"}
            environment.update(HOME=folder, XDG_CONFIG_HOME=folder + "/config", QUERN_CACHE="off")

            def ran(**more):
                run = subprocess.run(
                    [sys.executable, "-c", script], env={**environment, **more}, capture_output=True, text=True,
                    check=False, timeout=60 )
                self.assertEqual(run.returncode, 0, run.stderr)
                return run.stdout

            self.assertEqual(ran(QUERN_PROFILE="off"), "None False False\n")
            self.assertEqual(os.listdir(folder), [])
            self.assertRegex(ran(), f"^{folder}/config/quern/.*[.]profile True True\n$")
            self.assertEqual(len(os.listdir(folder + "/config/quern")), 1)
            self.assertEqual(ran(QUERN_PROFILE=folder + "/named"), f"{folder}/named True True\n")

    def test_bad_arguments(self):
        for call, text in (
            (lambda: quern.tune(effort="patience"),
             "unknown effort: patience; did you mean patient? accepted: estimate, measure, patient"),
            (lambda: quern.tune(budget=0.01), "bad budget: 0.01; accepted: seconds from 0.1 to 86400"),
            (lambda: quern.tune(threads=0), "bad number of threads: 0; accepted: 1 to 1024"),
            (lambda: quern.tune(max_size=1), "bad max_size: 1; accepted: 32K to 2G"),
            (lambda: quern.tune("filter i64 > 3", **TINY),
             "spec to tune: filter i64 > 3; accepted: joins, aggregations and sorts, which touch tables at random, "
             "and pipelines"),
        ):  # fmt: skip
            with self.assertRaises(ValueError) as error:
                call()
            self.assertEqual(message_of(error), text)
        with self.assertRaises(ValueError):
            quern.tune("join.iner keys=i64", **TINY)
        with self.assertRaisesRegex(TypeError, "bad type of specs: int"):
            quern.tune(5)
        with self.assertRaisesRegex(TypeError, "bad type of progress"):
            quern.tune(SPEC, progress=3)

    def test_one_at_a_time(self):
        errors = []

        def second(done, total):
            if not errors:
                try:
                    quern.tune(SPEC, **TINY)
                except RuntimeError as error:
                    errors.append(str(error))

        quern.tune(SPEC, **{**TINY, "progress": second})
        self.assertEqual(
            errors, ["tuning beside another one: two would measure each other; accepted: one at a time in a process"])

    def test_a_progress_that_raises(self):
        def fail(done, total):
            raise KeyError("mine")

        for call in (lambda: quern.tune(SPEC, budget=60, max_size="1M", progress=fail),
                     lambda: quern.machine(60, progress=fail)):
            with self.assertRaisesRegex(KeyError, "mine"):
                call()

    def test_ctrl_c_ends_it_and_keeps_what_there_is(self):
        pressed = []

        def press(done, total):
            if not pressed:
                pressed.append(done)
                signal.raise_signal(signal.SIGINT)

        profile = quern.tune(SPEC, budget=60, max_size="64K", threads=1, progress=press)
        self.assertTrue(profile.stopped)
        self.assertIn(", stopped>", repr(profile))

    def test_ctrl_c_of_machine_facts(self):
        def press(done, total):
            signal.raise_signal(signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            quern.machine(60, max_size="1M", progress=press)


class Pictures(unittest.TestCase):
    def test_without_matplotlib(self):
        with unittest.mock.patch.dict(sys.modules, {"matplotlib": None}), self.assertRaises(ImportError) as error:
            quern.plot_profile(profile_of())
        self.assertEqual(message_of(error),
                         "no matplotlib: plot_profile draws with it; accepted: pip install 'quern[plot]'")

    def test_panels(self):
        try:
            import matplotlib
        except ImportError:
            raise unittest.SkipTest("no matplotlib") from None
        matplotlib.use("Agg")
        from matplotlib import pyplot

        (axes,) = quern.plot_profile(profile_of())
        self.assertEqual(axes.get_title(), "probe_open, packed keys")
        lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines
                 if not line.get_label().startswith("_")}
        self.assertEqual(lines, {"off": [6, 15], "default": [4, 5], "chosen": [3, 5]})
        self.assertIn("48", [text.get_text() for text in axes.texts])
        axes.figure.savefig(io.BytesIO(), format="png")
        figure, own = pyplot.subplots()
        self.assertEqual(quern.plot_profile(profile_of(), own, threads=2), [own])
        self.assertEqual(own.get_title(), "update_open, string keys")
        for call, text in (
            (lambda: quern.plot_profile(),
             "no profile to plot: kernels go by estimates; accepted: after quern.tune, or a Profile, or"),
            (lambda: quern.plot_profile(profile_of(), threads=3),
             "no entries to plot: threads=3 pipeline=1; accepted: threads=1 "),
            (lambda: quern.plot_profile(profile_of(), [own, own]),
             "number of axes: 2; accepted: 1, one for each of probe_open, packed keys"),
        ):
            with self.assertRaises(ValueError) as error:
                call()
            self.assertIn(text, message_of(error))
        pyplot.close("all")


if __name__ == "__main__":
    unittest.main()
