# SPDX-License-Identifier: Apache-2.0
"""TPC-H's line items as the columns of its first query, and single columns of text, from files that the project's
generator makes, as tools/demo does. Of the first query:

    k0 l_returnflag, k1 l_linestatus     texts of one byte
    f0 l_quantity, f1 l_extendedprice, f2 f1 * (1 - l_discount), f3 f2 * (1 + l_tax), f4 l_discount     float64
    d0 l_shipdate     a date

The generator makes decimals of two digits. They become floats here, which all engines sum fast. The two products are
made here too, since an aggregation kernel computes no expressions.
"""
import os
import shutil
import subprocess

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GENERATOR = os.path.join(ROOT, "build", "venv", "bin", "tpchgen-cli")
ROWS_AT_SCALE_1 = {"lineitem": 6_001_215, "orders": 1_500_000}
MIN_SCALE = 0.001  # below it, some of its tables would have no rows


def _files(scale):
    """The folder of the two tables that tools/demo reads too; made where it is not complete."""
    folder = os.path.join(ROOT, "build", "data", f"tpch-sf{scale:g}")
    if os.path.isfile(os.path.join(folder, "complete")):
        return folder
    if not os.path.isfile(GENERATOR):
        raise FileNotFoundError(f"no generator of TPC-H data: {GENERATOR}; tools/setup installs it")
    unfinished = f"{folder}.{os.getpid()}"
    command = [GENERATOR, "parquet", "--quiet", "-s", f"{scale:g}", "--tables", "lineitem,orders", "-o", unfinished]
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        open(os.path.join(unfinished, "complete"), "w").close()
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _column(table, rows, name, to):
    """A column of the scale factor that has some `rows` rows: orders have one to seven line items each."""
    scale = max(MIN_SCALE, float(f"{rows / ROWS_AT_SCALE_1[table]:.3g}"))
    column = pq.read_table(os.path.join(_files(scale), f"{table}.parquet"), columns=[name]).column(0)
    return column.cast(to).combine_chunks()


def text_column(name, rows):
    """l_comment, o_comment, .. by the prefix of its table."""
    return _column({"l": "lineitem", "o": "orders"}[name[0]], rows, name, pa.string())


def line_items(rows):
    """Some `rows` line items as the first query reads them."""
    read = lambda name, to: _column("lineitem", rows, name, to)
    quantity, price, discount, tax = (read(f"l_{name}", pa.float64())
                                      for name in ("quantity", "extendedprice", "discount", "tax"))
    discounted = pc.multiply(price, pc.subtract(1.0, discount))
    return pa.table({
        "k0": read("l_returnflag", pa.string()), "k1": read("l_linestatus", pa.string()),
        "f0": quantity, "f1": price, "f2": discounted, "f3": pc.multiply(discounted, pc.add(1.0, tax)), "f4": discount,
        "d0": read("l_shipdate", pa.date32()),
    })
