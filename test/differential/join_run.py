# SPDX-License-Identifier: Apache-2.0
"""Runs a case in a variant through the C ABI: compile, append, finalise, probe, scan of unmatched build rows.

    answer = run(library, case, variant)         rows as a table of physical values, statistics, or the error that ended
                                                 probing

Threads are Python's; the library is called without the interpreter's lock, so its calls run concurrently.
"""
import dataclasses
import threading

import pyarrow as pa

import quern_abi
from join_feed import Feeder
from join_kinds import LAYOUT_CLASSES
from join_rows import SIDES
from kernel_checks import check_inputs_released, check_made_anew, check_refused, compiled
from quern_abi import BUILD, PROBE, UNMATCHED
from random_data import ColumnType
from random_spill import is_refusal, memory_of
from result_columns import Mismatch, ResultReader, table_of
from worker_threads import append_all, finalise, in_threads, partitioned, run_each, taken

# ---- results ---------------------------------------------------------------------------------------------------------


def reader_of(case, variant):
    types = [dataclasses.replace(output.type, index="") if output.column or output.side == "mark" else
             ColumnType("u64", nullable=output.type.nullable) for output in case.outputs()]
    return ResultReader(types, variant.interfaces["result"] == "vectors", variant.batch_rows,
                        lets_go=variant.spill is not None)


def table_of_readers(readers):
    return table_of(readers[0].types, [batch for reader in readers for batch in reader.batches])


def _check_result_schema(join, case, schemas):
    fields, outputs = list(join.result_schema(PROBE)), case.outputs()
    if len(fields) != len(outputs):
        raise Mismatch(f"the result schema has {len(fields)} fields; the spec has {len(outputs)} result columns")
    children = {side: iter(schemas[side][2]) for side in SIDES}
    for field, output in zip(fields, outputs):
        arrow_type = output.type.value_arrow() if output.column or output.side == "mark" else pa.uint64()
        if field.type != arrow_type or field.nullable != output.type.nullable:
            raise Mismatch(f"result field {field!r} (nullable: {field.nullable}); expected {arrow_type}, nullable: "
                           f"{output.type.nullable}")
        if output.side == "mark":
            continue
        child = next(children[output.side])
        if output.column and field.name != schemas[output.side][0].field(child).name:
            raise Mismatch(
                f"result field {field.name}; expected the input's name {schemas[output.side][0].field(child).name}")


# ---- the phases ------------------------------------------------------------------------------------------------------


def _probe(output, batches, reader):
    for batch, owners in batches:
        output.push(batch)
        del batch
        reader.read(output)
        del owners


def _read_unmatched(join, batch_rows, reader):
    with join.output(UNMATCHED, batch_rows) as output:
        reader.read(output)


def probe_all(join, case, feeder, variant, readers):
    """Feeds the batches to the outputs in turn or in threads; one output where it counts row ids itself."""
    outputs = [join.output(PROBE, variant.batch_rows) for _ in readers]
    try:
        if variant.threaded_probe:
            hands = [taken(hand) for hand in partitioned(feeder.batches(), len(outputs))]
            in_threads([lambda work=work: _probe(*work) for work in zip(outputs, hands, readers)])
        else:
            for number, batch in enumerate(feeder.batches()):
                _probe(outputs[number % len(outputs)], [batch], readers[number % len(outputs)])
                del batch
    finally:
        for output in outputs:
            output.close()
    if case.kind.scans_unmatched or variant.spill:  # rows that were written come out there, whatever the kind
        run_each([lambda reader=reader: _read_unmatched(join, variant.batch_rows, reader) for reader in readers],
                 variant.threaded_probe)


def _run_at_once(join, build, probe, variant, reader, keep):
    """All phases by threads of the library."""
    lock, batches = threading.Lock(), {}
    for port, feeder in ((BUILD, build), (PROBE, probe)):
        fed = list(feeder.batches())
        keep += [owners for _, owners in fed]
        batches[port] = [batch for batch, _ in fed]

    def on_result(result):
        with lock:
            return reader.take(result)

    num_rows = join.run(batches, max(variant.append_threads, variant.num_probers), variant.batch_rows, on_result)
    if num_rows != reader.num_rows:
        raise Mismatch(f"quern_job_run says {num_rows} rows; {reader.num_rows} came out")


@dataclasses.dataclass
class Answer:
    num_rows: int
    table: pa.Table | None
    table_rows: int
    build_rows: int
    layout: str
    error: quern_abi.QuernError | None  # that probing ended in
    out_of_memory: bool = False
    spilled_bytes: int = 0


def _check_layout(case, variant, layout):
    if layout not in LAYOUT_CLASSES:
        raise Mismatch(f"unknown table layout: {layout}; accepted: {', '.join(LAYOUT_CLASSES)}")
    if layout != "unchained" and (variant.params.get("layout") == "unchained" or not case.fits_word()):
        raise Mismatch(f"the table's layout is {layout}; it has to be unchained")


def _joined(join, case, variant, keep):
    build, probe = (Feeder(case, variant, side) for side in SIDES)
    counts = probe.has_row_id and not probe.vectors
    readers = [reader_of(case, variant) for _ in range(1 if counts else variant.num_probers)]
    all_vectors, error = build.vectors and probe.vectors and readers[0].vectors, None
    if not all_vectors:
        schemas = {feeder.name: feeder.arrow_children() for feeder in (build, probe)}
        for port, side in ((BUILD, "build"), (PROBE, "probe")):
            join.bind_arrow(port, *schemas[side])
        _check_result_schema(join, case, schemas)
    at_once = all_vectors and variant.layout_seed % 2 == 1
    if not at_once:
        counts = build.has_row_id and not build.vectors  # the join numbers the rows, in order of arrival
        append_all(join, BUILD, build.batches(), 0 if counts else variant.append_threads, variant.copy_bytes,
                   None if variant.copy_bytes else keep)
        finalise(join, variant.finalise_threads, variant.layout_seed % 2)
    try:
        if at_once:
            _run_at_once(join, build, probe, variant, readers[0], keep)
        else:
            probe_all(join, case, probe, variant, readers)
    except quern_abi.QuernError as raised:
        error = raised.with_traceback(None)
    stats, layout = join.stats(), join.layout()
    if at_once and error is not None and not layout:
        layout = "unchained"  # refused before there was a table
    _check_layout(case, variant, layout)
    refused = error is not None and is_refusal(error, variant.spill, _is_concurrent(variant))
    table = None if error else table_of_readers(readers)
    return Answer(sum(reader.num_rows for reader in readers), table, stats.num_rows, stats.input_rows, layout, error,
                  refused, stats.spilled_bytes)


def _is_concurrent(variant):
    return max(variant.append_threads, variant.num_probers) > 1


def run(library, case, variant):
    """Compiles, builds, probes; answers the rows as bits. Raises QuernError (of anything but probing) or Mismatch."""
    keep = []
    with compiled(library, case.spec(), variant) as kernel:
        with kernel.job(**memory_of(variant)) as join:
            try:
                answer = _joined(join, case, variant, keep)
            except quern_abi.QuernError as error:
                if not is_refusal(error, variant.spill, _is_concurrent(variant)):
                    raise
                answer = Answer(0, None, 0, 0, "", None, True)
    del keep, join, kernel
    check_inputs_released()
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same text of each stage when it is compiled again, and layouts that its keys do not fit
    are refused."""
    check_made_anew(library, case.spec(), variant)
    if not case.fits_word():
        for layout in ("dense", "open"):
            check_refused(library, case.spec(), f"layout={layout}")
