# SPDX-License-Identifier: Apache-2.0
"""Hash aggregation as an operator that run.py can test: its cases, how they run, the expected answers, and the coverage
of a run.

Coverage is a set of pairs that runs have shown, such as ("function", "corr", "jit"), ("groups", "batch + 1") and
("partition_bits", 3).
"""
import collections

from aggregate_case import Case  # noqa: F401
from aggregate_duckdb import DuckdbGroups as Oracle  # noqa: F401
from aggregate_expected import Expected, Mismatch  # noqa: F401
from aggregate_functions import FUNCTIONS, LAYOUTS
from aggregate_rows import BATCHES, BIG_ROWS, MANY_GROUPS, is_sorted
from aggregate_run import check_compiles_twice, run  # noqa: F401
from collated_strings import SPELLINGS, spellings_of
from collation_oracle import is_plain
from random_data import COLLATIONS, SCALAR_TYPES, normalised_float
from random_spill import WANTED_MARKS, coverage_marks
from row_feed import Feeder

ENGINES = ("generic", "jit")
FEW_GROUPS = 20
MAX_KEYS = 16
DENSITIES = ("none", "some", "all")


# ---- what a run shows ------------------------------------------------------------------------------------------------


def density(column):
    nulls = sum(index is None for index in column.indices)
    return "none" if not nulls else "all" if nulls == len(column.indices) else "some"


def key_marks(case):
    """What the keys are."""
    if len(case.keys) in (0, MAX_KEYS):
        yield "keys", len(case.keys)
    for key in case.keys if case.num_rows else ():
        yield "key type", key.type.name
        yield "key nulls", density(key)
        used = {key.values[index] for index in key.indices if index is not None}
        if key.type.index:
            yield "key dictionary", key.type.index
        if key.type.collation:
            yield "key collation", key.type.collation
        yield from (("key", spelling) for spelling in spellings_of(key.type, used))
        if key.type.is_float:
            spellings = collections.Counter(normalised_float(key.type, value) for value in used)
            for value, name in (("NaN", "NaNs"), (0, "-0")):
                if spellings[value] > 1:
                    yield "key", name
    if is_sorted(case.keys):
        yield "rows", "sorted"


def size_marks(case, variant):
    groups = case.generated_groups
    if groups <= 1:
        yield "groups", groups
    elif groups <= FEW_GROUPS:
        yield "groups", "few"
    if groups >= MANY_GROUPS:
        yield "groups", "many"
    batch_size = variant.params.get("batch_size", 1024)
    if batch_size > 2:
        for step, name in ((-1, "batch - 1"), (0, "batch"), (1, "batch + 1")):
            if groups == batch_size + step:
                yield "groups", name


def _argument_marks(case):
    if case.has_expressions():
        yield "arguments", "expressions"
    for aggregate in case.aggregates:
        yield "function", aggregate.function
        if aggregate.filter:
            yield "rows", "filtered"
        for column in aggregate.arguments if case.num_rows else ():
            yield "argument type", column.type.name
            yield "argument nulls", density(column)
            if column.type.index:
                yield "argument", "dictionary"
        for column_type in aggregate.types:
            if column_type.is_collated:
                yield "argument collation", column_type.collation


_PARAMETERS = {"group_layout": ("auto", "dense", "open", "directory"), "batch_size": BATCHES,
               "group_load_percent": (10, 33, 50, 75), "partition_bits": range(9), "huge_pages": ("on", "off"),
               "runs": ("lanes", "rows"), "test.hash": ("zero",)}


def _variant_marks(case, variant):
    for name, values in _PARAMETERS.items():
        if variant.params.get(name) in values:
            yield name, variant.params[name]
    appenders = 0 if variant.whole_run else variant.append_threads
    if appenders:
        yield "appenders", appenders
    if (appenders > 1 and variant.params.get("local_groups", 1 << 20) < case.generated_groups // 4
            and variant.num_batches > appenders):
        yield "threads", "parts partitioned"
    feeder = Feeder(case, variant)
    yield "input", "vectors" if feeder.vectors else "arrow"
    if feeder.selects and case.num_rows:
        yield "rows", "selected"
        if feeder.shuffles:
            yield "rows", "selected in another order"
    if len(feeder.cuts) > 2 and any(key.type.index for key in case.keys):
        yield "batches", "with dictionaries of their own"
    if variant.whole_run:
        yield "run at once", variant.whole_run
        return
    yield "result", variant.interfaces["result"]
    if variant.num_readers > 1:
        yield "readers", "several"
    if variant.stages > 1:
        yield "states", variant.interfaces["states"]
        if variant.partitions > 1:
            yield "states", "by partitions"
    elif variant.partitions > 1:
        yield "result", "by partitions"
    if case.generated_groups > 7 and variant.batch_rows in (1, 7, 1000):
        yield "result rows", variant.batch_rows
    if "groups" in variant.hints:
        yield "hint", "right groups" if variant.hints["groups"] == case.generated_groups else "wrong groups"
    for style in variant.hints.get("ranges", ()) if case.fits_word() else ():
        if style:
            yield "hint", "right range" if style == "right" else "wrong range"


