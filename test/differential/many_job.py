# SPDX-License-Identifier: Apache-2.0
"""One spec and its data sets, whatever the operator: the kernels, the batches, the run of each data set under both
engines, and how failures are told.

    job = Job(seed, number, calls); job.run(); failures = job.check(duckdb)

Each data set is run by a compiled and by a generic kernel. There are two sets of parameters, the default and a random
one, which data sets take in turn; in half of them the generic kernel has the other set.
"""
import collections
import ctypes
import random

import numpy as np

import many_data
import quern_abi
from abi_structs import InputOptions, OutputOptions, sized
from many_abi import ArrowSide, Batches, Collector, Cut

ENGINES = ("jit", "generic")
MOST_FAILURES, MOST_ROWS = 5, 15_000
MOST_ATTEMPTS, NEXT_ATTEMPT = 8, 1_000_000
FEW_ROWS = 300              # up to which a result may have 7 rows
MOST_ROWS_OF_ONE_HASH = 64  # where all keys collide, every row meets every other


class Disagreement(Exception):
    """What is wrong, and of which data set."""

    def __init__(self, number, text):
        super().__init__(text)
        self.number = number


class Side:
    """The batches of one side (of a join; the only one of other operators)."""

    def __init__(self, rng, sets, columns, keys, payload, most_cuts=3):
        self.sets, self.columns = sets, columns
        self.arrays = {name: column.array() for name, column in columns.items()}
        keys = [self.arrays[name] for name in keys]
        payload = [None if name is None else self.arrays[name] for name in payload]
        cuts, self.first_cut = [], np.zeros(sets.count + 1, np.int64)
        for number in range(sets.count):
            cuts += _cuts(rng, sets, number, most_cuts)
            self.first_cut[number + 1] = len(cuts)
        self.batches = Batches(keys, payload, cuts)
        self.arrow = ArrowSide(keys, payload)
        if self.arrow.struct is None:
            sets.comes_as_arrow = np.zeros(sets.count, bool)

    def cuts_of(self, number):
        """The numbers of a data set's batches."""
        return range(self.first_cut[number], self.first_cut[number + 1])

    def bind(self, calls, number, job, port):
        """Where the data set comes as Arrow."""
        if self.sets.comes_as_arrow[number]:
            self.arrow.bind(calls, job, port)

    def feed(self, calls, number, cut, name, handle):
        """Calls `name` with one batch, or its form for Arrow arrays."""
        if self.sets.comes_as_arrow[number]:
            calls(f"{name}_arrow", handle, self.arrow.exported(self.batches.cuts[cut]), self.batches.rows_address(cut))
        else:
            calls(name, handle, self.batches.address(cut))

    def append(self, calls, number, cuts, job, port, copy_bytes=False):
        """Adds batches of a data set by one input."""
        options = sized(InputOptions, copy_bytes=copy_bytes)
        with calls.handle("input", job, port, ctypes.byref(options)) as rows:
            for cut in cuts:
                self.feed(calls, number, cut, "quern_input_append", rows)
            calls("quern_input_finish", rows)


def _cuts(rng, sets, number, most_cuts):
    """The batches of a data set: one to `most_cuts`, now and then none for no rows."""
    first, end = int(sets.first[number]), int(sets.end[number])
    pieces = rng.choice((1, 1, 1, 2, most_cuts))
    if first == end and pieces == 2:
        return []
    bounds = [first, *sorted(rng.randint(first, end) for _ in range(pieces - 1)), end]
    cuts = []
    for begin, stop in zip(bounds, bounds[1:]):
        selection = None
        if sets.selects[number]:
            selection = np.flatnonzero(sets.live[begin:stop]).astype(np.uint32)
        cuts.append(Cut(begin, stop, selection))
    return cuts


