# SPDX-License-Identifier: Apache-2.0
"""Runs an aggregation in a variant through the C ABI: compile, append, finalise, read.

    answer = run(library, case, variant)         groups as tuples of physical values, statistics, or the error

With several stages the batches are distributed over as many aggregations. All but the last emit states, which the last
one merges with its own rows.
"""
import ctypes
import dataclasses
import functools
import threading

import quern_abi
from aggregate_expected import output_types
from aggregate_functions import HOST_ARGUMENT, HOST_NAME, LAYOUTS
from kernel_checks import check_inputs_released, check_made_anew, check_refused, compiled
from quern_abi import ROWS, STATES
from random_data import ColumnType
from random_spill import is_refusal, memory_of
from result_columns import Mismatch, ResultReader, comparable
from row_feed import Feeder
from worker_threads import append_all, finalise, partitioned, run_each, taken

# ---- the host's function ---------------------------------------------------------------------------------------------


def _update_host(user, host, columns, num_columns, rows, states, n):
    values = [ctypes.cast(columns[number].values, ctypes.POINTER(ctypes.c_uint64)) for number in range(num_columns)]
    for place in range(n):
        state = ctypes.cast(states[place], ctypes.POINTER(ctypes.c_uint64))
        state[0] += 1
        for column in values:
            state[1] ^= column[rows[place]]
    return 0


def _merge_host(user, host, into, other, n):
    for place in range(n):
        state, more = (ctypes.cast(states[place], ctypes.POINTER(ctypes.c_uint64)) for states in (into, other))
        state[0] += more[0]
        state[1] ^= more[1]
    return 0


def _finalise_host(user, host, states, n, values, validity):
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


def reader_of(types, variant):
    return ResultReader(types, variant.interfaces["result"] == "vectors", variant.batch_rows,
                        lets_go=variant.spill is not None)


def rows_of(readers):
    return [row for reader in readers for _, _, columns in reader.batches
            for row in zip(*(comparable(column).to_pylist() for column in columns))]


def state_types(case):
    return output_types(case)[:len(case.keys)] + [ColumnType("binary") for _ in case.aggregates]


# ---- rows in ---------------------------------------------------------------------------------------------------------


def state_batches(num_keys, batches):
    """Batches of states with the owners of their bytes."""
    for batch in batches:
        if isinstance(batch, quern_abi.ArrowArray):
            yield batch, None
            continue
        keep, (_, num_rows, columns) = [], batch
        yield quern_abi.raw_batch(columns[:num_keys], columns[num_keys:], None, num_rows, 0, keep), keep


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


def hints_of(case, variant):
    """The options of a job."""
    ranges, numbers = [], case.reduction.get("keys", range(len(case.keys)))
    for place, (number, key) in enumerate(zip(numbers, case.keys)):
        style = (variant.hints.get("ranges") or [None] * (number + 1))[number]
        if style and isinstance(key.values[0], int) and not key.type.is_float:
            bounds = (max(-(1 << 63), min((1 << 63) - 1, bound)) for bound in _range_of_hint(key, style))
            ranges.append((place, *bounds))
    return {"expected_groups": variant.hints.get("groups", 0), "key_ranges": ranges}


# ---- the phases ------------------------------------------------------------------------------------------------------


def shares(variant):
    return [(number, variant.partitions) for number in range(variant.partitions)] or [None]


def read(job, types, variant):
    """The result rows, read by several readers in turns or concurrently, as a whole or by partitions."""
    rows = []
    for share in shares(variant):
        outputs = [job.output(ROWS, variant.batch_rows, share) for _ in range(variant.num_readers)]
        readers = [reader_of(types, variant) for _ in outputs]
        works = [functools.partial(reader.read, output) for reader, output in zip(readers, outputs)]
        try:
            run_each(works, variant.threaded_read)
        finally:
            for output in outputs:
                output.close()
        rows += rows_of(readers)
    return rows


def states_of(job, types, variant):
    """Batches of states as another job takes them in."""
    batches = []
    for share in shares(variant):
        with job.output(STATES, variant.state_rows, share) as output:
            if variant.interfaces["states"] == "vectors":
                reader = ResultReader(types, True, variant.state_rows)
                reader.read(output)
                batches += reader.batches
            else:
                batches += [array for _, array in output.results(as_arrow=True)]
    return batches


