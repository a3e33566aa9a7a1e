# SPDX-License-Identifier: Apache-2.0
"""Runs a sort in a variant through the C ABI: compile, append, finalise, read; or merges sorted runs.

    answer = run(library, case, variant)         rows in order as a table of physical values, statistics, thresholds
                                                 that were read

A merge gets its rows in runs that Python has sorted. The vectors of a batch are unmapped as soon as the merge needs the
next batch of its run.
"""
import contextlib
import dataclasses
import random

import quern_abi
from kernel_checks import check_inputs_released, check_made_anew, compiled
from oracle import normalise
from quern_abi import DONE, MORE, NEEDS_INPUT, ROWS, THRESHOLD
from random_spill import is_refusal, memory_of
from result_columns import Mismatch, ResultReader, comparable, result_array, table_of
from row_feed import Feeder
from sort_expected import Answer
from worker_threads import append, finalise, in_threads, partitioned, run_each, taken

METHODS = ("none", "sorted", "reversed", "nearly_sorted", "insertion", "vector", "radix", "comparison", "merged",
           "distributed")

# ---- results ---------------------------------------------------------------------------------------------------------


def reader_of(case, variant, window=True):
    return ResultReader([output.type for output in case.outputs(window)], variant.interfaces["result"] == "vectors",
                        variant.batch_rows)


def table_of_readers(readers):
    """(columns of all readers' rows in order, number of rows)."""
    batches, place = sorted((batch for reader in readers for batch in reader.batches), key=lambda batch: batch[0]), 0
    for position, num_rows, _ in batches:
        if position != place:
            raise Mismatch(f"rows from place {position} on follow rows that end before place {place}")
        place += num_rows
    return table_of(readers[0].types, batches), place


def _check_schema(handle, case, feeder, window):
    """Of results, against the spec and the names of the input."""
    schema, keys, payload = feeder.arrow_children()
    names = [schema.field(child).name for child, key in zip(keys, case.keys) if key.out]
    names += (["rowid" if child < 0 else schema.field(child).name for child in payload]
              + [name for name in case.window if window])
    wanted = [(name, output.type.value_arrow(), output.type.nullable)
              for name, output in zip(names, case.outputs(window))]
    told = [(field.name, field.type, field.nullable) for field in handle.result_schema(ROWS)]
    differing = [pair for pair in zip(told, wanted) if pair[0] != pair[1]]
    if len(told) != len(wanted) or differing:
        raise Mismatch(
            f"the result schema has {len(told)} fields, expected {len(wanted)}; (told, expected): {differing[:3]}")


def _bind(handle, case, feeder, variant, window=True):
    if not feeder.vectors or variant.interfaces["result"] == "arrow" and variant.layout_seed % 2:
        handle.bind_arrow(ROWS, *feeder.arrow_children())
        _check_schema(handle, case, feeder, window)


# ---- thresholds ------------------------------------------------------------------------------------------------------


class Thresholds:
    """Sets one, perhaps, and reads some. A threshold is the key tuple of a row, so it has a class."""

    def __init__(self, case, variant, feeder):
        self.case, self.variant, self.feeder = case, variant, feeder
        self.rng = random.Random(f"{variant.layout_seed}/threshold")
        self.classes = case.classes()
        self.last_class = (sorted(self.classes)[min(case.limit, case.num_rows) - 1] if case.limit
                           and case.num_rows else None)
        self.set_class, self.num_read = None, 0
        self.types = [dataclasses.replace(key.type, index="", collation="") for key in case.keys]
        self.class_of_key = self._classes_of_keys() if variant.read_threshold and case.limit else {}
        self.when = self.rng.choice((0, 0, 1, 2))  # batches before it is set

    def _classes_of_keys(self):
        columns = []
        for key in self.case.keys:
            normalised = [normalise(key.type, value) for value in key.values]
            columns.append([None if index is None else normalised[index] for index in key.indices])
        return dict(zip(zip(*columns), self.classes))

    def before_batch(self, sort, number):
        if self.variant.set_threshold and self.last_class is not None and number == self.when:
            self._set(sort)

    def _set(self, sort):
        rows = [row for row, row_class in enumerate(self.classes) if row_class >= self.last_class
                or self.variant.set_threshold == "wrong"]
        row = self.rng.choice(rows)
        batch, owners = self.feeder.vector_batch([row], self.feeder.places(1), 0)
        append(sort, THRESHOLD, [(batch, owners)])
        del batch, owners
        self.set_class = self.classes[row]

    def read(self, output, rows_before):
        """After a batch. `rows_before`: that have surely come; None: others append at the same time."""
        if not self.variant.read_threshold:
            return
        result = output.next()
        if not result.num_rows:
            return
        self.num_read += 1
        if not self.case.limit or rows_before is not None and rows_before < self.case.limit and self.set_class is None:
            raise Mismatch(f"a threshold after {rows_before} rows, with limit {self.case.limit}")
        if result.num_rows != 1 or result.num_columns != len(self.types):
            raise Mismatch(f"a threshold of {result.num_rows} rows and {result.num_columns} columns; expected 1 and "
                           f"{len(self.types)}")
        columns = [result_array(result.columns[number], column_type, 1)
                   for number, column_type in enumerate(self.types)]
        values = [comparable(column)[0].as_py() for column in columns]
        self._check(tuple(None if value is None else normalise(key.type, value)
                          for key, value in zip(self.case.keys, values)))

    def _check(self, key):
        row_class = self.class_of_key.get(key)
        if row_class is None:
            raise Mismatch(f"a threshold that no row has: {key}")
        least = self.last_class if self.set_class is None else min(self.last_class, self.set_class)
        if row_class < least:
            raise Mismatch(f"a threshold before the last row that comes out: {key} of class {row_class}; expected at "
                           f"least class {least}")


