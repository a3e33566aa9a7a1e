# SPDX-License-Identifier: Apache-2.0
"""Runs an aggregation in a variant through the C ABI: compile, append, finalise, read.

    answer = run(library, case, variant)         groups as tuples of physical values, statistics, or the error

With several stages the batches are distributed over as many aggregations. All but the last emit states, which the last
one merges with its own rows.
"""
import ctypes
import dataclasses
import functools

import pyarrow as pa

import quern_abi
from aggregate_expected import output_types
from aggregate_functions import HOST_ARGUMENT, HOST_NAME, LAYOUTS
from kernel_checks import check_inputs_released, check_made_anew, check_refused, compiled
from random_data import ColumnType
from result_columns import Mismatch, comparable, result_array
from row_feed import Feeder
from worker_threads import partitioned, in_threads, run_each, taken

DEFAULT_BATCH_ROWS = 65536

# ---- the host's function ---------------------------------------------------------------------------------------------


def _update_host(user, columns, num_columns, rows, states, n):
    values = [ctypes.cast(columns[number].values, ctypes.POINTER(ctypes.c_uint64)) for number in range(num_columns)]
    for place in range(n):
        state = ctypes.cast(states[place], ctypes.POINTER(ctypes.c_uint64))
        state[0] += 1
        for column in values:
            state[1] ^= column[rows[place]]
    return 0


def _merge_host(user, into, other, n):
    for place in range(n):
        state, more = (ctypes.cast(states[place], ctypes.POINTER(ctypes.c_uint64)) for states in (into, other))
        state[0] += more[0]
        state[1] ^= more[1]
    return 0


