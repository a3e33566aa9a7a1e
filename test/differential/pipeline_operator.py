# SPDX-License-Identifier: Apache-2.0
"""Pipelines by their spec as an operator that run.py can test: the expected answers and the coverage of a run.

The rows behind each step are DuckDB's, and the end is compared as its operator's answers are (pipeline_ends.py). Where
rows have no result, some call must fail with an error that names one: by its id, where the ids are those of the source.
"""
import re

import quern_abi
import run_coverage
from join_expected import SECOND_MATCH
from join_kinds import KINDS
from pipeline_case import ROWS_PER_BATCH, Case  # noqa: F401
from pipeline_rows import oracles as Oracle  # noqa: F401
from pipeline_run import AFTER_A_FAILURE, check_compiles_twice, run  # noqa: F401
from result_columns import Mismatch

ENGINES = ("generic", "jit", "auto")
ENDS = ("aggregate", "sort", "build", "emit")
_ROW = re.compile(r"row (\d+): .*; accepted: ")
_SUM = "sum out of range: "


class Expected:
    def __init__(self, case, _):
        self.case, self.failed_at = case, case.failed_at
        self.end = None if self.failed_at else case.end.expected()

    def check(self, answer):
        if answer.out_of_memory:
            return
        if self.failed_at:
            self._check_failure(answer)
        elif answer.error:
            self._check_error_of_end(answer)
        else:
            self.end.check(self.case.end.compared(answer.end))

    def _check_error_of_end(self, answer):
        """Of sums; rows of a step have results."""
        if self.case.end.word != "aggregate":
            raise Mismatch(f"failed: {answer.error}; expected rows")
        allowed = self.end.must_fail | self.end.may_fail
        if answer.error.text not in allowed and not (allowed and self._is_echo(answer)):
            raise Mismatch(f"failed: {answer.error}; expected {sorted(allowed) or 'groups'}")

    @staticmethod
    def _is_echo(answer):
        """What other threads are told."""
        return (answer.concurrent and answer.error.status == quern_abi.FAILED_PRECONDITION
                and any(text in answer.error.text for text in AFTER_A_FAILURE))

    def _check_failure(self, answer):
        if not answer.error:
            stopped = self.case.end.word == "emit" and answer.end.stops_after is not None
            if not stopped:
                raise Mismatch(f"no error; expected one of step {self.failed_at.text()}")
            return
        if self._is_echo(answer):
            return
        text, found = answer.error.text, _ROW.match(answer.error.text)
        if answer.error.status != quern_abi.OUT_OF_RANGE:
            raise Mismatch(f"failed: {answer.error}; expected OUT_OF_RANGE of step {self.failed_at.text()}")
        if self.case.end.may_fail() and text.startswith(_SUM):
            return  # of the rows that came before
        later = self.case.steps[self.case.steps.index(self.failed_at):]
        if SECOND_MATCH in text and any(step.word == "probe" and step.join.kind.name == "single" for step in later):
            return
        if not found or not any(step.word == "map" for step in later):
            raise Mismatch(f"failed: {answer.error}; expected an error of step {self.failed_at.text()}")
        self._check_row(int(found[1]), answer)

    def _check_row(self, row_id, answer):
        """The row that is named is one of those that arrived, and DuckDB has no result for it, either."""
        rows = self.case.stages[-1].failing
        if self.failed_at.word != "map" or rows.ids is None or answer.row_ids is None:
            return  # behind a probe rows have numbers of their own
        known = {answer.row_ids[row]: number for number, row in enumerate(rows.ids)}
        if row_id not in known:
            raise Mismatch(f"failed: {answer.error}; no row in front of the step has this id")
        maps = [step for step in self.case.steps if step.word == "map" and step.may_fail()]
        if len(maps) == 1 and self.failed_at.results(rows, [known[row_id]]) is not None:
            raise Mismatch(f"failed: {answer.error}; DuckDB has a result for this row")


# ---- what a run shows ------------------------------------------------------------------------------------------------


def _step_marks(step, rows, behind):
    yield "step", step.word
    if step.word == "probe":
        kind = step.join.kind
        yield "kind", kind.name
        if not step.join.num_other:
            yield "table", "empty"
        if kind.pairs and behind.num_rows > rows.num_rows:
            yield "matches", "many a row"
        if kind.name == "inner" and 0 < behind.num_rows <= rows.num_rows:
            yield "matches", "few"
        if step.join.residuals:
            yield "probe", "residual"
        if step.join.has_flow_row_ids():
            yield "probe", "row ids"
    if step.word == "filter" and rows.num_rows and not behind.num_rows:
        yield "rows", "all filtered away"


def _marks(case, variant):
    for step, rows, behind in zip(case.steps, case.stages, case.stages[1:]):
        yield from ((*mark, variant.engine) if mark[0] in ("step", "kind") else mark
                    for mark in _step_marks(step, rows, behind))
    yield "end", case.end.word, variant.engine
    if case.end.word == "build":
        yield "built", case.end.join.kind.name
    yield from (("column", column.type.name) for column in case.source.columns)
    if case.failed_at:
        yield "failure", case.failed_at.word
    if not case.num_rows:
        yield "source", "empty"
    if not case.stages[-1].num_rows:
        yield "end", "without rows"
    yield "input", variant.interfaces["input"]
    if variant.rows_per_batch:
        yield "rows a batch", variant.rows_per_batch
    yield "piece_rows", variant.params.get("piece_rows", 4096)
    yield "fuse", variant.params.get("fuse", "auto")
    if variant.append_threads:
        yield "inputs", variant.append_threads
    yield "run", "at once" if variant.whole_run else "step by step"
    yield from (("table by", by) for by in variant.built_by.values())


def _wanted():
    for engine in ENGINES:
        yield from (("step", word, engine) for word in ("filter", "map", "probe", "reduce"))
        yield from (("end", word, engine) for word in ENDS)
    for engine in ("generic", "jit"):
        yield from (("kind", kind, engine) for kind in KINDS)
    seen = {"built": KINDS, "table": ("empty",), "matches": ("many a row", "few"), "probe": ("residual", "row ids"),
            "rows": ("all filtered away", "come out", "fail", "refused", "written by a table", "written by the end"),
            "source": ("empty",), "end": ("without rows",), "failure": ("map", "probe"),
            "input": ("arrow", "vectors"), "rows a batch": ROWS_PER_BATCH, "fuse": ("auto", "off"),
            "piece_rows": (1, 7, 64, 1000, 4096, 65536), "inputs": (1, 2, 3), "run": ("at once", "step by step"),
            "table by": ("join", "pipeline")}
    yield from ((name, value) for name, values in seen.items() for value in values)


class Coverage(run_coverage.Coverage):
    def __init__(self):
        end = lambda answer: "refused" if answer.out_of_memory else "fail" if answer.error else "come out"
        super().__init__("rows", _marks, _wanted(), end, rare_end="refused")

    def count_run(self, case, variant, answer):
        super().count_run(case, variant, answer)
        self.unseen -= {("rows", f"written by {by}") for by, is_written in (
            ("a table", answer.num_spilled), ("the end", answer.spilled_bytes)) if is_written}
