# SPDX-License-Identifier: Apache-2.0
"""The tables that the queries read, as Parquet files below build/data that are made once:

    tpch-sf1/NAME.parquet    the eight tables of TPC-H, by the project's generator. bench/peers/tpch.py and tools/demo
                             make two of them in the same folder; the other six are put beside them here
    ssb-sf1/NAME.parquet     the five tables of the Star Schema Benchmark, from those of TPC-H by ssb.sql, which says
                             how they differ from that benchmark's own

Those of suite seam have no files: seam_tables.py draws them.
"""
import os
import shutil
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import query_list
import seam_tables
import tpch

HERE = os.path.dirname(os.path.abspath(__file__))
TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SSB_TABLES = ("customer", "date", "lineorder", "part", "supplier")


def _tpch_files(scale):
    folder = tpch._files(scale)
    missing = [name for name in TPCH_TABLES if not os.path.isfile(os.path.join(folder, f"{name}.parquet"))]
    if not missing:
        return folder
    unfinished = f"{folder}.{os.getpid()}"
    command = [tpch.GENERATOR, "parquet", "--quiet", "-s", f"{scale:g}", "--tables", ",".join(missing), "-o",
               unfinished]
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name in missing:
            os.rename(os.path.join(unfinished, f"{name}.parquet"), os.path.join(folder, f"{name}.parquet"))
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _ssb_files(scale):
    """Each file takes its name when it is complete. A file that is older than ssb.sql is made anew."""
    import duckdb

    folder, script = os.path.join(tpch.ROOT, "build", "data", f"ssb-sf{scale:g}"), os.path.join(HERE, "ssb.sql")
    files = {name: os.path.join(folder, f"{name}.parquet") for name in SSB_TABLES}
    if all(os.path.isfile(file) and os.path.getmtime(file) > os.path.getmtime(script) for file in files.values()):
        return folder
    source = _tpch_files(scale)
    with duckdb.connect() as connection, open(script) as statements:
        connection.execute("CREATE SCHEMA tpch")
        for name in TPCH_TABLES:
            path = os.path.join(source, f"{name}.parquet").replace("'", "''")
            connection.execute(f"CREATE VIEW tpch.{name} AS SELECT * FROM read_parquet('{path}')")
        connection.execute(statements.read())
        os.makedirs(folder, exist_ok=True)
        for name, file in files.items():
            unfinished = f"{file}.{os.getpid()}"
            connection.table(name).write_parquet(unfinished)
            os.rename(unfinished, file)
    return folder


def read(suite, scale, queries=None):
    """{table: pyarrow table} of the suite, each with the columns that a query of it mentions, in one chunk. Texts are
    utf8, and decimals stay as they are: decimal128(15,2). queries: those that will run, or None for all; it saves
    making tables of suite seam that no query reads."""
    if suite == "seam":
        return seam_tables.read(scale, [query.number for query in queries or query_list.matching([suite])])
    folder, names = {"tpch": (_tpch_files, TPCH_TABLES), "ssb": (_ssb_files, SSB_TABLES)}[suite]
    folder = folder(scale)
    files = {name: os.path.join(folder, f"{name}.parquet") for name in names}
    columns = query_list.columns_read(suite, {name: pq.read_schema(file).names for name, file in files.items()})
    tables = {}
    for name, file in files.items():
        table = pq.read_table(file, columns=columns[name])
        as_utf8 = [field.with_type(pa.string()) if _is_text(field.type) else field for field in table.schema]
        tables[name] = table.cast(pa.schema(as_utf8)).combine_chunks()
    return tables


def with_narrow_decimals(tables):
    """The same with decimal64(15,2)."""
    narrow = lambda field: (field.with_type(pa.decimal64(field.type.precision, field.type.scale))
                            if pa.types.is_decimal128(field.type) and field.type.precision <= 18 else field)
    return {name: table.cast(pa.schema([narrow(field) for field in table.schema])).combine_chunks()
            for name, table in tables.items()}


def _is_text(arrow_type):
    return pa.types.is_string_view(arrow_type) or pa.types.is_large_string(arrow_type)