def _marks(case, variant):
    """What a run of the case in the variant covers; functions, key types and keys with each engine."""
    for mark in _argument_marks(case):
        yield (*mark, variant.engine) if mark[0] == "function" else mark
    for mark in key_marks(case):
        yield (*mark, variant.engine) if mark[0] == "key type" else mark
    yield from size_marks(case, variant)
    yield from _variant_marks(case, variant)


def _wanted():
    for engine in ENGINES:
        yield from (("function", name, engine) for name in FUNCTIONS)
        yield from (("key type", name, engine) for name in SCALAR_TYPES)
        yield from (("layout", layout, engine) for layout in LAYOUTS)
    for name, values in _PARAMETERS.items():
        yield from ((name, value) for value in values)
    yield from (("argument type", name) for name in SCALAR_TYPES)
    yield from ((what, name) for what in ("key collation", "argument collation") for name in COLLATIONS
                if what == "key collation" or not is_plain(name))
    for what in ("key nulls", "argument nulls"):
        yield from ((what, density) for density in DENSITIES)
    yield from {
        "keys": (0, MAX_KEYS), "key": (*SPELLINGS, "NaNs", "-0"), "key dictionary": ("i8", "u16", "i32"),
        "argument": ("dictionary",), "arguments": ("expressions",),
        "groups": (0, 1, "few", "batch - 1", "batch", "batch + 1", "many"),
        "rows": ("sorted", "filtered", "selected", "selected in another order"),
        "batches": ("with dictionaries of their own",),
        "appenders": (1, 2, 3, 4), "threads": ("parts partitioned",), "input": ("arrow", "vectors"),
        "result": ("arrow", "vectors", "by partitions"), "result rows": (1, 7, 1000), "readers": ("several",),
        "run at once": (1, 2, 3), "states": ("arrow", "vectors", "by partitions"),
        "hint": ("right groups", "wrong groups", "right range", "wrong range"), "error": ("sum out of range",),
    }.items()


class Coverage:
    """What has run: cases by function, runs by the layout that came out, and all marks."""

    def __init__(self):
        self.functions, self.layouts = collections.Counter(), collections.Counter()
        self.unseen = set(WANTED_MARKS)
        for mark in _wanted():
            if isinstance(mark[1], tuple):
                self.unseen |= {(mark[0], value) for value in mark[1]}
            else:
                self.unseen.add(mark)

    def count_case(self, case):
        self.functions.update({aggregate.function for aggregate in case.aggregates})

    def count_run(self, case, variant, answer):
        self.unseen -= set(coverage_marks(variant, answer))
        if answer.out_of_memory:
            return
        if answer.error:
            self.unseen.discard(("error", "sum out of range"))
            return
        self.layouts[answer.layout] += 1
        self.unseen -= {("layout", answer.layout, variant.engine), *_marks(case, variant)}

    def adds(self, case):
        """Whether a run of the case may show what has not been seen."""
        shown = {mark for variant in case.variants() for mark in _marks(case, variant)}
        unmarked = {mark for mark in self.unseen if mark[0] in ("layout", "error", "spill")}
        return bool(self.unseen & shown) or bool(unmarked) and case.generated_rows <= BIG_ROWS

    def is_complete(self):
        return not self.unseen

    def unseen_text(self):
        return ", ".join(sorted(" ".join(map(str, mark)) for mark in self.unseen))

    def text(self):
        """One line."""
        functions = ", ".join(f"{name} {self.functions[name]}" for name in FUNCTIONS)
        return f"cases: {functions}; runs: {', '.join(f'{layout} {self.layouts[layout]}' for layout in LAYOUTS)}"
