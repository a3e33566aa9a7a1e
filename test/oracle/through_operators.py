#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ranks of test/collations through the operators: sorts, aggregations, joins and filters, compiled and generic,
must agree with a system on 6,112 strings, on single characters and on ill-formed strings.

    through_operators.py --lib build/lib/libquern.so --data test/collations --operator sort
    ... --operator filter --only utf8mb4_general_ci

Strings come in every string type, in buffers between unreadable pages. Prints what was compared, and the first wrong
answer of each collation; then the exit status is 1.
"""
import argparse
import collections
import ctypes
import dataclasses
import os
import pathlib
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "differential"))

import pyarrow as pa

import corpora
import quern_abi
from filter_conditions import SIGNS
from quern_abi import BUILD, PROBE, ROWS
from random_data import ColumnType, Layout, make_array

ENGINES = ("generic", "jit")
TEXT_TYPES = ("utf8", "large_utf8", "utf8_view", "binary", "binary_view")
BYTES_TYPES = ("binary", "large_binary", "binary_view")


class Wrong(Exception):
    """An answer that is not the other system's."""


@dataclasses.dataclass
class Run:
    """One corpus with one engine."""
    library: quern_abi.Library
    corpus: corpora.Corpus
    engine: str
    rng: random.Random

    def __post_init__(self):
        name = self.rng.choice(TEXT_TYPES if self.corpus.is_text else BYTES_TYPES)
        index = self.rng.choice(("", "", "", "u16"))
        self.type = ColumnType(name, index=index, collation=self.corpus.collation)

    def column(self, rows):
        return make_array(self.rng, self.type, self.corpus.strings, rows, Layout())

    def batches(self, rows, columns):
        """Record batches of the rows cut in three; `columns`: functions of rows that make arrays."""
        cuts = sorted(self.rng.randint(0, len(rows)) for _ in range(2))
        for begin, end in zip([0, *cuts], [*cuts, len(rows)]):
            yield _struct([column(rows[begin:end]) for column in columns])

    def shuffled(self):
        rows = list(range(len(self.corpus.strings)))
        self.rng.shuffle(rows)
        return rows

    def compile(self, spec, params=None):
        return self.library.compile(spec, self.engine, params)

    def shown(self, row):
        return f"{self.corpus.strings[row]!r} of rank {self.corpus.ranks[row]}"


def _numbers(rows):
    return pa.array(rows, pa.int32())


def _struct(arrays):
    return pa.StructArray.from_arrays(arrays, fields=fields_of(array.type for array in arrays))


def fields_of(types):
    return [pa.field(f"c{number}", arrow_type, False) for number, arrow_type in enumerate(types)]


def read_all(output, fields):
    """All columns of the results, as lists."""
    columns = [[] for _ in fields]
    for _, exported in output.results(as_arrow=True):
        batch = pa.RecordBatch._import_from_c(ctypes.addressof(exported), pa.schema(fields))
        for values, column in zip(columns, batch.columns):
            values += column.to_pylist()
    return columns


# ---- sort ------------------------------------------------------------------------------------------------------------

_PARAMS = (None, "prefix_words=1 dictionary_rows=0", "prefix_words=4 dictionary_rows=0", "dictionary_rows=1",
           "test.sort_method=comparison", "batch_size=7")


