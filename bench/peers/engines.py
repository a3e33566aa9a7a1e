# SPDX-License-Identifier: Apache-2.0
"""The other engines, one class each. What every class has, quern_engine.QuernEngine too:

    name, version()
    variants(case)          names of settings; each is tried, and the best counts
    load(build, probe)      puts two pyarrow tables into the engine's own memory format; not timed
    run(case, variant)      the join; a tuple of numbers: the count of result rows, or the sum of each extra column; timed
    drop()                  gives the tables' memory back

A class imports its engine when it is made, since Polars and DataFusion read their number of threads from the environment at that moment.
"""
import os

import pyarrow as pa


def _sql(case):
    result = ", ".join(f"sum(x{i})" for i in range(case.num_extra)) or "count(*)"
    keys = " AND ".join(f"probe.k{i} = build.k{i}" for i in range(case.num_keys))
    return f"SELECT {result} FROM probe JOIN build ON {keys}"


class DuckdbEngine:
    """Tables of an in-memory database, filled in the order of the arrays. SET threads counts the calling thread."""

    name = "duckdb"

    def __init__(self, threads):
        import duckdb

        self._duckdb, self._threads, self._connection = duckdb, threads, None

    def version(self):
        return self._duckdb.__version__

    def variants(self, _case):
        return ("default",)

    def load(self, build, probe):
        self._connection = self._duckdb.connect()
        self._connection.execute(f"SET threads = {self._threads}")
        for name, table in (("build", build), ("probe", probe)):
            self._connection.register("arrays", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrays")
            self._connection.unregister("arrays")
        self._connection.execute("SET preserve_insertion_order = false")

    def run(self, case, _variant):
        return tuple(int(number) for number in self._connection.execute(_sql(case)).fetchone())

    def drop(self):
        if self._connection:
            self._connection.close()
        self._connection = None


class PolarsEngine:
    """Data frames; both of its engines. One chunk per column, which is what its in-memory engine wants."""

    name = "polars"

    def __init__(self, threads):
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        import polars

        self._polars, self._build, self._probe = polars, None, None
        if polars.thread_pool_size() != threads:
            raise SystemExit(f"polars has the wrong number of threads: {polars.thread_pool_size()}; asked for: {threads}")

    def version(self):
        return self._polars.__version__

    def variants(self, _case):
        return ("in-memory", "streaming")

    def load(self, build, probe):
        # from_arrow may keep pointing at the arrays; strings become views of its own.
        self._build, self._probe = (self._polars.from_arrow(table, rechunk=True) for table in (build, probe))

    def run(self, case, variant):
        keys = [f"k{i}" for i in range(case.num_keys)]
        result = [self._polars.col(f"x{i}").sum() for i in range(case.num_extra)] or [self._polars.len()]
        joined = self._probe.lazy().join(self._build.lazy(), on=keys, how="inner", maintain_order="none")
        return tuple(int(number) for number in joined.select(result).collect(engine=variant).row(0))

    def drop(self):
        self._build = self._probe = None


class DatafusionEngine:
    """Memory tables of record batches. Batches have as many rows as `datafusion.execution.batch_size` says (8192 is its default; 65536
    pays less per batch), and strings are tried as views, which is what its SQL makes of them, and as utf8. One partition per thread: with
    one, the plan is a hash join that collects the smaller side."""

    name = "datafusion"
    _BATCH_ROWS = (8192, 65536)

    def __init__(self, threads):
        os.environ["TOKIO_WORKER_THREADS"] = str(threads)
        import datafusion

        self._datafusion, self._threads, self._contexts = datafusion, threads, {}

    def version(self):
        return self._datafusion.__version__

    def variants(self, case):
        texts = ("view", "utf8") if "text" in case.keys or "str" in case.keys else ("utf8",)
        return tuple(f"batch{rows},{text}" for rows in self._BATCH_ROWS for text in texts)

    def load(self, build, probe):
        as_views = [table.cast(_with_views(table.schema)) for table in (build, probe)]
        for rows in self._BATCH_ROWS:
            for text, tables in (("view", as_views), ("utf8", (build, probe))):
                self._contexts[f"batch{rows},{text}"] = self._context(rows, *tables)

    def _context(self, batch_rows, build, probe):
        config = self._datafusion.SessionConfig().with_target_partitions(self._threads).with_batch_size(batch_rows)
        config = config.set("datafusion.optimizer.prefer_hash_join", "true")
        context = self._datafusion.SessionContext(config)
        for name, table in (("build", build), ("probe", probe)):
            context.register_record_batches(name, _partitions(table.to_batches(max_chunksize=batch_rows), self._threads))
        return context

    def run(self, case, variant):
        batch, = self._contexts[variant].sql(_sql(case)).collect()
        return tuple(int(column[0].as_py()) for column in batch.columns)

    def drop(self):
        self._contexts = {}


def _with_views(schema):
    return pa.schema([(field.name, pa.string_view() if pa.types.is_string(field.type) else field.type) for field in schema])


def _partitions(batches, num_partitions):
    return [part for part in (batches[i::num_partitions] for i in range(num_partitions)) if part] or [batches]


class ClickhouseEngine:
    """Tables of the Memory engine. Its JIT may compile expressions at their first use. The hash join puts the smaller table on the right
    (the build side) by itself, and is kept from preparing to spill; a filter made of the build keys, which it applies to the probe side
    first, is tried on and off. One session per process is all that chdb has."""

    name = "clickhouse"
    _TYPES = {pa.int32(): "Int32", pa.int64(): "Int64", pa.string(): "String"}
    _SETTINGS = "compile_expressions = 1, min_count_to_compile_expression = 0, max_bytes_ratio_before_external_join = 0"
    _VARIANTS = {
        f"{algorithm},{name}": f"join_algorithm = '{algorithm}', enable_join_runtime_filters = {filters}"
        for algorithm in ("hash", "parallel_hash")
        for name, filters in (("filtered", 1), ("unfiltered", 0))
    }

    def __init__(self, threads):
        import chdb.session

        self._chdb, self._threads, self._session = chdb, threads, chdb.session.Session()

    def version(self):
        return f"{self._query('SELECT version()').strip()} (chdb {self._chdb.__version__})".replace('"', "")

    def _query(self, sql):
        return str(self._session.query(sql, "CSV"))

    def variants(self, _case):
        return tuple(self._VARIANTS)

    def load(self, build, probe):
        for name, arrays in (("build", build), ("probe", probe)):
            columns = ", ".join(f"{field.name} {self._TYPES[field.type]}" for field in arrays.schema)
            self._session.query(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
            # Python(..) takes a variable of this function by its name.
            self._session.query(f"INSERT INTO {name} SELECT * FROM Python(arrays) SETTINGS max_threads = 1, max_insert_threads = 1")

    def run(self, case, variant):
        settings = f"max_threads = {self._threads}, {self._SETTINGS}, {self._VARIANTS[variant]}"
        return tuple(int(number) for number in self._query(f"{_sql(case)} SETTINGS {settings}").split(","))

    def drop(self):
        for name in ("build", "probe"):
            self._session.query(f"DROP TABLE IF EXISTS {name} SYNC")


ENGINES = {engine.name: engine for engine in (DuckdbEngine, DatafusionEngine, PolarsEngine, ClickhouseEngine)}
