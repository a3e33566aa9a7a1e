#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs jobs that are larger than memory in DuckDB, DataFusion, Polars, ClickHouse (chdb) and Quern.

    bench/peers/spill                                    100 M rows under 1 GiB: an hour, 15 GB of files
    bench/peers/spill --rows 5000000 --memory-limit 64M  small ones, to see that it works: minutes
    bench/peers/spill --cases 'sort/*' --engines quern,duckdb
    bench/peers/spill --folder /mnt/nvme/spill           all files on another device
    bench/peers/spill --list                             the jobs

The jobs are two sorts of N rows, by an i64 and by a text and an i64; a join of N rows with N/2; and the groups of N
rows, N/2 of them. Their rows are Parquet files that are made once. Every engine reads these files and writes its result
to a Parquet file without compression, all in the same folder, where it may also leave rows. All have the same limit of
memory, in their own words (spill_engines.py); Quern runs as its command line, and its time is that of the whole
process. Each run is a process of its own with a time-out.

`peak` is the most memory that the process had (ru_maxrss), whatever its limit counts; an engine that takes much more
than its limit has not done the same job. `written` is what the process wrote to files, its result included. All results
must be the same: rows are counted and checked by a checksum, and those of sorts for their order. An engine that fails
has its reason in the table. The engines take turns, round by round, and the best of each counts. `ratio` is the best
other engine's time divided by Quern's.

The exit status is 0 even if an engine fails, 1 if results differ or Quern fails, 2 for a wrong command line.
"""
import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import spill_catalogue
import spill_engines

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
ENGINE_NAMES = ("duckdb", "datafusion", "polars", "clickhouse", "quern")
UNITS = {"K": 10, "M": 20, "G": 30}
BLOCK_BYTES = 512  # of ru_oublock


def byte_size(text):
    digits, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 0)
    if not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"no size: {text}; accepted: as 64M or 1G")
    return int(digits) << unit


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="spill", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", action="append", metavar="GLOB",
                        help="only cases that match; may be given several times")
    parser.add_argument("--engines", default=",".join(ENGINE_NAMES), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=100_000_000, metavar="N", help="default: %(default)s")
    parser.add_argument("--memory-limit", type=byte_size, default=1 << 30, metavar="SIZE", help="default: 1G")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="default: all cores")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="of a run; default: %(default)s")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "spill-peers"), metavar="DIR",
                        help="of all files; default: build/spill-peers")
    parser.add_argument("--quern", default=os.path.join(ROOT, "build", "bin", "quern"), metavar="FILE")
    parser.add_argument("--json", metavar="FILE", help="write all figures there, too")
    parser.add_argument("--list", action="store_true", help="print the jobs, and run none")
    options = parser.parse_args(arguments)
    options.engines = options.engines.split(",")
    for engine in options.engines:
        if engine not in ENGINE_NAMES:
            parser.error(f"unknown engine: {engine}; accepted: {', '.join(ENGINE_NAMES)}")
    for name in ("rows", "threads", "rounds", "timeout"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} is out of range: {getattr(options, name)}; accepted: above 0")
    return options


def run_process(command, timeout, environment):
    """Its exit status, or None after the time-out; its output, errors, and what it used."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                          start_new_session=True) as process:
        watch = subprocess.Popen(["sleep", str(timeout)]) if timeout else None
        status = usage = None
        while usage is None:
            pid, code, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                status, usage = os.waitstatus_to_exitcode(code), used
            elif watch.poll() is not None:
                os.killpg(process.pid, 9)
                usage = os.wait4(process.pid, 0)[2]
            else:
                time.sleep(0.01)
        process.returncode = -9 if status is None else status
        seconds = time.monotonic() - start
        watch.kill()
        watch.wait()
        return status, process.stdout.read(), usage, seconds


def reason(status, text, timeout):
    if status is None:
        return f"no result after {timeout:g} s"
    if status < 0:
        return f"killed by signal {-status}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else f"status {status}")[:100]


