# SPDX-License-Identifier: Apache-2.0
"""One job in one of the other engines, in a process of its own: spill_engines.py JOB, where JOB is a JSON object with

    engine, variant        a function below, and one of its settings
    sql                    the query
    tables                 paths of Parquet files by name
    output                 the Parquet file to write, without compression
    memory_bytes, threads  limits
    folder                 where the engine may leave rows

Prints a JSON object with the seconds from the query to the written file, and the engine's version. What each engine
documents for larger-than-memory jobs is set; importing it and opening its session are not timed."""
import json
import os
import sys
import time

MIB = 1 << 20
# By case: names of settings that are tried; the fastest that finishes counts.
VARIANTS = {"duckdb": ("",), "polars": ("streaming",), "datafusion": ("hash", "merge"), "clickhouse": ("",)}


def variants(engine, case_name):
    """The settings differ in joins alone."""
    return VARIANTS[engine] if case_name.startswith("join/") else VARIANTS[engine][:1]


def duckdb(job):
    import duckdb as engine

    connection = engine.connect()
    connection.execute(f"SET memory_limit = '{job['memory_bytes'] // MIB}MiB'")
    connection.execute(f"SET temp_directory = '{job['folder']}'")
    connection.execute(f"SET threads = {job['threads']}")
    # A sorted result must stay in order; of others, DuckDB's guide to larger-than-memory jobs says to give it up.
    connection.execute(f"SET preserve_insertion_order = {'true' if 'ORDER BY' in job['sql'] else 'false'}")
    for name, path in job["tables"].items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
    run = f"COPY ({job['sql']}) TO '{job['output']}' (FORMAT parquet, COMPRESSION uncompressed)"
    return engine.__version__, lambda: connection.execute(run)


def polars(job):
    """Its streaming engine writes rows to a folder when they take more than a budget in memory."""
    os.environ["POLARS_MAX_THREADS"] = str(job["threads"])
    os.environ["POLARS_OOC_MEMORY_BUDGET_MB"] = str(job["memory_bytes"] // MIB)
    os.environ["POLARS_OOC_SPILL_DIR"] = job["folder"]
    os.environ["POLARS_TEMP_DIR"] = job["folder"]
    import polars as engine

    context = engine.SQLContext({name: engine.scan_parquet(path) for name, path in job["tables"].items()})
    rows = context.execute(job["sql"])
    return engine.__version__, lambda: rows.sink_parquet(job["output"], compression="uncompressed",
                                                         engine="streaming")


def datafusion(job):
    """Hash joins do not spill, sort-merge joins do: both are tried."""
    os.environ["TOKIO_WORKER_THREADS"] = str(job["threads"])
    import datafusion as engine

    runtime = (engine.RuntimeEnvBuilder().with_fair_spill_pool(job["memory_bytes"])
               .with_disk_manager_specified(job["folder"]))
    config = engine.SessionConfig().with_target_partitions(job["threads"])
    config = config.set("datafusion.optimizer.prefer_hash_join", "false" if job["variant"] == "merge" else "true")
    context = engine.SessionContext(config, runtime)
    for name, path in job["tables"].items():
        context.register_parquet(name, path)
    run = f"COPY ({job['sql']}) TO '{job['output']}' STORED AS PARQUET OPTIONS ('format.compression' 'uncompressed')"
    return engine.__version__, lambda: context.sql(run).collect()


def clickhouse(job):
    """Half of the limit before an operator spills, as its documentation says."""
    from chdb import session

    import chdb

    connection = session.Session(os.path.join(job["folder"], "clickhouse"))
    settings = {"max_threads": job["threads"], "max_memory_usage": job["memory_bytes"],
                "max_bytes_before_external_group_by": job["memory_bytes"] // 2,
                "max_bytes_before_external_sort": job["memory_bytes"] // 2,
                "max_bytes_ratio_before_external_group_by": 0, "max_bytes_ratio_before_external_sort": 0,
                "join_algorithm": "'grace_hash'", "max_bytes_in_join": job["memory_bytes"] // 4,
                "output_format_parquet_compression_method": "'none'",
                "output_format_parquet_string_as_string": 1, "engine_file_truncate_on_insert": 1}
    sql = job["sql"]
    for name, path in job["tables"].items():
        for word in ("FROM", "JOIN"):
            sql = sql.replace(f"{word} {name}", f"{word} file('{path}', Parquet) AS {name}")
    words = ", ".join(f"{name} = {value}" for name, value in settings.items())
    run = f"INSERT INTO FUNCTION file('{job['output']}', Parquet) {sql} SETTINGS {words}"
    return chdb.__version__, lambda: connection.query(run)


def main():
    job = json.loads(sys.argv[1])
    version, run = globals()[job["engine"]](job)
    start = time.monotonic()
    run()
    print(json.dumps({"seconds": time.monotonic() - start, "version": version}))


if __name__ == "__main__":
    main()