def check_schema(job, names, types_of_ports):
    """Against the spec and the names of the input."""
    for port, types in types_of_ports.items():
        schema = list(job.result_schema(port))
        wanted = [(name, column_type.value_arrow(), column_type.nullable) for name, column_type in zip(names, types)]
        told = [(field.name, field.type, field.nullable) for field in schema]
        differing = [pair for pair in zip(told, wanted) if pair[0] != pair[1]]
        if len(told) != len(wanted) or differing:
            raise Mismatch(f"the schema of port {port} has {len(told)} fields, expected {len(wanted)}; (told, "
                           f"expected): {differing[:3]}")


def has_parts(case):
    """Whether an aggregate keeps values that may be written: then a group without keys may be."""
    return any(aggregate.function in ("count_distinct", "sum_distinct", "median", "quantile")
               for aggregate in case.aggregates)


def check_layout(case, variant, layout):
    if layout not in LAYOUTS:
        raise Mismatch(f"unknown table layout: {layout}; accepted: {', '.join(LAYOUTS)}")
    if (layout == "single") != (not case.keys) and not (layout == "spilled" and has_parts(case)):
        raise Mismatch(f"the layout is {layout} with {len(case.keys)} keys")
    if layout == "spilled" and not variant.spill:
        raise Mismatch("the layout is spilled without a place where rows may be written")
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
    out_of_memory: bool = False
    spilled_bytes: int = 0


def answer_of(case, variant, rows=(), aggregate=None, error=None):
    stats = aggregate.stats() if aggregate else None
    is_one = variant.stages == 1 or variant.whole_run
    spilled_bytes = stats.spilled_bytes if stats else 0
    order = (None if variant.is_concurrent() or spilled_bytes
             or variant.finalise_threads > 1 else repr(dataclasses.replace(variant, engine="")))
    return Answer(list(rows), stats.input_rows if stats and is_one else None, stats.num_rows if stats else 0,
                  aggregate.layout() if aggregate else None, variant.key_spelling(), order, variant.is_concurrent(),
                  error, error is not None and is_refusal(error, variant.spill, variant.is_concurrent()), spilled_bytes)


def _filled(kernel, case, variant, feeder, batches, states=()):
    """A finalised aggregation of batches and states."""
    aggregate = kernel.job(**hints_of(case, variant), **memory_of(variant))
    if not feeder.vectors or variant.interfaces["result"] == "arrow" and variant.layout_seed % 2:
        schema, keys, payload = feeder.arrow_children()
        aggregate.bind_arrow(ROWS, schema, keys, payload)
        names = [schema.field(child).name for child in keys] + case.result_names()
        check_schema(aggregate, names, {ROWS: output_types(case), STATES: state_types(case)})
    if states:
        append_all(aggregate, STATES, state_batches(len(case.keys), states), variant.append_threads)
    append_all(aggregate, ROWS, batches, variant.append_threads)
    finalise(aggregate, variant.finalise_threads, variant.layout_seed % 2)
    return aggregate


def _run_at_once(kernel, case, variant, feeder):
    reader, lock, batches = reader_of(output_types(case), variant), threading.Lock(), list(feeder.batches())

    def on_result(result):
        with lock:
            return reader.take(result)

    with kernel.job(**hints_of(case, variant), **memory_of(variant)) as aggregate:
        num_groups = aggregate.run({ROWS: [batch for batch, _ in batches]}, variant.whole_run, variant.batch_rows,
                                   on_result)
        if num_groups != reader.num_rows:
            raise Mismatch(f"quern_job_run says {num_groups} groups; {reader.num_rows} came out")
        check_layout(case, variant, aggregate.layout())
        return answer_of(case, variant, rows_of([reader]), aggregate)


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
            states += states_of(aggregate, state_types(case), variant)
    with _filled(kernel, case, variant, feeder, stages[-1], states) as aggregate:
        check_layout(case, variant, aggregate.layout())
        rows = read(aggregate, output_types(case), variant)
        return answer_of(case, variant, rows, aggregate)


def run(library, case, variant):
    """Compiles, appends, reads; answers groups or the error. Raises QuernError (of compiling alone) or Mismatch."""
    register_host_function(library)
    with compiled(library, case.spec(), variant) as kernel:
        try:
            answer = _aggregated(kernel, case, variant)
        except quern_abi.QuernError as error:
            answer = answer_of(case, variant, error=error.with_traceback(None))
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
