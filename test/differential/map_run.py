# SPDX-License-Identifier: Apache-2.0
"""Runs a map in a variant through the C ABI: push batch by batch, and read the results of each.

    answer = run(library, case, variant)         rows of the case with their results; the row that had none, if any
"""
import dataclasses
import re

import quern_abi
from kernel_checks import check_inputs_released, check_made_anew, compiled
from quern_abi import ROWS
from result_columns import Mismatch, ResultReader, table_of
from row_feed import Feeder


@dataclasses.dataclass
class Answer:
    rows: list        # of the case, as they came out
    table: object     # their results
    failed: int       # the row of the case without a result; None: all have one
    error: str = ""


def _asked(feeder):
    """For each batch: the row of the case at each place, the places in the order of the selection, and the row of the
    case by its id, by which errors name it."""
    ids = feeder.row_ids()
    for (first, end), places in zip(feeder.cuts, feeder.batch_places()):
        row_at = dict(zip(places.of_row, range(first, end)))
        order = list(places.selection) if places.selection is not None else list(places.of_row)
        yield row_at, order, dict(zip(ids[first:end], range(first, end)))


def _failed_row(error, row_of_id):
    found = re.match(r"row (\d+): .*; accepted: ", error.text)
    if error.status != quern_abi.OUT_OF_RANGE or not found or int(found[1]) not in row_of_id:
        raise error
    return row_of_id[int(found[1])]


def _read_all(job, feeder, variant, types):
    reader = ResultReader(types, variant.interfaces["result"] == "vectors", variant.batch_rows)
    rows, failed, text = [], None, ""
    with job.output(ROWS, batch_rows=variant.batch_rows) as output:
        for (batch, _), (row_at, order, row_of_id) in zip(feeder.batches(in_order=True), _asked(feeder)):
            before = reader.num_rows
            output.push(batch)
            del batch
            try:
                reader.read(output)
            except quern_abi.QuernError as error:
                failed, text = _failed_row(error, row_of_id), error.text
            rows += [row_at[place] for place in order[:reader.num_rows - before]]
            if failed is not None:
                break
            if reader.num_rows - before != len(order):
                raise Mismatch(f"{reader.num_rows - before} rows came out of a batch of {len(order)}")
    return Answer(rows, table_of(types, reader.batches), failed, text)


def run(library, case, variant):
    """Compiles and runs. Raises QuernError or Mismatch."""
    feeder = Feeder(case, variant)
    types = [result.type for result in case.results]
    with compiled(library, case.spec(), variant) as kernel:
        if kernel.text("spec") != case.spec():
            raise Mismatch(f"the canonical spec is {kernel.text('spec')!r}; expected {case.spec()!r}")
        with kernel.job() as job:
            if not feeder.vectors:
                schema, columns, _ = feeder.arrow_children()
                job.bind_arrow(ROWS, schema, columns, [])
                found = job.result_schema(ROWS)
                wanted = [(one.value_arrow(), one.nullable) for one in types]
                if [(field.type, field.nullable) for field in found] != wanted:
                    raise Mismatch(f"the result's schema is {found}; expected {wanted}")
            answer = _read_all(job, feeder, variant, types)
    check_inputs_released()
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernel when it is made anew."""
    check_made_anew(library, case.spec(), variant)
