#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the comparison of queries without Quern: it takes DuckDB's own answer, and refuses it without a row, with a
row twice, under other names, and in another order where the query gives one."""
import argparse
import sys

sys.dont_write_bytecode = True

import pyarrow as pa

from query_operator import Answer, Case, Expected, Oracle
from result_columns import Mismatch


def _refusal(expected, table):
    try:
        expected.check(Answer(table))
    except Mismatch as error:
        return str(error)
    return ""


def check(case, oracle):
    """The number of wrong answers that were tried."""
    table, expected = oracle.table(case), Expected(case, oracle)
    if refusal := _refusal(expected, table):
        raise SystemExit(f"case {case.number}: DuckDB's own answer is refused: {refusal}")
    wrong = [table.rename_columns([f"{name}x" for name in table.column_names])]
    if table.num_rows:
        wrong += [table.slice(1), pa.concat_tables([table, table.slice(0, 1)])]
    if case.is_ordered and expected.rows != expected.rows[::-1]:
        wrong.append(table.take(list(range(table.num_rows))[::-1]))
    if not all(_refusal(expected, other) for other in wrong):
        raise SystemExit(f"case {case.number}: a wrong answer is taken")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    oracle = Oracle()
    num_wrong = [check(Case.generate(options.seed, number), oracle) for number in range(options.cases)]
    if max(num_wrong) < 4:
        raise SystemExit("no case with rows in an order")
    print(f"{options.cases} cases passed, {sum(num_wrong)} wrong answers refused")


if __name__ == "__main__":
    main()
