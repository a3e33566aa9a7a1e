# SPDX-License-Identifier: Apache-2.0
"""Runs a filter in a variant through the C ABI: compile, then batch by batch the rows that pass, their bits or their
number.

    answer = run(library, case, variant)         rows of the case that passed, in the order of their batches

Several threads may use one filter at the same time; each gets all batches, and all must get the same answer.
"""
from filter_expected import Answer
from kernel_checks import check_inputs_released, check_made_anew, compiled
from quern_abi import ROWS
from result_columns import Mismatch
from row_feed import Feeder
from worker_threads import in_threads


def _rows_asked(feeder):
    """For each batch: the row of the case at each place of the host's vectors, and the places in the order of the
    selection."""
    for (first, end), places in zip(feeder.cuts, feeder.batch_places()):
        row_at = dict(zip(places.of_row, range(first, end)))
        yield row_at, list(places.selection) if places.selection is not None else list(places.of_row)


def _bits_of(bitmap, num_rows):
    bits = [bitmap[row // 8] >> row % 8 & 1 for row in range(num_rows)]
    if num_rows % 8 and bitmap[-1] >> num_rows % 8:
        raise Mismatch(
            f"the last byte of a bitmap of {num_rows} rows is {bitmap[-1]:#x}; bits beyond the last row must be 0")
    return bits


def _ask(condition, batch, num_rows, order, output):
    """The places that pass, in the order they come out (None where only their number is requested), and their
    number."""
    if output == "count":
        return None, condition.count(batch)
    if output == "select":
        places = condition.select(batch, num_rows)
        return places, len(places)
    bitmap, num_passed = condition.bitmap(batch, num_rows)
    places = [place for place, bit in zip(order, _bits_of(bitmap, num_rows)) if bit]
    if len(places) != num_passed:
        raise Mismatch(f"a bitmap has {len(places)} bits set, and {num_passed} rows are said to pass")
    return places, num_passed


def _answer(condition, feeder, batches, output):
    passed, count, places_asked = [], 0, []
    for (batch, _), (row_at, order) in zip(batches, _rows_asked(feeder)):
        places, num_passed = _ask(condition, batch, len(order), order, output)
        count += num_passed
        places_asked.append([row_at[place] for place in order])
        if places is not None:
            unknown = [place for place in places if place not in row_at]
            if unknown:
                raise Mismatch(f"rows pass that were not asked for: {unknown[:5]}, of {len(order)}")
            passed += [row_at[place] for place in places]
    return Answer(places_asked, None if output == "count" else passed, count)


def _asked_by_threads(condition, feeder, batches, variant):
    answers = [None] * max(variant.threads, 1)

    def ask(number):
        answers[number] = _answer(condition, feeder, batches, variant.output)

    if variant.threads:
        in_threads([lambda number=number: ask(number) for number in range(variant.threads)])
    else:
        ask(0)
    if any(answer != answers[0] for answer in answers):
        raise Mismatch("threads that ask one filter at the same time get different rows")
    return answers[0]


def run(library, case, variant):
    """Compiles and asks. Raises QuernError or Mismatch."""
    feeder = Feeder(case, variant)
    with compiled(library, case.spec(), variant) as kernel:
        if case.canonical_spec() not in (None, kernel.text("spec")):
            raise Mismatch(f"the canonical spec is {kernel.text('spec')!r}; expected {case.canonical_spec()!r}")
        with kernel.job() as condition:
            if not feeder.vectors:
                schema, columns, _ = feeder.arrow_children()
                condition.bind_arrow(ROWS, schema, columns, [])
            batches = list(feeder.batches(in_order=True))
            answer = _asked_by_threads(condition, feeder, batches, variant)
    del batches
    check_inputs_released()
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernel when it is made anew."""
    check_made_anew(library, case.spec(), variant)
