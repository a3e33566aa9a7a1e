# SPDX-License-Identifier: Apache-2.0
"""Writes probe.csv, build.csv and skewed.csv into a folder: two rows of the build side a key, half of the probe rows
hit, and keys that Zipf's law with exponent 0.9 chose among 5000."""
import bisect
import itertools
import pathlib
import random
import sys

folder = pathlib.Path(sys.argv[1])
rows = [f"a text of {i % 10000:04},{i % 10000 * 7919}" for i in range(20000)]
(folder / "build.csv").write_text("k,n\n" + "\n".join(rows) + "\n")
rows = [f"a text of {i % 20000 % 10000:04}{'' if i % 20000 < 10000 else '!'},{i % 20000 * 7919}" for i in range(40000)]
(folder / "probe.csv").write_text("k,n\n" + "\n".join(rows) + "\n")
chooser = random.Random(7)
weights = list(itertools.accumulate(rank**-0.9 for rank in range(1, 5001)))
rows = [str(bisect.bisect(weights, chooser.random() * weights[-1]) * 7919) for _ in range(50000)]
(folder / "skewed.csv").write_text("n\n" + "\n".join(rows) + "\n")
