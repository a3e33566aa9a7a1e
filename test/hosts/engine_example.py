# SPDX-License-Identifier: Apache-2.0
"""engine_example.py ENGINE COLUMNS_SCRIPT FOLDER: TPC-H query 3 by the engine of hosts/c/examples/engine_example.c,
with one thread and with several, gives the rows that DuckDB gives."""

import pathlib
import subprocess
import sys

import duckdb

QUERY = """
    select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
    from '{0}/customer.parquet', '{0}/orders.parquet', '{0}/lineitem.parquet'
    where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
      and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
    group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10"""


def make_columns(script, folder):
    tpchgen = pathlib.Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run(
        [tpchgen, "parquet", "--quiet", "-s", "0.02", "--tables", "customer,orders,lineitem", "-o", folder / "tpch"],
        check=True
    )
    subprocess.run([sys.executable, script, folder / "tpch", folder / "columns"], check=True)


def rows_of(engine, folder, threads):
    output = subprocess.run([engine, folder / "columns", str(threads)], check=True, capture_output=True,
                            text=True).stdout
    return [line.split() for line in output.splitlines()[1:]]


def main():
    engine, script, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    make_columns(script, folder)
    expected = [[str(value) for value in row] for row in duckdb.sql(QUERY.format(folder / "tpch")).fetchall()]
    for threads in (1, 2, 7):
        found = rows_of(engine, folder, threads)
        if found != expected:
            sys.exit(f"{threads} threads: {found}\nDuckDB: {expected}")
    print(len(expected), "rows, as DuckDB's")


if __name__ == "__main__":
    main()
