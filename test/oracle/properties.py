#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hash, equality and order agree: strings that are equal in a sort are equal in groups, joins and filters, and sorts
and filters agree on order. The strings are random, so no other system's answers are needed. All collations of
runtime/collation/collations.def are tested.

    properties.py --lib build/lib/libquern.so --seed 7

Each collation gets two sets of strings, text and ill-formed bytes, each with every length from 0 to 40. Their ranks are
those of one sort by comparison; they are then checked in all operators like the ranks of other systems
(through_operators.py), and one string of each length is the constant of a filter. The strings lie between unreadable
pages.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "differential"))

import pyarrow as pa

import corpora
import quern_abi
import through_operators
from collated_strings import random_strings
from quern_abi import ROWS
from random_data import ColumnType, Layout, make_array
from through_operators import CHECKS, ENGINES, Run, Wrong

NUM_STRINGS = 300
LENGTHS = range(41)
_COLLATIONS = pathlib.Path(__file__).resolve().parents[2] / "runtime" / "collation" / "collations.def"
_ICU = ("icu:und", "icu:de-u-co-phonebk", "icu:ja")
_SIGNS = ("=", "<>", "<", "<=", ">", ">=")


def collations(library):
    names = re.findall(r'^QUERN_COLLATION\(\w+, "([^"]+)"', _COLLATIONS.read_text(), re.MULTILINE)
    return names + (list(_ICU) if through_operators.has_icu(library) else [])


# ---- strings ---------------------------------------------------------------------------------------------------------


def _character(rng):
    plane = rng.random()
    if plane < 0.3:
        return chr(rng.randrange(0x80))
    while True:
        code = rng.randrange(*((0x80, 0x800) if plane < 0.5 else (0x800, 0x10000)
                               if plane < 0.9 else (0x10000, 0x110000)))
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def _of_length(rng, num_bytes):
    return "".join(rng.choices(rng.choice(("aA", "abAB ", "xyzXYZ@[`{")), k=num_bytes)).encode()


def random_corpus(rng, collation, is_text):
    """Without ranks."""
    values = [_of_length(rng, length) for length in LENGTHS for _ in range(2)]
    values += random_strings(rng, "", is_text, 100) + random_strings(rng, "", is_text, 100)
    while len(values) < NUM_STRINGS:
        values.append("".join(_character(rng) for _ in range(rng.choice((1, 1, 2, 5, 12)))).encode())
    if not is_text:
        values += [rng.randbytes(rng.randint(1, 20)) for _ in range(60)]
        values += [value[:rng.randint(0, len(value))] for value in rng.sample(values, 60)]  # cut within a character
    return corpora.Corpus("text" if is_text else "bytes", collation, list(dict.fromkeys(values)), [], is_text)


def ranks_by_sort(library, corpus):
    rows = list(range(len(corpus.strings)))
    column_type = ColumnType("utf8" if corpus.is_text else "binary", collation=corpus.collation)
    fields = through_operators.fields_of((column_type.arrow(), pa.int32()))
    with library.compile(f"sort keys={column_type.text()} payload=i32 window=dense_rank", "generic",
                         "test.sort_method=comparison") as kernel, \
            kernel.job() as sort:
        sort.bind_arrow(ROWS, pa.schema(fields), [0], [1])
        strings = make_array(random.Random(0), column_type, corpus.strings, rows, Layout(plain=True))
        sort.append(ROWS, [pa.StructArray.from_arrays([strings, pa.array(rows, pa.int32())], fields=fields)])
        sort.finalise()
        with sort.output(ROWS) as output:
            order, ranks = through_operators.read_all(output, through_operators.fields_of((pa.int32(), pa.uint64())))
    rank_of = dict(zip(order, ranks))
    return [rank_of[row] - 1 for row in rows]


# ---- constants -------------------------------------------------------------------------------------------------------


def check_constants(run):
    """A constant of every length, under one comparison each."""
    of_length = {}
    for row, string in enumerate(run.corpus.strings):
        of_length.setdefault(len(string), []).append(row)
    rows = run.shuffled()
    column = run.column(rows)
    for length in LENGTHS:
        through_operators.check_constant(run, run.rng.choice(_SIGNS), run.rng.choice(of_length[length]), column, rows)
    return len(run.corpus.strings)


def check_collation(library, collation, seed):
    """(strings compared, failures)."""
    num_strings, failures = 0, []
    for is_text in (True, False):
        corpus = random_corpus(random.Random(f"{seed}/{collation}/{is_text}"), collation, is_text)
        corpus.ranks = ranks_by_sort(library, corpus)
        for engine in ENGINES:
            checks = dict(CHECKS)
            if is_text == (engine == "jit"):
                checks["constants"] = check_constants  # 41 compilations: of one set of strings
            for name, check in checks.items():
                rng = random.Random(f"{seed}/{collation}/{is_text}/{engine}/{name}")
                try:
                    num_strings += check(Run(library, corpus, engine, rng))
                except (Wrong, quern_abi.QuernError) as error:
                    failures.append(f"{collation}, {corpus.name}, {name}, {engine}: {error}")
    return num_strings, failures


def run_checks(options):
    library, begun, num_strings, failures = quern_abi.Library(options.lib), time.monotonic(), 0, []
    print(f"seed {options.seed}", flush=True)
    names = [options.only] if options.only else collations(library)
    for collation in names:
        number, wrong = check_collation(library, collation, options.seed)
        num_strings, failures = num_strings + number, failures + wrong
    for failure in failures[:40]:
        print(f"FAILED: {failure}")
    print(f"{num_strings} strings of {len(names)} collations, {len(failures)} failures, {time.monotonic() - begun:.1f} "
          "s")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--only", help="one collation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    if options.child:
        return run_checks(options)
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--child"]
    return subprocess.run(command, env=quern_abi.environment_for(options.lib), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
