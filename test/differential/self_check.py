#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The harness checks itself, without a library: both oracles agree, and every layout of a side's rows decodes (by pyarrow) to those rows.

    self_check.py --seed 1 --cases 200
"""
import argparse
import dataclasses
import sys

sys.dont_write_bytecode = True

import pyarrow as pa

import join_case
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
        feeder = join_case._Feeder(case, variant, name)
        if feeder.vectors:
            continue
        for batch, (first, end) in zip(feeder.arrow_batches(), feeder.cuts):
            for child, number in zip(batch.flatten(), feeder.side.child_order):
                column = feeder.columns[number]
                expected = bits_array(column.type, column.values, column.indices[name][first:end]).to_pylist()
                if _bits(child, column.type) != expected:
                    raise SystemExit(f"case {case.number}: a layout of {column.type.text()} on the {name} side changes its rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    oracle = DuckdbOracle()
    for number in range(options.cases):
        case = join_case.Case.generate(options.seed, number)
        join_case.Expected(case, oracle)  # compares the oracles
        for variant in case.variants():
            check_layouts(case, variant)
    print(f"{options.cases} cases passed")


if __name__ == "__main__":
    main()
