# SPDX-License-Identifier: Apache-2.0
"""Joins the files of key_types.py on pairs of columns of different types, with both engines: key_types_run.py QUERN
FOLDER."""

import subprocess
import sys

quern, folder = sys.argv[1:]
NUMBERS = ["i32", "i64", "u32", "f32", "f64"]
DECIMALS = ["decimal", "decimal32", "decimal64"]
TEXTS = ["utf8", "large_utf8", "utf8_view", "dictionary"]
PAIRS = ([(a, b) for group in (NUMBERS, TEXTS) for a in group for b in group]
         + [("u64", "u64"), ("u32", "u64"), ("i32", "u64"), ("u64", "i64"), ("decimal", "i64"), ("u32", "decimal")]
         + [(a, b) for a in DECIMALS for b in (*DECIMALS, "i32")])
EXPECTED = "row_probe  row_build\n" + "".join(f"{row:9}  {row:9}\n" for row in range(3)) + "3 rows\n"

for a, b in PAIRS:
    for engine, extension in (("jit", "arrow"), ("generic", "parquet")):
        command = [quern, "join", "--on", f"{a}={b}", "--select", "row_probe,row_build", "--engine", engine]
        command += [f"{folder}/probe.{extension}", f"{folder}/build.{extension}"]
        run = subprocess.run(command, capture_output=True, text=True)
        if (run.returncode, run.stdout, run.stderr) != (0, EXPECTED, ""):
            sys.exit(f"{' '.join(command)}\nstatus {run.returncode}\n{run.stdout}{run.stderr}expected\n{EXPECTED}")
