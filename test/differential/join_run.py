# SPDX-License-Identifier: Apache-2.0
"""Runs a case in a variant through the C ABI: compile, append, finalise, probe, scan of unmatched build rows.

    answer = run(library, case, variant)         rows as a table of physical values, statistics, or the error that ended
                                                 probing

Threads are Python's; the library is called without the interpreter's lock, so its calls run concurrently.
"""
import ctypes
import dataclasses

import pyarrow as pa

import quern_abi
from join_feed import Feeder
from join_kinds import LAYOUT_CLASSES
from join_rows import SIDES
from kernel_checks import check_inputs_released, check_made_anew, check_refused, compiled
from random_data import ColumnType, comparable_arrow
from result_columns import Mismatch, comparable, result_array
from worker_threads import partitioned, in_threads, run_each, taken

# ---- results ---------------------------------------------------------------------------------------------------------


class _ResultReader:
    """The rows of one prober."""

    def __init__(self, case, variant):
        self.types = [dataclasses.replace(output.type, index="") if output.column or output.side == "mark" else
                      ColumnType("u64", nullable=output.type.nullable) for output in case.outputs()]
        self.fields = [pa.field(f"c{number}", column_type.bits_arrow())
                       for number, column_type in enumerate(self.types)]
        self.vectors = variant.interfaces["result"] == "vectors"
        self.limit = variant.batch_rows or 65536
        self.batches, self.num_rows = [], 0

    def read(self, prober):
        more = True
        while more:
            if self.vectors:
                result, more = prober.next()
                num_rows, columns = result.num_rows, self._copied(result)
            else:
                exported, more = prober.next_arrow()
                num_rows = exported.length
                batch = pa.RecordBatch._import_from_c(ctypes.addressof(exported), pa.schema(self.fields))
                batch.validate(full=True)
                columns = self._checked(batch)
            if self.types and num_rows > self.limit:
                raise Mismatch(f"a result has {num_rows} rows; batch_rows is {self.limit}")
            self.num_rows += num_rows
            if self.types and num_rows:
                self.batches.append([comparable(column) for column in columns])

    def _copied(self, result):
        if result.num_columns != len(self.types):
            raise Mismatch(f"a result has {result.num_columns} columns; the spec has {len(self.types)}")
        return [result_array(result.columns[number], column_type, result.num_rows)
                for number, column_type in enumerate(self.types)]

    def _checked(self, batch):
        for column_type, column in zip(self.types, batch.columns):
            if column.null_count and not column_type.nullable:
                raise Mismatch("a result column that the spec calls not nullable has nulls")
        return batch.columns


def _table(readers):
    fields = readers[0].fields
    batches = [batch for reader in readers for batch in reader.batches]
    columns = [pa.chunked_array([batch[number] for batch in batches], comparable_arrow(field.type))
               for number, field in enumerate(fields)]
    return pa.table(columns, names=[field.name for field in fields]) if columns else None


def _check_result_schema(join, case, schemas):
    fields, outputs = list(join.result_schema()), case.outputs()
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


def _append(target, feeder, batches, copy_bytes, keep):
    """`target`: a join or an appender."""
    for batch, owners in batches:
        if feeder.vectors:
            target.append(batch, copy_bytes)
        else:
            target.append_arrow(batch)
        if not copy_bytes:
            keep.append(owners)
        del batch, owners


def _append_all(join, feeder, variant, keep):
    counts = feeder.has_row_id and not feeder.vectors  # the join numbers the rows, in order of arrival
    if counts or not variant.append_threads:
        _append(join, feeder, feeder.batches(), variant.copy_bytes, keep)
        return

    def work(hand):
        with join.appender() as appender:
            _append(appender, feeder, taken(hand), variant.copy_bytes, keep)
            appender.finish()

    hands = partitioned(feeder.batches(), variant.append_threads)
    in_threads([lambda hand=hand: work(hand) for hand in hands])


def _finalise(join, variant):
    if variant.finalise_threads:
        in_threads([join.finalise_shared] * variant.finalise_threads)
    else:
        join.finalise()


def _probe(prober, feeder, batches, reader):
    for batch, owners in batches:
        prober.input(batch) if feeder.vectors else prober.input_arrow(batch)
        del batch
        reader.read(prober)
        del owners


def _scan_unmatched(prober, reader):
    prober.input_unmatched()
    reader.read(prober)


def _probe_all(join, case, feeder, variant, readers):
    """Feeds the batches to the probers in turn or in threads; one prober where it counts row ids itself."""
    probers = [join.prober(variant.batch_rows) for _ in readers]
    try:
        if variant.threaded_probe:
            hands = [taken(hand) for hand in partitioned(feeder.batches(), len(probers))]
            in_threads([lambda work=work: _probe(work[0], feeder, work[1], work[2])
                        for work in zip(probers, hands, readers)])
        else:
            for number, batch in enumerate(feeder.batches()):
                _probe(probers[number % len(probers)], feeder, [batch], readers[number % len(probers)])
                del batch
        scans = []
        if case.kind.scans_unmatched:
            scans = [lambda work=work: _scan_unmatched(*work) for work in zip(probers, readers)]
        run_each(scans, variant.threaded_probe)
    finally:
        for prober in probers:
            prober.close()


@dataclasses.dataclass
class Answer:
    num_rows: int
    table: pa.Table | None
    table_rows: int
    build_rows: int
    layout: str | None              # None: the library does not tell
    error: quern_abi.QuernError | None  # that probing ended in


def _check_layout(case, variant, layout):
    if layout is None:
        return
    if layout not in LAYOUT_CLASSES:
        raise Mismatch(f"unknown table layout: {layout}; accepted: {', '.join(LAYOUT_CLASSES)}")
    if layout != "unchained" and (variant.params.get("layout") == "unchained" or not case.fits_word()):
        raise Mismatch(f"the table's layout is {layout}; it has to be unchained")


def _joined(join, case, variant, keep):
    build, probe = (Feeder(case, variant, side) for side in SIDES)
    counts = probe.has_row_id and not probe.vectors
    readers = [_ResultReader(case, variant) for _ in range(1 if counts else variant.num_probers)]
    if not (build.vectors and probe.vectors and readers[0].vectors):
        schemas = {feeder.name: feeder.arrow_children() for feeder in (build, probe)}
        join.bind_arrow(*schemas["build"], *schemas["probe"])
        _check_result_schema(join, case, schemas)
    _append_all(join, build, variant, keep)
    _finalise(join, variant)
    layout, error = join.layout(), None
    _check_layout(case, variant, layout)
    try:
        _probe_all(join, case, probe, variant, readers)
    except quern_abi.QuernError as raised:
        error = raised.with_traceback(None)
    stats = join.stats()
    table = None if error else _table(readers)
    return Answer(sum(reader.num_rows for reader in readers), table, stats.table_rows, stats.build_rows, layout, error)


def run(library, case, variant):
    """Compiles, builds, probes; answers the rows as bits. Raises QuernError (of anything but probing) or Mismatch."""
    keep = []
    with compiled(library, case.spec(), variant) as kernel:
        with kernel.join() as join:
            answer = _joined(join, case, variant, keep)
    del keep, join, kernel
    check_inputs_released()
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same text of each stage when it is compiled again, and layouts that its keys do not fit
    are refused."""
    check_made_anew(library, case.spec(), variant)
    if library.knows_kinds and not case.fits_word():
        for layout in ("dense", "open"):
            check_refused(library, case.spec(), f"layout={layout}")
