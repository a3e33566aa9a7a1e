# SPDX-License-Identifier: Apache-2.0
"""ending.py: daemon threads are inside calls of the package while the interpreter ends. The process must end
normally."""

import subprocess
import sys

PROGRAM = """
import threading, time, quern
def compile_for_ever(first):
    while True:
        first += 1
        quern.compile(f"filter i64 > {first}", engine="jit")
for i in range(2):
    threading.Thread(target=compile_for_ever, args=(i * 1000000,), daemon=True).start()
time.sleep(%g)
"""

for seconds in (0.01, 0.03, 0.05, 0.1):
    ended = subprocess.run([sys.executable, "-c", PROGRAM % seconds], capture_output=True, text=True, timeout=60)
    if ended.returncode != 0:
        sys.exit(f"after {seconds} s: status {ended.returncode}: {ended.stderr}")
