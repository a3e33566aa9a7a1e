# SPDX-License-Identifier: Apache-2.0
"""A run under a memory limit keeps to it: the most resident memory of its process, as the system counted it, lies below
the limit and 64 MiB. Pages of mapped files are left out, some 50 MiB of code of the program and of Arrow: the system
takes them back when it has no other memory. How many they are is what the program says in --stats.

    peak_memory.py QUERN MAKE FOLDER [ROWS]

MAKE is the command of a Python with pyarrow, which makes the files: this process stays small, since a child's count
begins with what its parent had. Each command runs at 64 MiB and at 256 MiB over files that take several times as much.
Prints for each what its process took, what it took of its own for ten rows, and what was spilled."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

QUERN, MAKE, FOLDER = sys.argv[1], shlex.split(sys.argv[2]), pathlib.Path(sys.argv[3])
NUM_ROWS = int(sys.argv[4]) if len(sys.argv) > 4 else 3_000_000
MIB = 1 << 20
OWN_MIB = 64  # that a process may take beside the limit and mapped files
LIMITS_MIB = (64, 256)
# The rows of `third` are among those of `big`; `long` has as many bytes in few rows.
MAKING = """
import sys, pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq
folder, num_rows = sys.argv[1], int(sys.argv[2])
with pq.ParquetWriter(f"{folder}/big.parquet", SCHEMA := pa.schema({"k": pa.int64(), "s": pa.utf8()})) as file:
    for first in range(0, num_rows, 100_000):
        rows = pa.array(range(first, first + 100_000), pa.int64())
        keys = pc.bit_wise_and(pc.multiply(rows, 0x9E3779B1), (1 << 40) - 1)
        texts = pc.binary_join_element_wise("the text of the row with the key", keys.cast(pa.utf8()), " ")
        file.write_table(pa.table({"k": keys, "s": texts}, SCHEMA))
big = pq.read_table(f"{folder}/big.parquet", columns=["k", "s"])
pq.write_table(big.slice(0, num_rows // 3), f"{folder}/third.parquet", row_group_size=100_000)
pq.write_table(big.slice(0, 10), f"{folder}/small.parquet")
with pq.ParquetWriter(f"{folder}/long.parquet", SCHEMA, use_dictionary=False) as file:
    for first in range(0, num_rows // 30, 2000):
        rows = big.slice(first, 2000)
        file.write_table(pa.table({"k": rows["k"], "s": pc.binary_repeat(rows["s"], 100)}, SCHEMA))
"""
COMMANDS = {
    "sort": (["sort", "--by", "s desc, k"], ["big"]),
    "aggregate": (["aggregate", "--by", "k, s", "--agg", "count(*), sum(k), max(s)"], ["big"]),
    "set": (["set", "except"], ["big", "third"]),
    "join": (["join", "--on", "k"], ["third", "big"]),
    "sort of long texts": (["sort", "--by", "s"], ["long"]),
    "aggregate of long texts": (["aggregate", "--by", "s", "--agg", "max(k)"], ["long"]),
    "join of long texts": (["join", "--on", "k"], ["long", "long"]),
}


def run(command, files, limit_mib):
    """(most resident memory in MiB, without mapped files; that of these; bytes that were spilled)."""
    spill = FOLDER / "spill"
    spill.mkdir(exist_ok=True)
    words = [QUERN, *command, *(str(FOLDER / f"{name}.parquet") for name in files), "--threads", "2", "--memory-limit",
             f"{limit_mib}M", "--spill-dir", str(spill), "--quiet", "--stats", "-o", str(FOLDER / "out.parquet")]
    child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    stderr = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if os.listdir(spill):
        raise SystemExit(f"FAILED: files are left: {os.listdir(spill)}")
    if child.returncode == 0:
        stats = json.loads(stderr.splitlines()[-1])
        mapped = stats["mapped_file_bytes"] / MIB
        return usage.ru_maxrss / 1024 - mapped, mapped, stats["spilled_bytes"]
    raise SystemExit(f"FAILED: {shlex.join(words)}: status {child.returncode}: {stderr}")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    subprocess.run([*MAKE, "-c", MAKING, str(FOLDER), str(NUM_ROWS)], check=True)
    os.environ |= {"QUERN_CACHE": "off", "QUERN_PROFILE": "off"}
    num_failed = 0
    for name, (command, files) in COMMANDS.items():
        own, mapped, _ = run(command, ["small"] * len(files), 64)
        for limit in LIMITS_MIB:
            peak, _, spilled = run(command, files, limit)
            is_wrong = peak > limit + OWN_MIB or spilled == 0
            num_failed += is_wrong
            print(f"{name} under {limit} MiB: {peak:.0f} MiB at most, {own:.0f} MiB without rows, beside {mapped:.0f} "
                  f"MiB of mapped files; {spilled // MIB} MiB spilled{' FAILED' if is_wrong else ''}", flush=True)
    print(f"{num_failed} failed")
    sys.exit(num_failed > 0)


if __name__ == "__main__":
    main()
