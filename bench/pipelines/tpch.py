# SPDX-License-Identifier: Apache-2.0
"""Queries 1 and 6 of TPC-H, on line items in memory: Quern as a pipeline, with compiled kernels and with generic ones,
beside DuckDB, DataFusion and Polars. Decimals stay decimals in all of them.

    quern      Arrow record batches of 65,536 rows pass filter, map and aggregation (quern_pipeline_input_create);
               making the jobs and importing the batches are part of the time, compiling is not
    others     tables in their own memory: DuckDB's tables, DataFusion's and Polars' frames

The best of several rounds counts; in each, the contenders take turns. All must give the same answer.
"""
import argparse
import decimal
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "test", "differential"), os.path.join(ROOT, "bench", "peers")]

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import tpch  # noqa: E402

COLUMNS = ["l_shipdate", "l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax"]
TYPES = "date32,utf8,utf8,decimal128,decimal128,decimal128,decimal128"
SQL = {
    1: """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
                 sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
                 count(*)
          FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    6: """SELECT sum(l_extendedprice * l_discount) FROM lineitem
          WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
}


def line_items(scale):
    table = pq.read_table(os.path.join(tpch._files(scale), "lineitem.parquet"), columns=COLUMNS)
    types = [pa.string() if name in ("l_returnflag", "l_linestatus") else table.schema.field(name).type
             for name in COLUMNS]
    return table.cast(pa.schema(zip(COLUMNS, types))).combine_chunks()


class Quern:
    """Each query: a filter, the numbers of its columns, a map and its columns, an aggregation, its keys and payload."""
    QUERIES = {
        1: ("filter date32 <= 10471", [0],
            "map in=decimal128(15,2),decimal128(15,2),decimal128(15,2) "
            "out=multiply($0,subtract(1.00:decimal128(3,2),$1)),"
            "multiply(multiply($0,subtract(1.00:decimal128(3,2),$1)),add(1.00:decimal128(3,2),$2))", [4, 5, 6],
            "aggregate keys=utf8,utf8 aggs=sum(decimal128),sum(decimal128),sum(decimal128),sum(decimal128),count_star",
            [1, 2], [3, 4, 7, 8], (2, 2, 4, 6, 0)),
        6: ("filter date32 >= 8766 and date32 < 9131 and decimal128 between 5 and 7 and decimal128 < 2400",
            [0, 0, 5, 3], "map in=decimal128(15,2),decimal128(15,2) out=multiply($0,$1)", [4, 5],
            "aggregate aggs=sum(decimal128)", [], [7], (4,)),
    }

    def __init__(self, table, threads, engine):
        import quern_abi
        self._library, self._threads = quern_abi.Library(os.path.join(ROOT, "build", "lib", "libquern.so")), threads
        self._batches = table.to_batches(max_chunksize=65536)
        self._kernels = {number: [self._library.compile(query[i], engine) for i in (0, 2, 4)]
                         for number, query in self.QUERIES.items()}

    def run(self, number):
        _, filtered, _, mapped, _, keys, payload, _ = self.QUERIES[number]
        jobs = [kernel.job() for kernel in self._kernels[number]]
        steps = [(jobs[0], filtered, []), (jobs[1], mapped, [])]

        def work(batches):
            with jobs[2].pipeline_input(0, TYPES, steps, keys, payload) as rows:
                for batch in batches:
                    rows.append(batch)
                rows.finish()

        with ThreadPoolExecutor(self._threads) as threads:
            list(threads.map(work, [self._batches[i::self._threads] for i in range(self._threads)]))
        jobs[2].finalise()
        with jobs[2].output(0) as output:
            answer = [self._rows(number, result) for result, _ in output.results()]
        for job in jobs:
            job.close()
        return [row for rows in answer for row in rows]

    def _rows(self, number, result):
        scales, num_keys = self.QUERIES[number][7], len(self.QUERIES[number][5])
        import ctypes
        rows = []
        for r in range(result.num_rows):
            row = []
            for c, scale in enumerate(scales):
                column = result.columns[num_keys + c]
                size = 16 if scale else 8
                bits = ctypes.string_at(column.values + r * size, size)
                row.append(decimal.Decimal(int.from_bytes(bits, "little", signed=True)).scaleb(-scale))
            rows.append(tuple(row))
        return rows


