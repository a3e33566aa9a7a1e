# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a diagnostics test: cases.py QUERN TEST FOLDER. A case is two lines of TEST, the status with the
whole text, then the command that causes it, which runs in FOLDER:

    2: unknown command: jion; did you mean join? accepted: join, aggregate, sort, .., doctor, env
    $ quern jion

It passes when the command ends with that status, with exactly `quern: error: TEXT` on stderr and nothing on stdout, and
leaves no new file. `NAME=VALUE` before quern sets an environment variable. {cpu}, {cores} or another word in braces
stands for any text."""

import os
import re
import shlex
import subprocess
import sys


def cases(path):
    expected = None
    for line in open(path, encoding="utf-8"):
        if re.match(r"[12]: ", line):
            expected = int(line[0]), line[3:].rstrip("\n")
        elif line.startswith("$ ") and expected is not None:
            yield *expected, line[2:].rstrip("\n")
            expected = None


def run(quern, command, folder):
    words = shlex.split(command)
    start = words.index("quern")
    environment = dict(os.environ, **dict(word.split("=", 1) for word in words[:start]))
    return subprocess.run([quern, *words[start + 1 :]], capture_output=True, text=True, cwd=folder, env=environment)


def pattern(text):
    parts = re.split(r"\{[a-z_ ]+\}", "quern: error: " + text + "\n")
    return ".*".join(re.escape(part) for part in parts)


def check(quern, folder, status, text, command):
    before = sorted(os.listdir(folder))
    result = run(quern, command, folder)
    if result.returncode != status or result.stdout or not re.fullmatch(pattern(text), result.stderr):
        return (f"{command}\n  expected {status}: quern: error: {text}\n  found    {result.returncode}: "
                f"{result.stderr}{result.stdout}")
    if sorted(os.listdir(folder)) != before:
        return f"{command}\n  left files: {sorted(set(os.listdir(folder)) - set(before))}"
    return None


quern, test, folder = sys.argv[1:]
outcomes = [check(quern, folder, *case) for case in cases(test)]
failures = [outcome for outcome in outcomes if outcome]
sys.exit("\n".join(failures) if failures else 0 if outcomes else "no case in " + test)
