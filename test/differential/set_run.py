# SPDX-License-Identifier: Apache-2.0
"""Runs a set operation in a variant through the C ABI: compile, append both sides, finalise, read.

    answer = run(library, case, variant)         rows as tuples of physical values, and statistics

Either side comes first, and where several threads append, both come at once. With several stages the batches of both
sides are distributed over as many jobs. All but the last emit states, which the last one merges with its own rows.
"""
import dataclasses
import functools
import threading

from aggregate_run import (check_layout, check_schema, hints_of, read, reader_of, rows_of, state_batches, states_of)
from kernel_checks import check_inputs_released, check_made_anew, check_refused, compiled
from quern_abi import LEFT, RIGHT, ROWS, STATES, QuernError
from random_data import ColumnType
from random_spill import is_refusal, memory_of
from result_columns import Mismatch
from row_feed import Feeder
from set_case import SIDES
from set_expected import output_types
from worker_threads import append_all, finalise, partitioned, run_each, taken

_PORTS = {"left": LEFT, "right": RIGHT}


def feeders_of(case, variant):
    """By side, in the order in which the sides come."""
    sides = SIDES if variant.layout_seed % 4 < 2 or variant.whole_run else SIDES[::-1]
    return {name: Feeder(case.side(name), dataclasses.replace(variant, layout_seed=variant.layout_seed ^ number))
            for number, name in enumerate(sides)}


# What a state says of a group's rows on either side.
_STATES = {"union": [], "intersect": ["sides"], "except": ["sides"], "except_all": ["difference"],
           "intersect_all": ["left", "right"]}


def state_types(case):
    return output_types(case) + [ColumnType("binary")] * len(_STATES[case.kind])


@dataclasses.dataclass
class Answer:
    rows: list
    num_input_rows: int | None  # None: not told, where states came in
    num_groups: int
    layout: str
    spelling: str               # of keys
    out_of_memory: bool = False
    spilled_bytes: int = 0


def _bind(job, case, feeders):
    for name, feeder in feeders.items():
        job.bind_arrow(_PORTS[name], *feeder.arrow_children())
    schema, keys, _ = feeders["left"].arrow_children()
    check_schema(job, [schema.field(child).name for child in keys] + _STATES[case.kind],
                 {ROWS: output_types(case), STATES: state_types(case)})


def _filled(kernel, case, variant, feeders, batches, states=()):
    """A finalised job of batches, by side, and of states."""
    job = kernel.job(**hints_of(case, variant), **memory_of(variant))
    if any(not feeder.vectors for feeder in feeders.values()) or variant.layout_seed % 2:
        _bind(job, case, feeders)
    if states:
        append_all(job, STATES, state_batches(len(case.keys), states), variant.append_threads)
    works = [functools.partial(append_all, job, _PORTS[name], rows, variant.append_threads)
             for name, rows in batches.items()]
    run_each(works, variant.append_threads > 1)
    finalise(job, variant.finalise_threads, variant.layout_seed % 2)
    return job


def _answer(case, variant, rows, job):
    check_layout(case, variant, job.layout())
    stats = job.stats()
    is_one = variant.stages == 1 or variant.whole_run
    return Answer(rows, stats.input_rows if is_one else None, stats.num_rows, job.layout(), variant.key_spelling(),
                  spilled_bytes=stats.spilled_bytes)


def _run_at_once(kernel, case, variant, feeders):
    reader, lock = reader_of(output_types(case), variant), threading.Lock()
    batches = {name: list(feeder.batches()) for name, feeder in feeders.items()}

    def on_result(result):
        with lock:
            return reader.take(result)

    with kernel.job(**hints_of(case, variant), **memory_of(variant)) as job:
        num_rows = job.run({_PORTS[name]: [batch for batch, _ in rows] for name, rows in batches.items()},
                           variant.whole_run, variant.batch_rows, on_result)
        if num_rows != reader.num_rows:
            raise Mismatch(f"quern_job_run says {num_rows} rows; {reader.num_rows} came out")
        return _answer(case, variant, rows_of([reader]), job)


def _combined(kernel, case, variant):
    feeders = feeders_of(case, variant)
    if variant.whole_run:
        return _run_at_once(kernel, case, variant, feeders)
    hands = {name: partitioned(feeder.batches(), variant.stages) for name, feeder in feeders.items()}
    stages = [{name: taken(of_side[stage]) for name, of_side in hands.items()} for stage in range(variant.stages)]
    states = []
    for batches in stages[:-1]:
        with _filled(kernel, case, variant, feeders, batches) as job:
            states += states_of(job, state_types(case), variant)
    with _filled(kernel, case, variant, feeders, stages[-1], states) as job:
        return _answer(case, variant, read(job, output_types(case), variant), job)


def run(library, case, variant):
    """Compiles, appends, reads. Raises QuernError or Mismatch."""
    with compiled(library, case.spec(), variant) as kernel:
        try:
            answer = _combined(kernel, case, variant)
        except QuernError as error:
            if not is_refusal(error, variant.spill, variant.is_concurrent()):
                raise
            answer = Answer([], None, 0, "", "", out_of_memory=True)
    del kernel
    check_inputs_released()
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernel when it is compiled again, and layouts that its keys do not fit are
    refused."""
    check_made_anew(library, case.spec(), variant)
    if not case.fits_word():
        for layout in ("dense", "open"):
            check_refused(library, case.spec(), f"group_layout={layout}")