class Duckdb:
    def __init__(self, table, threads):
        import duckdb
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.register("arrays", table)
        self._connection.execute("CREATE TABLE lineitem AS SELECT * FROM arrays")

    def run(self, number):
        rows = self._connection.execute(SQL[number]).fetchall()
        return [row[-5:] if number == 1 else row for row in rows]


class Datafusion:
    def __init__(self, table, threads):
        import datafusion
        config = datafusion.SessionConfig().with_target_partitions(threads)
        self._context = datafusion.SessionContext(config)
        self._context.register_record_batches("lineitem", [table.to_batches(max_chunksize=65536)])

    def run(self, number):
        rows = pa.Table.from_batches(self._context.sql(SQL[number]).collect()).to_pylist()
        return [tuple(row.values())[-5:] for row in rows]


class Polars:
    def __init__(self, table, threads):
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        import polars
        self._polars, self._frame = polars, polars.from_arrow(table, rechunk=True)

    def run(self, number):
        pl, one = self._polars, decimal.Decimal("1.00")
        rows = self._frame.lazy()
        if number == 6:
            date = __import__("datetime").date
            keeps = (pl.col("l_shipdate").is_between(date(1994, 1, 1), date(1995, 1, 1), closed="left")
                     & pl.col("l_discount").is_between(decimal.Decimal("0.05"), decimal.Decimal("0.07"))
                     & (pl.col("l_quantity") < decimal.Decimal("24.00")))
            return rows.filter(keeps).select((pl.col("l_extendedprice") * pl.col("l_discount")).sum()).collect().rows()
        sold = pl.col("l_extendedprice") * (one - pl.col("l_discount"))
        last = __import__("datetime").date(1998, 9, 2)
        groups = rows.filter(pl.col("l_shipdate") <= last).group_by("l_returnflag", "l_linestatus").agg(
            pl.col("l_quantity").sum(), pl.col("l_extendedprice").sum(), sold.sum().alias("sold"),
            (sold * (one + pl.col("l_tax"))).sum().alias("charged"), pl.len())
        return [row[-5:] for row in groups.collect().rows()]


def same(answer):
    """To eight digits: Polars rounds each product to the scale of its factors."""
    return sorted(tuple(float(f"{float(value):.8g}") for value in row) for row in answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor; default 1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--engines", default="quern,generic,duckdb,datafusion,polars", help="separated by ','")
    options = parser.parse_args()
    table = line_items(options.scale)
    make = {"quern": lambda: Quern(table, options.threads, "jit"),
            "generic": lambda: Quern(table, options.threads, "generic"),
            "duckdb": lambda: Duckdb(table, options.threads), "datafusion": lambda: Datafusion(table, options.threads),
            "polars": lambda: Polars(table, options.threads)}
    engines = {name: make[name]() for name in options.engines.split(",")}
    print(f"{table.num_rows} line items, {options.threads} thread(s), best of {options.rounds}, ms")
    print("query  " + "  ".join(f"{name:>10}" for name in engines))
    for number in SQL:
        best, answers = dict.fromkeys(engines, float("inf")), {}
        for _ in range(options.rounds):
            for name, engine in engines.items():
                start = time.perf_counter()
                answers[name] = engine.run(number)
                best[name] = min(best[name], time.perf_counter() - start)
        first = next(iter(engines))
        for name, answer in answers.items():
            if same(answer) != same(answers[first]):
                sys.exit(f"query {number}: {name} gives {same(answer)}; {first} {same(answers[first])}")
        print(f"{number:5}  " + "  ".join(f"{best[name] * 1e3:10.1f}" for name in engines), flush=True)


if __name__ == "__main__":
    main()
