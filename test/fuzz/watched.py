# SPDX-License-Identifier: Apache-2.0
"""Runs a fuzzer in a child process, so that a crash of the library is a failure that names its input.

    sys.exit(watched.main(__doc__, one_case))      one_case(library, rng) -> generator of inputs, as text, each before
                                                   it is tried

A fuzzer yields a text that describes each input *before* it gives it to the library, and raises Failure when the
library misbehaves. Options, the same for all: --lib, --seed, --cases, --seconds, --only N (one case again).
"""
import argparse
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "differential"))

import quern_abi  # noqa: E402


MAX_FAILURES = 3  # after which a run gives up


class Failure(Exception):
    """The library misbehaved."""


def check_error(error, accepted=(quern_abi.INVALID_ARGUMENT, quern_abi.UNIMPLEMENTED)):
    """The rule for every error text: one line, `<what>: <value>; <accepted>`; cut where the error object ends."""
    text = error.text
    if error.status not in accepted:
        raise Failure(f"status {quern_abi.STATUS_NAMES[error.status]}: {text}")
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise Failure(f"an error text is one line without control characters: {text!r}")
    if ": " not in text or ("; " not in text and len(text.encode()) < 1000):
        raise Failure(f"an error text says `<what>: <value>; <accepted>`: {text!r}")


def _options(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--lib", help="libquern.so; default: $QUERN_LIB")
    parser.add_argument("--seed", type=int, default=1, help="0: from the clock")
    parser.add_argument("--cases", type=int, help="default: as many as fit into --seconds")
    parser.add_argument("--seconds", type=float, help="default: 20, or no limit where --cases is given")
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lib = os.path.abspath(quern_abi.library_path(options.lib))
    options.seed = options.seed or time.time_ns() % 1_000_000_000
    if options.seconds is None:
        options.seconds = math.inf if options.cases else 20
    options.cases = options.cases or 1_000_000
    return options


def _run_cases(options, one_case):
    library, deadline = quern_abi.Library(options.lib), time.monotonic() + options.seconds
    numbers = range(options.cases) if options.only is None else [options.only]
    num_passed = num_failed = 0
    for number in numbers:
        if time.monotonic() > deadline or num_failed == MAX_FAILURES:
            break
        try:
            for text in one_case(library, random.Random(f"{options.seed}/{number}")):
                print(f"begin {number} {text!r}", flush=True)
            num_passed += 1
        except (Failure, quern_abi.QuernError, quern_abi.ContractError) as failure:
            print(f"failed {type(failure).__name__}: {failure}", flush=True)
            num_failed += 1
    print(f"end {num_passed}", flush=True)
    return 1 if num_failed else 0


def print_failure(options, last, why):
    number, _, text = last.partition(" ")
    command = f"{sys.executable} {os.path.abspath(sys.argv[0])} --lib {options.lib} --seed {options.seed}"
    print(f"FAILED: case {number}: {why}\ninput: {text}\nagain: {command} --only {number or 0}", flush=True)


def main(description, one_case):
    options = _options(description)
    if options.child:
        return _run_cases(options, one_case)
    print(f"seed {options.seed}", flush=True)
    command = [sys.executable, *sys.argv, "--lib", options.lib, "--seed", str(options.seed), "--child"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quern_abi.environment_for(options.lib))
    last, passed = "", "0"
    for line in child.stdout:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "begin":
            last = rest
        elif word == "end":
            passed = rest
        elif word == "failed":
            print_failure(options, last, rest)
        else:
            print(line, end="")
    if child.wait() < 0:
        print_failure(options, last, f"the process was killed by {signal.Signals(-child.returncode).name}")
    print(f"{passed} cases passed")
    return 1 if child.returncode else 0