def check_sort(run):
    """Rows in the order of ranks, whichever way the rows come in, and dense_rank = rank."""
    ranks, descending, params = run.corpus.ranks, run.rng.random() < 0.3, run.rng.choice(_PARAMS)
    spec = f"sort keys={run.type.text()}{':desc' if descending else ''} payload=i32 window=rank,dense_rank"
    with run.compile(spec, params) as kernel, kernel.job() as sort:
        sort.bind_arrow(ROWS, pa.schema(fields_of((run.type.arrow(), pa.int32()))), [0], [1])
        sort.append(ROWS, run.batches(run.shuffled(), (run.column, _numbers)))
        sort.finalise()
        with sort.output(ROWS) as output:
            rows, found_ranks, dense_ranks = read_all(output, fields_of((pa.int32(), pa.uint64(), pa.uint64())))
    if sorted(rows) != list(range(len(ranks))):
        raise Wrong(f"{len(rows)} rows come out of {len(ranks)}, or one of them twice")
    most, first = max(ranks), {}
    for place, (row, rank, dense_rank) in enumerate(zip(rows, found_ranks, dense_ranks)):
        wanted = most - ranks[row] if descending else ranks[row]
        if dense_rank != wanted + 1 or rank != first.setdefault(wanted, place) + 1:
            before = run.shown(rows[place - 1]) if place else "nothing"
            raise Wrong(f"{spec} {params}: in place {place}, behind {before}, comes {run.shown(row)}; dense_rank "
                        f"{dense_rank}, expected "
                        f"{wanted + 1}; rank {rank}, expected {first.get(wanted, place) + 1}")
    return len(rows)


# ---- aggregate -------------------------------------------------------------------------------------------------------


def check_aggregate(run):
    """A group for each rank, of as many rows, in one spelling of theirs; over all, least, greatest and how many
    differ."""
    ranks, arrow = run.corpus.ranks, run.type.bits_arrow()
    text = run.type.text()
    _check_groups(run, f"aggregate keys={text} aggs=count_star,any(i32)", arrow)
    with (run.compile(f"aggregate aggs=min({text}),max({text}),count_distinct({text})") as kernel,
          kernel.job() as aggregate):
        aggregate.bind_arrow(ROWS, pa.schema(fields_of((run.type.arrow(),) * 3)), [], [0, 1, 2])
        aggregate.append(ROWS, run.batches(run.shuffled(), (run.column,) * 3))
        aggregate.finalise()
        with aggregate.output(ROWS) as groups:
            (least,), (greatest,), (count,) = read_all(groups, fields_of((arrow, arrow, pa.int64())))
    rank_of = dict(zip(run.corpus.strings, ranks))
    if (rank_of.get(least), rank_of.get(greatest), count) != (0, max(ranks), max(ranks) + 1):
        raise Wrong(f"min({text}) {least!r} of rank {rank_of.get(least)}, expected 0; max {greatest!r} of rank "
                    f"{rank_of.get(greatest)}, "
                    f"expected {max(ranks)}; count_distinct {count}, expected {max(ranks) + 1}")
    return len(ranks)


def _check_groups(run, spec, arrow):
    ranks = run.corpus.ranks
    with run.compile(spec) as kernel, kernel.job() as aggregate:
        aggregate.bind_arrow(ROWS, pa.schema(fields_of((run.type.arrow(), pa.int32()))), [0], [1])
        aggregate.append(ROWS, run.batches(run.shuffled(), (run.column, _numbers)))
        aggregate.finalise()
        with aggregate.output(ROWS) as groups:
            keys, counts, rows = read_all(groups, fields_of((arrow, pa.int64(), pa.int32())))
    wanted, found = collections.Counter(ranks), collections.Counter()
    rank_of = dict(zip(run.corpus.strings, ranks))
    for key, count, row in zip(keys, counts, rows):
        rank = ranks[row]
        found[rank] += 1
        if rank_of.get(key) != rank or count != wanted[rank] or found[rank] > 1:
            raise Wrong(f"{spec}: the {found[rank]}. group of rank {rank}, with {run.shown(row)}, has key {key!r} of "
                        "rank "
                        f"{rank_of.get(key)} and {count} rows; expected one group of {wanted[rank]}")
    if len(found) != len(wanted):
        raise Wrong(f"{spec}: {len(found)} groups; expected {len(wanted)}")


# ---- join ------------------------------------------------------------------------------------------------------------


