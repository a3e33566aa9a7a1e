# SPDX-License-Identifier: Apache-2.0
"""Texts as long as a 16th of the memory limit: joins, aggregations, sorts and set operations over files of them finish
under 16 MiB, with one thread and with four, and their rows are those that Python finds.

    longest_texts.py QUERN FOLDER"""

import collections
import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

QUERN, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
NUM_TEXTS, LENGTH, LIMIT = 40, 1 << 20, "16M"
SCHEMA = pa.schema({"k": pa.large_utf8(), "v": pa.int64()})


def make(path):
    """Each text twice, in row groups of one row; returns the rows."""
    texts = [f"{i * 7919 % 1000:06d}".ljust(LENGTH, "abcdefgh"[i % 8]) for i in range(NUM_TEXTS)] * 2
    with pq.ParquetWriter(path, SCHEMA, use_dictionary=False, write_statistics=False) as file:
        for number, text in enumerate(texts):
            file.write_table(pa.table({"k": [text], "v": [number]}, SCHEMA))
    return list(zip(texts, range(len(texts))))


def rows_of(command, inputs, threads):
    """The rows of a run, each a tuple; or None where it failed."""
    out = FOLDER / "out.parquet"
    words = [QUERN, *command, *map(str, inputs), "--threads", str(threads), "--memory-limit", LIMIT, "--spill-dir",
             str(FOLDER), "--quiet", "-o", str(out)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        print(" ".join(words[1:]), "failed:", ran.stderr.strip())
        return None
    table = pq.read_table(out)
    return list(zip(*(column.to_pylist() for column in table.columns)))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "long.parquet"
    rows = make(path)
    counts, sums = collections.Counter(k for k, _ in rows), collections.Counter()
    for k, v in rows:
        sums[k] += v
    cases = {
        "aggregate": (["aggregate", "--by", "k", "--agg", "count(*), sum(v)"], 1,
                      [(k, counts[k], sums[k]) for k in counts]),
        "aggregate max": (["aggregate", "--by", "v", "--agg", "max(k)"], 1, [(v, k) for k, v in rows]),
        "sort": (["sort", "--by", "k, v desc"], 1, sorted(rows, key=lambda row: (row[0], -row[1]))),
        "join": (["join", "--on", "k", "--select", "probe.v, build.v"], 2,
                 [(v, w) for k, v in rows for other, w in rows if k == other]),
        "union": (["set", "union"], 2, rows),
        "intersect": (["set", "intersect", "--all"], 2, rows),
    }
    failed = 0
    for name, (command, num_inputs, expected) in cases.items():
        for threads in (1, 4):
            found = rows_of(command, [path] * num_inputs, threads)
            in_order = name == "sort"
            same = found is not None and (found == expected if in_order else sorted(found) == sorted(expected))
            failed += not same
            print(f"{name}, {threads} threads: {'same' if same else 'DIFFERS'}")
    print(f"{failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
