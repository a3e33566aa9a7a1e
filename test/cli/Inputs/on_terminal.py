# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose stderr is a terminal, and prints what it wrote there as one Python string."""
import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
written = b""
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # what Linux answers when the other side is closed
        break
    if not piece:
        break
    written += piece
if process.wait() != 0:
    sys.exit("failed: " + " ".join(sys.argv[1:]))
print(repr(written.decode()))
