#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Differential test: compiled kernels = generic kernels = DuckDB, on random specs and rows.

    run.py --seed 7 --cases 1000 --seconds 60 --lib build/lib/libquern.so
    run.py --lib build/lib/libquern.so --replay '{"seed": 7, "case": 31, "keys": [0], "build_rows": [0, 2]}'

Prints the seed first. The cases run in a child process, which says which case it begins, so that a crash is a failure like any other. A
failure is made small (fewer rows, keys, payload columns; at most a minute) and printed as a replay, which builds exactly that case. Exit
status: 0 after `N cases passed`, 1 after a failure.

`--seconds` ends a run between two cases. `--seed 0` takes a new seed from the clock.
"""
import argparse
import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import join_case
import quern_abi
from oracle import DuckdbOracle

# Each: Case (generate, reduced, variants, spec, smaller, rows_text, replay), Expected, run, check_compiles_twice, Mismatch.
OPERATORS = {"join": join_case}
MINIMISE_SECONDS = 60
PROGRESS_SECONDS = 20


def check_case(operator, library, oracle, case):
    """Runs a case in all its variants. Answers None, or (variant, what is wrong)."""
    expected = operator.Expected(case, oracle)
    variants = case.variants()
    for variant in variants:
        try:
            expected.check(operator.run(library, case, variant))
        except (operator.Mismatch, quern_abi.QuernError, quern_abi.ContractError, ValueError) as error:
            return variant, f"{type(error).__name__}: {error}"
    try:
        operator.check_compiles_twice(library, case, variants[case.number % 2])
    except (operator.Mismatch, quern_abi.QuernError) as error:
        return variants[case.number % 2], f"{type(error).__name__}: {error}"
    return None


# ---- minimising --------------------------------------------------------------------------------------------------------------------------


def minimise(case, still_fails, seconds=MINIMISE_SECONDS):
    """The smallest case found in the time by taking each step that still fails."""
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


# ---- reporting ---------------------------------------------------------------------------------------------------------------------------


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


# ---- the child: runs cases ---------------------------------------------------------------------------------------------------------------


def run_cases(options):
    check = functools.partial(check_case, OPERATORS[options.operator], quern_abi.Library(options.lib), DuckdbOracle())
    deadline = time.monotonic() + options.seconds
    number = options.first_case
    while number < options.first_case + options.cases and time.monotonic() < deadline:
        print(f"begin {number}", flush=True)
        case = OPERATORS[options.operator].Case.generate(options.seed, number)
        failure = check(case)
        if failure:
            return _report(check, case, failure, options)
        number += 1
    print(f"end {number - options.first_case}", flush=True)
    return 0


def _report(check, case, failure, options):
    if options.minimise:
        case = minimise(case, lambda smaller: check(smaller) is not None)
        failure = check(case) or failure
    print_failure(case, *failure, options)
    return 1


def replay_case(options):
    replay = json.loads(options.replay)
    seed, number = replay.pop("seed"), replay.pop("case")
    operator = OPERATORS[options.operator]
    case = operator.Case.generate(seed, number)
    case = case.reduced(replay) if replay else case
    failure = check_case(operator, quern_abi.Library(options.lib), DuckdbOracle(), case)
    if failure:
        print_failure(case, *failure, options)
        return 1
    print("1 cases passed")
    return 0


# ---- the parent: watches -----------------------------------------------------------------------------------------------------------------


def _child(options, *arguments, **keywords):
    command = [sys.executable, os.path.abspath(__file__), "--operator", options.operator, "--lib", options.lib, "--child", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quern_abi.environment_for(options.lib), **keywords)


def _died_how(returncode):
    return f"killed by {signal.Signals(-returncode).name}" if returncode < 0 else f"ended with status {returncode}"


def _report_crash(options, number, returncode):
    def crashes(case):
        child = _child(options, "--replay", json.dumps(case.replay()), stderr=subprocess.DEVNULL)
        child.communicate()
        return child.returncode not in (0, 1)

    case = OPERATORS[options.operator].Case.generate(options.seed, number)
    if options.minimise and crashes(case):
        case = minimise(case, crashes)
    print_failure(case, None, f"the process was {_died_how(returncode)}", options)
    return 1


def watch(options):
    """Runs the cases in a child and passes on what it says."""
    begun = time.monotonic()
    arguments = ["--seed", str(options.seed), "--cases", str(options.cases), "--first-case", str(options.first_case), "--seconds",
                 str(options.seconds)] + ([] if options.minimise else ["--no-minimise"])
    child, number, last_progress = _child(options, *arguments), options.first_case, begun
    for line in child.stdout:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "begin":
            number = int(rest)
            if options.verbose or time.monotonic() - last_progress > PROGRESS_SECONDS:
                print(f"case {number}", flush=True)
                last_progress = time.monotonic()
        elif word == "end":
            passed = int(rest)
        else:
            print(line, end="", flush=True)
    if child.wait() == 0:
        print(f"{passed} cases passed in {time.monotonic() - begun:.0f} s")
        return 0
    return 1 if child.returncode == 1 else _report_crash(options, number, child.returncode)


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
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--first-case", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--replay", help="one case, as a failure printed it")
    parser.add_argument("--no-minimise", dest="minimise", action="store_false")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    options.seed = options.seed or time.time_ns() % 1_000_000_000
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
