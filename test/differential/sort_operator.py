# SPDX-License-Identifier: Apache-2.0
"""The sort as an operator that run.py can test: its cases, how they run, the expected answers, and the coverage of a
run.

Coverage is a set of pairs that runs have shown, such as ("method", "radix", "jit"), ("limit", "more than rows") and
("prefix_words", 3).
"""
import collections

from aggregate_operator import MAX_KEYS, density
from collated_strings import SPELLINGS, spellings_of
from random_data import COLLATIONS, SCALAR_TYPES, STRING_TYPES, normalised_float
from random_spill import WANTED_MARKS, coverage_marks
from row_feed import Feeder
from sort_case import BATCHES, Case  # noqa: F401
from sort_expected import Expected, Mismatch  # noqa: F401
from sort_order import DuckdbOrder as Oracle  # noqa: F401
from sort_rows import BIG_ROWS, HUGE_LIMIT, MANY_ROWS, ORDERS, WINDOW_FUNCTIONS
from sort_run import METHODS, check_compiles_twice, run  # noqa: F401

ENGINES = ("generic", "jit")
PREFIX_BYTES = 16  # of a string in words


# ---- what a run shows ------------------------------------------------------------------------------------------------


def _value_marks(key):
    used = {key.values[index] for index in key.indices if index is not None}
    if key.type.is_float:
        spellings = collections.Counter(normalised_float(key.type, value) for value in used)
        for value, name in (("NaN", "NaNs"), (0, "-0")):
            if spellings[value] > 1:
                yield "key", name
    if key.type.name in STRING_TYPES:
        yield from (("key", spelling) for spelling in spellings_of(key.type, used))
        counted = {value.rstrip(b" ") for value in used} if key.type.is_collated else used
        if any(len(value) > PREFIX_BYTES for value in counted):
            yield "key", "long strings"
        if any(value.endswith(b"\0") for value in counted):
            yield "key", "ends with zero bytes"
        if len({value[:PREFIX_BYTES] for value in counted}) < len(counted):
            yield "key", "strings with equal words"


def _key_marks(case):
    for key in case.keys if case.num_rows else ():
        yield "key type", key.type.name
        yield "key nulls", density(key)
        yield "key order", ("desc" if key.descending else "asc") + (" nulls first"
                                                                    if key.nulls_first else " nulls last")
        if key.type.index:
            yield "key dictionary", key.type.index
        if key.type.collation:
            yield "key collation", key.type.collation
        yield from _value_marks(key)
        if key.out:
            yield "key type that comes out", key.type.name


def _case_marks(case):
    if len(case.keys) in (1, MAX_KEYS):
        yield "keys", len(case.keys)
    if case.num_rows <= 1:
        yield "rows", case.num_rows
    if case.num_rows > BIG_ROWS:
        yield "rows", "many"
    if case.num_rows > 2:
        yield "order", case.order
    limit = ("none" if not case.limit else "one" if case.limit == 1 else "less than rows"
             if case.limit < case.num_rows else "more than rows")
    yield "limit", "greatest" if case.limit == HUGE_LIMIT else limit
    yield "stable", case.stable
    if case.window:
        yield "partition", "none" if not case.partition else "all" if case.partition == len(case.keys) else "some"
        yield from (("window", name) for name in case.window)
    for output in case.outputs(window=False):
        if not output.is_key:
            yield "payload", output.type.name if output.column else "rowid"
    if not case.outputs():
        yield "payload", "nothing comes out"


_PARAMETERS = {"test.sort_method": ("radix", "comparison"), "prefix_words": (1, 2, 3, 4),
               "dictionary_rows": (0, 1, 100, 65536), "top_rows": (0, 1, 1000, 262144), "batch_size": BATCHES,
               "prefetch": ("off",), "huge_pages": ("on", "off")}


def _variant_marks(case, variant):
    for name, values in _PARAMETERS.items():
        if variant.params.get(name) in values:
            yield name, variant.params[name]
    feeder = Feeder(case, variant)
    yield "input", "vectors" if feeder.vectors else "arrow"
    yield "result", variant.interfaces["result"]
    if variant.merged_runs:
        yield ("merge",
               "one run" if variant.merged_runs == 1 else "few runs" if variant.merged_runs < 20 else "many runs")
        if case.limit and case.limit < case.num_rows:
            yield "merge", "with limit"
        return
    if feeder.selects and case.num_rows:
        yield "rows", "selected in another order" if feeder.shuffles else "selected"
    if len(feeder.cuts) > 2 and any(key.type.index for key in case.keys):
        yield "batches", "with dictionaries of their own"
    if case.limit and case.limit < case.num_rows and variant.set_threshold:
        yield "threshold", f"set, {variant.set_threshold}"
    if variant.whole_run:
        yield "run at once", variant.whole_run
        return
    if variant.append_threads:
        yield "appenders", variant.append_threads
    if variant.num_readers > 1:
        yield "readers", "at once" if variant.threaded_read else "in turns"
    if feeder.vectors:
        yield "bytes", "copied" if variant.copy_bytes else "kept"
    if case.num_rows > 7 and variant.batch_rows in (1, 7, 1000):
        yield "result rows", variant.batch_rows


