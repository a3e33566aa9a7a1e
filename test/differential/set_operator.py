# SPDX-License-Identifier: Apache-2.0
"""Set operations as an operator that run.py can test: their cases, how they run, the expected answers, and the coverage
of a run.

Coverage is a set of pairs that runs have shown, such as ("kind", "except_all", "jit") and ("sides", "left alone").
"""
import collections

from aggregate_operator import key_marks, size_marks
from collated_strings import SPELLINGS
from random_data import COLLATIONS, SCALAR_TYPES
from random_spill import WANTED_MARKS, coverage_marks
from result_columns import Mismatch  # noqa: F401
from set_case import KINDS, SIDES, Case  # noqa: F401
from set_expected import DuckdbSets as Oracle  # noqa: F401
from set_expected import Expected  # noqa: F401
from set_run import check_compiles_twice, feeders_of, run  # noqa: F401

ENGINES = ("generic", "jit")
LAYOUTS = ("dense", "open", "sorted", "directory", "spilled")


# ---- what a run shows ------------------------------------------------------------------------------------------------


def _side_marks(case):
    num_left = sum(case.is_left)
    if case.num_rows and num_left in (0, case.num_rows):
        yield "sides", "left alone" if num_left else "right alone"
    elif case.num_rows:
        yield "sides", "both"


def _variant_marks(case, variant):
    feeders = feeders_of(case, variant)
    yield "first", next(iter(feeders))
    for feeder in feeders.values():
        yield "input", "vectors" if feeder.vectors else "arrow"
        if feeder.selects and feeder.case.num_rows:
            yield "rows", "selected in another order" if feeder.shuffles else "selected"
    if variant.whole_run:
        yield "run at once", variant.whole_run
        return
    if variant.append_threads:
        yield "appenders", variant.append_threads
    yield "result", variant.interfaces["result"]
    if variant.num_readers > 1:
        yield "readers", "several"
    if variant.stages > 1:
        yield "states", (f"{variant.interfaces['states']} of {case.kind}")
        if variant.partitions > 1:
            yield "states", "by partitions"
    elif variant.partitions > 1:
        yield "result", "by partitions"


def _marks(case, variant):
    """What a run of the case in the variant covers; kinds and key types with each engine."""
    yield "kind", case.kind, variant.engine
    for mark in key_marks(case):
        yield (*mark, variant.engine) if mark[0] == "key type" else mark
    yield from size_marks(case, variant)
    yield from _side_marks(case)
    yield from _variant_marks(case, variant)


def _wanted():
    for engine in ENGINES:
        for name, values in (("kind", KINDS), ("key type", SCALAR_TYPES), ("layout", LAYOUTS)):
            yield from ((name, value, engine) for value in values)
    seen = {
        "keys": (16,), "key": (*SPELLINGS, "NaNs", "-0"), "key dictionary": ("i8", "u16", "i32"),
        "key collation": COLLATIONS, "key nulls": ("none", "some", "all"),
        "groups": (0, 1, "few", "many"), "sides": ("left alone", "right alone", "both"), "first": SIDES,
        "rows": ("selected", "selected in another order", "none come out", "copies come out"),
        "appenders": (1, 2, 3, 4), "input": ("arrow", "vectors"), "result": ("arrow", "vectors", "by partitions"),
        "readers": ("several",), "run at once": (1, 2, 3),
        "states": ("by partitions", *(f"{form} of {kind}" for form in ("arrow", "vectors") for kind in KINDS)),
    }
    yield from ((name, value) for name, values in seen.items() for value in values)


class Coverage:
    """What has run: cases by kind, runs by the layout that came out, and all marks."""

    def __init__(self):
        self.kinds, self.layouts = collections.Counter(), collections.Counter()
        self.unseen = set(_wanted()) | WANTED_MARKS

    def count_case(self, case):
        self.kinds[case.kind] += 1

    def count_run(self, case, variant, answer):
        self.unseen -= set(coverage_marks(variant, answer))
        if answer.out_of_memory:
            return
        self.layouts[answer.layout] += 1
        if not answer.rows and answer.num_groups:
            self.unseen.discard(("rows", "none come out"))
        if len(answer.rows) > answer.num_groups:
            self.unseen.discard(("rows", "copies come out"))
        self.unseen -= {("layout", answer.layout, variant.engine), *_marks(case, variant)}

    def adds(self, case):
        """Whether a run of the case may cover something new."""
        shown = {mark for variant in case.variants() for mark in _marks(case, variant)}
        return bool(self.unseen & shown) or any(mark[0] in ("layout", "rows", "spill") for mark in self.unseen)

    def is_complete(self):
        return not self.unseen

    def unseen_text(self):
        return ", ".join(sorted(" ".join(map(str, mark)) for mark in self.unseen))

    def text(self):
        """One line."""
        kinds = ", ".join(f"{kind} {self.kinds[kind]}" for kind in KINDS)
        return f"cases: {kinds}; runs: {', '.join(f'{layout} {self.layouts[layout]}' for layout in LAYOUTS)}"