# ---- rows in ---------------------------------------------------------------------------------------------------------


class _Appending:
    """Brings a sort its batches, by as many threads as the variant says."""

    def __init__(self, sort, feeder, variant, thresholds, keep):
        self.sort, self.feeder, self.variant, self.thresholds, self.keep = sort, feeder, variant, thresholds, keep

    def all(self):
        with self.sort.output(THRESHOLD) as threshold:
            if not self.variant.append_threads:
                self._append(self.feeder.batches(), threshold)
                return
            first, *others = partitioned(self.feeder.batches(), self.variant.append_threads)
            in_threads([lambda: self._append(taken(first), threshold),
                        *(lambda hand=hand: self._append(taken(hand), None) for hand in others)])

    def _append(self, batches, threshold):
        """By an input of its own. One thread, which has `threshold`, reads and sets thresholds."""
        rows_before = 0
        with self.sort.input(ROWS, copy_bytes=self.variant.copy_bytes) as rows:
            for number, (batch, owners) in enumerate(batches):
                num_rows = batch.num_rows if self.feeder.vectors else len(batch)
                if threshold:
                    self.thresholds.before_batch(self.sort, number)
                rows.append(batch)
                if self.feeder.vectors and not self.variant.copy_bytes:
                    self.keep.append(owners)
                del batch, owners
                rows_before += num_rows
                if threshold:
                    self.thresholds.read(threshold, None if self.variant.is_concurrent() else rows_before)
            rows.finish()


# ---- the phases ------------------------------------------------------------------------------------------------------


def read_rows(sort, case, variant):
    """The rows, read by several readers in turns or at once."""
    readers = [reader_of(case, variant) for _ in range(variant.num_readers)]
    outputs = [sort.output(ROWS, variant.batch_rows) for _ in readers]
    try:
        run_each([lambda work=work: work[0].read(work[1]) for work in zip(readers, outputs)], variant.threaded_read)
    finally:
        for output in outputs:
            output.close()
    return table_of_readers(readers)


def _run_at_once(sort, case, variant, feeder):
    reader, batches = reader_of(case, variant), list(feeder.batches())
    num_rows = sort.run({ROWS: [batch for batch, _ in batches]}, variant.whole_run, variant.batch_rows, reader.take)
    table, num_read = table_of_readers([reader])
    if num_rows != num_read:
        raise Mismatch(f"quern_job_run says {num_rows} rows; {num_read} came out")
    return table, num_rows


def _check_method(case, variant, method):
    if method not in METHODS:
        raise Mismatch(f"unknown sort method: {method}; accepted: {', '.join(METHODS)}")
    compares = variant.params.get("test.sort_method") == "comparison" and not case.window  # which need entries
    if method in ("merged", "distributed") and not variant.spill:
        raise Mismatch(f"the method is {method} without a place where rows may be written")
    if (method == "comparison") != compares and method not in ("none", "merged", "distributed"):
        raise Mismatch(f"the method is {method}; it has to be {'comparison' if compares else 'another'}")


def _sorted(kernel, case, variant, keep):
    feeder = Feeder(case, variant)
    thresholds = Thresholds(case, variant, feeder)
    with kernel.job(**memory_of(variant) or {"memory_limit": variant.memory_limit}) as sort:
        _bind(sort, case, feeder, variant)
        if sort.layout() != "":
            raise Mismatch(f"the method is {sort.layout()} before finalise")
        if variant.whole_run:
            thresholds.before_batch(sort, thresholds.when)
            table, num_rows = _run_at_once(sort, case, variant, feeder)
        else:
            _Appending(sort, feeder, variant, thresholds, keep).all()
            finalise(sort, variant.finalise_threads, variant.layout_seed % 2)
            table, num_rows = read_rows(sort, case, variant)
        stats, method = sort.stats(), sort.layout()
        if stats.num_rows != num_rows:
            raise Mismatch(f"stats say num_rows {stats.num_rows}; {num_rows} came out")
        _check_method(case, variant, method)
    repeats = repr(dataclasses.replace(variant, engine="")) if thresholds.set_class is None else None
    return Answer(table, num_rows, feeder.row_ids(), stats.input_rows, bound=thresholds.set_class, repeats=repeats,
                  method=method, dropped_rows=stats.dropped_rows, collided_rows=stats.collided_rows,
                  entry_bytes=stats.entry_bytes, thresholds_read=thresholds.num_read, spilled_bytes=stats.spilled_bytes)


