# SPDX-License-Identifier: Apache-2.0
"""Keys that all meet in one slot under the public numbers of the hash (runtime/base/bytes.h), beside random keys:

    PYTHONPATH=build/python-site build/venv/bin/python bench/hostile_keys.py [--keys 1000000] [--rounds 3]

Joins each table with itself, groups it by the key, and counts distinct keys, with one thread and the compiled kernel;
crafted and random keys take turns, the best round counts. Without a secret, 40,000 such keys took 23 s. Wrong numbers
of rows are an error."""

import argparse
import random
import sys
import time

import pyarrow as pa
import quern

WORD = 1 << 64
MULTIPLIER1, MULTIPLIER2, COMBINE = 0xd6e8feb86659fd93, 0xff51afd7ed558ccd, 0x9e3779b97f4a7c15


def unmixed(value):
    """The word whose public hash is `value`."""
    value ^= value >> 32
    value = value * pow(MULTIPLIER2, -1, WORD) % WORD
    value ^= value >> 32
    value = value * pow(MULTIPLIER1, -1, WORD) % WORD
    return value ^ value >> 32


def words(*columns):
    """The values of the columns one after the other, row by row, as bytes."""
    return b"".join(word.to_bytes(8, "little") for row in zip(*columns) for word in row)


def i64(n, crafted, draw):
    keys = [unmixed(0xdeadbeef12 << 24 | i) if crafted else draw() for i in range(n)]
    return pa.Array.from_buffers(pa.int64(), n, [None, pa.py_buffer(words(keys))])


def decimal(n, crafted, draw):
    low = [MULTIPLIER1] * n if crafted else [draw() for _ in range(n)]
    return pa.Array.from_buffers(pa.decimal128(38, 0), n, [None, pa.py_buffer(words(low, range(1, n + 1)))])


def bytes32(n, crafted, draw):
    """Bytes 16 to 23 make the product of the last two words 0."""
    if crafted:
        return words(range(n), [0] * n, [COMBINE] * n, [7] * n)
    return words(*([draw() for _ in range(n)] for _ in range(4)))


def text(n, crafted, draw):
    offsets = b"".join((32 * i).to_bytes(4, "little") for i in range(n + 1))
    return pa.Array.from_buffers(pa.binary(), n,
                                 [None, pa.py_buffer(offsets), pa.py_buffer(bytes32(n, crafted, draw))])


def fixed(n, crafted, draw):
    return pa.Array.from_buffers(pa.binary(32), n, [None, pa.py_buffer(bytes32(n, crafted, draw))])


OPTIONS = {"threads": 1, "engine": "jit"}
JOBS = {
    "join": lambda table: len(quern.join(table, table, on="k", select=[], **OPTIONS)),
    "group": lambda table: len(quern.aggregate(table, by="k", aggs="count(*)", **OPTIONS)),
    "distinct": lambda table:
        quern.aggregate(table, aggs="count(distinct k) as n", **OPTIONS).to_pyarrow()["n"][0].as_py(),
}


def seconds(job, table, n):
    begun = time.perf_counter()
    found = job(table)
    took = time.perf_counter() - begun
    if found != n:
        sys.exit(f"hostile_keys: error: wrong number of keys: {found}; accepted: {n}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    numbers = random.Random(1)
    print(f"{'keys':<8} {'job':<9} {'random s':>9} {'crafted s':>9} {'ratio':>6}")
    for make in (i64, decimal, text, fixed):
        tables = [pa.table({"k": make(options.keys, crafted, lambda: numbers.getrandbits(62))})
                  for crafted in (False, True)]
        for name, job in JOBS.items():
            rounds = [[seconds(job, table, options.keys) for table in tables] for _ in range(options.rounds)]
            plain, crafted = map(min, zip(*rounds))
            print(f"{make.__name__:<8} {name:<9} {plain:9.3f} {crafted:9.3f} {crafted / plain:6.2f}", flush=True)


if __name__ == "__main__":
    main()
