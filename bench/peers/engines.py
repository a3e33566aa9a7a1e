# SPDX-License-Identifier: Apache-2.0
"""The other engines, one class each. What every class has, quern_engine.QuernEngine too:

    name, version()
    variants(case)          names of settings; each is tried, and the best counts
    load(case, tables)      puts pyarrow tables, by their names, into the engine's own memory format; not timed
    run(case, variant)      the query; the result, complete and in a memory format of the engine's own; timed
    table(result)           the result as a pyarrow table; not timed, and called once after each run
    drop()                  gives the tables' memory back

A class imports its engine when it is made, since Polars and DataFusion read their number of threads from the environment at that moment.
"""
import datetime
import itertools
import os

import pyarrow as pa
from columns import row_table


class DuckdbEngine:
    """Tables of an in-memory database, filled in the order of the arrays. SET threads counts the calling thread. The result of an
    aggregation is a collection of DuckDB's own vectors (`materialize`). Integer keys in a narrow range may index a table without hashing;
    how narrow is a setting in bits: its default, 12, and its maximum, 32, are tried."""

    name = "duckdb"
    _VARIANTS = {"default": 12, "perfect32": 32}

    def __init__(self, threads):
        import duckdb

        self._duckdb, self._threads, self._connection = duckdb, threads, None

    def version(self):
        return self._duckdb.__version__

    def variants(self, case):
        return ("default",) if case.operator == "join" or case.has_texts else tuple(self._VARIANTS)

    def load(self, _case, tables):
        self._connection = self._duckdb.connect()
        self._connection.execute(f"SET threads = {self._threads}")
        for name, table in tables.items():
            self._connection.register("arrays", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrays")
            self._connection.unregister("arrays")
        self._connection.execute("SET preserve_insertion_order = false")

    def run(self, case, variant):
        if case.operator == "join":  # one row, which a relation would take 0.3 ms longer for
            return self._connection.execute(case.sql()).fetchall()
        self._connection.execute(f"SET perfect_ht_threshold = {self._VARIANTS[variant]}")
        return self._connection.sql(case.sql()).materialize()

    def table(self, result):
        return row_table(map(int, result[0])) if isinstance(result, list) else result.to_arrow_table()

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

        self._polars, self._frames = polars, {}
        if polars.thread_pool_size() != threads:
            raise SystemExit(f"polars has the wrong number of threads: {polars.thread_pool_size()}; asked for: {threads}")

    def version(self):
        return self._polars.__version__

    def variants(self, _case):
        return ("in-memory", "streaming")

    def load(self, _case, tables):
        # from_arrow may keep pointing at the arrays; strings become views of its own.
        self._frames = {name: self._polars.from_arrow(table, rechunk=True) for name, table in tables.items()}

    def run(self, case, variant):
        query = self._join(case) if case.operator == "join" else self._aggregate(case)
        return query.collect(engine=variant)

    def _join(self, case):
        result = [self._polars.col(f"x{i}").sum() for i in range(case.num_extra)] or [self._polars.len()]
        keys = [f"k{i}" for i in range(case.num_keys)]
        return self._frames["probe"].lazy().join(self._frames["build"].lazy(), on=keys, how="inner", maintain_order="none").select(result)

    def _aggregate(self, case):
        rows = self._frames["facts"].lazy()
        if case.last_day:
            rows = rows.filter(self._polars.col("d0") <= datetime.date.fromisoformat(case.last_day))
        aggregates = [self._expression(*pair).alias(f"a{i}") for i, pair in enumerate(zip(case.aggregates, case.arguments))]
        return rows.group_by([f"k{i}" for i in range(case.num_keys)], maintain_order=False).agg(aggregates)

    def _expression(self, aggregate, column):
        if column is None:
            return self._polars.len()
        function = {"sum": "sum", "avg": "mean", "min": "min", "max": "max"}[aggregate.split("(")[0]]
        return getattr(self._polars.col(column), function)()

    def table(self, result):
        return result.to_arrow()

    def drop(self):
        self._frames = {}


class DatafusionEngine:
    """Memory tables of record batches. Batches have as many rows as `datafusion.execution.batch_size` says (8192 is its default; 65536
    pays less per batch), and strings are tried as views, which is what its SQL makes of them, and as utf8. One partition per thread: with
    one, the plan is a hash join that collects the smaller side, or one aggregation without a partial one before it. Results are record
    batches."""

    name = "datafusion"
    _BATCH_ROWS = (8192, 65536)

    def __init__(self, threads):
        os.environ["TOKIO_WORKER_THREADS"] = str(threads)
        import datafusion

        self._datafusion, self._threads, self._contexts = datafusion, threads, {}

    def version(self):
        return self._datafusion.__version__

    def variants(self, case):
        texts = ("view", "utf8") if case.has_texts else ("utf8",)
        return tuple(f"batch{rows},{text}" for rows in self._BATCH_ROWS for text in texts)

    def load(self, _case, tables):
        as_views = {name: table.cast(_with_views(table.schema)) for name, table in tables.items()}
        for rows in self._BATCH_ROWS:
            for text, of_text in (("view", as_views), ("utf8", tables)):
                self._contexts[f"batch{rows},{text}"] = self._context(rows, of_text)

    def _context(self, batch_rows, tables):
        config = self._datafusion.SessionConfig().with_target_partitions(self._threads).with_batch_size(batch_rows)
        config = config.set("datafusion.optimizer.prefer_hash_join", "true")
        context = self._datafusion.SessionContext(config)
        for name, table in tables.items():
            context.register_record_batches(name, _partitions(table.to_batches(max_chunksize=batch_rows), self._threads))
        return context

    def run(self, case, variant):
        return self._contexts[variant].sql(case.sql()).collect()

    def table(self, result):
        return pa.Table.from_batches(result)

    def drop(self):
        self._contexts = {}


def _with_views(schema):
    return pa.schema([(field.name, pa.string_view() if pa.types.is_string(field.type) else field.type) for field in schema])


def _partitions(batches, num_partitions):
    return [part for part in (batches[i::num_partitions] for i in range(num_partitions)) if part] or [batches]


class ClickhouseEngine:
    """Tables of the Memory engine. Its JIT may compile expressions and aggregate functions at their first use. One session per process is
    all that chdb has. What is tried on and off, since each is slower in some cases:

    join       a filter made of the build keys, which is applied to the probe side first; two algorithms. The hash join puts the smaller
               table on the right (the build side) by itself, and is kept from preparing to spill
    aggregate  the result in a Memory table, block by block as it comes, or in chdb's buffer as Arrow; a table of two levels above 100,000
               groups; for one key of text, references of 16 bytes. The number of groups is known from the run before, as it is by default
    """

    name = "clickhouse"
    _TYPES = {pa.int16(): "Int16", pa.int32(): "Int32", pa.int64(): "Int64", pa.float64(): "Float64", pa.string(): "String",
              pa.date32(): "Date32"}
    _SETTINGS = {
        "join": "compile_expressions = 1, min_count_to_compile_expression = 0, max_bytes_ratio_before_external_join = 0",
        "aggregate": "compile_expressions = 1, min_count_to_compile_expression = 0, compile_aggregate_expressions = 1, "
                     "min_count_to_compile_aggregate_expression = 0, max_bytes_ratio_before_external_group_by = 0, "
                     "max_insert_threads = 1, min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0",
    }
    _ALGORITHM = {name: f"join_algorithm = '{name}'" for name in ("hash", "parallel_hash")}
    _FILTER = {"filtered": "enable_join_runtime_filters = 1", "unfiltered": "enable_join_runtime_filters = 0"}
    _LEVELS = {"levels2": "", "levels1": "group_by_two_level_threshold = 0, group_by_two_level_threshold_bytes = 0"}
    _TEXT_KEYS = {"packed": "enable_packed_string_keys_in_aggregation = 1", "unpacked": "enable_packed_string_keys_in_aggregation = 0"}
    _CHOICES = _ALGORITHM | _FILTER | _LEVELS | _TEXT_KEYS | {"memory": "", "arrow": ""}

    def __init__(self, threads):
        import chdb.session

        self._chdb, self._threads, self._session, self._tables = chdb, threads, chdb.session.Session(), []

    def version(self):
        version = str(self._session.query("SELECT version()", "CSV")).strip()
        return f"{version} (chdb {self._chdb.__version__})".replace('"', "")

    def variants(self, case):
        if case.operator == "join":
            choices = (self._ALGORITHM, self._FILTER)
        else:
            choices = (("memory", "arrow"), self._LEVELS) + ((self._TEXT_KEYS,) if case.keys == ("utf8",) else ())
        return tuple(",".join(names) for names in itertools.product(*choices))

    def load(self, case, tables):
        self._tables = [*tables, "result"]
        for name, arrays in tables.items():
            columns = ", ".join(f"{field.name} {self._TYPES[field.type]}" for field in arrays.schema)
            self._session.query(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
            # Python(..) takes a variable of this function by its name.
            self._session.query(f"INSERT INTO {name} SELECT * FROM Python(arrays) SETTINGS max_threads = 1, max_insert_threads = 1")
        self._session.query(f"CREATE TABLE result ENGINE = Memory EMPTY AS {case.sql()}")

    def run(self, case, variant):
        """The result's bytes, or None where the table `result` has it."""
        choices = variant.split(",")
        settings = [f"max_threads = {self._threads}", self._SETTINGS[case.operator], *(self._CHOICES[name] for name in choices)]
        query = f"{case.sql()} SETTINGS {', '.join(filter(None, settings))}"
        if "memory" not in choices:
            return self._session.query(query, "ArrowStream")
        self._session.query(f"INSERT INTO result {query}")
        return None

    def table(self, result):
        if result is not None:
            return _read_stream(result)
        table = _read_stream(self._session.query("SELECT * FROM result", "ArrowStream"))
        self._session.query("TRUNCATE TABLE result")
        return table

    def drop(self):
        for name in self._tables:
            self._session.query(f"DROP TABLE IF EXISTS {name} SYNC")


def _read_stream(result):
    return pa.ipc.open_stream(result.bytes()).read_all()


ENGINES = {engine.name: engine for engine in (DuckdbEngine, DatafusionEngine, PolarsEngine, ClickhouseEngine)}
