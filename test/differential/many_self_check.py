#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""many.py checks itself: an answer in which one value of one data set is changed is found, in that data set and in no
other, whether the compiled kernel gave it, the generic one, or both. Without a change nothing is found.

    many_self_check.py --lib build/lib/libquern.so --seed 1
"""
import argparse
import sys

sys.dont_write_bytecode = True

import duckdb

import many
import quern_abi
from many_abi import Calls

SETS, SPECS = 40, 4
WRONG = ((), (0,), (1,), (0, 1))  # engines whose answer is changed
# What DuckDB does not know, or knows only where the values vary.
_UNSURE = ("corr", "approx_count_distinct")


def is_sure(job):
    """Whether DuckDB answers every column."""
    functions = [aggregate.function for aggregate in getattr(job.case, "aggregates", [])]
    return not functions or bool(job.counts["with DuckDB"]) and not set(functions) & set(_UNSURE)


def check_spec(options, operator, number, library, calls, connection):
    """How many changes were found."""
    found = 0
    for engines in WRONG:
        job = many.made_job(options, operator, number)
        job.compile(library)
        try:
            job.run(calls)
            spoilt = job.spoil(engines, SETS // 3) if engines else None
            failures = [failure.number for failure in job.check(connection)]
        finally:
            job.close()
        wanted = [] if spoilt is None else [spoilt]
        if failures != wanted and (failures or len(engines) < 2 or is_sure(job)):
            raise SystemExit(f"{operator}, spec {number}, {job.spec}: answers of engines {engines} are changed in the "
                             f"data sets {wanted}; found: {failures}")
        found += bool(failures)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.lib, options.sets, options.data, options.rows = quern_abi.library_path(options.lib), SETS, None, None
    library, calls, connection = quern_abi.Library(options.lib), Calls(options.lib), duckdb.connect()
    for operator in many.OPERATORS:
        found = sum(check_spec(options, operator, number, library, calls, connection) for number in range(SPECS))
        print(f"{operator}: {found} changed answers found")
        if found < SPECS:
            raise SystemExit(f"{operator}: at least {SPECS} have to be found")


if __name__ == "__main__":
    main()
