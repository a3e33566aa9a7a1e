# SPDX-License-Identifier: Apache-2.0
"""Kernels for the checks of this folder, in a process that notifies profilers: kernels.py LIB [SPEC...] compiles them
and ends.

QUERN_JIT_PROFILE is set before the library is loaded, which reads it."""
import os
import re
import subprocess
import sys

import quern_abi

SPECS = ("join.left keys=i64,utf8 build=f64 probe=i32", "aggregate keys=i64,utf8(utf8mb4_bin) aggs=sum(i64),min(utf8)",
         "sort keys=i32:desc,utf8 payload=f64", "filter utf8 like '%a%' and i64 > 5")


def compile_all(library_path, specs=SPECS, **variables):
    """The library and the kernels, compiled; variables of the environment as given."""
    os.environ.update(variables, QUERN_CACHE="off")
    library = quern_abi.Library(library_path)
    return library, [library.compile(spec, engine="jit") for spec in specs]


def symbols_of(quern, spec):
    """{symbol: bytes} of the kernel's object, as `quern dump obj` prints it."""
    clean = {name: value for name, value in os.environ.items() if name != "QUERN_JIT_PROFILE"}
    text = subprocess.run([quern, "dump", "obj", spec], capture_output=True, text=True, check=True, env=clean).stdout
    return {name: int(size) for name, size in re.findall(r"^defined (quern_\w+) (\d+) bytes$", text, re.M)}


def mappings():
    """(begin, end, permissions, path) of this process."""
    for line in open("/proc/self/maps"):
        fields = line.rstrip("\n").split(maxsplit=5)  # a name may have spaces
        begin, end = (int(number, 16) for number in fields[0].split("-"))
        yield begin, end, fields[1], fields[5] if len(fields) > 5 else ""


def check(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def check_executable(address, size):
    check(any(begin <= address and address + size <= end and permissions == "r-xp"
              for begin, end, permissions, _ in mappings()),
          f"{address:x} {size:x} is not code")


if __name__ == "__main__":
    library, kernels = compile_all(sys.argv[1], sys.argv[2:] or SPECS)
    for kernel in kernels:
        kernel.close()
    library.clear_cache()
