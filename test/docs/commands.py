# SPDX-License-Identifier: Apache-2.0
"""Runs the `$ quern ...` commands that the pages show: commands.py QUERN PYTHON_BIN FOLDER PAGE...

A command that reads TPC-H data ($D) or needs no file must end with status 0; it runs on scale factor 0.01, so that
numbers differ from the page. What `quern dump layout` prints must be what the page shows below it. Other commands need
files, tools or time that a test does not have; how many of them there are is printed, so that nobody takes this for a
test of all."""

import pathlib
import re
import shlex
import subprocess
import sys

NO_DATA = ("dump", "doctor", "env", "cache ls", "cache stat", "profile path")
ON_TPCH = ("join", "aggregate", "sort", "filter", "map", "set", "run docs/")


def commands(text):
    """(command, lines shown below it) of each indented or fenced line that begins with `$ quern`."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = re.match(r"^( *)\$ (quern .*)$", line)
        if not match:
            continue
        indent, command, end = match[1], match[2], number + 1
        while command.endswith("\\") or command.count('"') % 2 or ('"' not in command and command.count("'") % 2):
            command = command.removesuffix("\\") + " " + lines[end].strip()
            end += 1
        shown = []
        while (end < len(lines) and lines[end].startswith(indent) and lines[end].strip()
               and not lines[end].lstrip().startswith(("$", "```"))):
            shown.append(lines[end][len(indent):])
            end += 1
        yield re.sub(r"\s+#.*$", "", command), shown


def are_among(shown, printed):
    """Whether all lines without `..`, which stands for what the page leaves out, are among those printed, in order."""
    rest = iter(printed)
    return bool(shown) and all(".." in line or line in rest for line in shown)


def is_runnable(command):
    words = command.removeprefix("quern ")
    return (words.startswith(NO_DATA) and " mca " not in words) or (words.startswith(ON_TPCH) and "$D/" in words)


def main():
    quern, python_bin, folder, *pages = sys.argv[1:]
    data = pathlib.Path(folder) / "tpch"
    subprocess.run([pathlib.Path(python_bin) / "tpchgen-cli", "parquet", "--quiet", "-s", "0.01", "--tables",
                    "lineitem,orders", "-o", data], check=True)
    examples = pathlib.Path(pages[0]).resolve().parent / "docs" / "examples"
    (pathlib.Path(folder) / "docs").mkdir()
    (pathlib.Path(folder) / "docs" / "examples").symlink_to(examples)
    run = left_out = 0
    wrong = []
    for page in pages:
        for command, shown in commands(pathlib.Path(page).read_text()):
            if not is_runnable(command):
                left_out += 1
                continue
            run += 1
            script = command.replace("quern ", f"{shlex.quote(quern)} ", 1)
            result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=folder,
                                    env={"D": data.name, "PATH": "/usr/bin:/bin", "HOME": folder,
                                         "QUERN_PROFILE": "off"})
            name = pathlib.Path(page).name
            if result.returncode != 0:
                wrong.append(f"{name}: {command}\n  status {result.returncode}: {result.stderr.strip()}")
            elif command.startswith("quern dump layout") and not are_among(shown, result.stdout.splitlines()):
                wrong.append(f"{name}: {command}\n  the page shows other lines than these:\n{result.stdout}")
    print("\n".join(wrong)
          or f"{run} commands run as the pages show them; {left_out} others need what a test does not have")
    sys.exit(1 if wrong or run < 20 else 0)


if __name__ == "__main__":
    main()