def check_join(run):
    """Each string finds those of its rank among all, both in orders of their own; `mark`: among those of even rank."""
    ranks = run.corpus.ranks
    number_of = collections.Counter(ranks)
    pairs = _pairs(run, f"join.inner keys={run.type.text()} build=i32 probe=i32", run.shuffled(), run.shuffled())
    for probe, build in pairs:
        if ranks[probe] != ranks[build]:
            raise Wrong(f"join.inner keys={run.type.text()}: {run.shown(probe)} finds {run.shown(build)}")
    wanted = sum(count * count for count in number_of.values())
    if len(set(pairs)) != wanted or len(pairs) != wanted:
        found = collections.Counter(probe for probe, _ in pairs)
        row = next((row for row, rank in enumerate(ranks) if found[row] != number_of[rank]), 0)
        raise Wrong(f"join.inner keys={run.type.text()}: {len(pairs)} pairs, of which {len(set(pairs))} differ; "
                    f"expected {wanted}. "
                    f"{run.shown(row)} finds {found[row]}; expected {number_of[ranks[row]]}")
    even = [row for row in run.shuffled() if ranks[row] % 2 == 0]
    kept = [probe for probe, in _pairs(run, f"join.anti keys={run.type.text()} probe=i32", run.shuffled(), even)]
    if sorted(kept) != [row for row, rank in enumerate(ranks) if rank % 2]:
        raise Wrong(f"join.anti keys={run.type.text()}: {len(kept)} of {len(ranks)} rows stay; expected those of odd "
                    "rank")
    return len(ranks)


def _pairs(run, spec, probe_rows, build_rows):
    schema = pa.schema(fields_of((run.type.arrow(), pa.int32())))
    names = [name for name in ("probe", "build") if f" {name}=" in spec]
    with run.compile(spec) as kernel, kernel.job() as join:
        join.bind_arrow(BUILD, schema, [0], [1] if "build" in names else [])
        join.bind_arrow(PROBE, schema, [0], [1])
        join.append(BUILD, run.batches(build_rows, (run.column, _numbers)))
        join.finalise()
        with join.output(PROBE) as output:
            columns = [[] for _ in names]
            for batch in run.batches(probe_rows, (run.column, _numbers)):
                output.push(batch)
                for values, more in zip(columns, read_all(output, fields_of((pa.int32(),) * len(names)))):
                    values += more
    return list(zip(*columns))


# ---- filter ----------------------------------------------------------------------------------------------------------

_NUM_CONSTANTS = {"generic": 15, "jit": 2}
_COLUMN_SIGNS = ("=", "<", ">=")


def check_filter(run):
    """Column against column, each string against its neighbours in order and against others; then against constants."""
    ranks = run.corpus.ranks
    in_order = sorted(run.shuffled(), key=ranks.__getitem__)
    column = run.column(in_order)
    for other_rows in (in_order[1:] + in_order[:1], run.shuffled()):
        other = run.column(other_rows)
        for sign in _COLUMN_SIGNS:
            spec = f"filter {run.type.text()} {sign} {run.type.text()}"
            wanted = [SIGNS[sign](ranks[one], ranks[two]) for one, two in zip(in_order, other_rows)]
            _check_passed(run, spec, [column, other], wanted, in_order, other_rows)
    for _ in range(_NUM_CONSTANTS[run.engine]):
        check_constant(run, run.rng.choice(_COLUMN_SIGNS), run.rng.randrange(len(ranks)), other, other_rows)
    some = run.rng.sample(in_order, min(len(in_order), 12))
    members = {ranks[row] for row in some}
    constants = ", ".join(f"x'{run.corpus.strings[row].hex()}'" for row in some)
    _check_passed(run, f"filter {run.type.text()} in ({constants})", [column],
                  [ranks[row] in members for row in in_order], in_order)
    return len(ranks)


def check_constant(run, sign, row, column, rows):
    """Strings against one of the corpus."""
    ranks = run.corpus.ranks
    spec = f"filter {run.type.text()} {sign} x'{run.corpus.strings[row].hex()}'"
    _check_passed(run, spec, [column], [SIGNS[sign](ranks[other], ranks[row]) for other in rows], rows)