def _marks(case, variant):
    """What a run of the case in the variant covers; key types with each engine."""
    for mark in _key_marks(case):
        yield (*mark, variant.engine) if mark[0].startswith("key type") else mark
    yield from _case_marks(case)
    yield from _variant_marks(case, variant)


def _answer_marks(case, variant, answer):
    """What only the answer tells."""
    yield from coverage_marks(variant, answer)
    if variant.memory_limit:
        yield "memory limit", "exceeded" if answer.out_of_memory else "kept"
    if variant.merged_runs or answer.out_of_memory:
        return
    yield "method", answer.method, variant.engine
    if answer.thresholds_read:
        yield "threshold", "read"
    if answer.dropped_rows:
        yield "rows", "dropped"
    if answer.collided_rows:
        yield "rows", "tied"
    if answer.num_rows > 1 and answer.method == "radix":
        yield "entry bytes", answer.entry_bytes


_OF_ANSWERS = ("method", "threshold", "rows", "entry bytes", "memory limit", "spill")
_ORDER_OF_METHOD = {"reversed": "reversed", "nearly_sorted": "nearly sorted"}  # of many rows, which such a method takes


def _wanted():
    for engine in ENGINES:
        yield from (("key type", name, engine) for name in SCALAR_TYPES)
        yield from (("key type that comes out", name, engine) for name in SCALAR_TYPES)
        yield from (("method", method, engine) for method in METHODS)
    for name, values in (*_PARAMETERS.items(), ("order", ORDERS), ("key collation", COLLATIONS),
                         ("window", WINDOW_FUNCTIONS), ("payload", (*SCALAR_TYPES, "rowid", "nothing comes out")),
                         ("key nulls", ("none", "some", "all"))):
        yield from ((name, value) for value in values)
    seen = {
        "key": (*SPELLINGS, "NaNs", "-0", "long strings", "ends with zero bytes", "strings with equal words"),
        "key order": ("asc nulls last", "asc nulls first", "desc nulls last", "desc nulls first"),
        "key dictionary": ("i8", "u16", "i32"),
        "keys": (1, MAX_KEYS), "rows": (0, 1, "many", "selected", "selected in another order", "dropped", "tied"),
        "stable": (True, False), "limit": ("none", "one", "less than rows", "more than rows", "greatest"),
        "partition": ("none", "some", "all"), "entry bytes": (8, 16, 24, 32),
        "threshold": ("read", "set, right", "set, wrong"), "appenders": (1, 2, 3), "input": ("arrow", "vectors"),
        "result": ("arrow", "vectors"), "result rows": (1, 7, 1000), "readers": ("at once", "in turns"),
        "run at once": (1, 2, 3), "bytes": ("copied", "kept"),
        "merge": ("one run", "few runs", "many runs", "with limit"),
        "batches": ("with dictionaries of their own",), "memory limit": ("exceeded", "kept"),
    }
    yield from ((name, value) for name, values in seen.items() for value in values)
    yield from WANTED_MARKS


class Coverage:
    """What has run: runs by method, merges, and all marks."""

    def __init__(self):
        self.methods = collections.Counter()
        self.num_cases, self.num_merges = 0, 0
        self.unseen = set(_wanted())

    def count_case(self, case):
        self.num_cases += 1

    def count_run(self, case, variant, answer):
        if variant.merged_runs:
            self.num_merges += 1
        elif not answer.out_of_memory:
            self.methods[answer.method] += 1
        self.unseen -= {*_marks(case, variant)} if not answer.out_of_memory else set()
        self.unseen -= {*_answer_marks(case, variant, answer)}

    def adds(self, case):
        """Whether a run of the case may show what has not been seen."""
        shown = {mark for variant in case.variants() for mark in _marks(case, variant)}
        return (bool(self.unseen & shown)
                or any(self._may_answer(case, mark) for mark in self.unseen if mark[0] in _OF_ANSWERS))

    @staticmethod
    def _may_answer(case, mark):
        order = _ORDER_OF_METHOD.get(mark[1])
        return case.generated_rows >= MANY_ROWS and case.order == order if order else case.generated_rows <= BIG_ROWS

    def is_complete(self):
        return not self.unseen

    def unseen_text(self):
        return ", ".join(sorted(" ".join(map(str, mark)) for mark in self.unseen))

    def text(self):
        """One line."""
        methods = ", ".join(f"{method} {self.methods[method]}" for method in METHODS)
        return f"cases: {self.num_cases}; runs: {methods}, merges {self.num_merges}"
