# SPDX-License-Identifier: Apache-2.0
"""perf_map.py LIB QUERN: /tmp/perf-PID.map names every function of four kernels once, with the address and the size
that it has."""
import os
import sys

import kernels


def main():
    library, made = kernels.compile_all(sys.argv[1], QUERN_JIT_PROFILE="perfmap")
    path = f"/tmp/perf-{os.getpid()}.map"
    with open(path) as file:
        lines = [line.rstrip("\n").split(" ", 2) for line in file]
    os.unlink(path)
    ranges = sorted((int(address, 16), int(size, 16)) for address, size, _ in lines)
    for (begin, size), (following, _) in zip(ranges, ranges[1:]):
        kernels.check(begin + size <= following, f"{begin:x} and {following:x} overlap")
    for begin, size in ranges:
        kernels.check_executable(begin, size)
    for kernel in made:
        spec = kernel.text("spec")
        found = {name.removesuffix(f" [{spec}]"): int(size, 16) for _, size, name in lines
                 if name.endswith(f" [{spec}]")}
        expected = kernels.symbols_of(sys.argv[2], spec)
        kernels.check(expected and found == expected, spec, found, expected)
        print(spec)
        print(*sorted(found))
    kernels.check(len(lines) == sum(len(kernels.symbols_of(sys.argv[2], kernel.text("spec"))) for kernel in made),
                  "lines of nothing")


main()
