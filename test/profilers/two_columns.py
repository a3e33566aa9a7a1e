# SPDX-License-Identifier: Apache-2.0
"""two_columns.py FILE: a CSV file of a hundred rows with a unique key and a value."""
import sys

with open(sys.argv[1], "w") as file:
    file.write("key,value\n")
    file.writelines(f"{row},{row * row}\n" for row in range(100))