class ManyJob:
    """Subclasses: operator, case, sets (of which answers are told), types of the result's columns, run_set, compare."""
    operator = ""
    mixes_params = True  # whether an answer may be compared with that of other parameters

    def __init__(self, seed, number, num_sets):
        self.seed, self.number = seed, number
        self.rng = random.Random(f"many/{self.operator}/{seed}/{number}")
        self.np_rng = np.random.default_rng([seed, number, len(self.operator)])
        self.num_sets, self.only = num_sets, None
        self.counts = collections.Counter()
        self.marks = collections.Counter()  # what was covered

    def chosen(self, generate):
        """The case of this number; for odd numbers rather one with a collation among its keys."""
        for attempt in range(MOST_ATTEMPTS):
            case = generate(self.number + attempt * NEXT_ATTEMPT)
            if self.number % 2 == 0 or any(key.type.collation for key in case.keys):
                break
        return case

    def sizes(self, params):
        """Random sizes of the data sets, for these parameters."""
        most = MOST_ROWS_OF_ONE_HASH if "test.hash" in params else MOST_ROWS
        return many_data.random_set_sizes(self.np_rng, self.num_sets, params.get("batch_size", 1024), most)

    # ---- kernels ----

    def compile(self, library):
        """Two pairs of kernels: default parameters, and others; one pair where answers of both cannot be compared."""
        self.params = [{}, self.random_params()]
        if not self.mixes_params:
            self.params = [self.params[self.number % 4 != 0]]
        self.kernels = []
        for params in self.params:
            text = " ".join(f"{name}={value}" for name, value in params.items()) or None
            pair = [library.compile(self.spec, engine, text) for engine in ENGINES]
            for kernel, engine in zip(pair, ENGINES):
                if kernel.text("engine") != engine:
                    raise quern_abi.ContractError(f"asked for engine {engine}, got {kernel.text('engine')}")
            self.kernels.append(pair)
        self.batch_rows = [self.rng.choice((0, 0, 0, 1000, 7)) if self.sets.sizes[number] < FEW_ROWS else 1000
                           for number in range(self.num_sets)]

    def kernel_of(self, number, engine):
        which = number % len(self.kernels)
        if len(self.kernels) > 1 and engine == 1 and number % 4 >= 2:
            which = 1 - which
        return self.kernels[which][engine].handle.value

    # ---- running ----

    def run(self, calls, mark=lambda number: None):
        """Runs every data set under both engines."""
        self.answers, self.broken = [self.answer() for _ in ENGINES], []
        for number in range(self.num_sets) if self.only is None else [self.only]:
            mark(number)
            for engine, answer in enumerate(self.answers):
                answer.begin(number)
                try:
                    self.run_set(calls, self.kernel_of(number, engine), number, answer)
                    answer.end()
                except quern_abi.QuernError as error:
                    answer.end(error)
                except (quern_abi.ContractError, Disagreement) as error:
                    self.broken.append(Disagreement(number, f"{ENGINES[engine]}: {error}"))
                    answer.end()
            self.counts["cases"] += 1
            self.counts["errors"] += number in self.answers[0].errors

    def output(self, calls, number, job, port, **options):
        """An output for the results of a data set."""
        options = sized(OutputOptions, batch_rows=self.batch_rows[number], **options)
        return calls.handle("output", job, port, ctypes.byref(options))

    def answer(self):
        """What takes the results of one engine."""
        return Collector(self.types)

    def spoil(self, engines, at_least):
        """Changes an answer of these engines, of the first data set from a number on that has one. Answers its
        number."""
        for number in range(at_least, self.num_sets):
            if all([self.answers[engine].spoil(number) for engine in engines]):
                return number
        return None

    def check(self, duckdb):
        """Compares all answers; a list of Disagreements, one for a data set at most."""
        failures = {}
        for failure in (*self.broken, *self.compare(duckdb)):
            failures.setdefault(failure.number, failure)
        return list(failures.values())[:MOST_FAILURES]

    def error_differs(self, expected):
        """`expected`: number -> a text that the error has to contain, or None where there may be one. Yields
        Disagreements."""
        for engine, answer in zip(ENGINES, self.answers):
            for number, error in answer.errors.items():
                text = expected.get(number, "")
                if text == "" or text and text not in error.text:
                    yield Disagreement(number, f"{engine} failed: {error}")
            for number, text in expected.items():
                if text and number in answer.rows_of_set and number not in answer.errors:
                    yield Disagreement(number, f"{engine} did not fail; expected: {text}")

    def tables(self):
        """(name, sets, columns) of each input."""
        return [("input", self.sets, self.columns)]

    def sizes_text(self, number):
        return " and ".join(f"{sets.sizes[number]} {name} rows" for name, sets, _ in self.tables())

    def rows_text(self, most=8):
        """The first live rows of each input, as physical values."""
        lines = []
        for name, sets, columns in self.tables():
            lines.append(f"{name}: {', '.join(column.type.text() for column in columns.values())}")
            lines += [f"  {tuple(column.value(row) for column in columns.values())}" for row in sets.rows()[:most]]
        return "\n".join(lines)

    def failed_sets(self):
        """Data sets of which some engine told an error."""
        failed = np.zeros(self.num_sets, bool)
        for answer in self.answers:
            failed[list(answer.errors)] = True
        return failed

    def counted_rows(self, answer):
        rows = np.zeros(self.num_sets, np.int64)
        for number, count in answer.rows_of_set.items():
            rows[number] = count
        return rows

    def close(self):
        for pair in self.kernels:
            for kernel in pair:
                kernel.close()