def _finalise_host(user, states, n, values, validity):
    out, valid = (ctypes.cast(values, ctypes.POINTER(ctypes.c_uint64)),
                  ctypes.cast(validity, ctypes.POINTER(ctypes.c_uint8)))
    for place in range(n):
        state = ctypes.cast(states[place], ctypes.POINTER(ctypes.c_uint64))
        out[place] = state[1]
        if state[0] == 0:
            valid[place // 8] &= ~(1 << place % 8)
    return 0


@functools.cache
def register_host_function(library):
    """host.xor_of_both, once for the process. Answers what the library calls, which must stay."""
    function = quern_abi.AggregateFunction(ctypes.sizeof(quern_abi.AggregateFunction), 16, HOST_ARGUMENT.encode(), None,
                                           quern_abi.UPDATE_FUNCTION(_update_host),
                                           quern_abi.MERGE_FUNCTION(_merge_host),
                                           quern_abi.FINALISE_FUNCTION(_finalise_host))
    library.call("quern_register_aggregate", HOST_NAME.encode(), ctypes.byref(function))
    return function


# ---- results ---------------------------------------------------------------------------------------------------------


class _Reader:
    """Batches of groups, or of their states."""

    def __init__(self, types, vectors, batch_rows):
        self.types, self.vectors, self.limit = types, vectors, batch_rows or DEFAULT_BATCH_ROWS
        self.fields = [pa.field(f"c{number}", column_type.bits_arrow()) for number, column_type in enumerate(types)]
        self.batches = []  # (number of rows, columns)

    def read(self, groups):
        more = True
        while more:
            if self.vectors:
                result, more = groups.next()
                self.take(result)
            else:
                exported, more = groups.next_arrow()
                batch = pa.RecordBatch._import_from_c(ctypes.addressof(exported), pa.schema(self.fields))
                batch.validate(full=True)
                self._add(batch.num_rows, batch.columns)

    def take(self, result):
        """A quern_result, copied."""
        if result.num_columns != len(self.types):
            raise Mismatch(f"a result has {result.num_columns} columns; the spec has {len(self.types)}")
        columns = [result_array(result.columns[number], column_type, result.num_rows)
                   for number, column_type in enumerate(self.types)]
        self._add(result.num_rows, columns)
        return True

    def _add(self, num_rows, columns):
        if num_rows > self.limit:
            raise Mismatch(f"a result has {num_rows} rows; batch_rows is {self.limit}")
        for column_type, column in zip(self.types, columns):
            if column.null_count and not column_type.nullable:
                raise Mismatch(f"a result column of type {column_type.text()} has nulls")
        if num_rows:
            self.batches.append((num_rows, columns))

    def rows(self):
        return [row for num_rows, columns in self.batches
                for row in zip(*(comparable(column).to_pylist() for column in columns))]


def state_types(case):
    return output_types(case)[:len(case.keys)] + [ColumnType("binary") for _ in case.aggregates]


# ---- rows in ---------------------------------------------------------------------------------------------------------


def _append(target, feeder, batches):
    """`target`: an aggregation or an appender. Nothing may be kept of a batch: its buffers are unmapped when it is
    done."""
    for batch, owners in batches:
        if feeder.vectors:
            target.append(batch)
        else:
            target.append_arrow(batch)
        del batch, owners


def _append_states(target, num_keys, batches):
    for num_rows, columns in batches:
        if isinstance(columns, quern_abi.ArrowArray):
            target.append_arrow(columns, states=True)
        else:
            keep = []
            target.append(quern_abi.raw_batch(columns[:num_keys], columns[num_keys:], None, num_rows, 0, keep),
                          states=True)


def _append_all(aggregate, variant, batches, append):
    """append(target, batches) by as many threads as the variant says."""
    if not variant.append_threads:
        append(aggregate, batches)
        return

    def work(hand):
        with aggregate.appender() as appender:
            append(appender, taken(hand))
            appender.finish()

    in_threads([lambda hand=hand: work(hand) for hand in partitioned(batches, variant.append_threads)])


def _range_of_hint(key, style):
    """(least, greatest) of a key's values, as a host may know or believe it."""
    used = {index for index in key.indices if index is not None}
    values = [value - (1 << 64) if value >> 63 and key.type.name == "u64" else value
              for value in (key.values[index] for index in used)]
    least, most = (min(values), max(values)) if values else (0, 0)
    third = (most - least) // 3
    return {"right": (least, most), "narrow": (least + third, most - third), "wide": (least - 1000, most + 100_000),
            "shifted": (most + 1, most + 1 + third), "inverted": (most + 1, least - 1),
            "whole": (-(1 << 63), (1 << 63) - 1)}[style]


def _hint(aggregate, case, variant):
    if "groups" in variant.hints:
        aggregate.hint_groups(variant.hints["groups"])
    numbers = case.reduction.get("keys", range(len(case.keys)))
    for place, (number, key) in enumerate(zip(numbers, case.keys)):
        style = (variant.hints.get("ranges") or [None] * (number + 1))[number]
        if style and isinstance(key.values[0], int) and not key.type.is_float:
            bounds = (max(-(1 << 63), min((1 << 63) - 1, bound)) for bound in _range_of_hint(key, style))
            aggregate.hint_range(place, *bounds)


# ---- the phases ------------------------------------------------------------------------------------------------------


def _finalise(aggregate, variant):
    if variant.finalise_threads:
        in_threads([aggregate.finalise_shared] * variant.finalise_threads)
    else:
        aggregate.finalise()


def _shares(variant):
    return [(number, variant.partitions) for number in range(variant.partitions)] or [None]


def _read(aggregate, case, variant):
    """The groups, read by several readers in turns or concurrently, as a whole or by partitions."""
    types, rows = output_types(case), []
    for share in _shares(variant):
        handles = [aggregate.groups("results", variant.batch_rows, share) for _ in range(variant.num_readers)]
        readers = [_Reader(types, variant.interfaces["result"] == "vectors", variant.batch_rows) for _ in handles]
        works = [functools.partial(reader.read, groups) for reader, groups in zip(readers, handles)]
        try:
            run_each(works, variant.threaded_read)
        finally:
            for groups in handles:
                groups.close()
        rows += [row for reader in readers for row in reader.rows()]
    return rows


def _states(aggregate, case, variant):
    """Batches of states as another aggregation takes them in."""
    batches = []
    for share in _shares(variant):
        with aggregate.groups("states", variant.state_rows, share) as groups:
            if variant.interfaces["states"] == "vectors":
                reader = _Reader(state_types(case), True, variant.state_rows)
                reader.read(groups)
                batches += reader.batches
                continue
            more = True
            while more:
                exported, more = groups.next_arrow()
                batches.append((exported.length, exported))
    return batches


def _check_schema(aggregate, case, fields):
    """Of results and of states, against the spec and the names of the input."""
    for columns, types in (("results", output_types(case)), ("states", state_types(case))):
        schema = list(aggregate.result_schema(columns))
        names = ([fields[number] for number in range(len(case.keys))]
                 + [item.canonical_text() for item in case.aggregates])
        wanted = [(name, column_type.value_arrow(), column_type.nullable) for name, column_type in zip(names, types)]
        told = [(field.name, field.type, field.nullable) for field in schema]
        differing = [pair for pair in zip(told, wanted) if pair[0] != pair[1]]
        if len(told) != len(wanted) or differing:
            raise Mismatch(f"the schema of {columns} has {len(told)} fields, expected {len(wanted)}; (told, expected): "
                           f"{differing[:3]}")


def _check_layout(case, variant, layout):
    if layout not in LAYOUTS:
        raise Mismatch(f"unknown table layout: {layout}; accepted: {', '.join(LAYOUTS)}")
    if (layout == "single") != (not case.keys):
        raise Mismatch(f"the layout is {layout} with {len(case.keys)} keys")
    if layout in ("dense", "open", "sorted") and variant.params.get("group_layout") == "directory":
        raise Mismatch(f"the layout is {layout}; it has to be directory")


@dataclasses.dataclass
class Answer:
    rows: list
    num_rows: int | None   # None: not told, where states came in
    num_groups: int
    layout: str | None
    spelling: str          # of keys
    order: str | None      # runs of equal orders add up in the same order; None: in any
    concurrent: bool
    error: quern_abi.QuernError | None = None


def _answer(case, variant, rows=(), aggregate=None, error=None):
    stats = aggregate.stats() if aggregate else None
    is_one = variant.stages == 1 or variant.whole_run
    order = (None if variant.is_concurrent()
             or variant.finalise_threads > 1 else repr(dataclasses.replace(variant, engine="")))
    return Answer(list(rows), stats.input_rows if stats and is_one else None, stats.num_groups if stats else 0,
                  aggregate.layout() if aggregate else None, variant.key_spelling(), order, variant.is_concurrent(),
                  error)


def _filled(kernel, case, variant, feeder, batches, states=()):
    """A finalised aggregation of batches and states."""
    aggregate = kernel.aggregate()
    _hint(aggregate, case, variant)
    if not feeder.vectors or variant.interfaces["result"] == "arrow" and variant.layout_seed % 2:
        schema, keys, payload = feeder.arrow_children()
        aggregate.bind_arrow(schema, keys, payload)
        _check_schema(aggregate, case, [schema.field(child).name for child in keys])
    if states:
        _append_all(aggregate, variant, states, lambda target, some: _append_states(target, len(case.keys), some))
    _append_all(aggregate, variant, batches, lambda target, some: _append(target, feeder, some))
    _finalise(aggregate, variant)
    return aggregate


def _run_at_once(kernel, case, variant, feeder):
    readers, batches = [], list(feeder.batches())
    with kernel.aggregate() as aggregate:
        _hint(aggregate, case, variant)

        def on_result(result):
            try:
                reader = _Reader(output_types(case), True, variant.batch_rows)
                readers.append(reader)
                return reader.take(result)
            except Exception as error:  # any exception is raised again when the library has returned
                readers.append(error)
                return False

        num_groups = aggregate.run([batch for batch, _ in batches], variant.whole_run, variant.batch_rows, on_result)
        for reader in readers:
            if isinstance(reader, Exception):
                raise reader
        rows = [row for reader in readers for row in reader.rows()]
        if num_groups != len(rows):
            raise Mismatch(f"quern_aggregate_run says {num_groups} groups; {len(rows)} came out")
        _check_layout(case, variant, aggregate.layout())
        return _answer(case, variant, rows, aggregate)


def _aggregated(kernel, case, variant):
    feeder = Feeder(case, variant)
    if variant.whole_run:
        return _run_at_once(kernel, case, variant, feeder)
    if variant.stages == 1:
        stages, states = [feeder.batches()], []
    else:
        stages, states = [taken(hand) for hand in partitioned(feeder.batches(), variant.stages)], []
    for batches in stages[:-1]:
        with _filled(kernel, case, variant, feeder, batches) as aggregate:
            states += _states(aggregate, case, variant)
    with _filled(kernel, case, variant, feeder, stages[-1], states) as aggregate:
        _check_layout(case, variant, aggregate.layout())
        rows = _read(aggregate, case, variant)
        return _answer(case, variant, rows, aggregate)


def run(library, case, variant):
    """Compiles, appends, reads; answers groups or the error. Raises QuernError (of compiling alone) or Mismatch."""
    register_host_function(library)
    with compiled(library, case.spec(), variant) as kernel:
        try:
            answer = _aggregated(kernel, case, variant)
        except quern_abi.QuernError as error:
            answer = _answer(case, variant, error=error.with_traceback(None))
    del kernel
    check_inputs_released()
    return answer


# ---- kernels ---------------------------------------------------------------------------------------------------------


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernel when it is compiled again, and layouts that its keys do not fit are
    refused."""
    check_made_anew(library, case.spec(), variant)
    if not case.fits_word():
        for layout in ("dense", "open"):
            check_refused(library, case.spec(), f"group_layout={layout}")
