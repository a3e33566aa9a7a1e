# SPDX-License-Identifier: Apache-2.0
"""What compiling the kernels of a query takes, for run.py --compile: cold, and from the disk cache that another process
has filled. Every measurement is a process of its own, with a cache folder that begins empty:

    process 1   compiles all kernels of tpch.3, one after the other       cache "miss"
    process 2   the same; finds what the first has left                   cache "disk"

Both get another kernel first, so that starting LLVM and reading the CPU's features do not count. Run as a program, this
file is such a process: its arguments are specs, and it prints a list of [ms, cache, bytes of code].
"""
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITE = os.path.join(ROOT, "build", "python-site")
FIRST_SPEC = "join.inner keys=u8"  # of no query
WAYS = {"cold": "miss", "disk": "disk"}  # and where their kernels come from


@dataclasses.dataclass
class CompileTimes:
    """Milliseconds of all kernels of a query, by way: medians of the rounds."""
    num_kernels: int
    code_bytes: int
    total: dict
    longest: float  # of the slowest kernel, cold


def _kernels(specs):
    """[[ms, cache, bytes of code]] of kernels that this process compiles now."""
    sys.path.insert(0, SITE)
    import quern

    quern.compile(FIRST_SPEC, engine="jit")
    kernels = []
    for spec in specs:
        start = time.perf_counter()
        kernel = quern.compile(spec, engine="jit")
        milliseconds = (time.perf_counter() - start) * 1e3
        kernels.append([milliseconds, kernel.stats["cache"], kernel.stats["code_bytes"]])
    return kernels


def _of_process(specs, folder):
    environment = {**os.environ, "QUERN_CACHE": "rw", "QUERN_CACHE_DIR": folder}
    done = subprocess.run([sys.executable, os.path.abspath(__file__), *specs], env=environment, check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure(specs, rounds):
    """CompileTimes of different specs. ValueError if a kernel does not come from where it should."""
    times, longest = {way: [] for way in WAYS}, []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for way, cache in WAYS.items():
                kernels = _of_process(specs, folder)
                for spec, (_, found, _) in zip(specs, kernels):
                    if found != cache:
                        raise ValueError(f"kernel from the wrong place: {spec}, cache {found}; accepted: {cache}")
                times[way].append(sum(kernel[0] for kernel in kernels))
                if way == "cold":
                    longest.append(max(kernel[0] for kernel in kernels))
    medians = {way: statistics.median(values) for way, values in times.items()}
    return CompileTimes(len(specs), sum(kernel[2] for kernel in kernels), medians, statistics.median(longest))


if __name__ == "__main__":
    print(json.dumps(_kernels(sys.argv[1:])))
