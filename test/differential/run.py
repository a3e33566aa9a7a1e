#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Differential test: compiled kernels = generic kernels = DuckDB, on random specs and rows.

    run.py --seed 7 --cases 1000 --seconds 60 --lib build/lib/libquern.so
    run.py --lib build/lib/libquern.so --replay '{"seed": 7, "case": 31, "keys": [0], "build_rows": [0, 2]}'
    run.py --lib build/lib/libquern.so --operator aggregate --seed 7 --coverage --seconds 60

Prints the seed first. The cases run in a child process, which prints each case before it begins, so that a crash is a
failure like any other. A failure is minimised (fewer rows, keys, payload columns; at most a minute) and printed as a
replay, which builds exactly that case. Exit status: 0 after `N cases passed`, 1 after a failure. The line before the
last counts cases by kind and runs by layout.

`--operator aggregate` tests hash aggregation, `--operator sort` sorts and merges, `--operator filter` conditions,
`--operator set` set operations, `--operator map` computed columns, `--operator pipeline` pipelines by their spec,
`--operator query` whole queries by the Python package, which PYTHONPATH names; the default is joins. `--seconds` ends
a run between two cases. `--seed 0` takes a new seed from the clock. `--coverage` runs cases until the operator's
Coverage is complete (for joins every kind with every class of layouts and every engine; for aggregations every
function, key type and layout with every engine; for sorts every key type and method with every engine; for filters
every leaf, pattern and collation; for set operations every kind, key type and layout with every engine; for maps every
function and type with every engine; for pipelines every step, kind of join and end with every engine; and more); the
run fails if it ends before.
"""
import argparse
import dataclasses
import functools
import json
import math
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import aggregate_operator
import filter_operator
import join_operator
import map_operator
import pipeline_operator
import quern_abi
import query_operator
import set_operator
import sort_operator

# Each: Case (generate, reduced, variants, spec, smaller, rows_text, replay), Oracle, Expected, run,
# check_compiles_twice, Mismatch, Coverage.
OPERATORS = {"aggregate": aggregate_operator, "filter": filter_operator, "join": join_operator, "map": map_operator,
             "pipeline": pipeline_operator, "query": query_operator, "set": set_operator, "sort": sort_operator}
MINIMISE_SECONDS = 60
PROGRESS_SECONDS = 20


def check_case(operator, library, oracle, case, coverage=None):
    """Runs a case in all its variants. Answers None, or (variant, what is wrong). Counts what ran in `coverage`."""
    expected = operator.Expected(case, oracle)
    variants = case.variants()
    for variant in variants:
        try:
            answer = operator.run(library, case, variant)
            expected.check(answer)
        except (operator.Mismatch, quern_abi.QuernError, quern_abi.ContractError, ValueError) as error:
            return variant, f"{type(error).__name__}: {error}"
        if coverage:
            coverage.count_run(case, variant, answer)
    try:
        operator.check_compiles_twice(library, case, variants[case.number % 2])
    except (operator.Mismatch, quern_abi.QuernError) as error:
        return variants[case.number % 2], f"{type(error).__name__}: {error}"
    return None


# ---- minimising ------------------------------------------------------------------------------------------------------


def minimise(case, still_fails, seconds=MINIMISE_SECONDS):
    """The smallest failing case that is found in the time, reduction by reduction."""
    deadline, shrunk = time.monotonic() + seconds, True
    while shrunk:
        shrunk = False
        for reduction in case.smaller():
            if time.monotonic() > deadline:
                return case
            try:
                smaller = type(case).generate(case.seed, case.number).reduced(reduction)
            except ValueError:
                continue
            if still_fails(smaller):
                case, shrunk = smaller, True
                break
    return case


# ---- reporting -------------------------------------------------------------------------------------------------------


def print_failure(case, variant, message, options):
    replay = json.dumps(case.replay())
    print(f"FAILED: seed {case.seed}, case {case.number}")
    print(f"spec:    {case.spec()}")
    if variant:
        print(f"engine:  {variant.engine}\nparams:  {variant.params_text()}\nvariant: {dataclasses.asdict(variant)}")
    print(message)
    print(case.rows_text())
    command = f"{sys.executable} {os.path.abspath(__file__)} --operator {options.operator} --lib {options.lib}"
    print(f"again:   {command} --replay '{replay}'", flush=True)


# ---- the child: runs cases -------------------------------------------------------------------------------------------


def run_cases(options):
    operator, library = OPERATORS[options.operator], quern_abi.Library(options.lib)
    check = functools.partial(check_case, operator, library, operator.Oracle())
    coverage = operator.Coverage()
    deadline, num_cases = time.monotonic() + options.seconds, 0
    for number in range(options.first_case, options.first_case + options.cases):
        if time.monotonic() > deadline or options.coverage and coverage.is_complete():
            break
        case = operator.Case.generate(options.seed, number)
        if options.coverage and not coverage.adds(case):
            continue
        print(f"begin {json.dumps(case.replay())}", flush=True)
        failure = check(case, coverage)
        if failure:
            return _report(check, case, failure, options)
        coverage.count_case(case)
        num_cases += 1
    print(coverage.text())
    print(f"end {num_cases}", flush=True)
    return _report_coverage(coverage) if options.coverage else 0


def _report_coverage(coverage):
    if coverage.is_complete():
        return 0
    print(f"FAILED: not seen: {coverage.unseen_text()}")
    return 1


def _report(check, case, failure, options):
    if options.minimise:
        case = minimise(case, lambda smaller: check(smaller) is not None)
        failure = check(case) or failure
    print_failure(case, *failure, options)
    return 1


def _replayed(operator, replay):
    reduction = {name: value for name, value in replay.items() if name not in ("seed", "case")}
    case = operator.Case.generate(replay["seed"], replay["case"])
    return case.reduced(reduction) if reduction else case


def replay_case(options):
    operator = OPERATORS[options.operator]
    case = _replayed(operator, json.loads(options.replay))
    failure = check_case(operator, quern_abi.Library(options.lib), operator.Oracle(), case)
    if failure:
        print_failure(case, *failure, options)
        return 1
    print("1 cases passed")
    return 0


# ---- the parent: watches ---------------------------------------------------------------------------------------------


def _child(options, *arguments, **keywords):
    command = [sys.executable, os.path.abspath(__file__), "--operator", options.operator, "--lib", options.lib,
               "--child", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quern_abi.environment_for(options.lib),
                            **keywords)


def _died_how(returncode):
    return f"killed by {signal.Signals(-returncode).name}" if returncode < 0 else f"ended with status {returncode}"


def _report_crash(options, replay, returncode):
    def crashes(case):
        child = _child(options, "--replay", json.dumps(case.replay()), stderr=subprocess.DEVNULL)
        child.communicate()
        return child.returncode not in (0, 1)

    case = _replayed(OPERATORS[options.operator], replay)
    if options.minimise and crashes(case):
        case = minimise(case, crashes)
    print_failure(case, None, f"the process was {_died_how(returncode)}", options)
    return 1


def watch(options):
    """Runs the cases in a child process and passes its output on."""
    begun = time.monotonic()
    arguments = ["--seed", str(options.seed), "--cases", str(options.cases), "--first-case", str(options.first_case),
                 "--seconds", str(options.seconds)] + (
        [] if options.minimise else ["--no-minimise"]) + (["--coverage"] if options.coverage else [])
    child, replay, last_progress = (
        _child(options, *arguments), {"seed": options.seed, "case": options.first_case}, begun)
    for line in child.stdout:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "begin":
            replay = json.loads(rest)
            if options.verbose or time.monotonic() - last_progress > PROGRESS_SECONDS:
                print(f"case {replay['case']}", flush=True)
                last_progress = time.monotonic()
        elif word == "end":
            passed = int(rest)
        else:
            print(line, end="", flush=True)
    if child.wait() == 0:
        print(f"{passed} cases passed in {time.monotonic() - begun:.0f} s")
        return 0
    return 1 if child.returncode == 1 else _report_crash(options, replay, child.returncode)


def watch_replay(options):
    child = _child(options, "--replay", options.replay)
    print(child.communicate()[0], end="")
    if child.returncode not in (0, 1):
        print(f"FAILED: the process was {_died_how(child.returncode)}")
    return 1 if child.returncode else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operator", choices=sorted(OPERATORS), default="join")
    parser.add_argument("--seed", type=int, default=1, help="0: from the clock")
    parser.add_argument("--cases", type=int, help="default: as many as fit into --seconds")
    parser.add_argument("--first-case", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="default: 60, or no limit where --cases or --coverage is given")
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--replay", help="one case, as a failure printed it")
    parser.add_argument("--coverage", action="store_true",
                        help="run until all has been seen that the operator's Coverage asks for")
    parser.add_argument("--no-minimise", dest="minimise", action="store_false")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    options.seed = options.seed or time.time_ns() % 1_000_000_000
    if options.seconds is None:
        options.seconds = math.inf if options.cases or options.coverage else 60
    options.cases = options.cases or 1_000_000
    return options


def main():
    options = parse_options()
    if options.child:
        return replay_case(options) if options.replay else run_cases(options)
    if options.replay:
        return watch_replay(options)
    print(f"seed {options.seed}", flush=True)
    return watch(options)


if __name__ == "__main__":
    sys.exit(main())