# ---- merges ----------------------------------------------------------------------------------------------------------


class _Runs:
    """The rows as sorted runs: pieces of the input, or partitioned; each cut into batches."""

    def __init__(self, case, variant, feeder):
        self.feeder, self.rng = feeder, random.Random(f"{variant.layout_seed}/runs")
        self.classes, count = case.classes(), variant.merged_runs
        self.runs = [[] for _ in range(count)]
        deals = self.rng.random() < 0.5
        for row in range(case.num_rows):
            self.runs[self.rng.randrange(count) if deals else row * count // max(case.num_rows, 1)].append(row)
        for rows in self.runs:
            rows.sort(key=self.classes.__getitem__)
        self.row_ids, self.held = [0] * case.num_rows, [None] * count
        self.batches = [self._cut(rows) for rows in self.runs]

    def order(self):
        """The rows as they must come out: those that are equal by run, and as they stand there."""
        return sorted((row for rows in self.runs for row in rows), key=self.classes.__getitem__)

    def _cut(self, rows):
        bounds = [0, *sorted(self.rng.randint(0, len(rows)) for _ in range(self.rng.choice((0, 0, 1, 3, 10)))),
                  len(rows)]
        return [rows[begin:end] for begin, end in zip(bounds, bounds[1:])] if rows or self.rng.random() < 0.5 else []

    def give(self, inputs, run):
        """The run's next batch, or its end."""
        self.held[run] = None
        if not self.batches[run]:
            inputs[run].finish()
            return
        rows = self.batches[run].pop(0)
        if self.feeder.vectors:
            places, first_row_id = self.feeder.places(len(rows)), self.rng.choice((0, 5, 1 << 40))
            if places.selection is not None:
                places = dataclasses.replace(places, selection=type(places.selection)("I", places.of_row))
            batch, owners = self.feeder.vector_batch(rows, places, first_row_id)
            inputs[run].append(batch)
            self.held[run] = owners
            for row, place in zip(rows, places.of_row):
                self.row_ids[row] = first_row_id + place
        else:
            inputs[run].append(self.feeder.arrow_batch(rows))


def _merged(kernel, case, variant):
    feeder = Feeder(case, variant)
    feeder.vectors |= case.has_row_id()  # which tell the ids of their rows
    reader, runs = reader_of(case, variant, window=False), _Runs(case, variant, feeder)
    with kernel.job(variant.memory_limit, variant.merged_runs) as merge, contextlib.ExitStack() as handles:
        _bind(merge, case, feeder, variant, window=False)
        inputs = [handles.enter_context(merge.input(ROWS, run)) for run in range(variant.merged_runs)]
        for run in range(variant.merged_runs):
            if runs.rng.random() < 0.5:
                runs.give(inputs, run)
        output, state = handles.enter_context(merge.output(ROWS, variant.batch_rows)), MORE
        while state != DONE:
            for result, array in output.results(as_arrow=not reader.vectors):
                reader.take(result, array)
                state, run = result.state, result.run
            if state == NEEDS_INPUT:
                runs.give(inputs, run)
    return Answer(table_of(reader.types, reader.batches), reader.num_rows, runs.row_ids, order=runs.order(),
                  window=False, repeats=repr(dataclasses.replace(variant, engine="")))


# ---- runs ------------------------------------------------------------------------------------------------------------


def run(library, case, variant):
    """Compiles, appends, reads. Raises QuernError or Mismatch."""
    keep, spec = [], case.spec(window=not variant.merged_runs)
    with compiled(library, spec, variant) as kernel:
        try:
            answer = _merged(kernel, case, variant) if variant.merged_runs else _sorted(kernel, case, variant, keep)
        except quern_abi.QuernError as error:
            if not _is_out_of_memory(error, variant):
                raise
            answer = Answer(None, 0, [], out_of_memory=True)
    del keep, kernel
    check_inputs_released()
    return answer


def _is_out_of_memory(error, variant):
    """Whether the memory limit may be the reason; where threads append, others are told that one of them failed."""
    if not variant.memory_limit:
        return is_refusal(error, variant.spill, variant.is_concurrent())
    is_echo = (variant.is_concurrent() and error.status == quern_abi.FAILED_PRECONDITION
               and "after a failed" in error.text)
    return is_echo or error.status == quern_abi.RESOURCE_EXHAUSTED and error.text.startswith("memory limit exceeded: ")


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernel when it is made anew."""
    check_made_anew(library, case.spec(), variant)
