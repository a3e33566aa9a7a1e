# SPDX-License-Identifier: Apache-2.0
"""Writes a CSV file of several blocks of 1 MiB: long_csv.py FILE. `late` is whole numbers, `text` has a point, and the
last row of either does not fit the type of the rows before it."""

import sys

with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write("late,text\n")
    for i in range(200000):
        file.write(f"{i},{i}.25\n")
    file.write("9223372036854775809,no number\n")
