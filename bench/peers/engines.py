# SPDX-License-Identifier: Apache-2.0
"""The other engines, one class each. Every class, and quern_engine.QuernEngine too, has:

    name, version()
    variants(case)          names of settings; each is tried, and the best counts
    load(case, tables)      puts pyarrow tables, by their names, into the engine's own memory format; not timed
    run(case, variant)      the query; the result, complete and in a memory format of the engine's own; timed
    table(result)           the result as a pyarrow table; not timed, and called once after each run
    drop()                  gives the tables' memory back

A class imports its engine when it is made, since Polars and DataFusion read their number of threads from the
environment at that moment.
"""
import datetime
import itertools
import os

import pyarrow as pa
from columns import row_table


class DuckdbEngine:
    """Tables of an in-memory database, filled in the order of the arrays. SET threads counts the calling thread. The
    result of an aggregation is a collection of DuckDB's own vectors (`materialize`). Integer keys in a narrow range may
    index a table without hashing; how narrow is a setting in bits: its default, 12, and its maximum, 32, are tried. The
    result of a sort is such a collection too, or a table of the database, or Arrow arrays."""

    name = "duckdb"
    _VARIANTS = {"default": 12, "perfect32": 32}
    _SORT_VARIANTS = ("collection", "table", "arrow")

    def __init__(self, threads):
        import duckdb

        self._duckdb, self._threads, self._connection = duckdb, threads, None

    def version(self):
        return self._duckdb.__version__

    def variants(self, case):
        if case.operator == "sort":
            return self._SORT_VARIANTS
        return tuple(self._VARIANTS) if case.operator == "aggregate" and not case.has_texts else ("default",)

    def load(self, case, tables):
        self._connection = self._duckdb.connect()
        self._connection.execute(f"SET threads = {self._threads}")
        for name, table in tables.items():
            self._connection.register("arrays", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrays")
            self._connection.unregister("arrays")
        # Without the order of insertion, several threads do not keep that of a sorted result either.
        self._connection.execute(f"SET preserve_insertion_order = {'true' if case.operator == 'sort' else 'false'}")

    def run(self, case, variant):
        if case.operator in ("join", "filter"):  # one row, which a relation would take 0.3 ms longer for
            return self._connection.execute(case.sql(self.name)).fetchall()
        if case.operator == "sort":
            return self._sort(case, variant)
        self._connection.execute(f"SET perfect_ht_threshold = {self._VARIANTS[variant]}")
        return self._connection.sql(case.sql()).materialize()

    def _sort(self, case, variant):
        """A relation, a pyarrow table, or None where the table `result` has it."""
        if variant == "collection":
            return self._connection.sql(case.sql(self.name)).materialize()
        if variant == "arrow":
            return self._connection.sql(case.sql(self.name)).to_arrow_table()
        self._connection.execute(f"CREATE TEMP TABLE result AS {case.sql(self.name)}")
        return None

    def table(self, result):
        if isinstance(result, list):
            return row_table(map(int, result[0]))
        if isinstance(result, pa.Table):
            return result
        if result is not None:
            return result.to_arrow_table()
        table = self._connection.sql("SELECT * FROM result").to_arrow_table()
        self._connection.execute("DROP TABLE result")
        return table

    def drop(self):
        if self._connection:
            self._connection.close()
        self._connection = None


class PolarsEngine:
    """Data frames; both of its engines. One chunk per column, which is what its in-memory engine wants. The first rows
    are the head of a sort, which its optimiser shortens, or come from its own `bottom_k`, which gives them in no order,
    and are sorted afterwards. It has no set operations: their rows are the different ones of a semi or an anti join."""

    name = "polars"

    def __init__(self, threads):
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        import polars

        self._polars, self._frames = polars, {}
        if polars.thread_pool_size() != threads:
            raise SystemExit(
                f"polars has the wrong number of threads: {polars.thread_pool_size()}; asked for: {threads}")

    def version(self):
        return self._polars.__version__

    def variants(self, case):
        ways = ("", ",bottom_k") if case.operator == "sort" and case.limit else ("",)
        return tuple(engine + way for engine in ("in-memory", "streaming") for way in ways)

    def load(self, _case, tables):
        # from_arrow may keep pointing at the arrays; strings become views of its own.
        self._frames = {name: self._polars.from_arrow(table, rechunk=True) for name, table in tables.items()}

    def run(self, case, variant):
        engine, _, way = variant.partition(",")
        make = {"join": self._join, "aggregate": self._aggregate, "sort": self._bottom_k if way else self._sort,
                "filter": self._filter, "set": self._set}
        return make[case.operator](case).collect(engine=engine)

    def _join(self, case):
        result = [self._polars.col(f"x{i}").sum() for i in range(case.num_extra)] or [self._polars.len()]
        keys = [f"k{i}" for i in range(case.num_keys)]
        return self._frames["probe"].lazy().join(self._frames["build"].lazy(), on=keys, how="inner",
                                                 maintain_order="none").select(result)

    def _aggregate(self, case):
        rows = self._frames["facts"].lazy()
        if case.last_day:
            rows = rows.filter(self._polars.col("d0") <= datetime.date.fromisoformat(case.last_day))
        aggregates = [self._expression(*pair).alias(f"a{i}")
                      for i, pair in enumerate(zip(case.aggregates, case.arguments))]
        return rows.group_by(self._keys(case, [f"k{i}" for i in range(case.num_keys)]),
                             maintain_order=False).agg(aggregates)

    def _sort(self, case):
        rows = self._frames["facts"].lazy().sort(self._keys(case, case.key_names), maintain_order=False)
        return rows.head(case.limit) if case.limit else rows

    def _bottom_k(self, case):
        keys = self._keys(case, case.key_names)
        return self._frames["facts"].lazy().bottom_k(case.limit, by=keys).sort(keys, maintain_order=False)

    def _filter(self, case):
        conditions = [leaf.expression(self._polars) for leaf in case.leaves]
        return self._frames["facts"].lazy().filter(*conditions).select(self._polars.len().alias("a0"))

    def _set(self, case):
        rows = self._frames["lhs"].lazy().join(self._frames["rhs"].lazy(), on=[f"k{i}" for i in range(case.num_keys)],
                                               how={"intersect": "semi", "except": "anti"}[case.kind])
        return rows.unique(maintain_order=False)

    def _keys(self, case, names):
        """Of one type each: texts in small letters where case is ignored."""
        if not case.ignores_case:
            return names
        types = self._frames["facts"].schema
        columns = [self._polars.col(name) for name in names]
        return [column.str.to_lowercase() if types[name] == self._polars.String else column
                for name, column in zip(names, columns)]

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
    """Memory tables of record batches. Batches have as many rows as `datafusion.execution.batch_size` says (8192 is its
    default; 65536 pays less per batch), and strings are tried as views, which is what its SQL makes of them, and as
    utf8. One partition per thread: with one, the plan is a hash join that collects the smaller side, or one aggregation
    without a partial one before it. A sort concatenates its input up to a size (1 MiB by default) and sorts that at
    once, above it it sorts batches and merges them: that default, and no limit, are tried. Results are record
    batches."""

    name = "datafusion"
    _BATCH_ROWS = (8192, 65536)
    _CONCATENATED = {"merge": 1 << 20, "concatenate": 1 << 40}

    def __init__(self, threads):
        os.environ["TOKIO_WORKER_THREADS"] = str(threads)
        import datafusion

        self._datafusion, self._threads, self._contexts = datafusion, threads, {}

    def version(self):
        return self._datafusion.__version__

    def variants(self, case):
        texts = ("view", "utf8") if case.has_texts else ("utf8",)
        ways = [f",{way}" for way in self._CONCATENATED] if case.operator == "sort" and not case.limit else [""]
        return tuple(f"batch{rows},{text}{way}" for rows in self._BATCH_ROWS for text in texts for way in ways)

    def load(self, case, tables):
        as_views = {name: table.cast(_with_views(table.schema)) for name, table in tables.items()}
        for variant in self.variants(case):
            rows, text, *way = variant.split(",")
            concatenated = self._CONCATENATED[way[0]] if way else None
            of_text = as_views if text == "view" else tables
            self._contexts[variant] = self._context(int(rows.removeprefix("batch")), concatenated, of_text)

    def _context(self, batch_rows, concatenated_bytes, tables):
        config = self._datafusion.SessionConfig().with_target_partitions(self._threads).with_batch_size(batch_rows)
        config = config.set("datafusion.optimizer.prefer_hash_join", "true")
        if concatenated_bytes:
            config = config.set("datafusion.execution.sort_in_place_threshold_bytes", str(concatenated_bytes))
        context = self._datafusion.SessionContext(config)
        for name, table in tables.items():
            context.register_record_batches(name, _partitions(table.to_batches(max_chunksize=batch_rows),
                                                              self._threads))
        return context

    def run(self, case, variant):
        return self._contexts[variant].sql(case.sql()).collect()

    def table(self, result):
        return pa.Table.from_batches(result)

    def drop(self):
        self._contexts = {}


def _with_views(schema):
    return pa.schema([(field.name, pa.string_view() if pa.types.is_string(field.type) else field.type)
                      for field in schema])


def _partitions(batches, num_partitions):
    return [part for part in (batches[i::num_partitions] for i in range(num_partitions)) if part] or [batches]


class ClickhouseEngine:
    """Tables of the Memory engine. Its JIT may compile expressions and aggregate functions at their first use. One
    session per process is all that chdb has. What is tried on and off, since each is slower in some cases:

    join       a filter made of the build keys, which is applied to the probe side first; two algorithms. The hash join
               puts the smaller table on the right (the build side) by itself, and is kept from preparing to spill
    aggregate  the result in a Memory table, block by block as it comes, or in chdb's buffer as Arrow; a table of two
               levels above 100,000 groups; for one key of text, references of 16 bytes. The number of groups is known
               from the run before, as it is by default
    sort       the result as that of an aggregation; where case is ignored, lower() or ICU's collation 'en'; a
               comparison of all keys that its JIT compiles, from the first use on; for the first rows by texts, the
               filter by the last of them so far that numbers have anyway; kept from preparing to spill
    """

    name = "clickhouse"
    _TYPES = {pa.int16(): "Int16", pa.int32(): "Int32", pa.int64(): "Int64", pa.float64(): "Float64",
              pa.string(): "String", pa.date32(): "Date32"}
    _SETTINGS = {
        "join": "compile_expressions = 1, min_count_to_compile_expression = 0, "
                "max_bytes_ratio_before_external_join = 0",
        "aggregate": "compile_expressions = 1, min_count_to_compile_expression = 0, compile_aggregate_expressions = 1, "
                     "min_count_to_compile_aggregate_expression = 0, max_bytes_ratio_before_external_group_by = 0, "
                     "max_insert_threads = 1, min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0",
        "filter": "compile_expressions = 1, min_count_to_compile_expression = 0",
        "set": "max_insert_threads = 1, min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0",
        "sort": "compile_expressions = 1, min_count_to_compile_expression = 0, min_count_to_compile_sort_description = "
                "0, "
                "max_bytes_ratio_before_external_sort = 0, max_insert_threads = 1, min_insert_block_size_rows = 0, "
                "min_insert_block_size_bytes = 0",
    }
    _ALGORITHM = {name: f"join_algorithm = '{name}'" for name in ("hash", "parallel_hash")}
    _FILTER = {"filtered": "enable_join_runtime_filters = 1", "unfiltered": "enable_join_runtime_filters = 0"}
    _LEVELS = {"levels2": "", "levels1": "group_by_two_level_threshold = 0, group_by_two_level_threshold_bytes = 0"}
    _TEXT_KEYS = {"packed": "enable_packed_string_keys_in_aggregation = 1",
                  "unpacked": "enable_packed_string_keys_in_aggregation = 0"}
    _COMPARISON = {"compiled": "compile_sort_description = 1", "interpreted": "compile_sort_description = 0"}
    _FIRST_TEXTS = {f"{name}_texts": f"use_top_k_dynamic_filtering_for_variable_length_types = {value}"
                    for name, value in (("all", 0), ("filtered", 1))}
    _NO_SETTINGS = dict.fromkeys(("memory", "arrow", "lower", "en"), "")
    _CHOICES = _ALGORITHM | _FILTER | _LEVELS | _TEXT_KEYS | _COMPARISON | _FIRST_TEXTS | _NO_SETTINGS

    def __init__(self, threads):
        import chdb.session

        self._chdb, self._threads, self._session, self._tables = chdb, threads, chdb.session.Session(), []

    def version(self):
        version = str(self._session.query("SELECT version()", "CSV")).strip()
        return f"{version} (chdb {self._chdb.__version__})".replace('"', "")

    def variants(self, case):
        if case.operator == "join":
            choices = (self._ALGORITHM, self._FILTER)
        elif case.operator == "filter":
            choices = (("arrow",),)
        elif case.operator == "set":
            choices = (("memory", "arrow"),)
        elif case.operator == "sort":
            choices = (("memory", "arrow"),
                       self._COMPARISON) + ((self._FIRST_TEXTS,) if case.limit and case.has_texts else ())
            choices += (("lower", "en"),) if case.ignores_case else ()
        else:
            choices = (("memory", "arrow"), self._LEVELS) + ((self._TEXT_KEYS,) if case.keys == ("utf8",) else ())
        return tuple(",".join(names) for names in itertools.product(*choices))

    def load(self, case, tables):
        self._tables = [*tables, "result"]
        for name, arrays in tables.items():
            columns = ", ".join(f"{field.name} {self._TYPES[field.type]}" for field in arrays.schema)
            self._session.query(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
            # Python(..) takes a variable of this function by its name.
            self._session.query(
                f"INSERT INTO {name} SELECT * FROM Python(arrays) SETTINGS max_threads = 1, max_insert_threads = 1")
        self._session.query(f"CREATE TABLE result ENGINE = Memory EMPTY AS {case.sql()}")

    def run(self, case, variant):
        """The result's bytes, or None where the table `result` has it."""
        choices = variant.split(",")
        settings = [f"max_threads = {self._threads}", self._SETTINGS[case.operator],
                    *(self._CHOICES[name] for name in choices)]
        sql = case.sql("clickhouse,en" if "en" in choices else self.name)
        query = f"{sql} SETTINGS {', '.join(filter(None, settings))}"
        if "memory" not in choices:
            return self._session.query(query, "ArrowStream")
        self._session.query(f"INSERT INTO result {query}")
        return None

    def table(self, result):
        if result is not None:
            return _read_stream(result)
        table = _read_stream(self._session.query("SELECT * FROM result SETTINGS max_threads = 1", "ArrowStream"))
        self._session.query("TRUNCATE TABLE result")
        return table

    def drop(self):
        for name in self._tables:
            self._session.query(f"DROP TABLE IF EXISTS {name} SYNC")


def _read_stream(result):
    return pa.ipc.open_stream(result.bytes()).read_all()


ENGINES = {engine.name: engine for engine in (DuckdbEngine, DatafusionEngine, PolarsEngine, ClickhouseEngine)}
