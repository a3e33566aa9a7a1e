#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The harness checks itself, without a library: both oracles agree on every kind of join, every layout of a side's rows decodes (by
pyarrow) to those rows, the comparison of answers sees a row that lacks, and the table of kinds is the library's.

    self_check.py --seed 1 --cases 200
"""
import argparse
import collections
import dataclasses
import pathlib
import re
import sys

sys.dont_write_bytecode = True

import pyarrow as pa

import join_case
import join_expected
from join_feed import Feeder
from join_kinds import KINDS
from join_run import Answer
from oracle import DuckdbOracle
from random_data import STRING_TYPES, bits_array


def _bits(array, column_type):
    """A batch's column as its physical values, decoded by pyarrow."""
    if column_type.index:
        value_type = dataclasses.replace(column_type, index="")
        values = _bits(array.dictionary, value_type)
        return [None if index is None else values[index] for index in array.indices.to_pylist()]
    if column_type.name in STRING_TYPES:
        return array.cast(pa.large_binary()).to_pylist()
    values = array.view(column_type.bits_arrow()).to_pylist()
    return [int(value) if isinstance(value, bool) else value for value in values]


def check_layouts(case, variant):
    for name in join_case.SIDES:
        feeder = Feeder(case, variant, name)
        if feeder.vectors:
            continue
        for batch, (first, end) in zip(feeder.arrow_batches(), feeder.cuts):
            for child, number in zip(batch.flatten(), feeder.side.child_order):
                column = feeder.columns[number]
                expected = bits_array(column.type, column.values, column.indices[name][first:end]).to_pylist()
                if _bits(child, column.type) != expected:
                    raise SystemExit(f"case {case.number}: a layout of {column.type.text()} on the {name} side changes its rows")


def check_kinds():
    """join_kinds.py = runtime/join_kinds.def."""
    path = pathlib.Path(__file__).resolve().parents[2] / "runtime" / "join_kinds.def"
    rows = re.findall(r'^QUERN_JOIN_KIND\(\w+, "(\w+)", (true|false), k(\w+), k(\w+)\)', path.read_text(), re.MULTILINE)
    theirs = [(name, pairs == "true", probe.lower(), build.lower()) for name, pairs, probe, build in rows]
    ours = [dataclasses.astuple(kind) for kind in KINDS.values()]
    if theirs != ours:
        raise SystemExit(f"the kinds differ: {sorted(set(theirs) ^ set(ours))}; those of {path} are wanted")


def check_comparison(case, expected):
    """The comparison takes the oracle's answer in another order, and not without its last row."""
    if expected.must_fail:
        return
    for table in (expected.table, None if expected.table is None else expected.table.slice(1)):
        num_rows = expected.num_rows if table is None else table.num_rows
        turned = None if table is None else table.take(pa.array(range(num_rows - 1, -1, -1), pa.int64()))
        is_whole = num_rows == expected.num_rows
        try:
            expected.check(Answer(num_rows, turned, min(expected.table_rows), expected.build_rows, None, None))
        except join_expected.Mismatch as error:
            if is_whole:
                raise SystemExit(f"case {case.number}: the oracle's own answer is refused: {error}") from error
        else:
            if not is_whole:
                raise SystemExit(f"case {case.number}: an answer that lacks a row is taken")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    check_kinds()
    oracle, kinds = DuckdbOracle(), collections.Counter()
    for number in range(options.cases):
        case = join_case.Case.generate(options.seed, number)
        check_comparison(case, join_expected.Expected(case, oracle))  # which compares the oracles
        kinds[case.kind.name, bool(case.residuals)] += 1
        for variant in case.variants():
            check_layouts(case, variant)
    print(", ".join(f"{name} {kinds[name, False]} + {kinds[name, True]} with residual" for name in KINDS))
    never = [name for name in KINDS if not kinds[name, False] or not kinds[name, True] and name != "anti_null_aware"]
    if never:
        raise SystemExit(f"no case, or none with a residual predicate, of {', '.join(never)}")
    print(f"{options.cases} cases passed")


if __name__ == "__main__":
    main()
