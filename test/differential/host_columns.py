#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Columns as hosts have them change no result: a random job gets its batches once as plain columns, and once more with
columns that have a selection of their own, are constant, or are encoded otherwise. Rows, their order and errors must be
the same.

    host_columns.py --lib build/lib/libquern.so --seed 1 --cases 100         of each operator
    host_columns.py --lib build/lib/libquern.so --seed 1 --operator sort --only 31

The specs and values are those of run.py. Some columns get the value of their first row in a whole batch, so that they
can be constant. Forms of columns, for the rows 7 8 7 of a batch:

    plain      values 7 8 7
    spread     values 8 9 7 7      selection 2 0 3       elements in another order, some of them unused
    shared     values 7 8          selection 0 1 0       rows share elements
    constant   values 7            for rows 7 7 7

In each of them, bools may take a byte, integers and decimals fewer bytes than their type, and strings of views may be
pointers.
"""
import argparse
import array
import collections
import dataclasses
import os
import random
import struct
import subprocess
import sys

sys.dont_write_bytecode = True

import aggregate_case
import filter_case
import join_case
import quern_abi
import sort_case
from aggregate_expected import output_types
from aggregate_run import register_host_function
from join_rows import SIDES
from quern_abi import BUILD, PROBE, ROWS, UNMATCHED
from random_data import INTEGER_CODES, ColumnType, Layout, guarded, make_array
from result_columns import ResultReader, table_of

FORMS, ENCODINGS = ("spread", "shared", "constant"), ("bytes", "narrow", "pointers")
SIZES = (0, 1, 30, 100, 300)
LARGE, LARGE_STEP = 70_000, 25  # rows of a batch that the library divides, and how often there is one
ENGINES = ("generic", "jit")


class Failure(Exception):
    """The forms of columns change what a job does."""


@dataclasses.dataclass
class Side:
    """What enters by a port: keys and payload as (type, values, index of each row); None: a rowid."""
    port: int
    num_rows: int
    keys: list
    payload: list


@dataclasses.dataclass
class Random:
    """A random spec with its rows."""
    spec: str
    sides: list
    types: list              # of the results
    scans_unmatched: bool = False


# ---- random jobs -----------------------------------------------------------------------------------------------------


def _rows_of(column):
    return column and (column.type, column.values, column.indices)


def _of_rows(case, types):
    """An operator with one input."""
    payload = [] if isinstance(case, filter_case.Case) else case.payload()
    return Random(case.spec(), [Side(ROWS, case.num_rows, [_rows_of(key) for key in case.keys],
                                     [_rows_of(column) for column in payload])], types)


def _aggregate(seed, number, size):
    case = aggregate_case.Case.generate(seed, number, (size, size))
    return _of_rows(case, output_types(case))


def _filter(seed, number, size):
    return _of_rows(filter_case.Case.generate(seed, number, size), [])


def _sort(seed, number, size):
    case = sort_case.Case.generate(seed, number, size)
    return _of_rows(case, [output.type for output in case.outputs()])


def _join(seed, number, size):
    case = join_case.Case.generate(seed, number, {side: size for side in SIDES})
    sides = []
    for port, name in ((BUILD, "build"), (PROBE, "probe")):
        payload = [item.column for item in case.sides[name].payload] + [item.column for item in case.residuals]
        keys, payload = ([column and (column.type, column.values, column.indices[name]) for column in columns]
                         for columns in (case.keys, payload))
        sides.append(Side(port, case.sides[name].num_rows, keys, payload))
    types = [dataclasses.replace(output.type, index="") if output.column or output.side == "mark" else
             ColumnType("u64", nullable=output.type.nullable) for output in case.outputs()]
    return Random(case.spec(), sides, types, case.kind.scans_unmatched)


OPERATORS = {"aggregate": _aggregate, "filter": _filter, "join": _join, "sort": _sort}


# ---- columns ---------------------------------------------------------------------------------------------------------


def narrowed(column_type, values):
    """(bytes a value, values) in the fewest bytes that hold them; 0 bytes where these are as many as the type has."""
    signed = not column_type.name.startswith("u")
    if column_type.is_decimal:
        values = [column_type.unscaled(value) for value in values]
    for num_bytes in (1, 2, 4, 8):
        bits = 8 * num_bytes - signed
        if num_bytes < column_type.bits_arrow().bit_width // 8 and all(
                -(1 << bits) * signed <= value < 1 << bits for value in values):
            return num_bytes, b"".join(value.to_bytes(num_bytes, "little", signed=signed) for value in values)
    return 0, b""


def pointer_strings(values, keep):
    """Views whose long strings are pointers."""
    long, views = guarded(b"".join(value for value in values if len(value) > 12)), bytearray()
    keep.append(long)
    address = long.address
    for value in values:
        if len(value) <= 12:
            views += struct.pack("<i12s", len(value), value)
        else:
            views += struct.pack("<i4sQ", len(value), value[:4], address)
            address += len(value)
    return bytes(views)


class Forms:
    """Makes the columns of batches, in one form or another; counts what it made."""

    def __init__(self, rng):
        self.rng, self.counts = rng, collections.Counter()
        self.layout = Layout(misaligned=rng.random() < 0.05)

    def plain(self, column, indices, keep):
        return quern_abi.raw_column(make_array(self.rng, column[0], column[1], indices, self.layout), keep)

    def other(self, column, indices, keep):
        """The same rows in a random form."""
        same = len(set(indices)) == 1
        form = self.rng.choice(("plain", "constant", "constant") if same else ("plain", "spread", "shared"))
        self.counts[form] += 1
        if form == "plain":
            return self._encoded(column, indices, keep)
        if form == "constant":
            made = self._encoded(column, indices[:1], keep)
            made.flags |= quern_abi.COLUMN_CONSTANT
            return made
        elements, places = self._spread(column, indices) if form == "spread" else self._shared(indices)
        made, selection = self._encoded(column, elements, keep), array.array("I", places)
        keep.append(selection)
        made.selection = selection.buffer_info()[0]
        return made

    def _encoded(self, column, elements, keep):
        """A column of these elements, whose values may be encoded as Arrow does not do it."""
        made, column_type = self.plain(column, elements, keep), column[0]
        if column_type.index or self.rng.random() < 0.4:
            return made
        values = [column[1][0 if index is None else index] for index in elements]
        encoding, content = None, b""
        if column_type.name == "bool":
            encoding, content = "bytes", bytes(self.rng.choice((1, 2, 255)) if value else 0 for value in values)
            made.flags = quern_abi.COLUMN_BYTES
        elif column_type.name in INTEGER_CODES or column_type.is_decimal:
            made.value_bytes, content = narrowed(column_type, values)
            encoding = "narrow" if made.value_bytes else None
        elif column_type.name.endswith("_view"):
            encoding, content = "pointers", pointer_strings(values, keep)
            made.flags = quern_abi.COLUMN_POINTERS
        if encoding:
            self.counts[encoding] += 1
            keep.append(guarded(content))
            made.values = keep[-1].address
        return made

    def _spread(self, column, indices):
        total = len(indices) + self.rng.choice((0, 1, 10))
        elements = [self.rng.randrange(len(column[1])) for _ in range(total)]
        places = self.rng.sample(range(total), len(indices))
        for place, index in zip(places, indices):
            elements[place] = index
        return elements, places

    @staticmethod
    def _shared(indices):
        place_of = {index: place for place, index in enumerate(dict.fromkeys(indices))}
        return list(place_of), [place_of[index] for index in indices]


class Batch:
    """The rows of one batch: for each column their indices, some of them all alike; and which rows take part."""

    def __init__(self, rng, side, rows, first_row_id):
        self.side, self.first_row_id, self.num_rows = side, first_row_id, len(rows)
        self.columns = [[self._drawn(rng, column, rows) for column in columns]
                        for columns in (side.keys, side.payload)]
        self.selection = None
        if rng.random() < 0.3:
            self.num_rows = rng.randint(0, len(rows))
            self.selection = array.array("I", sorted(rng.sample(range(len(rows)), self.num_rows)))

    @staticmethod
    def _drawn(rng, column, rows):
        if column is None:
            return None
        indices = [column[2][row] for row in rows]
        return [indices[0]] * len(indices) if rows and rng.random() < 0.3 else indices

    def made(self, form):
        """(quern_batch, what it points to); form(column, indices, keep) makes a column."""
        keep = []
        keys, payload = ([quern_abi.Column() if column is None else form(column, indices, keep)
                          for column, indices in zip(columns, of_columns)]
                         for columns, of_columns in zip((self.side.keys, self.side.payload), self.columns))
        return quern_abi.batch_of_columns(keys, payload, self.selection, self.num_rows, self.first_row_id, keep), keep


def random_batches(rng, side, num_rows):
    """The rows of a side once, or again and again up to a larger number."""
    rows = [row % side.num_rows for row in range(num_rows)] if side.num_rows else []
    cuts = [0, *sorted(rng.randint(0, len(rows)) for _ in range(rng.choice((0, 0, 1, 2)))), len(rows)]
    if num_rows > side.num_rows:
        cuts = [0, len(rows)]
    return [Batch(rng, side, rows[first:end], first) for first, end in zip(cuts, cuts[1:])]


# ---- runs ------------------------------------------------------------------------------------------------------------


def _answer(job, case, given):
    """What comes out of a job: rows and their order, or the error. `given`: the batches of each side."""
    reader = ResultReader(case.types, True, 0)
    try:
        if case.spec.startswith("filter"):
            return [job.select(batch, batch.num_rows) for batch, _ in given[0]]
        job.append(case.sides[0].port, (batch for batch, _ in given[0]))
        job.finalise()
        if len(given) == 1:
            with job.output(ROWS) as output:
                reader.read(output)
        else:
            with job.output(PROBE) as output:
                for batch, _ in given[1]:
                    output.push(batch)
                    reader.read(output)
        if case.scans_unmatched:
            with job.output(UNMATCHED) as output:
                reader.read(output)
    except quern_abi.QuernError as error:
        return str(error)
    return reader.num_rows, table_of(reader.types, reader.batches)


def check_case(library, operator, seed, number):
    """Runs one case in both ways; answers its forms and whether it ended in an error."""
    rng = random.Random(f"host columns/{seed}/{operator}/{number}")
    case, forms = OPERATORS[operator](f"host columns/{seed}", number, rng.choice(SIZES)), Forms(rng)
    sizes = [side.num_rows for side in case.sides]
    if number % LARGE_STEP == LARGE_STEP - 1:
        sizes = [LARGE, *(min(size, 3) for size in sizes[1:])]
    batches = [random_batches(rng, side, size) for side, size in zip(case.sides, sizes)]
    answers = []
    with library.compile(case.spec, ENGINES[number % 2]) as kernel:
        for form in (forms.plain, forms.other):
            given = [[batch.made(form) for batch in of_side] for of_side in batches]
            with kernel.job() as job:
                answers.append(_answer(job, case, given))
    one, other = answers
    if one != other:
        raise Failure(f"{operator} {number}, {case.spec}: plain columns give\n{one}\nothers, of forms "
                      f"{dict(forms.counts)}:\n{other}")
    return forms.counts, isinstance(one, str)


def run_cases(options):
    library, num_errors, forms = quern_abi.Library(options.lib), 0, collections.Counter()
    register_host_function(library)
    for operator in [options.operator] if options.operator else OPERATORS:
        for number in range(options.cases) if options.only is None else [options.only]:
            print(f"begin {operator} {number}", flush=True)
            try:
                counts, has_error = check_case(library, operator, options.seed, number)
            except Failure as failure:
                print(f"FAILED: {failure}\n{again(options, operator, number)}")
                return 1
            forms.update(counts)
            num_errors += has_error
        library.clear_cache()
    seen = ", ".join(f"{form} {forms[form]}" for form in ("plain", *FORMS, *ENCODINGS))
    print(f"columns: {seen}; errors: {num_errors}")
    if options.only is None and not all(forms[form] for form in (*FORMS, *ENCODINGS)):
        print(f"FAILED: not all forms were seen; expected: {', '.join((*FORMS, *ENCODINGS))}")
        return 1
    return 0


def again(options, operator, number):
    """How a case is run alone."""
    return (f"again: {sys.executable} {os.path.abspath(__file__)} --lib {options.lib} --seed {options.seed} "
            f"--operator {operator} --only {number}")


def watch(options):
    """Runs the cases in a child process; tells in which it crashed."""
    child = subprocess.Popen([sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--child"], text=True,
                             stdout=subprocess.PIPE, env=quern_abi.environment_for(options.lib))
    last = []
    for line in child.stdout:
        word, *rest = line.split(" ")
        if word == "begin":
            last = rest
        else:
            print(line, end="", flush=True)
    if child.wait() not in (0, 1):
        print(f"FAILED: the process ended with status {child.returncode}\n{again(options, last[0], int(last[1]))}")
    return 1 if child.returncode else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100, help="of each operator")
    parser.add_argument("--operator", choices=sorted(OPERATORS), help="default: all")
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    if options.child:
        return run_cases(options)
    print(f"seed {options.seed}", flush=True)
    return watch(options)


if __name__ == "__main__":
    sys.exit(main())