def _check_passed(run, spec, columns, wanted, left, right=None):
    found = passed_rows(run.library, run.engine, spec, columns)
    if found == [place for place, truth in enumerate(wanted) if truth]:
        return
    place = min(set(found) ^ {place for place, truth in enumerate(wanted) if truth}, default=0)
    against = f" and {run.shown(right[place])}" if right else ""
    raise Wrong(f"{spec}: {'does not pass' if wanted[place] else 'passes'}: {run.shown(left[place])}{against}")


def passed_rows(library, engine, spec, columns):
    """The numbers of the rows that pass."""
    with library.compile(spec, engine) as kernel, kernel.job() as condition:
        schema = pa.schema(fields_of(column.type for column in columns))
        condition.bind_arrow(ROWS, schema, list(range(len(columns))), [])
        return condition.select(_struct(columns), len(columns[0]))


# ---- LIKE ------------------------------------------------------------------------------------------------------------

_JIT_SHARE = 40  # of patterns, of which one is compiled


def check_likes(library, folder, engine, rng):
    """Every LIKE case, under the name of one family or the other."""
    num_cases, failures = 0, []
    for collation, pattern, escape, string, wanted in corpora.like_cases(folder):
        if engine == "jit" and rng.randrange(_JIT_SHARE):
            continue
        types = BYTES_TYPES if collation == "binary" else TEXT_TYPES  # in text a character is never a byte
        column_type = ColumnType(rng.choice(types), collation=rng.choice(("", "tidb.")) + collation)
        array = make_array(rng, column_type, [string], [0], Layout())
        spec = f"filter {column_type.text()} like x'{pattern.hex()}' escape x'{escape.encode().hex()}'"
        num_cases += 1
        if passed_rows(library, engine, spec, [array]) != [0] * wanted:
            failures.append(f"{spec}: {string!r} {'does not pass' if wanted else 'passes'} ({engine})")
    return num_cases, failures


# ---- all of them -----------------------------------------------------------------------------------------------------

CHECKS = {"sort": check_sort, "aggregate": check_aggregate, "join": check_join, "filter": check_filter}


def has_icu(library):
    try:
        library.compile("sort keys=utf8(icu:und)", "generic").close()
    except quern_abi.QuernError:
        return False
    return True


def check_ranks(options, library):
    """(strings compared, failures)."""
    num_strings, failures, with_icu = 0, [], has_icu(library)
    for corpus in corpora.corpora(options.data):
        if options.only and options.only != corpus.collation or corpus.collation.startswith("icu:") and not with_icu:
            continue
        for engine in ENGINES:
            rng = random.Random(f"{options.seed}/{options.operator}/{corpus.name}/{corpus.collation}/{engine}")
            try:
                num_strings += CHECKS[options.operator](Run(library, corpus, engine, rng))
            except (Wrong, quern_abi.QuernError) as error:
                failures.append(f"{corpus.collation}, {corpus.name}, {engine}: {error}")
    return num_strings, failures


def run_checks(options):
    library, begun = quern_abi.Library(options.lib), time.monotonic()
    if options.operator == "like":
        num_checked, failures = 0, []
        for engine in ENGINES:
            num, wrong = check_likes(library, options.data, engine, random.Random(options.seed))
            num_checked, failures = num_checked + num, failures + wrong
    else:
        num_checked, failures = check_ranks(options, library)
    for failure in failures[:40]:
        print(f"FAILED: {failure}")
    print(f"{num_checked} strings through {options.operator}, {len(failures)} failures, {time.monotonic() - begun:.1f} "
          "s")
    return 1 if failures or not num_checked else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--data", required=True, help="the folder of ranks")
    parser.add_argument("--operator", choices=sorted([*CHECKS, "like"]), required=True)
    parser.add_argument("--only", help="one collation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    if options.child:
        return run_checks(options)
    # In a process of its own, which a sanitizer's runtime may come first in.
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--child"]
    return subprocess.run(command, env=quern_abi.environment_for(options.lib), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
