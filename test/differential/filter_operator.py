# SPDX-License-Identifier: Apache-2.0
"""The filter as an operator that run.py can test: its cases, how they run, the expected answers, and the coverage of a
run.

Coverage is a set of pairs that runs have shown, such as ("leaf", "like", "jit"), ("pattern", "contains") and ("constant
bytes", 17).
"""
import collections

from aggregate_operator import density
from collated_strings import SPELLINGS, spellings_of
from filter_case import OUTPUTS, Case  # noqa: F401
from filter_conditions import SIGNS, depth, like_shape, negations_at_leaves
from filter_expected import DuckdbFilter as Oracle  # noqa: F401
from filter_expected import Expected
from filter_rows import BIG_ROWS, MAX_CONSTANT_BYTES
from filter_run import check_compiles_twice, run  # noqa: F401
from random_data import COLLATIONS, SCALAR_TYPES, STRING_TYPES
from result_columns import Mismatch  # noqa: F401
from row_feed import Feeder

ENGINES = ("generic", "jit")
KINDS = ("compare", "columns", "between", "in", "like", "null", "bool")
PATTERNS = ("all", "exact", "prefix", "suffix", "contains", "parts", "general")


# ---- what a run shows ------------------------------------------------------------------------------------------------


def _leaf_marks(leaf, num_rows):
    """Each is shown by an engine."""
    yield "leaf", leaf.kind
    if leaf.negated:
        yield "negated leaf", leaf.kind
    if leaf.kind in ("compare", "columns"):
        yield f"{leaf.kind} strings" if leaf.column.type.name in STRING_TYPES else leaf.kind, leaf.op
    if num_rows and leaf.kind not in ("null", "bool"):
        yield "type", leaf.column.type.name
        if leaf.column.type.collation:
            yield "like collation" if leaf.kind == "like" else "collation", leaf.column.type.collation
    if leaf.kind == "like":
        yield "escape", "default" if leaf.escape == "\\" else leaf.escape or "none"
        if not leaf.escape or leaf.escape.encode() not in leaf.values[0]:
            yield "pattern", like_shape(leaf.values[0])


def _column_marks(leaf):
    if leaf.column.type.index:
        yield "dictionary", leaf.kind
    yield "nulls", density(leaf.column)
    if leaf.column.type.name in STRING_TYPES:
        used = {leaf.column.values[index] for index in leaf.column.indices if index is not None}
        yield from (("strings", spelling) for spelling in spellings_of(leaf.column.type, used))
        if leaf.kind == "compare":
            yield "constant bytes", len(leaf.values[0]) if len(leaf.values[0]) <= MAX_CONSTANT_BYTES else "more"
    if leaf.kind == "in":
        yield "constants", 1 if len(leaf.values) == 1 else "few" if len(leaf.values) < 10 else "many"


def _case_marks(case):
    leaves = case.condition.leaves()
    yield "leaves", "one" if len(leaves) == 1 else "few" if len(leaves) < 10 else "many"
    if len({id(column) for column in case.keys}) < len(case.keys):
        yield "column", "mentioned twice"
    if negations_at_leaves(case.condition):
        yield "not", "above leaves"
    if depth(case.condition) > 3:
        yield "tree", "deep"
    if case.num_rows < 2:
        yield "rows", case.num_rows
    elif case.num_rows >= BIG_ROWS:
        yield "rows", "many"


def _variant_marks(case, variant):
    feeder = Feeder(case, variant)
    yield "input", "vectors" if feeder.vectors else "arrow"
    yield "output", variant.output
    if feeder.selects and case.num_rows:
        yield "rows", "selected in another order" if feeder.shuffles else "selected"
    if variant.threads > 1:
        yield "threads", "at once"


def _marks(case, variant):
    for leaf in case.condition.leaves():
        yield from ((*mark, variant.engine) for mark in _leaf_marks(leaf, case.num_rows))
        yield from _column_marks(leaf)
    yield from _case_marks(case)
    yield from _variant_marks(case, variant)


def _wanted():
    for engine in ENGINES:
        for name, values in (("leaf", KINDS), ("negated leaf", ("between", "in", "like", "null")), ("compare", SIGNS),
                             ("columns", SIGNS), ("compare strings", SIGNS), ("columns strings", SIGNS),
                             ("type", SCALAR_TYPES), ("collation", COLLATIONS), ("like collation", COLLATIONS),
                             ("pattern", PATTERNS), ("escape", ("default", "none", "!", "x"))):
            yield from ((name, value, engine) for value in values)
    seen = {
        "constant bytes": (*range(MAX_CONSTANT_BYTES + 1), "more"),
        "dictionary": ("compare", "columns", "between", "in", "like", "null"),
        "nulls": ("none", "some", "all"), "strings": SPELLINGS, "constants": (1, "few", "many"),
        "leaves": ("one", "few", "many"), "column": ("mentioned twice",), "not": ("above leaves",), "tree": ("deep",),
        "threads": ("at once",), "output": OUTPUTS,
        "rows": (0, 1, "many", "selected", "selected in another order", "none pass", "all pass", "some pass"),
        "input": ("arrow", "vectors"),
    }
    yield from ((name, value) for name, values in seen.items() for value in values)


def _passing(case, answer):
    return "none pass" if answer.count == 0 else "all pass" if answer.count == case.num_rows else "some pass"


class Coverage:
    """What has run: cases by the kinds of their leaves, runs by how many rows pass, and all marks."""

    def __init__(self):
        self.kinds, self.passing = collections.Counter(), collections.Counter()
        self.unseen = set(_wanted())

    def count_case(self, case):
        self.kinds.update({leaf.kind for leaf in case.condition.leaves()})

    def count_run(self, case, variant, answer):
        if case.num_rows:
            self.passing[_passing(case, answer)] += 1
            self.unseen.discard(("rows", _passing(case, answer)))
        self.unseen -= {*_marks(case, variant)}

    def adds(self, case):
        """Whether a run of the case may cover something new."""
        return bool(self.unseen & {mark for variant in case.variants() for mark in _marks(case, variant)})

    def is_complete(self):
        return not self.unseen

    def unseen_text(self):
        return ", ".join(sorted(" ".join(map(str, mark)) for mark in self.unseen))

    def text(self):
        """One line."""
        kinds = ", ".join(f"{kind} {self.kinds[kind]}" for kind in KINDS)
        return f"cases: {kinds}; runs: {', '.join(f'{what} {count}' for what, count in sorted(self.passing.items()))}"
