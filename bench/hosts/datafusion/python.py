# SPDX-License-Identifier: Apache-2.0
"""python.py DATA QUERIES [OPTIONS]: TPC-H in sessions of DataFusion's Python package, with Quern and without.

DATA holds the tables as Parquet files, QUERIES a text for each query (q01.sql, ..). Answers of both are compared, row
by row; floats to a relative error of 1e-9. Then both take turns in one process, planning included, and the best turn of
each counts. A query without a kernel in its plan is marked by `-`. `run --python` calls this.
"""

import argparse
import math
import pathlib
import sys
import time

import datafusion
import pyarrow as pa
import quern_datafusion

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[1].strip())
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("queries", type=pathlib.Path)
    parser.add_argument("--scale", default="1", help="the scale factor of DATA, for query 11 (default: 1)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each; 0: only compare (default: 3)")
    parser.add_argument("--only", default="", help="numbers of queries, as 1,3 (default: all 22)")
    parser.add_argument("--partitions", type=int, default=2, help="target partitions (default: 2)")
    return parser.parse_args()


def session(options, extension=None):
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(options.partitions))
    if extension is not None:
        context = context.with_extensions(extension)
    for name in TABLES:
        context.register_parquet(name, str(options.data / f"{name}.parquet"))
    return context


def seconds(context, text):
    begin = time.perf_counter()
    context.sql(text).collect()
    return time.perf_counter() - begin


def equal(value, other):
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-9)
    return value == other


def difference(rows, other):
    """The first row that differs, as text; None where there is none."""
    if len(rows) != len(other):
        return f"{len(rows)} rows, not {len(other)}"
    for number, (row, expected) in enumerate(zip(rows, other)):
        if row.keys() != expected.keys() or not all(equal(row[name], expected[name]) for name in row):
            return f"row {number}: {row}, not {expected}"
    return None


def compare(query, text, stock, with_quern):
    """The number of rows. Ends the program where the answers differ."""
    rows, expected = (pa.table(context.sql(text)).to_pylist() for context in (with_quern, stock))
    found = difference(rows, expected)
    if found is not None:
        sys.exit(f"query {query}: with Quern {found}")
    return len(rows)


def has_kernel(context, text):
    return "QuernExec" in context.sql(text).execution_plan().display_indent()


def main():
    options = arguments()
    stock, with_quern = session(options), session(options, quern_datafusion.Extension())
    numbers = [int(number) for number in options.only.split(",")] if options.only else range(1, 23)
    ratios = []
    print("query  rows  kernels  DataFusion ms  with Quern ms  ratio")
    for number in numbers:
        text = (options.queries / f"q{number:02}.sql").read_text().replace(":scale", options.scale)
        num_rows = compare(number, text, stock, with_quern)
        best = [math.inf, math.inf]
        for _ in range(options.rounds):
            for place, context in enumerate((stock, with_quern)):
                best[place] = min(best[place], seconds(context, text))
        kernels = "yes" if has_kernel(with_quern, text) else "-"
        shown = ["-"] * 3
        if options.rounds:
            ratios.append(best[0] / best[1])
            shown = [f"{best[0] * 1e3:.0f}", f"{best[1] * 1e3:.0f}", f"{ratios[-1]:.2f}"]
        print(f"{number:>5}  {num_rows:>4}  {kernels:<7}  {shown[0]:>13}  {shown[1]:>13}  {shown[2]:>5}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
    print(f"{len(numbers)} queries, equal with Quern and without")


if __name__ == "__main__":
    main()