def run_once(options, case, paths, engine, variant):
    """A dictionary with seconds, peak_bytes, written_bytes and the path of the result; or with a reason of failure."""
    work = os.path.join(options.folder, "work")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    output = os.path.join(work, "result.parquet")
    environment = dict(os.environ, TMPDIR=work)
    if engine == "quern":
        command = [options.quern, *case.quern(paths), "--memory-limit", str(options.memory_limit), "--spill-dir", work,
                   "--threads", str(options.threads), "--quiet", "--stats", "-o", output]
    else:
        job = {"engine": engine, "variant": variant, "sql": case.sql, "output": output, "folder": work,
               "tables": {name: paths[name] for name in case.tables}, "memory_bytes": options.memory_limit,
               "threads": options.threads}
        command = [sys.executable, os.path.join(HERE, "spill_engines.py"), json.dumps(job)]
    status, text, usage, seconds = run_process(command, options.timeout, environment)
    run = {"variant": variant, "peak_bytes": usage.ru_maxrss * 1024, "written_bytes": usage.ru_oublock * BLOCK_BYTES}
    if status != 0:
        return dict(run, reason=reason(status, text, options.timeout))
    printed = json.loads([line for line in text.splitlines() if line.startswith("{")][-1])
    return dict(run, output=output, seconds=seconds if engine == "quern" else printed["seconds"],
                version=printed.get("version", ""), spilled_bytes=printed.get("spilled_bytes"))


def run_case(options, case, paths):
    """By engine: the best of all rounds and variants; and the different answers."""
    best, answers = {}, {}
    for number in range(options.rounds):
        for engine in options.engines:
            for variant in ("",) if engine == "quern" else spill_engines.variants(engine, case.name):
                run = run_once(options, case, paths, engine, variant)
                if "seconds" in run:
                    answers.setdefault(engine, set()).add(answer_of(case, run.pop("output")))
                if engine not in best or run.get("seconds", 1e9) < best[engine].get("seconds", 1e9):
                    best[engine] = run
    shutil.rmtree(os.path.join(options.folder, "work"), ignore_errors=True)
    return best, answers


def ask(*words):
    """What spill_cases.py prints, in a process of its own."""
    words = [sys.executable, os.path.join(HERE, "spill_cases.py"), *words]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def answer_of(case, path):
    """The number of rows and their checksum, or a text that says what is wrong."""
    printed = ask("answer", case.name, path)
    return printed if isinstance(printed, str) else tuple(printed)


def mib(num_bytes):
    return f"{num_bytes / (1 << 20):,.0f}"


def print_case(case, best):
    others = [run["seconds"] for engine, run in best.items() if engine != "quern" and "seconds" in run]
    for engine, run in best.items():
        has_variants = engine != "quern" and len(spill_engines.variants(engine, case.name)) > 1
        name = engine + (f" ({run['variant']})" if has_variants else "")
        start = f"{case.name:15}{name:22}"
        if "seconds" not in run:
            print(f"{start}{'-':>9}{mib(run['peak_bytes']):>10}{mib(run['written_bytes']):>10}         {run['reason']}")
            continue
        ratio = f"{min(others) / run['seconds']:.2f}" if engine == "quern" and others else ""
        print(f"{start}{run['seconds']:9.2f}{mib(run['peak_bytes']):>10}{mib(run['written_bytes']):>10}{ratio:>7}",
              flush=True)


def complaint(case, answers):
    """What is wrong with the answers by engine, or None."""
    different = set().union(*answers.values()) if answers else set()
    if len(different) <= 1 and all(isinstance(each, tuple) for each in different):
        return None
    return f"results differ in {case.name}: {answers}; all engines must have the same"


def main(arguments):
    options = parse_options(arguments)
    globs = options.cases or ["*"]
    cases = [case for case in spill_catalogue.CASES if any(fnmatch.fnmatchcase(case.name, glob) for glob in globs)]
    if not cases:
        sys.exit(f"spill: error: no such case: {', '.join(globs)}; accepted: patterns of the names that --list prints")
    if options.list:
        for case in cases:
            print(f"{case.name:15}{case.sql}")
        return 0
    os.makedirs(options.folder, exist_ok=True)
    print(f"{options.rows:,} rows, {mib(options.memory_limit)} MiB of memory, {options.threads} thread(s), best of "
          f"{options.rounds} round(s), files in {os.path.abspath(options.folder)}")
    print(f"{'case':15}{'engine':22}{'seconds':>9}{'peak MiB':>10}{'written':>10}{'ratio':>7}")
    wrong, figures = [], {}
    for case in cases:
        paths = ask("make", options.folder, str(options.rows), *case.tables)
        best, answers = run_case(options, case, paths)
        print_case(case, best)
        figures[case.name] = {"engines": best, "answers": {engine: list(each) for engine, each in answers.items()}}
        wrong += [complaint(case, answers)] if complaint(case, answers) else []
        if "quern" in best and "seconds" not in best["quern"]:
            wrong.append(f"quern fails in {case.name}: {best['quern']['reason']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": options.rows, "memory_bytes": options.memory_limit, "threads": options.threads,
                       "cases": figures}, file, indent=1)
    for text in wrong:
        print(f"spill: error: {text}", file=sys.stderr, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
